/// \file
/// NetworkOfParts: what all BatchNetworks have in common: the interface around the passes of one composition.
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>

#include "sheafnn/batch/parts_of_network.hpp"
#include "sheafnn/bsnn/model.hpp"

namespace sheafnn::batch {

/// The networks of a batch, one partial specialisation for each kind of model. SheafModel's is in network.hpp; the
/// interface is what BatchTrainer and predict() ask of one, NetworkOfParts.
template <class Executor, class Model>
class BatchNetwork;

/// Models whose networks can be a batch: models with a BatchNetwork, which must have been included. Others are trained
/// one by one, by sheafnn::train.
template <class Model, class Executor>
concept BatchModel = requires {
  sizeof(BatchNetwork<Executor, Model>);
};

}  // namespace sheafnn::batch

namespace sheafnn::batch::detail {

/// Neither copied nor moved: recordings hold addresses of its arrays.
///
/// \tparam Network    derived from it, with encode(pass, input_drop, drop), a pass over what the copies of a run share, and
///                    diffuse(pass, drop), which returns X_{L+1}. Also diffuse_backward(pass, closed_form, drop, products),
///                    from X̄_{L+1} in x_bar to the derivative of the embeddings, whose place it returns. Products are a
///                    part that shares a launch. Perhaps sum_more_gradients() of what encoder and partial sums lack, and
///                    others of the protected members below, which it hides. diffuse() may take a third argument: whether
///                    it also sums up the posterior's KL
/// \tparam PartsType  derived from PartsOfNetwork, with `encoder`, and kl_of_pairs() of models that sample
template <class Network, class Executor, class ModelType, class PartsType>
class NetworkOfParts {
 public:
  using Model = ModelType;
  using S = typename Model::Scalar;
  using Parts = PartsType;
  using Common = typename Parts::Common;

  /// \param model    architecture of all runs, with the maps that are given; its parameters are not read
  /// \param dropout  may the runs have dropout?
  /// \throws std::invalid_argument  given maps over another graph; features, labels, roles or class weights that do not fit,
  ///                                a size below 1; as Array
  /// \throws std::runtime_error     eigenpairs of bundles that do not converge
  NetworkOfParts(Executor& executor, const Model& model, const GraphOf<Model>& graph, const NodeFeatures& features,
                 const NodeTargetLists& targets, const BatchSize& batch, bool dropout = true)
      : executor_(executor),
        parts_(executor, model, std::make_shared<Common>(executor, model, graph, features, batch.checked().runs),
               targets, batch, dropout) {}
  /// A network of the same models on the same graph that only evaluates. It reads the parameters and runs of `other`, which
  /// may train at the same time: what it computes is its own.
  ///
  /// \param copies  samples that are computed at the same time, at least 1
  /// \throws std::invalid_argument  targets that do not fit. Unchecked: copies, and that `other` has the same model
  NetworkOfParts(const NetworkOfParts& other, const Model& model, const NodeTargetLists& targets, Index copies)
      : executor_(other.executor_),
        parts_(executor_, model, other.parts_.common, targets, {other.parts_.batch.runs, 0, copies}, false) {}
  NetworkOfParts(const NetworkOfParts&) = delete;
  NetworkOfParts& operator=(const NetworkOfParts&) = delete;

  [[nodiscard]] Index parameter_count() const noexcept { return parts_.parameter_count; }
  /// The treatment of the features: the model's plan, or the plan that was made for them.
  [[nodiscard]] const FeaturePlan& feature_plan() const noexcept { return parts_.common->plan; }
  /// Parameters and gradients, laid out like a model's, run by run.
  [[nodiscard]] Array<Executor, S>& parameters() noexcept { return parts_.common->parameters; }
  [[nodiscard]] Array<Executor, S>& gradient() noexcept { return parts_.common->gradient; }
  [[nodiscard]] Array<Executor, Run>& runs() noexcept { return parts_.common->runs; }
  /// Log-probabilities, the loss without its KL term, and what an evaluation gives.
  [[nodiscard]] const BatchOutput<Executor, S>& output() const noexcept { return *parts_.output; }
  /// KL of all distributions; empty for models without.
  [[nodiscard]] const ColumnTree<Executor, S>& kl() const noexcept { return parts_.kl_sums(); }
  /// Distributions that the KL term is the mean over: all of a run in a training pass.
  [[nodiscard]] Index pairs() const noexcept { return parts_.pairs(); }

  /// Enqueues a training pass: losses, and gradient() of every run.
  ///
  /// \param input_dropout, dropout  does any run drop features, hidden features?
  /// \throws std::invalid_argument  an estimator that the posterior does not have, or a network that only evaluates. Unchecked: the
  ///                                runs, which BatchTrainer checks
  void train_pass(bool input_dropout, bool dropout, KlEstimator estimator) {
    require(parts_.batch.trains(), "training_copies", parts_.batch.training_copies, "this network only evaluates");
    const bool closed_form = uses_closed_form<typename Model::Posterior>(estimator);
    const Pass pass{parts_.batch.runs, network().draws_something() ? parts_.batch.training_copies : 1, true, 0};
    network().check_noise(pass.copies);
    const bool drop = dropout && Network::drops;
    network().encode({pass.runs, 1, true, 0}, input_dropout, dropout);
    forward(pass, drop, closed_form);
    parts_.output->loss(executor_, parts_.runs(), pass, parts_.view);
    network().backward(pass, closed_form, drop);
    network().sum_gradients(closed_form);
  }

