/// \file
/// Fixed-size matrices over T = float, double or Pack: the few branch-free routines that per-arc and per-node mathematics
/// needs. They are plain loops, which unroll on the CPU and run in a GPU thread.
#pragma once

#include <cmath>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/eigen.hpp"
#include "sheafnn/core/pack.hpp"

namespace sheafnn::math {

/// N × N matrix of T. Column-major, as Eigen's default; element (i, j) is m(i, j).
template <class T, int N>
using SquareMatrix = Eigen::Matrix<T, N, N>;

/// Column of N values.
template <class T, int N>
using Column = Eigen::Matrix<T, N, 1>;

/// I (N × N), also for packs.
template <class T, int N>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE SquareMatrix<T, N> identity_matrix() {
  SquareMatrix<T, N> r;
  for (int j = 0; j < N; ++j) {
    for (int i = 0; i < N; ++i) r(i, j) = i == j ? T(1) : T(0);
  }
  return r;
}

}  // namespace sheafnn::math

namespace sheafnn::detail {

/// The N × N matrix of entries that are stored row by row.
template <int N, class T>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE math::SquareMatrix<T, N> matrix_of_rows(const T* rows) {
  math::SquareMatrix<T, N> r;
  SHEAFNN_UNROLL for (int k = 0; k < N * N; ++k) r(k / N, k % N) = rows[k];
  return r;
}
/// Writes the N² entries of a matrix row by row.
template <class T, int N>
SHEAFNN_HD SHEAFNN_INLINE void write_rows(const Eigen::Matrix<T, N, N>& matrix, T* rows) {
  SHEAFNN_UNROLL for (int k = 0; k < N * N; ++k) rows[k] = matrix(k / N, k % N);
}

/// Products of more multiplications than this are functions of their own: inlined everywhere they would only make
/// programs large and slow to compile.
inline constexpr int largest_inline_product = 27;

template <class T, int R, int K, int C>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE Eigen::Matrix<T, R, C> multiply_here(const Eigen::Matrix<T, R, K>& a,
                                                                             const Eigen::Matrix<T, K, C>& b) {
  Eigen::Matrix<T, R, C> r;
  SHEAFNN_UNROLL for (int j = 0; j < C; ++j) {
    SHEAFNN_UNROLL for (int i = 0; i < R; ++i) {
      T sum = a(i, 0) * b(0, j);
      SHEAFNN_UNROLL for (int k = 1; k < K; ++k) sum += a(i, k) * b(k, j);
      r(i, j) = sum;
    }
  }
  return r;
}
template <class T, int R, int K, int C>
[[nodiscard]] SHEAFNN_HD SHEAFNN_NOINLINE Eigen::Matrix<T, R, C> multiply_apart(const Eigen::Matrix<T, R, K>& a,
                                                                                const Eigen::Matrix<T, K, C>& b) {
  return multiply_here(a, b);
}

template <class T, int R, int K, int C>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE Eigen::Matrix<T, R, C> multiply_tn_here(const Eigen::Matrix<T, K, R>& a,
                                                                                const Eigen::Matrix<T, K, C>& b) {
  Eigen::Matrix<T, R, C> r;
  SHEAFNN_UNROLL for (int j = 0; j < C; ++j) {
    SHEAFNN_UNROLL for (int i = 0; i < R; ++i) {
      T sum = a(0, i) * b(0, j);
      SHEAFNN_UNROLL for (int k = 1; k < K; ++k) sum += a(k, i) * b(k, j);
      r(i, j) = sum;
    }
  }
  return r;
}
template <class T, int R, int K, int C>
[[nodiscard]] SHEAFNN_HD SHEAFNN_NOINLINE Eigen::Matrix<T, R, C> multiply_tn_apart(
    const Eigen::Matrix<T, K, R>& a, const Eigen::Matrix<T, K, C>& b) {
  return multiply_tn_here(a, b);
}

template <class T, int R, int K, int C>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE Eigen::Matrix<T, R, C> multiply_nt_here(const Eigen::Matrix<T, R, K>& a,
                                                                                const Eigen::Matrix<T, C, K>& b) {
  Eigen::Matrix<T, R, C> r;
  SHEAFNN_UNROLL for (int j = 0; j < C; ++j) {
    SHEAFNN_UNROLL for (int i = 0; i < R; ++i) {
      T sum = a(i, 0) * b(j, 0);
      SHEAFNN_UNROLL for (int k = 1; k < K; ++k) sum += a(i, k) * b(j, k);
      r(i, j) = sum;
    }
  }
  return r;
}
template <class T, int R, int K, int C>
[[nodiscard]] SHEAFNN_HD SHEAFNN_NOINLINE Eigen::Matrix<T, R, C> multiply_nt_apart(
    const Eigen::Matrix<T, R, K>& a, const Eigen::Matrix<T, C, K>& b) {
  return multiply_nt_here(a, b);
}

}  // namespace sheafnn::detail

