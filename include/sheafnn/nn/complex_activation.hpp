/// \file
/// ComplexActivation: activations of complex numbers z = a + i b, and what their backward passes need, over T =
/// float, double or Pack. Source: math: "Directed sheaves" (3.55).
///
/// NaN stays NaN, except that complex_relu is 0 for a < 0, whatever b is.
#pragma once

#include <array>
#include <cstdint>

#include "sheafnn/core/config.hpp"
#include "sheafnn/nn/activation.hpp"

namespace sheafnn::layers {

/// Activations of complex numbers.
enum class ComplexActivation : std::uint8_t {
  complex_relu,  ///< z for a ≥ 0, otherwise 0
  elu            ///< ELU(a) + i ELU(b)
};
/// Its names, in the order of the enumeration.
[[nodiscard]] constexpr auto names_of(ComplexActivation) { return std::array{"complex-relu", "elu"}; }

/// Replaces z = {a, b} by its activation. Takes any numbers.
template <class T>
SHEAFNN_HD SHEAFNN_INLINE void activate(ComplexActivation activation, T (&z)[2]) {
  if (activation == ComplexActivation::elu) {
    z[0] = elu(z[0]);
    z[1] = elu(z[1]);
    return;
  }
  z[1] = select(z[0] < T(0), T(0), z[1]);
  z[0] = select(z[0] < T(0), T(0), z[0]);
}
/// Replaces the derivative of the activation by the derivative of z. Takes any numbers.
template <class T>
SHEAFNN_HD SHEAFNN_INLINE void activate_backward(ComplexActivation activation, const T (&z)[2], T (&bar)[2]) {
  if (activation == ComplexActivation::elu) {
    bar[0] *= elu_derivative(z[0]);
    bar[1] *= elu_derivative(z[1]);
    return;
  }
  bar[0] = select(z[0] < T(0), T(0), bar[0]);
  bar[1] = select(z[0] < T(0), T(0), bar[1]);
}

}  // namespace sheafnn::layers

namespace sheafnn {

using layers::ComplexActivation;

}  // namespace sheafnn
