/// \file
/// Fits: the maximum is one, intervals cover the truth as often as they should, weights, refusals, goodness of
/// fit.
#include <doctest/doctest.h>

#include <cmath>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "rotation_checks.hpp"
#include "sheafnn/rotation/angular_central_gaussian_fit.hpp"
#include "sheafnn/rotation/cayley_fit.hpp"
#include "sheafnn/rotation/goodness_of_fit.hpp"
#include "sheafnn/rotation/inverse_cayley_transform.hpp"
#include "sheafnn/rotation/leon_angle.hpp"
#include "sheafnn/rotation/leon_fit.hpp"
#include "sheafnn/rotation/matrix_fisher_angle.hpp"
#include "sheafnn/rotation/matrix_fisher_fit.hpp"
#include "sheafnn/rotation/sample_many.hpp"

namespace test_rotation_fits {
namespace {

using namespace rotation_checks;
using sheafnn::rotation::CayleyDistribution;
using sheafnn::math::Column;
using sheafnn::rotation::LeonCayleyDistribution;
using sheafnn::rotation::MatrixFisherDistribution;
using sheafnn::rotation::RotationParameters;
using sheafnn::SquareMatrix;
using sheafnn::Stream;
using sheafnn::rotation::WrappedCauchy;

template <int N>
SquareMatrix<double, N> some_rotation(std::uint32_t id) {
  return sheafnn::rotation::haar_rotation<double, N>(Stream{.seed = 501}, id);
}

template <class D>
auto samples_of(const D& distribution, std::size_t count, std::uint32_t simulation) {
  std::vector<sheafnn::detail::SampleOf<D>> samples(count);
  sheafnn::rotation::sample_many(distribution, Stream{.seed = 502, .epoch = simulation}, 0, samples);
  return samples;
}

/// φ with M̂ = exp(X_φ) M, to second order in φ.
template <int N>
RotationParameters<double, N> turn_between(const SquareMatrix<double, N>& estimate,
                                           const SquareMatrix<double, N>& truth) {
  return sheafnn::rotation::skew_parameters<double, N>(sheafnn::math::multiply_nt(estimate, truth));
}

/// Counts how often 95 % intervals hold the truth.
class Coverage {
 public:
  void add(double estimate, double truth, double standard_error) {
    ++count_;
    covered_ += std::abs(estimate - truth) <= 1.959963984540054 * standard_error;
  }
  /// The share may be off by 5 standard errors of a share of 0.95, and by `skewness`: what a sample of finite size
  /// adds.
  [[nodiscard]] bool as_stated(double skewness) const {
    const double share = covered_ / count_;
    MESSAGE("covered ", share, " of ", count_);
    return std::abs(share - 0.95) <= allowed_standard_errors * std::sqrt(0.95 * 0.05 / count_) + skewness;
  }

