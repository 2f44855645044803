/// \file
/// Batches of Bayesian networks on the GPU: every family, and options that take other paths (device_batch.hpp).
#include "device_batch.hpp"

namespace test_device_bayesian {
using namespace sheafnn;
using batch_checks::compare_executors;
using batch_checks::small_options;

TEST_CASE("batches on the GPU agree with the host: Bayesian models") {
  ModelOptions o = small_options();
  compare_executors<Bsnn<Diagonal<3>, double>>(o, {});
  compare_executors<Bsnn<GeneralLinear<2>, double>>(o, {});
  compare_executors<Bsnn<SpecialOrthogonal<3>, double>>(o, {.samples = 2});
  o.add_lp = o.add_hp = o.linear = o.second_linear = o.degree_input = true;
  o.channels = 17;
  o.learner_layers = 2;
  o.learner_width = 6;
  compare_executors<Bsnn<SpecialOrthogonal<3>, double>>(o, {.estimator = KlEstimator::monte_carlo});
}

}  // namespace test_device_bayesian
