/// \file
/// BatchNetwork: the networks of a batch of trainings on one graph, in the memory of an executor. Forward and backward
/// passes of all of them are one sequence of launches, without a look at their results, so that it can be recorded once
/// and replayed (on the host, one network: bsnn/network.hpp, which has the formulas).
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sheafnn/bsnn/model.hpp"
#include "sheafnn/bsnn/options.hpp"
#include "sheafnn/cuda/diffusion_layer.hpp"
#include "sheafnn/cuda/embedding_kernels.hpp"
#include "sheafnn/cuda/encoder.hpp"
#include "sheafnn/cuda/output.hpp"
#include "sheafnn/cuda/second_linear.hpp"
#include "sheafnn/cuda/sheaf_learner.hpp"

namespace sheafnn::cuda {

/// See the file comment. Neither copied nor moved: recordings hold addresses of its arrays.
template <class Executor, class Model>
class BatchNetwork {
 public:
  using Family = typename Model::Family;
  using S = typename Model::Scalar;

  /// \param model    architecture of all runs; its parameters are not read
  /// \param dropout  may the runs have dropout?
  /// \param labels   of all nodes
  /// \param roles    roles of the nodes, one row per split (NodeRole bits)
  /// \throws std::invalid_argument  features or labels that do not fit; and what the executor throws without memory
  BatchNetwork(Executor& executor, const Model& model, const Graph& graph, const NodeFeatures& features,
               std::span<const std::int32_t> labels, std::span<const std::uint8_t> roles, const BatchSize& batch,
               bool dropout = true)
      : executor_(executor),
        options_(model.options()),
        layout_(model.layout()),
        batch_(batch),
        parameter_count_(model.parameters().size()),
        graph_(executor, graph),
        input_(executor, detail::fitting_features(model, graph, features)),
        parameters_(executor, "parameters", batch.runs * parameter_count_),
        gradient_(executor, "gradients", batch.runs * parameter_count_),
        runs_(executor, "runs", batch.runs) {
    const ParameterSet<S>& p = model.parameters();
    const GraphView<S> view = graph_.view();
    shape_ = {graph.node_count(), model.coordinates(), options_.channels, {}};
    int filter = 0;
    if (options_.add_lp) shape_.filter_sign[filter++] = S(1);
    if (options_.add_hp) shape_.filter_sign[filter++] = S(-1);
    sheaf_count_ = model.sheaf_count();
    encoder_.emplace(executor, input_, view.degree, layout_.encoder, p, batch.runs, dropout, sums_);
    if (layout_.sheaf_encoder.weight >= 0) {
      sheaf_encoder_.emplace(executor, input_, view.degree, layout_.sheaf_encoder, p, batch.runs, false, sums_);
    }
    const Index n = shape_.nodes, h = shape_.row(), size = shape_.size();
    const auto array = [&](const char* what, Index count) { return Array<Executor, S>(executor, what, count); };
    if (layout_.second_weight >= 0) {
      second_.emplace(executor, layout_.second_weight, layout_.second_bias, p, n, h, batch.runs, sums_);
    }
    if constexpr (Family::kind != MapKind::fixed) {
      for (const SheafLearnerShape& learner : layout_.learners) {
        learners_.emplace_back(executor, view, learner, p, batch.runs, sums_);
      }
    }
    sheaf_ =
        BatchSheaf<Executor, Family, S>(executor, view, batch.instances() * sheaf_count_, options_.normalisation);
    for (std::size_t l = 0; l < layout_.layers.size(); ++l) {
      layers_.emplace_back(executor, view, shape_, layout_.layers[l], p, static_cast<std::uint32_t>(l), batch,
                           dropout, sums_);
    }
    right_ = RightTransposes<Executor, S>(executor, layout_.layers, p, options_.channels, batch.runs);
    output_.emplace(executor, layout_.output_weight, layout_.output_bias, p, labels, roles, n, h, options_.classes,
                    batch, sums_);
    if constexpr (sampled) {
      posterior_ = array("posterior", batch.runs * view.pairs() * Q::parameter_size);
      kl_ = array("posterior", batch.runs * view.pairs());
      kl_tree_ = ColumnTree<Executor, S>(executor, batch.runs, view.pairs(), 1);
    }
    if (batch.copies > 1) spread_ = array("embeddings", batch.instances() * size);
    if (!Model::bayesian && dropout) {
      for (Index s = 1; s < sheaf_count_; ++s) learner_input_.push_back(array("embeddings", batch.runs * size));
    }
    const Index training = batch.training_instances();
    x_bar_ = array("layers", training * size);
    if (batch.training_copies > 1) embedding_bar_ = array("layers", batch.runs * size);
    for (Array<Executor, S>* a :
         {&scratch_.z_bar, &scratch_.r_bar, &scratch_.w_bar, &scratch_.y_bar, &scratch_.p_bar}) {
      *a = array("layers", training * size);
    }
    scratch_.segments = array("layers", batch.instances() * view.segments * h);
    arena_ = array("partial sums", batch.runs * sums_.arena());
    ranges_ = Array<Executor, PartialSum>(executor, "partial sums", sums_.ranges());
    view_ = {parameters_.data(), gradient_.data(), parameter_count_, arena_.data(), sums_.arena()};
  }
  BatchNetwork(const BatchNetwork&) = delete;
  BatchNetwork& operator=(const BatchNetwork&) = delete;

