/// \file
/// Predicts the class of every node of a graph with a trained model, or the numbers that it learned in place of classes.
/// Each prediction has its uncertainty. The graph need not be the one the model was trained on. --sheaf writes what was
/// learned for other programs.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <optional>
#include <sheafnn/bsnn/prediction.hpp>
#include <sheafnn/io/checkpoint.hpp>
#include <sheafnn/io/datasets.hpp>
#include <sheafnn/io/file.hpp>
#include <sheafnn/io/folder_rows.hpp>
#include <sheafnn/io/option_text.hpp>
#include <sheafnn/io/sheaf_use_text.hpp>
#include <sheafnn/uncertainty/metrics.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "models/class_names.hpp"
#include "models/data_options.hpp"
#include "models/device_registry.hpp"
#include "models/prediction_csv.hpp"
#include "models/program.hpp"
#include "models/registry.hpp"
#include "models/sampled.hpp"
#include "models/sheaf_figures.hpp"
#include "models/target_figures.hpp"
#include "models/target_kind.hpp"
#include "models/target_loss.hpp"

namespace {

struct Settings {
  std::string model, output, sheaf, nodes = "all";
  std::vector<sheafnn::Index> fan_outs;  ///< of a folder; none: the fan-outs of the training
  std::string dataset = "karate", device = "cpu";
  sheafnn::SyntheticOptions synthetic;
  programs::DataOptions data;
  sheafnn::PredictOptions options{.samples = 20};
  sheafnn::Index sheaf_layer = 0;
  std::optional<double>
      posterior_coverage;  ///< of intervals of the posterior; none: the conformal intervals of the model
};

/// The dataset, on a graph of the model's type.
programs::AnyDataset load(const Settings& s, const std::string& model, const programs::DataOptions& options) {
  return programs::load_for(model, [&]<class GraphType>() {
    return programs::load<GraphType>(s.dataset, s.synthetic, sheafnn::DatasetUse::prediction, options);
  });
}
/// sheafnn::renumber_types(), of a graph. Hypergraphs have no types.
void renumber_types(programs::AnyDataset& data, const std::vector<std::string>& edge_types,
                    const std::vector<std::string>& node_types) {
  if (auto* const graph = std::get_if<sheafnn::Dataset>(&data))
    sheafnn::renumber_types(*graph, edge_types, node_types);
}
void print_dropped_pairs(const programs::NodeData& data) {
  data.visit([](const auto& whole) { programs::print_dropped_pairs(whole); });
}

/// Predicts numbers, several labels or ordered classes.
void predict_numbers(const Settings& s, const sheafnn::io::TensorFile& checkpoint,
                     const sheafnn::io::CheckpointInfo& info, const programs::ModelEntry& entry,
                     sheafnn::Index outputs) {
  using programs::TargetKind;
  sheafnn::require(s.sheaf.empty(), "--sheaf", s.sheaf,
                   "the file holds classes; this network was trained on targets");
  sheafnn::require(programs::parse_device(s.device) < 0, "--device", s.device,
                   "networks that were trained on targets predict on the CPU only");
  const TargetKind kind(s.model, checkpoint.metadata, outputs);
  sheafnn::require(!s.posterior_coverage || kind.loss() == sheafnn::TargetLoss::gaussian ||
                       kind.loss() == sheafnn::TargetLoss::poisson,
                   "--posterior-coverage", s.posterior_coverage.value_or(0),
                   sheafnn::detail::concat("the loss ", to_string(kind.loss()),
                                           " has no intervals of the posterior; gaussian and poisson have"));
  if (s.posterior_coverage) {
    sheafnn::require(*s.posterior_coverage > 0 && *s.posterior_coverage < 1, "--posterior-coverage",
                     *s.posterior_coverage, "must be above 0 and below 1");
  }
  programs::DataOptions data_options = s.data;
  data_options.text.targets = kind.names();
  programs::AnyDataset loaded = load(s, info.model, data_options);
  const auto [edge_types, node_types] = programs::types_of(info.model, info.networks);
  renumber_types(loaded, edge_types, node_types);
  const programs::NodeData data = loaded;
  sheafnn::io::detail::naming_file(data.name,
                                   [&] { sheafnn::io::check_columns(data, s.model, checkpoint.metadata); });
  const sheafnn::AnyTargetLoss loss = kind.unknown(data.node_count());
  std::vector<double> samples;  // of which the posterior's intervals and the mean are made
  std::vector<double> outputs_of_nodes =
      entry.predict_targets(s.model, checkpoint, programs::is_bayesian(info.model), data,
                            programs::TargetLoss(loss, s.posterior_coverage ? &samples : nullptr), s.options);
  if (s.posterior_coverage) outputs_of_nodes = programs::mean_of_samples(samples, outputs_of_nodes.size());
  const programs::TargetPrediction prediction = kind.read(outputs_of_nodes);
  sheafnn::uncertainty::Intervals intervals;
  if (s.posterior_coverage) {
    intervals = kind.posterior_intervals(samples, data.node_count(), *s.posterior_coverage);
  } else if (kind.has_intervals()) {
    intervals = kind.intervals(prediction);
  }
  if (!s.output.empty()) {
    sheafnn::io::write_text(s.output, programs::target_csv(kind, prediction, intervals, data.node_names));
  }
  print_dropped_pairs(data);
  std::printf("%s: %td nodes, %s with %s maps, stalk dimension %d, %s targets: %s\n", data.name.c_str(),
              data.node_count(), info.model.c_str(), std::string(programs::maps_of(info.model, info.maps)).c_str(),
              info.stalk_dimension, std::string(to_string(kind.loss())).c_str(),
              programs::joined(kind.names()).c_str());
  if (!intervals.lower.empty()) {
    std::printf("intervals: %s, coverage %g\n",
                s.posterior_coverage ? "of the posterior" : "conformal, as in training",
                s.posterior_coverage.value_or(kind.coverage()));
  }
  if (!kind.numeric() || data.target_names != kind.names()) return;
  if (!std::all_of(data.targets.begin(), data.targets.end(), [](double y) { return std::isnan(y); })) {
    std::printf("all nodes with a known target:\n");
  }
  const std::vector<programs::TargetFigures> figures = programs::target_figures(kind, data, prediction, intervals);
  for (std::size_t c = 0; c < figures.size(); ++c) {
    programs::print_target_figures(kind.names()[c], figures[c], s.posterior_coverage.value_or(kind.coverage()));
  }
}

void print_network(const std::string& data, sheafnn::Index nodes, const sheafnn::io::CheckpointInfo& info) {
  std::printf("%s: %td nodes, %s with %s maps%s, stalk dimension %d\n", data.c_str(), nodes, info.model.c_str(),
              std::string(programs::maps_of(info.model, info.maps)).c_str(),
              info.options<sheafnn::CooperativeOptions>().directed ? " along listed arcs" : "",
              info.stalk_dimension);
}
/// \param entropy, information  sums over `nodes` nodes
void print_means(double entropy, double information, sheafnn::Index nodes, sheafnn::Index classes) {
  const double n = static_cast<double>(nodes);
  std::printf("mean entropy %.4f, mean mutual information %.4f (at most log %td = %.4f)\n", entropy / n,
              information / n, classes, std::log(static_cast<double>(classes)));
}
void print_accuracy(double share, const char* nodes) {
  std::printf("%.1f%% of all %snodes have the class of their label\n", 100 * share, nodes);
}

/// The nodes of a folder that --nodes names.
std::vector<std::int32_t> chosen_nodes(const sheafnn::io::FolderRows& rows, const std::string& nodes) {
  const sheafnn::Split& split = rows.split();
  if (nodes != "all")
    return nodes == "train" ? split.train : nodes == "validation" ? split.validation : split.test;
  std::vector<std::int32_t> r(static_cast<std::size_t>(rows.node_count()));
  std::iota(r.begin(), r.end(), 0);
  return r;
}

/// Predicts classes of a graph in a folder of .npy arrays, which may be larger than memory, on drawn neighbours.
void predict_folder(const Settings& s, const sheafnn::io::TensorFile& checkpoint,
                    const sheafnn::io::CheckpointInfo& info, const programs::ModelEntry& entry,
                    sheafnn::Index classes) {
  const std::vector<sheafnn::Index> fan_outs =
      s.fan_outs.empty() ? programs::checkpoint_fan_outs(s.model, checkpoint.metadata) : s.fan_outs;
  sheafnn::validate_fan_outs(fan_outs, "--fan-outs");
  const sheafnn::io::FolderRows rows(s.dataset);
  const std::vector<std::int32_t> nodes = chosen_nodes(rows, s.nodes);
  sheafnn::require(!nodes.empty(), "--nodes", s.nodes, "the folder has no such nodes");
  sheafnn::Dataset labels;
  labels.name = sheafnn::io::folder_name(s.dataset);
  labels.labels.assign(rows.labels().begin(), rows.labels().end());
  labels.class_count = rows.class_count();
  const std::vector<std::string> class_names =
      sheafnn::io::saved_class_names(s.model, checkpoint.metadata, classes);
  programs::take_class_names(labels, class_names, classes);
  const programs::PredictionCsv csv(labels.node_names, class_names);
  std::optional<sheafnn::io::detail::TemporaryFile> file;
  const auto write = [&](std::string_view text) {
    if (file) file->write({reinterpret_cast<const unsigned char*>(text.data()), text.size()});
  };
  if (!s.output.empty()) file.emplace(s.output);
  write(csv.header(classes));
  // A multiple of the nodes of a sample, so that the predictions are the predictions of one call.
  constexpr std::size_t piece = std::size_t{1} << 16;
  double entropy = 0, information = 0;
  sheafnn::Index labelled = 0, right = 0;
  for (std::size_t first = 0; first < nodes.size(); first += piece) {
    const std::span<const std::int32_t> some =
        std::span(nodes).subspan(first, std::min(piece, nodes.size() - first));
    const sheafnn::Prediction p = entry.predict_on_samples(s.model, checkpoint, programs::is_bayesian(info.model),
                                                           rows, some, fan_outs, s.options);
    write(csv.lines(p, [&](std::size_t row) { return some[row]; }));
    entropy = std::accumulate(p.entropy.begin(), p.entropy.end(), entropy);
    information = std::accumulate(p.mutual_information.begin(), p.mutual_information.end(), information);
    for (std::size_t row = 0; row < some.size(); ++row) {
      const std::int32_t label = labels.labels[static_cast<std::size_t>(some[row])];
      labelled += label >= 0 ? 1 : 0;
      right += label >= 0 && p.label[row] == label ? 1 : 0;
    }
  }
  if (file) file->finish();
  print_network(labels.name, rows.node_count(), info);
  std::printf("%zu nodes predicted (%s) on drawn neighbours, fan-outs %s\n", nodes.size(), s.nodes.c_str(),
              sheafnn::io::option_text(fan_outs).c_str());
  print_means(entropy, information, static_cast<sheafnn::Index>(nodes.size()), classes);
  if (labelled == 0) return;
  print_accuracy(static_cast<double>(right) / static_cast<double>(labelled),
                 s.nodes == "all" ? labelled < rows.node_count() ? "labelled " : "" : "predicted and labelled ");
}

/// Refuses options that have no effect on a folder of .npy arrays, or on other data. \param app  after parsing
void refuse_idle_options(const CLI::App& app, bool folder) {
  for (const char* name : {"--fan-outs", "--nodes"}) {
    sheafnn::require(folder || app.get_option(name)->count() == 0, name, CLI::detail::join(app.get_option(name)->results(), ","),
                     "belongs to a --dataset that is a folder of .npy arrays");
  }
  for (const char* name :
       {"--device", "--sheaf", "--sheaf-layer", "--posterior-coverage", "--given-sheaf", "--missing-labels"}) {
    sheafnn::require(!folder || app.get_option(name)->count() == 0, name, CLI::detail::join(app.get_option(name)->results(), ","),
                     "belongs to a graph in memory; the rows of a folder of .npy arrays are read one by one");
  }
}

/// \param app  after parsing
void run(const CLI::App& app, Settings s) {
  programs::require_writable("--output", s.output);
  programs::require_writable("--sheaf", s.sheaf);
  programs::require_apart({{"--output", s.output}, {"--sheaf", s.sheaf}},
                          {{"--model", s.model}, {"--dataset", s.dataset}});
  const int device = programs::parse_device(s.device);
  const sheafnn::io::TensorFile checkpoint = sheafnn::io::read_safetensors(s.model);
  const sheafnn::io::CheckpointInfo info = sheafnn::io::checkpoint_info(s.model, checkpoint);
  const bool hypergraph = sheafnn::is_on_hypergraphs(info.model);
  programs::refuse_idle_dataset_options(app, s.dataset, hypergraph);
  const bool folder = sheafnn::io::is_graph_folder(s.dataset);
  refuse_idle_options(app, folder);
  sheafnn::require(!hypergraph || s.sheaf.empty(), "--sheaf", s.sheaf,
                   "the file holds maps of edges; networks on hypergraphs have none");
  sheafnn::require(s.data.given_sheaf.empty() || sheafnn::has_given_sheaf(info.model), "--given-sheaf",
                   s.data.given_sheaf,
                   sheafnn::detail::concat("belongs to the networks ", programs::given_sheaf_models(),
                                           "; this one is ", info.model));
  const std::optional<sheafnn::SheafUse> use = sheafnn::io::saved_sheaf_use(s.model, info.metadata);
  const auto [layers, classes] = programs::with_options_of(info.model, info.networks, [](const auto& options) {
    return std::pair(options.layers, options.classes);
  });
  sheafnn::require(s.sheaf_layer >= 0 && s.sheaf_layer < layers, "--sheaf-layer", s.sheaf_layer,
                   sheafnn::detail::concat("must be between 0 and ", layers - 1));
  const std::string maps(programs::maps_of(info.model, info.maps));
  const programs::ModelEntry& entry = *sheafnn::io::detail::naming_file(s.model, [&] {
    return &programs::find_model(info.model, maps, info.stalk_dimension);
  });
  const auto [edge_types, node_types] = programs::types_of(info.model, info.networks);
  s.data.text.edge_types =
      !edge_types.empty() || (!s.data.given_sheaf.empty() && sheafnn::io::reads_edge_types(s.data.given_sheaf));
  s.data.text.node_types = !node_types.empty();
  if (const auto targets = checkpoint.metadata.find("targets"); targets != checkpoint.metadata.end()) {
    sheafnn::require(targets->second != "links" && !targets->second.starts_with("edge_"), "--model", s.model,
                     "the network predicts links; the program links reads it (--load)");
    sheafnn::require(!folder, "--model", s.model, "of a folder of .npy arrays, only classes are predicted");
    return predict_numbers(s, checkpoint, info, entry, classes);
  }
  if (folder) return predict_folder(s, checkpoint, info, entry, classes);
  sheafnn::require(!s.posterior_coverage, "--posterior-coverage", s.posterior_coverage.value_or(0),
                   "the network was trained on classes, which have no intervals");
  programs::AnyDataset loaded = load(s, info.model, s.data);
  const std::vector<std::string> class_names =
      sheafnn::io::saved_class_names(s.model, checkpoint.metadata, classes);
  const sheafnn::Index known_classes = classes;
  std::visit([&](auto& whole) { programs::take_class_names(whole, class_names, known_classes); }, loaded);
  renumber_types(loaded, edge_types, node_types);
  const programs::NodeData data = loaded;
  sheafnn::io::detail::naming_file(data.name,
                                   [&] { sheafnn::io::check_columns(data, s.model, checkpoint.metadata); });
  const bool bayesian = programs::is_bayesian(info.model);
  sheafnn::require(device < 0 || sheafnn::kind_of(info.model).batched, "--device", s.device,
                   sheafnn::detail::concat(info.model, " predicts on the CPU only"));
  const sheafnn::Prediction p = device >= 0 ? programs::find_device_model(info.model, maps, info.stalk_dimension)
                                                  .predict(s.model, checkpoint, bayesian, data, s.options, device)
                                            : entry.predict(s.model, checkpoint, bayesian, data, s.options);
  std::visit(
      [&](auto& whole) {
        if (whole.class_names.empty()) whole.class_names = class_names;  // for --sheaf
      },
      loaded);
  programs::Attempts attempts;
  if (!s.output.empty()) {
    attempts.make(
        [&] { sheafnn::io::write_text(s.output, programs::prediction_csv(p, data.node_names, class_names)); });
  }
  // On the CPU whatever the device: rounding apart, it is the same.
  if (!s.sheaf.empty()) {
    attempts.make(
        [&] { entry.learned(s.model, checkpoint, bayesian, data, s.options, s.sheaf_layer).write(s.sheaf); });
  }
  attempts.rethrow();
  print_dropped_pairs(data);
  print_network(data.name, data.node_count(), info);
  if (use) programs::print_sheaf_use({*use}, " in training");
  print_means(std::accumulate(p.entropy.begin(), p.entropy.end(), 0.0),
              std::accumulate(p.mutual_information.begin(), p.mutual_information.end(), 0.0), data.node_count(),
              p.class_count);
  if (data.labels.empty()) return;
  if (data.class_count > p.class_count) {
    std::printf("no accuracy: the labels are of %td classes, the model knows %td\n", data.class_count,
                p.class_count);
    return;
  }
  std::vector<std::int32_t> all(static_cast<std::size_t>(data.node_count()));
  std::iota(all.begin(), all.end(), 0);
  const std::vector<std::int32_t> labelled = sheafnn::labelled_nodes(data.labels, all);
  if (labelled.empty()) return;
  print_accuracy(sheafnn::uncertainty::accuracy(p.probabilities, p.class_count, data.labels, labelled),
                 labelled.size() < all.size() ? "labelled " : "");
}

}  // namespace

