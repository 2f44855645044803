/// \file
/// Cayley, wrapped Cauchy and angular central Gaussian distributions: densities integrate to 1, samples of angles
/// follow them, the special dimensions agree with each other, bad parameters are refused.
#include <doctest/doctest.h>

#include <cmath>
#include <stdexcept>
#include <vector>

#include "rotation_checks.hpp"
#include "sheafnn/rotation/angular_central_gaussian.hpp"
#include "sheafnn/rotation/cayley_distribution.hpp"
#include "sheafnn/rotation/quaternion.hpp"
#include "sheafnn/rotation/wrapped_cauchy.hpp"

namespace test_distributions {
namespace {

using namespace rotation_checks;
using sheafnn::rotation::AngularCentralGaussian;
using sheafnn::rotation::CayleyDistribution;
using sheafnn::math::Column;
using sheafnn::SquareMatrix;
using sheafnn::Stream;
using sheafnn::rotation::WrappedCauchy;

constexpr double pi = 3.14159265358979323846;

template <int N>
CayleyDistribution<N> centred(double kappa) {
  return {SquareMatrix<double, N>::Identity(), kappa};
}

}  // namespace

TEST_CASE("Cayley density integrates to 1: dimensions 2 and 3, by quadrature over the angle") {
  for (const double kappa : {0.0, 0.3, 0.8}) {
    CAPTURE(kappa);
    // Periodic analytic integrands: the rectangle rule's error is κ^n, below rounding.
    const int n = 400;
    double two = 0;
    double three = 0;
    for (int i = 0; i < n; ++i) {
      const double angle = 2 * pi * i / n;
      two += sheafnn::rotation::pdf(centred<2>(kappa), turn<2>(angle)) / n;
      // Density (1 − cos r)/π of the angle r of uniform rotations on [0, π], unfolded to [0, 2π].
      three += sheafnn::rotation::pdf(centred<3>(kappa), turn<3>(angle)) * (1 - std::cos(angle)) / n;
    }
    // Rounding of one density is about ε/(1 − κ)² of its value here.
    CHECK(std::abs(two - 1) <= 64 * epsilon / (1 - kappa));
    CHECK(std::abs(three - 1) <= 64 * epsilon / ((1 - kappa) * (1 - kappa)));
  }
}

TEST_CASE("mean resultant of Cayley distributions of dimension 2, 3 and 4") {
  for (const double kappa : {0.0, 0.25, 0.75}) {
    CHECK(std::abs(sheafnn::rotation::cayley_resultant<2>(kappa) - kappa) <= 4 * epsilon);
    CHECK(std::abs(sheafnn::rotation::cayley_resultant<3>(kappa) - kappa * (2 + kappa) / 3) <= 4 * epsilon);
    CHECK(std::abs(sheafnn::rotation::cayley_resultant<4>(kappa) - kappa * (3 + kappa * kappa) / 4) <= 4 * epsilon);
  }
}

TEST_CASE("rotation angles of Cayley samples follow the law their density gives") {
  for (const double kappa : {0.3, 0.8}) {
    CAPTURE(kappa);
    const SquareMatrix<double, 3> location = sheafnn::rotation::haar_rotation<double, 3>(Stream{.seed = 35}, 0u);
    const CayleyDistribution<3> three(location, kappa);
    const CayleyDistribution<2> two(turn<2>(1.0), kappa);
    const WrappedCauchy<> cauchy(1.0, kappa);
    const AngularCentralGaussian<4> quaternions = sheafnn::rotation::cayley_quaternions(kappa);
    std::vector<double> angle2, angle3, cauchy_angle, quaternion_angle;
    double worst = 0;  // between the samples of two and cauchy, which are the same
    for (std::uint32_t id = 0; id < 20000; ++id) {
      const Stream stream{.seed = 36};
      angle3.push_back(sheafnn::rotation::rotation_angle<double, 3>(
          sheafnn::math::multiply_nt(sheafnn::rotation::sample(three, stream, id), location)));
      angle2.push_back(sheafnn::rotation::rotation_angle<double, 2>(
          sheafnn::math::multiply_nt(sheafnn::rotation::sample(two, stream, id), two.location())));
      const double angle = sheafnn::rotation::sample(cauchy, stream, id);
      cauchy_angle.push_back(std::remainder(angle - 1, 2 * pi));
      worst = std::max(worst, std::abs(angle - sheafnn::rotation::rotation_angle<double, 2>(
                                                   sheafnn::rotation::sample(two, stream, id))));
      quaternion_angle.push_back(
          sheafnn::rotation::rotation_angle<double, 3>(sheafnn::rotation::quaternion_rotation<double>(
              sheafnn::rotation::sample(quaternions, Stream{.seed = 37}, id))));
    }
    CHECK(worst <= 64 * epsilon / (1 - kappa));
    const TabulatedDistribution law2(-pi, pi, [&](double r) {
      return sheafnn::rotation::pdf(centred<2>(kappa), turn<2>(r)) / (2 * pi);
    });
    const TabulatedDistribution law3(0, pi, [&](double r) {
      return sheafnn::rotation::pdf(centred<3>(kappa), turn<3>(r)) * (1 - std::cos(r)) / pi;
    });
    CHECK(kolmogorov_smirnov(angle2, law2) <= allowed_kolmogorov_smirnov);
    CHECK(kolmogorov_smirnov(cauchy_angle, law2) <= allowed_kolmogorov_smirnov);
    CHECK(kolmogorov_smirnov(angle3, law3) <= allowed_kolmogorov_smirnov);
    CHECK(kolmogorov_smirnov(quaternion_angle, law3) <= allowed_kolmogorov_smirnov);
  }
}

TEST_CASE("wrapped Cauchy and quaternion densities are those of Cayley distributions") {
  for (const double kappa : {0.0, 0.3, 0.8}) {
    CAPTURE(kappa);
    const double bound = 64 * epsilon / ((1 - kappa) * (1 - kappa));
    const AngularCentralGaussian<4> quaternions = sheafnn::rotation::cayley_quaternions(kappa);
    const WrappedCauchy<> cauchy(0.5, kappa);
    const CayleyDistribution<2> two(turn<2>(0.5), kappa);
    for (std::uint32_t id = 0; id < 50; ++id) {
      const double angle = -3 + 0.12 * id;
      CHECK(std::abs(sheafnn::rotation::logpdf(cauchy, angle) - sheafnn::rotation::logpdf(two, turn<2>(angle))) <=
            bound);
      Column<double, 4> q;
      sheafnn::fill_normals<4, double>(q.data(), Stream{.seed = 38}, id);
      q = sheafnn::rotation::normalised_quaternion<double>(q);
      const SquareMatrix<double, 3> rotation = sheafnn::rotation::quaternion_rotation<double>(q);
      CHECK(std::abs(sheafnn::rotation::logpdf(quaternions, q) -
                     sheafnn::rotation::logpdf(centred<3>(kappa), rotation)) <= bound);
    }
    CHECK(std::abs(sheafnn::rotation::kl_to_uniform(cauchy) - sheafnn::rotation::kl_to_uniform(two)) <= 4 * epsilon);
  }
}

TEST_CASE("angular central Gaussian density integrates to 1 and its samples have its moments") {
  SquareMatrix<double, 2> two = (SquareMatrix<double, 2>() << 2.0, 0.7, 0.7, 0.5).finished();
  SquareMatrix<double, 3> three = SquareMatrix<double, 3>::Identity() * 0.5;
  three << 2.0, 0.3, -0.4, 0.3, 1.0, 0.2, -0.4, 0.2, 0.7;
  const AngularCentralGaussian<2> circle(two);
  const AngularCentralGaussian<3> sphere(three);
  const int n = 400;
  double sum = 0;
  for (int i = 0; i < n; ++i) {
    const double angle = 2 * pi * i / n;
    sum += sheafnn::rotation::pdf(circle, Column<double, 2>(std::cos(angle), std::sin(angle))) / n;
  }
  CHECK(std::abs(sum - 1) <= 64 * epsilon);
  // ∫ over longitude (periodic) and latitude, and the second moments of the density against the moments of samples.
  sum = 0;
  Column<double, 3> second = Column<double, 3>::Zero();
  for (int i = 0; i < n; ++i) {
    // The midpoint rule in z ∈ [−1, 1]; Simpson-like accuracy from the substitution z = (3s − s³)/2.
    const double s = -1 + (i + 0.5) * 2 / n;
    const double z = s * (3 - s * s) / 2;
    const double weight = 1.5 * (1 - s * s) / n / n;
    for (int j = 0; j < n; ++j) {
      const double angle = 2 * pi * j / n;
      const double r = std::sqrt(1 - z * z);
      const Column<double, 3> x(r * std::cos(angle), r * std::sin(angle), z);
      const double f = sheafnn::rotation::pdf(sphere, x) * weight;
      sum += f;
      second += f * x.cwiseAbs2();
    }
  }
  // The midpoint rule's error, h²/24 times the change of the integrand's derivative over [−1, 1].
  CHECK(std::abs(sum - 1) <= 20.0 / (n * n));
  Mean squares[3];
  Mean product;
  for (std::uint32_t id = 0; id < 20000; ++id) {
    const Column<double, 3> x = sheafnn::rotation::sample(sphere, Stream{.seed = 39}, id);
    for (int i = 0; i < 3; ++i) squares[i].add(x(i) * x(i));
    product.add(x(0));
    if (id < 100) CHECK(std::abs(x.norm() - 1) <= 4 * epsilon);
  }
  for (int i = 0; i < 3; ++i) CHECK(squares[i].standard_errors_from(second(i)) <= allowed_standard_errors);
  CHECK(product.standard_errors_from(0) <= allowed_standard_errors);
}

TEST_CASE("a Cayley distribution of dimension 16") {
  const CayleyDistribution<16> distribution = centred<16>(0.8);
  Mean log_density;
  for (std::uint32_t id = 0; id < 500; ++id) {
    log_density.add(
        sheafnn::rotation::logpdf(distribution, sheafnn::rotation::sample(distribution, Stream{.seed = 40}, id)));
  }
  CHECK(log_density.standard_errors_from(sheafnn::rotation::kl_to_uniform(distribution)) <= allowed_standard_errors);
}

TEST_CASE("parameters outside their range are refused") {
  const SquareMatrix<double, 3> identity = SquareMatrix<double, 3>::Identity();
  const auto cayley = [](const SquareMatrix<double, 3>& m, double kappa) { CayleyDistribution<3>(m, kappa); };
  CHECK_NOTHROW(cayley(identity, 0.0));
  CHECK_THROWS_WITH_AS(cayley(identity, 1.0),
                       "CayleyDistribution: concentration: 1 is not allowed; must be in [0, 1)",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(cayley(identity, -0.1),
                       "CayleyDistribution: concentration: -0.1 is not allowed; must be in [0, 1)",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(cayley(identity, std::nan("")),
                       "CayleyDistribution: concentration: nan is not allowed; must be in [0, 1)",
                       std::invalid_argument);
  SquareMatrix<double, 3> m = identity;
  m(2, 2) = -1;
  CHECK_THROWS_WITH_AS(cayley(m, 0.5),
                       "CayleyDistribution: location: a matrix with determinant -1 is not allowed; a rotation has "
                       "determinant +1",
                       std::invalid_argument);
  m(2, 2) = 1.5;
  CHECK_THROWS_WITH_AS(cayley(m, 0.5), doctest::Contains("a matrix R with |RᵀR - I| = 1.25"),
                       std::invalid_argument);
  m(2, 2) = 1 + 1e-9;
  CHECK_NOTHROW(cayley(m, 0.5));
  m(2, 2) = std::nan("");
  CHECK_THROWS_WITH_AS(cayley(m, 0.5), doctest::Contains("location(2, 2): nan"), std::invalid_argument);
  CHECK_THROWS_AS(static_cast<void>(sheafnn::rotation::logpdf(centred<3>(0.5), m)), std::invalid_argument);

  CHECK_THROWS_AS(WrappedCauchy<>(0.0, 1.0), std::invalid_argument);
  CHECK_THROWS_AS(WrappedCauchy<>(0.0, -0.1), std::invalid_argument);
  CHECK_THROWS_AS(WrappedCauchy<>(std::nan(""), 0.5), std::invalid_argument);
  CHECK_THROWS_AS(static_cast<void>(sheafnn::rotation::pdf(WrappedCauchy<>(0.0, 0.5), INFINITY)),
                  std::invalid_argument);
  CHECK_THROWS_AS(static_cast<void>(sheafnn::rotation::cayley_quaternions(1.0)), std::invalid_argument);

  const auto acg = [](const SquareMatrix<double, 3>& lambda) { AngularCentralGaussian<3>{lambda}; };
  SquareMatrix<double, 3> lambda = identity;
  lambda(1, 1) = -1;
  CHECK_THROWS_WITH_AS(
      acg(lambda),
      "AngularCentralGaussian: covariance: a matrix with Cholesky pivot -1 in row 1 is not allowed; "
      "must be positive definite",
      std::invalid_argument);
  lambda(1, 1) = 1;
  lambda(0, 2) = 0.5;
  CHECK_THROWS_WITH_AS(acg(lambda), doctest::Contains("must be symmetric"), std::invalid_argument);
  for (const double scale : {1e-151, 1e151}) {
    CHECK_THROWS_WITH_AS(acg(scale * identity), doctest::Contains("the scale of Λ has no effect"), std::invalid_argument);
  }
  for (const double scale : {1e-150, 1e150}) {
    const AngularCentralGaussian<3> uniform{SquareMatrix<double, 3>(scale * identity)};
    CHECK(std::abs(sheafnn::rotation::pdf(uniform, Column<double, 3>(0, 1, 0)) - 1) <= 1e-12);
    CHECK(std::abs(sheafnn::rotation::sample(uniform, sheafnn::Stream{.seed = 5}, 0).norm() - 1) <= 1e-15);
  }
  CHECK_THROWS_AS(static_cast<void>(
                      sheafnn::rotation::pdf(AngularCentralGaussian<3>(identity), Column<double, 3>(1, 1, 0))),
                  std::invalid_argument);
}

}  // namespace test_distributions
