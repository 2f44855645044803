/// \file
/// BundleLayer: a layer of a bundle network on features X, n × B × D × f, with rotations O of every node and bundle,
///
///     Z = X, or LayerNorm(X);   R = O Z;
///     linear          V = dropout(p(𝓛) (R W) + 1 bᵀ),        X' = [X +] act(Oᵀ V);
///     feed_forward    V = dropout(FF([Z ‖ p(𝓛) R])),         X' = [X +] Oᵀ V,
///
/// with its backward pass. p(𝓛) is a HeatOperator, FF a FeedForward. Source: math: "Flat bundles" (9.2); Bundle Neural
/// Networks (Bamberger et al.).
#pragma once

#include <optional>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/core/tile.hpp"
#include "sheafnn/layers/bundle_learner.hpp"
#include "sheafnn/layers/bundle_maps.hpp"
#include "sheafnn/layers/bundle_weights.hpp"
#include "sheafnn/layers/feed_forward.hpp"
#include "sheafnn/layers/heat_operator.hpp"
#include "sheafnn/layers/layer_norm.hpp"
#include "sheafnn/layers/node_chunks.hpp"
#include "sheafnn/nn/activation.hpp"

namespace sheafnn::layers {

/// The setting from which a layer is built.
struct BundleLayerOptions {
  BundleMixing mixing = BundleMixing::feed_forward;
  bool norm = true;                          ///< LayerNorm of what is rotated and mixed
  bool residual = true;                      ///< add X
  Activation activation = Activation::relu;  ///< of linear
};

/// Buffers of a layer on one graph. Unchecked: shapes of views, which the layers that it is made of check.
template <int D, class S>
class BundleLayer {
 public:
  /// \param bundles, channels  B and f
  BundleLayer(Index nodes, Index bundles, Index channels, const BundleLayerOptions& options)
      : options_(options),
        nodes_(nodes),
        width_(bundles * D * channels),
        maps_(nodes, bundles, channels),
        dropout_(nodes, width_),
        rotated_(nodes * width_),
        output_(nodes * width_) {
    if (options.norm) norm_.emplace(nodes, width_);
    if (options.mixing == BundleMixing::linear) {
      mixed_.resize(nodes * width_);
      diffused_.resize(nodes * width_);
      transposed_.resize(width_ * width_);
    } else {
      pair_.resize(nodes * 2 * width_);
      forward_.emplace(nodes, 2 * width_, width_, width_);
    }
  }

  /// O, which the pass needs before forward().
  [[nodiscard]] BundleMaps<D, S>& maps() noexcept { return maps_; }
  [[nodiscard]] const BundleMaps<D, S>& maps() const noexcept { return maps_; }
  /// X' of the last forward(), n × h.
  [[nodiscard]] MatrixView<const S> output() const noexcept { return rows(output_); }

  /// Calls use(mask) for the masks of all dropouts, whose rows have h values.
  template <class Use>
  void for_masks(const Use& use) {
    use(dropout_.mask());
    if (forward_) use(forward_->mask());
  }

  /// Computes output() from x, which must not change until backward().
  ///
  /// \param hidden, after  dropouts of the hidden units of FF, and of V
  void forward(Execution execution, HeatOperator<S>& heat, const BundleWeights<const S>& weights,
               const MatrixView<const S>& x, const Dropout& hidden, const Dropout& after) {
    if (norm_) norm_->forward(execution, weights.norm, x);
    const MatrixView<const S> z = norm_ ? norm_->output() : x;
    for_groups(execution, [&](Index first, Index count) {
      maps_.template rotate_rows<false>(first, count, z.row(first).data(), at(rotated_, first));
    });
    if (forward_) {
      detail::copy_rows(execution, z, MatrixView<S>(pair_.data(), nodes_, width_, 2 * width_));
      heat.forward(execution, weights.heat, rows(rotated_),
                   MatrixView<S>(pair_.data() + width_, nodes_, width_, 2 * width_));
      forward_->forward(execution, weights.forward, pair(), hidden);
      dropout_.forward(execution, forward_->output(), after);
    } else {
      detail::multiply_dense(execution, rows(rotated_), weights.linear.weight, rows(mixed_), false);
      heat.forward(execution, weights.heat, rows(mixed_), rows(diffused_));
      add_bias(execution, weights.linear.bias.data());
      dropout_.forward(execution, rows(diffused_), after);
    }
    const S* v = dropout_.output().data();
    with_activation(activation(), [&]<Activation A>() {
      for_groups(execution, [&](Index first, Index count) {
        S* to = at(output_, first);
        const S* from = x.row(first).data();
        maps_.template rotate_rows<true>(first, count, v + first * width_, to);
        detail::for_tiles<S>(0, count * width_, [&]<class T>(auto i) {
          const T value = activate<A>(i.load(to + i));
          i.store(to + i, options_.residual ? i.load(from + i) + value : value);
        });
      });
    });
  }

