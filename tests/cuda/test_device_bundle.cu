/// \file
/// Bundle networks on the GPU: batches against the host (device_batch.hpp), and trainings side by side.
#include "device_batch.hpp"
#include "sheafnn/graph/karate.hpp"

namespace test_device_bundle {
using namespace sheafnn;
using batch_checks::compare_executors;

TEST_CASE("batches on the GPU agree with the host: bundle networks") {
  BundleOptions o = batch_checks::small_bundle_options();
  compare_executors<Bunn<2, double>>(o, {});
  compare_executors<BayesianBunn<3, double>>(o, {.samples = 2});
  o.channels = 8;
  o.expansion = HeatExpansion::taylor;
  o.normalisation = AdjacencyNormalisation::random_walk;
  o.self_loops = true;
  o.learner = BundleLearnerKind::sage_residual;
  o.learner_layers = 2;
  o.readout_layers = 2;
  compare_executors<Bunn<3, double>>(o, {}, batch_checks::small_problem(false, 330));
  o.expansion = HeatExpansion::hops;
  o.learner = BundleLearnerKind::mlp;
  o.learner_layers = 1;
  o.mixing = BundleMixing::linear;
  o.activation = Activation::tanh;
  o.residual = o.layer_norm = false;
  compare_executors<BayesianBunn<2, double>>(o, {.estimator = KlEstimator::monte_carlo, .samples = 2});
  o.expansion = HeatExpansion::spectral;
  compare_executors<BayesianBunn<2, double>>(o, {.samples = 2});
  o.expansion = HeatExpansion::limit;
  compare_executors<Bunn<2, double>>(o, {}, batch_checks::small_problem(false, 330));
}

TEST_CASE("bundle networks train on the GPU as on the host, several seeds side by side") {
  const Dataset data = karate_club();
  BundleOptions options;
  options.features = data.feature_count();
  options.classes = data.class_count;
  options.bundles = 4;
  options.layers = 2;
  batch_checks::compare_seeds_on_device<Bunn<2>>(data, options);
  batch_checks::compare_seeds_on_device<BayesianBunn<2>>(data, options);
}

}  // namespace test_device_bundle
