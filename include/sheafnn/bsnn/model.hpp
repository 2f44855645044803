/// \file
/// SheafModel: a sheaf network's architecture and parameters, independent of any graph.
///
///     using Model = sheafnn::Bsnn<sheafnn::SpecialOrthogonal<3>>;   // Bayesian sheaf neural network
///     using Model = sheafnn::Nsd<sheafnn::Diagonal<2>>;             // deterministic neural sheaf diffusion
///     using Model = sheafnn::Snn<sheafnn::Diagonal<2>>;             // with a sheaf that is given
///     using Model = sheafnn::SheafModel<Family, Posterior, float, sheafnn::LayerKinds<MyLayer>>;  // with layers of your own
///
/// Source: math: "The model"; Bayesian Sheaf Neural Networks (Gillespie et al.); Neural Sheaf Diffusion (Bodnar
/// et al.).
#pragma once

#include <concepts>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "sheafnn/bsnn/edgeless.hpp"
#include "sheafnn/bsnn/layer_stack.hpp"
#include "sheafnn/bsnn/model_layout.hpp"
#include "sheafnn/bsnn/model_parts.hpp"
#include "sheafnn/bsnn/options.hpp"
#include "sheafnn/nn/parameters.hpp"
#include "sheafnn/posterior/around_given.hpp"
#include "sheafnn/posterior/default_posterior.hpp"
#include "sheafnn/posterior/given_maps.hpp"
#include "sheafnn/posterior/point_mass.hpp"
#include "sheafnn/posterior/sheaf_posterior.hpp"

namespace sheafnn {

/// What a model may have for its maps: a distribution (SheafPosterior, AroundGiven), or maps without one (PointMass, GivenMaps).
template <class Q>
concept SheafSource = is_point_mass<Q> || SheafPosterior<Q> || is_around_given<Q>;

namespace detail {

/// The options, with the defaults that depend on the posterior: given maps come with their edge weights. A posterior
/// without a member sheaf_activation has its own activation, and the option is then tanh.
///
/// \throws std::invalid_argument  learned edge weights with given maps
///
/// \tparam Layers  LayerKinds, whose first kind sets the form of the layers; void: the layers have one form
template <class Posterior, class Layers = void, class Options>
[[nodiscard]] Options suited_to(Options options) {
  if constexpr (!std::is_void_v<Layers>) {
    if (!options.layer) options.layer = Layers::template first_form<typename Posterior::family>();
  }
  if constexpr (has_given_maps<Posterior> || is_around_given<Posterior>) {
    require(!options.edge_weights.value_or(false), "edge_weights", true,
            "given sheaves have edge weights of their own");
    if constexpr (requires { options.edge_types; }) {
      require(options.edge_types.empty(), "edge_types", options.edge_types.size(),
              "given sheaves have no learner with weights per type");
    }
    refuse_types(options, "given sheaves have stalks of one dimension");
    options.edge_weights = false;
  }
  if constexpr (!requires(Posterior posterior) { posterior.sheaf_activation; }) {
    if (!options.sheaf_activation) options.sheaf_activation = SheafActivation::tanh;
  }
  return options;
}

/// Marks a model whose given maps come later, with a graph.
struct LaterSheaf {};

/// Passes the resolved options that concern a posterior on to it (posterior/sheaf_posterior.hpp).
///
/// \throws std::invalid_argument  a sheaf activation other than tanh, for a posterior with its own activation
template <class Options, class Posterior>
void set_posterior(const Options& options, Posterior& posterior) {
  if constexpr (is_around_given<Posterior>) {
    require(*options.sheaf_activation <= SheafActivation::elu, "sheaf_activation",
            to_string(*options.sheaf_activation),
            "means are deviations from given maps: choose tanh, identity or elu");
  }
  if constexpr (!is_point_mass<Posterior> && !can_leave_out<Posterior>) {
    require(!has_own_stalks(options, Posterior::family::stalk_dimension), "stalks",
            "a dimension below the stalk dimension",
            concat("the posterior ", Posterior::name, " is of whole maps"));
  }
  if constexpr (requires { posterior.parametrisation; }) posterior.parametrisation = *options.parametrisation;
  if constexpr (requires { posterior.spread = options.spread; }) posterior.spread = options.spread;
  if constexpr (requires { posterior.sheaf_activation; }) {
    posterior.sheaf_activation = *options.sheaf_activation;
  } else {
    require(options.sheaf_activation == SheafActivation::tanh, "sheaf_activation",
            to_string(*options.sheaf_activation), concat("the posterior ", Posterior::name, " has its own"));
  }
}

}  // namespace detail

/// Architecture and parameters.
///
/// \tparam PosteriorType  CayleyPosterior<FamilyType>, NormalPosterior<FamilyType>, PointMass<FamilyType>,
///                        GivenMaps<FamilyType>, AroundGiven<FamilyType>, … or your own
/// \tparam S              float (default) or double
/// \tparam LayersType     LayerKinds<…>, the kinds of layers that networks may have
template <RestrictionMapFamily FamilyType, SheafSource PosteriorType, std::floating_point S = float,
          class LayersType = LibraryLayers>
class SheafModel : public detail::ModelParts<ModelOptions, ModelLayout, S> {
  using Parts = detail::ModelParts<ModelOptions, ModelLayout, S>;
  using Parts::layout_, Parts::options_, Parts::parameters_;
  static_assert(std::is_same_v<typename PosteriorType::family, FamilyType>, "the posterior of another family");

