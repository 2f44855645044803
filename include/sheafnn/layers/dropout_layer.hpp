/// \file
/// DropoutLayer: dropout of dense features, with its backward pass,
///
///     Y = M ∘ X / (1 − p),   X̄ = M ∘ Ȳ / (1 − p),   entries of M independently 1 with probability 1 − p, else 0.
#pragma once

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/views.hpp"
#include "sheafnn/nn/dropout.hpp"
#include "sheafnn/nn/dropout_mask.hpp"

namespace sheafnn::layers {

/// Buffers are allocated when something is dropped for the first time.
template <class S>
class DropoutLayer {
 public:
  /// \param rows, columns  of X \throws std::invalid_argument  negative
  DropoutLayer(Index rows, Index columns)
      : rows_(checked_extent("rows", rows, 0)),
        columns_(checked_extent("columns", columns, 0)),
        mask_(rows * columns) {}

  /// Computes output() from x, which must not change until backward().
  ///
  /// \throws std::invalid_argument  x of another shape
  void forward(Execution execution, const MatrixView<const S>& x, const Dropout& dropout);
  /// x itself while nothing is dropped.
  [[nodiscard]] const MatrixView<const S>& output() const noexcept { return output_; }
  [[nodiscard]] bool dropped() const noexcept { return dropped_; }

  /// Adds the derivative of x to the separate array x_bar, from the derivative of output().
  ///
  /// \throws std::invalid_argument  views of another shape
  void backward(Execution execution, const MatrixView<const S>& bar, const MatrixView<S>& x_bar) const;
  /// Replaces the derivative of output() by the derivative of x.
  ///
  /// \throws std::invalid_argument  a view of another shape
  void backward_in_place(Execution execution, const MatrixView<S>& bar) const {
    require_array(bar, rows_, columns_, "output_bar");
    if (dropped_) detail::apply_dropout(execution, rows_ * columns_, bar.data(), mask_.bits(), scale_, bar.data());
  }
  [[nodiscard]] DropoutMask& mask() noexcept { return mask_; }
  /// The array of output() where something is dropped.
  [[nodiscard]] Buffer<S>& kept() noexcept { return kept_; }

 private:
  Index rows_, columns_;
  Buffer<S> kept_;
  DropoutMask mask_;
  MatrixView<const S> output_;
  double scale_ = 1;
  bool dropped_ = false;
};

template <class S>
void DropoutLayer<S>::forward(Execution execution, const MatrixView<const S>& x, const Dropout& dropout) {
  require_array(x, rows_, columns_, "x");
  dropped_ = dropout.active();
  output_ = x;
  if (!dropped_) return;
  if (kept_.empty()) kept_.resize(rows_ * columns_);
  scale_ = dropout.scale();
  mask_.draw(execution, dropout);
  detail::apply_dropout(execution, kept_.size(), x.data(), mask_.bits(), scale_, kept_.data());
  output_ = {kept_.data(), rows_, columns_};
}

template <class S>
void DropoutLayer<S>::backward(Execution execution, const MatrixView<const S>& bar,
                               const MatrixView<S>& x_bar) const {
  require_array(bar, rows_, columns_, "output_bar");
  require_array(x_bar, rows_, columns_, "x_bar");
  detail::apply_dropout<true>(execution, rows_ * columns_, bar.data(), mask_.bits(), scale_, x_bar.data());
}

}  // namespace sheafnn::layers
