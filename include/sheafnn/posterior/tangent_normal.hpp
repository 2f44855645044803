/// \file
/// TangentNormalPosterior: rotations Y = M exp(X_φ) with φ = σ ∘ ε, ε ~ N(0, I), a normal distribution in the tangent
/// space at M. An adapter: the distribution itself is rotation/tangent_normal.hpp.
///
///     M = rotation(tanh raw_μ),  log σ = log σ_max − 1 − ELU(−raw_σ),  σ_max = 1 (D ≤ 3) or ½ (D > 3)
///
/// Unlike the Cayley posterior it has a deviation for each of the D(D − 1)/2 directions. The activation is the activation of
/// normal posteriors, shifted so that 0 < σ < σ_max and raw outputs near 0 give σ = σ_max/e. Up to this σ, φ leaves the ball
/// of angles below π, where exp is one-to-one, with probability 0.02 at most.
///
/// There is no KL in closed form: the density of Y is a sum over all φ with the same exponential. log_ratio() takes the
/// term of the φ drawn. Its mean is KL(q ‖ prior) minus the entropy of φ given Y. By this entropy the KL term of the training
/// loss is too small. At σ = σ_max it is 0.0048 nats per incident pair for D = 2, 0.054 for D = 3; at σ = ½ 1e-9 and 4e-8.
/// Source: math: "Tangent normal posterior", "Normal in the tangent space".
/// Unchecked: see posterior/sheaf_posterior.hpp.
#pragma once

#include <array>
#include <cmath>

#include "sheafnn/nn/activation.hpp"
#include "sheafnn/posterior/cayley.hpp"
#include "sheafnn/posterior/point_map.hpp"
#include "sheafnn/posterior/rotation_priors.hpp"
#include "sheafnn/posterior/sheaf_posterior.hpp"
#include "sheafnn/posterior/spread_range.hpp"
#include "sheafnn/rotation/tangent_normal.hpp"
#include "sheafnn/sheaf/families/special_orthogonal.hpp"

namespace sheafnn {

/// T = float, double or Pack. SO(1) has no directions; one deviation without use keeps its arrays from being empty.
template <RestrictionMapFamily Family, class Prior = HaarPrior<Family::stalk_dimension>>
struct TangentNormalPosterior {
  using family = Family;
  static constexpr std::string_view name = "tangent-normal";
  static constexpr int D = Family::stalk_dimension;
  static constexpr int directions = rotation::rotation_parameters<D>;
  static constexpr int mean_size = directions;
  static constexpr int spread_size = detail::array_size(directions);
  static constexpr int sigma = D * D, log_sigma = sigma + spread_size;
  static constexpr int parameter_size = log_sigma + spread_size;  ///< M column by column, σ, log σ
  static constexpr int sample_size = log_sigma;
  static constexpr int gradient_size = log_sigma;  ///< M̄, derivative in log σ
  static constexpr int noise_size = spread_size;   ///< ε
  static constexpr bool closed_form_kl = false;
  static constexpr bool needs_noise = true;
  static constexpr std::array spread_parameters = {ParameterRange{"sigma", sigma, spread_size}};
  template <class T>
  using Map = SquareMatrix<T, D>;

  /// σ_max: at larger σ the entropy of φ given Y, which log_ratio() leaves out, is not small.
  static constexpr double largest_sigma = D <= 3 ? 1.0 : 0.5;

  rotation::RotationParametrisation parametrisation = rotation::RotationParametrisation::householder;
  [[no_unique_address]] Prior prior{};
  SheafActivation sheaf_activation = SheafActivation::tanh;  ///< of the rotation's parameters
  SpreadRange spread = SpreadRange::published;               ///< of σ

