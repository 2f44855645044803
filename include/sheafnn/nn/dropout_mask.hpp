/// \file
/// DropoutMask: the mask of one dropout of a network, drawn when it is needed or, by another thread, ahead of time.
#pragma once

#include <cassert>
#include <cstdint>
#include <optional>
#include <utility>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/config.hpp"
#include "sheafnn/core/execution.hpp"
#include "sheafnn/nn/dropout.hpp"

namespace sheafnn {

/// One bit per element, for this pass and the next. Nothing is allocated before something is drawn.
class DropoutMask {
 public:
  DropoutMask() = default;
  explicit DropoutMask(Index elements) : elements_(elements) {}

  /// The mask of the last draw(), as Dropout::fill_mask() writes it.
  [[nodiscard]] const std::uint8_t* bits() const noexcept { return bits_.data(); }

  /// Makes bits() those of an active dropout.
  void draw(Execution execution, const Dropout& dropout) {
    if (bits_.empty()) bits_.resize(Dropout::mask_size(elements_));
    if (drawn_ == dropout) return;
    dropout.fill_mask(execution, elements_, bits_.data());
    drawn_ = dropout;
  }
  /// Draws the mask of a pass to come: after take_ahead(), in any thread, also beside draw() and bits().
  void draw_ahead(const Dropout& dropout) {
    assert(!ahead_bits_.empty());
    dropout.fill_mask(1, elements_, ahead_bits_.data());
    ahead_ = dropout;
  }
  /// Not beside draw_ahead(): makes the mask that was drawn ahead available to draw(), and prepares the next one.
  void take_ahead() {
    if (ahead_) {
      std::swap(bits_, ahead_bits_);
      drawn_ = std::exchange(ahead_, std::nullopt);
    }
    if (ahead_bits_.empty()) ahead_bits_.resize(Dropout::mask_size(elements_));
  }

 private:
  Index elements_ = 0;
  // Of draw(), and of draw_ahead(), which share nothing; and whose bits these are.
  Buffer<std::uint8_t> bits_, ahead_bits_;
  std::optional<Dropout> drawn_, ahead_;
};

}  // namespace sheafnn
