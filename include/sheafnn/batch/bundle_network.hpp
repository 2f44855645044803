/// \file
/// BatchNetwork of bundle models, Bunn and BayesianBunn (for one network bsnn/bundle_network.hpp). Heat operators are sums of
/// powers: expansions that decompose the Laplacian are refused.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "sheafnn/batch/activated_encoder.hpp"
#include "sheafnn/batch/bundle_kernels.hpp"
#include "sheafnn/batch/bundle_layer.hpp"
#include "sheafnn/batch/bundle_learner.hpp"
#include "sheafnn/batch/feature_norm.hpp"
#include "sheafnn/batch/hidden_readout.hpp"
#include "sheafnn/batch/map_posterior.hpp"
#include "sheafnn/batch/network_of_parts.hpp"
#include "sheafnn/bsnn/bundle_model.hpp"
#include "sheafnn/posterior/cayley.hpp"

namespace sheafnn::batch::detail {

/// A map is the index of a rotation.
template <int D, class S>
struct BundleDistributions {
  using Posterior = CayleyPosterior<SpecialOrthogonal<D>>;
  using Raw = RawBundle<S>;
  static constexpr int raw_size = Posterior::mean_size + Posterior::spread_size, derivative_size = D * D;
  Posterior posterior;
  S unit;
  BundleMapView<D, S> maps;  ///< of the first layer; the other layers' follow
  Raw raw{};

  [[nodiscard]] SHEAFNN_HD Index nodes() const { return maps.shape.nodes; }
  [[nodiscard]] SHEAFNN_HD Index count() const { return nodes(); }
  [[nodiscard]] SHEAFNN_HD Index number_of(Index map) const { return map; }
  [[nodiscard]] SHEAFNN_HD Index address_of(Index map) const { return map; }
  [[nodiscard]] SHEAFNN_HD Index stream_of(Index layer, Index) const { return layer; }

