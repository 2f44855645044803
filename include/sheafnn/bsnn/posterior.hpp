/// \file
/// Variational posteriors over restriction maps, per incident pair: from the sheaf learner's raw output to the
/// distribution's parameters, reparametrised samples, KL to the prior, and the backward pass of each.
///
/// | maps               | posterior                       | raw output        | parameters       | prior   |
/// | ------------------ | ------------------------------- | ----------------- | ---------------- | ------- |
/// | diagonal, general  | z = μ + σ ∘ ε, ε ~ N(0, I)      | q + q, q = D, D²  | μ, log σ         | N(0, I) |
/// | special orthogonal | Y = (I+κU)⁻¹(U+κI) M, U ~ Haar  | q + 1, q = D(D−1)/2 | M, κ           | Haar    |
/// | identity           | point mass at I                 | none              | none             |         |
///
/// Activations (math: "The model"): μ = tanh(raw), log σ = −ELU(−raw); M = rotation(tanh raw),
/// γ' = 0.95 sigmoid(raw) + 0.025, κ = (1 − γ')/(1 + γ').
/// Everything is a function template over T = float, double or Pack. Source: paper, "variational sheaf learner".
#pragma once

#include <cmath>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/small_matrix.hpp"
#include "sheafnn/nn/activation.hpp"
#include "sheafnn/random/stream.hpp"
#include "sheafnn/rotation/cayley_distribution.hpp"
#include "sheafnn/rotation/haar.hpp"
#include "sheafnn/rotation/moebius.hpp"
#include "sheafnn/rotation/parametrisation.hpp"
#include "sheafnn/sheaf/families.hpp"

namespace sheafnn {

/// What the sheaf learner produces for a family, and how it becomes a distribution over maps. Specialised below.
///
/// All specialisations offer, over T:
///   mean_size, spread_size         raw outputs per incident pair
///   parameter_size                 numbers a distribution is stored in
///   gradient_size                  numbers its derivative is stored in
///   mean_map(raw, …) → map         the deterministic map (NSD), and mean_map_backward
///   activate(raw, …, parameters)   and activate_backward
///   kl(parameters), kl_backward    per incident pair
///   sample(parameters, noise), sample_backward, draw_noise, and the Monte Carlo form of the KL term
///   location_size, scale_size      what sampling reads: the first location_size parameters,
///                                  and scales(parameters), computed once for all samples;
///                                  sample_scaled(parameters, scales, noise)
template <class Family>
struct Posterior;

/// The identity family: nothing to learn.
template <int D>
struct Posterior<Identity<D>> {
  static constexpr int mean_size = 0, spread_size = 0, parameter_size = 0, gradient_size = 0, noise_size = 0;
  static constexpr int location_size = 0, scale_size = 0;
};

/// Independent normal distributions of the map's entries (diagonal and general linear maps).
template <RestrictionMapFamily Family>
  requires(Family::kind == MapKind::diagonal || Family::kind == MapKind::dense)
struct Posterior<Family> {
  static constexpr int D = Family::stalk_dimension;
  static constexpr int mean_size = Family::map_size;
  static constexpr int spread_size = Family::map_size;
  static constexpr int parameter_size = 2 * mean_size;  ///< μ, log σ
  static constexpr int gradient_size = 2 * mean_size;   ///< μ̄, derivative in log σ
  static constexpr int noise_size = mean_size;          ///< ε
  static constexpr int location_size = mean_size;       ///< μ
  static constexpr int scale_size = mean_size;          ///< σ
  template <class T>
  using Map = typename Family::template Map<T>;

  /// Entry k of z as an entry of the map: row-major for general maps.
  template <class M>
  [[nodiscard]] SHEAFNN_HD static SHEAFNN_INLINE auto& entry(M& map, int k) {
    if constexpr (Family::kind == MapKind::diagonal) {
      return map(k);
    } else {
      return map(k / D, k % D);
    }
  }

