/// \file
/// LinearPair: two linear layers of the same shape side by side,
///
///     Y = [X₁ W₁ + 1 b₁ᵀ | X₂ W₂ + 1 b₂ᵀ],   X₁ = X₂ = X, or X = [X₁ | X₂],
///
/// for groups of rows, with the backward pass. Layers that read the same X are one product with [W₁ | W₂].
#pragma once

#include <algorithm>
#include <array>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/layers/weights.hpp"
#include "sheafnn/nn/dense.hpp"

namespace sheafnn::layers {

/// Weights of both layers; a bias may be missing.
template <class T>
using LinearPairWeights = std::array<LinearWeights<T>, 2>;

/// Holds the weights of a pass in the order that its products read. Unchecked: in what works on groups of rows, their
/// indices and the sizes of arrays.
template <class S>
class LinearPair {
 public:
  LinearPair() = default;
  /// \param inputs, outputs  of each layer: i and o
  /// \param shared           do both read the same X? Then its rows have i values, otherwise 2i
  LinearPair(Index inputs, Index outputs, bool shared)
      : inputs_(inputs),
        outputs_(outputs),
        shared_(shared),
        weight_(2 * inputs * outputs),
        transposed_(2 * inputs * outputs),
        bias_(2 * outputs) {}

  [[nodiscard]] Index outputs() const noexcept { return 2 * outputs_; }
  [[nodiscard]] Index inputs() const noexcept { return shared_ ? inputs_ : 2 * inputs_; }

  /// Takes the weights of a pass. \throws std::invalid_argument  weights of another shape
  void bind(const LinearPairWeights<const S>& weights, bool training) {
    const Index o = outputs_;
    for (Index side = 0; side < 2; ++side) {
      const LinearWeights<const S>& one = weights[static_cast<std::size_t>(side)];
      check(one);
      S* weight = weight_.data() + (shared_ ? side * o : side * inputs_ * o);
      for (Index i = 0; i < inputs_; ++i) std::copy_n(one.weight.row(i).data(), o, weight + i * columns());
      std::fill_n(bias_.data() + side * o, o, S(0));
      if (!one.bias.empty()) std::copy_n(one.bias.data(), o, bias_.data() + side * o);
      if (!training) continue;
      detail::transpose_into(inputs_, o, one.weight.data(), transposed_.data() + side * o * inputs_, inputs_);
    }
  }

  /// y = Y at `count` rows. \param x, y  rows of X, `x_stride` apart, and of Y, one after the other
  void forward_rows(Index count, const S* x, Index x_stride, S* y) const {
    for (Index side = 0; side < parts(); ++side) {
      detail::multiply_block_from(MatrixView<const S>(x + side * inputs_, count, inputs_, x_stride),
                                  {weight_.data() + side * inputs_ * outputs_, inputs_, columns()},
                                  {bias_.data() + side * outputs_, count, columns(), 0, 1},
                                  MatrixView<S>(y + side * outputs_, count, columns(), 2 * outputs_));
    }
  }
  /// Rows of X̄ (+)= Ȳ Wᵀ. \param bar  rows of Ȳ, one after the other
  void input_rows(Index count, const S* bar, S* x_bar, Index x_stride, bool accumulate) const {
    for (Index side = 0; side < parts(); ++side) {
      detail::multiply_block(MatrixView<const S>(bar + side * outputs_, count, columns(), 2 * outputs_),
                             {transposed_.data() + side * inputs_ * outputs_, columns(), inputs_},
                             MatrixView<S>(x_bar + side * inputs_, count, inputs_, x_stride), accumulate);
    }
  }

  /// Number of sums that weight_rows() adds to.
  [[nodiscard]] Index partial_size() const noexcept { return 2 * outputs_ * (inputs_ + 1); }
  /// partial += the share of these rows in the derivatives of weights and biases.
  void weight_rows(Index count, const S* x, Index x_stride, const S* bar, S* partial) const {
    for (Index side = 0; side < parts(); ++side) {
      const MatrixView<const S> in(x + side * inputs_, count, inputs_, x_stride);
      const MatrixView<const S> out(bar + side * outputs_, count, columns(), 2 * outputs_);
      S* sum = partial + side * inputs_ * outputs_;
      if (transposes()) {
        detail::multiply_block(detail::transposed(out), in, MatrixView<S>(sum, columns(), inputs_), true);
      } else {
        detail::multiply_block(detail::transposed(in), out, MatrixView<S>(sum, inputs_, columns()), true);
      }
    }
    detail::add_column_sums(count, 2 * outputs_, bar, 2 * outputs_, partial + 2 * inputs_ * outputs_);
  }
  /// Adds sums of weight_rows() to derivatives. \throws std::invalid_argument  weights of another shape
  void add_partial(const S* partial, const LinearPairWeights<S>& weights_bar) const {
    const Index o = outputs_;
    for (Index side = 0; side < 2; ++side) {
      const LinearWeights<S>& one = weights_bar[static_cast<std::size_t>(side)];
      check(one);
      const S* sum = partial + (shared_ && !transposes() ? side * o : side * inputs_ * o);
      const Index row = transposes() ? 1 : columns(), column = transposes() ? inputs_ : 1;
      for (Index i = 0; i < inputs_; ++i) {
        S* out = one.weight.row(i).data();
        for (Index j = 0; j < o; ++j) out[j] += sum[i * row + j * column];
      }
      const S* bias = partial + 2 * inputs_ * o + side * o;
      if (!one.bias.empty()) {
        for (Index j = 0; j < o; ++j) one.bias[static_cast<std::size_t>(j)] += bias[j];
      }
    }
  }

 private:
  template <class T>
  void check(const LinearWeights<T>& weights) const {
    require_array(weights.weight, inputs_, outputs_, "weight");
    if (!weights.bias.empty()) require_size(weights.bias, outputs_, "bias");
  }
  /// Products that it takes, and the columns of each.
  [[nodiscard]] Index parts() const noexcept { return shared_ ? 1 : 2; }
  [[nodiscard]] Index columns() const noexcept { return shared_ ? 2 * outputs_ : outputs_; }
  /// Are the derivatives of the weights summed as o × i? Faster where rows of Y are shorter than a pack.
  [[nodiscard]] bool transposes() const noexcept { return columns() < row_lanes<S>; }

  Index inputs_ = 0, outputs_ = 0;
  bool shared_ = true;
  Buffer<S> weight_;      ///< [W₁ | W₂], or one after the other
  Buffer<S> transposed_;  ///< W₁ᵀ, W₂ᵀ
  Buffer<S> bias_;        ///< b₁, b₂
};

}  // namespace sheafnn::layers
