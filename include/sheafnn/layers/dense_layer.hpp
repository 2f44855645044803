/// \file
/// DenseLayer: Y = act(X W + 1 bᵀ) on dense features, with its backward pass.
#pragma once

#include <algorithm>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/layers/weights.hpp"
#include "sheafnn/nn/activation.hpp"
#include "sheafnn/nn/dense.hpp"

namespace sheafnn::detail {

/// bar ∘= act′(z), both rows × columns without gaps.
template <class S>
void multiply_by_derivative(Execution execution, Activation activation, Index count, const S* z, S* bar) {
  if (activation == Activation::identity) return;
  parallel_for(execution, count, 2048, [=](Index begin, Index end) {
    with_activation(activation, [=]<Activation A>() {
      for_tiles<S>(begin, end, [=]<class T>(auto i) {
        i.store(bar + i, i.load(bar + i) * activation_derivative<A>(i.load(z + i)));
      });
    });
  });
}
/// y = act(z).
template <class S>
void apply_activation(Execution execution, Activation activation, Index count, const S* z, S* y) {
  parallel_for(execution, count, 2048, [=](Index begin, Index end) {
    with_activation(activation, [=]<Activation A>() {
      for_tiles<S>(begin, end, [=]<class T>(auto i) { i.store(y + i, activate<A>(i.load(z + i))); });
    });
  });
}

}  // namespace sheafnn::detail

namespace sheafnn::layers {

/// Buffers of a layer on at most `rows` rows.
template <class S>
class DenseLayer {
 public:
  DenseLayer() = default;
  /// \param inputs, outputs  widths of X and Y, at least 1
  /// \throws std::invalid_argument  a size out of range
  DenseLayer(Index rows, Index inputs, Index outputs, Activation activation = Activation::identity)
      : inputs_(checked_extent("inputs", inputs)),
        outputs_(checked_extent("outputs", outputs)),
        activation_(activation),
        linear_(checked_extent("rows", rows, 0) * outputs, to_be_written),
        output_(activation == Activation::identity ? 0 : rows * outputs, to_be_written),
        transposed_(inputs * outputs) {}

  [[nodiscard]] Index inputs() const noexcept { return inputs_; }
  [[nodiscard]] Index outputs() const noexcept { return outputs_; }
  /// Y of the last forward(), rows × outputs.
  [[nodiscard]] MatrixView<const S> output() const noexcept {
    return {activation_ == Activation::identity ? linear_.data() : output_.data(), rows_, outputs_};
  }

  /// \throws std::invalid_argument  W (inputs × outputs) or b of another shape
  template <class T>
  void require_weights(const LinearWeights<T>& weights) const {
    require_array(weights.weight, inputs_, outputs_, "weight");
    require_size(weights.bias, outputs_, "bias");
  }

  /// Computes output() from x (at most `rows` rows), which must not change until backward().
  ///
  /// \throws std::invalid_argument  x or weights of another shape
  void forward(Execution execution, const LinearWeights<const S>& weights, const MatrixView<const S>& x);

  /// Computes the derivatives of x and of W and b (added to) from the derivative of output().
  ///
  /// \param x           of forward()
  /// \param bar         rows × outputs without gaps, overwritten
  /// \param x_bar       of the shape of x; empty: not wanted
  /// \param accumulate  add to x_bar instead of overwriting it
  /// \throws std::invalid_argument  views of another shape
  void backward(Execution execution, const LinearWeights<const S>& weights, const MatrixView<const S>& x,
                const MatrixView<S>& bar, const MatrixView<S>& x_bar, bool accumulate,
                const LinearWeights<S>& weights_bar);

 private:
  Index inputs_ = 0, outputs_ = 0, rows_ = 0;
  Activation activation_ = Activation::identity;
  Buffer<S> linear_;      ///< X W + b
  Buffer<S> output_;      ///< empty without activation
  Buffer<S> transposed_;  ///< Wᵀ
};

template <class S>
void DenseLayer<S>::forward(Execution execution, const LinearWeights<const S>& weights,
                            const MatrixView<const S>& x) {
  require_weights(weights);
  require_shape(x, outputs_ > 0 ? std::min(x.rows(), linear_.size() / outputs_) : x.rows(), inputs_, "x");
  rows_ = x.rows();
  constexpr Index group = 64;  // rows whose outputs stay near
  parallel_for(execution, rows_, group, [&](Index begin, Index end) {
    for (Index u = begin; u < end; u += group) {
      const Index count = std::min(group, end - u);
      S* z = linear_.data() + u * outputs_;
      for (Index i = 0; i < count; ++i) std::copy_n(weights.bias.data(), outputs_, z + i * outputs_);
      detail::multiply_block(x.middle_rows(u, count), weights.weight, MatrixView<S>(z, count, outputs_), true);
      with_activation(activation_, [&]<Activation A>() {
        if constexpr (A != Activation::identity) {
          S* y = output_.data() + u * outputs_;
          detail::for_tiles<S>(0, count * outputs_,
                               [&]<class T>(auto i) { i.store(y + i, activate<A>(i.load(z + i))); });
        }
      });
    }
  });
}

template <class S>
void DenseLayer<S>::backward(Execution execution, const LinearWeights<const S>& weights,
                             const MatrixView<const S>& x, const MatrixView<S>& bar, const MatrixView<S>& x_bar,
                             bool accumulate, const LinearWeights<S>& weights_bar) {
  require_weights(weights);
  require_weights(weights_bar);
  require_shape(x, rows_, inputs_, "x");
  require_array(bar, rows_, outputs_, "output_bar");
  if (!x_bar.empty()) require_shape(x_bar, rows_, inputs_, "x_bar");
  detail::multiply_by_derivative(execution, activation_, rows_ * outputs_, linear_.data(), bar.data());
  detail::multiply_dense(execution, detail::transposed(x), bar, weights_bar.weight, true);
  detail::add_column_sums(rows_, outputs_, bar.data(), outputs_, weights_bar.bias.data());
  if (x_bar.empty()) return;
  detail::transpose_into(inputs_, outputs_, weights.weight.data(), transposed_.data(), inputs_);
  detail::multiply_dense(execution, bar, {transposed_.data(), outputs_, inputs_}, x_bar, accumulate);
}

}  // namespace sheafnn::layers
