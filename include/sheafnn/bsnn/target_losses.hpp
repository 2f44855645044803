/// \file
/// Losses of measurements and counts: Gaussian with a learned variance, Poisson.
///
/// Both are −log of a likelihood. What they predict are expectations, which are linear in the likelihood: the mean over
/// posterior samples belongs to the predictive mixture of the samples. Views of targets must outlive a loss, as for the
/// losses of losses.hpp. math: "Numbers, counts and ordered classes" (3.64) to (3.66).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "sheafnn/bsnn/loss.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/core/special_functions.hpp"
#include "sheafnn/core/views.hpp"
#include "sheafnn/graph/node_selection.hpp"
#include "sheafnn/nn/activation.hpp"
#include "sheafnn/uncertainty/intervals.hpp"
#include "sheafnn/uncertainty/metrics.hpp"

namespace sheafnn {

/// Real targets y ∈ R^k per node with Gaussian noise whose variance is learned: −log N(y; μ, v), mean over the known
/// targets. The 2k outputs are k means μ and k values s, with v = v₀ + e^s and a smallest variance v₀. Without v₀ the loss
/// has no lower bound: a network that fits a target exactly would let its variance fall to 0.
/// math: "Numbers, counts and ordered classes" (3.64), (3.65).
///
/// Source: Nix, Weigend, "Estimating the mean and variance of the target probability distribution", ICNN 1994.
///
/// Unchecked: as for Classification (losses.hpp).
class Gaussian : public detail::EntryLoss<Gaussian, double> {
 public:
  static constexpr std::string_view name = "gaussian";

  /// \param targets         n × k, NaN where unknown; of a size about 1, else choose least_variance for their size
  /// \param least_variance  v₀ \throws std::invalid_argument  not positive and finite
  explicit Gaussian(const MatrixView<const double>& targets, double least_variance = 1e-6)
      : EntryLoss(targets), least_variance_(least_variance), log_least_(std::log(least_variance)) {
    require(least_variance > 0 && std::isfinite(least_variance), "least_variance", least_variance,
            "must be positive and finite");
  }

  /// \throws std::invalid_argument  targets of another shape, or infinite ones
  void validate(Index nodes, Index outputs) const {
    detail::check_number_targets(targets_, nodes);
    const Index expected = 2 * targets_.columns();
    require(outputs == expected, "outputs", outputs,
            detail::concat("must be ", expected, " (means and logarithms of variances)"));
  }

  /// −log N(y; μ, v).
  template <class S, class Slope>
  [[nodiscard]] double entry(const MatrixView<S>& outputs, Index row, Index c, double y,
                             const Slope& slope) const {
    const Index of_variance = targets_.columns() + c;
    const double difference = static_cast<double>(outputs(row, c)) - y;
    const double s = static_cast<double>(outputs(row, of_variance)), log_v = log_variance(s);
    const double precision = std::exp(-log_v), square = difference * difference * precision;
    slope(c, difference * precision);
    slope(of_variance, 0.5 * (1 - square) * layers::sigmoid(s - log_least_));
    return density(square, log_v);
  }
  /// The moments E y = μ in the first k columns and E y² = μ² + v in the others.
  template <class S>
  void predict(Execution, const MatrixView<S>& outputs, const NodeSelection& rows,
               const MatrixView<double>& predictions) const {
    const Index k = targets_.columns();
    for (Index row = 0; row < outputs.rows(); ++row) {
      for (Index c = 0; c < k; ++c) {
        const double mean = static_cast<double>(outputs(row, c));
        predictions(rows[row], c) += mean;
        predictions(rows[row], k + c) +=
            mean * mean + std::exp(log_variance(static_cast<double>(outputs(row, k + c))));
      }
    }
  }
  /// Variances that moments (n × 2k) have: n × k, at least v₀.
  ///
  /// \throws std::invalid_argument  moments of another number of columns
  [[nodiscard]] std::vector<double> variances(const MatrixView<const double>& predictions) const {
    require_shape(predictions, predictions.rows(), 2 * targets_.columns(), "predictions");
    std::vector<double> r;
    for (Index u = 0; u < predictions.rows(); ++u) {
      for (Index c = 0; c < targets_.columns(); ++c) r.push_back(variance(predictions, u, c));
    }
    return r;
  }
  /// Central intervals of the predictive mixture. math: "Intervals of numbers" (6.13).
  ///
  /// \param samples  K × n × 2k, the moments that every sample predicts (sample_targets())
  /// \returns        bounds, n × k
  /// \throws std::invalid_argument  a size that does not match, or a coverage outside (0, 1)
  [[nodiscard]] uncertainty::Intervals intervals(std::span<const double> samples, Index sample_count,
                                                 double coverage) const {
    const Index k = targets_.columns(), rows = sample_count * targets_.rows();
    detail::require_product("samples", samples.size(), "samples * nodes * outputs",
                            {sample_count, targets_.rows(), 2 * k});
    const MatrixView<const double> moments(samples.data(), rows, 2 * k);
    std::vector<double> means, deviations = variances(moments);
    for (double& v : deviations) v = std::sqrt(v);
    for (Index i = 0; i < rows; ++i) {
      for (Index c = 0; c < k; ++c) means.push_back(moments(i, c));
    }
    return uncertainty::normal_mixture_intervals(means, deviations, sample_count, coverage);
  }
  /// Mean −log N of the normal distributions with the mixture's moments, and R² of the means over all known targets.
  [[nodiscard]] Score score(const MatrixView<const double>& predictions,
                            std::span<const std::int32_t> nodes) const {
    return mean_score(predictions, nodes, [&](double y, Index u, Index c) {
      const double difference = predictions(u, c) - y, v = variance(predictions, u, c);
      return density(difference * difference / v, std::log(v));
    });
  }

