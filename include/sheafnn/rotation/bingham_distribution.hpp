/// \file
/// The Bingham distribution of unit quaternions as a distribution on SO(3), for any symmetric 4 × 4 matrix A. Its density
/// with respect to normalised Haar measure is exp(qᵀAq)/₁F₁(½; 2; A) at the rotation of ±q.
///
/// With 4qqᵀ = I + T(R) at the rotation R of q, T linear, qᵀAq = tr(FᵀR) + tr A/4 where T(F) = A − tr A/4 · I. So it is the
/// matrix Fisher distribution of this F, and ₁F₁(½; 2; A) = e^{tr A/4} c(F). A and A + λI give the same distribution.
/// Source: Bingham, Ann. Statist. 2, 1974; Prentice, "Orientation statistics without parametric assumptions", J. R. Stat.
/// Soc. B 48, 1986; math: "Bingham distribution" (2.52).
#pragma once

#include <span>
#include <type_traits>
#include <vector>

#include "sheafnn/core/errors.hpp"
#include "sheafnn/core/small_matrix.hpp"
#include "sheafnn/rotation/matrix_fisher_angle.hpp"
#include "sheafnn/rotation/matrix_fisher_distribution.hpp"
#include "sheafnn/rotation/matrix_fisher_fit.hpp"
#include "sheafnn/rotation/quaternion.hpp"

namespace sheafnn::rotation {

/// T(F), symmetric with trace 0: tr(FᵀR(q)) = qᵀ T(F) q for unit quaternions q; T(R(q)) = 4qqᵀ − I. Takes any matrix.
template <class Scalar>
[[nodiscard]] SquareMatrix<Scalar, 4> quaternion_form(const SquareMatrix<Scalar, 3>& f) {
  const Scalar x = f(0, 0), y = f(1, 1), z = f(2, 2);
  SquareMatrix<Scalar, 4> t;
  t << x + y + z, f(2, 1) - f(1, 2), f(0, 2) - f(2, 0), f(1, 0) - f(0, 1),  //
      f(2, 1) - f(1, 2), x - y - z, f(1, 0) + f(0, 1), f(0, 2) + f(2, 0),   //
      f(0, 2) - f(2, 0), f(1, 0) + f(0, 1), y - x - z, f(2, 1) + f(1, 2),   //
      f(1, 0) - f(0, 1), f(0, 2) + f(2, 0), f(2, 1) + f(1, 2), z - x - y;
  return t;
}

/// The F with T(F) = A − tr A/4 · I. Takes any symmetric matrix.
template <class Scalar>
[[nodiscard]] SquareMatrix<Scalar, 3> matrix_of_quaternion_form(const SquareMatrix<Scalar, 4>& a) {
  const Scalar half = Scalar(0.5), w = a(0, 0), x = a(1, 1), y = a(2, 2), z = a(3, 3);
  SquareMatrix<Scalar, 3> f;
  f << half * half * (w + x - y - z), half * (a(1, 2) - a(0, 3)), half * (a(1, 3) + a(0, 2)),  //
      half * (a(1, 2) + a(0, 3)), half * half * (w - x + y - z), half * (a(2, 3) - a(0, 1)),   //
      half * (a(1, 3) - a(0, 2)), half * (a(2, 3) + a(0, 1)), half * half * (w - x - y + z);
  return f;
}

/// The Bingham distribution of unit quaternions with parameter A, on SO(3). Equation: on top of this file. Functions of
/// matrix Fisher distributions take it as well.
template <int N = 3, class Dtype = double>
class BinghamDistribution : public MatrixFisherDistribution<N, Dtype> {
  static_assert(N == 3, "unit quaternions stand for the rotations of R^3");
  using Fisher = MatrixFisherDistribution<N, Dtype>;

 public:
  using typename Fisher::Scalar;
  using Parameter = SquareMatrix<Scalar, 4>;

  /// \param parameter  A, symmetric to √ε of its largest entry, entries of size up to 1e149; rows are (w, x, y, z)
  /// \throws std::invalid_argument  an argument is out of its range
  explicit BinghamDistribution(const Parameter& parameter)
      : Fisher(matrix_of_quaternion_form<Scalar>(checked(parameter))), parameter_(checked(parameter)) {}

  /// The same distribution from a matrix Fisher distribution: A = T(F), of trace 0. Takes any.
  explicit BinghamDistribution(const Fisher& distribution)
      : Fisher(distribution), parameter_(quaternion_form<Scalar>(distribution.parameter())) {}

