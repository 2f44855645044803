/// \file
/// Sheaves as .npz files, for other programs: numpy.load("sheaf.npz").
///
/// | key             | shape                      | what                                                              |
/// | --------------- | -------------------------- | ----------------------------------------------------------------- |
/// | format_version  | a number                   | 1; files without it are of version 1 (format_version.hpp)         |
/// | family          | text                       | name of the family of maps                                        |
/// | stalk_dimension | a number                   | D                                                                 |
/// | node_count      | a number                   | n                                                                 |
/// | edges           | m × 2                      | ends u < v, sorted                                                |
/// | arcs            | 2m × 2                     | source u and target v of an arc, sorted; it stands for u ⊴ {u, v} |
/// | maps            | 2m × D × D, 2m × D, 2m × 0 | matrix, diagonal or nothing (F = I) per arc, without edge weight  |
/// | edge_weights    | m                          | w_e; the restriction map of an arc is w_e times its map           |
///
/// (maps are 2m × 1 where D = 1) and, of a posterior, its spread: 2m × columns under the name of each (NamedMatrix),
/// one column as a vector 2m.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/io/format_version.hpp"
#include "sheafnn/io/npz_writer.hpp"
#include "sheafnn/posterior/posterior_parameters.hpp"
#include "sheafnn/sheaf/cellular_sheaf.hpp"

namespace sheafnn::io {

namespace detail {

/// Adds what files of all sheaves begin with: format_version, family, stalk_dimension, node_count, edges and arcs.
///
/// \param listed  arcs that the graph lists, alone
inline void add_base(NpzWriter& writer, std::string_view family, Index dimension, const Graph& graph,
                     bool listed = false) {
  const std::int64_t numbers[] = {sheaf_file_version, dimension, graph.node_count()};
  writer.add<std::int64_t>("format_version", {}, std::span(numbers, 1));
  writer.add("family", family);
  writer.add<std::int64_t>("stalk_dimension", {}, std::span(numbers + 1, 1));
  writer.add<std::int64_t>("node_count", {}, std::span(numbers + 2, 1));
  std::vector<std::int32_t> edges;
  for (const Edge& e : graph.edges()) edges.insert(edges.end(), {e.u, e.v});
  writer.add<std::int32_t>("edges", {graph.edge_count(), 2}, edges);
  std::vector<std::int32_t> arcs;
  for (Index a = 0; a < graph.arc_count(); ++a) {
    if (listed && !graph.listed(a)) continue;
    arcs.insert(arcs.end(),
                {graph.sources()[static_cast<std::size_t>(a)], graph.targets()[static_cast<std::size_t>(a)]});
  }
  writer.add<std::int32_t>("arcs", {static_cast<Index>(arcs.size() / 2), 2}, arcs);
}

}  // namespace detail

/// Adds the arrays of a sheaf to a file.
///
/// \param columns  further matrices with a row per arc, e.g. PosteriorParameters::spread
/// \throws std::invalid_argument  a matrix of another length or a name that is taken, or more than 4 GiB in all
template <RestrictionMapFamily Family, class Scalar>
void add_sheaf(NpzWriter& writer, const CellularSheaf<Family, Scalar>& sheaf,
               std::span<const NamedMatrix> columns = {}) {
  const Graph& graph = sheaf.graph();
  const Index m = graph.edge_count(), arc_count = graph.arc_count();
  detail::add_base(writer, Family::name, Family::stalk_dimension, graph);
  std::vector<Scalar> maps, weights;
  if constexpr (Family::map_size > 0) {
    for (Index a = 0; a < arc_count; ++a) {
      const auto& map = sheaf.map(a);
      for (Index i = 0; i < map.rows(); ++i) {
        for (Index j = 0; j < map.cols(); ++j) maps.push_back(map(i, j));
      }
    }
  }
  for (Index e = 0; e < m; ++e) weights.push_back(sheaf.edge_weight(e));
  if constexpr (Family::map_size > 0 && sheaf::is_dense_block<typename Family::template Map<Scalar>>) {
    writer.add<Scalar>("maps", {arc_count, sheaf::edge_stalk_dimension<Family>, Family::stalk_dimension}, maps);
  } else {
    writer.add<Scalar>("maps", {arc_count, Family::map_size}, maps);
  }
  writer.add<Scalar>("edge_weights", {m}, weights);
  for (const NamedMatrix& matrix : columns) {
    require(matrix.columns >= 1 && static_cast<Index>(matrix.values.size()) == arc_count * matrix.columns,
            sheafnn::detail::concat("values of ", matrix.name), matrix.values.size(),
            sheafnn::detail::concat("expected ", matrix.columns, " for each of ", arc_count, " arcs"));
    if (matrix.columns == 1) {
      writer.add<double>(matrix.name, {arc_count}, matrix.values);
    } else {
      writer.add<double>(matrix.name, {arc_count, matrix.columns}, matrix.values);
    }
  }
}

/// Writes a sheaf: to a temporary file first, which then takes the place of `path`.
///
/// \throws std::invalid_argument  as add_sheaf()
/// \throws std::runtime_error     the file cannot be written; an old one is left as it was
template <RestrictionMapFamily Family, class Scalar>
void write_sheaf(const std::filesystem::path& path, const CellularSheaf<Family, Scalar>& sheaf,
                 std::span<const NamedMatrix> columns = {}) {
  NpzWriter writer;
  add_sheaf(writer, sheaf, columns);
  writer.write(path);
}

/// As above, for a posterior: its mean as the sheaf, and its spread.
template <RestrictionMapFamily Family, class Scalar>
void write_sheaf(const std::filesystem::path& path, const CellularSheaf<Family, Scalar>& mean,
                 const PosteriorParameters& posterior) {
  write_sheaf(path, mean, std::span<const NamedMatrix>(posterior.spread));
}

}  // namespace sheafnn::io
