/// \file
/// Searches among types of models: settings of the list and presets of types it does not know, trainings that go on where a
/// round before ended, and choices that the labels of test nodes do not change.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "shared_networks.hpp"
#include "sheafnn/bsnn/search_models.hpp"
#include "sheafnn/graph/synthetic.hpp"

namespace test_search_models {
namespace {

using sheafnn::Dataset;
using sheafnn::Diagonal;
using sheafnn::Identity;
using sheafnn::Index;
using sheafnn::Nsd;
using sheafnn::TrainOptions;
using sheafnn::TrainResult;

Dataset graph(Index splits) {
  return sheafnn::synthetic({.nodes = 60, .classes = 3, .features = 12, .degree = 3, .splits = splits});
}

constexpr double unlimited = 1e9;

/// What a search came to, without its times.
std::vector<std::pair<std::string, double>> figures(const sheafnn::SearchResult& result) {
  std::vector<std::pair<std::string, double>> r;
  for (const std::size_t i : result.ranking) r.emplace_back(result.rows[i].name, result.rows[i].score);
  for (const sheafnn::SearchRow& row : result.rows) r.emplace_back(row.name, row.loss);
  return r;
}

auto searched(const Dataset& data) {
  return sheafnn::search<Nsd<Diagonal<2>>, Nsd<Identity<3>>>(data, {.seconds = unlimited},
                                                             {.seed = 3, .threads = 1});
}

}  // namespace

TEST_CASE("a search among types") {
  const Dataset data = graph(1);
  const auto found = searched(data);
  CHECK(found.result.complete);
  // The settings of the list that are of a type, and a preset for the other one.
  Index listed = 0;
  for (const sheafnn::SearchSetting& setting : sheafnn::search_settings()) {
    const bool own = setting.model == "nsd" && setting.maps == "diagonal" && setting.stalk_dimension == 2;
    if (!own) continue;
    ++listed;
    CHECK(std::any_of(found.settings.begin(), found.settings.end(),
                      [&](const auto& one) { return one.name == setting.name && one.type == 0; }));
  }
  REQUIRE(listed > 0);
  REQUIRE(static_cast<Index>(found.settings.size()) == listed + 1);
  CHECK(found.settings.back().name == "nsd, preset");
  CHECK(found.settings.back().type == 1);
  const sheafnn::SearchRow& best = found.result.rows[found.result.winner()];
  CHECK(best.splits == sheafnn::search_divisions);
  CHECK(best.name == found.winner().name);
  // The winner's type and options, and what a training of them comes to.
  Index visits = 0;
  found.visit([&]<class Model>(const typename Model::Options& options, const TrainOptions& training) {
    ++visits;
    CHECK((found.winner().type == 0) == std::is_same_v<Model, Nsd<Diagonal<2>>>);
    CHECK(options.features == data.feature_count());
    CHECK(options.classes == 3);
    CHECK(training.seed == 3);
    Model model(options, training.seed);
    TrainOptions own = training;
    own.epochs = 3;
    CHECK_NOTHROW(static_cast<void>(sheafnn::train(model, data, data.splits[0], own)));
  });
  CHECK(visits == 1);
}

TEST_CASE("the labels of test nodes change no choice") {
  for (const Index splits : {1, 2}) {
    Dataset data = graph(splits);
    const auto before = figures(searched(data).result);
    std::vector<std::int32_t> always = data.splits[0].test;  // in no other set of any split
    for (const sheafnn::Split& split : data.splits) {
      std::erase_if(always,
                    [&](std::int32_t u) { return !std::binary_search(split.test.begin(), split.test.end(), u); });
    }
    REQUIRE(!always.empty());
    for (const std::int32_t u : always) {
      std::int32_t& label = data.labels[static_cast<std::size_t>(u)];
      label = (label + 1) % 3;
    }
    CHECK(figures(searched(data).result) == before);
  }
}

TEST_CASE("a training of a later round goes on where the one before ended") {
  const Dataset data = graph(1);
  const std::vector<sheafnn::Split> splits = sheafnn::search_splits(data, data.splits);
  Index epochs = 0;
  TrainOptions options{.epochs = 40, .patience = 1000, .threads = 1};
  options.on_epoch = [&](const sheafnn::EpochReport&) { ++epochs; };
  const auto run = [&](const sheafnn::Split& split, const TrainOptions& own) {
    CHECK(split.test.empty());
    Nsd<Diagonal<2>> model({.features = data.feature_count(), .layers = 2, .classes = 3}, 1);
    return sheafnn::train(model, data, split, own);
  };
  const auto never = [] { return false; };
  const sheafnn::SearchCandidate candidate = sheafnn::train_candidate("a", splits, options, run);
  const auto first = candidate.train({1, 10, never});
  CHECK(epochs == 10);
  const auto second = candidate.train({1, 40, never});
  CHECK(epochs == 40);
  REQUIRE((first && second));
  CHECK(!second->finished);
  CHECK(second->epochs == 40);
  // As if it had been one.
  const auto whole = sheafnn::train_candidate("a", splits, options, run).train({1, 40, never});
  REQUIRE(whole);
  CHECK(second->score == whole->score);
  CHECK(second->loss == whole->loss);
  // Out of time it ends between two epochs and returns nothing; so it does where on_epoch says so.
  epochs = 0;
  CHECK(!candidate.train({0, 40, [&] { return epochs >= 2; }}));
  CHECK(epochs <= 3);
  options.on_epoch = [](const sheafnn::EpochReport&) { return sheafnn::EpochAction::stop; };
  CHECK(!sheafnn::train_candidate("a", splits, options, run).train({0, 40, never}));
}

}  // namespace test_search_models