  [[nodiscard]] Index parameter_count() const noexcept { return parameter_count_; }
  /// Parameters and gradients, laid out like a model's, run by run.
  [[nodiscard]] Array<Executor, S>& parameters() noexcept { return parameters_; }
  [[nodiscard]] Array<Executor, S>& gradient() noexcept { return gradient_; }
  [[nodiscard]] Array<Executor, Run>& runs() noexcept { return runs_; }
  /// Log-probabilities, the loss without its KL term, and what an evaluation gives.
  [[nodiscard]] const BatchOutput<Executor, S>& output() const noexcept { return *output_; }
  /// KL over all incident pairs; nothing is left of it for models without.
  [[nodiscard]] const ColumnTree<Executor, S>& kl() const noexcept { return kl_tree_; }
  [[nodiscard]] Index pairs() const noexcept { return graph_.view().pairs(); }

  /// Explicit noise instead of the streams': arc rows of all sheaves of all copies (see SheafNoise), for every run.
  void set_noise(std::span<const S> noise) { noise_ = Array<Executor, S>(executor_, "noise", noise); }

  /// Enqueues a training pass: losses, and gradient() of every run.
  ///
  /// \param input_dropout, dropout  does any run drop features, hidden features?
  void train_pass(bool input_dropout, bool dropout, KlEstimator estimator) {
    const bool closed_form = estimator == KlEstimator::closed_form;
    Pass pass{batch_.runs, samples(batch_.training_copies), true, 0};
    encode(input_dropout || dropout);
    if constexpr (sampled) {
      if (closed_form) kl_tree_.run(executor_, kl_.data(), false);
    }
    forward(pass, dropout);
    output_->loss(executor_, runs_.data(), pass, view_);
    backward(pass, closed_form, dropout);
    if constexpr (sampled) {
      if (!closed_form) kl_tree_.run(executor_, kl_.data(), false);
    }
    executor_.launch_teams(sums_.items(), batch_.runs, most_lanes,
                           SumGradients<S>{view_, ranges_.data(), static_cast<int>(ranges_.size())});
  }

  /// Enqueues forward passes without dropout: `total` samples, as many side by side as there is room for, and their mean
  /// probabilities. After each of the passes comes after(pass).
  template <class After>
  void evaluate(Index total, const After& after) {
    encode(false);
    const Index count = samples(total);
    for (Index begin = 0; begin < count;) {
      const Pass pass{batch_.runs, std::min(batch_.copies, count - begin), false,
                      static_cast<std::uint32_t>(begin)};
      forward(pass, false);
      output_->average(executor_, runs_.data(), pass, view_, count);
      after(pass);
      begin += pass.copies;
    }
  }
  void evaluate(Index total) {
    evaluate(total, [](const Pass&) {});
  }

  /// Posterior samples that make sense: one when nothing is random.
  [[nodiscard]] static constexpr Index samples(Index asked) noexcept { return sampled ? asked : 1; }

 private:
  static constexpr bool sampled = Model::bayesian && Family::kind != MapKind::fixed;
  using Q = Posterior<Family>;

  [[nodiscard]] SheafRange range(Index first, Index count) const { return {sheaf_count_, first, count}; }
  [[nodiscard]] SheafRange layer_range(Index layer) const { return range(std::min(layer, sheaf_count_ - 1), 1); }
  [[nodiscard]] PairArray<S> posterior() noexcept {
    const Index pairs = graph_.view().pairs();
    return {posterior_.data(), pairs, 1, pairs * Q::parameter_size};
  }

