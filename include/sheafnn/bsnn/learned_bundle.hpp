/// \file
/// The rotations of nodes that a bundle network has learned.
///
///     const auto bundle = sheafnn::learned_bundle(model, data, {.layer = 2});
///     bundle.rotations[…];    // O_u^b, n × B × D × D
///
/// Source: math: "Flat bundles", "Bayesian bundles".
#pragma once

#include <vector>

#include "sheafnn/bsnn/bundle_network.hpp"
#include "sheafnn/graph/dataset.hpp"

namespace sheafnn {

/// Which rotations learned_bundle() reads.
struct LearnedBundleOptions {
  Index layer = 0;  ///< 0 … layers − 1; Bayesian models have one distribution for all layers
  int threads = 0;  ///< 0: chosen by the size of the graph; results do not depend on it
};

/// The rotations of all nodes.
struct LearnedBundle {
  Index nodes = 0, bundles = 0, dimension = 0;  ///< n, B, D
  std::vector<double> rotations;                ///< n × B × D × D, row by row; Bayesian: M, the mode
  std::vector<double> concentrations;           ///< κ, n × B; empty for deterministic models
};

namespace detail {

/// \param network  after begin() and draw()
template <int D, bool Bayesian, class S>
[[nodiscard]] LearnedBundle bundle_table(const Network<BundleModel<D, Bayesian, S>>& network, Index layer) {
  const BundleMaps<D, S>& maps = network.bundle_maps(layer);
  LearnedBundle r{network.graph().node_count(), maps.bundles(), D, {}, {}};
  if constexpr (Bayesian) {
    for (Index i = 0; i < maps.count(); ++i) {
      const auto number = [&](int k) { return static_cast<double>(network.posterior().parameter_of(i, k)); };
      for (int k = 0; k < D * D; ++k) r.rotations.push_back(number(k % D * D + k / D));
      r.concentrations.push_back(number(D * D));
    }
  } else {
    r.rotations.assign(maps.values().begin(), maps.values().end());
  }
  return r;
}

}  // namespace detail

/// The rotations of every node, without dropout.
///
/// \param features  n × p with the p of the model; treated here as its plan says (BundleOptions::feature_plan)
/// \throws std::invalid_argument  an option out of range, or features that do not fit
template <int D, bool Bayesian, class S>
[[nodiscard]] LearnedBundle learned_bundle(const BundleModel<D, Bayesian, S>& model, const Graph& graph,
                                           const NodeFeatures& features,
                                           const LearnedBundleOptions& options = {}) {
  require_between("layer", options.layer, 0, model.options().layers - 1);
  Network<BundleModel<D, Bayesian, S>> network(model, graph, features,
                                               detail::reading_execution(model, graph, options.threads));
  network.begin({}).draw();
  return detail::bundle_table(network, options.layer);
}
/// The same for the graph and features of a dataset.
template <int D, bool Bayesian, class S>
[[nodiscard]] LearnedBundle learned_bundle(const BundleModel<D, Bayesian, S>& model, const Dataset& data,
                                           const LearnedBundleOptions& options = {}) {
  return learned_bundle(model, data.graph, data.features, options);
}

}  // namespace sheafnn
