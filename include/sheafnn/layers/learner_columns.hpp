/// \file
/// LearnerColumns: which columns of a sheaf learner's first layer multiply which entries of the ends [Z_u ‖ Z_v] of an arc.
/// Coordinates of complex features have f real parts, then f imaginary parts (math: "Directed sheaves" (3.53)).
///
/// Unchecked: indices of columns and of the ends.
#pragma once

#include "sheafnn/core/config.hpp"
#include "sheafnn/layers/sheaf_learner_options.hpp"

namespace sheafnn::layers {

/// \tparam Number  type of sizes: what an Index can be divided by
template <class Number>
struct LearnerColumns {
  int parts = 1;           ///< of a feature
  Number inputs{};         ///< of a node, h
  Number channels{};       ///< of a coordinate, with all parts
  Number part_inputs{};    ///< h / parts
  Number part_channels{};  ///< channels / parts

  LearnerColumns() = default;
  explicit LearnerColumns(const SheafLearnerOptions& of)
      : parts(static_cast<int>(of.parts)),
        inputs(of.inputs),
        channels(of.channels),
        part_inputs(of.inputs / of.parts),
        part_channels(of.channels / of.parts) {}

  /// Does every column i multiply entry i?
  [[nodiscard]] SHEAFNN_HD bool plain(LearnerInput input) const {
    return input == LearnerInput::concatenation && parts == 1;
  }
  /// The column that multiplies entry i of [Z_u ‖ Z_v].
  [[nodiscard]] SHEAFNN_HD Index column(LearnerInput input, Index i) const {
    if (plain(input)) return i;
    const Index side = i / inputs, own = i % inputs, f = part_channels;
    const Index part = own % channels / part_channels, channel = own % part_channels;
    const Index real = side * part_inputs + own / channels * f + channel;  // its index in its part of both ends
    switch (input) {
      case LearnerInput::summed:
        return (2 * part + side) * f + channel;
      case LearnerInput::summed_published:
        return 2 * part * f + (real - real / part_channels / 2 * 2 * f);
      default:
        return 2 * part * part_inputs + real;
    }
  }
  /// The entries of [Z_u ‖ Z_v] that a column multiplies.
  class Numbers {
   public:
    SHEAFNN_HD Numbers(const LearnerColumns& of, LearnerInput input, Index column) : of_(&of), first_(column) {
      plain_ = of.plain(input);
      if (plain_) return;
      const Index f = of.part_channels, h = of.part_inputs;
      const bool whole = input == LearnerInput::concatenation;
      part_ = (whole ? column / of.part_inputs : column / of.part_channels) / 2;
      first_ -= 2 * part_ * (whole ? h : f);
      if (whole) return;
      count_ = h / of.part_channels;
      step_ = 2 * f;
      if (input == LearnerInput::summed_published) return;
      step_ = f;
      first_ = first_ / of.part_channels * h + first_ % of.part_channels;
    }
    [[nodiscard]] SHEAFNN_HD Index count() const { return count_; }
    [[nodiscard]] SHEAFNN_HD Index operator[](Index j) const {
      const Index k = first_ + j * step_;
      if (plain_) return k;
      const Index side = k / of_->part_inputs, real = k % of_->part_inputs;
      return side * of_->inputs + real / of_->part_channels * of_->channels + part_ * of_->part_channels +
             real % of_->part_channels;
    }

   private:
    const LearnerColumns* of_;
    Index part_ = 0, first_, step_ = 0, count_ = 1;
    bool plain_;
  };
};

}  // namespace sheafnn::layers
