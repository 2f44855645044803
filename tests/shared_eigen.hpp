/// \file
/// Decompositions of Eigen that the library uses in many tests, declared here and compiled once; see shared_networks.hpp. The
/// eigenpairs of a symmetric matrix alone take six seconds to compile. For what only tests use see dense_algebra.hpp.
#pragma once

#if defined(SHEAFNN_SHARED_BY_TESTS)

#include <Eigen/Eigenvalues>
#include <Eigen/QR>
#include <Eigen/SVD>

#include "models/decompositions.hpp"

#define SHEAFNN_SHARED_EIGEN(mode)                                                                              \
  mode Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>& Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>::compute( \
      const Eigen::EigenBase<Eigen::MatrixXd>&, int);                                                           \
  mode class Eigen::BDCSVD<Eigen::MatrixXd>;                                                                    \
  mode class Eigen::HouseholderQR<Eigen::MatrixXd>;                                                             \
  mode class Eigen::JacobiSVD<Eigen::MatrixXd>;                                                                 \
  mode class Eigen::JacobiSVD<Eigen::Matrix<double, 2, 2>>;                                                     \
  mode class Eigen::JacobiSVD<Eigen::Matrix<double, 3, 3>>;                                                     \
  mode class Eigen::JacobiSVD<Eigen::Matrix<double, 4, 4>>;                                                     \
  mode class Eigen::JacobiSVD<Eigen::Matrix<double, 5, 5>>;                                                     \
  mode class Eigen::JacobiSVD<Eigen::Matrix<double, 8, 8>>;

SHEAFNN_SHARED_EIGEN(extern template)

#endif
