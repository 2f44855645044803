/// \file
/// How well predicted probabilities rank and separate classes: ROC AUC, average precision, macro F1, Brier score.
///
/// Probabilities are n × C, row-major; `nodes` are the rows that count. A ranking of one class c sorts the nodes by p(c |
/// u). The P nodes of class c are the positives, the other N nodes the negatives. Nodes with the same probability form one
/// group k, with P_k positives and N_k negatives; groups in order of falling probability:
///
///     ROC AUC           = Σ_k N_k (Σ_{j<k} P_j + P_k/2) / (P N)        ties count half
///     average precision = Σ_k (P_k / P) · Σ_{j≤k} P_j / Σ_{j≤k} (P_j + N_j)
///
/// Two classes: the ranking of class 1. Several: the mean over the classes (one against the rest, unweighted), without
/// classes that no node has or all nodes have. NaN when no class remains. O(C n log n).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/uncertainty/metrics.hpp"

namespace sheafnn::detail {

/// A node's probability of the class that is ranked, and whether it has that class.
struct RankedNode {
  double probability;
  bool positive;
};

/// What the metrics below write while they count. It keeps its memory, so a training does not allocate memory for
/// metrics.
struct MetricWorkspace {
  std::vector<RankedNode> ranking;
  std::vector<Index> counts;
};

/// Calls body(P_k, N_k) for the groups of equal probability of a ranking that is sorted by falling probability.
template <class Body>
void for_ties(std::span<const RankedNode> ranking, const Body& body) {
  for (std::size_t begin = 0; begin < ranking.size();) {
    double positives = 0, negatives = 0;
    std::size_t end = begin;
    for (; end < ranking.size() && ranking[end].probability == ranking[begin].probability; ++end) {
      ++(ranking[end].positive ? positives : negatives);
    }
    body(positives, negatives);
    begin = end;
  }
}
/// The ROC AUC of a sorted ranking with P > 0 positives and N > 0 negatives. The sum is of whole and half numbers: exact.
[[nodiscard]] inline double roc_auc_of(std::span<const RankedNode> ranking, double positives, double negatives) {
  double above = 0, area = 0;
  for_ties(ranking, [&](double p, double n) {
    area += n * (above + p / 2);
    above += p;
  });
  return area / (positives * negatives);
}
[[nodiscard]] inline double average_precision_of(std::span<const RankedNode> ranking, double positives, double) {
  double hits = 0, seen = 0, sum = 0;
  for_ties(ranking, [&](double p, double n) {
    hits += p;
    seen += p + n;
    sum += p * (hits / seen);
  });
  return sum / positives;
}

/// Mean of measure(ranking, P, N) over the classes that some of the nodes have, and not all.
template <class Measure>
[[nodiscard]] double mean_of_rankings(std::span<const double> probabilities, Index class_count,
                                      std::span<const std::int32_t> labels, std::span<const std::int32_t> nodes,
                                      MetricWorkspace& work, const Measure& measure) {
  double sum = 0, classes = 0;
  for (Index c = class_count == 2 ? 1 : 0; c < class_count; ++c) {
    work.ranking.clear();
    double positives = 0;
    for (const std::int32_t u : nodes) {
      const bool positive = labels[static_cast<std::size_t>(u)] == c;
      work.ranking.push_back({probabilities[static_cast<std::size_t>(u * class_count + c)], positive});
      positives += positive ? 1 : 0;
    }
    const double negatives = static_cast<double>(nodes.size()) - positives;
    if (positives == 0 || negatives == 0) continue;
    std::sort(work.ranking.begin(), work.ranking.end(),
              [](const RankedNode& a, const RankedNode& b) { return a.probability > b.probability; });
    sum += measure(work.ranking, positives, negatives);
    ++classes;
  }
  return classes > 0 ? sum / classes : std::numeric_limits<double>::quiet_NaN();
}

// The metrics below without checks, with memory of the caller's.

[[nodiscard]] inline double roc_auc(std::span<const double> probabilities, Index class_count,
                                    std::span<const std::int32_t> labels, std::span<const std::int32_t> nodes,
                                    MetricWorkspace& work) {
  return mean_of_rankings(probabilities, class_count, labels, nodes, work, roc_auc_of);
}
[[nodiscard]] inline double average_precision(std::span<const double> probabilities, Index class_count,
                                              std::span<const std::int32_t> labels,
                                              std::span<const std::int32_t> nodes, MetricWorkspace& work) {
  return mean_of_rankings(probabilities, class_count, labels, nodes, work, average_precision_of);
}
[[nodiscard]] inline double macro_f1(std::span<const double> probabilities, Index class_count,
                                     std::span<const std::int32_t> labels, std::span<const std::int32_t> nodes,
                                     MetricWorkspace& work) {
  work.counts.assign(static_cast<std::size_t>(2 * class_count), 0);  // per class: 2 TP, and 2 TP + FN + FP
  const auto count = [&](Index c, Index which) -> Index& {
    return work.counts[static_cast<std::size_t>(2 * c + which)];
  };
  for (const std::int32_t u : nodes) {
    const Index label = labels[static_cast<std::size_t>(u)], best = most_probable(probabilities, class_count, u);
    ++count(label, 1);
    ++count(best, 1);
    if (best == label) count(label, 0) += 2;
  }
  double sum = 0, classes = 0;
  for (Index c = 0; c < class_count; ++c) {
    if (count(c, 1) == 0) continue;
    sum += static_cast<double>(count(c, 0)) / static_cast<double>(count(c, 1));
    ++classes;
  }
  return sum / classes;
}
[[nodiscard]] inline double brier_score(std::span<const double> probabilities, Index class_count,
                                        std::span<const std::int32_t> labels,
                                        std::span<const std::int32_t> nodes) {
  double sum = 0;
  for (const std::int32_t u : nodes) {
    for (Index c = 0; c < class_count; ++c) {
      const double target = labels[static_cast<std::size_t>(u)] == c ? 1 : 0;
      const double difference = probabilities[static_cast<std::size_t>(u * class_count + c)] - target;
      sum += difference * difference;
    }
  }
  return sum / static_cast<double>(nodes.size());
}

}  // namespace sheafnn::detail

