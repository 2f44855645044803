/// \file
/// BatchNetwork of cooperative models, CSNN and BCSNN (for one network bsnn/cooperative_network.hpp).
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "sheafnn/batch/activated_encoder.hpp"
#include "sheafnn/batch/cooperative_layer.hpp"
#include "sheafnn/batch/embedding_kernels.hpp"
#include "sheafnn/batch/feature_norm.hpp"
#include "sheafnn/batch/hidden_readout.hpp"
#include "sheafnn/batch/map_posterior.hpp"
#include "sheafnn/batch/network_of_parts.hpp"
#include "sheafnn/batch/node_learner.hpp"
#include "sheafnn/batch/node_map_kernels.hpp"
#include "sheafnn/bsnn/cooperative_model.hpp"
#include "sheafnn/posterior/node_map_posterior.hpp"

namespace sheafnn::batch::detail {

/// A map is the index of a NodeSide.
template <int D, class S>
struct NodeMapDistributions {
  using Posterior = NodeMapPosterior<D>;
  using Raw = RawNodeMaps<S>;
  static constexpr int derivative_size = D * D + 1;  ///< the last: in log τ
  Posterior posterior;
  NodeMapView<D, S> maps;  ///< of the first layer; the other layers' follow
  Raw raw{};

  [[nodiscard]] SHEAFNN_HD Index nodes() const { return maps.nodes; }
  [[nodiscard]] SHEAFNN_HD Index count() const { return 2 * nodes(); }
  [[nodiscard]] SHEAFNN_HD NodeSide side_of(Index map) const { return {map, nodes()}; }
  [[nodiscard]] SHEAFNN_HD Index number_of(const NodeSide& at) const { return at.side * nodes() + at.node; }
  [[nodiscard]] SHEAFNN_HD Index address_of(Index map) const { return side_of(map).node; }
  [[nodiscard]] SHEAFNN_HD Index stream_of(Index layer, Index map) const { return 2 * layer + side_of(map).side; }

  SHEAFNN_HD void infer(Index map, Index group, S* parameters) const {
    posterior.activate(raw.complete(side_of(map), group), parameters);
  }
  SHEAFNN_HD void infer_backward(Index map, Index group, const S* parameters, const S* sums) const {
    const NodeSide at = side_of(map);
    posterior.activate_backward(raw.of(at, group), parameters, sums, raw.bar_of(at, group));
  }
  /// \param place  of the layer and instance
  SHEAFNN_HD void draw(Index place, Index map, const S* parameters, const S* noise) const {
    const NodeSide at = side_of(map);
    SquareMatrix<S, D> rotation;
    S log_scale;
    posterior.sample(parameters, noise, rotation, log_scale);
    maps.store(place, at.node, at.side, rotation, log_scale);
  }
  /// \param log_ratio  added to; null: not wanted
  SHEAFNN_HD void draw_backward(Index place, Index map, const S* parameters, const S* derivative, const S& weight,
                                S* sums, S* log_ratio) const {
    const NodeSide at = side_of(map);
    const NodeMapRow<D, S> row = maps.of(place, at.node);
    const SquareMatrix<S, D> rotation_bar = sheafnn::detail::matrix_of_rows<D>(derivative);
    const SquareMatrix<S, D> rotation = row.rotation(at.side);
    const S log_scale = row.log_scale(at.side);
    posterior.sample_backward(parameters, rotation, log_scale, rotation_bar, derivative[D * D], weight, sums);
    if (log_ratio != nullptr) *log_ratio += posterior.log_ratio(parameters, rotation, log_scale);
  }
};

/// What networks of the same models on the same graph have in common.
template <class Executor, class S>
struct CooperativeArrays : CommonArrays<Executor, S> {
  template <class Model>
  CooperativeArrays(Executor& executor, const Model& model, const Graph& host_graph, const NodeFeatures& features,
                    Index run_count)
      : CommonArrays<Executor, S>(executor, model, host_graph, features, run_count) {
    if (!model.options().directed) return;
    const DirectedArcs listed = listed_arcs(host_graph);
    leaving.emplace(executor, host_graph.node_count(), listed.lists().out);
    entering.emplace(executor, host_graph.node_count(), listed.lists().in);
  }
  [[nodiscard]] ArcViews<S> arcs() const {
    return leaving ? ArcViews<S>{leaving->view(), entering->view()}
                   : ArcViews<S>{this->graph.view(), this->graph.view()};
  }

