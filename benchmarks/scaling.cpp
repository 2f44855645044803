/// \file
/// How a training step grows with the graph: synthetic graphs of 10⁴, 10⁵, 10⁶, 3·10⁶, 10⁷, … edges (mean degree
/// 10, 100 features, 10 words per node), a Bayesian network with special orthogonal maps, stalk dimension 3, 16
/// channels, 2 layers. A step is elbo() and Adam: forward and backward pass and the update, no evaluation.
///
///     scaling [--edges E] [--threads N] [options of Google Benchmark]
///
/// E (default 10⁶) is the largest number of edges; 10⁷ takes a few minutes and about 7 GiB. Each size is measured
/// with one thread and with N (default 2). Sizes come in increasing order, because the system only knows the peak
/// memory of a whole process.
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <sheafnn/bsnn/trainer.hpp>
#include <sheafnn/graph/synthetic.hpp>
#include <vector>

#include "support/heap.hpp"
#include "support/measurement.hpp"
#include "support/scaling_table.hpp"

namespace {

using sheafnn::Index;
using Model = sheafnn::Bsnn<sheafnn::SpecialOrthogonal<3>>;

/// Largest resident memory of this process so far, in MiB.
double peak_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

void run_step(benchmark::State& state, Index edges, int threads) {
  sheafnn::SyntheticOptions graph;
  graph.nodes = edges / 5;
  graph.degree = 10;
  graph.splits = 1;
  const sheafnn::Dataset data = sheafnn::synthetic(graph);
  sheafnn::ModelOptions options;
  options.features = data.feature_count();
  options.classes = data.class_count;
  options.layers = 2;
  Model model(options);
  auto& parameters = model.parameters();
  const double before = benchmarks::heap_bytes();
  sheafnn::Network<Model> network(model, data.graph, data.features, threads);
  sheafnn::layers::Adam<float> adam(parameters.size(), 0.01);
  const sheafnn::Classification loss(data.labels);
  std::vector<double> seconds;
  const auto step = [&](std::uint32_t epoch) {
    using Clock = std::chrono::steady_clock;
    const auto start = Clock::now();
    const std::vector<std::int32_t>& nodes = data.splits[0].train;
    static_cast<void>(sheafnn::elbo(network,
                                    {.epoch = epoch,
                                     .training = true,
                                     .overwrites = true,
                                     .input_dropout = 0.5,
                                     .dropout = 0.3,
                                     .nodes = nodes},
                                    loss, nodes, {.kl_weight = 0.5}));
    adam.step(threads, parameters, network.gradient(), 5e-4, 5e-4);
    seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  };
  std::uint32_t epoch = 0;
  step(epoch++);
  const double workspace = benchmarks::heap_bytes() - before;  // some buffers are taken when they are needed first
  seconds.clear();
  for (auto _ : state) {
    step(epoch++);
    state.SetIterationTime(seconds.back());
  }
  const double count = static_cast<double>(data.graph.edge_count());
  const double median = benchmarks::median(seconds);
  state.counters["edges"] = count;
  state.counters["nodes"] = static_cast<double>(data.node_count());
  state.counters["median_ms"] = 1e3 * median;
  state.counters["ns_per_edge"] = 1e9 * median / count;
  state.counters["bytes_per_edge"] = workspace / count;
  state.counters["peak_mib"] = peak_mib();
}

/// Ten times as many edges; where they have outgrown caches, three times and ten times.
Index next_size(Index edges) {
  if (edges < 1'000'000) return 10 * edges;
  Index decade = 1'000'000;
  while (10 * decade <= edges) decade *= 10;
  return edges == decade ? 3 * decade : 10 * decade;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Index max_edges = static_cast<Index>(benchmarks::take_option(argc, argv, "--edges", 1e6, 1e4, 1e8));
    const int more = static_cast<int>(benchmarks::take_option(argc, argv, "--threads", 2, 1, 1024));
    std::vector<int> threads = {1};
    if (more > 1) threads.push_back(more);
    benchmarks::add_build_context();
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
    for (Index edges = 10'000; edges <= max_edges; edges = next_size(edges)) {
      for (const int t : threads) {
        benchmark::RegisterBenchmark(sheafnn::detail::concat("step/", edges, "/", t).c_str(), run_step, edges, t)
            ->UseManualTime()
            ->Iterations(std::clamp<Index>(1'000'000 / edges, 3, 30))
            ->Unit(benchmark::kMillisecond);
      }
    }
    benchmarks::Collector collector;
    benchmark::RunSpecifiedBenchmarks(&collector);
    std::printf("\n%s", benchmarks::scaling_table(collector.measurements()).c_str());
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "scaling: %s\n", error.what());
    return 2;
  }
}
