/// \file
/// KL of an angular central Gaussian distribution to the uniform one, its entropy, and the KL between two such
/// distributions.
///
/// For x = Lz/‖Lz‖, xᵀΛ⁻¹x = zᵀz/zᵀΛz, hence KL(ACG(Λ) ‖ uniform) = −½ log det Λ + P/2 · E log uᵀΛu with u uniform
/// on the sphere, an integral over [0, 1] (sphere_average.hpp). KL(Λ₁ ‖ Λ₂) is the same for L₁ᵀΛ₂⁻¹L₁. In double,
/// absolute error about 1e-13. Source: math, "Averages over the sphere".
#pragma once

#include "sheafnn/core/eigen.hpp"

#include <Eigen/SVD>
#include <type_traits>

#include "sheafnn/rotation/angular_central_gaussian.hpp"
#include "sheafnn/rotation/angular_central_gaussian_gradient.hpp"
#include "sheafnn/rotation/sphere_average.hpp"

namespace sheafnn::detail {

/// −½ log det A + P/2 · E log uᵀAu for A = BBᵀ.
template <int P>
[[nodiscard]] double mean_log_ratio(const SquareMatrix<double, P>& b) {
  // Singular values of B are exact to rounding of the largest, their squares spread twice as far.
  const Eigen::JacobiSVD<SquareMatrix<double, P>> svd(b);
  const auto& sigma = svd.singularValues();
  Contraction<P> contraction;
  for (int i = 0; i < P; ++i) {
    const double ratio = sigma(i) / sigma(0);
    contraction.complement[static_cast<std::size_t>(i)] = ratio * ratio;
    contraction.squared[static_cast<std::size_t>(i)] = (1 - ratio) * (1 + ratio);
  }
  return contraction.log_delta_at_one() + 0.5 * P * mean_log_rest<P>(contraction);
}

}  // namespace sheafnn::detail

namespace sheafnn::rotation {

/// KL(ACG(Λ) ‖ uniform on the sphere) in nats.
template <int P, class Scalar>
[[nodiscard]] Scalar kl_to_uniform(const AngularCentralGaussian<P, Scalar>& distribution) {
  return static_cast<Scalar>(detail::mean_log_ratio<P>(distribution.factor().template cast<double>()));
}

/// KL(p ‖ q) in nats.
template <int P, class Scalar>
[[nodiscard]] Scalar kl_divergence(const AngularCentralGaussian<P, Scalar>& p,
                                   const std::type_identity_t<AngularCentralGaussian<P, Scalar>>& q) {
  // (L₂⁻¹L₁)ᵀ(L₂⁻¹L₁) = L₁ᵀΛ₂⁻¹L₁
  SquareMatrix<double, P> relative = p.factor().template cast<double>();
  detail::solve_lower<P, double, P>(q.factor().template cast<double>(), relative);
  return static_cast<Scalar>(detail::mean_log_ratio<P>(relative));
}

}  // namespace sheafnn::rotation
