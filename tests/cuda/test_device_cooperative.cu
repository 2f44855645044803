/// \file
/// Cooperative networks on the GPU: batches against the host (device_batch.hpp), and trainings side by side.
#include "device_batch.hpp"
#include "sheafnn/graph/karate.hpp"

namespace test_device_cooperative {
using namespace sheafnn;
using batch_checks::compare_executors;

TEST_CASE("batches on the GPU agree with the host: cooperative networks") {
  CooperativeOptions o = batch_checks::small_cooperative_options();
  compare_executors<Csnn<2, double>>(o, {});
  compare_executors<Bcsnn<3, double>>(o, {.samples = 2});
  o.channels = 8;
  o.norm = FeatureNorm::layer;
  o.readout_layers = 2;
  o.activation = Activation::tanh;
  o.left_weights = false;
  compare_executors<Csnn<3, double>>(o, {}, batch_checks::small_problem(false, 330));
  o.learner = NodeLearnerKind::sage_projected;
  o.learner_layers = 2;
  o.layer_learners = true;
  o.directed = true;
  o.residual = false;
  compare_executors<Bcsnn<2, double>>(o, {.estimator = KlEstimator::monte_carlo, .samples = 2});
}

TEST_CASE("cooperative networks train on the GPU as on the host, several seeds side by side") {
  const Dataset data = karate_club();
  CooperativeOptions options;
  options.features = data.feature_count();
  options.classes = data.class_count;
  options.channels = 8;
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
  check(static_cast<Csnn<2>*>(nullptr));
  check(static_cast<Bcsnn<2>*>(nullptr));
}

}  // namespace test_device_cooperative
