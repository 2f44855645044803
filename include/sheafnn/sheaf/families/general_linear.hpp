/// \file
/// GeneralLinear<D>: any real D × D matrix.
#pragma once

#include "sheafnn/sheaf/family.hpp"

namespace sheafnn {

/// The coordinates are the entries, row by row.
template <int D>
  requires sheaf::StalkDimension<D>
struct GeneralLinear : sheaf::DenseMaps<D> {
  static constexpr std::string_view name = "general-linear";
  static constexpr int coordinate_count = D * D;
  static constexpr bool attention = true;
  static constexpr bool coordinates_are_entries = true;

  /// Unchecked: that z has coordinate_count values.
  template <class T>
  SHEAFNN_HD static SHEAFNN_INLINE void from_coordinates(const T* z, Eigen::Matrix<T, D, D>& map) {
    SHEAFNN_UNROLL for (int k = 0; k < D * D; ++k) map(k / D, k % D) = z[k];
  }
  /// The inverse of the chart. Unchecked: the sizes of arrays.
  template <class T>
  SHEAFNN_HD static SHEAFNN_INLINE void to_coordinates(const Eigen::Matrix<T, D, D>& map, T* z) {
    SHEAFNN_UNROLL for (int k = 0; k < D * D; ++k) z[k] = map(k / D, k % D);
  }
  /// Sets z̄. Unchecked: the sizes of arrays.
  template <class T>
  SHEAFNN_HD static SHEAFNN_INLINE void from_coordinates_backward(const T*, const Eigen::Matrix<T, D, D>& map_bar,
                                                                  T* z_bar) {
    SHEAFNN_UNROLL for (int k = 0; k < D * D; ++k) z_bar[k] = map_bar(k / D, k % D);
  }
};

}  // namespace sheafnn
