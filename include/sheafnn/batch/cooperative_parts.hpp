/// \file
/// CooperativeNetworkParts: what the BatchNetwork of cooperative models consists of, in the memory of an executor (for one
/// network: bsnn/cooperative_parts.hpp).
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "sheafnn/batch/activated_encoder.hpp"
#include "sheafnn/batch/cooperative_layer.hpp"
#include "sheafnn/batch/embedding_kernels.hpp"
#include "sheafnn/batch/feature_norm.hpp"
#include "sheafnn/batch/hidden_readout.hpp"
#include "sheafnn/batch/network_of_parts.hpp"
#include "sheafnn/batch/node_learner.hpp"
#include "sheafnn/batch/node_posterior.hpp"
#include "sheafnn/bsnn/cooperative_model.hpp"

namespace sheafnn::batch::detail {

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
