/// \file
/// FlowModel: continuous-time sheaf diffusion, architecture and parameters, independent of any graph.
///
///     using Model = sheafnn::SheafFlow<sheafnn::Diagonal<2>>;                    // deterministic
///     using Model = sheafnn::BayesianSheafFlow<sheafnn::SpecialOrthogonal<3>>;   // one sheaf sampled per trajectory
///
///     X(0) = encoder(X),   dX/dt = −ELU(Δ_F (I ⊗ A) X Bᵀ),   Y = X(T) W_outᵀ + b_out,
///
/// with one F for all t, learned from X(0). Source: math: "Continuous-time diffusion", "The model".
#pragma once

#include <concepts>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "sheafnn/bsnn/flow_model_options.hpp"
#include "sheafnn/bsnn/model.hpp"
#include "sheafnn/bsnn/model_parts.hpp"
#include "sheafnn/bsnn/network.hpp"

namespace sheafnn {

namespace detail {

/// The weights of a flow, in place of the weights of layers.
template <class S>
struct FlowWeights {
  template <class Model>
  FlowWeights(const Model& model, const Graph&, const DiffusionShape<S>&, const StalkMasks<S>* = nullptr)
      : of(model.layer_setting()) {}

  [[nodiscard]] LayerReads reads() const noexcept { return {}; }
  [[nodiscard]] bool wrapped() const noexcept { return false; }
  void set_memory(Index, bool, Execution) const noexcept {}
  template <class Use>
  void for_masks(const Use&) const {}
  template <class T>
  void declare(ParameterList<T>& list) {
    detail::declare_in_order(list, 1, [&](Index) {
      if constexpr (std::is_const_v<T>) weights.declare(list, of);
      if constexpr (!std::is_const_v<T>) weights_bar.declare(list, of);
    });
  }

  LayerSetting of;
  DiffusionWeights<const S> weights;
  DiffusionWeights<S> weights_bar;
};

}  // namespace detail

/// Architecture and parameters.
///
/// \tparam PosteriorType  as for SheafModel
/// \tparam S              float (default) or double
template <RestrictionMapFamily FamilyType, SheafSource PosteriorType, std::floating_point S = float>
class FlowModel : public detail::ModelParts<FlowOptions, ModelLayout, S> {
  using Parts = detail::ModelParts<FlowOptions, ModelLayout, S>;
  using Parts::layout_, Parts::options_, Parts::parameters_;
  static_assert(std::is_same_v<typename PosteriorType::family, FamilyType>, "the posterior of another family");

 public:
  using Family = FamilyType;
  using Posterior = PosteriorType;
  using typename Parts::Options, typename Parts::Scalar;
  using Stack = detail::FlowWeights<S>;
  static constexpr int stalk_dimension = Family::stalk_dimension;
  static constexpr bool bayesian = !is_point_mass<Posterior>;
  /// The name of the model in checkpoints and programs.
  static constexpr std::string_view kind = has_given_maps<Posterior> ? "given-flow"
                                           : bayesian                ? Options::kind.bayesian
                                                                     : Options::kind.deterministic;

  /// Builds the model with initial parameters: linear layers uniform in ±1/√fan_in, A = I, B random orthogonal.
  ///
  /// \param seed       selects the initial parameters
  /// \param posterior  the posterior's own state, such as a prior, or given maps; its rotation parametrisation and
  ///                   sheaf activation are the options'
  /// \throws std::invalid_argument  an option out of range (see resolve()); for given maps, another number of sheaves
  ///                                than one, or learned edge weights
  explicit FlowModel(const FlowOptions& options, std::uint64_t seed = 0, const Posterior& posterior = {})
      : FlowModel(detail::LayoutOnly{}, options, posterior) {
    parameters_.initialise(seed);
  }
  /// The same model without values of its parameters.
  FlowModel(detail::LayoutOnly, const FlowOptions& options, const Posterior& posterior)
      : Parts(resolve<Family>(detail::suited_to<Posterior>(options), bayesian)), posterior_(posterior) {
    if constexpr (has_given_maps<Posterior>) posterior_.check_count(sheaf_count());
    detail::set_posterior(options_, posterior_);
    static_cast<NetworkSizes&>(layout_) = network_sizes(detail::one_layer(options_), coordinates(), sheaf_count(),
                                                        detail::raw_sizes(posterior_), bayesian);
    layers::ParameterList<layers::ParameterSlot> list(parameters_);
    declare(list, layout_.at, [&](layers::ParameterList<layers::ParameterSlot>&) {
      static_cast<LayerWeights<layers::ParameterSlot>&>(layout_).declare(list, layer_setting(), 1, false);
    });
  }

  [[nodiscard]] const Posterior& posterior() const noexcept { return posterior_; }
  /// d' = D + number of fixed filters.
  [[nodiscard]] Index coordinates() const noexcept {
    return stalk_dimension + (options_.add_lp ? 1 : 0) + (options_.add_hp ? 1 : 0);
  }
  /// h = d' · channels.
  [[nodiscard]] Index hidden_width() const noexcept { return coordinates() * options_.channels; }
  /// Number of different sheaves in a forward pass.
  [[nodiscard]] Index sheaf_count() const noexcept { return 1; }
  /// The setting from which the flow is built.
  [[nodiscard]] layers::LayerSetting layer_setting() const {
    return {.diffusion = {options_.left_weights, options_.right_weights, options_.activation, false},
            .coordinates = coordinates(),
            .channels = options_.channels};
  }
  /// Declares all parameters; declare_flow(list) declares the weights of the flow, the only layer. Takes any list.
  template <class T, class DeclareFlow>
  void declare(layers::ParameterList<T>& list, NetworkWeights<T>& weights, const DeclareFlow& declare_flow) const {
    weights.declare(list, detail::one_layer(options_), layout_, [](layers::ParameterList<T>&) {});
    declare_flow(list);
  }

 private:
  [[no_unique_address]] Posterior posterior_;
};

/// Continuous-time sheaf diffusion with a learned distribution of restriction maps, the family's usual one.
template <RestrictionMapFamily Family, std::floating_point S = float>
using BayesianSheafFlow = FlowModel<Family, DefaultPosterior<Family>, S>;
/// Continuous-time sheaf diffusion with restriction maps that are learned functions of X(0).
template <RestrictionMapFamily Family, std::floating_point S = float>
using SheafFlow = FlowModel<Family, PointMass<Family>, S>;
/// Continuous-time sheaf diffusion with given restriction maps.
template <RestrictionMapFamily Family, std::floating_point S = float>
using GivenSheafFlow = FlowModel<Family, GivenMaps<Family>, S>;

/// See flow_network.hpp.
template <RestrictionMapFamily Family, SheafSource Posterior, std::floating_point Scalar>
class Network<FlowModel<Family, Posterior, Scalar>>;

}  // namespace sheafnn
