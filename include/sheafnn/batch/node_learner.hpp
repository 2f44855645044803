/// \file
/// BatchNodeLearner: the two learners of node maps of a batch of runs. Each is ReLU(X W₁ + b₁) W₂ + b₂ (mlp) or
/// convolutions. Between these are a norm of all values and ReLU (sage), or GELU and dropout (sage-projected). For one
/// network: layers/node_learner.hpp.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "sheafnn/batch/activated_linear.hpp"
#include "sheafnn/batch/array.hpp"
#include "sheafnn/batch/feature_norm.hpp"
#include "sheafnn/batch/linear.hpp"
#include "sheafnn/batch/node_map_kernels.hpp"
#include "sheafnn/batch/sage.hpp"
#include "sheafnn/bsnn/cooperative_options.hpp"
#include "sheafnn/layers/node_learner_options.hpp"
#include "sheafnn/layers/weights.hpp"

namespace sheafnn::batch::detail {

/// A dropout of a rate that all runs share.
struct LearnerDropout {
  const Run* runs;
  Pass pass;
  std::uint32_t number;  ///< in the addresses of random numbers
  DropoutRule rule;
  bool active;

  template <class S>
  [[nodiscard]] SHEAFNN_HD S operator()(Index item, Index instance, S value) const {
    if (!active) return value;
    const Run& run = runs[pass.run_of(instance)];
    return ElementDropout<S>(pass.stream(run, Purpose::learner_dropout, number, instance), rule)(item, value);
  }
};
/// out = dropout(GELU(z)); item: element, group: instance.
template <class S>
struct GeluDropout {
  LearnerDropout dropout;
  Index size;
  const S* z;
  S* out;

  SHEAFNN_HD void operator()(Index item, Index instance) const {
    const Index index = instance * size + item;
    out[index] = dropout(item, instance, layers::gelu(z[index]));
  }
};
/// bar = dropout(bar) ∘ GELU′(z).
template <class S>
struct GeluDropoutBackward {
  LearnerDropout dropout;
  Index size;
  const S* z;
  S* bar;

  SHEAFNN_HD void operator()(Index item, Index instance) const {
    const Index index = instance * size + item;
    bar[index] = dropout(item, instance, bar[index]) * layers::gelu_derivative(z[index]);
  }
};

/// Derivatives that the learners of all layers share, since one pair works at a time.
template <class Executor, class S>
struct NodeLearnerScratch {
  Array<Executor, S> raw_bar[2], hidden_bar[2];
  SageScratch<Executor, S> sage;

  NodeLearnerScratch() = default;
  NodeLearnerScratch(Executor& executor, const layers::NodeLearnerOptions& options, const ArcViews<S>& arcs,
                     const BatchSize& batch) {
    const Index rows = batch.training_instances() * arcs.out.nodes;
    for (int side = 0; side < 2; ++side) {
      raw_bar[side] = Array<Executor, S>(executor, "learners", rows * options.outputs);
      hidden_bar[side] = Array<Executor, S>(executor, "learners", rows * options.width);
    }
    if (options.kind == NodeLearnerKind::mlp) return;
    const Index width = std::max({options.inputs, options.width, options.outputs});
    sage = SageScratch<Executor, S>(executor, arcs.segments(), width, batch.instances(), arcs.out.nodes,
                                    batch.training_instances());
  }
};

/// Buffers and passes of one pair of all runs. It reads n × h values of each instance of a pass: of each copy, or one copy
/// that serves all.
template <class Executor, class S>
class BatchNodeLearner {
 public:
  using Scratch = NodeLearnerScratch<Executor, S>;

