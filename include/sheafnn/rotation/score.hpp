/// \file
/// The score of a distribution of rotations: the gradient of log f along SO(N).
#pragma once

#include <type_traits>

#include "sheafnn/rotation/cayley_gradient.hpp"
#include "sheafnn/rotation/operations.hpp"
#include "sheafnn/rotation/orthonormalise.hpp"
#include "sheafnn/rotation/skew.hpp"

namespace sheafnn::rotation {

/// The derivative of log f(exp(X_φ) P) in φ at 0, N(N − 1)/2 values, of any distribution with a logpdf_gradient().
///
/// \throws std::invalid_argument  as logpdf_gradient()
template <class D>
[[nodiscard]] RotationParameters<typename D::Scalar, D::dimension> score(
    const D& distribution, const std::type_identity_t<typename D::Matrix>& p,
    const SampleOptions<typename D::Scalar>& options = {}) {
  using Scalar = typename D::Scalar;
  constexpr int N = D::dimension;
  const auto rotation = orthonormalised<Scalar, N>("score: p", p, options);
  return tangent_gradient<Scalar, N>(logpdf_gradient(distribution, rotation).argument, rotation);
}

}  // namespace sheafnn::rotation
