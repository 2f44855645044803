/// \file
/// What tests of matrix Bingham distributions share.
#pragma once

#include <cstdint>

#include "sheafnn/core/small_matrix.hpp"
#include "sheafnn/random/stream.hpp"
#include "sheafnn/rotation/haar.hpp"
#include "sheafnn/rotation/matrix_bingham_distribution.hpp"

namespace matrix_bingham_checks {

template <int N>
using Law = sheafnn::rotation::MatrixBinghamDistribution<N>;
template <int N>
using Square = sheafnn::SquareMatrix<double, N>;

template <int N>
Square<N> some_rotation(std::uint32_t id) {
  return sheafnn::rotation::haar_rotation<double, N>(sheafnn::Stream{.seed = 1601}, id);
}
/// With these eigenvalues.
template <int N>
Square<N> symmetric(std::uint32_t id, const sheafnn::math::Column<double, N>& values) {
  const Square<N> u = some_rotation<N>(id);
  return u * values.asDiagonal() * u.transpose();
}

}  // namespace matrix_bingham_checks
