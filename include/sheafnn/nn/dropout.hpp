/// \file
/// Dropout masks as a function of (stream, element): the same on any number of threads and on any device.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/mask_bits.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/core/tile.hpp"
#include "sheafnn/random/stream.hpp"

namespace sheafnn::layers {

/// Elements are numbered in blocks of 128. Element 128 b + 32 w + 16 h + l is decided by half h (0: the low one) of word w
/// of the Philox block with id 16 b + l. It is kept when that 16-bit number is below round((1 − rate) · 2¹⁶).
///
/// A mask holds one bit per element, 1 for kept: bit e % 8 of byte e / 8.
/// Unchecked: a rate in [0, 1), indices of at least 0, and the size of masks.
struct Dropout {
  static constexpr Index block = 128;

  double rate = 0;  ///< probability of dropping an element, in [0, 1)
  Stream stream;

  friend bool operator==(const Dropout&, const Dropout&) = default;

  [[nodiscard]] bool active() const noexcept { return rate > 0; }
  [[nodiscard]] std::uint32_t threshold() const noexcept {
    return static_cast<std::uint32_t>(std::clamp((1 - rate) * 65536.0 + 0.5, 1.0, 65535.0));
  }
  /// Kept elements are multiplied by the inverse of their probability, 1 / (1 − rate) up to its rounding to 16
  /// bits, so that the mean is unchanged.
  [[nodiscard]] double scale() const noexcept { return active() ? 65536.0 / threshold() : 1.0; }

  /// Is element e kept? The reference for fill_mask.
  [[nodiscard]] bool keeps(Index element) const;

  /// Writes the bits of elements [0, count) into `mask`, a buffer of mask_size(count) bytes.
  void fill_mask(Execution execution, Index count, std::uint8_t* mask) const {
    parallel_for(execution, blocks(count), 16, [&](Index begin, Index end) { fill_blocks(begin, end, mask); });
  }
  /// The same for blocks [begin, end) of elements, into a buffer that begins with block `first`.
  SHEAFNN_NOINLINE void fill_blocks(Index begin, Index end, std::uint8_t* mask, Index first = 0) const {
    using Word = Pack<std::uint32_t, 16>;
    const Stream own = stream;  // which no store of bytes can change
    const Word limit = Word(threshold());
    std::uint32_t lane[16];
    for (std::uint32_t i = 0; i < 16; ++i) lane[i] = i;
    const Word lane_number = Word::load(lane);
    for (Index b = begin; b < end; ++b) {
      const std::uint64_t id = static_cast<std::uint64_t>(b) * 16;
      const PhiloxBlock<Word> words = own.words(Word(static_cast<std::uint32_t>(id)) + lane_number, 0,
                                                static_cast<std::uint32_t>(id >> 32));
      std::uint8_t* out = mask + (b - first) * (block / 8);
      SHEAFNN_UNROLL for (int w = 0; w < 4; ++w) {
        const std::uint32_t low = detail::mask_bits((words.word[w] & Word(0xffffU)) < limit);
        const std::uint32_t high = detail::mask_bits((words.word[w] >> 16) < limit);
        for (int byte = 0; byte < 2; ++byte) {
          out[4 * w + byte] = static_cast<std::uint8_t>(low >> (8 * byte));
          out[4 * w + 2 + byte] = static_cast<std::uint8_t>(high >> (8 * byte));
        }
      }
    }
  }

  /// Blocks of `count` elements.
  [[nodiscard]] static Index blocks(Index count) noexcept { return (count + block - 1) / block; }
  /// Bytes of a mask for `count` elements, padded so that kept_bits() may read past the last element.
  [[nodiscard]] static Index mask_size(Index count) noexcept {
    return (count + block - 1) / block * (block / 8) + 8;
  }
};

}  // namespace sheafnn::layers

