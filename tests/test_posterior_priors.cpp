/// \file
/// Posteriors with priors of their own: normal distributions with any mean and deviation, Cayley distributions of
/// rotations. KL against integrals, quadrature and samples; derivatives; packs; what the priors refuse.
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <limits>
#include <random>

#include "posterior_checks.hpp"
#include "sheafnn/posterior/default_posterior.hpp"
#include "sheafnn/rotation/cayley_divergence.hpp"
#include "sheafnn/rotation/exponential.hpp"

namespace test_posterior_priors {
namespace {

using namespace posterior_checks;
using sheafnn::rotation::CayleyDistribution;
using sheafnn::CayleyPrior;
using sheafnn::Diagonal;
using sheafnn::GeneralLinear;
using sheafnn::NormalPrior;
using sheafnn::SpecialOrthogonal;
using sheafnn::SquareMatrix;

template <class Family>
using WithNormalPrior = sheafnn::NormalPosterior<Family, NormalPrior<Family::coordinate_count>>;
template <int D>
using WithCayleyPrior = sheafnn::CayleyPosterior<SpecialOrthogonal<D>, CayleyPrior<D>>;
template <int D>
using WithUniformPrior = sheafnn::CayleyPosterior<SpecialOrthogonal<D>>;

/// Means in (−1, 1) and deviations in (0.5, 1.5), all different.
template <int Size>
NormalPrior<Size> normal_prior() {
  std::array<double, Size> mean{}, deviation{};
  for (int k = 0; k < Size; ++k) {
    mean[std::size_t(k)] = tiny::number(800, k);
    deviation[std::size_t(k)] = 1 + 0.5 * tiny::number(801, k);
  }
  return {mean, deviation};
}

template <int D>
SquareMatrix<double, D> some_rotation(std::uint32_t seed) {
  std::mt19937 engine(seed);
  return sheafnn::rotation::exponential_rotation<double, D>(
      rotation_checks::random_matrix<sheafnn::rotation::rotation_parameters<D>, 1>(engine, 1.5));
}
template <int D>
WithCayleyPrior<D> with_cayley_prior(double concentration, RotationParametrisation parametrisation = {}) {
  return {parametrisation, CayleyPrior<D>(some_rotation<D>(810), concentration)};
}

template <class Family>
void check_normal_prior() {
  const WithNormalPrior<Family> q{normal_prior<Family::coordinate_count>()};
  check_packs(q);
  for (const double scale : {0.3, 2.5}) check_derivatives(q, scale);
  check_monte_carlo(q);
  check_extremes<float>(q);
  check_extremes<Pack<double, 8>>(q);
}

template <int D>
void check_cayley_prior() {
  for_parametrisations<D>([](RotationParametrisation parametrisation) {
    CAPTURE(to_string(parametrisation));
    for (const double scale : {0.3, 2.5}) check_derivatives(with_cayley_prior<D>(0.6, parametrisation), scale);
  });
  const auto q = with_cayley_prior<D>(0.6);
  check_packs(q);
  check_extremes<float>(q);
  check_extremes<Pack<float, 16>>(q);
  check_extremes<double>(with_cayley_prior<D>(0.95));
  if constexpr (D <= 3) check_monte_carlo(q);
}

/// Parameters of C(M, κ).
template <int D>
Doubles cayley_parameters(const SquareMatrix<double, D>& location, double concentration) {
  Doubles r(location.data(), location.data() + D * D);
  r.push_back(concentration);
  return r;
}

/// The mean of log q − log p, and KL where there is one, against quadrature. Rounding of κ and M: a few ε.
template <int D>
void check_against_quadrature() {
  CAPTURE(D);
  for (const double concentration : {0.1, 0.5, 0.9}) {
    for (const double prior_concentration : {0.2, 0.7}) {
      CAPTURE(concentration);
      CAPTURE(prior_concentration);
      const SquareMatrix<double, D> m = some_rotation<D>(811);
      const auto q = with_cayley_prior<D>(prior_concentration);
      const double exact = sheafnn::rotation::kl_divergence(CayleyDistribution<D>(m, concentration),
                                                  CayleyDistribution<D>(q.prior.location(), prior_concentration));
      const Doubles parameters = cayley_parameters<D>(m, concentration);
      const rotation_checks::Mean mean = mean_log_ratio(q, parameters.data());
      CHECK(mean.standard_errors_from(exact) <= rotation_checks::allowed_standard_errors);
      CHECK(mean.standard_error() < 0.05 * std::max(1.0, exact));
      if constexpr (WithCayleyPrior<D>::closed_form_kl) {
        CHECK(std::abs(q.kl(parameters.data()) - exact) <= 1e-12 * exact);  // the quadrature's bound
      }
    }
  }
}

/// κ₀ = 0 is the uniform prior, wherever M₀ is; rounding of a few terms of size D² is allowed.
template <int D>
void check_uniform_limit() {
  CAPTURE(D);
  const auto q = with_cayley_prior<D>(0.0);
  const WithUniformPrior<D> uniform;
  const Doubles raw = numbers(820, raw_numbers<WithCayleyPrior<D>>, 2), bar = numbers(821, D * D);
  const auto expected = all_functions<double>(uniform, {raw}, {bar})[0];
  const auto results = all_functions<double>(q, {raw}, {bar})[0];
  if constexpr (WithCayleyPrior<D>::closed_form_kl) {
    CHECK(difference(results, expected) <= 16 * D * D * rotation_checks::epsilon);
  } else {  // without KL and its gradient, then with nothing of it in the derivatives
    double parameters[D * D + 1], noise[D * D], gradient[D * D + 1] = {}, expected_gradient[D * D + 1] = {};
    SquareMatrix<double, D> map, map_bar;
    for (int k = 0; k < D * D; ++k) map_bar.data()[k] = bar[std::size_t(k)];
    q.activate(raw.data(), parameters);
    q.draw_noise(Stream{3}, 40u, noise);
    const double *in = parameters, *draw = noise;
    q.sample(in, draw, map);
    CHECK(std::abs(q.log_ratio(in, draw, map) - uniform.log_ratio(in, draw, map)) <=
          16 * D * D * rotation_checks::epsilon);
    q.sample_backward(in, draw, map, map_bar, 0.5, gradient);
    uniform.sample_backward(in, draw, map, map_bar, 0.5, expected_gradient);
    for (int k = 0; k <= D * D; ++k) {
      CHECK(std::abs(gradient[k] - expected_gradient[k]) <= 16 * D * D * rotation_checks::epsilon);
    }
  }
}

/// Where q = p, log q − log p is 0 for every sample, and so is KL.
template <int D>
void check_equal_distributions() {
  CAPTURE(D);
  const auto q = with_cayley_prior<D>(0.6);
  const Doubles parameters = cayley_parameters<D>(q.prior.location(), 0.6);
  for (std::uint32_t i = 0; i < 20; ++i) {
    double noise[D * D];
    SquareMatrix<double, D> map;
    q.draw_noise(Stream{4}, i, noise);
    q.sample(parameters.data(), static_cast<const double*>(noise), map);
    CHECK(q.log_ratio(parameters.data(), static_cast<const double*>(noise), map) == 0);
  }
  if constexpr (WithCayleyPrior<D>::closed_form_kl) {
    CHECK(q.kl(parameters.data()) == 0);
    double gradient[D * D + 1] = {};
    q.kl_backward(parameters.data(), 1.0, gradient);
    for (const double g : gradient) CHECK(g == 0);
  }
}

}  // namespace

TEST_CASE("KL of normal posteriors to normal priors against the integral") {
  for (const double prior_mu : {-1.5, 0.0, 0.3}) {
    for (const double prior_sigma : {0.2, 1.0, 3.0}) {
      const WithNormalPrior<Diagonal<1>> q{NormalPrior<1>(prior_mu, prior_sigma)};
      for (const double mu : {-0.9, 0.4}) {
        for (const double log_sigma : {-2.0, 0.0, 0.7}) {
          const double parameters[] = {mu, std::exp(log_sigma), log_sigma};
          const double exact = integrated_normal_kl(mu, std::exp(log_sigma), prior_mu, prior_sigma);
          // One of the terms of KL is up to (|μ − μ₀| + σ)²/2σ₀² large.
          const double from_prior = (std::abs(mu - prior_mu) + std::exp(log_sigma)) / prior_sigma;
          CHECK(std::abs(q.kl(parameters) - exact) <=
                64 * rotation_checks::epsilon * (1 + exact + from_prior * from_prior));
        }
      }
    }
  }
}

TEST_CASE("a normal prior at its standard values is the standard one; q = p has KL 0") {
  const Doubles raw = numbers(830, 6, 2), bar = numbers(831, 3);
  CHECK(all_functions<double>(WithNormalPrior<Diagonal<3>>(), {raw}, {bar}) ==
        all_functions<double>(sheafnn::NormalPosterior<Diagonal<3>>(), {raw}, {bar}));
  const WithNormalPrior<Diagonal<1>> q{NormalPrior<1>(0.25, 0.5)};
  const double parameters[] = {0.25, 0.5, std::log(0.5)};
  CHECK(q.kl(parameters) == 0);
}

TEST_CASE("normal priors: packs, derivatives, samples, extremes") {
  check_normal_prior<Diagonal<1>>();
  check_normal_prior<Diagonal<3>>();
  check_normal_prior<GeneralLinear<2>>();
}

TEST_CASE("normal priors refuse what is no distribution") {
  const double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
  CHECK_THROWS_WITH_AS((NormalPrior<2>(nan, 1)), doctest::Contains("prior: mean[0]"), std::invalid_argument);
  CHECK_THROWS_WITH_AS((NormalPrior<2>({0.0, infinity}, {1.0, 1.0})), doctest::Contains("prior: mean[1]"),
                       std::invalid_argument);
  for (const double deviation : {0.0, -1.0, infinity, nan}) {
    CHECK_THROWS_WITH_AS((NormalPrior<2>({0.0, 0.0}, {1.0, deviation})), doctest::Contains("prior: deviation[1]"),
                         std::invalid_argument);
  }
  // 1/σ₀² is a number in single precision, or refused.
  for (const double deviation : {5.4e-20, 1e-25, 1e-200}) {
    CHECK_THROWS_WITH_AS((NormalPrior<2>({0.0, 0.0}, {1.0, deviation})), doctest::Contains("single precision"),
                         std::invalid_argument);
  }
  const WithNormalPrior<Diagonal<1>> smallest{NormalPrior<1>(0.5, 5.5e-20)};
  const float parameters[] = {0.5f, 5.5e-20f, std::log(5.5e-20f)};
  CHECK(std::abs(smallest.kl(parameters)) <= 1e-5f);
}

TEST_CASE("Cayley priors: packs, derivatives, samples, extremes") {
  check_cayley_prior<1>();
  check_cayley_prior<2>();
  check_cayley_prior<3>();
}
TEST_CASE("Cayley priors of SO(4), without closed form") {
  static_assert(WithCayleyPrior<3>::closed_form_kl && !WithCayleyPrior<4>::closed_form_kl);
  check_cayley_prior<4>();
}

TEST_CASE("KL to Cayley priors and its Monte Carlo form against quadrature") {
  check_against_quadrature<2>();
  check_against_quadrature<3>();
  check_against_quadrature<4>();
}

TEST_CASE("Cayley priors: κ₀ = 0 is uniform, q = p has KL 0") {
  check_uniform_limit<1>();
  check_uniform_limit<2>();
  check_uniform_limit<3>();
  check_uniform_limit<4>();
  check_equal_distributions<1>();
  check_equal_distributions<2>();
  check_equal_distributions<3>();
  check_equal_distributions<4>();
}

TEST_CASE("Cayley priors refuse what is no distribution") {
  const SquareMatrix<double, 3> one = SquareMatrix<double, 3>::Identity();
  for (const double concentration : {-0.1, 1.0, 1 - 1e-9, std::numeric_limits<double>::quiet_NaN()}) {
    CHECK_THROWS_WITH_AS((CayleyPrior<3>(one, concentration)), doctest::Contains("CayleyPrior: concentration"),
                         std::invalid_argument);
  }
  CHECK_THROWS_WITH_AS((CayleyPrior<3>(2 * one, 0.5)), doctest::Contains("CayleyPrior: location"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS((CayleyPrior<3>(-one, 0.5)), doctest::Contains("CayleyPrior: location"),
                       std::invalid_argument);
  // Rounding of the entries is taken out.
  SquareMatrix<double, 3> drifted = one;
  drifted(0, 1) = 1e-9;
  const SquareMatrix<double, 3> m = CayleyPrior<3>(drifted, 0.5).location();
  CHECK((m.transpose() * m - one).cwiseAbs().maxCoeff() <= 12 * rotation_checks::epsilon);
  CHECK(CayleyPrior<3>().concentration() == 0);
}

}  // namespace test_posterior_priors
