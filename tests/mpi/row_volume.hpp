/// \file
/// What a training exchanges, from the model and the partition alone: the formulas of docs/notebook/mpi.md.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <utility>

#include "sheafnn/bsnn/cooperative_model.hpp"
#include "sheafnn/bsnn/flow_model.hpp"
#include "sheafnn/bsnn/hypergraph_model.hpp"
#include "sheafnn/bsnn/train_options.hpp"
#include "sheafnn/distributed/communicator.hpp"
#include "sheafnn/distributed/hypergraph_partition.hpp"
#include "sheafnn/distributed/partition.hpp"
#include "sheafnn/layers/channel_tiles.hpp"
#include "sheafnn/layers/runge_kutta.hpp"
#include "sheafnn/sheaf/family.hpp"

namespace sheafnn::distributed {

/// Exchanges of rows, and how many numbers every row of a halo has in all exchanges together. Also what passes need of all
/// parts beside rows.
struct RowVolume {
  Index exchanges = 0;  ///< copies from owners, and sums sent back to them
  Index numbers = 0;
  Index sums = 0;    ///< of layers over all parts, without the sums of gradients and scores
  Index summed = 0;  ///< numbers in them

  /// Messages and bytes of all ranks together. \param scalar_bytes  of a number. Takes any partition's report
  [[nodiscard]] Traffic of(const PartitionReport& partition, Index scalar_bytes) const noexcept {
    return {exchanges * partition.messages(), numbers * partition.halo() * scalar_bytes, 0, 0};
  }
};

namespace detail {

/// Sheaves of a training step and of an evaluation.
template <class Model>
[[nodiscard]] std::pair<Index, Index> draws(const Model& model, const TrainOptions& options) {
  bool random = Model::bayesian && sheaf::is_learned<typename Model::Family>;
  if constexpr (requires { model.options().attention; }) {
    const auto& of = model.options();
    random = random || layers::draws(*of.layer, of.attention, of.directed);
  }
  if (!random) return {1, 1};
  return {options.training_samples, options.samples};
}
/// Projections of all sheaf learners.
template <class Model>
void add_projections(const Model& model, Index exchanges, RowVolume& r) {
  if (!sheaf::is_learned<typename Model::Family>) return;
  const NetworkSizes& sizes = model.layout();
  if (sizes.learner.first_outputs() == 0) return;
  const Index learners = sizes.learner_count * sizes.learner.types;
  r.exchanges += exchanges * learners;
  r.numbers += exchanges * learners * sizes.learner.projection_width();
}

}  // namespace detail

/// The rows of `epochs` epochs of train(): as many training steps and evaluations. A network has L layers of rows of h
/// numbers, T sheaves per step and K per evaluation. Its s sheaf learners have projections of p_1 … p_s numbers (math: "First
/// sheaf-learner layer, cheaply"). Every row of a halo is exchanged with
///
///     Bayesian:       epochs · (2 L T + L K) h   for W and R̄,   2 · epochs · p + epochs · p   for projections and back,
///     deterministic:  epochs · 3 L h,                           3 · epochs · Σ_s p_s
///
/// numbers. If the sheaf learner has its own encoder, projections are computed once for a step and the evaluation before it.
/// That is epochs + 1 times in place of 2 · epochs.
///
/// A polynomial filter of degree K applies Δ max(K, 1) times to every tile of w channels (layers/channel_tiles.hpp); there
/// are t = ⌈f/w⌉ tiles. So max(K, 1) · t exchanges of d' w numbers replace each exchange of h numbers. With s sheaves
/// (below, the sheaves of one pass) and scalings of g numbers it has in addition
///
///     epochs · s (T + K_s)   copies of scalings, and where maps are learned   epochs · s T   sums of their derivatives
///
/// with K_s samples per evaluation. Complex features have 2h numbers. Attention with K heads exchanges besides every h numbers K
/// numbers of scores, or h where scores read transported features. A layer of one's own is counted as a diffusion layer: one Δ per
/// layer. Unchecked: numbers of at least 1.
template <class Model>
[[nodiscard]] RowVolume training_volume(const Model& model, Index epochs, const TrainOptions& options) {
  const Index layers = model.options().layers, width = model.row();
  const auto [step_samples, samples] = detail::draws(model, options);
  RowVolume r;
  r.exchanges = epochs * layers * (2 * step_samples + samples);
  r.numbers = r.exchanges * width;
  if (const PolynomialOptions& filter = model.options().filter; filter.active()) {
    constexpr Index tile = sheafnn::detail::ChannelTiles<typename Model::Scalar>::width;
    const Index channels = model.options().channels;
    r.exchanges *= std::max<Index>(1, filter.degree) * ((channels + tile - 1) / tile);
    r.numbers = r.exchanges * (width / channels) * tile;
    const Index copies = epochs * model.sheaf_count() *
                         (step_samples + samples + (sheaf::is_learned<typename Model::Family> ? step_samples : 0));
    r.exchanges += copies;
    r.numbers += copies * sheaf::BlockSizes<typename Model::Family>::gram;
  }
  if (*model.options().layer == LayerForm::attention) {
    const AttentionOptions& attention = model.options().attention;
    r.numbers += r.exchanges * (attention.transported ? width : attention.heads);
    r.exchanges *= 2;
  }
  const bool shared = *model.options().separate_encoder;
  const Index passes =
      Model::bayesian ? (shared ? epochs + 1 : 2 * epochs) + epochs : epochs * (2 * step_samples + samples);
  detail::add_projections(model, passes, r);
  return r;
}

/// Exchanges of a pass of a flow, of rows of h numbers: one for every evaluation of its right-hand side. A step that is
/// tried has as many as the method has stages, and Dormand–Prince one more at the start of a pass. The gradient evaluates
/// all stages of the accepted steps again and goes back through them. Besides, every pass has a maximum over all parts, of
/// its start, and Dormand–Prince one for each step that it tries.
///
/// \param accepted, rejected  steps: FlowLayer::steps(), rejected_steps(). Unchecked: at least 0
/// \param training            with the gradient?
[[nodiscard]] inline Index flow_exchanges(FlowMethod method, Index accepted, Index rejected, bool training) {
  const Index stages = sheafnn::detail::tableau(method).stages;
  const Index start = method == FlowMethod::dormand_prince ? 1 : 0;
  return start + stages * (accepted + rejected) + (training ? 2 * stages * accepted : 0);
}

/// The same for networks in continuous time with equal steps. It is flow_exchanges() for each of T draws of a training step
/// and K draws of an evaluation, and projections as above, without sharing.
///
/// \throws std::invalid_argument  steps that the tolerances choose: their number depends on the data, see
///                                flow_exchanges(). Unchecked: as above
template <RestrictionMapFamily Family, SheafSource Posterior, std::floating_point S>
[[nodiscard]] RowVolume training_volume(const FlowModel<Family, Posterior, S>& model, Index epochs,
                                        const TrainOptions& options) {
  const auto [method, steps] = std::pair(model.options().method, model.options().fixed_steps);
  require(method != FlowMethod::dormand_prince, "method", to_string(method),
          "the number of its steps is not known");
  const auto [step_samples, samples] = detail::draws(model, options);
  RowVolume r;
  r.exchanges = epochs * (step_samples * flow_exchanges(method, steps, 0, true) +
                          samples * flow_exchanges(method, steps, 0, false));
  r.numbers = r.exchanges * model.hidden_width();
  r.sums = r.summed = epochs * (step_samples + samples);
  detail::add_projections(model, 3 * epochs, r);
  return r;
}

/// The same of cooperative networks: every layer exchanges rows of h numbers twice forwards and twice backwards. Learners
/// that look at neighbours exchange rows for each of their convolutions, once forwards and once backwards. The rows for both
/// maps have q numbers (2g; in the last convolution 2o). They do so in every layer and sample, or with one pair for all
/// layers once per pass. The learner `sage` adds up two numbers over all parts for each of its norms and directions, one at
/// a time. Batch norm adds up the h columns twice per layer and sample forwards, for means and variances, and once 2h
/// numbers backwards.
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

/// What a network on a hypergraph exchanges. Numbers count the pairs of a cut hyperedge and a part that does not own it. A
/// sum over members takes two exchanges, to the owner and back.
struct HypergraphVolume : RowVolume {
  RowVolume members;     ///< of the non-linear Laplacian: rows of members, to the owners of their hyperedges
  Index selections = 0;  ///< likewise: exchanges of the numbers of the selected two pairs, 16 bytes, back

