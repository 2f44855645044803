/// \file
/// Normal and Cayley posteriors over restriction maps: KL terms against integrals and samples, derivatives against
/// central differences, scalars against packs, extreme raw outputs. Conformal ones: test_conformal_posterior.cpp.
#include <doctest/doctest.h>

#include <cmath>

#include "posterior_checks.hpp"
#include "sheafnn/posterior/default_posterior.hpp"

namespace test_posterior {
namespace {

using namespace posterior_checks;
using sheafnn::CayleyPosterior;
using sheafnn::Diagonal;
using sheafnn::GeneralLinear;
using sheafnn::NormalPosterior;
using sheafnn::PointMap;
using sheafnn::SpecialOrthogonal;

template <int D>
using Cayley = CayleyPosterior<SpecialOrthogonal<D>>;

template <int D>
void check_packs_of_rotations() {
  for_parametrisations<D>([](RotationParametrisation parametrisation) {
    CAPTURE(to_string(parametrisation));
    check_packs(Cayley<D>{parametrisation});
    check_packs(PointMap<SpecialOrthogonal<D>>{parametrisation});
  });
}
template <class Family>
void check_packs_of_normal() {
  check_packs(NormalPosterior<Family>());
  check_packs(PointMap<Family>());
}

template <int D>
void check_derivatives_of_rotations() {
  for (const double scale : {0.3, 2.5}) {
    for_parametrisations<D>([&](RotationParametrisation parametrisation) {
      CAPTURE(to_string(parametrisation));
      check_derivatives(Cayley<D>{parametrisation}, scale);
      check_derivatives(PointMap<SpecialOrthogonal<D>>{parametrisation}, scale);
    });
  }
}
template <class Family>
void check_derivatives_of_normal() {
  for (const double scale : {0.3, 2.5}) {
    check_derivatives(NormalPosterior<Family>(), scale);
    check_derivatives(PointMap<Family>(), scale);
  }
}

/// log σ = −ELU(−raw), the last parameter.
template <class T, class Family>
void check_normal_extremes() {
  check_extremes<T>(NormalPosterior<Family>(), [](const Doubles& parameters, double spread) {
    CHECK(parameters.back() == doctest::Approx(spread > 0 ? 1 : spread).epsilon(1e-6));
  });
}
/// γ' ∈ [0.025, 0.975], so κ ∈ [0.0127, 0.9513].
template <class T, int D>
void check_cayley_extremes(RotationParametrisation parametrisation) {
  CAPTURE(to_string(parametrisation));
  check_extremes<T>(Cayley<D>{parametrisation}, [](const Doubles& parameters, double) {
    CHECK(parameters.back() >= 0.025 / 1.975 - 1e-6);
    CHECK(parameters.back() <= 0.975 / 1.025 + 1e-6);
  });
  check_extremes<T>(PointMap<SpecialOrthogonal<D>>{parametrisation});
}

}  // namespace

TEST_CASE("sizes of posteriors, D = 1 included") {
  CHECK(NormalPosterior<Diagonal<3>>::mean_size == 3);
  CHECK(NormalPosterior<Diagonal<3>>::spread_size == 3);
  CHECK(NormalPosterior<GeneralLinear<3>>::mean_size == 9);
  CHECK(Cayley<1>::mean_size == 0);
  CHECK(Cayley<1>::spread_size == 1);
  CHECK(Cayley<4>::mean_size == 6);
  CHECK(Cayley<4>::spread_size == 1);
  using OfIdentity = sheafnn::DefaultPosterior<sheafnn::Identity<2>>;
  CHECK(OfIdentity::mean_size + OfIdentity::spread_size == 0);
}

TEST_CASE("activations: μ = tanh, log σ = −ELU(−raw), κ from γ' = 0.95 sigmoid + 0.025") {
  const double raw[] = {0.5, -2, 1.5, -0.7};
  double parameters[6];
  NormalPosterior<Diagonal<2>>().activate(raw, parameters);
  const double log_sigma[] = {1 - std::exp(-1.5), -0.7};
  const double expected[] = {std::tanh(0.5),         std::tanh(-2.0), std::exp(log_sigma[0]),
                             std::exp(log_sigma[1]), log_sigma[0],    log_sigma[1]};
  for (int k = 0; k < 6; ++k) CHECK(std::abs(parameters[k] - expected[k]) <= 8 * rotation_checks::epsilon);
  const double zero[] = {0.0, 0.0};
  double cayley[5];
  Cayley<2>().activate(zero, cayley);
  CHECK(std::abs(cayley[4] - 1.0 / 3) <= 4 * rotation_checks::epsilon);  // γ' = 1/2
  CHECK(cayley[0] == -1);  // Householder at φ = 0 is −I for even D
}

TEST_CASE("the concentrated range of spread: raw − 3, and κ from γ' = 0.999 sigmoid + 0.0005") {
  constexpr double eps = rotation_checks::epsilon;
  const auto normal = [](double raw) {
    const double outputs[] = {0.5, raw};
    double parameters[3];
    NormalPosterior<Diagonal<1>>{.spread = sheafnn::SpreadRange::concentrated}.activate(outputs, parameters);
    return parameters[1];
  };
  const auto cayley = [](double raw) {
    const double outputs[] = {0.5, raw};
    double parameters[5];
    Cayley<2>{.spread = sheafnn::SpreadRange::concentrated}.activate(outputs, parameters);
    return parameters[4];
  };
  CHECK(std::abs(normal(0) - std::exp(-3.0)) <= 4 * eps);
  CHECK(std::abs(normal(5) - std::exp(1 - std::exp(-2.0))) <= 16 * eps);
  const double gamma = 0.999 / (1 + std::exp(3.0)) + 0.0005;
  CHECK(std::abs(cayley(0) - (1 - gamma) / (1 + gamma)) <= 4 * eps);
  CHECK(std::abs(cayley(0) - 0.908) < 1e-3);
  CHECK(std::abs(cayley(-1e3) - 0.9995 / 1.0005) <= 4 * eps);  // the bounds
  CHECK(std::abs(cayley(1e3) - 0.0005 / 1.9995) <= 4 * eps);
}

TEST_CASE("KL of normal posteriors against the integral") {
  const NormalPosterior<Diagonal<1>> q;
  for (const double mu : {-0.9, 0.0, 0.4}) {
    for (const double log_sigma : {-2.0, -0.5, 0.0, 0.7}) {
      const double parameters[] = {mu, std::exp(log_sigma), log_sigma};
      const double exact = integrated_normal_kl(mu, std::exp(log_sigma));
      CHECK(std::abs(q.kl(parameters) - exact) <= 64 * rotation_checks::epsilon * (1 + exact));
    }
  }
  const NormalPosterior<Diagonal<2>> two;
  const double standard[] = {0, 0, 1, 1, 0, 0};
  CHECK(two.kl(standard) == 0);
  // Independent entries add up.
  const double pair[] = {0.3, -0.8, std::exp(-1.0), std::exp(0.25), -1, 0.25};
  const double first[] = {0.3, std::exp(-1.0), -1}, second[] = {-0.8, std::exp(0.25), 0.25};
  CHECK(std::abs(two.kl(pair) - q.kl(first) - q.kl(second)) <= 4 * rotation_checks::epsilon);
}

TEST_CASE("general maps are filled row by row") {
  const double parameters[] = {1, 2, 3, 4, 1, 1, 1, 1}, noise[] = {0.5, 0, 0, -1};
  sheafnn::SquareMatrix<double, 2> map;
  NormalPosterior<GeneralLinear<2>>().sample(parameters, noise, map);
  CHECK(map == (sheafnn::SquareMatrix<double, 2>() << 1.5, 2, 3, 3).finished());
}

TEST_CASE("a posterior's mean is the point map of its first raw outputs") {
  const auto check = []<class Q>(const Q& q) {
    using Family = typename Q::family;
    CAPTURE(Family::name);
    const Doubles raw = numbers(600, raw_numbers<Q>, 1.5);
    double parameters[Q::parameter_size];
    typename Family::template Map<double> mean, point;
    q.activate(raw.data(), parameters);
    q.mean(static_cast<const double*>(parameters), mean);
    PointMap<Family>().map(raw.data(), point);
    CHECK(mean == point);
  };
  check(NormalPosterior<Diagonal<3>>());
  check(NormalPosterior<GeneralLinear<2>>());
  check(Cayley<3>());
}

TEST_CASE("explicit noise is read row by row") {
  CHECK(sheafnn::noise_index<NormalPosterior<GeneralLinear<2>>>(1) == 1);
  // A uniform rotation: column by column in memory.
  const int expected[] = {0, 3, 6, 1, 4, 7, 2, 5, 8};
  for (int k = 0; k < 9; ++k) CHECK(sheafnn::noise_index<Cayley<3>>(k) == expected[k]);
}

TEST_CASE("packs, scalars and precisions agree: normal posteriors") {
  check_packs_of_normal<Diagonal<1>>();
  check_packs_of_normal<Diagonal<4>>();
  check_packs_of_normal<GeneralLinear<1>>();
  check_packs_of_normal<GeneralLinear<3>>();
}

TEST_CASE("packs, scalars and precisions agree: Cayley posteriors") {
  check_packs_of_rotations<1>();
  check_packs_of_rotations<2>();
  check_packs_of_rotations<3>();
  check_packs_of_rotations<5>();
}

TEST_CASE("derivatives of samples, KL and its Monte Carlo form against central differences") {
  check_derivatives_of_normal<Diagonal<1>>();
  check_derivatives_of_normal<Diagonal<5>>();
  check_derivatives_of_normal<GeneralLinear<2>>();
  check_derivatives_of_normal<GeneralLinear<3>>();
  check_derivatives_of_rotations<1>();
  check_derivatives_of_rotations<2>();
  check_derivatives_of_rotations<3>();
  check_derivatives_of_rotations<4>();
  check_derivatives_of_rotations<5>();
}

TEST_CASE("the Monte Carlo form of the KL term has the KL divergence as its mean") {
  check_monte_carlo(NormalPosterior<Diagonal<1>>());
  check_monte_carlo(NormalPosterior<Diagonal<2>>());
  check_monte_carlo(NormalPosterior<Diagonal<3>>());
  check_monte_carlo(NormalPosterior<Diagonal<4>>());
  check_monte_carlo(NormalPosterior<GeneralLinear<1>>());
  check_monte_carlo(NormalPosterior<GeneralLinear<2>>());
  check_monte_carlo(NormalPosterior<GeneralLinear<3>>());
  check_monte_carlo(NormalPosterior<GeneralLinear<4>>());
  check_monte_carlo(Cayley<1>());
  check_monte_carlo(Cayley<2>());
  check_monte_carlo(Cayley<3>());
  check_monte_carlo(Cayley<4>());
}

TEST_CASE("sheaf activations: means and point maps, attention, maps that begin at the identity") {
  using sheafnn::SheafActivation;
  for (const SheafActivation activation : {SheafActivation::identity, SheafActivation::elu}) {
    CAPTURE(to_string(activation));
    NormalPosterior<GeneralLinear<2>> normal;
    Cayley<3> cayley;
    normal.sheaf_activation = cayley.sheaf_activation = activation;
    check_packs(normal);
    check_packs(cayley);
    check_derivatives(normal, 0.7);
    check_derivatives(cayley, 0.7);
  }
  for (const SheafActivation activation : {SheafActivation::residual, SheafActivation::exponential}) {
    CAPTURE(to_string(activation));
    NormalPosterior<GeneralLinear<3>> normal;
    PointMap<GeneralLinear<3>> point;
    normal.sheaf_activation = point.sheaf_activation = activation;
    check_packs(normal);
    check_packs(point);
    check_derivatives(normal, 0.7);
    for (const double scale : {0.3, 2.5}) check_derivatives(point, scale);
    check_monte_carlo(normal);
    // Outputs of 0 are the identity map, where the KL term has no derivative in the means.
    const double zero[18] = {};
    sheafnn::SquareMatrix<double, 3> map;
    point.map(zero, map);
    CHECK(map.isIdentity(0));
    double parameters[27], gradient[18] = {};
    normal.activate(zero, parameters);
    normal.kl_backward(parameters, 1.0, gradient);
    for (int k = 0; k < 9; ++k) CHECK(gradient[k] == 0);
  }
  NormalPosterior<Diagonal<3>> diagonal;
  diagonal.sheaf_activation = SheafActivation::residual;
  check_packs(diagonal);
  check_derivatives(diagonal, 0.7);
  double parameters[9];
  const double outputs[] = {-1, 0.5, 2, 0, 0, 0};
  diagonal.activate(outputs, parameters);
  CHECK(parameters[0] == 0);
  CHECK(parameters[1] == 1.5);
  CHECK(parameters[2] == 3);
  // exp of a rotation's generator and of a diagonal matrix, both in closed form.
  PointMap<GeneralLinear<2>> exponential;
  exponential.sheaf_activation = SheafActivation::exponential;
  sheafnn::SquareMatrix<double, 2> power;
  for (const double angle : {0.1, 1.0, 3.0}) {
    const double turn[] = {0, -angle, angle, 0};
    exponential.map(turn, power);
    const double entries[] = {std::cos(angle), -std::sin(angle), std::sin(angle), std::cos(angle)};
    for (int k = 0; k < 4; ++k) CHECK(std::abs(power(k / 2, k % 2) - entries[k]) < 1e-8);
    const double stretch[] = {angle, 0, 0, -angle};
    exponential.map(stretch, power);
    CHECK(std::abs(power(0, 0) / std::exp(angle) - 1) < 1e-8);
    CHECK(std::abs(power(1, 1) / std::exp(-angle) - 1) < 1e-8);
    CHECK(std::abs(power(0, 1)) + std::abs(power(1, 0)) == 0);
  }
  PointMap<GeneralLinear<2>> attention;
  attention.sheaf_activation = SheafActivation::attention;
  check_packs(attention);
  check_extremes<Pack<float, 16>>(attention);
  for (const double scale : {0.3, 2.5}) check_derivatives(attention, scale);
  // F 1 = 0, worked out by hand: softmax (0, log 3) = (1/4, 3/4), softmax (1, 1) = (1/2, 1/2).
  const double raw[] = {0, std::log(3.0), 1, 1};
  sheafnn::SquareMatrix<double, 2> map;
  attention.map(raw, map);
  const double expected[] = {0.75, -0.75, -0.5, 0.5};
  for (int k = 0; k < 4; ++k) CHECK(std::abs(map(k / 2, k % 2) - expected[k]) <= 4e-16);
}

TEST_CASE("the log ratio of a normal posterior whose deviation underflows is −log σ and the prior's share") {
  const sheafnn::NormalPosterior<sheafnn::Diagonal<1>> posterior;
  const double raw[2] = {0.5, -1e30}, noise[1] = {1.5};
  double parameters[3];
  posterior.activate(raw, parameters);
  sheafnn::Diagonal<1>::Map<double> map;
  posterior.sample(parameters, noise, map);
  CHECK(parameters[1] == 0);
  CHECK(posterior.log_ratio(parameters, noise, map) == 1e30);
}

TEST_CASE("raw outputs of ±30 stay finite") {
  check_normal_extremes<float, Diagonal<2>>();
  check_normal_extremes<Pack<float, 16>, Diagonal<2>>();
  check_normal_extremes<double, GeneralLinear<2>>();
  check_extremes<Pack<float, 16>>(PointMap<GeneralLinear<2>>());
  for_parametrisations<3>([](RotationParametrisation parametrisation) {
    check_cayley_extremes<float, 2>(parametrisation);
    check_cayley_extremes<Pack<float, 16>, 3>(parametrisation);
    check_cayley_extremes<Pack<double, 8>, 3>(parametrisation);
  });
}

}  // namespace test_posterior
