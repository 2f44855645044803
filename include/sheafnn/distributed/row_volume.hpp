/// \file
/// What a training exchanges, from the model and the partition alone: the formulas of docs/distributed.md.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>

#include "sheafnn/bsnn/cooperative_model.hpp"
#include "sheafnn/bsnn/train_options.hpp"
#include "sheafnn/distributed/communicator.hpp"
#include "sheafnn/distributed/partition.hpp"
#include "sheafnn/layers/channel_tiles.hpp"
#include "sheafnn/sheaf/family.hpp"

namespace sheafnn::distributed {

/// Exchanges of rows, and how many numbers every row of a halo has in all of them together; and what passes need of all
/// parts beside rows.
struct RowVolume {
  Index exchanges = 0;  ///< copies from owners, and sums sent back to them
  Index numbers = 0;
  Index sums = 0;    ///< of layers over all parts, without those of gradients and scores
  Index summed = 0;  ///< numbers in them

  /// Messages and bytes of all ranks together. \param scalar_bytes  of a number. Takes any partition's report
  [[nodiscard]] Traffic of(const PartitionReport& partition, Index scalar_bytes) const noexcept {
    return {exchanges * partition.messages(), numbers * partition.halo() * scalar_bytes, 0, 0};
  }
};

/// The rows of `epochs` epochs of train(): as many training steps and evaluations. With L layers of rows of h numbers,
/// T sheaves per step and K per evaluation, s sheaf learners with projections of p_1 … p_s numbers (math: "First
/// sheaf-learner layer, cheaply"), every row of a halo is exchanged with
///
///     Bayesian:       epochs · (2 L T + L K) h   for W and R̄,   2 · epochs · p + epochs · p   for projections and back,
///     deterministic:  epochs · 3 L h,                           3 · epochs · Σ_s p_s
///
/// numbers; with an encoder of the sheaf learner's own, projections are computed once for a step and the evaluation before
/// it: epochs + 1 times in place of 2 · epochs.
///
/// A polynomial filter of degree K applies Δ max(K, 1) times to every tile of w channels (layers/channel_tiles.hpp), of
/// which there are t = ⌈f/w⌉: in place of each exchange of h numbers there are max(K, 1) · t of d' w. With s sheaves
/// (below, those of one pass) and scalings of g numbers it has in addition
///
///     epochs · s (T + K_s)   copies of scalings, and where maps are learned   epochs · s T   sums of their derivatives
///
/// with K_s samples per evaluation. Unchecked: numbers of at least 1.
template <class Model>
[[nodiscard]] RowVolume training_volume(const Model& model, Index epochs, const TrainOptions& options) {
  const Index layers = model.options().layers, width = model.hidden_width();
  const Index step_samples = Model::bayesian && is_learned<typename Model::Family> ? options.training_samples : 1;
  const Index samples = Model::bayesian && is_learned<typename Model::Family> ? options.samples : 1;
  RowVolume r;
  r.exchanges = epochs * layers * (2 * step_samples + samples);
  r.numbers = r.exchanges * width;
  if (const PolynomialOptions& filter = model.options().filter; filter.active()) {
    constexpr Index tile = sheafnn::detail::ChannelTiles<typename Model::Scalar>::width;
    const Index channels = model.options().channels;
    r.exchanges *= std::max<Index>(1, filter.degree) * ((channels + tile - 1) / tile);
    r.numbers = r.exchanges * (width / channels) * tile;
    const Index copies = epochs * model.sheaf_count() *
                         (step_samples + samples + (is_learned<typename Model::Family> ? step_samples : 0));
    r.exchanges += copies;
    r.numbers += copies * BlockSizes<typename Model::Family>::gram;
  }
  if (!is_learned<typename Model::Family>) return r;
  for (const auto& learner : model.layout().learners) {
    if (learner.first_outputs() == 0) continue;
    const bool shared = model.layout().sheaf_encoder.weight >= 0;
    const Index exchanges = (shared ? epochs + 1 : 2 * epochs) + epochs;
    r.exchanges += exchanges;
    r.numbers += exchanges * learner.projection_width();
  }
  return r;
}

/// The same of cooperative networks: every layer exchanges rows of h numbers twice forwards and twice backwards. Learners
/// that look at neighbours exchange for each of their convolutions, whose rows for both maps have q numbers (2g, the last
/// one's 2o), once forwards and once backwards: in every layer and sample, or with one pair for all layers once per pass.
/// The learner `sage` adds up two numbers over all parts for each of its norms and directions, one at a time. Batch norm
/// adds up the h columns twice per layer and sample forwards, for means and variances, and once 2h numbers backwards.
/// Unchecked: as above.
template <int D, bool Bayesian, std::floating_point S>
[[nodiscard]] RowVolume training_volume(const CooperativeModel<D, Bayesian, S>& model, Index epochs,
                                        const TrainOptions& options) {
  const CooperativeOptions& architecture = model.options();
  const Index step_samples = Bayesian ? options.training_samples : 1, samples = Bayesian ? options.samples : 1;
  RowVolume r;
  r.exchanges = epochs * architecture.layers * (4 * step_samples + 2 * samples);
  r.numbers = r.exchanges * model.hidden_width();
  if (architecture.norm == FeatureNorm::batch) {
    r.sums = epochs * architecture.layers * (3 * step_samples + 2 * samples);
    r.summed = epochs * architecture.layers * (4 * step_samples + 2 * samples) * model.hidden_width();
  }
  if (architecture.learner == NodeLearnerKind::mlp) return r;
  const bool per_layer = !Bayesian || architecture.layer_learners;
  const Index passes = epochs * (per_layer ? architecture.layers * (2 * step_samples + samples) : 3);
  const Index hidden = architecture.learner_layers - 1;
  r.exchanges += passes * (hidden + 1);
  r.numbers += passes * 2 * (hidden * architecture.learner_width + model.learner_outputs());
  if (architecture.learner == NodeLearnerKind::sage) {
    r.sums += passes * 4 * hidden;
    r.summed += passes * 4 * hidden;
  }
  return r;
}

}  // namespace sheafnn::distributed