namespace sheafnn::detail {

/// The random words of a Philox block: two elements each.
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE PhiloxBlock<std::uint32_t> dropout_words(const Stream& stream, Index id) {
  const std::uint64_t wide = static_cast<std::uint64_t>(id);
  return stream.words(static_cast<std::uint32_t>(wide), 0, static_cast<std::uint32_t>(wide >> 32));
}
/// Is the element of half 0 … 7 of the words kept, counted from the low half of word 0?
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE bool half_keeps(const PhiloxBlock<std::uint32_t>& words, int half,
                                                        std::uint32_t threshold) {
  // No index into the words: where `half` is known only at run time, they would not stay in registers.
  const std::uint32_t a = words.word[0], b = words.word[1], c = words.word[2], d = words.word[3];
  const std::uint32_t word = half < 4 ? (half < 2 ? a : b) : (half < 6 ? c : d);
  return (half % 2 == 0 ? word & 0xffffU : word >> 16) < threshold;
}

/// Is an element kept? The form for devices.
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE bool stream_keeps(const Stream& stream, std::uint32_t threshold,
                                                          Index element) {
  const Index within = element % Dropout::block;
  return detail::half_keeps(detail::dropout_words(stream, element / Dropout::block * 16 + within % 16),
                            static_cast<int>(within / 16), threshold);
}

}  // namespace sheafnn::detail

namespace sheafnn::layers {

inline bool Dropout::keeps(Index element) const { return detail::stream_keeps(stream, threshold(), element); }

}  // namespace sheafnn::layers

namespace sheafnn::detail {

/// Calls use(element, kept) for the elements below `count` among the eight that Philox block `id` covers. For
/// devices.
template <class Use>
SHEAFNN_HD SHEAFNN_INLINE void for_dropout_block(const Stream& stream, std::uint32_t threshold, Index id,
                                                 Index count, const Use& use) {
  const PhiloxBlock<std::uint32_t> words = detail::dropout_words(stream, id);
  const Index first = id / 16 * Dropout::block + id % 16;
  for (int half = 0; half < 8; ++half) {
    const Index element = first + 16 * half;
    if (element < count) use(element, detail::half_keeps(words, half, threshold));
  }
}

/// Philox blocks for `count` elements.
[[nodiscard]] constexpr Index dropout_blocks(Index count) noexcept {
  return (count + Dropout::block - 1) / Dropout::block * 16;
}

/// The bits of elements [element, element + 32) of a mask.
[[nodiscard]] SHEAFNN_INLINE std::uint32_t kept_bits(const std::uint8_t* mask, Index element) {
  static_assert(std::endian::native == std::endian::little);
  std::uint64_t bits;
  std::memcpy(&bits, mask + element / 8, sizeof bits);
  return static_cast<std::uint32_t>(bits >> (element % 8));
}

/// value · factor for kept elements and 0 for dropped ones; `element` is the index of the first lane.
template <class T>
[[nodiscard]] SHEAFNN_INLINE T dropped(const T& value, const std::uint8_t* mask, Index element,
                                       scalar_of_t<T> factor) {
  const std::uint32_t bits = kept_bits(mask, element);
  if constexpr (std::is_arithmetic_v<T>) {
    return (bits & 1U) != 0 ? value * factor : T(0);
  } else {
    return select(mask_from_bits<scalar_of_t<T>, T::width>(bits), value * T(factor), T(0));
  }
}

/// out = dropped(in), or out += dropped(in) when Add; in and out may be the same array.
///
/// \param scale  Dropout::scale()
template <bool Add = false, class S>
SHEAFNN_NOINLINE void apply_dropout(Execution execution, Index count, const S* in, const std::uint8_t* mask,
                                    double scale, S* out) {
  const S factor = static_cast<S>(scale);
  parallel_for(execution, count, 2048, [=](Index begin, Index end) {
    for_tiles<S>(begin, end, [=]<class T>(auto i) {
      const T value = dropped(i.load(in + i), mask, i, factor);
      i.store(out + i, Add ? i.load(out + i) + value : value);
    });
  });
}

}  // namespace sheafnn::detail
