/// \file
/// Exponential and Cayley rotations of large φ, their derivatives and Jacobians, by the normal form of X_φ. They are
/// orthogonal to rounding for every finite φ, where the short schemes of exponential.hpp and cayley_transform.hpp lose
/// digits. Also how packs get at the lanes that need them. Source: math: "Large parameters" (2.45), (2.46).
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/mask_bits.hpp"
#include "sheafnn/core/pack.hpp"
#include "sheafnn/core/small_matrix.hpp"
#include "sheafnn/rotation/log_sine_ratio.hpp"
#include "sheafnn/rotation/skew.hpp"
#include "sheafnn/rotation/skew_normal_form.hpp"

namespace sheafnn::detail {

/// f(lane) for each lane in which the condition holds; lane 0 is a scalar's.
template <class T, int W, class F>
SHEAFNN_INLINE void for_lanes(const PackMask<T, W>& mask, const F& f) {
  const std::uint32_t bits = mask_bits(mask);
  if (bits == 0) return;
  for (int lane = 0; lane < W; ++lane) {
    if ((bits >> lane & 1U) != 0) f(lane);
  }
}
template <class F>
SHEAFNN_HD SHEAFNN_INLINE void for_lanes(bool condition, const F& f) {
  if (condition) f(0);
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

/// The sine and the cosine of an angle.
template <class T>
struct SineCosine {
  T sine, cosine;
};
/// Sine and cosine of x · scale, which may be above the largest number.
template <class T>
[[nodiscard]] SHEAFNN_HD SineCosine<T> sine_and_cosine(T x, T scale) {
  const T angle = x * scale;
  const bool representable = std::abs(angle) <= std::numeric_limits<T>::max();
  const T part = representable ? angle : x * (scale / T(64));
  SineCosine<T> r{std::sin(part), std::cos(part)};
  if (!representable) {
    for (int k = 0; k < 6; ++k) r = {T(2) * r.sine * r.cosine, (r.cosine - r.sine) * (r.cosine + r.sine)};
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

/// exp(X) of R³ by Rodrigues' formula. The angle has twice the digits of T, so that the rotation is right to rounding,
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

/// sin α / α of α = x · scale, given sin α.
template <class T>
[[nodiscard]] SHEAFNN_HD T sine_quotient(T x, T scale, T sine) {
  return x == T(0) ? T(1) : sine / (x * scale);
}

/// L(−X_φ, E) for large φ, L the derivative of exp: ∫ exp(−(1 − t) X) E exp(−t X) dt, block by block in the basis W. A block
/// of E that commutes with J is turned by the mean of both angles. It is shrunk by the sine quotient of half their difference.
/// So is the part that anticommutes with J, with −θ for the second angle.
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
      const T shrink = sine_quotient(half, form.scale, at_half.sine);
      const T other_shrink = sine_quotient(mean, form.scale, at_mean.sine);
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

}  // namespace sheafnn::detail

namespace sheafnn::detail::exponential {

/// log (2 sin(α/2)/α)² of α = x · scale, and its derivative in α.
template <class T>
[[nodiscard]] SHEAFNN_HD LogSine<T> far_log_sine_ratio(T x, T scale) {
  const T alpha = x * scale;
  if (alpha * alpha < T(4)) {
    const LogSine<T> near = log_sine_ratio(alpha * alpha);
    return {near.value, T(2) * near.slope * alpha};
  }
  const T half = T(0.5) * x;
  const SineCosine<T> at_half = sine_and_cosine(half, scale);
  const T sine = away_from_zero(at_half.sine, rounding_unit<T>());
  return {T(2) * (std::log(std::abs(sine)) - std::log(std::abs(half)) - std::log(scale)),
          at_half.cosine / sine - T(1) / half / scale};
}

/// log |det d exp| for large φ, N ≥ 3, and its derivative: θ_j = W_{2j+1}ᵀ X W_{2j}.
template <class T, int N>
[[nodiscard]] SHEAFNN_HD SHEAFNN_SELDOM T far_log_jacobian(const RotationParameters<T, N>& phi,
                                                           RotationParameters<T, N>& slope) {
  constexpr int n = N / 2;
  const SkewNormalForm<T, N> form = skew_normal_form<T, N>(phi);
  T value = T(0), angle_slope[n];
  for (int i = 0; i < n; ++i) angle_slope[i] = T(0);
  for (int i = 0; i < n; ++i) {
    for (int j = i + 1; j < n; ++j) {
      const LogSine<T> sum = far_log_sine_ratio(form.angle[i] + form.angle[j], form.scale);
      const LogSine<T> difference = far_log_sine_ratio(form.angle[i] - form.angle[j], form.scale);
      value += sum.value + difference.value;
      angle_slope[i] += sum.slope + difference.slope;
      angle_slope[j] += sum.slope - difference.slope;
    }
    if constexpr (N % 2 == 1) {
      const LogSine<T> alone = far_log_sine_ratio(form.angle[i], form.scale);
      value += alone.value;
      angle_slope[i] += alone.slope;
    }
  }
  SquareMatrix<T, N> cotangent;
  for (int c = 0; c < N; ++c) {
    for (int r = 0; r < N; ++r) {
      cotangent(r, c) = T(0);
      for (int j = 0; j < n; ++j)
        cotangent(r, c) += angle_slope[j] * form.basis(r, 2 * j + 1) * form.basis(c, 2 * j);
    }
  }
  slope = RotationParameters<T, N>::Constant(T(0));
  skew_matrix_backward<T, N>(cotangent, slope);
  return value;
}

}  // namespace sheafnn::detail::exponential
