/// \file
/// Steps of a training on several ranks against steps of one process: losses, KL terms and gradients.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "faulty_exchange.hpp"
#include "sheafnn/bsnn/elbo.hpp"
#include "sheafnn/bsnn/network.hpp"
#include "sheafnn/distributed.hpp"
#include "sheafnn/graph/synthetic.hpp"
#include "sheafnn/graph/synthetic_hypergraph.hpp"
#include "tiny_task.hpp"

namespace part_steps {

namespace mpi = sheafnn::distributed;
using sheafnn::Index;

inline mpi::Communicator& ranks() {
  static auto* const world = new mpi::Communicator;  // MPI ends before static objects do
  return *world;
}

/// Does it hold on all ranks? What is checked on one alone, the others would not report.
inline bool everywhere(bool here) {
  const std::vector<std::int32_t> answers = ranks().all<std::int32_t>(here ? 1 : 0);
  return std::find(answers.begin(), answers.end(), 0) == answers.end();
}

inline sheafnn::Dataset dataset() {
  sheafnn::Dataset data = sheafnn::synthetic({.nodes = 90,
                                              .classes = 3,
                                              .features = 20,
                                              .words = 4,
                                              .degree = 5,
                                              .homophily = 0.4,
                                              .splits = 1,
                                              .seed = 3});
  std::vector<sheafnn::Edge> listed;  // one way, the other, or both
  for (const sheafnn::Edge edge : data.graph.edges()) {
    const double choice = tiny::number(18, static_cast<Index>(listed.size()));
    if (choice < 0.4) listed.push_back(edge);
    if (choice > -0.3) listed.push_back({edge.v, edge.u});
  }
  data.graph = sheafnn::Graph(data.node_count(), listed);
  std::vector<double> of_arcs;
  for (Index i = 0; i < 2 * data.graph.arc_count(); ++i) of_arcs.push_back(tiny::number(17, i));
  data.graph.set_arc_features(of_arcs, 2);
  for (std::size_t u = 0; u < data.labels.size(); u += 7) data.labels[u] = -1;
  return data;
}

/// The same on a hypergraph: its hyperedges have 1 to 7 members, but one has none.
inline sheafnn::HypergraphDataset hypergraph_dataset() {
  sheafnn::HypergraphDataset data = sheafnn::synthetic_hypergraph({.nodes = 90,
                                                                   .classes = 3,
                                                                   .features = 20,
                                                                   .words = 4,
                                                                   .hyperedges = 70,
                                                                   .least_size = 1,
                                                                   .largest_size = 7,
                                                                   .homophily = 0.4,
                                                                   .splits = 1,
                                                                   .seed = 3});
  std::vector<sheafnn::Incidence> pairs;
  for (Index i = 0; i < data.graph.pair_count(); ++i) {
    const Index e = data.graph.hyperedge(i);
    pairs.push_back(
        {static_cast<std::int32_t>(data.graph.node(i)), static_cast<std::int32_t>(e + (e > 30 ? 1 : 0))});
  }
  data.graph = sheafnn::Hypergraph(data.node_count(), data.graph.hyperedge_count() + 1, pairs);
  for (std::size_t u = 0; u < data.labels.size(); u += 7) data.labels[u] = -1;
  return data;
}
/// A model's dataset, of one of these two.
template <class Model>
auto dataset_of() {
  if constexpr (std::is_same_v<sheafnn::GraphOf<Model>, sheafnn::Hypergraph>) {
    return hypergraph_dataset();
  } else {
    return dataset();
  }
}

/// Gives the graph three types of edges and of nodes.
inline void add_types(sheafnn::Dataset& data) {
  const auto random = [](std::uint64_t seed, Index count) {
    std::vector<std::int32_t> r;
    for (Index i = 0; i < count; ++i) {
      r.push_back(static_cast<std::int32_t>((tiny::number(seed, i) + 1) / 2 * 3) % 3);
    }
    return r;
  };
  data.graph.set_edge_types(random(21, data.graph.edge_count()), 3);
  data.graph.set_node_types(random(22, data.node_count()), 3);
  data.edge_type_names = {"cites", "reads", "writes"};
  data.node_type_names = {"author", "paper", "venue"};
}
/// Options of a network with weights and stalks of the types of add_types().
inline sheafnn::ModelOptions with_types(sheafnn::ModelOptions options) {
  options.edge_types = {"cites", "reads", "writes"};
  options.edge_stalks = {1, 2, 2};
  options.node_types = {"author", "paper", "venue"};
  options.stalks = {2, 1, 2};
  return options;
}

/// Nodes of random owners; every rank owns one at least.
inline mpi::Partition random_partition(Index nodes, std::uint64_t seed) {
  mpi::Partition r{ranks().size(), {}};
  for (Index u = 0; u < nodes; ++u) {
    const double uniform = (tiny::number(seed, u) + 1) / 2;
    r.owner.push_back(u < r.parts ? static_cast<std::int32_t>(u) : static_cast<std::int32_t>(uniform * r.parts));
  }
  return r;
}
/// Neighbouring numbers have different owners.
inline mpi::Partition scattered_partition(Index nodes, int parts) {
  mpi::Partition r{parts, {}};
  for (Index u = 0; u < nodes; ++u) r.owner.push_back(static_cast<std::int32_t>(u * 7 % parts));
  return r;
}

struct Step {
  sheafnn::Elbo elbo;
  std::vector<double> gradient;
};

/// What a training step is made of.
template <class Options>
struct SettingOf {
  std::string name;
  Options model;
  double input_dropout = 0.4, dropout = 0.3;
  sheafnn::KlEstimator kl_estimator = sheafnn::KlEstimator::automatic;
  Index samples = 1;
};
using Setting = SettingOf<sheafnn::ModelOptions>;

template <class Model, class Loss>
Step step(const Model& model, const sheafnn::GraphOf<Model>& graph, const sheafnn::NodeFeatures& features,
          const Loss& loss, std::span<const std::int32_t> train,
          const SettingOf<typename Model::Options>& setting) {
  sheafnn::Network<Model> network(model, graph, features);
  sheafnn::ForwardPass<typename Model::Scalar> pass{.seed = 5, .epoch = 6, .training = true};
  pass.input_dropout = setting.input_dropout;
  pass.dropout = setting.dropout;
  pass.nodes = train;
  Step r;
  r.elbo = sheafnn::elbo(network, pass, loss, train, {0.3, setting.kl_estimator, setting.samples});
  r.gradient.assign(network.gradient().begin(), network.gradient().end());
  return r;
}

/// Largest difference of two steps, the gradient's relative to the largest derivative of each parameter.
template <class Model>
double difference(const Model& model, const Step& a, const Step& b) {
  double worst = std::max(std::abs(a.elbo.loss - b.elbo.loss), std::abs(a.elbo.kl - b.elbo.kl));
  for (const sheafnn::layers::ParameterInfo& info : model.parameters().info()) {
    double size = 0, apart = 0;
    for (Index i = info.offset; i < info.offset + info.size; ++i) {
      const std::size_t k = static_cast<std::size_t>(i);
      size = std::max(size, std::abs(b.gradient[k]));
      apart = std::max(apart, std::abs(a.gradient[k] - b.gradient[k]));
    }
    worst = std::max(worst, size > 0 ? apart / std::max(size, 1e-3) : apart);
  }
  return std::isfinite(worst) ? worst : 1e300;
}

/// \param make  make(setting): a model
template <class Model, class Make>
void check_steps(const std::vector<SettingOf<typename Model::Options>>& settings, const Make& make) {
  const auto data = dataset_of<Model>();
  const sheafnn::Split& split = data.splits[0];
  std::vector<mpi::Partition> partitions = {mpi::metis_partition(ranks(), data.graph),
                                            random_partition(data.node_count(), 1)};
  for (const auto& setting : settings) {
    Model model = make(setting);
    tiny::disturb(model.parameters(), 8, 0.2);
    const Step expected =
        step(model, data.graph, data.features, sheafnn::Classification(data.labels), split.train, setting);
    for (const mpi::Partition& partition : partitions) {
      mpi::DistributedDataOf<Model> part(ranks(), data, partition);
      const std::vector<std::int32_t> train = part.owned(split.train);
      const mpi::PartClassification loss(part, train);
      const Step got = step(model, part.graph(), part.features(), loss, train, setting);
      const double apart = difference(model, got, expected);
      CAPTURE(Model::kind);
      CAPTURE(Model::Family::name);
      CAPTURE(setting.name);
      CAPTURE(apart);
      CHECK(everywhere(apart < 1e-12));
      // The same bits in another run and on all ranks.
      const Step again = step(model, part.graph(), part.features(), loss, train, setting);
      std::vector<double> of_root = got.gradient;
      ranks().broadcast(std::span<double>(of_root));
      CHECK(everywhere(again.gradient == got.gradient && again.elbo.loss == got.elbo.loss &&
                       of_root == got.gradient));
    }
  }
}
template <class Model>
void check_steps(const std::vector<SettingOf<typename Model::Options>>& settings) {
  check_steps<Model>(settings, [](const auto& setting) { return Model(setting.model, 7); });
}

/// Steps on an exchange that breaks a rule are others. \param faults  pairs of a Fault and its text
template <class Model, class Faults>
void check_faults(Model model, const SettingOf<typename Model::Options>& setting, const Faults& faults) {
  const sheafnn::Dataset data = dataset();
  const mpi::Partition partition = random_partition(data.node_count(), 2);
  mpi::DistributedData part(ranks(), data, partition);
  const std::vector<std::int32_t> train = part.owned(data.splits[0].train);
  const mpi::PartClassification loss(part, train);
  mpi::LocalPart own = mpi::local_part(data.graph, partition, ranks().rank());
  const sheafnn::NodeFeatures features = mpi::part_features(data.features, own.numbers);
  mpi::RowExchange exchange(ranks(), own.numbers, own.neighbours);
  tiny::disturb(model.parameters(), 8, 0.2);
  const Step expected =
      step(model, data.graph, data.features, sheafnn::Classification(data.labels), data.splits[0].train, setting);
  for (const auto& broken : faults) {
    const std::string name = broken.second;
    CAPTURE(name);
    test::FaultyExchange faulty(exchange, broken.first);
    sheafnn::Graph graph = own.graph;
    graph.set_part(&faulty);
    const double apart = difference(model, step(model, graph, features, loss, train, setting), expected);
    CAPTURE(apart);
    if (ranks().size() > 1) CHECK_FALSE(everywhere(apart < 1e-6));
  }
}

}  // namespace part_steps
