/// \file
/// Continuous-time sheaf diffusion: the right-hand side against a dense Laplacian, the flow against exact solutions,
/// the gradient of the steps that were taken, and networks of such models in training and prediction.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "dense_algebra.hpp"
#include "model_gradient.hpp"
#include "shared_networks.hpp"
#include "sheafnn/bsnn/layer_features.hpp"
#include "sheafnn/bsnn/learned_sheaf.hpp"
#include "sheafnn/bsnn/prediction.hpp"
#include "sheafnn/bsnn/trainer.hpp"
#include "sheafnn/flow.hpp"
#include "sheafnn/graph/karate.hpp"
#include "sheafnn/graph/synthetic.hpp"
#include "sheafnn/sheaf/families.hpp"
#include "sheafnn/sheaf/laplacian.hpp"
#include "tiny_task.hpp"
#include "worst.hpp"

namespace test_sheaf_flow {
using namespace sheafnn;
using namespace sheafnn::layers;
using namespace sheafnn::math;
using namespace sheafnn::rotation;

namespace {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

FlowOptions tiny_options() {
  return {.features = tiny::Task::features,
          .channels = 2,
          .classes = tiny::Task::classes,
          .time = 1.5,
          .feature_treatment = sheafnn::FeatureTreatment::none,
          .edge_weights = false,
          .separate_encoder = false};
}

/// Δ of the model's sheaf, its fixed filters included, for features as they lie: node, coordinate.
template <class Model>
Matrix dense_laplacian(const Model& model, const tiny::Task& task) {
  const Index d = Model::stalk_dimension, all = model.coordinates(), n = task.nodes;
  const SheafLaplacian laplacian(learned_sheaf(model, task.graph, task.sparse), model.options().normalisation);
  const Matrix learned = laplacian.matrix();
  Matrix r = Matrix::Zero(n * all, n * all);
  for (Index u = 0; u < n; ++u) {
    for (Index v = 0; v < n; ++v) r.block(u * all, v * all, d, d) = learned.block(u * d, v * d, d, d);
  }
  const auto root = [&](Index u) { return 1 / std::sqrt(static_cast<double>(task.graph.degree(u)) + 1); };
  const auto filter = [&](Index i, double sign) {
    for (Index u = 0; u < n; ++u)
      r(u * all + i, u * all + i) = static_cast<double>(task.graph.degree(u)) * root(u) * root(u);
    for (const Edge& e : task.graph.edges()) {
      r(e.u * all + i, e.v * all + i) = r(e.v * all + i, e.u * all + i) = sign * root(e.u) * root(e.v);
    }
  };
  if (model.options().add_lp) filter(d, 1);
  if (model.options().add_hp) filter(all - 1, -1);
  return r;
}

template <class Model>
Matrix features_after(const Network<Model>& network, Index layer) {
  return network.features_after(layer).eigen();
}

double elu_of(double x) { return x > 0 ? x : std::expm1(x); }

template <class Model>
void check_right_hand_side(bool activation, bool negate_inside) {
  const tiny::Task task;
  FlowOptions options = tiny_options();
  options.time = 1;
  options.method = FlowMethod::euler;
  options.fixed_steps = 1;
  options.add_lp = options.add_hp = true;
  options.activation = activation;
  options.negate_inside = negate_inside;
  Model model(options, 3);
  tiny::disturb(model.parameters(), 4, 0.3);
  Network<Model> network(model, task.graph, task.sparse);
  network.forward();
  const Matrix x = features_after(network, 0), end = features_after(network, 1);
  const auto weight = [&](const char* name, Index size) {
    const ParameterId id = model.parameters().find(name);
    const std::vector<double> values = model.parameters().get(id, model.parameters().values());
    return Matrix(Eigen::Map<const Matrix>(values.data(), size, size));
  };
  const Index d = model.coordinates();
  const Matrix a = weight("left.0", d), b = weight("right.0", options.channels);
  Matrix y(x.rows(), x.cols());
  for (Index u = 0; u < task.nodes; ++u) y.middleRows(u * d, d) = a * x.middleRows(u * d, d) * b.transpose();
  const Matrix z = dense_laplacian(model, task) * y;
  const double bound =
      64 * std::numeric_limits<double>::epsilon() * (1 + x.cwiseAbs().maxCoeff() + z.cwiseAbs().maxCoeff());
  for (Index i = 0; i < x.rows(); ++i) {
    for (Index c = 0; c < x.cols(); ++c) {
      const double slope = !activation ? -z(i, c) : negate_inside ? elu_of(-z(i, c)) : -elu_of(z(i, c));
      CHECK(std::abs(end(i, c) - x(i, c) - slope) <= bound);
    }
  }
}

/// Without ELU and weights: the largest and the Frobenius norm of X(T) − exp(−TΔ) X(0).
struct SolutionError {
  double largest = 0, norm = 0, bound = 0;
  Index steps = 0;
};
template <class Model>
SolutionError linear_flow_error(FlowOptions options) {
  const tiny::Task task;
  options.left_weights = options.right_weights = options.activation = false;
  Model model(options, 5);
  tiny::disturb(model.parameters(), 6, 0.5);
  Network<Model> network(model, task.graph, task.sparse);
  network.forward();
  const Matrix x = features_after(network, 0);
  const dense_algebra::Eigenpairs eigen = dense_algebra::eigenpairs(dense_laplacian(model, task));
  const Eigen::VectorXd decay = (-options.time * eigen.values.array()).exp();
  const Matrix exact = eigen.vectors * decay.asDiagonal() * eigen.vectors.transpose() * x;
  const Matrix error = features_after(network, 1) - exact;
  SolutionError r{error.cwiseAbs().maxCoeff(), error.norm()};
  // Every step adds at most this to the norm, which the flow does not increase; |dx/dt| ≤ 2 ‖X‖, as the spectrum ends
  // at 2.
  for (const double h : network.flow().steps()) {
    r.bound += std::sqrt(static_cast<double>(x.size())) *
               (options.absolute_tolerance + options.relative_tolerance * (1 + 2 * h) * x.norm());
  }
  r.steps = static_cast<Index>(network.flow().steps().size());
  return r;
}

template <class Model>
test::PassResult pass_of(Network<Model>& network, const tiny::Task& task, Index samples, bool only_nodes) {
  test::TrainingPass<double> pass;
  pass.labels = task.labels;
  pass.nodes = task.train;
  pass.seed = 9;
  pass.epoch = 10;
  pass.kl_weight = 0.3;
  pass.samples = samples;
  pass.only_nodes = only_nodes;
  return test::train_pass(network, pass);
}

/// The gradient along every coordinate, for the steps that an adaptive pass has taken.
template <class Model>
void check_gradient(const FlowOptions& options, Index samples = 1, bool only_nodes = false) {
  CAPTURE(Model::Family::name);
  CAPTURE(Model::stalk_dimension);
  CAPTURE(Model::bayesian);
  const tiny::Task task;
  Model model(options, 7);
  tiny::disturb(model.parameters(), 8, 0.3);
  Network<Model> network(model, task.graph, task.sparse);
  const double loss = pass_of(network, task, samples, only_nodes).loss;
  const Buffer<double> adaptive = network.gradient();
  const std::vector<double> steps = network.flow().steps();
  CHECK(steps.size() >= 2);
  network.set_steps(steps);
  // The last sample's steps; with one sample, the steps of the whole pass.
  const double replayed = pass_of(network, task, samples, only_nodes).loss;
  const Buffer<double> gradient = network.gradient();
  if (samples == 1) {
    CHECK(replayed == loss);
    CHECK(std::ranges::equal(gradient.view(), adaptive.view()));
  }
  const model_gradient::Comparison comparison =
      model_gradient::compare_gradient(model.parameters(), gradient,
                                       [&] { return pass_of(network, task, samples, only_nodes).loss; });
  INFO(comparison.where);
  CHECK(comparison.worst <= 1);
}

/// A first step that is rejected, and several that are accepted.
FlowOptions short_steps() {
  FlowOptions options = tiny_options();
  options.absolute_tolerance = options.relative_tolerance = 1e-4;
  options.first_step = 2;
  return options;
}
FlowOptions everything() {
  FlowOptions options = short_steps();
  options.add_lp = options.add_hp = true;
  options.second_linear = true;
  options.feature_treatment = sheafnn::FeatureTreatment::rows;
  options.learner_layers = 1;
  options.readout_layers = 2;
  options.learner_width = 3;
  options.edge_features = tiny::Task::arc_features;
  options.negate_inside = true;
  return options;
}

}  // namespace

TEST_CASE("continuous-time diffusion: the right-hand side is that of the dense Laplacian") {
  check_right_hand_side<SheafFlow<GeneralLinear<3>, double>>(true, false);
  check_right_hand_side<SheafFlow<GeneralLinear<3>, double>>(true, true);
  check_right_hand_side<SheafFlow<GeneralLinear<3>, double>>(false, false);
  check_right_hand_side<SheafFlow<SpecialOrthogonal<2>, double>>(true, false);
  check_right_hand_side<SheafFlow<Diagonal<1>, double>>(true, true);
}

TEST_CASE("continuous-time diffusion: the linear flow is exp(−TΔ), to the tolerance") {
  const auto check = [](auto error_for) {
    double before = std::numeric_limits<double>::infinity();
    Index steps_before = 0;
    for (const double tolerance : {1e-2, 1e-4, 1e-6, 1e-8, 1e-10}) {
      FlowOptions options = tiny_options();
      options.time = 3;
      options.absolute_tolerance = options.relative_tolerance = tolerance;
      const SolutionError error = error_for(options);
      CAPTURE(tolerance);
      CHECK(error.norm <= error.bound);
      CHECK(error.largest < before);
      CHECK(error.steps > steps_before);
      before = error.largest;
      steps_before = error.steps;
    }
    CHECK(before < 1e-9);
  };
  check(linear_flow_error<SheafFlow<GeneralLinear<3>, double>>);
  check(linear_flow_error<SheafFlow<SpecialOrthogonal<2>, double>>);
}

TEST_CASE("continuous-time diffusion: the order of the methods with equal steps") {
  const auto ratio = [](FlowMethod method) {
    FlowOptions options = tiny_options();
    options.method = method;
    options.fixed_steps = 32;
    const SolutionError coarse = linear_flow_error<SheafFlow<SpecialOrthogonal<2>, double>>(options);
    options.fixed_steps = 64;
    const SolutionError fine = linear_flow_error<SheafFlow<SpecialOrthogonal<2>, double>>(options);
    CHECK(coarse.steps == 32);
    return coarse.norm / fine.norm;
  };
  CHECK(std::abs(ratio(FlowMethod::euler) - 2) < 0.1);
  CHECK(std::abs(ratio(FlowMethod::runge_kutta) - 16) < 1);
}

TEST_CASE("continuous-time diffusion: the gradient is that of the steps taken, along every coordinate") {
  SUBCASE("deterministic") {
    FlowOptions tighter = short_steps();
    tighter.absolute_tolerance = tighter.relative_tolerance = 1e-8;
    check_gradient<SheafFlow<Diagonal<1>, double>>(tighter);
    check_gradient<SheafFlow<SpecialOrthogonal<2>, double>>(short_steps());
    check_gradient<SheafFlow<GeneralLinear<3>, double>>(short_steps(), 1, true);
    check_gradient<SheafFlow<SpecialOrthogonal<4>, double>>(short_steps());
    check_gradient<SheafFlow<Diagonal<5>, double>>(tighter);
  }
  SUBCASE("deterministic, every option") {
    FlowOptions options = everything();
    check_gradient<SheafFlow<Diagonal<1>, double>>(options, 1, true);
    check_gradient<SheafFlow<GeneralLinear<3>, double>>(options);
    options.edge_weights = true;
    check_gradient<SheafFlow<SpecialOrthogonal<2>, double>>(options);
  }
  SUBCASE("Bayesian") {
    check_gradient<BayesianSheafFlow<Diagonal<3>, double>>(short_steps());
    check_gradient<BayesianSheafFlow<SpecialOrthogonal<3>, double>>(short_steps(), 2);
    check_gradient<BayesianSheafFlow<GeneralLinear<2>, double>>(short_steps(), 2, true);
  }
  SUBCASE("Bayesian, every option") {
    FlowOptions options = everything();
    options.separate_encoder = options.degree_input = true;
    check_gradient<BayesianSheafFlow<Diagonal<3>, double>>(options, 2);
    check_gradient<BayesianSheafFlow<GeneralLinear<2>, double>>(options);
    options.edge_weights = true;
    check_gradient<BayesianSheafFlow<SpecialOrthogonal<3>, double>>(options);
  }
  SUBCASE("without ELU, without weights") {
    FlowOptions options = short_steps();
    options.activation = options.left_weights = options.right_weights = false;
    check_gradient<SheafFlow<GeneralLinear<3>, double>>(options);
  }
  SUBCASE("equal steps") {
    for (const FlowMethod method : {FlowMethod::euler, FlowMethod::runge_kutta}) {
      FlowOptions options = tiny_options();
      options.method = method;
      options.fixed_steps = 3;
      check_gradient<SheafFlow<GeneralLinear<3>, double>>(options);
    }
  }
}

TEST_CASE("continuous-time diffusion: steps and results do not depend on the number of threads") {
  using Model = BayesianSheafFlow<Diagonal<3>>;
  const Dataset data = synthetic({.nodes = 900, .classes = 3});
  const std::vector<std::int32_t>& nodes = data.splits[0].train;
  const Model model({.features = data.features.columns(),
                     .channels = 5,
                     .classes = data.class_count,
                     .absolute_tolerance = 1e-5,
                     .relative_tolerance = 1e-5,
                     .add_hp = true},
                    2);
  using Result = std::array<std::vector<float>, 3>;  // outputs, gradient, steps
  const auto result_for = [&](int threads) {
    Network<Model> network(model, data.graph, data.features, threads);
    const ForwardPass<float> pass{.training = true, .input_dropout = 0.2, .dropout = 0.2, .nodes = nodes};
    static_cast<void>(elbo(network, pass, Classification(data.labels), nodes, {.kl_weight = 0.1}));
    Result r;
    r[1].assign(network.gradient().begin(), network.gradient().end());
    r[2] = network.flow().steps();
    for (const double output : test::last_outputs(network)) r[0].push_back(static_cast<float>(output));
    return r;
  };
  const Result one = result_for(1);
  CHECK(one[2].size() >= 3);
  CHECK(result_for(2) == one);
  CHECK(result_for(3) == one);
}

TEST_CASE("continuous-time diffusion: what is not allowed, and flows that need too many steps") {
  using Model = SheafFlow<SpecialOrthogonal<2>, double>;
  const tiny::Task task;
  const auto message_of = [&](FlowOptions options) -> std::string {
    try {
      const Model model(options, 1);
      Network<Model>(model, task.graph, task.sparse).forward();
    } catch (const std::exception& error) {
      return error.what();
    }
    return "";
  };
  FlowOptions options = short_steps();
  options.absolute_tolerance = options.relative_tolerance = 1e-7;
  options.max_steps = 4;
  const std::string message = message_of(options);
  CAPTURE(message);
  for (const char* part : {"to time 1.5", "max_steps = 4", "accepted", "rejected", "absolute_tolerance is 1e-07"}) {
    CHECK(message.find(part) != std::string::npos);
  }
  const auto refused = [&](auto member, auto value, const char* part) {
    FlowOptions bad = tiny_options();
    bad.*member = value;
    CHECK(message_of(bad).find(part) != std::string::npos);
  };
  CHECK(FlowOptions{}.integration() == FlowIntegration{});
  refused(&FlowOptions::time, 0.0, "time: 0 is not allowed");
  refused(&FlowOptions::time, std::numeric_limits<double>::infinity(), "time: inf is not allowed");
  refused(&FlowOptions::absolute_tolerance, -1.0, "absolute_tolerance: -1 is not allowed");
  refused(&FlowOptions::relative_tolerance, std::nan(""), "relative_tolerance: nan is not allowed");
  refused(&FlowOptions::first_step, 0.0, "first_step: 0 is not allowed");
  refused(&FlowOptions::max_steps, Index{0}, "max_steps: 0 is not allowed");
  refused(&FlowOptions::max_steps, Index{1000001},
          "max_steps: 1000001 is not allowed; must be between 1 and 1000000");
  refused(&FlowOptions::fixed_steps, Index{0}, "fixed_steps: 0 is not allowed");
  refused(&FlowOptions::channels, Index{0}, "channels: 0 is not allowed");
  FlowOptions none = tiny_options();
  none.absolute_tolerance = none.relative_tolerance = 0;
  CHECK(message_of(none).find("absolute_tolerance: 0 is not allowed") != std::string::npos);

  Model model(tiny_options(), 1);
  Network<Model> network(model, task.graph, task.sparse);
  CHECK_THROWS_WITH_AS(network.set_steps({0.5, -0.5}),
                       "sizes[1]: -0.5 is not allowed; a step must be positive and finite", std::invalid_argument);
  network.begin({});
  CHECK_THROWS_AS(static_cast<void>(network.features_after(1)), std::logic_error);
  CHECK_THROWS_AS(network.backward(network.output_bar()), std::logic_error);
  network.forward();
  CHECK_THROWS_AS(network.backward(network.output_bar()), std::logic_error);
  model.parameters().values()[0] = std::numeric_limits<double>::quiet_NaN();
  CHECK_THROWS_WITH_AS(network.forward(), "x: the flow starts from features that are not finite", FlowError);
  CHECK_THROWS_AS(static_cast<void>(network.features_after(1)), std::logic_error);
  CHECK(network.flow().output().nodes() == 0);

  FlowOptions long_time = tiny_options();
  long_time.time = 1e39;
  const SheafFlow<SpecialOrthogonal<2>, float> floats(long_time, 1);
  using Floats = Network<SheafFlow<SpecialOrthogonal<2>, float>>;
  CHECK_THROWS_WITH_AS(Floats(floats, task.graph, task.sparse),
                       "time: 1e+39 is not allowed; must be finite in the model's scalar type",
                       std::invalid_argument);
}

TEST_CASE("continuous-time diffusion: a pass that fails leaves no output, and ends a training with its epoch") {
  using Model = SheafFlow<SpecialOrthogonal<2>, double>;
  const tiny::Task task;
  FlowOptions options = short_steps();
  options.absolute_tolerance = options.relative_tolerance = 1e-7;
  options.max_steps = 4;
  Model model(options, 1);
  Network<Model> network(model, task.graph, task.sparse);
  CHECK_THROWS_AS(network.forward(), FlowError);
  CHECK(network.flow().output().nodes() == 0);
  CHECK(network.flow().steps().empty());
  CHECK_THROWS_AS(static_cast<void>(network.features_after(1)), std::logic_error);

  // One Euler step of a field that stretches leaves the numbers that there are.
  FlowOptions large = tiny_options();
  large.method = FlowMethod::euler;
  large.fixed_steps = 1;
  large.time = 1e308;
  Model stretched(large, 1);
  Network<Model> failing(stretched, task.graph, task.sparse);
  for (double& value : stretched.parameters().values()) value *= 1e3;
  CHECK_THROWS_WITH_AS(failing.forward(),
                       "the flow to time 1e+308 is not finite after 1 steps: smaller steps may help", FlowError);

  const std::vector<double> before(model.parameters().values().begin(), model.parameters().values().end());
  const Split split{task.train, {}, {}};
  CHECK_THROWS_WITH_AS(train(model, task.graph, task.sparse, Classification(task.labels), split, {.epochs = 3}),
                       doctest::Contains(
                           "training diverged in epoch 0: the flow to time 1.5 needs more than max_steps = 4"),
                       std::runtime_error);
  CHECK(std::equal(before.begin(), before.end(), model.parameters().values().begin()));
}

TEST_CASE("continuous-time diffusion: a layer by itself, no absolute tolerance, what its backward pass refuses") {
  using Family = Diagonal<2>;
  using Features = FeatureView<const double>;
  const std::vector<Edge> path = {{0, 1}, {1, 2}};
  const Graph graph(4, path);  // no edge at node 3
  const EdgeBlocks<double> edges(graph);
  const DiffusionShape<double> shape(graph, 2, false, false, 3);
  SheafBlocks<Family, double> blocks(graph, edges, Normalisation::augmented);
  blocks.build(1, nullptr, true, [](Index, auto& map) {
    for (int side = 0; side < 2; ++side) {
      for (Index k = 0; k < map[side].size(); ++k) map[side].data()[k] = 1 + 0.5 * side;
    }
  });
  FlowLayer<Family, double> layer(graph, shape, {.absolute_tolerance = 0, .relative_tolerance = 1e-4},
                                  {.left = false, .right = false});
  CHECK(layer.output().nodes() == 0);
  std::vector<double> x(4 * 2 * 3, 0.0);  // numbers that are 0 and stay 0
  for (std::size_t i = 0; i < 12; ++i) x[i] = tiny::number(5, static_cast<Index>(i));
  layer.forward(1, {}, blocks, Features(x.data(), 4, 2, 3), true);
  for (Index i = 18; i < 24; ++i) CHECK(layer.output().data()[i] == 0);
  double end = 0;
  for (Index i = 0; i < 12; ++i) end += std::abs(layer.output().data()[i] - x[static_cast<std::size_t>(i)]);
  CHECK(end > 0.1);

  SheafBlocksGradient<Family, double> sheaf_bar(graph, edges);
  std::vector<double> bar(x.size(), 1.0), work(x.size()), more(x.size());
  const auto view = [](std::vector<double>& of) { return FeatureView<double>(of.data(), 4, 2, 3); };
  const auto message = [&](std::vector<double>& first, std::vector<double>& second) -> std::string {
    try {
      layer.backward(1, {}, blocks, sheaf_bar, false, view(bar), view(first), view(second), {});
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "";
  };
  CHECK(message(bar, more) == "work: bar is not allowed; must be a buffer of its own");
  CHECK(message(work, bar) == "more_work: bar is not allowed; must be a buffer of its own");
  CHECK(message(work, work) == "more_work: work is not allowed; must be a buffer of its own");
  CHECK(message(work, more).empty());

  FlowLayer<Family, double> mixing(graph, shape, {});
  const std::vector<double> left = {1, 0, 0, 1}, right = {1, 0, 0, 0, 1, 0, 0, 0, 1};
  const DiffusionWeights<const double> weights{{left.data(), 2, 2}, {right.data(), 3, 3}, {}};
  mixing.forward(1, weights, blocks, Features(x.data(), 4, 2, 3), true);
  std::vector<double> left_bar(4), right_bar(9);
  const DiffusionWeights<double> weights_bar{{left_bar.data(), 2, 2}, {right_bar.data(), 3, 3}, {}};
  CHECK_THROWS_AS(mixing.backward(1, {}, blocks, sheaf_bar, false, view(bar), view(work), view(more), weights_bar),
                  std::invalid_argument);
}

TEST_CASE("continuous-time diffusion: stages that are kept and stages that are computed anew") {
  using Family = GeneralLinear<2>;
  using Numbers = std::vector<double>;
  const Dataset data = synthetic({.nodes = 60, .classes = 2});
  const Graph& graph = data.graph;
  const Index n = graph.node_count(), f = 3, size = n * 2 * f;
  const EdgeBlocks<double> edges(graph);
  const DiffusionShape<double> shape(graph, 2, false, false, f);
  SheafBlocks<Family, double> blocks(graph, edges, Normalisation::augmented);
  blocks.build(1, nullptr, true, [](Index block, auto& map) {
    for (int side = 0; side < 2; ++side) {
      for (Index k = 0; k < map[side].size(); ++k) {
        map[side].data()[k] = tiny::number(3, 8 * block + 4 * side + k);
      }
    }
  });
  const auto numbers = [](std::uint64_t seed, Index count, double scale) {
    Numbers r;
    for (Index i = 0; i < count; ++i) r.push_back(scale * tiny::number(seed, i));
    return r;
  };
  const Numbers x = numbers(5, size, 1), left = numbers(6, 4, 1), right = numbers(7, f * f, 1),
                end_bar = numbers(8, size, 1);
  const DiffusionWeights<const double> weights{{left.data(), 2, 2}, {right.data(), f, f}, {}};

  struct Result {
    Numbers end, steps, gradient;
  };
  const auto result_of = [&](const FlowIntegration& integration, std::size_t stage_memory, int passes) {
    FlowLayer<Family, double> layer(graph, shape, integration, {}, stage_memory);
    Result r;
    for (int pass = 0; pass < passes; ++pass) {
      SheafBlocksGradient<Family, double> sheaf_bar(graph, edges);
      Numbers bar = end_bar, work(x.size()), more(x.size()), left_bar(4),
              right_bar(static_cast<std::size_t>(f * f));
      const auto view = [&](Numbers& of) { return FeatureView<double>(of.data(), n, 2, f); };
      layer.forward(2, weights, blocks, FeatureView<const double>(x.data(), n, 2, f), true);
      layer.backward(2, weights, blocks, sheaf_bar, false, view(bar), view(work), view(more),
                     {{left_bar.data(), 2, 2}, {right_bar.data(), f, f}, {}});
      r = {{layer.output().data(), layer.output().data() + size}, layer.steps(), bar};
      for (const Numbers* one : {&left_bar, &right_bar})
        r.gradient.insert(r.gradient.end(), one->begin(), one->end());
      for (const Buffer<double>* one :
           {&sheaf_bar.off_diagonal_bar, &sheaf_bar.degree_bar, &sheaf_bar.scale_bar}) {
        r.gradient.insert(r.gradient.end(), one->begin(), one->end());
      }
    }
    return r;
  };
  const std::size_t of_stage = static_cast<std::size_t>(4 * size) * sizeof(double);
  for (const FlowMethod method : {FlowMethod::dormand_prince, FlowMethod::runge_kutta, FlowMethod::euler}) {
    CAPTURE(to_string(method));
    const std::size_t stages = method == FlowMethod::dormand_prince ? 6
                               : method == FlowMethod::runge_kutta  ? 4
                                                                    : 1;
    const FlowIntegration integration{.method = method,
                                      .absolute_tolerance = 1e-7,
                                      .relative_tolerance = 1e-7,
                                      .first_step = 1,
                                      .fixed_steps = 4};
    const Result anew = result_of(integration, 0, 1);
    REQUIRE(anew.steps.size() >= 4);
    double largest = 0;
    for (const double g : anew.gradient) largest = std::max(largest, std::abs(g));
    CHECK(largest > 0.1);
    // All steps, two of them, and one byte too few for the second: of a fresh layer and in its second pass.
    for (const std::size_t memory : {flow_stage_memory, 2 * stages * of_stage, 2 * stages * of_stage - 1}) {
      CAPTURE(memory);
      for (const int passes : {1, 2}) {
        const Result kept = result_of(integration, memory, passes);
        CHECK(kept.end == anew.end);
        CHECK(kept.steps == anew.steps);
        REQUIRE(kept.gradient.size() == anew.gradient.size());
        double worst = 0;
        for (std::size_t i = 0; i < kept.gradient.size(); ++i) {
          worst = test::worse(worst, std::abs(kept.gradient[i] - anew.gradient[i]) / largest);
        }
        CHECK(worst <= 1e-13);
      }
    }
  }
}

TEST_CASE("continuous-time diffusion: the sheaf, the features and the outputs of all nodes or of some") {
  using Model = BayesianSheafFlow<Diagonal<3>, double>;
  const tiny::Task task;
  const Model model(tiny_options(), 1);
  Network<Model> network(model, task.graph, task.sparse);
  network.forward({.seed = 4, .sample = 2});
  const std::vector<double> all = test::last_outputs(network);
  const LayerFeatures features = layer_features(model, task.graph, task.sparse, {.first_sample = 2, .seed = 4});
  CHECK(features.layers == 1);
  CHECK((features.after(1).eigen() - network.features_after(1).rows().eigen()).norm() == 0);
  const auto drawn = draw_sheaf(model, task.graph, task.sparse, {.sample = 2, .seed = 4});
  CHECK(drawn.map(0)(0) != learned_sheaf(model, task.graph, task.sparse).map(0)(0));
  CHECK(posterior_parameters(model, task.graph, task.sparse).map_size == 3);
  network.forward({.seed = 4, .sample = 2, .nodes = task.train});
  const std::vector<double> some = test::last_outputs(network);
  for (std::size_t i = 0; i < task.train.size(); ++i) {
    for (std::size_t c = 0; c < 3; ++c)
      CHECK(some[i * 3 + c] == all[static_cast<std::size_t>(task.train[i]) * 3 + c]);
  }
}

TEST_CASE("continuous-time diffusion: training on the karate club, and prediction") {
  using Model = BayesianSheafFlow<SpecialOrthogonal<3>, double>;
  const Dataset data = karate_club();
  const auto new_model = [&] {
    return Model({.features = data.features.columns(),
                  .channels = 4,
                  .classes = data.class_count,
                  .time = 2,
                  .spread = SpreadRange::published},
                 1);
  };
  Model model = new_model();
  std::optional<TrainingState> half;
  TrainOptions how{.epochs = 60, .sheaf_learning_rate = 0, .kl_maximum = 1, .threads = 1, .checkpoint_every = 30};
  how.on_checkpoint = [&](const TrainingState& state) {
    if (!half) half = state;
  };
  const TrainResult result = train(model, data, data.splits[0], how);
  CHECK(result.history.back().nll < 0.5 * result.history.front().nll);
  CHECK(result.test_accuracy >= 0.8);
  const Prediction prediction = predict(model, data, {.samples = 4});
  Index right = 0;
  for (const std::int32_t u : data.splits[0].train) {
    right += prediction.label[static_cast<std::size_t>(u)] == data.labels[static_cast<std::size_t>(u)];
  }
  CHECK(right == static_cast<Index>(data.splits[0].train.size()));

  // From a state in the middle to the same bits, with two threads as well.
  REQUIRE(half);
  const TrainingState from = *half;
  CHECK(from.history.size() == 30);
  Model resumed = new_model();
  how.resume = &from;
  how.threads = 2;
  static_cast<void>(train(resumed, data, data.splits[0], how));
  CHECK(std::equal(model.parameters().values().begin(), model.parameters().values().end(),
                   resumed.parameters().values().begin()));
}

}  // namespace test_sheaf_flow
