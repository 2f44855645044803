/// \file
/// DiffusionField: the right-hand side of continuous-time sheaf diffusion,
///
///     dX/dt = f(X) = −ELU(Δ (I ⊗ A) X Bᵀ),
///
/// and the product of its transposed Jacobian with a vector (math: "Continuous-time diffusion"). Made of the steps of
/// DiffusionLayer: FeatureMixing, then Δ = S L S in three steps. On a part of a graph it computes the rows of owned nodes.
/// It exchanges the rows of W = S Y, or of S z̄, that it reads in the halo.
#pragma once

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/graph/node_selection.hpp"
#include "sheafnn/kernels/flow.hpp"
#include "sheafnn/layers/diffusion.hpp"
#include "sheafnn/layers/feature_mixing.hpp"
#include "sheafnn/layers/flow_options.hpp"
#include "sheafnn/layers/halo_rows.hpp"
#include "sheafnn/layers/runge_kutta.hpp"

namespace sheafnn::layers {

/// Buffers of one evaluation on one graph. Features are n × d' × f, channels innermost. Unchecked: that shape, sheaf
/// and gradients are of the graph, shapes of weights, and sizes of arrays; FlowLayer checks them.
template <RestrictionMapFamily Family, class S>
class DiffusionField {
 public:
  /// `graph` and `shape` must outlive the field.
  DiffusionField(const Graph& graph, const DiffusionShape<S>& shape, const DiffusionFieldOptions& options = {})
      : graph_(&graph),
        shape_(&shape),
        slope_{options.activation, options.negate_inside ? S(-1) : S(1)},
        mixing_(graph.own_node_count(), shape.coordinates, shape.channels, options.left, options.right),
        scaled_(graph.node_count() * shape.row()) {}

  /// slope = f(x).
  ///
  /// \param weights  A and B; ε is ignored
  /// \param x        n × d' × f; with `keep` it must not change until backward()
  /// \param keep     keep what backward() reads
  /// \param prepare  prepare(first node, nodes), from any thread: computes the rows of x of these nodes, just before they
  ///                 are read
  /// \param slope    n × d' × f, overwritten
  template <class Prepare>
  void evaluate(Execution execution, const DiffusionWeights<const S>& weights, const SheafBlocks<Family, S>& sheaf,
                const S* x, bool keep, const Prepare& prepare, S* slope) {
    const Index f = shape_->channels, row = shape_->row();
    S* w = scaled_.data();
    const auto scale = [&](Index first, Index nodes, const S* y) {
      detail::scale_rows<Family>(*shape_, sheaf, first, nodes, y, w + first * row);
    };
    mixing_.forward(execution, weights, x, Dropout{}, keep, scale, prepare);
    if (keep && diffused_.empty()) diffused_.resize(scaled_.size());
    S* diffused = keep ? diffused_.data() : nullptr;
    const auto use = [=, function = slope_]<class T, int N>(Index u, Index i, auto c, const T* r, const T* z) {
      const Index at = u * row + i * f + c;
      SHEAFNN_UNROLL for (int k = 0; k < N; ++k) c.store(slope + at + k * f, function.forward(z[k]));
      if (diffused != nullptr) {
        SHEAFNN_UNROLL for (int k = 0; k < N; ++k) c.store(diffused + at + k * f, r[k]);
      }
    };
    const NodeSelection all(graph_->node_count());
    detail::with_halo(*graph_, all, w, row, [&](Index from, Index to) {
      detail::apply_laplacian<Family>(execution, *graph_, *shape_, sheaf, all, from, to, w, use);
    });
  }

  /// x_bar = (∂f/∂x)ᵀ slope_bar at the point of the last evaluate() with `keep`, and the gradients of A and B (added to) and
  /// of the sheaf's blocks.
  ///
  /// \param accumulate  add to sheaf_gradient instead of overwriting it
  /// \param slope_bar   a sum of arrays of n × d' × f, none of which is work, x_bar or y_bar
  /// \param work        n × d' × f, overwritten, as x_bar and y_bar are
  void backward(Execution execution, const DiffusionWeights<const S>& weights, const SheafBlocks<Family, S>& sheaf,
                SheafBlocksGradient<Family, S>& sheaf_gradient, bool accumulate,
                const detail::ArraySum<S>& slope_bar, S* work, S* x_bar, S* y_bar,
                const DiffusionWeights<S>& weights_bar) {
    backward_activation(execution, sheaf, sheaf_gradient, accumulate, slope_bar, work);
    detail::with_halo(*graph_, NodeSelection(graph_->node_count()), work, shape_->row(),
                      [&](Index from, Index to) {
                        detail::apply_laplacian_backward<Family>(execution, *graph_, *shape_, sheaf, from, to,
                                                                 {mixing_.output(), scaled_.data(), work}, y_bar,
                                                                 sheaf_gradient, accumulate);
                      });
    mixing_.backward(execution, weights, nullptr, y_bar, x_bar, weights_bar);
  }

 private:
  /// Computes r̄ = S z̄, z̄ = −k̄ ∘ ELU′(q z), z = S r, and S̄_u = z̄_u r_uᵀ from k̄.
  void backward_activation(Execution execution, const SheafBlocks<Family, S>& sheaf,
                           SheafBlocksGradient<Family, S>& sheaf_gradient, bool accumulate,
                           const detail::ArraySum<S>& slope_bar, S* r_bar_rows) {
    constexpr int gram = BlockSizes<Family>::gram;
    const Index f = shape_->channels, row = shape_->row();
    const S* diffused = diffused_.data();
    parallel_for(execution, graph_->own_node_count(), 16, [&](Index begin, Index end) {
      detail::for_tiles<S>(0, f, [&]<class T>(auto c) {
        for (Index u = begin; u < end; ++u) {
          const Index at = u * row + c;
          detail::scaling_backward<Family, true>(c, *shape_, sheaf, u, diffused + at, r_bar_rows + at,
                                                 sheaf_gradient.scale_bar.data() + u * gram, accumulate || c > 0,
                                                 [&](Index i, const T& z) SHEAFNN_INLINE_LAMBDA {
                                                   return slope_.backward(slope_bar.at(c, nullptr, at + i * f), z);
                                                 });
        }
      });
    });
  }

  const Graph* graph_;
  const DiffusionShape<S>* shape_;
  kernels::FlowSlope<S> slope_;
  FeatureMixing<S> mixing_;
  Buffer<S> scaled_;    ///< W = S Y
  Buffer<S> diffused_;  ///< R = L W, allocated when first kept
};

}  // namespace sheafnn::layers
