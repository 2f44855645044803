/// \file
/// Training and prediction on the GPU against the same kernels on the host (which tests/test_batch_training.cpp
/// compares with sheafnn::train): loss curves, best epochs, predictions; the same bits from run to run; batches.
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "sheafnn/batch/host_executor.hpp"
#include "sheafnn/cuda.hpp"
#include "sheafnn/graph/karate.hpp"
#include "sheafnn/graph/synthetic.hpp"
#include "worst.hpp"

namespace test_device_training {
namespace {

using namespace sheafnn;
using batch::DeviceExecutor;
using batch::HostExecutor;

template <class Model>
Model model_for(const Dataset& data, std::uint64_t seed, Index channels = 8) {
  ModelOptions options;
  options.features = data.feature_count();
  options.classes = data.class_count;
  options.channels = channels;
  options.layers = 2;
  return Model(options, seed);
}

/// As large as texas.
Dataset texas_sized() {
  SyntheticOptions options;
  options.nodes = 183;
  options.classes = 5;
  options.features = 1703;
  options.degree = 3;
  options.seed = 5;
  return synthetic(options);
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

double curve_difference(const TrainResult& a, const TrainResult& b, std::size_t epochs) {
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

template <class Model>
void compare_with_host(const Dataset& data, double bound) {
  DeviceExecutor device;
  HostExecutor host;
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

}  // namespace

TEST_CASE("training on the GPU follows the host") {
  // Two orders of summation differ by 1e-15 (double) and 1e-7 (single precision) after twenty epochs, relative to
  // the losses; the device's elementary functions and fused products add to that: a hundred times as much is
  // allowed.
  compare_with_host<Bsnn<SpecialOrthogonal<3>, double>>(karate_club(), 1e-13);
  compare_with_host<Bsnn<SpecialOrthogonal<3>>>(karate_club(), 1e-5);
  compare_with_host<Nsd<GeneralLinear<2>>>(texas_sized(), 1e-5);
  compare_with_host<Bsnn<Diagonal<2>>>(texas_sized(), 1e-5);
}

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

}  // namespace test_device_training