 private:
  double count_ = 0, covered_ = 0;
};
/// Samples per simulation; the normal approximation is off by about 1/n in coverage, with a factor of a few.
constexpr std::size_t samples_per_fit = 150;
constexpr double skewness = 2.0 / samples_per_fit;

/// Location and concentration, by both methods. The turns are not independent of each other but each is a count.
template <class D>
void check_coverage(const D& truth, std::uint32_t simulations) {
  constexpr int N = D::dimension;
  CAPTURE(N);
  Coverage k_likelihood, k_moments, m_likelihood, m_moments;
  for (std::uint32_t i = 0; i < simulations; ++i) {
    const auto samples = samples_of(truth, samples_per_fit, i);
    const auto likelihood = sheafnn::rotation::fit<D>(samples);
    const auto moments = sheafnn::rotation::fit_moments<D>(samples);
    CHECK(likelihood.log_likelihood >= moments.log_likelihood - 64 * epsilon);
    k_likelihood.add(likelihood.distribution.concentration(), truth.concentration(),
                     likelihood.concentration_error);
    k_moments.add(moments.distribution.concentration(), truth.concentration(), moments.concentration_error);
    // One coordinate for each simulation, so that counts are independent.
    const int j = static_cast<int>(i) % (N * (N - 1) / 2);
    m_likelihood.add(turn_between<N>(likelihood.distribution.location(), truth.location())(j), 0,
                     likelihood.location_error);
    m_moments.add(turn_between<N>(moments.distribution.location(), truth.location())(j), 0,
                  moments.location_error);
  }
  CHECK(k_likelihood.as_stated(skewness));
  CHECK(k_moments.as_stated(skewness));
  CHECK(m_likelihood.as_stated(skewness));
  CHECK(m_moments.as_stated(skewness));
}

/// The gradient of the log likelihood vanishes at the estimate, relative to its standard deviation √(n I).
template <class D>
void check_stationary(const D& truth) {
  constexpr int N = D::dimension;
  CAPTURE(N);
  const auto samples = samples_of(truth, 60, 1000);
  const auto fit = sheafnn::rotation::fit<D>(samples);
  double concentration = 0;
  RotationParameters<double, N> turn = RotationParameters<double, N>::Zero();
  for (const auto& p : samples) {
    const auto gradient = sheafnn::rotation::logpdf_gradient(fit.distribution, p);
    concentration += gradient.concentration;
    turn += sheafnn::rotation::tangent_gradient<double, N>(gradient.location, fit.distribution.location());
  }
  const auto information = sheafnn::rotation::fisher_information(fit.distribution);
  // The iteration ends at 1e-11 of a standard error, or where rounding hides what is left: √ε of the likelihood's
  // curvature.
  constexpr double bound = 1e-7;
  CHECK(std::abs(concentration) <= bound * std::sqrt(60 * information.concentration));
  CHECK(turn.norm() <= bound * std::sqrt(60 * information.location));
}

/// A sample with integer weights is that sample with repetitions, but for the number of samples it counts as.
template <class D>
void check_weights(const D& truth) {
  const auto samples = samples_of(truth, 40, 2000);
  std::vector<double> weights;
  std::vector<sheafnn::detail::SampleOf<D>> repeated;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const std::size_t times = i % 4;
    weights.push_back(0.5 * static_cast<double>(times));
    for (std::size_t t = 0; t < times; ++t) repeated.push_back(samples[i]);
  }
  const auto weighted = sheafnn::rotation::fit<D>(samples, weights);
  const auto plain = sheafnn::rotation::fit<D>(repeated);
  CHECK(std::abs(weighted.distribution.concentration() - plain.distribution.concentration()) <=
        1e-8 * (1 + plain.distribution.concentration()));
  CHECK(std::abs(weighted.log_likelihood - plain.log_likelihood) <= 1e-12 * (1 + std::abs(plain.log_likelihood)));
  // (Σw)²/Σw² of weights 0, 1, 2, 3 in turn: 36/14 of every four.
  CHECK(std::abs(weighted.effective_samples - 10 * 36.0 / 14) <= 1e-12);
  CHECK(std::abs(weighted.concentration_error / plain.concentration_error -
                 std::sqrt(plain.effective_samples / weighted.effective_samples)) <= 1e-7);
  const auto moments = sheafnn::rotation::fit_moments<D>(samples, weights);
  CHECK(std::abs(moments.distribution.concentration() -
                 sheafnn::rotation::fit_moments<D>(repeated).distribution.concentration()) <=
        1e-12 * (1 + moments.distribution.concentration()));
}

}  // namespace

TEST_CASE("Cayley fits: 95 % intervals cover the truth") {
  check_coverage(CayleyDistribution<2>(some_rotation<2>(0), 0.6), 400);
  check_coverage(CayleyDistribution<3>(some_rotation<3>(0), 0.5), 400);
  check_coverage(CayleyDistribution<4>(some_rotation<4>(0), 0.7), 300);
  check_coverage(CayleyDistribution<5>(some_rotation<5>(0), 0.4), 200);
}

TEST_CASE("Leon fits: 95 % intervals cover the truth") {
  check_coverage(LeonCayleyDistribution<2>(some_rotation<2>(0), 3.0), 400);
  check_coverage(LeonCayleyDistribution<3>(some_rotation<3>(0), 2.5), 400);
  check_coverage(LeonCayleyDistribution<4>(some_rotation<4>(0), 4.0), 200);
}

