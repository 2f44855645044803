/// \file
/// BatchNetworkSteps: the steps of passes through the networks of a batch, as launches (for one network bsnn/network_steps.hpp).
/// BatchNetwork makes passes with a loss of them, NetworkOperator passes without one.
///
/// Unchecked: numbers of items, runs, instances and lanes, and the sizes of arrays behind pointers and views.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "sheafnn/batch/embedding_kernels.hpp"
#include "sheafnn/batch/network_parts.hpp"

namespace sheafnn::batch::detail {

/// Neither copied nor moved: recordings hold addresses of its arrays.
template <class Executor, LayeredModel<Executor> Model>
class BatchNetworkSteps {
 public:
  using Family = typename Model::Family;
  using S = typename Model::Scalar;
  using Parts = NetworkParts<Executor, Model>;
  using Common = typename Parts::Common;
  static constexpr bool sampled = Parts::sampled, sheaf_per_layer = Parts::sheaf_per_layer;

  /// See NetworkParts.
  template <class... Arguments>
  explicit BatchNetworkSteps(Executor& executor, const Arguments&... arguments)
      : executor_(executor), parts_(executor, arguments...) {}

  /// H = encoder(X) and, of Bayesian models, the parameters of Q(F | H).
  void encode(bool drop) {
    const Run* runs = parts_.runs.data();
    parts_.encoder->begin(drop);
    const auto transposes = parts_.right.transpose(parts_.view);
    const auto coefficients = parts_.filter.coefficients(parts_.view);
    auto entries = parts_.encoder->drop_entries(runs);
    auto segments = parts_.encoder->row_segments(parts_.view);
    auto nodes = parts_.encoder->nodes(runs, parts_.view);
    if (outside_ != nullptr) entries.items = segments.items = nodes.items = 0;
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
    embedding_ = outside_ != nullptr ? outside_ : parts_.encoder->output();
    if (parts_.second) embedding_ = parts_.second->forward(executor_, parts_.view, embedding_);
    start_ = parts_.start ? parts_.start->forward(executor_, embedding_) : embedding_;
  }

  /// Features through a layer's dropout, or, when Add, derivatives through it and added; nothing unless `drop`.
  ///
  /// \param copies  instances that share `in`
  template <bool Add = false>
  [[nodiscard]] Items<ApplyDropout<S, Add>> dropout_part(bool drop, const Pass& pass, Purpose purpose,
                                                         std::size_t layer, const S* in, S* out,
                                                         Index copies = 1) const {
    return detail::dropout_part<Add>(drop, parts_.runs.data(), pass, purpose, layer, in, parts_.shape.size(), out,
                                     copies);
  }

  /// F^l ~ Q(F | H) or maps(X_l);  X_1 = H,  X_{l+1} = diffusion_l(X_l; F^l).
  ///
  /// \param kl  also the sum of the posterior's KL
  /// \returns X_{L+1}
  [[nodiscard]] const S* diffuse(const Pass& pass, bool drop, bool kl) {
    const Index size = parts_.shape.size();
    const bool spread = pass.copies > 1;
    const S *const first = spread ? parts_.spread.data() : start_, *x = first;
    const Items copies{spread ? size : 0, pass.instances(),
                       CopyToInstances<S>{start_, size, pass.copies, parts_.spread.data()}};
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
      parts_.sheaf.build(executor_, pass, parts_.sheaves_at(0, parts_.sheaf_count), FixedMaps<Family, S>{},
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
    return x;
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
                       MeanMaps<Family, S>{learner.raw(),
                                           {*parts_.options.parametrisation, *parts_.options.sheaf_activation}},
                       learner.edge_weight());
  }

  /// From the derivative of the logits to all gradients but for their sums().
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
    static_cast<void>(
        diffuse_backward(pass, closed_form, drop, direct, parts_.output->weight_products(pass, parts_.view)));
  }

  /// From X̄_{L+1}, in x_bar after clear_bars(), to X̄_l and F̄^l, l = L … 1, then to H̄, Q's parameters and the encoder's
  /// weights.
  ///
  /// \param direct    the last layer has begun: see EnterLayers
  /// \param products  a part that shares the first launch
  /// \returns where H̄ is
  template <class Products>
  const S* diffuse_backward(const Pass& pass, bool closed_form, bool drop, bool direct, const Products& products) {
    const std::size_t top = parts_.layers.size() - 1;
    LayerProducts<S> pending{};  // of the next layer: they share the first launch of this one
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
                       AddCopies<S>{parts_.x_bar.data(), parts_.shape.size(), pass.copies, bar}};
    if constexpr (sampled) {
      executor_.launch_together(parts_.sheaf.backward_nodes(pass, parts_.sheaves_at(0, parts_.sheaf_count)),
                                copies, pending.left, pending.right);
      backward_posterior(pass, closed_form, bar);
    } else {
      executor_.launch_together(copies);
      backward_encoder(*parts_.encoder, backward_second(bar), pending.left, pending.right);
    }
    return bar;
  }

  /// \param drop  what the learner read had gone through its dropout
  void backward_mean_sheaf(const Pass& pass, std::size_t l, bool drop, const LayerProducts<S>& ready) {
    const SheafRange one = parts_.sheaves_at(static_cast<Index>(l));
    typename Parts::Learner& learner = parts_.learners[l];
    executor_.launch_together(parts_.sheaf.backward_nodes(pass, one), ready.left, ready.right);
    executor_.launch(parts_.graph.view().pairs(), pass.instances(),
                     BackwardMeanEdges<Family, S, typename Parts::View>{parts_.graph.view(),
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
  /// Through an encoder, but for its gradient(). Embeddings from outside have none.
  ///
  /// \param ready  parts that share the first launch
  template <class... Ready>
  void backward_encoder(BatchEncoder<Executor, S>& encoder, S* bar, const Ready&... ready) {
    if (outside_ != nullptr) return executor_.launch_together(ready...);
    executor_.launch_together(encoder.before_activation(parts_.runs.data(), bar), ready...);
    executor_.launch_together(encoder.column_products(bar), encoder.row_products(parts_.view, bar));
  }
  /// From partial sums to gradients.
  ///
  /// \param kl  also the sum of the posterior's KL
  void sum_gradients(bool kl) {
    const Teams sums{parts_.sums.items(), parts_.batch.runs, max_lanes,
                     SumGradients<S>{parts_.view, parts_.ranges.data(), static_cast<int>(parts_.ranges.size())}};
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
  const S* outside_ = nullptr;    ///< embeddings that do not come from the encoder, or null
  const S* embedding_ = nullptr;  ///< H of all runs
  const S* start_ = nullptr;      ///< X_1 of all runs: H, or its complex form
};

}  // namespace sheafnn::batch::detail
