/// \file
/// Batches of networks with polynomial filters and with initial residuals on the GPU (device_batch.hpp).
#include "device_batch.hpp"

namespace test_device_filters {
using namespace sheafnn;
using batch_checks::compare_executors;
using batch_checks::small_options;

TEST_CASE("batches on the GPU agree with the host: polynomial filters of Bayesian models") {
  ModelOptions o = small_options();
  o.filter = {PolynomialBasis::chebyshev_interpolation, 3};
  compare_executors<Bsnn<Diagonal<3>, double>>(o, {});
  o.filter = {PolynomialBasis::legendre, 2};
  o.filter.skip = HighPassSkip::mixed;
  o.add_lp = o.linear = o.layer_norm = true;
  o.learner = LearnerInput::summed;
  o.readout_layers = 3;
  compare_executors<Bsnn<SpecialOrthogonal<3>, double>>(o, {.samples = 2});
}

TEST_CASE("batches on the GPU agree with the host: polynomial filters of deterministic models") {
  ModelOptions o = small_options();
  o.layers = 3;
  o.filter = {PolynomialBasis::jacobi, 4};
  compare_executors<Nsd<SpecialOrthogonal<2>, double>>(o, {}, batch_checks::small_problem(false, 330));
  compare_executors<Nsd<Identity<2>, double>>(o, {});
}

TEST_CASE("batches on the GPU agree with the host: initial residuals") {
  ModelOptions o = small_options();
  o.layers = 3;
  o.residual = {ResidualForm::initial, 0.3, 1.2};
  o.add_lp = true;
  compare_executors<Bsnn<SpecialOrthogonal<3>, double>>(o, {.samples = 2});
  compare_executors<Nsd<SpecialOrthogonal<2>, double>>(o, {}, batch_checks::small_problem(false, 330));
  o.channels = 8;
  o.layer_norm = true;
  compare_executors<Nsd<Identity<2>, double>>(o, {});
}

}  // namespace test_device_filters
