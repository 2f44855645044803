/// \file
/// train on several ranks of MPI: the same options, table and report for the networks bsnn and nsd. Rank 0 prints.
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
#include <sheafnn/io/file.hpp>
#include <sheafnn/io/safetensors.hpp>
#include <sheafnn/io/training_state.hpp>
#include <sheafnn/posterior/default_posterior.hpp>
#include <sheafnn/sheaf/families.hpp>
#include <string>
#include <vector>

#include "models/outcome.hpp"
#include "models/program.hpp"
#include "models/shared.hpp"
#include "models/train_results.hpp"
#include "models/train_settings.hpp"
#include "models/training_folder.hpp"
#include "mpi_models.hpp"

namespace {

namespace mpi = sheafnn::distributed;
using programs::Run;
using programs::Training;
using programs::TrainSettings;
using sheafnn::Index;

/// What is trained, on one rank.
struct Task {
  const TrainSettings& settings;
  const sheafnn::Dataset& whole;  ///< of a folder: without nodes, with one empty split
  mpi::DistributedData& part;
  std::optional<sheafnn::Split> own;       ///< of a folder: the owned nodes of its masks
  std::optional<mpi::Partition> clusters;  ///< of --clusters
  Index clusters_per_step;
  std::map<std::string, std::string>
      decisive;  ///< what a training must have in common with the one that it goes on with

