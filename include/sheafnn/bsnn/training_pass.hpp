/// \file
/// What a forward-backward pass of a Network is asked for and what it answers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sheafnn/bsnn/options.hpp"
#include "sheafnn/core/config.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/graph/graph.hpp"
#include "sheafnn/nn/dropout.hpp"
#include "sheafnn/random/stream.hpp"

namespace sheafnn {

/// Features that a layer moves along nodes and arcs: what the work of an epoch grows with.
template <class Model>
[[nodiscard]] Index moved_features(const Model& model, const Graph& graph) {
  return (graph.node_count() + graph.arc_count()) * model.hidden_width();
}

/// Threads worth using for one network, when the caller leaves the choice open: one for each 16 000 moved
/// features, at most what the machine has. With fewer, a loop is sooner done by one thread than offered to
/// another.
template <class Model>
[[nodiscard]] int suggested_threads(const Model& model, const Graph& graph) {
  constexpr Index worth_a_thread = 16'000;
  return static_cast<int>(std::clamp<Index>(moved_features(model, graph) / worth_a_thread, 1, hardware_threads()));
}

/// What a forward-backward pass computes the loss of.
template <class S>
struct TrainingPass {
  std::span<const std::int32_t> labels;  ///< of all nodes
  std::span<const std::int32_t> nodes;   ///< training nodes
  std::uint64_t seed = 0;
  std::uint32_t epoch = 0;   ///< addresses the random numbers
  double input_dropout = 0;  ///< of features, in [0, 1)
  double dropout = 0;        ///< of hidden features, in [0, 1)
  double kl_weight = 0;      ///< λ
  KlEstimator kl_estimator = KlEstimator::closed_form;
  Index samples = 1;  ///< sheaves drawn per step, ≥ 1; the loss averages over them
  /// Compute log_probabilities() of `nodes` alone, which must increase; the loss needs no others.
  bool only_nodes = false;
  /// The network's last begin() had these parameters and this pass, and no pass without a begin() came since.
  bool begun = false;
  /// Explicit noise instead of the stream's, for sample k and sheaf s at [k · sheaf_count + s]; see SheafNoise.
  std::vector<const S*> noise = {};

  /// The dropouts of the pass: of features, of the encoder's output, of a layer's input, and of what the sheaf learner
  /// of a deterministic model reads, which drops nothing before the first layer.
  [[nodiscard]] Dropout of_features() const { return dropout_of(Purpose::input_dropout, input_dropout); }
  [[nodiscard]] Dropout of_hidden() const { return dropout_of(Purpose::hidden_dropout, dropout); }
  [[nodiscard]] Dropout of_layer(std::size_t layer, std::uint32_t sample = 0) const {
    return dropout_of(Purpose::layer_dropout, dropout, layer, sample);
  }
  [[nodiscard]] Dropout of_learner(std::size_t layer, std::uint32_t sample = 0) const {
    return dropout_of(Purpose::learner_dropout, layer > 0 ? dropout : 0.0, layer, sample);
  }

 private:
  [[nodiscard]] Dropout dropout_of(Purpose purpose, double rate, std::size_t layer = 0,
                                   std::uint32_t sample = 0) const {
    return {rate, Stream{seed, purpose, epoch, static_cast<std::uint32_t>(layer), sample}};
  }
};

/// Loss = nll + λ · kl of one pass.
struct PassResult {
  double nll = 0;
  double kl = 0;
  double loss = 0;
};

}  // namespace sheafnn
