/// \file
/// Networks as a whole: seeds and noise, evaluation, several graphs, graphs without edges, initial parameters,
/// options that are refused. Values and gradients: test_gradients_*.cpp; threads: test_network_threads.cpp.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "map_kind.hpp"
#include "model_gradient.hpp"
#include "network_passes.hpp"
#include "sheafnn/bsnn/cooperative_network.hpp"
#include "sheafnn/bsnn/epoch_schedule.hpp"
#include "sheafnn/bsnn/network.hpp"
#include "sheafnn/flow.hpp"
#include "worst.hpp"

namespace test_network {
namespace {

using sheafnn::Bsnn;
using sheafnn::Buffer;
using sheafnn::Diagonal;
using sheafnn::Identity;
using sheafnn::Index;
using sheafnn::ModelOptions;
using sheafnn::Network;
using sheafnn::Nsd;
using sheafnn::SpecialOrthogonal;
using test::MapKind;

using Doubles = std::vector<double>;
constexpr double epsilon = std::numeric_limits<double>::epsilon();

/// Log-probabilities of the last pass, n × C.
template <class Model>
Doubles outputs(const Network<Model>& network, Index classes) {
  CHECK(network.outputs().columns() == classes);
  return test::last_outputs(network);
}
double largest_difference(const Doubles& a, const Doubles& b) {
  double worst = a.size() == b.size() ? 0 : std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) worst = test::worse(worst, std::abs(a[i] - b[i]));
  return worst;
}

/// Log-probabilities of every sample of an evaluation.
template <class Model>
std::vector<Doubles> evaluate(Network<Model>& network, const Model& model, std::uint64_t seed, std::uint32_t epoch,
                              Index samples) {
  std::vector<Doubles> r;
  const Index drawn = test::evaluate(network, seed, epoch, samples, [&](Index k) {
    CHECK(k == static_cast<Index>(r.size()));
    r.push_back(outputs(network, model.options().classes));
  });
  CHECK(drawn == static_cast<Index>(r.size()));
  return r;
}

/// A model of the tiny task with parameters that are not special.
template <class Model>
Model tiny_model(const typename Model::Options& options = tiny::options()) {
  Model model(options, 5);
  tiny::disturb(model.parameters(), 6, 0.3);
  return model;
}

template <class S>
test::TrainingPass<S> pass_of(const tiny::Task& task, std::uint64_t seed, std::uint32_t epoch, double dropout) {
  test::TrainingPass<S> pass;
  pass.labels = task.labels;
  pass.nodes = task.train;
  pass.seed = seed;
  pass.epoch = epoch;
  pass.dropout = dropout;
  pass.input_dropout = dropout;
  return pass;
}

template <class Model>
test::PassResult tiny_pass(Network<Model>& network, const tiny::Task& task, std::uint64_t seed,
                           std::uint32_t epoch, double dropout) {
  return test::train_pass(network, pass_of<typename Model::Scalar>(task, seed, epoch, dropout));
}

template <class Model>
void check_seeds() {
  CAPTURE(Model::Family::name);
  CAPTURE(Model::bayesian);
  constexpr bool sampled = Model::bayesian && test::kind_of<typename Model::Family> != MapKind::fixed;
  const tiny::Task task;
  const Model model = tiny_model<Model>();
  Network<Model> network(model, task.graph, task.sparse);
  const auto trained = [&](std::uint64_t seed, std::uint32_t epoch, double dropout) {
    tiny_pass(network, task, seed, epoch, dropout);
    return outputs(network, task.classes);
  };
  for (const double dropout : {0.0, 0.4}) {
    CAPTURE(dropout);
    const bool random = sampled || dropout > 0;
    const Doubles base = trained(1, 2, dropout);
    CHECK((trained(3, 2, dropout) == base) == !random);
    CHECK((trained(1, 3, dropout) == base) == !random);
    CHECK((trained((std::uint64_t{1} << 32) + 1, 2, dropout) == base) == !random);
    CHECK(trained(1, 2, dropout) == base);
  }
  // Evaluation has no dropout, and noise of its own in every sample.
  const std::vector<Doubles> samples = evaluate(network, model, 1, 2, 4);
  CHECK(samples.size() == (sampled ? 4 : 1));
  for (std::size_t i = 0; i < samples.size(); ++i) {
    CHECK((samples[i] == trained(1, 2, 0.0)) == !sampled);
    for (std::size_t j = 0; j < i; ++j) CHECK(samples[i] != samples[j]);
  }
  CHECK(evaluate(network, model, 1, 2, 4) == samples);
  CHECK(evaluate(network, model, 1, 2, 2).front() == samples.front());
  CHECK((evaluate(network, model, 2, 2, 1).front() == samples.front()) == !sampled);
  CHECK((evaluate(network, model, 1, 3, 1).front() == samples.front()) == !sampled);
}

/// A schedule's evaluations and training passes give what each would compute by itself, whatever the order.
template <class Model>
void check_schedule(const typename Model::Options& options, double input_dropout, double dropout) {
  CAPTURE(Model::Family::name);
  CAPTURE(Model::bayesian);
  CAPTURE(input_dropout);
  CAPTURE(dropout);
  const tiny::Task task;
  const Model model = tiny_model<Model>(options);
  Network<Model> plain(model, task.graph, task.sparse);
  const auto pass_of_epoch = [&](std::uint32_t epoch) {
    test::TrainingPass<double> pass = pass_of<double>(task, 1, epoch, dropout);
    pass.input_dropout = input_dropout;
    pass.samples = 2;
    return pass;
  };
  const auto gradient_of = [&](std::uint32_t epoch) {
    test::train_pass(plain, pass_of_epoch(epoch));
    return Doubles(plain.gradient().begin(), plain.gradient().end());
  };
  const std::vector<Doubles> samples = evaluate(plain, model, 1, 2, 3);

  constexpr std::uint32_t epochs = 30;  // all variants are tried, six epochs each
  const sheafnn::Classification loss(task.labels);
  sheafnn::detail::EpochSchedule<Model> schedule(model, task.graph, task.sparse, 2);
  std::vector<Doubles> gradients;
  const auto objective = [&](const sheafnn::BegunPass<Network<Model>>& pass) {
    sheafnn::detail::elbo_of_begun(pass, loss, task.train, {.samples = 2});
    gradients.emplace_back(pass.network().gradient().begin(), pass.network().gradient().end());
  };
  schedule.first(pass_of_epoch(0).forward(), objective);
  for (std::uint32_t epoch = 0; epoch < epochs; ++epoch) {
    CAPTURE(epoch);
    schedule.begin_epoch();
    const auto next = pass_of_epoch(epoch + 1).forward();
    std::vector<Doubles> evaluated;
    const bool last = epoch + 1 == epochs;
    const auto keep = [&](const sheafnn::BegunPass<Network<Model>>& pass) {
      pass.draw_samples(3, [&](const auto& rows) {
        sheafnn::layers::log_softmax_rows(1, rows.rows(), rows.columns(), rows.data(), rows.stride());
        evaluated.push_back(test::last_outputs(pass.network()));
      });
    };
    CHECK(schedule.run(
              {.seed = 1, .epoch = 2}, last ? nullptr : &next, keep, [] { return true; }, objective) == !last);
    CHECK(evaluated == samples);
  }
  REQUIRE(gradients.size() == epochs);
  for (std::uint32_t epoch = 0; epoch < epochs; ++epoch) {
    CAPTURE(epoch);
    CHECK(gradients[epoch] == gradient_of(epoch));
  }
}

/// Passes for some nodes alone give their outputs, and the same loss and gradient.
template <class Model>
void check_selection(ModelOptions options) {
  CAPTURE(Model::Family::name);
  const tiny::Task task;
  const std::vector<std::int32_t> nodes = {1, 2, 5};
  options.add_hp = true;
  const Model model = tiny_model<Model>(options);
  Network<Model> network(model, task.graph, task.sparse);
  test::TrainingPass<double> pass;
  pass.labels = task.labels;
  pass.nodes = nodes;
  pass.dropout = 0.3;
  pass.kl_weight = 0.1;
  pass.samples = 2;
  const double loss = test::train_pass(network, pass).loss;
  const Buffer<double> gradient = network.gradient();
  std::vector<Doubles> trained = {outputs(network, task.classes)}, predicted = evaluate(network, model, 1, 2, 2);

  const auto check_rows = [&](const Doubles& some, const Doubles& all) {
    const Index classes = task.classes;
    for (Index k = 0; k < static_cast<Index>(nodes.size()); ++k) {
      const auto row = all.begin() + nodes[static_cast<std::size_t>(k)] * classes;
      CHECK(std::equal(row, row + classes, some.begin() + k * classes));
    }
  };
  pass.only_nodes = true;
  for (int repeat = 0; repeat < 2; ++repeat) {
    CHECK(test::train_pass(network, pass).loss == loss);
    check_rows(outputs(network, task.classes), trained.front());
    double largest = 0, worst = 0;
    for (Index i = 0; i < gradient.size(); ++i) {
      largest = std::max(largest, std::abs(gradient[i]));
      worst = test::worse(worst, std::abs(network.gradient()[i] - gradient[i]));
    }
    CHECK(worst <= 16 * epsilon * largest);  // sums of 21 numbers at most, in two orders
  }
  const auto check_sample = [&](Index k) {
    check_rows(outputs(network, task.classes), predicted.at(static_cast<std::size_t>(k)));
  };
  test::evaluate(network, 1, 2, 2, check_sample, {}, nodes);
}

/// Evaluation against the reference, and explicit noise equal to the stream's.
template <class Model>
void check_noise() {
  CAPTURE(Model::Family::name);
  const tiny::Task task;
  const Model model = tiny_model<Model>();
  Network<Model> network(model, task.graph, task.sparse);
  constexpr Index samples = 2;
  const std::vector<Doubles> drawn = evaluate(network, model, 11, 12, samples);
  reference::Problem problem = model_gradient::problem_of(model, task);
  problem.noise = model_gradient::draw_noise(model, task.graph, 11, 12, 0x8000, samples);
  problem.samples = samples;

  std::vector<Doubles> rows;
  std::vector<std::span<const double>> noise;
  for (const reference::Matrix& matrix : problem.noise) {
    Doubles& values = rows.emplace_back();
    for (Index i = 0; i < matrix.size(); ++i) {
      values.push_back(static_cast<double>(matrix(i / matrix.cols(), i % matrix.cols())));
    }
  }
  for (const Doubles& values : rows) noise.emplace_back(values);
  std::vector<Doubles> given;
  test::evaluate(
      network, 999, 999, samples, [&](Index) { given.push_back(outputs(network, task.classes)); }, noise);
  REQUIRE(given.size() == drawn.size());
  // Packs and scalars differ in the last places of their elementary functions.
  for (std::size_t k = 0; k < given.size(); ++k) CHECK(largest_difference(given[k], drawn[k]) <= 512 * epsilon);

  const reference::Result expected = reference::forward(problem);
  Doubles exact;
  for (Index u = 0; u < task.nodes; ++u) {
    for (Index c = 0; c < task.classes; ++c)
      exact.push_back(static_cast<double>(expected.log_probabilities(u, c)));
  }
  CHECK(largest_difference(drawn.back(), exact) <= 512 * epsilon * 8);  // log-probabilities down to −8

  // In training, with K = 2.
  test::TrainingPass<double> pass;
  pass.labels = task.labels;
  pass.nodes = task.train;
  pass.samples = samples;
  pass.noise = noise;
  test::train_pass(network, pass);
  CHECK(largest_difference(outputs(network, task.classes), given.back()) == 0);
}

/// Nodes, edges, features and nothing else decide: the union of two graphs is predicted as each alone.
template <class Model>
void check_union() {
  CAPTURE(Model::Family::name);
  const tiny::Task first(1), second(2);
  const Model model = tiny_model<Model>();
  const auto predict = [&](const sheafnn::Graph& graph, const Doubles& dense) {
    const auto features = sheafnn::NodeFeatures::from_dense(std::span<const double>(dense), graph.node_count(), 4);
    Network<Model> network(model, graph, features);
    return evaluate(network, model, 0, 0, 1).front();
  };
  // The second graph: without its edge {3, 4}.
  std::vector<sheafnn::Edge> edges, all(first.graph.edges().begin(), first.graph.edges().end());
  for (const sheafnn::Edge& e : second.graph.edges()) {
    if (e.u == 3 && e.v == 4) continue;
    edges.push_back(e);
    all.push_back({e.u + 7, e.v + 7});
  }
  Doubles dense = first.dense;
  dense.insert(dense.end(), second.dense.begin(), second.dense.end());
  Doubles apart = predict(first.graph, first.dense);
  const Doubles other = predict(sheafnn::Graph(7, edges), second.dense);
  CHECK(largest_difference(apart, other) > 0.01);
  apart.insert(apart.end(), other.begin(), other.end());
  CHECK(largest_difference(predict(sheafnn::Graph(14, all), dense), apart) <= 64 * epsilon);

  // And the numbering of the nodes does not matter.
  const std::int32_t place[] = {4, 2, 6, 0, 1, 5, 3};
  std::vector<sheafnn::Edge> moved;
  for (const sheafnn::Edge& e : first.graph.edges()) moved.push_back({place[e.u], place[e.v]});
  Doubles moved_features(first.dense.size()), expected(static_cast<std::size_t>(7 * 3));
  const Doubles before = predict(first.graph, first.dense);
  for (Index u = 0; u < 7; ++u) {
    std::copy_n(first.dense.begin() + u * 4, 4, moved_features.begin() + place[u] * 4);
    std::copy_n(before.begin() + u * 3, 3, expected.begin() + place[u] * 3);
  }
  CHECK(largest_difference(predict(sheafnn::Graph(7, moved), moved_features), expected) <= 256 * epsilon);
}

/// Graphs with nothing to sample.
template <class Model>
void check_without_edges() {
  CAPTURE(Model::Family::name);
  const Model model = tiny_model<Model>();
  for (const Index n : {1, 7}) {
    const sheafnn::Graph graph(n, {});
    const tiny::Task task;
    const auto features = sheafnn::NodeFeatures::from_dense(
        std::span<const double>(task.dense).first(static_cast<std::size_t>(n * task.features)), n, task.features);
    Network<Model> network(model, graph, features, 2);
    test::TrainingPass<double> pass;
    const std::vector<std::int32_t> nodes = {0};
    pass.labels = std::span(task.labels).first(static_cast<std::size_t>(n));
    pass.nodes = nodes;
    pass.kl_weight = 1;
    const test::PassResult result = test::train_pass(network, pass);
    CHECK(result.kl == 0);
    CHECK(result.nll > 0);
    CHECK(std::isfinite(result.nll));
    const Buffer<double>& gradient = network.gradient();
    CHECK(std::all_of(gradient.begin(), gradient.end(), [](double x) { return std::isfinite(x); }));
    CHECK(std::any_of(gradient.begin(), gradient.end(), [](double x) { return x != 0; }));
  }
}

/// Values of a parameter, with the bound and the variance they should have.
void check_uniform(const std::vector<float>& values, double fan_in) {
  const double bound = 1 / std::sqrt(fan_in), n = static_cast<double>(values.size());
  double squares = 0, sum = 0;
  bool inside = true;
  for (const float x : values) {
    inside = inside && std::abs(x) <= bound;
    sum += x;
    squares += static_cast<double>(x) * x;
  }
  CHECK(inside);
  // Mean 0 with variance bound²/3; mean square bound²/3 with variance 4/45 bound⁴. Five standard errors.
  CHECK(std::abs(sum / n) <= 5 * bound / std::sqrt(3 * n));
  CHECK(std::abs(squares / n - bound * bound / 3) <= 5 * bound * bound * std::sqrt(4.0 / 45 / n));
}

template <class Model>
void check_refused(const std::string& message, const ModelOptions& options) {
  CAPTURE(message);
  CHECK_THROWS_WITH_AS(Model model(options), message.c_str(), std::invalid_argument);
}

}  // namespace

