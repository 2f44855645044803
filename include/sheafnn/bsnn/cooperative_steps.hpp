/// \file
/// CooperativeSteps: the steps of the passes of a cooperative network, on its parts. Source: math: "Cooperative
/// sheaves", "Backward pass of a cooperative layer".
///
/// A pass is a sequence of walks over groups of nodes (layers/node_chunks.hpp). A walk does everything that a group can
/// do with its own rows, across the borders of layers. It ends where nodes need rows that their neighbours compute:
///
///     leave layer l:      X_{l+1} = norm((1 + tanh ε) ∘ X̃_l − act(dropout(Δ_inᵀ Δ_out Y))),  X̃_{l+1} = dropout(X_{l+1}),
///     enter layer l + 1:  T, S from X̃_{l+1},  Y = (I ⊗ A) X̃_{l+1} Bᵀ;
///     cross layer l + 1:  Δ_out Y;   …
///
/// with further walks where learners read neighbours. A backward pass takes the walks in reverse, over chunks of
/// groups. The chunks' sums for the derivatives of weights are added in a fixed order. On a part of a graph, a walk
/// covers the owned nodes; before it, the parts exchange the rows of the halo that it reads.
#pragma once

#include <algorithm>

#include "sheafnn/bsnn/cooperative_parts.hpp"
#include "sheafnn/bsnn/forward_pass.hpp"
#include "sheafnn/core/tile.hpp"

namespace sheafnn::detail {

/// See the file comment; NetworkOfSteps says what the steps are.
template <int D, bool Bayesian, class S>
struct CooperativeSteps : CooperativeParts<D, Bayesian, S> {
  using Parts = CooperativeParts<D, Bayesian, S>;
  using Stage = CooperativeStage<D, S>;
  using Parts::Parts;
  // clang-format off
  using Parts::model, Parts::graph, Parts::encoder, Parts::learner_encoder, Parts::learners, Parts::posteriors,
      Parts::stages, Parts::maps_gradient, Parts::masks, Parts::weights, Parts::weights_bar, Parts::last, Parts::bar,
      Parts::x_bar, Parts::embedding_bar, Parts::leave_size, Parts::enter_size, Parts::partial_size, Parts::execution,
      Parts::work, Parts::pass, Parts::nodes, Parts::sample, Parts::options, Parts::closed_form, Parts::kl,
      Parts::given_maps;
  using Parts::layer_count, Parts::features_of, Parts::own_rows, Parts::normalises, Parts::owned,
      Parts::learns_per_layer, Parts::pair_of, Parts::stage_of, Parts::packs, Parts::all_nodes, Parts::for_chunks,
      Parts::sum_chunks, Parts::walk, Parts::draw, Parts::drop;
  // clang-format on

  /// Sheaves of a sample.
  [[nodiscard]] Index sheaf_count() const noexcept { return layer_count(); }
  /// X_{l+1} in an evaluation, X̃_{l+1} in a training pass; after the last layer, the input of the readout.
  [[nodiscard]] FeatureView<const S> features_after(Index l) const noexcept {
    if (l == layer_count()) return features_of(last.data(), nodes.count());
    return features_of(l == 0 ? start : stages[static_cast<std::size_t>(l)].features.data(), graph.node_count());
  }
  static constexpr bool takes_embeddings = true, shares_embeddings = true;
  [[nodiscard]] bool encodes_twice() const noexcept { return learner_encoder.has_value(); }
  void set_pass(const ForwardPass<S>& of) {
    require(!of.training || given_maps.empty(), "training", true, "given maps are for evaluations");
    this->take_pass(of, graph.node_count(), 2 * graph.node_count() * NodeMapPosterior<D>::noise_size,
                    layer_count(), [&](auto& list, auto& to) { model.declare(list, to); });
  }
  /// Computes the embeddings and, for Bayesian models, the input of the learners. \param with_clean  also without
  /// dropout
  void embed(bool with_clean = false) {
    encoder.forward(execution, weights.encoder, pass.of_features(), pass.keeps(), with_clean);
    if (learner_encoder) learner_encoder->forward(execution, weights.learner_encoder, {}, pass.keeps());
  }
  /// Starts a pass from embeddings that `from` has computed: H and, where one pair of learners serves all layers,
  /// Q(T, S | H).
  void take(const CooperativeSteps& from) { start_from(from, !pass.training); }
  void infer_from_encoder() { start_from(*this, false); }
  /// The same from embeddings that were computed outside.
  void infer_from(const MatrixView<const S>& h) { infer_from(h.data(), h.data()); }
  /// Starts a pass from H. \param read  input of the learners of Bayesian models, if one pair serves all layers
  void infer_from(const S* h, const S* read) {
    start = h;
    if (learns_per_layer()) return;
    if constexpr (Bayesian) {
      learner_start = read;
      begin_learner(0, 0);
      masks.run(execution);
      learn(0, 0, [&](Index r, Index first, Index count) {
        learners[0].forward_rows(r, first, count, learner_start + first * model.hidden_width());
      });
      this->for_posterior([&](Index begin, Index end) { posteriors[0].infer(begin, end, learners[0].raw()); });
    }
  }

