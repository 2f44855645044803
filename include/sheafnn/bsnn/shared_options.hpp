/// \file
/// Declarations of options that several kinds of networks share.
#pragma once

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/core/option.hpp"
#include "sheafnn/graph/feature_treatment.hpp"
#include "sheafnn/layers/limits.hpp"
#include "sheafnn/posterior/sheaf_activation.hpp"
#include "sheafnn/rotation/parametrisation.hpp"
#include "sheafnn/sheaf/normalisation.hpp"

namespace sheafnn::detail {

/// Are fixed filters normalised by (deg + 1)^{-1/2}, instead of deg^{-1/2}? math: "Fixed filters".
template <class Options>
[[nodiscard]] bool has_augmented_filters(const Options& options) {
  return options.normalisation != Normalisation::block || options.augmented_filters;
}

/// \throws std::invalid_argument  a plan of another number of columns than the model reads
inline void check_plan(const FeaturePlan& plan, Index features) {
  if (plan.empty() || plan.columns() == features) return;
  throw_invalid_argument("feature_plan", concat(plan.columns(), " columns"), concat("the model reads ", features));
}

/// Declares the options that networks of all or most kinds have.
inline constexpr Option layers_option = {"layers", "number of diffusion layers", OptionRange::between(1, 64)};
inline constexpr Option treatment_option = {.key = "feature_treatment",
                                            .summary =
                                                "how features are treated: rows scaled to sum 1, each column by "
                                                "its values, or as the data suggest (automatic)",
                                            .since = "0.2"};
inline constexpr Option plan_option = {.key = "feature_plan",
                                       .summary = "treatment of each column of the features; the data decide it",
                                       .flag = "",
                                       .since = "0.2"};
inline constexpr Option left_weights_option = {"left_weights", "layers have weights that mix stalk coordinates"};
inline constexpr Option right_weights_option = {"right_weights", "layers have weights that mix channels"};
inline constexpr Option node_activation_option = {
    .key = "activation", .summary = "activation function of the encoder and the layers", .flag = "--node-activation"};
inline constexpr Option no_residual_option = {
    .key = "residual",
    .summary = "layers add to the features; without it they replace the features",
    .flag = "!--no-residual"};
inline constexpr Option readout_option = {.key = "readout_layers",
                                          .summary = "number of readout layers (GELU follows all but the last)",
                                          .range = OptionRange::between(1, 8),
                                          .since = "0.1"};

inline constexpr Option separate_encoder_option = {.key = "separate_encoder",
                                                   .summary = "give the sheaf learner an encoder of its own",
                                                   .automatic = "on for Bayesian special-orthogonal"};
inline constexpr Option normalisation_option = {"normalisation", "normalisation of the Laplacian"};
inline constexpr Option sheaf_activation_option = {
    .key = "sheaf_activation",
    .summary =
        "function of the sheaf learner's outputs; attention (nsd only) and exponential need general-linear "
        "maps, residual general-linear or diagonal maps",
    .automatic = "identity for special-orthogonal, tanh for other maps or the published spread",
    .since = "0.1"};
inline constexpr Option spread_option = {.key = "spread",
                                         .summary = "initial and largest spread of Bayesian maps",
                                         .since = "0.2"};
inline constexpr Option parametrisation_option = {
    .key = "parametrisation",
    .summary = "parametrisation of mean rotations; euler needs stalk dimension 2 or 3",
    .automatic = "exponential; householder for the published spread"};

/// The default for rotations, and for other maps or the published spread.
[[nodiscard]] constexpr SheafActivation default_sheaf_activation(bool rotations, bool published) {
  return rotations && !published ? SheafActivation::identity : SheafActivation::tanh;
}
[[nodiscard]] constexpr rotation::RotationParametrisation default_parametrisation(bool published) {
  return published ? rotation::RotationParametrisation::householder
                   : rotation::RotationParametrisation::exponential;
}

/// Declares the sizes that networks of all kinds have.
template <class Visit, class... Options>
void for_each_size(const Visit& visit, Options&... options) {
  using Range = OptionRange;
  visit({.key = "features",
         .summary = "number of input features; the data decide it",
         .range = Range::between(1, 1 << 28),
         .flag = ""},
        options.features...);
  visit({.key = "classes",
         .summary = "number of classes, or of outputs for another loss; the data decide it",
         .range = Range::between(1, 1 << 20),
         .flag = ""},
        options.classes...);
  visit({"channels", "number of feature channels per stalk coordinate", Range::between(1, max_channels)},
        options.channels...);
}

/// Declares the options that ModelOptions and FlowOptions share, for one of these types or several: see
/// core/option.hpp.
template <class Visit, class... Options>
void for_each_shared_option(const Visit& visit, Options&... options) {
  using Range = OptionRange;
  for_each_size(visit, options...);
  visit(treatment_option, options.feature_treatment...);
  visit(plan_option, options.feature_plan...);
  visit({"add_lp", "append a fixed low-pass stalk coordinate"}, options.add_lp...);
  visit({"add_hp", "append a fixed high-pass stalk coordinate"}, options.add_hp...);
  visit({.key = "edge_weights",
         .summary = "learn a weight for every edge",
         .automatic = "on for special-orthogonal"},
        options.edge_weights...);
  visit(separate_encoder_option, options.separate_encoder...);
  visit({"degree_input", "the sheaf learner's own encoder reads the degree of a node"}, options.degree_input...);
  visit({"learner_layers", "number of hidden layers of the sheaf learner", Range::between(0, max_learner_layers)},
        options.learner_layers...);
  visit({"learner_width", "width of the sheaf learner's hidden layers",
         Range::between(0, 1024, " (0: the number of channels)")},
        options.learner_width...);
  visit({.key = "learner",
         .summary = "how the sheaf learner combines the embeddings of two nodes",
         .since = "0.1"},
        options.learner...);
  visit({.key = "edge_features",
         .summary = "number of arc features that the sheaf learner reads; the data decide it",
         .range = Range::between(0, 1024),
         .flag = "",
         .since = "0.1"},
        options.edge_features...);
  visit(sheaf_activation_option, options.sheaf_activation...);
  visit(spread_option, options.spread...);
  visit({"second_linear", "the encoder has a second linear layer"}, options.second_linear...);
  visit(readout_option, options.readout_layers...);
  visit(left_weights_option, options.left_weights...);
  visit(right_weights_option, options.right_weights...);
  visit({"activation", "apply ELU in the encoder and after each diffusion"}, options.activation...);
  visit(normalisation_option, options.normalisation...);
  visit(parametrisation_option, options.parametrisation...);
  visit({.key = "augmented_filters",
         .summary = "with the normalisation block: scale the fixed filters as the other normalisations do; files "
                    "of version 1 have this",
         .flag = "",
         .since = "0.2"},
        options.augmented_filters...);
}
/// Copies the shared options of `from` to `to`.
template <class From, class To>
void copy_shared_options(const From& from, To& to) {
  for_each_shared_option([](const Option&, const auto& one, auto& other) { other = one; }, from, to);
}

}  // namespace sheafnn::detail
