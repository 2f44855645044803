/// \file
/// train on several ranks of MPI: the same options, table and report, for all networks. Rank 0 prints.
///
///     mpirun -n 4 build/mpi/examples/train_mpi --dataset cora.npz --preset citation --partition metis
///
/// --dataset may also be a folder of .npy arrays (distributed/graph_folder.hpp, program graph_folder), of which every rank
/// reads the rows of its own nodes.
#include <cstdio>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <sheafnn/distributed.hpp>
#include <sheafnn/distributed/checkpoint.hpp>
#include <sheafnn/io/file.hpp>
#include <sheafnn/io/safetensors.hpp>
#include <sheafnn/io/training_state.hpp>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "models/mpi_program.hpp"
#include "models/mpi_task.hpp"
#include "models/program.hpp"
#include "models/train_results.hpp"
#include "models/train_settings.hpp"
#include "models/training_folder.hpp"
#include "mpi_models.hpp"

/// The models that the program contains (SHEAFNN_MPI_MODELS).
namespace programs {
#define SHEAFNN_DECLARE_MODEL(Family, D) extern const MpiModel Family##_##D##_mpi;
SHEAFNN_MPI_MODELS(SHEAFNN_DECLARE_MODEL)
#undef SHEAFNN_DECLARE_MODEL
}  // namespace programs

