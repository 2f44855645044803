/// \file
/// The encoder's optional second linear layer, X W₂ᵀ + b₂, for a batch of runs.
#pragma once

#include "sheafnn/batch/array.hpp"
#include "sheafnn/batch/linear.hpp"
#include "sheafnn/nn/parameters.hpp"

namespace sheafnn::batch::detail {

/// Adds a bias to rows of features; item: element, group: run.
template <class S>
struct AddBias {
  const S* bias;
  Index parameter_stride;
  Divisor width;
  Index size;
  S* out;
  SHEAFNN_HD void operator()(Index item, Index run) const {
    out[run * size + item] += bias[run * parameter_stride + item % width];
  }
};

/// Output and passes of the layer for all runs; h × h.
template <class Executor, class S>
class BatchSecondLinear {
 public:
  BatchSecondLinear(Executor& executor, const layers::LinearWeights<layers::ParameterSlot>& at,
                    const layers::ParameterSet<S>& parameters, Index nodes, Index width, Index runs,
                    PartialSums& sums)
      : linear_(at, parameters, runs, nodes, width, width, sums),
        nodes_(nodes),
        width_(width),
        runs_(runs),
        output_(executor, "embeddings", runs * nodes * width) {}

  [[nodiscard]] const S* output() const noexcept { return output_.data(); }

  /// \param x  n × h per run; stays in place until backward() \returns output()
  const S* forward(Executor& executor, const ParameterView<S>& parameters, const S* x) {
    input_ = x;
    linear_.forward(executor, parameters, nodes_, x, output_.data());
    const Index size = nodes_ * width_;
    executor.launch(size, runs_,
                    AddBias<S>{linear_.bias(parameters), parameters.stride, width_, size, output_.data()});
    return output();
  }

  /// Computes partial sums of the gradients, and the derivative of x, from the derivative of output().
  void backward(Executor& executor, const ParameterView<S>& parameters, const S* bar, S* x_bar) const {
    executor.launch_together(linear_.weight_products(parameters, nodes_, input_, bar));
    linear_.backward(executor, parameters, nodes_, bar, x_bar);
  }

 private:
  BatchLinear<S> linear_;
  Index nodes_, width_, runs_;
  Array<Executor, S> output_;
  const S* input_ = nullptr;
};

}  // namespace sheafnn::batch::detail
