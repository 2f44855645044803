/// \file
/// ConvolutionNetworkParts: what the BatchNetwork of convolutions on given sheaves consists of, in the memory of an executor
/// (for one network bsnn/convolution_steps.hpp).
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "sheafnn/batch/activated_encoder.hpp"
#include "sheafnn/batch/convolution_layer.hpp"
#include "sheafnn/batch/network_of_parts.hpp"
#include "sheafnn/batch/posterior.hpp"
#include "sheafnn/batch/sparse_product.hpp"
#include "sheafnn/bsnn/convolution_model.hpp"
#include "sheafnn/bsnn/seen_features.hpp"

namespace sheafnn::batch::detail {

/// The features of a node as d rows, one for each stalk coordinate, with the same entries in the same order. Unchecked: d
/// divides the number of columns.
[[nodiscard]] inline NodeFeatures rows_of_coordinates(const NodeFeatures& features, Index d) {
  const Index columns = features.columns() / d;
  std::vector<Index> offsets = {0};
  std::vector<std::int32_t> column_of;
  for (Index u = 0; u < features.rows(); ++u) {
    Index k = offsets.back();
    for (Index i = 0; i < d; ++i) {
      for (; k < features.offsets()[static_cast<std::size_t>(u) + 1]; ++k) {
        const Index column = features.column_of()[static_cast<std::size_t>(k)] - i * columns;
        if (column >= columns) break;
        column_of.push_back(static_cast<std::int32_t>(column));
      }
      offsets.push_back(k);
    }
  }
  return NodeFeatures::from_csr(std::move(offsets), std::move(column_of),
                                {features.values().begin(), features.values().end()}, columns);
}

/// What networks of the same models on the same graph have in common.
template <class Executor, class Model>
struct ConvolutionArrays : NetworkArrays<Executor, Model> {
  using S = typename Model::Scalar;

  ConvolutionArrays(Executor& executor, const Model& model, const Graph& host_graph, const NodeFeatures& features,
                    Index run_count)
      : NetworkArrays<Executor, Model>(executor, model, host_graph, features, run_count) {
    if (model.options().encoder) return;
    const NodeFeatures seen = this->plan.apply(features);
    rows.emplace(executor, rows_of_coordinates(seen, Model::stalk_dimension));
    if (model.learner().outputs() == 0) return;
    std::vector<S> values(static_cast<std::size_t>(seen.rows() * seen.columns()));
    sheafnn::detail::write_dense(seen, values.data());
    dense = Array<Executor, S>(executor, "features", values);
  }

  std::optional<InputFeatures<Executor, S>> rows;  ///< of stalk coordinates, without an encoder
  Array<Executor, S> dense;                        ///< n × p, which a learner reads without an encoder
};

/// What the first layer of all runs begins with: X_1 = act(dropout_in(X) W₁ᵀ + b₁), or dropout_in(X) Bᵀ without an encoder.
template <class Executor, class S>
class BatchConvolutionStart {
 public:
  /// A start with an encoder.
  explicit BatchConvolutionStart(BatchActivatedEncoder<Executor, S> encoder) : encoder_(std::move(encoder)) {}
  /// A start without an encoder. \param size  size of the product, per run
  BatchConvolutionStart(Executor& executor, BatchSparseProduct<Executor, S> product, Index runs, Index size)
      : product_(std::move(product)), output_(executor, "embeddings", runs * size) {}

  [[nodiscard]] const S* output() const noexcept { return encoder_ ? encoder_->output() : output_.data(); }
  void forward(Executor& executor, const Run* runs, const ParameterView<S>& parameters, bool drop) {
    if (encoder_) {
      encoder_->forward(executor, runs, parameters, drop);
    } else {
      product_->forward(executor, runs, parameters, drop, output_.data());
    }
  }
  /// Partial sums of the gradients, except in gradient(). \param bar  derivative of output(), overwritten
  void backward(Executor& executor, const ParameterView<S>& parameters, S* bar) {
    if (encoder_) {
      encoder_->backward(executor, parameters, bar);
    } else {
      executor.launch_together(product_->column_products(bar));
    }
  }
  [[nodiscard]] Items<SegmentSums<S>> gradient(const ParameterView<S>& parameters) const {
    return encoder_ ? encoder_->gradient(parameters) : product_->gradient(parameters);
  }