TEST_CASE("wrapped Cauchy fits: 95 % intervals cover the truth") {
  const WrappedCauchy<> truth(3.0, 0.7);
  Coverage mu, kappa;
  for (std::uint32_t i = 0; i < 400; ++i) {
    const auto fit = sheafnn::rotation::fit<WrappedCauchy<>>(samples_of(truth, samples_per_fit, i));
    mu.add(std::remainder(fit.distribution.location() - 3.0, 6.283185307179586), 0, fit.location_error);
    kappa.add(fit.distribution.concentration(), 0.7, fit.concentration_error);
  }
  CHECK(mu.as_stated(skewness));
  CHECK(kappa.as_stated(skewness));
}

TEST_CASE("matrix Fisher fits: 95 % intervals cover every entry of F and every turn of M") {
  const auto check = [](const auto& truth, std::uint32_t simulations) {
    using D = std::remove_cvref_t<decltype(truth)>;
    constexpr int N = D::dimension;
    CAPTURE(N);
    Coverage entries[N * N], turns;
    Coverage size;
    const SquareMatrix<double, N> f = truth.parameter();
    const double average = truth.singular_values().sum() / N;
    for (std::uint32_t i = 0; i < simulations; ++i) {
      const auto fit = sheafnn::rotation::fit<D>(samples_of(truth, samples_per_fit, i));
      // The likelihood equation.
      SquareMatrix<double, N> mean = SquareMatrix<double, N>::Zero();
      for (const auto& p : samples_of(truth, samples_per_fit, i)) mean += p / static_cast<double>(samples_per_fit);
      CHECK((sheafnn::rotation::mean(fit.distribution) - mean).norm() <= 1e-10);
      for (int k = 0; k < N * N; ++k) {
        entries[k].add(fit.distribution.parameter().data()[k], f.data()[k], fit.parameter_error.data()[k]);
      }
      const int j = static_cast<int>(i) % (N * (N - 1) / 2);
      turns.add(turn_between<N>(fit.distribution.location(), truth.location())(j), 0, fit.location_error(j));
      size.add(fit.distribution.singular_values().sum() / N, average, fit.concentration_error);
    }
    for (const Coverage& entry : entries) CHECK(entry.as_stated(skewness));
    CHECK(turns.as_stated(skewness));
    CHECK(size.as_stated(skewness));
  };
  check(MatrixFisherDistribution<2>(some_rotation<2>(0), 1.5), 300);
  const SquareMatrix<double, 3> f =
      some_rotation<3>(1) * Column<double, 3>(6, 4, 2).asDiagonal() * some_rotation<3>(2).transpose();
  check(MatrixFisherDistribution<3>(f), 200);
}

TEST_CASE("angular central Gaussian fits: 95 % intervals cover every entry") {
  SquareMatrix<double, 3> covariance = SquareMatrix<double, 3>::Identity() * 0.5;
  covariance << 2.0, 0.3, -0.4, 0.3, 1.0, 0.2, -0.4, 0.2, 0.7;
  covariance *= 3 / covariance.trace();
  const sheafnn::rotation::AngularCentralGaussian<3> truth(covariance);
  Coverage entries[9];
  for (std::uint32_t i = 0; i < 300; ++i) {
    const auto fit = sheafnn::rotation::fit<sheafnn::rotation::AngularCentralGaussian<3>>(
        samples_of(truth, samples_per_fit, i));
    for (int k = 0; k < 9; ++k) {
      entries[k].add(fit.distribution.covariance().data()[k], covariance.data()[k],
                     fit.covariance_error.data()[k]);
    }
  }
  for (const Coverage& entry : entries) CHECK(entry.as_stated(skewness));
}

TEST_CASE("fits are stationary points of the likelihood") {
  check_stationary(CayleyDistribution<2>(some_rotation<2>(0), 0.3));
  check_stationary(CayleyDistribution<3>(some_rotation<3>(0), 0.9));
  check_stationary(CayleyDistribution<5>(some_rotation<5>(0), 0.999));
  check_stationary(CayleyDistribution<8>(some_rotation<8>(0), 0.5));
  check_stationary(LeonCayleyDistribution<2>(some_rotation<2>(0), 1.0));
  check_stationary(LeonCayleyDistribution<3>(some_rotation<3>(0), 5.0));
  check_stationary(LeonCayleyDistribution<5>(some_rotation<5>(0), 200.0));
}