 public:
  using Family = FamilyType;
  using Posterior = PosteriorType;
  using typename Parts::Options, typename Parts::Scalar;
  using Layers = LayersType;
  using Stack = detail::LayerStack<Family, S>;
  static constexpr int stalk_dimension = Family::stalk_dimension;
  static constexpr bool bayesian = !is_point_mass<Posterior>;
  /// The name of the model in checkpoints and programs.
  static constexpr std::string_view kind = has_given_maps<Posterior>    ? Options::given_kind.deterministic
                                           : is_around_given<Posterior> ? Options::given_kind.bayesian
                                           : bayesian                   ? Options::kind.bayesian
                                                                        : Options::kind.deterministic;

  /// Builds the model with initial parameters: linear layers uniform in ±1/√fan_in, A_l = I, B_l random
  /// orthogonal, ε = 0; polynomial filters with equal coefficients, α = 0.
  ///
  /// \param seed       selects the initial parameters
  /// \param posterior  the posterior's own state, such as a prior, or given maps; its rotation parametrisation, sheaf
  ///                   activation and range of spread are the options'
  /// \throws std::invalid_argument  an option out of range (see resolve()). For given maps: no sheaf, a number of
  ///                                sheaves that does not fit the layers, learned edge weights, or no edges
  explicit SheafModel(const ModelOptions& options, std::uint64_t seed = 0, const Posterior& posterior = {})
      : SheafModel(detail::LayoutOnly{}, options, posterior) {
    parameters_.initialise(seed);
  }
  /// The same model without values of its parameters.
  SheafModel(detail::LayoutOnly, const ModelOptions& options, const Posterior& posterior)
      : SheafModel(detail::LaterSheaf{}, options, posterior) {
    if constexpr (has_given_maps<Posterior>) posterior_.check_count(sheaf_count());
    if constexpr (is_around_given<Posterior>) posterior_.centre().check_count(1);
  }

  [[nodiscard]] const Posterior& posterior() const noexcept { return posterior_; }
  /// d' = D + number of fixed filters.
  [[nodiscard]] Index coordinates() const noexcept {
    return stalk_dimension + (options_.add_lp ? 1 : 0) + (options_.add_hp ? 1 : 0);
  }
  /// h = d' · channels.
  [[nodiscard]] Index hidden_width() const noexcept { return coordinates() * options_.channels; }
  /// Values per node between layers: h, or 2h for complex features.
  [[nodiscard]] Index row() const noexcept { return layout_.row; }
  /// Number of different sheaves in a forward pass.
  [[nodiscard]] Index sheaf_count() const noexcept { return options_.linear ? 1 : options_.layers; }
  /// The setting from which layers are built.
  [[nodiscard]] layers::LayerSetting layer_setting() const {
    const layers::DiffusionOptions parts{options_.left_weights, options_.right_weights, options_.activation,
                                         !options_.residual.initial() && options_.layer == LayerForm::diffusion};
    return {.diffusion = parts,
            .filter = options_.filter,
            .residual = options_.residual,
            .coordinates = coordinates(),
            .channels = options_.channels,
            .form = *options_.layer,
            .attention = options_.attention,
            .directed = options_.directed};
  }
  /// Declares all parameters; declare_layers(list) declares the weights of the layers. Takes any list.
  template <class T, class DeclareLayers>
  void declare(layers::ParameterList<T>& list, NetworkWeights<T>& weights,
               const DeclareLayers& declare_layers) const {
    weights.declare(list, options_, layout_, declare_layers);
  }

 protected:
  /// Builds a model whose networks bring the given maps.
  SheafModel(detail::LaterSheaf, const ModelOptions& options, const Posterior& posterior = {})
      : Parts(resolve<Family>(detail::suited_to<Posterior, Layers>(options), bayesian)), posterior_(posterior) {
    if constexpr (has_given_maps<Posterior> || is_around_given<Posterior>) detail::require_edges(options_);
    detail::set_posterior(options_, posterior_);
    static_cast<NetworkSizes&>(layout_) =
        network_sizes(options_, coordinates(), sheaf_count(), detail::raw_sizes(posterior_), bayesian);
    layers::ParameterList<layers::ParameterSlot> list(parameters_);
    declare(list, layout_.at, [&](layers::ParameterList<layers::ParameterSlot>&) {
      detail::declare_layers<Layers, Family, S>(list, layer_setting(), options_.layers, options_.layer_norm,
                                                layout_);
    });
  }

 private:
  [[no_unique_address]] Posterior posterior_;
};

/// Bayesian sheaf neural network: the restriction maps have a learned distribution, the family's usual one.
template <RestrictionMapFamily Family, std::floating_point S = float>
using Bsnn = SheafModel<Family, DefaultPosterior<Family>, S>;
/// Neural sheaf diffusion: the restriction maps are learned functions of the features.
template <RestrictionMapFamily Family, std::floating_point S = float>
using Nsd = SheafModel<Family, PointMass<Family>, S>;
/// Sheaf neural network: the restriction maps are given, as the posterior GivenMaps; all else is learned.
template <RestrictionMapFamily Family, std::floating_point S = float>
using Snn = SheafModel<Family, GivenMaps<Family>, S>;
/// Sheaf neural network with distributions around given maps, as the posterior AroundGiven.
template <RestrictionMapFamily Family, std::floating_point S = float>
using Bgsnn = SheafModel<Family, AroundGiven<Family>, S>;

}  // namespace sheafnn
