/// \file
/// RestrictionMapFamily: what a family of restriction maps F_{u⊴e} provides, and the parts that families share.
///
/// A family is a struct of static functions over T = float, double or Pack, branch-free. It fixes
///   - storage: `Map<T>`, an Eigen matrix of map_size entries (1 × 1 and map_size 0: no map is stored, F = I);
///   - the blocks of the Laplacian: `Gram<T>` of F_aᵀF_a and `Transport<T>` of F_aᵀF_b, of one of the shapes of
///     sheaf/blocks.hpp, with gram(), transport() and their adjoints. The shape determines the rest: normalisation,
///     storage per node and edge, diffusion;
///   - a chart: coordinate_count values z that a sheaf learner predicts, F = from_coordinates(z), with its adjoint.
///
/// DiagonalMaps<D> and DenseMaps<D> have all but name and chart; sheaf/families/ and examples/own_family.cpp are
/// examples. Source: paper, "Cellular sheaves"; math: "Coboundary and Laplacian".
#pragma once

#include <concepts>
#include <string_view>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/pack.hpp"
#include "sheafnn/core/small_matrix.hpp"
#include "sheafnn/sheaf/blocks.hpp"

namespace sheafnn::sheaf {

/// Largest stalk dimension the library is built and tested for.
inline constexpr int max_stalk_dimension = 8;

/// A stalk dimension of a family, 1 … 8.
template <int D>
concept StalkDimension = 1 <= D&& D <= max_stalk_dimension;

/// Dimension of the stalks of edges: F::edge_stalk_dimension where a family has it, otherwise the nodes'.
template <class F>
inline constexpr int edge_stalk_dimension = [] {
  if constexpr (requires { F::edge_stalk_dimension; }) {
    return F::edge_stalk_dimension;
  } else {
    return F::stalk_dimension;
  }
}();

/// F_aᵀF_a of a family, over T.
template <class F, class T>
using Gram = typename F::template Gram<T>;
/// F_aᵀF_b of a family, over T.
template <class F, class T>
using Transport = typename F::template Transport<T>;

}  // namespace sheafnn::sheaf

namespace sheafnn::detail {

/// Algebra and chart of a family over one scalar type.
template <class F, class T>
concept FamilyOver = requires(const typename F::template Map<T>& map, typename F::template Map<T>& map_bar,
                              const Gram<F, T>& gram_bar, const Transport<F, T>& transport_bar, const T* z,
                              T* z_bar) {
  { F::gram(map) } -> std::same_as<Gram<F, T>>;
  { F::transport(map, map) } -> std::same_as<Transport<F, T>>;
  F::gram_backward(map, gram_bar, map_bar);
  F::transport_backward(map, map, transport_bar, map_bar, map_bar);
  { F::dense(map) } -> std::same_as<Eigen::Matrix<T, edge_stalk_dimension<F>, F::stalk_dimension>>;
  F::from_coordinates(z, map_bar);
  F::from_coordinates_backward(z, map, z_bar);
};

/// Finds members by name, whatever they are: a name that two bases have is ambiguous.
struct OptionalMembers {
  int coordinate_range, to_coordinates;
};
template <class F>
struct WithOptionalMembers : F, OptionalMembers {};
template <class F>
concept NamesCoordinateRange = !requires { &WithOptionalMembers<F>::coordinate_range; };
template <class F>
concept NamesToCoordinates = !requires { &WithOptionalMembers<F>::to_coordinates; };

}  // namespace sheafnn::detail

