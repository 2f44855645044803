/// \file
/// The models of the program graphs, which the Python package has as well. Each has a family of maps with its stalk
/// dimension, is compiled apart and chosen at run time.
#pragma once

#include <sheafnn/bsnn/pooled_options.hpp>
#include <sheafnn/bsnn/prediction.hpp>
#include <sheafnn/bsnn/train_options.hpp>
#include <sheafnn/graph/graph_set.hpp>
#include <string_view>
#include <vector>

#include "models/trained_network.hpp"

namespace graph_program {

/// Default options of a network and of its training. They were chosen by the validation graphs of three public sets
/// (docs/graphs.md, "What to expect").
struct Defaults {
  sheafnn::PooledOptions network;
  sheafnn::TrainOptions train;

  Defaults() {
    network.channels = 16;
    network.layers = 4;
    network.pooling = sheafnn::Pooling::sum;
    network.layer_norm = true;
    network.readout_layers = 2;
    train.input_dropout = train.dropout = 0;
    train.weight_decay = train.sheaf_decay = 0;
    train.learning_rate = 0.005;
    train.batch_size = 32;
    train.epochs = 200;
    train.patience = 50;
  }
};

/// One training. It learns labels as classes or targets by regression, whichever the set has.
struct Job {
  const sheafnn::GraphSet& set;
  const sheafnn::Split& split;          ///< of graphs
  const sheafnn::PooledOptions& model;  ///< features and classes as the set has them
  const sheafnn::TrainOptions& train;   ///< with the seed, of the initial weights as well
  bool bayesian = false;
};
using Outcome = programs::NetworkOutcome;
using Trained = programs::TrainedNetwork;

struct ModelEntry {
  std::string_view maps;
  int stalk_dimension;
  Outcome (*train)(const Job& job);
  /// Classes of all graphs.
  sheafnn::Prediction (*predict)(const Trained& model, const sheafnn::GraphSet& set,
                                 const sheafnn::PredictOptions& options);
  /// Predictions of all graphs for each of K posterior samples, K × G × outputs, of a regression.
  std::vector<double> (*sample_numbers)(const Trained& model, const sheafnn::GraphSet& set,
                                        const sheafnn::PredictOptions& options);
};

/// \throws std::invalid_argument  a model that this build does not contain; the message lists the models of the build
[[nodiscard]] const ModelEntry& find_model(std::string_view maps, int stalk_dimension);

}  // namespace graph_program
