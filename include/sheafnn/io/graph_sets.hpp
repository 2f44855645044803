/// \file
/// Sets of graphs from files: folders of tables or of the TU text format, and .npz files (docs/data.md, "Sets of graphs").
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "sheafnn/graph/graph_set.hpp"
#include "sheafnn/io/graph_set_parts.hpp"
#include "sheafnn/io/graph_tables.hpp"
#include "sheafnn/io/lines.hpp"
#include "sheafnn/io/masks.hpp"
#include "sheafnn/io/npz.hpp"
#include "sheafnn/io/npz_archive.hpp"

namespace sheafnn::io {

namespace detail {

/// Offsets of the graphs from the index of each node's graph.
///
/// \param first  index of the first graph, 0 or 1
/// \param where  where(u) is what messages call the place of node u
/// \throws std::runtime_error  numbers that do not start at `first`, decrease, or leave a graph without nodes
template <class Where>
[[nodiscard]] std::vector<std::int32_t> graph_offsets(const std::vector<std::int64_t>& graph_of,
                                                      std::int64_t first, const Where& where) {
  std::vector<std::int32_t> offsets = {0};
  std::int64_t last = first;
  for (std::size_t u = 0; u < graph_of.size(); ++u) {
    const std::int64_t g = graph_of[u];
    if (g == last || (u > 0 && g == last + 1)) {
      if (g != last) offsets.push_back(static_cast<std::int32_t>(u));
      last = g;
      continue;
    }
    fail(where(u), "belongs to graph ", g, u == 0 ? "; the first node belongs to graph " : " after graph ", last,
         u == 0     ? ""
         : g > last ? "; every graph needs a node"
                    : "; the nodes of a graph must follow each other");
  }
  offsets.push_back(static_cast<std::int32_t>(graph_of.size()));
  return offsets;
}

/// Rows of numbers of a TU file, one line each.
class TuTable {
 public:
  explicit TuTable(const std::filesystem::path& path) : file_(path.string()) {
    LineReader lines(path);
    while (lines.next()) {
      const std::vector<std::string_view> fields = split_fields(lines.line(), ',');
      if (columns_ == 0) columns_ = fields.size();
      if (fields.size() != columns_) {
        fail(lines.where(), "has ", fields.size(), " numbers; the lines before it have ", columns_);
      }
      for (const std::string_view field : fields) {
        double value = 0;
        if (!parse_number(field, value) || !std::isfinite(value)) {
          fail(lines.where(), "'", printable(sheafnn::detail::trimmed(field)), "' is not a finite number");
        }
        values_.push_back(value);
      }
      line_.push_back(lines.number());
    }
  }
  [[nodiscard]] std::size_t rows() const noexcept { return line_.size(); }
  [[nodiscard]] std::size_t columns() const noexcept { return columns_; }
  [[nodiscard]] const std::vector<double>& values() const noexcept { return values_; }
  [[nodiscard]] const std::string& file() const noexcept { return file_; }
  /// "FILE:LINE" of a row.
  [[nodiscard]] std::string where(std::size_t row) const {
    return row < line_.size() ? sheafnn::detail::concat(file_, ":", line_[row]) : file_;
  }
  /// \throws std::runtime_error  another number of rows or columns
  void require_shape(std::size_t rows, std::size_t columns, std::string_view each) const {
    if (rows_match(rows) && (columns == 0 || columns_ == columns || line_.empty())) return;
    fail(file_, "has ", line_.size(), " lines of ", columns_, " numbers; expected ", rows, ", one for each ",
         each);
  }
  /// The values as integers. \throws std::runtime_error  one that is not
  [[nodiscard]] std::vector<std::int64_t> whole() const {
    std::vector<std::int64_t> r;
    for (std::size_t i = 0; i < values_.size(); ++i) {
      if (values_[i] != std::floor(values_[i]) || std::abs(values_[i]) > 1e15) {
        fail(where(i / columns_), values_[i], " is not a whole number");
      }
      r.push_back(static_cast<std::int64_t>(values_[i]));
    }
    return r;
  }

