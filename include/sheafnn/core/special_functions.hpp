/// \file
/// Functions of probability that <cmath> lacks, in double precision: softplus, log y!, the Poisson distribution function.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

namespace sheafnn::detail {

/// log(2π)/2, of normal densities.
inline constexpr double half_log_two_pi = 0.91893853320467274178;

/// log(1 + e^x), without overflow. Takes any number.
[[nodiscard]] inline double softplus(double x) noexcept {
  return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
}

/// log y! by the product, or by Stirling's series where its next term is below rounding; std::lgamma writes to a variable
/// that threads share. Unchecked: y is a whole number of at least 0.
[[nodiscard]] inline double log_factorial(double y) noexcept {
  if (y < 32) {
    double product = 1;
    for (double factor = 2; factor <= y; ++factor) product *= factor;
    return std::log(product);
  }
  const double inverse = 1 / y, square = inverse * inverse;
  const double series = inverse * (1.0 / 12 - square * (1.0 / 360 - square * (1.0 / 1260 - square / 1680)));
  return (y + 0.5) * std::log(y) - y + half_log_two_pi + series;
}

/// P(Y ≤ y) of a Poisson number: the sum of masses from y to the side where they fall, of about √rate terms. Unchecked: y
/// is a whole number, and the rate is at least 0.
[[nodiscard]] inline double poisson_cdf(double y, double rate) noexcept {
  if (y < 0 || rate == 0) return y < 0 ? 0.0 : 1.0;
  const auto mass = [&](double j) { return std::exp(j * std::log(rate) - rate - log_factorial(j)); };
  constexpr double least = std::numeric_limits<double>::epsilon() / 8;
  double sum = 1, term = 1;  // in units of the first mass
  if (y < rate) {
    for (double j = y; j > 0 && term > least * sum; --j) sum += term *= j / rate;
    return std::min(mass(y) * sum, 1.0);
  }
  for (double j = y + 2; term > least * sum; ++j) sum += term *= rate / j;
  return std::max(1 - mass(y + 1) * sum, 0.0);
}

}  // namespace sheafnn::detail
