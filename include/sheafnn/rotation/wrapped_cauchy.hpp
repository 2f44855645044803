/// \file
/// The wrapped Cauchy distribution of angles, which is the Cayley distribution on SO(2).
///
/// Density with respect to the uniform distribution of angles (so that it integrates to 1 against dθ/2π):
/// f(θ) = (1 − κ²)/(1 + κ² − 2κ cos(θ − μ)). A sample is the circle's Möbius map e^{iu} ↦ (e^{iu} + κ)/(1 +
/// κe^{iu}) of a uniform angle u, which is tan(θ/2) = (1 − κ)/(1 + κ) tan(u/2). Source: math, "Sampling".
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "sheafnn/core/errors.hpp"
#include "sheafnn/random/stream.hpp"
#include "sheafnn/rotation/cayley_kl.hpp"

namespace sheafnn {

template <class Scalar = double>
class WrappedCauchy {
  static_assert(std::is_floating_point_v<Scalar>, "a distribution's parameters are float or double");

 public:
  /// \param location       μ, in radians; finite
  /// \param concentration  κ in [0, 1), the length of the mean of e^{iθ}
  /// \throws std::invalid_argument  otherwise
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
template <class Scalar>
[[nodiscard]] Scalar pdf(const WrappedCauchy<Scalar>& distribution, std::type_identity_t<Scalar> angle) {
  require(std::isfinite(angle), "pdf: angle", angle, "must be finite");
  const Scalar kappa = distribution.concentration();
  const Scalar sine = std::sin((angle - distribution.location()) / 2);
  // 1 + κ² − 2κ cos = (1 − κ)² + 4κ sin², which keeps its digits near the mode.
  return (1 - kappa) * (1 + kappa) / ((1 - kappa) * (1 - kappa) + 4 * kappa * sine * sine);
}

/// log f(θ).
template <class Scalar>
[[nodiscard]] Scalar logpdf(const WrappedCauchy<Scalar>& distribution, std::type_identity_t<Scalar> angle) {
  return std::log(pdf(distribution, angle));
}

/// The sample that belongs to a uniform angle u, in [−π, π].
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

}  // namespace sheafnn
