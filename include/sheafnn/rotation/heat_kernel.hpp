/// \file
/// The heat kernel of SO(3): its logarithm, and the derivatives in the rotation and in time, to rounding at every time and
/// angle.
///
/// f solves ∂f/∂t = ½ Δf from a point mass at I, with Haar measure normalised and angles as lengths. It is the density at
/// time t of a Brownian motion whose coordinates have variance t. At a rotation by ω in [0, π], with δ = π − ω,
///     f = Σ_{l≥0} (2l + 1) e^{−l(l+1)t/2} χ_l,    χ_l = sin((l + ½)ω)/sin(ω/2),                      (t ≥ 2)
///     f = √(2π) e^{t/8} t^{−3/2} Σ_k (−1)^k x_k e^{−x_k²/2t}/sin(ω/2),    x_k = ω + 2πk.              (t < 2)
/// Six characters, or five images, leave out less than 1e-17 of f. What tends to 0/0 at ω = 0 or π is arranged by the
/// functions φ(x) = (1 − e^{−x})/x and ψ(a) = (a cosh a − sinh a)/a³. Source: math: "Isotropic Gaussian" (2.47).
#pragma once

#include <cmath>
#include <type_traits>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/pack.hpp"
#include "sheafnn/core/small_matrix.hpp"
#include "sheafnn/core/special_functions.hpp"
#include "sheafnn/rotation/log_sine_ratio.hpp"
#include "sheafnn/rotation/pi.hpp"

namespace sheafnn::detail {

/// Sine and cosine of half of a rotation angle in [0, π]: the lengths of a unit quaternion's imaginary and real part.
template <class T>
struct HalfAngle {
  T sine, cosine;
};

/// Half the angle of the rotation of a unit quaternion. Unchecked: that it is one.
template <class T>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE HalfAngle<T> half_angle(const Column<T, 4>& q) {
  using std::sqrt;
  return {sqrt(q(1) * q(1) + q(2) * q(2) + q(3) * q(3)), select(q(0) < T(0), -q(0), q(0))};
}

/// log f and its derivatives.
template <class T>
struct HeatKernel {
  T log;         ///< log f
  T slope;       ///< ∂ log f/∂ tr R = −(∂ log f/∂ω)/(2 sin ω), finite at every angle
  T time_slope;  ///< ∂ log f/∂t
};

/// e^{−x} of x ≥ 0; 0 where the exponential of packs ends before it.
template <class T>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE T decayed(const T& x) {
  using std::exp;
  constexpr double largest = sizeof(scalar_of_t<T>) == 4 ? 80 : 700;
  const auto small = x < T(largest);
  return select(small, exp(-select(small, x, T(largest))), T(0));
}
/// The sum over characters, for t ≥ 2. With y = 2 cos ω, χ_{l+1} = y χ_l − χ_{l−1}.
template <class T>
[[nodiscard]] SHEAFNN_HD inline HeatKernel<T> heat_kernel_of_characters(const HalfAngle<T>& half, const T& t) {
  using std::log1p;
  const T y = T(2) * (half.cosine - half.sine) * (half.cosine + half.sine), decay = decayed(t);
  T before = T(-1), character = T(1), slope_before = T(0), slope = T(0);
  T power = T(1), weight = T(1);  // e^{−lt}, e^{−l(l+1)t/2}
  HeatKernel<T> sum{T(0), T(0), T(0)};
  SHEAFNN_UNROLL for (int l = 1; l <= 6; ++l) {
    const T next = y * character - before, next_slope = character + y * slope - slope_before;
    before = character, character = next;
    slope_before = slope, slope = next_slope;
    power *= decay;
    weight *= power;
    sum.log += T(2 * l + 1) * weight * character;
    sum.slope += T(2 * l + 1) * weight * slope;
    sum.time_slope -= T(0.5 * l * (l + 1) * (2 * l + 1)) * weight * character;
  }
  const T inverse = T(1) / (T(1) + sum.log);
  return {log1p(sum.log), sum.slope * inverse, sum.time_slope * inverse};
}

/// φ(x) = (1 − e^{−x})/x of x ≥ 0.
template <class T>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE T mean_decay(const T& x) {
  using std::expm1;
  constexpr double largest = sizeof(scalar_of_t<T>) == 4 ? 80 : 700;
  const auto positive = x > T(sizeof(scalar_of_t<T>) == 4 ? 1e-30 : 1e-300);
  const T risen = -expm1(-select(x < T(largest), x, T(largest)));
  return select(positive, risen / select(positive, x, T(1)), T(1));
}

/// The ratio of the images at ω + 2πk to the image at ω: with a_k = 2πkω/t, u_k + d_k = 2e^{−2π²k²/t} cosh a_k and
/// u_k − d_k = 2e^{−2π²k²/t} sinh a_k.
template <class T>
struct HeatImages {
  T omega, delta;  ///< ω and π − ω, each with its own digits
  T up[2], down[2];
  T risen[2];  ///< φ(2a_k); the sinh above is a_k u_k φ
  T total;     ///< Σ_k (−1)^k (x_k/ω) e^{(ω² − x_k²)/2t}

