// Approximate sections and their rounding to rotations; harmonic extensions.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "refusal.hpp"
#include "shared_rotations.hpp"
#include "sheaf_checks.hpp"
#include "sheafnn/rotation/cayley_distribution.hpp"
#include "sheafnn/sheaf/approximate_sections.hpp"
#include "sheafnn/sheaf/coboundary.hpp"
#include "sheafnn/sheaf/harmonic_extension.hpp"

namespace test_approximate_sections {
using namespace sheaf_checks;

namespace {

constexpr double epsilon = std::numeric_limits<double>::epsilon();
using test::message_of;
using Rotation = SquareMatrix<double, 3>;
using Sheaf = CellularSheaf<SpecialOrthogonal<3>>;

/// True rotation of a node.
Rotation truth(Index node) {
  return haar_rotation<double, 3>(Stream{.seed = 90}, static_cast<std::uint32_t>(node));
}

/// F_{u⊴e} = N truth(u)ᵀ with noise N, of concentration 1 (none) or below; weights from ½ to 1½.
Sheaf noisy_sheaf(const Graph& graph, double kappa) {
  Sheaf sheaf(graph);
  for (Index a = 0; a < graph.arc_count(); ++a) {
    Rotation noise = Rotation::Identity();
    if (kappa < 1) {
      noise = sample(CayleyDistribution<3>(noise, kappa), Stream{.seed = 91}, static_cast<std::uint32_t>(a));
    }
    sheaf.set_map(a, noise * truth(graph.source(a)).transpose());
  }
  for (Index e = 0; e < graph.edge_count(); ++e) sheaf.set_edge_weight(e, 0.5 + static_cast<double>(e % 3) / 2);
  return sheaf;
}

/// Σ_e ‖F_{v⊴e} x_v − F_{u⊴e} x_u‖², by the coboundary.
double squared_coboundary(const Sheaf& sheaf, const Cochain<double>& x) {
  return coboundary(sheaf, x).squaredNorm();
}

}  // namespace

TEST_CASE("without noise: D sections, and the rotations of the nodes up to one") {
  const Graph graph = cycle_graph(40, 12);
  const Sheaf sheaf = noisy_sheaf(graph, 1);
  for (const Normalisation n : {Normalisation::none, Normalisation::augmented}) {
    const SheafLaplacian laplacian(sheaf, n);
    const double rounding = 4096 * epsilon * laplacian.spectral_bound();
    const auto exact = approximate_sections_within(laplacian, rounding);
    REQUIRE(exact.count() == 3);
    CHECK(approximate_sections(laplacian, 4).disagreement(3) > 1e-3);
    for (Index j = 0; j < 3; ++j) {
      const Cochain<double> section = exact.section(j);
      REQUIRE(section.rows() == 40);
      for (Index u = 0; u < 40; ++u) {  // x_u = truth(u) h with the same h everywhere
        CHECK(
            (truth(u).transpose() * section.row(u).transpose() - truth(0).transpose() * section.row(0).transpose())
                .norm() < 1e-10);
      }
    }
    const auto nearest = nearest_section(laplacian);
    CHECK(std::abs(nearest.disagreement) < 1e-10);
    const Rotation global = truth(0).transpose() * nearest.rotations.topRows(3);
    CHECK(global.determinant() > 0);
    for (Index u = 0; u < 40; ++u) {
      CHECK((nearest.rotations.middleRows(3 * u, 3) - truth(u) * global).cwiseAbs().maxCoeff() < 1e-10);
    }
  }
}

TEST_CASE("with noise: Rayleigh quotients, and a spectral bound on the disagreement of any rotations") {
  const Graph graph = cycle_graph(60, 40);
  for (const double kappa : {0.99, 0.8, 0.3}) {
    CAPTURE(kappa);
    const Sheaf sheaf = noisy_sheaf(graph, kappa);
    Cochain<double> true_rotations(180, 3), random_rotations(180, 3);
    for (Index u = 0; u < 60; ++u) {
      true_rotations.middleRows(3 * u, 3) = truth(u);
      random_rotations.middleRows(3 * u, 3) = truth(u + 1000);
    }
    for (const Normalisation n : {Normalisation::none, Normalisation::block}) {
      const SheafLaplacian laplacian(sheaf, n);
      const auto sections = approximate_sections(laplacian, 5);
      CHECK(approximate_sections_within(laplacian, sections.disagreement(4) + 1e-9).count() >= 5);
      CHECK(approximate_sections_within(laplacian, 0.5 * sections.disagreement(0)).count() == 0);
      const double rounding = 4096 * epsilon * laplacian.spectral_bound();
      for (Index j = 0; j < 5; ++j) {
        CHECK(std::abs(squared_coboundary(sheaf, sections.sections.col(j)) - sections.disagreement(j)) <=
              rounding);
      }
      const auto nearest = nearest_section(laplacian);
      for (Index u = 0; u < 60; ++u)
        SpecialOrthogonal<3>::validate<double>(u, nearest.rotations.middleRows(3 * u, 3));
      const double size = 64 * rounding * nearest.rotations.squaredNorm();
      CHECK(std::abs(nearest.disagreement - squared_coboundary(sheaf, nearest.rotations)) <= size);
      CHECK(std::abs(disagreement(laplacian, true_rotations) - squared_coboundary(sheaf, true_rotations)) <= size);
      CHECK(nearest.bound > 0);
      for (const Cochain<double>& x : {nearest.rotations, true_rotations, random_rotations}) {
        CHECK(nearest.bound <= squared_coboundary(sheaf, x));
      }
    }
  }
}

TEST_CASE("the rounded section disagrees at most (1 + 2 r √(‖L‖ / λ₂))² times the bound") {
  const Graph graph = cycle_graph(60, 40);
  for (const double kappa : {0.999, 0.97}) {
    const Sheaf sheaf = noisy_sheaf(graph, kappa);
    const SheafLaplacian laplacian(sheaf);
    const auto nearest = nearest_section(laplacian);
    // Blocks of the eigenvectors, with mean square I; all of one orientation, which the theorem asks for.
    const Cochain<double> blocks = std::sqrt(60.0) * smallest_eigenpairs(laplacian, 3).vectors;
    double largest = 0;
    int reflections = 0;
    for (Index u = 0; u < 60; ++u) {
      const Rotation block = blocks.middleRows(3 * u, 3);
      largest = std::max(largest, std::sqrt(spectrum(block.transpose() * block)(2)));
      reflections += block.determinant() < 0;
    }
    REQUIRE(reflections % 60 == 0);
    // The Laplacian of the graph with weights w_e²: the Laplacian of scalar maps w_e.
    CellularSheaf<Diagonal<1>> scalar(graph);
    for (Index a = 0; a < graph.arc_count(); ++a) {
      scalar.set_map(a, Eigen::Matrix<double, 1, 1>::Constant(sheaf.edge_weight(graph.edge_of(a))));
    }
    const double connectivity = spectrum(SheafLaplacian(scalar).matrix())(1);
    const double norm = spectrum(laplacian.matrix())(179);
    CHECK(std::sqrt(nearest.disagreement) <=
          std::sqrt(nearest.bound) * (1 + 2 * largest * std::sqrt(norm / connectivity)));
  }
}

TEST_CASE("sections of graphs that are not connected, and tolerances") {
  const Sheaf sheaf(Graph(5, std::vector<Edge>{{0, 1}, {1, 2}, {3, 4}}));
  const SheafLaplacian laplacian(sheaf);
  CHECK(approximate_sections_within(laplacian, 1e-12).count() == 6);
  CHECK(approximate_sections_within(laplacian, 10).count() == 15);
  CHECK(message_of([&] { (void)nearest_section(laplacian); }).starts_with("connected components of the graph: 2"));
  CHECK(message_of([&] { (void)approximate_sections_within(laplacian, -1); }).starts_with("tolerance: -1"));
  CHECK(nearest_section(SheafLaplacian(Sheaf(Graph(1, {})))).disagreement == 0);
}

TEST_CASE("harmonic extension: a dense solve, the least disagreement, and what cannot be determined") {
  const Graph graph = cycle_graph(40, 12);
  const Sheaf sheaf = noisy_sheaf(graph, 0.8);
  const std::vector<std::int32_t> fixed = {7, 3, 22};
  const Cochain<double> values = random_cochain(9, 2, 92);
  for (const Normalisation n : {Normalisation::none, Normalisation::augmented}) {
    const SheafLaplacian laplacian(sheaf, n);
    const Cochain<double> x = harmonic_extension(laplacian, fixed, values);
    std::vector<char> is_fixed(120, 0);
    for (std::size_t i = 0; i < fixed.size(); ++i) {
      CHECK(x.middleRows(3 * fixed[i], 3) == values.middleRows(3 * static_cast<Index>(i), 3));
      for (int j = 0; j < 3; ++j) is_fixed[static_cast<std::size_t>(3 * fixed[i] + j)] = 1;
    }
    // The same equations, with rows of I for what is fixed.
    Dense system = laplacian.matrix();
    Dense right = Dense::Zero(120, 2);
    for (Index i = 0; i < 120; ++i) {
      if (!is_fixed[static_cast<std::size_t>(i)]) continue;
      system.row(i).setZero();
      system(i, i) = 1;
      right.row(i) = x.row(i);
    }
    CHECK((x - solve(system, right)).cwiseAbs().maxCoeff() < 1e-11);
    const Cochain<double> image = laplacian.apply(x);
    for (Index i = 0; i < 120; ++i) {
      if (!is_fixed[static_cast<std::size_t>(i)]) CHECK(image.row(i).norm() < 1e-12);
    }
  }
  // A path that carries a value to the other end, and between two fixed ends a linear one.
  const SheafLaplacian path(
      CellularSheaf<Identity<1>>(Graph(5, std::vector<Edge>{{0, 1}, {1, 2}, {2, 3}, {3, 4}})));
  const std::vector<std::int32_t> ends = {0, 4};
  Cochain<double> two(2, 1);
  two << 1, 5;
  for (Index u = 0; u < 5; ++u) {
    CHECK(std::abs(harmonic_extension(path, ends, two)(u, 0) - static_cast<double>(u + 1)) < 1e-13);
  }
  const std::vector<std::int32_t> all = {4, 3, 2, 1, 0};
  CHECK(harmonic_extension(path, all, random_cochain(5, 1, 93)).row(4) == random_cochain(5, 1, 93).row(0));
  // Noisy rotations have no section: nothing needs to be fixed, and the extension is 0.
  CHECK(harmonic_extension(SheafLaplacian(sheaf), {}, Cochain<double>(0, 1)) == Cochain<double>::Zero(120, 1));

  const SheafLaplacian apart(CellularSheaf<Identity<1>>(Graph(5, std::vector<Edge>{{0, 1}, {2, 3}, {3, 4}})));
  const Cochain<double> one = Cochain<double>::Ones(1, 1);
  const auto refusal = [&](const std::vector<std::int32_t>& nodes, const Cochain<double>& x) {
    return message_of([&] { (void)harmonic_extension(apart, nodes, x); });
  };
  CHECK(refusal({0}, one).starts_with("fixed_nodes: 1 nodes is not allowed; they do not determine the extension"));
  CHECK(refusal({5}, one) == "fixed_nodes[0]: 5 is not allowed; must be between 0 and 4");
  CHECK(refusal({1, 1}, two) == "fixed_nodes[1]: 1 is not allowed; each node is named at most once");
  CHECK(refusal({1, 2}, one) == "rows of values: 1 is not allowed; must be 1 per fixed node, 2");
  CHECK(refusal({1}, one * std::nan("")).starts_with("values(0, 0): nan is not allowed"));
  CHECK(refusal({1, 4}, two) == "nothing was thrown");
}

TEST_CASE("harmonic extension: a graph without nodes, and a factor that is too large") {
  const SheafLaplacian nothing(CellularSheaf<Identity<2>>(Graph(0, {})));
  const Cochain<double> x = harmonic_extension(nothing, {}, Cochain<double>(0, 3));
  CHECK(x.rows() == 0);
  CHECK(x.cols() == 3);
  // The factor of a complete graph is full: 1200² / 2 dense blocks of 64² numbers.
  std::vector<Edge> pairs;
  for (std::int32_t u = 0; u < 1200; ++u) {
    for (std::int32_t v = 0; v < u; ++v) pairs.push_back({u, v});
  }
  const Graph complete(1200, pairs);
  const std::vector<char> free(1200, 0);
  const auto extend = [&](int dimension, bool dense_blocks) {
    Eigen::SparseMatrix<double> matrix(1200 * dimension, 1200 * dimension);
    matrix.setIdentity();
    detail::VectorBlock<double> values(1200 * dimension, 1);
    return message_of([&] { detail::extend_to_free_nodes(complete, matrix, dense_blocks, free, values, 0.5); });
  };
  CHECK(extend(64, true) ==
        "fixed_nodes: 0 nodes is not allowed; the factor for the free nodes has more than 2147483647 entries; fix "
        "more nodes");
  CHECK(extend(64, false) == "nothing was thrown");
  CHECK(extend(2, true) == "nothing was thrown");
}

TEST_CASE("a star, of which the shifted inverse has few distinct eigenvalues") {
  std::vector<Edge> edges;
  for (std::int32_t leaf = 1; leaf < 100; ++leaf) edges.push_back({0, leaf});
  Sheaf sheaf = noisy_sheaf(Graph(100, edges), 1);
  for (Index e = 0; e < 99; ++e) sheaf.set_edge_weight(e, 1);
  const SheafLaplacian laplacian(sheaf);
  const EigenpairOptions options{.method = EigenpairMethod::shift_invert};
  const double rounding = 4096 * epsilon * laplacian.spectral_bound();
  CHECK(approximate_sections_within(laplacian, rounding, options).count() == 3);
  CHECK(std::abs(nearest_section(laplacian, options).disagreement) <= 64 * 300 * rounding);
}

TEST_CASE("shifted inverse and dense decomposition agree, repeated eigenvalues included") {
  // Rotations without noise: the spectrum of the weighted graph, every value three times.
  const SheafLaplacian laplacian(noisy_sheaf(cycle_graph(150, 20), 1));
  const auto dense = smallest_eigenpairs(laplacian, 14, {.method = EigenpairMethod::dense});
  const auto inverse = smallest_eigenpairs(laplacian, 14, {.method = EigenpairMethod::shift_invert});
  CHECK((dense.values - inverse.values).cwiseAbs().maxCoeff() < 1e-10);
  CHECK(dense.values(11) - dense.values(9) < 1e-10);
  CHECK(dense.values(12) - dense.values(11) > 1e-4);
  // Between values of different size, vectors of both span the same space.
  const Dense a = dense.vectors.leftCols(12), b = inverse.vectors.leftCols(12);
  CHECK(within(product(a, product(a.transpose(), b)), b, Dense::Constant(450, 12, 1e-10)));
}

TEST_CASE("harmonic extension on a large graph in single precision") {
  constexpr std::int32_t side = 300;
  std::vector<sheafnn::Edge> edges;
  for (std::int32_t i = 0; i < side; ++i) {
    for (std::int32_t j = 0; j < side; ++j) {
      if (j + 1 < side) edges.push_back({i * side + j, i * side + j + 1});
      if (i + 1 < side) edges.push_back({i * side + j, (i + 1) * side + j});
    }
  }
  const sheafnn::Graph grid(side * side, edges);
  std::vector<std::int32_t> fixed;
  for (std::int32_t u = 0; u < side * side; u += 10) fixed.push_back(u);
  const auto extension = [&]<class Scalar>(Scalar) {
    const SheafLaplacian<sheafnn::Identity<1>, Scalar> laplacian(CellularSheaf<sheafnn::Identity<1>, Scalar>(grid),
                                                                 sheafnn::Normalisation::none);
    Cochain<Scalar> values(static_cast<Index>(fixed.size()), 1);
    for (Index i = 0; i < values.rows(); ++i) values(i, 0) = static_cast<Scalar>(i % 7);
    return Cochain<double>(sheafnn::sheaf::harmonic_extension(laplacian, fixed, values).template cast<double>());
  };
  CHECK((extension(0.0F) - extension(0.0)).cwiseAbs().maxCoeff() <= 1e-6);
}

}  // namespace test_approximate_sections
