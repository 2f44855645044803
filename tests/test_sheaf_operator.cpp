// The matrix-free operator in Eigen's iterative solvers and in an eigenvalue iteration through perform_op.
#include "sheafnn/core/eigen.hpp"

#include <doctest/doctest.h>

#include <Eigen/IterativeLinearSolvers>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <type_traits>

#include "sheaf_checks.hpp"
#include "sheafnn/sheaf/laplacian_operator.hpp"

namespace test_sheaf_operator {
using namespace sheaf_checks;

namespace {

constexpr double epsilon = std::numeric_limits<double>::epsilon();

// The largest eigenvalue by `steps` Lanczos steps with full reorthogonalisation, knowing only Spectra's interface.
template <class Operator>
double largest_eigenvalue(const Operator& op, Eigen::Index steps) {
  using Scalar = typename Operator::Scalar;
  static_assert(std::is_same_v<Scalar, double>);
  Dense basis = Dense::Zero(op.rows(), steps + 1);
  basis.col(0) = random_cochain(op.cols(), 1, 91).col(0).normalized();
  Dense projected = Dense::Zero(steps, steps);
  Eigen::VectorXd image(op.rows());
  for (Eigen::Index j = 0; j < steps; ++j) {
    op.perform_op(basis.col(j).data(), image.data());
    for (int pass = 0; pass < 2; ++pass) {
      const Eigen::VectorXd part = basis.leftCols(j + 1).transpose() * image;
      projected.col(j).head(j + 1) += part;
      image -= basis.leftCols(j + 1) * part;
    }
    basis.col(j + 1) = image.normalized();
    if (j + 1 < steps) projected(j + 1, j) = image.norm();
  }
  const Dense symmetric = 0.5 * (projected + projected.transpose());
  return spectrum(symmetric).maxCoeff();
}

}  // namespace

TEST_CASE_TEMPLATE("conjugate gradients solve with the matrix-free operator", Family, Diagonal<2>,
                   SpecialOrthogonal<3>, GeneralLinear<3>) {
  const CellularSheaf<Family> sheaf = sized_sheaf<Family>(random_graph(60, 150, 92), 1, 93);
  const SheafLaplacian<Family> laplacian(sheaf, Normalisation::augmented);
  const LaplacianOperator<Family> op(laplacian, 1.0, 2);
  Eigen::ConjugateGradient<LaplacianOperator<Family>, Eigen::Lower | Eigen::Upper, Eigen::IdentityPreconditioner>
      solver;
  solver.setTolerance(1e-14);
  solver.compute(op);
  const Eigen::VectorXd b = random_cochain(laplacian.rows(), 1, 94).col(0);
  const Eigen::VectorXd x = solver.solve(b);
  REQUIRE(solver.info() == Eigen::Success);
  CHECK(solver.iterations() < 60);  // condition number at most 3: a digit in about 1.7 steps
  Eigen::SparseMatrix<double> shifted = laplacian.matrix();
  shifted.diagonal().array() += 1.0;
  // Residual: the tolerance, and rounding of 64 terms.
  CHECK((shifted * x - b).norm() <= (1e-14 + 64 * epsilon) * b.norm());
  // Products with several columns, and in expressions.
  const Dense many = random_cochain(laplacian.rows(), 4, 95);
  const Dense expected = shifted * many;
  Dense product = op * many;
  CHECK((product - expected).cwiseAbs().maxCoeff() <= 64 * epsilon * expected.cwiseAbs().maxCoeff());
  product -= op * many;
  CHECK(product.cwiseAbs().maxCoeff() == 0);
}

TEST_CASE("perform_op serves eigenvalue solvers") {
  using Family = GeneralLinear<2>;
  const CellularSheaf<Family> sheaf = sized_sheaf<Family>(random_graph(40, 90, 96), 1, 97);
  const SheafLaplacian<Family> laplacian(sheaf, Normalisation::block);
  const LaplacianOperator<Family> op(laplacian);
  CHECK(op.rows() == 80);
  CHECK(op.cols() == 80);
  const double largest = spectrum(laplacian.matrix()).maxCoeff();
  // 60 of 80 dimensions: the Ritz value has converged to rounding.
  CHECK(std::abs(largest_eigenvalue(op, 60) - largest) <= 80 * 8 * epsilon);
  CHECK(largest <= laplacian.spectral_bound());
}

TEST_CASE("arguments of the operator are checked") {
  const SheafLaplacian<Identity<1>> laplacian(CellularSheaf<Identity<1>>(cycle_graph(3)));
  CHECK_THROWS_AS(LaplacianOperator<Identity<1>>(laplacian, std::nan("")), std::invalid_argument);
  CHECK_THROWS_AS(LaplacianOperator<Identity<1>>(laplacian, 0.0, 0), std::invalid_argument);
  static_assert(!std::is_constructible_v<LaplacianOperator<Identity<1>>, SheafLaplacian<Identity<1>>&&>);
}

}  // namespace test_sheaf_operator
