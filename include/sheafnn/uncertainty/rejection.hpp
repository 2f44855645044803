/// \file
/// The quality of a measure of uncertainty: rejecting nodes whose predictions are wrong, detecting nodes of classes
/// that the model has never seen.
///
/// The measures themselves, of every node: entropy, epistemic variance, mutual information (uncertainty/sampling.hpp).
/// math: "Rejection and detection" (6.12).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/uncertainty/ranking_metrics.hpp"

namespace sheafnn::detail {

/// Checks labels and predicted classes of n nodes, of which some count.
///
/// \throws std::invalid_argument  another number of predicted classes, a node out of range, or one without a label
inline void check_classes(std::span<const std::int32_t> labels, std::span<const std::int32_t> predicted,
                          std::span<const std::int32_t> nodes) {
  const std::size_t n = labels.size();
  require(predicted.size() == n, "predicted", predicted.size(), concat("expected ", n, ", one per node"));
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const std::size_t u = static_cast<std::size_t>(nodes[i]);
    if (nodes[i] < 0 || u >= n) {
      throw_invalid_argument(concat("nodes[", i, "]"), nodes[i],
                             concat("must be between 0 and ", static_cast<Index>(n) - 1));
    }
    if (labels[u] < 0) {
      throw_invalid_argument(concat("labels[", u, "]"), labels[u], "a node that counts needs a known label");
    }
  }
}

/// The nodes of both sets, in decreasing order of the measure.
///
/// \throws std::invalid_argument  a node out of range, or a measure of NaN
[[nodiscard]] inline std::vector<RankedNode> detection_ranking(std::span<const double> measure,
                                                               std::span<const std::int32_t> positives,
                                                               std::span<const std::int32_t> negatives) {
  std::vector<RankedNode> ranking;
  const auto add = [&](std::span<const std::int32_t> nodes, const char* name, bool positive) {
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const std::size_t u = static_cast<std::size_t>(nodes[i]);
      if (nodes[i] < 0 || u >= measure.size()) {
        throw_invalid_argument(concat(name, "[", i, "]"), nodes[i],
                               concat("must be between 0 and ", static_cast<Index>(measure.size()) - 1));
      }
      if (std::isnan(measure[u])) {
        throw_invalid_argument(concat("measure[", u, "]"), measure[u], "must be a number");
      }
      ranking.push_back({measure[u], positive});
    }
  };
  add(positives, "positives", true);
  add(negatives, "negatives", false);
  std::sort(ranking.begin(), ranking.end(),
            [](const RankedNode& a, const RankedNode& b) { return a.probability > b.probability; });
  return ranking;
}

}  // namespace sheafnn::detail

