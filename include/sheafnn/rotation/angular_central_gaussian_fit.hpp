/// \file
/// Maximum likelihood for the angular central Gaussian distribution.
///
/// Tyler's fixed point Λ = P Σ w xxᵀ/(xᵀΛ⁻¹x) with trace P ("Statistical analysis for the angular central Gaussian
/// distribution on the sphere", Biometrika 74, 1987). It exists and is unique when no subspace of dimension q
/// holds a share of q/P or more of the weight. For large samples Λ̂ − Λ has the covariance (1 + 2/P)/n (I + K)(Λ ⊗ Λ),
/// projected onto trace P, where K is the commutation matrix.
#pragma once

#include <cmath>
#include <cstddef>
#include <span>
#include <stdexcept>
#include <vector>

#include "sheafnn/rotation/angular_central_gaussian.hpp"
#include "sheafnn/rotation/angular_central_gaussian_gradient.hpp"
#include "sheafnn/rotation/fit.hpp"
#include "sheafnn/rotation/sample_weights.hpp"

namespace sheafnn::rotation {

/// An angular central Gaussian distribution fitted to axes.
template <int P, class Scalar>
struct AngularCentralGaussianFit {
  AngularCentralGaussian<P, Scalar> distribution;  ///< Λ̂, trace P
  SquareMatrix<Scalar, P> covariance_error;        ///< standard errors of the entries of Λ̂
  double log_likelihood;                           ///< Σ w log f/Σ w
  double effective_samples;                        ///< (Σw)²/Σw²
  int iterations;
};

template <int P, class Scalar>
struct Fitting<AngularCentralGaussian<P, Scalar>> {
  using Sample = Column<Scalar, P>;
  using Result = AngularCentralGaussianFit<P, Scalar>;
  using Matrix = SquareMatrix<double, P>;
  static constexpr int free_parameters = P * (P + 1) / 2 - 1;  // the size of Λ is free

  /// Unchecked: fit() checks samples, weights and options.
  static Result maximum_likelihood(std::span<const Sample> given, std::span<const Scalar> given_weights,
                                   const SampleOptions<Scalar>& options) {
    constexpr int max_iterations = 10000;
    const detail::SampleWeights weights("fit", given.size(), given_weights, P + 1);
    std::vector<Column<double, P>> samples;
    for (std::size_t i = 0; i < given.size(); ++i) {
      const Sample x = unit_vector<Scalar, P>({"fit", "samples", i}, given[i], options);
      samples.push_back(x.template cast<double>().normalized());
    }
    // In z = L⁻¹ x, Λ = L Lᵀ, where the fixed point is P Σ w zzᵀ/(zᵀz) = I and rounding is small however Λ stretches: a
    // step turns z into S⁻¹ z and L into L S, S Sᵀ being the left side.
    std::vector<Column<double, P>> whitened = samples;
    Matrix factor = identity_matrix<double, P>();
    Matrix covariance = factor;
    int iteration = 0;
    for (double change = 1; change > 1e-12; ++iteration) {
      if (iteration == max_iterations) {
        throw std::runtime_error(detail::concat("fit: no convergence within ", max_iterations, " iterations"));
      }
      Matrix next = Matrix::Zero();
      for (std::size_t i = 0; i < samples.size(); ++i) {
        next += weights.weight[i] / whitened[i].squaredNorm() * whitened[i] * whitened[i].transpose();
      }
      next *= P / next.trace();
      change = (next - identity_matrix<double, P>()).norm();
      const Matrix step = checked(next).factor();
      for (Column<double, P>& z : whitened) {
        detail::solve_lower<P, double, 1>(step, z);
        z.normalize();
      }
      factor = multiply(factor, step);
      covariance = multiply_nt(factor, factor);
      const double scale = P / covariance.trace();
      covariance *= scale;
      factor *= std::sqrt(scale);
      static_cast<void>(checked(covariance));
    }
    const AngularCentralGaussian<P, double> fitted = checked(covariance);
    double likelihood = 0;
    for (std::size_t i = 0; i < samples.size(); ++i) {
      likelihood += weights.weight[i] * angular_central_gaussian_logpdf<double, P>(samples[i], fitted.factor());
    }
    const Matrix square = covariance * covariance;
    Matrix variance;
    for (int j = 0; j < P; ++j) {
      for (int i = 0; i < P; ++i) {
        const double v = covariance(i, j);
        variance(i, j) = covariance(i, i) * covariance(j, j) + v * v - 4 * v * square(i, j) / P +
                         2 * v * v * square.trace() / (P * P);
      }
    }
    variance *= (1 + 2.0 / P) / weights.effective;
    return {AngularCentralGaussian<P, Scalar>(covariance.template cast<Scalar>()),
            variance.cwiseMax(0).cwiseSqrt().template cast<Scalar>(), likelihood, weights.effective, iteration};
  }

 private:
  static AngularCentralGaussian<P, double> checked(const Matrix& covariance) {
    try {
      return AngularCentralGaussian<P, double>(covariance);
    } catch (const std::invalid_argument&) {
      throw_invalid_argument("fit: samples", "a set with too much weight in a subspace",
                             "a share below q/P in each subspace of dimension q is needed");
    }
  }
};

}  // namespace sheafnn::rotation
