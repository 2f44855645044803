/// \file
/// Distributions of rotations against figures computed without the library's formulas
/// (golden/make_rotation_reference.py).
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <string>

#include "rotation_checks.hpp"
#include "sheafnn/rotation/angular_central_gaussian_kl.hpp"
#include "sheafnn/rotation/cayley_divergence.hpp"
#include "sheafnn/rotation/goodness_of_fit.hpp"
#include "sheafnn/rotation/leon_angle.hpp"
#include "sheafnn/rotation/matrix_fisher_angle.hpp"

namespace test_rotation_reference {
namespace {

using namespace rotation_checks;
using sheafnn::SquareMatrix;

struct Row {
  const char* what;
  int dimension;
  double a, b, c, d, value;
};
constexpr Row rows[] = {
#include "golden/rotation_reference.inc"
};

/// Error of a figure in units of 1 + its size: sums of a few hundred rounded terms on either side.
constexpr double quadrature_bound = 512 * epsilon;
/// The rule with step 1/3 (unit_quadrature.hpp).
constexpr double coarse_bound = 4e-13;

/// Calls f(row) for the rows of one kind and dimension (0: any); returns how many there are.
template <class F>
int for_rows(const char* what, int dimension, const F& f) {
  int count = 0;
  for (const Row& row : rows) {
    if (std::strcmp(row.what, what) != 0 || row.dimension != dimension) continue;
    CAPTURE(what);
    CAPTURE(dimension);
    CAPTURE(row.a);
    CAPTURE(row.b);
    CAPTURE(row.c);
    CAPTURE(row.d);
    f(row);
    ++count;
  }
  return count;
}

double error(double value, const Row& row) { return std::abs(value - row.value) / (1 + std::abs(row.value)); }

template <int N>
void check_pairs(int expected) {
  const SquareMatrix<double, N> location =
      sheafnn::rotation::haar_rotation<double, N>(sheafnn::Stream{.seed = 200}, 0u);
  CHECK(for_rows("kl_pair", N, [&](const Row& row) {
          const sheafnn::rotation::CayleyDistribution<N> p(location, row.a);
          const sheafnn::rotation::CayleyDistribution<N> q(sheafnn::math::multiply(location, turn<N>(row.c)), row.b);
          CHECK(error(sheafnn::rotation::kl_divergence(p, q), row) <= quadrature_bound);
        }) == expected);
}

template <int N>
void check_leon(int expected) {
  CHECK(for_rows("leon", N, [](const Row& row) {
          const sheafnn::rotation::LeonCayleyDistribution<N> distribution(SquareMatrix<double, N>::Identity(), row.a);
          CHECK(error(-sheafnn::rotation::logpdf(distribution, SquareMatrix<double, N>::Identity()), row) <=
                quadrature_bound);
        }) == expected);
}

template <class D>
void check_angles(const char* what, int expected, double bound) {
  constexpr int N = D::dimension;
  const auto check = [&](const Row& row) {
    const D distribution(SquareMatrix<double, N>::Identity(), row.a);
    CHECK(error(sheafnn::rotation::angle_cdf(distribution, row.b), row) <= bound);
    // The quantile undoes the distribution function; its error is the error of the probability over the density.
    const double slope = sheafnn::rotation::angle_pdf(distribution, row.b);
    if (row.value < 1 - 1e-6) {
      const double back = sheafnn::rotation::angle_quantile(distribution, row.value);
      CHECK(std::abs(back - row.b) <= bound / slope + 8 * epsilon * row.b);
    }
    // The density is the derivative of the distribution function.
    const double step = difference_step * row.b;
    const double difference = (sheafnn::rotation::angle_cdf(distribution, row.b + step) -
                               sheafnn::rotation::angle_cdf(distribution, row.b - step)) /
                              (2 * step);
    CHECK(std::abs(difference - slope) <= bound / step + 1000 * step * step * (1 + slope));
    if (N == 2) CHECK(std::abs(sheafnn::rotation::angle_cdf(distribution, -row.b) - (1 - row.value)) <= bound);
  };
  CHECK(for_rows(what, N, check) == expected);
}

}  // namespace

TEST_CASE("KL between Cayley distributions against quadrature over SO(n)") {
  check_pairs<2>(4);
  check_pairs<3>(5);
  check_pairs<4>(3);
  check_pairs<5>(3);
  check_pairs<6>(3);
  check_pairs<7>(3);
}

TEST_CASE("normaliser of León's distribution against Weyl's integration formula") {
  check_leon<2>(6);
  check_leon<3>(6);
  check_leon<4>(4);
  check_leon<5>(4);
  check_leon<6>(4);
  check_leon<7>(4);
}

TEST_CASE("normaliser and mean of the matrix Fisher distribution against quadrature over unit quaternions") {
  CHECK(for_rows("fisher", 3, [](const Row& row) {
          const sheafnn::math::Column<double, 3> s(row.a, row.b, row.c);
          const sheafnn::rotation::MatrixFisherDistribution<3> distribution(SquareMatrix<double, 3>(s.asDiagonal()));
          const double log_density =
              s.sum() - sheafnn::rotation::logpdf(distribution, SquareMatrix<double, 3>::Identity());
          CHECK(error(log_density, row) <= quadrature_bound);
        }) == 8);
  CHECK(for_rows("fisher_mean", 3, [](const Row& row) {
          const sheafnn::math::Column<double, 3> s(row.a, row.b, row.c);
          const sheafnn::rotation::MatrixFisherDistribution<3> distribution(SquareMatrix<double, 3>(s.asDiagonal()));
          const int i = static_cast<int>(row.d);
          CHECK(error(sheafnn::rotation::mean(distribution)(i, i), row) <= quadrature_bound);
        }) == 24);
  CHECK(for_rows("fisher", 2, [](const Row& row) {
          const sheafnn::rotation::MatrixFisherDistribution<2> distribution(SquareMatrix<double, 2>::Identity(), row.a);
          const double value = 2 * row.a - sheafnn::rotation::logpdf(distribution, SquareMatrix<double, 2>::Identity());
          CHECK(error(value, row) <= quadrature_bound);
        }) == 6);
}

TEST_CASE("laws of rotation angles: distribution function, density, quantile") {
  check_angles<sheafnn::rotation::CayleyDistribution<2>>("cayley_cdf", 12, quadrature_bound);
  check_angles<sheafnn::rotation::CayleyDistribution<3>>("cayley_cdf", 12, quadrature_bound);
  check_angles<sheafnn::rotation::LeonCayleyDistribution<2>>("leon_cdf", 12, quadrature_bound);
  check_angles<sheafnn::rotation::LeonCayleyDistribution<3>>("leon_cdf", 12, quadrature_bound);
  check_angles<sheafnn::rotation::MatrixFisherDistribution<2>>("fisher_cdf", 12, coarse_bound);
  check_angles<sheafnn::rotation::MatrixFisherDistribution<3>>("fisher_cdf", 12, coarse_bound);
  CHECK(for_rows("haar_quantile", 3, [](const Row& row) {
          const double value = sheafnn::rotation::angle_quantile(sheafnn::rotation::HaarDistribution<3>(), row.a);
          CHECK(std::abs(value - row.value) <= 16 * epsilon * row.value);
        }) == 7);
}

TEST_CASE(
    "the angle of a matrix Fisher rotation with different singular values: total mass, and the isotropic limit") {
  constexpr double pi = 3.14159265358979323846;
  for (const double s3 : {0.5, -0.5, -0.99}) {
    const sheafnn::math::Column<double, 3> s(4, 1, s3);
    const sheafnn::rotation::MatrixFisherDistribution<3> distribution(SquareMatrix<double, 3>(s.asDiagonal()));
    CHECK(std::abs(sheafnn::rotation::angle_cdf(distribution, pi) - 1) <= coarse_bound);
    CHECK(std::abs(
              sheafnn::rotation::angle_cdf(distribution, sheafnn::rotation::angle_quantile(distribution, 0.25)) -
              0.25) <= coarse_bound);
  }
  const sheafnn::math::Column<double, 3> near(2 + 1e-7, 2, 2 - 1e-7);
  const sheafnn::rotation::MatrixFisherDistribution<3> split(SquareMatrix<double, 3>(near.asDiagonal()));
  const sheafnn::rotation::MatrixFisherDistribution<3> even(SquareMatrix<double, 3>::Identity(), 2.0);
  CHECK(std::abs(sheafnn::rotation::angle_pdf(split, 0.7) - sheafnn::rotation::angle_pdf(even, 0.7)) <= 1e-12);
}

TEST_CASE("KL of angular central Gaussian distributions to the uniform one") {
  CHECK(for_rows("acg_kl", 2, [](const Row& row) {
          const sheafnn::math::Column<double, 2> l(row.a, row.b);
          CHECK(error(sheafnn::rotation::kl_to_uniform(
                          sheafnn::rotation::AngularCentralGaussian<2>(SquareMatrix<double, 2>(l.asDiagonal()))),
                      row) <= quadrature_bound);
        }) == 2);
  CHECK(for_rows("acg_kl", 3, [](const Row& row) {
          const sheafnn::math::Column<double, 3> l(row.a, row.b, row.c);
          CHECK(error(sheafnn::rotation::kl_to_uniform(
                          sheafnn::rotation::AngularCentralGaussian<3>(SquareMatrix<double, 3>(l.asDiagonal()))),
                      row) <= quadrature_bound);
        }) == 3);
  // Quaternions of a Cayley distribution, from uniform to nearly a point.
  for (const double rest : {1.0, 0.5, 1e-3, 1e-9, 1e-15}) {
    CAPTURE(rest);
    const double exact = sheafnn::rotation::cayley_kl<3>(1 - rest);
    CHECK(std::abs(sheafnn::rotation::kl_to_uniform(sheafnn::rotation::cayley_quaternions(1 - rest)) - exact) <=
          quadrature_bound * (1 + exact));
  }
}

TEST_CASE("Kolmogorov's law") {
  CHECK(for_rows("kolmogorov", 0, [](const Row& row) {
          // Stephens' correction vanishes as n grows: 0.12 x/√n · |slope|.
          const std::size_t n = 1000000000000;
          CHECK(std::abs(sheafnn::rotation::kolmogorov_p_value(row.a / 1e6, n) - row.value) <= 1e-6);
        }) == 5);
}

TEST_CASE("densities of the R package rotations") {
  CHECK(for_rows("r_cayley", 3, [](const Row& row) {
          const sheafnn::rotation::LeonCayleyDistribution<3> distribution(SquareMatrix<double, 3>::Identity(), row.a);
          CHECK(error(sheafnn::rotation::angle_pdf(distribution, row.b), row) <= quadrature_bound);
        }) == 9);
  CHECK(for_rows("r_fisher", 3, [](const Row& row) {
          const sheafnn::rotation::MatrixFisherDistribution<3> distribution(SquareMatrix<double, 3>::Identity(), row.a);
          CHECK(error(sheafnn::rotation::angle_pdf(distribution, row.b), row) <= quadrature_bound);
        }) == 9);
}

}  // namespace test_rotation_reference
