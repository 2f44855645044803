/// \file
/// Tiles T = Pack<S, W> or S, in which the channels of a row of features are computed: reading and writing them, whole or in
/// part, and cutting a row into them. A tile is a register on the CPU and four numbers on a thread of a device.
///
/// Unchecked: pointers to as many numbers as are read or written, and numbers of channels.
#pragma once

#include <type_traits>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/pack.hpp"

namespace sheafnn {

namespace detail {

/// Reads a T (a scalar, or as many consecutive ones as the pack has lanes) at p; no alignment needed.
template <class T>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE T load(const scalar_of_t<T>* p) {
  if constexpr (std::is_arithmetic_v<T>) {
    return *p;
  } else {
    return T::load(p);
  }
}

/// Writes what load<T> reads.
template <class T>
SHEAFNN_HD SHEAFNN_INLINE void store(scalar_of_t<T>* p, const T& value) {
  if constexpr (std::is_arithmetic_v<T>) {
    *p = value;
  } else {
    value.store(p);
  }
}

/// The same of an address that is a multiple of 16 bytes, for packs of as many: one instruction on a device.
template <class T>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE T load_aligned(const scalar_of_t<T>* p) {
#if defined(__CUDA_ARCH__)
  return *reinterpret_cast<const T*>(p);
#else
  return load<T>(p);
#endif
}
template <class T>
SHEAFNN_HD SHEAFNN_INLINE void store_aligned(scalar_of_t<T>* p, const T& value) {
#if defined(__CUDA_ARCH__)
  *reinterpret_cast<T*>(p) = value;
#else
  store(p, value);
#endif
}

/// The first `count` lanes of a pack; the others are 0.
template <class T>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE T load_some(const scalar_of_t<T>* p, int count) {
  scalar_of_t<T> values[T::width];
  SHEAFNN_UNROLL for (int c = 0; c < T::width; ++c) values[c] = c < count ? p[c] : scalar_of_t<T>(0);
  return T::load(values);
}
template <class T>
SHEAFNN_HD SHEAFNN_INLINE void store_some(scalar_of_t<T>* p, const T& value, int count) {
  SHEAFNN_UNROLL for (int c = 0; c < T::width; ++c) {
    if (c < count) p[c] = value.lane(c);
  }
}

/// Calls body.template operator()<T>(c) for tiles [c, c + width of T) that cover [begin, end): full packs first,
/// then narrower ones, then scalars.
template <class Scalar, class Body>
SHEAFNN_INLINE void for_tiles(Index begin, Index end, const Body& body) {
  constexpr int W = row_lanes<Scalar>;
  Index c = begin;
  for (; c + W <= end; c += W) body.template operator()<Pack<Scalar, W>>(c);
  if constexpr (W > 8) {
    if (c + 8 <= end) {
      body.template operator()<Pack<Scalar, 8>>(c);
      c += 8;
    }
  }
  if (c + 4 <= end) {
    body.template operator()<Pack<Scalar, 4>>(c);
    c += 4;
  }
  for (; c < end; ++c) body.template operator()<Scalar>(c);
}

}  // namespace detail

}  // namespace sheafnn