TEST_CASE("passes for some nodes alone") {
  for (const bool linear : {false, true}) {
    for (const Index layers : {1, 3}) {
      CAPTURE(linear);
      CAPTURE(layers);
      ModelOptions options = tiny::options();
      options.linear = linear;
      options.layers = layers;
      check_selection<Bsnn<Diagonal<2>, double>>(options);
      check_selection<Nsd<SpecialOrthogonal<2>, double>>(options);
      check_selection<Bsnn<sheafnn::GeneralLinear<3>, double>>(options);
      check_selection<Nsd<sheafnn::Identity<2>, double>>(options);
    }
  }
}

TEST_CASE("random numbers depend on seed, epoch and sample, and on nothing else") {
  check_seeds<Bsnn<Diagonal<2>, double>>();
  check_seeds<Bsnn<SpecialOrthogonal<3>, double>>();
  check_seeds<Bsnn<Identity<2>, double>>();
  check_seeds<Nsd<Diagonal<2>, double>>();
}

TEST_CASE("network: passes with the same parameters may share what they begin with") {
  for (const bool second_layer : {false, true}) {
    CAPTURE(second_layer);
    ModelOptions options = tiny::options();
    options.second_linear = second_layer;
    check_schedule<Nsd<Diagonal<2>, double>>(options, 0.5, 0.3);
    for (const bool separate_encoder : {false, true}) {
      CAPTURE(separate_encoder);
      options.separate_encoder = separate_encoder;
      check_schedule<Bsnn<Diagonal<2>, double>>(options, 0.4, 0.4);
      check_schedule<Bsnn<SpecialOrthogonal<3>, double>>(options, 0.4, 0.0);
      check_schedule<Bsnn<sheafnn::GeneralLinear<2>, double>>(options, 0.0, 0.4);
    }
  }
  check_schedule<Nsd<SpecialOrthogonal<2>, double>>(tiny::options(), 0.0, 0.0);
  sheafnn::FlowOptions flow;
  flow.features = tiny::Task::features;
  flow.classes = tiny::Task::classes;
  flow.channels = 2;
  check_schedule<sheafnn::SheafFlow<Diagonal<2>, double>>(flow, 0.5, 0.3);
  check_schedule<sheafnn::BayesianSheafFlow<SpecialOrthogonal<2>, double>>(flow, 0.4, 0.4);
}

