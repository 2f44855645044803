/// \file
/// What core/lane_rows.hpp does within registers of floats, with AVX or AVX-512. Four packs become rows of four values
/// and back, and packs of two or three values per row become rows without gaps. Also sums over the lanes of four packs.
///
/// Unchecked: pointers to as many values as are read or written, and indices of rows.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/pack.hpp"

/// 1 where eight floats are one register.
#if SHEAFNN_VECTOR_TYPES && defined(__AVX__)
#include <immintrin.h>
#define SHEAFNN_OCTETS 1
#else
#define SHEAFNN_OCTETS 0
#endif

namespace sheafnn::detail {

#if SHEAFNN_AVX512 || SHEAFNN_OCTETS
#define SHEAFNN_QUADS 1
#if SHEAFNN_AVX512
using QuadRegister = __m512;
#else
using QuadRegister = __m256;
#endif
/// Floats of a register that is moved in quarters of 16 bytes: as many as a pack of the per-arc mathematics has.
inline constexpr int quad_lanes = static_cast<int>(sizeof(QuadRegister) / sizeof(float));
#else
#define SHEAFNN_QUADS 0
inline constexpr int quad_lanes = 0;
#endif

/// May these packs be moved in groups of four?
template <class S, int W>
inline constexpr bool moves_quads = std::is_same_v<S, float>&& W == quad_lanes;

#if SHEAFNN_QUADS
/// Four packs a, b, c, d become t_i, whose quarter j holds (a, b, c, d) of lane 4 j + i; its own inverse.
SHEAFNN_INLINE void transpose_quads(QuadRegister* t) {
#if SHEAFNN_AVX512
  const __m512d ab0 = _mm512_castps_pd(_mm512_maskz_unpacklo_ps(all_lanes, t[0], t[1]));
  const __m512d ab2 = _mm512_castps_pd(_mm512_maskz_unpackhi_ps(all_lanes, t[0], t[1]));
  const __m512d cd0 = _mm512_castps_pd(_mm512_maskz_unpacklo_ps(all_lanes, t[2], t[3]));
  const __m512d cd2 = _mm512_castps_pd(_mm512_maskz_unpackhi_ps(all_lanes, t[2], t[3]));
  t[0] = _mm512_castpd_ps(_mm512_maskz_unpacklo_pd(all_halves, ab0, cd0));
  t[1] = _mm512_castpd_ps(_mm512_maskz_unpackhi_pd(all_halves, ab0, cd0));
  t[2] = _mm512_castpd_ps(_mm512_maskz_unpacklo_pd(all_halves, ab2, cd2));
  t[3] = _mm512_castpd_ps(_mm512_maskz_unpackhi_pd(all_halves, ab2, cd2));
#else
  const __m256d ab0 = _mm256_castps_pd(_mm256_unpacklo_ps(t[0], t[1]));
  const __m256d ab2 = _mm256_castps_pd(_mm256_unpackhi_ps(t[0], t[1]));
  const __m256d cd0 = _mm256_castps_pd(_mm256_unpacklo_ps(t[2], t[3]));
  const __m256d cd2 = _mm256_castps_pd(_mm256_unpackhi_ps(t[2], t[3]));
  t[0] = _mm256_castpd_ps(_mm256_unpacklo_pd(ab0, cd0));
  t[1] = _mm256_castpd_ps(_mm256_unpackhi_pd(ab0, cd0));
  t[2] = _mm256_castpd_ps(_mm256_unpacklo_pd(ab2, cd2));
  t[3] = _mm256_castpd_ps(_mm256_unpackhi_pd(ab2, cd2));
#endif
}

/// Quarter j of t to the row of lane 4 j + i.
template <class Row>
SHEAFNN_INLINE void store_quarters(const QuadRegister& t, int i, const Row& row) {
#if SHEAFNN_AVX512
  _mm_storeu_ps(row(i), _mm512_castps512_ps128(t));
  _mm_storeu_ps(row(4 + i), _mm512_maskz_extractf32x4_ps(0xF, t, 1));
  _mm_storeu_ps(row(8 + i), _mm512_maskz_extractf32x4_ps(0xF, t, 2));
  _mm_storeu_ps(row(12 + i), _mm512_maskz_extractf32x4_ps(0xF, t, 3));
#else
  _mm_storeu_ps(row(i), _mm256_castps256_ps128(t));
  _mm_storeu_ps(row(4 + i), _mm256_extractf128_ps(t, 1));
#endif
}
/// Reads quarter j from the row of lane 4 j + i, the inverse of store_quarters().
template <class Row>
[[nodiscard]] SHEAFNN_INLINE QuadRegister load_quarters(int i, const Row& row) {
#if SHEAFNN_AVX512
  __m512 t = _mm512_castps128_ps512(_mm_loadu_ps(row(i)));
  t = _mm512_mask_broadcast_f32x4(t, static_cast<__mmask16>(0x00F0), _mm_loadu_ps(row(4 + i)));
  t = _mm512_mask_broadcast_f32x4(t, static_cast<__mmask16>(0x0F00), _mm_loadu_ps(row(8 + i)));
  return _mm512_mask_broadcast_f32x4(t, static_cast<__mmask16>(0xF000), _mm_loadu_ps(row(12 + i)));
#else
  return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(row(i))), _mm_loadu_ps(row(4 + i)), 1);
