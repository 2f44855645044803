/// \file
/// Integrals over SO(3) for tests: unit quaternions (√(1−u) e^{iα}, √u e^{iβ}) with u by Gauss's formula and both angles by the
/// trapezoidal rule, exact for polynomials of some degree in the entries of the rotation.
#pragma once

#include <cmath>

#include "sheafnn/core/small_matrix.hpp"
#include "sheafnn/rotation/quaternion.hpp"
#include "sheafnn/rotation/unit_quadrature.hpp"

namespace so3_quadrature {

/// ∫ f dHaar with `turns`² · 8 · `parts` points.
template <class F>
double integral(const F& f, int turns = 32, int parts = 4) {
  return sheafnn::detail::integrate_parts(
      [&](double u) {
        double sum = 0;
        for (int i = 0; i < turns; ++i) {
          for (int j = 0; j < turns; ++j) {
            const double alpha = 6.283185307179586 * (i + 0.25) / turns,
                         beta = 6.283185307179586 * (j + 0.125) / turns;
            const double a = std::sqrt(1 - u), b = std::sqrt(u);
            sum += f(sheafnn::rotation::quaternion_rotation<double>(
                sheafnn::math::Column<double, 4>(a * std::cos(alpha), a * std::sin(alpha), b * std::cos(beta),
                                                 b * std::sin(beta))));
          }
        }
        return sum / (turns * turns);
      },
      0, 1, parts);
}

}  // namespace so3_quadrature
