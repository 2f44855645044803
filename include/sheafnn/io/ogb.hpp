/// \file
/// Node classification tasks in the raw form that the Open Graph Benchmark (Hu et al., NeurIPS 2020) publishes. A folder has
/// compressed tables, as ogbn-arxiv and ogbn-products, or .npz files. Graphs have fewer than 2³⁰ edges.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/graph/dataset.hpp"
#include "sheafnn/io/file.hpp"
#include "sheafnn/io/gzip.hpp"
#include "sheafnn/io/lines.hpp"
#include "sheafnn/io/masks.hpp"
#include "sheafnn/io/npz_archive.hpp"

namespace sheafnn::io {

namespace detail {

/// A table NAME.csv.gz, or NAME.csv, without a header. It is read in pieces.
class OgbTable {
 public:
  explicit OgbTable(const std::filesystem::path& name)
      : path_(file_of(name)), lines_(path_.string(), [file = std::make_shared<GzipReader>(path_)](Bytes& to) {
          return file->append(to);
        }) {}
  [[nodiscard]] static bool exists(const std::filesystem::path& name) {
    std::error_code error;
    return std::filesystem::exists(file_of(name), error);
  }

  /// Moves to the next line; false at the end. \throws std::runtime_error  it does not have `columns` fields
  [[nodiscard]] bool next(Index columns) {
    if (!lines_.next()) return false;
    fields_ = split_fields(lines_.line(), ',');
    if (static_cast<Index>(fields_.size()) == columns) return true;
    fail(lines_.where(), "has ", fields_.size(), " fields; expected ", columns);
  }
  /// Fields of the first line, at which the table then is; 0 of an empty one.
  [[nodiscard]] Index first() {
    if (!lines_.next()) return 0;
    fields_ = split_fields(lines_.line(), ',');
    return static_cast<Index>(fields_.size());
  }
  [[nodiscard]] const std::vector<std::string_view>& fields() const noexcept { return fields_; }
  [[nodiscard]] const std::string& file() const noexcept { return lines_.file(); }
  [[nodiscard]] std::string where() const { return lines_.where(); }
  /// Field k as a node number. \throws std::runtime_error  it is none, or not below n
  [[nodiscard]] std::int32_t node(std::size_t k, Index n) const {
    std::int64_t r = 0;
    if (!parse_number(fields_[k], r)) fail(where(), "'", printable(fields_[k]), "' is not a node number");
    if (r < 0 || r >= n) fail(where(), "node ", r, " is not allowed; node numbers must be between 0 and ", n - 1);
    return static_cast<std::int32_t>(r);
  }

 private:
  [[nodiscard]] static std::filesystem::path file_of(const std::filesystem::path& name) {
    const std::filesystem::path packed = name.string() + ".csv.gz", plain = name.string() + ".csv";
    std::error_code error;
    return std::filesystem::exists(plain, error) && !std::filesystem::exists(packed, error) ? plain : packed;
  }

