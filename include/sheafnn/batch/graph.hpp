/// \file
/// A graph in the memory of an executor.
///
/// An incident pair is numbered side · m + e: side 0 of edge e = {u, v}, u < v, is the arc u→v, side 1 its
/// reverse. Values per pair are stored entry by entry, pairs innermost, so that neighbouring threads read
/// neighbouring values.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "sheafnn/batch/array.hpp"
#include "sheafnn/batch/execution.hpp"
#include "sheafnn/core/config.hpp"
#include "sheafnn/graph/directed_arcs.hpp"
#include "sheafnn/graph/graph.hpp"
#include "sheafnn/sheaf/normalisation.hpp"

namespace sheafnn::batch::detail {

/// What kernels see of a graph.
template <class S>
struct GraphView {
  Index nodes, edges;                ///< edges are half of the directed arcs
  const std::int32_t* offset;        ///< nodes + 1: first arc of each node
  const std::int32_t* target;        ///< per arc
  const std::int32_t* arc_pair;      ///< per arc: its incident pair
  const std::int32_t* edge_node;     ///< per pair: the node it belongs to (u for side 0, v for side 1)
  const std::int32_t* pair_arc;      ///< per pair: its arc
  const S* degree;                   ///< per node
  const S* inverse_root;             ///< per node: (deg + 1)^{-1/2}, or deg^{-1/2} (see DiffusionShape)
  Index segments;                    ///< of the arcs of high-degree nodes
  const std::int32_t* node_segment;  ///< nodes + 1: first segment of each node; nodes with few arcs have no segments
  const std::int32_t* segment_arc;   ///< per segment: its first arc
  const std::int32_t* segment_node;  ///< per segment: its node
  const S* pair_feature;             ///< feature j of the arc of pair p at j · 2m + p; null without
  Index crowded;                     ///< high-degree nodes without segments, whose arcs a warp adds up
  const std::int32_t* crowded_node;  ///< their indices
  const std::int8_t* direction;      ///< per edge: direction_of() of its side 0

  /// Arcs of nodes of a higher degree (high-degree nodes) are summed in segments, or by a warp.
  static constexpr int high_degree = 32;
  /// Arcs of a segment.
  static constexpr int segment = 128;
  /// Threads of a launch, from which on a device has none to spare for the diffusion's sums.
  static constexpr Index enough_threads = Index{1} << 16;

  [[nodiscard]] SHEAFNN_HD Index pairs() const noexcept { return 2 * edges; }
  /// Rows of features that a walk sums up before nodes take their sums.
  [[nodiscard]] SHEAFNN_HD Index walk_rows() const noexcept { return segments; }
  /// Lanes for the diffusion's sums over the arcs of the other nodes, or over the segments of a node. While there are
  /// threads to spare, as many as a node has arcs on average, at most 8.
  ///
  /// \param sums  how many there are side by side
  [[nodiscard]] int gather_lanes(Index sums) const noexcept {
    int lanes = 1;
    while (lanes < 8 && lanes * nodes < 2 * edges && 2 * lanes * sums <= enough_threads) lanes *= 2;
    return lanes;
  }
  /// Lanes for the sums of segments: a warp, while there are threads to spare.
  ///
  /// \param sums  how many there are side by side
  [[nodiscard]] static int segment_lanes(Index sums) noexcept {
    int lanes = max_lanes;
    while (lanes > 1 && lanes * sums > enough_threads) lanes /= 2;
    return lanes;
  }
  /// Lanes for sums over the arcs of all nodes: a warp, for the node of the highest degree, while there are threads to
  /// spare.
  ///
  /// \param sums  how many there are side by side
  [[nodiscard]] int arc_lanes(Index sums) const noexcept {
    constexpr Index enough_for_all = Index{1} << 22;
    const int least = team_lanes(nodes > 0 ? 2 * edges / nodes : 0);
    int lanes = max_lanes;
    while (lanes > least && lanes * sums > enough_for_all) lanes /= 2;
    return lanes;
  }
};

/// The arcs that leave nodes, and the arcs that enter them; in an undirected graph both are equal.
template <class S>
struct ArcViews {
  GraphView<S> out, in;

  [[nodiscard]] Index segments() const noexcept { return std::max(out.segments, in.segments); }
};

/// Owner of the arrays.
template <class Executor, class S>
class BatchGraph {
 public:
  /// In a graph of at most this many high-degree nodes, and of at most this degree, warps sum over their arcs: that saves
  /// a launch.
  static constexpr Index most_crowded = 4096, most_arcs = 256;

