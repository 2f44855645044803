/// \file
/// ConnectionModel: networks of layers on a connection, a sheaf of orthogonal maps that every network computes from the features
/// before anything is learned (sheaf/connection.hpp).
///
///     using Model = sheafnn::ConnNsd<3>;    // Conn-NSD: diffusion layers without a sheaf learner
///     using Model = sheafnn::BconnNsd<3>;   // F_a = möb(U_a, κ_a) M_a around the connection M, κ_a learned per arc
///
/// A model holds no sheaf: a network computes the sheaf from its own graph and its features after the feature plan. The
/// same data give the same sheaf. On a part of a graph, the parts gather the whole graph and all features on each of them, and
/// share the work. Networks: network.hpp. Source: Sheaf Neural Networks with Connection Laplacians
/// (Barbero et al., arXiv 2206.08702); math: "Connections".
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include "sheafnn/bsnn/connection_options.hpp"
#include "sheafnn/bsnn/model.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/graph/graph_part.hpp"
#include "sheafnn/graph/whole_graph.hpp"
#include "sheafnn/sheaf/connection.hpp"

namespace sheafnn::detail {

/// The last sheaf and the data it was computed from, kept because a training makes several networks of the same data.
template <class Family>
class ConnectionCache {
 public:
  /// The sheaf over this graph, or over the whole that it is a part of. Unchecked: all calls have equal options.
  [[nodiscard]] CellularSheaf<Family> sheaf(const Graph& graph, const NodeFeatures& features,
                                            const ConnectionOptions& options) {
    const std::lock_guard lock(mutex_);
    if (graph.part() == nullptr) return of_whole(graph, features, options, nullptr);
    // Parts have the same whole, so all of them find the sheaf here or none does.
    return of_whole(whole_graph(graph), whole_features(graph, features), options, graph.part());
  }

 private:
  [[nodiscard]] const CellularSheaf<Family>& of_whole(const Graph& graph, const NodeFeatures& features,
                                                      const ConnectionOptions& options, GraphPart* part) {
    if (!sheaf_ || !same(graph, features)) {
      sheaf_.emplace(connection_sheaf<Family>(graph, features, options, hardware_threads(), part));
      features_ = features;
    }
    return *sheaf_;
  }
  [[nodiscard]] bool same(const Graph& graph, const NodeFeatures& features) const {
    const Graph& of = sheaf_->graph();
    const auto equal = [](const auto& a, const auto& b) {
      return std::equal(a.begin(), a.end(), b.begin(), b.end());
    };
    return of.node_count() == graph.node_count() && equal(of.edges(), graph.edges()) &&
           features_.columns() == features.columns() && equal(features_.offsets(), features.offsets()) &&
           equal(features_.column_of(), features.column_of()) && equal(features_.values(), features.values());
  }
  std::mutex mutex_;
  std::optional<CellularSheaf<Family>> sheaf_;
  NodeFeatures features_;
};

/// The model without its sheaf.
template <int D, bool Bayesian, class S>
using ConnectionBase =
    SheafModel<Orthogonal<D>, std::conditional_t<Bayesian, AroundGiven<Orthogonal<D>>, GivenMaps<Orthogonal<D>>>,
               S>;

}  // namespace sheafnn::detail

namespace sheafnn {

/// Architecture and parameters.
///
/// \tparam D         stalk dimension; networks need as many features
/// \tparam Bayesian  whether the maps have distributions around the connection
/// \tparam S         float (default) or double
template <int D, bool Bayesian, std::floating_point S = float>
  requires sheaf::StalkDimension<D>
class ConnectionModel : public detail::ConnectionBase<D, Bayesian, S> {
  using Base = detail::ConnectionBase<D, Bayesian, S>;

 public:
  using typename Base::Family, typename Base::Posterior;
  using Options = ConnectionModelOptions;
  /// The name of the model in checkpoints and programs.
  static constexpr std::string_view kind = Bayesian ? Options::kind.bayesian : Options::kind.deterministic;

  /// Builds the model with initial parameters, as SheafModel does.
  ///
  /// \param seed  selects the initial parameters
  /// \throws std::invalid_argument  an option out of range (see resolve()), learned edge weights, or no edges
  explicit ConnectionModel(const ConnectionModelOptions& options, std::uint64_t seed = 0)
      : ConnectionModel(detail::LayoutOnly{}, options) {
    this->parameters().initialise(seed);
  }
  /// The same model without values of its parameters.
  ConnectionModel(detail::LayoutOnly, const ConnectionModelOptions& options)
      : Base(detail::LaterSheaf{}, options), options_{Base::options(), options.connection} {
    check_ranges(options_.connection);
  }

  [[nodiscard]] const ConnectionModelOptions& options() const noexcept { return options_; }
  /// What happens to the features that networks of the model read. Empty: the first network makes the plan.
  ///
  /// \throws std::invalid_argument  a plan of another number of columns
  void set_feature_plan(FeaturePlan plan) {
    options_.feature_plan = plan;
    Base::set_feature_plan(std::move(plan));
  }
  /// The maps of a graph with these features, which have gone through the feature plan. On a part of a graph: the maps of the whole;
  /// all parts call this.
  ///
  /// \throws std::invalid_argument  as connection_sheaf()
  [[nodiscard]] Posterior posterior_of(const Graph& graph, const NodeFeatures& features) const {
    Posterior r(cache_->sheaf(graph, features, options_.connection));
    detail::set_posterior(options_, r);
    return r;
  }

 private:
  ConnectionModelOptions options_;
  std::shared_ptr<detail::ConnectionCache<Family>> cache_ = std::make_shared<detail::ConnectionCache<Family>>();
};

/// Conn-NSD: diffusion on a connection.
template <int D, std::floating_point S = float>
using ConnNsd = ConnectionModel<D, false, S>;
/// Bayesian Conn-NSD: distributions around a connection.
template <int D, std::floating_point S = float>
using BconnNsd = ConnectionModel<D, true, S>;

}  // namespace sheafnn
