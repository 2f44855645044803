/// \file
/// Options of continuous-time sheaf networks (architecture): dX/dt = −ELU(Δ (I ⊗ A) X Bᵀ) from X(0) = H to X(T), whose sheaf
/// does not change. Source: math: "Continuous-time diffusion" (3.31).
#pragma once

#include <optional>

#include "sheafnn/bsnn/network_kind.hpp"
#include "sheafnn/bsnn/options.hpp"
#include "sheafnn/bsnn/shared_options.hpp"
#include "sheafnn/layers/flow_options.hpp"

namespace sheafnn {

/// Architecture of a continuous-time sheaf network. Fields have the same meaning as in ModelOptions.
struct FlowOptions {
  static constexpr NetworkKind kind{.bayesian = "bflow",
                                    .deterministic = "flow",
                                    .options = "FlowOptions",
                                    .title = "Networks in continuous time",
                                    .maps = "one sheaf, and a flow along it",
                                    .modules = "SheafFlow, BayesianSheafFlow"};
  static constexpr Index layers = 1;                  ///< the flow counts as one layer
  static constexpr PolynomialOptions filter{};        ///< none
  static constexpr ResidualOptions residual{};        ///< a flow has no other layer form
  static constexpr std::optional<LayerForm> layer{};  ///< likewise

  Index features = 0;   ///< p, number of input features
  Index channels = 16;  ///< f, feature channels per stalk coordinate
  Index classes = 0;    ///< C, number of classes, or of outputs for another loss

  /// Members of FlowIntegration, with its defaults.
  double time = layers::FlowIntegration().time;
  FlowMethod method = layers::FlowIntegration().method;
  double absolute_tolerance = layers::FlowIntegration().absolute_tolerance;
  double relative_tolerance = layers::FlowIntegration().relative_tolerance;
  double first_step = layers::FlowIntegration().first_step;
  Index max_steps = layers::FlowIntegration().max_steps;
  Index fixed_steps = layers::FlowIntegration().fixed_steps;

  FeatureTreatment feature_treatment = FeatureTreatment::automatic;
  bool add_lp = false;
  bool add_hp = false;
  std::optional<bool> edge_weights = {};
  std::optional<bool> separate_encoder = {};
  bool degree_input = false;
  Index learner_layers = 0;
  Index learner_width = 0;
  LearnerInput learner = LearnerInput::concatenation;
  Index edge_features = 0;
  std::optional<SheafActivation> sheaf_activation = {};
  SpreadRange spread = SpreadRange::concentrated;
  bool second_linear = false;
  bool left_weights = true;   ///< A
  bool right_weights = true;  ///< B
  bool activation = true;     ///< ELU in the encoder and in dX/dt
  Index readout_layers = 1;
  bool negate_inside = false;  ///< dX/dt = ELU(−Δ …) instead of −ELU(Δ …)
  Normalisation normalisation = Normalisation::augmented;
  std::optional<rotation::RotationParametrisation> parametrisation = {};
  bool augmented_filters = false;
  FeaturePlan feature_plan = {};

  [[nodiscard]] layers::FlowIntegration integration() const {
    return {method, time, absolute_tolerance, relative_tolerance, first_step, max_steps, fixed_steps};
  }
  [[nodiscard]] layers::DiffusionFieldOptions field() const {
    return {left_weights, right_weights, activation, negate_inside};
  }

  friend bool operator==(const FlowOptions&, const FlowOptions&) = default;
};

/// Declares the options: see core/option.hpp. Takes any options.
template <class Visit, OptionsOf<FlowOptions>... Options>
void for_each_option(const Visit& visit, Options&... options) {
  detail::for_each_shared_option(visit, options...);
  detail::for_each_flow_option(visit, options...);
  visit({"negate_inside", "the flow has ELU(-x) instead of -ELU(x)"}, options.negate_inside...);
}

namespace detail {

/// The same network with one diffusion layer.
[[nodiscard]] inline ModelOptions one_layer(const FlowOptions& options) {
  ModelOptions r;
  r.layers = 1;
  copy_shared_options(options, r);
  return r;
}

}  // namespace detail

/// Fills in the defaults that depend on the family and checks every field.
///
/// \param bayesian  does the model have a posterior over sheaves?
/// \throws std::invalid_argument  naming the option, its value and its limit
template <RestrictionMapFamily Family>
[[nodiscard]] FlowOptions resolve(FlowOptions options, bool bayesian) {
  const ModelOptions resolved = resolve<Family>(detail::one_layer(options), bayesian);
  validate(options.integration());
  options.edge_weights = resolved.edge_weights;
  options.separate_encoder = resolved.separate_encoder;
  options.learner_width = resolved.learner_width;
  options.sheaf_activation = resolved.sheaf_activation;
  options.parametrisation = resolved.parametrisation;
  return options;
}

}  // namespace sheafnn
