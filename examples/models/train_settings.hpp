/// \file
/// The options of the program train, and the settings that they make.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstddef>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <sheafnn/bsnn/options.hpp>
#include <sheafnn/bsnn/presets.hpp>
#include <sheafnn/bsnn/train_options.hpp>
#include <sheafnn/core/errors.hpp>
#include <sheafnn/graph/feature_treatment.hpp>
#include <sheafnn/graph/fit_features.hpp>
#include <sheafnn/graph/synthetic.hpp>
#include <sheafnn/version.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/cooperative_settings.hpp"
#include "models/data_options.hpp"
#include "models/flow_settings.hpp"
#include "models/option_groups.hpp"
#include "models/program.hpp"
#include "models/registry.hpp"

namespace programs {

struct TrainSettings {
  std::string dataset = "karate";
  sheafnn::SyntheticOptions synthetic;
  DataOptions data;
  std::string preset = "auto";
  std::string model = "bsnn";
  std::string maps = "special-orthogonal";
  int stalk_dimension = 3;
  sheafnn::ModelOptions options;
  CooperativeSettings cooperative;
  FlowSettings flow;
  sheafnn::TrainOptions train;
  std::string edge_weights = "auto", separate_encoder = "auto";
  std::string feature_treatment = "automatic";
  bool rows_to_one = false;  ///< --normalise-features
  std::string normalisation = "augmented", parametrisation = "auto";
  std::string filter = "none", coefficients = "convex", skip = "input", residual = "gated";
  std::string learner = "concatenation", sheaf_activation = "auto", spread = "concentrated";
  std::string kl_schedule = "cyclical", kl_estimator = "automatic", stop_on = "loss", sample_loss = "expected";
  std::string splits, seeds, parallel = "none", device = "cpu";
  std::string report, save, sheaf, predictions;
  bool history = false;
  std::string checkpoint, resume;
  std::string search;  ///< the time that it may take; empty: none
};

[[nodiscard]] inline std::optional<bool> on_off(const std::string& text) {
  if (text == "auto") return {};
  return text == "on";
}

[[nodiscard]] HelpFormatter::Defaults preset_defaults(const std::string& model);

/// The options that say what is trained, on what and how.
inline void add_training_options(CLI::App& app, TrainSettings& s) {
  app.formatter(std::make_shared<HelpFormatter>([&s] { return preset_defaults(s.model); }));
  // An option that is given twice has the last value: --resume puts the old arguments in front of the new ones.
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  add_dataset_options(app, s.dataset, s.synthetic, s.data);
  add_split_options(app, s.data);
  const auto one_of = [](std::vector<std::string> names) { return CLI::IsMember(std::move(names)); };
  app.add_option("--preset", s.preset,
                 "options for a kind of graph, which all options below override: " +
                     joined(sheafnn::preset_names) +
                     ", none, or auto: by size and homophily; --model csnn --help shows their values for csnn; "
                     "see docs/training.md")
      ->capture_default_str()
      ->check(one_of({"auto", "none", "small", "citation", "heterophilic", "large", "dense"}));
  auto* model = app.add_option_group(model_group, "the network; see docs/math.md");
  model
      ->add_option("--model", s.model,
                   "maps per incident pair: bsnn (Bayesian) or nsd (deterministic); maps per node: bcsnn or csnn; "
                   "continuous time: bflow or flow; see docs/networks.md")
      ->capture_default_str()
      ->check(one_of({model_names.begin(), model_names.end()}));
  model->add_option("--maps", s.maps, "restriction maps: diagonal, special-orthogonal, general-linear or identity")
      ->capture_default_str()
      ->check(one_of({maps_names.begin(), maps_names.end()}));
  model->add_option("--stalk-dim", s.stalk_dimension, "stalk dimension, 1 to 5")
      ->capture_default_str()
      ->check(CLI::Range(1, 5));
  model->add_option("--channels", s.options.channels, "feature channels, 1 to 1024")->capture_default_str();
  model->add_option("--layers", s.options.layers, "diffusion layers, 1 to 64")->capture_default_str();
  show_default(model->add_flag("--add-lp,!--no-add-lp", s.options.add_lp,
                               "append a fixed low-pass stalk coordinate"),
               s.options.add_lp);
  show_default(model->add_flag("--add-hp,!--no-add-hp", s.options.add_hp,
                               "append a fixed high-pass stalk coordinate"),
               s.options.add_hp);
  model
      ->add_option("--edge-weights", s.edge_weights,
                   "learned edge weights: on, off or auto (on for special-orthogonal)")
      ->capture_default_str()
      ->check(one_of({"auto", "on", "off"}));
  model
      ->add_option("--separate-encoder", s.separate_encoder,
                   "an encoder of the sheaf learner's own: on, off or auto (on for Bayesian special-orthogonal)")
      ->capture_default_str()
      ->check(one_of({"auto", "on", "off"}));
  model->add_flag("--degree-input", s.options.degree_input,
                  "node degree as input of the sheaf encoder (default: off)");
  model->add_option("--learner-layers", s.options.learner_layers, "hidden layers of the sheaf learner, 0 to 8")
      ->capture_default_str();
  model->add_option("--learner-width", s.options.learner_width, "their width, 0 (as channels) to 1024")
      ->capture_default_str();
  model->add_option("--learner", s.learner, "what it reads of two nodes: " + joined(sheafnn::learner_input_names))
      ->capture_default_str();
  model->add_option("--sheaf-activation", s.sheaf_activation,
                    "of its outputs: " + joined(sheafnn::sheaf_activation_names) +
                        " (attention: nsd, general-linear; exponential: general-linear; "
                        "residual: general-linear, diagonal),"
                        " or auto (identity for special-orthogonal, otherwise and with --spread published tanh)")
      ->capture_default_str();
  model
      ->add_option("--spread", s.spread,
                   "of Bayesian maps, where it begins and how far it reaches: " + joined(sheafnn::spread_range_names))
      ->capture_default_str();
  model->add_flag("--second-linear", s.options.second_linear, "second linear layer in the encoder (default: off)");
  model->add_flag("--linear", s.options.linear, "one sheaf for all layers (default: off)");
  show_default(model->add_flag("--layer-norm,!--no-layer-norm", s.options.layer_norm,
                               "layer norm after each layer"),
               s.options.layer_norm);
  model->add_option("--readout-layers", s.options.readout_layers,
                    "layers of the readout, those before the last with GELU, 1 to 8")
      ->capture_default_str();
  show_default(model->add_flag("--left-weights,!--no-left-weights", s.options.left_weights,
                               "mix stalk coordinates"),
               s.options.left_weights);
  model->add_flag("!--no-right-weights", s.options.right_weights, "do not mix channels");
  model->add_flag("!--no-activation", s.options.activation, "no ELU");
  auto* treatment =
      model
          ->add_option("--feature-treatment", s.feature_treatment,
                       "what happens to features first: " + joined(sheafnn::feature_treatment_names) +
                           "; see docs/data.md")
          ->capture_default_str();
  model
      ->add_flag("--normalise-features,!--no-normalise-features", s.rows_to_one,
                 "older spellings of --feature-treatment rows and none")
      ->excludes(treatment);
  show_default(model->add_flag("--edges,!--no-edges", s.options.use_edges,
                               "see the edges of the graph; without them a network of the nodes alone"),
               s.options.use_edges);
  model->add_option("--normalisation", s.normalisation, "Laplacian: " + joined(sheafnn::normalisation_names))
      ->capture_default_str();
  model
      ->add_option("--parametrisation", s.parametrisation,
                   "mean rotations: " + joined(sheafnn::rotation_parametrisation_names) +
                       " (euler: stalk dimension 2, 3), or auto (exponential, with --spread published householder)")
      ->capture_default_str();

  auto& filter = s.options.filter;
  model
      ->add_option("--filter", s.filter,
                   "diffuse with a polynomial of the Laplacian in this basis: " +
                       joined(sheafnn::polynomial_basis_names))
      ->capture_default_str();
  model->add_option("--degree", filter.degree, "degree of the filter, 0 to 64")->capture_default_str();
  model
      ->add_option("--coefficients", s.coefficients,
                   "coefficients of the filter: " + joined(sheafnn::polynomial_coefficients_names))
      ->capture_default_str();
  model
      ->add_option("--skip", s.skip,
                   "the filter's high-pass term, of the layer's input or of the mixed features: " +
                       joined(sheafnn::high_pass_skip_names))
      ->capture_default_str();
  model->add_flag("--published-filter", filter.published,
                  "jacobi and chebyshev-interpolation as in the published code (default: off)");
  model->add_option("--jacobi-alpha", filter.jacobi_alpha, "of --filter jacobi, above -1")->capture_default_str();
  model->add_option("--jacobi-beta", filter.jacobi_beta, "of --filter jacobi, above -1")->capture_default_str();
  model->add_option("--gegenbauer-lambda", filter.gegenbauer_lambda, "of --filter gegenbauer, above 0")
      ->capture_default_str();
  model
      ->add_option("--largest-eigenvalue", filter.largest_eigenvalue,
                   "a bound of the Laplacian's eigenvalues, above 0; 2 holds for --normalisation augmented and block")
      ->capture_default_str();

  auto& residual = s.options.residual;
  model
      ->add_option("--residual", s.residual,
                   "what layers add to what they diffuse: their input (gated) or that of the first layer, for deep "
                   "networks (initial)")
      ->capture_default_str();
  model->add_option("--residual-alpha", residual.alpha, "weight of the first layer's input, 0 to 1")
      ->capture_default_str();
  model
      ->add_option("--residual-theta", residual.theta, "layer l mixes with weight log(1 + theta/l), 0 to 1.7")
      ->capture_default_str();

  add_cooperative_options(app, s.cooperative);
  add_flow_options(app, s.flow);

  auto* train = app.add_option_group("Training");
  train->add_option("--epochs", s.train.epochs, "at most so many epochs, at least 1")->capture_default_str();
  train->add_option("--patience", s.train.patience, "stop after so many epochs without a better one, at least 1")
      ->capture_default_str();
  train
      ->add_option("--stop-on", s.stop_on,
                   "the best epoch has the best validation " + joined(sheafnn::stop_on_names) +
                       "; with a preset roc-auc where one of two classes has two thirds of the nodes")
      ->capture_default_str();
  train->add_option("--lr", s.train.learning_rate, "Adam's learning rate, above 0")->capture_default_str();
  train->add_option("--sheaf-lr", s.train.sheaf_learning_rate,
                    "learning rate of the sheaf learner's weights, 0: as --lr (default: 0.3 of --lr)");
  train
      ->add_option("--weight-decay", s.train.weight_decay,
                   "L2 decay of all weights but the sheaf learner's, at least 0")
      ->capture_default_str();
  train->add_option("--sheaf-decay", s.train.sheaf_decay, "L2 decay of the sheaf learner's weights, at least 0")
      ->capture_default_str();
  train->add_option("--input-dropout", s.train.input_dropout, "dropout of features, 0 up to 1")
      ->capture_default_str();
  train->add_option("--dropout", s.train.dropout, "dropout of hidden features, 0 up to 1")->capture_default_str();
  train->add_option("--kl-schedule", s.kl_schedule, "weight of the KL term: " + joined(sheafnn::kl_schedule_names))
      ->capture_default_str();
  train->add_option("--kl-weight", s.train.kl_maximum, "its largest value, at least 0")->capture_default_str();
  train->add_option("--kl-estimator", s.kl_estimator, "KL term: " + joined(sheafnn::kl_estimator_names))
      ->capture_default_str();
  train
      ->add_option("--sample-loss", s.sample_loss,
                   "of several training samples: the mean of their losses, or the loss of their mean prediction: " +
                       joined(sheafnn::sample_loss_names))
      ->capture_default_str();
  train->add_option("--training-samples", s.train.training_samples, "sheaves drawn per training step, 1 to 1024")
      ->capture_default_str();
  train->add_option("--samples", s.train.samples, "posterior samples averaged at evaluation, 1 to 1024")
      ->capture_default_str();
  train->add_option("--seed", s.train.seed, "seed of weights, dropout and noise")->capture_default_str();
  train->add_option("--threads", s.train.threads, "threads, 0: as many as the graph is worth")
      ->capture_default_str();
}

/// All options of the program train.
inline void add_options(CLI::App& app, TrainSettings& s) {
  add_training_options(app, s);
  auto* run = app.add_option_group("Run");
  run->add_option("--splits", s.splits, "splits to train on, e.g. 0-9 or 0,3,7 (default: all)");
  run->add_option("--search", s.search,
                  "try a dozen settings (networks, maps, depths) for so long, as in 60s, 5m or 1h, and train the one "
                  "with the best validation score; see docs/training.md");
  run->add_option("--seeds", s.seeds, "train on every split with each of these seeds, e.g. 0-9 (default: --seed)")
      ->excludes(app.get_option("--seed"));
  run->add_option("--device", s.device,
                  "where to train: cpu, cuda or cuda:NUMBER; on a CUDA device all splits and seeds side by side")
      ->capture_default_str();
  run->add_option(
         "--parallel", s.parallel,
         "what runs side by side: none, or splits with one thread each (same results); --threads then bounds "
         "how many at a time")
      ->capture_default_str()
      ->check(CLI::IsMember({"none", "splits"}));
  auto* report = run->add_option("--report", s.report, "write the results to this JSON file");
  run->add_flag("--history", s.history, "with --report: every epoch's losses and accuracies as well")
      ->needs(report);
  run->add_option(
      "--save", s.save,
      "write the trained model to this .safetensors file (with several splits: one file each, NAME-SPLIT; with "
      "several seeds NAME-SPLIT-SEED)");
  run->add_option("--sheaf", s.sheaf,
                  "write its sheaf, features and predictions to this .npz file, named as those of --save");
  run->add_option(
      "--predictions", s.predictions,
      "write the class probabilities and uncertainties of all nodes, of every training, to this .npz file");
  run->add_option("--checkpoint", s.checkpoint,
                  "write the state of every training to this folder, every few epochs and when it is interrupted");
  run->add_option("--every", s.train.checkpoint_every, "epochs between two checkpoints, at least 1")
      ->capture_default_str();
  run->add_option("--resume", s.resume,
                  "go on with the trainings of this folder, with the options that they were begun with; --epochs, "
                  "--patience, --threads and the files to write may change");
}

/// Does the command line say what happens to features? \param app  after parsing
[[nodiscard]] inline bool says_feature_treatment(const CLI::App& app) {
  return app.get_option("--feature-treatment")->count() + app.get_option("--normalise-features")->count() > 0;
}

/// Sets it where the command line does not. \param app  after parsing
inline void set_feature_treatment(const CLI::App& app, TrainSettings& s, sheafnn::FeatureTreatment treatment) {
  if (says_feature_treatment(app)) return;
  s.options.feature_treatment = treatment;
  s.feature_treatment = to_string(treatment);
}

/// Sets the options of the networks that the command line does not. The learner of a cooperative network is one choice
/// with its number of layers, its norm another with batch norm.
inline void set_network(const CLI::App& app, TrainSettings& s, sheafnn::Preset preset, sheafnn::Index features,
                        sheafnn::TrainOptions& train) {
  const auto given = [&](const char* option) { return app.get_option(option)->count() > 0; };
  const auto set = [&](const char* option, auto& field, const auto& value) {
    if (!given(option)) field = value;
  };
  if (is_cooperative(s.model)) {
    sheafnn::CooperativeOptions model{.features = features};
    sheafnn::apply(preset, model, is_bayesian(s.model), train);
    set("--layers", s.options.layers, model.layers);
    set("--channels", s.options.channels, model.channels);
    set_feature_treatment(app, s, model.feature_treatment);
    set("--left-weights", s.options.left_weights, model.left_weights);
    if (!s.cooperative.batch_norm) {
      set("--layer-norm", s.options.layer_norm, model.norm == sheafnn::FeatureNorm::layer);
    }
    set("--node-learner", s.cooperative.learner, to_string(model.learner));
    if (s.cooperative.learner == to_string(model.learner)) {
      s.cooperative.options.learner_layers = model.learner_layers;
      s.cooperative.options.learner_width = model.learner_width;
    }
    if (s.separate_encoder != "on") set("--layer-learners", s.cooperative.options.layer_learners, model.layer_learners);
    resolve_cooperative(app, s.model, s.options, s.cooperative);
    return;
  }
  const auto set_pairs = [&](const auto& model) {
    set("--channels", s.options.channels, model.channels);
    set("--add-lp", s.options.add_lp, model.add_lp);
    set("--add-hp", s.options.add_hp, model.add_hp);
    set_feature_treatment(app, s, model.feature_treatment);
  };
  if (is_flow(s.model)) {
    sheafnn::FlowOptions model{.features = features};
    sheafnn::apply(preset, model, train);
    set_pairs(model);
    resolve_flow(app, s.model, s.options, s.flow);
    return;
  }
  sheafnn::ModelOptions model{.features = features};
  sheafnn::apply(preset, model, train);
  set_pairs(model);
  set("--layers", s.options.layers, model.layers);
}

/// How deep the network is, in words.
[[nodiscard]] inline std::string depth(const TrainSettings& s) {
  using sheafnn::detail::concat;
  const sheafnn::FlowOptions& flow = s.flow.options;
  return is_flow(s.model) ? concat("to time ", flow.time, " by ", to_string(flow.method))
                          : concat(s.options.layers, " layers");
}
/// Does the network learn maps?
[[nodiscard]] inline bool has_learned_sheaf(const TrainSettings& s) {
  return is_cooperative(s.model) || (s.maps != "identity" && s.options.use_edges);
}
/// Does the network read which arcs are listed?
[[nodiscard]] inline bool is_directed(const TrainSettings& s) {
  return is_cooperative(s.model) && s.cooperative.options.directed;
}

/// Calls visit(option, member of TrainOptions) for what presets and the settings of a search say of a training.
template <class Visit>
void for_each_training_value(const Visit& visit) {
  using Train = sheafnn::TrainOptions;
  visit("--lr", &Train::learning_rate);
  visit("--sheaf-lr", &Train::sheaf_learning_rate);
  visit("--weight-decay", &Train::weight_decay);
  visit("--sheaf-decay", &Train::sheaf_decay);
  visit("--input-dropout", &Train::input_dropout);
  visit("--dropout", &Train::dropout);
  visit("--kl-weight", &Train::kl_maximum);
  visit("--epochs", &Train::epochs);
  visit("--patience", &Train::patience);
}

/// The preset of the settings for a graph, or none. Sets what the command line does not, after resolve_options().
///
/// \param app  after parsing
inline std::optional<sheafnn::Preset> apply_preset(const CLI::App& app, TrainSettings& s,
                                                   const sheafnn::Dataset& data) {
  if (s.preset == "none") return {};
  const sheafnn::Preset preset =
      s.preset == "auto" ? sheafnn::choose_preset(data, data.splits.front())
                         : sheafnn::parse_name<sheafnn::Preset>("--preset", s.preset, sheafnn::preset_names);
  sheafnn::TrainOptions train;
  set_network(app, s, preset, data.feature_count(), train);
  for_each_training_value([&](const char* option, auto member) {
    if (app.get_option(option)->count() == 0) s.train.*member = train.*member;
  });
  // The batch engine stops on loss or accuracy.
  if (!s.device.starts_with("cuda") && app.get_option("--stop-on")->count() == 0) {
    s.train.stop_on = sheafnn::choose_stop_on(data, preset);
    s.stop_on = to_string(s.train.stop_on);
  }
  return preset;
}

/// Sets how many features networks of all kinds read, and their classes.
inline void set_sizes(TrainSettings& s, sheafnn::Index features, sheafnn::Index classes) {
  s.options.features = s.cooperative.options.features = s.flow.options.features = features;
  s.options.classes = s.cooperative.options.classes = s.flow.options.classes = classes;
}

/// Gives networks of all kinds the plan of these features, so that not every training makes it.
inline void set_feature_plan(TrainSettings& s, const sheafnn::NodeFeatures& features) {
  const sheafnn::FeaturePlan plan = sheafnn::fit_features(features, s.options.feature_treatment);
  s.options.feature_plan = s.cooperative.options.feature_plan = s.flow.options.feature_plan = plan;
}

/// For --help: of the options of a network that presets set, the value of each preset and that without one.
inline HelpFormatter::Defaults preset_defaults(const std::string& model) {
  const auto values = [&](std::string_view preset) {
    TrainSettings s;
    s.model = model;
    s.preset = preset;
    CLI::App app;
    add_training_options(app, s);
    apply_preset(app, s, {});
    if (is_cooperative(model)) {  // whose learner has its own defaults
      s.options.learner_layers = s.cooperative.options.learner_layers;
      s.options.learner_width = s.cooperative.options.learner_width;
    }
    HelpFormatter::Defaults r;
    for (CLI::App* group : app.get_subcommands(std::function<bool(CLI::App*)>())) {
      for (CLI::Option* option : group->get_options()) {
        r[option->get_name()] = option->capture_default_str()->get_default_str();
      }
    }
    return r;
  };
  std::vector<HelpFormatter::Defaults> with;
  for (const std::string_view preset : sheafnn::preset_names) with.push_back(values(preset));
  HelpFormatter::Defaults r;
  for (const auto& [option, plain] : values("none")) {
    std::string list;
    bool replaced = false;
    for (std::size_t i = 0; i < with.size(); ++i) {
      const std::string& value = with[i].at(option);
      replaced = replaced || value != plain;
      list += (list.empty() ? "" : ", ") + value + " " + std::string(sheafnn::preset_names[i]);
    }
    if (replaced) r[option] = "the preset's: " + list + "; " + plain + " without a preset";
  }
  return r;
}

/// Checks that no option was given that does nothing beside the others.
///
/// \param app  after parsing
/// \throws std::invalid_argument  naming the option, its value and what it belongs to
inline void refuse_idle_options(const CLI::App& app, const TrainSettings& s) {
  const auto belongs = [&](std::initializer_list<const char*> options, bool is_used, const char* to) {
    for (const char* name : options) {
      const CLI::Option* option = app.get_option(name);
      if (option->count() == 0 || is_used) continue;
      sheafnn::throw_invalid_argument(name, option->as<std::string>(), std::string("belongs to ") + to);
    }
  };
  using Basis = sheafnn::PolynomialBasis;
  const Basis basis = s.options.filter.basis;
  belongs({"--degree", "--coefficients", "--skip", "--published-filter", "--largest-eigenvalue"},
          basis != Basis::none, "--filter");
  belongs({"--coefficients"}, basis != Basis::chebyshev_interpolation,
          "the filters other than chebyshev-interpolation, which has none");
  belongs({"--jacobi-alpha", "--jacobi-beta"}, basis == Basis::jacobi, "--filter jacobi");
  belongs({"--residual-alpha", "--residual-theta"}, s.options.residual.initial(), "--residual initial");
  belongs({"--gegenbauer-lambda"}, basis == Basis::gegenbauer, "--filter gegenbauer");
  const bool chooses_steps = s.flow.options.method == sheafnn::FlowMethod::dormand_prince;
  belongs({"--absolute-tolerance", "--relative-tolerance", "--first-step", "--max-steps"}, chooses_steps,
          "--flow-method dormand-prince");
  belongs({"--fixed-steps"}, !chooses_steps, "--flow-method runge-kutta and euler");
  belongs({"--node-learner-dropout"}, s.cooperative.options.learner == sheafnn::NodeLearnerKind::sage_projected,
          "--node-learner sage-projected");
  belongs({"--parametrisation"}, s.maps == "special-orthogonal", "--maps special-orthogonal");
  belongs({"--learner-layers", "--learner-width", "--linear", "--kl-schedule", "--kl-weight", "--kl-estimator",
           "--training-samples", "--sample-loss"},
          s.maps != "identity" || is_cooperative(s.model), "maps that are learned");
  belongs({"--learner-width"}, is_cooperative(s.model) || s.options.learner_layers > 0, "--learner-layers");
  belongs({"--kl-schedule", "--kl-weight", "--kl-estimator", "--training-samples", "--sample-loss"}, is_bayesian(s.model),
          "--model bsnn, bcsnn and bflow");
  belongs({"--spread"}, s.model == "bsnn" || s.model == sheafnn::bayesian_flow_kind, "--model bsnn and bflow");
  belongs({"--kl-weight"}, s.train.kl_schedule != sheafnn::KlSchedule::off, "--kl-schedule cyclical and constant");
  refuse_idle_dataset_options(app, s.dataset);
}

/// The options that are names, and what they mean to the library; the ranges of the others.
///
/// \param app  after parsing
/// \throws std::invalid_argument  naming the option, its value and the limit
inline void resolve_options(const CLI::App& app, TrainSettings& s) {
  s.options.edge_weights = on_off(s.edge_weights);
  s.options.separate_encoder = on_off(s.separate_encoder);
  if (app.get_option("--normalise-features")->count() > 0) s.feature_treatment = s.rows_to_one ? "rows" : "none";
  s.options.feature_treatment =
      sheafnn::parse_name<sheafnn::FeatureTreatment>("--feature-treatment", s.feature_treatment,
                                                     sheafnn::feature_treatment_names);
  s.options.normalisation = sheafnn::parse_normalisation(s.normalisation);
  if (s.parametrisation != "auto") {
    s.options.parametrisation = sheafnn::parse_rotation_parametrisation(s.parametrisation);
  }
  s.options.filter.basis =
      sheafnn::parse_name<sheafnn::PolynomialBasis>("--filter", s.filter, sheafnn::polynomial_basis_names);
  s.options.filter.coefficients = sheafnn::parse_name<sheafnn::PolynomialCoefficients>(
      "--coefficients", s.coefficients, sheafnn::polynomial_coefficients_names);
  s.options.filter.skip =
      sheafnn::parse_name<sheafnn::HighPassSkip>("--skip", s.skip, sheafnn::high_pass_skip_names);
  s.options.residual.form =
      sheafnn::parse_name<sheafnn::ResidualForm>("--residual", s.residual, sheafnn::residual_form_names);
  s.options.learner = sheafnn::parse_name<sheafnn::LearnerInput>("--learner", s.learner, sheafnn::learner_input_names);
  if (s.sheaf_activation != "auto") {
    s.options.sheaf_activation = sheafnn::parse_name<sheafnn::SheafActivation>(
        "--sheaf-activation", s.sheaf_activation, sheafnn::sheaf_activation_names);
  }
  s.options.spread = sheafnn::parse_name<sheafnn::SpreadRange>("--spread", s.spread, sheafnn::spread_range_names);
  s.train.kl_schedule =
      sheafnn::parse_name<sheafnn::KlSchedule>("--kl-schedule", s.kl_schedule, sheafnn::kl_schedule_names);
  s.train.kl_estimator =
      sheafnn::parse_name<sheafnn::KlEstimator>("--kl-estimator", s.kl_estimator, sheafnn::kl_estimator_names);
  s.train.sample_loss =
      sheafnn::parse_name<sheafnn::SampleLoss>("--sample-loss", s.sample_loss, sheafnn::sample_loss_names);
  s.train.stop_on = sheafnn::parse_name<sheafnn::StopOn>("--stop-on", s.stop_on, sheafnn::stop_on_names);
  sheafnn::validate(s.train);
  resolve_cooperative(app, s.model, s.options, s.cooperative);
  resolve_flow(app, s.model, s.options, s.flow);
  refuse_idle_options(app, s);
  if (is_cooperative(s.model)) s.maps = cooperative_maps;
}

/// "0-9", "0,3,7", "2" or empty (`all`): different numbers below `limit`.
[[nodiscard]] inline std::vector<std::size_t> parse_numbers(const char* option, const std::string& text,
                                                            std::size_t limit, std::vector<std::size_t> all) {
  if (text.empty()) return all;
  std::vector<std::size_t> r;
  const auto bad = [&](const std::string& part) {
    sheafnn::throw_invalid_argument(option, part,
                                    sheafnn::detail::concat("expected numbers or ranges within 0-", limit - 1,
                                                            ", as in 0-9 or 0,3,7"));
  };
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string part = text.substr(begin, end - begin);
    const std::size_t dash = part.find('-');
    const std::string low = part.substr(0, dash), high = dash == std::string::npos ? low : part.substr(dash + 1);
    for (const std::string& number : {low, high}) {
      if (number.empty() || number.size() > 6 || number.find_first_not_of("0123456789") != std::string::npos)
        bad(part);
    }
    const std::size_t first = std::stoul(low), last = std::stoul(high);
    if (first > last || last >= limit) bad(part);
    for (std::size_t i = first; i <= last; ++i) {
      if (std::find(r.begin(), r.end(), i) != r.end())
        sheafnn::throw_invalid_argument(option, text, sheafnn::detail::concat(i, " is there twice"));
      r.push_back(i);
    }
    begin = end + 1;
  }
  return r;
}

