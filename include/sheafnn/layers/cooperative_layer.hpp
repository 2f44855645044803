/// \file
/// CooperativeLayer: X' = (1 + tanh ε) ∘ X − act(dropout(Δ_inᵀ Δ_out (I ⊗ A) X Bᵀ)), with its backward pass.
///
/// Without the residual X' = act(dropout(…)). Features are n × D × f, channels innermost. A pass has three steps, between
/// which every node waits for its neighbours:
///
///   - enter: Y = (I ⊗ A) X Bᵀ, and what the nodes send of it;
///   - cross: Δ_out Y from what was sent, and what the nodes send of that;
///   - leave: X' from what was sent.
///
/// Each can run for one group of nodes, so callers can do the steps before enter and after leave in the same walk.
/// Source: math: "Cooperative sheaves" (4.3), "Backward pass of a cooperative layer" (4.10).
#pragma once

#include <algorithm>
#include <stdexcept>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/graph/node_selection.hpp"
#include "sheafnn/kernels/layer_end.hpp"
#include "sheafnn/kernels/node_maps.hpp"
#include "sheafnn/layers/cooperative_diffusion.hpp"
#include "sheafnn/layers/cooperative_layer_options.hpp"
#include "sheafnn/layers/diffused_row.hpp"
#include "sheafnn/layers/feature_mixing.hpp"
#include "sheafnn/nn/activation.hpp"
#include "sheafnn/nn/dropout.hpp"

namespace sheafnn::detail {

/// Buffers that layers share, since only one of them works at a time. Unchecked: the size, at least 0.
template <class S>
struct CooperativeWorkspace {
  Buffer<S> sent,
      sent_on;  ///< by the two operators, which cross and leave read at neighbours; backwards: what they return
  Buffer<S> mixed;  ///< Y of passes that keep nothing
  Buffer<S> first;  ///< Δ_out Y; backwards: the derivative of z, of Δ_out Y, of Y

  /// \param size  n · D · f
  explicit CooperativeWorkspace(Index size) {
    for (Buffer<S>* one : {&sent, &sent_on, &mixed, &first}) one->resize(size);
  }
};

}  // namespace sheafnn::detail

namespace sheafnn::layers {

/// Buffers of one layer on one graph. Unchecked: in what works on groups of rows, their indices and the sizes of
/// arrays. math: "Cooperative sheaves" (4.3).
template <int D, class S>
class CooperativeLayer {
 public:
  using Workspace = detail::CooperativeWorkspace<S>;

  /// \param arcs       what it views must outlive the layer
  /// \param channels   f, 1 … max_channels
  /// \param workspace  must outlive the layer; of arcs.rows() · D · f values
  /// \throws std::invalid_argument  channels out of range, a workspace of another size
  CooperativeLayer(const ArcLists& arcs, Index channels, const CooperativeLayerOptions& options,
                   Workspace& workspace)
      : arcs_(arcs),
        channels_((require_between("channels", channels, 1, max_channels), channels)),
        options_(options),
        work_(&workspace),
        mixing_(arcs.nodes, D, channels, options.left, options.right),
        mask_(arcs.nodes * row()) {
    require(workspace.sent.size() == arcs.rows() * row(), "workspace", workspace.sent.size(),
            detail::concat("the layer's arrays have ", arcs.rows() * row(), " numbers"));
    for (Buffer<S>* one : {&first_sum_, &slope_, &second_sum_}) one->resize(arcs.nodes * row());
  }

  /// X' at the nodes of the last forward(), one row of D × f each.
  [[nodiscard]] FeatureView<const S> output() const noexcept {
    return {output_.data(), nodes_.count(), D, channels_};
  }

