/// \file
/// Exponential parametrisation φ ↦ exp(X_φ) of rotations, by scaling and squaring of a diagonal Padé approximant; for
/// ‖φ‖ > 14.4 by the normal form of X_φ.
///
/// The [7/7] approximant is exact to double precision for norms up to 0.95 (Higham, "The scaling and squaring method for the
/// matrix exponential revisited", 2005). For a skew-symmetric argument it is orthogonal. ‖X_φ‖₂ ≤ ‖φ‖₂, so φ is halved until
/// its length is at most 0.9. Squarings lose about ‖φ‖ units in the last place, of orthogonality too: beyond four of them
/// large_parameters.hpp takes over, whose rotations are orthogonal to rounding. Every finite φ is taken. The error is some
/// ε(1 + ‖φ‖), which is what rounding of φ does, for N = 2 and, up to ‖φ‖ = 1/ε, for N = 3 some ε. A φ that is not finite
/// gives NaN. Source: math: "Large parameters" (2.44).
#pragma once

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/pack.hpp"
#include "sheafnn/core/small_matrix.hpp"
#include "sheafnn/rotation/large_parameters.hpp"
#include "sheafnn/rotation/skew.hpp"

namespace sheafnn::detail::exponential {

/// Squarings that still leave a matrix orthogonal; a φ that needs more is far.
inline constexpr int most_squarings = 4;

/// Largest value of any lane.
template <class T>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE int largest_lane(const T& value) {
  if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<int>(value);
  } else {
    int r = 0;
    for (int i = 0; i < T::width; ++i) {
      const int lane = static_cast<int>(value.lane(i));
      r = lane > r ? lane : r;
    }
    return r;
  }
}

/// A + factor B.
template <class T, int N>
[[nodiscard]] SHEAFNN_HD SquareMatrix<T, N> add_multiple(const SquareMatrix<T, N>& a, const SquareMatrix<T, N>& b,
                                                         const T& factor) {
  SquareMatrix<T, N> r;
  for (int j = 0; j < N; ++j) {
    for (int i = 0; i < N; ++i) r(i, j) = a(i, j) + factor * b(i, j);
  }
  return r;
}

/// A B, A B + C D and A⁻¹ B as functions, since the scheme needs about thirty such products.
template <class T, int N>
[[nodiscard]] SHEAFNN_HD SquareMatrix<T, N> product(const SquareMatrix<T, N>& a, const SquareMatrix<T, N>& b) {
  SquareMatrix<T, N> r;
  for (int j = 0; j < N; ++j) {
    for (int i = 0; i < N; ++i) {
      T sum = a(i, 0) * b(0, j);
      for (int k = 1; k < N; ++k) sum += a(i, k) * b(k, j);
      r(i, j) = sum;
    }
  }
  return r;
}
template <class T, int N>
[[nodiscard]] SHEAFNN_HD SquareMatrix<T, N> sum_of_products(const SquareMatrix<T, N>& a,
                                                            const SquareMatrix<T, N>& b,
                                                            const SquareMatrix<T, N>& c,
                                                            const SquareMatrix<T, N>& d) {
  return add_multiple<T, N>(product<T, N>(a, b), product<T, N>(c, d), T(1));
}
template <class T, int N>
[[nodiscard]] SHEAFNN_HD SquareMatrix<T, N> quotient(const SquareMatrix<T, N>& a, const SquareMatrix<T, N>& b) {
  return solve_unpivoted<T, N, N>(a, b).x;
}

/// How often φ has to be halved, and 2 to the minus that.
template <class T>
struct Halvings {
  T count;
  T scale;
};
template <class T, int P>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE Halvings<T> halvings(const Column<T, P>& phi) {
  T squared = inner_product(phi, phi);
  Halvings<T> r{T(0), T(1)};
  for (int k = 0; k < 12; ++k) {
    const auto large = squared > T(0.81);
    squared = select(large, T(0.25) * squared, squared);
    r.count = select(large, r.count + T(1), r.count);
    r.scale = select(large, T(0.5) * r.scale, r.scale);
  }
  return r;
}

