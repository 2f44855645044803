/// \file
/// Fitting distributions to (weighted) samples: fit<CayleyDistribution<3>>(rotations) and
/// fit_moments<…>(rotations).
///
/// Standard errors hold for large samples. Weights are importances: they may have any scale, and a sample of
/// weights w counts as (Σw)²/Σw² of equal weights. Repetitions are written as repeated samples.
#pragma once

#include <algorithm>
#include <boost/math/special_functions/gamma.hpp>
#include <cmath>
#include <span>
#include <stdexcept>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/core/small_matrix.hpp"
#include "sheafnn/rotation/operations.hpp"

namespace sheafnn::rotation {

/// The interval [lower, upper], from the standard error e of large samples.
///
/// Let z be the χ quantile, P(χ_1 ≤ z) = level. A concentration κ in [0, 1) has tanh(artanh κ̂ ± z e/(1 − κ̂²)): on this scale
/// the information of a Cayley distribution is constant. A positive concentration has k̂ exp(±z e/k̂). A location M
/// has the ball {exp(X_φ) M̂ : |φ| ≤ r}, r = e · (χ_q quantile of level) for q coordinates φ. Source: math, "Fits".
template <class Scalar>
struct ConfidenceInterval {
  Scalar lower, upper;
};

}  // namespace sheafnn::rotation

namespace sheafnn::detail {

/// The x with P(|Z| ≤ x) = level for q independent standard normal coordinates Z.
///
/// \throws std::invalid_argument  a level that is not in (0, 1)
[[nodiscard]] inline double normal_radius(const char* name, int q, double level) {
  require(level > 0 && level < 1, concat(name, ": level"), level, "must be in (0, 1)");
  return std::sqrt(2 * boost::math::gamma_p_inv(0.5 * q, level));
}

/// Climbs a likelihood until its steps are of rounding's size.
///
/// \param direction  direction(): chooses a step, and returns its squared length in units of one sample's standard errors
/// \param move       move(part, near): takes this part of the step if that is up, or if `near`. So near, differences of the
///                   likelihood are rounding, while the score still has digits. Returns whether it did
/// \returns the number of steps \throws std::runtime_error  the iteration does not end
template <class Direction, class Move>
[[nodiscard]] int climb(const Direction& direction, const Move& move) {
  constexpr int max_iterations = 1000;
  int iteration = 0, last_steps = 30;
  for (bool moving = true; moving && last_steps > 0; ++iteration) {
    if (iteration == max_iterations) {
      throw std::runtime_error(concat("fit: no convergence within ", max_iterations, " iterations"));
    }
    const double length = direction();
    if (!(length > 1e-22)) break;
    const bool near = length <= 1e-8;
    if (near) --last_steps;
    moving = false;
    double part = 1;
    for (int halving = 0; halving < 40 && !moving; ++halving, part *= 0.5) moving = move(part, near);
  }
  return iteration;
}

/// The interval of a concentration in [0, 1) or, with `below_one` false, in [0, ∞).
template <class Scalar>
[[nodiscard]] ConfidenceInterval<Scalar> concentration_interval(bool below_one, Scalar estimate, Scalar error,
                                                                double level) {
  const double k = static_cast<double>(estimate);
  const double half = normal_radius("concentration_interval", 1, level) * static_cast<double>(error);
  double lower = 0, upper = half;  // of the estimate 0, which has no logarithm
  if (below_one) {
    const double centre = std::atanh(k), width = half / ((1 - k) * (1 + k));
    lower = std::tanh(std::max(0.0, centre - width));
    upper = std::tanh(centre + width);
  } else if (k > 0) {
    lower = k * std::exp(-half / k);
    upper = k * std::exp(half / k);
  }
  return {static_cast<Scalar>(lower), static_cast<Scalar>(upper)};
}

}  // namespace sheafnn::detail

namespace sheafnn::rotation {

/// How samples of D are fitted: specialised next to the functions that do it (cayley_fit.hpp, leon_fit.hpp,
/// matrix_fisher_fit.hpp, matrix_bingham_fit.hpp, isotropic_gaussian_fit.hpp, angular_central_gaussian_fit.hpp).
template <class D>
struct Fitting;

/// Result for distributions with a location and a concentration.
template <class D>
struct RotationFit {
  using Scalar = typename D::Scalar;

  D distribution;              ///< at the estimates
  Scalar location_error;       ///< standard error of each coordinate φ of M̂ = exp(X_φ) M, radians
  Scalar concentration_error;  ///< standard error of the concentration
  double log_likelihood;       ///< Σ w log f/Σ w at the estimates
  double effective_samples;    ///< (Σw)²/Σw²
  int iterations;              ///< 0 for estimates in closed form

  /// Holds the true concentration with probability `level`, for large samples; within the concentration's range.
  ///
  /// \throws std::invalid_argument  a level that is not in (0, 1)
  [[nodiscard]] ConfidenceInterval<Scalar> concentration_interval(double level = 0.95) const {
    return detail::concentration_interval<Scalar>(Fitting<D>::concentration_below_one,
                                                  distribution.concentration(), concentration_error, level);
  }
  /// The r for which {exp(X_φ) M̂ : |φ| ≤ r} holds the true location with probability `level`, for large samples. In
  /// radians; for N = 2 and 3 the largest angle of a turn. Not below π: the samples do not determine the location.
  ///
  /// \throws std::invalid_argument  a level that is not in (0, 1)
  [[nodiscard]] Scalar location_radius(double level = 0.95) const {
    return location_error *
           static_cast<Scalar>(detail::normal_radius("location_radius", Fitting<D>::location_parameters, level));
  }
};

/// Maximum likelihood. Equal samples have no maximum; for Cayley distributions a large share of equal samples suffices (math, "Fits").
///
/// \param samples  rotations (angles, unit vectors) of the type D draws; a std::vector or std::array converts
/// \param weights  empty, or one for each sample: finite, at least 0, with at least one positive weight
/// \param options  how far from orthogonal samples may be, e.g. {.tolerance = 1e-5} for float accuracy in double
/// \throws std::invalid_argument  an invalid sample or weight, too few samples, or samples for which no maximum exists
/// \throws std::runtime_error  the iteration does not end
template <class D>
[[nodiscard]] auto fit(std::span<const typename Fitting<D>::Sample> samples,
                       std::span<const typename D::Scalar> weights = {},
                       const SampleOptions<typename D::Scalar>& options = {}) {
  return Fitting<D>::maximum_likelihood(samples, weights, options);
}

/// The distribution whose mean is the mean of the samples; errors from the samples' own scatter.
///
/// \throws std::invalid_argument  as fit
template <class D>
[[nodiscard]] auto fit_moments(std::span<const typename Fitting<D>::Sample> samples,
                               std::span<const typename D::Scalar> weights = {},
                               const SampleOptions<typename D::Scalar>& options = {}) {
  return Fitting<D>::moments(samples, weights, options);
}

}  // namespace sheafnn::rotation
