/// \file
/// Encoder: H = dropout(ELU(dropout_in(X) W₁ᵀ + b₁)) for a batch of runs (math: "The model"; for one network
/// layers/encoder.hpp).
#pragma once

#include "sheafnn/batch/execution.hpp"
#include "sheafnn/batch/gradient_sums.hpp"
#include "sheafnn/batch/input.hpp"
#include "sheafnn/batch/run.hpp"
#include "sheafnn/batch/sparse_product.hpp"
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
  SparseRows<S> rows;
  const Run* runs;
  const S* bias;
  const S* degree;  ///< null: no degree input
  kernels::EncoderEnd end;
  bool drop;
  S* activated;
  S* out;  ///< after dropout

  SHEAFNN_HD void operator()(Index item, Index run) const {
    const Index u = item / rows.width, c = item % rows.width;
    S sum = rows.add_to(bias[run * rows.parameter_stride + c], u, c, run);
    if (degree != nullptr) sum += degree[u] * rows.weight_of(run)[rows.input.columns * rows.width + c];
    sum = end.forward(sum);
    const Index index = run * rows.items() + item;
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
        product_(executor, input, shape.width, parameters.info(at.weight).offset, batch, dropout),
        weight_(parameters.info(at.weight).offset),
        bias_(parameters.info(at.bias).offset),
        degree_(shape.degrees ? degree : nullptr),
        runs_(batch.runs),
        drops_output_(drops_output) {
    const InputView<S> view = input.view();
    const Index size = runs_ * view.rows * shape.width;
    if (dropout && drops_output) output_ = Array<Executor, S>(executor, "embeddings", size);
    activated_ = Array<Executor, S>(executor, "embeddings", size);
    const RowChunks chunks{view.rows};
    const Index stride = (shape.degrees ? 2 : 1) * shape.width;
    sums_ = sums.reserve(chunks.count(), stride);
    if (shape.degrees) {
      sums.assign(weight_ + view.columns * shape.width, shape.width, sums_, chunks.count(), stride);
    }
    sums.assign(bias_, shape.width, sums_ + stride - shape.width, chunks.count(), stride);
  }

  /// n × h per run, after forward().
  [[nodiscard]] const S* output() const noexcept { return drops() ? output_.data() : activated_.data(); }

  /// Begins a forward pass: drop_entries(), row_segments() and nodes() are to be launched one after another.
  ///
  /// \param drop  apply the runs' dropout rules
  void begin(bool drop) { product_.begin(drop); }
  [[nodiscard]] Items<DropEntries<S>> drop_entries(const Run* runs) { return product_.drop_entries(runs); }
  [[nodiscard]] Items<RowSegments<S>> row_segments(const ParameterView<S>& parameters) {
    return product_.row_segments(parameters);
  }
  [[nodiscard]] Items<EncodeNodes<S>> nodes(const Run* runs, const ParameterView<S>& parameters) {
    const SparseRows<S> rows = product_.rows(parameters);
    return {rows.items(),
            runs_,
            {rows, runs, parameters.value + bias_, degree_, end(), drops(), activated_.data(), output_.data()}};
  }

  /// Backward, to be launched one after another. The derivative before activation, in place of the derivative of output();
  /// partial sums of the gradients, two parts; the weight's gradient.
  ///
  /// \param bar  derivative of output(), which is overwritten
  [[nodiscard]] Items<EncodeNodesBackward<S>> before_activation(const Run* runs, S* bar) const {
    const Index size = input_->view().rows * shape_.width;
    return {size, runs_, {runs, activated_.data(), end(), drops(), size, bar}};
  }
  [[nodiscard]] Items<SegmentProducts<S>> column_products(const S* bar) { return product_.column_products(bar); }
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
    return product_.gradient(parameters);
  }

 private:
  /// Does the output of this pass have dropout?
  [[nodiscard]] bool drops() const noexcept { return product_.dropped() && drops_output_; }
  [[nodiscard]] kernels::EncoderEnd end() const noexcept { return {shape_.activation, shape_.rectified}; }

  const InputFeatures<Executor, S>* input_ = nullptr;
  layers::EncoderOptions shape_;
  BatchSparseProduct<Executor, S> product_;
  Index weight_ = 0, bias_ = 0;
  const S* degree_ = nullptr;
  Index runs_ = 0, sums_ = 0;
  bool drops_output_ = true;
  Array<Executor, S> activated_, output_;
};

}  // namespace sheafnn::batch::detail
