/// \file
/// Philox 4x32-10: the counter-based generator behind every random number of the library.
///
/// Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011. A pure function of
/// (counter, key): no state, so results do not depend on order, on threads or on the machine. Takes any words.
#pragma once

#include <cstdint>

#include "sheafnn/core/config.hpp"
#include "sheafnn/random/split_words.hpp"

namespace sheafnn {

/// Four random words per counter. \tparam Word std::uint32_t or a pack of them.
template <class Word>
struct PhiloxBlock {
  Word word[4];
};

namespace detail {

/// The rounds Round … 9 on the counter (a, b, c, d). Words are std::uint32_t where they are the same in all lanes,
/// and SplitWords where they are not: where only a differs between lanes, so do half of the words of the first two
/// rounds.
SHEAFNN_ANY_SIDE
template <int Round, class Word, class A, class B, class C, class D>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE PhiloxBlock<Word> philox_rounds(const A& a, const B& b, const C& c,
                                                                        const D& d, std::uint32_t key0,
                                                                        std::uint32_t key1) {
  constexpr std::uint32_t multiplier0 = 0xD2511F53u;
  constexpr std::uint32_t multiplier1 = 0xCD9E8D57u;
  constexpr std::uint32_t weyl0 = 0x9E3779B9u;  // fractional part of the golden ratio
  constexpr std::uint32_t weyl1 = 0xBB67AE85u;  // fractional part of √3
  if constexpr (Round == 10) {
    return {{joined<Word>(a), joined<Word>(b), joined<Word>(c), joined<Word>(d)}};
  } else {
    const auto product0 = wide_product(a, multiplier0);
    const auto product1 = wide_product(c, multiplier1);
    return philox_rounds<Round + 1, Word>(product1.high ^ b ^ key0, product1.low, product0.high ^ d ^ key1,
                                          product0.low, key0 + weyl0, key1 + weyl1);
  }
}

}  // namespace detail

/// Ten rounds of Philox 4x32. (Random123 defines a macro philox4x32, hence the short name.)
///
/// \param counter  four words; the key is the same in all lanes
/// \returns        four words, uniform on [0, 2³²)
SHEAFNN_ANY_SIDE
template <class Word>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE PhiloxBlock<Word> philox(const PhiloxBlock<Word>& counter,
                                                                 std::uint32_t key0, std::uint32_t key1) {
  return detail::philox_rounds<0, Word>(detail::split(counter.word[0]), detail::split(counter.word[1]),
                                        detail::split(counter.word[2]), detail::split(counter.word[3]), key0,
                                        key1);
}

/// philox of the counter (first, word1, word2, word3): only the first word differs between lanes.
SHEAFNN_ANY_SIDE
template <class Word>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE PhiloxBlock<Word> philox(const Word& first, std::uint32_t word1,
                                                                 std::uint32_t word2, std::uint32_t word3,
                                                                 std::uint32_t key0, std::uint32_t key1) {
  return detail::philox_rounds<0, Word>(detail::split(first), word1, word2, word3, key0, key1);
}

}  // namespace sheafnn
