/// \file
/// Trains a Bayesian sheaf neural network (or neural sheaf diffusion) for node classification on the splits of a
/// dataset, prints a table and, on request, writes a report and the models.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sheafnn/bsnn/prediction.hpp>
#include <sheafnn/bsnn/trainer.hpp>
#include <sheafnn/graph/statistics.hpp>
#include <sheafnn/io/datasets.hpp>
#include <sheafnn/io/file.hpp>
#include <sheafnn/io/safetensors.hpp>
#include <span>
#include <string>
#include <vector>

#include "models/device_registry.hpp"
#include "models/program.hpp"
#include "models/progress.hpp"
#include "models/registry.hpp"
#include "models/side_by_side.hpp"

namespace {

using nlohmann::ordered_json;
using programs::summarise;
using programs::Summary;
using sheafnn::Index;

struct Settings {
  std::string dataset = "karate";
  sheafnn::SyntheticOptions synthetic;
  std::string model = "bsnn";
  std::string maps = "special-orthogonal";
  int stalk_dimension = 3;
  sheafnn::ModelOptions options;
  sheafnn::TrainOptions train;
  std::string edge_weights = "auto", separate_encoder = "auto";
  std::string normalisation = "augmented", parametrisation = "householder";
  std::string kl_schedule = "cyclical", kl_estimator = "automatic", stop_on = "loss";
  std::string splits, seeds, parallel = "none", device = "cpu";
  std::string report, save, sheaf;
  bool history = false;
};

template <class Array>
std::string joined(const Array& names) {
  std::string text;
  for (const std::string_view name : names) text += (text.empty() ? "" : ", ") + std::string(name);
  return text;
}

void add_options(CLI::App& app, Settings& s) {
  programs::add_dataset_options(app, s.dataset, s.synthetic);
  const auto one_of = [](std::vector<std::string> names) { return CLI::IsMember(std::move(names)); };
  auto* model = app.add_option_group("Model", "the network; see docs/math.md");
  model->add_option("--model", s.model, "bsnn (Bayesian) or nsd (deterministic)")
      ->capture_default_str()
      ->check(one_of({"bsnn", "nsd"}));
  model->add_option("--maps", s.maps, "restriction maps: diagonal, special-orthogonal, general-linear or identity")
      ->capture_default_str()
      ->check(one_of({"diagonal", "special-orthogonal", "general-linear", "identity"}));
  model->add_option("--stalk-dim", s.stalk_dimension, "stalk dimension, 1 to 5")
      ->capture_default_str()
      ->check(CLI::Range(1, 5));
  model->add_option("--channels", s.options.channels, "feature channels, 1 to 1024")->capture_default_str();
  model->add_option("--layers", s.options.layers, "diffusion layers, 1 to 64")->capture_default_str();
  model->add_flag("--add-lp", s.options.add_lp, "append a fixed low-pass stalk coordinate (default: off)");
  model->add_flag("--add-hp", s.options.add_hp, "append a fixed high-pass stalk coordinate (default: off)");
  model
      ->add_option("--edge-weights", s.edge_weights,
                   "learned edge weights: on, off or auto (on for special-orthogonal)")
      ->capture_default_str()
      ->check(one_of({"auto", "on", "off"}));
  model
      ->add_option("--separate-encoder", s.separate_encoder,
                   "an encoder of the sheaf learner's own: on, off or auto (on for Bayesian special-orthogonal)")
      ->capture_default_str()
      ->check(one_of({"auto", "on", "off"}));
  model->add_flag("--degree-input", s.options.degree_input,
                  "node degree as input of the sheaf encoder (default: off)");
  model->add_option("--learner-layers", s.options.learner_layers, "hidden layers of the sheaf learner, 0 to 8")
      ->capture_default_str();
  model->add_option("--learner-width", s.options.learner_width, "their width, 0 (as channels) to 1024")
      ->capture_default_str();
  model->add_flag("--second-linear", s.options.second_linear, "second linear layer in the encoder (default: off)");
  model->add_flag("--linear", s.options.linear, "one sheaf for all layers (default: off)");
  model->add_flag("!--no-left-weights", s.options.left_weights, "do not mix stalk coordinates");
  model->add_flag("!--no-right-weights", s.options.right_weights, "do not mix channels");
  model->add_flag("!--no-activation", s.options.activation, "no ELU");
  model->add_flag("!--no-normalise-features", s.options.normalise_features, "do not scale feature rows to sum 1");
  model->add_option("--normalisation", s.normalisation, "Laplacian: " + joined(sheafnn::normalisation_names))
      ->capture_default_str();
  model
      ->add_option("--parametrisation", s.parametrisation,
                   "mean rotations: " + joined(sheafnn::rotation_parametrisation_names) +
                       " (euler: stalk dimension 2, 3)")
      ->capture_default_str();

  auto* train = app.add_option_group("Training");
  train->add_option("--epochs", s.train.epochs, "at most so many epochs, at least 1")->capture_default_str();
  train->add_option("--patience", s.train.patience, "stop after so many epochs without a better one, at least 1")
      ->capture_default_str();
  train
      ->add_option("--stop-on", s.stop_on,
                   "the best epoch has the best validation " + joined(sheafnn::stop_on_names))
      ->capture_default_str();
  train->add_option("--lr", s.train.learning_rate, "Adam's learning rate, above 0")->capture_default_str();
  train
      ->add_option("--weight-decay", s.train.weight_decay,
                   "L2 decay of all weights but the sheaf learner's, at least 0")
      ->capture_default_str();
  train->add_option("--sheaf-decay", s.train.sheaf_decay, "L2 decay of the sheaf learner's weights, at least 0")
      ->capture_default_str();
  train->add_option("--input-dropout", s.train.input_dropout, "dropout of features, 0 up to 1")
      ->capture_default_str();
  train->add_option("--dropout", s.train.dropout, "dropout of hidden features, 0 up to 1")->capture_default_str();
  train->add_option("--kl-schedule", s.kl_schedule, "weight of the KL term: " + joined(sheafnn::kl_schedule_names))
      ->capture_default_str();
  train->add_option("--kl-weight", s.train.kl_maximum, "its largest value, at least 0")->capture_default_str();
  train->add_option("--kl-estimator", s.kl_estimator, "KL term: " + joined(sheafnn::kl_estimator_names))
      ->capture_default_str();
  train->add_option("--training-samples", s.train.training_samples, "sheaves drawn per training step, 1 to 1024")
      ->capture_default_str();
  train->add_option("--samples", s.train.samples, "posterior samples averaged at evaluation, 1 to 1024")
      ->capture_default_str();
  train->add_option("--seed", s.train.seed, "seed of weights, dropout and noise")->capture_default_str();
  train->add_option("--threads", s.train.threads, "threads, 0: as many as the graph is worth")
      ->capture_default_str();

  auto* run = app.add_option_group("Run");
  run->add_option("--splits", s.splits, "splits to train on, e.g. 0-9 or 0,3,7 (default: all)");
  run->add_option("--seeds", s.seeds, "train on every split with each of these seeds, e.g. 0-9 (default: --seed)");
  run->add_option("--device", s.device,
                  "where to train: cpu, cuda or cuda:NUMBER; on a CUDA device all splits and seeds side by side")
      ->capture_default_str();
  run->add_option(
         "--parallel", s.parallel,
         "what runs side by side: none, or splits with one thread each (same results); --threads then bounds "
         "how many at a time")
      ->capture_default_str()
      ->check(one_of({"none", "splits"}));
  run->add_option("--report", s.report, "write the results to this JSON file");
  run->add_flag("--history", s.history, "with --report: every epoch's losses and accuracies as well");
  run->add_option(
      "--save", s.save,
      "write the trained model to this .safetensors file (with several splits: one file each, NAME-SPLIT; with "
      "several seeds NAME-SPLIT-SEED)");
  run->add_option("--sheaf", s.sheaf,
                  "write its sheaf, features and predictions to this .npz file, named as those of --save");
}

/// "0-9", "0,3,7", "2" or empty (`all`): different numbers below `limit`.
std::vector<std::size_t> parse_numbers(const char* option, const std::string& text, std::size_t limit,
                                       std::vector<std::size_t> all) {
  if (text.empty()) return all;
  std::vector<std::size_t> r;
  const auto bad = [&](const std::string& part) {
    sheafnn::throw_invalid_argument(option, part,
                                    sheafnn::detail::concat("expected numbers or ranges within 0-", limit - 1,
                                                    ", as in 0-9 or 0,3,7"));
  };
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string part = text.substr(begin, end - begin);
    const std::size_t dash = part.find('-');
    const std::string low = part.substr(0, dash), high = dash == std::string::npos ? low : part.substr(dash + 1);
    for (const std::string& number : {low, high}) {
      if (number.empty() || number.size() > 6 || number.find_first_not_of("0123456789") != std::string::npos)
        bad(part);
    }
    const std::size_t first = std::stoul(low), last = std::stoul(high);
    if (first > last || last >= limit) bad(part);
    for (std::size_t i = first; i <= last; ++i) {
      if (std::find(r.begin(), r.end(), i) != r.end()) bad(part);
      r.push_back(i);
    }
    begin = end + 1;
  }
  return r;
}