  std::filesystem::path path_;
  LineReader lines_;
  std::vector<std::string_view> fields_;
};

/// The only value of a table with one value per graph.
[[nodiscard]] inline Index only_number(const std::filesystem::path& name) {
  OgbTable table(name);
  constexpr Index most = std::numeric_limits<std::int32_t>::max();
  if (!table.next(1)) fail(table.file(), "is empty; expected the number of nodes");
  std::int64_t r = 0;
  if (!parse_number(table.fields()[0], r) || r < 1 || r > most) {
    fail(table.where(), "'", printable(table.fields()[0]), "' is no number of nodes, 1 to ", most);
  }
  if (table.next(1))
    fail(table.where(), "there are several graphs; a task on the nodes of one graph is supported");
  return r;
}

[[noreturn]] inline void refuse_edge_features(const std::string& where) {
  fail(where, "features of edges are not read; write edges.csv with them");
}

/// Labels as texts; "nan" is an unknown one.
[[nodiscard]] inline std::string label_text(std::string_view text) {
  return text == "nan" || text == "NaN" ? std::string() : std::string(text);
}

/// Calls row(features, where) for all nodes. \returns p
template <class Row>
Index for_ogb_features(const std::filesystem::path& raw, Index n, const Row& row) {
  OgbTable features(raw / "node-feat");
  const Index count = features.first();
  std::vector<double> values(static_cast<std::size_t>(count));
  Index rows = 0;
  for (bool there = count > 0; there; there = features.next(count), ++rows) {
    for (std::size_t j = 0; j < features.fields().size(); ++j) {
      if (!parse_number(features.fields()[j], values[j]) || !std::isfinite(values[j])) {
        fail(features.where(), "feature ", j, " is '", printable(features.fields()[j]),
             "'; it must be a finite number");
      }
    }
    row(std::span<const double>(values), features);
  }
  if (rows != n) fail(features.file(), "has ", rows, " rows; must be the number of nodes, ", n);
  return count;
}

/// Calls label(text) for all nodes, or for none where there is no table.
template <class Label>
void for_ogb_labels(const std::filesystem::path& raw, Index n, const Label& label) {
  if (!OgbTable::exists(raw / "node-label")) return;
  OgbTable of_nodes(raw / "node-label");
  const Index tasks = of_nodes.first();
  if (tasks != 1) fail(of_nodes.where(), "has ", tasks, " labels; one class for each node is supported");
  Index count = 0;
  do label(label_text(of_nodes.fields()[0])), ++count;
  while (of_nodes.next(1));
  if (count != n) fail(of_nodes.file(), "has ", count, " labels; must be the number of nodes, ", n);
}

inline void read_ogb_tables(const std::filesystem::path& raw, Dataset& data, std::vector<std::string>& labels) {
  const Index n = only_number(raw / "num-node-list");
  std::vector<Edge> edges;
  for (OgbTable table(raw / "edge"); table.next(2);) edges.push_back({table.node(0, n), table.node(1, n)});
  data.graph = Graph(n, edges);
  std::vector<Index> offsets = {0};
  std::vector<std::int32_t> columns;
  std::vector<double> values;
  const Index count = for_ogb_features(raw, n, [&](std::span<const double> row, const OgbTable&) {
    for (std::size_t j = 0; j < row.size(); ++j) {
      if (row[j] == 0) continue;
      columns.push_back(static_cast<std::int32_t>(j));
      values.push_back(row[j]);
    }
    offsets.push_back(static_cast<Index>(values.size()));
  });
  data.features = NodeFeatures::from_csr(std::move(offsets), std::move(columns), std::move(values), count);
  for_ogb_labels(raw, n, [&](std::string text) { labels.push_back(std::move(text)); });
}

/// Refuses an array of data.npz with another shape. \param rows, columns  that it must have; −1: any number
template <class Array>
void check_ogb_shape(const Array& array, Index rows, Index columns) {
  const std::vector<Index>& shape = array.shape();
  const auto differs = [](Index is, Index must) { return must >= 0 && is != must; };
  if (shape.size() == 2 && !differs(shape[0], rows) && !differs(shape[1], columns)) return;
  const auto text = [](Index extent) { return extent < 0 ? std::string("any number") : std::to_string(extent); };
  fail(array.where(), "has shape ", array.shape_text(), "; must be ", text(rows), " x ", text(columns));
}
[[nodiscard]] inline NpyArray ogb_matrix(const NpzArchive& archive, std::string_view key, Index rows,
                                         Index columns) {
  NpyArray r = archive.array(key);
  check_ogb_shape(r, rows, columns);
  return r;
}
/// The number of nodes of an archive.
[[nodiscard]] inline Index ogb_nodes(const NpzArchive& archive) {
  if (archive.contains("edge_feat")) refuse_edge_features(archive.file() + ": edge_feat");
  const NpyArray counts = archive.array("num_nodes_list");
  constexpr Index most = std::numeric_limits<std::int32_t>::max();
  const std::vector<std::int64_t> nodes = counts.numbers();
  if (nodes.size() != 1) fail(counts.where(), "has ", nodes.size(), " graphs; one is supported");
  if (nodes[0] < 1 || nodes[0] > most) fail(counts.where(), nodes[0], " nodes; must be between 1 and ", most);
  return nodes[0];
}
/// An end of an edge, as a node.
[[nodiscard]] inline std::int32_t ogb_end(const std::string& where, Index edge, std::int64_t node, Index n) {
  if (node < 0 || node >= n) {
    fail(where, "edge ", edge, " has node ", node, "; node numbers must be between 0 and ", n - 1);
  }
  return static_cast<std::int32_t>(node);
}
/// A number of node_label as a text.
[[nodiscard]] inline std::string ogb_label(const std::string& where, double label) {
  if (std::isnan(label)) return std::string();
  if (std::trunc(label) != label || std::abs(label) >= 1e9) {
    fail(where, label, " is not a class, a number below 1000000000");
  }
  return std::to_string(static_cast<std::int64_t>(label));
}
/// The file of labels next to data.npz, or none.
[[nodiscard]] inline std::optional<std::filesystem::path> ogb_label_file(const std::filesystem::path& raw) {
  std::error_code error;
  std::filesystem::path r = raw / "node-label.npz";
  return std::filesystem::exists(r, error) ? std::optional(std::move(r)) : std::nullopt;
}

inline void read_ogb_arrays(const std::filesystem::path& raw, Dataset& data, std::vector<std::string>& labels) {
  const NpzArchive archive(raw / "data.npz");
  const Index n = ogb_nodes(archive);
  const NpyArray pairs = ogb_matrix(archive, "edge_index", 2, -1);
  const std::vector<std::int64_t> ends = pairs.numbers();
  std::vector<Edge> edges;
  for (std::size_t i = 0, m = ends.size() / 2; i < m; ++i) {
    const auto end = [&](std::size_t k) { return ogb_end(pairs.where(), static_cast<Index>(i), ends[k], n); };
    edges.push_back({end(i), end(m + i)});
  }
  data.graph = Graph(n, edges);
  const NpyArray features = ogb_matrix(archive, "node_feat", n, -1);
  data.features =
      NodeFeatures::from_dense(std::span<const double>(features.values<double>()), n, features.shape()[1]);
  const auto file = ogb_label_file(raw);
  if (!file) return;
  const NpyArray classes = ogb_matrix(NpzArchive(*file), "node_label", n, 1);
  for (const double label : classes.values<double>()) labels.push_back(ogb_label(classes.where(), label));
}

/// The folders of split/, in the order of their names.
[[nodiscard]] inline std::vector<std::filesystem::path> ogb_split_folders(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> r;
  std::error_code error;
  if (!std::filesystem::is_directory(folder / "split", error)) return r;
  for (const std::filesystem::path& path : list_folder(folder / "split")) {
    if (std::filesystem::is_directory(path, error)) r.push_back(path);
  }
  std::sort(r.begin(), r.end());
  return r;
}
/// The split of one of these folders.
[[nodiscard]] inline Split read_ogb_split(const std::filesystem::path& folder, Index n) {
  const auto read = [&](const char* name) {
    std::vector<std::int32_t> nodes;
    for (OgbTable table(folder / name); table.next(1);) nodes.push_back(table.node(0, n));
    std::sort(nodes.begin(), nodes.end());
    return nodes;
  };
  return {read("train"), read("valid"), read("test")};
}

/// Whether the arrays of a folder are in data.npz. \throws std::runtime_error  features of edges
[[nodiscard]] inline bool has_ogb_arrays(const std::filesystem::path& raw) {
  std::error_code error;
  if (OgbTable::exists(raw / "edge-feat")) refuse_edge_features((raw / "edge-feat.csv.gz").string());
  return std::filesystem::exists(raw / "data.npz", error);
}
/// What messages call all labels.
[[nodiscard]] inline std::string ogb_label_name(const std::filesystem::path& raw, bool arrays) {
  return (raw / (arrays ? "node-label.npz" : "node-label.csv.gz")).string();
}
/// What messages call the label of node u.
[[nodiscard]] inline std::string ogb_label_place(const std::string& name, Index u) {
  return sheafnn::detail::concat(name, ": node ", u);
}

}  // namespace detail

/// Whether a folder has the edges of an OGB folder. Takes any path.
[[nodiscard]] inline bool is_ogb_folder(const std::filesystem::path& folder) {
  std::error_code error;
  return detail::OgbTable::exists(folder / "raw" / "edge") ||
         std::filesystem::exists(folder / "raw" / "data.npz", error);
}

/// Loads the nodes of one graph from an OGB folder:
///
/// - raw/edge.csv.gz (two node numbers per line), node-feat.csv.gz (p values), node-label.csv.gz (one class) and
///   num-node-list.csv.gz (n); or raw/data.npz with edge_index, node_feat and num_nodes_list, and node-label.npz;
/// - split/NAME/train.csv.gz, valid.csv.gz and test.csv.gz (one node number per line): a split for each NAME.
///
/// Files .csv without .gz are read as well. Labels `nan` are unknown. Other files, such as node_year.csv.gz, are not read.
///
/// \param folder   its name becomes the dataset's name
/// \param use      splits are read for training only
/// \param missing  the texts that are unknown labels, besides `nan`
/// \throws std::runtime_error  one line that names the file, the line or key, the value and the limit. Also for features of
///                             edges, several graphs, or several labels for a node
[[nodiscard]] inline Dataset load_ogb(const std::filesystem::path& folder, DatasetUse use = DatasetUse::training,
                                      const MissingLabels& missing = {}) {
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error)) detail::fail_to_open(folder, "no such folder");
  Dataset r = detail::naming_file(folder.string(), [&] {
    Dataset data;
    std::vector<std::string> labels;
    const std::filesystem::path raw = folder / "raw";
    const bool arrays = detail::has_ogb_arrays(raw);
    arrays ? detail::read_ogb_arrays(raw, data, labels) : detail::read_ogb_tables(raw, data, labels);
    if (!labels.empty()) {
      const std::string file = detail::ogb_label_name(raw, arrays);
      const auto place = [&](std::size_t u) { return detail::ogb_label_place(file, static_cast<Index>(u)); };
      detail::take_labels(data, detail::read_label_texts(labels, missing, file, place));
    }
    if (use == DatasetUse::prediction) return data;
    if (use == DatasetUse::training) {
      for (const std::filesystem::path& split : detail::ogb_split_folders(folder)) {
        data.splits.push_back(detail::read_ogb_split(split, data.node_count()));
      }
    }
    validate(data);
    return data;
  });
  r.name = folder_name(folder);
  return r;
}

}  // namespace sheafnn::io
