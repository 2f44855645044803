/// \file
/// LaplacianStep: Z = Δ X inside a layer, with its backward pass to X and to the sheaf (math: "Diffusion in three steps"
/// (3.15)). On a part of a graph it fetches the rows of the halo that it reads.
///
/// In formulas S_u scales node u (Δ = S L S, W = S X, R = L W, Z = S R); in code S is the scalar type.
///
/// forward() and backward() read and write whole arrays. A layer may compute at a node while Z is in registers instead: begin(),
/// scale() and diffuse(), then begin_backward() and end_backward(). Unchecked: in these, shapes of views and arrays, and
/// call.scratch, which evaluations overwrite; layers check them.
#pragma once

#include <vector>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/core/tile.hpp"
#include "sheafnn/layers/diffusion.hpp"
#include "sheafnn/layers/halo_rows.hpp"
#include "sheafnn/layers/layer.hpp"
#include "sheafnn/layers/node_chunks.hpp"

namespace sheafnn::detail {

/// The sum of the rows of two arrays, as FeatureMixing::backward() takes the derivative of its output.
template <class S>
[[nodiscard]] auto sum_of_rows(const S* a, const S* b, Index row) {
  return [=](Index first, Index rows, S* sum) -> const S* {
    const S *const x = a + first * row, *const y = b + first * row;
    for_tiles<S>(0, rows * row, [&]<class T>(auto i) { i.store(sum + i, i.load(x + i) + i.load(y + i)); });
    return sum;
  };
}

}  // namespace sheafnn::detail

namespace sheafnn::layers {

/// Buffers of one step on one graph. Features are n × d' × f; of X, Z and their derivatives only rows of own nodes count.
template <RestrictionMapFamily Family, class S>
class LaplacianStep {
 public:
  /// `graph` and `shape` must outlive the step. Unchecked: the shape is of the graph and family; a WeightedLayer checks it
  ///
  /// \param gives_z  begin_backward() hands z over
  LaplacianStep(const Graph& graph, const DiffusionShape<S>& shape, bool gives_z = false)
      : graph_(&graph),
        shape_(&shape),
        keep_(is_learned<Family> || gives_z),
        diffused_(keep_ ? graph.node_count() * shape.row() : 0, to_be_written) {
    if (keep_) detail::clear_halo(graph, diffused_.data(), shape.row());
  }

  /// z = Δ x at the nodes of the call, one row each. An evaluation overwrites call.scratch.
  ///
  /// \param x  own nodes × d' f; stays in place until backward()
  /// \throws std::invalid_argument  features of another shape
  void forward(const LayerCall<Family, S>& call, const MatrixView<const S>& x, const FeatureView<S>& z) {
    require_array(x, graph_->own_node_count(), shape_->row(), "x");
    require_shape(z, call.nodes.count(), shape_->coordinates, shape_->channels, "z");
    if (!call.training) {
      require_shape(call.scratch, graph_->node_count(), shape_->coordinates, shape_->channels, "scratch");
    }
    begin(call);
    scale(call, x.data());
    diffuse(call, x.data(), z.data(),
            [](const auto&, Index, Index, const auto& value) SHEAFNN_INLINE_LAMBDA { return value; });
  }
  /// Computes Δ z̄, the derivative of x, and the derivatives of the sheaf's blocks, from the derivative of z.
  /// Overwrites call.scratch[1]. Unchecked: forward() came before.
  ///
  /// \param z_bar  of the shape of z; must not be scratch[1], and not x_bar
  /// \param x_bar  n × d' × f, overwritten; rows of the halo become 0
  /// \throws std::invalid_argument  features of another shape
  void backward(const LayerBackwardCall<Family, S>& call, const FeatureView<const S>& z_bar,
                const FeatureView<S>& x_bar) {
    const Index f = shape_->channels, d = shape_->coordinates;
    require_shape(z_bar, nodes_.count(), d, f, "z_bar");
    require_shape(x_bar, graph_->node_count(), d, f, "x_bar");
    require_shape(call.scratch[1], graph_->node_count(), d, f, "scratch[1]");
    const S* const bar = z_bar.data();
    chunks().for_each(call.execution, [&](Index, Index begin, Index end) {
      begin_backward<false>(call, begin, end, x_bar.data(), [&]<class T>(const auto& walk) {
        walk([=](const auto& c, Index, Index at, Index, const T&)
                 SHEAFNN_INLINE_LAMBDA { return c.load(bar + at); });
      });
    });
    end_backward(call, x_bar.data());
    detail::clear_halo(*graph_, x_bar.data(), shape_->row());
  }

