/// \file
/// Fits of the isotropic Gaussian distribution on SO(3), by moments and by maximum likelihood.
///
/// By moments: M̂ is the rotation nearest to the average P̄, σ̂² = −log r̂ with r̂ = tr(P̄M̂ᵀ)/3. Maximum likelihood from
/// there by Fisher's scoring in M ← exp(X_φ) M and log σ. With Y = PMᵀ and log f = h(tr Y) the derivatives are Σ w 2h′
/// skew(Y) and Σ w 2t ∂ log f/∂t. Source: math, "Fits".
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "sheafnn/rotation/exponential.hpp"
#include "sheafnn/rotation/fit.hpp"
#include "sheafnn/rotation/isotropic_gaussian.hpp"
#include "sheafnn/rotation/moment_estimate.hpp"

namespace sheafnn::rotation {

/// An isotropic Gaussian distribution fitted to rotations.
template <int N, class Scalar>
struct IsotropicGaussianFit {
  IsotropicGaussian<N, Scalar> distribution;  ///< at the estimates
  Scalar location_error;     ///< standard error of each coordinate φ of M̂ = exp(X_φ) M, radians
  Scalar scale_error;        ///< standard error of σ
  double log_likelihood;     ///< Σ w log f/Σ w at the estimates
  double effective_samples;  ///< (Σw)²/Σw²
  int iterations;            ///< 0 for estimates in closed form

  /// Holds the true σ with probability `level`, for large samples; positive.
  ///
  /// \throws std::invalid_argument  a level that is not in (0, 1)
  [[nodiscard]] ConfidenceInterval<Scalar> scale_interval(double level = 0.95) const {
    return detail::concentration_interval<Scalar>(false, distribution.scale(), scale_error, level);
  }
  /// As RotationFit::location_radius(). \throws std::invalid_argument  a level that is not in (0, 1)
  [[nodiscard]] Scalar location_radius(double level = 0.95) const {
    return location_error *
           static_cast<Scalar>(detail::normal_radius("location_radius", rotation_parameters<N>, level));
  }
};

}  // namespace sheafnn::rotation

namespace sheafnn::detail {

/// Averages over samples at a location and a time: Σ w log f, and its derivatives in φ and log σ.
struct HeatLikelihood {
  double value = 0, growth = 0;
  rotation::RotationParameters<double, 3> turn = rotation::RotationParameters<double, 3>::Zero();

  HeatLikelihood(const std::vector<SquareMatrix<double, 3>>& samples, const SampleWeights& weights,
                 const SquareMatrix<double, 3>& location, double t) {
    for (std::size_t i = 0; i < samples.size(); ++i) {
      if (weights.weight[i] == 0) continue;
      const SquareMatrix<double, 3> y = multiply_nt(samples[i], location);
      const HeatKernel<double> kernel =
          heat_kernel(half_angle<double>(rotation::rotation_quaternion<double>(y)), t);
      value += weights.weight[i] * kernel.log;
      growth += weights.weight[i] * 2 * t * kernel.time_slope;
      turn += weights.weight[i] * 2 * kernel.slope * rotation::skew_parameters<double, 3>(y);
    }
  }
};

}  // namespace sheafnn::detail

namespace sheafnn::rotation {

template <int N, class Scalar>
struct Fitting<IsotropicGaussian<N, Scalar>> {
  using Distribution = IsotropicGaussian<N, Scalar>;
  using Sample = SquareMatrix<Scalar, N>;
  using Result = IsotropicGaussianFit<N, Scalar>;
  static constexpr int free_parameters = rotation_parameters<N> + 1;

  /// Unchecked: fit() checks samples, weights and options.
  static Result moments(std::span<const Sample> given, std::span<const Scalar> given_weights,
                        const SampleOptions<Scalar>& options) {
    const detail::SampleWeights weights("fit_moments", given.size(), given_weights, 2);
    const auto samples = detail::checked_samples<N, Scalar>("fit_moments", given, options);
    const auto estimate = detail::moment_estimate<N>("fit_moments", samples, weights);
    refuse_point_mass("fit_moments", estimate.rest);
    const double t = time_of(estimate.rest), sigma = std::sqrt(t);
    // r = e^{−σ²}
    return {at(estimate.location, sigma),
            static_cast<Scalar>(estimate.location_error),
            static_cast<Scalar>(estimate.resultant_error / (2 * sigma * std::exp(-t))),
            detail::HeatLikelihood(samples, weights, estimate.location, t).value,
            weights.effective,
            0};
  }

  /// Unchecked: fit() checks samples, weights and options.
  static Result maximum_likelihood(std::span<const Sample> given, std::span<const Scalar> given_weights,
                                   const SampleOptions<Scalar>& options) {
    const detail::SampleWeights weights("fit", given.size(), given_weights, 2);
    const auto samples = detail::checked_samples<N, Scalar>("fit", given, options);
    const auto estimate = detail::moment_estimate<N>("fit", samples, weights);
    refuse_point_mass("fit", estimate.rest);
    SquareMatrix<double, N> location = estimate.location;
    double t = time_of(estimate.rest);
    detail::HeatLikelihood current(samples, weights, location, t);
    RotationParameters<double, N> turn;
    double growth = 0;  // of log σ
    const auto direction = [&] {
      const detail::HeatAverages averages = detail::heat_averages(t);
      const double information = 4 * t * t * averages.squared_time_slope;
      turn = current.turn / (averages.squared_score / 3);
      growth = current.growth / information;
      const double length = information * growth * growth + averages.squared_score / 3 * turn.squaredNorm();
      turn *= std::min(1.0, 1 / turn.norm());
      growth = std::clamp(growth, -1.0, 1.0);
      return length;
    };
    const int iterations = detail::climb(direction, [&](double part, bool near) {
      const SquareMatrix<double, N> next =
          orthonormalisation_step<double, N>(multiply(exponential_rotation<double, N>(part * turn), location));
      const double next_t = std::min(t * std::exp(2 * (part * growth)), largest_time);
      const detail::HeatLikelihood moved(samples, weights, next, next_t);
      if (!near && !(moved.value > current.value)) return false;
      location = next;
      t = next_t;
      current = moved;
      return true;
    });
    const ScaleInformation<double> information =
        fisher_information(IsotropicGaussian<N, double>(location, std::sqrt(t)));
    return {at(location, std::sqrt(t)),
            static_cast<Scalar>(1 / std::sqrt(information.location * weights.effective)),
            static_cast<Scalar>(1 / std::sqrt(information.scale * weights.effective)),
            current.value,
            weights.effective,
            iterations};
  }

 private:
  static constexpr double largest_time = 40;  ///< the mean has length e^{−40}: no sample is so close to uniform

  /// t = −log r = −log(1 − rest).
  static double time_of(double rest) {
    return rest < 1 ? std::min(-std::log1p(-rest), largest_time) : largest_time;
  }
  static void refuse_point_mass(const char* name, double rest) {
    const double least = 32 * static_cast<double>(std::numeric_limits<Scalar>::epsilon());
    require(rest > least * least, detail::concat(name, ": samples"), "a set of (nearly) equal rotations",
            "the scale has no positive estimate");
  }
  static Distribution at(const SquareMatrix<double, N>& location, double sigma) {
    return {Sample(location.template cast<Scalar>()), static_cast<Scalar>(sigma)};
  }
};

}  // namespace sheafnn::rotation
