/// \file
/// What directed layers do with complex features at the D coordinates of a node, or at one coordinate. x[0] is the real part
/// and x[1] the imaginary part, for a tile T of channels. Blocks are real, and have `Size` entries (kernels/block.hpp).
/// Source: math: "Directed sheaves" (3.52, 3.54, 3.57).
///
/// Takes any numbers.
#pragma once

#include "sheafnn/core/config.hpp"
#include "sheafnn/kernels/block.hpp"
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

/// y = B x of both parts, for a real block B.
template <int Size, int D, class T, class S>
SHEAFNN_HD SHEAFNN_INLINE void parts_times(const S* block, const T (&x)[2][D], T (&y)[2][D]) {
  SHEAFNN_UNROLL for (int part = 0; part < 2; ++part) block_times<D, Size>(block, x[part], y[part]);
}

/// The term of an arc u → v in (L w)_u: sum −= Q e^{iφ} x, or with Qᵀ. x, which is w_v, becomes e^{iφ} w_v.
template <int Size, bool Transposed, int D, class T, class S>
SHEAFNN_HD SHEAFNN_INLINE void subtract_turned(const S* q, const T& cosine, const T& sine, T (&x)[2][D],
                                               T (&sum)[2][D]) {
  turn<D>(cosine, sine, x);
  SHEAFNN_UNROLL for (int part = 0; part < 2; ++part) {
    add_block_times<D, Size, Transposed, true>(q, x[part], sum[part]);
  }
}

/// The derivative of φ of an arc u → v, Re⟨r̄_u, −i e^{iφ} Q w_v⟩ + Re⟨e^{iφ} Q r̄_v, i w_u⟩, to be summed over channels.
///
/// \param own, own_bar      w_u, r̄_u
/// \param other, other_bar  e^{iφ} w_v, e^{iφ} r̄_v
template <int Size, int D, class T, class S>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE T angle_bar(const S* q, const T (&own)[2][D], const T (&own_bar)[2][D],
                                                    const T (&other)[2][D], const T (&other_bar)[2][D]) {
  T moved[2][D], moved_bar[2][D], sum = T(0);
  parts_times<Size>(q, other, moved);
  parts_times<Size>(q, other_bar, moved_bar);
  SHEAFNN_UNROLL for (int i = 0; i < D; ++i) {
    sum += own_bar[0][i] * moved[1][i] - own_bar[1][i] * moved[0][i];
    sum += moved_bar[1][i] * own[0][i] - moved_bar[0][i] * own[1][i];
  }
  return sum;
}

/// The end of a directed layer at a node, X' = gain X − act(Z), gain = 1 + tanh ε, Z = S R.
struct DirectedEnd {
  bool activation;
  layers::ComplexActivation kind;

  /// X becomes X'. \tparam Size  entries of S \param gain  gain(i): of coordinate i
  template <int Size, int D, class T, class S, class Gain>
  SHEAFNN_HD SHEAFNN_INLINE void forward(const S* scale, const Gain& gain, const T (&r)[2][D],
                                         T (&x)[2][D]) const {
    T z[2][D];
    parts_times<Size>(scale, r, z);
    SHEAFNN_UNROLL for (int i = 0; i < D; ++i) {
      T step[2] = {z[0][i], z[1][i]};
      if (activation) layers::activate(kind, step);
      const T own_gain(gain(i));
      for (int part = 0; part < 2; ++part) x[part][i] = gated(own_gain, x[part][i], step[part]);
    }
  }
  /// X̄' becomes Z̄. \tparam Size  as above
  template <int Size, int D, class T, class S>
  SHEAFNN_HD SHEAFNN_INLINE void backward(const S* scale, const T (&r)[2][D], T (&bar)[2][D]) const {
    T z[2][D];
    parts_times<Size>(scale, r, z);
    SHEAFNN_UNROLL for (int i = 0; i < D; ++i) {
      const T step[2] = {z[0][i], z[1][i]};
      T step_bar[2] = {-bar[0][i], -bar[1][i]};
      if (activation) layers::activate_backward(kind, step, step_bar);
      bar[0][i] = step_bar[0];
      bar[1][i] = step_bar[1];
    }
  }
};

}  // namespace sheafnn::kernels
