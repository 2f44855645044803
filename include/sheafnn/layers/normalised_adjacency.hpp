/// \file
/// NormalisedAdjacency: products of rows of features with Â = D^{-1/2} A D^{-1/2} or D^{-1} A, or with Âᵀ. A is the
/// adjacency matrix of a graph, with or without self-loops, and D its row sums. Rows of nodes without neighbours are 0. On a
/// part of a graph there are rows of the owned nodes, and row sums are the whole's. Source: math: "Heat on a flat bundle".
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/config.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/core/tile.hpp"
#include "sheafnn/core/views.hpp"
#include "sheafnn/graph/directed_arcs.hpp"
#include "sheafnn/layers/halo_rows.hpp"
#include "sheafnn/layers/heat_options.hpp"
#include "sheafnn/layers/neighbour_rows.hpp"

namespace sheafnn::layers {

/// Â_uv = l_u r_v for neighbours. Unchecked: indices of nodes and the sizes of arrays.
template <class S>
class NormalisedAdjacency {
 public:
  /// \param graph  undirected; must outlive it
  NormalisedAdjacency(const Graph& graph, AdjacencyNormalisation normalisation, bool self_loops)
      : arcs_(arc_lists(graph)), self_loops_(self_loops) {
    for (Buffer<S>* one : {&left_, &right_}) one->resize(rows());
    for (Index u = 0; u < rows(); ++u) {
      const double d = degree(u), inverse = d > 0 ? 1 / d : 0;
      const bool symmetric = normalisation == AdjacencyNormalisation::symmetric;
      left_[u] = static_cast<S>(symmetric ? std::sqrt(inverse) : inverse);
      right_[u] = static_cast<S>(symmetric ? std::sqrt(inverse) : 1.0);
    }
  }
  NormalisedAdjacency(const Graph&&, AdjacencyNormalisation, bool) = delete;  // it would dangle

  [[nodiscard]] Index nodes() const noexcept { return arcs_.nodes; }
  /// Nodes whose rows a product reads: on a part of a graph also the halo's.
  [[nodiscard]] Index rows() const noexcept { return arcs_.rows(); }
  [[nodiscard]] GraphPart* part() const noexcept { return arcs_.part; }
  [[nodiscard]] NeighbourLists neighbours() const noexcept { return arcs_.out; }
  /// The row sum of A.
  [[nodiscard]] double degree(Index u) const noexcept {
    return static_cast<double>(arcs_.in_degree(u)) + (self_loops_ ? 1 : 0);  // as many leave it
  }
  [[nodiscard]] bool self_loops() const noexcept { return self_loops_; }
  /// l and r of all rows.
  [[nodiscard]] const Buffer<S>& left() const noexcept { return left_; }
  [[nodiscard]] const Buffer<S>& right() const noexcept { return right_; }

  /// Calls use.template operator()<T, Tiles>(u, c, row) for the rows of Â x at nodes [begin, end), in groups c of tiles;
  /// `row` has the tiles' values.
  ///
  /// \param transposed  Âᵀ x instead
  /// \param x           rows() rows of `width` values, `stride` apart
  template <class Use>
  void product_rows(bool transposed, Index begin, Index end, const S* x, Index stride, Index width,
                    const Use& use) const {
    const S* own = transposed ? right_.data() : left_.data();
    const S* other = transposed ? left_.data() : right_.data();
    for (Index u = begin; u < end; ++u) {
      detail::for_tile_groups<S, 4>(width, [&]<class T, int Tiles>(auto c) {
        T sum[Tiles];
        SHEAFNN_UNROLL for (int t = 0; t < Tiles; ++t) {
          sum[t] = self_loops_ ? T(other[u]) * c.load(t, x + u * stride + c) : T(S(0));
        }
        detail::for_neighbour_rows<Tiles * T::width>(arcs_.out, nodes(), u, x + c, stride,
                                                     [&](std::int32_t v, const S* from) SHEAFNN_INLINE_LAMBDA {
                                                       const T share = T(other[v]);
                                                       SHEAFNN_UNROLL for (int t = 0; t < Tiles; ++t) sum[t] +=
                                                           share * c.load(t, from);
                                                     });
        SHEAFNN_UNROLL for (int t = 0; t < Tiles; ++t) sum[t] = T(own[u]) * sum[t];
        use.template operator()<T, Tiles>(u, c, sum);
      });
    }
  }
  /// y = (y +) Â x, or Âᵀ x. On a part of a graph all parts call it, one product at a time.
  ///
  /// \param x, y  n rows of as many values; they do not overlap
  void multiply(Execution execution, bool transposed, const MatrixView<const S>& x, const MatrixView<S>& y,
                bool accumulate) const {
    const MatrixView<const S> read = with_halo(execution, x);
    parallel_for(execution, nodes(), 16, [&](Index begin, Index end) {
      product_rows(transposed, begin, end, read.data(), read.stride(), read.columns(),
                   [&]<class T, int Tiles>(Index u, auto c, const T(&row)[Tiles]) SHEAFNN_INLINE_LAMBDA {
                     S* to = y.row(u).data() + c;
                     SHEAFNN_UNROLL for (int t = 0; t < Tiles; ++t) {
                       c.store(t, to, accumulate ? c.load(t, to) + row[t] : row[t]);
                     }
                   });
    });
  }

 private:
  /// x, on a part of a graph with the rows of the halo.
  [[nodiscard]] MatrixView<const S> with_halo(Execution execution, const MatrixView<const S>& x) const {
    if (part() == nullptr) return x;
    const Index width = x.columns();
    if (fetched_.size() < rows() * width) fetched_.resize(rows() * width);
    parallel_for(execution, nodes(), 64, [&](Index begin, Index end) {
      for (Index u = begin; u < end; ++u) std::copy_n(x.row(u).data(), width, fetched_.data() + u * width);
    });
    detail::fetch_halo(part(), fetched_.data(), width);
    return {fetched_.data(), rows(), width};
  }

  ArcLists arcs_;
  bool self_loops_;
  Buffer<S> left_, right_;     ///< l and r
  mutable Buffer<S> fetched_;  ///< on a part of a graph: what a product reads
};

}  // namespace sheafnn::layers
