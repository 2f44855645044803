/// \file
/// NetworkOfSteps: the passes of a network that consists of its steps only. Such networks share no embeddings with
/// other networks. Examples are networks of bundles, convolutions and hypergraphs. The last take embeddings from
/// outside as well.
#pragma once

#include <utility>

#include "sheafnn/bsnn/network_passes.hpp"

namespace sheafnn::detail {

/// Base of specialisations of Network for such networks.
///
/// \tparam Steps  as for NetworkPasses, and
///                - set_pass(pass): checks and takes a pass;
///                - embed(): X_1 and, of Bayesian models, the posterior;
///                - compute_outputs(): draws the maps of a sample, and computes its outputs;
///                - accumulate(outputs_bar): adds to the derivatives of the layers' weights, of the posterior's
///                  parameters and of X_1, over the samples;
///                - embed_backward(): from these sums, computes the derivatives of the encoder's and the learner's
///                  weights;
///                - features_after(count): X_{count+1}
template <class Derived, class Steps>
class NetworkOfSteps : public NetworkPasses<Derived, Steps> {
  using Passes = NetworkPasses<Derived, Steps>;

 protected:
  using Passes::Passes, Passes::steps_;

 public:
  using typename Passes::Model, typename Passes::S;

  /// X_{l+1} after l layers of the last draw, at all nodes, valid until the next pass. It is X_1 for l = 0.
  /// \param layer_count  0 … layers of the model
  ///
  /// \throws std::invalid_argument  layer_count out of range
  /// \throws std::logic_error       begin() or, for a layer, draw() did not come before
  [[nodiscard]] FeatureView<const S> features_after(Index layer_count) const {
    this->check_layer_count(layer_count, steps_.layer_count());
    return steps_.features_after(layer_count);
  }

  /// Computes X_1 and, for Bayesian models, the posterior.
  ///
  /// \throws std::invalid_argument  rates, samples, nodes or noise out of range or of a wrong length
  BegunPass<Derived> begin(const ForwardPass<S>& pass) {
    this->begin_pass(pass);
    steps_.set_pass(pass);
    steps_.embed();
    return this->begun();
  }

 protected:
  friend struct PassSteps;

  /// Draws the maps of a sample and computes its outputs.
  MatrixView<S> draw(Index sample) {
    this->begin_draw(sample);
    steps_.compute_outputs();
    this->end_draw();
    return steps_.output.output();
  }
  /// Adds to the derivatives of the layers' weights, of the posterior's parameters and of X_1.
  void accumulate(const MatrixView<const S>& outputs_bar) {
    this->check_accumulate();
    steps_.accumulate(outputs_bar);
    steps_.first_sample = steps_.kept = false;
  }
  /// Completes gradient() from the sums of accumulate(). \returns the KL term, the mean over the variables that are drawn
  double finish_backward() {
    end_backward();
    steps_.embed_backward();
    return steps_.kl;
  }
  /// What finish_backward() begins with. \throws std::logic_error
  void end_backward() {
    this->check_finish();
    if (steps_.closed_form) steps_.kl = steps_.mean_kl();
  }
};

}  // namespace sheafnn::detail
