/// \file
/// The error function erf(x) = 2/√π ∫₀ˣ e^{−t²} dt over T = float, double or Pack, without branches.
///
/// Rational approximations: erf(x) = x P(x²)/Q(x²) for |x| ≤ 0.46875 and |erf(x)| = 1 − e^{−x²} P(|x|)/Q(|x|) beyond.
/// The second one is made for |x| ≤ 4; further out what it is wrong by is far below the rounding of 1 − 10⁻⁸.
/// Absolute errors are below 2ε. Where AVX2 can look coefficients up in registers, floats have a polynomial
/// for each of sixteen intervals instead (core/pack_functions.hpp). Source: W. J. Cody, "Rational Chebyshev approximations
/// for the error function", Mathematics of Computation 23 (1969). Takes any number; NaN gives NaN.
#pragma once

#include <cmath>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/pack.hpp"

namespace sheafnn::detail {

/// erf(x) and e^{−x²}.
template <class T>
struct ErrorFunction {
  T value, exponential;
};

template <class T>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE ErrorFunction<T> error_function_of(const T& x) {
  const T y = select(x < T(0), -x, x), squared = x * x;
  const T e = exp_of_negative(-squared);
  const auto small = y < T(0.46875);
  const T near_top =
      (((T(0.185777706184603153) * squared + T(3.1611237438705656)) * squared + T(113.864154151050156)) * squared +
       T(377.485237685302021)) *
          squared +
      T(3209.37758913846947);
  const T near_bottom = (((squared + T(23.6012909523441209)) * squared + T(244.024637934444173)) * squared +
                         T(1282.61652607737228)) *
                            squared +
                        T(2844.23683343917062);
  const T far_top =
      (((((((T(2.15311535474403846e-8) * y + T(0.564188496988670089)) * y + T(8.88314979438837594)) * y +
           T(66.1191906371416295)) *
              y +
          T(298.635138197400131)) *
             y +
         T(881.95222124176909)) *
            y +
        T(1712.04761263407058)) *
           y +
       T(2051.07837782607147)) *
          y +
      T(1230.33935479799725);
  const T far_bottom =
      (((((((y + T(15.7449261107098347)) * y + T(117.693950891312499)) * y + T(537.181101862009858)) * y +
          T(1621.38957456669019)) *
             y +
         T(3290.79923573345963)) *
            y +
        T(4362.61909014324716)) *
           y +
       T(3439.36767414372164)) *
          y +
      T(1230.33935480374942);
  const T ratio = select(small, y * near_top, e * far_top) / select(small, near_bottom, far_bottom);
  const T size = select(small, ratio, T(1) - ratio);
  // Beyond 6 the answer is ±1, and the polynomials of very large numbers are not finite.
  const T limited = select(y > T(6), T(1), size);
  return {select(x < T(0), -limited, limited), e};
}

#if SHEAFNN_AVX2
template <int W>
  requires pack_has_functions<W>
[[nodiscard]] SHEAFNN_INLINE ErrorFunction<Pack<float, W>> error_function_of(const Pack<float, W>& x) {
  ErrorFunction<Pack<float, W>> r;
  SHEAFNN_EACH(i, (Pack<float, W>::chunks), { r.value.chunk[i] = erf_of<float_chunk_bytes<W>>(x.chunk[i]); })
  r.exponential = exp_of_negative(-(x * x));
  return r;
}
#endif

}  // namespace sheafnn::detail

namespace sheafnn::layers {

/// erf(x).
template <class T>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE T error_function(const T& x) {
  return detail::error_function_of(x).value;
}

}  // namespace sheafnn::layers