TEST_CASE("network: an exception in draw_samples() leaves nothing to the passes that follow") {
  const tiny::Task task;
  Bsnn<SpecialOrthogonal<3>, double> model = tiny_model<Bsnn<SpecialOrthogonal<3>, double>>(tiny::options());
  Network network(model, task.graph, task.sparse);
  const auto pass = network.begin({});
  int draws = 0;
  const auto stop = [&](const auto&) {
    if (++draws == 2) throw std::runtime_error("stop");
  };
  CHECK_THROWS_WITH_AS(pass.draw_samples(3, stop), "stop", std::runtime_error);
  for (double& value : model.parameters().values()) value *= 1.25;
  network.forward();
  Network fresh(model, task.graph, task.sparse);
  fresh.forward();
  CHECK(test::last_outputs(network) == test::last_outputs(fresh));
}

TEST_CASE("evaluation against dense matrices; explicit noise equals the same noise from a stream") {
  check_noise<Bsnn<Diagonal<2>, double>>();
  check_noise<Bsnn<SpecialOrthogonal<3>, double>>();
}

TEST_CASE("the same model on several graphs") {
  check_union<Nsd<Diagonal<2>, double>>();
  check_union<Bsnn<Identity<2>, double>>();
}

TEST_CASE("graphs without edges, and a single node") {
  check_without_edges<Bsnn<SpecialOrthogonal<3>, double>>();
  check_without_edges<Bsnn<Diagonal<2>, double>>();
  check_without_edges<Nsd<Diagonal<2>, double>>();
}

