/// \file
/// ConformalPosterior: F = c R with R ~ C(M, κ) and log c ~ N(μ, σ²), independent. Prior: uniform × N(0, 1).
/// |log c| is limited to Family::largest_log_scale; μ of an unbounded activation may lie beyond it. Where it does, the
/// Monte Carlo estimate of the KL term, which sees the limited map alone, is of no use: the closed form is.
///
///     raw outputs: D(D − 1)/2 values for M, μ_raw  |  κ_raw, σ_raw
///     μ = tanh(μ_raw) (or another SheafActivation),  log σ = −ELU(−σ_raw),  KL = KL_D(κ) + ½ (μ² + σ² − 1) − log σ
///
/// Source: math: "Conformal maps" (3.12).
/// Unchecked: see posterior/sheaf_posterior.hpp.
#pragma once

#include <array>
#include <cmath>

#include "sheafnn/posterior/cayley.hpp"
#include "sheafnn/posterior/normal.hpp"
#include "sheafnn/sheaf/families/conformal.hpp"

namespace sheafnn {

/// T = float, double or Pack. math: "Conformal maps" (3.12).
template <RestrictionMapFamily Family>
struct ConformalPosterior {
  using family = Family;
  static constexpr std::string_view name = "conformal";
  static constexpr int D = Family::stalk_dimension;
  using Rotations = CayleyPosterior<SpecialOrthogonal<D>>;
  static constexpr int mean_size = Rotations::mean_size + 1;
  static constexpr int spread_size = 2;
  static constexpr int mu = Rotations::parameter_size, sigma = mu + 1, log_sigma = mu + 2;
  static constexpr int parameter_size = mu + 3;  ///< M, κ, μ, σ, log σ
  static constexpr int sample_size = mu + 2;
  static constexpr int gradient_size = mu + 2;                  ///< M̄, κ̄, μ̄, derivative in log σ
  static constexpr int noise_size = Rotations::noise_size + 1;  ///< U column by column, ε
  static constexpr bool closed_form_kl = true;
  /// σ is the deviation of log c.
  static constexpr std::array spread_parameters = {ParameterRange{"kappa", D * D, 1}, ParameterRange{"sigma", sigma, 1}};
  template <class T>
  using Map = typename Family::template Map<T>;

  rotation::RotationParametrisation parametrisation = rotation::RotationParametrisation::householder;
  SheafActivation sheaf_activation = SheafActivation::tanh;  ///< of the means
  SpreadRange spread = SpreadRange::published;               ///< of κ and σ

  /// A row of explicit noise is U row by row, then ε.
  [[nodiscard]] SHEAFNN_HD static constexpr int noise_index(int k) {
    return k < Rotations::noise_size ? Rotations::noise_index(k) : k;
  }

  template <class T>
  SHEAFNN_HD void activate(const T* raw, T* parameters) const {
    using std::exp;
    T rotation_raw[mean_size];
    split_raw(raw, rotation_raw);
    rotations().activate(rotation_raw, parameters);
    detail::activate_raw<1>(sheaf_activation, raw + mean_size - 1, parameters + mu);
    parameters[log_sigma] = -layers::elu(-detail::spread_output(spread, raw[mean_size + 1]));
    parameters[sigma] = exp(parameters[log_sigma]);
  }
  template <class T>
  SHEAFNN_HD void activate_backward(const T* raw, const T* parameters, const T* gradient, T* raw_bar) const {
    T rotation_raw[mean_size], rotation_bar[mean_size];
    split_raw(raw, rotation_raw);
    rotations().activate_backward(rotation_raw, parameters, gradient, rotation_bar);
    for (int k = 0; k + 1 < mean_size; ++k) raw_bar[k] = rotation_bar[k];
    raw_bar[mean_size - 1] = gradient[mu] * detail::raw_slope(sheaf_activation, parameters[mu]);
    raw_bar[mean_size] = rotation_bar[mean_size - 1];
    raw_bar[mean_size + 1] = gradient[sigma] * layers::elu_slope(-parameters[log_sigma]);
  }

