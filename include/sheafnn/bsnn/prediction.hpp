/// \file
/// Prediction: class probabilities of every node, averaged over posterior samples, and their uncertainty.
///
/// Source: paper, prediction by Monte Carlo averaging; math: "Uncertainty".
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "sheafnn/bsnn/losses.hpp"
#include "sheafnn/bsnn/network.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/core/views.hpp"
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
  int threads = 0;          ///< 0: chosen by the size of the graph; results do not depend on it
};

/// What is predicted for each of n nodes.
struct Prediction : uncertainty::SampledPrediction {
  Index class_count = 0;            ///< C
  std::vector<std::int32_t> label;  ///< most probable class, n
};

namespace detail {

/// Calls use(network, outputs) for every sample's raw outputs, which are finite: of all nodes, n × C, or of some.
///
/// \param nodes  increasing; empty: all
template <class Model, class Use>
void for_sampled_outputs(const Model& model, const GraphOf<Model>& graph, const NodeFeatures& features,
                         std::span<const std::int32_t> nodes, const PredictOptions& options, const Use& use) {
  using S = typename Model::Scalar;
  require_between("samples", options.samples, 1, 32768);
  Network<Model> network(model, graph, features, reading_execution(model, graph, options.threads));
  const auto pass = network.begin({.seed = options.seed, .epoch = options.epoch, .nodes = nodes});
  pass.draw_samples(options.samples, [&](const MatrixView<S>& outputs) {
    for (Index u = 0; u < outputs.rows(); ++u) {
      for (Index c = 0; c < outputs.columns(); ++c) {
        if (std::isfinite(outputs(u, c))) continue;
        throw_invalid_argument(concat("outputs of the model[", u, ", ", c, "]"), outputs(u, c),
                               "must be finite; parameters or features may be too large or NaN");
      }
    }
    use(network, outputs);
  });
}

/// predict() of some nodes, with a row for each. \param nodes  increasing; empty: all
template <class Model>
[[nodiscard]] Prediction predict_nodes(const Model& model, const GraphOf<Model>& graph,
                                       const NodeFeatures& features, std::span<const std::int32_t> nodes,
                                       const PredictOptions& options) {
  using S = typename Model::Scalar;
  const Index n = nodes.empty() ? output_rows<Model>(graph) : static_cast<Index>(nodes.size());
  const Index classes = model.options().classes;
  uncertainty::SampledPredictionBuilder builder(n, classes);
  // On a part of a graph some networks have outputs of its own nodes alone, which come first.
  std::vector<S> probabilities(static_cast<std::size_t>(n * classes), S(1) / static_cast<S>(classes));
  for_sampled_outputs(model, graph, features, nodes, options, [&](auto& network, const MatrixView<S>& outputs) {
    layers::log_softmax_rows(network.execution(), outputs.rows(), classes, outputs.data(), outputs.stride());
    for (Index u = 0; u < outputs.rows(); ++u) {
      for (Index c = 0; c < classes; ++c) {
        probabilities[static_cast<std::size_t>(u * classes + c)] = std::exp(outputs(u, c));
      }
    }
    builder.add(probabilities.data());
  });
  Prediction r;
  static_cast<uncertainty::SampledPrediction&>(r) = builder.result();
  r.class_count = classes;
  for (Index u = 0; u < n; ++u) {
    r.label.push_back(static_cast<std::int32_t>(most_probable(r.probabilities, classes, u)));
  }
  return r;
}

}  // namespace detail

/// Predicts the class of every node of a graph, which need not be the graph of the training. The probabilities are the
/// softmax of the model's outputs, as in a Classification. For other losses there is predict_targets().
///
/// \param features  n × p with the p of the model; treated here as its plan says (ModelOptions::feature_plan)
/// \throws std::invalid_argument  an option out of range, features that do not fit, or outputs that are not finite
template <class Model>
[[nodiscard]] Prediction predict(const Model& model, const GraphOf<Model>& graph, const NodeFeatures& features,
                                 const PredictOptions& options = {}) {
  return detail::predict_nodes(model, graph, features, {}, options);
}

/// The same for the graph and features of a dataset.
template <class Model>
[[nodiscard]] Prediction predict(const Model& model, const NodeDataset<GraphOf<Model>>& data,
                                 const PredictOptions& options = {}) {
  return predict(model, data.graph, data.features, options);
}

/// What a loss predicts from the outputs, averaged over the posterior samples. Class probabilities (Classification), a
/// probability for each label (Multilabel), means (Regression), or what your own loss defines.
///
/// \param loss  the loss of the training; its targets are checked and do not count
/// \returns     n × C, row-major
/// \throws std::invalid_argument  as predict()
template <class Model, Loss<typename Model::Scalar> LossType>
[[nodiscard]] std::vector<double> predict_targets(const Model& model, const GraphOf<Model>& graph,
                                                  const NodeFeatures& features, const LossType& loss,
                                                  const PredictOptions& options = {}) {
  const Index n = detail::output_rows<Model>(graph), outputs = model.options().classes;
  loss.validate(n, outputs);
  std::vector<double> sums(static_cast<std::size_t>(n * outputs), 0.0);
  const MatrixView<double> view(sums.data(), n, outputs);
  Index samples = 0;
  detail::for_sampled_outputs(model, graph, features, {}, options, [&](auto& network, const auto& sample) {
    loss.predict(network.execution(), sample, network.nodes(), view);
    ++samples;
  });
  for (double& sum : sums) sum /= static_cast<double>(samples);
  return sums;
}

/// What a loss predicts from the outputs of every posterior sample: their mean is predict_targets().
///
/// \param loss  as for predict_targets()
/// \returns     K × n × C, row-major; deterministic models have K = 1
/// \throws std::invalid_argument  as predict()
template <class Model, Loss<typename Model::Scalar> LossType>
[[nodiscard]] std::vector<double> sample_targets(const Model& model, const GraphOf<Model>& graph,
                                                 const NodeFeatures& features, const LossType& loss,
                                                 const PredictOptions& options = {}) {
  const Index n = detail::output_rows<Model>(graph), outputs = model.options().classes;
  loss.validate(n, outputs);
  std::vector<double> samples;
  detail::for_sampled_outputs(model, graph, features, {}, options, [&](auto& network, const auto& sample) {
    const std::size_t end = samples.size();
    samples.resize(end + static_cast<std::size_t>(n * outputs), 0.0);
    loss.predict(network.execution(), sample, network.nodes(),
                 MatrixView<double>(samples.data() + end, n, outputs));
  });
  return samples;
}

/// Central intervals of the predictive mixture of the posterior samples, which contain a number with probability
/// `coverage` if the model is right. math: "Intervals of numbers" (6.13).
///
/// \param loss  the loss of the training, Gaussian or Poisson (target_losses.hpp); its targets are checked and do
///              not count
/// \returns     uncertainty::Intervals with bounds, n × k
/// \throws std::invalid_argument  as predict(), or a coverage outside (0, 1)
template <class Model, Loss<typename Model::Scalar> LossType>
[[nodiscard]] auto predict_intervals(const Model& model, const GraphOf<Model>& graph, const NodeFeatures& features,
                                     const LossType& loss, double coverage, const PredictOptions& options = {}) {
  const std::vector<double> samples = sample_targets(model, graph, features, loss, options);
  const Index one = detail::output_rows<Model>(graph) * model.options().classes;
  return loss.intervals(samples, one > 0 ? static_cast<Index>(samples.size()) / one : 1, coverage);
}

}  // namespace sheafnn
