/// \file
/// Eigenvalues and eigenvectors of a small symmetric matrix by cyclic Jacobi rotations, branch-free over T.
///
/// Source: Golub, Van Loan, Matrix Computations, 8.5. The number of sweeps is fixed, so that all lanes of a pack and all GPU
/// threads do the same work. Rotations keep the diagonal sorted, so that convergence stays quadratic when eigenvalues
/// repeat, and the sweeps suffice for double precision.
#pragma once

#include <limits>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/mask_bits.hpp"
#include "sheafnn/core/small_matrix.hpp"

namespace sheafnn::sheaf {

/// P = Q diag(values) Qᵀ with Q orthogonal; values decreasing up to rounding.
template <class T, int N>
struct SymmetricEigen {
  SquareMatrix<T, N> vectors;  ///< Q, one eigenvector per column
  Column<T, N> values;
};

}  // namespace sheafnn::sheaf

namespace sheafnn::detail {

/// Annihilates a(k, l), k < l, by the rotation that leaves a(k, k) ≥ a(l, l), and applies it to the columns of q.
template <class T, int N>
SHEAFNN_HD SHEAFNN_INLINE void jacobi_rotation(SquareMatrix<T, N>& a, SquareMatrix<T, N>& q, int k, int l) {
  using std::abs;
  using std::sqrt;
  const T tiny = T(std::numeric_limits<scalar_of_t<T>>::min());
  const T coupling = a(k, l);
  const T half_gap = T(0.5) * (a(l, l) - a(k, k));
  // At least |coupling|, also where the squares underflow: |tangent| ≤ 1 always.
  const T root = sqrt(half_gap * half_gap + coupling * coupling);
  const T strength = abs(coupling);
  const T magnitude = abs(half_gap) + select(root < strength, strength, root) + tiny;
  const T tangent = select(half_gap < T(0), -coupling, coupling) / magnitude;
  const T small_cosine = T(1) / sqrt(T(1) + tangent * tangent);
  const T small_sine = tangent * small_cosine;
  const T first = a(k, k) - tangent * coupling;
  const T second = a(l, l) + tangent * coupling;
  // An additional quarter turn keeps the diagonal sorted, so repeated eigenvalues stay neighbours. Otherwise the
  // couplings between clusters of eigenvalues would shrink only linearly.
  const auto swap = first < second;
  const T cosine = select(swap, small_sine, small_cosine);
  const T sine = select(swap, -small_cosine, small_sine);
  a(k, k) = select(swap, second, first);
  a(l, l) = select(swap, first, second);
  a(k, l) = T(0);
  a(l, k) = T(0);
  SHEAFNN_UNROLL for (int i = 0; i < N; ++i) {
    if (i != k && i != l) {
      const T x = a(i, k);
      const T y = a(i, l);
      a(i, k) = cosine * x - sine * y;
      a(i, l) = sine * x + cosine * y;
      a(k, i) = a(i, k);
      a(l, i) = a(i, l);
    }
    const T x = q(i, k);
    const T y = q(i, l);
    q(i, k) = cosine * x - sine * y;
    q(i, l) = sine * x + cosine * y;
  }
}

}  // namespace sheafnn::detail

namespace sheafnn::sheaf {

/// Decomposes a symmetric matrix; only finite input gives finite output. Error: a few units in the last place of
/// ‖P‖. Unchecked: that it is symmetric.
template <class T, int N>
[[nodiscard]] SHEAFNN_HD SHEAFNN_NOINLINE SymmetricEigen<T, N> symmetric_eigen(const SquareMatrix<T, N>& p) {
  using std::abs;
  constexpr int sweeps = N == 1 ? 0 : N == 2 ? 1 : N == 3 ? 5 : N == 4 ? 6 : 8;
  // Work on P / size, so that squares neither overflow nor underflow.
  T size = T(std::numeric_limits<scalar_of_t<T>>::min());
  for (int j = 0; j < N; ++j) {
    for (int i = 0; i < N; ++i) size += abs(p(i, j));
  }
  const T inverse_size = T(1) / size;
  SquareMatrix<T, N> a;
  for (int j = 0; j < N; ++j) {
    for (int i = 0; i < N; ++i) a(i, j) = p(i, j) * inverse_size;
  }
  SymmetricEigen<T, N> r;
  r.vectors = identity_matrix<T, N>();
  // Couplings shrink quadratically; a coupling far below the rounding of ‖P‖ counts as 0.
  constexpr scalar_of_t<T> none = std::numeric_limits<scalar_of_t<T>>::epsilon() / 64;
  for (int sweep = 0; sweep < sweeps; ++sweep) {
    if (N > 2 && sweep > 1) {
      T coupling = T(0);
      for (int j = 1; j < N; ++j) {
        for (int i = 0; i < j; ++i) coupling += abs(a(i, j));
      }
      if (!any(coupling > T(none))) break;
    }
    if constexpr (N <= 5) {
      SHEAFNN_UNROLL for (int k = 0; k < N - 1; ++k) {
        SHEAFNN_UNROLL for (int l = k + 1; l < N; ++l) detail::jacobi_rotation(a, r.vectors, k, l);
      }
    } else {  // unrolled, these would take a compiler minutes
      for (int k = 0; k < N - 1; ++k) {
        for (int l = k + 1; l < N; ++l) detail::jacobi_rotation(a, r.vectors, k, l);
      }
    }
  }
  for (int i = 0; i < N; ++i) r.values(i) = a(i, i) * size;
  return r;
}

}  // namespace sheafnn::sheaf
