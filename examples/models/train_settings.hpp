/// \file
/// The options of the program train, and the settings that they make.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <sheafnn/bsnn/any_target_loss.hpp>
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
#include <tuple>
#include <utility>
#include <vector>

#include "models/data_options.hpp"
#include "models/idle_options.hpp"
#include "models/option_flags.hpp"
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
  NetworkOptions networks;  ///< of every kind
  sheafnn::TrainOptions train;
  bool batch_norm = false;       ///< --batch-norm
  bool projection = false;       ///< --projection
  std::string loss = "squared";  ///< of --target
  double coverage = 0.9;         ///< of intervals for numbers
  std::string splits, seeds, parallel = "none", device = "cpu";
  std::string report, save, sheaf, predictions;
  bool history = false;
  std::string checkpoint, resume;
  std::string search;  ///< the time limit; empty: no limit

  [[nodiscard]] auto& pairs() { return std::get<sheafnn::ModelOptions>(networks); }
  [[nodiscard]] const auto& pairs() const { return std::get<sheafnn::ModelOptions>(networks); }
  [[nodiscard]] auto& cooperative() { return std::get<sheafnn::CooperativeOptions>(networks); }
  [[nodiscard]] const auto& cooperative() const { return std::get<sheafnn::CooperativeOptions>(networks); }
  [[nodiscard]] const auto& flow() const { return std::get<sheafnn::FlowOptions>(networks); }
};

/// Calls f with the options of the network that is trained.
template <class Settings, class F>
decltype(auto) with_network(Settings& s, const F& f) {
  return with_options_of(s.model, s.networks, f);
}

/// The options of all kinds for one training. \param seed  of the training, which determines the values of --projection
[[nodiscard]] inline NetworkOptions networks_of(const TrainSettings& s, std::uint64_t seed) {
  NetworkOptions r = s.networks;
  if (s.projection) {
    auto& options = std::get<sheafnn::HypergraphOptions>(r);
    options.projection = sheafnn::random_projection(options.channels, seed);
  }
  return r;
}

/// Where the command line has the options of every model, and the options of networks of layers.
inline constexpr const char* model_group = "Model";
/// The group of the options of a kind.
[[nodiscard]] inline std::string group_of(const sheafnn::NetworkKind& kind) {
  return kind.options == sheafnn::ModelOptions::kind.options ? model_group : std::string(kind.title);
}

