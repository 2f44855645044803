/// \file
/// Successive halving with settings of known scores and a clock of our own; searches among models, which the labels of test
/// nodes do not change.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sheafnn/bsnn/search.hpp"
#include "sheafnn/bsnn/search_settings.hpp"
#include "sheafnn/bsnn/search_training.hpp"
#include "sheafnn/graph/synthetic.hpp"

namespace test_search {
namespace {

using sheafnn::Index;
using sheafnn::SearchCandidate;
using sheafnn::SearchOptions;
using sheafnn::SearchResult;
using sheafnn::SearchScore;
using sheafnn::SearchTraining;

/// Trainings that were made: setting, split, epochs.
using Log = std::vector<std::tuple<std::string, std::size_t, Index>>;

/// A world whose trainings take seconds of a clock that stands still otherwise.
struct World {
  Log log;
  double time = 0;

  /// \param score  score(split, epochs)
  template <class Score>
  SearchCandidate candidate(const std::string& name, double seconds, const Score& score) {
    return {name, [this, name, seconds, score](const SearchTraining& t) -> std::optional<SearchScore> {
              for (int part = 0; part < 10; ++part) {
                if (t.out_of_time()) return {};
                time += seconds / 10;
              }
              log.emplace_back(name, t.split, t.epochs);
              return SearchScore{score(t.split, t.epochs), 1, t.epochs, false};
            }};
  }
  SearchCandidate constant(const std::string& name, double score, double seconds = 1) {
    return candidate(name, seconds, [score](std::size_t, Index) { return score; });
  }
  SearchOptions options(double seconds) {
    return {.seconds = seconds, .epochs = 200, .rounds = 3, .clock = [this] { return time; }};
  }
};

std::vector<std::string> names(const SearchResult& result) {
  std::vector<std::string> r;
  for (const std::size_t i : result.ranking) r.push_back(result.rows[i].name);
  return r;
}

}  // namespace

TEST_CASE("halving: the better half goes on with twice the epochs and splits") {
  World world;
  std::vector<SearchCandidate> candidates;
  for (int i = 0; i < 8; ++i)
    candidates.push_back(world.constant(std::string(1, static_cast<char>('a' + i)), 0.1 * i));
  const SearchResult result = sheafnn::search(candidates, 4, world.options(1e9));
  CHECK(result.complete);
  CHECK(result.rounds == 3);
  CHECK(names(result) == std::vector<std::string>{"h", "g", "f", "e", "d", "c", "b", "a"});
  // 8 settings on 1 split with 50 epochs, 4 on 2 with 100, 2 on 4 with 200.
  std::size_t first = 0, second = 0, third = 0;
  for (const auto& [name, split, epochs] : world.log) {
    if (epochs == 50) first += split == 0 ? 1 : 100;
    if (epochs == 100) second += split < 2 && name >= "e" ? 1 : 100;
    if (epochs == 200) third += split < 4 && name >= "g" ? 1 : 100;
  }
  CHECK(first == 8);
  CHECK(second == 8);
  CHECK(third == 8);
  CHECK(world.log.size() == 24);
  const auto& row = result.rows[result.winner()];
  CHECK(row.name == "h");
  CHECK(row.round == 3);
  CHECK(row.splits == 4);
  CHECK(row.epochs == 200);
  CHECK(row.seconds == doctest::Approx(1 + 2 + 4));
  CHECK(result.rows[0].round == 1);
  CHECK(result.rows[4].round == 2);
  CHECK(result.seconds == doctest::Approx(24));
}

TEST_CASE("halving: means over splits, their deviation, and ties by the loss") {
  World world;
  const std::vector<SearchCandidate> candidates = {
      world.candidate("even", 1, [](std::size_t, Index) { return 0.5; }),
      world.candidate("uneven", 1, [](std::size_t split, Index) { return split % 2 == 0 ? 0.9 : 0.3; })};
  SearchOptions options = world.options(1e9);
  options.rounds = 1;
  const SearchResult result = sheafnn::search(candidates, 4, options);
  CHECK(names(result) == std::vector<std::string>{"uneven", "even"});
  CHECK(result.rows[1].score == doctest::Approx(0.6));
  CHECK(result.rows[1].deviation == doctest::Approx(0.3));
  CHECK(result.rows[0].deviation == doctest::Approx(0));

  const auto tied = [](double loss) {
    return [loss](const SearchTraining& t) { return std::optional(SearchScore{0.7, loss, t.epochs, false}); };
  };
  CHECK(sheafnn::search({{"worse", tied(2)}, {"better", tied(1)}, {"equal", tied(1)}}, 1, options).winner() == 1);
}

TEST_CASE("halving: a training that ended by itself is not made again") {
  Log log;
  const auto candidate = [&](const std::string& name, double score, bool finished) {
    return SearchCandidate{name, [&log, name, score, finished](const SearchTraining& t) {
                             log.emplace_back(name, t.split, t.epochs);
                             return std::optional(SearchScore{score, 1, t.epochs, finished});
                           }};
  };
  const SearchResult result = sheafnn::search({candidate("done", 0.9, true), candidate("goes on", 0.8, false)}, 1,
                                              {.epochs = 8, .rounds = 2});
  CHECK(log == Log{{"done", 0, 4}, {"goes on", 0, 4}});
  CHECK(result.rows[0].round == 2);
  CHECK(result.winner() == 0);

  // Nor is one with as many epochs as the round before.
  log.clear();
  static_cast<void>(sheafnn::search({candidate("a", 0.9, false)}, 1, {.epochs = 2, .rounds = 3}));
  CHECK(log == Log{{"a", 0, 1}, {"a", 0, 2}});
}

TEST_CASE("halving: out of time, what all settings were trained on counts") {
  // Round 1: four settings, one split, a second each. Round 2: two settings, two splits.
  for (const double seconds : {0.5, 3.5, 5.5, 7.5, 100.0}) {
    World world;
    const std::vector<SearchCandidate> candidates = {world.constant("a", 0.1), world.constant("b", 0.2),
                                                     world.constant("c", 0.4),
                                                     // The best with few epochs and on the first split only.
                                                     world.candidate("d", 1, [](std::size_t split, Index epochs) {
                                                       return epochs > 50 && split > 0 ? 0.0 : 0.5;
                                                     })};
    const SearchResult result = sheafnn::search(candidates, 4, world.options(seconds));
    CAPTURE(seconds);
    CHECK(world.time <= seconds + 0.2);
    CHECK(result.complete == (seconds > 50));
    if (seconds < 1) {  // nothing was trained: the first one
      CHECK(result.rows[result.winner()].name == "a");
      CHECK(result.rows[0].splits == 0);
    } else if (seconds < 4) {  // of the three that were trained, c
      CHECK(names(result) == std::vector<std::string>{"c", "b", "a", "d"});
      CHECK(result.rows[3].round == 0);
      CHECK(std::isnan(result.rows[3].score));
    } else if (seconds < 8) {  // one split of round 2 or none
      CHECK(result.rows[result.winner()].name == "d");
      CHECK(result.rows[3].splits == 1);
      CHECK(result.rows[3].epochs == (seconds < 6 ? 50 : 100));
    } else {
      CHECK(result.rows[result.winner()].name == "c");
    }
  }
}

TEST_CASE("halving: the same settings, the same trainings and result, whatever the clock") {
  std::vector<Log> logs;
  for (const double seconds : {1.0, 7.0}) {
    World world;
    std::vector<SearchCandidate> candidates;
    for (int i = 0; i < 5; ++i) {
      const auto score = [i](std::size_t split, Index epochs) {
        return std::sin(3.0 * i + static_cast<double>(split) + 0.01 * static_cast<double>(epochs));
      };
      candidates.push_back(world.candidate(std::to_string(i), seconds * (i + 1), score));
    }
    static_cast<void>(sheafnn::search(candidates, 3, world.options(1e9)));
    logs.push_back(world.log);
  }
  CHECK(logs[0] == logs[1]);
}

TEST_CASE("halving: settings that fail leave the search") {
  const auto fails = [](const SearchTraining&) -> std::optional<SearchScore> {
    throw std::runtime_error("diverged");
  };
  const auto nan = [](const SearchTraining& t) {
    return std::optional(SearchScore{std::numeric_limits<double>::quiet_NaN(), 1, t.epochs, false});
  };
  const auto works = [](const SearchTraining& t) { return std::optional(SearchScore{0.1, 1, t.epochs, false}); };
  const SearchResult result = sheafnn::search({{"fails", fails}, {"nan", nan}, {"works", works}}, 2);
  CHECK(result.complete);
  CHECK(result.winner() == 2);
  CHECK(result.rows[0].error == "diverged");
  CHECK(result.rows[1].error.find("not a number") != std::string::npos);
  CHECK_THROWS_WITH_AS(static_cast<void>(sheafnn::search({{"fails", fails}}, 1)),
                       "all settings of the search failed; fails: diverged", std::runtime_error);
}

TEST_CASE("halving: settings that fail in a later round are behind those that do not") {
  World world;
  const auto fails_later = [&](const std::string& name, double score) -> SearchCandidate {
    return {name, [&world, score](const SearchTraining& t) -> std::optional<SearchScore> {
              world.time += 1;
              if (t.epochs > 50) throw std::runtime_error("diverged");
              return SearchScore{score, 1, t.epochs, false};
            }};
  };
  const std::vector<SearchCandidate> settings = {fails_later("a", 0.9), fails_later("b", 0.8),
                                                 world.constant("c", 0.3), world.constant("d", 0.2)};
  // All that is left after the first round fails.
  const SearchResult all = sheafnn::search(settings, 1, world.options(1000));
  CHECK(names(all).front() == "c");
  CHECK(all.rows[0].error == "diverged");
  // The best one fails, and the time ends before the next one is trained.
  world.time = 0;
  const SearchResult cut = sheafnn::search({fails_later("a", 0.9), world.constant("b", 0.8),
                                            world.constant("c", 0.3), world.constant("d", 0.2)},
                                           1, world.options(5.5));
  CHECK_FALSE(cut.complete);
  CHECK(names(cut).front() == "b");
}

TEST_CASE("halving: an interruption ends it, and arguments are checked") {
  World world;
  SearchOptions options = world.options(1e9);
  options.interrupted = [&] { return world.time >= 1.5; };
  const SearchResult result = sheafnn::search({world.constant("a", 0.1), world.constant("b", 0.2)}, 1, options);
  CHECK(!result.complete);
  CHECK(result.rows[result.winner()].name == "a");
  const std::vector<SearchCandidate> one = {world.constant("a", 0.1)};
  CHECK_THROWS_WITH_AS(static_cast<void>(sheafnn::search({}, 1)), doctest::Contains("candidates"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(static_cast<void>(sheafnn::search(one, 0)), doctest::Contains("splits"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(static_cast<void>(sheafnn::search(one, 1, {.seconds = 0})), doctest::Contains("seconds"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(static_cast<void>(sheafnn::search(one, 1, {.epochs = 0})), doctest::Contains("epochs"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(static_cast<void>(sheafnn::search(one, 1, {.rounds = 0})), doctest::Contains("rounds"),
                       std::invalid_argument);
}

TEST_CASE("the splits of a search have no test nodes") {
  const sheafnn::Dataset data = sheafnn::synthetic({.nodes = 200, .classes = 4, .splits = 3});
  const std::vector<sheafnn::Split> several = sheafnn::search_splits(data, data.splits);
  REQUIRE(several.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(several[i].train == data.splits[i].train);
    CHECK(several[i].validation == data.splits[i].validation);
    CHECK(several[i].test.empty());
  }
  // One split: others of its own training and validation nodes, in about the same shares of every class.
  const std::vector<sheafnn::Split> single = sheafnn::search_splits(data, {&data.splits[1], 1});
  REQUIRE(single.size() == static_cast<std::size_t>(sheafnn::search_divisions));
  const sheafnn::Split& own = data.splits[1];
  std::set<std::int32_t> seen(own.train.begin(), own.train.end());
  seen.insert(own.validation.begin(), own.validation.end());
  for (const sheafnn::Split& split : single) {
    CHECK(split.test.empty());
    std::set<std::int32_t> all(split.train.begin(), split.train.end());
    all.insert(split.validation.begin(), split.validation.end());
    CHECK(all == seen);
    CHECK(std::abs(static_cast<double>(split.train.size()) - static_cast<double>(own.train.size())) <= 4);
    sheafnn::validate(split, 200, "split");
  }
  CHECK(single[1].validation != single[0].validation);
  CHECK(single[2].validation != single[1].validation);
  sheafnn::Split none = own;
  none.validation.clear();
  CHECK_THROWS_WITH_AS(static_cast<void>(sheafnn::search_splits(data, {&none, 1})),
                       doctest::Contains("validation"), std::invalid_argument);
  CHECK_THROWS_AS(static_cast<void>(sheafnn::search_splits(data, {})), std::invalid_argument);
}

TEST_CASE("divisions of a split keep two classes among its validation nodes") {
  sheafnn::Dataset data = sheafnn::synthetic({.nodes = 40, .classes = 2});
  std::fill(data.labels.begin(), data.labels.end(), 0);
  data.labels[30] = 1;  // the only one of its class
  sheafnn::Split split;
  for (std::int32_t u = 0; u < 40; ++u) (u < 25 ? split.train : split.validation).push_back(u);
  const std::vector<sheafnn::Split> splits = sheafnn::search_splits(data, {&split, 1});
  for (const sheafnn::Split& one : splits) {
    CHECK(std::find(one.validation.begin(), one.validation.end(), 30) != one.validation.end());
  }
}

TEST_CASE("the list of settings") {
  std::set<std::string_view> names;
  bool nodes_alone = false, identity = false;
  for (const sheafnn::SearchSetting& setting : sheafnn::search_settings()) {
    CHECK(names.insert(setting.name).second);
    nodes_alone = nodes_alone || !setting.use_edges;
    identity = identity || (setting.maps == "identity" && setting.use_edges);
  }
  CHECK(names.size() >= 12);
  CHECK(nodes_alone);
  CHECK(identity);
}

}  // namespace test_search
