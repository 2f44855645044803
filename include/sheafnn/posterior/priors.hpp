/// \file
/// Priors over coordinates of restriction maps: independent normal distributions.
///
/// A prior of NormalPosterior has mean(k) and deviation(k) of coordinate k. Priors over rotations:
/// posterior/rotation_priors.hpp. Source: math: "Priors".
/// Unchecked: see posterior/sheaf_posterior.hpp.
#pragma once

#include <array>
#include <cmath>
#include <limits>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"

namespace sheafnn {

/// N(0, I), the paper's.
struct StandardNormalPrior {
  [[nodiscard]] SHEAFNN_HD static constexpr double mean(int) { return 0; }
  [[nodiscard]] SHEAFNN_HD static constexpr double deviation(int) { return 1; }
  friend bool operator==(const StandardNormalPrior&, const StandardNormalPrior&) = default;
};

/// N(μ₀, diag σ₀²) over Size coordinates.
template <int Size>
class NormalPrior {
 public:
  /// N(0, I).
  NormalPrior() { deviation_.fill(1); }
  /// The same μ₀ and σ₀ for all coordinates.
  /// \throws std::invalid_argument  μ₀ not finite, σ₀ not in (0, ∞), or so small (5.4e-20) that 1/σ₀² is
  ///         infinite in single precision
  NormalPrior(double mean, double deviation) {
    mean_.fill(mean);
    deviation_.fill(deviation);
    validate();
  }
  /// \throws std::invalid_argument  as above
  NormalPrior(const std::array<double, Size>& mean, const std::array<double, Size>& deviation)
      : mean_(mean), deviation_(deviation) {
    validate();
  }
  [[nodiscard]] SHEAFNN_HD double mean(int k) const { return mean_.data()[k]; }
  [[nodiscard]] SHEAFNN_HD double deviation(int k) const { return deviation_.data()[k]; }

  friend bool operator==(const NormalPrior&, const NormalPrior&) = default;

 private:
  void validate() const {
    for (int k = 0; k < Size; ++k) {
      require(std::isfinite(mean(k)), detail::concat("prior: mean[", k, "]"), mean(k), "must be finite");
      require(deviation(k) > 0 && std::isfinite(deviation(k)), detail::concat("prior: deviation[", k, "]"), deviation(k),
              "must be positive and finite");
      require(1 / (deviation(k) * deviation(k)) <= static_cast<double>(std::numeric_limits<float>::max()),
              detail::concat("prior: deviation[", k, "]"), deviation(k),
              "must be at least 5.43e-20, for 1/deviation² to be a number in single precision");
    }
  }
  std::array<double, Size> mean_{}, deviation_{};
};

}  // namespace sheafnn
