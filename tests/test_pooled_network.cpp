/// \file
/// Networks with outputs per graph: gradients along every coordinate, independence of the graphs from each other.
#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <numeric>
#include <vector>

#include "model_gradient.hpp"
#include "sheafnn/bsnn/pooled_network.hpp"
#include "sheafnn/bsnn/prediction.hpp"
#include "sheafnn/bsnn/trainer.hpp"
#include "sheafnn/io/model_tensors.hpp"

namespace test_pooled_network {

using sheafnn::Bsnn;
using sheafnn::Classification;
using sheafnn::Diagonal;
using sheafnn::Edge;
using sheafnn::GeneralLinear;
using sheafnn::Graph;
using sheafnn::Index;
using sheafnn::Network;
using sheafnn::Nsd;
using sheafnn::PooledModel;
using sheafnn::PooledOptions;
using sheafnn::Pooling;
using sheafnn::SpecialOrthogonal;

constexpr Pooling poolings[] = {Pooling::sum, Pooling::mean, Pooling::max, Pooling::attention, Pooling::harmonic};

/// Four graphs of 4, 1, 3 and 5 nodes; graphs_in_order numbers them.
struct Task {
  static constexpr Index features = 4;
  Graph graph;
  sheafnn::NodeFeatures sparse;
  std::vector<std::int32_t> labels;

