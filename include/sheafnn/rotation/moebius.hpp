/// \file
/// The matrix Möbius map U ↦ Y₀ = (I + κU)⁻¹(U + κI) of SO(N), 0 ≤ κ < 1, that makes a uniform rotation a Cayley distributed
/// rotation. Also its inverse and its derivative in κ.
///
/// Unlike C(C⁻¹(U)/γ), which it equals, it is defined for every U, and I + κU has symmetric part ≥ (1 − κ) I, so
/// that elimination needs no pivoting. U, Y₀ and B = (I + κU)⁻¹ commute. U = (I − κY₀)⁻¹(Y₀ − κI) gives
///     I + κU = (1 − κ²)(I − κY₀)⁻¹,      I − U Y₀ = (I − Y₀²)(I − κY₀)⁻¹,
/// hence
///     dY₀/dκ = B (I − U Y₀) = (I − Y₀²)/(1 − κ²),
///     log det(I + κU) = N log(1 − κ²) − log det(I − κY₀).
/// Source: math, "Sampling without the singularity" (2.7).
#pragma once

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/small_matrix.hpp"

namespace sheafnn::detail {

/// (I + κA)⁻¹(A + κI).
template <class T, int N>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE UnpivotedSolution<T, N, N> moebius_solution(const SquareMatrix<T, N>& a,
                                                                                    const T& kappa) {
  SquareMatrix<T, N> left;
  SquareMatrix<T, N> right = a;
  SHEAFNN_UNROLL for (int j = 0; j < N; ++j) {
    SHEAFNN_UNROLL for (int i = 0; i < N; ++i) left(i, j) = kappa * a(i, j);
    left(j, j) += T(1);
    right(j, j) += kappa;
  }
  // Exact pivots are at least 1 − κ.
  const T size = select(kappa < T(0), -kappa, kappa);
  return solve_unpivoted<T, N, N>(left, right, T(0.5) * (T(1) - size));
}

}  // namespace sheafnn::detail

namespace sheafnn::rotation {

/// Y₀ = (I + κU)⁻¹(U + κI) ∈ SO(N). math: "Sampling without the singularity" (2.7).
///
/// \param u      rotation
/// \param kappa  in [0, 1)
/// Unchecked: that they are.
template <class T, int N>
[[nodiscard]] SHEAFNN_HD inline SquareMatrix<T, N> moebius(const SquareMatrix<T, N>& u, const T& kappa) {
  return detail::moebius_solution<T, N>(u, kappa).x;
}

/// U = (I − κY₀)⁻¹(Y₀ − κI), the inverse of U ↦ moebius(U, κ). Unchecked: that Y₀ is a rotation, and κ in [0, 1).
template <class T, int N>
[[nodiscard]] SHEAFNN_HD inline SquareMatrix<T, N> moebius_inverse(const SquareMatrix<T, N>& y, const T& kappa) {
  return detail::moebius_solution<T, N>(y, -kappa).x;
}

/// dY₀/dκ at fixed U as (I − Y₀²)/(1 − κ²): needs Y₀ only. As κ → 1, where Y₀ → I, digits cancel in I − Y₀²: the
/// error is about ε/(1 − κ), while moebius_derivative_from_noise keeps all digits.
/// Unchecked: that Y₀ is a rotation, and κ in [0, 1).
template <class T, int N>
[[nodiscard]] SHEAFNN_HD inline SquareMatrix<T, N> moebius_derivative(const SquareMatrix<T, N>& y,
                                                                      const T& kappa) {
  const T scale = T(1) / ((T(1) - kappa) * (T(1) + kappa));
  SquareMatrix<T, N> r = multiply(y, y);
  SHEAFNN_UNROLL for (int j = 0; j < N; ++j) {
    SHEAFNN_UNROLL for (int i = 0; i < N; ++i) r(i, j) = ((i == j ? T(1) : T(0)) - r(i, j)) * scale;
  }
  return r;
}

/// dY₀/dκ at fixed U as B(I − U Y₀), B = (I + κU)⁻¹.
///
/// \param u      rotation U
/// \param y      moebius(U, κ)
/// Unchecked: that they are.
template <class T, int N>
[[nodiscard]] SHEAFNN_HD inline SquareMatrix<T, N> moebius_derivative_from_noise(const SquareMatrix<T, N>& u,
                                                                                 const SquareMatrix<T, N>& y,
                                                                                 const T& kappa) {
  SquareMatrix<T, N> left;
  SquareMatrix<T, N> right = multiply(u, y);
  SHEAFNN_UNROLL for (int j = 0; j < N; ++j) {
    SHEAFNN_UNROLL for (int i = 0; i < N; ++i) {
      left(i, j) = (i == j ? T(1) : T(0)) + kappa * u(i, j);
      right(i, j) = (i == j ? T(1) : T(0)) - right(i, j);
    }
  }
  return solve_unpivoted<T, N, N>(left, right, T(0.5) * (T(1) - kappa)).x;
}

}  // namespace sheafnn::rotation
