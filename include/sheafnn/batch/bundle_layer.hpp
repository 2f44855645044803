/// \file
/// BatchBundleLayer: a layer of bundle networks for all instances of a batch with its rotations (for one network
/// layers/bundle_layer.hpp, which has the formulas).
#pragma once

#include <optional>

#include "sheafnn/batch/bundle_kernels.hpp"
#include "sheafnn/batch/embedding_kernels.hpp"
#include "sheafnn/batch/feature_norm.hpp"
#include "sheafnn/batch/feed_forward.hpp"
#include "sheafnn/batch/heat_operator.hpp"
#include "sheafnn/bsnn/bundle_options.hpp"

namespace sheafnn::batch::detail {

/// Arrays that the layers share, since only one of them works at a time.
template <class Executor, class S>
struct BundleScratch {
  HeatScratch<Executor, S> heat;
  Array<Executor, S> diffused;                                ///< p(𝓛) R, of feed_forward
  Array<Executor, S> g, v_bar, r_bar, left, right, pair_bar;  ///< of backward passes

  BundleScratch() = default;
  BundleScratch(Executor& executor, const GraphView<S>& graph, const BatchAdjacency<Executor, S>& adjacency,
                Index width, const BundleOptions& options, const BatchSize& batch)
      : heat(executor, graph, adjacency, width, options.bundles, options.heat(), batch) {
    const auto array = [&](Index rows) {
      return Array<Executor, S>(executor, "layers", rows * graph.nodes * width);
    };
    const Index training = batch.training_instances();
    for (Array<Executor, S>* one : {&g, &v_bar, &r_bar, &left, &right}) *one = array(training);
    if (options.mixing != BundleMixing::feed_forward) return;
    diffused = array(batch.instances());
    pair_bar = array(2 * training);
  }
};

/// What a layer gets in a pass.
template <class Executor, class S>
struct BundleCall {
  Executor& executor;
  Pass pass;
  ParameterView<S> parameters;
  PassDropout hidden, after;  ///< dropouts of the hidden units of feed_forward, and of V
  BundleScratch<Executor, S>& scratch;
};

/// One layer; what its backward pass needs stays in its own arrays.
template <class Executor, int D, class S>
class BatchBundleLayer {
 public:
  using Call = BundleCall<Executor, S>;

  /// \param maps  to be filled before forward()
  BatchBundleLayer(Executor& executor, const GraphView<S>& graph, const BatchAdjacency<Executor, S>& adjacency,
                   const BundleMapView<D, S>& maps, const layers::BundleWeights<layers::ParameterSlot>& at,
                   const BundleOptions& options, const layers::ParameterSet<S>& parameters, const BatchSize& batch,
                   PartialSums& sums)
      : nodes_(graph.nodes),
        width_(options.bundles * maps.shape.row()),
        activation_(options.mixing == BundleMixing::linear ? options.activation : Activation::identity),
        residual_(options.residual),
        maps_(maps),
        heat_(executor, graph, adjacency, options.heat(), at.heat, parameters, options.bundles, maps.shape.row(),
              batch, sums) {
    const auto array = [&](Index numbers) {
      return Array<Executor, S>(executor, "layers", batch.instances() * nodes_ * numbers);
    };
    if (options.layer_norm) norm_.emplace(executor, at.norm, parameters, nodes_, width_, batch, sums);
    if (options.mixing == BundleMixing::linear) {
      const Index rows = batch.training_copies * nodes_;
      linear_.emplace(layers::LinearWeights<layers::ParameterSlot>{at.linear.weight, {-1}}, parameters, batch.runs,
                      rows, width_, width_, sums);
      bias_ = parameters.info(at.linear.bias).offset;
      const RowChunks chunks{rows};
      bias_sums_ = sums.reserve(chunks.count(), width_);
      sums.assign(bias_, width_, bias_sums_, chunks.count(), width_);
      mixed_ = array(width_);
      diffused_ = array(width_);
    } else {
      pair_ = array(2 * width_);
      forward_.emplace(executor, at.forward, parameters, nodes_, 2 * width_, width_, width_, batch, sums);
    }
    rotated_ = array(width_);
    output_ = array(width_);
  }

  [[nodiscard]] const S* output() const noexcept { return output_.data(); }
  [[nodiscard]] const BundleMapView<D, S>& maps() const noexcept { return maps_; }