int main(int argc, char** argv) {
  Settings s;
  CLI::App app("Predicts node classes, or numbers on nodes, and their uncertainty with a trained model.",
               "predict");
  app.add_option("--model", s.model, ".safetensors file written by train --save")->required();
  programs::add_dataset_options(app, s.dataset, s.synthetic, s.data);
  app.add_option("--samples", s.options.samples, "number of posterior samples to average, 1 to 32768")
      ->capture_default_str();
  app.add_option("--seed", s.options.seed, "seed of the posterior samples")->capture_default_str();
  app.add_option("--threads", s.options.threads, "number of threads; 0: as many as the graph is worth")
      ->capture_default_str();
  app.add_option("--device", s.device, "device to predict on: cpu, cuda or cuda:NUMBER")->capture_default_str();
  app.add_option("--output", s.output, "write the predictions to this CSV file, one line per node");
  app.add_option("--nodes", s.nodes,
                 "with a folder of .npy arrays: which nodes to predict: all, train, validation or test")
      ->capture_default_str()
      ->check(CLI::IsMember({"all", "train", "validation", "test"}));
  app.add_option("--fan-outs", s.fan_outs, programs::fan_outs_text + "; default: as in training")->delimiter(',');
  app.add_option(
      "--posterior-coverage", s.posterior_coverage,
      "share of the numbers, between 0 and 1, in intervals of the posterior, which replace conformal intervals; "
      "needs a network of --loss gaussian or poisson");
  auto* sheaf = app.add_option("--sheaf", s.sheaf,
                               "write the learned sheaf or node maps, features and predictions to this .npz file; "
                               "a Bayesian model gives the mean of its posterior");
  app.add_option("--sheaf-layer", s.sheaf_layer,
                 "with deterministic models and bcsnn: layer whose sheaf is written")
      ->capture_default_str()
      ->needs(sheaf);
  return programs::run_program(app, argc, argv, [&] { run(app, s); });
}
