/// \file
/// Statistics of a graph: degrees, edge homophily, connected components.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/graph/graph.hpp"

namespace sheafnn {

/// Degrees of all nodes in short.
struct DegreeSummary {
  Index minimum = 0;
  Index maximum = 0;
  double mean = 0;     ///< 2m / n
  Index isolated = 0;  ///< nodes without an edge
};

/// Degrees of a graph; all zero for a graph without nodes.
[[nodiscard]] inline DegreeSummary degree_summary(const Graph& graph) {
  DegreeSummary r;
  const Index n = graph.node_count();
  if (n == 0) return r;
  r.minimum = graph.degree(0);
  for (Index u = 0; u < n; ++u) {
    const Index degree = graph.degree(u);
    r.minimum = std::min(r.minimum, degree);
    r.maximum = std::max(r.maximum, degree);
    if (degree == 0) ++r.isolated;
  }
  r.mean = static_cast<double>(graph.arc_count()) / static_cast<double>(n);
  return r;
}

/// Share of the edges whose two nodes carry the same label, in [0, 1], among the edges between labelled nodes.
///
/// \param labels  one per node, negative where unknown
/// \throws std::invalid_argument  wrong number of labels, or no edge between labelled nodes (the share is undefined)
[[nodiscard]] inline double edge_homophily(const Graph& graph, std::span<const std::int32_t> labels) {
  require(static_cast<Index>(labels.size()) == graph.node_count(), "labels", labels.size(),
          detail::concat("expected one label for each of the ", graph.node_count(), " nodes"));
  require(graph.edge_count() > 0, "graph edges", graph.edge_count(), "homophily needs at least one edge");
  Index same = 0, labelled = 0;
  for (const Edge& e : graph.edges()) {
    const std::int32_t a = labels[static_cast<std::size_t>(e.u)], b = labels[static_cast<std::size_t>(e.v)];
    if (a < 0 || b < 0) continue;
    ++labelled;
    if (a == b) ++same;
  }
  require(labelled > 0, "edges between labelled nodes", labelled, "homophily needs at least one");
  return static_cast<double>(same) / static_cast<double>(labelled);
}

/// Connected components, numbered from 0 in the order of their smallest nodes.
struct Components {
  Index count = 0;
  std::vector<std::int32_t> component_of;  ///< one per node, in [0, count)
};

/// Finds the connected components of a graph; an isolated node is a component of its own.
[[nodiscard]] inline Components connected_components(const Graph& graph) {
  const Index n = graph.node_count();
  Components r;
  r.component_of.assign(static_cast<std::size_t>(n), -1);
  std::vector<std::int32_t> open;
  for (Index start = 0; start < n; ++start) {
    if (r.component_of[static_cast<std::size_t>(start)] >= 0) continue;
    const std::int32_t number = static_cast<std::int32_t>(r.count++);
    r.component_of[static_cast<std::size_t>(start)] = number;
    open.push_back(static_cast<std::int32_t>(start));
    while (!open.empty()) {
      const Index u = open.back();
      open.pop_back();
      for (Index arc = graph.first_arc(u); arc < graph.first_arc(u + 1); ++arc) {
        const Index v = graph.target(arc);
        std::int32_t& component = r.component_of[static_cast<std::size_t>(v)];
        if (component >= 0) continue;
        component = number;
        open.push_back(static_cast<std::int32_t>(v));
      }
    }
  }
  return r;
}

}  // namespace sheafnn