  template <class T>
  SHEAFNN_HD static void mean_map(const T* raw, RotationParametrisation, Map<T>& map) {
    using std::tanh;
    SHEAFNN_UNROLL for (int k = 0; k < mean_size; ++k) entry(map, k) = tanh(raw[k]);
  }
  template <class T>
  SHEAFNN_HD static void mean_map_backward(const T* raw, RotationParametrisation, const Map<T>& map_bar,
                                           T* raw_bar) {
    using std::tanh;
    SHEAFNN_UNROLL for (int k = 0; k < mean_size; ++k) {
      const T mean = tanh(raw[k]);
      raw_bar[k] = entry(map_bar, k) * (T(1) - mean * mean);
    }
  }

  template <class T>
  SHEAFNN_HD static void activate(const T* raw, RotationParametrisation, T* parameters) {
    using std::tanh;
    SHEAFNN_UNROLL for (int k = 0; k < mean_size; ++k) {
      parameters[k] = tanh(raw[k]);
      parameters[mean_size + k] = -elu(-raw[mean_size + k]);
    }
  }
  template <class T>
  SHEAFNN_HD static void activate_backward(const T*, RotationParametrisation, const T* parameters,
                                           const T* gradient, T* raw_bar) {
    SHEAFNN_UNROLL for (int k = 0; k < mean_size; ++k) {
      const T mean = parameters[k];
      raw_bar[k] = gradient[k] * (T(1) - mean * mean);
      raw_bar[mean_size + k] = gradient[mean_size + k] * elu_slope(-parameters[mean_size + k]);
    }
  }

  /// KL(N(μ, σ²) ‖ N(0, I)) = −½ Σ (1 + 2 log σ − μ² − σ²).
  template <class T>
  [[nodiscard]] SHEAFNN_HD static T kl(const T* parameters) {
    using std::exp;
    T sum = T(0);
    SHEAFNN_UNROLL for (int k = 0; k < mean_size; ++k) {
      const T mean = parameters[k];
      const T log_sigma = parameters[mean_size + k];
      sum += T(0.5) * (mean * mean + exp(T(2) * log_sigma) - T(1)) - log_sigma;
    }
    return sum;
  }
  template <class T>
  SHEAFNN_HD static void kl_backward(const T* parameters, const T& weight, T* gradient) {
    using std::exp;
    SHEAFNN_UNROLL for (int k = 0; k < mean_size; ++k) {
      gradient[k] += weight * parameters[k];
      gradient[mean_size + k] += weight * (exp(T(2) * parameters[mean_size + k]) - T(1));
    }
  }

