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

#include "sheafnn/batch/embedding_kernels.hpp"
#include "sheafnn/batch/network_parts.hpp"
#include "sheafnn/bsnn/options.hpp"

namespace sheafnn::batch {

/// See the file comment. Neither copied nor moved: recordings hold addresses of its arrays.
template <class Executor, detail::LayeredModel<Executor> Model>
class BatchNetwork<Executor, Model> {
 public:
  using Family = typename Model::Family;
  using S = typename Model::Scalar;

  /// \param model    architecture of all runs; its parameters are not read
  /// \param dropout  may the runs have dropout?
  /// \throws std::invalid_argument  features, labels, roles or class weights that do not fit, a size below 1; as Array
  BatchNetwork(Executor& executor, const Model& model, const GraphOf<Model>& graph, const NodeFeatures& features,
               const NodeTargetLists& targets, const BatchSize& batch, bool dropout = true)
      : executor_(executor),
        parts_(executor, model, std::make_shared<Common>(executor, model, graph, features, batch.checked().runs),
               targets, batch, dropout) {}
  /// A network of the same models on the same graph that only evaluates. It reads the parameters and runs of `other`,
  /// which may train at the same time: what it computes is its own.
  ///
  /// \param copies  samples that are computed at the same time, at least 1
  /// \throws std::invalid_argument  targets that do not fit. Unchecked: copies, and that `other` has this model
  BatchNetwork(const BatchNetwork& other, const Model& model, const NodeTargetLists& targets, Index copies)
      : executor_(other.executor_),
        parts_(executor_, model, other.parts_.common, targets, {other.parts_.batch.runs, 0, copies}, false) {}

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
    encode(input_dropout || dropout);
    const bool drop = dropout && Parts::Layer::drops;
    forward(pass, drop, closed_form);
    if (parts_.kl_rows.count() > 0) parts_.kl_of_layers_tree.run(executor_, parts_.kl_of_layers.data(), true);
    parts_.output->loss(executor_, parts_.runs.data(), pass, parts_.view);
    backward(pass, closed_form, drop);
    sum_gradients(sampled && !closed_form);
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
    encode(false);
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
  using Parts = detail::NetworkParts<Executor, Model>;
  using Common = typename Parts::Common;
  static constexpr bool sampled = Parts::sampled, sheaf_per_layer = Parts::sheaf_per_layer;

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

  /// H = encoder(X) and, of Bayesian models, the parameters of Q(F | H).
  void encode(bool drop) {
    const Run* runs = parts_.runs.data();
    parts_.encoder->begin(drop);
    const auto transposes = parts_.right.transpose(parts_.view);
    const auto coefficients = parts_.filter.coefficients(parts_.view);
    const auto entries = parts_.encoder->drop_entries(runs);
    const auto segments = parts_.encoder->row_segments(parts_.view);
    const auto nodes = parts_.encoder->nodes(runs, parts_.view);
    if constexpr (sampled) {
      typename Parts::Learner& learner = parts_.learners.front();
      if (parts_.sheaf_encoder) {
        // It has no dropout, and is one launch ahead of the other encoder.
        parts_.sheaf_encoder->begin(false);
        executor_.launch_together(transposes, coefficients, learner.assemble(parts_.view), entries,
                                  parts_.sheaf_encoder->row_segments(parts_.view));
        executor_.launch_together(segments, parts_.sheaf_encoder->nodes(runs, parts_.view));
        parts_.posterior->infer(executor_, parts_.view, learner, parts_.sheaf_encoder->output(), nodes);
        embed();
        return;
      }
      executor_.launch_together(transposes, coefficients, learner.assemble(parts_.view), entries);
    } else {
      executor_.launch_together(transposes, coefficients, entries);
    }
    executor_.launch_together(segments);
    executor_.launch_together(nodes);
    embed();
    if constexpr (sampled) parts_.posterior->infer(executor_, parts_.view, parts_.learners.front(), embedding_);
  }
  /// What follows the encoder: its second linear layer, if there is one.
  void embed() {
    embedding_ = parts_.encoder->output();
    if (parts_.second) embedding_ = parts_.second->forward(executor_, parts_.view, embedding_);
    start_ = parts_.start ? parts_.start->forward(executor_, embedding_) : embedding_;
  }

