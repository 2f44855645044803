/// \file
/// LocalPart: one rank's part of a graph, and which rows it exchanges with which rank. It is built from the rows that the
/// rank owns: the neighbours of its nodes. Both sides of every exchange follow from these and from the partition.
///
/// Nodes: interior nodes, then other owned nodes, both in the order of their indices in the whole graph. Then the halo, in
/// the order of owners and indices. The halo rows of one owner are contiguous, so that they are received in place.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "sheafnn/distributed/partition.hpp"
#include "sheafnn/graph/features.hpp"
#include "sheafnn/graph/graph.hpp"
#include "sheafnn/graph/graph_part.hpp"

namespace sheafnn::distributed {

/// Rows that a part exchanges with another one. Of a graph both have some; of a hypergraph one of them may have none.
struct Neighbour {
  int rank = 0;
  Index halo = 0;                  ///< first node of the halo that it owns
  Index count = 0;                 ///< number of these nodes
  std::vector<std::int32_t> sent;  ///< owned nodes that are in its halo, in the order that they have there
};

/// A rank's part. \see graph/graph_part.hpp
struct LocalPart {
  PartNumbers numbers;  ///< its degrees of the halo's nodes count the part's arcs: RowExchange asks their owners
  Graph graph;          ///< without its part set; its arcs are listed as in the whole graph
  std::vector<Neighbour> neighbours;  ///< in increasing order of ranks
};

/// The neighbours of the nodes that a rank owns; all indices are indices in the whole graph.
struct OwnRows {
  Index total_nodes = 0, total_edges = 0;
  std::vector<Index> node;          ///< owned nodes, increasing
  std::vector<Index> first_arc;     ///< of each
  std::vector<Index> offset = {0};  ///< of each in `target`, and the end of the last
  std::vector<Index> target;        ///< neighbours, increasing within a node
  /// For each node of `target`: is the arc to it listed (Graph::listed()), and the arc back? Empty: all are.
  std::vector<std::array<bool, 2>> listed;
};

/// An arc from a node of the halo to an owned one.
struct HaloArc {
  std::int32_t owner = 0;  ///< of its source
  Index source = 0, target = 0;
  friend bool operator==(const HaloArc&, const HaloArc&) = default;
  friend auto operator<=>(const HaloArc&, const HaloArc&) = default;
};

/// The arcs that enter a part, in the order of owners, sources and targets. Unchecked: owner(u) is a rank.
template <class Owner>
[[nodiscard]] std::vector<HaloArc> halo_arcs(const OwnRows& rows, int rank, const Owner& owner) {
  std::vector<HaloArc> r;
  for (std::size_t u = 0; u < rows.node.size(); ++u) {
    for (Index k = rows.offset[u]; k < rows.offset[u + 1]; ++k) {
      const Index v = rows.target[static_cast<std::size_t>(k)];
      if (owner(v) != rank) r.push_back({static_cast<std::int32_t>(owner(v)), v, rows.node[u]});
    }
  }
  std::sort(r.begin(), r.end());
  return r;
}

namespace detail {

/// Nodes of a part and their indices in it.
class PartNodes {
 public:
  PartNodes(const OwnRows& rows, std::span<const HaloArc> entering, PartNumbers& numbers) {
    std::vector<bool> boundary(rows.node.size());
    const auto row_of = [&](Index u) {
      return static_cast<std::size_t>(std::lower_bound(rows.node.begin(), rows.node.end(), u) - rows.node.begin());
    };
    for (const HaloArc& arc : entering) boundary[row_of(arc.target)] = true;
    for (const bool wanted : {false, true}) {
      for (std::size_t u = 0; u < boundary.size(); ++u) {
        if (boundary[u] == wanted) row_.push_back(u);
      }
      if (!wanted) numbers.interior = static_cast<Index>(row_.size());
    }
    for (const std::size_t u : row_) numbers.node.push_back(rows.node[u]);
    numbers.own = static_cast<Index>(numbers.node.size());
    for (std::size_t i = 0; i < entering.size(); ++i) {
      if (i == 0 || entering[i].source != entering[i - 1].source) numbers.node.push_back(entering[i].source);
    }
    for (std::size_t i = 0; i < numbers.node.size(); ++i) {
      local_.emplace_back(numbers.node[i], static_cast<std::int32_t>(i));
    }
    std::sort(local_.begin(), local_.end());
  }
  /// The index in the part. Unchecked: that the part has the node.
  [[nodiscard]] std::int32_t local(Index u) const {
    return std::lower_bound(local_.begin(), local_.end(), std::pair<Index, std::int32_t>(u, -1))->second;
  }
  /// The row of an owned node of the part.
  [[nodiscard]] std::size_t row(Index u) const { return row_[static_cast<std::size_t>(u)]; }

