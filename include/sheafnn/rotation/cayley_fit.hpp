/// \file
/// Fits of Cayley and wrapped Cauchy distributions, by moments and by maximum likelihood.
///
/// With U_i = (I − κY_i)⁻¹(Y_i − κI), Y_i = P_iMᵀ, the likelihood equations say that Ū = Σ w U is symmetric and
/// has trace 0. In η = artanh κ the information about κ is constant, (N − 1)² v; that about M is ((N − 1)κ/(1 −
/// κ²))² 2v/N with v = 1 (2 for N = 2). Fisher's scoring from the moment estimate, with steps halved until the
/// likelihood grows. Source: math, "Fits".
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "sheafnn/rotation/cayley_distribution.hpp"
#include "sheafnn/rotation/cayley_gradient.hpp"
#include "sheafnn/rotation/exponential.hpp"
#include "sheafnn/rotation/fit.hpp"
#include "sheafnn/rotation/moment_estimate.hpp"
#include "sheafnn/rotation/wrapped_cauchy.hpp"

namespace sheafnn::detail {

/// The κ in [0, 1] with r_N(κ) = resultant = 1 − rest in [0, 1]. Close to 1 it is solved for 1 − κ, of which rest has
/// more digits: N (1 − r_N) = (N − 1)(1 − κ) + (1 − κ^{N−1}), concave, so Newton's method comes from below.
template <int N>
[[nodiscard]] double cayley_concentration(double resultant, double rest) {
  if (rest < 0.125) {
    double gap = 0;
    for (int i = 0; i < 60; ++i) {
      const double value = ((N - 1) * gap - std::expm1((N - 1) * std::log1p(-gap))) / N;
      const double step = (rest - value) * N / ((N - 1) * (1 + integer_power<N - 2>(1 - gap)));
      gap += step;
      if (std::abs(step) <= 4e-16 * gap) break;
    }
    return 1 - gap;
  }
  double kappa = resultant;  // exact for N = 2; r_N(κ) ≤ κ and r_N is convex, so Newton's method comes from above
  for (int i = 0; i < 60; ++i) {
    const double slope = (N - 1) * (1 + integer_power<N - 2>(kappa)) / N;
    const double step = (resultant - cayley_resultant<N>(kappa)) / slope;
    kappa = std::clamp(kappa + step, 0.0, 1 - 1.2e-16);
    if (std::abs(step) <= 2e-16) break;
  }
  return kappa;
}

/// Σ w log f.
template <int N>
[[nodiscard]] double cayley_log_likelihood(const std::vector<SquareMatrix<double, N>>& samples,
                                           const SampleWeights& weights, const SquareMatrix<double, N>& location,
                                           double kappa) {
  double sum = 0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    sum += weights.weight[i] * cayley_logpdf<double, N>(multiply_nt(samples[i], location), kappa);
  }
  return sum;
}

}  // namespace sheafnn::detail

namespace sheafnn::rotation {

template <int N, class Scalar>
struct Fitting<CayleyDistribution<N, Scalar>> {
  static_assert(N >= 2);
  using Distribution = CayleyDistribution<N, Scalar>;
  using Sample = SquareMatrix<Scalar, N>;
  using Result = RotationFit<Distribution>;
  static constexpr bool concentration_below_one = true;
  static constexpr int location_parameters = rotation_parameters<N>;
  static constexpr int free_parameters = location_parameters + 1;

  /// Unchecked: fit() checks samples, weights and options.
  static Result moments(std::span<const Sample> given, std::span<const Scalar> given_weights,
                        const SampleOptions<Scalar>& options) {
    const detail::SampleWeights weights("fit_moments", given.size(), given_weights, 2);
    const auto samples = detail::checked_samples<N, Scalar>("fit_moments", given, options);
    const auto estimate = detail::moment_estimate<N>("fit_moments", samples, weights);
    const double kappa = std::max(1e-8, detail::cayley_concentration<N>(estimate.resultant, estimate.rest));
    refuse_point_mass("fit_moments", kappa, scatter);
    const double slope = (N - 1) * (1 + detail::integer_power<N - 2>(kappa)) / N;  // r′
    return {at(estimate.location, kappa),
            static_cast<Scalar>(estimate.location_error),
            static_cast<Scalar>(estimate.resultant_error / slope),
            detail::cayley_log_likelihood<N>(samples, weights, estimate.location, kappa),
            weights.effective,
            0};
  }

