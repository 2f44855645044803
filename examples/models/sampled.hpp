/// \file
/// Trainings on drawn neighbours, of the program large_graph and of the Python package.
#pragma once

#include <map>
#include <sheafnn/bsnn/network_options.hpp>
#include <sheafnn/bsnn/sampling_options.hpp>
#include <sheafnn/bsnn/train_options.hpp>
#include <sheafnn/graph/dataset.hpp>
#include <sheafnn/graph/graph_rows.hpp>
#include <string>

#include "models/class_names.hpp"

namespace programs {

/// Options, where nothing else is said.
struct SampledDefaults {
  sheafnn::SamplingOptions sampling;
  sheafnn::NetworkOptions network;
  sheafnn::TrainOptions train;

  SampledDefaults() {
    sheafnn::for_each_kind(network, [](auto& options) {
      if constexpr (requires { options.layers = 2; }) options.layers = 2;
    });
    train.epochs = 10;
    train.batch_size = 512;
    train.input_dropout = 0;
    train.dropout = 0.2;
    train.weight_decay = train.sheaf_decay = 0;
  }
};

/// One training.
struct SampledJob {
  const sheafnn::GraphRows& rows;
  const std::string& name;  ///< of the rows
  const sheafnn::Split& split;
  const sheafnn::NetworkOptions& model;
  const sheafnn::SamplingOptions& sampling;
  const sheafnn::TrainOptions& train;  ///< with the seed, of the initial weights as well
  bool bayesian = true;
};

/// What its checkpoint stores about it, in addition to the model.
[[nodiscard]] inline std::map<std::string, std::string> checkpoint_notes(const SampledJob& job,
                                                                         sheafnn::Index best_epoch) {
  const sheafnn::Dataset* const data = job.rows.dataset();
  if (data != nullptr) return checkpoint_notes(*data, best_epoch);
  return checkpoint_notes(job.name, best_epoch);
}

}  // namespace programs
