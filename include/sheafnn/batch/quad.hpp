/// \file
/// Four numbers that a thread reads, computes and writes side by side, and rows of numbers that it reads and writes
/// whole: loads of 16 bytes instead of 4.
///
/// Unchecked: pointers and numbers; those that are read or written whole must be aligned to 16 bytes, as arrays of
/// executors are.
#pragma once

#include <cstdint>

#include "sheafnn/core/config.hpp"

namespace sheafnn::batch::detail {

/// Four channels of features; behaves like one number. S = float or double.
template <class S>
struct alignas(16) Quad {
  S value[4];

  SHEAFNN_HD SHEAFNN_KERNEL_INLINE S& operator[](int c) { return value[c]; }
  SHEAFNN_HD SHEAFNN_KERNEL_INLINE const S& operator[](int c) const { return value[c]; }

  SHEAFNN_HD SHEAFNN_KERNEL_INLINE Quad& operator+=(const Quad& b) {
    SHEAFNN_UNROLL for (int c = 0; c < 4; ++c) value[c] += b.value[c];
    return *this;
  }
  SHEAFNN_HD SHEAFNN_KERNEL_INLINE Quad& operator-=(const Quad& b) {
    SHEAFNN_UNROLL for (int c = 0; c < 4; ++c) value[c] -= b.value[c];
    return *this;
  }
  [[nodiscard]] SHEAFNN_HD SHEAFNN_KERNEL_INLINE friend Quad operator+(Quad a, const Quad& b) { return a += b; }
  [[nodiscard]] SHEAFNN_HD SHEAFNN_KERNEL_INLINE friend Quad operator-(Quad a, const Quad& b) { return a -= b; }
  [[nodiscard]] SHEAFNN_HD SHEAFNN_KERNEL_INLINE friend Quad operator*(const S& a, const Quad& b) {
    Quad r;
    SHEAFNN_UNROLL for (int c = 0; c < 4; ++c) r.value[c] = a * b.value[c];
    return r;
  }
  /// Of each channel.
  [[nodiscard]] SHEAFNN_HD SHEAFNN_KERNEL_INLINE friend Quad operator*(const Quad& a, const Quad& b) {
    Quad r;
    SHEAFNN_UNROLL for (int c = 0; c < 4; ++c) r.value[c] = a.value[c] * b.value[c];
    return r;
  }
  /// Σ_c a_c b_c.
  [[nodiscard]] SHEAFNN_HD SHEAFNN_KERNEL_INLINE friend S dot(const Quad& a, const Quad& b) {
    S sum = a.value[0] * b.value[0];
    SHEAFNN_UNROLL for (int c = 1; c < 4; ++c) sum += a.value[c] * b.value[c];
    return sum;
  }
};

/// Up to four channels of a node in an array of features: whole quads where the number of channels is a multiple of
/// four, so that they are aligned, else one channel at a time.
struct ChannelRange {
  int count = 0;  ///< 4, or fewer at the end of a row; 0: none
  bool whole = false;

  template <class S>
  [[nodiscard]] SHEAFNN_HD SHEAFNN_KERNEL_INLINE Quad<S> load(const S* from) const {
    return whole ? load_whole(from) : load_some(from);
  }
  template <class S>
  [[nodiscard]] SHEAFNN_HD SHEAFNN_KERNEL_INLINE Quad<S> load_whole(const S* from) const {
    return *reinterpret_cast<const Quad<S>*>(from);
  }
  template <class S>
  [[nodiscard]] SHEAFNN_HD SHEAFNN_KERNEL_INLINE Quad<S> load_some(const S* from) const {
    Quad<S> r;
    SHEAFNN_UNROLL for (int c = 0; c < 4; ++c) r[c] = c < count ? from[c] : S(0);
    return r;
  }
  template <class S>
  SHEAFNN_HD SHEAFNN_KERNEL_INLINE void store_whole(const Quad<S>& values, S* to) const {
    *reinterpret_cast<Quad<S>*>(to) = values;
  }
  template <class S>
  SHEAFNN_HD SHEAFNN_KERNEL_INLINE void store_some(const Quad<S>& values, S* to) const {
    SHEAFNN_UNROLL for (int c = 0; c < 4; ++c) {
      if (c < count) to[c] = values[c];
    }
  }
};

/// Numbers from one row of `size` numbers to the next: rows of three and more begin at multiples of 16 bytes.
[[nodiscard]] constexpr int padded(int size) { return size < 3 ? size : (size + 3) / 4 * 4; }

/// The numbers of such a row.
template <int Size, class S>
SHEAFNN_HD SHEAFNN_KERNEL_INLINE void load_row(const S* row, S* out) {
  if constexpr (Size < 3) {
    SHEAFNN_UNROLL for (int k = 0; k < Size; ++k) out[k] = row[k];
  } else {
    SHEAFNN_UNROLL for (int first = 0; first < Size; first += 4) {
      const Quad<S> numbers = *reinterpret_cast<const Quad<S>*>(row + first);
      SHEAFNN_UNROLL for (int k = 0; k < 4; ++k) {
        if (first + k < Size) out[first + k] = numbers[k];
      }
    }
  }
}
/// The numbers of row `number` of such rows. Rows are counted in quads, in 32 bits.
template <int Size, class S>
SHEAFNN_HD SHEAFNN_KERNEL_INLINE void load_numbered_row(const S* rows, std::uint32_t number, S* out) {
  if constexpr (Size < 3) {
    SHEAFNN_UNROLL for (int k = 0; k < Size; ++k) out[k] =
        rows[number * static_cast<std::uint32_t>(Size) + static_cast<std::uint32_t>(k)];
  } else {
    load_row<Size>(reinterpret_cast<const S*>(reinterpret_cast<const Quad<S>*>(rows) +
                                              number * static_cast<std::uint32_t>(padded(Size) / 4)),
                   out);
  }
}
/// Writes them; what is behind them up to the next row becomes 0.
template <int Size, class S>
SHEAFNN_HD SHEAFNN_KERNEL_INLINE void store_row(const S* numbers, S* row) {
  if constexpr (Size < 3) {
    SHEAFNN_UNROLL for (int k = 0; k < Size; ++k) row[k] = numbers[k];
  } else {
    SHEAFNN_UNROLL for (int first = 0; first < Size; first += 4) {
      Quad<S> out;
      SHEAFNN_UNROLL for (int k = 0; k < 4; ++k) out[k] = first + k < Size ? numbers[first + k] : S(0);
      *reinterpret_cast<Quad<S>*>(row + first) = out;
    }
  }
}

}  // namespace sheafnn::batch::detail
