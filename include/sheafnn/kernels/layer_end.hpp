/// \file
/// What a layer or an encoder ends with, and the derivative, at one coordinate of a node and a tile T of channels:
///
///     X' = gain X − act(Z),   gain = 1 + tanh ε,   act = ELU or nothing     DiffusionEnd
///     Z̄ = −X̄' act′(Z),   ε̄ = (1 − tanh² ε) Σ X X̄'                           activated_bar(), gain_slope()
///     G = (1 − α)(X̃ − Z) + α X₁,   X̄₁ += α Ḡ,   Z̄ = −(1 − α) Ḡ             ResidualShare
///     X' = act(Y − Z + b)                                                   ConvolutionEnd, ChosenConvolutionEnd
///     X' = 2X − X_before − act(Z)                                           WaveEnd
///     X' = gain X − act(Z + b)                                              HypergraphEnd
///     X' = X + act(Y + b),   Y from means over neighbours                   CopresheafEnd
///     X' = act(M),   X' = X + act(M − Y)                                    AttentionEnd
///
/// Source: math: "The model" (3.6), "Backward pass of one diffusion step" (3.19). Residuals: math: "Deep networks"
/// (3.39, 3.40). Convolutions and waves: math: "Convolutions and waves" (3.43, 3.44). Convolutions also:
/// math: "Convolutions on given sheaves" (8.5). Hypergraphs: math: "Layers and learner" (7.6). Copresheaves:
/// math: "Copresheaves" (3.50). Attention: math: "Sheaf attention" (3.47).
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
/// The same for a choice at run time.
template <class T>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE T activated(const T& z, layers::Activation activation) {
  T slope;
  return layers::activate_with_slope(activation, z, slope);
}
/// The derivative of Z where X' has −act(Z): −x̄ act′(z).
template <class T>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE T activated_bar(const T& x_bar, const T& z, bool activation) {
  return activation ? -x_bar * elu_derivative(z) : -x_bar;
}
/// The same for a choice at run time.
template <class T>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE T activated_bar(const T& x_bar, const T& z, layers::Activation activation) {
  T slope;
  static_cast<void>(layers::activate_with_slope(activation, z, slope));
  return -(x_bar * slope);
}

/// The derivative of z where X' has +act(z), from act(z): x̄ act′(z).
template <class T>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE T before_activation(const T& activated, const T& bar, bool activation) {
  return activation ? bar * layers::elu_slope(activated) : bar;
}

/// What an encoder ends with: ELU, or ReLU if `rectified`, or nothing.
struct EncoderEnd {
  bool activation, rectified;

