/// \file
/// Intervals of predicted numbers that contain the target with a given probability. Central intervals of a predictive
/// mixture, whose samples are normal or Poisson distributions; split-conformal intervals around any prediction.
///
/// A mixture of K samples has the distribution function F = mean F_k. Its central interval of coverage γ has the bounds
/// where F and 1 − F are (1 − γ)/2. It is right if the model is. The conformal interval μ ± τ s has a threshold τ that
/// calibration nodes determine. It contains the target with probability γ for any model, if these nodes and the others are
/// exchangeable. math: "Intervals of numbers" (6.13), (6.14).
///
/// Source: Lei, G'Sell, Rinaldo, Tibshirani, Wasserman, "Distribution-free predictive inference for regression", JASA 2018
/// (residuals as scores, also divided by a predicted size).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/core/special_functions.hpp"
#include "sheafnn/core/views.hpp"
#include "sheafnn/uncertainty/conformal.hpp"

namespace sheafnn::uncertainty {

/// A lower and an upper bound for every predicted number.
struct Intervals {
  std::vector<double> lower, upper;
};

}  // namespace sheafnn::uncertainty

namespace sheafnn::detail {

/// Checks K × N values of samples and a coverage. \returns N
///
/// \throws std::invalid_argument  no sample, a size that is not a multiple of K, or a coverage outside (0, 1)
inline std::size_t check_mixture(std::string_view name, std::size_t size, Index sample_count, double coverage) {
  require(sample_count >= 1, "sample_count", sample_count, "must be at least 1");
  const std::size_t samples = static_cast<std::size_t>(sample_count);
  require(size % samples == 0, name, size, concat("must be a multiple of ", samples));
  require(coverage > 0 && coverage < 1, "coverage", coverage, "must be above 0 and below 1");
  return size / samples;
}

/// \throws std::invalid_argument  a deviation that is not positive and finite
inline void require_deviation(std::span<const double> deviations, std::size_t i) {
  require(deviations[i] > 0 && std::isfinite(deviations[i]), ArgumentName({}, "deviations", i), deviations[i],
          "must be positive and finite");
}

/// The x at which the mean upper tail of normal distributions is `tail`, below ½, by bisection. Unchecked: as
/// normal_mixture_intervals().
///
/// \param at  at(k): mean and deviation of sample k
template <class At>
[[nodiscard]] double upper_normal_quantile(const At& at, std::size_t samples, double tail) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (std::size_t k = 0; k < samples; ++k) {  // tails of 0 and 1 in double precision
    const auto [mean, deviation] = at(k);
    low = std::min(low, mean - 40 * deviation);
    high = std::max(high, mean + 40 * deviation);
  }
  for (int step = 0; step < 200; ++step) {
    const double middle = low + (high - low) / 2;
    if (!(low < middle && middle < high)) break;
    double sum = 0;
    for (std::size_t k = 0; k < samples; ++k) {
      const auto [mean, deviation] = at(k);
      sum += 0.5 * std::erfc((middle - mean) / deviation * 0.70710678118654752440);
    }
    (sum > tail * static_cast<double>(samples) ? low : high) = middle;
  }
  return high;
}

/// The smallest count at which the mean Poisson distribution function of the samples reaches p, by bisection. Unchecked: as
/// poisson_mixture_intervals().
///
/// \param at  at(k): rate of sample k
template <class At>
[[nodiscard]] double poisson_quantile(const At& at, std::size_t samples, double p) {
  double low = std::numeric_limits<double>::infinity(), high = 0;
  for (std::size_t k = 0; k < samples; ++k) {  // tails below rounding
    const double rate = at(k), reach = 12 * std::sqrt(rate) + 40;
    low = std::min(low, std::floor(rate - reach));
    high = std::max(high, std::ceil(rate + reach));
  }
  low = std::max(low, 0.0) - 1;
  while (high - low > 1) {
    const double middle = std::floor((low + high) / 2);
    double sum = 0;
    for (std::size_t k = 0; k < samples; ++k) sum += poisson_cdf(middle, at(k));
    (sum < p * static_cast<double>(samples) ? low : high) = middle;
  }
  return high;
}

}  // namespace sheafnn::detail