  // For passes that share steps:

  /// See NetworkPasses.
  void share(const ForwardPass<S>& of) {
    set_pass(of);
    for_masks(of, [](DropoutMask& mask, const Dropout& dropout) {
      if (dropout.active()) mask.take_ahead();
    });
    embed(true);
  }
  /// Calls use(mask, dropout) for the dropouts of a training pass, with its first sample.
  template <class Use>
  void for_masks(const ForwardPass<S>& of, const Use& use) {
    use(encoder.linear.entry_mask(), of.of_features());
    for (Index l = 0; l < layer_count(); ++l) {
      use(stage_of(l).mask, of.of_layer(l, 0));
      use(stage_of(l).layer.mask(), of.of_layer(max_layers + l, 0));
    }
    for (std::size_t pair = 0; pair < learners.size(); ++pair) {
      learners[pair].for_masks([&](int side, Index k, DropoutMask& mask) {
        use(mask, dropout_of_learner(of, static_cast<Index>(pair), side, k, 0));
      });
    }
  }

  /// Computes X_{L+1} at the requested nodes from H, into `last`.
  void diffuse() {
    const Index n = graph.own_node_count(), h = model.hidden_width();
    for (Index l = 0; l < layer_count(); ++l) begin_layer(l);
    masks.run(execution);
    for_row_groups(execution, n, [&](Index first, Index count) { enter(0, first, count, start + first * h); });
    for (Index l = 0; l < layer_count(); ++l) {
      Stage& stage = stage_of(l);
      if (learns_per_layer()) {
        NodeLearnerPair<S>& learner = learners[pair_of(l)];
        learn(l, 1, [&](Index r, Index first, Index count) {
          learner.forward_rows(r, first, count, input_of(l) + first * h);
          if (r + 1 == learner.rounds()) enter_with_maps(l, first, count);
        });
      }
      walk(work.sent, [&](Index first, Index count) { stage.layer.cross_rows(first, count); });
      if (stage.batch) leave_together(l);
      if (l + 1 == layer_count()) break;
      S* next = stage_of(l + 1).features.data();
      const auto go_on = [&](Index first, Index count) {
        leave(l, first, count, next + first * h);
        enter(l + 1, first, count, next + first * h);
      };
      walk(work.sent_on, go_on, !stage.batch);
    }
    if (!stages.back().batch) fetch_halo(graph, work.sent_on.data(), h);
    for_row_groups(execution, owned(nodes).count(), [&](Index first, Index count) {
      leave(layer_count() - 1, first, count, last.data() + first * h);
    });
  }

