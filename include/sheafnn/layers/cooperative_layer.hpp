/// \file
/// CooperativeLayer: X' = (1 + tanh ε) ∘ X − act(dropout(Δ_inᵀ Δ_out (I ⊗ A) X Bᵀ)), with its backward pass.
///
/// Without the residual the first term is left out. Features are n × D × f, channels innermost. Source: math:
/// "Cooperative sheaves", "Backward pass of a cooperative layer".
#pragma once

#include <algorithm>
#include <cmath>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/graph/node_selection.hpp"
#include "sheafnn/layers/cooperative_diffusion.hpp"
#include "sheafnn/layers/feature_mixing.hpp"
#include "sheafnn/nn/activation.hpp"
#include "sheafnn/nn/dropout.hpp"

namespace sheafnn {

/// Which parts a cooperative layer has.
struct CooperativeLayerOptions {
  bool left = true;      ///< A, mixing stalk coordinates
  bool right = true;     ///< B, mixing channels
  bool residual = true;  ///< (1 + tanh ε) ∘ X
  Activation activation = Activation::gelu;
};

/// Buffers of one layer on one graph.
template <int D, class S>
class CooperativeLayer {
 public:
  /// \param arcs      what it views must outlive the layer
  /// \param channels  f
  CooperativeLayer(const ArcLists& arcs, Index channels, const CooperativeLayerOptions& options)
      : arcs_(arcs),
        channels_(channels),
        options_(options),
        mixing_(arcs.nodes, D, channels, options.left, options.right),
        mask_(arcs.nodes * row()),
        partial_(mixing_.chunks().count * D) {
    for (Buffer<S>* one : {&first_, &first_sum_, &second_, &second_sum_, &output_}) one->resize(arcs.nodes * row());
  }

  /// X' at the nodes of the last pass, one row of D × f each.
  [[nodiscard]] FeatureView<const S> output() const noexcept { return {output_.data(), nodes_.count(), D, channels_}; }

  /// Computes output() at some nodes from x (n × D × f), which must not change until backward().
  ///
  /// \param dropout  of what is diffused
  /// \param work     two buffers of the shape of x, overwritten
  /// \throws std::invalid_argument  features or weights of another shape
  void forward(Execution execution, const DiffusionWeights<const S>& weights, const NodeMaps<D, S>& maps,
               const FeatureView<const S>& x, const Dropout& dropout, const NodeSelection& nodes,
               const FeatureView<S> (&work)[2]);

  /// From the derivative of output() to that of x, of weights (added to) and of the operators' maps.
  ///
  /// \param output_bar  of the shape of output(); not one of the other buffers
  /// \param x_bar       n × D × f, overwritten
  /// \param work        three buffers of the shape of x, overwritten
  /// \throws std::invalid_argument  features or weights of another shape
  void backward(Execution execution, const DiffusionWeights<const S>& weights, const NodeMaps<D, S>& maps,
                NodeMapsGradient<D, S>& maps_gradient, const FeatureView<const S>& output_bar,
                const FeatureView<S>& x_bar, const FeatureView<S> (&work)[3], const DiffusionWeights<S>& weights_bar);

 private:
  [[nodiscard]] Index row() const noexcept { return D * channels_; }
  template <class T>
  void check_weights(const DiffusionWeights<T>& weights) const {
    if (options_.left) require_array(weights.left, D, D, "left weights");
    if (options_.right) require_array(weights.right, channels_, channels_, "right weights");
    if (options_.residual) require_size(weights.epsilon, D, "epsilon");
  }
  /// 1 + tanh ε_i, or 0 without the residual.
  void gains(const DiffusionWeights<const S>& weights, S* gain) const {
    for (std::size_t i = 0; i < D; ++i) gain[i] = options_.residual ? S(1) + std::tanh(weights.epsilon[i]) : S(0);
  }
  template <Activation A>
  void backward_activation(Execution execution, const NodeMaps<D, S>& maps, NodeMapsGradient<D, S>& maps_gradient,
                           const S* output_bar, S* x_bar, S* second_bar, S* returned);

