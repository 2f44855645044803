/// \file
/// Sets of graphs as three tables of delimited text: graphs, their nodes and their edges (docs/data.md, "Sets of graphs").
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/graph/features.hpp"
#include "sheafnn/graph/graph_set.hpp"
#include "sheafnn/io/csv.hpp"
#include "sheafnn/io/csv_edges.hpp"
#include "sheafnn/io/csv_nodes.hpp"
#include "sheafnn/io/graph_set_parts.hpp"
#include "sheafnn/io/text_dataset.hpp"

namespace sheafnn::io {

namespace detail {

inline constexpr std::array<std::string_view, 2> graphs_files = {"graphs.csv", "graphs.tsv"};
inline constexpr std::array<std::string_view, 2> nodes_files = {"nodes.csv", "nodes.tsv"};
inline constexpr std::array<std::string_view, 4> edges_files = {"edges.csv", "edges.tsv", "edges.txt",
                                                                "edges.edgelist"};

[[nodiscard]] inline NodeTable read_table(const std::filesystem::path& path, TableRules rules) {
  CsvReader csv(path);
  return NodeTableReader(csv, std::move(rules)).read();
}
/// "FILE:LINE: column 'x'" of a row.
[[nodiscard]] inline std::string cell(const NodeTable& table, std::size_t row, std::string_view column) {
  return sheafnn::detail::concat(table.file, ":", table.lines[row], ": column '", column, "'");
}

/// Which graph each node belongs to, and where it is in the union: graph by graph, in the order of the table.
struct NodePlaces {
  std::vector<std::int32_t> graph_of, place;  ///< n
  std::vector<Index> node_at;                 ///< n: the row of the node in each place
  std::vector<std::int32_t> offsets;          ///< G + 1
};

[[nodiscard]] inline NodePlaces place_nodes(const NodeTable& graphs, const NodeTable& nodes) {
  const NodeNumbers numbers(graphs.file, graphs.names);
  const std::vector<std::string>& texts = nodes.texts.front();
  if (texts.empty()) fail(nodes.file, "has no column 'graph', which names the graph of each node");
  NodePlaces r;
  r.offsets.assign(graphs.names.size() + 1, 0);
  for (std::size_t u = 0; u < texts.size(); ++u) {
    const std::int32_t g = numbers.find(texts[u]);
    if (g < 0) {
      fail(cell(nodes, u, "graph"), "graph '", printable(texts[u]), "' is not in ", graphs.file);
    }
    r.graph_of.push_back(g);
    ++r.offsets[static_cast<std::size_t>(g) + 1];
  }
  for (std::size_t g = 0; g < graphs.names.size(); ++g) {
    if (r.offsets[g + 1] == 0) {
      fail(sheafnn::detail::concat(graphs.file, ":", graphs.lines[g]), "graph '", printable(graphs.names[g]),
           "' has no node in ", nodes.file);
    }
    r.offsets[g + 1] += r.offsets[g];
  }
  std::vector<std::int32_t> next(r.offsets.begin(), r.offsets.end() - 1);
  r.node_at.resize(texts.size());
  for (std::size_t u = 0; u < texts.size(); ++u) {
    r.place.push_back(next[static_cast<std::size_t>(r.graph_of[u])]++);
    r.node_at[static_cast<std::size_t>(r.place[u])] = static_cast<Index>(u);
  }
  return r;
}

/// Gives the arcs the features of their edges. An arc that is not listed has the features of its reverse.
inline void take_edge_columns(GraphSet& set, const EdgeList& list, const std::vector<Edge>& placed) {
  Graph& graph = set.graph;
  const std::size_t count = list.names.size();
  if (count == 0) return;
  const auto row = [&](std::size_t e) { return list.values.begin() + static_cast<std::ptrdiff_t>(e * count); };
  constexpr std::size_t none = std::numeric_limits<std::size_t>::max();
  std::vector<std::size_t> edge_of(static_cast<std::size_t>(graph.arc_count()), none);
  for (std::size_t e = 0; e < placed.size(); ++e) {
    if (placed[e].u == placed[e].v) continue;
    const Index arc = sheafnn::detail::arc_between(graph, placed[e].u, placed[e].v);
    std::size_t& first = edge_of[static_cast<std::size_t>(arc)];
    if (first == none) first = e;
    if (!std::equal(row(e), row(e + 1), row(first))) {
      fail(list.where(e), "repeats the edge of line ", list.lines[first], " with other numbers");
    }
  }
  std::vector<double> values;
  for (Index a = 0; a < graph.arc_count(); ++a) {
    std::size_t e = edge_of[static_cast<std::size_t>(a)];
    if (e == none) e = edge_of[static_cast<std::size_t>(graph.reverse(a))];
    values.insert(values.end(), row(e), row(e + 1));
  }
  graph.set_arc_features(values, static_cast<Index>(count));
  set.edge_feature_names = known_names(list.columns);
}

/// Reads the graph of a set, with the features of its arcs.
inline void read_graph_edges(GraphSet& set, const std::filesystem::path& path, const NodeTable& graphs,
                             const NodeTable& nodes, const NodePlaces& places) {
  const Index n = static_cast<Index>(nodes.lines.size());
  const NodeNumbers numbers =
      nodes.names.empty() ? NodeNumbers(nodes.file, n) : NodeNumbers(nodes.file, nodes.names);
  const EdgeList list = EdgeListReader(CsvReader(path), numbers, EdgeAttributes::keep).read();
  for (const std::string& name : list.names) {
    if (plain_word(name) != "'graph'" && plain_word(name) != "'graphid'") continue;
    fail(list.file, "has a column ", name,
         ", which is no number of an edge: the two nodes say which graph it is in");
  }
  std::vector<Edge> placed;
  for (std::size_t e = 0; e < list.edges.size(); ++e) {
    const std::size_t u = static_cast<std::size_t>(list.edges[e].u), v = static_cast<std::size_t>(list.edges[e].v);
    if (places.graph_of[u] != places.graph_of[v]) {
      const auto name = [&](std::size_t node) {
        return printable(graphs.names[static_cast<std::size_t>(places.graph_of[node])]);
      };
      fail(list.where(e), "joins a node of graph '", name(u), "' and a node of graph '", name(v),
           "'; the graphs of a set are disjoint");
    }
    placed.push_back({places.place[u], places.place[v]});
  }
  set.graph = Graph(n, placed);
  set.graph.set_graphs(places.offsets);
  take_edge_columns(set, list, placed);
}

/// Kinds of nodes as whole numbers: their own where all are whole numbers, otherwise in the order of the texts.
[[nodiscard]] inline NodeTags tags_of(const NodeTable& nodes, const NodePlaces& places) {
  const std::vector<std::string>& texts = nodes.texts[1];
  std::vector<std::int64_t> r;
  NodeTags tags;
  for (std::size_t u = 0; u < texts.size(); ++u) {
    if (texts[u].empty()) fail(cell(nodes, u, "tag"), "is empty; every node needs a tag");
    std::int64_t number = 0;
    if (parse_number(texts[u], number)) r.push_back(number);
  }
  if (r.size() < texts.size()) {
    const std::set<std::string_view> sorted(texts.begin(), texts.end());
    tags.texts.assign(sorted.begin(), sorted.end());
    r.clear();
    for (const std::string& text : texts) {
      r.push_back(std::lower_bound(tags.texts.begin(), tags.texts.end(), text) - tags.texts.begin());
    }
  }
  for (std::size_t i = 0; i < r.size(); ++i) {
    tags.numbers.push_back(r[static_cast<std::size_t>(places.node_at[i])]);
  }
  return tags;
}

/// Lists of graphs from the column of their test folds.
[[nodiscard]] inline std::vector<std::vector<std::int32_t>> folds_of(const NodeTable& graphs) {
  const std::vector<std::string>& texts = graphs.texts[1];
  std::vector<std::vector<std::int32_t>> folds;
  for (std::size_t g = 0; g < texts.size(); ++g) {
    if (texts[g].empty()) continue;
    std::int64_t number = -1;
    const auto most = static_cast<std::int64_t>(texts.size()) - 1;
    if (!parse_number(texts[g], number) || number < 0 || number > most) {
      fail(cell(graphs, g, "fold"), "'", printable(texts[g]), "' is not the number of a fold; expected 0 to ",
           most, ", or nothing");
    }
    folds.resize(std::max(folds.size(), static_cast<std::size_t>(number) + 1));
    folds[static_cast<std::size_t>(number)].push_back(static_cast<std::int32_t>(g));
  }
  for (std::size_t i = 0; i < folds.size(); ++i) {
    if (folds[i].empty()) {
      fail(graphs.file, "column 'fold' has no graph in fold ", i, "; folds are numbered 0 to ", folds.size() - 1);
    }
  }
  return folds;
}

/// Classes, or targets of a regression.
inline void take_graph_columns(GraphSet& set, NodeTable& graphs) {
  const std::vector<std::string>& labels = graphs.texts[0];
  if (!labels.empty()) {
    if (!graphs.feature_names.empty()) {
      fail(graphs.file, "has labels and the column '", printable(graphs.feature_names.front()),
           "'; a set has one label, or numbers, per graph");
    }
    take_graph_labels(set, labels, graphs.file + ": column 'label'",
                      [&](std::size_t g) { return cell(graphs, g, "label"); }, {});
  } else if (graphs.feature_names.empty()) {
    fail(graphs.file, "has neither a column 'label' nor columns of numbers to predict");
  } else {
    const NodeFeatures& x = graphs.features;
    const std::size_t given = static_cast<std::size_t>(x.given_columns());
    set.target_count = x.given_columns();
    set.targets.assign(graphs.lines.size() * given, 0);
    for (std::size_t g = 0; g < graphs.lines.size(); ++g) {
      for (Index k = x.offsets()[g]; k < x.offsets()[g + 1]; ++k) {
        const std::size_t i = static_cast<std::size_t>(k), column = static_cast<std::size_t>(x.column_of()[i]);
        const bool missing = column >= given;
        set.targets[g * given + (missing ? static_cast<std::size_t>(x.indicators()[column - given]) : column)] =
            missing ? std::numeric_limits<double>::quiet_NaN() : x.values()[i];
      }
    }
  }
  for (std::size_t i = 0; i < graphs.splits.size(); ++i) {
    if (graphs.splits[i].train.empty()) {
      fail(graphs.file, "column '", graphs.split_names[i],
           "' puts no graph into the set 'train'; training needs one");
    }
  }
  set.splits = std::move(graphs.splits);
  set.folds = folds_of(graphs);
  if (!set.splits.empty() && !set.folds.empty()) {
    fail(graphs.file, "has the columns 'fold' and '", graphs.split_names.front(), "'; only one can be meant");
  }
}

}  // namespace detail

/// Whether a folder is one of load_graph_tables(): it has a file graphs.csv or graphs.tsv. Takes any path.
[[nodiscard]] inline bool is_graph_tables(const std::filesystem::path& folder) {
  std::error_code error;
  for (const std::string_view name : detail::graphs_files) {
    if (std::filesystem::exists(folder / name, error)) return true;
  }
  return false;
}

/// Loads a folder of tables:
///
/// | file                             | columns                                                                          |
/// | -------------------------------- | -------------------------------------------------------------------------------- |
/// | graphs.csv or .tsv               | the graph's name; `label`, or targets of a regression; `fold`, or `split`        |
/// | nodes.csv or .tsv                | the node's name; `graph`; `tag`, one-hot features; numbers, which are features   |
/// | edges.csv, .tsv, .txt, .edgelist | two nodes, as in read_edge_list(); numbers, which are features of both arcs      |
///
/// Rows may have any order. Graphs have the order of graphs.csv, nodes of a graph the order of nodes.csv. A table of nodes whose
/// first column is `graph` has no names; edges then name its rows by index, from 0. Nodes without tags and numbers have their
/// degree as the feature.
///
/// \throws std::runtime_error  one line that names the file, the line, the column, the value and the limit
[[nodiscard]] inline GraphSet load_graph_tables(const std::filesystem::path& folder) {
  const auto file = [&](const auto& names) {
    const std::filesystem::path path = detail::find_one(folder, names);
    if (path.empty()) detail::fail(folder.string(), "has no ", names.front(), " (or ", names[1], ")");
    return path;
  };
  const std::filesystem::path edges = file(detail::edges_files);
  NodeTable graphs = detail::read_table(file(detail::graphs_files),
                                        {.label = "",
                                         .texts = {"label", "fold"},
                                         .row = "graph",
                                         .sets = "the column fold holds the number of a graph's test fold, "
                                                 "the column split train, validation or test"});
  const NodeTable nodes = detail::read_table(
      file(detail::nodes_files),
      {.label = "", .texts = {"graph", "tag"}, .numbered = true, .sets = "sets of graphs belong into graphs.csv"});
  if (!nodes.splits.empty()) {
    detail::fail(nodes.file, "column '", nodes.split_names.front(), "': sets of graphs belong into graphs.csv");
  }
  GraphSet set;
  set.name = folder_name(folder);
  return detail::naming_file(folder.string(), [&] {
    const detail::NodePlaces places = detail::place_nodes(graphs, nodes);
    detail::read_graph_edges(set, edges, graphs, nodes, places);
    detail::NodeAttributes attributes{.names = nodes.feature_names};
    if (!attributes.names.empty()) attributes.values = nodes.features.rows_at(places.node_at);
    detail::take_node_features(set, detail::tags_of(nodes, places), std::move(attributes));
    detail::take_graph_columns(set, graphs);
    set.graph_names = std::move(graphs.names);
    validate(set);
    return std::move(set);
  });
}

}  // namespace sheafnn::io
