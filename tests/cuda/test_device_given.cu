/// \file
/// Networks with given maps, on connections and with posteriors around given maps on the GPU (device_batch.hpp).
#include "device_batch.hpp"
#include "given_sheaves.hpp"
#include "sheafnn/flow.hpp"

namespace test_device_given {
using namespace sheafnn;
using batch_checks::compare_executors;
using batch_checks::small_options;
using batch_checks::small_problem;
using given_sheaves::maps_of_layers;
using given_sheaves::maps_over;

TEST_CASE("batches on the GPU agree with the host: given maps") {
  const batch_checks::Problem problem = small_problem();
  ModelOptions o = small_options();
  o.layers = 3;
  using Rotations = SpecialOrthogonal<3>;
  compare_executors<Snn<Rotations, double>>(o, {}, problem, maps_of_layers<Rotations>(problem.graph, 3));
  using Matrices = GeneralLinear<2>;
  compare_executors<Snn<Matrices, double>>(o, {}, problem, maps_over<Matrices>(problem.graph));
  for (const DeviationSource source : given_sheaves::deviation_sources) {
    compare_executors<Bgsnn<Rotations, double>>(o, {.samples = 2}, problem,
                                                given_sheaves::around_maps<Rotations>(problem.graph, source));
  }
  compare_executors<GivenSheafFlow<Matrices, double>>(batch_checks::small_flow_options(), {}, problem,
                                                      maps_over<Matrices>(problem.graph));
}

TEST_CASE_TEMPLATE("batches on the GPU agree with the host: connections", Model, ConnNsd<2, double>,
                   BconnNsd<3, double>) {
  ConnectionModelOptions o;
  static_cast<ModelOptions&>(o) = small_options();
  compare_executors<Model>(o, {});
  o.layers = 3;
  o.channels = 8;
  compare_executors<Model>(o, {}, small_problem(false, 300));
}

}  // namespace test_device_given
