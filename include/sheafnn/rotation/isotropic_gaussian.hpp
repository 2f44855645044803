/// \file
/// The isotropic Gaussian distribution on SO(3), IGSO(3): density, derivatives, exact samples and their derivatives.
///
/// P = exp(X_φ) M is where a Brownian motion from M is at time t = σ². For small σ the coordinates φ are N(0, σ²I), for
/// large σ the distribution is uniform. With respect to normalised Haar measure and ω the angle of PMᵀ,
///     f(P) = Σ_{l≥0} (2l + 1) e^{−l(l+1)σ²/2} sin((l + ½)ω)/sin(ω/2).
/// With σ = √2 ε the exponent is −l(l+1)ε²: Nikolayev, Savyolova, Textures and Microstructures 29, 1997. It is the same in
/// Leach et al., "Denoising diffusion probabilistic models on SO(3) for rotational alignment", 2022. In Yim et al., "SE(3)
/// diffusion model with application to protein backbone generation", 2023, it is −l(l+1)t/2: t = σ². Source: math: "Isotropic
/// Gaussian" (2.47).
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "sheafnn/core/errors.hpp"
#include "sheafnn/core/small_matrix.hpp"
#include "sheafnn/random/stream.hpp"
#include "sheafnn/random/words.hpp"
#include "sheafnn/rotation/cayley_gradient.hpp"
#include "sheafnn/rotation/heat_averages.hpp"
#include "sheafnn/rotation/heat_kernel.hpp"
#include "sheafnn/rotation/orthonormalise.hpp"
#include "sheafnn/rotation/quaternion.hpp"
#include "sheafnn/rotation/skew.hpp"
#include "sheafnn/rotation/uniform_quaternion.hpp"

namespace sheafnn::rotation {

/// The isotropic Gaussian distribution on SO(3): location M, scale σ. Equation: on top of this file.
template <int N = 3, class Dtype = double>
class IsotropicGaussian {
  static_assert(N == 3, "the heat kernel is offered for SO(3)");
  static_assert(std::is_floating_point_v<Dtype>, "a distribution's parameters are float or double");

 public:
  static constexpr int dimension = N;
  static constexpr bool isotropic = true;  ///< about its location
  using Scalar = Dtype;
  using Matrix = SquareMatrix<Scalar, N>;

  /// \param location  M, a rotation; orthonormalised when drifted, see orthonormalised
  /// \param scale     σ in [1e-30, 1e30], in radians: the standard deviation of each coordinate φ while it is small
  /// \throws std::invalid_argument  an argument is out of its range
  IsotropicGaussian(const Matrix& location, Scalar scale)
      : location_(orthonormalised<Scalar, N>("IsotropicGaussian: location", location)), scale_(scale) {
    require(scale >= Scalar(1e-30) && scale <= Scalar(1e30), "IsotropicGaussian: scale", scale,
            "must be in [1e-30, 1e30]");
  }

  [[nodiscard]] const Matrix& location() const noexcept { return location_; }
  [[nodiscard]] Scalar scale() const noexcept { return scale_; }
  /// t = σ², the time of the Brownian motion.
  [[nodiscard]] double time() const noexcept { return static_cast<double>(scale_) * static_cast<double>(scale_); }

 private:
  Matrix location_;
  Scalar scale_;
};

}  // namespace sheafnn::rotation

namespace sheafnn::detail {

/// log f and its derivatives at a rotation P of the caller's that is orthogonal to rounding.
template <class Scalar>
[[nodiscard]] HeatKernel<double> heat_kernel_at(const rotation::IsotropicGaussian<3, Scalar>& distribution,
                                                const SquareMatrix<Scalar, 3>& p) {
  using Rotation = SquareMatrix<double, 3>;
  const Rotation y = multiply_nt(rotation::orthonormalisation_step<double, 3>(Rotation(p.template cast<double>())),
                                 Rotation(distribution.location().template cast<double>()));
  return heat_kernel(half_angle<double>(rotation::rotation_quaternion<double>(y)), distribution.time());
}

/// f(q) over what proposals have as density, up to a factor: at most 1. Proposals are uniform for t ≥ 2, where f is largest
/// at I, and exp(X_φ), φ ~ N(0, tI), for t < 2: of the density √(π/2) t^{−3/2} Σ_k x_k² e^{−x_k²/2t}/sin²(ω/2), x_k = ω + 2πk.
template <class T>
[[nodiscard]] SHEAFNN_HD inline T heat_acceptance(const HalfAngle<T>& half, const T& t) {
  using std::exp;
  constexpr double two_pi = 6.283185307179586476925286766559;
  if (t >= T(2)) {
    const HalfAngle<T> none{T(0), T(1)};
    return exp(heat_kernel_of_characters(half, t).log - heat_kernel_of_characters(none, t).log);
  }
  const HeatImages<T> at(half, t);
  T squares = at.omega * at.omega;
  for (int k = 1; k <= 2; ++k) {
    const T less = T(two_pi * k) - at.omega, more = T(two_pi * k) + at.omega;
    squares += less * less * at.up[k - 1] + more * more * at.down[k - 1];
  }
  return squares > T(0) ? T(2) * half.sine * at.omega * at.total / squares : T(1);
}

}  // namespace sheafnn::detail

