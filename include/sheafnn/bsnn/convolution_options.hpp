/// \file
/// Options of sheaf convolutions on given sheaves (architecture).
#pragma once

#include <optional>
#include <vector>

#include "sheafnn/bsnn/network_kind.hpp"
#include "sheafnn/bsnn/shared_options.hpp"
#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/core/option.hpp"
#include "sheafnn/graph/feature_treatment.hpp"
#include "sheafnn/layers/limits.hpp"
#include "sheafnn/nn/activation.hpp"
#include "sheafnn/posterior/around_given.hpp"
#include "sheafnn/posterior/sheaf_activation.hpp"
#include "sheafnn/posterior/spread_range.hpp"
#include "sheafnn/rotation/parametrisation.hpp"
#include "sheafnn/sheaf/normalisation.hpp"

namespace sheafnn {

/// Architecture of a network of sheaf convolutions; the stalk dimension d is given by the model's family.
struct ConvolutionOptions {
  static constexpr NetworkKind kind{.bayesian = "bsnn-given",
                                    .deterministic = "snn",
                                    .options = "ConvolutionOptions",
                                    .title = "Sheaf convolutions",
                                    .maps = "given maps",
                                    .learned_maps = false,
                                    .modules = "Snn, BsnnGiven"};

  Index features = 0;   ///< p, number of input features
  Index channels = 16;  ///< c_l, feature channels per stalk coordinate, where `widths` is empty
  Index layers = 2;     ///< L, convolutions
  Index classes = 0;    ///< C, number of classes, or of outputs for another loss
  /// c_0 … c_L; empty: `channels` each. Without the encoder c_0 = p/d, without the readout c_L = C.
  std::vector<Index> widths = {};

  /// What happens to features before the network reads them (math: "Features").
  FeatureTreatment feature_treatment = FeatureTreatment::automatic;

  bool encoder = true;  ///< X_1 = act(X W₁ᵀ + b₁); without it X_1 are the features, as n × d × c_0
  bool readout =
      true;  ///< an affine readout; without it, with d = 1, the last layer gives the outputs, without act
  Activation activation = Activation::relu;  ///< in the encoder and after each layer
  bool bias = true;                          ///< b_l, one value per channel
  bool left_weights = true;                  ///< A_l, mixing stalk coordinates, for d > 1
  Normalisation normalisation = Normalisation::augmented;

  /// What determines the distribution of a map in Bayesian models (default: what the model's posterior says).
  std::optional<DeviationSource> deviation = {};
  /// Function of the learner's outputs, for posteriors with learned means (default: identity for rotations, tanh for others
  /// and with the published spread).
  std::optional<SheafActivation> sheaf_activation = {};
  /// Initial and largest spread of Bayesian maps.
  SpreadRange spread = SpreadRange::concentrated;
  /// Parametrisation of mean rotations (default: exponential; Householder for the published spread).
  std::optional<rotation::RotationParametrisation> parametrisation = {};
  /// The treatment, column by column; empty: made from the first features that a network of the model reads, or a training.
  FeaturePlan feature_plan = {};

  friend bool operator==(const ConvolutionOptions&, const ConvolutionOptions&) = default;
};

/// Declares the options: see core/option.hpp. Takes any options.
template <class Visit, OptionsOf<ConvolutionOptions>... Options>
void for_each_option(const Visit& visit, Options&... options) {
  detail::for_each_size(visit, options...);
  visit(detail::layers_option, options.layers...);
  visit({.key = "widths",
         .summary = "comma-separated numbers of channels before the first layer and after each layer; empty: "
                    "the number of channels everywhere",
         .since = "0.3"},
        options.widths...);
  visit(detail::treatment_option, options.feature_treatment...);
  visit(detail::plan_option, options.feature_plan...);
  visit(
      {.key = "encoder", .summary = "an encoder before the first layer", .flag = "!--no-encoder", .since = "0.3"},
      options.encoder...);
  visit({.key = "readout",
         .summary = "a readout after the last layer; without it the last layer gives the outputs",
         .flag = "!--no-readout",
         .since = "0.3"},
        options.readout...);
  visit(detail::node_activation_option, options.activation...);
  visit({.key = "bias", .summary = "a bias per channel in each layer", .flag = "!--no-bias", .since = "0.3"},
        options.bias...);
  visit(detail::left_weights_option, options.left_weights...);
  visit(detail::normalisation_option, options.normalisation...);
  visit({.key = "deviation",
         .summary = "with bsnn-given: what decides the distributions around the given maps",
         .automatic = "labels where the edges have labels, otherwise arcs",
         .since = "0.3"},
        options.deviation...);
  visit(detail::sheaf_activation_option, options.sheaf_activation...);
  visit(detail::spread_option, options.spread...);
  visit(detail::parametrisation_option, options.parametrisation...);
}

/// Fills in defaults and checks every field.
///
/// \param stalk_dimension  d
/// \param rotations        whether the family's maps are orthogonal
/// \throws std::invalid_argument  naming the option, its value and its limit
[[nodiscard]] inline ConvolutionOptions resolve(ConvolutionOptions options, int stalk_dimension, bool rotations) {
  check_ranges(options);
  detail::check_plan(options.feature_plan, options.features);
  const Index d = stalk_dimension, count = options.layers + 1;
  if (d == 1) options.left_weights = false;
  require(options.encoder || options.features % d == 0, "encoder", false,
          detail::concat("the ", options.features, " features must be a multiple of the stalk dimension, ", d));
  require(options.readout || d == 1, "readout", false, detail::concat("needs the stalk dimension 1, not ", d));
  if (options.widths.empty()) {
    options.widths.assign(static_cast<std::size_t>(count), options.channels);
    if (!options.encoder) options.widths.front() = options.features / d;
    if (!options.readout) options.widths.back() = options.classes;
  }
  require(static_cast<Index>(options.widths.size()) == count, "widths", options.widths.size(),
          detail::concat("expected ", count, " numbers, c_0 to c_", options.layers));
  for (std::size_t l = options.encoder ? 0 : 1; l < options.widths.size(); ++l) {
    require_between(detail::concat("widths[", l, "]"), options.widths[l], 1, layers::max_channels);
  }
  require(options.encoder || options.widths.front() == options.features / d, "widths[0]", options.widths.front(),
          detail::concat("without the encoder it must be ", options.features / d));
  require(options.readout || options.widths.back() == options.classes,
          detail::concat("widths[", options.layers, "]"), options.widths.back(),
          detail::concat("without the readout it must be the number of classes, ", options.classes));
  const bool published = options.spread == SpreadRange::published;
  if (!options.sheaf_activation) options.sheaf_activation = detail::default_sheaf_activation(rotations, published);
  if (!options.parametrisation) options.parametrisation = detail::default_parametrisation(published);
  return options;
}

}  // namespace sheafnn
