/// \file
/// The matrix Möbius map: inverse, identities, derivative in κ and its two forms, and the parameters where the
/// definition through Cayley transforms breaks down.
#include <doctest/doctest.h>

#include <cmath>
#include <random>

#include "rotation_checks.hpp"
#include "sheafnn/rotation/cayley_distribution.hpp"
#include "sheafnn/rotation/cayley_transform.hpp"
#include "sheafnn/rotation/haar.hpp"
#include "sheafnn/rotation/inverse_cayley_transform.hpp"
#include "sheafnn/rotation/moebius.hpp"
#include "sheafnn/rotation/operations.hpp"

namespace test_moebius {
namespace {

using namespace rotation_checks;
using sheafnn::SquareMatrix;
using sheafnn::Stream;

template <int N>
void check_map() {
  CAPTURE(N);
  const Stream stream{.seed = 21};
  const SquareMatrix<double, N> identity = SquareMatrix<double, N>::Identity();
  for (const double kappa : {0.0, 1e-6, 0.3, 0.7, 0.95}) {
    CAPTURE(kappa);
    const double condition = 1 / (1 - kappa);
    const double bound = 16 * N * epsilon * condition;
    for (std::uint32_t id = 0; id < 4; ++id) {
      const SquareMatrix<double, N> u = sheafnn::rotation::haar_rotation<double, N>(stream, id);
      const SquareMatrix<double, N> y = sheafnn::rotation::moebius<double, N>(u, kappa);
      CHECK(sheafnn::rotation::orthogonality_defect<double, N>(y) <= bound);
      CHECK((sheafnn::rotation::moebius_inverse<double, N>(y, kappa) - u).norm() <= bound * condition);
      if constexpr (N <= 3) {
        // Its definition C(C⁻¹(U)/γ); C⁻¹(U) grows as 1 over the distance of U's eigenvalues from −1.
        const double gamma = (1 + kappa) / (1 - kappa);
        const SquareMatrix<double, N> x = sheafnn::rotation::inverse_cayley_transform<double, N>(u);
        const SquareMatrix<double, N> defined = sheafnn::rotation::cayley_transform<double, N>(x / gamma);
        CHECK((defined - y).norm() <= bound * (1 + x.squaredNorm()));
      }
      // log det(I + κU) = N log(1 − κ²) − log det(I − κY₀).
      const double left = std::log(sheafnn::detail::pivoted_determinant<double, N>(identity + kappa * u));
      const double right = N * std::log1p(-kappa * kappa) -
                           std::log(sheafnn::detail::pivoted_determinant<double, N>(identity - kappa * y));
      CHECK(std::abs(left - right) <= N * bound * condition);

      // Both forms of the derivative; central differences have the third derivative 6 (1 − κ²)/(1 + κλ)⁴ of each
      // eigenvalue, λ → −1.
      const SquareMatrix<double, N> slope = sheafnn::rotation::moebius_derivative<double, N>(y, kappa);
      const SquareMatrix<double, N> direct = sheafnn::rotation::moebius_derivative_from_noise<double, N>(u, y, kappa);
      CHECK((slope - direct).norm() <= bound * condition);
      double moving = kappa;
      for (int k = 0; k < N * N; ++k) {
        const double expected =
            central_difference(moving, [&] { return sheafnn::rotation::moebius<double, N>(u, moving).data()[k]; });
        CHECK(std::abs(direct.data()[k] - expected) <= difference_bound * condition * condition * condition);
      }
    }
  }
}

template <int N>
void check_limits() {
  CAPTURE(N);
  const Stream stream{.seed = 22};
  // U with eigenvalue −1 (twice), and one very near it.
  SquareMatrix<double, N> half_turn = SquareMatrix<double, N>::Identity();
  half_turn(0, 0) = half_turn(1, 1) = -1;
  SquareMatrix<double, N> near = half_turn;
  near(0, 0) = near(1, 1) = -std::cos(1e-9);
  near(1, 0) = std::sin(1e-9);
  near(0, 1) = -std::sin(1e-9);
  for (const double kappa : {0.0, 1e-300, 0.5, 0.999, 1 - 1e-12, 1 - epsilon / 2}) {
    CAPTURE(kappa);
    // −1 and 1 are fixed points of the map.
    const SquareMatrix<double, N> y = sheafnn::rotation::moebius<double, N>(half_turn, kappa);
    CHECK((y - half_turn).norm() <= N * epsilon);
    CHECK(sheafnn::rotation::moebius_derivative<double, N>(y, kappa).norm() <= 4 * N * epsilon / (1 - kappa));
    CHECK(sheafnn::rotation::moebius_derivative_from_noise<double, N>(half_turn, y, kappa).norm() <= 4 * N * epsilon);
    const double there = sheafnn::rotation::cayley_logpdf<double, N>(y, kappa);
    CHECK(std::isfinite(there));
    CHECK(std::isfinite(sheafnn::rotation::cayley_kl<N>(kappa)));
    CHECK(std::isfinite(sheafnn::rotation::cayley_kl_derivative<N>(kappa)));
    CHECK(sheafnn::rotation::moebius<double, N>(near, kappa).allFinite());
    for (std::uint32_t id = 0; id < 20; ++id) {
      const SquareMatrix<double, N> u = sheafnn::rotation::haar_rotation<double, N>(stream, id);
      const SquareMatrix<double, N> sample = sheafnn::rotation::moebius<double, N>(u, kappa);
      CHECK(sample.allFinite());
      CHECK(sheafnn::rotation::moebius_derivative_from_noise<double, N>(u, sample, kappa).allFinite());
      CHECK(std::isfinite(sheafnn::rotation::cayley_logpdf<double, N>(sample, kappa)));
      if (kappa == 0) CHECK(sample == u);
      // These U keep their eigenvalues away from −1: the distance of 1 − κ from 0 shrinks Y₀ − I by about as much.
      if (kappa > 1 - 1e-11) CHECK((sample - SquareMatrix<double, N>::Identity()).norm() <= 1e-6);
    }
  }
  const SquareMatrix<float, N> half_turn_float = half_turn.template cast<float>();
  const float kappa = 1 - std::numeric_limits<float>::epsilon() / 2;
  const SquareMatrix<float, N> y = sheafnn::rotation::moebius<float, N>(half_turn_float, kappa);
  CHECK((y - half_turn_float).norm() <= static_cast<float>(N) * std::numeric_limits<float>::epsilon());
  CHECK(std::isfinite(sheafnn::rotation::cayley_logpdf<float, N>(half_turn_float, kappa)));
  CHECK(std::isfinite(sheafnn::rotation::cayley_kl<N>(kappa)));
}

/// d⟨cotangent, Y⟩ along κ and every entry of M, taken as a free matrix.
template <int N>
void check_sample_derivative() {
  CAPTURE(N);
  const Stream stream{.seed = 23};
  std::mt19937 engine(800 + N);
  for (const double start : {0.0, 0.4, 0.9}) {
    CAPTURE(start);
    SquareMatrix<double, N> location = sheafnn::rotation::haar_rotation<double, N>(stream, 1u);
    const SquareMatrix<double, N> u = sheafnn::rotation::haar_rotation<double, N>(stream, 2u);
    const SquareMatrix<double, N> cotangent = random_matrix<N, N>(engine);
    const sheafnn::rotation::CayleyDistribution<N> distribution(location, start);
    const auto gradient = sheafnn::rotation::sample_backward(distribution, u, cotangent);
    CHECK(sheafnn::rotation::sample_from_uniform(distribution, u) ==
          sheafnn::rotation::sample(distribution, stream, 2));
    double kappa = start;
    const auto objective = [&] {
      return frobenius(cotangent, sheafnn::math::multiply(sheafnn::rotation::moebius<double, N>(u, kappa), location));
    };
    CHECK(std::abs(objective() - frobenius(cotangent, sheafnn::rotation::sample(distribution, stream, 2))) <=
          16 * epsilon);
    const double bound = difference_bound * cotangent.norm() / std::pow(1 - start, 3);
    CHECK(std::abs(gradient.concentration - central_difference(kappa, objective)) <= bound);
    for (int k = 0; k < N * N; ++k) {
      CHECK(std::abs(gradient.location.data()[k] - central_difference(location.data()[k], objective)) <= bound);
    }
  }
}

}  // namespace

TEST_CASE("Möbius map: definition, inverse, determinants, derivative in κ") {
  check_map<2>();
  check_map<3>();
  check_map<5>();
}

TEST_CASE("κ → 0, κ → 1 and eigenvalue −1 stay finite") {
  check_limits<2>();
  check_limits<3>();
  check_limits<6>();
}

TEST_CASE("reparametrised samples: derivatives along κ and every entry of M") {
  check_sample_derivative<2>();
  check_sample_derivative<3>();
  check_sample_derivative<4>();
  check_sample_derivative<5>();
}

}  // namespace test_moebius
