/// \file
/// DistributedHypergraph: this rank's part of a dataset on a hypergraph.
///
///     mpi::DistributedHypergraph part(ranks, data, mpi::metis_partition(ranks, data.graph));
///     mpi::train(model, part, data.splits[0], {.epochs = 200});   // a SheafHyperGnn, as in one process
#pragma once

#include <type_traits>
#include <utility>

#include "sheafnn/distributed/communicator.hpp"
#include "sheafnn/distributed/distributed_data.hpp"
#include "sheafnn/distributed/local_hypergraph.hpp"
#include "sheafnn/distributed/row_exchange.hpp"
#include "sheafnn/graph/dataset.hpp"
#include "sheafnn/graph/graph_of.hpp"

namespace sheafnn::distributed {

/// The part of a dataset on a hypergraph that a rank keeps.
using HypergraphPiece = PieceOf<LocalHypergraph>;

/// A hypergraph that is a part (graph/hypergraph_part.hpp), with the features and labels of its nodes; otherwise as
/// DistributedData.
class DistributedHypergraph : public DistributedNodes {
 public:
  /// Every rank gives the same dataset and partition and keeps its piece. `ranks` must outlive this.
  ///
  /// \throws std::invalid_argument  as cut(); a partition into another number of parts than there are ranks
  DistributedHypergraph(Communicator& ranks, const HypergraphDataset& whole, const Partition& partition)
      : DistributedHypergraph(ranks, cut(whole, fitting(partition, ranks.size()), ranks.rank())) {}
  /// Every rank gives its piece of the same dataset. Unchecked: that the pieces belong together.
  DistributedHypergraph(Communicator& ranks, HypergraphPiece&& piece)
      : DistributedNodes(ranks, piece, {}),
        hyperedges_(ranks, std::move(piece.part.hyperedges.numbers), std::move(piece.part.hyperedges.neighbours)),
        members_(ranks, std::move(piece.part.members.numbers), std::move(piece.part.members.neighbours)),
        part_(own_exchange(), hyperedges_, members_, std::move(piece.part.of_members)),
        graph_(std::move(piece.part.graph)) {
    graph_.set_part(&part_);
  }

  [[nodiscard]] const Hypergraph& graph() const noexcept { return graph_; }

 private:
  RowExchange hyperedges_, members_;
  HypergraphPart part_;
  Hypergraph graph_;
};

/// What a model's ranks have of a dataset: DistributedData, or DistributedHypergraph.
template <class Model>
using DistributedDataOf =
    std::conditional_t<std::is_same_v<GraphOf<Model>, Hypergraph>, DistributedHypergraph, DistributedData>;

}  // namespace sheafnn::distributed
