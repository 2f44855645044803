/// \file
/// NodeMapPosterior: the distribution of one conformal map of a node in a Bayesian cooperative sheaf. R ~ C(M, κ) and,
/// independent, log of the scale ~ N(μ, s²). Prior: uniform × N(0, 1).
///
///     raw outputs, in this order: D(D − 1)/2 values of M, κ_raw, μ, s_raw;  without scales the first two only
///     M = rotation(tanh raw),  κ as in CayleyPosterior,  log s = −ELU(−s_raw)
///     KL = KL_D(κ) + ½ (μ² + s² − 1) − log s
///
/// The logarithm of the scale is not limited here: see NodeMaps. Source: math: "Bayesian cooperative sheaves".
/// Unchecked: see posterior/sheaf_posterior.hpp.
#pragma once

#include <cmath>
#include <string_view>

#include "sheafnn/nn/activation.hpp"
#include "sheafnn/posterior/cayley.hpp"
#include "sheafnn/posterior/normal.hpp"
#include "sheafnn/sheaf/families/conformal.hpp"

namespace sheafnn {

/// T = float, double or Pack.
template <int D>
struct NodeMapPosterior {
  using family = Conformal<D>;
  using Rotations = CayleyPosterior<SpecialOrthogonal<D>>;
  static constexpr std::string_view name = "node-conformal";
  static constexpr int mu = D * D + 1, sigma = mu + 1, log_sigma = mu + 2;
  static constexpr int parameter_size = mu + 3;  ///< M column by column, κ, μ, s, log s
  static constexpr int gradient_size = mu + 2;   ///< M̄, κ̄, μ̄, derivative in log s
  static constexpr int noise_size = D * D + 1;   ///< U column by column, ε
  static constexpr bool closed_form_kl = true;
  template <class T>
  using Map = SquareMatrix<T, D>;

  /// Raw outputs per map.
  [[nodiscard]] static constexpr int raw_size(bool conformal) {
    return rotation::rotation_parameters<D> + (conformal ? 3 : 1);
  }

  bool conformal = true;  ///< has it a scale?

  template <class T>
  SHEAFNN_HD void activate(const T* raw, T* parameters) const {
    using std::exp;
    Rotations().activate(raw, parameters);
    parameters[mu] = conformal ? raw[rotation::rotation_parameters<D> + 1] : T(0);
    parameters[log_sigma] = conformal ? -layers::elu(-raw[rotation::rotation_parameters<D> + 2]) : T(0);
    parameters[sigma] = exp(parameters[log_sigma]);
  }
  template <class T>
  SHEAFNN_HD void activate_backward(const T* raw, const T* parameters, const T* gradient, T* raw_bar) const {
    Rotations().activate_backward(raw, parameters, gradient, raw_bar);
    if (!conformal) return;
    raw_bar[rotation::rotation_parameters<D> + 1] = gradient[mu];
    raw_bar[rotation::rotation_parameters<D> + 2] = gradient[sigma] * layers::elu_slope(-parameters[log_sigma]);
  }

  template <class T>
  SHEAFNN_HD void draw_noise(const Stream& stream, const random::word_of_t<T>& node, T* noise) const {
    Rotations().template draw_noise<T>(stream, node, noise);
    fill_normals<1>(noise + D * D, stream, node, rotation::haar_draws<D>);
  }
  template <class T>
  SHEAFNN_HD void sample(const T* parameters, const T* noise, Map<T>& rotation, T& log_scale) const {
    Rotations().sample(parameters, noise, rotation);
    log_scale = conformal ? parameters[mu] + parameters[sigma] * noise[D * D] : T(0);
  }
  /// Adds the derivatives through a sample, and the derivatives of monte_carlo_weight · log_ratio().
  template <class T>
  SHEAFNN_HD void sample_backward(const T* parameters, const Map<T>& rotation, const T& log_scale, const Map<T>& rotation_bar,
                       const T& log_scale_bar, const T& monte_carlo_weight, T* gradient) const {
    Rotations().sample_backward(parameters, static_cast<const T*>(nullptr), rotation, rotation_bar, monte_carlo_weight,
                                gradient);
    if (!conformal) return;
    const T bar = log_scale_bar + monte_carlo_weight * log_scale;
    gradient[mu] += bar;
    gradient[sigma] += bar * (log_scale - parameters[mu]) - monte_carlo_weight;
  }
  /// log q − log p of a sample.
  template <class T>
  [[nodiscard]] SHEAFNN_HD T log_ratio(const T* parameters, const Map<T>& rotation, const T& log_scale) const {
    const T of_rotation = Rotations().log_ratio(parameters, static_cast<const T*>(nullptr), rotation);
    if (!conformal) return of_rotation;
    const T squared_noise = detail::squared_noise(log_scale, parameters[mu], parameters[sigma]);
    return of_rotation + T(0.5) * (log_scale * log_scale - squared_noise) - parameters[log_sigma];
  }
  template <class T>
  [[nodiscard]] SHEAFNN_HD T kl(const T* parameters) const {
    const T of_rotation = Rotations().kl(parameters);
    if (!conformal) return of_rotation;
    const T m = parameters[mu], s = parameters[sigma];
    return of_rotation + T(0.5) * (m * m + s * s - T(1)) - parameters[log_sigma];
  }
  template <class T>
  SHEAFNN_HD void kl_backward(const T* parameters, const T& weight, T* gradient) const {
    Rotations().kl_backward(parameters, weight, gradient);
    if (!conformal) return;
    gradient[mu] += weight * parameters[mu];
    gradient[sigma] += weight * (parameters[sigma] * parameters[sigma] - T(1));
  }
};

}  // namespace sheafnn
