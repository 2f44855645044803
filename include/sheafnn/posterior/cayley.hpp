/// \file
/// CayleyPosterior: Cayley distributions C(M, κ) of rotations, the paper's posterior of special orthogonal maps. An
/// adapter: the distribution itself is rotation/cayley_distribution.hpp and what that is made of.
///
///     M = rotation(tanh raw_μ),  κ = (1 − γ')/(1 + γ'),  γ' = 0.95 sigmoid(raw_σ) + 0.025 (published; see SpreadRange)
///     Y = (I + κU)⁻¹(U + κI) M,  U uniform
///
/// Source: paper, "Bayesian sheaf neural networks", "Cayley distributions"; math: "Posteriors" (3.11).
/// Unchecked: see posterior/sheaf_posterior.hpp.
#pragma once

#include <array>

#include "sheafnn/core/small_matrix.hpp"
#include "sheafnn/posterior/point_map.hpp"
#include "sheafnn/posterior/rotation_priors.hpp"
#include "sheafnn/posterior/sheaf_posterior.hpp"
#include "sheafnn/posterior/spread_range.hpp"
#include "sheafnn/rotation/cayley_distribution.hpp"
#include "sheafnn/rotation/haar.hpp"
#include "sheafnn/rotation/moebius.hpp"
#include "sheafnn/sheaf/families/special_orthogonal.hpp"

namespace sheafnn {

namespace detail {

/// N² entries, column by column, as a matrix, and back.
template <int N, class T>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE SquareMatrix<T, N> matrix_of(const T* entries) {
  SquareMatrix<T, N> r;
  SHEAFNN_UNROLL for (int k = 0; k < N * N; ++k) r(k % N, k / N) = entries[k];
  return r;
}
template <int N, class T>
SHEAFNN_HD SHEAFNN_INLINE void entries_of(const SquareMatrix<T, N>& matrix, T* entries) {
  SHEAFNN_UNROLL for (int k = 0; k < N * N; ++k) entries[k] = matrix(k % N, k / N);
}

}  // namespace detail

/// T = float, double or Pack.
template <RestrictionMapFamily Family, class Prior = HaarPrior<Family::stalk_dimension>>
struct CayleyPosterior {
  using family = Family;
  static constexpr std::string_view name = "cayley";
  static constexpr int D = Family::stalk_dimension;
  static constexpr int mean_size = rotation::rotation_parameters<D>;
  static constexpr int spread_size = 1;
  static constexpr int parameter_size = D * D + 1;  ///< M column by column, κ
  static constexpr int sample_size = parameter_size;
  static constexpr int gradient_size = D * D + 1;  ///< M̄, κ̄
  static constexpr int noise_size = D * D;         ///< U column by column
  static constexpr bool closed_form_kl = Prior::closed_form;
  static constexpr std::array spread_parameters = {ParameterRange{"kappa", D * D, 1}};
  template <class T>
  using Map = SquareMatrix<T, D>;

  rotation::RotationParametrisation parametrisation = rotation::RotationParametrisation::householder;
  [[no_unique_address]] Prior prior{};
  SheafActivation sheaf_activation = SheafActivation::tanh;  ///< of the rotation's parameters
  SpreadRange spread = SpreadRange::published;               ///< of κ

  /// A row of explicit noise is U row by row.
  [[nodiscard]] SHEAFNN_HD static constexpr int noise_index(int k) { return (k % D) * D + k / D; }

  template <class T>
  SHEAFNN_HD void activate(const T* raw, T* parameters) const {
    Map<T> location;
    location_map().map(raw, location);
    detail::entries_of<D>(location, parameters);
    parameters[D * D] = detail::concentration(spread, raw[mean_size]).kappa;
  }
  template <class T>
  SHEAFNN_HD void activate_backward(const T* raw, const T*, const T* gradient, T* raw_bar) const {
    location_map().backward(raw, detail::matrix_of<D>(gradient), raw_bar);
    raw_bar[mean_size] = gradient[D * D] * detail::concentration(spread, raw[mean_size]).slope;
  }

  template <class T>
  SHEAFNN_HD void draw_noise(const Stream& stream, const random::word_of_t<T>& arc, T* noise) const {
    detail::entries_of<D>(rotation::haar_rotation<T, D>(stream, arc), noise);
  }
  template <class T>
  SHEAFNN_HD void sample(const T* parameters, const T* noise, Map<T>& map) const {
    map = math::multiply(rotation::moebius<T, D>(detail::matrix_of<D>(noise), parameters[D * D]),
                         detail::matrix_of<D>(parameters));
  }
  /// At fixed U, with Y₀ = Y Mᵀ: M̄ = Y₀ᵀȲ and κ̄ = ⟨ȲMᵀ, dY₀/dκ⟩; ∂ log q/∂κ = (D − 1) tr(Y₀)/(1 − κ²).
  template <class T>
  SHEAFNN_HD void sample_backward(const T* parameters, const T*, const Map<T>& map, const Map<T>& map_bar,
                                  const T& monte_carlo_weight, T* gradient) const {
    const T kappa = parameters[D * D];
    const Map<T> location = detail::matrix_of<D>(parameters);
    const Map<T> centred = math::multiply_nt(map, location);
    Map<T> total_bar = map_bar;
    prior.log_density_backward(map, -monte_carlo_weight, total_bar);
    const Map<T> location_bar = math::multiply_tn(centred, total_bar);
    SHEAFNN_UNROLL for (int k = 0; k < D * D; ++k) gradient[k] += location_bar(k % D, k / D);
    const Map<T> centred_bar = math::multiply_nt(total_bar, location);
    T trace = centred(0, 0);
    for (int i = 1; i < D; ++i) trace += centred(i, i);
    gradient[D * D] += math::inner_product(centred_bar, rotation::moebius_derivative<T, D>(centred, kappa)) +
                       monte_carlo_weight * T(D - 1) * trace / ((T(1) - kappa) * (T(1) + kappa));
  }
  /// log q(Y) − log p(Y).
  template <class T>
  [[nodiscard]] SHEAFNN_HD T log_ratio(const T* parameters, const T*, const Map<T>& map) const {
    return rotation::cayley_logpdf<T, D>(math::multiply_nt(map, detail::matrix_of<D>(parameters)), parameters[D * D]) -
           prior.log_density(map);
  }
  template <class T>
  [[nodiscard]] SHEAFNN_HD T kl(const T* parameters) const requires closed_form_kl {
    return prior.kl(detail::matrix_of<D>(parameters), parameters[D * D]);
  }
  template <class T>
  SHEAFNN_HD void kl_backward(const T* parameters, const T& weight, T* gradient) const requires closed_form_kl {
    Map<T> location_bar = detail::matrix_of<D>(static_cast<const T*>(gradient));
    prior.kl_backward(detail::matrix_of<D>(parameters), parameters[D * D], weight, location_bar, gradient[D * D]);
    detail::entries_of<D>(location_bar, gradient);
  }
  template <class T>
  SHEAFNN_HD void mean(const T* parameters, Map<T>& map) const {
    map = detail::matrix_of<D>(parameters);
  }

  friend bool operator==(const CayleyPosterior&, const CayleyPosterior&) = default;

 private:
  [[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE PointMap<SpecialOrthogonal<D>> location_map() const {
    return {parametrisation, sheaf_activation};
  }
};

}  // namespace sheafnn
