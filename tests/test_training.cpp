/// \file
/// Training and prediction on the karate club: learning, early stopping, weight decay, seeds and threads, refused
/// options, diverged runs.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "result_numbers.hpp"
#include "shared_networks.hpp"
#include "sheafnn/bsnn/prediction.hpp"
#include "sheafnn/bsnn/trainer.hpp"
#include "sheafnn/graph/karate.hpp"
#include "sheafnn/graph/synthetic.hpp"

namespace test_training {
namespace {

using sheafnn::Bsnn;
using sheafnn::Dataset;
using sheafnn::Diagonal;
using sheafnn::GeneralLinear;
using sheafnn::Index;
using sheafnn::ModelOptions;
using sheafnn::Nsd;
using sheafnn::SpecialOrthogonal;
using sheafnn::TrainOptions;
using sheafnn::TrainResult;

const Dataset& karate() {
  static const Dataset data = sheafnn::karate_club();
  return data;
}

ModelOptions model_options() {
  ModelOptions options;
  options.features = 34;
  options.classes = 2;
  options.channels = 8;
  options.layers = 3;
  options.add_lp = true;
  return options;
}
TrainOptions train_options() {
  TrainOptions options;
  options.epochs = 120;
  options.patience = 60;
  options.dropout = 0.2;
  options.input_dropout = 0.1;
  options.threads = 1;
  return options;
}

/// Mean test accuracy over the ten splits.
template <class Model>
double mean_accuracy() {
  double sum = 0;
  for (std::size_t s = 0; s < karate().splits.size(); ++s) {
    Model model(model_options(), s);
    TrainOptions options = train_options();
    options.seed = s;
    const TrainResult result = sheafnn::train(model, karate(), karate().splits[s], options);
    // The loss falls: the mean of the last ten epochs is well below the mean of the first two.
    const auto nll = [&](std::size_t epoch) { return result.history.at(epoch).nll; };
    double last = 0;
    for (std::size_t i = 1; i <= 10; ++i) last += nll(result.history.size() - i) / 10;
    CHECK(last < 0.7 * (nll(0) + nll(1)) / 2);
    sum += result.test_accuracy / static_cast<double>(karate().splits.size());
  }
  return sum;
}

template <class Model>
bool same_parameters(const Model& a, const Model& b) {
  return std::equal(a.parameters().values().begin(), a.parameters().values().end(),
                    b.parameters().values().begin());
}

/// Early stopping against a replay of the history, and the parameters left behind.
template <class Model>
void check_early_stopping(sheafnn::StopOn stop_on) {
  CAPTURE(to_string(stop_on));
  const sheafnn::Split& split = karate().splits[2];
  TrainOptions options = train_options();
  options.epochs = 400;
  options.patience = 12;
  options.stop_on = stop_on;
  options.learning_rate = 0.05;
  options.seed = 5;
  options.kl_maximum = 1;
  std::vector<std::vector<float>> parameters;
  ModelOptions of_model = model_options();
  of_model.spread = sheafnn::SpreadRange::published;
  Model model(of_model, 3);
  options.on_epoch = [&](const sheafnn::EpochReport& report) {
    CHECK(report.epoch == static_cast<Index>(parameters.size()));
    parameters.emplace_back(model.parameters().values().begin(), model.parameters().values().end());
  };
  const TrainResult result = sheafnn::train(model, karate(), split, options);
  REQUIRE(parameters.size() == result.history.size());
  CHECK(result.history.size() < 400);  // it stopped

  // The best epoch: lowest loss, or best score and among those the lowest loss; the first of several.
  Index best = 0;
  const double sign = stop_on == sheafnn::StopOn::brier ? -1 : 1;
  const double sheafnn::EpochReport::*score = is_metric(stop_on) ? &sheafnn::EpochReport::validation_metric
                                                                 : &sheafnn::EpochReport::validation_accuracy;
  const auto better = [&](const sheafnn::EpochReport& a, const sheafnn::EpochReport& b) {
    if (stop_on == sheafnn::StopOn::loss) return a.validation_loss < b.validation_loss;
    if (a.*score != b.*score) return sign * (a.*score) > sign * (b.*score);
    return a.validation_loss < b.validation_loss;
  };
  Index stopped = -1;
  for (const sheafnn::EpochReport& report : result.history) {
    CHECK(stopped < 0);
    if (report.epoch > 0 && better(report, result.history[static_cast<std::size_t>(best)])) best = report.epoch;
    if (report.epoch - best >= options.patience) stopped = report.epoch;
  }
  CHECK(best > 0);
  CHECK(stopped == static_cast<Index>(result.history.size()) - 1);
  CHECK(result.best_epoch == best);
  const sheafnn::EpochReport& report = result.history[static_cast<std::size_t>(best)];
  CHECK(result.validation_loss == report.validation_loss);
  CHECK(result.validation_accuracy == report.validation_accuracy);
  CHECK(result.test_accuracy == report.test_accuracy);
  for (const auto& [of_result, of_report] : {std::pair(result.validation_metric, report.validation_metric),
                                             std::pair(result.test_metric, report.test_metric)}) {
    CHECK(std::isnan(of_result) == !is_metric(stop_on));
    CHECK((std::isnan(of_result) || of_result == of_report));
  }
  const std::vector<float>& kept = parameters[static_cast<std::size_t>(best)];
  CHECK(std::equal(kept.begin(), kept.end(), model.parameters().values().begin()));
  CHECK(kept != parameters.back());

  // The same noise gives the same figures again.
  sheafnn::PredictOptions predict_options;
  predict_options.samples = options.samples;
  predict_options.seed = options.seed;
  predict_options.epoch = static_cast<std::uint32_t>(best);
  predict_options.threads = 1;
  const sheafnn::Prediction prediction = sheafnn::predict(model, karate(), predict_options);
  const auto accuracy = [&](const std::vector<std::int32_t>& nodes) {
    return sheafnn::uncertainty::accuracy(prediction.probabilities, 2, karate().labels, nodes);
  };
  CHECK(accuracy(split.validation) == result.validation_accuracy);
  CHECK(accuracy(split.test) == result.test_accuracy);
  const auto metrics = [&](const std::vector<std::int32_t>& nodes) {
    std::vector<double> r;
    for (const auto metric : {sheafnn::uncertainty::roc_auc, sheafnn::uncertainty::average_precision,
                              sheafnn::uncertainty::macro_f1, sheafnn::uncertainty::brier_score}) {
      r.push_back(metric(prediction.probabilities, 2, karate().labels, nodes));
    }
    return r;
  };
  const std::vector<double> tested = metrics(split.test), validated = metrics(split.validation);
  const double of_test[] = {result.test_roc_auc, result.test_average_precision, result.test_macro_f1,
                            result.test_brier};
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(std::abs(of_test[i] - tested[i]) <= 1e-12);
    if (static_cast<std::size_t>(stop_on) != 2 + i) continue;
    CHECK(std::abs(result.validation_metric - validated[i]) <= 1e-12);
    CHECK(std::abs(result.test_metric - tested[i]) <= 1e-12);
  }
  const double loss =
      sheafnn::uncertainty::negative_log_likelihood(prediction.probabilities, 2, karate().labels, split.validation);
  // The mean over samples is a sum divided here, an updated mean there.
  CHECK(std::abs(loss - result.validation_loss) <= 64 * std::numeric_limits<double>::epsilon() * (1 + loss));
}

template <class Model>
void check_reproducible() {
  CAPTURE(Model::Family::name);
  CAPTURE(Model::bayesian);
  const auto run = [&](int threads, std::uint64_t seed, std::uint64_t model_seed) {
    TrainOptions options = train_options();
    options.epochs = 12;
    options.threads = threads;
    options.seed = seed;
    Model model(model_options(), model_seed);
    const TrainResult result = sheafnn::train(model, karate(), karate().splits[0], options);
    CHECK(result.epoch_seconds > 0);
    CHECK(result.train_seconds > 0);
    CHECK(result.evaluate_seconds > 0);
    return std::pair(test::numbers_of(result), std::move(model));
  };
  const auto [numbers, model] = run(1, 7, 1);
  for (const int threads : {1, 2}) {
    const auto [again, other] = run(threads, 7, 1);
    CHECK(again == numbers);
    CHECK(same_parameters(other, model));
  }
  CHECK(run(1, 8, 1).first != numbers);
  CHECK(run(1, 7, 2).first != numbers);
}

/// The largest change of a group's parameters between two models.
template <class Model>
double largest_change(const Model& a, const Model& b, sheafnn::layers::ParameterGroup group) {
  double largest = 0;
  for (const sheafnn::layers::ParameterInfo& info : a.parameters().info()) {
    if (info.group != group) continue;
    for (Index i = info.offset; i < info.offset + info.size; ++i) {
      largest = std::max(largest, std::abs(static_cast<double>(a.parameters().values()[i]) -
                                           static_cast<double>(b.parameters().values()[i])));
    }
  }
  return largest;
}

/// Trains for some epochs and returns the model.
template <class Model>
Model trained(const std::function<void(TrainOptions&)>& change) {
  TrainOptions options = train_options();
  options.epochs = 5;
  options.patience = 5;
  change(options);
  Model model(model_options(), 1);
  static_cast<void>(sheafnn::train(model, karate(), karate().splits[0], options));
  return model;
}

void check_refused(const std::string& message, const std::function<void(TrainOptions&)>& change) {
  TrainOptions options;
  change(options);
  CHECK_THROWS_WITH_AS(sheafnn::validate(options), message.c_str(), std::invalid_argument);
}

}  // namespace

