/// \file
/// Masks of packs as bits, and lanes chosen by bits.
#pragma once

#include <cstdint>
#include <type_traits>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/pack.hpp"

#if SHEAFNN_VECTOR_TYPES && defined(__AVX__)
#include <immintrin.h>
#endif

namespace sheafnn::detail {

/// The mask whose lane i is bit i of `bits`.
template <class T, int W>
[[nodiscard]] SHEAFNN_INLINE PackMask<T, W> mask_from_bits(std::uint32_t bits) {
  static_assert(W <= 32);
  PackMask<T, W> r;
#if SHEAFNN_VECTOR_TYPES
  using Chunk = typename PackMask<T, W>::Chunk;
  using Int = std::remove_cvref_t<decltype(Chunk{}[0])>;
  constexpr int width = W / PackMask<T, W>::chunks;
  Chunk lane_bit;
  SHEAFNN_UNROLL for (int i = 0; i < width; ++i) lane_bit[i] = static_cast<Int>(Int{1} << i);
  SHEAFNN_EACH(i, (PackMask<T, W>::chunks),
               { r.chunk[i] = ((Chunk{} + static_cast<Int>(bits >> (i * width))) & lane_bit) != Chunk{}; })
#else
  for (int i = 0; i < W; ++i) r.chunk[i] = ((bits >> i) & 1U) != 0;
#endif
  return r;
}

template <class T>
  requires std::is_arithmetic_v<T>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE bool mask_from_bits(std::uint32_t bits) { return (bits & 1U) != 0; }

/// The inverse of mask_from_bits: bit i is lane i.
template <class T, int W>
[[nodiscard]] SHEAFNN_INLINE std::uint32_t mask_bits(const PackMask<T, W>& mask) {
  static_assert(W <= 32);
#if SHEAFNN_AVX512
  if constexpr (sizeof(T) == 4 && W == 16) {
    return static_cast<std::uint32_t>(_mm512_movepi32_mask((__m512i)mask.chunk[0]));
  }
#endif
#if SHEAFNN_VECTOR_TYPES && defined(__AVX__)
  if constexpr (sizeof(mask.chunk[0]) == 32 && sizeof(T) == 4) {
    std::uint32_t bits = 0;
    SHEAFNN_UNROLL for (int i = 0; i < W / 8; ++i) {
      bits |= static_cast<std::uint32_t>(_mm256_movemask_ps((__m256)mask.chunk[i])) << (8 * i);
    }
    return bits;
  }
#endif
  std::uint32_t bits = 0;
  constexpr int width = W / PackMask<T, W>::chunks;
  for (int i = 0; i < W; ++i) {
#if SHEAFNN_VECTOR_TYPES
    bits |= mask.chunk[i / width][i % width] != 0 ? std::uint32_t{1} << i : 0U;
#else
    bits |= mask.chunk[i / width] ? std::uint32_t{1} << i : 0U;
#endif
  }
  return bits;
}

}  // namespace sheafnn::detail

namespace sheafnn::math {

/// Does the condition hold in any lane? Takes any mask.
template <class T, int W>
[[nodiscard]] SHEAFNN_INLINE bool any(const PackMask<T, W>& mask) {
  return detail::mask_bits(mask) != 0;
}
/// As above, for a single condition.
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE bool any(bool condition) { return condition; }

}  // namespace sheafnn::math