namespace sheafnn::rotation {

/// log f at a rotation of unit quaternion q from the location. Over T = float, double or Pack.
///
/// \param sigma  in [1e-30, 1e30], of float in [1e-9, 1e9]
/// Unchecked: that q is a unit quaternion, and the range of σ.
template <class T>
[[nodiscard]] SHEAFNN_HD inline T isotropic_gaussian_logpdf(const Column<T, 4>& q, const T& sigma) {
  return detail::heat_kernel(detail::half_angle<T>(q), T(sigma * sigma)).log;
}

/// log f(P); a drifted P is orthonormalised.
///
/// Rounded entries of P and M leave the angle an error of about ε, and log f one of about ωε/σ².
/// \throws std::invalid_argument  P is not a rotation
template <int N, class Scalar>
[[nodiscard]] Scalar logpdf(const IsotropicGaussian<N, Scalar>& distribution,
                            const std::type_identity_t<SquareMatrix<Scalar, N>>& p,
                            const SampleOptions<Scalar>& options = {}) {
  return static_cast<Scalar>(
      detail::heat_kernel_at(distribution, orthonormalised<Scalar, N>("logpdf: p", p, options)).log);
}

/// Derivatives of log f(P). Derivatives in matrices are taken over free matrices; score() is the derivative along
/// SO(3).
template <int N, class Scalar>
struct IsotropicGaussianGradient {
  Scalar scale;                      ///< ∂/∂σ
  SquareMatrix<Scalar, N> location;  ///< M̄ = h′P, h(tr PMᵀ) = log f
  SquareMatrix<Scalar, N> argument;  ///< P̄ = h′M
};

/// \throws std::invalid_argument  P is not a rotation
template <int N, class Scalar>
[[nodiscard]] IsotropicGaussianGradient<N, Scalar> logpdf_gradient(
    const IsotropicGaussian<N, Scalar>& distribution, const std::type_identity_t<SquareMatrix<Scalar, N>>& p,
    const SampleOptions<Scalar>& options = {}) {
  const SquareMatrix<Scalar, N> rotation = orthonormalised<Scalar, N>("logpdf_gradient: p", p, options);
  const auto kernel = detail::heat_kernel_at(distribution, rotation);
  const Scalar slope = static_cast<Scalar>(kernel.slope);
  return {static_cast<Scalar>(2 * static_cast<double>(distribution.scale()) * kernel.time_slope), slope * rotation,
          slope * distribution.location()};
}

/// The unit quaternion of a sample's turn PMᵀ, exact, by rejection: a pure function of (stream, id), on the host and on
/// devices. More than 0.4 of the proposals are accepted, 1 − σ²/8 of them as σ → 0.
///
/// Each proposal takes two draws, from first_draw on; the 2000th proposal is always accepted (probability below
/// 1e-400).
/// \param sigma  as for isotropic_gaussian_logpdf
/// Unchecked: its range.
template <class T>
[[nodiscard]] SHEAFNN_HD inline Column<T, 4> isotropic_gaussian_quaternion(const T& sigma, const Stream& stream,
                                                                           std::uint32_t id,
                                                                           std::uint32_t first_draw = 0) {
  static_assert(std::is_arithmetic_v<T>, "numbers of proposals differ from lane to lane");
  using std::cos;
  using std::sin;
  using std::sqrt;
  const T t = sigma * sigma;
  Column<T, 4> q;
  for (std::uint32_t attempt = 0; attempt < 2000; ++attempt) {
    const auto words = stream.words(id, first_draw + 2 * attempt);
    if (t >= T(2)) {
      q = detail::uniform_quaternion<T>(words);
    } else {
      const NormalBlock<T> normal = normals_from_words<T>(words);
      const T squared = normal.value[0] * normal.value[0] + normal.value[1] * normal.value[1] +
                        normal.value[2] * normal.value[2];
      const T length = sqrt(squared), half = T(0.5) * sigma * length;
      const T ratio = length > T(0) ? sin(half) / length : T(0);
      q(0) = cos(half);
      for (int i = 0; i < 3; ++i) q(1 + i) = ratio * normal.value[i];
    }
    const T uniform = random::uniform_from_word<T>(stream.words(id, first_draw + 2 * attempt + 1).word[0]);
    if (uniform < detail::heat_acceptance(detail::half_angle<T>(q), t)) break;
  }
  return q;
}

/// A sample, exact: a pure function of (stream, id), see isotropic_gaussian_quaternion().
template <int N, class Scalar>
[[nodiscard]] SquareMatrix<Scalar, N> sample(const IsotropicGaussian<N, Scalar>& distribution,
                                             const Stream& stream, std::uint32_t id,
                                             std::uint32_t first_draw = 0) {
  const double sigma = static_cast<double>(distribution.scale());
  const SquareMatrix<double, N> turn =
      quaternion_rotation<double>(isotropic_gaussian_quaternion<double>(sigma, stream, id, first_draw));
  return multiply(turn, SquareMatrix<double, N>(distribution.location().template cast<double>()))
      .template cast<Scalar>();
}

/// Cotangents of the parameters of an isotropic Gaussian distribution.
template <int N, class Scalar>
struct IsotropicGaussianCotangent {
  SquareMatrix<Scalar, N> location;  ///< M̄, of M as a free matrix
  Scalar scale;                      ///< σ̄
};

/// Cotangents of M and σ, given the cotangent of a sample Y: M̄ = (YMᵀ)ᵀ Ȳ, and σ̄ along dY/dσ = X_v Y, v = −σ · score at Y.
///
/// The field v moves the distribution of scale σ to the distribution of scale σ + dσ (math: "Isotropic Gaussian" (2.51)).
/// The derivative of E g(Y) in σ is the mean of σ̄. A sample itself, by rejection, is not a smooth function of σ.
///
/// \param y          a sample \param cotangent  Ȳ
/// Unchecked: that Y is a rotation; other matrices give meaningless numbers, and NaN gives NaN.
template <int N, class Scalar>
[[nodiscard]] IsotropicGaussianCotangent<N, Scalar> sample_backward(
    const IsotropicGaussian<N, Scalar>& distribution, const std::type_identity_t<SquareMatrix<Scalar, N>>& y,
    const std::type_identity_t<SquareMatrix<Scalar, N>>& cotangent) {
  const SquareMatrix<Scalar, N> turn = multiply_nt(y, distribution.location());
  const Scalar slope = static_cast<Scalar>(detail::heat_kernel_at(distribution, y).slope);
  const RotationParameters<Scalar, N> velocity =
      2 * distribution.scale() * slope * skew_parameters<Scalar, N>(turn);
  return {multiply_tn(turn, cotangent), velocity.dot(tangent_gradient<Scalar, N>(cotangent, y))};
}

/// KL to the uniform distribution in nats, E log f, by the trapezoidal rule in the angle.
template <int N, class Scalar>
[[nodiscard]] Scalar kl_to_uniform(const IsotropicGaussian<N, Scalar>& distribution) {
  return static_cast<Scalar>(detail::heat_averages(distribution.time()).divergence);
}

/// The derivative of kl_to_uniform() in σ: −σ E (∂ log f/∂ω)².
template <int N, class Scalar>
[[nodiscard]] Scalar kl_derivative(const IsotropicGaussian<N, Scalar>& distribution) {
  return static_cast<Scalar>(-static_cast<double>(distribution.scale()) *
                             detail::heat_averages(distribution.time()).squared_score);
}

/// Length of the mean, E[P] = r M: r = e^{−σ²}.
template <int N, class Scalar>
[[nodiscard]] Scalar mean_resultant(const IsotropicGaussian<N, Scalar>& distribution) {
  return static_cast<Scalar>(std::exp(-distribution.time()));
}

/// Fisher information of one sample about σ and about each coordinate φ of M ← exp(X_φ) M.
template <class Scalar>
struct ScaleInformation {
  Scalar scale;
  Scalar location;
};

/// I_σ = 4σ² E (∂ log f/∂t)², I_φ = E (∂ log f/∂ω)²/3; all coordinates are uncorrelated.
template <int N, class Scalar>
[[nodiscard]] ScaleInformation<Scalar> fisher_information(const IsotropicGaussian<N, Scalar>& distribution) {
  const detail::HeatAverages averages = detail::heat_averages(distribution.time());
  return {static_cast<Scalar>(4 * distribution.time() * averages.squared_time_slope),
          static_cast<Scalar>(averages.squared_score / 3)};
}

}  // namespace sheafnn::rotation
