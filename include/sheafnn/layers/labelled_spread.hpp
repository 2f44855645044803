/// \file
/// LabelledSpread: raw outputs of the spreads of incident pairs from a table with a row for each label of edges. It replaces
/// a sheaf learner, and has a backward pass. It has the interface of SheafLearner that VariationalSheaf reads.
/// Source: math: "Around given maps".
#pragma once

#include <algorithm>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/views.hpp"
#include "sheafnn/layers/edge_blocks.hpp"
#include "sheafnn/posterior/around_given.hpp"

namespace sheafnn::layers {

/// Buffers and passes on one graph. Unchecked: indices of blocks and sides, and that labels belong to the blocks' edges.
template <class S>
class LabelledSpread {
 public:
  static constexpr int W = lanes<S>;

  /// `blocks` must outlive the table. \param outputs  q, spreads of an incident pair
  LabelledSpread(const EdgeBlocks<S>& blocks, const EdgeLabels& labels, Index outputs)
      : blocks_(&blocks),
        labels_(labels),
        outputs_(outputs),
        raw_(blocks.block_count() * 2 * outputs * W),
        raw_bar_(raw_.size()) {}

  [[nodiscard]] Index outputs() const noexcept { return outputs_; }
  [[nodiscard]] const S* raw(Index block, int side) const noexcept {
    return raw_.data() + (block * 2 + side) * outputs_ * W;
  }
  [[nodiscard]] S* raw_bar(Index block, int side) noexcept {
    return raw_bar_.data() + (block * 2 + side) * outputs_ * W;
  }

  /// \param table  labels × q
  /// \throws std::invalid_argument  a table of another shape
  void forward(const MatrixView<const S>& table) {
    require_array(table, labels_.count, outputs_, "dispersion");
    for_edges([&](Index block, int lane, Index label) {
      for (int side = 0; side < 2; ++side) {
        for (Index k = 0; k < outputs_; ++k)
          raw_[((block * 2 + side) * outputs_ + k) * W + lane] = table(label, k);
      }
    });
  }
  /// Adds the derivative of the table. \throws std::invalid_argument  one of another shape
  void backward(const MatrixView<S>& table_bar) const {
    require_array(table_bar, labels_.count, outputs_, "dispersion_bar");
    for_edges([&](Index block, int lane, Index label) {
      if (lane >= blocks_->lane_count(block)) return;
      for (int side = 0; side < 2; ++side) {
        for (Index k = 0; k < outputs_; ++k) {
          table_bar(label, k) += raw_bar_[((block * 2 + side) * outputs_ + k) * W + lane];
        }
      }
    });
  }

 private:
  /// use(block, lane, label) for all lanes; lanes after the last edge have its label.
  template <class Use>
  void for_edges(const Use& use) const {
    for (Index block = 0; block < blocks_->block_count(); ++block) {
      for (int lane = 0; lane < W; ++lane) {
        const Index e = std::min(block * W + lane, blocks_->edge_count() - 1);
        use(block, lane, labels_.of_edge[static_cast<std::size_t>(e)]);
      }
    }
  }

  const EdgeBlocks<S>* blocks_;
  EdgeLabels labels_;
  Index outputs_;
  Buffer<S> raw_, raw_bar_;
};

}  // namespace sheafnn::layers
