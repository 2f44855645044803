/// \file
/// Random words as numbers and as booleans, over T = float, double or Pack; a pack takes a pack of words. Takes any
/// words.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/pack.hpp"

#if defined(__AVX512F__) && !defined(__CUDACC__)
#include <immintrin.h>
#endif

namespace sheafnn::random {

/// Unsigned 32-bit word, or as many of them as T has lanes: std::uint32_t for float and double,
/// Pack<std::uint32_t, W> for Pack<T, W>.
template <class T>
struct WordOf {
  using type = std::uint32_t;
};
template <class T, int W>
struct WordOf<Pack<T, W>> {
  using type = Pack<std::uint32_t, W>;
};
/// Random words for numbers of type T: one, or a Pack of them.
template <class T>
using word_of_t = typename WordOf<T>::type;

}  // namespace sheafnn::random

namespace sheafnn::detail {

#if SHEAFNN_VECTOR_TYPES
/// As many words from position `first` on as To has elements, as signed numbers, converted to To's numbers.
template <class To, int W>
[[nodiscard]] SHEAFNN_INLINE To converted_words(const Pack<std::uint32_t, W>& word, int first) {
  constexpr int count = static_cast<int>(sizeof(To) / sizeof(To{}[0]));
  typedef std::int32_t Part __attribute__((vector_size(4 * count)));
  Part part;
  std::memcpy(&part, reinterpret_cast<const char*>(word.chunk) + 4 * first, sizeof part);
#if defined(__AVX512F__)
  // One instruction, where gcc 12 takes two halves.
  if constexpr (count == 8 && sizeof(To) == 64) {
    if constexpr (std::is_floating_point_v<std::remove_cvref_t<decltype(To{}[0])>>) {
      return (To)_mm512_maskz_cvtepi32_pd(0xff, (__m256i)part);
    } else {
      return (To)_mm512_maskz_cvtepi32_epi64(0xff, (__m256i)part);
    }
  }
#endif
  return __builtin_convertvector(part, To);
}
#endif

}  // namespace sheafnn::detail

namespace sheafnn::random {

/// The word as a two's complement number in [−2³¹, 2³¹); float rounds it.
template <class T>
  requires std::is_floating_point_v<T>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE T signed_number(std::uint32_t word) {
  return static_cast<T>(static_cast<std::int32_t>(word));
}
/// As above, lane by lane.
template <class P, int W = P::width>
[[nodiscard]] SHEAFNN_INLINE P signed_number(const Pack<std::uint32_t, W>& word) {
#if SHEAFNN_VECTOR_TYPES
  P r;
  SHEAFNN_EACH(i, P::chunks,
               { r.chunk[i] = detail::converted_words<typename P::Chunk>(word, i * (W / P::chunks)); })
  return r;
#else
  std::uint32_t words[W];
  typename P::value_type values[W];
  word.store(words);
  for (int i = 0; i < W; ++i) values[i] = signed_number<typename P::value_type>(words[i]);
  return P::load(values);
#endif
}

/// Whether the highest bit of the word is set, for select() between numbers of type T.
template <class T>
  requires std::is_floating_point_v<T>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE bool highest_bit(std::uint32_t word) { return (word >> 31) != 0; }
/// As above, lane by lane.
template <class P, int W = P::width>
[[nodiscard]] SHEAFNN_INLINE PackMask<typename P::value_type, W> highest_bit(const Pack<std::uint32_t, W>& word) {
  PackMask<typename P::value_type, W> r;
#if SHEAFNN_VECTOR_TYPES
  using Chunk = typename PackMask<typename P::value_type, W>::Chunk;
  SHEAFNN_EACH(i, P::chunks, { r.chunk[i] = detail::converted_words<Chunk>(word, i * (W / P::chunks)) < Chunk{}; })
#else
  std::uint32_t words[W];
  word.store(words);
  for (int i = 0; i < W; ++i) r.chunk[i] = (words[i] >> 31) != 0;
#endif
  return r;
}

/// A word as a number in (0, 1): the midpoint of one of 2²³ (float) or 2³² (double) equal cells. With 2²⁴ cells the last
/// float would round to 1.
template <class T>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE T uniform_from_word(const word_of_t<T>& word) {
  using Scalar = scalar_of_t<T>;
  if constexpr (sizeof(Scalar) == 4) {
    return (signed_number<T>(word >> 9) + T(Scalar(0.5))) * T(Scalar(1.0 / 8388608.0));
  } else {
    return signed_number<T>(word ^ word_of_t<T>(0x80000000u)) * T(1.0 / 4294967296.0) +
           T(0.5 + 0.5 / 4294967296.0);
  }
}

/// A uniform number in (0, 1) of 53 bits from two words.
[[nodiscard]] inline double fine_uniform(std::uint32_t high, std::uint32_t low) {
  return (static_cast<double>(high) + (static_cast<double>(low >> 11) + 0.5) / 2097152.0) / 4294967296.0;
}

}  // namespace sheafnn::random
