/// \file
/// Files that earlier versions have written, tests/files/VERSION, must load for ever and hold the same numbers. Files
/// of later versions are refused, with both versions named.
///
/// When a format changes, its version grows and this writes the files to be kept, into a folder of their own:
///     sheafnn_tests --no-skip --test-case="old files: written by this version"
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "shared_networks.hpp"
#include "sheafnn/bsnn/cooperative_model.hpp"
#include "sheafnn/bsnn/flow_model.hpp"
#include "sheafnn/bsnn/model.hpp"
#include "sheafnn/bsnn/prediction.hpp"
#include "sheafnn/bsnn/trainer.hpp"
#include "sheafnn/io/checkpoint.hpp"
#include "sheafnn/io/format_version.hpp"
#include "sheafnn/io/learned_file.hpp"
#include "sheafnn/io/npz_archive.hpp"
#include "sheafnn/io/npz_writer.hpp"
#include "sheafnn/io/training_state.hpp"
#include "temporary_folder.hpp"
#include "tiny_task.hpp"

namespace test_old_files {
namespace {

namespace io = sheafnn::io;
using sheafnn::Index;
using Predicting = sheafnn::Bsnn<sheafnn::Diagonal<2>, double>;
using Training = sheafnn::Bsnn<sheafnn::Diagonal<2>>;

std::filesystem::path files() { return std::filesystem::path(SHEAFNN_TEST_DATA) / "files"; }

/// A model of every kind, with options that are not the defaults.
template <class Model>
struct Kept {
  const char* name;
  typename Model::Options options;
};
template <class Visit>
void for_each_kept(const Visit& visit) {
  sheafnn::ModelOptions options = tiny::options();
  visit(Kept<Predicting>{"predicting", options});
  visit(Kept<Training>{"training", options});
  options.add_lp = options.second_linear = options.layer_norm = true;
  options.learner_layers = 1;
  options.readout_layers = 2;
  options.edge_features = 2;
  options.learner = sheafnn::LearnerInput::summed;
  visit(Kept<sheafnn::Bsnn<sheafnn::SpecialOrthogonal<2>>>{"rotations", options});
  options.filter = {.basis = sheafnn::PolynomialBasis::legendre, .degree = 3};
  options.feature_treatment = sheafnn::FeatureTreatment::none;
  visit(Kept<sheafnn::Nsd<sheafnn::Diagonal<2>>>{"nsd", options});
  const sheafnn::CooperativeOptions cooperative{
      .features = 4, .channels = 2, .layers = 2, .classes = 3, .learner_width = 3, .readout_layers = 2};
  visit(Kept<sheafnn::Csnn<3, float>>{"csnn", cooperative});
  visit(Kept<sheafnn::Bcsnn<3, float>>{"bcsnn", cooperative});
  sheafnn::FlowOptions flow;
  flow.features = 4;
  flow.channels = 2;
  flow.classes = 3;
  flow.time = 1.5;
  flow.method = sheafnn::FlowMethod::runge_kutta;
  visit(Kept<sheafnn::BayesianSheafFlow<sheafnn::SpecialOrthogonal<2>>>{"bflow", flow});
}

template <class Model>
std::vector<double> numbers(const Model& model) {
  return {model.parameters().values().begin(), model.parameters().values().end()};
}
template <class Model>
std::vector<std::string> texts(const Model& model) {
  std::vector<std::string> r;
  for (const auto& [key, value] : io::option_texts(model.options())) r.push_back(key + "=" + value);
  // As versions before feature_treatment had it.
  const bool rows = model.options().feature_treatment == sheafnn::FeatureTreatment::rows;
  r.push_back(std::string("normalise_features=") + (rows ? "true" : "false"));
  return r;
}
/// The same with a ; after each.
template <class Model>
std::string text(const Model& model) {
  std::string r;
  for (const std::string& option : texts(model)) r += option + ';';
  return r;
}

const sheafnn::Dataset& data() {
  static const sheafnn::Dataset set = [] {
    const tiny::Task task;
    return sheafnn::Dataset{"tiny", task.graph, task.sparse, task.labels, task.classes, {}};
  }();
  return set;
}
const sheafnn::Split split{{0, 1, 3}, {4, 5}, {6}};
sheafnn::TrainOptions train_options(Index epochs) {
  sheafnn::TrainOptions options;
  options.epochs = epochs;
  options.kl_maximum = 1;  // this and the next are defaults of the first versions
  options.sheaf_learning_rate = 0;
  options.seed = 5;
  options.threads = 1;
  return options;
}
std::vector<double> losses(const std::vector<sheafnn::EpochReport>& history) {
  std::vector<double> r;
  for (const sheafnn::EpochReport& report : history) {
    r.insert(r.end(), {report.loss, report.nll, report.kl, report.kl_weight, report.validation_loss});
  }
  return r;
}
sheafnn::Prediction prediction(const Predicting& model) {
  return sheafnn::predict(model, data(), {.samples = 3, .seed = 8, .threads = 1});
}

/// Largest difference, relative to the largest number.
double distance(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return INFINITY;
  double most = 0, largest = 1e-300;
  for (std::size_t i = 0; i < a.size(); ++i) {
    most = std::max(most, std::abs(a[i] - b[i]));
    largest = std::max(largest, std::abs(a[i]));
  }
  return most / largest;
}

template <class Model>
void check_model(const std::filesystem::path& folder, const io::NpzArchive& expected, const Kept<Model>& kept) {
  CAPTURE(kept.name);
  const Model model = io::load_checkpoint<Model>(folder / (std::string(kept.name) + ".safetensors"));
  const std::string key = kept.name;
  CHECK(numbers(model) == expected.array(key).template values<double>());
  // Options that were added later have their defaults.
  const std::string options = text(model), before = expected.text(key + "_options");
  for (std::size_t begin = 0; begin < before.size();) {
    const std::size_t end = before.find(';', begin) + 1;
    CAPTURE(before.substr(begin, end - begin));
    CHECK((";" + options).find(";" + before.substr(begin, end - begin)) != std::string::npos);
    begin = end;
  }
  if constexpr (std::is_same_v<Model, Predicting>) {
    CHECK(distance(expected.array("probabilities").template values<double>(), prediction(model).probabilities) < 1e-10);
  }
}

}  // namespace

TEST_CASE("old files: written by this version" * doctest::skip()) {
  const std::filesystem::path folder = files() / std::to_string(io::checkpoint_version);
  std::filesystem::create_directories(folder);
  io::NpzWriter expected;
  for_each_kept([&]<class Model>(const Kept<Model>& kept) {
    Model model(kept.options, 9);
    tiny::disturb(model.parameters(), 3, 0.2);
    io::save_checkpoint(folder / (std::string(kept.name) + ".safetensors"), model);
    const std::vector<double> values = numbers(model);
    expected.add<double>(kept.name, {static_cast<Index>(values.size())}, values);
    expected.add(std::string(kept.name) + "_options", text(model));
    if constexpr (std::is_same_v<Model, Predicting>) {
      const std::vector<double> probabilities = prediction(model).probabilities;
      expected.add<double>("probabilities", {tiny::Task::nodes, tiny::Task::classes}, probabilities);
      io::write_learned(folder / "learned.npz", model, data(), {.samples = 3, .seed = 8, .threads = 1});
    }
    if constexpr (std::is_same_v<Model, Training>) {
      sheafnn::TrainOptions options = train_options(4);
      options.on_checkpoint = [&](const sheafnn::TrainingState& state) {
        io::write_training_state(folder / "state.safetensors", state, {{"note", "kept"}});
        expected.add<double>("state", {static_cast<Index>(state.best_parameters.size())}, state.best_parameters);
      };
      options.checkpoint_every = 100;
      Model trained = model;
      sheafnn::train(trained, data(), split, options);
      const std::vector<double> history = losses(sheafnn::train(model, data(), split, train_options(6)).history);
      expected.add<double>("history", {static_cast<Index>(history.size())}, history);
    }
  });
  expected.write(folder / "expected.npz");
}

TEST_CASE("old files: models, trainings and learned sheaves of every version hold the same numbers") {
  int versions = 0;
  for (const auto& entry : std::filesystem::directory_iterator(files())) {
    const std::filesystem::path folder = entry.path();
    CAPTURE(folder);
    ++versions;
    const io::NpzArchive expected(folder / "expected.npz");
    for_each_kept([&](const auto& kept) { check_model(folder, expected, kept); });

    const io::TrainingFile file = io::read_training_state(folder / "state.safetensors");
    CHECK(file.metadata.at("note") == "kept");
    CHECK(file.state.history.size() == 4);
    CHECK(file.state.best_parameters == expected.array("state").values<double>());
    Training model = io::load_checkpoint<Training>(folder / "training.safetensors");
    sheafnn::TrainOptions options = train_options(6);
    options.resume = &file.state;
    const std::vector<double> now = losses(sheafnn::train(model, data(), split, options).history);
    CHECK(distance(expected.array("history").values<double>(), now) < 1e-4);  // single precision

    const io::NpzArchive learned(folder / "learned.npz");
    CHECK(learned.text("family") == "diagonal");
    CHECK(learned.array("node_count").values<double>() == std::vector<double>{tiny::Task::nodes});
    CHECK(learned.array("probabilities").values<double>() == expected.array("probabilities").values<double>());
  }
  CHECK(versions == io::checkpoint_version);
}

namespace {

// Networks that have another sign or scale since version 2, as version 1 wrote them: a checkpoint, what it predicted, the
// state of a training after 4 epochs, and the losses of 6.
using Signs = sheafnn::Csnn<3, double>;
using Filters = sheafnn::Bsnn<sheafnn::Diagonal<2>, double>;

/// \param option  that says so
template <class Model>
void check_conventions(const std::string& name, bool Model::Options::*option) {
  CAPTURE(name);
  const std::filesystem::path folder = files() / "1", path = folder / (name + ".safetensors");
  const io::NpzArchive expected(folder / "conventions.npz");
  const test::TemporaryFolder temporary;
  Model model = io::load_checkpoint<Model>(path);
  CHECK(model.options().*option);
  const auto probabilities = [](const Model& of) {
    return sheafnn::predict(of, data(), {.samples = 3, .seed = 8, .threads = 1}).probabilities;
  };
  CHECK(distance(expected.array(name).values<double>(), probabilities(model)) < 1e-10);
  // Stored anew it says itself what it is.
  io::save_checkpoint(temporary / "new", model);
  CHECK(io::read_safetensors(temporary / "new").metadata.at("format_version") == std::to_string(io::checkpoint_version));
  const Model again = io::load_checkpoint<Model>(temporary / "new");
  CHECK(again.options() == model.options());
  CHECK(probabilities(again) == probabilities(model));

  const io::TrainingFile file = io::read_training_state(folder / (name + "_state.safetensors"));
  CHECK(file.state.conventions == 1);
  sheafnn::TrainOptions options = train_options(6);
  options.resume = &file.state;
  const std::vector<double> history = expected.array(name + "_history").values<double>();
  const Model start = model;
  CHECK(distance(history, losses(sheafnn::train(model, data(), split, options).history)) < 1e-10);

  // A network of the same options, made now, is another one.
  typename Model::Options now = start.options();
  now.*option = false;
  Model other(now);
  other.parameters() = start.parameters();
  CHECK(distance(probabilities(start), probabilities(other)) > 1e-3);
  CHECK_THROWS_WITH_AS(sheafnn::train(other, data(), split, options), doctest::Contains("of an earlier version"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(io::load_checkpoint_into(path, other),
                       doctest::Contains("is true in the file, but false in the model"), std::runtime_error);
  // A state of its own goes on.
  options = train_options(4);
  options.checkpoint_every = 100;
  options.on_checkpoint = [&](const sheafnn::TrainingState& last) {
    io::write_training_state(temporary / "state", last);
  };
  Model first = other;
  sheafnn::train(first, data(), split, options);
  const io::TrainingFile own = io::read_training_state(temporary / "state");
  CHECK(own.state.conventions == io::training_state_version);
  options = train_options(6);
  options.resume = &own.state;
  CHECK(sheafnn::train(other, data(), split, options).history.size() == 6);
}

}  // namespace

TEST_CASE(
    "old files: networks without residual, and with fixed filters and the block normalisation, are what they "
    "were") {
  check_conventions<Signs>("signs", &sheafnn::CooperativeOptions::negate_diffused);
  check_conventions<Filters>("filters", &sheafnn::ModelOptions::augmented_filters);
}

TEST_CASE("old files: posteriors keep the published range of spread") {
  for (const char* version : {"1", "2"}) {
    const std::filesystem::path folder = files() / version;
    const Training model = io::load_checkpoint<Training>(folder / "training.safetensors");
    CHECK(model.options().spread == sheafnn::SpreadRange::published);
    const io::TrainingFile file = io::read_training_state(folder / "state.safetensors");
    Training::Options now = model.options();
    now.spread = sheafnn::SpreadRange::concentrated;
    Training other(now);
    sheafnn::TrainOptions options = train_options(6);
    options.resume = &file.state;
    CHECK_THROWS_WITH_AS(sheafnn::train(other, data(), split, options),
                         doctest::Contains("set spread to published to resume"), std::invalid_argument);
    CHECK_THROWS_WITH_AS(io::load_checkpoint_into(folder / "training.safetensors", other),
                         doctest::Contains("is published in the file, but concentrated in the model"), std::runtime_error);
  }
}

TEST_CASE("old files: those of later versions are refused, and both versions are named") {
  const test::TemporaryFolder folder;
  const std::filesystem::path old = files() / "1", path = folder / "later";
  const auto refused = [&](const char* name, const char* version, const auto& read, const std::string& why) {
    io::TensorFile file = io::read_safetensors(old / name);
    CHECK(file.metadata.at("format_version") == "1");
    file.metadata["format_version"] = version;
    file.metadata["sheafnn_version"] = "99.1.0";
    file.metadata["layers"] = "of another kind";  // what a later version says may mean anything
    io::write_safetensors(path, file);
    CHECK_THROWS_WITH_AS(read(), (path.string() + ": " + why).c_str(), std::runtime_error);
  };
  const std::string later = "has format version 4 of sheafnn 99.1.0; this is sheafnn " SHEAFNN_VERSION_STRING
                            ", which reads versions up to 3";
  const auto info = [&] { static_cast<void>(io::read_checkpoint_info(path)); };
  const auto state = [&] { static_cast<void>(io::read_training_state(path)); };
  refused("csnn.safetensors", "4", info, later);
  refused(
      "csnn.safetensors", "4", [&] { static_cast<void>(io::load_checkpoint<sheafnn::Csnn<3, float>>(path)); },
      later);
  refused("state.safetensors", "4", state, later);
  refused("csnn.safetensors", "new", info, "metadata: format_version is 'new'; it must be a whole number");
  refused("state.safetensors", "0", state, "format_version is 0; it must be at least 1");
  CHECK_THROWS_WITH_AS(io::require_known_version("f", 3, 1), "f: has format version 3; this is sheafnn "
                       SHEAFNN_VERSION_STRING ", which reads versions up to 1", std::runtime_error);
}

}  // namespace test_old_files
