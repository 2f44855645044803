/// \file
/// What AVX-512 has instructions for that compilers do not find: exponentials and error functions of sixteen lanes.
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

/// Coefficients of erf(k/4 + t) = Σ_j c_j t^j for 0 ≤ t < ¼, by j and k: exact at t = 0 and at Chebyshev's nodes.
alignas(64) inline constexpr float erf_coefficients[6][16] = {
    {0.000000000e+00F, 2.763263881e-01F, 5.204998851e-01F, 7.111556530e-01F, 8.427007794e-01F, 9.229001403e-01F,
     9.661051631e-01F, 9.866716862e-01F, 9.953222871e-01F, 9.985373020e-01F, 9.995930195e-01F, 9.998993874e-01F,
     9.999778867e-01F, 9.999957085e-01F, 9.999992847e-01F, 9.999998808e-01F},
    {1.128379107e+00F, 1.060014009e+00F, 8.787825108e-01F, 6.429310441e-01F, 4.151075184e-01F, 2.365211695e-01F,
     1.189303175e-01F, 5.277500674e-02F, 2.066698298e-02F, 7.142313290e-03F, 2.178279683e-03F, 5.862747785e-04F,
     1.392520498e-04F, 2.918868995e-05F, 5.399333531e-06F, 8.814103012e-07F},
    {6.188743100e-06F, -2.649852335e-01F, -4.393743575e-01F, -4.821925163e-01F, -4.151123464e-01F, -2.956598699e-01F,
     -1.784015149e-01F, -9.235832095e-02F, -4.133349657e-02F, -1.606903598e-02F, -5.444788840e-03F, -1.611772692e-03F,
     -4.175576614e-04F, -9.479700384e-05F, -1.887927101e-05F, -3.300976459e-06F},
    {-3.763162196e-01F, -3.097530603e-01F, -1.470091343e-01F, 2.659730799e-02F, 1.385201961e-01F, 1.678068191e-01F,
     1.389483511e-01F, 9.022559226e-02F, 4.820852354e-02F, 2.168675326e-02F, 8.320391178e-03F, 2.744532190e-03F,
     7.825531065e-04F, 1.936148474e-04F, 4.168342639e-05F, 7.825563443e-06F},
    {1.922278432e-03F, 1.334221363e-01F, 1.892722994e-01F, 1.529815793e-01F, 6.758864969e-02F, -9.190331213e-03F,
     -4.684349522e-02F, -4.891066626e-02F, -3.430293873e-02F, -1.866140589e-02F, -8.284654468e-03F, -3.075901885e-03F,
     -9.685544064e-04F, -2.609688381e-04F, -6.053346806e-05F, -1.214034455e-05F},
    {1.061502248e-01F, 5.149765685e-02F, -2.178867906e-02F, -6.526090950e-02F, -6.290197372e-02F, -3.340598568e-02F,
     -4.150413442e-03F, 1.077023707e-02F, 1.265113149e-02F, 8.748081513e-03F, 4.522380885e-03F, 1.874933485e-03F,
     6.433795206e-04F, 1.859272161e-04F, 4.573867773e-05F, 9.647756997e-06F}};

/// erf(x), whose absolute error is below two epsilons: the polynomial of its interval, out of a register. Not a number
/// stays one.
SHEAFNN_INLINE __m512 erf16(__m512 x) {
  const __m512 signs = _mm512_set1_ps(-0.0F), quarter = _mm512_set1_ps(0.25F), end = _mm512_set1_ps(4.0F);
  const __m512 y = _mm512_andnot_ps(signs, x);
  const __m512 near = _mm512_maskz_min_ps(all_lanes, _mm512_set1_ps(3.9999998F), y);
  const __m512i k = _mm512_maskz_cvttps_epi32(all_lanes, _mm512_mul_ps(near, end));
  const __m512 t = _mm512_fnmadd_ps(_mm512_maskz_cvtepi32_ps(all_lanes, k), quarter, near);
  __m512 r = _mm512_maskz_permutexvar_ps(all_lanes, k, _mm512_load_ps(erf_coefficients[5]));
  SHEAFNN_UNROLL for (int j = 4; j >= 0; --j) {
    r = _mm512_fmadd_ps(r, t, _mm512_maskz_permutexvar_ps(all_lanes, k, _mm512_load_ps(erf_coefficients[j])));
  }
  r = _mm512_mask_mov_ps(r, _mm512_cmp_ps_mask(y, end, _CMP_GE_OQ), _mm512_set1_ps(1.0F));
  return _mm512_or_ps(r, _mm512_and_ps(signs, x));
}

}  // namespace sheafnn::detail
#endif
