/// \file
/// Diagonal<D>: F = diag(z), z ∈ R^D.
#pragma once

#include "sheafnn/sheaf/family.hpp"

namespace sheafnn {

/// The coordinates are the diagonal.
template <int D>
  requires sheaf::StalkDimension<D>
struct Diagonal : sheaf::DiagonalMaps<D> {
  static constexpr std::string_view name = "diagonal";
  static constexpr int coordinate_count = D;
  static constexpr bool coordinates_are_entries = true;

  /// Unchecked: that z has coordinate_count values.
  template <class T>
  SHEAFNN_HD static SHEAFNN_INLINE void from_coordinates(const T* z, Eigen::Matrix<T, D, 1>& map) {
    SHEAFNN_UNROLL for (int k = 0; k < D; ++k) map(k) = z[k];
  }
  /// The inverse of the chart. Unchecked: the sizes of arrays.
  template <class T>
  SHEAFNN_HD static SHEAFNN_INLINE void to_coordinates(const Eigen::Matrix<T, D, 1>& map, T* z) {
    SHEAFNN_UNROLL for (int k = 0; k < D; ++k) z[k] = map(k);
  }
  /// Sets z̄. Unchecked: the sizes of arrays.
  template <class T>
  SHEAFNN_HD static SHEAFNN_INLINE void from_coordinates_backward(const T*, const Eigen::Matrix<T, D, 1>& map_bar,
                                                                  T* z_bar) {
    SHEAFNN_UNROLL for (int k = 0; k < D; ++k) z_bar[k] = map_bar(k);
  }
};

}  // namespace sheafnn
