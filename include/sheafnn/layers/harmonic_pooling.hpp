/// \file
/// HarmonicPooling: a row per graph of a disjoint union that reads the sheaf. Features pass a low pass of the sheaf's
/// Laplacian K times,
///
///     V_0 = X,   V_k = (I − Δ/2) V_{k−1},   r_g[j, c] = (δ + Σ_u |V_{k_j}[u, ·, c]|² / n_g)^{1/2},   k_j = ⌈(j + 1) K / d'⌉,
///
/// for the coordinates j = 0 … d' − 1 and channels c, sums over the n_g nodes of graph g, δ = 10⁻¹². Eigenvalues λ of Δ lie
/// in [0, 2] and become (1 − λ/2)^k. So V_k approaches the projection of X on H⁰ = ker Δ, and r its norm. No basis of H⁰, of
/// an eigenspace or of a stalk changes this norm. The backward pass has the derivatives in X and in the sheaf. Source: math:
/// "Pooling" (3.63).
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/core/views.hpp"
#include "sheafnn/graph/graph.hpp"
#include "sheafnn/layers/laplacian_step.hpp"

namespace sheafnn::layers {

/// Buffers of the pooling of one union. Features are n × d' × f.
template <RestrictionMapFamily Family, class S>
class HarmonicPooling {
 public:
  /// `graph` and `shape` must outlive the pooling. Unchecked: the shape is of the graph and family, and eigenvalues of Δ are at
  /// most 2, as with the normalisations augmented and block.
  ///
  /// \param steps  K
  /// \throws std::invalid_argument  K below 1
  HarmonicPooling(const Graph& graph, const DiffusionShape<S>& shape, Index steps)
      : graph_(&graph),
        shape_(&shape),
        pooled_(graph.graph_count() * shape.row()),
        diffused_(graph.node_count() * shape.row()),
        bar_(diffused_.size()) {
    for (Index k = 0; k < checked_extent("steps", steps); ++k) {
      steps_.emplace_back(graph, shape);
      passed_.emplace_back(diffused_.size());
    }
  }

  /// r, G × d' f, valid until the next pass.
  [[nodiscard]] MatrixView<const S> output() const noexcept {
    return {pooled_.data(), graph_->graph_count(), shape_->row()};
  }

  /// Computes output(). \param call  of all nodes; its x stays in place until backward()
  ///
  /// \throws std::invalid_argument  features of another shape
  void forward(const LayerCall<Family, S>& call) {
    const S* v = call.x.data();
    for (std::size_t k = 0; k < steps_.size(); ++k) {
      const FeatureView<S> z = view(diffused_);
      steps_[k].forward(call, {v, graph_->node_count(), shape_->row()}, z);
      S* const next = passed_[k].data();
      parallel_for(call.execution, passed_[k].size(), 4096, [&](Index begin, Index end) {
        for (Index i = begin; i < end; ++i) next[i] = v[i] - S(0.5) * z.data()[i];
      });
      v = next;
    }
    parallel_for(call.execution, graph_->graph_count(), 1, [&](Index begin, Index end) {
      for (Index g = begin; g < end; ++g) {
        for (Index j = 0; j < shape_->coordinates; ++j) take_norms(g, j);
      }
    });
  }

  /// Computes the derivatives of x (call.x_bar) and of the sheaf's blocks (call.sheaf_gradient, overwritten) from the
  /// derivative of output(). Overwrites call.scratch[1]; does not read call.output_bar.
  ///
  /// \throws std::invalid_argument  views of another shape
  void backward(const LayerBackwardCall<Family, S>& call, const MatrixView<const S>& output_bar) {
    require_array(output_bar, graph_->graph_count(), shape_->row(), "output_bar");
    LayerBackwardCall<Family, S> step = call;
    step.accumulate = false;
    const FeatureView<S> v_bar = view(bar_), z_bar = view(diffused_);
    bar_.fill(S(0));
    for (std::size_t k = steps_.size(); k-- > 0;) {
      parallel_for(call.execution, graph_->graph_count(), 1, [&](Index begin, Index end) {
        for (Index j = 0; j < shape_->coordinates; ++j) {
          if (step_of(j) != k) continue;
          for (Index g = begin; g < end; ++g) add_norms_backward(g, j, output_bar);
        }
      });
      parallel_for(call.execution, bar_.size(), 4096, [&](Index begin, Index end) {
        for (Index i = begin; i < end; ++i) z_bar.data()[i] = S(-0.5) * v_bar.data()[i];
      });
      steps_[k].backward(step, z_bar, call.x_bar);
      step.accumulate = true;
      parallel_for(call.execution, bar_.size(), 4096, [&](Index begin, Index end) {
        for (Index i = begin; i < end; ++i) v_bar.data()[i] += call.x_bar.data()[i];
      });
    }
    call.x_bar.eigen() = v_bar.eigen();
  }

 private:
  [[nodiscard]] FeatureView<S> view(Buffer<S>& buffer) const {
    return {buffer.data(), graph_->node_count(), shape_->coordinates, shape_->channels};
  }
  /// k_j − 1: which of the passes row j of output() is of.
  [[nodiscard]] std::size_t step_of(Index j) const {
    const Index d = shape_->coordinates, last = static_cast<Index>(steps_.size());
    return static_cast<std::size_t>(((j + 1) * last + d - 1) / d - 1);
  }
  /// Row j of a graph.
  void take_norms(Index g, Index j) {
    const Index f = shape_->channels, d = shape_->coordinates;
    const Index begin = graph_->first_node(g), end = graph_->first_node(g + 1);
    const S* const v = passed_[step_of(j)].data();
    S* const out = pooled_.data() + g * shape_->row() + j * f;
    std::fill_n(out, f, S(0));
    for (Index i = begin * d; i < end * d; ++i) {
      for (Index c = 0; c < f; ++c) out[c] += v[i * f + c] * v[i * f + c];
    }
    for (Index c = 0; c < f; ++c) out[c] = std::sqrt(least + out[c] / static_cast<S>(end - begin));
  }
  /// V̄ += r̄ V / (n r).
  void add_norms_backward(Index g, Index j, const MatrixView<const S>& output_bar) {
    const Index f = shape_->channels, d = shape_->coordinates, at = g * shape_->row() + j * f;
    const Index begin = graph_->first_node(g), end = graph_->first_node(g + 1);
    const S* const v = passed_[step_of(j)].data();
    for (Index i = begin * d; i < end * d; ++i) {
      for (Index c = 0; c < f; ++c) {
        bar_[i * f + c] +=
            output_bar.data()[at + c] * v[i * f + c] / (static_cast<S>(end - begin) * pooled_[at + c]);
      }
    }
  }

  static constexpr S least = S(1e-12);  ///< δ
  const Graph* graph_;
  const DiffusionShape<S>* shape_;
  std::vector<LaplacianStep<Family, S>> steps_;
  std::vector<Buffer<S>> passed_;  ///< V_1 … V_K
  Buffer<S> pooled_;               ///< r
  Buffer<S> diffused_, bar_;       ///< Δ V or the derivative of that, and V̄
};

}  // namespace sheafnn::layers
