/// \file
/// Identity<D>: the trivial sheaf, F = I for every incident pair; its Laplacian is the graph Laplacian ⊗ I.
#pragma once

#include "sheafnn/core/errors.hpp"
#include "sheafnn/sheaf/family.hpp"

namespace sheafnn {

/// Nothing is stored and nothing is learned: a map is a placeholder that holds the number 1.
template <int D>
  requires sheaf::StalkDimension<D>
struct Identity {
  static constexpr std::string_view name = "identity";
  static constexpr int stalk_dimension = D;
  static constexpr int map_size = 0;
  static constexpr int coordinate_count = 0;
  static constexpr bool orthogonal = true;
  template <class T>
  using Map = sheaf::ScalarBlock<T>;
  template <class T>
  using Gram = sheaf::ScalarBlock<T>;
  template <class T>
  using Transport = sheaf::ScalarBlock<T>;

  template <class T>
  [[nodiscard]] SHEAFNN_HD static SHEAFNN_INLINE Gram<T> gram(const Eigen::Matrix<T, 1, 1>&) {
    return Gram<T>::Constant(T(1));
  }
  template <class T>
  SHEAFNN_HD static SHEAFNN_INLINE void gram_backward(const Eigen::Matrix<T, 1, 1>&, const Eigen::Matrix<T, 1, 1>&,
                                                      Eigen::Matrix<T, 1, 1>&) {}
  template <class T>
  [[nodiscard]] SHEAFNN_HD static SHEAFNN_INLINE Transport<T> transport(const Eigen::Matrix<T, 1, 1>&,
                                                                        const Eigen::Matrix<T, 1, 1>&) {
    return Transport<T>::Constant(T(1));
  }
  template <class T>
  SHEAFNN_HD static SHEAFNN_INLINE void transport_backward(const Eigen::Matrix<T, 1, 1>&,
                                                           const Eigen::Matrix<T, 1, 1>&,
                                                           const Eigen::Matrix<T, 1, 1>&, Eigen::Matrix<T, 1, 1>&,
                                                           Eigen::Matrix<T, 1, 1>&) {}
  template <class T>
  [[nodiscard]] SHEAFNN_HD static SquareMatrix<T, D> dense(const Eigen::Matrix<T, 1, 1>&) {
    return math::identity_matrix<T, D>();
  }
  /// Unchecked: that z has coordinate_count values.
  template <class T>
  SHEAFNN_HD static SHEAFNN_INLINE void from_coordinates(const T*, Eigen::Matrix<T, 1, 1>& map) {
    map(0) = T(1);
  }
  template <class T>
  SHEAFNN_HD static SHEAFNN_INLINE void from_coordinates_backward(const T*, const Eigen::Matrix<T, 1, 1>&, T*) {}

  /// \throws std::invalid_argument  a map that is not the number 1
  template <class Scalar>
  static void validate(Index index, const Eigen::Matrix<Scalar, 1, 1>& map) {
    if (map(0) != Scalar(1)) {
      throw_invalid_argument(detail::concat("maps[", index, "]"), map(0), "an identity map can only be 1");
    }
  }
};

}  // namespace sheafnn
