/// \file
/// BatchNodePosterior: the distributions of the node maps of a batch of Bayesian cooperative networks, samples of them,
/// their KL, and the derivatives. For one network: layers/variational_node_maps.hpp.
#pragma once

#include <cstdint>

#include "sheafnn/batch/array.hpp"
#include "sheafnn/batch/node_map_kernels.hpp"
#include "sheafnn/batch/run.hpp"
#include "sheafnn/posterior/node_map_posterior.hpp"

namespace sheafnn::batch::detail {

/// Arrays of distributions and of the maps that are drawn from them, for kernels. A group has distributions of its own: a run,
/// for all layers and copies of it, or an instance in one layer.
template <int D, class S>
struct NodePosteriorView {
  using Q = NodeMapPosterior<D>;
  /// Derivatives of a map: R̄ row by row, and that in log τ.
  static constexpr int derivative_size = D * D + 1;
  Q posterior;
  RawNodeMaps<S> raw;
  NodeMapView<D, S> maps;  ///< of the first layer; the other layers' follow
  Index first_layer = 0;
  Divisor layers = 1, draws = 1;  ///< layers and instances of a group
  Index instances = 0;            ///< at most
  PairArray<S> parameters;
  S* kl = nullptr;
  Index kl_stride = 0;  ///< from one group to the next
  S* derivative = nullptr;

  [[nodiscard]] SHEAFNN_HD NodeMapView<D, S> maps_of(Index layer) const {
    NodeMapView<D, S> r = maps;
    r.rows += layer * instances * maps.nodes * NodeMapRow<D, S>::size;
    return r;
  }
  [[nodiscard]] SHEAFNN_HD S* derivative_of(Index layer, Index instance, const NodeSide& at) const {
    return derivative + (((layer * instances + instance) * 2 + at.side) * maps.nodes + at.node) * derivative_size;
  }
  SHEAFNN_HD void load(Index group, Index item, S* out) const {
    SHEAFNN_UNROLL for (int k = 0; k < Q::parameter_size; ++k) out[k] = parameters.at(group, item, k);
  }
};

/// The distributions, and their KL, from what learners predict. item: NodeSide.
template <int D, class S>
struct InferNodeMaps {
  NodePosteriorView<D, S> view;

  SHEAFNN_HD void operator()(Index item, Index group) const {
    using Q = NodeMapPosterior<D>;
    S values[Q::parameter_size];
    view.posterior.activate(view.raw.complete(NodeSide(item, view.maps.nodes), group), values);
    SHEAFNN_UNROLL for (int k = 0; k < Q::parameter_size; ++k) view.parameters.at(group, item, k) = values[k];
    view.kl[group * view.kl_stride + item] = view.posterior.kl(values);
  }
};

/// The maps of the layers. item: (layer, NodeSide), group: instance.
template <int D, class S>
struct DrawNodeMaps {
  NodePosteriorView<D, S> view;
  const Run* runs;
  Pass pass;
  Divisor of_layer = 2 * view.maps.nodes;

  SHEAFNN_HD void operator()(Index item, Index instance) const {
    using Q = NodeMapPosterior<D>;
    const Index layer = item / of_layer, map = item % of_layer;
    const NodeSide at(map, view.maps.nodes);
    S parameters[Q::parameter_size], noise[Q::noise_size], log_scale;
    view.load(instance / view.draws, map, parameters);
    const std::uint32_t number = static_cast<std::uint32_t>(2 * (view.first_layer + layer) + at.side);
    view.posterior.template draw_noise<S>(pass.stream(runs[pass.run_of(instance)], Purpose::sheaf_noise, number,
                                                      instance),
                                          static_cast<std::uint32_t>(at.node), noise);
    SquareMatrix<S, D> rotation;
    view.posterior.sample(parameters, noise, rotation, log_scale);
    view.maps_of(layer).store(instance, at.node, at.side, rotation, log_scale);
  }
};

/// What follows NodeMapGradient where maps are drawn: keeps the derivatives of a layer's maps.
template <int D, class S>
struct KeepNodeDerivatives {
  NodePosteriorView<D, S> view;
  Index layer;

  SHEAFNN_HD void operator()(const NodeSide& at, Index instance, const SquareMatrix<S, D>& rotation_bar,
                             const S& log_scale_bar) const {
    S* out = view.derivative_of(layer, instance, at);
    sheafnn::detail::write_rows(rotation_bar, out);
    out[D * D] = log_scale_bar;
  }
};

/// Computes the derivatives of the learners' outputs, including the KL term, from the derivatives of the maps of all
/// layers and instances of a group. A team per NodeSide, lanes over maps.
template <int D, class S>
struct NodePosteriorBackward {
  using Q = NodeMapPosterior<D>;
  using Scalar = S;
  static constexpr int kl_sum = Q::gradient_size, outputs = kl_sum + 1;
  NodePosteriorView<D, S> view;
  const Run* runs;
  Pass pass;
  bool closed_form;
  int lanes;
  double map_share;   ///< of a distribution in the mean KL term
  double draw_share;  ///< of a sample in its distribution's KL term

