/// \file
/// Network: a model on one graph, with forward and backward passes. Your own losses, optimisers and loops need nothing
/// else:
///
///     Network network(model, data.graph, data.features);
///     const auto outputs = network.forward({.epoch = epoch, .training = true});    // n × C raw outputs
///     …                                                                            // outputs_bar: own loss
///     network.backward(outputs_bar, {.kl_weight = 1e-3});
///     …                                                // own optimiser: model.parameters(), network.gradient()
///
///     H = encoder(X)                                        n × h        layers/node_embedding.hpp
///     F^l ~ Q(F | H); deterministic: F^l = learner_l(X_l)   map per arc  variational_source.hpp, point_source.hpp
///     X_1 = H,  X_{l+1} = layer_l(X_l; Δ_{F^l})             n × d' × f   diffusion_layer.hpp, … (layer_stack.hpp)
///     Y = X_{L+1} W_outᵀ + 1 b_outᵀ                         n × C        readout_head.hpp
///
/// with X n × p, h = d' f and l = 1 … L. In code l counts from 0: layer l computes X_{l+2} from X_{l+1}.
/// Source: math: "The model", "Backward pass of one diffusion step". The objective is in elbo.hpp.
#pragma once

#include "sheafnn/bsnn/network_passes.hpp"
#include "sheafnn/bsnn/network_steps.hpp"

namespace sheafnn {

/// Refers to the model, whose parameters may change between passes, and to the graph; both must outlive it.
template <class Model>
class Network : public detail::NetworkPasses<Network<Model>, detail::NetworkSteps<Model>> {
  using Steps = detail::NetworkSteps<Model>;
  using Passes = detail::NetworkPasses<Network, Steps>;
  using Passes::steps_;

 public:
  using S = typename Model::Scalar;

  /// Allocates all buffers, except some that only passes with dropout need.
  ///
  /// \param features  n × p
  /// \throws std::invalid_argument  features that do not fit the model or the graph, or a graph without nodes
  Network(const Model& model, const Graph& graph, const NodeFeatures& features, Execution execution = {})
      : Passes(model, graph, features, execution) {}
  /// The same for features that have gone through the model's feature plan. \throws std::invalid_argument  a graph
  /// without nodes
  Network(const Model& model, const Graph& graph, const detail::SeenFeatures& features, Execution execution = {})
      : Passes(model, graph, features, execution) {}
  Network(const Model&&, const Graph&, const NodeFeatures&, Execution = {}) = delete;  // they would dangle
  Network(const Model&, const Graph&&, const NodeFeatures&, Execution = {}) = delete;

  /// Features after layer_count diffusion layers of the last draw, valid until the next pass. After 0 layers they are
  /// H; after all layers, the input of the output layer, at nodes() only and valid until the backward pass. \param layer_count  0 … layers of the model
  ///
  /// \throws std::invalid_argument  layer_count out of range
  /// \throws std::logic_error       begin() or, for a layer, draw() did not come before
  [[nodiscard]] FeatureView<const S> features_after(Index layer_count) const {
    this->check_layer_count(layer_count, steps_.layer_count());
    return layer_count == 0 ? steps_.start_features() : steps_.layers[layer_count - 1].output();
  }
  /// The sheaves of the last draw and, for Bayesian models, the posterior they are drawn from.
  [[nodiscard]] const auto& sheaf_source() const noexcept { return steps_.source; }
  [[nodiscard]] auto& sheaf_source() noexcept { return steps_.source; }
  /// The shape of features between layers.
  [[nodiscard]] const layers::DiffusionShape<S>& shape() const noexcept { return steps_.shape; }

  /// Computes embeddings H and, for Bayesian models, the posterior Q(F | H).
  ///
  /// \param shared  null, or a network of the same model that has computed them: share(). May be this one
  /// \throws std::invalid_argument  rates, samples, nodes or noise out of range or of a wrong length
  /// \throws std::logic_error       share() did not come before
  BegunPass<Network> begin(const ForwardPass<S>& pass, Network* shared = nullptr) {
    this->begin_pass(pass, shared);
    steps_.check(pass);
    steps_.bind(pass.keeps());
    steps_.set_pass(pass);
    if (shared == nullptr) {
      steps_.embed();                           // H
      steps_.infer(steps_.embedding.output());  // Q(F | H)
    } else {
      steps_.take(shared->steps_);
    }
    return this->begun();
  }
  /// Begins a pass from embeddings H that were computed outside the network; features and encoder weights are not
  /// read. Its backward pass computes their derivative.
  ///
  /// \param embedding  n × h without gaps; has to stay in place until the backward pass
  /// \throws std::invalid_argument  as begin(pass), embeddings of another shape, a model with a separate encoder
  BegunPass<Network, true> begin(const ForwardPass<S>& pass, const MatrixView<const S>& embedding) {
    this->begin_pass(pass);
    steps_.check(pass);
    require_array(embedding, steps_.graph.node_count(), steps_.embedding_width(), "embedding");
    require(!*steps_.model.options().separate_encoder, "separate_encoder", true, "it reads features");
    steps_.bind(pass.keeps());
    steps_.set_pass(pass);
    steps_.infer(embedding);  // Q(F | H)
    return this->template begun<true>();
  }
  /// Where the derivative of X_{L+1} may be written after begin(). Others of its shape are as good.
  [[nodiscard]] FeatureView<S> features_bar() { return steps_.scratch(0).first(steps_.nodes.count()); }
  /// The sheaf learner, which pair_head.hpp uses for pairs of nodes that need not be edges.
  [[nodiscard]] auto last_learner() noexcept requires Steps::has_pair_maps { return detail::LastLearner(steps_); }

