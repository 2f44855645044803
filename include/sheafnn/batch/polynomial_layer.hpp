/// \file
/// BatchFilterLayer: what a polynomial filter is in one layer of all instances of a batch, between mixing and the
/// next layer. It takes W_0 = S Y to X', and x̄' to Ȳ (formulas: polynomial_kernels.hpp).
#pragma once

#include <algorithm>

#include "sheafnn/batch/execution.hpp"
#include "sheafnn/batch/layer_scratch.hpp"
#include "sheafnn/batch/polynomial_filter.hpp"
#include "sheafnn/batch/polynomial_kernels.hpp"
#include "sheafnn/batch/sheaf.hpp"

namespace sheafnn::batch::detail {

/// Training passes keep V_k, R_k = L W_k and W_k of all applications; evaluations two of each that they read.
template <class Executor, class Family, class S>
class BatchFilterLayer {
 public:
  BatchFilterLayer() = default;
  /// \param filter  must outlive the layer
  BatchFilterLayer(Executor& executor, const BatchFilter<Executor, S>& filter, const GraphView<S>& graph,
                   const FeatureShape<S>& shape, const BatchSize& batch)
      : filter_(&filter), graph_(graph), shape_(shape) {
    const auto array = [&](Index instances) {
      return Array<Executor, S>(executor, "filter", instances * shape.size());
    };
    const Index steps = filter.steps(), training = batch.training_instances();
    const Index slots = std::max(training * steps, batch.instances() * std::min<Index>(steps, 2));
    scaled_ = array(slots);
    terms_ = array(slots);
    diffused_ = array(training * steps);
    sum_ = array(batch.instances());
    if (filter.has_skip()) high_pass_ = array(training);
  }

  /// Where W_0 goes, to be filled before forward().
  [[nodiscard]] S* scaled() noexcept { return scaled_.data(); }
  /// After forward() of a training pass: V_0 = Y, V_1, …; W_k and R_k, stride() apart; H.
  [[nodiscard]] StackedFeatures<S> terms() const noexcept { return {y_, terms_.data(), stride_}; }
  [[nodiscard]] const S* scaled() const noexcept { return scaled_.data(); }
  [[nodiscard]] const S* diffused() const noexcept { return diffused_.data(); }
  [[nodiscard]] const S* high_pass() const noexcept { return high_pass_.data(); }
  [[nodiscard]] Index stride() const noexcept { return stride_; }

  /// \param output  of the layer
  /// \param y       stays in place until the gradients are computed
  void forward(Executor& executor, const Pass& pass, const SheafRange& range, const SheafView<Family, S>& sheaf,
               const LayerOutput<S>& output, const S* y, LayerScratch<Executor, S>& scratch) {
    const bool keep = pass.keeps();
    const Index steps = filter_->steps();
    y_ = y;
    stride_ = pass.instances() * shape_.size();
    const auto slot = [&](Array<Executor, S>& array, Index k) {
      return array.data() + (keep ? k : k % 2) * stride_;
    };
    const auto term = [&](Index k) -> const S* { return k == 0 ? y : slot(terms_, k - 1); };
    const S* base = !filter_->has_skip() ? nullptr : filter_->skip() == HighPassSkip::input ? output.x : y;
    for (Index k = 0; k < steps; ++k) {
      const bool last = k + 1 == steps, first = k == 0;
      const bool needed = k + 1 < filter_->terms() && (keep || !last);
      launch_diffusion(executor, pass.instances(),
                       FilterForward<Family, S>{{begin_diffusion(executor, pass.instances(), graph_, range, sheaf,
                                                                 shape_, slot(scaled_, k), scratch.segments.data())},
                                                filter_->step(k), filter_->weights(), k, term(k),
                                                first ? nullptr : term(k - 1), first ? base : nullptr,
                                                needed ? slot(terms_, k) : nullptr,
                                                keep ? diffused_.data() + k * stride_ : nullptr,
                                                keep && first ? high_pass_.data() : nullptr, sum_.data(),
                                                last ? nullptr : slot(scaled_, k + 1), output});
    }
  }

  /// Computes from the derivative of X': Ȳ in scratch.y_bar, G in scratch.g, and for every application of Δ Ū_k, r̄_k and
  /// W̄_k in scratch.z_bar, r_bar and w_bar, stride() apart.
  ///
  /// \param ready  parts that share the first launch
  template <class... Ready>
  void backward(Executor& executor, const Pass& pass, const SheafRange& range, const SheafView<Family, S>& sheaf,
                bool activation, const S* x_bar, LayerScratch<Executor, S>& scratch, const Ready&... ready) const {
    const Index steps = filter_->steps(), items = shape_.items(), instances = pass.instances();
    const FilterWeightView<S> weights = filter_->weights();
    const auto cotangent = [&](Index k) {
      return FilterCotangent<Family, S>{graph_,
                                        range,
                                        sheaf,
                                        shape_,
                                        weights,
                                        k,
                                        filter_->step(k).slope,
                                        scratch.side[0].z_bar.data() + k * stride_,
                                        scratch.side[0].r_bar.data() + k * stride_};
    };
    const S* g = scratch.g.data();
    const auto q = [&](Index k) { return scratch.q[k % 2].data(); };
    executor.launch_together(ready..., Items{items, instances,
                                             FilterActivationBackward<Family, S>{cotangent(steps - 1), pass,
                                                                                 activation, sum_.data(), x_bar,
                                                                                 scratch.g.data(), q(steps)}});
    for (Index k = steps; k-- > 0;) {
      const bool last = k + 1 == steps;
      launch_diffusion(executor, instances,
                       FilterBackward<Family, S>{
                           {begin_diffusion(executor, instances, graph_, range, sheaf, shape_,
                                            static_cast<const S*>(scratch.side[0].r_bar.data() + k * stride_),
                                            scratch.segments.data())},
                           cotangent(std::max<Index>(k - 1, 0)), weights, pass, k, filter_->step(k).own,
                           last ? S(0) : filter_->step(k + 1).before, g, q(k + 1), last ? nullptr : q(k),
                           filter_->skip() == HighPassSkip::mixed, scratch.w_bar.data() + k * stride_,
                           k > 0 ? q(k) : scratch.side[0].y_bar.data()});
    }
  }

 private:
  const BatchFilter<Executor, S>* filter_ = nullptr;
  GraphView<S> graph_{};
  FeatureShape<S> shape_;
  Array<Executor, S> scaled_;     ///< W_k
  Array<Executor, S> terms_;      ///< V_1, V_2, …
  Array<Executor, S> diffused_;   ///< R_k
  Array<Executor, S> sum_;        ///< Z
  Array<Executor, S> high_pass_;  ///< H
  const S* y_ = nullptr;
  Index stride_ = 0;  ///< of the instances of the last pass
};

}  // namespace sheafnn::batch::detail
