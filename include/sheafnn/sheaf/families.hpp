/// \file
/// Restriction-map families: what a sheaf's maps F_{u⊴e} may be, as types with a compile-time stalk dimension.
///
/// A family fixes how a map is stored (`Map`, map_size numbers), what F_aᵀF_a is (`Gram`) and what F_aᵀF_b is
/// (`Transport`). Both are Eigen matrices whose shape tells the kind: 1 × 1 for a multiple of the identity, D × 1
/// for a diagonal, D × D in general; sheaf/blocks.hpp does their algebra.
///
/// | family               | Map            | Gram F_aᵀF_a | Transport F_aᵀF_b |
/// | -------------------- | -------------- | ------------ | ----------------- |
/// | Identity<D>          | none, F = I    | 1 × 1        | 1 × 1             |
/// | Diagonal<D>          | D, diag(z)     | D × 1        | D × 1             |
/// | SpecialOrthogonal<D> | D × D rotation | 1 × 1        | D × D             |
/// | GeneralLinear<D>     | D × D          | D × D        | D × D             |
#pragma once

#include <concepts>
#include <string_view>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/small_matrix.hpp"

namespace sheafnn {

/// Largest stalk dimension the library is built and tested for.
inline constexpr int max_stalk_dimension = 8;

/// What the maps of a family look like.
enum class MapKind { fixed, diagonal, rotation, dense };

namespace detail {

template <int D>
struct FamilyBase {
  static_assert(1 <= D && D <= max_stalk_dimension, "the stalk dimension is between 1 and 8");
  static constexpr int stalk_dimension = D;
};

}  // namespace detail

/// Trivial sheaf: F = I for every incident pair; its Laplacian is the graph Laplacian ⊗ I.
template <int D>
struct Identity : detail::FamilyBase<D> {
  static constexpr std::string_view name = "identity";
  static constexpr MapKind kind = MapKind::fixed;
  static constexpr int gram_rows = 1, gram_cols = 1;
  static constexpr int transport_rows = 1, transport_cols = 1;
  static constexpr int map_size = 0;  ///< numbers stored per incident pair

  template <class T>
  using Map = Eigen::Matrix<T, 1, 1>;
};

/// Diagonal maps F = diag(z).
template <int D>
struct Diagonal : detail::FamilyBase<D> {
  static constexpr std::string_view name = "diagonal";
  static constexpr MapKind kind = MapKind::diagonal;
  static constexpr int gram_rows = D, gram_cols = 1;
  static constexpr int transport_rows = D, transport_cols = 1;
  static constexpr int map_size = D;

  template <class T>
  using Map = Eigen::Matrix<T, D, 1>;
};

/// Rotations F ∈ SO(D), optionally times an edge weight w_e kept beside them.
template <int D>
struct SpecialOrthogonal : detail::FamilyBase<D> {
  static constexpr std::string_view name = "special-orthogonal";
  static constexpr MapKind kind = MapKind::rotation;
  static constexpr int gram_rows = 1, gram_cols = 1;
  static constexpr int transport_rows = D, transport_cols = D;
  static constexpr int map_size = D * D;

  template <class T>
  using Map = Eigen::Matrix<T, D, D>;
};

/// Any real D × D matrix.
template <int D>
struct GeneralLinear : detail::FamilyBase<D> {
  static constexpr std::string_view name = "general-linear";
  static constexpr MapKind kind = MapKind::dense;
  static constexpr int gram_rows = D, gram_cols = D;
  static constexpr int transport_rows = D, transport_cols = D;
  static constexpr int map_size = D * D;

  template <class T>
  using Map = Eigen::Matrix<T, D, D>;
};

/// A restriction-map family: stalk dimension, name, storage size and the shapes of Map, Gram and Transport.
template <class F>
concept RestrictionMapFamily = requires {
  typename F::template Map<double>;
  { F::stalk_dimension } -> std::convertible_to<int>;
  { F::map_size } -> std::convertible_to<int>;
  { F::kind } -> std::convertible_to<MapKind>;
  { F::name } -> std::convertible_to<std::string_view>;
  { F::gram_rows * F::gram_cols } -> std::convertible_to<int>;
  { F::transport_rows * F::transport_cols } -> std::convertible_to<int>;
};

/// F_aᵀF_a of a family, over T.
template <class F, class T>
using Gram = Eigen::Matrix<T, F::gram_rows, F::gram_cols>;
/// F_aᵀF_b of a family, over T.
template <class F, class T>
using Transport = Eigen::Matrix<T, F::transport_rows, F::transport_cols>;

}  // namespace sheafnn
