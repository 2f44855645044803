/// \file
/// The angular central Gaussian distribution on the sphere S^{P−1} ⊂ R^P: the direction of a N(0, Λ) vector.
///
/// Density with respect to the uniform measure normalised to 1: f(x) = det(Λ)^{−1/2} (xᵀΛ⁻¹x)^{−P/2}. x and −x,
/// and Λ and any multiple of it, are equivalent. Quaternions with Λ = diag(γ², 1, 1, 1), γ = (1 + κ)/(1 − κ), are
/// the quaternions of C_3(I, κ). Source: math, "Angular central Gaussian" (2.35).
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "sheafnn/core/errors.hpp"
#include "sheafnn/core/small_matrix.hpp"
#include "sheafnn/random/stream.hpp"
#include "sheafnn/rotation/operations.hpp"

namespace sheafnn::rotation {

/// log f(x), given the lower triangular L with LLᵀ = Λ: xᵀΛ⁻¹x = ‖L⁻¹x‖². Over T = float, double or Pack.
/// Unchecked: that x is a unit vector and the diagonal of L positive.
template <class T, int P>
[[nodiscard]] SHEAFNN_HD inline T angular_central_gaussian_logpdf(const Column<T, P>& x,
                                                                  const SquareMatrix<T, P>& factor) {
  using std::log;
  Column<T, P> z = x;
  T log_determinant = T(0);  // of L
  T squared = T(0);
  for (int i = 0; i < P; ++i) {
    for (int k = 0; k < i; ++k) z(i) -= factor(i, k) * z(k);
    z(i) = z(i) / factor(i, i);
    squared += z(i) * z(i);
    log_determinant += log(factor(i, i));
  }
  return -log_determinant - T(0.5 * P) * log(squared);
}

/// g/‖g‖, g = L z with z the normal numbers of (stream, id). Over T = float, double or Pack.
/// Unchecked: that the diagonal of L is positive.
template <class T, int P>
[[nodiscard]] SHEAFNN_HD inline Column<T, P> angular_central_gaussian_sample(const SquareMatrix<T, P>& factor,
                                                                             const Stream& stream,
                                                                             const word_of_t<T>& id,
                                                                             std::uint32_t first_draw = 0) {
  using std::sqrt;
  T normal[P];
  fill_normals<P, T>(normal, stream, id, first_draw);
  T squared = T(0);
  for (int i = 0; i < P; ++i) squared += normal[i] * normal[i];
  // All numbers zero: the first axis then.
  normal[0] = select(squared > T(std::numeric_limits<scalar_of_t<T>>::min()), normal[0], T(1));
  Column<T, P> g;
  squared = T(0);
  for (int i = 0; i < P; ++i) {
    g(i) = T(0);
    for (int k = 0; k <= i; ++k) g(i) += factor(i, k) * normal[k];
    squared += g(i) * g(i);
  }
  const T inverse = T(1) / sqrt(squared);
  for (int i = 0; i < P; ++i) g(i) *= inverse;
  return g;
}

/// The angular central Gaussian distribution of axes ±x in R^P, with covariance Σ up to scale. On S³ its axes are the
/// quaternions of Cayley-distributed rotations. Equation: on top of this file; math: "Angular central Gaussian" (2.35).
template <int P, class Dtype = double>
class AngularCentralGaussian {
  static_assert(P >= 2);
  static_assert(std::is_floating_point_v<Dtype>, "a distribution's parameters are float or double");

 public:
  static constexpr int dimension = P;
  using Scalar = Dtype;
  using Matrix = SquareMatrix<Scalar, P>;

  /// \param covariance  Λ (P × P), symmetric and positive definite
  /// \throws std::invalid_argument  an entry that is NaN or infinite, or max|Λ| out of the range whose squares a scalar
  ///                                holds (1e±150, float: 1e±18). Or an asymmetry above √ε · max|Λ|, or a pivot of the
  ///                                Cholesky factorisation that is not positive
  explicit AngularCentralGaussian(const Matrix& covariance) : covariance_(covariance) {
    constexpr const char* name = "AngularCentralGaussian: covariance";
    detail::require_finite<Scalar, P>(name, covariance);
    const Scalar largest = covariance.cwiseAbs().maxCoeff();
    constexpr Scalar bound = sizeof(Scalar) == sizeof(float) ? Scalar(1e18f) : Scalar(1e150);
    require(largest <= bound && largest >= 1 / bound, name, detail::concat("a matrix with max|Λ| = ", largest),
            detail::concat("must have it between ", 1 / bound, " and ", bound, "; the scale of Λ has no effect"));
    const Scalar asymmetry = (covariance - covariance.transpose()).cwiseAbs().maxCoeff();
    const Scalar limit = rotation_tolerance<Scalar>() * largest;
    require(asymmetry <= limit, name, detail::concat("a matrix with |Λ - Λᵀ| = ", asymmetry),
            detail::concat("must be symmetric within ", limit));
    factor_.setZero();
    for (int j = 0; j < P; ++j) {
      for (int i = j; i < P; ++i) {
        Scalar sum = (covariance(i, j) + covariance(j, i)) / 2;
        for (int k = 0; k < j; ++k) sum -= factor_(i, k) * factor_(j, k);
        if (i == j) {
          require(sum > 0, name, detail::concat("a matrix with Cholesky pivot ", sum, " in row ", j),
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

/// log f(x). \throws std::invalid_argument  x is not a unit vector (within the tolerance)
template <int P, class Scalar>
[[nodiscard]] Scalar logpdf(const AngularCentralGaussian<P, Scalar>& distribution,
                            const std::type_identity_t<Column<Scalar, P>>& x,
                            const SampleOptions<Scalar>& options = {}) {
  return angular_central_gaussian_logpdf<Scalar, P>(unit_vector<Scalar, P>("logpdf: x", x, options),
                                                    distribution.factor());
}

/// f(x), with respect to the uniform measure normalised to 1. \throws std::invalid_argument  as logpdf()
template <int P, class Scalar>
[[nodiscard]] Scalar pdf(const AngularCentralGaussian<P, Scalar>& distribution,
                         const std::type_identity_t<Column<Scalar, P>>& x,
                         const SampleOptions<Scalar>& options = {}) {
  return std::exp(logpdf(distribution, x, options));
}

/// A sample g/‖g‖, g ~ N(0, Λ): a pure function of (stream, id); takes ⌈P/4⌉ draws.
template <int P, class Scalar>
[[nodiscard]] Column<Scalar, P> sample(const AngularCentralGaussian<P, Scalar>& distribution, const Stream& stream,
                                       std::uint32_t id, std::uint32_t first_draw = 0) {
  return angular_central_gaussian_sample<Scalar, P>(distribution.factor(), stream, id, first_draw);
}

/// E[x] = 0: x and −x are equally likely.
template <int P, class Scalar>
[[nodiscard]] Column<Scalar, P> mean(const AngularCentralGaussian<P, Scalar>&) {
  return Column<Scalar, P>::Zero();
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

}  // namespace sheafnn::rotation
