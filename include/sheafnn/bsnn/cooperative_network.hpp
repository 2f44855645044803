/// \file
/// Networks of cooperative models. They have the passes of every network (network.hpp), so losses, training and
/// prediction work with them.
///
///     H = act(dropout_in(X) W₁ᵀ + b₁),   X̃_l = dropout(X_l),   X_1 = H
///     T, S from learners that read X̃_l; Bayesian: drawn from Q(T, S | H), whose learners read H, or with
///     layer_learners from Q(T, S | X̃_l)
///     X_{l+1} = norm((1 + tanh ε) ∘ X̃_l − act(dropout(Δ_inᵀ Δ_out (I ⊗ A) X̃_l Bᵀ))),   Y = readout(X_{L+1})
///
/// Explicit noise (ForwardPass::noise) is one array of 2n rows per layer: n rows for the maps T, then n rows for the
/// maps S. A row has D² + 1 numbers: a uniform rotation in row-major order, then an N(0, 1) number for the scale.
/// Source: math: "Cooperative sheaves", "Bayesian cooperative sheaves".
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "sheafnn/bsnn/cooperative_steps.hpp"
#include "sheafnn/bsnn/network.hpp"

namespace sheafnn {

/// Refers to the model, whose parameters may change between passes, and to the graph; both must outlive it.
template <int D, bool Bayesian, std::floating_point Scalar>
class Network<CooperativeModel<D, Bayesian, Scalar>>
    : public detail::NetworkPasses<Network<CooperativeModel<D, Bayesian, Scalar>>,
                                   detail::CooperativeSteps<D, Bayesian, Scalar>> {
  using Passes = detail::NetworkPasses<Network, detail::CooperativeSteps<D, Bayesian, Scalar>>;
  using Passes::steps_;

 public:
  using typename Passes::Model;
  using S = Scalar;

  /// \param features  n × p
  /// \throws std::invalid_argument  features that do not fit the model or the graph, or a graph without nodes
  Network(const Model& model, const Graph& graph, const NodeFeatures& features, Execution execution = {})
      : Passes(model, graph, nullptr, features, execution) {}
  Network(const Model&&, const Graph&, const NodeFeatures&, Execution = {}) = delete;  // they would dangle
  Network(const Model&, const Graph&&, const NodeFeatures&, Execution = {}) = delete;
  /// A network on directed arcs, whatever the options say. The operators sum over the arcs that leave a node, and the
  /// learners over the arcs that enter it.
  ///
  /// \param graph  with the same nodes; its edges do not matter
  /// \param arcs   must outlive the network
  /// \throws std::invalid_argument  as above, or arcs with another number of nodes
  Network(const Model& model, const Graph& graph, const DirectedArcs& arcs, const NodeFeatures& features,
          Execution execution = {})
      : Passes(model, graph, &arcs, features, execution) {}
  Network(const Model&&, const Graph&, const DirectedArcs&, const NodeFeatures&, Execution = {}) = delete;
  Network(const Model&, const Graph&&, const DirectedArcs&, const NodeFeatures&, Execution = {}) = delete;
  Network(const Model&, const Graph&, const DirectedArcs&&, const NodeFeatures&, Execution = {}) = delete;

  /// Features after l layers of the last draw, valid until the next pass. For l = 0 they are H; after all layers they
  /// are X_{L+1}, at nodes() only. In between they are X_{l+1} in evaluations and the next layer's input X̃_{l+1} in
  /// training.
  ///
  /// \param layer_count  0 … layers of the model
  /// \throws std::invalid_argument  layer_count out of range
  /// \throws std::logic_error       begin() or, for a layer, draw() did not come before
  [[nodiscard]] FeatureView<const S> features_after(Index layer_count) const {
    this->check_layer_count(layer_count, steps_.layer_count());
    return steps_.features_after(layer_count);
  }
  /// The node maps of a layer in the last draw. \param layer  0 … layers − 1
  ///
  /// \throws std::invalid_argument  layer out of range
  /// \throws std::logic_error       draw() did not come before
  [[nodiscard]] const layers::NodeMaps<D, S>& node_maps(Index layer) const {
    require_between("layer", layer, 0, steps_.layer_count() - 1);
    this->check_drawn("node_maps");
    return steps_.stages[static_cast<std::size_t>(layer)].maps;
  }
  /// Uses these maps of all nodes, one element per layer, in place of the model's maps in later evaluations. An empty
  /// argument restores the model's maps.
  ///
  /// \throws std::invalid_argument  the number of elements differs from the number of layers, or maps of another number
  ///                                of nodes
  void give_maps(std::vector<layers::NodeMapRows<D, S>> maps) {
    const Index count = static_cast<Index>(maps.size()), n = steps_.graph.node_count();
    require(maps.empty() || count == steps_.layer_count(), "maps", count,
            detail::concat("must be 0, or one for each of ", steps_.layer_count(), " layers"));
    for (const layers::NodeMapRows<D, S>& rows : maps) {
      for (const Buffer<S>& rotations : rows.rotation) {
        require(rotations.size() == n * D * D, "numbers of a rotation per node", rotations.size(),
                detail::concat("must be ", D * D, " for each of ", n, " nodes"));
      }
    }
    steps_.given_maps = std::move(maps);
  }
  /// The distributions of a layer's maps. They come from the last begin() and are the same for all layers, or with
  /// layer_learners from the last draw. \param layer  0 … layers − 1
  ///
  /// \throws std::invalid_argument  layer out of range
  /// \throws std::logic_error       begin() or, with layer_learners, draw() did not come before
  [[nodiscard]] const layers::VariationalNodeMaps<D, S>& posterior(Index layer = 0) const requires Bayesian {
    require_between("layer", layer, 0, steps_.layer_count() - 1);
    check_posterior("posterior");
    return steps_.posteriors[steps_.pair_of(layer)];
  }

  /// KL(Q ‖ prior) after the last begin(), the mean over nodes and sides. With layer_learners it belongs to the last
  /// draw and is also a mean over layers. It is 0 for deterministic models.
  ///
  /// \throws std::logic_error  begin() or, with layer_learners, draw() did not come before
  [[nodiscard]] double kl() {
    check_posterior("kl");
    return Passes::kl();
  }

  /// Computes embeddings H and, for Bayesian models without layer_learners, the posterior Q(T, S | H).
  ///
  /// \param shared  null, or a network of the same model that has computed H: share(). May be this one
  /// \throws std::invalid_argument  rates, samples, nodes or noise out of range or of a wrong length, or training with
  ///                                given maps
  /// \throws std::logic_error       share() did not come before
  BegunPass<Network> begin(const ForwardPass<S>& pass, Network* shared = nullptr) {
    require(!pass.training || steps_.given_maps.empty(), "training", true, "given maps are for evaluations");
    this->begin_pass(pass, shared);
    steps_.set_pass(pass);
    if (shared == nullptr) steps_.embed();
    steps_.start_from(shared == nullptr ? steps_ : shared->steps_, shared != nullptr && !pass.training);
    return this->begun();
  }

  /// Begins a pass from embeddings H that were computed outside the network; neither the features nor the encoder's
  /// weights are read. Its backward pass computes their derivative.
  ///
  /// \param embedding  n × h without gaps; has to stay in place until the backward pass
  /// \throws std::invalid_argument  as above, embeddings of another shape, a model with a separate encoder
  BegunPass<Network, true> begin(const ForwardPass<S>& pass, const MatrixView<const S>& embedding) {
    require(!pass.training || steps_.given_maps.empty(), "training", true, "given maps are for evaluations");
    require_array(embedding, steps_.graph.node_count(), steps_.model.hidden_width(), "embedding");
    require(!steps_.learner_encoder, "separate_encoder", true, "it reads features");
    this->begin_pass(pass);
    steps_.set_pass(pass);
    steps_.start_at(embedding.data(), embedding.data());
    return this->template begun<true>();
  }
  /// Where the derivative of X_{L+1} may be written after begin(). Others of its shape are as good.
  [[nodiscard]] FeatureView<S> features_bar() noexcept {
    const FeatureView<const S> x = steps_.features_after(steps_.layer_count());
    return {steps_.bar.data(), x.nodes(), x.coordinates(), x.channels()};
  }

 private:
  friend struct detail::PassSteps;

  /// Draws the maps of a sample and computes its outputs.
  MatrixView<S> draw(Index sample) {
    const FeatureView<const S> x = diffuse(sample);  // X_{L+1}
    steps_.output.forward(steps_.execution, steps_.weights.readout, steps_.weights.output, x.rows());
    return steps_.output.output();
  }
  /// Draws the maps of a sample and computes X_{L+1} at nodes().
  FeatureView<const S> diffuse(Index sample) {
    this->begin_draw(sample);
    steps_.diffuse();
    this->end_draw();
    return steps_.features_after(steps_.layer_count());
  }
  /// Adds to the derivatives of the layers' weights, of Q's parameters and of H.
  void accumulate(const MatrixView<const S>& outputs_bar) {
    this->check_accumulate();
    const FeatureView<const S> x = features_after(steps_.layer_count());
    steps_.output.backward(steps_.execution, steps_.weights.readout, steps_.weights.output, x.rows(), outputs_bar,
                           {steps_.bar.data(), x.nodes(), steps_.model.hidden_width()}, steps_.weights_bar.readout,
                           steps_.weights_bar.output);
    accumulate_layers();
  }
  /// The same from the derivative of X_{L+1}.
  void accumulate(const FeatureView<const S>& features_bar, bool /*sheaf_begun*/) {
    this->check_accumulate();
    const FeatureView<const S> x = features_after(steps_.layer_count());
    require_shape(features_bar, x.nodes(), x.coordinates(), x.channels(), "features_bar");
    const FeatureView<S> bar = this->features_bar();
    if (features_bar.data() != bar.data()) bar.eigen() = features_bar.eigen();
    accumulate_layers();
  }
  /// Completes gradient() from the sums of accumulate(). \returns the KL term, the mean over nodes and sides
  double finish_backward() {
    finish_layers();
    steps_.encoder.backward(steps_.execution, steps_.matrix(steps_.embedding_bar), steps_.weights_bar.encoder);
    return steps_.kl;
  }
  /// The same after a pass from given embeddings, and computes their derivative.
  double finish_backward(const MatrixView<S>& embedding_bar) {
    require_array(embedding_bar, steps_.graph.node_count(), steps_.model.hidden_width(), "embedding_bar");
    finish_layers();
    embedding_bar.eigen() = steps_.matrix(steps_.embedding_bar).eigen();
    return steps_.kl;
  }
  /// Takes the derivative of X_{L+1} from bar, and adds to the derivatives of the layers' weights and of H.
  void accumulate_layers() {
    steps_.diffuse_backward();
    if (steps_.first_sample) {
      std::swap(steps_.x_bar, steps_.embedding_bar);
    } else {
      detail::add_array(steps_.execution, steps_.x_bar.size(), steps_.x_bar.data(), steps_.embedding_bar.data());
    }
    steps_.first_sample = steps_.kept = false;
  }
  /// Computes the derivatives of H and of the learners that serve all layers.
  void finish_layers() {
    this->check_finish();
    if constexpr (Bayesian) {
      if (steps_.closed_form && !steps_.learns_per_layer()) steps_.kl = steps_.mean_kl();
      steps_.finish_posterior(steps_.learner_start);
    }
  }
  void check_posterior(std::string_view step) const {
    this->check_begun(step);
    if (Bayesian && steps_.learns_per_layer()) this->check_drawn(step);
  }
};

}  // namespace sheafnn
