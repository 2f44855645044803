/// \file
/// BatchActivatedEncoder: an encoder with a choice of activation, for a batch of runs (for one network
/// layers/activated_encoder.hpp).
#pragma once

#include "sheafnn/batch/activated_linear.hpp"
#include "sheafnn/batch/array.hpp"
#include "sheafnn/batch/encoder.hpp"

namespace sheafnn::batch::detail {

/// act(dropout_in(X) W + b) of all runs: an encoder with a choice of activation.
template <class Executor, class S>
class BatchActivatedEncoder {
 public:
  /// \param dropout  may the features be dropped?
  BatchActivatedEncoder(Executor& executor, const InputFeatures<Executor, S>& input, Index width,
                        Activation activation, const layers::LinearWeights<layers::ParameterSlot>& at,
                        const layers::ParameterSet<S>& parameters, const BatchSize& batch, bool dropout,
                        PartialSums& sums)
      : linear_(executor, input, nullptr, {width, false, false}, at, parameters, batch, dropout, sums, false),
        activation_(activation),
        runs_(batch.runs),
        size_(input.view().rows * width),
        output_(executor, "embeddings", batch.runs * size_) {}

  [[nodiscard]] const S* output() const noexcept { return output_.data(); }
  [[nodiscard]] S* output() noexcept { return output_.data(); }
  /// \param drop  apply the runs' dropout rules of features
  void forward(Executor& executor, const Run* runs, const ParameterView<S>& parameters, bool drop) {
    linear_.begin(drop);
    executor.launch_together(linear_.drop_entries(runs));
    executor.launch_together(linear_.row_segments(parameters));
    executor.launch_together(linear_.nodes(runs, parameters));
    executor.launch(runs_ * size_, 1, Activate<S>{activation_, linear_.output(), output_.data()});
  }
  /// Partial sums of the gradients, except in gradient(). \param bar  derivative of output(), overwritten
  void backward(Executor& executor, const ParameterView<S>& parameters, S* bar) {
    executor.launch(runs_ * size_, 1, ActivationSlopes<S>{activation_, linear_.output(), bar});
    executor.launch_together(linear_.column_products(bar), linear_.row_products(parameters, bar));
  }
  [[nodiscard]] Items<SegmentSums<S>> gradient(const ParameterView<S>& parameters) const {
    return linear_.gradient(parameters);
  }

 private:
  BatchEncoder<Executor, S> linear_;
  Activation activation_;
  Index runs_, size_;
  Array<Executor, S> output_;
};

}  // namespace sheafnn::batch::detail
