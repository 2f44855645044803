/// \file
/// LocalPart: one rank's part of a graph, and with whom it exchanges which rows. Nothing here sends a message: both sides
/// of every exchange follow from the graph and the partition.
///
/// Nodes: interior ones, other owned ones, both in the order of their numbers in the whole graph, then the halo, in the
/// order of owners and numbers. The halo rows of one owner lie one behind the other, so that they are received in place.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "sheafnn/distributed/partition.hpp"
#include "sheafnn/graph/features.hpp"
#include "sheafnn/graph/graph.hpp"
#include "sheafnn/graph/graph_part.hpp"

namespace sheafnn::distributed {

/// Rows that a part exchanges with another one.
struct Neighbour {
  int rank = 0;
  Index halo = 0;   ///< first node of the halo that it owns
  Index count = 0;  ///< how many of them
  std::vector<std::int32_t> sent;  ///< owned nodes that are in its halo, in the order that they have there
};

/// A rank's part. \see graph/graph_part.hpp
struct LocalPart {
  PartNumbers numbers;
  Graph graph;             ///< without its part set
  NodeFeatures features;   ///< of owned nodes; rows of the halo are empty
  std::vector<Neighbour> neighbours;  ///< in increasing order of ranks
};

namespace detail {

/// Number of the arc from u to v. Unchecked: that there is one.
[[nodiscard]] inline Index arc_between(const Graph& graph, Index u, Index v) {
  const auto targets = graph.targets().subspan(static_cast<std::size_t>(graph.first_arc(u)),
                                               static_cast<std::size_t>(graph.degree(u)));
  return graph.first_arc(u) + (std::lower_bound(targets.begin(), targets.end(), v) - targets.begin());
}

/// Nodes of a part and the numbers that they have in it.
class PartNodes {
 public:
  PartNodes(const Graph& graph, const Partition& partition, std::int32_t rank, PartNumbers& numbers)
      : local_(static_cast<std::size_t>(graph.node_count()), -1) {
    std::vector<Index> boundary;
    std::vector<std::pair<std::int32_t, Index>> halo;  // owner and node
    const auto owner = [&](Index u) { return partition.owner[static_cast<std::size_t>(u)]; };
    for (Index u = 0; u < graph.node_count(); ++u) {
      if (owner(u) != rank) continue;
      bool interior = true;
      for (Index arc = graph.first_arc(u); arc < graph.first_arc(u + 1); ++arc) {
        const Index v = graph.target(arc);
        if (owner(v) == rank) continue;
        interior = false;
        halo.emplace_back(owner(v), v);
      }
      (interior ? numbers.node : boundary).push_back(u);
    }
    numbers.interior = static_cast<Index>(numbers.node.size());
    numbers.node.insert(numbers.node.end(), boundary.begin(), boundary.end());
    numbers.own = static_cast<Index>(numbers.node.size());
    std::sort(halo.begin(), halo.end());
    halo.erase(std::unique(halo.begin(), halo.end()), halo.end());
    for (const auto& [of, u] : halo) numbers.node.push_back(u);
    for (std::size_t i = 0; i < numbers.node.size(); ++i) {
      local_[static_cast<std::size_t>(numbers.node[i])] = static_cast<std::int32_t>(i);
    }
  }
  /// −1: not in the part.
  [[nodiscard]] std::int32_t local(Index u) const { return local_[static_cast<std::size_t>(u)]; }