  /// Enqueues forward passes without dropout: `total` samples, as many at a time as fit, and their mean probabilities. After
  /// each of the passes comes after(pass).
  ///
  /// \param behind  epochs by which the runs' counters are ahead of the evaluated epoch
  /// \throws std::invalid_argument  total not between 1 and 32768
  template <std::invocable<const Pass&> After>
  void evaluate(Index total, const After& after, std::uint32_t behind = 0) {
    require_between("samples", total, 1, 32768);
    const Index count = network().draws_something() ? total : 1;
    network().check_noise(count);
    network().encode({.runs = parts_.batch.runs, .behind = behind}, false, false);
    parts_.output->evaluate(
        executor_, parts_.runs(), parts_.view, parts_.batch, count, behind,
        [&](const Pass& pass) { forward(pass, false, false); }, after);
  }
  /// As above, and nothing after the passes.
  void evaluate(Index total, std::uint32_t behind = 0) {
    const auto nothing = [](const Pass&) {};
    evaluate(total, nothing, behind);
  }

  /// Is anything of a model random, apart from dropout?
  [[nodiscard]] static constexpr bool draws(const Model&) noexcept { return Model::bayesian; }

 protected:
  /// May a pass begin with embeddings from outside? Networks that do hide this.
  static constexpr bool takes_embeddings = false;
  /// Do layers drop anything?
  static constexpr bool drops = true;
  /// Does diffuse() have a third argument, whether it also sums up the posterior's KL?
  static constexpr bool sums_kl_in_passes = false;
  /// What the encoder and the partial sums lack of the gradients.
  static constexpr void sum_more_gradients() noexcept {}
  /// KL terms of variables that layers draw.
  [[nodiscard]] static PartialRows layers_kl() noexcept { return {}; }
  /// Is anything of these networks random, apart from dropout?
  [[nodiscard]] static constexpr bool draws_something() noexcept { return Model::bayesian; }
  /// \throws std::invalid_argument  explicit noise for fewer copies than a pass draws
  static constexpr void check_noise(Index) noexcept {}

  /// X_1 of all runs.
  [[nodiscard]] const S* embedding() const noexcept {
    return outside_ != nullptr ? outside_ : parts_.encoder->output();
  }
  /// X_{L+1}. \param kl  also the sum of the posterior's KL, where diffuse() knows of it
  [[nodiscard]] const S* features(const Pass& pass, bool drop, [[maybe_unused]] bool kl) {
    if constexpr (Network::sums_kl_in_passes) {
      return network().diffuse(pass, drop, kl);
    } else {
      return network().diffuse(pass, drop);
    }
  }
  /// What the output reads: X_{L+1} after the hidden layers of the readout.
  [[nodiscard]] const S* read_out(const Pass& pass, const S* x) {
    if constexpr (hidden_layers) return parts_.hidden_readout.forward(executor_, pass, parts_.view, x);
    return x;
  }
  /// Computes X̄_{L+1}, in x_bar, from the derivative of the logits.
  void read_out_backward(const Pass& pass) {
    S *const x_bar = parts_.x_bar.data(), *read_bar = x_bar;
    if constexpr (hidden_layers) read_bar = parts_.hidden_readout.output_bar(x_bar);
    parts_.output->backward(executor_, pass, parts_.view, read_bar);
    if constexpr (hidden_layers) parts_.hidden_readout.backward(executor_, pass, parts_.view, x_bar);
  }
  /// Computes the partial sums of all gradients from the derivative of the logits.
  void backward(const Pass& pass, bool closed_form, bool drop) {
    read_out_backward(pass);
    S* bar =
        network().diffuse_backward(pass, closed_form, drop, parts_.output->weight_products(pass, parts_.view));
    parts_.encoder->backward(executor_, parts_.view, bar);
  }
  /// Adds up the KL of all distributions.
  void sum_kl() {
    if constexpr (Model::bayesian) {
      executor_.launch_together(parts_.kl_tree.begin(parts_.kl_of_pairs()));
      parts_.kl_tree.finish(executor_);
    }
  }
  /// Adds up partial sums to gradients, and the KL.
  void sum_gradients(bool /*closed_form*/) {
    const auto sums = parts_.partial_sums();
    if constexpr (Model::bayesian) {
      executor_.launch_together(sums, parts_.encoder->gradient(parts_.view),
                                parts_.kl_tree.begin(parts_.kl_of_pairs()));
      parts_.kl_tree.finish(executor_);
    } else {
      executor_.launch_together(sums, parts_.encoder->gradient(parts_.view));
    }
    network().sum_more_gradients();
  }

  Executor& executor_;
  Parts parts_;
  const S* outside_ = nullptr;  ///< embeddings that do not come from the encoder, or null

 private:
  static constexpr bool hidden_layers = requires(Parts & parts) { parts.hidden_readout; };

  [[nodiscard]] Network& network() noexcept { return static_cast<Network&>(*this); }
  /// X_{L+1} and the logits without bias.
  void forward(const Pass& pass, bool drop, bool kl) {
    parts_.output->forward(executor_, pass, parts_.view, read_out(pass, features(pass, drop, kl)));
  }
};

}  // namespace sheafnn::batch::detail
