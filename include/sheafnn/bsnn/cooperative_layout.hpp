/// \file
/// CooperativeWeights: all parameters of a cooperative network, declared once.
#pragma once

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "sheafnn/bsnn/cooperative_options.hpp"
#include "sheafnn/bsnn/model_layout.hpp"
#include "sheafnn/layers/node_learner.hpp"
#include "sheafnn/layers/weights.hpp"
#include "sheafnn/nn/parameter_list.hpp"

namespace sheafnn {

/// The learners of a cooperative network. Unchecked: the options are resolved, sizes are at least 1.
///
/// \param outputs  values that each learner predicts per node
[[nodiscard]] inline layers::NodeLearnerOptions node_learner(const CooperativeOptions& options, Index h,
                                                             Index outputs) {
  return {options.learner, h, options.learner_width, outputs, options.learner_layers};
}

/// All weights of a network, or their gradients or places. \tparam T  const S, S or ParameterSlot
template <class T>
struct CooperativeWeights : LayerWeights<T> {
  layers::LinearWeights<T> encoder, learner_encoder, output;
  std::vector<layers::LinearWeights<T>> readout;                       ///< of the hidden layers of the readout
  std::vector<std::array<layers::NodeLearnerWeights<T>, 2>> learners;  ///< for T and for S; one pair, or one per layer

  /// Linear layers start uniform in ±1/√inputs. In Bayesian models the biases of κ_raw and s_raw start where the first
  /// samples stay near their means.
  ///
  /// Unchecked: the options are resolved, sizes are at least 1.
  ///
  /// \param options  resolved
  /// \param d        stalk dimension
  /// \param outputs  values that each learner predicts per node
  void declare(layers::ParameterList<T>& list, const CooperativeOptions& options, Index d, Index outputs,
               bool bayesian) {
    constexpr double raw_concentration = -4, raw_deviation = -2;
    const Index f = options.channels, h = d * f,
                rotation = d * (d - 1) / 2;  // κ_raw, μ, s_raw follow the rotation
    list.as_stored = true;
    encoder.declare(list, "lin1", h, options.features);
    list.group = layers::ParameterGroup::sheaf_learner;
    if (options.separate_encoder) learner_encoder.declare(list, "lin_maps", h, options.features);
    std::vector<std::pair<Index, double>> raised;
    if (bayesian) raised.emplace_back(rotation, raw_concentration);
    if (bayesian && options.conformal) raised.emplace_back(rotation + 2, raw_deviation);
    const bool shared = bayesian && !options.layer_learners;
    learners.resize(static_cast<std::size_t>(shared ? 1 : options.layers));
    for (std::size_t l = 0; l < learners.size(); ++l) {
      const std::string number = shared ? "" : detail::concat(".", l);
      learners[l][0].declare(list, "out" + number, node_learner(options, h, outputs), raised);
      learners[l][1].declare(list, "in" + number, node_learner(options, h, outputs), raised);
    }
    list.group = layers::ParameterGroup::network;
    const layers::LayerSetting layer{.diffusion = {options.left_weights, options.right_weights, true, options.residual},
                             .coordinates = d,
                             .channels = f};
    LayerWeights<T>::declare(list, layer, options.layers, options.norm != FeatureNorm::none);
    declare_readout(list, readout, output, options.readout_layers, options.classes, h);
  }
};

}  // namespace sheafnn
