/// \file
/// VariationalSource: the sheaves of a Bayesian model. One posterior Q(F | Z) for all sheaves, whose parameters a sheaf
/// learner predicts from embeddings Z. Every sheaf is a fresh sample F^l ~ Q. There is a backward pass.
///
///     Z = H, or ELU(X W_mᵀ + b_m) from an encoder of its own;  Q_a = activate(learner(Z)_a) for every arc a
///
/// Around given maps (posterior/around_given.hpp) Q is the distribution of the deviation from them. A table of spreads per
/// label of edges may replace the learner.
///
/// Source: paper, "variational sheaf learner"; math: "The model".
#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "sheafnn/layers/encoder.hpp"
#include "sheafnn/layers/given_lanes.hpp"
#include "sheafnn/layers/labelled_spread.hpp"
#include "sheafnn/layers/sheaf_learner.hpp"
#include "sheafnn/layers/sheaf_source.hpp"
#include "sheafnn/layers/variational_sheaf.hpp"

namespace sheafnn::layers {

/// Buffers and passes on one graph; see sheaf_source.hpp. Unchecked: indices of sheaves, explicit noise, the rows of
/// `work`, and that `blocks` belong to the graph. The learner and the encoder check their arguments.
///
/// \tparam Posterior  SheafPosterior, or AroundGiven
/// \tparam Maps       ArcMaps<S>, or HypergraphMaps<S>
template <class Posterior, class S, class Maps = ArcMaps<S>>
class VariationalSource {
 public:
  using Family = typename Posterior::family;
  using GraphType = typename Maps::GraphType;
  using Blocks = typename Maps::Blocks;
  using Stack = typename Maps::template Stack<Family>;
  using Draws = typename detail::DrawsOf<Posterior>::type;
  using Posteriors = VariationalSheaf<Draws, S, Blocks>;
  using Map = typename Family::template Map<Pack<S, lanes<S>>>;

  /// `graph` and `blocks` must outlive the source.
  ///
  /// \throws std::invalid_argument  of given maps: no sheaf, or one over another graph
  VariationalSource(const GraphType& graph, const Blocks& blocks, const Posterior& posterior, Index sheaves,
                    const typename Maps::Scaling& normalisation, const SheafLearnerOptions& learner);

  VariationalSource(const VariationalSource&) = delete;
  VariationalSource& operator=(const VariationalSource&) = delete;

  /// Gives the source an encoder of its own; `features` must outlive it.
  void add_encoder(const SparseInput<S>& features, const GraphType& graph, const EncoderOptions& options) {
    encoder_.emplace(features, graph, options);
  }
  /// Whether Q depends on the embeddings given to infer().
  [[nodiscard]] bool has_encoder() const noexcept { return encoder_.has_value(); }

  /// See StalkMasks; null: all stalks have D. They must outlive the source.
  void set_stalks(const StalkMasks<S>* stalks) noexcept {
    stalks_ = stalks;
    posterior_.set_stalks(stalks);
  }
  [[nodiscard]] const Stack& stack() const noexcept { return stack_; }
  [[nodiscard]] Stack& stack() noexcept { return stack_; }
  [[nodiscard]] auto& gradient() noexcept { return stack_.gradient(); }
  /// The posteriors of the maps, or of their deviations from given maps.
  [[nodiscard]] const Posteriors& posterior() const noexcept { return inferred_->posterior_; }
  /// Edge weights w_e, lanes-innermost, or null where all are 1.
  [[nodiscard]] const S* edge_weights(Index = 0) const noexcept {
    if constexpr (is_around_given<Posterior>) {
      return centre_.edge_weights();
    } else {
      return inferred_->learner_.edge_weights();
    }
  }
  /// The means of the maps of a block of edges.
  void mean_block(Index block, Map (&map)[2]) const {
    posterior().mean_block(block, map);
    for (int side = 0; side < 2; ++side) {
      centre_.add_to(block, side, map[side]);
      if (stalks_ != nullptr) stalks_->template mask<Family>(block, side, map[side]);
    }
  }
  /// Draws the maps of a block of edges, the same whenever it is called: backward passes draw them again. Not inlined, so that
  /// there is one copy of the long code.
  SHEAFNN_NOINLINE void sample_block(const Noise<S>& noise, Index block, Map (&map)[2]) const {
    posterior().sample_block(noise, block, map);
    for (int side = 0; side < 2; ++side) {
      centre_.add_to(block, side, map[side]);
      if (stalks_ != nullptr) stalks_->template mask<Family>(block, side, map[side]);
    }
  }
  template <class Use>
  void for_masks(const Use&) {}
  /// See SheafLearner.
  void work_in(S* memory) noexcept {
    if constexpr (requires { learner_.work_in(memory); }) learner_.work_in(memory);
  }
  /// See LayerSegments. Sheaves of segments are drawn again.
  void set_memory(Index length, bool compresses, bool keep) {
    stack_.set_memory({stack_.count(), length, compresses}, keep, [](Index, std::vector<Buffer<S>*>&) {});
  }
  /// Before backward() of a sheaf; see SheafStack.
  void restore(Index sheaf, Execution execution) {
    add_deferred(execution);  // before their derivatives are overwritten
    stack_.restore(sheaf, execution);
  }
  /// Z, which the learner reads.
  [[nodiscard]] MatrixView<const S> learner_input() const noexcept { return inferred_->z_; }

