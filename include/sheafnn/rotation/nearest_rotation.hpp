/// \file
/// The rotation nearest to a given matrix (for cleaning up measured or rounded rotations).
#pragma once

#include "sheafnn/core/eigen.hpp"

#include <Eigen/SVD>
#include <limits>

#include "sheafnn/core/errors.hpp"
#include "sheafnn/core/small_matrix.hpp"
#include "sheafnn/rotation/operations.hpp"

namespace sheafnn::rotation {

/// The R ∈ SO(N) that minimises ‖A − R‖_F: A = U Σ Vᵀ gives R = U diag(1, …, 1, det U Vᵀ) Vᵀ.
///
/// \throws std::invalid_argument  an entry that is NaN or infinite, or an A with more than one nearest rotation
template <class Scalar, int N>
[[nodiscard]] SquareMatrix<Scalar, N> nearest_rotation(const SquareMatrix<Scalar, N>& a) {
  detail::require_finite<Scalar, N>("nearest_rotation: a", a);
  if constexpr (N == 1) {
    return identity_matrix<Scalar, 1>();
  } else {
    const Eigen::JacobiSVD<SquareMatrix<Scalar, N>> svd(a, Eigen::ComputeFullU | Eigen::ComputeFullV);
    require(svd.info() == Eigen::Success, "nearest_rotation: a", "a matrix whose singular values overflow",
            "entries must be smaller");
    SquareMatrix<Scalar, N> u = svd.matrixU();
    const SquareMatrix<Scalar, N> v = svd.matrixV();
    const auto& sigma = svd.singularValues();
    const Scalar sign = detail::pivoted_determinant<Scalar, N>(u) * detail::pivoted_determinant<Scalar, N>(v) < 0
                            ? Scalar(-1)
                            : Scalar(1);
    const Scalar gap = sigma(N - 2) + sign * sigma(N - 1);
    require(gap > Scalar(8 * N) * std::numeric_limits<Scalar>::epsilon() * sigma(0), "nearest_rotation: a",
            detail::concat("a matrix with smallest singular values ", sigma(N - 2), " and ", sign * sigma(N - 1)),
            "their sum must be positive, or the nearest rotation is not unique");
    u.col(N - 1) *= sign;
    return u * v.transpose();
  }
}

}  // namespace sheafnn::rotation
