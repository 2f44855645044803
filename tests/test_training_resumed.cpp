/// \file
/// Trainings that are stopped and go on: callbacks that stop, states, their files, and the same bits in the end.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "result_numbers.hpp"
#include "shared_networks.hpp"
#include "sheafnn/bsnn/trainer.hpp"
#include "sheafnn/graph/karate.hpp"
#include "sheafnn/io/file.hpp"
#include "sheafnn/io/safetensors.hpp"
#include "sheafnn/io/training_state.hpp"
#include "temporary_folder.hpp"

namespace test_training_resumed {
namespace {

using sheafnn::Bsnn;
using sheafnn::Diagonal;
using sheafnn::EpochAction;
using sheafnn::EpochReport;
using sheafnn::Index;
using sheafnn::Nsd;
using sheafnn::SpecialOrthogonal;
using sheafnn::StopReason;
using sheafnn::TrainingState;
using sheafnn::TrainOptions;
using sheafnn::TrainResult;
using test::numbers_of;

const sheafnn::Dataset& karate() {
  static const sheafnn::Dataset data = sheafnn::karate_club();
  return data;
}
template <class Model>
Model new_model() {
  sheafnn::ModelOptions options{.features = 34, .channels = 4, .layers = 2, .classes = 2};
  options.add_lp = true;
  return Model(options, 1);
}
TrainOptions train_options() {
  TrainOptions options;
  options.epochs = 200;
  options.patience = 8;
  options.learning_rate = 0.05;
  options.seed = 4;
  options.threads = 1;
  return options;
}
template <class Model>
TrainResult train(Model& model, const TrainOptions& options) {
  return sheafnn::train(model, karate(), karate().splits[1], options);
}

/// For comparisons of numbers that may be NaN.
std::vector<std::uint64_t> bits(const std::vector<double>& values) {
  std::vector<std::uint64_t> r;
  for (const double value : values) r.push_back(std::bit_cast<std::uint64_t>(value));
  return r;
}
template <class Model>
std::vector<double> parameters(const Model& model) {
  return {model.parameters().values().begin(), model.parameters().values().end()};
}
bool same(const TrainingState& a, const TrainingState& b) {
  return a.seed == b.seed && a.parameters == b.parameters && a.first_moment == b.first_moment &&
         a.second_moment == b.second_moment && a.best_epoch == b.best_epoch &&
         a.best_parameters == b.best_parameters && a.best_predictions == b.best_predictions &&
         a.stop_on == b.stop_on &&
         std::equal(a.history.begin(), a.history.end(), b.history.begin(), b.history.end(),
                    [](const EpochReport& x, const EpochReport& y) { return numbers_of(x) == numbers_of(y); });
}

/// The state of a training that is stopped after `epochs` epochs, and a result that was stopped.
template <class Model>
TrainingState stopped_after(Index epochs, TrainOptions options) {
  TrainingState state;
  options.on_epoch = [&](const EpochReport& report) {
    return report.epoch + 1 == epochs ? EpochAction::stop : EpochAction::keep_training;
  };
  options.on_checkpoint = [&](const TrainingState& now) { state = now; };
  Model model = new_model<Model>();
  const TrainResult result = train(model, options);
  CHECK(static_cast<Index>(result.history.size()) == epochs);
  CHECK(static_cast<Index>(state.history.size()) == epochs);
  CHECK(parameters(model) == state.best_parameters);
  return state;
}

template <class Model>
void check_resumed(sheafnn::StopOn stop_on = sheafnn::StopOn::loss) {
  CAPTURE(Model::Family::name);
  CAPTURE(Model::bayesian);
  TrainOptions options = train_options();
  options.stop_on = stop_on;
  Model whole = new_model<Model>();
  const TrainResult expected = train(whole, options);
  const Index length = static_cast<Index>(expected.history.size());
  CHECK(expected.best_epoch > 0);
  CHECK(expected.stop_reason == StopReason::patience);
  for (const Index epochs : {Index{1}, expected.best_epoch + 1, expected.best_epoch + 4, length}) {
    CAPTURE(epochs);
    const TrainingState state = stopped_after<Model>(epochs, options);
    for (const int threads : {1, 2}) {
      TrainOptions more = options;
      more.threads = threads;
      more.resume = &state;
      Index calls = 0;
      more.on_epoch = [&](const EpochReport&) { ++calls; };
      Model model = new_model<Model>();
      const TrainResult result = train(model, more);
      CHECK(numbers_of(result) == numbers_of(expected));
      CHECK(parameters(model) == parameters(whole));
      CHECK(calls == length - epochs);
    }
  }
}

std::string message(const TrainingState& state, const TrainOptions& options = train_options()) {
  TrainOptions more = options;
  more.resume = &state;
  Nsd<Diagonal<2>> model = new_model<Nsd<Diagonal<2>>>();
  const std::vector<double> before = parameters(model);
  try {
    static_cast<void>(train(model, more));
  } catch (const std::invalid_argument& error) {
    CHECK(parameters(model) == before);
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace

TEST_CASE("a callback stops a training, and the best model so far is kept") {
  using Model = Bsnn<Diagonal<2>>;
  TrainOptions options = train_options();
  Model whole = new_model<Model>();
  const TrainResult all = train(whole, options);
  CHECK(all.stop_reason == StopReason::patience);
  REQUIRE(all.history.size() > 10);

  for (const int threads : {1, 2}) {
    options.threads = threads;
    std::vector<std::vector<double>> seen;
    Model model = new_model<Model>();
    options.on_epoch = [&](const EpochReport& report) {
      seen.push_back(parameters(model));
      return report.epoch == 9 ? EpochAction::stop : EpochAction::keep_training;
    };
    const TrainResult result = train(model, options);
    CHECK(result.stop_reason == StopReason::callback);
    REQUIRE(result.history.size() == 10);
    Index best = 0;
    for (std::size_t t = 0; t < 10; ++t) {
      CHECK(numbers_of(result.history[t]) == numbers_of(all.history[t]));
      if (result.history[t].validation_loss < result.history[static_cast<std::size_t>(best)].validation_loss) {
        best = static_cast<Index>(t);
      }
    }
    CHECK(result.best_epoch == best);
    CHECK(parameters(model) == seen[static_cast<std::size_t>(best)]);
  }
  // A callback that asks for a stop where the training ends anyway stops nothing.
  options.epochs = 10;
  options.on_epoch = [](const EpochReport& report) {
    return report.epoch == 9 ? EpochAction::stop : EpochAction::keep_training;
  };
  Model model = new_model<Model>();
  CHECK(train(model, options).stop_reason == StopReason::epochs);
}

TEST_CASE("a training that goes on ends with the same bits") {
  check_resumed<Bsnn<Diagonal<2>>>();
  check_resumed<Bsnn<SpecialOrthogonal<2>>>();
  check_resumed<Nsd<Diagonal<2>>>();
  check_resumed<Bsnn<Diagonal<2>>>(sheafnn::StopOn::average_precision);
}

TEST_CASE("checkpoints come every few epochs and in the end") {
  using Model = Nsd<Diagonal<2>>;
  TrainOptions options = train_options();
  options.patience = 1000;
  options.epochs = 11;
  options.checkpoint_every = 4;
  std::vector<std::size_t> lengths;
  options.on_checkpoint = [&](const TrainingState& state) { lengths.push_back(state.history.size()); };
  Model model = new_model<Model>();
  static_cast<void>(train(model, options));
  CHECK(lengths == std::vector<std::size_t>{4, 8, 11});
  // One that cannot be written ends the training, and the model is as it was.
  options.on_checkpoint = [](const TrainingState&) { throw std::runtime_error("no room"); };
  Model other = new_model<Model>();
  CHECK_THROWS_WITH_AS(static_cast<void>(train(other, options)), "no room", std::runtime_error);
  CHECK(parameters(other) == parameters(new_model<Model>()));
  // More epochs than before.
  const TrainingState state = stopped_after<Model>(11, options);
  TrainOptions more = options;
  more.on_checkpoint = nullptr;
  more.epochs = 20;
  more.resume = &state;
  Model longer = new_model<Model>(), whole = new_model<Model>();
  const TrainResult result = train(longer, more);
  more.resume = nullptr;
  CHECK(numbers_of(result) == numbers_of(train(whole, more)));
  CHECK(parameters(longer) == parameters(whole));
}

TEST_CASE("a training without validation and test nodes goes on with the same bits, also from a file") {
  using Model = Bsnn<Diagonal<2>>;
  const test::TemporaryFolder folder;
  const auto path = folder / "run.safetensors";
  TrainOptions options = train_options();
  options.epochs = 14;
  options.patience = 1;
  sheafnn::Split split = karate().splits[1];
  for (auto* set : {&split.validation, &split.test}) {
    set->clear();
    Model whole = new_model<Model>();
    const TrainResult expected = sheafnn::train(whole, karate(), split, options);
    CHECK(expected.best_epoch == 13);
    TrainOptions first = options;
    first.epochs = 5;
    first.on_checkpoint = [&](const TrainingState& state) { sheafnn::io::write_training_state(path, state); };
    Model model = new_model<Model>();
    static_cast<void>(sheafnn::train(model, karate(), split, first));
    const TrainingState state = sheafnn::io::read_training_state(path).state;
    CHECK(state.best_epoch == 4);
    CHECK(std::isnan(state.history[4].validation_loss));
    TrainOptions more = options;
    more.resume = &state;
    for (const int threads : {1, 2}) {
      more.threads = threads;
      model = new_model<Model>();
      const TrainResult result = sheafnn::train(model, karate(), split, more);
      CHECK(bits(numbers_of(result)) == bits(numbers_of(expected)));
      CHECK(parameters(model) == parameters(whole));
    }
  }
}

TEST_CASE("states that do not fit") {
  const TrainingState state = stopped_after<Nsd<Diagonal<2>>>(5, train_options());
  const std::string size = std::to_string(state.parameters.size());
  const auto changed = [&](const std::function<void(TrainingState&)>& change) {
    TrainingState other = state;
    change(other);
    return message(other);
  };
  CHECK(message(TrainingState{}) == "resume.history: 0 is not allowed; at least one epoch is needed");
  CHECK(changed([](TrainingState& s) { s.best_epoch = 5; }) ==
        "resume.best_epoch: 5 is not allowed; must be between 0 and 4");
  CHECK(changed([](TrainingState& s) { s.seed = 9; }) == "resume.seed: 9 is not allowed; the options have 4");
  CHECK(changed([](TrainingState& s) { s.parameters.resize(3); }) ==
        "resume.parameters: 3 is not allowed; expected " + size + " numbers");
  CHECK(changed([](TrainingState& s) { s.first_moment.clear(); }) ==
        "resume.first_moment: 0 is not allowed; expected " + size + " numbers");
  CHECK(changed([](TrainingState& s) { s.second_moment.clear(); }) ==
        "resume.second_moment: 0 is not allowed; expected " + size + " numbers");
  CHECK(changed([](TrainingState& s) { s.best_parameters.clear(); }) ==
        "resume.best_parameters: 0 is not allowed; expected " + size + " numbers");
  CHECK(changed([](TrainingState& s) { s.best_predictions.pop_back(); }) ==
        "resume.best_predictions: 67 is not allowed; expected 68 numbers");
  CHECK(changed([](TrainingState& s) { s.second_moment[1] = -0.5; }) ==
        "resume.second_moment[1]: -0.5 is not allowed; must be finite and at least 0");
  CHECK(changed([](TrainingState& s) { s.parameters[2] = std::numeric_limits<double>::infinity(); }) ==
        "resume.parameters[2]: inf is not allowed; must be finite");
  CHECK(changed([](TrainingState& s) { s.history[3].epoch = 7; }) ==
        "resume.history[3].epoch: 7 is not allowed; must be 3");
  TrainOptions ranked = train_options();
  ranked.stop_on = sheafnn::StopOn::roc_auc;
  const TrainingState by_metric = stopped_after<Nsd<Diagonal<2>>>(3, ranked);
  CHECK(message(state, ranked) ==
        "stop_on: roc-auc is not allowed; the training to resume chose its best epoch by loss");
  CHECK(message(by_metric) ==
        "stop_on: loss is not allowed; the training to resume chose its best epoch by roc-auc");
  // Files of versions that did not write it.
  const auto unknown = [](TrainingState from) {
    from.stop_on.reset();
    return from;
  };
  CHECK(message(unknown(state), ranked) ==
        "stop_on: roc-auc is not allowed; the training to resume chose its best epoch by loss or accuracy");
  CHECK(message(unknown(by_metric)) ==
        "stop_on: loss is not allowed; the training to resume chose its best epoch by a metric");
  TrainOptions shorter = train_options();
  shorter.epochs = 4;
  CHECK(message(state, shorter) == "epochs: 4 is not allowed; the training to resume has 5 epochs already");
  TrainOptions never = train_options();
  never.checkpoint_every = 0;
  CHECK_THROWS_WITH_AS(sheafnn::validate(never),
                       "checkpoint_every: 0 is not allowed; must be between 1 and 1000000000",
                       std::invalid_argument);
}

TEST_CASE("a classification goes on with its own split only") {
  const sheafnn::Split own = karate().splits[0];
  sheafnn::Split other = own;
  std::swap(other.train, other.test);  // its test nodes were not evaluated
  TrainingState state;
  auto model = new_model<Nsd<Diagonal<2>>>();
  TrainOptions options = train_options();
  options.epochs = 5;
  options.on_checkpoint = [&](const TrainingState& now) { state = now; };
  static_cast<void>(sheafnn::train(model, karate(), own, options));
  TrainOptions more = train_options();
  more.resume = &state;
  CHECK_NOTHROW(static_cast<void>(sheafnn::train(model, karate(), own, more)));
  const std::string message =
      "split: one with node " + std::to_string(other.test.front()) +
      " among the nodes to evaluate is not allowed; the training to resume had another split";
  CHECK_THROWS_WITH_AS(static_cast<void>(sheafnn::train(model, karate(), other, more)), message.c_str(),
                       std::invalid_argument);
}

TEST_CASE("the file of a state") {
  const test::TemporaryFolder folder;
  const auto path = folder / "run.safetensors";
  const TrainingState state = stopped_after<Bsnn<Diagonal<2>>>(7, train_options());
  sheafnn::io::write_training_state(path, state, {{"dataset", "karate"}});
  const sheafnn::io::TrainingFile file = sheafnn::io::read_training_state(path);
  CHECK(same(file.state, state));
  CHECK(file.metadata.at("dataset") == "karate");
  CHECK_THROWS_WITH_AS(sheafnn::io::write_training_state(path, state, {{"seed", "1"}}),
                       "metadata key: seed is not allowed; is one of the format's own", std::invalid_argument);
  // What could not be read again.
  for (const auto& [name, vector] :
       std::initializer_list<std::pair<std::string, std::vector<double> TrainingState::*>>{
           {"parameters", &TrainingState::parameters},
           {"first_moment", &TrainingState::first_moment},
           {"second_moment", &TrainingState::second_moment},
           {"best_parameters", &TrainingState::best_parameters},
           {"best_predictions", &TrainingState::best_predictions}}) {
    TrainingState broken = state;
    (broken.*vector)[2] = std::numeric_limits<double>::quiet_NaN();
    CHECK_THROWS_WITH_AS(sheafnn::io::write_training_state(path, broken),
                         (name + "[2]: nan is not allowed; must be finite").c_str(), std::invalid_argument);
  }
  CHECK(same(sheafnn::io::read_training_state(path).state, state));

  // With a metric to stop on, and a file from before there were any.
  TrainOptions ranked = train_options();
  ranked.stop_on = sheafnn::StopOn::brier;
  const TrainingState with_metric = stopped_after<Nsd<Diagonal<2>>>(3, ranked);
  CHECK(with_metric.history[2].validation_metric > 0);
  sheafnn::io::write_training_state(folder / "metric.safetensors", with_metric);
  CHECK(same(sheafnn::io::read_training_state(folder / "metric.safetensors").state, with_metric));
  sheafnn::io::TensorFile old = sheafnn::io::read_safetensors(path);
  for (sheafnn::io::Tensor& tensor : old.tensors) {
    if (tensor.name != "history") continue;
    const std::vector<double> values = tensor.values<double>();
    std::vector<double> before;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i % 9 < 7) before.push_back(values[i]);
    }
    tensor = sheafnn::io::make_tensor<double>("history", {7, 7}, before);
  }
  old.metadata.erase("best_by");
  sheafnn::io::write_safetensors(folder / "old.safetensors", old);
  TrainingState before = state;
  before.stop_on.reset();
  CHECK(same(sheafnn::io::read_training_state(folder / "old.safetensors").state, before));

  // Everything that is missing or wrong is named.
  const sheafnn::io::TensorFile good = sheafnn::io::read_safetensors(path);
  const auto refused = [&](const std::string& text, const std::function<void(sheafnn::io::TensorFile&)>& change) {
    sheafnn::io::TensorFile bad = good;
    change(bad);
    const auto other = folder / "bad.safetensors";
    sheafnn::io::write_safetensors(other, bad);
    CHECK_THROWS_WITH_AS(static_cast<void>(sheafnn::io::read_training_state(other)),
                         (other.string() + ": " + text).c_str(), std::runtime_error);
  };
  refused("is not the checkpoint of a training", [](auto& f) { f.metadata.erase("format"); });
  refused("metadata: best_by is 'luck'", [](auto& f) { f.metadata["best_by"] = "luck"; });
  refused("metadata key 'best_epoch' is missing", [](auto& f) { f.metadata.erase("best_epoch"); });
  refused("metadata: seed is 'x'; it must be a whole number", [](auto& f) { f.metadata["seed"] = "x"; });
  for (std::size_t i = 0; i < good.tensors.size(); ++i) {
    const std::string name = good.tensors[i].name;
    refused("tensor '" + name + "' is missing",
            [&](auto& f) { f.tensors.erase(f.tensors.begin() + static_cast<std::ptrdiff_t>(i)); });
    refused("tensor '" + name + "' has a wrong shape", [&](auto& f) { f.tensors[i].shape.push_back(1); });
    if (name == "history") continue;
    std::vector<double> values = good.tensors[i].template values<double>();
    const std::string last = std::to_string(values.size() - 1);
    refused("tensor '" + name + "': number " + last + " is nan; it must be finite", [&](auto& f) {
      values.back() = std::numeric_limits<double>::quiet_NaN();
      f.tensors[i] = sheafnn::io::make_tensor<double>(name, f.tensors[i].shape, values);
    });
  }
}

}  // namespace test_training_resumed
