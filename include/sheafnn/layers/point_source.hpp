/// \file
/// PointSource: the sheaves of a deterministic model, F^l = chart(range · tanh(learner_l(dropout(X_l)))), one learner
/// per sheaf, with the backward pass (math: "The model"). Families without parameters have their fixed maps.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "sheafnn/layers/dropout_layer.hpp"
#include "sheafnn/layers/layer_segments.hpp"
#include "sheafnn/layers/sheaf_learner.hpp"
#include "sheafnn/layers/sheaf_source.hpp"
#include "sheafnn/layers/stalk_masks.hpp"
#include "sheafnn/posterior/point_map.hpp"

namespace sheafnn::layers {

/// Buffers and passes on one graph; see sheaf_source.hpp. Unchecked: indices of sheaves and blocks, the rows of `work`,
/// and that `blocks` belong to the graph. Learners check their arguments.
///
/// \tparam Maps  ArcMaps<S>, or HypergraphMaps<S>
template <RestrictionMapFamily Family, class S, class Maps = ArcMaps<S>>
class PointSource {
 public:
  using GraphType = typename Maps::GraphType;
  using Blocks = typename Maps::Blocks;
  using Learner = typename Maps::Learner;
  using Stack = typename Maps::template Stack<Family>;
  using P = Pack<S, lanes<S>>;
  using Map = typename Family::template Map<P>;

  /// `graph` and `blocks` must outlive the source.
  PointSource(const GraphType& graph, const Blocks& blocks, const PointMap<Family>& point, Index sheaves,
              const typename Maps::Scaling& normalisation, const SheafLearnerOptions& learner);

  /// See StalkMasks; null: all stalks have D. They must outlive the source.
  void set_stalks(const StalkMasks<S>* stalks) noexcept { stalks_ = stalks; }
  [[nodiscard]] const Stack& stack() const noexcept { return stack_; }
  [[nodiscard]] Stack& stack() noexcept { return stack_; }
  [[nodiscard]] auto& gradient() noexcept { return stack_.gradient(); }
  /// Edge weights w_e of a sheaf, lanes-innermost, or null where all are 1.
  [[nodiscard]] const S* edge_weights(Index sheaf) const noexcept {
    return learners_.empty() ? nullptr : learners_[static_cast<std::size_t>(sheaf)].edge_weights();
  }
  /// Calls use(sheaf, mask) for the masks of the learners' inputs.
  template <class Use>
  void for_masks(const Use& use) {
    for (std::size_t s = 0; s < inputs_.size(); ++s) use(static_cast<Index>(s), inputs_[s].mask());
  }

  /// See LayerSegments. Learners and their inputs share arrays as sheaves do.
  void set_memory(Index length, bool compresses, bool keep) {
    const LayerSegments segments(stack_.count(), length, compresses);
    keeps_ = keep && compresses;
    const bool changed = stack_.set_memory(segments, keep, [this](Index s, std::vector<Buffer<S>*>& list) {
      if (!learners_.empty()) learners_[static_cast<std::size_t>(s)].list_memory(list);
    });
    if (!changed) return;
    dropped_.end();
    if (!segments.shares()) return;
    Index s = 0;
    for (DropoutLayer<S>& input : inputs_) dropped_.add({&input.kept()}, segments.set(s++));
  }
  /// Before backward() of a sheaf; see SheafStack.
  void restore(Index sheaf, Execution execution) {
    stack_.restore(sheaf, execution);
    if (is_learned<Family> && inputs_[static_cast<std::size_t>(sheaf)].dropped()) dropped_.restore(sheaf, execution);
  }

  /// See SheafLearner.
  void work_in(S* memory) noexcept {
    for (Learner& learner : learners_) {
      if constexpr (requires { learner.work_in(memory); }) learner.work_in(memory);
    }
  }

  void infer(Execution, const SheafSourceWeights<const S>&, const MatrixView<const S>&, S* = nullptr) {}

  /// Builds the sheaf input.sheaf from input.x.
  void build(Execution execution, const SheafSourceWeights<const S>& weights, const SheafInput<S>& input);
  /// The maps of a block of edges that the last build() of a sheaf has made.
  void map_block(Index sheaf, Index block, Map (&map)[2]) const {
    for (int side = 0; side < 2; ++side) {
      P raw[detail::array_size(PointMap<Family>::size)];
      if constexpr (is_learned<Family>) {
        detail::load_lanes<PointMap<Family>::size>(learners_[static_cast<std::size_t>(sheaf)].raw(block, side), raw);
      }
      point_.map(raw, map[side]);
      if (stalks_ != nullptr) stalks_->template mask<Family>(block, side, map[side]);
    }
  }

