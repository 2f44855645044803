/// \file
/// The error function erf(x) = 2/√π ∫₀ˣ e^{−t²} dt over T = float, double or Pack.
#pragma once

#include <cmath>
#include <type_traits>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/pack.hpp"

namespace sheafnn {

/// erf(x).
template <class T>
  requires std::is_floating_point_v<T>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE T error_function(T x) { return std::erf(x); }
/// Lane by lane.
template <class T, int W>
[[nodiscard]] SHEAFNN_INLINE Pack<T, W> error_function(const Pack<T, W>& x) {
  T values[W];
  x.store(values);
  for (int i = 0; i < W; ++i) values[i] = std::erf(values[i]);
  return Pack<T, W>::load(values);
}

}  // namespace sheafnn