namespace sheafnn::sheaf {

/// Compile-time form of a restriction map; see the file comment. A family may also have
///   - `orthogonal` = true: F_aᵀF_a = I for every map;
///   - `edge_stalk_dimension`: of edges, where it is another than stalk_dimension;
///   - `attention` = true: its coordinates are the D² entries of F row by row, so that F may be I − softmax;
///   - `has_edge_weights` = true: the model may learn a weight w_e besides the maps (default: if orthogonal);
///   - `validate(index, map)`: throws std::invalid_argument for maps that a user must not set;
///   - `nearest(map)`: the map of the family next to one computed in single precision (default: the map itself);
///   - `random_map(stream, id)`: a map for random_sheaf() (default: normal coordinates);
///   - `coordinate_range(parametrisation, k)`: r of z_k = r tanh(raw_k) (default: 1);
///   - `to_coordinates(map, z)`: the inverse of the chart, which spares posteriors from drawing their noise again;
///   - `coordinates_are_entries` = true: the chart copies its coordinates into the map.
template <class F>
concept RestrictionMapFamily = StalkDimension<F::stalk_dimension> && requires {
  { F::name } -> std::convertible_to<std::string_view>;
  { F::map_size } -> std::convertible_to<int>;
  { F::coordinate_count } -> std::convertible_to<int>;
} && detail::FamilyOver<F, double> && detail::FamilyOver<F, Pack<float, 16>>;

/// Is F_aᵀF_a = I for every map of the family?
template <class F>
inline constexpr bool is_orthogonal = requires { requires F::orthogonal; };
/// Does a family have parameters that can be learned?
template <class F>
inline constexpr bool is_learned = F::map_size > 0;
/// Are the coordinates of the chart the map's entries, which to_coordinates() reads back?
template <class F>
inline constexpr bool coordinates_are_entries = requires { requires F::coordinates_are_entries; };
/// May the maps be I − rowwise softmax of the coordinates?
template <class F>
inline constexpr bool may_attend = [] {
  if constexpr (requires { F::attention; }) {
    return F::attention && F::stalk_dimension > 1 && F::coordinate_count == F::stalk_dimension * F::stalk_dimension;
  } else {
    return false;
  }
}();
/// May the maps be I + coordinates, where these are all D² entries or the diagonal?
template <class F>
inline constexpr bool may_be_residual = [] {
  constexpr int D = F::stalk_dimension;
  return coordinates_are_entries<F> && edge_stalk_dimension<F> == D &&
         (F::coordinate_count == D || F::coordinate_count == D * D);
}();
/// May the model learn an edge weight w_e besides the maps?
template <class F>
inline constexpr bool may_have_edge_weights = [] {
  if constexpr (requires { F::has_edge_weights; }) {
    return F::has_edge_weights;
  } else {
    return is_orthogonal<F> && is_learned<F>;
  }
}();

/// Sizes of a family's blocks, as entries per node or arc.
template <class Family>
struct BlockSizes {
  static constexpr int dimension = Family::stalk_dimension;
  static constexpr int map = Family::map_size;
  static constexpr int gram_rows = Gram<Family, double>::RowsAtCompileTime;
  static constexpr int gram_columns = Gram<Family, double>::ColsAtCompileTime;
  static constexpr int gram = gram_rows * gram_columns;
  static constexpr int transport = Transport<Family, double>::SizeAtCompileTime;
  static constexpr bool dense_gram = is_dense_block<Gram<Family, double>>;
  static constexpr bool dense_transport = is_dense_block<Transport<Family, double>>;
  /// Entries that determine a Gram matrix: its upper triangle, column by column, where it is dense.
  static constexpr int triangle = dense_gram ? dimension * (dimension + 1) / 2 : gram;
  /// Eigenvectors and eigenvalues kept per node for the backward pass of a dense S_u.
  static constexpr int eigen = dense_gram ? dimension * dimension + dimension : 0;
};

/// F_aᵀF_a, without edge weight (with a weight w it is w² as large). Takes any maps.
template <class Family, class T>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE Gram<Family, T> gram(const typename Family::template Map<T>& map) {
  return Family::gram(map);
}
/// Adds the derivative of ⟨gram_bar, F_aᵀF_a⟩ to map_bar. Takes any maps.
template <class Family, class T>
SHEAFNN_HD SHEAFNN_INLINE void gram_backward(const typename Family::template Map<T>& map,
                                             const Gram<Family, T>& gram_bar,
                                             typename Family::template Map<T>& map_bar) {
  Family::gram_backward(map, gram_bar, map_bar);
}
/// F_aᵀF_b. Takes any maps.
template <class Family, class T>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE Transport<Family, T> transport(const typename Family::template Map<T>& a,
                                                                       const typename Family::template Map<T>& b) {
  return Family::transport(a, b);
}
/// Adds the derivative of ⟨transport_bar, F_aᵀF_b⟩ to a_bar and b_bar. Takes any maps.
template <class Family, class T>
SHEAFNN_HD SHEAFNN_INLINE void transport_backward(const typename Family::template Map<T>& a,
                                                  const typename Family::template Map<T>& b,
                                                  const Transport<Family, T>& transport_bar,
                                                  typename Family::template Map<T>& a_bar,
                                                  typename Family::template Map<T>& b_bar) {
  Family::transport_backward(a, b, transport_bar, a_bar, b_bar);
}

/// The identity in the shape of Gram<Family, T>.
template <class Family, class T>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE Gram<Family, T> gram_identity() {
  if constexpr (is_dense_block<Gram<Family, T>>) {
    return identity_matrix<T, Family::stalk_dimension>();
  } else {
    return Gram<Family, T>::Constant(T(1));
  }
}

/// Base of families whose maps are diagonal, F = diag(z).
template <int D>
  requires StalkDimension<D>
struct DiagonalMaps {
  static constexpr int stalk_dimension = D;
  static constexpr int map_size = D;
  template <class T>
  using Map = Eigen::Matrix<T, D, 1>;
  template <class T>
  using Gram = DiagonalBlock<T, D>;
  template <class T>
  using Transport = DiagonalBlock<T, D>;

