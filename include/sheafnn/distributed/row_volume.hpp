/// \file
/// What a training exchanges, from the model and the partition alone: the formulas of docs/distributed.md.
#pragma once

#include <cstdint>

#include "sheafnn/bsnn/train_options.hpp"
#include "sheafnn/distributed/communicator.hpp"
#include "sheafnn/distributed/partition.hpp"
#include "sheafnn/sheaf/family.hpp"

namespace sheafnn::distributed {

/// Exchanges of rows, and how many numbers every row of a halo has in all of them together.
struct RowVolume {
  Index exchanges = 0;  ///< copies from owners, and sums sent back to them
  Index numbers = 0;

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
/// it: epochs + 1 times in place of 2 · epochs. Unchecked: numbers of at least 1.
template <class Model>
[[nodiscard]] RowVolume training_volume(const Model& model, Index epochs, const TrainOptions& options) {
  const Index layers = model.options().layers, width = model.hidden_width();
  const Index step_samples = Model::bayesian && is_learned<typename Model::Family> ? options.training_samples : 1;
  const Index samples = Model::bayesian && is_learned<typename Model::Family> ? options.samples : 1;
  RowVolume r;
  r.exchanges = epochs * layers * (2 * step_samples + samples);
  r.numbers = r.exchanges * width;
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

}  // namespace sheafnn::distributed
