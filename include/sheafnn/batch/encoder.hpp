/// \file
/// Encoder: H = dropout(ELU(dropout_in(X) W₁ᵀ + b₁)) for a batch of runs (math: "The model"; for one network
/// layers/encoder.hpp).
///
/// Unchecked: numbers of items, runs, instances and lanes, and the sizes of arrays behind pointers and views.
/// BatchNetwork and BatchTrainer check their arguments.
#pragma once

#include <algorithm>

#include "sheafnn/batch/execution.hpp"
#include "sheafnn/batch/gradient_sums.hpp"
#include "sheafnn/batch/input.hpp"
#include "sheafnn/batch/run.hpp"
#include "sheafnn/bsnn/model_layout.hpp"
#include "sheafnn/kernels/layer_end.hpp"
#include "sheafnn/layers/encoder.hpp"

namespace sheafnn::batch::detail {

/// Dropout of the encoder's output.
template <class S>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE ElementDropout<S> hidden_dropout(const Run& run) {
  return {run.stream(Purpose::hidden_dropout), run.dropout};
}

/// item (node, c), group: run.
template <class S>
struct EncodeNodes {
  InputView<S> input;
  const Run* runs;
  const S* value;
  Index value_run;
  const S* weight;
  const S* bias;
  Index parameter_stride;
  const S* degree;  ///< null: no degree input
  Divisor width;
  kernels::EncoderEnd end;
  bool drop;
  const S* partial;  ///< from RowSegments
  S* activated;
  S* out;  ///< after dropout

  SHEAFNN_HD void operator()(Index item, Index run) const {
    const Index u = item / width, c = item % width;
    const S* values = value + run * value_run;
    const S* w = weight + run * parameter_stride + c;
    S sum = bias[run * parameter_stride + c];
    const std::int32_t segment = input.row_segment_offset[u], last_segment = input.row_segment_offset[u + 1];
    if (segment == last_segment) {
      sum += sum_entries(input, values, w, width, input.row_offset[u], input.row_offset[u + 1]);
    }
    const S* parts = partial + run * input.row_segments * width + c;
    SHEAFNN_UNROLL_FOUR for (std::int32_t s = segment; s < last_segment; ++s) sum += parts[s * width];
    if (degree != nullptr) sum += degree[u] * w[input.columns * width];
    sum = end.forward(sum);
    const Index index = run * input.rows * width + item;
    activated[index] = sum;
    if (drop) out[index] = hidden_dropout<S>(runs[run])(item, sum);
  }
};

/// Derivative of the layer before activation, in place; item (node, c), group: run.
template <class S>
struct EncodeNodesBackward {
  const Run* runs;
  const S* activated;
  kernels::EncoderEnd end;
  bool dropped;
  Index size;
  S* bar;

  SHEAFNN_HD void operator()(Index item, Index run) const {
    const Index index = run * size + item;
    S value = bar[index];
    if (dropped) value = hidden_dropout<S>(runs[run])(item, value);
    bar[index] = end.backward(activated[index], value);
  }
};

/// Buffers and passes of one encoder of all runs.
template <class Executor, class S>
class BatchEncoder {
 public:
  BatchEncoder() = default;
  /// \param dropout       may inputs and outputs be dropped? (The sheaf's encoder has no such dropout.)
  /// \param drops_output  false: inputs only
  BatchEncoder(Executor& executor, const InputFeatures<Executor, S>& input, const S* degree,
               layers::EncoderOptions shape, const layers::LinearWeights<layers::ParameterSlot>& at,
               const layers::ParameterSet<S>& parameters, const BatchSize& batch, bool dropout, PartialSums& sums,
               bool drops_output = true)
      : input_(&input),
        shape_(shape),
        weight_(parameters.info(at.weight).offset),
        bias_(parameters.info(at.bias).offset),
        degree_(shape.degrees ? degree : nullptr),
        runs_(batch.runs),
        dropout_(dropout),
        drops_output_(drops_output) {
    const InputView<S> view = input.view();
    const Index size = runs_ * view.rows * shape.width;
    const Index segments = std::max(batch.trains() ? view.segments : 0, view.row_segments) * shape.width;
    if (dropout) {
      entry_ = Array<Executor, S>(executor, "features after dropout", runs_ * view.entries);
      if (drops_output) output_ = Array<Executor, S>(executor, "embeddings", size);
    }
    activated_ = Array<Executor, S>(executor, "embeddings", size);
    partial_ = Array<Executor, S>(executor, "sums over features", runs_ * segments);
    require_countable("weights of the input layer", view.columns * shape.width);
    require_countable("sums over features", segments);
    const RowChunks chunks{view.rows};
    const Index stride = (shape.degrees ? 2 : 1) * shape.width;
    sums_ = sums.reserve(chunks.count(), stride);
    if (shape.degrees) {
      sums.assign(weight_ + view.columns * shape.width, shape.width, sums_, chunks.count(), stride);
    }
    sums.assign(bias_, shape.width, sums_ + stride - shape.width, chunks.count(), stride);
  }

