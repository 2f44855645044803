/// \file
/// Predicts links. Hides edges of a graph, and trains a sheaf network to separate them from pairs of nodes without an edge.
/// Prints the ranking metrics of the hidden test edges, and writes a ranking of pairs. Or ranks pairs with a trained
/// network.
///
///     links --dataset people --save links.safetensors
///     links --dataset people --load links.safetensors --candidates pairs.csv --ranking ranking.csv
#include <cstdio>
#include <limits>
#include <sheafnn/bsnn/edge_prediction.hpp>
#include <sheafnn/io/checkpoint.hpp>
#include <sheafnn/io/csv_edges.hpp>
#include <sheafnn/io/file.hpp>
#include <sheafnn/io/safetensors.hpp>
#include <sheafnn/uncertainty/link_ranks.hpp>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "links/models.hpp"
#include "models/class_names.hpp"
#include "models/data_options.hpp"
#include "models/interruption.hpp"
#include "models/option_flags.hpp"
#include "models/outcome.hpp"
#include "models/program.hpp"

namespace {

using sheafnn::Edge;
using sheafnn::Index;

struct Settings : links_program::Defaults {
  std::string dataset = "karate", candidates, ranking, save, load, model = "bsnn";
  Index hits = 10;
  sheafnn::SyntheticOptions synthetic;
  programs::DataOptions data;
};

/// The pairs of a file with two nodes per line. Says how many lines are no further pair.
///
/// \throws std::runtime_error  naming the file and the line
std::vector<Edge> read_pairs(const std::string& file, const sheafnn::Dataset& data) {
  using sheafnn::io::detail::NodeNumbers;
  const NodeNumbers numbers = data.node_names.empty() ? NodeNumbers(data.name, data.node_count())
                                                      : NodeNumbers(data.name, data.node_names);
  sheafnn::io::detail::EdgeListReader reader(sheafnn::io::CsvReader(file), numbers);
  const sheafnn::Graph pairs(numbers.count(), reader.read("has no pair of two different nodes").edges);
  programs::print_dropped_pairs(pairs, file + ": ", "a pair");
  return {pairs.edges().begin(), pairs.edges().end()};
}

/// Pairs in the order of their probability, with the names of the nodes.
std::string ranking_csv(const sheafnn::Dataset& data, const std::vector<Edge>& pairs,
                        const sheafnn::LinkPrediction& p) {
  std::ostringstream out;
  const auto name = [&](std::int32_t u) {
    return data.node_names.empty() ? std::to_string(u)
                                   : sheafnn::io::csv_field(data.node_names[static_cast<std::size_t>(u)]);
  };
  out.precision(std::numeric_limits<float>::max_digits10);
  out << "source,target,probability,entropy,mutual_information\n";
  for (const std::int32_t t : p.ranking) {
    const std::size_t i = static_cast<std::size_t>(t);
    out << name(pairs[i].u) << ',' << name(pairs[i].v) << ',' << p.link[i] << ',' << p.entropy[i] << ','
        << p.mutual_information[i] << '\n';
  }
  return out.str();
}

/// Hits@k and MRR of the test edges among the test pairs without an edge.
void print_ranks(const sheafnn::EdgeTargets& links, const sheafnn::LinkPrediction& p, Index k) {
  std::vector<double> edges, negatives;
  for (std::size_t i = 0; i < links.split.test.size(); ++i) {
    const bool edge = links.labels[static_cast<std::size_t>(links.split.test[i])] == 1;
    (edge ? edges : negatives).push_back(p.link[i]);
  }
  if (edges.empty() || negatives.empty()) return;
  const std::vector<double> ranks = sheafnn::uncertainty::link_ranks(edges, negatives);
  std::printf("%zu test edges among %zu pairs without one: Hits@%td %.3f, MRR %.3f\n", edges.size(),
              negatives.size(), k, sheafnn::uncertainty::hits_at(ranks, k),
              sheafnn::uncertainty::mean_reciprocal_rank(ranks));
}

void run(Settings s, const sheafnn::Dataset& data) {
  std::vector<Edge> candidates;
  if (!s.candidates.empty()) candidates = read_pairs(s.candidates, data);
  s.split.seed = s.train.seed;
  const sheafnn::EdgeTargets links = sheafnn::split_links(data.graph, s.split);
  std::printf(
      "%s: %td nodes, %td edges, of which the network sees %td; targets with negatives: %zu of training, %zu of "
      "validation, %zu of test\n",
      data.name.c_str(), data.node_count(), data.graph.edge_count(), links.graph.edge_count(),
      links.split.train.size(), links.split.validation.size(), links.split.test.size());
  s.network.features = data.feature_count();
  const programs::Interruption interruption;
  s.train.on_epoch = [](const sheafnn::EpochReport&) { return programs::wanted_action(); };
  const bool bayesian = s.model == "bsnn";
  const links_program::Outcome outcome =
      links_program::train({data, links, s.score, s.network, s.train, bayesian});
  const sheafnn::TrainResult& r = outcome.result;
  std::printf("best epoch %td, validation loss %.3f\n", r.best_epoch, r.validation_loss);
  if (!s.save.empty()) sheafnn::io::write_safetensors(s.save, outcome.checkpoint);
  const auto ranked = [&](const std::vector<Edge>& pairs) {
    return links_program::predict({"the network", outcome.checkpoint, bayesian}, links.graph, data.features, pairs,
                                  programs::best_epoch_options(s.train, r.best_epoch));
  };
  std::vector<Edge> test;
  for (const std::int32_t t : links.split.test) test.push_back(links.pairs[static_cast<std::size_t>(t)]);
  if (!test.empty()) {
    std::printf("test loss %.3f, ROC AUC %.3f, average precision %.3f\n", r.test_nll, r.test_roc_auc,
                r.test_average_precision);
    print_ranks(links, ranked(test), s.hits);
  }
  if (s.ranking.empty()) return;
  const std::vector<Edge>& pairs = candidates.empty() ? test : candidates;
  sheafnn::require(!pairs.empty(), "--ranking", s.ranking,
                   "there are no test pairs; --candidates names other pairs");
  sheafnn::io::write_text(s.ranking, ranking_csv(data, pairs, ranked(pairs)));
}

/// Ranks the candidates with the network of a file, which sees all edges of the data.
void rank(const Settings& s, const sheafnn::Dataset& data) {
  const std::vector<Edge> pairs = read_pairs(s.candidates, data);
  const sheafnn::io::TensorFile file = sheafnn::io::read_safetensors(s.load);
  const sheafnn::io::CheckpointInfo info = sheafnn::io::checkpoint_info(s.load, file);
  const auto targets = file.metadata.find("targets");
  sheafnn::require(targets != file.metadata.end() && targets->second == "links", "--load", s.load,
                   "it holds no network that predicts links");
  programs::check_columns(data, s.load, file.metadata);
  const sheafnn::LinkPrediction p =
      links_program::predict({s.load, file, sheafnn::is_bayesian(info.model)}, data.graph, data.features, pairs,
                             {.samples = s.train.samples, .seed = s.train.seed, .threads = s.train.threads});
  sheafnn::io::write_text(s.ranking, ranking_csv(data, pairs, p));
  std::printf("%s: %td nodes, %td edges, which the network sees; %zu pairs ranked\n", data.name.c_str(),
              data.node_count(), data.graph.edge_count(), pairs.size());
}

}  // namespace

