/// \file
/// Cayley transform C(A) = (I − A)⁻¹(I + A), its inverse C⁻¹(P) = (P − I)(P + I)⁻¹, their derivatives, and the
/// Cayley parametrisation φ ↦ C(X_φ) of rotations without eigenvalue −1. Source: math, "Rotations" (2.1); large X_φ: math:
/// "Large parameters" (2.44).
#pragma once

#include <limits>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/pack.hpp"
#include "sheafnn/core/small_matrix.hpp"
#include "sheafnn/rotation/large_parameters.hpp"
#include "sheafnn/rotation/skew.hpp"

namespace sheafnn::detail {

/// C(A) by elimination.
template <class T, int N>
[[nodiscard]] SHEAFNN_HD inline SquareMatrix<T, N> cayley_by_elimination(const SquareMatrix<T, N>& a) {
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

/// Cotangent of A by elimination.
template <class T, int N>
[[nodiscard]] SHEAFNN_HD inline SquareMatrix<T, N> cayley_backward_by_elimination(
    const SquareMatrix<T, N>& a, const SquareMatrix<T, N>& p, const SquareMatrix<T, N>& cotangent) {
  SquareMatrix<T, N> left;
  SquareMatrix<T, N> shifted = p;
  SHEAFNN_UNROLL for (int j = 0; j < N; ++j) {
    SHEAFNN_UNROLL for (int i = 0; i < N; ++i) left(i, j) = (i == j ? T(1) : T(0)) - a(j, i);
    shifted(j, j) += T(1);
  }
  return multiply_nt(solve_unpivoted<T, N, N>(left, cotangent).x, shifted);
}

/// (I − X_φ)⁻¹ = (I + C(X_φ))/2 for N = 2 and 3, where every entry is a product over a sum of squares. Let a = 1/m and
/// v = φ/m with m = max(1, |φ_k|); for N = 3, v is the vector whose cross product is X_φ/m. The inverse is
///     (a² I + a X_φ/m)/(a² + v²) for N = 2,    (a² I + a X_φ/m + v vᵀ)/(a² + vᵀv) for N = 3.
template <class T, int N>
[[nodiscard]] SHEAFNN_HD inline SquareMatrix<T, N> cayley_half_sum(const RotationParameters<T, N>& phi) {
  static_assert(N == 2 || N == 3);
  T largest = T(1);
  for (int k = 0; k < rotation_parameters<N>; ++k) {
    const T size = select(phi(k) < T(0), -phi(k), phi(k));
    largest = select(size > largest, size, largest);
  }
  // Any a does that leaves v neither too large nor 0; the inverse of what is next to the largest number is subnormal.
  const T inverse_largest = T(1) / largest, least = T(std::numeric_limits<scalar_of_t<T>>::min());
  const T a = select(inverse_largest < least, least, inverse_largest);
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

/// Is φ too large for elimination, which loses ε‖φ‖², for even N ε‖φ‖?
template <class T, int N>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE auto is_far_for_elimination(const RotationParameters<T, N>& phi) {
  return inner_product(phi, phi) > T(16);
}

/// (I − X_φ)⁻¹ for large φ.
template <class T, int N>
[[nodiscard]] SHEAFNN_HD inline SquareMatrix<T, N> large_cayley_half_sum(const RotationParameters<T, N>& phi) {
  if constexpr (N == 2 || N == 3) {
    return cayley_half_sum<T, N>(phi);
  } else {
    return far_cayley_half_sum<T, N>(phi);
  }
}

/// C(X) of H = (I − X)⁻¹: 2H − I.
template <class T, int N>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE SquareMatrix<T, N> cayley_from_half_sum(SquareMatrix<T, N> h) {
  SHEAFNN_UNROLL for (int j = 0; j < N; ++j) {
    SHEAFNN_UNROLL for (int i = 0; i < N; ++i) h(i, j) += h(i, j);
    h(j, j) -= T(1);
  }
  return h;
}

/// Cotangent of X, given the cotangent of C(X) and H = (I − X)⁻¹: 2 Hᵀ P̄ Hᵀ.
template <class T, int N>
[[nodiscard]] SHEAFNN_HD inline SquareMatrix<T, N> cayley_cotangent(const SquareMatrix<T, N>& h,
                                                                    const SquareMatrix<T, N>& cotangent) {
  SquareMatrix<T, N> x_bar = multiply_nt(multiply_tn(h, cotangent), h);
  SHEAFNN_UNROLL for (int j = 0; j < N; ++j) {
    SHEAFNN_UNROLL for (int i = 0; i < N; ++i) x_bar(i, j) += x_bar(i, j);
  }
  return x_bar;
}

/// Is A = −Aᵀ, entry by entry?
template <class T, int N>
[[nodiscard]] SHEAFNN_HD bool is_skew(const SquareMatrix<T, N>& a) {
  bool skew = true;
  for (int j = 0; j < N; ++j) {
    for (int i = j; i < N; ++i) skew = skew && !(a(i, j) < -a(j, i)) && !(a(i, j) > -a(j, i));
  }
  return skew;
}

/// result(φ, lane) of the lanes in which A is a large skew-symmetric X_φ.
template <class T, int N, class F>
SHEAFNN_HD SHEAFNN_INLINE void for_large_skew_lanes(const SquareMatrix<T, N>& a, SquareMatrix<T, N>& r,
                                                    const F& result) {
  if constexpr (N > 1) {
    const auto phi = lower_triangle<T, N>(a);
    for_lanes(is_far_for_elimination<T, N>(phi), [&](int lane) {
      if (is_skew(matrix_lane(a, lane))) set_matrix_lane(r, lane, result(matrix_lane(phi, lane), lane));
    });
  }
}

}  // namespace sheafnn::detail

namespace sheafnn::rotation {

/// C(A) = (I − A)⁻¹(I + A), for A whose symmetric part is below I (skew-symmetric A: always). Of skew-symmetric A it is
/// within some ε, whatever their size, half turns being the limit; of other large A errors grow like ε‖A‖².
/// Unchecked: the symmetric part.
template <class T, int N>
[[nodiscard]] SHEAFNN_HD inline SquareMatrix<T, N> cayley_transform(const SquareMatrix<T, N>& a) {
  SquareMatrix<T, N> r = detail::cayley_by_elimination<T, N>(a);
  detail::for_large_skew_lanes<T, N>(a, r, [](const auto& phi, int) {
    return detail::cayley_from_half_sum(detail::large_cayley_half_sum<scalar_of_t<T>, N>(phi));
  });
  return r;
}

/// Cotangent of A, given the cotangent of P = C(A): dP = (I − A)⁻¹ dA (P + I), so Ā = (I − A)⁻ᵀ P̄ (P + I)ᵀ.
/// Unchecked: that P is C(A).
template <class T, int N>
[[nodiscard]] SHEAFNN_HD inline SquareMatrix<T, N> cayley_transform_backward(const SquareMatrix<T, N>& a,
                                                                             const SquareMatrix<T, N>& p,
                                                                             const SquareMatrix<T, N>& cotangent) {
  SquareMatrix<T, N> r = detail::cayley_backward_by_elimination<T, N>(a, p, cotangent);
  detail::for_large_skew_lanes<T, N>(a, r, [&](const auto& phi, int lane) {
    return detail::cayley_cotangent(detail::large_cayley_half_sum<scalar_of_t<T>, N>(phi),
                                    detail::matrix_lane(cotangent, lane));
  });
  return r;
}

/// C(X_φ) ∈ SO(N). It is within some ε for every finite φ, half turns being the limit ‖φ‖ → ∞. From N = 4 on, where
/// angles of X_φ differ much in size, the error is ε times their ratio. Takes any φ; a φ that is not finite gives NaN.
template <class T, int N>
[[nodiscard]] SHEAFNN_HD inline SquareMatrix<T, N> cayley_rotation(const RotationParameters<T, N>& phi) {
  if constexpr (N == 2 || N == 3) {
    return detail::cayley_from_half_sum(detail::cayley_half_sum<T, N>(phi));
  } else {
    return cayley_transform<T, N>(skew_matrix<T, N>(phi));
  }
}

/// Adds d⟨cotangent, C(X_φ)⟩/dφ to `gradient`. Takes any φ; a φ that is not finite gives NaN.
template <class T, int N>
SHEAFNN_HD inline void cayley_rotation_backward(const RotationParameters<T, N>& phi,
                                                const SquareMatrix<T, N>& cotangent,
                                                RotationParameters<T, N>& gradient) {
  if constexpr (N == 2 || N == 3) {
    const SquareMatrix<T, N> h = detail::cayley_half_sum<T, N>(phi);
    skew_matrix_backward<T, N>(detail::cayley_cotangent(h, cotangent), gradient);
  } else {
    const SquareMatrix<T, N> x = skew_matrix<T, N>(phi);
    // Lanes with a large φ do not need C(X).
    const SquareMatrix<T, N> p = detail::cayley_by_elimination<T, N>(x);
    skew_matrix_backward<T, N>(cayley_transform_backward<T, N>(x, p, cotangent), gradient);
  }
}

}  // namespace sheafnn::rotation