TEST_CASE("weights") {
  check_weights(CayleyDistribution<3>(some_rotation<3>(0), 0.6));
  check_weights(LeonCayleyDistribution<4>(some_rotation<4>(0), 3));
  check_weights(WrappedCauchy<>(1.0, 0.5));
}

TEST_CASE("fits in float agree with those in double") {
  const CayleyDistribution<3, float> truth(some_rotation<3>(0).cast<float>(), 0.7f);
  const auto samples = samples_of(truth, 200, 0);
  std::vector<SquareMatrix<double, 3>> wide;
  for (const auto& p : samples)
    wide.push_back(sheafnn::rotation::orthonormalised<double, 3>(
        "p", sheafnn::rotation::orthonormalisation_step<double, 3>(p.cast<double>())));
  const auto narrow_fit = sheafnn::rotation::fit<CayleyDistribution<3, float>>(samples);
  const auto wide_fit = sheafnn::rotation::fit<CayleyDistribution<3>>(wide);
  CHECK(std::abs(static_cast<double>(narrow_fit.distribution.concentration()) -
                 wide_fit.distribution.concentration()) <= 2e-7);
  CHECK((narrow_fit.distribution.location().cast<double>() - wide_fit.distribution.location()).norm() <= 1e-6);
}

TEST_CASE("angular central Gaussian fits of concentrated quaternions, whatever their direction") {
  for (const double concentration : {0.99, 0.999, 0.999999}) {
    CAPTURE(concentration);
    for (std::uint32_t i = 0; i < 3; ++i) {
      const auto rotations = samples_of(CayleyDistribution<3>(some_rotation<3>(40 + i), concentration), 500, i);
      std::vector<Column<double, 4>> axes, turned;
      const SquareMatrix<double, 4> turn = some_rotation<4>(50 + i);
      for (const auto& r : rotations) {
        axes.push_back(sheafnn::rotation::rotation_quaternion(r));
        turned.push_back(turn * axes.back());
      }
      const auto fit = sheafnn::rotation::fit<sheafnn::rotation::AngularCentralGaussian<4>>(axes);
      const auto other = sheafnn::rotation::fit<sheafnn::rotation::AngularCentralGaussian<4>>(turned);
      // A turn of the axes turns Λ, up to the rounding of the samples: ε of an axis is ε √cond of its small part.
      const double condition = std::pow((1 + concentration) / (1 - concentration), 2);
      const SquareMatrix<double, 4> expected = turn * fit.distribution.covariance() * turn.transpose();
      CHECK((other.distribution.covariance() - expected).norm() <= 1e-12 * std::sqrt(condition));
      CHECK(std::abs(other.log_likelihood - fit.log_likelihood) <= 1e-11 * std::sqrt(condition));
    }
  }
}

TEST_CASE("Leon fits of scattered samples converge") {
  const auto check = []<int N>(std::integral_constant<int, N>, double k, std::size_t count) {
    CAPTURE(N);
    CAPTURE(k);
    for (std::uint32_t i = 0; i < 10; ++i) {
      const auto samples = samples_of(LeonCayleyDistribution<N>(some_rotation<N>(60), k), count, 70 + i);
      const auto fit = sheafnn::rotation::fit<LeonCayleyDistribution<N>>(samples);
      const double moments = sheafnn::rotation::fit_moments<LeonCayleyDistribution<N>>(samples).log_likelihood;
      CHECK(fit.log_likelihood >= moments - 1e-12 * std::abs(moments));
    }
  };
  for (const double k : {0.0, 0.05, 0.2, 0.4}) {
    check(std::integral_constant<int, 2>{}, k, 30);
    check(std::integral_constant<int, 3>{}, k, 200);
    check(std::integral_constant<int, 5>{}, k, 30);
  }
}

