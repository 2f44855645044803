/// \file
/// BundleMaps: the rotations of a flat vector bundle, O_v^b ∈ SO(D) for every node v and bundle b. They are
/// applied to features of n × B × D × f values: R = O Z takes these into the frame that all nodes share, and Oᵀ back. The
/// derivative in the rotations is Σ_c a bᵀ.
///
/// The restriction maps F_{v ⊴ e} = O_v^b of all edges e of v make a sheaf whose Laplacian is Oᵀ (𝓛 ⊗ I) O.
/// Source: math: "Flat bundles"; Bundle Neural Networks (Bamberger et al.).
#pragma once

#include <algorithm>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/lane_rows.hpp"
#include "sheafnn/core/small_matrix.hpp"
#include "sheafnn/core/tile.hpp"
#include "sheafnn/kernels/block.hpp"

namespace sheafnn::layers {

/// Rotations are numbered u · B + b, and computed in blocks of as many as a pack has lanes. Unchecked: indices of nodes and
/// blocks, and the sizes of arrays; groups of nodes begin at multiples of row_group.
template <int D, class S>
class BundleMaps {
 public:
  static constexpr int W = lanes<S>, size = D * D;
  using P = Pack<S, W>;
  using Matrix = SquareMatrix<P, D>;

  /// \param channels  f
  BundleMaps(Index nodes, Index bundles, Index channels)
      : bundles_(bundles),
        channels_(channels),
        count_(nodes * bundles),
        map_(count_ * size),
        map_bar_(count_ * size) {}

  [[nodiscard]] Index bundles() const noexcept { return bundles_; }
  /// n · B.
  [[nodiscard]] Index count() const noexcept { return count_; }
  [[nodiscard]] Index blocks() const noexcept { return (count_ + W - 1) / W; }
  /// Rotations of a block.
  [[nodiscard]] int lanes_of(Index block) const noexcept {
    return static_cast<int>(std::min<Index>(W, count_ - block * W));
  }
  /// O_u^b, D × D row by row.
  [[nodiscard]] const S* map(Index u, Index b) const noexcept { return map_.data() + (u * bundles_ + b) * size; }

  /// Access to all rotations, n · B matrices in row-major order, and their replacement.
  [[nodiscard]] const Buffer<S>& values() const noexcept { return map_; }
  void set_values(const Buffer<S>& values) { std::copy_n(values.data(), map_.size(), map_.data()); }

  void store(Index block, const Matrix& rotation) {
    P entries[size];
    detail::write_rows(rotation, entries);
    detail::store_rows<size>(entries, lanes_of(block), map_.data() + block * W * size);
  }
  [[nodiscard]] Matrix rotation(Index block) const { return load(map_, block); }
  /// The derivatives of the rotations of a block.
  [[nodiscard]] Matrix rotation_bar(Index block) const { return load(map_bar_, block); }

  /// y = O x, or Oᵀ x, at nodes [first, first + count). \param x, y  their rows; may be the same
  template <bool Transposed>
  void rotate_rows(Index first, Index count, const S* x, S* y) const {
    const Index begin = first * bundles_, end = (first + count) * bundles_;
    if (channels_ == 1) {
      for (Index i = begin; i < end; i += W, x += W * D, y += W * D) {
        const int here = static_cast<int>(std::min<Index>(W, end - i));
        P in[D], out[D], o[size];
        detail::load_rows<size>(map_.data() + i * size, here, o);
        detail::load_rows<D>(x, here, in);
        SHEAFNN_UNROLL for (int r = 0; r < D; ++r) {
          out[r] = o[kernels::entry<D, !Transposed>(r, 0)] * in[0];
          SHEAFNN_UNROLL for (int j = 1; j < D; ++j) out[r] += o[kernels::entry<D, !Transposed>(r, j)] * in[j];
        }
        detail::store_rows<D>(out, here, y);
      }
      return;
    }
    const Index f = channels_;
    for (Index i = begin; i < end; ++i, x += D * f, y += D * f) {
      const S* o = map_.data() + i * size;
      detail::for_tiles<S>(0, f, [&]<class T>(auto c) {
        T in[D], out[D];
        SHEAFNN_UNROLL for (int j = 0; j < D; ++j) in[j] = c.load(x + j * f + c);
        kernels::block_times<D, size, !Transposed>(o, in, out);  // the block lies in rows
        SHEAFNN_UNROLL for (int j = 0; j < D; ++j) c.store(y + j * f + c, out[j]);
      });
    }
  }

  /// Ō = (Ō +) Σ_c a bᵀ at nodes [first, first + count). \param a, b  their rows
  void add_products(Index first, Index count, const S* a, const S* b, bool accumulate) {
    const Index begin = first * bundles_, end = (first + count) * bundles_;
    if (!accumulate) std::fill(map_bar_.data() + begin * size, map_bar_.data() + end * size, S(0));
    if (channels_ == 1) {
      for (Index i = begin; i < end; i += W, a += W * D, b += W * D) {
        const int here = static_cast<int>(std::min<Index>(W, end - i));
        P left[D], right[D], bar[size];
        detail::load_rows<D>(a, here, left);
        detail::load_rows<D>(b, here, right);
        detail::load_rows<size>(map_bar_.data() + i * size, here, bar);
        SHEAFNN_UNROLL for (int k = 0; k < size; ++k) bar[k] += left[k / D] * right[k % D];
        detail::store_rows<size>(bar, here, map_bar_.data() + i * size);
      }
      return;
    }
    const Index f = channels_;
    for (Index i = begin; i < end; ++i, a += D * f, b += D * f) {
      S* bar = map_bar_.data() + i * size;
      detail::for_tiles<S>(0, f, [&]<class T>(auto c) {
        T left[D], right[D];
        SHEAFNN_UNROLL for (int j = 0; j < D; ++j) {
          left[j] = c.load(a + j * f + c);
          right[j] = c.load(b + j * f + c);
        }
        kernels::channel_products<D, size>(right, left, bar, true);  // b aᵀ in columns is a bᵀ in rows
      });
    }
  }

 private:
  [[nodiscard]] Matrix load(const Buffer<S>& from, Index block) const {
    P entries[size];
    detail::load_rows<size>(from.data() + block * W * size, lanes_of(block), entries);
    return detail::matrix_of_rows<D>(entries);
  }

  Index bundles_, channels_, count_;
  Buffer<S> map_, map_bar_;  ///< n · B matrices, row by row
};

}  // namespace sheafnn::layers
