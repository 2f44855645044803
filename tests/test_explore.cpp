/// \file
/// What the program explore computes from arrays: turns of edges, spectra, principal components, rejection, layout.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "explore/graph_pictures.hpp"
#include "explore/layout.hpp"
#include "explore/numbers.hpp"
#include "explore/text.hpp"
#include "sheafnn/io/npz_writer.hpp"
#include "temporary_folder.hpp"

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
/// All entries, column by column.
Doubles entries(const Eigen::MatrixXd& x) { return {x.data(), x.data() + x.size()}; }
/// A 2 × 2 diagonal.
Eigen::MatrixXd diagonal(double first, double second) {
  Eigen::MatrixXd r = Eigen::MatrixXd::Zero(2, 2);
  r(0, 0) = first;
  r(1, 1) = second;
  return r;
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
  learned.maps = {diagonal(2, 1), diagonal(-1, 5)};  // (−2, 5) − (1, 1)
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
  // F_{u⊴e} = Q_e R_u has the spectrum of identity maps; with weights, the spectrum of a weighted graph.
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
  const Matrices flat(static_cast<std::size_t>(graph.arc_count()), diagonal(0, 3));
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
    Eigen::MatrixXd in = Eigen::MatrixXd::Zero(5, wide ? 8 : 3);  // more columns than rows, or fewer
    std::copy_n(x.data(), x.size(), in.data());
    const explore::Projection p = explore::principal_components(in);
    CHECK(std::abs(p.share[0] - 32.0 / 34) <= 16 * eps);
    CHECK(std::abs(p.share[1] - 2.0 / 34) <= 16 * eps);
    CHECK(std::abs(std::abs(p.points(0, 0)) - 4) <= 64 * eps);
    CHECK(std::abs(p.points(0, 0) + p.points(1, 0)) <= 64 * eps);
    CHECK(std::abs(std::abs(p.points(3, 1)) - 1) <= 64 * eps);
    CHECK(std::abs(p.points(4, 0)) <= 64 * eps);
  }
  // Signs follow the layer before.
  const auto layers = explore::project_layers({x, Eigen::MatrixXd(-x)});
  CHECK(distance(entries(layers[0].points), entries(layers[1].points)) <= 64 * eps);
  const explore::Projection constant = explore::principal_components(Eigen::MatrixXd::Ones(3, 1));
  CHECK(entries(constant.points) == Doubles(6, 0.0));
  CHECK(constant.share[0] == 0);
}

TEST_CASE("colours reach from the 5 % to the 95 % quantile") {
  Doubles values;
  for (int i = 0; i <= 40; ++i) values.push_back((7 * i) % 41);  // 0 to 40, mixed
  CHECK(explore::detail::colour_range(values) == std::pair(2.0, 38.0));
  values[static_cast<std::size_t>(3)] = 1e9;
  CHECK(explore::detail::colour_range(values).second < 41);
  // A range of its own where all values are the same.
  CHECK(explore::detail::colour_range({0.5}) == std::pair(0.5, 0.5 + 5e-4));
  CHECK(explore::detail::colour_range({0, 0}).second > 0);
}

TEST_CASE("a picture gets its dark scheme behind the first tag") {
  CHECK(programs::with_dark_scheme("<?xml?><svg a='b'><g/></svg>") ==
        std::string("<?xml?><svg a='b'>\n") + programs::dark_scheme + "<g/></svg>");
  CHECK_THROWS_WITH_AS(programs::with_dark_scheme("no picture"), "the picture is not an SVG file",
                       std::runtime_error);
  CHECK_THROWS_AS(programs::with_dark_scheme("<svg"), std::runtime_error);
}

TEST_CASE("histogram, by hand") {
  CHECK(distance(explore::histogram({0, 0.4, 1, 2}, 0, 2, 4), {0.5, 0, 0.25, 0.25}) == 0);
}

TEST_CASE("keys name classes: numbers are said to be classes, long names are shortened, quotes are gnuplot's") {
  const std::vector<std::string> names = {"tree",
                                          "7",
                                          "",
                                          "it's",
                                          "a\tb\n",
                                          "eighteen letters !",
                                          "eighteen letters !!",
                                          "\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9"
                                          "\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9"};
  const auto title = [&](std::int32_t c) { return explore::detail::class_title(names, c); };
  CHECK(title(0) == "tree");
  CHECK(title(1) == "class 7");
  CHECK(title(2) == "class 2");
  CHECK(title(4) == "a b ");
  CHECK(title(5) == names[5]);
  CHECK(title(6) == names[5] + "\u2026");
  CHECK(title(7) == names[7]);
  CHECK(title(8) == "class 8");
  CHECK(explore::detail::class_title({}, 0) == "class 0");
  CHECK(explore::detail::quoted(title(3)) == "'it''s'");
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
  CHECK(entries(at) == entries(explore::layout(graph)));
  double sum[2] = {0, 0}, squares[2] = {0, 0}, middle[2][2] = {{0, 0}, {0, 0}};
  for (Index u = 0; u < 13; ++u) {
    for (Index j = 0; j < 2; ++j) {
      sum[j] += at(u, j);
      squares[j] += at(u, j) * at(u, j);
      if (u < 12) middle[u / 6][j] += at(u, j) / 6;
    }
  }
  CHECK(std::hypot(sum[0], sum[1]) <= 64 * eps);
  CHECK(squares[0] > squares[1]);
  double within = 0, between = 1e9;
  for (Index u = 0; u < 12; ++u) {
    for (Index v = u + 1; v < 12; ++v) {
      const double length = std::hypot(at(u, 0) - at(v, 0), at(u, 1) - at(v, 1));
      CHECK(length > 0.01);
      if (u / 6 == v / 6) within = std::max(within, length);
      if (u / 6 != v / 6) between = std::min(between, length);
    }
  }
  CHECK(within < 3 * between);
  CHECK(std::hypot(middle[0][0] - middle[1][0], middle[0][1] - middle[1][1]) > within);
  CHECK(entries(explore::layout(Graph(1, {}))) == Doubles{0, 0});
  const Doubles two = entries(explore::layout(Graph(2, {})));
  CHECK(std::all_of(two.begin(), two.end(), [](double x) { return std::isfinite(x); }));
}