TEST_CASE("single precision follows double precision") {
  const tiny::Task task;
  const auto of_double = tiny_model<Bsnn<SpecialOrthogonal<3>, double>>();
  Bsnn<SpecialOrthogonal<3>> of_float(tiny::options(), 5);
  tiny::disturb(of_float.parameters(), 6, 0.3);
  Network<Bsnn<SpecialOrthogonal<3>, double>> exact(of_double, task.graph, task.sparse);
  Network<Bsnn<SpecialOrthogonal<3>>> rounded(of_float, task.graph, task.sparse);
  const test::PassResult a = tiny_pass(exact, task, 1, 2, 0.0);
  const test::PassResult b = tiny_pass(rounded, task, 1, 2, 0.0);
  // Uniform numbers have 23 bits in single precision and 32 in double: angles and normals differ by 2⁻²³ of their
  // range.
  constexpr double bound = 128 * static_cast<double>(std::numeric_limits<float>::epsilon());
  CHECK(std::abs(a.loss - b.loss) <= bound * a.loss);
  CHECK(std::abs(a.kl - b.kl) <= bound * a.kl);
  CHECK(a.loss != b.loss);
}

TEST_CASE("initial parameters") {
  ModelOptions options;
  options.features = 300;
  options.channels = 12;
  options.layers = 2;
  options.classes = 7;
  options.second_linear = true;
  options.degree_input = true;
  options.learner_layers = 1;
  options.learner_width = 20;
  using Model = Bsnn<SpecialOrthogonal<3>>;
  const Model model(options, 17);
  const auto& parameters = model.parameters();
  const auto get = [&](const std::string& name) {
    return parameters.get(parameters.find(name), parameters.values());
  };
  const double h = 36;
  check_uniform(get("lin1.weight"), 300);
  check_uniform(get("lin1.bias"), 300);
  check_uniform(get("lin12.weight"), h);
  check_uniform(get("lin12.bias"), h);
  check_uniform(get("lin_maps.weight"), 301);
  check_uniform(get("lin_maps.bias"), 301);
  check_uniform(get("sheaf.hidden.0.weight"), 2 * h);
  check_uniform(get("sheaf.mean.weight"), 20);
  check_uniform(get("sheaf.var.weight"), 20);
  check_uniform(get("edge.weight"), 2 * h);
  check_uniform(get("lin2.weight"), h);
  for (const std::string layer : {"0", "1"}) {
    const std::vector<float> left = get("left." + layer), right = get("right." + layer), eps = get("eps." + layer);
    CHECK(left == std::vector<float>{1, 0, 0, 0, 1, 0, 0, 0, 1});
    CHECK(eps == std::vector<float>(3, 0.0F));
    double worst = 0;
    for (std::size_t i = 0; i < 12; ++i) {
      for (std::size_t j = 0; j < 12; ++j) {
        double product = i == j ? -1 : 0;
        for (std::size_t k = 0; k < 12; ++k) product += static_cast<double>(right[i * 12 + k]) * right[j * 12 + k];
        worst = test::worse(worst, std::abs(product));
      }
    }
    CHECK(worst <= 12 * static_cast<double>(std::numeric_limits<float>::epsilon()));
  }
  CHECK(get("right.0") != get("right.1"));
  const auto same = [&](const Model& other) {
    return std::equal(parameters.values().begin(), parameters.values().end(), other.parameters().values().begin());
  };
  CHECK(same(Model(options, 17)));
  CHECK_FALSE(same(Model(options, 18)));
}

