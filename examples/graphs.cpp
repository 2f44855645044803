/// \file
/// Classifies graphs: trains on each fold of a set, chooses the epoch on a tenth of the graphs outside of the fold, and prints
/// the accuracy of each fold with the mean; or predicts with a trained network.
///
///     graphs mutag.npz --fold 0 --save mutag.safetensors
///     graphs mutag.npz --load mutag.safetensors --predictions classes.csv
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <numeric>
#include <sheafnn/bsnn/pooled_network.hpp>
#include <sheafnn/bsnn/prediction.hpp>
#include <sheafnn/bsnn/trainer.hpp>
#include <sheafnn/io/checkpoint.hpp>
#include <sheafnn/io/csv.hpp>
#include <sheafnn/io/file.hpp>
#include <sheafnn/io/graph_sets.hpp>
#include <sheafnn/uncertainty/metrics.hpp>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "models/class_names.hpp"
#include "models/option_flags.hpp"
#include "models/program.hpp"

namespace {

using sheafnn::Index;
constexpr int stalk_dimension = 3;
constexpr const sheafnn::NetworkKind& kind = sheafnn::PooledOptions::kind;

struct Settings {
  std::string dataset, model = "nsd", maps = "diagonal", save, load, predictions;
  Index folds = 10, fold = -1;
  sheafnn::PooledOptions network;
  sheafnn::TrainOptions train;
};

/// Predictions as a CSV file, one line per graph; the fold is empty where there is none.
class PredictionRows {
 public:
  explicit PredictionRows(const sheafnn::GraphSet& set) : set_(&set) {
    out_.precision(std::numeric_limits<double>::max_digits10);
    out_ << "graph,fold,label,predicted,probability,entropy,mutual_information\n";
  }
  void add(const sheafnn::Prediction& p, const std::vector<std::int32_t>& graphs, const std::string& fold) {
    for (const std::int32_t g : graphs) {
      const std::size_t u = static_cast<std::size_t>(g);
      const std::size_t first = u * static_cast<std::size_t>(p.class_count);
      const std::int32_t label = set_->labels[u];
      out_ << g << ',' << fold << ',' << (label < 0 ? "" : name(label)) << ',' << name(p.label[u]) << ','
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

/// Trains on every fold, or on one. Predictions of a fold are of its best epoch.
template <class Model>
void train(Settings s, const sheafnn::GraphSet& set) {
  const auto folds = set.folds.empty() ? sheafnn::stratified_folds(set, s.folds, s.train.seed) : set.folds;
  const std::vector<sheafnn::Split> splits = sheafnn::fold_splits(set, folds, 0.1, s.train.seed);
  const Index count = static_cast<Index>(splits.size());
  sheafnn::require(s.fold < count, "--fold", s.fold, sheafnn::detail::concat(set.name, " has ", count, " folds"));
  sheafnn::require(s.save.empty() || s.fold >= 0, "--save", s.save, "needs --fold, the test fold of the network");
  s.network.features = set.feature_count();
  s.network.classes = set.class_count;
  PredictionRows rows(set);
  double sum = 0, squares = 0, trained = 0;
  std::printf("fold  best epoch  validation  test accuracy  test ECE\n");
  for (Index i = 0; i < count; ++i) {
    if (s.fold >= 0 && i != s.fold) continue;
    const sheafnn::Split& split = splits[static_cast<std::size_t>(i)];
    Model model(s.network, s.train.seed);
    const sheafnn::TrainResult r =
        sheafnn::train(model, set.graph, set.features, sheafnn::Classification(set.labels), split, s.train);
    std::printf("%4td  %10td  %10.1f  %13.1f  %8.3f\n", i, r.best_epoch, 100 * r.validation_accuracy,
                100 * r.test_accuracy, r.test_ece);
    programs::flush_output();
    sum += r.test_accuracy;
    squares += r.test_accuracy * r.test_accuracy;
    ++trained;
    if (!s.predictions.empty()) {
      rows.add(sheafnn::predict(model, set.graph, set.features,
                                {.samples = s.train.samples,
                                 .seed = s.train.seed,
                                 .epoch = static_cast<std::uint32_t>(r.best_epoch),
                                 .threads = s.train.threads}),
               split.test, std::to_string(i));
    }
    if (!s.save.empty()) {
      std::map<std::string, std::string> notes = {{"dataset", programs::as_utf8(set.name)},
                                                  {"best_epoch", std::to_string(r.best_epoch)}};
      if (!set.class_names.empty()) notes["class_names"] = sheafnn::io::csv_record(set.class_names);
      sheafnn::io::save_checkpoint(s.save, model, notes);
    }
  }
  if (trained > 1) {
    const double mean = sum / trained;
    std::printf("test accuracy %.1f ± %.1f over %td folds\n", 100 * mean,
                100 * std::sqrt(std::max(0.0, squares / trained - mean * mean)), count);
  }
  if (!s.predictions.empty()) sheafnn::io::write_text(s.predictions, rows.text());
}

/// Predicts all graphs with the network of a file.
template <class Model>
void predict(const Settings& s, const sheafnn::GraphSet& set) {
  const sheafnn::Prediction p =
      sheafnn::predict(sheafnn::io::load_checkpoint<Model>(s.load), set.graph, set.features,
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

template <class NodeModel>
void run(const Settings& s, const sheafnn::GraphSet& set) {
  using Model = sheafnn::PooledModel<NodeModel>;
  s.load.empty() ? train<Model>(s, set) : predict<Model>(s, set);
}
template <class Maps>
void run_maps(const Settings& s, const sheafnn::GraphSet& set) {
  s.model == "bsnn" ? run<sheafnn::Bsnn<Maps>>(s, set) : run<sheafnn::Nsd<Maps>>(s, set);
}

/// Takes the model and the maps of a file's network, and checks that the classes are the set's.
void take_network(Settings& s, const sheafnn::GraphSet& set) {
  const sheafnn::io::TensorFile file = sheafnn::io::read_safetensors(s.load);
  const sheafnn::io::CheckpointInfo info = sheafnn::io::checkpoint_info(s.load, file);
  sheafnn::require(kind.has(info.model), "--load", s.load,
                   sheafnn::detail::concat("holds the model ", info.model, ", whose outputs belong to nodes"));
  sheafnn::require(info.stalk_dimension == stalk_dimension, "--load", s.load,
                   sheafnn::detail::concat("holds a network of stalk dimension ", info.stalk_dimension,
                                           "; this program has ", stalk_dimension));
  const Index classes = info.options<sheafnn::PooledOptions>().classes;
  const auto names = programs::checkpoint_class_names(s.load, file.metadata, classes);
  sheafnn::require(classes == set.class_count && names == set.class_names, "--load", s.load,
                   sheafnn::detail::concat("holds a network with other classes than ", set.name, " has"));
  s.model = info.model == kind.bayesian ? "bsnn" : "nsd";
  s.maps = info.maps;
}

}  // namespace

int main(int argc, char** argv) {
  Settings s;
  s.network.channels = 16;
  s.network.layers = 4;
  s.network.pooling = sheafnn::Pooling::sum;
  s.train.input_dropout = 0;
  s.train.dropout = 0.1;
  s.train.epochs = 200;
  s.train.patience = 100;
  CLI::App app("Classifies graphs with a sheaf network of stalk dimension 3; see docs/graphs.md.", "graphs");
  app.add_option("dataset", s.dataset, "graphs to classify: an .npz file or a folder in the TU text format")
      ->required();
  auto* folds =
      app.add_option("--folds", s.folds, "number of test folds, where the dataset has no folds of its own")
          ->capture_default_str();
  app.add_option("--fold", s.fold, "number of the test fold, counted from 0 (default: each in turn)")
      ->check(CLI::NonNegativeNumber);
  auto* model = app.add_option_group("Model", "the network; see docs/math.md, \"Pooling\"");
  model->add_option("--model", s.model, "nsd, or bsnn (Bayesian)")
      ->capture_default_str()
      ->check(CLI::IsMember({"nsd", "bsnn"}));
  model->add_option("--maps", s.maps, "restriction maps: identity, diagonal or special-orthogonal")
      ->capture_default_str()
      ->check(CLI::IsMember({"identity", "diagonal", "special-orthogonal"}));
  const auto all = [](std::string_view) { return true; };
  programs::add_flags(app, *model, s.network, all);
  programs::add_flags(app, *app.add_option_group("Training"), s.train,
                      [](std::string_view key) { return key != "checkpoint_every"; });
  auto* files = app.add_option_group("Files");
  auto* load = files->add_option("--load", s.load, "predict with the network of this .safetensors file");
  files->add_option("--save", s.save, "write the trained network to this .safetensors file")->excludes(load);
  files->add_option("--predictions", s.predictions,
                    "write the predictions for the test graphs, or with --load for all graphs, to this CSV file");
  return programs::run_program(app, argc, argv, [&] {
    programs::require_writable("--save", s.save);
    programs::require_writable("--predictions", s.predictions);
    programs::require_apart({{"--save", s.save}, {"--predictions", s.predictions}},
                            {{"dataset", s.dataset}, {"--load", s.load}});
    const sheafnn::GraphSet set = sheafnn::io::load_graphs(s.dataset);
    sheafnn::require(!set.labels.empty(), "dataset", s.dataset,
                     "the dataset has regression targets, and this program classifies");
    sheafnn::require(folds->count() == 0 || set.folds.empty(), "--folds", s.folds,
                     sheafnn::detail::concat(set.name, " has ", set.folds.size(), " folds of its own"));
    if (!s.load.empty()) take_network(s, set);
    std::printf("%s: %td graphs, %td nodes, %td edges, %td features, %td classes\n", set.name.c_str(),
                set.graph_count(), set.graph.node_count(), set.graph.edge_count(), set.feature_count(),
                set.class_count);
    if (s.maps == "identity") run_maps<sheafnn::Identity<stalk_dimension>>(s, set);
    if (s.maps == "diagonal") run_maps<sheafnn::Diagonal<stalk_dimension>>(s, set);
    if (s.maps == "special-orthogonal") run_maps<sheafnn::SpecialOrthogonal<stalk_dimension>>(s, set);
  });
}
