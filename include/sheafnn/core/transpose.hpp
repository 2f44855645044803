/// \file
/// Packs to numbers one lane after another: K packs of W lanes become W runs of K numbers.
#pragma once

#include <cstddef>
#include <cstring>
#include <utility>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/pack.hpp"

namespace sheafnn {

namespace detail {

#if SHEAFNN_VECTOR_TYPES && defined(__has_builtin) && __has_builtin(__builtin_shufflevector)
#define SHEAFNN_TRANSPOSED_IN_REGISTERS 1

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
#endif

}  // namespace detail

/// to[l K + k] = lane l of packs[k].
template <int K, class T, int W>
SHEAFNN_INLINE void store_by_lane(const Pack<T, W>* packs, T* to) {
  static_assert(W >= 2);
  int begin = 0;  // numbers before are done
#if defined(SHEAFNN_TRANSPOSED_IN_REGISTERS)
  // Squares of one register, of eight rows at most.
  constexpr int chunk = W / Pack<T, W>::chunks;
  constexpr int n = chunk < 8 ? chunk : 8;
  typedef T Row __attribute__((vector_size(n * sizeof(T))));
  for (; begin + n <= K; begin += n) {
    SHEAFNN_UNROLL for (int l = 0; l < W; l += n) {
      Row rows[n];
      SHEAFNN_UNROLL for (int k = 0; k < n; ++k) {
        std::memcpy(&rows[k], reinterpret_cast<const T*>(packs[begin + k].chunk) + l, sizeof(Row));
      }
      detail::transpose_square(rows);
      SHEAFNN_UNROLL for (int k = 0; k < n; ++k) std::memcpy(to + (l + k) * K + begin, &rows[k], sizeof(Row));
    }
  }
#endif
  for (; begin < K; ++begin) {
    T values[W];
    packs[begin].store(values);
    SHEAFNN_UNROLL for (int l = 0; l < W; ++l) to[l * K + begin] = values[l];
  }
}

}  // namespace sheafnn