namespace sheafnn::math {

/// A B. Takes any matrices.
template <class T, int R, int K, int C>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE Eigen::Matrix<T, R, C> multiply(const Eigen::Matrix<T, R, K>& a,
                                                                        const Eigen::Matrix<T, K, C>& b) {
  if constexpr (R * K * C <= detail::largest_inline_product) {
    return detail::multiply_here(a, b);
  } else {
    return detail::multiply_apart(a, b);
  }
}

/// Aᵀ B. Takes any matrices.
template <class T, int R, int K, int C>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE Eigen::Matrix<T, R, C> multiply_tn(const Eigen::Matrix<T, K, R>& a,
                                                                           const Eigen::Matrix<T, K, C>& b) {
  if constexpr (R * K * C <= detail::largest_inline_product) {
    return detail::multiply_tn_here(a, b);
  } else {
    return detail::multiply_tn_apart(a, b);
  }
}

/// A Bᵀ. Takes any matrices.
template <class T, int R, int K, int C>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE Eigen::Matrix<T, R, C> multiply_nt(const Eigen::Matrix<T, R, K>& a,
                                                                           const Eigen::Matrix<T, C, K>& b) {
  if constexpr (R * K * C <= detail::largest_inline_product) {
    return detail::multiply_nt_here(a, b);
  } else {
    return detail::multiply_nt_apart(a, b);
  }
}

/// tr(Aᵀ B), the Frobenius inner product. Takes any matrices.
template <class T, int R, int C>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE T inner_product(const Eigen::Matrix<T, R, C>& a,
                                                        const Eigen::Matrix<T, R, C>& b) {
  T sum = T(0);
  SHEAFNN_UNROLL for (int j = 0; j < C; ++j) {
    SHEAFNN_UNROLL for (int i = 0; i < R; ++i) sum += a(i, j) * b(i, j);
  }
  return sum;
}

/// A⁻¹ B and log det A, by elimination without pivoting. For A whose symmetric part is positive definite, as
/// I + κU with κ < 1 and I − X with X skew-symmetric. Then every pivot is positive, and growth is bounded.
template <class T, int N, int C>
struct UnpivotedSolution {
  Eigen::Matrix<T, N, C> x;  ///< A⁻¹ B, N × C
  T determinant;             ///< det A, the product of the pivots
};

}  // namespace sheafnn::math

namespace sheafnn::detail {

template <bool Bounded, class T, int N, int C>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE UnpivotedSolution<T, N, C> solve_unpivoted_here(
    SquareMatrix<T, N> a, Eigen::Matrix<T, N, C> b, [[maybe_unused]] const T& least) {
  T determinant = T(1);
  SHEAFNN_UNROLL for (int k = 0; k < N; ++k) {
    if constexpr (Bounded) a(k, k) = select(a(k, k) < least, least, a(k, k));
    determinant = k > 0 ? determinant * a(k, k) : a(k, k);
    const T inverse_pivot = T(1) / a(k, k);
    SHEAFNN_UNROLL for (int i = k + 1; i < N; ++i) {
      const T factor = a(i, k) * inverse_pivot;
      SHEAFNN_UNROLL for (int j = k + 1; j < N; ++j) a(i, j) -= factor * a(k, j);
      SHEAFNN_UNROLL for (int j = 0; j < C; ++j) b(i, j) -= factor * b(k, j);
    }
  }
  SHEAFNN_UNROLL for (int k = N - 1; k >= 0; --k) {
    const T inverse_pivot = T(1) / a(k, k);
    SHEAFNN_UNROLL for (int j = 0; j < C; ++j) {
      T sum = b(k, j);
      SHEAFNN_UNROLL for (int i = k + 1; i < N; ++i) sum -= a(k, i) * b(i, j);
      b(k, j) = sum * inverse_pivot;
    }
  }
  return {b, determinant};
}
template <bool Bounded, class T, int N, int C>
[[nodiscard]] SHEAFNN_HD SHEAFNN_NOINLINE UnpivotedSolution<T, N, C> solve_unpivoted_apart(
    const SquareMatrix<T, N>& a, const Eigen::Matrix<T, N, C>& b, const T& least) {
  return solve_unpivoted_here<Bounded, T, N, C>(a, b, least);
}
template <bool Bounded, class T, int N, int C>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE UnpivotedSolution<T, N, C> solve_unpivoted_by_size(
    const SquareMatrix<T, N>& a, const Eigen::Matrix<T, N, C>& b, const T& least) {
  if constexpr (N * N * C <= detail::largest_inline_product) {
    return detail::solve_unpivoted_here<Bounded, T, N, C>(a, b, least);
  } else {
    return detail::solve_unpivoted_apart<Bounded, T, N, C>(a, b, least);
  }
}

}  // namespace sheafnn::detail

namespace sheafnn::math {

/// Solves A X = B. Unchecked: what A has to be, see UnpivotedSolution.
template <class T, int N, int C>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE UnpivotedSolution<T, N, C> solve_unpivoted(
    const SquareMatrix<T, N>& a, const Eigen::Matrix<T, N, C>& b) {
  return detail::solve_unpivoted_by_size<false, T, N, C>(a, b, T(0));
}
/// The same with pivots below `least`, which are rounding, replaced by it. Unchecked: that it is positive.
template <class T, int N, int C>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE UnpivotedSolution<T, N, C> solve_unpivoted(const SquareMatrix<T, N>& a,
                                                                                   const Eigen::Matrix<T, N, C>& b,
                                                                                   const T& least) {
  return detail::solve_unpivoted_by_size<true, T, N, C>(a, b, least);
}

}  // namespace sheafnn::math

namespace sheafnn {

using math::SquareMatrix;

}  // namespace sheafnn
