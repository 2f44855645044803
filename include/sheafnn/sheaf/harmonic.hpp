/// \file
/// The harmonic space ker Δ of a sheaf Laplacian: its dimension, an orthonormal basis, and the projection on it.
///
/// Without normalisation it is H⁰, the global sections: F_{u⊴e} x_u = F_{v⊴e} x_v for every edge. With node
/// scalings S_u (all invertible), ker Δ = S⁻¹ H⁰. Source: paper, "Cellular sheaves", Proposition 1; math:
/// "Harmonic space".
#pragma once

#include "sheafnn/core/eigen.hpp"

#include <Eigen/Eigenvalues>
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <utility>
#include <vector>

#include "sheafnn/core/errors.hpp"
#include "sheafnn/sheaf/laplacian.hpp"
#include "sheafnn/sheaf/symmetric_eigen.hpp"

namespace sheafnn::sheaf {

/// When an eigenvalue counts as zero, and how large a dense problem may get.
struct HarmonicOptions {
  double tolerance =
      0;  ///< relative tolerance in [0, 1); 0: 8 N ε, N the rows of the component; see harmonic_space
  Index max_rows = 4096;  ///< largest number of rows of a component that is decomposed densely (time N³, memory N²)
};

/// An orthonormal basis of ker Δ, kept connected component by connected component.
template <class Scalar>
class HarmonicSpace {
 public:
  /// The part of the basis that lives on one connected component.
  struct Part {
    std::vector<std::int32_t> nodes;
    Cochain<Scalar> basis;  ///< (|nodes| D) × k, orthonormal columns
  };

  /// Unchecked: that columns are orthonormal, and no node in two parts.
  ///
  /// \throws std::invalid_argument  negative sizes, a node out of range, or a basis with another number of rows
  HarmonicSpace(Index node_count, int stalk_dimension, std::vector<Part> parts)
      : node_count_(node_count), stalk_dimension_(stalk_dimension), parts_(std::move(parts)) {
    require(node_count >= 0, "node_count", node_count, "must not be negative");
    require(stalk_dimension >= 1, "stalk_dimension", stalk_dimension, "must be at least 1");
    for (const Part& part : parts_) {
      for (const std::int32_t u : part.nodes) require_between("node", Index(u), 0, node_count - 1);
      const Index rows_of_part = static_cast<Index>(part.nodes.size()) * stalk_dimension;
      if (part.basis.rows() != rows_of_part) {
        throw_invalid_argument("rows of a basis", part.basis.rows(),
                               detail::concat("must be ", stalk_dimension, " for each node, ", rows_of_part));
      }
      dimension_ += part.basis.cols();
    }
  }

  /// dim ker Δ.
  [[nodiscard]] Index dimension() const noexcept { return dimension_; }
  /// nD.
  [[nodiscard]] Index rows() const noexcept { return node_count_ * stalk_dimension_; }
  /// The parts, one per connected component, in the order of their smallest nodes.
  [[nodiscard]] const std::vector<Part>& parts() const noexcept { return parts_; }

  /// The basis as a dense (nD) × dimension matrix.
  [[nodiscard]] Cochain<Scalar> basis() const {
    Cochain<Scalar> r = Cochain<Scalar>::Zero(rows(), dimension_);
    Index column = 0;
    for (const Part& part : parts_) {
      for (std::size_t i = 0; i < part.nodes.size(); ++i) {
        r.block(part.nodes[i] * stalk_dimension_, column, stalk_dimension_, part.basis.cols()) =
            part.basis.middleRows(static_cast<Index>(i) * stalk_dimension_, stalk_dimension_);
      }
      column += part.basis.cols();
    }
    return r;
  }

  /// The orthogonal projection of x, (nD) × f, on ker Δ: the limit t → ∞ of dX/dt = −ΔX from X(0) = x.
  ///
  /// \throws std::invalid_argument  wrong number of rows, or an entry that is NaN or infinite
  [[nodiscard]] Cochain<Scalar> project(const CochainRef<Scalar>& x) const {
    detail::require_rows<Scalar>(x, rows(), "C0");
    detail::require_finite<Scalar>(x, "x");
    Cochain<Scalar> r = Cochain<Scalar>::Zero(x.rows(), x.cols());  // nodes may be in no part
    for (const Part& part : parts_) {
      Cochain<Scalar> local(part.basis.rows(), x.cols());
      for (std::size_t i = 0; i < part.nodes.size(); ++i) {
        local.middleRows(static_cast<Index>(i) * stalk_dimension_, stalk_dimension_) =
            x.middleRows(part.nodes[i] * stalk_dimension_, stalk_dimension_);
      }
      local = part.basis * (part.basis.transpose() * local).eval();
      for (std::size_t i = 0; i < part.nodes.size(); ++i) {
        r.middleRows(part.nodes[i] * stalk_dimension_, stalk_dimension_) =
            local.middleRows(static_cast<Index>(i) * stalk_dimension_, stalk_dimension_);
      }
    }
    return r;
  }