  /// \param dropout  rate between convolutions
  /// \param layer    index of the layer; 0 for a pair for all layers
  BatchNodeLearner(Executor& executor, const ArcViews<S>& arcs,
                   const std::array<layers::NodeLearnerWeights<layers::ParameterSlot>, 2>& at,
                   const layers::NodeLearnerOptions& options, double dropout, Index layer,
                   const layers::ParameterSet<S>& parameters, const BatchSize& batch, PartialSums& sums)
      : nodes_(arcs.out.nodes), options_(options), dropout_(dropout), drops_(dropout > 0), layer_(layer) {
    const Index n = nodes_, g = options.width;
    for (int side = 0; side < 2; ++side) {
      const layers::NodeLearnerWeights<layers::ParameterSlot>& own = at[static_cast<std::size_t>(side)];
      if (options.kind == NodeLearnerKind::mlp) {
        hidden_.emplace_back(executor, own.hidden, parameters, Activation::relu, n, options.inputs, g, batch,
                             sums);
        output_.emplace_back(own.output, parameters, batch.runs, batch.training_copies * n, g, options.outputs,
                             sums);
        raw_[side] = Array<Executor, S>(executor, "learners", batch.instances() * n * options.outputs);
        continue;
      }
      for (Index k = 0; k < options.layers; ++k) {
        const bool last = k + 1 == options.layers;
        convolutions_[side].emplace_back(executor, arcs, own.convolutions[static_cast<std::size_t>(k)], parameters,
                                         k == 0 ? options.inputs : g, last ? options.outputs : g,
                                         options.kind == NodeLearnerKind::sage_projected, !last, batch, sums);
        if (last) break;
        activated_[side].emplace_back(executor, "learners", batch.instances() * n * g);
        if (options.kind != NodeLearnerKind::sage) continue;
        norms_[side].emplace_back(executor, own.norms[static_cast<std::size_t>(k)], parameters, n, g, batch, sums,
                                  NormSet::matrix);
      }
    }
  }

  /// Computes what raw() shows, without its biases. \param x  n × h per instance; stays in place until backward()
  void forward(Executor& executor, const Run* runs, const ParameterView<S>& parameters, const Pass& pass,
               Scratch& scratch, const S* x) {
    const Index rows = pass.copies * nodes_;
    if (!hidden_.empty()) {
      for (auto& layer : hidden_) layer.forward(executor, parameters, rows, x);
      executor.launch_together(hidden_[0].activate(parameters, rows), hidden_[1].activate(parameters, rows));
      for (std::size_t side = 0; side < 2; ++side) {
        output_[side].forward(executor, parameters, rows, hidden_[side].output(), raw_[side].data());
      }
      return;
    }
    for (int side = 0; side < 2; ++side) {
      const S* read = x;
      for (std::size_t k = 0; k < convolutions_[side].size(); ++k) {
        BatchSage<Executor, S>& convolution = convolutions_[side][k];
        convolution.forward(executor, parameters, pass, scratch.sage, read);
        if (k == activated_[side].size()) break;
        S* out = activated_[side][k].data();
        if (norms_[side].empty()) {
          executor.launch(convolution.size(), pass.instances(),
                          GeluDropout<S>{dropout(runs, pass, side, k), convolution.size(), convolution.output(),
                                         out});
        } else {
          norms_[side][k].forward(executor, runs, pass, parameters, convolution.output(), 0, nullptr);
          executor.launch(pass.instances() * convolution.size(), 1,
                          Activate<S>{Activation::relu, norms_[side][k].output(), out});
        }
        read = out;
      }
    }
  }
  /// What kernels see of what the learners predict.
  ///
  /// \param copies  of a run
  [[nodiscard]] RawNodeMaps<S> raw(const ParameterView<S>& parameters, Index copies, Scratch& scratch) {
    RawNodeMaps<S> r{.nodes = nodes_,
                     .size = static_cast<int>(options_.outputs),
                     .copies = copies,
                     .parameter_stride = parameters.stride};
    for (std::size_t side = 0; side < 2; ++side) {
      const bool mlp = !hidden_.empty();
      r.raw[side] = mlp ? raw_[side].data() : convolutions_[side].back().output();
      r.bias[side] = mlp ? output_[side].bias(parameters) : convolutions_[side].back().bias(parameters);
      r.bar[side] = scratch.raw_bar[side].data();
    }
    return r;
  }

