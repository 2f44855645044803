/// \file
/// train_on_samples(), predict_on_samples(): networks on drawn neighbours, for graphs that do not fit into memory with a
/// network's features, or not at all. A step takes TrainOptions::batch_size labelled nodes and sees their
/// sample_neighbours():
///
///     an epoch: the training nodes in a random order, batch_size at a time;   θ ← Adam(θ, ∇L(θ; sample, its targets))
///
/// Where every layer learns a sheaf, a layer reads neighbours at distance 2, whose degrees normalise. So with 2L fan-outs of
/// 0, all neighbours, a deterministic network of L layers gives its targets the outputs on the whole graph. The noise of
/// posteriors and layers lies at the sample's own indices. Predictions of validation and test nodes see samples, too, the
/// same ones in every epoch.
///
/// Source: Hamilton, Ying and Leskovec, Inductive representation learning on large graphs, 2017, algorithm 2.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "sheafnn/bsnn/prediction.hpp"
#include "sheafnn/bsnn/sampling_options.hpp"
#include "sheafnn/bsnn/subgraph_training.hpp"
#include "sheafnn/bsnn/target_batches.hpp"
#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/graph/graph_rows.hpp"
#include "sheafnn/graph/neighbour_sample.hpp"

namespace sheafnn {

namespace detail {

/// Step of the samples of evaluations and predictions; no training has it.
inline constexpr std::uint32_t step_of_evaluations = std::numeric_limits<std::uint32_t>::max();

/// The subgraphs of drawn neighbours, one per step; see the file comment.
class SampleSource final : public SubgraphSource {
 public:
  /// The arguments must outlive the source.
  SampleSource(const GraphRows& rows, const Split& split, const EvaluatedNodes& evaluated,
               const SamplingOptions& sampling, const TrainOptions& options)
      : rows_(&rows),
        evaluated_(&evaluated),
        sampling_(&sampling),
        train_(labelled_nodes(rows.labels(), split.train)),
        size_(options.batch_size > 0 ? options.batch_size : std::max<Index>(1, static_cast<Index>(train_.size()))),
        seed_(options.seed) {}

  Index begin_epoch(Index epoch) override {
    order_ = target_order(train_, seed_, epoch);
    const Index count = target_batch_count(order_, size_);
    return sampling_->steps > 0 ? std::min(sampling_->steps, count) : count;
  }
  [[nodiscard]] SubgraphBatch training(std::uint32_t step, Index number) override {
    return sample(target_batch(order_, size_, number), step);
  }
  [[nodiscard]] Index evaluations() const override { return target_batch_count(evaluated_->node, size_); }
  [[nodiscard]] SubgraphBatch evaluation(Index number) override {
    return sample(target_batch(evaluated_->node, size_, number), step_of_evaluations);
  }

 private:
  [[nodiscard]] SubgraphBatch sample(std::span<const std::int32_t> targets, std::uint32_t step) const {
    SubgraphBatch r{sample_neighbours(*rows_, targets, sampling_->fan_outs, seed_, step), {}};
    r.targets = r.graph.local(targets);
    return r;
  }

  const GraphRows* rows_;
  const EvaluatedNodes* evaluated_;
  const SamplingOptions* sampling_;
  std::vector<std::int32_t> train_;
  Index size_;
  std::uint64_t seed_;
  std::vector<std::int32_t> order_;  ///< of the epoch
};

/// At most `most` of the nodes, increasing; 0: all.
[[nodiscard]] inline std::vector<std::int32_t> some_of(const std::vector<std::int32_t>& nodes, Index most,
                                                       std::uint64_t seed) {
  if (most == 0 || static_cast<Index>(nodes.size()) <= most) return nodes;
  return target_batch(target_order(nodes, seed, step_of_evaluations), most, 0);
}

}  // namespace detail

/// Trains `model` to classify nodes; see the file comment. The rest is as in train(), with an Adam step for every sample.
/// When this throws, the model is as it was. The result does not depend on the number of threads.
///
/// \throws std::invalid_argument  an option out of range or without support here (resume, on_checkpoint, a metric of classes
///                                as stop_on), or data that do not fit the model
/// \throws std::runtime_error     a diverged training, or rows that cannot be read
template <class Model>
TrainResult train_on_samples(Model& model, const GraphRows& rows, const Split& split,
                             const SamplingOptions& sampling = {}, const TrainOptions& options = {}) {
  validate(sampling);
  validate(options);
  detail::check_targets(Classification(rows.labels()), rows.node_count(), model.options().classes, split, "split");
  const auto some = [&](const std::vector<std::int32_t>& nodes) {
    return detail::some_of(labelled_nodes(rows.labels(), nodes), sampling.evaluated, options.seed);
  };
  const Split drawn = {split.train, some(split.validation), some(split.test)};
  const detail::EvaluatedNodes evaluated(rows, drawn,
                                         options.batch_size > 0 ? options.batch_size : rows.node_count());
  detail::SampleSource source(rows, drawn, evaluated, sampling, options);
  return detail::train_on_subgraphs(model, rows, drawn, evaluated, source, options);
}

/// predict() of some nodes on their samples, which are another sample than any training step's.
///
/// \param nodes     increasing
/// \param together  nodes of a sample, at least 1
/// \returns         a row for each of `nodes`, in their order
/// \throws std::invalid_argument  an option or a node out of range, nodes that do not increase, or as predict()
/// \throws std::runtime_error     rows that cannot be read
template <class Model>
[[nodiscard]] Prediction predict_on_samples(const Model& model, const GraphRows& rows,
                                            std::span<const std::int32_t> nodes, std::span<const Index> fan_outs,
                                            const PredictOptions& options = {}, Index together = 1024) {
  validate_fan_outs(fan_outs);
  require_between("together", together, 1, std::numeric_limits<std::int32_t>::max());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    require(nodes[i] >= (i > 0 ? nodes[i - 1] + 1 : 0) && nodes[i] < rows.node_count(),
            ArgumentName({}, "nodes", i), nodes[i],
            detail::concat("node numbers must increase and be below ", rows.node_count()));
  }
  Prediction r;
  r.class_count = model.options().classes;
  const std::size_t size = static_cast<std::size_t>(together);
  for (std::size_t first = 0; first < nodes.size(); first += size) {
    const auto targets = nodes.subspan(first, std::min(size, nodes.size() - first));
    const Subgraph sample = sample_neighbours(rows, targets, fan_outs, options.seed, detail::step_of_evaluations);
    const Prediction part =
        detail::predict_nodes(model, sample.graph, sample.features, sample.local(targets), options);
    const auto append = [](auto& to, const auto& more) { to.insert(to.end(), more.begin(), more.end()); };
    append(r.probabilities, part.probabilities);
    append(r.entropy, part.entropy);
    append(r.epistemic_variance, part.epistemic_variance);
    append(r.mutual_information, part.mutual_information);
    append(r.label, part.label);
  }
  return r;
}

}  // namespace sheafnn
