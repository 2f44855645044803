/// \file
/// Angles and defects of rotations, refusal of other matrices, nearest rotations.
#include <doctest/doctest.h>

#include <cmath>
#include <random>
#include <stdexcept>

#include "rotation_checks.hpp"
#include "sheafnn/rotation/exponential.hpp"
#include "sheafnn/rotation/nearest_rotation.hpp"
#include "sheafnn/rotation/operations.hpp"

namespace test_rotation_operations {
namespace {

using namespace rotation_checks;
using sheafnn::rotation::RotationParameters;
using sheafnn::SquareMatrix;

template <int N>
void check_nearest() {
  CAPTURE(N);
  std::mt19937 engine(600 + N);
  const RotationParameters<double, N> phi = random_matrix<sheafnn::rotation::rotation_parameters<N>, 1>(engine, 2);
  const SquareMatrix<double, N> q = sheafnn::rotation::exponential_rotation<double, N>(phi);
  // Q S with S symmetric positive definite has the polar factor Q.
  const SquareMatrix<double, N> b = random_matrix<N, N>(engine, 0.3);
  const SquareMatrix<double, N> s = SquareMatrix<double, N>::Identity() + b * b.transpose();
  CHECK((sheafnn::rotation::nearest_rotation<double, N>(q * s) - q).norm() <= 32 * N * epsilon);
  // A matrix with a negative determinant: no rotation of a random lot is nearer.
  SquareMatrix<double, N> a = random_matrix<N, N>(engine);
  if (sheafnn::detail::pivoted_determinant<double, N>(a) > 0) a.col(0) *= -1;
  const SquareMatrix<double, N> nearest = sheafnn::rotation::nearest_rotation<double, N>(a);
  CHECK_NOTHROW((sheafnn::rotation::require_rotation<double, N>("nearest", nearest)));
  for (int trial = 0; trial < 200; ++trial) {
    const RotationParameters<double, N> step =
        random_matrix<sheafnn::rotation::rotation_parameters<N>, 1>(engine, trial < 100 ? 0.05 : 3.0);
    const SquareMatrix<double, N> other = nearest * sheafnn::rotation::exponential_rotation<double, N>(step);
    CHECK((a - nearest).norm() <= (a - other).norm() + N * epsilon);
  }
}

}  // namespace

TEST_CASE("rotation angles") {
  for (const double angle : {-3.1, -1.0, -1e-9, 0.0, 1e-9, 0.5, 3.141592}) {
    CAPTURE(angle);
    const auto q2 = sheafnn::rotation::exponential_rotation<double, 2>(RotationParameters<double, 2>::Constant(angle));
    CHECK(std::abs(sheafnn::rotation::rotation_angle<double, 2>(q2) - angle) <= 32 * epsilon);
    const RotationParameters<double, 3> phi = angle * RotationParameters<double, 3>(2, -1, 2) / 3;
    const auto q3 = sheafnn::rotation::exponential_rotation<double, 3>(phi);
    CHECK(std::abs(sheafnn::rotation::rotation_angle<double, 3>(q3) - std::abs(angle)) <= 32 * epsilon);
  }
}

TEST_CASE("orthogonality defect and refusal of matrices that are no rotations") {
  SquareMatrix<double, 2> r = SquareMatrix<double, 2>::Identity();
  r(0, 1) = 0.25;
  CHECK(sheafnn::rotation::orthogonality_defect<double, 2>(r) == 0.25);
  CHECK_THROWS_AS((sheafnn::rotation::require_rotation<double, 2>("r", r)), std::invalid_argument);
  r(0, 1) = std::nan("");
  CHECK(std::isnan(sheafnn::rotation::orthogonality_defect<double, 2>(r)));
  r << 0, 1, 1, 0;
  CHECK_THROWS_WITH_AS((sheafnn::rotation::require_rotation<double, 2>("r", r)),
                       "r: a matrix with determinant -1 is not allowed; a rotation has determinant +1",
                       std::invalid_argument);
}

TEST_CASE("nearest rotation") {
  check_nearest<2>();
  check_nearest<3>();
  check_nearest<5>();
  // diag(1, −1): every angle is as near.
  const SquareMatrix<double, 2> mirror = (SquareMatrix<double, 2>() << 1, 0, 0, -1).finished();
  CHECK_THROWS_AS(static_cast<void>(sheafnn::rotation::nearest_rotation<double, 2>(mirror)), std::invalid_argument);
}

}  // namespace test_rotation_operations
