/// \file
/// log (2 sin(α/2)/α)² and its derivative, the terms of log |det d exp|: a power series for small α. Source: math: "Normal in the
/// tangent space" (2.24).
#pragma once

#include <cmath>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/pack.hpp"

namespace sheafnn::detail::exponential {

inline constexpr double four_pi_squared = 39.478417604357434;

/// 2 ζ(2k)/k, the coefficients of −log (2 sin(α/2)/α)² = Σ_k 2 ζ(2k)/k · (α²/4π²)^k.
template <class T>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE T sine_coefficient(int k) {
  constexpr double a[16] = {3.2898681336964529,  1.0823232337111382,  0.67822870798963276, 0.50203867809897217,
                            0.40039783005112723, 0.33341536218443602, 0.28573178518144535, 0.25000382056485216,
                            0.22222307050961444, 0.20000019079240677, 0.18181822517281868, 0.16666667660136485,
                            0.15384615613870074, 0.14285714338933343, 0.13333333345751032, 0.12500000002910390};
  return T(a[k - 1]);
}

template <class T>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE T rounding_unit() {
  return T(sizeof(scalar_of_t<T>) == 4 ? 1.1920929e-07 : 2.220446049250313e-16);
}

/// |a|, but at least `least`, with the sign of a.
template <class T>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE T away_from_zero(const T& a, const T& least) {
  const T negative = select(a > -least, -least, a);
  return select(a < T(0), negative, select(a < least, least, a));
}

/// A function of v = α² and its derivative in v.
template <class T>
struct LogSine {
  T value, slope;
};

/// log (2 sin(α/2)/α)² of v = α², and its derivative in v.
template <class T>
[[nodiscard]] SHEAFNN_HD inline LogSine<T> log_sine_ratio(const T& v) {
  using std::cos;
  using std::log;
  using std::sin;
  using std::sqrt;
  constexpr int terms = sizeof(scalar_of_t<T>) == 4 ? 8 : 16;  // 0.101^terms is below ε
  const auto small = v < T(4);
  const T u = select(small, v, T(0)) * T(1 / four_pi_squared);
  T value = T(0), slope = T(0);
  for (int k = terms; k >= 1; --k) {
    value = sine_coefficient<T>(k) + u * value;
    slope = T(k) * sine_coefficient<T>(k) + u * slope;
  }
  const T half = T(0.5) * sqrt(select(small, T(4), v));
  const T sine = away_from_zero(sin(half), rounding_unit<T>());
  const T ratio = sine / half;
  return {select(small, -u * value, log(ratio * ratio)),
          select(small, T(-1 / four_pi_squared) * slope, (cos(half) / sine - T(1) / half) / (T(4) * half))};
}

}  // namespace sheafnn::detail::exponential
