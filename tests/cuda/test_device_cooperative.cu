/// \file
/// Cooperative networks on the GPU: batches against the host (device_batch.hpp), and trainings side by side.
#include "device_batch.hpp"
#include "sheafnn/graph/karate.hpp"

namespace test_device_cooperative {
using namespace sheafnn;
using batch_checks::compare_executors;

namespace {

CooperativeOptions small_options() {
  CooperativeOptions r;
  r.features = batch_checks::columns;
  r.classes = batch_checks::classes;
  r.channels = 5;
  r.layers = 2;
  r.learner_width = 7;
  return r;
}

}  // namespace

TEST_CASE("batches on the GPU agree with the host: cooperative networks") {
  CooperativeOptions o = small_options();
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
  const auto train = [&]<class Model, class Executor>(Executor& executor, std::size_t count, Model*) {
    std::vector<Model> models;
    for (std::uint64_t seed = 0; seed < count; ++seed) models.emplace_back(options, seed);
    std::vector<batch::Training<Model>> trainings;
    for (Model& model : models) trainings.push_back({&model, &data.splits[0], {.epochs = 10}});
    std::vector<double> losses;
    for (const auto& outcome : batch::train_batch<Executor, Model>(executor, data, trainings)) {
      for (const EpochReport& report : outcome.result.history) losses.push_back(report.loss);
    }
    return losses;
  };
  const auto check = [&]<class Model>(Model* kind) {
    batch::HostExecutor host;
    batch::DeviceExecutor device;
    const std::vector<double> expected = train(host, 3, kind), own = train(device, 3, kind),
                              one = train(device, 1, kind);
    CHECK(expected.size() == 30);
    CHECK(batch_checks::relative(own, expected) <= 1e-4);  // single precision
    CHECK(std::vector<double>(own.begin(), own.begin() + 10) == one);
  };
  check(static_cast<Csnn<2>*>(nullptr));
  check(static_cast<Bcsnn<2>*>(nullptr));
}

}  // namespace test_device_cooperative