namespace sheafnn::uncertainty {

/// Accuracy of what is left when uncertain nodes are rejected.
struct RejectionCurve {
  std::vector<double> accuracy;  ///< of N nodes without the k most uncertain ones, k = 0 … N − 1
  double area = 0;  ///< their mean: the area under the curve over the share of rejected nodes, in [0, 1]
};

/// Rejects the nodes one after another, the most uncertain first. Nodes with equal uncertainty are rejected in random
/// order, and the accuracy is the mean over their orders. A constant measure therefore has the accuracy as its area.
///
/// \param uncertainty  n, of every node; any values but NaN
/// \param labels       n classes; known ones of the nodes that count
/// \param predicted    n classes
/// \param nodes        the nodes that count
/// \throws std::invalid_argument  sizes that do not match, no node, a node out of range, one without a label, or an
///                                uncertainty of NaN
[[nodiscard]] inline RejectionCurve rejection_curve(std::span<const double> uncertainty,
                                                    std::span<const std::int32_t> labels,
                                                    std::span<const std::int32_t> predicted,
                                                    std::span<const std::int32_t> nodes) {
  const std::size_t n = labels.size();
  require(uncertainty.size() == n, "uncertainty", uncertainty.size(),
          detail::concat("expected ", n, ", one per node"));
  require(!nodes.empty(), "nodes", 0, "at least one node is needed");
  detail::check_classes(labels, predicted, nodes);
  std::vector<detail::RankedNode> ranking;  // with its uncertainty in place of a probability
  for (const std::int32_t node : nodes) {
    const std::size_t u = static_cast<std::size_t>(node);
    if (std::isnan(uncertainty[u])) {
      throw_invalid_argument(detail::concat("uncertainty[", u, "]"), uncertainty[u], "must be a number");
    }
    ranking.push_back({uncertainty[u], labels[u] == predicted[u]});
  }
  std::sort(ranking.begin(), ranking.end(), [](const detail::RankedNode& a, const detail::RankedNode& b) {
    return a.probability > b.probability;
  });
  RejectionCurve r;
  double left = static_cast<double>(nodes.size()), right = 0;
  for (const detail::RankedNode& node : ranking) right += node.positive ? 1 : 0;
  detail::for_ties(ranking, [&](double correct, double wrong) {
    const double group = correct + wrong;
    for (Index k = 0; k < static_cast<Index>(group); ++k) {
      const double rejected = static_cast<double>(k);  // of the ties at random; products of counts are exact
      r.accuracy.push_back((right * group - correct * rejected) / (group * (left - rejected)));
    }
    right -= correct;
    left -= group;
  });
  for (const double accuracy : r.accuracy) r.area += accuracy;
  r.area /= static_cast<double>(nodes.size());
  return r;
}

/// The largest area a rejection curve of N nodes can have: all wrong predictions are rejected before the right ones.
///
/// \param correct  number of nodes whose prediction is right, 0 … N
/// \throws std::invalid_argument  N below 1, or `correct` out of range
[[nodiscard]] inline double best_rejection_area(Index correct, Index node_count) {
  require(node_count >= 1, "node_count", node_count, "must be at least 1");
  require_between("correct", correct, Index{0}, node_count);
  double area = 0;
  for (Index left = 1; left <= node_count; ++left) {
    area += static_cast<double>(std::min(correct, left)) / static_cast<double>(left);
  }
  return area / static_cast<double>(node_count);
}

/// How well a measure detects some nodes among others, at every threshold: "at least t of the measure" is a detection.
struct DetectionCurve {
  std::vector<double> threshold;            ///< t: the different values of the measure, falling
  std::vector<double> true_positive_rate;   ///< share of the positives that are detected, the recall
  std::vector<double> false_positive_rate;  ///< share of the negatives that are detected
  std::vector<double> precision;            ///< share of positives among what is detected
  double roc_auc = 0;  ///< probability that a positive has more of the measure than a negative, ties half
  double average_precision = 0;  ///< area under the precision-recall curve, by steps without interpolation
};

/// Area under the ROC curve of detecting `positives` among `negatives` by a measure. It is the probability that a positive
/// node has a larger measure than a negative node, ties counting half. 0.5: it does not separate them.
///
/// \param measure    n, of every node, e.g. the entropy; any values but NaN
/// \param positives  e.g. nodes of a class that the model has not seen, or those predicted wrongly
/// \returns          NaN without positives or without negatives
/// \throws std::invalid_argument  a node out of range, or a measure of NaN
[[nodiscard]] inline double detection_auc(std::span<const double> measure, std::span<const std::int32_t> positives,
                                          std::span<const std::int32_t> negatives) {
  const auto ranking = detail::detection_ranking(measure, positives, negatives);
  if (positives.empty() || negatives.empty()) return std::numeric_limits<double>::quiet_NaN();
  return detail::roc_auc_of(ranking, static_cast<double>(positives.size()), static_cast<double>(negatives.size()));
}

/// The same at every threshold, with both areas.
///
/// \throws std::invalid_argument  no positives or no negatives; otherwise as detection_auc()
[[nodiscard]] inline DetectionCurve detection_curve(std::span<const double> measure,
                                                    std::span<const std::int32_t> positives,
                                                    std::span<const std::int32_t> negatives) {
  require(!positives.empty(), "positives", 0, "at least one node is needed");
  require(!negatives.empty(), "negatives", 0, "at least one node is needed");
  const auto ranking = detail::detection_ranking(measure, positives, negatives);
  const double p = static_cast<double>(positives.size()), n = static_cast<double>(negatives.size());
  DetectionCurve r;
  double hits = 0, alarms = 0;
  detail::for_ties(ranking, [&](double more_hits, double more_alarms) {
    r.threshold.push_back(ranking[static_cast<std::size_t>(hits + alarms)].probability);
    hits += more_hits;
    alarms += more_alarms;
    r.true_positive_rate.push_back(hits / p);
    r.false_positive_rate.push_back(alarms / n);
    r.precision.push_back(hits / (hits + alarms));
  });
  r.roc_auc = detail::roc_auc_of(ranking, p, n);
  r.average_precision = detail::average_precision_of(ranking, p, n);
  return r;
}

/// The nodes whose most probable class is not their label, and the other nodes; error detection separates these two
/// sets.
struct Errors {
  std::vector<std::int32_t> wrong, right;  ///< in the order of `nodes`
};

/// \param labels, predicted  n classes; known labels of the nodes that count
/// \throws std::invalid_argument  sizes that do not match, a node out of range, or one without a label
[[nodiscard]] inline Errors find_errors(std::span<const std::int32_t> labels,
                                        std::span<const std::int32_t> predicted,
                                        std::span<const std::int32_t> nodes) {
  Errors r;
  detail::check_classes(labels, predicted, nodes);
  for (const std::int32_t u : nodes) {
    const auto i = static_cast<std::size_t>(u);
    (labels[i] == predicted[i] ? r.right : r.wrong).push_back(u);
  }
  return r;
}

}  // namespace sheafnn::uncertainty
