/// \file
/// Networks of sheaf convolutions: they have the passes of every network (network.hpp), so losses, training and
/// prediction work with them. Formulas: convolution_model.hpp.
///
/// As in other Bayesian networks, explicit noise (ForwardPass::noise) is one array per layer, with a row of
/// Posterior::noise_size values per arc. Source: math: "Convolutions on given sheaves".
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

  /// The sheaves of the last draw and, for Bayesian models, the posterior they are drawn from.
  [[nodiscard]] const auto& sheaf_source() const noexcept { return steps_.source; }
};

}  // namespace sheafnn
