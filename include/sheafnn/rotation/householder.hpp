/// \file
/// Householder parametrisation of a rotation: a product of N reflections, one per column of a unit lower triangle.
///
/// a_j = e_j + (column j of the strictly lower triangle), φ filling it row by row, and H_j = I − 2 a_j a_jᵀ / ‖a_j‖².
/// Then Q = ± H_1 H_2 … H_N with − for odd N, so that det Q = +1. H_N has no parameters. At φ = 0, Q = −I for even N
/// and +I for odd N. Orthogonal to a few N ε for every φ whose squared length does not overflow: ‖φ‖ up to 1e153, in float
/// 1e18. Source: math, "Rotations" (2.3).
#pragma once

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/small_matrix.hpp"
#include "sheafnn/rotation/skew.hpp"

namespace sheafnn::detail {

/// Entries j … N−1 of a_j (those before are 0) and 2 / ‖a_j‖².
template <class T, int N>
struct Reflector {
  Column<T, N> a;
  T scale;
};
template <class T, int N>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE Reflector<T, N> reflector(const RotationParameters<T, N>& phi, int j) {
  Reflector<T, N> r;
  r.a(j) = T(1);
  T squared = T(1);
  for (int i = j + 1; i < N; ++i) {
    r.a(i) = phi(row_by_row(i, j));
    squared += r.a(i) * r.a(i);
  }
  r.scale = T(2) / squared;
  return r;
}

/// H_1 … H_N, without the sign of odd N.
template <class T, int N>
[[nodiscard]] SHEAFNN_HD inline SquareMatrix<T, N> reflections(const RotationParameters<T, N>& phi) {
  SquareMatrix<T, N> q = identity_matrix<T, N>();
  q(N - 1, N - 1) = T(-1);
  // H_{j+1} … H_N is the identity outside its trailing block, so H_j meets e_j in column j.
  SHEAFNN_UNROLL for (int j = N - 2; j >= 0; --j) {
    const Reflector<T, N> h = reflector<T, N>(phi, j);
    SHEAFNN_UNROLL for (int c = j; c < N; ++c) {
      T sum = q(j, c);
      SHEAFNN_UNROLL for (int i = j + 1; i < N; ++i) sum += h.a(i) * q(i, c);
      sum *= h.scale;
      q(j, c) -= sum;
      SHEAFNN_UNROLL for (int i = j + 1; i < N; ++i) q(i, c) -= sum * h.a(i);
    }
  }
  return q;
}

}  // namespace sheafnn::detail

namespace sheafnn::rotation {

/// Q(φ) ∈ SO(N). Unchecked: that ‖φ‖² does not overflow.
template <class T, int N>
[[nodiscard]] SHEAFNN_HD inline SquareMatrix<T, N> householder_rotation(const RotationParameters<T, N>& phi) {
  if constexpr (N == 1) {
    return identity_matrix<T, 1>();
  } else {
    SquareMatrix<T, N> q = detail::reflections<T, N>(phi);
    if constexpr (N % 2 == 1) {
      SHEAFNN_UNROLL for (int j = 0; j < N; ++j) { SHEAFNN_UNROLL for (int i = 0; i < N; ++i) q(i, j) = -q(i, j); }
    }
    return q;
  }
}

/// Adds d⟨cotangent, Q(φ)⟩/dφ to `gradient`.
///
/// With R_j = H_j … H_N and G_j the cotangent of R_j: R_{j+1} = H_j R_j, G_{j+1} = H_j G_j, and for a = a_j, s =
/// ‖a‖², r = R_{j+1}ᵀa, g = G_jᵀa, the cotangent of a is −(2/s)(G_j r + R_{j+1} g) + (4/s²)(g·r) a. With q = R_jᵀa
/// = −r and R_{j+1} = R_j − (2/s) a qᵀ the multiples of a cancel: what remains is −(2/s)(R_j g − G_j q).
/// Unchecked: that ‖φ‖² does not overflow.
template <class T, int N>
SHEAFNN_HD inline void householder_rotation_backward(const RotationParameters<T, N>& phi,
                                                     const SquareMatrix<T, N>& cotangent,
                                                     RotationParameters<T, N>& gradient) {
  if constexpr (N > 1) {
    SquareMatrix<T, N> q = detail::reflections<T, N>(phi);
    SquareMatrix<T, N> g = cotangent;
    if constexpr (N % 2 == 1) {
      SHEAFNN_UNROLL for (int j = 0; j < N; ++j) { SHEAFNN_UNROLL for (int i = 0; i < N; ++i) g(i, j) = -g(i, j); }
    }
    // Only the trailing block of R_j varies with a_j, a_{j+1}, …: rows and columns before j are left alone.
    SHEAFNN_UNROLL for (int j = 0; j < N - 1; ++j) {
      const detail::Reflector<T, N> h = detail::reflector<T, N>(phi, j);
      Column<T, N> qa;  // R_jᵀ a
      Column<T, N> ga;  // G_jᵀ a
      SHEAFNN_UNROLL for (int c = j; c < N; ++c) {
        qa(c) = q(j, c);
        ga(c) = g(j, c);
        SHEAFNN_UNROLL for (int i = j + 1; i < N; ++i) {
          qa(c) += h.a(i) * q(i, c);
          ga(c) += h.a(i) * g(i, c);
        }
      }
      SHEAFNN_UNROLL for (int i = j + 1; i < N; ++i) {
        T sum = T(0);
        SHEAFNN_UNROLL for (int c = j; c < N; ++c) sum += q(i, c) * ga(c) - g(i, c) * qa(c);
        gradient(detail::row_by_row(i, j)) -= h.scale * sum;
      }
      SHEAFNN_UNROLL for (int c = j + 1; c < N; ++c) {
        SHEAFNN_UNROLL for (int i = j + 1; i < N; ++i) {
          q(i, c) -= h.scale * h.a(i) * qa(c);
          g(i, c) -= h.scale * h.a(i) * ga(c);
        }
      }
    }
  }
}

}  // namespace sheafnn::rotation
