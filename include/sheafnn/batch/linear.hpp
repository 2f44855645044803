/// \file
/// A linear layer X W + b for a batch of runs: its products with X and with derivatives.
#pragma once

#include "sheafnn/batch/execution.hpp"
#include "sheafnn/batch/gradient_sums.hpp"
#include "sheafnn/layers/weights.hpp"
#include "sheafnn/nn/parameters.hpp"

namespace sheafnn::batch::detail {

/// The layer of all runs. W is inputs × outputs, stored so (to users the transpose); b has `outputs` values, and
/// is added by the kernel that reads the product. There may be no b.
template <class S>
class BatchLinear {
 public:
  /// \param rows  of X per run in a training pass
  BatchLinear(const layers::LinearWeights<layers::ParameterSlot>& at, const layers::ParameterSet<S>& parameters,
              Index runs, Index rows, Index inputs, Index outputs, PartialSums& sums)
      : weight_(parameters.info(at.weight).offset),
        bias_(at.bias >= 0 ? parameters.info(at.bias).offset : Index{-1}),
        runs_(runs),
        inputs_(inputs),
        outputs_(outputs) {
    const RowChunks chunks{rows};
    const Index stride = (inputs + (bias_ >= 0 ? 1 : 0)) * outputs;
    sums_ = sums.reserve(chunks.count(), stride);
    sums.assign(weight_, inputs * outputs, sums_, chunks.count(), stride);
    if (bias_ >= 0) sums.assign(bias_, outputs, sums_ + inputs * outputs, chunks.count(), stride);
  }

  [[nodiscard]] Index inputs() const noexcept { return inputs_; }
  /// The first run's W.
  [[nodiscard]] const S* weight(const ParameterView<S>& parameters) const noexcept {
    return parameters.value + weight_;
  }
  /// The first run's b.
  [[nodiscard]] const S* bias(const ParameterView<S>& parameters) const noexcept {
    return parameters.value + bias_;
  }

  /// out = X W, rows × outputs per run.
  ///
  /// \param x  rows × inputs per run
  template <class Executor>
  void forward(Executor& executor, const ParameterView<S>& parameters, Index rows, const S* x, S* out) const {
    executor.multiply(Product<S>{rows,
                                 outputs_,
                                 inputs_,
                                 runs_,
                                 {x, inputs_, rows * inputs_},
                                 {parameters.value + weight_, outputs_, parameters.stride},
                                 out,
                                 outputs_,
                                 rows * outputs_});
  }

  /// Partial sums of the gradients from `bar`, the derivative of X W + b.
  [[nodiscard]] Items<RowProducts<S>> weight_products(const ParameterView<S>& parameters, Index rows, const S* x,
                                                      const S* bar) const {
    const RowProducts<S> products{x,
                                  inputs_,
                                  inputs_,
                                  rows * inputs_,
                                  bar,
                                  outputs_,
                                  outputs_,
                                  rows * outputs_,
                                  {rows},
                                  bias_ >= 0,
                                  parameters.arena + sums_,
                                  parameters.arena_stride};
    return {products.items(), runs_, products};
  }
  /// The derivative of X. \param add  to x_bar
  template <class Executor>
  void backward(Executor& executor, const ParameterView<S>& parameters, Index rows, const S* bar, S* x_bar,
                bool add = false) const {
    executor.multiply(Product<S>{rows,
                                 inputs_,
                                 outputs_,
                                 runs_,
                                 {bar, outputs_, rows * outputs_},
                                 {parameters.value + weight_, outputs_, parameters.stride, true},
                                 x_bar,
                                 inputs_,
                                 rows * inputs_,
                                 add});
  }

 private:
  Index weight_, bias_, runs_, inputs_, outputs_;
  Index sums_ = 0;
};

}  // namespace sheafnn::batch::detail
