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
}

TEST_CASE("bundle networks train on the GPU as on the host, several seeds side by side") {
  const Dataset data = karate_club();
  BundleOptions options;
  options.features = data.feature_count();
  options.classes = data.class_count;
  options.bundles = 4;
  options.layers = 2;
  const auto check = [&]<class Model>(Model*) {
    batch::HostExecutor host;
    batch::DeviceExecutor device;
    const auto train = [&](auto& executor, std::uint64_t count) {
      return batch_checks::losses_side_by_side<Model>(executor, data, options, {.epochs = 10}, 0, count);
    };
    const std::vector<double> expected = train(host, 3), own = train(device, 3), one = train(device, 1);
    CHECK(expected.size() == 30);
    CHECK(batch_checks::relative(own, expected) <= 1e-4);  // single precision
    CHECK(std::vector<double>(own.begin(), own.begin() + 10) == one);
  };
  check(static_cast<Bunn<2>*>(nullptr));
  check(static_cast<BayesianBunn<2>*>(nullptr));
}

}  // namespace test_device_bundle