  SHEAFNN_HD void part(Index item, Index group, int lane, S* sums) const {
    const NodeSide at(item, view.maps.nodes);
    const S share = static_cast<S>(closed_form ? 0.0 : weight(group) * draw_share);
    const Index first = group * view.draws, count = view.draws * view.layers;
    S parameters[Q::parameter_size];
    view.load(group, item, parameters);
    SHEAFNN_NO_UNROLL for (Index i = lane; i < count; i += lanes) {
      const Index layer = i % view.layers, instance = first + i / view.layers;
      const NodeMapRow<D, S> row = view.maps_of(layer).of(instance, at.node);
      const S* derivative = view.derivative_of(layer, instance, at);
      const SquareMatrix<S, D> rotation_bar = sheafnn::detail::matrix_of_rows<D>(derivative);
      const SquareMatrix<S, D> rotation = row.rotation(at.side);
      const S log_scale = row.log_scale(at.side);
      view.posterior.sample_backward(parameters, rotation, log_scale, rotation_bar, derivative[D * D], share,
                                     sums);
      if (!closed_form) sums[kl_sum] += view.posterior.log_ratio(parameters, rotation, log_scale);
    }
  }
  SHEAFNN_HD void finish(Index item, Index group, S* sums) const {
    const NodeSide at(item, view.maps.nodes);
    S parameters[Q::parameter_size];
    view.load(group, item, parameters);
    if (closed_form && weight(group) != 0) {
      view.posterior.kl_backward(parameters, static_cast<S>(weight(group)), sums);
    }
    view.posterior.activate_backward(view.raw.of(at, group), parameters, sums, view.raw.bar_of(at, group));
    if (!closed_form) view.kl[group * view.kl_stride + item] = sums[kl_sum] * static_cast<S>(draw_share);
  }

 private:
  /// λ per distribution.
  [[nodiscard]] SHEAFNN_HD double weight(Index group) const {
    return runs[pass.run_of(group * view.draws)].kl_weight * map_share;
  }
};

/// Buffers and passes of the distributions that one pair of learners predicts, of all runs.
template <class Executor, int D, class S>
class BatchNodePosterior {
 public:
  using View = NodePosteriorView<D, S>;

  /// \param maps    of the first layer; the other layers' follow
  /// \param kl      of the first group, the next one's `stride` numbers behind
  /// \param shared  one distribution for all copies of a run
  BatchNodePosterior(Executor& executor, const NodeMapView<D, S>& maps, Index first_layer, Index layers,
                     bool shared, const BatchSize& batch, S* kl, Index stride)
      : shared_(shared) {
    const Index count = 2 * maps.nodes, all = batch.trains() ? layers * batch.instances() * count : 0;
    parameters_ = Array<Executor, S>(executor, "posterior",
                                     (shared ? batch.runs : batch.instances()) * count * View::Q::parameter_size);
    derivative_ = Array<Executor, S>(executor, "posterior", all * View::derivative_size);
    view_.posterior = {maps.conformal};
    view_.maps = maps;
    view_.first_layer = first_layer;
    view_.layers = layers;
    view_.instances = batch.instances();
    view_.parameters = {parameters_.data(), count, 1, count * View::Q::parameter_size};
    view_.kl = kl;
    view_.kl_stride = stride;
    view_.derivative = derivative_.data();
  }

  /// Computes the distributions. \param groups  runs; where runs do not share them, instances
  void infer(Executor& executor, Index groups, const RawNodeMaps<S>& raw) {
    view_.raw = raw;
    executor.launch(2 * view_.maps.nodes, groups, InferNodeMaps<D, S>{view_});
  }
  [[nodiscard]] Items<DrawNodeMaps<D, S>> draw(const Run* runs, const Pass& pass) {
    view_.draws = shared_ ? Index{pass.copies} : Index{1};
    return {view_.layers * 2 * view_.maps.nodes, pass.instances(), {view_, runs, pass}};
  }
  /// What follows the derivatives of the maps of a layer, a number of all layers.
  [[nodiscard]] KeepNodeDerivatives<D, S> end(Index layer) const { return {view_, layer - view_.first_layer}; }
  /// After the derivatives of all its layers: to the derivatives of what the learners predict.
  ///
  /// \param share  of a distribution in the mean KL term
  void backward(Executor& executor, const Run* runs, const Pass& pass, bool closed_form, double share) {
    const Index count = view_.draws * view_.layers, nodes = view_.maps.nodes;
    const int lanes = lanes_of_draws(nodes, count);
    executor.launch_teams(2 * nodes, shared_ ? pass.runs : pass.instances(), lanes,
                          NodePosteriorBackward<D, S>{view_, runs, pass, closed_form, lanes, share,
                                                      1 / static_cast<double>(count)});
  }

 private:
  View view_;
  bool shared_ = true;
  Array<Executor, S> parameters_, derivative_;
};

}  // namespace sheafnn::batch::detail
