/// \file
/// BatchFeedForward: dropout(GELU(X W₁ + b₁)) W₂ for a batch of runs, whose last bias the reader adds, and its backward pass (for
/// one network layers/feed_forward.hpp).
#pragma once

#include <cstddef>

#include "sheafnn/batch/activated_linear.hpp"
#include "sheafnn/batch/array.hpp"
#include "sheafnn/batch/feature_kernels.hpp"
#include "sheafnn/batch/linear.hpp"
#include "sheafnn/batch/run.hpp"
#include "sheafnn/batch/second_linear.hpp"
#include "sheafnn/layers/bundle_weights.hpp"

namespace sheafnn::batch::detail {

/// A dropout of the runs' rates in place, or nothing.
struct PassDropout {
  const Run* runs;
  Pass pass;
  Purpose purpose;
  Index number;  ///< in the addresses of random numbers
  bool active;

  /// \param size  of an instance
  template <class S>
  [[nodiscard]] Items<ApplyDropout<S>> of(S* numbers, Index size) const {
    return dropout_part(active, runs, pass, purpose, static_cast<std::size_t>(number), numbers, size, numbers);
  }
};

/// What its backward pass reads stays in its own arrays.
template <class Executor, class S>
class BatchFeedForward {
 public:
  BatchFeedForward(Executor& executor, const layers::FeedForwardWeights<layers::ParameterSlot>& at,
                   const layers::ParameterSet<S>& parameters, Index nodes, Index inputs, Index width,
                   Index outputs, const BatchSize& batch, PartialSums& sums)
      : nodes_(nodes),
        width_(width),
        outputs_(outputs),
        hidden_(executor, at.hidden, parameters, Activation::gelu, nodes, inputs, width, batch, sums),
        linear_(at.output, parameters, batch.runs, batch.training_copies * nodes, width, outputs, sums),
        output_(executor, "hidden layers", batch.instances() * nodes * outputs) {
    require_countable("features of a run's copies", batch.copies * nodes * outputs);
  }

  /// n × outputs per instance.
  [[nodiscard]] S* output() noexcept { return output_.data(); }
  [[nodiscard]] const S* bias(const ParameterView<S>& parameters) const noexcept {
    return linear_.bias(parameters);
  }
  /// Adds the bias to output().
  [[nodiscard]] Items<AddBias<S>> add_bias(const ParameterView<S>& parameters, const Pass& pass) {
    const Index size = pass.copies * nodes_ * outputs_;
    return {size, pass.runs, {bias(parameters), parameters.stride, outputs_, size, output_.data()}};
  }

  /// Computes output() without its bias. \param x  n × inputs per instance; stays in place until backward()
  void forward(Executor& executor, const ParameterView<S>& parameters, const PassDropout& dropout, const S* x) {
    const Index rows = dropout.pass.copies * nodes_;
    hidden_.forward(executor, parameters, rows, x);
    executor.launch_together(hidden_.activate(parameters, rows));
    executor.launch_together(dropout.of(hidden_.output(), nodes_ * width_));
    linear_.forward(executor, parameters, rows, hidden_.output(), output_.data());
  }
  /// Computes the derivative of x and partial sums of the gradients.
  ///
  /// \param bar   of output()
  /// \param work  n × width per instance, overwritten
  /// \param add   to x_bar
  void backward(Executor& executor, const ParameterView<S>& parameters, const PassDropout& dropout, const S* bar,
                S* work, S* x_bar, bool add) {
    const Index rows = dropout.pass.copies * nodes_;
    linear_.backward(executor, parameters, rows, bar, work);
    executor.launch_together(dropout.of(work, nodes_ * width_),
                             linear_.weight_products(parameters, rows, hidden_.output(), bar));
    executor.launch_together(hidden_.slopes(rows, work));
    executor.launch_together(hidden_.weight_products(parameters, rows, work));
    hidden_.linear().backward(executor, parameters, rows, work, x_bar, add);
  }

 private:
  Index nodes_, width_, outputs_;
  BatchActivatedLinear<Executor, S> hidden_;
  BatchLinear<S> linear_;
  Array<Executor, S> output_;
};

}  // namespace sheafnn::batch::detail
