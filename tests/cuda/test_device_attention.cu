/// \file
/// Attention layers on the GPU (device_batch.hpp).
#include "device_batch.hpp"
#include "sheafnn/every_layer.hpp"

namespace test_device_attention {
using namespace sheafnn;
using batch_checks::compare_executors;
using batch_checks::small_options;
using batch_checks::small_problem;

TEST_CASE("batches on the GPU agree with the host: attention") {
  using Model = BayesianSheafAttention<SpecialOrthogonal<3>, double>;
  ModelOptions o = small_options();
  o.layers = 3;
  compare_executors<Model>(o, {});
  o.attention = {
      .heads = 3, .width = 2, .transported = true, .residual = true, .normalised = true, .random = true};
  compare_executors<Model>(o, {.samples = 2});
  o.channels = 8;
  o.attention.transported = false;
  compare_executors<Model>(o, {}, small_problem(false, 300));
}

TEST_CASE("batches on the GPU agree with the host: random scores without a distribution of maps") {
  ModelOptions o = small_options();
  o.layers = 3;
  o.attention = {.heads = 2, .random = true};
  o.learner_layers = 1;
  o.learner_width = 6;
  compare_executors<SheafAttention<GeneralLinear<2>, double>>(o, {.samples = 2});
}

}  // namespace test_device_attention
