/// \file
/// Temperature scaling: one parameter T > 0 that recalibrates a classifier, p = softmax(z / T).
///
/// Source: Guo, Pleiss, Sun, Weinberger, "On calibration of modern neural networks", ICML 2017, section 4.2.
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

/// Bounds of fitted temperatures. One is reached where the likelihood keeps growing towards T → 0 (every node is classified
/// correctly) or T → ∞ (the classifier is worse than none).
inline constexpr double lowest_temperature = 0.01;
inline constexpr double highest_temperature = 100;  ///< the upper one

}  // namespace sheafnn::uncertainty

namespace sheafnn::detail {

/// a − b of finite a ≤ b, finite: times a probability of 0 it is 0.
[[nodiscard]] inline double difference(double a, double b) {
  return std::max(a - b, std::numeric_limits<double>::lowest());
}

}  // namespace sheafnn::detail

namespace sheafnn::uncertainty {

/// softmax(logits / T) for every row of the n × C matrix `logits`; log-probabilities serve as logits.
///
/// \throws std::invalid_argument  T not positive and finite, a size that is not a multiple of C, or a logit that is
///                                not finite
[[nodiscard]] inline std::vector<double> apply_temperature(std::span<const double> logits, Index class_count,
                                                           double temperature) {
  require(temperature > 0 && std::isfinite(temperature), "temperature", temperature,
          "must be positive and finite");
  require(class_count >= 1, "class_count", class_count, "must be at least 1");
  const std::size_t classes = static_cast<std::size_t>(class_count);
  require(logits.size() % classes == 0, "logits", logits.size(), detail::concat("must be a multiple of ", classes));
  detail::check_all_rows("logits", logits, class_count, false);
  std::vector<double> p(logits.begin(), logits.end());
  for (std::size_t begin = 0; begin < p.size(); begin += classes) {
    const std::span<double> row = std::span(p).subspan(begin, classes);
    const double largest = *std::max_element(row.begin(), row.end());
    double sum = 0;
    for (double& x : row) sum += x = std::exp((x - largest) / temperature);
    for (double& x : row) x /= sum;
  }
  return p;
}

/// The temperature that minimises the mean NLL of the nodes.
///
/// In β = 1/T the NLL is convex: its derivative, the mean of E_p[z] − z_label with p = softmax(βz), grows with β.
/// Its root is found by Newton's method within a shrinking bracket of log β.
///
/// \param logits  n × C, row-major; log-probabilities serve as logits
/// \param nodes   rows that count, usually the validation nodes
/// \returns       T in [lowest_temperature, highest_temperature]; 1 where T makes no difference
/// \throws std::invalid_argument  sizes that do not match, no node, a label out of range, or a logit that is not
///                                finite
[[nodiscard]] inline double fit_temperature(std::span<const double> logits, Index class_count,
                                            std::span<const std::int32_t> labels,
                                            std::span<const std::int32_t> nodes) {
  detail::check_predictions("logits", logits, class_count, labels, nodes, false);
  struct Slope {
    double first = 0;   // dNLL/dβ
    double second = 0;  // d²NLL/dβ²
  };
  const auto slope = [&](double beta) {
    Slope r;
    for (const std::int32_t u : nodes) {
      const double* z = logits.data() + u * class_count;
      const double largest = *std::max_element(z, z + class_count);
      double sum = 0, mean = 0, square = 0;
      for (Index c = 0; c < class_count; ++c) {
        const double gap = detail::difference(z[c], largest);
        const double e = std::exp(beta * gap);
        sum += e;
        mean += e * gap;
        square += e * gap * gap;
      }
      mean /= sum;
      r.first += mean - detail::difference(z[labels[static_cast<std::size_t>(u)]], largest);
      r.second += square / sum - mean * mean;
    }
    return r;
  };
  double low = -std::log(highest_temperature);  // the bracket, in log β
  double high = -std::log(lowest_temperature);
  const double at_low = slope(std::exp(low)).first;
  const double at_high = slope(std::exp(high)).first;
  if (at_low == 0 && at_high == 0) return 1;
  if (at_low >= 0) return highest_temperature;
  if (at_high <= 0) return lowest_temperature;
  double x = 0;
  for (int step = 0; step < 200 && high - low > 1e-14; ++step) {
    const double beta = std::exp(x);
    const Slope s = slope(beta);
    if (s.first == 0) break;
    (s.first < 0 ? low : high) = x;
    double next = x - s.first / (s.second * beta);  // dβ = β d(log β)
    if (!(next > low && next < high)) next = 0.5 * (low + high);
    if (std::abs(next - x) <= 1e-15) break;
    x = next;
  }
  return std::exp(-x);
}

}  // namespace sheafnn::uncertainty
