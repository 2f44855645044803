/// \file
/// Approximate sections: cochains that disagree least where noise leaves no global section.
///
/// A section has F_{u⊴e} x_u = F_{v⊴e} x_v on every edge. For maps with noise H⁰ is 0, and the eigenvectors y of the
/// smallest eigenvalues of Δ = S L S take its place: x = S y has the disagreement
///
///     Σ_e ‖F_{v⊴e} x_v − F_{u⊴e} x_u‖² = ⟨x, Lx⟩ = λ ‖y‖² = λ.
///
/// For rotations, D sections together are a matrix per node; nearest_section() replaces it by a rotation:
/// synchronisation. Source: Singer, "Angular synchronization by eigenvectors and semidefinite programming", Applied
/// and Computational Harmonic Analysis 30 (2011). Bandeira, Singer, Spielman, "A Cheeger inequality for the graph
/// connection Laplacian", SIAM Journal on Matrix Analysis and Applications 34 (2013). math: "Approximate
/// sections" (1.8).
#pragma once

#include <algorithm>
#include <type_traits>

#include "sheafnn/core/errors.hpp"
#include "sheafnn/graph/statistics.hpp"
#include "sheafnn/rotation/nearest_rotation.hpp"
#include "sheafnn/sheaf/eigenpairs.hpp"
#include "sheafnn/sheaf/laplacian.hpp"

namespace sheafnn::sheaf {

/// The k cochains of least disagreement that are orthonormal in y = S⁻¹x.
template <class Scalar>
struct ApproximateSections {
  Cochain<Scalar> sections;                               ///< (nD) × k: x_j in column j
  Eigen::Matrix<Scalar, Eigen::Dynamic, 1> disagreement;  ///< λ_1 ≤ … ≤ λ_k, ‖δx_j‖²
  int stalk_dimension = 1;                                ///< D

  [[nodiscard]] Index count() const noexcept { return sections.cols(); }
  /// Section j with one row per node: n × D. \throws std::invalid_argument  no such section
  [[nodiscard]] Cochain<Scalar> section(Index j) const {
    require_between("section", j, 0, count() - 1);
    const Cochain<Scalar> column = sections.col(j);
    return Eigen::Map<const Cochain<Scalar>>(column.data(), column.rows() / stalk_dimension, stalk_dimension);
  }
};

}  // namespace sheafnn::sheaf

namespace sheafnn::detail {

template <class Family, class Scalar>
[[nodiscard]] ApproximateSections<Scalar> sections_of(const SheafLaplacian<Family, Scalar>& laplacian,
                                                      const Eigenpairs<Scalar>& pairs, Index count) {
  constexpr int D = Family::stalk_dimension;
  ApproximateSections<Scalar> r{Cochain<Scalar>::Zero(laplacian.rows(), count), pairs.values.head(count), D};
  const Cochain<Scalar> y = pairs.vectors.leftCols(count);
  for (Index u = 0; u < laplacian.graph().node_count(); ++u) {
    add_block_product(laplacian.scale(u), y.template middleRows<D>(u * D),
                      r.sections.template middleRows<D>(u * D));
  }
  return r;
}

}  // namespace sheafnn::detail

