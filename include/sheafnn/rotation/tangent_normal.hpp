/// \file
/// The normal distribution in the tangent space at M: Y = M exp(X_φ), φ = σ∘ε, ε ~ N(0, I), on SO(N), 1 ≤ N ≤ 9.
///
/// Its density with respect to normalised Haar measure sums over the branches of the logarithm, all φ' with
/// exp(X_φ') = exp(X_φ). What is computed here is the term of the branch that was drawn, the density
/// of (Y, branch):
///     log q(Y, φ) = log N(φ; 0, σ²) + log V_N − log |det d exp(φ)|,    V_N = Π_{k=2}^N 2π^{k/2}/Γ(k/2),
/// V_N the volume of SO(N) in the coordinates φ. Its mean is KL(Y ‖ uniform) − H(branch | Y), a lower bound of the
/// KL of Y; with log p(Y) subtracted likewise for any p. So an evidence bound formed with it is too high by H(branch | Y).
/// For N = 2 and 3, 1.0e-9 and 4.2e-8 nats at σ = 0.5, 0.0048 and 0.054 at σ = 1; as σ → ∞ it grows without bound. Other
/// branches matter little while the largest angle of φ stays below π. At σ = 0.5 it exceeds π with probability 0.001 for N =
/// 8, at σ = 1 with 0.0015, 0.02, 0.1, 0.3, 0.6 and 0.96 for N = 2, 3, 4, 5, 6, 8.
/// Source: math: "Normal in the tangent space" (2.26).
#pragma once

#include <cmath>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/pack.hpp"
#include "sheafnn/core/small_matrix.hpp"
#include "sheafnn/core/special_functions.hpp"
#include "sheafnn/rotation/exponential.hpp"
#include "sheafnn/rotation/exponential_jacobian.hpp"
#include "sheafnn/rotation/skew.hpp"

namespace sheafnn::rotation {

/// log V_N: Haar measure near I is dφ/V_N.
template <int N>
[[nodiscard]] SHEAFNN_HD constexpr double log_rotation_volume() {
  static_assert(N >= 1 && N <= 9);
  constexpr double values[9] = {0.0,
                                1.8378770664093455,
                                4.3689013133786361,
                                7.3515082656373819,
                                10.621797290347909,
                                14.055986947896109,
                                17.554715126581881,
                                21.035022381311372,
                                24.425717477351175};
  return values[N - 1];
}

}  // namespace sheafnn::rotation

namespace sheafnn::detail {

/// σ∘ε.
template <class T, int P>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE Column<T, P> scaled_noise(const Column<T, P>& sigma,
                                                                  const Column<T, P>& epsilon) {
  Column<T, P> r;
  for (int k = 0; k < P; ++k) r(k) = sigma(k) * epsilon(k);
  return r;
}

}  // namespace sheafnn::detail

namespace sheafnn::rotation {

/// Y = M exp(X_{σ∘ε}). Over T = float, double or Pack.
///
/// \param m        rotation
/// \param sigma    standard deviations, one per coordinate of skew_matrix, ≥ 0; σ∘ε must be finite
/// \param epsilon  standard normal numbers
/// Unchecked: that m is a rotation, and the ranges.
template <class T, int N>
[[nodiscard]] SHEAFNN_HD inline SquareMatrix<T, N> tangent_normal_sample(const SquareMatrix<T, N>& m,
                                                                         const RotationParameters<T, N>& sigma,
                                                                         const RotationParameters<T, N>& epsilon) {
  return multiply(m, exponential_rotation<T, N>(detail::scaled_noise(sigma, epsilon)));
}

/// Adds M̄ = Ȳ Eᵀ, E = MᵀY, as of a free matrix, and σ̄ = φ̄∘ε to the gradients.
///
/// \param y          tangent_normal_sample(m, sigma, epsilon)
/// \param cotangent  Ȳ
/// Unchecked: that m is a rotation, and the ranges.
template <class T, int N>
SHEAFNN_HD inline void tangent_normal_sample_backward(
    const SquareMatrix<T, N>& m, const RotationParameters<T, N>& sigma, const RotationParameters<T, N>& epsilon,
    const SquareMatrix<T, N>& y, const SquareMatrix<T, N>& cotangent, SquareMatrix<T, N>& m_gradient,
    RotationParameters<T, N>& sigma_gradient) {
  const SquareMatrix<T, N> m_part = multiply_nt(cotangent, multiply_tn(m, y));
  for (int j = 0; j < N; ++j) {
    for (int i = 0; i < N; ++i) m_gradient(i, j) += m_part(i, j);
  }
  RotationParameters<T, N> phi_gradient = RotationParameters<T, N>::Constant(T(0));
  exponential_rotation_backward<T, N>(detail::scaled_noise(sigma, epsilon), multiply_tn(m, cotangent),
                                      phi_gradient);
  for (int k = 0; k < rotation_parameters<N>; ++k) sigma_gradient(k) += phi_gradient(k) * epsilon(k);
}

}  // namespace sheafnn::rotation

namespace sheafnn::detail {

/// −½‖ε‖² − Σ log σ − q/2 · log 2π + log V_N.
template <class T, int N>
[[nodiscard]] SHEAFNN_HD inline T tangent_normal_constant(const RotationParameters<T, N>& sigma,
                                                          const RotationParameters<T, N>& epsilon) {
  using std::log;
  T squared = T(0), logarithms = T(0);
  for (int k = 0; k < rotation_parameters<N>; ++k) {
    squared += epsilon(k) * epsilon(k);
    logarithms += log(sigma(k));
  }
  return T(log_rotation_volume<N>() - rotation_parameters<N> * half_log_two_pi) - T(0.5) * squared - logarithms;
}

}  // namespace sheafnn::detail

namespace sheafnn::rotation {

/// log q(Y, φ) of the draw with noise ε, which is the value of its branch, see above. It does not depend on M. A draw's KL to
/// the uniform distribution, Monte Carlo form, is this number. \param sigma  > 0
/// Unchecked: that m is a rotation, and the ranges.
template <class T, int N>
[[nodiscard]] SHEAFNN_HD inline T tangent_normal_logpdf(const RotationParameters<T, N>& sigma,
                                                        const RotationParameters<T, N>& epsilon) {
  return detail::tangent_normal_constant<T, N>(sigma, epsilon) -
         exponential_log_jacobian<T, N>(detail::scaled_noise(sigma, epsilon));
}

/// Adds weight · ∂ log q/∂σ at fixed ε, −1/σ − ε∘∂ log |det d exp|/∂φ, to `sigma_gradient` and returns log q.
/// Unchecked: that m is a rotation, and the ranges.
template <class T, int N>
SHEAFNN_HD inline T tangent_normal_logpdf_backward(const RotationParameters<T, N>& sigma,
                                                   const RotationParameters<T, N>& epsilon, const T& weight,
                                                   RotationParameters<T, N>& sigma_gradient) {
  RotationParameters<T, N> phi_gradient = RotationParameters<T, N>::Constant(T(0));
  const T log_jacobian =
      exponential_log_jacobian_backward<T, N>(detail::scaled_noise(sigma, epsilon), weight, phi_gradient);
  for (int k = 0; k < rotation_parameters<N>; ++k) {
    sigma_gradient(k) -= weight / sigma(k) + epsilon(k) * phi_gradient(k);
  }
  return detail::tangent_normal_constant<T, N>(sigma, epsilon) - log_jacobian;
}

}  // namespace sheafnn::rotation
