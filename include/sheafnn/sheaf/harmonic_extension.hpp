/// \file
/// Harmonic extension: values on some nodes, continued to all nodes with the least disagreement.
///
/// With B the fixed nodes and U the free ones, the x with given x_B that minimises ⟨x, Δx⟩ solves
///
///     Δ_UU x_U = −Δ_UB x_B,
///
/// by a sparse factorisation. It is also the limit t → ∞ of dx_U/dt = −(Δx)_U with x_B held. Source: Hansen, Ghrist,
/// "Opinion dynamics on discourse sheaves", SIAM Journal on Applied Mathematics 81 (2021), section 6; math: "Harmonic
/// extension".
#pragma once

#include "sheafnn/core/eigen.hpp"

#include <Eigen/SparseCore>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "sheafnn/core/errors.hpp"
#include "sheafnn/sheaf/laplacian.hpp"
#include "sheafnn/sheaf/sparse_factor.hpp"

namespace sheafnn::detail {

/// Solves for the rows of free nodes, in place. The code does not depend on the family.
///
/// \param matrix        symmetric, positive semidefinite
/// \param dense_blocks  off its diagonal; otherwise the D coordinates are eliminated independently
/// \param is_fixed      by node
/// \param x             rows of fixed nodes are given; rows of free nodes are set
/// \param tolerance     a pivot of at most this counts as 0
/// \throws std::invalid_argument  the matrix restricted to the free nodes is singular, or its factor has 2³¹ entries or
///         more
inline void extend_to_free_nodes(const Graph& graph, const Eigen::SparseMatrix<double>& matrix, bool dense_blocks,
                                 const std::vector<char>& is_fixed, VectorBlock<double>& x, double tolerance) {
  std::vector<std::int32_t> free_nodes, position(is_fixed.size(), -1);
  for (std::size_t u = 0; u < is_fixed.size(); ++u) {
    if (is_fixed[u]) continue;
    position[u] = static_cast<std::int32_t>(free_nodes.size());
    free_nodes.push_back(static_cast<std::int32_t>(u));
  }
  if (free_nodes.empty()) return;  // as in a graph without nodes
  const Index dimension = matrix.rows() / graph.node_count();
  const Index rows = static_cast<Index>(free_nodes.size()) * dimension;
  const auto free_row = [&](Index row) {  // −1: of a fixed node
    const std::int32_t p = position[static_cast<std::size_t>(row / dimension)];
    return p < 0 ? Index{-1} : p * dimension + row % dimension;
  };
  std::vector<Edge> edges;
  for (const Edge& e : graph.edges()) {
    const std::int32_t u = position[static_cast<std::size_t>(e.u)], v = position[static_cast<std::size_t>(e.v)];
    if (u >= 0 && v >= 0) edges.push_back({u, v});
  }
  const Graph free_graph(static_cast<Index>(free_nodes.size()), edges);
  const std::string fixed = concat(is_fixed.size() - free_nodes.size(), " nodes");
  // In nodes: D² or D entries each, and the rows below the diagonals of the D × D blocks on the diagonal.
  const double most = (std::numeric_limits<int>::max() - static_cast<double>(rows * dimension)) /
                      static_cast<double>(dense_blocks ? dimension * dimension : dimension);
  const EliminationOrder order = elimination_order(free_graph, most);
  require(std::isfinite(order.entries), "fixed_nodes", fixed,
          "the factor for the free nodes has more than 2147483647 entries; fix more nodes");
  std::vector<Eigen::Triplet<double>> entries;
  VectorBlock<double> right = VectorBlock<double>::Zero(rows, x.cols());
  for (int j = 0; j < matrix.cols(); ++j) {
    for (Eigen::SparseMatrix<double>::InnerIterator entry(matrix, j); entry; ++entry) {
      const Index row = free_row(entry.index()), column = free_row(j);
      if (row < 0) continue;
      if (column < 0) {
        right.row(row) -= entry.value() * x.row(j);
      } else {
        entries.emplace_back(static_cast<int>(row), static_cast<int>(column), entry.value());
      }
    }
  }
  Eigen::SparseMatrix<double> restricted(rows, rows);
  restricted.setFromTriplets(entries.begin(), entries.end());
  const SparseFactor factor(restricted, order.position, 0);
  require(
      factor.smallest_pivot() > tolerance, "fixed_nodes", fixed,
      "they do not determine the extension: a section that is not 0 vanishes at all of them. Fix more nodes, at "
      "least one in each connected component");
  const VectorBlock<double> solution = factor.in_order(factor.solve(factor.eliminated_order(right)));
  for (Index i = 0; i < matrix.rows(); ++i) {
    if (free_row(i) >= 0) x.row(i) = solution.row(free_row(i));
  }
}

}  // namespace sheafnn::detail

