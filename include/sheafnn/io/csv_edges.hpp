/// \file
/// Edge lists: a delimited text file with two node names per line.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/graph/graph.hpp"
#include "sheafnn/io/csv.hpp"
#include "sheafnn/io/csv_nodes.hpp"
#include "sheafnn/io/lines.hpp"

namespace sheafnn::io {

namespace detail {

/// Words for the ends of an edge, in a header in lower case, with _id or a digit behind them: source, Target_ID, node1 …
inline constexpr std::string_view end_names[] = {"a",      "alter",  "author",   "b",           "buyer",  "child",
                                                 "cited",  "cites",  "citing",   "destination", "dst",    "ego",
                                                 "end",    "first",  "followee", "follower",    "friend", "from",
                                                 "head",   "i",      "id",       "j",           "left",   "name",
                                                 "node",   "one",    "origin",   "other",       "page",   "paper",
                                                 "parent", "person", "receiver", "right",       "s",      "second",
                                                 "seller", "sender", "source",   "src",         "start",  "t",
                                                 "tail",   "target", "to",       "u",           "user",   "v",
                                                 "vertex", "who",    "whom",     "x",           "y"};

/// Whether a field is one of these words.
[[nodiscard]] inline bool is_end_name(std::string field) {
  for (char& c : field) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  std::string_view stem = field;
  const auto drop = [&](std::string_view characters) {
    stem = stem.substr(0, stem.find_last_not_of(characters) + 1);
  };
  drop("0123456789");
  drop("_ -");
  if (stem.size() > 2 && stem.ends_with("id")) stem.remove_suffix(2);
  drop("_ -");
  return std::find(std::begin(end_names), std::end(end_names), stem) != std::end(end_names);
}

/// Whether the first record of an edge list is a header: neither of its fields is a node, nor a number, but both name
/// the end of an edge. So a mistyped pair of nodes is no header.
[[nodiscard]] inline bool is_edge_header(const std::vector<std::string>& fields, const NodeNumbers& nodes) {
  for (const std::string& field : fields) {
    double number = 0;
    if (nodes.find(field) >= 0 || parse_number(field, number) || !is_end_name(field)) return false;
  }
  return true;
}

/// Reads an edge list: two node names per line, in any order, in one direction or both; the first line may be a header.
/// Further columns are refused: sheaves learn the weights of edges.
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
      if (ends[k] < 0) {
        nodes.refuse(csv.where(), fields[k],
                     first ? " (a header names its columns by words such as source and target)" : "");
      }
    }
    edges.push_back({ends[0], ends[1]});
  }
  Graph graph(nodes.count(), edges);
  if (graph.edge_count() == 0) fail(csv.file(), "the graph has no edge between different nodes");
  return graph;
}

}  // namespace detail

}  // namespace sheafnn::io
