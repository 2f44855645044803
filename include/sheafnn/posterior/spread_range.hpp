/// \file
/// SpreadRange: where the spread of a posterior's maps begins and how far it reaches. The learner's raw output s is near 0
/// before a training:
///
///     published      κ from 0.0126 to 0.9513, 1/3 at s = 0;   σ = 1 at s = 0
///     concentrated   s − 3 in place of s, and κ from 0.0005 to 0.9990, 0.908 at s = 0;   σ = e⁻³ at s = 0
///
/// Rotations with κ = 1/3 are nearly uniform. The noise of the draws hides the gradient of a loss with respect to their
/// mean, and the posterior falls back to its prior. Source: math: "Posteriors", "A posterior that is learned".
#pragma once

#include <array>
#include <cstdint>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/names.hpp"
#include "sheafnn/nn/activation.hpp"

namespace sheafnn {

/// See the file comment.
enum class SpreadRange : std::uint8_t { concentrated, published };
/// Its names, in the order of the enumeration.
[[nodiscard]] constexpr auto names_of(SpreadRange) { return std::array{"concentrated", "published"}; }

namespace detail {

/// What takes the place of a raw output s. T = float, double or Pack.
template <class T>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE T spread_output(SpreadRange range, const T& raw) {
  return range == SpreadRange::published ? raw : raw - T(3);
}

/// κ = (1 − γ')/(1 + γ') of a raw output s: γ' = (1 − 2ε) sigmoid(s) + ε, with the ε of the range.
template <class T>
struct Concentration {
  T kappa;
  T slope;  ///< ∂κ/∂s
};
template <class T>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE Concentration<T> concentration(SpreadRange range, const T& raw) {
  const bool published = range == SpreadRange::published;
  const T least = T(published ? 0.025 : 0.0005), width = T(published ? 0.95 : 0.999);
  const T s = sigmoid(spread_output(range, raw));
  const T gamma = width * s + least;
  return {(T(1) - gamma) / (T(1) + gamma), T(-2) / ((T(1) + gamma) * (T(1) + gamma)) * width * s * (T(1) - s)};
}

}  // namespace detail

}  // namespace sheafnn