  /// The parameter A.
  [[nodiscard]] const Parameter& parameter() const noexcept { return parameter_; }
  /// The same distribution with parameter F.
  [[nodiscard]] const Fisher& matrix_fisher() const noexcept { return *this; }
  /// The log normaliser, log ₁F₁(½; 2; A).
  [[nodiscard]] double log_normaliser() const {
    return 0.25 * static_cast<double>(parameter_.trace()) + this->singular_values().sum() +
           this->normaliser().log_scaled;
  }

 private:
  static Parameter checked(const Parameter& parameter) {
    constexpr const char* name = "BinghamDistribution: parameter";
    detail::require_finite<Scalar, 4>(name, parameter);
    const Scalar size = parameter.cwiseAbs().maxCoeff();
    require(static_cast<double>(size) <= 1e149, name, detail::concat("a matrix with entries up to ", size),
            "the density is computed up to 1e149");
    const Scalar skew = (parameter - parameter.transpose()).cwiseAbs().maxCoeff();
    require(skew <= rotation_tolerance<Scalar>() * size, name, detail::concat("a matrix A with |A - Aᵀ| = ", skew),
            "must be symmetric");
    return Scalar(0.5) * (parameter + parameter.transpose());
  }

  Parameter parameter_;
};

/// angle_cdf at each of the angles. \throws std::invalid_argument  an angle is out of its range
template <class Scalar>
[[nodiscard]] std::vector<double> angle_probabilities(const BinghamDistribution<3, Scalar>& distribution,
                                                      const std::vector<Scalar>& angles) {
  return angle_probabilities(distribution.matrix_fisher(), angles);
}

/// E[qqᵀ], 4 × 4, of trace 1.
template <int N, class Scalar>
[[nodiscard]] SquareMatrix<Scalar, 4> quaternion_moment(const BinghamDistribution<N, Scalar>& distribution) {
  return Scalar(0.25) *
         (identity_matrix<Scalar, 4>() + quaternion_form<Scalar>(mean(distribution.matrix_fisher())));
}

/// Derivatives of log f(P) as a function of free matrices.
template <int N, class Scalar>
struct BinghamGradient {
  SquareMatrix<Scalar, 4> parameter;  ///< Ā = qqᵀ − E[qqᵀ]
  SquareMatrix<Scalar, N> argument;   ///< P̄ = F
};

/// \throws std::invalid_argument  P is not a rotation
template <int N, class Scalar>
[[nodiscard]] BinghamGradient<N, Scalar> logpdf_gradient(const BinghamDistribution<N, Scalar>& distribution,
                                                         const std::type_identity_t<SquareMatrix<Scalar, N>>& p,
                                                         const SampleOptions<Scalar>& options = {}) {
  const auto gradient = logpdf_gradient(distribution.matrix_fisher(), p, options);
  return {Scalar(0.25) * quaternion_form<Scalar>(gradient.parameter), gradient.argument};
}

/// A Bingham distribution fitted to rotations.
template <int N, class Scalar>
struct BinghamFit {
  BinghamDistribution<N, Scalar> distribution;  ///< at the estimate, of trace 0
  MatrixFisherFit<N, Scalar> matrix_fisher;     ///< the same fit, with the errors of F and of the location
  double log_likelihood;                        ///< Σ w log f/Σ w
  double effective_samples;                     ///< (Σw)²/Σw²
  int iterations;
};

/// Maximum likelihood: E[qqᵀ] is the average of the samples' qqᵀ.
template <int N, class Scalar>
struct Fitting<BinghamDistribution<N, Scalar>> {
  using Fisher = Fitting<MatrixFisherDistribution<N, Scalar>>;
  using Sample = SquareMatrix<Scalar, N>;
  using Result = BinghamFit<N, Scalar>;
  static constexpr int free_parameters = Fisher::free_parameters;

  /// Moments are maximum likelihood. Unchecked: fit() checks samples, weights and options.
  static Result moments(std::span<const Sample> samples, std::span<const Scalar> weights,
                        const SampleOptions<Scalar>& options) {
    return maximum_likelihood(samples, weights, options);
  }
  /// Unchecked: fit() checks samples, weights and options.
  static Result maximum_likelihood(std::span<const Sample> samples, std::span<const Scalar> weights,
                                   const SampleOptions<Scalar>& options) {
    const auto fit = Fisher::maximum_likelihood(samples, weights, options);
    return {BinghamDistribution<N, Scalar>(fit.distribution), fit, fit.log_likelihood, fit.effective_samples,
            fit.iterations};
  }
};

}  // namespace sheafnn::rotation

namespace sheafnn::detail {

template <int N, class Scalar>
struct AngleLaw<rotation::BinghamDistribution<N, Scalar>>
    : AngleLaw<rotation::MatrixFisherDistribution<N, Scalar>> {};

}  // namespace sheafnn::detail
