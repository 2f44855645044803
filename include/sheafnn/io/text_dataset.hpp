/// \file
/// Datasets in text files: an edge list and a node table as delimited text, or matrices in the Matrix Market format.
/// docs/data.md describes the files.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/graph/dataset.hpp"
#include "sheafnn/graph/graph.hpp"
#include "sheafnn/graph/labels.hpp"
#include "sheafnn/graph/pair_types.hpp"
#include "sheafnn/io/csv.hpp"
#include "sheafnn/io/csv_edges.hpp"
#include "sheafnn/io/csv_nodes.hpp"
#include "sheafnn/io/edge_values.hpp"
#include "sheafnn/io/matrix_market.hpp"

namespace sheafnn::io::detail {

/// Targets of the lines of an edge list; an empty text and words that mean a missing value are unknown.
///
/// \throws std::runtime_error  another text
[[nodiscard]] inline std::vector<double> line_numbers(const EdgeList& list, const std::string& column) {
  const std::string name = "'" + printable(column) + "'";
  std::vector<double> r;
  for (std::size_t i = 0; i < list.texts.size(); ++i) {
    const std::string& text = list.texts[i];
    const bool missing = text.empty() || sheafnn::detail::means_missing(text);
    r.push_back(missing ? std::numeric_limits<double>::quiet_NaN() : finite_number(list.where(i), name, text));
  }
  return r;
}

/// read_edge_list() with further columns. Of the two lines of an edge one may leave out its label or number.
///
/// \throws std::runtime_error     as there; an edge with two types, labels or numbers; encode_labels()
/// \throws std::invalid_argument  both labels and numbers
[[nodiscard]] inline Graph read_edge_columns(CsvReader csv, const NodeNumbers& nodes, const EdgeColumnRules& rules,
                                             EdgeColumns& columns) {
  const std::string& values = rules.values();
  const EdgeList list =
      EdgeListReader(std::move(csv), nodes, rules.types ? EdgeAttributes::types : EdgeAttributes::refuse, values,
                     rules.ignored)
          .read();
  Graph graph(nodes.count(), list.edges);
  if (rules.types) {
    columns.type_names =
        sheafnn::detail::set_pair_types(graph, list.edges, list.types, [&](std::size_t i, std::size_t first) {
          fail(list.where(i), "the edge has the type '", printable(list.types[i]), "', and '",
               printable(list.types[first]), "' in line ", list.lines[first]);
        });
  }
  if (list.texts.empty()) return graph;
  const std::string column = sheafnn::detail::concat(": column '", printable(values), '\'');
  const PairTexts texts{list.edges, list.texts, list.file + column,
                        [&](std::size_t i) { return list.where(i) + column; },
                        [&](std::size_t i) { return sheafnn::detail::concat("in line ", list.lines[i]); }};
  rules.labels.empty() ? read_edge_targets(graph, texts, line_numbers(list, values), columns)
                       : read_edge_labels(graph, texts, rules.missing, columns);
  return graph;
}

}  // namespace sheafnn::io::detail

namespace sheafnn::io {

/// How to read datasets in text files. The types, the targets, labels and targets of edges, and missing_labels hold for .npz
/// files as well.
struct TextOptions {
  std::string label = "label";        ///< name of the label column
  bool identity_features = false;     ///< one-hot node numbers (n × n) in place of what the files hold
  MissingLabels missing_labels = {};  ///< texts that are unknown labels; see graph/labels.hpp
  bool edge_types = false;  ///< read the column of types of the edge list (is_type_column()), or edge_types
  bool node_types = false;  ///< read that column of the node table, or node_types
  /// Columns of numbers to learn in place of labels: Dataset::targets. For prediction they may be missing.
  std::vector<std::string> targets = {};
  std::vector<std::string> ignored_columns = {};       ///< columns of the node table that are not read
  std::vector<std::string> ignored_edge_columns = {};  ///< columns of the edge list that are not read
  /// Column of the edge list, or key of an .npz file, with labels or else targets of edges: Dataset::edge_labels,
  /// Dataset::edge_targets. Among labels −1 is a class. Both are empty where there is no such column.
  std::string edge_labels = {}, edge_target = {};

