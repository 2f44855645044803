/// \file
/// first_pairs(), set_pair_types(): what edges of a graph are, such as their types, from the pairs of nodes that list them.
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

/// No pair.
inline constexpr std::size_t no_pair = static_cast<std::size_t>(-1);

/// For every edge the first pair of those that list it and that say something of it; no_pair where none does. Pairs of a node
/// with itself are not edges, and their types do not count. Unchecked: the pairs are the pairs that the graph was built
/// from.
///
/// \param says     says(i): whether pair i says something
/// \param same     same(i, j): whether two pairs that are one edge say the same
/// \param differs  differs(i, j) throws: pair i says something else than pair j before it
template <class Says, class Same, class Differs>
[[nodiscard]] std::vector<std::size_t> first_pairs(const Graph& graph, std::span<const Edge> pairs,
                                                   const Says& says, const Same& same, const Differs& differs) {
  std::vector<std::size_t> first(static_cast<std::size_t>(graph.edge_count()), no_pair);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    if (pairs[i].u == pairs[i].v || !says(i)) continue;
    std::size_t& of = first[static_cast<std::size_t>(graph.edge_of(arc_between(graph, pairs[i].u, pairs[i].v)))];
    if (of == no_pair) of = i;
    if (!same(i, of)) differs(i, of);
  }
  return first;
}

/// Gives every edge the type of the pairs that list it.
///
/// \param types    one text for each pair
/// \param differs  differs(i, j) throws: pair i has another type than pair j before it, which is the same edge
/// \returns  the names of the types, sorted
template <class Differs>
[[nodiscard]] std::vector<std::string> set_pair_types(Graph& graph, std::span<const Edge> pairs,
                                                      const std::vector<std::string>& types,
                                                      const Differs& differs) {
  const auto any = [](std::size_t) { return true; };
  const auto same = [&](std::size_t i, std::size_t j) { return types[i] == types[j]; };
  std::vector<std::string> of_edges, names;
  for (const std::size_t i : first_pairs(graph, pairs, any, same, differs)) of_edges.push_back(types[i]);
  const std::vector<std::int32_t> number = numbered_names(of_edges, names);
  graph.set_edge_types(number, static_cast<Index>(names.size()));
  return names;
}

}  // namespace sheafnn::detail