TEST_CASE("training on the karate club") {
  // Two factions of 17, which the graph almost determines, 8 test nodes in each of ten splits: chance is 0.5 ±
  // 0.06 (the standard error of 80 nodes).
  CHECK(mean_accuracy<Bsnn<Diagonal<2>>>() >= 0.8);
  CHECK(mean_accuracy<Bsnn<SpecialOrthogonal<2>>>() >= 0.8);
  CHECK(mean_accuracy<Bsnn<GeneralLinear<2>>>() >= 0.8);
  CHECK(mean_accuracy<Nsd<Diagonal<2>>>() >= 0.8);
}

TEST_CASE("early stopping: when, on what, and what is left behind") {
  check_early_stopping<Bsnn<Diagonal<2>>>(sheafnn::StopOn::loss);
  check_early_stopping<Bsnn<Diagonal<2>>>(sheafnn::StopOn::accuracy);
  for (const sheafnn::StopOn metric : {sheafnn::StopOn::roc_auc, sheafnn::StopOn::average_precision,
                                       sheafnn::StopOn::macro_f1, sheafnn::StopOn::brier}) {
    check_early_stopping<Bsnn<Diagonal<2>>>(metric);
  }
}

TEST_CASE("a ranking needs validation nodes of two classes") {
  sheafnn::Split split = karate().splits[2];
  std::erase_if(split.validation, [](std::int32_t u) { return karate().labels[static_cast<std::size_t>(u)] == 0; });
  REQUIRE(!split.validation.empty());
  TrainOptions options{.epochs = 2, .stop_on = sheafnn::StopOn::roc_auc};
  Bsnn<Diagonal<2>> model(model_options(), 3);
  CHECK_THROWS_WITH_AS(static_cast<void>(sheafnn::train(model, karate(), split, options)),
                       "stop_on: roc-auc is not allowed; the validation nodes are all of one class",
                       std::invalid_argument);
  options.stop_on = sheafnn::StopOn::macro_f1;
  CHECK(sheafnn::train(model, karate(), split, options).validation_metric >= 0);
}

