/// \file
/// --search of the program train: the settings of sheafnn::search_settings() as settings of the program, and the table of
/// what was tried.
#pragma once

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <sheafnn/bsnn/search_settings.hpp>
#include <sheafnn/core/errors.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "models/interruption.hpp"
#include "models/model_search.hpp"
#include "models/progress.hpp"
#include "models/train_settings.hpp"

namespace programs {

/// "90", "90s", "1.5m" or "1h" as seconds.
///
/// \throws std::invalid_argument  anything else, or no time at all
[[nodiscard]] inline double parse_seconds(const char* option, const std::string& text) {
  double seconds = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, seconds);
  const std::string unit(rest, end);
  const double scale = unit.empty() || unit == "s" ? 1 : unit == "m" ? 60 : unit == "h" ? 3600 : 0;
  sheafnn::require(error == std::errc() && scale > 0 && seconds > 0 && std::isfinite(scale * seconds), option,
                   text, "expected a time above 0, as in 60, 60s, 5m or 1h");
  return scale * seconds;
}

/// Checks that nothing was given that a search cannot do.
///
/// \throws std::invalid_argument  naming the option and its value
inline void refuse_beside_search(const CLI::App& app, const TrainSettings& s) {
  for (const char* option : {"--preset", "--checkpoint", "--resume"}) {
    if (app.get_option(option)->count() == 0) continue;
    const bool preset = std::string_view(option) == "--preset";
    sheafnn::throw_invalid_argument(
        option, app.get_option(option)->as<std::string>(),
        preset ? "cannot be combined with --search, whose settings have options of their own"
               : "cannot be combined with --search, which prints the options of its winner; give these to a "
                 "training with checkpoints");
  }
  sheafnn::require(s.device == "cpu", "--device", s.device, "a search (--search) trains on the CPU only");
}

/// A setting of the list with what the command line says, which it keeps.
struct SearchedSettings {
  const sheafnn::SearchSetting* setting = nullptr;
  TrainSettings settings;
  std::string options;  ///< the setting's options, as the command line has them
};

/// \param app  after parsing
/// \throws std::invalid_argument  an option of the command line that the setting's network does not have
[[nodiscard]] inline SearchedSettings with_setting(const CLI::App& app, const TrainSettings& given,
                                                   const sheafnn::SearchSetting& setting, sheafnn::StopOn stop_on,
                                                   sheafnn::Index features) {
  SearchedSettings r{&setting, given, "--preset none"};
  TrainSettings& s = r.settings;
  const auto set = [&](const std::string& option, auto& field, const auto& value) {
    if (is_given(app, option)) return;
    field = value;
    r.options += sheafnn::detail::concat(" ", option, " ", shown(field));
  };
  const auto set_flag = [&](const char* option, const char* off, bool& field, bool value) {
    if (is_given(app, option)) return;
    if (field != value) r.options += sheafnn::detail::concat(" ", value ? option : off);
    field = value;
  };
  const bool cooperative = is_cooperative(setting.model);
  set("--model", s.model, setting.model);
  if (!cooperative) set("--maps", s.maps, setting.maps);
  set("--stalk-dim", s.stalk_dimension, setting.stalk_dimension);
  with_network(s, [&](auto& o) {
    set("--feature-treatment", o.feature_treatment, setting.features);
    if constexpr (requires { o.layers = 1; }) set("--layers", o.layers, setting.layers);
    set("--channels", o.channels, setting.channels);
  });
  if (cooperative) {
    set("--node-learner", s.cooperative().learner, setting.node_learner);
    if (is_bayesian(setting.model)) {
      set_flag("--layer-learners", "--no-layer-learners", s.cooperative().layer_learners, true);
    }
  } else {
    set_flag("--add-lp", "--no-add-lp", s.pairs().add_lp, setting.add_lp);
    set_flag("--add-hp", "--no-add-hp", s.pairs().add_hp, setting.add_hp);
    set_flag("--edges", "--no-edges", s.pairs().use_edges, setting.use_edges);
    set("--normalisation", s.pairs().normalisation, setting.normalisation);
    if (setting.filter != sheafnn::PolynomialBasis::none) set("--filter", s.pairs().filter.basis, setting.filter);
    if (setting.learner != sheafnn::LearnerInput::concatenation)
      set("--learner", s.pairs().learner, setting.learner);
  }
  sheafnn::TrainOptions train;
  setting.training.set(train, features, cooperative);
  train.stop_on = stop_on;
  const auto set_training = [&](const sheafnn::Option& option, auto& mine, const auto& value,
                                const auto& initial) {
    const bool idle = std::string_view(option.key) == "kl_maximum" && !is_bayesian(setting.model);
    if (value != initial && !idle) set(flag_of(option), mine, value);
  };
  for_each_option(set_training, s.train, train,
                  static_cast<const sheafnn::TrainOptions&>(sheafnn::TrainOptions()));
  resolve_options(app, s);
  return r;
}

/// What a search has to choose from, and what it leaves out.
struct SearchList {
  std::vector<SearchedSettings> settings;
  std::vector<SearchedModel> models;  ///< the same settings
  std::vector<LeftOut> left_out;
};

