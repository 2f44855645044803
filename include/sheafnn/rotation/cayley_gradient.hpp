/// \file
/// Derivatives of the Cayley log density in κ, M and P, and the Fisher information.
///
/// With Y = PMᵀ, U = (I − κY)⁻¹(Y − κI) the uniform rotation that gives P, W = (I − κY)⁻¹ = (I + κU)/(1 − κ²):
///     ∂ log f/∂κ = (N − 1) tr U/(1 − κ²),    P̄ = (N − 1) κ WᵀM,    M̄ = (N − 1) κ W P.
/// The score is a function of the uniform U, hence the information in closed form. Source: math, "Score" (2.15).
#pragma once

#include <type_traits>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/small_matrix.hpp"
#include "sheafnn/rotation/cayley_distribution.hpp"
#include "sheafnn/rotation/orthonormalise.hpp"
#include "sheafnn/rotation/skew.hpp"

namespace sheafnn::detail {

/// U = (I − κY)⁻¹(Y − κI) with pivots kept to at least 1 − κ and entries to [−1, 1], as they are up to rounding. Where 1 − κ
/// comes down to ε and Y to I, rounding leaves nothing of U, but the score stays as bounded as it is.
template <class T, int N>
[[nodiscard]] SHEAFNN_HD inline SquareMatrix<T, N> uniform_behind(const SquareMatrix<T, N>& y, const T& kappa) {
  const T least = T(1) - kappa;
  SquareMatrix<T, N> a, u;
  T inverse_pivot[N];
  for (int j = 0; j < N; ++j) {
    for (int i = 0; i < N; ++i) {
      a(i, j) = (i == j ? T(1) : T(0)) - kappa * y(i, j);
      u(i, j) = y(i, j) - (i == j ? kappa : T(0));
    }
  }
  for (int k = 0; k < N; ++k) {
    inverse_pivot[k] = T(1) / select(a(k, k) < least, least, a(k, k));
    for (int i = k + 1; i < N; ++i) {
      const T factor = a(i, k) * inverse_pivot[k];
      for (int j = k + 1; j < N; ++j) a(i, j) -= factor * a(k, j);
      for (int j = 0; j < N; ++j) u(i, j) -= factor * u(k, j);
    }
  }
  for (int k = N - 1; k >= 0; --k) {
    for (int j = 0; j < N; ++j) {
      T sum = u(k, j);
      for (int i = k + 1; i < N; ++i) sum -= a(k, i) * u(i, j);
      u(k, j) = sum * inverse_pivot[k];
    }
  }
  for (int j = 0; j < N; ++j) {
    for (int i = 0; i < N; ++i) {
      const T below = select(u(i, j) <= T(1), u(i, j), T(1));  // also for NaN
      u(i, j) = select(below >= T(-1), below, T(-1));
    }
  }
  return u;
}

}  // namespace sheafnn::detail

namespace sheafnn::rotation {

/// The derivative in φ at 0 of ⟨cotangent, exp(X_φ) R⟩: how a function of rotations changes when R turns.
///
/// \param cotangent  derivative in the entries of R, as a free matrix
/// Takes any matrices.
template <class T, int N>
[[nodiscard]] SHEAFNN_HD inline RotationParameters<T, N> tangent_gradient(const SquareMatrix<T, N>& cotangent,
                                                                          const SquareMatrix<T, N>& r) {
  RotationParameters<T, N> gradient = RotationParameters<T, N>::Constant(T(0));
  skew_matrix_backward<T, N>(multiply_nt(cotangent, r), gradient);
  return gradient;
}

/// Derivatives of log f(P). Derivatives in matrices are taken over free matrices; see tangent_gradient for directions
/// on SO(N).
template <class T, int N>
struct CayleyLogpdfGradient {
  T concentration;              ///< ∂/∂κ
  SquareMatrix<T, N> location;  ///< M̄
  SquareMatrix<T, N> argument;  ///< P̄
};

/// Over T = float, double or Pack. \param p, m  rotations \param kappa  in [0, 1)
/// Unchecked: that they are.
template <class T, int N>
[[nodiscard]] SHEAFNN_HD inline CayleyLogpdfGradient<T, N> cayley_logpdf_gradient(const SquareMatrix<T, N>& p,
                                                                                  const SquareMatrix<T, N>& m,
                                                                                  const T& kappa) {
  const T scale = T(N - 1) / ((T(1) - kappa) * (T(1) + kappa));
  const SquareMatrix<T, N> u = detail::uniform_behind<T, N>(multiply_nt(p, m), kappa);
  CayleyLogpdfGradient<T, N> r;
  r.concentration = T(0);
  SquareMatrix<T, N> w;  // (N − 1) κ W
  for (int j = 0; j < N; ++j) {
    r.concentration += u(j, j);
    for (int i = 0; i < N; ++i) w(i, j) = scale * kappa * ((i == j ? T(1) : T(0)) + kappa * u(i, j));
  }
  r.concentration *= scale;
  r.location = multiply(w, p);
  r.argument = multiply_tn(w, m);
  return r;
}

/// Derivatives of logpdf(distribution, P). \throws std::invalid_argument  P is not a rotation
template <int N, class Scalar>
[[nodiscard]] CayleyLogpdfGradient<Scalar, N> logpdf_gradient(
    const CayleyDistribution<N, Scalar>& distribution, const std::type_identity_t<SquareMatrix<Scalar, N>>& p,
    const SampleOptions<Scalar>& options = {}) {
  return cayley_logpdf_gradient<Scalar, N>(orthonormalised<Scalar, N>("logpdf_gradient: p", p, options),
                                           distribution.location(), distribution.concentration());
}

/// Fisher information of one sample about κ and about each coordinate φ of M ← exp(X_φ) M; all these scores are
/// uncorrelated.
template <class Scalar>
struct RotationInformation {
  Scalar concentration;
  Scalar location;
};

/// I_κ = (N − 1)² v/(1 − κ²)² with v = E (tr U)² = 1 (2 for N = 2); I_φ = ((N − 1) κ/(1 − κ²))² · 2/N (times 2 for
/// N = 2).
template <int N, class Scalar>
[[nodiscard]] RotationInformation<Scalar> fisher_information(const CayleyDistribution<N, Scalar>& distribution) {
  static_assert(N >= 2);
  const Scalar kappa = distribution.concentration();
  const Scalar scale = Scalar(N - 1) / ((1 - kappa) * (1 + kappa));
  constexpr Scalar twice = N == 2 ? 2 : 1;  // the representation of SO(2) is reducible
  return {twice * scale * scale, twice * 2 * scale * kappa * scale * kappa / Scalar(N)};
}

}  // namespace sheafnn::rotation
