/// \file
/// Predicts links. Hides edges of a graph, and trains a sheaf network to separate them from pairs of nodes without an edge.
/// Prints the ranking metrics of the hidden test edges, and writes a ranking of pairs. Or ranks pairs with a trained
/// network. In place of links it learns labels or numbers of edges.
///
///     links --dataset people --save links.safetensors
///     links --dataset people --load links.safetensors --candidates pairs.csv --ranking ranking.csv
///     links --dataset people --load links.safetensors --ranking test_pairs.csv
///     links --dataset people --edge-labels sign --predictions signs.csv
#include <cmath>
#include <cstdio>
#include <limits>
#include <optional>
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
#include "links/pair_task.hpp"
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

/// The pairs of a file with two nodes per line. Says how many lines repeat a pair.
///
/// \throws std::runtime_error  naming the file and the line
std::vector<Edge> read_pairs(const std::string& file, const sheafnn::Dataset& data) {
  using sheafnn::io::detail::NodeNumbers;
  const NodeNumbers numbers = data.node_names.empty() ? NodeNumbers(data.name, data.node_count())
                                                      : NodeNumbers(data.name, data.node_names);
  sheafnn::io::detail::EdgeListReader reader(sheafnn::io::CsvReader(file), numbers);
  const sheafnn::Graph pairs(numbers.count(), reader.read_pairs());
  programs::print_dropped_pairs(pairs, file + ": ", "a pair");
  return {pairs.edges().begin(), pairs.edges().end()};
}

/// Lines of pairs with the names of the nodes.
class PairLines {
 public:
  /// \param header  of the columns after the two nodes
  PairLines(const sheafnn::Dataset& data, const std::string& header) : data_(data) {
    out_.precision(std::numeric_limits<float>::max_digits10);
    out_ << "source,target," << header;
  }
  /// A new line.
  std::ostream& begin(const Edge& pair) { return out_ << '\n' << name(pair.u) << ',' << name(pair.v); }
  std::ostream& field(const std::string& text) { return out_ << ',' << sheafnn::io::csv_field(text); }
  std::ostream& field(double value) { return out_ << ',' << value; }
  [[nodiscard]] std::string text() const { return out_.str() + '\n'; }

 private:
  [[nodiscard]] std::string name(std::int32_t u) const {
    return data_.node_names.empty() ? std::to_string(u)
                                    : sheafnn::io::csv_field(data_.node_names[static_cast<std::size_t>(u)]);
  }

  const sheafnn::Dataset& data_;
  std::ostringstream out_;
};

/// Pairs in the order of their probability.
std::string ranking_csv(const sheafnn::Dataset& data, const std::vector<Edge>& pairs,
                        const sheafnn::LinkPrediction& p) {
  PairLines lines(data, "probability,entropy,mutual_information");
  for (const std::int32_t t : p.ranking) {
    const std::size_t i = static_cast<std::size_t>(t);
    lines.begin(pairs[i]);
    for (const double value : {p.link[i], p.entropy[i], p.mutual_information[i]}) lines.field(value);
  }
  return lines.text();
}
/// Pairs with their most probable class, and the probabilities of all.
std::string class_csv(const sheafnn::Dataset& data, const std::vector<Edge>& pairs,
                      const sheafnn::EdgePrediction& p, const std::vector<std::string>& class_names) {
  std::string header = "class";
  for (const std::string& name : class_names) header += ',' + sheafnn::io::csv_field("p_" + name);
  PairLines lines(data, header + ",entropy,mutual_information");
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    lines.begin(pairs[i]);
    lines.field(class_names[static_cast<std::size_t>(p.label[i])]);
    for (std::size_t c = 0; c < class_names.size(); ++c) lines.field(p.probabilities[i * class_names.size() + c]);
    lines.field(p.entropy[i]);
    lines.field(p.mutual_information[i]);
  }
  return lines.text();
}
/// Pairs with their numbers, and the deviations over the posterior samples.
std::string number_csv(const sheafnn::Dataset& data, const std::vector<Edge>& pairs, const std::string& column,
                       const programs::TargetPrediction& p) {
  PairLines lines(data, sheafnn::io::csv_field(column) + ',' + sheafnn::io::csv_field(column + "_sample_std"));
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    lines.begin(pairs[i]);
    lines.field(p.expectations[i]);
    lines.field(p.deviations[i]);
  }
  return lines.text();
}

