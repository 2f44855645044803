/// \file
/// What the programs hypergraph and hypergraph_mpi share: their options, and the table of trainings.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <sheafnn/bsnn/hypergraph_options.hpp>
#include <sheafnn/bsnn/train_options.hpp>
#include <sheafnn/io/file.hpp>
#include <sheafnn/io/hypergraph.hpp>
#include <sheafnn/io/safetensors.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hypergraph/models.hpp"
#include "models/option_flags.hpp"
#include "models/program.hpp"
#include "models/report.hpp"

namespace hypergraph_program {

using sheafnn::Index;
inline constexpr const sheafnn::NetworkKind& kind = sheafnn::HypergraphOptions::kind;

struct Settings {
  std::string hypergraph = "synthetic", model = "shgnn", maps = "diagonal", save, load, output, report;
  sheafnn::SyntheticHypergraphOptions synthetic;
  sheafnn::io::TextOptions text;
  sheafnn::HypergraphOptions network;
  sheafnn::TrainOptions train;
  int stalk_dimension = 2;
  Index split = -1;
  bool projection = false;
};

inline void print_data(const sheafnn::HypergraphDataset& data) {
  std::printf("%s: %td nodes, %td hyperedges of at most %td nodes, %td features, %td classes\n", data.name.c_str(),
              data.node_count(), data.graph.hyperedge_count(), data.graph.largest_size(), data.feature_count(),
              data.class_count);
}

/// Options of a program, in their groups.
struct OptionGroups {
  CLI::Option* split;
  CLI::App *model, *training;
};
[[nodiscard]] inline OptionGroups add_options(CLI::App& app, Settings& s) {
  app.add_option("--hypergraph", s.hypergraph,
                 "synthetic, an .npz file, or a folder with hyperedges.csv and nodes.csv")
      ->capture_default_str();
  app.add_option("--label", s.text.label, "name of the column with the labels, in a folder's tables")
      ->capture_default_str();
  auto* split = app.add_option("--split", s.split, "number of the split to train on (default: all)");
  auto* model = app.add_option_group("Model", "the network, with maps per node and hyperedge");
  model->add_option("--model", s.model, "shgnn, or bshgnn (Bayesian)")
      ->capture_default_str()
      ->check(CLI::IsMember({std::string(kind.deterministic), std::string(kind.bayesian)}));
  model->add_option("--maps", s.maps, sheafnn::detail::concat("restriction maps: ", all_maps))
      ->capture_default_str();
  model->add_option("--stalk-dim", s.stalk_dimension, "stalk dimension, 2 to 4")->capture_default_str();
  const auto all = [](std::string_view) { return true; };
  programs::add_flags(app, *model, s.network, all);
  model->add_flag("--projection", s.projection,
                  "with --laplacian nonlinear: project discrepancies on random numbers (default: off)");
  auto* training = app.add_option_group("Training");
  programs::add_flags(app, *training, s.train, [](std::string_view key) { return key != "checkpoint_every"; });
  return {split, model, training};
}
/// \throws std::invalid_argument  --split with a negative number
inline void check_split(const OptionGroups& groups, const Settings& s) {
  sheafnn::require(groups.split->count() == 0 || s.split >= 0, "--split", s.split, "must be at least 0");
}

/// Figures of all trainings, for a report.
class Figures {
 public:
  void add(Index split, const Outcome& outcome) {
    const sheafnn::TrainResult& r = outcome.result;
    nlohmann::ordered_json one = {{"split", split}, {"best_epoch", r.best_epoch}, {"epochs", r.history.size()}};
    programs::add_class_figures(one, r);
    splits_.push_back(std::move(one));
    parameters_ = outcome.parameters;
    validation_.push_back(r.validation_accuracy);
    test_.push_back(r.test_accuracy);
    nll_.push_back(r.test_nll);
    ece_.push_back(r.test_ece);
    seconds_.push_back(r.epoch_seconds);
  }
  [[nodiscard]] nlohmann::ordered_json json(const Settings& s, const std::string& data,
                                            const nlohmann::ordered_json& run) const {
    return {{"hypergraph", data},
            {"model", s.model},
            {"maps", s.maps},
            {"stalk_dimension", s.stalk_dimension},
            {"run", run},
            {"test_accuracy", programs::summary_json(test_)},
            {"validation_accuracy", programs::summary_json(validation_)},
            {"ece", programs::summary_of(ece_).mean},
            {"nll", programs::summary_of(nll_).mean},
            {"seconds_per_epoch", {{"all", programs::summary_of(seconds_).mean}}},
            {"parameters", parameters_},
            {"splits", splits_}};
  }

