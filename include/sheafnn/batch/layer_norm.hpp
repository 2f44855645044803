/// \file
/// The layer norm of a node's features after a diffusion layer, for a batch of runs: y = w ∘ x̂ + b,
/// x̂ = (x − mean(x)) / √(var(x) + ε), and its backward pass (for one network layers/layer_norm.hpp).
///
/// Unchecked: numbers of items, runs, instances and lanes, and the sizes of arrays behind pointers and views.
/// BatchNetwork and BatchTrainer check their arguments.
#pragma once

#include <cmath>
#include <cstdint>

#include "sheafnn/batch/array.hpp"
#include "sheafnn/batch/execution.hpp"
#include "sheafnn/batch/gradient_sums.hpp"
#include "sheafnn/batch/run.hpp"
#include "sheafnn/bsnn/model_layout.hpp"
#include "sheafnn/kernels/norm.hpp"
#include "sheafnn/layers/layer_norm.hpp"

namespace sheafnn::batch::detail {

/// mean(x) and 1/√(var(x) + ε) of rows, side by side; a team per row of all instances.
template <class S>
struct NormMoments {
  using Scalar = S;
  static constexpr int outputs = 2;
  Index width;  ///< h
  const S* x;
  S* moments;  ///< 2 per row
  int lanes;

  /// Sums of differences from the row's first number: their mean is of the order of their spread.
  SHEAFNN_HD void part(Index row, Index, int lane, S* sums) const {
    const S* in = x + row * width;
    for (Index c = lane; c < width; c += lanes) {
      const S value = in[c] - in[0];
      sums[0] += value;
      sums[1] += value * value;
    }
  }
  SHEAFNN_HD void finish(Index row, Index, const S* sums) const {
    using std::sqrt;
    const S share = S(1) / static_cast<S>(width), shift = sums[0] * share;
    const S variance = sums[1] * share - shift * shift;
    moments[2 * row] = x[row * width] + shift;
    moments[2 * row + 1] =
        S(1) / sqrt((variance > S(0) ? variance : S(0)) + static_cast<S>(layers::LayerNorm<S>::epsilon));
  }
};

/// Scale and shift of a layer in run 0, and the strides to the other runs.
template <class S>
struct NormView {
  Divisor width;
  Index nodes;
  const S* scale;
  const S* shift;
  Index parameter_stride;
  const S* x;
  const S* moments;

