/// \file
/// The options of a network and of its training: the options of a preset or of a search, overridden by the given
/// options.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <optional>
#include <sheafnn/bsnn/presets.hpp>
#include <sheafnn/bsnn/search_settings.hpp>
#include <sheafnn/bsnn/search_training.hpp>
#include <sheafnn/bsnn/train_options.hpp>
#include <sheafnn/graph/dataset.hpp>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "models/idle_options.hpp"
#include "models/model_search.hpp"
#include "models/option_texts.hpp"
#include "models/registry.hpp"
#include "options.hpp"

namespace python {

using sheafnn::Dataset;
using sheafnn::Index;

/// What begins the name of a setting of a search in place of a preset's.
inline constexpr std::string_view searched = "search: ";

/// The options of a network and of its training: a preset's, and over these the ones that are said.
struct Settings {
  programs::NetworkOptions network;
  sheafnn::TrainOptions training;
  std::string preset;
};

/// Takes the options of types from `said`: `edge_types` (true or false), `stalks` and `edge_stalks`. The last two are numbers
/// in the order of the names that the data have.
///
/// \throws std::invalid_argument  data without types, or another number of dimensions
template <class Options>
void take_types(Options& options, const Dataset& data, Texts& said) {
  const auto take = [&](const char* key, auto& field, std::string_view of, const std::vector<std::string>& names) {
    const auto found = said.find(key);
    if (found == said.end()) return false;
    sheafnn::require(!names.empty(), key, found->second,
                     sheafnn::detail::concat("the data have no types of ", of));
    sheafnn::io::parse_option(key, found->second, field);
    said.erase(found);
    return true;
  };
  sheafnn::require(!said.contains("node_types"), "network", "node_types", "the data decide it");
  bool edges = false;
  take("edge_types", edges, "edges", data.edge_type_names);
  if (edges) options.edge_types = data.edge_type_names;
  if (take("stalks", options.stalks, "nodes", data.node_type_names)) options.node_types = data.node_type_names;
  take("edge_stalks", options.edge_stalks, "edges", data.edge_type_names);
}

/// Sets what `said` has of the options of one kind of network. Learned maps read the features of arcs where there are some.
///
/// \tparam Data  a Dataset or a GraphSet
template <class Options, class Data>
void set_network(Options& options, const Data& data, Texts said, std::string_view model, std::string_view maps) {
  for (const auto& [key, text] : said) sheafnn::require(!is_decided(key), "network", key, "the data decide it");
  if constexpr (requires { options.edge_features; }) {
    if (maps != "identity") options.edge_features = data.graph.arc_feature_count();
  }
  if constexpr (!requires { options.edge_types; }) {
    for (const char* key : {"edge_types", "stalks", "edge_stalks"}) {
      sheafnn::require(!said.contains(key), key, "given",
                       sheafnn::detail::concat("the model ", model, " has no types"));
    }
  } else if constexpr (std::same_as<Data, Dataset>) {
    take_types(options, data, said);
  }
  if (const auto rows = said.find("normalise_features"); rows != said.end()) {  // an older spelling
    const bool given = said.contains("feature_treatment");
    sheafnn::require(!given, "network['normalise_features']", rows->second, "feature_treatment says the same");
    sheafnn::require(rows->second == "true" || rows->second == "false", "network['normalise_features']",
                     rows->second, "must be true or false");
    said["feature_treatment"] = rows->second == "true" ? "rows" : "none";
    said.erase("normalise_features");
  }
  set_options(said, options, "network", model);
}

/// Names of the command line in a text, as Python has them: "--filter jacobi" is "filter jacobi".
[[nodiscard]] inline std::string without_dashes(std::string text, const Texts& keys) {
  for (std::size_t at = 0; (at = text.find("--", at)) != std::string::npos;) {
    const std::string flag = text.substr(at, text.find_first_of(", ", at) - at);
    const auto key = keys.find(flag);
    std::string name = key != keys.end() ? key->second : flag.substr(2);
    std::replace(name.begin(), name.end(), '-', '_');
    text.replace(at, flag.size(), name);
  }
  return text;
}

/// Refuses given options that have no effect, by the rule of the program train.
///
/// \param networks            with the options that the network has in the end; so is `train`
/// \param network, training   the options that were given
/// \throws std::invalid_argument  naming the option, its value and what it belongs to
inline void refuse_idle_options(std::string_view model, std::string_view maps, programs::NetworkOptions& networks,
                                const sheafnn::TrainOptions& train, const Texts& network, const Texts& training) {
  Texts of_network, of_training;  // keys of the flags
  programs::with_options_of(model, networks, [&](const auto& options) {
    for_each_option([&](const sheafnn::Option& o, const auto&) { of_network[programs::flag_of(o)] = o.key; },
                    options);
  });
  for_each_option([&](const sheafnn::Option& o, const auto&) { of_training[programs::flag_of(o)] = o.key; },
                  train);
  const auto refuse = [&](const char* flag, const Texts& keys, const Texts& given, const char* mapping,
                          const char* to) {
    const auto key = keys.find(flag);
    const auto found = key != keys.end() ? given.find(key->second) : given.end();
    if (found == given.end()) return;
    const bool parameter = key->second == "kl_maximum";  // estimators call it kl_weight
    sheafnn::throw_invalid_argument(parameter ? "kl_weight"
                                              : sheafnn::detail::concat(mapping, "['", key->second, "']"),
                                    found->second,
                                    sheafnn::detail::concat("belongs to ", without_dashes(to, of_network)));
  };
  programs::for_each_dependence(model, maps, networks, train,
                                [&](std::initializer_list<const char*> flags, bool is_used, const char* to) {
                                  if (is_used) return;
                                  for (const char* flag : flags) {
                                    refuse(flag, of_network, network, "network", to);
                                    refuse(flag, of_training, training, "training", to);
                                  }
                                });
}
/// The same for a network of layers.
inline void refuse_idle_options(std::string_view model, std::string_view maps,
                                const sheafnn::ModelOptions& options, const sheafnn::TrainOptions& train,
                                const Texts& network, const Texts& training) {
  programs::NetworkOptions networks;
  std::get<sheafnn::ModelOptions>(networks) = options;
  refuse_idle_options(model, maps, networks, train, network, training);
}

/// The setting with a name of search_settings().
///
/// \throws std::invalid_argument  no setting has that name
[[nodiscard]] inline const sheafnn::SearchSetting& find_setting(std::string_view name) {
  for (const sheafnn::SearchSetting& setting : sheafnn::search_settings()) {
    if (setting.name == name) return setting;
  }
  sheafnn::throw_invalid_argument("setting", name, "no setting of a search has that name");
}

/// \tparam Data  has splits
/// \throws std::invalid_argument  no split of that number
template <class Data>
[[nodiscard]] const sheafnn::Split& split_of(const Data& data, std::size_t number) {
  sheafnn::require(number < data.splits.size(), "split", number,
                   sheafnn::detail::concat("the dataset has ", data.splits.size(), " splits"));
  return data.splits[number];
}

/// \param outputs  of a network that is trained on targets; 0: the labels of the data are classes
/// \param preset   a name, "none", or "auto": the preset for data and split; or "search: NAME", a setting of a search
/// \throws std::invalid_argument  no such preset or option, no value of it, or an option without effect
[[nodiscard]] inline Settings make_settings(const Dataset& data, const sheafnn::Split& split,
                                            std::string_view model, std::string_view maps,
                                            const std::string& preset, const Texts& network, const Texts& training,
                                            Index outputs = 0) {
  Settings s;
  s.preset = preset;
  std::optional<sheafnn::Preset> chosen;
  const sheafnn::SearchSetting* setting = nullptr;
  if (preset.starts_with(searched)) {
    setting = &find_setting(std::string_view(preset).substr(searched.size()));
  } else if (preset != "none") {
    chosen = preset != "auto" ? sheafnn::parse_name<sheafnn::Preset>("preset", preset)
             : outputs == 0   ? sheafnn::choose_preset(data, split)
                              : sheafnn::choose_preset(data.graph);
    if (outputs == 0) s.training.stop_on = sheafnn::choose_stop_on(data, *chosen);
    s.preset = to_string(*chosen);
  }
  programs::with_options_of(model, s.network, [&]<class Options>(Options& options) {
    if constexpr (std::same_as<Options,
                               sheafnn::ModelOptions>) {  // presets ask for it: some layers have no fixed filters
      if (const auto layer = network.find("layer"); layer != network.end()) {
        set_options({*layer}, options, "network", model);
      }
    }
    options.features = data.feature_count();
    options.classes = outputs > 0 ? outputs : data.class_count;
    if (setting != nullptr) {
      if constexpr (requires { sheafnn::apply(*setting, options, s.training); }) {
        sheafnn::apply(*setting, options, s.training);
      }
      s.training.stop_on = sheafnn::search_stop_on(data);
    } else if (chosen) {
      if constexpr (!Options::kind.on_hypergraphs) {
        sheafnn::apply(*chosen, options, programs::is_bayesian(model), s.training);
      }
    }
    set_network(options, data, network, model, maps);
  });
  set_options(training, s.training, "training", "a training");
  // A search has settings of every kind, and an option that some of them do not need.
  if (setting == nullptr) refuse_idle_options(model, maps, s.network, s.training, network, training);
  return s;
}

}  // namespace python
