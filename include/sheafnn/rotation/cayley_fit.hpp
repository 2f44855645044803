/// \file
/// Fits of Cayley and wrapped Cauchy distributions, by moments and by maximum likelihood.
///
/// With U_i = (I − κY_i)⁻¹(Y_i − κI), Y_i = P_iMᵀ, the likelihood equations say that Ū = Σ w U is symmetric and
/// has trace 0. In η = artanh κ the information about κ is constant, (N − 1)² v; that about M is ((N − 1)κ/(1 −
/// κ²))² 2v/N with v = 1 (2 for N = 2). Fisher's scoring from the moment estimate, with steps halved until the
/// likelihood grows. Newton's method (cayley_ascent.hpp) ends it. Source: math, "Fits".
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <stdexcept>
#include <vector>

#include "sheafnn/rotation/cayley_ascent.hpp"
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
    require(1 - kappa >= scatter * epsilon, "fit_moments: samples", "a set of (nearly) equal rotations",
            "the concentration has no estimate below 1");
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
    const detail::SampleWeights weights("fit", given.size(), given_weights, 2);
    const auto samples = detail::checked_samples<N, Scalar>("fit", given, options);
    const auto estimate = detail::moment_estimate<N>("fit", samples, weights);
    Estimate best;
    best.location = estimate.location;
    // Samples without outliers have 1 − r̂ of about (1 − κ)², whose κ may round to 1 where the maximum is below.
    best.kappa =
        std::clamp(detail::cayley_concentration<N>(estimate.resultant, estimate.rest), 1e-8, 1 - 16 * epsilon);
    best.likelihood = detail::cayley_log_likelihood<N>(samples, weights, best.location, best.kappa);
    const auto escaped = [&](const Estimate& at) { return has_escaped(samples, weights, at); };
    int iterations = 0;
    const bool scored = score(samples, weights, best, iterations, escaped);
    const bool few =
        std::count_if(weights.weight.begin(), weights.weight.end(), [](double w) { return w > 0; }) <= 32;
    // A score of 0 of few samples may belong to a saddle.
    if ((few || !scored) && !detail::climb_cayley<N>(samples, weights, best, most_steps, iterations, escaped)) {
      throw std::runtime_error(detail::concat("fit: no convergence within ", iterations, " iterations"));
    }
    require_maximum(!escaped(best) && 1 - best.kappa >= scatter * epsilon);
    if (few) try_other_starts(samples, weights, best, iterations);
    require_maximum(!detail::cayley_at_limit<N>(samples, weights, best));
    const CayleyDistribution<N, double> fitted(best.location, best.kappa);
    const RotationInformation<double> information = fisher_information(fitted);
    return {at(best.location, best.kappa),
            static_cast<Scalar>(1 / std::sqrt(information.location * weights.effective)),
            static_cast<Scalar>(1 / std::sqrt(information.concentration * weights.effective)),
            best.likelihood,
            weights.effective,
            iterations};
  }

 private:
  using Estimate = detail::CayleyEstimate<N>;
  static constexpr double epsilon = static_cast<double>(std::numeric_limits<Scalar>::epsilon());
  static constexpr int most_steps = 500;
  /// The 1 − κ, in ε, that rounding errors of the entries of equal rotations look like.
  static constexpr int scatter = 2 * N;

  /// Fisher's scoring, for as long as it is fast: few samples have curvatures far from the information.
  ///
  /// \returns  whether the score has come to 0
  template <class Escaped>
  static bool score(const std::vector<SquareMatrix<double, N>>& samples, const detail::SampleWeights& weights,
                    Estimate& best, int& iterations, const Escaped& escaped) {
    constexpr double twice = N == 2 ? 2 : 1;
    int left = 30;
    bool ended = false;
    RotationParameters<double, N> turn;
    double growth = 0;  // of artanh κ
    const auto direction = [&] {
      if (left-- == 0 || escaped(best)) return 0.0;
      SquareMatrix<double, N> mean = SquareMatrix<double, N>::Zero();
      for (std::size_t i = 0; i < samples.size(); ++i) {
        mean += weights.weight[i] *
                detail::uniform_behind<double, N>(multiply_nt(samples[i], best.location), best.kappa);
      }
      const double scale = (N - 1) * best.kappa / ((1 - best.kappa) * (1 + best.kappa));
      turn = skew_parameters<double, N>(mean) * (N / (scale * twice));
      growth = mean.trace() / ((N - 1) * twice);
      const double length =
          (N - 1) * (N - 1) * twice * growth * growth + 2 * twice / N * scale * scale * turn.squaredNorm();
      ended = length <= 1e-22;
      turn *= std::min(1.0, 1 / turn.norm());
      growth = std::clamp(growth, -2.0, 2.0);
      return length;
    };
    iterations += detail::climb(direction, [&](double part, bool near) {
      const Estimate next = detail::turned_estimate<N>(samples, weights, best, part * turn, part * growth);
      if (!(next.kappa < 1) || (!near && !(next.likelihood > best.likelihood))) return false;
      best = next;
      return true;
    });
    return ended;
  }

  /// Few samples have several maxima: climbs from the likeliest samples too, and keeps the highest maximum.
  static void try_other_starts(const std::vector<SquareMatrix<double, N>>& samples,
                               const detail::SampleWeights& weights, Estimate& best, int& iterations) {
    constexpr std::size_t most_starts = 4;
    std::vector<Estimate> starts;
    for (std::size_t i = 0; i < samples.size(); ++i) {
      if (weights.weight[i] == 0) continue;
      Estimate start;
      start.likelihood = -std::numeric_limits<double>::infinity();
      for (double growth = -2; growth <= 2; growth += 0.5) {
        Estimate tried;
        tried.location = samples[i];
        tried.kappa = std::clamp(std::tanh(std::atanh(best.kappa) + growth), 0.01, 1 - 16 * epsilon);
        tried.likelihood = detail::cayley_log_likelihood<N>(samples, weights, tried.location, tried.kappa);
        if (tried.likelihood > start.likelihood) start = tried;
      }
      starts.push_back(start);
    }
    std::sort(starts.begin(), starts.end(),
              [](const Estimate& a, const Estimate& b) { return a.likelihood > b.likelihood; });
    if (starts.size() > most_starts) starts.resize(most_starts);
    for (Estimate& start : starts) {
      const auto escaped = [&](const Estimate& at) { return has_escaped(samples, weights, at); };
      if (!detail::climb_cayley<N>(samples, weights, start, most_steps, iterations, escaped)) continue;
      // Two ends of climbs to the same maximum differ by rounding.
      const double rounding = 1e-12 * (1 + std::abs(best.likelihood));
      if (start.likelihood > best.likelihood + rounding && !escaped(start) &&
          1 - start.kappa >= scatter * epsilon) {
        best = start;
      }
    }
  }

  static bool has_escaped(const std::vector<SquareMatrix<double, N>>& samples,
                          const detail::SampleWeights& weights, const Estimate& at) {
    return detail::cayley_escapes<N>(samples, weights, at, scatter * epsilon);
  }
  static void require_maximum(bool is_one) {
    require(is_one, "fit: samples", "a set of (nearly) equal rotations, or of too few,",
            "the likelihood has no maximum at a concentration below 1");
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
