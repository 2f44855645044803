/// \file
/// Dropout masks as a function of (stream, element): the same on any number of threads and on any device.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/config.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/random/stream.hpp"

namespace sheafnn {

/// Elements are numbered in blocks of 64: element e = 64 b + 16 w + l is decided by word w of the Philox block with
/// id 16 b + l. It is kept when the word is below (1 − rate) · 2³².
struct Dropout {
  static constexpr Index block = 64;

  double rate = 0;  ///< probability of dropping an element, in [0, 1)
  Stream stream;

  [[nodiscard]] bool active() const noexcept { return rate > 0; }
  /// Kept elements are multiplied by 1 / (1 − rate), so that the mean is unchanged.
  [[nodiscard]] double scale() const noexcept { return 1 / (1 - rate); }
  [[nodiscard]] std::uint32_t threshold() const noexcept {
    return static_cast<std::uint32_t>(std::min(4294967295.0, (1 - rate) * 4294967296.0));
  }

  /// Is element e kept? The reference for fill_mask, and the form for devices.
  [[nodiscard]] SHEAFNN_HD bool keeps(Index element) const {
    const Index within = element % block;
    const std::uint64_t id = static_cast<std::uint64_t>(element / block * 16 + within % 16);
    const PhiloxBlock<std::uint32_t> words =
        stream.words(static_cast<std::uint32_t>(id), 0, static_cast<std::uint32_t>(id >> 32));
    return words.word[within / 16] < threshold();
  }

  /// Writes 1 (kept) or 0 for elements [0, count) into `mask`, whose size is rounded up to whole blocks.
  SHEAFNN_NOINLINE void fill_mask(int threads, Index count, std::uint8_t* mask) const {
    using Word = Pack<std::uint32_t, 16>;
    const Index blocks = (count + block - 1) / block;
    const std::uint32_t limit = threshold();
    std::uint32_t lane[16];
    for (std::uint32_t i = 0; i < 16; ++i) lane[i] = i;
    const Word lane_number = Word::load(lane);
    parallel_for(threads, blocks, 64, [&](Index begin, Index end) {
      for (Index b = begin; b < end; ++b) {
        const std::uint64_t first = static_cast<std::uint64_t>(b) * 16;
        const PhiloxBlock<Word> words = stream.words(Word(static_cast<std::uint32_t>(first)) + lane_number, 0,
                                                     static_cast<std::uint32_t>(first >> 32));
        for (int w = 0; w < 4; ++w) {
          std::uint32_t values[16];
          words.word[w].store(values);
          for (int i = 0; i < 16; ++i) mask[b * block + 16 * w + i] = values[i] < limit ? 1 : 0;
        }
      }
    });
  }

  /// Number of bytes fill_mask writes for `count` elements.
  [[nodiscard]] static Index mask_size(Index count) noexcept { return (count + block - 1) / block * block; }
};

/// out = in ∘ mask / (1 − rate); in and out may be the same array.
template <class S>
SHEAFNN_NOINLINE void apply_dropout(int threads, Index count, const S* in, const std::uint8_t* mask, double scale,
                                    S* out) {
  const S factor = static_cast<S>(scale);
  parallel_for(threads, count, 8192, [=](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) out[i] = in[i] * (mask[i] != 0 ? factor : S(0));
  });
}

/// out += in ∘ mask / (1 − rate): the backward pass into a sum of gradients.
template <class S>
SHEAFNN_NOINLINE void add_dropout(int threads, Index count, const S* in, const std::uint8_t* mask, double scale,
                                  S* out) {
  const S factor = static_cast<S>(scale);
  parallel_for(threads, count, 8192, [=](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) out[i] += in[i] * (mask[i] != 0 ? factor : S(0));
  });
}

}  // namespace sheafnn
