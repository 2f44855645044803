/// \file
/// Node features and graphs from Eigen matrices of either storage order.
///
/// Eigen stores matrices column by column by default, NodeFeatures row by row: hand over the matrix, not its
/// data().
#pragma once

#include "sheafnn/core/eigen.hpp"

#include <Eigen/SparseCore>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/graph/features.hpp"
#include "sheafnn/graph/graph.hpp"

namespace sheafnn {

namespace detail {

/// CSR arrays that are filled row by row.
class FeatureRows {
 public:
  explicit FeatureRows(Index columns) : columns_(columns) {
    constexpr Index most = std::numeric_limits<std::int32_t>::max();
    require(columns <= most, "feature columns", columns, concat("must be at most ", most));
  }
  /// The next entry of the row; zeros are left out.
  void add(Index column, double value) {
    if (!std::isfinite(value)) {
      throw_invalid_argument(concat("features[", offsets_.size() - 1, ", ", column, "]"), value,
                             "features must be finite");
    }
    if (value == 0) return;
    column_of_.push_back(static_cast<std::int32_t>(column));
    values_.push_back(value);
  }
  void end_row() { offsets_.push_back(static_cast<Index>(values_.size())); }
  [[nodiscard]] NodeFeatures finish() {
    return NodeFeatures::from_csr(std::move(offsets_), std::move(column_of_), std::move(values_), columns_);
  }

 private:
  Index columns_;
  std::vector<Index> offsets_ = {0};
  std::vector<std::int32_t> column_of_;
  std::vector<double> values_;
};

/// A sparse matrix row by row, columns increasing within a row, whatever its own order.
template <class Derived>
[[nodiscard]] auto by_rows(const Eigen::SparseMatrixBase<Derived>& matrix) {
  static_assert(!Eigen::NumTraits<typename Derived::Scalar>::IsComplex, "complex entries are not supported");
  using Scalar = typename Derived::Scalar;
  // By way of columns: changing the order sorts.
  const Eigen::SparseMatrix<Scalar, Eigen::ColMajor, Index> columns(matrix.derived());
  return Eigen::SparseMatrix<Scalar, Eigen::RowMajor, Index>(columns);
}

}  // namespace detail

/// n × p features from a dense matrix or expression of any real scalar; zeros are left out.
///
/// \throws std::invalid_argument  an entry that is NaN or infinite
template <class Derived>
[[nodiscard]] NodeFeatures features_from_eigen(const Eigen::DenseBase<Derived>& matrix) {
  static_assert(!Eigen::NumTraits<typename Derived::Scalar>::IsComplex, "complex features are not supported");
  const auto& values = matrix.eval();  // an expression is computed once
  detail::FeatureRows rows(values.cols());
  for (Index u = 0; u < values.rows(); ++u) {
    for (Index j = 0; j < values.cols(); ++j) rows.add(j, static_cast<double>(values(u, j)));
    rows.end_row();
  }
  return rows.finish();
}

/// n × p features from a sparse matrix or expression of any real scalar.
///
/// \throws std::invalid_argument  an entry that is NaN or infinite
template <class Derived>
[[nodiscard]] NodeFeatures features_from_eigen(const Eigen::SparseMatrixBase<Derived>& matrix) {
  const auto values = detail::by_rows(matrix);
  detail::FeatureRows rows(values.cols());
  for (Index u = 0; u < values.rows(); ++u) {
    for (typename decltype(values)::InnerIterator entry(values, u); entry; ++entry) {
      rows.add(entry.col(), static_cast<double>(entry.value()));
    }
    rows.end_row();
  }
  return rows.finish();
}

/// The graph of an n × n sparse adjacency matrix: an edge {u, v} for every entry (u, v) or (v, u) that is not zero. Entries
/// on the diagonal are counted as dropped self-loops.
///
/// \throws std::invalid_argument  a matrix that is not square, or an entry that is not finite
template <class Derived>
[[nodiscard]] Graph graph_from_eigen(const Eigen::SparseMatrixBase<Derived>& adjacency) {
  require(adjacency.rows() == adjacency.cols(), "adjacency columns", adjacency.cols(),
          detail::concat("must equal the number of rows, ", adjacency.rows()));
  constexpr Index most = std::numeric_limits<std::int32_t>::max();
  require(adjacency.rows() <= most, "adjacency rows", adjacency.rows(), detail::concat("must be at most ", most));
  const auto values = detail::by_rows(adjacency);
  std::vector<Edge> edges;
  edges.reserve(static_cast<std::size_t>(values.nonZeros()));
  using Scalar = typename Derived::Scalar;
  for (Index u = 0; u < values.rows(); ++u) {
    for (typename decltype(values)::InnerIterator entry(values, u); entry; ++entry) {
      if (entry.value() == Scalar(0)) continue;
      if constexpr (std::is_floating_point_v<Scalar>) {
        require(std::isfinite(entry.value()), detail::concat("adjacency(", u, ", ", entry.col(), ")"),
                entry.value(), "must be finite");
      }
      edges.push_back({static_cast<std::int32_t>(u), static_cast<std::int32_t>(entry.col())});
    }
  }
  return graph_of_entries(adjacency.rows(), std::move(edges));
}

}  // namespace sheafnn
