/// \file
/// SpecialOrthogonal<D>: rotations F ∈ SO(D), optionally times an edge weight w_e, which is stored separately.
///
/// F_aᵀF_a = I is a scalar block, F_aᵀF_b a dense one. Source: paper, "Bayesian sheaf neural networks"; math:
/// "Rotations".
#pragma once

#include "sheafnn/core/eigen.hpp"

#include <Eigen/LU>
#include <cmath>
#include <limits>
#include <string_view>

#include "sheafnn/core/errors.hpp"
#include "sheafnn/random/stream.hpp"
#include "sheafnn/rotation/haar.hpp"
#include "sheafnn/rotation/orthonormalise.hpp"
#include "sheafnn/rotation/parametrisation.hpp"
#include "sheafnn/rotation/skew.hpp"
#include "sheafnn/sheaf/family.hpp"

namespace sheafnn {

/// How far a user's rotation may be from orthogonal: |(RᵀR − I)_ij| ≤ √ε of the scalar type (1.5e-8 for double, 3.5e-4 for
/// float). So matrices printed with half of their digits are accepted.
template <class Scalar>
[[nodiscard]] inline Scalar orthogonality_tolerance() {
  return std::sqrt(std::numeric_limits<Scalar>::epsilon());
}

namespace detail {

/// \throws std::invalid_argument  not orthogonal within orthogonality_tolerance. \param what  the required property of
///                                the map, for the message
template <class Scalar, int D>
void require_orthogonal(Index index, const Eigen::Matrix<Scalar, D, D>& map, std::string_view what) {
  const Scalar defect = rotation::orthogonality_defect<Scalar, D>(map);
  if (defect <= orthogonality_tolerance<Scalar>()) return;
  throw_invalid_argument(concat("maps[", index, "]"), concat("a matrix with |RᵀR - I| = ", defect),
                         concat(what, " must be orthogonal within ", orthogonality_tolerance<Scalar>()));
}

}  // namespace detail

/// The coordinates are the D(D − 1)/2 parameters of a rotation parametrisation, by default Householder's.
template <int D>
  requires sheaf::StalkDimension<D>
struct SpecialOrthogonal : sheaf::DenseMaps<D> {
  static constexpr std::string_view name = "special-orthogonal";
  static constexpr int coordinate_count = rotation::rotation_parameters<D>;
  static constexpr bool orthogonal = true;
  template <class T>
  using Gram = sheaf::ScalarBlock<T>;

  template <class T>
  [[nodiscard]] SHEAFNN_HD static SHEAFNN_INLINE Gram<T> gram(const Eigen::Matrix<T, D, D>&) {
    return Gram<T>::Constant(T(1));
  }
  template <class T>
  SHEAFNN_HD static SHEAFNN_INLINE void gram_backward(const Eigen::Matrix<T, D, D>&, const Eigen::Matrix<T, 1, 1>&,
                                                      Eigen::Matrix<T, D, D>&) {}

  /// Largest |z_k| that a sheaf learner predicts: Euler angles cover (−π, π).
  [[nodiscard]] SHEAFNN_HD static constexpr double coordinate_range(
      rotation::RotationParametrisation parametrisation, int) {
    return parametrisation == rotation::RotationParametrisation::euler ? 3.14159265358979323846 : 1.0;
  }
  /// Unchecked: that z has coordinate_count values.
  template <class T>
  SHEAFNN_HD static void from_coordinates(const T* z, Eigen::Matrix<T, D, D>& map,
                                          rotation::RotationParametrisation parametrisation = {}) {
    map = rotation::rotation_from_parameters<T, D>(parametrisation, parameters(z));
  }
  /// Sets z̄. Unchecked: the sizes of arrays.
  template <class T>
  SHEAFNN_HD static void from_coordinates_backward(const T* z, const Eigen::Matrix<T, D, D>& map_bar, T* z_bar,
                                                   rotation::RotationParametrisation parametrisation = {}) {
    rotation::RotationParameters<T, D> phi_bar = rotation::RotationParameters<T, D>::Constant(T(0));
    rotation::rotation_from_parameters_backward<T, D>(parametrisation, parameters(z), map_bar, phi_bar);
    for (int k = 0; k < coordinate_count; ++k) z_bar[k] = phi_bar(k);
  }

  /// \throws std::invalid_argument  not orthogonal within orthogonality_tolerance, or determinant −1
  template <class Scalar>
  static void validate(Index index, const Eigen::Matrix<Scalar, D, D>& map) {
    detail::require_orthogonal<Scalar, D>(index, map, "a rotation");
    const Scalar determinant = detail::pivoted_determinant<Scalar, D>(map);
    if (!(determinant > 0)) {
      throw_invalid_argument(detail::concat("maps[", index, "]"), detail::concat("a matrix with determinant ", determinant),
                             "a rotation has determinant 1");
    }
  }

  /// The rotation next to one within orthogonality_tolerance of float: two Newton–Schulz steps.
  /// Unchecked: that it is.
  template <class Scalar>
  [[nodiscard]] static SquareMatrix<Scalar, D> nearest(const Eigen::Matrix<Scalar, D, D>& map) {
    return rotation::orthonormalisation_step<Scalar, D>(rotation::orthonormalisation_step<Scalar, D>(map));
  }

  /// A uniform (Haar) rotation.
  template <class Scalar>
  [[nodiscard]] static SquareMatrix<Scalar, D> random_map(const Stream& stream, std::uint32_t id) {
    return rotation::haar_rotation<Scalar, D>(stream, id);
  }

 private:
  template <class T>
  [[nodiscard]] SHEAFNN_HD static SHEAFNN_INLINE rotation::RotationParameters<T, D> parameters(const T* z) {
    rotation::RotationParameters<T, D> phi;
    for (int k = 0; k < coordinate_count; ++k) phi(k) = z[k];
    return phi;
  }
};

}  // namespace sheafnn