TEST_CASE("an epoch limit, and patience that lasts") {
  TrainOptions options = train_options();
  options.epochs = 7;
  options.patience = 100;
  Index calls = 0;
  options.on_epoch = [&](const sheafnn::EpochReport& report) {
    CHECK(report.loss == report.nll + report.kl_weight * report.kl);
    CHECK(report.kl > 0);
    ++calls;
  };
  options.kl_schedule = sheafnn::KlSchedule::constant;
  options.kl_maximum = 0.25;
  Bsnn<Diagonal<2>> model(model_options());
  const TrainResult result = sheafnn::train(model, karate(), karate().splits[0], options);
  CHECK(calls == 7);
  CHECK(result.history.size() == 7);
  CHECK(result.history[3].kl_weight == 0.25);
  // A deterministic model has no KL term.
  Nsd<Diagonal<2>> deterministic(model_options());
  options.on_epoch = nullptr;
  const TrainResult other = sheafnn::train(deterministic, karate(), karate().splits[0], options);
  CHECK(other.history[3].kl_weight == 0);
  CHECK(other.history[3].kl == 0);
  // The cyclical schedule.
  options.kl_schedule = sheafnn::KlSchedule::cyclical;
  options.epochs = 42;
  Bsnn<Diagonal<2>> annealed(model_options());
  const TrainResult cyclical = sheafnn::train(annealed, karate(), karate().splits[0], options);
  for (const sheafnn::EpochReport& report : cyclical.history) {
    CHECK(report.kl_weight == sheafnn::kl_weight(sheafnn::KlSchedule::cyclical, 0.25, report.epoch));
  }
  CHECK(cyclical.history[39].kl_weight > 0.24);
  CHECK(cyclical.history[40].kl_weight < 2e-5);
}