  void begin_backward(Execution, double, bool = false) {}

  /// Adds to the derivatives of the learner's weights and to x_bar (n × h), from gradient().
  ///
  /// \param work  n × h, overwritten
  void backward(Execution execution, const SheafSourceWeights<const S>& weights, const SheafInput<S>& input,
                double, const MatrixView<S>& x_bar, const MatrixView<S>& work,
                const SheafSourceWeights<S>& weights_bar);

  void finish_backward(Execution, const SheafSourceWeights<const S>&, const MatrixView<S>&, const MatrixView<S>&,
                       const SheafSourceWeights<S>&, const S* = nullptr) {}

 private:
  PointMap<Family> point_;
  const StalkMasks<S>* stalks_ = nullptr;
  Stack stack_;
  std::vector<Learner> learners_;
  std::vector<DropoutLayer<S>> inputs_;
  ArraysInTurn<S> dropped_;  ///< outputs of inputs_ where something is dropped
  bool keeps_ = false;       ///< are these kept in 16 bits?
};

template <RestrictionMapFamily Family, class S, class Maps>
PointSource<Family, S, Maps>::PointSource(const GraphType& graph, const Blocks& blocks,
                                          const PointMap<Family>& point, Index sheaves,
                                          const typename Maps::Scaling& normalisation,
                                          const SheafLearnerOptions& learner)
    : point_(point), stack_(graph, blocks, sheaves, normalisation) {
  if constexpr (is_learned<Family>) {
    learners_.reserve(static_cast<std::size_t>(sheaves));
    for (Index s = 0; s < sheaves; ++s) {
      learners_.emplace_back(graph, blocks, learner);
      if constexpr (requires { stack_.edge_memory(0); }) {
        learners_.back().set_raw_bar(stack_.edge_memory(learners_[0].raw_bar_numbers()), true);
        learners_.back().share_work(learners_[0]);
      }
      inputs_.emplace_back(graph.node_count(), learner.inputs);
    }
  }
}

template <RestrictionMapFamily Family, class S, class Maps>
void PointSource<Family, S, Maps>::build(Execution execution, const SheafSourceWeights<const S>& weights,
                                         const SheafInput<S>& input) {
  if constexpr (requires { stack_.take(input.sheaf, execution); }) stack_.take(input.sheaf, execution);
  if constexpr (is_learned<Family>) {
    const std::size_t s = static_cast<std::size_t>(input.sheaf);
    if (input.dropout.active()) dropped_.take(input.sheaf, execution, keeps_);
    inputs_[s].forward(execution, input.x, input.dropout);
    learners_[s].forward(execution, weights.learners[s], inputs_[s].output());
  }
  stack_[input.sheaf].build(execution, edge_weights(input.sheaf), false,
                            [&](Index block, Map(&map)[2]) { map_block(input.sheaf, block, map); });
}

template <RestrictionMapFamily Family, class S, class Maps>
void PointSource<Family, S, Maps>::backward(Execution execution, const SheafSourceWeights<const S>& weights,
                                            const SheafInput<S>& input, double, const MatrixView<S>& x_bar,
                                            const MatrixView<S>& work, const SheafSourceWeights<S>& weights_bar) {
  if constexpr (is_learned<Family>) {
    constexpr int size = PointMap<Family>::size;
    const std::size_t s = static_cast<std::size_t>(input.sheaf);
    Learner& learner = learners_[s];
    gradient().weight_bar.fill(S(0));
    stack_[input.sheaf].backward(
        execution, learner.edge_weights(), gradient(),
        [&](Index block, Map(&map)[2]) { map_block(input.sheaf, block, map); },
        [&](Index block, int side, const Map& map, Map& map_bar) {
          if (stalks_ != nullptr) stalks_->template mask<Family>(block, side, map_bar);
          P raw[detail::array_size(size)], raw_bar[detail::array_size(size)];
          detail::load_lanes<size>(learner.raw(block, side), raw);
          point_.backward(raw, map, map_bar, raw_bar);
          detail::store_lanes<size>(raw_bar, learner.raw_bar(block, side));
        });
    learner.set_edge_weights_bar(gradient().weight_bar);
    const DropoutLayer<S>& layer = inputs_[s];
    const bool dropped = layer.dropped();
    learner.backward(execution, weights.learners[s], layer.output(), weights_bar.learners[s],
                     dropped ? work : x_bar, !dropped);
    if (dropped) layer.backward(execution, work, x_bar);
  }
}

}  // namespace sheafnn::layers
