/// \file
/// Seconds of the epochs of a training, as training itself runs them.
#pragma once

#include <chrono>
#include <sheafnn/bsnn/trainer.hpp>
#include <vector>

#include "models/registry.hpp"

namespace benchmarks {

/// What training for a number of epochs showed.
struct TrainingEpochs {
  std::vector<double> seconds;  ///< of every epoch but the first and the last
  sheafnn::TrainResult result;
};

/// Trains on the first split of the data.
///
/// \param epochs   at least 3
/// \param threads  0: as many as the graph is worth
[[nodiscard]] inline TrainingEpochs train_for(const programs::ModelEntry& entry, const sheafnn::Dataset& data,
                                              const programs::NetworkOptions& model, bool bayesian,
                                              sheafnn::Index epochs, int threads) {
  sheafnn::TrainOptions train;
  train.epochs = epochs;
  train.patience = epochs;
  train.threads = threads;
  TrainingEpochs r;
  using Clock = std::chrono::steady_clock;
  Clock::time_point last;
  train.on_epoch = [&](const sheafnn::EpochReport& report) {
    const Clock::time_point now = Clock::now();
    // The first has no predecessor, and none of the next epoch runs beside the last.
    if (report.epoch > 0 && report.epoch + 1 < epochs)
      r.seconds.push_back(std::chrono::duration<double>(now - last).count());
    last = now;
  };
  entry.train({data, data.splits[0], model, train, bayesian, 0, {}}, r.result);
  return r;
}

}  // namespace benchmarks
