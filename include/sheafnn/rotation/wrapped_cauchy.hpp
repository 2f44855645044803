/// \file
/// The wrapped Cauchy distribution of angles, which is the Cayley distribution on SO(2).
///
/// Density with respect to the uniform distribution of angles (so that it integrates to 1 against dθ/2π):
/// f(θ) = (1 − κ²)/(1 + κ² − 2κ cos(θ − μ)). A sample is the circle's Möbius map e^{iu} ↦ (e^{iu} + κ)/(1 +
/// κe^{iu}) of a uniform angle u, which is tan(θ/2) = (1 − κ)/(1 + κ) tan(u/2). Source: math, "Sampling
/// without the singularity" (2.11).
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/core/pack.hpp"
#include "sheafnn/random/stream.hpp"
#include "sheafnn/rotation/cayley_kl.hpp"

namespace sheafnn::rotation {

/// log f at the angle `centred` = θ − μ. Over T = float, double or Pack. \param kappa  in [0, 1)
/// Unchecked: the range of κ.
template <class T>
[[nodiscard]] SHEAFNN_HD inline T wrapped_cauchy_logpdf(const T& centred, const T& kappa) {
  using std::log;
  using std::sin;
  const T sine = sin(T(0.5) * centred);
  const T rest = T(1) - kappa;
  // 1 + κ² − 2κ cos = (1 − κ)² + 4κ sin², which keeps its digits near the mode.
  return log(rest * (T(1) + kappa)) - log(rest * rest + T(4) * kappa * sine * sine);
}

/// The angle in [−π, π] that belongs to a uniform angle u. Over T = float, double or Pack. The centred angle is turned by μ
/// as a point of the circle, so that nothing has to be wrapped. Unchecked: κ in [0, 1).
template <class T>
[[nodiscard]] SHEAFNN_HD inline T wrapped_cauchy_from_uniform(const T& u, const T& location, const T& kappa) {
  using std::atan2;
  using std::cos;
  using std::sin;
  // tan(θ/2) = b/a
  const T a = (T(1) + kappa) * cos(T(0.5) * u);
  const T b = (T(1) - kappa) * sin(T(0.5) * u);
  const T x = a * a - b * b;
  const T y = T(2) * a * b;
  const T c = cos(location);
  const T s = sin(location);
  return atan2(c * y + s * x, c * x - s * y);
}

/// The wrapped Cauchy distribution of angles: C(M, κ) on SO(2). Equation: on top of this file.
template <class Dtype = double>
class WrappedCauchy {
  static_assert(std::is_floating_point_v<Dtype>, "a distribution's parameters are float or double");

 public:
  using Scalar = Dtype;

  /// \param location       μ, in radians; finite
  /// \param concentration  κ in [0, 1), the length of the mean of e^{iθ}
  /// \throws std::invalid_argument  an argument is out of its range
  WrappedCauchy(Scalar location, Scalar concentration) : location_(location), concentration_(concentration) {
    require(std::isfinite(location), "WrappedCauchy: location", location, "must be finite");
    require(concentration >= 0 && concentration < 1, "WrappedCauchy: concentration", concentration,
            "must be in [0, 1)");
  }

  [[nodiscard]] Scalar location() const noexcept { return location_; }
  [[nodiscard]] Scalar concentration() const noexcept { return concentration_; }

