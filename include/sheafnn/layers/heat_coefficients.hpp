/// \file
/// HeatCoefficients: a heat operator as a polynomial Σ_k c_k M^k for every bundle, with the derivatives of the parameters
/// of c_k, t = max(time, 0):
///
///     taylor    M = −𝓛,  c_k = t^k / k!;         shifted   M = Â,  c_k = e^{−t} t^k / k!;
///     hops      M = Â,   c_k = softmax(a)_j for k = hop_powers[j], else 0.
///
/// Source: math: "Heat on a flat bundle" (9.4).
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/kernels/heat.hpp"
#include "sheafnn/layers/heat_options.hpp"
#include "sheafnn/layers/heat_weights.hpp"

namespace sheafnn::layers {

/// Unchecked: indices of powers and bundles, and weights of other bundles.
class HeatCoefficients {
 public:
  HeatCoefficients(const HeatOptions& options, Index bundles)
      : options_(options),
        bundles_(bundles),
        degree_(options.degree()),
        values_(static_cast<std::size_t>((degree_ + 1) * bundles)),
        bars_(values_.size()) {}

  /// K, the highest power.
  [[nodiscard]] Index degree() const noexcept { return degree_; }
  /// Is M = −𝓛? Otherwise it is Â.
  [[nodiscard]] bool of_laplacian() const noexcept { return options_.of_laplacian(); }
  /// Are any of the coefficients of a power not 0?
  [[nodiscard]] bool used(Index power) const noexcept { return options_.uses(power); }
  /// c_k of a bundle.
  [[nodiscard]] double operator()(Index power, Index bundle) const noexcept { return values_[at(power, bundle)]; }
  /// The derivative of c_k of a bundle.
  [[nodiscard]] double& bar(Index power, Index bundle) noexcept { return bars_[at(power, bundle)]; }

  /// Takes the weights of a pass.
  template <class S>
  void set(const HeatWeights<const S>& weights) {
    for (Index b = 0; b < bundles_; ++b) {
      if (options_.expansion == HeatExpansion::hops) {
        std::fill_n(&values_[at(0, b)], degree_ + 1, 0.0);
        double share[hop_count];
        kernels::hop_shares<hop_count>(weights.hops.row(b).data(), share);
        for (std::size_t j = 0; j < hop_powers.size(); ++j) values_[at(hop_powers[j], b)] = share[j];
        continue;
      }
      kernels::series_coefficients(of_laplacian(), time_of(options_, weights.time, b), degree_,
                                   [&](Index k, double value) { values_[at(k, b)] = value; });
    }
  }
  /// Adds the derivatives of the weights that follow from bar().
  template <class S>
  void backward(const HeatWeights<const S>& weights, const HeatWeights<S>& weights_bar) const {
    for (Index b = 0; b < bundles_; ++b) {
      if (options_.expansion == HeatExpansion::hops) {
        double share[hop_count];
        kernels::hop_shares<hop_count>(weights.hops.row(b).data(), share);
        kernels::hop_logits_bar<hop_count>(
            share, [&](int j) { return bars_[at(hop_powers[static_cast<std::size_t>(j)], b)]; },
            [&](int j, double value) { weights_bar.hops(b, j) += static_cast<S>(value); });
        continue;
      }
      if (!is_positive(weights.time, b)) continue;
      weights_bar.time[static_cast<std::size_t>(b)] += static_cast<S>(kernels::series_time_bar(
          of_laplacian(), degree_, [&](Index k) { return values_[at(k, b)]; },
          [&](Index k) { return bars_[at(k, b)]; }));
    }
  }

  /// t of a bundle.
  template <class S>
  [[nodiscard]] static double time_of(const HeatOptions& options, std::span<const S> time, Index b) {
    if (time.empty()) return options.time;
    return std::max(0.0, static_cast<double>(time[static_cast<std::size_t>(b)]));
  }
  /// Is there a time, and does t move with it?
  template <class S>
  [[nodiscard]] static bool is_positive(std::span<const S> time, Index b) {
    return !time.empty() && time[static_cast<std::size_t>(b)] > 0;
  }

 private:
  static constexpr int hop_count = static_cast<int>(hop_powers.size());

  [[nodiscard]] std::size_t at(Index power, Index bundle) const noexcept {
    return static_cast<std::size_t>(bundle * (degree_ + 1) + power);
  }
  HeatOptions options_;
  Index bundles_, degree_;
  std::vector<double> values_, bars_;  ///< by bundle and power
};

}  // namespace sheafnn::layers
