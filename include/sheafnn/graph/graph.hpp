/// \file
/// Graph: a simple undirected graph as sorted arcs (CSR) with their reverses and their edges. It remembers which way
/// each edge was listed, for networks on directed arcs.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/graph/graph_part.hpp"
#include "sheafnn/graph/types_of.hpp"

namespace sheafnn {

/// An unordered pair of nodes.
struct Edge {
  std::int32_t u = 0;
  std::int32_t v = 0;
  friend bool operator==(const Edge&, const Edge&) = default;
  friend auto operator<=>(const Edge&, const Edge&) = default;
};

/// Simple undirected graph with n nodes and m edges.
///
/// Every edge {u, v} is two arcs, u→v and v→u, sorted by (source, target): the arcs of a node are contiguous. An
/// arc stands for the incident pair u ⊴ e of its source and its edge. Edges are sorted with u < v.
///
/// Unchecked: the indices of nodes, arcs and edges that members take, which inner loops call.
class Graph {
 public:
  Graph() = default;

  /// Builds the graph from any list of node pairs: duplicates and both directions are merged, self-loops dropped
  /// and counted. listed() returns the directions.
  ///
  /// \throws std::invalid_argument  negative node count, an endpoint outside [0, node_count), or 2³⁰ edges
  ///                                or more
  Graph(Index node_count, std::span<const Edge> pairs) : node_count_(node_count) {
    constexpr Index most = std::numeric_limits<std::int32_t>::max();
    require(node_count >= 0 && node_count <= most, "node_count", node_count, "must be between 0 and 2147483647");
    // One integer for each pair: its smaller node, its larger one, and whether the larger one comes first.
    std::vector<std::uint64_t> keys;
    keys.reserve(pairs.size());
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      const Edge pair = pairs[i];
      for (const std::int32_t node : {pair.u, pair.v}) {
        if (node < 0 || node >= node_count) {
          throw_invalid_argument(detail::concat("edges[", i, "]"), node,
                                 node_count == 0
                                     ? "a graph without nodes has no edges"
                                     : detail::concat("a node number must be between 0 and ", node_count - 1));
        }
      }
      if (pair.u == pair.v) {
        ++dropped_self_loops_;
      } else {
        const auto [low, high] = std::minmax(pair.u, pair.v);
        keys.push_back(static_cast<std::uint64_t>(low) << 32 | static_cast<std::uint64_t>(high) << 1 |
                       static_cast<std::uint64_t>(pair.u > pair.v));
      }
    }
    std::sort(keys.begin(), keys.end());
    std::vector<Edge> sorted;
    std::vector<std::uint8_t> directions;
    for (const std::uint64_t key : keys) {
      const Edge edge{static_cast<std::int32_t>(key >> 32), static_cast<std::int32_t>(key >> 1 & 0x7fffffffU)};
      if (sorted.empty() || sorted.back() != edge) {
        sorted.push_back(edge);
        directions.push_back(0);
      }
      directions.back() = static_cast<std::uint8_t>(directions.back() | 1 << (key & 1));
    }
    merged_duplicates_ = static_cast<Index>(keys.size() - sorted.size());
    require(sorted.size() < (std::size_t{1} << 30), "edges", sorted.size(),
            "must be less than 2^30 distinct edges");
    build_arcs(sorted);
    directions_.resize(static_cast<Index>(directions.size()));
    std::copy(directions.begin(), directions.end(), directions_.begin());
  }

  /// Number of nodes n.
  [[nodiscard]] Index node_count() const noexcept { return node_count_; }
  /// Number of undirected edges m.
  [[nodiscard]] Index edge_count() const noexcept { return edges_.size(); }
  /// Number of arcs, 2m.
  [[nodiscard]] Index arc_count() const noexcept { return target_.size(); }
  /// Self-loops that the constructor left out.
  [[nodiscard]] Index dropped_self_loops() const noexcept { return dropped_self_loops_; }
  /// Pairs that repeated an edge (in either direction) and were merged.
  [[nodiscard]] Index merged_duplicates() const noexcept { return merged_duplicates_; }

  /// Arcs of node u are first_arc(u) … first_arc(u + 1) − 1; u = n is allowed.
  [[nodiscard]] Index first_arc(Index u) const noexcept { return offset_[u]; }
  [[nodiscard]] Index degree(Index u) const noexcept { return offset_[u + 1] - offset_[u]; }
  [[nodiscard]] Index source(Index arc) const noexcept { return source_[arc]; }
  [[nodiscard]] Index target(Index arc) const noexcept { return target_[arc]; }
  /// The opposite arc v→u of u→v.
  [[nodiscard]] Index reverse(Index arc) const noexcept { return reverse_[arc]; }
  /// Number of the undirected edge an arc belongs to.
  [[nodiscard]] Index edge_of(Index arc) const noexcept { return edge_of_[arc]; }

