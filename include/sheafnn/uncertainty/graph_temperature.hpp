/// \file
/// Temperature scaling with two temperatures: one for nodes whose neighbours have similar predictions, and one for the
/// other nodes.
///
/// With g_u ∈ [0, 1] the agreement of node u with its neighbours, p_u = softmax(β_u z_u) where
///
///     β_u = (1 − g_u) β₀ + g_u β₁,    g_u = mean_{v∼u} Σ_c p_u(c) p_v(c),    T = 1/β.
///
/// β₀ = β₁ is plain temperature scaling (uncertainty/temperature.hpp). The NLL is convex in (β₀, β₁): both are found by
/// Newton's method within the same bounds. math: "Temperature scaling on graphs" (6.10).
///
/// It has a temperature per node that depends on its neighbourhood, which is the idea of GATS. Source: Hsu, Shen, Tomani,
/// Cremers, "What makes graph neural networks miscalibrated?", NeurIPS 2022. Theirs has attention and six terms.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/graph/graph.hpp"
#include "sheafnn/uncertainty/metrics.hpp"
#include "sheafnn/uncertainty/temperature.hpp"

namespace sheafnn::uncertainty {

/// Temperatures in [lowest_temperature, highest_temperature]. math: "Temperature scaling on graphs" (6.10).
struct GraphTemperature {
  double disagreeing = 1;  ///< 1/β₀, of nodes with agreement 0
  double agreeing = 1;     ///< 1/β₁, of nodes with agreement 1

  /// The temperature of a node, T_u = 1 / ((1 − g) β₀ + g β₁). Unchecked: g is in [0, 1] and both temperatures are positive.
  [[nodiscard]] double of(double agreement) const noexcept {
    return 1 / ((1 - agreement) / disagreeing + agreement / agreeing);
  }
};

/// The agreement g_u of every node with its neighbours, averaged over the neighbours. It is the probability that classes
/// drawn from its prediction and from a neighbour's prediction are equal. Nodes without neighbours get the mean over the
/// other nodes.
///
/// \param probabilities  n × C, row-major
/// \returns              n, in [0, 1]
/// \throws std::invalid_argument  another number of probabilities, one outside [0, 1], or a row that does not sum to 1
[[nodiscard]] inline std::vector<double> neighbour_agreement(const Graph& graph,
                                                             std::span<const double> probabilities,
                                                             Index class_count) {
  require(class_count >= 1, "class_count", class_count, "must be at least 1");
  const Index n = graph.node_count();
  detail::require_rows("probabilities", probabilities.size(), n, class_count);
  detail::check_all_rows("probabilities", probabilities, class_count, true);
  std::vector<double> r(static_cast<std::size_t>(n), 0.0);
  double sum = 0, count = 0;
  for (Index u = 0; u < n; ++u) {
    if (graph.degree(u) == 0) continue;
    double& agreement = r[static_cast<std::size_t>(u)];
    const double* const own = probabilities.data() + u * class_count;
    for (Index a = graph.first_arc(u); a < graph.first_arc(u + 1); ++a) {
      const double* const other = probabilities.data() + graph.target(a) * class_count;
      for (Index c = 0; c < class_count; ++c) agreement += own[c] * other[c];
    }
    agreement = std::min(agreement / static_cast<double>(graph.degree(u)), 1.0);
    sum += agreement;
    ++count;
  }
  const double mean = count > 0 ? sum / count : 0.0;
  for (Index u = 0; u < n; ++u) {
    if (graph.degree(u) == 0) r[static_cast<std::size_t>(u)] = mean;
  }
  return r;
}

}  // namespace sheafnn::uncertainty

