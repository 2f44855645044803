/// \file
/// Decompositions of dense matrices that tests compare with, compiled once, in test_dense_algebra.cpp: each takes seconds.
#pragma once

#include "sheafnn/core/eigen.hpp"

namespace dense_algebra {

using Dense = Eigen::MatrixXd;

Dense product(const Dense& a, const Dense& b);
Eigen::VectorXd spectrum(const Dense& symmetric);                    // increasing
Eigen::VectorXd hermitian_spectrum(const Eigen::MatrixXcd& matrix);  // increasing
Dense inverse_root(const Dense& positive);                           // the symmetric one
Dense orthonormal(const Dense& a);                                   // Q of a = Q R, square
Dense solve(const Dense& a, const Dense& b);                         // a⁻¹b

struct Eigenpairs {
  Eigen::VectorXd values;  // increasing
  Dense vectors;
};
Eigenpairs eigenpairs(const Dense& symmetric);

}  // namespace dense_algebra