/// "bsnn or nsd, bcsnn or csnn, …".
[[nodiscard]] inline std::string kinds_text() {
  std::string text;
  for (const sheafnn::NetworkKind& kind : sheafnn::network_kinds) {
    text += sheafnn::detail::concat(text.empty() ? "" : ", ", kind.bayesian, " or ", kind.deterministic);
  }
  return text;
}
/// The models of a group of options, and what their maps belong to: "csnn and bcsnn: maps per node".
[[nodiscard]] inline std::string group_text(const std::string& group) {
  std::string text;
  for (const sheafnn::NetworkKind& kind : sheafnn::network_kinds) {
    if (group_of(kind) != group) continue;
    text += sheafnn::detail::concat(text.empty() ? "" : "; ", kind.deterministic, " and ", kind.bayesian, ": ",
                                    kind.maps);
  }
  return text;
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
                 "options for a kind of graph: " + joined(names_of(sheafnn::Preset())) +
                     ", none, or auto (by size and homophily); the options below override it; "
                     "--model NAME --help shows its values")
      ->capture_default_str()
      ->check(one_of({"auto", "none", "small", "citation", "heterophilic", "large", "dense"}));
  auto* model = app.add_option_group(model_group, group_text(model_group));
  model->add_option("--model", s.model, "network, Bayesian or deterministic: " + kinds_text())
      ->capture_default_str()
      ->check(one_of({model_names.begin(), model_names.end()}).description("NAME"));  // the help lists the names
  model->add_option("--maps", s.maps, "restriction maps: diagonal, special-orthogonal, general-linear or identity")
      ->capture_default_str()
      ->check(one_of({maps_names.begin(), maps_names.end()}));
  model->add_option("--stalk-dim", s.stalk_dimension, "stalk dimension, 1 to 5")
      ->capture_default_str()
      ->check(between<sheafnn::Index>(1, 5));
  const auto all = [](std::string_view) { return true; };
  add_flags(app, *model, s.pairs(), all);
  model
      ->add_flag_callback(
          "--normalise-features,!--no-normalise-features", [] {},
          "the same as --feature-treatment rows; --no-normalise-features: none")
      ->each([&s](const std::string& text) {
        bool to_one = false;
        CLI::detail::lexical_cast(text, to_one);
        using enum sheafnn::FeatureTreatment;
        for_each_kind(s.networks, [&](auto& options) { options.feature_treatment = to_one ? rows : none; });
      })
      ->excludes(app.get_option("--feature-treatment"));
  sheafnn::for_each_kind(s.networks, [&]<class Options>(Options& options) {
    if constexpr (!std::same_as<Options, sheafnn::ModelOptions>) {
      const std::string group = group_of(Options::kind);
      auto* own = app.add_option_group(group, group_text(group));
      add_flags(app, *own, options, all);
      if constexpr (std::same_as<Options, sheafnn::CooperativeOptions>) {
        own->add_flag("--batch-norm", s.batch_norm,
                      "apply batch norm over the nodes after each layer (default: off)");
      }
      if constexpr (std::same_as<Options, sheafnn::HypergraphOptions>) {
        own->add_flag(
            "--projection", s.projection,
            "with --laplacian nonlinear: project discrepancies on numbers that the seed draws (default: off)");
      }
    }
  });
  auto* train = app.add_option_group("Training");
  add_flags(app, *train, s.train, [](std::string_view key) { return key != "checkpoint_every"; });
}

/// Adds --every to a group.
inline void add_checkpoint_every(CLI::App& app, CLI::App& group, TrainSettings& s) {
  add_flags(app, group, s.train, [](std::string_view key) { return key == "checkpoint_every"; });
}

/// All options of the program train.
inline void add_options(CLI::App& app, TrainSettings& s) {
  add_training_options(app, s);
  add_type_options(app, s.data);
  const auto one_of = [](std::vector<std::string> names) { return CLI::IsMember(std::move(names)); };
  auto* run = app.add_option_group("Run");
  run->add_option("--splits", s.splits, "splits to train on, e.g. 0-9 or 0,3,7 (default: all)");
  auto* targets = app.add_option_group("Targets", "numbers to learn in place of classes");
  auto* target = targets->add_option_function<std::string>(
      "--target", [&s](const std::string& words) { s.data.text.targets = parse_targets(words); },
      "comma-separated columns of nodes.csv, or keys of an .npz file, whose numbers are learned in place of "
      "classes; empty fields are unknown");
  target->excludes(app.get_option("--label"));
  const auto losses = names_of(sheafnn::TargetLoss());
  targets
      ->add_option(
          "--loss", s.loss,
          "loss of the numbers: " + joined(losses) +
              "; gaussian also learns each node's variance, multilabel takes numbers 0 and 1, ordinal takes one "
              "column")
      ->capture_default_str()
      ->check(one_of({losses.begin(), losses.end()}))
      ->needs(target);
  targets
      ->add_option("--coverage", s.coverage,
                   "share of the numbers that conformal intervals are to contain, between 0 and 1")
      ->capture_default_str()
      ->needs(target);
  run->add_option("--search", s.search,
                  "try a dozen settings (networks, maps, depths) for this time, e.g. 60s, 5m or 1h; then train "
                  "the setting with the best validation score");
  run->add_option("--seeds", s.seeds, "train on every split with each of these seeds, e.g. 0-9 (default: --seed)")
      ->excludes(app.get_option("--seed"));
  run->add_option(
         "--device", s.device,
         "device to train on: cpu, cuda or cuda:NUMBER; a CUDA device trains all splits and seeds side by side")
      ->capture_default_str();
  run->add_option("--parallel", s.parallel,
                  "trainings that run side by side: none, or splits, each on one thread with the same results; "
                  "--threads then limits their number")
      ->capture_default_str()
      ->check(CLI::IsMember({"none", "splits"}));
  auto* report = run->add_option("--report", s.report, "write the results to this JSON file");
  run->add_flag("--history", s.history, "with --report: write the losses and accuracies of every epoch too")
      ->needs(report);
  run->add_option("--save", s.save,
                  "write the trained model to this .safetensors file; several splits give files NAME-SPLIT, "
                  "several seeds files NAME-SPLIT-SEED");
  run->add_option("--sheaf", s.sheaf,
                  "write the model's sheaf, features and predictions to this .npz file, with names as for --save");
  run->add_option(
      "--predictions", s.predictions,
      "write the class probabilities and uncertainties of all nodes and all trainings to this .npz file");
  run->add_option("--checkpoint", s.checkpoint,
                  "write the state of every training to this folder, every few epochs and when you interrupt it");
  add_checkpoint_every(app, *run, s);
  run->add_option("--resume", s.resume,
                  "resume the trainings in this folder with the options they began with; you may change "
                  "--epochs, --patience, --threads and the files to write");
}

