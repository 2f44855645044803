/// \file
/// Logarithm of rotations: inverse of exp everywhere, its derivative against central differences and against the
/// Jacobian of exp, the adjoint, and what happens at the cut locus.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <stdexcept>

#include "rotation_checks.hpp"
#include "sheafnn/rotation/exponential.hpp"
#include "sheafnn/rotation/exponential_jacobian.hpp"
#include "sheafnn/rotation/haar.hpp"
#include "sheafnn/rotation/rotation_log.hpp"

namespace test_rotation_log {
namespace {

using namespace rotation_checks;
using sheafnn::math::Column;
using sheafnn::rotation::RotationParameters;
using sheafnn::SquareMatrix;

constexpr double pi = 3.14159265358979323846;

/// exp X_φ of |φ| up to 10; scaling and squaring loses about |φ| ε.
template <int N>
SquareMatrix<double, N> exp_of(const RotationParameters<double, N>& phi) {
  return sheafnn::rotation::exponential_rotation<double, N>(phi);
}

/// Q D Qᵀ with D turning by `first` and `second` in the planes (0, 1) and (2, 3).
template <int N>
SquareMatrix<double, N> turned(double first, double second, std::uint32_t id) {
  SquareMatrix<double, N> d = turn<N>(first);
  if constexpr (N >= 4) {
    d(2, 2) = d(3, 3) = std::cos(second);
    d(3, 2) = std::sin(second);
    d(2, 3) = -d(3, 2);
  }
  const SquareMatrix<double, N> q = sheafnn::rotation::haar_rotation<double, N>({.seed = 601}, id);
  return q * d * q.transpose();
}

template <int N>
void check_inverse(const SquareMatrix<double, N>& r) {
  const RotationParameters<double, N> phi = sheafnn::rotation::rotation_log(r);
  CHECK((exp_of<N>(phi) - r).cwiseAbs().maxCoeff() <= 1e-13);
  // No angle above π: |φ|² = Σ θ_i².
  CHECK(phi.norm() <= std::sqrt(N / 2) * pi * (1 + 1e-15 * N));
}

/// Uniform rotations, and pairs of angles near 0, near π, nearly equal.
template <int N>
void check_inverses() {
  CAPTURE(N);
  for (std::uint32_t i = 0; i < 200; ++i)
    check_inverse<N>(sheafnn::rotation::haar_rotation<double, N>({.seed = 602}, i));
  std::uint32_t id = 0;
  const double angles[] = {0, 1e-300, 1e-12, 1e-8, 1e-3, 1, pi / 2, pi - 1e-3, pi - 1e-8, pi - 1e-12, pi};
  for (const double first : angles) {
    for (const double second : angles) {
      CAPTURE(first);
      CAPTURE(second);
      check_inverse<N>(turned<N>(first, second, id++));
    }
  }
  check_inverse<N>(turned<N>(2, 2, 0));
  check_inverse<N>(turned<N>(2, -2, 0));
}

/// log exp φ = φ where all angles are below π, to the relative accuracy of small φ.
template <int N>
void check_principal() {
  std::mt19937 engine(N);
  for (const double length : {1e-200, 1e-9, 1e-3, 0.5, 3.1}) {
    RotationParameters<double, N> phi = random_matrix<sheafnn::rotation::rotation_parameters<N>, 1>(engine);
    phi *= length / phi.norm();
    CHECK((sheafnn::rotation::rotation_log(exp_of<N>(phi)) - phi).norm() <=
          64 * N * epsilon * std::max(length, N > 3 ? 1. : 0.));
  }
}

/// J and its adjoint along every coordinate, and log |det J| against the determinant of exp.
template <int N>
void check_derivative(const SquareMatrix<double, N>& r) {
  CAPTURE(N);
  constexpr int P = sheafnn::rotation::rotation_parameters<N>;
  std::mt19937 engine(N);
  const RotationParameters<double, N> phi = sheafnn::rotation::rotation_log(r);
  const RotationParameters<double, N> cotangent = random_matrix<P, 1>(engine);
  const SquareMatrix<double, P> jacobian = sheafnn::rotation::rotation_log_jacobian<double, N>(phi);
  const SquareMatrix<double, N> matrix_cotangent = sheafnn::rotation::rotation_log_backward(r, phi, cotangent);
  const double size = 1 + jacobian.norm();
  for (int k = 0; k < P; ++k) {
    CAPTURE(k);
    RotationParameters<double, N> delta = RotationParameters<double, N>::Zero();
    const auto moved = [&](double step) -> RotationParameters<double, N> {
      delta(k) = step;
      return sheafnn::rotation::rotation_log(SquareMatrix<double, N>(exp_of<N>(delta) * r));
    };
    const RotationParameters<double, N> slope =
        (moved(difference_step) - moved(-difference_step)) / (2 * difference_step);
    CHECK((jacobian.col(k) - slope).norm() <= difference_bound * size * size * size);
    delta(k) = 1;
    const SquareMatrix<double, N> tangent = sheafnn::rotation::skew_matrix<double, N>(delta) * r;
    CHECK(std::abs(frobenius(matrix_cotangent, tangent) - jacobian.col(k).dot(cotangent)) <=
          64 * N * epsilon * size);
  }
  const double log_determinant = std::log(std::abs(sheafnn::detail::pivoted_determinant<double, P>(jacobian)));
  CHECK(std::abs(log_determinant + sheafnn::rotation::exponential_log_jacobian<double, N>(phi)) <=
        1024 * epsilon * size * size);
}

}  // namespace

TEST_CASE("exp of the logarithm is the rotation, also near and at angles of 0 and pi") {
  check_inverses<2>();
  check_inverses<3>();
  check_inverses<4>();
  check_inverses<5>();
}

TEST_CASE("signed permutations: eigenvalues that coincide, exact zeros") {
  int order[] = {0, 1, 2, 3, 4};
  do {
    for (unsigned signs = 0; signs < 32; signs += 3) {
      SquareMatrix<double, 5> r = SquareMatrix<double, 5>::Zero();
      for (int i = 0; i < 5; ++i) r(order[i], i) = (signs >> i & 1u) != 0 ? -1 : 1;
      if (sheafnn::detail::pivoted_determinant<double, 5>(r) < 0) r.col(0) *= -1;
      check_inverse<5>(r);
    }
  } while (std::next_permutation(order, order + 5));
}

TEST_CASE("near I the logarithm is accurate relative to its length") {
  for (const double size : {1e-3, 1e-8, 1e-14, 1e-100}) {
    CAPTURE(size);
    RotationParameters<double, 5> phi;
    for (int k = 0; k < 10; ++k) phi(k) = size * std::sin(1 + 3 * k);
    const SquareMatrix<double, 5> r = exp_of<5>(phi);
    CHECK((sheafnn::rotation::rotation_log(r) - phi).norm() <= 64 * epsilon * phi.norm());
  }
}

TEST_CASE("the logarithm is the principal one") {
  check_principal<2>();
  check_principal<3>();
  check_principal<4>();
  check_principal<5>();
}

TEST_CASE("derivative of the logarithm along every coordinate") {
  check_derivative<2>(turned<2>(1.2, 0, 0));
  for (const double angle : {1e-9, 1e-3, 0.1, 2.0, 3.1}) {
    CAPTURE(angle);
    check_derivative<3>(turned<3>(angle, 0, 0));
    check_derivative<4>(turned<4>(angle, 0.7, 0));
    check_derivative<5>(turned<5>(angle, 0.7, 0));
  }
  check_derivative<4>(turned<4>(1.5, 1.5, 0));
  check_derivative<5>(turned<5>(0, 0, 0));
}

TEST_CASE("at the cut locus") {
  // One of the two logarithms of a half turn; J belongs to its branch.
  const SquareMatrix<double, 3> half = Column<double, 3>(-1, 1, -1).asDiagonal();
  const RotationParameters<double, 3> phi = sheafnn::rotation::rotation_log(half);
  CHECK(std::abs(std::abs(phi(1)) - pi) <= 4 * epsilon);
  const SquareMatrix<double, 3> jacobian = sheafnn::rotation::rotation_log_jacobian<double, 3>(phi);
  CHECK(std::abs(std::log(sheafnn::detail::pivoted_determinant<double, 3>(jacobian)) +
                 sheafnn::rotation::exponential_log_jacobian<double, 3>(phi)) <= 16 * epsilon);
  // Two half turns of R⁴, and a full turn of R³: exp is not invertible.
  const SquareMatrix<double, 4> minus = -SquareMatrix<double, 4>::Identity();
  const RotationParameters<double, 4> both = sheafnn::rotation::rotation_log(minus);
  CHECK_THROWS_WITH_AS(static_cast<void>(sheafnn::rotation::rotation_log_jacobian<double, 4>(both)),
                       doctest::Contains("multiple of 2 pi"), std::invalid_argument);
  CHECK_THROWS_AS(static_cast<void>(sheafnn::rotation::rotation_log_jacobian<double, 3>({0, 2 * pi, 0})),
                  std::invalid_argument);
}

TEST_CASE("matrices that are no rotations, and those of float accuracy") {
  SquareMatrix<double, 3> r = turned<3>(1, 0, 0);
  const RotationParameters<double, 3> phi = sheafnn::rotation::rotation_log(r);
  r = r.cast<float>().cast<double>().eval();
  CHECK_THROWS_WITH_AS(static_cast<void>(sheafnn::rotation::rotation_log(r)), doctest::Contains("nearest_rotation"),
                       std::invalid_argument);
  CHECK((sheafnn::rotation::rotation_log(r, {.tolerance = 1e-5}) - phi).norm() <= 4e-7);
  const SquareMatrix<float, 3> narrow = r.cast<float>();
  CHECK((sheafnn::rotation::rotation_log(narrow).cast<double>() - phi).norm() <= 4e-7);
}

}  // namespace test_rotation_log
