/// \file
/// A normalisation at one number of a row or a matrix, T a tile or a number:
///
///     y = w x̂ + b,   x̂ = (x − mean) · inverse,   x̄ = inverse · (g − mean(g) − x̂ mean(g x̂)) for g = w ȳ.
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

}  // namespace sheafnn::kernels
