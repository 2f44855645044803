/// \file
/// SheafLaplacian: Δ = S δᵀδ S of a cellular sheaf in block form, with matrix-free products and sparse assembly.
///
/// Blocks: Δ_uu = S_u D_u S_u and, for every arc u→v, Δ_uv = −S_u F_{u⊴e}ᵀ F_{v⊴e} S_v, stored in the kind the
/// family has (multiple of I, diagonal, dense). Dense blocks are products of the matrices F_{u⊴e} S_u. Source: paper,
/// "sheaf Laplacian"; math: "Coboundary and Laplacian" (1.2).
#pragma once

#include "sheafnn/core/eigen.hpp"

#include <Eigen/SparseCore>
#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <memory>
#include <type_traits>
#include <vector>

#include "sheafnn/core/errors.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/sheaf/blocks.hpp"
#include "sheafnn/sheaf/cellular_sheaf.hpp"
#include "sheafnn/sheaf/family.hpp"
#include "sheafnn/sheaf/normalisation.hpp"
#include "sheafnn/sheaf/symmetric_eigen.hpp"

namespace sheafnn::detail {

/// A block of any kind as a D × D matrix.
template <int D, class T, int R, int C>
[[nodiscard]] SquareMatrix<T, D> dense_block(const Eigen::Matrix<T, R, C>& block) {
  if constexpr (R == D && C == D) {
    return block;
  } else if constexpr (R == 1) {
    return block(0, 0) * SquareMatrix<T, D>::Identity();
  } else {
    return block.asDiagonal();
  }
}

/// y += block · x for the D rows of a stalk, without temporaries.
template <class T, int R, int C, class X, class Y>
SHEAFNN_INLINE void add_block_product(const Eigen::Matrix<T, R, C>& block, const X& x, Y&& y) {
  if constexpr (R == 1) {
    y += block(0, 0) * x;
  } else if constexpr (C == 1) {
    y += block.asDiagonal() * x;
  } else {
    y += block.lazyProduct(x);
  }
}

}  // namespace sheafnn::detail

namespace sheafnn::sheaf {

/// The Laplacian of a sheaf with a normalisation (normalisation.hpp). A snapshot: later changes of the sheaf's
/// maps do not reach it. Symmetric bit by bit and positive semidefinite up to rounding. Unchecked: indices of nodes and
/// arcs. math: "Coboundary and Laplacian" (1.3).
template <RestrictionMapFamily Family, class Scalar_ = double>
class SheafLaplacian {
 public:
  using Scalar = Scalar_;
  static constexpr int stalk_dimension = Family::stalk_dimension;
  using DiagonalBlock = Gram<Family, Scalar>;
  using OffDiagonalBlock = Transport<Family, Scalar>;

  /// \throws std::invalid_argument  maps so large that a block overflows; for the block normalisation also maps other than 0
  ///                                so small that D_u underflows
  explicit SheafLaplacian(const CellularSheaf<Family, Scalar>& sheaf,
                          Normalisation normalisation = Normalisation::none)
      : graph_(sheaf.shared_graph()), normalisation_(normalisation) {
    const Graph& graph = *graph_;
    scales_.resize(static_cast<std::size_t>(graph.node_count()));
    diagonal_.resize(static_cast<std::size_t>(graph.node_count()));
    off_diagonal_.resize(static_cast<std::size_t>(graph.arc_count()));
    for (Index u = 0; u < graph.node_count(); ++u) {
      DiagonalBlock degree = DiagonalBlock::Zero();
      for (Index a = graph.first_arc(u); a < graph.first_arc(u + 1); ++a) {
        const Scalar weight = sheaf.edge_weight(graph.edge_of(a));
        degree += (weight * weight) * gram<Family, Scalar>(sheaf.map(a));
      }
      if (!degree.allFinite()) {
        throw_invalid_argument(detail::concat("maps of node ", u), detail::concat("ΣF_aᵀF_a = ", degree.sum()),
                               "it must be finite in the scalar type");
      }
      if (normalisation == Normalisation::block) require_no_underflow(sheaf, u, degree);
      const std::size_t i = static_cast<std::size_t>(u);
      scales_[i] = node_scaling<Family, Scalar>(normalisation, degree, static_cast<Scalar>(graph.degree(u))).scale;
      if constexpr (is_dense_block<DiagonalBlock>) {
        DiagonalBlock block = DiagonalBlock::Zero();
        for (Index a = graph.first_arc(u); a < graph.first_arc(u + 1); ++a) {
          const auto map = scaled_map(sheaf, a);
          block += map.transpose().lazyProduct(map);
        }
        diagonal_[i] = Scalar(0.5) * (block + block.transpose());  // symmetric to the last bit
      } else {
        diagonal_[i] = sheafnn::sheaf::diagonal_block(scales_[i], degree);
      }
    }
    for (Index e = 0; e < graph.edge_count(); ++e) {
      const Index a = graph.forward_arc(e);
      const Index b = graph.reverse(a);
      OffDiagonalBlock block;
      if constexpr (is_dense_block<DiagonalBlock>) {
        block = -(scaled_map(sheaf, a).transpose().lazyProduct(scaled_map(sheaf, b)));
      } else {
        const Scalar weight = sheaf.edge_weight(e);
        const OffDiagonalBlock q = (weight * weight) * transport<Family, Scalar>(sheaf.map(a), sheaf.map(b));
        block = -block_product(block_product(scale(graph.source(a)), q), scale(graph.target(a)));
      }
      off_diagonal_[static_cast<std::size_t>(a)] = block;
      off_diagonal_[static_cast<std::size_t>(b)] = block_transpose(block);
    }
  }

