/// \file
/// The angular central Gaussian distribution on the sphere S^{P−1} ⊂ R^P: the direction of a N(0, Λ) vector.
///
/// Density with respect to the uniform measure normalised to 1: f(x) = det(Λ)^{−1/2} (xᵀΛ⁻¹x)^{−P/2}. x and −x,
/// and Λ and any multiple of it, are equivalent. Quaternions with Λ = diag(γ², 1, 1, 1), γ = (1 + κ)/(1 − κ), are
/// those of C_3(I, κ). Source: math, "Angular central Gaussian".
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "sheafnn/core/errors.hpp"
#include "sheafnn/core/small_matrix.hpp"
#include "sheafnn/random/stream.hpp"
#include "sheafnn/rotation/operations.hpp"

namespace sheafnn {

template <int P, class Scalar = double>
class AngularCentralGaussian {
  static_assert(P >= 2);
  static_assert(std::is_floating_point_v<Scalar>, "a distribution's parameters are float or double");

 public:
  static constexpr int dimension = P;
  using Matrix = SquareMatrix<Scalar, P>;

  /// \param covariance  Λ (P × P), symmetric and positive definite
  /// \throws std::invalid_argument  an entry that is NaN or infinite, an asymmetry above √ε · max|Λ|, or a pivot
  ///         of the Cholesky factorisation that is not positive
  explicit AngularCentralGaussian(const Matrix& covariance) : covariance_(covariance) {
    constexpr const char* name = "AngularCentralGaussian: covariance";
    detail::require_finite<Scalar, P>(name, covariance);
    const Scalar asymmetry = (covariance - covariance.transpose()).cwiseAbs().maxCoeff();
    const Scalar limit = rotation_tolerance<Scalar>() * covariance.cwiseAbs().maxCoeff();
    require(asymmetry <= limit, name, concat("a matrix with |Λ - Λᵀ| = ", asymmetry),
            concat("must be symmetric within ", limit));
    factor_.setZero();
    for (int j = 0; j < P; ++j) {
      for (int i = j; i < P; ++i) {
        Scalar sum = (covariance(i, j) + covariance(j, i)) / 2;
        for (int k = 0; k < j; ++k) sum -= factor_(i, k) * factor_(j, k);
        if (i == j) {
          require(sum > 0, name, concat("a matrix with Cholesky pivot ", sum, " in row ", j),
                  "must be positive definite");
          factor_(j, j) = std::sqrt(sum);
        } else {
          factor_(i, j) = sum / factor_(j, j);
        }
      }
    }
  }

  [[nodiscard]] const Matrix& covariance() const noexcept { return covariance_; }
  /// Lower triangular L with L Lᵀ = Λ.
  [[nodiscard]] const Matrix& factor() const noexcept { return factor_; }

 private:
  Matrix covariance_;
  Matrix factor_;
};

/// log f(x). \throws std::invalid_argument  x is not a unit vector (within √ε)
template <int P, class Scalar>
[[nodiscard]] Scalar logpdf(const AngularCentralGaussian<P, Scalar>& distribution,
                            const std::type_identity_t<Column<Scalar, P>>& x) {
  const Scalar norm = x.norm();
  require(std::abs(norm - 1) <= rotation_tolerance<Scalar>(), "logpdf: x", concat("a vector of length ", norm),
          concat("must be a unit vector within ", rotation_tolerance<Scalar>()));
  // xᵀΛ⁻¹x = ‖L⁻¹x‖².
  const auto& factor = distribution.factor();
  Column<Scalar, P> z = x;
  Scalar log_determinant = 0;  // of L
  for (int i = 0; i < P; ++i) {
    for (int k = 0; k < i; ++k) z(i) -= factor(i, k) * z(k);
    z(i) /= factor(i, i);
    log_determinant += std::log(factor(i, i));
  }
  return -log_determinant - Scalar(P) * std::log(z.norm());
}

/// f(x), with respect to the uniform measure normalised to 1.
template <int P, class Scalar>
[[nodiscard]] Scalar pdf(const AngularCentralGaussian<P, Scalar>& distribution,
                         const std::type_identity_t<Column<Scalar, P>>& x) {
  return std::exp(logpdf(distribution, x));
}

/// A sample g/‖g‖, g ~ N(0, Λ): a pure function of (stream, id); takes ⌈P/4⌉ draws.
template <int P, class Scalar>
[[nodiscard]] Column<Scalar, P> sample(const AngularCentralGaussian<P, Scalar>& distribution, const Stream& stream,
                                       std::uint32_t id, std::uint32_t first_draw = 0) {
  Column<Scalar, P> normal;
  fill_normals<P, Scalar>(normal.data(), stream, id, first_draw);
  // All numbers zero: the first axis then.
  if (!(normal.squaredNorm() > std::numeric_limits<Scalar>::min())) normal(0) = Scalar(1);
  const Column<Scalar, P> g = distribution.factor() * normal;
  return g / g.norm();
}

/// The distribution of the unit quaternions ±q of a C_3(I, κ) rotation.
///
/// \throws std::invalid_argument  κ is not in [0, 1)
template <class Scalar>
[[nodiscard]] AngularCentralGaussian<4, Scalar> cayley_quaternions(Scalar concentration) {
  require(concentration >= 0 && concentration < 1, "cayley_quaternions: concentration", concentration,
          "must be in [0, 1)");
  const Scalar gamma = (1 + concentration) / (1 - concentration);
  SquareMatrix<Scalar, 4> covariance = identity_matrix<Scalar, 4>();
  covariance(0, 0) = gamma * gamma;
  return AngularCentralGaussian<4, Scalar>(covariance);
}

}  // namespace sheafnn
