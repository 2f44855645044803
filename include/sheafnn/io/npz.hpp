/// \file
/// Datasets in one .npz file, with the keys under which the usual heterophilic benchmark graphs are published.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/graph/dataset.hpp"
#include "sheafnn/graph/labels.hpp"
#include "sheafnn/io/masks.hpp"
#include "sheafnn/io/npz_archive.hpp"
#include "sheafnn/io/npz_keys.hpp"
#include "sheafnn/io/npz_targets.hpp"
#include "sheafnn/io/npz_types.hpp"

namespace sheafnn::io {

namespace detail {

/// n × p features, dense in the file, sparse in memory; NaN is a missing value.
[[nodiscard]] inline NodeFeatures read_features(const NpyArray& array) {
  const std::vector<Index>& shape = array.shape();
  if (shape.size() != 2) fail(array.where(), "has shape ", array.shape_text(), "; expected nodes x features");
  if (shape[0] == 0) fail(array.where(), "has shape ", array.shape_text(), "; the graph is empty");
  if (shape[1] == 0) fail(array.where(), "has shape ", array.shape_text(), "; at least one feature is needed");
  constexpr Index most = 2147483647;
  if (shape[0] > most || shape[1] > most) {
    fail(array.where(), "has shape ", array.shape_text(), "; at most ", most, " nodes and features are supported");
  }
  return naming_file(array.where(), [&] {
    constexpr MissingValues nan = MissingValues::mark;
    return array.fits_float() ? NodeFeatures::from_dense(array.values<float>(), shape[0], shape[1], nan)
                              : NodeFeatures::from_dense(array.values<double>(), shape[0], shape[1], nan);
  });
}

/// Edges of shape m × 2, or 2 × m where m ≠ 2; two edges the other way round if `ends_first`.
[[nodiscard]] inline std::vector<Edge> read_pairs(const NpyArray& array, Index n, bool ends_first = false) {
  const std::vector<Index>& shape = array.shape();
  const bool two_rows = shape.size() == 2 && shape[0] == 2;
  const bool by_edge = shape.size() == 2 && shape[1] == 2 && !(two_rows && ends_first);
  const bool by_end = !by_edge && two_rows;
  if (!by_edge && !by_end) fail(array.where(), "has shape ", array.shape_text(), "; expected edges x 2");
  const std::vector<std::int64_t> values = array.numbers();
  const std::size_t m = values.size() / 2;
  std::vector<Edge> edges(m);
  for (std::size_t e = 0; e < m; ++e) {
    std::int32_t ends[2];
    for (std::size_t k = 0; k < 2; ++k) {
      const std::int64_t node = values[by_edge ? 2 * e + k : k * m + e];
      if (node < 0 || node >= n) {
        fail(array.where(), "edge ", e, " has end ", node, "; node numbers must be between 0 and ", n - 1);
      }
      ends[k] = static_cast<std::int32_t>(node);
    }
    edges[e] = {ends[0], ends[1]};
  }
  return edges;
}
/// The graph of the edges of read_pairs().
[[nodiscard]] inline Graph graph_of_pairs(const NpyArray& array, Index n, std::span<const Edge> edges) {
  Graph graph(n, edges);
  if (graph.edge_count() == 0) fail(array.where(), "the graph has no edge between different nodes");
  return graph;
}
[[nodiscard]] inline Graph read_edges(const NpyArray& array, Index n) {
  return graph_of_pairs(array, n, read_pairs(array, n));
}

/// A sparse matrix in compressed rows under three keys, …data, …indices and …indptr.
struct NpzRows {
  std::vector<Index> offsets;
  std::vector<std::int64_t> columns;
  std::vector<double> values;
  Index column_count = 0;