 private:
  std::optional<BatchActivatedEncoder<Executor, S>> encoder_;
  std::optional<BatchSparseProduct<Executor, S>> product_;
  Array<Executor, S> output_;
};

/// The layers, posterior and arrays of a batch of networks of convolutions.
template <class Executor, class ModelType>
struct ConvolutionNetworkParts
    : PartsOfNetwork<Executor, typename ModelType::Scalar, ConvolutionArrays<Executor, ModelType>> {
  using Base = PartsOfNetwork<Executor, typename ModelType::Scalar, ConvolutionArrays<Executor, ModelType>>;
  using Base::common, Base::batch, Base::sums, Base::output, Base::x_bar;
  using Model = ModelType;
  using Family = typename Model::Family;
  using S = typename Model::Scalar;
  using typename Base::Common;
  static constexpr bool sampled = Model::bayesian;

  /// See BatchNetwork. Unchecked: the size of the batch.
  ConvolutionNetworkParts(Executor& executor, const Model& model, std::shared_ptr<Common> shared,
                          const NodeTargetLists& targets, const BatchSize& size, bool dropout)
      : Base(model, std::move(shared), size),
        options(model.options()),
        sheaf_count(sampled ? model.sheaf_count() : common->given.count()) {
    const GraphView<S> graph = common->graph.view();
    const Index n = graph.nodes, d = Model::stalk_dimension;
    detail::check(targets, n, options.classes);
    const layers::ParameterSet<S>& p = model.parameters();
    const ConvolutionWeights<layers::ParameterSlot>& at = model.layout();
    const auto array = [&](Index count) { return Array<Executor, S>(executor, "layers", count); };
    if (options.encoder) {
      encoder.emplace(BatchActivatedEncoder<Executor, S>(executor, common->input, d * options.widths.front(),
                                                         options.activation, at.encoder, p, batch, dropout, sums));
    } else {
      encoder.emplace(executor,
                      BatchSparseProduct<Executor, S>(executor, *common->rows, options.widths[1],
                                                      p.info(at.layers.front().right).offset, batch, dropout),
                      batch.runs, n * d * options.widths[1]);
    }
    start_size = n * d * options.widths[options.encoder ? 0 : 1];
    for (std::size_t l = 0; l < at.layers.size(); ++l) {
      layers.emplace_back(executor, graph, l, l == 0 && !options.encoder,
                          sheafnn::detail::convolution_of(options, static_cast<Index>(l)), at.layers[l], p, batch,
                          dropout, sums);
    }
    sheaf = BatchSheaf<Executor, Family, S>(executor, graph, (sampled ? batch.instances() : 1) * sheaf_count,
                                            sampled ? batch.training_instances() * sheaf_count : 0,
                                            options.normalisation, layers::LayerReads{});
    if constexpr (sampled) {
      learner.emplace(executor, graph, model.learner(), at.learners.front(), p, batch.without_copies(), sums,
                      common->given.labels());
      if (!options.encoder) learner->share_input();
      posterior.emplace(executor, graph, batch.runs, common->given.draws(), common->given.centre(),
                        common->given.edge_weight());
      this->count_kl(executor, graph.pairs());
    } else {
      common->given.build(executor, sheaf);
    }
    output.emplace(executor, at.output, p, targets, n, d * options.widths.back(), options.classes, batch, sums);
    const Index widest =
        d * *std::max_element(options.widths.begin() + (options.encoder ? 0 : 1), options.widths.end());
    x_bar = array(batch.training_instances() * n * widest);
    if (batch.training_copies > 1) start_bar = array(batch.runs * start_size);
    scratch =
        LayerScratch<Executor, S>(executor, batch.training_instances() * n * model.hidden_width(), 1, false, false,
                                  false, false, batch.instances() * graph.walk_rows() * model.hidden_width());
    this->end(executor);
  }

  [[nodiscard]] const S* kl_of_pairs() const noexcept { return posterior->kl_of_pairs(); }
  /// Sheaves [first, first + count) of every instance.
  [[nodiscard]] SheafRange sheaves_at(Index first, Index count = 1) const {
    return {sampled ? sheaf_count : 0, first, count};
  }
  /// What the learner reads.
  [[nodiscard]] const S* learner_input() const noexcept {
    return options.encoder ? encoder->output() : common->dense.data();
  }

  ConvolutionOptions options;
  Index sheaf_count;
  std::optional<BatchConvolutionStart<Executor, S>> encoder;
  Index start_size = 0;  ///< size of its output, per run
  std::vector<BatchConvolution<Executor, Family, S>> layers;
  BatchSheaf<Executor, Family, S> sheaf;
  std::optional<BatchSheafLearner<Executor, S>> learner;  ///< this and the next: of Bayesian models
  std::optional<typename PosteriorOf<Executor, Model, sampled>::type> posterior;
  Array<Executor, S> start_bar;
  LayerScratch<Executor, S> scratch;
};

/// The network's passes around these parts.
template <class Executor, class Model>
using ConvolutionNetworkBase = NetworkOfParts<BatchNetwork<Executor, Model>, Executor, Model,
                                              ConvolutionNetworkParts<Executor, Model>>;

}  // namespace sheafnn::batch::detail
