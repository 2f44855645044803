/// \file
/// Sheaves that are given by their maps: the Laplacian as the three arrays of a sparse matrix, harmonic extension; connections.
#include <nanobind/stl/string.h>

#include <cstdint>
#include <sheafnn/core/names.hpp>
#include <sheafnn/sheaf/connection.hpp>
#include <sheafnn/sheaf/harmonic_extension.hpp>
#include <span>
#include <string>
#include <utility>

#include "given_sheaf.hpp"
#include "interpreter.hpp"
#include "models/decompositions.hpp"
#include "module.hpp"
#include "sheaf_arrays.hpp"

namespace python {

namespace {

/// \throws std::invalid_argument  no such family, dimension or normalisation, or maps or weights that are not allowed
void check(const GivenSheaf& given) {
  with_laplacian(given, [](const auto&) {});
}

[[nodiscard]] nb::tuple laplacian(const GivenSheaf& given) {
  Eigen::SparseMatrix<double> matrix = with_laplacian(given, [](const auto& own) { return own.matrix(); });
  matrix.makeCompressed();
  // Column by column, and symmetric: row by row as well.
  const auto rows = static_cast<std::size_t>(matrix.outerSize()),
             entries = static_cast<std::size_t>(matrix.nonZeros());
  const std::span<const int> offsets(matrix.outerIndexPtr(), rows + 1), columns(matrix.innerIndexPtr(), entries);
  return nb::make_tuple(to_numpy(std::span<const double>(matrix.valuePtr(), entries), {entries}),
                        to_numpy(columns, {entries}), to_numpy(offsets, {rows + 1}));
}

/// \param values  |B| × D × f
/// \return        n × D × f
[[nodiscard]] Output<double> extension(const GivenSheaf& given, const Input<std::int32_t>& nodes,
                                       const Input<double>& values) {
  const sheafnn::Cochain<double> x = [&] {
    const GilRelease release;
    const Eigen::Map<const sheafnn::Cochain<double>> rows(values.data(),
                                                          static_cast<Index>(values.shape(0) * values.shape(1)),
                                                          static_cast<Index>(values.shape(2)));
    return with_laplacian(given, [&](const auto& own) {
      return sheafnn::sheaf::harmonic_extension(own, span_of(nodes), rows);
    });
  }();
  return node_rows(x, given.dimension);
}

/// O_uv of every edge, m × D × D.
[[nodiscard]] Output<double> transports(const sheafnn::Dataset& data, Index dimension, bool special,
                                        const std::string& gauge) {
  sheafnn::sheaf::Transports maps = [&] {
    const GilRelease release;
    const sheafnn::sheaf::LocalFrames frames(data.graph, data.features, dimension,
                                             sheafnn::parse_name<sheafnn::FrameGauge>("gauge", gauge));
    return sheafnn::sheaf::connection_transports(frames, special, sheafnn::hardware_threads());
  }();
  const std::size_t d = static_cast<std::size_t>(dimension);
  return to_numpy(std::move(maps.values), {static_cast<std::size_t>(data.graph.edge_count()), d, d});
}

}  // namespace

void bind_sheaf(nb::module_& module) {
  module.def("connection_transports", &transports);
  def_of_sheaf(module, "check_sheaf", &check);
  def_of_sheaf(module, "laplacian", &laplacian);
  def_of_sheaf(module, "harmonic_extension", &extension);
  bind_sections(module);
}

}  // namespace python
