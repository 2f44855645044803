/// \file
/// ArcLists: for every node, the heads of the arcs that leave it and the tails of the arcs that enter it. The graph is
/// undirected or DirectedArcs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/graph/graph.hpp"
#include "sheafnn/graph/graph_part.hpp"

namespace sheafnn {

/// Lists of nodes, one for each node, in increasing order. A view. Unchecked: node numbers.
struct NeighbourLists {
  const std::int32_t* offset = nullptr;  ///< n + 1
  const std::int32_t* node = nullptr;

  [[nodiscard]] Index degree(Index u) const noexcept { return offset[u + 1] - offset[u]; }
  [[nodiscard]] std::span<const std::int32_t> of(Index u) const noexcept {
    return {node + offset[u], static_cast<std::size_t>(degree(u))};
  }
};

/// The arcs of a graph by the nodes they leave, u→v for all v, and by those they enter. A view.
struct ArcLists {
  Index nodes = 0;  ///< of a part of a graph: the owned ones; the lists name the halo's nodes too
  NeighbourLists out, in;
  GraphPart* part = nullptr;               ///< null: of a whole graph
  const Index* whole_in_degree = nullptr;  ///< of a part: the degree of each of its nodes in the whole graph

  /// Rows of an array that is read at neighbours: one per node, on a part also for the halo's nodes.
  [[nodiscard]] Index rows() const noexcept {
    return part == nullptr ? nodes : static_cast<Index>(part->numbers().node.size());
  }
  /// Nodes of the whole graph.
  [[nodiscard]] Index total_nodes() const noexcept {
    return part == nullptr ? nodes : part->numbers().total_nodes;
  }
  /// Arcs that enter node u in the whole graph. Unchecked: u < rows().
  [[nodiscard]] Index in_degree(Index u) const noexcept {
    return whole_in_degree == nullptr ? in.degree(u) : whole_in_degree[u];
  }
};

/// The arcs of an undirected graph, which must outlive them: every edge is an arc both ways, however it was listed. A
/// part has the arcs of its owned nodes.
[[nodiscard]] inline ArcLists arc_lists(const Graph& graph) {
  const NeighbourLists lists{graph.offsets().data(), graph.targets().data()};
  GraphPart* part = graph.part();
  return {graph.own_node_count(), lists, lists, part, part == nullptr ? nullptr : part->numbers().degree.data()};
}

ArcLists arc_lists(const Graph&&) = delete;

/// Arcs of a directed graph with n nodes.
class DirectedArcs {
 public:
  /// Edge{u, v} is the arc u→v. Repeated arcs are merged, loops dropped.
  ///
  /// \throws std::invalid_argument  negative node count, an endpoint outside [0, node_count), or 2³¹ arcs or more
  DirectedArcs(Index node_count, std::span<const Edge> arcs) : nodes_(node_count) {
    constexpr Index most = std::numeric_limits<std::int32_t>::max();
    require(node_count >= 0 && node_count <= most, "node_count", node_count, "must be between 0 and 2147483647");
    require(arcs.size() <= static_cast<std::size_t>(most), "arcs", arcs.size(), "must be at most 2^31 - 1");
    std::vector<Edge> sorted;
    sorted.reserve(arcs.size());
    for (std::size_t i = 0; i < arcs.size(); ++i) {
      for (const std::int32_t node : {arcs[i].u, arcs[i].v}) {
        if (node < 0 || node >= node_count) {
          throw_invalid_argument(detail::concat("arcs[", i, "]"), node,
                                 node_count == 0
                                     ? "a graph without nodes has no arcs"
                                     : detail::concat("a node number must be between 0 and ", node_count - 1));
        }
      }
      if (arcs[i].u != arcs[i].v) sorted.push_back(arcs[i]);
    }
    std::sort(sorted.begin(), sorted.end());
    sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
    fill(sorted, out_);
    for (Edge& arc : sorted) std::swap(arc.u, arc.v);
    std::sort(sorted.begin(), sorted.end());
    fill(sorted, in_);
  }

  [[nodiscard]] Index node_count() const noexcept { return nodes_; }
  [[nodiscard]] Index arc_count() const noexcept { return out_.node.size(); }
  /// Views of the arcs, which must outlive them.
  [[nodiscard]] ArcLists lists() const& noexcept {
    return {nodes_, {out_.offset.data(), out_.node.data()}, {in_.offset.data(), in_.node.data()}};
  }
  ArcLists lists() const&& = delete;

 private:
  struct Lists {
    Buffer<std::int32_t> offset, node;
  };
  void fill(const std::vector<Edge>& sorted, Lists& lists) const {
    lists.offset.resize(nodes_ + 1);
    lists.node.resize(static_cast<Index>(sorted.size()));
    for (std::size_t i = 0; i < sorted.size(); ++i) {
      ++lists.offset[sorted[i].u + 1];
      lists.node[static_cast<Index>(i)] = sorted[i].v;
    }
    for (Index u = 0; u < nodes_; ++u) lists.offset[u + 1] += lists.offset[u];
  }

  Index nodes_;
  Lists out_, in_;
};

/// The arcs that a graph was built from, the way they were listed (Graph::listed()).
[[nodiscard]] inline DirectedArcs listed_arcs(const Graph& graph) {
  std::vector<Edge> arcs;
  for (Index a = 0; a < graph.arc_count(); ++a) {
    if (graph.listed(a)) {
      arcs.push_back({static_cast<std::int32_t>(graph.source(a)), static_cast<std::int32_t>(graph.target(a))});
    }
  }
  return DirectedArcs(graph.node_count(), arcs);
}

/// θ of an arc u → v: 1 if the graph was built from the pair (u, v) alone, −1 if from (v, u) alone, 0 if from both. A graph
/// of directed edges is made of their pairs, and of both pairs of an edge without direction. Unchecked: an arc of the graph.
[[nodiscard]] inline int direction_of(const Graph& graph, Index arc) noexcept {
  return (graph.listed(arc) ? 1 : 0) - (graph.listed(graph.reverse(arc)) ? 1 : 0);
}

/// The lists of listed_arcs(graph); a part of a graph has the lists of owned nodes, which have all of their arcs.
///
/// \param listed  listed_arcs(graph), which must outlive the lists, as must the graph
/// \throws std::invalid_argument  arcs of another number of nodes
[[nodiscard]] inline ArcLists arc_lists(const Graph& graph, const DirectedArcs& listed) {
  require(listed.node_count() == graph.node_count(), "nodes of listed", listed.node_count(),
          detail::concat("the graph has ", graph.node_count()));
  ArcLists r = listed.lists();
  r.nodes = graph.own_node_count();
  r.part = graph.part();
  if (r.part != nullptr) r.whole_in_degree = r.part->numbers().in_degree.data();
  return r;
}
ArcLists arc_lists(const Graph&&, const DirectedArcs&) = delete;
ArcLists arc_lists(const Graph&, const DirectedArcs&&) = delete;
ArcLists arc_lists(const Graph&&, const DirectedArcs&&) = delete;

}  // namespace sheafnn
