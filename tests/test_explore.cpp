/// \file
/// What the program explore computes from arrays: turns of edges, spectra, principal components, rejection, layout.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "explore/layout.hpp"
#include "explore/numbers.hpp"
#include "explore/text.hpp"

namespace test_explore {
namespace {

using Doubles = std::vector<double>;
using explore::Index;
using Matrices = std::vector<Eigen::MatrixXd>;
using sheafnn::Edge;
using sheafnn::Graph;

constexpr double eps = std::numeric_limits<double>::epsilon();
const double pi = std::acos(-1.0);

/// A rotation of R^d by these degrees in the planes (0, 1), (2, 3), ….
Eigen::MatrixXd rotation(Index d, const Doubles& degrees) {
  Eigen::MatrixXd r = Eigen::MatrixXd::Identity(d, d);
  for (std::size_t k = 0; k < degrees.size(); ++k) {
    const Index i = static_cast<Index>(2 * k);
    const double angle = degrees[k] * pi / 180;
    r(i, i) = r(i + 1, i + 1) = std::cos(angle);
    r(i + 1, i) = std::sin(angle);
    r(i, i + 1) = -std::sin(angle);
  }
  return r;
}
double distance(const Doubles& a, const Doubles& b) {
  REQUIRE(a.size() == b.size());
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(a[i] - b[i]));
  return worst;
}
/// A triangle with a tail and a node alone.
Graph some_graph() {
  const Edge edges[] = {{0, 1}, {0, 2}, {1, 2}, {2, 3}};
  return Graph(5, edges);
}

}  // namespace

TEST_CASE("turns are the largest angle between a vector and its image") {
  // asin loses half of the digits at half turns.
  CHECK(std::abs(explore::turn_in_degrees(rotation(2, {40})) - 40) <= 1e-12);
  CHECK(std::abs(explore::turn_in_degrees(rotation(2, {-40})) - 40) <= 1e-12);
  CHECK(std::abs(explore::turn_in_degrees(rotation(3, {100})) - 100) <= 1e-12);
  CHECK(std::abs(explore::turn_in_degrees(rotation(4, {30, 70})) - 70) <= 1e-12);
  CHECK(std::abs(explore::turn_in_degrees(rotation(4, {180, 10})) - 180) <= 1e-5);
  CHECK(explore::turn_in_degrees(rotation(3, {0})) <= 1e-5);
  CHECK(explore::turn_in_degrees(Eigen::MatrixXd::Identity(1, 1)) == 0);
}

TEST_CASE("turns of edges: from one end to the other, of rotations and of other maps") {
  const Edge edge[] = {{0, 1}};
  const Graph graph(2, edge);
  explore::Learned learned;
  learned.family = "special-orthogonal";
  learned.maps = {rotation(2, {10}), rotation(2, {75})};  // F_uᵀ F_v turns by 65°
  CHECK(distance(explore::edge_turns(learned, graph), {65}) <= 1e-12);
  learned.family = "diagonal";
  learned.maps = {Eigen::Vector2d(2, 1).asDiagonal(), Eigen::Vector2d(-1, 5).asDiagonal()};  // (−2, 5) − (1, 1)
  CHECK(distance(explore::edge_turns(learned, graph), {5}) <= 4 * eps);
  CHECK(explore::edge_means({0.25, 0.75}, graph) == Doubles{0.5});
}

TEST_CASE("spectra: identity maps by hand, a change of bases changes nothing") {
  const Edge path[] = {{0, 1}, {1, 2}};
  CHECK(distance(explore::identity_spectrum(Graph(3, path), 2), {0, 0, 1, 1, 2, 2}) <= 16 * eps);
  // A node without edges has eigenvalue 0.
  const Graph graph = some_graph();
  const Doubles plain = explore::identity_spectrum(graph, 2);
  CHECK(plain.size() == 10);
  CHECK(distance({plain.begin(), plain.begin() + 4}, Doubles(4, 0.0)) <= 16 * eps);
  CHECK(plain[4] > 0.1);
  // F_{u⊴e} = Q_e R_u has the spectrum of identity maps; with weights, that of a weighted graph.
  Matrices maps;
  for (Index a = 0; a < graph.arc_count(); ++a) {
    const double of_edge = 50.0 * static_cast<double>(graph.edge_of(a));
    maps.push_back(rotation(2, {of_edge + 33.0 * static_cast<double>(graph.source(a))}));
  }
  CHECK(distance(explore::spectrum(graph, maps, Doubles(4, 1.0), 2), plain) <= 64 * eps);
  CHECK(distance(explore::spectrum(graph, maps, Doubles(4, 0.1), 2), plain) <= 64 * eps);
  const Doubles weights = {0.5, 1, 2, 1.5};
  const Doubles weighted = explore::spectrum(graph, maps, weights, 2);
  CHECK(distance(weighted, plain) > 0.01);
  // The trace is the number of stalk coordinates at nodes with edges.
  CHECK(std::abs(std::accumulate(weighted.begin(), weighted.end(), 0.0) - 8) <= 64 * eps);
  // Maps of rank 1: D_u is singular, and its kernel belongs to the eigenvalue 0.
  const Matrices flat(static_cast<std::size_t>(graph.arc_count()), Eigen::Vector2d(0, 3).asDiagonal());
  Doubles half = explore::identity_spectrum(graph, 1);
  half.insert(half.begin(), 5, 0.0);
  CHECK(distance(explore::spectrum(graph, flat, Doubles(4, 1.0), 2), half) <= 64 * eps);
}