/// \param app  after parsing
/// \throws std::invalid_argument  no setting is left, with the reason of the first
[[nodiscard]] inline SearchList search_list(const CLI::App& app, const TrainSettings& given,
                                            const sheafnn::Dataset& data) {
  SearchList list;
  const sheafnn::StopOn stop_on = sheafnn::search_stop_on(data);
  const auto asked = [&](const char* option, const auto& value, const auto& any) {
    return app.get_option(option)->count() > 0 ? value : any;
  };
  const std::string any, model = asked("--model", given.model, any), maps = asked("--maps", given.maps, any);
  const int stalk_dimension = asked("--stalk-dim", given.stalk_dimension, 0);
  list.left_out = for_settings("--search", given.search, [&](const sheafnn::SearchSetting& setting) {
    const std::string_view other = other_part(setting, model, maps, stalk_dimension);
    if (!other.empty()) throw std::invalid_argument(sheafnn::detail::concat("another --", other));
    if (!setting.use_edges && !given.sheaf.empty()) throw std::invalid_argument("--sheaf: it has no sheaf");
    SearchedSettings one = with_setting(app, given, setting, stop_on, data.feature_count());
    TrainSettings& s = one.settings;
    set_sizes(s, data.feature_count(), data.class_count);
    const ModelEntry& entry = find_model(s.model, s.maps, s.stalk_dimension);
    const NetworkOptions& network = s.networks;
    entry.check(network, is_bayesian(s.model));
    list.models.push_back({std::string(setting.name), &entry, is_bayesian(s.model), network, s.train});
    list.settings.push_back(std::move(one));
  });
  return list;
}

/// The table of a search, the best first, as text or as JSON.
inline void print_search(const SearchList& list, const sheafnn::SearchResult& result) {
  std::printf("%-26s  %-48s  round  splits  epochs   validation    loss  seconds\n", "setting", "network");
  for (const std::size_t i : result.ranking) {
    const sheafnn::SearchRow& row = result.rows[i];
    std::printf("%-26s  %-48s  ", row.name.c_str(), network_text(*list.settings[i].setting).c_str());
    if (!row.error.empty()) {
      std::printf("%5td  %s\n", row.round, row.error.c_str());
    } else if (row.splits == 0) {
      std::printf("%5s  no time for it\n", "-");
    } else {
      std::printf("%5td  %6td  %6td  %5.1f%% ± %-4.1f  %6.3f  %7.1f%s\n", row.round, row.splits, row.epochs,
                  100 * row.score, 100 * row.deviation, row.loss, row.seconds,
                  i == result.winner() ? "  chosen" : "");
    }
  }
  for (const LeftOut& one : list.left_out) {
    std::printf("%-26s  left out: %s\n", std::string(one.name).c_str(), one.why.c_str());
  }
}

[[nodiscard]] inline nlohmann::ordered_json search_json(const SearchList& list,
                                                        const sheafnn::SearchResult& result) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array(), left_out = nlohmann::ordered_json::array();
  for (const std::size_t i : result.ranking) {
    const sheafnn::SearchRow& row = result.rows[i];
    nlohmann::ordered_json one = {{"name", row.name},
                                  {"options", list.settings[i].options},
                                  {"round", row.round},
                                  {"splits", row.splits},
                                  {"epochs", row.epochs},
                                  {"validation_score", row.score},
                                  {"validation_std", row.deviation},
                                  {"validation_loss", row.loss},
                                  {"seconds", row.seconds}};
    if (!row.error.empty()) one["error"] = as_utf8(row.error);
    rows.push_back(std::move(one));
  }
  for (const LeftOut& one : list.left_out) left_out.push_back({{"name", one.name}, {"reason", one.why}});
  return {{"chosen", result.rows[result.winner()].name},
          {"complete", result.complete},
          {"seconds", result.seconds},
          {"settings", rows},
          {"left_out", left_out}};
}

/// Searches, prints the table, and puts the settings of the winner into `s`.
///
/// \param splits  that are chosen by --splits
/// \returns the table for the report
/// \throws as sheafnn::search(), search_list() and parse_seconds()
[[nodiscard]] inline nlohmann::ordered_json run_search(const CLI::App& app, TrainSettings& s,
                                                       const sheafnn::Dataset& data,
                                                       const std::vector<sheafnn::Split>& chosen) {
  const double seconds = parse_seconds("--search", s.search);
  const std::vector<sheafnn::Split> splits = sheafnn::search_splits(data, chosen, s.train.seed);
  const SearchList list = search_list(app, s, data);
  std::printf("search: %zu settings, at most %g s; %zu splits%s without their test nodes\n", list.settings.size(),
              seconds, splits.size(), chosen.size() == 1 ? ", divided anew," : "");
  ProgressBar bar(1, 1);
  const sheafnn::SearchResult result =
      search_models(list.models, data, splits,
                    {.seconds = seconds,
                     .interrupted = [] { return Interruption::signal() != 0; },
                     .on_training =
                         [&](const std::string& name, sheafnn::Index round, std::size_t left) {
                           bar.show_text(
                               sheafnn::detail::concat("search: round ", round, ", ", left, " settings, ", name));
                         }});
  bar.clear();
  print_search(list, result);
  const SearchedSettings& best = list.settings[result.winner()];
  const char* end = result.complete ? "complete" : Interruption::signal() != 0 ? "interrupted" : "out of time";
  std::printf("%s after %.1f s: %s, the same as %s\n\n", end, result.seconds,
              result.rows[result.winner()].name.c_str(), best.options.c_str());
  s = best.settings;
  s.preset = "none";
  return search_json(list, result);
}

}  // namespace programs
