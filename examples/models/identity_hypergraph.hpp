/// \file
/// IdentityMaps: networks on hypergraphs with identity maps, to compare with. They have no parameters of maps.
#pragma once

#include <Eigen/Core>
#include <sheafnn/bsnn/hypergraph_network.hpp>
#include <sheafnn/sheaf/family.hpp>
#include <string_view>

namespace programs {

/// Identity maps, which have nothing to learn: the library's families for hypergraphs all learn their maps.
template <int D>
struct IdentityMaps : sheafnn::sheaf::DiagonalMaps<D> {
  static constexpr std::string_view name = "identity";
  static constexpr int coordinate_count = 0;

  template <class T>
  SHEAFNN_HD static void from_coordinates(const T*, Eigen::Matrix<T, D, 1>& map) {
    for (int k = 0; k < D; ++k) map(k) = T(1);
  }
  template <class T>
  SHEAFNN_HD static void from_coordinates_backward(const T*, const Eigen::Matrix<T, D, 1>&, T*) {}
};

}  // namespace programs
