/// \file
/// The graph of some edges of a graph.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/graph/graph.hpp"

namespace sheafnn::detail {

/// The graph of some of the edges, with their directions, types and the features of their arcs.
///
/// \param kept  m flags, 0 or 1
[[nodiscard]] inline Graph graph_of_edges(const Graph& graph, const std::vector<std::int8_t>& kept) {
  std::vector<Edge> listed;
  for (Index e = 0; e < graph.edge_count(); ++e) {
    if (kept[static_cast<std::size_t>(e)] == 0) continue;
    const Edge edge = graph.edge(e);
    if (graph.listed(graph.forward_arc(e))) listed.push_back(edge);
    if (graph.listed(graph.reverse(graph.forward_arc(e)))) listed.push_back({edge.v, edge.u});
  }
  Graph r = graph_of_entries(graph.node_count(), std::move(listed));
  std::vector<Index> arc_of;  // arcs of both graphs are sorted alike
  for (Index arc = 0; arc < graph.arc_count(); ++arc) {
    if (kept[static_cast<std::size_t>(graph.edge_of(arc))] != 0) arc_of.push_back(arc);
  }
  take_attributes(
      r, graph, [&](Index arc) { return arc_of[static_cast<std::size_t>(arc)]; }, [](Index u) { return u; });
  return r;
}

}  // namespace sheafnn::detail
