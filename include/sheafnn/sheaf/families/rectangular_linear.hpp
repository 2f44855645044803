/// \file
/// RectangularLinear<E, D>: any real E × D matrix, from stalks R^D of nodes to stalks R^E of edges, for maps that are given
/// (sheaf/labelled_sheaf.hpp). Laplacians need F_aᵀF_a and F_aᵀF_b alone, which are D × D.
#pragma once

#include <string_view>

#include "sheafnn/sheaf/family.hpp"

namespace sheafnn {

/// The coordinates are the entries, row by row.
template <int E, int D>
  requires(sheaf::StalkDimension<E>&& sheaf::StalkDimension<D>&& D > 1)
struct RectangularLinear {
  static constexpr std::string_view name = "rectangular-linear";
  static constexpr int stalk_dimension = D;
  static constexpr int edge_stalk_dimension = E;
  static constexpr int map_size = E * D;
  static constexpr int coordinate_count = E * D;
  static constexpr bool coordinates_are_entries = true;
  template <class T>
  using Map = Eigen::Matrix<T, E, D>;
  template <class T>
  using Gram = sheaf::DenseBlock<T, D>;
  template <class T>
  using Transport = sheaf::DenseBlock<T, D>;

  /// Takes any maps.
  template <class T, int Options>
  [[nodiscard]] SHEAFNN_HD static SHEAFNN_INLINE Gram<T> gram(const Eigen::Matrix<T, E, D, Options>& map) {
    return transport(map, map);
  }
  /// F̄ += F (Ḡ + Ḡᵀ). Takes any maps.
  template <class T, int Options>
  SHEAFNN_HD static SHEAFNN_INLINE void gram_backward(const Eigen::Matrix<T, E, D, Options>& map,
                                                      const Eigen::Matrix<T, D, D>& gram_bar,
                                                      Eigen::Matrix<T, E, D, Options>& map_bar) {
    for (int i = 0; i < E; ++i) {
      for (int j = 0; j < D; ++j) {
        for (int k = 0; k < D; ++k) map_bar(i, j) += map(i, k) * (gram_bar(k, j) + gram_bar(j, k));
      }
    }
  }
  /// Takes any maps.
  template <class T, int Options>
  [[nodiscard]] SHEAFNN_HD static SHEAFNN_INLINE Transport<T> transport(const Eigen::Matrix<T, E, D, Options>& a,
                                                                        const Eigen::Matrix<T, E, D, Options>& b) {
    Transport<T> r;
    for (int j = 0; j < D; ++j) {
      for (int i = 0; i < D; ++i) {
        T sum = a(0, i) * b(0, j);
        for (int k = 1; k < E; ++k) sum += a(k, i) * b(k, j);
        r(i, j) = sum;
      }
    }
    return r;
  }
  /// F̄_a += F_b Q̄ᵀ, F̄_b += F_a Q̄. Takes any maps.
  template <class T, int Options>
  SHEAFNN_HD static SHEAFNN_INLINE void transport_backward(const Eigen::Matrix<T, E, D, Options>& a,
                                                           const Eigen::Matrix<T, E, D, Options>& b,
                                                           const Eigen::Matrix<T, D, D>& transport_bar,
                                                           Eigen::Matrix<T, E, D, Options>& a_bar,
                                                           Eigen::Matrix<T, E, D, Options>& b_bar) {
    for (int i = 0; i < E; ++i) {
      for (int j = 0; j < D; ++j) {
        for (int k = 0; k < D; ++k) {
          a_bar(i, j) += b(i, k) * transport_bar(j, k);
          b_bar(i, j) += a(i, k) * transport_bar(k, j);
        }
      }
    }
  }
  /// F as a matrix. Takes any maps.
  template <class T, int Options>
  [[nodiscard]] SHEAFNN_HD static Map<T> dense(const Eigen::Matrix<T, E, D, Options>& map) {
    return map;
  }
  /// Unchecked: that z has coordinate_count values.
  template <class T, int Options>
  SHEAFNN_HD static SHEAFNN_INLINE void from_coordinates(const T* z, Eigen::Matrix<T, E, D, Options>& map) {
    for (int k = 0; k < E * D; ++k) map(k / D, k % D) = z[k];
  }
  /// The inverse of the chart. Unchecked: the sizes of arrays.
  template <class T, int Options>
  SHEAFNN_HD static SHEAFNN_INLINE void to_coordinates(const Eigen::Matrix<T, E, D, Options>& map, T* z) {
    for (int k = 0; k < E * D; ++k) z[k] = map(k / D, k % D);
  }
  /// Sets z̄. Unchecked: the sizes of arrays.
  template <class T, int Options>
  SHEAFNN_HD static SHEAFNN_INLINE void from_coordinates_backward(const T*,
                                                                  const Eigen::Matrix<T, E, D, Options>& map_bar,
                                                                  T* z_bar) {
    to_coordinates(map_bar, z_bar);
  }
};

}  // namespace sheafnn
