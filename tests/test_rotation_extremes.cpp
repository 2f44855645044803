/// \file
/// Fits of samples that nearly agree, and the matrix Fisher distribution at both ends of its range: digits that 1 − r or
/// sin² of a small angle would have lost.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <vector>

#include "rotation_checks.hpp"
#include "sheafnn/rotation.hpp"

namespace test_rotation_extremes {
namespace {

using namespace rotation_checks;
using sheafnn::SquareMatrix;
using sheafnn::Stream;
using sheafnn::math::Column;
using sheafnn::rotation::CayleyDistribution;
using sheafnn::rotation::LeonCayleyDistribution;
using sheafnn::rotation::MatrixFisherDistribution;
using sheafnn::rotation::WrappedCauchy;

template <class Scalar, int N>
SquareMatrix<Scalar, N> some_rotation() {
  return sheafnn::rotation::haar_rotation<Scalar, N>(Stream{.seed = 720}, 1u);
}

template <class D>
auto samples_of(const D& distribution, std::size_t count, std::uint32_t simulation) {
  std::vector<sheafnn::detail::SampleOf<D>> samples(count);
  sheafnn::rotation::sample_many(distribution, Stream{.seed = 721, .epoch = simulation}, 0, samples);
  return samples;
}

/// 1 − κ̂ and 1 − κ agree in artanh κ = ½ log((1 + κ)/(1 − κ)), whose information is (N − 1)² v.
template <int N, class D>
void check_concentrated_fits(const D& truth, std::size_t count) {
  using Scalar = typename D::Scalar;
  const double gap = static_cast<double>(Scalar(1) - truth.concentration());
  CAPTURE(N);
  CAPTURE(gap);
  CAPTURE(count);
  for (std::uint32_t i = 0; i < 20; ++i) {
    const auto fit = sheafnn::rotation::fit<D>(samples_of(truth, count, i));
    const double fitted = static_cast<double>(Scalar(1) - fit.distribution.concentration());
    const double error = 1 / ((N - 1) * std::sqrt((N == 2 ? 2.0 : 1.0) * static_cast<double>(count)));
    // Samples and κ are rounded: ε of 1 − κ.
    const double rounding = 4 * static_cast<double>(std::numeric_limits<Scalar>::epsilon()) / gap;
    CHECK(0.5 * std::abs(std::log(fitted / gap)) <= allowed_standard_errors * error + rounding);
  }
}

/// R by ±angle about each of the three axes, R some rotation.
std::vector<SquareMatrix<double, 3>> six_turns(double angle) {
  const auto location = some_rotation<double, 3>();
  std::vector<SquareMatrix<double, 3>> samples;
  for (int axis = 0; axis < 3; ++axis) {
    for (const double sign : {1.0, -1.0}) {
      Column<double, 3> phi = Column<double, 3>::Zero();
      phi(axis) = sign * angle;
      samples.push_back(
          sheafnn::math::multiply(sheafnn::rotation::exponential_rotation<double, 3>(phi), location));
    }
  }
  return samples;
}

}  // namespace

TEST_CASE("Cayley fits of concentrated samples, whose average alone would be that of a point mass") {
  for (const std::size_t count : {20, 200}) {
    check_concentrated_fits<3>(CayleyDistribution<3>(some_rotation<double, 3>(), 1 - 1e-9), count);
    check_concentrated_fits<3>(CayleyDistribution<3>(some_rotation<double, 3>(), 1 - 1e-13), count);
    check_concentrated_fits<2>(CayleyDistribution<2>(some_rotation<double, 2>(), 1 - 1e-11), count);
    check_concentrated_fits<3>(CayleyDistribution<3, float>(some_rotation<float, 3>(), 1 - 1e-5f), count);
    check_concentrated_fits<2>(WrappedCauchy<float>(0.5f, 1 - 1e-4f), count);
    check_concentrated_fits<2>(WrappedCauchy<float>(0.5f, 1 - 1e-5f), count);
    check_concentrated_fits<2>(WrappedCauchy<>(0.5, 1 - 1e-12), count);
  }
  check_concentrated_fits<5>(CayleyDistribution<5>(some_rotation<double, 5>(), 1 - 1e-12), 200);
}

template <int N>
void check_equal_rotations() {
  CAPTURE(N);
  for (const std::size_t count : {2, 3, 50}) {
    CAPTURE(count);
    for (std::uint32_t id = 0; id < 8; ++id) {
      CAPTURE(id);
      const std::vector<SquareMatrix<double, N>> same(
          count, sheafnn::rotation::haar_rotation<double, N>(Stream{.seed = 9}, id));
      CHECK_THROWS_WITH_AS(static_cast<void>(sheafnn::rotation::fit<CayleyDistribution<N>>(same)),
                           doctest::Contains("a set of (nearly) equal rotations"), std::invalid_argument);
    }
  }
}

TEST_CASE("equal rotations have no fit in any dimension: their rounding errors are no scatter") {
  check_equal_rotations<2>();
  check_equal_rotations<4>();
  check_equal_rotations<5>();
  check_equal_rotations<6>();
}

TEST_CASE("equal rotations have no fit, however many there are") {
  for (const std::size_t count : {9, 100000}) {
    CAPTURE(count);
    for (std::uint32_t id = 0; id < 4; ++id) {
      CAPTURE(id);
      const std::vector<SquareMatrix<double, 3>> same(
          count, sheafnn::rotation::haar_rotation<double, 3>(Stream{.seed = 9}, id));
      const std::vector<SquareMatrix<float, 3>> same_float(count, same[0].cast<float>());
      const char* const message = "a set of (nearly) equal rotations";
      CHECK_THROWS_WITH_AS(static_cast<void>(sheafnn::rotation::fit<CayleyDistribution<3>>(same)),
                           doctest::Contains(message), std::invalid_argument);
      CHECK_THROWS_WITH_AS(static_cast<void>(sheafnn::rotation::fit<CayleyDistribution<3, float>>(same_float)),
                           doctest::Contains(message), std::invalid_argument);
      CHECK_THROWS_WITH_AS(static_cast<void>(sheafnn::rotation::fit_moments<CayleyDistribution<3>>(same)),
                           doctest::Contains(message), std::invalid_argument);
      CHECK_THROWS_WITH_AS(static_cast<void>(sheafnn::rotation::fit_moments<LeonCayleyDistribution<3>>(same)),
                           doctest::Contains(message), std::invalid_argument);
    }
  }
}

TEST_CASE("moments of concentrated rotations keep the digits of 1 - r") {
  // Turns by ±θ about the axes: 1 − r = θ²/3 (1 + …), so κ = 1 − θ²/4 and k = 6/θ².
  for (const double angle : {1e-3, 1e-5, 1e-6, 4e-7}) {
    CAPTURE(angle);
    const auto samples = six_turns(angle);
    const double series = angle * angle / 2, rounding = 16 * epsilon / angle;  // rounded entries
    const auto leon = sheafnn::rotation::fit_moments<LeonCayleyDistribution<3>>(samples);
    CHECK(std::abs(leon.distribution.concentration() * angle * angle / 6 - 1) <= series + rounding);
    const auto cayley = sheafnn::rotation::fit_moments<CayleyDistribution<3>>(samples);
    const double gap = 1 - cayley.distribution.concentration();  // κ is rounded
    CHECK(std::abs(gap - angle * angle / 4) <= (series + rounding) * angle * angle / 4 + epsilon / 2);
    // 1 − tr(PMᵀ)/3 is the same for all of them.
    CHECK(leon.concentration_error <= rounding * leon.distribution.concentration());
  }
  // Moments and maximum likelihood agree in the concentrated law.
  for (const double k : {1e8, 1e11, 1e13, 1e14}) {
    CAPTURE(k);
    const auto samples = samples_of(LeonCayleyDistribution<3>(some_rotation<double, 3>(), k), 4000, 0);
    const auto moments = sheafnn::rotation::fit_moments<LeonCayleyDistribution<3>>(samples);
    const auto likelihood = sheafnn::rotation::fit<LeonCayleyDistribution<3>>(samples);
    const double fitted = moments.distribution.concentration();
    CHECK(std::abs(fitted / likelihood.distribution.concentration() - 1) <= 16 / k + 16 * epsilon * std::sqrt(k));
    CHECK(std::abs(fitted - k) <= allowed_standard_errors * moments.concentration_error);
    CHECK(std::abs(moments.concentration_error / likelihood.concentration_error - 1) <= 0.1);
  }
}

TEST_CASE("matrix Fisher fits of concentrated rotations") {
  // 1 − r = 1/(2κ) + …, so κ = 3/(2θ²).
  for (const double kappa : {1e8, 1e12, 1e13, 2e13}) {
    CAPTURE(kappa);
    const double angle = std::sqrt(1.5 / kappa);
    const auto fit = sheafnn::rotation::fit<MatrixFisherDistribution<3>>(six_turns(angle));
    CHECK(std::abs(fit.concentration() / kappa - 1) <= 4 / kappa + 16 * epsilon / angle);
  }
  // Samples of larger s are samples of smaller s with scaled turns.
  const auto fitted = [](double scale) {
    const Column<double, 3> s = scale * Column<double, 3>(3, 2, 1);
    const MatrixFisherDistribution<3> truth(
        SquareMatrix<double, 3>(s.asDiagonal().toDenseMatrix() * some_rotation<double, 3>()));
    const auto fit = sheafnn::rotation::fit<MatrixFisherDistribution<3>>(samples_of(truth, 400, 0));
    return Column<double, 3>(fit.distribution.singular_values() / scale);
  };
  const Column<double, 3> expected = fitted(1e7);
  for (const double scale : {1e9, 1e11, 1e12, 5e12}) {
    CAPTURE(scale);
    CHECK((fitted(scale) - expected).cwiseAbs().maxCoeff() <= 1e-5);
  }
}

TEST_CASE("matrix Fisher: probabilities of the smallest angles") {
  const MatrixFisherDistribution<2> circle(SquareMatrix<double, 2>::Identity(), 1.0);
  const MatrixFisherDistribution<3> sphere(SquareMatrix<double, 3>::Identity(), 1.0);
  const double density = sheafnn::rotation::angle_pdf(circle, 0.0);
  for (const double r : {1e-5, 1e-100, 1e-149, 1e-152, 1e-155, 1e-159, 1e-162, 1e-300}) {
    CAPTURE(r);
    CHECK(std::abs(sheafnn::rotation::angle_cdf(circle, r) - 0.5 - density * r) <= epsilon);
    CHECK(std::abs(sheafnn::rotation::angle_cdf(circle, -r) - 0.5 + density * r) <= epsilon);
    const double mass =
        sheafnn::detail::matrix_fisher_angle_mass<2>(circle.singular_values(), circle.normaliser().log_scaled, r);
    CHECK(std::abs(mass / (density * r) - 1) <= 1e-9);  // 1 − r²/6
    CHECK(sheafnn::rotation::angle_cdf(sphere, r) <= r * r * r);
    SquareMatrix<double, 2> turn;
    turn << 1, -r, r, 1;
    const auto test =
        sheafnn::rotation::goodness_of_fit(circle, std::vector<SquareMatrix<double, 2>>{turn, turn.transpose()});
    CHECK(std::abs(test.statistic - 0.5) <= density * r + epsilon);
  }
}

TEST_CASE("matrix Fisher: means of small parameters, d_i = s_i/3 + s_j s_k/6 + O(s³)") {
  for (const double scale : {1e-3, 1e-8, 1e-15, 1e-17, 1e-60}) {
    CAPTURE(scale);
    const Column<double, 3> s = scale * Column<double, 3>(3, 2, -1);
    const MatrixFisherDistribution<3> distribution(
        SquareMatrix<double, 3>(s.asDiagonal().toDenseMatrix() * some_rotation<double, 3>()));
    const Column<double, 3> d = s / 3 + Column<double, 3>(s(1) * s(2), s(0) * s(2), s(0) * s(1)) / 6;
    const double bound = 4 * scale * scale * scale + 64 * epsilon * scale;
    CHECK((sheafnn::rotation::mean(distribution) -
           SquareMatrix<double, 3>(d.asDiagonal().toDenseMatrix() * some_rotation<double, 3>()))
              .cwiseAbs()
              .maxCoeff() <= bound);
    CHECK(std::abs(sheafnn::rotation::mean_resultant(distribution) - d.sum() / 3) <= bound);
    // N = 2: A(κ) = κ/2 (1 − κ²/8 …), and F = κM has the angle's concentration 2κ.
    const MatrixFisherDistribution<2> circle(some_rotation<double, 2>(), scale);
    CHECK(std::abs(sheafnn::rotation::mean_resultant(circle) / scale - 1) <= scale * scale + 64 * epsilon);
  }
  // The integral that stands for 1 − rest, where both have their digits.
  for (const double scale : {0.01, 0.03, 0.0999}) {
    const MatrixFisherDistribution<3> distribution(
        SquareMatrix<double, 3>(scale * Column<double, 3>(1, 0.7, -0.2).asDiagonal().toDenseMatrix()));
    const Column<double, 3> d = sheafnn::detail::mean_diagonal(distribution);
    for (int i = 0; i < 3; ++i) CHECK(std::abs(d(i) - (1 - distribution.normaliser().rest(i))) <= 8 * epsilon);
    const MatrixFisherDistribution<2> circle(SquareMatrix<double, 2>::Identity(), scale);
    CHECK(std::abs(sheafnn::rotation::mean_resultant(circle) - (1 - circle.normaliser().rest(0))) <= 8 * epsilon);
  }
}

TEST_CASE("matrix Fisher: KL keeps its digits") {
  struct Exact {
    double s[3], kl;
  };
  // From mpmath. Of small parameters Σ s_i d_i − log c would lose two digits, of the last one three.
  for (const Exact& one : {Exact{{0.125, 0.125, 0.125}, 0.008459218508376997046121}, Exact{{0.25, 0, 0}, 0.01035199027564240454296},
                           Exact{{0.25, 0.25, -0.125}, 0.02084084349318259224611}, Exact{{1e4, 1e4, -1e4}, 4.6775476291471755703}}) {
    const Column<double, 3> s(one.s[0], one.s[1], one.s[2]);
    const MatrixFisherDistribution<3> distribution(SquareMatrix<double, 3>(s.asDiagonal().toDenseMatrix()));
    CHECK(std::abs(sheafnn::rotation::kl_to_uniform(distribution) / one.kl - 1) <= 32 * epsilon);
  }
}

TEST_CASE("matrix Fisher: derivatives of the normaliser up to the largest parameters") {
  // Laplace: log c = Σs − ½ Σ_{i<j} log(s_i + s_j) + …
  for (const double scale : {1e20, 1e80, 1e110, 1e130, 3e149}) {
    CAPTURE(scale);
    const Column<double, 3> s = scale * Column<double, 3>(3, 1, 0.5);
    const MatrixFisherDistribution<3> distribution(SquareMatrix<double, 3>(s.asDiagonal().toDenseMatrix()));
    const auto& normaliser = distribution.normaliser();
    const auto inverse = [&](int i, int j) { return 1 / (s(i) + s(j)); };
    double kl = -1.5 - normaliser.log_scaled;
    for (int i = 0; i < 3; ++i) {
      const int j = (i + 1) % 3, k = (i + 2) % 3;
      CHECK(std::abs(normaliser.rest(i) / (0.5 * (inverse(i, j) + inverse(i, k))) - 1) <= 1e-13);
      const double curvature = 0.5 * (inverse(i, j) * inverse(i, j) + inverse(i, k) * inverse(i, k));
      CHECK(std::abs(normaliser.hessian(i, i) / curvature - 1) <= 1e-12);
      CHECK(std::abs(normaliser.hessian(i, j) / (0.5 * inverse(i, j) * inverse(i, j)) - 1) <= 1e-12);
    }
    CHECK(std::abs(sheafnn::rotation::kl_to_uniform(distribution) - kl) <= 1e-14 * kl);
  }
}

}  // namespace test_rotation_extremes
