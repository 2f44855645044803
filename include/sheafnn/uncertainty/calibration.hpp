/// \file
/// Calibration errors, and their expectation for a calibrated model of the same confidences. Bins have equal width or equal
/// mass, for the predicted class or class by class.
///
/// A forecast i says with probability c_i that something will happen; y_i ∈ {0, 1} says whether it did. The event: the label
/// of a node is its most probable class, or is class c. The forecasts are sorted into bins k of n_k, n in all. With S_k =
/// Σ_{i∈k} (y_i − c_i)
///
///     ECE = Σ_k |S_k| / n.
///
/// For a calibrated model, y_i is 1 with probability c_i, and S_k is a sum of independent terms of mean 0. So E|S_k| and the
/// expectation of the ECE are above 0, the more so the fewer nodes there are. S_k + Σ c_i is a Poisson–binomial variable,
/// whose distribution a recurrence over the nodes gives exactly; no simulation is needed. Then
///
///     E[ECE | calibrated] = Σ_k E|S_k| / n,    Var[ECE | calibrated] = Σ_k (Σ_{i∈k} c_i (1 − c_i) − (E|S_k|)²) / n²,
///     debiased ECE        = ECE − E[ECE | calibrated].
///
/// The debiased ECE has mean 0 for a calibrated model. For another one its mean is at least the error of the bins less the
/// expectation. The squared error of the bins has an estimate without bias for every model, in bins of two nodes and more,
///
///     Σ_k (n_k / n) Σ_{i≠j∈k} (y_i − c_i)(y_j − c_j) / (n_k (n_k − 1)).
///
/// Sources: Naeini, Cooper, Hauskrecht, "Obtaining well calibrated probabilities using Bayesian binning", AAAI 2015 (ECE).
/// Nixon, Dusenberry, Zhang, Jerfel, Tran, "Measuring calibration in deep learning", CVPR workshops 2019 (adaptive and
/// class-wise errors). Vaicenavicius et al., "Evaluating model calibration in classification", AISTATS 2019 (expectation
/// under calibration). Kumar, Liang, Ma, "Verified uncertainty calibration", NeurIPS 2019 (debiased squared error; this is
/// theirs where the confidences of a bin are equal). math: "Calibration" (6.4), (6.6).
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
#include "sheafnn/uncertainty/metrics.hpp"

namespace sheafnn::uncertainty {

/// How forecasts are sorted into bins: (lo, hi] of equal width in [0, 1], or bins of about equal numbers of forecasts
/// (adaptive ECE).
enum class Binning { equal_width, equal_mass };

/// A calibration error and what is known about it; see the file comment. math: "Calibration" (6.4), (6.6).
struct CalibrationError {
  double error = 0;      ///< ECE, in [0, 1]
  double expected = 0;   ///< its mean for a calibrated model with these confidences
  double deviation = 0;  ///< its standard deviation for such a model; NaN for class-wise errors
  double squared =
      0;  ///< debiased squared error of the bins; negative values are chance; NaN without a bin of two nodes

  /// The ECE minus the mean ECE of a calibrated model, which may be negative.
  [[nodiscard]] double debiased() const noexcept { return error - expected; }
};

}  // namespace sheafnn::uncertainty

