/// \file
/// Training and prediction of batches by the kernels of the device, run on the host, against sheafnn::train and
/// sheafnn::predict.
#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "training_comparison.hpp"

using namespace training_comparison;

TEST_CASE("training on the device's kernels follows the CPU for twenty epochs") {
  // Other orders of summation; differences grow with the steps of Adam, which divide by small gradients.
  TrainOptions options;
  options.epochs = 20;
  options.seed = 9;
  compare_training<Bsnn<SpecialOrthogonal<3>, double>>(options, 1e-11);
  options.stop_on = StopOn::accuracy;
  options.patience = 4;
  compare_training<Bsnn<Diagonal<2>, double>>(options, 1e-11);
  options.kl_schedule = KlSchedule::constant;
  options.kl_maximum = 0.1;
  options.samples = 2;
  options.training_samples = 2;
  compare_training<Bsnn<GeneralLinear<2>, double>>(options, 1e-11);
  compare_training<Nsd<SpecialOrthogonal<2>, double>>(options, 1e-11);
}

TEST_CASE("a batch gives the numbers of separate trainings, bit by bit") {
  using Model = Bsnn<SpecialOrthogonal<2>>;
  const Dataset data = karate_club();
  std::vector<Model> models;
  std::vector<batch::Training<Model>> trainings;
  for (std::uint64_t i = 0; i < 5; ++i) models.push_back(karate_model<Model>(data, i));
  for (std::size_t i = 0; i < models.size(); ++i) {
    TrainOptions options;
    options.epochs = static_cast<Index>(10 + 9 * i);
    options.patience = static_cast<Index>(3 + 2 * i);
    options.seed = i;
    options.learning_rate = 0.01 * static_cast<double>(i + 1);
    options.dropout = i == 2 ? 0.0 : 0.1 * static_cast<double>(i);
    options.stop_on = i % 2 == 0 ? StopOn::loss : StopOn::accuracy;
    trainings.push_back({&models[i], &data.splits.at(i % data.splits.size()), options});
  }
  HostExecutor executor;
  const std::vector<batch::Outcome> outcomes = batch::train_batch<HostExecutor, Model>(executor, data, trainings);
  for (std::size_t i = 0; i < models.size(); ++i) {
    CAPTURE(i);
    CHECK(outcomes[i].error.empty());
    Model alone = karate_model<Model>(data, i);
    const TrainResult result = batch::train(executor, alone, data, *trainings[i].split, trainings[i].options);
    CHECK(difference(outcomes[i].result.history, result.history) == 0);
    CHECK(outcomes[i].result.best_epoch == result.best_epoch);
    CHECK(outcomes[i].result.test_nll == result.test_nll);
    CHECK(std::equal(alone.parameters().values().begin(), alone.parameters().values().end(),
                     models[i].parameters().values().begin()));
  }
}

TEST_CASE("a batch refuses what does not belong together, and says what diverged") {
  using Model = Nsd<Diagonal<2>>;
  const Dataset data = karate_club();
  Model a = karate_model<Model>(data, 1), b = karate_model<Model>(data, 2);
  HostExecutor executor;
  const auto run = [&](const batch::Training<Model>& second) {
    const batch::Training<Model> both[] = {{&a, &data.splits[0], {.epochs = 2}}, second};
    return batch::train_batch<HostExecutor, Model>(executor, data, both);
  };
  CHECK_THROWS_WITH_AS(run({&a, &data.splits[0], {.epochs = 2}}), doctest::Contains("trainings[1].model"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(run({&b, &data.splits[0], {.epochs = 2, .samples = 4}}),
                       doctest::Contains("trainings[1].samples"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(run({&b, nullptr, {}}), doctest::Contains("trainings[1]"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(run({&b, &data.splits[0], {.dropout = 1}}), doctest::Contains("dropout"),
                       std::invalid_argument);
  Model other({.features = data.features.columns(), .channels = 4, .layers = 3, .classes = data.class_count}, 1);
  CHECK_THROWS_WITH_AS(run({&other, &data.splits[0], {}}), doctest::Contains("architecture"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS((batch::train_batch<HostExecutor, Model>(executor, data, {})),
                       doctest::Contains("trainings"), std::invalid_argument);

  // One training that overflows; the other goes on.
  const auto before = b.parameters().values();
  const std::vector<batch::Outcome> outcomes = run({&b, &data.splits[0], {.epochs = 9, .learning_rate = 1e30}});
  CHECK(outcomes[0].error.empty());
  CHECK(outcomes[0].result.history.size() == 2);
  CHECK(outcomes[1].error.find("training diverged in epoch") == 0);
  CHECK(std::equal(before.begin(), before.end(), b.parameters().values().begin()));
  CHECK_THROWS_WITH_AS(batch::train(executor, b, data, data.splits[0], {.epochs = 9, .learning_rate = 1e30}),
                       doctest::Contains("diverged in epoch"), std::runtime_error);
}
