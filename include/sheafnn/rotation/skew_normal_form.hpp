/// \file
/// Normal form X = W diag(θ_1 J, θ_2 J, …, 0) Wᵀ of skew-symmetric matrices, J = (0, −1; 1, 0), W orthogonal, the 0 for odd N
/// only.
///
/// Householder reflections make X tridiagonal. Even rows and columns first, a tridiagonal X is (0, B; −Bᵀ, 0). The singular
/// values of B, found by one-sided Jacobi rotations, are the angles. Source: math: "Large parameters" (2.44).
#pragma once

#include <cmath>
#include <limits>
#include <type_traits>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/pack.hpp"
#include "sheafnn/core/small_matrix.hpp"
#include "sheafnn/rotation/skew.hpp"

namespace sheafnn::detail {

/// The power of 2 with scale ≤ max |φ_k| < 2 scale; NaN where that is infinite.
template <class T, int P>
[[nodiscard]] SHEAFNN_HD T binary_scale(const Column<T, P>& phi) {
  T largest = T(0);
  for (int k = 0; k < P; ++k) largest = std::abs(phi(k)) > largest ? std::abs(phi(k)) : largest;
  if (largest == T(0)) return T(1);
  if (!(largest <= std::numeric_limits<T>::max())) return std::numeric_limits<T>::quiet_NaN();
  int exponent = 0;
  static_cast<void>(std::frexp(largest, &exponent));
  return std::ldexp(T(1), exponent - 1);
}

/// X_φ/scale, its angles ≥ 0 and its basis: X W_{2j} = θ_j W_{2j+1}, X W_{2j+1} = −θ_j W_{2j}.
template <class T, int N>
struct SkewNormalForm {
  SquareMatrix<T, N> basis;  ///< W
  T angle[N / 2];            ///< θ_j/scale
  T scale;                   ///< a power of 2
};

/// Exchanges two axes of A = Wᵀ X W.
template <class T, int N>
SHEAFNN_HD void swap_axes(SquareMatrix<T, N>& a, SquareMatrix<T, N>& w, int first, int second) {
  if (first == second) return;
  for (int i = 0; i < N; ++i) {
    const T entry = a(first, i);
    a(first, i) = a(second, i);
    a(second, i) = entry;
  }
  for (int i = 0; i < N; ++i) {
    const T entry = a(i, first), of_basis = w(i, first);
    a(i, first) = a(i, second);
    a(i, second) = entry;
    w(i, first) = w(i, second);
    w(i, second) = of_basis;
  }
}

/// A = W T Wᵀ with tridiagonal T; A becomes T. The largest entry comes first, and the largest of each column: a matrix that
/// is tridiagonal except for the order of its axes loses nothing. One large entry does not round the others away.
template <class T, int N>
SHEAFNN_HD void skew_tridiagonalise(SquareMatrix<T, N>& a, SquareMatrix<T, N>& w) {
  int largest_column = 0;
  T largest = T(0);
  for (int j = 0; j < N; ++j) {
    for (int i = j + 1; i < N; ++i) {
      if (!(std::abs(a(i, j)) > largest)) continue;
      largest = std::abs(a(i, j));
      largest_column = j;
    }
  }
  swap_axes<T, N>(a, w, 0, largest_column);
  for (int k = 0; k + 2 < N; ++k) {
    int pivot = k + 1;
    for (int i = k + 2; i < N; ++i) pivot = std::abs(a(i, k)) > std::abs(a(pivot, k)) ? i : pivot;
    swap_axes<T, N>(a, w, k + 1, pivot);
    const T head = a(k + 1, k);
    T rest = T(0);
    for (int i = k + 2; i < N; ++i) rest += (a(i, k) / head) * (a(i, k) / head);
    if (!(rest > T(0))) continue;  // nothing to do, or a column of zeros
    const T length = std::sqrt(T(1) + rest);
    // I − β u uᵀ takes the column to −head · length e_{k+1}; u_{k+1} = 1.
    T u[N], image[N];
    T squared = T(1);
    u[k + 1] = T(1);
    for (int i = k + 2; i < N; ++i) {
      u[i] = (a(i, k) / head) / (T(1) + length);
      squared += u[i] * u[i];
    }
    const T beta = T(2) / squared;
    for (int i = k + 1; i < N; ++i) {
      image[i] = T(0);
      for (int j = k + 1; j < N; ++j) image[i] += a(i, j) * u[j];
    }
    for (int j = k + 1; j < N; ++j) {
      for (int i = j + 1; i < N; ++i) {
        a(i, j) += beta * (u[i] * image[j] - image[i] * u[j]);
        a(j, i) = -a(i, j);
      }
    }
    a(k + 1, k) = -head * length;
    a(k, k + 1) = -a(k + 1, k);
    for (int i = k + 2; i < N; ++i) a(i, k) = a(k, i) = T(0);
    for (int i = 0; i < N; ++i) {
      T sum = T(0);
      for (int j = k + 1; j < N; ++j) sum += w(i, j) * u[j];
      sum *= beta;
      for (int j = k + 1; j < N; ++j) w(i, j) -= sum * u[j];
    }
  }
}

/// ‖column‖ of entries whose squares may underflow.
template <class T, int R, int C>
[[nodiscard]] SHEAFNN_HD T column_length(const Eigen::Matrix<T, R, C>& m, int column) {
  T largest = T(0), sum = T(0);
  for (int i = 0; i < R; ++i) largest = std::abs(m(i, column)) > largest ? std::abs(m(i, column)) : largest;
  if (!(largest > T(0))) return T(0);
  for (int i = 0; i < R; ++i) sum += (m(i, column) / largest) * (m(i, column) / largest);
  return largest * std::sqrt(sum);
}

/// Turns columns i and j.
template <class T, int R, int C>
SHEAFNN_HD void rotate_columns(Eigen::Matrix<T, R, C>& m, int i, int j, T cosine, T sine) {
  for (int k = 0; k < R; ++k) {
    const T left = m(k, i), right = m(k, j);
    m(k, i) = cosine * left - sine * right;
    m(k, j) = sine * left + cosine * right;
  }
}

/// Makes the columns of B orthogonal: B becomes B V. One-sided Jacobi rotations (Hestenes).
template <class T, int R, int C>
SHEAFNN_HD void orthogonalise_columns(Eigen::Matrix<T, R, C>& b, Eigen::Matrix<T, C, C>& v) {
  v = identity_matrix<T, C>();
  constexpr T least = T(2) * std::numeric_limits<T>::epsilon();
  bool changed = C > 1;
  for (int sweep = 0; sweep < 24 && changed; ++sweep) {
    changed = false;
    for (int i = 0; i < C; ++i) {
      for (int j = i + 1; j < C; ++j) {
        const T first = column_length(b, i), second = column_length(b, j);
        if (!(first > T(0) && second > T(0))) continue;
        T cosine = T(0);
        for (int k = 0; k < R; ++k) cosine += (b(k, i) / first) * (b(k, j) / second);
        if (!(std::abs(cosine) > least)) continue;
        changed = true;
        const T zeta = (second / first - first / second) / (T(2) * cosine);
        const T size = std::abs(zeta);
        // 1 is lost in the rounding of 1e8², even in double.
        const T positive = size > T(1e8) ? T(0.5) / size : T(1) / (size + std::sqrt(T(1) + size * size));
        const T tangent = zeta < T(0) ? -positive : positive;
        const T c = T(1) / std::sqrt(T(1) + tangent * tangent), s = c * tangent;
        rotate_columns(b, i, j, c, s);
        rotate_columns(v, i, j, c, s);
      }
    }
  }
}

/// The normal form of X_φ; NaN for a φ with an infinite entry.
template <class T, int N>
[[nodiscard]] SHEAFNN_HD SHEAFNN_SELDOM SkewNormalForm<T, N> skew_normal_form(
    const RotationParameters<T, N>& phi) {
  static_assert(N >= 2 && std::is_floating_point_v<T>);
  constexpr int pairs = N / 2, evens = (N + 1) / 2;
  SkewNormalForm<T, N> r;
  r.scale = binary_scale<T, rotation_parameters<N>>(phi);
  RotationParameters<T, N> scaled;
  for (int k = 0; k < rotation_parameters<N>; ++k) scaled(k) = phi(k) / r.scale;
  SquareMatrix<T, N> a = skew_matrix<T, N>(scaled), w = identity_matrix<T, N>();
  skew_tridiagonalise<T, N>(a, w);
  // B, rows even, columns odd.
  Eigen::Matrix<T, evens, pairs> b;
  for (int j = 0; j < pairs; ++j) {
    for (int i = 0; i < evens; ++i) b(i, j) = i == j || i == j + 1 ? a(2 * i, 2 * j + 1) : T(0);
  }
  SquareMatrix<T, pairs> v;
  orthogonalise_columns<T, evens, pairs>(b, v);
  // Left singular vectors; of angles 0 and, for odd N, of the axis, any that complete them.
  SquareMatrix<T, evens> u;
  bool known[evens];
  for (int j = 0; j < evens; ++j) known[j] = false;
  for (int j = 0; j < pairs; ++j) {
    r.angle[j] = column_length(b, j);
    known[j] = r.angle[j] > T(0);
    if (!known[j]) continue;
    for (int i = 0; i < evens; ++i) u(i, j) = b(i, j) / r.angle[j];
  }
  for (int j = 0; j < evens; ++j) {
    if (known[j]) continue;
    int axis = 0;
    T least = T(2);
    for (int i = 0; i < evens; ++i) {
      T share = T(0);
      for (int k = 0; k < evens; ++k) share += known[k] ? u(i, k) * u(i, k) : T(0);
      if (share < least) {
        least = share;
        axis = i;
      }
    }
    for (int i = 0; i < evens; ++i) u(i, j) = T(i == axis ? 1 : 0);
    for (int repeat = 0; repeat < 2; ++repeat) {
      for (int k = 0; k < evens; ++k) {
        if (!known[k]) continue;
        T sum = T(0);
        for (int i = 0; i < evens; ++i) sum += u(i, k) * u(i, j);
        for (int i = 0; i < evens; ++i) u(i, j) -= sum * u(i, k);
      }
      const T length = column_length(u, j);
      for (int i = 0; i < evens; ++i) u(i, j) /= length;
    }
    known[j] = true;
  }
  for (int i = 0; i < N; ++i) {
    for (int j = 0; j < evens; ++j) {
      T even = T(0), odd = T(0);
      for (int k = 0; k < evens; ++k) even += w(i, 2 * k) * u(k, j);
      if (j < pairs) {
        for (int k = 0; k < pairs; ++k) odd += w(i, 2 * k + 1) * v(k, j);
        r.basis(i, 2 * j) = odd;
        r.basis(i, 2 * j + 1) = even;
      } else {
        r.basis(i, N - 1) = even;
      }
    }
  }
  return r;
}

}  // namespace sheafnn::detail
