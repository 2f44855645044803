// The dense linear algebra that the tests of sheaves compare with.
#include <doctest/doctest.h>

// core/eigen.hpp goes before other parts of Eigen.
// clang-format off
#include "sheafnn/core/eigen.hpp"
#include <Eigen/Eigenvalues>
#include <Eigen/LU>
// clang-format on

#include "sheaf_checks.hpp"

namespace sheaf_checks {

Dense product(const Dense& a, const Dense& b) { return a * b; }

Eigen::VectorXd spectrum(const Dense& symmetric) {
  return Eigen::SelfAdjointEigenSolver<Dense>(symmetric, Eigen::EigenvaluesOnly).eigenvalues();
}

Dense solve(const Dense& a, const Dense& b) { return a.partialPivLu().solve(b); }

bool within(const Dense& a, const Dense& b, const Dense& bound) {
  return ((a - b).array().abs() <= bound.array()).all();
}

}  // namespace sheaf_checks

TEST_CASE("dense helpers do what their names say") {
  sheaf_checks::Dense a(2, 2);
  a << 2, 1, 1, 2;
  CHECK(sheaf_checks::product(a, a)(0, 1) == 4);
  CHECK(sheaf_checks::spectrum(a)(0) == doctest::Approx(1).epsilon(1e-15));
  CHECK(sheaf_checks::spectrum(a)(1) == doctest::Approx(3).epsilon(1e-15));
  CHECK((sheaf_checks::solve(a, sheaf_checks::Dense::Ones(2, 1)).array() - 1.0 / 3).abs().maxCoeff() < 1e-15);
  const sheaf_checks::Dense b = a.array() + 0.5;
  CHECK(sheaf_checks::within(a, b, sheaf_checks::Dense::Constant(2, 2, 0.5)));
  CHECK_FALSE(sheaf_checks::within(a, b, sheaf_checks::Dense::Constant(2, 2, 0.25)));
  CHECK_FALSE(sheaf_checks::within(a, b * std::nan(""), sheaf_checks::Dense::Constant(2, 2, 0.5)));
}
