/// \file
/// DropoutMask: the mask of one dropout of a network, drawn when it is needed or, by another thread, ahead of time.
/// MaskDrawing draws several masks at a time. Unchecked: sizes of at least 0, and what Dropout does not check.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/config.hpp"
#include "sheafnn/core/execution.hpp"
#include "sheafnn/nn/dropout.hpp"
#include "sheafnn/nn/element_runs.hpp"

namespace sheafnn::layers {

/// One bit per element, for this pass and the next. Nothing is allocated before something is drawn.
class DropoutMask {
 public:
  DropoutMask() = default;
  explicit DropoutMask(Index elements) : elements_(elements) {}

  /// Before the first draw: the elements are some of a larger mask, with the bits that they have there (null: they are
  /// all). Unchecked: no more than there are.
  void set_runs(std::shared_ptr<const ElementRuns> runs) {
    assert(runs == nullptr || runs->count() <= elements_);
    runs_ = std::move(runs);
  }

  /// The mask of the last draw(), as Dropout::fill_mask() writes it.
  [[nodiscard]] const std::uint8_t* bits() const noexcept { return bits_.data(); }

  /// Makes bits() return the mask of an active dropout.
  SHEAFNN_NOINLINE void draw(Execution execution, const Dropout& dropout) {
    if (begin_draw(dropout)) fill(execution, dropout, bits_.data());
  }
  /// Draws the mask of the next pass: after take_ahead(), in any thread, even during draw() and bits().
  SHEAFNN_NOINLINE void draw_ahead(const Dropout& dropout) {
    assert(!ahead_bits_.empty());
    fill(1, dropout, ahead_bits_.data());
    ahead_ = dropout;
  }
  /// Never during draw_ahead(): makes the mask that was drawn ahead available to draw(), and prepares the next one.
  void take_ahead() {
    if (ahead_) {
      std::swap(bits_, ahead_bits_);
      drawn_ = std::exchange(ahead_, std::nullopt);
    }
    if (ahead_bits_.empty()) ahead_bits_.resize(Dropout::mask_size(elements_));
  }

 private:
  friend class MaskDrawing;
  /// \returns whether the bits are still to be written
  [[nodiscard]] bool begin_draw(const Dropout& dropout) {
    if (bits_.empty()) bits_.resize(Dropout::mask_size(elements_));
    if (drawn_ == dropout) return false;
    drawn_ = dropout;
    return true;
  }

  void fill(Execution execution, const Dropout& dropout, std::uint8_t* bits) const {
    if (runs_ != nullptr) {
      runs_->fill_mask(execution, dropout, elements_, bits);
    } else {
      dropout.fill_mask(execution, elements_, bits);
    }
  }

  Index elements_ = 0;
  std::shared_ptr<const ElementRuns> runs_;
  // Of draw(), and of draw_ahead(), which share nothing; and whose bits these are.
  Buffer<std::uint8_t> bits_, ahead_bits_;
  std::optional<Dropout> drawn_, ahead_;
};

/// Draws several masks in one loop over all of their elements.
class MaskDrawing {
 public:
  /// The mask of an active dropout, for run(). It must stay where it is until then.
  void add(DropoutMask& mask, const Dropout& dropout) {
    assert(mask.runs_ == nullptr);
    if (mask.begin_draw(dropout)) pending_.push_back({&mask, dropout, Dropout::blocks(mask.elements_)});
  }
  void run(Execution execution) {
    Index total = 0;
    for (const Pending& one : pending_) total += one.blocks;
    parallel_for(execution, total, 16, [&](Index begin, Index end) {
      Index first = 0;  // block of the mask at hand
      for (const Pending& one : pending_) {
        const Index from = std::max(begin, first) - first, to = std::min(end, first + one.blocks) - first;
        if (from < to) one.dropout.fill_blocks(from, to, one.mask->bits_.data());
        first += one.blocks;
      }
    });
    pending_.clear();
  }

 private:
  struct Pending {
    DropoutMask* mask;
    Dropout dropout;
    Index blocks;
  };
  std::vector<Pending> pending_;
};

}  // namespace sheafnn::layers
