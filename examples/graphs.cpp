/// \file
/// Classifies graphs, or predicts their numbers. Trains on each fold of a set, and chooses the epoch on a tenth of the graphs
/// outside of the fold. Prints the accuracy or R² of each fold with the mean. Or predicts with a trained network.
///
///     graphs mutag.npz --fold 0 --save mutag.safetensors
///     graphs mutag.npz --load mutag.safetensors --predictions classes.csv
#include <cmath>
#include <cstdio>
#include <limits>
#include <numeric>
#include <optional>
#include <sheafnn/bsnn/pooled_options.hpp>
#include <sheafnn/bsnn/prediction.hpp>
#include <sheafnn/bsnn/train_options.hpp>
#include <sheafnn/io/checkpoint.hpp>
#include <sheafnn/io/csv.hpp>
#include <sheafnn/io/file.hpp>
#include <sheafnn/io/graph_sets.hpp>
#include <sheafnn/uncertainty/metrics.hpp>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "graphs/models.hpp"
#include "models/class_names.hpp"
#include "models/interruption.hpp"
#include "models/option_flags.hpp"
#include "models/outcome.hpp"
#include "models/program.hpp"
#include "models/target_figures.hpp"
#include "models/target_kind.hpp"

namespace {

using sheafnn::Index;
constexpr const sheafnn::NetworkKind& kind = sheafnn::PooledOptions::kind;

struct Settings : graph_program::Defaults {
  std::string dataset, model = "nsd", maps = "diagonal", save, load, predictions;
  int stalk_dimension = 3;
  Index folds = 10, fold = -1;

  [[nodiscard]] bool bayesian() const { return model == "bsnn"; }
  [[nodiscard]] const graph_program::ModelEntry& entry() const {
    return graph_program::find_model(maps, stalk_dimension);
  }
};

/// The targets of a set, as targets of a dataset whose nodes are the graphs; none for classes.
sheafnn::Dataset numbers_of(const sheafnn::GraphSet& set) {
  sheafnn::Dataset r;
  r.name = set.name;
  r.graph = sheafnn::Graph(set.graph_count(), {});
  r.features = sheafnn::NodeFeatures::identity(set.graph_count());  // of as many rows as graphs; they do not count
  r.targets = set.targets;
  for (Index c = 0; c < set.target_count; ++c) {
    r.target_names.push_back(set.target_count == 1 ? "target" : "target_" + std::to_string(c));
  }
  return r;
}

/// The predicted targets of all graphs, in the units of the files.
programs::TargetPrediction predicted_numbers(const Settings& s, const sheafnn::GraphSet& set,
                                             const programs::TargetKind& kind,
                                             const graph_program::Trained& trained,
                                             const sheafnn::PredictOptions& options) {
  const std::vector<double> samples = s.entry().sample_numbers(trained, set, options);
  return kind.read(programs::mean_of_samples(samples, set.targets.size()));
}

/// Predictions as a CSV file, one line per graph, with its name where graphs have names. The fold is empty if the graph has
/// no fold.
class PredictionRows {
 public:
  explicit PredictionRows(const sheafnn::GraphSet& set) : set_(&set) {
    out_.precision(std::numeric_limits<double>::max_digits10);
    out_ << (set.graph_names.empty() ? "graph" : "graph,name") << ",fold";
    if (!set.labels.empty()) out_ << ",label,predicted,probability,entropy,mutual_information";
    for (const std::string& name : numbers_of(set).target_names) {
      out_ << ',' << name << ",predicted" << name.substr(std::string_view("target").size());
    }
    out_ << '\n';
  }
  void add(const programs::TargetPrediction& p, const std::vector<std::int32_t>& graphs, const std::string& fold) {
    const std::size_t k = static_cast<std::size_t>(set_->target_count);
    for (const std::int32_t g : graphs) {
      begin_row(g, fold);
      for (std::size_t i = static_cast<std::size_t>(g) * k, end = i + k; i < end; ++i) {
        out_ << ',';
        if (!std::isnan(set_->targets[i])) out_ << set_->targets[i];
        out_ << ',' << p.expectations[i];
      }
      out_ << '\n';
    }
  }
  void add(const sheafnn::Prediction& p, const std::vector<std::int32_t>& graphs, const std::string& fold) {
    for (const std::int32_t g : graphs) {
      const std::size_t u = static_cast<std::size_t>(g);
      const std::size_t first = u * static_cast<std::size_t>(p.class_count);
      const std::int32_t label = set_->labels[u];
      begin_row(g, fold);
      out_ << ',' << (label < 0 ? "" : name(label)) << ',' << name(p.label[u]) << ','
           << p.probabilities[first + static_cast<std::size_t>(p.label[u])] << ',' << p.entropy[u] << ','
           << p.mutual_information[u] << '\n';
    }
  }
  [[nodiscard]] std::string text() const { return out_.str(); }

