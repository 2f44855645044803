/// \file
/// Shapes of Laplacian blocks and their algebra: multiples of the identity (1 × 1), diagonals (D × 1) and dense
/// blocks (D × D), one set of functions for all. T = float, double or Pack; branch-free.
///
/// A bar (x̄, `x_bar`) is the derivative of the loss with respect to x.
#pragma once

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/small_matrix.hpp"

namespace sheafnn::sheaf {

/// c I, stored as c.
template <class T>
using ScalarBlock = Eigen::Matrix<T, 1, 1>;
/// diag(z), stored as z.
template <class T, int D>
using DiagonalBlock = Eigen::Matrix<T, D, 1>;
/// Any D × D matrix.
template <class T, int D>
using DenseBlock = Eigen::Matrix<T, D, D>;

/// Is a block a D × D matrix with D > 1?
template <class Block>
inline constexpr bool is_dense_block = Block::ColsAtCompileTime > 1;

/// Left block times right block, for the shapes that occur: multiples of I and diagonals act on anything of their
/// own shape or larger. Takes any such blocks.
template <class T, int R, int C, int R2, int C2>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE auto block_product(const Eigen::Matrix<T, R, C>& a,
                                                           const Eigen::Matrix<T, R2, C2>& b) {
  if constexpr (R == 1) {
    Eigen::Matrix<T, R2, C2> r;
    for (int j = 0; j < C2; ++j) {
      for (int i = 0; i < R2; ++i) r(i, j) = a(0, 0) * b(i, j);
    }
    return r;
  } else if constexpr (R2 == 1) {
    return block_product(b, a);
  } else if constexpr (C == 1) {
    static_assert(C2 == 1, "a diagonal meets a diagonal");
    return Eigen::Matrix<T, R, 1>(a.cwiseProduct(b));
  } else {
    return multiply(a, b);
  }
}

/// The transposed block (itself unless dense). Takes any blocks.
template <class T, int R, int C>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE Eigen::Matrix<T, R, C> block_transpose(const Eigen::Matrix<T, R, C>& a) {
  if constexpr (C == 1) {
    return a;
  } else {
    return a.transpose();
  }
}

/// Δ_uu = S_u D_u S_u, of the shape of D. Takes any blocks.
template <class T, int R, int C>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE Eigen::Matrix<T, R, C> diagonal_block(
    const Eigen::Matrix<T, R, C>& scale, const Eigen::Matrix<T, R, C>& degree) {
  return block_product(block_product(scale, degree), scale);
}

}  // namespace sheafnn::sheaf
