/// \file
/// NormalPosterior: independent normal distributions of a map's coordinates, z = μ + σ ∘ ε, ε ~ N(0, I).
///
///     μ = tanh(raw_μ) (or another SheafActivation),  log σ = −ELU(−raw_σ) (see SpreadRange)
///     With the activations `residual`, μ = I + raw_μ, and `exponential`, μ = exp(raw_μ), I is added to the prior's μ₀ too.
///     KL(N(μ, σ²) ‖ N(μ₀, σ₀²)) = Σ ½ ((μ − μ₀)² + σ²)/σ₀² − ½ − log(σ/σ₀)
///
/// The default posterior of diagonal and general linear maps. Any family can have it: its coordinates are normal, and so are
/// the map's entries where the chart is linear. Source: paper, "variational sheaf learner"; math: "Posteriors" (3.10).
/// Unchecked: see posterior/sheaf_posterior.hpp.
#pragma once

#include <array>
#include <cmath>
#include <limits>

#include "sheafnn/nn/activation.hpp"
#include "sheafnn/posterior/point_map.hpp"
#include "sheafnn/posterior/priors.hpp"
#include "sheafnn/posterior/sheaf_posterior.hpp"
#include "sheafnn/posterior/spread_range.hpp"

namespace sheafnn {

namespace detail {

/// ε² of z = μ + σε, σ ≥ 0, where z comes back from a map. Where σ is not far above the rounding of z, ε cannot be told. Its
/// mean square, 1, replaces ε², and the mean of log q − log p stays KL.
template <class T>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE T squared_noise(const T& z, const T& mu, const T& sigma) {
  using std::abs;
  const auto told = sigma > T(1024 * std::numeric_limits<scalar_of_t<T>>::epsilon()) * (T(1) + abs(mu));
  const T epsilon = (z - mu) / select(told, sigma, T(1));
  return select(told, epsilon * epsilon, T(1));
}

}  // namespace detail

/// T = float, double or Pack.
template <RestrictionMapFamily Family, class Prior = StandardNormalPrior>
struct NormalPosterior {
  using family = Family;
  static constexpr std::string_view name = "normal";
  static constexpr bool has_inverse_chart = requires(const typename Family::template Map<double>& map, double* z) {
    Family::to_coordinates(map, z);
  };
  static_assert(has_inverse_chart || !detail::NamesToCoordinates<Family>,
                "to_coordinates must be callable as void(const Map<T>&, T*)");
  static constexpr int size = Family::coordinate_count;
  static constexpr int mean_size = size, spread_size = size;
  static constexpr int parameter_size = 3 * size;  ///< μ, σ, log σ
  static constexpr int sample_size = 2 * size;
  static constexpr int gradient_size = 2 * size;  ///< μ̄, derivative in log σ
  static constexpr int noise_size = size;         ///< ε
  static constexpr bool closed_form_kl = true;
  static constexpr std::array spread_parameters = {ParameterRange{"sigma", size, size}};
  /// Where the chart has an inverse, z is computed from the map.
  static constexpr bool needs_noise = !has_inverse_chart;
  template <class T>
  using Map = typename Family::template Map<T>;

  [[no_unique_address]] Prior prior{};
  SheafActivation sheaf_activation = SheafActivation::tanh;  ///< of the means
  SpreadRange spread = SpreadRange::published;               ///< of σ

  template <class T>
  SHEAFNN_HD void activate(const T* raw, T* parameters) const {
    using std::exp;
    detail::activate_coordinates<Family>(sheaf_activation, raw, parameters);
    SHEAFNN_UNROLL for (int k = 0; k < size; ++k) {
      const T log_sigma = -layers::elu(-detail::spread_output(spread, raw[size + k]));
      parameters[size + k] = exp(log_sigma);
      parameters[2 * size + k] = log_sigma;
    }
  }
  /// See can_leave_out.
  template <class T>
  SHEAFNN_HD void leave_out(int k, const T& present, T* parameters) const requires sheaf::may_be_residual<Family> {
    const auto here = present > T(0);
    const double deviation = prior.deviation(k);
    parameters[k] = select(here, parameters[k], prior_mean<T>(k));
    parameters[size + k] = select(here, parameters[size + k], T(static_cast<math::scalar_of_t<T>>(deviation)));
    parameters[2 * size + k] = select(here, parameters[2 * size + k], log_prior_deviation<T>(k));
  }
  template <class T>
  SHEAFNN_HD void activate_backward(const T* raw, const T* parameters, const T* gradient, T* raw_bar) const {
    detail::activate_coordinates_backward<Family>(sheaf_activation, raw, parameters, gradient, raw_bar);
    SHEAFNN_UNROLL for (int k = 0; k < size; ++k) {
      raw_bar[size + k] = gradient[size + k] * layers::elu_slope(-parameters[2 * size + k]);
    }
  }

