/// \file
/// Kernels of norms over the nodes of an instance: means and deviations of columns or of the whole matrix, and what their
/// backward passes sum. For one network: layers/batch_norm.hpp and layers/global_norm.hpp. Sums are in double precision. What
/// follows them: layer_norm.hpp.
#pragma once

#include <cmath>

#include "sheafnn/batch/layer_norm.hpp"
#include "sheafnn/layers/batch_norm.hpp"
#include "sheafnn/layers/global_norm.hpp"

namespace sheafnn::batch::detail {

/// Two sums over some nodes of a column, and over the nodes of all chunks.
template <class S>
struct NormSums {
  NormView<S> norm;
  RowChunks chunks;                           ///< of an instance's nodes
  double* sums;                               ///< 2 for each item of each instance
  Index items = chunks.count() * norm.width;  ///< (chunk, column)

  /// Sets of an instance.
  [[nodiscard]] SHEAFNN_HD Index sets() const noexcept {
    return norm.set == NormSet::column ? Index{norm.width} : Index{1};
  }
  /// Values per set.
  [[nodiscard]] SHEAFNN_HD double size() const noexcept {
    return static_cast<double>(norm.nodes * (norm.set == NormSet::column ? Index{1} : Index{norm.width}));
  }
  /// A value of a set, which is of the order of the others.
  [[nodiscard]] SHEAFNN_HD S first(Index instance, Index column) const {
    return norm.x[instance * norm.nodes * norm.width + (norm.set == NormSet::column ? column : 0)];
  }
  /// The place of the sums of an item.
  [[nodiscard]] SHEAFNN_HD double* place(Index item, Index instance) const {
    return sums + 2 * (instance * items + item);
  }
  /// Writes the sums of an item. \param add  add(index, sums): what a value adds to both
  template <class Add>
  SHEAFNN_HD void write(Index item, Index instance, const Add& add) const {
    const Index chunk = item / norm.width, end = chunks.end(chunk);
    const Index first = instance * norm.nodes * norm.width + item % norm.width;
    double* to = place(item, instance);
    double sum[2] = {};
    for (Index u = chunks.begin(chunk); u < end; ++u) add(first + u * norm.width, sum);
    to[0] = sum[0];
    to[1] = sum[1];
  }
  /// Adds what a lane reads of the sums of a set.
  SHEAFNN_HD void add(Index set, Index instance, int lane, double* to) const {
    const bool column = norm.set == NormSet::column;
    const Index count = column ? items / norm.width : items, step = column ? Index{norm.width} : Index{1};
    const double* from = place(set, instance);
    SHEAFNN_UNROLL_FOUR for (Index k = lane; k < count; k += max_lanes) {
      const double* one = from + 2 * k * step;
      to[0] += one[0];
      to[1] += one[1];
    }
  }
};

/// Sums of differences from the first value of a set, whose mean is of the order of their spread, and of their squares.
/// item: (chunk, column), group: instance.
template <class S>
struct NormDifferences {
  NormSums<S> over;

  SHEAFNN_HD void operator()(Index item, Index instance) const {
    const S* x = over.norm.x;
    const double first = static_cast<double>(over.first(instance, item % over.norm.width));
    over.write(item, instance, [=](Index index, double* sums) {
      const double difference = static_cast<double>(x[index]) - first;
      sums[0] += difference;
      sums[1] += difference * difference;
    });
  }
};
/// Mean and deviation of a set: a team of max_lanes; group: instance.
template <class S>
struct NormSetMoments {
  using Scalar = double;
  static constexpr int outputs = 2;
  NormSums<S> over;
  S* moments;  ///< 2 per set
  S* stretch;  ///< of matrices: (s + ε)/s, which kernels/norm.hpp explains; else null

  SHEAFNN_HD void part(Index set, Index instance, int lane, double* sums) const {
    over.add(set, instance, lane, sums);
  }
  SHEAFNN_HD void finish(Index set, Index instance, const double* sums) const {
    using std::sqrt;
    const double shift = sums[0] / over.size(), left = sums[1] / over.size() - shift * shift;
    const double variance = left > 0 ? left : 0;  // of equal numbers rounding leaves less
    const bool columns = over.norm.set == NormSet::column;
    const double root = sqrt(columns ? variance + layers::BatchNorm<S>::epsilon : variance);
    const double deviation = columns ? root : root + layers::GlobalNorm<S>::epsilon;
    const Index index = instance * over.sets() + set;
    moments[2 * index] = static_cast<S>(static_cast<double>(over.first(instance, set)) + shift);
    moments[2 * index + 1] = static_cast<S>(1 / deviation);
    if (!columns) stretch[index] = static_cast<S>(kernels::stretch_of(root, layers::GlobalNorm<S>::epsilon));
  }
};

/// Sums of g = w ∘ ȳ and of g ∘ x̂; item: (chunk, column), group: instance.
template <class S>
struct NormGradientSums {
  NormSums<S> over;
  Pass pass;
  const S* bar;

  SHEAFNN_HD void operator()(Index item, Index instance) const {
    const NormView<S>& norm = over.norm;
    const Index column = item % norm.width;
    const S* const x = norm.x;
    const S* const out_bar = bar;
    const S scale = norm.scale[pass.run_of(instance) * norm.parameter_stride + column];
    const kernels::Moments<S> moments = norm.of(norm.set_of(instance * norm.nodes, column));
    over.write(item, instance, [=](Index index, double* sums) {
      const S g = scale * out_bar[index];
      sums[0] += static_cast<double>(g);
      sums[1] += static_cast<double>(g * moments.hat(x[index]));
    });
  }
};
/// mean(g) and mean(g ∘ x̂) of a set, as NormBackward takes them: a team of max_lanes; group: instance.
template <class S>
struct NormSetMeans {
  using Scalar = double;
  static constexpr int outputs = 2;
  NormSums<S> over;
  const S* stretch;  ///< see NormSetMoments
  S* means;          ///< 2 per set

  SHEAFNN_HD void part(Index set, Index instance, int lane, double* sums) const {
    over.add(set, instance, lane, sums);
  }
  SHEAFNN_HD void finish(Index set, Index instance, const double* sums) const {
    const Index index = instance * over.sets() + set;
    means[2 * index] = static_cast<S>(sums[0] / over.size());
    means[2 * index + 1] = static_cast<S>(sums[1] / over.size()) * (stretch != nullptr ? stretch[index] : S(1));
  }
};

}  // namespace sheafnn::batch::detail
