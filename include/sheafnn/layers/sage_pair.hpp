/// \file
/// SagePair: two convolutions with the mean over neighbours side by side, each of them
///
///     Z = mean over neighbours of (P W) + X V + 1 bᵀ,   P = X or, projected, P = ReLU(X W_p + 1 b_pᵀ),
///
/// for groups of rows, with the backward pass. The mean at a node is over the arcs that enter it; without such arcs it
/// is 0. It commutes with the product, which comes first. Rows of Z's width are added instead of rows of X's, and what is
/// not local to a node is that sum alone. Source: math: "Learners of node maps"; Inductive Representation Learning on Large
/// Graphs (Hamilton, Ying, Leskovec).
#pragma once

#include <algorithm>
#include <array>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/tile.hpp"
#include "sheafnn/graph/directed_arcs.hpp"
#include "sheafnn/layers/halo_rows.hpp"
#include "sheafnn/layers/limits.hpp"
#include "sheafnn/layers/linear_pair.hpp"
#include "sheafnn/layers/neighbour_rows.hpp"
#include "sheafnn/layers/node_chunks.hpp"
#include "sheafnn/layers/weights.hpp"
#include "sheafnn/nn/activation.hpp"

namespace sheafnn::detail {

/// y ∘= [x > 0].
template <class S>
void keep_where_positive(Index count, const S* x, S* y) {
  for_tiles<S>(0, count,
               [&]<class T>(auto i) { i.store(y + i, select(i.load(x + i) > T(S(0)), i.load(y + i), T(S(0)))); });
}
/// x = max(x, 0); not a number stays one.
template <class S>
void keep_positive(Index count, S* x) {
  for_tiles<S>(0, count, [&]<class T>(auto i) { i.store(x + i, activate<Activation::relu>(i.load(x + i))); });
}

}  // namespace sheafnn::detail

namespace sheafnn::layers {

/// The convolutions of a pair with the same shape on one graph. Unchecked: in what works on groups of rows, their
/// indices and the sizes of arrays.
template <class S>
class SagePair {
 public:
  /// \param arcs             what it views must outlive the pair
  /// \param inputs, outputs  of each convolution: i and o, 1 … 10240
  /// \param shared           do both read the same X? Then its rows have i values, otherwise 2i
  /// \throws std::invalid_argument  inputs or outputs out of range
  SagePair(const ArcLists& arcs, Index inputs, Index outputs, bool shared, bool projected)
      : arcs_((require_between("inputs", inputs, 1, detail::max_learner_size),
               require_between("outputs", outputs, 1, detail::max_learner_size), arcs)),
        projected_(projected),
        projection_(projected ? LinearPair<S>(inputs, inputs, shared) : LinearPair<S>()),
        neighbour_(inputs, outputs, shared && !projected),
        self_(inputs, outputs, shared),
        share_(arcs.rows()),
        kept_(projected ? arcs.nodes * 2 * inputs : 0) {
    for (Index u = 0; u < arcs.rows(); ++u) {
      share_[u] = arcs.in_degree(u) > 0 ? S(1) / static_cast<S>(arcs.in_degree(u)) : S(0);
    }
  }

  /// Length of a row of Z.
  [[nodiscard]] Index outputs() const noexcept { return self_.outputs(); }

  /// Takes the weights of a pass. \throws std::invalid_argument  weights of another shape
  void bind(const std::array<SageWeights<const S>, 2>& weights, bool training) {
    const auto& [a, b] = weights;
    for (const SageWeights<const S>& one : weights)
      require_size(one.neighbour.bias, outputs() / 2, "neighbour bias");
    neighbour_.bind({LinearWeights<const S>{a.neighbour.weight, {}}, {b.neighbour.weight, {}}}, training);
    self_.bind({LinearWeights<const S>{a.self, a.neighbour.bias}, {b.self, b.neighbour.bias}}, training);
    if (projected_) projection_.bind({a.projection, b.projection}, training);
  }

  /// What is local to the nodes of a group: `product` = P W and z = X V + b at their rows.
  ///
  /// \param x      the rows of these nodes, `x_stride` apart
  /// \param keep   for backward_rows()
  void start_rows(Index first, Index count, const S* x, Index x_stride, S* product, S* z, bool keep) {
    const Index row = outputs();
    if (projected_) {
      S scratch[detail::row_scratch];
      const Index width = projection_.outputs(), step = detail::scratch_rows(width, count);
      for (Index begin = 0; begin < count; begin += step) {
        const Index rows = std::min(step, count - begin);
        S* p = keep ? kept_.data() + (first + begin) * width : scratch;
        projection_.forward_rows(rows, x + begin * x_stride, x_stride, p);
        detail::keep_positive(rows * width, p);
        neighbour_.forward_rows(rows, p, width, product + (first + begin) * row);
      }
    } else {
      neighbour_.forward_rows(count, x, x_stride, product + first * row);
    }
    self_.forward_rows(count, x, x_stride, z + first * row);
  }
  /// On a part of a graph: copies the rows of the halo, of `product` or of Z̄, from their owners.
  void fetch(S* rows) const { detail::fetch_halo(arcs_.part, rows, outputs()); }
  /// z += mean over neighbours, at some nodes, after `product` is complete for all nodes.
  void finish_rows(Index first, Index count, const S* product, S* z) const {
    const Index row = outputs();
    for (Index u = first; u < first + count; ++u) {
      const S share = share_[u];
      detail::for_tile_groups<S, 4>(row, [&]<class T, int Tiles>(auto c) {
        T sum[Tiles];
        SHEAFNN_UNROLL for (int t = 0; t < Tiles; ++t) sum[t] = T(S(0));
        detail::for_neighbour_rows<Tiles * T::width>(arcs_.in, arcs_.nodes, u, product + c, row,
                                                     [&](std::int32_t, const S* from) SHEAFNN_INLINE_LAMBDA {
                                                       SHEAFNN_UNROLL for (int t = 0; t < Tiles; ++t) sum[t] +=
                                                           c.load(t, from);
                                                     });
        S* to = z + u * row + c;
        SHEAFNN_UNROLL for (int t = 0; t < Tiles; ++t) { c.store(t, to, c.load(t, to) + T(share) * sum[t]); }
      });
    }
  }