namespace {

namespace mpi = sheafnn::distributed;
using programs::Run;
using programs::Training;
using programs::TrainSettings;
using sheafnn::Index;

/// \throws std::invalid_argument  a model that this program was built without
const programs::MpiModel& model_of(const TrainSettings& s) {
  sheafnn::require(sheafnn::kind_of(s.model).distributed, "--model", s.model, "is trained in one process only");
#define SHEAFNN_ADDRESS(Family, D) &programs::Family##_##D##_mpi,
  for (const programs::MpiModel* model : {SHEAFNN_MPI_MODELS(SHEAFNN_ADDRESS)}) {
    const bool kind = s.model == model->bayesian || s.model == model->deterministic;
    if (kind && s.maps == model->maps && s.stalk_dimension == model->stalk_dimension) return *model;
  }
#undef SHEAFNN_ADDRESS
#define SHEAFNN_NAME(Family, D) " " #Family "_" #D
  sheafnn::throw_invalid_argument("--model, --maps, --stalk-dim",
                                  sheafnn::detail::concat(s.model, ", ", s.maps, ", ", s.stalk_dimension),
                                  "this program was built with" SHEAFNN_MPI_MODELS(
                                      SHEAFNN_NAME) " (SHEAFNN_MPI_MODELS)");
#undef SHEAFNN_NAME
}

std::vector<Run> runs_of(const TrainSettings& s, const programs::NodeData& data) {
  std::vector<std::size_t> all(data.splits.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  std::vector<std::uint64_t> seeds = {s.train.seed};
  if (!s.seeds.empty()) {
    const std::vector<std::size_t> numbers = programs::parse_numbers("--seeds", s.seeds, 1'000'000, {});
    seeds.assign(numbers.begin(), numbers.end());
  }
  std::vector<Run> runs;
  for (const std::size_t split : programs::parse_numbers("--splits", s.splits, data.splits.size(), all)) {
    for (const std::uint64_t seed : seeds) runs.push_back({split, seed});
  }
  return runs;
}

nlohmann::ordered_json partition_json(const mpi::PartitionReport& report, const std::string& choice) {
  nlohmann::ordered_json parts = nlohmann::ordered_json::array();
  for (const mpi::PartitionReport::Part& part : report.parts) {
    parts.push_back({{"nodes", part.own},
                     {"interior", part.interior},
                     {"halo", part.halo},
                     {"arcs", part.arcs},
                     {"neighbours", part.neighbours}});
  }
  return {{"by", choice},
          {"edges_cut", report.cut},
          {"halo_rows", report.halo()},
          {"messages_per_exchange", report.messages()},
          {"imbalance", report.imbalance()},
          {"parts", parts}};
}

/// The options that train does not have.
struct OwnOptions {
  std::string partition = "metis";
  Index clusters = 0, clusters_per_step = 1;
  double shard_above = mpi::shard_predictions_above / (1 << 20);  ///< MiB
};

int run(const CLI::App& app, TrainSettings& s, const OwnOptions& options,
        const std::vector<std::string>& arguments) {
  mpi::Communicator ranks;
  const std::string& partition_choice = options.partition;
  s.device = "mpi";
  programs::resolve_options(app, s);
  s.data.text.node_types = !s.data.stalks.empty();
  const bool hypergraph = sheafnn::is_on_hypergraphs(s.model);
  const bool folder = sheafnn::io::is_graph_folder(s.dataset);  // every rank reads its own rows of it
  programs::AnyDataset loaded;
  std::optional<mpi::DistributedData> of_graph;
  std::optional<mpi::DistributedHypergraph> of_hypergraph;
  std::optional<sheafnn::Split> own;
  bool by_parts = false;
  std::optional<mpi::PartitionReport> report;
  std::string cut;
  if (folder) {
    sheafnn::require(!hypergraph, "--model", s.model,
                     "it works on hypergraphs; a folder of .npy arrays is a graph");
    sheafnn::require(
        app.get_option("--partition")->count() == 0 || partition_choice == "contiguous", "--partition",
        partition_choice,
        "a folder of .npy arrays has contiguous parts; graph_folder partition sorts its nodes by METIS");
    sheafnn::require(!programs::is_directed(s), programs::is_cooperative(s.model) ? "--directed" : "--layer",
                     "a folder of .npy arrays", "its graph is undirected and has every edge in both directions");
    for (const char* option : {"--make-splits", "--exchange-masks"}) {
      sheafnn::require(app.get_option(option)->count() == 0, option, "a folder of .npy arrays",
                       "its masks define its only split");
    }
    if (s.preset == "auto") s.preset = "large";
    mpi::FolderPiece read = mpi::read_folder(ranks, s.dataset);
    own = std::move(read.own);
    by_parts = read.by_parts;
    sheafnn::Dataset of_folder;
    of_folder.name = sheafnn::io::folder_name(s.dataset);
    of_folder.class_count = std::max<Index>(2, read.piece.class_count);
    of_folder.splits.resize(1);
    loaded = std::move(of_folder);
    of_graph.emplace(ranks, std::move(read.piece));
  } else {
    loaded = programs::load_for(s.model, [&]<class GraphType>() {
      return programs::load_training_data<GraphType>(s.dataset, s.synthetic, s.data);
    });
    const auto take = [&]<class GraphType>(const sheafnn::NodeDataset<GraphType>& whole) {
      mpi::require_agreement(ranks, whole);
      const mpi::Partition partition = programs::partition_of(ranks, partition_choice, whole.graph);
      const auto described = mpi::describe(whole.graph, partition);
      report = described;
      if constexpr (std::is_same_v<GraphType, sheafnn::Hypergraph>) {
        cut = mpi::to_string(described, whole.graph.hyperedge_count());
        of_hypergraph.emplace(ranks, whole, partition);
      } else {
        cut = mpi::to_string(described, whole.node_count(), whole.graph.edge_count());
        of_graph.emplace(ranks, whole, partition);
      }
    };
    std::visit(take, loaded);
  }
  const programs::NodeData data = loaded;
  mpi::DistributedNodes& part = of_graph ? static_cast<mpi::DistributedNodes&>(*of_graph) : *of_hypergraph;
  const std::optional<sheafnn::Preset> preset = programs::apply_preset(app, s, data);
  programs::set_sizes(s, part.features().columns(), data.class_count);
  programs::set_types(s, data);
  const programs::MpiModel& model = model_of(s);
  if (ranks.is_root()) {
    programs::require_apart({{"--report", s.report}, {"--save", s.save}, {"--checkpoint", s.checkpoint}},
                            {{"--dataset", s.dataset}});
    programs::require_writable("--report", s.report);
    programs::require_writable("--save", s.save);
    programs::require_writable("--checkpoint", s.checkpoint);
  }
  const std::vector<Run> runs = runs_of(s, data);
  for (const auto& [option, file] :
       {std::pair("--save", s.save), {"--checkpoint", s.checkpoint}, {"--resume", s.resume}}) {
    sheafnn::require(file.empty() || runs.size() == 1, option, file,
                     "several ranks write it for one split and one seed only");
  }
  std::optional<mpi::Partition> clusters;
  if (app.get_option("--clusters")->count() > 0) {
    sheafnn::require(ranks.size() == 1 && !folder && s.save.empty() && s.checkpoint.empty() && s.resume.empty(),
                     "--clusters", options.clusters,
                     "needs one rank and a data set that is not a folder, and excludes --save and checkpoints");
    sheafnn::require(!hypergraph, "--clusters", options.clusters,
                     "it cuts graphs; " + s.model + " works on hypergraphs");
    sheafnn::require_between("--clusters", options.clusters, 1, data.node_count());
    sheafnn::require_between("--clusters-per-step", options.clusters_per_step, 1, options.clusters);
    clusters = mpi::metis_partition(data.on<sheafnn::Graph>().graph, static_cast<int>(options.clusters));
  }
  const sheafnn::PartNumbers& numbers = part.numbers();
  const std::string of_data =
      folder ? sheafnn::detail::concat(data.name, " ", numbers.total_nodes, " ", numbers.total_edges)
             : data.name + " " + programs::fingerprint(data, programs::is_directed(s));
  programs::MpiTask task{.models = s.networks,
                         .train = s.train,
                         .bayesian = programs::is_bayesian(s.model),
                         .keeps_model = !s.save.empty(),
                         .checkpoint = s.checkpoint,
                         .resume = s.resume,
                         .shard_above = options.shard_above * (1 << 20),
                         .whole = data,
                         .part = part,
                         .own = own,
                         .clusters = clusters,
                         .clusters_per_step = options.clusters_per_step,
                         .decisive = programs::decisive_settings(s, of_data)};

  if (!report) {
    double sums[] = {static_cast<double>(numbers.cut.size()),
                     static_cast<double>(part.node_count() - numbers.own)};
    ranks.sum(std::span<double>(sums));
    cut = sheafnn::detail::concat(ranks.size(), " parts: ", sums[0] / 2, " edges cut, halo ", sums[1], " rows",
                                  by_parts ? ", ranges of parts.npy\n" : "\n");
  }
  if (ranks.is_root()) {
    const Index edges = of_graph ? numbers.total_edges : data.on<sheafnn::Hypergraph>().graph.hyperedge_count();
    std::printf(
        "%s: %td nodes, %td %s, %td features, %td classes\n%s%s, %s maps, stalk dimension %d, %td channels, "
        "%s\n\n",
        data.name.c_str(), numbers.total_nodes, edges, of_graph ? "edges" : "hyperedges", s.pairs().features,
        s.pairs().classes, cut.c_str(), s.model.c_str(), s.maps.c_str(), s.stalk_dimension, programs::channels(s),
        programs::depth(s).c_str());
    std::fflush(stdout);
  }
  programs::TrainResults results(s, preset);
  if (ranks.is_root()) results.print_header();
  std::vector<double> messages, bytes;
  for (const Run& run : runs) {
    const mpi::Traffic before = ranks.traffic();
    Training training;
    task.models = programs::networks_of(s, run.seed);
    training.outcome = model.train(task, run.split, run.seed, training.result);
    const mpi::Traffic sent = ranks.traffic() - before;
    const Index trained = static_cast<Index>(training.result.history.size()) - training.outcome.epochs_before;
    const double epochs =
        static_cast<double>(std::max<Index>(1, trained));  // a training that was at its end has none
    double all[] = {static_cast<double>(sent.messages), static_cast<double>(sent.bytes)};
    ranks.sum(std::span<double>(all));
    messages.push_back(all[0] / epochs);
    bytes.push_back(all[1] / epochs);
    if (!ranks.is_root()) continue;
    results.add(run, training);
    std::fflush(stdout);
    if (!s.save.empty()) sheafnn::io::write_safetensors(s.save, training.outcome.checkpoint);
  }
  if (!ranks.is_root()) return 0;
  results.print_summary();
  const double mean_messages =
      std::accumulate(messages.begin(), messages.end(), 0.0) / static_cast<double>(runs.size());
  const double mean_bytes = std::accumulate(bytes.begin(), bytes.end(), 0.0) / static_cast<double>(runs.size());
  std::printf("%d ranks: %.0f messages and %s of node rows per epoch\n", ranks.size(), mean_messages,
              sheafnn::memory_text(mean_bytes).c_str());
  if (!s.report.empty()) {
    nlohmann::ordered_json json = results.report(data, arguments, 0);
    json["ranks"] = ranks.size();
    if (report) json["partition"] = partition_json(*report, partition_choice);
    json["messages_per_epoch"] = mean_messages;
    json["bytes_per_epoch"] = mean_bytes;
    sheafnn::io::write_text(s.report, programs::report_text(json));
  }
  programs::flush_output();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return mpi::run(argc, argv, [&] {
    TrainSettings settings;
    OwnOptions own;
    CLI::App app("Trains a sheaf neural network on a graph cut into one part for each rank of MPI.", "train_mpi");
    programs::add_training_options(app, settings);
    programs::add_type_options(app, settings.data);
    auto* group = app.add_option_group("Run");
    group->add_option("--partition", own.partition, programs::partition_help)->capture_default_str();
    auto* clusters = group->add_option("--clusters", own.clusters,
                                       "on one rank: cut the graph into this many parts, and train on a few at a "
                                       "time with memory for these (default: off)");
    group->add_option("--clusters-per-step", own.clusters_per_step, "number of parts in a step")
        ->capture_default_str()
        ->needs(clusters);
    group->add_option("--splits", settings.splits, "splits to train on, e.g. 0-9 or 0,3,7 (default: all)");
    group->add_option("--seeds", settings.seeds, "train on every split with each of these seeds (default: --seed)")
        ->excludes(app.get_option("--seed"));
    auto* report = group->add_option("--report", settings.report, "write the results to this JSON file");
    group
        ->add_flag("--history", settings.history,
                   "with --report: write the losses and accuracies of every epoch too")
        ->needs(report);
    group->add_option("--save", settings.save, "write the trained model to this .safetensors file");
    auto* checkpoint =
        group->add_option("--checkpoint", settings.checkpoint,
                          "write the state of the training to this file, every few epochs and at its end");
    group
        ->add_option("--shard-above", own.shard_above,
                     "size of a checkpoint's predictions in MiB, above which every rank writes its own part")
        ->capture_default_str()
        ->needs(checkpoint);
    programs::add_checkpoint_every(app, *group, settings);
    app.get_option("--every")->needs(checkpoint);
    group->add_option("--resume", settings.resume,
                      "resume from the state in this file, with the same options, on any number of ranks; you may "
                      "change --epochs and --patience");
    const std::vector<std::string> arguments = programs::arguments(argc, argv);
    return programs::run_on_rank(app, arguments, [&] { return run(app, settings, own, arguments); });
  });
}
