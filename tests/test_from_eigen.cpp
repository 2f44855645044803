// Features and graphs from Eigen matrices: both storage orders, dense and sparse, give what the entries say.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "sheafnn/graph/from_eigen.hpp"

namespace test_from_eigen {
namespace {

using namespace sheafnn;

// 3 × 2 with entry 10 u + j + 1, but for a zero at (1, 1).
double entry(Index u, Index j) { return u == 1 && j == 1 ? 0 : static_cast<double>(10 * u + j + 1); }

void check_features(const NodeFeatures& features) {
  CHECK(features.rows() == 3);
  CHECK(features.columns() == 2);
  CHECK(std::vector<Index>(features.offsets().begin(), features.offsets().end()) ==
        std::vector<Index>{0, 2, 3, 5});
  CHECK(std::vector<std::int32_t>(features.column_of().begin(), features.column_of().end()) ==
        std::vector<std::int32_t>{0, 1, 0, 0, 1});
  CHECK(std::vector<double>(features.values().begin(), features.values().end()) ==
        std::vector<double>{1, 2, 11, 21, 22});
}

template <class Matrix>
Matrix filled() {
  Matrix x(3, 2);
  for (Index u = 0; u < 3; ++u) {
    for (Index j = 0; j < 2; ++j) x(u, j) = static_cast<typename Matrix::Scalar>(entry(u, j));
  }
  return x;
}
// Column by column, with an explicit zero.
template <class Matrix>
Matrix filled_sparse() {
  Matrix x(3, 2);
  for (Index j = 1; j >= 0; --j) {
    for (Index u = 2; u >= 0; --u) x.insert(u, j) = static_cast<typename Matrix::Scalar>(entry(u, j));
  }
  return x;  // not compressed
}

}  // namespace

TEST_CASE("features from dense matrices of either order, and from expressions") {
  using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const Eigen::MatrixXd x = filled<Eigen::MatrixXd>();
  check_features(features_from_eigen(x));
  check_features(features_from_eigen(filled<RowMajor>()));
  check_features(features_from_eigen(filled<Eigen::ArrayXXi>()));
  check_features(features_from_eigen(filled<Eigen::Matrix<double, 3, 2>>() * Eigen::Matrix2d::Identity()));
  check_features(features_from_eigen(Eigen::MatrixXd(x.transpose()).transpose()));
  Eigen::MatrixXd bad = x;
  bad(2, 1) = std::numeric_limits<double>::quiet_NaN();
  CHECK_THROWS_WITH_AS(static_cast<void>(features_from_eigen(bad)),
                       "features[2, 1]: nan is not allowed; features must be finite", std::invalid_argument);
}

TEST_CASE("features from sparse matrices of either order") {
  check_features(features_from_eigen(filled_sparse<Eigen::SparseMatrix<double>>()));
  check_features(features_from_eigen(filled_sparse<Eigen::SparseMatrix<float, Eigen::RowMajor>>()));
  const auto x = filled_sparse<Eigen::SparseMatrix<double>>();
  check_features(features_from_eigen(Eigen::SparseMatrix<double>(2 * x) - x));
  check_features(features_from_eigen(Eigen::SparseMatrix<double>(x.transpose()).transpose()));
}

TEST_CASE("graphs from sparse adjacency matrices of either order") {
  const auto check = [](const auto& adjacency) {
    const Graph graph = graph_from_eigen(adjacency);
    CHECK(graph.node_count() == 4);
    CHECK(std::vector<Edge>(graph.edges().begin(), graph.edges().end()) == std::vector<Edge>{{0, 1}, {1, 3}});
    CHECK(graph.dropped_self_loops() == 1);
    CHECK(graph.merged_duplicates() == 0);  // (0, 1) and (1, 0) are one edge
    CHECK(graph.listed(1));                 // 1→0
    CHECK_FALSE(graph.listed(2));           // 1→3
    CHECK(graph.listed(3));                 // 3→1
  };
  const std::vector<Eigen::Triplet<double>> entries = {{0, 1, 1}, {1, 0, 1}, {3, 1, -2}, {2, 2, 1}, {0, 2, 0}};
  Eigen::SparseMatrix<double> columns(4, 4);
  columns.setFromTriplets(entries.begin(), entries.end());
  check(columns);
  check(Eigen::SparseMatrix<double, Eigen::RowMajor>(columns));
  CHECK_THROWS_WITH_AS(static_cast<void>(graph_from_eigen(Eigen::SparseMatrix<double>(2, 3))),
                       "adjacency columns: 3 is not allowed; must equal the number of rows, 2",
                       std::invalid_argument);
}

TEST_CASE("an adjacency matrix has finite entries") {
  for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    Eigen::SparseMatrix<double> adjacency(3, 3);
    adjacency.insert(1, 2) = bad;
    const std::string message =
        "adjacency(1, 2): " + std::string(std::isnan(bad) ? "nan" : "inf") + " is not allowed; must be finite";
    CHECK_THROWS_WITH_AS(static_cast<void>(graph_from_eigen(adjacency)), message.c_str(), std::invalid_argument);
  }
  Eigen::SparseMatrix<int> whole(3, 3);
  whole.insert(1, 2) = 7;
  CHECK(graph_from_eigen(whole).edge_count() == 1);
}

}  // namespace test_from_eigen
