/// \file
/// Successive halving: which of several settings has the best validation score, in a limited time.
///
///     round 1: all settings,    epochs / 2^(R−1), a part of the splits
///     round 2: the better half, twice the epochs, twice the splits
///     …
///     round R: what is left,    all epochs,       all splits
///
/// A training is a function, so any kind of model can be searched; train_candidate() in bsnn/search_training.hpp makes
/// such a function. Within a round, all settings are trained on one split before the next split. They are compared on
/// the splits on which all of them were trained. If the time ends within a round, the completed splits count.
///
/// Source: Jamieson, Talwalkar 2016, "Non-stochastic best arm identification and hyperparameter optimization".
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"

namespace sheafnn {

/// The result of a training on the validation nodes.
struct SearchScore {
  double score = 0;       ///< the larger, the better
  double loss = 0;        ///< breaks ties of equal scores: the smaller, the better
  Index epochs = 0;       ///< number of epochs so far
  bool finished = false;  ///< it ended before its last epoch; further epochs would change nothing
};

/// One training of a search.
struct SearchTraining {
  std::size_t split;  ///< index of the split
  Index epochs;       ///< largest number of epochs, including the epochs of earlier rounds
  /// To be called between two epochs. Once it returns true, the training ends and returns nothing.
  std::function<bool()> out_of_time;
};

/// A setting: its name and its training.
struct SearchCandidate {
  std::string name;
  /// May throw std::runtime_error, for example if the training diverges; the setting then leaves the search.
  std::function<std::optional<SearchScore>(const SearchTraining&)> train;
};

/// How search() searches.
struct SearchOptions {
  double seconds = 60;  ///< > 0; infinity: no limit
  Index epochs = 300;   ///< epochs of a training in the last round, ≥ 1
  Index rounds = 3;     ///< R, 1 … 20
  /// Returns true to end the search as if its time were over, for example after Ctrl-C. It is called between two
  /// epochs.
  std::function<bool()> interrupted = {};
  /// Called before every training with the name of its setting, the round from 1, and the settings left in it.
  std::function<void(const std::string& name, Index round, std::size_t left)> on_training = {};
  /// Seconds since any moment; by default the steady clock's.
  std::function<double()> clock = {};
};

/// The result for a setting.
struct SearchRow {
  std::string name;
  Index round = 0;   ///< its last round, from 1; 0: it was not reached in time
  Index splits = 0;  ///< number of splits in the mean score, in the last round that compared the setting
  Index epochs = 0;  ///< largest number of epochs of a training in that round
  double score = std::numeric_limits<double>::quiet_NaN();  ///< mean
  double deviation = 0;  ///< standard deviation over the splits (divided by their number)
  double loss = std::numeric_limits<double>::quiet_NaN();  ///< mean
  double seconds = 0;                                      ///< time of all its trainings
  std::string error = {};                                  ///< why it left the search; empty: for its score
};

/// The result of a search.
struct SearchResult {
  std::vector<SearchRow> rows;       ///< as the candidates are numbered
  std::vector<std::size_t> ranking;  ///< indices of the candidates, the best first
  bool complete = true;              ///< false: time or an interruption ended it
  Index rounds = 0;                  ///< that were completed
  double seconds = 0;

  /// The index of the best candidate. Takes any result of search().
  [[nodiscard]] std::size_t winner() const { return ranking.front(); }
};

namespace detail {

/// See the file comment; search() calls it.
class SuccessiveHalving {
 public:
  SuccessiveHalving(const std::vector<SearchCandidate>& candidates, std::size_t splits,
                    const SearchOptions& options)
      : candidates_(candidates), splits_(splits), options_(options), start_(now()), scores_(candidates.size()) {
    for (const SearchCandidate& candidate : candidates) result_.rows.push_back({.name = candidate.name});
    result_.ranking.resize(candidates.size());
    std::iota(result_.ranking.begin(), result_.ranking.end(), std::size_t{0});
  }

  SearchResult run() {
    std::vector<std::size_t> left = result_.ranking;
    for (Index round = 1; round <= options_.rounds && result_.complete && !left.empty(); ++round) {
      const Index halvings = options_.rounds - round;
      const Index epochs = share(options_.epochs, halvings);
      const Index splits = share(static_cast<Index>(splits_), halvings);
      const Index compared = train_all(left, round, epochs, splits);
      rank(left, compared, epochs, round == 1);
      if (result_.complete) result_.rounds = round;
      std::erase_if(left, [&](std::size_t i) { return !result_.rows[i].error.empty(); });
      if (round < options_.rounds) left.resize((left.size() + 1) / 2);
    }
    // A setting that failed ranks below all settings that did not, even if it was ahead before.
    std::stable_partition(result_.ranking.begin(), result_.ranking.end(),
                          [&](std::size_t i) { return result_.rows[i].error.empty(); });
    require_one();
    result_.seconds = now() - start_;
    return std::move(result_);
  }

 private:
  [[nodiscard]] double now() const {
    if (options_.clock) return options_.clock();
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  }
  [[nodiscard]] bool out_of_time() const {
    return now() - start_ >= options_.seconds || (options_.interrupted && options_.interrupted());
  }
  /// all / 2^halvings, rounded up.
  [[nodiscard]] static Index share(Index all, Index halvings) {
    const Index parts = Index{1} << halvings;
    return (all + parts - 1) / parts;
  }

