/// \file
/// Network: a model at work on one graph, with forward and backward passes. Own losses, optimisers and loops need
/// nothing else:
///
///     Network network(model, data.graph, data.features);
///     const auto outputs = network.forward({.epoch = epoch, .training = true});    // n × C raw outputs
///     …                                                                            // outputs_bar: own loss
///     network.backward(outputs_bar, {.kl_weight = 1e-3});
///     …                                                // own optimiser: model.parameters(), network.gradient()
///
///     H = encoder(X),  F^l ~ Q(F | H),  X_1 = H,  X_{l+1} = diffusion_l(X_l; F^l),  Y = X_{L+1} W₂ + b₂
///
/// Source: math: "The model", "Backward pass of one diffusion step". The layers with their formulas are in layers/,
/// the objective in elbo.hpp.
#pragma once

#include "sheafnn/bsnn/network_parts.hpp"

namespace sheafnn {

/// Refers to the model, whose parameters may change between passes, and to the graph; both must outlive it.
template <class Model>
class Network {
 public:
  using Family = typename Model::Family;
  using S = typename Model::Scalar;

  /// Allocates all buffers but some that the first pass with dropout needs.
  ///
  /// \param features  n × p
  /// \throws std::invalid_argument  features that do not fit the model or the graph, or a graph without nodes
  Network(const Model& model, const Graph& graph, const NodeFeatures& features, Execution execution = {})
      : parts_(model, graph, features), execution_(execution) {}

  [[nodiscard]] const Model& model() const noexcept { return parts_.model; }
  [[nodiscard]] const Graph& graph() const noexcept { return parts_.graph; }
  [[nodiscard]] Execution execution() const noexcept { return execution_; }
  void set_execution(Execution execution) noexcept { execution_ = execution; }
  /// Samples that make sense: one where nothing is random.
  [[nodiscard]] static Index sample_count(Index requested) noexcept { return Parts::is_sampled ? requested : 1; }
  /// Nodes of the rows of outputs.
  [[nodiscard]] const NodeSelection& nodes() const noexcept { return nodes_; }
  /// Derivatives of the last backward pass, laid out like the model's parameters.
  [[nodiscard]] const Buffer<S>& gradient() const noexcept { return parts_.gradient; }
  /// Outputs of the last draw, as what followed has left them: a loss may work in place.
  [[nodiscard]] MatrixView<const S> outputs() const noexcept { return parts_.output.output(); }
  /// A matrix of the shape of the outputs, for their derivative; any other of this shape will do.
  [[nodiscard]] MatrixView<S> output_bar() noexcept { return parts_.output.output_bar(); }
  /// The sheaves of the last draw and, of Bayesian models, the posterior they are drawn from.
  [[nodiscard]] const auto& sheaf_source() const noexcept { return parts_.source; }

  /// Raw outputs of pass.nodes, |nodes| × C, valid until the next pass.
  ///
  /// \throws std::invalid_argument  as begin()
  MatrixView<S> forward(const ForwardPass<S>& pass = {}) {
    begin(pass);
    return draw(pass.sample);
  }
  /// The derivative of ⟨outputs_bar, outputs⟩ + λ KL(Q ‖ prior) in every parameter, into gradient().
  ///
  /// \param outputs_bar  of the shape of the outputs
  /// \returns the KL term, per incident pair; 0 for deterministic models
  /// \throws std::logic_error       no forward pass with training = true came before
  /// \throws std::invalid_argument  outputs_bar of another shape, options out of range
  double backward(const MatrixView<const S>& outputs_bar, const BackwardOptions& options = {}) {
    parts_.require_kept();
    begin_backward(options);
    accumulate(outputs_bar);
    return finish_backward();
  }

  // The same in steps, for objectives that average over samples (elbo.hpp):
  //   begin(pass); begin_backward(options); for k: draw(k), accumulate(bar of sample k); finish_backward().

  /// Embeddings H and, of Bayesian models, the posterior Q(F | H).
  ///
  /// \throws std::invalid_argument  rates, samples, nodes or noise out of range or of a wrong length
  void begin(const ForwardPass<S>& pass) {
    parts_.check(pass);
    parts_.bind(pass.training);
    set_pass(pass);
    parts_.embed(execution_, pass, false);
    start(parts_.embedding.output());
    parts_.source.infer(execution_, parts_.source_weights(), start_);
  }

  /// Draws the sheaves of a sample, F^l ~ Q(F | H), and computes the outputs.
  MatrixView<S> draw(Index sample) {
    sample_ = sample;
    FeatureView<const S> x = start_features();
    for (Index l = 0; l < parts_.layer_count(); ++l) {
      if (l < parts_.sheaf_count()) {
        parts_.source.build(execution_, parts_.source_weights(), sheaf_input(l, x));  // F^l
      }
      x = diffuse(l, x);  // X_{l+1}
    }
    parts_.output.forward(execution_, parts_.weights.output, x.rows());
    parts_.kept = pass_.training;
    return parts_.output.output();
  }

  /// Draws samples 0 … count − 1 after begin(), for evaluations: use(outputs of one) is called for each.
  template <class Use>
  void draw_samples(Index count, const Use& use) {
    for (Index k = 0; k < sample_count(count); ++k) {
      // All start from H: the first layer mixes it once.
      mixed_ = k > 0 ? MixedFeatures::reuse : count > 1 ? MixedFeatures::compute_and_keep : MixedFeatures::compute;
      use(draw(k));
    }
    mixed_ = MixedFeatures::compute;
  }

