/// \file
/// Training passes and evaluation give the same bits for any number of threads.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <thread>
#include <utility>
#include <vector>

#include "network_passes.hpp"
#include "sheafnn/bsnn/cooperative_network.hpp"
#include "sheafnn/bsnn/network.hpp"
#include "sheafnn/graph/synthetic.hpp"
#include "sheafnn/nn/adam.hpp"
#include "worst.hpp"

namespace test_network_threads {
namespace {

using sheafnn::Bsnn;
using sheafnn::Diagonal;
using sheafnn::GeneralLinear;
using sheafnn::Index;
using sheafnn::ModelOptions;
using sheafnn::Network;
using sheafnn::Nsd;
using sheafnn::SpecialOrthogonal;

using Doubles = std::vector<double>;

/// A graph large enough for every parallel loop to be divided.
const sheafnn::Dataset& larger_task() {
  static const sheafnn::Dataset data = [] {
    sheafnn::SyntheticOptions options;
    options.nodes = 701;
    options.classes = 3;
    options.features = 150;
    options.degree = 5;
    sheafnn::Dataset r = sheafnn::synthetic(options);
    Doubles of_arcs;
    for (Index i = 0; i < 3 * r.graph.arc_count(); ++i) of_arcs.push_back(std::sin(static_cast<double>(i)));
    r.graph.set_arc_features(of_arcs, 3);
    return r;
  }();
  return data;
}

/// Three training passes and steps, then an evaluation; everything that can be seen on the way.
template <class Model>
Doubles run_training(int threads, const ModelOptions& options, sheafnn::KlEstimator estimator) {
  const sheafnn::Dataset& data = larger_task();
  using S = typename Model::Scalar;
  Model model(options, 3);
  auto& parameters = model.parameters();
  Network<Model> network(model, data.graph, data.features, threads);
  sheafnn::layers::Adam<S> adam(parameters.size(), 0.01);
  Doubles seen;
  for (std::uint32_t epoch = 0; epoch < 3; ++epoch) {
    test::TrainingPass<S> pass;
    pass.labels = data.labels;
    pass.nodes = data.splits[0].train;
    pass.seed = 4;
    pass.epoch = epoch;
    pass.input_dropout = 0.3;
    pass.dropout = 0.2;
    pass.kl_weight = 0.5;
    pass.kl_estimator = estimator;
    pass.samples = 2;
    const test::PassResult result = test::train_pass(network, pass);
    seen.insert(seen.end(), {result.nll, result.kl, result.loss});
    seen.insert(seen.end(), network.gradient().begin(), network.gradient().end());
    adam.begin_step();
    adam.update(threads, 0, parameters.size(), 1e-3, network.gradient().data(), parameters.values().data());
  }
  test::evaluate(network, 4, 2, 2, [&](Index) {
    const Doubles values = test::last_outputs(network);
    seen.insert(seen.end(), values.begin(), values.end());
  });
  seen.push_back(network.kl());
  return seen;
}

template <class Model>
void check_threads(ModelOptions options, sheafnn::KlEstimator estimator) {
  CAPTURE(Model::Family::name);
  CAPTURE(Model::bayesian);
  options.features = larger_task().feature_count();
  options.classes = 3;
  const Doubles one = run_training<Model>(1, options, estimator);
  CHECK(std::all_of(one.begin(), one.end(), [](double x) { return std::isfinite(x); }));
  CHECK(run_training<Model>(1, options, estimator) == one);
  CHECK(run_training<Model>(2, options, estimator) == one);
  CHECK(run_training<Model>(3, options, estimator) == one);
}

/// Loss and gradient of a training pass of sixteen channels.
template <class Model>
std::pair<double, Doubles> pass_of(const ModelOptions& of, bool only_nodes, int threads) {
  const sheafnn::Dataset& data = larger_task();
  ModelOptions options = of;
  options.features = data.feature_count();
  options.classes = 3;
  options.channels = 16;
  options.layers = 2;
  const Model model(options, 3);
  Network<Model> network(model, data.graph, data.features, threads);
  test::TrainingPass<typename Model::Scalar> pass;
  pass.labels = data.labels;
  pass.nodes = data.splits[0].train;
  pass.only_nodes = only_nodes;
  pass.seed = 4;
  pass.dropout = 0.2;
  pass.kl_weight = 0.5;
  const double loss = test::train_pass(network, pass).loss;
  return {loss, Doubles(network.gradient().begin(), network.gradient().end())};
}

/// The kernels of packs of sixteen floats against the kernels of double precision, and for training nodes alone.
template <class Family>
void check_sixteen_channels(const ModelOptions& of = {}) {
  CAPTURE(Family::name);
  const auto exact = pass_of<Bsnn<Family, double>>(of, false, 1);
  double largest = 0;
  for (const double g : exact.second) largest = std::max(largest, std::abs(g));
  const auto check = [&](const std::pair<double, Doubles>& result, double bound) {
    CHECK(std::abs(result.first - exact.first) <= bound * std::abs(exact.first));
    REQUIRE(result.second.size() == exact.second.size());
    double worst = 0;
    for (std::size_t i = 0; i < exact.second.size(); ++i)
      worst = test::worse(worst, std::abs(result.second[i] - exact.second[i]));
    CHECK(worst <= bound * largest);
  };
  for (const int threads : {1, 2}) {
    CAPTURE(threads);
    for (const bool only_nodes : {false, true}) {
      CAPTURE(only_nodes);
      check(pass_of<Bsnn<Family, double>>(of, only_nodes, threads), 1e-13);  // sums in another order
      check(pass_of<Bsnn<Family, float>>(of, only_nodes, threads), 1e-5);    // a hundred roundings of 1e-7
    }
  }
}

}  // namespace

TEST_CASE("sixteen channels: single against double precision, all nodes against some") {
  check_sixteen_channels<Diagonal<3>>();
  check_sixteen_channels<SpecialOrthogonal<3>>();
  check_sixteen_channels<GeneralLinear<2>>();
}
TEST_CASE("sixteen channels with polynomial filters: single against double precision, all nodes against some") {
  ModelOptions of;
  of.filter = {.basis = sheafnn::PolynomialBasis::legendre, .degree = 4};
  check_sixteen_channels<Diagonal<3>>(of);
  check_sixteen_channels<SpecialOrthogonal<3>>(of);
  check_sixteen_channels<GeneralLinear<2>>(of);
}
TEST_CASE("sixteen channels with an initial residual: single against double precision, all nodes against some") {
  ModelOptions of;
  of.residual.form = sheafnn::ResidualForm::initial;
  check_sixteen_channels<Diagonal<3>>(of);
  check_sixteen_channels<SpecialOrthogonal<3>>(of);
  check_sixteen_channels<GeneralLinear<2>>(of);
}

TEST_CASE("sixteen channels with a wide learner: single against double precision, all nodes against some") {
  ModelOptions of;
  of.learner_layers = 1;
  of.learner_width = 260;
  check_sixteen_channels<Diagonal<3>>(of);
}

TEST_CASE("first passes of new cooperative networks have the same bits for two threads") {
  using Model = sheafnn::Csnn<2, float>;
  const sheafnn::Dataset data = sheafnn::synthetic({.nodes = 5001, .classes = 3, .features = 20});
  const Model model({.features = data.feature_count(), .channels = 16, .layers = 3, .classes = 3}, 3);
  const auto gradient = [&](int threads) {
    Network<Model> network(model, data.graph, data.features, threads);
    test::TrainingPass<float> pass;
    pass.labels = data.labels;
    pass.nodes = data.splits[0].train;
    pass.seed = 4;
    pass.dropout = 0.2;
    test::train_pass(network, pass);
    return std::vector<float>(network.gradient().begin(), network.gradient().end());
  };
  const std::vector<float> one = gradient(1);
  for (int time = 0; time < 8; ++time) CHECK(gradient(2) == one);
}

TEST_CASE("results are the same bits for any number of threads: Bayesian") {
  ModelOptions options;
  options.channels = 5;
  options.layers = 2;
  check_threads<Bsnn<GeneralLinear<2>>>(options, sheafnn::KlEstimator::closed_form);
  options.filter = {.basis = sheafnn::PolynomialBasis::jacobi, .degree = 3};
  check_threads<Bsnn<GeneralLinear<2>>>(options, sheafnn::KlEstimator::closed_form);
  options.add_lp = options.add_hp = true;
  options.second_linear = true;
  options.degree_input = true;
  options.learner_layers = 2;
  options.learner_width = 6;
  options.filter = {};
  check_threads<Bsnn<SpecialOrthogonal<3>>>(options, sheafnn::KlEstimator::monte_carlo);
  options.residual.form = sheafnn::ResidualForm::initial;
  check_threads<Bsnn<SpecialOrthogonal<3>>>(options, sheafnn::KlEstimator::monte_carlo);
}

TEST_CASE("results are the same bits for any number of threads: deterministic") {
  ModelOptions options;
  options.channels = 9;
  options.layers = 2;
  options.second_linear = true;
  check_threads<Nsd<Diagonal<2>>>(options, sheafnn::KlEstimator::closed_form);
  options.filter = {.basis = sheafnn::PolynomialBasis::chebyshev, .degree = 5};
  options.add_hp = true;
  check_threads<Nsd<Diagonal<2>>>(options, sheafnn::KlEstimator::closed_form);
  options.filter = {};
  options.add_hp = false;
  options.residual.form = sheafnn::ResidualForm::initial;
  check_threads<Nsd<Diagonal<2>>>(options, sheafnn::KlEstimator::closed_form);
  options.residual = {};
  options.layer_norm = true;
  options.readout_layers = 3;
  options.learner = sheafnn::LearnerInput::summed;
  options.edge_features = 3;
  options.sheaf_activation = sheafnn::SheafActivation::elu;
  check_threads<Nsd<Diagonal<2>>>(options, sheafnn::KlEstimator::closed_form);
  options.learner_layers = 1;
  options.edge_weights = true;
  check_threads<Nsd<SpecialOrthogonal<2>>>(options, sheafnn::KlEstimator::closed_form);
}

}  // namespace test_network_threads
