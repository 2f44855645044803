/// \file
/// Parametrisations of rotations: known values, orthogonality, derivatives along every coordinate, names.
#include <doctest/doctest.h>

#include <cmath>
#include <random>
#include <stdexcept>
#include <string>

#include "rotation_checks.hpp"
#include "sheafnn/rotation/operations.hpp"
#include "sheafnn/rotation/parametrisation.hpp"

namespace test_rotation_parametrisation {
namespace {

using namespace rotation_checks;
using sheafnn::rotation::RotationParameters;
using sheafnn::rotation::RotationParametrisation;
using sheafnn::SquareMatrix;

constexpr RotationParametrisation all[] = {RotationParametrisation::householder, RotationParametrisation::cayley,
                                           RotationParametrisation::exponential, RotationParametrisation::euler};

template <int N>
SquareMatrix<double, N> rotation(RotationParametrisation p, const RotationParameters<double, N>& phi) {
  return sheafnn::rotation::rotation_from_parameters<double, N>(p, phi);
}

/// How much longer φ makes the way rounding errors take: squarings of the exponential, arguments of sine and
/// cosine.
double growth(RotationParametrisation p, double norm) {
  return p == RotationParametrisation::exponential || p == RotationParametrisation::euler ? 1 + norm : 1;
}

template <int N>
void check_rotations() {
  CAPTURE(N);
  std::mt19937 engine(100 + N);
  for (const RotationParametrisation p : all) {
    if (p == RotationParametrisation::euler && !sheafnn::rotation::has_euler_angles<N>) continue;
    CAPTURE(to_string(p));
    for (const double scale : {0.0, 1e-9, 1.0, 12.6}) {
      CAPTURE(scale);
      for (int trial = 0; trial < 5; ++trial) {
        const RotationParameters<double, N> phi =
            random_matrix<sheafnn::rotation::rotation_parameters<N>, 1>(engine, scale);
        const SquareMatrix<double, N> q = rotation<N>(p, phi);
        // Elimination multiplies the errors of I − X by its condition number √(1 + ‖X‖²) for the Cayley transform.
        const double condition = p == RotationParametrisation::cayley ? 1 + phi.norm() : growth(p, phi.norm());
        const double bound = 8 * N * epsilon * condition;
        CHECK(sheafnn::rotation::orthogonality_defect<double, N>(q) <= bound);
        CHECK(std::abs(sheafnn::detail::pivoted_determinant<double, N>(q) - 1) <= N * bound);
      }
    }
    // φ = 0 is the identity, except for the product of an even number of reflections of the axes, −I.
    const RotationParameters<double, N> zero = RotationParameters<double, N>::Zero();
    const bool minus = p == RotationParametrisation::householder && N % 2 == 0;
    CHECK(rotation<N>(p, zero) == (minus ? -1.0 : 1.0) * SquareMatrix<double, N>::Identity());
  }
}

template <int N>
void check_derivatives() {
  CAPTURE(N);
  constexpr int P = sheafnn::rotation::rotation_parameters<N>;
  std::mt19937 engine(200 + N);
  for (const RotationParametrisation p : all) {
    if (p == RotationParametrisation::euler && !sheafnn::rotation::has_euler_angles<N>) continue;
    CAPTURE(to_string(p));
    for (const double scale : {0.0, 1e-4, 0.3, 1.5, 12.6}) {
      CAPTURE(scale);
      RotationParameters<double, N> phi = random_matrix<P, 1>(engine, scale);
      const SquareMatrix<double, N> cotangent = random_matrix<N, N>(engine);
      // The gradient is added to what is there.
      RotationParameters<double, N> gradient = RotationParameters<double, N>::Constant(0.25);
      sheafnn::rotation::rotation_from_parameters_backward<double, N>(p, phi, cotangent, gradient);
      const double bound = difference_bound * cotangent.norm() * growth(p, phi.norm());
      for (int k = 0; k < P; ++k) {
        CAPTURE(k);
        const double expected =
            central_difference(phi(k), [&] { return frobenius(cotangent, rotation<N>(p, phi)); });
        CHECK(std::abs(gradient(k) - 0.25 - expected) <= bound);
      }
    }
  }
}

/// exp(X) in long double: Taylor's series of X/2¹², squared twelve times.
template <int N>
SquareMatrix<long double, N> long_exponential(const SquareMatrix<double, N>& x) {
  const SquareMatrix<long double, N> scaled = x.template cast<long double>() / 4096.0L;
  SquareMatrix<long double, N> sum = SquareMatrix<long double, N>::Identity();
  SquareMatrix<long double, N> term = sum;
  for (int k = 1; k <= 14; ++k) {
    term = (term * scaled / static_cast<long double>(k)).eval();
    sum += term;
  }
  for (int k = 0; k < 12; ++k) sum = (sum * sum).eval();
  return sum;
}

template <int N>
void check_exponential() {
  CAPTURE(N);
  std::mt19937 engine(300 + N);
  for (const double scale : {1e-6, 0.2, 0.9, 3.0, 12.6, 300.0}) {
    const RotationParameters<double, N> phi =
        random_matrix<sheafnn::rotation::rotation_parameters<N>, 1>(engine, scale);
    const SquareMatrix<double, N> error =
        (sheafnn::rotation::exponential_rotation<double, N>(phi).template cast<long double>() -
         long_exponential<N>(sheafnn::rotation::skew_matrix<double, N>(phi)))
            .template cast<double>();
    CAPTURE(scale);
    CHECK(error.norm() <= 8 * N * epsilon * (1 + phi.norm()));
  }
}

}  // namespace

TEST_CASE("rotations are orthogonal with determinant +1, for every parametrisation and N = 1 … 8") {
  check_rotations<1>();
  check_rotations<2>();
  check_rotations<3>();
  check_rotations<4>();
  check_rotations<5>();
  check_rotations<6>();
  check_rotations<7>();
  check_rotations<8>();
}

TEST_CASE("vector-Jacobian products of rotations agree with central differences along every coordinate") {
  check_derivatives<1>();
  check_derivatives<2>();
  check_derivatives<3>();
  check_derivatives<4>();
  check_derivatives<5>();
  check_derivatives<6>();
}

TEST_CASE("Householder rotations worked out by hand") {
  // N = 2: Q = [[p² − 1, 2p], [−2p, p² − 1]]/(1 + p²).
  const auto q2 = rotation<2>(RotationParametrisation::householder, RotationParameters<double, 2>::Constant(0.5));
  CHECK((q2 - (SquareMatrix<double, 2>() << -0.6, 0.8, -0.8, -0.6).finished()).cwiseAbs().maxCoeff() <=
        4 * epsilon);
  // N = 3, a_1 = (1, 1, 0), a_2 = (0, 1, 1), a_3 = (0, 0, 1): a cyclic permutation of the axes.
  const auto q3 = rotation<3>(RotationParametrisation::householder, RotationParameters<double, 3>(1, 0, 1));
  CHECK(q3 == (SquareMatrix<double, 3>() << 0, 0, 1, 1, 0, 0, 0, 1, 0).finished());
  // N = 4: row by row, the third number is entry (2, 1) of the triangle, a_2 = (0, 1, 1, 0).
  RotationParameters<double, 4> phi = RotationParameters<double, 4>::Zero();
  phi.setZero();
  phi(2) = 1;
  const auto q4 = rotation<4>(RotationParametrisation::householder, phi);
  CHECK((q4 - (SquareMatrix<double, 4>() << -1, 0, 0, 0, 0, 0, 1, 0, 0, -1, 0, 0, 0, 0, 0, -1).finished())
            .cwiseAbs()
            .maxCoeff() <= 4 * epsilon);
}

TEST_CASE("X_φ is filled column by column") {
  RotationParameters<double, 4> phi;
  phi << 1, 2, 3, 4, 5, 6;
  const SquareMatrix<double, 4> x = sheafnn::rotation::skew_matrix<double, 4>(phi);
  CHECK(x == (SquareMatrix<double, 4>() << 0, -1, -2, -3, 1, 0, -4, -5, 2, 4, 0, -6, 3, 5, 6, 0).finished());
  CHECK(sheafnn::rotation::skew_parameters<double, 4>(x) == phi);
}

TEST_CASE("Cayley, exponential and Euler rotations of known angle") {
  for (const double angle : {-12.5, -3.14159, -0.7, 1e-8, 0.5, 2.0, 3.0, 12.5}) {
    CAPTURE(angle);
    const double bound = 16 * epsilon * (1 + std::abs(angle));
    const auto turn =
        (SquareMatrix<double, 2>() << std::cos(angle), -std::sin(angle), std::sin(angle), std::cos(angle))
            .finished();
    const RotationParameters<double, 2> phi = RotationParameters<double, 2>::Constant(angle);
    CHECK((rotation<2>(RotationParametrisation::exponential, phi) - turn).norm() <= bound);
    CHECK((rotation<2>(RotationParametrisation::euler, phi) - turn).norm() <= bound);
    if (std::abs(angle) < 3.1) {
      const RotationParameters<double, 2> half = RotationParameters<double, 2>::Constant(std::tan(angle / 2));
      CHECK((rotation<2>(RotationParametrisation::cayley, half) - turn).norm() <= bound);
    }
  }
  // Quarter turns, R_z(90°) R_y(0) R_x(90°): e_1 → e_2, e_2 → e_3 → …
  const double quarter = std::acos(0.0);
  const auto q = rotation<3>(RotationParametrisation::euler, RotationParameters<double, 3>(quarter, 0, quarter));
  CHECK((q - (SquareMatrix<double, 3>() << 0, 0, 1, 1, 0, 0, 0, 1, 0).finished()).norm() <= 4 * epsilon);
  // The first number of X_φ turns about the third axis, minus the second about the second, the third about the
  // first.
  for (int axis = 0; axis < 3; ++axis) {
    RotationParameters<double, 3> exponential = RotationParameters<double, 3>::Zero();
    RotationParameters<double, 3> euler = exponential;
    exponential(axis) = axis == 1 ? -0.8 : 0.8;
    euler(axis) = 0.8;
    CHECK((rotation<3>(RotationParametrisation::exponential, exponential) -
           rotation<3>(RotationParametrisation::euler, euler))
              .norm() <= 16 * epsilon);
  }
}

TEST_CASE("matrix exponential against a long double series") {
  check_exponential<3>();
  check_exponential<5>();
  check_exponential<8>();
}

TEST_CASE("names of parametrisations") {
  for (const RotationParametrisation p : all) {
    CHECK(sheafnn::rotation::parse_rotation_parametrisation(sheafnn::to_string(p)) == p);
  }
  CHECK(sheafnn::to_string(RotationParametrisation::exponential) == "exponential");
  CHECK_THROWS_WITH_AS(
      static_cast<void>(sheafnn::rotation::parse_rotation_parametrisation("quaternion")),
      "rotation parametrisation: quaternion is not allowed; choose householder, cayley, exponential, "
      "euler",
      std::invalid_argument);
}

}  // namespace test_rotation_parametrisation
