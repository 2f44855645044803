/// \file
/// Connected components of the graph that a part belongs to (graph/graph_part.hpp), found without gathering that graph.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/graph/graph.hpp"
#include "sheafnn/graph/graph_part.hpp"
#include "sheafnn/graph/statistics.hpp"

namespace sheafnn::detail {

/// Components of which a part has nodes, by the indices of its nodes, the halo's included.
struct PartComponents : Components {
  /// Components [0, shared) lie in more than one part. They have the same indices in all parts, and a part may have no node of
  /// some of them.
  Index shared = 0;
};

/// The components of a graph or, on a part, of the whole. All parts call this. They exchange one value per row of the halo
/// until nothing changes, which takes as many rounds as a component has parts in a row. Then they add up one value per node
/// of the whole. Takes any graph.
[[nodiscard]] inline PartComponents part_components(const Graph& graph) {
  PartComponents r{connected_components(graph)};  // of a part: pieces of components
  GraphPart* part = graph.part();
  if (part == nullptr) return r;
  const PartNumbers& numbers = part->numbers();
  const std::size_t nodes = r.component_of.size(), own = static_cast<std::size_t>(numbers.own),
                    pieces = static_cast<std::size_t>(r.count);
  const auto piece_of = [&](std::size_t u) { return static_cast<std::size_t>(r.component_of[u]); };

  // The smallest node of the whole component of every piece.
  std::vector<double> smallest(pieces, static_cast<double>(numbers.total_nodes)), of_node(nodes);
  std::vector<bool> cut(pieces);
  for (std::size_t u = 0; u < nodes; ++u) {
    double& least = smallest[piece_of(u)];
    least = std::min(least, static_cast<double>(numbers.node[u]));
    if (u >= own) cut[piece_of(u)] = true;
  }
  for (bool changed = true; changed;) {
    for (std::size_t u = 0; u < own; ++u) of_node[u] = smallest[piece_of(u)];
    part->begin_fetch(of_node.data(), 1);
    part->end_fetch();
    bool lower = false;
    for (std::size_t u = own; u < nodes; ++u) {
      double& least = smallest[piece_of(u)];
      lower = lower || of_node[u] < least;
      least = std::min(least, of_node[u]);
    }
    changed = part->largest(lower ? 1 : 0) > 0;
  }

  // Shared components are numbered by their smallest nodes, which their owners mark.
  std::vector<double> marked(static_cast<std::size_t>(numbers.total_nodes));
  for (std::size_t u = 0; u < own; ++u) {
    if (cut[piece_of(u)] && smallest[piece_of(u)] == static_cast<double>(numbers.node[u]))
      marked[static_cast<std::size_t>(numbers.node[u])] = 1;
  }
  part->sum(std::span<double>(marked), {});
  for (double& mark : marked) {
    const bool first = mark > 0;
    mark = static_cast<double>(r.shared);
    if (first) ++r.shared;
  }
  std::vector<std::int32_t> number(pieces);
  r.count = r.shared;
  for (std::size_t i = 0; i < pieces; ++i) {
    number[i] = static_cast<std::int32_t>(
        cut[i] ? static_cast<Index>(marked[static_cast<std::size_t>(smallest[i])]) : r.count++);
  }
  for (std::int32_t& component : r.component_of) component = number[static_cast<std::size_t>(component)];
  return r;
}

}  // namespace sheafnn::detail