std::optional<bool> on_off(const std::string& text) {
  if (text == "auto") return {};
  return text == "on";
}

ordered_json option_json(const Settings& s, const sheafnn::ModelOptions& resolved) {
  const auto& t = s.train;
  const auto& m = resolved;
  return {{"stalk_dim", s.stalk_dimension},
          {"channels", m.channels},
          {"layers", m.layers},
          {"add_lp", m.add_lp},
          {"add_hp", m.add_hp},
          {"edge_weights", *m.edge_weights},
          {"separate_encoder", *m.separate_encoder},
          {"degree_input", m.degree_input},
          {"learner_layers", m.learner_layers},
          {"learner_width", m.learner_width},
          {"second_linear", m.second_linear},
          {"linear", m.linear},
          {"left_weights", m.left_weights},
          {"right_weights", m.right_weights},
          {"activation", m.activation},
          {"normalise_features", m.normalise_features},
          {"normalisation", s.normalisation},
          {"parametrisation", s.parametrisation},
          {"epochs", t.epochs},
          {"patience", t.patience},
          {"stop_on", s.stop_on},
          {"lr", t.learning_rate},
          {"weight_decay", t.weight_decay},
          {"sheaf_decay", t.sheaf_decay},
          {"input_dropout", t.input_dropout},
          {"dropout", t.dropout},
          {"kl_schedule", s.kl_schedule},
          {"kl_weight", t.kl_maximum},
          {"kl_estimator", s.kl_estimator},
          {"training_samples", t.training_samples},
          {"samples", t.samples},
          {"seed", t.seed},
          {"threads", t.threads},
          {"device", s.device}};
}