  /// Computes output() at some nodes from x (n × D × f). Weights, maps, x and the list of nodes must live unchanged until
  /// backward(). Of a whole graph: on a part the caller takes the steps below, and fetches the halo's rows between them.
  ///
  /// \param dropout  of what is diffused
  /// \param nodes    of the graph. Unchecked
  /// \throws std::invalid_argument  features or weights of another shape, maps of another number of nodes, a part
  void forward(Execution execution, const DiffusionWeights<const S>& weights, const NodeMaps<D, S>& maps,
               const FeatureView<const S>& x, const Dropout& dropout, const NodeSelection& nodes) {
    require_shape(x, arcs_.nodes, D, channels_, "x");
    require(maps.node_count() == arcs_.nodes, "nodes of maps", maps.node_count(),
            detail::concat("the layer's graph has ", arcs_.nodes));
    require_whole();
    if (dropout.active()) mask_.draw(execution, dropout);
    begin(weights, maps, x.data(), dropout, nodes, true);
    if (output_.empty()) output_.resize(arcs_.nodes * row());
    detail::for_row_groups(execution, arcs_.nodes, [&](Index first, Index count) { enter_rows(first, count); });
    detail::for_row_groups(execution, arcs_.nodes, [&](Index first, Index count) { cross_rows(first, count); });
    detail::for_row_groups(execution, nodes.count(), [&](Index first, Index count) {
      leave_rows(first, count, output_.data() + first * row());
    });
  }

  void forward(Execution, const DiffusionWeights<const S>&, const NodeMaps<D, S>&&, const FeatureView<const S>&,
               const Dropout&, const NodeSelection&) = delete;  // backward() reads the maps

  /// Computes the derivatives of x, of weights (added to) and of the operators' maps from the derivative of output().
  ///
  /// \param output_bar  of the shape of output()
  /// \param x_bar       n × D × f, overwritten
  /// \throws std::invalid_argument  features or weights of another shape, maps_gradient of another graph, a part
  /// \throws std::logic_error       no pass that keeps what it reads came before
  void backward(Execution execution, NodeMapsGradient<D, S>& maps_gradient, const FeatureView<const S>& output_bar,
                const FeatureView<S>& x_bar, const DiffusionWeights<S>& weights_bar) {
    if (maps_ == nullptr || !keep_) throw std::logic_error("backward: forward() must come before it");
    require_shape(output_bar, nodes_.count(), D, channels_, "output_bar");
    require_shape(x_bar, arcs_.nodes, D, channels_, "x_bar");
    require_whole();
    require(maps_gradient.nodes == arcs_.nodes, "nodes of maps_gradient", maps_gradient.nodes,
            detail::concat("the layer's graph has ", arcs_.nodes));
    check_weights(weights_bar);
    const NodeChunks chunks = detail::chunks_of_groups(arcs_.nodes);
    const Index size = leave_partial_size() + enter_partial_size();
    Buffer<S> partial(chunks.count * size);
    const auto each = [&](const auto& body) {
      chunks.for_each(execution, [&](Index chunk, Index begin, Index end) {
        detail::for_row_groups(begin, end, [&](Index first, Index count) {
          body(first, count, partial.data() + chunk * size);
        });
      });
    };
    each([&](Index first, Index count, S* sums) {
      leave_backward_rows(first, count, output_bar.data() + nodes_.lower_bound(first) * row(), x_bar.data(),
                          maps_gradient, sums);
    });
    each([&](Index first, Index count, S*) { cross_backward_rows(first, count, maps_gradient); });
    each([&](Index first, Index count, S* sums) {
      enter_backward_rows(first, count, x_bar.data(), maps_gradient, sums + leave_partial_size());
    });
    for (Index chunk = 0; chunk < chunks.count; ++chunk) {
      add_leave_partial(partial.data() + chunk * size, weights_bar);
      add_enter_partial(partial.data() + chunk * size + leave_partial_size(), weights_bar);
    }
  }

  // The same in steps. A pass is begin() and the three steps, each for groups of nodes that cover all.

  /// Takes the arguments of a pass, which must stay unchanged until its backward pass has ended.
  ///
  /// \param x         n × D × f; may be computed later, a group before it enters
  /// \param dropout   of what is diffused; mask() must have been drawn
  /// \param training  keep what backward passes read
  /// \throws std::invalid_argument  weights of another shape
  void begin(const DiffusionWeights<const S>& weights, const NodeMaps<D, S>& maps, const S* x,
             const Dropout& dropout, const NodeSelection& nodes, bool training) {
    check_weights(weights);
    weights_ = weights;
    maps_ = &maps;
    input_ = x;
    nodes_ = nodes;
    keep_ = training;
    dropped_ = dropout.active();
    factor_ = static_cast<S>(dropout.scale());
    mixing_.begin(1, weights, x, Dropout{});
    if (training) static_cast<void>(mixing_.buffer());  // taken before threads write to it
    for (std::size_t i = 0; i < D; ++i) gain_[i] = options_.residual ? kernels::gain(weights.epsilon[i]) : S(0);
  }
  /// The mask of the dropout.
  [[nodiscard]] DropoutMask& mask() noexcept { return mask_; }

