/// \file
/// Inverse Cayley transform C⁻¹(P) = (P − I)(P + I)⁻¹. Source: math, "Rotations" (2.1).
#pragma once

#include <Eigen/LU>
#include <limits>

#include "sheafnn/core/eigen.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/core/small_matrix.hpp"
#include "sheafnn/rotation/operations.hpp"

namespace sheafnn::rotation {

/// C⁻¹(P) = (P − I)(P + I)⁻¹; skew-symmetric for a rotation P.
///
/// \throws std::invalid_argument  an entry that is NaN or infinite, or an eigenvalue that is −1 to rounding
template <class Scalar, int N>
[[nodiscard]] SquareMatrix<Scalar, N> inverse_cayley_transform(const SquareMatrix<Scalar, N>& p) {
  detail::require_finite<Scalar, N>("inverse_cayley_transform: p", p);
  const SquareMatrix<Scalar, N> shifted = p + SquareMatrix<Scalar, N>::Identity();
  const Eigen::FullPivLU<SquareMatrix<Scalar, N>> lu(shifted);
  const Scalar smallest = lu.matrixLU().diagonal().cwiseAbs().minCoeff();
  const Scalar limit = Scalar(8 * N) * std::numeric_limits<Scalar>::epsilon();
  if (!(smallest > limit)) {
    throw_invalid_argument(
        "inverse_cayley_transform: p",
        detail::concat("a matrix with eigenvalue -1 (smallest pivot of P + I: ", smallest, ")"),
        detail::concat("the transform exists where no eigenvalue is -1 (pivots above ", limit, ")"));
  }
  return (p - SquareMatrix<Scalar, N>::Identity()) * lu.inverse();
}

}  // namespace sheafnn::rotation
