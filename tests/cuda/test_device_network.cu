/// \file
/// Batches of networks on the GPU against the same kernels on the host (which tests/test_batch_network.cpp compares with
/// the CPU's networks): every family, and options that take other paths.
#include <doctest/doctest.h>

#include "batch_checks.hpp"
#include "sheafnn/cuda.hpp"
#include "sheafnn/cuda/host_executor.hpp"

namespace {

using namespace sheafnn;
using batch_checks::relative;
using batch_checks::small_options;
using batch_checks::Step;

template <class Model>
void compare(const ModelOptions& options, const Step& step) {
  // As on the host: sums of some dozens of terms through two or three layers.
  constexpr double bound = 1e-11;
  const batch_checks::Problem problem = batch_checks::small_problem();
  cuda::HostExecutor host;
  cuda::DeviceExecutor device;
  const auto expected = batch_checks::run_batch<Model>(host, problem, options, step);
  const auto own = batch_checks::run_batch<Model>(device, problem, options, step);
  CHECK(relative(own.nll, expected.nll) <= bound);
  CHECK(relative(own.kl, expected.kl) <= bound);
  CHECK(relative(own.gradient, expected.gradient) <= bound);
  CHECK(relative(own.log_probabilities, expected.log_probabilities) <= bound);
  CHECK(relative(own.probabilities, expected.probabilities) <= bound);
  // And again, to the bit.
  const auto again = batch_checks::run_batch<Model>(device, problem, options, step);
  CHECK(again.gradient == own.gradient);
  CHECK(again.probabilities == own.probabilities);
}

}  // namespace

TEST_CASE("batches on the GPU agree with the host: Bayesian models") {
  ModelOptions o = small_options();
  compare<Bsnn<Diagonal<3>, double>>(o, {});
  compare<Bsnn<GeneralLinear<2>, double>>(o, {});
  compare<Bsnn<SpecialOrthogonal<3>, double>>(o, {.samples = 2});
  o.add_lp = o.add_hp = o.linear = o.second_linear = o.degree_input = true;
  o.channels = 17;
  o.learner_layers = 2;
  o.learner_width = 6;
  compare<Bsnn<SpecialOrthogonal<3>, double>>(o, {.estimator = KlEstimator::monte_carlo});
}

TEST_CASE("batches on the GPU agree with the host: deterministic models") {
  ModelOptions o = small_options();
  o.layers = 3;
  compare<Nsd<SpecialOrthogonal<2>, double>>(o, {});
  compare<Nsd<GeneralLinear<3>, double>>(o, {});
  compare<Nsd<Identity<2>, double>>(o, {});
  o.left_weights = false;
  o.learner_layers = 1;
  compare<Nsd<GeneralLinear<3>, double>>(o, {.input_dropout = 0});
}
