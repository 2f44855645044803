/// \file
/// The Laplacian of a sheaf whose maps, family and stalk dimension are known at run time only.
#pragma once

#include <sheafnn/graph/dataset.hpp>
#include <sheafnn/sheaf/cellular_sheaf.hpp>
#include <sheafnn/sheaf/families.hpp>
#include <sheafnn/sheaf/laplacian.hpp>
#include <string>

#include "arrays.hpp"

namespace python {

/// A sheaf that is given by its maps.
struct GivenSheaf {
  const sheafnn::Dataset& data;
  const std::string& family;
  sheafnn::Index dimension;
  const Input<double>& maps;     ///< 2m × map_size entries, of the arcs in the order of the graph
  const Input<double>& weights;  ///< m, or empty
  const std::string& normalisation;
};

namespace detail {

template <template <int> class Family, class F>
decltype(auto) with_laplacian_of(const GivenSheaf& given, const F& f) {
  const auto use = [&]<int D>() {
    const sheafnn::CellularSheaf<Family<D>> sheaf(given.data.graph, span_of(given.maps), span_of(given.weights));
    return f(sheafnn::SheafLaplacian(sheaf, sheafnn::sheaf::parse_normalisation(given.normalisation)));
  };
  switch (given.dimension) {
    case 1:
      return use.template operator()<1>();
    case 2:
      return use.template operator()<2>();
    case 3:
      return use.template operator()<3>();
    case 4:
      return use.template operator()<4>();
    case 5:
      return use.template operator()<5>();
    default:
      sheafnn::throw_invalid_argument("stalk_dim", given.dimension, "must be between 1 and 5");
  }
}

}  // namespace detail

/// What f(laplacian) returns, the same type for every family.
///
/// \throws std::invalid_argument  no such family, dimension or normalisation, or maps that are not allowed
template <class F>
decltype(auto) with_laplacian(const GivenSheaf& given, const F& f) {
  if (given.family == "diagonal") return detail::with_laplacian_of<sheafnn::Diagonal>(given, f);
  if (given.family == "special-orthogonal") return detail::with_laplacian_of<sheafnn::SpecialOrthogonal>(given, f);
  if (given.family == "orthogonal") return detail::with_laplacian_of<sheafnn::Orthogonal>(given, f);
  if (given.family == "general-linear") return detail::with_laplacian_of<sheafnn::GeneralLinear>(given, f);
  if (given.family == "conformal") return detail::with_laplacian_of<sheafnn::Conformal>(given, f);
  if (given.family == "identity") return detail::with_laplacian_of<sheafnn::Identity>(given, f);
  sheafnn::throw_invalid_argument("family", given.family,
                                  "choose identity, diagonal, special-orthogonal, orthogonal, general-linear or conformal");
}

}  // namespace python
