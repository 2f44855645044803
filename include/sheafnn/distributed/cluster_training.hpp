/// \file
/// train_in_clusters(): training by parts of a graph on one machine, for graphs whose activations do not fit into memory.
/// A step sees a few parts of a partition, their nodes and the edges among these:
///
///     an epoch: the parts in a random order, q at a time;   for each batch  θ ← Adam(θ, ∇L(θ; subgraph))
///
/// Only one batch's network is in memory. Edges between batches are left out, so that this is not the training of the whole
/// graph. If q is all parts, it is, to the bit. The KL term is a mean over the incident pairs of a batch.
/// Source: Cluster-GCN (Chiang et al., 2019), algorithm 1.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "sheafnn/bsnn/subgraph_training.hpp"
#include "sheafnn/distributed/partition.hpp"
#include "sheafnn/graph/graph_rows.hpp"
#include "sheafnn/random/stream.hpp"

namespace sheafnn::distributed {

namespace detail {

/// \param chosen  of each part: is it in the subgraph?
[[nodiscard]] inline Subgraph subgraph_of_parts(const DatasetRows& rows, const Partition& parts,
                                                const std::vector<bool>& chosen) {
  const Graph& graph = rows.dataset()->graph;
  const auto has = [&](Index u) {
    return chosen[static_cast<std::size_t>(parts.owner[static_cast<std::size_t>(u)])];
  };
  std::vector<std::int32_t> node;
  for (Index u = 0; u < rows.node_count(); ++u) {
    if (has(u)) node.push_back(static_cast<std::int32_t>(u));
  }
  std::vector<SubgraphArc> arcs;
  for (std::size_t i = 0; i < node.size(); ++i) {
    for (Index arc = graph.first_arc(node[i]); arc < graph.first_arc(node[i] + 1); ++arc) {
      const Index v = graph.target(arc);
      if (!has(v)) continue;
      const auto number = std::lower_bound(node.begin(), node.end(), v) - node.begin();
      arcs.push_back({static_cast<std::int32_t>(i), static_cast<std::int32_t>(number), arc});
    }
  }
  return subgraph(rows, std::move(node), arcs);
}

/// Groups of `size` parts, in an order that is random for each epoch; in the order of their indices for evaluations.
[[nodiscard]] inline std::vector<std::vector<bool>> batches(int parts, Index size, std::uint64_t seed, Index epoch,
                                                            bool shuffled) {
  std::vector<std::pair<std::uint32_t, std::size_t>> order;
  const Stream stream{seed, Purpose::user, static_cast<std::uint32_t>(epoch), 1023};
  for (std::uint32_t p = 0; p < static_cast<std::uint32_t>(parts); ++p) {
    order.emplace_back(shuffled ? stream.words(p, 0).word[0] : 0, p);
  }
  std::sort(order.begin(), order.end());
  std::vector<std::vector<bool>> r;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i % static_cast<std::size_t>(size) == 0) r.emplace_back(order.size());
    r.back()[order[i].second] = true;
  }
  return r;
}

/// Groups of parts, of which a training step and an evaluation see one.
class ClusterSource final : public sheafnn::detail::SubgraphSource {
 public:
  /// The arguments must outlive the source.
  ClusterSource(const DatasetRows& rows, const Partition& parts, Index parts_per_step, const Split& split,
                const sheafnn::detail::EvaluatedNodes& evaluated, std::uint64_t seed)
      : rows_(&rows),
        parts_(&parts),
        size_(parts_per_step),
        split_(&split),
        evaluated_(&evaluated),
        seed_(seed),
        evaluations_(batches(parts.parts, parts_per_step, seed, 0, false)) {}

  Index begin_epoch(Index epoch) override {
    steps_ = batches(parts_->parts, size_, seed_, epoch, true);
    return static_cast<Index>(steps_.size());
  }
  [[nodiscard]] sheafnn::detail::SubgraphBatch training(std::uint32_t, Index number) override {
    return batch(steps_[static_cast<std::size_t>(number)], split_->train);
  }
  [[nodiscard]] Index evaluations() const override { return static_cast<Index>(evaluations_.size()); }
  [[nodiscard]] sheafnn::detail::SubgraphBatch evaluation(Index number) override {
    return batch(evaluations_[static_cast<std::size_t>(number)], evaluated_->node);
  }

 private:
  [[nodiscard]] sheafnn::detail::SubgraphBatch batch(const std::vector<bool>& chosen,
                                                     const std::vector<std::int32_t>& targets) const {
    sheafnn::detail::SubgraphBatch r{subgraph_of_parts(*rows_, *parts_, chosen), {}};
    r.targets = r.graph.local(targets);
    return r;
  }

  const DatasetRows* rows_;
  const Partition* parts_;
  Index size_;
  const Split* split_;
  const sheafnn::detail::EvaluatedNodes* evaluated_;
  std::uint64_t seed_;
  std::vector<std::vector<bool>> evaluations_, steps_;
};

}  // namespace detail

/// Trains `model` to classify the nodes of a dataset, `parts_per_step` parts at a time; see the file comment. Evaluations,
/// too, see batches of parts, in the order of their indices. The rest is as in sheafnn::train(), with an Adam step for
/// every batch that has labelled training nodes. When this throws, the model is as it was.
///
/// \param parts  of the data's graph, e.g. metis_partition()'s
/// \throws std::invalid_argument  an option out of range or without support here (resume, on_checkpoint, a metric of classes
///                                as stop_on), or data that do not fit the model
/// \throws std::runtime_error     a diverged run
template <class Model>
TrainResult train_in_clusters(Model& model, const Dataset& data, const Partition& parts, Index parts_per_step,
                              const Split& split, const TrainOptions& options = {}) {
  validate(options);
  const DatasetRows rows(data);
  validate(parts, data.node_count());
  sheafnn::detail::check_targets(Classification(data.labels), data.node_count(), model.options().classes, split,
                                 "split");
  require_between("parts_per_step", parts_per_step, 1, parts.parts);
  require(options.batch_size == 0, "batch_size", options.batch_size, "a step takes parts_per_step parts");
  const sheafnn::detail::EvaluatedNodes evaluated(rows, split);
  detail::ClusterSource source(rows, parts, parts_per_step, split, evaluated, options.seed);
  return sheafnn::detail::train_on_subgraphs(model, rows, split, evaluated, source, options);
}

}  // namespace sheafnn::distributed
