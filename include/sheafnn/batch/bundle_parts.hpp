/// \file
/// BundleNetworkParts: what the BatchNetwork of bundle models consists of, in the memory of an executor. Also which of their
/// options the batch engine has. For one network: bsnn/bundle_steps.hpp.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "sheafnn/batch/activated_encoder.hpp"
#include "sheafnn/batch/bundle_layer.hpp"
#include "sheafnn/batch/bundle_learner.hpp"
#include "sheafnn/batch/bundle_posterior.hpp"
#include "sheafnn/batch/feature_norm.hpp"
#include "sheafnn/batch/hidden_readout.hpp"
#include "sheafnn/batch/network_of_parts.hpp"
#include "sheafnn/bsnn/bundle_model.hpp"

namespace sheafnn::batch::detail {

/// What networks of the same models on the same graph have in common.
template <class Executor, class S>
struct BundleArrays : CommonArrays<Executor, S> {
  template <class Model>
  BundleArrays(Executor& executor, const Model& model, const Graph& host_graph, const NodeFeatures& features,
               Index run_count)
      : CommonArrays<Executor, S>(executor, model, host_graph, features, run_count),
        adjacency(executor, host_graph, model.options().heat()) {}

  BatchAdjacency<Executor, S> adjacency;
};

/// The layers, learners, posterior and arrays of a batch of bundle networks. Shapes: batch/bundle_kernels.hpp.
template <class Executor, int D, bool Bayesian, class S>
struct BundleNetworkParts : PartsOfNetwork<Executor, S, BundleArrays<Executor, S>> {
  using Base = PartsOfNetwork<Executor, S, BundleArrays<Executor, S>>;
  using Base::common, Base::batch, Base::sums, Base::output, Base::x_bar;
  using Model = BundleModel<D, Bayesian, S>;
  using typename Base::Common;

  /// See BatchNetwork. Unchecked: the size of the batch.
  BundleNetworkParts(Executor& executor, const Model& model, std::shared_ptr<Common> shared,
                     const NodeTargetLists& targets, const BatchSize& size, bool dropout)
      : Base(model, std::move(shared), size), options(model.options()), hidden_width(model.hidden_width()) {
    const GraphView<S> graph = common->graph.view();
    const ArcViews<S> arcs{graph, graph};
    const Index n = graph.nodes, h = hidden_width;
    detail::check(targets, n, options.classes);
    const FeatureShape<S> shape{n * options.bundles, D, options.channels, {}};
    require_countable("features of a layer", 2 * n * h);
    require_countable("numbers of the sums of segments", arcs.segments() * h);
    const layers::ParameterSet<S>& p = model.parameters();
    const BundleNetworkWeights<layers::ParameterSlot>& at = model.layout();
    encoder.emplace(executor, common->input, h, Activation::gelu, at.encoder, p, batch, dropout, sums);
    const layers::BundleLearnerOptions learner = model.learner();
    const BatchSize read = Bayesian ? batch.without_copies() : batch;
    for (const auto& weights : at.learners) learners.emplace_back(executor, arcs, weights, learner, p, read, sums);
    learner_scratch = BundleLearnerScratch<Executor, S>(executor, learner, arcs, read);
    const auto array = [&](const char* what, Index count) { return Array<Executor, S>(executor, what, count); };
    BundleMapView<D, S> maps{shape, nullptr};
    const Index map_size = batch.instances() * shape.nodes * BundleMapView<D, S>::row_size;
    map = array("rotations", options.layers * map_size);
    maps.rows = map.data();
    if constexpr (Bayesian) {
      kl = array("posterior", batch.runs * shape.nodes);
      posterior.emplace(executor,
                        BundleDistributions<D, S>{sheafnn::detail::bundle_posterior<D>(*options.parametrisation),
                                                  sheafnn::detail::bundle_unit<S>(*options.parametrisation), maps},
                        0, options.layers, true, batch, kl.data(), shape.nodes);
      this->count_kl(executor, shape.nodes);
    }
    for (const auto& weights : at.layers) {
      layers.emplace_back(executor, graph, common->adjacency, maps, weights, options, p, batch, sums);
      maps.rows += map_size;
    }
    if (options.layer_norm) norm.emplace(executor, at.norm, p, n, h, batch, sums);
    hidden_readout = BatchHiddenReadout<Executor, S>(executor, at.readout, p, n, h, batch, sums);
    output.emplace(executor, at.output, p, targets, n, h, options.classes, batch, sums);
    if (batch.copies > 1) spread = array("embeddings", batch.instances() * n * h);
    x_bar = array("layers", batch.training_instances() * n * h);
    if (batch.training_copies > 1) embedding_bar = array("layers", batch.runs * n * h);
    scratch = BundleScratch<Executor, S>(executor, graph, common->adjacency, h, options, batch);
    this->end(executor);
  }

  [[nodiscard]] const S* kl_of_pairs() const noexcept { return kl.data(); }
  /// The size of X_l of an instance.
  [[nodiscard]] Index size() const noexcept { return common->graph.view().nodes * hidden_width; }

  BundleOptions options;
  Index hidden_width;
  std::optional<BatchActivatedEncoder<Executor, S>> encoder;
  std::vector<BatchBundleLearner<Executor, S>> learners;  ///< one per layer; of Bayesian models one
  BundleLearnerScratch<Executor, S> learner_scratch;
  Array<Executor, S> map;                                         ///< of all layers
  std::optional<BatchMapPosterior<Executor, BundleDistributions<D, S>, S>> posterior;  ///< of Bayesian models
  Array<Executor, S> kl;                                                               ///< of all distributions
  std::vector<BatchBundleLayer<Executor, D, S>> layers;
  std::optional<BatchFeatureNorm<Executor, S>> norm;  ///< before the readout
  BatchHiddenReadout<Executor, S> hidden_readout;
  Array<Executor, S> spread;  ///< embeddings, copied for each instance
  Array<Executor, S> embedding_bar;
  BundleScratch<Executor, S> scratch;
};

}  // namespace sheafnn::batch::detail