  /// \param key  the key of the values
  /// \throws std::runtime_error  a key is missing, or the arrays do not fit together
  NpzRows(const NpzArchive& archive, const std::string& key) {
    constexpr std::string_view data = "data";
    const std::string stem = key.substr(0, key.size() - data.size()), plain = plain_word(key);
    const auto part = [&](const char* name) {
      const std::string spelling = plain.substr(0, plain.size() - data.size()) + name;
      const std::string_view spellings[] = {spelling};
      std::string found = find_key(archive, spellings);
      return found.empty() ? stem + name : found;
    };
    values = archive.array(key).values<double>();
    const NpyArray starts = archive.array(part("indptr"));
    const std::vector<std::int64_t> read = starts.numbers();
    offsets.assign(read.begin(), read.end());
    const NpyArray numbers = archive.array(part("indices"));
    columns = numbers.numbers();
    const std::size_t stored = values.size();
    if (columns.size() != stored || offsets.empty() || offsets.front() != 0 ||
        offsets.back() != static_cast<Index>(stored) || !std::is_sorted(offsets.begin(), offsets.end())) {
      fail(starts.where(), "does not fit the ", stored, " values and ", columns.size(),
           " column numbers; it must ", "increase from 0 to their number");
    }
    constexpr Index most = 2147483647;
    const Index rows = static_cast<Index>(offsets.size()) - 1;
    if (rows > most) fail(starts.where(), "has ", rows, " rows; at most ", most, " are supported");
    Index limit = most;
    const std::string shape_key = part("shape");
    const bool shaped = archive.contains(shape_key);
    if (shaped) {
      const NpyArray array = archive.array(shape_key);
      const std::vector<std::int64_t> shape = array.numbers();
      if (shape.size() != 2 || shape[0] != rows || shape[1] < 0 || shape[1] > most) {
        fail(array.where(), "must be the ", rows, " rows of ", printable(part("indptr")),
             " and the number of columns, at most ", most);
      }
      limit = shape[1];
    }
    for (std::size_t k = 0; k < stored; ++k) {
      if (columns[k] < 0 || columns[k] >= limit) {
        fail(numbers.where(), "holds column ", columns[k], " at ", k,
             "; columns are numbered from 0, and there are ", shaped ? "" : "at most ", limit);
      }
      column_count = std::max(column_count, columns[k] + 1);
    }
    if (shaped) column_count = limit;
  }
};

[[nodiscard]] inline NodeFeatures read_sparse_features(const NpzArchive& archive, const std::string& key) {
  const NpzRows rows(archive, key);
  std::vector<Index> offsets = {0};
  std::vector<std::int32_t> columns;
  std::vector<double> values;
  std::vector<std::pair<std::int64_t, double>> row;
  for (std::size_t u = 0; u + 1 < rows.offsets.size(); ++u) {
    row.clear();
    for (Index k = rows.offsets[u]; k < rows.offsets[u + 1]; ++k) {
      const std::size_t i = static_cast<std::size_t>(k);
      if (rows.values[i] != 0) row.emplace_back(rows.columns[i], rows.values[i]);
    }
    std::sort(row.begin(), row.end(), [](const auto& a, const auto& b) { return a.first < b.first; });  // NaN
    for (const auto& [column, value] : row) {
      columns.push_back(static_cast<std::int32_t>(column));
      values.push_back(value);
    }
    offsets.push_back(static_cast<Index>(values.size()));
  }
  if (offsets.size() == 1 || rows.column_count == 0) fail(archive.file(), printable(key), " holds no features");
  return naming_file(sheafnn::detail::concat(archive.file(), ": ", printable(key)), [&] {
    return NodeFeatures::from_csr(std::move(offsets), std::move(columns), std::move(values), rows.column_count,
                                  MissingValues::mark);
  });
}

/// Whether an array under a key of adjacency matrices is a list of edges instead, m × 2 or 2 × m node numbers. It is no
/// matrix of n rows or columns of 0 and 1, and not 2 × 2.
[[nodiscard]] inline bool holds_edges(const NpyArray& array, Index n) {
  const std::vector<Index>& shape = array.shape();
  if (shape.size() != 2 || shape[0] == shape[1] || (shape[0] != 2 && shape[1] != 2)) return false;
  const std::vector<double> values = array.values<double>();
  const bool numbers = std::all_of(values.begin(), values.end(), [n](double value) {
    return value >= 0 && value < static_cast<double>(n) && value == std::floor(value);
  });
  const bool other = std::any_of(values.begin(), values.end(), [](double value) { return value > 1; });
  return numbers && (other || (shape[0] != n && shape[1] != n));
}

/// Graph from an adjacency matrix: an edge wherever it is not zero.
///
/// \param dense  the array of the key, n × n; null: it begins the three parts of a sparse matrix
[[nodiscard]] inline Graph read_adjacency(const NpzArchive& archive, const std::string& key, const NpyArray* dense,
                                          Index n) {
  std::vector<Edge> entries;
  double weight = 0;
  const auto add = [&](Index u, std::int64_t v, double value) {
    if (value == 0) return;
    if (weight == 0) weight = value;
    if (value != weight) {  // also where one is NaN
      fail(archive.file(), printable(key), " has entries ", weight, " and ", value,
           "; edges have no weights here: save the value 1");
    }
    entries.push_back({static_cast<std::int32_t>(u), static_cast<std::int32_t>(v)});
  };
  const auto check_size = [&](Index rows, Index columns) {
    if (rows == n && (dense == nullptr ? columns <= n : columns == n)) return;
    fail(archive.file(), printable(key), " is a matrix of ", rows, " x ", columns, "; the graph has ", n,
         " nodes");
  };
  if (dense == nullptr) {
    const NpzRows rows(archive, key);
    check_size(static_cast<Index>(rows.offsets.size()) - 1, rows.column_count);
    for (Index u = 0; u < n; ++u) {
      for (Index k = rows.offsets[static_cast<std::size_t>(u)]; k < rows.offsets[static_cast<std::size_t>(u) + 1];
           ++k) {
        add(u, rows.columns[static_cast<std::size_t>(k)], rows.values[static_cast<std::size_t>(k)]);
      }
    }
  } else {
    if (dense->shape().size() != 2)
      fail(dense->where(), "has shape ", dense->shape_text(), "; expected nodes x nodes");
    check_size(dense->shape()[0], dense->shape()[1]);
    const std::vector<double> values = dense->values<double>();
    for (std::size_t i = 0; i < values.size(); ++i) {
      add(static_cast<Index>(i) / n, static_cast<Index>(i) % n, values[i]);
    }
  }
  Graph graph = graph_of_entries(n, std::move(entries));
  if (graph.edge_count() == 0) {
    fail(archive.file(), printable(key), ": the graph has no edge between different nodes");
  }
  return graph;
}

/// How many entries of a matrix are not zero that a graph was built from.
[[nodiscard]] inline Index listed_entries(const Graph& graph) {
  Index r = graph.dropped_self_loops();
  for (Index a = 0; a < graph.arc_count(); ++a) r += graph.listed(a) ? 1 : 0;
  return r;
}

/// Refuses weights and other attributes of edges, unless all edges have the same value. All numbers are equal, or all rows
/// if each edge has a row.
///
/// \param list  of the edges; null: a matrix lists them
/// \param read  key of numbers or labels that are read; or empty
inline void check_edge_attributes(const NpzArchive& archive, const Graph& graph, const NpyArray* list,
                                  const std::string& read) {
  const std::string key = find_key(archive, edge_attribute_keys);
  if (key.empty() || key == read) return;
  const NpyArray array = archive.array(key);
  const std::vector<double> values = array.values<double>();
  const Index listed = list != nullptr ? list->size() / 2 : listed_entries(graph);
  const bool by_edge = array.shape().size() > 1 && array.shape()[0] == listed && listed > 0;
  const std::size_t width = by_edge ? values.size() / static_cast<std::size_t>(listed) : 1;
  bool same = true;
  for (std::size_t i = 0; i < values.size(); ++i) same = same && values[i] == values[i % width];
  if (same) return;
  fail(array.where(), "differs from edge to edge; edges have no weights or other attributes here: remove the key");
}

/// The key of a part of a dataset, or its first name where it is missing, for a message.
[[nodiscard]] inline std::string key_or(const NpzArchive& archive, std::span<const std::string_view> spellings,
                                        const char* usual) {
  std::string key = find_key(archive, spellings);
  return key.empty() ? usual : key;
}

/// The graph of an archive of n nodes.
///
/// \param rules    what to read of the edges
/// \param columns  what was read
[[nodiscard]] inline Graph read_graph(const NpzArchive& archive, Index n, const EdgeColumnRules& rules,
                                      EdgeColumns& columns) {
  const std::string edges = key_or(archive, edge_keys, "edges"), plain = plain_word(edges);
  std::optional<NpyArray> array;
  if (!plain.ends_with("data")) array = archive.array(edges);
  const NpyArray* const dense = array ? &*array : nullptr;
  const bool matrix = dense == nullptr || (plain.starts_with("adj") && !holds_edges(*dense, n));
  std::vector<Edge> pairs;
  if (!matrix) pairs = read_pairs(*dense, n, plain == "edgeindex");
  Graph graph = matrix ? read_adjacency(archive, edges, dense, n) : graph_of_pairs(*dense, n, pairs);
  const std::vector<Edge>* const list = matrix ? nullptr : &pairs;
  check_edge_attributes(archive, graph, matrix ? nullptr : dense, rules.values());
  read_edge_types(archive, graph, list, rules, columns.type_names);
  read_edge_values(archive, graph, list, rules, columns);
  return graph;
}

/// Builds a dataset from an open archive.
///
/// \param read_graph  read_graph(archive, n): its graph of n nodes
/// \param targets     keys of the numbers to learn in place of labels; empty: labels
template <class GraphType, class ReadGraph>
[[nodiscard]] NodeDataset<GraphType> read_tables(const NpzArchive& archive, std::string name, DatasetUse use,
                                                 const MissingLabels& missing, const ReadGraph& read_graph,
                                                 std::span<const std::string> targets = {}) {
  NodeDataset<GraphType> r = naming_file(archive.file(), [&] {
    NodeDataset<GraphType> data;
    const std::string features = key_or(archive, feature_keys, "node_features");
    data.features = plain_word(features).ends_with("data") ? read_sparse_features(archive, features)
                                                           : read_features(archive.array(features));
    const Index n = data.features.rows();
    take_targets(data, archive, targets, use);
    const std::string labels = targets.empty() ? key_or(archive, label_keys, "node_labels") : "";
    if (targets.empty() && (use != DatasetUse::prediction || archive.contains(labels))) {
      const std::string where = sheafnn::detail::concat(archive.file(), ": ", printable(labels));
      const auto place = [&](std::size_t u) { return sheafnn::detail::concat(where, "[", u, "]"); };
      take_labels(data,
                  read_label_texts(entry_texts(archive, labels, n, "label", "nodes"), missing, where, place));
    }
    data.graph = read_graph(archive, n);
    if (use == DatasetUse::prediction) return data;
    if (use == DatasetUse::training) data.splits = read_splits(archive, n);
    validate(data);
    return data;
  });
  r.name = std::move(name);
  return r;
}
/// The same for a graph; see load_npz.
[[nodiscard]] inline Dataset read_dataset(const NpzArchive& archive, std::string name,
                                          DatasetUse use = DatasetUse::training, const MissingLabels& missing = {},
                                          std::span<const std::string> targets = {}, ReadTypes types = {}) {
  const EdgeColumnRules rules{types.edges, types.edge_labels, types.edge_target, missing};
  EdgeColumns edges;
  std::vector<std::string> node_types;
  const auto read = [&](const NpzArchive& from, Index n) {
    Graph graph = read_graph(from, n, rules, edges);
    if (types.nodes) read_node_types(from, graph, node_types);
    return graph;
  };
  Dataset r = read_tables<Graph>(archive, std::move(name), use, missing, read, targets);
  take_edge_columns(r, std::move(edges));
  r.node_type_names = std::move(node_types);
  return r;
}

}  // namespace detail

/// Loads a node classification task from an .npz file. Arrays may be of any bool, integer or floating-point type,
/// in C or Fortran order, stored or deflated:
///
/// | key                                 | shape                                                              |
/// | ----------------------------------- | ------------------------------------------------------------------ |
/// | node_features                       | n × p, finite                                                      |
/// | node_labels                         | n, n × 1 or 1 × n; numbers or texts: encode_labels()               |
/// | edges                               | m × 2, or 2 × m where m ≠ 2; node numbers 0 … n − 1                |
/// | train_masks, val_masks, test_masks  | S × n, n × S where n ≠ S, or n; 0 and 1; disjoint                  |
/// | edge_types, node_types              | m, n; numbers or texts; read where `types` says so                 |
///
/// Other common spellings, sparse matrices and node numbers in place of masks are read as well: docs/data.md. Classes
/// that are not 0, 1, … have names. Edges may repeat and come in either direction; self-loops are left out. A file
/// without any mask has no splits. Every split needs training nodes; val_masks and test_masks may be missing or select
/// no nodes; the split then has no such nodes. A key that has to do with splits and is not known is refused.
///
/// \param use      for prediction, labels may be missing; masks are read for training only
/// \param missing  the texts that are unknown labels
/// \param targets  keys of arrays (n, or n × k) of numbers to learn in place of labels: Dataset::targets. Labels are not read
///                 then. Column c of an array Y of several columns is called Y_c, and may be given by that name. For
///                 prediction the arrays may be missing
/// \param types    which types to read, and which labels or targets of the listed edges: arrays of m, NaN or an empty text where
///                 unknown. Types of edges that differ and are not read are refused
/// \throws std::runtime_error  one line that names the file, the key, the index, the value and the limit
[[nodiscard]] inline Dataset load_npz(const std::filesystem::path& path, DatasetUse use = DatasetUse::training,
                                      const MissingLabels& missing = {}, std::span<const std::string> targets = {},
                                      ReadTypes types = {}) {
  return detail::read_dataset(NpzArchive(path), path.stem().string(), use, missing, targets, types);
}

}  // namespace sheafnn::io
