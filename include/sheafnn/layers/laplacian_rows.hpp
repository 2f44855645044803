/// \file
/// LaplacianRows: the normalised Laplacian of a sheaf multiplied out, a block for every arc and every node,
///
///     Δ_uv = S_u L_uv S_v,   L_uv = −Q_e for u < v,   Δ_vu = Δ_uvᵀ,   Δ_uu = S_u D_u S_u,
///
/// for filters, which apply it many times, and from the derivatives of its blocks, with C_uv = Δ̄_uv + Δ̄_vuᵀ,
///
///     L̄_uv = S_u C_uv S_v,   D̄_u = S_u Δ̄_uu S_u,   S̄_u = Σ_v C_uv S_v L_uvᵀ + Δ̄_uu S_u D_u + D_u S_u Δ̄_uu
///
/// (math: "Polynomial filters"). After the learned coordinates come the coordinates of the fixed filters, whose blocks
/// are scalars: ±1/√((deg u + 1)(deg v + 1)) and deg u/(deg u + 1).
///
/// On a part of a graph SheafBlocks::fetch_scales() gives S_v of the halo's nodes, and Δ̄_vu belongs to the other part.
/// So C_uv is the share of the own arc, S̄_v the share of the own arcs which enter v.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/lane_rows.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/graph/graph.hpp"
#include "sheafnn/layers/diffusion.hpp"
#include "sheafnn/layers/sheaf_blocks.hpp"
#include "sheafnn/sheaf/family.hpp"

namespace sheafnn::detail {

/// A block of Size values: c times the identity (1), a diagonal (D) or dense, column by column (D²). Products with the
/// symmetric S of size Scale, from the left and from the right.
template <int D, int Scale, int Size, class P>
SHEAFNN_INLINE void scaled_left(const P* s, const P* a, P* out) {
  if constexpr (Size == D * D && D > 1 && Scale == Size) {
    for (int j = 0; j < D; ++j) {
      for (int i = 0; i < D; ++i) {
        P sum = s[i] * a[j * D];
        for (int k = 1; k < D; ++k) sum += s[k * D + i] * a[j * D + k];
        out[j * D + i] = sum;
      }
    }
  } else {
    for (int k = 0; k < Size; ++k) out[k] = s[Scale == 1 ? 0 : k % D] * a[k];
  }
}
template <int D, int Scale, int Size, class P>
SHEAFNN_INLINE void scaled_right(const P* a, const P* s, P* out) {
  if constexpr (Size == D * D && D > 1 && Scale == Size) {
    scaled_left<D, Scale, Size>(a, s, out);
  } else {
    constexpr bool dense = Size == D * D && D > 1;
    for (int k = 0; k < Size; ++k) out[k] = a[k] * s[Scale == 1 ? 0 : dense ? k / D : k];
  }
}
template <int D, int Size, class P>
SHEAFNN_INLINE void transposed(const P* a, P* out) {
  for (int k = 0; k < Size; ++k) out[k] = a[Size == D * D ? k % D * D + k / D : k];
}
/// The part of a bᵀ that a block of size Scale has: all, the diagonal, or its sum.
template <int D, int Scale, int Size, class P>
SHEAFNN_INLINE void product_with_transposed(const P* a, const P* b, P* out) {
  constexpr bool dense = Size == D * D && D > 1;
  if constexpr (dense && Scale == Size) {
    for (int j = 0; j < D; ++j) {
      for (int i = 0; i < D; ++i) {
        P sum = a[i] * b[j];
        for (int k = 1; k < D; ++k) sum += a[k * D + i] * b[k * D + j];
        out[j * D + i] = sum;
      }
    }
  } else {
    for (int k = 0; k < Size; ++k) {
      const int to = Scale == 1 ? 0 : k % D;
      out[to] = k == 0 || (Scale > 1 && k < D) ? a[k] * b[k] : out[to] + a[k] * b[k];
    }
  }
}

/// Blocks of Δ: the block Δ_uv per arc u→v and the block Δ_uu per node, in the order and sizes of LaplacianRows.
template <class S>
struct LaplacianBlocks {
  Buffer<S> arc, node;
};

/// The places of the blocks on one graph, how they come from a sheaf's, and the way back. Unchecked: that shape and
/// gradient are of this graph, and blocks of build().
template <RestrictionMapFamily Family, class S>
class LaplacianRows {  // NOLINT(bugprone-reserved-identifier): of clang's own loop that copies an array
 public:
  using Sizes = BlockSizes<Family>;
  static constexpr int D = Family::stalk_dimension;
  static constexpr int W = lanes<S>;
  using P = Pack<S, W>;
  /// Distances between the blocks of two arcs and of two nodes, in values.
  static constexpr int arc_stride = Sizes::transport <= 4 ? to_quads(Sizes::transport) : Sizes::transport;
  static constexpr int node_stride = Sizes::gram;

