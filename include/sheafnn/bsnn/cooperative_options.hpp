/// \file
/// Options of cooperative sheaf networks (architecture).
#pragma once

#include <array>
#include <cstdint>

#include "sheafnn/bsnn/network_kind.hpp"
#include "sheafnn/bsnn/shared_options.hpp"
#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/core/names.hpp"
#include "sheafnn/core/option.hpp"
#include "sheafnn/graph/feature_treatment.hpp"
#include "sheafnn/layers/node_learner_options.hpp"
#include "sheafnn/nn/activation.hpp"

namespace sheafnn {

namespace detail {

/// Dropout numbers from here on, one per layer, belong to the dropouts after the first one of each layer. No model has
/// that many layers.
inline constexpr Index second_dropouts = 64;

}  // namespace detail

/// What normalises the features after each layer.
enum class FeatureNorm : std::uint8_t {
  none,
  layer,  ///< the features of every node (LayerNorm)
  batch   ///< every feature over the nodes (BatchNorm)
};
/// Its names, in the order of the enumeration.
[[nodiscard]] constexpr auto names_of(FeatureNorm) { return std::array{"none", "layer", "batch"}; }

/// Architecture of a cooperative sheaf network; the stalk dimension D is a template parameter of the model.
/// Throughout, h = D · channels is the hidden width.
struct CooperativeOptions {
  static constexpr NetworkKind kind{.bayesian = "bcsnn",
                                    .deterministic = "csnn",
                                    .options = "CooperativeOptions",
                                    .title = "Cooperative networks",
                                    .maps = "maps per node",
                                    .own_maps = "cooperative",
                                    .least_stalk_dimension = 2,
                                    .modules = "Csnn, Bcsnn, CooperativeSheafConv, BayesianCooperativeSheafConv"};

  Index features = 0;   ///< p, number of input features
  Index channels = 16;  ///< f, feature channels per stalk coordinate
  Index layers = 4;     ///< L, cooperative layers
  Index classes = 0;    ///< C, number of classes, or of outputs for another loss

  /// What happens to features before the network reads them (math: "Features").
  FeatureTreatment feature_treatment = FeatureTreatment::automatic;

  NodeLearnerKind learner = NodeLearnerKind::mlp;  ///< from features to the nodes' maps
  Index learner_layers = 1;                        ///< number of convolutions of the sage learners; mlp: 1
  Index learner_width = 32;                        ///< g, hidden width of the learners
  double learner_dropout = 0.2;  ///< dropout rate between the convolutions of sage_projected, in training
  bool conformal = true;         ///< maps have scales τ, σ (needed for D = 1); otherwise they are rotations

  Activation activation = Activation::gelu;  ///< in the encoders and after the two operators
  FeatureNorm norm = FeatureNorm::none;      ///< after each layer
  bool left_weights = true;                  ///< A_l, mixing stalk coordinates
  bool right_weights = true;                 ///< B_l, mixing channels
  bool residual = true;                      ///< (1 + tanh ε_l) ∘ X − act(Z) instead of act(Z)
  bool directed = false;  ///< diffuse along arcs as the graph lists them (Graph::listed()), else both ways
  /// With directed: the diagonal of the second operator counts the arcs that enter, b² deg⁻ σ² instead of b² deg⁺ σ².
  bool in_degree_diagonal = false;
  /// For Bayesian models: every layer has a pair of learners that read its features, as in deterministic models.
  /// Otherwise one pair reads X_1 and serves all layers.
  bool layer_learners = false;
  /// Feed the learners from an encoder of their own; Bayesian models without layer_learners only.
  bool separate_encoder = false;
  Index readout_layers = 1;  ///< the last is affine, and layers before it are h × h with GELU
  /// Without the residual: −act(Z) instead of act(Z). Set for models stored in files of version 1
  /// (io/format_version.hpp), whose layers had this sign.
  bool negate_diffused = false;
  /// The treatment, column by column; empty: made from the first features that a network of the model reads, or a training.
  FeaturePlan feature_plan = {};

