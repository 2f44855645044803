/// \file
/// read_edge_columns(): an edge list with a column of types, labels or numbers of its edges.
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "sheafnn/graph/graph.hpp"
#include "sheafnn/graph/labels.hpp"
#include "sheafnn/graph/pair_types.hpp"
#include "sheafnn/io/csv.hpp"
#include "sheafnn/io/csv_edges.hpp"
#include "sheafnn/io/csv_nodes.hpp"
#include "sheafnn/io/edge_values.hpp"

namespace sheafnn::io::detail {

/// Numbers of the lines of an edge list; an empty text and words that mean a missing value are unknown.
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
