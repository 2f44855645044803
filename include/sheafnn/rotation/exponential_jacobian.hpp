/// \file
/// log |det d exp(φ)|: how φ ↦ exp(X_φ) changes volume, and its derivative.
///
/// With e^{±iθ_i} the eigenvalues of exp(X_φ), n = ⌊N/2⌋ of them in pairs,
///     |det d exp| = Π_α (2 sin(α/2)/α)²,   α = θ_i ± θ_j (i < j), for odd N also θ_i.
/// N = 2: 1. N = 3: one factor, α² = ‖φ‖². N = 4: two factors, since so(4) = so(3) + so(3). From N = 5 on no eigenvalues are
/// taken. With ψ = θ/2, sin(α/2)/(α/2) = cos(α/4) · sin(α/4)/(α/4) gives log |det d exp(φ)| = log |det d exp(φ/2)| + log
/// [Π_{i<j} ((cos ψ_i + cos ψ_j)/2)² · Π_i (1 + cos ψ_i)/2], the last product for odd N only. φ is halved until its length
/// is at most 0.9, where a power series of the sums of θ_i^{2k} is short. These and the symmetric functions of cos ψ_i
/// follow from traces. All matrices are functions of X_φ and commute, so that d tr f(X) = tr(f′(X) dX) gives the derivative.
/// Source: math: "Normal in the tangent space" (2.24).
///
/// The Jacobian vanishes where an α is a multiple of 2π but 0. There the logarithm is kept finite, at what rounding leaves
/// of the zero. Every finite φ is taken: where halving would take too long, or ‖φ‖² be too large, large_parameters.hpp gives
/// the θ_i.
#pragma once

#include <cmath>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/mask_bits.hpp"
#include "sheafnn/core/pack.hpp"
#include "sheafnn/core/small_matrix.hpp"
#include "sheafnn/rotation/exponential.hpp"
#include "sheafnn/rotation/large_parameters.hpp"
#include "sheafnn/rotation/log_sine_ratio.hpp"
#include "sheafnn/rotation/skew.hpp"

namespace sheafnn::detail::exponential {

/// Symmetric functions of n values λ_i: power[k] = Σ λ^k for 1 ≤ k ≤ n, elementary[m] = Σ λ_{i1} ⋯ λ_{im}.
template <class T, int n>
struct SymmetricFunctions {
  T power[n + 1];
  T elementary[n + 1];

