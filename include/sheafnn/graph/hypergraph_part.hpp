/// \file
/// HypergraphPart: what one process's part of a larger hypergraph knows about the whole hypergraph, and how it exchanges
/// rows with the other parts.
///
/// A part has the nodes that its process owns, all incident pairs of these nodes, and the hyperedges of these pairs. Nodes
/// have no copies. A hyperedge with members in several parts (a cut hyperedge) is in each of these parts, with its members
/// there. One of the parts owns it. Hyperedges are numbered in this order: hyperedges with members here alone (interior),
/// other owned hyperedges, hyperedges that other parts own.
///
/// Layers keep these rules, which make the sum of all parts' derivatives the derivative of the whole hypergraph:
///   - A sum over the members of a hyperedge is summed over its parts: sum_cut_hyperedges() (layers/halo_rows.hpp). The
///     derivative of such a sum is a sum over the same members, and takes the same way.
///   - What is chosen among the members of a cut hyperedge, its owner chooses, from rows of all members.
///   - Noise and dropout masks belong to the pair's, node's or feature's index in the whole hypergraph.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/graph/graph_part.hpp"

namespace sheafnn {

/// Indices of a part's incident pairs. Rows of members are rows of pairs in cut hyperedges. The part's own pairs come first,
/// then other parts' pairs in cut hyperedges that this part owns.
struct MemberNumbers {
  Index total_pairs = 0;                  ///< of the whole hypergraph
  std::vector<std::uint32_t> pair;        ///< index in the whole hypergraph, of every pair of the part
  std::vector<std::int32_t> pair_of_row;  ///< pair of the part, of every own row of members
  std::vector<Index> first_row = {
      0};                         ///< CSR offsets of the owned cut hyperedges, in the order of their indices …
  std::vector<std::int32_t> row;  ///< … and the rows of all of their members, in the order of the pairs
};

/// Unchecked: that the parts and the indices belong to one hypergraph.
class HypergraphPart {
 public:
  /// \param nodes       has a row for every node, without halo
  /// \param hyperedges  has a row for every hyperedge; degrees are numbers of members in the whole hypergraph
  /// \param members     has the rows of members; its indices of nodes are indices of pairs
  /// All three must outlive the part. Unchecked: as the class.
  HypergraphPart(GraphPart& nodes, GraphPart& hyperedges, GraphPart& members, MemberNumbers numbers)
      : nodes_(&nodes), hyperedges_(&hyperedges), members_(&members), numbers_(std::move(numbers)) {}

  [[nodiscard]] GraphPart& nodes() const noexcept { return *nodes_; }
  [[nodiscard]] GraphPart& hyperedges() const noexcept { return *hyperedges_; }
  [[nodiscard]] GraphPart& members() const noexcept { return *members_; }
  [[nodiscard]] const MemberNumbers& numbers() const noexcept { return numbers_; }
  /// Members of a hyperedge in the whole hypergraph. Unchecked: its index.
  [[nodiscard]] Index size(Index e) const noexcept {
    return hyperedges_->numbers().degree[static_cast<std::size_t>(e)];
  }
  /// Cut hyperedges are first_cut() … hyperedges − 1, owned ones first_cut() … owned_end() − 1.
  [[nodiscard]] Index first_cut() const noexcept { return hyperedges_->numbers().interior; }
  [[nodiscard]] Index owned_end() const noexcept { return hyperedges_->numbers().own; }

 private:
  GraphPart *nodes_, *hyperedges_, *members_;
  MemberNumbers numbers_;
};

}  // namespace sheafnn
