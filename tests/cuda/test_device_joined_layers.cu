/// \file
/// Layers whose diffusion goes on with the next layer's mixing, on the GPU (device_batch.hpp).
#include "device_batch.hpp"

namespace test_device_joined_layers {
using namespace sheafnn;
using batch_checks::compare_executors;
using batch_checks::small_options;

TEST_CASE("batches on the GPU agree with the host: diffusion and the next layer's mixing in one kernel") {
  ModelOptions o = small_options();
  o.layers = 3;
  o.channels = 16;
  o.add_lp = true;
  compare_executors<Bsnn<SpecialOrthogonal<3>, double>>(o, {.samples = 2});
  o.channels = 8;
  o.linear = true;
  compare_executors<Nsd<GeneralLinear<2>, double>>(o, {});
  o.add_lp = false;
  o.right_weights = false;
  compare_executors<Bsnn<Diagonal<3>, double>>(o, {});
}

}  // namespace test_device_joined_layers
