/// \file
/// BatchBundlePosterior: the distributions of the rotations of a batch of Bayesian bundle networks, samples of them, their KL,
/// and the derivatives (for one network layers/bundle_rotations.hpp). All layers and copies of a run share them.
#pragma once

#include <cstdint>

#include "sheafnn/batch/array.hpp"
#include "sheafnn/batch/bundle_kernels.hpp"
#include "sheafnn/batch/learner_kernels.hpp"
#include "sheafnn/batch/run.hpp"
#include "sheafnn/posterior/cayley.hpp"

namespace sheafnn::batch::detail {

/// Arrays of distributions and of the rotations that are drawn from them, for kernels.
template <int D, class S>
struct BundlePosteriorView {
  using Q = CayleyPosterior<SpecialOrthogonal<D>>;
  static constexpr int raw_size = Q::mean_size + Q::spread_size;
  Q posterior;
  S unit;
  RawBundle<S> raw;
  BundleMapView<D, S> maps;       ///< of the first layer; the other layers' follow
  Divisor layers = 1, draws = 1;  ///< layers and instances of a run
  Index instances = 0;            ///< at most
  PairArray<S> parameters;
  S* kl = nullptr;
  S* derivative = nullptr;  ///< by layer, instance and rotation, row by row

  [[nodiscard]] SHEAFNN_HD Index count() const { return maps.shape.nodes; }
  [[nodiscard]] SHEAFNN_HD BundleMapView<D, S> maps_of(Index layer) const {
    BundleMapView<D, S> r = maps;
    r.rows += layer * instances * count() * BundleMapView<D, S>::row_size;
    return r;
  }
  [[nodiscard]] SHEAFNN_HD S* derivative_of(Index layer, Index instance, Index number) const {
    return derivative + ((layer * instances + instance) * count() + number) * (D * D);
  }
  SHEAFNN_HD void load(Index run, Index number, S* out) const {
    SHEAFNN_UNROLL for (int k = 0; k < Q::parameter_size; ++k) out[k] = parameters.at(run, number, k);
  }
};

/// The distributions, and their KL, from what a learner predicts. item: number of the rotation, group: run.
template <int D, class S>
struct InferBundle {
  BundlePosteriorView<D, S> view;

  SHEAFNN_HD void operator()(Index number, Index run) const {
    using View = BundlePosteriorView<D, S>;
    S values[View::raw_size], parameters[View::Q::parameter_size];
    load_rotation_numbers<D, View::raw_size>(view.raw.complete(number, run), view.unit, values);
    view.posterior.activate(values, parameters);
    SHEAFNN_UNROLL for (int k = 0; k < View::Q::parameter_size; ++k) {
      view.parameters.at(run, number, k) = parameters[k];
    }
    view.kl[run * view.count() + number] = view.posterior.kl(parameters);
  }
};
/// The rotations of all layers. item: (layer, number), group: instance.
template <int D, class S>
struct DrawBundle {
  BundlePosteriorView<D, S> view;
  const Run* runs;
  Pass pass;
  Divisor of_layer = view.maps.shape.nodes;

  SHEAFNN_HD void operator()(Index item, Index instance) const {
    using Q = typename BundlePosteriorView<D, S>::Q;
    const Index layer = item / of_layer, number = item % of_layer, run = pass.run_of(instance);
    S parameters[Q::parameter_size], noise[Q::noise_size];
    view.load(run, number, parameters);
    view.posterior.template draw_noise<S>(pass.stream(runs[run], Purpose::sheaf_noise,
                                                      static_cast<std::uint32_t>(layer), instance),
                                          static_cast<std::uint32_t>(number), noise);
    SquareMatrix<S, D> rotation;
    view.posterior.sample(parameters, noise, rotation);
    view.maps_of(layer).store(instance, number, rotation);
  }
};
/// What follows BundleGradient where rotations are drawn: keeps the derivatives of a layer's rotations.
template <int D, class S>
struct KeepBundleDerivatives {
  BundlePosteriorView<D, S> view;
  Index layer;

  SHEAFNN_HD void operator()(Index number, Index instance, const SquareMatrix<S, D>& rotation_bar) const {
    sheafnn::detail::write_rows(rotation_bar, view.derivative_of(layer, instance, number));
  }
};
/// Computes the derivatives of the learner's numbers, including the KL term, from the derivatives of the rotations of all
/// layers and instances of a run. A team per rotation, lanes over its samples; group: run.
template <int D, class S>
struct BundlePosteriorBackward {
  using View = BundlePosteriorView<D, S>;
  using Q = typename View::Q;
  using Scalar = S;
  static constexpr int kl_sum = Q::gradient_size, outputs = kl_sum + 1;
  View view;
  const Run* runs;
  bool closed_form;
  int lanes;
  double share;       ///< of a distribution in the mean KL term
  double draw_share;  ///< of a sample in its distribution's KL term

