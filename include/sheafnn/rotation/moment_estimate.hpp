/// \file
/// Location and mean resultant of rotations from their average, for distributions with E[P] = r M.
#pragma once

#include <cmath>
#include <cstddef>
#include <string_view>
#include <vector>

#include "sheafnn/core/errors.hpp"
#include "sheafnn/core/small_matrix.hpp"
#include "sheafnn/rotation/nearest_rotation.hpp"
#include "sheafnn/rotation/sample_weights.hpp"
#include "sheafnn/rotation/skew.hpp"

namespace sheafnn::detail {

/// M̂ = the rotation nearest to P̄ = Σ w P, r̂ = tr(P̄M̂ᵀ)/N, and their standard errors from the scatter of the
/// samples. `rest` is 1 − r̂ = Σ w ‖P − M̂‖²/2N, with all its digits where r̂ is close to 1.
template <int N>
struct MomentEstimate {
  SquareMatrix<double, N> location;
  double resultant, rest, resultant_error, location_error;
};

/// The estimate M̂ solves skew(P̄M̂ᵀ) = 0, so with M̂ = exp(X_φ)M, φ = (the average of the skew part of PMᵀ)/r.
template <int N>
[[nodiscard]] MomentEstimate<N> moment_estimate(std::string_view name,
                                                const std::vector<SquareMatrix<double, N>>& samples,
                                                const SampleWeights& weights) {
  SquareMatrix<double, N> mean = SquareMatrix<double, N>::Zero();
  for (std::size_t i = 0; i < samples.size(); ++i) mean += weights.weight[i] * samples[i];
  MomentEstimate<N> r;
  try {
    r.location = nearest_rotation<double, N>(mean);
  } catch (const std::invalid_argument&) {
    throw_invalid_argument(concat(name, ": samples"), "a set whose average has no nearest rotation",
                           "they must have a preferred direction");
  }
  r.resultant = (mean.array() * r.location.array()).sum() / N;
  r.rest = 0;
  std::vector<double> rests;  // 1 − tr(PM̂ᵀ)/N
  for (std::size_t i = 0; i < samples.size(); ++i) {
    rests.push_back((samples[i] - r.location).squaredNorm() / (2 * N));
    r.rest += weights.weight[i] * rests.back();
  }
  double trace_squares = 0, skew_squares = 0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const SquareMatrix<double, N> y = multiply_nt(samples[i], r.location);
    const double deviation = rests[i] - r.rest;
    const double squared = weights.weight[i] * weights.weight[i];
    trace_squares += squared * deviation * deviation;
    skew_squares += squared * skew_parameters<double, N>(y).squaredNorm() / rotation_parameters<N>;
  }
  r.resultant_error = std::sqrt(trace_squares);
  r.location_error = std::sqrt(skew_squares) / r.resultant;
  return r;
}

}  // namespace sheafnn::detail
