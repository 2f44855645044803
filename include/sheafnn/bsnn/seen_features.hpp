/// \file
/// The features that a network reads, treated by its model's FeaturePlan or by a plan that is made here.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "sheafnn/bsnn/pass_checks.hpp"
#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/graph/feature_treatment.hpp"
#include "sheafnn/graph/features.hpp"
#include "sheafnn/graph/fit_features.hpp"
#include "sheafnn/graph/graph_of.hpp"
#include "sheafnn/graph/selected_graphs.hpp"
#include "sheafnn/graph/whole_graph.hpp"

namespace sheafnn::detail {

/// The plan of a model with these options; without one, makes a plan for these features. On a part of a graph, all
/// parts call this.
///
/// \throws std::invalid_argument  a graph without nodes, or features that do not fit it or the model's p
template <class Options, class GraphType>
[[nodiscard]] FeaturePlan plan_of(const Options& options, const GraphType& graph, const NodeFeatures& features) {
  // A plan adds its own indicators, whatever indicators the features have.
  const FeaturePlan& plan = options.feature_plan;
  const bool fits = !plan.empty() && features.given_columns() == plan.given_columns();
  check_input(graph.node_count(), features.rows(), fits ? plan.columns() : features.columns(), options.features);
  return plan.empty() ? fit_features(features, options.feature_treatment, part_of(graph)) : plan;
}

/// Writes the features as dense rows. Unchecked: `to` has n × p zeros.
template <class S>
void write_dense(const NodeFeatures& features, S* to) {
  for (Index u = 0; u < features.rows(); ++u, to += features.columns()) {
    for (Index k = features.offsets()[static_cast<std::size_t>(u)];
         k < features.offsets()[static_cast<std::size_t>(u) + 1]; ++k) {
      const std::size_t i = static_cast<std::size_t>(k);
      to[features.column_of()[i]] = static_cast<S>(features.values()[i]);
    }
  }
}

/// Features as a network reads them.
struct SeenFeatures {
  NodeFeatures features;           ///< n × p; on a part of a graph, rows of the halo are empty
  std::vector<Index> first_entry;  ///< on a part, per owned node: index of its first entry in the whole
};

/// \throws std::invalid_argument  as plan_of()
template <class Options, class GraphType>
[[nodiscard]] SeenFeatures seen_features(const Options& options, const GraphType& graph,
                                         const NodeFeatures& features) {
  const FeaturePlan plan = plan_of(options, graph, features);
  SeenFeatures r{plan.apply(features, own_nodes_of(graph)), {}};
  GraphPart* const part = part_of(graph);
  if (part == nullptr) return r;
  const PartNumbers& numbers = part->numbers();
  if (plan.keeps_entries(features)) {
    r.first_entry = numbers.first_entry;
    return r;
  }
  const std::vector<Index> offsets = whole_offsets(*part, r.features);
  for (std::size_t u = 0; u < static_cast<std::size_t>(numbers.own); ++u) {
    r.first_entry.push_back(offsets[static_cast<std::size_t>(numbers.node[u])]);
  }
  return r;
}

/// Gives a model without a plan the plan of its training's features. Takes it away again unless it is kept.
template <class Model>
class PlanOfTraining {
 public:
  /// \param train  nodes or graphs of the training; in a union, only the features of these graphs determine the plan
  /// \throws std::invalid_argument  as plan_of()
  PlanOfTraining(Model& model, const GraphOf<Model>& graph, const NodeFeatures& features,
                 std::span<const std::int32_t> train = {}) {
    if (!model.options().feature_plan.empty()) return;
    if constexpr (requires { Model::output_rows(graph); }) {
      const SelectedGraphs graphs(graph, features, train, false);
      model.set_feature_plan(plan_of(model.options(), graphs.graph(), graphs.features()));
    } else {
      model.set_feature_plan(plan_of(model.options(), graph, features));
    }
    model_ = &model;
  }
  PlanOfTraining(const PlanOfTraining&) = delete;
  PlanOfTraining& operator=(const PlanOfTraining&) = delete;
  ~PlanOfTraining() {
    if (model_ != nullptr) model_->set_feature_plan({});
  }
  void keep() noexcept { model_ = nullptr; }

 private:
  Model* model_ = nullptr;
};

}  // namespace sheafnn::detail