ordered_json accuracy_json(const std::vector<double>& values) {
  const Summary s = summarise(values);
  return {{"mean", s.mean}, {"std", s.deviation}, {"per_split", values}};
}

ordered_json history_json(const std::vector<sheafnn::EpochReport>& history) {
  ordered_json r;
  for (const sheafnn::EpochReport& e : history) {
    r["loss"].push_back(e.loss);
    r["nll"].push_back(e.nll);
    r["kl"].push_back(e.kl);
    r["validation_loss"].push_back(e.validation_loss);
    r["validation_accuracy"].push_back(e.validation_accuracy);
    r["test_accuracy"].push_back(e.test_accuracy);
  }
  return r;
}

void write_report(const std::string& path, const ordered_json& report) {
  const std::string text = report.dump(2) + "\n";
  const std::span<const unsigned char> bytes(reinterpret_cast<const unsigned char*>(text.data()), text.size());
  sheafnn::io::write_file(path, std::span(&bytes, 1));
}

/// One training: a split and a seed.
struct Run {
  std::size_t split;
  std::uint64_t seed;
};

/// Are the trained models needed?
bool keeps_models(const Settings& s) { return !s.save.empty() || !s.sheaf.empty(); }

/// A finished training.
struct Training {
  sheafnn::TrainResult result;
  programs::TrainOutcome outcome;
};

/// Trains side by side on a CUDA device and hands the results to use(number, training) in order.
template <class Use>
void train_on_device(const Settings& s, int device, const sheafnn::Dataset& data, const std::vector<Run>& runs,
                     const Use& use) {
  std::vector<programs::DeviceJob::Run> jobs;
  for (const Run& run : runs) jobs.push_back({&data.splits[run.split], run.seed});
  programs::ProgressBar bar(s.train.epochs, runs.size());
  Index epochs = 0;
  sheafnn::TrainOptions options = s.train;
  options.on_epoch = [&](const sheafnn::EpochReport& epoch) {
    if (runs.size() == 1) return bar.show("split", 0, epoch);
    if (++epochs % 16 == 0) bar.show_all("trainings", 0, epochs);
  };
  std::vector<programs::DeviceOutcome> outcomes =
      programs::find_device_model(s.maps, s.stalk_dimension)
          .train({data, jobs, s.options, options, s.model == "bsnn", keeps_models(s), device});
  bar.clear();
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (!outcomes[i].error.empty()) throw std::runtime_error(outcomes[i].error);
    use(i, Training{std::move(outcomes[i].result), std::move(outcomes[i].outcome)});
  }
}