TEST_CASE("which parameters a model has") {
  const auto names = [](const auto& model) {
    std::string r;
    for (const sheafnn::layers::ParameterInfo& info : model.parameters().info()) {
      r += sheafnn::detail::concat(r.empty() ? "" : " ", info.name);
      for (std::size_t i = 0; i < info.shape.size(); ++i)
        r += sheafnn::detail::concat(i == 0 ? ":" : "x", info.shape[i]);
      if (info.group == sheafnn::layers::ParameterGroup::sheaf_learner) r += "*";
    }
    return r;
  };
  ModelOptions options = tiny::options();
  CHECK(
      names(Bsnn<Diagonal<2>, double>(options)) ==
      "lin1.weight:4x4 lin1.bias:4 sheaf.mean.weight:2x8* sheaf.var.weight:2x8* left.0:2x2 right.0:2x2 eps.0:2x1 "
      "left.1:2x2 right.1:2x2 eps.1:2x1 lin2.weight:3x4 lin2.bias:3");
  // A network for rotations has edge weights and, when Bayesian, a sheaf encoder, by default.
  CHECK(
      names(Bsnn<SpecialOrthogonal<3>, double>(options)) ==
      "lin1.weight:6x4 lin1.bias:6 lin_maps.weight:6x4* lin_maps.bias:6* sheaf.mean.weight:3x12* "
      "sheaf.var.weight:1x12* edge.weight:1x12* left.0:3x3 right.0:2x2 eps.0:3x1 left.1:3x3 right.1:2x2 eps.1:3x1 "
      "lin2.weight:3x6 lin2.bias:3");
  CHECK(
      names(Nsd<SpecialOrthogonal<2>>(options)) ==
      "lin1.weight:4x4 lin1.bias:4 sheaf.0.weight:1x8* edge.0.weight:1x8* sheaf.1.weight:1x8* edge.1.weight:1x8* "
      "left.0:2x2 right.0:2x2 eps.0:2x1 left.1:2x2 right.1:2x2 eps.1:2x1 lin2.weight:3x4 lin2.bias:3");
  options.linear = true;
  options.left_weights = options.right_weights = false;
  options.add_lp = true;
  options.learner_layers = 2;
  options.learner_width = 5;
  CHECK(
      names(Nsd<Diagonal<2>, double>(options)) ==
      "lin1.weight:6x4 lin1.bias:6 sheaf.0.hidden.0.weight:5x12* sheaf.0.hidden.1.weight:5x5* sheaf.0.weight:2x5* "
      "eps.0:3x1 eps.1:3x1 lin2.weight:3x6 lin2.bias:3");
}

