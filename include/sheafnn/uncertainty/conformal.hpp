/// \file
/// Conformal prediction: sets of classes that contain the label with probability 1 − α, whatever the model.
///
/// Every class of every node has a score, smaller ones for classes that the model believes in. The threshold τ is a
/// quantile of the labels' scores on calibration nodes, and the set of a node holds the classes with score ≤ τ. Adaptive
/// scores add up the probabilities of the classes that are ranked above, and a share U of the class itself:
///
///     s_u(y) = Σ_{c before y} p(c | u) + U_u p(y | u),    averaged over neighbours: (1 − λ) s_u + λ mean_{v∼u} s_v.
///
/// The guarantee needs calibration nodes and other nodes to be exchangeable: the former must not have served to train or
/// to choose the model. math: "Conformal prediction sets" (6.8), (6.9).
///
/// Sources: Romano, Sesia, Candès, "Classification with valid and adaptive coverage", NeurIPS 2020. Zargarbashi, Antonelli,
/// Bojchevski, "Conformal prediction sets for graph neural networks", ICML 2023 (averages over neighbours).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/graph/graph.hpp"
#include "sheafnn/random/stream.hpp"
#include "sheafnn/uncertainty/metrics.hpp"

namespace sheafnn::uncertainty {

/// Adaptive scores of all classes of all nodes. Of equal probabilities, the first class is ranked first.
/// math: "Conformal prediction sets" (6.8).
///
/// \param probabilities  n × C, row-major
/// \param seed           seed of the shares U_u, uniform in (0, 1), one per node; without a seed all shares are 1. Sets
///                       are not random then, and larger in the mean, but empty where the largest probability is above
///                       the threshold
/// \returns              n × C, in [0, 1] up to rounding
/// \throws std::invalid_argument  no class, a size that is not a multiple of C, a probability outside [0, 1], or a row that
///                                does not sum to 1
[[nodiscard]] inline std::vector<double> adaptive_scores(std::span<const double> probabilities, Index class_count,
                                                         std::optional<std::uint64_t> seed = {}) {
  require(class_count >= 1, "class_count", class_count, "must be at least 1");
  const std::size_t classes = static_cast<std::size_t>(class_count);
  require(probabilities.size() % classes == 0, "probabilities", probabilities.size(),
          detail::concat("must be a multiple of ", classes));
  detail::check_all_rows("probabilities", probabilities, class_count, true);
  std::vector<double> scores(probabilities.size());
  std::vector<std::size_t> order(classes);
  for (std::size_t u = 0; u < probabilities.size() / classes; ++u) {
    const std::span<const double> row = probabilities.subspan(u * classes, classes);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return row[a] > row[b] || (row[a] == row[b] && a < b); });
    double share = 1;
    if (seed) {
      share =
          random::uniform_from_word<double>(Stream{.seed = *seed}.words(static_cast<std::uint32_t>(u), 0).word[0]);
    }
    double above = 0;
    for (const std::size_t c : order) {
      scores[u * classes + c] = above + share * row[c];
      above += row[c];
    }
  }
  return scores;
}

/// Scores averaged with the neighbours' scores: (1 − λ) s_u + λ mean_{v∼u} s_v; nodes without neighbours keep their scores.
///
/// \param scores  n × C, row-major
/// \param weight  λ, 0 … 1
/// \throws std::invalid_argument  another number of scores, or λ out of range
[[nodiscard]] inline std::vector<double> average_over_neighbours(const Graph& graph,
                                                                 std::span<const double> scores, Index class_count,
                                                                 double weight) {
  require(class_count >= 1, "class_count", class_count, "must be at least 1");
  require_between("weight", weight, 0.0, 1.0);
  detail::require_rows("scores", scores.size(), graph.node_count(), class_count);
  std::vector<double> r(scores.begin(), scores.end());
  for (Index u = 0; u < graph.node_count(); ++u) {
    if (graph.degree(u) == 0) continue;
    const double share = weight / static_cast<double>(graph.degree(u));
    double* const row = r.data() + u * class_count;
    for (Index c = 0; c < class_count; ++c) row[c] *= 1 - weight;
    for (Index a = graph.first_arc(u); a < graph.first_arc(u + 1); ++a) {
      const double* const other = scores.data() + graph.target(a) * class_count;
      for (Index c = 0; c < class_count; ++c) row[c] += share * other[c];
    }
  }
  return r;
}