/// Even and odd part of the Padé numerator, divided by the constant term; the denominator is even − odd.
template <class T, int N>
struct PadeParts {
  SquareMatrix<T, N> power2, power4, power6;
  SquareMatrix<T, N> inner;  ///< odd = X · inner
  SquareMatrix<T, N> even, odd;
};

/// Coefficients b_k / b_0 of the [7/7] approximant to exp, b = (17297280, 8648640, 1995840, 277200, 25200, 1512,
/// 56, 1).
template <class T>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE T pade_coefficient(int k) {
  constexpr double b[8] = {1.0,          0.5,           3.0 / 26.0,     5.0 / 312.0,
                           5.0 / 3432.0, 1.0 / 11440.0, 1.0 / 308880.0, 1.0 / 17297280.0};
  return T(b[k]);
}

/// c₀ I + c₂ X² + c₄ X⁴ + c₆ X⁶ (first = 0), or the same with c₁, c₃, c₅, c₇ (first = 1); `constant` multiplies I.
template <class T, int N>
[[nodiscard]] SHEAFNN_HD inline SquareMatrix<T, N> pade_sum(const SquareMatrix<T, N>& power2,
                                                            const SquareMatrix<T, N>& power4,
                                                            const SquareMatrix<T, N>& power6, int first,
                                                            const T& constant) {
  SquareMatrix<T, N> r;
  for (int j = 0; j < N; ++j) {
    for (int i = 0; i < N; ++i) {
      r(i, j) = pade_coefficient<T>(first + 2) * power2(i, j) + pade_coefficient<T>(first + 4) * power4(i, j) +
                pade_coefficient<T>(first + 6) * power6(i, j);
    }
    r(j, j) += constant * pade_coefficient<T>(first);
  }
  return r;
}

template <class T, int N>
[[nodiscard]] SHEAFNN_HD SHEAFNN_NOINLINE PadeParts<T, N> pade_parts(const SquareMatrix<T, N>& x) {
  PadeParts<T, N> r;
  r.power2 = product<T, N>(x, x);
  r.power4 = product<T, N>(r.power2, r.power2);
  r.power6 = product<T, N>(r.power4, r.power2);
  r.even = pade_sum<T, N>(r.power2, r.power4, r.power6, 0, T(1));
  r.inner = pade_sum<T, N>(r.power2, r.power4, r.power6, 1, T(1));
  r.odd = product<T, N>(x, r.inner);
  return r;
}

}  // namespace sheafnn::detail::exponential

