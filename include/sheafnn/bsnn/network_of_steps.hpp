/// \file
/// NetworkOfSteps: the passes of every network, from its steps. In this order a training step calls
///
///     begin()            set_pass(), embed()                           H and Q(F | H)
///     draw()             diffuse(), readout                            F ~ Q, X_{L+1}, Y      for each sample
///     accumulate()       backward pass of the readout, accumulate_layers()                    for each sample
///     finish_backward()  mean_kl(), embed_backward()                   gradient
///
/// Networks of bundles, of convolutions and of flows have compute_outputs() in place of diffuse() and readout. All others can
/// begin a pass from embeddings that were computed elsewhere.
#pragma once

#include <utility>

#include "sheafnn/bsnn/network_passes.hpp"

namespace sheafnn::detail {

/// Base of specialisations of Network for such networks.
///
/// \tparam Steps  as for NetworkPasses, and
///                - set_pass(pass): checks and takes a pass;
///                - embed(): computes X_1 and, for Bayesian models, the posterior. If the steps share embeddings, it computes
///                  only H; infer_from_encoder() or take(steps), from the H of other steps, computes the rest;
///                - accumulate_layers(bar, sheaf_begun): from the derivative of X_{L+1}, adds to the derivatives of the
///                  layers' weights, of the posterior's parameters and of X_1, over the samples;
///                - embed_backward(): from these sums, computes the derivatives of the encoder's and the learner's
///                  weights;
///                - mean_kl(): the posterior's KL term in closed form, or 0; ends_with_kl(): does end_backward() compute it?
///                  total_kl(): the KL term at the end of a backward pass. PassState defines the last two;
///                - features_after(count): X_{count+1};
///                - compute_outputs(): draws the maps of a sample, and computes its outputs; accumulate(outputs_bar):
///                  accumulate_layers() from their derivative. Or, of steps that take embeddings,
///                - diffuse(): draws the maps of a sample, and computes X_{L+1}; last_bar(): memory for its derivative;
///                  bar_from_outputs(): memory for the derivative that the readout computes;
///                - encodes_twice(): has the learner an encoder of its own?
///                - infer_from(h): X_1 = h, and the posterior; infer_backward(): from the sums to the derivatives of h and of
///                  the learner's weights
template <class Derived, class Steps>
class NetworkOfSteps : public NetworkPasses<Derived, Steps> {
  using Passes = NetworkPasses<Derived, Steps>;

 protected:
  using Passes::steps_;
  template <class... Arguments>
  explicit NetworkOfSteps(std::in_place_t, Arguments&&... of_steps)
      : Passes(std::forward<Arguments>(of_steps)...) {}

 public:
  using typename Passes::Model, typename Passes::S;

  /// Allocates most buffers; a pass allocates the others when it first needs them.
  ///
  /// \param features  n × p
  /// \throws std::invalid_argument  features that do not fit the model or the graph, or a graph without nodes
  NetworkOfSteps(const Model& model, const GraphOf<Model>& graph, const NodeFeatures& features,
                 Execution execution = {})
      : Passes(model, graph, features, execution) {}
  NetworkOfSteps(const Model&&, const GraphOf<Model>&, const NodeFeatures&, Execution = {}) = delete;  // they would
  NetworkOfSteps(const Model&, const GraphOf<Model>&&, const NodeFeatures&, Execution = {}) = delete;  // dangle

  /// The sheaves of the last draw and, for Bayesian models, the posterior they are drawn from. After a pass with recompute_layers
  /// only the sheaves of the last segment are left, and after one with compress_layers only the last sheaf. The others have no arrays.
  [[nodiscard]] const auto& sheaf_source() const noexcept { return steps_.source; }

  /// X_{l+1} after l layers of the last draw, n × d' × f, valid until the next pass; X_1 for l = 0. After the last layer some
  /// networks have rows for nodes() only; the network's class says so.
  ///
  /// \param layer_count  l, 0 … layers of the model
  /// \throws std::invalid_argument  layer_count out of range
  /// \throws std::logic_error       begin() or, for a layer, draw() did not come before; an inner layer of a pass that computes
  ///                                layers again
  [[nodiscard]] FeatureView<const S> features_after(Index layer_count) const {
    this->check_layer_count(layer_count, steps_.layer_count());
    return steps_.features_after(layer_count);
  }

