/// \file
/// Stream: the address of a family of random numbers; uniform and normal numbers drawn from it.
///
/// Every random number is a pure function of (seed, purpose, epoch, layer, sample, id, draw). The 128-bit Philox
/// counter holds them without overlap, the key is the seed:
///
///     word 0  low 32 bits of id            word 2  epoch
///     word 1  draw (12 bits) | id (20)     word 3  purpose (6 bits) | layer (10) | sample (16)
#pragma once

#include <cmath>
#include <cstdint>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/pack.hpp"
#include "sheafnn/random/philox.hpp"
#include "sheafnn/random/turns.hpp"

namespace sheafnn {

/// What a random number is for; different purposes never share numbers.
enum class Purpose : std::uint32_t {
  weights = 1,          ///< initial values of parameters
  input_dropout = 2,    ///< dropout of stored features
  hidden_dropout = 3,   ///< dropout of the encoder's output
  layer_dropout = 4,    ///< dropout of a layer's input
  learner_dropout = 5,  ///< dropout of what a layer's sheaf learner reads
  sheaf_noise = 6,      ///< noise behind sampled restriction maps
  synthetic_graph = 7,  ///< generated graphs and features
  user = 8              ///< sampling asked for by library users
};

/// Address of random numbers; see the file comment for the ranges of its fields.
struct Stream {
  std::uint64_t seed = 0;
  Purpose purpose = Purpose::user;
  std::uint32_t epoch = 0;   ///< any
  std::uint32_t layer = 0;   ///< < 1024
  std::uint32_t sample = 0;  ///< < 65536

  /// Four random words for (id, draw).
  ///
  /// \tparam Word  std::uint32_t, or a pack of them: one id per lane
  /// \param id     canonical number of the arc, node or entry, < 2³² (a wider one passes its upper 20 bits as id_high)
  /// \param draw   < 4096
  SHEAFNN_ANY_SIDE
  template <class Word>
  [[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE PhiloxBlock<Word> words(const Word& id, std::uint32_t draw,
                                                                  std::uint32_t id_high = 0) const {
    const std::uint32_t word1 = (draw << 20) | id_high;
    const std::uint32_t word3 = (static_cast<std::uint32_t>(purpose) << 26) | (layer << 16) | sample;
    return philox(PhiloxBlock<Word>{{id, Word(word1), Word(epoch), Word(word3)}}, static_cast<std::uint32_t>(seed),
                  static_cast<std::uint32_t>(seed >> 32));
  }
};

/// A word as a number in (0, 1): the midpoint of one of 2²³ (float; with 2²⁴, the last would round to 1) or 2³²
/// (double) equal cells.
template <class T>
  requires std::is_floating_point_v<T>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE T uniform_from_word(std::uint32_t word) {
  if constexpr (sizeof(T) == 4) {
    return (static_cast<T>(word >> 9) + T(0.5)) * T(1.0 / 8388608.0);
  } else {
    return (static_cast<T>(word) + T(0.5)) * T(1.0 / 4294967296.0);
  }
}
template <class P, int W = P::width>
[[nodiscard]] SHEAFNN_INLINE P uniform_from_word(const Pack<std::uint32_t, W>& word) {
  std::uint32_t words[W];
  typename P::value_type values[W];
  word.store(words);
  for (int i = 0; i < W; ++i) values[i] = uniform_from_word<typename P::value_type>(words[i]);
  return P::load(values);
}

/// Four independent N(0, 1) numbers.
template <class T>
struct NormalBlock {
  T value[4];
};

/// Box–Muller on four words: pairs (0, 1) and (2, 3) give √(−2 log u) · (cos, sin)(2πv).
template <class T>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE NormalBlock<T> normals_from_words(const PhiloxBlock<word_of_t<T>>& block) {
  using std::log;
  using std::sqrt;
  NormalBlock<T> r;
  SHEAFNN_UNROLL for (int pair = 0; pair < 2; ++pair) {
    const T u = uniform_from_word<T>(block.word[2 * pair]);
    const T v = uniform_from_word<T>(block.word[2 * pair + 1]);
    const T radius = sqrt(T(-2) * log(u));
    T sine, cosine;
    sin_cos_turns(v, sine, cosine);
    r.value[2 * pair] = radius * cosine;
    r.value[2 * pair + 1] = radius * sine;
  }
  return r;
}

/// Fills out[0 … Count) with independent N(0, 1) numbers of (stream, id), draws first_draw, first_draw + 1, ….
template <int Count, class T>
SHEAFNN_HD SHEAFNN_INLINE void fill_normals(T* out, const Stream& stream, const word_of_t<T>& id,
                                            std::uint32_t first_draw = 0) {
  SHEAFNN_UNROLL for (int begin = 0; begin < Count; begin += 4) {
    const NormalBlock<T> block =
        normals_from_words<T>(stream.words(id, first_draw + static_cast<std::uint32_t>(begin / 4)));
    for (int i = 0; i < 4 && begin + i < Count; ++i) out[begin + i] = block.value[i];
  }
}

}  // namespace sheafnn