#endif
}

/// Up to four packs in turned order; missing packs are 0.
template <int Packs>
SHEAFNN_INLINE void take_quad(const Pack<float, quad_lanes>* in, QuadRegister* t) {
  t[0] = in[0].chunk[0];
  t[1] = t[2] = t[3] = QuadRegister{};
  if constexpr (Packs > 1) t[1] = in[1].chunk[0];
  if constexpr (Packs > 2) t[2] = in[2].chunk[0];
  if constexpr (Packs > 3) t[3] = in[3].chunk[0];
  transpose_quads(t);
}

/// Up to four packs to the rows at row(lane), which are padded to four.
template <int Packs, class Row>
SHEAFNN_INLINE void store_quad(const Pack<float, quad_lanes>* in, int count, const Row& row) {
  QuadRegister t[4];
  take_quad<Packs>(in, t);
  if (count == quad_lanes) {
    SHEAFNN_UNROLL for (int i = 0; i < 4; ++i) store_quarters(t[i], i, row);
  } else {
    alignas(64) float quads[4][quad_lanes];
    for (int i = 0; i < 4; ++i) std::memcpy(quads[i], &t[i], sizeof t[i]);
    for (int lane = 0; lane < count; ++lane) {
      _mm_storeu_ps(row(lane), _mm_load_ps(quads[lane % 4] + lane / 4 * 4));
    }
  }
}

/// The inverse: up to four packs from rows of which four values may be read.
template <int Packs, class Row>
SHEAFNN_INLINE void load_quad(int count, const Row& row, Pack<float, quad_lanes>* out) {
  QuadRegister t[4];
  if (count == quad_lanes) {
    SHEAFNN_UNROLL for (int i = 0; i < 4; ++i) t[i] = load_quarters(i, row);
  } else {
    alignas(64) float quads[4][quad_lanes] = {};
    for (int lane = 0; lane < count; ++lane) {
      _mm_store_ps(quads[lane % 4] + lane / 4 * 4, _mm_loadu_ps(row(lane)));
    }
    for (int i = 0; i < 4; ++i) std::memcpy(&t[i], quads[i], sizeof t[i]);
  }
  transpose_quads(t);
  SHEAFNN_UNROLL for (int k = 0; k < Packs; ++k) out[k].chunk[0] = t[k];
}
#endif

