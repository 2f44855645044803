/// \file
/// What functions of given sheaves share: their first arguments, and cochains as arrays.
#pragma once

#include <nanobind/stl/string.h>

#include <cstddef>
#include <sheafnn/graph/dataset.hpp>
#include <sheafnn/sheaf/laplacian.hpp>
#include <string>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "given_sheaf.hpp"

namespace python {

using sheafnn::Index;

/// A cochain, (nD) × f, as n × D × f.
[[nodiscard]] inline Output<double> node_rows(const sheafnn::Cochain<double>& x, Index dimension) {
  std::vector<double> values;
  values.reserve(static_cast<std::size_t>(x.size()));
  for (Index row = 0; row < x.rows(); ++row) {
    for (Index column = 0; column < x.cols(); ++column) values.push_back(x(row, column));
  }
  return to_numpy(std::move(values), {static_cast<std::size_t>(x.rows() / dimension),
                                      static_cast<std::size_t>(dimension), static_cast<std::size_t>(x.cols())});
}

/// Binds f(sheaf, more…) as a function of the sheaf's six parts and of more.
template <class R, class... More>
void def_of_sheaf(nb::module_& module, const char* name, R (*f)(const GivenSheaf&, More...)) {
  module.def(name, [f](const sheafnn::Dataset& data, const std::string& family, Index dimension,
                       const Input<double>& maps, const Input<double>& weights, const std::string& normalisation,
                       More... more) {
    return f({data, family, dimension, maps, weights, normalisation}, more...);
  });
}

}  // namespace python
