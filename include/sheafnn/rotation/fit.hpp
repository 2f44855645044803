/// \file
/// Fitting distributions to (weighted) samples: fit<CayleyDistribution<3>>(rotations) and
/// fit_moments<…>(rotations).
///
/// Standard errors hold for large samples. Weights are importances: they may have any scale, and a sample of
/// weights w counts as (Σw)²/Σw² of equal weights. Repetitions are written as repeated samples.
#pragma once

#include <span>

#include "sheafnn/core/small_matrix.hpp"
#include "sheafnn/rotation/confidence.hpp"
#include "sheafnn/rotation/operations.hpp"

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

/// Maximum likelihood.
///
/// \param samples  rotations (angles, unit vectors) of the type D draws; a std::vector or std::array converts
/// \param weights  empty, or one for each sample: finite, at least 0, with at least one positive weight
/// \param options  how far from orthogonal samples may be, e.g. {.tolerance = 1e-5} for float accuracy in double
/// \throws std::invalid_argument  an invalid sample or weight, too few samples, or samples for which no maximum exists
///         (all of them equal)
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
