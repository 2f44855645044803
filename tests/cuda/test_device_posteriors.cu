/// \file
/// Batches of Bayesian networks with other maps and posteriors on the GPU (device_batch.hpp).
#include "device_batch.hpp"
#include "heavy_tailed_posterior.hpp"

namespace test_device_posteriors {
using namespace sheafnn;
using batch_checks::compare_executors;
using batch_checks::small_options;

TEST_CASE("batches on the GPU agree with the host: conformal maps, and a posterior without closed form") {
  compare_executors<Bsnn<Conformal<3>, double>>(small_options(), {});
  using Model = SheafModel<Diagonal<2>, test::HeavyTailedPosterior, double>;
  compare_executors<Model>(small_options(), {.estimator = KlEstimator::automatic, .samples = 2});
}

}  // namespace test_device_posteriors
