/// \file
/// Normal form X = W diag(θ_1 J, θ_2 J, …, 0) Wᵀ of skew-symmetric matrices, J = (0, −1; 1, 0), W orthogonal, the 0 for odd N
/// only, and the functions of X that it gives. They serve where X is too large for the short schemes of exponential.hpp and
/// cayley_transform.hpp: they are orthogonal to rounding for every finite X.
///
/// Householder reflections make X tridiagonal. Sorted by even and odd numbers, a tridiagonal matrix is (0, B; −Bᵀ, 0); the
/// singular values of B, found by one-sided Jacobi rotations, are the angles. Source: math: "Large parameters" (2.44).
#pragma once

#include <cmath>
#include <limits>
#include <type_traits>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/pack.hpp"
#include "sheafnn/core/small_matrix.hpp"
#include "sheafnn/rotation/skew.hpp"

namespace sheafnn::detail {

/// Lanes of a pack; 1 for a scalar.
template <class T>
[[nodiscard]] SHEAFNN_HD constexpr int lanes_of() {
  if constexpr (std::is_arithmetic_v<T>) {
    return 1;
  } else {
    return T::width;
  }
}
template <class T>
[[nodiscard]] SHEAFNN_HD scalar_of_t<T> lane_of(const T& value, [[maybe_unused]] int lane) {
  if constexpr (std::is_arithmetic_v<T>) {
    return value;
  } else {
    return value.lane(lane);
  }
}
template <class T, int R, int C>
[[nodiscard]] SHEAFNN_HD Eigen::Matrix<scalar_of_t<T>, R, C> matrix_lane(const Eigen::Matrix<T, R, C>& m,
                                                                         int lane) {
  Eigen::Matrix<scalar_of_t<T>, R, C> r;
  for (int j = 0; j < C; ++j) {
    for (int i = 0; i < R; ++i) r(i, j) = lane_of(m(i, j), lane);
  }
  return r;
}
template <class T>
SHEAFNN_HD void set_lane_of(T& target, [[maybe_unused]] int lane, scalar_of_t<T> value) {
  if constexpr (std::is_arithmetic_v<T>) {
    target = value;
  } else {
    target.set_lane(lane, value);
  }
}
template <class T, int R, int C>
SHEAFNN_HD void set_matrix_lane(Eigen::Matrix<T, R, C>& m, int lane,
                                const Eigen::Matrix<scalar_of_t<T>, R, C>& value) {
  for (int j = 0; j < C; ++j) {
    for (int i = 0; i < R; ++i) set_lane_of(m(i, j), lane, value(i, j));
  }
}

/// ‖φ‖²; infinite where it overflows.
template <class T, int P>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE T squared_length(const Column<T, P>& phi) {
  T squared = T(0);
  SHEAFNN_UNROLL for (int k = 0; k < P; ++k) squared += phi(k) * phi(k);
  return squared;
}

template <class T>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE T absolute(T a) {
  return a < T(0) ? -a : a;
}

/// The power of 2 with scale ≤ max |φ_k| < 2 scale; NaN where that is infinite.
template <class T, int P>
[[nodiscard]] SHEAFNN_HD T binary_scale(const Column<T, P>& phi) {
  T largest = T(0);
  for (int k = 0; k < P; ++k) largest = absolute(phi(k)) > largest ? absolute(phi(k)) : largest;
  if (largest == T(0)) return T(1);
  if (!(largest <= std::numeric_limits<T>::max())) return std::numeric_limits<T>::quiet_NaN();
  int exponent = 0;
  static_cast<void>(std::frexp(largest, &exponent));
  return std::ldexp(T(1), exponent - 1);
}

template <class T>
struct SineCosine {
  T sine, cosine;
};
/// Sine and cosine of x · scale, which may be above the largest number.
template <class T>
[[nodiscard]] SHEAFNN_HD SineCosine<T> sine_and_cosine(T x, T scale) {
  const T angle = x * scale;
  const bool representable = absolute(angle) <= std::numeric_limits<T>::max();
  const T part = representable ? angle : x * (scale / T(64));
  SineCosine<T> r{std::sin(part), std::cos(part)};
  if (!representable) {
    for (int k = 0; k < 6; ++k) r = {T(2) * r.sine * r.cosine, (r.cosine - r.sine) * (r.cosine + r.sine)};
  }
  return r;
}

/// X_φ/scale, its angles ≥ 0 and its basis: X W_{2j} = θ_j W_{2j+1}, X W_{2j+1} = −θ_j W_{2j}.
template <class T, int N>
struct SkewNormalForm {
  static constexpr int pairs = N / 2;
  SquareMatrix<T, N> basis;  ///< W
  T angle[pairs];            ///< θ_j/scale
  T scale;                   ///< a power of 2
};

/// A = W T Wᵀ with tridiagonal T; A becomes T. The largest entry of a column comes first, so that a matrix that is
/// tridiagonal but for the order of its axes loses nothing.
template <class T, int N>
SHEAFNN_HD void skew_tridiagonalise(SquareMatrix<T, N>& a, SquareMatrix<T, N>& w) {
  for (int k = 0; k + 2 < N; ++k) {
    int pivot = k + 1;
    for (int i = k + 2; i < N; ++i) pivot = absolute(a(i, k)) > absolute(a(pivot, k)) ? i : pivot;
    if (pivot != k + 1) {
      for (int i = 0; i < N; ++i) {
        const T entry = a(k + 1, i);
        a(k + 1, i) = a(pivot, i);
        a(pivot, i) = entry;
      }
      for (int i = 0; i < N; ++i) {
        const T entry = a(i, k + 1), of_basis = w(i, k + 1);
        a(i, k + 1) = a(i, pivot);
        a(i, pivot) = entry;
        w(i, k + 1) = w(i, pivot);
        w(i, pivot) = of_basis;
      }
    }
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

/// ‖column‖ of numbers whose squares may underflow.
template <class T, int R, int C>
[[nodiscard]] SHEAFNN_HD T column_length(const Eigen::Matrix<T, R, C>& m, int column) {
  T largest = T(0), sum = T(0);
  for (int i = 0; i < R; ++i) largest = absolute(m(i, column)) > largest ? absolute(m(i, column)) : largest;
  if (!(largest > T(0))) return T(0);
  for (int i = 0; i < R; ++i) sum += (m(i, column) / largest) * (m(i, column) / largest);
  return largest * std::sqrt(sum);
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
        if (!(absolute(cosine) > least)) continue;
        changed = true;
        const T zeta = (second / first - first / second) / (T(2) * cosine);
        const T size = absolute(zeta);
        // 1e8² is not beside 1, in float neither.
        const T positive = size > T(1e8) ? T(0.5) / size : T(1) / (size + std::sqrt(T(1) + size * size));
        const T tangent = zeta < T(0) ? -positive : positive;
        const T c = T(1) / std::sqrt(T(1) + tangent * tangent), s = c * tangent;
        for (int k = 0; k < R; ++k) {
          const T left = b(k, i), right = b(k, j);
          b(k, i) = c * left - s * right;
          b(k, j) = s * left + c * right;
        }
        for (int k = 0; k < C; ++k) {
          const T left = v(k, i), right = v(k, j);
          v(k, i) = c * left - s * right;
          v(k, j) = s * left + c * right;
        }
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

/// W diag(c_1 I + s_1 J, c_2 I + s_2 J, …, 1) Wᵀ.
template <class T, int N>
[[nodiscard]] SHEAFNN_HD SquareMatrix<T, N> from_blocks(const SkewNormalForm<T, N>& form,
                                                        const SineCosine<T> (&block)[N / 2]) {
  SquareMatrix<T, N> image;  // of W
  for (int i = 0; i < N; ++i) {
    for (int j = 0; j < N / 2; ++j) {
      const T first = form.basis(i, 2 * j), second = form.basis(i, 2 * j + 1);
      image(i, 2 * j) = block[j].cosine * first + block[j].sine * second;
      image(i, 2 * j + 1) = block[j].cosine * second - block[j].sine * first;
    }
    if constexpr (N % 2 == 1) image(i, N - 1) = form.basis(i, N - 1);
  }
  return multiply_nt(image, form.basis);
}

/// exp(X) of R³ by Rodrigues' formula. The angle has twice the digits of T, so that the rotation is that of φ to rounding,
/// not only to ε‖φ‖, up to ‖φ‖ = 1/ε.
template <class T>
[[nodiscard]] SHEAFNN_HD SHEAFNN_SELDOM SquareMatrix<T, 3> far_exponential_3(const RotationParameters<T, 3>& phi) {
  const T scale = binary_scale<T, 3>(phi);
  T v[3], sum = T(0), rest = T(0);
  for (int k = 0; k < 3; ++k) {
    v[k] = phi(k) / scale;
    const T square = v[k] * v[k];
    const T next = sum + square;
    const T added = next - sum;
    rest += ((sum - (next - added)) + (square - added)) + std::fma(v[k], v[k], -square);
    sum = next;
  }
  const T root = std::sqrt(sum);
  const T correction = (std::fma(-root, root, sum) + rest) / (T(2) * root);
  const SineCosine<T> large = sine_and_cosine(root, scale), small = sine_and_cosine(correction, scale);
  const T sine = large.sine * small.cosine + large.cosine * small.sine;
  const T cosine = large.cosine * small.cosine - large.sine * small.sine;
  const T x = v[2] / root, y = -v[1] / root, z = v[0] / root;
  const T axis[3] = {x, y, z};
  SquareMatrix<T, 3> r;
  for (int j = 0; j < 3; ++j) {
    for (int i = 0; i < 3; ++i) r(i, j) = (T(1) - cosine) * axis[i] * axis[j] + (i == j ? cosine : T(0));
  }
  r(1, 0) += sine * z;
  r(0, 1) -= sine * z;
  r(2, 0) -= sine * y;
  r(0, 2) += sine * y;
  r(2, 1) += sine * x;
  r(1, 2) -= sine * x;
  return r;
}

/// exp(X_φ) for large φ.
template <class T, int N>
[[nodiscard]] SHEAFNN_HD SHEAFNN_SELDOM SquareMatrix<T, N> far_exponential(const RotationParameters<T, N>& phi) {
  if constexpr (N == 2) {
    const T sine = std::sin(phi(0)), cosine = std::cos(phi(0));
    SquareMatrix<T, 2> r;
    r(0, 0) = r(1, 1) = cosine;
    r(1, 0) = sine;
    r(0, 1) = -sine;
    return r;
  } else if constexpr (N == 3) {
    return far_exponential_3<T>(phi);
  } else {
    const SkewNormalForm<T, N> form = skew_normal_form<T, N>(phi);
    SineCosine<T> block[N / 2];
    for (int j = 0; j < N / 2; ++j) block[j] = sine_and_cosine(form.angle[j], form.scale);
    return from_blocks<T, N>(form, block);
  }
}

/// sin x / x of x · scale.
template <class T>
[[nodiscard]] SHEAFNN_HD T sine_quotient(T x, T scale) {
  return x == T(0) ? T(1) : sine_and_cosine(x, scale).sine / (x * scale);
}

/// L(−X_φ, E) for large φ, L the derivative of exp: ∫ exp(−(1 − t) X) E exp(−t X) dt, block by block in the basis W. A block of E
/// that commutes with J is turned by the mean of both angles and shrunk by the sine quotient of half their difference; of one that
/// anticommutes with J, with −θ for the second angle.
template <class T, int N>
[[nodiscard]] SHEAFNN_HD SHEAFNN_SELDOM SquareMatrix<T, N> far_exponential_adjoint(
    const RotationParameters<T, N>& phi, const SquareMatrix<T, N>& e) {
  constexpr int blocks = (N + 1) / 2, padded = 2 * blocks;  // odd N: one more axis, with angle 0 and entries 0
  const SkewNormalForm<T, N> form = skew_normal_form<T, N>(phi);
  const SquareMatrix<T, N> own = multiply(multiply_tn(form.basis, e), form.basis);
  T entry[padded][padded], angle[blocks];
  for (int i = 0; i < padded; ++i) {
    for (int j = 0; j < padded; ++j) entry[i][j] = i < N && j < N ? own(i, j) : T(0);
  }
  for (int j = 0; j < blocks; ++j) angle[j] = j < N / 2 ? -form.angle[j] : T(0);
  for (int a = 0; a < blocks; ++a) {
    for (int b = 0; b < blocks; ++b) {
      T(&upper)[padded] = entry[2 * a];
      T(&lower)[padded] = entry[2 * a + 1];
      const T commuting_real = T(0.5) * (upper[2 * b] + lower[2 * b + 1]);
      const T commuting_imaginary = T(0.5) * (lower[2 * b] - upper[2 * b + 1]);
      const T other_real = T(0.5) * (upper[2 * b] - lower[2 * b + 1]);
      const T other_imaginary = T(0.5) * (upper[2 * b + 1] + lower[2 * b]);
      const T mean = T(0.5) * (angle[a] + angle[b]), half = T(0.5) * (angle[a] - angle[b]);
      const SineCosine<T> at_mean = sine_and_cosine(mean, form.scale), at_half = sine_and_cosine(half, form.scale);
      const T shrink = sine_quotient(half, form.scale), other_shrink = sine_quotient(mean, form.scale);
      const T c = shrink * (at_mean.cosine * commuting_real - at_mean.sine * commuting_imaginary);
      const T d = shrink * (at_mean.cosine * commuting_imaginary + at_mean.sine * commuting_real);
      const T k = other_shrink * (at_half.cosine * other_real - at_half.sine * other_imaginary);
      const T l = other_shrink * (at_half.cosine * other_imaginary + at_half.sine * other_real);
      upper[2 * b] = c + k;
      upper[2 * b + 1] = l - d;
      lower[2 * b] = l + d;
      lower[2 * b + 1] = c - k;
    }
  }
  SquareMatrix<T, N> result;
  for (int j = 0; j < N; ++j) {
    for (int i = 0; i < N; ++i) result(i, j) = entry[i][j];
  }
  return multiply_nt(multiply(form.basis, result), form.basis);
}

/// (I − X_φ)⁻¹ for large φ, N ≥ 2.
template <class T, int N>
[[nodiscard]] SHEAFNN_HD SHEAFNN_SELDOM SquareMatrix<T, N> far_cayley_half_sum(
    const RotationParameters<T, N>& phi) {
  const SkewNormalForm<T, N> form = skew_normal_form<T, N>(phi);
  SineCosine<T> block[N / 2];
  for (int j = 0; j < N / 2; ++j) {
    const T angle = form.angle[j] * form.scale;
    if (angle > T(1)) {
      const T inverse = T(1) / form.angle[j] / form.scale;
      const T denominator = T(1) + inverse * inverse;
      block[j] = {inverse / denominator, inverse * inverse / denominator};
    } else {
      const T denominator = T(1) + angle * angle;
      block[j] = {angle / denominator, T(1) / denominator};
    }
  }
  return from_blocks<T, N>(form, block);
}

/// log det(I + X_φ) for large φ.
template <class T, int N>
[[nodiscard]] SHEAFNN_HD SHEAFNN_SELDOM T far_log_determinant(const RotationParameters<T, N>& phi) {
  const SkewNormalForm<T, N> form = skew_normal_form<T, N>(phi);
  T sum = T(0);
  for (int j = 0; j < N / 2; ++j) {
    const T angle = form.angle[j] * form.scale;
    if (angle > T(1)) {
      const T inverse = T(1) / form.angle[j] / form.scale;
      sum += T(2) * (std::log(form.angle[j]) + std::log(form.scale)) + std::log1p(inverse * inverse);
    } else {
      sum += std::log1p(angle * angle);
    }
  }
  return form.scale * T(0) + sum;  // NaN of an infinite φ
}

}  // namespace sheafnn::detail
