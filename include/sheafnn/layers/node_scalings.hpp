/// \file
/// NodeScalings: per node D_u = Σ F_aᵀF_a over what is incident to u (arcs of a graph, or the pairs of a hypergraph), and
/// S_u. They are computed W nodes at a time, with the backward pass of both. The formulas are in sheaf/normalisation.hpp.
///
/// Source: math: "Coboundary and Laplacian" (1.3), "SPD inverse square root" (1.6).
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/lane_rows.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/core/tile.hpp"
#include "sheafnn/sheaf/family.hpp"
#include "sheafnn/sheaf/normalisation.hpp"

namespace sheafnn::layers {

/// Blocks of n nodes. Unchecked: indices of nodes and the sizes of arrays.
template <RestrictionMapFamily Family, class S>
class NodeScalings {
 public:
  using Sizes = BlockSizes<Family>;
  static constexpr int W = lanes<S>;
  using P = Pack<S, W>;
  /// Values stored per incident pair for its Gram matrix.
  static constexpr int gram_stride = detail::to_quads(Sizes::triangle);

  NodeScalings() = default;
  NodeScalings(Index nodes, Normalisation normalisation)
      : normalisation_(normalisation),
        degree_block_(nodes * Sizes::gram),
        scale_(nodes * Sizes::gram),
        eigen_(nodes * Sizes::eigen) {}

  /// D_u and S_u per node, in Eigen's order.
  [[nodiscard]] const S* degree_block(Index u) const noexcept { return degree_block_.data() + u * Sizes::gram; }
  [[nodiscard]] const S* scale(Index u) const noexcept { return scale_.data() + u * Sizes::gram; }
  [[nodiscard]] S* scales() noexcept { return scale_.data(); }
  [[nodiscard]] Buffer<S>& degree_blocks() noexcept { return degree_block_; }
  /// Adds the arrays that build() writes.
  void list_memory(std::vector<Buffer<S>*>& list) {
    for (Buffer<S>* array : {&degree_block_, &scale_, &eigen_}) list.push_back(array);
  }

  /// The entries that determine a Gram matrix.
  static void to_triangle(const Gram<Family, P>& g, P* numbers) {
    int k = 0;
    for (int j = 0; j < Sizes::gram_columns; ++j) {
      for (int i = 0; i < (Sizes::dense_gram ? j + 1 : Sizes::gram_rows); ++i) numbers[k++] = g(i, j);
    }
  }

  /// D_u and S_u of the first `nodes` nodes.
  ///
  /// \param offsets  node u has the pairs offsets[u] … offsets[u + 1] − 1
  /// \param grams    to_triangle() of every pair, gram_stride values each
  void build(Execution execution, Index nodes, std::span<const std::int32_t> offsets, const S* grams) {
    for_node_blocks(execution, nodes, [&](Index first, int count) {
      const Gram<Family, P> degree_block = sum_pairs(offsets.data() + first, count, grams);
      detail::store_rows<Sizes::gram>(degree_block.data(), count, degree_block_.data() + first * Sizes::gram);
      const NodeScaling<Family, P> scaling =
          node_scaling<Family, P>(normalisation_, degree_block, neighbours(offsets.data() + first, count));
      detail::store_rows<Sizes::gram>(scaling.scale.data(), count, scale_.data() + first * Sizes::gram);
      if constexpr (Sizes::dense_gram) {
        P eigen[Sizes::eigen];
        pack_eigen(scaling, eigen);
        detail::store_rows<Sizes::eigen>(eigen, count, eigen_.data() + first * Sizes::eigen);
      }
    });
  }

  /// Adds to the derivatives of D_u what comes through S_u, for the first `nodes` nodes.
  ///
  /// \param scale_bar  derivatives of S_u, not symmetrised
  void backward(Execution execution, Index nodes, const S* scale_bar, S* degree_bar) const {
    for_node_blocks(execution, nodes,
                    [&](Index first, int count) { backward_block(first, count, scale_bar, degree_bar); });
  }

