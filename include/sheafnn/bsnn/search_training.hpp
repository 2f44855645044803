/// \file
/// The trainings of a search: splits without test nodes, and a candidate of search() that is trained by train().
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sheafnn/bsnn/search.hpp"
#include "sheafnn/bsnn/train_options.hpp"
#include "sheafnn/graph/dataset.hpp"
#include "sheafnn/graph/feature_treatment.hpp"
#include "sheafnn/graph/features.hpp"
#include "sheafnn/graph/fit_features.hpp"
#include "sheafnn/graph/splits.hpp"

namespace sheafnn {

/// How many divisions a search makes of the training and validation nodes of a single split, the split itself included.
inline constexpr Index search_divisions = 4;

/// The splits on which a search trains: the chosen splits without their test nodes, so no training can score test
/// nodes. If there is a single split, further splits are added, because few validation nodes say little about a
/// setting. They divide its training and validation nodes again, class by class, into sets of about the same sizes.
///
/// \param data  only the labels of training and validation nodes are read
/// \throws std::invalid_argument  no splits, one without training or validation nodes, or one that does not fit the data
[[nodiscard]] inline std::vector<Split> search_splits(const Dataset& data, std::span<const Split> chosen,
                                                      std::uint64_t seed = 0) {
  require(!chosen.empty(), detail::part_name(data, "splits"), 0, "a search needs at least one");
  std::vector<Split> r;
  for (const Split& split : chosen) {
    validate(split, data.node_count(), detail::part_name(data, "split"));
    require(!labelled_nodes(data.labels, split.validation).empty(), detail::part_name(data, "split.validation"),
            "no node with a label", "a search chooses by the validation nodes");
    r.push_back({split.train, split.validation, {}});
  }
  if (r.size() > 1) return r;
  std::vector<std::vector<std::int32_t>> of_class(static_cast<std::size_t>(data.class_count));
  for (const auto* set : {&r[0].train, &r[0].validation}) {
    for (const std::int32_t u : labelled_nodes(data.labels, *set)) {
      of_class.at(static_cast<std::size_t>(data.labels[static_cast<std::size_t>(u)])).push_back(u);
    }
  }
  const double train = static_cast<double>(r[0].train.size());
  const double share = train / (train + static_cast<double>(r[0].validation.size()));
  const auto sizes_of = [&](Index total) -> detail::SplitSizes {
    if (total < 2) return {total, 0, 0};
    const Index rounded = std::lround(share * static_cast<double>(total));
    const Index count = std::clamp<Index>(rounded, 1, total - 1);  // at least one node in both sets
    return {count, total - count, 0};
  };
  // A metric of two classes needs both classes among the validation nodes.
  const auto several_classes = [&](const Split& split) {
    const std::vector<std::int32_t> nodes = labelled_nodes(data.labels, split.validation);
    return std::any_of(nodes.begin(), nodes.end(), [&](std::int32_t u) {
      return data.labels[static_cast<std::size_t>(u)] != data.labels[static_cast<std::size_t>(nodes.front())];
    });
  };
  const bool several = several_classes(r[0]);
  for (Split& division :
       detail::cut_groups(of_class, search_divisions - 1, seed, {true, false, false}, sizes_of)) {
    if (division.validation.empty() || (several && !several_classes(division))) continue;
    r.push_back(std::move(division));
  }
  return r;
}

namespace detail {

/// The feature plan of one table of features, which all trainings of a search share. The table must outlive it.
class PlansOfSearch {
 public:
  explicit PlansOfSearch(const NodeFeatures& features) : features_(features) {}
  /// Makes the plan when it is first asked for.
  ///
  /// \throws std::invalid_argument  as fit_features()
  [[nodiscard]] const FeaturePlan& of(FeatureTreatment treatment) {
    FeaturePlan& plan = plans_[static_cast<std::size_t>(treatment)];
    if (plan.empty()) plan = fit_features(features_, treatment);
    return plan;
  }

 private:
  const NodeFeatures& features_;
  std::array<FeaturePlan, names_of(FeatureTreatment()).size()> plans_;
};

/// The score that a search compares: the metric of stop_on, or the accuracy if stop_on is the loss or the accuracy.
[[nodiscard]] inline SearchScore search_score(const TrainResult& result, StopOn stop_on) {
  return {.score =
              is_metric(stop_on) ? metric_score(stop_on, result.validation_metric) : result.validation_accuracy,
          .loss = result.validation_loss,
          .epochs = static_cast<Index>(result.history.size()),
          .finished = result.stop_reason != StopReason::epochs};
}

}  // namespace detail

/// A candidate of search(). A training with more epochs than the last one on the same split resumes where the last one
/// ended.
///
/// \param splits   from search_splits(); they must outlive the candidate
/// \param options  the search sets `epochs`, `on_checkpoint` and `resume`
/// \param run      run(split, options) trains a new model and returns its TrainResult; the same model every time
/// Unchecked: that the options are in range, which train() checks.
template <class Run>
[[nodiscard]] SearchCandidate train_candidate(std::string name, const std::vector<Split>& splits,
                                              const TrainOptions& options, Run run) {
  const auto states = std::make_shared<std::map<std::size_t, TrainingState>>();
  const auto train = [&splits, options, run,
                      states](const SearchTraining& training) -> std::optional<SearchScore> {
    TrainOptions own = options;
    own.epochs = training.epochs;
    own.on_epoch = [&](const EpochReport& epoch) {
      const bool late = training.out_of_time();
      const EpochAction action = options.on_epoch ? options.on_epoch(epoch) : EpochAction::keep_training;
      return late ? EpochAction::stop : action;
    };
    TrainingState state;
    own.checkpoint_every = training.epochs;
    own.on_checkpoint = [&](const TrainingState& last) { state = last; };
    const auto before = states->find(training.split);
    if (before != states->end()) own.resume = &before->second;
    const TrainResult result = run(splits.at(training.split), own);
    if (result.stop_reason == StopReason::callback) return {};
    const SearchScore score = detail::search_score(result, options.stop_on);
    if (score.finished) {  // search() does not need further epochs
      states->erase(training.split);
    } else {
      (*states)[training.split] = std::move(state);
    }
    return score;
  };
  return {std::move(name), train};
}

/// Searches among settings, each with a `name` and with TrainOptions `training`, as train_candidate() takes them.
///
/// \param splits   from search_splits()
/// \param options  `epochs` is the largest number of epochs of a setting
/// \param run      run(setting, split, options) trains a new model and returns its TrainResult
/// \throws as search() and `run`
template <class Setting, class Run>
[[nodiscard]] SearchResult search_trainings(const std::vector<Setting>& settings, const std::vector<Split>& splits,
                                            SearchOptions options, const Run& run) {
  std::vector<SearchCandidate> candidates;
  options.epochs = 1;
  for (const Setting& setting : settings) {
    options.epochs = std::max(options.epochs, setting.training.epochs);
    candidates.push_back(train_candidate(setting.name, splits, setting.training,
                                         [&](const Split& split, const TrainOptions& training) {
                                           return run(setting, split, training);
                                         }));
  }
  return search(candidates, splits.size(), options);
}

}  // namespace sheafnn
