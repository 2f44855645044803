/// \file
/// 32-bit words whose 64-bit products are needed, side by side.
///
/// Vector instructions multiply the lower half of every 64-bit lane. So a pack of words is two vectors of such lanes, words
/// of even and of odd position, through all rounds of Philox. No shuffle is needed between two products. What the upper
/// halves hold does not matter.
#pragma once

#include <cstdint>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/pack.hpp"

#if defined(__SSE2__) && !defined(__CUDACC__)
#include <immintrin.h>
#endif

namespace sheafnn::detail {

/// High and low words of 64-bit products.
template <class Word>
struct WideProduct {
  Word high, low;
};

SHEAFNN_HD SHEAFNN_INLINE WideProduct<std::uint32_t> wide_product(std::uint32_t a, std::uint32_t multiplier) {
  const std::uint64_t product = static_cast<std::uint64_t>(a) * multiplier;
  return {static_cast<std::uint32_t>(product >> 32), static_cast<std::uint32_t>(product)};
}
SHEAFNN_HD SHEAFNN_INLINE std::uint32_t split(std::uint32_t word) { return word; }
template <class Word>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE Word joined(std::uint32_t word) {
  return Word(word);
}

#if SHEAFNN_VECTOR_TYPES && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__

/// The words of a pack.
template <int W>
struct SplitWords {
  static_assert(W >= 2);
  using Words = Pack<std::uint32_t, W>;
  static constexpr int chunks = Words::chunks;
  typedef std::uint64_t Chunk __attribute__((vector_size(sizeof(typename Words::Chunk))));
  Chunk even[chunks], odd[chunks];

  friend SHEAFNN_INLINE SplitWords operator^(const SplitWords& a, const SplitWords& b) {
    SplitWords r;
    SHEAFNN_EACH(i, chunks, {
      r.even[i] = a.even[i] ^ b.even[i];
      r.odd[i] = a.odd[i] ^ b.odd[i];
    })
    return r;
  }
  /// The same word in every lane.
  friend SHEAFNN_INLINE SplitWords operator^(const SplitWords& a, std::uint32_t b) {
    SplitWords r;
    const Chunk all = Chunk{} + b;
    SHEAFNN_EACH(i, chunks, {
      r.even[i] = a.even[i] ^ all;
      r.odd[i] = a.odd[i] ^ all;
    })
    return r;
  }
  friend SHEAFNN_INLINE SplitWords operator^(std::uint32_t a, const SplitWords& b) { return b ^ a; }
};

/// Products of the lower halves of 64-bit lanes.
template <class Chunk>
[[nodiscard]] SHEAFNN_INLINE Chunk multiply_lower_halves(const Chunk& a, std::uint32_t multiplier) {
  const Chunk all = Chunk{} + multiplier;
#if defined(__AVX512F__)
  if constexpr (sizeof(Chunk) == 64) return (Chunk)_mm512_maskz_mul_epu32(0xff, (__m512i)a, (__m512i)all);
#endif
#if defined(__AVX2__)
  if constexpr (sizeof(Chunk) == 32) return (Chunk)_mm256_mul_epu32((__m256i)a, (__m256i)all);
#endif
#if defined(__SSE2__)
  if constexpr (sizeof(Chunk) == 16) return (Chunk)_mm_mul_epu32((__m128i)a, (__m128i)all);
#endif
  return (a & 0xffffffffu) * all;
}

template <int W>
[[nodiscard]] SHEAFNN_INLINE WideProduct<SplitWords<W>> wide_product(const SplitWords<W>& a,
                                                                     std::uint32_t multiplier) {
  WideProduct<SplitWords<W>> r;
  SHEAFNN_EACH(i, SplitWords<W>::chunks, {
    r.low.even[i] = multiply_lower_halves(a.even[i], multiplier);
    r.low.odd[i] = multiply_lower_halves(a.odd[i], multiplier);
    r.high.even[i] = r.low.even[i] >> 32;
    r.high.odd[i] = r.low.odd[i] >> 32;
  })
  return r;
}

template <int W>
[[nodiscard]] SHEAFNN_INLINE SplitWords<W> split(const Pack<std::uint32_t, W>& words) {
  SplitWords<W> r;
  SHEAFNN_EACH(i, SplitWords<W>::chunks, {
    r.even[i] = (typename SplitWords<W>::Chunk)words.chunk[i];
    r.odd[i] = r.even[i] >> 32;
  })
  return r;
}
template <class Words, int W>
[[nodiscard]] SHEAFNN_INLINE Words joined(const SplitWords<W>& words) {
  Words r;
  SHEAFNN_EACH(i, SplitWords<W>::chunks,
               { r.chunk[i] = (typename Words::Chunk)((words.even[i] & 0xffffffffu) | (words.odd[i] << 32)); })
  return r;
}

#else

template <int W>
[[nodiscard]] SHEAFNN_INLINE WideProduct<Pack<std::uint32_t, W>> wide_product(const Pack<std::uint32_t, W>& a,
                                                                              std::uint32_t multiplier) {
  std::uint32_t high[W], low[W];
  a.store(low);
  for (int i = 0; i < W; ++i) {
    const WideProduct<std::uint32_t> product = wide_product(low[i], multiplier);
    high[i] = product.high;
    low[i] = product.low;
  }
  return {Pack<std::uint32_t, W>::load(high), Pack<std::uint32_t, W>::load(low)};
}
template <int W>
[[nodiscard]] SHEAFNN_INLINE Pack<std::uint32_t, W> split(const Pack<std::uint32_t, W>& words) {
  return words;
}
template <class Words, int W>
[[nodiscard]] SHEAFNN_INLINE Words joined(const Pack<std::uint32_t, W>& words) {
  return words;
}

#endif

}  // namespace sheafnn::detail
