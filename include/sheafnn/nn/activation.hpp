/// \file
/// Elementwise functions of the model, over T = float, double or Pack: ELU, sigmoid, and their derivatives written
/// in terms of the function's value, so that backward passes need not keep the argument.
#pragma once

#include <cmath>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/pack.hpp"

namespace sheafnn {

/// ELU(x) = x for x > 0, eˣ − 1 otherwise.
template <class T>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE T elu(const T& x) {
  return select(x > T(0), x, exp_of_negative(x) - T(1));
}

/// ELU′(x) from y = ELU(x): 1 for y > 0, 1 + y otherwise.
template <class T>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE T elu_slope(const T& y) {
  return select(y > T(0), T(1), T(1) + y);
}

/// ELU′(x): 1 for x > 0, eˣ otherwise.
template <class T>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE T elu_derivative(const T& x) {
  return exp_of_negative(x);
}

/// 1 / (1 + e⁻ˣ), without overflow.
template <class T>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE T sigmoid(const T& x) {
  using std::abs;
  using std::exp;
  const T small = exp(-abs(x));
  return select(x < T(0), small, T(1)) / (T(1) + small);
}

}  // namespace sheafnn