  /// Clears the gradient and takes the options of the backward pass.
  void begin_backward(const BackwardOptions& options) {
    parts_.check(options);
    options_ = options;
    closed_form_ = uses_closed_form<typename Model::Posterior>(options.kl_estimator);
    kl_ = 0;
    first_sample_ = true;
    parts_.clear_gradient();
    parts_.source.begin_backward(execution_, closed_form_ ? options.kl_weight : 0.0);
  }

  /// Backwards from the derivative of the last draw's outputs to those of the layers' weights, of Q's parameters and of
  /// H, which add up.
  void accumulate(const MatrixView<const S>& outputs_bar) {
    parts_.require_kept();
    const double pair_share = 1 / static_cast<double>(options_.samples * parts_.sheaf_count());
    FeatureView<S> bar = parts_.scratch(0).first(nodes_.count());
    parts_.output.backward(execution_, parts_.weights.output, parts_.layers.back().output().rows(), outputs_bar,
                           bar.rows(), parts_.weights_bar.output);
    for (Index l = parts_.layer_count(); l-- > 0;) {
      diffuse_backward(l, bar);
      bar = parts_.x_bar_view();
      if (l < parts_.sheaf_count()) backward_sheaf(l, pair_share);
    }
    parts_.add_embedding_bar(execution_, first_sample_);
    first_sample_ = false;
    parts_.kept = false;
  }

  /// From what accumulate() has gathered to gradient().
  ///
  /// \returns the KL term, per incident pair
  double finish_backward() {
    if constexpr (Parts::has_closed_form) {
      if (closed_form_) kl_ = parts_.source.kl(execution_);
    }
    const FeatureView<S> bar = parts_.embedding_bar_view(), work = parts_.scratch(0);
    parts_.source.finish_backward(execution_, parts_.source_weights(), bar.rows(), work.rows(),
                                  parts_.source_weights_bar());
    parts_.embedding.backward(execution_, parts_.weights.second, bar.rows(), work.rows(), parts_.weights_bar.encoder,
                              parts_.weights_bar.second);
    return kl_;
  }

  /// KL(Q ‖ prior) per incident pair of the posterior of the last begin(); 0 for models without, or without closed form.
  [[nodiscard]] double kl() {
    if constexpr (Parts::has_closed_form) return parts_.source.kl(execution_);
    return 0;
  }

 private:
  template <class>
  friend class detail::EpochSchedule;
  using Parts = detail::NetworkParts<Model>;

  void set_pass(const ForwardPass<S>& pass) {
    pass_ = pass;
    nodes_ = pass.nodes.empty() ? NodeSelection(graph().node_count()) : NodeSelection(pass.nodes);
  }
  void start(const MatrixView<const S>& embedding) { start_ = embedding; }
  [[nodiscard]] FeatureView<const S> start_features() const { return parts_.features_of(start_); }

  /// X_{l+1} from X_l; the last layer for the requested nodes only.
  FeatureView<const S> diffuse(Index l, const FeatureView<const S>& x) {
    auto& layer = parts_.layers[static_cast<std::size_t>(l)];
    const auto& weights = parts_.weights.layers[static_cast<std::size_t>(l)];
    const NodeSelection all(graph().node_count());
    const NodeSelection& here = l + 1 < parts_.layer_count() ? all : nodes_;
    if (pass_.training) {
      layer.forward(execution_, weights, parts_.sheaf_of(l), x, pass_.of_layer(l, sample_), here);
    } else {
      layer.evaluate(execution_, weights, parts_.sheaf_of(l), x, here, l == 0 ? mixed_ : MixedFeatures::compute,
                     parts_.scratch(0));
    }
    return layer.output();
  }
  void diffuse_backward(Index l, const FeatureView<const S>& bar) {
    const std::size_t i = static_cast<std::size_t>(l);
    const bool same_sheaf = l + 1 < parts_.layer_count() && l + 1 >= parts_.sheaf_count();
    parts_.layers[i].backward(execution_, parts_.weights.layers[i], parts_.sheaf_of(l), parts_.source.gradient(),
                              same_sheaf, bar, parts_.x_bar_view(), parts_.scratch(0), parts_.scratch(1),
                              parts_.weights_bar.layers[i]);
  }

  /// What F^l is made of.
  [[nodiscard]] SheafInput<S> sheaf_input(Index l, const FeatureView<const S>& x) const {
    SheafInput<S> input{l, x.rows(), pass_.of_learner(l, sample_), {pass_.of_sheaf(l, sample_)}, pass_.training};
    if (!pass_.noise.empty()) {
      input.noise.values = pass_.noise[static_cast<std::size_t>(sample_ * parts_.sheaf_count() + l)].data();
    }
    return input;
  }
  void backward_sheaf(Index l, double pair_share) {
    const SheafInput<S> input = sheaf_input(l, start_features());
    if constexpr (Parts::is_sampled) {
      if (!closed_form_) kl_ += pair_share * parts_.source.log_ratio(execution_, input);
    }
    parts_.source.backward(execution_, parts_.source_weights(), input,
                           closed_form_ ? 0.0 : options_.kl_weight * pair_share, parts_.x_bar_view().rows(),
                           parts_.scratch(0).rows(), parts_.source_weights_bar());
  }

  Parts parts_;
  Execution execution_;
  ForwardPass<S> pass_;
  BackwardOptions options_;
  NodeSelection nodes_;
  MatrixView<const S> start_;  ///< H
  Index sample_ = 0;
  MixedFeatures mixed_ = MixedFeatures::compute;  ///< of the first layer in evaluations
  bool closed_form_ = true, first_sample_ = true;
  double kl_ = 0;
};

}  // namespace sheafnn
