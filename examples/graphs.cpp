/// \file
/// Classifies graphs: trains on each of ten folds of a set, chooses the epoch on a tenth of the graphs outside of the fold,
/// and prints the accuracy of each fold with the mean. On request it writes what is predicted for every test graph.
#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <sheafnn/bsnn/pooled_network.hpp>
#include <sheafnn/bsnn/prediction.hpp>
#include <sheafnn/bsnn/trainer.hpp>
#include <sheafnn/io/graph_sets.hpp>
#include <string>
#include <vector>

#include "models/option_flags.hpp"

namespace {

using sheafnn::Index;

struct Settings {
  std::string dataset, model = "nsd", maps = "diagonal", predictions;
  Index folds = 10;
  sheafnn::PooledOptions network;
  sheafnn::TrainOptions train;
};

/// Trains on every fold. Predictions of a fold are of its best epoch.
template <class Model>
void run(const Settings& s, const sheafnn::GraphSet& set) {
  const auto folds = set.folds.empty() ? sheafnn::stratified_folds(set, s.folds, s.train.seed) : set.folds;
  const std::vector<sheafnn::Split> splits = sheafnn::fold_splits(set, folds, 0.1, s.train.seed);
  std::ofstream out;
  if (!s.predictions.empty()) {
    out.open(s.predictions);
    out << "graph,fold,label,predicted,probability,entropy,mutual_information\n";
  }
  const auto name = [&](std::int32_t c) {
    return set.class_names.empty() ? std::to_string(c) : set.class_names[static_cast<std::size_t>(c)];
  };
  double sum = 0, squares = 0;
  std::printf("fold  best epoch  validation  test accuracy  test ECE\n");
  for (std::size_t i = 0; i < splits.size(); ++i) {
    sheafnn::PooledOptions network = s.network;
    network.features = set.feature_count();
    network.classes = set.class_count;
    Model model(network, s.train.seed);
    const sheafnn::TrainResult r =
        sheafnn::train(model, set.graph, set.features, sheafnn::Classification(set.labels), splits[i], s.train);
    std::printf("%4zu  %10d  %10.1f  %13.1f  %8.3f\n", i, static_cast<int>(r.best_epoch),
                100 * r.validation_accuracy, 100 * r.test_accuracy, r.test_ece);
    std::fflush(stdout);
    sum += r.test_accuracy;
    squares += r.test_accuracy * r.test_accuracy;
    if (!out.is_open()) continue;
    const sheafnn::Prediction p = sheafnn::predict(model, set.graph, set.features,
                                                   {.samples = s.train.samples,
                                                    .seed = s.train.seed,
                                                    .epoch = static_cast<std::uint32_t>(r.best_epoch),
                                                    .threads = s.train.threads});
    for (const std::int32_t g : splits[i].test) {
      const std::size_t u = static_cast<std::size_t>(g);
      const std::int32_t label = set.labels[u];
      out << g << ',' << i << ',' << (label < 0 ? "" : name(label)) << ',' << name(p.label[u]) << ','
          << p.probabilities[u * static_cast<std::size_t>(p.class_count) + static_cast<std::size_t>(p.label[u])]
          << ',' << p.entropy[u] << ',' << p.mutual_information[u] << '\n';
    }
  }
  const double count = static_cast<double>(splits.size()), mean = sum / count;
  const double deviation = std::sqrt(std::max(0.0, squares / count - mean * mean));
  std::printf("test accuracy %.1f ± %.1f over %zu folds\n", 100 * mean, 100 * deviation, splits.size());
}

template <class Maps>
void run_maps(const Settings& s, const sheafnn::GraphSet& set) {
  if (s.model == "bsnn") {
    run<sheafnn::PooledModel<sheafnn::Bsnn<Maps>>>(s, set);
  } else {
    run<sheafnn::PooledModel<sheafnn::Nsd<Maps>>>(s, set);
  }
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
  CLI::App app("Graph classification with sheaf networks");
  app.add_option("dataset", s.dataset, "an .npz file or a folder of the TU text format")->required();
  app.add_option("--model", s.model, "nsd, or bsnn: Bayesian")
      ->capture_default_str()
      ->check(CLI::IsMember({"nsd", "bsnn"}));
  app.add_option("--maps", s.maps, "restriction maps of stalk dimension 3")
      ->capture_default_str()
      ->check(CLI::IsMember({"identity", "diagonal", "special-orthogonal"}));
  app.add_option("--folds", s.folds, "test folds, where the set has none of its own")->capture_default_str();
  app.add_option("--predictions", s.predictions, "writes what is predicted for every test graph to this CSV file");
  const auto all = [](std::string_view) { return true; };
  programs::add_flags(app, *app.add_option_group("Network"), s.network, all);
  programs::add_flags(app, *app.add_option_group("Training"), s.train, all);
  CLI11_PARSE(app, argc, argv);
  try {
    const sheafnn::GraphSet set = sheafnn::io::load_graphs(s.dataset);
    std::printf("%s: %ld graphs, %ld nodes, %ld edges, %ld features, %ld classes\n", set.name.c_str(),
                static_cast<long>(set.graph_count()), static_cast<long>(set.graph.node_count()),
                static_cast<long>(set.graph.edge_count()), static_cast<long>(set.feature_count()),
                static_cast<long>(set.class_count));
    sheafnn::require(!set.labels.empty(), "dataset", s.dataset,
                     "it has targets of regression; this program classifies");
    if (s.maps == "identity") run_maps<sheafnn::Identity<3>>(s, set);
    if (s.maps == "diagonal") run_maps<sheafnn::Diagonal<3>>(s, set);
    if (s.maps == "special-orthogonal") run_maps<sheafnn::SpecialOrthogonal<3>>(s, set);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "graphs: %s\n", error.what());
    return 1;
  }
}
