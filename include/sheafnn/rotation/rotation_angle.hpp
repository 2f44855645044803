/// \file
/// The rotation angle r of PMᵀ for uniform, Cayley and wrapped Cauchy distributed P. Density, distribution function and
/// quantile are in closed form, except for the one equation u − sin u = πp.
///
/// N = 2: the signed angle in [−π, π]; N = 3: the angle about the axis in [0, π]; densities with respect to dr.
/// The Möbius map acts on angles, tan(r/2) = (1 − κ)/(1 + κ) · tan(u/2) with the angle u of a uniform rotation,
/// whose distribution function is (u + π)/2π (N = 2) or (u − sin u)/π (N = 3). Source: math, "Angles" (2.39).
#pragma once

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "sheafnn/core/errors.hpp"
#include "sheafnn/rotation/cayley_distribution.hpp"
#include "sheafnn/rotation/haar_distribution.hpp"
#include "sheafnn/rotation/pi.hpp"
#include "sheafnn/rotation/wrapped_cauchy.hpp"

namespace sheafnn::detail {

/// Refuses an angle outside of [−π, π] (N = 2) or [0, π] (N = 3), up to rounding of π; returns it inside.
template <int N, class Scalar>
[[nodiscard]] double checked_angle(std::string_view name, Scalar angle) {
  static_assert(N == 2 || N == 3, "one angle describes a rotation of R² or R³");
  const double slack = 4 * static_cast<double>(std::numeric_limits<Scalar>::epsilon());
  const double lower = N == 2 ? -pi : 0;
  const double value = static_cast<double>(angle);
  require(value >= lower - slack && value <= pi + slack, name, angle,
          N == 2 ? "must be in [-pi, pi]" : "must be in [0, pi]");
  return std::clamp(value, lower, pi);
}

inline double checked_probability(std::string_view name, double probability) {
  require(probability >= 0 && probability <= 1, name, probability, "must be in [0, 1]");
  return probability;
}

/// u − sin u, to full relative precision.
[[nodiscard]] inline double angle_excess(double u) {
  if (u > 0.8) return u - std::sin(u);
  const double squared = u * u;
  double sum = 0;
  for (int k = 8; k >= 1; --k) sum = (1 - sum) * squared / ((2 * k) * (2 * k + 1));
  return u * sum;
}

/// The u in [0, π] with u − sin u = excess, by Newton's method from the cube root of its series or from π.
[[nodiscard]] inline double angle_of_excess(double excess) {
  if (excess <= 0) return 0;
  const double root = std::cbrt(6 * excess);
  double u = excess < 1.2 ? root + root * root * root / 60 : pi - (pi - excess) / 2;
  for (int i = 0; i < 6; ++i) {
    const double sine = std::sin(u / 2);
    u = std::min(u - (angle_excess(u) - excess) / (2 * sine * sine), pi);
  }
  return u;
}

/// Distribution function of the uniform rotation's angle and its inverse.
template <int N>
[[nodiscard]] double haar_angle_cdf(double u) {
  return N == 2 ? (u + pi) / (2 * pi) : angle_excess(u) / pi;
}
template <int N>
[[nodiscard]] double haar_angle_quantile(double probability) {
  return N == 2 ? pi * (2 * probability - 1) : angle_of_excess(pi * probability);
}
/// Density of the uniform rotation's angle, 1/2π or (1 − cos r)/π.
template <int N>
[[nodiscard]] double haar_angle_pdf(double r) {
  const double sine = std::sin(r / 2);
  return N == 2 ? 1 / (2 * pi) : 2 * sine * sine / pi;
}

/// Density, relative to the uniform rotation's, of C_N(M, κ) at angle r from M, for N = 2 or 3.
template <int N>
[[nodiscard]] double cayley_angle_ratio(double kappa, double r) {
  const double sine = std::sin(r / 2);
  const double square = (1 - kappa) * (1 - kappa) + 4 * kappa * sine * sine;  // 1 + κ² − 2κ cos r
  const double two = (1 - kappa) * (1 + kappa) / square;
  return N == 2 ? two : two * (1 + kappa) * (1 + kappa) / square;
}
template <int N>
[[nodiscard]] double cayley_angle_cdf(double kappa, double r) {
  return haar_angle_cdf<N>(2 * std::atan2((1 + kappa) * std::sin(r / 2), (1 - kappa) * std::cos(r / 2)));
}
template <int N>
[[nodiscard]] double cayley_angle_quantile(double kappa, double probability) {
  const double u = haar_angle_quantile<N>(probability);
  return 2 * std::atan2((1 - kappa) * std::sin(u / 2), (1 + kappa) * std::cos(u / 2));
}

/// The law of a distribution's rotation angle: density, distribution function and its inverse, of an angle and a probability
/// in their ranges.
template <class D>
struct AngleLaw;
template <int N, class Scalar>
struct AngleLaw<rotation::HaarDistribution<N, Scalar>> {
  static constexpr int dimension = N;
  template <class D>
  [[nodiscard]] static double pdf(const D&, double r) {
    return haar_angle_pdf<N>(r);
  }
  template <class D>
  [[nodiscard]] static double cdf(const D&, double r) {
    return haar_angle_cdf<N>(r);
  }
  template <class D>
  [[nodiscard]] static double quantile(const D&, double probability) {
    return haar_angle_quantile<N>(probability);
  }
};
template <int N, class Scalar>
struct AngleLaw<rotation::CayleyDistribution<N, Scalar>> {
  static constexpr int dimension = N;
  template <class D>
  [[nodiscard]] static double pdf(const D& d, double r) {
    return haar_angle_pdf<N>(r) * cayley_angle_ratio<N>(static_cast<double>(d.concentration()), r);
  }
  template <class D>
  [[nodiscard]] static double cdf(const D& d, double r) {
    return cayley_angle_cdf<N>(static_cast<double>(d.concentration()), r);
  }
  template <class D>
  [[nodiscard]] static double quantile(const D& d, double probability) {
    return cayley_angle_quantile<N>(static_cast<double>(d.concentration()), probability);
  }
};
/// The law of θ − μ in [−π, π].
template <class Scalar>
struct AngleLaw<rotation::WrappedCauchy<Scalar>> : AngleLaw<rotation::CayleyDistribution<2, Scalar>> {};

}  // namespace sheafnn::detail