/// Sets the options of the network and of its training that the command line does not, as a preset has them. The learner of
/// maps of nodes is one choice with its number of layers, the norm of a cooperative network another with batch norm.
inline void set_network(const CLI::App& app, TrainSettings& s, sheafnn::Preset preset, sheafnn::Index features,
                        sheafnn::TrainOptions& train) {
  with_network(s, [&]<class Options>(Options& mine) {
    Options model;
    model.features = features;
    if constexpr (std::same_as<Options, sheafnn::ModelOptions>)
      model.layer = mine.layer;  // some have no fixed filters
    if constexpr (!Options::kind.on_hypergraphs) sheafnn::apply(preset, model, is_bayesian(s.model), train);
    if constexpr (has_node_learner<Options>) {
      const char* flag =
          std::same_as<Options, sheafnn::CooperativeOptions> ? "--node-learner" : "--bundle-learner";
      if (is_given(app, flag) && mine.learner != model.learner) {
        model.learner_layers = mine.learner_layers;
        model.learner_width = mine.learner_width;
      }
    }
    if constexpr (std::same_as<Options, sheafnn::CooperativeOptions>) {
      if (mine.separate_encoder) model.layer_learners = mine.layer_learners;
      if (!is_given(app, "--layer-norm") && !s.batch_norm) mine.norm = model.norm;
    }
    set_others(app, model, mine);
  });
}

/// How deep the network is, in words.
[[nodiscard]] inline std::string depth(const TrainSettings& s) {
  using sheafnn::detail::concat;
  return is_flow(s.model) ? concat("to time ", s.flow().time, " by ", to_string(s.flow().method))
                          : concat(with_network(s, [](const auto& o) { return o.layers; }), " layers");
}
/// Its feature channels.
[[nodiscard]] inline sheafnn::Index channels(const TrainSettings& s) {
  return with_network(s, [](const auto& o) { return o.channels; });
}
/// Does the network learn maps of a graph?
[[nodiscard]] inline bool has_learned_sheaf(const TrainSettings& s) {
  if (!has_sheaf_use(s.model)) return false;
  return !has_family(s.model) || (s.maps != "identity" && s.pairs().use_edges);
}
/// Are the layers of this form?
[[nodiscard]] inline bool has_layers(const TrainSettings& s, sheafnn::LayerForm form) {
  return has_layers(s.model, s.pairs(), form);
}
/// Does the network read which arcs are listed?
[[nodiscard]] inline bool is_directed(const TrainSettings& s) {
  return has_layers(s, sheafnn::LayerForm::directed) || (is_cooperative(s.model) && s.cooperative().directed);
}

