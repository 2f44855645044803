/// \file
/// predict_links(), predict_edges(): what a trained model predicts for any pairs of nodes, averaged over posterior
/// samples, and its uncertainty. Source: math: "Uncertainty", "Links".
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "sheafnn/bsnn/edge_loss.hpp"
#include "sheafnn/bsnn/prediction.hpp"
#include "sheafnn/uncertainty/sampling.hpp"

namespace sheafnn {

/// What is predicted for each of T pairs: class probabilities, T × C, their entropy, mutual information, … and the most
/// probable class.
struct EdgePrediction : uncertainty::SampledPrediction {
  Index class_count = 0;            ///< C
  std::vector<std::int32_t> label;  ///< T
};

/// What is predicted for each of T pairs of nodes: are they linked?
struct LinkPrediction : uncertainty::SampledPrediction {
  std::vector<double> link;           ///< T: the probability, the second column of `probabilities`
  std::vector<std::int32_t> ranking;  ///< T: the pairs, the most probable first; ties keep their order
};

namespace detail {

/// Calls use(scores, row of each pair) for every sample.
template <class Model, class Use>
void for_sampled_scores(const Model& model, const GraphOf<Model>& graph, const NodeFeatures& features,
                        std::span<const Edge> pairs, const PairHeadOptions& head, const PredictOptions& options,
                        const Use& use) {
  check_pairs(pairs, graph.node_count());
  require(!pairs.empty(), "pairs", 0, "at least one is needed");
  PairScorer<Model> scorer;
  bool begun = false;
  for_sampled_outputs(model, graph, features, {}, options, [&](auto& network, const auto& outputs) {
    if (!begun) scorer.begin(network, head, {pairs.begin(), pairs.end()});
    begun = true;
    use(scorer.scores(network, outputs), scorer.row_of());
  });
}

/// Class probabilities of pairs over the samples.
template <class Model>
[[nodiscard]] uncertainty::SampledPrediction sampled_classes(const Model& model, const GraphOf<Model>& graph,
                                                             const NodeFeatures& features,
                                                             std::span<const Edge> pairs, Index class_count,
                                                             PairScore score, const PredictOptions& options) {
  using S = typename Model::Scalar;
  require(class_count >= 2, "class_count", class_count, "must be at least 2");
  const Index count = static_cast<Index>(pairs.size());
  uncertainty::SampledPredictionBuilder builder(count, class_count);
  Buffer<S> logits(count * class_count);
  for_sampled_scores(model, graph, features, pairs, class_head(score, class_count), options,
                     [&](const auto& scores, const auto& row_of) {
                       copy_logits(scores, row_of, MatrixView<S>(logits.data(), count, class_count));
                       layers::log_softmax_rows(Execution(1), count, class_count, logits.data(), class_count);
                       for (S& one : logits) one = std::exp(one);
                       builder.add(logits.data());
                     });
  return builder.result();
}

}  // namespace detail

/// Probabilities that pairs of nodes are linked, by a model trained with link_loss().
///
/// \param graph  the graph that the network reads, EdgeTargets::graph
/// \param score  the score of the training
/// \throws std::invalid_argument  as predict(), a pair of a node with itself, or a model without parameters of this
///                                score
template <class Model>
[[nodiscard]] LinkPrediction predict_links(const Model& model, const GraphOf<Model>& graph,
                                           const NodeFeatures& features, std::span<const Edge> pairs,
                                           PairScore score = PairScore::bilinear,
                                           const PredictOptions& options = {}) {
  LinkPrediction r;
  static_cast<uncertainty::SampledPrediction&>(r) =
      detail::sampled_classes(model, graph, features, pairs, 2, score, options);
  for (std::size_t t = 0; t < pairs.size(); ++t) r.link.push_back(r.probabilities[2 * t + 1]);
  r.ranking.resize(pairs.size());
  std::iota(r.ranking.begin(), r.ranking.end(), 0);
  std::stable_sort(r.ranking.begin(), r.ranking.end(), [&](std::int32_t a, std::int32_t b) {
    return r.link[static_cast<std::size_t>(a)] > r.link[static_cast<std::size_t>(b)];
  });
  return r;
}

/// Classes of pairs of nodes, by a model trained with edge_class_loss().
///
/// \throws std::invalid_argument  as predict_links()
template <class Model>
[[nodiscard]] EdgePrediction predict_edges(const Model& model, const GraphOf<Model>& graph,
                                           const NodeFeatures& features, std::span<const Edge> pairs,
                                           Index class_count, PairScore score = PairScore::bilinear,
                                           const PredictOptions& options = {}) {
  EdgePrediction r;
  static_cast<uncertainty::SampledPrediction&>(r) =
      detail::sampled_classes(model, graph, features, pairs, class_count, score, options);
  r.class_count = class_count;
  for (Index t = 0; t < static_cast<Index>(pairs.size()); ++t) {
    r.label.push_back(static_cast<std::int32_t>(detail::most_probable(r.probabilities, class_count, t)));
  }
  return r;
}

/// What a model trained with edge_regression_loss() predicts for pairs: means over the samples, and their variance.
struct EdgeValues {
  std::vector<double> mean, variance;  ///< T × k each
};

/// \param columns  k
/// \throws std::invalid_argument  as predict_links()
template <class Model>
[[nodiscard]] EdgeValues predict_edge_values(const Model& model, const GraphOf<Model>& graph,
                                             const NodeFeatures& features, std::span<const Edge> pairs,
                                             Index columns = 1, PairScore score = PairScore::bilinear,
                                             const PredictOptions& options = {}) {
  require(columns >= 1, "columns", columns, "must be at least 1");
  const std::size_t size = pairs.size() * static_cast<std::size_t>(columns);
  EdgeValues r{std::vector<double>(size), std::vector<double>(size)};
  double samples = 0;
  detail::for_sampled_scores(model, graph, features, pairs, value_head(score, columns), options,
                             [&](const auto& scores, const auto& row_of) {
                               ++samples;
                               for (std::size_t i = 0; i < size; ++i) {
                                 const std::size_t k = i % static_cast<std::size_t>(columns);
                                 const double value = static_cast<double>(
                                     scores(row_of[i / static_cast<std::size_t>(columns)], static_cast<Index>(k)));
                                 const double difference = value - r.mean[i];
                                 r.mean[i] += difference / samples;  // Welford's update
                                 r.variance[i] += difference * (value - r.mean[i]);
                               }
                             });
  for (double& one : r.variance) one /= samples;
  return r;
}

}  // namespace sheafnn
