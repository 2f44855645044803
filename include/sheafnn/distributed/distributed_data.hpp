/// \file
/// DistributedData and DistributedHypergraph: this rank's part of a dataset; and DistributedNodes, what it has of the nodes,
/// whatever joins them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "sheafnn/core/errors.hpp"
#include "sheafnn/distributed/communicator.hpp"
#include "sheafnn/distributed/local_hypergraph.hpp"
#include "sheafnn/distributed/local_part.hpp"
#include "sheafnn/distributed/row_exchange.hpp"
#include "sheafnn/graph/dataset.hpp"
#include "sheafnn/graph/graph_of.hpp"

namespace sheafnn::distributed {

/// The part of a dataset that a rank keeps.
///
/// \tparam Part  LocalPart, or LocalHypergraph
template <class Part>
struct PieceOf {
  Part part;
  NodeFeatures features;             ///< part_features()
  std::vector<std::int32_t> labels;  ///< of owned nodes, by their indices in the part; −1 where unknown
  Index class_count = 0;             ///< C
};
/// The part of a dataset on a graph.
using DataPiece = PieceOf<LocalPart>;

/// The piece of a rank of a dataset that the rank has as a whole.
///
/// \tparam GraphType  Graph, or Hypergraph
/// \throws std::invalid_argument  a dataset that is not in order (validate()), a partition of another graph, a rank that
///         is not a part
template <class GraphType>
[[nodiscard]] auto cut(const NodeDataset<GraphType>& whole, const Partition& partition, int rank) {
  validate(whole);
  auto part = local_part(whole.graph, partition, rank);
  PieceOf<decltype(part)> r{std::move(part), {}, {}, whole.class_count};
  r.features = part_features(whole.features, r.part.numbers);
  for (Index u = 0; u < r.part.numbers.own; ++u) {
    r.labels.push_back(whole.labels[static_cast<std::size_t>(r.part.numbers.node[static_cast<std::size_t>(u)])]);
  }
  return r;
}

/// The nodes of a part, with their features and labels. DistributedData and DistributedHypergraph join them.
class DistributedNodes {
 public:
  DistributedNodes(const DistributedNodes&) = delete;  // the graph refers to the exchange
  DistributedNodes& operator=(const DistributedNodes&) = delete;

  [[nodiscard]] Communicator& ranks() noexcept { return *ranks_; }
  /// Nodes of the part, n: owned ones and the halo.
  [[nodiscard]] Index node_count() const noexcept { return static_cast<Index>(numbers().node.size()); }
  [[nodiscard]] const NodeFeatures& features() const noexcept { return features_; }
  /// Labels of the part's nodes; labels of the halo's nodes are −1.
  [[nodiscard]] const std::vector<std::int32_t>& labels() const noexcept { return labels_; }
  [[nodiscard]] Index class_count() const noexcept { return class_count_; }
  [[nodiscard]] const PartNumbers& numbers() const noexcept { return exchange_.numbers(); }
  [[nodiscard]] const RowExchange& exchange() const noexcept { return exchange_; }

  /// The index in the part of a node (its index in the whole graph) that this rank owns; −1 for other nodes.
  /// Takes any index.
  [[nodiscard]] std::int32_t own_number(Index u) const {
    const auto found =
        std::lower_bound(by_number_.begin(), by_number_.end(), std::pair<Index, std::int32_t>(u, -1));
    return found != by_number_.end() && found->first == u ? found->second : -1;
  }
  /// Indices in the part of the given nodes that this rank owns; nodes are given by their indices in the whole graph.
  ///
  /// \throws std::invalid_argument  an index out of range
  [[nodiscard]] std::vector<std::int32_t> owned(std::span<const std::int32_t> nodes) const {
    std::vector<std::int32_t> r;
    for (const std::int32_t u : nodes) {
      require_between("node", Index{u}, 0, numbers().total_nodes - 1);
      if (const std::int32_t own = own_number(u); own >= 0) r.push_back(own);
    }
    std::sort(r.begin(), r.end());
    return r;
  }
  /// The owned nodes of a split of the whole; sets may be empty. \throws std::invalid_argument  as owned()
  [[nodiscard]] Split owned(const Split& whole) const {
    return {owned(whole.train), owned(whole.validation), owned(whole.test)};
  }

