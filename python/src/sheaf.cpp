/// \file
/// The Laplacian of a sheaf that is given by its maps, as the three arrays of a sparse matrix.
#include <nanobind/stl/string.h>

#include <cstdint>
#include <sheafnn/graph/dataset.hpp>
#include <sheafnn/sheaf/cellular_sheaf.hpp>
#include <sheafnn/sheaf/families.hpp>
#include <sheafnn/sheaf/laplacian.hpp>
#include <string>
#include <vector>

#include "arrays.hpp"
#include "module.hpp"

namespace python {

namespace {

using sheafnn::Index;

/// \param maps     2m × map_size numbers, of the arcs in the order of the graph
/// \param weights  m, or none
template <class Family>
[[nodiscard]] nb::tuple laplacian_of(const sheafnn::Graph& graph, const Input<double>& maps,
                                     const Input<double>& weights, sheafnn::Normalisation normalisation) {
  const sheafnn::CellularSheaf<Family> sheaf(graph, span_of(maps), span_of(weights));
  Eigen::SparseMatrix<double> matrix = sheafnn::SheafLaplacian(sheaf, normalisation).matrix();
  matrix.makeCompressed();
  // Column by column, and symmetric: row by row as well.
  const auto rows = static_cast<std::size_t>(matrix.outerSize()),
             entries = static_cast<std::size_t>(matrix.nonZeros());
  const std::span<const int> offsets(matrix.outerIndexPtr(), rows + 1), columns(matrix.innerIndexPtr(), entries);
  return nb::make_tuple(to_numpy(std::span<const double>(matrix.valuePtr(), entries), {entries}),
                        to_numpy(columns, {entries}), to_numpy(offsets, {rows + 1}));
}

template <template <int> class Family, class... Arguments>
[[nodiscard]] nb::tuple of_dimension(Index d, const Arguments&... arguments) {
  switch (d) {
    case 1:
      return laplacian_of<Family<1>>(arguments...);
    case 2:
      return laplacian_of<Family<2>>(arguments...);
    case 3:
      return laplacian_of<Family<3>>(arguments...);
    case 4:
      return laplacian_of<Family<4>>(arguments...);
    case 5:
      return laplacian_of<Family<5>>(arguments...);
    default:
      sheafnn::throw_invalid_argument("stalk_dim", d, "must be between 1 and 5");
  }
}

[[nodiscard]] nb::tuple laplacian(const sheafnn::Dataset& data, const std::string& family, Index dimension,
                                  const Input<double>& maps, const Input<double>& weights,
                                  const std::string& normalisation) {
  const sheafnn::Graph& graph = data.graph;
  const auto kind = sheafnn::parse_normalisation(normalisation);
  if (family == "diagonal") return of_dimension<sheafnn::Diagonal>(dimension, graph, maps, weights, kind);
  if (family == "special-orthogonal") {
    return of_dimension<sheafnn::SpecialOrthogonal>(dimension, graph, maps, weights, kind);
  }
  if (family == "general-linear")
    return of_dimension<sheafnn::GeneralLinear>(dimension, graph, maps, weights, kind);
  if (family == "conformal") return of_dimension<sheafnn::Conformal>(dimension, graph, maps, weights, kind);
  if (family == "identity") return of_dimension<sheafnn::Identity>(dimension, graph, maps, weights, kind);
  sheafnn::throw_invalid_argument("maps", family,
                                  "choose identity, diagonal, special-orthogonal, general-linear or conformal");
}

}  // namespace

void bind_sheaf(nb::module_& module) { module.def("laplacian", &laplacian); }

}  // namespace python
