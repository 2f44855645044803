/// \file
/// Edge lists: a delimited text file with two node names per line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/graph/graph.hpp"
#include "sheafnn/io/csv.hpp"
#include "sheafnn/io/csv_nodes.hpp"
#include "sheafnn/io/lines.hpp"

namespace sheafnn::io {

namespace detail {

/// Whether the first record of an edge list is a header: neither of its fields is a node, nor a number.
[[nodiscard]] inline bool is_edge_header(const std::vector<std::string>& fields, const NodeNumbers& nodes) {
  for (const std::string& field : fields) {
    double number = 0;
    if (nodes.find(field) >= 0 || parse_number(field, number)) return false;
  }
  return true;
}

/// Reads an edge list: two node names per line, in any order, in one direction or both. A first line of which no field
/// is a node or a number is a header. Further columns are refused: sheaves learn the weights of edges.
///
/// \throws std::runtime_error  one line that names the file, the line and the node
[[nodiscard]] inline Graph read_edge_list(CsvReader csv, const NodeNumbers& nodes) {
  std::vector<Edge> edges;
  for (bool first = true; csv.next(); first = false) {
    const std::vector<std::string>& fields = csv.fields();
    if (fields.size() != 2) {
      fail(csv.where(), "has ", fields.size(), " fields; expected the names of two nodes",
           fields.size() > 2 ? " (edges have no weights or other attributes here: remove such columns)" : "");
    }
    if (first && is_edge_header(fields, nodes)) continue;
    std::int32_t ends[2];
    for (std::size_t k = 0; k < 2; ++k) {
      ends[k] = nodes.find(fields[k]);
      if (ends[k] < 0) nodes.refuse(csv.where(), fields[k]);
    }
    edges.push_back({ends[0], ends[1]});
  }
  Graph graph(nodes.count(), edges);
  if (graph.edge_count() == 0) fail(csv.file(), "the graph has no edge between different nodes");
  return graph;
}

}  // namespace detail

}  // namespace sheafnn::io