  [[nodiscard]] const Graph& graph() const noexcept { return *graph_; }
  [[nodiscard]] Normalisation normalisation() const noexcept { return normalisation_; }
  /// nD.
  [[nodiscard]] Index rows() const noexcept { return graph_->node_count() * stalk_dimension; }
  [[nodiscard]] Index cols() const noexcept { return rows(); }

  /// S_u, in the kind of F_uᵀF_u.
  [[nodiscard]] const DiagonalBlock& scale(Index node) const noexcept {
    return scales_[static_cast<std::size_t>(node)];
  }
  /// Δ_uu, in the same kind.
  [[nodiscard]] const DiagonalBlock& diagonal_block(Index node) const noexcept {
    return diagonal_[static_cast<std::size_t>(node)];
  }
  /// Δ_uv of the arc u→v, in the kind of F_aᵀF_b.
  [[nodiscard]] const OffDiagonalBlock& off_diagonal(Index arc) const noexcept {
    return off_diagonal_[static_cast<std::size_t>(arc)];
  }

  /// Sets y = Δx.
  ///
  /// \param x        (nD) × f, any f
  /// \param y        (nD) × f; must not overlap x
  /// \param execution  how many threads may work
  /// \throws std::invalid_argument  wrong number of rows, or x and y of different size
  void apply(const CochainRef<Scalar>& x, Eigen::Ref<Cochain<Scalar>> y, Execution execution = {}) const {
    detail::require_rows<Scalar>(x, rows(), "C0");
    if (y.rows() != x.rows() || y.cols() != x.cols()) {
      throw_invalid_argument("size of y", detail::concat(y.rows(), " x ", y.cols()),
                             detail::concat("must be the size of x, ", x.rows(), " x ", x.cols()));
    }
    assert(x.size() == 0 || x.data() != y.data());
    constexpr int D = stalk_dimension;
    parallel_for(execution, graph_->node_count(), 64, [&](Index begin, Index end) {
      for (Index u = begin; u < end; ++u) {
        auto y_u = y.template middleRows<D>(u * D);
        y_u.setZero();
        detail::add_block_product(diagonal_block(u), x.template middleRows<D>(u * D), y_u);
        for (Index a = graph_->first_arc(u); a < graph_->first_arc(u + 1); ++a) {
          detail::add_block_product(off_diagonal(a), x.template middleRows<D>(graph_->target(a) * D), y_u);
        }
      }
    });
  }
  /// Δx as a new matrix. \throws std::invalid_argument  wrong number of rows
  [[nodiscard]] Cochain<Scalar> apply(const CochainRef<Scalar>& x, Execution execution = {}) const {
    Cochain<Scalar> y(x.rows(), x.cols());
    apply(x, y, execution);
    return y;
  }

