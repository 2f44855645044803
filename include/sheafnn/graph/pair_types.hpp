/// \file
/// set_pair_types(): the types of a graph's edges from the types of the pairs of nodes that list them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/graph/graph.hpp"
#include "sheafnn/graph/types_of.hpp"

namespace sheafnn::detail {

/// Gives every edge the type of the pairs that list it. Pairs of a node with itself are no edges, and their types do not
/// count. Unchecked: the pairs are the pairs that the graph was built from.
///
/// \param types    one text for each pair
/// \param differs  differs(i, j) throws: pair i has another type than pair j before it, which is the same edge
/// \returns  the names of the types, sorted
template <class Differs>
[[nodiscard]] std::vector<std::string> set_pair_types(Graph& graph, std::span<const Edge> pairs,
                                                      const std::vector<std::string>& types,
                                                      const Differs& differs) {
  constexpr std::size_t none = static_cast<std::size_t>(-1);
  std::vector<std::size_t> first(static_cast<std::size_t>(graph.edge_count()), none);  // of an edge's pairs
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    if (pairs[i].u == pairs[i].v) continue;
    std::size_t& of = first[static_cast<std::size_t>(graph.edge_of(arc_between(graph, pairs[i].u, pairs[i].v)))];
    if (of == none) of = i;
    if (types[i] != types[of]) differs(i, of);
  }
  std::vector<std::string> of_edges, names;
  for (const std::size_t i : first) of_edges.push_back(types[i]);
  const std::vector<std::int32_t> number = numbered_names(of_edges, names);
  graph.set_edge_types(number, static_cast<Index>(names.size()));
  return names;
}

}  // namespace sheafnn::detail
