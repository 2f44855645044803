/// \file
/// The options of the program train that belong to cooperative networks, and which of the others these share.
#pragma once

#include <CLI/CLI.hpp>
#include <array>
#include <nlohmann/json.hpp>
#include <sheafnn/bsnn/cooperative_options.hpp>
#include <sheafnn/bsnn/options.hpp>
#include <sheafnn/core/errors.hpp>
#include <string>

#include "models/option_groups.hpp"
#include "models/registry.hpp"

namespace programs {

/// Names that options have on the command line.
struct CooperativeSettings {
  sheafnn::CooperativeOptions options;
  std::string learner = "mlp", activation = "gelu";
  bool batch_norm = false;
};

inline constexpr const char* cooperative_group = "Cooperative networks";

inline void add_cooperative_options(CLI::App& app, CooperativeSettings& s) {
  auto* group = app.add_option_group(cooperative_group, "csnn and bcsnn: maps per node; see docs/networks.md");
  group
      ->add_option("--node-learner", s.learner,
                   "what predicts the maps: mlp, or GraphSAGE layers, whose number is --learner-layers: sage, "
                   "sage-projected")
      ->capture_default_str()
      ->check(one_of_names(sheafnn::node_learner_names));
  group->add_option("--node-learner-dropout", s.options.learner_dropout, "dropout of sage-projected, 0 up to 1")
      ->capture_default_str();
  group->add_flag("!--no-conformal", s.options.conformal, "maps are rotations, without scales");
  group->add_flag("!--no-residual", s.options.residual, "layers replace the features instead of changing them");
  group->add_flag("--directed", s.options.directed,
                  "along arcs as the dataset lists them, instead of every edge both ways (default: off)");
  group->add_flag("--in-degree-diagonal", s.options.in_degree_diagonal,
                  "with --directed: the second operator's diagonal counts the arcs that enter (default: off)");
  show_default(group->add_flag("--layer-learners,!--no-layer-learners", s.options.layer_learners,
                               "bcsnn: learners in every layer, which read its features, as csnn has"),
               s.options.layer_learners);
  group->add_flag("--batch-norm", s.batch_norm, "batch norm over the nodes after each layer (default: off)");
  group->add_option("--node-activation", s.activation, "activation of encoder and layers")
      ->capture_default_str()
      ->check(one_of_names(sheafnn::activation_names));
}

/// Checks that options were given for the model that is trained, and takes those that both kinds of network have.
///
/// \param app      after parsing
/// \param pairs    what the group Model of the command line has set
/// \throws std::invalid_argument  an option of the other kind, or a value out of range
inline void resolve_cooperative(const CLI::App& app, const std::string& model, const sheafnn::ModelOptions& pairs,
                                CooperativeSettings& s) {
  constexpr std::array shared = {"--model",
                                 "--stalk-dim",
                                 "--channels",
                                 "--layers",
                                 "--layer-norm",
                                 "--readout-layers",
                                 "--learner-layers",
                                 "--learner-width",
                                 "--left-weights",
                                 "--no-right-weights",
                                 "--separate-encoder",
                                 "--normalise-features",
                                 "--feature-treatment"};
  if (!is_cooperative(model)) {
    refuse_options(app, cooperative_group, model);
    return;
  }
  refuse_options(app, model_group, model, shared);
  const auto given = [&](const char* option) { return app.get_option(option)->count() > 0; };
  s.options.channels = pairs.channels;
  s.options.layers = pairs.layers;
  s.options.feature_treatment = pairs.feature_treatment;
  s.options.left_weights = pairs.left_weights;
  s.options.right_weights = pairs.right_weights;
  s.options.separate_encoder = pairs.separate_encoder.value_or(false);
  sheafnn::require(!s.batch_norm || !pairs.layer_norm, "--batch-norm", "true",
                   "layers have one norm: not with --layer-norm");
  s.options.norm = s.batch_norm       ? sheafnn::FeatureNorm::batch
                   : pairs.layer_norm ? sheafnn::FeatureNorm::layer
                                      : sheafnn::FeatureNorm::none;
  s.options.readout_layers = pairs.readout_layers;
  if (given("--learner-layers")) s.options.learner_layers = pairs.learner_layers;
  if (given("--learner-width")) s.options.learner_width = pairs.learner_width;
  s.options.learner =
      sheafnn::parse_name<sheafnn::NodeLearnerKind>("--node-learner", s.learner, sheafnn::node_learner_names);
  s.options.activation =
      sheafnn::parse_name<sheafnn::Activation>("--node-activation", s.activation, sheafnn::activation_names);
}

/// The architecture, as reports and checkpoints of trainings name it.
[[nodiscard]] inline nlohmann::ordered_json cooperative_json(const sheafnn::CooperativeOptions& o) {
  return {{"channels", o.channels},
          {"layers", o.layers},
          {"feature_treatment", to_string(o.feature_treatment)},
          {"node_learner", to_string(o.learner)},
          {"learner_layers", o.learner_layers},
          {"learner_width", o.learner_width},
          {"node_learner_dropout", o.learner_dropout},
          {"conformal", o.conformal},
          {"node_activation", to_string(o.activation)},
          {"layer_norm", o.norm == sheafnn::FeatureNorm::layer},
          {"batch_norm", o.norm == sheafnn::FeatureNorm::batch},
          {"left_weights", o.left_weights},
          {"right_weights", o.right_weights},
          {"residual", o.residual},
          {"directed", o.directed},
          {"in_degree_diagonal", o.in_degree_diagonal},
          {"layer_learners", o.layer_learners},
          {"separate_encoder", o.separate_encoder},
          {"readout_layers", o.readout_layers}};
}

}  // namespace programs