  LaplacianRows() = default;
  /// \param graph  must outlive this
  LaplacianRows(const Graph& graph, const DiffusionShape<S>& shape);

  [[nodiscard]] const Graph& graph() const noexcept { return *graph_; }
  /// The fixed filters' entries: 1/√((deg u + 1)(deg v + 1)) of an arc, deg u/(deg u + 1) of a node, or without the ones.
  [[nodiscard]] const S* arc_weight() const noexcept { return arc_weight_.data(); }
  [[nodiscard]] const S* node_weight() const noexcept { return node_weight_.data(); }

  /// Does it belong to a graph?
  [[nodiscard]] bool is_built() const noexcept { return graph_ != nullptr; }

  /// Computes the blocks of Δ from the sheaf's L and S. \throws std::invalid_argument  a sheaf over another graph
  void build(Execution execution, const SheafBlocks<Family, S>& sheaf, LaplacianBlocks<S>& blocks) const;

  /// Computes the derivatives of the sheaf's blocks from the derivatives of the blocks of Δ.
  ///
  /// \param parts       bar.arc and bar.node have this many parts, which are added up
  /// \param bar         derivative of the transposed Δ_vu per arc u→v, and of the transposed Δ_uu per node; overwritten
  /// \param accumulate  add to `gradient` instead of overwriting it
  void backward(Execution execution, const SheafBlocks<Family, S>& sheaf, Index parts, LaplacianBlocks<S>& bar,
                SheafBlocksGradient<Family, S>& gradient, bool accumulate) const;

 private:
  /// body(first edge or node, how many) for blocks of W.
  template <class Body>
  static void for_blocks(Execution execution, Index count, const Body& body) {
    parallel_for(execution, count, 2 * W, [&](Index begin, Index end) {
      for (Index first = begin; first < end; first += W) {
        body(first, static_cast<int>(std::min<Index>(W, end - first)));
      }
    });
  }

