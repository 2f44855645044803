/// \file
/// The rotation angle of PMᵀ for León's distribution on SO(2) and SO(3): sin²(r/2) has a beta distribution, with
/// parameters (1/2, k + 1/2) for N = 2 and (3/2, k + 1/2) for N = 3.
#pragma once

#include <boost/math/special_functions/beta.hpp>
#include <cmath>
#include <type_traits>

#include "sheafnn/rotation/leon_distribution.hpp"
#include "sheafnn/rotation/rotation_angle.hpp"

namespace sheafnn {

/// Density of the rotation angle of PMᵀ. \throws std::invalid_argument  r is out of its range
template <int N, class Scalar>
[[nodiscard]] Scalar angle_pdf(const LeonCayleyDistribution<N, Scalar>& distribution,
                               std::type_identity_t<Scalar> r) {
  const double angle = detail::checked_angle<N>("angle_pdf: r", r);
  const double k = static_cast<double>(distribution.concentration());
  const double cosine = std::cos(angle / 2);
  const double ratio = std::pow(cosine * cosine, k) * std::exp(-detail::leon_normaliser<N>(k).log);
  return static_cast<Scalar>(detail::haar_angle_pdf<N>(angle) * ratio);
}

/// P(angle ≤ r). \throws std::invalid_argument  r is out of its range
template <int N, class Scalar>
[[nodiscard]] Scalar angle_cdf(const LeonCayleyDistribution<N, Scalar>& distribution,
                               std::type_identity_t<Scalar> r) {
  const double angle = detail::checked_angle<N>("angle_cdf: r", r);
  const double sine = std::sin(angle / 2);
  const double k = static_cast<double>(distribution.concentration());
  const double within = boost::math::ibeta(N == 2 ? 0.5 : 1.5, k + 0.5, sine * sine);  // P(|angle| ≤ |r|)
  return static_cast<Scalar>(N == 3 ? within : 0.5 + std::copysign(0.5 * within, angle));
}

/// The angle with a given probability below. \throws std::invalid_argument  the probability is not in [0, 1]
template <int N, class Scalar>
[[nodiscard]] Scalar angle_quantile(const LeonCayleyDistribution<N, Scalar>& distribution,
                                    std::type_identity_t<Scalar> probability) {
  static_assert(N == 2 || N == 3, "one angle describes a rotation of R² or R³");
  const double p = detail::checked_probability("angle_quantile: probability", static_cast<double>(probability));
  const double k = static_cast<double>(distribution.concentration());
  const double within = N == 3 ? p : std::abs(2 * p - 1);
  double rest = 0;
  const double squared = boost::math::ibeta_inv(N == 2 ? 0.5 : 1.5, k + 0.5, within, &rest);
  const double angle = 2 * std::atan2(std::sqrt(squared), std::sqrt(rest));
  return static_cast<Scalar>(N == 3 ? angle : std::copysign(angle, 2 * p - 1));
}

}  // namespace sheafnn
