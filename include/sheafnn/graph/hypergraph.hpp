/// \file
/// Hypergraph: nodes, hyperedges and their incident pairs (v, e), sorted by node and by hyperedge.
///
/// Pair i belongs to node(i) and hyperedge(i). Pairs are numbered by (node, hyperedge), so that a node's pairs are
/// contiguous. member() lists a hyperedge's pairs in the order of its nodes. A graph is the case of two members per
/// hyperedge. Source: Sheaf Hypergraph Networks (Duta et al.), "Cellular sheaves on hypergraphs".
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/graph/graph.hpp"
#include "sheafnn/graph/hypergraph_part.hpp"

namespace sheafnn {

/// A node and a hyperedge that it belongs to.
struct Incidence {
  std::int32_t node = 0;
  std::int32_t hyperedge = 0;
  friend bool operator==(const Incidence&, const Incidence&) = default;
  friend auto operator<=>(const Incidence&, const Incidence&) = default;
};

/// n nodes, E hyperedges and nnz incident pairs. Hyperedges may have any number of members; nodes may belong to no
/// hyperedge.
///
/// Unchecked: the indices of nodes, hyperedges and pairs that members take, which inner loops call.
class Hypergraph {
 public:
  Hypergraph() = default;

  /// \param pairs  the incident pairs, in any order
  /// \param name   what messages call them
  /// \throws std::invalid_argument  a negative count, a node or hyperedge out of range, a pair that is listed twice, or
  ///                                2³¹ pairs or more
  Hypergraph(Index node_count, Index hyperedge_count, std::span<const Incidence> pairs,
             std::string_view name = "incidence")
      : node_count_(node_count), hyperedge_count_(hyperedge_count) {
    constexpr Index most = std::numeric_limits<std::int32_t>::max();
    require_between("node_count", node_count, 0, most);
    require_between("hyperedge_count", hyperedge_count, 0, most);
    require(static_cast<Index>(pairs.size()) <= most, name, pairs.size(), "must be less than 2^31");
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      check_number(name, "node", i, pairs[i].node, node_count);
      check_number(name, "hyperedge", i, pairs[i].hyperedge, hyperedge_count);
    }
    std::vector<Incidence> sorted(pairs.begin(), pairs.end());
    std::sort(sorted.begin(), sorted.end());
    if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end()) {
      throw_invalid_argument(name, detail::concat("node ", twice->node, " twice in hyperedge ", twice->hyperedge),
                             "a node may belong to a hyperedge only once");
    }
    build(sorted);
  }

  /// Number of nodes n.
  [[nodiscard]] Index node_count() const noexcept { return node_count_; }
  /// Number of hyperedges E.
  [[nodiscard]] Index hyperedge_count() const noexcept { return hyperedge_count_; }
  /// Number of incident pairs nnz.
  [[nodiscard]] Index pair_count() const noexcept { return node_.size(); }

  /// Pairs of node v are first_pair(v) … first_pair(v + 1) − 1; v = n is allowed.
  [[nodiscard]] Index first_pair(Index v) const noexcept { return offset_[v]; }
  /// Number of hyperedges of a node.
  [[nodiscard]] Index degree(Index v) const noexcept { return offset_[v + 1] - offset_[v]; }
  [[nodiscard]] Index node(Index pair) const noexcept { return node_[pair]; }
  [[nodiscard]] Index hyperedge(Index pair) const noexcept { return hyperedge_[pair]; }

  /// Members of hyperedge e are member(first_member(e)) … member(first_member(e + 1) − 1); e = E is allowed.
  [[nodiscard]] Index first_member(Index e) const noexcept { return member_offset_[e]; }
  /// Number of members δ_e; on a part, of the whole hypergraph, of which the part may have fewer.
  [[nodiscard]] Index size(Index e) const noexcept {
    return part_ == nullptr ? member_offset_[e + 1] - member_offset_[e] : part_->size(e);
  }
  /// Number of the incident pair.
  [[nodiscard]] Index member(Index position) const noexcept { return member_[position]; }
  /// Most members of a hyperedge that are here; 0 without hyperedges.
  [[nodiscard]] Index largest_size() const noexcept { return largest_size_; }

  /// Makes this hypergraph a part of a larger one, which must outlive it and its copies; null: a whole. Unchecked: that the
  /// part belongs to it.
  void set_part(const HypergraphPart* part) noexcept { part_ = part; }
  [[nodiscard]] const HypergraphPart* part() const noexcept { return part_; }

  /// n + 1 CSR offsets of the nodes' pairs.
  [[nodiscard]] std::span<const std::int32_t> offsets() const noexcept { return offset_.view(); }
  /// nnz nodes, non-decreasing.
  [[nodiscard]] std::span<const std::int32_t> nodes() const noexcept { return node_.view(); }
  /// nnz hyperedges, increasing within a node.
  [[nodiscard]] std::span<const std::int32_t> hyperedges() const noexcept { return hyperedge_.view(); }
  /// E + 1 CSR offsets of the hyperedges' members.
  [[nodiscard]] std::span<const std::int32_t> member_offsets() const noexcept { return member_offset_.view(); }
  /// nnz indices of pairs, hyperedge by hyperedge, increasing within each.
  [[nodiscard]] std::span<const std::int32_t> members() const noexcept { return member_.view(); }

 private:
  /// Checks a number of pair i.
  static void check_number(std::string_view name, std::string_view what, std::size_t i, std::int32_t value,
                           Index count) {
    if (value >= 0 && value < count) return;
    throw_invalid_argument(detail::concat(name, "[", i, "].", what), value,
                           count == 0 ? detail::concat("there is no ", what)
                                      : detail::concat("must be between 0 and ", count - 1));
  }
  void build(const std::vector<Incidence>& sorted) {
    const Index count = static_cast<Index>(sorted.size());
    offset_.resize(node_count_ + 1);
    member_offset_.resize(hyperedge_count_ + 1);
    node_.resize(count);
    hyperedge_.resize(count);
    member_.resize(count);
    for (Index i = 0; i < count; ++i) {
      const Incidence& pair = sorted[static_cast<std::size_t>(i)];
      node_[i] = pair.node;
      hyperedge_[i] = pair.hyperedge;
      ++offset_[Index{pair.node} + 1];
      ++member_offset_[Index{pair.hyperedge} + 1];
    }
    for (Index v = 0; v < node_count_; ++v) offset_[v + 1] += offset_[v];
    for (Index e = 0; e < hyperedge_count_; ++e) {
      largest_size_ = std::max(largest_size_, Index{member_offset_[e + 1]});
      member_offset_[e + 1] += member_offset_[e];
    }
    std::vector<std::int32_t> next(member_offset_.begin(), member_offset_.end());
    for (Index i = 0; i < count; ++i) {
      member_[next[static_cast<std::size_t>(hyperedge_[i])]++] = static_cast<std::int32_t>(i);
    }
  }

  Index node_count_ = 0, hyperedge_count_ = 0, largest_size_ = 0;
  Buffer<std::int32_t> offset_ = Buffer<std::int32_t>(1), member_offset_ = Buffer<std::int32_t>(1);
  Buffer<std::int32_t> node_, hyperedge_, member_;
  const HypergraphPart* part_ = nullptr;
};

/// The hypergraph of lists of members, one per hyperedge.
///
/// \throws std::invalid_argument  as Hypergraph
[[nodiscard]] inline Hypergraph hypergraph_of_members(Index node_count,
                                                      std::span<const std::vector<std::int32_t>> hyperedges) {
  std::vector<Incidence> pairs;
  for (std::size_t e = 0; e < hyperedges.size(); ++e) {
    for (const std::int32_t v : hyperedges[e]) pairs.push_back({v, static_cast<std::int32_t>(e)});
  }
  return {node_count, static_cast<Index>(hyperedges.size()), pairs};
}

/// The hypergraph whose hyperedges are the edges of a graph, in their order.
[[nodiscard]] inline Hypergraph hypergraph_of_edges(const Graph& graph) {
  std::vector<Incidence> pairs;
  for (Index e = 0; e < graph.edge_count(); ++e) {
    const Edge edge = graph.edge(e);
    for (const std::int32_t v : {edge.u, edge.v}) pairs.push_back({v, static_cast<std::int32_t>(e)});
  }
  return {graph.node_count(), graph.edge_count(), pairs};
}

}  // namespace sheafnn
