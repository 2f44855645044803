/// \file
/// The encoder's optional second linear layer, X W₂ᵀ + b₂, on the device, for a batch of runs.
#pragma once

#include "sheafnn/cuda/array.hpp"
#include "sheafnn/cuda/execution.hpp"
#include "sheafnn/cuda/gradient_sums.hpp"
#include "sheafnn/nn/parameters.hpp"

namespace sheafnn::cuda {

/// Adds a bias to rows of features; item: number, group: run.
template <class S>
struct AddBias {
  const S* bias;
  Index parameter_stride, width, size;
  S* out;
  SHEAFNN_HD void operator()(Index item, Index run) const {
    out[run * size + item] += bias[run * parameter_stride + item % width];
  }
};

/// Buffers and passes of the layer for all runs; h × h, stored transposed.
template <class Executor, class S>
class BatchSecondLinear {
 public:
  BatchSecondLinear(Executor& executor, ParameterId weight, ParameterId bias, const ParameterSet<S>& parameters,
                    Index nodes, Index width, Index runs, PartialSums& sums)
      : weight_(parameters.info(weight).offset),
        bias_(parameters.info(bias).offset),
        nodes_(nodes),
        width_(width),
        runs_(runs),
        output_(executor, "embeddings", runs * nodes * width) {
    const RowChunks rows{nodes};
    const Index stride = (width + 1) * width;
    sums_ = sums.reserve(rows.count(), stride);
    sums.assign(weight_, width * width, sums_, rows.count(), stride);
    sums.assign(bias_, width, sums_ + width * width, rows.count(), stride);
  }

  [[nodiscard]] const S* output() const noexcept { return output_.data(); }

  /// \param x  n × h per run
  void forward(Executor& executor, const S* parameters, Index parameter_stride, const S* x) {
    const Index size = nodes_ * width_;
    executor.multiply(Product<S>{nodes_,
                                 width_,
                                 width_,
                                 runs_,
                                 {x, width_, size},
                                 {parameters + weight_, width_, parameter_stride},
                                 output_.data(),
                                 width_,
                                 size});
    executor.launch(size, runs_, AddBias<S>{parameters + bias_, parameter_stride, width_, size, output_.data()});
  }

  /// Partial sums of the gradients, and the derivative of x, from that of output().
  void backward(Executor& executor, const S* parameters, Index parameter_stride, const S* x, const S* bar,
                S* x_bar, S* arena, Index arena_stride) const {
    const Index size = nodes_ * width_;
    const RowProducts<S> products{x,      width_, width_,   size, bar,           width_,
                                  width_, size,   {nodes_}, true, arena + sums_, arena_stride};
    executor.launch(products.items(), runs_, products);
    executor.multiply(Product<S>{nodes_,
                                 width_,
                                 width_,
                                 runs_,
                                 {bar, width_, size},
                                 {parameters + weight_, width_, parameter_stride, true},
                                 x_bar,
                                 width_,
                                 size});
  }

 private:
  Index weight_, bias_, nodes_, width_, runs_;
  Index sums_ = 0;
  Array<Executor, S> output_;
};

}  // namespace sheafnn::cuda