namespace sheafnn::detail {

inline void check_agreement(std::span<const double> agreement, std::size_t rows) {
  require(agreement.size() == rows, "agreement", agreement.size(), concat("expected ", rows, ", one per node"));
  for (std::size_t u = 0; u < agreement.size(); ++u) {
    require(agreement[u] >= 0 && agreement[u] <= 1, ArgumentName({}, "agreement", u), agreement[u],
            "must be between 0 and 1");
  }
}

/// Mean NLL of some nodes at (β₀, β₁), with its derivatives.
struct TemperatureLoss {
  double value = 0;
  std::array<double, 2> gradient{};
  std::array<double, 3> hessian{};  ///< of (β₀, β₀), (β₀, β₁), (β₁, β₁)
};
[[nodiscard]] inline TemperatureLoss temperature_loss(std::span<const double> logits, Index class_count,
                                                      std::span<const double> agreement,
                                                      std::span<const std::int32_t> labels,
                                                      std::span<const std::int32_t> nodes,
                                                      const std::array<double, 2>& beta) {
  TemperatureLoss r;
  const double share = 1 / static_cast<double>(nodes.size());
  for (const std::int32_t u : nodes) {
    const double* const z = logits.data() + u * class_count;
    const double g = agreement[static_cast<std::size_t>(u)];
    const std::array<double, 2> weight = {1 - g, g};
    const double own = weight[0] * beta[0] + weight[1] * beta[1];
    const double largest = *std::max_element(z, z + class_count);
    double sum = 0, mean = 0, square = 0;
    for (Index c = 0; c < class_count; ++c) {
      const double gap = detail::difference(z[c], largest), e = std::exp(own * gap);
      sum += e;
      mean += e * gap;
      square += e * gap * gap;
    }
    mean /= sum;
    const double of_label = detail::difference(z[labels[static_cast<std::size_t>(u)]], largest);
    const double variance = std::max(0.0, square / sum - mean * mean);
    r.value += share * (std::log(sum) - own * of_label);
    for (std::size_t i = 0; i < 2; ++i) {
      r.gradient[i] += share * weight[i] * (mean - of_label);
      for (std::size_t j = i; j < 2; ++j) r.hessian[i + j] += share * weight[i] * weight[j] * variance;
    }
  }
  return r;
}

/// The Newton step for the free coordinates; a descent step if the Hessian does not allow a Newton step.
[[nodiscard]] inline std::array<double, 2> newton_step(const TemperatureLoss& at,
                                                       const std::array<bool, 2>& free) {
  const auto& g = at.gradient;
  const auto& h = at.hessian;
  const double ridge = 1e-12 * (h[0] + h[2]) + 1e-300;
  const double a = h[0] + ridge, b = h[1], c = h[2] + ridge, determinant = a * c - b * b;
  if (free[0] && free[1]) {
    if (determinant > 0) return {-(c * g[0] - b * g[1]) / determinant, -(a * g[1] - b * g[0]) / determinant};
    return {-g[0] / a, -g[1] / c};
  }
  return {free[0] ? -g[0] / a : 0.0, free[1] ? -g[1] / c : 0.0};
}

}  // namespace sheafnn::detail

