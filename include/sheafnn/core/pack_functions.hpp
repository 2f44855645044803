/// \file
/// Exponentials and error functions of registers of floats, for processors with AVX2 or AVX-512: shorter than Eigen's,
/// which serve every target. Included by core/pack.hpp; empty on other targets.
///
/// Written once, over registers of 32 or 64 bytes.
#pragma once

#include <cstdint>

#include "sheafnn/core/config.hpp"

#if SHEAFNN_VECTOR_TYPES && defined(__AVX2__) && defined(__FMA__)
#define SHEAFNN_AVX2 1
#include <immintrin.h>
#else
#define SHEAFNN_AVX2 0
#endif
#if SHEAFNN_AVX2 && defined(__AVX512F__) && defined(__AVX512DQ__)
#define SHEAFNN_AVX512 1
#else
#define SHEAFNN_AVX512 0
#endif

namespace sheafnn::detail {

/// Is there a register of `bytes` bytes that the functions below are for?
template <int Bytes>
inline constexpr bool has_float_functions = (Bytes == 32 && SHEAFNN_AVX2 != 0) ||
                                            (Bytes == 64 && SHEAFNN_AVX512 != 0);

#if SHEAFNN_AVX512
// The unmasked forms of many intrinsics make gcc 12 warn of the undefined vector that they start from; with a full
// mask they compile to the same instructions.
inline constexpr __mmask16 all_lanes = 0xFFFF;
inline constexpr __mmask8 all_halves = 0xFF;
#endif

#if SHEAFNN_AVX2
/// What the instruction sets have under different names, over a register V of this size.
template <int Bytes>
struct FloatRegister;

template <>
struct FloatRegister<32> {
  using V = __m256;
  static SHEAFNN_INLINE V constant(float x) { return _mm256_set1_ps(x); }
  static SHEAFNN_INLINE V times_plus(V a, V b, V c) { return _mm256_fmadd_ps(a, b, c); }
  static SHEAFNN_INLINE V times_minus(V a, V b, V c) { return _mm256_fmsub_ps(a, b, c); }
  static SHEAFNN_INLINE V minus_times(V a, V b, V c) { return _mm256_fnmadd_ps(a, b, c); }  ///< c − a b
  /// b where one of the two is not a number.
  static SHEAFNN_INLINE V smaller(V a, V b) { return _mm256_min_ps(a, b); }
  static SHEAFNN_INLINE V larger(V a, V b) { return _mm256_max_ps(a, b); }
  static SHEAFNN_INLINE V rounded(V x) {
    return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
  /// x 2^q for whole q from −252 to 254, in two steps, as 2^q alone may be too large or too small.
  static SHEAFNN_INLINE V times_power(V x, V q) {
    const __m256i whole = _mm256_cvtps_epi32(q), half = _mm256_srai_epi32(whole, 1), bias = _mm256_set1_epi32(127);
    const __m256i first = _mm256_slli_epi32(_mm256_add_epi32(half, bias), 23);
    const __m256i second = _mm256_slli_epi32(_mm256_add_epi32(_mm256_sub_epi32(whole, half), bias), 23);
    return _mm256_mul_ps(_mm256_mul_ps(x, _mm256_castsi256_ps(first)), _mm256_castsi256_ps(second));
  }
  static SHEAFNN_INLINE V magnitude(V x) { return _mm256_andnot_ps(constant(-0.0F), x); }
  static SHEAFNN_INLINE V with_sign_of(V size, V x) {
    return _mm256_or_ps(size, _mm256_and_ps(constant(-0.0F), x));
  }
  /// 1 where y ≥ limit, elsewhere x.
  static SHEAFNN_INLINE V one_from(V y, V limit, V x) {
    return _mm256_blendv_ps(x, constant(1.0F), _mm256_cmp_ps(y, limit, _CMP_GE_OQ));
  }
  /// Whole numbers 0 … 15, and the entries of a table with these numbers.
  using Places = __m256i;
  static SHEAFNN_INLINE Places places(V x) { return _mm256_cvttps_epi32(x); }
  static SHEAFNN_INLINE V number(Places k) { return _mm256_cvtepi32_ps(k); }
  static SHEAFNN_INLINE V entries(const float* table, Places k) {
    const V low = _mm256_permutevar8x32_ps(_mm256_load_ps(table), k);
    const V high = _mm256_permutevar8x32_ps(_mm256_load_ps(table + 8), k);
    return _mm256_blendv_ps(low, high, _mm256_castsi256_ps(_mm256_slli_epi32(k, 28)));  // bit 3 chooses
  }
};

#if SHEAFNN_AVX512
template <>
struct FloatRegister<64> {
  using V = __m512;
  static SHEAFNN_INLINE V constant(float x) { return _mm512_set1_ps(x); }
  static SHEAFNN_INLINE V times_plus(V a, V b, V c) { return _mm512_fmadd_ps(a, b, c); }
  static SHEAFNN_INLINE V times_minus(V a, V b, V c) { return _mm512_fmsub_ps(a, b, c); }
  static SHEAFNN_INLINE V minus_times(V a, V b, V c) { return _mm512_fnmadd_ps(a, b, c); }
  static SHEAFNN_INLINE V smaller(V a, V b) { return _mm512_maskz_min_ps(all_lanes, a, b); }
  static SHEAFNN_INLINE V larger(V a, V b) { return _mm512_maskz_max_ps(all_lanes, a, b); }
  static SHEAFNN_INLINE V rounded(V x) {
    return _mm512_maskz_roundscale_ps(all_lanes, x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
  static SHEAFNN_INLINE V times_power(V x, V q) { return _mm512_maskz_scalef_ps(all_lanes, x, q); }
  static SHEAFNN_INLINE V magnitude(V x) { return _mm512_andnot_ps(constant(-0.0F), x); }
  static SHEAFNN_INLINE V with_sign_of(V size, V x) {
    return _mm512_or_ps(size, _mm512_and_ps(constant(-0.0F), x));
  }
  static SHEAFNN_INLINE V one_from(V y, V limit, V x) {
    return _mm512_mask_mov_ps(x, _mm512_cmp_ps_mask(y, limit, _CMP_GE_OQ), constant(1.0F));
  }
  using Places = __m512i;
  static SHEAFNN_INLINE Places places(V x) { return _mm512_maskz_cvttps_epi32(all_lanes, x); }
  static SHEAFNN_INLINE V number(Places k) { return _mm512_maskz_cvtepi32_ps(all_lanes, k); }
  static SHEAFNN_INLINE V entries(const float* table, Places k) {
    return _mm512_maskz_permutexvar_ps(all_lanes, k, _mm512_load_ps(table));
  }
};
#endif

/// eˣ = 2^q e^r, q = round(x / log 2), |r| ≤ (log 2)/2: the polynomial of Cephes, whose error is below 1.2 roundings. NaN
/// stays NaN, and ±∞ give ∞ and 0.
template <int Bytes>
[[nodiscard]] SHEAFNN_INLINE typename FloatRegister<Bytes>::V exp_of(typename FloatRegister<Bytes>::V x) {
  using R = FloatRegister<Bytes>;
  using V = typename R::V;
  x = R::smaller(R::constant(89.0F), x);
  x = R::larger(R::constant(-104.5F), x);
  const V q = R::rounded(x * R::constant(1.44269504088896341F));
  V r = R::minus_times(q, R::constant(0.693359375F), x);
  r = R::minus_times(q, R::constant(-2.12194440e-4F), r);
  const V square = r * r;
  V high = R::times_plus(R::constant(1.9875691500e-4F), r, R::constant(1.3981999507e-3F));
  high = R::times_plus(high, r, R::constant(8.3334519073e-3F));
  V low = R::times_plus(R::constant(4.1665795894e-2F), r, R::constant(1.6666665459e-1F));
  low = R::times_plus(low, r, R::constant(5.0000001201e-1F));
  const V cube = square * r;
  const V line = r + R::constant(1.0F);
  return R::times_power(R::times_plus(R::times_plus(high, cube, low), square, line), q);
}

/// e^min(x, 0), whose absolute error is below an epsilon, which is all that counts next to 1. It is 2^q 2^f, q = round(x /
/// log 2), |f| ≤ ½, with a polynomial for 2^f (at Chebyshev's nodes) that is 1 at 0. Not a number stays one.
template <int Bytes>
[[nodiscard]] SHEAFNN_INLINE typename FloatRegister<Bytes>::V exp_of_negative_of(
    typename FloatRegister<Bytes>::V x) {
  using R = FloatRegister<Bytes>;
  using V = typename R::V;
  const V binary = R::constant(1.44269504088896341F);
  x = R::smaller(R::constant(0.0F), x);
  x = R::larger(R::constant(-104.5F), x);
  const V q = R::rounded(x * binary);
  const V f = R::times_minus(x, binary, q);
  V p = R::times_plus(R::constant(1.545316336e-4F), f, R::constant(1.339086331e-3F));
  p = R::times_plus(p, f, R::constant(9.618083015e-3F));
  p = R::times_plus(p, f, R::constant(5.550356954e-2F));
  p = R::times_plus(p, f, R::constant(2.402265072e-1F));
  p = R::times_plus(p, f, R::constant(6.931471825e-1F));
  p = R::times_plus(p, f, R::constant(1.0F));
  return R::times_power(p, q);
}

/// Coefficients of erf(k/4 + t) = Σ_j c_j t^j for 0 ≤ t < ¼, by j and k: exact at t = 0 and at Chebyshev's nodes.
alignas(64) inline constexpr float erf_coefficients[6][16] = {
    {0.000000000e+00F, 2.763263881e-01F, 5.204998851e-01F, 7.111556530e-01F, 8.427007794e-01F, 9.229001403e-01F,
     9.661051631e-01F, 9.866716862e-01F, 9.953222871e-01F, 9.985373020e-01F, 9.995930195e-01F, 9.998993874e-01F,
     9.999778867e-01F, 9.999957085e-01F, 9.999992847e-01F, 9.999998808e-01F},
    {1.128379107e+00F, 1.060014009e+00F, 8.787825108e-01F, 6.429310441e-01F, 4.151075184e-01F, 2.365211695e-01F,
     1.189303175e-01F, 5.277500674e-02F, 2.066698298e-02F, 7.142313290e-03F, 2.178279683e-03F, 5.862747785e-04F,
     1.392520498e-04F, 2.918868995e-05F, 5.399333531e-06F, 8.814103012e-07F},
    {6.188743100e-06F, -2.649852335e-01F, -4.393743575e-01F, -4.821925163e-01F, -4.151123464e-01F,
     -2.956598699e-01F, -1.784015149e-01F, -9.235832095e-02F, -4.133349657e-02F, -1.606903598e-02F,
     -5.444788840e-03F, -1.611772692e-03F, -4.175576614e-04F, -9.479700384e-05F, -1.887927101e-05F,
     -3.300976459e-06F},
    {-3.763162196e-01F, -3.097530603e-01F, -1.470091343e-01F, 2.659730799e-02F, 1.385201961e-01F, 1.678068191e-01F,
     1.389483511e-01F, 9.022559226e-02F, 4.820852354e-02F, 2.168675326e-02F, 8.320391178e-03F, 2.744532190e-03F,
     7.825531065e-04F, 1.936148474e-04F, 4.168342639e-05F, 7.825563443e-06F},
    {1.922278432e-03F, 1.334221363e-01F, 1.892722994e-01F, 1.529815793e-01F, 6.758864969e-02F, -9.190331213e-03F,
     -4.684349522e-02F, -4.891066626e-02F, -3.430293873e-02F, -1.866140589e-02F, -8.284654468e-03F,
     -3.075901885e-03F, -9.685544064e-04F, -2.609688381e-04F, -6.053346806e-05F, -1.214034455e-05F},
    {1.061502248e-01F, 5.149765685e-02F, -2.178867906e-02F, -6.526090950e-02F, -6.290197372e-02F,
     -3.340598568e-02F, -4.150413442e-03F, 1.077023707e-02F, 1.265113149e-02F, 8.748081513e-03F, 4.522380885e-03F,
     1.874933485e-03F, 6.433795206e-04F, 1.859272161e-04F, 4.573867773e-05F, 9.647756997e-06F}};

/// erf(x), whose absolute error is below two epsilons: the polynomial of its interval, looked up in registers. Not a
/// number stays one.
template <int Bytes>
[[nodiscard]] SHEAFNN_INLINE typename FloatRegister<Bytes>::V erf_of(typename FloatRegister<Bytes>::V x) {
  using R = FloatRegister<Bytes>;
  using V = typename R::V;
  const V quarter = R::constant(0.25F), end = R::constant(4.0F);
  const V y = R::magnitude(x);
  const V near = R::smaller(R::constant(3.9999998F), y);
  const auto k = R::places(near * end);
  const V t = R::minus_times(R::number(k), quarter, near);
  V r = R::entries(erf_coefficients[5], k);
  SHEAFNN_UNROLL for (int j = 4; j >= 0; --j) r = R::times_plus(r, t, R::entries(erf_coefficients[j], k));
  return R::with_sign_of(R::one_from(y, end, r), x);
}
#endif

}  // namespace sheafnn::detail