/// ⌈(n + 1)(1 − α)⌉, the rank of a threshold among n scores. math: "Conformal prediction sets" (6.9).
///
/// Unchecked: n ≥ 0, and α in (0, 1).
[[nodiscard]] inline double conformal_rank(double n, double alpha) {
  return std::ceil((n + 1) * (1 - alpha) *
                   (1 - 1e-14));  // the product may be rounded to just above a whole number
}
/// The smallest n whose conformal_threshold() is finite: ⌈1/α⌉ − 1.
///
/// \throws std::invalid_argument  α outside of (0, 1)
[[nodiscard]] inline double fewest_calibration_nodes(double alpha) {
  require(alpha > 0 && alpha < 1, "alpha", alpha, "must be above 0 and below 1");
  double n = std::max(std::floor(1 / alpha) - 2, 0.0);
  while (conformal_rank(n, alpha) > n) ++n;
  return n;
}

/// The ⌈(n + 1)(1 − α)⌉-th smallest of n scores, or ∞ where that is more than n: every class is then in every set.
/// math: "Conformal prediction sets" (6.9).
///
/// \param scores  of the labels of calibration nodes
/// \param alpha   share of labels that sets may miss, in (0, 1)
/// \throws std::invalid_argument  α out of range, or a score that is NaN
[[nodiscard]] inline double conformal_threshold(std::vector<double> scores, double alpha) {
  require(alpha > 0 && alpha < 1, "alpha", alpha, "must be above 0 and below 1");
  for (std::size_t i = 0; i < scores.size(); ++i) {
    require(!std::isnan(scores[i]), ArgumentName({}, "scores", i), scores[i], "must be a number");
  }
  const double rank = conformal_rank(static_cast<double>(scores.size()), alpha);
  if (rank > static_cast<double>(scores.size())) return std::numeric_limits<double>::infinity();
  const auto at = scores.begin() + static_cast<std::ptrdiff_t>(std::max(rank, 1.0)) - 1;
  std::nth_element(scores.begin(), at, scores.end());
  return *at;
}
/// The same for the labels of `nodes`.
///
/// \param scores  n × C, row-major
/// \throws std::invalid_argument  also: sizes that do not match, no node, or a label or node out of range
[[nodiscard]] inline double conformal_threshold(std::span<const double> scores, Index class_count,
                                                std::span<const std::int32_t> labels,
                                                std::span<const std::int32_t> nodes, double alpha) {
  detail::check_predictions("scores", scores, class_count, labels, nodes, false);
  std::vector<double> of_labels;
  for (const std::int32_t u : nodes) {
    of_labels.push_back(scores[static_cast<std::size_t>(u * class_count + labels[static_cast<std::size_t>(u)])]);
  }
  return conformal_threshold(std::move(of_labels), alpha);
}

/// The sets {y : s_u(y) ≤ threshold}: for every score whether its class is in the set of its node. A score of NaN is in
/// no set.
///
/// \param scores  n × C, row-major
/// \returns       as many 0 and 1
/// \throws std::invalid_argument  a threshold that is NaN
[[nodiscard]] inline std::vector<std::uint8_t> conformal_sets(std::span<const double> scores, double threshold) {
  require(!std::isnan(threshold), "threshold", threshold, "must be a number");
  std::vector<std::uint8_t> r;
  r.reserve(scores.size());
  for (const double score : scores) r.push_back(score <= threshold ? 1 : 0);
  return r;
}

/// What sets of classes are like on nodes whose labels are known.
struct SetFigures {
  double coverage = 0;         ///< share of the nodes whose label is in their set
  double mean_size = 0;        ///< in classes
  std::vector<Index> of_size;  ///< C + 1: how many sets have 0, 1, …, C classes; empty sets say that no class fits
};

/// Coverage and sizes of the sets {y : s_u(y) ≤ threshold} of `nodes`.
///
/// \param scores  n × C, row-major
/// \throws std::invalid_argument  sizes that do not match, no node, a label or node out of range, or a threshold of NaN
[[nodiscard]] inline SetFigures evaluate_sets(std::span<const double> scores, Index class_count,
                                              std::span<const std::int32_t> labels,
                                              std::span<const std::int32_t> nodes, double threshold) {
  detail::check_predictions("scores", scores, class_count, labels, nodes, false);
  const std::vector<std::uint8_t> sets = conformal_sets(scores, threshold);
  SetFigures r;
  r.of_size.assign(static_cast<std::size_t>(class_count) + 1, 0);
  const double n = static_cast<double>(nodes.size());
  double covered = 0, sizes = 0;
  for (const std::int32_t u : nodes) {
    const auto set =
        std::span(sets).subspan(static_cast<std::size_t>(u * class_count), static_cast<std::size_t>(class_count));
    const auto size = std::count(set.begin(), set.end(), std::uint8_t{1});
    ++r.of_size[static_cast<std::size_t>(size)];
    sizes += static_cast<double>(size);
    covered += set[static_cast<std::size_t>(labels[static_cast<std::size_t>(u)])];
  }
  r.coverage = covered / n;
  r.mean_size = sizes / n;
  return r;
}

}  // namespace sheafnn::uncertainty
