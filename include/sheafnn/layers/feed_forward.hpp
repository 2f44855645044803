/// \file
/// FeedForward: Y = dropout(GELU(X W₁ + 1 b₁ᵀ)) W₂ + 1 b₂ᵀ on dense features, with its backward pass.
/// Source: math: "Flat bundles".
#pragma once

#include "sheafnn/layers/bundle_weights.hpp"
#include "sheafnn/layers/dense_layer.hpp"
#include "sheafnn/layers/dropout_layer.hpp"

namespace sheafnn::layers {

/// Buffers on one graph.
template <class S>
class FeedForward {
 public:
  /// \throws std::invalid_argument  a size out of range
  FeedForward(Index rows, Index inputs, Index width, Index outputs)
      : hidden_(rows, inputs, width, Activation::gelu), dropout_(rows, width), output_(rows, width, outputs) {}

  /// Y of the last forward(), n × outputs.
  [[nodiscard]] MatrixView<const S> output() const noexcept { return output_.output(); }
  [[nodiscard]] Index width() const noexcept { return hidden_.outputs(); }
  /// The mask of the dropout of the hidden units.
  [[nodiscard]] DropoutMask& mask() noexcept { return dropout_.mask(); }

  /// Computes output() from x, which must not change until backward().
  ///
  /// \throws std::invalid_argument  x or weights of another shape
  void forward(Execution execution, const FeedForwardWeights<const S>& weights, const MatrixView<const S>& x,
               const Dropout& dropout) {
    hidden_.forward(execution, weights.hidden, x);
    dropout_.forward(execution, hidden_.output(), dropout);
    output_.forward(execution, weights.output, dropout_.output());
  }
  /// Computes the derivatives of x and of the weights (added to) from the derivative of output().
  ///
  /// \param bar         of output(), overwritten
  /// \param work        n × width(), overwritten
  /// \param accumulate  add to x_bar instead of overwriting it
  /// \throws std::invalid_argument  views of another shape
  void backward(Execution execution, const FeedForwardWeights<const S>& weights, const MatrixView<const S>& x,
                const MatrixView<S>& bar, const MatrixView<S>& work, const MatrixView<S>& x_bar, bool accumulate,
                const FeedForwardWeights<S>& weights_bar) {
    output_.backward(execution, weights.output, dropout_.output(), bar, work, false, weights_bar.output);
    dropout_.backward_in_place(execution, work);
    hidden_.backward(execution, weights.hidden, x, work, x_bar, accumulate, weights_bar.hidden);
  }

 private:
  DenseLayer<S> hidden_;
  DropoutLayer<S> dropout_;
  DenseLayer<S> output_;
};

}  // namespace sheafnn::layers