  [[nodiscard]] bool reads_edge_columns() const noexcept {
    return edge_types || !edge_labels.empty() || !edge_target.empty() || !ignored_edge_columns.empty();
  }
};

/// Checks names of targets. \param name  what messages call them
///
/// \throws std::invalid_argument  no name, an empty one, or one that occurs twice
inline void check_target_names(std::string_view name, const std::vector<std::string>& targets) {
  require(!targets.empty(), name, "an empty list", "at least one name is needed");
  for (auto target = targets.begin(); target != targets.end(); ++target) {
    require(!target->empty(), name, "an empty name", "targets have names");
    require(std::find(targets.begin(), target, *target) == target, name, *target, "it is there twice");
  }
}

namespace detail {

/// The files of a dataset; empty where there is none.
struct TextFiles {
  std::filesystem::path edges;     ///< .mtx: a matrix; others: an edge list
  std::filesystem::path nodes;     ///< .csv or .tsv: a node table; .txt: one label per line
  std::filesystem::path features;  ///< .mtx
};

/// The one of some files that a folder has, or an empty path.
[[nodiscard]] inline std::filesystem::path find_one(const std::filesystem::path& folder,
                                                    std::span<const std::string_view> names) {
  std::filesystem::path found;
  for (const std::string_view name : names) {
    std::error_code error;
    if (!std::filesystem::exists(folder / name, error)) continue;
    if (!found.empty()) {
      fail(folder.string(), "has both ", found.filename().string(), " and ", name, "; only one can be meant");
    }
    found = folder / name;
  }
  return found;
}

inline constexpr std::array<std::string_view, 5> edge_files = {"edges.csv", "edges.tsv", "edges.txt",
                                                               "edges.edgelist", "edges.mtx"};
inline constexpr std::array<std::string_view, 5> node_files = {"nodes.csv", "nodes.tsv", "labels.csv",
                                                               "labels.tsv", "labels.txt"};
inline constexpr std::array<std::string_view, 1> feature_files = {"features.mtx"};

/// Nodes, labels and splits from a node table, or labels alone from a list.
///
/// \param has_types  whether nodes of such a dataset may have types
[[nodiscard]] inline NodeTable read_nodes(const std::filesystem::path& path, const TextOptions& options,
                                          DatasetUse use, bool has_types) {
  if (path.extension() != ".txt") {
    CsvReader csv(path);
    TableRules rules{.label = options.label,
                     .missing = options.missing_labels,
                     .targets = options.targets,
                     .ignored = options.ignored_columns,
                     .needs_targets = use != DatasetUse::prediction,
                     .types = !has_types           ? TypeColumn::other
                              : options.node_types ? TypeColumn::types
                                                   : TypeColumn::feature,
                     .text_advice = sheafnn::detail::concat(
                         "; features are numbers: write a column of 0 and 1 for each text, or leave the "
                         "column out (",
                         caller_name::ignored_columns.text(), ')')};
    return NodeTableReader(csv, std::move(rules)).read();
  }
  NodeTable table;
  table.file = path.string();
  std::vector<std::string> texts;
  for (CsvReader csv(path); csv.next();) {
    if (csv.fields().size() != 1)
      fail(csv.where(), "has ", csv.fields().size(), " fields; expected one label per line");
    if (csv.line() != static_cast<Index>(texts.size()) + 1) {
      fail(csv.where(), "follows an empty line; node ", texts.size(), " needs a label, -1 where it is unknown");
    }
    texts.push_back(csv.fields().front());
  }
  if (texts.empty()) fail(table.file, "lists no label; the graph is empty");
  const auto place = [&](std::size_t u) { return sheafnn::detail::concat(table.file, ":", u + 1); };
  EncodedLabels labels = read_label_texts(texts, options.missing_labels, table.file, place);
  table.labels = std::move(labels.codes);
  table.class_names = std::move(labels.class_names);
  return table;
}

/// The nodes that an edge list names, where one-hot node numbers are all that is asked for. A self-loop names its node too.
[[nodiscard]] inline NodeTable nodes_of_edges(const TextFiles& files, const TextOptions& options) {
  NodeTable table;
  table.file = files.edges.string();
  const NodeNumbers none(table.file, table.names);
  const auto attributes = options.edge_types ? EdgeAttributes::types : EdgeAttributes::refuse;
  table.names =
      EdgeListReader(CsvReader(files.edges), none, attributes, {}, options.ignored_edge_columns).read_names();
  return table;
}

/// What files of edges or hyperedges call the nodes: their names in the table, or else their indices.
[[nodiscard]] inline NodeNumbers numbers_of(const TextFiles& files, const NodeTable& table, Index n) {
  if (!table.names.empty()) return {table.file, table.names};
  return {table.file.empty() ? files.features.string() : table.file, n};
}
/// \param columns  what columns of the edge list contain, if they are read
[[nodiscard]] inline Graph read_text_graph(const TextFiles& files, const NodeTable& table, Index n,
                                           const TextOptions& options, EdgeColumns& columns) {
  if (options.reads_edge_columns()) {
    if (files.edges.extension() == ".mtx") {
      fail(files.edges.string(), "is a matrix; types, labels, numbers and ignored columns belong to edges.csv");
    }
    return read_edge_columns(CsvReader(files.edges), numbers_of(files, table, n),
                             {options.edge_types, options.edge_labels, options.edge_target, options.missing_labels,
                              options.ignored_edge_columns},
                             columns);
  }
  if (files.edges.extension() == ".mtx") {
    const MatrixEntries matrix = read_matrix_market(files.edges);
    if (matrix.rows != n) fail(matrix.file, "has ", matrix.rows, " rows; the dataset has ", n, " nodes");
    return to_graph(matrix);
  }
  return read_edge_list(CsvReader(files.edges), numbers_of(files, table, n));
}
/// Gives the nodes the types in the column type.
///
/// \param names  of the types, sorted
/// \throws std::runtime_error  no such column, or a node without a type
inline void read_node_types(const NodeTable& table, Graph& graph, std::vector<std::string>& names) {
  const std::vector<std::string>& texts = table.types;
  if (texts.empty()) fail(table.file, "has no column 'type', which tells the types of nodes");
  for (std::size_t u = 0; u < texts.size(); ++u) {
    if (texts[u].empty()) fail(sheafnn::detail::concat(table.file, ":", table.lines[u]), "the node has no type");
  }
  const std::vector<std::int32_t> types = sheafnn::detail::numbered_names(texts, names);
  graph.set_node_types(types, static_cast<Index>(names.size()));
}

/// Takes the features from the file or the table that has them.
[[nodiscard]] inline NodeFeatures text_features(const TextFiles& files, NodeTable& table,
                                                const TextOptions& options) {
  const bool columns = !table.feature_names.empty();
  if (files.features.empty()) {
    if (options.identity_features) {
      return NodeFeatures::identity(table.node_count());
    }
    if (!columns) {
      fail(table.file, "has no feature column, and there is no features.mtx; one-hot node numbers are an option (",
           caller_name::identity_features.text(), ')');
    }
    return std::move(table.features);
  }
  if (columns) {
    fail(table.file, "has ", table.feature_names.size(), " feature columns, the first is '",
         printable(table.feature_names.front()), "'; features.mtx holds features as well, only one can be meant");
  }
  const MatrixEntries matrix = read_matrix_market(files.features);
  const Index n = table.node_count();
  if (n > 0 && matrix.rows != n)
    fail(matrix.file, "has ", matrix.rows, " rows; ", table.file, " has ", n, " nodes");
  return options.identity_features ? NodeFeatures::identity(matrix.rows) : to_features(matrix);
}

/// Checks what training needs of labels, or else of targets, and of splits.
inline void check_text_labels(const NodeTable& table, const std::string& where, const TextOptions& options,
                              DatasetUse use) {
  if (!options.targets.empty()) {
    if (table.targets.empty() && use != DatasetUse::prediction) {
      fail(where, "has no columns of targets; nodes.csv would hold them");
    }
  } else if (table.labels.empty() && (use != DatasetUse::prediction || options.label != TextOptions().label)) {
    if (table.file.empty()) fail(where, "has no labels; nodes.csv or labels.txt would hold them");
    fail(table.file, "has no label column '", printable(options.label), "'; ", caller_name::label.text(),
         " names another");
  }
  if (use != DatasetUse::training) return;
  for (std::size_t i = 0; i < table.splits.size(); ++i) {
    if (table.splits[i].train.empty()) {
      fail(table.file, "column '", table.split_names[i],
           "' puts no node into the set 'train'; training needs one (", caller_name::make_splits.text(),
           " draws splits)");
    }
  }
}

/// Gives a dataset with features targets that are not known, in place of labels.
template <class GraphType>
void set_unknown_targets(NodeDataset<GraphType>& data, const std::vector<std::string>& names) {
  data.labels.clear();
  data.class_names.clear();
  data.class_count = 0;
  data.target_names = names;
  data.targets.assign(static_cast<std::size_t>(data.features.rows()) * names.size(),
                      std::numeric_limits<double>::quiet_NaN());
}

/// \param read_graph  read_graph(table, n): the graph of a table of n nodes
template <class GraphType, class ReadGraph>
[[nodiscard]] NodeDataset<GraphType> read_text_tables(const std::string& where, std::string name,
                                                      const TextFiles& files, const TextOptions& options,
                                                      DatasetUse use, const ReadGraph& read_graph) {
  NodeDataset<GraphType> r = naming_file(where, [&] {
    NodeDataset<GraphType> data;
    NodeTable table;
    if (!options.ignored_columns.empty() && (files.nodes.empty() || files.nodes.extension() == ".txt")) {
      fail(where, "has no nodes.csv (or .tsv), and so no column '", printable(options.ignored_columns.front()),
           "' (", caller_name::ignored_columns.text(), ')');
    }
    if (!files.nodes.empty()) {
      table = read_nodes(files.nodes, options, use, std::is_same_v<GraphType, Graph>);
    }
    if (files.nodes.empty() && files.features.empty()) {
      if (!options.identity_features || !std::is_same_v<GraphType, Graph> || files.edges.extension() == ".mtx") {
        fail(where, "has edges, but neither nodes.csv (or .tsv) nor features.mtx",
             std::is_same_v<GraphType, Graph>
                 ? sheafnn::detail::concat("; with ", caller_name::identity_features.text(),
                                           " an edge list is enough")
                 : std::string());
      }
      table = nodes_of_edges(files, options);
    }
    check_text_labels(table, where, options, use);
    data.features = text_features(files, table, options);
    data.graph = read_graph(std::as_const(table), data.features.rows());
    data.node_names = std::move(table.names);
    if (options.targets.empty()) {
      data.labels = std::move(table.labels);
      data.class_count = static_cast<Index>(table.class_names.size());
      data.class_names = std::move(table.class_names);
    } else {
      set_unknown_targets(data, options.targets);
      if (!table.targets.empty()) data.targets = std::move(table.targets);
    }
    if (!options.identity_features) data.feature_names = std::move(table.feature_names);
    if (use == DatasetUse::training) data.splits = std::move(table.splits);
    if (use != DatasetUse::prediction) validate(data);
    return data;
  });
  r.name = std::move(name);
  return r;
}
[[nodiscard]] inline Dataset read_text_dataset(const std::string& where, std::string name, const TextFiles& files,
                                               const TextOptions& options, DatasetUse use) {
  EdgeColumns edges;
  std::vector<std::string> node_types;
  Dataset r =
      read_text_tables<Graph>(where, std::move(name), files, options, use, [&](const NodeTable& table, Index n) {
        Graph graph = read_text_graph(files, table, n, options, edges);
        if (options.node_types) read_node_types(table, graph, node_types);
        return graph;
      });
  r.node_type_names = std::move(node_types);
  take_edge_columns(r, std::move(edges));
  return r;
}
}  // namespace detail

/// Whether a folder is one of load_text_folder(): it has a file edges.csv (.tsv, .txt, .edgelist) or edges.mtx.
/// Takes any path.
[[nodiscard]] inline bool is_text_folder(const std::filesystem::path& folder) {
  std::error_code error;
  for (const std::string_view name : detail::edge_files) {
    if (std::filesystem::exists(folder / name, error)) return true;
  }
  return false;
}

/// Loads a folder of text files:
///
/// | file                                 | content                                                              |
/// | ------------------------------------ | -------------------------------------------------------------------- |
/// | edges.csv, .tsv, .txt, .edgelist     | two node names per line                                              |
/// | edges.mtx, in its place              | an n × n matrix, not zero where edges are                            |
/// | nodes.csv or .tsv (or labels.csv …)  | a node table: names, labels, splits, features (read_node_table)      |
/// | labels.txt, in its place             | one label per line; nodes are numbered                               |
/// | features.mtx                         | n × p, where the node table has no feature column                    |
///
/// With TextOptions::identity_features an edge list is enough: its nodes are numbered in the order in which it names them.
///
/// Rows of matrices are nodes in the order of the node table. Nodes without names are numbered from 0 in edge lists.
///
/// \param folder  its name becomes the dataset's name
/// \param use     for prediction, labels may be missing
/// \throws std::runtime_error  one line that names the file, the line, the column, the value and the limit
[[nodiscard]] inline Dataset load_text_folder(const std::filesystem::path& folder, const TextOptions& options = {},
                                              DatasetUse use = DatasetUse::training) {
  const detail::TextFiles files = {detail::find_one(folder, detail::edge_files),
                                   detail::find_one(folder, detail::node_files),
                                   detail::find_one(folder, detail::feature_files)};
  if (files.edges.empty()) detail::fail(folder.string(), "has no edges.csv (.tsv, .txt, .edgelist) or edges.mtx");
  std::string name = folder_name(folder);
  return detail::read_text_dataset(folder.string(), std::move(name), files, options, use);
}

/// Loads a dataset from an edge list and a node table, wherever they are.
///
/// \throws as load_text_folder()
[[nodiscard]] inline Dataset load_csv_dataset(const std::filesystem::path& edges,
                                              const std::filesystem::path& nodes, const TextOptions& options = {},
                                              DatasetUse use = DatasetUse::training) {
  return detail::read_text_dataset(nodes.string(), nodes.stem().string(), {edges, nodes, {}}, options, use);
}

}  // namespace sheafnn::io