namespace sheafnn::detail {

/// Something predicted with a probability, and whether it came about.
struct Forecast {
  double probability;
  bool happened;
};

/// E|X − E X| of a number X of successes, p[i] being the probabilities of success. O(n √n) operations: of the
/// distribution only what is above 1e-25 is kept.
///
/// \param mass  memory to work in
[[nodiscard]] inline double mean_absolute_deviation(std::span<const Forecast> forecasts,
                                                    std::vector<double>& mass) {
  mass.assign(forecasts.size() + 2, 0.0);
  mass[0] = 1;
  std::size_t begin = 0, end = 1;  // mass[k] is the probability of X = k, and 0 outside begin … end − 1
  double mean = 0;
  for (const Forecast& forecast : forecasts) {
    const double p = std::min(forecast.probability, 1.0);
    mean += p;
    for (std::size_t k = end; k > begin; --k) mass[k] = mass[k] * (1 - p) + mass[k - 1] * p;
    mass[begin] *= 1 - p;
    ++end;
    constexpr double least = 1e-25;
    while (mass[begin] < least) mass[begin++] = 0;
    while (mass[end - 1] < least) mass[--end] = 0;
  }
  double sum = 0;
  for (std::size_t k = begin; k < end; ++k) sum += mass[k] * std::abs(static_cast<double>(k) - mean);
  return sum;
}

/// Sorts forecasts by their probabilities and reports where bins end. Bins of equal mass never separate equal
/// probabilities, so there may be fewer bins.
[[nodiscard]] inline std::vector<std::size_t> sort_into_bins(std::vector<Forecast>& forecasts, Index bins,
                                                             Binning binning) {
  std::sort(forecasts.begin(), forecasts.end(),
            [](const Forecast& a, const Forecast& b) { return a.probability < b.probability; });
  const std::size_t n = forecasts.size(), count = static_cast<std::size_t>(bins);
  std::vector<std::size_t> ends;
  std::size_t end = 0;
  for (std::size_t k = 1; k <= count; ++k) {
    if (k == count) {
      end = n;
    } else if (binning == Binning::equal_width) {
      const double edge = static_cast<double>(k) / static_cast<double>(count);
      while (end < n && forecasts[end].probability <= edge) ++end;
    } else {
      const std::size_t wanted = n * k / count;
      while (end < n &&
             (end < wanted || (end > 0 && forecasts[end].probability == forecasts[end - 1].probability))) {
        ++end;
      }
    }
    ends.push_back(end);
  }
  if (binning == Binning::equal_mass) ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  if (binning == Binning::equal_mass && ends.size() > 1 && ends.front() == 0) ends.erase(ends.begin());
  return ends;
}

[[nodiscard]] inline CalibrationError calibration_error_of(std::vector<Forecast>& forecasts, Index bins,
                                                           Binning binning) {
  CalibrationError r;
  const double n = static_cast<double>(forecasts.size());
  double variance = 0, counted = 0;
  std::vector<double> mass;
  std::size_t begin = 0;
  for (const std::size_t end : sort_into_bins(forecasts, bins, binning)) {
    const auto bin = std::span<const Forecast>(forecasts).subspan(begin, end - begin);
    begin = end;
    if (bin.empty()) continue;
    double sum = 0, squares = 0, calibrated_variance = 0;
    for (const auto& [probability, happened] : bin) {
      const double c = std::min(probability, 1.0), difference = (happened ? 1.0 : 0.0) - c;
      sum += difference;
      squares += difference * difference;
      calibrated_variance += c * (1 - c);
    }
    const double expected = mean_absolute_deviation(bin, mass), count = static_cast<double>(bin.size());
    r.error += std::abs(sum) / n;
    r.expected += expected / n;
    variance += std::max(0.0, calibrated_variance - expected * expected);
    if (bin.size() < 2) continue;
    r.squared += (sum * sum - squares) / (count - 1);
    counted += count;
  }
  r.deviation = std::sqrt(variance) / n;
  r.squared = counted > 0 ? r.squared / counted : std::numeric_limits<double>::quiet_NaN();
  return r;
}

/// For every node: the largest probability, and whether that class is the label.
[[nodiscard]] inline std::vector<Forecast> confidences(std::span<const double> probabilities, Index class_count,
                                                       std::span<const std::int32_t> labels,
                                                       std::span<const std::int32_t> nodes) {
  std::vector<Forecast> r;
  for (const std::int32_t u : nodes) {
    const Index best = most_probable(probabilities, class_count, u);
    r.push_back({probabilities[static_cast<std::size_t>(u * class_count + best)],
                 best == labels[static_cast<std::size_t>(u)]});
  }
  return r;
}

inline void check_bins(Index bins) { require_between("bins", bins, 1, 1000000); }

}  // namespace sheafnn::detail

