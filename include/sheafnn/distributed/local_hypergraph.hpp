/// \file
/// LocalHypergraph: one rank's part of a hypergraph, and with whom it exchanges which rows (graph/hypergraph_part.hpp), from the
/// whole hypergraph and a partition of its nodes.
///
/// Nodes are in the order of their indices in the whole. Hyperedges: interior hyperedges and owned cut hyperedges, both in
/// this order, then the hyperedges of other owners, in the order of owners and indices. Rows of members: own rows in the
/// order of the hyperedges' owners, then rows of other parts in the order of the parts. Within both, pairs are in the order of
/// their indices.
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstdint>
#include <utility>
#include <vector>

#include "sheafnn/distributed/hypergraph_partition.hpp"
#include "sheafnn/distributed/local_part.hpp"
#include "sheafnn/graph/hypergraph.hpp"

namespace sheafnn::distributed {

/// Rows of a kind that a part has, and with whom it exchanges them.
struct ExchangedRows {
  PartNumbers numbers;
  std::vector<Neighbour> neighbours;  ///< in increasing order of ranks
};

/// A rank's part of a hypergraph. \see graph/hypergraph_part.hpp
struct LocalHypergraph {
  PartNumbers numbers;  ///< of its nodes, which are all owned
  Hypergraph graph;     ///< without its part set
  ExchangedRows hyperedges, members;
  MemberNumbers of_members;
};

namespace detail {

/// The rows of a part and of its neighbours, which are added one by one. Own rows come before others, rows of a neighbour in
/// the order in which both parts have them.
class RowsBuilder {
 public:
  explicit RowsBuilder(int parts) : neighbour_(static_cast<std::size_t>(parts)) {}

  /// Appends an own row. \param number, degree  as in PartNumbers \returns its index in the part
  std::int32_t add_own(Index number, Index degree) {
    ++rows_.numbers.own;
    return add(number, degree);
  }
  /// Appends a row that another part owns.
  std::int32_t add_halo(std::int32_t owner, Index number, Index degree) {
    Neighbour& from = neighbour_[static_cast<std::size_t>(owner)];
    if (from.count++ == 0) from.halo = static_cast<Index>(rows_.numbers.node.size());
    return add(number, degree);
  }
  /// Another part has a copy of the row.
  void send(std::int32_t to, std::int32_t row) { neighbour_[static_cast<std::size_t>(to)].sent.push_back(row); }
  /// Rows up to here are in no other part.
  void end_interior() { rows_.numbers.interior = rows_.numbers.own; }

  /// \param total_rows, total_pairs  of the whole
  [[nodiscard]] ExchangedRows finish(Index total_rows, Index total_pairs) {
    rows_.numbers.total_nodes = total_rows;
    rows_.numbers.total_edges = total_pairs;
    rows_.numbers.in_degree = rows_.numbers.degree;
    for (std::size_t p = 0; p < neighbour_.size(); ++p) {
      if (neighbour_[p].count == 0 && neighbour_[p].sent.empty()) continue;
      neighbour_[p].rank = static_cast<int>(p);
      rows_.neighbours.push_back(std::move(neighbour_[p]));
    }
    return std::move(rows_);
  }

 private:
  std::int32_t add(Index number, Index degree) {
    rows_.numbers.node.push_back(number);
    rows_.numbers.degree.push_back(degree);
    return static_cast<std::int32_t>(rows_.numbers.node.size() - 1);
  }