TEST_CASE("options that are refused, by name, value and limit") {
  using Rotations = Bsnn<SpecialOrthogonal<3>>;
  const auto with = [](auto member, auto value) {
    ModelOptions options = tiny::options();
    options.*member = value;
    return options;
  };
  check_refused<Rotations>("features: 0 is not allowed; must be between 1 and 268435456",
                           with(&ModelOptions::features, 0));
  check_refused<Rotations>("channels: 1025 is not allowed; must be between 1 and 1024",
                           with(&ModelOptions::channels, 1025));
  check_refused<Rotations>("layers: 0 is not allowed; must be between 1 and 64", with(&ModelOptions::layers, 0));
  check_refused<Rotations>("classes: 0 is not allowed; must be between 1 and 1048576",
                           with(&ModelOptions::classes, 0));
  check_refused<Rotations>("learner_layers: 9 is not allowed; must be between 0 and 8",
                           with(&ModelOptions::learner_layers, 9));
  check_refused<Rotations>(
      "learner_width: -1 is not allowed; must be between 0 and 1024 (0: the number of channels)",
      with(&ModelOptions::learner_width, -1));
  check_refused<Nsd<Diagonal<2>>>("edge_weights: true is not allowed; diagonal maps have no edge weights",
                                  with(&ModelOptions::edge_weights, std::optional(true)));
  check_refused<Nsd<Diagonal<2>>>(
      "separate_encoder: true is not allowed; only Bayesian models with learned maps have a sheaf encoder",
      with(&ModelOptions::separate_encoder, std::optional(true)));
  check_refused<Bsnn<Diagonal<2>, double>>("degree_input: true is not allowed; needs separate_encoder",
                                           with(&ModelOptions::degree_input, true));
  check_refused<Bsnn<SpecialOrthogonal<4>>>(
      "parametrisation: euler is not allowed; Euler angles exist for stalk dimensions 2 and 3",
      with(&ModelOptions::parametrisation, sheafnn::rotation::RotationParametrisation::euler));
  using sheafnn::GeneralLinear;
  using sheafnn::SheafActivation;
  const ModelOptions attention = with(&ModelOptions::sheaf_activation, SheafActivation::attention);
  check_refused<Nsd<Diagonal<2>>>(
      "sheaf_activation: attention is not allowed; needs general linear maps of dimension 2 or more, not diagonal",
      attention);
  check_refused<Nsd<GeneralLinear<1>>>(
      "sheaf_activation: attention is not allowed; needs general linear maps of "
      "dimension 2 or more, not general-linear of 1",
      attention);
  check_refused<Bsnn<GeneralLinear<2>>>(
      "sheaf_activation: attention is not allowed; only deterministic models have such maps", attention);
  ModelOptions unaugmented = attention;
  unaugmented.normalisation = sheafnn::Normalisation::block;
  check_refused<Nsd<GeneralLinear<2>>>(
      "sheaf_activation: attention is not allowed; F 1 = 0: needs the normalisation augmented, not block",
      unaugmented);
  check_refused<Bsnn<Diagonal<2>>>(
      "sheaf_activation: exponential is not allowed; needs general linear maps of dimension 2 or more, not "
      "diagonal",
      with(&ModelOptions::sheaf_activation, SheafActivation::exponential));
  check_refused<Bsnn<SpecialOrthogonal<3>>>(
      "sheaf_activation: residual is not allowed; needs diagonal or general linear maps, not special-orthogonal",
      with(&ModelOptions::sheaf_activation, SheafActivation::residual));
  check_refused<Nsd<Identity<2>>>("sheaf_activation: elu is not allowed; identity maps are not learned",
                                  with(&ModelOptions::sheaf_activation, SheafActivation::elu));
  check_refused<Nsd<Identity<2>>>("learner: summed is not allowed; identity maps are not learned",
                                  with(&ModelOptions::learner, sheafnn::LearnerInput::summed));
  check_refused<Nsd<Identity<2>>>("edge_features: 2 is not allowed; identity maps are not learned",
                                  with(&ModelOptions::edge_features, 2));
  check_refused<Nsd<Diagonal<2>>>("edge_features: -1 is not allowed; must be between 0 and 1024",
                                  with(&ModelOptions::edge_features, -1));

  tiny::Task task;
  {
    const Nsd<Diagonal<2>> three(with(&ModelOptions::edge_features, 3));
    CHECK_THROWS_WITH_AS(Network<Nsd<Diagonal<2>>>(three, task.graph, task.sparse),
                         "arc features of the graph: 2 is not allowed; the sheaf learner reads 3",
                         std::invalid_argument);
    const std::vector<double> own(task.graph.arc_features().begin(), task.graph.arc_features().end());
    task.graph.set_arc_features(task.graph.arc_features(), task.graph.arc_feature_count());
    CHECK(std::equal(own.begin(), own.end(), task.graph.arc_features().begin()));
    CHECK_THROWS_WITH_AS(task.graph.set_arc_features(std::vector<double>(17), 1),
                         "arc features: 17 is not allowed; expected arcs * count = 18 * 1", std::invalid_argument);
    CHECK_THROWS_WITH_AS(task.graph.set_arc_features(std::vector<double>(18, std::nan("")), 1),
                         "arc features[0]: nan is not allowed; must be finite", std::invalid_argument);
  }
  {
    tiny::Task large;
    std::vector<double> values(static_cast<std::size_t>(large.graph.arc_count()), 0.5);
    values[5] = 1e300;  // a double, but no float
    large.graph.set_arc_features(values, 1);
    const Nsd<Diagonal<2>> one(with(&ModelOptions::edge_features, 1));
    CHECK_THROWS_WITH_AS(Network<Nsd<Diagonal<2>>>(one, large.graph, large.sparse),
                         "arc features[5, 0]: 1e+300 is not allowed; the model has numbers up to 3.40282e+38",
                         std::invalid_argument);
  }
  using Model = Nsd<Diagonal<2>, double>;
  const Model model(tiny::options());
  CHECK_THROWS_WITH_AS(Network<Model>(model, task.graph, task.sparse, 0),
                       "threads: 0 is not allowed; must be at least 1", std::invalid_argument);
  const sheafnn::Graph smaller(6, {});
  CHECK_THROWS_WITH_AS(Network<Model>(model, smaller, task.sparse),
                       "features.rows: 7 is not allowed; must equal the number of nodes, 6",
                       std::invalid_argument);
  const auto narrow = sheafnn::NodeFeatures::from_dense(std::span<const double>(task.dense).first(21), 7, 3);
  CHECK_THROWS_WITH_AS(Network<Model>(model, task.graph, narrow),
                       "features.columns: 3 is not allowed; the model was built for 4", std::invalid_argument);
}

