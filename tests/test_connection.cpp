/// \file
/// Connections: frames and transports against golden3/ (models3.md of its README), the orthogonal Procrustes problem, gauges,
/// nodes with few or equal neighbours, data of small rank, blocks of memory, threads, random controls.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "dense_algebra.hpp"
#include "golden_case.hpp"
#include "refusal.hpp"
#include "sheafnn/sheaf/connection.hpp"
#include "sheafnn/sheaf/laplacian.hpp"
#include "tiny_task.hpp"
#include "worst.hpp"

namespace test_connection {
namespace {

using sheafnn::CellularSheaf;
using sheafnn::FrameGauge;
using sheafnn::Graph;
using sheafnn::Index;
using sheafnn::NodeFeatures;
using sheafnn::Orthogonal;
using sheafnn::SpecialOrthogonal;
using sheafnn::Stream;
using sheafnn::sheaf::LocalFrames;
using test::message_of;
using Matrix = Eigen::MatrixXd;

constexpr double rounding = 256 * std::numeric_limits<double>::epsilon();

/// A file of golden3/ with a connection.
struct Given {
  golden::Case of;
  Index d;
  FrameGauge gauge;
  bool special;
};
Given read(const std::string& name) {
  Given r{golden::read_inputs("golden3", name), 0, FrameGauge::signs, false};
  const std::vector<double>& config = r.of.file.at("config").values;
  r.d = static_cast<Index>(config.at(0));
  r.special = config.at(10) != 0;
  r.gauge = config.at(11) != 0 ? FrameGauge::pivots : FrameGauge::signs;
  return r;
}

Matrix tangent_of(const Given& given, Index u) {
  const auto& values = given.of.file.at("tangent").values;
  const Index p = given.of.features.columns(), d = given.d;
  Matrix r(p, d);
  for (Index i = 0; i < p * d; ++i) r(i / d, i % d) = values[static_cast<std::size_t>(u * p * d + i)];
  return r;
}

/// Features of random numbers.
NodeFeatures random_features(Index n, Index p, std::uint64_t seed) {
  std::vector<double> values;
  for (Index i = 0; i < n * p; ++i) values.push_back(tiny::number(seed, i));
  return NodeFeatures::from_dense(std::span<const double>(values), n, p);
}

TEST_CASE("golden: tangent spaces and transports") {
  for (const char* name : {"conn_nsd_o2", "bconn_so3_lp"}) {
    CAPTURE(name);
    const Given given = read(name);
    const LocalFrames frames(given.of.graph, given.of.features, given.d, given.gauge);
    double worst = 0;
    for (Index u = 0; u < given.of.graph.node_count(); ++u) {
      const Matrix own = frames.frame(u), expected = tangent_of(given, u);
      worst = test::worse(worst, (own * own.transpose() - expected * expected.transpose()).cwiseAbs().maxCoeff());
      CHECK((own.transpose() * own - Matrix::Identity(given.d, given.d)).cwiseAbs().maxCoeff() <= rounding);
    }
    CHECK(worst <= 1e-10);
    const auto transports = sheafnn::sheaf::connection_transports(frames, given.special);
    const auto& expected = given.of.file.at("transport").values;
    REQUIRE(transports.values.size() == expected.size());
    worst = 0;
    for (std::size_t i = 0; i < expected.size(); ++i)
      worst = test::worse(worst, std::abs(transports.values[i] - expected[i]));
    CHECK(worst <= 1e-10);
  }
}

/// O_uv of an arc, from the transports of edges.
template <class Family>
Matrix along(const CellularSheaf<Family>& sheaf, Index u, Index v) {
  const Graph& graph = sheaf.graph();
  for (Index a = graph.first_arc(u); a < graph.first_arc(u + 1); ++a) {
    if (graph.target(a) != v) continue;
    return sheaf.restriction_map(a).transpose() * sheaf.restriction_map(graph.reverse(a));
  }
  FAIL("no such arc");
  return {};
}

TEST_CASE("a connection's transport is the solution of the Procrustes problem, once") {
  const Given given = read("bconn_so3_lp");
  const LocalFrames frames(given.of.graph, given.of.features, 3);
  const auto any = sheafnn::connection_sheaf<Orthogonal<3>>(given.of.graph, given.of.features);
  const auto rotations =
      sheafnn::connection_sheaf<Orthogonal<3>>(given.of.graph, given.of.features, {.special = true});
  const auto same =
      sheafnn::connection_sheaf<SpecialOrthogonal<3>>(given.of.graph, given.of.features, {.special = true});
  Index negative = 0;
  for (Index e = 0; e < given.of.graph.edge_count(); ++e) {
    const auto [u, v] = given.of.graph.edge(e);
    const Matrix own = frames.frame(u), other = frames.frame(v), o = along(any, u, v), r = along(rotations, u, v);
    CHECK((any.restriction_map(given.of.graph.forward_arc(e)) - Eigen::Matrix3d::Identity()).norm() == 0);
    CHECK((along(any, v, u) - o.transpose()).norm() <= rounding);
    CHECK((along(same, u, v) - r).norm() == 0);
    CHECK(std::abs(r.determinant() - 1) <= rounding);
    if (o.determinant() < 0) ++negative;
    // The cross product is symmetric and, over O(d), positive semidefinite in the best alignment.
    const Matrix cross = own.transpose() * other * o.transpose();
    CHECK((cross - cross.transpose()).norm() <= rounding);
    CHECK(dense_algebra::spectrum(cross)(0) >= -rounding);
    // And no other map is nearer.
    const double best = (own * o - other).norm(), best_rotation = (own * r - other).norm();
    CHECK(best <= best_rotation + rounding);
    for (std::uint32_t k = 0; k < 20; ++k) {
      CHECK((own * sheafnn::sheaf::random_map<Orthogonal<3>>(Stream{.seed = 4}, k) - other).norm() >= best);
      CHECK((own * sheafnn::sheaf::random_map<SpecialOrthogonal<3>>(Stream{.seed = 4}, k) - other).norm() >=
            best_rotation);
    }
  }
  CHECK(negative > 0);
  const std::string refused = [&]() -> std::string {
    try {
      static_cast<void>(sheafnn::connection_sheaf<SpecialOrthogonal<3>>(given.of.graph, given.of.features));
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "";
  }();
  CHECK(refused.find("a rotation has determinant 1") != std::string::npos);
}

TEST_CASE("gauges change bases, not tangent spaces nor the trace of products around cycles") {
  const Given given = read("conn_nsd_o2");
  const LocalFrames signs(given.of.graph, given.of.features, 2),
      pivots(given.of.graph, given.of.features, 2, FrameGauge::pivots);
  for (Index u = 0; u < given.of.graph.node_count(); ++u) {
    const Matrix a = signs.frame(u), b = pivots.frame(u);
    CHECK((a * a.transpose() - b * b.transpose()).norm() <= rounding);
    for (Index k = 0; k < 2; ++k) {
      Index at = 0;
      a.col(k).cwiseAbs().maxCoeff(&at);
      CHECK(a(at, k) > 0);
    }
    // The pivoted basis is a function of the projection: another basis of the same space has the same one.
    Matrix turned = a * Eigen::Rotation2Dd(1.1).toRotationMatrix();
    sheafnn::detail::pivot_basis(turned);
    CHECK((turned - b).norm() <= rounding);
    CHECK((b.transpose() * b - Matrix::Identity(2, 2)).norm() <= rounding);
  }
  const auto one = sheafnn::connection_sheaf<Orthogonal<2>>(given.of.graph, given.of.features);
  const auto two =
      sheafnn::connection_sheaf<Orthogonal<2>>(given.of.graph, given.of.features, {.gauge = FrameGauge::pivots});
  Index triangles = 0;
  const Graph& graph = given.of.graph;
  for (Index e = 0; e < graph.edge_count(); ++e) {
    const auto [u, v] = graph.edge(e);
    for (Index a = graph.first_arc(v); a < graph.first_arc(v + 1); ++a) {
      const Index w = graph.target(a);
      bool closes = false;
      for (Index b = graph.first_arc(w); b < graph.first_arc(w + 1); ++b) closes = closes || graph.target(b) == u;
      if (!closes || w < v) continue;
      ++triangles;
      const auto around = [&](const CellularSheaf<Orthogonal<2>>& sheaf) -> Matrix {
        return along(sheaf, u, v) * along(sheaf, v, w) * along(sheaf, w, u);
      };
      CHECK(std::abs(around(one).trace() - around(two).trace()) <= rounding);
      CHECK(std::abs(around(one).determinant() - around(two).determinant()) <= rounding);
    }
  }
  CHECK(triangles > 0);
}

TEST_CASE("the first of nearly equal entries decides the sign and the pivot") {
  Matrix frame(3, 1);
  frame << -0.6, 0.6 * (1 + 5e-9), 0.5;
  sheafnn::detail::fix_signs(frame);
  CHECK(frame(0, 0) > 0);
  frame << -0.6, 0.6 * (1 + 5e-8), 0.5;
  sheafnn::detail::fix_signs(frame);
  CHECK(frame(1, 0) > 0);
}

TEST_CASE("nodes with few or equal neighbours get the nearest other nodes") {
  // Node 0 is isolated; nodes 3 and 4, the neighbours of 2, have equal features; node 5 is node 2's twin.
  const std::vector<double> x = {0, 0, 0, /**/ 5, 1, 0, /**/ 1, 1, 1, /**/ 2, 1, 1,
                                 2, 1, 1, /**/ 1, 1, 1, /**/ 1, 4, 1, /**/ 9, 9, 9};
  const NodeFeatures features = NodeFeatures::from_dense(std::span<const double>(x), 8, 3);
  const sheafnn::Edge edges[] = {{2, 3}, {2, 4}, {1, 7}};
  const Graph graph(8, edges);
  const LocalFrames frames(graph, features, 2);
  const auto projection = [](const Matrix& t) -> Matrix { return t * t.transpose(); };
  // Of 2: e_1 from its neighbours; then 5 adds nothing, 0 at distance √3 adds (−1, −1, −1).
  Matrix span(3, 2);
  span << 1, 0, 0, std::sqrt(0.5), 0, std::sqrt(0.5);
  CHECK((projection(frames.frame(2)) - projection(span)).norm() <= rounding);
  // Of 0: nodes 2 and 5, both (1, 1, 1), then 3, (2, 1, 1).
  CHECK((projection(frames.frame(0)) - projection(span)).norm() <= rounding);
  // Two members of 1 beside its neighbour 7: 3, at distance √10 as 4.
  const Matrix one = projection(frames.frame(1));
  const Eigen::Vector3d to7(4, 8, 9), to3(-3, 0, 1);
  CHECK((one * to7 - to7).norm() <= 64 * rounding);
  CHECK((one * to3 - to3).norm() <= 64 * rounding);
}

TEST_CASE("data of small rank are completed by unit vectors") {
  // All features are multiples of (0, 1, 0, 0): e_2 from the data, e_1 and e_3 beside it.
  const std::vector<double> x = {0, 1, 0, 0, 0, 2, 0, 0, 0, 5, 0, 0};
  const NodeFeatures features = NodeFeatures::from_dense(std::span<const double>(x), 3, 4);
  const sheafnn::Edge edges[] = {{0, 1}, {1, 2}};
  const Graph graph(3, edges);
  Matrix expected = Matrix::Zero(4, 3);
  expected(1, 0) = expected(0, 1) = expected(2, 2) = 1;
  const LocalFrames frames(graph, features, 3);
  for (Index u = 0; u < 3; ++u) CHECK((frames.frame(u) - expected).norm() <= rounding);
  for (const FrameGauge gauge : {FrameGauge::signs, FrameGauge::pivots}) {
    const auto sheaf = sheafnn::connection_sheaf<Orthogonal<3>>(graph, features, {.gauge = gauge});
    CHECK((along(sheaf, 0, 1) - Matrix::Identity(3, 3)).norm() <= rounding);
  }
  // No data at all, and one node.
  const NodeFeatures none = NodeFeatures::from_dense(std::span<const double>(std::vector<double>(4)), 1, 4);
  CHECK((LocalFrames(Graph(1, {}), none, 2).frame(0) - Matrix::Identity(4, 2)).norm() == 0);
}

TEST_CASE("frames do not depend on the scale of the features") {
  // Nodes of one neighbour need the distances to others; their squares would vanish or overflow.
  const std::vector<sheafnn::Edge> path = {{0, 1}, {1, 2}, {2, 3}, {3, 4}};
  const Graph graph(6, path);
  std::vector<double> values;
  for (Index i = 0; i < 6 * 3; ++i) values.push_back(tiny::number(9, i));
  const auto frames_of = [&](double scale) {
    std::vector<double> scaled;
    for (const double value : values) scaled.push_back(scale * value);
    const NodeFeatures features = NodeFeatures::from_dense(std::span<const double>(scaled), 6, 3);
    const LocalFrames frames(graph, features, 3);
    Matrix r(3, 18);
    for (Index u = 0; u < 6; ++u) r.middleCols(3 * u, 3) = frames.frame(u);
    return r;
  };
  const Matrix expected = frames_of(1);
  for (const int exponent : {-1000, -600, -1, 600, 1000}) {
    CAPTURE(exponent);
    CHECK((frames_of(std::ldexp(1.0, exponent)) - expected).cwiseAbs().maxCoeff() <= rounding);
  }
}

TEST_CASE("large neighbourhoods, blocks of memory and threads") {
  // A hub whose Gram matrix is iterated, beside nodes of few neighbours; both ways of a Gram matrix.
  for (const Index p : {420, 60}) {
    const Index n = 460;
    std::vector<sheafnn::Edge> edges;
    for (Index v = 1; v < n; ++v) edges.push_back({0, static_cast<std::int32_t>(v)});
    for (Index v = 1; v + 1 < 12; ++v)
      edges.push_back({static_cast<std::int32_t>(v), static_cast<std::int32_t>(v + 1)});
    const Graph graph(n, edges);
    const NodeFeatures features = random_features(n, p, 3);
    const LocalFrames frames(graph, features, 3);
    Matrix x(p, n - 1);
    for (Index v = 1; v < n; ++v) {
      for (Index i = 0; i < p; ++i) x(i, v - 1) = tiny::number(3, v * p + i) - tiny::number(3, i);
    }
    const Eigen::BDCSVD<Matrix> svd(x, Eigen::ComputeThinU);
    const Matrix u = svd.matrixU().leftCols(3), own = frames.frame(0);
    // The Gram matrix is rounded relative to its largest eigenvalue.
    const Eigen::VectorXd squares = svd.singularValues().cwiseAbs2();
    const double gap = (squares(2) - squares(3)) / squares(0);
    CHECK((own * own.transpose() - u * u.transpose()).norm() <= rounding / gap);
    const auto whole = sheafnn::sheaf::connection_transports(frames, false, 1);
    CHECK(sheafnn::sheaf::connection_transports(frames, false, 3).values == whole.values);
    CHECK(sheafnn::sheaf::connection_transports(frames, false, 2, 100).values == whole.values);
  }
}

TEST_CASE("random connections") {
  const tiny::Task task;
  const Stream stream{.seed = 5};
  const auto node = sheafnn::random_node_sheaf<Orthogonal<3>>(task.graph, stream);
  // A flat bundle: H⁰ has a section for every frame, of each of the two components.
  const Matrix laplacian = Matrix(sheafnn::SheafLaplacian(node, sheafnn::Normalisation::none).matrix());
  const Eigen::VectorXd values = dense_algebra::spectrum(laplacian);
  CHECK(std::abs(values(5)) <= rounding);
  CHECK(values(6) > 0.1);
  const auto edge = sheafnn::random_edge_sheaf<SpecialOrthogonal<3>>(task.graph, stream);
  const auto [u, v] = task.graph.edge(4);
  CHECK((along(edge, u, v) - sheafnn::rotation::haar_rotation<double, 3>(stream, 4)).norm() <= rounding);
  Index negative = 0;
  for (std::uint32_t i = 0; i < 400; ++i) {
    negative += sheafnn::sheaf::random_map<Orthogonal<3>>(stream, i).determinant() < 0 ? 1 : 0;
  }
  CHECK(std::abs(negative - 200) <= 50);  // five standard deviations
}

TEST_CASE("connections that cannot be are refused") {
  const tiny::Task task;
  CHECK(message_of([&] { LocalFrames(task.graph, task.sparse, 5); }) ==
        "features: 4 is not allowed; a connection of stalk dimension 5 needs at least as many columns");
  CHECK(message_of([&] { LocalFrames(task.graph, random_features(6, 4, 1), 2); }) ==
        "rows of the features: 6 is not allowed; must equal the number of nodes, 7");
  CHECK(message_of([&] { LocalFrames(task.graph, task.sparse, 9); }) ==
        "stalk dimension: 9 is not allowed; must be between 1 and 8");
  const std::vector<double> gap = {1, 2, 3, std::nan(""), 5, 6};
  const NodeFeatures missing =
      NodeFeatures::from_dense(std::span<const double>(gap), 3, 2, sheafnn::MissingValues::mark);
  CHECK(message_of([&] { LocalFrames(Graph(3, {}), missing, 2); }) ==
        "features: a missing value in column: 1 is not allowed; a connection needs all numbers");
  CellularSheaf<Orthogonal<2>> sheaf(task.graph);
  Eigen::Matrix2d mirror;
  mirror << 0, 1, 1, 0;
  sheaf.set_map(3, mirror);
  CHECK(message_of([&] { sheaf.set_map(3, 2 * mirror); }).find("an orthogonal map must be orthogonal within") !=
        std::string::npos);
}

}  // namespace
}  // namespace test_connection
