/// \file
/// Skew-symmetric matrices X_φ, their coordinates φ, and how φ is numbered.
///
/// Source: math, "Rotations": φ fills the strictly lower triangle of X_φ column by column.
#pragma once

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/small_matrix.hpp"

namespace sheafnn::rotation {

/// The dimension of SO(N), which is the length of φ.
template <int N>
inline constexpr int rotation_parameters = N*(N - 1) / 2;

/// φ of a rotation of R^N.
template <class T, int N>
using RotationParameters = Column<T, rotation_parameters<N>>;

}  // namespace sheafnn::rotation

namespace sheafnn::detail {

/// Number of entry (i, j), i > j, when the strictly lower triangle of an N × N matrix is read column by column.
template <int N>
[[nodiscard]] SHEAFNN_HD constexpr int column_by_column(int i, int j) {
  return j * N - j * (j + 1) / 2 + i - j - 1;
}
/// The same, row by row.
[[nodiscard]] SHEAFNN_HD constexpr int row_by_row(int i, int j) { return i * (i - 1) / 2 + j; }

/// φ from the strictly lower triangle alone.
template <class T, int N>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE RotationParameters<T, N> lower_triangle(const SquareMatrix<T, N>& a) {
  RotationParameters<T, N> phi;
  SHEAFNN_UNROLL for (int j = 0; j < N; ++j) {
    SHEAFNN_UNROLL for (int i = j + 1; i < N; ++i) phi(column_by_column<N>(i, j)) = a(i, j);
  }
  return phi;
}

}  // namespace sheafnn::detail

namespace sheafnn::rotation {

/// X_φ (N × N): φ in the strictly lower triangle column by column, −φ mirrored above it. Takes any numbers.
template <class T, int N>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE SquareMatrix<T, N> skew_matrix(const RotationParameters<T, N>& phi) {
  SquareMatrix<T, N> r;
  SHEAFNN_UNROLL for (int j = 0; j < N; ++j) {
    r(j, j) = T(0);
    SHEAFNN_UNROLL for (int i = j + 1; i < N; ++i) {
      r(i, j) = phi(detail::column_by_column<N>(i, j));
      r(j, i) = -r(i, j);
    }
  }
  return r;
}

/// φ of a skew-symmetric matrix; of any other matrix A, φ of its skew part (A − Aᵀ)/2. Takes any numbers.
template <class T, int N>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE RotationParameters<T, N> skew_parameters(const SquareMatrix<T, N>& a) {
  RotationParameters<T, N> phi;
  SHEAFNN_UNROLL for (int j = 0; j < N; ++j) {
    SHEAFNN_UNROLL for (int i = j + 1; i < N; ++i) {
      phi(detail::column_by_column<N>(i, j)) = T(0.5) * (a(i, j) - a(j, i));
    }
  }
  return phi;
}

/// Adds d⟨cotangent, X_φ⟩/dφ to `gradient`. Takes any numbers.
template <class T, int N>
SHEAFNN_HD SHEAFNN_INLINE void skew_matrix_backward(const SquareMatrix<T, N>& cotangent,
                                                    RotationParameters<T, N>& gradient) {
  SHEAFNN_UNROLL for (int j = 0; j < N; ++j) {
    SHEAFNN_UNROLL for (int i = j + 1; i < N; ++i) {
      gradient(detail::column_by_column<N>(i, j)) += cotangent(i, j) - cotangent(j, i);
    }
  }
}

}  // namespace sheafnn::rotation
