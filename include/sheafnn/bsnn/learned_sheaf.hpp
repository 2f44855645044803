/// \file
/// The sheaf that a model has learned, as a CellularSheaf, for whatever works on sheaves: Laplacian, harmonic space,
/// spectrum, files.
///
///     const auto sheaf = sheafnn::learned_sheaf(model, data);
///     const sheafnn::SheafLaplacian laplacian(sheaf, model.options().normalisation);
///
/// Maps and edge weights are converted to double. Rotations in single precision are orthogonal to single precision
/// only and are replaced by the nearest ones in double (Family::nearest). Edge weights are at least least_edge_weight.
/// Source: math: "The model".
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <type_traits>

#include "sheafnn/bsnn/network.hpp"
#include "sheafnn/graph/dataset.hpp"
#include "sheafnn/layers/edge_blocks.hpp"
#include "sheafnn/posterior/posterior_parameters.hpp"
#include "sheafnn/sheaf/cellular_sheaf.hpp"

namespace sheafnn {

/// Does the model have a distribution of sheaves? Bayesian models do, unless their maps are fixed (Identity).
template <class Model>
inline constexpr bool has_sheaf_posterior = Model::bayesian&& sheaf::is_learned<typename Model::Family>;

/// Which sheaf learned_sheaf() reads.
struct LearnedSheafOptions {
  Index layer = 0;  ///< 0 … layers − 1; without effect where all layers share their maps or posterior
  int threads = 0;  ///< 0: chosen by the size of the graph
};

/// Which sheaf draw_sheaf() draws. With the same seed and epoch, predict() uses it for this sample and layer.
struct DrawSheafOptions {
  Index sample = 0;  ///< 0 … 32767
  Index layer = 0;   ///< 0 … layers − 1; linear models have one sheaf for all layers
  std::uint64_t seed = 0;
  std::uint32_t epoch = 0;
  int threads = 0;  ///< 0: chosen by the size of the graph
};

/// Replaces smaller edge weights of a learned sheaf. Edge weights of saturated learners underflow to 0, which a
/// CellularSheaf refuses. Its square is negligible compared to the square of any other weight.
inline constexpr double least_edge_weight = 1e-150;

namespace detail {

/// A lane of a map, over double.
template <class Family, class PackMap>
[[nodiscard]] typename Family::template Map<double> map_of_lane(const PackMap& map, int lane) {
  using S = scalar_of_t<typename PackMap::Scalar>;
  typename Family::template Map<S> own;
  for (Index k = 0; k < own.size(); ++k) own.data()[k] = map.data()[k].lane(lane);
  const typename Family::template Map<double> wide = own.template cast<double>();
  if constexpr (!std::is_same_v<S, double> && requires { Family::nearest(wide); }) {
    return Family::nearest(wide);  // draws of a large κ are orthogonal up to ε/(1 − κ) only
  } else {
    return wide;
  }
}

/// \param weights    lanes-innermost edge weights, or null
/// \param map_block  map_block(block, map) sets both sides' maps of a block of edges
template <class Model, class MapBlock>
[[nodiscard]] CellularSheaf<typename Model::Family> gather_sheaf(
    const Graph& graph, [[maybe_unused]] const typename Model::Scalar* weights, const MapBlock& map_block) {
  using Family = typename Model::Family;
  using S = typename Model::Scalar;
  CellularSheaf<Family> sheaf(graph);
  if constexpr (is_learned<Family>) {
    const EdgeBlocks<S> blocks(graph);
    for (Index block = 0; block < blocks.block_count(); ++block) {
      typename SheafBlocks<Family, S>::Map map[2];
      map_block(block, map);
      for (int side = 0; side < 2; ++side) {
        for (int lane = 0; lane < blocks.lane_count(block); ++lane) {
          const Index arc = blocks.arcs(block, side)[lane];
          sheaf.set_map(arc, map_of_lane<Family>(map[side], lane));
        }
      }
    }
    if constexpr (may_have_edge_weights<Family>) {
      // Copies edge weights from the lanes-innermost layout to one value per edge. A product of two sigmoids may
      // underflow to 0.
      for (Index e = 0; weights != nullptr && e < graph.edge_count(); ++e) {
        const double weight = static_cast<double>(weights[e]);
        sheaf.set_edge_weight(e, weight >= 0 && weight < least_edge_weight ? least_edge_weight : weight);
      }
    }
  }
  return sheaf;
}

template <class Model>
void require_layer(const Model& model, Index layer) {
  require_between("layer", layer, 0, model.options().layers - 1);
  require_edges(model.options());
}

/// The mean of the posterior after begin().
template <class Model>
[[nodiscard]] CellularSheaf<typename Model::Family> mean_sheaf(const Network<Model>& network) {
  const auto& source = network.sheaf_source();
  return gather_sheaf<Model>(network.graph(), source.edge_weights(),
                             [&](Index block, auto& map) { source.mean_block(block, map); });
}
/// The sheaf of a layer in a pass. It is drawn from the posterior after begin(); for a model without a posterior, a
/// draw of this pass computes it.
template <class Model>
[[nodiscard]] CellularSheaf<typename Model::Family> sheaf_of_pass(
    const Network<Model>& network, [[maybe_unused]] const ForwardPass<typename Model::Scalar>& pass,
    [[maybe_unused]] Index sample, Index layer) {
  const auto& source = network.sheaf_source();
  const Index sheaf = std::min(layer, source.stack().count() - 1);
  return gather_sheaf<Model>(network.graph(), source.edge_weights(sheaf), [&](Index block, auto& map) {
    if constexpr (has_sheaf_posterior<Model>) {
      source.sample_block({pass.of_sheaf(sheaf, sample)}, block, map);
    } else {
      source.map_block(sheaf, block, map);
    }
  });
}
/// The sheaf of a layer of a model without a posterior.
template <class Model>
[[nodiscard]] CellularSheaf<typename Model::Family> point_sheaf(Network<Model>& network, Index layer) {
  if constexpr (is_learned<typename Model::Family>) network.forward();
  return sheaf_of_pass(network, {}, 0, layer);
}
/// What posterior_parameters() returns, after begin().
template <class Model>
[[nodiscard]] PosteriorParameters parameters_of(const Network<Model>& network) {
  using Family = typename Model::Family;
  using S = typename Model::Scalar;
  const Graph& graph = network.graph();
  const CellularSheaf<Family> mean = mean_sheaf(network);
  PosteriorParameters r;
  r.map_size = Family::map_size;
  for (Index a = 0; a < graph.arc_count(); ++a) {
    const auto& map = mean.map(a);
    for (Index i = 0; i < map.rows(); ++i) {
      for (Index j = 0; j < map.cols(); ++j) r.location.push_back(map(i, j));
    }
  }
  const auto& posterior = network.sheaf_source().posterior();
  const EdgeBlocks<S> blocks(graph);
  for (const ParameterRange& range : spread_parameters<typename Model::Posterior>) {
    NamedMatrix& matrix = r.spread.emplace_back();
    matrix.name = std::string(range.name);
    matrix.columns = range.count;
    matrix.values.resize(static_cast<std::size_t>(graph.arc_count() * range.count));
    for (Index block = 0; block < blocks.block_count(); ++block) {
      for (int side = 0; side < 2; ++side) {
        for (int lane = 0; lane < blocks.lane_count(block); ++lane) {
          const S* from = posterior.parameter(block, side) + range.first * blocks.width + lane;
          double* to = matrix.values.data() + blocks.arcs(block, side)[lane] * range.count;
          for (int k = 0; k < range.count; ++k) to[k] = static_cast<double>(from[k * blocks.width]);
        }
      }
    }
  }
  for (Index e = 0; e < graph.edge_count(); ++e) r.edge_weights.push_back(mean.edge_weight(e));
  return r;
}

}  // namespace detail

/// The sheaf of a layer, without dropout. For Bayesian models it is the posterior's mean, which all layers share; for
/// deterministic models, the maps that this layer computes from its features.
///
/// \param features  n × p with the p of the model; treated here as its plan says (ModelOptions::feature_plan)
/// \throws std::invalid_argument  an option out of range, features that do not fit, or learned values that are invalid
///         for a sheaf, such as NaN
template <class Model>
[[nodiscard]] CellularSheaf<typename Model::Family> learned_sheaf(const Model& model, const Graph& graph,
                                                                  const NodeFeatures& features,
                                                                  const LearnedSheafOptions& options = {}) {
  detail::require_layer(model, options.layer);
  Network<Model> network(model, graph, features, detail::reading_execution(model, graph, options.threads));
  if constexpr (has_sheaf_posterior<Model>) {
    network.begin({});
    return detail::mean_sheaf(network);
  } else {
    return detail::point_sheaf(network, options.layer);
  }
}
/// The same for the graph and features of a dataset.
template <class Model>
[[nodiscard]] CellularSheaf<typename Model::Family> learned_sheaf(const Model& model, const Dataset& data,
                                                                  const LearnedSheafOptions& options = {}) {
  return learned_sheaf(model, data.graph, data.features, options);
}

/// The sheaf drawn for a sample and layer: the maps of predict() with the same seed and epoch. For deterministic
/// models, every sample is the learned sheaf.
///
/// \throws std::invalid_argument  as learned_sheaf()
template <class Model>
[[nodiscard]] CellularSheaf<typename Model::Family> draw_sheaf(const Model& model, const Graph& graph,
                                                               const NodeFeatures& features,
                                                               const DrawSheafOptions& options = {}) {
  using S = typename Model::Scalar;
  detail::require_layer(model, options.layer);
  ForwardPass<S> pass;
  pass.seed = options.seed;
  pass.epoch = options.epoch;
  pass.sample = options.sample;
  Network<Model> network(model, graph, features, detail::reading_execution(model, graph, options.threads));
  network.begin(pass);
  if constexpr (has_sheaf_posterior<Model>) {
    return detail::sheaf_of_pass(network, pass, options.sample, options.layer);
  } else {
    return detail::point_sheaf(network, options.layer);
  }
}
/// The same for the graph and features of a dataset.
template <class Model>
[[nodiscard]] CellularSheaf<typename Model::Family> draw_sheaf(const Model& model, const Dataset& data,
                                                               const DrawSheafOptions& options = {}) {
  return draw_sheaf(model, data.graph, data.features, options);
}

/// The posterior's parameters of every incident pair: the mean, the spread parameters that the posterior names
/// (spread_parameters, posterior/sheaf_posterior.hpp), and the edge weights.
///
/// \param options  all layers share the posterior: the layer is only checked
/// \throws std::invalid_argument  as learned_sheaf()
template <class Model>
  requires has_sheaf_posterior<Model>
[[nodiscard]] PosteriorParameters posterior_parameters(const Model& model, const Graph& graph,
                                                       const NodeFeatures& features,
                                                       const LearnedSheafOptions& options = {}) {
  detail::require_layer(model, options.layer);
  Network<Model> network(model, graph, features, detail::reading_execution(model, graph, options.threads));
  network.begin({});
  return detail::parameters_of(network);
}
/// The same for the graph and features of a dataset.
template <class Model>
  requires has_sheaf_posterior<Model>
[[nodiscard]] PosteriorParameters posterior_parameters(const Model& model, const Dataset& data,
                                                       const LearnedSheafOptions& options = {}) {
  return posterior_parameters(model, data.graph, data.features, options);
}

}  // namespace sheafnn
