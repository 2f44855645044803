/// \file
/// A normalisation at one value of a row or a matrix, T a tile or a scalar:
///
///     y = w x̂ + b,   x̂ = (x − mean) · inverse,   x̄ = inverse · (g − mean(g) − x̂ mean(g x̂)) for g = w ȳ.
///
/// With inverse = 1/(s + ε), s² the variance, mean(g x̂) is to be multiplied by stretch_of(s, ε).
///
/// Source: Layer Normalization (Ba, Kiros, Hinton). Takes any numbers.
#pragma once

#include "sheafnn/core/config.hpp"

namespace sheafnn::kernels {

/// What a row, or a matrix, is normalised by: mean(x) and 1/√(var(x) + ε).
template <class T>
struct Moments {
  T mean, inverse;

  /// x̂.
  [[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE T hat(const T& x) const { return (x - mean) * inverse; }
  /// y.
  [[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE T forward(const T& scale, const T& shift, const T& x) const {
    return scale * hat(x) + shift;
  }
  /// x̄. \param g_mean, product_mean  mean(g), mean(g x̂)
  [[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE T backward(const T& g, const T& x, const T& g_mean,
                                                     const T& product_mean) const {
    return inverse * (g - g_mean - hat(x) * product_mean);
  }
};

/// (s + ε)/s; 0 for a constant matrix, whose s has no derivative. Takes s ≥ 0 and ε > 0.
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE double stretch_of(double deviation, double epsilon) {
  return deviation > 0 ? (deviation + epsilon) / deviation : 0.0;
}

}  // namespace sheafnn::kernels
