/// \file
/// Networks of convolutions on given sheaves on the GPU: batches against the host (device_batch.hpp), and trainings side by
/// side.
#include "device_batch.hpp"
#include "given_sheaves.hpp"
#include "sheafnn/convolution.hpp"
#include "sheafnn/graph/karate.hpp"

namespace test_device_convolutions {
using namespace sheafnn;
using batch_checks::compare_executors;
using batch_checks::small_problem;
using given_sheaves::around_maps;
using given_sheaves::maps_of_layers;
using given_sheaves::maps_over;

TEST_CASE("batches on the GPU agree with the host: convolutions on given sheaves") {
  batch_checks::Problem problem = small_problem();
  ConvolutionOptions o = batch_checks::small_options<ConvolutionOptions>();
  using Rotations = SpecialOrthogonal<3>;
  compare_executors<SheafConvolutions<Rotations, double>>(o, {}, problem,
                                                          maps_of_layers<Rotations>(problem.graph, 2));
  for (const DeviationSource source : given_sheaves::deviation_sources) {
    compare_executors<BayesianSheafConvolutions<Rotations, double>>(o, {.samples = 2}, problem,
                                                                    around_maps<Rotations>(problem.graph, source));
  }
  using Matrices = GeneralLinear<2>;
  problem = small_problem(false, 300);
  o.widths = {8, 4, 12};
  o.activation = Activation::tanh;
  o.normalisation = Normalisation::block;
  compare_executors<SheafConvolutions<Matrices, double>>(o, {}, problem, maps_over<Matrices>(problem.graph));
  o.widths[0] = o.features / 2;
  o.encoder = o.bias = o.left_weights = false;
  compare_executors<BayesianSheafConvolutions<Matrices, double>>(
      o, {.estimator = KlEstimator::monte_carlo, .samples = 2}, problem,
      around_maps<Matrices>(problem.graph, DeviationSource::arcs));
  using Signs = Diagonal<1>;
  o.widths = {};
  o.readout = false;
  o.normalisation = Normalisation::augmented;
  compare_executors<SheafConvolutions<Signs, double>>(o, {}, problem, maps_over<Signs>(problem.graph));
}

TEST_CASE("convolutions train on the GPU as on the host, several seeds side by side") {
  const Dataset data = karate_club();
  ConvolutionOptions o;
  o.features = data.feature_count();
  o.classes = data.class_count;
  using Family = Diagonal<2>;
  batch_checks::compare_seeds_on_device<SheafConvolutions<Family>>(data, o, maps_over<Family>(data.graph));
  batch_checks::compare_seeds_on_device<BayesianSheafConvolutions<Family>>(
      data, o, around_maps<Family>(data.graph, DeviationSource::labels));
}

}  // namespace test_device_convolutions