  SHEAFNN_HD explicit HeatImages(const HalfAngle<T>& half, const T& t) {
    using std::atan2;
    constexpr double pi_rest = 1.2246467991473532e-16;
    const auto less = half.sine <= half.cosine;
    const T angle = T(2) * atan2(select(less, half.sine, half.cosine), select(less, half.cosine, half.sine));
    const T other = T(pi) - (angle - T(pi_rest));
    omega = select(less, angle, other);
    delta = select(less, other, angle);
    total = T(1);
    SHEAFNN_UNROLL for (int k = 1; k <= 2; ++k) {
      const T step = T(2 * pi * k) / t;
      up[k - 1] = decayed(step * (T(pi * (k - 1)) + delta));
      down[k - 1] = decayed(step * (T(pi * k) + omega));
      risen[k - 1] = mean_decay(T(2) * step * omega);
      const T pair = T(4 * pi * k) * step * up[k - 1] * risen[k - 1] - up[k - 1] - down[k - 1];
      total += k == 1 ? pair : -pair;
    }
  }
};

/// (∂/∂ω of the images)/(ω · images) at ω ≤ π/2: −1/t and the derivatives of the terms after the first.
template <class T>
[[nodiscard]] SHEAFNN_HD inline T image_slope_near_zero(const HeatImages<T>& at, const T& t) {
  // ψ(a) = Σ_j (2j + 2)/(2j + 3)! a^{2j}
  constexpr double series[7] = {1.0 / 3,         1.0 / 30,          1.0 / 840,          1.0 / 45360,
                                1.0 / 3991680.0, 1.0 / 518918400.0, 1.0 / 93405312000.0};
  T slope = T(0);
  SHEAFNN_UNROLL for (int k = 1; k <= 2; ++k) {
    const T step = T(2 * pi * k) / t, a = step * at.omega, squared = a * a;
    const auto small = a < T(1);
    T psi = T(series[6]);
    SHEAFNN_UNROLL for (int j = 5; j >= 0; --j) psi = T(series[j]) + squared * psi;
    const T sinh_ratio = at.up[k - 1] * at.risen[k - 1];
    psi = select(small, psi * decayed(T(pi * k) * step),
                 (T(0.5) * (at.up[k - 1] + at.down[k - 1]) - sinh_ratio) / select(small, T(1), squared));
    const T pair = T(2) * step * step * (T(2 * pi * k) * step * psi - sinh_ratio);
    slope += k == 1 ? pair : -pair;
  }
  return slope / at.total - T(1) / t;
}

/// (∂/∂ω of Σ_k (−1)^k x_k e^{(ω² − x_k²)/2t})/δ at ω ≥ π/2: each image and its mirror image at 2π − x_k.
template <class T>
[[nodiscard]] SHEAFNN_HD inline T image_slope_near_pi(const HeatImages<T>& at, const T& t) {
  T slope = T(0);
  SHEAFNN_UNROLL for (int m = 1; m <= 3; m += 2) {
    // x = mπ − δ, its mirror image mπ + δ
    const T step = T(2 * pi * m) / t, x = T(pi * m) - at.delta;
    const T pair =
        (T(1) - x * (x / t)) * step * mean_decay(step * at.delta) + T(2) * step * decayed(step * at.delta);
    slope += m == 1 ? pair : -at.down[0] * pair;
  }
  return slope;
}

/// The sum over images, for t < 2.
template <class T>
[[nodiscard]] SHEAFNN_HD inline HeatKernel<T> heat_kernel_of_images(const HalfAngle<T>& half, const T& t) {
  using std::log;
  constexpr double log_two = 0.69314718055994531;
  constexpr double least = sizeof(scalar_of_t<T>) == 4 ? 1e-30 : 1e-300;
  const HeatImages<T> at(half, t);
  const T omega = at.omega, part = omega / t;
  const exponential::LogSine<T> sine = exponential::log_sine_ratio<T>(omega * omega);
  HeatKernel<T> r;
  r.log = T(0.125) * t + (T(half_log_two_pi + log_two) - T(0.5) * sine.value) - T(1.5) * log(t) -
          T(0.5) * omega * part + log(at.total);
  // With g = ∂ log f/∂ω: −g/(4 sin(ω/2) cos(ω/2)).
  const auto moved = half.sine > T(least), turned = half.cosine > T(least);
  const T ratio = select(moved, omega / select(moved, half.sine, T(1)), T(2));
  const T other_ratio = select(turned, at.delta / select(turned, half.cosine, T(1)), T(2));
  const auto near_zero = half.sine <= half.cosine;
  const T safe_cosine = select(near_zero, half.cosine, T(1)), safe_sine = select(near_zero, T(1), half.sine);
  const T safe_omega = select(near_zero, T(1), omega);
  r.slope = select(near_zero, (sine.slope - image_slope_near_zero(at, t)) * ratio / (T(4) * safe_cosine),
                   (T(0.5) / safe_sine - other_ratio * image_slope_near_pi(at, t) / (safe_omega * at.total)) /
                       (T(4) * safe_sine));
  T change = T(0);
  SHEAFNN_UNROLL for (int k = 1; k <= 2; ++k) {
    const T step = T(2 * pi * k) / t;
    const T pair = step * ((omega * omega + T(2 * pi * pi * k * k)) * step * at.up[k - 1] * at.risen[k - 1] -
                           T(1.5 * pi * k) * (at.up[k - 1] + at.down[k - 1]));
    change += k == 1 ? pair : -pair;
  }
  r.time_slope = T(0.125) + (T(2) * change / at.total - T(1.5) + T(0.5) * omega * part) / t;
  return r;
}

/// Over T = float, double or Pack. \param t  > 0
/// Unchecked: that sine and cosine are of half of an angle in [0, π], and t > 0.
template <class T>
[[nodiscard]] SHEAFNN_HD inline HeatKernel<T> heat_kernel(const HalfAngle<T>& half, const T& t) {
  const auto wide = t >= T(2);
  if constexpr (std::is_arithmetic_v<T>) {
    return wide ? heat_kernel_of_characters(half, t) : heat_kernel_of_images(half, t);
  } else {
    const HeatKernel<T> far = heat_kernel_of_characters(half, select(wide, t, T(2)));
    const HeatKernel<T> near = heat_kernel_of_images(half, select(wide, T(1), t));
    return {select(wide, far.log, near.log), select(wide, far.slope, near.slope),
            select(wide, far.time_slope, near.time_slope)};
  }
}

}  // namespace sheafnn::detail
