/// \file
/// Fits of León's distribution, by moments and by maximum likelihood.
///
/// k = (N − 1) r/(1 − r) by moments. The likelihood is k h(M) − log Z(k) with h = Σ w log det((I + PMᵀ)/2): M̂
/// maximises h whatever k is, and then (log Z)′(k) = h. With S = (Y − I)(Y + I)⁻¹ the derivative of h in φ, M ←
/// exp(X_φ)M, is the skew coordinates of Σ w S. Source: math, "Fits".
#pragma once

#include "sheafnn/core/eigen.hpp"

#include <Eigen/LU>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "sheafnn/rotation/exponential.hpp"
#include "sheafnn/rotation/fit.hpp"
#include "sheafnn/rotation/leon_distribution.hpp"
#include "sheafnn/rotation/moment_estimate.hpp"

namespace sheafnn::detail {

/// Σ w log det((I + PMᵀ)/2).
template <int N>
[[nodiscard]] double mean_log_half_determinant(const std::vector<SquareMatrix<double, N>>& samples,
                                               const SampleWeights& weights,
                                               const SquareMatrix<double, N>& location) {
  double sum = 0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (weights.weight[i] > 0) {
      sum += weights.weight[i] * log_half_determinant<N>(multiply_nt(samples[i], location));
    }
  }
  return sum;
}

/// The k ≥ 0 with (log Z)′(k) = h < 0, or 0 where h ≤ (log Z)′(0): Newton's method for 1/(log Z)′, which is nearly
/// linear.
template <int N>
[[nodiscard]] double leon_concentration(double h) {
  if (h <= leon_normaliser<N>(0).slope) return 0;
  double k = -0.25 * N * (N - 1) / h;
  for (int i = 0; i < 100; ++i) {
    const LeonNormaliser z = leon_normaliser<N>(k);
    const double step = z.slope * (h - z.slope) / (h * z.curvature);
    k = std::max(k + step, 0.1 * k);
    if (std::abs(step) <= 1e-13 * k) break;
  }
  return k;
}

/// Directions of ascent by the BFGS formula for the inverse of minus the Hessian (Nocedal, Wright, Numerical Optimization,
/// 6.17). Near the log det's singularities, which samples by π from M are, it is far from a multiple of I.
template <int P>
class QuasiNewton {
 public:
  using Vector = Column<double, P>;

  /// The direction at a point, B times the gradient there. \param scale  B = scale · I at first
  [[nodiscard]] Vector direction(const Vector& gradient, double scale) {
    const Vector change = gradient_ - gradient;
    const double along = step_.dot(change);
    if (inverse_.size() == 0) {
      inverse_ = scale * Eigen::MatrixXd::Identity(P, P);
    } else if (along > 1e-12 * step_.norm() * change.norm()) {
      const Vector image = inverse_ * change;
      inverse_ += (1 + change.dot(image) / along) / along * step_ * step_.transpose() -
                  (image * step_.transpose() + step_ * image.transpose()) / along;
    }
    gradient_ = gradient;
    return inverse_ * gradient;
  }
  /// The step that was taken from there.
  void took(const Vector& step) { step_ = step; }

 private:
  Eigen::MatrixXd inverse_;  ///< B
  Vector gradient_ = Vector::Zero(), step_ = Vector::Zero();
};

}  // namespace sheafnn::detail

namespace sheafnn::rotation {

template <int N, class Scalar>
struct Fitting<LeonCayleyDistribution<N, Scalar>> {
  using Distribution = LeonCayleyDistribution<N, Scalar>;
  using Sample = SquareMatrix<Scalar, N>;
  using Result = RotationFit<Distribution>;
  static constexpr bool concentration_below_one = false;
  static constexpr int location_parameters = rotation_parameters<N>;
  static constexpr int free_parameters = location_parameters + 1;

