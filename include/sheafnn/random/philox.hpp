/// \file
/// Philox 4x32-10: the counter-based generator behind every random number of the library.
///
/// Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011. A pure function of
/// (counter, key): no state, so results do not depend on order, on threads or on the machine. Takes any words.
#pragma once

#include <cstdint>
#include <type_traits>

#include "sheafnn/core/config.hpp"
#include "sheafnn/random/split_words.hpp"

namespace sheafnn::random {

/// Four random words per counter. \tparam Word std::uint32_t or a pack of them.
template <class Word>
struct PhiloxBlock {
  Word word[4];
};

}  // namespace sheafnn::random

namespace sheafnn::detail {

/// Counter and key of a round. Words are std::uint32_t where they are the same in all lanes, and SplitWords elsewhere. Where
/// only a differs between lanes, half of the words of the first two rounds do.
template <class A, class B, class C, class D>
struct PhiloxState {
  A a;
  B b;
  C c;
  D d;
  std::uint32_t key0, key1;
};

/// One round.
SHEAFNN_ANY_SIDE
template <class A, class B, class C, class D>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE auto philox_round(const PhiloxState<A, B, C, D>& s) {
  constexpr std::uint32_t multiplier0 = 0xD2511F53u;
  constexpr std::uint32_t multiplier1 = 0xCD9E8D57u;
  constexpr std::uint32_t weyl0 = 0x9E3779B9u;  // fractional part of the golden ratio
  constexpr std::uint32_t weyl1 = 0xBB67AE85u;  // fractional part of √3
  const auto product0 = wide_product(s.a, multiplier0);
  const auto product1 = wide_product(s.c, multiplier1);
  const auto a = product1.high ^ s.b ^ s.key0;
  const auto c = product0.high ^ s.d ^ s.key1;
  return PhiloxState<std::remove_const_t<decltype(a)>, decltype(product1.low), std::remove_const_t<decltype(c)>,
                     decltype(product0.low)>{a, product1.low, c, product0.low, s.key0 + weyl0, s.key1 + weyl1};
}

/// Ten rounds. From the fourth on all words are of one type: a loop costs the compiler less than a recursion.
SHEAFNN_ANY_SIDE
template <class Word, class A, class B, class C, class D>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE PhiloxBlock<Word> philox_rounds(const PhiloxState<A, B, C, D>& first) {
  auto s = philox_round(philox_round(philox_round(first)));
  SHEAFNN_UNROLL for (int round = 3; round < 10; ++round) s = philox_round(s);
  return {{joined<Word>(s.a), joined<Word>(s.b), joined<Word>(s.c), joined<Word>(s.d)}};
}

}  // namespace sheafnn::detail

namespace sheafnn::random {

/// Ten rounds of Philox 4x32. (Random123 defines a macro philox4x32, hence the short name.)
///
/// \param counter  four words; the key is the same in all lanes
/// \returns        four words, uniform on [0, 2³²)
SHEAFNN_ANY_SIDE
template <class Word>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE PhiloxBlock<Word> philox(const PhiloxBlock<Word>& counter,
                                                                 std::uint32_t key0, std::uint32_t key1) {
  using detail::split;
  using Words = decltype(split(counter.word[0]));
  return detail::philox_rounds<Word>(
      detail::PhiloxState<Words, Words, Words, Words>{split(counter.word[0]), split(counter.word[1]),
                                                      split(counter.word[2]), split(counter.word[3]), key0, key1});
}

/// philox of the counter (first, word1, word2, word3): only the first word differs between lanes.
SHEAFNN_ANY_SIDE
template <class Word>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE PhiloxBlock<Word> philox(const Word& first, std::uint32_t word1,
                                                                 std::uint32_t word2, std::uint32_t word3,
                                                                 std::uint32_t key0, std::uint32_t key1) {
  using Words = decltype(detail::split(first));
  return detail::philox_rounds<Word>(
      detail::PhiloxState<Words, std::uint32_t, std::uint32_t, std::uint32_t>{detail::split(first), word1, word2,
                                                                              word3, key0, key1});
}

}  // namespace sheafnn::random