TEST_CASE("a backward pass belongs to the last draw, and not to one before another begin()") {
  using Model = Bsnn<Diagonal<2>, double>;
  const tiny::Task task;
  const Model model({.features = tiny::Task::features, .classes = tiny::Task::classes});
  Network<Model> network(model, task.graph, task.sparse);
  network.forward({.training = true});
  const auto pass = network.begin({.epoch = 1, .training = true});
  CHECK_THROWS_AS(network.backward(network.output_bar()), std::logic_error);
  pass.draw();
  network.backward(network.output_bar());
}

/// Outputs and gradient of a training pass, and outputs of an evaluation, alone and from what share() has computed.
template <class Model>
void check_shared(const Model& model) {
  const tiny::Task task;
  using Pass = sheafnn::ForwardPass<double>;
  const Pass training{.seed = 3, .epoch = 2, .training = true, .input_dropout = 0.4, .dropout = 0.3},
      evaluation{.seed = 3, .epoch = 1};
  const auto pass_of = [&](Network<Model>& network, const Pass& pass, Network<Model>* shared) {
    network.begin(pass, shared).draw();
    return test::last_outputs(network);
  };
  const auto backward = [](Network<Model>& network) {
    for (Index i = 0; i < network.output_bar().rows(); ++i) {
      for (Index c = 0; c < network.output_bar().columns(); ++c)
        network.output_bar()(i, c) = tiny::number(9, 3 * i + c);
    }
    network.backward(network.output_bar(), {.kl_weight = 0.1});
    return Doubles(network.gradient().begin(), network.gradient().end());
  };
  Network<Model> alone(model, task.graph, task.sparse), network(model, task.graph, task.sparse),
      beside(model, task.graph, task.sparse);
  const Doubles evaluated = pass_of(alone, evaluation, nullptr), trained = pass_of(alone, training, nullptr);
  const Doubles gradient = backward(alone);
  CHECK(evaluated != trained);
  CHECK_THROWS_AS(network.begin(training, &network), std::logic_error);
  network.share(training);
  CHECK(pass_of(beside, evaluation, &network) == evaluated);
  CHECK(pass_of(network, evaluation, &network) == evaluated);
  CHECK(pass_of(network, training, &network) == trained);
  CHECK(backward(network) == gradient);
  CHECK(pass_of(network, evaluation, nullptr) == evaluated);
  CHECK_THROWS_AS(network.begin(training, &network), std::logic_error);
}

