/// \file
/// Epochs of training, as training itself runs them: one training step (forward, backward, Adam) and one
/// evaluation (three posterior samples for BSNN, one pass for NSD), beside the authors' code.
///
///     epochs [--threads N] [options of Google Benchmark]
///
/// Stalk dimension 3, 4 layers, 16 channels, input dropout 0.5, dropout 0.3, Householder rotations, edge weights
/// for special orthogonal maps. Graphs come from the folder in SHEAFNN_DATA, or are synthetic twins
/// (support/task.hpp). N (default 2) threads at most: a graph that is not worth them gets fewer, as in training.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <map>
#include <sheafnn/bsnn/trainer.hpp>
#include <string>
#include <vector>

#include "models/registry.hpp"
#include "support/epoch_table.hpp"
#include "support/measurement.hpp"
#include "support/task.hpp"
#include "support/training_epochs.hpp"

namespace programs {
extern const ModelEntry Diagonal_3, SpecialOrthogonal_3, GeneralLinear_3;
}  // namespace programs

namespace {

using sheafnn::Index;

/// One cell of the table.
struct Cell {
  const benchmarks::EpochGraph& graph;
  std::size_t model;  ///< 0 NSD, 1 BSNN
  std::size_t maps;   ///< of epoch_maps
  int threads;        ///< at most
};

const sheafnn::Dataset& task_of(const benchmarks::EpochGraph& graph) {
  static std::map<std::string_view, sheafnn::Dataset> loaded;
  const auto found = loaded.find(graph.name);
  return found != loaded.end() ? found->second
                               : loaded.emplace(graph.name, benchmarks::load_task(graph)).first->second;
}

sheafnn::ModelOptions model_options(const sheafnn::Dataset& data) {
  sheafnn::ModelOptions options;
  options.features = data.feature_count();
  options.classes = data.class_count;
  options.spread = sheafnn::SpreadRange::published;  // the authors' setting, and with it Householder rotations of tanh
  return options;
}

/// Threads training would choose on a machine of `available` threads.
template <class Family>
int threads_worth(bool bayesian, const sheafnn::Dataset& data, int available) {
  const sheafnn::ModelOptions options = model_options(data);
  return std::min(available, bayesian ? sheafnn::suggested_threads(sheafnn::Bsnn<Family>(options), data.graph)
                                      : sheafnn::suggested_threads(sheafnn::Nsd<Family>(options), data.graph));
}

/// A family that can be measured.
struct Entry {
  const programs::ModelEntry& model;
  int (*threads)(bool bayesian, const sheafnn::Dataset& data, int available);
};
/// In the order of epoch_maps.
const Entry entries[] = {{programs::Diagonal_3, threads_worth<sheafnn::Diagonal<3>>},
                         {programs::SpecialOrthogonal_3, threads_worth<sheafnn::SpecialOrthogonal<3>>},
                         {programs::GeneralLinear_3, threads_worth<sheafnn::GeneralLinear<3>>}};

programs::NetworkOptions network_options(const sheafnn::Dataset& data) {
  programs::NetworkOptions r;
  std::get<sheafnn::ModelOptions>(r) = model_options(data);
  return r;
}

/// Google Benchmark chooses how many epochs; a few at least make the median worth its name.
void run_cell(benchmark::State& state, const Cell& cell) {
  constexpr Index min_epochs = 5;
  const int threads = entries[cell.maps].threads(cell.model == 1, task_of(cell.graph), cell.threads);
  const sheafnn::Dataset& data = task_of(cell.graph);
  const benchmarks::TrainingEpochs epochs =
      benchmarks::train_for(entries[cell.maps].model, data, network_options(data), cell.model == 1,
                            std::max<Index>(min_epochs, state.max_iterations) + 2, threads);
  for (std::size_t i = 0; state.KeepRunning(); ++i) state.SetIterationTime(epochs.seconds[i]);
  const double milliseconds = 1e3 * benchmarks::median(epochs.seconds);
  const double reference = cell.graph.reference[cell.model][cell.maps];
  state.counters["median_ms"] = milliseconds;
  state.counters["train_ms"] = 1e3 * epochs.result.train_seconds;
  state.counters["evaluate_ms"] = 1e3 * epochs.result.evaluate_seconds;
  state.counters["reference_ms"] = reference;
  state.counters["ratio"] = reference / milliseconds;
  state.counters["threads"] = threads;
  state.SetLabel(task_of(cell.graph).name);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const int threads = static_cast<int>(benchmarks::take_option(argc, argv, "--threads", 2, 1, 1024));
    benchmarks::add_build_context();
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
    for (const benchmarks::EpochGraph& graph : benchmarks::epoch_graphs) {
      for (std::size_t model = 0; model < benchmarks::epoch_models.size(); ++model) {
        for (std::size_t maps = 0; maps < benchmarks::epoch_maps.size(); ++maps) {
          const std::string name =
              sheafnn::detail::concat(graph.name, "/", benchmarks::epoch_models[model], "/", benchmarks::epoch_maps[maps]);
          benchmark::RegisterBenchmark(name.c_str(), run_cell, Cell{graph, model, maps, threads})
              ->UseManualTime()
              ->Unit(benchmark::kMillisecond);
        }
      }
    }
    benchmarks::Collector collector;
    benchmark::RunSpecifiedBenchmarks(&collector);
    std::printf(
        "\nMilliseconds per epoch, the authors' code → this library (how many times faster), at most %d "
        "threads\n\n%s",
        threads, benchmarks::epoch_table(collector.measurements()).c_str());
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "epochs: %s\n", error.what());
    return 2;
  }
}
