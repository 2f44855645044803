/// \file
/// Euler angles, in radians: N = 2 the angle of the plane, N = 3 φ = (a, b, c) with Q = R_z(a) R_y(b) R_x(c).
///
/// R_z, R_y, R_x turn counter-clockwise about the third, second and first axis. Any angles are allowed; at
/// b = ±π/2 the derivative has rank 2 (gimbal lock). Source: math, "Rotations".
#pragma once

#include <cmath>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/pack.hpp"
#include "sheafnn/core/small_matrix.hpp"
#include "sheafnn/rotation/skew.hpp"

namespace sheafnn::rotation {

/// Does SO(N) have the Euler parametrisation? (N = 1, which has no parameters, counts.)
template <int N>
inline constexpr bool has_euler_angles = N <= 3;

/// Q(φ) ∈ SO(N), N ≤ 3. Takes any φ; what is not finite gives such numbers.
template <class T, int N>
[[nodiscard]] SHEAFNN_HD inline SquareMatrix<T, N> euler_rotation(const RotationParameters<T, N>& phi) {
  static_assert(has_euler_angles<N>, "Euler angles exist for N = 2 and 3");
  using std::cos;
  using std::sin;
  SquareMatrix<T, N> q;
  if constexpr (N == 1) {
    q(0, 0) = T(1);
  } else if constexpr (N == 2) {
    q(0, 0) = q(1, 1) = cos(phi(0));
    q(1, 0) = sin(phi(0));
    q(0, 1) = -q(1, 0);
  } else {
    const T ca = cos(phi(0)), sa = sin(phi(0));
    const T cb = cos(phi(1)), sb = sin(phi(1));
    const T cc = cos(phi(2)), sc = sin(phi(2));
    q(0, 0) = ca * cb;
    q(0, 1) = ca * sb * sc - sa * cc;
    q(0, 2) = ca * sb * cc + sa * sc;
    q(1, 0) = sa * cb;
    q(1, 1) = sa * sb * sc + ca * cc;
    q(1, 2) = sa * sb * cc - ca * sc;
    q(2, 0) = -sb;
    q(2, 1) = cb * sc;
    q(2, 2) = cb * cc;
  }
  return q;
}

/// Adds d⟨cotangent, Q(φ)⟩/dφ to `gradient`. For N = 3, with q_i the rows of Q:
///     ∂Q/∂a has rows (−q₁, q₀, 0),    ∂Q/∂b has rows (cos a q₂, sin a q₂, −cos a q₀ − sin a q₁),
///     ∂Q/∂c has columns (0, Q_{·2}, −Q_{·1}).
/// Takes any φ; what is not finite gives such numbers.
template <class T, int N>
SHEAFNN_HD inline void euler_rotation_backward(const RotationParameters<T, N>& phi,
                                               const SquareMatrix<T, N>& cotangent,
                                               RotationParameters<T, N>& gradient) {
  using std::cos;
  using std::sin;
  if constexpr (N == 2) {
    gradient(0) +=
        cos(phi(0)) * (cotangent(1, 0) - cotangent(0, 1)) - sin(phi(0)) * (cotangent(0, 0) + cotangent(1, 1));
  } else if constexpr (N == 3) {
    const SquareMatrix<T, 3> q = euler_rotation<T, 3>(phi);
    const T ca = cos(phi(0)), sa = sin(phi(0));
    for (int k = 0; k < 3; ++k) {
      gradient(0) += cotangent(1, k) * q(0, k) - cotangent(0, k) * q(1, k);
      gradient(1) += (ca * cotangent(0, k) + sa * cotangent(1, k)) * q(2, k) -
                     cotangent(2, k) * (ca * q(0, k) + sa * q(1, k));
      gradient(2) += cotangent(k, 1) * q(k, 2) - cotangent(k, 2) * q(k, 1);
    }
  }
}

}  // namespace sheafnn::rotation