namespace sheafnn::uncertainty {

/// Area under the ROC curve: the probability that a node of the class is ranked above one of another class. 1: all are,
/// 0.5: by chance. See the file comment for ties and for several classes.
///
/// \returns a number in [0, 1], or NaN where all nodes are of one class
/// \throws std::invalid_argument  sizes that do not match, no node, or a label, node or probability out of range;
///                                so for all metrics of this header
[[nodiscard]] inline double roc_auc(std::span<const double> probabilities, Index class_count,
                                    std::span<const std::int32_t> labels, std::span<const std::int32_t> nodes) {
  detail::check_predictions("probabilities", probabilities, class_count, labels, nodes, true);
  detail::MetricWorkspace work;
  return detail::roc_auc(probabilities, class_count, labels, nodes, work);
}

/// Precision averaged over the steps of recall, without interpolation; see the file comment.
///
/// \returns a number in (0, 1], or NaN where all nodes are of one class
/// \throws std::invalid_argument  as roc_auc()
[[nodiscard]] inline double average_precision(std::span<const double> probabilities, Index class_count,
                                              std::span<const std::int32_t> labels,
                                              std::span<const std::int32_t> nodes) {
  detail::check_predictions("probabilities", probabilities, class_count, labels, nodes, true);
  detail::MetricWorkspace work;
  return detail::average_precision(probabilities, class_count, labels, nodes, work);
}

/// Mean F1 of the classes that labels or predictions have: of each 2 TP / (2 TP + FP + FN).
///
/// \returns a number in [0, 1]
/// \throws std::invalid_argument  as roc_auc()
[[nodiscard]] inline double macro_f1(std::span<const double> probabilities, Index class_count,
                                     std::span<const std::int32_t> labels, std::span<const std::int32_t> nodes) {
  detail::check_predictions("probabilities", probabilities, class_count, labels, nodes, true);
  detail::MetricWorkspace work;
  return detail::macro_f1(probabilities, class_count, labels, nodes, work);
}

/// Mean over the nodes of Σ_c (p(c | u) − [label = c])², in [0, 2]: for two classes twice the squared error of p(1).
///
/// \throws std::invalid_argument  as roc_auc()
[[nodiscard]] inline double brier_score(std::span<const double> probabilities, Index class_count,
                                        std::span<const std::int32_t> labels,
                                        std::span<const std::int32_t> nodes) {
  detail::check_predictions("probabilities", probabilities, class_count, labels, nodes, true);
  return detail::brier_score(probabilities, class_count, labels, nodes);
}

}  // namespace sheafnn::uncertainty
