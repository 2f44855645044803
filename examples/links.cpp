/// \file
/// Predicts links: hides edges of a graph, trains a sheaf network to tell them from pairs without an edge, prints how well it
/// ranks the hidden test edges, and writes a ranking of these or of other pairs.
#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <sheafnn/bsnn/edge_prediction.hpp>
#include <sheafnn/bsnn/model.hpp>
#include <sheafnn/bsnn/trainer.hpp>
#include <sheafnn/io/checkpoint.hpp>
#include <sheafnn/io/datasets.hpp>
#include <sheafnn/io/file.hpp>
#include <sheafnn/sheaf/families.hpp>
#include <sheafnn/uncertainty/link_ranks.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "models/option_flags.hpp"

namespace {

using sheafnn::Index;

struct Settings {
  std::string dataset, candidates, ranking, save, model = "bsnn", score = "energy";
  sheafnn::EdgeSplitOptions split;
  sheafnn::ModelOptions network;
  sheafnn::TrainOptions train;
};

/// Pairs in the order of their probability, with the names of the nodes.
std::string ranking_csv(const sheafnn::Dataset& data, const std::vector<sheafnn::Edge>& pairs,
                        const sheafnn::LinkPrediction& p) {
  std::ostringstream out;
  const auto name = [&](std::int32_t u) {
    return data.node_names.empty() ? std::to_string(u)
                                   : sheafnn::io::csv_field(data.node_names[static_cast<std::size_t>(u)]);
  };
  out << "source,target,probability,entropy,mutual_information\n";
  for (const std::int32_t t : p.ranking) {
    const std::size_t i = static_cast<std::size_t>(t);
    out << name(pairs[i].u) << ',' << name(pairs[i].v) << ',' << p.link[i] << ',' << p.entropy[i] << ','
        << p.mutual_information[i] << '\n';
  }
  return out.str();
}

template <class Model>
void run(const Settings& s, const sheafnn::Dataset& data) {
  const sheafnn::PairScore score = sheafnn::parse_name<sheafnn::PairScore>("--score", s.score);
  const sheafnn::EdgeTargets links = sheafnn::split_links(data.graph, s.split);
  std::printf("%s: %td nodes; %td edges are seen, %zu are targets of training, %zu of validation, %zu of test, with negatives\n",
              data.name.c_str(), data.node_count(), links.graph.edge_count(), links.split.train.size(),
              links.split.validation.size(), links.split.test.size());
  sheafnn::ModelOptions network = s.network;
  network.features = data.feature_count();
  Model model(network, s.train.seed);
  const auto result =
      sheafnn::train(model, links.graph, data.features, sheafnn::link_loss(links, score), links.split, s.train);
  const sheafnn::PredictOptions predict{.samples = s.train.samples,
                                        .seed = s.train.seed,
                                        .epoch = static_cast<std::uint32_t>(result.best_epoch),
                                        .threads = s.train.threads};
  std::vector<sheafnn::Edge> pairs;
  for (const std::int32_t t : links.split.test) pairs.push_back(links.pairs[static_cast<std::size_t>(t)]);
  if (!pairs.empty()) {
    const auto p = sheafnn::predict_links(model, links.graph, data.features, pairs, score, predict);
    std::vector<double> edges, negatives;
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      const bool edge = links.labels[static_cast<std::size_t>(links.split.test[i])] == 1;
      (edge ? edges : negatives).push_back(p.link[i]);
    }
    std::printf("best epoch %td; test ROC AUC %.3f, average precision %.3f", result.best_epoch, result.test_roc_auc,
                result.test_average_precision);
    if (const auto ranks = sheafnn::uncertainty::link_ranks(edges, negatives); !ranks.empty() && !negatives.empty()) {
      std::printf(", Hits@10 %.3f, MRR %.3f", sheafnn::uncertainty::hits_at(ranks, 10),
                  sheafnn::uncertainty::mean_reciprocal_rank(ranks));
    }
    std::printf("\n");
  }
  if (!s.save.empty()) sheafnn::io::save_checkpoint(s.save, model);
  if (s.ranking.empty()) return;
  if (!s.candidates.empty()) {
    using sheafnn::io::detail::NodeNumbers;
    const NodeNumbers numbers = data.node_names.empty() ? NodeNumbers(data.name, data.node_count())
                                                        : NodeNumbers(data.name, data.node_names);
    const sheafnn::Graph candidates = sheafnn::io::detail::read_edge_list(sheafnn::io::CsvReader(s.candidates), numbers);
    pairs.assign(candidates.edges().begin(), candidates.edges().end());
  }
  sheafnn::io::write_text(s.ranking, ranking_csv(data, pairs, sheafnn::predict_links(model, links.graph, data.features,
                                                                                      pairs, score, predict)));
}

}  // namespace

int main(int argc, char** argv) {
  Settings s;
  s.network.channels = 8;
  s.network.layers = 2;
  s.network.classes = 16;
  CLI::App app("Link prediction with sheaf networks of diagonal maps, stalk dimension 2");
  app.add_option("dataset", s.dataset, "karate, a folder with edges.csv and nodes.csv, or another data set")->required();
  app.add_option("--model", s.model, "nsd, or bsnn: Bayesian")
      ->capture_default_str()
      ->check(CLI::IsMember({"nsd", "bsnn"}));
  app.add_option("--score", s.score, "score of a pair: dot, bilinear, or energy, of the sheaf")
      ->capture_default_str()
      ->check(CLI::IsMember({"dot", "bilinear", "energy"}));
  app.add_option("--embedding", s.network.classes, "outputs of a node that scores are made of")->capture_default_str();
  auto* ranking = app.add_option("--ranking", s.ranking, "write pairs, the most probable link first, to this CSV file");
  app.add_option("--candidates", s.candidates, "CSV file with the pairs to rank, as edges.csv has them; default: the test pairs")
      ->needs(ranking);
  app.add_option("--save", s.save, "write the trained model to this .safetensors file");
  const auto all = [](std::string_view) { return true; };
  programs::add_flags(app, *app.add_option_group("Split"), s.split, all);
  programs::add_flags(app, *app.add_option_group("Network"), s.network, all);
  programs::add_flags(app, *app.add_option_group("Training"), s.train, all);
  CLI11_PARSE(app, argc, argv);
  try {
    s.split.seed = s.train.seed;
    const sheafnn::Dataset data = sheafnn::io::load_dataset(s.dataset, {}, sheafnn::DatasetUse::prediction);
    if (s.model == "bsnn") run<sheafnn::Bsnn<sheafnn::Diagonal<2>>>(s, data);
    if (s.model == "nsd") run<sheafnn::Nsd<sheafnn::Diagonal<2>>>(s, data);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "links: %s\n", error.what());
    return 1;
  }
}
