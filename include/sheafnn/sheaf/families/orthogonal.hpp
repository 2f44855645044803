/// \file
/// Orthogonal<D>: F ∈ O(D), of either determinant, for maps that are given, such as a connection (sheaf/connection.hpp).
///
/// As for rotations, F_aᵀF_a = I is a scalar block, F_aᵀF_b a dense one. Source: math: "Connections".
#pragma once

#include <cstdint>

#include "sheafnn/sheaf/families/special_orthogonal.hpp"

namespace sheafnn {

/// The chart is SpecialOrthogonal<D>'s and covers the rotations alone: det F = −1 comes from maps that are given.
template <int D>
  requires sheaf::StalkDimension<D>
struct Orthogonal : SpecialOrthogonal<D> {
  static constexpr std::string_view name = "orthogonal";

  /// \throws std::invalid_argument  not orthogonal within orthogonality_tolerance
  template <class Scalar>
  static void validate(Index index, const Eigen::Matrix<Scalar, D, D>& map) {
    detail::require_orthogonal<Scalar, D>(index, map, "an orthogonal map");
  }
  /// Uniform (Haar) on O(D): a uniform rotation, whose last row changes its sign with probability ½.
  template <class Scalar>
  [[nodiscard]] static SquareMatrix<Scalar, D> random_map(const Stream& stream, std::uint32_t id) {
    SquareMatrix<Scalar, D> r = rotation::haar_rotation<Scalar, D>(stream, id);
    const bool reflected = (stream.words(id, rotation::haar_draws<D>).word[0] & 1U) != 0;
    if (reflected) r.row(D - 1) = -r.row(D - 1);
    return r;
  }
};

}  // namespace sheafnn