  /// Computes the derivatives of x, of O (in maps()) and of the weights (added to) from the derivative of output().
  ///
  /// \param x      of forward()
  /// \param bar    n × h, overwritten
  /// \param x_bar  n × h, overwritten: without the derivative through O
  void backward(Execution execution, HeatOperator<S>& heat, const BundleWeights<const S>& weights,
                const MatrixView<const S>& x, const MatrixView<S>& bar, const MatrixView<S>& x_bar,
                BundleWorkspace<S>& work, const BundleWeights<S>& weights_bar) {
    const MatrixView<const S> z = norm_ ? norm_->output() : x;
    const MatrixView<S> v_bar = rows(work.rows[0]), r_bar = rows(work.rows[1]);
    const MatrixView<S> pair_bar(work.rows[2].data(), nodes_, 2 * width_),
        left(pair_bar.data(), nodes_, width_, 2 * width_);
    if (options_.residual) detail::copy_rows(execution, bar, x_bar);
    leave_backward(execution, bar, v_bar);
    dropout_.backward_in_place(execution, v_bar);
    if (forward_) {
      forward_->backward(execution, weights.forward, pair(), v_bar, r_bar, pair_bar, false, weights_bar.forward);
      heat.backward(execution, weights.heat, rows(rotated_),
                    MatrixView<const S>(pair_bar.data() + width_, nodes_, width_, 2 * width_), r_bar,
                    weights_bar.heat);
    } else {
      detail::add_column_sums(nodes_, width_, v_bar.data(), width_, weights_bar.linear.bias.data());
      heat.backward(execution, weights.heat, rows(mixed_), v_bar, bar, weights_bar.heat);
      detail::multiply_dense(execution, detail::transposed(rows(rotated_)), bar, weights_bar.linear.weight, true);
      detail::transpose_into(width_, width_, weights.linear.weight.data(), transposed_.data(), width_);
      detail::multiply_dense(execution, bar, MatrixView<const S>(transposed_.data(), width_, width_), r_bar,
                             false);
    }
    // Z̄ takes the place of V̄.
    for_groups(execution, [&](Index first, Index count) {
      maps_.add_products(first, count, r_bar.row(first).data(), z.row(first).data(), true);
      maps_.template rotate_rows<true>(first, count, r_bar.row(first).data(), v_bar.row(first).data());
    });
    if (forward_) detail::copy_rows<true>(execution, left, v_bar);
    if (norm_) norm_->backward(execution, weights.norm, x, v_bar, v_bar, weights_bar.norm);
    if (options_.residual) {
      detail::copy_rows<true>(execution, v_bar, x_bar);
    } else {
      detail::copy_rows(execution, v_bar, x_bar);
    }
  }

 private:
  [[nodiscard]] Activation activation() const noexcept {
    return forward_ ? Activation::identity : options_.activation;
  }
  [[nodiscard]] MatrixView<S> rows(Buffer<S>& of) const noexcept { return {of.data(), nodes_, width_}; }
  [[nodiscard]] MatrixView<const S> rows(const Buffer<S>& of) const noexcept {
    return {of.data(), nodes_, width_};
  }
  [[nodiscard]] MatrixView<const S> pair() const noexcept { return {pair_.data(), nodes_, 2 * width_}; }
  [[nodiscard]] S* at(Buffer<S>& of, Index node) const noexcept { return of.data() + node * width_; }
  template <class Body>
  void for_groups(Execution execution, const Body& body) const {
    detail::for_row_groups(execution, nodes_, body);
  }
  void add_bias(Execution execution, const S* bias) {
    for_groups(execution, [&](Index first, Index count) {
      for (Index u = first; u < first + count; ++u) {
        S* row = at(diffused_, u);
        detail::for_tiles<S>(0, width_,
                             [&]<class T>(auto c) { c.store(row + c, c.load(row + c) + c.load(bias + c)); });
      }
    });
  }
  /// With G = act′(Oᵀ V) ∘ X̄′: V̄ = O G, Ō = V Gᵀ. \param bar  X̄′, becomes G
  void leave_backward(Execution execution, const MatrixView<S>& bar, const MatrixView<S>& v_bar) {
    const S* v = dropout_.output().data();
    with_activation(activation(), [&]<Activation A>() {
      for_groups(execution, [&](Index first, Index count) {
        S *g = bar.row(first).data(), *to = v_bar.row(first).data();
        if constexpr (A != Activation::identity) {
          maps_.template rotate_rows<true>(first, count, v + first * width_, to);
          detail::for_tiles<S>(0, count * width_, [&]<class T>(auto i) {
            i.store(g + i, i.load(g + i) * activation_derivative<A>(i.load(to + i)));
          });
        }
        maps_.template rotate_rows<false>(first, count, g, to);
        maps_.add_products(first, count, v + first * width_, g, false);
      });
    });
  }

  BundleLayerOptions options_;
  Index nodes_, width_;
  BundleMaps<D, S> maps_;
  std::optional<LayerNorm<S>> norm_;
  std::optional<FeedForward<S>> forward_;
  DropoutLayer<S> dropout_;
  Buffer<S> rotated_;           ///< R
  Buffer<S> mixed_, diffused_;  ///< R W and p(𝓛) R W, of linear
  Buffer<S> transposed_;        ///< Wᵀ
  Buffer<S> pair_;              ///< [Z ‖ p(𝓛) R], of feed_forward
  Buffer<S> output_;
};

}  // namespace sheafnn::layers