  /// The state of --resume, if any.
  [[nodiscard]] std::optional<sheafnn::TrainingState> state() const {
    if (settings.resume.empty()) return {};
    sheafnn::io::TrainingFile file = sheafnn::io::read_training_state(settings.resume);
    for (const auto& [key, value] : decisive) {
      const auto found = file.metadata.find(key);
      const std::string before = found == file.metadata.end() ? "nothing" : found->second;
      if (before == value) continue;
      throw std::runtime_error(sheafnn::detail::concat(settings.resume, ": ", key, " was '", before, "' and is '",
                                                       value, "' now; this training cannot go on"));
    }
    return std::move(file.state);
  }
};

template <class Model>
Training train_model(const Task& task, const Run& run) {
  const TrainSettings& s = task.settings;
  const sheafnn::Split& split = task.whole.splits[run.split];
  sheafnn::TrainOptions options = s.train;
  options.seed = run.seed;
  const std::optional<sheafnn::TrainingState> state = task.state();
  if (state) options.resume = &*state;
  if (!s.checkpoint.empty()) {
    options.on_checkpoint = [&](const sheafnn::TrainingState& now) {
      sheafnn::io::write_training_state(s.checkpoint, now, task.decisive);
    };
  }
  Model model(s.options, run.seed);
  Training r;
  if (task.clusters) {
    r.result = mpi::train_in_clusters(model, task.whole, *task.clusters, task.clusters_per_step, split, options);
    r.outcome.parameters = model.parameters().size();
    std::get<sheafnn::ModelOptions>(r.outcome.resolved) = model.options();
    return r;
  }
  r.result = task.own ? mpi::train_owned(model, task.part, *task.own, options)
                      : mpi::train(model, task.part, split, options);
  sheafnn::Prediction prediction;
  if (!task.own) {
    prediction = mpi::predict(model, task.part,
                              {.samples = options.samples,
                               .seed = options.seed,
                               .epoch = static_cast<std::uint32_t>(r.result.best_epoch),
                               .threads = options.threads});
  }
  if (!task.part.ranks().is_root()) return r;
  r.outcome = programs::outcome_of(model, r.result.best_epoch, [&] { return std::move(prediction); }, task.whole,
                                   split, {.model = !s.save.empty()});
  return r;
}

/// The networks that the program contains: those of SHEAFNN_MPI_MODELS, FAMILY and stalk dimension.
Training train_run(const Task& task, const Run& run) {
  const TrainSettings& s = task.settings;
#define SHEAFNN_TRY_MODEL(Family, D)                                                                  \
  if (s.maps == sheafnn::Family<D>::name && s.stalk_dimension == D) {                                 \
    return programs::is_bayesian(s.model) ? train_model<sheafnn::Bsnn<sheafnn::Family<D>>>(task, run) \
                                          : train_model<sheafnn::Nsd<sheafnn::Family<D>>>(task, run); \
  }
  SHEAFNN_MPI_MODELS(SHEAFNN_TRY_MODEL)
#undef SHEAFNN_TRY_MODEL
  sheafnn::throw_invalid_argument("--stalk-dim", s.stalk_dimension,
                                  "this program was built without such " + s.maps + " maps (SHEAFNN_MPI_MODELS)");
}

std::vector<Run> runs_of(const TrainSettings& s, const sheafnn::Dataset& data) {
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

mpi::Partition partition_of(mpi::Communicator& ranks, const std::string& choice, const sheafnn::Graph& graph) {
  if (choice == "metis") return mpi::metis_partition(ranks, graph);
  if (choice == "contiguous") return mpi::contiguous_partition(graph, ranks.size());
  return mpi::read_partition(choice, graph.node_count(), ranks.size());
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

/// Is it a folder that every rank reads its own rows of?
bool is_folder(const std::string& dataset) {
  return std::filesystem::exists(std::filesystem::path(dataset) / "indptr.npy");
}

/// The options that train does not have.
struct OwnOptions {
  std::string partition = "metis";
  Index clusters = 0, clusters_per_step = 1;
};

int run(const CLI::App& app, TrainSettings& s, const OwnOptions& options,
        const std::vector<std::string>& arguments) {
  mpi::Communicator ranks;
  const std::string& partition_choice = options.partition;
  s.device = "mpi";
  programs::resolve_options(app, s);
  sheafnn::require(s.model == "bsnn" || s.model == "nsd", "--model", s.model, "on several ranks: bsnn or nsd");
  const bool folder = is_folder(s.dataset);
  sheafnn::Dataset data;
  mpi::DataPiece piece;
  std::optional<sheafnn::Split> own;
  std::optional<mpi::PartitionReport> report;
  if (folder) {
    sheafnn::require(app.get_option("--partition")->count() == 0 || partition_choice == "contiguous",
                     "--partition", partition_choice, "of a folder of .npy arrays: contiguous");
    if (s.preset == "auto") s.preset = "large";
    mpi::FolderPiece read = mpi::read_folder(ranks, s.dataset);
    piece = std::move(read.piece);
    own = std::move(read.own);
    data.name = std::filesystem::path(s.dataset).filename().string();
    data.class_count = std::max<Index>(2, piece.class_count);
    data.splits.resize(1);
  } else {
    data = programs::load_training_data(s.dataset, s.synthetic, s.data);
    mpi::require_agreement(ranks, data);
    const mpi::Partition partition = partition_of(ranks, partition_choice, data.graph);
    report = mpi::describe(data.graph, partition);
    piece = mpi::cut(data, partition, ranks.rank());
  }
  const std::optional<sheafnn::Preset> preset = programs::apply_preset(app, s, data);
  s.options.features = piece.features.columns();
  s.options.classes = data.class_count;
  if (ranks.is_root()) {
    programs::require_writable("--report", s.report);
    programs::require_writable("--save", s.save);
    programs::require_writable("--checkpoint", s.checkpoint);
  }
  const std::vector<Run> runs = runs_of(s, data);
  for (const auto& [option, file] :
       {std::pair("--save", s.save), {"--checkpoint", s.checkpoint}, {"--resume", s.resume}}) {
    sheafnn::require(file.empty() || runs.size() == 1, option, file, "on several ranks: of one split and seed");
  }
  std::optional<mpi::Partition> clusters;
  if (options.clusters > 0) {
    sheafnn::require(ranks.size() == 1 && !folder && s.save.empty() && s.checkpoint.empty() && s.resume.empty(),
                     "--clusters", options.clusters,
                     "on one rank, of a data set that is no folder, without --save and checkpoints");
    sheafnn::require_between("--clusters", options.clusters, 1, data.node_count());
    clusters = mpi::metis_partition(data.graph, static_cast<int>(options.clusters));
  }
  mpi::DistributedData part(ranks, std::move(piece));
  const sheafnn::PartNumbers& numbers = part.numbers();
  const std::string of_data =
      folder ? sheafnn::detail::concat(data.name, " ", numbers.total_nodes, " ", numbers.total_edges)
             : data.name + " " + programs::fingerprint(data);
  const Task task{
      s, data, part, own, clusters, options.clusters_per_step, programs::decisive_settings(s, of_data)};

  std::string cut = report ? mpi::to_string(*report, numbers.total_nodes, numbers.total_edges) : "";
  if (!report) {
    double sums[] = {static_cast<double>(numbers.cut.size()),
                     static_cast<double>(part.graph().node_count() - numbers.own)};
    ranks.sum(std::span<double>(sums));
    cut = sheafnn::detail::concat(ranks.size(), " parts: ", sums[0] / 2, " edges cut, halo ", sums[1], " rows\n");
  }
  if (ranks.is_root()) {
    std::printf(
        "%s: %td nodes, %td edges, %td features, %td classes\n%s%s, %s maps, stalk dimension %d, %td channels, "
        "%td layers\n\n",
        data.name.c_str(), numbers.total_nodes, numbers.total_edges, s.options.features, s.options.classes,
        cut.c_str(), s.model.c_str(), s.maps.c_str(), s.stalk_dimension, s.options.channels, s.options.layers);
    std::fflush(stdout);
  }
  programs::TrainResults results(s, preset);
  if (ranks.is_root()) results.print_header();
  std::vector<double> messages, bytes;
  for (const Run& run : runs) {
    const mpi::Traffic before = ranks.traffic();
    const Training training = train_run(task, run);
    const mpi::Traffic sent = ranks.traffic() - before;
    const double epochs = static_cast<double>(training.result.history.size());
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
    sheafnn::io::write_text(s.report, json.dump(2) + "\n");
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
    app.get_formatter()->column_width(34);
    programs::add_training_options(app, settings);
    auto* group = app.add_option_group("Run");
    group
        ->add_option("--partition", own.partition,
                     "metis, contiguous, or a text file with the number of a part for every node")
        ->capture_default_str();
    group->add_option(
        "--clusters", own.clusters,
        "on one rank: train on a few of so many parts at a time, with memory for these (default: off)");
    group->add_option("--clusters-per-step", own.clusters_per_step, "parts in a step")->capture_default_str();
    group->add_option("--splits", settings.splits, "splits to train on, e.g. 0-9 or 0,3,7 (default: all)");
    group->add_option("--seeds", settings.seeds,
                      "train on every split with each of these seeds (default: --seed)");
    group->add_option("--report", settings.report, "write the results to this JSON file");
    group->add_flag("--history", settings.history, "with --report: every epoch's losses and accuracies as well");
    group->add_option("--save", settings.save, "write the trained model to this .safetensors file");
    group->add_option("--checkpoint", settings.checkpoint,
                      "write the state of the training to this file, every few epochs and at its end");
    group->add_option("--every", settings.train.checkpoint_every, "epochs between two checkpoints, at least 1")
        ->capture_default_str();
    group->add_option(
        "--resume", settings.resume,
        "go on from the state in this file, with the same options, on any number of ranks; --epochs and "
        "--patience may change");
    const std::vector<std::string> arguments = programs::arguments(argc, argv);
    try {
      programs::refuse_empty_arguments(arguments);
      app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
    } catch (const CLI::ParseError& error) {  // the same on all ranks
      const bool root = mpi::Communicator().is_root();
      if (error.get_exit_code() == 0) return root ? app.exit(error) : 0;
      if (root) std::fprintf(stderr, "train_mpi: %s; --help lists the options\n", error.what());
      return programs::exit_bad_input;
    }
    return run(app, settings, own, arguments);
  });
}
