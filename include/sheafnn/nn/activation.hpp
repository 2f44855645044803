/// \file
/// Elementwise functions of the models, over T = float, double or Pack: ELU, sigmoid, GELU, and Activation, a choice of
/// functions. ELU and sigmoid have derivatives in terms of the function's value, so that backward passes need not keep the
/// argument.
///
/// Values of NaN are NaN. Each takes any number; GELU and its derivative at ±∞, 0 · ∞, are not numbers.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/names.hpp"
#include "sheafnn/core/pack.hpp"
#include "sheafnn/nn/error_function.hpp"

namespace sheafnn::layers {

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

/// Φ(x), the distribution function of N(0, 1).
template <class T>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE T normal_cdf(const T& x) {
  return T(0.5) + T(0.5) * error_function(x * T(0.70710678118654752440));
}

/// GELU(x) = x Φ(x), Φ the distribution function of N(0, 1).
template <class T>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE T gelu(const T& x) {
  return x * normal_cdf(x);
}

/// GELU′(x) = Φ(x) + x φ(x).
template <class T>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE T gelu_derivative(const T& x) {
  const detail::ErrorFunction<T> erf = detail::error_function_of(x * T(0.70710678118654752440));  // with e^{−x²/2}
  return T(0.5) + T(0.5) * erf.value + x * T(0.39894228040143267794) * erf.exponential;
}

/// An elementwise function that an architecture chooses.
enum class Activation : std::uint8_t { gelu, elu, relu, tanh, sigmoid, identity };
/// Its names, in the order of the enumeration.
[[nodiscard]] constexpr auto names_of(Activation) {
  return std::array{"gelu", "elu", "relu", "tanh", "sigmoid", "identity"};
}

/// A(x).
template <Activation A, class T>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE T activate(const T& x) {
  using std::tanh;
  if constexpr (A == Activation::gelu) {
    return gelu(x);
  } else if constexpr (A == Activation::elu) {
    return elu(x);
  } else if constexpr (A == Activation::relu) {
    return select(x < T(0), T(0), x);
  } else if constexpr (A == Activation::tanh) {
    return tanh(x);
  } else if constexpr (A == Activation::sigmoid) {
    return sigmoid(x);
  } else {
    return x;
  }
}

/// A′(x); for ReLU at 0 it is 0.
template <Activation A, class T>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE T activation_derivative(const T& x) {
  using std::tanh;
  if constexpr (A == Activation::gelu) {
    return gelu_derivative(x);
  } else if constexpr (A == Activation::elu) {
    return elu_derivative(x);
  } else if constexpr (A == Activation::relu) {
    return select(x > T(0), T(1), T(0));
  } else if constexpr (A == Activation::tanh) {
    const T y = tanh(x);
    return T(1) - y * y;
  } else if constexpr (A == Activation::sigmoid) {
    const T y = sigmoid(x);
    return y * (T(1) - y);
  } else {
    return T(1);
  }
}

/// A(x), and A′(x) in `slope`.
template <Activation A, class T>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE T activate_with_slope(const T& x, T& slope) {
  if constexpr (A == Activation::gelu) {
    const detail::ErrorFunction<T> erf =
        detail::error_function_of(x * T(0.70710678118654752440));  // with e^{−x²/2}
    const T cdf = T(0.5) + T(0.5) * erf.value;
    slope = cdf + x * T(0.39894228040143267794) * erf.exponential;
    return x * cdf;
  } else {
    slope = activation_derivative<A>(x);
    return activate<A>(x);
  }
}

/// The same for a choice made at run time, on the host or on a device.
template <class T>
[[nodiscard]] SHEAFNN_HD inline T activate_with_slope(Activation activation, const T& x, T& slope) {
  switch (activation) {
    case Activation::gelu:
      return activate_with_slope<Activation::gelu>(x, slope);
    case Activation::elu:
      return activate_with_slope<Activation::elu>(x, slope);
    case Activation::relu:
      return activate_with_slope<Activation::relu>(x, slope);
    case Activation::tanh:
      return activate_with_slope<Activation::tanh>(x, slope);
    case Activation::sigmoid:
      return activate_with_slope<Activation::sigmoid>(x, slope);
    default:
      return activate_with_slope<Activation::identity>(x, slope);
  }
}

/// Calls body.template operator()<A>() for a choice made at run time.
template <class Body>
void with_activation(Activation activation, const Body& body) {
  switch (activation) {
    case Activation::gelu:
      return body.template operator()<Activation::gelu>();
    case Activation::elu:
      return body.template operator()<Activation::elu>();
    case Activation::relu:
      return body.template operator()<Activation::relu>();
    case Activation::tanh:
      return body.template operator()<Activation::tanh>();
    case Activation::sigmoid:
      return body.template operator()<Activation::sigmoid>();
    case Activation::identity:
      return body.template operator()<Activation::identity>();
  }
}

}  // namespace sheafnn::layers

namespace sheafnn {

using layers::Activation;

}  // namespace sheafnn
