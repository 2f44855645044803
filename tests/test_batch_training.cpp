/// \file
/// Training and prediction of batches by the batch engine on the host, against sheafnn::train and sheafnn::predict.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "heavy_tailed_posterior.hpp"
#include "sheafnn/graph/selected_graphs.hpp"
#include "training_comparison.hpp"

namespace test_batch_training {
using namespace training_comparison;

namespace {

/// The karate club without the labels of some nodes: the first of each set of the first split, and one more.
Dataset partly_labelled() {
  Dataset data = karate_club();
  const Split& split = data.splits.at(0);
  for (const auto* nodes : {&split.train, &split.validation, &split.test}) {
    data.labels[static_cast<std::size_t>(nodes->front())] = -1;
  }
  data.labels[static_cast<std::size_t>(split.train.back())] = -1;
  return data;
}

// A trainer refers to the labels of its dataset, which outlives it.
using Trainer = batch::BatchTrainer<HostExecutor, Nsd<Diagonal<2>>>;
using Trainings = std::span<const batch::Training<Nsd<Diagonal<2>>>>;
static_assert(std::is_constructible_v<Trainer, HostExecutor&, Dataset&, Trainings, batch::EvaluationOrder>);
static_assert(!std::is_constructible_v<Trainer, HostExecutor&, Dataset, Trainings>);
static_assert(!std::is_constructible_v<Trainer, HostExecutor&, Dataset, Trainings, batch::EvaluationOrder>);

}  // namespace

TEST_CASE("training by the batch engine follows the CPU for twenty epochs") {
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
  compare_training<Nsd<Diagonal<2>, double>>(options, 1e-11);
}

TEST_CASE("training by the batch engine follows the CPU: polynomial filters") {
  TrainOptions options;
  options.epochs = 20;
  compare_training<Nsd<Diagonal<2>, double>>(options, 1e-11, {}, karate_club(), {},
                                             {{PolynomialBasis::jacobi, 3}});
  options.samples = 2;
  compare_training<Bsnn<SpecialOrthogonal<2>, double>>(options, 1e-11, {}, karate_club(), {},
                                                       {{PolynomialBasis::chebyshev_interpolation, 4}});
}

TEST_CASE("training by the batch engine follows the CPU: initial residuals") {
  const LayerKind deep{{}, {ResidualForm::initial, 0.3, 1}};
  TrainOptions options;
  options.epochs = 20;
  compare_training<Nsd<Diagonal<2>, double>>(options, 1e-11, {}, karate_club(), {}, deep);
  options.samples = 2;
  compare_training<Bsnn<SpecialOrthogonal<2>, double>>(options, 1e-11, {}, karate_club(), {}, deep);
}

TEST_CASE("training by the batch engine follows the CPU: unknown labels, class weights") {
  TrainOptions options;
  options.epochs = 20;
  compare_training<Bsnn<SpecialOrthogonal<2>, double>>(options, 1e-11, {}, partly_labelled());
  compare_training<Nsd<Diagonal<2>, double>>(options, 1e-11, {}, karate_club(), {1, 2.5});
  options.training_samples = 2;
  compare_training<Bsnn<Diagonal<2>, double>>(options, 1e-11, {}, partly_labelled(), {0.3, 2});
}

TEST_CASE("training by the batch engine follows the CPU: no validation nodes, no test nodes, neither") {
  TrainOptions options;
  options.epochs = 20;
  options.patience = 2;
  for (const auto& [validated, tested] : {std::pair{false, true}, {true, false}, {false, false}}) {
    CAPTURE(validated);
    CAPTURE(tested);
    Dataset data = karate_club();
    if (!validated) data.splits[0].validation.clear();
    if (!tested) data.splits[0].test.clear();
    options.stop_on = validated ? StopOn::loss : StopOn::accuracy;
    compare_training<Bsnn<SpecialOrthogonal<2>, double>>(options, 1e-11, {}, data);
  }
}

TEST_CASE("trainings with and without validation nodes in one batch") {
  using Model = Nsd<Diagonal<2>>;
  const Dataset data = karate_club();
  Split split = data.splits[0];
  split.validation.clear();
  std::vector<Model> models;
  for (int i = 0; i < 3; ++i) models.push_back(karate_model<Model>(data, 1));
  TrainOptions options{.epochs = 40, .patience = 3, .stop_on = StopOn::accuracy};
  TrainOptions stopping = options;
  stopping.on_epoch = [](const EpochReport& report) {
    return report.epoch == 5 ? EpochAction::stop : EpochAction::keep_training;
  };
  const std::vector<batch::Training<Model>> trainings = {{&models[0], &data.splits[0], options},
                                                         {&models[1], &split, options},
                                                         {&models[2], &split, stopping}};
  HostExecutor executor;
  const auto outcomes = batch::train_batch<HostExecutor, Model>(executor, data, trainings);
  CHECK(outcomes[0].result.stop_reason == StopReason::patience);
  CHECK(outcomes[1].result.stop_reason == StopReason::epochs);
  CHECK(outcomes[1].result.best_epoch == 39);
  CHECK(outcomes[2].result.stop_reason == StopReason::callback);
  CHECK(outcomes[2].result.best_epoch == static_cast<Index>(outcomes[2].result.history.size()) - 1);
  // Each ends with the parameters of its last epoch.
  for (const std::size_t i : {std::size_t{1}, std::size_t{2}}) {
    CAPTURE(i);
    Model alone = karate_model<Model>(data, 1);
    const Index epochs = static_cast<Index>(outcomes[i].result.history.size());
    const TrainResult result = batch::train(executor, alone, data, split, {.epochs = epochs, .patience = 1});
    CHECK(result.best_epoch == epochs - 1);
    CHECK(std::equal(alone.parameters().values().begin(), alone.parameters().values().end(),
                     models[i].parameters().values().begin()));
  }
}

TEST_CASE("evaluations beside training passes and before them: the same bits") {
  using Model = Bsnn<SpecialOrthogonal<2>>;
  const Dataset data = karate_club();
  struct Numbers {
    std::vector<EpochReport> history[2];
    std::vector<float> parameters[2];
  };
  const auto train = [&](HostExecutor::Order launches, batch::EvaluationOrder order) {
    std::vector<Model> models;
    for (std::uint64_t i = 0; i < 2; ++i) models.push_back(karate_model<Model>(data, i));
    // Sheaves of a training pass and of an evaluation, and early stopping of one of the runs.
    const TrainOptions options{.epochs = 9, .dropout = 0.3, .training_samples = 2, .samples = 3};
    TrainOptions impatient = options;
    impatient.patience = 2;
    const std::vector<batch::Training<Model>> trainings = {{&models[0], &data.splits[0], options},
                                                           {&models[1], &data.splits[1], impatient}};
    HostExecutor executor(launches);
    const auto outcomes = batch::BatchTrainer<HostExecutor, Model>(executor, data, trainings, order).train();
    Numbers r;
    for (std::size_t i = 0; i < 2; ++i) {
      r.history[i] = outcomes[i].result.history;
      r.parameters[i].assign(models[i].parameters().values().begin(), models[i].parameters().values().end());
    }
    return r;
  };
  const Numbers expected = train(HostExecutor::Order::forward, batch::EvaluationOrder::in_turn);
  CHECK(expected.history[0].size() == 9);
  for (const auto launches : {HostExecutor::Order::forward, HostExecutor::Order::backward}) {
    const Numbers own = train(launches, batch::EvaluationOrder::beside);
    for (std::size_t i = 0; i < 2; ++i) {
      CAPTURE(i);
      CHECK(own.history[i].size() == expected.history[i].size());
      CHECK(difference(own.history[i], expected.history[i]) == 0);
      CHECK(own.parameters[i] == expected.parameters[i]);
    }
  }
}

TEST_CASE("unknown labels count nowhere, as if their nodes were in no set") {
  using Model = Bsnn<Diagonal<2>, double>;
  const Dataset data = partly_labelled();
  Split known;
  known.train = labelled_nodes(data.labels, data.splits[0].train);
  known.validation = labelled_nodes(data.labels, data.splits[0].validation);
  known.test = labelled_nodes(data.labels, data.splits[0].test);
  Model all = karate_model<Model>(data, 3), some = karate_model<Model>(data, 3);
  const TrainOptions options{.epochs = 20};
  const TrainResult a = train(all, data, data.splits[0], options), b = train(some, data, known, options);
  CHECK(difference(a.history, b.history) <= 1e-11);  // sums over other rows
  CHECK(std::abs(a.test_nll - b.test_nll) <= 1e-11 * b.test_nll);
  CHECK(std::abs(a.test_ece - b.test_ece) <= 1e-11);
}

TEST_CASE("a set without any known label is refused") {
  using Model = Nsd<Diagonal<2>>;
  Dataset data = karate_club();
  for (const std::int32_t u : data.splits[0].test) data.labels[static_cast<std::size_t>(u)] = -1;
  Model model = karate_model<Model>(data, 1);
  const std::string size = std::to_string(data.splits[0].test.size());
  CHECK_THROWS_WITH_AS(train(model, data, data.splits[0]),
                       ("split.test: " + size + " nodes is not allowed; none of them has a known target").c_str(),
                       std::invalid_argument);
  HostExecutor executor;
  CHECK_THROWS_WITH_AS(
      batch::train(executor, model, data, data.splits[0]),
      ("trainings[0].split.test: " + size + " nodes is not allowed; none of them has a known target").c_str(),
      std::invalid_argument);
}

TEST_CASE("a batch trains classifications only") {
  const Dataset data = karate_club();
  const Index n = data.node_count();
  Nsd<Diagonal<2>> model = karate_model<Nsd<Diagonal<2>>>(data, 1);
  HostExecutor executor;
  const std::vector<double> numbers(static_cast<std::size_t>(n));
  const std::vector<std::int8_t> flags(static_cast<std::size_t>(2 * n));
  const auto run = [&](const auto& loss) {
    return batch::train(executor, model, data.graph, data.features, loss, data.splits[0], {.epochs = 2});
  };
  CHECK_THROWS_WITH_AS(run(Regression(MatrixView<const double>(numbers.data(), n, 1))),
                       "loss: regression is not allowed; the batch engine trains classification only",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(run(Multilabel(MatrixView<const std::int8_t>(flags.data(), n, 2))),
                       "loss: multilabel is not allowed; the batch engine trains classification only",
                       std::invalid_argument);
  const std::vector<double> three = {1, 1, 1};
  CHECK_THROWS_WITH_AS(run(Classification(data.labels, three)), doctest::Contains("class_weights"),
                       std::invalid_argument);
  CHECK(run(Classification(data.labels)).history.size() == 2);
}

TEST_CASE("a callback stops one training of a batch, and the others go on") {
  using Model = Nsd<Diagonal<2>>;
  const Dataset data = karate_club();
  TrainOptions options{.epochs = 40, .patience = 1000};
  Model alone = karate_model<Model>(data, 1), stopped = karate_model<Model>(data, 2),
        other = karate_model<Model>(data, 1);
  HostExecutor executor;
  const TrainResult expected = batch::train(executor, alone, data, data.splits[0], options);
  CHECK(expected.stop_reason == StopReason::epochs);
  TrainOptions stopping = options;
  Index calls = 0;
  stopping.on_epoch = [&](const EpochReport& report) {
    ++calls;
    return report.epoch == 5 ? EpochAction::stop : EpochAction::keep_training;
  };
  const std::vector<batch::Training<Model>> trainings = {{&stopped, &data.splits[0], stopping},
                                                         {&other, &data.splits[0], options}};
  const auto outcomes = batch::train_batch<HostExecutor, Model>(executor, data, trainings);
  const TrainResult& result = outcomes[0].result;
  CHECK(result.stop_reason == StopReason::callback);
  CHECK(calls == 6);                  // not for what is read beside the epoch that it stopped
  CHECK(result.history.size() >= 6);  // the host reads the progress every few epochs
  CHECK(result.history.size() < 6 + batch::BatchTrainer<HostExecutor, Model>::window);
  CHECK(result.best_epoch < static_cast<Index>(result.history.size()));
  CHECK(result.test_nll > 0);
  CHECK(outcomes[1].result.stop_reason == StopReason::epochs);
  CHECK(difference(outcomes[1].result.history, expected.history) == 0);
  CHECK(std::equal(alone.parameters().values().begin(), alone.parameters().values().end(),
                   other.parameters().values().begin()));
}

TEST_CASE("a training that a callback has stopped ends well, whatever the epochs after that come to") {
  using Model = Nsd<Diagonal<2>>;
  const Dataset data = karate_club();
  HostExecutor executor;
  const auto run = [&](Model& model, double learning_rate, Index last) {
    TrainOptions options{.epochs = 60, .patience = 1000, .learning_rate = learning_rate};
    options.on_epoch = [last](const EpochReport& report) {
      return report.epoch == last ? EpochAction::stop : EpochAction::keep_training;
    };
    const batch::Training<Model> trainings[] = {{&model, &data.splits[0], options}};
    return batch::train_batch<HostExecutor, Model>(executor, data, trainings).front();
  };
  // A rate with which some epochs are finite before one overflows.
  double rate = 5000;
  Index finite = 0;
  while (finite < 4 && rate < 10000) {
    rate += 250;
    Model model = karate_model<Model>(data, 1);
    const batch::Outcome outcome = run(model, rate, -1);
    finite = outcome.error.empty() ? 0 : static_cast<Index>(outcome.result.history.size());
  }
  CAPTURE(rate);
  REQUIRE(finite >= 4);
  const Model first = karate_model<Model>(data, 1);
  for (Index last = 0; last < finite; ++last) {
    CAPTURE(last);
    Model model = karate_model<Model>(data, 1);
    const batch::Outcome outcome = run(model, rate, last);
    CHECK(outcome.error.empty());
    CHECK(outcome.result.stop_reason == StopReason::callback);
    CHECK(static_cast<Index>(outcome.result.history.size()) > last);
    CHECK(static_cast<Index>(outcome.result.history.size()) <= finite);
    CHECK(std::isfinite(outcome.result.test_nll));
    CHECK(!std::equal(first.parameters().values().begin(), first.parameters().values().end(),
                      model.parameters().values().begin()));
  }
}

TEST_CASE("a batch writes no checkpoints, starts from the beginning, and takes whole graphs") {
  const Dataset data = karate_club();
  Nsd<Diagonal<2>> model = karate_model<Nsd<Diagonal<2>>>(data, 1);
  HostExecutor executor;
  TrainOptions options{.epochs = 2};
  options.on_checkpoint = [](const TrainingState&) {};
  CHECK_THROWS_WITH_AS(
      batch::train(executor, model, data, data.splits[0], options),
      "trainings[0].on_checkpoint: a function is not allowed; the batch engine writes no checkpoints",
      std::invalid_argument);
  options.on_checkpoint = nullptr;
  const TrainingState state;
  options.resume = &state;
  CHECK_THROWS_WITH_AS(batch::train(executor, model, data, data.splits[0], options),
                       "trainings[0].resume: a state is not allowed; the batch engine starts from the beginning",
                       std::invalid_argument);
  options.resume = nullptr;
  sheafnn::detail::AloneGraphPart part({});
  Dataset of_part = data;
  of_part.graph.set_part(&part);
  CHECK_THROWS_WITH_AS(batch::train(executor, model, of_part, data.splits[0], options),
                       doctest::Contains("graph: a part of a larger one is not allowed"), std::invalid_argument);
  CHECK_THROWS_WITH_AS((void)batch::predict(executor, model, of_part.graph, of_part.features),
                       doctest::Contains("graph: a part of a larger one is not allowed"), std::invalid_argument);
  Nsd<Diagonal<2>> featured({.features = 34, .channels = 4, .layers = 2, .classes = 2, .edge_features = 2});
  CHECK_THROWS_WITH_AS(batch::train(executor, featured, data, data.splits[0], options),
                       "arc features of the graph: 0 is not allowed; the sheaf learner reads 2",
                       std::invalid_argument);
  Nsd<Diagonal<2>> typed({.features = 34, .channels = 4, .layers = 2, .classes = 2, .edge_types = {"a", "b"}});
  CHECK_THROWS_WITH_AS(batch::train(executor, typed, data, data.splits[0], options),
                       "edge_types: 2 is not allowed; the batch engine, on the CPU or a device, has no types",
                       std::invalid_argument);
  options.stop_on = StopOn::roc_auc;
  CHECK_THROWS_WITH_AS(
      batch::train(executor, model, data, data.splits[0], options),
      "trainings[0].stop_on: roc-auc is not allowed; the batch engine chooses the best epoch by loss or accuracy",
      std::invalid_argument);
}

TEST_CASE("training by the batch engine follows the CPU: decoupled weight decay, two learning rates") {
  // Decay that matters: a tenth of a weight in twenty steps.
  TrainOptions options;
  options.epochs = 20;
  options.weight_decay = 0.5;
  options.sheaf_decay = 0.2;
  options.sheaf_learning_rate = 0.004;
  options.decay = WeightDecay::decoupled;
  compare_training<Bsnn<SpecialOrthogonal<2>, double>>(options, 1e-11);
  compare_training<Nsd<Diagonal<2>, double>>(options, 1e-11);
}

TEST_CASE("training by the batch engine follows the CPU: a posterior without closed form") {
  using Model = SheafModel<Diagonal<2>, test::HeavyTailedPosterior, double>;
  TrainOptions options;
  options.epochs = 20;
  options.kl_schedule = KlSchedule::constant;
  options.kl_maximum = 0.5;
  compare_training<Model>(options, 1e-11);
  options.kl_estimator = KlEstimator::monte_carlo;
  options.training_samples = 2;
  compare_training<Model>(options, 1e-11);
  const Dataset data = karate_club();
  Model model = karate_model<Model>(data, 1);
  options.kl_estimator = KlEstimator::closed_form;
  HostExecutor executor;
  CHECK_THROWS_WITH_AS(
      batch::train(executor, model, data, data.splits[0], options),
      "kl_estimator: closed-form is not allowed; the posterior heavy-tailed with its prior has no closed form",
      std::invalid_argument);
  options.kl_estimator = KlEstimator::automatic;
  options.sample_loss = SampleLoss::predictive;
  CHECK_THROWS_WITH_AS(
      batch::train(executor, model, data, data.splits[0], options),
      "trainings[0].sample_loss: predictive is not allowed; the batch engine has the expected loss only",
      std::invalid_argument);
}

TEST_CASE("a batch gives the numbers of separate trainings, bit by bit") {
  using Model = Bsnn<SpecialOrthogonal<2>>;
  const Dataset data = karate_club();
  std::vector<Model> models;
  std::vector<batch::Training<Model>> trainings;
  LayerKind layers;
  SUBCASE("diffusion") {}
  SUBCASE("a polynomial filter") { layers.filter = {PolynomialBasis::chebyshev, 3}; }
  SUBCASE("initial residuals") { layers.residual.form = ResidualForm::initial; }
  for (std::uint64_t i = 0; i < 5; ++i) models.push_back(karate_model<Model>(data, i, {}, layers));
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
    Model alone = karate_model<Model>(data, i, {}, layers);
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
  using Prior = NormalPrior<2>;
  using WithPrior = SheafModel<Diagonal<2>, NormalPosterior<Diagonal<2>, Prior>>;
  WithPrior one = karate_model<WithPrior>(data, 1, {Prior(0, 1)}),
            two = karate_model<WithPrior>(data, 1, {Prior(0, 2)});
  const batch::Training<WithPrior> priors[] = {{&one, &data.splits[0], {.epochs = 2}},
                                               {&two, &data.splits[0], {.epochs = 2}}};
  CHECK_THROWS_WITH_AS((batch::train_batch<HostExecutor, WithPrior>(executor, data, priors)),
                       doctest::Contains("another posterior"), std::invalid_argument);
  Model other({.features = data.features.columns(), .channels = 4, .layers = 3, .classes = data.class_count}, 1);
  CHECK_THROWS_WITH_AS(run({&other, &data.splits[0], {}}), doctest::Contains("architecture"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS((batch::train_batch<HostExecutor, Model>(executor, data, {})),
                       doctest::Contains("trainings"), std::invalid_argument);
  Model filtered({.features = data.features.columns(),
                  .channels = 4,
                  .layers = 2,
                  .classes = data.class_count,
                  .filter = {PolynomialBasis::legendre, 2}});
  CHECK_THROWS_WITH_AS(run({&filtered, &data.splits[0], {}}), doctest::Contains("architecture"),
                       std::invalid_argument);

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

}  // namespace test_batch_training
