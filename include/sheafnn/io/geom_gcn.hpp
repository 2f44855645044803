/// \file
/// Datasets in the raw form that Geom-GCN (Pei et al., ICLR 2020) published: a folder of text files and splits.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/graph/dataset.hpp"
#include "sheafnn/io/lines.hpp"
#include "sheafnn/io/masks.hpp"
#include "sheafnn/io/npz.hpp"

namespace sheafnn::io {

/// How the feature field of out1_node_feature_label.txt is to be read.
enum class GeomGcnFeatures {
  /// Dense if all nodes have the same number of values, and the values cannot be a list of indices. That is: all are 0 or 1,
  /// or a value is not a whole number ≥ 0, or a node repeats a value.
  automatic,
  dense,   ///< one value per feature
  indices  ///< the indices of the features that are 1
};

namespace detail {

/// Nodes as the file lists them, put in the order of their indices.
struct GeomGcnNodes {
  std::vector<std::vector<double>> values;
  std::vector<std::string> where;  ///< "FILE:LINE" of every node
  std::vector<std::string> labels;
};

/// Passes the header. A first line of numbers is not a header; skipping it would lose a node or an edge.
inline void skip_header(LineReader& lines, const char* expected) {
  if (!lines.next()) fail(lines.file(), "is empty; expected a header line and one line per ", expected);
  std::int64_t number = 0;
  if (!parse_number(split_fields(lines.line(), '\t').front(), number)) return;
  fail(lines.where(), "'", printable(lines.line()),
       "' is not a header; the names of the columns stand in the first line");
}

[[nodiscard]] inline GeomGcnNodes read_geom_gcn_nodes(const std::filesystem::path& path) {
  struct Row {
    std::int64_t id = 0;
    std::string label;
    std::vector<double> values;
    std::string where;
  };
  LineReader lines(path);
  skip_header(lines, "node");
  std::vector<Row> rows;
  while (lines.next()) {
    Row row;
    row.where = lines.where();
    const std::vector<std::string_view> fields = split_fields(lines.line(), '\t');
    if (fields.size() != 3) {
      fail(row.where, "has ", fields.size(), " tab-separated fields; expected node, features and label");
    }
    if (!parse_number(fields[0], row.id)) fail(row.where, "'", printable(fields[0]), "' is not a node number");
    row.label = fields[2];
    if (!sheafnn::detail::is_utf8(row.label))
      fail(row.where, "label '", printable(row.label), "' is not UTF-8 text; save the file in that encoding");
    if (!fields[1].empty()) {
      for (const std::string_view text : split_fields(fields[1], ',')) {
        double value = 0;
        if (!parse_number(text, value) || !std::isfinite(value)) {
          fail(row.where, "feature ", row.values.size(), " is '", printable(text),
               "'; it must be a finite number");
        }
        row.values.push_back(value);
      }
    }
    rows.push_back(std::move(row));
  }
  if (rows.empty()) fail(lines.file(), "lists no node; the graph is empty");
  const Index n = static_cast<Index>(rows.size());
  GeomGcnNodes nodes;
  nodes.values.resize(rows.size());
  nodes.where.resize(rows.size());
  nodes.labels.resize(rows.size());
  for (Row& row : rows) {
    if (row.id < 0 || row.id >= n) {
      fail(row.where, "node ", row.id, " is not allowed; the ", n, " nodes are numbered 0 to ", n - 1);
    }
    const std::size_t u = static_cast<std::size_t>(row.id);
    if (!nodes.where[u].empty()) fail(row.where, "node ", row.id, " was already listed at ", nodes.where[u]);
    nodes.values[u] = std::move(row.values);
    nodes.where[u] = std::move(row.where);
    nodes.labels[u] = std::move(row.label);
  }
  return nodes;
}

/// The rule of GeomGcnFeatures::automatic.
[[nodiscard]] inline bool looks_dense(const GeomGcnNodes& nodes) {
  bool binary = true;
  bool whole = true;
  bool repeated = false;
  std::vector<double> sorted;
  for (const std::vector<double>& row : nodes.values) {
    if (row.size() != nodes.values.front().size()) return false;
    for (const double value : row) {
      binary = binary && (value == 0 || value == 1);
      whole = whole && value >= 0 && std::trunc(value) == value;
    }
    sorted = row;
    std::sort(sorted.begin(), sorted.end());
    repeated = repeated || std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end();
  }
  return binary || !whole || repeated;
}

[[nodiscard]] inline NodeFeatures geom_gcn_features(const GeomGcnNodes& nodes, GeomGcnFeatures form) {
  constexpr double largest_index = 9999999;
  const bool dense = form == GeomGcnFeatures::dense || (form == GeomGcnFeatures::automatic && looks_dense(nodes));
  std::vector<Index> offsets = {0};
  std::vector<std::int32_t> columns;
  std::vector<double> values;
  Index column_count = dense ? static_cast<Index>(nodes.values.front().size()) : 0;
  for (std::size_t u = 0; u < nodes.values.size(); ++u) {
    const std::vector<double>& row = nodes.values[u];
    if (dense) {
      if (static_cast<Index>(row.size()) != column_count) {
        fail(nodes.where[u], "node ", u, " has ", row.size(), " features; node 0 has ", column_count);
      }
      for (std::size_t j = 0; j < row.size(); ++j) {
        if (row[j] == 0) continue;
        columns.push_back(static_cast<std::int32_t>(j));
        values.push_back(row[j]);
      }
    } else {
      std::vector<std::int32_t> active;
      for (const double value : row) {
        if (!(value >= 0 && value <= largest_index && std::trunc(value) == value)) {
          fail(nodes.where[u], "feature index ", value,
               " is not allowed; features that are not dense (one value per ",
               "feature for every node) are indices from 0 to ", static_cast<Index>(largest_index));
        }
        active.push_back(static_cast<std::int32_t>(value));
        column_count = std::max(column_count, Index{active.back()} + 1);
      }
      std::sort(active.begin(), active.end());
      active.erase(std::unique(active.begin(), active.end()), active.end());
      columns.insert(columns.end(), active.begin(), active.end());
      values.resize(columns.size(), 1.0);
    }
    offsets.push_back(static_cast<Index>(values.size()));
  }
  return NodeFeatures::from_csr(std::move(offsets), std::move(columns), std::move(values), column_count);
}

[[nodiscard]] inline Graph read_geom_gcn_edges(const std::filesystem::path& path, Index n) {
  LineReader lines(path);
  skip_header(lines, "edge");
  std::vector<Edge> edges;
  while (lines.next()) {
    const std::vector<std::string_view> fields = split_fields(lines.line(), '\t');
    if (fields.size() != 2) {
      fail(lines.where(), "has ", fields.size(), " tab-separated fields; expected two nodes");
    }
    std::int32_t ends[2];
    for (std::size_t k = 0; k < 2; ++k) {
      std::int64_t node = 0;
      if (!parse_number(fields[k], node)) fail(lines.where(), "'", printable(fields[k]), "' is not a node number");
      if (node < 0 || node >= n) {
        fail(lines.where(), "node ", node, " is not allowed; node numbers must be between 0 and ", n - 1);
      }
      ends[k] = static_cast<std::int32_t>(node);
    }
    edges.push_back({ends[0], ends[1]});
  }
  Graph graph(n, edges);
  if (graph.edge_count() == 0) fail(lines.file(), "the graph has no edge between different nodes");
  return graph;
}

/// The files NAME_split_…_K.npz of a folder by their number K; there may be no such file.
[[nodiscard]] inline std::map<std::int64_t, std::filesystem::path> list_geom_gcn_splits(
    const std::filesystem::path& folder) {
  std::map<std::int64_t, std::filesystem::path> found;
  for (const std::filesystem::path& path : list_folder(folder)) {
    const std::string name = path.stem().string();
    if (path.extension() != ".npz" || name.find("_split_") == std::string::npos) continue;
    std::int64_t number = 0;
    if (!parse_number(std::string_view(name).substr(name.rfind('_') + 1), number)) {
      fail(path.string(), "the name of a split must end in its number, as in film_split_0.6_0.2_0.npz");
    }
    const auto [position, inserted] = found.emplace(number, path);
    if (!inserted) {
      const std::string other = position->second.filename().string();
      fail(folder.string(), "split ", number, " appears twice: ", std::min(other, path.filename().string()),
           " and ", std::max(other, path.filename().string()));
    }
  }
  return found;
}

}  // namespace detail

/// Whether a folder has one of the two text files of a Geom-GCN folder. Takes any path.
[[nodiscard]] inline bool is_geom_gcn_folder(const std::filesystem::path& folder) {
  std::error_code error;
  return std::filesystem::exists(folder / "out1_graph_edges.txt", error) ||
         std::filesystem::exists(folder / "out1_node_feature_label.txt", error);
}

/// Loads a Geom-GCN folder:
///
/// - out1_graph_edges.txt: a header line, then two node numbers per line, separated by a tab;
/// - out1_node_feature_label.txt: a header line, then node number, features and label, separated by tabs. The
///   features are separated by commas. They are dense, or the indices of those that are 1 (then p is one more than
///   the largest index). Labels are as encode_labels() has them.
/// - *_split_*_K.npz: masks train_mask, val_mask and test_mask (n) of split K; taken in the order of K. The last two
///   may select no node or be missing. A folder without such files has no splits.
///
/// \param folder   its name becomes the dataset's name
/// \param form     how to read the features
/// \param use      splits are read for training only
/// \param missing  the texts that are unknown labels
/// \throws std::runtime_error  one line that names the file, the line or key, the value and the limit
[[nodiscard]] inline Dataset load_geom_gcn(const std::filesystem::path& folder,
                                           GeomGcnFeatures form = GeomGcnFeatures::automatic,
                                           DatasetUse use = DatasetUse::training,
                                           const MissingLabels& missing = {}) {
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error)) detail::fail_to_open(folder, "no such folder");
  Dataset r = detail::naming_file(folder.string(), [&] {
    Dataset data;
    const std::filesystem::path node_file = folder / "out1_node_feature_label.txt";
    const detail::GeomGcnNodes nodes = detail::read_geom_gcn_nodes(node_file);
    const Index n = static_cast<Index>(nodes.labels.size());
    data.features = detail::geom_gcn_features(nodes, form);
    const auto place = [&](std::size_t u) -> const std::string& { return nodes.where[u]; };
    detail::take_labels(data,
                        detail::read_label_texts(nodes.labels, missing, node_file.string() + ": labels", place));
    data.graph = detail::read_geom_gcn_edges(folder / "out1_graph_edges.txt", n);
    if (use == DatasetUse::prediction) return data;
    if (use == DatasetUse::training) {
      for (const auto& [number, path] : detail::list_geom_gcn_splits(folder)) {
        std::vector<Split> splits = detail::read_splits(NpzArchive(path), n);
        if (splits.empty()) detail::fail(path.string(), "key 'train_mask' is missing");
        for (Split& split : splits) data.splits.push_back(std::move(split));
      }
    }
    validate(data);
    return data;
  });
  r.name = folder_name(folder);
  return r;
}

}  // namespace sheafnn::io
