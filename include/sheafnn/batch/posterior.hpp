/// \file
/// The posterior of the restriction maps on the device, for a batch of runs: its parameters from the sheaf
/// learner, the sum of its KL, and the derivatives of both (on the host bsnn/variational_sheaf.hpp).
#pragma once

#include "sheafnn/batch/array.hpp"
#include "sheafnn/batch/column_sums.hpp"
#include "sheafnn/batch/encoder.hpp"
#include "sheafnn/batch/sheaf.hpp"
#include "sheafnn/batch/sheaf_learner.hpp"

namespace sheafnn::batch {

/// Buffers and passes of the posterior of all runs.
template <class Executor, class Family, class S>
class BatchPosterior {
 public:
  using Q = Posterior<Family>;

  BatchPosterior() = default;
  BatchPosterior(Executor& executor, const GraphView<S>& graph, Index runs,
                 RotationParametrisation parametrisation)
      : graph_(graph),
        runs_(runs),
        parametrisation_(parametrisation),
        parameters_(executor, "posterior", runs * graph.pairs() * Q::parameter_size),
        kl_(executor, "posterior", runs * graph.pairs()),
        kl_tree_(executor, runs, graph.pairs(), 1) {}

  /// Per incident pair.
  [[nodiscard]] PairArray<S> parameters() noexcept {
    return {parameters_.data(), graph_.pairs(), 1, graph_.pairs() * Q::parameter_size};
  }
  /// KL over all incident pairs; nothing is left of it for models without.
  [[nodiscard]] const ColumnTree<Executor, S>& kl() const noexcept { return kl_tree_; }

  /// The parameters, and KL per pair, from what the learner reads.
  ///
  /// \param beside  parts that share a launch
  template <class... Beside>
  void infer(Executor& executor, const ParameterView<S>& view, BatchSheafLearner<Executor, S>& learner,
             const S* embedding, const Beside&... beside) {
    learner.project(executor, embedding);
    const auto pairs = learner.project_pairs();
    const ActivatePairs<Family, S> activate{learner.raw(), parameters(), parametrisation_, kl_.data(),
                                            graph_.pairs()};
    if (learner.has_hidden_layers()) {
      executor.launch_together(pairs, beside...);
      learner.finish_hidden(executor, view);
      executor.launch(graph_.pairs(), runs_, activate);
    } else {
      executor.launch_together(Items{pairs.items, pairs.groups,
                                     ProjectPosterior<Family, S>{pairs.kernel, activate}},
                               beside...);
    }
  }

  /// From the derivatives of the blocks of `sheaves` sheaves of each instance to the learner's raw_bar().
  ///
  /// \param closed_form  the KL term's; otherwise KL per pair is estimated from the maps drawn
  [[nodiscard]] Teams<BackwardSampledEdges<Family, S>> backward(const Run* runs, const Pass& pass, Index sheaves,
                                                                BatchSheaf<Executor, Family, S>& sheaf,
                                                                BatchSheafLearner<Executor, S>& learner,
                                                                bool closed_form) {
    using Edges = BackwardSampledEdges<Family, S>;
    const int lanes = Edges::lanes_for(graph_, pass.copies * sheaves);
    return {graph_.edges, runs_, lanes,
            Edges{graph_, sheaf.view(), sheaf.gradient(), runs, pass.copies, sheaves, learner.raw(), parameters(),
                  learner.raw_bar(), parametrisation_, learner.edge_weight(), learner.edge_factor(),
                  learner.edge_logit_bar(), closed_form, kl_.data(), lanes}};
  }

  /// The first step of the KL's sum, nothing unless `wanted`; then finish_kl().
  [[nodiscard]] Items<ColumnSums<S>> begin_kl(bool wanted) {
    return wanted ? kl_tree_.begin(kl_.data()) : Items<ColumnSums<S>>{};
  }
  void finish_kl(Executor& executor, bool wanted) {
    if (wanted) kl_tree_.finish(executor);
  }

 private:
  GraphView<S> graph_{};
  Index runs_ = 0;
  RotationParametrisation parametrisation_{};
  Array<Executor, S> parameters_, kl_;
  ColumnTree<Executor, S> kl_tree_;
};

}  // namespace sheafnn::batch
