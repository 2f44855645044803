/// \file
/// TangentNormalPosterior: derivatives, packs, extremes, and the mean of its Monte Carlo KL against closed forms.
#include <doctest/doctest.h>

#include <cmath>
#include <numbers>
#include <random>

#include "posterior_checks.hpp"
#include "sheafnn/posterior/tangent_normal.hpp"
#include "sheafnn/rotation/exponential.hpp"

namespace test_tangent_normal_posterior {
namespace {

using namespace posterior_checks;
using sheafnn::CayleyPrior;
using sheafnn::SpecialOrthogonal;
using sheafnn::SquareMatrix;

template <int D, class Prior = sheafnn::HaarPrior<D>>
using Posterior = sheafnn::TangentNormalPosterior<SpecialOrthogonal<D>, Prior>;

template <int D>
Posterior<D, CayleyPrior<D>> with_cayley_prior(double concentration,
                                               RotationParametrisation parametrisation = {}) {
  std::mt19937 engine(910);
  const SquareMatrix<double, D> location = sheafnn::rotation::exponential_rotation<double, D>(
      rotation_checks::random_matrix<sheafnn::rotation::rotation_parameters<D>, 1>(engine, 1.5));
  return {parametrisation, CayleyPrior<D>(location, concentration)};
}

template <int D>
void check_tangent_normal() {
  for_parametrisations<D>([](RotationParametrisation parametrisation) {
    CAPTURE(to_string(parametrisation));
    for (const double scale : {0.3, 2.5}) {
      check_derivatives(Posterior<D>{parametrisation}, scale);
      check_derivatives(with_cayley_prior<D>(0.6, parametrisation), scale);
    }
  });
  for (const sheafnn::SheafActivation activation : {sheafnn::SheafActivation::identity, sheafnn::SheafActivation::elu}) {
    Posterior<D> q;
    q.sheaf_activation = activation;
    check_derivatives(q, 0.7);
  }
  check_packs(Posterior<D>());
  check_packs(with_cayley_prior<D>(0.6));
  const auto check = [](const Doubles& parameters, double spread) {
    using Q = Posterior<D>;
    const double expected = std::log(Q::largest_sigma) + (spread > 0 ? 0 : spread == 0 ? -1 : -31);
    CHECK(parameters.back() == doctest::Approx(expected).epsilon(1e-6));
    CHECK(parameters[Q::sigma] > 0);
    CHECK(parameters[Q::sigma] <= Q::largest_sigma * (1 + 1e-6));
  };
  check_extremes<float>(Posterior<D>(), check);
  check_extremes<Pack<float, 16>>(Posterior<D>(), check);
  check_extremes<double>(with_cayley_prior<D>(0.95));
}

/// M = I turned by θ in the plane of the first two axes, equal deviations.
template <int D>
Doubles parameters(double angle, double sigma) {
  const SquareMatrix<double, D> location = rotation_checks::turn<D>(angle);
  Doubles r(location.data(), location.data() + D * D);
  r.insert(r.end(), std::size_t(sheafnn::rotation::rotation_parameters<D>), sigma);
  r.insert(r.end(), std::size_t(sheafnn::rotation::rotation_parameters<D>), std::log(sigma));
  return r;
}

template <class Q>
void check_mean(const Q& q, const Doubles& in, double exact) {
  const rotation_checks::Mean mean = mean_log_ratio(q, in.data());
  CHECK(mean.standard_errors_from(exact) <= rotation_checks::allowed_standard_errors);
  CHECK(mean.standard_error() < 0.05 * std::max(1.0, exact));
}

}  // namespace

TEST_CASE("tangent normal posterior: sizes and activations") {
  using Q = Posterior<3>;
  CHECK(Q::mean_size == 3);
  CHECK(Q::spread_size == 3);
  CHECK(Q::parameter_size == 15);
  CHECK(Posterior<1>::mean_size == 0);
  CHECK(Posterior<1>::spread_size == 1);
  CHECK(Posterior<4>::spread_size == 6);
  const double raw[] = {0.2, -0.4, 0.6, 0, 1.5, -0.7};
  double out[Q::parameter_size];
  Q().activate(raw, out);
  const double log_sigma[] = {-1, -std::exp(-1.5), -1.7};
  for (int k = 0; k < 3; ++k) {
    CHECK(std::abs(out[Q::log_sigma + k] - log_sigma[k]) <= 4 * rotation_checks::epsilon);
    CHECK(std::abs(out[Q::sigma + k] - std::exp(log_sigma[k])) <= 4 * rotation_checks::epsilon);
  }
  SquareMatrix<double, 3> mean, point;
  Q().mean(static_cast<const double*>(out), mean);
  sheafnn::PointMap<SpecialOrthogonal<3>>().map(raw, point);
  CHECK(mean == point);
}

TEST_CASE("tangent normal posterior: SO(1) has nothing to say") {
  const Posterior<1> q;
  const Doubles raw = {0.7};
  double out[Posterior<1>::parameter_size];
  q.activate(raw.data(), out);
  SquareMatrix<double, 1> map;
  const double noise[] = {1.3};
  q.sample(static_cast<const double*>(out), noise, map);
  CHECK(map(0, 0) == 1);
  CHECK(q.log_ratio(static_cast<const double*>(out), noise, map) == 0);
}

TEST_CASE("tangent normal posterior: derivatives, packs, extremes") {
  check_tangent_normal<1>();
  check_tangent_normal<2>();
  check_tangent_normal<3>();
}
TEST_CASE("tangent normal posterior of SO(4)") { check_tangent_normal<4>(); }

// log q = −½ε² − log σ + ½ log 2π, and log p = log(1 − κ₀²) + 2 Σ κ₀ᵏ cos(kα)/k for the angle α = θ + σε from M₀.
TEST_CASE("tangent normal posterior of SO(2): mean of the Monte Carlo KL") {
  for (const double sigma : {0.05, 0.4, 1.0}) {
    CAPTURE(sigma);
    const double uniform = -0.5 - std::log(sigma) + 0.5 * std::log(2 * std::numbers::pi);
    check_mean(Posterior<2>(), parameters<2>(0.3, sigma), uniform);
    const double angle = 0.8, kappa = 0.6;
    double log_prior = std::log(1 - kappa * kappa);
    for (int k = 1; k < 100; ++k) {
      log_prior += 2 * std::pow(kappa, k) / k * std::cos(k * angle) * std::exp(-0.5 * k * k * sigma * sigma);
    }
    const SquareMatrix<double, 2> location = rotation_checks::turn<2>(1.1 - angle);
    check_mean(Posterior<2, CayleyPrior<2>>{{}, {location, kappa}}, parameters<2>(1.1, sigma),
               uniform - log_prior);
  }
}

// The length of φ is σ times a χ number of 3 degrees of freedom; log 8π² is the volume's.
TEST_CASE("tangent normal posterior of SO(3): mean of the Monte Carlo KL") {
  for (const double sigma : {0.05, 0.4, 0.8}) {
    CAPTURE(sigma);
    constexpr int cells = 100000;
    double log_jacobian = 0;
    for (int i = 1; i < cells; ++i) {
      const double x = 12.0 * i / cells, half = 0.5 * sigma * x;
      log_jacobian += 12.0 / cells * std::sqrt(2 / std::numbers::pi) * x * x * std::exp(-0.5 * x * x) *
                      std::log(std::pow(std::sin(half) / half, 2));
    }
    const double log_two_pi = std::log(2 * std::numbers::pi);
    const double exact = -1.5 - 3 * std::log(sigma) - 1.5 * log_two_pi +
                         std::log(8 * std::numbers::pi * std::numbers::pi) - log_jacobian;
    check_mean(Posterior<3>(), parameters<3>(0.3, sigma), exact);
  }
}

}  // namespace test_tangent_normal_posterior
