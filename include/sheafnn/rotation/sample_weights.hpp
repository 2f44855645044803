/// \file
/// Weights of samples for fits.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "sheafnn/core/errors.hpp"
#include "sheafnn/core/small_matrix.hpp"
#include "sheafnn/rotation/orthonormalise.hpp"

namespace sheafnn::detail {

/// Weights that sum to 1, and how many equally weighted samples estimate as well: (Σw)²/Σw², which is n for equal
/// ones.
struct SampleWeights {
  std::vector<double> weight;
  double effective = 0;

  /// \param given  one weight, finite and at least 0, for each sample, at least one positive; none: all are equal
  /// \throws std::invalid_argument  an argument is out of its range, or fewer than `least` samples
  template <class Scalar>
  SampleWeights(std::string_view name, std::size_t count, std::span<const Scalar> given, std::size_t least) {
    require(count >= least, concat(name, ": samples"), concat(count, " of them"),
            concat("at least ", least, " are needed"));
    if (given.empty()) {
      weight.assign(count, 1.0 / static_cast<double>(count));
      effective = static_cast<double>(count);
      return;
    }
    require(given.size() == count, concat(name, ": weights"), concat(given.size(), " of them"),
            concat("there are ", count, " samples"));
    double sum = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const double w = static_cast<double>(given[i]);
      require(std::isfinite(w) && w >= 0, {name, "weights", i}, w, "must be finite and at least 0");
      weight.push_back(w);
      sum += w;
    }
    require(sum > 0, concat(name, ": weights"), concat("a sum of ", sum), "must be positive");
    if (!std::isfinite(sum)) {  // any scale is allowed: one without overflow
      const double largest = *std::max_element(weight.begin(), weight.end());
      sum = 0;
      for (double& w : weight) sum += w /= largest;
    }
    double squares = 0;
    for (double& w : weight) {
      w /= sum;
      squares += w * w;
    }
    effective = 1 / squares;
  }
};

/// The samples as rotations in double. \throws std::invalid_argument  a sample that is not a rotation
template <int N, class Scalar>
[[nodiscard]] std::vector<SquareMatrix<double, N>> checked_samples(
    std::string_view name, std::span<const SquareMatrix<Scalar, N>> samples,
    const SampleOptions<Scalar>& options) {
  std::vector<SquareMatrix<double, N>> result;
  result.reserve(samples.size());
  for (std::size_t i = 0; i < samples.size(); ++i) {
    // Checked in their own precision, cleaned in double.
    const SquareMatrix<Scalar, N> r = orthonormalised<Scalar, N>({name, "samples", i}, samples[i], options);
    result.push_back(orthonormalisation_step<double, N>(r.template cast<double>()));
  }
  return result;
}

}  // namespace sheafnn::detail
