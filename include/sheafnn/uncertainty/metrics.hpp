/// \file
/// Quality and calibration of predicted class probabilities: accuracy, NLL, reliability diagram, ECE.
///
/// Probabilities are n × C, row-major; `nodes` are the rows that count. Their probabilities sum to 1, up to 0.001.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"

namespace sheafnn::detail {

/// Checks a number of values that is a product, which may overflow as an Index; `factors` names the numbers in `sizes`.
///
/// \throws std::invalid_argument  another number
inline void require_product(std::string_view name, std::size_t values, std::string_view factors,
                            std::initializer_list<Index> sizes) {
  double expected = 1;
  for (const Index size : sizes) expected *= static_cast<double>(size);
  if (static_cast<double>(values) == expected) return;
  throw_invalid_argument(name, values, concat("expected ", factors, " = ", expected));
}
/// The same check for a row per node.
inline void require_rows(std::string_view name, std::size_t values, Index nodes, Index classes) {
  require_product(name, values, "nodes * classes", {nodes, classes});
}

/// Checks the probabilities p(0) … p(C − 1) of row u: each in [0, 1], with sum 1 up to 0.001. `name` is what messages call
/// the rows.
template <class Probability>
void check_distribution(std::string_view name, Index class_count, Index u, const Probability& p) {
  double sum = 0;
  for (Index c = 0; c < class_count; ++c) {
    const double value = p(c);
    // A softmax in single precision may exceed 1 by rounding.
    if (!(value >= 0 && value <= 1 + 1e-5)) {
      throw_invalid_argument(concat(name, "[", u, ", ", c, "]"), value, "a probability must be between 0 and 1");
    }
    sum += value;
  }
  if (std::abs(sum - 1) > 1e-3) {
    throw_invalid_argument(concat(name, "[", u, "]"), concat("the sum ", sum),
                           "probabilities of a node must sum to 1, up to 0.001");
  }
}

/// Checks row u of n × C values: a distribution, or else finite values. `name` is what messages call the values.
inline void check_row(std::string_view name, std::span<const double> values, Index class_count, Index u,
                      bool are_probabilities) {
  const auto value = [&](Index c) { return values[static_cast<std::size_t>(u * class_count + c)]; };
  if (are_probabilities) return check_distribution(name, class_count, u, value);
  for (Index c = 0; c < class_count; ++c) {
    if (!std::isfinite(value(c))) {
      throw_invalid_argument(concat(name, "[", u, ", ", c, "]"), value(c), "must be finite");
    }
  }
}

/// Checks all rows, whose number the size of `values` says.
inline void check_all_rows(std::string_view name, std::span<const double> values, Index class_count,
                           bool are_probabilities) {
  for (Index u = 0; u < static_cast<Index>(values.size()) / class_count; ++u) {
    check_row(name, values, class_count, u, are_probabilities);
  }
}

/// Checks what all metrics need: matching sizes, at least one node, node numbers and labels in range. Rows that count must
/// be distributions or, for other values, finite. `name` is what messages call the values.
inline void check_predictions(std::string_view name, std::span<const double> values, Index class_count,
                              std::span<const std::int32_t> labels, std::span<const std::int32_t> nodes,
                              bool are_probabilities) {
  const Index n = static_cast<Index>(labels.size());
  require(class_count >= 1, "class_count", class_count, "must be at least 1");
  require_rows(name, values.size(), n, class_count);
  require(!nodes.empty(), "nodes", 0, "at least one node is needed");
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const std::int32_t u = nodes[i];
    if (u < 0 || u >= n) {
      throw_invalid_argument(concat("nodes[", i, "]"), u, concat("must be between 0 and ", n - 1));
    }
    const std::int32_t label = labels[static_cast<std::size_t>(u)];
    if (label < 0 || label >= class_count) {
      throw_invalid_argument(concat("labels[", u, "]"), label, concat("must be between 0 and ", class_count - 1));
    }
    check_row(name, values, class_count, u, are_probabilities);
  }
}

