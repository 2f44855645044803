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
#include "sheafnn/batch/output.hpp"
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

/// Neither copied nor moved: recordings hold addresses of its arrays.
template <class Executor, int D, bool Bayesian, class S>
struct CooperativeNetworkParts {
  using Model = CooperativeModel<D, Bayesian, S>;
  using Common = CooperativeArrays<Executor, S>;

  /// See BatchNetwork. Unchecked: the size of the batch.
  CooperativeNetworkParts(Executor& executor, const Model& model, std::shared_ptr<Common> shared,
                          const NodeTargetLists& targets, const BatchSize& size, bool dropout)
      : common(std::move(shared)),
        options(model.options()),
        batch(size),
        parameter_count(model.parameters().size()) {
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
      kl_count = std::max<Index>(1, read.training_copies) * sets * 2 * n;
      kl_tree = ColumnTree<Executor, S>(executor, batch.runs, kl_count, 1);
    }
    const S *out = arcs.out.degree, *in = arcs.in.degree;
    NodeMapView<D, S> maps{
        n, {out, in}, {out, options.in_degree_diagonal ? in : out}, options.conformal, map.data()};
    for (Index l = 0; l < options.layers; ++l, maps.rows += map_size) {
      const std::size_t i = static_cast<std::size_t>(l);
      if constexpr (Bayesian) {
        if (l < sets) {
          posteriors.emplace_back(executor, maps, l, options.layers / sets, shared_learners, batch,
                                  kl.data() + l * 2 * n, sets * 2 * n);
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
    // Now that all layers have reserved their partial sums.
    arena = array("partial sums", batch.trains() ? batch.runs * sums.arena() : 0);
    ranges = Array<Executor, PartialSum>(executor, "partial sums", sums.ranges());
    view = {common->parameters.data(), common->gradient.data(), parameter_count, arena.data(), sums.arena()};
  }
  CooperativeNetworkParts(const CooperativeNetworkParts&) = delete;
  CooperativeNetworkParts& operator=(const CooperativeNetworkParts&) = delete;

  [[nodiscard]] const Run* runs() const noexcept { return common->runs.data(); }
  [[nodiscard]] const S* kl_of_pairs() const noexcept { return kl.data(); }
  /// Do the learners of every layer read its features? Otherwise one pair reads X_1, or an encoder's output, for all.
  [[nodiscard]] bool learns_per_layer() const noexcept { return !Bayesian || options.layer_learners; }

  std::shared_ptr<Common> common;
  CooperativeOptions options;
  BatchSize batch;
  Index parameter_count;
  FeatureShape<S> shape;
  PartialSums sums;
  std::optional<BatchActivatedEncoder<Executor, S>> encoder, learner_encoder;
  std::vector<BatchNodeLearner<Executor, S>> learners;  ///< one pair per layer, or one for all layers
  NodeLearnerScratch<Executor, S> learner_scratch;
  Array<Executor, S> map;                                      ///< of all layers
  std::vector<BatchNodePosterior<Executor, D, S>> posteriors;  ///< of Bayesian models, one per pair of learners
  Array<Executor, S> kl;                                       ///< of every distribution, run by run
  Index kl_count = 0;                                          ///< of a run in a training pass
  ColumnTree<Executor, S> kl_tree;                             ///< empty of models that do not sample
  std::vector<BatchCooperativeLayer<Executor, D, S>> layers;
  std::vector<BatchFeatureNorm<Executor, S>> norms;  ///< of all layers, or empty
  BatchHiddenReadout<Executor, S> hidden_readout;
  std::optional<BatchOutput<Executor, S>> output;
  RightTransposes<Executor, S> right;
  Array<Executor, S> spread;  ///< embeddings, copied for each instance
  Array<Executor, S> x_bar, embedding_bar, learner_bar;
  CooperativeScratch<Executor, S> scratch;
  Array<Executor, S> arena;
  Array<Executor, PartialSum> ranges;
  ParameterView<S> view;
};

}  // namespace sheafnn::batch::detail