  std::optional<BatchGraph<Executor, S>> leaving, entering;  ///< of directed networks
};

/// The layers, learners, norms, posteriors and arrays of a batch of cooperative networks.
template <class Executor, int D, bool Bayesian, class S>
struct CooperativeNetworkParts : PartsOfNetwork<Executor, S, CooperativeArrays<Executor, S>> {
  using Base = PartsOfNetwork<Executor, S, CooperativeArrays<Executor, S>>;
  using Base::common, Base::batch, Base::sums, Base::output, Base::x_bar;
  using Model = CooperativeModel<D, Bayesian, S>;
  using typename Base::Common;

  /// See BatchNetwork. Unchecked: the size of the batch.
  CooperativeNetworkParts(Executor& executor, const Model& model, std::shared_ptr<Common> shared,
                          const NodeTargetLists& targets, const BatchSize& size, bool dropout)
      : Base(model, std::move(shared), size), options(model.options()) {
    const ArcViews<S> arcs = common->arcs();
    const Index n = arcs.out.nodes, h = model.hidden_width();
    detail::check(targets, n, options.classes);
    shape = {n, D, options.channels, {}};
    require_countable("features of a network", shape.size());
    require_countable("tiles of the sums of segments", arcs.segments() * shape.tiles);
    const layers::ParameterSet<S>& p = model.parameters();
    const CooperativeWeights<layers::ParameterSlot>& at = model.layout();
    const auto encoder_of = [&](const layers::LinearWeights<layers::ParameterSlot>& weights, bool drops) {
      return BatchActivatedEncoder<Executor, S>(executor, common->input, h, options.activation, weights, p, batch,
                                                drops, sums);
    };
    encoder.emplace(encoder_of(at.encoder, dropout));
    if (options.separate_encoder) learner_encoder.emplace(encoder_of(at.learner_encoder, false));
    const layers::NodeLearnerOptions learner = node_learner(options, h, model.learner_outputs());
    const bool shared_learners = Bayesian && !options.layer_learners;  // which read what copies have in common
    const BatchSize read = shared_learners ? batch.without_copies() : batch;
    for (const auto& pair : at.learners) {
      learners.emplace_back(executor, arcs, pair, learner, options.learner_dropout,
                            static_cast<Index>(learners.size()), p, read, sums);
    }
    learner_scratch = NodeLearnerScratch<Executor, S>(executor, learner, arcs, read);
    const Index map_size = batch.instances() * n * NodeMapRow<D, S>::size,
                sets = static_cast<Index>(learners.size());
    map = Array<Executor, S>(executor, "node maps", options.layers * map_size);
    if constexpr (Bayesian) {
      kl = Array<Executor, S>(executor, "posterior", read.instances() * sets * 2 * n);
      this->count_kl(executor, std::max<Index>(1, read.training_copies) * sets * 2 * n);
    }
    const S *out = arcs.out.degree, *in = arcs.in.degree;
    NodeMapView<D, S> maps{
        n, {out, in}, {out, options.in_degree_diagonal ? in : out}, options.conformal, map.data()};
    for (Index l = 0; l < options.layers; ++l, maps.rows += map_size) {
      const std::size_t i = static_cast<std::size_t>(l);
      if constexpr (Bayesian) {
        if (l < sets) {
          posteriors.emplace_back(executor, NodeMapDistributions<D, S>{{options.conformal}, maps}, l,
                                  options.layers / sets, shared_learners, batch, kl.data() + l * 2 * n,
                                  sets * 2 * n);
        }
      }
      layers.emplace_back(executor, arcs, shape, maps, at.layers[i], options, l, p, batch, dropout, sums);
      if (at.norms.empty()) continue;
      norms.emplace_back(executor, at.norms[i], p, n, h, batch, sums,
                         options.norm == FeatureNorm::batch ? NormSet::column : NormSet::node);
    }
    hidden_readout = BatchHiddenReadout<Executor, S>(executor, at.readout, p, n, h, batch, sums);
    right = RightTransposes<Executor, S>(executor, at.layers, p, options.channels, batch.runs);
    output.emplace(executor, at.output, p, targets, n, h, options.classes, batch, sums);
    const auto array = [&](const char* what, Index count) { return Array<Executor, S>(executor, what, count); };
    if (batch.copies > 1) spread = array("embeddings", batch.instances() * shape.size());
    x_bar = array("layers", batch.training_instances() * shape.size());
    if (batch.training_copies > 1) embedding_bar = array("layers", batch.runs * shape.size());
    if (learner_encoder && batch.trains()) learner_bar = array("layers", batch.runs * shape.size());
    scratch = CooperativeScratch<Executor, S>(executor, shape.size(), arcs.segments() * shape.row(), batch);
    this->end(executor);
  }