/// What a network says of pairs.
class Predictor {
 public:
  Predictor(const links_program::Trained& network, const links_program::PairTask& task,
            const sheafnn::Graph& graph, const sheafnn::Dataset& data, const sheafnn::PredictOptions& options)
      : network_(network), task_(task), graph_(graph), data_(data), options_(options) {}

  [[nodiscard]] sheafnn::LinkPrediction links(const std::vector<Edge>& pairs) const {
    return links_program::predict(network_, graph_, data_.features, pairs, options_);
  }
  [[nodiscard]] programs::TargetPrediction numbers(const std::vector<Edge>& pairs) const {
    return task_.unscaled(links_program::predict_values(network_, graph_, data_.features, pairs, options_));
  }
  /// The file of --ranking.
  [[nodiscard]] std::string csv(const std::vector<Edge>& pairs) const {
    if (task_.links()) return ranking_csv(data_, pairs, links(pairs));
    if (task_.numbers()) {
      return number_csv(data_, pairs, task_.column, numbers(pairs));
    }
    return class_csv(data_, pairs,
                     links_program::predict_classes(network_, graph_, data_.features, pairs, task_.class_count(),
                                                    options_),
                     task_.class_names);
  }

 private:
  const links_program::Trained& network_;
  const links_program::PairTask& task_;
  const sheafnn::Graph& graph_;
  const sheafnn::Dataset& data_;
  sheafnn::PredictOptions options_;
};

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

/// Test figures of a task.
void print_test(const links_program::PairTask& task, const links_program::PairTargets& targets,
                const sheafnn::TrainResult& r, const Predictor& predictor, const std::vector<Edge>& test,
                Index hits) {
  if (task.links()) {
    std::printf("test loss %.3f, ROC AUC %.3f, average precision %.3f\n", r.test_nll, r.test_roc_auc,
                r.test_average_precision);
    print_ranks(targets.edges, predictor.links(test), hits);
  } else if (task.numbers()) {
    std::printf("test R² %.3f\n", r.test_accuracy);
    programs::print_target_figures("test edges",
                                   links_program::test_errors(task, targets, predictor.numbers(test).expectations),
                                   0);
  } else {
    std::printf("test loss %.3f, accuracy %.1f%% (largest class %.1f%%), ROC AUC %.3f, average precision %.3f\n",
                r.test_nll, 100 * r.test_accuracy,
                100 * links_program::largest_test_share(targets.edges, task.class_count()), r.test_roc_auc,
                r.test_average_precision);
  }
}

std::vector<Edge> test_pairs(const sheafnn::EdgeTargets& targets) {
  std::vector<Edge> r;
  for (const std::int32_t t : targets.split.test) r.push_back(targets.pairs[static_cast<std::size_t>(t)]);
  return r;
}

/// The edges whose label or number is not known.
std::vector<Edge> unknown_edges(const sheafnn::Dataset& data) {
  std::vector<Edge> r;
  for (Index e = 0; e < data.graph.edge_count(); ++e) {
    const std::size_t i = static_cast<std::size_t>(e);
    const bool known = data.edge_labels.empty() ? data.edge_targets.empty() || !std::isnan(data.edge_targets[i])
                                                : data.edge_labels[i] >= 0;
    if (!known) r.push_back(data.graph.edge(e));
  }
  return r;
}

/// The pairs of --ranking: the candidates, or else the edges without a label or number, or else the test pairs.
///
/// \throws std::invalid_argument  there are none, naming the option `name` with its value
std::vector<Edge> pairs_to_predict(const Settings& s, const sheafnn::Dataset& data,
                                   const sheafnn::EdgeTargets& split, std::string_view name,
                                   const std::string& value) {
  if (!s.candidates.empty()) return read_pairs(s.candidates, data);
  std::vector<Edge> r = unknown_edges(data);
  if (r.empty()) r = test_pairs(split);
  sheafnn::require(!r.empty(), name, value, "there are no test pairs; --candidates names the pairs to predict");
  return r;
}