  /// Unchecked: fit() checks samples, weights and options.
  static Result maximum_likelihood(std::span<const Sample> given, std::span<const Scalar> given_weights,
                                   const SampleOptions<Scalar>& options) {
    constexpr double twice = N == 2 ? 2 : 1;
    const detail::SampleWeights weights("fit", given.size(), given_weights, 2);
    const auto samples = detail::checked_samples<N, Scalar>("fit", given, options);
    const auto estimate = detail::moment_estimate<N>("fit", samples, weights);
    SquareMatrix<double, N> location = estimate.location;
    // Samples without outliers have 1 − r̂ of about (1 − κ)², whose κ may round to 1 where the maximum is below.
    double kappa = std::clamp(detail::cayley_concentration<N>(estimate.resultant, estimate.rest), 1e-8,
                              1 - 16 * static_cast<double>(std::numeric_limits<Scalar>::epsilon()));
    double likelihood = detail::cayley_log_likelihood<N>(samples, weights, location, kappa);
    RotationParameters<double, N> turn;
    double growth = 0;  // of artanh κ
    const auto direction = [&] {
      SquareMatrix<double, N> mean = SquareMatrix<double, N>::Zero();
      for (std::size_t i = 0; i < samples.size(); ++i) {
        mean += weights.weight[i] * detail::uniform_behind<double, N>(multiply_nt(samples[i], location), kappa);
      }
      const double scale = (N - 1) * kappa / ((1 - kappa) * (1 + kappa));
      turn = skew_parameters<double, N>(mean) * (N / (scale * twice));
      growth = mean.trace() / ((N - 1) * twice);
      const double length =
          (N - 1) * (N - 1) * twice * growth * growth + 2 * twice / N * scale * scale * turn.squaredNorm();
      turn *= std::min(1.0, 1 / turn.norm());
      growth = std::clamp(growth, -2.0, 2.0);
      return length;
    };
    const int iterations = detail::climb(direction, [&](double part, bool near) {
      const SquareMatrix<double, N> next = multiply(exponential_rotation<double, N>(part * turn), location);
      // tanh(artanh κ + growth)
      const double step = std::tanh(part * growth);
      const double next_kappa = std::max(1e-8, (kappa + step) / (1 + kappa * step));
      refuse_point_mass("fit", next_kappa, 1);
      const double value = detail::cayley_log_likelihood<N>(samples, weights, next, next_kappa);
      if (!near && !(value > likelihood)) return false;
      location = orthonormalisation_step<double, N>(next);
      kappa = next_kappa;
      likelihood = value;
      return true;
    });
    refuse_point_mass("fit", kappa, scatter);
    const CayleyDistribution<N, double> fitted(location, kappa);
    const RotationInformation<double> information = fisher_information(fitted);
    return {at(location, kappa),
            static_cast<Scalar>(1 / std::sqrt(information.location * weights.effective)),
            static_cast<Scalar>(1 / std::sqrt(information.concentration * weights.effective)),
            likelihood,
            weights.effective,
            iterations};
  }

 private:
  /// The 1 − κ, in ε, that rounding errors of the entries of equal rotations look like.
  static constexpr int scatter = 2 * N;

  /// \param least  of 1 − κ, in ε
  static void refuse_point_mass(const char* name, double kappa, int least) {
    require(1 - kappa >= least * static_cast<double>(std::numeric_limits<Scalar>::epsilon()),
            detail::concat(name, ": samples"), "a set of (nearly) equal rotations",
            "the concentration has no estimate below 1");
  }
  static Distribution at(const SquareMatrix<double, N>& location, double kappa) {
    return {Sample(location.template cast<Scalar>()), static_cast<Scalar>(kappa)};
  }
};

/// Angles are rotations of R².
template <class Scalar>
struct Fitting<WrappedCauchy<Scalar>> {
  using Sample = Scalar;
  using Result = RotationFit<WrappedCauchy<Scalar>>;
  using Plane = Fitting<CayleyDistribution<2, Scalar>>;
  static constexpr bool concentration_below_one = true;
  static constexpr int location_parameters = 1;
  static constexpr int free_parameters = location_parameters + 1;

  /// Unchecked: fit() checks samples, weights and options.
  static Result moments(std::span<const Scalar> angles, std::span<const Scalar> weights,
                        const SampleOptions<Scalar>& options) {
    return as_angle(Plane::moments(rotations(angles), weights, options));
  }
  /// Unchecked: fit() checks samples, weights and options.
  static Result maximum_likelihood(std::span<const Scalar> angles, std::span<const Scalar> weights,
                                   const SampleOptions<Scalar>& options) {
    return as_angle(Plane::maximum_likelihood(rotations(angles), weights, options));
  }

 private:
  static std::vector<SquareMatrix<Scalar, 2>> rotations(std::span<const Scalar> angles) {
    std::vector<SquareMatrix<Scalar, 2>> result;
    for (std::size_t i = 0; i < angles.size(); ++i) {
      require(std::isfinite(angles[i]), {"fit", "samples", i}, angles[i], "must be finite");
      const Scalar c = std::cos(angles[i]), s = std::sin(angles[i]);
      result.push_back((SquareMatrix<Scalar, 2>() << c, -s, s, c).finished());
    }
    return result;
  }
  static Result as_angle(const RotationFit<CayleyDistribution<2, Scalar>>& fit) {
    return {WrappedCauchy<Scalar>(rotation_angle<Scalar, 2>(fit.distribution.location()),
                                  fit.distribution.concentration()),
            fit.location_error,
            fit.concentration_error,
            fit.log_likelihood,
            fit.effective_samples,
            fit.iterations};
  }
};

}  // namespace sheafnn::rotation