  /// Features through a layer's dropout, or, when Add, derivatives through it and added; nothing unless `drop`.
  ///
  /// \param copies  instances that share `in`
  template <bool Add = false>
  [[nodiscard]] Items<detail::ApplyDropout<S, Add>> dropout_part(bool drop, const Pass& pass, Purpose purpose,
                                                                 std::size_t layer, const S* in, S* out,
                                                                 Index copies = 1) const {
    return detail::dropout_part<Add>(drop, parts_.runs.data(), pass, purpose, layer, in, parts_.shape.size(), out,
                                     copies);
  }

  /// F^l ~ Q(F | H) or maps(X_l);  X_1 = H,  X_{l+1} = diffusion_l(X_l; F^l);  X_{L+1} W_outᵀ, the logits without bias.
  ///
  /// \param kl  also the sum of the posterior's KL
  void forward(const Pass& pass, bool drop, bool kl) {
    const Index size = parts_.shape.size();
    const bool spread = pass.copies > 1;
    const S *const first = spread ? parts_.spread.data() : start_, *x = first;
    const Items copies{spread ? size : 0, pass.instances(),
                       detail::CopyToInstances<S>{start_, size, pass.copies, parts_.spread.data()}};
    const auto dropped = dropout_part(drop, pass, Purpose::layer_dropout, 0, start_,
                                      parts_.layers.front().dropped_input(), pass.copies);
    if constexpr (sampled) {
      const auto maps = parts_.posterior->maps(parts_.runs.data(), pass, parts_.sheaf_count, parts_.noise.data());
      parts_.sheaf.build(executor_, pass, parts_.sheaves_at(0, parts_.sheaf_count), maps, parts_.edge_weight(),
                         copies, dropped, parts_.posterior->begin_kl(kl));
      parts_.posterior->finish_kl(executor_, kl);
    } else if constexpr (Parts::given) {
      executor_.launch_together(copies, dropped);
    } else if constexpr (!sheaf::is_learned<Family>) {
      parts_.sheaf.build(executor_, pass, parts_.sheaves_at(0, parts_.sheaf_count), detail::FixedMaps<Family, S>{},
                         nullptr, copies, dropped);
    } else {
      executor_.launch_together(copies, dropped, parts_.learners.front().assemble(parts_.view));
    }
    bool mixed = false;       // is the layer's mixing done?
    const S* before = first;  // X_{l−1}
    for (std::size_t l = 0; l < parts_.layers.size(); ++l) {
      const Index layer = static_cast<Index>(l);
      if constexpr (sheaf_per_layer) {
        if (layer < parts_.sheaf_count) build_mean_sheaf(pass, l, x, drop);  // F^l = maps(X_l)
      }
      const bool last = l + 1 == parts_.layers.size(), normed = !parts_.norms.empty();
      S* next = drop && !last ? parts_.layers[l + 1].dropped_input() : nullptr;
      const auto call =
          parts_.layer_call(executor_, pass, l, mixed, !last && parts_.adjoins_below(l + 1) ? l + 1 : l, before);
      mixed = parts_.layers[l].with(
          [&](auto& own) { return own.forward(call, x, first, drop, normed ? nullptr : next); });
      before = std::exchange(x, parts_.layers[l].output());  // X_{l+1}
      if (!normed) continue;
      parts_.norms[l].forward(executor_, parts_.runs.data(), pass, parts_.view, x,
                              static_cast<std::uint32_t>(l) + 1, next);
      x = parts_.norms[l].output();
    }
    parts_.output->forward(executor_, pass, parts_.view,
                           parts_.hidden_readout.forward(executor_, pass, parts_.view, x));
  }

