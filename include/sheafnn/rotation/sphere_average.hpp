/// \file
/// Averages over the uniform distribution on the sphere S^{N−1} as integrals over [0, 1], see unit_quadrature.hpp.
///
/// For a diagonal matrix D² with entries ρ_i² ≤ 1 and x uniform, E (xᵀD²x)^k = k!/(N/2)_k · [t^k] Δ(t) with Δ(t) =
/// Π (1 − tρ_i²)^{−1/2}. Summed under Euler's integral B(k, N/2):
///     E log(1 − xᵀD²x)            = ∫₀¹ (1 − t)^{N/2−1} (1 − Δ(t))/t dt,
///     Σ_{k≥0} E (xᵀD²x)^k/(N+2k)  = ½ ∫₀¹ (1 − t)^{N/2−1} Δ(t) dt.
/// The integrands are algebraic. Results are double, accurate to about 1e-14 relative. Source: math, "Averages
/// over the sphere" (2.38).
#pragma once

#include <array>
#include <cmath>
#include <cstddef>

#include "sheafnn/rotation/unit_quadrature.hpp"

namespace sheafnn::detail {

/// Entries ρ_i² of D² and 1 − ρ_i², both given to full relative precision, so that neither end loses digits.
template <int N>
struct Contraction {
  std::array<double, N> squared;     ///< ρ_i² in [0, 1)
  std::array<double, N> complement;  ///< 1 − ρ_i²

  /// log Δ(t), given t and 1 − t.
  [[nodiscard]] double log_delta(double t, double rest) const {
    double sum = 0;
    for (int i = 0; i < N; ++i) {
      const double s = squared[static_cast<std::size_t>(i)];
      const double c = complement[static_cast<std::size_t>(i)];
      sum -= 0.5 * (t * s < 0.5 ? std::log1p(-t * s) : std::log(rest + t * c));
    }
    return sum;
  }
  /// log Δ(1) = −½ Σ log(1 − ρ_i²).
  [[nodiscard]] double log_delta_at_one() const { return log_delta(1, 0); }
};

/// 1 − ρ² may be as small as (1 − κ²)²: 1e-30, below which there is only rounding.
inline constexpr UnitNodes sphere_nodes{.lower = 40, .upper = 110};

/// E log(1 − xᵀD²x); negative.
template <int N>
[[nodiscard]] double mean_log_rest(const Contraction<N>& contraction) {
  return integrate_unit(
      [&](double t, double rest) {
        const double log_weight = (0.5 * N - 1) * std::log(rest);
        const double log_delta = contraction.log_delta(t, rest);
        // Δ is large only where the weight is small: their product must not overflow on the way.
        const double difference = log_delta < 1 ? -std::exp(log_weight) * std::expm1(log_delta)
                                                : std::exp(log_weight) - std::exp(log_weight + log_delta);
        return difference / t;
      },
      sphere_nodes);
}

/// Σ_{k≥0} E (xᵀD²x)^k/(N + 2k).
template <int N>
[[nodiscard]] double mean_power_series(const Contraction<N>& contraction) {
  return 0.5 * integrate_unit(
                   [&](double t, double rest) {
                     return std::exp((0.5 * N - 1) * std::log(rest) + contraction.log_delta(t, rest));
                   },
                   sphere_nodes);
}

}  // namespace sheafnn::detail
