/// \file
/// KL(C_N(M, κ) ‖ uniform) in closed form, its derivative in κ, and the length of the mean, E[Y] = r_N(κ) M.
///
/// The closed form of math, "KL to the uniform distribution" (2.12), with k = ⌊N/2⌋ is the same as
///     KL_N(κ) = (N − 1) · [ −(N − 1)/2 · log(1 − κ²) + T_N(κ) ],   T_N(κ) = Σ_{j ≥ 0} κ^{N+2j}/(N + 2j),
///     KL_N'(κ) = (N − 1) κ (N − 1 + κ^{N−2}) / (1 − κ²),
///     r_N(κ) = κ (N − 1 + κ^{N−2}) / N,
/// sums of positive terms: no digits cancel. T_N is summed for κ < 1/2; from there on T_N = artanh κ − κ − κ³/3 −
/// … for odd N, −½ log(1 − κ²) − κ²/2 − κ⁴/4 − … for even N (terms below κ^N). The relative error is a few ε for
/// every κ.
#pragma once

#include <cmath>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/pack.hpp"

namespace sheafnn::detail {

/// Σ_{begin ≤ m < begin + 2 · terms, m ≡ begin mod 2} κ^m / m, given κ^begin and κ².
template <int Terms, class T>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE T log_series(int begin, const T& first_power, const T& squared) {
  T sum = T(0);
  for (int j = Terms - 1; j >= 0; --j) sum = sum * squared + T(1.0 / (begin + 2 * j));
  return first_power * sum;
}

/// κ^Exponent.
template <int Exponent, class T>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE T integer_power(const T& kappa) {
  T power = T(1);
  for (int i = 0; i < Exponent; ++i) power *= kappa;
  return power;
}

}  // namespace sheafnn::detail

namespace sheafnn::rotation {

/// KL(C_N(M, κ) ‖ uniform), in nats; math: "KL to the uniform distribution" (2.13). \param kappa  in [0, 1)
/// Unchecked: that it is.
template <int N, class T>
[[nodiscard]] SHEAFNN_HD inline T cayley_kl(const T& kappa) {
  static_assert(N >= 1);
  using std::log;
  using std::log1p;
  if constexpr (N == 1) {
    return T(0);
  } else {
    constexpr int terms = sizeof(scalar_of_t<T>) == 4 ? 11 : 24;  // (1/2)^{2·terms} is below ε
    const T squared = kappa * kappa;
    const auto small = kappa < T(0.5);
    // 1 − κ is exact from 1/2 on.
    const T log_plus = log1p(kappa);
    const T log_minus = log(T(1) - kappa);
    const T log_product = select(small, log1p(-squared), log_plus + log_minus);  // log(1 − κ²)

    const T series = detail::log_series<terms>(N, detail::integer_power<N>(kappa), squared);
    T rest;
    if constexpr (N % 2 == 0) {
      rest = T(-0.5) * (log_plus + log_minus) - detail::log_series<N / 2 - 1>(2, squared, squared);
    } else {
      rest = T(0.5) * (log_plus - log_minus) - detail::log_series<N / 2>(1, kappa, squared);
    }
    return T(N - 1) * (T(-0.5 * (N - 1)) * log_product + select(small, series, rest));
  }
}

/// r_N(κ) ∈ [0, 1): the mean of a C_N(M, κ) rotation is r_N(κ) M (for N = 1, r = 1). \param kappa  in [0, 1)
/// Unchecked: that it is.
template <int N, class T>
[[nodiscard]] SHEAFNN_HD inline T cayley_resultant(const T& kappa) {
  static_assert(N >= 1);
  if constexpr (N == 1) {
    return T(1);
  } else {
    return kappa * (T(N - 1) + detail::integer_power<N - 2>(kappa)) * T(1.0 / N);
  }
}

/// d KL / dκ = N (N − 1) r_N / (1 − κ²). \param kappa  in [0, 1)
/// Unchecked: that it is.
template <int N, class T>
[[nodiscard]] SHEAFNN_HD inline T cayley_kl_derivative(const T& kappa) {
  static_assert(N >= 1);
  if constexpr (N == 1) {
    return T(0);
  } else {
    return T(N * (N - 1)) * cayley_resultant<N>(kappa) / ((T(1) - kappa) * (T(1) + kappa));
  }
}

}  // namespace sheafnn::rotation
