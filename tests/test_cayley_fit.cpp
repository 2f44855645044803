/// \file
/// Maximum likelihood fits of Cayley distributions to few samples: no point of a search has a higher likelihood, the fit is
/// stationary, and samples without a maximum are refused.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <stdexcept>
#include <vector>

#include "rotation_checks.hpp"
#include "sheafnn/rotation/cayley_ascent.hpp"
#include "sheafnn/rotation/cayley_fit.hpp"
#include "sheafnn/rotation/mixture.hpp"
#include "sheafnn/rotation/sample_many.hpp"

namespace test_cayley_fit {
namespace {

using namespace rotation_checks;
using sheafnn::SquareMatrix;
using sheafnn::Stream;
using sheafnn::rotation::CayleyDistribution;

template <int N>
SquareMatrix<double, N> some_rotation(std::uint32_t id) {
  return sheafnn::rotation::haar_rotation<double, N>(Stream{.seed = 2601}, id);
}
template <int N>
std::vector<SquareMatrix<double, N>> samples_of(double kappa, std::size_t count, std::uint32_t simulation) {
  std::vector<SquareMatrix<double, N>> samples(count);
  sheafnn::rotation::sample_many(CayleyDistribution<N>(some_rotation<N>(simulation), kappa),
                                 Stream{.seed = 2602, .epoch = simulation}, 0, samples);
  return samples;
}

/// The mean log density, with the determinants of another elimination.
template <int N>
double mean_log_density(const std::vector<SquareMatrix<double, N>>& samples,
                        const SquareMatrix<double, N>& location, double kappa) {
  double sum = 0;
  for (const auto& p : samples) {
    const SquareMatrix<double, N> a = p * location.transpose() - kappa * SquareMatrix<double, N>::Identity();
    sum += (N - 1) * (0.5 * N * std::log1p(-kappa * kappa) - std::log(std::abs(a.partialPivLu().determinant())));
  }
  return sum / static_cast<double>(samples.size());
}

/// The highest mean log density over random rotations, samples, and turns of the best so far that become smaller.
template <int N>
double highest_found(const std::vector<SquareMatrix<double, N>>& samples, int points) {
  constexpr int turns = sheafnn::rotation::rotation_parameters<N>;
  struct Point {
    double value;
    SquareMatrix<double, N> location;
    double kappa;
  };
  std::vector<Point> points_found;
  const auto try_all = [&](const SquareMatrix<double, N>& m) {
    for (double eta = 0.1; eta < 5; eta += 0.3) {
      points_found.push_back({mean_log_density<N>(samples, m, std::tanh(eta)), m, std::tanh(eta)});
    }
  };
  for (const auto& p : samples) try_all(p);
  for (int i = 0; i < points; ++i) try_all(some_rotation<N>(static_cast<std::uint32_t>(1000 + i)));
  std::sort(points_found.begin(), points_found.end(),
            [](const Point& a, const Point& b) { return a.value > b.value; });
  double highest = points_found[0].value;
  std::mt19937 engine(7);
  std::normal_distribution<double> normal;
  for (std::size_t start = 0; start < 20; ++start) {
    Point best = points_found[4 * start];
    double size = 0.3;
    for (int i = 0; i < 1500; ++i) {
      sheafnn::rotation::RotationParameters<double, N> turn;
      for (int k = 0; k < turns; ++k) turn(k) = size * (1 - best.kappa) * normal(engine);
      Point next{0,
                 sheafnn::math::multiply(sheafnn::rotation::exponential_rotation<double, N>(turn), best.location),
                 std::tanh(std::max(0.0, std::atanh(best.kappa) + size * normal(engine)))};
      next.value = mean_log_density<N>(samples, next.location, next.kappa);
      const bool better = next.value > best.value;
      if (better) best = next;
      size = std::clamp(size * (better ? 1.5 : 0.93), 1e-6, 1.0);
    }
    highest = std::max(highest, best.value);
  }
  return highest;
}

/// The score, in units of one sample's standard errors.
template <int N>
void check_stationary(const std::vector<SquareMatrix<double, N>>& samples, const CayleyDistribution<N>& fitted) {
  const double count = static_cast<double>(samples.size());
  double concentration = 0;
  sheafnn::rotation::RotationParameters<double, N> turn = sheafnn::rotation::RotationParameters<double, N>::Zero();
  for (const auto& p : samples) {
    const auto gradient = sheafnn::rotation::logpdf_gradient(fitted, p);
    concentration += gradient.concentration / count;
    turn += sheafnn::rotation::tangent_gradient<double, N>(gradient.location, fitted.location()) / count;
  }
  const auto information = sheafnn::rotation::fisher_information(fitted);
  CHECK(std::abs(concentration) <= 1e-7 * std::sqrt(information.concentration));
  CHECK(turn.norm() <= 1e-7 * std::sqrt(information.location));
}

template <int N>
void check_maximum(double kappa, std::size_t count, std::uint32_t simulations) {
  for (std::uint32_t i = 0; i < simulations; ++i) {
    CAPTURE(N);
    CAPTURE(count);
    CAPTURE(i);
    const auto samples = samples_of<N>(kappa, count, i);
    const auto fit = sheafnn::rotation::fit<CayleyDistribution<N>>(samples);
    const auto& m = fit.distribution.location();
    const double reached = mean_log_density<N>(samples, m, fit.distribution.concentration());
    // Close to κ = 1 the entries of P Mᵀ − κI lose digits.
    const double rounding = 16 * std::numeric_limits<double>::epsilon() / (1 - fit.distribution.concentration());
    CHECK(std::abs(reached - fit.log_likelihood) <= 1e-11 * (1 + std::abs(reached)) + rounding);
    CHECK(highest_found<N>(samples, 100) <= reached + 1e-9);
    check_stationary<N>(samples, fit.distribution);
  }
}

template <int N>
void check_derivatives() {
  CAPTURE(N);
  const auto samples = samples_of<N>(0.7, 5, 3);
  const std::vector<double> given = {1, 2, 0, 1.5, 3};
  const sheafnn::detail::SampleWeights weights("test", samples.size(), std::span<const double>(given), 2);
  sheafnn::detail::CayleyEstimate<N> at;
  at.location = some_rotation<N>(4);
  at.kappa = 0.6;
  at.likelihood = sheafnn::detail::cayley_log_likelihood<N>(samples, weights, at.location, at.kappa);
  const sheafnn::detail::CayleyCurvature<N> curvature(samples, weights, at);
  using Vector = typename sheafnn::detail::CayleyCurvature<N>::Vector;
  const int size = static_cast<int>(Vector::RowsAtCompileTime);
  const auto likelihood = [&](const Vector& x) {
    return sheafnn::detail::moved_estimate<N>(samples, weights, at, x).likelihood;
  };
  constexpr double h = 1e-4;
  for (int i = 0; i < size; ++i) {
    Vector x = Vector::Zero();
    const double slope = central_difference(x(i), [&] { return likelihood(x); });
    CHECK(std::abs(slope - curvature.gradient(i)) <= 1e-8);
    for (int j = 0; j < size; ++j) {
      double sum = 0;  // (f(h, h) − f(h, −h) − f(−h, h) + f(−h, −h))/4h²
      for (const int a : {-1, 1}) {
        for (const int b : {-1, 1}) {
          Vector moved = Vector::Zero();
          moved(i) += a * h;
          moved(j) += b * h;
          sum += a * b * likelihood(moved);
        }
      }
      CHECK(std::abs(sum / (4 * h * h) - curvature.hessian(i, j)) <= 2e-6);
    }
  }
}

}  // namespace

TEST_CASE("the gradient and the Hessian of the Cayley likelihood") {
  check_derivatives<2>();
  check_derivatives<3>();
  check_derivatives<4>();
  check_derivatives<5>();
}

TEST_CASE("Cayley fits to few samples are the highest maxima") {
  for (const double kappa : {0.3, 0.8}) {
    check_maximum<2>(kappa, 2, 10);
    check_maximum<2>(kappa, 4, 10);
    check_maximum<2>(kappa, 6, 5);
    check_maximum<3>(kappa, 5, 10);
    check_maximum<3>(kappa, 6, 10);
    check_maximum<4>(kappa, 6, 4);
    check_maximum<5>(kappa, 6, 2);
  }
}

TEST_CASE("a Cayley fit to samples of three distributions ends") {
  std::vector<CayleyDistribution<4>> components;
  for (std::uint32_t k = 0; k < 3; ++k) {
    components.emplace_back(sheafnn::rotation::haar_rotation<double, 4>(Stream{.seed = 5}, k), 0.6 + 0.1 * k);
  }
  std::vector<SquareMatrix<double, 4>> samples(200);
  sheafnn::rotation::sample_many(sheafnn::rotation::Mixture<CayleyDistribution<4>>(components), Stream{.seed = 6},
                                 0, samples);
  const auto fit = sheafnn::rotation::fit<CayleyDistribution<4>>(samples);
  CHECK(fit.iterations <= 100);
  CHECK(fit.log_likelihood >= sheafnn::rotation::fit_moments<CayleyDistribution<4>>(samples).log_likelihood);
  check_stationary<4>(samples, fit.distribution);
}

TEST_CASE("Cayley fits to many concentrated samples, without and with a rotation that has a large share") {
  constexpr double kappa = 1 - 1e-6;
  auto samples = samples_of<3>(kappa, 20'000, 77);
  const auto fit = sheafnn::rotation::fit<CayleyDistribution<3>>(samples);
  CHECK(std::abs(fit.distribution.concentration() - kappa) <= 5 * fit.concentration_error);
  CHECK(fit.concentration_error <= 1e-7);
  std::fill(samples.begin(), samples.begin() + 4000, samples[0]);
  CHECK_NOTHROW(static_cast<void>(sheafnn::rotation::fit<CayleyDistribution<3>>(samples)));
  std::fill(samples.begin(), samples.begin() + 8000, samples[0]);
  CHECK_THROWS_AS(static_cast<void>(sheafnn::rotation::fit<CayleyDistribution<3>>(samples)), std::invalid_argument);
}

TEST_CASE("sets of few samples whose Cayley likelihood has no maximum are refused") {
  for (std::uint32_t i = 0; i < 20; ++i) {
    for (const std::size_t count : {2, 3}) {
      CHECK_THROWS_WITH_AS(static_cast<void>(
                               sheafnn::rotation::fit<CayleyDistribution<3>>(samples_of<3>(0.5, count, i))),
                           doctest::Contains("or of too few"), std::invalid_argument);
    }
  }
}

}  // namespace test_cayley_fit
