/// \file
/// KL of Cayley distributions to the uniform one: closed forms and their derivatives against 120-digit arithmetic.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "sheafnn/rotation/cayley_kl.hpp"

namespace test_cayley_kl {
namespace {

struct Row {
  int dimension;
  double kappa, kl, slope;
};
constexpr Row rows[] = {
#include "golden/cayley_kl.inc"
};

template <class T>
double relative_error(T value, double exact) {
  return std::abs(static_cast<double>(value) - exact) / exact /
         static_cast<double>(std::numeric_limits<T>::epsilon());
}

template <int N, class T>
int check_rows() {
  int checked = 0;
  for (const Row& row : rows) {
    const T kappa = static_cast<T>(row.kappa);
    if (row.dimension != N || static_cast<double>(kappa) != row.kappa) continue;
    // κ^N below the smallest normal number is lost, but so is its share in the result.
    CAPTURE(N);
    CAPTURE(row.kappa);
    CHECK(relative_error(sheafnn::rotation::cayley_kl<N>(kappa), row.kl) <= 8);
    CHECK(relative_error(sheafnn::rotation::cayley_kl_derivative<N>(kappa), row.slope) <= 8);
    ++checked;
  }
  return checked;
}

template <class T>
void check_all(int expected) {
  const int checked = check_rows<2, T>() + check_rows<3, T>() + check_rows<4, T>() + check_rows<5, T>() +
                      check_rows<6, T>() + check_rows<7, T>() + check_rows<8, T>() + check_rows<15, T>() +
                      check_rows<16, T>();
  CHECK(checked == expected);
}

}  // namespace

TEST_CASE("KL to uniform is within 8 ε of the exact value, relative, from κ = 2⁻⁶⁰ to 1 − 2⁻⁵²") {
  check_all<double>(9 * 23);
  check_all<float>(9 * 20);
}

TEST_CASE("KL to uniform: the closed forms of dimension 2 and 3, and known values") {
  for (int i = 1; i < 100; ++i) {
    const double kappa = i / 100.0;
    CAPTURE(kappa);
    const double two = -std::log1p(-kappa * kappa);
    const double three = two - 2 * std::log1p(-kappa) - 2 * kappa;
    CHECK(std::abs(sheafnn::rotation::cayley_kl<2>(kappa) - two) <= 1e-12 * two);
    CHECK(std::abs(sheafnn::rotation::cayley_kl<3>(kappa) - three) <= 1e-12 * three);
  }
  CHECK(std::abs(sheafnn::rotation::cayley_kl<8>(0.8) - 25.3436) <= 0.00005);
  CHECK(sheafnn::rotation::cayley_kl<1>(0.5) == 0);
  CHECK(sheafnn::rotation::cayley_kl<5>(0.0) == 0);
  CHECK(sheafnn::rotation::cayley_kl_derivative<1>(0.5) == 0);
  CHECK(sheafnn::rotation::cayley_kl_derivative<5>(0.0) == 0);
}

}  // namespace test_cayley_kl
