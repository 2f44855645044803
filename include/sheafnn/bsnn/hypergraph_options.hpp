/// \file
/// Options of sheaf hypergraph networks (architecture). Source: math: "Hypergraphs".
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "sheafnn/bsnn/network_kind.hpp"
#include "sheafnn/bsnn/options.hpp"
#include "sheafnn/bsnn/shared_options.hpp"
#include "sheafnn/layers/hypergraph_setting.hpp"
#include "sheafnn/random/stream.hpp"

namespace sheafnn {

/// Architecture of a sheaf hypergraph network; family and stalk dimension d are template parameters of the model.
/// Fields have the same meaning as in ModelOptions. h = d · channels is the hidden width.
struct HypergraphOptions {
  static constexpr NetworkKind kind{.bayesian = "bshgnn",
                                    .deterministic = "shgnn",
                                    .options = "HypergraphOptions",
                                    .title = "Hypergraph networks",
                                    .maps = "maps per node and hyperedge",
                                    .least_stalk_dimension = 2,
                                    .largest_stalk_dimension = 4,
                                    .on_hypergraphs = true,
                                    .python = "HypergraphClassifier",
                                    .modules =
                                        "SheafHyperGnn, BayesianSheafHyperGnn, SheafHypergraphConv, "
                                        "BayesianSheafHypergraphConv"};

  Index features = 0;   ///< p, number of input features
  Index channels = 16;  ///< f, feature channels per stalk coordinate
  Index layers = 2;     ///< L, diffusion layers
  Index classes = 0;    ///< C, number of classes, or of outputs for another loss

  FeatureTreatment feature_treatment = FeatureTreatment::automatic;
  /// linear: SheafHyperGNN; nonlinear: SheafHyperGCN; published: for comparisons with published figures.
  HypergraphLaplacian laplacian = HypergraphLaplacian::linear;
  /// With the nonlinear Laplacian: join both ends of the most discrepant pair with every other member too.
  bool mediators = false;
  /// With the nonlinear Laplacian: f values r, which make a discrepancy the norm of (F_u x_u − F_v x_v) r. Empty: the
  /// norm of all entries. random_projection() draws such numbers.
  std::vector<double> projection = {};
  HypergraphUpdate update = HypergraphUpdate::plain;             ///< how a layer ends
  HypergraphLearner learner = HypergraphLearner::concatenation;  ///< what the sheaf learner reads
  bool static_sheaf = false;                                     ///< keep the first layer's sheaf for all layers
  bool bias = true;                                              ///< layers have a bias b_l
  bool left_weights = true;                                      ///< A_l, mixing stalk coordinates
  bool right_weights = true;                                     ///< B_l, mixing channels
  /// Feed the sheaf learner from an encoder of its own; Bayesian models only (default: on for rotations).
  std::optional<bool> separate_encoder = {};
  std::optional<SheafActivation> sheaf_activation = {};
  SpreadRange spread = SpreadRange::concentrated;
  std::optional<rotation::RotationParametrisation> parametrisation = {};
  Index readout_layers = 1;
  FeaturePlan feature_plan = {};

  friend bool operator==(const HypergraphOptions&, const HypergraphOptions&) = default;
};

/// Declares the options: see core/option.hpp. Takes any options.
template <class Visit, OptionsOf<HypergraphOptions>... Options>
void for_each_option(const Visit& visit, Options&... options) {
  visit(detail::layers_option, options.layers...);
  detail::for_each_size(visit, options...);
  visit(detail::treatment_option, options.feature_treatment...);
  visit(detail::plan_option, options.feature_plan...);
  visit({"laplacian", "Laplacian of the hypergraph"}, options.laplacian...);
  visit({"mediators",
         "with the nonlinear Laplacian: join both ends of the most discrepant pair with the other members"},
        options.mediators...);
  visit({.key = "projection",
         .summary =
             "with the nonlinear Laplacian: one number per channel, which projects discrepancies; empty: norms",
         .flag = ""},
        options.projection...);
  visit({"update", "how a layer ends: it replaces its input (plain), or subtracts from its input (residual)"},
        options.update...);
  visit({.key = "learner",
         .summary = "how the sheaf learner combines the embeddings of a node and a hyperedge",
         .flag = "--hypergraph-learner"},
        options.learner...);
  visit({"static_sheaf", "all layers share one sheaf"}, options.static_sheaf...);
  visit({.key = "bias", .summary = "each layer has a bias", .flag = "!--no-bias"}, options.bias...);
  visit(detail::left_weights_option, options.left_weights...);
  visit(detail::right_weights_option, options.right_weights...);
  visit(detail::separate_encoder_option, options.separate_encoder...);
  visit(detail::sheaf_activation_option, options.sheaf_activation...);
  visit(detail::spread_option, options.spread...);
  visit(detail::parametrisation_option, options.parametrisation...);
  visit(detail::readout_option, options.readout_layers...);
}

/// Numbers for HypergraphOptions::projection, uniform in [0, 1). Takes any seed; the result is empty without channels.
[[nodiscard]] inline std::vector<double> random_projection(Index channels, std::uint64_t seed = 0) {
  const Stream stream{seed, Purpose::user};
  std::vector<double> r;
  for (Index c = 0; c < channels; ++c) {
    r.push_back(random::uniform_from_word<double>(stream.words(static_cast<std::uint32_t>(c), 0).word[0]));
  }
  return r;
}

namespace detail {

/// The options that encoder, sheaf learner and readout share with networks on graphs.
[[nodiscard]] inline ModelOptions shared_parts(const HypergraphOptions& options) {
  ModelOptions r;
  r.features = options.features;
  r.channels = options.channels;
  r.layers = options.layers;
  r.classes = options.classes;
  r.feature_plan = options.feature_plan;
  r.edge_weights = false;
  r.separate_encoder = options.separate_encoder;
  r.sheaf_activation = options.sheaf_activation;
  r.spread = options.spread;
  r.parametrisation = options.parametrisation;
  r.linear = options.static_sheaf;
  r.readout_layers = options.readout_layers;
  r.learner = layers::learner_input(options.learner);
  return r;
}

}  // namespace detail

/// Fills in the defaults that depend on the family and checks every field.
///
/// \param bayesian  does the model have a posterior over sheaves?
/// \throws std::invalid_argument  naming the option, its value and its limit
template <RestrictionMapFamily Family>
[[nodiscard]] HypergraphOptions resolve(HypergraphOptions options, bool bayesian) {
  const ModelOptions resolved = resolve<Family>(detail::shared_parts(options), bayesian);
  options.separate_encoder = resolved.separate_encoder;
  options.sheaf_activation = resolved.sheaf_activation;
  options.spread = resolved.spread;
  options.parametrisation = resolved.parametrisation;
  check_ranges(options);
  const bool nonlinear = options.laplacian == HypergraphLaplacian::nonlinear;
  require(!options.mediators || nonlinear, "mediators", true, "an option of the nonlinear Laplacian");
  const Index numbers = static_cast<Index>(options.projection.size());
  require(numbers == 0 || nonlinear, "projection", detail::concat(numbers, " numbers"),
          "an option of the nonlinear Laplacian");
  require(numbers == 0 || numbers == options.channels, "projection", detail::concat(numbers, " numbers"),
          detail::concat("must be one for each of the ", options.channels, " channels, or none"));
  for (std::size_t c = 0; c < options.projection.size(); ++c) {
    if (std::isfinite(options.projection[c])) continue;
    throw_invalid_argument(detail::concat("projection[", c, "]"), options.projection[c], "must be finite");
  }
  return options;
}

}  // namespace sheafnn
