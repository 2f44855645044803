/// \file
/// Features of the nodes between the layers of a trained network, for pictures, probes and nearest neighbours.
///
///     const auto x = sheafnn::layer_features(model, data);
///     x.after(0);             // H, the encoder's output: n × d'f
///     x.after(x.layers);      // X_{L+1}, what the output layer reads: Y = X_{L+1} W_outᵀ + b_out
///
/// after(l) is X_{l+1} of math: "The model". In Bayesian models all features except H depend on the sheaves that are drawn.
/// The mean over several samples is the Monte Carlo mean of the features, E[X_{l+1}]. With one readout layer, which is
/// affine, the mean of X_{L+1} gives the mean of the raw outputs.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "sheafnn/bsnn/network.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/core/views.hpp"
#include "sheafnn/graph/dataset.hpp"

namespace sheafnn {

/// Which samples layer_features() averages. With the same seed and epoch, predict() draws the same ones.
struct LayerFeaturesOptions {
  Index first_sample = 0;   ///< 0 … 32767
  Index samples = 1;        ///< number of samples, at most 32768 − first_sample; deterministic models draw one
  std::uint64_t seed = 0;   ///< of the samples
  std::uint32_t epoch = 0;  ///< addresses the noise, as in PredictOptions
  int threads = 0;          ///< 0: chosen by the size of the graph; results do not depend on it
};

/// Features of n nodes after 0 … L diffusion layers: d' stalk coordinates with f channels each, channels innermost.
struct LayerFeatures {
  Index layers = 0, nodes = 0, coordinates = 0, channels = 0;  ///< L, n, d', f
  std::vector<double> values;                                  ///< (L + 1) × n × d' × f

  /// X_{layers+1}, a row of d' · f values per node. \throws std::invalid_argument  not between 0 and L
  [[nodiscard]] MatrixView<const double> after(Index layer_count) const {
    require_between("layer_count", layer_count, 0, layers);
    const Index row = coordinates * channels;
    return {values.data() + layer_count * nodes * row, nodes, row};
  }
};

/// The features of every node, without dropout; converted to double.
///
/// \param features  n × p with the p of the model; treated here as its plan says (ModelOptions::feature_plan)
/// \throws std::invalid_argument  an option out of range, features that do not fit, or a result that is not finite
template <class Model>
[[nodiscard]] LayerFeatures layer_features(const Model& model, const GraphOf<Model>& graph, const NodeFeatures& features,
                                           const LayerFeaturesOptions& options = {}) {
  require_between("first_sample", options.first_sample, 0, 32767);
  require_between("samples", options.samples, 1, 32768 - options.first_sample);
  Network<Model> network(model, graph, features, detail::reading_execution(model, graph, options.threads));
  const auto pass = network.begin({.seed = options.seed, .epoch = options.epoch});
  LayerFeatures r;
  const Index samples = network.sample_count(options.samples);
  for (Index k = 0; k < samples; ++k) {
    pass.draw(options.first_sample + k);
    if (k == 0) {
      const auto first = network.features_after(0);
      r = {model.options().layers, first.nodes(), first.coordinates(), first.channels(), {}};
      r.values.assign(static_cast<std::size_t>((r.layers + 1) * first.size()), 0.0);
    }
    double* to = r.values.data();
    for (Index l = 0; l <= r.layers; ++l) {
      const auto from = network.features_after(l);
      for (Index i = 0; i < from.size(); ++i) *to++ += static_cast<double>(from.data()[i]);
    }
  }
  const Index row = r.coordinates * r.channels;
  for (std::size_t i = 0; i < r.values.size(); ++i) {
    double& value = r.values[i];
    value /= static_cast<double>(samples);
    if (std::isfinite(value)) continue;
    const Index u = static_cast<Index>(i) / row;
    throw_invalid_argument(detail::concat("features of node ", u % r.nodes, " after ", u / r.nodes, " layers"),
                           value, "must be finite; parameters or features of the graph may be too large or NaN");
  }
  return r;
}
/// The same for the graph and features of a dataset.
template <class Model>
[[nodiscard]] LayerFeatures layer_features(const Model& model, const NodeDataset<GraphOf<Model>>& data,
                                           const LayerFeaturesOptions& options = {}) {
  return layer_features(model, data.graph, data.features, options);
}

}  // namespace sheafnn
