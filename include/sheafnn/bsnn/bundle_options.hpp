/// \file
/// Options of bundle networks (architecture).
#pragma once

#include <optional>

#include "sheafnn/bsnn/network_kind.hpp"
#include "sheafnn/bsnn/shared_options.hpp"
#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/core/option.hpp"
#include "sheafnn/graph/feature_treatment.hpp"
#include "sheafnn/layers/bundle_weights.hpp"
#include "sheafnn/layers/heat_options.hpp"
#include "sheafnn/nn/activation.hpp"
#include "sheafnn/rotation/parametrisation.hpp"

namespace sheafnn {

/// Architecture of a bundle network; the dimension D of the bundles is a template parameter of the model.
/// Throughout, h = bundles · D · channels is the hidden width.
struct BundleOptions {
  static constexpr NetworkKind kind{.bayesian = "bbunn",
                                    .deterministic = "bunn",
                                    .options = "BundleOptions",
                                    .title = "Bundle networks",
                                    .maps = "rotations per node and bundle",
                                    .own_maps = "bundle",
                                    .least_stalk_dimension = 2,
                                    .modules = "Bunn, BayesianBunn"};

  Index features = 0;  ///< p, number of input features
  Index channels = 1;  ///< f, feature channels per coordinate of a bundle
  Index bundles = 16;  ///< B
  Index layers = 4;    ///< L
  Index classes = 0;   ///< C, number of classes, or of outputs for another loss

  /// What happens to features before the network reads them (math: "Features").
  FeatureTreatment feature_treatment = FeatureTreatment::automatic;

  BundleLearnerKind learner = BundleLearnerKind::sage;  ///< from features to the rotations of the nodes
  Index learner_layers = 1;                             ///< number of convolutions of the sage learners; mlp: 1
  Index learner_width = 0;                              ///< g, hidden width of the learners; 0: h
  /// How the learner's raw values become rotations; Euler angles are 2π times them. The default is euler for D = 2,
  /// otherwise householder.
  std::optional<rotation::RotationParametrisation> parametrisation = {};

  AdjacencyNormalisation normalisation = AdjacencyNormalisation::symmetric;  ///< normalisation of Â in 𝓛 = I − Â
  bool self_loops = false;                                                   ///< Â is made of A + I
  HeatExpansion expansion = HeatExpansion::shifted;                          ///< expansion of exp(−t𝓛)
  Index terms = 8;           ///< K: the degree of a series, at most 64, or the number of eigenpairs, at most 4096
  double time = 1;           ///< t, or the start of learned times
  bool learned_time = true;  ///< learn a time for every bundle and layer
  HeatStart time_start = HeatStart::equal;  ///< where the times of the bundles start

  BundleMixing mixing = BundleMixing::feed_forward;  ///< W before diffusion, or a feed-forward network after it
  bool layer_norm = true;                            ///< LayerNorm before each layer and before the readout
  bool residual = true;                              ///< layers add to the features
  Activation activation = Activation::relu;          ///< activation of layers with linear mixing
  Index readout_layers = 1;  ///< the last is affine, and layers before it are h × h with GELU
  /// The treatment, column by column; empty: made from the first features that a network of the model reads, or a training.
  FeaturePlan feature_plan = {};

  [[nodiscard]] layers::HeatOptions heat() const {
    return {expansion, normalisation, self_loops, terms, time, learned_time, time_start};
  }