  [[nodiscard]] const S* kl_of_pairs() const noexcept { return kl.data(); }
  /// Do the learners of every layer read its features? Otherwise one pair reads X_1, or an encoder's output, for all.
  [[nodiscard]] bool learns_per_layer() const noexcept { return !Bayesian || options.layer_learners; }

  CooperativeOptions options;
  FeatureShape<S> shape;
  std::optional<BatchActivatedEncoder<Executor, S>> encoder, learner_encoder;
  std::vector<BatchNodeLearner<Executor, S>> learners;  ///< one pair per layer, or one for all layers
  NodeLearnerScratch<Executor, S> learner_scratch;
  Array<Executor, S> map;                                      ///< of all layers
  std::vector<BatchMapPosterior<Executor, NodeMapDistributions<D, S>, S>>
      posteriors;                                              ///< of Bayesian models, one per pair of learners
  Array<Executor, S> kl;                                       ///< of every distribution, run by run
  std::vector<BatchCooperativeLayer<Executor, D, S>> layers;
  std::vector<BatchFeatureNorm<Executor, S>> norms;  ///< of all layers, or empty
  BatchHiddenReadout<Executor, S> hidden_readout;
  RightTransposes<Executor, S> right;
  Array<Executor, S> spread;  ///< embeddings, copied for each instance
  Array<Executor, S> embedding_bar, learner_bar;
  CooperativeScratch<Executor, S> scratch;
};

}  // namespace sheafnn::batch::detail

