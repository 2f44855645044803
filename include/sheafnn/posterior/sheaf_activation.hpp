/// \file
/// SheafActivation: the function of a sheaf learner's raw outputs before a map is formed (for rotations: before their
/// parametrisation). It acts elementwise, except for attention.
///
///     tanh, identity, ELU;     residual:  F = I + the outputs, of families whose coordinates are entries of the map;
///     attention and exponential, of D × D values row by row:  F = I − softmax of each row,  so F 1 = 0;
///     F = exp of the matrix, see matrix_exponential()
///
/// Source: math: "Sheaf learner".
#pragma once

#include <array>
#include <cmath>
#include <cstdint>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/names.hpp"
#include "sheafnn/core/small_matrix.hpp"
#include "sheafnn/nn/activation.hpp"
#include "sheafnn/sheaf/family.hpp"

namespace sheafnn {

/// See the top of this file.
enum class SheafActivation : std::uint8_t { tanh, identity, elu, attention, residual, exponential };
/// Its names, in the order of the enumeration.
[[nodiscard]] constexpr auto names_of(SheafActivation) {
  return std::array{"tanh", "identity", "elu", "attention", "residual", "exponential"};
}

namespace detail {

/// Are maps the identity where the raw outputs are 0?
[[nodiscard]] SHEAFNN_HD constexpr bool starts_at_identity(SheafActivation activation) {
  return activation == SheafActivation::residual || activation == SheafActivation::exponential;
}

/// Activates `count` raw outputs with any of the elementwise activations, `residual` without the I. T = float, double or Pack.
template <int count, class T>
SHEAFNN_HD SHEAFNN_INLINE void activate_raw(SheafActivation activation, const T* raw, T* out) {
  using std::tanh;
  switch (activation) {
    case SheafActivation::identity:
    case SheafActivation::residual:
      SHEAFNN_UNROLL for (int k = 0; k < count; ++k) out[k] = raw[k];
      break;
    case SheafActivation::elu:
      SHEAFNN_UNROLL for (int k = 0; k < count; ++k) out[k] = elu(raw[k]);
      break;
    default:
      SHEAFNN_UNROLL for (int k = 0; k < count; ++k) out[k] = tanh(raw[k]);
  }
}

/// The derivative of such an activation, from its value.
template <class T>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE T raw_slope(SheafActivation activation, const T& value) {
  switch (activation) {
    case SheafActivation::identity:
    case SheafActivation::residual:
      return T(1);
    case SheafActivation::elu:
      return elu_slope(value);
    default:
      return T(1) - value * value;
  }
}

/// Coordinate k of the identity map, of families whose coordinates are the map's entries: all D² row by row, or the
/// diagonal.
template <class Family>
[[nodiscard]] SHEAFNN_HD constexpr double identity_coordinate(int k) {
  constexpr int D = Family::stalk_dimension;
  return Family::coordinate_count == D || k % (D + 1) == 0 ? 1 : 0;
}

/// Adds the coordinates of I to z if the activation is `residual`; for other families z does not change.
template <class Family, class T>
SHEAFNN_HD SHEAFNN_INLINE void add_identity([[maybe_unused]] SheafActivation activation, [[maybe_unused]] T* z) {
  if constexpr (may_be_residual<Family>) {
    if (activation != SheafActivation::residual) return;
    SHEAFNN_UNROLL for (int k = 0; k < Family::coordinate_count; ++k) {
      z[k] = z[k] + T(static_cast<scalar_of_t<T>>(identity_coordinate<Family>(k)));
    }
  }
}

/// z = I − rowwise softmax(raw), all D × D, row by row.
template <int D, class T>
SHEAFNN_HD SHEAFNN_INLINE void attention(const T* raw, T* z) {
  using std::exp;
  for (int i = 0; i < D; ++i) {
    const T* row = raw + i * D;
    T largest = row[0], sum = T(0);
    for (int j = 1; j < D; ++j) largest = select(row[j] > largest, row[j], largest);
    for (int j = 0; j < D; ++j) {
      z[i * D + j] = exp(row[j] - largest);
      sum = sum + z[i * D + j];
    }
    for (int j = 0; j < D; ++j) z[i * D + j] = T(i == j ? 1 : 0) - z[i * D + j] / sum;
  }
}
/// With p = I − z: raw̄_ij = −p_ij (z̄_ij − Σ_k p_ik z̄_ik).
template <int D, class T>
SHEAFNN_HD SHEAFNN_INLINE void attention_backward(const T* z, const T* z_bar, T* raw_bar) {
  for (int i = 0; i < D; ++i) {
    const auto p = [&](int j) { return T(i == j ? 1 : 0) - z[i * D + j]; };
    T mean = T(0);
    for (int j = 0; j < D; ++j) mean = mean + p(j) * z_bar[i * D + j];
    for (int j = 0; j < D; ++j) raw_bar[i * D + j] = p(j) * (mean - z_bar[i * D + j]);
  }
}

/// The exponential of an N × N matrix A as (Σ_{k ≤ d} (A/16)^k / k!)^16, and what its backward pass needs. With d = 8 in single
/// and 14 in double precision its relative error is below rounding where ‖A‖ ≤ 6.
template <class T, int N>
struct MatrixExponential {
  static constexpr int degree = sizeof(scalar_of_t<T>) == sizeof(float) ? 8 : 14, squarings = 4;
  SquareMatrix<T, N> argument;               ///< A/16
  SquareMatrix<T, N> horner[degree];         ///< H_k = I + (A/16) H_{k+1}/k, k = 1 … d, H_{d+1} = I
  SquareMatrix<T, N> square[squarings + 1];  ///< E_0 = H_1, E_{i+1} = E_i²
};
template <class T, int N>
SHEAFNN_HD inline void matrix_exponential(const T* a, MatrixExponential<T, N>& e) {
  for (int k = 0; k < N * N; ++k) e.argument(k / N, k % N) = a[k] * T(0.0625F);
  SquareMatrix<T, N> above = identity_matrix<T, N>();
  for (int k = e.degree; k >= 1; --k) {
    SquareMatrix<T, N>& h = e.horner[k - 1];
    h = multiply(e.argument, above);
    const T share = T(1) / T(static_cast<scalar_of_t<T>>(k));
    for (int j = 0; j < N; ++j) {
      for (int i = 0; i < N; ++i) h(i, j) = share * h(i, j) + T(i == j ? 1 : 0);
    }
    above = h;
  }
  e.square[0] = above;
  for (int i = 0; i < e.squarings; ++i) e.square[i + 1] = multiply(e.square[i], e.square[i]);
}
/// ā, row by row, from the derivative of exp(A).
template <class T, int N>
SHEAFNN_HD inline void matrix_exponential_backward(const MatrixExponential<T, N>& e, SquareMatrix<T, N> bar,
                                                   T* a_bar) {
  for (int i = e.squarings - 1; i >= 0; --i) {
    bar = (multiply_nt(bar, e.square[i]) + multiply_tn(e.square[i], bar)).eval();
  }
  SquareMatrix<T, N> argument_bar = SquareMatrix<T, N>::Zero();
  for (int k = 1; k <= e.degree; ++k) {
    const T share = T(1) / T(static_cast<scalar_of_t<T>>(k));
    for (int j = 0; j < N; ++j) {
      for (int i = 0; i < N; ++i) bar(i, j) = share * bar(i, j);
    }
    if (k == e.degree) {
      argument_bar += bar;
      break;
    }
    argument_bar += multiply_nt(bar, e.horner[k]);
    bar = multiply_tn(e.argument, bar);
  }
  for (int k = 0; k < N * N; ++k) a_bar[k] = argument_bar(k / N, k % N) * T(0.0625F);
}

/// z = the entries of exp(raw), all D × D, row by row.
template <int D, class T>
SHEAFNN_HD inline void exponential_entries(const T* raw, T* z) {
  MatrixExponential<T, D> e;
  matrix_exponential<T, D>(raw, e);
  for (int k = 0; k < D * D; ++k) z[k] = e.square[e.squarings](k / D, k % D);
}
/// raw̄ from z̄. raw_bar may be z_bar.
template <int D, class T>
SHEAFNN_HD inline void exponential_entries_backward(const T* raw, const T* z_bar, T* raw_bar) {
  MatrixExponential<T, D> e;
  matrix_exponential<T, D>(raw, e);
  SquareMatrix<T, D> bar;
  for (int k = 0; k < D * D; ++k) bar(k / D, k % D) = z_bar[k];
  matrix_exponential_backward<T, D>(e, bar, raw_bar);
}

/// z = a family's coordinates from raw outputs, in all activations but attention.
template <class Family, class T>
SHEAFNN_HD SHEAFNN_INLINE void activate_coordinates(SheafActivation activation, const T* raw, T* z) {
  if constexpr (may_attend<Family>) {
    if (activation == SheafActivation::exponential) {
      exponential_entries<Family::stalk_dimension>(raw, z);
      return;
    }
  }
  activate_raw<Family::coordinate_count>(activation, raw, z);
  add_identity<Family>(activation, z);
}
/// raw̄ from z̄. raw_bar may be z_bar.
template <class Family, class T>
SHEAFNN_HD SHEAFNN_INLINE void activate_coordinates_backward(SheafActivation activation, [[maybe_unused]] const T* raw,
                                                             const T* z, const T* z_bar, T* raw_bar) {
  if constexpr (may_attend<Family>) {
    if (activation == SheafActivation::exponential) {
      exponential_entries_backward<Family::stalk_dimension>(raw, z_bar, raw_bar);
      return;
    }
  }
  SHEAFNN_UNROLL for (int k = 0; k < Family::coordinate_count; ++k) {
    raw_bar[k] = z_bar[k] * raw_slope(activation, z[k]);
  }
}

}  // namespace detail

}  // namespace sheafnn