  /// Y, and a σ R Y, which the nodes send.
  void enter_rows(Index first, Index count) {
    mixing_.forward_rows(weights_, first, first + count, mixed(), [&](Index u, Index nodes, const S* y) {
      detail::send<D>(*maps_, 0, u, nodes, channels_, y, work_->sent.data());
    });
  }
  /// Δ_out Y from what was sent, and b σ R Δ_out Y, which the nodes send.
  void cross_rows(Index first, Index count);
  /// z = Δ_inᵀ Δ_out Y from what was sent, and X' = (1 + tanh ε) ∘ X − act(dropout(z)), or act(dropout(z)).
  ///
  /// \param first, count  of the selected nodes, by index
  /// \param out           rows of X', one after the other
  void leave_rows(Index first, Index count, S* out);

  /// Number of sums of a chunk of nodes, of leave_backward_rows() and of enter_backward_rows().
  [[nodiscard]] Index leave_partial_size() const noexcept { return D; }
  [[nodiscard]] Index enter_partial_size() const noexcept { return mixing_.partial_size(); }
  /// Backwards through leave: to x_bar, what there is without the operators, and to the maps.
  ///
  /// \param output_bar  rows of the selected nodes among these, one after the other
  /// \param x_bar       n × D × f; may begin as output_bar where all nodes are selected
  /// \param partial     the share in ε̄ is added
  void leave_backward_rows(Index first, Index count, const S* output_bar, S* x_bar,
                           NodeMapsGradient<D, S>& gradient, S* partial);
  /// Backwards through cross: from the derivative of Δ_out Y to the terms of the derivative of Y, and to the maps.
  void cross_backward_rows(Index first, Index count, NodeMapsGradient<D, S>& gradient);
  /// Backwards through enter: completes the derivatives of x and of the maps of these nodes.
  ///
  /// \param partial  the share in Ā and B̄ is added
  void enter_backward_rows(Index first, Index count, S* x_bar, NodeMapsGradient<D, S>& gradient, S* partial);
  /// Add a chunk's sums to derivatives. \throws std::invalid_argument  weights of another shape
  void add_leave_partial(const S* partial, const DiffusionWeights<S>& weights_bar) const {
    if (!options_.residual) return;
    check_weights(weights_bar);
    for (std::size_t i = 0; i < D; ++i) {
      weights_bar.epsilon[i] += kernels::gain_slope(gain_[i] - S(1)) * partial[i];
    }
  }
  void add_enter_partial(const S* partial, const DiffusionWeights<S>& weights_bar) const {
    check_weights(weights_bar);
    mixing_.add_partial(partial, weights_bar);
  }

 private:
  [[nodiscard]] Index row() const noexcept { return D * channels_; }
  void require_whole() const {
    require(arcs_.part == nullptr, "arcs", "arcs of a part of a graph",
            "the halo's rows must be fetched between the steps");
  }
  /// The sign of act(dropout(z)) in X'.
  [[nodiscard]] S sign() const noexcept { return options_.residual || options_.negate_diffused ? S(-1) : S(1); }
  template <class T>
  void check_weights(const DiffusionWeights<T>& weights) const {
    weights.check({.diffusion = {options_.left, options_.right, true, options_.residual},
                   .coordinates = D,
                   .channels = channels_});
  }
  [[nodiscard]] S* mixed() noexcept { return keep_ ? mixing_.buffer() : work_->mixed.data(); }
  /// Y, wherever it is.
  [[nodiscard]] const S* mixed_rows() noexcept { return mixing_.passes_on() ? input_ : mixed(); }

