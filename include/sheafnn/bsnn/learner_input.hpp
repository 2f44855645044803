/// \file
/// LearnerInput: what a deterministic model's sheaf learner reads, hidden features after a dropout of their own
/// (math: "The model").
#pragma once

#include <cstdint>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/config.hpp"
#include "sheafnn/nn/dropout.hpp"

namespace sheafnn {

/// Buffers of one learner's input; they take no room as long as nothing is dropped.
template <class S>
class LearnerInput {
 public:
  /// Takes `size` features x, which have to stay in place until backward().
  /// \returns dropout(x), of as many
  const S* forward(int threads, Index size, const S* x, const Dropout& dropout) {
    dropped_ = dropout.active();
    values_ = x;
    if (!dropped_) return values_;
    if (kept_.empty()) {
      kept_.resize(size);
      mask_.resize(Dropout::mask_size(size));
    }
    scale_ = dropout.scale();
    dropout.fill_mask(threads, size, mask_.data());
    apply_dropout(threads, size, x, mask_.data(), scale_, kept_.data());
    values_ = kept_.data();
    return values_;
  }

  /// What forward() returned.
  [[nodiscard]] const S* values() const noexcept { return values_; }
  /// Is it something else than x?
  [[nodiscard]] bool dropped() const noexcept { return dropped_; }

  /// x_bar += the derivative of x, from that of values(), where they differ.
  void backward(int threads, Index size, const S* bar, S* x_bar) const {
    apply_dropout<true>(threads, size, bar, mask_.data(), scale_, x_bar);
  }

 private:
  Buffer<S> kept_;
  Buffer<std::uint8_t> mask_;
  const S* values_ = nullptr;
  double scale_ = 1;
  bool dropped_ = false;
};

}  // namespace sheafnn