 private:
  void begin_row(std::int32_t g, const std::string& fold) {
    out_ << g << ',';
    if (!set_->graph_names.empty()) {
      out_ << sheafnn::io::csv_field(set_->graph_names[static_cast<std::size_t>(g)]) << ',';
    }
    out_ << fold;
  }
  [[nodiscard]] std::string name(std::int32_t c) const {
    return set_->class_names.empty() ? std::to_string(c)
                                     : sheafnn::io::csv_field(set_->class_names[static_cast<std::size_t>(c)]);
  }

  const sheafnn::GraphSet* set_;
  std::ostringstream out_;
};

/// The splits of the set, or one for each of its folds or of folds that are drawn.
std::vector<sheafnn::Split> splits_of(const Settings& s, const sheafnn::GraphSet& set) {
  if (!set.splits.empty()) return set.splits;
  const auto folds = set.folds.empty() ? sheafnn::stratified_folds(set, s.folds, s.train.seed) : set.folds;
  return sheafnn::fold_splits(set, folds, 0.1, s.train.seed);
}

/// Trains on every fold, or on one. Predictions of a fold are of its best epoch. A signal ends the training after an epoch.
void train(Settings s, const sheafnn::GraphSet& set) {
  const std::vector<sheafnn::Split> splits = splits_of(s, set);
  const Index count = static_cast<Index>(splits.size());
  sheafnn::require(s.fold < count, "--fold", s.fold, sheafnn::detail::concat(set.name, " has ", count, " folds"));
  sheafnn::require(s.save.empty() || s.fold >= 0, "--save", s.save, "needs --fold, the test fold of the network");
  s.network.features = set.feature_count();
  const bool regression = set.labels.empty();
  s.network.classes = regression ? set.target_count : set.class_count;
  if (s.maps != "identity") s.network.edge_features = set.graph.arc_feature_count();
  PredictionRows rows(set);
  double sum = 0, squares = 0;
  Index trained = 0;
  const sheafnn::Dataset numbers = numbers_of(set);
  std::printf(regression ? "fold  best epoch  validation R2  test R2\n"
                         : "fold  best epoch  validation  test accuracy  test ECE\n");
  const programs::Interruption interruption;
  s.train.on_epoch = [](const sheafnn::EpochReport&) { return programs::wanted_action(); };
  for (Index i = 0; i < count && programs::Interruption::signal() == 0; ++i) {
    if (s.fold >= 0 && i != s.fold) continue;
    const sheafnn::Split& split = splits[static_cast<std::size_t>(i)];
    std::optional<programs::TargetKind> kind_of_numbers;
    sheafnn::GraphSet scaled;
    if (regression) {
      kind_of_numbers.emplace(sheafnn::TargetLoss::squared, numbers, split.train);
      scaled = set;
      scaled.targets = kind_of_numbers->scaling().scaled(set.targets);
    }
    graph_program::Outcome outcome =
        s.entry().train({regression ? scaled : set, split, s.network, s.train, s.bayesian()});
    const sheafnn::TrainResult& r = outcome.result;
    if (regression) {
      kind_of_numbers->add_to(outcome.checkpoint.metadata);
      std::printf("%4td  %10td  %13.4f  %7.4f\n", i, r.best_epoch, r.validation_accuracy, r.test_accuracy);
    } else {
      std::printf("%4td  %10td  %10.1f  %13.1f  %8.3f\n", i, r.best_epoch, 100 * r.validation_accuracy,
                  100 * r.test_accuracy, r.test_ece);
    }
    programs::flush_output();
    sum += r.test_accuracy;
    squares += r.test_accuracy * r.test_accuracy;
    ++trained;
    if (!s.predictions.empty()) {
      const graph_program::Trained trained{"the network", outcome.checkpoint, s.bayesian()};
      const auto options = programs::best_epoch_options(s.train, r.best_epoch);
      const auto add = [&](const auto& prediction) { rows.add(prediction, split.test, std::to_string(i)); };
      regression ? add(predicted_numbers(s, set, *kind_of_numbers, trained, options))
                 : add(s.entry().predict(trained, set, options));
    }
    if (!s.save.empty()) sheafnn::io::write_safetensors(s.save, outcome.checkpoint);
  }
  if (trained > 1) {
    const double mean = sum / static_cast<double>(trained);
    const double deviation = std::sqrt(std::max(0.0, squares / static_cast<double>(trained) - mean * mean));
    if (regression) {
      std::printf("test R2 %.4f ± %.4f over %td folds\n", mean, deviation, trained);
    } else {
      std::printf("test accuracy %.1f ± %.1f over %td folds\n", 100 * mean, 100 * deviation, trained);
    }
  }
  if (!s.predictions.empty()) sheafnn::io::write_text(s.predictions, rows.text());
}

/// Predicts all graphs with the network of a file.
void predict(const Settings& s, const sheafnn::io::TensorFile& file, const sheafnn::GraphSet& set) {
  const graph_program::Trained trained{s.load, file, s.bayesian()};
  const sheafnn::PredictOptions options{.samples = s.train.samples,
                                        .seed = s.train.seed,
                                        .threads = s.train.threads};
  std::vector<std::int32_t> all(static_cast<std::size_t>(set.graph_count()));
  std::iota(all.begin(), all.end(), 0);
  const auto write = [&](const auto& prediction) {
    if (s.predictions.empty()) return;
    PredictionRows rows(set);
    rows.add(prediction, all, "");
    sheafnn::io::write_text(s.predictions, rows.text());
  };
  if (set.labels.empty()) {
    const programs::TargetKind kind_of_numbers(s.load, file.metadata, set.target_count);
    const auto prediction = predicted_numbers(s, set, kind_of_numbers, trained, options);
    write(prediction);
    const sheafnn::Dataset numbers = numbers_of(set);
    const auto figures = programs::target_figures(kind_of_numbers, numbers, prediction, {});
    for (std::size_t c = 0; c < figures.size(); ++c) {
      programs::print_target_figures(numbers.target_names[c], figures[c], 0);
    }
    return;
  }
  const sheafnn::Prediction p = s.entry().predict(trained, set, options);
  write(p);
  const std::vector<std::int32_t> labelled = sheafnn::labelled_nodes(set.labels, all);
  if (labelled.empty()) return;
  std::printf("%.1f%% of the labelled graphs have the class of their label\n",
              100 * sheafnn::uncertainty::accuracy(p.probabilities, p.class_count, set.labels, labelled));
}

/// Takes the model, the maps and the stalk dimension of a file's network, and checks that the classes are the set's.
void take_network(Settings& s, const sheafnn::io::TensorFile& file, const sheafnn::GraphSet& set) {
  const sheafnn::io::CheckpointInfo info = sheafnn::io::checkpoint_info(s.load, file);
  sheafnn::require(kind.has(info.model), "--load", s.load,
                   sheafnn::detail::concat("holds the model ", info.model, ", whose outputs belong to nodes"));
  const Index classes = info.options<sheafnn::PooledOptions>().classes;
  if (file.metadata.contains("targets")) {
    sheafnn::require(set.labels.empty(), "--load", s.load,
                     sheafnn::detail::concat("holds a network of a regression, and ", set.name, " has classes"));
    sheafnn::require(classes == set.target_count, "--load", s.load,
                     sheafnn::detail::concat("holds a network of ", classes, " targets, and ", set.name, " has ",
                                             set.target_count));
  } else {
    sheafnn::require(!set.labels.empty(), "--load", s.load,
                     sheafnn::detail::concat("holds a network that classifies, and ", set.name, " has targets"));
    const auto names = sheafnn::io::saved_class_names(s.load, file.metadata, classes);
    sheafnn::require(classes == set.class_count && names == set.class_names, "--load", s.load,
                     sheafnn::detail::concat("holds a network with other classes than ", set.name, " has"));
  }
  sheafnn::io::detail::naming_file(set.name, [&] { sheafnn::io::check_columns(set, s.load, file.metadata); });
  s.model = info.model == kind.bayesian ? "bsnn" : "nsd";
  s.maps = info.maps;
  s.stalk_dimension = info.stalk_dimension;
}

}  // namespace

