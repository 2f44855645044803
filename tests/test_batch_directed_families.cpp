/// \file
/// Directed layers of all families in the batch engine on the host against the networks of the CPU, in one step and in
/// trainings side by side, and with launches in another order. Options: test_batch_directed.cpp.
#include <doctest/doctest.h>

#include "batch_comparison.hpp"
#include "directed_task.hpp"
#include "sheafnn/every_layer.hpp"
#include "training_comparison.hpp"

namespace test_batch_directed_families {
namespace {

using namespace sheafnn;
using batch_checks::small_options;
using batch_checks::small_problem;
using directed_task::options_of, directed_task::with_directions;
using directed_task::Point, directed_task::Bayesian;

constexpr double bound = 1e-11;  // as in test_batch_network.cpp

}  // namespace

TEST_CASE_TEMPLATE("the batch engine agrees with the CPU: directed layers of a family", Model, Point<Diagonal<1>>,
                   Bayesian<Diagonal<3>>, Point<SpecialOrthogonal<2>>, Point<GeneralLinear<3>>) {
  const auto problem = with_directions(small_problem());
  for (const int choice : {0, 13}) {
    CAPTURE(choice);
    ModelOptions o = small_options();
    o.directed = options_of(choice);
    batch_checks::compare<Model>(o, {.samples = 2}, bound, problem);
  }
}

TEST_CASE_TEMPLATE("training by the batch engine follows the CPU: directed layers, and seeds side by side", Model,
                   Point<GeneralLinear<2>>, Bayesian<SpecialOrthogonal<3>>, Bayesian<Diagonal<2>>) {
  const Dataset data = karate_club();
  ModelOptions o;
  o.features = data.feature_count();
  o.channels = 4;
  o.classes = data.class_count;
  for (const int choice : {0, 13}) {
    CAPTURE(choice);
    o.directed = options_of(choice);
    training_comparison::compare_training_of(Model(o, 3), {.epochs = 12, .dropout = 0.2, .training_samples = 2},
                                             bound, data);
  }
  training_comparison::compare_seeds<Model>(o, data);
}

TEST_CASE_TEMPLATE("directed layers give the same bits in any order of the items of a launch", Model,
                   Point<GeneralLinear<3>>, Bayesian<SpecialOrthogonal<3>>) {
  ModelOptions o = small_options();
  o.directed = options_of(15);
  batch_checks::compare_orders<Model>(o, with_directions(small_problem(false, 300)));
}

}  // namespace test_batch_directed_families