 private:
  [[nodiscard]] static double density(double square, double log_v) noexcept {
    return 0.5 * (square + log_v) + detail::half_log_two_pi;
  }
  /// log(v₀ + e^s).
  [[nodiscard]] double log_variance(double s) const noexcept {
    return log_least_ + detail::softplus(s - log_least_);
  }
  /// E y² − (E y)².
  [[nodiscard]] double variance(const MatrixView<const double>& predictions, Index u, Index c) const {
    const double mean = predictions(u, c);
    return std::max(predictions(u, targets_.columns() + c) - mean * mean, least_variance_);
  }

  double least_variance_, log_least_;
};

/// Counts y ∈ {0, 1, …}^k per node: −log Poisson(y; λ), mean over the known counts, with rates λ_c = b_c e^z of k outputs
/// z and k base rates b. With the mean counts as base rates a network starts at the right size.
/// math: "Numbers, counts and ordered classes" (3.66).
///
/// Unchecked: as for Classification (losses.hpp).
class Poisson : public detail::EntryLoss<Poisson, double> {
 public:
  static constexpr std::string_view name = "poisson";

  /// \param targets     n × k counts, NaN where unknown
  /// \param base_rates  k positive numbers, or empty: all 1
  explicit Poisson(const MatrixView<const double>& targets, std::span<const double> base_rates = {})
      : EntryLoss(targets), base_rates_(base_rates) {}

  Poisson(const MatrixView<const double>&, std::vector<double>&&) = delete;  // it would dangle

  /// \throws std::invalid_argument  targets of another shape, a target that is not a count, or a base rate that is not positive
  void validate(Index nodes, Index outputs) const {
    detail::check_number_targets(targets_, nodes, "0, 1, 2, …",
                                 [](double y) { return y >= 0 && y == std::floor(y); });
    require(outputs == targets_.columns(), "outputs", outputs,
            detail::concat("must be ", targets_.columns(), " (logarithms of rates)"));
    if (base_rates_.empty()) return;
    require_size(base_rates_, outputs, "base_rates");
    for (std::size_t c = 0; c < base_rates_.size(); ++c) {
      require(base_rates_[c] > 0 && std::isfinite(base_rates_[c]), ArgumentName({}, "base_rates", c),
              base_rates_[c], "must be positive and finite");
    }
  }

  /// −log Poisson(y; λ) = λ − y log λ + log y!.
  template <class S, class Slope>
  [[nodiscard]] double entry(const MatrixView<S>& outputs, Index row, Index c, double y,
                             const Slope& slope) const {
    const double z = static_cast<double>(outputs(row, c)), rate = base_rate(c) * std::exp(z);
    slope(c, rate - y);
    return loss_of(y, rate, std::log(base_rate(c)) + z);
  }
  /// Rates, which are the expected counts.
  template <class S>
  void predict(Execution, const MatrixView<S>& outputs, const NodeSelection& rows,
               const MatrixView<double>& predictions) const {
    detail::add_predictions(outputs, rows, predictions,
                            [&](double z, Index c) { return base_rate(c) * std::exp(z); });
  }
  /// Central intervals of the predictive mixture. math: "Intervals of numbers" (6.13).
  ///
  /// \param samples  K × n × k, the rates that every sample predicts (sample_targets())
  /// \returns        bounds, n × k
  /// \throws std::invalid_argument  a size that does not match, or a coverage outside (0, 1)
  [[nodiscard]] uncertainty::Intervals intervals(std::span<const double> samples, Index sample_count,
                                                 double coverage) const {
    detail::require_product("samples", samples.size(), "samples * nodes * outputs",
                            {sample_count, targets_.rows(), targets_.columns()});
    return uncertainty::poisson_mixture_intervals(samples, sample_count, coverage);
  }
  /// Mean −log Poisson of the mean rates, and R² of the mean rates over all counts.
  [[nodiscard]] Score score(const MatrixView<const double>& predictions,
                            std::span<const std::int32_t> nodes) const {
    return mean_score(predictions, nodes, [&](double y, Index u, Index c) {
      const double rate = std::max(predictions(u, c), std::numeric_limits<double>::min());
      return loss_of(y, rate, std::log(rate));
    });
  }

 private:
  /// −log Poisson(y; λ).
  [[nodiscard]] static double loss_of(double y, double rate, double log_rate) {
    return rate - y * log_rate + detail::log_factorial(y);
  }
  [[nodiscard]] double base_rate(Index c) const noexcept {
    return base_rates_.empty() ? 1.0 : base_rates_[static_cast<std::size_t>(c)];
  }

  std::span<const double> base_rates_;
};

}  // namespace sheafnn
