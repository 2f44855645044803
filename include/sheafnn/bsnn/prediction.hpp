/// \file
/// Prediction: class probabilities of every node, averaged over posterior samples, and their uncertainty.
///
/// Source: paper, prediction by Monte Carlo averaging; math.md "Uncertainty".
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "sheafnn/bsnn/network.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/graph/dataset.hpp"
#include "sheafnn/nn/softmax.hpp"
#include "sheafnn/uncertainty/metrics.hpp"
#include "sheafnn/uncertainty/sampling.hpp"

namespace sheafnn {

/// How predict() averages.
struct PredictOptions {
  Index samples = 3;        ///< posterior samples K, 1 … 32768; deterministic models draw one
  std::uint64_t seed = 0;   ///< of the samples
  std::uint32_t epoch = 0;  ///< addresses the noise: the best epoch's number reproduces its evaluation
  int threads = 0;          ///< 0: as many as the graph is worth; results do not depend on it
};

/// What is predicted for each of n nodes.
struct Prediction : SampledPrediction {
  Index class_count = 0;            ///< C
  std::vector<std::int32_t> label;  ///< most probable class, n
};

/// Predicts every node of a graph, which need not be the one the model was trained on.
///
/// \param features  n × p with the p of the model; row-normalised here if the model says so
/// \throws std::invalid_argument  an option out of range, or features that do not fit
template <class Model>
[[nodiscard]] Prediction predict(const Model& model, const Graph& graph, const NodeFeatures& features,
                                 const PredictOptions& options = {}) {
  using S = typename Model::Scalar;
  require_between("samples", options.samples, 1, 32768);
  require(options.threads >= 0, "threads", options.threads,
          "must be at least 0 (0: as many as the graph is worth)");
  const Index n = graph.node_count(), classes = model.options().classes;
  Network<Model> network(model, graph, features,
                         options.threads > 0 ? options.threads : suggested_threads(model, graph));
  SampledPredictionBuilder builder(n, classes);
  std::vector<S> probabilities(static_cast<std::size_t>(n * classes));
  network.begin({.seed = options.seed, .epoch = options.epoch});
  network.draw_samples(options.samples, [&](const MatrixView<S>& outputs) {
    log_softmax_rows(network.execution(), n, classes, outputs.data(), outputs.stride());
    for (Index u = 0; u < n; ++u) {
      for (Index c = 0; c < classes; ++c) {
        probabilities[static_cast<std::size_t>(u * classes + c)] = std::exp(outputs(u, c));
      }
    }
    builder.add(probabilities.data());
  });
  Prediction r;
  static_cast<SampledPrediction&>(r) = builder.result();
  r.class_count = classes;
  for (Index u = 0; u < n; ++u) {
    r.label.push_back(static_cast<std::int32_t>(detail::most_probable(r.probabilities, classes, u)));
  }
  return r;
}

/// As above, of a dataset.
template <class Model>
[[nodiscard]] Prediction predict(const Model& model, const Dataset& data, const PredictOptions& options = {}) {
  return predict(model, data.graph, data.features, options);
}

}  // namespace sheafnn
