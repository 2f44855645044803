/// \file
/// Small fixed-size matrices: products and elimination in float, double and packs, against Eigen in long double.
#include <doctest/doctest.h>

#include <Eigen/LU>
#include <Eigen/QR>
#include <cmath>
#include <limits>
#include <random>
#include <type_traits>

#include "sheafnn/core/eigen.hpp"
#include "sheafnn/core/pack.hpp"
#include "sheafnn/core/small_matrix.hpp"

namespace test_small_matrix {
namespace {

using sheafnn::math::Pack;

/// Reference matrices, of one type whatever is tested: accurate, and compiled once.
using Reference = Eigen::Matrix<long double, Eigen::Dynamic, Eigen::Dynamic>;

template <class T>
constexpr long double epsilon = std::numeric_limits<sheafnn::math::scalar_of_t<T>>::epsilon();

template <class T>
constexpr int lane_count = 1;
template <class T, int W>
constexpr int lane_count<Pack<T, W>> = W;

Reference random_reference(int rows, int columns, std::mt19937& engine, double scale = 1) {
  std::uniform_real_distribution<double> uniform(-scale, scale);
  Reference r(rows, columns);
  for (int j = 0; j < columns; ++j) {
    for (int i = 0; i < rows; ++i) r(i, j) = uniform(engine);
  }
  return r;
}

/// A matrix of T whose lanes are made one after the other by make().
template <class T, int R, int C, class Make>
Eigen::Matrix<T, R, C> matrix_of(const Make& make) {
  using Scalar = sheafnn::math::scalar_of_t<T>;
  Eigen::Matrix<T, R, C> m;
  for (int l = 0; l < lane_count<T>; ++l) {
    const Reference one = make();
    for (int j = 0; j < C; ++j) {
      for (int i = 0; i < R; ++i) {
        if constexpr (std::is_arithmetic_v<T>) {
          m(i, j) = static_cast<T>(one(i, j));
        } else {
          m(i, j).set_lane(l, static_cast<Scalar>(one(i, j)));
        }
      }
    }
  }
  return m;
}

template <class T>
long double lane_of(const T& value, int l) {
  if constexpr (std::is_arithmetic_v<T>) {
    return value;
  } else {
    return value.lane(l);
  }
}

/// Lane l of a matrix of T.
template <class T, int R, int C>
Reference lane_of(const Eigen::Matrix<T, R, C>& m, int l) {
  Reference r(R, C);
  for (int j = 0; j < C; ++j) {
    for (int i = 0; i < R; ++i) r(i, j) = lane_of(m(i, j), l);
  }
  return r;
}

/// |computed − A B| ≤ K ε |A||B| for sums of K products, entry by entry (Higham, Accuracy and Stability of Numerical
/// Algorithms, 3.5; K ε is twice the bound's K u, u = ε/2, and so covers its denominator too).
void check_product(const Reference& computed, const Reference& a, const Reference& b, long double epsilon) {
  const Reference error = (computed - a * b).cwiseAbs();
  const Reference bound = static_cast<long double>(a.cols()) * epsilon * (a.cwiseAbs() * b.cwiseAbs());
  CHECK((error.array() <= bound.array()).all());
}

/// The same for ⟨A, A⟩, whose products are all positive.
void check_square(long double computed, const Reference& a, long double epsilon) {
  CHECK(std::abs(computed - a.squaredNorm()) <= static_cast<long double>(a.size()) * epsilon * a.squaredNorm());
}

template <class T, int R, int K, int C>
void check_products(std::mt19937& engine) {
  const auto a = matrix_of<T, R, K>([&] { return random_reference(R, K, engine); });
  const auto b = matrix_of<T, K, C>([&] { return random_reference(K, C, engine); });
  const Eigen::Matrix<T, K, R> at = a.transpose();
  const Eigen::Matrix<T, C, K> bt = b.transpose();
  const Eigen::Matrix<T, R, C> product = sheafnn::math::multiply(a, b);
  const Eigen::Matrix<T, R, C> product_tn = sheafnn::math::multiply_tn(at, b);
  const Eigen::Matrix<T, R, C> product_nt = sheafnn::math::multiply_nt(a, bt);
  const T square = sheafnn::math::inner_product(a, a);
  for (int l = 0; l < lane_count<T>; ++l) {
    const Reference left = lane_of(a, l), right = lane_of(b, l);
    check_product(lane_of(product, l), left, right, epsilon<T>);
    check_product(lane_of(product_tn, l), left, right, epsilon<T>);
    check_product(lane_of(product_nt, l), left, right, epsilon<T>);
    check_square(lane_of(square, l), left, epsilon<T>);
  }
}

/// A matrix whose symmetric part is positive definite: I + 0.9 U with U orthogonal, or I − X with X
/// skew-symmetric.
Reference positive_matrix(int n, bool orthogonal, std::mt19937& engine) {
  const Reference g = random_reference(n, n, engine, 3);
  const Reference identity = Reference::Identity(n, n);
  if (!orthogonal) return identity - (g - g.transpose());
  const Reference u = Eigen::HouseholderQR<Reference>(g).householderQ();
  return identity + 0.9L * u;
}

/// Elimination solves a nearby system exactly: (A + E) X = B with |E| ≤ 3 N u |L||U| (Higham, 9.3–9.4), and for A
/// with a positive definite symmetric part ‖|L||U|‖ ≤ N ‖A‖ cond(A) (from Golub, Van Loan, Matrix Computations,
/// 4.2.2). So the residual obeys ‖A X − B‖ ≤ 3 N² ε cond(A) ‖A‖ ‖X‖ =: δ ‖A‖ ‖X‖, the solution is off by δ cond(A)
/// ‖X‖, and so, relatively, is the determinant, whose relative derivative is A⁻¹. Norms are Frobenius'.
void check_solution(const Reference& a, const Reference& b, const Reference& x, long double determinant,
                    long double epsilon) {
  const Eigen::FullPivLU<Reference> lu(a);
  const Reference inverse = lu.inverse();
  const long double condition = a.norm() * inverse.norm();
  const long double delta = 3 * static_cast<long double>(a.size()) * epsilon * condition;
  CHECK((a * x - b).norm() <= delta * a.norm() * x.norm());
  CHECK((x - inverse * b).norm() <= delta * condition * x.norm());
  CHECK(lu.determinant() > 0);
  CHECK(std::abs(determinant - lu.determinant()) <= delta * condition * lu.determinant());
}

template <class T, int N>
void check_solution(bool orthogonal, std::mt19937& engine) {
  constexpr int columns = 2;
  const auto a = matrix_of<T, N, N>([&] { return positive_matrix(N, orthogonal, engine); });
  const auto b = matrix_of<T, N, columns>([&] { return random_reference(N, columns, engine); });
  const auto solution = sheafnn::math::solve_unpivoted(a, b);
  for (int l = 0; l < lane_count<T>; ++l) {
    check_solution(lane_of(a, l), lane_of(b, l), lane_of(solution.x, l), lane_of(solution.determinant, l),
                   epsilon<T>);
  }
}

}  // namespace

TEST_CASE_TEMPLATE("small matrices: products", T, float, double, Pack<float, 16>, Pack<double, 8>) {
  std::mt19937 engine(4);
  for (int trial = 0; trial < 5; ++trial) {
    check_products<T, 1, 1, 1>(engine);
    check_products<T, 3, 3, 3>(engine);
    check_products<T, 2, 3, 5>(engine);
    check_products<T, 5, 1, 3>(engine);
    check_products<T, 1, 4, 2>(engine);
  }
  const auto identity = sheafnn::math::identity_matrix<T, 4>();
  for (int l = 0; l < lane_count<T>; ++l) CHECK(lane_of(identity, l) == Reference::Identity(4, 4));
}

TEST_CASE_TEMPLATE("small matrices: elimination without pivoting", T, float, double, Pack<float, 16>,
                   Pack<double, 8>) {
  std::mt19937 engine(5);
  for (int trial = 0; trial < 5; ++trial) {
    for (const bool orthogonal : {true, false}) {
      check_solution<T, 1>(orthogonal, engine);
      check_solution<T, 2>(orthogonal, engine);
      check_solution<T, 3>(orthogonal, engine);
    }
  }
}

TEST_CASE_TEMPLATE("small matrices: elimination in greater dimensions", T, float, double) {
  std::mt19937 engine(6);
  for (int trial = 0; trial < 10; ++trial) {
    for (const bool orthogonal : {true, false}) {
      check_solution<T, 5>(orthogonal, engine);
      check_solution<T, 8>(orthogonal, engine);
    }
  }
}

}  // namespace test_small_matrix