 private:
  [[nodiscard]] bool rows_match(std::size_t rows) const { return rows == 0 || line_.size() == rows; }
  std::string file_;
  std::size_t columns_ = 0;
  std::vector<double> values_;
  std::vector<Index> line_;
};

/// The stem of a folder's TU files; empty if the folder has no such files.
[[nodiscard]] inline std::string tu_stem(const std::filesystem::path& folder) {
  constexpr std::string_view end = "_graph_indicator.txt";
  for (const std::filesystem::path& path : list_folder(folder)) {
    const std::string name = path.filename().string();
    if (name.ends_with(end)) return name.substr(0, name.size() - end.size());
  }
  return {};
}

}  // namespace detail

/// Loads a folder of the TU text format. NAME_A.txt has pairs of node numbers from 1, NAME_graph_indicator.txt the graph of
/// every node, from 1. NAME_graph_labels.txt has the labels or, for regression, NAME_graph_attributes.txt the targets.
/// Optional: NAME_node_labels.txt (tags, one-hot) and NAME_node_attributes.txt. Attributes of edges are not read. Nodes
/// without tags and attributes have their degree as feature.
///
/// \throws std::runtime_error  one line that names the file, the line, the value and the limit
[[nodiscard]] inline GraphSet load_tu(const std::filesystem::path& folder) {
  const std::string stem = detail::tu_stem(folder);
  if (stem.empty()) detail::fail(folder.string(), "has neither graphs.csv (or .tsv) nor NAME_graph_indicator.txt");
  const auto path = [&](std::string_view part) { return folder / (stem + "_" + std::string(part) + ".txt"); };
  std::error_code error;
  const auto exists = [&](std::string_view part) { return std::filesystem::exists(path(part), error); };

  GraphSet set;
  set.name = stem;
  const detail::TuTable indicator(path("graph_indicator"));
  indicator.require_shape(0, 1, "node");
  if (indicator.rows() == 0) detail::fail(indicator.file(), "is empty; a set needs at least one graph");
  const std::vector<std::int32_t> offsets =
      detail::graph_offsets(indicator.whole(), 1, [&](std::size_t u) { return indicator.where(u); });
  const Index n = offsets.back();
  const std::size_t graphs = offsets.size() - 1;

  const detail::TuTable pairs(path("A"));
  pairs.require_shape(0, 2, "edge");
  const std::vector<std::int64_t> ends = pairs.whole();
  std::vector<Edge> edges;
  for (std::size_t e = 0; e < ends.size() / 2; ++e) {
    for (const std::int64_t node : {ends[2 * e], ends[2 * e + 1]}) {
      if (node < 1 || node > n)
        detail::fail(pairs.where(e), "node ", node, "; node numbers are between 1 and ", n);
    }
    edges.push_back({static_cast<std::int32_t>(ends[2 * e] - 1), static_cast<std::int32_t>(ends[2 * e + 1] - 1)});
  }
  set.graph = Graph(n, edges);
  detail::naming_file(pairs.file(), [&] {
    set.graph.set_graphs(offsets);
    return 0;
  });

  detail::NodeTags tags;
  if (exists("node_labels")) {
    const detail::TuTable table(path("node_labels"));
    table.require_shape(static_cast<std::size_t>(n), 1, "node");
    tags.numbers = table.whole();
  }
  detail::NodeAttributes attributes;
  if (exists("node_attributes")) {
    const detail::TuTable table(path("node_attributes"));
    table.require_shape(static_cast<std::size_t>(n), 0, "node");
    attributes.values =
        NodeFeatures::from_dense(std::span<const double>(table.values()), n, static_cast<Index>(table.columns()));
  }
  detail::take_node_features(set, tags, std::move(attributes));

  if (exists("graph_labels")) {
    const detail::TuTable table(path("graph_labels"));
    table.require_shape(graphs, 1, "graph");
    std::vector<std::string> texts;
    for (const std::int64_t label : table.whole()) texts.push_back(std::to_string(label));
    detail::take_graph_labels(set, texts, table.file(), [&](std::size_t g) { return table.where(g); });
  } else {
    const detail::TuTable table(path("graph_attributes"));
    table.require_shape(graphs, 0, "graph");
    set.targets = table.values();
    set.target_count = static_cast<Index>(table.columns());
  }
  return detail::naming_file(folder.string(), [&] {
    validate(set);
    return std::move(set);
  });
}

/// Loads a set from an .npz file:
///
/// | key             | shape                                                                     |
/// | --------------- | ------------------------------------------------------------------------- |
/// | edges           | m × 2; node numbers 0 … n − 1                                             |
/// | graph_indicator | n; the graph of every node, 0 … G − 1, not decreasing                     |
/// | graph_labels    | G, numbers; or graph_targets, G or G × k, of regression                   |
/// | node_tags       | n whole numbers, optional: one-hot features                               |
/// | node_attributes | n × q, optional: features after the tags                                  |
/// | test_folds      | K × G, optional; 0 and 1: the graphs of each test fold. Folds are disjoint |
///
/// \throws std::runtime_error  one line that names the file, the key, the value and the limit
[[nodiscard]] inline GraphSet load_npz_graphs(const std::filesystem::path& path) {
  const NpzArchive archive(path);
  return detail::naming_file(archive.file(), [&] {
    GraphSet set;
    set.name = path.stem().string();
    const NpyArray indicator = archive.array("graph_indicator");
    const std::vector<std::int64_t> graph_of = indicator.numbers();
    if (graph_of.empty()) detail::fail(indicator.where(), "is empty; a set needs at least one graph");
    const std::vector<std::int32_t> offsets = detail::graph_offsets(graph_of, 0, [&](std::size_t u) {
      return sheafnn::detail::concat(indicator.where(), ": node ", u);
    });
    const Index n = offsets.back(), graphs = static_cast<Index>(offsets.size()) - 1;
    set.graph = detail::read_edges(archive.array("edges"), n);
    set.graph.set_graphs(offsets);
    detail::NodeTags tags;
    if (archive.contains("node_tags")) {
      const NpyArray array = archive.array("node_tags");
      if (array.size() != n)
        detail::fail(array.where(), "has shape ", array.shape_text(), "; expected one tag for each of ", n,
                     " nodes");
      tags.numbers = array.values<std::int64_t>();
    }
    detail::NodeAttributes attributes;
    if (archive.contains("node_attributes")) {
      attributes.values = detail::read_features(archive.array("node_attributes"));
      if (attributes.values.rows() != n) {
        detail::fail(archive.file(), "node_attributes has ", attributes.values.rows(), " rows; expected ", n);
      }
    }
    detail::take_node_features(set, tags, std::move(attributes));
    if (archive.contains("graph_targets")) {
      const NpyArray array = archive.array("graph_targets");
      if (array.shape().empty() || array.shape()[0] != graphs) {
        detail::fail(array.where(), "has shape ", array.shape_text(), "; expected graphs x numbers, ", graphs,
                     " rows");
      }
      set.targets = array.values<double>();
      set.target_count = array.size() / graphs;
    } else {
      std::vector<std::string> texts;
      const NpyArray array = archive.array("graph_labels");
      if (array.size() != graphs) {
        detail::fail(array.where(), "has shape ", array.shape_text(), "; expected one label for each of ", graphs,
                     " graphs");
      }
      for (const std::int64_t label : array.values<std::int64_t>()) texts.push_back(std::to_string(label));
      detail::take_graph_labels(set, texts, array.where(), [&](std::size_t g) {
        return sheafnn::detail::concat(array.where(), "[", g, "]");
      });
    }
    if (archive.contains("test_folds"))
      set.folds = detail::read_masks(archive.array("test_folds"), graphs, false, true);
    validate(set);
    return set;
  });
}

/// Loads an .npz file, or a folder of tables (load_graph_tables()) or of the TU format.
///
/// \throws MissingFile         no such file or folder
/// \throws std::runtime_error  none of these, or bad input
[[nodiscard]] inline GraphSet load_graphs(const std::filesystem::path& path) {
  if (path.extension() == ".npz") return load_npz_graphs(path);
  return is_graph_tables(path) ? load_graph_tables(path) : load_tu(path);
}

}  // namespace sheafnn::io
