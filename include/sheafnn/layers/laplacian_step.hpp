/// \file
/// LaplacianStep: Z = Δ X inside a layer of your own, with its backward pass to X and to the sheaf (math: "Diffusion in
/// three steps" (3.15)). On a part of a graph it fetches the rows of the halo that it reads.
#pragma once

#include <algorithm>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/layers/diffusion.hpp"
#include "sheafnn/layers/halo_rows.hpp"
#include "sheafnn/layers/layer.hpp"

namespace sheafnn {

/// Buffers of one step on one graph. Features are n × d' × f; of X, Z and their derivatives only rows of own nodes count.
template <RestrictionMapFamily Family, class S>
class LaplacianStep {
 public:
  /// `graph` and `shape` must outlive the step. Unchecked: the shape is of the graph and family; a WeightedLayer checks it
  LaplacianStep(const Graph& graph, const DiffusionShape<S>& shape)
      : graph_(&graph),
        shape_(&shape),
        scaled_(graph.node_count() * shape.row()),
        diffused_(is_learned<Family> ? scaled_.size() : 0) {}

  /// z = Δ x at the nodes of the call, one row each.
  ///
  /// \param x  own nodes × d' f; stays in place until backward()
  /// \throws std::invalid_argument  features of another shape
  void forward(const LayerCall<Family, S>& call, const MatrixView<const S>& x, const FeatureView<S>& z) {
    require_array(x, graph_->own_node_count(), shape_->row(), "x");
    require_shape(z, call.nodes.count(), shape_->coordinates, shape_->channels, "z");
    input_ = x.data();
    nodes_ = call.nodes;
    const Index f = shape_->channels, row = shape_->row();
    parallel_for(call.execution, graph_->own_node_count(), 16, [&](Index begin, Index end) {
      detail::scale_rows<Family>(*shape_, call.sheaf, begin, end - begin, input_ + begin * row,
                                 scaled_.data() + begin * row);
    });
    S *const diffused = diffused_.data(), *const out = z.data();
    detail::with_halo(*graph_, nodes_, scaled_.data(), row, [&](Index from, Index to) {
      detail::apply_laplacian<Family>(call.execution, *graph_, *shape_, call.sheaf, nodes_, from, to,
                                      scaled_.data(),
                                      [=]<class T, int N>(Index index, Index i, auto c, const T* r,
                                                          const T* z_tile) {
                                        for (int k = 0; k < N; ++k) {
                                          const Index at = index * row + (i + k) * f + c;
                                          if (is_learned<Family>) c.store(diffused + at, r[k]);
                                          c.store(out + at, z_tile[k]);
                                        }
                                      });
    });
  }

  /// From the derivative of z to Δ z̄, the derivative of x, and to the derivatives of the sheaf's blocks. Overwrites
  /// call.scratch[1]. Unchecked: forward() came before.
  ///
  /// \param z_bar  of the shape of z; must not be scratch[1], and not x_bar
  /// \param x_bar  n × d' × f, overwritten; rows of the halo become 0
  /// \throws std::invalid_argument  features of another shape
  void backward(const LayerBackwardCall<Family, S>& call, const FeatureView<const S>& z_bar,
                const FeatureView<S>& x_bar) {
    constexpr int gram = BlockSizes<Family>::gram;
    const Index f = shape_->channels, d = shape_->coordinates, row = shape_->row();
    require_shape(z_bar, nodes_.count(), d, f, "z_bar");
    require_shape(x_bar, graph_->node_count(), d, f, "x_bar");
    require_shape(call.scratch[1], graph_->node_count(), d, f, "scratch[1]");
    S* const r_bar = call.scratch[1].data();
    parallel_for(call.execution, graph_->own_node_count(), 16, [&](Index begin, Index end) {
      detail::for_tiles<S>(0, f, [&]<class T>(auto c) {
        const bool add = call.accumulate || c > 0;
        Index index = nodes_.lower_bound(begin);
        for (Index u = begin; u < end; ++u) {
          S* const out = r_bar + u * row + c;
          S* const scale_bar = call.sheaf_gradient.scale_bar.data() + u * gram;
          if (index == nodes_.count() || nodes_[index] != u) {
            detail::clear_node<Family>(c, *shape_, u * row + c, x_bar.data(), r_bar, scale_bar, add);
            continue;
          }
          const Index from = index++ * row + c;
          detail::scaling_backward<Family, false>(c, *shape_, call.sheaf, u,
                                                  is_learned<Family> ? diffused_.data() + from : nullptr, out,
                                                  scale_bar, add, [&](Index i, const T&) {
                                                    return c.load(z_bar.data() + from + i * f);
                                                  });
        }
      });
    });
    detail::with_halo(*graph_, NodeSelection(graph_->node_count()), r_bar, row, [&](Index from, Index to) {
      detail::apply_laplacian_backward<Family>(call.execution, *graph_, *shape_, call.sheaf, from, to,
                                               {input_, scaled_.data(), r_bar}, x_bar.data(), call.sheaf_gradient,
                                               call.accumulate);
    });
    detail::clear_halo(*graph_, x_bar.data(), row);
  }

 private:
  const Graph* graph_;
  const DiffusionShape<S>* shape_;
  Buffer<S> scaled_;    ///< W = S X
  Buffer<S> diffused_;  ///< R = L W; of learned maps
  const S* input_ = nullptr;
  NodeSelection nodes_;
};

}  // namespace sheafnn
