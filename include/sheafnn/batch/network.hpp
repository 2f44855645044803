/// \file
/// BatchNetwork: the networks of a batch of trainings on one graph, in an executor's memory (for one: bsnn/network.hpp). All
/// passes, except flow_control.hpp's, are one sequence of launches that does not depend on results: it can be recorded and replayed.
///
/// Unchecked, in its steps: indices of items, runs, instances and lanes, and the sizes of the arrays of pointers and views.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "sheafnn/batch/embedding_kernels.hpp"
#include "sheafnn/batch/network_of_parts.hpp"
#include "sheafnn/batch/network_parts.hpp"

namespace sheafnn::batch {

/// See the file comment; the interface is in network_of_parts.hpp. NetworkOperator makes passes of these steps, too.
template <class Executor, detail::LayeredModel<Executor> ModelType>
class BatchNetwork<Executor, ModelType>
    : public detail::NetworkOfParts<BatchNetwork<Executor, ModelType>, Executor, ModelType,
                                    detail::NetworkParts<Executor, ModelType>> {
  using Base =
      detail::NetworkOfParts<BatchNetwork, Executor, ModelType, detail::NetworkParts<Executor, ModelType>>;
  using typename Base::Parts;
  friend Base;

 public:
  using typename Base::Model, typename Base::S;
  using Family = typename Model::Family;
  using Base::Base;

  /// The KL terms of layers that draw something, the mean over samples; empty without such layers.
  [[nodiscard]] const detail::ColumnTree<Executor, double>& kl_of_layers() const noexcept {
    return parts_.kl_of_layers_tree;
  }

  /// Explicit noise instead of the streams': arc rows of all sheaves of all copies (see Noise), for every
  /// run. None: the streams' again. Passes that draw more throw std::invalid_argument.
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
  /// Is anything of a model random, apart from dropout?
  [[nodiscard]] static bool draws(const Model& model) { return Parts::draws_of(model); }

 protected:
  using Base::executor_, Base::parts_, Base::outside_;
  static constexpr bool sampled = Parts::sampled, sheaf_per_layer = Parts::sheaf_per_layer,
                        takes_embeddings = true, sums_kl_in_passes = true, drops = Parts::Layer::drops;

  [[nodiscard]] detail::PartialRows layers_kl() const noexcept { return parts_.kl_of_layers_tree.partial(); }
  [[nodiscard]] bool draws_something() const noexcept { return parts_.draws; }
  /// Number of values of explicit noise for the sheaves of a copy; 0 if nothing is random.
  [[nodiscard]] Index noise_of_copy() const {
    if constexpr (sampled) {
      return parts_.sheaf_count * this->pairs() * Model::Posterior::noise_size;
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
  void encode(const Pass&, bool input_drop, bool hidden_drop) {
    const bool drop = input_drop || hidden_drop;
    const Run* runs = parts_.runs();
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
  [[nodiscard]] Items<detail::ApplyDropout<S, Add>> dropout_part(bool drop, const Pass& pass, Purpose purpose,
                                                                 std::size_t layer, const S* in, S* out,
                                                                 Index copies = 1) const {
    return detail::dropout_part<Add>(drop, parts_.runs(), pass, purpose, layer, in, parts_.shape.size(), out,
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
                       detail::CopyToInstances<S>{start_, size, pass.copies, parts_.spread.data()}};
    const auto dropped = dropout_part(drop, pass, Purpose::layer_dropout, 0, start_,
                                      parts_.layers.front().dropped_input(), pass.copies);
    if constexpr (sampled) {
      const auto maps = parts_.posterior->maps(parts_.runs(), pass, parts_.sheaf_count, parts_.noise.data());
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
      parts_.norms[l].forward(executor_, parts_.runs(), pass, parts_.view, x, static_cast<std::uint32_t>(l) + 1,
                              next);
      x = parts_.norms[l].output();
    }
    if (pass.keeps() && parts_.kl_rows.count() > 0)
      parts_.kl_of_layers_tree.run(executor_, parts_.kl_of_layers.data(), true);
    return x;
  }
  /// diffuse() has begun and ended the sum.
  void sum_kl() noexcept {}

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

  /// Computes the partial sums of all gradients from the derivative of the logits.
  void backward(const Pass& pass, bool closed_form, bool drop) {
    const std::size_t top = parts_.layers.size() - 1;
    auto* const entered = parts_.enters_last_layer() ? parts_.layers[top].diffusion() : nullptr;
    if (entered == nullptr) {
      this->read_out_backward(pass);
    } else if constexpr (Parts::of_edges) {
      entered->enter(parts_.layer_call(executor_, pass, top, false, top), parts_.output->logits_bar(parts_.view),
                     parts_.x_bar.data());
    }
    static_cast<void>(diffuse_backward(pass, closed_form, drop, parts_.output->weight_products(pass, parts_.view),
                                       entered != nullptr));
  }

  /// From X̄_{L+1}, in x_bar, computes X̄_l and F̄^l, l = L … 1, then the derivatives of H, Q's parameters and the encoder's
  /// weights.
  ///
  /// \param products  a part that shares the first launch
  /// \param direct    the last layer has begun: see EnterLayers
  /// \returns where H̄ is
  template <class Products>
  const S* diffuse_backward(const Pass& pass, bool closed_form, bool drop, const Products& products,
                            bool direct = false) {
    parts_.clear_bars(executor_, pass);
    const std::size_t top = parts_.layers.size() - 1;
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
    return bar;
  }

  /// \param drop  what the learner read had gone through its dropout
  void backward_mean_sheaf(const Pass& pass, std::size_t l, bool drop, const detail::LayerProducts<S>& ready) {
    const detail::SheafRange one = parts_.sheaves_at(static_cast<Index>(l));
    typename Parts::Learner& learner = parts_.learners[l];
    executor_.launch_together(parts_.sheaf.backward_nodes(pass, one), ready.left, ready.right);
    executor_.launch(parts_.graph.view().pairs(), pass.instances(),
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
    const auto edges = parts_.posterior->backward(parts_.runs(), pass, parts_.sheaf_count, parts_.sheaf, learner,
                                                  closed_form, parts_.noise.data());
    if (parts_.sheaf_encoder) {
      // Two encoders: the first is one launch ahead of the sheaf's.
      S *z_bar = parts_.scratch.side[0].z_bar.data(), *first_bar = backward_second(bar);
      executor_.launch_together(edges, parts_.encoder->before_activation(parts_.runs(), first_bar));
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
  /// The backward pass through an encoder, without its gradient(). Embeddings from outside have none.
  ///
  /// \param ready  parts that share the first launch
  template <class... Ready>
  void backward_encoder(detail::BatchEncoder<Executor, S>& encoder, S* bar, const Ready&... ready) {
    if (outside_ != nullptr) return executor_.launch_together(ready...);
    executor_.launch_together(encoder.before_activation(parts_.runs(), bar), ready...);
    executor_.launch_together(encoder.column_products(bar), encoder.row_products(parts_.view, bar));
  }
  /// Adds up partial sums to gradients, and the posterior's KL if it has no closed form.
  void sum_gradients(bool closed_form) {
    const auto sums = parts_.partial_sums();
    if constexpr (sampled) {
      const auto kl_sums = parts_.posterior->begin_kl(!closed_form);
      if (parts_.sheaf_encoder) {
        executor_.launch_together(sums, parts_.encoder->gradient(parts_.view),
                                  parts_.sheaf_encoder->gradient(parts_.view), kl_sums);
      } else {
        executor_.launch_together(sums, parts_.encoder->gradient(parts_.view), kl_sums);
      }
      parts_.posterior->finish_kl(executor_, !closed_form);
    } else {
      executor_.launch_together(sums, parts_.encoder->gradient(parts_.view));
    }
    parts_.filter.finish_gradient(executor_, parts_.view);
  }

  const S* embedding_ = nullptr;  ///< H of all runs
  const S* start_ = nullptr;      ///< X_1 of all runs: H, or its complex form
};

}  // namespace sheafnn::batch