namespace sheafnn::batch {

/// See the file comment; it has the interface of batch/network_of_parts.hpp.
template <class Executor, int D, bool Bayesian, class Scalar>
class BatchNetwork<Executor, CooperativeModel<D, Bayesian, Scalar>>
    : public detail::NetworkOfParts<BatchNetwork<Executor, CooperativeModel<D, Bayesian, Scalar>>, Executor,
                                    CooperativeModel<D, Bayesian, Scalar>,
                                    detail::CooperativeNetworkParts<Executor, D, Bayesian, Scalar>> {
  using Base = detail::NetworkOfParts<BatchNetwork, Executor, CooperativeModel<D, Bayesian, Scalar>,
                                      detail::CooperativeNetworkParts<Executor, D, Bayesian, Scalar>>;
  friend Base;

 public:
  using typename Base::Model;
  using S = Scalar;
  using Base::Base;

 protected:
  using Base::executor_, Base::parts_, Base::outside_;
  static constexpr bool takes_embeddings = true;

  [[nodiscard]] detail::CooperativeCall<Executor, S> call(const Pass& pass) {
    return {executor_, parts_.runs(), pass, parts_.view, parts_.right, parts_.scratch};
  }
  /// What the learners of a layer, or the only ones, predict. \param copies  of what they read
  [[nodiscard]] detail::RawNodeMaps<S> raw(std::size_t learner, Index copies) {
    return parts_.learners[learner].raw(parts_.view, copies, parts_.learner_scratch);
  }
  /// out = dropout(in) before a layer; nothing unless `drop`. \param copies  instances that share `in`
  [[nodiscard]] Items<detail::ApplyDropout<S>> dropout_part(bool drop, const Pass& pass, std::size_t layer,
                                                            const S* in, S* out, Index copies = 1) const {
    return detail::dropout_part(drop, parts_.runs(), pass, Purpose::layer_dropout, layer, in, parts_.shape.size(),
                                out, copies);
  }

  /// A pass over what the learners read: all instances, or what is common to a run's.
  [[nodiscard]] Pass read(const Pass& pass) const {
    return parts_.learns_per_layer() ? pass : Pass{pass.runs, 1, pass.training, 0, pass.behind, pass.keep};
  }

  /// H = act(dropout_in(X) W₁ᵀ + b₁) and, where one pair of learners serves all layers, Q(T, S | H).
  void encode(const Pass& pass, bool drop, bool) {
    executor_.launch_together(parts_.right.transpose(parts_.view));
    if (outside_ == nullptr) parts_.encoder->forward(executor_, parts_.runs(), parts_.view, drop);
    if (parts_.learns_per_layer()) return;
    if constexpr (Bayesian) {
      const S* input = this->embedding();
      if (parts_.learner_encoder) {
        parts_.learner_encoder->forward(executor_, parts_.runs(), parts_.view, false);
        input = parts_.learner_encoder->output();
      }
      parts_.learners.front().forward(executor_, parts_.runs(), parts_.view, read(pass), parts_.learner_scratch,
                                      input);
      parts_.posteriors.front().infer(executor_, parts_.batch.runs, raw(0, 1));
    }
  }

  /// X̃_l = dropout(X_l),  X_1 = H;  T, S from learners that read X̃_l, or drawn from Q(T, S | X̃_l) or Q(T, S | H);
  /// X_{l+1} = layer_l(X̃_l; T, S). Returns X_{L+1}.
  [[nodiscard]] const S* diffuse(const Pass& pass, bool drop) {
    const Index size = parts_.shape.size();
    const S *const h = this->embedding(), *x = h;
    const bool spread = pass.copies > 1 && !drop;
    const Items copies{spread ? size : 0, pass.instances(),
                       detail::CopyToInstances<S>{h, size, pass.copies, parts_.spread.data()}};
    const auto dropped = dropout_part(drop, pass, 0, h, parts_.layers.front().dropped_input(), pass.copies);
    if (parts_.learns_per_layer()) {
      executor_.launch_together(copies, dropped);
    } else if constexpr (Bayesian) {
      executor_.launch_together(copies, dropped, parts_.posteriors.front().draw(parts_.runs(), pass));
    }
    if (spread) x = parts_.spread.data();
    for (std::size_t l = 0; l < parts_.layers.size(); ++l) {
      auto& layer = parts_.layers[l];
      const bool last = l + 1 == parts_.layers.size(), normed = !parts_.norms.empty();
      if (drop) x = layer.dropped_input();
      if (parts_.learns_per_layer()) learn(pass, l, x);
      S* next = drop && !last ? parts_.layers[l + 1].dropped_input() : nullptr;
      layer.forward(call(pass), x, drop, normed ? nullptr : next);
      x = layer.output();
      if (!normed) continue;
      parts_.norms[l].forward(executor_, parts_.runs(), pass, parts_.view, x, static_cast<std::uint32_t>(l) + 1,
                              next);
      x = parts_.norms[l].output();
    }
    return x;
  }

  /// The maps of layer l from what its learners read.
  void learn(const Pass& pass, std::size_t l, const S* x) {
    parts_.learners[l].forward(executor_, parts_.runs(), parts_.view, pass, parts_.learner_scratch, x);
    if constexpr (Bayesian) {
      parts_.posteriors[l].infer(executor_, pass.instances(), raw(l, pass.copies));
      executor_.launch_together(parts_.posteriors[l].draw(parts_.runs(), pass));
    } else {
      executor_.launch(2 * parts_.shape.nodes, pass.instances(),
                       detail::PredictNodeMaps<D, S>{raw(l, pass.copies), parts_.layers[l].maps()});
    }
  }

  /// Computes X̄_l, T̄ and S̄ for l = L … 1 from X̄_{L+1}, then H̄ and the derivatives of the learners' encoder.
  template <class Products>
  S* diffuse_backward(const Pass& pass, bool closed_form, bool drop, const Products& of_output) {
    S* x_bar = parts_.x_bar.data();
    detail::LayerProducts<S> pending{};  // of the layer above: they share the first launch of this one
    for (std::size_t l = parts_.layers.size(); l-- > 0;) {
      auto& layer = parts_.layers[l];
      const bool last = l + 1 == parts_.layers.size();
      if (!parts_.norms.empty()) parts_.norms[l].backward(executor_, pass, parts_.view, x_bar);
      auto products = of_output;
      if (!last) products.items = 0;
      const auto run = [&](const auto& end) {
        layer.backward(call(pass), x_bar, end, products, pending.left, pending.right);
      };
      if constexpr (Bayesian) {
        run(parts_.posteriors[parts_.learns_per_layer() ? l : 0].end(static_cast<Index>(l)));
        if (parts_.learns_per_layer()) backward_posterior(pass, l, closed_form, x_bar, true);
      } else {
        run(detail::PredictionGradient<D, S>{raw(l, pass.copies)});
        parts_.learners[l].backward(executor_, parts_.runs(), parts_.view, pass, parts_.learner_scratch, x_bar,
                                    true);
      }
      executor_.launch_together(dropout_part(drop, pass, l, x_bar, x_bar));
      pending = layer.products(call(pass));
    }
    const bool spread = pass.copies > 1;
    S* bar = spread ? parts_.embedding_bar.data() : x_bar;
    const Items copies{spread ? parts_.shape.size() : 0, parts_.batch.runs,
                       detail::AddCopies<S>{x_bar, parts_.shape.size(), pass.copies, bar}};
    executor_.launch_together(copies, pending.left, pending.right);
    if constexpr (Bayesian) {
      const bool apart = parts_.learner_encoder.has_value();
      S* read_bar = apart ? parts_.learner_bar.data() : bar;
      if (!parts_.learns_per_layer()) backward_posterior(pass, 0, closed_form, read_bar, !apart);
      if (apart) parts_.learner_encoder->backward(executor_, parts_.view, read_bar);
    }
    return bar;
  }

  /// Computes the derivative of the input of a pair of learners from the derivatives of their maps. \param add  to
  /// x_bar
  void backward_posterior(const Pass& pass, std::size_t learner, bool closed_form, S* x_bar,
                          bool add) requires Bayesian {
    parts_.posteriors[learner].backward(executor_, parts_.runs(), pass, closed_form,
                                        1 / static_cast<double>(parts_.kl_count));
    parts_.learners[learner].backward(executor_, parts_.runs(), parts_.view, read(pass), parts_.learner_scratch,
                                      x_bar, add);
  }

  void sum_more_gradients() {
    if (!parts_.learner_encoder) return;
    executor_.launch_together(parts_.learner_encoder->gradient(parts_.view));
  }
};

}  // namespace sheafnn::batch