/// The preset of the settings for a graph, if there is one; hypergraphs have none. Sets what the command line does not, after
/// resolve_options().
///
/// \param app  after parsing
/// \throws std::invalid_argument  a preset for a hypergraph
inline std::optional<sheafnn::Preset> apply_preset(const CLI::App& app, TrainSettings& s, const NodeData& nodes) {
  if (sheafnn::is_on_hypergraphs(s.model)) {
    sheafnn::require(s.preset == "none" || s.preset == "auto", "--preset", s.preset,
                     "presets are for graphs; the model " + s.model + " has none");
    return {};
  }
  if (s.preset == "none") return {};
  const sheafnn::Dataset& data = nodes.on<sheafnn::Graph>();
  const sheafnn::Preset preset = s.preset == "auto" ? sheafnn::choose_preset(data, data.splits.front())
                                                    : sheafnn::parse_name<sheafnn::Preset>("--preset", s.preset);
  sheafnn::TrainOptions train;
  set_network(app, s, preset, data.feature_count(), train);
  // The batch engine stops on loss or accuracy.
  if (!s.device.starts_with("cuda") && data.target_names.empty()) {
    train.stop_on = sheafnn::choose_stop_on(data, preset);
  }
  set_others(app, train, s.train);
  return preset;
}

/// Sets how many features networks of all kinds read, and their classes.
inline void set_sizes(TrainSettings& s, sheafnn::Index features, sheafnn::Index classes) {
  for_each_kind(s.networks, [&](auto& options) {
    options.features = features;
    options.classes = classes;
  });
}

/// Gives the network the names of the graph's types and their stalks.
///
/// \throws std::invalid_argument  a network without types whose given maps do not follow from types either, or stalks of types
///                                that the data do not have
inline void set_types(TrainSettings& s, const NodeData& data) {
  with_network(s, [&](auto& options) {
    if constexpr (requires { options.edge_types; }) {
      if (!sheafnn::has_given_sheaf(s.model)) {
        options.edge_types = data.edge_type_names;
        options.node_types = data.node_type_names;
        options.stalks = parse_stalks("--stalks", s.data.stalks, data.node_type_names, s.stalk_dimension);
        if (s.data.edge_stalks.empty()) return;
        options.edge_stalks =
            parse_stalks("--edge-stalks", s.data.edge_stalks, data.edge_type_names, s.stalk_dimension);
        return;
      }
    }
    const std::string no_types = "the model " + s.model + " has no types";
    sheafnn::require(data.node_type_names.empty(), "--stalks", "given", no_types);
    sheafnn::require(s.data.edge_stalks.empty(), "--edge-stalks", "given", no_types);
    if (data.edge_type_names.empty()) return;
    sheafnn::require(!s.data.given_sheaf.empty(), "--edge-types", "given", no_types);
    sheafnn::require(sheafnn::io::reads_edge_types(s.data.given_sheaf), "--edge-types", "given",
                     s.data.given_sheaf + " has no table of maps, or labels of its own");
  });
}

/// Gives the network the plan of these features, so that not every training makes it.
inline void set_feature_plan(TrainSettings& s, const sheafnn::NodeFeatures& features) {
  with_network(s, [&](auto& o) { o.feature_plan = sheafnn::fit_features(features, o.feature_treatment); });
}