  /// Number of sums that backward_rows() adds to.
  [[nodiscard]] Index partial_size() const noexcept {
    return neighbour_.partial_size() + self_.partial_size() + (projected_ ? projection_.partial_size() : 0);
  }
  /// Computes the derivative of X at a group of nodes, and the group's share of the weights' derivatives. It reads the
  /// derivative of Z at all nodes (arcs.rows() rows). With M the mean over neighbours, G = Mᵀ Z̄ the derivative of P W:
  ///
  ///     W̄ += Pᵀ G,  V̄ += Xᵀ Z̄,  b̄ += Z̄ᵀ 1,  P̄ = G Wᵀ,  X̄ = Z̄ Vᵀ + P̄;
  ///
  /// projected, X̄ = Z̄ Vᵀ + (P̄ ∘ [P > 0]) W_pᵀ, W̄_p += Xᵀ (P̄ ∘ [P > 0]).
  ///
  /// \param x, x_bar    rows of these nodes, `x_stride` apart
  /// \param bar         Z̄, n × outputs()
  /// \param accumulate  add to x_bar instead of overwriting it
  void backward_rows(Index first, Index count, const S* x, Index x_stride, const S* bar, S* x_bar, bool accumulate,
                     S* partial) const {
    S product_bar[detail::row_scratch], p_bar[detail::row_scratch];
    S* self_partial = partial + neighbour_.partial_size();
    S* projection_partial = self_partial + self_.partial_size();
    const Index row = outputs(), step = detail::scratch_rows(std::max(row, projection_.outputs()), count);
    for (Index begin = 0; begin < count; begin += step, x += step * x_stride, x_bar += step * x_stride) {
      const Index rows = std::min(step, count - begin);
      spread_mean(first + begin, rows, bar, product_bar);
      const S* own = bar + (first + begin) * row;
      self_.weight_rows(rows, x, x_stride, own, self_partial);
      self_.input_rows(rows, own, x_bar, x_stride, accumulate);
      if (!projected_) {
        neighbour_.weight_rows(rows, x, x_stride, product_bar, partial);
        neighbour_.input_rows(rows, product_bar, x_bar, x_stride, true);
        continue;
      }
      const Index width = projection_.outputs();
      const S* p = kept_.data() + (first + begin) * width;
      neighbour_.weight_rows(rows, p, width, product_bar, partial);
      neighbour_.input_rows(rows, product_bar, p_bar, width, false);
      detail::keep_where_positive(rows * width, p, p_bar);
      projection_.weight_rows(rows, x, x_stride, p_bar, projection_partial);
      projection_.input_rows(rows, p_bar, x_bar, x_stride, true);
    }
  }
  /// Adds sums of backward_rows() to derivatives. \throws std::invalid_argument  weights of another shape
  void add_partial(const S* partial, const std::array<SageWeights<S>, 2>& weights_bar) const {
    const auto& [a, b] = weights_bar;
    const S* self_partial = partial + neighbour_.partial_size();
    neighbour_.add_partial(partial, {LinearWeights<S>{a.neighbour.weight, {}}, {b.neighbour.weight, {}}});
    self_.add_partial(self_partial, {LinearWeights<S>{a.self, a.neighbour.bias}, {b.self, b.neighbour.bias}});
    if (projected_) projection_.add_partial(self_partial + self_.partial_size(), {a.projection, b.projection});
  }

 private:
  /// Rows of the derivative of P W at some nodes, from the derivative of Z.
  void spread_mean(Index first, Index count, const S* bar, S* product_bar) const {
    const Index row = outputs();
    for (Index u = first; u < first + count; ++u, product_bar += row) {
      detail::for_tile_groups<S, 4>(row, [&]<class T, int Tiles>(auto c) {
        T sum[Tiles];
        SHEAFNN_UNROLL for (int t = 0; t < Tiles; ++t) sum[t] = T(S(0));
        detail::for_neighbour_rows<Tiles * T::width>(arcs_.out, arcs_.nodes, u, bar + c, row,
                                                     [&](std::int32_t v, const S* from) SHEAFNN_INLINE_LAMBDA {
                                                       const T share = T(share_[v]);
                                                       SHEAFNN_UNROLL for (int t = 0; t < Tiles; ++t) sum[t] +=
                                                           share * c.load(t, from);
                                                     });
        SHEAFNN_UNROLL for (int t = 0; t < Tiles; ++t) c.store(t, product_bar + c, sum[t]);
      });
    }
  }

  ArcLists arcs_;
  bool projected_;
  LinearPair<S> projection_, neighbour_, self_;
  Buffer<S> share_;  ///< 1 / deg⁻ of every node
  Buffer<S> kept_;   ///< P, n × 2i
};

}  // namespace sheafnn::layers