 private:
  Index node_count_;
  Index stalk_dimension_;
  Index dimension_ = 0;
  std::vector<Part> parts_;
};

}  // namespace sheafnn::sheaf

namespace sheafnn::detail {

/// A breadth-first spanning tree of one component: nodes in the order of discovery, and the arc from each to its
/// parent (−1 for the root).
struct SpanningTree {
  std::vector<std::int32_t> nodes;
  std::vector<Index> parent_arc;
};

/// One tree per connected component. `position[u]` becomes the index of node u in its tree.
[[nodiscard]] inline std::vector<SpanningTree> spanning_forest(const Graph& graph, std::vector<Index>& position) {
  position.assign(static_cast<std::size_t>(graph.node_count()), -1);
  std::vector<SpanningTree> forest;
  for (Index root = 0; root < graph.node_count(); ++root) {
    if (position[static_cast<std::size_t>(root)] >= 0) continue;
    SpanningTree& tree = forest.emplace_back();
    const auto add = [&](Index u, Index arc) {
      position[static_cast<std::size_t>(u)] = static_cast<Index>(tree.nodes.size());
      tree.nodes.push_back(static_cast<std::int32_t>(u));
      tree.parent_arc.push_back(arc);
    };
    add(root, -1);
    for (std::size_t next = 0; next < tree.nodes.size(); ++next) {
      const Index u = tree.nodes[next];
      for (Index a = graph.first_arc(u); a < graph.first_arc(u + 1); ++a) {
        if (position[static_cast<std::size_t>(graph.target(a))] < 0) add(graph.target(a), graph.reverse(a));
      }
    }
  }
  return forest;
}

/// ker Δ on one component from all eigenvalues and eigenvectors.
template <class Family, class Scalar>
[[nodiscard]] Cochain<Scalar> dense_kernel(const SheafLaplacian<Family, Scalar>& laplacian,
                                           const SpanningTree& tree, const std::vector<Index>& position,
                                           const HarmonicOptions& options) {
  constexpr int D = Family::stalk_dimension;
  const Index rows = static_cast<Index>(tree.nodes.size()) * D;
  require(rows <= options.max_rows, "rows of a connected component", rows,
          concat("the dense decomposition takes at most ", options.max_rows, " (HarmonicOptions::max_rows)"));
  const Graph& graph = laplacian.graph();
  Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic> dense =
      Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic>::Zero(rows, rows);
  for (const Index u : tree.nodes) {
    const Index row = position[static_cast<std::size_t>(u)] * D;
    dense.template block<D, D>(row, row) = dense_block<D>(laplacian.diagonal_block(u));
    for (Index a = graph.first_arc(u); a < graph.first_arc(u + 1); ++a) {
      const Index column = position[static_cast<std::size_t>(graph.target(a))] * D;
      dense.template block<D, D>(row, column) = dense_block<D>(laplacian.off_diagonal(a));
    }
  }
  const Eigen::SelfAdjointEigenSolver<Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic>> solver(dense);
  if (solver.info() != Eigen::Success) {
    throw std::runtime_error(
        concat("harmonic space: the eigenvalue iteration did not converge for ", rows, " rows"));
  }
  const Scalar relative = options.tolerance > 0
                              ? static_cast<Scalar>(options.tolerance)
                              : Scalar(8) * static_cast<Scalar>(rows) * std::numeric_limits<Scalar>::epsilon();
  const Scalar limit = relative * solver.eigenvalues()(rows - 1);
  Index kernel = 0;
  while (kernel < rows && solver.eigenvalues()(kernel) <= limit) ++kernel;
  return solver.eigenvectors().leftCols(kernel);
}

/// ker Δ on one component of a sheaf of rotations. A section is its value h at the root, carried along the tree. Every edge
/// outside the tree closes a cycle, whose holonomy must fix h.
template <class Family, class Scalar>
[[nodiscard]] Cochain<Scalar> holonomy_kernel(const SheafLaplacian<Family, Scalar>& laplacian,
                                              const SpanningTree& tree, const std::vector<Index>& position,
                                              const HarmonicOptions& options) {
  constexpr int D = Family::stalk_dimension;
  using Matrix = SquareMatrix<Scalar, D>;
  const Graph& graph = laplacian.graph();
  const std::size_t count = tree.nodes.size();
  // Δ_uv = −(positive number) · Q_uv with the rotation Q_uv = R_aᵀ R_{rev a}, and sections satisfy y_u = Q_uv y_v.
  const auto rotation = [&](Index arc) -> Matrix {
    const Matrix block = dense_block<D>(laplacian.off_diagonal(arc));
    const Scalar size = block.cwiseAbs().maxCoeff();
    if (!(size > 0)) {
      throw std::runtime_error(concat("harmonic space: the block of nodes ", graph.source(arc), " and ",
                                      graph.target(arc), " underflows; the edge weights are too far apart"));
    }
    const Matrix unit = block / -size;
    return unit * (std::sqrt(Scalar(D)) / unit.norm());
  };
  std::vector<Matrix> carried(count, Matrix::Identity());  // y_u = carried[u] h
  Matrix defect = Matrix::Zero();                          // Σ (holonomy − I)ᵀ (holonomy − I)
  for (std::size_t i = 1; i < count; ++i) {
    const Index parent = graph.target(tree.parent_arc[i]);
    carried[i] = rotation(tree.parent_arc[i]) *
                 carried[static_cast<std::size_t>(position[static_cast<std::size_t>(parent)])];
  }
  if constexpr (is_learned<Family>) {
    for (std::size_t i = 0; i < count; ++i) {
      const Index u = tree.nodes[i];
      for (Index a = graph.first_arc(u); a < graph.first_arc(u + 1); ++a) {
        const std::size_t j = static_cast<std::size_t>(position[static_cast<std::size_t>(graph.target(a))]);
        if (j < i || tree.parent_arc[j] == graph.reverse(a)) continue;
        const Matrix difference = carried[i].transpose() * rotation(a) * carried[j] - Matrix::Identity();
        defect += difference.transpose() * difference;
      }
    }
  }
  const SymmetricEigen<Scalar, D> eigen = symmetric_eigen(defect);
  const Scalar limit = options.tolerance > 0
                           ? static_cast<Scalar>(options.tolerance)
                           : Scalar(8 * D) * static_cast<Scalar>(count) * std::numeric_limits<Scalar>::epsilon();
  Matrix fixed;  // its first `kernel` columns are an orthonormal basis of the fixed directions
  Index kernel = 0;
  for (int k = 0; k < D; ++k) {
    if (eigen.values(k) <= limit) fixed.col(kernel++) = eigen.vectors.col(k);
  }
  // S is a multiple of I at every node, so x_u = y_u / s_u keeps the columns orthogonal.
  Eigen::Matrix<Scalar, Eigen::Dynamic, 1> length(static_cast<Index>(count));
  for (std::size_t i = 0; i < count; ++i) {
    length(static_cast<Index>(i)) = count == 1 ? Scalar(1) : Scalar(1) / laplacian.scale(tree.nodes[i])(0, 0);
  }
  length /= length.stableNorm();
  Cochain<Scalar> basis(static_cast<Index>(count) * D, kernel);
  for (std::size_t i = 0; i < count; ++i) {
    basis.template middleRows<D>(static_cast<Index>(i) * D) =
        length(static_cast<Index>(i)) * carried[i] * fixed.leftCols(kernel);
  }
  return basis;
}

}  // namespace sheafnn::detail