  /// Embeddings and, for Bayesian models, the posterior.
  void encode(bool drop) {
    right_.run(executor_, view_);
    encoder_->forward(executor_, runs_.data(), view_, drop);
    embedding_ = encoder_->output();
    if (second_) {
      second_->forward(executor_, view_, embedding_);
      embedding_ = second_->output();
    }
    if constexpr (sampled) {
      if (sheaf_encoder_) sheaf_encoder_->forward(executor_, runs_.data(), view_, false);
      BatchSheafLearner<Executor, S>& learner = learners_.front();
      learner.forward(executor_, view_, sheaf_encoder_ ? sheaf_encoder_->output() : embedding_);
      executor_.launch(pairs(), batch_.runs,
                       ActivatePairs<Family, S>{learner.raw(), posterior(), options_.parametrisation, kl_.data(),
                                                pairs()});
    }
  }

  /// Features through a layer's dropout, or, when Add, derivatives through it and added.
  template <bool Add = false>
  void apply_dropout(const Pass& pass, Purpose purpose, std::size_t layer, const S* in, S* out) {
    executor_.launch(dropout_blocks(shape_.size()), pass.instances(),
                     ApplyDropout<S, Add>{runs_.data(), pass, purpose, static_cast<std::uint32_t>(layer), in,
                                          shape_.size(), out});
  }

  /// All layers and the logits, without bias.
  void forward(const Pass& pass, bool drop) {
    const Index size = shape_.size();
    if constexpr (sampled) {
      const SampledMaps<Family, S> maps{graph_.view(), runs_.data(),  pass,
                                        posterior(),   noise_.data(), sheaf_count_};
      sheaf_.build(executor_, pass, range(0, sheaf_count_), maps, learners_.front().edge_weight());
    } else if constexpr (Family::kind == MapKind::fixed) {
      sheaf_.build(executor_, pass, range(0, sheaf_count_), FixedMaps<Family, S>{}, nullptr);
    }
    const S* x = embedding_;
    if (pass.copies > 1) {
      executor_.launch(size, pass.instances(), CopyToInstances<S>{embedding_, size, pass.copies, spread_.data()});
      x = spread_.data();
    }
    if (drop) apply_dropout(pass, Purpose::layer_dropout, 0, x, layers_.front().dropped_input());
    for (std::size_t l = 0; l < layers_.size(); ++l) {
      if constexpr (!Model::bayesian && Family::kind != MapKind::fixed) {
        if (static_cast<Index>(l) < sheaf_count_) build_mean_sheaf(pass, l, x, drop);
      }
      S* next = drop && l + 1 < layers_.size() ? layers_[l + 1].dropped_input() : nullptr;
      layers_[l].forward(executor_, runs_.data(), pass, view_, right_, sheaf_, layer_range(static_cast<Index>(l)),
                         x, drop, next, scratch_);
      x = layers_[l].output();
    }
    output_->forward(executor_, pass, view_, x);
  }

  /// Maps of layer l from dropout(x), for deterministic models; no dropout at the first layer.
  void build_mean_sheaf(const Pass& pass, std::size_t l, const S* x, bool drop) {
    const S* z = x;
    if (drop && l > 0) {
      z = learner_input_[l - 1].data();
      apply_dropout(pass, Purpose::learner_dropout, l, x, learner_input_[l - 1].data());
    }
    BatchSheafLearner<Executor, S>& learner = learners_[l];
    learner.forward(executor_, view_, z);
    sheaf_.build(executor_, pass, range(static_cast<Index>(l), 1),
                 MeanMaps<Family, S>{learner.raw(), options_.parametrisation}, learner.edge_weight());
  }