  /// Δ as a sparse matrix with the sparsity of its blocks.
  ///
  /// \throws std::invalid_argument  more entries than Eigen's 32-bit indices can count
  [[nodiscard]] Eigen::SparseMatrix<Scalar> matrix() const {
    constexpr int D = stalk_dimension;
    constexpr Index per_node = DiagonalBlock::ColsAtCompileTime == 1 ? D : D * D;
    constexpr Index per_arc = OffDiagonalBlock::ColsAtCompileTime == 1 ? D : D * D;
    const Index entries = graph_->node_count() * per_node + graph_->arc_count() * per_arc;
    require(entries <= std::numeric_limits<int>::max(), "entries of the sparse Laplacian", entries,
            "at most 2147483647; use apply");
    std::vector<Eigen::Triplet<Scalar>> triplets;
    triplets.reserve(static_cast<std::size_t>(entries));
    const auto add = [&](Index u, Index v, const auto& block) {
      constexpr bool only_diagonal = std::decay_t<decltype(block)>::ColsAtCompileTime == 1;
      const SquareMatrix<Scalar, D> dense = detail::dense_block<D>(block);
      for (int j = 0; j < D; ++j) {
        for (int i = 0; i < D; ++i) {
          if (only_diagonal && i != j) continue;
          triplets.emplace_back(static_cast<int>(u * D + i), static_cast<int>(v * D + j), dense(i, j));
        }
      }
    };
    for (Index u = 0; u < graph_->node_count(); ++u) add(u, u, diagonal_block(u));
    for (Index a = 0; a < graph_->arc_count(); ++a) add(graph_->source(a), graph_->target(a), off_diagonal(a));
    Eigen::SparseMatrix<Scalar> r(rows(), rows());
    r.setFromTriplets(triplets.begin(), triplets.end());
    return r;
  }

  /// A bound on the largest eigenvalue: 2 max_u λ_max(Δ_uu).
  ///
  /// Σ_e ‖F_{v⊴e}x_v + F_{u⊴e}x_u‖² ≥ 0 says that blockdiag(Δ_uu) minus the off-diagonal part is positive
  /// semidefinite too, so Δ ≤ 2 blockdiag(Δ_uu). For the block and augmented normalisations it is at most 2 (up to
  /// rounding).
  [[nodiscard]] Scalar spectral_bound() const {
    Scalar largest = 0;
    for (const DiagonalBlock& block : diagonal_) {
      if constexpr (DiagonalBlock::ColsAtCompileTime == 1) {
        largest = std::max(largest, block.maxCoeff());
      } else {
        largest = std::max(largest, symmetric_eigen(block).values.maxCoeff());
      }
    }
    return 2 * largest;
  }

 private:
  /// The squares of maps below 1e-154 underflow in double. \throws std::invalid_argument  the squares of a node's maps do
  static void require_no_underflow(const CellularSheaf<Family, Scalar>& sheaf, Index u,
                                   const DiagonalBlock& degree) {
    constexpr Scalar least = std::numeric_limits<Scalar>::min();
    // Of coordinates that diagonal maps keep apart, each has its root.
    constexpr bool apart = DiagonalBlock::ColsAtCompileTime == 1 && DiagonalBlock::RowsAtCompileTime > 1;
    for (int k = 0; k < (apart ? stalk_dimension : 1); ++k) {
      const Scalar size = apart ? degree(k, 0) : degree.diagonal().maxCoeff();
      if (size >= least) continue;
      Scalar largest = 0;
      for (Index a = sheaf.graph().first_arc(u); a < sheaf.graph().first_arc(u + 1); ++a) {
        const auto map = sheaf.restriction_map(a);
        largest = std::max(largest, apart ? std::abs(map(k, k)) : map.cwiseAbs().maxCoeff());
      }
      if (largest == 0) continue;
      throw_invalid_argument(detail::concat("maps of node ", u), detail::concat("an entry of ", largest),
                             detail::concat("for the block normalisation ΣF_aᵀF_a must be 0 or at least ", least));
    }
  }
  /// F_a S_u of an arc u→v. Where D_u is nearly singular, S_u D_u S_u has rounding errors that are much larger.
  [[nodiscard]] auto scaled_map(const CellularSheaf<Family, Scalar>& sheaf, Index arc) const {
    return sheaf.restriction_map(arc).lazyProduct(scale(graph_->source(arc))).eval();
  }

  std::shared_ptr<const Graph> graph_;
  Normalisation normalisation_;
  std::vector<DiagonalBlock> scales_;           ///< S_u by node
  std::vector<DiagonalBlock> diagonal_;         ///< Δ_uu by node
  std::vector<OffDiagonalBlock> off_diagonal_;  ///< Δ_uv by arc
};

}  // namespace sheafnn::sheaf

namespace sheafnn {

using sheaf::SheafLaplacian;

}  // namespace sheafnn
