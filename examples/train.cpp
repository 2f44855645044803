/// \file
/// Trains a Bayesian sheaf neural network, or another sheaf network, on the splits of a dataset, for classes of nodes or
/// numbers on nodes. Prints a table. On request, writes a report, the models and checkpoints to resume from.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <sheafnn/bsnn/conventions.hpp>
#include <sheafnn/bsnn/prediction.hpp>
#include <sheafnn/bsnn/presets.hpp>
#include <sheafnn/bsnn/trainer.hpp>
#include <sheafnn/graph/directed_arcs.hpp>
#include <sheafnn/graph/statistics.hpp>
#include <sheafnn/io/file.hpp>
#include <sheafnn/io/safetensors.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "models/device_registry.hpp"
#include "models/interruption.hpp"
#include "models/kept_sheaf_use.hpp"
#include "models/outcome.hpp"
#include "models/predictions.hpp"
#include "models/program.hpp"
#include "models/progress.hpp"
#include "models/registry.hpp"
#include "models/side_by_side.hpp"
#include "models/split_checks.hpp"
#include "models/started_on_ranks.hpp"
#include "models/target_loss.hpp"
#include "models/target_results.hpp"
#include "models/train_results.hpp"
#include "models/train_search.hpp"
#include "models/train_settings.hpp"
#include "models/training_folder.hpp"

namespace {

using programs::Interruption;
using programs::Run;
using programs::Training;
using programs::TrainSettings;
using sheafnn::Index;

/// What all trainings of a call share.
struct Task {
  const TrainSettings& settings;
  programs::NodeData data;
  std::vector<Run> runs;
  const programs::ModelEntry* entry;
  const programs::TrainingFolder* folder;  ///< null: no checkpoints

