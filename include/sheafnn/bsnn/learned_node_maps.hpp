/// \file
/// The node maps that a cooperative model has learned: how every node receives, T_u = τ_u P_u, and how it sends,
/// S_u = σ_u R_u.
///
///     const auto maps = sheafnn::learned_node_maps(model, data, {.layer = 2});
///     maps.out.scale[u];    // τ_u: near 0, node u does not receive
///     maps.in.scale[u];     // σ_u: near 0, node u does not send
///
/// Source: math: "Cooperative sheaves", "Bayesian cooperative sheaves".
#pragma once

#include <cmath>
#include <vector>

#include "sheafnn/bsnn/cooperative_network.hpp"
#include "sheafnn/graph/dataset.hpp"

namespace sheafnn {

/// Which maps learned_node_maps() reads.
struct LearnedNodeMapsOptions {
  Index layer =
      0;  ///< 0 … layers − 1; Bayesian models without layer_learners have one distribution for all layers
  int threads = 0;  ///< 0: chosen by the size of the graph; results do not depend on it
};

/// One map of each of n nodes.
struct NodeMapTable {
  std::vector<double> rotation;  ///< n × D × D, row by row; Bayesian: M, the mode
  std::vector<double> scale;     ///< n, at most 10; Bayesian: exp(min(μ, ln 10)), the median
  // Bayesian models have n values in each; otherwise they are empty.
  std::vector<double> concentration;        ///< κ of the rotation, in [0, 1)
  std::vector<double> log_scale_mean;       ///< μ
  std::vector<double> log_scale_deviation;  ///< s; 0 where maps have no scales
};

/// The maps of all nodes, as sources and as targets of arcs.
struct LearnedNodeMaps {
  Index nodes = 0, dimension = 0;  ///< n, D
  NodeMapTable out, in;            ///< T and S
};

namespace detail {

template <int D, bool Bayesian, class S>
[[nodiscard]] NodeMapTable node_map_table(const Network<CooperativeModel<D, Bayesian, S>>& network, MapSide side,
                                          Index layer) {
  NodeMapTable r;
  const Index n = network.graph().node_count();
  if constexpr (Bayesian) {
    using Q = NodeMapPosterior<D>;
    const bool conformal = network.model().options().conformal;
    const auto number = [&](Index u, int k) {
      return static_cast<double>(network.posterior(layer).parameter_of(side, u, k));
    };
    for (Index u = 0; u < n; ++u) {
      for (int k = 0; k < D * D; ++k) r.rotation.push_back(number(u, k % D * D + k / D));
      r.concentration.push_back(number(u, D * D));
      r.log_scale_mean.push_back(number(u, Q::mu));
      r.log_scale_deviation.push_back(conformal ? number(u, Q::sigma) : 0.0);
      using Maps = NodeMaps<D, S>;
      r.scale.push_back(std::exp(std::clamp(number(u, Q::mu), Maps::smallest_log_scale, Maps::largest_log_scale)));
    }
  } else {
    const NodeMaps<D, S>& maps = network.node_maps(layer);
    for (Index u = 0; u < n; ++u) {
      const double scale = static_cast<double>(maps.scale(side, u));
      for (int k = 0; k < D * D; ++k) r.rotation.push_back(static_cast<double>(maps.map(side, u)[k]) / scale);
      r.scale.push_back(scale);
    }
  }
  return r;
}

}  // namespace detail

/// The maps of every node, without dropout. With layer_learners, the distributions of a layer depend on the maps that the
/// layers before it have drawn. This function takes the maps of the first sample.
///
/// \param features  n × p with the p of the model; treated here as its plan says (ModelOptions::feature_plan)
/// \throws std::invalid_argument  an option out of range, or features that do not fit
template <int D, bool Bayesian, class S>
[[nodiscard]] LearnedNodeMaps learned_node_maps(const CooperativeModel<D, Bayesian, S>& model, const Graph& graph,
                                                const NodeFeatures& features,
                                                const LearnedNodeMapsOptions& options = {}) {
  require_between("layer", options.layer, 0, model.options().layers - 1);
  Network<CooperativeModel<D, Bayesian, S>> network(model, graph, features,
                                                    detail::reading_execution(model, graph, options.threads));
  network.begin({}).draw();
  return {graph.node_count(), D, detail::node_map_table(network, layers::MapSide::out, options.layer),
          detail::node_map_table(network, layers::MapSide::in, options.layer)};
}
/// The same for the graph and features of a dataset.
template <int D, bool Bayesian, class S>
[[nodiscard]] LearnedNodeMaps learned_node_maps(const CooperativeModel<D, Bayesian, S>& model, const Dataset& data,
                                                const LearnedNodeMapsOptions& options = {}) {
  return learned_node_maps(model, data.graph, data.features, options);
}

}  // namespace sheafnn
