/// \file
/// Tiles of four values, which a thread reads, computes and writes side by side, and rows of values that it reads and
/// writes whole. Loads have 16 bytes instead of 4.
///
/// Unchecked: pointers and indices; those that are read or written whole must be aligned to 16 bytes, as arrays of
/// executors are.
#pragma once

#include <cstdint>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/pack.hpp"
#include "sheafnn/core/tile.hpp"

namespace sheafnn::batch::detail {

using sheafnn::detail::load_aligned, sheafnn::detail::load_some, sheafnn::detail::store_aligned,
    sheafnn::detail::store_some;

/// Four channels of features, or four values of a row; behaves like a scalar. S = float or double.
template <class S>
using Tile = math::Pack<S, 4>;

/// Reads and writes four channels, aligned.
struct WholeTile {
  template <class S>
  [[nodiscard]] SHEAFNN_HD SHEAFNN_KERNEL_INLINE Tile<S> load(const S* from) const {
    return load_aligned<Tile<S>>(from);
  }
  template <class S>
  SHEAFNN_HD SHEAFNN_KERNEL_INLINE void store(const Tile<S>& values, S* to) const {
    store_aligned(to, values);
  }
};
/// Reads and writes the first `count` of four channels.
struct TilePart {
  int count = 4;
  template <class S>
  [[nodiscard]] SHEAFNN_HD SHEAFNN_KERNEL_INLINE Tile<S> load(const S* from) const {
    return load_some<Tile<S>>(from, count);
  }
  template <class S>
  SHEAFNN_HD SHEAFNN_KERNEL_INLINE void store(const Tile<S>& values, S* to) const {
    store_some(to, values, count);
  }
};
/// Up to four channels of a node in an array of features. Whole tiles where the number of channels is a multiple of four, so
/// that they are aligned, else one channel at a time.
struct ChannelRange {
  int count = 0;  ///< 4, or fewer at the end of a row; 0: none
  bool whole = false;

  template <class S>
  [[nodiscard]] SHEAFNN_HD SHEAFNN_KERNEL_INLINE Tile<S> load(const S* from) const {
    return whole ? WholeTile{}.load(from) : TilePart{count}.load(from);
  }
  /// Calls body(WholeTile{}) or body(TilePart{count}).
  template <class Body>
  SHEAFNN_HD SHEAFNN_KERNEL_INLINE void choose(const Body& body) const {
    if (whole) {
      body(WholeTile{});
    } else {
      body(TilePart{count});
    }
  }
};

/// Where tile `number` of an array is. The address is taken in tiles, so that devices multiply in 32 bits.
template <class S>
[[nodiscard]] SHEAFNN_HD SHEAFNN_KERNEL_INLINE const S* tile_at(const S* numbers, std::uint32_t number) {
  return reinterpret_cast<const S*>(reinterpret_cast<const Tile<S>*>(numbers) + number);
}

/// Distance from one row of `size` values to the next: rows of three and more begin at multiples of 16 bytes.
[[nodiscard]] constexpr int padded(int size) { return size < 3 ? size : (size + 3) / 4 * 4; }

/// Reads the values of such a row.
template <int Size, class S>
SHEAFNN_HD SHEAFNN_KERNEL_INLINE void load_row(const S* row, S* out) {
  if constexpr (Size < 3) {
    SHEAFNN_UNROLL for (int k = 0; k < Size; ++k) out[k] = row[k];
  } else {
    SHEAFNN_UNROLL for (int first = 0; first < Size; first += 4) {
      const Tile<S> numbers = load_aligned<Tile<S>>(row + first);
      SHEAFNN_UNROLL for (int k = 0; k < 4; ++k) {
        if (first + k < Size) out[first + k] = numbers.lane(k);
      }
    }
  }
}
/// The values of row `number` of such rows. Rows are counted in tiles, in 32 bits.
template <int Size, class S>
SHEAFNN_HD SHEAFNN_KERNEL_INLINE void load_numbered_row(const S* rows, std::uint32_t number, S* out) {
  if constexpr (Size < 3) {
    SHEAFNN_UNROLL for (int k = 0; k < Size; ++k) out[k] =
        rows[number * static_cast<std::uint32_t>(Size) + static_cast<std::uint32_t>(k)];
  } else {
    load_row<Size>(tile_at(rows, number * static_cast<std::uint32_t>(padded(Size) / 4)), out);
  }
}
/// Writes the values of such a row; its padding becomes 0.
template <int Size, class S>
SHEAFNN_HD SHEAFNN_KERNEL_INLINE void store_row(const S* numbers, S* row) {
  if constexpr (Size < 3) {
    SHEAFNN_UNROLL for (int k = 0; k < Size; ++k) row[k] = numbers[k];
  } else {
    SHEAFNN_UNROLL for (int first = 0; first < Size; first += 4) {
      store_aligned(row + first, load_some<Tile<S>>(numbers + first, Size - first));
    }
  }
}

/// out ← (1 − β) in + β out.
template <int Max, class S>
SHEAFNN_HD SHEAFNN_KERNEL_INLINE void map_identity(const S& beta, const Tile<S> (&in)[Max], Tile<S> (&out)[Max]) {
  SHEAFNN_UNROLL for (int i = 0; i < Max; ++i) out[i] = (S(1) - beta) * in[i] + beta * out[i];
}

}  // namespace sheafnn::batch::detail