  friend bool operator==(const CooperativeOptions&, const CooperativeOptions&) = default;
};

/// Declares the options: see core/option.hpp. Takes any options.
template <class Visit, OptionsOf<CooperativeOptions>... Options>
void for_each_option(const Visit& visit, Options&... options) {
  using Range = OptionRange;
  detail::for_each_size(visit, options...);
  visit(detail::layers_option, options.layers...);
  visit(detail::treatment_option, options.feature_treatment...);
  visit(detail::plan_option, options.feature_plan...);
  visit({.key = "learner",
         .summary = "network that predicts the maps, of dense layers (mlp) or GraphSAGE layers",
         .flag = "--node-learner"},
        options.learner...);
  visit({"learner_layers", "number of layers of the learners sage and sage-projected",
         Range::between(1, layers::max_learner_layers)},
        options.learner_layers...);
  visit({"learner_width", "hidden width of the learners", Range::between(1, 1024)}, options.learner_width...);
  visit({.key = "learner_dropout",
         .summary = "dropout of the learner sage-projected",
         .range = Range::below(0, 1),
         .flag = "--node-learner-dropout"},
        options.learner_dropout...);
  visit({"conformal", "maps have a scale besides their rotation"}, options.conformal...);
  visit(detail::node_activation_option, options.activation...);
  visit({.key = "norm", .summary = "what normalises the features after each layer", .flag = ""}, options.norm...);
  visit(detail::left_weights_option, options.left_weights...);
  visit(detail::right_weights_option, options.right_weights...);
  visit(detail::no_residual_option, options.residual...);
  visit({.key = "directed",
         .summary = "diffuse along arcs in the dataset's directions, instead of both ways along every edge",
         .since = "0.1"},
        options.directed...);
  visit({.key = "in_degree_diagonal",
         .summary = "with directed: the diagonal of the second operator counts the arcs that enter a node",
         .since = "0.1"},
        options.in_degree_diagonal...);
  visit({.key = "layer_learners",
         .summary = "with bcsnn: every layer has learners that read its features, as in csnn",
         .since = "0.1"},
        options.layer_learners...);
  visit({"separate_encoder", "with bcsnn: the learners have an encoder of their own"},
        options.separate_encoder...);
  visit(detail::readout_option, options.readout_layers...);
  visit({.key = "negate_diffused",
         .summary =
             "without the residual: give the diffused features the opposite sign; files of version 1 have this",
         .flag = "",
         .since = "0.2"},
        options.negate_diffused...);
}

/// Checks every field.
///
/// \param stalk_dimension  D
/// \throws std::invalid_argument  naming the option, its value and its limit
[[nodiscard]] inline CooperativeOptions resolve(const CooperativeOptions& options, int stalk_dimension,
                                                bool bayesian) {
  check_ranges(options);
  detail::check_plan(options.feature_plan, options.features);
  require(options.learner != NodeLearnerKind::mlp || options.learner_layers == 1, "learner_layers",
          options.learner_layers, "the learner mlp has one hidden layer: must be 1");
  require(!options.in_degree_diagonal || options.directed, "in_degree_diagonal", true,
          "needs directed: otherwise as many arcs leave a node as enter it");
  require(options.conformal || stalk_dimension > 1, "conformal", false,
          "with stalk dimension 1 there are no rotations to learn");
  require(!options.separate_encoder || bayesian, "separate_encoder", true,
          "only Bayesian models have an encoder for their learners");
  require(!options.layer_learners || bayesian, "layer_learners", true,
          "an option of Bayesian models; others have learners in every layer");
  require(!options.layer_learners || !options.separate_encoder, "separate_encoder", true,
          "with layer_learners, learners read the features of their layer");
  require(!options.negate_diffused || !options.residual, "negate_diffused", true,
          "an option of layers without residual; with a residual, diffused features are subtracted anyway");
  return options;
}

}  // namespace sheafnn