  SHEAFNN_HD void infer(Index map, Index group, S* parameters) const {
    S values[raw_size];
    load_rotation_numbers<D, raw_size>(raw.complete(map, group), unit, values);
    posterior.activate(values, parameters);
  }
  SHEAFNN_HD void infer_backward(Index map, Index group, const S* parameters, const S* sums) const {
    S values[raw_size];
    load_rotation_numbers<D, raw_size>(raw.of(map, group), unit, values);
    S* bar = raw.bar_of(map, group);
    posterior.activate_backward(values, parameters, sums, bar);
    sheafnn::detail::scale_rotation_numbers<D>(unit, bar);
  }
  /// \param place  of the layer and instance
  SHEAFNN_HD void draw(Index place, Index map, const S* parameters, const S* noise) const {
    SquareMatrix<S, D> rotation;
    posterior.sample(parameters, noise, rotation);
    maps.store(place, map, rotation);
  }
  /// \param log_ratio  added to; null: not wanted
  SHEAFNN_HD void draw_backward(Index place, Index map, const S* parameters, const S* derivative, const S& weight,
                                S* sums, S* log_ratio) const {
    const SquareMatrix<S, D> rotation_bar = sheafnn::detail::matrix_of_rows<D>(derivative);
    const SquareMatrix<S, D> rotation = maps.rotation(place, map);
    const S* no_noise = nullptr;
    posterior.sample_backward(parameters, no_noise, rotation, rotation_bar, weight, sums);
    if (log_ratio != nullptr) *log_ratio += posterior.log_ratio(parameters, no_noise, rotation);
  }
};

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

namespace sheafnn::batch {

/// See the file comment; it has the interface of batch/network_of_parts.hpp.
template <class Executor, int D, bool Bayesian, class Scalar>
class BatchNetwork<Executor, BundleModel<D, Bayesian, Scalar>>
    : public detail::NetworkOfParts<BatchNetwork<Executor, BundleModel<D, Bayesian, Scalar>>, Executor,
                                    BundleModel<D, Bayesian, Scalar>,
                                    detail::BundleNetworkParts<Executor, D, Bayesian, Scalar>> {
  using Base = detail::NetworkOfParts<BatchNetwork, Executor, BundleModel<D, Bayesian, Scalar>,
                                      detail::BundleNetworkParts<Executor, D, Bayesian, Scalar>>;
  friend Base;

 public:
  using typename Base::Model;
  using S = Scalar;
  using Base::Base;

 protected:
  using Base::executor_, Base::parts_;

  [[nodiscard]] detail::PassDropout dropout(const Pass& pass, Purpose purpose, Index number, bool drop) const {
    return {parts_.runs(), pass, purpose, number, drop};
  }
  [[nodiscard]] detail::BundleCall<Executor, S> call(const Pass& pass, std::size_t layer, bool drop) {
    const Index l = static_cast<Index>(layer);
    return {executor_,
            pass,
            parts_.view,
            dropout(pass, Purpose::layer_dropout, sheafnn::detail::hidden_dropouts + l, drop),
            dropout(pass, Purpose::layer_dropout, l, drop),
            parts_.scratch};
  }
  [[nodiscard]] auto learner_dropouts(const Pass& pass, std::size_t layer, bool drop) const {
    return [this, pass, layer, drop](Index k) {
      return dropout(pass, Purpose::learner_dropout,
                     static_cast<Index>(layer) + sheafnn::detail::hidden_dropouts * k, drop);
    };
  }
  /// What the learner of a layer, or the only one, predicts. \param copies  of what it reads
  [[nodiscard]] detail::RawBundle<S> raw(std::size_t learner, Index copies) {
    return parts_.learners[learner].raw(parts_.view, parts_.options.bundles, copies, parts_.learner_scratch);
  }
  void learn(const Pass& pass, std::size_t l, const S* x, bool drop) {
    parts_.learners[l].forward(executor_, parts_.view, pass, parts_.learner_scratch,
                               learner_dropouts(pass, l, drop), x);
  }
  void learn_backward(const Pass& pass, std::size_t l, S* x_bar, bool drop) {
    parts_.learners[l].backward(executor_, parts_.view, pass, parts_.learner_scratch,
                                learner_dropouts(pass, l, drop), x_bar);
  }

  /// X_1 = dropout(GELU(dropout_in(X) W₁ᵀ + b₁)) and, of Bayesian models, Q(O | X_1).
  void encode(const Pass& pass, bool input_drop, bool drop) {
    parts_.encoder->forward(executor_, parts_.runs(), parts_.view, input_drop);
    S* x = parts_.encoder->output();
    executor_.launch_together(dropout(pass, Purpose::hidden_dropout, 0, drop).of(x, parts_.size()));
    if constexpr (Bayesian) {
      learn(pass, 0, x, drop);
      parts_.posterior->infer(executor_, pass.runs, raw(0, 1));
    }
  }

  /// O from a learner that reads X_l, or drawn from Q(O | X_1);  X_{l+1} = layer_l(O, X_l). Returns X_{L+1}.
  [[nodiscard]] const S* diffuse(const Pass& pass, bool drop) {
    const S* x = parts_.encoder->output();
    if (pass.copies > 1) {
      executor_.launch(parts_.size(), pass.instances(),
                       detail::CopyToInstances<S>{x, parts_.size(), pass.copies, parts_.spread.data()});
      x = parts_.spread.data();
    }
    if constexpr (Bayesian) executor_.launch_together(parts_.posterior->draw(parts_.runs(), pass));
    for (std::size_t l = 0; l < parts_.layers.size(); ++l) {
      auto& layer = parts_.layers[l];
      if constexpr (!Bayesian) {
        learn(pass, l, x, drop);
        executor_.launch(layer.maps().shape.nodes, pass.instances(),
                         detail::PredictBundle<D, S>{raw(l, pass.copies), layer.maps(), point(), unit()});
      }
      layer.forward(call(pass, l, drop), x);
      x = layer.output();
    }
    if (parts_.norm) {
      parts_.norm->forward(executor_, nullptr, pass, parts_.view, x, 0, nullptr);
      x = parts_.norm->output();
    }
    return x;
  }

  /// Computes X̄_l and Ō for l = L … 1 from X̄_{L+1}, then the derivative of the encoder's output.
  template <class Products>
  S* diffuse_backward(const Pass& pass, [[maybe_unused]] bool closed_form, bool drop, const Products& products) {
    S* x_bar = parts_.x_bar.data();
    executor_.launch_together(products);
    if (parts_.norm) parts_.norm->backward(executor_, pass, parts_.view, x_bar);
    for (std::size_t l = parts_.layers.size(); l-- > 0;) {
      auto& layer = parts_.layers[l];
      if constexpr (Bayesian) {
        layer.backward(call(pass, l, drop), x_bar, parts_.posterior->end(static_cast<Index>(l)));
      } else {
        layer.backward(call(pass, l, drop), x_bar,
                       detail::PredictBundleBackward<D, S>{raw(l, pass.copies), point(), unit()});
        learn_backward(pass, l, x_bar, drop);
      }
    }
    const Pass shared{pass.runs, 1, true, 0};
    S* bar = x_bar;
    if (pass.copies > 1) {
      bar = parts_.embedding_bar.data();
      executor_.launch(parts_.size(), pass.runs, detail::AddCopies<S>{x_bar, parts_.size(), pass.copies, bar});
    }
    if constexpr (Bayesian) {
      parts_.posterior->backward(executor_, parts_.runs(), pass, closed_form,
                                 1 / static_cast<double>(parts_.kl_count));
      learn_backward(shared, 0, bar, drop);
    }
    executor_.launch_together(dropout(shared, Purpose::hidden_dropout, 0, drop).of(bar, parts_.size()));
    return bar;
  }

  [[nodiscard]] PointMap<SpecialOrthogonal<D>> point() const {
    return sheafnn::detail::bundle_point<D>(*parts_.options.parametrisation);
  }
  [[nodiscard]] S unit() const { return sheafnn::detail::bundle_unit<S>(*parts_.options.parametrisation); }
};

}  // namespace sheafnn::batch