TEST_CASE("without validation nodes the last epoch is the best, without test nodes nothing is known of them") {
  using Model = Bsnn<Diagonal<2>>;
  const sheafnn::Split& whole = karate().splits[0];
  sheafnn::Split split;
  split.train = whole.train;
  for (const sheafnn::StopOn stop_on : {sheafnn::StopOn::loss, sheafnn::StopOn::accuracy}) {
    for (const bool tested : {false, true}) {
      CAPTURE(to_string(stop_on));
      CAPTURE(tested);
      split.test = tested ? whole.test : std::vector<std::int32_t>{};
      TrainOptions options = train_options();
      options.epochs = 12;
      options.patience = 1;
      options.stop_on = stop_on;
      std::vector<float> last;
      Index stop_after = 100;
      Model model(model_options(), 2);
      options.on_epoch = [&](const sheafnn::EpochReport& report) {
        CHECK(std::isnan(report.validation_loss));
        CHECK(std::isnan(report.validation_accuracy));
        CHECK(std::isnan(report.test_accuracy) == !tested);
        last.assign(model.parameters().values().begin(), model.parameters().values().end());
        return report.epoch == stop_after ? sheafnn::EpochAction::stop : sheafnn::EpochAction::keep_training;
      };
      TrainResult result = sheafnn::train(model, karate(), split, options);
      CHECK(result.history.size() == 12);
      CHECK(result.stop_reason == sheafnn::StopReason::epochs);
      CHECK(result.best_epoch == 11);
      CHECK(std::equal(last.begin(), last.end(), model.parameters().values().begin(),
                       model.parameters().values().end()));
      CHECK(std::isnan(result.validation_loss));
      CHECK(std::isnan(result.validation_accuracy));
      for (const double value : {result.test_accuracy, result.test_nll, result.test_ece}) {
        CHECK(std::isnan(value) == !tested);
      }
      if (tested) CHECK(result.test_accuracy == result.history.back().test_accuracy);
      // The last epoch is that after which on_epoch stops.
      stop_after = 4;
      model = Model(model_options(), 2);
      result = sheafnn::train(model, karate(), split, options);
      CHECK(result.stop_reason == sheafnn::StopReason::callback);
      CHECK(result.best_epoch == 4);
      CHECK(std::equal(last.begin(), last.end(), model.parameters().values().begin(),
                       model.parameters().values().end()));
    }
  }
}

TEST_CASE("validation and test nodes change no parameter of an epoch") {
  // Without test nodes, early stopping is as with them.
  using Model = Nsd<Diagonal<2>>;
  sheafnn::Split split = karate().splits[2];
  TrainOptions options = train_options();
  options.patience = 12;
  options.learning_rate = 0.05;
  Model one(model_options(), 3), other(model_options(), 3), third(model_options(), 3);
  const TrainResult whole = sheafnn::train(one, karate(), split, options);
  CHECK(whole.stop_reason == sheafnn::StopReason::patience);
  split.test.clear();
  const TrainResult untested = sheafnn::train(other, karate(), split, options);
  CHECK(untested.best_epoch == whole.best_epoch);
  CHECK(untested.history.size() == whole.history.size());
  CHECK(untested.validation_loss == whole.validation_loss);
  CHECK(std::isnan(untested.test_nll));
  CHECK(same_parameters(one, other));
  // Without validation nodes, a training of as many epochs ends with the same parameters.
  split.validation.clear();
  options.epochs = whole.best_epoch + 1;
  static_cast<void>(sheafnn::train(third, karate(), split, options));
  CHECK(same_parameters(one, third));
}

TEST_CASE("same seeds, same history, for any number of threads") {
  check_reproducible<Bsnn<Diagonal<2>>>();
  check_reproducible<Bsnn<SpecialOrthogonal<2>>>();
  check_reproducible<Nsd<Diagonal<2>>>();
}

