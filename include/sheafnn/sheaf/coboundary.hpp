/// \file
/// The coboundary δ: C⁰ → C¹ of a sheaf and its transpose, applied and as sparse matrices.
///
/// For e = {u, v} with u < v, oriented u→v: (δx)_e = F_{v⊴e} x_v − F_{u⊴e} x_u; (δᵀy)_u sums ±F_{u⊴e}ᵀ y_e over
/// the edges of u. Source: paper, "Cellular sheaves"; math: "Coboundary and Laplacian" (1.1).
#pragma once

#include "sheafnn/core/eigen.hpp"

#include <Eigen/SparseCore>
#include <limits>
#include <type_traits>
#include <vector>

#include "sheafnn/core/errors.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/sheaf/cellular_sheaf.hpp"

namespace sheafnn::detail {

/// The D rows of a stalk.
template <int D, class Derived>
[[nodiscard]] auto stalk(Eigen::MatrixBase<Derived>& x, Index number) {
  return x.template middleRows<D>(number * D);
}
template <int D, class Derived>
[[nodiscard]] auto stalk(const Eigen::MatrixBase<Derived>& x, Index number) {
  return x.template middleRows<D>(number * D);
}

/// Indices per thread below which a loop is not worth splitting.
inline constexpr Index stalk_grain = 64;

/// \throws std::invalid_argument  a sparse coboundary of more entries or columns than Eigen's 32-bit indices can count
inline void require_sparse_coboundary(Index entries, Index columns) {
  constexpr Index most = std::numeric_limits<int>::max();
  require(entries <= most, "entries of the sparse coboundary", entries, "at most 2147483647; use coboundary");
  require(columns <= most, "columns of the sparse coboundary", columns, "at most 2147483647; use coboundary");
}

}  // namespace sheafnn::detail

namespace sheafnn::sheaf {

/// δx.
///
/// \param x        (nD) × f, any f
/// \param execution  how many threads may work
/// \returns        (mD) × f
/// \throws std::invalid_argument  wrong number of rows
template <class Family, class Scalar>
[[nodiscard]] Cochain<Scalar> coboundary(const CellularSheaf<Family, Scalar>& sheaf,
                                         const std::type_identity_t<CochainRef<Scalar>>& x,
                                         Execution execution = {}) {
  constexpr int D = Family::stalk_dimension;
  detail::require_rows<Scalar>(x, sheaf.node_dimension(), "C0");
  const Graph& graph = sheaf.graph();
  Cochain<Scalar> y(sheaf.edge_dimension(), x.cols());
  parallel_for(execution, graph.edge_count(), detail::stalk_grain, [&](Index begin, Index end) {
    for (Index e = begin; e < end; ++e) {
      const Index forward = graph.forward_arc(e);
      auto y_e = detail::stalk<edge_stalk_dimension<Family>>(y, e);
      y_e = sheaf.restriction_map(graph.reverse(forward)).lazyProduct(detail::stalk<D>(x, graph.edge(e).v));
      y_e -= sheaf.restriction_map(forward).lazyProduct(detail::stalk<D>(x, graph.edge(e).u));
    }
  });
  return y;
}

/// δᵀy; parameters as for coboundary, with y (mD) × f and the result (nD) × f. \throws as there
template <class Family, class Scalar>
[[nodiscard]] Cochain<Scalar> coboundary_transpose(const CellularSheaf<Family, Scalar>& sheaf,
                                                   const std::type_identity_t<CochainRef<Scalar>>& y,
                                                   Execution execution = {}) {
  constexpr int D = Family::stalk_dimension;
  detail::require_rows<Scalar>(y, sheaf.edge_dimension(), "C1", "y");
  const Graph& graph = sheaf.graph();
  Cochain<Scalar> x = Cochain<Scalar>::Zero(sheaf.node_dimension(), y.cols());
  parallel_for(execution, graph.node_count(), detail::stalk_grain, [&](Index begin, Index end) {
    for (Index u = begin; u < end; ++u) {
      auto x_u = detail::stalk<D>(x, u);
      for (Index a = graph.first_arc(u); a < graph.first_arc(u + 1); ++a) {
        const auto product = sheaf.restriction_map(a).transpose().eval();
        const auto y_e = detail::stalk<edge_stalk_dimension<Family>>(y, graph.edge_of(a));
        if (u < graph.target(a)) {
          x_u -= product.lazyProduct(y_e);
        } else {
          x_u += product.lazyProduct(y_e);
        }
      }
    }
  });
  return x;
}

/// δ as a sparse (mD) × (nD) matrix; diagonal and identity maps store only their diagonals.
///
/// \throws std::invalid_argument  more entries or columns than Eigen's 32-bit indices can count
template <class Family, class Scalar>
[[nodiscard]] Eigen::SparseMatrix<Scalar> coboundary_matrix(const CellularSheaf<Family, Scalar>& sheaf) {
  constexpr int D = Family::stalk_dimension, E = edge_stalk_dimension<Family>;
  constexpr bool only_diagonal = !BlockSizes<Family>::dense_transport;
  const Graph& graph = sheaf.graph();
  const Index count = graph.arc_count() * (only_diagonal ? D : E * D);  // at least the number of rows
  detail::require_sparse_coboundary(count, sheaf.node_dimension());
  std::vector<Eigen::Triplet<Scalar>> entries;
  entries.reserve(static_cast<std::size_t>(count));
  for (Index a = 0; a < graph.arc_count(); ++a) {
    const Index u = graph.source(a);
    const Scalar sign = u < graph.target(a) ? Scalar(-1) : Scalar(1);
    const Eigen::Matrix<Scalar, E, D> map = sheaf.restriction_map(a);
    for (int i = 0; i < E; ++i) {
      for (int j = 0; j < D; ++j) {
        if (only_diagonal && i != j) continue;
        entries.emplace_back(static_cast<int>(graph.edge_of(a) * E + i), static_cast<int>(u * D + j),
                             sign * map(i, j));
      }
    }
  }
  Eigen::SparseMatrix<Scalar> r(sheaf.edge_dimension(), sheaf.node_dimension());
  r.setFromTriplets(entries.begin(), entries.end());
  return r;
}

}  // namespace sheafnn::sheaf