  /// \param x  n × h per instance; stays in place until backward()
  void forward(const Call& call, const S* x) {
    const auto& [executor, pass, parameters, hidden, after, scratch] = call;
    const Index rows = pass.copies * nodes_, size = nodes_ * width_;
    z_ = x;
    if (norm_) {
      norm_->forward(executor, nullptr, pass, parameters, x, 0, nullptr);
      z_ = norm_->output();
    }
    executor.launch(maps_.shape.items(), pass.instances(), EnterBundle<D, S>{maps_, z_, rotated_.data()});
    if (forward_) {
      heat_.forward(executor, parameters, pass, scratch.heat, rotated_.data(), scratch.diffused.data());
      executor.launch(2 * size, pass.instances(),
                      JoinRows<S>{width_, size, z_, scratch.diffused.data(), pair_.data()});
      forward_->forward(executor, parameters, hidden, pair_.data());
      executor.launch_together(forward_->add_bias(parameters, pass));
    } else {
      linear_->forward(executor, parameters, rows, rotated_.data(), mixed_.data());
      heat_.forward(executor, parameters, pass, scratch.heat, mixed_.data(), diffused_.data());
      executor.launch(rows * width_, pass.runs,
                      AddBias<S>{parameters.value + bias_, parameters.stride, width_, rows * width_,
                                 diffused_.data()});
    }
    executor.launch_together(after.of(v(), size));
    executor.launch(maps_.shape.items(), pass.instances(),
                    LeaveBundle<D, S>{maps_, activation_, residual_ ? x : nullptr, v(), output_.data()});
  }
  /// Replaces the derivative of output() in x_bar by the derivative of x, without what goes through the rotations.
  ///
  /// \param end  see BundleGradient
  template <class End>
  void backward(const Call& call, S* x_bar, const End& end) {
    const auto& [executor, pass, parameters, hidden, after, scratch] = call;
    const Index rows = pass.copies * nodes_, size = nodes_ * width_, instances = pass.instances();
    S *g = scratch.g.data(), *v_bar = scratch.v_bar.data(), *r_bar = scratch.r_bar.data(),
      *left = scratch.left.data(), *right = scratch.right.data(), *z_bar = left;
    executor.launch(maps_.shape.items(), instances,
                    LeaveBundleBackward<D, S>{maps_, activation_, v(), x_bar, g, v_bar});
    executor.launch_together(after.of(v_bar, size));
    if (forward_) {
      forward_->backward(executor, parameters, hidden, v_bar, left, scratch.pair_bar.data(), false);
      executor.launch(2 * size, instances, SplitRows<S>{width_, size, scratch.pair_bar.data(), left, right});
      heat_.backward(executor, parameters, pass, scratch.heat, rotated_.data(), right, r_bar);
    } else {
      heat_.backward(executor, parameters, pass, scratch.heat, mixed_.data(), v_bar, right);
      const RowProducts<S> bias_sums{nullptr,
                                     0,
                                     0,
                                     0,
                                     v_bar,
                                     width_,
                                     width_,
                                     rows * width_,
                                     {rows},
                                     true,
                                     parameters.arena + bias_sums_,
                                     parameters.arena_stride};
      executor.launch_together(linear_->weight_products(parameters, rows, rotated_.data(), right),
                               Items{bias_sums.items(), pass.runs, bias_sums});
      linear_->backward(executor, parameters, rows, right, r_bar);
    }
    const int lanes = tile_lanes(maps_.shape);
    executor.launch_together(Teams{maps_.shape.nodes, instances, lanes,
                                   BundleGradient<D, S, End>{maps_.shape, v(), g, r_bar, z_, lanes, end}},
                             Items{maps_.shape.items(), instances,
                                   EnterBundleBackward<D, S>{maps_, r_bar, forward_.has_value(), z_bar}});
    if (norm_) norm_->backward(executor, pass, parameters, z_bar);
    if (residual_) {
      executor.launch(size, instances, AddFeatures<S>{z_bar, size, x_bar});
    } else {
      executor.launch(size, instances, CopyToInstances<S>{z_bar, size, 1, x_bar});
    }
  }

 private:
  [[nodiscard]] S* v() noexcept { return forward_ ? forward_->output() : diffused_.data(); }

  Index nodes_, width_;
  Activation activation_;  ///< of linear
  bool residual_;
  BundleMapView<D, S> maps_;
  BatchHeat<Executor, S> heat_;
  std::optional<BatchFeatureNorm<Executor, S>> norm_;
  std::optional<BatchFeedForward<Executor, S>> forward_;
  std::optional<BatchLinear<S>> linear_;
  Index bias_ = 0, bias_sums_ = 0;
  Array<Executor, S> rotated_;           ///< R
  Array<Executor, S> mixed_, diffused_;  ///< R W and p(𝓛) R W, of linear
  Array<Executor, S> pair_;              ///< [Z ‖ p(𝓛) R], of feed_forward
  Array<Executor, S> output_;
  const S* z_ = nullptr;
};

}  // namespace sheafnn::batch::detail