  /// Computes X_1 and, for Bayesian models, the posterior.
  ///
  /// \throws std::invalid_argument  rates, samples, nodes or noise out of range or of a wrong length, or training with given
  ///                                maps
  BegunPass<Derived> begin(const ForwardPass<S>& pass) requires(!Steps::shares_embeddings) {
    this->begin_pass(pass);
    steps_.set_pass(pass);
    steps_.embed();
    return this->begun();
  }
  /// Computes X_1 and, for Bayesian models, the posterior.
  ///
  /// \param shared  a network of the same model whose share() has computed H; may be this network. Null: computes H
  /// \throws std::invalid_argument  as above
  /// \throws std::logic_error       share() did not come before
  BegunPass<Derived> begin(const ForwardPass<S>& pass,
                           Derived* shared = nullptr) requires Steps::shares_embeddings {
    this->begin_pass(pass, shared);
    steps_.set_pass(pass);
    if (shared == nullptr) {
      steps_.embed();
      steps_.infer_from_encoder();
    } else {
      steps_.take(static_cast<NetworkOfSteps&>(*shared).steps_);
    }
    return this->begun();
  }
  /// Begins a pass from embeddings H that were computed outside the network; neither the features nor the encoder's
  /// weights are read. Its backward pass computes their derivative.
  ///
  /// \param embedding  n × h without gaps; has to stay in place until the backward pass
  /// \throws std::invalid_argument  as begin(pass), embeddings of another shape, a model with a separate encoder
  BegunPass<Derived, true> begin(const ForwardPass<S>& pass,
                                 const MatrixView<const S>& embedding) requires Steps::takes_embeddings {
    require_array(embedding, steps_.graph.node_count(), steps_.model.hidden_width(), "embedding");
    require(!steps_.encodes_twice(), "separate_encoder", true, "it reads features");
    this->begin_pass(pass);
    steps_.set_pass(pass);
    steps_.infer_from(embedding);
    return this->template begun<true>();
  }
  /// Memory in which callers may store the derivative of X_{L+1} after begin(); any other of its shape works as well.
  [[nodiscard]] FeatureView<S> features_bar() requires Steps::takes_embeddings {
    return steps_.last_bar();
  }

 protected:
  friend struct PassSteps;

  /// Draws the maps of a sample and computes its outputs.
  MatrixView<S> draw(Index sample) {
    if constexpr (Steps::takes_embeddings) {
      const FeatureView<const S> x = diffuse(sample);  // X_{L+1}
      steps_.output.forward(steps_.execution, steps_.weights.readout, steps_.weights.output, x.rows());
    } else {
      this->begin_draw(sample);
      steps_.compute_outputs();
      this->end_draw();
    }
    return steps_.output.output();
  }
  /// Draws the maps of a sample and computes X_{L+1} at nodes().
  FeatureView<const S> diffuse(Index sample) {
    this->begin_draw(sample);
    steps_.diffuse();
    this->end_draw();
    return steps_.features_after(steps_.layer_count());
  }
  /// Adds to the derivatives of the layers' weights, of the posterior's parameters and of X_1.
  void accumulate(const MatrixView<const S>& outputs_bar) {
    this->check_accumulate();
    const MatrixView<const S> outputs = this->outputs();
    require_shape(outputs_bar, outputs.rows(), outputs.columns(), "output_bar");
    this->begin_accumulate();
    if constexpr (Steps::takes_embeddings) {
      const FeatureView<S> bar = bar_from_outputs();
      steps_.output.backward(steps_.execution, steps_.weights.readout, steps_.weights.output,
                             steps_.features_after(steps_.layer_count()).rows(), outputs_bar, bar.rows(),
                             steps_.weights_bar.readout, steps_.weights_bar.output);
      steps_.accumulate_layers(bar, false);
    } else {
      steps_.accumulate(outputs_bar);
    }
    this->end_accumulate();
  }
  /// Adds to these derivatives from the derivative of X_{L+1}.
  void accumulate(const FeatureView<const S>& features_bar, bool sheaf_begun) {
    this->check_accumulate();
    const FeatureView<S> bar = steps_.last_bar();
    require_shape(features_bar, bar.nodes(), bar.coordinates(), bar.channels(), "features_bar");
    this->begin_accumulate();
    if (features_bar.data() != bar.data()) bar.eigen() = features_bar.eigen();
    steps_.accumulate_layers(bar, sheaf_begun);
    this->end_accumulate();
  }
  /// Completes gradient() from the sums of accumulate(). \returns the KL term, the mean over the variables that are drawn
  double finish_backward() {
    end_backward();
    steps_.embed_backward();
    return steps_.total_kl();
  }
  /// Completes gradient() after a pass from given embeddings, and computes their derivative, n × h.
  double finish_backward(const MatrixView<S>& embedding_bar) {
    require_array(embedding_bar, steps_.graph.node_count(), steps_.model.hidden_width(), "embedding_bar");
    end_backward();
    embedding_bar.eigen() = steps_.infer_backward().eigen();
    return steps_.total_kl();
  }

 private:
  [[nodiscard]] FeatureView<S> bar_from_outputs() {
    if constexpr (requires { steps_.bar_from_outputs(); }) {
      return steps_.bar_from_outputs();
    } else {
      return steps_.last_bar();
    }
  }
  /// Ends the sums of accumulate(). \throws std::logic_error  accumulate() did not come before
  void end_backward() {
    this->check_finish();
    if (steps_.ends_with_kl()) steps_.kl = steps_.mean_kl();
  }
};

}  // namespace sheafnn::detail
