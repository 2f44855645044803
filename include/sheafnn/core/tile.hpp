/// \file
/// Tiles T = Pack<S, W> or S, in which the channels of a row of features are computed. Functions read and write tiles, whole
/// or in part, and cut a row into tiles. A tile is a register on the CPU and four values on a thread of a device.
///
/// Unchecked: pointers to as many values as are read or written, and indices of channels.
#pragma once

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

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

/// The first `count` lanes of a pack; the other lanes are 0.
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

/// Coordinates whose tiles of two registers each fit the registers of a processor with AVX-512.
inline constexpr int max_wide_coordinates = 4;

/// The first `count` lanes of a register: all if there are more, none if it is not positive.
template <class S, class Register, int Lanes>
struct SomeLanes {
  int count;

  SHEAFNN_INLINE explicit SomeLanes(int lanes) : count(lanes) {}
  [[nodiscard]] SHEAFNN_INLINE Register load(const S* p) const {
    Register r;
    if (count >= Lanes) {
      std::memcpy(&r, p, sizeof r);
      return r;
    }
    S values[Lanes];
    SHEAFNN_UNROLL for (int c = 0; c < Lanes; ++c) values[c] = c < count ? p[c] : S(0);
    std::memcpy(&r, values, sizeof r);
    return r;
  }
  SHEAFNN_INLINE void store(S* p, const Register& value) const {
    if (count >= Lanes) {
      std::memcpy(p, &value, sizeof value);
      return;
    }
    S values[Lanes];
    std::memcpy(values, &value, sizeof value);
    int c = 0;
    SHEAFNN_UNROLL for (int part = Lanes / 2; part > 0; part /= 2) {
      if ((count & part) == 0 || count < 0) continue;
      std::memcpy(p + c, values + c, static_cast<std::size_t>(part) * sizeof(S));
      c += part;
    }
  }
};
#if SHEAFNN_AVX512
template <class Register>
struct SomeLanes<float, Register, 16> {
  __mmask16 mask;

  SHEAFNN_INLINE explicit SomeLanes(int lanes)
      : mask(static_cast<__mmask16>(_bzhi_u32(0xFFFF, static_cast<unsigned>(std::clamp(lanes, 0, 16))))) {}
  [[nodiscard]] SHEAFNN_INLINE Register load(const float* p) const {
    return (Register)_mm512_maskz_loadu_ps(mask, p);
  }
  SHEAFNN_INLINE void store(float* p, const Register& value) const {
    _mm512_mask_storeu_ps(p, mask, (__m512)value);
  }
};
template <class Register>
struct SomeLanes<double, Register, 8> {
  __mmask8 mask;

  SHEAFNN_INLINE explicit SomeLanes(int lanes)
      : mask(static_cast<__mmask8>(_bzhi_u32(0xFF, static_cast<unsigned>(std::clamp(lanes, 0, 8))))) {}
  [[nodiscard]] SHEAFNN_INLINE Register load(const double* p) const {
    return (Register)_mm512_maskz_loadu_pd(mask, p);
  }
  SHEAFNN_INLINE void store(double* p, const Register& value) const {
    _mm512_mask_storeu_pd(p, mask, (__m512d)value);
  }
};
#endif

/// A tile of a row of values, as many as T has lanes. With Whole = false it has as many or fewer, at the end of the row. As an
/// index it is the position of its first value.
template <class T, bool Whole = true>
class TileAt {
 public:
  using S = scalar_of_t<T>;

  SHEAFNN_INLINE explicit TileAt(Index first) : first_(first) {}
  // NOLINTNEXTLINE(google-explicit-constructor): positions are what rows of features are read at
  SHEAFNN_INLINE operator Index() const { return first_; }

  /// Reads the tile's values, the first of which is at p.
  [[nodiscard]] SHEAFNN_INLINE T load(const S* p) const { return detail::load<T>(p); }
  SHEAFNN_INLINE void store(S* p, const T& value) const { detail::store(p, value); }
  /// The value in the lanes that hold values, 0 in the others: what sums over lanes take.
  [[nodiscard]] SHEAFNN_INLINE const T& only(const T& value) const { return value; }