  /// Newton's identities.
  SHEAFNN_HD SHEAFNN_INLINE void complete() {
    power[0] = T(n);
    elementary[0] = T(1);
    for (int m = 1; m <= n; ++m) {
      T sum = T(0);
      for (int k = m; k >= 1; --k) sum = elementary[m - k] * power[k] - sum;
      elementary[m] = sum * T(1.0 / m);
    }
  }
};

/// Σ λ^k of a symmetric matrix in which each λ_i occurs twice, for odd N with one more eigenvalue `single`;
/// `square` is A².
template <class T, int N>
[[nodiscard]] SHEAFNN_HD inline SymmetricFunctions<T, N / 2> paired_functions(const SquareMatrix<T, N>& a,
                                                                              const SquareMatrix<T, N>& square,
                                                                              const T& single) {
  constexpr int n = N / 2;
  const T odd = N % 2 == 0 ? T(0) : single;
  SymmetricFunctions<T, n> r;
  T trace = T(0);
  for (int i = 0; i < N; ++i) trace += a(i, i);
  r.power[1] = T(0.5) * (trace - odd);
  if constexpr (n >= 2) r.power[2] = T(0.5) * (inner_product(a, a) - odd);
  if constexpr (n >= 3) r.power[3] = T(0.5) * (inner_product(square, a) - odd);
  if constexpr (n >= 4) r.power[4] = T(0.5) * (inner_product(square, square) - odd);
  r.complete();
  return r;
}

/// k · ∂F/∂power[k] for k = 1, …, n in r[k − 1], given ∂F/∂elementary[m] in slope[m]: ∂elementary[m]/∂power[k] =
/// (−1)^{k−1} elementary[m − k]/k.
template <class T, int n>
SHEAFNN_HD SHEAFNN_INLINE void add_power_slopes(const SymmetricFunctions<T, n>& f, const T (&slope)[n + 1],
                                                T (&r)[n]) {
  for (int k = 1; k <= n; ++k) {
    T sum = T(0);
    for (int m = k; m <= n; ++m) sum += slope[m] * f.elementary[m - k];
    r[k - 1] += k % 2 == 0 ? -sum : sum;
  }
}

/// (c₀ I + c₁ A + c₂ A² + c₃ A³) B, n coefficients.
template <class T, int N>
[[nodiscard]] SHEAFNN_HD inline SquareMatrix<T, N> polynomial_product(const T (&c)[N / 2],
                                                                      const SquareMatrix<T, N>& a,
                                                                      const SquareMatrix<T, N>& square,
                                                                      const SquareMatrix<T, N>& b) {
  constexpr int n = N / 2;
  SquareMatrix<T, N> polynomial;
  for (int j = 0; j < N; ++j) {
    for (int i = 0; i < N; ++i) polynomial(i, j) = c[1] * a(i, j);
    polynomial(j, j) += c[0];
  }
  if constexpr (n == 3) polynomial = add_multiple<T, N>(polynomial, square, c[2]);
  if constexpr (n == 4) {
    SquareMatrix<T, N> high;
    for (int j = 0; j < N; ++j) {
      for (int i = 0; i < N; ++i) high(i, j) = c[3] * a(i, j);
      high(j, j) += c[2];
    }
    polynomial = add_multiple<T, N>(polynomial, product<T, N>(square, high), T(1));
  }
  return product<T, N>(polynomial, b);
}

/// log |det d exp| of the λ_i = θ_i²/4π² of f, all θ_i² ≤ 0.81: −Σ_k 2 ζ(2k)/k · Σ_α (α²/4π²)^k, where
/// Σ_α α^{2k} = Σ_l C(2k, 2l) P_l P_{k−l} − 2^{2k−1} P_k (+ P_k for odd N) with P_l = Σ_i θ_i^{2l}. Adds to
/// power_slopes as add_power_slopes does.
template <class T, int N>
[[nodiscard]] SHEAFNN_HD inline T small_log_jacobian(const SymmetricFunctions<T, N / 2>& f,
                                                     T (&power_slopes)[N / 2]) {
  constexpr int n = N / 2;
  constexpr int terms = sizeof(scalar_of_t<T>) == 4 ? 6 : 12;  // (2 · 0.81/4π²)^terms is below ε
  T power[terms + 1], slope[terms + 1];
  for (int l = 0; l <= n; ++l) power[l] = f.power[l];
  for (int l = n + 1; l <= terms; ++l) {  // every λ is a root of Σ (−1)^m elementary[m] λ^{n−m}
    T sum = T(0);
    for (int m = n; m >= 1; --m) sum = f.elementary[m] * power[l - m] - sum;
    power[l] = sum;
  }
  for (int l = 0; l <= terms; ++l) slope[l] = T(0);
  T value = T(0);
  double quarter_power = 0.5;  // 2^{2k−1}
  for (int k = 1; k <= terms; ++k) {
    quarter_power *= 4;
    const T coefficient = -sine_coefficient<T>(k);
    const T alone = T((N % 2 == 0 ? 0.0 : 1.0) - quarter_power);
    T sum = alone * power[k];
    slope[k] += coefficient * alone;
    double binomial = 1;  // C(2k, 2l), an integer
    for (int l = 0; l <= k; ++l) {
      sum += T(binomial) * power[l] * power[k - l];
      slope[l] += T(2 * binomial) * coefficient * power[k - l];
      binomial = binomial * ((2 * k - 2 * l) * (2 * k - 2 * l - 1)) / ((2 * l + 1) * (2 * l + 2));
    }
    value += coefficient * sum;
  }
  // Back through the recurrence.
  T elementary_slope[n + 1];
  for (int m = 0; m <= n; ++m) elementary_slope[m] = T(0);
  for (int l = terms; l > n; --l) {
    for (int m = 1; m <= n; ++m) {
      const T signed_slope = m % 2 == 0 ? -slope[l] : slope[l];
      elementary_slope[m] += signed_slope * power[l - m];
      slope[l - m] += signed_slope * f.elementary[m];
    }
  }
  for (int k = 1; k <= n; ++k) power_slopes[k - 1] += T(k) * slope[k];
  add_power_slopes<T, n>(f, elementary_slope, power_slopes);
  return value;
}

/// log [Π_{i<j} ((c_i + c_j)/2)² · Π_i (1 + c_i)/2], the last for odd N only, of c_i = cos ψ_i.
template <class T, int N>
[[nodiscard]] SHEAFNN_HD inline T halving_log_jacobian(const SymmetricFunctions<T, N / 2>& f,
                                                       T (&power_slopes)[N / 2]) {
  using std::log;
  constexpr int n = N / 2;
  const T* e = f.elementary;
  T pairs;  // Π (c_i + c_j)
  T slope[n + 1];
  slope[0] = T(0);
  constexpr double scale = n == 2 ? 2 : n == 3 ? 8 : 64;
  if constexpr (n == 2) {
    pairs = e[1];
    slope[1] = T(1);
    slope[2] = T(0);
  } else if constexpr (n == 3) {
    pairs = e[1] * e[2] - e[3];
    slope[1] = e[2];
    slope[2] = e[1];
    slope[3] = T(-1);
  } else {
    pairs = (e[1] * e[2] - e[3]) * e[3] - e[1] * e[1] * e[4];
    slope[1] = e[2] * e[3] - T(2) * e[1] * e[4];
    slope[2] = e[1] * e[3];
    slope[3] = e[1] * e[2] - T(2) * e[3];
    slope[4] = -e[1] * e[1];
  }
  const T least = rounding_unit<T>();
  pairs = away_from_zero(pairs * T(1 / scale), least);
  const T factor = T(2 / scale) / pairs;
  for (int m = 1; m <= n; ++m) slope[m] *= factor;
  T argument = pairs * pairs;
  if constexpr (N % 2 == 1) {
    constexpr double share = n == 2 ? 0.25 : n == 3 ? 0.125 : 0.0625;
    T singles = T(1);
    for (int m = 1; m <= n; ++m) singles += e[m];
    singles *= T(share);
    singles = select(singles < least * least, least * least, singles);
    const T single_slope = T(share) / singles;
    for (int m = 1; m <= n; ++m) slope[m] += single_slope;
    argument *= singles;
  }
  add_power_slopes<T, n>(f, slope, power_slopes);
  return log(argument);
}

/// N ≥ 5; adds weight times the derivative to `gradient` where With is true.
template <bool With, class T, int N>
[[nodiscard]] SHEAFNN_HD SHEAFNN_NOINLINE T log_jacobian_by_halving(const RotationParameters<T, N>& phi,
                                                                    const T& weight,
                                                                    RotationParameters<T, N>& gradient) {
  static_assert(N >= 5 && N <= 9, "log |det d exp| is written for SO(2) to SO(9)");
  constexpr int n = N / 2;
  const Halvings<T> halving = halvings<T, rotation_parameters<N>>(phi);
  RotationParameters<T, N> scaled;
  for (int k = 0; k < rotation_parameters<N>; ++k) scaled(k) = halving.scale * phi(k);
  const SquareMatrix<T, N> x = skew_matrix<T, N>(scaled);
  SquareMatrix<T, N> z = product<T, N>(x, x);
  for (int j = 0; j < N; ++j) {
    for (int i = 0; i < N; ++i) z(i, j) *= T(-1 / four_pi_squared);
  }
  SquareMatrix<T, N> square = product<T, N>(z, z);
  T slopes[n];
  for (int k = 0; k < n; ++k) slopes[k] = T(0);
  T value = small_log_jacobian<T, N>(paired_functions<T, N>(z, square, T(0)), slopes);
  SquareMatrix<T, N> cotangent;
  if constexpr (With) {
    cotangent = polynomial_product<T, N>(slopes, z, square, x);
    const T factor = halving.scale * T(1 / four_pi_squared);
    for (int j = 0; j < N; ++j) {
      for (int i = 0; i < N; ++i) cotangent(i, j) *= factor;
    }
  }
  const int levels = largest_lane(halving.count);
  if (levels > 0) {
    SquareMatrix<T, N> r = exponential_rotation<T, N>(scaled);
    T scale = halving.scale;
    for (int level = 0; level < levels; ++level) {
      const auto active = T(level) < halving.count;
      SquareMatrix<T, N> cosine, sine;
      for (int j = 0; j < N; ++j) {
        for (int i = 0; i < N; ++i) {
          cosine(i, j) = T(0.5) * (r(i, j) + r(j, i));
          sine(i, j) = T(0.5) * (r(i, j) - r(j, i));
        }
      }
      square = product<T, N>(cosine, cosine);
      for (int k = 0; k < n; ++k) slopes[k] = T(0);
      const T term = halving_log_jacobian<T, N>(paired_functions<T, N>(cosine, square, T(1)), slopes);
      value += select(active, term, T(0));
      if constexpr (With) {
        const SquareMatrix<T, N> level_cotangent = polynomial_product<T, N>(slopes, cosine, square, sine);
        const T factor = T(-0.5) * scale;
        for (int j = 0; j < N; ++j) {
          for (int i = 0; i < N; ++i) {
            cotangent(i, j) += select(active, factor * level_cotangent(i, j), T(0));
          }
        }
      }
      const SquareMatrix<T, N> squared = product<T, N>(r, r);
      for (int j = 0; j < N; ++j) {
        for (int i = 0; i < N; ++i) r(i, j) = select(active, squared(i, j), r(i, j));
      }
      scale *= T(2);
    }
  }
  if constexpr (With) {
    for (int j = 0; j < N; ++j) {
      for (int i = 0; i < N; ++i) cotangent(i, j) *= weight;
    }
    skew_matrix_backward<T, N>(cotangent, gradient);
  }
  return value;
}

/// Is log |det d exp| of φ a matter for far_log_jacobian()? For N = 3 and 4 the closed forms are good while they have ‖φ‖² and
/// the square of a small sine over φ.
template <class T, int N>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE auto has_far_jacobian(const RotationParameters<T, N>& phi) {
  return inner_product(phi, phi) > T(N <= 4 ? 1e12 : 0.81 * (1 << 2 * most_squarings));
}

/// N ≥ 3; ‖φ‖² ≤ 1e12 for N = 3 and 4, ‖φ‖ ≤ 14.4 from N = 5 on.
template <bool With, class T, int N>
[[nodiscard]] SHEAFNN_HD inline T near_log_jacobian(const RotationParameters<T, N>& phi, const T& weight,
                                                    RotationParameters<T, N>& gradient) {
  if constexpr (N == 3) {
    const LogSine<T> l = log_sine_ratio(phi(0) * phi(0) + phi(1) * phi(1) + phi(2) * phi(2));
    for (int k = 0; k < 3; ++k) gradient(k) += T(2) * weight * l.slope * phi(k);
    return l.value;
  } else if constexpr (N == 4) {
    // Entries (1, 0), (2, 0), (3, 0) with (3, 2), −(3, 1), (2, 1): half sums and differences span the two so(3).
    T value = T(0);
    for (int part = 0; part < 2; ++part) {
      const T sign = T(part == 0 ? 1 : -1);
      const T a = phi(0) + sign * phi(5);
      const T b = phi(1) - sign * phi(4);
      const T c = phi(2) + sign * phi(3);
      const LogSine<T> l = log_sine_ratio(a * a + b * b + c * c);
      const T factor = T(2) * weight * l.slope;
      const T signed_factor = sign * factor;
      gradient(0) += factor * a;
      gradient(1) += factor * b;
      gradient(2) += factor * c;
      gradient(3) += signed_factor * c;
      gradient(4) -= signed_factor * b;
      gradient(5) += signed_factor * a;
      value += l.value;
    }
    return value;
  } else {
    return log_jacobian_by_halving<With, T, N>(phi, weight, gradient);
  }
}

/// Near and far lanes together; adds weight times the derivative to `gradient` where With is true.
template <bool With, class T, int N>
[[nodiscard]] SHEAFNN_HD inline T log_jacobian(const RotationParameters<T, N>& phi, const T& weight,
                                               RotationParameters<T, N>& gradient) {
  if constexpr (N <= 2) {
    return T(0);
  } else {
    const auto far = has_far_jacobian<T, N>(phi);
    if (!any(far)) return near_log_jacobian<With, T, N>(phi, weight, gradient);
    RotationParameters<T, N> near = phi;  // far lanes: 0
    for (int k = 0; k < rotation_parameters<N>; ++k) near(k) = select(far, T(0), phi(k));
    T value = near_log_jacobian<With, T, N>(near, weight, gradient);
    for_lanes(far, [&](int lane) {
      using S = scalar_of_t<T>;
      RotationParameters<S, N> slope;
      set_lane_of(value, lane, far_log_jacobian<S, N>(matrix_lane(phi, lane), slope));
      if constexpr (With) {
        for (int k = 0; k < rotation_parameters<N>; ++k) {
          set_lane_of(gradient(k), lane, lane_of(gradient(k), lane) + lane_of(weight, lane) * slope(k));
        }
      }
    });
    return value;
  }
}

}  // namespace sheafnn::detail::exponential

namespace sheafnn::rotation {

/// Adds weight · ∂/∂φ log |det d exp(φ)| to `gradient` and returns the logarithm. Over T = float, double or Pack.
/// Takes any φ; a φ that is not finite gives NaN for N ≥ 3.
template <class T, int N>
SHEAFNN_HD inline T exponential_log_jacobian_backward(const RotationParameters<T, N>& phi, const T& weight,
                                                      RotationParameters<T, N>& gradient) {
  return detail::exponential::log_jacobian<true, T, N>(phi, weight, gradient);
}

/// log |det d exp(φ)|, with respect to the coordinates φ and, of the Lie algebra at exp(X_φ), the same coordinates.
/// Takes any φ; a φ that is not finite gives NaN for N ≥ 3.
template <class T, int N>
[[nodiscard]] SHEAFNN_HD inline T exponential_log_jacobian(const RotationParameters<T, N>& phi) {
  RotationParameters<T, N> unused = RotationParameters<T, N>::Constant(T(0));
  return detail::exponential::log_jacobian<false, T, N>(phi, T(0), unused);
}

}  // namespace sheafnn::rotation