 private:
  std::vector<double> validation_, test_, nll_, ece_, seconds_;
  nlohmann::ordered_json splits_ = nlohmann::ordered_json::array();
  Index parameters_ = 0;
};

/// Trains on the splits that are asked for, and prints a row for each.
///
/// \tparam Place  where: place.take(data) is called before the trainings, place.train(models, job) trains, and
///                place.prints() says whether this process prints and writes files
/// \param program, arguments  for the report
template <class Place>
void train(Settings s, Place& place, const std::string& program, const std::vector<std::string>& arguments) {
  const programs::RunFacts facts(program);
  if (place.prints()) {
    programs::require_writable("--save", s.save);
    programs::require_writable("--report", s.report);
    programs::require_apart({{"--save", s.save}, {"--report", s.report}}, {{"--hypergraph", s.hypergraph}});
  }
  sheafnn::HypergraphDataset data =
      sheafnn::io::load_hypergraph(s.hypergraph, s.synthetic, sheafnn::DatasetUse::training, s.text);
  if (data.splits.empty()) {
    data.splits = sheafnn::make_splits(data.labels, data.class_count, 10, {0.5, 0.25}, s.train.seed);
    if (place.prints()) std::printf("%s has no splits: ten random splits of 50/25/25\n", data.name.c_str());
  }
  const Index count = static_cast<Index>(data.splits.size());
  sheafnn::require(s.split < count, "--split", s.split,
                   sheafnn::detail::concat(data.name, " has ", count, " splits"));
  sheafnn::require(s.save.empty() || s.split >= 0 || count == 1, "--save", s.save,
                   "needs --split, the split to train on");
  s.network.features = data.feature_count();
  s.network.classes = data.class_count;
  if (s.projection) s.network.projection = sheafnn::random_projection(s.network.channels, s.train.seed);
  const auto& models = find_models(s.maps, s.stalk_dimension);
  if (place.prints()) print_data(data);
  place.take(data);
  double sum = 0, squares = 0, trained = 0;
  Figures figures;
  for (Index i = 0; i < count; ++i) {
    if (s.split >= 0 && i != s.split) continue;
    const Outcome outcome = place.train(models, {data, data.splits[static_cast<std::size_t>(i)], s.network,
                                                 s.train, s.model == kind.bayesian});
    if (!place.prints()) continue;
    const sheafnn::TrainResult& r = outcome.result;
    if (trained == 0)
      std::printf("%td parameters\nsplit  epoch  test accuracy  test NLL  test ECE  s per epoch\n",
                  outcome.parameters);
    std::printf("%5td  %5td  %13.2f  %8.4f  %8.4f  %11.4f\n", i, r.best_epoch, 100 * r.test_accuracy, r.test_nll,
                r.test_ece, r.epoch_seconds);
    programs::flush_output();
    sum += r.test_accuracy;
    squares += r.test_accuracy * r.test_accuracy;
    ++trained;
    figures.add(i, outcome);
    if (!s.save.empty()) sheafnn::io::write_safetensors(s.save, outcome.checkpoint);
  }
  if (place.prints() && !s.report.empty()) {
    sheafnn::io::write_text(s.report, programs::report_text(figures.json(s, data.name, facts.json(arguments))));
  }
  if (trained < 2) return;
  const double mean = sum / trained;
  std::printf("mean   %20.2f ± %.2f\n", 100 * mean,
              100 * std::sqrt(std::max(0.0, squares / trained - mean * mean)));
}

}  // namespace hypergraph_program
