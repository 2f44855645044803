/// \file
/// Training on the GPU with class weights, without validation nodes, and of many models side by side.
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "device_training.hpp"
#include "sheafnn/graph/karate.hpp"

namespace test_device_training_batch {

using namespace sheafnn;
using batch::DeviceExecutor;
using batch::HostExecutor;
using device_training::curve_difference;
using device_training::model_for;

TEST_CASE("class weights, unknown labels and decoupled decay on the GPU follow the host") {
  using Model = Bsnn<Diagonal<2>, double>;
  Dataset data = karate_club();
  data.labels[static_cast<std::size_t>(data.splits[0].train[1])] = -1;
  data.labels[static_cast<std::size_t>(data.splits[0].test[0])] = -1;
  const std::vector<double> weights = {0.5, 2};
  const Classification loss(data.labels, weights);
  TrainOptions options;
  options.epochs = 20;
  options.weight_decay = 0.1;
  options.decay = WeightDecay::decoupled;
  DeviceExecutor device;
  HostExecutor host;
  Model own = model_for<Model>(data, 3), other = model_for<Model>(data, 3);
  const TrainResult a = batch::train(device, own, data.graph, data.features, loss, data.splits[0], options);
  const TrainResult b = batch::train(host, other, data.graph, data.features, loss, data.splits[0], options);
  CHECK(curve_difference(a, b, 20) <= 1e-13);  // as above
  CHECK(std::abs(a.test_nll - b.test_nll) <= 1e-12 * b.test_nll);
}

TEST_CASE("without validation and test nodes the last epoch on the GPU is the best") {
  using Model = Bsnn<Diagonal<2>, double>;
  Dataset data = karate_club();
  data.splits[0].validation.clear();
  data.splits[0].test.clear();
  TrainOptions options;
  options.epochs = 20;
  options.patience = 2;
  DeviceExecutor device;
  Model model = model_for<Model>(data, 3);
  const TrainResult r = batch::train(device, model, data, data.splits[0], options);
  CHECK(r.best_epoch == 19);
  CHECK(r.stop_reason == StopReason::epochs);
  for (const double score : {r.validation_loss, r.validation_accuracy, r.test_accuracy, r.test_nll, r.test_ece}) {
    CHECK(std::isnan(score));
  }
}

TEST_CASE("a batch on the GPU gives the numbers of separate trainings") {
  using Model = Bsnn<SpecialOrthogonal<2>, double>;
  const Dataset data = karate_club();
  std::vector<Model> models;
  models.reserve(12);
  std::vector<batch::Training<Model>> trainings;
  for (std::uint64_t i = 0; i < 12; ++i) {
    TrainOptions options;
    options.epochs = 40;
    options.patience = static_cast<Index>(5 + i);
    options.seed = i;
    options.learning_rate = 0.005 * static_cast<double>(1 + i % 4);
    options.dropout = 0.1 * static_cast<double>(i % 3);
    trainings.push_back({&models.emplace_back(model_for<Model>(data, i, 4)), &data.splits.at(i % 10), options});
  }
  DeviceExecutor device;
  const std::vector<batch::Outcome> outcomes = batch::train_batch<DeviceExecutor, Model>(device, data, trainings);
  for (std::size_t i = 0; i < models.size(); ++i) {
    CAPTURE(i);
    Model alone = model_for<Model>(data, i, 4);
    const TrainResult result = batch::train(device, alone, data, *trainings[i].split, trainings[i].options);
    REQUIRE(outcomes[i].error.empty());
    CHECK(outcomes[i].result.best_epoch == result.best_epoch);
    CHECK(outcomes[i].result.history.size() == result.history.size());
    CHECK(curve_difference(outcomes[i].result, result, result.history.size()) <= 1e-11);
  }
}

}  // namespace test_device_training_batch