#if SHEAFNN_OCTETS
/// out = (out +) the first `Count` of four sums; up to `Capacity` values of `out` may be overwritten.
template <int Count, int Capacity>
SHEAFNN_INLINE void store_sums(__m128 sum, float* out, bool accumulate) {
  if constexpr (Capacity >= 4) {
    _mm_storeu_ps(out, accumulate ? _mm_add_ps(_mm_loadu_ps(out), sum) : sum);
  } else {
    alignas(16) float value[4];
    _mm_store_ps(value, sum);
    for (int i = 0; i < Count; ++i) out[i] = accumulate ? out[i] + value[i] : value[i];
  }
}
#endif

#if SHEAFNN_AVX512
/// out = (out +) the sums over lanes of three or four packs.
template <int Packs>
SHEAFNN_INLINE void quad_sums(const Pack<float, 16>* in, float* out, bool accumulate) {
  __m512 t[4];
  take_quad<Packs>(in, t);
  const __m512 rows = _mm512_add_ps(_mm512_add_ps(t[0], t[1]), _mm512_add_ps(t[2], t[3]));
  const __m256 half = _mm256_add_ps(_mm512_castps512_ps256(rows), _mm512_maskz_extractf32x8_ps(0xFF, rows, 1));
  store_sums<Packs, Packs>(_mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1)), out,
                           accumulate);
}
#endif

#if SHEAFNN_AVX512 || SHEAFNN_AVX2
#define SHEAFNN_REORDERS_ROWS 1
/// Where the values of K packs lie when their W rows are contiguous, or the reverse. Output vector v takes its
/// lane i from lane `from` of input vector `vector`.
template <int K, bool ToRows>
struct RowOrder {
  static constexpr int W = quad_lanes;
  std::array<std::array<std::int32_t, W>, K> from{};
#if SHEAFNN_AVX512
  using Lanes = std::uint16_t;  ///< a bit per lane
#else
  using Lanes = std::array<std::int32_t, W>;  ///< −1 and 0
#endif
  std::array<std::array<Lanes, K>, K> mask{};  ///< [output][input]: lanes taken

  constexpr RowOrder() {
    for (int v = 0; v < K; ++v) {
      for (int i = 0; i < W; ++i) {
        const int place = ToRows ? W * v + i : i * K + v;
        const auto output = static_cast<std::size_t>(v), lane = static_cast<std::size_t>(i);
        const auto input = static_cast<std::size_t>(ToRows ? place % K : place / W);
        from[output][lane] = ToRows ? place / K : place % W;
#if SHEAFNN_AVX512
        mask[output][input] = static_cast<Lanes>(mask[output][input] | (1U << i));
#else
        mask[output][input][lane] = -1;
#endif
      }
    }
  }
};
/// K W values into the order of rows, or back into lanes.
template <int K, bool ToRows>
SHEAFNN_INLINE void reorder(const QuadRegister* in, QuadRegister* out) {
  static constexpr RowOrder<K, ToRows> order;
  SHEAFNN_UNROLL for (std::size_t v = 0; v < K; ++v) {
#if SHEAFNN_AVX512
    const __m512i from = _mm512_loadu_si512(order.from[v].data());
    out[v] = _mm512_maskz_permutexvar_ps(all_lanes, from, in[0]);
    SHEAFNN_UNROLL for (std::size_t k = 1; k < K; ++k) {
      out[v] = _mm512_mask_permutexvar_ps(out[v], order.mask[v][k], from, in[k]);
    }
#else
    const auto words = [](const std::array<std::int32_t, quad_lanes>& from) SHEAFNN_INLINE_LAMBDA {
      return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from.data()));
    };
    const __m256i from = words(order.from[v]);
    out[v] = _mm256_permutevar8x32_ps(in[0], from);
    SHEAFNN_UNROLL for (std::size_t k = 1; k < K; ++k) {
      out[v] = _mm256_blendv_ps(out[v], _mm256_permutevar8x32_ps(in[k], from),
                                _mm256_castsi256_ps(words(order.mask[v][k])));
    }
#endif
  }
}
#else
#define SHEAFNN_REORDERS_ROWS 0
#endif

}  // namespace sheafnn::detail
