/// \file
/// BatchNetwork of cooperative models, CSNN and BCSNN (for one network bsnn/cooperative_network.hpp).
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <memory>
#include <utility>

#include "sheafnn/batch/cooperative_parts.hpp"

namespace sheafnn::batch {

/// See the file comment; it has the interface of batch/network.hpp. Neither copied nor moved: recordings hold addresses of
/// its arrays.
template <class Executor, int D, bool Bayesian, class Scalar>
class BatchNetwork<Executor, CooperativeModel<D, Bayesian, Scalar>> {
 public:
  using Model = CooperativeModel<D, Bayesian, Scalar>;
  using S = Scalar;

  /// \param model    architecture of all runs; its parameters are not read
  /// \param dropout  may the runs have dropout?
  /// \throws std::invalid_argument  an option that the batch engine does not have (require_batch_options()); features,
  ///                                labels, roles or class weights that do not fit, a size below 1; as Array
  BatchNetwork(Executor& executor, const Model& model, const Graph& graph, const NodeFeatures& features,
               const NodeTargetLists& targets, const BatchSize& batch, bool dropout = true)
      : executor_(executor),
        parts_(executor, model, common(executor, model, graph, features, batch.checked().runs), targets, batch,
               dropout) {}
  /// A network of the same models on the same graph that only evaluates; see batch/network.hpp.
  ///
  /// \param copies  samples that are computed at the same time, at least 1
  /// \throws std::invalid_argument  targets that do not fit. Unchecked: copies, and that `other` has the same model
  BatchNetwork(const BatchNetwork& other, const Model& model, const NodeTargetLists& targets, Index copies)
      : executor_(other.executor_),
        parts_(executor_, model, other.parts_.common, targets, {other.parts_.batch.runs, 0, copies}, false) {}

  [[nodiscard]] Index parameter_count() const noexcept { return parts_.parameter_count; }
  /// The treatment of the features: the model's plan, or the plan that was made for them.
  [[nodiscard]] const FeaturePlan& feature_plan() const noexcept { return parts_.common->plan; }
  /// Parameters and gradients, laid out like a model's, run by run.
  [[nodiscard]] Array<Executor, S>& parameters() noexcept { return parts_.common->parameters; }
  [[nodiscard]] Array<Executor, S>& gradient() noexcept { return parts_.common->gradient; }
  [[nodiscard]] Array<Executor, Run>& runs() noexcept { return parts_.common->runs; }
  /// Log-probabilities, the loss without its KL term, and what an evaluation gives.
  [[nodiscard]] const detail::BatchOutput<Executor, S>& output() const noexcept { return *parts_.output; }
  /// KL of all distributions; empty for models without.
  [[nodiscard]] const detail::ColumnTree<Executor, S>& kl() const noexcept { return parts_.kl_tree; }
  /// Distributions that the KL term is the mean over: two per node, of every layer and sample where these have their own.
  [[nodiscard]] Index pairs() const noexcept { return parts_.kl_count; }

  /// Enqueues a training pass: losses, and gradient() of every run.
  ///
  /// \param input_dropout, dropout  does any run drop features, hidden features?
  /// \throws std::invalid_argument  an estimator that the posterior has not, or a network that only evaluates. Unchecked: the
  ///                                runs, which BatchTrainer checks
  void train_pass(bool input_dropout, bool dropout, KlEstimator estimator) {
    require(parts_.batch.trains(), "training_copies", parts_.batch.training_copies, "this network only evaluates");
    const bool closed_form = uses_closed_form<typename Model::Posterior>(estimator);
    const Pass pass{parts_.batch.runs, samples(parts_.batch.training_copies), true, 0};
    encode(pass, input_dropout);
    forward(pass, dropout);
    parts_.output->loss(executor_, parts_.runs(), pass, parts_.view);
    backward(pass, closed_form, dropout);
    sum_gradients();
  }

