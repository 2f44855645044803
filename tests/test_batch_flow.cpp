/// \file
/// Flows in the batch engine on the host: against the networks of the CPU, gradients along every coordinate, trainings
/// against sheafnn::train, and what is refused.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "batch_comparison.hpp"
#include "batch_gradient.hpp"
#include "sheafnn/batch/flow_layer.hpp"
#include "sheafnn/flow.hpp"
#include "training_comparison.hpp"

namespace test_batch_flow {
namespace {

using namespace sheafnn;
using namespace sheafnn::layers;
using batch_checks::compare;
using batch_checks::small_flow_options;
using batch_checks::small_problem;

constexpr double bound = 1e-11;  // as in test_batch_network.cpp

/// A flow for the tiny task.
FlowOptions tiny_options(FlowMethod method) {
  FlowOptions r = small_flow_options();
  r.features = tiny::Task::features;
  r.channels = 2;
  r.feature_treatment = FeatureTreatment::rows;
  r.method = method;
  r.add_lp = true;
  return r;
}

/// A flow for the karate club.
FlowOptions karate_options(const Dataset& data, FlowMethod method) {
  FlowOptions r = small_flow_options();
  r.features = data.feature_count();
  r.classes = data.class_count;
  r.channels = 4;
  r.method = method;
  return r;
}

}  // namespace

TEST_CASE_TEMPLATE("the batch engine agrees with the CPU: flows", Model, SheafFlow<Diagonal<2>, double>,
                   SheafFlow<Diagonal<3>, double>, SheafFlow<GeneralLinear<2>, double>,
                   SheafFlow<GeneralLinear<3>, double>, SheafFlow<SpecialOrthogonal<2>, double>,
                   SheafFlow<Identity<2>, double>, BayesianSheafFlow<SpecialOrthogonal<3>, double>,
                   BayesianSheafFlow<Diagonal<1>, double>, BayesianSheafFlow<Identity<2>, double>) {
  FlowOptions o = small_flow_options();
  compare<Model>(o, {}, bound);
  o.method = FlowMethod::euler;
  o.fixed_steps = 3;
  compare<Model>(o, {.samples = 2}, bound);
  o.method = FlowMethod::dormand_prince;
  o.first_step = o.time;  // which is rejected
  o.absolute_tolerance = o.relative_tolerance = 1e-6;
  compare<Model>(o, {.samples = 2}, bound);
}

TEST_CASE_TEMPLATE("the batch engine agrees with the CPU: options of flows", Model,
                   SheafFlow<GeneralLinear<2>, double>, BayesianSheafFlow<SpecialOrthogonal<3>, double>) {
  FlowOptions o = small_flow_options();
  SUBCASE("fixed filters, the other sign") { o.add_lp = o.add_hp = o.negate_inside = true; }
  SUBCASE("no left weights, two encoders") {
    o.left_weights = false;
    o.separate_encoder = Model::bayesian;
  }
  SUBCASE("no right weights, no dropout") {
    o.right_weights = false;
    compare<Model>(o, {.input_dropout = 0, .dropout = 0}, bound);
  }
  SUBCASE("no weights, degree normalisation, one step") {
    o.left_weights = o.right_weights = false;
    o.normalisation = Normalisation::degree;
    o.fixed_steps = 1;
  }
  SUBCASE("no activation, a second linear layer, hidden layers of the readout") {
    o.activation = false;
    o.second_linear = true;
    o.readout_layers = 3;
  }
  SUBCASE("a learner with hidden layers, whole tiles") {
    o.learner_layers = 2;
    o.learner_width = 6;
    o.channels = 8;
  }
  SUBCASE("Monte Carlo KL, two samples") {
    compare<Model>(o, {.estimator = KlEstimator::monte_carlo, .samples = 2}, bound);
  }
  compare<Model>(o, {}, bound);
}

TEST_CASE("the batch engine agrees with the CPU: flows that keep the stages of some steps, arcs in segments") {
  FlowOptions o = small_flow_options();
  o.channels = 16;
  o.fixed_steps = 7;
  o.add_lp = o.add_hp = true;
  compare<BayesianSheafFlow<SpecialOrthogonal<3>, double>>(o, {.samples = 3}, bound, small_problem(false, 330));
}

TEST_CASE("the batch engine agrees with the CPU: flows in single precision, and on a graph without edges") {
  compare<SheafFlow<Diagonal<2>>>(small_flow_options(), {}, 2e-4);
  compare<SheafFlow<Diagonal<2>, double>>(small_flow_options(), {}, bound, small_problem(true));
}

TEST_CASE_TEMPLATE("gradients of flows in the batch engine, along every coordinate", Model,
                   SheafFlow<GeneralLinear<2>, double>, BayesianSheafFlow<SpecialOrthogonal<3>, double>) {
  batch_checks::compare_gradient<Model>(tiny_options(FlowMethod::runge_kutta));
  batch_checks::compare_gradient<Model>(tiny_options(FlowMethod::euler));
}

TEST_CASE_TEMPLATE("training by the batch engine follows the CPU: flows", Model, SheafFlow<Diagonal<2>, double>,
                   BayesianSheafFlow<SpecialOrthogonal<3>, double>) {
  const Dataset data = karate_club();
  TrainOptions options;
  options.epochs = 10;
  options.dropout = 0.2;
  for (const FlowMethod method : {FlowMethod::runge_kutta, FlowMethod::euler, FlowMethod::dormand_prince}) {
    const Model start(karate_options(data, method), 3);
    training_comparison::compare_training_of(start, options, 1e-10, data);
  }
}

TEST_CASE_TEMPLATE("a batch of three seeds of a flow: three single trainings, and checkpoints", Model,
                   SheafFlow<Diagonal<2>, double>, BayesianSheafFlow<SpecialOrthogonal<3>, double>) {
  const Dataset data = karate_club();
  training_comparison::compare_seeds<Model>(karate_options(data, FlowMethod::runge_kutta), data);
  training_comparison::compare_seeds<Model>(karate_options(data, FlowMethod::dormand_prince), data);
}

TEST_CASE("flows in the batch engine that choose their steps: every instance its own, as the CPU does") {
  // Instance i starts from 4^i times the same features: with absolute tolerances alone it needs other steps.
  const Index n = 5, d = 2, f = 3, size = n * d * f, instances = 3;
  const FlowIntegration options{.time = 2, .absolute_tolerance = 1e-5, .relative_tolerance = 0, .first_step = 1};
  std::vector<double> x(static_cast<std::size_t>(instances * size)), k(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = tiny::number(3, static_cast<Index>(i) % size);
  for (Index i = 0; i < instances; ++i) {
    for (Index c = 0; c < size; ++c)
      x[static_cast<std::size_t>(i * size + c)] *= i == 0 ? 1.0 : i == 1 ? 4.0 : 16.0;
  }
  k = x;
  batch::HostExecutor executor;
  batch::detail::FlowControl<batch::HostExecutor, double> control(executor, options, size, instances);
  control.begin(executor, instances, x.data());
  // An error of h⁵ times the features.
  std::vector<double> time(3), tried(3);
  std::vector<Index> accepted(3), rejected(3);
  Index steps = 0;
  for (; !control.ended(); ++steps) {
    const double* h = control.propose();
    std::copy_n(h, 3, tried.begin());
    std::vector<double> error = x;
    for (Index i = 0; i < instances; ++i) {
      for (Index c = 0; c < size; ++c) {
        error[static_cast<std::size_t>(i * size + c)] *= std::pow(tried[static_cast<std::size_t>(i)], 4);
      }
    }
    kernels::StageSum<double> sum;
    sum.add(1, error.data());
    control.decide(executor, x.data(), k.data(), sum);
    for (std::size_t i = 0; i < 3; ++i) {
      const double taken = control.accepted_sizes()[i];
      CHECK((taken == 0 || taken == tried[i]));
      time[i] += taken;
      if (taken > 0) ++accepted[i];
      if (taken == 0 && tried[i] > 0) ++rejected[i];
    }
  }
  for (const double t : time) CHECK(t == doctest::Approx(options.time));
  CHECK(accepted[0] < accepted[1]);
  CHECK(accepted[1] < accepted[2]);
  for (const Index count : rejected) CHECK(count > 0);
  CHECK(steps == accepted[2] + rejected[2]);
}

TEST_CASE(
    "flows in the batch engine: too many steps, numbers that are not finite, times that a float cannot hold") {
  using Model = SheafFlow<Diagonal<2>, double>;
  const Dataset data = karate_club();
  batch::HostExecutor executor;
  FlowOptions o = karate_options(data, FlowMethod::dormand_prince);
  o.max_steps = 1;
  o.absolute_tolerance = o.relative_tolerance = 1e-7;
  Model model(o, 1);
  std::string expected;
  try {
    static_cast<void>(predict(model, data.graph, data.features, {.samples = 1}));
  } catch (const FlowError& e) {
    expected = e.what();
  }
  CHECK(expected.find("needs more than max_steps = 1 steps") != std::string::npos);
  CHECK_THROWS_WITH_AS((void)batch::predict(executor, model, data.graph, data.features), expected.c_str(),
                       FlowError);
  CHECK_THROWS_AS(batch::train(executor, model, data, data.splits[0]), FlowError);

  // A run that diverges says so, and the run beside it continues.
  Model good(karate_options(data, FlowMethod::dormand_prince), 1), bad = good, alone = good;
  bad.parameters().values()[0] = std::numeric_limits<double>::infinity();
  const TrainOptions training{.epochs = 4};
  const batch::Training<Model> both[] = {{&bad, &data.splits[0], training}, {&good, &data.splits[0], training}};
  const std::vector<batch::Outcome> outcomes =
      batch::train_batch<batch::HostExecutor, Model>(executor, data, both);
  CHECK(outcomes[0].error.find("is not finite") != std::string::npos);
  CHECK(outcomes[1].error.empty());
  batch::train(executor, alone, data, data.splits[0], training);
  CHECK(std::equal(alone.parameters().values().begin(), alone.parameters().values().end(),
                   good.parameters().values().begin()));

  o = karate_options(data, FlowMethod::euler);
  o.time = 1e300;
  const SheafFlow<Diagonal<2>> endless(o);
  CHECK_THROWS_WITH_AS((void)batch::predict(executor, endless, data.graph, data.features),
                       "time: 1e+300 is not allowed; must be finite in the model's scalar type",
                       std::invalid_argument);
}

TEST_CASE("a recording has no results to read") {
  batch::HostExecutor executor;
  const batch::Array<batch::HostExecutor, double> numbers(executor, "numbers", 3);
  CHECK_THROWS_WITH_AS(executor.record([&] { static_cast<void>(numbers.download()); }),
                       "download: a recording has no results to read", std::logic_error);
}

}  // namespace test_batch_flow