 private:
  /// body(first node, count) for blocks of W nodes.
  template <class Body>
  static void for_node_blocks(Execution execution, Index nodes, const Body& body) {
    parallel_for(execution, nodes, W, [&](Index begin, Index end) {
      for (Index first = begin; first < end; first += W) {
        body(first, static_cast<int>(std::min<Index>(W, end - first)));
      }
    });
  }
  [[nodiscard]] static P neighbours(const std::int32_t* offset, int count) {
    S values[W] = {};
    for (int i = 0; i < count; ++i) values[i] = static_cast<S>(offset[i + 1] - offset[i]);
    return P::load(values);
  }
  /// D_u = Σ over the pairs of u, for a block of nodes.
  [[nodiscard]] static Gram<Family, P> sum_pairs(const std::int32_t* offset, int count, const S* all_grams) {
    constexpr int width = gram_stride % 4 == 0 ? 4 : 1, tiles = gram_stride / width;
    using T = std::conditional_t<width == 1, S, Pack<S, width>>;
    alignas(64) S sums[W * gram_stride];
    for (int i = 0; i < count; ++i) {
      T sum[tiles];
      for (int k = 0; k < tiles; ++k) sum[k] = T(S(0));
      const S* grams = all_grams + Index{offset[i]} * gram_stride;
      const S* end = all_grams + Index{offset[i + 1]} * gram_stride;
      for (; grams < end; grams += gram_stride) {
        SHEAFNN_UNROLL for (int k = 0; k < tiles; ++k) sum[k] += detail::load<T>(grams + k * width);
      }
      for (int k = 0; k < tiles; ++k) detail::store(sums + i * gram_stride + k * width, sum[k]);
    }
    P numbers[Sizes::triangle];
    detail::load_rows<Sizes::triangle, gram_stride>(sums, count, numbers);
    Gram<Family, P> degree_block;
    int k = 0;
    for (int j = 0; j < Sizes::gram_columns; ++j) {
      for (int i = 0; i < (Sizes::dense_gram ? j + 1 : Sizes::gram_rows); ++i, ++k) {
        degree_block(i, j) = numbers[k];
        if constexpr (Sizes::dense_gram) degree_block(j, i) = numbers[k];
      }
    }
    return degree_block;
  }

  static void pack_eigen(const NodeScaling<Family, P>& scaling, P* eigen) {
    constexpr int D = Sizes::dimension;
    for (int k = 0; k < D * D; ++k) eigen[k] = scaling.vectors(k % D, k / D);
    for (int k = 0; k < D; ++k) eigen[D * D + k] = scaling.root(k);
  }

  void backward_block(Index first, int count, const S* scale_bars, S* degree_bars) const {
    Gram<Family, P> scale_bar, degree_bar;
    detail::load_rows<Sizes::gram>(scale_bars + first * Sizes::gram, count, scale_bar.data());
    detail::load_rows<Sizes::gram>(degree_bars + first * Sizes::gram, count, degree_bar.data());
    NodeScaling<Family, P> scaling;
    detail::load_rows<Sizes::gram>(scale_.data() + first * Sizes::gram, count, scaling.scale.data());
    if constexpr (Sizes::dense_gram) {
      constexpr int D = Sizes::dimension;
      P eigen[Sizes::eigen];
      detail::load_rows<Sizes::eigen>(eigen_.data() + first * Sizes::eigen, count, eigen);
      for (int k = 0; k < D * D; ++k) scaling.vectors(k % D, k / D) = eigen[k];
      for (int k = 0; k < D; ++k) scaling.root(k) = eigen[D * D + k];
    }
    node_scaling_backward<Family, P>(normalisation_, scaling, scale_bar, degree_bar);
    detail::store_rows<Sizes::gram>(degree_bar.data(), count, degree_bars + first * Sizes::gram);
  }

  Normalisation normalisation_ = Normalisation::augmented;
  Buffer<S> degree_block_, scale_, eigen_;
};

}  // namespace sheafnn::layers
