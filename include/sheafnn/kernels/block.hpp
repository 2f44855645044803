/// \file
/// A block of a sheaf times the coordinates of a node, and the block that two nodes' coordinates make, summed over channels.
/// Source: math: "Diffusion in three steps" (3.15).
///
/// A block has 1, D or D² entries: c times the identity, a diagonal, or a matrix in columns. Without entries it is the
/// identity, which add_block_times() takes. T is a tile of channels, x the D coordinates of a node in it.
///
/// Unchecked: pointers to a block's entries and to D tiles.
#pragma once

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/lane_rows.hpp"
#include "sheafnn/core/pack.hpp"

namespace sheafnn::kernels {

/// Does a block of `Size` entries have entries off the diagonal?
template <int D, int Size>
inline constexpr bool is_dense = Size == D* D&& D > 1;

/// Entry (i, j) of a dense block, or of its transpose.
template <int D, bool Transposed>
[[nodiscard]] SHEAFNN_HD constexpr int entry(int i, int j) {
  return Transposed ? i * D + j : j * D + i;
}

/// y = B x, or Bᵀ x.
template <int D, int Size, bool Transposed = false, class T, class S>
SHEAFNN_HD SHEAFNN_INLINE void block_times(const S* block, const T* x, T* y) {
  SHEAFNN_UNROLL for (int i = 0; i < D; ++i) {
    if constexpr (is_dense<D, Size>) {
      y[i] = T(block[entry<D, Transposed>(i, 0)]) * x[0];
      SHEAFNN_UNROLL for (int j = 1; j < D; ++j) y[i] += T(block[entry<D, Transposed>(i, j)]) * x[j];
    } else {
      y[i] = T(block[Size == 1 ? 0 : i]) * x[i];
    }
  }
}

/// sum ± B x, or with Bᵀ.
template <int D, int Size, bool Transposed, bool Subtract, class T, class S>
SHEAFNN_HD SHEAFNN_INLINE void add_block_times(const S* block, const T* x, T* sum) {
  SHEAFNN_UNROLL for (int j = 0; j < D; ++j) {
    const T value = x[j];
    if constexpr (Size == 0) {
      sum[j] = Subtract ? sum[j] - value : sum[j] + value;
    } else if constexpr (is_dense<D, Size>) {
      SHEAFNN_UNROLL for (int i = 0; i < D; ++i) {
        const T term = T(block[entry<D, Transposed>(i, j)]) * value;
        sum[i] = Subtract ? sum[i] - term : sum[i] + term;
      }
    } else {
      const T term = T(block[Size == 1 ? 0 : j]) * value;
      sum[j] = Subtract ? sum[j] - term : sum[j] + term;
    }
  }
}

/// use(k, i, j) for the entries (i, j) of a bᵀ that a block of `Size` entries keeps in its entry k. They are all entries,
/// the diagonal, or the sum of the diagonal.
template <int D, int Size, class Use>
SHEAFNN_HD SHEAFNN_INLINE void for_entries(const Use& use) {
  SHEAFNN_UNROLL for (int j = 0; j < D; ++j) {
    if constexpr (is_dense<D, Size>) {
      SHEAFNN_UNROLL for (int i = 0; i < D; ++i) use(entry<D, false>(i, j), i, j);
    } else {
      use(Size == 1 ? 0 : j, j, j);
    }
  }
}

/// The block that the products make, block = (block +) Σ_c products(i, j), products(i, j) a tile.
///
/// \tparam Capacity  entries of `block` that may be overwritten, ≥ Size
template <int D, int Size, int Capacity = Size, class T, class S, class Products>
SHEAFNN_INLINE void sum_products(const Products& products, S* block, bool accumulate) {
  T product[Size];
  for_entries<D, Size>([&](int k, int i, int j) SHEAFNN_INLINE_LAMBDA {
    product[k] = Size == 1 && i > 0 ? product[k] + products(i, j) : products(i, j);
  });
  detail::lane_sums<Size, Capacity>(product, block, accumulate);
}

/// block = (block +) Σ_c a bᵀ.
template <int D, int Size, class T, class S>
SHEAFNN_INLINE void channel_products(const T* a, const T* b, S* block, bool accumulate) {
  sum_products<D, Size, Size, T>([=](int i, int j) SHEAFNN_INLINE_LAMBDA { return a[i] * b[j]; }, block,
                                 accumulate);
}
/// block = (block +) Σ_c a bᵀ + p qᵀ.
template <int D, int Size, int Capacity = Size, class T, class S>
SHEAFNN_INLINE void channel_products(const T* a, const T* b, const T* p, const T* q, S* block, bool accumulate) {
  sum_products<D, Size, Capacity, T>([=](int i, int j) SHEAFNN_INLINE_LAMBDA { return a[i] * b[j] + p[i] * q[j]; },
                                     block, accumulate);
}

/// Σ_c a_c b_c, channel by channel.
template <class S, int W>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE S dot(const Pack<S, W>& a, const Pack<S, W>& b) {
  S sum = a.lane(0) * b.lane(0);
  SHEAFNN_UNROLL for (int c = 1; c < W; ++c) sum += a.lane(c) * b.lane(c);
  return sum;
}
/// Entries of a block += Σ_c a bᵀ, for threads that have a few channels each.
template <int D, int Size, class T, class S>
SHEAFNN_HD SHEAFNN_INLINE void add_products(const T* a, const T* b, S* sums) {
  for_entries<D, Size>([&](int k, int i, int j) { sums[k] += dot(a[i], b[j]); });
}
/// Entries of a block += Σ_c a bᵀ + p qᵀ.
template <int D, int Size, class T, class S>
SHEAFNN_HD SHEAFNN_INLINE void add_products(const T* a, const T* b, const T* p, const T* q, S* sums) {
  add_products<D, Size>(a, b, sums);
  add_products<D, Size>(p, q, sums);
}

}  // namespace sheafnn::kernels
