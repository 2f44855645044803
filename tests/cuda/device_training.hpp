/// \file
/// What the tests of training on the GPU share: their models, how far two loss curves are apart, and the comparison with
/// the host. Two orders of summation differ by 1e-15 (double) and 1e-7 (single precision) after twenty epochs, relative to
/// the losses; the device's elementary functions and fused products add to that: a hundred times as much is allowed.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "sheafnn/batch/host_executor.hpp"
#include "sheafnn/cuda.hpp"
#include "worst.hpp"

namespace device_training {

using namespace sheafnn;

template <class Model>
Model model_for(const Dataset& data, std::uint64_t seed, Index channels = 8) {
  ModelOptions options;
  options.features = data.feature_count();
  options.classes = data.class_count;
  options.channels = channels;
  options.layers = 2;
  return Model(options, seed);
}

inline double curve_difference(const TrainResult& a, const TrainResult& b, std::size_t epochs) {
  double worst = 0;
  REQUIRE(a.history.size() >= epochs);
  REQUIRE(b.history.size() >= epochs);
  for (std::size_t i = 0; i < epochs; ++i) {
    worst = test::worse(worst, std::abs(a.history[i].loss - b.history[i].loss) / std::abs(b.history[i].loss));
    worst = test::worse(worst, std::abs(a.history[i].validation_loss - b.history[i].validation_loss) /
                                   std::abs(b.history[i].validation_loss));
  }
  return worst;
}

struct Trained {
  TrainResult result;
  std::vector<double> parameters;
  std::vector<std::int32_t> labels;
};

template <class Model, class Executor>
Trained trained(Executor& executor, const Dataset& data, const TrainOptions& options) {
  Model model = model_for<Model>(data, 3);
  Trained r;
  r.result = batch::train(executor, model, data, data.splits.at(0), options);
  r.parameters.assign(model.parameters().values().begin(), model.parameters().values().end());
  PredictOptions predict;
  predict.samples = 5;
  r.labels = batch::predict(executor, model, data.graph, data.features, predict).label;
  return r;
}

template <class Model>
void compare_with_host(const Dataset& data, double bound) {
  batch::DeviceExecutor device;
  batch::HostExecutor host;
  TrainOptions options;
  options.epochs = 40;  // the best ones are later than 20 and, on the larger graph, not the last
  options.seed = 9;
  const Trained own = trained<Model>(device, data, options), other = trained<Model>(host, data, options);
  CHECK(curve_difference(own.result, other.result, 20) <= bound);
  CHECK(std::abs(own.result.best_epoch - other.result.best_epoch) <= 2);
  std::size_t same = 0;
  for (std::size_t u = 0; u < own.labels.size(); ++u) same += own.labels[u] == other.labels[u] ? 1 : 0;
  CHECK(static_cast<double>(same) >= 0.99 * static_cast<double>(own.labels.size()));
  // Once more, to the bit.
  const Trained again = trained<Model>(device, data, options);
  CHECK(again.parameters == own.parameters);
  CHECK(again.result.test_nll == own.result.test_nll);
}

}  // namespace device_training