namespace sheafnn::uncertainty {

/// Calibration error of the most probable class: the ECE, or with bins of equal mass the adaptive one.
///
/// \param probabilities  n × C, row-major
/// \param nodes          rows that count
/// \param bins           1 … 10⁶
/// \throws std::invalid_argument  sizes that do not match; no node; a label, node, probability or number of bins out of
///                                range. The same holds for all functions of this header
[[nodiscard]] inline CalibrationError calibration_error(std::span<const double> probabilities, Index class_count,
                                                        std::span<const std::int32_t> labels,
                                                        std::span<const std::int32_t> nodes,
                                                        Index bins = default_bins,
                                                        Binning binning = Binning::equal_width) {
  detail::check_predictions("probabilities", probabilities, class_count, labels, nodes, true);
  detail::check_bins(bins);
  std::vector<detail::Forecast> forecasts = detail::confidences(probabilities, class_count, labels, nodes);
  return detail::calibration_error_of(forecasts, bins, binning);
}

/// Mean over the classes c of the calibration error of the forecasts "the label is c", one for every node.
///
/// \returns  deviation is NaN: what the classes of a node score is not independent
/// \throws std::invalid_argument  as accuracy(), or bins out of range
[[nodiscard]] inline CalibrationError class_wise_calibration_error(
    std::span<const double> probabilities, Index class_count, std::span<const std::int32_t> labels,
    std::span<const std::int32_t> nodes, Index bins = default_bins, Binning binning = Binning::equal_width) {
  detail::check_predictions("probabilities", probabilities, class_count, labels, nodes, true);
  detail::check_bins(bins);
  CalibrationError r;
  std::vector<detail::Forecast> forecasts;
  for (Index c = 0; c < class_count; ++c) {
    forecasts.clear();
    for (const std::int32_t u : nodes) {
      forecasts.push_back({probabilities[static_cast<std::size_t>(u * class_count + c)],
                           labels[static_cast<std::size_t>(u)] == c});
    }
    const CalibrationError one = detail::calibration_error_of(forecasts, bins, binning);
    r.error += one.error / static_cast<double>(class_count);
    r.expected += one.expected / static_cast<double>(class_count);
    r.squared += one.squared / static_cast<double>(class_count);
  }
  r.deviation = std::numeric_limits<double>::quiet_NaN();
  return r;
}

/// The reliability diagram with bins of equal mass: as reliability_diagram(), but each bin has about as many nodes as the
/// others. [lower, upper] are the least and the largest confidence in a bin. There may be fewer bins than requested, and no
/// bin is empty.
///
/// \throws std::invalid_argument  as accuracy(), or bins out of range
[[nodiscard]] inline std::vector<ReliabilityBin> adaptive_reliability_diagram(
    std::span<const double> probabilities, Index class_count, std::span<const std::int32_t> labels,
    std::span<const std::int32_t> nodes, Index bins = default_bins) {
  detail::check_predictions("probabilities", probabilities, class_count, labels, nodes, true);
  detail::check_bins(bins);
  std::vector<detail::Forecast> forecasts = detail::confidences(probabilities, class_count, labels, nodes);
  std::vector<ReliabilityBin> diagram;
  std::size_t begin = 0;
  for (const std::size_t end : detail::sort_into_bins(forecasts, bins, Binning::equal_mass)) {
    ReliabilityBin bin{forecasts[begin].probability, forecasts[end - 1].probability,
                       static_cast<Index>(end - begin)};
    for (; begin < end; ++begin) {
      bin.confidence += forecasts[begin].probability;
      bin.accuracy += forecasts[begin].happened ? 1 : 0;
    }
    bin.confidence /= static_cast<double>(bin.count);
    bin.accuracy /= static_cast<double>(bin.count);
    diagram.push_back(bin);
  }
  return diagram;
}

}  // namespace sheafnn::uncertainty