TEST_CASE("matrix Fisher fits without a preferred direction have infinite errors of the location, and no others") {
  std::vector<SquareMatrix<double, 2>> quarters(4);
  const double turn[4] = {1, 0, -1, 0};
  for (int i = 0; i < 4; ++i)
    quarters[static_cast<std::size_t>(i)] << turn[i], -turn[(i + 3) % 4], turn[(i + 3) % 4], turn[i];
  const auto plane = sheafnn::rotation::fit<MatrixFisherDistribution<2>>(quarters);
  CHECK(plane.concentration() <= 1e-15);
  CHECK(plane.parameter_error.allFinite());
  CHECK(std::isinf(plane.location_error(0)));
  std::vector<SquareMatrix<double, 3>> tetrahedron;
  SquareMatrix<double, 3> permuted = SquareMatrix<double, 3>::Identity();
  for (int a = 0; a < 3; ++a) {
    for (int s = 0; s < 4; ++s) {
      Column<double, 3> signs(1, 1, 1);
      if (s > 0) signs = -signs;
      if (s > 0) signs(s - 1) = 1;
      tetrahedron.push_back(signs.asDiagonal() * permuted);
    }
    SquareMatrix<double, 3> next;
    for (int i = 0; i < 3; ++i) next.row((i + 1) % 3) = permuted.row(i);
    permuted = next;
  }
  const auto space = sheafnn::rotation::fit<MatrixFisherDistribution<3>>(tetrahedron);
  CHECK(space.concentration() <= 1e-14);
  CHECK(space.parameter_error.allFinite());
  CHECK(std::isinf(space.largest_location_error));
  CHECK_FALSE(space.location_error.hasNaN());
  CHECK_FALSE(space.location_covariance.hasNaN());
}

TEST_CASE("weights of any scale, and angles in the tail of a concentrated distribution") {
  const auto samples = samples_of(CayleyDistribution<3>(some_rotation<3>(0), 0.5), 9, 0);
  std::vector<double> weights(9, 1.0), many(9, 8e307);
  weights[1] = 2;
  many[1] = 16e307;
  const auto fit = sheafnn::rotation::fit<CayleyDistribution<3>>(samples, weights);
  const auto large = sheafnn::rotation::fit<CayleyDistribution<3>>(samples, many);
  CHECK(std::abs(fit.distribution.concentration() - large.distribution.concentration()) <= 1e-14);
  for (const double kappa : {100.0, 1000.0}) {
    const MatrixFisherDistribution<2> d(
        SquareMatrix<double, 2>(0.5 * kappa * SquareMatrix<double, 2>::Identity()));
    for (const double angle : {-3.14159, -3.0, -2.0}) {
      CHECK(angle_cdf(d, angle) >= 0);
      CHECK(angle_cdf(d, angle) <= 1e-12);
    }
  }
}