  /// Begins a forward pass. An evaluation keeps nothing.
  ///
  /// \param scaled  memory for the W of a training pass, n × d' × f, which end_backward() reads; null: the step's own
  void begin(const LayerCall<Family, S>& call, S* scaled = nullptr) {
    nodes_ = call.nodes;
    w_ = call.scratch.data();
    if (!call.training) return;
    if (scaled == nullptr && scaled_.empty()) {
      scaled_.resize(graph_->node_count() * shape_->row(), to_be_written);
      detail::clear_halo(*graph_, scaled_.data(), shape_->row());
    }
    w_ = scaled != nullptr ? scaled : scaled_.data();
  }
  /// W = S X, a step before diffuse(), for the rows x of `count` own nodes from `first` on.
  void scale(const SheafBlocks<Family, S>& sheaf, Index first, Index count, const S* x) {
    detail::scale_rows<Family>(*shape_, sheaf, first, count, x, w_ + first * shape_->row());
  }
  /// The same for all own nodes.
  void scale(const LayerCall<Family, S>& call, const S* x) {
    parallel_for(call.execution, graph_->own_node_count(), 16, [&](Index begin, Index end) {
      scale(call.sheaf, begin, end - begin, x + begin * shape_->row());
    });
  }
  /// Writes value(c, in, i, z), z = Δ x, to `out`, with a row for each node of the call. i is a coordinate of a node, c a tile
  /// of channels (core/tile.hpp), and `in` the place in features of all nodes. Several threads call it.
  ///
  /// \param x  own nodes × d' f, of which scale() has had all rows; stays in place until end_backward()
  template <class Value>
  void diffuse(const LayerCall<Family, S>& call, const S* x, S* out, const Value& value) {
    input_ = x;
    const NodeSelection nodes = nodes_;
    const Index f = shape_->channels, row = shape_->row();
    S* const diffused = diffused_.data();
    const bool keep = call.training && keep_;
    detail::with_halo(*graph_, nodes, w_, row, [&](Index from, Index to) {
      detail::apply_laplacian<Family>(call.execution, *graph_, *shape_, call.sheaf, nodes, from, to, w_,
                                      [=]<class T, int N>(Index index, Index i, auto c, const T* r, const T* z) {
                                        const Index in = nodes[index] * row + i * f + c,
                                                    at = index * row + i * f + c;
                                        T values[N];
                                        SHEAFNN_UNROLL for (int k = 0; k < N; ++k) values[k] =
                                            value(c, in + k * f, i + k, z[k]);
                                        if (keep) {
                                          SHEAFNN_UNROLL for (int k = 0; k < N; ++k)
                                              c.store(diffused + in + k * f, r[k]);
                                        }
                                        SHEAFNN_UNROLL for (int k = 0; k < N; ++k)
                                            c.store(out + at + k * f, values[k]);
                                      });
    });
  }

