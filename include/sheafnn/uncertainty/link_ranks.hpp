/// \file
/// How well scores rank links above pairs without one: Hits@k and the mean reciprocal rank.
///
/// The rank of a link among negatives with scores s_j is 1 + #{s_j > s} + ½ #{s_j = s}. Negatives with the same score count
/// half: the mean over all orders. ROC AUC and average precision are in ranking_metrics.hpp. math: "Links" (10.6).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"

namespace sheafnn::uncertainty {

/// The rank of every link among all negatives. O((P + N) log N).
///
/// \param links, negatives  their scores, more of which is better
/// \throws std::invalid_argument  a score that is NaN
[[nodiscard]] inline std::vector<double> link_ranks(std::span<const double> links,
                                                    std::span<const double> negatives) {
  const auto check = [](const char* name, std::span<const double> scores) {
    for (std::size_t i = 0; i < scores.size(); ++i) {
      if (std::isnan(scores[i])) throw_invalid_argument(ArgumentName({}, name, i), scores[i], "must be a number");
    }
  };
  check("links", links);
  check("negatives", negatives);
  std::vector<double> sorted(negatives.begin(), negatives.end());
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  std::vector<double> ranks;
  ranks.reserve(links.size());
  for (const double score : links) {
    const auto [first, last] = std::equal_range(sorted.begin(), sorted.end(), score, std::greater<>());
    ranks.push_back(1 + static_cast<double>(first - sorted.begin()) + static_cast<double>(last - first) / 2);
  }
  return ranks;
}

/// Hits@k: the share of ranks that are at most k.
///
/// \throws std::invalid_argument  no rank, or k < 1
[[nodiscard]] inline double hits_at(std::span<const double> ranks, Index k) {
  require(!ranks.empty(), "ranks", 0, "at least one link is needed");
  require(k >= 1, "k", k, "must be at least 1");
  const auto hits =
      std::count_if(ranks.begin(), ranks.end(), [&](double r) { return r <= static_cast<double>(k); });
  return static_cast<double>(hits) / static_cast<double>(ranks.size());
}

/// MRR: the mean of 1/rank.
///
/// \throws std::invalid_argument  no rank, or one below 1
[[nodiscard]] inline double mean_reciprocal_rank(std::span<const double> ranks) {
  require(!ranks.empty(), "ranks", 0, "at least one link is needed");
  double sum = 0;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    require(ranks[i] >= 1, ArgumentName({}, "ranks", i), ranks[i], "must be at least 1");
    sum += 1 / ranks[i];
  }
  return sum / static_cast<double>(ranks.size());
}

}  // namespace sheafnn::uncertainty
