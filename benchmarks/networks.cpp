/// \file
/// Epochs of the polynomial, the cooperative and the continuous-time networks, point and Bayesian, as training runs them;
/// authors_networks.py measures the authors' code in the same setting.
///
///     networks [--threads N] [options of Google Benchmark]
///
/// As in epochs.cpp: stalk dimension 3, 4 layers, 16 channels, input dropout 0.5, dropout 0.3. Polynomial networks have
/// Chebyshev filters of degree 8; cooperative ones layer norm and learners of width 32, of two layers where those are
/// convolutions. Flows go to time 1 in four equal steps of the classical Runge–Kutta method, 16 evaluations of the
/// right-hand side whatever the weights are.
///
/// Then maps per node against maps per arc on synthetic graphs of 4000 nodes and growing mean degree k: the cooperative
/// network, with mlp learner, and NSD with general maps, whose diffusion takes kd/(4d + k) times as
/// many operations (docs/math.md, "Cooperative sheaves").
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <list>
#include <sheafnn/bsnn/forward_pass.hpp>
#include <sheafnn/graph/synthetic.hpp>
#include <string>
#include <string_view>

#include "models/registry.hpp"
#include "support/command_line.hpp"
#include "support/figures.hpp"
#include "support/measurement.hpp"
#include "support/task.hpp"
#include "support/training_epochs.hpp"

namespace programs {
extern const ModelEntry Diagonal_3, SpecialOrthogonal_3, GeneralLinear_3, Cooperative_3, FlowDiagonal_3,
    FlowSpecialOrthogonal_3, FlowGeneralLinear_3;
}  // namespace programs

namespace {

using sheafnn::Index;

struct Network {
  std::string_view name;
  const programs::ModelEntry& entry;
  sheafnn::NodeLearnerKind learner = sheafnn::NodeLearnerKind::mlp;  ///< of cooperative ones
  bool filter = true;                                                ///< of the others
};
const Network networks[] = {{"polynomial/diagonal", programs::Diagonal_3},
                            {"polynomial/special-orthogonal", programs::SpecialOrthogonal_3},
                            {"polynomial/general-linear", programs::GeneralLinear_3},
                            {"cooperative/mlp", programs::Cooperative_3},
                            {"cooperative/sage", programs::Cooperative_3, sheafnn::NodeLearnerKind::sage},
                            {"cooperative/sage-projected", programs::Cooperative_3,
                             sheafnn::NodeLearnerKind::sage_projected},
                            {"flow/diagonal", programs::FlowDiagonal_3},
                            {"flow/special-orthogonal", programs::FlowSpecialOrthogonal_3},
                            {"flow/general-linear", programs::FlowGeneralLinear_3}};
const Network per_arc = {"maps-per-arc", programs::GeneralLinear_3, {}, false};
const Network per_node = {"maps-per-node", programs::Cooperative_3};

struct Cell {
  const sheafnn::Dataset& data;
  const Network& network;
  bool bayesian;
  int threads;  ///< at most
};

programs::NetworkOptions options_of(const Network& network, const sheafnn::Dataset& data) {
  programs::NetworkOptions r;
  sheafnn::for_each_kind(r, [&](auto& options) {
    options.features = data.feature_count();
    options.classes = data.class_count;
  });
  auto& pairs = std::get<sheafnn::ModelOptions>(r);
  auto& cooperative = std::get<sheafnn::CooperativeOptions>(r);
  auto& flow = std::get<sheafnn::FlowOptions>(r);
  if (network.filter) {
    pairs.filter.basis = sheafnn::PolynomialBasis::chebyshev;
    pairs.filter.degree = 8;
  }
  cooperative.norm = sheafnn::FeatureNorm::layer;
  cooperative.learner = network.learner;
  cooperative.learner_layers = network.learner == sheafnn::NodeLearnerKind::mlp ? 1 : 2;
  flow.method = sheafnn::FlowMethod::runge_kutta;
  flow.fixed_steps = 4;
  flow.negate_inside = true;  // as the authors' code
  return r;
}

/// The width of all of them, as suggested_threads() asks for it.
struct Width {
  [[nodiscard]] static Index hidden_width() { return 3 * 16; }
};

void run_cell(benchmark::State& state, const Cell& cell) {
  const sheafnn::Dataset& data = cell.data;
  constexpr Index min_epochs = 5;
  const int threads = std::min(cell.threads, sheafnn::suggested_threads(Width{}, data.graph));
  const benchmarks::TrainingEpochs epochs =
      benchmarks::train_for(cell.network.entry, data, options_of(cell.network, data), cell.bayesian,
                            std::max<Index>(min_epochs, state.max_iterations) + 2, threads);
  for (std::size_t i = 0; state.KeepRunning(); ++i) state.SetIterationTime(epochs.seconds[i]);
  state.counters["median_ms"] = 1e3 * benchmarks::median(epochs.seconds);
  state.counters["train_ms"] = 1e3 * epochs.result.train_seconds;
  state.counters["evaluate_ms"] = 1e3 * epochs.result.evaluate_seconds;
  state.counters["threads"] = threads;
  state.SetLabel(data.name);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const int threads = static_cast<int>(benchmarks::take_option(argc, argv, "--threads", 2, 1, 1024));
    benchmarks::add_build_context();
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
    std::list<sheafnn::Dataset> graphs;
    const auto add = [&](std::string_view graph, const Network& network, bool bayesian) {
      const std::string name = sheafnn::detail::concat(graph, "/", bayesian ? "bayesian-" : "", network.name);
      benchmark::RegisterBenchmark(name.c_str(), run_cell, Cell{graphs.back(), network, bayesian, threads})
          ->UseManualTime()
          ->Unit(benchmark::kMillisecond);
    };
    for (const benchmarks::EpochGraph& graph : benchmarks::epoch_graphs) {
      graphs.push_back(benchmarks::load_task(graph));
      for (const Network& network : networks) {
        for (const bool bayesian : {false, true}) add(graph.name, network, bayesian);
      }
    }
    for (const int degree : {3, 6, 12, 24, 48}) {
      graphs.push_back(sheafnn::synthetic({.nodes = 4000, .degree = static_cast<double>(degree)}));
      for (const Network* network : {&per_arc, &per_node}) add("degree-" + std::to_string(degree), *network, false);
    }
    benchmark::RunSpecifiedBenchmarks();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "networks: %s\n", error.what());
    return 2;
  }
}