  SHEAFNN_HD void part(Index number, Index run, int lane, S* sums) const {
    const S weight_of_draw = static_cast<S>(closed_form ? 0.0 : weight(run) * draw_share);
    const Index first = run * view.draws, count = view.draws * view.layers;
    S parameters[Q::parameter_size];
    view.load(run, number, parameters);
    SHEAFNN_NO_UNROLL for (Index i = lane; i < count; i += lanes) {
      const Index layer = i % view.layers, instance = first + i / view.layers;
      const S* derivative = view.derivative_of(layer, instance, number);
      const SquareMatrix<S, D> rotation_bar = sheafnn::detail::matrix_of_rows<D>(derivative);
      const SquareMatrix<S, D> rotation = view.maps_of(layer).rotation(instance, number);
      const S* no_noise = nullptr;
      view.posterior.sample_backward(parameters, no_noise, rotation, rotation_bar, weight_of_draw, sums);
      if (!closed_form) sums[kl_sum] += view.posterior.log_ratio(parameters, no_noise, rotation);
    }
  }
  SHEAFNN_HD void finish(Index number, Index run, S* sums) const {
    S parameters[Q::parameter_size], values[View::raw_size];
    view.load(run, number, parameters);
    if (closed_form && weight(run) != 0) {
      view.posterior.kl_backward(parameters, static_cast<S>(weight(run)), sums);
    }
    load_rotation_numbers<D, View::raw_size>(view.raw.of(number, run), view.unit, values);
    S* bar = view.raw.bar_of(number, run);
    view.posterior.activate_backward(values, parameters, sums, bar);
    sheafnn::detail::scale_rotation_numbers<D>(view.unit, bar);
    if (!closed_form) view.kl[run * view.count() + number] = sums[kl_sum] * static_cast<S>(draw_share);
  }

 private:
  /// λ per distribution.
  [[nodiscard]] SHEAFNN_HD double weight(Index run) const { return runs[run].kl_weight * share; }
};

/// Buffers and passes of the distributions of all runs.
template <class Executor, int D, class S>
class BatchBundlePosterior {
 public:
  using View = BundlePosteriorView<D, S>;

  /// \param maps  of the first layer; the other layers' follow
  BatchBundlePosterior(Executor& executor, const BundleMapView<D, S>& maps, Index layers,
                       rotation::RotationParametrisation parametrisation, const BatchSize& batch)
      : view_{sheafnn::detail::bundle_posterior<D>(parametrisation),
              sheafnn::detail::bundle_unit<S>(parametrisation),
              {},
              maps,
              layers,
              1,
              batch.instances(),
              {},
              nullptr,
              nullptr} {
    const Index count = maps.shape.nodes, all = batch.trains() ? layers * batch.instances() * count : 0;
    require_countable("rotations of all layers", layers * count);
    parameters_ = Array<Executor, S>(executor, "posterior", batch.runs * count * View::Q::parameter_size);
    kl_ = Array<Executor, S>(executor, "posterior", batch.runs * count);
    derivative_ = Array<Executor, S>(executor, "posterior", all * D * D);
    view_.parameters = {parameters_.data(), count, 1, count * View::Q::parameter_size};
    view_.kl = kl_.data();
    view_.derivative = derivative_.data();
  }

  /// Of every distribution, run by run.
  [[nodiscard]] const S* kl() const noexcept { return kl_.data(); }
  /// Computes the distributions of all runs.
  void infer(Executor& executor, Index runs, const RawBundle<S>& raw) {
    view_.raw = raw;
    executor.launch(view_.count(), runs, InferBundle<D, S>{view_});
  }
  [[nodiscard]] Items<DrawBundle<D, S>> draw(const Run* runs, const Pass& pass) {
    view_.draws = pass.copies;
    return {view_.layers * view_.count(), pass.instances(), {view_, runs, pass}};
  }
  /// What follows the derivatives of the rotations of a layer.
  [[nodiscard]] KeepBundleDerivatives<D, S> end(Index layer) const { return {view_, layer}; }
  /// After the derivatives of all layers: to the derivatives of what the learner predicts.
  void backward(Executor& executor, const Run* runs, const Pass& pass, bool closed_form) {
    const Index draws = view_.draws * view_.layers;
    const int lanes = lanes_of_draws(view_.count(), draws);
    executor.launch_teams(view_.count(), pass.runs, lanes,
                          BundlePosteriorBackward<D, S>{view_, runs, closed_form, lanes,
                                                        1 / static_cast<double>(view_.count()),
                                                        1 / static_cast<double>(draws)});
  }

 private:
  View view_;
  Array<Executor, S> parameters_, kl_, derivative_;
};

}  // namespace sheafnn::batch::detail
