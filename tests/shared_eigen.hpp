/// \file
/// Decompositions that the library uses in many tests, declared here and compiled once; see shared_networks.hpp. The singular
/// vectors of a small matrix take some seconds to compile. For what only tests use see dense_algebra.hpp.
#pragma once

#if defined(SHEAFNN_SHARED_BY_TESTS)

#include <Eigen/SVD>

#include "models/decompositions.hpp"

#define SHEAFNN_SHARED_EIGEN(mode)                          \
  mode class Eigen::JacobiSVD<Eigen::Matrix<double, 2, 2>>; \
  mode class Eigen::JacobiSVD<Eigen::Matrix<double, 3, 3>>; \
  mode class Eigen::JacobiSVD<Eigen::Matrix<double, 4, 4>>; \
  mode class Eigen::JacobiSVD<Eigen::Matrix<double, 5, 5>>; \
  mode class Eigen::JacobiSVD<Eigen::Matrix<double, 8, 8>>;

SHEAFNN_SHARED_EIGEN(extern template)

#endif
