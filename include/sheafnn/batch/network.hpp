/// \file
/// BatchNetwork: the networks of a batch of trainings on one graph, in the memory of an executor. Forward and
/// backward passes of all of them are one sequence of launches, without a look at their results, so that it can be
/// recorded once and replayed (on the host, one network: bsnn/network.hpp, which has the formulas).
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "sheafnn/bsnn/model.hpp"
#include "sheafnn/bsnn/options.hpp"
#include "sheafnn/batch/diffusion_layer.hpp"
#include "sheafnn/batch/embedding_kernels.hpp"
#include "sheafnn/batch/encoder.hpp"
#include "sheafnn/batch/output.hpp"
#include "sheafnn/batch/posterior.hpp"
#include "sheafnn/batch/second_linear.hpp"

namespace sheafnn::batch {

/// See the file comment. Neither copied nor moved: recordings hold addresses of its arrays.
template <class Executor, class Model>
class BatchNetwork {
 public:
  using Family = typename Model::Family;
  using S = typename Model::Scalar;

  /// \param model    architecture of all runs; its parameters are not read
  /// \param dropout  may the runs have dropout?
  /// \throws std::invalid_argument  features or labels that do not fit; and what the executor throws without
  ///                                memory
  BatchNetwork(Executor& executor, const Model& model, const Graph& graph, const NodeFeatures& features,
               const NodeTargetLists& targets, const BatchSize& batch, bool dropout = true)
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
    if constexpr (is_learned<Family>) {
      for (const SheafLearnerLayout& learner : layout_.learners) {
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
    output_.emplace(executor, layout_.output_weight, layout_.output_bias, p, targets, n, h, options_.classes,
                    batch, sums_);
    if constexpr (sampled) {
      posterior_.emplace(executor, view, batch.runs, model.posterior());
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
  [[nodiscard]] const ColumnTree<Executor, S>& kl() const noexcept {
    if constexpr (sampled) {
      return posterior_->kl();
    } else {
      return no_kl_;
    }
  }
  [[nodiscard]] Index pairs() const noexcept { return graph_.view().pairs(); }

  /// Explicit noise instead of the streams': arc rows of all sheaves of all copies (see SheafNoise), for every
  /// run.
  void set_noise(std::span<const S> noise) { noise_ = Array<Executor, S>(executor_, "noise", noise); }

  /// Enqueues a training pass: losses, and gradient() of every run.
  ///
  /// \param input_dropout, dropout  does any run drop features, hidden features?
  /// \param beside  parts that share the first launch: they may read parameters and what the last pass gave
  template <class... Beside>
  void train_pass(bool input_dropout, bool dropout, KlEstimator estimator, const Beside&... beside) {
    const bool closed_form = uses_closed_form<typename Model::Posterior>(estimator);
    Pass pass{batch_.runs, samples(batch_.training_copies), true, 0};
    encode(input_dropout || dropout, beside...);
    forward(pass, dropout, closed_form);
    output_->loss(executor_, runs_.data(), pass, view_);
    backward(pass, closed_form, dropout);
    sum_gradients(sampled && !closed_form);
  }

  /// Enqueues forward passes without dropout: `total` samples, as many side by side as there is room for, and
  /// their mean probabilities. After each of the passes comes after(pass).
  template <class After>
  void evaluate(Index total, const After& after) {
    encode(false);
    const Index count = samples(total);
    for (Index begin = 0; begin < count;) {
      const Pass pass{batch_.runs, std::min(batch_.copies, count - begin), false,
                      static_cast<std::uint32_t>(begin)};
      forward(pass, false, false);
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
  struct Nothing {};
  template <class Q>
  struct SourceOf {
    using type = BatchPosterior<Executor, Q, S>;
  };
  static constexpr bool sampled = Model::bayesian && is_learned<Family>;
  using Source = typename std::conditional_t<sampled, SourceOf<typename Model::Posterior>,
                                             std::type_identity<Nothing>>::type;
  static constexpr bool sheaf_per_layer = !Model::bayesian && is_learned<Family>;

  [[nodiscard]] SheafRange range(Index first, Index count) const { return {sheaf_count_, first, count}; }
  [[nodiscard]] SheafRange layer_range(Index layer) const { return range(std::min(layer, sheaf_count_ - 1), 1); }

  /// Embeddings and, for Bayesian models, the posterior.
  ///
  /// \param beside  parts that share the first launch
  template <class... Beside>
  void encode(bool drop, const Beside&... beside) {
    const Run* runs = runs_.data();
    encoder_->begin(drop);
    const auto transposes = right_.transpose(view_);
    const auto entries = encoder_->drop_entries(runs);
    const auto segments = encoder_->row_segments(view_);
    const auto nodes = encoder_->nodes(runs, view_);
    if constexpr (sampled) {
      BatchSheafLearner<Executor, S>& learner = learners_.front();
      if (sheaf_encoder_) {
        // It has no dropout, and is one launch ahead of the other encoder.
        sheaf_encoder_->begin(false);
        executor_.launch_together(transposes, learner.assemble(view_), entries,
                                  sheaf_encoder_->row_segments(view_), beside...);
        executor_.launch_together(segments, sheaf_encoder_->nodes(runs, view_));
        posterior_->infer(executor_, view_, learner, sheaf_encoder_->output(), nodes);
        embed();
        return;
      }
      executor_.launch_together(transposes, learner.assemble(view_), entries, beside...);
    } else {
      executor_.launch_together(transposes, entries, beside...);
    }
    executor_.launch_together(segments);
    executor_.launch_together(nodes);
    embed();
    if constexpr (sampled) posterior_->infer(executor_, view_, learners_.front(), embedding_);
  }
  /// What follows the encoder: its second linear layer, if there is one.
  void embed() {
    embedding_ = encoder_->output();
    if (!second_) return;
    second_->forward(executor_, view_, embedding_);
    embedding_ = second_->output();
  }

  /// Features through a layer's dropout, or, when Add, derivatives through it and added; nothing unless `drop`.
  ///
  /// \param copies  instances that share `in`
  template <bool Add = false>
  [[nodiscard]] Items<ApplyDropout<S, Add>> dropout_part(bool drop, const Pass& pass, Purpose purpose,
                                                         std::size_t layer, const S* in, S* out,
                                                         Index copies = 1) const {
    return {drop ? dropout_blocks(shape_.size()) : 0,
            pass.instances(),
            {runs_.data(), pass, purpose, static_cast<std::uint32_t>(layer), in, shape_.size(), out, copies}};
  }

  /// All layers and the logits, without bias.
  ///
  /// \param kl  also the sum of the posterior's KL
  void forward(const Pass& pass, bool drop, bool kl) {
    const Index size = shape_.size();
    const bool spread = pass.copies > 1;
    const S* x = spread ? spread_.data() : embedding_;
    const Items copies{spread ? size : 0, pass.instances(),
                       CopyToInstances<S>{embedding_, size, pass.copies, spread_.data()}};
    const auto dropped = dropout_part(drop, pass, Purpose::layer_dropout, 0, embedding_,
                                      layers_.front().dropped_input(), pass.copies);
    if constexpr (sampled) {
      const auto maps = posterior_->maps(runs_.data(), pass, sheaf_count_, noise_.data());
      sheaf_.build(executor_, pass, range(0, sheaf_count_), maps, learners_.front().edge_weight(), copies, dropped,
                   posterior_->begin_kl(kl));
      posterior_->finish_kl(executor_, kl);
    } else if constexpr (!is_learned<Family>) {
      sheaf_.build(executor_, pass, range(0, sheaf_count_), FixedMaps<Family, S>{}, nullptr, copies, dropped);
    } else {
      executor_.launch_together(copies, dropped, learners_.front().assemble(view_));
    }
    for (std::size_t l = 0; l < layers_.size(); ++l) {
      if constexpr (sheaf_per_layer) {
        if (static_cast<Index>(l) < sheaf_count_) build_mean_sheaf(pass, l, x, drop);
      }
      S* next = drop && l + 1 < layers_.size() ? layers_[l + 1].dropped_input() : nullptr;
      layers_[l].forward(executor_, runs_.data(), pass, view_, right_, sheaf_, layer_range(static_cast<Index>(l)),
                         x, drop, next, scratch_);
      x = layers_[l].output();
    }
    output_->forward(executor_, pass, view_, x);
  }

  /// Maps of layer l from dropout(x), for deterministic models; no dropout at the first layer, whose learner has
  /// its first step behind it.
  void build_mean_sheaf(const Pass& pass, std::size_t l, const S* x, bool drop) {
    BatchSheafLearner<Executor, S>& learner = learners_[l];
    const S* z = x;
    if (l > 0) {
      S* dropped = drop ? learner_input_[l - 1].data() : nullptr;
      executor_.launch_together(dropout_part(drop, pass, Purpose::learner_dropout, l, x, dropped),
                                learner.assemble(view_));
      if (drop) z = dropped;
    }
    learner.project(executor_, z);
    executor_.launch_together(learner.project_pairs());
    learner.finish_hidden(executor_, view_);
    sheaf_.build(executor_, pass, range(static_cast<Index>(l), 1),
                 MeanMaps<Family, S>{learner.raw(), {options_.parametrisation}}, learner.edge_weight());
  }

  void backward(const Pass& pass, bool closed_form, bool drop) {
    output_->backward(executor_, pass, view_, x_bar_.data());
    const auto products = output_->weight_products(pass, view_);
    LayerProducts<S> pending{};  // of the layer behind this one: they share its first launch
    for (std::size_t l = layers_.size(); l-- > 0;) {
      const Index layer = static_cast<Index>(l);
      const bool last = l + 1 == layers_.size(), shared = !last && layer + 1 >= sheaf_count_;
      const auto run = [&](const auto&... ready) {
        layers_[l].backward(executor_, runs_.data(), pass, view_, sheaf_, layer_range(layer), shared,
                            x_bar_.data(), scratch_, ready...);
      };
      if (last) {
        run(products);
      } else {
        run(pending.left, pending.right);
      }
      pending = layers_[l].products(pass, view_, scratch_);
      if constexpr (sheaf_per_layer) {
        if (layer < sheaf_count_) backward_mean_sheaf(pass, l, drop && l > 0, std::exchange(pending, {}));
      }
    }
    const bool spread = pass.copies > 1;
    S* bar = spread ? embedding_bar_.data() : x_bar_.data();
    const Items copies{spread ? shape_.size() : 0, batch_.runs,
                       AddCopies<S>{x_bar_.data(), shape_.size(), pass.copies, bar}};
    if constexpr (sampled) {
      executor_.launch_together(sheaf_.backward_nodes(pass, range(0, sheaf_count_)), copies, pending.left,
                                pending.right);
      backward_posterior(pass, closed_form, bar);
    } else {
      executor_.launch_together(copies);
      backward_encoder(*encoder_, backward_second(bar), pending.left, pending.right);
    }
  }

  /// \param drop  what the learner read had gone through its dropout
  void backward_mean_sheaf(const Pass& pass, std::size_t l, bool drop, const LayerProducts<S>& ready) {
    const SheafRange one = range(static_cast<Index>(l), 1);
    BatchSheafLearner<Executor, S>& learner = learners_[l];
    executor_.launch_together(sheaf_.backward_nodes(pass, one), ready.left, ready.right);
    executor_.launch(graph_.view().edges, batch_.runs,
                     BackwardMeanEdges<Family, S>{graph_.view(), one, sheaf_.view(), sheaf_.gradient(),
                                                  learner.raw(), learner.raw_bar(), {options_.parametrisation},
                                                  learner.edge_weight(), learner.edge_factor(),
                                                  learner.edge_logit_bar()});
    S* z_bar = drop ? scratch_.z_bar.data() : x_bar_.data();
    learner.backward(executor_, view_, z_bar, !drop);
    executor_.launch_together(learner.first_products(view_),
                              dropout_part<true>(drop, pass, Purpose::learner_dropout, l, z_bar, x_bar_.data()));
  }

  /// \param bar  derivative of the embeddings
  void backward_posterior(const Pass& pass, bool closed_form, S* bar)
    requires sampled
  {
    BatchSheafLearner<Executor, S>& learner = learners_.front();
    const auto edges =
        posterior_->backward(runs_.data(), pass, sheaf_count_, sheaf_, learner, closed_form, noise_.data());
    if (sheaf_encoder_) {
      // Two encoders: the first is one launch ahead of the sheaf's.
      S *z_bar = scratch_.z_bar.data(), *first_bar = backward_second(bar);
      executor_.launch_together(edges, encoder_->before_activation(runs_.data(), first_bar));
      learner.backward(executor_, view_, z_bar, false, encoder_->column_products(first_bar),
                       encoder_->row_products(view_, first_bar));
      backward_encoder(*sheaf_encoder_, z_bar, learner.first_products(view_));
    } else {
      executor_.launch_together(edges);
      learner.backward(executor_, view_, bar, true);
      backward_encoder(*encoder_, backward_second(bar), learner.first_products(view_));
    }
  }

  /// Through the encoder's second linear layer, if there is one. \returns where the derivative of its input is
  S* backward_second(S* bar) {
    if (!second_) return bar;
    second_->backward(executor_, view_, bar, scratch_.r_bar.data());
    return scratch_.r_bar.data();
  }
  /// Through an encoder, but for its gradient().
  ///
  /// \param ready  parts that share the first launch
  template <class... Ready>
  void backward_encoder(BatchEncoder<Executor, S>& encoder, S* bar, const Ready&... ready) {
    executor_.launch_together(encoder.before_activation(runs_.data(), bar), ready...);
    executor_.launch_together(encoder.column_products(bar), encoder.row_products(view_, bar));
  }
  /// From partial sums to gradients.
  ///
  /// \param kl  also the sum of the posterior's KL
  void sum_gradients(bool kl) {
    const Teams sums{sums_.items(), batch_.runs, most_lanes,
                     SumGradients<S>{view_, ranges_.data(), static_cast<int>(ranges_.size())}};
    if constexpr (sampled) {
      const auto kl_sums = posterior_->begin_kl(kl);
      if (sheaf_encoder_) {
        executor_.launch_together(sums, encoder_->gradient(view_), sheaf_encoder_->gradient(view_), kl_sums);
      } else {
        executor_.launch_together(sums, encoder_->gradient(view_), kl_sums);
      }
      posterior_->finish_kl(executor_, kl);
    } else {
      executor_.launch_together(sums, encoder_->gradient(view_));
    }
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
  std::optional<Source> posterior_;  ///< of models that sample
  ColumnTree<Executor, S> no_kl_;  ///< of models that do not
  Array<Executor, S> noise_, spread_;
  std::vector<Array<Executor, S>> learner_input_;  ///< of layers 1, 2, … after dropout
  Array<Executor, S> x_bar_, embedding_bar_;
  LayerScratch<Executor, S> scratch_;
  Array<Executor, S> arena_;
  Array<Executor, PartialSum> ranges_;
  ParameterView<S> view_;
  const S* embedding_ = nullptr;
};

}  // namespace sheafnn::batch
