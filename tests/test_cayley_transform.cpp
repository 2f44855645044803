/// \file
/// Cayley transform and its inverse: round trips, derivatives, Jacobian, refusals.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>

#include "rotation_checks.hpp"
#include "sheafnn/rotation/cayley_transform.hpp"
#include "sheafnn/rotation/inverse_cayley_transform.hpp"
#include "sheafnn/rotation/operations.hpp"

namespace test_cayley_transform {
namespace {

using namespace rotation_checks;
using sheafnn::rotation::RotationParameters;
using sheafnn::SquareMatrix;

template <int N>
void check_transform() {
  CAPTURE(N);
  constexpr int P = sheafnn::rotation::rotation_parameters<N>;
  std::mt19937 engine(500 + N);
  const RotationParameters<double, N> phi = random_matrix<P, 1>(engine, 2);
  const SquareMatrix<double, N> x = sheafnn::rotation::skew_matrix<double, N>(phi);
  const SquareMatrix<double, N> q = sheafnn::rotation::cayley_transform<double, N>(x);
  // Errors of (P + I)⁻¹ = (I − X)/2 are squared in the way back.
  const double condition = 1 + x.squaredNorm();
  CHECK((sheafnn::rotation::inverse_cayley_transform<double, N>(q) - x).norm() <= 8 * N * epsilon * condition);
  CHECK((x - q + x * q + SquareMatrix<double, N>::Identity()).norm() <= 8 * N * epsilon * (1 + x.norm()));

  // The derivative for any A with small symmetric part, not only for skew-symmetric ones.
  SquareMatrix<double, N> a = x + random_matrix<N, N>(engine, 0.2);
  const SquareMatrix<double, N> cotangent = random_matrix<N, N>(engine);
  const SquareMatrix<double, N> p = sheafnn::rotation::cayley_transform<double, N>(a);
  const SquareMatrix<double, N> a_bar = sheafnn::rotation::cayley_transform_backward<double, N>(a, p, cotangent);
  // ‖(I − A)⁻¹‖ ≤ 1/(1 − N/5), and the third derivative has its fourth power.
  const double bound = difference_bound * cotangent.norm() * 16;
  for (int k = 0; k < N * N; ++k) {
    const double expected = central_difference(a.data()[k], [&] {
      return frobenius(cotangent, sheafnn::rotation::cayley_transform<double, N>(a));
    });
    CHECK(std::abs(a_bar.data()[k] - expected) <= bound);
  }
}

}  // namespace

TEST_CASE("Cayley transform: inverse, derivatives") {
  check_transform<2>();
  check_transform<3>();
  check_transform<4>();
}

/// C of large φ = tan(θ/2) n turns by θ about n; the limit is a half turn. And its derivative along φ.
template <class Scalar>
void check_large_parameters() {
  const Scalar epsilon = std::numeric_limits<Scalar>::epsilon();
  for (const double size : {0.0, 1e-20, 1.0, 1e3, 1e6, 1e19, 3e37}) {
    CAPTURE(size);
    const Scalar length = static_cast<Scalar>(size);
    const auto plane = sheafnn::rotation::cayley_rotation<Scalar, 2>(RotationParameters<Scalar, 2>::Constant(length));
    const Scalar sine = size < 1 ? 2 * length : 2 / (length + 1 / std::max(length, Scalar(1)));
    CHECK(std::abs(plane(1, 0) - sine) <= 4 * epsilon * sine);
    // n = (2, −2, 1)/3 as (x, y, z): φ = (z, −y, x).
    const RotationParameters<Scalar, 3> phi(length / 3, 2 * (length / 3), 2 * (length / 3));
    const SquareMatrix<Scalar, 3> r = sheafnn::rotation::cayley_rotation<Scalar, 3>(phi);
    CHECK((r.transpose() * r - SquareMatrix<Scalar, 3>::Identity()).norm() <= 16 * epsilon);
    CHECK(std::abs((r(2, 1) - r(1, 2)) / 2 - sine * 2 / 3) <= 8 * epsilon * (size < 1 ? sine : Scalar(1)));
    RotationParameters<Scalar, 3> gradient = RotationParameters<Scalar, 3>::Zero();
    SquareMatrix<Scalar, 3> cotangent = SquareMatrix<Scalar, 3>::Zero();
    cotangent(2, 1) = Scalar(0.5);
    cotangent(1, 2) = Scalar(-0.5);  // sin θ n_x, whose derivative along n is 2 n_x (1 − l²)/(1 + l²)² with l = ‖φ‖
    sheafnn::rotation::cayley_rotation_backward<Scalar, 3>(phi, cotangent, gradient);
    const double along = (static_cast<double>(gradient(0)) + 2.0 * static_cast<double>(gradient(1)) +
                          2.0 * static_cast<double>(gradient(2))) / 3;
    const double square = 1 + size * size;
    const double slope = 4.0 / 3 * (1 / square - size * size / square) / square;
    CHECK(std::abs(along - slope) <= 8 * static_cast<double>(epsilon));
  }
}

TEST_CASE("Cayley rotations of large parameters") {
  check_large_parameters<float>();
  check_large_parameters<double>();
}

TEST_CASE("inverse Cayley transform refuses eigenvalue -1 and non-finite entries") {
  SquareMatrix<double, 3> p = SquareMatrix<double, 3>::Identity();
  p(0, 0) = p(1, 1) = -1;
  CHECK_THROWS_AS(static_cast<void>(sheafnn::rotation::inverse_cayley_transform<double, 3>(p)), std::invalid_argument);
  try {
    static_cast<void>(sheafnn::rotation::inverse_cayley_transform<double, 3>(p));
  } catch (const std::invalid_argument& error) {
    CHECK(std::string(error.what()).find("a matrix with eigenvalue -1") != std::string::npos);
  }
  p(0, 2) = std::nan("");
  CHECK_THROWS_WITH_AS(static_cast<void>(sheafnn::rotation::inverse_cayley_transform<double, 3>(p)),
                       "inverse_cayley_transform: p(0, 2): nan is not allowed; entries must be finite",
                       std::invalid_argument);
}

}  // namespace test_cayley_transform
