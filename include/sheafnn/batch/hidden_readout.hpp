/// \file
/// The hidden layers of the readout, X ← GELU(X Wᵢ + 1 bᵢᵀ), h × h each, for a batch of runs (for one network
/// layers/readout_head.hpp).
///
/// Unchecked: numbers of items, runs, instances and lanes, and the room behind pointers and views; BatchNetwork and
/// BatchTrainer check what they are given.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "sheafnn/batch/array.hpp"
#include "sheafnn/batch/linear.hpp"
#include "sheafnn/batch/run.hpp"
#include "sheafnn/bsnn/model_layout.hpp"
#include "sheafnn/nn/activation.hpp"

namespace sheafnn::batch::detail {

/// z ← z + b, out = GELU(z); item: number, group: run.
template <class S>
struct BiasGelu {
  const S* bias;
  Index parameter_stride;
  Divisor width;
  Index size;
  S *z, *out;

  SHEAFNN_HD void operator()(Index item, Index run) const {
    const Index index = run * size + item;
    const S value = z[index] + bias[run * parameter_stride + item % width];
    z[index] = value;
    out[index] = gelu(value);
  }
};
/// bar ∘= GELU′(z); item: number of all runs.
template <class S>
struct GeluBackward {
  const S* z;
  S* bar;

  SHEAFNN_HD void operator()(Index item, Index) const { bar[item] *= gelu_derivative(z[item]); }
};

/// Outputs and passes of the layers for all instances; there may be none.
template <class Executor, class S>
class BatchHiddenReadout {
 public:
  BatchHiddenReadout() = default;
  BatchHiddenReadout(Executor& executor, std::span<const LinearWeights<ParameterSlot>> layers,
                     const ParameterSet<S>& parameters, Index nodes, Index width, const BatchSize& batch,
                     PartialSums& sums)
      : nodes_(nodes), width_(width) {
    const auto array = [&](Index instances) {
      return Array<Executor, S>(executor, "readout", instances * nodes * width);
    };
    for (const LinearWeights<ParameterSlot>& at : layers) {
      layers_.push_back(
          {BatchLinear<S>(at, parameters, batch.runs, batch.training_copies * nodes, width, width, sums),
           array(batch.instances()), array(batch.instances())});
    }
    if (layers_.empty()) return;
    require_countable("features of a run's copies", batch.copies * nodes * width);
    bar_ = array(batch.training_instances());
  }

  /// \param x  n × h per instance; stays in place until backward()
  /// \returns the last layer's output, or x
  const S* forward(Executor& executor, const Pass& pass, const ParameterView<S>& parameters, const S* x) {
    input_ = x;
    const Index rows = pass.copies * nodes_;
    for (Layer& layer : layers_) {
      layer.linear.forward(executor, parameters, rows, x, layer.z.data());
      executor.launch(rows * width_, pass.runs,
                      BiasGelu<S>{layer.linear.bias(parameters), parameters.stride, width_, rows * width_,
                                  layer.z.data(), layer.output.data()});
      x = layer.output.data();
    }
    return x;
  }

  /// Where the derivative of forward()'s result goes, to be filled before backward(): derivatives go to and fro between
  /// x_bar and an array of their own, and end in x_bar.
  [[nodiscard]] S* output_bar(S* x_bar) noexcept { return layers_.size() % 2 == 0 ? x_bar : bar_.data(); }
  /// To the derivative of x, and partial sums of the gradients.
  void backward(Executor& executor, const Pass& pass, const ParameterView<S>& parameters, S* x_bar) {
    const Index rows = pass.copies * nodes_;
    S *from = output_bar(x_bar), *to = layers_.size() % 2 == 0 ? bar_.data() : x_bar;
    for (std::size_t i = layers_.size(); i-- > 0;) {
      const Layer& layer = layers_[i];
      executor.launch(pass.runs * rows * width_, 1, GeluBackward<S>{layer.z.data(), from});
      const S* input = i == 0 ? input_ : layers_[i - 1].output.data();
      executor.launch_together(layer.linear.weight_products(parameters, rows, input, from));
      layer.linear.backward(executor, parameters, rows, from, to);
      std::swap(from, to);
    }
  }

 private:
  struct Layer {
    BatchLinear<S> linear;
    Array<Executor, S> z, output;
  };

  Index nodes_ = 0, width_ = 0;
  std::vector<Layer> layers_;
  Array<Executor, S> bar_;
  const S* input_ = nullptr;
};

}  // namespace sheafnn::batch::detail