namespace sheafnn::sheaf {

/// The harmonic extension of values on some nodes.
///
/// \param fixed_nodes  B, each node at most once; may be empty where ker Δ = 0
/// \param values       (|B| D) × f: the stalk of fixed_nodes[i] in rows i D … i D + D − 1
/// \returns            (nD) × f: the given values on B, the solution elsewhere
/// \throws std::invalid_argument  a node out of range or named twice, or values of another size or not finite. Or Δ_UU is
///                                singular (to rounding): more than one extension has the least disagreement; or its factor
///                                has 2³¹ entries or more
template <class Family, class Scalar>
[[nodiscard]] Cochain<Scalar> harmonic_extension(const SheafLaplacian<Family, Scalar>& laplacian,
                                                 std::span<const std::int32_t> fixed_nodes,
                                                 const std::type_identity_t<CochainRef<Scalar>>& values) {
  constexpr int D = Family::stalk_dimension;
  const Graph& graph = laplacian.graph();
  const Index fixed_rows = static_cast<Index>(fixed_nodes.size()) * D;
  require(values.rows() == fixed_rows, "rows of values", values.rows(),
          detail::concat("must be ", D, " per fixed node, ", fixed_rows));
  detail::require_finite<Scalar>(values, "values");
  std::vector<char> is_fixed(static_cast<std::size_t>(graph.node_count()), 0);
  detail::VectorBlock<double> x = detail::VectorBlock<double>::Zero(laplacian.rows(), values.cols());
  for (std::size_t i = 0; i < fixed_nodes.size(); ++i) {
    const std::int32_t u = fixed_nodes[i];
    if (u < 0 || u >= graph.node_count()) {
      throw_invalid_argument(detail::concat("fixed_nodes[", i, "]"), u,
                             detail::concat("must be between 0 and ", graph.node_count() - 1));
    }
    if (is_fixed[static_cast<std::size_t>(u)]) {
      throw_invalid_argument(detail::concat("fixed_nodes[", i, "]"), u, "each node is named at most once");
    }
    is_fixed[static_cast<std::size_t>(u)] = 1;
    x.middleRows(u * D, D) = values.middleRows(static_cast<Index>(i) * D, D).template cast<double>();
  }
  // Rounding errors of Δ's entries add up at random in a pivot that should be 0; rounding errors of the elimination, in
  // double, may not cancel.
  const double rows = static_cast<double>(laplacian.rows());
  const double rounding = std::max(std::sqrt(rows) * static_cast<double>(std::numeric_limits<Scalar>::epsilon()),
                                   rows * std::numeric_limits<double>::epsilon());
  const double tolerance = 8 * rounding * static_cast<double>(laplacian.spectral_bound());
  const Eigen::SparseMatrix<double> matrix = laplacian.matrix().template cast<double>();
  detail::extend_to_free_nodes(graph, matrix, BlockSizes<Family>::dense_transport, is_fixed, x, tolerance);
  return x.template cast<Scalar>();
}

}  // namespace sheafnn::sheaf