/// For --help: of the options of a network that presets set, the value of each preset and that without one.
inline HelpFormatter::Defaults preset_defaults(const std::string& model) {
  const auto values = [&](std::optional<sheafnn::Preset> preset) {
    TrainSettings s;
    s.model = model;
    HelpFormatter::Defaults r;
    const auto add = [&](const sheafnn::Option& option, const auto& field) { r[flag_of(option)] = shown(field); };
    with_network(s, [&](auto& o) {
      if constexpr (!std::remove_cvref_t<decltype(o)>::kind.on_hypergraphs) {
        if (preset) sheafnn::apply(*preset, o, is_bayesian(model), s.train);
      }
      for_each_option(add, o);
      if constexpr (requires { o.norm; }) r["--layer-norm"] = shown(o.norm == sheafnn::FeatureNorm::layer);
    });
    if (preset && !sheafnn::is_on_hypergraphs(model)) s.train.stop_on = sheafnn::choose_stop_on({}, *preset);
    for_each_option(add, s.train);
    return r;
  };
  std::vector<HelpFormatter::Defaults> with;
  for (std::size_t i = 0; i < names_of(sheafnn::Preset()).size(); ++i) with.push_back(values(sheafnn::Preset(i)));
  HelpFormatter::Defaults r;
  for (const auto& [option, plain] : values({})) {
    std::string list;
    bool replaced = false;
    for (std::size_t i = 0; i < with.size(); ++i) {
      const std::string& value = with[i].at(option);
      replaced = replaced || value != plain;
      list += (list.empty() ? "" : ", ") + value + " " + std::string(names_of(sheafnn::Preset())[i]);
    }
    if (replaced) r[option] = "the preset's: " + list + "; " + plain + " without a preset";
  }
  return r;
}

/// Checks that every given option has an effect together with the other options.
///
/// \param app  after parsing
/// \throws std::invalid_argument  naming the option, its value and what it belongs to
inline void refuse_idle_options(const CLI::App& app, const TrainSettings& s) {
  const auto belongs = [&](std::initializer_list<const char*> options, bool is_used, const char* to) {
    for (const char* name : options) {
      const CLI::Option* option = app.get_option(name);
      if (option->count() == 0 || is_used) continue;
      refuse_given(*option, std::string("belongs to ") + to);
    }
  };
  for_each_dependence(s.model, s.maps, s.networks, s.train, belongs);
  belongs({"--given-sheaf"}, sheafnn::has_given_sheaf(s.model),
          ("--model " + given_sheaf_models()).c_str());
  belongs({"--projection"},
          std::get<sheafnn::HypergraphOptions>(s.networks).laplacian == sheafnn::HypergraphLaplacian::nonlinear,
          "--laplacian nonlinear");
  refuse_idle_dataset_options(app, s.dataset, sheafnn::is_on_hypergraphs(s.model));
}

/// Checks that no option of another network was given.
///
/// \param app  after parsing
/// \throws std::invalid_argument  naming the option and its value
inline void refuse_other_options(const CLI::App& app, const TrainSettings& s) {
  std::vector<std::string> allowed = {"--model", "--stalk-dim", "--normalise-features"};
  if (is_cooperative(s.model)) allowed.insert(allowed.end(), {"--layer-norm", "--batch-norm"});
  if (sheafnn::is_on_hypergraphs(s.model)) allowed.emplace_back("--projection");
  if (has_family(s.model)) allowed.emplace_back("--maps");
  const auto allow = [&](const sheafnn::Option& option, const auto&) { allowed.push_back(flag_of(option)); };
  with_network(s, [&](const auto& o) { for_each_option(allow, o); });
  for (const sheafnn::NetworkKind& kind : sheafnn::network_kinds) {
    refuse_others(*app.get_option_group(group_of(kind)), allowed, "not an option of --model " + s.model);
  }
}

/// Checks the options against each other, and the ranges of a training's options.
///
/// \param app  after parsing
/// \throws std::invalid_argument  naming the option, its value and the limit
inline void resolve_options(const CLI::App& app, TrainSettings& s) {
  sheafnn::validate(s.train);
  refuse_other_options(app, s);
  if (is_cooperative(s.model)) {
    sheafnn::require(!s.batch_norm || !s.pairs().layer_norm, "--batch-norm", "true",
                     "layers have one norm; cannot be combined with --layer-norm");
    if (s.batch_norm) s.cooperative().norm = sheafnn::FeatureNorm::batch;
    if (s.pairs().layer_norm) s.cooperative().norm = sheafnn::FeatureNorm::layer;
  }
  if (is_flow(s.model)) sheafnn::layers::validate(s.flow().integration());
  refuse_idle_options(app, s);
  s.maps = maps_of(s.model, s.maps);
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
        sheafnn::throw_invalid_argument(option, text, sheafnn::detail::concat(i, " appears twice"));
      r.push_back(i);
    }
    begin = end + 1;
  }
  return r;
}

