/// \file
/// What a measure of uncertainty is good for: rejecting nodes whose predictions are wrong, detecting nodes of classes that
/// the model has never seen.
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

namespace sheafnn {

/// Accuracy of what is left when uncertain nodes are rejected.
struct RejectionCurve {
  std::vector<double> accuracy;  ///< of N nodes without the k most uncertain ones, k = 0 … N − 1
  double area = 0;  ///< their mean: the area under the curve over the share of rejected nodes, in [0, 1]
};

/// Rejects the nodes one after another, the most uncertain first. Of nodes with equal uncertainty each is as likely to be
/// next: the accuracy is the mean over their orders, so that a measure that says nothing has the accuracy as its area.
///
/// \param uncertainty  n, of every node; any numbers but NaN
/// \param labels       n classes; known ones of the nodes that count
/// \param predicted    n classes
/// \param nodes        those that count
/// \throws std::invalid_argument  sizes that do not match, no node, a node out of range, one without a label, or an
///                                uncertainty of NaN
[[nodiscard]] inline RejectionCurve rejection_curve(std::span<const double> uncertainty,
                                                    std::span<const std::int32_t> labels,
                                                    std::span<const std::int32_t> predicted,
                                                    std::span<const std::int32_t> nodes) {
  const std::size_t n = labels.size();
  require(uncertainty.size() == n, "uncertainty", uncertainty.size(),
          detail::concat("expected ", n, ", one per node"));
  require(predicted.size() == n, "predicted", predicted.size(), detail::concat("expected ", n, ", one per node"));
  require(!nodes.empty(), "nodes", 0, "at least one node is needed");
  std::vector<detail::RankedNode> ranking;  // with its uncertainty in place of a probability
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const std::size_t u = static_cast<std::size_t>(nodes[i]);
    if (nodes[i] < 0 || u >= n) {
      throw_invalid_argument(detail::concat("nodes[", i, "]"), nodes[i],
                             detail::concat("must be between 0 and ", static_cast<Index>(n) - 1));
    }
    if (labels[u] < 0) {
      throw_invalid_argument(detail::concat("labels[", u, "]"), labels[u],
                             "a node that counts needs a known label");
    }
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

/// The largest area a rejection curve of N nodes can have: all that are wrong are rejected before those that are right.
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

/// Area under the ROC curve of detecting `positives` among `negatives` by a measure: the probability that a positive node
/// has more of it than a negative one, ties counting half. 0.5: it does not tell them apart.
///
/// \param measure    n, of every node, e.g. the entropy; any numbers but NaN
/// \param positives  e.g. nodes of a class that the model has not seen, or those predicted wrongly
/// \returns          NaN where there are no positives or no negatives
/// \throws std::invalid_argument  a node out of range, or a measure of NaN
[[nodiscard]] inline double detection_auc(std::span<const double> measure, std::span<const std::int32_t> positives,
                                          std::span<const std::int32_t> negatives) {
  std::vector<detail::RankedNode> ranking;
  const auto add = [&](std::span<const std::int32_t> nodes, const char* name, bool positive) {
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const std::size_t u = static_cast<std::size_t>(nodes[i]);
      if (nodes[i] < 0 || u >= measure.size()) {
        throw_invalid_argument(detail::concat(name, "[", i, "]"), nodes[i],
                               detail::concat("must be between 0 and ", static_cast<Index>(measure.size()) - 1));
      }
      if (std::isnan(measure[u])) {
        throw_invalid_argument(detail::concat("measure[", u, "]"), measure[u], "must be a number");
      }
      ranking.push_back({measure[u], positive});
    }
  };
  add(positives, "positives", true);
  add(negatives, "negatives", false);
  if (positives.empty() || negatives.empty()) return std::numeric_limits<double>::quiet_NaN();
  std::sort(ranking.begin(), ranking.end(), [](const detail::RankedNode& a, const detail::RankedNode& b) {
    return a.probability > b.probability;
  });
  return detail::roc_auc_of(ranking, static_cast<double>(positives.size()), static_cast<double>(negatives.size()));
}

}  // namespace sheafnn
