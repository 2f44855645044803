/// \file
/// Logarithm of a number in (0, 1), T = float, double or Pack: what Box–Muller needs, without the special cases
/// that general arguments cost. Unchecked: that it is one, and no subnormal number.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/pack.hpp"

namespace sheafnn::random {

/// log u of u in (0, 1], of a scalar.
template <class T>
  requires std::is_floating_point_v<T>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE T unit_log(T u) {
  using std::log;
  return log(u);
}

/// log u for 0 < u ≤ 1 (no subnormal number), with a relative error of at most one epsilon.
///
/// u = 2ᵉ(1 + f) with √½ ≤ 1 + f < √2. With s = f/(2 + f), log(1 + f) = 2 artanh s = f − (f²/2 − s(f²/2 + R(s²))),
/// R the polynomials of fdlibm (Sun Microsystems, e_log.c and e_logf.c): next to 1, where e = 0, nothing is lost.
template <class S, int W>
[[nodiscard]] SHEAFNN_INLINE Pack<S, W> unit_log(const Pack<S, W>& u) {
#if SHEAFNN_VECTOR_TYPES
  constexpr bool single = sizeof(S) == 4;
  using Bits = std::conditional_t<single, std::int32_t, std::int64_t>;
  using Chunk = typename Pack<S, W>::Chunk;
  typedef Bits BitsChunk __attribute__((vector_size(sizeof(Chunk))));
  constexpr int mantissa = single ? 23 : 52;
  constexpr Bits root_half = single ? Bits{0x3f3504f3} : static_cast<Bits>(0x3fe6a09e667f3bcd);
  constexpr S whole = single ? S(12582912.0) : S(6755399441055744.0);  // 1.5 · 2²³, 1.5 · 2⁵²: its last bit is 1
  constexpr Bits whole_bits = single ? Bits{0x4b400000} : static_cast<Bits>(0x4338000000000000);
  Pack<S, W> e, f;
  SHEAFNN_EACH(i, (Pack<S, W>::chunks), {
    const BitsChunk bits = (BitsChunk)u.chunk[i];
    const BitsChunk exponent = (bits - root_half) >> mantissa;
    e.chunk[i] = (Chunk)(exponent + whole_bits) - whole;
    f.chunk[i] = (Chunk)(bits - (exponent << mantissa)) - S(1);
  })
  const Pack<S, W> s = f / (f + S(2));
  const Pack<S, W> z = s * s;
  const Pack<S, W> half_square = S(0.5) * f * f;
  Pack<S, W> r;
  if constexpr (single) {
    r = S(0.24279078841) * z + S(0.28498786688);
    r = r * z + S(0.40000972152);
    r = r * z + S(0.66666662693);
  } else {
    r = S(1.479819860511658591e-1) * z + S(1.531383769920937332e-1);
    r = r * z + S(1.818357216161805012e-1);
    r = r * z + S(2.222219843214978396e-1);
    r = r * z + S(2.857142874366239149e-1);
    r = r * z + S(3.999999999940941908e-1);
    r = r * z + S(6.666666666666735130e-1);
  }
  return e * S(0.69314718055994530941723212145818) + (f - (half_square - s * (r * z + half_square)));
#else
  return log(u);
#endif
}

}  // namespace sheafnn::random
