/// \file
/// Sine and cosine of a random angle, T = float, double or Pack, straight from a random word. There is no range reduction,
/// and all 32 bits of the word count, in float too. Takes any word.
#pragma once

#include <cstdint>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/pack.hpp"
#include "sheafnn/random/words.hpp"

namespace sheafnn::detail {

/// sin x and cos x for |x| ≤ π/4, with absolute errors of at most an epsilon: polynomials of Cephes (Moshier).
template <class T>
SHEAFNN_HD SHEAFNN_INLINE void sin_cos_eighth(const T& x, T& sine, T& cosine) {
  using S = scalar_of_t<T>;
  const T y = x * x;
  T s, c;
  if constexpr (sizeof(S) == 4) {
    s = T(S(-1.9515295891e-4)) * y + T(S(8.3321608736e-3));
    s = s * y - T(S(1.6666654611e-1));
    c = T(S(2.443315711809948e-5)) * y - T(S(1.388731625493765e-3));
    c = c * y + T(S(4.166664568298827e-2));
  } else {
    s = T(S(1.58962301576546568060e-10)) * y - T(S(2.50507477628578072866e-8));
    s = s * y + T(S(2.75573136213857245213e-6));
    s = s * y - T(S(1.98412698295895385996e-4));
    s = s * y + T(S(8.33333333332211858878e-3));
    s = s * y - T(S(1.66666666666666307295e-1));
    c = T(S(2.08757008419747316778e-9)) - T(S(1.13585365213876817300e-11)) * y;
    c = c * y - T(S(2.75573141792967388112e-7));
    c = c * y + T(S(2.48015872888517045348e-5));
    c = c * y - T(S(1.38888888888730564116e-3));
    c = c * y + T(S(4.16666666666665929218e-2));
  }
  sine = s * (y * x) + x;
  cosine = (c * y - T(S(0.5))) * y + T(1);
}

}  // namespace sheafnn::detail

namespace sheafnn::random {

/// sin 2πv and cos 2πv for v = word / 2³², with absolute errors of at most the scalar's epsilon.
///
/// 4v = q + r with q whole and −½ ≤ r < ½: bits 30 and 31 of word + 2²⁹ are q mod 4, the others are r. Sine and
/// cosine change places where q is odd; the sine is negative for q = 2 and 3, the cosine for q = 1 and 2.
template <class T>
SHEAFNN_HD SHEAFNN_INLINE void sin_cos_of_word(const word_of_t<T>& word, T& sine, T& cosine) {
  using Word = word_of_t<T>;
  using S = scalar_of_t<T>;
  T s, c;
  detail::sin_cos_eighth(signed_number<T>(word << 2) * T(S(1.5707963267948966192313216916398 / 4294967296.0)), s,
                         c);
  const auto odd = highest_bit<T>((word << 1) + Word(0x40000000u));
  const T a = select(odd, c, s);
  const T b = select(odd, s, c);
  sine = select(highest_bit<T>(word + Word(0x20000000u)), -a, a);
  cosine = select(highest_bit<T>(word + Word(0x60000000u)), -b, b);
}

}  // namespace sheafnn::random