  /// Takes the derivative of X_{L+1} from bar, writes the derivative of H to x_bar, and adds the derivatives of weights
  /// and distributions.
  void diffuse_backward() {
    const Index h = model.hidden_width();
    const Index top = layer_count() - 1;
    if (stage_of(top).batch) {
      leave_together_backward(top, {bar.data(), owned(nodes).count(), h});
    } else {
      for_chunks(
          [&](Index, Index first, Index count, S* sums) {
            leave_backward(top, first, count, bar.data() + nodes.lower_bound(first) * h, sums);
          },
          [&](S* sums) { clear_leave(top, sums); });
    }
    for (Index l = top; l >= 0; --l) {
      Stage& stage = stage_of(l);
      NodeLearnerPair<S>& learner = learners[pair_of(l)];
      const bool learns = learns_per_layer();
      const Index rounds = learns ? learner.backward_rounds() : 1;
      const double share = begin_maps_backward(l);
      walk(work.sent,
           [&](Index first, Index count) { stage.layer.cross_backward_rows(first, count, maps_gradient); });
      fetch_halo(graph, work.sent_on.data(), h);
      // After the learner's last round nothing is left to do at layer l for a group of nodes, so the group continues
      // with layer l − 1.
      const auto round = [&](Index r, Index chunk, Index first, Index count, S* sums) {
        const Index at = first * h;
        if (learns) {
          learner.backward_rows(r, chunk, first, count, input_of(l) + at, x_bar.data() + at, true,
                                sums + 2 * leave_size + enter_size);
        }
        if (r + 1 < rounds) return;
        if (stage.dropout.active()) {
          drop(at, at + count * h, x_bar.data(), stage.mask, stage.dropout, x_bar.data());
        }
        if (l > 0 && !stage.batch) leave_backward(l - 1, first, count, x_bar.data() + at, sums);
      };
      const auto clear = [&](Index r, S* sums) {
        if (r == 0) std::fill_n(sums + 2 * leave_size, partial_size - 2 * leave_size, S(0));
        if (r + 1 == rounds && l > 0 && !stage.batch) clear_leave(l - 1, sums);
      };
      if (learns) learner.begin_backward();
      for_chunks(
          [&](Index chunk, Index first, Index count, S* sums) {
            stage.layer.enter_backward_rows(first, count, x_bar.data(), maps_gradient, sums + 2 * leave_size);
            maps_backward(stage, share, first, count, l);
            round(0, chunk, first, count, sums);
          },
          [&](S* sums) { clear(0, sums); });
      for (Index r = 1; r < rounds; ++r) {
        learner.end_backward_round(r - 1);
        for_chunks([&](Index chunk, Index first, Index count, S* sums) { round(r, chunk, first, count, sums); },
                   [&](S* sums) { clear(r, sums); });
      }
      if (l > 0 && stage.batch) leave_together_backward(l - 1, own_rows(x_bar));
      add_partials(l);
    }
  }

  /// Adds to the derivatives of the layers' weights and of H, from the derivative in last_bar().
  void accumulate_layers(const FeatureView<S>& /*last_bar()*/, bool /*sheaf_begun*/) {
    diffuse_backward();
    this->add_sample(x_bar, embedding_bar);
  }
  /// Computes the derivatives of the learners that serve all layers. \returns the derivative of H
  MatrixView<S> infer_backward() {
    if constexpr (Bayesian) this->finish_posterior(learner_start);
    return this->matrix(embedding_bar);
  }
  void embed_backward() { encoder.backward(execution, infer_backward(), weights_bar.encoder); }
  /// See PassState. Learners of every layer have added it for each sample.
  [[nodiscard]] bool ends_with_kl() const noexcept { return closed_form && !learns_per_layer(); }

  static constexpr Index max_layers = second_dropouts;

  const S* start = nullptr;          ///< H
  const S* learner_start = nullptr;  ///< input of the learners of a Bayesian model

 private:
  /// \param clean  from embeddings without dropout
  void start_from(const CooperativeSteps& from, bool clean) {
    const S* h = clean ? from.encoder.clean.data() : from.encoder.output.data();
    infer_from(h, from.learner_encoder ? from.learner_encoder->output.data() : h);
  }
  [[nodiscard]] const NormWeights<const S>& norm_of(Index l) const noexcept {
    return weights.norms[static_cast<std::size_t>(l)];
  }
  /// X̃_l. It is H itself if nothing is dropped before the first layer.
  [[nodiscard]] const S* input_of(Index l) const noexcept {
    const Stage& stage = stages[static_cast<std::size_t>(l)];
    return l == 0 && !stage.dropout.active() ? start : stage.features.data();
  }

  // Forward passes.

