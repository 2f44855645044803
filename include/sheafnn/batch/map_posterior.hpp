/// \file
/// BatchMapPosterior: the distributions of maps that learners on nodes predict, of all runs of a batch: samples of them, their
/// KL, and the derivatives. Kinds of maps: bundle_network.hpp, cooperative_network.hpp.
#pragma once

#include <cstdint>

#include "sheafnn/batch/array.hpp"
#include "sheafnn/batch/learner_kernels.hpp"
#include "sheafnn/batch/run.hpp"

namespace sheafnn::batch::detail {

/// Arrays of distributions and of the maps that are drawn from them, for kernels. A group has distributions of its own: a run,
/// for all layers and copies of it, or an instance in one layer.
///
/// \tparam KindType  has the types Posterior and Raw, what learners predict. It holds `posterior`, `raw`, and the maps of the
///                   first layer, which the other layers' follow. There are count() maps of nodes() nodes, with noise at
///                   stream_of(layer, map) and address_of(map). A map has derivative_size derivatives: R̄ row by row, then
///                   others
template <class KindType, class S>
struct MapPosteriorView {
  using Kind = KindType;
  using Q = typename Kind::Posterior;
  Kind kind;
  Index first_layer = 0;
  Divisor layers = 1, draws = 1;  ///< layers and instances of a group
  Index instances = 0;            ///< at most
  PairArray<S> parameters;
  S* kl = nullptr;
  Index kl_stride = 0;  ///< from one group to the next
  S* derivative = nullptr;

  /// The index of an instance's maps of a layer among all.
  [[nodiscard]] SHEAFNN_HD Index place(Index layer, Index instance) const { return layer * instances + instance; }
  [[nodiscard]] SHEAFNN_HD S* derivative_of(Index layer, Index instance, Index map) const {
    return derivative + (place(layer, instance) * kind.count() + map) * Kind::derivative_size;
  }
  SHEAFNN_HD void load(Index group, Index map, S* out) const {
    SHEAFNN_UNROLL for (int k = 0; k < Q::parameter_size; ++k) out[k] = parameters.at(group, map, k);
  }
};

/// The distributions, and their KL, from what learners predict. item: map.
template <class View, class S>
struct InferMaps {
  View view;

  SHEAFNN_HD void operator()(Index map, Index group) const {
    S values[View::Q::parameter_size];
    view.kind.infer(map, group, values);
    SHEAFNN_UNROLL for (int k = 0; k < View::Q::parameter_size; ++k) view.parameters.at(group, map, k) = values[k];
    view.kl[group * view.kl_stride + map] = view.kind.posterior.kl(values);
  }
};

/// The maps of the layers. item: (layer, map), group: instance.
template <class View, class S>
struct DrawMaps {
  View view;
  const Run* runs;
  Pass pass;
  Divisor of_layer = view.kind.count();

  SHEAFNN_HD void operator()(Index item, Index instance) const {
    using Q = typename View::Q;
    const Index layer = item / of_layer, map = item % of_layer;
    S parameters[Q::parameter_size], noise[Q::noise_size];
    view.load(instance / view.draws, map, parameters);
    const Index stream = view.kind.stream_of(view.first_layer + layer, map);
    view.kind.posterior.template draw_noise<S>(pass.stream(runs[pass.run_of(instance)], Purpose::sheaf_noise,
                                                           static_cast<std::uint32_t>(stream), instance),
                                               static_cast<std::uint32_t>(view.kind.address_of(map)), noise);
    view.kind.draw(view.place(layer, instance), map, parameters, noise);
  }
};

/// What follows the derivatives of maps where they are drawn: keeps them, of a layer.
template <class View, class S>
struct KeepMapDerivatives {
  View view;
  Index layer;

  /// \param others  derivatives besides R̄
  template <class Map, int D, class... Others>
  SHEAFNN_HD void operator()(const Map& map, Index instance, const SquareMatrix<S, D>& rotation_bar,
                             const Others&... others) const {
    S* out = view.derivative_of(layer, instance, view.kind.number_of(map));
    sheafnn::detail::write_rows(rotation_bar, out);
    int at = D * D;
    ((out[at++] = others), ...);
  }
};

/// Computes the derivatives of the learners' outputs, including the KL term, from the derivatives of the maps. It sums over all
/// layers and instances of a group. A team per map, lanes over its samples.
template <class View, class S>
struct MapPosteriorBackward {
  using Q = typename View::Q;
  using Scalar = S;
  static constexpr int kl_sum = Q::gradient_size, outputs = kl_sum + 1;
  View view;
  const Run* runs;
  Pass pass;
  bool closed_form;
  int lanes;
  double share;       ///< of a distribution in the mean KL term
  double draw_share;  ///< of a sample in its distribution's KL term