  template <class T>
  SHEAFNN_HD static void draw_noise(const Stream& stream, const word_of_t<T>& arc, T* noise) {
    fill_normals<noise_size>(noise, stream, arc);
  }
  template <class T>
  SHEAFNN_HD static void scales(const T* parameters, T* sigma) {
    using std::exp;
    SHEAFNN_UNROLL for (int k = 0; k < mean_size; ++k) sigma[k] = exp(parameters[mean_size + k]);
  }
  template <class T>
  SHEAFNN_HD static void sample_scaled(const T* parameters, const T* sigma, const T* noise, Map<T>& map) {
    SHEAFNN_UNROLL for (int k = 0; k < mean_size; ++k) entry(map, k) = parameters[k] + sigma[k] * noise[k];
  }
  template <class T>
  SHEAFNN_HD static void sample(const T* parameters, const T* noise, Map<T>& map) {
    T sigma[scale_size];
    scales(parameters, sigma);
    sample_scaled(parameters, sigma, noise, map);
  }
  /// Adds to `gradient` the derivative of ⟨map_bar, z⟩ + c · (log q(z) − log p(z)), c = monte_carlo_weight, at
  /// fixed ε.
  template <class T>
  SHEAFNN_HD static void sample_backward(const T* parameters, const Map<T>& map, const Map<T>& map_bar,
                                         const T& monte_carlo_weight, T* gradient) {
    SHEAFNN_UNROLL for (int k = 0; k < mean_size; ++k) {
      const T z = entry(map, k);
      const T z_bar = entry(map_bar, k) + monte_carlo_weight * z;
      gradient[k] += z_bar;
      gradient[mean_size + k] += z_bar * (z - parameters[k]) - monte_carlo_weight;  // ∂z/∂log σ = σε = z − μ
    }
  }
  /// log q(z) − log p(z) = Σ ½ z² − ½ ε² − log σ.
  template <class T>
  [[nodiscard]] SHEAFNN_HD static T monte_carlo_kl(const T* parameters, const Map<T>& map) {
    using std::exp;
    T sum = T(0);
    SHEAFNN_UNROLL for (int k = 0; k < mean_size; ++k) {
      const T z = entry(map, k);
      const T log_sigma = parameters[mean_size + k];
      const T noise = (z - parameters[k]) * exp(-log_sigma);
      sum += T(0.5) * (z * z - noise * noise) - log_sigma;
    }
    return sum;
  }
};

/// Cayley distributions C(M, κ) over rotations.
template <int D>
struct Posterior<SpecialOrthogonal<D>> {
  static constexpr int mean_size = rotation_parameters<D>;
  static constexpr int spread_size = 1;
  static constexpr int parameter_size = D * D + 1;  ///< M column by column, κ
  static constexpr int gradient_size = D * D + 1;   ///< M̄, κ̄
  static constexpr int noise_size = D * D;          ///< U column by column
  static constexpr int location_size = parameter_size;
  static constexpr int scale_size = 0;
  template <class T>
  using Map = SquareMatrix<T, D>;
  template <class T>
  using Parameters = Column<T, mean_size>;

  /// tanh of the raw outputs; Euler angles cover (−π, π).
  template <class T>
  [[nodiscard]] SHEAFNN_HD static Parameters<T> squash(const T* raw, RotationParametrisation parametrisation) {
    using std::tanh;
    const T range = T(angle_range(parametrisation));
    Parameters<T> phi;
    for (int k = 0; k < mean_size; ++k) phi(k) = range * tanh(raw[k]);
    return phi;
  }
  [[nodiscard]] SHEAFNN_HD static constexpr double angle_range(RotationParametrisation parametrisation) {
    return parametrisation == RotationParametrisation::euler ? 3.14159265358979323846 : 1.0;
  }

  template <class T>
  SHEAFNN_HD static void mean_map(const T* raw, RotationParametrisation parametrisation, Map<T>& map) {
    map = rotation_from_parameters<T, D>(parametrisation, squash(raw, parametrisation));
  }
  template <class T>
  SHEAFNN_HD static void mean_map_backward(const T* raw, RotationParametrisation parametrisation,
                                           const Map<T>& map_bar, T* raw_bar) {
    const Parameters<T> phi = squash(raw, parametrisation);
    Parameters<T> phi_bar;
    for (int k = 0; k < mean_size; ++k) phi_bar(k) = T(0);
    rotation_from_parameters_backward<T, D>(parametrisation, phi, map_bar, phi_bar);
    const T range = T(angle_range(parametrisation));
    for (int k = 0; k < mean_size; ++k) {
      const T unit = phi(k) / range;
      raw_bar[k] = phi_bar(k) * range * (T(1) - unit * unit);
    }
  }

  template <class T>
  SHEAFNN_HD static void activate(const T* raw, RotationParametrisation parametrisation, T* parameters) {
    Map<T> mean;
    mean_map(raw, parametrisation, mean);
    SHEAFNN_UNROLL for (int k = 0; k < D * D; ++k) parameters[k] = mean(k % D, k / D);
    const T gamma = T(0.95) * sigmoid(raw[mean_size]) + T(0.025);
    parameters[D * D] = (T(1) - gamma) / (T(1) + gamma);
  }
  template <class T>
  SHEAFNN_HD static void activate_backward(const T* raw, RotationParametrisation parametrisation, const T*,
                                           const T* gradient, T* raw_bar) {
    mean_map_backward(raw, parametrisation, matrix(gradient), raw_bar);
    const T s = sigmoid(raw[mean_size]);
    const T gamma = T(0.95) * s + T(0.025);
    const T kappa_slope = T(-2) / ((T(1) + gamma) * (T(1) + gamma));
    raw_bar[mean_size] = gradient[D * D] * kappa_slope * T(0.95) * s * (T(1) - s);
  }