namespace sheafnn::uncertainty {

/// The temperatures that minimise the mean NLL of the nodes. Their NLL is at most the NLL of the plain temperature.
///
/// \param logits     n × C, row-major; log-probabilities serve as logits
/// \param agreement  n, of neighbour_agreement(), or any other number in [0, 1] of every node
/// \param nodes      rows that count, usually the validation nodes
/// \throws std::invalid_argument  sizes that do not match, no node, a label or an agreement out of range, or a logit that
///                                is not finite
[[nodiscard]] inline GraphTemperature fit_graph_temperature(std::span<const double> logits, Index class_count,
                                                            std::span<const double> agreement,
                                                            std::span<const std::int32_t> labels,
                                                            std::span<const std::int32_t> nodes) {
  const double plain = fit_temperature(logits, class_count, labels, nodes);
  detail::check_agreement(agreement, labels.size());
  const auto [least, most] = std::minmax_element(nodes.begin(), nodes.end(), [&](std::int32_t u, std::int32_t v) {
    return agreement[static_cast<std::size_t>(u)] < agreement[static_cast<std::size_t>(v)];
  });
  // Nothing separates them.
  if (agreement[static_cast<std::size_t>(*least)] == agreement[static_cast<std::size_t>(*most)])
    return {plain, plain};
  constexpr double low = 1 / highest_temperature, high = 1 / lowest_temperature;
  const auto loss = [&](const std::array<double, 2>& beta) {
    return detail::temperature_loss(logits, class_count, agreement, labels, nodes, beta);
  };
  std::array<double, 2> beta = {1 / plain, 1 / plain};
  detail::TemperatureLoss now = loss(beta);
  for (int iteration = 0; iteration < 500; ++iteration) {
    std::array<bool, 2> free{};
    for (std::size_t i = 0; i < 2; ++i) {
      free[i] = !(beta[i] <= low && now.gradient[i] >= 0) && !(beta[i] >= high && now.gradient[i] <= 0);
    }
    const std::array<double, 2> step = detail::newton_step(now, free);
    // Backtracking on the way that the bounds bend; Armijo's condition.
    bool moved = false;
    for (double length = 1; length > 1e-12 && !moved; length /= 2) {
      std::array<double, 2> next{};
      double promised = 0, distance = 0;
      for (std::size_t i = 0; i < 2; ++i) {
        next[i] = std::clamp(beta[i] + length * step[i], low, high);
        promised += now.gradient[i] * (next[i] - beta[i]);
        distance = std::max(distance, std::abs(next[i] - beta[i]) / beta[i]);
      }
      if (distance < 1e-13) break;
      if (!(promised < 0)) continue;  // bent at a bound, a long way may lead uphill
      const detail::TemperatureLoss there = loss(next);
      if (!(there.value <= now.value + 1e-4 * promised)) continue;
      moved = true;
      beta = next;
      now = there;
    }
    if (!moved) break;
  }
  // Where the NLL falls up to a bound, by less than its rounding in the end, the bound it is.
  for (std::size_t i = 0; i < 2; ++i) {
    if (now.gradient[i] == 0) continue;
    const bool up = now.gradient[i] < 0;
    std::array<double, 2> bound = beta;
    bound[i] = up ? high : low;
    const detail::TemperatureLoss there = loss(bound);
    if ((up ? there.gradient[i] < 0 : there.gradient[i] > 0) && there.value <= now.value) {
      beta = bound;
      now = there;
    }
  }
  return {1 / beta[0], 1 / beta[1]};
}

/// softmax(logits_u / T_u) for every node, T_u = temperature.of(agreement_u).
///
/// \param logits  n × C, row-major; log-probabilities serve as logits
/// \throws std::invalid_argument  a size that does not match; an agreement out of range
/// \throws std::invalid_argument  a temperature that is not positive and finite; a logit that is not finite
[[nodiscard]] inline std::vector<double> apply_graph_temperature(std::span<const double> logits, Index class_count,
                                                                 std::span<const double> agreement,
                                                                 const GraphTemperature& temperature) {
  for (const auto& [name, t] : {std::pair("temperature.disagreeing", temperature.disagreeing),
                                std::pair("temperature.agreeing", temperature.agreeing)}) {
    require(t > 0 && std::isfinite(t), name, t, "must be positive and finite");
  }
  require(class_count >= 1, "class_count", class_count, "must be at least 1");
  const std::size_t classes = static_cast<std::size_t>(class_count);
  require(logits.size() % classes == 0, "logits", logits.size(),
          detail::concat("must be a multiple of ", classes));
  detail::check_agreement(agreement, logits.size() / classes);
  detail::check_all_rows("logits", logits, class_count, false);
  std::vector<double> r;
  r.reserve(logits.size());
  for (std::size_t u = 0; u < agreement.size(); ++u) {
    const std::vector<double> row =
        apply_temperature(logits.subspan(u * classes, classes), class_count, temperature.of(agreement[u]));
    r.insert(r.end(), row.begin(), row.end());
  }
  return r;
}

}  // namespace sheafnn::uncertainty
