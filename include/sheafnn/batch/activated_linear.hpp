/// \file
/// act(X W + b) for a batch of runs: a linear layer and its activation, with the backward pass.
#pragma once

#include "sheafnn/batch/array.hpp"
#include "sheafnn/batch/linear.hpp"
#include "sheafnn/batch/run.hpp"
#include "sheafnn/nn/activation.hpp"

namespace sheafnn::batch::detail {

/// z ← z + b, out = act(z); item: element, group: run.
template <class S>
struct BiasActivation {
  Activation activation;
  const S* bias;
  Index parameter_stride;
  Divisor width;
  Index size;
  S *z, *out;

  SHEAFNN_HD void operator()(Index item, Index run) const {
    const Index index = run * size + item;
    const S value = z[index] + bias[run * parameter_stride + item % width];
    z[index] = value;
    S slope;
    out[index] = layers::activate_with_slope(activation, value, slope);
  }
};
/// out = act(z); item: element of all runs.
template <class S>
struct Activate {
  Activation activation;
  const S* z;
  S* out;

  SHEAFNN_HD void operator()(Index item, Index) const {
    S slope;
    out[item] = layers::activate_with_slope(activation, z[item], slope);
  }
};
/// bar ∘= act′(z); item: element of all runs.
template <class S>
struct ActivationSlopes {
  Activation activation;
  const S* z;
  S* bar;

  SHEAFNN_HD void operator()(Index item, Index) const {
    S slope;
    static_cast<void>(layers::activate_with_slope(activation, z[item], slope));
    bar[item] *= slope;
  }
};

/// The layer of all runs; what its backward pass reads stays in its own arrays.
template <class Executor, class S>
class BatchActivatedLinear {
 public:
  /// \param nodes  rows of an instance
  BatchActivatedLinear(Executor& executor, const layers::LinearWeights<layers::ParameterSlot>& at,
                       const layers::ParameterSet<S>& parameters, Activation activation, Index nodes, Index inputs,
                       Index outputs, const BatchSize& batch, PartialSums& sums)
      : linear_(at, parameters, batch.runs, batch.training_copies * nodes, inputs, outputs, sums),
        activation_(activation),
        runs_(batch.runs),
        outputs_(outputs),
        z_(executor, "hidden layers", batch.instances() * nodes * outputs),
        output_(executor, "hidden layers", batch.instances() * nodes * outputs) {
    require_countable("features of a run's copies", batch.copies * nodes * outputs);
  }

  /// rows × outputs per run, after forward() and activate().
  [[nodiscard]] const S* output() const noexcept { return output_.data(); }
  [[nodiscard]] S* output() noexcept { return output_.data(); }
  [[nodiscard]] const BatchLinear<S>& linear() const noexcept { return linear_; }

  /// Launches X W, to be followed by activate(). \param x  rows × inputs per run; stays in place until the backward pass
  void forward(Executor& executor, const ParameterView<S>& parameters, Index rows, const S* x) {
    input_ = x;
    linear_.forward(executor, parameters, rows, x, z_.data());
  }
  [[nodiscard]] Items<BiasActivation<S>> activate(const ParameterView<S>& parameters, Index rows) {
    return {rows * outputs_,
            runs_,
            {activation_, linear_.bias(parameters), parameters.stride, outputs_, rows * outputs_, z_.data(),
             output_.data()}};
  }

  /// Backward, to be launched one after another: the derivative before the activation, in place of the derivative of
  /// output(); partial sums of the gradients. The derivative of X.
  [[nodiscard]] Items<ActivationSlopes<S>> slopes(Index rows, S* bar) const {
    return {runs_ * rows * outputs_, 1, {activation_, z_.data(), bar}};
  }
  [[nodiscard]] Items<RowProducts<S>> weight_products(const ParameterView<S>& parameters, Index rows,
                                                      const S* bar) const {
    return linear_.weight_products(parameters, rows, input_, bar);
  }

 private:
  BatchLinear<S> linear_;
  Activation activation_;
  Index runs_, outputs_;
  Array<Executor, S> z_, output_;
  const S* input_ = nullptr;
};

}  // namespace sheafnn::batch::detail
