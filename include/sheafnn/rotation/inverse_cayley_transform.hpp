/// \file
/// Inverse Cayley transform C⁻¹(P) = (P − I)(P + I)⁻¹, its derivative, and the Jacobian of the Cayley
/// parametrisation. Source: math, "Rotations" (2.1).
#pragma once

#include <Eigen/LU>
#include <cmath>
#include <limits>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/eigen.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/core/small_matrix.hpp"
#include "sheafnn/rotation/cayley_transform.hpp"
#include "sheafnn/rotation/large_parameters.hpp"
#include "sheafnn/rotation/operations.hpp"
#include "sheafnn/rotation/skew.hpp"

namespace sheafnn::detail {

/// (P + I)⁻¹; refuses a P with an eigenvalue that is −1 to rounding.
template <class Scalar, int N>
[[nodiscard]] SquareMatrix<Scalar, N> inverse_of_shifted(const SquareMatrix<Scalar, N>& p) {
  require_finite<Scalar, N>("inverse_cayley_transform: p", p);
  const SquareMatrix<Scalar, N> shifted = p + SquareMatrix<Scalar, N>::Identity();
  const Eigen::FullPivLU<SquareMatrix<Scalar, N>> lu(shifted);
  const auto pivots = lu.matrixLU().diagonal().cwiseAbs();
  const Scalar smallest = pivots.minCoeff();
  const Scalar limit = Scalar(8 * N) * std::numeric_limits<Scalar>::epsilon();
  if (!(smallest > limit)) {
    throw_invalid_argument("inverse_cayley_transform: p",
                           concat("a matrix with eigenvalue -1 (smallest pivot of P + I: ", smallest, ")"),
                           concat("the transform exists where no eigenvalue is -1 (pivots above ", limit, ")"));
  }
  return lu.inverse();
}

}  // namespace sheafnn::detail

namespace sheafnn::rotation {

/// C⁻¹(P) = (P − I)(P + I)⁻¹; skew-symmetric for a rotation P.
///
/// \throws std::invalid_argument  an entry that is NaN or infinite, or an eigenvalue −1
template <class Scalar, int N>
[[nodiscard]] SquareMatrix<Scalar, N> inverse_cayley_transform(const SquareMatrix<Scalar, N>& p) {
  const SquareMatrix<Scalar, N> inverse = detail::inverse_of_shifted<Scalar, N>(p);
  return (p - SquareMatrix<Scalar, N>::Identity()) * inverse;
}

/// Cotangent of P, given the cotangent of A = C⁻¹(P): dA = (I − A) dP (P + I)⁻¹, so P̄ = (I − A)ᵀ Ā (P + I)⁻ᵀ.
///
/// \throws std::invalid_argument  as inverse_cayley_transform
template <class Scalar, int N>
[[nodiscard]] SquareMatrix<Scalar, N> inverse_cayley_transform_backward(const SquareMatrix<Scalar, N>& p,
                                                                        const SquareMatrix<Scalar, N>& cotangent) {
  const SquareMatrix<Scalar, N> identity = SquareMatrix<Scalar, N>::Identity();
  const SquareMatrix<Scalar, N> inverse = detail::inverse_of_shifted<Scalar, N>(p);
  const SquareMatrix<Scalar, N> a = (p - identity) * inverse;
  return (identity - a).transpose() * cotangent * inverse.transpose();
}

/// log √det(JᵀJ) of the N² × N(N−1)/2 Jacobian J of φ ↦ vec C(X_φ): 3N(N−1)/4 · log 2 − (N − 1) log det(I + X_φ).
/// Takes any φ; a φ that is not finite gives NaN.
template <class T, int N>
[[nodiscard]] SHEAFNN_HD inline T cayley_log_jacobian(const RotationParameters<T, N>& phi) {
  using std::log;
  SquareMatrix<T, N> shifted = skew_matrix<T, N>(phi);
  for (int i = 0; i < N; ++i) shifted(i, i) = T(1);
  const T determinant = solve_unpivoted<T, N, 1>(shifted, Column<T, N>::Constant(T(0))).determinant;
  T logarithm = log(determinant);
  if constexpr (N > 1) {
    detail::for_lanes(detail::is_far_for_elimination<T, N>(phi), [&](int lane) {
      const auto own = detail::matrix_lane(phi, lane);
      detail::set_lane_of(logarithm, lane, detail::far_log_determinant<scalar_of_t<T>, N>(own));
    });
  }
  return T(0.75 * N * (N - 1) * 0.69314718055994530942) - T(N - 1) * logarithm;
}

}  // namespace sheafnn::rotation