  /// Values of all nodes of the whole graph on rank 0, N × columns; nothing elsewhere.
  ///
  /// \param values  of the part's nodes, n × columns
  /// \throws std::invalid_argument  another number of values
  [[nodiscard]] std::vector<double> gather(std::span<const double> values, Index columns) {
    require(static_cast<Index>(values.size()) == node_count() * columns, "values", values.size(),
            sheafnn::detail::concat("expected nodes * columns = ", node_count(), " * ", columns));
    const std::vector<double> rows =
        ranks_->gather(values.first(static_cast<std::size_t>(numbers().own * columns)));
    const std::size_t width = static_cast<std::size_t>(columns);
    std::vector<double> r(rows.size());
    for (std::size_t i = 0; i < gathered_.size(); ++i) {
      std::copy_n(rows.begin() + static_cast<Index>(i * width), columns, r.begin() + gathered_[i] * columns);
    }
    return r;
  }
  /// The inverse, on every rank: rows of owned nodes from rows of the whole graph; rows of the halo are 0.
  ///
  /// \throws std::invalid_argument  another number of values
  [[nodiscard]] std::vector<double> own_rows(std::span<const double> whole, Index columns) const {
    require(static_cast<Index>(whole.size()) == numbers().total_nodes * columns, "values", whole.size(),
            sheafnn::detail::concat("expected nodes * columns = ", numbers().total_nodes, " * ", columns));
    std::vector<double> r(static_cast<std::size_t>(node_count() * columns));
    for (Index u = 0; u < numbers().own; ++u) {
      std::copy_n(whole.begin() + numbers().node[static_cast<std::size_t>(u)] * columns, columns,
                  r.begin() + u * columns);
    }
    return r;
  }

 protected:
  /// Takes the nodes of a piece. Unchecked: as the constructors of DistributedData.
  template <class Part>
  DistributedNodes(Communicator& ranks, PieceOf<Part>& piece, std::vector<Neighbour> neighbours)
      : ranks_(&ranks),
        exchange_(ranks, std::move(piece.part.numbers), std::move(neighbours)),
        features_(std::move(piece.features)),
        labels_(std::move(piece.labels)),
        class_count_(piece.class_count) {
    labels_.resize(static_cast<std::size_t>(node_count()), -1);
    const std::span<const Index> own(numbers().node.data(), static_cast<std::size_t>(numbers().own));
    for (std::size_t u = 0; u < own.size(); ++u) by_number_.emplace_back(own[u], static_cast<std::int32_t>(u));
    std::sort(by_number_.begin(), by_number_.end());
    gathered_ = ranks.gather(own);
  }
  [[nodiscard]] RowExchange& own_exchange() noexcept { return exchange_; }
  /// \throws std::invalid_argument  a partition into another number of parts than there are ranks
  [[nodiscard]] static const Partition& fitting(const Partition& partition, int ranks) {
    require(partition.parts == ranks, "partition.parts", partition.parts,
            sheafnn::detail::concat("must be the number of ranks, ", ranks));
    return partition;
  }
  ~DistributedNodes() = default;

 private:
  Communicator* ranks_;
  RowExchange exchange_;
  NodeFeatures features_;
  std::vector<std::int32_t> labels_;
  Index class_count_;
  std::vector<std::pair<Index, std::int32_t>> by_number_;  ///< owned nodes: index in the whole, in the part
  std::vector<Index> gathered_;                            ///< rank 0: node in the whole of every gathered row
};

/// A graph that is a part (graph/graph_part.hpp), with the features and labels of its nodes. A Network over graph() and
/// features() exchanges rows with the networks of the other ranks. So all ranks must run the same passes in the same order.
class DistributedData : public DistributedNodes {
 public:
  /// Every rank gives the same dataset and partition and keeps its piece. `ranks` must outlive this.
  ///
  /// \throws std::invalid_argument  as cut(); a partition into another number of parts than there are ranks
  DistributedData(Communicator& ranks, const Dataset& whole, const Partition& partition)
      : DistributedData(ranks, cut(whole, fitting(partition, ranks.size()), ranks.rank())) {}
  /// Every rank gives its piece of the same dataset, e.g. read_folder()'s. Unchecked: that the pieces belong together.
  DistributedData(Communicator& ranks, DataPiece&& piece)
      : DistributedNodes(ranks, piece, std::move(piece.part.neighbours)), graph_(std::move(piece.part.graph)) {
    graph_.set_part(&own_exchange());
  }

  [[nodiscard]] const Graph& graph() const noexcept { return graph_; }

 private:
  Graph graph_;
};

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
