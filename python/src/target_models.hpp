/// \file
/// Networks for targets that are not classes, chosen at run time; one entry for each network, kind of maps and stalk
/// dimension, as programs::ModelEntry.
#pragma once

#include <filesystem>
#include <sheafnn/bsnn/prediction.hpp>
#include <sheafnn/bsnn/train_options.hpp>
#include <sheafnn/graph/dataset.hpp>
#include <sheafnn/io/tensor_file.hpp>
#include <string_view>
#include <vector>

#include "models/registry.hpp"
#include "target_loss.hpp"

namespace python {

/// One training.
struct TargetJob {
  const sheafnn::Dataset& data;  ///< graph, features and names; its labels are not read
  const sheafnn::Split& split;
  const TargetLoss& loss;
  const programs::NetworkOptions& model;
  const sheafnn::TrainOptions& train;  ///< with the seed, of the initial weights as well
  bool bayesian = true;
};
/// What is left of it.
struct TargetOutcome {
  sheafnn::Index parameters = 0;
  sheafnn::io::TensorFile checkpoint;
  std::vector<double> predictions;  ///< of all nodes, in the best epoch: n × outputs
};

struct TargetModelEntry {
  std::string_view bayesian, deterministic;  ///< what parameters call its two kinds
  std::string_view maps;
  int stalk_dimension;
  TargetOutcome (*train)(const TargetJob& job, sheafnn::TrainResult& result);
  /// What the network of a checkpoint predicts: n × outputs; `loss` needs no targets that are known.
  std::vector<double> (*predict)(const std::filesystem::path& path, const sheafnn::io::TensorFile& checkpoint,
                                 bool bayesian, const sheafnn::Dataset& data, const TargetLoss& loss,
                                 const sheafnn::PredictOptions& options);
};

/// The entry of a model of this build; programs::find_model() explains what is wrong with other models.
[[nodiscard]] const TargetModelEntry& find_target_model(std::string_view model, std::string_view maps,
                                                        int stalk_dimension);

}  // namespace python
