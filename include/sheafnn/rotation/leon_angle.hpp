/// \file
/// The rotation angle of PMᵀ for León's distribution on SO(2) and SO(3): sin²(r/2) has a beta distribution, with
/// parameters (1/2, k + 1/2) for N = 2 and (3/2, k + 1/2) for N = 3.
#pragma once

#include <boost/math/special_functions/beta.hpp>
#include <cmath>

#include "sheafnn/rotation/leon_distribution.hpp"
#include "sheafnn/rotation/rotation_angle.hpp"

namespace sheafnn::detail {

/// P(|angle| ≤ r) = I_s(a, b), the beta distribution function: of s = sin²(r/2), with a = 1/2 or 3/2 and b = k + 1/2.
/// Where b s is small, it is s^a (1 − (b − 1) a s/(a + 1) + …)/(a B(a, b)), and two terms are exact to rounding.
template <int N>
struct LeonAngle {
  static_assert(N == 2 || N == 3, "one angle describes a rotation of R² or R³");
  static constexpr double a = N == 2 ? 0.5 : 1.5, small = 1e-8;
  double b, scale;  ///< scale = (a B(a, b))^{1/a}

  explicit LeonAngle(double k)
      : b(k + 0.5), scale(std::pow((N == 2 ? 0.5 : 0.75) * pi, 1 / a) * std::exp(leon_normaliser<N>(k).log / a)) {}

  [[nodiscard]] double mass(double r) const {
    const double sine = std::sin(r / 2), cosine = std::cos(r / 2), s = sine * sine;
    if (b * s < small) return std::pow(std::abs(sine) / std::sqrt(scale), 2 * a) * (1 - (b - 1) * a / (a + 1) * s);
    return s < 0.5 ? boost::math::ibeta(a, b, s) : 1 - boost::math::ibeta(b, a, cosine * cosine);
  }
  /// The inverse of mass, in [0, π].
  [[nodiscard]] double angle(double mass) const {
    const double first = scale * std::pow(mass, 1 / a);  // by the first term alone
    if (b * first < small) return 2 * std::asin(std::sqrt(first * (1 + (b - 1) / (a + 1) * first)));
    double rest = 0;
    const double s = boost::math::ibeta_inv(a, b, mass, &rest);  // does not end for some masses below 1e-19
    return 2 * std::atan2(std::sqrt(s), std::sqrt(rest));
  }
};

template <int N, class Scalar>
struct AngleLaw<rotation::LeonCayleyDistribution<N, Scalar>> {
  using Distribution = rotation::LeonCayleyDistribution<N, Scalar>;
  static constexpr int dimension = N;

  [[nodiscard]] static double pdf(const Distribution& d, double r) {
    const double k = static_cast<double>(d.concentration()), sine = std::sin(r / 2), cosine = std::cos(r / 2);
    const double log_power =
        k == 0 ? 0 : sine * sine < 0.5 ? k * std::log1p(-sine * sine) : 2 * k * std::log(cosine);
    return haar_angle_pdf<N>(r) * std::exp(log_power - leon_normaliser<N>(k).log);
  }
  [[nodiscard]] static double cdf(const Distribution& d, double r) {
    const double mass = LeonAngle<N>(static_cast<double>(d.concentration())).mass(r);
    return N == 3 ? mass : 0.5 + std::copysign(0.5 * mass, r);
  }
  [[nodiscard]] static double quantile(const Distribution& d, double p) {
    const double mass = N == 3 ? p : std::abs(2 * p - 1);
    const double angle = LeonAngle<N>(static_cast<double>(d.concentration())).angle(mass);
    return N == 3 ? angle : std::copysign(angle, 2 * p - 1);
  }
};

}  // namespace sheafnn::detail