  template <class T>
  SHEAFNN_HD void draw_noise(const Stream& stream, const random::word_of_t<T>& arc, T* noise) const {
    fill_normals<size>(noise, stream, arc);
  }
  template <class T>
  SHEAFNN_HD void sample(const T* parameters, const T* noise, Map<T>& map) const {
    T z[detail::array_size(size)];
    SHEAFNN_UNROLL for (int k = 0; k < size; ++k) z[k] = parameters[k] + parameters[size + k] * noise[k];
    Family::from_coordinates(z, map);
  }
  /// z̄ is the chart's derivative plus c (z − μ₀)/σ₀²; μ̄ += z̄, and ∂z/∂log σ = σε.
  template <class T>
  SHEAFNN_HD void sample_backward(const T* parameters, const T* noise, const Map<T>& map, const Map<T>& map_bar,
                                  const T& monte_carlo_weight, T* gradient) const {
    T z[detail::array_size(size)], z_bar[detail::array_size(size)];
    coordinates(parameters, noise, map, z);
    Family::from_coordinates_backward(z, map_bar, z_bar);
    SHEAFNN_UNROLL for (int k = 0; k < size; ++k) {
      const T total = z_bar[k] + monte_carlo_weight * (z[k] - prior_mean<T>(k)) * prior_precision<T>(k);
      gradient[k] += total;
      gradient[size + k] += total * (z[k] - parameters[k]) - monte_carlo_weight;
    }
  }
  /// Σ ½ (z − μ₀)²/σ₀² − ½ ε² − log(σ/σ₀).
  template <class T>
  [[nodiscard]] SHEAFNN_HD T log_ratio(const T* parameters, const T* noise, const Map<T>& map) const {
    T z[detail::array_size(size)];
    coordinates(parameters, noise, map, z);
    T sum = T(0);
    SHEAFNN_UNROLL for (int k = 0; k < size; ++k) {
      const T from_prior = z[k] - prior_mean<T>(k);
      const T squared_noise = detail::squared_noise(z[k], parameters[k], parameters[size + k]);
      sum += T(0.5) * (from_prior * from_prior * prior_precision<T>(k) - squared_noise) -
             parameters[2 * size + k] + log_prior_deviation<T>(k);
    }
    return sum;
  }
  template <class T>
  [[nodiscard]] SHEAFNN_HD T kl(const T* parameters) const {
    T sum = T(0);
    SHEAFNN_UNROLL for (int k = 0; k < size; ++k) {
      const T from_prior = parameters[k] - prior_mean<T>(k);
      const T sigma = parameters[size + k];
      sum += T(0.5) * ((from_prior * from_prior + sigma * sigma) * prior_precision<T>(k) - T(1)) -
             parameters[2 * size + k] + log_prior_deviation<T>(k);
    }
    return sum;
  }
  template <class T>
  SHEAFNN_HD void kl_backward(const T* parameters, const T& weight, T* gradient) const {
    SHEAFNN_UNROLL for (int k = 0; k < size; ++k) {
      const T sigma = parameters[size + k], precision = prior_precision<T>(k);
      gradient[k] += weight * (parameters[k] - prior_mean<T>(k)) * precision;
      gradient[size + k] += weight * (sigma * sigma * precision - T(1));
    }
  }
  template <class T>
  SHEAFNN_HD void mean(const T* parameters, Map<T>& map) const {
    Family::from_coordinates(parameters, map);
  }

  friend bool operator==(const NormalPosterior&, const NormalPosterior&) = default;

 private:
  template <class T>
  SHEAFNN_HD SHEAFNN_INLINE void coordinates(const T* parameters, const T* noise, const Map<T>& map, T* z) const {
    if constexpr (needs_noise) {
      SHEAFNN_UNROLL for (int k = 0; k < size; ++k) z[k] = parameters[k] + parameters[size + k] * noise[k];
    } else {
      Family::to_coordinates(map, z);
    }
  }
  template <class T>
  [[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE T prior_mean(int k) const {
    T mean = T(static_cast<math::scalar_of_t<T>>(prior.mean(k)));
    if constexpr (sheaf::may_be_residual<Family>) {
      if (detail::starts_at_identity(sheaf_activation)) {
        mean = mean + T(static_cast<math::scalar_of_t<T>>(detail::identity_coordinate<Family>(k)));
      }
    }
    return mean;
  }
  template <class T>
  [[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE T prior_precision(int k) const {
    return T(static_cast<math::scalar_of_t<T>>(1 / (prior.deviation(k) * prior.deviation(k))));
  }
  template <class T>
  [[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE T log_prior_deviation(int k) const {
    using std::log;
    return T(static_cast<math::scalar_of_t<T>>(log(prior.deviation(k))));
  }
};

}  // namespace sheafnn