  /// F^l = maps(dropout(x)) of deterministic models; none is dropped at l = 0, whose assemble() is launched already.
  void build_mean_sheaf(const Pass& pass, std::size_t l, const S* x, bool drop) {
    typename Parts::Learner& learner = parts_.learners[l];
    const S* z = x;
    if (l > 0) {
      S* dropped = drop ? parts_.learner_input[l - 1].data() : nullptr;
      executor_.launch_together(dropout_part(drop, pass, Purpose::learner_dropout, l, x, dropped),
                                learner.assemble(parts_.view));
      if (drop) z = dropped;
    }
    learner.project(executor_, parts_.view, z, pass.copies);
    executor_.launch_together(learner.project_pairs());
    learner.finish_hidden(executor_, parts_.view);
    const Pass instances{pass.instances()};  // with edge weights of their own
    parts_.sheaf.build(executor_, instances, parts_.sheaves_at(static_cast<Index>(l)),
                       detail::MeanMaps<Family, S>{learner.raw(),
                                                   {*parts_.options.parametrisation,
                                                    *parts_.options.sheaf_activation}},
                       learner.edge_weight());
  }

  /// From the derivative of the logits to X̄_l and F̄^l, l = L … 1, then to H̄, Q's parameters and the encoder's weights.
  void backward(const Pass& pass, bool closed_form, bool drop) {
    parts_.clear_bars(executor_, pass);
    const std::size_t top = parts_.layers.size() - 1;
    auto* const entered = parts_.enters_last_layer() ? parts_.layers[top].diffusion() : nullptr;
    const bool direct = entered != nullptr;
    if (direct) {
      if constexpr (Parts::of_edges) {
        entered->enter(parts_.layer_call(executor_, pass, top, false, top), parts_.output->logits_bar(parts_.view),
                       parts_.x_bar.data());
      }
    } else {
      parts_.output->backward(executor_, pass, parts_.view, parts_.hidden_readout.output_bar(parts_.x_bar.data()));
      parts_.hidden_readout.backward(executor_, pass, parts_.view, parts_.x_bar.data());
    }
    const auto products = parts_.output->weight_products(pass, parts_.view);
    detail::LayerProducts<S> pending{};  // of the next layer: they share the first launch of this one
    for (std::size_t l = parts_.layers.size(); l-- > 0;) {
      const Index layer = static_cast<Index>(l);
      const bool last = l == top, shared = parts_.reads.maps || (!last && layer + 1 >= parts_.sheaf_count);
      if (!parts_.norms.empty()) parts_.norms[l].backward(executor_, pass, parts_.view, parts_.x_bar.data());
      const auto call = parts_.layer_call(executor_, pass, l, last ? direct : parts_.adjoins_below(l + 1),
                                          l > 0 && parts_.adjoins_below(l) ? l - 1 : l);
      const auto run = [&](const auto&... ready) {
        parts_.layers[l].with([&](auto& own) { own.backward(call, shared, parts_.x_bar.data(), ready...); });
      };
      if (last) {
        run(products);
      } else {
        run(pending.left, pending.right);
      }
      pending = parts_.layers[l].products(pass, parts_.view, parts_.scratch);
      parts_.add_before_bar(executor_, pass, l);
      if constexpr (sheaf_per_layer) {
        if (layer < parts_.sheaf_count) {
          backward_mean_sheaf(pass, l, drop && l > 0, pending);
          pending.left.items = pending.right.items = 0;  // they are launched
        }
      }
    }
    parts_.add_first_bar(executor_, pass);
    S* bar = parts_.embedding_bar_of(executor_, pass);
    const Items copies{pass.copies > 1 && !parts_.start ? parts_.shape.size() : 0, parts_.batch.runs,
                       detail::AddCopies<S>{parts_.x_bar.data(), parts_.shape.size(), pass.copies, bar}};
    if constexpr (sampled) {
      executor_.launch_together(parts_.sheaf.backward_nodes(pass, parts_.sheaves_at(0, parts_.sheaf_count)),
                                copies, pending.left, pending.right);
      backward_posterior(pass, closed_form, bar);
    } else {
      executor_.launch_together(copies);
      backward_encoder(*parts_.encoder, backward_second(bar), pending.left, pending.right);
    }
  }