 private:
  Index first_;
};

/// The first `count` lanes of T: the others are read as 0 and not written.
template <class T>
class TileAt<T, false> {
 public:
  using S = scalar_of_t<T>;

  SHEAFNN_INLINE TileAt(Index first, Index count) : first_(first), count_(static_cast<int>(count)) {}
  // NOLINTNEXTLINE(google-explicit-constructor): as above
  SHEAFNN_INLINE operator Index() const { return first_; }

  [[nodiscard]] SHEAFNN_INLINE T load(const S* p) const {
    T r;
    for_chunks([&](int i, auto some) SHEAFNN_INLINE_LAMBDA { r.chunk[i] = some.load(p + i * chunk_lanes); });
    return r;
  }
  SHEAFNN_INLINE void store(S* p, const T& value) const {
    for_chunks([&](int i, auto some) SHEAFNN_INLINE_LAMBDA { some.store(p + i * chunk_lanes, value.chunk[i]); });
  }
  [[nodiscard]] SHEAFNN_INLINE T only(const T& value) const {
    S values[T::width], kept[T::width];
    value.store(values);
    for (int c = 0; c < T::width; ++c) kept[c] = c < count_ ? values[c] : S(0);
    return detail::load<T>(kept);
  }

 private:
  static constexpr int chunk_lanes = T::width / T::chunks;
  template <class Body>
  SHEAFNN_INLINE void for_chunks(const Body& body) const {
      SHEAFNN_EACH(i, T::chunks,
                   { body(i, SomeLanes<S, typename T::Chunk, chunk_lanes>(count_ - i * chunk_lanes)); })}

  Index first_;
  int count_;
};

/// Does a member function take an index? A tile would become one, its position, and what it reads and writes there whole.
template <class Function>
inline constexpr bool takes_number = false;
template <class Result, class Body, class Argument>
inline constexpr bool takes_number<Result (Body::*)(Argument) const> =
    std::is_arithmetic_v<std::remove_cvref_t<Argument>>;

/// Refuses a body whose operator()<T, Numbers…> takes an index in place of a tile.
template <class Body, class T, int... Numbers>
constexpr void require_takes_tile() {
  if constexpr (requires { &Body::template operator()<T, Numbers...>; }) {
    static_assert(
        !takes_number<decltype(&Body::template operator()<T, Numbers...>)>,
        "the body takes a tile as `auto c`: as an Index it would lose how many of its lanes hold numbers");
  }
}

/// Calls body.template operator()<T>(c) for tiles c, TileAt<T>, that cover [begin, end). First whole packs, then what is
/// left as the first lanes of one more, which has a register's lanes if they are enough.
template <class Scalar, class Body>
SHEAFNN_INLINE void for_tiles(Index begin, Index end, const Body& body) {
  constexpr int W = row_lanes<Scalar>, narrow = lanes<Scalar>;
  require_takes_tile<Body, Pack<Scalar, W>>();
  Index c = begin;
  for (; c + W <= end; c += W) body.template operator()<Pack<Scalar, W>>(TileAt<Pack<Scalar, W>>(c));
  if (c == end) return;
  if constexpr (narrow < W) {
    if (end - c <= narrow) {
      body.template operator()<Pack<Scalar, narrow>>(TileAt<Pack<Scalar, narrow>, false>(c, end - c));
      return;
    }
  }
  body.template operator()<Pack<Scalar, W>>(TileAt<Pack<Scalar, W>, false>(c, end - c));
}

