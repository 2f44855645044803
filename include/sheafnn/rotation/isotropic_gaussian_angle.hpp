/// \file
/// The rotation angle of PMᵀ for the isotropic Gaussian distribution: density, distribution function and quantile.
///
/// The density of the angle ω is (1 − cos ω)/π · f. The distribution function is its integral by Gauss's formula on parts no
/// longer than σ: relative error about 1e-14. It takes some ten to fifty microseconds, a quantile some ten times that.
#pragma once

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "sheafnn/rotation/angle_root.hpp"
#include "sheafnn/rotation/isotropic_gaussian.hpp"
#include "sheafnn/rotation/rotation_angle.hpp"
#include "sheafnn/rotation/unit_quadrature.hpp"

namespace sheafnn::detail {

/// Density relative to the uniform rotation's at angle r, at time t.
[[nodiscard]] inline double heat_angle_ratio(double t, double r) {
  return std::exp(heat_kernel(HalfAngle<double>{std::sin(r / 2), std::max(0.0, std::cos(r / 2))}, t).log);
}

/// P(angle ≤ r), r in [0, π]. Beyond 40 √t there is less than 1e-340.
[[nodiscard]] inline double heat_angle_mass(double t, double r) {
  const double sigma = std::sqrt(t), end = std::min(r, 40 * sigma);
  if (end <= 0) return 0;
  const double parts = std::ceil(end / std::min(sigma, 0.5));
  return integrate_parts([t](double x) { return haar_angle_pdf<3>(x) * heat_angle_ratio(t, x); }, 0, end,
                         static_cast<int>(parts));
}

}  // namespace sheafnn::detail

namespace sheafnn::rotation {

/// Density of the rotation angle of PMᵀ. \throws std::invalid_argument  r is out of its range
template <int N, class Scalar>
[[nodiscard]] Scalar angle_pdf(const IsotropicGaussian<N, Scalar>& distribution, std::type_identity_t<Scalar> r) {
  const double angle = detail::checked_angle<N>("angle_pdf: r", r);
  return static_cast<Scalar>(detail::haar_angle_pdf<N>(angle) *
                             detail::heat_angle_ratio(distribution.time(), angle));
}

/// P(angle ≤ r). \throws std::invalid_argument  r is out of its range
template <int N, class Scalar>
[[nodiscard]] Scalar angle_cdf(const IsotropicGaussian<N, Scalar>& distribution, std::type_identity_t<Scalar> r) {
  const double mass = detail::heat_angle_mass(distribution.time(), detail::checked_angle<N>("angle_cdf: r", r));
  return static_cast<Scalar>(std::min(1.0, mass));
}

/// The angle with a given probability below. \throws std::invalid_argument  the probability is not in [0, 1]
template <int N, class Scalar>
[[nodiscard]] Scalar angle_quantile(const IsotropicGaussian<N, Scalar>& distribution,
                                    std::type_identity_t<Scalar> probability) {
  const double p = detail::checked_probability("angle_quantile: probability", static_cast<double>(probability));
  const double t = distribution.time();
  // The density relative to the uniform one is largest at 0: with that everywhere, P = p below the angle sought.
  const double start = detail::haar_angle_quantile<3>(p / detail::heat_angle_ratio(t, 0));
  return static_cast<Scalar>(detail::angle_root(
      p, 1, start, [t](double r) { return detail::heat_angle_mass(t, r); },
      [t](double r) { return detail::haar_angle_pdf<3>(r) * detail::heat_angle_ratio(t, r); }));
}

}  // namespace sheafnn::rotation