  [[nodiscard]] sheafnn::TargetLoss loss() const {
    return sheafnn::parse_name<sheafnn::TargetLoss>("--loss", settings.loss);
  }
  [[nodiscard]] bool bayesian() const { return programs::is_bayesian(settings.model); }
  [[nodiscard]] bool has_targets() const { return !data.target_names.empty(); }
  [[nodiscard]] programs::TargetKind targets(const Run& run) const {
    return {loss(), data, data.splits[run.split].train};
  }
  /// What validation_accuracy of epochs is.
  [[nodiscard]] programs::Score score() const {
    return has_targets() && !programs::has_accuracy(loss()) ? programs::Score::r_squared
                                                            : programs::Score::accuracy;
  }
  /// \param seed  of the training
  [[nodiscard]] programs::NetworkOptions network(std::uint64_t seed) const {
    programs::NetworkOptions r = programs::networks_of(settings, seed);
    if (folder != nullptr) {
      programs::with_options_of(settings.model, r, [&](auto& options) {
        if constexpr (requires { sheafnn::detail::use_conventions(sheafnn::Index(), options); }) {
          sheafnn::detail::use_conventions(folder->conventions(), options);
        }
      });
    }
    return r;
  }
  [[nodiscard]] programs::Keep keep() const {
    return {!settings.save.empty() || !settings.sheaf.empty(), !settings.predictions.empty(), true};
  }
  /// FILE of --save and --sheaf, named after the run where there are several: NAME-SPLIT-SEED.
  [[nodiscard]] std::filesystem::path file_of(std::filesystem::path file, std::size_t i) const {
    std::string name = file.stem().string();
    if (runs.size() > 1) name += "-" + std::to_string(runs[i].split);
    bool several_seeds = false;
    for (const Run& run : runs) several_seeds = several_seeds || run.seed != runs.front().seed;
    if (several_seeds) name += "-" + std::to_string(runs[i].seed);
    return file.replace_filename(name + file.extension().string());
  }
};

/// Trains run i on the CPU, from its checkpoint where there is one.
Training train_run(const Task& task, std::size_t i, sheafnn::TrainOptions options) {
  Training r;
  if (Interruption::signal() != 0) {
    r.begun = false;
    return r;
  }
  const Run& run = task.runs[i];
  options.seed = run.seed;
  std::optional<sheafnn::TrainingState> state;
  if (task.folder != nullptr) {
    state = task.folder->load(run.split, run.seed);
    if (state) options.resume = &*state;
    options.on_checkpoint = [&](const sheafnn::TrainingState& now) { task.folder->save(run.split, now); };
  }
  const sheafnn::Split& split = task.data.splits[run.split];
  const auto train = [&](const programs::TargetLoss* loss) {
    r.outcome = task.entry->train({task.data, split, task.network(options.seed), options, task.bayesian(),
                                   options.seed, task.keep(), loss},
                                  r.result);
  };
  if (!task.has_targets()) {
    train(nullptr);
    return r;
  }
  r.targets = task.targets(run);
  const sheafnn::AnyTargetLoss targets = r.targets->of(task.data);
  const programs::TargetLoss loss(targets);
  train(&loss);
  r.target_prediction = r.targets->read(r.outcome.targets);
  r.targets->fit_intervals(task.data, r.target_prediction, split.validation, task.settings.coverage);
  r.targets->add_to(r.outcome.checkpoint.metadata);
  return r;
}

/// Trains one after another and hands the results to use(number, training).
template <class Use>
void train_in_turn(const Task& task, const Use& use) {
  sheafnn::TrainOptions options = task.settings.train;
  programs::ProgressBar bar(options.epochs, task.runs.size(), task.score());
  for (std::size_t i = 0; i < task.runs.size(); ++i) {
    options.on_epoch = [&](const sheafnn::EpochReport& epoch) {
      bar.show("split", i, epoch);
      return programs::wanted_action();
    };
    const Training training = train_run(task, i, options);
    bar.clear();
    use(i, training);
  }
}

/// Trains several at a time with one thread each, and hands the results to use(number, training) in order.
template <class Use>
void train_side_by_side(const Task& task, const Use& use) {
  sheafnn::TrainOptions options = task.settings.train;
  const int at_a_time = options.threads > 0 ? options.threads : sheafnn::hardware_threads();
  options.threads = 1;
  programs::ProgressBar bar(options.epochs, task.runs.size());
  std::atomic<Index> epochs = 0;
  std::atomic<std::size_t> finished = 0;
  programs::SideBySide<Training> trainings(at_a_time, task.runs.size(), [&](std::size_t i) {
    sheafnn::TrainOptions own = options;
    own.on_epoch = [&](const sheafnn::EpochReport&) {
      ++epochs;
      trainings.check_wanted(i);
      return programs::wanted_action();
    };
    Training training = train_run(task, i, own);
    epochs += own.epochs - static_cast<Index>(training.result.history.size());
    ++finished;
    return training;
  });
  for (std::size_t i = 0; i < task.runs.size(); ++i) {
    const Training training = trainings.take(i, [&] { bar.show_all("splits", finished, epochs); });
    bar.clear();
    use(i, training);
  }
}

/// Trains all on a CUDA device and hands the results to use(number, training) in order.
template <class Use>
void train_on_device(const Task& task, int device, const Use& use) {
  const std::vector<Run>& runs = task.runs;
  std::vector<programs::DeviceJob::Run> jobs;
  for (const Run& run : runs) jobs.push_back({&task.data.splits[run.split], run.seed});
  sheafnn::TrainOptions options = task.settings.train;
  programs::ProgressBar bar(options.epochs, runs.size());
  Index epochs = 0;
  options.on_epoch = [&](const sheafnn::EpochReport& epoch) {
    if (runs.size() == 1) {
      bar.show("split", 0, epoch);
    } else if (++epochs % 16 == 0) {
      bar.show_all("trainings", 0, epochs);
    }
    return programs::wanted_action();
  };
  programs::Keep keep = task.keep();
  keep.model = true;  // whose figures are computed on the CPU
  std::vector<programs::DeviceOutcome> outcomes =
      programs::find_device_model(task.settings.model, task.settings.maps, task.settings.stalk_dimension)
          .train({task.data, jobs, task.network(runs.front().seed), options, task.bayesian(), keep, device});
  bar.clear();
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (!outcomes[i].error.empty()) throw std::runtime_error(outcomes[i].error);
    Training training{std::move(outcomes[i].result), std::move(outcomes[i].outcome)};
    options.seed = runs[i].seed;
    const auto best = programs::best_epoch_options(options, training.result.best_epoch);
    programs::keep_sheaf_use(training.outcome,
                             task.entry->sheaf_use("trained model", training.outcome.checkpoint, task.bayesian(),
                                                   task.data, jobs[i].split->validation, best));
    use(i, training);
  }
}

