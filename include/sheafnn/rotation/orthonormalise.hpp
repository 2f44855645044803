/// \file
/// Cleaning up rotations that rounding has moved away from orthogonality.
///
/// The Newton–Schulz step R ↦ R (3I − RᵀR)/2 leaves the nearest rotation where it is and squares the distance to
/// it: a defect D = RᵀR − I becomes −(3D² + D³)/4. Two steps take what rotation_tolerance accepts to rounding, four
/// or five what the largest tolerance of SampleOptions does.
#pragma once

#include <limits>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/small_matrix.hpp"
#include "sheafnn/rotation/operations.hpp"

namespace sheafnn::rotation {

/// R (3I − RᵀR)/2. \param r  a rotation up to a small defect, over T = float, double or Pack
/// Unchecked: that it is.
template <class T, int N>
[[nodiscard]] SHEAFNN_HD inline SquareMatrix<T, N> orthonormalisation_step(const SquareMatrix<T, N>& r) {
  SquareMatrix<T, N> half = multiply_tn(r, r);
  for (int j = 0; j < N; ++j) {
    for (int i = 0; i < N; ++i) half(i, j) = (i == j ? T(1.5) : T(0)) - T(0.5) * half(i, j);
  }
  return multiply(r, half);
}

/// The rotation nearest to a drifted one; one that is orthogonal to rounding (4 N ε) comes back bit by bit.
///
/// \param name  what the caller calls the matrix
/// \throws std::invalid_argument  what require_rotation refuses: a defect above the tolerance is not drift
template <class Scalar, int N>
[[nodiscard]] SquareMatrix<Scalar, N> orthonormalised(const ArgumentName& name, const SquareMatrix<Scalar, N>& r,
                                                      const SampleOptions<Scalar>& options = {}) {
  require_rotation<Scalar, N>(name, r, options);
  constexpr Scalar rounding = Scalar(4 * N) * std::numeric_limits<Scalar>::epsilon();
  SquareMatrix<Scalar, N> result = r;
  for (int step = 0; step < 6 && orthogonality_defect<Scalar, N>(result) > rounding; ++step) {
    result = orthonormalisation_step<Scalar, N>(result);
  }
  return result;
}

}  // namespace sheafnn::rotation