  const Graph* graph_ = nullptr;
  /// Per edge {u, v}, u < v, filled up with copies of the last one: u, v, and the arcs u→v, v→u.
  Buffer<std::int32_t> node_[2], arc_[2];
  Buffer<S> arc_weight_, node_weight_;
};

template <RestrictionMapFamily Family, class S>
LaplacianRows<Family, S>::LaplacianRows(const Graph& graph, const DiffusionShape<S>& shape) : graph_(&graph) {
  const Index edges = graph.edge_count();
  for (Buffer<std::int32_t>* buffer : {&node_[0], &node_[1], &arc_[0], &arc_[1]}) buffer->resize(edges + W);
  for (Index i = 0; edges > 0 && i < node_[0].size(); ++i) {
    const Index e = std::min(i, edges - 1), forward = graph.forward_arc(e);
    node_[0][i] = graph.edge(e).u;
    node_[1][i] = graph.edge(e).v;
    arc_[0][i] = static_cast<std::int32_t>(forward);
    arc_[1][i] = static_cast<std::int32_t>(graph.reverse(forward));
  }
  if (shape.filters == 0) return;
  const Buffer<S>& root = shape.inverse_root;
  arc_weight_.resize(graph.arc_count());
  node_weight_.resize(graph.node_count());
  for (Index arc = 0; arc < graph.arc_count(); ++arc) {
    arc_weight_[arc] = root[graph.source(arc)] * root[graph.target(arc)];
  }
  for (Index u = 0; u < graph.node_count(); ++u) {
    const Index degree = graph.degree(u);
    node_weight_[u] =
        degree == 0 ? S(0) : static_cast<S>(degree) / static_cast<S>(degree + (shape.augmented ? 1 : 0));
  }
}

template <RestrictionMapFamily Family, class S>
void LaplacianRows<Family, S>::build(Execution execution, const SheafBlocks<Family, S>& sheaf,
                                     LaplacianBlocks<S>& blocks) const {
  detail::require_over(*graph_, sheaf);
  constexpr int gram = Sizes::gram, size = Sizes::transport;
  if (blocks.node.empty()) {
    blocks.arc.resize(graph_->arc_count() * arc_stride + W);
    blocks.node.resize(graph_->node_count() * node_stride + W);
  }
  for_blocks(execution, graph_->edge_count(), [&](Index e, int count) {
    for (int side = 0; side < 2; ++side) {  // which other threads have read
      for (int lane = 0; lane < count; ++lane) {
        SHEAFNN_PREFETCH_TO_WRITE(blocks.arc.data() + static_cast<Index>(arc_[side][e + lane]) * arc_stride);
      }
    }
    P q[size], s[gram], part[size], block[size];
    load_rows<size>(sheaf.transport_block(e), count, q);
    gather_rows<gram>(sheaf.scale(0), node_[0].data() + e, s);
    scaled_left<D, gram, size>(s, q, part);
    gather_rows<gram>(sheaf.scale(0), node_[1].data() + e, s);
    scaled_right<D, gram, size>(part, s, block);
    for (P& number : block) number = -number;
    scatter_rows<size, arc_stride>(block, arc_[0].data() + e, count, blocks.arc.data());
    transposed<D, size>(block, part);
    scatter_rows<size, arc_stride>(part, arc_[1].data() + e, count, blocks.arc.data());
  });
  for_blocks(execution, graph_->node_count(), [&](Index u, int count) {
    P d[gram], s[gram], part[gram], block[gram];
    load_rows<gram>(sheaf.degree_block(u), count, d);
    load_rows<gram>(sheaf.scale(u), count, s);
    scaled_left<D, gram, gram>(s, d, part);
    scaled_right<D, gram, gram>(part, s, block);
    store_rows<gram>(block, count, blocks.node.data() + u * gram);
  });
}

template <RestrictionMapFamily Family, class S>
void LaplacianRows<Family, S>::backward(Execution execution, const SheafBlocks<Family, S>& sheaf, Index parts,
                                        LaplacianBlocks<S>& bar, SheafBlocksGradient<Family, S>& gradient,
                                        bool accumulate) const {
  detail::require_over(*graph_, sheaf);
  constexpr int gram = Sizes::gram, size = Sizes::transport;
  const Index arc_part = graph_->arc_count() * arc_stride, node_part = graph_->node_count() * node_stride;
  if (graph_->part() != nullptr) {  // no step has written the blocks of arcs that leave the halo
    const Index first = graph_->first_arc(graph_->own_node_count());
    for (Index i = 0; i < parts; ++i) {
      std::fill_n(bar.arc.data() + i * arc_part + first * arc_stride, arc_part - first * arc_stride, S(0));
    }
  }
  const auto add_to = [&](const P* numbers, int count, S* out) {  // `gram` entries of each of `count` rows
    P sum[gram];
    for (int k = 0; k < gram; ++k) sum[k] = numbers[k];
    if (accumulate) {
      P before[gram];
      load_rows<gram>(out, count, before);
      for (int k = 0; k < gram; ++k) sum[k] += before[k];
    }
    store_rows<gram>(sum, count, out);
  };
  for_blocks(execution, graph_->edge_count(), [&](Index e, int count) {
    const std::int32_t *there = arc_[0].data() + e, *back = arc_[1].data() + e;
    P sum[size], other[size], part[size], c[size];
    for (int k = 0; k < size; ++k) sum[k] = other[k] = P(S(0));
    for (Index i = 0; i < parts; ++i) {
      gather_rows<size, arc_stride>(bar.arc.data() + i * arc_part, there, c);
      gather_rows<size, arc_stride>(bar.arc.data() + i * arc_part, back, part);
      for (int k = 0; k < size; ++k) sum[k] += c[k];
      for (int k = 0; k < size; ++k) other[k] += part[k];
    }
    transposed<D, size>(other, c);
    for (int k = 0; k < size; ++k) c[k] += sum[k];  // C_uv
    P q[size], s[2][gram], share[gram];
    load_rows<size>(sheaf.transport_block(e), count, q);
    for (P& number : q) number = -number;  // L_uv
    for (int side = 0; side < 2; ++side) {
      gather_rows<gram>(sheaf.scale(0), node_[side].data() + e, s[side]);
    }
    scaled_right<D, gram, size>(c, s[1], part);  // C S_v
    product_with_transposed<D, gram, size>(part, q, share);
    scatter_rows<gram, arc_stride>(share, there, count, bar.arc.data());
    scaled_left<D, gram, size>(s[0], part, sum);  // L̄_uv
    S* edge_bar = gradient.off_diagonal_bar.data() + e * size;
    if (accumulate) {
      load_rows<size>(edge_bar, count, part);
      for (int k = 0; k < size; ++k) sum[k] += part[k];
    }
    store_rows<size>(sum, count, edge_bar);
    transposed<D, size>(c, other);
    scaled_right<D, gram, size>(other, s[0], part);  // Cᵀ S_u
    transposed<D, size>(q, other);
    product_with_transposed<D, gram, size>(part, other, share);
    scatter_rows<gram, arc_stride>(share, back, count, bar.arc.data());
  });
  for_blocks(execution, graph_->node_count(), [&](Index first, int count) {
    alignas(64) S shares[W * gram];
    for (int lane = 0; lane < count; ++lane) {
      S sum[gram] = {};
      for (Index arc = graph_->first_arc(first + lane); arc < graph_->first_arc(first + lane + 1); ++arc) {
        for (int k = 0; k < gram; ++k) sum[k] += bar.arc[arc * arc_stride + k];
      }
      std::copy_n(sum, gram, shares + lane * gram);
    }
    P c[gram], s[gram], d[gram], part[gram], product[gram], scale_bar[gram];
    for (P& number : product) number = P(S(0));
    for (Index i = 0; i < parts; ++i) {
      load_rows<gram>(bar.node.data() + i * node_part + first * gram, count, part);
      for (int k = 0; k < gram; ++k) product[k] += part[k];
    }
    transposed<D, gram>(product, c);
    load_rows<gram>(shares, count, scale_bar);
    load_rows<gram>(sheaf.scale(first), count, s);
    load_rows<gram>(sheaf.degree_block(first), count, d);
    scaled_right<D, gram, gram>(c, s, part);  // Δ̄_uu S
    scaled_right<D, gram, gram>(part, d, product);
    for (int k = 0; k < gram; ++k) scale_bar[k] += product[k];
    scaled_left<D, gram, gram>(s, part, product);
    add_to(product, count, gradient.degree_bar.data() + first * gram);
    scaled_left<D, gram, gram>(s, c, part);  // S Δ̄_uu
    scaled_left<D, gram, gram>(d, part, product);
    for (int k = 0; k < gram; ++k) scale_bar[k] += product[k];
    add_to(scale_bar, count, gradient.scale_bar.data() + first * gram);
  });
}

}  // namespace sheafnn::detail
