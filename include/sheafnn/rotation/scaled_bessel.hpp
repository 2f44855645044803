/// \file
/// Modified Bessel functions without their exponential growth, x ≥ 0: e^{−x}I₀(x) and the ratio I₁/I₀.
#pragma once

#include <array>
#include <boost/math/special_functions/bessel.hpp>
#include <cmath>
#include <cstddef>

namespace sheafnn::detail {

/// e^{−x}I₀(x), x ≥ 0; beyond 32 by Hankel's expansion.
[[nodiscard]] inline double scaled_bessel_i0(double x) {
  using InDouble = boost::math::policies::policy<boost::math::policies::promote_double<false>>;
  if (x <= 32) return std::exp(-x) * boost::math::cyl_bessel_i(0, x, InDouble());
  double term = 1, sum = 1;
  for (int k = 1; k <= 30 && term > 1e-18; ++k) {
    term *= (2 * k - 1) * (2 * k - 1) / (8 * x * k);
    sum += term;
  }
  return sum / std::sqrt(6.283185307179586476925286766559 * x);
}

/// r_k of ScaledBessel.
inline constexpr std::array<double, 25> bessel_ratio_series = [] {
  std::array<double, 25> r{};
  for (std::size_t k = 1; k < r.size(); ++k) {
    double sum = k == 1 ? 1 : (static_cast<double>(k) - 2) * r[k - 1];
    for (std::size_t i = 1; i < k; ++i) sum += r[i] * r[k - i];
    r[k] = 0.5 * sum;
  }
  return r;
}();

/// e^{−x}I₀(x), and A = I₁/I₀ as 1 − A and A′ = 1 − A/x − A², all to full relative precision for every x ≥ 0.
///
/// Up to 32 by power series whose terms are all positive: with t_m = (2m)!/m!⁴ · (x/2)^{2m},
///     I₀² = Σ t_m,   I₀²A/x = Σ t_m(2m + 1)/(2(m + 1)²),   I₀²(1 − A²) = Σ t_m/(m + 1),   I₀²A′ = Σ t_m/(2(m + 1)²).
/// Beyond by the asymptotic series 1 − A = Σ_{k≥1} r_k x^{−k}, A′ = Σ k r_k x^{−k−1}, whose coefficients follow from the
/// equation of A: 2r_k = [k = 1] + (k − 2)r_{k−1} + Σ_{0<i<k} r_i r_{k−i}.
struct ScaledBessel {
  double i0;
  double ratio_rest;   ///< 1 − I₁/I₀
  double ratio_slope;  ///< (I₁/I₀)′

  explicit ScaledBessel(double x) : i0(scaled_bessel_i0(x)) {
    if (x <= 32) {
      const double square = 0.25 * x * x;
      double term = 1, sum = 1, ratio = 0.5, rest = 1, slope = 0.5;
      for (int m = 1; m < 200 && term > 1e-20 * slope; ++m) {
        const double next = m + 1, squared = static_cast<double>(m) * m;
        term *= 2 * m * (2.0 * m - 1) / (squared * squared) * square;
        sum += term;
        ratio += 0.5 * term * (2 * m + 1) / (next * next);
        rest += term / next;
        slope += 0.5 * term / (next * next);
      }
      ratio_rest = rest / (sum + x * ratio);
      ratio_slope = slope / sum;
    } else {
      ratio_rest = ratio_slope = 0;
      for (int k = static_cast<int>(bessel_ratio_series.size()) - 1; k >= 1; --k) {
        const double r = bessel_ratio_series[static_cast<std::size_t>(k)];
        ratio_rest = (ratio_rest + r) / x;
        ratio_slope = (ratio_slope + k * r) / x;
      }
      ratio_slope /= x;
    }
  }
};

}  // namespace sheafnn::detail
