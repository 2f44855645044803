/// \file
/// Cayley transform C(A) = (I − A)⁻¹(I + A), its inverse C⁻¹(P) = (P − I)(P + I)⁻¹, their derivatives, and the
/// Cayley parametrisation φ ↦ C(X_φ) of rotations without eigenvalue −1. Source: math, "Rotations" (2.1).
#pragma once

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/pack.hpp"
#include "sheafnn/core/small_matrix.hpp"
#include "sheafnn/rotation/skew.hpp"

namespace sheafnn {

/// C(A) = (I − A)⁻¹(I + A), for A whose symmetric part is below I (skew-symmetric A: always). Unchecked: that it is.
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
/// Unchecked: that P is C(A).
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

namespace detail {

/// (I − X_φ)⁻¹ = (I + C(X_φ))/2 for N = 2 and 3, where every entry is a product over a sum of squares: with a = 1/m and
/// v = φ/m (N = 3: as the vector whose cross product X_φ/m is), m = max(1, |φ_k|),
///     (a² I + a X_φ/m)/(a² + v²) for N = 2,    (a² I + a X_φ/m + v vᵀ)/(a² + vᵀv) for N = 3.
template <class T, int N>
[[nodiscard]] SHEAFNN_HD inline SquareMatrix<T, N> cayley_half_sum(const RotationParameters<T, N>& phi) {
  static_assert(N == 2 || N == 3);
  T largest = T(1);
  for (int k = 0; k < rotation_parameters<N>; ++k) {
    const T size = select(phi(k) < T(0), -phi(k), phi(k));
    largest = select(size > largest, size, largest);
  }
  const T a = T(1) / largest;
  T squared = a * a;
  T v[rotation_parameters<N>];  // N = 3: z, −y, x
  for (int k = 0; k < rotation_parameters<N>; ++k) {
    v[k] = a * phi(k);
    squared += v[k] * v[k];
  }
  const T inverse = T(1) / squared;
  const T scaled = a * inverse;
  SquareMatrix<T, N> h;
  if constexpr (N == 2) {
    h(0, 0) = h(1, 1) = a * scaled;
    h(1, 0) = v[0] * scaled;
    h(0, 1) = -h(1, 0);
  } else {
    const T x = v[2], y = -v[1], z = v[0];
    const T xy = x * y * inverse, xz = x * z * inverse, yz = y * z * inverse;
    h(0, 0) = (a * a + x * x) * inverse;
    h(1, 1) = (a * a + y * y) * inverse;
    h(2, 2) = (a * a + z * z) * inverse;
    h(1, 0) = xy + z * scaled;
    h(0, 1) = xy - z * scaled;
    h(2, 0) = xz - y * scaled;
    h(0, 2) = xz + y * scaled;
    h(2, 1) = yz + x * scaled;
    h(1, 2) = yz - x * scaled;
  }
  return h;
}

}  // namespace detail

/// C(X_φ) ∈ SO(N). For N = 2 and 3 it is within some ε for every finite φ, half turns being the limit ‖φ‖ → ∞. From N = 4
/// on errors grow like ε‖φ‖² (even N: ε‖φ‖). Unchecked: that ‖φ‖² is finite.
template <class T, int N>
[[nodiscard]] SHEAFNN_HD inline SquareMatrix<T, N> cayley_rotation(const RotationParameters<T, N>& phi) {
  if constexpr (N == 2 || N == 3) {
    SquareMatrix<T, N> r = detail::cayley_half_sum<T, N>(phi);
    SHEAFNN_UNROLL for (int j = 0; j < N; ++j) {
      SHEAFNN_UNROLL for (int i = 0; i < N; ++i) r(i, j) += r(i, j);
      r(j, j) -= T(1);
    }
    return r;
  } else {
    return cayley_transform<T, N>(skew_matrix<T, N>(phi));
  }
}

/// Adds d⟨cotangent, C(X_φ)⟩/dφ to `gradient`. Unchecked: as cayley_rotation().
template <class T, int N>
SHEAFNN_HD inline void cayley_rotation_backward(const RotationParameters<T, N>& phi,
                                                const SquareMatrix<T, N>& cotangent,
                                                RotationParameters<T, N>& gradient) {
  if constexpr (N == 2 || N == 3) {
    // X̄ = 2 Hᵀ P̄ Hᵀ with H = (I − X)⁻¹ = (P + I)/2.
    const SquareMatrix<T, N> h = detail::cayley_half_sum<T, N>(phi);
    SquareMatrix<T, N> x_bar = multiply_nt(multiply_tn(h, cotangent), h);
    SHEAFNN_UNROLL for (int j = 0; j < N; ++j) {
      SHEAFNN_UNROLL for (int i = 0; i < N; ++i) x_bar(i, j) += x_bar(i, j);
    }
    skew_matrix_backward<T, N>(x_bar, gradient);
  } else {
    const SquareMatrix<T, N> x = skew_matrix<T, N>(phi);
    skew_matrix_backward<T, N>(cayley_transform_backward<T, N>(x, cayley_transform<T, N>(x), cotangent), gradient);
  }
}

}  // namespace sheafnn
