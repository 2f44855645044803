/// \file
/// The models of the program links, which the Python package has as well: diagonal maps of stalk dimension 2, compiled apart.
#pragma once

#include <map>
#include <optional>
#include <sheafnn/bsnn/edge_prediction.hpp>
#include <sheafnn/bsnn/options.hpp>
#include <sheafnn/bsnn/train_options.hpp>
#include <sheafnn/graph/dataset.hpp>
#include <sheafnn/graph/edge_split.hpp>
#include <span>
#include <string>

#include "models/trained_network.hpp"

namespace links_program {

/// Options, where nothing else is said.
struct Defaults {
  std::optional<sheafnn::PairScore> score;  ///< nothing: PairTask::default_score
  sheafnn::EdgeSplitOptions split;
  sheafnn::ModelOptions network;
  sheafnn::TrainOptions train;

  Defaults() {
    network.channels = 8;
    network.layers = 2;
    network.classes = 16;
  }
};

/// One training: of links or labels of edges, or of numbers.
struct Job {
  const sheafnn::Dataset& data;  ///< its graph and labels are not read
  const sheafnn::EdgeTargets& links;
  sheafnn::PairScore score;
  const sheafnn::ModelOptions& model;
  const sheafnn::TrainOptions& train;  ///< with the seed, of the initial weights as well
  bool bayesian = false;
  sheafnn::Index class_count = 2;
  std::span<const double> values = {};            ///< one number for each target; empty: labels
  std::map<std::string, std::string> notes = {};  ///< what the checkpoint stores of the targets
};
/// The checkpoint names the score, and keeps its parameters.
using Outcome = programs::NetworkOutcome;
/// \throws as sheafnn::train()
[[nodiscard]] Outcome train(const Job& job);

using Trained = programs::TrainedNetwork;
/// \param graph  that the network sees
/// \throws std::runtime_error  a checkpoint without the score of links
[[nodiscard]] sheafnn::LinkPrediction predict(const Trained& model, const sheafnn::Graph& graph,
                                              const sheafnn::NodeFeatures& features,
                                              std::span<const sheafnn::Edge> pairs,
                                              const sheafnn::PredictOptions& options);

/// Classes of edges. \param class_count  of the training \throws as predict()
[[nodiscard]] sheafnn::EdgePrediction predict_classes(const Trained& model, const sheafnn::Graph& graph,
                                                      const sheafnn::NodeFeatures& features,
                                                      std::span<const sheafnn::Edge> pairs,
                                                      sheafnn::Index class_count,
                                                      const sheafnn::PredictOptions& options);
/// Numbers of edges, as the loss has them. \throws as predict()
[[nodiscard]] sheafnn::EdgeValues predict_values(const Trained& model, const sheafnn::Graph& graph,
                                                 const sheafnn::NodeFeatures& features,
                                                 std::span<const sheafnn::Edge> pairs,
                                                 const sheafnn::PredictOptions& options);

}  // namespace links_program
