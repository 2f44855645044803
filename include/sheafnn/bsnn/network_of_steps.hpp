/// \file
/// NetworkOfSteps: the passes of every network, from its steps. All but networks of bundles, of convolutions
/// and of flows take embeddings from outside as well.
#pragma once

#include <utility>

#include "sheafnn/bsnn/network_passes.hpp"

namespace sheafnn::detail {

/// Base of specialisations of Network for such networks.
///
/// \tparam Steps  as for NetworkPasses, and
///                - set_pass(pass): checks and takes a pass;
///                - embed(): X_1 and, of Bayesian models, the posterior. Of steps that share embeddings it computes H
///                  only, start_from_encoder() goes on from that, and take(steps) from what others have computed;
///                - accumulate_layers(bar, sheaf_begun): from the derivative of X_{L+1}, adds to the derivatives of the
///                  layers' weights, of the posterior's parameters and of X_1, over the samples;
///                - embed_backward(): from these sums, computes the derivatives of the encoder's and the learner's
///                  weights;
///                - mean_kl(): the posterior's KL term in closed form, or 0; ends_with_kl(): does end_backward() compute it?
///                  total_kl(): the KL term at the end of a backward pass. PassState has the last two
///                - features_after(count): X_{count+1}
///                - compute_outputs(): draws the maps of a sample, and computes its outputs; accumulate(outputs_bar):
///                  accumulate_layers() from their derivative. Or, of steps that take embeddings,
///                - diffuse(): draws the maps of a sample, and computes X_{L+1}; last_bar(): where its derivative belongs;
///                  bar_from_outputs(): where it belongs if it comes from outputs;
///                - encodes_twice(): has the learner an encoder of its own?
///                - start_at(h): X_1 = h, and the posterior; start_backward(): from the sums to the derivatives of h and of
///                  the learner's weights
template <class Derived, class Steps>
class NetworkOfSteps : public NetworkPasses<Derived, Steps> {
  using Passes = NetworkPasses<Derived, Steps>;

 protected:
  using Passes::Passes, Passes::steps_;

 public:
  using typename Passes::Model, typename Passes::S;

  /// X_{l+1} after l layers of the last draw, valid until the next pass. It is X_1 for l = 0. Which nodes it has after the last
  /// layer, Network says.
  /// \param layer_count  0 … layers of the model
  ///
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
  /// The same. \param shared  null, or a network of the same model that has computed H: share(). May be this one
  ///
  /// \throws std::invalid_argument  as above
  /// \throws std::logic_error       share() did not come before
  BegunPass<Derived> begin(const ForwardPass<S>& pass,
                           Derived* shared = nullptr) requires Steps::shares_embeddings {
    this->begin_pass(pass, shared);
    steps_.set_pass(pass);
    if (shared == nullptr) {
      steps_.embed();
      steps_.start_from_encoder();
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
    steps_.start_at(embedding);
    return this->template begun<true>();
  }
  /// Where the derivative of X_{L+1} may be written after begin(). Others of its shape are as good.
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
  /// The same from the derivative of X_{L+1}.
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
  /// The same after a pass from given embeddings, and computes their derivative.
  double finish_backward(const MatrixView<S>& embedding_bar) {
    require_array(embedding_bar, steps_.graph.node_count(), steps_.model.hidden_width(), "embedding_bar");
    end_backward();
    embedding_bar.eigen() = steps_.start_backward().eigen();
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
  /// What finish_backward() begins with. \throws std::logic_error
  void end_backward() {
    this->check_finish();
    if (steps_.ends_with_kl()) steps_.kl = steps_.mean_kl();
  }
};

}  // namespace sheafnn::detail
