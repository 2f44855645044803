/// \file
/// Cayley transform C(A) = (I − A)⁻¹(I + A), its inverse C⁻¹(P) = (P − I)(P + I)⁻¹, their derivatives, and the
/// Cayley parametrisation φ ↦ C(X_φ) of rotations without eigenvalue −1. Source: math, "Rotations".
#pragma once

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/small_matrix.hpp"
#include "sheafnn/rotation/skew.hpp"

namespace sheafnn {

/// C(A) = (I − A)⁻¹(I + A), for A whose symmetric part is below I (skew-symmetric A: always).
template <class T, int N>
[[nodiscard]] SHEAFNN_HD inline SquareMatrix<T, N> cayley_transform(const SquareMatrix<T, N>& a) {
  SquareMatrix<T, N> left;
  SquareMatrix<T, N> right;
  SHEAFNN_UNROLL for (int j = 0; j < N; ++j) {
    SHEAFNN_UNROLL for (int i = 0; i < N; ++i) {
      left(i, j) = (i == j ? T(1) : T(0)) - a(i, j);
      right(i, j) = (i == j ? T(1) : T(0)) + a(i, j);
    }
  }
  return solve_unpivoted<T, N, N>(left, right).x;
}

/// Cotangent of A, given that of P = C(A): dP = (I − A)⁻¹ dA (P + I), so Ā = (I − A)⁻ᵀ P̄ (P + I)ᵀ.
template <class T, int N>
[[nodiscard]] SHEAFNN_HD inline SquareMatrix<T, N> cayley_transform_backward(const SquareMatrix<T, N>& a,
                                                                             const SquareMatrix<T, N>& p,
                                                                             const SquareMatrix<T, N>& cotangent) {
  SquareMatrix<T, N> left;
  SquareMatrix<T, N> shifted = p;
  SHEAFNN_UNROLL for (int j = 0; j < N; ++j) {
    SHEAFNN_UNROLL for (int i = 0; i < N; ++i) left(i, j) = (i == j ? T(1) : T(0)) - a(j, i);
    shifted(j, j) += T(1);
  }
  return multiply_nt(solve_unpivoted<T, N, N>(left, cotangent).x, shifted);
}

/// C(X_φ) ∈ SO(N); any φ is allowed.
template <class T, int N>
[[nodiscard]] SHEAFNN_HD inline SquareMatrix<T, N> cayley_rotation(const RotationParameters<T, N>& phi) {
  return cayley_transform<T, N>(skew_matrix<T, N>(phi));
}

/// Adds d⟨cotangent, C(X_φ)⟩/dφ to `gradient`.
template <class T, int N>
SHEAFNN_HD inline void cayley_rotation_backward(const RotationParameters<T, N>& phi,
                                                const SquareMatrix<T, N>& cotangent,
                                                RotationParameters<T, N>& gradient) {
  const SquareMatrix<T, N> x = skew_matrix<T, N>(phi);
  skew_matrix_backward<T, N>(cayley_transform_backward<T, N>(x, cayley_transform<T, N>(x), cotangent), gradient);
}

}  // namespace sheafnn
