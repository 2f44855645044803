/// \file
/// Cayley distributions of dimension 2 to 8 by Monte Carlo: the density integrates to 1, samples have its mean,
/// KL to uniform is the mean log density.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "rotation_checks.hpp"
#include "sheafnn/rotation/cayley_distribution.hpp"
#include "sheafnn/rotation/exponential.hpp"
#include "sheafnn/rotation/score.hpp"
#include "worst.hpp"

namespace test_cayley_distribution {
namespace {

using namespace rotation_checks;
using sheafnn::SquareMatrix;
using sheafnn::Stream;
using sheafnn::rotation::CayleyDistribution;

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
  const CayleyDistribution<N> distribution(sheafnn::rotation::haar_rotation<double, N>(Stream{.seed = 33}, 0u),
                                           kappa);
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
  CHECK(log_density.standard_errors_from(sheafnn::rotation::kl_to_uniform(distribution)) <=
        allowed_standard_errors);
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
    CHECK(log_density.standard_errors_from(sheafnn::rotation::kl_to_uniform(distribution)) <=
          allowed_standard_errors);
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

/// The largest errors of log f and of the score for N = 3, at angles θ about an axis: with q = (1 − κ)² + 4κ sin²(θ/2),
/// log f = log(1 − κ) + 3 log(1 + κ) − 2 log q, and the score is −4κ sin θ/q along the axis.
template <class S>
void check_concentrated(S least) {  // 1 − κ
  CAPTURE(least);
  using Parameters = sheafnn::rotation::RotationParameters<S, 3>;
  const S kappa = 1 - least;
  const CayleyDistribution<3, S> distribution(SquareMatrix<S, 3>::Identity(), kappa);
  const Parameters axis(S(2) / 3, S(-1) / 3, S(2) / 3);
  double worst = 0, worst_score = 0;
  for (const double angle : {double(least), 0.3, 1.0, 2.0, 3.0}) {
    const SquareMatrix<S, 3> p = sheafnn::rotation::exponential_rotation<S, 3>(Parameters(S(angle) * axis));
    const double theta = double(S(angle)), one = 1 - double(kappa), half = std::sin(theta / 2);
    const double q = one * one + 4 * double(kappa) * half * half;
    const double expected = std::log(one) + 3 * std::log(1 + double(kappa)) - 2 * std::log(q);
    // A rounded angle changes log q by its derivative.
    const double rounding = std::numeric_limits<S>::epsilon() * (1 + std::abs(expected) + 2 * std::sin(theta) / q);
    worst = test::worse(worst, std::abs(double(sheafnn::rotation::logpdf(distribution, p)) - expected) / rounding);
    const double slope = -4 * double(kappa) * std::sin(theta) / q;
    const auto score = sheafnn::rotation::score(distribution, p);
    for (int k = 0; k < 3; ++k) {
      const double error = std::abs(double(score(k)) - slope * double(axis(k)));
      worst_score =
          test::worse(worst_score,
                      error * one / (std::numeric_limits<S>::epsilon() * std::max(1.0, std::abs(slope))));
    }
  }
  CHECK(worst <= 32);
  CHECK(worst_score <= 32);
}

TEST_CASE("concentrated Cayley distributions on SO(3): density and score far from the mode") {
  for (const double least : {0.5, 1e-3, 1e-6, 1e-9, 1e-12}) check_concentrated<double>(least);
  for (const float least : {0.5f, 1e-2f, 1e-3f, 1e-5f}) check_concentrated<float>(least);
}

}  // namespace test_cayley_distribution
