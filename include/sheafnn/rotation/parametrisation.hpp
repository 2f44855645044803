/// \file
/// Parametrisations of rotations by φ ∈ R^{N(N−1)/2}, chosen at run time: Householder, Cayley, exponential, Euler.
///
/// Each NAME has NAME_rotation<T, N>(φ) → Q ∈ SO(N) and NAME_rotation_backward<T, N>(φ, cotangent, gradient),
/// which adds d⟨cotangent, Q(φ)⟩/dφ to the gradient. Function templates over T = float, double or Pack. N = 1 has
/// no parameters. Source: math, "Rotations".
#pragma once

#include <array>
#include <cassert>
#include <string_view>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/core/names.hpp"
#include "sheafnn/core/small_matrix.hpp"
#include "sheafnn/rotation/cayley_transform.hpp"
#include "sheafnn/rotation/euler.hpp"
#include "sheafnn/rotation/exponential.hpp"
#include "sheafnn/rotation/householder.hpp"
#include "sheafnn/rotation/skew.hpp"

namespace sheafnn::rotation {

/// How φ becomes a rotation; Euler angles exist for N = 2 and 3 only.
enum class RotationParametrisation { householder, cayley, exponential, euler };

/// Its names, in the order of the enumeration.
[[nodiscard]] constexpr auto names_of(RotationParametrisation) {
  return std::array{"householder", "cayley", "exponential", "euler"};
}

/// \throws std::invalid_argument  unknown name
[[nodiscard]] inline RotationParametrisation parse_rotation_parametrisation(std::string_view text) {
  return parse_name<RotationParametrisation>("rotation parametrisation", text);
}

/// Q(φ) ∈ SO(N).
///
/// \param parametrisation  euler only for N ≤ 3 (asserted)
/// Unchecked: what the parametrisation demands of φ.
template <class T, int N>
[[nodiscard]] SHEAFNN_HD SHEAFNN_NOINLINE SquareMatrix<T, N> rotation_from_parameters(
    RotationParametrisation parametrisation, const RotationParameters<T, N>& phi) {
  switch (parametrisation) {
    case RotationParametrisation::householder:
      return householder_rotation<T, N>(phi);
    case RotationParametrisation::cayley:
      return cayley_rotation<T, N>(phi);
    case RotationParametrisation::exponential:
      return exponential_rotation<T, N>(phi);
    case RotationParametrisation::euler:
      if constexpr (has_euler_angles<N>) return euler_rotation<T, N>(phi);
  }
  assert(false && "Euler angles exist for N = 2 and 3");
  return identity_matrix<T, N>();
}

/// Adds d⟨cotangent, Q(φ)⟩/dφ to `gradient`. Unchecked: as above.
template <class T, int N>
SHEAFNN_HD SHEAFNN_NOINLINE void rotation_from_parameters_backward(RotationParametrisation parametrisation,
                                                         const RotationParameters<T, N>& phi,
                                                         const SquareMatrix<T, N>& cotangent,
                                                         RotationParameters<T, N>& gradient) {
  switch (parametrisation) {
    case RotationParametrisation::householder:
      return householder_rotation_backward<T, N>(phi, cotangent, gradient);
    case RotationParametrisation::cayley:
      return cayley_rotation_backward<T, N>(phi, cotangent, gradient);
    case RotationParametrisation::exponential:
      return exponential_rotation_backward<T, N>(phi, cotangent, gradient);
    case RotationParametrisation::euler:
      if constexpr (has_euler_angles<N>) return euler_rotation_backward<T, N>(phi, cotangent, gradient);
  }
  assert(false && "Euler angles exist for N = 2 and 3");
}

}  // namespace sheafnn::rotation