  /// See Layer::list_memory().
  void list_memory(std::vector<Buffer<S>*>& list) {
    list.push_back(&scaled_);
    list.push_back(&diffused_);
  }
  /// The partition of the own nodes for sums over them, which do not depend on the number of threads.
  [[nodiscard]] NodeChunks chunks() const noexcept { return detail::chunks_of_groups(graph_->own_node_count()); }
  /// The first half of the backward pass at own nodes [begin, end), by the calling thread: r̄ = S z̄, and S̄_u (+)= z̄_u r_uᵀ.
  ///
  /// r̄ goes to call.scratch[1], or where that is empty to the place of R. Where the pass computed nothing, x_bar becomes 0.
  ///
  ///     step.begin_backward<true>(call, begin, end, x_bar, [&]<class T>(const auto& walk) {
  ///       T sum = T(S(0));  // over the nodes, at channels of this tile
  ///       walk([&](const auto& c, Index in, Index at, Index i, const T& z) {
  ///         sum += z;
  ///         return c.load(output_bar + at);  // z̄
  ///       });
  ///     });
  ///
  /// For every tile T of channels it calls each.template operator()<T>(walk), which calls walk(z_bar) once. It calls
  /// z_bar(c, in, at, i, z) for coordinate i of every node. c and `in` are as in diffuse(), and `at` is the place in rows of
  /// the call's nodes. z_bar returns z̄.
  ///
  /// \tparam WithZ  z is handed over; otherwise it is unspecified
  template <bool WithZ, class Each>
  void begin_backward(const LayerBackwardCall<Family, S>& call, Index begin, Index end, S* x_bar,
                      const Each& each) {
    constexpr int gram = BlockSizes<Family>::gram;
    const Index f = shape_->channels, row = shape_->row();
    S* const r_bar = r_bar_of(call);
    detail::for_tiles<S>(0, f, [&]<class T>(auto c) {
      const bool add = call.accumulate || c > 0;
      each.template operator()<T>([&](const auto& z_bar) {
        Index index = nodes_.lower_bound(begin);
        for (Index u = begin; u < end; ++u) {
          const Index in = u * row + c;
          S* const scale_bar = call.sheaf_gradient.scale_bar.data() + u * gram;
          if (index == nodes_.count() || nodes_[index] != u) {
            detail::clear_node<Family>(c, *shape_, in, x_bar, r_bar, scale_bar, add);
            continue;
          }
          const Index at = index++ * row + c;
          detail::scaling_backward<Family, WithZ>(c, *shape_, call.sheaf, u,
                                                  keep_ ? diffused_.data() + in : nullptr, r_bar + in, scale_bar,
                                                  add, [&](Index i, const T& z) SHEAFNN_INLINE_LAMBDA {
                                                    return z_bar(c, in + i * f, at + i * f, i, z);
                                                  });
        }
      });
    });
  }
  /// The second half, after the first one at all own nodes: the derivative of x, and the rest of the derivatives of the sheaf's
  /// blocks.
  ///
  /// \param x_bar  n × d' × f, overwritten at own nodes; may be the x of diffuse()
  SHEAFNN_NOINLINE void end_backward(const LayerBackwardCall<Family, S>& call, S* x_bar) {
    S* const r_bar = r_bar_of(call);
    detail::with_halo(*graph_, NodeSelection(graph_->node_count()), r_bar, shape_->row(),
                      [&](Index from, Index to) {
                        detail::apply_laplacian_backward<Family>(call.execution, *graph_, *shape_, call.sheaf,
                                                                 from, to, {input_, w_, r_bar}, x_bar,
                                                                 call.sheaf_gradient, call.accumulate);
                      });
  }

 private:
  /// Unchecked: R is kept where scratch[1] is empty.
  [[nodiscard]] S* r_bar_of(const LayerBackwardCall<Family, S>& call) noexcept {
    return call.scratch[1].data() == nullptr ? diffused_.data() : call.scratch[1].data();
  }

  const Graph* graph_;
  const DiffusionShape<S>* shape_;
  bool keep_;
  Buffer<S> scaled_;    ///< W = S X of a training pass, where there is no other memory for it
  Buffer<S> diffused_;  ///< R = L W at the nodes of the pass, where it is kept
  S* w_ = nullptr;      ///< W of the last pass
  const S* input_ = nullptr;
  NodeSelection nodes_;
};

}  // namespace sheafnn::layers