  SHEAFNN_HD void part(Index map, Index group, int lane, S* sums) const {
    const S weight_of_draw = static_cast<S>(closed_form ? 0.0 : weight(group) * draw_share);
    const Index first = group * view.draws, count = view.draws * view.layers;
    S parameters[Q::parameter_size];
    view.load(group, map, parameters);
    SHEAFNN_NO_UNROLL for (Index i = lane; i < count; i += lanes) {
      const Index layer = i % view.layers, instance = first + i / view.layers;
      view.kind.draw_backward(view.place(layer, instance), map, parameters,
                              view.derivative_of(layer, instance, map), weight_of_draw, sums,
                              closed_form ? nullptr : sums + kl_sum);
    }
  }
  SHEAFNN_HD void finish(Index map, Index group, S* sums) const {
    S parameters[Q::parameter_size];
    view.load(group, map, parameters);
    if (closed_form && weight(group) != 0) {
      view.kind.posterior.kl_backward(parameters, static_cast<S>(weight(group)), sums);
    }
    view.kind.infer_backward(map, group, parameters, sums);
    if (!closed_form) view.kl[group * view.kl_stride + map] = sums[kl_sum] * static_cast<S>(draw_share);
  }

 private:
  /// λ per distribution.
  [[nodiscard]] SHEAFNN_HD double weight(Index group) const {
    return runs[pass.run_of(group * view.draws)].kl_weight * share;
  }
};

/// Buffers and passes of the distributions that one learner, or pair of learners, predicts, of all runs.
template <class Executor, class Kind, class S>
class BatchMapPosterior {
 public:
  using View = MapPosteriorView<Kind, S>;

  /// \param kl      of the first group; the next group's follows after `stride` values
  /// \param shared  one distribution for all copies of a run
  BatchMapPosterior(Executor& executor, const Kind& kind, Index first_layer, Index layers, bool shared,
                    const BatchSize& batch, S* kl, Index stride)
      : shared_(shared) {
    const Index count = kind.count(), all = batch.trains() ? layers * batch.instances() * count : 0;
    require_countable("maps of all layers", layers * count);
    parameters_ = Array<Executor, S>(executor, "posterior",
                                     (shared ? batch.runs : batch.instances()) * count * View::Q::parameter_size);
    derivative_ = Array<Executor, S>(executor, "posterior", all * Kind::derivative_size);
    view_ = {kind,
             first_layer,
             layers,
             1,
             batch.instances(),
             {parameters_.data(), count, 1, count * View::Q::parameter_size},
             kl,
             stride,
             derivative_.data()};
  }

  /// Computes the distributions. \param groups  runs; where runs do not share them, instances
  void infer(Executor& executor, Index groups, const typename Kind::Raw& raw) {
    view_.kind.raw = raw;
    executor.launch(view_.kind.count(), groups, InferMaps<View, S>{view_});
  }
  [[nodiscard]] Items<DrawMaps<View, S>> draw(const Run* runs, const Pass& pass) {
    view_.draws = shared_ ? Index{pass.copies} : Index{1};
    return {view_.layers * view_.kind.count(), pass.instances(), {view_, runs, pass}};
  }
  /// What follows the derivatives of the maps of a layer, a number of all layers.
  [[nodiscard]] KeepMapDerivatives<View, S> end(Index layer) const { return {view_, layer - view_.first_layer}; }
  /// After the derivatives of all its layers: to the derivatives of what learners predict.
  ///
  /// \param share  of a distribution in the mean KL term
  void backward(Executor& executor, const Run* runs, const Pass& pass, bool closed_form, double share) {
    const Index count = view_.draws * view_.layers;
    const int lanes = lanes_of_draws(view_.kind.nodes(), count);
    executor.launch_teams(view_.kind.count(), shared_ ? pass.runs : pass.instances(), lanes,
                          MapPosteriorBackward<View, S>{view_, runs, pass, closed_form, lanes, share,
                                                        1 / static_cast<double>(count)});
  }

 private:
  View view_;
  bool shared_ = true;
  Array<Executor, S> parameters_, derivative_;
};

}  // namespace sheafnn::batch::detail