namespace sheafnn::sheaf {

/// Dimension and orthonormal basis of ker Δ.
///
/// Every connected component is treated alone. Diagonal and general maps: dense eigendecomposition; an eigenvalue
/// counts as zero when it is at most tolerance · (largest eigenvalue of the component). Identity and rotation maps: holonomy
/// along a spanning tree, O(m D³) for any size. A direction counts as fixed when Σ ‖(holonomy − I) h‖² over the independent
/// cycles is at most tolerance. So holonomy angles below about √tolerance are not distinguished from 0.
///
/// \throws std::invalid_argument  a tolerance outside [0, 1), or a component with more than options.max_rows rows
///         (diagonal and general maps)
/// \throws std::runtime_error     the eigenvalue iteration did not converge, or edge weights so far apart that a
///         block of the Laplacian underflows
template <class Family, class Scalar>
[[nodiscard]] HarmonicSpace<Scalar> harmonic_space(const SheafLaplacian<Family, Scalar>& laplacian,
                                                   const HarmonicOptions& options = {}) {
  require(options.tolerance >= 0 && options.tolerance < 1, "tolerance", options.tolerance, "must be in [0, 1)");
  constexpr bool by_holonomy = is_orthogonal<Family>;
  std::vector<Index> position;
  std::vector<typename HarmonicSpace<Scalar>::Part> parts;
  for (detail::SpanningTree& tree : detail::spanning_forest(laplacian.graph(), position)) {
    Cochain<Scalar> basis;
    if constexpr (by_holonomy) {
      basis = detail::holonomy_kernel(laplacian, tree, position, options);
    } else {
      basis = detail::dense_kernel(laplacian, tree, position, options);
    }
    parts.push_back({std::move(tree.nodes), std::move(basis)});
  }
  return {laplacian.graph().node_count(), Family::stalk_dimension, std::move(parts)};
}

}  // namespace sheafnn::sheaf