  /// \param arc_features       number of arc features that are read: all features of the graph's arcs, or 0
  /// \param augmented_filters  fixed filters are normalised by (deg + 1)^{-1/2}, otherwise by deg^{-1/2}
  BatchGraph(Executor& executor, const Graph& graph, Index arc_features = 0, bool augmented_filters = true)
      : BatchGraph(executor, graph.node_count(), {graph.offsets().data(), graph.targets().data()}) {
    const std::size_t m = static_cast<std::size_t>(edges_), n = static_cast<std::size_t>(nodes_);
    std::vector<std::int32_t> arc_pair(2 * m), pair_arc(2 * m), edge_node(2 * m);
    std::vector<std::int8_t> direction(m);
    for (std::size_t e = 0; e < m; ++e) {
      const Edge edge = graph.edge(static_cast<Index>(e));
      const Index forward = graph.forward_arc(static_cast<Index>(e)), backward = graph.reverse(forward);
      direction[e] = static_cast<std::int8_t>(direction_of(graph, forward));
      edge_node[e] = edge.u;
      edge_node[m + e] = edge.v;
      pair_arc[e] = static_cast<std::int32_t>(forward);
      pair_arc[m + e] = static_cast<std::int32_t>(backward);
      arc_pair[static_cast<std::size_t>(forward)] = static_cast<std::int32_t>(e);
      arc_pair[static_cast<std::size_t>(backward)] = static_cast<std::int32_t>(m + e);
    }
    std::vector<S> inverse_root(n);
    for (std::size_t u = 0; u < n; ++u)
      inverse_root[u] = sheafnn::detail::filter_scale<S>(graph.degree(static_cast<Index>(u)), augmented_filters);
    const auto put = [&]<class T>(const std::vector<T>& values) {
      return Array<Executor, T>(executor, "graph", values);
    };
    arc_pair_ = put(arc_pair);
    edge_node_ = put(edge_node);
    pair_arc_ = put(pair_arc);
    direction_ = put(direction);
    inverse_root_ = put(inverse_root);
    std::vector<S> pair_feature;
    for (Index j = 0; j < arc_features; ++j) {
      for (const std::int32_t arc : pair_arc) {
        pair_feature.push_back(
            static_cast<S>(graph.arc_features()[static_cast<std::size_t>(arc * arc_features + j)]));
      }
    }
    pair_feature_ = put(pair_feature);
  }
  /// Arcs without pairs, for walks that have no blocks. Unchecked: the indices of the nodes.
  BatchGraph(Executor& executor, Index nodes, const NeighbourLists& arcs)
      : nodes_(nodes),
        edges_(arcs.offset[nodes] / 2),
        offset_(executor, "graph", std::span(arcs.offset, static_cast<std::size_t>(nodes + 1))),
        target_(executor, "graph", std::span(arcs.node, static_cast<std::size_t>(arcs.offset[nodes]))) {
    std::vector<S> degree(static_cast<std::size_t>(nodes));
    Index largest_degree = 0, high_nodes = 0;
    for (Index u = 0; u < nodes; ++u) {
      degree[static_cast<std::size_t>(u)] = static_cast<S>(arcs.degree(u));
      largest_degree = std::max(largest_degree, arcs.degree(u));
      if (arcs.degree(u) > GraphView<S>::high_degree) ++high_nodes;
    }
    const bool warps = largest_degree <= most_arcs && high_nodes <= most_crowded;
    std::vector<std::int32_t> node_segment = {0}, segment_arc, segment_node, crowded;
    for (Index u = 0; u < nodes; ++u) {
      const bool high = arcs.degree(u) > GraphView<S>::high_degree;
      if (high && warps) {
        crowded.push_back(static_cast<std::int32_t>(u));
      } else if (high) {
        for (Index arc = arcs.offset[u]; arc < arcs.offset[u + 1]; arc += GraphView<S>::segment) {
          segment_arc.push_back(static_cast<std::int32_t>(arc));
          segment_node.push_back(static_cast<std::int32_t>(u));
        }
      }
      node_segment.push_back(static_cast<std::int32_t>(segment_arc.size()));
    }
    const auto put = [&]<class T>(const std::vector<T>& values) {
      return Array<Executor, T>(executor, "graph", values);
    };
    degree_ = put(degree);
    node_segment_ = put(node_segment);
    segment_arc_ = put(segment_arc);
    segment_node_ = put(segment_node);
    crowded_node_ = put(crowded);
  }

  [[nodiscard]] GraphView<S> view() const noexcept {
    return {nodes_,
            edges_,
            offset_.data(),
            target_.data(),
            arc_pair_.data(),
            edge_node_.data(),
            pair_arc_.data(),
            degree_.data(),
            inverse_root_.data(),
            segment_arc_.size(),
            node_segment_.data(),
            segment_arc_.data(),
            segment_node_.data(),
            pair_feature_.data(),
            crowded_node_.size(),
            crowded_node_.data(),
            direction_.data()};
  }

 private:
  Index nodes_, edges_;
  Array<Executor, std::int32_t> offset_, target_, arc_pair_, edge_node_, pair_arc_;
  Array<Executor, std::int8_t> direction_;
  Array<Executor, S> degree_, inverse_root_, pair_feature_;
  Array<Executor, std::int32_t> node_segment_, segment_arc_, segment_node_, crowded_node_;
};

}  // namespace sheafnn::batch::detail
