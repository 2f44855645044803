/// \file
/// What directed layers do with complex features at the D coordinates of a node, or at one coordinate. x[0] is the real part
/// and x[1] the imaginary part, for a tile T of channels. Source: math: "Directed sheaves" (3.52, 3.54, 3.57).
///
/// Takes any numbers.
#pragma once

#include "sheafnn/core/config.hpp"
#include "sheafnn/kernels/layer_end.hpp"
#include "sheafnn/nn/complex_activation.hpp"

namespace sheafnn::kernels {

/// x = e^{iφ} x.
template <int D, class T>
SHEAFNN_HD SHEAFNN_INLINE void turn(const T& cosine, const T& sine, T (&x)[2][D]) {
  SHEAFNN_UNROLL for (int i = 0; i < D; ++i) {
    const T real = x[0][i], imaginary = x[1][i];
    x[0][i] = cosine * real - sine * imaginary;
    x[1][i] = sine * real + cosine * imaginary;
  }
}

/// The derivative of φ of an arc u → v, Re⟨r̄_u, −i e^{iφ} Q w_v⟩ + Re⟨e^{iφ} Q r̄_v, i w_u⟩, to be summed over channels.
///
/// \param own, own_bar      w_u, r̄_u
/// \param moved, moved_bar  e^{iφ} Q w_v, e^{iφ} Q r̄_v
template <int D, class T>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE T angle_bar(const T (&own)[2][D], const T (&own_bar)[2][D],
                                                    const T (&moved)[2][D], const T (&moved_bar)[2][D]) {
  T sum = T(0);
  SHEAFNN_UNROLL for (int i = 0; i < D; ++i) {
    sum += own_bar[0][i] * moved[1][i] - own_bar[1][i] * moved[0][i];
    sum += moved_bar[1][i] * own[0][i] - moved_bar[0][i] * own[1][i];
  }
  return sum;
}

/// The end of a directed layer, X' = gain X − act(Z), gain = 1 + tanh ε.
struct DirectedEnd {
  bool activation;
  layers::ComplexActivation kind;

  /// X becomes X'.
  template <int D, class T>
  SHEAFNN_HD SHEAFNN_INLINE void forward(int i, const T& gain, const T (&z)[2][D], T (&x)[2][D]) const {
    T step[2] = {z[0][i], z[1][i]};
    if (activation) layers::activate(kind, step);
    for (int part = 0; part < 2; ++part) x[part][i] = gated(gain, x[part][i], step[part]);
  }
  /// X̄' becomes Z̄.
  template <int D, class T>
  SHEAFNN_HD SHEAFNN_INLINE void backward(int i, const T (&z)[2][D], T (&bar)[2][D]) const {
    const T step[2] = {z[0][i], z[1][i]};
    T step_bar[2] = {-bar[0][i], -bar[1][i]};
    if (activation) layers::activate_backward(kind, step, step_bar);
    bar[0][i] = step_bar[0];
    bar[1][i] = step_bar[1];
  }
};

}  // namespace sheafnn::kernels