  /// Computes Q(F | Z) from the embeddings (n × h), or from its own encoder's.
  ///
  /// \param memory  n × h, for its own encoder's Z. Others may use it between this function and finish_backward(); learner_input()
  ///                is then overwritten. Null: the source has its own
  void infer(Execution execution, const SheafSourceWeights<const S>& weights, const MatrixView<const S>& embedding,
             S* memory = nullptr);
  /// Takes Q(F | Z) that another source has computed with the same weights; that source must not change it.
  void take(const VariationalSource& other) noexcept {
    inferred_ = &other;
    deferred_.clear();
  }

  /// Draws the sheaf input.sheaf.
  void build(Execution execution, const SheafSourceWeights<const S>&, const SheafInput<S>& input);

  /// KL(Q ‖ prior), averaged over the incident pairs.
  [[nodiscard]] double kl(Execution execution) requires Draws::closed_form_kl {
    return posterior_.mean_kl(execution);
  }
  /// log q − log p of the sheaf input.sheaf, which was built from this input, averaged over the incident pairs. No draw is kept,
  /// so the maps are drawn again, as in backward().
  [[nodiscard]] double log_ratio(Execution execution, const SheafInput<S>& input);

  /// \param kl_weight   factor of kl() in the loss, 0 to leave it out
  /// \param overwrites  may the backward pass overwrite blocks of the sheaves? Of one sample it then keeps no derivatives in Q's
  ///                    parameters
  void begin_backward(Execution execution, double kl_weight, bool overwrites = false);
  /// Adds to the derivatives of Q's parameters, from gradient().
  ///
  /// \param log_ratio_weight  factor of log_ratio(input) in the loss
  void backward(Execution execution, const SheafSourceWeights<const S>&, const SheafInput<S>& input,
                double log_ratio_weight, const MatrixView<S>&, const MatrixView<S>&, const SheafSourceWeights<S>&);
  /// Computes the derivatives of the weights and, without a separate encoder, of the embeddings (n × h, added to) from
  /// the derivatives in Q's parameters.
  ///
  /// \param work            n × h, overwritten
  /// \param more_input_bar  more derivatives of Z to go back from, n × h without gaps; null: none
  void finish_backward(Execution execution, const SheafSourceWeights<const S>& weights,
                       const MatrixView<S>& embedding_bar, const MatrixView<S>& work,
                       const SheafSourceWeights<S>& weights_bar, const S* more_input_bar = nullptr);

 private:
  static constexpr bool defers = requires(Stack & stack) { stack.edge_memory(0); };
  /// A sheaf whose backward pass has still to go from its blocks to Q's parameters.
  struct Deferred {
    Index sheaf;
    Noise<S> noise;
    S share;
  };
  /// What SheafBlocks::backward() takes, from use(block, side, deviation, its derivative).
  template <class Use>
  [[nodiscard]] auto through_deviations(const Use& use) {
    return [this, &use](Index block, int side, const Map& map, Map& map_bar) {
      if (stalks_ != nullptr) stalks_->template mask<Family>(block, side, map_bar);
      use(block, side, centre_.deviation(block, side, map), centre_.deviation_bar(block, side, map_bar));
    };
  }
  /// Adds to the derivatives of Q's parameters from the derivatives of a sheaf's blocks.
  ///
  /// \param begun  has the sheaf begun its backward pass?
  void add_sheaf(Execution execution, const Deferred& of, bool begun);
  /// The same of deferred sheaves.
  void add_deferred(Execution execution);
  /// Completes the derivatives of raw outputs.
  template <class Learner>
  void end_posterior(Execution execution, Learner& learner);