  ArcLists arcs_;
  Index channels_;
  CooperativeLayerOptions options_;
  Workspace* work_;
  FeatureMixing<S> mixing_;
  DropoutMask mask_;
  Buffer<S> first_sum_;   ///< what the nodes received of Δ_out Y, which backward passes compute again
  Buffer<S> slope_;       ///< the derivative of act(dropout(z)) in z = Δ_inᵀ Δ_out Y
  Buffer<S> second_sum_;  ///< what the nodes received of that
  Buffer<S> output_;      ///< of forward(), by index in nodes_; allocated by the first
  // Of the current pass:
  DiffusionWeights<const S> weights_;
  const NodeMaps<D, S>* maps_ = nullptr;
  const S* input_ = nullptr;
  NodeSelection nodes_;
  bool keep_ = false, dropped_ = false;
  S factor_ = S(1);
  S gain_[D];  ///< 1 + tanh ε, or 0 without the residual
};

// What the loops over nodes read is copied first: their stores might change members, as far as compilers can see.

template <int D, class S>
void CooperativeLayer<D, S>::cross_rows(Index begin, Index count) {
  const Index f = channels_, size = row();
  const NodeMaps<D, S>& maps = *maps_;
  const NeighbourLists lists = arcs_.out;
  const S* y_rows = mixed_rows();
  const S* sent = work_->sent.data();
  S* first_rows = work_->first.data();
  S* sums = keep_ ? first_sum_.data() : nullptr;
  S* sent_on = work_->sent_on.data();
  for (Index u = begin; u < begin + count; ++u) {
    const Index at = u * size;
    const S* map = maps.map(MapSide::in, u);
    const S factor = maps.factor(1, u);
    detail::receive<D>(maps, 0, lists, u, f, y_rows, sent,
                       [&]<class T>(auto c, const T* sum, const T* y) SHEAFNN_INLINE_LAMBDA {
                         T next[D];
                         kernels::send<D>(map, factor, y, next);
                         if (sums != nullptr) detail::store_coordinates<D>(c, sum, f, sums + at + c);
                         detail::store_coordinates<D>(c, y, f, first_rows + at + c);
                         detail::store_coordinates<D>(c, next, f, sent_on + at + c);
                       });
  }
}

template <int D, class S>
void CooperativeLayer<D, S>::leave_rows(Index begin, Index count, S* out) {
  const Index f = channels_, size = row();
  const NodeMaps<D, S>& maps = *maps_;
  const NeighbourLists lists = arcs_.out;
  const NodeSelection nodes = nodes_;
  const S* first_rows = work_->first.data();
  const S* sent_on = work_->sent_on.data();
  const S* gain = options_.residual ? gain_ : nullptr;
  const auto* mask = dropped_ ? mask_.bits() : nullptr;
  const detail::DiffusedRow<S> row_of{options_.activation, D, f, gain, mask, factor_, sign()};
  S* sums = keep_ ? second_sum_.data() : nullptr;
  S* slopes = keep_ ? slope_.data() : nullptr;
  for (Index index = begin; index < begin + count; ++index, out += size) {
    const Index at = nodes[index] * size;
    detail::receive<D>(maps, 1, lists, nodes[index], f, first_rows, sent_on,
                       [&]<class T>(auto c, const T* sum, const T* z) SHEAFNN_INLINE_LAMBDA {
                         if (sums != nullptr) detail::store_coordinates<D>(c, sum, f, sums + at + c);
                         detail::store_coordinates<D>(c, z, f, out + c);
                       });
    row_of.update(input_ + at, at, slopes, out);
  }
}

/// z̄ = sign() x̄' ∘ slope and what receive() returns for it; Σ x x̄' for ε̄; x_bar = x̄', 0 at nodes that were not computed,
/// which enter multiplies with the gain.
template <int D, class S>
void CooperativeLayer<D, S>::leave_backward_rows(Index first, Index count, const S* output_bar, S* x_bar,
                                                 NodeMapsGradient<D, S>& gradient, S* partial) {
  const Index f = channels_, size = row();
  const NodeMaps<D, S>& maps = *maps_;
  const S* input = input_;
  const S* sums = second_sum_.data();
  const S* slopes = slope_.data();
  const S factor = sign();
  S* z_bar = work_->first.data();
  S* returned = work_->sent.data();
  detail::ChannelSums<D, S> products;
  Index index = nodes_.lower_bound(first);
  for (Index u = first; u < first + count; ++u) {
    const Index at = u * size;
    if (index == nodes_.count() || nodes_[index] != u) {
      for (S* rows : {x_bar, z_bar, returned}) std::fill_n(rows + at, size, S(0));
      std::fill_n(gradient.map[1][0].data() + u * gradient.size, gradient.size, S(0));
      continue;
    }
    ++index;
    detail::receive_backward<D>(maps, 1, u, f, sums, returned, gradient,
                                [&]<class T>(auto c, T* y_bar) SHEAFNN_INLINE_LAMBDA {
                                  SHEAFNN_UNROLL for (int i = 0; i < D; ++i) {
                                    const Index position = i * f + c;
                                    const T bar = c.load(output_bar + position);
                                    products.add(i, bar * c.load(input + at + position));
                                    c.store(x_bar + at + position, bar);
                                    y_bar[i] = T(factor) * bar * c.load(slopes + at + position);
                                    c.store(z_bar + at + position, y_bar[i]);
                                  }
                                });
    output_bar += size;
  }
  S total[(D + 3) / 4 * 4];
  products.store(total);
  for (int i = 0; i < D; ++i) partial[i] += total[i];
}

template <int D, class S>
void CooperativeLayer<D, S>::cross_backward_rows(Index first, Index count, NodeMapsGradient<D, S>& gradient) {
  const Index f = channels_, size = row();
  const NodeMaps<D, S>& maps = *maps_;
  const NeighbourLists lists = arcs_.in;
  const S* y_rows = mixed_rows();
  const S* sums = first_sum_.data();
  const S* returned = work_->sent.data();
  S* returned_on = work_->sent_on.data();
  S* bar = work_->first.data();
  for (Index u = first; u < first + count; ++u) {
    const Index at = u * size;
    const detail::Receiver<D, S> receiver(maps, 0, u);
    const auto first_of = [&]<class T>(auto c, T* y) SHEAFNN_INLINE_LAMBDA {
      T own[D], sum[D];
      detail::load_coordinates<D>(c, y_rows + at + c, f, own);
      detail::load_coordinates<D>(c, sums + at + c, f, sum);
      receiver(own, sum, y);
    };
    detail::send_backward<D>(maps, 1, lists, u, f, first_of, bar, returned, gradient,
                             [&]<class T>(auto c, const T* first_bar) SHEAFNN_INLINE_LAMBDA {
                               detail::store_coordinates<D>(c, first_bar, f, bar + at + c);
                             });
    detail::receive_backward<D>(maps, 0, u, f, sums, returned_on, gradient,
                                [&]<class T>(auto c, T* y_bar) SHEAFNN_INLINE_LAMBDA {
                                  detail::load_coordinates<D>(c, bar + at + c, f, y_bar);
                                });
  }
}

template <int D, class S>
void CooperativeLayer<D, S>::enter_backward_rows(Index first, Index count, S* x_bar,
                                                 NodeMapsGradient<D, S>& gradient, S* partial) {
  const Index f = channels_, size = row();
  const NodeMaps<D, S>& maps = *maps_;
  const NeighbourLists lists = arcs_.in;
  const S* y_rows = mixed_rows();
  const S* returned_on = work_->sent_on.data();
  S* bar = work_->first.data();
  for (Index u = first; u < first + count; ++u) {
    const auto mixed_of = [&]<class T>(auto c, T* y) SHEAFNN_INLINE_LAMBDA {
      detail::load_coordinates<D>(c, y_rows + u * size + c, f, y);
    };
    detail::send_backward<D>(maps, 0, lists, u, f, mixed_of, bar, returned_on, gradient,
                             [&]<class T>(auto c, const T* y_bar) SHEAFNN_INLINE_LAMBDA {
                               detail::store_coordinates<D>(c, y_bar, f, bar + u * size + c);
                             });
  }
  mixing_.backward_rows(
      weights_, first, first + count, gain_, [=](Index u, Index, S*) { return bar + u * size; }, x_bar, partial);
}

}  // namespace sheafnn::layers
