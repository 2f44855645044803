/// \file
/// Network: a model on one graph, with forward and backward passes:
///
///     Network network(model, data.graph, data.features);
///     const auto outputs = network.forward({.epoch = epoch, .training = true});    // n × C raw outputs
///     …                                                  // your loss: its derivative outputs_bar, n × C
///     network.backward(outputs_bar, {.kl_weight = 1e-3});
///     …                                                  // your optimiser: model.parameters(), network.gradient()
///
///     H = encoder(X)                                        n × h        layers/node_embedding.hpp
///     F^l ~ Q(F | H); deterministic: F^l = learner_l(X_l)   map per arc  variational_source.hpp, point_source.hpp
///     X_1 = H,  X_{l+1} = layer_l(X_l; Δ_{F^l})             n × d' × f   diffusion_layer.hpp, … (layer_stack.hpp)
///     Y = X_{L+1} W_outᵀ + 1 b_outᵀ                         n × C        readout_head.hpp
///
/// with features X, n nodes × p, and l = 1 … L. A node has d' stalk coordinates with f channels each, so h = d' f. They are the
/// D coordinates of its stalk and the fixed filters. Δ_F, the normalised Laplacian of the sheaf F: layers/sheaf_blocks.hpp.
/// In code l counts from 0: layer l computes X_{l+2} from X_{l+1}. network_steps.hpp has the calls in this order.
/// Source: math: "The model", "Backward pass of one diffusion step". The objective is in elbo.hpp.
#pragma once

#include "sheafnn/bsnn/network_of_steps.hpp"
#include "sheafnn/bsnn/network_steps.hpp"

namespace sheafnn {

/// A network refers to the model, whose parameters may change between passes, and to the graph; both must outlive it.
/// network_passes.hpp declares forward(), backward() and gradient(), network_of_steps.hpp declares begin() and
/// features_after(). After the last layer features_after() has rows for nodes() only.
template <class Model>
class Network : public detail::NetworkOfSteps<Network<Model>, detail::NetworkSteps<Model>> {
  using Steps = detail::NetworkSteps<Model>;
  using Passes = detail::NetworkOfSteps<Network, Steps>;
  using Passes::steps_;

 public:
  using S = typename Model::Scalar;

  using Passes::Passes, Passes::sheaf_source;

  /// For features that have gone through the model's feature plan. \throws std::invalid_argument  a graph
  /// without nodes
  Network(const Model& model, const Graph& graph, const detail::SeenFeatures& features, Execution execution = {})
      : Passes(std::in_place, model, graph, features, execution) {}

  [[nodiscard]] auto& sheaf_source() noexcept { return steps_.source; }
  /// The shape of features between layers.
  [[nodiscard]] const layers::DiffusionShape<S>& shape() const noexcept { return steps_.shape; }

  /// The sheaf learner, which pair_head.hpp uses for pairs of nodes that need not be edges.
  [[nodiscard]] auto last_learner() noexcept requires Steps::has_pair_maps { return detail::LastLearner(steps_); }

 private:
  friend struct detail::PassSteps;

  /// As NetworkPasses::draw_all(); the first layer mixes H once for all samples.
  template <class Use>
  void draw_all(Index count, const Use& use) {
    for (Index k = 0; k < count; ++k) {
      steps_.first_mixing = k > 0       ? layers::MixedFeatures::reuse
                            : count > 1 ? layers::MixedFeatures::compute_and_keep
                                        : layers::MixedFeatures::compute;
      use(this->draw(k));
    }
    steps_.first_mixing = layers::MixedFeatures::compute;
  }
};

template <class Model>
Network(const Model&, const GraphOf<Model>&, const NodeFeatures&, Execution = {}) -> Network<Model>;

}  // namespace sheafnn
