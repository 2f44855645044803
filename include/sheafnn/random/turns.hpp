/// \file
/// Sine and cosine of an angle given in turns, T = float, double or Pack: what Box–Muller needs, without the range
/// reduction that general arguments cost.
#pragma once

#include <type_traits>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/pack.hpp"

namespace sheafnn {

/// sin 2πv and cos 2πv for v in [0, 1], with absolute errors of at most the scalar's epsilon.
///
/// 4v = q + r with q whole and |r| ≤ ½ (exactly); the Taylor polynomials of sine and cosine at πr/2 are cut where their
/// next term is below half a rounding for |πr/2| ≤ π/4: behind x⁹ and x⁸ in float, x¹⁵ and x¹⁶ in double.
template <class T>
SHEAFNN_HD SHEAFNN_INLINE void sin_cos_turns(const T& v, T& sine, T& cosine) {
  using S = scalar_of_t<T>;
  constexpr bool single = sizeof(S) == 4;
  constexpr S round = single ? S(12582912.0) : S(6755399441055744.0);  // 1.5 · 2²³, 1.5 · 2⁵²
  const T t = T(4) * v;
  const T q = (t + T(round)) - T(round);
  const T x = T(S(1.5707963267948966192313216916398)) * (t - q);
  const T y = x * x;
  T s, c;
  if constexpr (single) {
    s = T(S(1.0 / 362880)) * y - T(S(1.0 / 5040));
    c = T(S(1.0 / 40320)) * y - T(S(1.0 / 720));
  } else {
    s = T(S(1.0 / 6227020800.0)) - T(S(1.0 / 1307674368000.0)) * y;
    s = s * y - T(S(1.0 / 39916800));
    s = s * y + T(S(1.0 / 362880));
    s = s * y - T(S(1.0 / 5040));
    c = T(S(1.0 / 20922789888000.0)) * y - T(S(1.0 / 87178291200.0));
    c = c * y + T(S(1.0 / 479001600));
    c = c * y - T(S(1.0 / 3628800));
    c = c * y + T(S(1.0 / 40320));
    c = c * y - T(S(1.0 / 720));
  }
  s = s * y + T(S(1.0 / 120));
  s = s * y - T(S(1.0 / 6));
  s = s * y * x + x;
  c = c * y + T(S(1.0 / 24));
  c = c * y - T(S(0.5));
  c = c * y + T(1);
  // q = 0 … 4 quarter turns: sine and cosine change places at 1 and 3, signs as in the four quadrants.
  const auto odd = (q > T(S(0.5))) & (q < T(S(1.5)));
  const auto odd_again = (q > T(S(2.5))) & (q < T(S(3.5)));
  const T a = select(odd, c, select(odd_again, c, s));
  const T b = select(odd, s, select(odd_again, s, c));
  sine = select((q > T(S(1.5))) & (q < T(S(3.5))), -a, a);
  cosine = select((q > T(S(0.5))) & (q < T(S(2.5))), -b, b);
}

}  // namespace sheafnn
