/// \file
/// KL(C_N(M, κ) ‖ C_N(M₀, κ₀)) in elementary closed form for N ≤ 3, with its derivatives in κ and M.
///
/// Let s = |sin(θ/2)|, θ the angle of M M₀ᵀ, and
///     ρ = (κ − κ₀)/(1 − κκ₀),    v = 4κκ₀ s²/(1 − κκ₀)²,    h(v) = 1 − arctan(√v)/√v.
/// Then
///     KL_2 = −log(1 − ρ²) + log(1 + v),
///     KL_3 = KL_3(ρ) + 2 log(1 + v) − 2(1 − ρ) h(v),   KL_3(ρ) = −3 log(1 − ρ) − log(1 + ρ) − 2ρ.
/// KL_3(ρ) is the KL to the uniform distribution (rotation/cayley_kl.hpp), continued to ρ < 0. The number s² is ‖M − M₀‖²_F/8
/// for both N. It keeps its digits as M → M₀, and no formula below subtracts what nearly cancels. For given κ, κ₀ ≤ 0.98 and
/// s² the value is within 8 ε, relative, in float and double. So are the derivatives, except where the derivative in κ changes
/// sign. Source: math: "KL to a Cayley prior" (2.23).
#pragma once

#include <cmath>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/pack.hpp"
#include "sheafnn/core/small_matrix.hpp"
#include "sheafnn/rotation/cayley_kl.hpp"

namespace sheafnn::rotation {

/// Whether cayley_prior_kl has a closed form for SO(N); any N has the Monte Carlo form log q − log p.
template <int N>
inline constexpr bool has_elementary_cayley_kl = N >= 1 && N <= 3;

/// KL in nats and its derivatives.
template <class T>
struct CayleyPriorKl {
  T value;
  T concentration;       ///< ∂/∂κ
  T squared_half_chord;  ///< ∂/∂s², s² = sin²(θ/2) in [0, 1]
};

}  // namespace sheafnn::rotation

namespace sheafnn::detail {

/// A function of one variable and its derivative.
template <class T>
struct ValueAndSlope {
  T value, slope;
};

/// h(v) = 1 − arctan(√v)/√v = v/3 − v²/5 + … and h′(v) for v ≥ 0.
///
/// With r = √(1 + v) the half angle has v' = v/(1 + r)², and
///     h(v) = (v/(1 + r) + 2h(v'))/(1 + r),    h′(v) = (1 − h(v') + 2h′(v')/(1 + r))/(r(1 + r)²):
/// no term is negative. After three halvings v ≤ tan²(π/16) = 0.0396, where the series is short.
template <class T>
[[nodiscard]] SHEAFNN_HD inline ValueAndSlope<T> arctan_deficit(const T& v) {
  using std::sqrt;
  constexpr int halvings = 3;
  constexpr int terms = sizeof(scalar_of_t<T>) == 4 ? 6 : 12;  // 0.0396^terms is below ε
  T root[halvings], inverse[halvings], argument[halvings + 1];
  argument[0] = v;
  SHEAFNN_UNROLL for (int k = 0; k < halvings; ++k) {
    root[k] = sqrt(T(1) + argument[k]);
    inverse[k] = T(1) / (T(1) + root[k]);
    argument[k + 1] = argument[k] * inverse[k] * inverse[k];
  }
  const T& small = argument[halvings];
  T value = T(0), slope = T(0);
  for (int j = terms; j >= 1; --j) {
    value = T(1.0 / (2 * j + 1)) - small * value;
    slope = T(static_cast<double>(j) / (2 * j + 1)) - small * slope;
  }
  value *= small;
  SHEAFNN_UNROLL for (int k = halvings - 1; k >= 0; --k) {
    slope = (T(1) - value + T(2) * slope * inverse[k]) * inverse[k] * inverse[k] / root[k];
    value = (argument[k] * inverse[k] + T(2) * value) * inverse[k];
  }
  return {value, slope};
}

/// −3 log(1 − ρ) − log(1 + ρ) − 2ρ for −1 < ρ < 1. \param minus, plus  1 − ρ and 1 + ρ with all their digits
template <class T>
[[nodiscard]] SHEAFNN_HD inline T signed_cayley_kl3(const T& rho, const T& minus, const T& plus) {
  using std::log;
  using std::log1p;
  constexpr int terms = sizeof(scalar_of_t<T>) == 4 ? 11 : 24;  // (1/2)^{2·terms} is below ε
  const T squared = rho * rho;
  const auto small = squared < T(0.25);
  const T bounded = select(small, rho, T(0));  // in the other lanes the series diverges and is not used
  const T bounded_squared = bounded * bounded;
  const T series =
      T(2) * (log_series<terms>(3, bounded * bounded_squared, bounded_squared) - log1p(-bounded_squared));
  return select(small, series, T(-3) * log(minus) - log(plus) - T(2) * rho);
}

}  // namespace sheafnn::detail