  /// Computes the derivative of x and partial sums of the gradients from the derivative of raw() in the scratch.
  ///
  /// \param add  to x_bar
  void backward(Executor& executor, const Run* runs, const ParameterView<S>& parameters, const Pass& pass,
                Scratch& scratch, S* x_bar, bool add) {
    if (!hidden_.empty()) {
      backward_mlp(executor, parameters, pass.copies * nodes_, scratch, x_bar, add);
      return;
    }
    for (int side = 0; side < 2; ++side) {
      const S* bar = scratch.raw_bar[side].data();
      for (std::size_t k = convolutions_[side].size(); k-- > 1;) {
        BatchSage<Executor, S>& below = convolutions_[side][k - 1];
        S* to = scratch.hidden_bar[k % 2].data();
        convolutions_[side][k].backward(executor, parameters, pass, scratch.sage, bar, to, false);
        if (norms_[side].empty()) {
          executor.launch(below.size(), pass.instances(),
                          GeluDropoutBackward<S>{dropout(runs, pass, side, k - 1), below.size(), below.output(),
                                                 to});
        } else {
          executor.launch(pass.instances() * below.size(), 1,
                          ActivationSlopes<S>{Activation::relu, norms_[side][k - 1].output(), to});
          norms_[side][k - 1].backward(executor, pass, parameters, to);
        }
        bar = to;
      }
      convolutions_[side].front().backward(executor, parameters, pass, scratch.sage, bar, x_bar, add || side > 0);
    }
  }

 private:
  /// That between convolutions k and k + 1.
  [[nodiscard]] LearnerDropout dropout(const Run* runs, const Pass& pass, int side, std::size_t k) const {
    const Index number = layer_ + sheafnn::detail::second_dropouts * (2 * static_cast<Index>(k) + side);
    return {runs, pass, static_cast<std::uint32_t>(number), dropout_, drops_ && pass.training};
  }
  void backward_mlp(Executor& executor, const ParameterView<S>& parameters, Index rows, Scratch& scratch, S* x_bar,
                    bool add) {
    for (std::size_t side = 0; side < 2; ++side) {
      output_[side].backward(executor, parameters, rows, scratch.raw_bar[side].data(),
                             scratch.hidden_bar[side].data());
    }
    const auto slopes = [&](std::size_t side) {
      return hidden_[side].slopes(rows, scratch.hidden_bar[side].data());
    };
    const auto outputs = [&](std::size_t side) {
      return output_[side].weight_products(parameters, rows, hidden_[side].output(), scratch.raw_bar[side].data());
    };
    const auto inputs = [&](std::size_t side) {
      return hidden_[side].weight_products(parameters, rows, scratch.hidden_bar[side].data());
    };
    executor.launch_together(slopes(0), slopes(1), outputs(0), outputs(1));
    executor.launch_together(inputs(0), inputs(1));
    for (std::size_t side = 0; side < 2; ++side) {
      hidden_[side].linear().backward(executor, parameters, rows, scratch.hidden_bar[side].data(), x_bar,
                                      add || side > 0);
    }
  }

  Index nodes_;
  layers::NodeLearnerOptions options_;
  DropoutRule dropout_;
  bool drops_;
  Index layer_;
  std::vector<BatchActivatedLinear<Executor, S>> hidden_;  ///< of mlp; this and the next: of T and of S
  std::vector<BatchLinear<S>> output_;
  Array<Executor, S> raw_[2];
  std::vector<BatchSage<Executor, S>> convolutions_[2];
  std::vector<BatchFeatureNorm<Executor, S>> norms_[2];  ///< of sage, after each convolution but the last
  std::vector<Array<Executor, S>> activated_[2];         ///< likewise
};

}  // namespace sheafnn::batch::detail
