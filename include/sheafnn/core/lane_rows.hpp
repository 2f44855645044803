/// \file
/// Between lanes and rows: W rows of K values each in memory, and K packs of W lanes in registers. Entry k of row `lane` is
/// lane `lane` of pack k. They change places within registers. With AVX, floats do so four packs at a time, other packs on
/// their way to rows as squares of up to eight. What is left goes through a small array.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/pack.hpp"
#include "sheafnn/core/quad_registers.hpp"
#include "sheafnn/core/tile.hpp"

namespace sheafnn {

namespace detail {

/// The first D coordinates of a node at tile c of channels; `x` points at the first coordinate's values in the tile.
template <int D, class T, bool Whole, class Scalar>
SHEAFNN_INLINE void load_coordinates(const TileAt<T, Whole>& c, const Scalar* x, Index channels, T* out) {
  SHEAFNN_UNROLL for (int i = 0; i < D; ++i) out[i] = c.load(x + i * channels);
}
template <int D, class T, bool Whole, class Scalar>
SHEAFNN_INLINE void store_coordinates(const TileAt<T, Whole>& c, const T* in, Index channels, Scalar* x) {
  SHEAFNN_UNROLL for (int i = 0; i < D; ++i) c.store(x + i * channels, in[i]);
}

/// Length of a row of K values, padded so that whole groups of four can be moved; K itself when it is 1.
[[nodiscard]] constexpr int to_quads(int k) { return k <= 1 ? k : (k + 3) / 4 * 4; }

#if SHEAFNN_VECTOR_TYPES && defined(__has_builtin) && __has_builtin(__builtin_shufflevector)
#define SHEAFNN_TRANSPOSED_IN_REGISTERS 1

/// Rows of a square that is transposed within registers: one register's lanes, eight at most.
template <class S, int W>
inline constexpr int square_rows = std::min(8, W / Pack<S, W>::chunks);

/// Exchanges the quarters off the diagonal of the n × n square that a and b are rows i and i + H of.
template <int H, class V, std::size_t... J>
SHEAFNN_INLINE void exchange_quarters(V& a, V& b, std::index_sequence<J...>) {
  constexpr int n = sizeof...(J);
  constexpr auto first = [](int j) { return (j & H) != 0 ? n + j - H : j; };
  constexpr auto second = [](int j) { return (j & H) != 0 ? n + j : j + H; };
  const V upper = __builtin_shufflevector(a, b, first(static_cast<int>(J))...);
  b = __builtin_shufflevector(a, b, second(static_cast<int>(J))...);
  a = upper;
}

/// The transpose of an n × n square, n a power of two: its quarters, then theirs.
template <int n, int H = n / 2, class V>
SHEAFNN_INLINE void transpose_square(V (&rows)[n]) {
  SHEAFNN_UNROLL for (int i = 0; i < n; ++i) {
    if ((i & H) == 0) exchange_quarters<H>(rows[i], rows[i + H], std::make_index_sequence<n>{});
  }
  if constexpr (H > 1) transpose_square<n, H / 2>(rows);
}

/// Packs [First, Last), a multiple of square_rows of them, to entries [First, Last) of the rows at row(lane), all
/// W of them.
template <int First, int Last, int W, class S, class Row>
SHEAFNN_INLINE void store_squares(const Pack<S, W>* in, const Row& row) {
  constexpr int n = square_rows<S, W>;
  typedef S RowPart __attribute__((vector_size(n * sizeof(S))));
  for (int begin = First; begin < Last; begin += n) {
    SHEAFNN_UNROLL for (int l = 0; l < W; l += n) {
      RowPart rows[n];
      SHEAFNN_UNROLL for (int k = 0; k < n; ++k) {
        std::memcpy(&rows[k], reinterpret_cast<const S*>(in[begin + k].chunk) + l, sizeof(RowPart));
      }
      transpose_square(rows);
      SHEAFNN_UNROLL for (int k = 0; k < n; ++k) std::memcpy(row(l + k) + begin, &rows[k], sizeof(RowPart));
    }
  }
}
#endif

/// Packs [First, Last) to entries [First, Last) of the rows at row(lane), `count` of them, through an array.
template <int First, int Last, int W, class S, class Row>
SHEAFNN_INLINE void store_columns(const Pack<S, W>* in, int count, const Row& row) {
  constexpr int columns = Last - First;
  alignas(64) S buffer[columns * W];
  SHEAFNN_UNROLL for (int k = 0; k < columns; ++k) in[First + k].store(buffer + k * W);
  const auto put = [&](int lane) SHEAFNN_INLINE_LAMBDA {
    S* out = row(lane) + First;
    SHEAFNN_UNROLL for (int k = 0; k < columns; ++k) out[k] = buffer[k * W + lane];
  };
  if (count == W) {
    SHEAFNN_UNROLL for (int lane = 0; lane < W; ++lane) put(lane);
  } else {
    for (int lane = 0; lane < count; ++lane) put(lane);
  }
}

/// Writes lane `lane` of in[k] to entry k of row(lane), for the first `count` lanes.
///
/// \tparam Capacity  values that may be overwritten in every row, ≥ K (the others become 0 or stay)
/// \param row    row(lane) → S*
template <int K, int Capacity = K, int W, class S, class Row>
SHEAFNN_INLINE void lanes_to_rows(const Pack<S, W>* in, int count, const Row& row) {
  static_assert(Capacity >= K);
  constexpr int quads =
      !detail::moves_quads<S, W> ? 0 : (Capacity >= to_quads(K) && K > 1 ? to_quads(K) : K / 4 * 4);
#if SHEAFNN_QUADS
  if constexpr (quads > 0) {
    [&]<int... q>(std::integer_sequence<int, q...>) SHEAFNN_INLINE_LAMBDA {
      (detail::store_quad<std::min(4, K - 4 * q)>(in + 4 * q, count, [&](int lane) { return row(lane) + 4 * q; }),
       ...);
    }
    (std::make_integer_sequence<int, quads / 4>{});
  }
#endif
#if defined(SHEAFNN_TRANSPOSED_IN_REGISTERS)
  constexpr int n = detail::square_rows<S, W>, squares = quads + (K - quads) / n * n;
  if constexpr (n > 1 && squares > quads) {
    if (count == W) {
      detail::store_squares<quads, squares>(in, row);
      if constexpr (squares < K) detail::store_columns<squares, K>(in, W, row);
      return;
    }
  }
#endif
  if constexpr (quads < K) detail::store_columns<quads, K>(in, count, row);
}

/// Reads entry k of row(lane) into lane `lane` of out[k], for the first `count` lanes; the others become 0.
///
/// \tparam Capacity  values that may be read in every row, ≥ K
/// \param row    row(lane) → const S*
template <int K, int Capacity = K, int W, class S, class Row>
SHEAFNN_INLINE void rows_to_lanes(int count, const Row& row, Pack<S, W>* out) {
  static_assert(Capacity >= K);
  constexpr int quads =
      !detail::moves_quads<S, W> ? 0 : (Capacity >= to_quads(K) && K > 1 ? to_quads(K) : K / 4 * 4);
#if SHEAFNN_QUADS
  if constexpr (quads > 0) {
    [&]<int... q>(std::integer_sequence<int, q...>) SHEAFNN_INLINE_LAMBDA {
      (detail::load_quad<std::min(4, K - 4 * q)>(
           count, [&](int lane) { return row(lane) + 4 * q; }, out + 4 * q),
       ...);
    }
    (std::make_integer_sequence<int, quads / 4>{});
  }
#endif
  if constexpr (quads < K) {
    constexpr int rest = K - quads;
    alignas(64) S buffer[rest * W];
    const auto put = [&](int lane) {
      const S* in = row(lane) + quads;
      SHEAFNN_UNROLL for (int k = 0; k < rest; ++k) buffer[k * W + lane] = in[k];
    };
    if (count < W) {
      std::fill_n(buffer, rest * W, S(0));
      for (int lane = 0; lane < count; ++lane) put(lane);
    } else {
      for (int lane = 0; lane < W; ++lane) put(lane);
    }
    SHEAFNN_UNROLL for (int k = 0; k < rest; ++k) out[quads + k] = Pack<S, W>::load(buffer + k * W);
  }
}

/// Reads entry k of rows[lane] into lane `lane` of out[k]. \tparam Stride  values from one row to the next, ≥ K
template <int K, int Stride = K, int W, class S>
SHEAFNN_INLINE void gather_rows(const S* base, const std::int32_t* rows, Pack<S, W>* out) {
  rows_to_lanes<K, Stride>(
      W, [=](int lane) { return base + static_cast<Index>(rows[lane]) * Stride; }, out);
}

/// Writes lane `lane` of in[k] to entry k of rows[lane], for the first `count` lanes.
template <int K, int Stride = K, int W, class S>
SHEAFNN_INLINE void scatter_rows(const Pack<S, W>* in, const std::int32_t* rows, int count, S* base) {
  lanes_to_rows<K, Stride>(in, count, [=](int lane) { return base + static_cast<Index>(rows[lane]) * Stride; });
}

/// Reads `count` ≤ W consecutive rows into the first lanes of out[k]; the other lanes become 0.
template <int K, int Stride = K, int W, class S>
SHEAFNN_INLINE void load_rows(const S* rows, int count, Pack<S, W>* out) {
#if SHEAFNN_REORDERS_ROWS
  if constexpr (detail::moves_quads<S, W> && K == Stride && (K == 2 || K == 3)) {
    if (count == W) {
      QuadRegister in[K], turned[K];
      SHEAFNN_UNROLL for (int k = 0; k < K; ++k) in[k] = Pack<S, W>::load(rows + k * W).chunk[0];
      detail::reorder<K, false>(in, turned);
      SHEAFNN_UNROLL for (int k = 0; k < K; ++k) out[k].chunk[0] = turned[k];
      return;
    }
  }
#endif
  rows_to_lanes<K, Stride>(
      count, [=](int lane) { return rows + lane * Stride; }, out);
}

/// Writes the first `count` lanes of in[k] as consecutive rows.
template <int K, int Stride = K, int W, class S>
SHEAFNN_INLINE void store_rows(const Pack<S, W>* in, int count, S* rows) {
#if SHEAFNN_REORDERS_ROWS
  if constexpr (detail::moves_quads<S, W> && K == Stride && (K == 2 || K == 3)) {
    if (count == W) {
      QuadRegister lanes_of[K], turned[K];
      SHEAFNN_UNROLL for (int k = 0; k < K; ++k) lanes_of[k] = in[k].chunk[0];
      detail::reorder<K, true>(lanes_of, turned);
      SHEAFNN_UNROLL for (int k = 0; k < K; ++k) std::memcpy(rows + k * W, &turned[k], sizeof turned[k]);
      return;
    }
  }
#endif
  lanes_to_rows<K, Stride>(in, count, [=](int lane) { return rows + lane * Stride; });
}

#if SHEAFNN_OCTETS
/// Two registers of two quarters each: in every quarter, the values at even positions plus the next values.
SHEAFNN_INLINE __m256 pairs_added(__m256 a, __m256 b) {
  return _mm256_add_ps(_mm256_shuffle_ps(a, b, 0x88), _mm256_shuffle_ps(a, b, 0xDD));
}
/// The sums over the lanes of each half of four packs of eight floats: first the lower halves, then the upper ones.
SHEAFNN_INLINE __m256 half_sums(const Pack<float, 8>* in) {
  return pairs_added(pairs_added(in[0].chunk[0], in[1].chunk[0]), pairs_added(in[2].chunk[0], in[3].chunk[0]));
}
/// out = (out +) the sums over lanes of `Packs` ≤ 8 packs; up to `Capacity` values of `out` may be overwritten.
template <int Packs, int Capacity>
SHEAFNN_INLINE void octet_sums(const Pack<float, 8>* in, float* out, bool accumulate) {
  Pack<float, 8> all[8];
  for (int k = 0; k < 8; ++k) all[k] = in[std::min(k, Packs - 1)];
  const __m256 low = half_sums(all);
  if constexpr (Packs > 4) {
    const __m256 high = half_sums(all + 4);
    const __m256 sum =
        _mm256_add_ps(_mm256_permute2f128_ps(low, high, 0x20), _mm256_permute2f128_ps(low, high, 0x31));
    static_assert(Packs == 8);
    _mm256_storeu_ps(out, accumulate ? _mm256_add_ps(_mm256_loadu_ps(out), sum) : sum);
  } else {
    store_sums<Packs, Capacity>(_mm_add_ps(_mm256_castps256_ps128(low), _mm256_extractf128_ps(low, 1)), out,
                                accumulate);
  }
}
#endif

/// out[0 … Count) = (out +) the sums over lanes of `Count` packs.
///
/// \tparam Capacity  values of `out` that may be overwritten, ≥ Count
template <int Count, int Capacity = Count, class T, class S>
SHEAFNN_INLINE void lane_sums(const T* in, S* out, bool accumulate) {
  if constexpr (sizeof(T) > row_lanes<S> * sizeof(S)) {  // a tile of two packs: their sum
    Pack<S, row_lanes<S>> both[Count];
    SHEAFNN_UNROLL for (int k = 0; k < Count; ++k) both[k] = in[k].lower() + in[k].upper();
    lane_sums<Count, Capacity>(both, out, accumulate);
    return;
  }
  int first = 0;
#if SHEAFNN_OCTETS && !SHEAFNN_AVX512
  if constexpr (std::is_same_v<T, Pack<float, 16>> && Pack<float, 16>::chunks == 2 && Count >= 3) {
    Pack<float, 8> halves[Count];
    SHEAFNN_UNROLL for (int k = 0; k < Count; ++k) halves[k].chunk[0] = in[k].chunk[0] + in[k].chunk[1];
    lane_sums<Count, Capacity>(halves, out, accumulate);
    return;
  }
#endif
#if SHEAFNN_OCTETS
  if constexpr (std::is_same_v<T, Pack<float, 8>> && Count >= 3) {
    constexpr int octets = Count / 8, rest = Count % 8 / 4;
    for (int k = 0; k < octets; ++k) octet_sums<8, 8>(in + 8 * k, out + 8 * k, accumulate);
    first = 8 * octets;
    if constexpr (rest > 0) octet_sums<4, 4>(in + first, out + first, accumulate);
    first += 4 * rest;
    constexpr int left = Count % 4, room = Capacity - (Count - left);
    if constexpr (left == 3 || (left > 0 && room >= 4)) {
      octet_sums<left, room>(in + first, out + first, accumulate);
      return;
    }
  }
#endif
#if SHEAFNN_AVX512
  if constexpr (std::is_same_v<T, Pack<float, 16>> && Count >= 3) {
    constexpr int whole = Count % 4 == 3 ? Count + 1 : Count / 4 * 4;
    [&]<int... q>(std::integer_sequence<int, q...>) SHEAFNN_INLINE_LAMBDA {
      (detail::quad_sums<std::min(4, Count - 4 * q)>(in + 4 * q, out + 4 * q, accumulate), ...);
    }
    (std::make_integer_sequence<int, whole / 4>{});
    first = whole;
  }
#endif
  for (int k = first; k < Count; ++k) out[k] = accumulate ? out[k] + reduce_add(in[k]) : reduce_add(in[k]);
}

#if SHEAFNN_VECTOR_TYPES && defined(__has_builtin) && __has_builtin(__builtin_shufflevector)
/// The four sums of the lanes whose indices differ by multiples of four, added as reduce_add() adds them first.
template <int W, class V>
SHEAFNN_INLINE auto four_lanes(const V& v) {
  if constexpr (W == 4) {
    return v;
  } else {
    return four_lanes<W / 2>(halves_added(v, std::make_index_sequence<W / 2>{}));
  }
}
#endif
/// out[0 … 4) = reduce_add() of four packs, with the same additions in the same order.
template <class S, int W>
SHEAFNN_INLINE void four_sums(const Pack<S, W> (&in)[4], S* out) {
#if SHEAFNN_VECTOR_TYPES && defined(__has_builtin) && __has_builtin(__builtin_shufflevector)
  constexpr int lanes_of_chunk = W / Pack<S, W>::chunks;
  if constexpr (lanes_of_chunk >= 4) {
    const auto a = four_lanes<lanes_of_chunk>(chunks_added(in[0])),
               b = four_lanes<lanes_of_chunk>(chunks_added(in[1]));
    const auto c = four_lanes<lanes_of_chunk>(chunks_added(in[2])),
               d = four_lanes<lanes_of_chunk>(chunks_added(in[3]));
    const auto ab = __builtin_shufflevector(a, b, 0, 4, 1, 5) + __builtin_shufflevector(a, b, 2, 6, 3, 7);
    const auto cd = __builtin_shufflevector(c, d, 0, 4, 1, 5) + __builtin_shufflevector(c, d, 2, 6, 3, 7);
    const auto sums = __builtin_shufflevector(ab, cd, 0, 1, 4, 5) + __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
    std::memcpy(out, &sums, 4 * sizeof(S));
    return;
  }
#endif
  SHEAFNN_UNROLL for (int k = 0; k < 4; ++k) out[k] = reduce_add(in[k]);
}

}  // namespace detail

}  // namespace sheafnn
