/// \file
/// Cayley distributions of dimension 2 to 8 by Monte Carlo: the density integrates to 1, samples have its mean,
/// KL to uniform is the mean log density.
#include <doctest/doctest.h>

#include <cstdint>

#include "rotation_checks.hpp"
#include "sheafnn/rotation/cayley_distribution.hpp"

namespace test_cayley_distribution {
namespace {

using namespace rotation_checks;
using sheafnn::rotation::CayleyDistribution;
using sheafnn::SquareMatrix;
using sheafnn::Stream;

template <int N>
CayleyDistribution<N> centred(double kappa) {
  return {SquareMatrix<double, N>::Identity(), kappa};
}

constexpr std::uint32_t samples = 6000;

/// ∫ f dHaar and ∫ f tr(PMᵀ) dHaar by uniform sampling; E log f and E tr(YMᵀ) by sampling f.
template <int N>
void check_monte_carlo(double kappa) {
  CAPTURE(N);
  CAPTURE(kappa);
  const Stream uniform{.seed = 31};
  const Stream noise{.seed = 32};
  const CayleyDistribution<N> distribution(sheafnn::rotation::haar_rotation<double, N>(Stream{.seed = 33}, 0u), kappa);
  Mean one, trace_by_density, trace, log_density, entry;
  for (std::uint32_t id = 0; id < samples; ++id) {
    const SquareMatrix<double, N> u = sheafnn::rotation::haar_rotation<double, N>(uniform, id);
    const double f = sheafnn::rotation::pdf(distribution, u);
    one.add(f);
    trace_by_density.add(f * frobenius(u, distribution.location()));
    const SquareMatrix<double, N> y = sheafnn::rotation::sample(distribution, noise, id);
    log_density.add(sheafnn::rotation::logpdf(distribution, y));
    trace.add(frobenius(y, distribution.location()));
    entry.add(y(N - 1, 0));
  }
  const SquareMatrix<double, N> expected = sheafnn::rotation::mean(distribution);
  const double expected_trace = frobenius(expected, distribution.location());
  CHECK(trace.standard_errors_from(expected_trace) <= allowed_standard_errors);
  CHECK(entry.standard_errors_from(expected(N - 1, 0)) <= allowed_standard_errors);
  CHECK(log_density.standard_errors_from(sheafnn::rotation::kl_to_uniform(distribution)) <= allowed_standard_errors);
  CHECK(one.standard_errors_from(1) <= allowed_standard_errors);
  CHECK(trace_by_density.standard_errors_from(expected_trace) <= allowed_standard_errors);
}

}  // namespace

TEST_CASE("Cayley samples follow the density, and KL to uniform is the mean log density") {
  check_monte_carlo<2>(0.5);
  check_monte_carlo<3>(0.4);
  check_monte_carlo<4>(0.3);
  check_monte_carlo<5>(0.25);
  check_monte_carlo<6>(0.2);
  check_monte_carlo<7>(0.15);
  check_monte_carlo<8>(0.1);
}

TEST_CASE("mean log density of concentrated Cayley samples is KL to uniform") {
  const auto check = [](const auto& distribution, double kappa) {
    CAPTURE(kappa);
    Mean log_density;
    for (std::uint32_t id = 0; id < samples; ++id) {
      log_density.add(sheafnn::rotation::logpdf(distribution,
                                                sheafnn::rotation::sample(distribution, Stream{.seed = 34}, id)));
    }
    CHECK(log_density.standard_errors_from(sheafnn::rotation::kl_to_uniform(distribution)) <= allowed_standard_errors);
  };
  for (const double kappa : {0.6, 0.9}) {
    check(centred<2>(kappa), kappa);
    check(centred<3>(kappa), kappa);
    check(centred<4>(kappa), kappa);
    check(centred<5>(kappa), kappa);
    check(centred<6>(kappa), kappa);
    check(centred<7>(kappa), kappa);
    check(centred<8>(kappa), kappa);
  }
}

}  // namespace test_cayley_distribution