  /// Unchecked: fit() checks samples, weights and options.
  static Result moments(std::span<const Sample> given, std::span<const Scalar> given_weights,
                        const SampleOptions<Scalar>& options) {
    const detail::SampleWeights weights("fit_moments", given.size(), given_weights, 2);
    const auto samples = detail::checked_samples<N, Scalar>("fit_moments", given, options);
    const auto estimate = detail::moment_estimate<N>("fit_moments", samples, weights);
    const double rest = estimate.rest;
    require(rest > N * std::numeric_limits<Scalar>::epsilon(), "fit_moments: samples",
            "a set of (nearly) equal rotations", "the concentration has no finite estimate");
    const double k = (N - 1) * estimate.resultant / rest;
    return {at(estimate.location, k),
            static_cast<Scalar>(estimate.location_error),
            static_cast<Scalar>(estimate.resultant_error * (N - 1) / (rest * rest)),
            likelihood(k, detail::mean_log_half_determinant<N>(samples, weights, estimate.location)),
            weights.effective,
            0};
  }

  /// Unchecked: fit() checks samples, weights and options.
  static Result maximum_likelihood(std::span<const Sample> given, std::span<const Scalar> given_weights,
                                   const SampleOptions<Scalar>& options) {
    const detail::SampleWeights weights("fit", given.size(), given_weights, 2);
    const auto samples = detail::checked_samples<N, Scalar>("fit", given, options);
    SquareMatrix<double, N> location = detail::moment_estimate<N>("fit", samples, weights).location;
    double h = detail::mean_log_half_determinant<N>(samples, weights, location);
    refuse_point_mass(h);
    require(std::isfinite(h), "fit: samples", "a set with a rotation by pi from its average",
            "the likelihood vanishes there");
    detail::QuasiNewton<rotation_parameters<N>> ascent;
    RotationParameters<double, N> turn;
    const auto direction = [&] {
      turn.setZero();
      for (std::size_t i = 0; i < samples.size(); ++i) {
        if (weights.weight[i] == 0) continue;
        SquareMatrix<double, N> shifted = multiply_nt(samples[i], location);
        for (int j = 0; j < N; ++j) shifted(j, j) += 1;
        // S = I − 2 (Y + I)⁻¹
        turn -= 2 * weights.weight[i] * skew_parameters<double, N>(SquareMatrix<double, N>(shifted.inverse()));
      }
      const double k = detail::leon_concentration<N>(h);
      turn = ascent.direction(turn, k > 1 ? (2 * k - 1) / k : 1);  // score over information, at first
      const double length = turn.squaredNorm() * (1 + k);
      turn *= std::min(1.0, 1 / turn.norm());
      return length;
    };
    const int iterations = detail::climb(direction, [&](double part, bool near) {
      const RotationParameters<double, N> step = part * turn;
      const SquareMatrix<double, N> next = multiply(exponential_rotation<double, N>(step), location);
      const double value = detail::mean_log_half_determinant<N>(samples, weights, next);
      if (!near && !(value > h)) return false;
      location = orthonormalisation_step<double, N>(next);
      h = value;
      ascent.took(step);
      return true;
    });
    refuse_point_mass(h);
    const double k = detail::leon_concentration<N>(h);
    const LeonCayleyDistribution<N, double> fitted(location, k);
    const RotationInformation<double> information = fisher_information(fitted);
    return {at(location, k),
            static_cast<Scalar>(k > 0.5 ? 1 / std::sqrt(information.location * weights.effective)
                                        : std::numeric_limits<double>::infinity()),
            static_cast<Scalar>(1 / std::sqrt(information.concentration * weights.effective)),
            likelihood(k, h),
            weights.effective,
            iterations};
  }

 private:
  static void refuse_point_mass(double h) {
    require(h < -N * static_cast<double>(std::numeric_limits<Scalar>::epsilon()), "fit: samples",
            "a set of (nearly) equal rotations", "the concentration has no finite estimate");
  }
  static double likelihood(double k, double h) { return k == 0 ? 0 : k * h - detail::leon_normaliser<N>(k).log; }
  static Distribution at(const SquareMatrix<double, N>& location, double k) {
    return {Sample(location.template cast<Scalar>()), static_cast<Scalar>(k)};
  }
};

}  // namespace sheafnn::rotation