TEST_CASE("each weight decay acts on its group") {
  using Model = Bsnn<SpecialOrthogonal<2>>;
  using sheafnn::layers::ParameterGroup;
  const auto none = [](TrainOptions& o) {
    o.epochs = 1;
    o.sheaf_learning_rate = 0;
    o.weight_decay = o.sheaf_decay = 0;
  };
  const Model base = trained<Model>(none);
  const Model sheaf = trained<Model>([&](TrainOptions& o) {
    none(o);
    o.sheaf_decay = 10;
  });
  const Model network = trained<Model>([&](TrainOptions& o) {
    none(o);
    o.weight_decay = 10;
  });
  // After one step the other group has not felt anything.
  CHECK(largest_change(base, sheaf, ParameterGroup::network) == 0);
  CHECK(largest_change(base, sheaf, ParameterGroup::sheaf_learner) > 0.01);
  CHECK(largest_change(base, network, ParameterGroup::sheaf_learner) == 0);
  CHECK(largest_change(base, network, ParameterGroup::network) > 0.01);
  // What decays strongly shrinks: Adam moves every weight towards 0 by the learning rate in each of 20 steps.
  const auto norm = [](const Model& model, ParameterGroup group) {
    double sum = 0;
    for (const sheafnn::layers::ParameterInfo& info : model.parameters().info()) {
      if (info.group != group) continue;
      for (Index i = info.offset; i < info.offset + info.size; ++i) {
        sum += std::abs(static_cast<double>(model.parameters().values()[i]));
      }
    }
    return sum;
  };
  const auto long_run = [&](double sheaf_decay) {
    return trained<Model>([&](TrainOptions& o) {
      o.epochs = o.patience = 20;
      o.stop_on = sheafnn::StopOn::loss;
      o.weight_decay = 0;
      o.sheaf_decay = sheaf_decay;
    });
  };
  CHECK(norm(long_run(100), ParameterGroup::sheaf_learner) <
        0.9 * norm(long_run(0), ParameterGroup::sheaf_learner));
}

TEST_CASE("the sheaf learner may have a learning rate of its own") {
  using Model = Bsnn<SpecialOrthogonal<2>>;
  using sheafnn::layers::ParameterGroup;
  const auto with_rate = [](double rate) {
    return trained<Model>([=](TrainOptions& o) { o.sheaf_learning_rate = rate; });
  };
  const Model base = with_rate(0);
  CHECK(same_parameters(base, with_rate(train_options().learning_rate)));  // the same bits
  const Model start(model_options(), 1), slow = with_rate(1e-7);
  CHECK(largest_change(start, slow, ParameterGroup::sheaf_learner) < 1e-5);
  CHECK(largest_change(start, slow, ParameterGroup::network) > 0.01);
  CHECK(largest_change(start, base, ParameterGroup::sheaf_learner) > 0.01);
}

