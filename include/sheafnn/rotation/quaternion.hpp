/// \file
/// Quaternions as columns (w, x, y, z) with real part w, and the rotations of R³ and R⁴ that they
/// represent. Source: math, "Rotations".
#pragma once

#include <cmath>
#include <limits>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/pack.hpp"
#include "sheafnn/core/small_matrix.hpp"

namespace sheafnn::rotation {

/// z/‖z‖; the quaternion 1 for z = 0. Unchecked: that ‖z‖² does not overflow.
template <class T>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE Column<T, 4> normalised_quaternion(const Column<T, 4>& z) {
  using std::sqrt;
  const T squared = z(0) * z(0) + z(1) * z(1) + z(2) * z(2) + z(3) * z(3);
  const auto usable = squared > T(std::numeric_limits<scalar_of_t<T>>::min());
  const T inverse = T(1) / sqrt(select(usable, squared, T(1)));
  Column<T, 4> r;
  r(0) = select(usable, z(0) * inverse, T(1));
  SHEAFNN_UNROLL for (int i = 1; i < 4; ++i) r(i) = select(usable, z(i) * inverse, T(0));
  return r;
}

/// The rotation v ↦ q v q⁻¹ of R³ (v a purely imaginary quaternion); q and −q give the same.
///
/// \param q  unit quaternion
/// Unchecked: that it is.
template <class T>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE SquareMatrix<T, 3> quaternion_rotation(const Column<T, 4>& q) {
  const T w = q(0), x = q(1), y = q(2), z = q(3);
  SquareMatrix<T, 3> r;
  r(0, 0) = T(1) - T(2) * (y * y + z * z);
  r(1, 1) = T(1) - T(2) * (x * x + z * z);
  r(2, 2) = T(1) - T(2) * (x * x + y * y);
  r(1, 0) = T(2) * (x * y + w * z);
  r(0, 1) = T(2) * (x * y - w * z);
  r(2, 0) = T(2) * (x * z - w * y);
  r(0, 2) = T(2) * (x * z + w * y);
  r(2, 1) = T(2) * (y * z + w * x);
  r(1, 2) = T(2) * (y * z - w * x);
  return r;
}

/// The unit quaternion q of a rotation of R³ with real part ≥ 0; −q is the other one.
///
/// Four times the products of one component with all of them are sums of entries. The largest component is taken, so that
/// every rotation keeps its digits (Shepperd, "Quaternion from rotation matrix", 1978).
/// Unchecked: that R is a rotation; other matrices give meaningless numbers, and NaN gives NaN.
template <class Scalar>
[[nodiscard]] inline Column<Scalar, 4> rotation_quaternion(const SquareMatrix<Scalar, 3>& r) {
  const Scalar x = r(0, 0), y = r(1, 1), z = r(2, 2);
  const Column<Scalar, 4> squares(1 + x + y + z, 1 + x - y - z, 1 - x + y - z, 1 - x - y + z);  // 4 q_i²
  const Column<Scalar, 3> odd(r(2, 1) - r(1, 2), r(0, 2) - r(2, 0), r(1, 0) - r(0, 1));         // 4 w (x, y, z)
  const Column<Scalar, 3> even(r(2, 1) + r(1, 2), r(0, 2) + r(2, 0), r(1, 0) + r(0, 1));        // 4 (yz, xz, xy)
  int largest = 0;
  for (int i = 1; i < 4; ++i) {
    if (squares(i) > squares(largest)) largest = i;
  }
  Column<Scalar, 4> q;
  switch (largest) {
    case 0:
      q << squares(0), odd(0), odd(1), odd(2);
      break;
    case 1:
      q << odd(0), squares(1), even(2), even(1);
      break;
    case 2:
      q << odd(1), even(2), squares(2), even(0);
      break;
    default:
      q << odd(2), even(1), even(0), squares(3);
  }
  q = normalised_quaternion<Scalar>(q);
  return q(0) < 0 ? Column<Scalar, 4>(-q) : q;
}

/// The rotation v ↦ p v q* of R⁴ (v a quaternion); every rotation of R⁴ is one, for two pairs ±(p, q).
///
/// \param p, q  unit quaternions
/// Unchecked: that they are.
template <class T>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE SquareMatrix<T, 4> quaternion_pair_rotation(const Column<T, 4>& p,
                                                                                    const Column<T, 4>& q) {
  // v ↦ p v, and v ↦ v q*; the two commute.
  SquareMatrix<T, 4> left;
  left << p(0), -p(1), -p(2), -p(3),  //
      p(1), p(0), -p(3), p(2),        //
      p(2), p(3), p(0), -p(1),        //
      p(3), -p(2), p(1), p(0);
  SquareMatrix<T, 4> right;
  right << q(0), q(1), q(2), q(3),  //
      -q(1), q(0), -q(3), q(2),     //
      -q(2), q(3), q(0), -q(1),     //
      -q(3), -q(2), q(1), q(0);
  return multiply(left, right);
}

}  // namespace sheafnn::rotation
