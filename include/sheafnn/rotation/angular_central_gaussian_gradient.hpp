/// \file
/// Derivatives of the angular central Gaussian log density and of its samples.
/// Source: math, "Angular central Gaussian".
#pragma once

#include <type_traits>

#include "sheafnn/rotation/angular_central_gaussian.hpp"

namespace sheafnn::rotation {

/// Cotangents of Λ (symmetric: the derivative along a symmetric dΛ is ⟨Λ̄, dΛ⟩) and of x as a free vector.
template <int P, class Scalar>
struct AngularCentralGaussianGradient {
  SquareMatrix<Scalar, P> covariance;
  Column<Scalar, P> argument;
};

}  // namespace sheafnn::rotation

namespace sheafnn::detail {

/// L⁻ᵀ a, for lower triangular L.
template <int P, class Scalar, int C>
void solve_transposed(const SquareMatrix<Scalar, P>& factor, Eigen::Matrix<Scalar, P, C>& a) {
  for (int c = 0; c < C; ++c) {
    for (int i = P - 1; i >= 0; --i) {
      for (int k = i + 1; k < P; ++k) a(i, c) -= factor(k, i) * a(k, c);
      a(i, c) /= factor(i, i);
    }
  }
}
/// L⁻¹ a.
template <int P, class Scalar, int C>
void solve_lower(const SquareMatrix<Scalar, P>& factor, Eigen::Matrix<Scalar, P, C>& a) {
  for (int c = 0; c < C; ++c) {
    for (int i = 0; i < P; ++i) {
      for (int k = 0; k < i; ++k) a(i, c) -= factor(i, k) * a(k, c);
      a(i, c) /= factor(i, i);
    }
  }
}

}  // namespace sheafnn::detail

namespace sheafnn::rotation {

/// With y = Λ⁻¹x and q = xᵀy: x̄ = −P y/q, Λ̄ = ½ (P y yᵀ/q − Λ⁻¹).
///
/// \throws std::invalid_argument  x is not a unit vector (within the tolerance)
template <int P, class Scalar>
[[nodiscard]] AngularCentralGaussianGradient<P, Scalar> logpdf_gradient(
    const AngularCentralGaussian<P, Scalar>& distribution, const std::type_identity_t<Column<Scalar, P>>& x,
    const SampleOptions<Scalar>& options = {}) {
  Column<Scalar, P> y = unit_vector<Scalar, P>("logpdf_gradient: x", x, options);
  detail::solve_lower<P, Scalar, 1>(distribution.factor(), y);
  const Scalar q = y.squaredNorm();
  detail::solve_transposed<P, Scalar, 1>(distribution.factor(), y);
  SquareMatrix<Scalar, P> inverse = identity_matrix<Scalar, P>();
  detail::solve_lower<P, Scalar, P>(distribution.factor(), inverse);
  detail::solve_transposed<P, Scalar, P>(distribution.factor(), inverse);
  return {Scalar(0.5) * (Scalar(P) / q * y * y.transpose() - inverse), -Scalar(P) / q * y};
}

/// Cotangents of the parameters of a sample x = Lz/‖Lz‖, given the cotangent of x.
template <int P, class Scalar>
struct AngularCentralGaussianCotangent {
  SquareMatrix<Scalar, P> factor;      ///< L̄, lower triangular
  SquareMatrix<Scalar, P> covariance;  ///< Λ̄, symmetric
};

/// L̄ = the lower triangle of ḡzᵀ with ḡ = (I − xxᵀ)x̄/‖Lz‖; Λ̄ = sym(L⁻ᵀ Φ(LᵀL̄) L⁻¹), Φ the lower triangle with
/// half of the diagonal (the derivative of Cholesky's factorisation).
///
/// \param normal     z, the normal numbers the sample came from: fill_normals<P, Scalar>(z.data(), stream, id)
/// \param cotangent  x̄
/// Unchecked: that z is not 0; what is not finite gives such numbers.
template <int P, class Scalar>
[[nodiscard]] AngularCentralGaussianCotangent<P, Scalar> sample_backward(
    const AngularCentralGaussian<P, Scalar>& distribution, const std::type_identity_t<Column<Scalar, P>>& normal,
    const std::type_identity_t<Column<Scalar, P>>& cotangent) {
  const SquareMatrix<Scalar, P>& factor = distribution.factor();
  const Column<Scalar, P> g = factor * normal;
  const Scalar length = g.norm();
  const Column<Scalar, P> x = g / length;
  const Column<Scalar, P> g_bar = (cotangent - x.dot(cotangent) * x) / length;
  AngularCentralGaussianCotangent<P, Scalar> r;
  for (int j = 0; j < P; ++j) {
    for (int i = 0; i < P; ++i) r.factor(i, j) = i >= j ? g_bar(i) * normal(j) : Scalar(0);
  }
  SquareMatrix<Scalar, P> phi = factor.transpose() * r.factor;
  for (int j = 0; j < P; ++j) {
    phi(j, j) /= 2;
    for (int i = 0; i < j; ++i) phi(i, j) = 0;
  }
  // L⁻ᵀ Φ L⁻¹ = L⁻ᵀ (L⁻ᵀ Φᵀ)ᵀ
  SquareMatrix<Scalar, P> right = phi.transpose();
  detail::solve_transposed<P, Scalar, P>(factor, right);
  SquareMatrix<Scalar, P> both = right.transpose();
  detail::solve_transposed<P, Scalar, P>(factor, both);
  r.covariance = Scalar(0.5) * (both + both.transpose());
  return r;
}

}  // namespace sheafnn::rotation
