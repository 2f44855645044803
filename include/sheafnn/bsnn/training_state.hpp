/// \file
/// TrainingState: everything that a training needs to resume as if it had never stopped. It holds no random numbers,
/// since they are functions of seed, purpose and epoch.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sheafnn/bsnn/conventions.hpp"
#include "sheafnn/bsnn/epoch_report.hpp"
#include "sheafnn/bsnn/stop_on.hpp"
#include "sheafnn/core/config.hpp"

namespace sheafnn {

/// A training after history.size() epochs. Parameters and moments have P values in the order of the model's
/// ParameterSet; single precision is kept exactly.
struct TrainingState {
  std::uint64_t seed = 0;               ///< TrainOptions::seed
  std::vector<EpochReport> history;     ///< of the epochs that are finished, at least one
  std::vector<double> parameters;       ///< P values after the last epoch
  std::vector<double> first_moment;     ///< P, Adam's m; Adam has taken one step per epoch
  std::vector<double> second_moment;    ///< P, Adam's v
  Index best_epoch = 0;                 ///< in [0, history.size())
  std::vector<double> best_parameters;  ///< P, after the best epoch
  /// n × C, mean predictions of the best epoch for validation and test nodes; for all nodes if there are neither.
  std::vector<double> best_predictions;
  std::optional<StopOn> stop_on;  ///< TrainOptions::stop_on; unknown in files of versions that did not write it
  Index conventions = detail::conventions_version;  ///< version of the file from which the state was read
};

}  // namespace sheafnn