  /// Takes any maps.
  template <class T>
  [[nodiscard]] SHEAFNN_HD static SHEAFNN_INLINE Gram<T> gram(const Eigen::Matrix<T, D, 1>& map) {
    return map.cwiseProduct(map);
  }
  /// Takes any maps.
  template <class T>
  SHEAFNN_HD static SHEAFNN_INLINE void gram_backward(const Eigen::Matrix<T, D, 1>& map,
                                                      const Eigen::Matrix<T, D, 1>& gram_bar,
                                                      Eigen::Matrix<T, D, 1>& map_bar) {
    for (int i = 0; i < D; ++i) map_bar(i) += T(2) * map(i) * gram_bar(i);
  }
  /// Takes any maps.
  template <class T>
  [[nodiscard]] SHEAFNN_HD static SHEAFNN_INLINE Transport<T> transport(const Eigen::Matrix<T, D, 1>& a,
                                                                        const Eigen::Matrix<T, D, 1>& b) {
    return a.cwiseProduct(b);
  }
  /// Takes any maps.
  template <class T>
  SHEAFNN_HD static SHEAFNN_INLINE void transport_backward(const Eigen::Matrix<T, D, 1>& a,
                                                           const Eigen::Matrix<T, D, 1>& b,
                                                           const Eigen::Matrix<T, D, 1>& transport_bar,
                                                           Eigen::Matrix<T, D, 1>& a_bar,
                                                           Eigen::Matrix<T, D, 1>& b_bar) {
    a_bar += b.cwiseProduct(transport_bar);
    b_bar += a.cwiseProduct(transport_bar);
  }
  /// F as a D × D matrix. Takes any maps.
  template <class T>
  [[nodiscard]] SHEAFNN_HD static SquareMatrix<T, D> dense(const Eigen::Matrix<T, D, 1>& map) {
    SquareMatrix<T, D> r = SquareMatrix<T, D>::Constant(T(0));
    for (int i = 0; i < D; ++i) r(i, i) = map(i);
    return r;
  }
};

/// Base of families whose maps are stored as D × D matrices, with dense blocks.
template <int D>
  requires StalkDimension<D>
struct DenseMaps {
  static constexpr int stalk_dimension = D;
  static constexpr int map_size = D * D;
  template <class T>
  using Map = SquareMatrix<T, D>;
  template <class T>
  using Gram = DenseBlock<T, D>;
  template <class T>
  using Transport = DenseBlock<T, D>;

  /// Takes any maps.
  template <class T>
  [[nodiscard]] SHEAFNN_HD static SHEAFNN_INLINE Gram<T> gram(const Eigen::Matrix<T, D, D>& map) {
    return multiply_tn(map, map);
  }
  /// F̄ += F (Ḡ + Ḡᵀ). Takes any maps.
  template <class T>
  SHEAFNN_HD static SHEAFNN_INLINE void gram_backward(const Eigen::Matrix<T, D, D>& map,
                                                      const Eigen::Matrix<T, D, D>& gram_bar,
                                                      Eigen::Matrix<T, D, D>& map_bar) {
    SquareMatrix<T, D> both;  // in loops: of Eigen's sum g++ 12 warns at -O1 that it may be uninitialised
    for (int j = 0; j < D; ++j) {
      for (int i = 0; i < D; ++i) both(i, j) = gram_bar(i, j) + gram_bar(j, i);
    }
    map_bar += multiply<T>(map, both);
  }
  /// Takes any maps.
  template <class T>
  [[nodiscard]] SHEAFNN_HD static SHEAFNN_INLINE Transport<T> transport(const Eigen::Matrix<T, D, D>& a,
                                                                        const Eigen::Matrix<T, D, D>& b) {
    return multiply_tn(a, b);
  }
  /// F̄_a += F_b Q̄ᵀ, F̄_b += F_a Q̄. Takes any maps.
  template <class T>
  SHEAFNN_HD static SHEAFNN_INLINE void transport_backward(const Eigen::Matrix<T, D, D>& a,
                                                           const Eigen::Matrix<T, D, D>& b,
                                                           const Eigen::Matrix<T, D, D>& transport_bar,
                                                           Eigen::Matrix<T, D, D>& a_bar,
                                                           Eigen::Matrix<T, D, D>& b_bar) {
    a_bar += multiply_nt(b, transport_bar);
    b_bar += multiply(a, transport_bar);
  }
  /// F as a D × D matrix. Takes any maps.
  template <class T>
  [[nodiscard]] SHEAFNN_HD static SquareMatrix<T, D> dense(const Eigen::Matrix<T, D, D>& map) {
    return map;
  }
};

}  // namespace sheafnn::sheaf

namespace sheafnn {

using sheaf::RestrictionMapFamily;

}  // namespace sheafnn