TEST_CASE("principal components of a stretched cross") {
  Eigen::MatrixXd x = Eigen::MatrixXd::Constant(5, 3, 7.0);
  x(0, 1) += 4;
  x(1, 1) -= 4;
  x(2, 2) += 1;
  x(3, 2) -= 1;
  for (const bool wide : {false, true}) {
    Eigen::MatrixXd in = x;
    if (wide) in.conservativeResizeLike(Eigen::MatrixXd::Zero(5, 8));  // more columns than rows
    const explore::Projection p = explore::principal_components(in);
    CHECK(std::abs(p.share[0] - 32.0 / 34) <= 16 * eps);
    CHECK(std::abs(p.share[1] - 2.0 / 34) <= 16 * eps);
    CHECK(std::abs(std::abs(p.points(0, 0)) - 4) <= 64 * eps);
    CHECK(std::abs(p.points(0, 0) + p.points(1, 0)) <= 64 * eps);
    CHECK(std::abs(std::abs(p.points(3, 1)) - 1) <= 64 * eps);
    CHECK(std::abs(p.points(4, 0)) <= 64 * eps);
  }
  // Signs follow the layer before.
  const auto layers = explore::project_layers({x, -x});
  CHECK((layers[0].points - layers[1].points).cwiseAbs().maxCoeff() <= 64 * eps);
  const explore::Projection constant = explore::principal_components(Eigen::MatrixXd::Ones(3, 1));
  CHECK(constant.points.isZero());
  CHECK(constant.share[0] == 0);
}

TEST_CASE("accuracy of what is left, by hand") {
  const Doubles uncertainty = {0.1, 0.9, 0.5, 0.5, 0.0};
  const std::vector<std::int32_t> labels = {0, 1, 1, 0, 1}, predicted = {0, 0, 1, 1, 1};
  // Rejected in turn: 1 (wrong), 2 (right), 3 (wrong), 0 (right).
  CHECK(distance(explore::accuracy_of_kept(uncertainty, labels, predicted, {0, 1, 2, 3, 4}),
                 {3.0 / 5, 3.0 / 4, 2.0 / 3, 1, 1}) <= eps);
  CHECK(explore::accuracy_of_kept(uncertainty, labels, predicted, {3}) == Doubles{0});
  CHECK(distance(explore::histogram({0, 0.4, 1, 2}, 0, 2, 4), {0.5, 0, 0.25, 0.25}) == 0);
}

TEST_CASE("layouts put neighbours near each other") {
  // Two cliques of six nodes with one edge between them, and a node alone.
  std::vector<Edge> edges = {{0, 6}};
  for (std::int32_t u = 0; u < 12; ++u) {
    for (std::int32_t v = u + 1; v < 12; ++v) {
      if (u / 6 == v / 6) edges.push_back({u, v});
    }
  }
  const Graph graph(13, edges);
  const Eigen::MatrixXd at = explore::layout(graph);
  CHECK(at == explore::layout(graph));
  CHECK(at.allFinite());
  CHECK(at.colwise().mean().norm() <= 64 * eps);
  CHECK(at.col(0).norm() > at.col(1).norm());
  double within = 0, between = 1e9;
  for (Index u = 0; u < 12; ++u) {
    for (Index v = u + 1; v < 12; ++v) {
      const double length = (at.row(u) - at.row(v)).norm();
      CHECK(length > 0.01);
      if (u / 6 == v / 6) within = std::max(within, length);
      if (u / 6 != v / 6) between = std::min(between, length);
    }
  }
  CHECK(within < 3 * between);
  const Eigen::MatrixXd middle[] = {at.topRows(6).colwise().mean(), at.middleRows(6, 6).colwise().mean()};
  CHECK((middle[0] - middle[1]).norm() > within);
  CHECK(explore::layout(Graph(1, {})).norm() == 0);
  CHECK(explore::layout(Graph(2, {})).allFinite());
}

TEST_CASE("texts and numbers are joined") {
  CHECK(explore::joined({"a ", 1, std::string(" b "), 0.5, " ", 7ul, -3l, 1e-7}) == "a 1 b 0.5 7-31e-07");
  CHECK(explore::joined({}) == "");
}

}  // namespace test_explore
