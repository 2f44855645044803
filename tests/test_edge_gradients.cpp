/// \file
/// Losses of pairs of nodes: the gradient of every parameter, the head's and the sheaf learner's included, against central
/// differences along every coordinate; values against direct formulas; the same bits for any number of threads.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "model_gradient.hpp"
#include "sheafnn/bsnn/edge_loss.hpp"
#include "sheafnn/bsnn/edge_prediction.hpp"
#include "sheafnn/bsnn/elbo.hpp"
#include "sheafnn/bsnn/model.hpp"
#include "sheafnn/sheaf/families.hpp"
#include "tiny_task.hpp"

namespace test_edge_gradients {
namespace {

using sheafnn::Index;
using sheafnn::MatrixView;
using sheafnn::PairScore;

/// Pairs of the tiny task's nodes, one of them twice, in both orders.
struct Pairs : sheafnn::EdgeTargets {
  std::vector<double> values;
  std::vector<std::int32_t> all = {0, 1, 2, 3, 5, 6};

  Pairs() {
    graph = tiny::Task().graph;
    pairs = {{0, 1}, {4, 2}, {2, 5}, {6, 0}, {1, 6}, {1, 0}, {3, 5}};
    labels = {1, 0, 2, 1, -1, 0, 2};
    for (Index i = 0; i < 14; ++i) values.push_back(tiny::number(5, i));
    values[3] = std::nan("");
  }
};

struct Case {
  std::string name;
  PairScore score;
  bool dropout = false, linear = false;
  Index samples = 1, learner_layers = 0;
};

template <class Model, class Loss>
void check_gradient(const Loss& loss, const Pairs& targets, const Case& of, sheafnn::ModelOptions options) {
  CAPTURE(Model::Family::name);
  CAPTURE(Model::bayesian);
  CAPTURE(of.name);
  const tiny::Task task;
  options.classes = 4;
  options.linear = of.linear;
  options.learner_layers = of.learner_layers;
  Model model(options, 7);
  loss.prepare(model, 3);
  auto& parameters = model.parameters();
  tiny::disturb(parameters, 8, 0.3);
  sheafnn::Network<Model> network(model, task.graph, task.sparse, 2);
  const sheafnn::ForwardPass<double> pass{.seed = 9,
                                          .epoch = 10,
                                          .training = true,
                                          .input_dropout = of.dropout ? 0.3 : 0,
                                          .dropout = of.dropout ? 0.4 : 0};
  const auto objective = [&] {
    return sheafnn::elbo(network, pass, loss, targets.all, {.kl_weight = 0.3, .samples = of.samples}).objective;
  };
  objective();
  const sheafnn::Buffer<double> gradient = network.gradient();
  const auto comparison = model_gradient::compare_gradient(parameters, gradient, objective);
  INFO(comparison.where);
  CHECK(comparison.worst <= 1);
  double largest = 0;  // of the head's parameters: they are not left out
  for (const auto& info : parameters.info()) {
    if (info.name.rfind("loss.", 0) != 0) continue;
    for (Index i = 0; i < info.size; ++i) largest = std::max(largest, std::abs(gradient[info.offset + i]));
  }
  CHECK(largest > 1e-4);
}

template <class Model>
void check_model(bool many) {
  const Pairs targets;
  Pairs two = targets;
  for (std::int32_t& label : two.labels) label = std::min(label, 1);
  const MatrixView<const double> values(targets.values.data(), 7, 2);
  for (const PairScore score : {PairScore::dot, PairScore::bilinear, PairScore::energy}) {
    const std::string name(to_string(score));
    check_gradient<Model>(sheafnn::link_loss(two, score), two, {name + " links", score}, tiny::options());
    if (!many && score != PairScore::energy) continue;
    check_gradient<Model>(sheafnn::edge_class_loss(targets, 3, score), targets,
                          {name + " classes", score, true, false, 2}, tiny::options());
    check_gradient<Model>(sheafnn::edge_regression_loss(targets, values, score, 0.7), targets,
                          {name + " numbers", score, false, true, 1, 1}, tiny::options());
  }
}

TEST_CASE("gradients of losses of pairs: rotations") {
  check_model<sheafnn::Bsnn<sheafnn::SpecialOrthogonal<2>, double>>(true);
  check_model<sheafnn::Nsd<sheafnn::SpecialOrthogonal<2>, double>>(false);
}
TEST_CASE("gradients of losses of pairs: diagonal maps") {
  check_model<sheafnn::Bsnn<sheafnn::Diagonal<2>, double>>(false);
  check_model<sheafnn::Nsd<sheafnn::Diagonal<2>, double>>(false);
}
TEST_CASE("gradients of losses of pairs: general maps") {
  check_model<sheafnn::Bsnn<sheafnn::GeneralLinear<2>, double>>(false);
  check_model<sheafnn::Nsd<sheafnn::GeneralLinear<2>, double>>(true);
}
TEST_CASE("gradients of losses of pairs: a separate encoder, edge weights, degrees, filters, one coordinate") {
  const Pairs targets;
  Pairs two = targets;
  for (std::int32_t& label : two.labels) label = std::min(label, 1);
  auto options = tiny::options();
  options.separate_encoder = true;
  options.degree_input = true;
  options.edge_weights = true;
  options.add_lp = true;
  const Case energy{"energy", PairScore::energy, true, false, 2};
  check_gradient<sheafnn::Bsnn<sheafnn::SpecialOrthogonal<2>, double>>(sheafnn::link_loss(two, PairScore::energy), two, energy,
                                                                       options);
  options = tiny::options();
  options.edge_weights = true;
  check_gradient<sheafnn::Nsd<sheafnn::SpecialOrthogonal<2>, double>>(sheafnn::link_loss(two, PairScore::energy), two, energy,
                                                                      options);
  options.edge_weights = false;
  options.layers = 1;
  check_gradient<sheafnn::Nsd<sheafnn::Diagonal<1>, double>>(sheafnn::link_loss(two, PairScore::energy), two, energy, options);
  check_gradient<sheafnn::Nsd<sheafnn::Identity<2>, double>>(sheafnn::link_loss(two, PairScore::energy), two, energy, options);
}

TEST_CASE("scores of pairs equal direct formulas") {
  using Model = sheafnn::Nsd<sheafnn::Diagonal<2>, double>;
  const tiny::Task task;
  auto options = tiny::options();
  options.classes = 4;
  const std::vector<sheafnn::Edge> pairs = {{0, 3}, {6, 1}, {2, 1}};
  for (const PairScore score : {PairScore::dot, PairScore::bilinear, PairScore::energy}) {
    Model model(options, 4);
    sheafnn::add_pair_head(model, {.score = score}, 1);
    tiny::disturb(model.parameters(), 8, 0.3);
    const auto prediction = sheafnn::predict_links(model, task.graph, task.sparse, pairs, score);
    sheafnn::Network<Model> network(model, task.graph, task.sparse);
    const auto y = network.begin({}).draw().view();
    const auto& parameters = model.parameters();
    const auto value = [&](const std::string& name) {
      return parameters.get(parameters.find(name), parameters.values());
    };
    const std::string prefix = "loss." + std::string(to_string(score));
    for (std::size_t t = 0; t < pairs.size(); ++t) {
      const auto [u, v] = std::minmax(pairs[t].u, pairs[t].v);
      double s = 0;
      if (score == PairScore::dot) {
        for (Index j = 0; j < 4; ++j) s += y(u, j) * y(v, j);
      } else if (score == PairScore::bilinear) {
        const auto w = value(prefix + ".weight");
        for (Index i = 0; i < 4; ++i) {
          for (Index j = 0; j < 4; ++j) {
            s += (y(u, i) * y(v, j) + y(v, i) * y(u, j)) / 2 * w[static_cast<std::size_t>(4 * i + j)];
          }
        }
      } else {  // the maps of the last layer's learner, from what that layer reads
        const auto x = network.features_after(1);
        const auto w = value("sheaf.1.weight");
        const auto map = [&](Index from, Index to, Index i) {
          double raw = 0;
          for (Index k = 0; k < 4; ++k) {
            raw += w[static_cast<std::size_t>(8 * i + k)] * x.rows()(from, k) +
                   w[static_cast<std::size_t>(8 * i + 4 + k)] * x.rows()(to, k);
          }
          return std::tanh(raw);
        };
        for (Index i = 0; i < 2; ++i) {
          for (Index c = 0; c < 2; ++c) {
            const double r = map(u, v, i) * y(u, 2 * i + c) - map(v, u, i) * y(v, 2 * i + c);
            s -= r * r;
          }
        }
      }
      if (score != PairScore::bilinear) s *= std::exp(-value(prefix + ".log_temperature")[0]);
      s += value(prefix + ".bias")[0];
      CAPTURE(prefix);
      CHECK(std::abs(prediction.link[t] - 1 / (1 + std::exp(-s))) <= 1e-14);
    }
  }
}

TEST_CASE("an edge has the network's maps") {
  using Model = sheafnn::Nsd<sheafnn::GeneralLinear<2>, double>;
  const tiny::Task task;
  auto options = tiny::options();
  options.classes = 4;
  Model model(options, 4);
  sheafnn::add_pair_head(model, {.score = PairScore::energy});
  sheafnn::Network<Model> network(model, task.graph, task.sparse);
  const auto y = network.begin({.keep = true}).draw().view();
  // The outputs' energy under the last sheaf, edge by edge.
  const auto& source = network.sheaf_source();
  sheafnn::layers::EdgeBlocks<double> blocks(task.graph);
  sheafnn::PairScorer<Model> scorer;
  scorer.begin(network, {.score = PairScore::energy}, {task.graph.edges().begin(), task.graph.edges().end()});
  const auto scores = scorer.scores(network, y);
  constexpr int width = sheafnn::layers::EdgeBlocks<double>::width;
  for (Index e = 0; e < task.graph.edge_count(); ++e) {
    typename std::remove_cvref_t<decltype(source)>::Map map[2];
    source.map_block(source.stack().count() - 1, e / width, map);
    double energy = 0;
    for (int i = 0; i < 2; ++i) {
      for (Index c = 0; c < 2; ++c) {
        double r = 0;
        for (int side = 0; side < 2; ++side) {
          const Index node = side == 0 ? task.graph.edge(e).u : task.graph.edge(e).v;
          for (int j = 0; j < 2; ++j) {
            double entry[width];
            map[side](i, j).store(entry);
            r += (side == 0 ? 1 : -1) * entry[e % width] * y(node, 2 * j + c);
          }
        }
        energy += r * r;
      }
    }
    CHECK(std::abs(scores(scorer.row_of()[static_cast<std::size_t>(e)], 0) + energy) <=
          1e-14 * std::max(1.0, energy));
  }
}

}  // namespace
}  // namespace test_edge_gradients
