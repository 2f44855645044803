/// \file
/// A small batch of networks on an executor, and what it computes, for comparisons of executors and with the CPU.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "map_kind.hpp"
#include "shared_networks.hpp"
#include "sheafnn/batch/network.hpp"
#include "sheafnn/bsnn/bundle_options.hpp"
#include "sheafnn/bsnn/cooperative_options.hpp"
#include "sheafnn/bsnn/flow_model_options.hpp"
#include "sheafnn/bsnn/hypergraph_options.hpp"
#include "sheafnn/graph/graph_of.hpp"
#include "sheafnn/graph/hypergraph.hpp"
#include "tiny_task.hpp"
#include "worst.hpp"

namespace batch_checks {

using sheafnn::Index;

/// A ring with chords, a high-degree and an isolated node, and features with long rows. With more than 270 nodes
/// the arcs of the high-degree node are summed in segments.
struct Problem {
  sheafnn::Graph graph;
  sheafnn::Hypergraph hypergraph;  ///< of hypergraph_problem()
  sheafnn::NodeFeatures features;
  std::vector<std::int32_t> labels, training;
  std::vector<std::uint8_t> roles;
};
/// Of a problem or task, what networks of a model are on.
template <class Model, class Problem>
[[nodiscard]] const sheafnn::GraphOf<Model>& graph_of(const Problem& problem) {
  if constexpr (std::is_same_v<sheafnn::GraphOf<Model>, sheafnn::Hypergraph>) {
    return problem.hypergraph;
  } else {
    return problem.graph;
  }
}
inline constexpr Index columns = 90, classes = 3;
inline Problem small_problem(bool edgeless = false, Index nodes = 83) {
  Problem r;
  std::vector<sheafnn::Edge> edges;
  const std::int32_t ring = static_cast<std::int32_t>(nodes) - 1;  // the last node is isolated
  for (std::int32_t u = 0; u < ring; ++u) {
    edges.push_back({u, (u + 1) % ring});
    if (u % 3 == 0) edges.push_back({u, (u * u + 5) % ring});
    if (u < nodes - 13) edges.push_back({u, ring / 2});
  }
  if (edgeless) edges.clear();
  r.graph = sheafnn::Graph(nodes, edges);
  std::vector<double> values(static_cast<std::size_t>(nodes * columns));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = i % 3 == 1 ? 0 : std::sin(static_cast<double>(i * i));
  r.features = sheafnn::NodeFeatures::from_dense(std::span<const double>(values), nodes, columns);
  for (Index u = 0; u < nodes; ++u) {
    r.labels.push_back(static_cast<std::int32_t>(u % classes));
    const bool training = u % 2 == 0;
    if (training) r.training.push_back(static_cast<std::int32_t>(u));
    r.roles.push_back(training     ? sheafnn::batch::training_node
                      : u % 4 == 1 ? sheafnn::batch::validation_node
                                   : sheafnn::batch::test_node);
  }
  return r;
}

/// The same with hyperedges of 0 to 6 nodes, one of more than a warp has lanes, and a node that is in more than a warp has
/// lanes; the last node is in none.
inline Problem hypergraph_problem() {
  Problem r = small_problem();
  const std::int32_t nodes = static_cast<std::int32_t>(r.graph.node_count());
  std::vector<std::vector<std::int32_t>> members(61);
  for (std::int32_t e = 0; e < 60; ++e) {
    for (std::int32_t k = 0; k < e % 7; ++k)
      members[static_cast<std::size_t>(e)].push_back(k == 0 ? 5 : 6 + (7 * e + 11 * k) % (nodes - 7));
  }
  for (std::int32_t u = 0; u < 45; ++u) members[60].push_back(u);
  r.hypergraph = sheafnn::hypergraph_of_members(nodes, members);
  return r;
}

/// The same with more edges between node u and the nodes behind it, `arcs` of them, for each (u, arcs).
inline Problem with_degrees(Problem problem, const std::vector<std::pair<std::int32_t, std::int32_t>>& wanted) {
  std::vector<sheafnn::Edge> edges;
  for (Index e = 0; e < problem.graph.edge_count(); ++e) edges.push_back(problem.graph.edge(e));
  for (const auto& [u, arcs] : wanted) {
    for (std::int32_t k = 2; k < 2 + arcs; ++k) edges.push_back({u, u + k});
  }
  problem.graph = sheafnn::Graph(problem.graph.node_count(), edges);
  return problem;
}

/// The same with two features of every arc.
inline Problem with_arc_features(Problem problem) {
  std::vector<double> features;
  for (Index i = 0; i < 2 * problem.graph.arc_count(); ++i)
    features.push_back(std::sin(static_cast<double>(7 * i)));
  problem.graph.set_arc_features(features, 2);
  return problem;
}

/// A small model for it.
template <class Options = sheafnn::ModelOptions>
[[nodiscard]] Options small_options() {
  Options r;
  r.features = columns;
  r.classes = classes;
  r.channels = 5;
  if constexpr (requires { r.layers = 2; }) r.layers = 2;
  return r;
}
/// A small flow for it.
inline sheafnn::FlowOptions small_flow_options() {
  sheafnn::FlowOptions r = small_options<sheafnn::FlowOptions>();
  r.time = 1.3;
  r.method = sheafnn::FlowMethod::runge_kutta;
  r.fixed_steps = 2;
  return r;
}
/// A small cooperative network for it.
inline sheafnn::CooperativeOptions small_cooperative_options() {
  sheafnn::CooperativeOptions r = small_options<sheafnn::CooperativeOptions>();
  r.learner_width = 7;
  return r;
}

/// A small bundle network for it.
inline sheafnn::BundleOptions small_bundle_options() {
  sheafnn::BundleOptions r = small_options<sheafnn::BundleOptions>();
  r.channels = 3;
  r.bundles = 3;
  r.learner_width = 7;
  r.terms = 5;
  return r;
}

/// A small hypergraph network for it.
inline sheafnn::HypergraphOptions small_hypergraph_options() {
  return small_options<sheafnn::HypergraphOptions>();
}

/// Options of a training step.
struct Step {
  double input_dropout = 0.5, dropout = 0.3, kl_weight = 0.7;
  sheafnn::KlEstimator estimator = sheafnn::KlEstimator::closed_form;
  Index samples = 1;
  std::uint32_t epoch = 3;
};

/// Largest difference, relative to the largest of `expected` and of `scale` (or absolute where all of them are 0).
inline double relative(const std::vector<double>& values, const std::vector<double>& expected, double scale = 0) {
  if (values.size() != expected.size()) return std::numeric_limits<double>::infinity();
  double largest = scale, worst_difference = 0;
  for (const double x : expected) largest = std::max(largest, std::abs(x));
  for (std::size_t i = 0; i < values.size(); ++i) {
    worst_difference = test::worse(worst_difference, std::abs(values[i] - expected[i]));
  }
  return largest > 0 ? worst_difference / largest : worst_difference;
}

/// The one column of a sum, added up for each of `runs` runs.
template <class Executor, class Tree>
std::vector<double> sums(Executor& executor, const Tree& tree, Index runs) {
  const sheafnn::batch::detail::PartialRows& partial = tree.partial();
  std::vector<double> rows(static_cast<std::size_t>(runs * partial.stride)), total;
  executor.download(partial.rows, runs * partial.stride, rows.data());
  for (Index run = 0; run < runs; ++run) {
    const auto first = rows.begin() + run * partial.stride;
    total.push_back(std::accumulate(first, first + partial.count, 0.0));
  }
  return total;
}

/// Adds the KL terms of layers that draw something to the KL term of every run.
template <class Executor, class Batch>
void add_kl_of_layers(Executor& executor, const Batch& networks, std::vector<double>& kl) {
  if constexpr (requires { networks.kl_of_layers(); }) {
    if (networks.kl_of_layers().partial().count == 0) return;
    const std::vector<double> more = sums(executor, networks.kl_of_layers(), static_cast<Index>(kl.size()));
    for (std::size_t i = 0; i < kl.size(); ++i) kl[i] += more[i];
  }
}

/// A model with a posterior, which not all kinds take.
template <class Model>
Model made(const typename Model::Options& options, std::uint64_t seed,
           const typename Model::Posterior& posterior) {
  if constexpr (std::is_constructible_v<Model, typename Model::Options, std::uint64_t,
                                        typename Model::Posterior>) {
    return Model(options, seed, posterior);
  } else {
    return Model(options, seed);
  }
}
/// A model whose parameters are at no special values.
template <class Model>
Model disturbed(const typename Model::Options& options, Index run,
                const typename Model::Posterior& posterior = {}) {
  Model model = made<Model>(options, static_cast<std::uint64_t>(5 + run), posterior);
  tiny::disturb(model.parameters(), static_cast<std::uint64_t>(11 + run), 0.3);
  return model;
}

/// What two runs with different parameters, seeds and rates made of a step and of an evaluation, side by side.
struct BatchOutcome {
  sheafnn::batch::BatchSize size;
  std::vector<double> gradient, log_probabilities, nll, kl, probabilities;
};

inline constexpr Index batch_runs = 2, evaluation_samples = 4;
inline constexpr std::uint64_t first_seed = 70;

/// The second run drops half as much, and its KL term counts twice as much.
[[nodiscard]] inline double rate_of(double rate, Index run) { return rate / static_cast<double>(1 + run); }
[[nodiscard]] inline double kl_weight_of(const Step& step, Index run) {
  return step.kl_weight * static_cast<double>(1 + run);
}

template <class Model, class Executor>
BatchOutcome run_batch(Executor& executor, const Problem& problem, const typename Model::Options& options,
                       const Step& step, const typename Model::Posterior& posterior = {}) {
  namespace batch = sheafnn::batch;
  using S = typename Model::Scalar;
  using Batch = batch::BatchNetwork<Executor, Model>;
  const Model shape = made<Model>(options, 0, posterior);
  BatchOutcome r;
  r.size = {batch_runs, Batch::draws(shape) ? step.samples : 1, std::max<Index>(2, step.samples)};
  Batch networks(executor, shape, graph_of<Model>(problem), problem.features, {problem.labels, problem.roles},
                 r.size);
  std::vector<S> parameters;
  std::vector<batch::Run> runs(static_cast<std::size_t>(batch_runs));
  for (Index i = 0; i < batch_runs; ++i) {
    const Model model = disturbed<Model>(options, i, posterior);
    parameters.insert(parameters.end(), model.parameters().values().begin(), model.parameters().values().end());
    batch::Run& run = runs[static_cast<std::size_t>(i)];
    run.seed = first_seed + static_cast<std::uint64_t>(i);
    run.epoch = step.epoch;
    run.input_dropout = batch::DropoutRule(rate_of(step.input_dropout, i));
    run.dropout = batch::DropoutRule(rate_of(step.dropout, i));
    run.training_share = 1 / static_cast<double>(problem.training.size());
    run.kl_weight = kl_weight_of(step, i);
  }
  networks.parameters().upload(parameters);
  networks.runs().upload(runs);
  networks.train_pass(step.input_dropout > 0, step.dropout > 0, step.estimator);
  const auto numbers = [](const std::vector<S>& values) {
    return std::vector<double>(values.begin(), values.end());
  };
  r.gradient = numbers(networks.gradient().download());
  r.log_probabilities = numbers(networks.output().log_probabilities().download());
  r.nll = sums(executor, networks.output().nll(), batch_runs);
  if (Batch::draws(shape)) {
    r.kl = sums(executor, networks.kl(), batch_runs);
    for (double& kl : r.kl) kl /= static_cast<double>(std::max<Index>(1, networks.pairs()));
    add_kl_of_layers(executor, networks, r.kl);
  }

  networks.evaluate(evaluation_samples);
  r.probabilities = networks.output().probabilities().download();
  return r;
}

}  // namespace batch_checks