TEST_CASE("passes that share their first steps give what they give alone") {
  check_shared(Nsd<Diagonal<2>, double>(tiny::options(), 1));
  check_shared(Bsnn<Diagonal<2>, double>(tiny::options(), 1));
  check_shared(Bsnn<SpecialOrthogonal<3>, double>(tiny::options(), 1));  // the learner has an encoder of its own
  const sheafnn::FlowOptions flow{.features = tiny::Task::features, .channels = 2, .classes = tiny::Task::classes};
  check_shared(sheafnn::BayesianSheafFlow<SpecialOrthogonal<2>, double>(flow, 1));
  const sheafnn::CooperativeOptions nodes{.features = tiny::Task::features,
                                          .channels = 2,
                                          .layers = 2,
                                          .classes = tiny::Task::classes};
  check_shared(sheafnn::Csnn<2, double>(nodes, 1));
  check_shared(sheafnn::Bcsnn<2, double>(nodes, 1));
}

TEST_CASE("names of options and the schedule of the KL term") {
  using sheafnn::KlSchedule;
  for (std::size_t i = 0; i < names_of(sheafnn::KlSchedule()).size(); ++i) {
    const auto schedule = static_cast<KlSchedule>(i);
    CHECK(sheafnn::parse_name<KlSchedule>("--kl-schedule", to_string(schedule)) == schedule);
  }
  CHECK(sheafnn::parse_name<sheafnn::KlEstimator>("--kl", "monte-carlo") == sheafnn::KlEstimator::monte_carlo);
  CHECK_THROWS_WITH_AS(static_cast<void>(sheafnn::parse_name<KlSchedule>("--kl-schedule", "linear")),
                       "--kl-schedule: linear is not allowed; choose cyclical, constant, off",
                       std::invalid_argument);

  for (Index t = 0; t < 100; ++t) {
    CAPTURE(t);
    const double exponent = static_cast<double>(t % 40) / 2 - 10;
    const double expected = std::exp(exponent) / (1 + std::exp(exponent));
    const double weight = sheafnn::kl_weight(KlSchedule::cyclical, 3, t);
    CHECK(std::abs(weight - 3 * expected) <= 16 * epsilon * expected);  // exp of up to 10, each way
    CHECK(sheafnn::kl_weight(KlSchedule::constant, 3, t) == 3);
    CHECK(sheafnn::kl_weight(KlSchedule::off, 3, t) == 0);
  }
  CHECK(sheafnn::kl_weight(KlSchedule::cyclical, 1, 20) == 0.5);
  CHECK(sheafnn::kl_weight(KlSchedule::cyclical, 1, 40) == sheafnn::kl_weight(KlSchedule::cyclical, 1, 0));
}

}  // namespace test_network
