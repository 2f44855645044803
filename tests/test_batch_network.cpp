/// \file
/// The kernels of the device, run on the host, against the networks of the CPU: batches of two runs, every family and
/// option, losses, gradients and predictions (batch_checks.hpp).
#include "batch_checks.hpp"

#include <algorithm>

namespace batch_checks {

Problem small_problem(Index nodes, Index columns, Index classes) {
  Problem r;
  std::vector<sheafnn::Edge> edges;
  const std::int32_t ring = static_cast<std::int32_t>(nodes) - 1;  // the last node is isolated
  for (std::int32_t u = 0; u < ring; ++u) {
    edges.push_back({u, (u + 1) % ring});
    if (u % 3 == 0) edges.push_back({u, (u * u + 5) % ring});
  }
  r.graph = sheafnn::Graph(nodes, edges);
  std::vector<double> values(static_cast<std::size_t>(nodes * columns));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = i % 3 == 1 ? 0 : std::sin(static_cast<double>(i * i));
  r.features = sheafnn::NodeFeatures::from_dense(std::span<const double>(values), nodes, columns);
  for (Index u = 0; u < nodes; ++u) {
    r.labels.push_back(static_cast<std::int32_t>(u % classes));
    const bool training = u % 2 == 0;
    if (training) r.training.push_back(static_cast<std::int32_t>(u));
    r.roles.push_back(training ? sheafnn::cuda::training_node
                               : u % 4 == 1 ? sheafnn::cuda::validation_node : sheafnn::cuda::test_node);
  }
  return r;
}

double relative(const std::vector<double>& values, const std::vector<double>& expected) {
  REQUIRE(values.size() == expected.size());
  double largest = 0, worst_difference = 0;
  for (const double x : expected) largest = std::max(largest, std::abs(x));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double difference = std::abs(values[i] - expected[i]);
    if (!(difference <= worst_difference)) worst_difference = difference;
  }
  return largest > 0 ? worst_difference / largest : worst_difference;
}

}  // namespace batch_checks

namespace {

using namespace sheafnn;
using batch_checks::Step;

// Sums of some dozens of terms through two or three layers, in another order than on the CPU.
constexpr double bound = 1e-11;

ModelOptions options() {
  ModelOptions r;
  r.features = 7;
  r.classes = 3;
  r.channels = 5;
  r.layers = 2;
  return r;
}

}  // namespace

TEST_CASE_TEMPLATE("a batch on the device's kernels agrees with the CPU: families", Model,
                   Bsnn<Diagonal<3>, double>, Bsnn<SpecialOrthogonal<3>, double>, Bsnn<GeneralLinear<2>, double>,
                   Nsd<Diagonal<2>, double>, Nsd<SpecialOrthogonal<4>, double>, Nsd<GeneralLinear<3>, double>,
                   Bsnn<Identity<2>, double>, Nsd<Identity<3>, double>) {
  batch_checks::compare<Model>(options(), {}, bound);
}

TEST_CASE("a batch on the device's kernels agrees with the CPU: options of Bayesian models") {
  using Model = Bsnn<SpecialOrthogonal<2>, double>;
  ModelOptions o = options();
  SUBCASE("fixed filters, wide features") {
    o.add_lp = o.add_hp = true;
    o.channels = 17;
  }
  SUBCASE("one sheaf for all layers, several samples") {
    o.linear = true;
    o.layers = 3;
    batch_checks::compare<Model>(o, {.samples = 3}, bound);
  }
  SUBCASE("no edge weights, one encoder, no dropout") {
    o.edge_weights = false;
    o.separate_encoder = false;
    batch_checks::compare<Model>(o, {.input_dropout = 0, .dropout = 0}, bound);
  }
  SUBCASE("degree input, second linear layer, no activation") {
    o.degree_input = true;
    o.second_linear = true;
    o.activation = false;
  }
  SUBCASE("hidden layers of the sheaf learner") {
    o.learner_layers = 3;
    o.learner_width = 6;
  }
  SUBCASE("no left weights") { o.left_weights = false; }
  SUBCASE("no right weights") { o.right_weights = false; }
  SUBCASE("no weights, degree normalisation") {
    o.left_weights = o.right_weights = false;
    o.normalisation = Normalisation::degree;
  }
  SUBCASE("Monte Carlo KL, two samples, Cayley parametrisation") {
    o.parametrisation = RotationParametrisation::cayley;
    batch_checks::compare<Model>(o, {.estimator = KlEstimator::monte_carlo, .samples = 2}, bound);
  }
  SUBCASE("block normalisation, raw features") {
    o.normalisation = Normalisation::block;
    o.normalise_features = false;
  }
  SUBCASE("only hidden dropout, no KL") {
    batch_checks::compare<Model>(o, {.input_dropout = 0, .dropout = 0.6, .kl_weight = 0}, bound);
  }
  batch_checks::compare<Model>(o, {}, bound);
}

TEST_CASE("a batch on the device's kernels agrees with the CPU: options of deterministic models") {
  using Model = Nsd<GeneralLinear<2>, double>;
  ModelOptions o = options();
  o.layers = 3;
  SUBCASE("one sheaf for all layers") { o.linear = true; }
  SUBCASE("fixed filter, hidden layer of the sheaf learner") {
    o.add_hp = true;
    o.learner_layers = 1;
    o.learner_width = 4;
  }
  SUBCASE("without dropout, none normalisation") {
    o.normalisation = Normalisation::none;
    batch_checks::compare<Model>(o, {.input_dropout = 0.5, .dropout = 0}, bound);
  }
  SUBCASE("second linear layer, no weights of layers") {
    o.second_linear = true;
    o.left_weights = o.right_weights = false;
  }
  batch_checks::compare<Model>(o, {}, bound);
}

TEST_CASE("a batch on the device's kernels agrees with the CPU: single precision") {
  // A few hundred roundings, some of which are amplified by derivatives near 1.
  batch_checks::compare<Bsnn<SpecialOrthogonal<3>, float>>(options(), {}, 512 * 1.2e-7);
}