/// Trains one after another, or several at a time, and hands the results to use(number, training) in order.
template <class Use>
void train_runs(const Settings& s, const programs::ModelEntry& entry, const sheafnn::Dataset& data,
                const std::vector<Run>& runs, const Use& use) {
  const auto train = [&](std::size_t i, sheafnn::TrainOptions options) {
    Training r;
    options.seed = runs[i].seed;
    r.outcome = entry.train({data, data.splits[runs[i].split], s.options, options, s.model == "bsnn", options.seed,
                             keeps_models(s)},
                            r.result);
    return r;
  };
  programs::ProgressBar bar(s.train.epochs, runs.size());
  sheafnn::TrainOptions options = s.train;
  if (s.parallel == "none") {
    for (std::size_t i = 0; i < runs.size(); ++i) {
      options.on_epoch = [&](const sheafnn::EpochReport& epoch) { bar.show("split", i, epoch); };
      const Training training = train(i, options);
      bar.clear();
      use(i, training);
    }
    return;
  }
  const int at_a_time = options.threads > 0 ? options.threads : sheafnn::hardware_threads();
  options.threads = 1;
  std::atomic<Index> epochs = 0;
  std::atomic<std::size_t> finished = 0;
  programs::SideBySide<Training> trainings(at_a_time, runs.size(), [&](std::size_t i) {
    sheafnn::TrainOptions own = options;
    own.on_epoch = [&](const sheafnn::EpochReport&) {
      ++epochs;
      trainings.check_wanted(i);
    };
    Training training = train(i, own);
    epochs += own.epochs - static_cast<Index>(training.result.history.size());
    ++finished;
    return training;
  });
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const Training training = trainings.take(i, [&] { bar.show_all("splits", finished, epochs); });
    bar.clear();
    use(i, training);
  }
}

