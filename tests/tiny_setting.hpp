/// \file
/// The training pass of the tiny tasks, and the settings of networks and passes that the tests walk through.
#pragma once

#include <string>

#include "network_passes.hpp"
#include "tiny_task.hpp"

namespace tiny {

/// A pass over the training nodes with λ = 0.3. Refers to the task.
inline test::TrainingPass<double> training_pass(const Task& task) {
  test::TrainingPass<double> r;
  r.labels = task.labels;
  r.nodes = task.train;
  r.seed = 9;
  r.kl_weight = 0.3;
  return r;
}

/// Architecture and pass of one check.
template <class Options>
struct SettingOf {
  std::string name;
  Options model;
  double input_dropout = 0, dropout = 0;
  sheafnn::KlEstimator kl_estimator = sheafnn::KlEstimator::automatic;
  Index samples = 1;
  bool only_nodes = false;

  /// The pass. Refers to the task.
  [[nodiscard]] test::TrainingPass<double> pass(const Task& task) const {
    test::TrainingPass<double> r = training_pass(task);
    r.epoch = 10;
    r.input_dropout = input_dropout;
    r.dropout = dropout;
    r.kl_estimator = kl_estimator;
    r.samples = samples;
    r.only_nodes = only_nodes;
    return r;
  }
};

}  // namespace tiny