int main(int argc, char** argv) {
  Settings s;
  std::string score(to_string(s.score));
  CLI::App app("Predicts links with a sheaf network of diagonal maps, stalk dimension 2; see docs/edges.md.",
               "links");
  programs::add_dataset_options(app, s.dataset, s.synthetic, s.data);
  auto* files = app.add_option_group("Files");
  auto* ranking =
      files->add_option("--ranking", s.ranking, "write the pairs to this CSV file, the most probable link first");
  auto* save = files->add_option("--save", s.save,
                                 "write the trained network to this .safetensors file, which Python reads");
  auto* candidates =
      files
          ->add_option("--candidates", s.candidates,
                       "CSV file with the pairs to rank, as edges.csv has them (default: the test pairs)")
          ->needs(ranking);
  files
      ->add_option("--load", s.load,
                   "rank --candidates with the network of this .safetensors file, which sees all edges")
      ->needs(candidates)
      ->excludes(save);
  auto* model = app.add_option_group("Model", "the network and its score of a pair of nodes");
  model->add_option("--model", s.model, "nsd, or bsnn (Bayesian)")
      ->capture_default_str()
      ->check(CLI::IsMember({"nsd", "bsnn"}));
  model->add_option("--score", score, "score of a pair: dot, bilinear, or the sheaf's energy")
      ->capture_default_str();
  model->add_option("--outputs", s.network.classes, "number of outputs per node, from which scores are computed")
      ->capture_default_str();
  const auto all = [](std::string_view) { return true; };
  programs::add_flags(app, *model, s.network, all);
  auto* split = app.add_option_group("Split", "the edges that the network sees and the target edges");
  programs::add_flags(app, *split, s.split, all);
  split->add_option("--hits", s.hits, "k in the metric Hits@k")->capture_default_str();
  auto* training = app.add_option_group("Training");
  programs::add_flags(app, *training, s.train, [](std::string_view key) { return key != "checkpoint_every"; });
  return programs::run_program(app, argc, argv, [&] {
    programs::refuse_idle_dataset_options(app, s.dataset);
    if (!s.load.empty()) programs::refuse_beside_load({model, split, training});
    sheafnn::require(s.data.given_sheaf.empty(), "--given-sheaf", s.data.given_sheaf,
                     "the network learns its maps");
    s.score = sheafnn::parse_name<sheafnn::PairScore>("--score", score);
    sheafnn::require(s.hits >= 1, "--hits", s.hits, "must be at least 1");
    sheafnn::require(s.split.negatives > 0, "--negatives", s.split.negatives,
                     "must be above 0: links are compared with pairs without an edge");
    programs::require_writable("--ranking", s.ranking);
    programs::require_writable("--save", s.save);
    programs::require_apart({{"--ranking", s.ranking}, {"--save", s.save}},
                            {{"--dataset", s.dataset}, {"--candidates", s.candidates}, {"--load", s.load}});
    const sheafnn::Dataset data = programs::load(s.dataset, s.synthetic, sheafnn::DatasetUse::prediction, s.data);
    programs::print_dropped_pairs(data);
    s.load.empty() ? run(s, data) : rank(s, data);
    return programs::exit_status("links");
  });
}
