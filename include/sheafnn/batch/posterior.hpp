/// \file
/// The posterior of the restriction maps for a batch of runs. It has its parameters from the sheaf learner, the sum of its
/// KL, and the derivatives of both. For one network: layers/variational_sheaf.hpp.
#pragma once

#include "sheafnn/batch/array.hpp"
#include "sheafnn/batch/column_sums.hpp"
#include "sheafnn/batch/encoder.hpp"
#include "sheafnn/batch/sheaf.hpp"
#include "sheafnn/batch/sheaf_learner.hpp"
#include "sheafnn/posterior/around_given.hpp"

namespace sheafnn::batch::detail {

/// Buffers and passes of the posterior of all runs. \tparam View  of the graph
template <class Executor, SheafPosterior Q, class S, class View = GraphView<S>>
class BatchPosterior {
 public:
  using Family = typename Q::family;
  using Learner = BatchSheafLearner<Executor, S, View>;

  BatchPosterior() = default;
  /// \param given_weight  edge weights that are given, m per run, or null
  BatchPosterior(Executor& executor, const View& graph, Index runs, const Q& posterior,
                 const CentreMaps<Q, S>& centre = {}, const S* given_weight = nullptr)
      : graph_(graph),
        runs_(runs),
        posterior_(posterior),
        centre_(centre),
        given_weight_(given_weight),
        parameters_(executor, "posterior", runs * graph.pairs() * Q::parameter_size),
        kl_(executor, "posterior", runs * graph.pairs()),
        kl_tree_(executor, runs, graph.pairs(), 1) {}

  /// Edge weights, m per run; null: 1.
  [[nodiscard]] const S* edge_weight(const Learner& learner) const noexcept {
    return given_weight_ != nullptr ? given_weight_ : learner.edge_weight();
  }
  /// Per incident pair.
  [[nodiscard]] PairArray<S> parameters() noexcept {
    return {parameters_.data(), graph_.pairs(), 1, graph_.pairs() * Q::parameter_size};
  }
  /// KL over all incident pairs; empty for models without.
  [[nodiscard]] const ColumnTree<Executor, S>& kl() const noexcept { return kl_tree_; }
  /// KL of every incident pair, run by run.
  [[nodiscard]] const S* kl_of_pairs() const noexcept { return kl_.data(); }

  /// The parameters, and KL per pair, from what the learner reads.
  ///
  /// \param others  parts that share a launch
  template <class... Others>
  void infer(Executor& executor, const ParameterView<S>& view, Learner& learner, const S* embedding,
             const Others&... others) {
    learner.project(executor, view, embedding);
    const auto pairs = learner.project_pairs();
    const ActivatePairs<Q, S> activate{learner.raw(), parameters(), posterior_, kl_.data(), graph_.pairs()};
    if (learner.projects_raw()) {
      executor.launch_together(Items{pairs.items, pairs.groups,
                                     ProjectPosterior<Q, S, decltype(pairs.kernel)>{pairs.kernel, activate}},
                               others...);
    } else {
      executor.launch_together(pairs, others...);
      learner.finish_hidden(executor, view);
      executor.launch(graph_.pairs(), runs_, activate);
    }
  }

  /// Computes the learner's raw_bar() from the derivatives of the blocks of `sheaves` sheaves of each instance.
  ///
  /// \param closed_form  the KL term's; otherwise KL per pair is estimated from the maps drawn
  /// \param noise        explicit noise that the maps were drawn with, or null
  [[nodiscard]] Teams<BackwardSampledEdges<Q, S, View>> backward(const Run* runs, const Pass& pass, Index sheaves,
                                                                 BatchSheaf<Executor, Family, S, View>& sheaf,
                                                                 Learner& learner, bool closed_form,
                                                                 const S* noise) {
    using Edges = BackwardSampledEdges<Q, S, View>;
    const int lanes = Edges::lanes_for(graph_, pass.copies * sheaves);
    return {graph_.pairs(), runs_, lanes,
            Edges{graph_, sheaf.view(), sheaf.gradient(), runs, pass.copies, sheaves, learner.raw(),
                  learner.raw_bar(), maps(runs, pass, sheaves, noise), edge_weight(learner), learner.edge_factor(),
                  learner.edge_logit_bar(), closed_form, kl_.data(), lanes,
                  1 / static_cast<double>(graph_.pairs()), 1 / static_cast<double>(pass.copies * sheaves)}};
  }
  /// The maps of a pass.
  ///
  /// \param noise  explicit noise instead of the streams', or null
  [[nodiscard]] SampledMaps<Q, S, View> maps(const Run* runs, const Pass& pass, Index sheaves, const S* noise) {
    return {graph_, runs, pass, parameters(), posterior_, noise, sheaves, centre_};
  }

  /// The first step of the KL's sum, nothing unless `needed`; then finish_kl().
  [[nodiscard]] Teams<ColumnSums<S>> begin_kl(bool needed) {
    return needed ? kl_tree_.begin(kl_.data()) : Teams<ColumnSums<S>>{};
  }
  void finish_kl(Executor& executor, bool needed) {
    if (needed) kl_tree_.finish(executor);
  }

 private:
  View graph_{};
  Index runs_ = 0;
  Q posterior_{};
  CentreMaps<Q, S> centre_{};
  const S* given_weight_ = nullptr;
  Array<Executor, S> parameters_, kl_;
  ColumnTree<Executor, S> kl_tree_;
};

/// The posterior of a kind of model, and nothing of models that do not sample.
template <class Executor, class Model, bool Sampled, class View = GraphView<typename Model::Scalar>>
struct PosteriorOf {
  using type = BatchPosterior<Executor, typename sheafnn::detail::DrawsOf<typename Model::Posterior>::type,
                              typename Model::Scalar, View>;
};
template <class Executor, class Model, class View>
struct PosteriorOf<Executor, Model, false, View> {
  struct type {};
};

}  // namespace sheafnn::batch::detail
