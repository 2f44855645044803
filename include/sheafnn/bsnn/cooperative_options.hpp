/// \file
/// Options of cooperative sheaf networks (architecture).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "sheafnn/bsnn/shared_options.hpp"
#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/graph/feature_treatment.hpp"
#include "sheafnn/layers/node_learner_options.hpp"
#include "sheafnn/nn/activation.hpp"

namespace sheafnn {

/// What normalises the features after each layer.
enum class FeatureNorm : std::uint8_t {
  none,
  layer,  ///< of every node (LayerNorm)
  batch   ///< of every feature over the nodes (BatchNorm)
};
/// Its texts, in the order of the enumeration.
inline constexpr std::array<std::string_view, 3> feature_norm_names = {"none", "layer", "batch"};
/// Its text.
[[nodiscard]] constexpr std::string_view to_string(FeatureNorm norm) {
  return feature_norm_names[static_cast<std::size_t>(norm)];
}

/// Architecture of a cooperative sheaf network; the stalk dimension D is a template parameter of the model.
/// Throughout, h = D · channels is the hidden width.
struct CooperativeOptions {
  Index features = 0;   ///< p, number of input features (≥ 1)
  Index channels = 16;  ///< f, feature channels per stalk coordinate (1 … 1024)
  Index layers = 4;     ///< L, cooperative layers (1 … 64)
  Index classes = 0;    ///< C, number of classes, or of outputs of another loss (≥ 1)

  /// What happens to features before the network reads them (math: "Features").
  FeatureTreatment feature_treatment = FeatureTreatment::automatic;

  NodeLearnerKind learner = NodeLearnerKind::mlp;  ///< from features to the nodes' maps
  Index learner_layers = 1;                        ///< convolutions of the sage learners (1 … 8); mlp: 1
  Index learner_width = 32;                        ///< g, hidden width of the learners (1 … 1024)
  double learner_dropout = 0.2;  ///< between the convolutions of sage_projected, in [0, 1); in training
  bool conformal = true;         ///< maps have scales τ, σ (needed for D = 1); otherwise they are rotations

  Activation activation = Activation::gelu;  ///< in the encoders and after the two operators
  FeatureNorm norm = FeatureNorm::none;      ///< after each layer
  bool left_weights = true;                  ///< A_l, mixing stalk coordinates
  bool right_weights = true;                 ///< B_l, mixing channels
  bool residual = true;                      ///< (1 + tanh ε_l) ∘ X
  bool directed = false;                     ///< along arcs as the graph lists them (Graph::listed()), else both ways
  /// With directed: the diagonal of the second operator is b² deg⁻ σ², of the arcs that enter, instead of b² deg⁺ σ².
  bool in_degree_diagonal = false;
  /// Bayesian models: every layer has a pair of learners that read its features, as in deterministic models, instead of
  /// one pair that reads X_1 for all layers.
  bool layer_learners = false;
  /// Feed the learners from an encoder of their own; Bayesian models without layer_learners only.
  bool separate_encoder = false;
  Index readout_layers = 1;  ///< the last one affine, those before it h × h with GELU (1 … 8)
  /// That, column by column; empty: made from the first features that a network of the model reads, or a training.
  FeaturePlan feature_plan = {};

  friend bool operator==(const CooperativeOptions&, const CooperativeOptions&) = default;
};

/// Checks every field.
///
/// \param stalk_dimension  D
/// \throws std::invalid_argument  naming the option, its value and its limit
[[nodiscard]] inline CooperativeOptions resolve(const CooperativeOptions& options, int stalk_dimension,
                                                bool bayesian) {
  detail::check_sizes(options);
  detail::check_plan(options.feature_plan, options.features);
  require_between("learner_layers", options.learner_layers, 1, 8);
  require_between("learner_width", options.learner_width, 1, 1024);
  require(options.learner != NodeLearnerKind::mlp || options.learner_layers == 1, "learner_layers",
          options.learner_layers, "the learner mlp has one hidden layer: must be 1");
  require(options.learner_dropout >= 0 && options.learner_dropout < 1, "learner_dropout", options.learner_dropout,
          "must be at least 0 and below 1");
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
  return options;
}

}  // namespace sheafnn
