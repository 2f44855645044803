/// \file
/// Batches of deterministic networks on the GPU: every family, and options that take other paths
/// (device_batch.hpp).
#include "device_batch.hpp"

namespace test_device_deterministic {
using namespace sheafnn;
using batch_checks::compare_executors;
using batch_checks::small_options;

TEST_CASE("batches on the GPU agree with the host: deterministic models") {
  ModelOptions o = small_options();
  o.layers = 3;
  compare_executors<Nsd<SpecialOrthogonal<2>, double>>(o, {});
  compare_executors<Nsd<SpecialOrthogonal<2>, double>>(o, {}, batch_checks::small_problem(false, 330));
  compare_executors<Nsd<GeneralLinear<3>, double>>(o, {});
  compare_executors<Nsd<Identity<2>, double>>(o, {});
  o.left_weights = false;
  o.learner_layers = 1;
  compare_executors<Nsd<GeneralLinear<3>, double>>(o, {.input_dropout = 0});
}

}  // namespace test_device_deterministic