  /// \param drop  what the learner read had gone through its dropout
  void backward_mean_sheaf(const Pass& pass, std::size_t l, bool drop, const detail::LayerProducts<S>& ready) {
    const detail::SheafRange one = parts_.sheaves_at(static_cast<Index>(l));
    typename Parts::Learner& learner = parts_.learners[l];
    executor_.launch_together(parts_.sheaf.backward_nodes(pass, one), ready.left, ready.right);
    executor_.launch(pairs(), pass.instances(),
                     detail::BackwardMeanEdges<Family, S, typename Parts::View>{parts_.graph.view(),
                                                                                one,
                                                                                parts_.sheaf.view(),
                                                                                parts_.sheaf.gradient(),
                                                                                learner.raw(),
                                                                                learner.raw_bar(),
                                                                                {*parts_.options.parametrisation,
                                                                                 *parts_.options.sheaf_activation},
                                                                                learner.edge_weight(),
                                                                                learner.edge_factor(),
                                                                                learner.edge_logit_bar()});
    S* z_bar = drop ? parts_.scratch.side[0].z_bar.data() : parts_.x_bar.data();
    learner.backward(executor_, parts_.view, z_bar, !drop);
    executor_.launch_together(learner.first_products(parts_.view),
                              dropout_part<true>(drop, pass, Purpose::learner_dropout, l, z_bar,
                                                 parts_.x_bar.data()));
  }

  /// \param bar  derivative of the embeddings
  void backward_posterior(const Pass& pass, bool closed_form, S* bar) requires sampled {
    typename Parts::Learner& learner = parts_.learners.front();
    const auto edges = parts_.posterior->backward(parts_.runs.data(), pass, parts_.sheaf_count, parts_.sheaf,
                                                  learner, closed_form, parts_.noise.data());
    if (parts_.sheaf_encoder) {
      // Two encoders: the first is one launch ahead of the sheaf's.
      S *z_bar = parts_.scratch.side[0].z_bar.data(), *first_bar = backward_second(bar);
      executor_.launch_together(edges, parts_.encoder->before_activation(parts_.runs.data(), first_bar));
      learner.backward(executor_, parts_.view, z_bar, false, parts_.encoder->column_products(first_bar),
                       parts_.encoder->row_products(parts_.view, first_bar));
      backward_encoder(*parts_.sheaf_encoder, z_bar, learner.first_products(parts_.view));
    } else {
      executor_.launch_together(edges);
      learner.backward(executor_, parts_.view, bar, true);
      backward_encoder(*parts_.encoder, backward_second(bar), learner.first_products(parts_.view));
    }
  }

  /// Through the encoder's second linear layer, if there is one. \returns where the derivative of its input is
  S* backward_second(S* bar) {
    if (!parts_.second) return bar;
    S* first_bar = parts_.scratch.side[0].r_bar.data();
    parts_.second->backward(executor_, parts_.view, bar, first_bar);
    return first_bar;
  }
  /// Through an encoder, but for its gradient().
  ///
  /// \param ready  parts that share the first launch
  template <class... Ready>
  void backward_encoder(detail::BatchEncoder<Executor, S>& encoder, S* bar, const Ready&... ready) {
    executor_.launch_together(encoder.before_activation(parts_.runs.data(), bar), ready...);
    executor_.launch_together(encoder.column_products(bar), encoder.row_products(parts_.view, bar));
  }
  /// From partial sums to gradients.
  ///
  /// \param kl  also the sum of the posterior's KL
  void sum_gradients(bool kl) {
    const Teams sums{parts_.sums.items(), parts_.batch.runs, max_lanes,
                     detail::SumGradients<S>{parts_.view, parts_.ranges.data(),
                                             static_cast<int>(parts_.ranges.size())}};
    if constexpr (sampled) {
      const auto kl_sums = parts_.posterior->begin_kl(kl);
      if (parts_.sheaf_encoder) {
        executor_.launch_together(sums, parts_.encoder->gradient(parts_.view),
                                  parts_.sheaf_encoder->gradient(parts_.view), kl_sums);
      } else {
        executor_.launch_together(sums, parts_.encoder->gradient(parts_.view), kl_sums);
      }
      parts_.posterior->finish_kl(executor_, kl);
    } else {
      executor_.launch_together(sums, parts_.encoder->gradient(parts_.view));
    }
    parts_.filter.finish_gradient(executor_, parts_.view);
  }

  Executor& executor_;
  Parts parts_;
  const S* embedding_ = nullptr;  ///< H of all runs
  const S* start_ = nullptr;      ///< X_1 of all runs: H, or its complex form
};

}  // namespace sheafnn::batch
