/// \file
/// read_edge_columns(): an edge list with a column of types, labels or numbers of its edges.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sheafnn/graph/graph.hpp"
#include "sheafnn/graph/labels.hpp"
#include "sheafnn/graph/pair_types.hpp"
#include "sheafnn/io/csv.hpp"
#include "sheafnn/io/csv_edges.hpp"
#include "sheafnn/io/csv_nodes.hpp"
#include "sheafnn/io/masks.hpp"

namespace sheafnn::io::detail {

/// Which columns of an edge list tell more than the edges.
struct EdgeColumnRules {
  bool types = false;           ///< column type: types of the edges
  std::string labels, targets;  ///< names of a column of labels, or else of numbers; empty: not read
  MissingLabels missing;        ///< texts that are unknown labels
};

/// What these columns tell.
struct EdgeColumns {
  std::vector<std::string> type_names;   ///< sorted
  std::vector<std::int32_t> labels;      ///< m, −1 where unknown; empty: there is no such column
  std::vector<std::string> class_names;  ///< of the labels
  std::vector<double> targets;           ///< m, NaN where unknown; empty: there is no such column
};

/// What every edge has of what its lines tell.
///
/// \param of_lines  one value for each line \param unknown  an edge of which no line tells a value
/// \throws std::runtime_error  an edge with two values
template <class T, class Known>
[[nodiscard]] std::vector<T> values_of_edges(const Graph& graph, const EdgeList& list, const std::string& column,
                                             const std::vector<T>& of_lines, T unknown, const Known& known) {
  std::vector<T> r;
  const auto same = [&](std::size_t i, std::size_t j) { return of_lines[i] == of_lines[j]; };
  const auto differs = [&](std::size_t i, std::size_t first) {
    fail(list.where(i), "column '", printable(column), "' is '", printable(list.texts[i]), "', and '",
         printable(list.texts[first]), "' in line ", list.lines[first], ", which is the same edge");
  };
  const auto says = [&](std::size_t i) { return known(of_lines[i]); };
  for (const std::size_t i : sheafnn::detail::first_pairs(graph, list.edges, says, same, differs)) {
    r.push_back(i == sheafnn::detail::no_pair ? unknown : of_lines[i]);
  }
  return r;
}

/// Labels of edges: encode_labels(), but the number −1 is a class.
inline void read_edge_labels(const Graph& graph, const EdgeList& list, const EdgeColumnRules& rules,
                             EdgeColumns& columns) {
  const std::string column = sheafnn::detail::concat(": column '", printable(rules.labels), '\'');
  const auto place = [&](std::size_t i) { return list.where(i) + column; };
  EncodedLabels labels = read_label_texts(list.texts, rules.missing, list.file + column, place, false);
  columns.class_names = std::move(labels.class_names);
  columns.labels = values_of_edges<std::int32_t>(graph, list, rules.labels, labels.codes, -1,
                                                 [](std::int32_t label) { return label >= 0; });
}
/// Numbers of edges; an empty text and words that mean a missing value are unknown. \throws std::runtime_error  another text
inline void read_edge_targets(const Graph& graph, const EdgeList& list, const EdgeColumnRules& rules,
                              EdgeColumns& columns) {
  constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
  const std::string name = "'" + printable(rules.targets) + "'";
  std::vector<double> of_lines;
  for (std::size_t i = 0; i < list.texts.size(); ++i) {
    const std::string& text = list.texts[i];
    const bool missing = text.empty() || sheafnn::detail::means_missing(text);
    of_lines.push_back(missing ? unknown : finite_number(list.where(i), name, text));
  }
  columns.targets =
      values_of_edges(graph, list, rules.targets, of_lines, unknown, [](double value) { return value == value; });
}

/// read_edge_list() with further columns. Of the two lines of an edge one may leave out its label or number.
///
/// \throws std::runtime_error     as there; an edge with two types, labels or numbers; encode_labels()
/// \throws std::invalid_argument  both labels and numbers
[[nodiscard]] inline Graph read_edge_columns(CsvReader csv, const NodeNumbers& nodes, const EdgeColumnRules& rules,
                                             EdgeColumns& columns) {
  require(rules.labels.empty() || rules.targets.empty(), "edge_target", rules.targets,
          "edges have labels or numbers, not both");
  const EdgeList list =
      EdgeListReader(std::move(csv), nodes, rules.types ? EdgeAttributes::types : EdgeAttributes::refuse,
                     rules.labels.empty() ? rules.targets : rules.labels)
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
  rules.labels.empty() ? read_edge_targets(graph, list, rules, columns)
                       : read_edge_labels(graph, list, rules, columns);
  return graph;
}

}  // namespace sheafnn::io::detail
