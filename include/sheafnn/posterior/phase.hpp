/// \file
/// PhasePosterior: the distribution of the phase e^{iφ} of an arc, C_2(R, κ) around a rotation R of the plane, and its
/// derivatives in κ. Source: math: "Directed sheaves" (3.57); the distribution is posterior/cayley.hpp with D = 2.
///
/// Unchecked: see posterior/sheaf_posterior.hpp. Takes any numbers.
#pragma once

#include <cstdint>

#include "sheafnn/core/config.hpp"
#include "sheafnn/posterior/cayley.hpp"
#include "sheafnn/posterior/spread_range.hpp"

namespace sheafnn {

/// A phase is its cosine and its sine.
template <class S>
class PhasePosterior {
  using Posterior = CayleyPosterior<SpecialOrthogonal<2>>;
  using Map = Posterior::Map<S>;

 public:
  /// Values of noise per arc: a uniform rotation of the plane.
  static constexpr int noise_size = Posterior::noise_size;

  /// The position of value k of the noise in a row of explicit noise.
  [[nodiscard]] SHEAFNN_HD static constexpr int noise_index(int k) { return Posterior::noise_index(k); }
  /// κ and its slope from κ before its activation.
  [[nodiscard]] SHEAFNN_HD static detail::Concentration<S> concentration(const S& raw) {
    return detail::concentration(SpreadRange::concentrated, raw);
  }
  SHEAFNN_HD void draw_noise(const Stream& stream, std::uint32_t arc, S* noise) const {
    posterior_.draw_noise<S>(stream, arc, noise);
  }
  /// \param centre  of the distribution \param phase  is drawn
  SHEAFNN_HD void sample(const S (&centre)[2], const S& kappa, const S* noise, S (&phase)[2]) const {
    S parameters[Posterior::parameter_size];
    set_parameters(centre, kappa, parameters);
    Map map;
    posterior_.sample(parameters, noise, map);
    phase[0] = map(0, 0);
    phase[1] = map(1, 0);
  }
  /// The derivative of κ from the derivative of the angle of a drawn phase.
  [[nodiscard]] SHEAFNN_HD S kappa_bar(const S (&centre)[2], const S& kappa, const S (&phase)[2],
                                       const S& angle_bar) const {
    const S cosine = phase[0], sine = phase[1], half_bar = S(0.5) * angle_bar;
    Map map, map_bar;  // dR/dφ has the norm √2
    map(0, 0) = map(1, 1) = cosine;
    map(1, 0) = sine;
    map(0, 1) = -sine;
    map_bar(0, 0) = map_bar(1, 1) = -half_bar * sine;
    map_bar(1, 0) = half_bar * cosine;
    map_bar(0, 1) = -half_bar * cosine;
    S parameters[Posterior::parameter_size], gradient[Posterior::gradient_size] = {};
    set_parameters(centre, kappa, parameters);
    posterior_.sample_backward(parameters, static_cast<const S*>(nullptr), map, map_bar, S(0), gradient);
    return gradient[Posterior::gradient_size - 1];
  }
  /// KL of the distribution and the uniform one, which does not depend on its centre.
  [[nodiscard]] SHEAFNN_HD S kl(const S& kappa) const {
    S parameters[Posterior::parameter_size];
    set_parameters(kappa, parameters);
    return posterior_.kl(parameters);
  }
  /// weight · ∂kl/∂κ.
  [[nodiscard]] SHEAFNN_HD S kl_bar(const S& kappa, const S& weight) const {
    S parameters[Posterior::parameter_size], gradient[Posterior::gradient_size] = {};
    set_parameters(kappa, parameters);
    posterior_.kl_backward(parameters, weight, gradient);
    return gradient[Posterior::gradient_size - 1];
  }

 private:
  SHEAFNN_HD static void set_parameters(const S& kappa, S* parameters) {
    const S centre[2] = {S(1), S(0)};
    set_parameters(centre, kappa, parameters);
  }
  SHEAFNN_HD static void set_parameters(const S (&centre)[2], const S& kappa, S* parameters) {
    parameters[0] = parameters[3] = centre[0];
    parameters[1] = centre[1];
    parameters[2] = -centre[1];
    parameters[Posterior::parameter_size - 1] = kappa;
  }

  Posterior posterior_;
};

}  // namespace sheafnn
