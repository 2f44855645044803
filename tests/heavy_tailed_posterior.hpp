/// \file
/// A posterior without a closed form of its KL term, which reads the noise in its backward pass: normal coordinates
/// with a Cauchy prior.
#pragma once

#include <cmath>

#include "sheafnn/posterior/normal.hpp"
#include "sheafnn/sheaf/families/diagonal.hpp"

namespace test {

/// z = μ + σ ε as in NormalPosterior; p(z) = Π 1 / (π (1 + z²)).
struct HeavyTailedPosterior : sheafnn::NormalPosterior<sheafnn::Diagonal<2>> {
  using Base = sheafnn::NormalPosterior<sheafnn::Diagonal<2>>;
  static constexpr std::string_view name = "heavy-tailed";
  static constexpr bool closed_form_kl = false;
  static constexpr bool needs_noise = true;

  template <class T>
  SHEAFNN_HD void sample_backward(const T* parameters, const T* noise, const Map<T>&, const Map<T>& map_bar,
                                  const T& monte_carlo_weight, T* gradient) const {
    for (int k = 0; k < size; ++k) {
      const T z = parameters[k] + parameters[size + k] * noise[k];
      const T total = map_bar(k) + monte_carlo_weight * T(2) * z / (T(1) + z * z);
      gradient[k] += total;
      gradient[size + k] += total * parameters[size + k] * noise[k] - monte_carlo_weight;
    }
  }
  template <class T>
  [[nodiscard]] SHEAFNN_HD T log_ratio(const T* parameters, const T* noise, const Map<T>&) const {
    using std::log;
    constexpr double half_log_half_pi = 0.225791352644727432;  // log π − ½ log 2π
    T sum = T(0);
    for (int k = 0; k < size; ++k) {
      const T z = parameters[k] + parameters[size + k] * noise[k];
      sum += log(T(1) + z * z) - T(0.5) * noise[k] * noise[k] - parameters[2 * size + k] +
             T(static_cast<sheafnn::math::scalar_of_t<T>>(half_log_half_pi));
    }
    return sum;
  }
};
static_assert(sheafnn::SheafPosterior<HeavyTailedPosterior>);

}  // namespace test