namespace sheafnn::rotation {

/// exp(X_φ) ∈ SO(N). Takes any φ; a φ that is not finite gives NaN.
template <class T, int N>
[[nodiscard]] SHEAFNN_HD SHEAFNN_NOINLINE SquareMatrix<T, N> exponential_rotation(
    const RotationParameters<T, N>& phi) {
  if constexpr (N == 1) {
    return identity_matrix<T, 1>();
  } else {
    using namespace detail::exponential;
    const Halvings<T> halving = halvings<T, rotation_parameters<N>>(phi);
    RotationParameters<T, N> scaled;
    for (int k = 0; k < rotation_parameters<N>; ++k) scaled(k) = halving.scale * phi(k);
    const PadeParts<T, N> pade = pade_parts<T, N>(skew_matrix<T, N>(scaled));
    SquareMatrix<T, N> r = quotient<T, N>(add_multiple<T, N>(pade.even, pade.odd, T(-1)),
                                          add_multiple<T, N>(pade.even, pade.odd, T(1)));
    const int halvings_needed = largest_lane(halving.count);
    const int squarings = halvings_needed < most_squarings ? halvings_needed : most_squarings;
    for (int k = 0; k < squarings; ++k) {
      const auto active = T(k) < halving.count;
      const SquareMatrix<T, N> squared = product<T, N>(r, r);
      for (int j = 0; j < N; ++j) {
        for (int i = 0; i < N; ++i) r(i, j) = select(active, squared(i, j), r(i, j));
      }
    }
    detail::for_lanes(halving.count > T(most_squarings), [&](int lane) {
      detail::set_matrix_lane(r, lane, detail::far_exponential<scalar_of_t<T>, N>(detail::matrix_lane(phi, lane)));
    });
    return r;
  }
}

/// Adds d⟨cotangent, exp(X_φ)⟩/dφ to `gradient`.
///
/// The adjoint of the derivative L(X, ·) of exp is L(Xᵀ, ·) = L(−X, ·). It is found by differentiating the scheme above
/// along the cotangent (Al-Mohy, Higham, "Computing the Fréchet derivative of the matrix exponential", 2009). For ‖φ‖ > 14.4
/// see far_exponential_adjoint(). Takes any φ; a φ that is not finite gives NaN.
template <class T, int N>
SHEAFNN_HD SHEAFNN_NOINLINE void exponential_rotation_backward(const RotationParameters<T, N>& phi,
                                                               const SquareMatrix<T, N>& cotangent,
                                                               RotationParameters<T, N>& gradient) {
  if constexpr (N > 1) {
    using namespace detail::exponential;
    const Halvings<T> halving = halvings<T, rotation_parameters<N>>(phi);
    RotationParameters<T, N> scaled;
    for (int k = 0; k < rotation_parameters<N>; ++k) scaled(k) = -(halving.scale * phi(k));
    const SquareMatrix<T, N> x = skew_matrix<T, N>(scaled);
    SquareMatrix<T, N> e;
    for (int j = 0; j < N; ++j) {
      for (int i = 0; i < N; ++i) e(i, j) = halving.scale * cotangent(i, j);
    }
    const PadeParts<T, N> pade = pade_parts<T, N>(x);
    const SquareMatrix<T, N> denominator = add_multiple<T, N>(pade.even, pade.odd, T(-1));
    SquareMatrix<T, N> r = quotient<T, N>(denominator, add_multiple<T, N>(pade.even, pade.odd, T(1)));

    const SquareMatrix<T, N> power2 = sum_of_products<T, N>(x, e, e, x);
    const SquareMatrix<T, N> power4 = sum_of_products<T, N>(pade.power2, power2, power2, pade.power2);
    const SquareMatrix<T, N> power6 = sum_of_products<T, N>(pade.power4, power2, power4, pade.power2);
    const SquareMatrix<T, N> even = pade_sum<T, N>(power2, power4, power6, 0, T(0));
    const SquareMatrix<T, N> inner = pade_sum<T, N>(power2, power4, power6, 1, T(0));
    const SquareMatrix<T, N> odd = sum_of_products<T, N>(x, inner, e, pade.inner);
    // (even − odd) R = even + odd, differentiated.
    SquareMatrix<T, N> l =
        quotient<T, N>(denominator,
                       add_multiple<T, N>(add_multiple<T, N>(even, odd, T(1)),
                                          product<T, N>(add_multiple<T, N>(odd, even, T(-1)), r), T(1)));
    const int halvings_needed = largest_lane(halving.count);
    const int squarings = halvings_needed < most_squarings ? halvings_needed : most_squarings;
    for (int k = 0; k < squarings; ++k) {
      const auto active = T(k) < halving.count;
      const SquareMatrix<T, N> l_next = sum_of_products<T, N>(r, l, l, r);
      const SquareMatrix<T, N> r_next = product<T, N>(r, r);
      for (int j = 0; j < N; ++j) {
        for (int i = 0; i < N; ++i) {
          l(i, j) = select(active, l_next(i, j), l(i, j));
          r(i, j) = select(active, r_next(i, j), r(i, j));
        }
      }
    }
    detail::for_lanes(halving.count > T(most_squarings), [&](int lane) {
      const auto own = detail::matrix_lane(phi, lane);
      const auto own_cotangent = detail::matrix_lane(cotangent, lane);
      detail::set_matrix_lane(l, lane, detail::far_exponential_adjoint<scalar_of_t<T>, N>(own, own_cotangent));
    });
    skew_matrix_backward<T, N>(l, gradient);
  }
}

}  // namespace sheafnn::rotation
