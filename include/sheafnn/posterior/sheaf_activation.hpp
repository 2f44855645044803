/// \file
/// SheafActivation: what a sheaf learner's raw outputs go through before a map is formed of them (for rotations: before
/// their parametrisation), elementwise but for attention.
///
///     tanh, identity, ELU;     attention, of D × D numbers row by row:  F = I − softmax of each row,  so F 1 = 0
///
/// Source: math: "Sheaf learner".
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>

#include "sheafnn/core/config.hpp"
#include "sheafnn/nn/activation.hpp"

namespace sheafnn {

/// See the top of this file.
enum class SheafActivation : std::uint8_t { tanh, identity, elu, attention };
/// Its texts, in the order of the enumeration.
inline constexpr std::array<std::string_view, 4> sheaf_activation_names = {"tanh", "identity", "elu", "attention"};
/// Its text.
[[nodiscard]] constexpr std::string_view to_string(SheafActivation activation) {
  return sheaf_activation_names[static_cast<std::size_t>(activation)];
}

namespace detail {

/// Of `count` raw outputs, in any of the elementwise activations. T = float, double or Pack.
template <int count, class T>
SHEAFNN_HD SHEAFNN_INLINE void activate_raw(SheafActivation activation, const T* raw, T* out) {
  using std::tanh;
  switch (activation) {
    case SheafActivation::identity:
      SHEAFNN_UNROLL for (int k = 0; k < count; ++k) out[k] = raw[k];
      break;
    case SheafActivation::elu:
      SHEAFNN_UNROLL for (int k = 0; k < count; ++k) out[k] = elu(raw[k]);
      break;
    default:
      SHEAFNN_UNROLL for (int k = 0; k < count; ++k) out[k] = tanh(raw[k]);
  }
}

/// The derivative of such an activation, from its value.
template <class T>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE T raw_slope(SheafActivation activation, const T& value) {
  switch (activation) {
    case SheafActivation::identity:
      return T(1);
    case SheafActivation::elu:
      return elu_slope(value);
    default:
      return T(1) - value * value;
  }
}

/// z = I − rowwise softmax(raw), all D × D, row by row.
template <int D, class T>
SHEAFNN_HD SHEAFNN_INLINE void attention(const T* raw, T* z) {
  using std::exp;
  for (int i = 0; i < D; ++i) {
    const T* row = raw + i * D;
    T largest = row[0], sum = T(0);
    for (int j = 1; j < D; ++j) largest = select(row[j] > largest, row[j], largest);
    for (int j = 0; j < D; ++j) {
      z[i * D + j] = exp(row[j] - largest);
      sum = sum + z[i * D + j];
    }
    for (int j = 0; j < D; ++j) z[i * D + j] = T(i == j ? 1 : 0) - z[i * D + j] / sum;
  }
}
/// With p = I − z: raw̄_ij = −p_ij (z̄_ij − Σ_k p_ik z̄_ik).
template <int D, class T>
SHEAFNN_HD SHEAFNN_INLINE void attention_backward(const T* z, const T* z_bar, T* raw_bar) {
  for (int i = 0; i < D; ++i) {
    const auto p = [&](int j) { return T(i == j ? 1 : 0) - z[i * D + j]; };
    T mean = T(0);
    for (int j = 0; j < D; ++j) mean = mean + p(j) * z_bar[i * D + j];
    for (int j = 0; j < D; ++j) raw_bar[i * D + j] = p(j) * (mean - z_bar[i * D + j]);
  }
}

}  // namespace detail

}  // namespace sheafnn