TEST_CASE("options of training that are refused") {
  check_refused("epochs: 0 is not allowed; must be between 1 and 1000000000", [](auto& o) { o.epochs = 0; });
  check_refused("patience: 0 is not allowed; must be between 1 and 1000000000", [](auto& o) { o.patience = 0; });
  check_refused("training_samples: 0 is not allowed; must be between 1 and 1024",
                [](auto& o) { o.training_samples = 0; });
  check_refused("samples: 1025 is not allowed; must be between 1 and 1024", [](auto& o) { o.samples = 1025; });
  check_refused("learning_rate: 0 is not allowed; must be finite and at least 1.17549e-38",
                [](auto& o) { o.learning_rate = 0; });
  check_refused("learning_rate: nan is not allowed; must be finite and at least 1.17549e-38",
                [](auto& o) { o.learning_rate = std::numeric_limits<double>::quiet_NaN(); });
  check_refused("learning_rate: 1e-46 is not allowed; must be finite and at least 1.17549e-38",
                [](auto& o) { o.learning_rate = 1e-46; });  // 0 in single precision
  check_refused("sheaf_learning_rate: 1e-46 is not allowed; must be finite and at least 1.17549e-38, or 0",
                [](auto& o) { o.sheaf_learning_rate = 1e-46; });
  check_refused("weight_decay: -0.5 is not allowed; must be finite and at least 0",
                [](auto& o) { o.weight_decay = -0.5; });
  check_refused("sheaf_learning_rate: -1 is not allowed; must be finite and at least 1.17549e-38, or 0",
                [](auto& o) { o.sheaf_learning_rate = -1; });
  check_refused("sheaf_decay: inf is not allowed; must be finite and at least 0",
                [](auto& o) { o.sheaf_decay = std::numeric_limits<double>::infinity(); });
  check_refused("kl_maximum: -1 is not allowed; must be finite and at least 0",
                [](auto& o) { o.kl_maximum = -1; });
  check_refused("input_dropout: 1 is not allowed; must be at least 0 and below 1",
                [](auto& o) { o.input_dropout = 1; });
  check_refused("dropout: -0.1 is not allowed; must be at least 0 and below 1", [](auto& o) { o.dropout = -0.1; });
  check_refused("threads: -1 is not allowed; must be at least 0 (0: as many as the graph is worth)",
                [](auto& o) { o.threads = -1; });

  // Data that do not fit the model.
  using Model = Nsd<Diagonal<2>>;
  Dataset data = karate();
  data.labels[0] = 2;
  data.class_count = 3;
  Model model(model_options());
  CHECK_THROWS_WITH_AS(static_cast<void>(sheafnn::train(model, data, data.splits[0])),
                       "classes: 2 is not allowed; the data have 3 classes", std::invalid_argument);
  ModelOptions wide = model_options();
  wide.features = 35;
  Model wider(wide);
  CHECK_THROWS_WITH_AS(static_cast<void>(sheafnn::train(wider, karate(), karate().splits[0])),
                       "features.columns: 34 is not allowed; the model was built for 35", std::invalid_argument);
  const auto refused_split = [&](const std::string& text, const std::function<void(sheafnn::Split&)>& change) {
    sheafnn::Split split = karate().splits[0];
    change(split);
    CHECK_THROWS_WITH_AS(static_cast<void>(sheafnn::train(model, karate(), split)), text.c_str(),
                         std::invalid_argument);
  };
  refused_split("karate: split.train: an empty set is not allowed; training needs at least one node",
                [](sheafnn::Split& split) { split.train.clear(); });
  refused_split("karate: split.train: 34 is not allowed; node numbers must be between 0 and 33",
                [](sheafnn::Split& split) { split.train.back() = 34; });
  refused_split("karate: split.test: -1 is not allowed; node numbers must be between 0 and 33",
                [](sheafnn::Split& split) { split.test.front() = -1; });
  sheafnn::PredictOptions none;
  none.samples = 0;
  CHECK_THROWS_WITH_AS(static_cast<void>(sheafnn::predict(model, karate(), none)),
                       "samples: 0 is not allowed; must be between 1 and 32768", std::invalid_argument);
}

TEST_CASE("a run that diverges stops, says where, and leaves the model as it was") {
  const auto message = [](auto model, double rate, TrainOptions options = train_options()) -> std::string {
    options.learning_rate = rate;
    const auto before = model.parameters().values();
    try {
      static_cast<void>(sheafnn::train(model, karate(), karate().splits[0], options));
    } catch (const std::runtime_error& error) {
      CHECK(std::equal(before.begin(), before.end(), model.parameters().values().begin()));
      return error.what();
    }
    return "nothing was thrown";
  };
  // Rates at which the loss is finite, and its derivatives are not.
  ModelOptions small = model_options();
  small.spread = sheafnn::SpreadRange::published;
  small.channels = 4;
  small.layers = 2;
  small.add_lp = false;
  bool gradient = false;
  for (const double rate : {3e9, 1e10, 1e11, 1e12}) {
    const std::string text = message(Bsnn<SpecialOrthogonal<2>>(small, 1), rate, TrainOptions());
    gradient = gradient || text.find(": the gradient of ") != std::string::npos;
  }
  CHECK(gradient);
  for (const double rate : {1e20, 1e30, 1e38}) {
    CAPTURE(rate);
    for (const std::string& text : {message(Bsnn<Diagonal<2>>(model_options()), rate),
                                    message(Bsnn<SpecialOrthogonal<2>>(model_options()), rate),
                                    message(Nsd<Diagonal<2>>(model_options()), rate)}) {
      CAPTURE(text);
      CHECK(text.starts_with("training diverged in epoch "));
      CHECK(text.ends_with("; a smaller learning rate may help"));
      CHECK((text.find(" is nan;") != std::string::npos || text.find(" is -nan;") != std::string::npos ||
             text.find(" is inf;") != std::string::npos));
    }
  }
  TrainOptions batches = train_options();
  batches.batch_size = 4;
  batches.epochs = 1;
  const std::string text = message(Nsd<Diagonal<2>>(model_options()), 1e38, batches);
  CAPTURE(text);
  CHECK(text.starts_with("training diverged in epoch 0: "));  // in its second step
  CHECK(text.ends_with("; a smaller learning rate may help"));
}

