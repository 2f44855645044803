/// \file
/// The angle that has a given mass below it, from the mass and its derivative.
#pragma once

#include <algorithm>
#include <cmath>

#include "sheafnn/rotation/pi.hpp"

namespace sheafnn::detail {

/// The r in [0, π] with mass(r) = target, by Newton's method kept inside a bracket. Up to half of the whole it solves for
/// log mass as a function of log r, which is a straight line near 0. Beyond, it solves for log(whole − mass), nearly a
/// parabola in r.
///
/// \param target   0 at r = 0, `whole` at π
/// \param start    at most the r sought
/// \param mass     of [0, r] \param density  its derivative
/// Unchecked: that mass grows from 0 to `whole`.
template <class Mass, class Density>
[[nodiscard]] double angle_root(double target, double whole, double start, const Mass& mass,
                                const Density& density) {
  double low = 0, high = pi;
  if (target >= whole) return high;
  if (target <= 0) return low;
  double r = std::min(0.5 * high, start);
  for (int i = 0; i < 100 && high - low > 4e-16 * high; ++i) {
    const double below = mass(r);
    if (std::abs(below - target) <= 4e-16 * target) break;
    (below > target ? high : low) = r;
    const double slope = density(r);
    double next = target < 0.5 * whole
                      ? r * std::exp(std::log(target / below) * below / (r * slope))
                      : r + std::log((whole - below) / (whole - target)) * (whole - below) / slope;
    if (std::abs(next - r) <= 1e-14 * r) break;
    if (!(next > low && next < high)) next = 0.5 * (low + high);
    r = next;
  }
  return r;
}

}  // namespace sheafnn::detail