namespace sheafnn::sheaf {

/// The `count` approximate sections of least disagreement. \throws as smallest_eigenpairs()
template <class Family, class Scalar>
[[nodiscard]] ApproximateSections<Scalar> approximate_sections(const SheafLaplacian<Family, Scalar>& laplacian,
                                                               Index count, const EigenpairOptions& options = {}) {
  return detail::sections_of(laplacian, smallest_eigenpairs(laplacian, count, options), count);
}

/// All approximate sections with a disagreement of at most `tolerance`; there may be none.
///
/// \param tolerance  ≥ 0; eigenvalues are known to options.tolerance · spectral_bound() only, see EigenpairOptions
/// \throws std::invalid_argument  a negative tolerance; otherwise as smallest_eigenpairs
template <class Family, class Scalar>
[[nodiscard]] ApproximateSections<Scalar> approximate_sections_within(
    const SheafLaplacian<Family, Scalar>& laplacian, std::type_identity_t<Scalar> tolerance,
    const EigenpairOptions& options = {}) {
  require(tolerance >= 0, "tolerance", tolerance, "must not be negative");
  const Index rows = laplacian.rows();
  Eigenpairs<Scalar> pairs;
  Index found = 0;
  for (Index count = std::min<Index>(rows, 2 * Family::stalk_dimension);
       found == pairs.values.size() && found < rows; count = std::min(rows, 2 * count)) {
    pairs = smallest_eigenpairs(laplacian, count, options);
    found = (pairs.values.array() <= tolerance).count();
  }
  return detail::sections_of(laplacian, pairs, found);
}

/// A rotation X_u per node, all D columns together an approximate section.
template <class Scalar>
struct NearestSection {
  Cochain<Scalar> rotations;  ///< (nD) × D: X_u in rows u D … u D + D − 1
  Scalar disagreement = 0;    ///< Σ_e w_e² ‖R_{u⊴e} X_u − R_{v⊴e} X_v‖_F²
  Scalar bound = 0;           ///< no choice of rotations disagrees less (up to rounding)
  Eigen::Matrix<Scalar, Eigen::Dynamic, 1> eigenvalues;  ///< λ_1 ≤ … ≤ λ_D of Δ
};

/// Σ_e w_e² ‖R_{u⊴e} X_u − R_{v⊴e} X_v‖_F² = tr XᵀLX of a sheaf of rotations.
///
/// \param x  (nD) × f, any f
/// \throws std::invalid_argument  wrong number of rows
template <class Family, class Scalar>
  requires is_orthogonal<Family>
[[nodiscard]] Scalar disagreement(const SheafLaplacian<Family, Scalar>& laplacian,
                                  const std::type_identity_t<CochainRef<Scalar>>& x) {
  detail::require_rows<Scalar>(x, laplacian.rows(), "C0");
  constexpr int D = Family::stalk_dimension;
  Cochain<Scalar> y = x;  // S⁻¹X; a node without edges, with S_u = 0, has no part in it
  for (Index u = 0; u < laplacian.graph().node_count(); ++u) {
    const Scalar scale = laplacian.scale(u)(0, 0);
    y.template middleRows<D>(u * D) *= scale > 0 ? 1 / scale : Scalar(0);
  }
  return y.cwiseProduct(laplacian.apply(y)).sum();
}

/// Synchronisation: the D smallest eigenvectors of Δ, replaced node by node by the nearest rotation.
///
/// Unique up to X_u → X_u R with one rotation R. A sheaf of rotations with D global sections (no noise) gives them exactly.
/// If maps of Orthogonal<D> are reflections, the sections may be reflections too, which no rotations are near to.
/// The bound is Σ_u s_u⁻² · (λ_1 + … + λ_D) with S_u = s_u I. math: "Approximate sections" (1.8).
///
/// \throws std::invalid_argument  a graph that is not connected, or eigenvectors of which a node's block has no unique
///         nearest rotation; otherwise as smallest_eigenpairs
template <class Family, class Scalar>
  requires is_orthogonal<Family>
[[nodiscard]] NearestSection<Scalar> nearest_section(const SheafLaplacian<Family, Scalar>& laplacian,
                                                     const EigenpairOptions& options = {}) {
  constexpr int D = Family::stalk_dimension;
  using Matrix = SquareMatrix<Scalar, D>;
  const Graph& graph = laplacian.graph();
  const auto components = connected_components(graph).count;
  require(components == 1, "connected components of the graph", components,
          "rotations of different components cannot be compared; take one component at a time");
  Eigenpairs<Scalar> pairs = smallest_eigenpairs(laplacian, D, options);
  // The eigenvectors are known up to O(D): if most nodes have a reflection, one eigenvector changes its sign.
  Scalar orientation = 0;
  for (Index u = 0; u < graph.node_count(); ++u) {
    orientation += Matrix(pairs.vectors.template middleRows<D>(u * D)).determinant();
  }
  if (orientation < 0) pairs.vectors.col(D - 1) *= Scalar(-1);
  NearestSection<Scalar> r{Cochain<Scalar>(laplacian.rows(), D), 0, 0, pairs.values};
  Scalar volume = 0;
  for (Index u = 0; u < graph.node_count(); ++u) {
    const Matrix block = pairs.vectors.template middleRows<D>(u * D);
    r.rotations.template middleRows<D>(u * D) = nearest_rotation<Scalar, D>(block);
    const Scalar scale = laplacian.scale(u)(0, 0);
    if (scale > 0) volume += 1 / (scale * scale);
  }
  r.disagreement = disagreement(laplacian, r.rotations);
  r.bound = volume * pairs.values.sum();
  return r;
}

}  // namespace sheafnn::sheaf
