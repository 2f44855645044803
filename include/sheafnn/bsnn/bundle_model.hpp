/// \file
/// BundleModel: a bundle network's architecture and parameters, independent of any graph. For each of several flat
/// vector bundles, every node has a rotation into a common frame, in which features diffuse by the heat equation.
///
///     using Model = sheafnn::Bunn<2>;           // deterministic bundle network
///     using Model = sheafnn::BayesianBunn<3>;   // Bayesian: distributions of the rotations
///
/// Its networks: bundle_network.hpp. Source: math: "Flat bundles", "Bayesian bundles"; Bundle Neural Networks
/// (Bamberger et al.).
#pragma once

#include <concepts>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "sheafnn/bsnn/bundle_layout.hpp"
#include "sheafnn/bsnn/bundle_options.hpp"
#include "sheafnn/bsnn/model_parts.hpp"
#include "sheafnn/bsnn/network.hpp"
#include "sheafnn/nn/parameters.hpp"
#include "sheafnn/posterior/cayley.hpp"
#include "sheafnn/posterior/point_mass.hpp"
#include "sheafnn/sheaf/families/special_orthogonal.hpp"

namespace sheafnn {

/// Architecture and parameters.
///
/// \tparam D         dimension of the bundles, 2 or more: rotations of one dimension are all the same
/// \tparam Bayesian  do the rotations have distributions?
/// \tparam S         float (default) or double
template <int D, bool Bayesian, std::floating_point S = float>
  requires(sheaf::StalkDimension<D>&& D > 1)
class BundleModel : public detail::ModelParts<BundleOptions, BundleNetworkWeights<layers::ParameterSlot>, S> {
  using Parts = detail::ModelParts<BundleOptions, BundleNetworkWeights<layers::ParameterSlot>, S>;
  using Parts::layout_, Parts::options_, Parts::parameters_;

 public:
  using Family = SpecialOrthogonal<D>;
  using Posterior = std::conditional_t<Bayesian, CayleyPosterior<Family>, PointMass<Family>>;
  using typename Parts::Options, typename Parts::Scalar;
  static constexpr int stalk_dimension = D;
  static constexpr bool bayesian = Bayesian;
  /// The name of the model in checkpoints and programs.
  static constexpr std::string_view kind = bayesian ? Options::kind.bayesian : Options::kind.deterministic;
  /// Number of values that a learner predicts for each node and bundle.
  static constexpr Index rotation_outputs = rotation::rotation_parameters<D> + (bayesian ? 1 : 0);

  /// Builds the model with initial parameters: linear layers uniform in ±1/√fan_in; distributions of Bayesian models start
  /// concentrated.
  ///
  /// \param seed  selects the initial parameters
  /// \throws std::invalid_argument  an option out of range (see resolve())
  explicit BundleModel(const BundleOptions& options, std::uint64_t seed = 0)
      : BundleModel(detail::LayoutOnly{}, options) {
    parameters_.initialise(seed);
  }
  /// The same model without values of its parameters.
  BundleModel(detail::LayoutOnly, const BundleOptions& options) : Parts(resolve(options, D)) {
    layers::ParameterList<layers::ParameterSlot> list(parameters_);
    declare(list, layout_);
  }

  /// Coordinates of a node, B · D.
  [[nodiscard]] Index coordinates() const noexcept { return options_.bundles * D; }
  /// h = B · D · channels.
  [[nodiscard]] Index hidden_width() const noexcept { return coordinates() * options_.channels; }
  /// Number of different sheaves in a forward pass: one per layer.
  [[nodiscard]] Index sheaf_count() const noexcept { return options_.layers; }
  /// The learners of rotations.
  [[nodiscard]] layers::BundleLearnerOptions learner() const {
    return bundle_learner(options_, hidden_width(), options_.bundles * rotation_outputs);
  }
  /// Declares all parameters. Takes any list.
  template <class T>
  void declare(layers::ParameterList<T>& list, BundleNetworkWeights<T>& weights) const {
    weights.declare(list, options_, D, rotation_outputs, bayesian);
  }
};

/// Bundle network: the rotations are learned functions of each layer's features.
template <int D, std::floating_point S = float>
using Bunn = BundleModel<D, false, S>;
/// Bayesian bundle network: the rotations have learned distributions.
template <int D, std::floating_point S = float>
using BayesianBunn = BundleModel<D, true, S>;

/// See bundle_network.hpp.
template <int D, bool Bayesian, std::floating_point Scalar>
class Network<BundleModel<D, Bayesian, Scalar>>;

}  // namespace sheafnn