  void begin_layer(Index l) {
    Stage& stage = stage_of(l);
    stage.dropout = pass.of_layer(l, sample);
    const Dropout after = pass.of_layer(max_layers + l, sample);
    if (stage.dropout.active()) draw(stage.mask, stage.dropout);
    if (after.active()) draw(stage.layer.mask(), after);
    if (learns_per_layer()) begin_learner(pair_of(l), l);
    if (normalises()) norm_of(l).check(model.hidden_width());
    stage.layer.begin(weights.layers[static_cast<std::size_t>(l)], stage.maps, input_of(l), after,
                      stage.batch ? all_nodes() : nodes_of(l), pass.keeps());
  }
  /// The dropout of a learner between convolutions k and k + 1. \param l  layer
  [[nodiscard]] Dropout dropout_of_learner(const ForwardPass<S>& of, Index l, int side, Index k,
                                           Index number) const {
    Dropout r = of.of_learner(l + max_layers * (2 * k + side), number);
    r.rate = of.training ? model.options().learner_dropout : 0.0;
    return r;
  }
  /// \param l  layer, for the addresses of the dropouts
  void begin_learner(std::size_t pair, Index l) {
    const auto dropout_of = [&](int side, Index k) {
      return dropout_of_learner(pass, l, side, k, learns_per_layer() ? sample : 0);
    };
    learners[pair].begin(weights.learners[pair], pass.keeps(), dropout_of,
                         [&](DropoutMask& mask, const Dropout& dropout) { draw(mask, dropout); });
  }
  /// Runs the rounds of a pair of learners from `from` on, each as a walk. \param round  round(r, first, count) for
  /// groups of nodes
  template <class Round>
  void learn(Index pair, Index from, const Round& round) {
    NodeLearnerPair<S>& learner = learners[static_cast<std::size_t>(pair)];
    for (Index r = from; r < learner.rounds(); ++r) {
      if (r > 0) learner.end_round(r - 1);
      for_row_groups(execution, graph.own_node_count(), [&](Index first, Index count) { round(r, first, count); });
    }
  }
  /// Computes X̃_l from the rows of X_l. Then computes T, S and Y if the learners read no neighbours, otherwise runs
  /// their first round.
  void enter(Index l, Index first, Index count, const S* x) {
    Stage& stage = stage_of(l);
    const Index at = first * model.hidden_width();
    if (stage.dropout.active()) {
      drop(at, at + count * model.hidden_width(), x - at, stage.mask, stage.dropout, stage.features.data());
    }
    if (learns_per_layer()) {
      NodeLearnerPair<S>& learner = learners[pair_of(l)];
      learner.forward_rows(0, first, count, input_of(l) + at);
      if (learner.rounds() > 1) return;
    }
    enter_with_maps(l, first, count);
  }
  /// Sets the maps and enters layer l.
  void enter_with_maps(Index l, Index first, Index count) {
    const auto [begin, end] = packs(first, count);
    this->set_maps(l, begin, end, noise_of(l));
    stage_of(l).layer.enter_rows(first, count);
  }
  /// Nodes at which X_{l+1} is needed.
  [[nodiscard]] NodeSelection nodes_of(Index l) const noexcept {
    return l + 1 < layer_count() ? all_nodes() : nodes;
  }
  /// Computes all rows of layer l's output, and then a norm over all nodes together.
  void leave_together(Index l) {
    Stage& stage = stage_of(l);
    walk(work.sent_on, [&](Index first, Index count) {
      stage.layer.leave_rows(first, count, stage.unnormalised.data() + first * model.hidden_width());
    });
    stage.batch->forward(execution, norm_of(l), own_rows(stage.unnormalised), owned(nodes_of(l)));
  }
  /// Rows of X_{l+1}, from layer l and its norm. \param first, count  of the layer's nodes, by index
  void leave(Index l, Index first, Index count, S* to) {
    Stage& stage = stage_of(l);
    if (stage.batch) {
      std::copy_n(stage.batch->output().row(first).data(), count * model.hidden_width(), to);
      return;
    }
    S* out = normalises() && pass.keeps() ? stage.unnormalised.data() + first * model.hidden_width() : to;
    stage.layer.leave_rows(first, count, out);
    if (normalises()) {
      stage.norm.forward_rows(norm_of(l), count, out, to, pass.keeps() ? &stage.moments[first] : nullptr);
    }
  }
  [[nodiscard]] NodeNoise<S> noise_of(Index l) const {
    return {{pass.of_sheaf(2 * l, sample), pass.of_sheaf(2 * l + 1, sample)},
            this->explicit_noise(l, layer_count())};
  }