/// for_tiles() for bodies that walk along arcs. Where there are registers for it, one and a part of another pack are one
/// tile of twice the lanes. A second walk would cost as much as the first.
///
/// \tparam D  tiles that a body keeps of a node
template <class Scalar, int D, class Body>
SHEAFNN_INLINE void for_arc_tiles(Index begin, Index end, const Body& body) {
  constexpr int W = row_lanes<Scalar>;
  if constexpr (register_bytes == 64 && D <= max_wide_coordinates) {
    using Wide = Pack<Scalar, 2 * W>;
    const Index rest = (end - begin) % W, whole = end - rest - W;
    if (rest > 0 && whole >= begin) {
      for (Index c = begin; c < whole; c += W)
        body.template operator()<Pack<Scalar, W>>(TileAt<Pack<Scalar, W>>(c));
      body.template operator()<Wide>(TileAt<Wide, false>(whole, end - whole));
      return;
    }
  }
  for_tiles<Scalar>(begin, end, body);
}

/// `Tiles` packs P of a row side by side, which share what else a body reads. With Whole = false the last one may hold fewer
/// values. As an index it is the position of its first value.
template <class P, int Tiles, bool Whole>
class TileGroupAt {
 public:
  using S = scalar_of_t<P>;

  SHEAFNN_INLINE TileGroupAt(Index first, Index count)
      : first_(first), last_(first + (Tiles - 1) * P::width, count - (Tiles - 1) * P::width) {}
  // NOLINTNEXTLINE(google-explicit-constructor): as of TileAt
  SHEAFNN_INLINE operator Index() const { return first_; }

  /// Reads pack t of the group, the first number of which is at p.
  [[nodiscard]] SHEAFNN_INLINE P load(int t, const S* p) const {
    return Whole || t + 1 < Tiles ? detail::load<P>(p + t * P::width) : last_.load(p + t * P::width);
  }
  SHEAFNN_INLINE void store(int t, S* p, const P& value) const {
    if (Whole || t + 1 < Tiles) {
      detail::store(p + t * P::width, value);
    } else {
      last_.store(p + t * P::width, value);
    }
  }

 private:
  Index first_;
  TileAt<P, false> last_;
};

/// Calls body.template operator()<P, Tiles>(c) for groups c, TileGroupAt<P, Tiles>, that cover [0, width): whole ones of
/// `Most` packs P, then one of as many or fewer. Sums side by side hide each other's latency.
template <class Scalar, int Most, class Body>
SHEAFNN_INLINE void for_tile_groups(Index width, const Body& body) {
  using P = Pack<Scalar, row_lanes<Scalar>>;
  constexpr Index group = Most * P::width;
  require_takes_tile<Body, P, Most>();
  Index c = 0;
  for (; c + group <= width; c += group) body.template operator()<P, Most>(TileGroupAt<P, Most, true>(c, group));
  const Index rest = width - c;
  [&]<int... Before>(std::integer_sequence<int, Before...>) SHEAFNN_INLINE_LAMBDA {
    ((Before * P::width < rest && rest <= (Before + 1) * P::width
          ? body.template operator()<P, Before + 1>(TileGroupAt<P, Before + 1, false>(c, rest))
          : void()),
     ...);
  }
  (std::make_integer_sequence<int, Most>{});
}

/// The same with whole tiles only: packs, then narrower ones, then scalars. For functions whose last bits depend on the
/// width of a tile, and must not change.
template <class Scalar, class Body>
SHEAFNN_INLINE void for_narrowing_tiles(Index begin, Index end, const Body& body) {
  Index c = begin;
  const auto cover = [&]<class T>(std::type_identity<T>) SHEAFNN_INLINE_LAMBDA {
    constexpr Index width = sizeof(T) / sizeof(Scalar);
    for (; c + width <= end; c += width) body.template operator()<T>(TileAt<T>(c));
  };
  cover(std::type_identity<Pack<Scalar, row_lanes<Scalar>>>{});
  if constexpr (8 < row_lanes<Scalar>) cover(std::type_identity<Pack<Scalar, 8>>{});
  cover(std::type_identity<Pack<Scalar, 4>>{});
  cover(std::type_identity<Scalar>{});
}

}  // namespace detail

}  // namespace sheafnn