  explicit Task(std::vector<int> order = {0, 1, 2, 3}, bool reverse_nodes = false) {
    const int sizes[] = {4, 1, 3, 5};
    const std::vector<std::vector<Edge>> edges = {{{0, 1}, {1, 2}, {2, 3}, {0, 3}, {0, 2}},
                                                  {},
                                                  {{0, 1}, {1, 2}},
                                                  {{0, 1}, {0, 2}, {1, 2}, {2, 3}, {3, 4}, {1, 4}}};
    std::vector<std::int32_t> offsets = {0};
    std::vector<Edge> pairs;
    std::vector<double> dense;
    for (const int g : order) {
      const std::size_t i = static_cast<std::size_t>(g);
      const std::int32_t begin = offsets.back(), n = sizes[i];
      const auto place = [&](std::int32_t u) { return begin + (reverse_nodes ? n - 1 - u : u); };
      for (const Edge& e : edges[i]) pairs.push_back({place(e.u), place(e.v)});
      for (std::int32_t k = 0; k < n; ++k) {
        const std::int32_t u = reverse_nodes ? n - 1 - k : k;
        for (Index j = 0; j < features; ++j)
          dense.push_back(tiny::number(10 + static_cast<std::uint64_t>(g), u * features + j));
      }
      offsets.push_back(begin + n);
      labels.push_back(g % 3);
    }
    graph = Graph(offsets.back(), pairs);
    graph.set_graphs(offsets);
    sparse = sheafnn::NodeFeatures::from_dense(std::span<const double>(dense), graph.node_count(), features);
  }
};

PooledOptions options(Pooling pooling) {
  PooledOptions r{tiny::options(), pooling, 3};
  r.feature_treatment = sheafnn::FeatureTreatment::none;
  return r;
}

template <class NodeModel>
void check_gradient(PooledOptions of, double dropout = 0) {
  using Model = PooledModel<NodeModel>;
  CAPTURE(Model::Family::name);
  CAPTURE(Model::stalk_dimension);
  CAPTURE(sheafnn::to_string(of.pooling));
  const Task task;
  Model model(of, 7);
  tiny::disturb(model.parameters(), 8, 0.3);
  Network<Model> network(model, task.graph, task.sparse);
  const std::vector<std::int32_t> graphs = {0, 1, 3};
  const auto loss = [&] {
    const sheafnn::ForwardPass<double> pass{
        .seed = 3, .epoch = 2, .training = true, .input_dropout = dropout, .dropout = dropout, .nodes = graphs};
    return sheafnn::elbo(network, pass, Classification(task.labels), graphs, {.kl_weight = 0.3, .samples = 2})
        .objective;
  };
  loss();
  const sheafnn::Buffer<double> gradient = network.gradient();
  model_gradient::check_gradient(model.parameters(), gradient, loss);
}

TEST_CASE("pooled networks: gradients against central differences along every coordinate") {
  for (const Pooling pooling : poolings) {
    check_gradient<Nsd<Diagonal<1>, double>>(options(pooling));
    check_gradient<Bsnn<Diagonal<2>, double>>(options(pooling), 0.3);
    check_gradient<Nsd<SpecialOrthogonal<3>, double>>(options(pooling), 0.3);
    check_gradient<Bsnn<SpecialOrthogonal<3>, double>>(options(pooling));
    check_gradient<Bsnn<GeneralLinear<2>, double>>(options(pooling));
    PooledOptions more = options(pooling);
    more.add_lp = more.add_hp = more.linear = true;
    more.readout_layers = 3;
    check_gradient<Nsd<Diagonal<2>, double>>(more);
  }
}

template <class Model>
std::vector<double> outputs_of(const Model& model, const Task& task, std::vector<std::int32_t> graphs = {},
                               int threads = 1, double dropout = 0) {
  Network<Model> network(model, task.graph, task.sparse, threads);
  const auto y = network.forward(
      {.seed = 4, .training = dropout > 0, .input_dropout = dropout, .dropout = dropout, .nodes = graphs});
  std::vector<double> r;
  for (Index g = 0; g < y.rows(); ++g) r.insert(r.end(), y.row(g).begin(), y.row(g).end());
  return r;
}

TEST_CASE("pooled networks: a graph's outputs do not depend on the graphs beside it") {
  using Model = PooledModel<Bsnn<SpecialOrthogonal<3>, double>>;
  const Task task;
  for (const Pooling pooling : poolings) {
    CAPTURE(sheafnn::to_string(pooling));
    const Model model(options(pooling), 5);
    for (const double dropout : {0.0, 0.4}) {
      const std::vector<double> all = outputs_of(model, task, {}, 1, dropout),
                                some = outputs_of(model, task, {1, 3}, 1, dropout);
      REQUIRE(some.size() == 6);
      for (std::size_t i = 0; i < 6; ++i)
        CHECK(some[i] == doctest::Approx(all[(i < 3 ? 3 : 6) + i]).epsilon(1e-13));
      CHECK(outputs_of(model, task, {}, 2, dropout) == all);
    }
  }
}

TEST_CASE("pooled networks: the order of graphs and of nodes changes nothing") {
  using Model = PooledModel<Nsd<GeneralLinear<2>, double>>;
  const Task task, other({2, 0, 3, 1}, true);
  for (const Pooling pooling : poolings) {
    CAPTURE(sheafnn::to_string(pooling));
    const Model model(options(pooling), 5);
    const std::vector<double> one = outputs_of(model, task), two = outputs_of(model, other);
    const std::size_t place[] = {2, 0, 3, 1};
    for (std::size_t g = 0; g < 4; ++g) {
      for (std::size_t c = 0; c < 3; ++c)
        CHECK(two[3 * g + c] == doctest::Approx(one[3 * place[g] + c]).epsilon(1e-11));
    }
  }
}

TEST_CASE("pooled networks: one graph has the mean of the node network's outputs") {
  using NodeModel = Nsd<Diagonal<2>, double>;
  const tiny::Task task;
  const PooledModel<NodeModel> model({tiny::options(), Pooling::mean}, 3);
  const NodeModel node_model(tiny::options(), 3);
  REQUIRE(node_model.parameters().size() == model.parameters().size());
  Network<PooledModel<NodeModel>> network(model, task.graph, task.sparse);
  Network<NodeModel> node_network(node_model, task.graph, task.sparse);
  const auto y = network.forward({}), of_nodes = node_network.forward({});
  REQUIRE(y.rows() == 1);
  for (Index c = 0; c < 3; ++c) {
    double mean = 0;
    for (Index u = 0; u < 7; ++u) mean += of_nodes(u, c) / 7;
    CHECK(y(0, c) == doctest::Approx(mean).epsilon(1e-13));
  }
}

TEST_CASE("pooled networks: training, prediction, and no leak from graphs that are not trained on") {
  using Model = PooledModel<Bsnn<Diagonal<2>, double>>;
  const Task task;
  const sheafnn::Split split{{0, 3}, {1}, {2}};
  const auto train = [&](const Task& on, Index batch) {
    Model model(PooledOptions{{.features = 4, .channels = 2, .layers = 2, .classes = 3}, Pooling::mean}, 1);
    const auto result = sheafnn::train(model, on.graph, on.sparse, Classification(on.labels), split,
                                       {.epochs = 5, .kl_maximum = 0.1, .batch_size = batch, .threads = 1});
    CHECK(std::isfinite(result.test_nll));
    return model;
  };
  const Model model = train(task, 0);
  const sheafnn::Prediction prediction = sheafnn::predict(model, task.graph, task.sparse);
  CHECK(prediction.label.size() == 4);
  CHECK(prediction.probabilities.size() == 12);
  // Other features, and another label, of the test graph.
  Task changed;
  std::vector<double> values(task.sparse.values().begin(), task.sparse.values().end());
  for (Index u = task.graph.first_node(2); u < task.graph.first_node(3); ++u) {
    for (Index k = task.sparse.offsets()[static_cast<std::size_t>(u)];
         k < task.sparse.offsets()[static_cast<std::size_t>(u) + 1]; ++k)
      values[static_cast<std::size_t>(k)] += 5;
  }
  changed.sparse =
      sheafnn::NodeFeatures::from_csr({task.sparse.offsets().begin(), task.sparse.offsets().end()},
                                      {task.sparse.column_of().begin(), task.sparse.column_of().end()}, values, 4);
  changed.labels[2] = 0;
  for (const Index batch : {0, 1}) {
    const Model one = train(task, batch), other = train(changed, batch);
    for (Index i = 0; i < one.parameters().size(); ++i)
      CHECK(one.parameters().values()[i] == other.parameters().values()[i]);
  }
}

TEST_CASE("pooled networks: mini-batches of graphs") {
  using Model = PooledModel<Bsnn<Diagonal<2>, double>>;
  const Task task;
  const sheafnn::Split split{{0, 1, 3}, {2}, {}};
  const auto train = [&](Index batch, int threads, Index epochs, const sheafnn::TrainingState* resume,
                         sheafnn::TrainingState* last) {
    Model model(PooledOptions{{.features = 4, .channels = 2, .layers = 2, .classes = 3}, Pooling::attention}, 1);
    sheafnn::TrainOptions of;
    of.epochs = epochs;
    of.kl_maximum = 0.1;
    of.batch_size = batch;
    of.threads = threads;
    of.resume = resume;
    if (last != nullptr) of.on_checkpoint = [=](const sheafnn::TrainingState& state) { *last = state; };
    sheafnn::train(model, task.graph, task.sparse, Classification(task.labels), split, of);
    return std::vector<double>(model.parameters().values().begin(), model.parameters().values().end());
  };
  const auto whole = train(0, 1, 6, nullptr, nullptr), two = train(2, 1, 6, nullptr, nullptr);
  CHECK(train(3, 1, 6, nullptr, nullptr) == whole);
  CHECK(two != whole);
  CHECK(train(2, 2, 6, nullptr, nullptr) == two);
  sheafnn::TrainingState state;
  static_cast<void>(train(2, 1, 3, nullptr, &state));
  CHECK(train(2, 1, 6, &state, nullptr) == two);  // goes on from the third epoch
}

TEST_CASE("pooled networks: checkpoints") {
  using Model = PooledModel<Nsd<Diagonal<2>, double>>;
  const Task task;
  PooledOptions of = options(Pooling::attention);
  of.pooling_steps = 5;
  const Model model(of, 5);
  const Model loaded = sheafnn::io::from_tensors<Model>("file", sheafnn::io::to_tensors(model));
  CHECK(loaded.options() == model.options());
  CHECK(outputs_of(loaded, task) == outputs_of(model, task));
}

TEST_CASE("pooled networks: errors") {
  using Model = PooledModel<Nsd<Diagonal<2>, double>>;
  PooledOptions of = options(Pooling::harmonic);
  of.normalisation = sheafnn::Normalisation::none;
  CHECK_THROWS_WITH(Model(of, 1), "normalisation: none is not allowed; harmonic pooling needs augmented or block");
  of = options(Pooling::harmonic);
  of.pooling_steps = 0;
  CHECK_THROWS_WITH(Model(of, 1), "pooling_steps: 0 is not allowed; must be between 1 and 256");
  const Task task;
  const Model model(options(Pooling::mean), 1);
  Network<Model> network(model, task.graph, task.sparse);
  CHECK_THROWS_AS(network.begin({}).begin_backward(), std::logic_error);
  CHECK_THROWS_AS(network.begin({.training = true}).network().backward(network.output_bar()), std::logic_error);
  const std::vector<std::int32_t> first = {0, 1}, second = {2, 3};
  const auto sample = network.begin({.training = true, .nodes = first}).draw();
  auto backward = network.begin({.training = true, .nodes = second}).begin_backward();
  CHECK_THROWS_AS(backward.add(sample, network.output_bar()), std::logic_error);
  const std::vector<std::int32_t> none = {4};
  CHECK_THROWS_WITH(network.begin({.nodes = none}), "nodes[0]: 4 is not allowed; must be between 0 and 3");
}

}  // namespace test_pooled_network
