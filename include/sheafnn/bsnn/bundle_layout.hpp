/// \file
/// BundleNetworkWeights: all parameters of a bundle network, declared once.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sheafnn/bsnn/bundle_options.hpp"
#include "sheafnn/bsnn/model_layout.hpp"
#include "sheafnn/layers/bundle_weights.hpp"
#include "sheafnn/layers/weights.hpp"
#include "sheafnn/nn/parameter_list.hpp"

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

}  // namespace sheafnn
