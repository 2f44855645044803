/// \file
/// Goodness of fit on SO(2) and SO(3): the probability-integral transform of the rotation angle and its
/// Kolmogorov–Smirnov statistic. Source: math, "Angles".
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "sheafnn/core/errors.hpp"
#include "sheafnn/core/small_matrix.hpp"
#include "sheafnn/rotation/operations.hpp"
#include "sheafnn/rotation/orthonormalise.hpp"
#include "sheafnn/rotation/rotation_angle.hpp"

namespace sheafnn::rotation {

/// Outcome of a test whether samples come from a distribution.
struct GoodnessOfFit {
  std::vector<double>
      probabilities;  ///< angle_cdf of each sample's angle, in the samples' order; uniform under the law
  double statistic;   ///< sup |F_n − F|
  double p_value;     ///< probability of a larger statistic under the law
};

/// P(√n D > x) for large n, by Kolmogorov's series; small n through Stephens' x = (√n + 0.12 + 0.11/√n) D (J. R.
/// Stat. Soc. B 32, 1970). Unchecked: count ≥ 1.
[[nodiscard]] inline double kolmogorov_p_value(double statistic, std::size_t count) {
  const double root = std::sqrt(static_cast<double>(count));
  const double x = (root + 0.12 + 0.11 / root) * statistic;
  if (x < 0.2) return 1;  // to 1e-11
  double sum = 0;
  for (int j = 1; j <= 100; ++j) {
    const double term = std::exp(-2.0 * j * j * x * x);
    sum += j % 2 == 1 ? term : -term;
    if (term < 1e-17) break;
  }
  return std::clamp(2 * sum, 0.0, 1.0);
}

/// The statistic of numbers that should be uniform on [0, 1]. \throws std::invalid_argument  none, or one outside
/// of it
[[nodiscard]] inline GoodnessOfFit uniformity(std::vector<double> probabilities) {
  require(!probabilities.empty(), "uniformity: probabilities", "an empty list", "at least one is needed");
  for (std::size_t i = 0; i < probabilities.size(); ++i) {
    require(probabilities[i] >= 0 && probabilities[i] <= 1, ArgumentName("uniformity", "probabilities", i),
            probabilities[i], "must be in [0, 1]");
  }
  std::vector<double> sorted = probabilities;
  std::sort(sorted.begin(), sorted.end());
  const double n = static_cast<double>(sorted.size());
  double worst = 0;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const double below = static_cast<double>(i) / n;
    worst = std::max({worst, sorted[i] - below, below + 1 / n - sorted[i]});
  }
  return {std::move(probabilities), worst, kolmogorov_p_value(worst, sorted.size())};
}

/// angle_cdf at each of the angles. Distributions for which many at once are cheaper overload it.
/// \throws std::invalid_argument  as angle_cdf()
template <class D>
[[nodiscard]] std::vector<double> angle_probabilities(const D& distribution,
                                                      const std::vector<typename D::Scalar>& angles) {
  std::vector<double> probabilities;
  for (const auto angle : angles) probabilities.push_back(static_cast<double>(angle_cdf(distribution, angle)));
  return probabilities;
}

/// How well rotations follow a distribution of rotations of R² or R³ in their angle from its location.
///
/// The p-value holds for a distribution given beforehand; for one fitted to the same samples it is too large.
///
/// \param options  how far from orthogonal samples may be
/// \throws std::invalid_argument  no sample, or a sample that is not a rotation
template <class D>
  requires(D::dimension == 2 || D::dimension == 3)
[[nodiscard]] GoodnessOfFit goodness_of_fit(const D& distribution, std::span<const typename D::Matrix> samples,
                                            const SampleOptions<typename D::Scalar>& options = {}) {
  using Scalar = typename D::Scalar;
  std::vector<Scalar> angles;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const typename D::Matrix p =
        orthonormalised<Scalar, D::dimension>({"goodness_of_fit", "samples", i}, samples[i], options);
    angles.push_back(rotation_angle<Scalar, D::dimension>(multiply_nt(p, distribution.location())));
  }
  return uniformity(angle_probabilities(distribution, angles));
}

/// The same for angles of a wrapped Cauchy distribution.
template <class Scalar>
[[nodiscard]] GoodnessOfFit goodness_of_fit(const WrappedCauchy<Scalar>& distribution,
                                            std::span<const std::type_identity_t<Scalar>> angles) {
  std::vector<double> probabilities;
  for (std::size_t i = 0; i < angles.size(); ++i) {
    require(std::isfinite(angles[i]), {"goodness_of_fit", "angles", i}, angles[i], "must be finite");
    const Scalar centred =
        std::remainder(angles[i] - distribution.location(), Scalar(6.283185307179586476925286766559));
    probabilities.push_back(static_cast<double>(angle_cdf(distribution, centred)));
  }
  return uniformity(std::move(probabilities));
}

}  // namespace sheafnn::rotation