 private:
  friend struct detail::PassSteps;

  /// Draws the sheaves of a sample and computes X_{L+1} at nodes().
  FeatureView<const S> diffuse(Index sample) {
    this->begin_draw(sample);
    FeatureView<const S> x = steps_.start_features();  // X_1 = H
    for (Index l = 0; l < steps_.layer_count(); ++l) {
      if (l < steps_.sheaf_count()) steps_.build_sheaf(l, x);  // F^{l+1}
      x = steps_.diffuse(l, x);                                // X_{l+2}
    }
    this->end_draw();
    return x;
  }
  /// The same, and then computes the outputs Y from X_{L+1}.
  MatrixView<S> draw(Index sample) {
    const FeatureView<const S> x = diffuse(sample);                                                    // X_{L+1}
    steps_.output.forward(steps_.execution, steps_.weights.readout, steps_.weights.output, x.rows());  // Y
    return steps_.output.output();
  }
  /// Adds derivatives of layer weights, Q's parameters and H, from the derivative of the last draw's outputs.
  void accumulate(const MatrixView<const S>& outputs_bar) {
    this->check_accumulate();
    const FeatureView<S> place = steps_.layers[steps_.layer_count() - 1].output_place();
    // The readout reads X_{L+1} last where it writes the derivative, if it has no hidden layers.
    const bool apart = place.data() == nullptr || steps_.model.options().readout_layers > 1;
    const FeatureView<S> bar = apart ? features_bar() : place;
    steps_.output.backward(steps_.execution, steps_.weights.readout, steps_.weights.output,
                           steps_.layers[steps_.layer_count() - 1].output().rows(), outputs_bar, bar.rows(),
                           steps_.weights_bar.readout, steps_.weights_bar.output);
    accumulate_layers(bar);
  }
  /// The same from the derivative of X_{L+1}.
  void accumulate(const FeatureView<const S>& features_bar, bool sheaf_begun) {
    this->check_accumulate();
    const FeatureView<S> bar = this->features_bar();
    require_shape(features_bar, bar.nodes(), bar.coordinates(), bar.channels(), "features_bar");
    if (features_bar.data() != bar.data()) bar.eigen() = features_bar.eigen();
    accumulate_layers(bar, sheaf_begun);
  }
  /// Completes gradient() from the sums of accumulate(). \returns the KL term per incident pair, plus the KL terms of
  /// variables that layers draw themselves
  double finish_backward() {
    this->check_finish();
    steps_.embed_backward();
    return steps_.total_kl();
  }
  /// The same after a pass from given embeddings, and computes their derivative.
  double finish_backward(const MatrixView<S>& embedding_bar) {
    require_array(embedding_bar, steps_.graph.node_count(), steps_.embedding_width(), "embedding_bar");
    this->check_finish();
    embedding_bar.eigen() = steps_.infer_backward().eigen();
    return steps_.total_kl();
  }

  /// As NetworkPasses::draw_all(); the first layer mixes H once for all samples.
  template <class Use>
  void draw_all(Index count, const Use& use) {
    for (Index k = 0; k < count; ++k) {
      steps_.first_mixing = k > 0       ? layers::MixedFeatures::reuse
                            : count > 1 ? layers::MixedFeatures::compute_and_keep
                                        : layers::MixedFeatures::compute;
      use(draw(k));
    }
    steps_.first_mixing = layers::MixedFeatures::compute;
  }
  /// Computes the derivative of H from the derivative of X_{L+1} in features_bar().
  void accumulate_layers(FeatureView<S> bar, bool sheaf_begun = false) {
    steps_.sheaf_gradient_begun = sheaf_begun;
    const bool overwrites = steps_.begin_embedding_bar(steps_.execution, steps_.first_sample);
    steps_.clear_before_bars(steps_.execution);
    for (Index l = steps_.layer_count(); l-- > 0;) {
      steps_.diffuse_backward(l, bar);
      if (l < steps_.sheaf_count()) steps_.sheaf_backward(l);
      steps_.add_before_bar(steps_.execution, l);
      bar = steps_.x_bar_view();
    }
    steps_.add_embedding_bar(steps_.execution, overwrites);
    steps_.first_sample = steps_.kept = false;
  }
};

template <class Model>
Network(const Model&, const GraphOf<Model>&, const NodeFeatures&, Execution = {}) -> Network<Model>;

}  // namespace sheafnn