 private:
  std::vector<std::int32_t> local_;
};

[[nodiscard]] inline Graph part_graph(const Graph& whole, const PartNodes& nodes, PartNumbers& numbers) {
  std::vector<Edge> edges;
  for (Index u = 0; u < numbers.own; ++u) {
    const Index of = numbers.node[static_cast<std::size_t>(u)];
    for (Index arc = whole.first_arc(of); arc < whole.first_arc(of + 1); ++arc) {
      const std::int32_t v = nodes.local(whole.target(arc));
      if (u < v) edges.push_back({static_cast<std::int32_t>(u), v});
    }
  }
  Graph graph(static_cast<Index>(numbers.node.size()), edges);
  numbers.arc.resize(static_cast<std::size_t>(graph.arc_count()));
  for (Index arc = 0; arc < graph.arc_count(); ++arc) {
    numbers.arc[static_cast<std::size_t>(arc)] =
        static_cast<std::uint32_t>(arc_between(whole, numbers.node[static_cast<std::size_t>(graph.source(arc))],
                                               numbers.node[static_cast<std::size_t>(graph.target(arc))]));
  }
  for (Index e = 0; e < graph.edge_count(); ++e) {
    if (graph.edge(e).v >= numbers.own) numbers.cut.push_back(static_cast<std::int32_t>(e));
  }
  if (const Index count = whole.arc_feature_count(); count > 0) {
    std::vector<double> values;
    for (const std::uint32_t arc : numbers.arc) {
      const auto row = whole.arc_features().subspan(arc * static_cast<std::size_t>(count), static_cast<std::size_t>(count));
      values.insert(values.end(), row.begin(), row.end());
    }
    graph.set_arc_features(values, count);
  }
  return graph;
}

[[nodiscard]] inline NodeFeatures part_features(const NodeFeatures& whole, PartNumbers& numbers) {
  std::vector<Index> offsets = {0};
  std::vector<std::int32_t> columns;
  std::vector<double> values;
  for (std::size_t u = 0; u < numbers.node.size(); ++u) {
    if (static_cast<Index>(u) < numbers.own) {
      const std::size_t of = static_cast<std::size_t>(numbers.node[u]);
      const std::size_t first = static_cast<std::size_t>(whole.offsets()[of]);
      const std::size_t count = static_cast<std::size_t>(whole.offsets()[of + 1]) - first;
      const auto row = whole.column_of().subspan(first, count);
      const auto numbers_of_row = whole.values().subspan(first, count);
      numbers.first_entry.push_back(static_cast<Index>(first));
      columns.insert(columns.end(), row.begin(), row.end());
      values.insert(values.end(), numbers_of_row.begin(), numbers_of_row.end());
    }
    offsets.push_back(static_cast<Index>(values.size()));
  }
  return NodeFeatures::from_csr(std::move(offsets), std::move(columns), std::move(values), whole.columns());
}

[[nodiscard]] inline std::vector<Neighbour> neighbours_of(const Graph& graph, const Partition& partition,
                                                          const PartNumbers& numbers) {
  std::vector<Neighbour> r;
  const auto owner = [&](Index u) {
    return partition.owner[static_cast<std::size_t>(numbers.node[static_cast<std::size_t>(u)])];
  };
  for (Index v = numbers.own; v < graph.node_count(); ++v) {
    if (r.empty() || r.back().rank != owner(v)) r.push_back({owner(v), v, 0, {}});
    ++r.back().count;
  }
  for (Neighbour& neighbour : r) {
    for (Index v = neighbour.halo; v < neighbour.halo + neighbour.count; ++v) {
      for (Index arc = graph.first_arc(v); arc < graph.first_arc(v + 1); ++arc) {
        neighbour.sent.push_back(static_cast<std::int32_t>(graph.target(arc)));  // all are owned
      }
    }
    const auto number = [&](std::int32_t u) { return numbers.node[static_cast<std::size_t>(u)]; };
    std::sort(neighbour.sent.begin(), neighbour.sent.end(),
              [&](std::int32_t a, std::int32_t b) { return number(a) < number(b); });
    neighbour.sent.erase(std::unique(neighbour.sent.begin(), neighbour.sent.end()), neighbour.sent.end());
  }
  return r;
}

}  // namespace detail

/// The part of a rank.
///
/// \param features  n × p
/// \throws std::invalid_argument  features of another number of rows, a rank that is no part, what validate() throws
[[nodiscard]] inline LocalPart local_part(const Graph& graph, const NodeFeatures& features, const Partition& partition,
                                          int rank) {
  validate(partition, graph.node_count());
  require_between("rank", rank, 0, partition.parts - 1);
  require(features.rows() == graph.node_count(), "features.rows", features.rows(),
          sheafnn::detail::concat("must equal the number of nodes, ", graph.node_count()));
  LocalPart r;
  r.numbers.total_nodes = graph.node_count();
  r.numbers.total_edges = graph.edge_count();
  const detail::PartNodes nodes(graph, partition, rank, r.numbers);
  r.graph = detail::part_graph(graph, nodes, r.numbers);
  r.features = detail::part_features(features, r.numbers);
  r.neighbours = detail::neighbours_of(r.graph, partition, r.numbers);
  return r;
}

}  // namespace sheafnn::distributed
