/// \file
/// Directed layers in the batch engine on the host: against the networks of the CPU with all options, gradients along every
/// coordinate, and what batches refuse. All families: test_batch_directed_families.cpp.
#include <doctest/doctest.h>

#include "batch_comparison.hpp"
#include "batch_gradient.hpp"
#include "directed_task.hpp"
#include "refusal.hpp"
#include "sheafnn/every_layer.hpp"

namespace test_batch_directed {
namespace {

using namespace sheafnn;
using batch_checks::compare;
using batch_checks::small_options;
using batch_checks::small_problem;
using directed_task::options_of, directed_task::with_directions;
using directed_task::Point, directed_task::Bayesian;

constexpr double bound = 1e-11;  // as in test_batch_network.cpp

/// Layer 0 is a directed layer, and the others are diffusion layers.
template <class Family, class S>
using FirstDirected =
    LayerWhere<layers::DirectedLayer<Family, S>, [](const layers::LayerSetting& of) { return of.number == 0; }>;
using Among =
    SheafModel<Diagonal<2>, PointMass<Diagonal<2>>, double, LayerKinds<FirstDirected, layers::DiffusionLayer>>;

ModelOptions three_layers(ModelOptions r = small_options()) {
  r.layers = 3;
  return r;
}

}  // namespace

TEST_CASE_TEMPLATE("the batch engine agrees with the CPU: directed layers", Model, Point<GeneralLinear<2>>,
                   Bayesian<SpecialOrthogonal<3>>, Bayesian<Diagonal<2>>, Point<Identity<2>>) {
  const auto problem = with_directions(small_problem());
  for (int choice = 0; choice < 16; ++choice) {
    CAPTURE(choice);
    ModelOptions o = three_layers();
    o.directed = options_of(choice);
    compare<Model>(o, {.samples = 2}, bound, problem);
  }
}

TEST_CASE_TEMPLATE("the batch engine agrees with the CPU: directed layers with other options", Model,
                   Point<GeneralLinear<2>>, Bayesian<SpecialOrthogonal<3>>, Bayesian<Diagonal<2>>,
                   Point<Identity<2>>) {
  const auto problem = with_directions(small_problem());
  ModelOptions o = three_layers();
  SUBCASE("no edges, no dropout") {
    o.directed = options_of(8);
    compare<Model>(o, {.input_dropout = 0, .dropout = 0}, bound, small_problem(true));
  }
  SUBCASE("arcs of a node in segments") {
    o.directed = options_of(9);
    compare<Model>(o, {}, bound, with_directions(small_problem(false, 300)));
  }
  SUBCASE("one sheaf, no weights, no activation") {
    o.linear = true;
    o.left_weights = false;
    o.directed = options_of(11);
    compare<Model>(o, {}, bound, problem);
    o.right_weights = o.activation = false;
    compare<Model>(o, {.samples = 2}, bound, problem);
    o.left_weights = true;
    compare<Model>(o, {}, bound, problem);
  }
  SUBCASE("whole tiles, a norm, a hidden readout, a second linear layer") {
    o.channels = 8;
    o.layer_norm = o.second_linear = true;
    o.readout_layers = 2;
    o.directed = options_of(15);
    compare<Model>(o, {.estimator = KlEstimator::monte_carlo}, bound, problem);
  }
  SUBCASE("one layer, the block normalisation, an encoder of the maps' own") {
    o.layers = 1;
    o.normalisation = Normalisation::block;
    if (Model::bayesian) o.separate_encoder = true;
    o.directed = options_of(8);
    compare<Model>(o, {.samples = 2}, bound, problem);
  }
  if constexpr (sheaf::is_learned<typename Model::Family>) {
    SUBCASE("learners of sums, with hidden layers") {
      o.learner = LearnerInput::summed;
      compare<Model>(o, {}, bound, problem);
      o.learner = LearnerInput::summed_published;
      o.learner_layers = 2;
      o.learner_width = 6;
      compare<Model>(o, {}, bound, problem);
      o.directed = options_of(8);
      compare<Model>(o, {.samples = 3}, bound, problem);
      o.learner = LearnerInput::concatenation;
      o.learner_layers = 0;
      o.edge_features = 2;
      compare<Model>(o, {.samples = 3}, bound, batch_checks::with_arc_features(problem));
    }
  }
}

TEST_CASE("the batch engine agrees with the CPU: edge weights of directed layers") {
  ModelOptions o = three_layers();
  o.edge_weights = true;
  const auto problem = with_directions(small_problem());
  for (const LearnerInput input : {LearnerInput::concatenation, LearnerInput::summed}) {
    o.learner = input;
    for (const int choice : {0, 8}) {
      o.directed = options_of(choice);
      compare<Point<SpecialOrthogonal<2>>>(o, {.samples = 2}, bound, problem);
      compare<Bayesian<SpecialOrthogonal<3>>>(o, {.samples = 2}, bound, problem);
    }
  }
}

TEST_CASE_TEMPLATE("gradients of directed layers in the batch engine, along every coordinate", Model,
                   Point<GeneralLinear<2>>, Bayesian<SpecialOrthogonal<3>>, Bayesian<Diagonal<2>>,
                   Point<Identity<2>>) {
  for (const int choice : {0, 7, 13}) {
    CAPTURE(choice);
    ModelOptions o = three_layers(tiny::options());
    o.directed = options_of(choice);
    batch_checks::compare_gradient<Model>(o);
  }
}

TEST_CASE("all layers of a batch have complex features, or none") {
  batch::HostExecutor executor;
  ModelOptions o = three_layers();
  o.layer = LayerForm::diffusion;
  CHECK(test::message_of(
            [&] { static_cast<void>(batch_checks::run_batch<Among>(executor, small_problem(), o, {})); }) ==
        "layer: directed is not allowed; the option `layer` is diffusion, and in batches all layers have complex "
        "features, or none");
}

}  // namespace test_batch_directed