void run(Settings& s) {
  s.options.edge_weights = on_off(s.edge_weights);
  s.options.separate_encoder = on_off(s.separate_encoder);
  s.options.normalisation = sheafnn::parse_normalisation(s.normalisation);
  s.options.parametrisation = sheafnn::parse_rotation_parametrisation(s.parametrisation);
  s.train.kl_schedule =
      sheafnn::parse_name<sheafnn::KlSchedule>("--kl-schedule", s.kl_schedule, sheafnn::kl_schedule_names);
  s.train.kl_estimator =
      sheafnn::parse_name<sheafnn::KlEstimator>("--kl-estimator", s.kl_estimator, sheafnn::kl_estimator_names);
  s.train.stop_on = sheafnn::parse_name<sheafnn::StopOn>("--stop-on", s.stop_on, sheafnn::stop_on_names);
  sheafnn::validate(s.train);
  programs::require_folder_of("--report", s.report);
  programs::require_folder_of("--save", s.save);
  programs::require_folder_of("--sheaf", s.sheaf);
  const int device = programs::parse_device(s.device);
  sheafnn::require(device < 0 || s.parallel == "none", "--parallel", s.parallel,
                   "a CUDA device trains everything side by side anyway");
  const programs::ModelEntry& entry = programs::find_model(s.maps, s.stalk_dimension);
  const sheafnn::Dataset data = sheafnn::io::load_dataset(s.dataset, s.synthetic);
  sheafnn::require(!data.splits.empty(), data.name + ": splits", 0, "training needs at least one split");
  std::vector<std::size_t> all(data.splits.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  const std::vector<std::size_t> splits = parse_numbers("--splits", s.splits, data.splits.size(), all);
  std::vector<std::uint64_t> seeds = {s.train.seed};
  if (!s.seeds.empty()) {
    const std::vector<std::size_t> numbers = parse_numbers("--seeds", s.seeds, 1'000'000, {});
    seeds.assign(numbers.begin(), numbers.end());
  }
  std::vector<Run> runs;
  for (const std::size_t split : splits) {
    for (const std::uint64_t seed : seeds) runs.push_back({split, seed});
  }
  const bool show_seeds = !s.seeds.empty();
  s.options.features = data.feature_count();
  s.options.classes = data.class_count;

  const sheafnn::DegreeSummary degrees = sheafnn::degree_summary(data.graph);
  std::printf("%s: %td nodes, %td edges, mean degree %.1f, homophily %.2f, %td features, %td classes\n",
              data.name.c_str(), data.node_count(), data.graph.edge_count(), degrees.mean,
              sheafnn::edge_homophily(data.graph, data.labels), data.feature_count(), data.class_count);
  std::printf("%s, %s maps, stalk dimension %d, %td channels, %td layers\n\n", s.model.c_str(), s.maps.c_str(),
              s.stalk_dimension, s.options.channels, s.options.layers);
  std::printf("split  %sbest epoch  validation     test     NLL     ECE  s/epoch\n", show_seeds ? "  seed  " : "");

  ordered_json report;
  std::vector<double> validation, test, nll, ece, epoch_seconds, train_seconds, evaluate_seconds;
  std::vector<sheafnn::ReliabilityBin> reliability;
  ordered_json per_split = ordered_json::array();
  Index parameters = 0;
  sheafnn::ModelOptions resolved;
  const auto file_of = [&](std::filesystem::path file, std::size_t i) {
    std::string name = file.stem().string();
    if (runs.size() > 1) name += "-" + std::to_string(runs[i].split);
    if (seeds.size() > 1) name += "-" + std::to_string(runs[i].seed);
    return file.replace_filename(name + file.extension().string());
  };
  const auto use = [&](std::size_t i, const Training& training) {
    const auto& [result, outcome] = training;
    if (!s.save.empty()) sheafnn::io::write_safetensors(file_of(s.save, i), outcome.checkpoint);
    if (!s.sheaf.empty()) {
      // The noise of the best epoch, as in the table.
      entry.write_learned(s.sheaf, outcome.checkpoint, s.model == "bsnn", data,
                          {.samples = s.train.samples,
                           .seed = runs[i].seed,
                           .epoch = static_cast<std::uint32_t>(result.best_epoch),
                           .threads = s.train.threads},
                          0, file_of(s.sheaf, i));
    }
    std::printf("%5zu  ", runs[i].split);
    if (show_seeds) std::printf("%6llu  ", static_cast<unsigned long long>(runs[i].seed));
    std::printf("%10td  %9.1f%%  %6.1f%%  %6.3f  %6.3f  %7.4f\n", result.best_epoch,
                100 * result.validation_accuracy, 100 * result.test_accuracy, result.test_nll, result.test_ece,
                result.epoch_seconds);
    std::fflush(stdout);
    validation.push_back(result.validation_accuracy);
    test.push_back(result.test_accuracy);
    nll.push_back(result.test_nll);
    ece.push_back(result.test_ece);
    epoch_seconds.push_back(result.epoch_seconds);
    train_seconds.push_back(result.train_seconds);
    evaluate_seconds.push_back(result.evaluate_seconds);
    parameters = outcome.parameters;
    resolved = outcome.resolved;
    programs::add_bins(reliability, outcome.reliability);
    ordered_json one = {{"split", runs[i].split},
                        {"best_epoch", result.best_epoch},
                        {"epochs", result.history.size()},
                        {"validation_accuracy", result.validation_accuracy},
                        {"validation_loss", result.validation_loss},
                        {"test_accuracy", result.test_accuracy},
                        {"nll", result.test_nll},
                        {"ece", result.test_ece}};
    if (show_seeds) one["seed"] = runs[i].seed;
    if (s.history) one["history"] = history_json(result.history);
    per_split.push_back(std::move(one));
  };
  if (device >= 0) {
    train_on_device(s, device, data, runs, use);
  } else {
    train_runs(s, entry, data, runs, use);
  }
  const Summary v = summarise(validation), t = summarise(test);
  const char* gap = show_seeds ? "        " : "";
  std::printf(" mean              %s%9.1f%%  %6.1f%%  %6.3f  %6.3f  %7.4f\n", gap, 100 * v.mean, 100 * t.mean,
              summarise(nll).mean, summarise(ece).mean, summarise(epoch_seconds).mean);
  std::printf("  std              %s%9.1f%%  %6.1f%%  %6.3f  %6.3f\n", gap, 100 * v.deviation, 100 * t.deviation,
              summarise(nll).deviation, summarise(ece).deviation);
  if (s.report.empty()) return;

  report["dataset"] = data.name;
  report["model"] = s.model;
  report["maps"] = s.maps;
  report["options"] = option_json(s, resolved);
  report["test_accuracy"] = accuracy_json(test);
  report["validation_accuracy"] = accuracy_json(validation);
  report["ece"] = summarise(ece).mean;
  report["nll"] = summarise(nll).mean;
  report["seconds_per_epoch"] = {{"all", summarise(epoch_seconds).mean},
                                 {"train", summarise(train_seconds).mean},
                                 {"evaluate", summarise(evaluate_seconds).mean}};
  report["parameters"] = parameters;
  report["splits"] = std::move(per_split);
  for (const sheafnn::ReliabilityBin& bin : reliability) {
    report["reliability"].push_back({{"lower", bin.lower},
                                     {"upper", bin.upper},
                                     {"count", bin.count},
                                     {"confidence", bin.confidence},
                                     {"accuracy", bin.accuracy}});
  }
  write_report(s.report, report);
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  CLI::App app("Trains a Bayesian sheaf neural network (or neural sheaf diffusion) for node classification.",
               "train");
  app.get_formatter()->column_width(34);
  add_options(app, settings);
  return programs::run_program(app, argc, argv, [&] { run(settings); });
}
