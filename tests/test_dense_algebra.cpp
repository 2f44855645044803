#include "sheafnn/core/eigen.hpp"

#include <doctest/doctest.h>

#include <Eigen/Eigenvalues>
#include <Eigen/LU>
#include <Eigen/QR>
#include <cmath>

#include "dense_algebra.hpp"
#include "sheaf_checks.hpp"

namespace dense_algebra {

Dense product(const Dense& a, const Dense& b) { return a * b; }

Eigenpairs eigenpairs(const Dense& symmetric) {
  const Eigen::SelfAdjointEigenSolver<Dense> solver(symmetric);
  return {solver.eigenvalues(), solver.eigenvectors()};
}

Eigen::VectorXd spectrum(const Dense& symmetric) {
  return Eigen::SelfAdjointEigenSolver<Dense>(symmetric, Eigen::EigenvaluesOnly).eigenvalues();
}

Eigen::VectorXd hermitian_spectrum(const Eigen::MatrixXcd& matrix) {
  // A + iB has every eigenvalue of (A, −B; B, A) once, which has it twice.
  const Eigen::Index n = matrix.rows();
  Dense real(2 * n, 2 * n);
  real << matrix.real(), -matrix.imag(), matrix.imag(), matrix.real();
  const Eigen::VectorXd twice = spectrum(real);
  Eigen::VectorXd r(n);
  for (Eigen::Index i = 0; i < n; ++i) r(i) = twice(2 * i);
  return r;
}

Dense inverse_root(const Dense& positive) {
  const Eigenpairs pairs = eigenpairs(positive);
  return pairs.vectors * pairs.values.cwiseSqrt().cwiseInverse().asDiagonal() * pairs.vectors.transpose();
}

Dense orthonormal(const Dense& a) { return Eigen::HouseholderQR<Dense>(a).householderQ(); }

Dense solve(const Dense& a, const Dense& b) { return a.partialPivLu().solve(b); }

}  // namespace dense_algebra

bool sheaf_checks::within(const Dense& a, const Dense& b, const Dense& bound) {
  return ((a - b).array().abs() <= bound.array()).all();
}

TEST_CASE("dense helpers do what their names say") {
  using namespace dense_algebra;
  Dense a(2, 2), identity = Dense::Identity(2, 2);
  a << 2, 1, 1, 2;
  CHECK(product(a, a)(0, 1) == 4);
  CHECK(spectrum(a)(0) == doctest::Approx(1).epsilon(1e-15));
  CHECK(spectrum(a)(1) == doctest::Approx(3).epsilon(1e-15));
  Eigen::MatrixXcd h(2, 2);
  h << 2.0, std::complex<double>(0, 1), std::complex<double>(0, -1), 2.0;
  CHECK((hermitian_spectrum(h) - spectrum(a)).norm() < 1e-15);
  const Eigenpairs pairs = eigenpairs(a);
  CHECK((a * pairs.vectors - pairs.vectors * pairs.values.asDiagonal()).norm() < 1e-15);
  CHECK((inverse_root(a) * a * inverse_root(a) - identity).norm() < 1e-15);
  const Dense q = orthonormal(a);
  CHECK((q.transpose() * q - identity).norm() < 1e-15);
  CHECK(std::abs((q.transpose() * a)(1, 0)) < 1e-15);
  CHECK((solve(a, Dense::Ones(2, 1)).array() - 1.0 / 3).abs().maxCoeff() < 1e-15);
  const Dense b = a.array() + 0.5;
  CHECK(sheaf_checks::within(a, b, Dense::Constant(2, 2, 0.5)));
  CHECK_FALSE(sheaf_checks::within(a, b, Dense::Constant(2, 2, 0.25)));
  CHECK_FALSE(sheaf_checks::within(a, b * std::nan(""), Dense::Constant(2, 2, 0.5)));
}
