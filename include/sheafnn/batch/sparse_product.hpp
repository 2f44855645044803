/// \file
/// X W of sparse rows X for a batch of runs, with dropout of the entries of X and the gradient of W.
#pragma once

#include <algorithm>

#include "sheafnn/batch/array.hpp"
#include "sheafnn/batch/execution.hpp"
#include "sheafnn/batch/gradient_sums.hpp"
#include "sheafnn/batch/input.hpp"
#include "sheafnn/batch/run.hpp"
#include "sheafnn/core/config.hpp"

namespace sheafnn::batch::detail {

/// Rows of X W, for other kernels: after RowSegments.
template <class S>
struct SparseRows {
  InputView<S> input;
  const S* value;
  Index value_run;
  const S* weight;
  Index parameter_stride;
  Divisor width;
  const S* partial;  ///< from RowSegments

  [[nodiscard]] SHEAFNN_HD Index items() const { return input.rows * width; }
  /// W of a run.
  [[nodiscard]] SHEAFNN_HD const S* weight_of(Index run) const { return weight + run * parameter_stride; }
  /// What entries [first, last) of a row have at output c.
  [[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE S sum(Index c, Index run, Index first, Index last) const {
    return sum_entries(input, value + run * value_run, weight_of(run) + c, width, first, last);
  }
  /// `before` and what row u has at output c.
  [[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE S add_to(S before, Index u, Index c, Index run) const {
    const std::int32_t segment = input.row_segment_offset[u], last_segment = input.row_segment_offset[u + 1];
    if (segment == last_segment) before += sum(c, run, input.row_offset[u], input.row_offset[u + 1]);
    const S* parts = partial + run * input.row_segments * width + c;
    SHEAFNN_UNROLL_FOUR for (std::int32_t s = segment; s < last_segment; ++s) before += parts[s * width];
    return before;
  }
};

/// The part of a segment of a long row: item (row segment, c), group: run.
template <class S>
struct RowSegments {
  SparseRows<S> rows;
  S* out;  ///< row_segments × width per run

  SHEAFNN_HD void operator()(Index item, Index run) const {
    const InputView<S>& input = rows.input;
    const Index segment = item / rows.width;
    out[run * input.row_segments * rows.width + item] =
        rows.sum(item % rows.width, run, input.row_segment_entry[segment], input.row_segment_end[segment]);
  }
};

/// item (row, c), group: run.
template <class S>
struct StoreSparseRows {
  SparseRows<S> rows;
  S* out;

  SHEAFNN_HD void operator()(Index item, Index run) const {
    out[run * rows.items() + item] = rows.add_to(S(0), item / rows.width, item % rows.width, run);
  }
};

/// Buffers and passes of the product of all runs. W is columns × width.
template <class Executor, class S>
class BatchSparseProduct {
 public:
  BatchSparseProduct() = default;
  /// \param input    must outlive the product
  /// \param weight   offset of W in the parameters
  /// \param dropout  may entries be dropped?
  BatchSparseProduct(Executor& executor, const InputFeatures<Executor, S>& input, Index width, Index weight,
                     const BatchSize& batch, bool dropout)
      : input_(&input), width_(width), weight_(weight), runs_(batch.runs), dropout_(dropout) {
    const InputView<S> view = input.view();
    const Index segments = std::max(batch.trains() ? view.segments : 0, view.row_segments) * width;
    if (dropout) entry_ = Array<Executor, S>(executor, "features after dropout", runs_ * view.entries);
    partial_ = Array<Executor, S>(executor, "sums over features", runs_ * segments);
    require_countable("weights of the input layer", view.columns * width);
    require_countable("sums over features", segments);
  }

  [[nodiscard]] bool dropped() const noexcept { return dropped_; }

  /// Begins a forward pass: drop_entries(), row_segments() and what reads rows() are to be launched one after another.
  ///
  /// \param drop  apply the runs' dropout rules
  void begin(bool drop) {
    dropped_ = drop && dropout_;
    value_ = dropped_ ? entry_.data() : input_->view().value;
    value_run_ = dropped_ ? input_->view().entries : 0;
  }
  [[nodiscard]] Items<DropEntries<S>> drop_entries(const Run* runs) {
    const InputView<S> view = input_->view();
    return {dropped_ ? sheafnn::detail::dropout_blocks(view.entries) : 0,
            runs_,
            {runs, view.value, view.entries, entry_.data()}};
  }
  [[nodiscard]] Items<RowSegments<S>> row_segments(const ParameterView<S>& parameters) {
    const SparseRows<S> all = rows(parameters);
    return {all.input.row_segments * width_, runs_, {all, partial_.data()}};
  }
  [[nodiscard]] SparseRows<S> rows(const ParameterView<S>& parameters) const {
    return {input_->view(),    value_, value_run_,     parameters.value + weight_,
            parameters.stride, width_, partial_.data()};
  }
  /// A whole forward pass. \param out  X W of every run
  void forward(Executor& executor, const Run* runs, const ParameterView<S>& parameters, bool drop, S* out) {
    begin(drop);
    executor.launch_together(drop_entries(runs));
    executor.launch_together(row_segments(parameters));
    const StoreSparseRows<S> store{rows(parameters), out};
    executor.launch(store.rows.items(), runs_, store);
  }

  /// Backward, to be launched one after another: partial sums, and the gradient of W.
  ///
  /// \param bar  derivative of X W
  [[nodiscard]] Items<SegmentProducts<S>> column_products(const S* bar) {
    const InputView<S> view = input_->view();
    return {view.segments * width_, runs_, {view, value_, value_run_, bar, width_, partial_.data()}};
  }
  [[nodiscard]] Items<SegmentSums<S>> gradient(const ParameterView<S>& parameters) const {
    const InputView<S> view = input_->view();
    return {view.columns * width_,
            runs_,
            {view, partial_.data(), width_, parameters.gradient + weight_, parameters.stride}};
  }

 private:
  const InputFeatures<Executor, S>* input_ = nullptr;
  Index width_ = 0, weight_ = 0, runs_ = 0;
  bool dropout_ = false, dropped_ = false;
  const S* value_ = nullptr;
  Index value_run_ = 0;
  Array<Executor, S> entry_, partial_;
};

}  // namespace sheafnn::batch::detail