  template <class T>
  SHEAFNN_HD void activate(const T* raw, T* parameters) const {
    using std::exp;
    Map<T> location;
    location_map().map(raw, location);
    detail::entries_of<D>(location, parameters);
    SHEAFNN_UNROLL for (int k = 0; k < spread_size; ++k) {
      parameters[log_sigma + k] =
          highest_log_sigma<T>() - T(1) - layers::elu(-detail::spread_output(spread, raw[mean_size + k]));
      parameters[sigma + k] = exp(parameters[log_sigma + k]);
    }
  }
  template <class T>
  SHEAFNN_HD void activate_backward(const T* raw, const T* parameters, const T* gradient, T* raw_bar) const {
    location_map().backward(raw, detail::matrix_of<D>(gradient), raw_bar);
    SHEAFNN_UNROLL for (int k = 0; k < spread_size; ++k) {
      const T elu_value = highest_log_sigma<T>() - T(1) - parameters[log_sigma + k];
      raw_bar[mean_size + k] = gradient[sigma + k] * layers::elu_slope(elu_value);
    }
  }

  template <class T>
  SHEAFNN_HD void draw_noise(const Stream& stream, const random::word_of_t<T>& arc, T* noise) const {
    fill_normals<noise_size>(noise, stream, arc);
  }
  template <class T>
  SHEAFNN_HD void sample(const T* parameters, const T* noise, Map<T>& map) const {
    map = rotation::tangent_normal_sample<T, D>(detail::matrix_of<D>(parameters), column(parameters + sigma),
                                                column(noise));
  }
  template <class T>
  SHEAFNN_HD void sample_backward(const T* parameters, const T* noise, const Map<T>& map, const Map<T>& map_bar,
                                  const T& monte_carlo_weight, T* gradient) const {
    const rotation::RotationParameters<T, D> deviation = column(parameters + sigma), epsilon = column(noise);
    Map<T> total_bar = map_bar, location_bar = Map<T>::Constant(T(0));
    prior.log_density_backward(map, -monte_carlo_weight, total_bar);
    rotation::RotationParameters<T, D> deviation_bar = rotation::RotationParameters<T, D>::Constant(T(0));
    rotation::tangent_normal_sample_backward<T, D>(detail::matrix_of<D>(parameters), deviation, epsilon, map, total_bar,
                                         location_bar, deviation_bar);
    rotation::tangent_normal_logpdf_backward<T, D>(deviation, epsilon, monte_carlo_weight, deviation_bar);
    SHEAFNN_UNROLL for (int k = 0; k < D * D; ++k) gradient[k] += location_bar(k % D, k / D);
    SHEAFNN_UNROLL for (int k = 0; k < directions; ++k) gradient[sigma + k] += deviation(k) * deviation_bar(k);
  }
  /// log q(Y, φ) − log p(Y) of the φ drawn; see the file comment.
  template <class T>
  [[nodiscard]] SHEAFNN_HD T log_ratio(const T* parameters, const T* noise, const Map<T>& map) const {
    return rotation::tangent_normal_logpdf<T, D>(column(parameters + sigma), column(noise)) - prior.log_density(map);
  }
  /// M.
  template <class T>
  SHEAFNN_HD void mean(const T* parameters, Map<T>& map) const {
    map = detail::matrix_of<D>(parameters);
  }

  friend bool operator==(const TangentNormalPosterior&, const TangentNormalPosterior&) = default;

 private:
  [[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE PointMap<SpecialOrthogonal<D>> location_map() const {
    return {parametrisation, sheaf_activation};
  }
  template <class T>
  [[nodiscard]] SHEAFNN_HD static SHEAFNN_INLINE T highest_log_sigma() {
    return T(static_cast<math::scalar_of_t<T>>(D <= 3 ? 0.0 : -0.69314718055994531));  // log σ_max
  }
  template <class T>
  [[nodiscard]] SHEAFNN_HD static SHEAFNN_INLINE rotation::RotationParameters<T, D> column(const T* numbers) {
    rotation::RotationParameters<T, D> r;
    SHEAFNN_UNROLL for (int k = 0; k < directions; ++k) r(k) = numbers[k];
    return r;
  }
};

}  // namespace sheafnn