TEST_CASE("what cannot be fitted is refused") {
  using D = CayleyDistribution<3>;
  const std::vector<SquareMatrix<double, 3>> none, one(1, some_rotation<3>(0)), same(5, some_rotation<3>(0));
  CHECK_THROWS_WITH_AS(static_cast<void>(sheafnn::rotation::fit<D>(none)),
                       "fit: samples: 0 of them is not allowed; at least 2 are needed", std::invalid_argument);
  CHECK_THROWS_AS(static_cast<void>(sheafnn::rotation::fit<D>(one)), std::invalid_argument);
  CHECK_THROWS_WITH_AS(static_cast<void>(sheafnn::rotation::fit<D>(same)), doctest::Contains("nearly) equal rotations"),
                       std::invalid_argument);
  CHECK_THROWS_AS(static_cast<void>(sheafnn::rotation::fit_moments<D>(same)), std::invalid_argument);
  // A third of the weight on one sample of SO(3): the likelihood has no bound there.
  CHECK_THROWS_WITH_AS(static_cast<void>(sheafnn::rotation::fit<D>(samples_of(D(some_rotation<3>(0), 0.5), 5, 0),
                                                                   std::vector<double>{1, 2, 1, 1, 1})),
                       doctest::Contains("or of too few"), std::invalid_argument);
  CHECK_THROWS_AS(static_cast<void>(sheafnn::rotation::fit<LeonCayleyDistribution<3>>(same)), std::invalid_argument);
  CHECK_THROWS_AS(static_cast<void>(sheafnn::rotation::fit_moments<LeonCayleyDistribution<3>>(same)),
                  std::invalid_argument);
  CHECK_THROWS_WITH_AS(static_cast<void>(sheafnn::rotation::fit<MatrixFisherDistribution<3>>(same)),
                       doctest::Contains("without scatter"), std::invalid_argument);
  auto bad = samples_of(D(some_rotation<3>(0), 0.5), 5, 0);
  CHECK_THROWS_AS(static_cast<void>(sheafnn::rotation::fit<D>(bad, std::vector<double>{1, 1})), std::invalid_argument);
  CHECK_THROWS_AS(static_cast<void>(sheafnn::rotation::fit<D>(bad, std::vector<double>{1, 1, -1, 1, 1})),
                  std::invalid_argument);
  CHECK_THROWS_AS(static_cast<void>(sheafnn::rotation::fit<D>(bad, std::vector<double>(5, 0.0))),
                  std::invalid_argument);
  bad[3](1, 1) += 1e-3;
  CHECK_THROWS_WITH_AS(static_cast<void>(sheafnn::rotation::fit<D>(bad)), doctest::Contains("fit: samples[3]"),
                       std::invalid_argument);
  // A uniform average: no preferred direction.
  std::vector<SquareMatrix<double, 2>> opposite(2, SquareMatrix<double, 2>::Identity());
  opposite[1] *= -1;
  CHECK_THROWS_WITH_AS(static_cast<void>(sheafnn::rotation::fit<CayleyDistribution<2>>(opposite)),
                       doctest::Contains("preferred direction"), std::invalid_argument);
  const std::vector<Column<double, 3>> line(10, Column<double, 3>(1, 0, 0));
  CHECK_THROWS_WITH_AS(static_cast<void>(sheafnn::rotation::fit<sheafnn::rotation::AngularCentralGaussian<3>>(line)),
                       doctest::Contains("subspace"), std::invalid_argument);
}

TEST_CASE("goodness of fit: p-values of the true law are uniform, those of a wrong one are small") {
  const auto check = [](const auto& truth, const auto& wrong, std::uint32_t simulations, std::size_t count) {
    std::vector<double> p_values;
    for (std::uint32_t i = 0; i < simulations; ++i) {
      p_values.push_back(sheafnn::rotation::goodness_of_fit(truth, samples_of(truth, count, i)).p_value);
    }
    CHECK(kolmogorov_smirnov(p_values, [](double x) { return x; }) <= allowed_kolmogorov_smirnov);
    const auto result = sheafnn::rotation::goodness_of_fit(wrong, samples_of(truth, 400, 0));
    CHECK(result.p_value <= 1e-3);
    CHECK(result.probabilities.size() == 400);
  };
  const SquareMatrix<double, 3> m = some_rotation<3>(0);
  const SquareMatrix<double, 2> n = some_rotation<2>(0);
  check(CayleyDistribution<3>(m, 0.5), CayleyDistribution<3>(m, 0.7), 300, 50);
  check(CayleyDistribution<2>(n, 0.5), CayleyDistribution<2>(n, 0.7), 300, 50);
  check(LeonCayleyDistribution<3>(m, 3), CayleyDistribution<3>(m, 0.8), 300, 50);
  check(LeonCayleyDistribution<2>(n, 3), LeonCayleyDistribution<2>(n, 7), 300, 50);
  check(sheafnn::rotation::HaarDistribution<3>(), LeonCayleyDistribution<3>(m, 0.5), 300, 50);
  check(MatrixFisherDistribution<2>(n, 1), MatrixFisherDistribution<2>(n, 2), 100, 30);
  check(MatrixFisherDistribution<3>(m, 1.0), MatrixFisherDistribution<3>(m, 2.0), 100, 30);
  check(WrappedCauchy<>(1.0, 0.5), WrappedCauchy<>(1.0, 0.8), 300, 50);
  CHECK_THROWS_AS(static_cast<void>(sheafnn::rotation::uniformity({})), std::invalid_argument);
  CHECK_THROWS_AS(static_cast<void>(sheafnn::rotation::uniformity({0.5, 1.5})), std::invalid_argument);
}

}  // namespace test_rotation_fits
