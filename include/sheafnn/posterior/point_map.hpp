/// \file
/// PointMap: the restriction map that a sheaf learner's raw outputs stand for, F = chart(range · act(raw)). It has a
/// backward pass; act is tanh unless the model says otherwise. Deterministic models use this map; rotation posteriors place
/// their mean there.
///
/// Source: math: "The model".
/// Unchecked: see posterior/sheaf_posterior.hpp.
#pragma once

#include <cmath>

#include "sheafnn/core/config.hpp"
#include "sheafnn/posterior/sheaf_activation.hpp"
#include "sheafnn/rotation/parametrisation.hpp"
#include "sheafnn/sheaf/family.hpp"

namespace sheafnn {

namespace detail {

/// Arrays need at least one element.
[[nodiscard]] constexpr int array_size(int count) { return count > 0 ? count : 1; }

}  // namespace detail

/// T = float, double or Pack.
template <RestrictionMapFamily Family>
struct PointMap {
  static_assert(!detail::NamesCoordinateRange<Family> || requires(rotation::RotationParametrisation p) {
    { Family::coordinate_range(p, 0) } -> std::convertible_to<double>;
  }, "coordinate_range must be callable as double(RotationParametrisation, int)");
  static constexpr int size = Family::coordinate_count;  ///< raw outputs per map
  template <class T>
  using Map = typename Family::template Map<T>;

  rotation::RotationParametrisation parametrisation =
      rotation::RotationParametrisation::householder;  ///< of families with rotations
  SheafActivation sheaf_activation = SheafActivation::tanh;

  /// \param raw  size values
  template <class T>
  SHEAFNN_HD void map(const T* raw, Map<T>& out) const {
    T z[detail::array_size(size)];
    squash(raw, z);
    if constexpr (requires { Family::from_coordinates(z, out, parametrisation); }) {
      Family::from_coordinates(z, out, parametrisation);
    } else {
      Family::from_coordinates(z, out);
    }
  }

  /// Computes the derivative of the raw outputs (overwritten) from the derivative of the map.
  template <class T>
  SHEAFNN_HD void backward(const T* raw, const Map<T>& map_bar, T* raw_bar) const {
    T z[detail::array_size(size)];
    squash(raw, z);
    pull_back(raw, z, map_bar, raw_bar);
  }
  /// The same where the map is at hand: of families whose coordinates are its entries, nothing is computed again.
  template <class T>
  SHEAFNN_HD void backward(const T* raw, [[maybe_unused]] const Map<T>& map, const Map<T>& map_bar, T* raw_bar) const {
    if constexpr (sheaf::coordinates_are_entries<Family>) {
      T z[detail::array_size(size)];
      Family::to_coordinates(map, z);
      pull_back(raw, z, map_bar, raw_bar);
    } else {
      backward(raw, map_bar, raw_bar);
    }
  }

  friend bool operator==(const PointMap&, const PointMap&) = default;

 private:
  /// \param z  the coordinates: range · act(raw)
  template <class T>
  SHEAFNN_HD SHEAFNN_INLINE void pull_back([[maybe_unused]] const T* raw, const T* z, const Map<T>& map_bar,
                                           T* raw_bar) const {
    T z_bar[detail::array_size(size)];
    if constexpr (requires { Family::from_coordinates_backward(z, map_bar, z_bar, parametrisation); }) {
      Family::from_coordinates_backward(z, map_bar, z_bar, parametrisation);
    } else {
      Family::from_coordinates_backward(z, map_bar, z_bar);
    }
    if constexpr (sheaf::may_attend<Family>) {
      if (sheaf_activation == SheafActivation::attention) {
        detail::attention_backward<Family::stalk_dimension>(z, z_bar, raw_bar);
        return;
      }
    }
    T unit[detail::array_size(size)];
    SHEAFNN_UNROLL for (int k = 0; k < size; ++k) {
      const T r = T(static_cast<math::scalar_of_t<T>>(range(k)));
      unit[k] = z[k] / r;
      z_bar[k] = z_bar[k] * r;
    }
    detail::activate_coordinates_backward<Family>(sheaf_activation, raw, unit, z_bar, raw_bar);
  }

  [[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE double range([[maybe_unused]] int k) const {
    if constexpr (requires { Family::coordinate_range(parametrisation, k); }) {
      return Family::coordinate_range(parametrisation, k);
    } else {
      return 1.0;
    }
  }
  template <class T>
  SHEAFNN_HD SHEAFNN_INLINE void squash(const T* raw, T* z) const {
    if constexpr (size == 0) z[0] = T(0);  // read by nobody, but compilers warn
    if constexpr (sheaf::may_attend<Family>) {
      if (sheaf_activation == SheafActivation::attention) {
        detail::attention<Family::stalk_dimension>(raw, z);
        return;
      }
    }
    detail::activate_coordinates<Family>(sheaf_activation, raw, z);
    SHEAFNN_UNROLL for (int k = 0; k < size; ++k) z[k] = T(static_cast<math::scalar_of_t<T>>(range(k))) * z[k];
  }
};

}  // namespace sheafnn