  void backward(const Pass& pass, bool closed_form, bool drop) {
    output_->backward(executor_, pass, view_, x_bar_.data());
    for (std::size_t l = layers_.size(); l-- > 0;) {
      const Index layer = static_cast<Index>(l);
      const bool shared = layer + 1 < static_cast<Index>(layers_.size()) && layer + 1 >= sheaf_count_;
      layers_[l].backward(executor_, runs_.data(), pass, view_, sheaf_, layer_range(layer), shared, x_bar_.data(),
                          scratch_);
      if constexpr (!Model::bayesian && Family::kind != MapKind::fixed) {
        if (layer < sheaf_count_) backward_mean_sheaf(pass, l, drop && l > 0);
      }
    }
    S* embedding_bar = x_bar_.data();
    if (pass.copies > 1) {
      embedding_bar = embedding_bar_.data();
      executor_.launch(shape_.size(), batch_.runs,
                       AddCopies<S>{x_bar_.data(), shape_.size(), pass.copies, embedding_bar});
    }
    if constexpr (sampled) backward_posterior(pass, closed_form, embedding_bar);
    backward_encoder(embedding_bar);
  }

  /// \param drop  what the learner read had gone through its dropout
  void backward_mean_sheaf(const Pass& pass, std::size_t l, bool drop) {
    const SheafRange one = range(static_cast<Index>(l), 1);
    BatchSheafLearner<Executor, S>& learner = learners_[l];
    sheaf_.backward_nodes(executor_, pass, one);
    executor_.launch(graph_.view().edges, batch_.runs,
                     BackwardMeanEdges<Family, S>{graph_.view(), one, sheaf_.view(), sheaf_.gradient(),
                                                  learner.raw(), learner.raw_bar(), options_.parametrisation,
                                                  learner.edge_weight(), learner.edge_factor(),
                                                  learner.edge_logit_bar()});
    S* z_bar = drop ? scratch_.z_bar.data() : x_bar_.data();
    learner.backward(executor_, view_, z_bar, !drop);
    if (drop) apply_dropout<true>(pass, Purpose::learner_dropout, l, z_bar, x_bar_.data());
  }

  void backward_posterior(const Pass& pass, bool closed_form, S* embedding_bar) {
    BatchSheafLearner<Executor, S>& learner = learners_.front();
    sheaf_.backward_nodes(executor_, pass, range(0, sheaf_count_));
    executor_.launch(graph_.view().edges, batch_.runs,
                     BackwardSampledEdges<Family, S>{graph_.view(), sheaf_.view(), sheaf_.gradient(), runs_.data(),
                                                     pass.copies, sheaf_count_, learner.raw(), posterior(),
                                                     learner.raw_bar(), options_.parametrisation,
                                                     learner.edge_weight(), learner.edge_factor(),
                                                     learner.edge_logit_bar(), closed_form, kl_.data()});
    S* z_bar = sheaf_encoder_ ? scratch_.z_bar.data() : embedding_bar;
    learner.backward(executor_, view_, z_bar, !sheaf_encoder_);
    if (sheaf_encoder_) sheaf_encoder_->backward(executor_, runs_.data(), view_, z_bar);
  }

  void backward_encoder(S* bar) {
    if (second_) {
      second_->backward(executor_, view_, bar, scratch_.z_bar.data());
      bar = scratch_.z_bar.data();
    }
    encoder_->backward(executor_, runs_.data(), view_, bar);
  }

  Executor& executor_;
  ModelOptions options_;
  ModelLayout layout_;
  BatchSize batch_;
  Index parameter_count_;
  DeviceGraph<Executor, S> graph_;
  InputFeatures<Executor, S> input_;
  Array<Executor, S> parameters_, gradient_;
  Array<Executor, Run> runs_;
  FeatureShape<S> shape_;
  Index sheaf_count_ = 1;
  PartialSums sums_;
  std::optional<BatchEncoder<Executor, S>> encoder_, sheaf_encoder_;
  std::optional<BatchSecondLinear<Executor, S>> second_;
  std::optional<BatchOutput<Executor, S>> output_;
  std::vector<BatchSheafLearner<Executor, S>> learners_;
  BatchSheaf<Executor, Family, S> sheaf_;
  std::vector<BatchDiffusionLayer<Executor, Family, S>> layers_;
  RightTransposes<Executor, S> right_;
  Array<Executor, S> posterior_, kl_, noise_, spread_;
  std::vector<Array<Executor, S>> learner_input_;  ///< of layers 1, 2, … after dropout
  Array<Executor, S> x_bar_, embedding_bar_;
  ColumnTree<Executor, S> kl_tree_;
  LayerScratch<Executor, S> scratch_;
  Array<Executor, S> arena_;
  Array<Executor, PartialSum> ranges_;
  ParameterView<S> view_;
  const S* embedding_ = nullptr;
};

}  // namespace sheafnn::cuda