/// Splits × seeds of --splits and --seeds.
std::vector<Run> runs_of(const TrainSettings& s, const programs::NodeData& data) {
  std::vector<std::size_t> all(data.splits.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  const std::vector<std::size_t> splits = programs::parse_numbers("--splits", s.splits, data.splits.size(), all);
  std::vector<std::uint64_t> seeds = {s.train.seed};
  if (!s.seeds.empty()) {
    const std::vector<std::size_t> numbers = programs::parse_numbers("--seeds", s.seeds, 1'000'000, {});
    seeds.assign(numbers.begin(), numbers.end());
  }
  std::vector<Run> runs;
  for (const std::size_t split : splits) {
    for (const std::uint64_t seed : seeds) runs.push_back({split, seed});
  }
  return runs;
}

/// The splits of --splits.
std::vector<sheafnn::Split> chosen_splits(const Task& task) {
  std::vector<sheafnn::Split> r;
  std::size_t last = task.data.splits.size();
  for (const Run& run : task.runs) {
    if (run.split != last) r.push_back(task.data.splits[run.split]);
    last = run.split;
  }
  return r;
}

/// The folder of --checkpoint or --resume, if any.
std::optional<programs::TrainingFolder> training_folder(const TrainSettings& s, const programs::NodeData& data,
                                                        const std::vector<std::string>& arguments) {
  if (s.resume.empty() && s.checkpoint.empty()) return {};
  sheafnn::require(s.resume.empty() || s.checkpoint.empty(), "--checkpoint", s.checkpoint,
                   "--resume writes its checkpoints into its own folder");
  std::map<std::string, std::string> decisive =
      programs::decisive_settings(s, data.name + " " + programs::fingerprint(data, is_directed(s)));
  if (!data.target_names.empty()) {
    decisive["target"] = sheafnn::io::csv_record(data.target_names);
    decisive["loss"] = s.loss;
  }
  return std::make_optional<programs::TrainingFolder>(
      s.resume.empty() ? s.checkpoint : s.resume, !s.resume.empty(), arguments, decisive,
      std::map<std::string, std::string>{{"seed", std::to_string(s.train.seed)},
                                         {"seeds", s.seeds},
                                         {"splits", s.splits}});
}

/// Tries all files that will be written, and keeps them apart from the folder's files.
void require_writable_files(const Task& task) {
  const TrainSettings& s = task.settings;
  std::vector<programs::NamedFile> files = {{"--report", s.report}};
  for (std::size_t i = 0; i < task.runs.size(); ++i) {
    if (!s.save.empty()) files.push_back({"--save", task.file_of(s.save, i)});
    if (!s.sheaf.empty()) files.push_back({"--sheaf", task.file_of(s.sheaf, i)});
  }
  files.push_back({"--predictions", s.predictions});
  std::vector<programs::NamedFile> all;
  const auto add_folder = [&](const char* option, const std::string& folder) {
    if (folder.empty()) return;
    all.push_back({option, std::filesystem::path(folder) / programs::TrainingFolder::index});
    for (const Run& run : task.runs)
      all.push_back({option, programs::TrainingFolder::file(folder, run.split, run.seed)});
  };
  add_folder("--checkpoint", s.checkpoint);
  add_folder("--resume", s.resume);
  all.insert(all.end(), files.begin(), files.end());
  programs::require_apart(all, {{"--dataset", s.dataset}});
  for (const auto& [option, file] : files) programs::require_writable(option, file);
}

void write_models(const Task& task, std::size_t i, const Training& training) {
  const TrainSettings& s = task.settings;
  const auto& outcome = training.outcome;
  if (!s.save.empty()) sheafnn::io::write_safetensors(task.file_of(s.save, i), outcome.checkpoint);
  if (s.sheaf.empty()) return;
  sheafnn::TrainOptions options = s.train;
  options.seed = task.runs[i].seed;
  task.entry
      ->learned(s.sheaf, outcome.checkpoint, task.bayesian(), task.data,
                programs::best_epoch_options(options, training.result.best_epoch), 0)
      .write(task.file_of(s.sheaf, i));
}

/// What joins the nodes, up to the homophily of classes.
void print_graph(const sheafnn::Dataset& data) {
  programs::print_dropped_pairs(data);
  const sheafnn::DegreeSummary degrees = sheafnn::degree_summary(data.graph);
  std::printf("%s: %td nodes, %td edges, mean degree %.1f, ", data.name.c_str(), data.node_count(),
              data.graph.edge_count(), degrees.mean);
  if (!data.target_names.empty()) return;
  const std::optional<double> homophily = sheafnn::seen_homophily(data, data.splits.front());
  std::printf("homophily %s, ", homophily ? programs::text("%.2f", *homophily).c_str() : "unknown");
}
void print_graph(const sheafnn::HypergraphDataset& data) {
  std::printf("%s: %td nodes, %td hyperedges of at most %td nodes, ", data.name.c_str(), data.node_count(),
              data.graph.hyperedge_count(), data.graph.largest_size());
}

/// How many nodes have each of the named classes, so that a misspelt or rare class is seen.
void print_labels(const programs::NodeData& data) {
  if (data.class_names.empty()) return;
  std::vector<sheafnn::Index> counts(data.class_names.size(), 0);
  sheafnn::Index unknown = 0;
  for (const std::int32_t label : data.labels) ++(label < 0 ? unknown : counts[static_cast<std::size_t>(label)]);
  std::string text;
  if (counts.size() <= 10) {
    for (std::size_t c = 0; c < counts.size(); ++c) {
      text += sheafnn::detail::concat(c > 0 ? ", " : "", counts[c], ' ',
                                      sheafnn::io::detail::printable(data.class_names[c]));
    }
  } else {
    const auto [least, most] = std::minmax_element(counts.begin(), counts.end());
    text = sheafnn::detail::concat(*least, " to ", *most, " nodes in each class");
  }
  if (unknown > 0) text += sheafnn::detail::concat(", ", unknown, " unknown");
  std::printf("labels: %s\n", text.c_str());
}

void print_task(const TrainSettings& s, const programs::NodeData& data, std::optional<sheafnn::Preset> preset) {
  data.visit([](const auto& whole) { print_graph(whole); });
  if (data.target_names.empty()) {
    std::printf("%td features, %td classes\n", data.features.given_columns(), data.class_count);
    print_labels(data);
  } else {
    std::printf("%td features, %s targets: %s\n", data.features.given_columns(), s.loss.c_str(),
                programs::joined(data.target_names).c_str());
  }
  if (preset) {
    const auto& t = s.train;
    std::string parts;
    programs::with_network(s, [&](const auto& o) {
      if constexpr (requires { o.add_lp; }) {
        parts += o.add_lp ? ", low-pass coordinate" : "";
        parts += o.add_hp ? ", high-pass coordinate" : "";
      }
      if constexpr (requires { o.norm; }) parts += o.norm == sheafnn::FeatureNorm::layer ? ", layer norm" : "";
      if constexpr (requires { o.layer_norm; }) parts += o.layer_norm ? ", layer norm" : "";
      if constexpr (requires { o.left_weights; }) parts += o.left_weights ? "" : ", no left weights";
    });
    std::printf(
        "preset %s: lr %g, decay %g and %g, dropout %g and %g, KL weight %g, %td epochs, patience %td by %s%s\n",
        std::string(to_string(*preset)).c_str(), t.learning_rate, t.weight_decay, t.sheaf_decay, t.input_dropout,
        t.dropout, t.kl_maximum, t.epochs, t.patience, programs::shown(t.stop_on).c_str(), parts.c_str());
  }
  if (is_directed(s)) {
    std::printf("directed: %td arcs as listed\n",
                sheafnn::listed_arcs(data.on<sheafnn::Graph>().graph).arc_count());
  }
  std::printf("features: %s\n",
              programs::with_network(s, [](const auto& o) { return o.feature_plan.describe(); }).c_str());
  const std::string learner = programs::with_network(s, [](const auto& o) -> std::string {
    if constexpr (programs::has_node_learner<std::remove_cvref_t<decltype(o)>>) {
      const std::string width = o.learner_width > 0 ? sheafnn::detail::concat(" of width ", o.learner_width) : "";
      return sheafnn::detail::concat(", ", to_string(o.learner), " with ", o.learner_layers, " layers", width);
    }
    return "";
  });
  std::printf("%s, %s maps%s, stalk dimension %d, %td channels, %s\n\n", s.model.c_str(), s.maps.c_str(),
              learner.c_str(), s.stalk_dimension, programs::channels(s), programs::depth(s).c_str());
}

std::unique_ptr<programs::Results> results_of(const TrainSettings& s, std::optional<sheafnn::Preset> preset,
                                              const programs::NodeData& data) {
  if (data.target_names.empty()) return std::make_unique<programs::TrainResults>(s, preset);
  return std::make_unique<programs::TargetResults>(s, preset, data);
}

/// \param arguments  arguments of the program, with the arguments of a resumed training
/// \returns the exit code
int run(const CLI::App& app, TrainSettings& s, const std::vector<std::string>& arguments) {
  const bool searches = app.get_option("--search")->count() > 0;
  if (searches) {
    programs::refuse_beside_search(app, s);
  } else {
    programs::resolve_options(app, s);
  }
  const int device = programs::parse_device(s.device);
  sheafnn::require(device < 0 || s.parallel == "none", "--parallel", s.parallel,
                   "a CUDA device always trains everything side by side");
  sheafnn::require(device < 0 || sheafnn::kind_of(s.model).batched, "--device", s.device,
                   sheafnn::detail::concat(s.model, " is trained on the CPU only"));
  const bool hypergraph = sheafnn::is_on_hypergraphs(s.model);
  sheafnn::require(!hypergraph || !searches, "--search", s.search,
                   sheafnn::detail::concat("it has no networks on hypergraphs; leave out --model ", s.model));
  sheafnn::require(!hypergraph || s.sheaf.empty(), "--sheaf", s.sheaf,
                   "the file holds maps of edges; networks on hypergraphs have none");
  sheafnn::require(device < 0 || !s.projection || s.seeds.empty(), "--projection", "true",
                   "its numbers belong to a seed; with --seeds it is trained on the CPU only");
  sheafnn::require(device < 0 || (s.checkpoint.empty() && s.resume.empty()), "--device", s.device,
                   "checkpoints are written on the CPU only");
  sheafnn::require(app.get_option("--every")->count() == 0 || !s.checkpoint.empty() || !s.resume.empty(),
                   "--every", s.train.checkpoint_every, "needs --checkpoint or --resume");
  s.data.text.node_types = !s.data.stalks.empty();
  sheafnn::require(!searches || !(s.data.text.edge_types || s.data.text.node_types), "--search", "given",
                   "it has no networks with --edge-types or --stalks");
  sheafnn::require(s.pairs().use_edges || s.sheaf.empty(), "--sheaf", s.sheaf,
                   "with --no-edges the network has no sheaf");
  const programs::ModelEntry* entry =
      searches ? nullptr : &programs::find_model(s.model, s.maps, s.stalk_dimension);
  const bool targets = !s.data.text.targets.empty();
  sheafnn::require(!targets || !searches, "--search", s.search,
                   "settings are compared by classes; leave out --target");
  sheafnn::require(!targets || device < 0, "--device", s.device, "targets (--target) are trained on the CPU only");
  sheafnn::require(!targets || s.sheaf.empty(), "--sheaf", s.sheaf, "the file holds classes; leave out --target");
  sheafnn::require(s.coverage > 0 && s.coverage < 1, "--coverage", s.coverage, "must be above 0 and below 1");
  const programs::AnyDataset loaded = programs::load_for(s.model, [&]<class GraphType>() {
    return programs::load_training_data<GraphType>(s.dataset, s.synthetic, s.data);
  });
  const programs::NodeData data = loaded;
  Task task{s, data, runs_of(s, data), entry, nullptr};
  require_writable_files(task);
  const Interruption interruption;
  nlohmann::ordered_json search;
  if (searches) {
    search = programs::run_search(app, s, data.on<sheafnn::Graph>(), chosen_splits(task));
    task.entry = &programs::find_model(s.model, s.maps, s.stalk_dimension);
  }
  const std::optional<sheafnn::Preset> preset = programs::apply_preset(app, s, data);
  programs::set_sizes(s, data.feature_count(),
                      targets ? task.targets(task.runs.front()).outputs() : data.class_count);
  programs::set_types(s, data);
  task.entry->check(task.network(s.train.seed), task.bayesian());
  for (const Run& one : task.runs) {
    programs::require_trainable(data, one.split, s.train.stop_on);
    if (targets) static_cast<void>(task.targets(one));  // throws what is wrong with them
  }
  const std::optional<programs::TrainingFolder> folder = training_folder(s, data, arguments);
  if (folder) task.folder = &*folder;

  programs::set_feature_plan(s, data.features);
  print_task(s, data, preset);
  const std::unique_ptr<programs::Results> own_results = results_of(s, preset, data);
  programs::Results& results = *own_results;
  results.print_header();
  // If nothing else is written, the table is the only result, so it must be printed.
  const bool writes = !s.report.empty() || task.keep().model || task.keep().prediction || task.folder != nullptr;
  programs::Predictions predictions(data);
  std::vector<std::filesystem::path> models;
  const auto use = [&](std::size_t i, const Training& training) {
    if (!training.begun) return;
    results.add(task.runs[i], training);
    if (task.keep().prediction) predictions.add(task.runs[i], training);
    write_models(task, i, training);
    if (!s.save.empty()) models.push_back(task.file_of(s.save, i));
    if (writes) {
      std::fflush(stdout);
    } else {
      programs::flush_output();
    }
  };
  programs::Attempts attempts;
  attempts.make([&] {
    if (device >= 0) {
      train_on_device(task, device, use);
    } else if (s.parallel == "splits") {
      train_side_by_side(task, use);
    } else {
      train_in_turn(task, use);
    }
  });
  const int signal = Interruption::signal();
  if (attempts.failed() && results.empty()) attempts.rethrow();
  results.print_summary();
  if (models.size() > 1) {  // their names are not the name of --save
    std::printf("%zu models: %s to %s\n", models.size(), models.front().string().c_str(),
                models.back().string().c_str());
  }
  const std::string error = attempts.message();
  if (task.keep().prediction) attempts.make([&] { predictions.write(s.predictions); });
  if (!s.report.empty()) {
    attempts.make([&] {
      nlohmann::ordered_json report = results.report(data, arguments, signal, error);
      if (searches) report["search"] = search;
      sheafnn::io::write_text(s.report, programs::report_text(report));
    });
  }
  attempts.rethrow();
  return programs::exit_status("train", task.folder != nullptr ? "; --resume resumes it" : "");
}

}  // namespace

int main(int argc, char** argv) {
  TrainSettings settings;
  std::vector<std::string> arguments;
  CLI::App app(
      "Trains a Bayesian sheaf neural network, or another sheaf network, for node classification or numbers on "
      "nodes.",
      "train");
  programs::add_options(app, settings);
  return programs::run_program_with(
      app,
      [&] {
        programs::become_on_ranks(argv, "train_mpi");
        arguments = programs::TrainingFolder::arguments(programs::arguments(argc, argv));
        return arguments;
      },
      [&] { return run(app, settings, arguments); });
}
