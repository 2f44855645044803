/// \file
/// Confidence intervals and balls from standard errors of large samples.
///
/// Let z be the χ quantile, P(χ_1 ≤ z) = level. A concentration κ in [0, 1) has tanh(artanh κ̂ ± z e/(1 − κ̂²)): on this scale
/// the information of a Cayley distribution is constant. A positive concentration has k̂ exp(±z e/k̂). A location M
/// has the ball {exp(X_φ) M̂ : |φ| ≤ r}, r = e · (χ_q quantile of level) for q coordinates φ. Source: math, "Fits".
#pragma once

#include <algorithm>
#include <boost/math/special_functions/gamma.hpp>
#include <cmath>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"

namespace sheafnn::rotation {

/// The interval [lower, upper].
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