/// The architecture of bsnn and nsd.
[[nodiscard]] inline nlohmann::ordered_json pairs_json(const TrainSettings& s, const sheafnn::ModelOptions& m) {
  nlohmann::ordered_json r = {{"channels", m.channels},
          {"layers", m.layers},
          {"add_lp", m.add_lp},
          {"add_hp", m.add_hp},
          {"edge_weights", *m.edge_weights},
          {"separate_encoder", *m.separate_encoder},
          {"degree_input", m.degree_input},
          {"learner_layers", m.learner_layers},
          {"learner_width", m.learner_width},
          {"learner", s.learner},
          {"sheaf_activation", m.sheaf_activation ? to_string(*m.sheaf_activation) : s.sheaf_activation},
          {"second_linear", m.second_linear},
          {"linear", m.linear},
          {"left_weights", m.left_weights},
          {"right_weights", m.right_weights},
          {"activation", m.activation},
          {"layer_norm", m.layer_norm},
          {"readout_layers", m.readout_layers},
          {"feature_treatment", to_string(m.feature_treatment)},
          {"use_edges", m.use_edges},
          {"normalisation", s.normalisation},
          {"parametrisation", m.parametrisation ? to_string(*m.parametrisation) : s.parametrisation},
          {"filter", s.filter},
          {"filter_degree", m.filter.degree},
          {"filter_coefficients", s.coefficients},
          {"filter_skip", s.skip},
          {"filter_published", m.filter.published},
          {"filter_jacobi_alpha", m.filter.jacobi_alpha},
          {"filter_jacobi_beta", m.filter.jacobi_beta},
          {"filter_gegenbauer_lambda", m.filter.gegenbauer_lambda},
          {"filter_largest_eigenvalue", m.filter.largest_eigenvalue},
          {"residual_form", s.residual},
          {"residual_alpha", m.residual.alpha},
          {"residual_theta", m.residual.theta}};
  if (is_bayesian(s.model)) r["spread"] = s.spread;
  return r;
}
/// The options of the group Training.
[[nodiscard]] inline nlohmann::ordered_json training_json(const TrainSettings& s) {
  const auto& t = s.train;
  return {{"epochs", t.epochs},
          {"patience", t.patience},
          {"stop_on", s.stop_on},
          {"lr", t.learning_rate},
          {"sheaf_lr", t.sheaf_rate()},
          {"weight_decay", t.weight_decay},
          {"sheaf_decay", t.sheaf_decay},
          {"input_dropout", t.input_dropout},
          {"dropout", t.dropout},
          {"kl_schedule", s.kl_schedule},
          {"kl_weight", t.kl_maximum},
          {"kl_estimator", s.kl_estimator},
          {"training_samples", t.training_samples},
          {"sample_loss", s.sample_loss},
          {"samples", t.samples},
          {"seed", t.seed},
          {"threads", t.threads},
          {"device", s.device}};
}
/// The architecture of bflow and flow.
[[nodiscard]] inline nlohmann::ordered_json flow_json(const TrainSettings& s, const sheafnn::FlowOptions& flow) {
  nlohmann::ordered_json r = flow_json(flow);
  const nlohmann::ordered_json shared = pairs_json(s, sheafnn::detail::one_layer(flow));
  for (const auto& [key, value] : shared.items()) {
    const bool of_layers = key == "layers" || key == "linear" || key == "layer_norm" || key == "use_edges" ||
                           key.starts_with("filter") || key.starts_with("residual");
    if (!of_layers) r[key] = value;
  }
  return r;
}
[[nodiscard]] inline nlohmann::ordered_json option_json(const TrainSettings& s, const NetworkOptions& resolved) {
  nlohmann::ordered_json r = {{"stalk_dim", s.stalk_dimension}};
  const auto& [pairs, cooperative, flow] = resolved;
  r.update(is_cooperative(s.model) ? cooperative_json(cooperative)
           : is_flow(s.model)      ? flow_json(s, flow)
                                   : pairs_json(s, pairs));
  r.update(training_json(s));
  return r;
}