void run(Settings s, const sheafnn::Dataset& data) {
  s.split.seed = s.train.seed;
  const bool numeric = !s.data.text.edge_target.empty();
  links_program::PairTask task{numeric ? s.data.text.edge_target : s.data.text.edge_labels,
                               data.edge_class_names,
                               {}};
  const links_program::PairTargets targets =
      links_program::split_pairs(data, task, numeric ? "--edge-target" : "--edge-labels", numeric, s.split);
  const sheafnn::EdgeTargets& links = targets.edges;
  std::vector<Edge> pairs;
  if (!s.ranking.empty()) pairs = pairs_to_predict(s, data, links, "--ranking", s.ranking);
  std::printf(
      "%s: %td nodes, %td edges, of which the network sees %td; targets%s: %zu of training, %zu of "
      "validation, %zu of test\n",
      data.name.c_str(), data.node_count(), data.graph.edge_count(), links.graph.edge_count(),
      task.links() ? " with negatives" : "", links.split.train.size(), links.split.validation.size(),
      links.split.test.size());
  s.network.features = data.feature_count();
  const programs::Interruption interruption;
  s.train.on_epoch = [](const sheafnn::EpochReport&) { return programs::wanted_action(); };
  const bool bayesian = s.model == "bsnn";
  const links_program::Outcome outcome = links_program::train(
      {data, links, s.score.value_or(task.default_score), s.network, s.train, bayesian, task.class_count(),
       targets.scaled, links_program::checkpoint_notes(task, data, s.split)});
  const sheafnn::TrainResult& r = outcome.result;
  std::printf("best epoch %td, validation loss %.3f\n", r.best_epoch, r.validation_loss);
  if (!s.save.empty()) sheafnn::io::write_safetensors(s.save, outcome.checkpoint);
  const links_program::Trained network{"the network", outcome.checkpoint, bayesian};
  const Predictor predictor(network, task, links.graph, data, programs::best_epoch_options(s.train, r.best_epoch));
  const std::vector<Edge> test = test_pairs(links);
  if (!test.empty()) print_test(task, targets, r, predictor, test, s.hits);
  if (!s.ranking.empty()) sheafnn::io::write_text(s.ranking, predictor.csv(pairs));
}

/// A network that predicts pairs of nodes, from a file.
struct Loaded {
  sheafnn::io::TensorFile file;
  bool bayesian = false;
  links_program::PairTask task;
};

/// \throws std::runtime_error, std::invalid_argument  no such network
Loaded read_network(const std::string& path) {
  Loaded r{sheafnn::io::read_safetensors(path), false, {}};
  r.bayesian = sheafnn::is_bayesian(sheafnn::io::checkpoint_info(path, r.file).model);
  std::optional<links_program::PairTask> task = links_program::PairTask::of(path, r.file.metadata);
  sheafnn::require(task.has_value(), "--load", path, "it holds no network that predicts links");
  r.task = *std::move(task);
  return r;
}

/// Predicts pairs with the network of a file. For candidates it sees all edges of the data. Otherwise the pairs are what its
/// training predicted, and it sees the edges of its training. Samples of a posterior are other samples than the training's.
void rank(const Settings& s, const sheafnn::Dataset& data, const Loaded& loaded) {
  sheafnn::io::check_columns(data, s.load, loaded.file.metadata);
  const bool own = s.candidates.empty();
  sheafnn::EdgeTargets split;
  if (own) {
    links_program::PairTask task = loaded.task;
    split =
        links_program::split_pairs(data, task, "--load", task.numbers(),
                                   links_program::checkpoint_split("--load", s.load, loaded.file.metadata, data))
            .edges;
  }
  const std::vector<Edge> pairs = pairs_to_predict(s, data, split, "--load", s.load);
  const sheafnn::Graph& seen = own ? split.graph : data.graph;
  const links_program::Trained network{s.load, loaded.file, loaded.bayesian};
  const Predictor predictor(network, loaded.task, seen, data,
                            {.samples = s.train.samples, .seed = s.train.seed, .threads = s.train.threads});
  sheafnn::io::write_text(s.ranking, predictor.csv(pairs));
  const char* const what = loaded.task.links() ? "ranked" : "predicted";
  if (own) {
    std::printf("%s: %td nodes, %td edges, of which the network sees %td; %zu pairs of its training %s\n",
                data.name.c_str(), data.node_count(), data.graph.edge_count(), seen.edge_count(), pairs.size(),
                what);
  } else {
    std::printf("%s: %td nodes, %td edges, which the network sees; %zu pairs %s\n", data.name.c_str(),
                data.node_count(), data.graph.edge_count(), pairs.size(), what);
  }
}

}  // namespace