  ExchangedRows rows_;
  std::vector<Neighbour> neighbour_;  ///< of every rank
};

/// A cut hyperedge with a member in the part.
struct CutHyperedge {
  std::int32_t owner = 0;
  Index number = 0;
  std::vector<std::int32_t> parts;  ///< of its members, increasing
  friend auto operator<=>(const CutHyperedge&, const CutHyperedge&) = default;
};

/// The members of cut hyperedges. \param owned, of_others  hyperedges, in the order of indices, and of owners and indices
inline void add_members(const Hypergraph& whole, const Partition& partition, int rank,
                        const std::vector<CutHyperedge>& owned, const std::vector<CutHyperedge>& of_others,
                        const std::vector<std::pair<Index, std::int32_t>>& local_pair, LocalHypergraph& r) {
  using Row = std::array<Index, 2>;  // a part, and the index of a pair
  std::vector<Row> own, of_other_parts;
  const auto for_members = [&](const CutHyperedge& of, const auto& use) {
    for (Index k = whole.first_member(of.number); k < whole.first_member(of.number + 1); ++k) {
      const Index pair = whole.member(k);
      use(pair, partition.owner[static_cast<std::size_t>(whole.node(pair))]);
    }
  };
  for (const auto* hyperedges : {&owned, &of_others}) {
    for (const CutHyperedge& of : *hyperedges) {
      for_members(of, [&](Index pair, std::int32_t part) {
        if (part == rank) {
          own.push_back({of.owner, pair});
        } else if (of.owner == rank) {
          of_other_parts.push_back({part, pair});
        }
      });
    }
  }
  std::sort(own.begin(), own.end());
  std::sort(of_other_parts.begin(), of_other_parts.end());
  const auto local = [](const auto& sorted, Index number) {
    return std::lower_bound(sorted.begin(), sorted.end(), std::pair<Index, std::int32_t>(number, -1))->second;
  };
  RowsBuilder rows(partition.parts);
  std::vector<std::pair<Index, std::int32_t>> row_of_pair;
  for (const auto& [owner, pair] : own) {
    const std::int32_t row = rows.add_own(pair, 1);
    row_of_pair.emplace_back(pair, row);
    r.of_members.pair_of_row.push_back(local(local_pair, pair));
    if (owner != rank) rows.send(static_cast<std::int32_t>(owner), row);
  }
  for (const auto& [part, pair] : of_other_parts) {
    row_of_pair.emplace_back(pair, rows.add_halo(static_cast<std::int32_t>(part), pair, 1));
  }
  std::sort(row_of_pair.begin(), row_of_pair.end());
  for (const CutHyperedge& of : owned) {
    for_members(of, [&](Index pair, std::int32_t) { r.of_members.row.push_back(local(row_of_pair, pair)); });
    r.of_members.first_row.push_back(static_cast<Index>(r.of_members.row.size()));
  }
  r.members = rows.finish(whole.pair_count(), whole.pair_count());
}

}  // namespace detail

/// The part of a rank of a hypergraph that the rank has as a whole.
///
/// \throws std::invalid_argument  a rank that is not a part, or what validate() throws
[[nodiscard]] inline LocalHypergraph local_part(const Hypergraph& whole, const Partition& partition, int rank) {
  validate(partition, whole.node_count());
  require_between("rank", rank, 0, partition.parts - 1);
  LocalHypergraph r;
  r.of_members.total_pairs = whole.pair_count();

  detail::RowsBuilder rows(partition.parts);
  std::vector<detail::CutHyperedge> owned, of_others;
  std::vector<std::int32_t> local(static_cast<std::size_t>(whole.hyperedge_count()), -1);
  const auto local_of = [&](Index e) -> std::int32_t& { return local[static_cast<std::size_t>(e)]; };
  detail::for_hyperedge_owners(whole, partition, [&](Index e, const auto& parts, std::int32_t owner) {
    if (!std::binary_search(parts.begin(), parts.end(), rank)) return;
    if (parts.size() == 1) {
      local_of(e) = rows.add_own(e, whole.size(e));
    } else {
      (owner == rank ? owned : of_others).push_back({owner, e, parts});
    }
  });
  rows.end_interior();
  std::sort(of_others.begin(), of_others.end());
  for (const detail::CutHyperedge& of : owned) {
    local_of(of.number) = rows.add_own(of.number, whole.size(of.number));
    for (const std::int32_t part : of.parts) {
      if (part != rank) rows.send(part, local_of(of.number));
    }
  }
  for (const detail::CutHyperedge& of : of_others) {
    local_of(of.number) = rows.add_halo(of.owner, of.number, whole.size(of.number));
  }
  r.hyperedges = rows.finish(whole.hyperedge_count(), whole.pair_count());

  std::vector<std::pair<Incidence, Index>> pairs;  // and their indices in the whole
  for (Index v = 0; v < whole.node_count(); ++v) {
    if (partition.owner[static_cast<std::size_t>(v)] != rank) continue;
    const std::int32_t node = static_cast<std::int32_t>(r.numbers.node.size());
    r.numbers.node.push_back(v);
    r.numbers.degree.push_back(whole.degree(v));
    for (Index i = whole.first_pair(v); i < whole.first_pair(v + 1); ++i) {
      pairs.emplace_back(Incidence{node, local_of(whole.hyperedge(i))}, i);
    }
  }
  r.numbers.own = r.numbers.interior = static_cast<Index>(r.numbers.node.size());
  r.numbers.total_nodes = whole.node_count();
  r.numbers.total_edges = whole.hyperedge_count();
  r.numbers.in_degree = r.numbers.degree;
  std::sort(pairs.begin(), pairs.end());
  std::vector<Incidence> incidence;
  std::vector<std::pair<Index, std::int32_t>> local_pair;
  for (const auto& [pair, number] : pairs) {
    local_pair.emplace_back(number, static_cast<std::int32_t>(incidence.size()));
    incidence.push_back(pair);
    r.of_members.pair.push_back(static_cast<std::uint32_t>(number));
  }
  std::sort(local_pair.begin(), local_pair.end());
  r.graph = Hypergraph(r.numbers.own, static_cast<Index>(r.hyperedges.numbers.node.size()), incidence);
  detail::add_members(whole, partition, rank, owned, of_others, local_pair, r);
  return r;
}

}  // namespace sheafnn::distributed