TEST_CASE("files are read whole, or refused with the array's name") {
  const test::TemporaryFolder folder;
  const Edge edge[] = {{0, 1}};
  const sheafnn::Dataset data{"pair", Graph(2, edge), {}, {1, -1}, 2, {}};
  const auto read = [&](Index layers, Index map_size, double entropy) {
    sheafnn::io::NpzWriter writer;
    const Doubles ones(100, 1.0), two = {2}, ends = {0, 1}, diagonals = {1, 2, 3, 4},
                                  probabilities = {0.3, 0.7, 0.6, 0.4}, sigma = {1, 3, 5, 6};
    const auto numbers = [](const Doubles& from, Index count) {
      return std::span(from).first(static_cast<std::size_t>(count));
    };
    writer.add("family", "diagonal");
    writer.add("model", "bsnn");
    writer.add<double>("stalk_dimension", {}, two);
    writer.add<double>("node_count", {}, two);
    writer.add<double>("edges", {1, 2}, ends);
    writer.add<double>("maps", {2, map_size}, numbers(diagonals, 2 * map_size));
    writer.add<double>("edge_weights", {1}, numbers(ones, 1));
    writer.add<double>("sigma", {2, 2}, sigma);
    writer.add<double>("layer_embeddings", {layers, 2, 3}, numbers(ones, layers * 6));
    writer.add<double>("probabilities", {2, 2}, probabilities);
    writer.add<double>("entropy", {2}, Doubles{entropy, 0});
    writer.add<double>("mutual_information", {2}, numbers(ones, 2));
    writer.write(folder / "learned.npz");
    return explore::read_learned(sheafnn::io::NpzArchive(folder / "learned.npz"), data);
  };
  const explore::Learned learned = read(3, 2, 0.5);
  CHECK(entries(learned.maps[1]) == Doubles{3, 0, 0, 4});
  CHECK(learned.spread.name == "sigma");
  CHECK(learned.spread.values == Doubles{2, 5.5});
  CHECK(learned.layers.size() == 3);
  CHECK(learned.predicted == std::vector<std::int32_t>{1, 0});
  CHECK(learned.labels == data.labels);
  const auto refused = [&](Index layers, Index map_size, double entropy) {
    try {
      (void)read(layers, map_size, entropy);
    } catch (const std::runtime_error& error) {
      return std::string(error.what()).substr((folder / "learned.npz").string().size());
    }
    return std::string("not refused");
  };
  CHECK(refused(0, 2, 0.5) == ": layer_embeddings: has shape (0, 2, 3); expected (any, 2, any)");
  CHECK(refused(3, 1, 0.5) == ": maps: has shape (2, 1); expected (2, 2)");
  CHECK(refused(3, 2, std::nan("")) == ": entropy: holds nan; all numbers must be finite");
}

TEST_CASE("files of node maps have scales in the place of maps") {
  const test::TemporaryFolder folder;
  const Edge edge[] = {{0, 1}};
  const sheafnn::Dataset data{"pair", Graph(2, edge), {}, {1, 0}, 2, {}};
  const auto read = [&](const Doubles& speaking) {
    sheafnn::io::NpzWriter writer;
    const Doubles two = {2}, ends = {0, 1}, listening = {0.5, 3}, zeros(12, 0.0), half(4, 0.5);
    writer.add("family", "conformal");
    writer.add("model", "bcsnn");
    writer.add<double>("stalk_dimension", {}, two);
    writer.add<double>("node_count", {}, two);
    writer.add<double>("edges", {1, 2}, ends);
    writer.add<double>("out_scales", {2}, listening);
    writer.add<double>("in_scales", {static_cast<Index>(speaking.size())}, speaking);
    writer.add<double>("layer_embeddings", {2, 2, 3}, zeros);
    writer.add<double>("probabilities", {2, 2}, half);
    for (const char* name : {"entropy", "mutual_information"}) writer.add<double>(name, {2}, ends);
    writer.write(folder / "learned.npz");
    return explore::read_learned(sheafnn::io::NpzArchive(folder / "learned.npz"), data);
  };
  const explore::Learned learned = read({1, 2});
  CHECK(learned.cooperative());
  CHECK(learned.scaled());
  CHECK(learned.bayesian());
  CHECK(learned.maps.empty());
  CHECK(learned.listening == Doubles{0.5, 3});
  CHECK(learned.speaking == Doubles{1, 2});
  CHECK_THROWS_AS((void)read({1, 2, 3}), std::runtime_error);
  CHECK_THROWS_AS((void)read({1, 0}), std::runtime_error);
}

TEST_CASE("texts and numbers are joined") {
  CHECK(explore::joined({"a ", 1, std::string(" b "), 0.5, " ", 7ul, -3l, 1e-7}) == "a 1 b 0.5 7-31e-07");
  CHECK(explore::joined({}) == "");
}

}  // namespace test_explore
