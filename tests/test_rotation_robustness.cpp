/// \file
/// Distributions of rotations at the ends of their ranges: κ next to 1, antipodal rotations, drifted matrices,
/// dimension 16.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "rotation_checks.hpp"
#include "sheafnn/rotation.hpp"

namespace test_rotation_robustness {
namespace {

using namespace rotation_checks;
using sheafnn::rotation::CayleyDistribution;
using sheafnn::SquareMatrix;
using sheafnn::Stream;

constexpr double pi = 3.14159265358979323846;

/// Turn by 2 atan(tangent) in the plane of the first two axes, from the tangent of half the angle: exact for tiny
/// ones.
template <class Scalar, int N>
SquareMatrix<Scalar, N> half_turn_tangent(double tangent) {
  SquareMatrix<double, N> r = SquareMatrix<double, N>::Identity();
  const double scale = 1 / (1 + tangent * tangent);
  r(0, 0) = r(1, 1) = (1 - tangent * tangent) * scale;
  r(1, 0) = 2 * tangent * scale;
  r(0, 1) = -r(1, 0);
  return r.template cast<Scalar>();
}

/// The density next to a location of I, where rounded entries still hold the angle: turns by multiples of 1 − κ.
template <class Scalar, int N>
void check_concentrated(double rest) {
  CAPTURE(N);
  CAPTURE(rest);
  const double unit = static_cast<double>(std::numeric_limits<Scalar>::epsilon());
  const Scalar kappa = static_cast<Scalar>(1 - rest);
  const double gap = static_cast<double>(Scalar(1) - kappa);  // exact
  const CayleyDistribution<N, Scalar> distribution(SquareMatrix<Scalar, N>::Identity(), kappa);
  for (const double multiple : {0.0, 0.5, 1.0, 30.0}) {
    CAPTURE(multiple);
    const SquareMatrix<Scalar, N> p = half_turn_tangent<Scalar, N>(multiple * gap / 2);
    // det(I − κY) = (1 − κ)^{N−2} (1 + κ² − 2κ cos r), and the entry sin r is exact to rounding.
    const double sine = static_cast<double>(p(1, 0));
    const double cosine = std::copysign(std::sqrt((1 - sine) * (1 + sine)), static_cast<double>(p(0, 0)));
    const double squared =
        cosine > 0 ? sine * sine / (2 * (1 + cosine)) : (1 - cosine) / 2;  // sin² of half the angle
    const double k = static_cast<double>(kappa);
    const double expected = (N - 1) * (0.5 * N * std::log(gap * (1 + k)) - (N - 2) * std::log(gap) -
                                       std::log(gap * gap + 4 * k * squared));
    const double value = static_cast<double>(sheafnn::rotation::logpdf(distribution, p));
    // Rounded diagonal entries leave out up to θ²/2 or ε, of pivots that are at least 1 − κ.
    const double diagonal = std::min(multiple * multiple * gap, unit / gap);
    CHECK(std::abs(value - expected) <=
          16 * N * unit * (1 + std::abs(expected) + multiple * multiple) + 4 * (N - 1) * diagonal);
    CHECK(std::isfinite(static_cast<double>(sheafnn::rotation::logpdf_gradient(distribution, p).concentration)));
  }
}

/// Sampling, moments and divergences next to κ = 1.
template <class Scalar, int N>
void check_limit(double rest) {
  CAPTURE(N);
  CAPTURE(rest);
  const double unit = static_cast<double>(std::numeric_limits<Scalar>::epsilon());
  const Scalar kappa = static_cast<Scalar>(1 - rest);
  const SquareMatrix<Scalar, N> m = sheafnn::rotation::haar_rotation<Scalar, N>(Stream{.seed = 701}, 0u);
  const CayleyDistribution<N, Scalar> distribution(m, kappa);
  std::vector<SquareMatrix<Scalar, N>> batch(100);
  sheafnn::rotation::sample_many(distribution, Stream{.seed = 702}, 0, batch);
  for (std::uint32_t id = 0; id < 100; ++id) {
    const SquareMatrix<Scalar, N> y = sheafnn::rotation::sample(distribution, Stream{.seed = 702}, id);
    CHECK(static_cast<double>(sheafnn::rotation::orthogonality_defect<Scalar, N>(y)) <= 16 * N * unit);
    CHECK(static_cast<double>(sheafnn::rotation::orthogonality_defect<Scalar, N>(batch[id])) <= 16 * N * unit);
    CHECK(std::isfinite(static_cast<double>(sheafnn::rotation::logpdf(distribution, y))));
    const auto gradient = sheafnn::rotation::logpdf_gradient(distribution, y);
    CHECK(std::isfinite(static_cast<double>(gradient.concentration)));
    CHECK(gradient.location.allFinite());
    CHECK(gradient.argument.allFinite());
  }
  CHECK(std::isfinite(static_cast<double>(sheafnn::rotation::kl_to_uniform(distribution))));
  CHECK(sheafnn::rotation::kl_divergence(distribution, distribution) == 0);
  const CayleyDistribution<N, Scalar> wide(m, Scalar(0.25));
  CHECK(std::isfinite(static_cast<double>(sheafnn::rotation::kl_divergence(wide, distribution))));
  CHECK(sheafnn::rotation::kl_divergence(wide, distribution) > 0);
  if constexpr (N <= 3) {
    const Scalar median = sheafnn::rotation::angle_quantile(distribution, Scalar(0.75));
    CHECK(static_cast<double>(median) <= 10 * rest);
    CHECK(std::abs(static_cast<double>(sheafnn::rotation::angle_cdf(distribution, median)) - 0.75) <= 16 * unit);
  }
}

template <class Scalar>
void check_limits(double rest) {
  check_concentrated<Scalar, 2>(rest);
  check_concentrated<Scalar, 3>(rest);
  check_concentrated<Scalar, 5>(rest);
  check_concentrated<Scalar, 16>(rest);
  check_limit<Scalar, 2>(rest);
  check_limit<Scalar, 3>(rest);
  check_limit<Scalar, 4>(rest);
  check_limit<Scalar, 5>(rest);
  check_limit<Scalar, 8>(rest);
  check_limit<Scalar, 16>(rest);
}

/// At a turn by π − δ: Cayley densities are smooth there, León's is (sin(δ/2))^{2k}.
template <class Scalar>
void check_antipodal() {
  const double unit = static_cast<double>(std::numeric_limits<Scalar>::epsilon());
  for (const double delta : {0.5, 1e-2, 1e-3}) {
    CAPTURE(delta);
    const SquareMatrix<Scalar, 3> p = half_turn_tangent<Scalar, 3>(1 / std::tan(delta / 2));
    const SquareMatrix<Scalar, 3> identity = SquareMatrix<Scalar, 3>::Identity();
    const double k = 1.5;
    const double expected =
        std::log(static_cast<double>(
            sheafnn::rotation::pdf(sheafnn::rotation::LeonCayleyDistribution<3, Scalar>(identity, Scalar(k)),
                                   identity))) +
        2 * k * std::log(std::sin(delta / 2));
    const double value = static_cast<double>(
        sheafnn::rotation::logpdf(sheafnn::rotation::LeonCayleyDistribution<3, Scalar>(identity, Scalar(k)), p));
    CHECK(std::abs(value - expected) <= 32 * k * unit / delta + 16 * unit * std::abs(expected));
    const double cayley =
        static_cast<double>(sheafnn::rotation::logpdf(CayleyDistribution<3, Scalar>(identity, Scalar(0.75)), p));
    const double square = 0.0625 + 3 * std::pow(std::cos(delta / 2), 2);
    CHECK(std::abs(cayley - std::log(0.4375 * 1.75 * 1.75 / (square * square))) <= 64 * unit);
  }
  SquareMatrix<Scalar, 3> half_turn = SquareMatrix<Scalar, 3>::Identity();
  half_turn(0, 0) = half_turn(1, 1) = -1;
  const SquareMatrix<Scalar, 3> identity = SquareMatrix<Scalar, 3>::Identity();
  CHECK(sheafnn::rotation::pdf(sheafnn::rotation::LeonCayleyDistribution<3, Scalar>(identity, Scalar(2)),
                               half_turn) == 0);
  CHECK(sheafnn::rotation::logpdf(sheafnn::rotation::LeonCayleyDistribution<3, Scalar>(identity, Scalar(0)),
                                  half_turn) == 0);
  CHECK_THROWS_AS(static_cast<void>(sheafnn::rotation::logpdf_gradient(
                      sheafnn::rotation::LeonCayleyDistribution<3, Scalar>(identity, Scalar(2)), half_turn)),
                  std::invalid_argument);
  CHECK(std::isfinite(
      sheafnn::rotation::logpdf(sheafnn::rotation::MatrixFisherDistribution<3, Scalar>(identity, Scalar(3)),
                                half_turn)));
  const auto gradient =
      sheafnn::rotation::logpdf_gradient(CayleyDistribution<3, Scalar>(identity, Scalar(0.999)), half_turn);
  CHECK(gradient.argument.allFinite());
  CHECK(std::isfinite(gradient.concentration));
}

template <class Scalar, int N>
void check_drift() {
  CAPTURE(N);
  const Scalar unit = std::numeric_limits<Scalar>::epsilon();
  const SquareMatrix<Scalar, N> m = sheafnn::rotation::haar_rotation<Scalar, N>(Stream{.seed = 703}, 0u);
  std::mt19937 engine(704);
  const SquareMatrix<Scalar, N> noise = random_matrix<N, N>(engine).template cast<Scalar>();
  const SquareMatrix<Scalar, N> drifted = m + sheafnn::rotation::rotation_tolerance<Scalar>() / 8 * noise;
  CHECK(sheafnn::rotation::orthogonality_defect<Scalar, N>(drifted) > Scalar(8 * N) * unit);
  const SquareMatrix<Scalar, N> cleaned = sheafnn::rotation::orthonormalised<Scalar, N>("m", drifted);
  CHECK(sheafnn::rotation::orthogonality_defect<Scalar, N>(cleaned) <= Scalar(8 * N) * unit);
  // It is the nearest rotation, and what is clean stays as it is.
  CHECK((cleaned - sheafnn::rotation::nearest_rotation<Scalar, N>(drifted)).norm() <= Scalar(16 * N) * unit);
  CHECK(sheafnn::rotation::orthonormalised<Scalar, N>("m", cleaned) == cleaned);
  const CayleyDistribution<N, Scalar> distribution(drifted, Scalar(0.99));
  CHECK(distribution.location() == cleaned);
  // Neither way of drifting changes the log density of the clean rotation, which varies over angles of 0.01.
  const Scalar exact = sheafnn::rotation::logpdf(distribution, cleaned);
  CHECK(std::abs(sheafnn::rotation::logpdf(distribution, drifted) - exact) <= Scalar(64 * N * N * 100) * unit);
  CHECK(sheafnn::rotation::LeonCayleyDistribution<N, Scalar>(drifted, Scalar(2)).location() == cleaned);
  SquareMatrix<Scalar, N> far = m;
  far(0, 0) += Scalar(4) * sheafnn::rotation::rotation_tolerance<Scalar>();
  far(1, 1) -= Scalar(4) * sheafnn::rotation::rotation_tolerance<Scalar>();
  if (sheafnn::rotation::orthogonality_defect<Scalar, N>(far) > sheafnn::rotation::rotation_tolerance<Scalar>()) {
    CHECK_THROWS_WITH_AS((CayleyDistribution<N, Scalar>(far, Scalar(0.5))),
                         doctest::Contains("a rotation is orthogonal within"), std::invalid_argument);
  }
}

}  // namespace

TEST_CASE("concentrations from 0 to 1 - 1e-15 in double, to 1 - 1e-7 in float") {
  for (const double rest : {1.0, 0.5, 1e-3, 1e-8, 1e-15}) check_limits<double>(rest);
  for (const double rest : {1.0, 0.5, 1e-3, 1e-7}) check_limits<float>(rest);
}

TEST_CASE("batches of concentrated samples in single precision are rotations") {
  const auto check = []<int N>(std::integral_constant<int, N>) {
    for (const float concentration : {0.95F, 0.99F, 0.9999F, 1 - 1e-6F}) {
      CAPTURE(concentration);
      const CayleyDistribution<N, float> d(SquareMatrix<float, N>::Identity(), concentration);
      std::vector<SquareMatrix<float, N>> samples(100000);
      sheafnn::rotation::sample_many(d, Stream{.seed = 1}, 0, samples);
      float worst = 0;
      for (const auto& r : samples) worst = std::max(worst, sheafnn::rotation::orthogonality_defect<float, N>(r));
      CHECK(worst <= 4 * N * std::numeric_limits<float>::epsilon());
    }
  };
  check(std::integral_constant<int, 4>{});
  check(std::integral_constant<int, 5>{});
}

TEST_CASE("rotations by nearly pi") {
  check_antipodal<double>();
  check_antipodal<float>();
}

TEST_CASE("drifted rotations are orthonormalised, others refused") {
  check_drift<double, 2>();
  check_drift<double, 3>();
  check_drift<double, 8>();
  check_drift<double, 16>();
  check_drift<float, 3>();
  check_drift<float, 16>();
}

TEST_CASE("very concentrated fits") {
  for (const double rest : {1e-4, 1e-8}) {
    CAPTURE(rest);
    const CayleyDistribution<3> truth(sheafnn::rotation::haar_rotation<double, 3>(Stream{.seed = 705}, 0u), 1 - rest);
    std::vector<SquareMatrix<double, 3>> samples(200);
    sheafnn::rotation::sample_many(truth, Stream{.seed = 706}, 0, samples);
    const auto fit = sheafnn::rotation::fit<CayleyDistribution<3>>(samples);
    CHECK(std::abs(fit.distribution.concentration() - truth.concentration()) <=
          allowed_standard_errors * fit.concentration_error);
    CHECK((fit.distribution.location() - truth.location()).norm() <=
          2 * allowed_standard_errors * fit.location_error);
    CHECK(fit.concentration_error <= rest);
  }
  for (const double kappa : {1e3, 1e8}) {
    CAPTURE(kappa);
    const sheafnn::rotation::MatrixFisherDistribution<3> truth(
        sheafnn::rotation::haar_rotation<double, 3>(Stream{.seed = 705}, 0u), kappa);
    std::vector<SquareMatrix<double, 3>> samples(200);
    sheafnn::rotation::sample_many(truth, Stream{.seed = 707}, 0, samples);
    const auto fit = sheafnn::rotation::fit<sheafnn::rotation::MatrixFisherDistribution<3>>(samples);
    CHECK(std::abs(fit.distribution.singular_values().sum() / 3 - kappa) <=
          allowed_standard_errors * fit.concentration_error);
    CHECK(std::abs(sheafnn::rotation::angle_cdf(truth, sheafnn::rotation::angle_quantile(truth, 0.5)) - 0.5) <= 1e-12);
    const sheafnn::rotation::LeonCayleyDistribution<3> leon(truth.location(), kappa);
    sheafnn::rotation::sample_many(leon, Stream{.seed = 708}, 0, samples);
    const auto leon_fit = sheafnn::rotation::fit<sheafnn::rotation::LeonCayleyDistribution<3>>(samples);
    CHECK(std::abs(leon_fit.distribution.concentration() - kappa) <=
          allowed_standard_errors * leon_fit.concentration_error);
  }
}

TEST_CASE("matrix Fisher: an angle has the probability below that it was asked for, from 1e-300 to 1 - 1e-12") {
  for (const double scale : {1e-8, 1.0, 1e3, 1e8}) {
    for (const double smallest : {0.5, -0.9}) {
      const sheafnn::rotation::MatrixFisherDistribution<3> distribution(
          SquareMatrix<double, 3>(scale * Eigen::Vector3d(3, 1, smallest).asDiagonal().toDenseMatrix()));
      for (const double p : {1e-300, 1e-30, 1e-8, 0.3, 0.999, 1 - 1e-8, 1 - 1e-12}) {
        CAPTURE(scale);
        CAPTURE(smallest);
        CAPTURE(p);
        const double back =
            sheafnn::rotation::angle_cdf(distribution, sheafnn::rotation::angle_quantile(distribution, p));
        CHECK(std::abs(back - p) <= 1e-13 * p);
      }
    }
  }
}

TEST_CASE("Leon: an angle has the probability below that it was asked for; the density is the slope, for k to 1e40") {
  for (const double k : {0.0, 1e-18, 1e-8, 0.5, 30.0, 1e8, 1e20, 1e40}) {
    const sheafnn::rotation::LeonCayleyDistribution<2> circle(SquareMatrix<double, 2>::Identity(), k);
    const sheafnn::rotation::LeonCayleyDistribution<3> sphere(SquareMatrix<double, 3>::Identity(), k);
    for (const double p : {1e-300, 1e-167, 1e-30, 1e-20, 1e-8, 0.3, 0.999, 1 - 1e-10, 1 - 1e-15}) {
      CAPTURE(k);
      CAPTURE(p);
      const double back = sheafnn::rotation::angle_cdf(sphere, sheafnn::rotation::angle_quantile(sphere, p));
      CHECK(std::abs(back - p) <= 1e-13 * p);
      CHECK(std::abs(sheafnn::rotation::angle_cdf(circle, sheafnn::rotation::angle_quantile(circle, p)) - p) <= 1e-15);
    }
    const double r = sheafnn::rotation::angle_quantile(sphere, 0.4), h = 1e-4 * r;
    const double slope =
        (sheafnn::rotation::angle_cdf(sphere, r + h) - sheafnn::rotation::angle_cdf(sphere, r - h)) / (2 * h);
    CHECK(std::abs(sheafnn::rotation::angle_pdf(sphere, r) / slope - 1) <= 1e-7);
  }
}

/// From mpmath, 60 digits.
TEST_CASE("ratio of Bessel functions, Leon's normaliser and divergences keep their digits at the ends of their ranges") {
  const auto close = [](double value, double exact, double ulps = 16) {
    CAPTURE(value);
    CAPTURE(exact);
    CHECK(std::abs(value - exact) <= ulps * std::numeric_limits<double>::epsilon() * std::abs(exact));
  };
  struct Ratio {
    double x, rest, slope;
  };
  for (const Ratio& of : {Ratio{20, 0.0253294921101928741, 0.0012838756553350688475},
                          Ratio{35, 0.014390809068731686591, 0.00041426015377444550279},
                          Ratio{1000, 0.00050012512519571980108, 5.0025037578328755973e-7},
                          Ratio{1e5, 5.0000125001250019532e-6, 5.0000250003750078127e-11}}) {
    const sheafnn::detail::ScaledBessel bessel(of.x);
    close(bessel.ratio_rest, of.rest);
    close(bessel.ratio_slope, of.slope);
  }
  const auto small = sheafnn::detail::leon_normaliser<3>(1e-9), large = sheafnn::detail::leon_normaliser<3>(1e9);
  close(small.slope, -2.3862943568300224934);
  close(large.slope, -1.499999998875000001e-9);
  close(large.curvature, 1.499999997750000003e-18);
  const auto leon = [](double k) {
    return sheafnn::rotation::kl_to_uniform(
        sheafnn::rotation::LeonCayleyDistribution<3>(SquareMatrix<double, 3>::Identity(), k));
  };
  close(leon(1e-9), 2.1449340613733324365e-18);
  close(leon(0.5), 0.21686166062423122279);
  close(leon(1e9), 30.15726370059431682);
  const auto fisher = [](double k) {
    return sheafnn::rotation::MatrixFisherDistribution<3>(SquareMatrix<double, 3>::Identity(), k);
  };
  close(sheafnn::rotation::kl_to_uniform(fisher(1e-9)), 0.5e-18 * (1 + 2e-9 / 3), 64);
  close(sheafnn::rotation::kl_to_uniform(
            sheafnn::rotation::MatrixFisherDistribution<2>(SquareMatrix<double, 2>::Identity(), 1e-6)),
        9.999999999992499095e-13, 64);
  close(fisher(1e12).normaliser().log_scaled, -44.098338158497170828);
}

TEST_CASE("log densities of concentrated distributions read small angles off the diagonal") {
  for (const double k : {1e6, 1e12}) {
    CAPTURE(k);
    const double tangent = 0.75 / std::sqrt(k);  // of half the angle
    const SquareMatrix<double, 3> p = half_turn_tangent<double, 3>(tangent), identity = p.Identity();
    const double bound = 64 * std::numeric_limits<double>::epsilon() * std::sqrt(k);
    const sheafnn::rotation::MatrixFisherDistribution<3> fisher(identity, k);
    // tr P − 3 = −4 sin² of half the angle.
    CHECK(std::abs(sheafnn::rotation::logpdf(fisher, p) - sheafnn::rotation::logpdf(fisher, identity) +
                   4 * k * tangent * tangent / (1 + tangent * tangent)) <= bound);
    const sheafnn::rotation::LeonCayleyDistribution<3> leon(identity, k);
    CHECK(std::abs(sheafnn::rotation::logpdf(leon, p) - sheafnn::rotation::logpdf(leon, identity) +
                   k * std::log1p(tangent * tangent)) <= bound);
  }
}

TEST_CASE("Leon: samples of any concentration are rotations, by angles of about 1/sqrt(k)") {
  const SquareMatrix<double, 3> identity = SquareMatrix<double, 3>::Identity();
  for (const double k : {0.0, 1.0, 1e7, 9e7, 2e8, 1e9, 1e12, 1e20, 1e50, 1e150}) {
    CAPTURE(k);
    const sheafnn::rotation::LeonCayleyDistribution<3> distribution(identity, k);
    double squared = 0;
    for (std::uint32_t i = 0; i < 500; ++i) {
      const SquareMatrix<double, 3> p = sheafnn::rotation::sample(distribution, Stream{.seed = 709}, i);
      REQUIRE(sheafnn::rotation::orthogonality_defect<double, 3>(p) <= 1e-14);
      const double angle = sheafnn::rotation::rotation_angle<double, 3>(p);
      squared += angle * angle / 500;
    }
    // k sin²(r/2) has nearly a gamma distribution of shape 3/2: k E r² = 6, within four standard errors.
    if (k >= 1e7) CHECK(std::abs(k * squared / 6 - 1) <= 4 * std::sqrt(2.0 / 3 / 500));
    // The normal law in the tangent space: KL = log f(M) - 3/2, I_k = 3/(2k²).
    if (k >= 1e7) {
      const double most = sheafnn::rotation::logpdf(distribution, identity);
      CHECK(std::abs(sheafnn::rotation::kl_to_uniform(distribution) - most + 1.5) <= 3 / k + 1e-13);
      CHECK(std::abs(sheafnn::rotation::fisher_information(distribution).concentration * k * k / 1.5 - 1) <=
            3 / k + 1e-14);
    }
  }
}

TEST_CASE("matrix Fisher: the concentrated law, log f(M) = log(8 sqrt(pi)) + 3/2 log k and 1 - r = 1/(2k)") {
  const SquareMatrix<double, 3> identity = SquareMatrix<double, 3>::Identity();
  for (const double k : {1e9, 1e12, 1e15, 1e18, 1e30, 1e100}) {
    CAPTURE(k);
    const sheafnn::rotation::MatrixFisherDistribution<3> distribution(identity, k);
    const double expected = 2.6518064846045357 + 1.5 * std::log(k);
    CHECK(std::abs(sheafnn::rotation::logpdf(distribution, identity) - expected) <= 0.2 / k + 4e-15 * expected);
    CHECK(std::abs(2 * k * distribution.normaliser().rest(0) - 1) <= 1 / k + 1e-14);
  }
}

TEST_CASE("parameters and arguments out of range are refused with their value and limit") {
  const SquareMatrix<double, 3> identity = SquareMatrix<double, 3>::Identity();
  CHECK_THROWS_WITH_AS((sheafnn::rotation::LeonCayleyDistribution<3>(identity, -1.0)),
                       "LeonCayleyDistribution: concentration: -1 is not allowed; must be in [0, 1e150]",
                       std::invalid_argument);
  CHECK_THROWS_AS((sheafnn::rotation::LeonCayleyDistribution<3>(identity, INFINITY)), std::invalid_argument);
  CHECK_THROWS_AS((sheafnn::rotation::MatrixFisherDistribution<3>(identity, -1.0)), std::invalid_argument);
  CHECK_THROWS_AS((sheafnn::rotation::MatrixFisherDistribution<3>(identity * NAN)), std::invalid_argument);
  // The normalisers of larger ones underflow: densities would not be numbers.
  CHECK_THROWS_AS((sheafnn::rotation::MatrixFisherDistribution<3>(identity * 1e151)), std::invalid_argument);
  CHECK_THROWS_AS((sheafnn::rotation::MatrixFisherDistribution<3>(identity, 1e151)), std::invalid_argument);
  const sheafnn::rotation::MatrixFisherDistribution<3> largest(identity, 1e150);
  CHECK(std::isfinite(sheafnn::rotation::logpdf(largest, identity)));
  CHECK(std::isfinite(sheafnn::rotation::kl_to_uniform(largest)));
  const CayleyDistribution<3> cayley(identity, 0.5);
  CHECK_THROWS_WITH_AS(static_cast<void>(sheafnn::rotation::angle_cdf(cayley, -0.1)),
                       "angle_cdf: r: -0.1 is not allowed; must be in [0, pi]", std::invalid_argument);
  CHECK_THROWS_AS(static_cast<void>(sheafnn::rotation::angle_pdf(cayley, pi + 0.1)), std::invalid_argument);
  CHECK_THROWS_AS(static_cast<void>(sheafnn::rotation::angle_quantile(cayley, 1.5)), std::invalid_argument);
  CHECK_THROWS_AS(static_cast<void>(sheafnn::rotation::logpdf(sheafnn::rotation::HaarDistribution<3>(),
                                                              SquareMatrix<double, 3>(2 * identity))),
                  std::invalid_argument);
}

}  // namespace test_rotation_robustness
