/// \file
/// BatchNetwork of convolutions on given sheaves, SheafConvolutions and BayesianSheafConvolutions (for one network
/// bsnn/convolution_network.hpp). The runs of a batch share the given sheaf.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "sheafnn/batch/activated_encoder.hpp"
#include "sheafnn/batch/convolution_layer.hpp"
#include "sheafnn/batch/embedding_kernels.hpp"
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

namespace sheafnn::batch {

/// See the file comment; it has the interface of batch/network_of_parts.hpp.
template <class Executor, RestrictionMapFamily FamilyType, class Posterior, std::floating_point Scalar>
class BatchNetwork<Executor, ConvolutionModel<FamilyType, Posterior, Scalar>>
    : public detail::ConvolutionNetworkBase<Executor, ConvolutionModel<FamilyType, Posterior, Scalar>> {
  using Base = detail::ConvolutionNetworkBase<Executor, ConvolutionModel<FamilyType, Posterior, Scalar>>;
  friend Base;

 public:
  using typename Base::Model;
  using S = Scalar;
  using Base::Base;

 protected:
  using Base::executor_, Base::parts_;
  static constexpr bool sampled = Model::bayesian;

  [[nodiscard]] auto call(const Pass& pass, std::size_t layer, bool drop) {
    const Index sheaf = std::min(static_cast<Index>(layer), parts_.sheaf_count - 1);
    return detail::ConvolutionCall<Executor, FamilyType, S>{executor_,      parts_.runs(),
                                                            pass,           parts_.view,
                                                            parts_.sheaf,   parts_.sheaves_at(sheaf),
                                                            parts_.scratch, drop};
  }

  /// What the first layer begins with and, of Bayesian models, Q(F | X_1).
  void encode(const Pass&, bool input_drop, bool) {
    parts_.encoder->forward(executor_, parts_.runs(), parts_.view, input_drop);
    if constexpr (sampled) {
      executor_.launch_together(parts_.learner->assemble(parts_.view));
      parts_.posterior->infer(executor_, parts_.view, *parts_.learner, parts_.learner_input());
    }
  }

  /// F^l ~ Q(F | X_1), or given;  X_{l+1} = layer_l(X_l; F^l). Returns X_{L+1}.
  [[nodiscard]] const S* diffuse(const Pass& pass, bool drop) {
    if constexpr (sampled) {
      const auto maps = parts_.posterior->maps(parts_.runs(), pass, parts_.sheaf_count, nullptr);
      parts_.sheaf.build(executor_, pass, all_sheaves(), maps, parts_.posterior->edge_weight(*parts_.learner));
    }
    const S* x = parts_.encoder->output();
    for (std::size_t l = 0; l < parts_.layers.size(); ++l) {
      auto& layer = parts_.layers[l];
      layer.forward(call(pass, l, drop), x, l == 0 ? Index{pass.copies} : 1);
      x = layer.output();
    }
    return x;
  }

  /// Computes X̄_l and the derivatives of F^l for l = L … 1 from X̄_{L+1}, then of what the first layer began with and of
  /// Q's parameters.
  template <class Products>
  S* diffuse_backward(const Pass& pass, [[maybe_unused]] bool closed_form, bool drop, const Products& of_output) {
    S* x_bar = parts_.x_bar.data();
    const std::size_t top = parts_.layers.size() - 1;
    for (std::size_t l = top + 1; l-- > 0;) {
      auto products = of_output;
      if (l < top) products.items = 0;
      parts_.layers[l].backward(call(pass, l, drop), x_bar, products);
    }
    S* bar = x_bar;
    if (pass.copies > 1) {
      bar = parts_.start_bar.data();
      executor_.launch(parts_.start_size, pass.runs,
                       detail::AddCopies<S>{x_bar, parts_.start_size, pass.copies, bar});
    }
    if constexpr (sampled) backward_posterior(pass, closed_form, parts_.options.encoder ? bar : nullptr);
    return bar;
  }
  /// \param bar  derivative of the embeddings, which gets what comes through the maps; null: the learner reads features
  void backward_posterior(const Pass& pass, bool closed_form, S* bar) requires sampled {
    executor_.launch_together(parts_.sheaf.backward_nodes(pass, all_sheaves()));
    executor_.launch_together(parts_.posterior->backward(parts_.runs(), pass, parts_.sheaf_count, parts_.sheaf,
                                                         *parts_.learner, closed_form, nullptr));
    parts_.learner->backward(executor_, parts_.view, bar, true);
    executor_.launch_together(parts_.learner->first_products(parts_.view));
  }
  [[nodiscard]] detail::SheafRange all_sheaves() const { return parts_.sheaves_at(0, parts_.sheaf_count); }
};

}  // namespace sheafnn::batch
