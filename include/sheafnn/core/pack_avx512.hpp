/// \file
/// What AVX-512 has instructions for that compilers do not find: exponentials of sixteen lanes.
/// Included by core/pack.hpp; empty on other targets.
#pragma once

#include <cstdint>

#include "sheafnn/core/config.hpp"

#if SHEAFNN_VECTOR_TYPES && defined(__AVX512F__) && defined(__AVX512DQ__)
#define SHEAFNN_AVX512 1
#include <immintrin.h>
#else
#define SHEAFNN_AVX512 0
#endif

#if SHEAFNN_AVX512
namespace sheafnn::detail {

// The unmasked forms of many intrinsics make gcc 12 warn of the undefined vector that they start from; with a full
// mask they compile to the same instructions.
inline constexpr __mmask16 all_lanes = 0xFFFF;
inline constexpr __mmask8 all_halves = 0xFF;

/// eˣ = 2^q e^r, q = round(x / log 2), |r| ≤ (log 2)/2: the polynomial of Cephes, whose error is below 1.2
/// roundings; not a number stays one, and ±∞ give ∞ and 0.
SHEAFNN_INLINE __m512 exp16(__m512 x) {
  // Of two operands one of which is no number, these take the second.
  x = _mm512_maskz_min_ps(all_lanes, _mm512_set1_ps(89.0F), x);
  x = _mm512_maskz_max_ps(all_lanes, _mm512_set1_ps(-104.5F), x);
  const __m512 q = _mm512_maskz_roundscale_ps(all_lanes, _mm512_mul_ps(x, _mm512_set1_ps(1.44269504088896341F)),
                                              _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  __m512 r = _mm512_fnmadd_ps(q, _mm512_set1_ps(0.693359375F), x);
  r = _mm512_fnmadd_ps(q, _mm512_set1_ps(-2.12194440e-4F), r);
  const __m512 square = _mm512_mul_ps(r, r);
  __m512 high = _mm512_fmadd_ps(_mm512_set1_ps(1.9875691500e-4F), r, _mm512_set1_ps(1.3981999507e-3F));
  high = _mm512_fmadd_ps(high, r, _mm512_set1_ps(8.3334519073e-3F));
  __m512 low = _mm512_fmadd_ps(_mm512_set1_ps(4.1665795894e-2F), r, _mm512_set1_ps(1.6666665459e-1F));
  low = _mm512_fmadd_ps(low, r, _mm512_set1_ps(5.0000001201e-1F));
  const __m512 cube = _mm512_mul_ps(square, r);
  const __m512 line = _mm512_add_ps(r, _mm512_set1_ps(1.0F));
  return _mm512_maskz_scalef_ps(all_lanes, _mm512_fmadd_ps(_mm512_fmadd_ps(high, cube, low), square, line), q);
}

/// e^min(x, 0), whose absolute error is below an epsilon, which is all that counts beside 1: 2^q 2^f, q = round(x /
/// log 2), |f| ≤ ½, and a polynomial of 2^f (at Chebyshev's nodes) that is 1 at 0. Not a number stays one.
SHEAFNN_INLINE __m512 exp_of_negative16(__m512 x) {
  const __m512 binary = _mm512_set1_ps(1.44269504088896341F);
  x = _mm512_maskz_min_ps(all_lanes, _mm512_setzero_ps(), x);  // the second of two, where one is no number
  x = _mm512_maskz_max_ps(all_lanes, _mm512_set1_ps(-104.5F), x);
  const __m512 q = _mm512_maskz_roundscale_ps(all_lanes, _mm512_mul_ps(x, binary),
                                              _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  const __m512 f = _mm512_fmsub_ps(x, binary, q);
  __m512 p = _mm512_fmadd_ps(_mm512_set1_ps(1.545316336e-4F), f, _mm512_set1_ps(1.339086331e-3F));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(9.618083015e-3F));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(5.550356954e-2F));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(2.402265072e-1F));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(6.931471825e-1F));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(1.0F));
  return _mm512_maskz_scalef_ps(all_lanes, p, q);
}

}  // namespace sheafnn::detail
#endif