 private:
  std::vector<std::size_t> row_;
  std::vector<std::pair<Index, std::int32_t>> local_;
};

/// Indices in the whole graph of a part's arcs: arcs of owned nodes are in their rows, arcs that enter the part in
/// `number`.
inline void number_arcs(const OwnRows& rows, const PartNodes& nodes, std::span<const HaloArc> entering,
                        std::span<const Index> number, const Graph& graph, PartNumbers& numbers) {
  std::vector<std::tuple<Index, Index, Index>> of_halo;  // source, target, index
  for (std::size_t i = 0; i < entering.size(); ++i)
    of_halo.emplace_back(entering[i].source, entering[i].target, number[i]);
  std::sort(of_halo.begin(), of_halo.end());
  numbers.arc.resize(graph.arc_count(), 2 * rows.total_edges > Index{1} << 32);
  for (Index arc = 0; arc < graph.arc_count(); ++arc) {
    const Index u = graph.source(arc), v = numbers.node[static_cast<std::size_t>(graph.target(arc))];
    Index found = 0;
    if (u < numbers.own) {
      const std::size_t row = nodes.row(u);
      const auto begin = rows.target.begin() + rows.offset[row], end = rows.target.begin() + rows.offset[row + 1];
      found = rows.first_arc[row] + (std::lower_bound(begin, end, v) - begin);
    } else {
      const std::tuple<Index, Index, Index> wanted(numbers.node[static_cast<std::size_t>(u)], v, -1);
      found = std::get<2>(*std::lower_bound(of_halo.begin(), of_halo.end(), wanted));
    }
    numbers.arc.set(arc, found);
  }
}

[[nodiscard]] inline std::vector<Neighbour> neighbours_of(std::span<const HaloArc> entering,
                                                          const PartNodes& nodes, const PartNumbers& numbers) {
  std::vector<Neighbour> r;
  for (std::size_t i = 0; i < entering.size(); ++i) {
    const HaloArc& arc = entering[i];
    if (r.empty() || r.back().rank != arc.owner) r.push_back({arc.owner, nodes.local(arc.source), 0, {}});
    if (i == 0 || arc.source != entering[i - 1].source) ++r.back().count;
    r.back().sent.push_back(nodes.local(arc.target));
  }
  const auto by_number = [&](std::int32_t a, std::int32_t b) {
    return numbers.node[static_cast<std::size_t>(a)] < numbers.node[static_cast<std::size_t>(b)];
  };
  for (Neighbour& neighbour : r) {
    std::sort(neighbour.sent.begin(), neighbour.sent.end(), by_number);
    neighbour.sent.erase(std::unique(neighbour.sent.begin(), neighbour.sent.end()), neighbour.sent.end());
  }
  return r;
}

}  // namespace detail

/// The part with these rows. \param entering, number  halo_arcs(), and the indices of these arcs in the whole graph
///
/// \throws std::invalid_argument  a graph with more arcs than noise has addresses, 2⁵², a part with more nodes or edges
///         than Graph takes, or without nodes. Unchecked: that rows and arcs belong together
[[nodiscard]] inline LocalPart part_of_rows(const OwnRows& rows, std::span<const HaloArc> entering,
                                            std::span<const Index> number) {
  require(rows.total_edges <= ArcNumbers::most / 2, "edges", rows.total_edges,
          "arcs have 52-bit addresses: at most 2^51");
  const std::size_t ends = rows.target.size() + entering.size();
  require(ends / 2 < std::size_t{1} << 30, "edges of a part", ends / 2, "must be less than 2^30; use more ranks");
  require(!rows.node.empty(), "nodes of a part", 0, "every rank needs a node; use fewer ranks");
  LocalPart r;
  r.numbers.total_nodes = rows.total_nodes;
  r.numbers.total_edges = rows.total_edges;
  const detail::PartNodes nodes(rows, entering, r.numbers);
  std::vector<Edge> edges;
  for (Index u = 0; u < r.numbers.own; ++u) {
    const std::size_t row = nodes.row(u);
    for (Index k = rows.offset[row]; k < rows.offset[row + 1]; ++k) {
      const std::size_t i = static_cast<std::size_t>(k);
      const std::int32_t from = static_cast<std::int32_t>(u), to = nodes.local(rows.target[i]);
      if (from > to) continue;
      if (rows.listed.empty() || rows.listed[i][0]) edges.push_back({from, to});
      if (rows.listed.empty() || rows.listed[i][1]) edges.push_back({to, from});
    }
  }
  r.graph = graph_of_entries(static_cast<Index>(r.numbers.node.size()), std::move(edges));
  for (Index e = 0; e < r.graph.edge_count(); ++e) {
    if (r.graph.edge(e).v >= r.numbers.own) r.numbers.cut.push_back(static_cast<std::int32_t>(e));
  }
  for (Index u = 0; u < r.graph.node_count(); ++u) r.numbers.degree.push_back(r.graph.degree(u));
  r.numbers.in_degree.resize(r.numbers.degree.size());
  for (Index arc = 0; arc < r.graph.arc_count(); ++arc) {
    if (r.graph.listed(arc)) ++r.numbers.in_degree[static_cast<std::size_t>(r.graph.target(arc))];
  }
  detail::number_arcs(rows, nodes, entering, number, r.graph, r.numbers);
  r.neighbours = detail::neighbours_of(entering, nodes, r.numbers);
  return r;
}

/// The part of a rank of a graph that the rank has as a whole.
///
/// \throws std::invalid_argument  a rank that is not a part, what validate() and part_of_rows() throw
[[nodiscard]] inline LocalPart local_part(const Graph& graph, const Partition& partition, int rank) {
  validate(partition, graph.node_count());
  require_between("rank", rank, 0, partition.parts - 1);
  const auto owner = [&](Index u) { return partition.owner[static_cast<std::size_t>(u)]; };
  OwnRows rows;
  rows.total_nodes = graph.node_count();
  rows.total_edges = graph.edge_count();
  for (Index u = 0; u < graph.node_count(); ++u) {
    if (owner(u) != rank) continue;
    rows.node.push_back(u);
    rows.first_arc.push_back(graph.first_arc(u));
    for (Index arc = graph.first_arc(u); arc < graph.first_arc(u + 1); ++arc) {
      rows.target.push_back(graph.target(arc));
      rows.listed.push_back({graph.listed(arc), graph.listed(graph.reverse(arc))});
    }
    rows.offset.push_back(static_cast<Index>(rows.target.size()));
  }
  const std::vector<HaloArc> entering = halo_arcs(rows, rank, owner);
  std::vector<Index> number;
  number.reserve(entering.size());
  for (const HaloArc& arc : entering) number.push_back(sheafnn::detail::arc_between(graph, arc.source, arc.target));
  LocalPart r = part_of_rows(rows, entering, number);
  sheafnn::detail::take_attributes(
      r.graph, graph, [&](Index arc) { return r.numbers.arc[arc]; },
      [&](Index u) { return r.numbers.node[static_cast<std::size_t>(u)]; });
  return r;
}

/// The features of a part's nodes, of the owned ones; rows of the halo are empty. Fills in numbers.first_entry.
///
/// \param whole  of the nodes from `first` on, of which all owned nodes are some
/// \param entry  number of their first stored feature in the features of the whole graph
/// \throws std::invalid_argument  an owned node that has no row
[[nodiscard]] inline NodeFeatures part_features(const NodeFeatures& whole, PartNumbers& numbers, Index first = 0,
                                                Index entry = 0) {
  std::vector<Index> offsets = {0};
  std::vector<std::int32_t> columns;
  std::vector<double> values;
  numbers.first_entry.clear();
  for (std::size_t u = 0; u < numbers.node.size(); ++u) {
    if (static_cast<Index>(u) < numbers.own) {
      const Index row = numbers.node[u] - first;
      require_between("row of the features", row, 0, whole.rows() - 1);
      const std::size_t begin = static_cast<std::size_t>(whole.offsets()[static_cast<std::size_t>(row)]);
      const std::size_t count =
          static_cast<std::size_t>(whole.offsets()[static_cast<std::size_t>(row) + 1]) - begin;
      const auto of_row = whole.column_of().subspan(begin, count);
      const auto numbers_of_row = whole.values().subspan(begin, count);
      numbers.first_entry.push_back(entry + static_cast<Index>(begin));
      columns.insert(columns.end(), of_row.begin(), of_row.end());
      values.insert(values.end(), numbers_of_row.begin(), numbers_of_row.end());
    }
    offsets.push_back(static_cast<Index>(values.size()));
  }
  NodeFeatures r =
      NodeFeatures::from_csr(std::move(offsets), std::move(columns), std::move(values), whole.columns());
  r.set_indicators({whole.indicators().begin(), whole.indicators().end()});
  return r;
}

}  // namespace sheafnn::distributed