/// The options of a network and of its training as reports have them.
[[nodiscard]] inline nlohmann::ordered_json option_json(const TrainSettings& s, const NetworkOptions& resolved) {
  nlohmann::ordered_json r = {{"stalk_dim", s.stalk_dimension}};
  with_options_of(s.model, resolved, [&](const auto& options) {
    r.update(options_json(options));
    if constexpr (requires { options.norm; }) {
      r["layer_norm"] = options.norm == sheafnn::FeatureNorm::layer;
      r["batch_norm"] = options.norm == sheafnn::FeatureNorm::batch;
    }
    if constexpr (requires { options.spread; }) {
      r.erase("spread");
      if (is_bayesian(s.model)) r["spread"] = shown(options.spread);
    }
  });
  if (s.projection) r["projection"] = true;
  r.update(options_json(s.train));
  r.erase("every");
  r["sheaf_lr"] = s.train.sheaf_rate();
  r["device"] = s.device;
  return r;
}

/// What determines the result of a training, as option → value, for checkpoints.
[[nodiscard]] inline std::map<std::string, std::string> decisive_settings(const TrainSettings& s,
                                                                          const std::string& data) {
  nlohmann::ordered_json json = option_json(s, s.networks);
  with_network(s, [&](const auto& o) {
    if constexpr (requires { o.edge_weights; }) {
      json["edge_weights"] = shown(o.edge_weights);
      json["separate_encoder"] = shown(o.separate_encoder);
    }
  });
  if (s.data.text.edge_types) json["edge_types"] = true;
  if (!s.data.stalks.empty()) json["stalks"] = s.data.stalks;
  if (!s.data.edge_stalks.empty()) json["edge_stalks"] = s.data.edge_stalks;
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
  // Options that older training folders lack. They are left out if they have their default, or the default of that
  // version, so that older trainings can be resumed. Of filters and residuals: below.
  const nlohmann::ordered_json then = {{"sheaf_lr", 0.0},
                                       {"sheaf_activation", "tanh"},
                                       {"spread", "published"},
                                       {"layer_norm", false},
                                       {"batch_norm", false}};
  for (const auto& [key, value] : then.items()) {
    if (json.contains(key) && json[key] == value) json.erase(key);
  }
  const auto leave_out = [&]<class Options>(const Options& options) {
    const auto leave = [&](const sheafnn::Option& option, const auto& field, const auto& initial) {
      if (option.since == nullptr || option.field != nullptr || flag_of(option).empty()) return;
      const std::string key = report_name<Options>(option);
      if (!then.contains(key) && key != "feature_treatment" && field == initial) json.erase(key);
    };
    for_each_option(leave, options, static_cast<const Options&>(Options()));
  };
  with_network(s, leave_out);
  leave_out(s.train);
  std::map<std::string, std::string> r;
  for (const auto& [key, value] : json.items())
    r[key] = value.is_string() ? value.get<std::string>() : value.dump();
  if (!s.pairs().filter.active()) {  // as in folders of versions without filters, which say nothing
    std::erase_if(r, [](const auto& entry) { return entry.first.starts_with("filter"); });
    r["filter"] = "nothing";
  }
  if (!s.pairs().residual.initial()) {  // nor of residuals
    std::erase_if(r, [](const auto& entry) { return entry.first.starts_with("residual_"); });
    r["residual_form"] = "nothing";
  }
  if (!has_layers(s, sheafnn::LayerForm::attention)) {  // of attention they say nothing at all
    std::erase_if(r, [](const auto& entry) {
      return entry.first.starts_with("attention_") || entry.first == "random_attention";
    });
  }
  return r;
}

}  // namespace programs
