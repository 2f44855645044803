/// \file
/// The rotation angle of PMᵀ for the isotropic Gaussian distribution: density, distribution function and quantile.
///
/// The density of the angle ω is (1 − cos ω)/π · f. The distribution function is its integral by Gauss's formula on parts no
/// longer than σ: relative error about 1e-14. It takes some ten to fifty microseconds, a quantile some ten times that.
/// Source: math, "Isotropic Gaussian".
#pragma once

#include <algorithm>
#include <cmath>

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

template <int N, class Scalar>
struct AngleLaw<rotation::IsotropicGaussian<N, Scalar>> {
  using Distribution = rotation::IsotropicGaussian<N, Scalar>;
  static constexpr int dimension = N;

  [[nodiscard]] static double pdf(const Distribution& d, double r) {
    return haar_angle_pdf<N>(r) * heat_angle_ratio(d.time(), r);
  }
  [[nodiscard]] static double cdf(const Distribution& d, double r) {
    return std::min(1.0, heat_angle_mass(d.time(), r));
  }
  [[nodiscard]] static double quantile(const Distribution& d, double p) {
    const double t = d.time();
    // The density relative to the uniform one is largest at 0: with that everywhere, P = p below the angle sought.
    const double start = haar_angle_quantile<3>(p / heat_angle_ratio(t, 0));
    return angle_root(
        p, 1, start, [t](double r) { return heat_angle_mass(t, r); },
        [t](double r) { return haar_angle_pdf<3>(r) * heat_angle_ratio(t, r); });
  }
};

}  // namespace sheafnn::detail