namespace sheafnn::rotation {

/// Density of the rotation angle of PMᵀ, in [−π, π] (N = 2) or [0, π] (N = 3); of wrapped Cauchy distributions of θ − μ.
///
/// \throws std::invalid_argument  r is out of its range
template <class D, class Scalar = typename D::Scalar>
[[nodiscard]] Scalar angle_pdf(const D& distribution, std::type_identity_t<Scalar> r) {
  using Law = detail::AngleLaw<D>;
  return static_cast<Scalar>(Law::pdf(distribution, detail::checked_angle<Law::dimension>("angle_pdf: r", r)));
}
/// P(angle ≤ r). \throws std::invalid_argument  r is out of its range
template <class D, class Scalar = typename D::Scalar>
[[nodiscard]] Scalar angle_cdf(const D& distribution, std::type_identity_t<Scalar> r) {
  using Law = detail::AngleLaw<D>;
  return static_cast<Scalar>(Law::cdf(distribution, detail::checked_angle<Law::dimension>("angle_cdf: r", r)));
}
/// The angle with a given probability below. \throws std::invalid_argument  the probability is not in [0, 1]
template <class D, class Scalar = typename D::Scalar>
[[nodiscard]] Scalar angle_quantile(const D& distribution, std::type_identity_t<Scalar> probability) {
  using Law = detail::AngleLaw<D>;
  static_assert(Law::dimension == 2 || Law::dimension == 3, "one angle describes a rotation of R² or R³");
  const double p = static_cast<double>(probability);
  return static_cast<Scalar>(
      Law::quantile(distribution, detail::checked_probability("angle_quantile: probability", p)));
}

}  // namespace sheafnn::rotation