  ArcLists arcs_;
  Index channels_;
  CooperativeLayerOptions options_;
  FeatureMixing<S> mixing_;
  DropoutMask mask_;
  Buffer<S> partial_;              ///< per chunk of nodes: Σ x x̄ of each coordinate
  Buffer<S> first_, first_sum_;    ///< Δ_out Y, and what its nodes received
  Buffer<S> second_, second_sum_;  ///< dropout(Δ_inᵀ Δ_out Y), at nodes_ by index; what the nodes received
  Buffer<S> output_;
  const S* input_ = nullptr;
  bool dropped_ = false;
  S factor_ = S(1);
  NodeSelection nodes_;
};

template <int D, class S>
void CooperativeLayer<D, S>::forward(Execution execution, const DiffusionWeights<const S>& weights,
                                     const NodeMaps<D, S>& maps, const FeatureView<const S>& x, const Dropout& dropout,
                                     const NodeSelection& nodes, const FeatureView<S> (&work)[2]) {
  check_weights(weights);
  require_shape(x, arcs_.nodes, D, channels_, "x");
  const Index f = channels_;
  input_ = x.data();
  nodes_ = nodes;
  dropped_ = dropout.active();
  factor_ = static_cast<S>(dropout.scale());
  if (dropped_) mask_.draw(execution, dropout);
  S gain[D];
  gains(weights, gain);
  S* sent = work[0].data();
  S* sent_on = work[1].data();
  mixing_.forward(execution, weights, input_, Dropout{}, true, [&](Index first, Index count, const S* y) {
    detail::send<D>(maps, 0, first, count, f, y, sent);
  });
  const S* mixed = mixing_.output();
  parallel_for(execution, arcs_.nodes, 16, [&](Index begin, Index end) {
    for (Index u = begin; u < end; ++u) {
      const Index at = u * row();
      S map[D * D];
      detail::scaled_map<D>(maps.factor(1, u), maps.map(MapSide::in, u), map);
      detail::receive<D>(maps, 0, arcs_.out, u, f, mixed, sent,
                         [&]<class T>(Index c, const T* sum, const T* y) SHEAFNN_INLINE_LAMBDA {
                           T next[D];
                           detail::map_times<D, false>(map, y, next);
                           detail::store_node<D>(sum, f, first_sum_.data() + at + c);
                           detail::store_node<D>(y, f, first_.data() + at + c);
                           detail::store_node<D>(next, f, sent_on + at + c);
                         });
    }
  });
  with_activation(options_.activation, [&]<Activation A>() {
    parallel_for(execution, nodes_.count(), 16, [&](Index begin, Index end) {
      for (Index index = begin; index < end; ++index) {
        const Index u = nodes_[index], at = u * row(), to = index * row();
        detail::receive<D>(
            maps, 1, arcs_.out, u, f, first_.data(), sent_on,
            [&]<class T>(Index c, const T* sum, const T* y) SHEAFNN_INLINE_LAMBDA {
              detail::store_node<D>(sum, f, second_sum_.data() + at + c);
              SHEAFNN_UNROLL for (int i = 0; i < D; ++i) {
                T z = y[i];
                if (dropped_) z = detail::dropped(z, mask_.bits(), at + i * f + c, factor_);
                detail::store(second_.data() + to + i * f + c, z);
                const T kept = T(gain[i]) * detail::load<T>(input_ + at + i * f + c);
                detail::store(output_.data() + to + i * f + c, kept - activate<A>(z));
              }
            });
      }
    });
  });
}

/// z̄ = −dropout(x̄ ∘ act′(z)), in second_bar, what receive() returns for it, and Σ x x̄ for ε̄; x_bar = x̄, 0 at nodes
/// that were not computed.
template <int D, class S>
template <Activation A>
void CooperativeLayer<D, S>::backward_activation(Execution execution, const NodeMaps<D, S>& maps,
                                                 NodeMapsGradient<D, S>& maps_gradient, const S* output_bar, S* x_bar,
                                                 S* second_bar, S* returned) {
  const Index f = channels_;
  mixing_.chunks().for_each(execution, [&](Index chunk, Index begin, Index end) {
    detail::ChannelSums<D, S> products;
    Index index = nodes_.lower_bound(begin);
    for (Index u = begin; u < end; ++u) {
      const Index at = u * row();
      if (index == nodes_.count() || nodes_[index] != u) {
        std::fill_n(x_bar + at, row(), S(0));
        std::fill_n(second_bar + at, row(), S(0));
        std::fill_n(returned + at, row(), S(0));
        std::fill_n(maps_gradient.map[1][0].data() + u * D * D, D * D, S(0));
        maps_gradient.diagonal[1][u] = S(0);
        continue;
      }
      const Index from = index++ * row();
      detail::receive_backward<D>(
          maps, 1, u, f, first_.data(), second_sum_.data(), returned, maps_gradient,
          [&]<class T>(Index c, T* y_bar) SHEAFNN_INLINE_LAMBDA {
            SHEAFNN_UNROLL for (int i = 0; i < D; ++i) {
              const Index position = i * f + c;
              const T bar = detail::load<T>(output_bar + from + position);
              products.add(i, bar * detail::load<T>(input_ + at + position));
              detail::store(x_bar + at + position, bar);
              y_bar[i] = -bar * activation_derivative<A>(detail::load<T>(second_.data() + from + position));
              if (dropped_) y_bar[i] = detail::dropped(y_bar[i], mask_.bits(), at + position, factor_);
              detail::store(second_bar + at + position, y_bar[i]);
            }
          });
    }
    S sums[(D + 3) / 4 * 4];
    products.store(sums);
    std::copy_n(sums, D, partial_.data() + chunk * D);
  });
}

template <int D, class S>
void CooperativeLayer<D, S>::backward(Execution execution, const DiffusionWeights<const S>& weights,
                                      const NodeMaps<D, S>& maps, NodeMapsGradient<D, S>& maps_gradient,
                                      const FeatureView<const S>& output_bar, const FeatureView<S>& x_bar,
                                      const FeatureView<S> (&work)[3], const DiffusionWeights<S>& weights_bar) {
  check_weights(weights_bar);
  require_shape(output_bar, nodes_.count(), D, channels_, "output_bar");
  require_shape(x_bar, arcs_.nodes, D, channels_, "x_bar");
  const Index f = channels_;
  S gain[D];
  gains(weights, gain);
  S* bar = work[0].data();  // of z, then of Δ_out Y, then of Y
  S* returned = work[1].data();
  S* returned_on = work[2].data();
  with_activation(options_.activation, [&]<Activation A>() {
    backward_activation<A>(execution, maps, maps_gradient, output_bar.data(), x_bar.data(), bar, returned);
  });
  const S* mixed = mixing_.output();
  parallel_for(execution, arcs_.nodes, 16, [&](Index begin, Index end) {
    for (Index u = begin; u < end; ++u) {
      const Index at = u * row();
      detail::send_backward<D>(maps, 1, arcs_.in, u, f, first_.data(), bar, returned, maps_gradient,
                               [&]<class T>(Index c, const T* first_bar) SHEAFNN_INLINE_LAMBDA {
                                 detail::store_node<D>(first_bar, f, bar + at + c);
                               });
      detail::receive_backward<D>(maps, 0, u, f, mixed, first_sum_.data(), returned_on, maps_gradient,
                                  [&]<class T>(Index c, T* y_bar) SHEAFNN_INLINE_LAMBDA {
                                    detail::load_node<D>(bar + at + c, f, y_bar);
                                  });
    }
  });
  parallel_for(execution, arcs_.nodes, 16, [&](Index begin, Index end) {
    for (Index u = begin; u < end; ++u) {
      const Index at = u * row();
      detail::send_backward<D>(maps, 0, arcs_.in, u, f, mixed, bar, returned_on, maps_gradient,
                               [&]<class T>(Index c, const T* mixed_bar) SHEAFNN_INLINE_LAMBDA {
                                 detail::store_node<D>(mixed_bar, f, bar + at + c);
                               });
    }
  });
  if (options_.residual) {
    for (std::size_t i = 0; i < D; ++i) {
      const S tangent = gain[i] - S(1);
      S sum = S(0);
      for (Index chunk = 0; chunk < mixing_.chunks().count; ++chunk) sum += partial_[chunk * D + static_cast<Index>(i)];
      weights_bar.epsilon[i] += (S(1) - tangent * tangent) * sum;
    }
  }
  mixing_.backward(execution, weights, gain, bar, x_bar.data(), weights_bar);
}

}  // namespace sheafnn
