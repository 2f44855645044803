/// \file
/// Networks of sheaf convolutions: the same passes as those of other networks (network.hpp), so that losses, training and
/// prediction work with them as they are. Formulas: convolution_model.hpp.
///
/// Explicit noise (ForwardPass::noise) is one array per layer, as of other Bayesian networks: a row of Posterior::noise_size
/// numbers per arc. Source: math: "Convolutions on given sheaves".
#pragma once

#include <concepts>

#include "sheafnn/bsnn/convolution_steps.hpp"
#include "sheafnn/bsnn/network.hpp"

namespace sheafnn {

/// Refers to the model, whose parameters may change between passes, and to the graph; both must outlive it.
template <RestrictionMapFamily FamilyType, class Posterior, std::floating_point Scalar>
class Network<ConvolutionModel<FamilyType, Posterior, Scalar>>
    : public detail::NetworkPasses<Network<ConvolutionModel<FamilyType, Posterior, Scalar>>,
                                   detail::ConvolutionSteps<ConvolutionModel<FamilyType, Posterior, Scalar>>> {
  using Passes =
      detail::NetworkPasses<Network, detail::ConvolutionSteps<ConvolutionModel<FamilyType, Posterior, Scalar>>>;
  using Passes::steps_;

 public:
  using typename Passes::Family, typename Passes::Model;
  using S = Scalar;

  /// \param features  n × p
  /// \throws std::invalid_argument  features that do not fit the model or the graph, a graph without nodes, or given maps over
  ///                                another graph
  Network(const Model& model, const Graph& graph, const NodeFeatures& features, Execution execution = {})
      : Passes(model, graph, features, execution) {}
  Network(const Model&&, const Graph&, const NodeFeatures&, Execution = {}) = delete;  // they would dangle
  Network(const Model&, const Graph&&, const NodeFeatures&, Execution = {}) = delete;

  /// X_{l+1} after this many layers l, of the last draw and valid until the next pass: X_1 after none, at all nodes; after all
  /// layers at nodes() only. \param layer_count  0 … layers of the model
  ///
  /// \throws std::invalid_argument  layer_count out of range
  /// \throws std::logic_error       begin() or, for a layer, draw() did not come before
  [[nodiscard]] FeatureView<const S> features_after(Index layer_count) const {
    this->check_layer_count(layer_count, steps_.layer_count());
    return steps_.features_after(layer_count);
  }
  /// The sheaves of the last draw and, of Bayesian models, the posterior they are drawn from.
  [[nodiscard]] const auto& sheaf_source() const noexcept { return steps_.source; }

  /// X_1 and, of Bayesian models, the posterior Q(F | X_1).
  ///
  /// \throws std::invalid_argument  rates, samples, nodes or noise out of range or of a wrong length
  void begin(const ForwardPass<S>& pass) {
    this->begin_pass(pass);
    steps_.set_pass(pass);
    steps_.embed();
  }
  /// Draws the sheaves of a sample and computes its outputs.
  ///
  /// \throws std::invalid_argument  a sample outside 0 … 32767, or one that there is no explicit noise for
  /// \throws std::logic_error       begin() did not come before
  MatrixView<S> draw(Index sample) {
    this->begin_draw(sample);
    steps_.diffuse();
    this->end_draw();
    return steps_.output.output();
  }
  /// Backwards from the derivative of the last draw's outputs to those of the layers' weights, of Q's parameters and of X_1,
  /// which add up.
  ///
  /// \throws std::invalid_argument  outputs_bar of another shape
  /// \throws std::logic_error       no begin_backward(), or no draw() of a pass with training = true came before
  void accumulate(const MatrixView<const S>& outputs_bar) {
    this->check_accumulate();
    steps_.diffuse_backward(outputs_bar);
    steps_.first_sample = steps_.kept = false;
  }
  /// From what accumulate() has gathered to gradient().
  ///
  /// \returns the KL term, per incident pair
  /// \throws std::logic_error  no begin_backward() or no accumulate() came before
  double finish_backward() {
    this->check_finish();
    steps_.embed_backward();
    return steps_.kl;
  }
};

}  // namespace sheafnn