TEST_CASE("numbers that are too large before the first step are not the learning rate's fault") {
  Dataset large = sheafnn::karate_club();
  const Index n = large.node_count();
  std::vector<double> features(static_cast<std::size_t>(n * n), 0.0);
  for (Index u = 0; u < n; ++u) features[static_cast<std::size_t>(u * n + u)] = 1e38;
  large.features = sheafnn::NodeFeatures::from_dense(std::span<const double>(features), n, n);
  ModelOptions options = model_options();
  options.features = n;
  options.classes = large.class_count;
  options.feature_treatment = sheafnn::FeatureTreatment::none;
  Bsnn<Diagonal<2>> model(options, 1);
  std::string text = "nothing is thrown";
  try {
    train(model, large, large.splits.front(), {.epochs = 2});
  } catch (const std::runtime_error& error) {
    text = error.what();
  }
  CAPTURE(text);
  CHECK(text.starts_with("training diverged in epoch 0: "));
  CHECK(text.ends_with(
      " before the first step; features, parameters, a decay, the KL weight or the loss may be too large"));
}

TEST_CASE("prediction and its uncertainty") {
  const auto check = [](auto model) {
    using Model = decltype(model);
    TrainOptions options = train_options();
    options.epochs = 60;
    static_cast<void>(sheafnn::train(model, karate(), karate().splits[0], options));
    sheafnn::PredictOptions predict_options;
    predict_options.samples = 12;
    predict_options.threads = 1;
    const sheafnn::Prediction p = sheafnn::predict(model, karate(), predict_options);
    CHECK(p.class_count == 2);
    REQUIRE(p.label.size() == 34);
    REQUIRE(p.probabilities.size() == 68);
    double information = 0, variance = 0;
    for (std::size_t u = 0; u < 34; ++u) {
      CHECK(std::abs(p.probabilities[2 * u] + p.probabilities[2 * u + 1] - 1) <=
            8 * static_cast<double>(std::numeric_limits<float>::epsilon()));
      CHECK(p.label[u] == (p.probabilities[2 * u + 1] > p.probabilities[2 * u] ? 1 : 0));
      CHECK(p.entropy[u] >= 0);
      CHECK(p.entropy[u] <= std::log(2.0) + 1e-6);
      CHECK(p.mutual_information[u] >= 0);
      CHECK(p.mutual_information[u] <= p.entropy[u]);
      CHECK(p.epistemic_variance[u] >= 0);
      CHECK(p.epistemic_variance[u] <= 0.25);
      information += p.mutual_information[u];
      variance += p.epistemic_variance[u];
    }
    if (Model::bayesian) {
      CHECK(information > 1e-4);
      CHECK(variance > 1e-6);
    } else {
      CHECK(information <= 34 * 16 * std::numeric_limits<double>::epsilon());
      CHECK(variance == 0);
    }
    // Labels are what was learned, mostly.
    Index right = 0;
    for (std::size_t u = 0; u < 34; ++u) right += p.label[u] == karate().labels[u] ? 1 : 0;
    CHECK(right >= 28);

    // Another graph: more members and other ties, the same features.
    sheafnn::SyntheticOptions other;
    other.nodes = 50;
    other.classes = 2;
    other.features = 34;
    other.words = 3;
    const Dataset unseen = sheafnn::synthetic(other);
    const sheafnn::Prediction elsewhere = sheafnn::predict(model, unseen, predict_options);
    CHECK(elsewhere.label.size() == 50);
    CHECK(std::all_of(elsewhere.probabilities.begin(), elsewhere.probabilities.end(),
                      [](double x) { return x >= 0 && x <= 1 + 1e-6; }));
    CHECK(sheafnn::predict(model, unseen, predict_options).probabilities == elsewhere.probabilities);
    predict_options.threads = 2;
    CHECK(sheafnn::predict(model, unseen, predict_options).probabilities == elsewhere.probabilities);
    predict_options.seed = 1;
    CHECK((sheafnn::predict(model, unseen, predict_options).probabilities == elsewhere.probabilities) ==
          !Model::bayesian);
    // And the model is as it was.
    CHECK(sheafnn::predict(model, karate(), {.samples = 12, .threads = 1}).probabilities == p.probabilities);
  };
  check(Bsnn<Diagonal<2>>(model_options()));
  check(Nsd<Diagonal<2>>(model_options()));
}

}  // namespace test_training