  template <class T>
  [[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE T forward(const T& x) const {
    if (!activation) return x;
    return rectified ? layers::activate<layers::Activation::relu>(x) : layers::elu(x);
  }
  /// The derivative of x, from y = forward(x) and its derivative.
  template <class T>
  [[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE T backward(const T& y, const T& bar) const {
    if (!activation) return bar;
    return bar * (rectified ? layers::activation_derivative<layers::Activation::relu>(y) : layers::elu_slope(y));
  }
};

/// X' from gain, X and act(Z).
template <class T>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE T gated(const T& gain, const T& x, const T& step) {
  return gain * x - step;
}

/// A layer's share of the first layer's input, α and 1 − α.
template <class T>
struct ResidualShare {
  static constexpr bool reads_first = true;
  T alpha, rest;

  template <class S>
  SHEAFNN_HD explicit ResidualShare(S share) : alpha(share), rest(S(1) - share) {}
  /// G from X̃, Z = Δ X̃ and X₁.
  [[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE T forward(const LayerValues<T>& at) const {
    return rest * (at.x - at.z) + alpha * at.first;
  }
  /// The derivatives of X̃, Z and X₁ from Ḡ.
  [[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE LayerValues<T> backward(const T& g_bar) const {
    const T own = rest * g_bar;
    return {own, -own, alpha * g_bar};
  }
};

/// The end of a diffusion layer, gain X − act(Z), from tanh ε.
template <class T>
struct DiffusionEnd {
  static constexpr layers::EquationWeight weights[] = {{.name = "eps", .tanh = true}};
  static constexpr bool mixes = true;
  T gain;
  bool activation;

  template <class S>
  SHEAFNN_HD DiffusionEnd(const S* rates, bool activates) : gain(S(1) + rates[0]), activation(activates) {}
  [[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE T forward(const LayerValues<T>& at) const {
    return gated(gain, at.x, activated(at.z, activation));
  }
  [[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE LayerValues<T> backward(const LayerValues<T>& at, const T& bar,
                                                                  T* rates_bar) const {
    rates_bar[0] = at.x * bar;
    return {.x = gain * bar, .z = activated_bar(bar, at.z, activation)};
  }
};

/// What a convolution applies its activation to, Y − Z + b.
template <class T>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE T convolved(const LayerValues<T>& at) {
  return at.mixed - at.z + at.bias;
}

/// The end of a convolution, act(Y − Z + b). \tparam Activation  bool, ELU or nothing; or a choice, layers::Activation
template <class T, class Activation>
struct ConvolutionEndWith {
  static constexpr bool mixes = true, reads_mixed = true, has_bias = true;
  Activation activation;

  [[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE T forward(const LayerValues<T>& at) const {
    return activated(convolved(at), activation);
  }
  [[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE LayerValues<T> backward(const LayerValues<T>& at, const T& bar,
                                                                  T*) const {
    const T z_bar = activated_bar(bar, convolved(at), activation);
    return {.z = z_bar, .mixed = -z_bar, .bias = -z_bar};
  }
};
/// As layers with ELU have it.
template <class T>
using ConvolutionEnd = ConvolutionEndWith<T, bool>;
/// As networks of convolutions have it.
template <class T>
using ChosenConvolutionEnd = ConvolutionEndWith<T, layers::Activation>;

/// The end of a step of a wave, 2X − X_before − act(Z).
template <class T>
struct WaveEnd {
  static constexpr bool mixes = true, reads_before = true;
  bool activation;

  [[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE T forward(const LayerValues<T>& at) const {
    return at.x + (at.x - at.before) - activated(at.z, activation);
  }
  [[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE LayerValues<T> backward(const LayerValues<T>& at, const T& bar,
                                                                  T*) const {
    return {.x = bar + bar, .z = activated_bar(bar, at.z, activation), .before = -bar};
  }
};

/// The end of a hypergraph's layer with a residual, gain X − act(Z + b), from tanh ε.
template <class T>
struct HypergraphEnd {
  static constexpr layers::EquationWeight weights[] = {{.name = "eps", .tanh = true}};
  static constexpr bool mixes = true, has_bias = true;
  T gain;

  template <class S>
  SHEAFNN_HD HypergraphEnd(const S* rates, bool) : gain(S(1) + rates[0]) {}
  /// act(Z + b), which a layer may keep.
  [[nodiscard]] static SHEAFNN_HD SHEAFNN_INLINE T change(const T& z, const T& bias) {
    return layers::elu(z + bias);
  }
  /// The derivative of Z, and of b, from the derivative of X'.
  [[nodiscard]] static SHEAFNN_HD SHEAFNN_INLINE T change_bar(const T& change, const T& bar) {
    return -before_activation(change, bar, true);
  }
  [[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE T forward(const LayerValues<T>& at) const {
    return gated(gain, at.x, change(at.z, at.bias));
  }
  [[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE LayerValues<T> backward(const LayerValues<T>& at, const T& bar,
                                                                  T* rates_bar) const {
    rates_bar[0] = at.x * bar;
    const T z_bar = change_bar(change(at.z, at.bias), bar);
    return {.x = gain * bar, .z = z_bar, .bias = z_bar};
  }
};

/// The end of a copresheaf layer, from the change of X, which the layer keeps.
struct CopresheafEnd {
  bool activation;

  /// act(Y + b).
  template <class T>
  [[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE T change(const T& y, const T& bias) const {
    return activated(y + bias, activation);
  }
  template <class T>
  [[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE T forward(const T& x, const T& change) const {
    return x + change;
  }
  /// The derivative of Y and of b from the derivative of X', which is also the derivative of X.
  template <class T>
  [[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE T backward(const T& change, const T& bar) const {
    return before_activation(change, bar, activation);
  }
};

/// The end of an attention layer, from the change of X, or X' itself without `residual`; the layer keeps it.
struct AttentionEnd {
  bool activation, residual;

  /// act(M), or act(M − Y).
  template <class T>
  [[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE T change(const T& m, const T& y) const {
    return activated(residual ? m - y : m, activation);
  }
  template <class T>
  [[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE T forward(const T& x, const T& change) const {
    return residual ? change + x : change;
  }
  /// The derivative of M from the derivative of X'. With `residual` X also has the derivative of X', and Y the negative
  /// derivative of M.
  template <class T>
  [[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE T backward(const T& change, const T& bar) const {
    return before_activation(change, bar, activation);
  }
};
/// The share of a neighbour in a mean, 1/degree; 0 for degree 0.
template <class S>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE S mean_share(S degree) {
  return degree > S(0) ? S(1) / degree : S(0);
}

}  // namespace sheafnn::kernels