 private:
  Scalar location_;
  Scalar concentration_;
};

/// f(θ) with respect to dθ/2π. \param angle  radians, any finite value
/// \throws std::invalid_argument  an angle that is not finite
template <class Scalar>
[[nodiscard]] Scalar pdf(const WrappedCauchy<Scalar>& distribution, std::type_identity_t<Scalar> angle) {
  require(std::isfinite(angle), "pdf: angle", angle, "must be finite");
  const Scalar kappa = distribution.concentration();
  const Scalar sine = std::sin((angle - distribution.location()) / 2);
  // 1 + κ² − 2κ cos = (1 − κ)² + 4κ sin², which keeps its digits near the mode.
  return (1 - kappa) * (1 + kappa) / ((1 - kappa) * (1 - kappa) + 4 * kappa * sine * sine);
}

/// log f(θ). \throws std::invalid_argument  an angle that is not finite
template <class Scalar>
[[nodiscard]] Scalar logpdf(const WrappedCauchy<Scalar>& distribution, std::type_identity_t<Scalar> angle) {
  require(std::isfinite(angle), "logpdf: angle", angle, "must be finite");
  return wrapped_cauchy_logpdf<Scalar>(angle - distribution.location(), distribution.concentration());
}

/// The sample that belongs to a uniform angle u, in [−π, π]. Takes any u; what is not finite gives NaN.
template <class Scalar>
[[nodiscard]] Scalar sample_from_uniform(const WrappedCauchy<Scalar>& distribution,
                                         std::type_identity_t<Scalar> u) {
  const Scalar kappa = distribution.concentration();
  const Scalar centred = 2 * std::atan2((1 - kappa) * std::sin(u / 2), (1 + kappa) * std::cos(u / 2));
  return std::remainder(centred + distribution.location(), Scalar(6.283185307179586476925286766559));
}

/// A sample in [−π, π]: a pure function of (stream, id); takes one draw. It is the angle of the
/// CayleyDistribution<2> sample with the same κ, stream and id.
template <class Scalar>
[[nodiscard]] Scalar sample(const WrappedCauchy<Scalar>& distribution, const Stream& stream, std::uint32_t id,
                            std::uint32_t first_draw = 0) {
  const Scalar u =
      Scalar(6.283185307179586476925286766559) * uniform_from_word<Scalar>(stream.words(id, first_draw).word[0]);
  return sample_from_uniform(distribution, u);
}

/// KL to the uniform distribution of angles: −log(1 − κ²).
template <class Scalar>
[[nodiscard]] Scalar kl_to_uniform(const WrappedCauchy<Scalar>& distribution) {
  return cayley_kl<2>(distribution.concentration());
}

/// Entropy with respect to dθ/2π, in nats: log(1 − κ²).
template <class Scalar>
[[nodiscard]] Scalar entropy(const WrappedCauchy<Scalar>& distribution) {
  return -kl_to_uniform(distribution);
}

/// The direction μ of E e^{iθ} = κ e^{iμ}, in [−π, π].
template <class Scalar>
[[nodiscard]] Scalar mean(const WrappedCauchy<Scalar>& distribution) {
  return std::remainder(distribution.location(), Scalar(6.283185307179586476925286766559));
}

/// |E e^{iθ}| = κ.
template <class Scalar>
[[nodiscard]] Scalar mean_resultant(const WrappedCauchy<Scalar>& distribution) {
  return distribution.concentration();
}

/// Derivatives in μ, κ and, where there is one, the angle.
template <class Scalar>
struct WrappedCauchyGradient {
  Scalar location;
  Scalar concentration;
  Scalar argument;
};

/// Derivatives of log f(θ) in μ, κ and θ. \throws std::invalid_argument  an angle that is not finite
template <class Scalar>
[[nodiscard]] WrappedCauchyGradient<Scalar> logpdf_gradient(const WrappedCauchy<Scalar>& distribution,
                                                            std::type_identity_t<Scalar> angle) {
  require(std::isfinite(angle), "logpdf_gradient: angle", angle, "must be finite");
  const Scalar kappa = distribution.concentration();
  const Scalar centred = angle - distribution.location();
  const Scalar sine = std::sin(centred / 2);
  const Scalar rest = 1 - kappa;
  const Scalar square = rest * rest + 4 * kappa * sine * sine;
  const Scalar turn = 2 * kappa * std::sin(centred) / square;
  // −2κ/(1 − κ²) + 2(cos − κ)/square, over one denominator and with cos = 1 − 2 sin² of the half.
  const Scalar along = 2 * (rest * rest - 2 * (1 + kappa * kappa) * sine * sine) / (rest * (1 + kappa) * square);
  return {turn, along, -turn};
}

/// Derivatives of the sample that belongs to a uniform angle u: dθ/dμ = 1, dθ/dκ = −2 sin(θ − μ)/(1 − κ²).
/// Takes any u; what is not finite gives NaN.
template <class Scalar>
[[nodiscard]] WrappedCauchyGradient<Scalar> sample_gradient(const WrappedCauchy<Scalar>& distribution,
                                                            std::type_identity_t<Scalar> u) {
  const Scalar kappa = distribution.concentration();
  const Scalar a = (1 + kappa) * std::cos(u / 2);
  const Scalar b = (1 - kappa) * std::sin(u / 2);
  // sin(θ − μ) = 2ab/(a² + b²), and (1 − κ²) cancels.
  return {1, -4 * std::cos(u / 2) * std::sin(u / 2) / (a * a + b * b), 0};
}

}  // namespace sheafnn::rotation
