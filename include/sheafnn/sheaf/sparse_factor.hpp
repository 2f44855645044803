/// \file
/// Sparse factors of symmetric positive definite matrices with a block of D rows per node of a graph.
///
/// P (L + σI) Pᵀ = M D Mᵀ by Eigen's SimplicialLDLT. The order of the rows comes from the graph alone (approximate minimum
/// degree of its nodes). So the number of entries of M is known before anything is factorised.
#pragma once

#include "sheafnn/core/eigen.hpp"

#include <Eigen/OrderingMethods>
#include <Eigen/SparseCholesky>
#include <Eigen/SparseCore>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/graph/graph.hpp"

namespace sheafnn::detail {

/// Vectors, one per column; rows are contiguous, as in a cochain.
template <class Real>
using VectorBlock = Eigen::Matrix<Real, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
/// Some columns of such a block, to read.
template <class Real>
using VectorBlockRef = Eigen::Ref<const VectorBlock<Real>>;

/// An order of elimination of the nodes of a graph, and what it costs.
struct EliminationOrder {
  std::vector<std::int32_t> position;  ///< by node
  double entries = 0;                  ///< of the factor below its diagonal, in nodes; infinite if above the limit
  double products = 0;                 ///< Σ over its columns of (entries)²
};

/// The approximate minimum degree order. \param max_entries  counting stops above
[[nodiscard]] inline EliminationOrder elimination_order(const Graph& graph, double max_entries) {
  const int n = static_cast<int>(graph.node_count());
  Eigen::SparseMatrix<double> pattern(n, n);
  pattern.reserve(Eigen::VectorXi::NullaryExpr(n, [&](Index u) { return static_cast<int>(graph.degree(u)) + 1; }));
  for (Index u = 0; u < n; ++u) {
    pattern.insert(u, u) = 1;  // without a diagonal, Eigen's order is a poor one
    for (Index a = graph.first_arc(u); a < graph.first_arc(u + 1); ++a) pattern.insert(graph.target(a), u) = 1;
  }
  Eigen::PermutationMatrix<Eigen::Dynamic, Eigen::Dynamic, int>
      order;  // order.indices()(k): the node eliminated k-th
  Eigen::AMDOrdering<int>()(pattern, order);
  EliminationOrder r;
  r.position.resize(static_cast<std::size_t>(n));
  for (int k = 0; k < n; ++k) r.position[static_cast<std::size_t>(order.indices()(k))] = k;
  // Row k of the factor: the paths in the elimination tree from the neighbours before k up to k.
  std::vector<int> parent(r.position.size(), -1), seen(r.position.size(), -1);
  std::vector<double> column(r.position.size(), 0.0);
  for (int k = 0; k < n && r.entries <= max_entries; ++k) {
    seen[static_cast<std::size_t>(k)] = k;
    const Index u = order.indices()(k);
    for (Index a = graph.first_arc(u); a < graph.first_arc(u + 1); ++a) {
      for (int i = r.position[static_cast<std::size_t>(graph.target(a))];
           i < k && seen[static_cast<std::size_t>(i)] != k; i = parent[static_cast<std::size_t>(i)]) {
        seen[static_cast<std::size_t>(i)] = k;
        column[static_cast<std::size_t>(i)] += 1;
        r.entries += 1;
        if (parent[static_cast<std::size_t>(i)] < 0) parent[static_cast<std::size_t>(i)] = k;
      }
    }
  }
  if (r.entries > max_entries) r.entries = std::numeric_limits<double>::infinity();
  for (const double c : column) r.products += c * c;
  return r;
}

/// (L + σI)⁻¹ and L on blocks of vectors, whose rows are in the order of elimination.
class SparseFactor {
 public:
  using Matrix = Eigen::SparseMatrix<double>;

  /// \param matrix    symmetric, D rows per node
  /// \param position  of every node in the order of elimination
  /// \param shift     σ
  SparseFactor(const Matrix& matrix, const std::vector<std::int32_t>& position, double shift)
      : dimension_(matrix.rows() / static_cast<Index>(position.size())), order_(matrix.rows()) {
    for (Index i = 0; i < matrix.rows(); ++i) {
      order_.indices()(i) =
          static_cast<int>(position[static_cast<std::size_t>(i / dimension_)] * dimension_ + i % dimension_);
    }
    matrix_ = matrix.twistedBy(order_);
    factor_.setShift(shift);
    factor_.compute(matrix_);
    if (factor_.info() == Eigen::Success) pivots_ = factor_.vectorD();
  }

  /// The smallest entry of D; −∞ where the elimination met a 0 and stopped. Positive: the matrix is positive definite.
  [[nodiscard]] double smallest_pivot() const {
    return pivots_.size() > 0 ? pivots_.minCoeff() : -std::numeric_limits<double>::infinity();
  }

  /// L x.
  [[nodiscard]] VectorBlock<double> apply(const VectorBlock<double>& x) const {
    VectorBlock<double> y = VectorBlock<double>::Zero(x.rows(), x.cols());
    for (int j = 0; j < matrix_.cols(); ++j) {  // L is symmetric: column j is row j
      for (Matrix::InnerIterator entry(matrix_, j); entry; ++entry)
        y.row(j) += entry.value() * x.row(entry.index());
    }
    return y;
  }

  /// (L + σI)⁻¹ x, one walk over the factor for all columns.
  [[nodiscard]] VectorBlock<double> solve(VectorBlock<double> x) const {
    const Matrix& m = factor_.matrixL().nestedExpression();
    for (int j = 0; j < m.cols(); ++j) {
      for (Matrix::InnerIterator entry(m, j); entry; ++entry) {
        if (entry.index() > j) x.row(entry.index()) -= entry.value() * x.row(j);
      }
    }
    for (Index j = m.cols() - 1; j >= 0; --j) {
      x.row(j) /= pivots_(j);
      for (Matrix::InnerIterator entry(m, j); entry; ++entry) {
        if (entry.index() > j) x.row(j) -= entry.value() * x.row(entry.index());
      }
    }
    return x;
  }

  /// Rows in the order of the matrix, from rows in the order of elimination.
  [[nodiscard]] VectorBlock<double> in_order(const VectorBlock<double>& x) const {
    VectorBlock<double> r(x.rows(), x.cols());
    for (Index i = 0; i < x.rows(); ++i) r.row(i) = x.row(order_.indices()(i));
    return r;
  }
  /// The inverse of in_order.
  [[nodiscard]] VectorBlock<double> eliminated_order(const VectorBlock<double>& x) const {
    VectorBlock<double> r(x.rows(), x.cols());
    for (Index i = 0; i < x.rows(); ++i) r.row(order_.indices()(i)) = x.row(i);
    return r;
  }

 private:
  Index dimension_;
  Eigen::PermutationMatrix<Eigen::Dynamic, Eigen::Dynamic, int> order_;
  Matrix matrix_;
  Eigen::VectorXd pivots_;
  Eigen::SimplicialLDLT<Matrix, Eigen::Lower, Eigen::NaturalOrdering<int>> factor_;
};

}  // namespace sheafnn::detail
