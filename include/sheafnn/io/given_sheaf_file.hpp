/// \file
/// Reads the maps of a given sheaf from an .npz file, such as io::write_sheaf() writes:
///
/// | key          | shape                                  | what                                                            |
/// | ------------ | -------------------------------------- | --------------------------------------------------------------- |
/// | maps         | 2m × D × D, or 2m × D (diagonal)       | one map per arc, arcs sorted by source and target               |
/// | edge_weights | m, optional                            | w_e of orthogonal maps                                          |
/// | edge_labels  | m, optional                            | label of each edge, edges sorted                                |
/// | table        | T × 2 × D × D, or T × 2 × D, optional  | in place of maps: for each label the maps at the smaller and the larger endpoint. Without edge_labels, for each type of edges |
/// | types        | T texts, optional                      | names of the types that the table's rows belong to; without it, the graph's T types in their order |
/// | signs        | m, optional                            | in place of maps, with D = 1: 1 or −1 at the larger endpoint; labels 0 and 1 |
/// | edges        | m × 2, optional                        | ends u < v; checked against the graph                           |
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "sheafnn/core/errors.hpp"
#include "sheafnn/graph/given_map_arrays.hpp"
#include "sheafnn/graph/graph.hpp"
#include "sheafnn/io/file.hpp"
#include "sheafnn/io/npz_archive.hpp"
#include "sheafnn/io/npz_types.hpp"

namespace sheafnn::io {

namespace detail {

/// The row of a table for each type of the graph's edges.
///
/// \param rows   of the table
/// \param names  of the graph's types, or empty
/// \throws std::runtime_error  a graph without types, a type that no row is of, or without `types` another number of types
[[nodiscard]] inline std::vector<std::int32_t> rows_of_types(const NpzArchive& archive, Index rows,
                                                             const Graph& graph,
                                                             std::span<const std::string> names) {
  const Index count = graph.edge_type_count();
  if (count == 0) fail(archive.file(), "table: needs edge_labels, or a graph whose edges have types");
  std::vector<std::int32_t> r(static_cast<std::size_t>(count));
  if (!archive.contains("types")) {
    if (rows != count) {
      fail(archive.file(), "table: has ", rows, " rows, and the graph's edges have ", count,
           " types; the key types names the type of each row");
    }
    std::iota(r.begin(), r.end(), 0);
    return r;
  }
  const std::vector<std::string> known = entry_texts(archive, "types", rows, "type", "rows of the table");
  if (static_cast<Index>(names.size()) != count) fail(archive.file(), "types: the graph's types have no names");
  for (std::size_t type = 0; type < names.size(); ++type) {
    const auto found = std::find(known.begin(), known.end(), names[type]);
    if (found == known.end())
      fail(archive.file(), "types: the graph's edges have a type '", printable(names[type]),
           "', and no row is of it");
    r[type] = static_cast<std::int32_t>(found - known.begin());
  }
  return r;
}

}  // namespace detail

/// Do the types of a graph's edges select the maps of this file? \throws std::runtime_error  it cannot be read
[[nodiscard]] inline bool reads_edge_types(const std::filesystem::path& path) {
  const NpzArchive archive(path);
  return archive.contains("table") && !archive.contains("edge_labels");
}

/// \param graph       that the sheaf is over
/// \param type_names  of the types of its edges (Dataset::edge_type_names), or empty
/// \throws std::runtime_error  naming file and key: it cannot be read, there are neither maps nor a table, or sizes or types that
///                             do not fit the graph
[[nodiscard]] inline GivenMapArrays read_given_sheaf(const std::filesystem::path& path, const Graph& graph,
                                                     std::span<const std::string> type_names = {}) {
  const NpzArchive archive(path);
  const Index m = graph.edge_count();
  const auto fail = [&](const std::string& key, const std::string& why) {
    detail::fail(path.string(), key, ": ", why);
  };
  const auto rows_of = [&](const std::string& key, Index rows, const char* what) {
    NpyArray array = archive.array(key);
    if (array.shape().empty() || array.shape()[0] != rows) {
      fail(key, sheafnn::detail::concat("expected a row for each of ", rows, " ", what, " of the graph"));
    }
    return array;
  };
  if (archive.contains("edges")) {
    const std::vector<std::int64_t> ends = rows_of("edges", m, "edges").numbers();
    for (Index e = 0; e < m; ++e) {
      const std::size_t i = static_cast<std::size_t>(e);
      if (ends.size() != static_cast<std::size_t>(2 * m) || ends[2 * i] != graph.edge(e).u ||
          ends[2 * i + 1] != graph.edge(e).v) {
        fail("edges", sheafnn::detail::concat("edge ", e, " is not the graph's, ", graph.edge(e).u, " – ",
                                              graph.edge(e).v));
      }
    }
  }
  GivenMapArrays r;
  if (archive.contains("edge_labels")) {
    detail::naming_file(path.string(), [&] {
      r.set_edge_labels(rows_of("edge_labels", m, "edges").template values<std::int64_t>());
    });
  }
  if (archive.contains("table")) {
    const NpyArray table = archive.array("table");
    const std::vector<Index>& shape = table.shape();
    if (shape.size() < 3 || shape[0] < 1 || shape[1] != 2 || shape[0] < r.label_count) {
      fail("table", sheafnn::detail::concat("expected at least ", std::max<Index>(1, r.label_count), " x 2 maps"));
    }
    if (r.edge_labels.empty() && m > 0) {
      const std::vector<std::int32_t> rows = detail::rows_of_types(archive, shape[0], graph, type_names);
      for (const std::int32_t type : graph.edge_types()) {
        r.edge_labels.push_back(rows[static_cast<std::size_t>(type)]);
      }
    }
    r.label_count = shape[0];
    const std::vector<double> values = table.values<double>();
    detail::naming_file(path.string(), [&] {
      r.maps = labelled_maps(graph, r.edge_labels, values, static_cast<Index>(values.size()) / (2 * shape[0]));
    });
  } else if (archive.contains("signs")) {
    const std::vector<double> signs = rows_of("signs", m, "edges").template values<double>();
    detail::naming_file(path.string(), [&] {
      std::vector<std::int32_t> labels = sign_labels(graph, signs);
      r.maps = labelled_maps(graph, labels, sign_table, 1);
      if (!r.edge_labels.empty()) return;
      r.edge_labels = std::move(labels);
      r.label_count = 2;
    });
  } else if (archive.contains("maps")) {
    r.maps = rows_of("maps", graph.arc_count(), "arcs").template values<double>();
  } else {
    fail("maps", "is missing, and there are no signs and no table");
  }
  if (archive.contains("edge_weights")) {
    r.edge_weights = rows_of("edge_weights", m, "edges").template values<double>();
    if (std::all_of(r.edge_weights.begin(), r.edge_weights.end(), [](double w) { return w == 1; }))
      r.edge_weights.clear();
  }
  return r;
}

}  // namespace sheafnn::io