  /// Endpoints of edge e, u < v.
  [[nodiscard]] Edge edge(Index e) const noexcept { return edges_[e]; }
  /// Whether the pairs that the graph was built from have the arc u→v as {u, v}, in this order.
  [[nodiscard]] bool listed(Index arc) const noexcept {
    return (directions_[edge_of_[arc]] >> (source_[arc] > target_[arc] ? 1 : 0) & 1) != 0;
  }

  /// The arc u→v of edge e = {u, v}, u < v; its reverse is reverse(forward_arc(e)).
  [[nodiscard]] Index forward_arc(Index e) const noexcept { return forward_arc_[e]; }

  /// Gives the arcs features that a sheaf learner may read (ModelOptions::edge_features), e.g. both arcs the features of their
  /// edge; `count` 0 takes them away.
  ///
  /// \param values  2m × count, row-major
  /// \throws std::invalid_argument  a wrong number of values, or a value that is not finite
  void set_arc_features(std::span<const double> values, Index count) {
    const bool countable =
        count >= 0 && count <= std::numeric_limits<Index>::max() / std::max<Index>(1, arc_count());
    require(countable && static_cast<Index>(values.size()) == arc_count() * count, "arc features", values.size(),
            detail::concat("expected arcs * count = ", arc_count(), " * ", count));
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (!std::isfinite(values[i])) {
        throw_invalid_argument(detail::concat("arc features[", i, "]"), values[i], "must be finite");
      }
    }
    arc_features_ = std::vector<double>(values.begin(), values.end());  // they may be the graph's own
    arc_feature_count_ = count;
  }
  /// Number of features per arc, and all arc features, 2m × arc_feature_count().
  [[nodiscard]] Index arc_feature_count() const noexcept { return arc_feature_count_; }
  [[nodiscard]] std::span<const double> arc_features() const noexcept { return arc_features_; }

  /// Gives the edges types 0 … count − 1. A sheaf learner may have weights for each type (ModelOptions::edge_types). Both
  /// arcs of an edge have its type; `count` 0 takes the types away.
  ///
  /// \param types  m, in the order of edges()
  /// \throws std::invalid_argument  another number of types, or a type out of range
  void set_edge_types(std::span<const std::int32_t> types, Index count) {
    edge_types_.set("edge", types, count, edge_count());
  }
  /// Number of types, 0 without; and the type of every edge.
  [[nodiscard]] Index edge_type_count() const noexcept { return edge_types_.count; }
  [[nodiscard]] std::span<const std::int32_t> edge_types() const noexcept { return edge_types_.values; }
  /// Gives the nodes types 0 … count − 1, which may have stalks of their own (ModelOptions::stalks); likewise.
  ///
  /// \param types  n
  /// \throws std::invalid_argument  another number of types, or a type out of range
  void set_node_types(std::span<const std::int32_t> types, Index count) {
    node_types_.set("node", types, count, node_count());
  }
  /// Number of types, 0 without; and the type of every node.
  [[nodiscard]] Index node_type_count() const noexcept { return node_types_.count; }
  [[nodiscard]] std::span<const std::int32_t> node_types() const noexcept { return node_types_.values; }

  /// Says that the graph is the disjoint union of graphs 0 … G − 1 of consecutive nodes, for networks with outputs per
  /// graph. Graph g has the nodes offsets[g] … offsets[g + 1] − 1. No offsets take that back.
  ///
  /// \param offsets  G + 1 values, or empty
  /// \throws std::invalid_argument  offsets that do not lead from 0 to n, a graph without nodes, an edge between two graphs
  void set_graphs(std::vector<std::int32_t> offsets) {
    if (!offsets.empty()) check_graphs(offsets);
    graph_offsets_ = std::move(offsets);
  }
  /// Number of graphs that this one is the union of; 1 unless set_graphs() says otherwise.
  [[nodiscard]] Index graph_count() const noexcept {
    return graph_offsets_.empty() ? 1 : static_cast<Index>(graph_offsets_.size()) - 1;
  }
  /// First node of graph g; g = G is allowed.
  [[nodiscard]] Index first_node(Index g) const noexcept {
    return graph_offsets_.empty() ? g * node_count_ : graph_offsets_[static_cast<std::size_t>(g)];
  }

  /// The disjoint union of some of these graphs, without features and types.
  ///
  /// \param graphs  increasing indices
  /// \throws std::invalid_argument  an index out of range, or not larger than the one before
  [[nodiscard]] Graph of_graphs(std::span<const std::int32_t> graphs) const {
    Index arcs = 0;
    Graph r;
    for (std::size_t i = 0; i < graphs.size(); ++i) {
      const Index g = graphs[i];
      require(g >= 0 && g < graph_count(), ArgumentName({}, "graphs", i), g, "the union has no such graph");
      require(i == 0 || graphs[i - 1] < g, ArgumentName({}, "graphs", i), g, "graph numbers must increase");
      r.node_count_ += first_node(g + 1) - first_node(g);
      arcs += first_arc(first_node(g + 1)) - first_arc(first_node(g));
    }
    r.offset_.resize(r.node_count_ + 1);
    for (Buffer<std::int32_t>* one : {&r.source_, &r.target_, &r.reverse_, &r.edge_of_}) {
      one->resize(arcs, to_be_written);
    }
    r.forward_arc_.resize(arcs / 2, to_be_written);
    r.edges_.resize(arcs / 2, to_be_written);
    r.directions_.resize(arcs / 2, to_be_written);
    r.graph_offsets_ = {0};
    for (const std::int32_t g : graphs) {
      // A graph's nodes, arcs and edges are consecutive in the union.
      const Index begin = first_node(g), end = first_node(g + 1), node = r.graph_offsets_.back();
      const Index from = first_arc(begin), to = first_arc(end), arc = r.offset_[node];
      const auto moved = [](const auto& of, Index first, Index last, Index by, auto& into, Index at) {
        for (Index k = first; k < last; ++k) into[at + k - first] = of[k] + static_cast<std::int32_t>(by);
      };
      moved(offset_, begin + 1, end + 1, arc - from, r.offset_, node + 1);
      moved(source_, from, to, node - begin, r.source_, arc);
      moved(target_, from, to, node - begin, r.target_, arc);
      moved(reverse_, from, to, arc - from, r.reverse_, arc);
      moved(edge_of_, from, to, (arc - from) / 2, r.edge_of_, arc);
      moved(forward_arc_, from / 2, to / 2, arc - from, r.forward_arc_, arc / 2);
      for (Index e = from / 2; e < to / 2; ++e) {
        const std::int32_t by = static_cast<std::int32_t>(node - begin);
        r.edges_[arc / 2 + e - from / 2] = {edges_[e].u + by, edges_[e].v + by};
      }
      std::copy(directions_.data() + from / 2, directions_.data() + to / 2, r.directions_.data() + arc / 2);
      r.graph_offsets_.push_back(static_cast<std::int32_t>(node + end - begin));
    }
    return r;
  }

  /// Makes the graph one of several parts of a whole (null: it is a whole). The part must outlive the graph and its
  /// copies. Unchecked: its indices are of this graph.
  void set_part(GraphPart* part) noexcept { part_ = part; }
  [[nodiscard]] GraphPart* part() const noexcept { return part_; }
  /// This process owns the nodes 0 … own_node_count() − 1. It owns all nodes unless the graph is a part.
  [[nodiscard]] Index own_node_count() const noexcept {
    return part_ == nullptr ? node_count_ : part_->numbers().own;
  }

  /// n + 1 CSR offsets.
  [[nodiscard]] std::span<const std::int32_t> offsets() const noexcept { return offset_.view(); }
  /// 2m sources, non-decreasing.
  [[nodiscard]] std::span<const std::int32_t> sources() const noexcept { return source_.view(); }
  /// 2m targets, increasing within a node.
  [[nodiscard]] std::span<const std::int32_t> targets() const noexcept { return target_.view(); }
  /// 2m opposite arcs.
  [[nodiscard]] std::span<const std::int32_t> reverses() const noexcept { return reverse_.view(); }
  /// m edges, sorted.
  [[nodiscard]] std::span<const Edge> edges() const noexcept { return edges_.view(); }

 private:
  void check_graphs(std::span<const std::int32_t> offsets) const {
    require(offsets.front() == 0 && offsets.back() == node_count_ && offsets.size() >= 2, "graph offsets",
            detail::concat(offsets.front(), " … ", offsets.back()),
            detail::concat("they must lead from 0 to the number of nodes, ", node_count_));
    std::vector<std::int32_t> graph_of(static_cast<std::size_t>(node_count_));
    for (std::size_t g = 0; g + 1 < offsets.size(); ++g) {
      if (offsets[g + 1] <= offsets[g] || offsets[g + 1] > node_count_) {
        throw_invalid_argument(
            detail::concat("nodes of graph ", g), Index{offsets[g + 1]} - offsets[g],
            "a graph needs at least one node, and offsets must increase up to the number of nodes");
      }
      std::fill(graph_of.begin() + offsets[g], graph_of.begin() + offsets[g + 1], static_cast<std::int32_t>(g));
    }
    for (const Edge& e : edges_) {
      const std::int32_t one = graph_of[static_cast<std::size_t>(e.u)],
                         other = graph_of[static_cast<std::size_t>(e.v)];
      if (one == other) continue;
      throw_invalid_argument("edge", detail::concat(e.u, "-", e.v),
                             detail::concat("it joins graphs ", one, " and ", other,
                                            "; graphs of a set are disjoint"));
    }
  }
  void build_arcs(const std::vector<Edge>& sorted) {
    const Index m = static_cast<Index>(sorted.size());
    edges_.resize(m);
    std::copy(sorted.begin(), sorted.end(), edges_.begin());
    offset_.resize(node_count_ + 1);
    for (const Edge& e : sorted) {
      ++offset_[e.u + 1];
      ++offset_[e.v + 1];
    }
    for (Index u = 0; u < node_count_; ++u) offset_[u + 1] += offset_[u];
    source_.resize(2 * m);
    target_.resize(2 * m);
    reverse_.resize(2 * m);
    edge_of_.resize(2 * m);
    forward_arc_.resize(m);
    // Edges come sorted by (u, v): a node first meets its smaller neighbours (as v, in increasing u), and these
    // precede its larger ones, so that one pass per side leaves every node's targets sorted.
    std::vector<std::int32_t> next(offset_.begin(), offset_.end());
    std::vector<std::int32_t> backward(static_cast<std::size_t>(m));
    const auto place = [&](std::int32_t from, std::int32_t to, Index e) {
      const std::int32_t arc = next[static_cast<std::size_t>(from)]++;
      source_[arc] = from;
      target_[arc] = to;
      edge_of_[arc] = static_cast<std::int32_t>(e);
      return arc;
    };
    for (Index e = 0; e < m; ++e) backward[static_cast<std::size_t>(e)] = place(edges_[e].v, edges_[e].u, e);
    for (Index e = 0; e < m; ++e) {
      const std::int32_t forward = place(edges_[e].u, edges_[e].v, e);
      forward_arc_[e] = forward;
      reverse_[forward] = backward[static_cast<std::size_t>(e)];
      reverse_[backward[static_cast<std::size_t>(e)]] = forward;
    }
  }

  Index node_count_ = 0, arc_feature_count_ = 0;
  GraphPart* part_ = nullptr;
  std::vector<double> arc_features_;
  TypesOf edge_types_, node_types_;
  std::vector<std::int32_t> graph_offsets_;  ///< of a disjoint union; empty: one graph
  Index dropped_self_loops_ = 0;
  Index merged_duplicates_ = 0;
  Buffer<std::int32_t> offset_ = Buffer<std::int32_t>(1);
  Buffer<std::int32_t> source_, target_, reverse_, edge_of_, forward_arc_;
  Buffer<Edge> edges_;
  /// Two bits per edge, bit 0: listed from its smaller node, bit 1: from its larger node.
  Buffer<std::uint8_t> directions_;

  friend Graph graph_of_entries(Index n, std::vector<Edge> entries);
};

/// The graph of the entries (u, v) of an n × n adjacency matrix; they are its listed arcs. The two entries of an edge,
/// (u, v) and (v, u), do not count as duplicates: merged_duplicates() is 0.
///
/// \throws std::invalid_argument  as Graph
[[nodiscard]] inline Graph graph_of_entries(Index n, std::vector<Edge> entries) {
  Graph graph(n, entries);
  graph.merged_duplicates_ = 0;
  return graph;
}

namespace detail {

/// Index of the arc from u to v. Unchecked: that the arc exists.
[[nodiscard]] inline Index arc_between(const Graph& graph, Index u, Index v) {
  const auto targets = graph.targets().subspan(static_cast<std::size_t>(graph.first_arc(u)),
                                               static_cast<std::size_t>(graph.degree(u)));
  return graph.first_arc(u) + (std::lower_bound(targets.begin(), targets.end(), v) - targets.begin());
}

}  // namespace detail

}  // namespace sheafnn
