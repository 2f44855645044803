/// \file
/// BatchNetwork: the networks of a batch of trainings on one graph, in an executor's memory (for one: bsnn/network.hpp). All
/// passes, but for flow_control.hpp, are one sequence of launches that does not depend on results: it can be recorded and replayed.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "sheafnn/batch/network_parts.hpp"
#include "sheafnn/batch/network_steps.hpp"
#include "sheafnn/bsnn/options.hpp"

namespace sheafnn::batch {

/// See the file comment. Neither copied nor moved: recordings hold addresses of its arrays.
template <class Executor, detail::LayeredModel<Executor> Model>
class BatchNetwork<Executor, Model> : private detail::BatchNetworkSteps<Executor, Model> {
  using Steps = detail::BatchNetworkSteps<Executor, Model>;
  using Steps::executor_, Steps::parts_, Steps::sampled;

 public:
  using typename Steps::Family, typename Steps::S;

  /// \param model    architecture of all runs; its parameters are not read
  /// \param dropout  may the runs have dropout?
  /// \throws std::invalid_argument  features, labels, roles or class weights that do not fit, a size below 1; as Array
  BatchNetwork(Executor& executor, const Model& model, const GraphOf<Model>& graph, const NodeFeatures& features,
               const NodeTargetLists& targets, const BatchSize& batch, bool dropout = true)
      : Steps(executor, model, std::make_shared<Common>(executor, model, graph, features, batch.checked().runs),
              targets, batch, dropout) {}
  /// A network of the same models on the same graph that only evaluates. It reads the parameters and runs of `other`,
  /// which may train at the same time: what it computes is its own.
  ///
  /// \param copies  samples that are computed at the same time, at least 1
  /// \throws std::invalid_argument  targets that do not fit. Unchecked: copies, and that `other` has this model
  BatchNetwork(const BatchNetwork& other, const Model& model, const NodeTargetLists& targets, Index copies)
      : Steps(other.executor_, model, other.parts_.common, targets, BatchSize{other.parts_.batch.runs, 0, copies},
              false) {}

  [[nodiscard]] Index parameter_count() const noexcept { return parts_.parameter_count; }
  /// What happened to the features: the model's plan, or the one that was made for them.
  [[nodiscard]] const FeaturePlan& feature_plan() const noexcept { return parts_.common->plan; }
  /// Parameters and gradients, laid out like a model's, run by run.
  [[nodiscard]] Array<Executor, S>& parameters() noexcept { return parts_.parameters; }
  [[nodiscard]] Array<Executor, S>& gradient() noexcept { return parts_.gradient; }
  [[nodiscard]] Array<Executor, Run>& runs() noexcept { return parts_.runs; }
  /// Log-probabilities, the loss without its KL term, and what an evaluation gives.
  [[nodiscard]] const detail::BatchOutput<Executor, S>& output() const noexcept { return *parts_.output; }
  /// KL over all incident pairs; empty for models without.
  [[nodiscard]] const detail::ColumnTree<Executor, S>& kl() const noexcept {
    if constexpr (sampled) {
      return parts_.posterior->kl();
    } else {
      return parts_.no_kl;
    }
  }
  /// The KL terms of layers that draw something, the mean over samples; empty without such layers.
  [[nodiscard]] const detail::ColumnTree<Executor, double>& kl_of_layers() const noexcept {
    return parts_.kl_of_layers_tree;
  }
  [[nodiscard]] Index pairs() const noexcept { return parts_.graph.view().pairs(); }

  /// Explicit noise instead of the streams': arc rows of all sheaves of all copies (see Noise), for every
  /// run. None: the streams' again.
  ///
  /// \throws std::invalid_argument  not a whole number of copies
  void set_noise(std::span<const S> noise) {
    const Index size = static_cast<Index>(noise.size()), of_copy = noise_of_copy();
    if (of_copy > 0 ? size % of_copy != 0 : size != 0) {
      throw_invalid_argument("size of noise", size,
                             sheafnn::detail::concat("must be a multiple of ", of_copy,
                                                     ", the numbers of a copy"));
    }
    parts_.noise = Array<Executor, S>(executor_, "noise", noise);
  }

  /// Enqueues a training pass: losses, and gradient() of every run.
  ///
  /// \param input_dropout, dropout  does any run drop features, hidden features?
  /// \throws std::invalid_argument  fewer copies of explicit noise than the pass draws, an estimator that the
  ///                                posterior has not, or a network that only evaluates. Unchecked: the runs, which
  ///                                BatchTrainer checks
  void train_pass(bool input_dropout, bool dropout, KlEstimator estimator) {
    require(parts_.batch.trains(), "training_copies", parts_.batch.training_copies, "this network only evaluates");
    const bool closed_form = uses_closed_form<typename Model::Posterior>(estimator);
    Pass pass{parts_.batch.runs, parts_.draws ? parts_.batch.training_copies : 1, true, 0};
    check_noise(pass.copies);
    this->encode(input_dropout || dropout);
    const bool drop = dropout && Parts::Layer::drops;
    forward(pass, drop, closed_form);
    if (parts_.kl_rows.count() > 0) parts_.kl_of_layers_tree.run(executor_, parts_.kl_of_layers.data(), true);
    parts_.output->loss(executor_, parts_.runs.data(), pass, parts_.view);
    this->backward(pass, closed_form, drop);
    this->sum_gradients(sampled && !closed_form);
  }

  /// Enqueues forward passes without dropout: `total` samples, as many at a time as fit, and their mean
  /// probabilities. After each of the passes comes after(pass).
  ///
  /// \param behind  epochs by which the evaluated one lies behind the runs' counters
  /// \throws std::invalid_argument  total not between 1 and 32768, or more than the copies of explicit noise
  template <std::invocable<const Pass&> After>
  void evaluate(Index total, const After& after, std::uint32_t behind = 0) {
    require_between("samples", total, 1, 32768);
    const Index count = parts_.draws ? total : 1;
    check_noise(count);
    this->encode(false);
    parts_.output->evaluate(
        executor_, parts_.runs.data(), parts_.view, parts_.batch, count, behind,
        [&](const Pass& pass) { forward(pass, false, false); }, after);
  }
  /// As above, and nothing after the passes.
  void evaluate(Index total, std::uint32_t behind = 0) {
    const auto nothing = [](const Pass&) {};
    evaluate(total, nothing, behind);
  }

  /// Is anything of a model random, beside dropout?
  [[nodiscard]] static bool draws(const Model& model) { return Parts::draws_of(model); }

 private:
  using typename Steps::Parts, typename Steps::Common;

  /// Numbers of explicit noise behind the sheaves of a copy; 0 where nothing is random.
  [[nodiscard]] Index noise_of_copy() const {
    if constexpr (sampled) {
      return parts_.sheaf_count * pairs() * Model::Posterior::noise_size;
    } else {
      return 0;
    }
  }
  void check_noise(Index copies) const {
    const Index size = parts_.noise.size();
    if (size == 0 || size >= copies * noise_of_copy()) return;
    throw_invalid_argument("size of noise", size,
                           sheafnn::detail::concat("the pass draws ", copies * noise_of_copy(), " numbers"));
  }

  /// X_{L+1} and the logits without bias. \param kl  also the sum of the posterior's KL
  void forward(const Pass& pass, bool drop, bool kl) {
    const S* x = this->diffuse(pass, drop, kl);
    parts_.output->forward(executor_, pass, parts_.view,
                           parts_.hidden_readout.forward(executor_, pass, parts_.view, x));
  }
};

}  // namespace sheafnn::batch
