/// \file
/// What a diffusion layer ends with, and the derivative, at one coordinate of a node and a tile T of channels:
///
///     X' = gain X − act(Z),   gain = 1 + tanh ε,   act = ELU or nothing       (math: "The model" (3.6))
///     Z̄ = −X̄' act′(Z),   ε̄ = (1 − tanh² ε) Σ X X̄'                             (math: "Backward pass of one diffusion step" (3.19))
///     G = (1 − α)(X̃ − Z) + α X₁,   X̄₁ += α Ḡ,   Z̄ = −(1 − α) Ḡ               (math: "Deep networks" (3.39, 3.40))
///
/// Takes any numbers.
#pragma once

#include <cmath>

#include "sheafnn/core/config.hpp"
#include "sheafnn/kernels/layer_equation.hpp"
#include "sheafnn/nn/activation.hpp"

namespace sheafnn::kernels {

/// 1 + tanh ε.
template <class S>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE S gain(S epsilon) {
  using std::tanh;
  return S(1) + tanh(epsilon);
}
/// ∂gain/∂ε = 1 − tanh² ε, from tanh ε.
template <class S>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE S gain_slope(S tangent) {
  return S(1) - tangent * tangent;
}

/// act(z).
template <class T>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE T activated(const T& z, bool activation) {
  return activation ? elu(z) : z;
}
/// −x̄ act′(z).
template <class T>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE T activated_bar(const T& x_bar, const T& z, bool activation) {
  return activation ? -x_bar * elu_derivative(z) : -x_bar;
}

/// X' from gain, X and act(Z).
template <class T>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE T gated(const T& gain, const T& x, const T& step) {
  return gain * x - step;
}

/// A layer's share of the first layer's input, α and 1 − α.
template <class T>
struct ResidualShare {
  T alpha, rest;

  template <class S>
  SHEAFNN_HD explicit ResidualShare(S share) : alpha(share), rest(S(1) - share) {}
  /// G from X̃, Z = Δ X̃ and X₁.
  [[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE T forward(const LayerValues<T>& at) const {
    return rest * (at.x - at.z) + alpha * at.first;
  }
  /// From Ḡ.
  [[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE LayerValues<T> backward(const T& g_bar) const {
    const T own = rest * g_bar;
    return {own, -own, alpha * g_bar};
  }
};

}  // namespace sheafnn::kernels
