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
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "sheafnn/bsnn/bundle_options.hpp"
#include "sheafnn/bsnn/model_layout.hpp"
#include "sheafnn/bsnn/model_parts.hpp"
#include "sheafnn/bsnn/network.hpp"
#include "sheafnn/layers/bundle_weights.hpp"
#include "sheafnn/layers/weights.hpp"
#include "sheafnn/nn/parameter_list.hpp"
#include "sheafnn/nn/parameters.hpp"
#include "sheafnn/posterior/cayley.hpp"
#include "sheafnn/posterior/point_mass.hpp"
#include "sheafnn/sheaf/families/special_orthogonal.hpp"

namespace sheafnn {

namespace detail {

/// Dropouts of hidden units of bundle networks are numbered from here on; smaller numbers belong to the layers. No model has
/// that many layers.
inline constexpr Index hidden_dropouts = 64;

}  // namespace detail

/// The learners of a bundle network. Unchecked: the options are resolved.
///
/// \param h        width of the features
/// \param outputs  values that each learner predicts per node
[[nodiscard]] inline layers::BundleLearnerOptions bundle_learner(const BundleOptions& options, Index h,
                                                                 Index outputs) {
  return {options.learner, h, options.learner_width, outputs, options.learner_layers};
}

/// All weights of a network, or their gradients or places. \tparam T  const S, S or ParameterSlot
template <class T>
struct BundleNetworkWeights {
  layers::LinearWeights<T> encoder, output;
  std::vector<layers::LinearWeights<T>> readout;          ///< of the hidden layers of the readout
  std::vector<layers::BundleLearnerWeights<T>> learners;  ///< one per layer, or one for all
  std::vector<layers::BundleWeights<T>> layers;
  layers::NormWeights<T> norm;  ///< before the readout; empty without layer_norm

  /// Linear layers start uniform in ±1/√inputs. In Bayesian models the biases of κ_raw start where the first samples stay
  /// near their means.
  ///
  /// Unchecked: the options are resolved.
  ///
  /// \param d     dimension of the bundles
  /// \param each  values that the learners predict per node and bundle, of which the last is κ_raw in Bayesian models
  void declare(layers::ParameterList<T>& list, const BundleOptions& options, Index d, Index each, bool bayesian) {
    constexpr double raw_concentration = -4;
    const Index h = options.bundles * d * options.channels;
    list.as_stored = true;
    encoder.declare(list, "lin1", h, options.features);
    list.group = layers::ParameterGroup::sheaf_learner;
    std::vector<std::pair<Index, double>> raised;
    for (Index b = 0; bayesian && b < options.bundles; ++b)
      raised.emplace_back((b + 1) * each - 1, raw_concentration);
    learners.resize(static_cast<std::size_t>(bayesian ? 1 : options.layers));
    for (std::size_t l = 0; l < learners.size(); ++l) {
      learners[l].declare(list, bayesian ? std::string("maps") : detail::concat("maps.", l),
                          bundle_learner(options, h, options.bundles * each), raised);
    }
    list.group = layers::ParameterGroup::network;
    layers.resize(static_cast<std::size_t>(options.layers));
    for (std::size_t l = 0; l < layers.size(); ++l) {
      layers[l].declare(list, options.heat(), options.mixing, options.layer_norm, options.bundles, h,
                        static_cast<Index>(l));
    }
    if (options.layer_norm) norm.declare(list, "norm.out", h);
    declare_readout(list, readout, output, options.readout_layers, options.classes, h);
  }
};

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
