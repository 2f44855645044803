/// \file
/// BatchFeatureNorm: a norm of features for a batch of runs, n × h per instance, with its backward pass,
///
///     y = w ∘ x̂ + b,   x̂ = (x − mean(x)) / √(var(x) + ε) over the values of a node or of a column,
///                      x̂ = (x − mean(x)) / (√var(x) + ε) over the whole matrix.
///
/// For one network: layers/layer_norm.hpp, batch_norm.hpp and global_norm.hpp.
#pragma once

#include <cstdint>

#include "sheafnn/batch/array.hpp"
#include "sheafnn/batch/layer_norm.hpp"
#include "sheafnn/batch/norm_sums.hpp"
#include "sheafnn/batch/run.hpp"

namespace sheafnn::batch::detail {

/// Buffers and passes of one norm of all instances.
template <class Executor, class S>
class BatchFeatureNorm {
 public:
  BatchFeatureNorm(Executor& executor, const layers::NormWeights<layers::ParameterSlot>& at,
                   const layers::ParameterSet<S>& parameters, Index nodes, Index width, const BatchSize& batch,
                   PartialSums& sums, NormSet set = NormSet::node)
      : set_(set),
        nodes_(nodes),
        width_(width),
        scale_(parameters.info(at.scale).offset),
        shift_(parameters.info(at.shift).offset),
        output_(executor, "norms", batch.instances() * nodes * width),
        moments_(executor, "norms", 2 * batch.instances() * sets()),
        means_(executor, "norms", 2 * batch.training_instances() * sets()) {
    const RowChunks rows{batch.training_copies * nodes};
    sums_ = sums.reserve(rows.count(), 2 * width);
    sums.assign(scale_, width, sums_, rows.count(), 2 * width);
    sums.assign(shift_, width, sums_ + width, rows.count(), 2 * width);
    if (set == NormSet::node) return;
    set_sums_ = Array<Executor, double>(executor, "norms", 2 * batch.instances() * chunks().count() * width);
    if (set == NormSet::matrix) stretch_ = Array<Executor, S>(executor, "norms", batch.instances());
  }

  [[nodiscard]] const S* output() const noexcept { return output_.data(); }

  /// \param x           n × h per instance; stays in place until backward()
  /// \param next_layer  index of the layer whose input after dropout goes to `next`; null: no such layer
  void forward(Executor& executor, const Run* runs, const Pass& pass, const ParameterView<S>& parameters,
               const S* x, std::uint32_t next_layer, S* next) {
    input_ = x;
    if (set_ == NormSet::node) {
      const int lanes = team_lanes(width_);
      executor.launch_teams(pass.instances() * nodes_, 1, lanes,
                            NormMoments<S>{width_, x, moments_.data(), lanes});
    } else {
      const NormSums<S> sums = set_sums(parameters);
      executor.launch(sums.items, pass.instances(), NormDifferences<S>{sums});
      executor.launch_teams(sums.sets(), pass.instances(), max_lanes,
                            NormSetMoments<S>{sums, moments_.data(), stretch_.data()});
    }
    executor.launch(nodes_ * width_, pass.instances(),
                    NormForward<S>{view(parameters), runs, pass, next_layer, output_.data(), next});
  }

  /// Replaces the derivative of output() by the derivative of x, and computes partial sums of the gradients.
  void backward(Executor& executor, const Pass& pass, const ParameterView<S>& parameters, S* bar) {
    const NormView<S> norm = view(parameters);
    const NormProducts<S> products{
        norm, pass.copies, bar, {pass.copies * nodes_}, parameters.arena + sums_, parameters.arena_stride};
    const Items weights{products.items(), pass.runs, products};
    if (set_ == NormSet::node) {
      const int lanes = team_lanes(width_);
      executor.launch_together(Teams{nodes_, pass.instances(), lanes,
                                     NormMeans<S>{norm, pass, bar, means_.data(), lanes}},
                               weights);
    } else {
      const NormSums<S> sums = set_sums(parameters);
      executor.launch_together(Items{sums.items, pass.instances(), NormGradientSums<S>{sums, pass, bar}}, weights);
      executor.launch_teams(sums.sets(), pass.instances(), max_lanes,
                            NormSetMeans<S>{sums, stretch_.data(), means_.data()});
    }
    executor.launch(nodes_ * width_, pass.instances(), NormBackward<S>{norm, pass, means_.data(), bar});
  }

 private:
  [[nodiscard]] NormView<S> view(const ParameterView<S>& parameters) const noexcept {
    return {
        set_,   width_,         nodes_, parameters.value + scale_, parameters.value + shift_, parameters.stride,
        input_, moments_.data()};
  }
  /// Sets of an instance.
  [[nodiscard]] Index sets() const noexcept {
    return set_ == NormSet::node ? nodes_ : set_ == NormSet::column ? width_ : Index{1};
  }
  [[nodiscard]] RowChunks chunks() const noexcept { return {nodes_}; }
  [[nodiscard]] NormSums<S> set_sums(const ParameterView<S>& parameters) noexcept {
    return {view(parameters), chunks(), set_sums_.data()};
  }

  NormSet set_;
  Index nodes_, width_, scale_, shift_;
  Index sums_ = 0;
  Array<Executor, S> output_, moments_, means_;
  Array<Executor, double> set_sums_;  ///< this and the next: of sets over nodes
  Array<Executor, S> stretch_;
  const S* input_ = nullptr;
};

}  // namespace sheafnn::batch::detail