  /// Messages and bytes of all ranks together. \param scalar_bytes  of a number. Takes any partition's report
  [[nodiscard]] Traffic of(const HypergraphPartitionReport& partition, Index scalar_bytes) const noexcept {
    Traffic r = RowVolume::of(partition, scalar_bytes);
    const Traffic rows = members.of(partition.members, scalar_bytes);
    r.messages += rows.messages + selections * partition.messages();
    r.bytes += rows.bytes + selections * partition.halo() * 2 * static_cast<Index>(sizeof(double));
    return r;
  }
};

/// The same for networks on hypergraphs, for T draws of a training step and K draws of an evaluation. Each of L layers has 2
/// T + K sums of h numbers, two such rows with the non-linear Laplacian. Every pass of a sheaf learner has 3 sums of p/2
/// numbers. The non-linear Laplacian sends T + K times per layer a row of h numbers of every member, with a projection of D,
/// and two numbers back. Unchecked: as above.
template <RestrictionMapFamily Family, SheafSource Posterior, std::floating_point S>
[[nodiscard]] HypergraphVolume training_volume(const HypergraphModel<Family, Posterior, S>& model, Index epochs,
                                               const TrainOptions& options) {
  const auto [step_samples, samples] = detail::draws(model, options);
  const bool nonlinear = model.options().laplacian == HypergraphLaplacian::nonlinear;
  const Index layers = epochs * model.options().layers, width = model.hidden_width();
  HypergraphVolume r;
  r.exchanges = 2 * layers * (2 * step_samples + samples);
  r.numbers = r.exchanges * width * (nonlinear ? 2 : 1);
  RowVolume learners;  // of both halves of the projections
  detail::add_projections(model, 2 * 3 * epochs, learners);
  r.exchanges += learners.exchanges;
  r.numbers += learners.numbers / 2;
  if (!nonlinear) return r;
  r.members.exchanges = r.selections = layers * (step_samples + samples);
  r.members.numbers = r.selections * (model.options().projection.empty() ? width : model.coordinates());
  return r;
}

}  // namespace sheafnn::distributed
