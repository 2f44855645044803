/// \file
/// LearnerInput: what a deterministic model's sheaf learner reads, hidden features after a dropout of their own
/// (math: "The model").
#pragma once

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/config.hpp"
#include "sheafnn/nn/dropout.hpp"
#include "sheafnn/nn/dropout_mask.hpp"

namespace sheafnn {

/// Buffers of one learner's input; they take no room as long as nothing is dropped.
template <class S>
class LearnerInput {
 public:
  /// \param size  number of features
  explicit LearnerInput(Index size) : size_(size), mask_(size) {}

  /// Takes features x, which have to stay in place until backward().
  /// \returns dropout(x), of as many
  const S* forward(int threads, const S* x, const Dropout& dropout) {
    dropped_ = dropout.active();
    values_ = x;
    if (!dropped_) return values_;
    if (kept_.empty()) kept_.resize(size_);
    scale_ = dropout.scale();
    mask_.draw(threads, dropout);
    apply_dropout(threads, size_, x, mask_.bits(), scale_, kept_.data());
    values_ = kept_.data();
    return values_;
  }

  /// What forward() returned.
  [[nodiscard]] const S* values() const noexcept { return values_; }
  /// Is it something else than x?
  [[nodiscard]] bool dropped() const noexcept { return dropped_; }

  /// x_bar += the derivative of x, from that of values(), where they differ.
  void backward(int threads, const S* bar, S* x_bar) const {
    apply_dropout<true>(threads, size_, bar, mask_.bits(), scale_, x_bar);
  }
  [[nodiscard]] DropoutMask& mask() noexcept { return mask_; }

 private:
  Index size_;
  Buffer<S> kept_;
  DropoutMask mask_;
  const S* values_ = nullptr;
  double scale_ = 1;
  bool dropped_ = false;
};

}  // namespace sheafnn
