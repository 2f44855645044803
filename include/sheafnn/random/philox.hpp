/// \file
/// Philox 4x32-10: the counter-based generator behind every random number of the library.
///
/// Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011. A pure function of
/// (counter, key): no state, so results do not depend on order, on threads or on the machine.
#pragma once

#include <array>
#include <cstdint>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/pack.hpp"

namespace sheafnn {

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
template <class T>
using word_of_t = typename WordOf<T>::type;

namespace detail {

/// High word of the 64-bit product a · multiplier.
SHEAFNN_HD SHEAFNN_INLINE std::uint32_t multiply_high(std::uint32_t a, std::uint32_t multiplier) {
  return static_cast<std::uint32_t>((static_cast<std::uint64_t>(a) * multiplier) >> 32);
}
template <int W>
SHEAFNN_INLINE Pack<std::uint32_t, W> multiply_high(const Pack<std::uint32_t, W>& a, std::uint32_t multiplier) {
  std::uint32_t words[W];
  a.store(words);
  for (int i = 0; i < W; ++i) words[i] = multiply_high(words[i], multiplier);
  return Pack<std::uint32_t, W>::load(words);
}

}  // namespace detail

/// Four random words per counter. \tparam Word std::uint32_t or a pack of them.
template <class Word>
struct PhiloxBlock {
  Word word[4];
};

/// Ten rounds of Philox 4x32. (Random123 defines a macro philox4x32, hence the short name.)
///
/// \param counter  four words; the key is the same in all lanes
/// \returns        four words, uniform on [0, 2³²)
SHEAFNN_ANY_SIDE
template <class Word>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE PhiloxBlock<Word> philox(PhiloxBlock<Word> counter, std::uint32_t key0,
                                                                 std::uint32_t key1) {
  constexpr std::uint32_t multiplier0 = 0xD2511F53u;
  constexpr std::uint32_t multiplier1 = 0xCD9E8D57u;
  constexpr std::uint32_t weyl0 = 0x9E3779B9u;  // fractional part of the golden ratio
  constexpr std::uint32_t weyl1 = 0xBB67AE85u;  // fractional part of √3
  SHEAFNN_UNROLL for (int round = 0; round < 10; ++round) {
    const Word high0 = detail::multiply_high(counter.word[0], multiplier0);
    const Word high1 = detail::multiply_high(counter.word[2], multiplier1);
    const Word low0 = counter.word[0] * Word(multiplier0);
    const Word low1 = counter.word[2] * Word(multiplier1);
    counter = {high1 ^ counter.word[1] ^ Word(key0), low1, high0 ^ counter.word[3] ^ Word(key1), low0};
    key0 += weyl0;
    key1 += weyl1;
  }
  return counter;
}

}  // namespace sheafnn