namespace sheafnn::rotation {

/// sin²(θ/2) = ‖M − M₀‖²_F/8 of two rotations of the plane or of space, θ the angle of M M₀ᵀ.
/// Unchecked: that they are rotations.
template <class T, int N>
[[nodiscard]] SHEAFNN_HD inline T squared_half_chord(const SquareMatrix<T, N>& m,
                                                     const SquareMatrix<T, N>& prior_m) {
  static_assert(N == 2 || N == 3);
  T sum = T(0);
  SHEAFNN_UNROLL for (int j = 0; j < N; ++j) {
    SHEAFNN_UNROLL for (int i = 0; i < N; ++i) {
      const T difference = m(i, j) - prior_m(i, j);
      sum += difference * difference;
    }
  }
  return T(0.125) * sum;
}

/// Over T = float, double or Pack.
///
/// \param kappa, prior_kappa  in [0, 1)
/// \param squared_half_chord  sin²(θ/2) in [0, 1]
/// Unchecked: that matrices are rotations, and the ranges.
template <int N, class T>
[[nodiscard]] SHEAFNN_HD inline CayleyPriorKl<T> cayley_prior_kl(const T& kappa, const T& prior_kappa,
                                                                 const T& squared_half_chord) {
  static_assert(has_elementary_cayley_kl<N>, "SO(N), N > 3: take the Monte Carlo form log q - log p");
  using std::log1p;
  if constexpr (N == 1) {
    return {T(0), T(0), T(0)};
  } else {
    const T one_minus = T(1) - kappa, one_plus = T(1) + kappa;
    const T prior_minus = T(1) - prior_kappa, prior_plus = T(1) + prior_kappa;
    const T near = one_minus + kappa * prior_minus;  // 1 − κκ₀
    const T difference = kappa - prior_kappa;
    const T product = T(4) * kappa * prior_kappa;
    const T chord = product * squared_half_chord;
    CayleyPriorKl<T> r;
    if constexpr (N == 2) {
      // ρ_j of cayley_divergence.hpp: KL = log1p(ρ_j²/(1 − ρ_j²)).
      const T far = T(1) / (near * near + chord);
      const T variance = one_minus * one_plus;
      r.value = log1p((difference * difference + chord) / (variance * (prior_minus * prior_plus)));
      r.concentration =
          (T(2) * difference * near + T(4) * prior_kappa * squared_half_chord * (T(1) + kappa * kappa)) * far /
          variance;
      r.squared_half_chord = product * far;
    } else {
      const T inverse = T(1) / near;
      const T rho = difference * inverse;
      const T minus = one_minus * prior_plus * inverse;  // 1 − ρ
      const T plus = one_plus * prior_minus * inverse;   // 1 + ρ
      const T v = chord * inverse * inverse;
      const detail::ValueAndSlope<T> h = detail::arctan_deficit(v);
      r.value = detail::signed_cayley_kl3(rho, minus, plus) + T(2) * (log1p(v) - minus * h.value);
      const T slope = T(2) * inverse * inverse * (T(1) / (T(1) + v) - minus * h.slope);  // ∂/∂v, over (1 − κκ₀)²
      r.squared_half_chord = slope * product;
      r.concentration = T(2) * rho * (T(2) + rho) / (one_minus * one_plus) +
                        slope * T(4) * prior_kappa * squared_half_chord * (T(1) + kappa * prior_kappa) * inverse +
                        T(2) * h.value * prior_minus * prior_plus * inverse * inverse;
    }
    return r;
  }
}

/// KL(C_N(M, κ) ‖ C_N(M₀, κ₀)), in nats. \param m, prior_m  rotations \param kappa, prior_kappa  in [0, 1)
/// Unchecked: that matrices are rotations, and the ranges.
template <class T, int N>
[[nodiscard]] SHEAFNN_HD inline T cayley_prior_kl(const SquareMatrix<T, N>& m, const T& kappa,
                                                  const SquareMatrix<T, N>& prior_m, const T& prior_kappa) {
  if constexpr (N == 1) {
    return T(0);
  } else {
    return cayley_prior_kl<N>(kappa, prior_kappa, squared_half_chord<T, N>(m, prior_m)).value;
  }
}

/// Adds weight · ∂KL/∂M and weight · ∂KL/∂κ to the gradients and returns KL. The derivative in M is taken of s² = ‖M −
/// M₀‖²_F/8 of a free matrix, a multiple of M − M₀. Along SO(N) it equals the multiple −M₀, since M itself is normal to
/// SO(N), but keeps its digits as M → M₀. Unchecked: that matrices are rotations, and the ranges.
template <class T, int N>
SHEAFNN_HD inline T cayley_prior_kl_backward(const SquareMatrix<T, N>& m, const T& kappa,
                                             const SquareMatrix<T, N>& prior_m, const T& prior_kappa,
                                             const T& weight, SquareMatrix<T, N>& m_gradient, T& kappa_gradient) {
  if constexpr (N == 1) {
    return T(0);
  } else {
    const CayleyPriorKl<T> kl = cayley_prior_kl<N>(kappa, prior_kappa, squared_half_chord<T, N>(m, prior_m));
    const T factor = T(0.25) * weight * kl.squared_half_chord;
    SHEAFNN_UNROLL for (int j = 0; j < N; ++j) {
      SHEAFNN_UNROLL for (int i = 0; i < N; ++i) m_gradient(i, j) += factor * (m(i, j) - prior_m(i, j));
    }
    kappa_gradient += weight * kl.concentration;
    return kl.value;
  }
}

}  // namespace sheafnn::rotation
