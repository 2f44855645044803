/// \file
/// Ordinal: a loss of ordered classes. math: "Numbers, counts and ordered classes" (3.67), (3.68).
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

namespace sheafnn {

/// One of K ordered classes per node, 0 < 1 < … < K − 1: −log p(y), mean over the known classes. The K − 1 outputs z are
/// thresholds θ of cumulative logits, P(y ≤ j) = sigmoid(θ_j), that increase for all z:
///
///     θ_0 = β_0 + z_0,    θ_j = θ_{j−1} + g_j,    g_j = (β_j − β_{j−1}) softplus(z_j)/log 2,    β_j = logit((j + 1)/K).
///
/// z = 0 gives all classes the probability 1/K; z_0 moves all thresholds alike. math: "Numbers, counts and ordered classes"
/// (3.67), (3.68).
///
/// Source: McCullagh, "Regression models for ordinal data", J. R. Statist. Soc. B 42 (1980), for cumulative logits.
///
/// Unchecked: as for Classification (losses.hpp).
class Ordinal {
 public:
  static constexpr std::string_view name = "ordinal";

  /// \param classes  n classes in [0, K), −1 where unknown
  explicit Ordinal(std::span<const std::int32_t> classes) : classes_(classes) {}
  explicit Ordinal(std::vector<std::int32_t>&&) = delete;  // it would dangle

  /// \param outputs  K − 1
  /// \throws std::invalid_argument  classes of another number, or out of range; less than two classes
  void validate(Index nodes, Index outputs) const {
    require_size(classes_, nodes, "classes");
    require(outputs >= 1, "outputs", outputs, "must be one less than the number of classes, which is at least 2");
    for (std::size_t u = 0; u < classes_.size(); ++u) {
      if (classes_[u] < -1 || classes_[u] > outputs) {
        throw_invalid_argument(detail::concat("classes[", u, "]"), classes_[u],
                               detail::concat("must be between 0 and ", outputs, ", or -1 where unknown"));
      }
    }
  }
  [[nodiscard]] bool known(Index u) const noexcept { return class_of(u) >= 0; }

  template <class S>
  double value_and_derivative(Execution, const MatrixView<S>& outputs, const NodeSelection& rows,
                              std::span<const std::int32_t> nodes, double share, const MatrixView<S>& bar) const {
    detail::fill_zero(bar);
    double sum = 0, count = 0;
    detail::for_known(*this, rows, nodes, [&](Index, Index) { ++count; });
    detail::for_known(*this, rows, nodes, [&](Index u, Index row) {
      sum += entry(outputs, row, class_of(u),
                   [&](Index j, double slope) { bar(row, j) = static_cast<S>(share / count * slope); });
    });
    return sum / count;
  }
  template <class S>
  void node_losses(Execution, const MatrixView<S>& outputs, const NodeSelection& rows,
                   std::span<const std::int32_t> nodes, std::span<double> losses) const {
    std::size_t i = 0;
    detail::for_rows(rows, nodes, [&](Index u, Index row) {
      losses[i++] = known(u) ? entry(outputs, row, class_of(u), [](Index, double) {}) : 0;
    });
  }
  [[nodiscard]] SHEAFNN_NOINLINE double mean_loss(const NodeSelection& rows, std::span<const std::int32_t> nodes,
                                                  std::span<const double> losses) const {
    double sum = 0, count = 0;
    for (const double loss : losses) sum += loss;
    detail::for_known(*this, rows, nodes, [&](Index, Index) { ++count; });
    return sum / count;
  }
  /// P(y ≤ j), j = 0, …, K − 2.
  template <class S>
  void predict(Execution, const MatrixView<S>& outputs, const NodeSelection& rows,
               const MatrixView<double>& predictions) const {
    for (Index row = 0; row < outputs.rows(); ++row) {
      double threshold = 0;
      for (Index j = 0; j < outputs.columns(); ++j) {
        threshold = next_threshold(threshold, j, outputs.columns(), static_cast<double>(outputs(row, j)));
        predictions(rows[row], j) += layers::sigmoid(threshold);
      }
    }
  }
  /// Mean −log p and accuracy of the most probable class.
  [[nodiscard]] Score score(const MatrixView<const double>& predictions,
                            std::span<const std::int32_t> nodes) const {
    Score r;
    double count = 0;
    const std::vector<double> all = probabilities(predictions);
    const std::size_t classes = static_cast<std::size_t>(predictions.columns()) + 1;
    for (const std::int32_t u : nodes) {
      if (!known(u)) continue;
      const auto p = std::span(all).subspan(static_cast<std::size_t>(u) * classes, classes);
      r.loss -= std::log(std::max(p[static_cast<std::size_t>(class_of(u))], std::numeric_limits<double>::min()));
      r.score += std::max_element(p.begin(), p.end()) - p.begin() == class_of(u) ? 1 : 0;
      ++count;
    }
    return {r.loss / count, r.score / count};
  }
  /// Probabilities of the classes, n × K, from predictions P(y ≤ j), n × (K − 1), which increase with j up to rounding.
  /// Takes any numbers.
  [[nodiscard]] static std::vector<double> probabilities(const MatrixView<const double>& predictions) {
    std::vector<double> r;
    for (Index u = 0; u < predictions.rows(); ++u) {
      double below = 0;
      for (const double p : predictions.row(u)) {
        r.push_back(std::max(p - below, 0.0));
        below = p;
      }
      r.push_back(std::max(1 - below, 0.0));
    }
    return r;
  }

