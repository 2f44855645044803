/// \file
/// Networks of sheaf convolutions: the same passes as in other networks (network.hpp), so that losses, training and
/// prediction work with them as they are. Formulas: convolution_model.hpp.
///
/// Explicit noise (ForwardPass::noise) is one array per layer, as of other Bayesian networks: a row of Posterior::noise_size
/// numbers per arc. Source: math: "Convolutions on given sheaves".
#pragma once

#include <concepts>

#include "sheafnn/bsnn/convolution_steps.hpp"
#include "sheafnn/bsnn/network.hpp"
#include "sheafnn/bsnn/network_of_steps.hpp"

namespace sheafnn {

/// Refers to the model, whose parameters may change between passes, and to the graph; both must outlive it.
template <RestrictionMapFamily FamilyType, class Posterior, std::floating_point Scalar>
class Network<ConvolutionModel<FamilyType, Posterior, Scalar>>
    : public detail::NetworkOfSteps<Network<ConvolutionModel<FamilyType, Posterior, Scalar>>,
                                    detail::ConvolutionSteps<ConvolutionModel<FamilyType, Posterior, Scalar>>> {
  using Base =
      detail::NetworkOfSteps<Network, detail::ConvolutionSteps<ConvolutionModel<FamilyType, Posterior, Scalar>>>;
  using Base::steps_;

 public:
  using typename Base::Family, typename Base::Model;
  using S = Scalar;

  /// \param features  n × p
  /// \throws std::invalid_argument  features that do not fit the model or the graph, a graph without nodes, or given maps over
  ///                                another graph
  Network(const Model& model, const Graph& graph, const NodeFeatures& features, Execution execution = {})
      : Base(model, graph, features, execution) {}
  Network(const Model&&, const Graph&, const NodeFeatures&, Execution = {}) = delete;  // they would dangle
  Network(const Model&, const Graph&&, const NodeFeatures&, Execution = {}) = delete;

  /// The sheaves of the last draw and, of Bayesian models, the posterior they are drawn from.
  [[nodiscard]] const auto& sheaf_source() const noexcept { return steps_.source; }
};

}  // namespace sheafnn