  template <class T>
  [[nodiscard]] SHEAFNN_HD static T kl(const T* parameters) {
    return cayley_kl<D>(parameters[D * D]);
  }
  template <class T>
  SHEAFNN_HD static void kl_backward(const T* parameters, const T& weight, T* gradient) {
    gradient[D * D] += weight * cayley_kl_derivative<D>(parameters[D * D]);
  }

  template <class T>
  SHEAFNN_HD static void draw_noise(const Stream& stream, const word_of_t<T>& arc, T* noise) {
    const Map<T> u = haar_rotation<T, D>(stream, arc);
    SHEAFNN_UNROLL for (int k = 0; k < D * D; ++k) noise[k] = u(k % D, k / D);
  }
  template <class T>
  SHEAFNN_HD static void scales(const T*, T*) {}
  template <class T>
  SHEAFNN_HD static void sample_scaled(const T* parameters, const T*, const T* noise, Map<T>& map) {
    sample(parameters, noise, map);
  }
  template <class T>
  SHEAFNN_HD static void sample(const T* parameters, const T* noise, Map<T>& map) {
    map = multiply(moebius<T, D>(matrix(noise), parameters[D * D]), matrix(parameters));
  }
  /// As for normal maps, at fixed U. With Y₀ = Y Mᵀ: ∂Y₀/∂κ = (I − Y₀²)/(1 − κ²), and
  /// ∂ log q/∂κ = (D − 1) tr(Y₀)/(1 − κ²), log q(Y) = D(D−1)/2 log(1−κ²) − (D−1) log det(I − κY₀).
  template <class T>
  SHEAFNN_HD static void sample_backward(const T* parameters, const Map<T>& map, const Map<T>& map_bar,
                                         const T& monte_carlo_weight, T* gradient) {
    const T kappa = parameters[D * D];
    const Map<T> mean = matrix(parameters);
    const Map<T> centred = multiply_nt(map, mean);
    const Map<T> mean_bar = multiply_tn(centred, map_bar);
    SHEAFNN_UNROLL for (int k = 0; k < D * D; ++k) gradient[k] += mean_bar(k % D, k / D);
    const Map<T> centred_bar = multiply_nt(map_bar, mean);
    T trace = centred(0, 0);
    for (int i = 1; i < D; ++i) trace += centred(i, i);
    const Map<T> slope = identity_matrix<T, D>() - multiply(centred, centred);
    gradient[D * D] += (inner_product(centred_bar, slope) + monte_carlo_weight * T(D - 1) * trace) /
                       ((T(1) - kappa) * (T(1) + kappa));
  }
  template <class T>
  [[nodiscard]] SHEAFNN_HD static T monte_carlo_kl(const T* parameters, const Map<T>& map) {
    using std::log;
    const T kappa = parameters[D * D];
    const Map<T> centred = multiply_nt(map, matrix(parameters));
    Map<T> shifted = identity_matrix<T, D>();
    SHEAFNN_UNROLL for (int k = 0; k < D * D; ++k) shifted(k % D, k / D) -= kappa * centred(k % D, k / D);
    const T determinant = solve_unpivoted<T, D, 1>(shifted, Column<T, D>::Constant(T(0))).determinant;
    return T(0.5 * D * (D - 1)) * log((T(1) - kappa) * (T(1) + kappa)) - T(D - 1) * log(determinant);
  }

  /// D² numbers, column by column, as a matrix.
  template <class T>
  [[nodiscard]] SHEAFNN_HD static SHEAFNN_INLINE Map<T> matrix(const T* entries) {
    Map<T> r;
    SHEAFNN_UNROLL for (int k = 0; k < D * D; ++k) r(k % D, k / D) = entries[k];
    return r;
  }
};

}  // namespace sheafnn