  Stack stack_;
  std::optional<Encoder<S>> encoder_;
  typename Maps::Learner learner_;
  std::optional<LabelledSpread<S>> labelled_;  ///< in place of the learner
  Posteriors posterior_;
  [[no_unique_address]] GivenCentre<Posterior, S> centre_;
  MatrixView<const S> z_;
  const StalkMasks<S>* stalks_ = nullptr;
  const VariationalSource* inferred_ = this;  ///< whose Q is drawn from
  std::vector<Deferred> deferred_;  ///< in the order of their backward passes
  double kl_weight_ = 0;            ///< of the backward pass
  bool defers_ = false;             ///< does it defer sheaves?
  bool keeps_gradient_ = true;      ///< have derivatives of Q's parameters been added?
};

template <class Posterior, class S, class Maps>
VariationalSource<Posterior, S, Maps>::VariationalSource(const GraphType& graph, const Blocks& blocks,
                                                         const Posterior& posterior, Index sheaves,
                                                         const typename Maps::Scaling& normalisation,
                                                         const SheafLearnerOptions& learner)
    : stack_(graph, blocks, sheaves, normalisation),
      learner_(graph, blocks, learner),
      posterior_(blocks, posterior),
      centre_(graph, blocks, posterior) {
  if constexpr (defers) {
    // Several backward passes may follow infer(): factors stay.
    learner_.set_raw_bar(stack_.edge_memory(learner_.raw_bar_numbers()), false);
    deferred_.reserve(static_cast<std::size_t>(sheaves));
  }
  if constexpr (is_around_given<Posterior>) {
    if (learner.labels > 0) {
      labelled_.emplace(blocks, detail::given_labels(posterior, blocks), Index{Draws::spread_size});
    }
  }
}

template <class Posterior, class S, class Maps>
void VariationalSource<Posterior, S, Maps>::infer(Execution execution, const SheafSourceWeights<const S>& weights,
                                                  const MatrixView<const S>& embedding, S* memory) {
  z_ = embedding;
  inferred_ = this;
  deferred_.clear();
  if constexpr (is_around_given<Posterior>) {
    if (labelled_) {
      labelled_->forward(weights.learners[0].spread);
      posterior_.activate(execution, *labelled_);
      return;
    }
  }
  if (encoder_) {
    encoder_->forward(execution, weights.encoder, {}, {}, false, memory);
    z_ = encoder_->output();
  }
  learner_.forward(execution, weights.learners[0], z_);
  posterior_.activate(execution, learner_);
}

template <class Posterior, class S, class Maps>
void VariationalSource<Posterior, S, Maps>::build(Execution execution, const SheafSourceWeights<const S>&,
                                                  const SheafInput<S>& input) {
  add_deferred(execution);  // as in restore()
  if constexpr (requires { stack_.take(input.sheaf, execution); }) stack_.take(input.sheaf, execution);
  stack_[input.sheaf].build(execution, edge_weights(), false,
                            [&](Index block, Map(&map)[2]) { sample_block(input.noise, block, map); });
}

template <class Posterior, class S, class Maps>
double VariationalSource<Posterior, S, Maps>::log_ratio(Execution execution, const SheafInput<S>& input) {
  return posterior_.monte_carlo_kl(execution, input.noise, [&](Index block, Map(&map)[2]) {
    sample_block(input.noise, block, map);
    for (int side = 0; side < 2; ++side) map[side] = centre_.deviation(block, side, map[side]);
  });
}

template <class Posterior, class S, class Maps>
void VariationalSource<Posterior, S, Maps>::begin_backward(Execution execution, double kl_weight,
                                                           bool overwrites) {
  deferred_.clear();
  kl_weight_ = kl_weight;
  defers_ = false;
  if constexpr (defers) defers_ = overwrites && stack_[0].can_take_derivatives();
  keeps_gradient_ = !defers_;
  if (keeps_gradient_) posterior_.begin_backward(execution, kl_weight);
  gradient().weight_bar.fill(S(0));
}

template <class Posterior, class S, class Maps>
void VariationalSource<Posterior, S, Maps>::backward(Execution execution, const SheafSourceWeights<const S>&,
                                                     const SheafInput<S>& input, double log_ratio_weight,
                                                     const MatrixView<S>&, const MatrixView<S>&,
                                                     const SheafSourceWeights<S>&) {
  const Deferred of{input.sheaf, input.noise, posterior_.pair_share(log_ratio_weight)};
  if constexpr (defers) {
    if (defers_) {
      stack_[of.sheaf].begin_backward(execution, gradient());
      stack_[of.sheaf].take_derivatives(gradient());
      deferred_.push_back(of);
      return;
    }
  }
  add_sheaf(execution, of, false);
}

template <class Posterior, class S, class Maps>
void VariationalSource<Posterior, S, Maps>::add_sheaf(Execution execution, const Deferred& of, bool begun) {
  const auto fill = [&](Index block, Map(&map)[2]) { sample_block(of.noise, block, map); };
  const auto add = [&](Index block, int side, const Map& map, const Map& map_bar) {
    posterior_.sample_backward(of.noise, block, side, map, map_bar, of.share);
  };
  if constexpr (defers) {
    if (begun) {
      posterior_.for_blocks(execution, [&](Index block) {
        stack_[of.sheaf].backward_block(block, edge_weights(), gradient(), fill, through_deviations(add));
      });
      return;
    }
  }
  stack_[of.sheaf].backward(execution, edge_weights(), gradient(), fill, through_deviations(add));
}

template <class Posterior, class S, class Maps>
void VariationalSource<Posterior, S, Maps>::add_deferred(Execution execution) {
  if (deferred_.empty()) return;
  if (!std::exchange(keeps_gradient_, true)) posterior_.begin_backward(execution, kl_weight_);
  for (const Deferred& of : deferred_) add_sheaf(execution, of, true);
  deferred_.clear();
}

template <class Posterior, class S, class Maps>
template <class Learner>
void VariationalSource<Posterior, S, Maps>::end_posterior(Execution execution, Learner& learner) {
  if constexpr (defers) {
    if (!keeps_gradient_) {
      const S kl_share = posterior_.pair_share(kl_weight_);
      posterior_.for_blocks(execution, [&](Index block) {
        Pack<S, lanes<S>> bar[2][Draws::gradient_size];
        for (int side = 0; side < 2; ++side) posterior_.begin_backward(block, side, kl_share, bar[side]);
        for (const Deferred& of : deferred_) {
          stack_[of.sheaf].backward_block(
              block, edge_weights(), gradient(), [&](Index, Map(&map)[2]) { sample_block(of.noise, block, map); },
              through_deviations([&](Index, int side, const Map& map, const Map& map_bar) {
                posterior_.sample_backward(of.noise, block, side, map, map_bar, of.share, bar[side]);
              }));
        }
        for (int side = 0; side < 2; ++side) posterior_.end_backward(learner, block, side, bar[side]);
      });
      deferred_.clear();
      return;
    }
  }
  add_deferred(execution);
  posterior_.end_backward(execution, learner);
}

template <class Posterior, class S, class Maps>
void VariationalSource<Posterior, S, Maps>::finish_backward(Execution execution,
                                                            const SheafSourceWeights<const S>& weights,
                                                            const MatrixView<S>& embedding_bar,
                                                            const MatrixView<S>& work,
                                                            const SheafSourceWeights<S>& weights_bar,
                                                            const S* more_input_bar) {
  if constexpr (is_around_given<Posterior>) {
    if (labelled_) {
      end_posterior(execution, *labelled_);
      labelled_->backward(weights_bar.learners[0].spread);
      return;
    }
  }
  end_posterior(execution, learner_);
  if (encoder_) encoder_->forward_again(execution, weights.encoder);
  learner_.set_edge_weights_bar(gradient().weight_bar);
  learner_.backward(execution, weights.learners[0], z_, weights_bar.learners[0], encoder_ ? work : embedding_bar,
                    !encoder_);
  if (more_input_bar != nullptr) {
    detail::add_array(execution, z_.rows() * z_.columns(), more_input_bar, (encoder_ ? work : embedding_bar).data());
  }
  if (encoder_) encoder_->backward(execution, work, weights_bar.encoder);
}

}  // namespace sheafnn::layers