  friend bool operator==(const BundleOptions&, const BundleOptions&) = default;
};

/// Declares the options: see core/option.hpp. Takes any options.
template <class Visit, OptionsOf<BundleOptions>... Options>
void for_each_option(const Visit& visit, Options&... options) {
  using Range = OptionRange;
  detail::for_each_size(visit, options...);
  visit({"bundles", "number of vector bundles of the stalk dimension, each with channels of its own",
         Range::between(1, 1024)},
        options.bundles...);
  visit(detail::layers_option, options.layers...);
  visit(detail::treatment_option, options.feature_treatment...);
  visit(detail::plan_option, options.feature_plan...);
  visit({.key = "learner",
         .summary = "network that predicts the rotations, of dense layers (mlp), GraphSAGE layers (sage), or such "
                    "layers with residuals and norms (sage-residual)",
         .flag = "--bundle-learner"},
        options.learner...);
  visit({"learner_layers", "number of layers of the learners sage and sage-residual",
         Range::between(1, layers::max_learner_layers)},
        options.learner_layers...);
  visit({"learner_width", "hidden width of the learners", Range::between(0, 10240, " (0: the network's width)")},
        options.learner_width...);
  visit({.key = "parametrisation",
         .summary = "parametrisation of rotations; euler needs stalk dimension 2 or 3",
         .automatic = "euler for stalk dimension 2, otherwise householder"},
        options.parametrisation...);
  visit({.key = "normalisation", .summary = "normalisation of the adjacency matrix", .flag = "--adjacency"},
        options.normalisation...);
  visit({"self_loops", "the graph of diffusion has a loop at every node"}, options.self_loops...);
  visit({"expansion",
         "how exp(-tL) is computed (taylor, shifted, spectral), its limit of large t, or a learned sum of powers "
         "(hops)"},
        options.expansion...);
  visit({"terms", "degree of the series (at most 64) or number of eigenpairs",
         Range::between(0, layers::max_heat_terms)},
        options.terms...);
  visit({.key = "time",
         .summary = "diffusion time t, or the value at which learned times start",
         .range = Range::at_least(0),
         .flag = "--heat-time"},
        options.time...);
  visit({"learned_time", "every bundle of every layer learns its time"}, options.learned_time...);
  visit({"time_start", "where learned times start: at t, uniform in t +- 1/2, or from t/B to t"},
        options.time_start...);
  visit({"mixing",
         "how channels are mixed: by a linear layer before diffusion, or by a feed-forward network after it"},
        options.mixing...);
  visit({"layer_norm", "apply LayerNorm before each layer and before the readout"}, options.layer_norm...);
  visit(detail::no_residual_option, options.residual...);
  visit({.key = "activation",
         .summary = "activation function of layers with linear mixing",
         .flag = "--node-activation"},
        options.activation...);
  visit(detail::readout_option, options.readout_layers...);
}

/// Fills in the defaults that depend on other options and checks every field.
///
/// \param stalk_dimension  D
/// \throws std::invalid_argument  naming the option, its value and its limit
[[nodiscard]] inline BundleOptions resolve(BundleOptions options, int stalk_dimension) {
  using enum HeatExpansion;
  check_ranges(options);
  detail::check_plan(options.feature_plan, options.features);
  const bool series = options.expansion == taylor || options.expansion == shifted;
  require(options.learner != BundleLearnerKind::mlp || options.learner_layers == 1, "learner_layers",
          options.learner_layers, "the learner mlp has one hidden layer: must be 1");
  require(!series || options.terms <= 64, "terms", options.terms, "a series has at most 64");
  require(options.expansion != spectral || options.terms >= 1, "terms", options.terms,
          "the expansion spectral needs at least 1 eigenpair");
  const Index h = options.bundles * stalk_dimension * options.channels;
  require(h <= 1 << 16, "bundles", options.bundles,
          detail::concat("bundles · stalk dimension · channels is ", h, "; must be at most 65536"));
  if (options.learner_width == 0) options.learner_width = h;
  if (!options.parametrisation) {
    options.parametrisation = stalk_dimension == 2 ? rotation::RotationParametrisation::euler
                                                   : rotation::RotationParametrisation::householder;
  }
  require(options.parametrisation != rotation::RotationParametrisation::euler || stalk_dimension <= 3,
          "parametrisation", "euler", "Euler angles exist for stalk dimensions 2 and 3");
  return options;
}

}  // namespace sheafnn
