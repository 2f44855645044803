/// \file
/// A search among models that are chosen at run time, and what it came to as a table and as JSON.
#pragma once

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <sheafnn/bsnn/search.hpp>
#include <sheafnn/bsnn/search_settings.hpp>
#include <sheafnn/bsnn/search_training.hpp>
#include <sheafnn/bsnn/train_options.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/registry.hpp"

namespace programs {

/// A setting as this build trains it.
struct SearchedModel {
  std::string name;
  const ModelEntry* entry = nullptr;
  bool bayesian = true;
  NetworkOptions network;
  sheafnn::TrainOptions train;
};
/// A setting of the list that is not tried.
struct LeftOut {
  std::string_view name;
  std::string why;
};

/// "nsd, diagonal maps, stalk dimension 2"
[[nodiscard]] inline std::string network_text(const sheafnn::SearchSetting& s) {
  const std::string maps = is_cooperative(s.model) ? "" : sheafnn::detail::concat(", ", s.maps, " maps");
  return sheafnn::detail::concat(s.model, maps, ", stalk dimension ", s.stalk_dimension);
}

/// Searches; `options.epochs` is what the settings say.
///
/// \param splits  of sheafnn::search_splits()
/// \throws as sheafnn::search() and the trainings
[[nodiscard]] inline sheafnn::SearchResult search_models(const std::vector<SearchedModel>& models,
                                                         const sheafnn::Dataset& data,
                                                         const std::vector<sheafnn::Split>& splits,
                                                         sheafnn::SearchOptions options) {
  std::vector<sheafnn::SearchCandidate> candidates;
  options.epochs = 1;
  for (const SearchedModel& model : models) {
    options.epochs = std::max(options.epochs, model.train.epochs);
    candidates.push_back(sheafnn::train_candidate(
        model.name, splits, model.train, [&](const sheafnn::Split& split, const sheafnn::TrainOptions& train) {
          sheafnn::TrainResult result;
          static_cast<void>(
              model.entry->train({data, split, model.network, train, model.bayesian, train.seed, {}}, result));
          return result;
        }));
  }
  return sheafnn::search(candidates, splits.size(), options);
}

}  // namespace programs
