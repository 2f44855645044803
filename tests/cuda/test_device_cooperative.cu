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
  o.learner = NodeLearnerKind::sage;
  o.norm = FeatureNorm::batch;
  compare_executors<Bcsnn<2, double>>(o, {.samples = 2}, batch_checks::small_problem(false, 330));
}

TEST_CASE("cooperative networks train on the GPU as on the host, several seeds side by side") {
  const Dataset data = karate_club();
  CooperativeOptions options;
  options.features = data.feature_count();
  options.classes = data.class_count;
  options.channels = 8;
  options.layers = 2;
  batch_checks::compare_seeds_on_device<Csnn<2>>(data, options);
  batch_checks::compare_seeds_on_device<Bcsnn<2>>(data, options);
}

}  // namespace test_device_cooperative