  /// Trains the remaining settings on one split after another. \returns  the number of splits on which all of them were
  /// trained
  Index train_all(const std::vector<std::size_t>& left, Index round, Index epochs, Index splits) {
    for (Index split = 0; split < splits; ++split) {
      for (const std::size_t i : left) {
        if (!train(i, static_cast<std::size_t>(split), round, epochs, left.size())) {
          result_.complete = false;
          return split;
        }
      }
    }
    return splits;
  }

  /// \returns  false: there was no time left
  bool train(std::size_t i, std::size_t split, Index round, Index epochs, std::size_t left) {
    SearchRow& row = result_.rows[i];
    if (!row.error.empty()) return true;
    const auto known = scores_[i].find(split);
    if (known != scores_[i].end() && (known->second.finished || known->second.epochs >= epochs)) {
      row.round = round;
      return true;
    }
    if (out_of_time()) return false;
    if (options_.on_training) options_.on_training(row.name, round, left);
    const double start = now();
    std::optional<SearchScore> score;
    try {
      score = candidates_[i].train({split, epochs, [this] { return out_of_time(); }});
      if (score && std::isnan(score->score)) row.error = "its validation score is not a number";
    } catch (const std::runtime_error& error) {
      row.error = error.what();
    }
    row.seconds += now() - start;
    if (!row.error.empty()) {
      row.round = round;
      return true;
    }
    if (!score) return false;
    row.round = round;
    scores_[i][split] = *score;
    return true;
  }

  /// Sorts the remaining settings by their scores on the first `splits` splits, the best first, and puts them at the front
  /// of the ranking. Without such splits the order stays; in the first round, settings that were trained come first.
  void rank(std::vector<std::size_t>& left, Index splits, Index epochs, bool first) {
    if (splits == 0 && !first) return;
    const auto failed = [&](std::size_t i) { return !result_.rows[i].error.empty(); };
    for (const std::size_t i : left) {
      if (!failed(i)) average(i, std::max<Index>(splits, 1), epochs);
    }
    const auto better = [&](std::size_t a, std::size_t b) {
      const SearchRow &x = result_.rows[a], &y = result_.rows[b];
      if (failed(a) != failed(b)) return failed(b);
      if (std::isnan(x.score) || std::isnan(y.score)) return !std::isnan(x.score) && std::isnan(y.score);
      return x.score != y.score ? x.score > y.score : x.loss < y.loss;
    };
    std::stable_sort(left.begin(), left.end(), better);
    std::copy(left.begin(), left.end(), result_.ranking.begin());
  }

  /// Sets the mean and deviation of a row over the first splits. A row without scores does not change.
  void average(std::size_t i, Index splits, Index epochs) {
    double sum = 0, squares = 0, loss = 0;
    Index count = 0;
    for (const auto& [split, one] : scores_[i]) {
      if (split >= static_cast<std::size_t>(splits)) break;
      ++count;
      sum += one.score;
      squares += one.score * one.score;
      loss += one.loss;
    }
    if (count == 0) return;
    SearchRow& row = result_.rows[i];
    const double n = static_cast<double>(count);
    row.splits = count;
    row.epochs = epochs;
    row.score = sum / n;
    row.deviation = std::sqrt(std::max(0.0, squares / n - row.score * row.score));
    row.loss = loss / n;
  }

  /// Checks that a setting is left to choose.
  void require_one() const {
    if (result_.rows[result_.ranking.front()].error.empty()) return;
    throw std::runtime_error(concat("all settings of the search failed; ",
                                    result_.rows[result_.ranking.front()].name, ": ",
                                    result_.rows[result_.ranking.front()].error));
  }

  const std::vector<SearchCandidate>& candidates_;
  std::size_t splits_;
  const SearchOptions& options_;
  double start_;
  std::vector<std::map<std::size_t, SearchScore>> scores_;  ///< of each setting: by split, the newest
  SearchResult result_;
};

}  // namespace detail

/// Searches; see the file comment. The same candidates give the same result if the time suffices for all of them. If no
/// candidate can be trained in time, the first one wins.
///
/// \param splits  how many splits there are, ≥ 1
/// \throws std::invalid_argument  no candidates, no splits, or an option out of range
/// \throws std::runtime_error     every candidate failed
/// \throws exceptions of candidates other than std::runtime_error
[[nodiscard]] inline SearchResult search(const std::vector<SearchCandidate>& candidates, std::size_t splits,
                                         const SearchOptions& options = {}) {
  require(!candidates.empty(), "candidates", 0, "a search needs at least one setting");
  require(splits > 0, "splits", 0, "a search needs at least one");
  require(options.seconds > 0, "seconds", options.seconds, "must be above 0");
  require(options.epochs >= 1, "epochs", options.epochs, "must be at least 1");
  require_between("rounds", options.rounds, 1, 20);
  return detail::SuccessiveHalving(candidates, splits, options).run();
}

}  // namespace sheafnn
