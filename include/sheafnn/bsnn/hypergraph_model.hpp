/// \file
/// HypergraphModel: a sheaf hypergraph network's architecture and parameters, independent of any hypergraph.
///
///     using Model = sheafnn::SheafHyperGnn<sheafnn::Diagonal<4>>;                    // deterministic
///     using Model = sheafnn::BayesianSheafHyperGnn<sheafnn::SpecialOrthogonal<3>>;   // a distribution of maps per incident pair
///
/// With HypergraphOptions::laplacian = nonlinear it is SheafHyperGCN. Its networks: hypergraph_network.hpp. Source:
/// Sheaf Hypergraph Networks (Duta et al.); math: "Hypergraphs".
#pragma once

#include <concepts>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <vector>

#include "sheafnn/bsnn/hypergraph_options.hpp"
#include "sheafnn/bsnn/model.hpp"
#include "sheafnn/bsnn/model_parts.hpp"
#include "sheafnn/graph/hypergraph.hpp"
#include "sheafnn/layers/hypergraph_layer.hpp"

namespace sheafnn {

/// The sizes of a network's parts, and where their parameters are.
struct HypergraphLayout : NetworkSizes {
  NetworkWeights<layers::ParameterSlot> at;
  std::vector<layers::HypergraphLayerWeights<layers::ParameterSlot>> layers;
};

/// Architecture and parameters.
///
/// \tparam PosteriorType  as for SheafModel, except given maps
/// \tparam S              float (default) or double
template <RestrictionMapFamily FamilyType, SheafSource PosteriorType, std::floating_point S = float>
class HypergraphModel : public detail::ModelParts<HypergraphOptions, HypergraphLayout, S> {
  using Parts = detail::ModelParts<HypergraphOptions, HypergraphLayout, S>;
  using Parts::layout_, Parts::options_, Parts::parameters_;
  static_assert(std::is_same_v<typename PosteriorType::family, FamilyType>, "the posterior of another family");
  static_assert(sheaf::is_learned<FamilyType>, "hypergraph networks learn their maps");
  static_assert(!has_given_maps<PosteriorType>, "hypergraph networks learn their maps");

 public:
  using Family = FamilyType;
  using Posterior = PosteriorType;
  using typename Parts::Options, typename Parts::Scalar;
  using GraphType = Hypergraph;
  static constexpr int stalk_dimension = Family::stalk_dimension;
  static constexpr bool bayesian = !is_point_mass<Posterior>;
  /// The name of the model in checkpoints and programs.
  static constexpr std::string_view kind = bayesian ? Options::kind.bayesian : Options::kind.deterministic;

  /// Builds the model with initial parameters: linear layers uniform in ±1/√fan_in, A_l = I, B_l random orthogonal,
  /// ε = 0, b_l = 0.
  ///
  /// \param seed       selects the initial parameters
  /// \param posterior  the posterior's own state, such as a prior; its rotation parametrisation, sheaf activation and range
  ///                   of spread are the options'
  /// \throws std::invalid_argument  an option out of range (see resolve())
  explicit HypergraphModel(const HypergraphOptions& options, std::uint64_t seed = 0,
                           const Posterior& posterior = {})
      : HypergraphModel(detail::LayoutOnly{}, options, posterior) {
    parameters_.initialise(seed);
  }
  /// The same model without values of its parameters.
  HypergraphModel(detail::LayoutOnly, const HypergraphOptions& options, const Posterior& posterior)
      : Parts(resolve<Family>(detail::suited_to<Posterior>(options), bayesian)), posterior_(posterior) {
    detail::set_posterior(options_, posterior_);
    static_cast<NetworkSizes&>(layout_) = network_sizes(detail::shared_parts(options_), coordinates(),
                                                        sheaf_count(), detail::raw_sizes(posterior_), bayesian);
    layers::ParameterList<layers::ParameterSlot> list(parameters_);
    declare(list, layout_.at, layout_.layers);
  }

  [[nodiscard]] const Posterior& posterior() const noexcept { return posterior_; }
  [[nodiscard]] Index coordinates() const noexcept { return stalk_dimension; }
  /// h = d · channels.
  [[nodiscard]] Index hidden_width() const noexcept { return stalk_dimension * options_.channels; }
  /// Number of different sheaves in a forward pass.
  [[nodiscard]] Index sheaf_count() const noexcept { return options_.static_sheaf ? 1 : options_.layers; }
  /// The setting from which a layer is built. It refers to the options. Takes any index.
  [[nodiscard]] layers::HypergraphSetting layer_setting(Index layer) const {
    return {.laplacian = options_.laplacian,
            .update = options_.update,
            .mediators = options_.mediators,
            .projection = options_.projection,
            .left = options_.left_weights,
            .right = options_.right_weights,
            .bias = options_.bias,
            .last = layer + 1 == options_.layers,
            .coordinates = stalk_dimension,
            .channels = options_.channels};
  }
  /// Declares all parameters. Takes any list.
  template <class T>
  void declare(layers::ParameterList<T>& list, NetworkWeights<T>& weights,
               std::vector<layers::HypergraphLayerWeights<T>>& of_layers) const {
    of_layers.resize(static_cast<std::size_t>(options_.layers));
    weights.declare(list, detail::shared_parts(options_), layout_, [&](layers::ParameterList<T>&) {
      detail::declare_in_order(list, options_.layers, [&](Index l) {
        of_layers[static_cast<std::size_t>(l)].declare(list, layer_setting(l));
      });
    });
  }

 private:
  [[no_unique_address]] Posterior posterior_;
};

/// Sheaf hypergraph network: a map of every incident pair is a learned function of the features.
template <RestrictionMapFamily Family, std::floating_point S = float>
using SheafHyperGnn = HypergraphModel<Family, PointMass<Family>, S>;
/// Bayesian sheaf hypergraph network: these maps have a learned distribution, the family's usual one.
template <RestrictionMapFamily Family, std::floating_point S = float>
using BayesianSheafHyperGnn = HypergraphModel<Family, DefaultPosterior<Family>, S>;

template <class Model>
class Network;

/// See hypergraph_network.hpp.
template <RestrictionMapFamily Family, SheafSource Posterior, std::floating_point Scalar>
class Network<HypergraphModel<Family, Posterior, Scalar>>;

}  // namespace sheafnn
