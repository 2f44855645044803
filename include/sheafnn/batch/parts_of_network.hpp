/// \file
/// PartsOfNetwork: what the parts of every BatchNetwork have in common, and CommonArrays: what networks of the same models on
/// the same graph share.
#pragma once

#include <concepts>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "sheafnn/batch/array.hpp"
#include "sheafnn/batch/given_maps.hpp"
#include "sheafnn/batch/graph.hpp"
#include "sheafnn/batch/hypergraph.hpp"
#include "sheafnn/batch/input.hpp"
#include "sheafnn/batch/output.hpp"
#include "sheafnn/batch/run.hpp"
#include "sheafnn/bsnn/edgeless.hpp"
#include "sheafnn/bsnn/options.hpp"
#include "sheafnn/core/config.hpp"
#include "sheafnn/graph/graph_of.hpp"

namespace sheafnn::batch::detail {

/// The graphs of an executor in place of the host's.
template <class Executor, class S, class GraphType>
struct GraphArrays {
  using type = BatchGraph<Executor, S>;
};
template <class Executor, class S>
struct GraphArrays<Executor, S, Hypergraph> {
  using type = BatchHypergraph<Executor, S>;
};

/// What networks of the same models on the same graph have in common. \tparam GraphType  the host's
template <class Executor, class S, class GraphType = Graph>
struct CommonArrays {
  using BatchGraphType = typename GraphArrays<Executor, S, GraphType>::type;

  template <class Model>
  CommonArrays(Executor& executor, const Model& model, const GraphType& host_graph, const NodeFeatures& features,
               Index run_count)
      : plan(fitting_plan(model, host_graph, features)),
        graph(graph_of(executor, model, host_graph)),
        input(executor, plan.apply(features)),
        parameters(executor, "parameters", run_count * model.parameters().size()),
        gradient(executor, "gradients", run_count * model.parameters().size()),
        runs(executor, "runs", run_count) {}

  FeaturePlan plan;  ///< of the features
  BatchGraphType graph;
  InputFeatures<Executor, S> input;
  Array<Executor, S> parameters, gradient;
  Array<Executor, Run> runs;

 private:
  template <class Model>
  [[nodiscard]] static BatchGraphType graph_of(Executor& executor, const Model& model,
                                               const GraphType& host_graph) {
    if constexpr (std::is_same_v<GraphType, Hypergraph>) {
      return BatchGraphType(executor, host_graph, model.options().laplacian);
    } else if constexpr (std::derived_from<typename Model::Options, ModelOptions>) {
      const std::unique_ptr<const Graph> edgeless = sheafnn::detail::without_edges(model.options(), host_graph);
      const Graph& seen = edgeless ? *edgeless : host_graph;
      return BatchGraph<Executor, S>(executor, seen, arc_features_of(model, seen),
                                     sheafnn::detail::has_augmented_filters(model.options()));
    } else {
      return BatchGraph<Executor, S>(executor, host_graph);
    }
  }
};

/// The arrays of CommonArrays, and the maps that the models are given.
template <class Executor, class Model>
struct NetworkArrays : CommonArrays<Executor, typename Model::Scalar, GraphOf<Model>> {
  using S = typename Model::Scalar;

  NetworkArrays(Executor& executor, const Model& model, const GraphOf<Model>& host_graph,
                const NodeFeatures& features, Index run_count)
      : CommonArrays<Executor, S, GraphOf<Model>>(executor, model, host_graph, features, run_count),
        given(executor, model, host_graph, this->plan, features, run_count) {}

  GivenArrays<Executor, typename Model::Posterior, S> given;
};

/// Neither copied nor moved: recordings hold addresses of its arrays.
///
/// \tparam CommonType  CommonArrays, or derived from it
template <class Executor, class S, class CommonType>
struct PartsOfNetwork {
  using Common = CommonType;

  /// Unchecked: the size of the batch.
  template <class Model>
  PartsOfNetwork(const Model& model, std::shared_ptr<Common> shared, const BatchSize& size)
      : common(std::move(shared)), batch(size), parameter_count(model.parameters().size()) {}
  PartsOfNetwork(const PartsOfNetwork&) = delete;
  PartsOfNetwork& operator=(const PartsOfNetwork&) = delete;

  [[nodiscard]] const Run* runs() const noexcept { return common->runs.data(); }
  /// KL of all distributions, or empty, and how many the KL term is the mean over.
  [[nodiscard]] const ColumnTree<Executor, S>& kl_sums() const noexcept { return kl_tree; }
  [[nodiscard]] Index pairs() const noexcept { return kl_count; }

  /// Part of a launch: from partial sums to the gradients of all runs.
  [[nodiscard]] Teams<SumGradients<S>> partial_sums() const {
    return sum_gradients(sums, batch.runs, view, ranges.data());
  }

  std::shared_ptr<Common> common;
  BatchSize batch;
  Index parameter_count;
  PartialSums sums;
  std::optional<BatchOutput<Executor, S>> output;
  Index kl_count = 0;               ///< distributions of a run
  ColumnTree<Executor, S> kl_tree;  ///< empty of models that do not sample
  Array<Executor, S> x_bar;         ///< the derivative of X_l
  Array<Executor, S> arena;
  Array<Executor, PartialSum> ranges;
  ParameterView<S> view;

 protected:
  /// `count` distributions of a run have a KL term.
  void count_kl(Executor& executor, Index count) {
    kl_count = count;
    kl_tree = ColumnTree<Executor, S>(executor, batch.runs, count, 1);
  }
  /// After all layers have reserved their partial sums.
  void end(Executor& executor) {
    arena = Array<Executor, S>(executor, "partial sums", batch.trains() ? batch.runs * sums.arena() : 0);
    ranges = Array<Executor, PartialSum>(executor, "partial sums", sums.ranges());
    view = {common->parameters.data(), common->gradient.data(), parameter_count, arena.data(), sums.arena()};
  }
};

}  // namespace sheafnn::batch::detail
