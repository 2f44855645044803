/// \file
/// DropoutMask: the mask of one dropout of a network, drawn when it is wanted or, by another thread, ahead of that.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/config.hpp"
#include "sheafnn/nn/dropout.hpp"

namespace sheafnn {

/// One bit per element, and room for those of the next pass. Takes no room before anything is drawn.
class DropoutMask {
 public:
  DropoutMask() = default;
  explicit DropoutMask(Index elements) : elements_(elements) {}

  /// The mask of the last draw(), as Dropout::fill_mask() writes it.
  [[nodiscard]] const std::uint8_t* bits() const noexcept { return bits_.data(); }

  /// Makes bits() those of an active dropout.
  void draw(int threads, const Dropout& dropout) {
    if (drawn_ == dropout) return;
    make_room();
    dropout.fill_mask(threads, elements_, bits_.data());
    drawn_ = dropout;
  }
  /// Draws the mask of a pass to come, in any thread, beside one that calls draw() and bits().
  void draw_ahead(const Dropout& dropout) {
    make_room();
    dropout.fill_mask(1, elements_, ahead_bits_.data());
    ahead_ = dropout;
  }
  /// After draw_ahead(), and not beside it: the next draw() of that dropout finds its bits.
  void take_ahead() noexcept {
    if (!ahead_) return;
    std::swap(bits_, ahead_bits_);
    drawn_ = std::exchange(ahead_, std::nullopt);
  }

 private:
  void make_room() {
    if (!bits_.empty()) return;
    bits_.resize(Dropout::mask_size(elements_));
    ahead_bits_.resize(bits_.size());
  }

  Index elements_ = 0;
  Buffer<std::uint8_t> bits_, ahead_bits_;
  std::optional<Dropout> drawn_, ahead_;  ///< whose bits these are
};

}  // namespace sheafnn
