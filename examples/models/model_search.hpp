/// \file
/// A search among models that are chosen at run time: which settings of the list are tried, and their trainings.
#pragma once

#include <sheafnn/bsnn/search.hpp>
#include <sheafnn/bsnn/search_settings.hpp>
#include <sheafnn/bsnn/search_training.hpp>
#include <sheafnn/bsnn/train_options.hpp>
#include <sheafnn/core/errors.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "models/registry.hpp"

namespace programs {

/// A setting as this build trains it.
struct SearchedModel {
  std::string name;
  const ModelEntry* entry = nullptr;
  bool bayesian = true;
  NetworkOptions network;
  sheafnn::TrainOptions training;
};
/// A setting of the list that is not tried.
struct LeftOut {
  std::string_view name;
  std::string why;
};

/// "nsd, diagonal maps, stalk dimension 2"
[[nodiscard]] inline std::string network_text(const sheafnn::SearchSetting& s) {
  const std::string maps = has_family(s.model) ? sheafnn::detail::concat(", ", s.maps, " maps") : "";
  return sheafnn::detail::concat(s.model, maps, ", stalk dimension ", s.stalk_dimension);
}

/// What a setting has otherwise than asked for: "model", "maps" or "stalk-dim"; empty: nothing.
///
/// \param model, maps, stalk_dimension  empty or 0: any
[[nodiscard]] inline std::string_view other_part(const sheafnn::SearchSetting& s, std::string_view model,
                                                 std::string_view maps, int stalk_dimension) {
  if (!model.empty() && s.model != model) return "model";
  if (!maps.empty() && has_family(s.model) && s.maps != maps) return "maps";
  return stalk_dimension > 0 && s.stalk_dimension != stalk_dimension ? "stalk-dim" : "";
}

/// Calls use(setting) for the settings of the list; those for which it throws std::invalid_argument are left out.
///
/// \param argument, value  that ask for the search
/// \returns  what is left out
/// \throws std::invalid_argument  that is all of them, with the reason of the first
template <class Value, class Use>
[[nodiscard]] std::vector<LeftOut> for_settings(std::string_view argument, const Value& value, const Use& use) {
  std::vector<LeftOut> left_out;
  for (const sheafnn::SearchSetting& setting : sheafnn::search_settings()) {
    try {
      use(setting);
    } catch (const std::invalid_argument& error) {
      left_out.push_back({setting.name, error.what()});
    }
  }
  if (left_out.size() < sheafnn::search_settings().size()) return left_out;
  sheafnn::throw_invalid_argument(argument, value,
                                  sheafnn::detail::concat("no setting of the list is left; ",
                                                          left_out.front().name, ": ", left_out.front().why));
}

/// Searches; `options.epochs` is what the settings say.
///
/// \param splits  of sheafnn::search_splits()
/// \throws as sheafnn::search() and the trainings
[[nodiscard]] inline sheafnn::SearchResult search_models(const std::vector<SearchedModel>& models,
                                                         const sheafnn::Dataset& data,
                                                         const std::vector<sheafnn::Split>& splits,
                                                         const sheafnn::SearchOptions& options) {
  sheafnn::detail::PlansOfSearch plans(data.features);
  const auto run = [&](const SearchedModel& model, const sheafnn::Split& split,
                       const sheafnn::TrainOptions& training) {
    NetworkOptions network = model.network;
    with_options_of(model.entry->deterministic, network,
                    [&](auto& options) { options.feature_plan = plans.of(options.feature_treatment); });
    sheafnn::TrainResult result;
    static_cast<void>(
        model.entry->train({data, split, network, training, model.bayesian, training.seed, {}}, result));
    return result;
  };
  return sheafnn::search_trainings(models, splits, options, run);
}

}  // namespace programs
