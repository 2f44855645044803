/// \file
/// ReadoutHead: raw outputs of the nodes through hidden layers as wide as the features,
///
///     X ← GELU(X Wᵢ + 1 bᵢᵀ), i = 0 …,   Y = X W + 1 bᵀ,
///
/// with its backward pass. Without hidden layers it is an OutputLayer. Source: math: "The model".
#pragma once

#include <span>
#include <vector>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/layers/dense_layer.hpp"
#include "sheafnn/layers/output_layer.hpp"
#include "sheafnn/layers/weights.hpp"

namespace sheafnn::layers {

/// Buffers of the readout of a network on one graph.
template <class S>
class ReadoutHead {
 public:
  /// \param rows, inputs, outputs  most rows of X, its width h, and C
  /// \param hidden_layers          h × h layers before the affine one
  /// \throws std::invalid_argument  a negative number, or a width below 1
  ReadoutHead(Index rows, Index inputs, Index outputs, Index hidden_layers) : last_(rows, inputs, outputs) {
    hidden_.reserve(static_cast<std::size_t>(checked_extent("hidden_layers", hidden_layers, 0)));
    for (Index i = 0; i < hidden_layers; ++i) hidden_.emplace_back(rows, inputs, inputs, Activation::gelu);
    if (hidden_layers > 0) bar_.resize(rows * inputs, to_be_written);
  }

  /// Y of the last forward(), rows × C. A loss may work in it.
  [[nodiscard]] MatrixView<S> output() noexcept { return last_.output(); }
  [[nodiscard]] MatrixView<const S> output() const noexcept { return last_.output(); }
  /// Memory for the derivative of output(), of the same shape.
  [[nodiscard]] MatrixView<S> output_bar() noexcept { return last_.output_bar(); }

  /// Computes output() from x (rows without gaps), which must not change until backward().
  ///
  /// \param hidden  of the hidden layers, h × h
  /// \throws std::invalid_argument  x or weights of another shape
  void forward(Execution execution, std::span<const LinearWeights<const S>> hidden,
               const LinearWeights<const S>& last, const MatrixView<const S>& x) {
    require_size(hidden, static_cast<Index>(hidden_.size()), "hidden");
    MatrixView<const S> in = x;
    for (std::size_t i = 0; i < hidden_.size(); ++i) {
      hidden_[i].forward(execution, hidden[i], in);
      in = hidden_[i].output();
    }
    last_.forward(execution, last, in);
  }

  /// May x_bar of backward() be x?
  [[nodiscard]] bool works_in_place() const noexcept { return hidden_.empty(); }
  /// Computes the derivatives of x (overwritten) and of the weights (added to) from the derivative of output().
  ///
  /// \param x     of forward()
  /// \param bar   rows × C
  /// \throws std::invalid_argument  views of another shape
  void backward(Execution execution, std::span<const LinearWeights<const S>> hidden,
                const LinearWeights<const S>& last, const MatrixView<const S>& x, const MatrixView<const S>& bar,
                const MatrixView<S>& x_bar, std::span<const LinearWeights<S>> hidden_bar,
                const LinearWeights<S>& last_bar) {
    require_size(hidden, static_cast<Index>(hidden_.size()), "hidden");
    require_size(hidden_bar, static_cast<Index>(hidden_.size()), "hidden_bar");
    require_array(x_bar, x.rows(), x.columns(), "x_bar");
    for (std::size_t i = 0; i < hidden_.size(); ++i) {  // before anything is added
      hidden_[i].require_weights(hidden[i]);
      hidden_[i].require_weights(hidden_bar[i]);
    }
    // The derivatives go to and fro between x_bar and a buffer of their own, and end in x_bar.
    const MatrixView<S> own(bar_.data(), x.rows(), x.columns());
    const auto target = [&](std::size_t i) { return i % 2 == 0 ? x_bar : own; };
    last_.backward(execution, last, hidden_.empty() ? x : hidden_.back().output(), bar, target(hidden_.size()),
                   last_bar);
    for (std::size_t i = hidden_.size(); i-- > 0;) {
      hidden_[i].backward(execution, hidden[i], i == 0 ? x : hidden_[i - 1].output(), target(i + 1), target(i),
                          false, hidden_bar[i]);
    }
  }

 private:
  std::vector<DenseLayer<S>> hidden_;
  OutputLayer<S> last_;
  Buffer<S> bar_;
};

}  // namespace sheafnn::layers