  /// Mean and deviation of a row, counted over all instances.
  [[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE kernels::Moments<S> of_row(Index row) const {
    return {moments[2 * row], moments[2 * row + 1]};
  }
  /// Mean and deviation of the row of number `item` in an instance.
  [[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE kernels::Moments<S> of_item(Index item, Index instance) const {
    return of_row(instance * nodes + item / width);
  }
};

/// y, and y after the next layer's dropout; item: number, group: instance.
template <class S>
struct NormForward {
  NormView<S> norm;
  const Run* runs;
  Pass pass;
  std::uint32_t next_layer;
  S *out, *dropped;  ///< after dropout; null: no such array

  SHEAFNN_HD void operator()(Index item, Index instance) const {
    const Index parameter = pass.run_of(instance) * norm.parameter_stride + item % norm.width;
    const Index index = instance * norm.nodes * norm.width + item;
    const S value =
        norm.of_item(item, instance).forward(norm.scale[parameter], norm.shift[parameter], norm.x[index]);
    out[index] = value;
    if (dropped == nullptr) return;
    dropped[index] = pass.dropout<S>(runs, Purpose::layer_dropout, next_layer, instance)(item, value);
  }
};

/// mean(g) and mean(g ∘ x̂) of rows, g = w ∘ ȳ: a team per node; group: instance.
template <class S>
struct NormMeans {
  using Scalar = S;
  static constexpr int outputs = 2;
  NormView<S> norm;
  Pass pass;
  const S* bar;
  S* means;  ///< 2 per row
  int lanes;

  SHEAFNN_HD void part(Index u, Index instance, int lane, S* sums) const {
    const S* scale = norm.scale + pass.run_of(instance) * norm.parameter_stride;
    const Index row = instance * norm.nodes + u, first = row * norm.width;
    const kernels::Moments<S> moments = norm.of_row(row);
    for (Index c = lane; c < norm.width; c += lanes) {
      const S g = scale[c] * bar[first + c];
      sums[0] += g;
      sums[1] += g * moments.hat(norm.x[first + c]);
    }
  }
  SHEAFNN_HD void finish(Index u, Index instance, const S* sums) const {
    S* to = means + 2 * (instance * norm.nodes + u);
    for (int k = 0; k < outputs; ++k) to[k] = sums[k] / static_cast<S>(norm.width);
  }
};

/// x̄ = (g − mean(g) − x̂ mean(g ∘ x̂)) / √(var(x) + ε) in the place of ȳ; item: number, group: instance.
template <class S>
struct NormBackward {
  NormView<S> norm;
  Pass pass;
  const S* means;
  S* bar;

  SHEAFNN_HD void operator()(Index item, Index instance) const {
    const Index row = instance * norm.nodes + item / norm.width, index = instance * norm.nodes * norm.width + item;
    const S g = norm.scale[pass.run_of(instance) * norm.parameter_stride + item % norm.width] * bar[index];
    bar[index] = norm.of_row(row).backward(g, norm.x[index], means[2 * row], means[2 * row + 1]);
  }
};

/// Partial sums of the derivatives of w, Σ ȳ ∘ x̂, and of b, Σ ȳ, over chunks of a run's rows: item (chunk, w or b,
/// column), group: run.
template <class S>
struct NormProducts {
  NormView<S> norm;
  Index copies;
  const S* bar;
  RowChunks chunks;
  S* out;
  Index out_run;
  Divisor both = 2 * norm.width;  ///< numbers of a chunk

  [[nodiscard]] Index items() const noexcept { return chunks.count() * both; }

  SHEAFNN_HD void operator()(Index item, Index run) const {
    const Index width = norm.width, chunk = item / both, k = item % both, c = k % norm.width;
    const Index first = run * copies * norm.nodes, end = chunks.end(chunk);
    S sum = S(0);
    for (Index row = chunks.begin(chunk); row < end; ++row) {
      const S value = bar[(first + row) * width + c];
      sum += k < width ? value * norm.of_row(first + row).hat(norm.x[(first + row) * width + c])
                       : value;  // copies may have 2³¹ numbers together
    }
    out[run * out_run + item] = sum;
  }
};

/// Buffers and passes of the norm after one layer of all instances.
template <class Executor, class S>
class BatchLayerNorm {
 public:
  BatchLayerNorm(Executor& executor, const layers::NormWeights<layers::ParameterSlot>& at,
                 const layers::ParameterSet<S>& parameters, Index nodes, Index width, const BatchSize& batch,
                 PartialSums& sums)
      : nodes_(nodes),
        width_(width),
        scale_(parameters.info(at.scale).offset),
        shift_(parameters.info(at.shift).offset),
        output_(executor, "norms", batch.instances() * nodes * width),
        moments_(executor, "norms", 2 * batch.instances() * nodes),
        means_(executor, "norms", 2 * batch.training_instances() * nodes) {
    const RowChunks rows{batch.training_copies * nodes};
    sums_ = sums.reserve(rows.count(), 2 * width);
    sums.assign(scale_, width, sums_, rows.count(), 2 * width);
    sums.assign(shift_, width, sums_ + width, rows.count(), 2 * width);
  }

  [[nodiscard]] const S* output() const noexcept { return output_.data(); }

  /// \param x           n × h per instance; stays in place until backward()
  /// \param next_layer  the number of the layer whose input after dropout goes to `next`; null: no such layer
  void forward(Executor& executor, const Run* runs, const Pass& pass, const ParameterView<S>& parameters,
               const S* x, std::uint32_t next_layer, S* next) {
    input_ = x;
    const int lanes = team_lanes(width_);
    executor.launch_teams(pass.instances() * nodes_, 1, lanes, NormMoments<S>{width_, x, moments_.data(), lanes});
    executor.launch(nodes_ * width_, pass.instances(),
                    NormForward<S>{view(parameters), runs, pass, next_layer, output_.data(), next});
  }

  /// Replaces the derivative of output() by the derivative of x, and computes partial sums of the gradients.
  void backward(Executor& executor, const Pass& pass, const ParameterView<S>& parameters, S* bar) {
    const int lanes = team_lanes(width_);
    const NormView<S> norm = view(parameters);
    const NormProducts<S> products{
        norm, pass.copies, bar, {pass.copies * nodes_}, parameters.arena + sums_, parameters.arena_stride};
    executor.launch_together(Teams{nodes_, pass.instances(), lanes,
                                   NormMeans<S>{norm, pass, bar, means_.data(), lanes}},
                             Items{products.items(), pass.runs, products});
    executor.launch(nodes_ * width_, pass.instances(), NormBackward<S>{norm, pass, means_.data(), bar});
  }

 private:
  [[nodiscard]] NormView<S> view(const ParameterView<S>& parameters) const noexcept {
    return {width_, nodes_,         parameters.value + scale_, parameters.value + shift_, parameters.stride,
            input_, moments_.data()};
  }

  Index nodes_, width_, scale_, shift_;
  Index sums_ = 0;
  Array<Executor, S> output_, moments_, means_;
  const S* input_ = nullptr;
};

}  // namespace sheafnn::batch::detail
