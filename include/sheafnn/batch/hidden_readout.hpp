/// \file
/// The hidden layers of the readout, X ← GELU(X Wᵢ + 1 bᵢᵀ), h × h each, for a batch of runs (for one network
/// layers/readout_head.hpp).
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "sheafnn/batch/activated_linear.hpp"
#include "sheafnn/batch/array.hpp"
#include "sheafnn/batch/run.hpp"
#include "sheafnn/bsnn/model_layout.hpp"

namespace sheafnn::batch::detail {

/// Outputs and passes of the layers for all instances; there may be no layers.
template <class Executor, class S>
class BatchHiddenReadout {
 public:
  BatchHiddenReadout() = default;
  BatchHiddenReadout(Executor& executor, std::span<const layers::LinearWeights<layers::ParameterSlot>> layers,
                     const layers::ParameterSet<S>& parameters, Index nodes, Index width, const BatchSize& batch,
                     PartialSums& sums)
      : nodes_(nodes) {
    for (const layers::LinearWeights<layers::ParameterSlot>& at : layers)
      layers_.emplace_back(executor, at, parameters, Activation::gelu, nodes, width, width, batch, sums);
    if (layers_.empty()) return;
    bar_ = Array<Executor, S>(executor, "readout", batch.training_instances() * nodes * width);
  }

  /// \param x  n × h per instance; stays in place until backward()
  /// \returns the last layer's output, or x
  const S* forward(Executor& executor, const Pass& pass, const ParameterView<S>& parameters, const S* x) {
    const Index rows = pass.copies * nodes_;
    for (BatchActivatedLinear<Executor, S>& layer : layers_) {
      layer.forward(executor, parameters, rows, x);
      executor.launch_together(layer.activate(parameters, rows));
      x = layer.output();
    }
    return x;
  }

  /// Where the derivative of forward()'s result goes, to be filled before backward(). Derivatives alternate between x_bar
  /// and an array of their own, and end in x_bar.
  [[nodiscard]] S* output_bar(S* x_bar) noexcept { return layers_.size() % 2 == 0 ? x_bar : bar_.data(); }
  /// Computes the derivative of x and partial sums of the gradients.
  void backward(Executor& executor, const Pass& pass, const ParameterView<S>& parameters, S* x_bar) {
    const Index rows = pass.copies * nodes_;
    S *from = output_bar(x_bar), *to = layers_.size() % 2 == 0 ? bar_.data() : x_bar;
    for (std::size_t i = layers_.size(); i-- > 0;) {
      const BatchActivatedLinear<Executor, S>& layer = layers_[i];
      executor.launch_together(layer.slopes(rows, from));
      executor.launch_together(layer.weight_products(parameters, rows, from));
      layer.linear().backward(executor, parameters, rows, from, to);
      std::swap(from, to);
    }
  }

 private:
  Index nodes_ = 0;
  std::vector<BatchActivatedLinear<Executor, S>> layers_;
  Array<Executor, S> bar_;
};

}  // namespace sheafnn::batch::detail