 private:
  [[nodiscard]] std::int32_t class_of(Index u) const noexcept { return classes_[static_cast<std::size_t>(u)]; }
  /// (β_j − β_{j−1})/log 2 for j ≥ 1.
  [[nodiscard]] static double gap_factor(Index j, Index outputs) {
    const double i = static_cast<double>(j), classes = static_cast<double>(outputs) + 1;
    return std::log((i + 1) * (classes - i) / ((classes - i - 1) * i)) / 0.69314718055994530942;
  }
  /// θ_j from θ_{j−1} and z_j.
  [[nodiscard]] static double next_threshold(double before, Index j, Index outputs, double z) {
    return j == 0 ? z - std::log(static_cast<double>(outputs))
                  : before + gap_factor(j, outputs) * detail::softplus(z);
  }

  /// −log p(y) = −log sigmoid(θ_y) − log sigmoid(−θ_{y−1}) − log(1 − e^{−g_y}), the terms that exist.
  template <class S, class Slope>
  [[nodiscard]] static double entry(const MatrixView<S>& outputs, Index row, Index y, const Slope& slope) {
    const Index last = outputs.columns() - 1;
    const auto z = [&](Index j) { return static_cast<double>(outputs(row, j)); };
    const auto gap_slope = [&](Index j) { return gap_factor(j, outputs.columns()) * layers::sigmoid(z(j)); };
    double loss = 0, lower = 0, threshold = 0;  // θ_{y−1}, θ_y
    for (Index j = 0; j <= std::min(y, last); ++j) {
      lower = threshold;
      threshold = next_threshold(lower, j, outputs.columns(), z(j));
    }
    if (y > last) lower = threshold;
    double upper_slope = 0, lower_slope = 0;  // in θ_y and θ_{y−1}
    if (y <= last) {
      loss += detail::softplus(-threshold);
      upper_slope = -layers::sigmoid(-threshold);
    }
    if (y > 0) {
      loss += detail::softplus(lower);
      lower_slope = layers::sigmoid(lower);
    }
    if (y > 0 && y <= last) {
      const double g = gap_factor(y, outputs.columns()) * detail::softplus(z(y));
      // Where g is below rounding, 1 − e^{−g} is g, and log g is linear in z.
      const bool small = z(y) < -36;
      loss -= small ? std::log(gap_factor(y, outputs.columns())) + z(y) : std::log(-std::expm1(-g));
      slope(y, upper_slope * gap_slope(y) - (small ? 1.0 : gap_slope(y) / std::expm1(g)));
    }
    const double all = upper_slope + lower_slope;
    slope(0, all);
    for (Index j = 1; j < std::min(y, last + 1); ++j) slope(j, all * gap_slope(j));
    return loss;
  }

  std::span<const std::int32_t> classes_;
};

}  // namespace sheafnn
