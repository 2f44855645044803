/// \file
/// KL between two Cayley distributions.
///
/// With e^{±iθ_j} the eigenvalues of M₁M₂ᵀ let ρ_j = |κ₁ − κ₂e^{iθ_j}|/|1 − κ₁κ₂e^{iθ_j}|, the pseudo-hyperbolic distance of
/// κ₁ and κ₂e^{iθ_j} in the unit disc. Each is counted twice, and for odd N once more for θ = 0, with the sign of κ₁ − κ₂.
/// Then
///     KL/(N − 1) = −½ Σ_i log(1 − ρ_i²) + ½ E log(1 − Σ ρ_i² x_i²) + Π ρ_i · Σ_{k≥0} E (Σ ρ_i² x_i²)^k/(N + 2k)
/// with x uniform on the sphere: elementary for each N, evaluated as integrals over [0, 1] of algebraic functions.
/// N = 2 is −log(1 − ρ²); symmetric for even N. κ₂ = 0 gives cayley_kl. Source: math, "KL between Cayley
/// distributions" (2.18).
#pragma once

#include "sheafnn/core/eigen.hpp"

#include <Eigen/SVD>
#include <cmath>
#include <type_traits>

#include "sheafnn/rotation/cayley_distribution.hpp"
#include "sheafnn/rotation/sphere_average.hpp"
#include "sheafnn/rotation/wrapped_cauchy.hpp"

namespace sheafnn::detail {

/// ρ² and 1 − ρ² of κ₁ and κ₂e^{iθ}. \param half_chord  |sin(θ/2)|
struct PseudoHyperbolic {
  double squared, complement;

  PseudoHyperbolic(double kappa1, double kappa2, double half_chord) {
    const double chord = 4 * kappa1 * kappa2 * half_chord * half_chord;
    const double near = (1 - kappa1) + kappa1 * (1 - kappa2);  // 1 − κ₁κ₂
    const double far = near * near + chord;                    // |1 − κ₁κ₂e^{iθ}|²
    squared = ((kappa1 - kappa2) * (kappa1 - kappa2) + chord) / far;
    complement = (1 - kappa1) * (1 + kappa1) * (1 - kappa2) * (1 + kappa2) / far;
  }
};

}  // namespace sheafnn::detail

namespace sheafnn::rotation {

/// KL(p ‖ q) in nats, computed in double: relative error about 1e-13 for given M and κ.
/// math: "KL between Cayley distributions" (2.18).
template <int N, class Scalar>
[[nodiscard]] Scalar kl_divergence(const CayleyDistribution<N, Scalar>& p,
                                   const std::type_identity_t<CayleyDistribution<N, Scalar>>& q) {
  if constexpr (N == 1) {
    return Scalar(0);
  } else {
    const double kappa1 = static_cast<double>(p.concentration());
    const double kappa2 = static_cast<double>(q.concentration());
    // The singular values of M₁ − M₂ are 2|sin(θ_j/2)|, in pairs, in descending order.
    const SquareMatrix<double, N> difference =
        p.location().template cast<double>() - q.location().template cast<double>();
    const Eigen::JacobiSVD<SquareMatrix<double, N>> svd(difference);
    detail::Contraction<N> contraction;
    double determinant = 1;  // Π ρ_i with its sign
    for (int i = 0; i < N; i += 2) {
      const bool axis = i == N - 1;  // of a rotation of odd dimension
      const double half_chord = axis ? 0 : 0.25 * (svd.singularValues()(i) + svd.singularValues()(i + 1));
      const detail::PseudoHyperbolic rho(kappa1, kappa2, half_chord);
      for (int j = i; j < (axis ? N : i + 2); ++j) {
        contraction.squared[static_cast<std::size_t>(j)] = rho.squared;
        contraction.complement[static_cast<std::size_t>(j)] = rho.complement;
      }
      determinant *= axis ? std::copysign(std::sqrt(rho.squared), kappa1 - kappa2) : rho.squared;
    }
    const double first = contraction.log_delta_at_one();
    if constexpr (N == 2) {
      return static_cast<Scalar>(first);
    } else {
      const double second = 0.5 * detail::mean_log_rest<N>(contraction);
      const double third = determinant == 0 ? 0 : determinant * detail::mean_power_series<N>(contraction);
      return static_cast<Scalar>((N - 1) * (first + second + third));
    }
  }
}

/// KL(p ‖ q) in nats, in closed form: −log(1 − ρ²).
template <class Scalar>
[[nodiscard]] Scalar kl_divergence(const WrappedCauchy<Scalar>& p,
                                   const std::type_identity_t<WrappedCauchy<Scalar>>& q) {
  const detail::PseudoHyperbolic rho(
      static_cast<double>(p.concentration()), static_cast<double>(q.concentration()),
      std::sin((static_cast<double>(p.location()) - static_cast<double>(q.location())) / 2));
  return static_cast<Scalar>(rho.squared < 0.5 ? -std::log1p(-rho.squared) : -std::log(rho.complement));
}

}  // namespace sheafnn::rotation
