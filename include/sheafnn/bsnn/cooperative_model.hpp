/// \file
/// CooperativeModel: a cooperative sheaf network's architecture and parameters, independent of any graph. Its maps live
/// on nodes: every node receives through one conformal map and sends through another.
///
///     using Model = sheafnn::Csnn<3>;    // deterministic cooperative sheaf network
///     using Model = sheafnn::Bcsnn<3>;   // Bayesian: distributions of the node maps
///
/// Its networks: cooperative_network.hpp. Source: math: "Cooperative sheaves", "Bayesian cooperative sheaves";
/// Cooperative Sheaf Neural Networks (Ribeiro et al.).
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "sheafnn/bsnn/cooperative_options.hpp"
#include "sheafnn/bsnn/model_layout.hpp"
#include "sheafnn/bsnn/model_parts.hpp"
#include "sheafnn/layers/node_learner.hpp"
#include "sheafnn/layers/point_node_maps.hpp"
#include "sheafnn/layers/weights.hpp"
#include "sheafnn/nn/parameter_list.hpp"
#include "sheafnn/nn/parameters.hpp"
#include "sheafnn/posterior/node_map_posterior.hpp"
#include "sheafnn/posterior/point_mass.hpp"
#include "sheafnn/sheaf/families/conformal.hpp"

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

/// Architecture and parameters.
///
/// \tparam D         stalk dimension
/// \tparam Bayesian  do the node maps have distributions?
/// \tparam S         float (default) or double
template <int D, bool Bayesian, std::floating_point S = float>
  requires sheaf::StalkDimension<D>
class CooperativeModel
    : public detail::ModelParts<CooperativeOptions, CooperativeWeights<layers::ParameterSlot>, S> {
  using Parts = detail::ModelParts<CooperativeOptions, CooperativeWeights<layers::ParameterSlot>, S>;
  using Parts::layout_, Parts::options_, Parts::parameters_;

 public:
  using Family = Conformal<D>;
  using Posterior = std::conditional_t<Bayesian, NodeMapPosterior<D>, PointMass<Family>>;
  using typename Parts::Options, typename Parts::Scalar;
  static constexpr int stalk_dimension = D;
  static constexpr bool bayesian = Bayesian;
  /// The name of the model in checkpoints and programs.
  static constexpr std::string_view kind = bayesian ? Options::kind.bayesian : Options::kind.deterministic;

  /// Builds the model with initial parameters: linear layers uniform in ±1/√fan_in, A_l = I, B_l random
  /// orthogonal, ε = 0; distributions of Bayesian models start concentrated.
  ///
  /// \param seed  selects the initial parameters
  /// \throws std::invalid_argument  an option out of range (see resolve())
  explicit CooperativeModel(const CooperativeOptions& options, std::uint64_t seed = 0)
      : CooperativeModel(detail::LayoutOnly{}, options) {
    parameters_.initialise(seed);
  }
  /// The same model without values of its parameters.
  CooperativeModel(detail::LayoutOnly, const CooperativeOptions& options) : Parts(resolve(options, D, bayesian)) {
    layers::ParameterList<layers::ParameterSlot> list(parameters_);
    declare(list, layout_);
  }

  [[nodiscard]] Index coordinates() const noexcept { return D; }
  /// h = D · channels.
  [[nodiscard]] Index hidden_width() const noexcept { return D * options_.channels; }
  /// Number of different sheaves in a forward pass: one per layer.
  [[nodiscard]] Index sheaf_count() const noexcept { return options_.layers; }
  /// Number of values that a learner predicts for each node.
  [[nodiscard]] Index learner_outputs() const noexcept {
    if constexpr (bayesian) {
      return Posterior::raw_size(options_.conformal);
    } else {
      return detail::point_node_map_size<D>(options_.conformal);
    }
  }

  /// Declares all parameters. Takes any list.
  template <class T>
  void declare(layers::ParameterList<T>& list, CooperativeWeights<T>& weights) const {
    weights.declare(list, options_, D, learner_outputs(), bayesian);
  }
};

/// Cooperative sheaf network: the node maps are learned functions of each layer's features.
template <int D, std::floating_point S = float>
  requires sheaf::StalkDimension<D>
using Csnn = CooperativeModel<D, false, S>;
/// Bayesian cooperative sheaf network: the node maps have learned distributions.
template <int D, std::floating_point S = float>
  requires sheaf::StalkDimension<D>
using Bcsnn = CooperativeModel<D, true, S>;

}  // namespace sheafnn
