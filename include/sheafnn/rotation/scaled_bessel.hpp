/// \file
/// Modified Bessel functions without their exponential growth: e^{−x}I₀(x), e^{−x}I₁(x) and their difference, x ≥
/// 0.
#pragma once

#include <boost/math/special_functions/bessel.hpp>
#include <cmath>

namespace sheafnn::detail {

/// e^{−x}I₀(x), x ≥ 0; beyond 32 by Hankel's expansion.
[[nodiscard]] inline double scaled_bessel_i0(double x) {
  if (x <= 32) return std::exp(-x) * boost::math::cyl_bessel_i(0, x);
  double term = 1, sum = 1;
  for (int k = 1; k <= 30 && term > 1e-18; ++k) {
    term *= (2 * k - 1) * (2 * k - 1) / (8 * x * k);
    sum += term;
  }
  return sum / std::sqrt(6.283185307179586476925286766559 * x);
}

/// The difference i0 − i1 keeps full relative precision as x → ∞, where it is i0/(2x).
struct ScaledBessel {
  double i0, i1, difference;

  explicit ScaledBessel(double x) {
    if (x <= 32) {
      const double scale = std::exp(-x);
      i0 = scale * boost::math::cyl_bessel_i(0, x);
      i1 = scale * boost::math::cyl_bessel_i(1, x);
      difference = i0 - i1;
    } else {
      // Hankel's expansion: Σ (−1)^k Π_{j≤k} (4ν² − (2j − 1)²)/(k! (8x)^k) / √(2πx).
      const double scale = 1 / std::sqrt(6.283185307179586476925286766559 * x);
      double term0 = 1, term1 = 1, sum0 = 1, sum1 = 1, gap = 0;
      for (int k = 1; k <= 30 && std::abs(term1) > 1e-18; ++k) {
        const double odd = (2 * k - 1) * (2 * k - 1);
        term0 *= odd / (8 * x * k);
        term1 *= (odd - 4) / (8 * x * k);
        sum0 += term0;
        sum1 += term1;
        gap += term0 - term1;
      }
      i0 = scale * sum0;
      i1 = scale * sum1;
      difference = scale * gap;
    }
  }

  /// 1 − I₁/I₀.
  [[nodiscard]] double ratio_rest() const { return difference / i0; }
  /// (I₁/I₀)′ = 1 − A/x − A², given 1 − A.
  [[nodiscard]] static double ratio_slope(double x, double rest) {
    if (x < 1e-4) return 0.5 - 0.1875 * x * x;
    if (x > 1e3) return (0.5 + (0.25 + (0.375 + 0.78125 / x) / x) / x) / (x * x);
    return rest * (2 - rest) - (1 - rest) / x;
  }
};

}  // namespace sheafnn::detail
