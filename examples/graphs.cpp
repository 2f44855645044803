/// \file
/// Classifies graphs. Trains on each fold of a set, chooses the epoch on a tenth of the graphs outside of the fold, and
/// prints the accuracy of each fold with the mean. Or predicts with a trained network.
///
///     graphs mutag.npz --fold 0 --save mutag.safetensors
///     graphs mutag.npz --load mutag.safetensors --predictions classes.csv
#include <cmath>
#include <cstdio>
#include <limits>
#include <numeric>
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

/// Predictions as a CSV file, one line per graph, with its name where graphs have names. The fold is empty if the graph has
/// no fold.
class PredictionRows {
 public:
  explicit PredictionRows(const sheafnn::GraphSet& set) : set_(&set) {
    out_.precision(std::numeric_limits<double>::max_digits10);
    out_ << (set.graph_names.empty() ? "graph" : "graph,name")
         << ",fold,label,predicted,probability,entropy,mutual_information\n";
  }
  void add(const sheafnn::Prediction& p, const std::vector<std::int32_t>& graphs, const std::string& fold) {
    for (const std::int32_t g : graphs) {
      const std::size_t u = static_cast<std::size_t>(g);
      const std::size_t first = u * static_cast<std::size_t>(p.class_count);
      const std::int32_t label = set_->labels[u];
      out_ << g << ',';
      if (!set_->graph_names.empty()) out_ << sheafnn::io::csv_field(set_->graph_names[u]) << ',';
      out_ << fold << ',' << (label < 0 ? "" : name(label)) << ',' << name(p.label[u]) << ','
           << p.probabilities[first + static_cast<std::size_t>(p.label[u])] << ',' << p.entropy[u] << ','
           << p.mutual_information[u] << '\n';
    }
  }
  [[nodiscard]] std::string text() const { return out_.str(); }

 private:
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
  s.network.classes = set.class_count;
  if (s.maps != "identity") s.network.edge_features = set.graph.arc_feature_count();
  PredictionRows rows(set);
  double sum = 0, squares = 0;
  Index trained = 0;
  std::printf("fold  best epoch  validation  test accuracy  test ECE\n");
  const programs::Interruption interruption;
  s.train.on_epoch = [](const sheafnn::EpochReport&) { return programs::wanted_action(); };
  for (Index i = 0; i < count && programs::Interruption::signal() == 0; ++i) {
    if (s.fold >= 0 && i != s.fold) continue;
    const sheafnn::Split& split = splits[static_cast<std::size_t>(i)];
    const graph_program::Outcome outcome = s.entry().train({set, split, s.network, s.train, s.bayesian()});
    const sheafnn::TrainResult& r = outcome.result;
    std::printf("%4td  %10td  %10.1f  %13.1f  %8.3f\n", i, r.best_epoch, 100 * r.validation_accuracy,
                100 * r.test_accuracy, r.test_ece);
    programs::flush_output();
    sum += r.test_accuracy;
    squares += r.test_accuracy * r.test_accuracy;
    ++trained;
    if (!s.predictions.empty()) {
      rows.add(s.entry().predict({"the network", outcome.checkpoint, s.bayesian()}, set,
                                 programs::best_epoch_options(s.train, r.best_epoch)),
               split.test, std::to_string(i));
    }
    if (!s.save.empty()) sheafnn::io::write_safetensors(s.save, outcome.checkpoint);
  }
  if (trained > 1) {
    const double mean = sum / static_cast<double>(trained);
    std::printf("test accuracy %.1f ± %.1f over %td folds\n", 100 * mean,
                100 * std::sqrt(std::max(0.0, squares / static_cast<double>(trained) - mean * mean)), trained);
  }
  if (!s.predictions.empty()) sheafnn::io::write_text(s.predictions, rows.text());
}

/// Predicts all graphs with the network of a file.
void predict(const Settings& s, const sheafnn::io::TensorFile& file, const sheafnn::GraphSet& set) {
  const sheafnn::Prediction p =
      s.entry().predict({s.load, file, s.bayesian()}, set,
                        {.samples = s.train.samples, .seed = s.train.seed, .threads = s.train.threads});
  std::vector<std::int32_t> all(static_cast<std::size_t>(set.graph_count()));
  std::iota(all.begin(), all.end(), 0);
  if (!s.predictions.empty()) {
    PredictionRows rows(set);
    rows.add(p, all, "");
    sheafnn::io::write_text(s.predictions, rows.text());
  }
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
  sheafnn::require(!file.metadata.contains("targets"), "--load", s.load,
                   "holds a network of a regression, and this program classifies");
  const Index classes = info.options<sheafnn::PooledOptions>().classes;
  const auto names = programs::checkpoint_class_names(s.load, file.metadata, classes);
  sheafnn::require(classes == set.class_count && names == set.class_names, "--load", s.load,
                   sheafnn::detail::concat("holds a network with other classes than ", set.name, " has"));
  sheafnn::io::detail::naming_file(set.name, [&] { programs::check_columns(set, s.load, file.metadata); });
  s.model = info.model == kind.bayesian ? "bsnn" : "nsd";
  s.maps = info.maps;
  s.stalk_dimension = info.stalk_dimension;
}

}  // namespace

int main(int argc, char** argv) {
  Settings s;
  CLI::App app("Classifies graphs with a sheaf network; see docs/graphs.md.", "graphs");
  app.add_option("dataset", s.dataset,
                 "graphs to classify: a folder with graphs.csv, nodes.csv and edges.csv, an .npz file, or a "
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
    sheafnn::require(!set.labels.empty(), "dataset", s.dataset,
                     "the dataset has regression targets, and this program classifies");
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
    std::printf("%s: %td graphs, %td nodes, %td edges, %td features, %td classes\n", set.name.c_str(),
                set.graph_count(), set.graph.node_count(), set.graph.edge_count(), set.feature_count(),
                set.class_count);
    s.load.empty() ? train(s, set) : predict(s, file, set);
    return programs::exit_status("graphs");
  });
}
