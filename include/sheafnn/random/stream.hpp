/// \file
/// Stream: the address of a family of random numbers; uniform and normal numbers drawn from it.
///
/// Every random number is a pure function of (seed, purpose, epoch, layer, sample, id, draw). The 128-bit Philox
/// counter holds them without overlap, the key is the seed:
///
///     word 0  low 32 bits of id            word 2  epoch
///     word 1  draw (12 bits) | id (20)     word 3  purpose (6 bits) | layer (10) | sample (16)
///
/// The 20 upper bits of an id are 0 except for very large graphs.
#pragma once

#include <cmath>
#include <cstdint>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/pack.hpp"
#include "sheafnn/random/philox.hpp"
#include "sheafnn/random/turns.hpp"
#include "sheafnn/random/unit_log.hpp"
#include "sheafnn/random/words.hpp"

namespace sheafnn {

/// What a random number is for; different purposes never share numbers.
enum class Purpose : std::uint32_t {
  weights = 1,            ///< initial values of parameters
  input_dropout = 2,      ///< dropout of stored features
  hidden_dropout = 3,     ///< dropout of the encoder's output
  layer_dropout = 4,      ///< dropout of a layer's input
  learner_dropout = 5,    ///< dropout of what a layer's sheaf learner reads
  sheaf_noise = 6,        ///< noise of sampled restriction maps
  synthetic_graph = 7,    ///< generated graphs and features
  user = 8,               ///< sampling by users of the library
  layer_noise = 9,        ///< what layers draw themselves
  negative_pairs = 10,    ///< pairs of nodes without an edge
  pair_noise = 11,        ///< noise of sampled restriction maps of pairs of nodes
  batch_order = 12,       ///< which training nodes or graphs a step takes
  neighbour_samples = 13  ///< which neighbours of a node a step sees
};

/// Address of random numbers; see the file comment for the ranges of its fields.
struct Stream {
  std::uint64_t seed = 0;
  Purpose purpose = Purpose::user;
  std::uint32_t epoch = 0;   ///< any
  std::uint32_t layer = 0;   ///< < 1024
  std::uint32_t sample = 0;  ///< < 65536
  std::uint32_t upper = 0;   ///< upper 20 bits of every id, < 2²⁰

  friend bool operator==(const Stream&, const Stream&) = default;

  /// Four random words for (id, draw).
  ///
  /// \tparam Word  std::uint32_t, or a pack of them: one id per lane
  /// \param id     canonical index of the arc, node or entry, < 2³² (a wider one passes its upper 20 bits as
  ///               id_high, or has them in the stream)
  /// \param draw   < 4096
  /// Unchecked: these ranges, and the ranges of the fields. Larger values give the words of another address.
  SHEAFNN_ANY_SIDE
  template <class Word>
  [[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE random::PhiloxBlock<Word> words(const Word& id, std::uint32_t draw,
                                                                          std::uint32_t id_high = 0) const {
    const std::uint32_t word1 = (draw << 20) | id_high | upper;
    const std::uint32_t word3 = (static_cast<std::uint32_t>(purpose) << 26) | (layer << 16) | sample;
    return random::philox(id, word1, epoch, word3, static_cast<std::uint32_t>(seed),
                          static_cast<std::uint32_t>(seed >> 32));
  }
};

/// Four independent N(0, 1) numbers.
template <class T>
struct NormalBlock {
  T value[4];
};

/// Box–Muller on four words: pairs (0, 1) and (2, 3) give √(−2 log u) · (cos, sin)(2πv), v the second word / 2³².
/// Takes any words.
template <class T>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE NormalBlock<T> normals_from_words(
    const random::PhiloxBlock<random::word_of_t<T>>& block) {
  using std::sqrt;
  NormalBlock<T> r;
  SHEAFNN_UNROLL for (int pair = 0; pair < 2; ++pair) {
    const T u = random::uniform_from_word<T>(block.word[2 * pair]);
    const T radius = sqrt(T(-2) * random::unit_log(u));
    T sine, cosine;
    random::sin_cos_of_word<T>(block.word[2 * pair + 1], sine, cosine);
    r.value[2 * pair] = radius * cosine;
    r.value[2 * pair + 1] = radius * sine;
  }
  return r;
}

/// Fills out[0 … Count) with independent N(0, 1) numbers of (stream, id), draws first_draw, first_draw + 1, ….
/// Unchecked: as Stream::words(), and the room.
template <int Count, class T>
SHEAFNN_HD SHEAFNN_INLINE void fill_normals(T* out, const Stream& stream, const random::word_of_t<T>& id,
                                            std::uint32_t first_draw = 0) {
  SHEAFNN_UNROLL for (int begin = 0; begin < Count; begin += 4) {
    const NormalBlock<T> block =
        normals_from_words<T>(stream.words(id, first_draw + static_cast<std::uint32_t>(begin / 4)));
    for (int i = 0; i < 4 && begin + i < Count; ++i) out[begin + i] = block.value[i];
  }
}

}  // namespace sheafnn
