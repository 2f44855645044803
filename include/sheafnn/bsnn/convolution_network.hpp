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

/// Refers to the model, whose parameters may change between passes, and to the graph; both must outlive it. Given maps must be
/// over the same graph.
template <RestrictionMapFamily FamilyType, class Posterior, std::floating_point Scalar>
class Network<ConvolutionModel<FamilyType, Posterior, Scalar>>
    : public detail::NetworkOfSteps<Network<ConvolutionModel<FamilyType, Posterior, Scalar>>,
                                    detail::ConvolutionSteps<ConvolutionModel<FamilyType, Posterior, Scalar>>> {
  using Base =
      detail::NetworkOfSteps<Network, detail::ConvolutionSteps<ConvolutionModel<FamilyType, Posterior, Scalar>>>;

 public:
  using Base::Base;
};

}  // namespace sheafnn