int main(int argc, char** argv) {
  Settings s;
  std::string score;
  CLI::App app("Predicts links with a sheaf network of diagonal maps, stalk dimension 2; see docs/edges.md.",
               "links");
  programs::add_dataset_options(app, s.dataset, s.synthetic, s.data);
  auto* columns = app.add_option_group(
      "Edges", "what to learn in place of links, from a column of the edge list or a key of the .npz file");
  auto* labels = columns->add_option("--edge-labels", s.data.text.edge_labels,
                                     "labels, such as signs; an empty label or NaN is unknown");
  auto* target =
      columns->add_option("--edge-target", s.data.text.edge_target, "numbers; an empty number or NaN is unknown")
          ->excludes(labels);
  auto* files = app.add_option_group("Files");
  auto* ranking = files->add_option(
      "--ranking,--predictions", s.ranking,
      "write the pairs to this CSV file: the most probable link first, or labels or numbers of edges");
  auto* save = files->add_option("--save", s.save,
                                 "write the trained network to this .safetensors file, which Python reads");
  files
      ->add_option(
          "--candidates", s.candidates,
          "CSV file with pairs to rank or predict, as edges.csv has them (default: edges with unknown labels or "
          "numbers, or else the test pairs)")
      ->needs(ranking);
  files
      ->add_option(
          "--load", s.load,
          "rank or predict with the network of this .safetensors file. It sees all edges for --candidates, and "
          "the edges of its training otherwise")
      ->needs(ranking)
      ->excludes(save)
      ->excludes(labels)
      ->excludes(target);
  auto* model = app.add_option_group("Model", "the network and its score of a pair of nodes");
  model->add_option("--model", s.model, "nsd, or bsnn (Bayesian)")
      ->capture_default_str()
      ->check(CLI::IsMember({"nsd", "bsnn"}));
  model->add_option("--score", score, "score of a pair: dot, bilinear, or the sheaf's energy (default: bilinear)");
  model->add_option("--outputs", s.network.classes, "number of outputs per node, from which scores are computed")
      ->capture_default_str();
  const auto all = [](std::string_view) { return true; };
  programs::add_flags(app, *model, s.network, all);
  auto* split = app.add_option_group("Split", "the edges that the network sees and the target edges");
  programs::add_flags(app, *split, s.split, all);
  auto* hits = split->add_option("--hits", s.hits, "k in the metric Hits@k")->capture_default_str();
  auto* training = app.add_option_group("Training");
  programs::add_flags(app, *training, s.train, [](std::string_view key) { return key != "checkpoint_every"; });
  return programs::run_program(app, argc, argv, [&] {
    programs::refuse_idle_dataset_options(app, s.dataset);
    if (!s.load.empty()) programs::refuse_beside_load({model, split, training});
    sheafnn::require(s.data.given_sheaf.empty(), "--given-sheaf", s.data.given_sheaf,
                     "the network learns its maps");
    if (!score.empty()) s.score = sheafnn::parse_name<sheafnn::PairScore>("--score", score);
    if (labels->count() + target->count() > 0) {
      for (const CLI::Option* option :
           {split->get_option("--negatives"), split->get_option("--negative-sampling"), hits}) {
        sheafnn::require(option->count() == 0, option->get_name(), option->as<std::string>(),
                         "belongs to links, without --edge-labels and --edge-target");
      }
    }
    sheafnn::require(s.hits >= 1, "--hits", s.hits, "must be at least 1");
    sheafnn::require(s.split.negatives > 0, "--negatives", s.split.negatives,
                     "must be above 0: links are compared with pairs without an edge");
    programs::require_writable("--ranking", s.ranking);
    programs::require_writable("--save", s.save);
    programs::require_apart({{"--ranking", s.ranking}, {"--save", s.save}},
                            {{"--dataset", s.dataset}, {"--candidates", s.candidates}, {"--load", s.load}});
    std::optional<Loaded> loaded;
    if (!s.load.empty()) {
      loaded = read_network(s.load);
      (loaded->task.numbers() ? s.data.text.edge_target : s.data.text.edge_labels) = loaded->task.column;
    }
    const sheafnn::Dataset data = programs::load(s.dataset, s.synthetic, sheafnn::DatasetUse::prediction, s.data);
    programs::print_dropped_pairs(data);
    loaded ? rank(s, data, *loaded) : run(s, data);
    return programs::exit_status("links");
  });
}
