/// \file
/// ForwardPass: what a pass of a Network through its model depends on besides weights and features.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "sheafnn/bsnn/options.hpp"
#include "sheafnn/core/config.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/graph/graph_of.hpp"
#include "sheafnn/nn/dropout.hpp"
#include "sheafnn/random/stream.hpp"

namespace sheafnn {

namespace detail {

/// Number of features that a layer moves along nodes and arcs. The work of an epoch grows with it.
template <class Model>
[[nodiscard]] Index moved_features(const Model& model, const GraphOf<Model>& graph) {
  return (graph.node_count() + pairs_of(graph)) * model.hidden_width();
}

/// Number of rows of a network's outputs on a graph: one for each node, or what the model says. Targets and splits
/// number these rows.
template <class Model>
[[nodiscard]] Index output_rows(const GraphOf<Model>& graph) {
  if constexpr (requires { Model::output_rows(graph); }) {
    return Model::output_rows(graph);
  } else {
    return graph.node_count();
  }
}

}  // namespace detail

/// Threads worth using for one network, when the caller leaves the choice open. One for each 16 000 moved features, at most
/// the threads of the machine. With fewer features, one thread finishes a loop before a second thread could start. Takes any
/// model and graph.
template <class Model>
[[nodiscard]] int suggested_threads(const Model& model, const GraphOf<Model>& graph) {
  constexpr Index worth_a_thread = 16'000;
  return static_cast<int>(
      std::clamp<Index>(detail::moved_features(model, graph) / worth_a_thread, 1, hardware_threads()));
}

namespace detail {

/// How to read a trained network. \throws std::invalid_argument  a negative number of threads
template <class Model>
[[nodiscard]] Execution reading_execution(const Model& model, const GraphOf<Model>& graph, int threads) {
  require(threads >= 0, "threads", threads, "must be at least 0 (0: as many as the graph is worth)");
  return threads > 0 ? threads : suggested_threads(model, graph);
}

}  // namespace detail

/// All random numbers of a pass are functions of seed, epoch and sample. Network::begin() refuses values out of range.
template <class S>
struct ForwardPass {
  std::uint64_t seed = 0;
  std::uint32_t epoch = 0;
  Index sample = 0;  ///< which sheaf is drawn, 0 … 32767
  /// Apply dropout and keep what backward() reads. Evaluations and training draw different sheaves.
  bool training = false;
  /// Keep what backward() reads in an evaluation as well.
  bool keep = false;
  /// May the network overwrite features_after(), the sheaves and what their learner reads, once training no longer needs them? It
  /// then takes less memory. Training sets this, except for losses of pairs of nodes.
  bool overwrites = false;
  /// Layers in a row whose features, maps and whatever else a backward pass reads it computes again, from the input of the first
  /// (layers/layer_segments.hpp). The pass takes less memory, and results have the same bits. 0: none
  Index recompute_layers = 0;
  /// Keep what the backward pass reads of layers and sheaves in 16 bits (layers/arrays_in_turn.hpp). Outputs have the same bits.
  /// Derivatives are computed from values that are rounded to 8 significant bits. Not with recompute_layers
  bool compress_layers = false;
  double input_dropout = 0;  ///< of features, in [0, 1); training only
  double dropout = 0;        ///< of hidden features, in [0, 1); training only
  /// Nodes whose outputs are computed, in increasing order; empty: all. They must outlive the pass.
  std::span<const std::int32_t> nodes = {};
  /// Explicit noise in place of the random streams. The entry [k · sheaf_count + s] belongs to sample k and sheaf s and
  /// has 2m · noise_size values (see Noise). For cooperative networks, s is a layer, and an entry has 2n rows of D² +
  /// 1 values. Empty: the streams are used.
  std::vector<std::span<const S>> noise = {};
  /// Explicit noise for the variables that layers draw themselves: the entry [k · L + l] belongs to sample k and layer
  /// l (see Noise). Empty: the streams are used.
  std::vector<std::span<const S>> layer_noise = {};

  /// Will backward() be able to follow?
  [[nodiscard]] bool keeps() const noexcept { return training || keep; }
  /// The dropouts of the pass: of features, of the encoder's output, of a layer's input, and of the input of a
  /// deterministic model's sheaf learner. The last one drops nothing before the first layer.
  [[nodiscard]] layers::Dropout of_features() const { return dropout_of(Purpose::input_dropout, input_dropout); }
  [[nodiscard]] layers::Dropout of_hidden() const { return dropout_of(Purpose::hidden_dropout, dropout); }
  /// The dropout of a layer's input. Unchecked: layer and draw are in the ranges of Stream.
  [[nodiscard]] layers::Dropout of_layer(Index layer, Index draw) const {
    return dropout_of(Purpose::layer_dropout, dropout, layer, draw);
  }
  /// The dropout of the input of a deterministic model's sheaf learner. Unchecked: as of_layer().
  [[nodiscard]] layers::Dropout of_learner(Index layer, Index draw) const {
    return dropout_of(Purpose::learner_dropout, layer > 0 ? dropout : 0.0, layer, draw);
  }
  /// The stream that sheaf s of a sample is drawn from. Evaluations use the upper half of the sample numbers, so that
  /// they share no noise with training. Unchecked: s and draw are in the ranges of Stream.
  [[nodiscard]] Stream of_sheaf(Index s, Index draw) const { return noise_stream(Purpose::sheaf_noise, s, draw); }
  /// The stream that layer l draws from itself. Unchecked: as above.
  [[nodiscard]] Stream of_layer_noise(Index l, Index draw) const {
    return noise_stream(Purpose::layer_noise, l, draw);
  }
  /// The stream that the maps of pairs of nodes are drawn from. Unchecked: as above.
  [[nodiscard]] Stream of_pairs(Index draw) const { return noise_stream(Purpose::pair_noise, 0, draw); }

 private:
  [[nodiscard]] Stream stream(Purpose purpose, Index layer, Index draw) const {
    return {seed, purpose, epoch, static_cast<std::uint32_t>(layer), static_cast<std::uint32_t>(draw)};
  }
  [[nodiscard]] Stream noise_stream(Purpose purpose, Index layer, Index draw) const {
    return stream(purpose, layer, training ? draw : 0x8000 + draw % 0x8000);
  }
  [[nodiscard]] layers::Dropout dropout_of(Purpose purpose, double rate, Index layer = 0, Index draw = 0) const {
    return {training ? rate : 0.0, stream(purpose, layer, draw)};
  }
};

/// The KL term of a backward pass, and the loss of several samples.
struct BackwardOptions {
  double kl_weight = 0;  ///< λ ≥ 0
  KlEstimator kl_estimator = KlEstimator::automatic;
  /// Samples that the loss averages over, ≥ 1: each enters the Monte Carlo estimate with weight 1/samples.
  Index samples = 1;
  SampleLoss sample_loss = SampleLoss::expected;  ///< of elbo()
};

}  // namespace sheafnn