  // Backward passes.

  void clear_leave(Index l, S* sums) const { std::fill_n(sums + l % 2 * leave_size, leave_size, S(0)); }
  /// Backwards through leave().
  ///
  /// \param out_bar  rows of the derivative of X_{l+1} that belong to these nodes; overwritten
  void leave_backward(Index l, Index first, Index count, S* out_bar, S* sums) {
    Stage& stage = stage_of(l);
    sums += l % 2 * leave_size;
    if (normalises()) {
      const NodeSelection here = nodes_of(l);
      const Index from = here.lower_bound(first), rows = here.lower_bound(first + count) - from;
      stage.norm.backward_rows(norm_of(l), rows, stage.unnormalised.data() + from * model.hidden_width(),
                               stage.moments.data() + from, out_bar, out_bar,
                               sums + stage.layer.leave_partial_size());
    }
    stage.layer.leave_backward_rows(first, count, out_bar, x_bar.data(), maps_gradient, sums);
  }
  /// Backwards through leave_together(). \param normed_bar  derivative of the norm's output; may be x_bar
  void leave_together_backward(Index l, const MatrixView<const S>& normed_bar) {
    stage_of(l).batch->backward(execution, norm_of(l), own_rows(stage_of(l).unnormalised), normed_bar,
                                own_rows(x_bar), weights_bar.norms[static_cast<std::size_t>(l)]);
    for_chunks(
        [&](Index, Index first, Index count, S* sums) {
          leave_backward(l, first, count, x_bar.data() + first * model.hidden_width(), sums);
        },
        [&](S* sums) { clear_leave(l, sums); });
  }
  /// Adds the layer's part of the KL term. The closed form for distributions that all layers share is added elsewhere,
  /// since it is the same for every draw.
  ///
  /// \returns the layer's share in the term
  double begin_maps_backward([[maybe_unused]] Index l) {
    const double share = 1 / static_cast<double>(options.samples * layer_count());
    if constexpr (Bayesian) {
      VariationalNodeMaps<D, S>& posterior = posteriors[pair_of(l)];
      if (!closed_form) {
        kl += share * posterior.mean_log_ratio(execution, stage_of(l).maps);
      } else if (learns_per_layer()) {
        kl += share * posterior.mean_kl(execution);
      }
    }
    return share;
  }
  /// Computes the derivatives of the learner's raw values, or of the distributions, from the derivatives of the operators.
  void maps_backward(const Stage& stage, [[maybe_unused]] double share, Index first, Index count, Index l) {
    const auto [begin, end] = packs(first, count);
    NodeLearnerPair<S>& learner = learners[pair_of(l)];
    if constexpr (Bayesian) {
      VariationalNodeMaps<D, S>& posterior = posteriors[pair_of(l)];
      const double weight = options.kl_weight * share;
      if (learns_per_layer()) posterior.begin_backward(begin, end, closed_form ? weight : 0.0);
      posterior.add_backward(begin, end, stage.maps, maps_gradient, closed_form ? 0.0 : weight);
      if (learns_per_layer()) posterior.end_backward(begin, end, learner.raw(), learner.raw_bar());
    } else {
      predict_node_maps_backward<D, S>(begin, end, learner.raw(), stage.maps, maps_gradient, learner.raw_bar());
    }
  }
  /// Adds the sums of layer l to the derivatives of its weights.
  void add_partials(Index l) {
    const std::size_t i = static_cast<std::size_t>(l);
    const Stage& stage = stages[i];
    const S* left = sum_chunks(l % 2 * leave_size, leave_size);
    stage.layer.add_leave_partial(left, weights_bar.layers[i]);
    if (normalises()) {
      stage.norm.add_partial(left + stage.layer.leave_partial_size(), weights_bar.norms[i]);
    }
    const bool learns = learns_per_layer();
    const S* entered = sum_chunks(2 * leave_size, enter_size + (learns ? learners.front().partial_size() : 0));
    stage.layer.add_enter_partial(entered, weights_bar.layers[i]);
    if (learns) learners[i].add_partial(entered + enter_size, weights_bar.learners[i]);
  }
};

}  // namespace sheafnn::detail
