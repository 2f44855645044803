/// \file
/// Sheaf diffusion dX/dt = −ΔX: explicit Euler steps, and its limit t → ∞.
///
/// Source: paper, "Sheaf diffusion"; the limit is the projection of X(0) on ker Δ (math: "Harmonic space").
#pragma once

#include <cmath>
#include <type_traits>

#include "sheafnn/core/errors.hpp"
#include "sheafnn/sheaf/harmonic.hpp"
#include "sheafnn/sheaf/laplacian.hpp"

namespace sheafnn::sheaf {

/// X after `steps` Euler steps X ← X − step · ΔX.
///
/// An eigenmode λ is multiplied by 1 − step·λ, so the steps converge when step · λ_max < 2; this is checked with
/// the bound λ_max ≤ spectral_bound(). Converges to diffusion_limit.
///
/// \param x        X(0), (nD) × f
/// \param step     0 < step < 2 / spectral_bound()
/// \param steps    ≥ 0
/// \param execution  how many threads may work
/// \throws std::invalid_argument  wrong rows, entries that are not finite, steps < 0, or a step out of range
template <class Family, class Scalar>
[[nodiscard]] Cochain<Scalar> diffuse(const SheafLaplacian<Family, Scalar>& laplacian,
                                      const std::type_identity_t<CochainRef<Scalar>>& x,
                                      std::type_identity_t<Scalar> step, Index steps, Execution execution = {}) {
  detail::require_rows<Scalar>(x, laplacian.rows(), "C0");
  detail::require_finite<Scalar>(x, "x");
  require(steps >= 0, "steps", steps, "must not be negative");
  const Scalar bound = laplacian.spectral_bound();
  require(step > 0 && std::isfinite(step) && step * bound < 2, "step", step,
          detail::concat("Euler steps are stable for 0 < step < 2 / spectral_bound() = ", Scalar(2) / bound));
  Cochain<Scalar> state = x;
  Cochain<Scalar> change(x.rows(), x.cols());
  for (Index i = 0; i < steps; ++i) {
    laplacian.apply(state, change, execution);
    state -= step * change;
  }
  return state;
}

/// The limit t → ∞ of sheaf diffusion from X(0) = x, (nD) × f: the projection on ker Δ. \throws as harmonic_space()
/// For several x, keep the HarmonicSpace and call its project.
template <class Family, class Scalar>
[[nodiscard]] Cochain<Scalar> diffusion_limit(const SheafLaplacian<Family, Scalar>& laplacian,
                                              const std::type_identity_t<CochainRef<Scalar>>& x,
                                              const HarmonicOptions& options = {}) {
  return harmonic_space(laplacian, options).project(x);
}

}  // namespace sheafnn::sheaf