  /// Enqueues forward passes without dropout: `total` samples, as many at a time as fit, and their mean probabilities. After
  /// each of the passes comes after(pass).
  ///
  /// \param behind  epochs by which the evaluated one lies behind the runs' counters
  /// \throws std::invalid_argument  total not between 1 and 32768
  template <std::invocable<const Pass&> After>
  void evaluate(Index total, const After& after, std::uint32_t behind = 0) {
    require_between("samples", total, 1, 32768);
    const Index count = samples(total);
    encode({.runs = parts_.batch.runs}, false);
    parts_.output->evaluate(
        executor_, parts_.runs(), parts_.view, parts_.batch, count, behind,
        [&](const Pass& pass) { forward(pass, false); }, after);
  }
  /// As above, and nothing after the passes.
  void evaluate(Index total, std::uint32_t behind = 0) {
    const auto nothing = [](const Pass&) {};
    evaluate(total, nothing, behind);
  }

  /// How many samples are drawn: one where nothing is random. Takes any number.
  [[nodiscard]] static constexpr Index samples(Index requested) noexcept { return Bayesian ? requested : 1; }

 private:
  using Parts = detail::CooperativeNetworkParts<Executor, D, Bayesian, S>;
  using Common = typename Parts::Common;

  [[nodiscard]] static std::shared_ptr<Common> common(Executor& executor, const Model& model, const Graph& graph,
                                                      const NodeFeatures& features, Index runs) {
    require_batch_options(model.options());
    return std::make_shared<Common>(executor, model, graph, features, runs);
  }
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
    return parts_.learns_per_layer() ? pass : Pass{pass.runs, 1, pass.training, 0, pass.behind};
  }

  /// H = act(dropout_in(X) W₁ᵀ + b₁) and, where one pair of learners serves all layers, Q(T, S | H).
  void encode(const Pass& pass, bool drop) {
    executor_.launch_together(parts_.right.transpose(parts_.view));
    parts_.encoder->forward(executor_, parts_.runs(), parts_.view, drop);
    if (parts_.learns_per_layer()) return;
    if constexpr (Bayesian) {
      const S* input = parts_.encoder->output();
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
  /// X_{l+1} = layer_l(X̃_l; T, S);  the logits without bias.
  void forward(const Pass& pass, bool drop) {
    const Index size = parts_.shape.size();
    const S *const h = parts_.encoder->output(), *x = h;
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
    parts_.output->forward(executor_, pass, parts_.view,
                           parts_.hidden_readout.forward(executor_, pass, parts_.view, x));
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

  /// Computes X̄_l, T̄ and S̄ for l = L … 1 from the derivative of the logits, then H̄ and the derivatives of the
  /// encoders' weights.
  void backward(const Pass& pass, bool closed_form, bool drop) {
    S* x_bar = parts_.x_bar.data();
    parts_.output->backward(executor_, pass, parts_.view, parts_.hidden_readout.output_bar(x_bar));
    parts_.hidden_readout.backward(executor_, pass, parts_.view, x_bar);
    detail::LayerProducts<S> pending{};  // of the layer above: they share the first launch of this one
    for (std::size_t l = parts_.layers.size(); l-- > 0;) {
      auto& layer = parts_.layers[l];
      const bool last = l + 1 == parts_.layers.size();
      if (!parts_.norms.empty()) parts_.norms[l].backward(executor_, pass, parts_.view, x_bar);
      auto products = parts_.output->weight_products(pass, parts_.view);
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
    parts_.encoder->backward(executor_, parts_.view, bar);
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

  /// From partial sums to gradients, and from KL per distribution to its sum.
  void sum_gradients() {
    const Teams sums{parts_.sums.items(), parts_.batch.runs, max_lanes,
                     detail::SumGradients<S>{parts_.view, parts_.ranges.data(),
                                             static_cast<int>(parts_.ranges.size())}};
    if constexpr (Bayesian) {
      executor_.launch_together(sums, parts_.encoder->gradient(parts_.view),
                                parts_.kl_tree.begin(parts_.kl.data()));
      parts_.kl_tree.finish(executor_);
      if (parts_.learner_encoder) executor_.launch_together(parts_.learner_encoder->gradient(parts_.view));
    } else {
      executor_.launch_together(sums, parts_.encoder->gradient(parts_.view));
    }
  }

  Executor& executor_;
  Parts parts_;
};

}  // namespace sheafnn::batch
