/// \file
/// Conformal<D>: F = c R with c > 0 and R ∈ SO(D), the maps of cooperative sheaf networks.
///
/// F_aᵀF_a = c² I is a scalar block, as for rotations, so that the degree D_u = Σ c_a² and its normalisation stay
/// scalar; F_aᵀF_b is dense. As functions of the stored matrix: c² = ‖F‖²/D, hence F̄ += (2/D) ḡ F.
/// Source: math: "Conformal maps".
#pragma once

#include <cmath>

#include "sheafnn/core/errors.hpp"
#include "sheafnn/sheaf/families/special_orthogonal.hpp"

namespace sheafnn {

/// The coordinates are the coordinates of the rotation R, then log c.
template <int D>
  requires sheaf::StalkDimension<D>
struct Conformal : sheaf::DenseMaps<D> {
  using Rotation = SpecialOrthogonal<D>;
  static constexpr std::string_view name = "conformal";
  static constexpr int coordinate_count = Rotation::coordinate_count + 1;
  /// |log c| is limited to it, so that c² is neither 0 nor infinite in float.
  static constexpr double largest_log_scale = 40;
  template <class T>
  using Gram = sheaf::ScalarBlock<T>;

  /// Takes any map.
  template <class T>
  [[nodiscard]] SHEAFNN_HD static SHEAFNN_INLINE Gram<T> gram(const Eigen::Matrix<T, D, D>& map) {
    return Gram<T>::Constant(math::inner_product(map, map) * T(1.0 / D));
  }
  /// Takes any map.
  template <class T>
  SHEAFNN_HD static SHEAFNN_INLINE void gram_backward(const Eigen::Matrix<T, D, D>& map,
                                                      const Eigen::Matrix<T, 1, 1>& gram_bar,
                                                      Eigen::Matrix<T, D, D>& map_bar) {
    const T factor = T(2.0 / D) * gram_bar(0, 0);
    for (int k = 0; k < D * D; ++k) map_bar(k % D, k / D) += factor * map(k % D, k / D);
  }

  /// Takes any k.
  [[nodiscard]] SHEAFNN_HD static constexpr double coordinate_range(
      rotation::RotationParametrisation parametrisation, int k) {
    return k < Rotation::coordinate_count ? Rotation::coordinate_range(parametrisation, k) : 1.0;
  }
  /// log c within its limits. Takes any number; NaN stays NaN.
  template <class T>
  [[nodiscard]] SHEAFNN_HD static SHEAFNN_INLINE T limited(const T& log_scale) {
    const T limit = T(largest_log_scale), above = math::select(log_scale > limit, limit, log_scale);
    return math::select(above < -limit, -limit, above);
  }
  /// Is log c within them? Beyond, F does not depend on it. Takes any number.
  template <class T>
  [[nodiscard]] SHEAFNN_HD static SHEAFNN_INLINE T within_limits(const T& log_scale) {
    const T limit = T(largest_log_scale);
    return math::select(log_scale > limit, T(0), math::select(log_scale < -limit, T(0), T(1)));
  }
  /// Unchecked: that z has coordinate_count values.
  template <class T>
  SHEAFNN_HD static void from_coordinates(const T* z, Eigen::Matrix<T, D, D>& map,
                                          rotation::RotationParametrisation parametrisation = {}) {
    using std::exp;
    Rotation::from_coordinates(z, map, parametrisation);
    const T scale = exp(limited(z[coordinate_count - 1]));
    for (int k = 0; k < D * D; ++k) map(k % D, k / D) *= scale;
  }
  /// Sets z̄: R̄ = c F̄, and ∂F/∂ log c = F. Unchecked: the sizes of arrays.
  template <class T>
  SHEAFNN_HD static void from_coordinates_backward(const T* z, const Eigen::Matrix<T, D, D>& map_bar, T* z_bar,
                                                   rotation::RotationParametrisation parametrisation = {}) {
    using std::exp;
    const T scale = exp(limited(z[coordinate_count - 1]));
    Eigen::Matrix<T, D, D> rotation, rotation_bar;
    Rotation::from_coordinates(z, rotation, parametrisation);
    for (int k = 0; k < D * D; ++k) rotation_bar(k % D, k / D) = scale * map_bar(k % D, k / D);
    Rotation::from_coordinates_backward(z, rotation_bar, z_bar, parametrisation);
    z_bar[coordinate_count - 1] =
        within_limits(z[coordinate_count - 1]) * math::inner_product(rotation_bar, rotation);
  }

  /// \throws std::invalid_argument  no positive multiple of a rotation, within orthogonality_tolerance
  template <class Scalar>
  static void validate(Index index, const Eigen::Matrix<Scalar, D, D>& map) {
    const Scalar scale = std::sqrt(gram(map)(0));
    if (!(scale > 0) || !std::isnormal(scale * scale)) {
      throw_invalid_argument(detail::concat("maps[", index, "]"), detail::concat("a matrix of scale ", scale),
                             "a conformal map has a positive, finite scale");
    }
    Rotation::validate(index, Eigen::Matrix<Scalar, D, D>(map / scale));
  }

  /// The same scale times the nearest rotation.
  template <class Scalar>
  [[nodiscard]] static SquareMatrix<Scalar, D> nearest(const Eigen::Matrix<Scalar, D, D>& map) {
    const Scalar scale = std::sqrt(gram(map)(0));
    return scale * Rotation::template nearest<Scalar>(map / scale);
  }

  /// A uniform rotation times e^x, x ~ N(0, 1).
  template <class Scalar>
  [[nodiscard]] static SquareMatrix<Scalar, D> random_map(const Stream& stream, std::uint32_t id) {
    Scalar log_scale;
    fill_normals<1>(&log_scale, stream, id, static_cast<std::uint32_t>(rotation::haar_draws<D>));
    return std::exp(log_scale) * rotation::haar_rotation<Scalar, D>(stream, id);
  }
};

}  // namespace sheafnn
