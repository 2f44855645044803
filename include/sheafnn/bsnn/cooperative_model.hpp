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

#include <concepts>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "sheafnn/bsnn/cooperative_layout.hpp"
#include "sheafnn/bsnn/cooperative_options.hpp"
#include "sheafnn/bsnn/model_parts.hpp"
#include "sheafnn/layers/point_node_maps.hpp"
#include "sheafnn/nn/parameters.hpp"
#include "sheafnn/posterior/node_map_posterior.hpp"
#include "sheafnn/posterior/point_mass.hpp"
#include "sheafnn/sheaf/families/conformal.hpp"

namespace sheafnn {

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