namespace sheafnn::uncertainty {

/// Central intervals of mixtures of K normal distributions each. math: "Intervals of numbers" (6.13).
///
/// \param means       K × N, row-major: of K samples for each of N values
/// \param deviations  K × N, positive
/// \param coverage    γ, in (0, 1)
/// \returns           N bounds each
/// \throws std::invalid_argument  sizes that do not match, a number that is not finite, a deviation that is not positive,
///         or γ out of range
[[nodiscard]] inline Intervals normal_mixture_intervals(std::span<const double> means,
                                                        std::span<const double> deviations, Index sample_count,
                                                        double coverage) {
  const std::size_t count = detail::check_mixture("means", means.size(), sample_count, coverage);
  require_size(deviations, static_cast<Index>(means.size()), "deviations");
  for (std::size_t i = 0; i < means.size(); ++i) {
    require(std::isfinite(means[i]), ArgumentName({}, "means", i), means[i], "must be finite");
    detail::require_deviation(deviations, i);
  }
  const std::size_t samples = static_cast<std::size_t>(sample_count);
  Intervals r;
  for (std::size_t i = 0; i < count; ++i) {
    const auto bound = [&](double sign) {  // the lower tail of x is the upper one of −x
      const auto at = [&](std::size_t k) {
        return std::pair(sign * means[k * count + i], deviations[k * count + i]);
      };
      return sign * detail::upper_normal_quantile(at, samples, (1 - coverage) / 2);
    };
    r.lower.push_back(bound(-1));
    r.upper.push_back(bound(1));
  }
  return r;
}

/// Central intervals of mixtures of K Poisson distributions each: the smallest counts at which F reaches (1 − γ)/2 and
/// (1 + γ)/2. Both bounds belong to the interval, which has at least the coverage γ. math: "Intervals of numbers" (6.13).
///
/// \param rates     K × N, row-major: of K samples for each of N counts; 0 … 10⁹
/// \param coverage  γ, in (0, 1)
/// \throws std::invalid_argument  a size that does not match, a rate out of range, or γ out of range
[[nodiscard]] inline Intervals poisson_mixture_intervals(std::span<const double> rates, Index sample_count,
                                                         double coverage) {
  const std::size_t count = detail::check_mixture("rates", rates.size(), sample_count, coverage);
  for (std::size_t i = 0; i < rates.size(); ++i) {
    if (rates[i] >= 0 && rates[i] <= 1e9) continue;
    throw_invalid_argument(detail::concat("rates[", i, "]"), rates[i], "must be between 0 and 1e9");
  }
  const std::size_t samples = static_cast<std::size_t>(sample_count);
  Intervals r;
  for (std::size_t i = 0; i < count; ++i) {
    const auto at = [&](std::size_t k) { return rates[k * count + i]; };
    r.lower.push_back(detail::poisson_quantile(at, samples, (1 - coverage) / 2));
    r.upper.push_back(detail::poisson_quantile(at, samples, (1 + coverage) / 2));
  }
  return r;
}

/// Thresholds of conformal intervals, for every column c: the ⌈(n + 1) γ⌉-th smallest score |y − μ|/s of its n calibration
/// nodes with a known target. ∞ where this rank is above n. math: "Intervals of numbers" (6.14).
///
/// \param targets      rows × k, row-major, NaN where unknown
/// \param predictions  rows × k
/// \param deviations   rows × k, positive: predicted sizes s of the residuals, such as standard deviations; or empty: s = 1
/// \param nodes        the calibration rows, which must not have served to train or to choose the model
/// \param coverage     γ, in (0, 1)
/// \returns            k thresholds
/// \throws std::invalid_argument  sizes that do not match; a node or γ out of range
/// \throws std::invalid_argument  at a node, a prediction that is not finite, or a deviation that is not positive and finite
[[nodiscard]] inline std::vector<double> residual_thresholds(std::span<const double> targets,
                                                             std::span<const double> predictions,
                                                             std::span<const double> deviations, Index columns,
                                                             std::span<const std::int32_t> nodes,
                                                             double coverage) {
  require(columns >= 1, "columns", columns, "must be at least 1");
  require(coverage > 0 && coverage < 1, "coverage", coverage, "must be above 0 and below 1");
  const std::size_t k = static_cast<std::size_t>(columns);
  require(targets.size() % k == 0, "targets", targets.size(), detail::concat("must be a multiple of ", k));
  require_size(predictions, static_cast<Index>(targets.size()), "predictions");
  if (!deviations.empty()) require_size(deviations, static_cast<Index>(targets.size()), "deviations");
  const Index rows = static_cast<Index>(targets.size() / k);
  std::vector<double> r;
  for (std::size_t c = 0; c < k; ++c) {
    std::vector<double> scores;
    for (std::size_t j = 0; j < nodes.size(); ++j) {
      if (nodes[j] < 0 || nodes[j] >= rows) {
        throw_invalid_argument(detail::concat("nodes[", j, "]"), nodes[j],
                               detail::concat("must be between 0 and ", rows - 1));
      }
      const std::size_t i = static_cast<std::size_t>(nodes[j]) * k + c;
      if (std::isnan(targets[i])) continue;
      require(std::isfinite(predictions[i]), ArgumentName({}, "predictions", i), predictions[i], "must be finite");
      if (!deviations.empty()) detail::require_deviation(deviations, i);
      const double deviation = deviations.empty() ? 1.0 : deviations[i];
      scores.push_back(std::abs(targets[i] - predictions[i]) / deviation);
    }
    r.push_back(conformal_threshold(std::move(scores), 1 - coverage));
  }
  return r;
}

/// The intervals μ ± τ_c s of all rows.
///
/// \param thresholds  k values τ, as residual_thresholds() returns them
/// \throws std::invalid_argument  sizes that do not match, a negative threshold, or a deviation that is not positive
///         and finite
[[nodiscard]] inline Intervals residual_intervals(std::span<const double> predictions,
                                                  std::span<const double> deviations,
                                                  std::span<const double> thresholds) {
  require(!thresholds.empty(), "thresholds", 0, "at least one is needed");
  require(predictions.size() % thresholds.size() == 0, "predictions", predictions.size(),
          detail::concat("must be a multiple of ", thresholds.size()));
  if (!deviations.empty()) require_size(deviations, static_cast<Index>(predictions.size()), "deviations");
  for (std::size_t i = 0; i < deviations.size(); ++i) detail::require_deviation(deviations, i);
  for (std::size_t c = 0; c < thresholds.size(); ++c) {
    require(thresholds[c] >= 0, ArgumentName({}, "thresholds", c), thresholds[c], "must be at least 0");
  }
  Intervals r;
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    const double half = thresholds[i % thresholds.size()] * (deviations.empty() ? 1.0 : deviations[i]);
    r.lower.push_back(predictions[i] - half);
    r.upper.push_back(predictions[i] + half);
  }
  return r;
}

/// What intervals are like where targets are known.
struct IntervalFigures {
  double coverage = 0;    ///< share of the targets in their intervals, bounds included
  double mean_width = 0;  ///< of the intervals
};

/// Coverage and width of intervals. Targets of NaN do not count.
///
/// \param targets  as many as bounds
/// \throws std::invalid_argument  sizes that do not match, or no target that is known
[[nodiscard]] inline IntervalFigures evaluate_intervals(const Intervals& intervals,
                                                        std::span<const double> targets) {
  require_size(targets, static_cast<Index>(intervals.lower.size()), "targets");
  require_size(std::span(intervals.upper), static_cast<Index>(intervals.lower.size()), "upper");
  IntervalFigures r;
  double count = 0;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (std::isnan(targets[i])) continue;
    r.coverage += intervals.lower[i] <= targets[i] && targets[i] <= intervals.upper[i] ? 1 : 0;
    r.mean_width += intervals.upper[i] - intervals.lower[i];
    ++count;
  }
  require(count > 0, "targets", targets.size(), "none of them is known");
  return {r.coverage / count, r.mean_width / count};
}

}  // namespace sheafnn::uncertainty
