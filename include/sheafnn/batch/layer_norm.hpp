/// \file
/// Kernels of norms of a batch of runs: y = w ∘ x̂ + b, x̂ = (x − mean(x)) / √(var(x) + ε), and the backward pass (for one
/// network layers/layer_norm.hpp). Means are taken over a node's values; over other sets of values: norm_sums.hpp.
#pragma once

#include <cmath>
#include <cstdint>

#include "sheafnn/batch/execution.hpp"
#include "sheafnn/batch/gradient_sums.hpp"
#include "sheafnn/batch/run.hpp"
#include "sheafnn/bsnn/model_layout.hpp"
#include "sheafnn/kernels/norm.hpp"
#include "sheafnn/layers/layer_norm.hpp"

namespace sheafnn::batch::detail {

/// Values with a mean and a deviation in common.
enum class NormSet {
  node,    ///< of a node (layers/layer_norm.hpp)
  column,  ///< of a column, over all nodes (layers/batch_norm.hpp)
  matrix   ///< all values of an instance (layers/global_norm.hpp)
};

/// mean(x) and 1/√(var(x) + ε) of rows, side by side; a team per row of all instances.
template <class S>
struct NormMoments {
  using Scalar = S;
  static constexpr int outputs = 2;
  Index width;  ///< h
  const S* x;
  S* moments;  ///< 2 per row
  int lanes;

  /// Sums of differences from the row's first value: their mean is of the order of their spread.
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
  NormSet set;
  Divisor width, nodes;
  const S* scale;
  const S* shift;
  Index parameter_stride;
  const S* x;
  const S* moments;

  /// The set of a value in a row, both counted over all instances.
  [[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE Index set_of(Index row, Index column) const {
    return set == NormSet::node ? row : set == NormSet::column ? row / nodes * width + column : row / nodes;
  }
  /// The set of element `item` of an instance.
  [[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE Index set_of_item(Index item, Index instance) const {
    return set_of(instance * nodes + item / width, item % width);
  }
  /// Mean and deviation of a set.
  [[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE kernels::Moments<S> of(Index one) const {
    return {moments[2 * one], moments[2 * one + 1]};
  }
};

/// y, and y after the next layer's dropout; item: element, group: instance.
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
    const S value = norm.of(norm.set_of_item(item, instance))
                        .forward(norm.scale[parameter], norm.shift[parameter], norm.x[index]);
    out[index] = value;
    if (dropped == nullptr) return;
    dropped[index] = pass.dropout<S>(runs, Purpose::layer_dropout, next_layer, instance)(item, value);
  }
};

/// mean(g) and mean(g ∘ x̂) of nodes, g = w ∘ ȳ: a team per node; group: instance.
template <class S>
struct NormMeans {
  using Scalar = S;
  static constexpr int outputs = 2;
  NormView<S> norm;
  Pass pass;
  const S* bar;
  S* means;  ///< 2 per node
  int lanes;

  SHEAFNN_HD void part(Index u, Index instance, int lane, S* sums) const {
    const S* scale = norm.scale + pass.run_of(instance) * norm.parameter_stride;
    const Index row = instance * norm.nodes + u, first = row * norm.width;
    const kernels::Moments<S> moments = norm.of(row);
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

/// x̄ = (g − mean(g) − x̂ mean(g ∘ x̂)) / √(var(x) + ε) in place of ȳ; item: element, group: instance.
template <class S>
struct NormBackward {
  NormView<S> norm;
  Pass pass;
  const S* means;  ///< 2 per set
  S* bar;

  SHEAFNN_HD void operator()(Index item, Index instance) const {
    const Index set = norm.set_of_item(item, instance), index = instance * norm.nodes * norm.width + item;
    const S g = norm.scale[pass.run_of(instance) * norm.parameter_stride + item % norm.width] * bar[index];
    bar[index] = norm.of(set).backward(g, norm.x[index], means[2 * set], means[2 * set + 1]);
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
  Divisor both = 2 * norm.width;  ///< values per chunk

  [[nodiscard]] Index items() const noexcept { return chunks.count() * both; }

  SHEAFNN_HD void operator()(Index item, Index run) const {
    const Index width = norm.width, chunk = item / both, k = item % both, c = k % norm.width;
    const Index first = run * copies * norm.nodes, end = chunks.end(chunk);
    S sum = S(0);
    for (Index row = chunks.begin(chunk); row < end; ++row) {
      const S value = bar[(first + row) * width + c];
      sum += k < width ? value * norm.of(norm.set_of(first + row, c)).hat(norm.x[(first + row) * width + c])
                       : value;  // copies may have 2³¹ values together
    }
    out[run * out_run + item] = sum;
  }
};

}  // namespace sheafnn::batch::detail