/// Most probable class of a row; the first of several.
[[nodiscard]] inline Index most_probable(std::span<const double> values, Index class_count, Index u) {
  const double* row = values.data() + u * class_count;
  return std::max_element(row, row + class_count) - row;
}

/// Calls use(F1) for every class, 2 TP / (2 TP + FP + FN); NaN for a class that neither labels nor predictions have.
template <class Use>
void for_f1(std::span<const Index> confusion, Index class_count, const Use& use) {
  require(class_count >= 1, "class_count", class_count, "must be at least 1");
  require_product("confusion", confusion.size(), "classes * classes", {class_count, class_count});
  for (Index c = 0; c < class_count; ++c) {
    Index labelled = 0, predicted = 0;
    for (Index k = 0; k < class_count; ++k) {
      labelled += confusion[static_cast<std::size_t>(c * class_count + k)];
      predicted += confusion[static_cast<std::size_t>(k * class_count + c)];
    }
    const double hits = static_cast<double>(confusion[static_cast<std::size_t>(c * class_count + c)]);
    use(2 * hits / static_cast<double>(labelled + predicted));  // 2 TP + FN + FP
  }
}

}  // namespace sheafnn::detail

namespace sheafnn::uncertainty {

/// Bins of the reliability diagram and the ECE (math: M = 15).
inline constexpr Index default_bins = 15;

/// Share of the nodes whose most probable class is their label.
///
/// \throws std::invalid_argument  sizes that do not match; no node; a label, node or probability out of range; probabilities
///                                of a node that do not sum to 1. The same holds for all metrics of this header
[[nodiscard]] inline double accuracy(std::span<const double> probabilities, Index class_count,
                                     std::span<const std::int32_t> labels, std::span<const std::int32_t> nodes) {
  detail::check_predictions("probabilities", probabilities, class_count, labels, nodes, true);
  Index correct = 0;
  for (const std::int32_t u : nodes) {
    if (detail::most_probable(probabilities, class_count, u) == labels[static_cast<std::size_t>(u)]) ++correct;
  }
  return static_cast<double>(correct) / static_cast<double>(nodes.size());
}

/// How many of the nodes have label a and most probable class b: C × C, row-major (a, b).
///
/// \throws std::invalid_argument  as accuracy()
[[nodiscard]] inline std::vector<Index> confusion_matrix(std::span<const double> probabilities, Index class_count,
                                                         std::span<const std::int32_t> labels,
                                                         std::span<const std::int32_t> nodes) {
  detail::check_predictions("probabilities", probabilities, class_count, labels, nodes, true);
  std::vector<Index> counts(static_cast<std::size_t>(class_count * class_count));
  for (const std::int32_t u : nodes) {
    const Index label = labels[static_cast<std::size_t>(u)];
    const Index predicted = detail::most_probable(probabilities, class_count, u);
    ++counts[static_cast<std::size_t>(label * class_count + predicted)];
  }
  return counts;
}

/// F1 of every class, 2 TP / (2 TP + FP + FN); 0 for a class that neither labels nor predictions have.
///
/// \param confusion  C × C counts of confusion_matrix()
/// \throws std::invalid_argument  no class, or another number of counts
[[nodiscard]] inline std::vector<double> f1_scores(std::span<const Index> confusion, Index class_count) {
  std::vector<double> r;
  detail::for_f1(confusion, class_count, [&](double f1) { r.push_back(std::isnan(f1) ? 0.0 : f1); });
  return r;
}

/// Their mean over the classes that labels or predictions have: macro_f1() of a confusion matrix. NaN where it is empty.
///
/// \throws std::invalid_argument  as f1_scores()
[[nodiscard]] inline double mean_f1(std::span<const Index> confusion, Index class_count) {
  double sum = 0, classes = 0;
  detail::for_f1(confusion, class_count, [&](double f1) {
    if (std::isnan(f1)) return;
    sum += f1;
    ++classes;
  });
  return sum / classes;
}

/// Mean of −log p(label) over the nodes, in nats. Probabilities that underflowed to 0 count as the smallest normal
/// double, so that the result stays finite (708 per node at most).
///
/// \throws std::invalid_argument  as accuracy()
[[nodiscard]] inline double negative_log_likelihood(std::span<const double> probabilities, Index class_count,
                                                    std::span<const std::int32_t> labels,
                                                    std::span<const std::int32_t> nodes) {
  detail::check_predictions("probabilities", probabilities, class_count, labels, nodes, true);
  double sum = 0;
  for (const std::int32_t u : nodes) {
    const double p =
        probabilities[static_cast<std::size_t>(u * class_count + labels[static_cast<std::size_t>(u)])];
    sum -= std::log(std::max(p, std::numeric_limits<double>::min()));
  }
  return sum / static_cast<double>(nodes.size());
}

/// One bar of a reliability diagram: the nodes whose largest probability lies in (lower, upper].
struct ReliabilityBin {
  double lower = 0;
  double upper = 0;
  Index count = 0;
  double confidence = 0;  ///< mean of the largest probability; 0 in an empty bin
  double accuracy = 0;    ///< share of correct nodes; 0 in an empty bin
};

/// Sorts the nodes by their largest probability into equal bins (lower, upper] of [0, 1].
///
/// \param bins  number of bins, 1 … 10⁶
/// \throws std::invalid_argument  as accuracy(), or bins out of range
[[nodiscard]] inline std::vector<ReliabilityBin> reliability_diagram(std::span<const double> probabilities,
                                                                     Index class_count,
                                                                     std::span<const std::int32_t> labels,
                                                                     std::span<const std::int32_t> nodes,
                                                                     Index bins = default_bins) {
  detail::check_predictions("probabilities", probabilities, class_count, labels, nodes, true);
  require_between("bins", bins, 1, 1000000);
  const double width = static_cast<double>(bins);
  std::vector<ReliabilityBin> diagram(static_cast<std::size_t>(bins));
  for (std::size_t k = 0; k < diagram.size(); ++k) {
    diagram[k].lower = static_cast<double>(k) / width;
    diagram[k].upper = static_cast<double>(k + 1) / width;
  }
  for (const std::int32_t u : nodes) {
    const Index best = detail::most_probable(probabilities, class_count, u);
    const double confidence = probabilities[static_cast<std::size_t>(u * class_count + best)];
    // The edges decide, not the rounded product.
    std::size_t k = static_cast<std::size_t>(std::clamp(std::ceil(confidence * width) - 1, 0.0, width - 1));
    if (k > 0 && confidence <= diagram[k].lower) --k;
    if (k + 1 < diagram.size() && confidence > diagram[k].upper) ++k;
    ReliabilityBin& bin = diagram[k];
    ++bin.count;
    bin.confidence += confidence;
    if (best == labels[static_cast<std::size_t>(u)]) bin.accuracy += 1;
  }
  for (ReliabilityBin& bin : diagram) {
    if (bin.count == 0) continue;
    bin.confidence /= static_cast<double>(bin.count);
    bin.accuracy /= static_cast<double>(bin.count);
  }
  return diagram;
}

/// Expected calibration error: mean over the nodes of |accuracy − confidence| of their bins, in [0, 1].
///
/// \throws std::invalid_argument  a diagram without nodes
[[nodiscard]] inline double expected_calibration_error(std::span<const ReliabilityBin> diagram) {
  double error = 0;
  Index total = 0;
  for (const ReliabilityBin& bin : diagram) {
    error += static_cast<double>(bin.count) * std::abs(bin.accuracy - bin.confidence);
    total += bin.count;
  }
  require(total > 0, "diagram nodes", total, "at least one node is needed");
  return error / static_cast<double>(total);
}
/// The expected calibration error of reliability_diagram(), with its arguments. \throws std::invalid_argument  as there
[[nodiscard]] inline double expected_calibration_error(std::span<const double> probabilities, Index class_count,
                                                       std::span<const std::int32_t> labels,
                                                       std::span<const std::int32_t> nodes,
                                                       Index bins = default_bins) {
  return expected_calibration_error(reliability_diagram(probabilities, class_count, labels, nodes, bins));
}

}  // namespace sheafnn::uncertainty