/// What decides the result of a training, as option → value, for checkpoints.
[[nodiscard]] inline std::map<std::string, std::string> decisive_settings(const TrainSettings& s,
                                                                          const std::string& data) {
  sheafnn::ModelOptions model = s.options;
  sheafnn::FlowOptions flow = s.flow.options;
  for (const auto field : {&model.edge_weights, &model.separate_encoder, &flow.edge_weights, &flow.separate_encoder}) {
    *field = false;  // as texts below
  }
  nlohmann::ordered_json json = option_json(s, {model, s.cooperative.options, flow});
  if (!is_cooperative(s.model)) {
    json["edge_weights"] = s.edge_weights;
    json["separate_encoder"] = s.separate_encoder;
  }
  json["sheaf_lr"] = "auto";
  if (s.train.sheaf_learning_rate) json["sheaf_lr"] = *s.train.sheaf_learning_rate;
  json["model"] = s.model;
  json["maps"] = s.maps;
  json["data"] = data;
  for (const char* free : {"epochs", "patience", "seed", "threads", "device"}) json.erase(free);
  // Older trainings say whether rows are scaled to sum 1.
  if (const std::string treatment = json["feature_treatment"]; treatment == "rows" || treatment == "none") {
    json["normalise_features"] = treatment == "rows";
    json.erase("feature_treatment");
  }
  // Options that came later: at their default they are left out, so that older trainings can go on.
  const nlohmann::ordered_json later = {{"sheaf_lr", 0.0},
                                        {"learner", "concatenation"},
                                        {"sheaf_activation", "tanh"},
                                        {"spread", "published"},
                                        {"sample_loss", "expected"},
                                        {"layer_norm", false},
                                        {"readout_layers", 1},
                                        {"directed", false},
                                        {"in_degree_diagonal", false},
                                        {"batch_norm", false},
                                        {"layer_learners", false},
                                        {"use_edges", true}};
  for (const auto& [key, value] : later.items()) {
    if (json.contains(key) && json[key] == value) json.erase(key);
  }
  std::map<std::string, std::string> r;
  for (const auto& [key, value] : json.items())
    r[key] = value.is_string() ? value.get<std::string>() : value.dump();
  if (!model.filter.active()) {  // as in folders of versions without filters, which say nothing
    std::erase_if(r, [](const auto& entry) { return entry.first.starts_with("filter"); });
    r["filter"] = "nothing";
  }
  if (!model.residual.initial()) {  // nor of residuals
    std::erase_if(r, [](const auto& entry) { return entry.first.starts_with("residual_"); });
    r["residual_form"] = "nothing";
  }
  return r;
}

}  // namespace programs