int main(int argc, char** argv) {
  Settings s;
  CLI::App app("Classifies graphs, or predicts their numbers, with a sheaf network; see docs/graphs.md.",
               "graphs");
  app.add_option(
         "dataset", s.dataset,
         "graphs with classes or numbers: a folder with graphs.csv, nodes.csv and edges.csv, an .npz file, or a "
         "folder in the TU text "
         "format")
      ->required();
  auto* folds =
      app.add_option("--folds", s.folds, "number of test folds, where the dataset has no folds of its own")
          ->capture_default_str();
  auto* fold = app.add_option("--fold", s.fold, "number of the test fold, counted from 0 (default: each of them)");
  auto* model = app.add_option_group("Model", "the network, with features pooled over the nodes of each graph");
  model->add_option("--model", s.model, "nsd, or bsnn (Bayesian)")
      ->capture_default_str()
      ->check(CLI::IsMember({"nsd", "bsnn"}));
  model->add_option("--maps", s.maps, "restriction maps: identity, diagonal, special-orthogonal or general-linear")
      ->capture_default_str()
      ->check(CLI::IsMember({"identity", "diagonal", "special-orthogonal", "general-linear"}));
  model
      ->add_option("--stalk-dim", s.stalk_dimension,
                   "stalk dimension; a build has some combinations with the maps")
      ->capture_default_str();
  const auto all = [](std::string_view) { return true; };
  programs::add_flags(app, *model, s.network, all);
  auto* training = app.add_option_group("Training");
  programs::add_flags(app, *training, s.train, [](std::string_view key) { return key != "checkpoint_every"; });
  auto* files = app.add_option_group("Files");
  auto* load = files->add_option("--load", s.load, "predict with the network of this .safetensors file");
  files->add_option("--save", s.save, "write the trained network to this .safetensors file")->excludes(load);
  files->add_option("--predictions", s.predictions,
                    "write the predictions for the test graphs, or with --load for all graphs, to this CSV file");
  return programs::run_program(app, argc, argv, [&] {
    if (!s.load.empty()) programs::refuse_beside_load({model, training}, {folds, fold});
    sheafnn::require(fold->count() == 0 || s.fold >= 0, "--fold", s.fold, "must be at least 0");
    programs::require_writable("--save", s.save);
    programs::require_writable("--predictions", s.predictions);
    programs::require_apart({{"--save", s.save}, {"--predictions", s.predictions}},
                            {{"dataset", s.dataset}, {"--load", s.load}});
    const sheafnn::GraphSet set = sheafnn::io::load_graphs(s.dataset);
    const std::size_t own = set.splits.empty() ? set.folds.size() : set.splits.size();
    sheafnn::require(folds->count() == 0 || own == 0, "--folds", s.folds,
                     sheafnn::detail::concat(set.name, " has ", own, set.splits.empty() ? " folds" : " splits",
                                             " of its own"));
    sheafnn::io::TensorFile file;
    if (!s.load.empty()) {
      file = sheafnn::io::read_safetensors(s.load);
      take_network(s, file, set);
    }
    static_cast<void>(s.entry());  // throws if this build lacks the model
    const bool regression = set.labels.empty();
    std::printf("%s: %td graphs, %td nodes, %td edges, %td features, %td %s\n", set.name.c_str(),
                set.graph_count(), set.graph.node_count(), set.graph.edge_count(), set.feature_count(),
                regression ? set.target_count : set.class_count,
                !regression             ? "classes"
                : set.target_count == 1 ? "target"
                                        : "targets");
    s.load.empty() ? train(s, set) : predict(s, file, set);
    return programs::exit_status("graphs");
  });
}
