/// \file
/// Flows in the batch engine on the host: against the networks of the CPU, gradients along every coordinate, trainings
/// against sheafnn::train, and what is refused.
#include <doctest/doctest.h>

#include <stdexcept>
#include <string>

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
  for (const FlowMethod method : {FlowMethod::runge_kutta, FlowMethod::euler}) {
    const Model start(karate_options(data, method), 3);
    training_comparison::compare_training_of(start, options, 1e-10, data);
  }
}

TEST_CASE_TEMPLATE("a batch of three seeds of a flow: three single trainings, and checkpoints", Model,
                   SheafFlow<Diagonal<2>, double>, BayesianSheafFlow<SpecialOrthogonal<3>, double>) {
  const Dataset data = karate_club();
  training_comparison::compare_seeds<Model>(karate_options(data, FlowMethod::runge_kutta), data);
}

TEST_CASE(
    "the batch engine refuses flows whose steps depend on the features, and times that a float cannot hold") {
  using Model = SheafFlow<Diagonal<2>>;
  const Dataset data = karate_club();
  batch::HostExecutor executor;
  Model model(karate_options(data, FlowMethod::dormand_prince));
  constexpr const char* message =
      "method: dormand-prince is not allowed; its steps depend on the features, but a batch needs equal steps. "
      "Choose runge-kutta or euler, or train the models one by one";
  CHECK_THROWS_WITH_AS(batch::train(executor, model, data, data.splits[0]), message, std::invalid_argument);
  CHECK_THROWS_WITH_AS((void)batch::predict(executor, model, data.graph, data.features), message,
                       std::invalid_argument);
  FlowOptions o = karate_options(data, FlowMethod::euler);
  o.time = 1e300;
  const Model endless(o);
  CHECK_THROWS_WITH_AS((void)batch::predict(executor, endless, data.graph, data.features),
                       "time: 1e+300 is not allowed; must be finite in the model's scalar type",
                       std::invalid_argument);
}

}  // namespace test_batch_flow