  template <class T>
  SHEAFNN_HD void draw_noise(const Stream& stream, const random::word_of_t<T>& arc, T* noise) const {
    rotations().template draw_noise<T>(stream, arc, noise);
    fill_normals<1>(noise + Rotations::noise_size, stream, arc, rotation::haar_draws<D>);
  }
  template <class T>
  SHEAFNN_HD void sample(const T* parameters, const T* noise, Map<T>& map) const {
    using std::exp;
    rotations().sample(parameters, noise, map);
    const T scale = exp(Family::limited(T(parameters[mu] + parameters[sigma] * noise[Rotations::noise_size])));
    for (int k = 0; k < D * D; ++k) map(k % D, k / D) *= scale;
  }
  /// With c² = ‖F‖²/D and R = F/c: R̄ = c F̄, (log c)‾ = ⟨F̄, F⟩ + λ log c, and ∂ log c/∂ log σ = σε = log c − μ.
  template <class T>
  SHEAFNN_HD void sample_backward(const T* parameters, const T*, const Map<T>& map, const Map<T>& map_bar,
                                  const T& monte_carlo_weight, T* gradient) const {
    const Scaled<T> f(map);
    const Map<T> rotation_bar = Map<T>(map_bar * f.scale);
    rotations().sample_backward(parameters, static_cast<const T*>(nullptr), f.rotation, rotation_bar,
                                monte_carlo_weight, gradient);
    const T through = Family::within_limits(T(f.log_scale * T(1 + 1e-4)));  // log c comes back from F rounded
    const T bar = through * math::inner_product(map_bar, map) + monte_carlo_weight * f.log_scale;
    gradient[mu] += bar;
    gradient[sigma] += bar * (f.log_scale - parameters[mu]) - monte_carlo_weight;
  }
  template <class T>
  [[nodiscard]] SHEAFNN_HD T log_ratio(const T* parameters, const T*, const Map<T>& map) const {
    const Scaled<T> f(map);
    const T squared_noise = detail::squared_noise(f.log_scale, parameters[mu], parameters[sigma]);
    return rotations().log_ratio(parameters, static_cast<const T*>(nullptr), f.rotation) +
           T(0.5) * (f.log_scale * f.log_scale - squared_noise) - parameters[log_sigma];
  }
  template <class T>
  [[nodiscard]] SHEAFNN_HD T kl(const T* parameters) const {
    const T m = parameters[mu], s = parameters[sigma];
    return rotations().kl(parameters) + T(0.5) * (m * m + s * s - T(1)) - parameters[log_sigma];
  }
  template <class T>
  SHEAFNN_HD void kl_backward(const T* parameters, const T& weight, T* gradient) const {
    rotations().kl_backward(parameters, weight, gradient);
    gradient[mu] += weight * parameters[mu];
    gradient[sigma] += weight * (parameters[sigma] * parameters[sigma] - T(1));
  }
  /// e^μ M.
  template <class T>
  SHEAFNN_HD void mean(const T* parameters, Map<T>& map) const {
    using std::exp;
    const T scale = exp(Family::limited(T(parameters[mu])));
    for (int k = 0; k < D * D; ++k) map(k % D, k / D) = scale * parameters[k];
  }

  friend bool operator==(const ConformalPosterior&, const ConformalPosterior&) = default;

 private:
  /// c, log c and R of F = c R.
  template <class T>
  struct Scaled {
    T scale, log_scale;
    SquareMatrix<T, D> rotation;

    SHEAFNN_HD explicit Scaled(const SquareMatrix<T, D>& map) {
      using std::log;
      using std::sqrt;
      scale = sqrt(Family::gram(map)(0));
      log_scale = log(scale);
      const T inverse = T(1) / scale;
      for (int k = 0; k < D * D; ++k) rotation(k % D, k / D) = map(k % D, k / D) * inverse;
    }
  };

  [[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE Rotations rotations() const { return {parametrisation, {}, sheaf_activation, spread}; }
  /// The raw outputs of the rotation: the outputs for M, then the output for κ.
  template <class T>
  SHEAFNN_HD static SHEAFNN_INLINE void split_raw(const T* raw, T* rotation) {
    for (int k = 0; k + 1 < mean_size; ++k) rotation[k] = raw[k];
    rotation[mean_size - 1] = raw[mean_size];
  }
};

}  // namespace sheafnn
