/// \file
/// Directed layers on the GPU (device_batch.hpp).
#include "device_batch.hpp"
#include "directed_task.hpp"
#include "sheafnn/every_layer.hpp"

namespace test_device_directed {
using namespace sheafnn;
using batch_checks::compare_executors;
using batch_checks::small_options;
using batch_checks::small_problem;
using directed_task::options_of, directed_task::with_directions;

TEST_CASE("batches on the GPU agree with the host: directed layers") {
  using Model = BayesianDirectedSheafNetwork<SpecialOrthogonal<3>, double>;
  ModelOptions o = small_options();
  o.layers = 3;
  compare_executors<Model>(o, {}, with_directions(small_problem()));
  o.directed = options_of(15);
  compare_executors<Model>(o, {.samples = 2}, with_directions(small_problem()));
  o.channels = 8;
  o.directed = options_of(8);
  compare_executors<Model>(o, {}, with_directions(small_problem(false, 300)));
}

TEST_CASE("batches on the GPU agree with the host: directed layers without a distribution of maps") {
  using Model = DirectedSheafNetwork<GeneralLinear<2>, double>;
  ModelOptions o = small_options();
  o.directed = options_of(1);
  o.learner = LearnerInput::summed;
  compare_executors<Model>(o, {}, with_directions(small_problem()));
  o.directed = options_of(9);  // random phases
  o.learner = LearnerInput::concatenation;
  o.edge_features = 2;
  compare_executors<Model>(o, {.samples = 2}, batch_checks::with_arc_features(with_directions(small_problem())));
}

}  // namespace test_device_directed
