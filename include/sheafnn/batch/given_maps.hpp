/// \file
/// The given maps of the models of a batch, in the memory of an executor: one copy for all runs (for one network
/// layers/given_lanes.hpp).
#pragma once

#include <cstdint>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "sheafnn/batch/array.hpp"
#include "sheafnn/batch/input.hpp"
#include "sheafnn/batch/sheaf_kernels.hpp"
#include "sheafnn/bsnn/model.hpp"
#include "sheafnn/graph/feature_treatment.hpp"
#include "sheafnn/graph/features.hpp"
#include "sheafnn/graph/graph.hpp"
#include "sheafnn/graph/graph_of.hpp"
#include "sheafnn/posterior/around_given.hpp"

namespace sheafnn::batch::detail {

/// Models without given maps have no such arrays.
template <class Executor, class Posterior, class S>
struct GivenArrays {
  template <class Model>
  GivenArrays(Executor&, const Model&, const GraphOf<Model>&, const FeaturePlan&, const NodeFeatures&, Index) {}
};

/// See the file comment.
template <class Executor, class Posterior, class S>
  requires(has_given_maps<Posterior> || is_around_given<Posterior>)
class GivenArrays<Executor, Posterior, S> {
 public:
  using Family = typename Posterior::family;
  using Draws = typename sheafnn::detail::DrawsOf<Posterior>::type;

  /// \param plan  of the features, from which some models compute their maps
  /// \throws std::invalid_argument  maps over another graph, or a number of sheaves that does not fit the model
  template <class Model>
  GivenArrays(Executor& executor, const Model& model, const Graph& graph, const FeaturePlan& plan,
              const NodeFeatures& features, Index run_count)
      : GivenArrays(executor, graph, posterior_of(model, graph, plan, features), model.sheaf_count(), run_count) {}

  /// Different sheaves of a pass.
  [[nodiscard]] Index count() const noexcept { return count_; }
  [[nodiscard]] StoredMaps<Family, S> maps() const noexcept { return {map_.data(), pairs_}; }
  /// Builds the sheaves that nothing changes, once for all instances.
  template <class Sheaves>
  void build(Executor& executor, Sheaves& sheaves) const requires has_given_maps<Posterior> {
    for (Index s = 0; s < count_; ++s) sheaves.build(executor, Pass{}, {0, s, 1}, maps(), edge_weight(s));
  }
  /// Edge weights, m for every sheaf, or around given maps m for every run; null: 1.
  [[nodiscard]] const S* edge_weight(Index sheaf = 0) const noexcept {
    return edge_weight_.size() == 0 ? nullptr : edge_weight_.data() + sheaf * (pairs_ / 2);
  }
  /// What is drawn around the maps.
  [[nodiscard]] const Draws& draws() const noexcept requires is_around_given<Posterior> { return draws_; }
  [[nodiscard]] CentreMaps<Draws, S> centre() const noexcept requires is_around_given<Posterior> {
    return {maps()};
  }
  /// The labels of the edges as features of the incident pairs, a 1 in the column of the label; null: no labels.
  [[nodiscard]] const InputFeatures<Executor, S>* labels() const noexcept { return labels_ ? &*labels_ : nullptr; }

 private:
  GivenArrays(Executor& executor, const Graph& graph, const Posterior& posterior, Index sheaves, Index run_count)
      : pairs_(graph.arc_count()), draws_(posterior) {
    const GivenMaps<Family>& given = maps_of(posterior);
    if constexpr (is_around_given<Posterior>) sheaves = 1;
    given.check_count(sheaves);
    given.check_graph(graph);
    if constexpr (is_around_given<Posterior>) {
      if (posterior.source() == DeviationSource::labels)
        labels_.emplace(executor, pair_labels(posterior.labels()));
    }
    count_ = given.count();
    std::vector<S> maps, weights;
    bool weighted = false;
    for (Index s = 0; s < count_; ++s) {
      const Index m = graph.edge_count();
      for (int k = 0; k < sheaf::BlockSizes<Family>::map; ++k) {
        for (int side = 0; side < 2; ++side) {
          for (Index e = 0; e < m; ++e) {
            const Index forward = graph.forward_arc(e), arc = side == 0 ? forward : graph.reverse(forward);
            maps.push_back(static_cast<S>(given[s].map(arc).data()[k]));
          }
        }
      }
      if constexpr (sheaf::may_have_edge_weights<Family>) {
        for (Index e = 0; e < m; ++e) {
          weights.push_back(static_cast<S>(given[s].edge_weight(e)));
          weighted = weighted || given[s].edge_weight(e) != 1;
        }
      }
    }
    if constexpr (is_around_given<Posterior>) {  // kernels of learned distributions read the weights of their run
      const std::vector<S> one = weights;
      for (Index run = 1; run < run_count; ++run) weights.insert(weights.end(), one.begin(), one.end());
    }
    map_ = Array<Executor, S>(executor, "given maps", maps);
    if (weighted) edge_weight_ = Array<Executor, S>(executor, "given maps", weights);
  }
  /// See labels().
  [[nodiscard]] static NodeFeatures pair_labels(const EdgeLabels& labels) {
    std::vector<std::int32_t> of_pair = labels.of_edge;  // both sides of an edge have its label
    of_pair.insert(of_pair.end(), labels.of_edge.begin(), labels.of_edge.end());
    std::vector<Index> offsets(of_pair.size() + 1);
    std::iota(offsets.begin(), offsets.end(), Index{0});
    std::vector<double> ones(of_pair.size(), 1.0);
    return NodeFeatures::from_csr(std::move(offsets), std::move(of_pair), std::move(ones), labels.count);
  }
  template <class Model>
  [[nodiscard]] static Posterior posterior_of(const Model& model, [[maybe_unused]] const Graph& graph,
                                              [[maybe_unused]] const FeaturePlan& plan,
                                              [[maybe_unused]] const NodeFeatures& features) {
    if constexpr (requires { model.posterior_of(graph, features); }) {
      return model.posterior_of(graph, plan.apply(features));
    } else {
      return model.posterior();
    }
  }
  [[nodiscard]] static const GivenMaps<Family>& maps_of(const Posterior& posterior) {
    if constexpr (is_around_given<Posterior>) {
      return posterior.centre();
    } else {
      return posterior;
    }
  }

  Index pairs_ = 0, count_ = 0;
  Draws draws_;
  Array<Executor, S> map_, edge_weight_;
  std::optional<InputFeatures<Executor, S>> labels_;
};

}  // namespace sheafnn::batch::detail
