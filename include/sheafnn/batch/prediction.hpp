/// \file
/// Prediction on an executor: class probabilities of every node and their uncertainty, as sheafnn::predict gives
/// them on the CPU (bsnn/prediction.hpp).
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "sheafnn/batch/network.hpp"
#include "sheafnn/bsnn/prediction.hpp"

namespace sheafnn::batch {

/// Predicts every node of a graph, which need not be the one the model was trained on.
///
/// \param features  n × p with the p of the model; treated here as its plan says (ModelOptions::feature_plan)
/// \throws std::invalid_argument  an option out of range, or features that do not fit
template <class Executor, BatchModel<Executor> Model>
[[nodiscard]] Prediction predict(Executor& executor, const Model& model, const GraphOf<Model>& graph,
                                 const NodeFeatures& features, const PredictOptions& options = {}) {
  using S = typename Model::Scalar;
  require_between("samples", options.samples, 1, 32768);
  const Index n = graph.node_count(), classes = model.options().classes;
  const std::vector<std::int32_t> labels(static_cast<std::size_t>(n));
  const std::vector<std::uint8_t> roles(static_cast<std::size_t>(n));
  using Network = BatchNetwork<Executor, Model>;
  BatchSize size;
  size.copies = detail::max_copies(model, graph, 1, Network::draws(model) ? options.samples : 1);
  Network network(executor, model, graph, features, {labels, roles}, size, false);
  network.parameters().upload(model.parameters().values().view());
  Run run;
  run.seed = options.seed;
  run.epoch = options.epoch;
  network.runs().upload(std::span<const Run>(&run, 1));
  uncertainty::SampledPredictionBuilder builder(n, classes);
  network.evaluate(options.samples, [&](const Pass& pass) {
    std::vector<S> drawn = network.output().log_probabilities().download();
    for (S& value : drawn) value = std::exp(value);
    for (Index copy = 0; copy < pass.copies; ++copy) builder.add(drawn.data() + copy * n * classes);
  });
  Prediction r;
  static_cast<uncertainty::SampledPrediction&>(r) = builder.result();
  r.class_count = classes;
  for (Index u = 0; u < n; ++u) {
    r.label.push_back(static_cast<std::int32_t>(sheafnn::detail::most_probable(r.probabilities, classes, u)));
  }
  return r;
}

}  // namespace sheafnn::batch
