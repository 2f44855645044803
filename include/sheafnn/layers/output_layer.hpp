/// \file
/// OutputLayer: raw outputs of the nodes, Y = X W + 1 bᵀ, with its backward pass (math: "The model" (3.7)). What they
/// mean, logits of classes or a prediction, is the loss's business.
#pragma once

#include <algorithm>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/config.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/layers/weights.hpp"
#include "sheafnn/nn/dense.hpp"

namespace sheafnn::layers {

/// Buffers of the output of a network on one graph. Rows are padded to a multiple of eight values.
template <class S>
class OutputLayer {
 public:
  /// \param nodes, inputs, outputs  most rows of X, its width, and C
  /// \throws std::invalid_argument  negative nodes, or a width below 1
  OutputLayer(Index nodes, Index inputs, Index outputs);

  /// Y of the last forward(), rows × C. A loss may work in it.
  [[nodiscard]] MatrixView<S> output() noexcept { return {output_.data(), rows_, outputs_, stride_}; }
  [[nodiscard]] MatrixView<const S> output() const noexcept { return {output_.data(), rows_, outputs_, stride_}; }
  /// Memory for the derivative of output(), of the same shape.
  [[nodiscard]] MatrixView<S> output_bar() noexcept { return {output_bar_.data(), rows_, outputs_, stride_}; }

  /// Computes output().
  ///
  /// \throws std::invalid_argument  x or weights of another shape
  void forward(Execution execution, const LinearWeights<const S>& weights, const MatrixView<const S>& x);

  /// Computes the derivatives of x (overwritten) and of W and b (added to) from the derivative of output().
  ///
  /// \param bar    rows × C: output_bar(), or another view with rows padded alike
  /// \param x_bar  may be x
  /// \throws std::invalid_argument  views of another shape
  void backward(Execution execution, const LinearWeights<const S>& weights, const MatrixView<const S>& x,
                const MatrixView<const S>& bar, const MatrixView<S>& x_bar, const LinearWeights<S>& weights_bar);

 private:
  template <class T>
  void check(const LinearWeights<T>& weights) const {
    require_array(weights.weight, inputs_, outputs_, "output weight");
    require_size(weights.bias, outputs_, "output bias");
  }
  /// The derivative of output() in rows of stride_ values; a copy of a user's matrix that has others.
  [[nodiscard]] MatrixView<const S> padded_bar(Execution execution, const MatrixView<const S>& bar) {
    require_shape(bar, rows_, outputs_, "output_bar");
    if (bar.data() == output_bar_.data()) return bar;
    parallel_for(execution, rows_, 256, [&](Index begin, Index end) {
      for (Index u = begin; u < end; ++u) {
        std::copy_n(bar.row(u).data(), outputs_, output_bar_.data() + u * stride_);
      }
    });
    return output_bar();
  }

  Index inputs_, outputs_, stride_;
  Index rows_ = 0;                 ///< of the last forward()
  Buffer<S> weight_, weight_bar_;  ///< inputs × stride
  Buffer<S> weight_transposed_;    ///< C × inputs
  Buffer<S> output_, output_bar_;  ///< rows of stride values; what pads them in output_bar stays 0
};

template <class S>
OutputLayer<S>::OutputLayer(Index nodes, Index inputs, Index outputs)
    : inputs_(checked_extent("inputs", inputs)),
      outputs_(checked_extent("outputs", outputs)),
      stride_((outputs + 7) / 8 * 8),
      weight_(inputs * stride_),
      weight_bar_(inputs * stride_),
      weight_transposed_(outputs * inputs),
      output_(checked_extent("nodes", nodes, 0) * stride_),
      output_bar_(nodes * stride_) {}

template <class S>
void OutputLayer<S>::forward(Execution execution, const LinearWeights<const S>& weights,
                             const MatrixView<const S>& x) {
  check(weights);
  require_shape(x, std::min(x.rows(), output_.size() / stride_), inputs_, "x");
  rows_ = x.rows();
  const S* bias = weights.bias.data();
  for (Index i = 0; i < inputs_; ++i) {
    std::copy_n(weights.weight.data() + i * outputs_, outputs_, weight_.data() + i * stride_);
  }
  parallel_for(execution, rows_, 256, [&](Index begin, Index end) {
    for (Index u = begin; u < end; ++u) std::copy_n(bias, outputs_, output_.data() + u * stride_);
  });
  detail::multiply_dense(execution, x, {weight_.data(), inputs_, stride_},
                         MatrixView<S>(output_.data(), rows_, stride_), true);
}

template <class S>
void OutputLayer<S>::backward(Execution execution, const LinearWeights<const S>& weights,
                              const MatrixView<const S>& x, const MatrixView<const S>& bar,
                              const MatrixView<S>& x_bar, const LinearWeights<S>& weights_bar) {
  check(weights);
  check(weights_bar);
  require_shape(x, rows_, inputs_, "x");
  require_shape(x_bar, rows_, inputs_, "x_bar");
  const MatrixView<const S> padded = padded_bar(execution, bar);
  detail::multiply_dense(execution, detail::transposed(x), {padded.data(), rows_, stride_},
                         MatrixView<S>(weight_bar_.data(), inputs_, stride_), false);
  detail::add_rows(inputs_, outputs_, weight_bar_.data(), stride_, weights_bar.weight.data());
  detail::add_column_sums(rows_, outputs_, padded.data(), stride_, weights_bar.bias.data());
  detail::transpose_into(inputs_, outputs_, weights.weight.data(), weight_transposed_.data(), inputs_);
  detail::multiply_dense(execution, padded, {weight_transposed_.data(), outputs_, inputs_}, x_bar, false);
}

}  // namespace sheafnn::layers