  /// n × h per run, after forward().
  [[nodiscard]] const S* output() const noexcept {
    return dropped_ && drops_output_ ? output_.data() : activated_.data();
  }

  /// Begins a forward pass: drop_entries(), row_segments() and nodes() are to be launched one after another.
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
    const InputView<S> view = input_->view();
    return {view.row_segments * shape_.width,
            runs_,
            {view, value_, value_run_, parameters.value + weight_, parameters.stride, shape_.width,
             partial_.data()}};
  }
  [[nodiscard]] Items<EncodeNodes<S>> nodes(const Run* runs, const ParameterView<S>& parameters) {
    const InputView<S> view = input_->view();
    return {view.rows * shape_.width,
            runs_,
            {view, runs, value_, value_run_, parameters.value + weight_, parameters.value + bias_,
             parameters.stride, degree_, shape_.width, end(), dropped_ && drops_output_, partial_.data(),
             activated_.data(), output_.data()}};
  }

  /// Backward, to be launched one after another: the derivative before activation, in place of the derivative of
  /// output(); partial sums of the gradients, two parts; the weight's gradient.
  ///
  /// \param bar  derivative of output(), which is overwritten
  [[nodiscard]] Items<EncodeNodesBackward<S>> before_activation(const Run* runs, S* bar) const {
    const Index size = input_->view().rows * shape_.width;
    return {size, runs_, {runs, activated_.data(), end(), dropped_ && drops_output_, size, bar}};
  }
  [[nodiscard]] Items<SegmentProducts<S>> column_products(const S* bar) {
    const InputView<S> view = input_->view();
    return {view.segments * shape_.width, runs_, {view, value_, value_run_, bar, shape_.width, partial_.data()}};
  }
  [[nodiscard]] Items<RowProducts<S>> row_products(const ParameterView<S>& parameters, const S* bar) const {
    const Index rows = input_->view().rows, width = shape_.width;
    const RowProducts<S> products{degree_,
                                  degree_ != nullptr ? 1 : 0,
                                  1,
                                  0,
                                  bar,
                                  width,
                                  width,
                                  rows * width,
                                  {rows},
                                  true,
                                  parameters.arena + sums_,
                                  parameters.arena_stride};
    return {products.items(), runs_, products};
  }
  [[nodiscard]] Items<SegmentSums<S>> gradient(const ParameterView<S>& parameters) const {
    const InputView<S> view = input_->view();
    return {view.columns * shape_.width,
            runs_,
            {view, partial_.data(), shape_.width, parameters.gradient + weight_, parameters.stride}};
  }

 private:
  [[nodiscard]] kernels::EncoderEnd end() const noexcept { return {shape_.activation, shape_.rectified}; }

  const InputFeatures<Executor, S>* input_ = nullptr;
  layers::EncoderOptions shape_;
  Index weight_ = 0, bias_ = 0;
  const S* degree_ = nullptr;
  Index runs_ = 0, sums_ = 0;
  bool dropout_ = false, drops_output_ = true, dropped_ = false;
  const S* value_ = nullptr;
  Index value_run_ = 0;
  Array<Executor, S> entry_, activated_, output_, partial_;
};

}  // namespace sheafnn::batch::detail
