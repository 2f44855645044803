// Harmonic spaces of sheaves whose global sections are known.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "shared_rotations.hpp"
#include "sheaf_checks.hpp"
#include "sheafnn/sheaf/diffusion.hpp"
#include "sheafnn/sheaf/harmonic.hpp"

namespace test_sheaf_harmonic {
using namespace sheaf_checks;

namespace {

constexpr double epsilon = std::numeric_limits<double>::epsilon();

template <int D>
SquareMatrix<double, D> rotation(std::uint64_t seed, Index id) {
  return haar_rotation<double, D>(Stream{.seed = seed}, static_cast<std::uint32_t>(id));
}

// Rotations F_{u⊴e} = R_uᵀ of a frame per node: a flat bundle, whose sections are x_u = R_u h.
template <class Family>
CellularSheaf<Family> flat_bundle(const Graph& graph, std::uint64_t seed) {
  CellularSheaf<Family> sheaf(graph);
  for (Index a = 0; a < graph.arc_count(); ++a) {
    sheaf.set_map(a, rotation<Family::stalk_dimension>(seed, graph.source(a)).transpose());
  }
  return sheaf;
}

// A basis is orthonormal and in the kernel: the residual of an eigenvalue 0 is at most 64 N ε ‖Δ‖.
template <class Family>
void check_space(const SheafLaplacian<Family>& laplacian, Index dimension) {
  INFO(Family::name, " ", Family::stalk_dimension, " ", to_string(laplacian.normalisation()));
  const HarmonicSpace<double> space = harmonic_space(laplacian);
  REQUIRE(space.dimension() == dimension);
  REQUIRE(space.rows() == laplacian.rows());
  const Dense basis = space.basis();
  const Index rows = laplacian.rows();
  const double bound = 64 * static_cast<double>(rows) * epsilon;
  CHECK(within(product(basis.transpose(), basis), Dense::Identity(dimension, dimension),
               Dense::Constant(dimension, dimension, bound)));
  CHECK(within(laplacian.apply(basis), Dense::Zero(rows, dimension),
               Dense::Constant(rows, dimension, bound * laplacian.spectral_bound())));
  const Cochain<double> x = random_cochain(rows, 2, 71);
  CHECK(within(space.project(x), product(basis, product(basis.transpose(), x)),
               Dense::Constant(rows, 2, bound * (1 + x.norm()))));
}

// The same maps as general ones, whose harmonic space is found densely instead of by holonomy.
template <int D>
CellularSheaf<GeneralLinear<D>> as_general(const CellularSheaf<SpecialOrthogonal<D>>& sheaf) {
  CellularSheaf<GeneralLinear<D>> r(sheaf.shared_graph());
  for (Index a = 0; a < sheaf.graph().arc_count(); ++a) r.set_map(a, sheaf.restriction_map(a));
  return r;
}

}  // namespace

TEST_CASE("trivial sheaves have D harmonic dimensions per component") {
  // Two components and an isolated node.
  const Graph graph(8, std::vector<Edge>{{0, 1}, {1, 2}, {2, 0}, {3, 4}, {4, 5}, {5, 6}});
  for (const Normalisation n : all_normalisations) {
    check_space(SheafLaplacian<Identity<3>>(CellularSheaf<Identity<3>>(graph), n), 9);
    check_space(SheafLaplacian<Diagonal<2>>(CellularSheaf<Diagonal<2>>(graph), n), 6);
    check_space(SheafLaplacian<SpecialOrthogonal<2>>(CellularSheaf<SpecialOrthogonal<2>>(graph), n), 6);
    check_space(SheafLaplacian<GeneralLinear<2>>(CellularSheaf<GeneralLinear<2>>(graph), n), 6);
  }
  check_space(SheafLaplacian<Identity<3>>(CellularSheaf<Identity<3>>(Graph(0, {}))), 0);
}

TEST_CASE("flat bundles have D harmonic dimensions, and a change of gauge rotates them") {
  const Graph graph = cycle_graph(12, 6);
  for (const Normalisation n : all_normalisations) {
    CellularSheaf<SpecialOrthogonal<4>> sheaf = flat_bundle<SpecialOrthogonal<4>>(graph, 72);
    for (Index e = 0; e < graph.edge_count(); ++e) sheaf.set_edge_weight(e, 0.25 + static_cast<double>(e % 4));
    const SheafLaplacian<SpecialOrthogonal<4>> laplacian(sheaf, n);
    check_space(laplacian, 4);
    check_space(SheafLaplacian<GeneralLinear<4>>(as_general(sheaf), n), 4);
    // The projection of the bundle is the gauge transform of the trivial sheaf's with the same weights.
    CellularSheaf<SpecialOrthogonal<4>> trivial(graph);
    for (Index e = 0; e < graph.edge_count(); ++e) trivial.set_edge_weight(e, sheaf.edge_weight(e));
    const Cochain<double> x = random_cochain(48, 3, 73);
    Cochain<double> turned = x;
    for (Index u = 0; u < 12; ++u) turned.middleRows(4 * u, 4) = rotation<4>(72, u) * x.middleRows(4 * u, 4);
    Cochain<double> expected = diffusion_limit(SheafLaplacian<SpecialOrthogonal<4>>(trivial, n), x);
    for (Index u = 0; u < 12; ++u) {
      expected.middleRows(4 * u, 4) = (rotation<4>(72, u) * expected.middleRows(4 * u, 4)).eval();
    }
    // Rounding of at most 12 transports of 4 terms, for both.
    CHECK((diffusion_limit(laplacian, turned) - expected).cwiseAbs().maxCoeff() <= 256 * epsilon * x.norm());
  }
}

TEST_CASE("the harmonic space is what the holonomy fixes") {
  const Graph cycle = cycle_graph(9);
  for (const Normalisation n : all_normalisations) {
    // A generic rotation of R³ fixes its axis, one of R⁴ nothing; two generic ones of R³ have no common axis.
    const auto three = random_sheaf<SpecialOrthogonal<3>>(cycle, Stream{.seed = 74});
    check_space(SheafLaplacian<SpecialOrthogonal<3>>(three, n), 1);
    check_space(SheafLaplacian<GeneralLinear<3>>(as_general(three), n), 1);
    const auto four = random_sheaf<SpecialOrthogonal<4>>(cycle, Stream{.seed = 75});
    check_space(SheafLaplacian<SpecialOrthogonal<4>>(four, n), 0);
    const auto chord = random_sheaf<SpecialOrthogonal<3>>(cycle_graph(9, 1), Stream{.seed = 77});
    check_space(SheafLaplacian<SpecialOrthogonal<3>>(chord, n), 0);
    // Trees have no holonomy.
    const Graph tree(5, std::vector<Edge>{{0, 1}, {0, 2}, {2, 3}, {2, 4}});
    check_space(SheafLaplacian<SpecialOrthogonal<3>>(random_sheaf<SpecialOrthogonal<3>>(tree, Stream{.seed = 78}),
                                                     n),
                3);
  }
  // Both ways give the same projection.
  const auto sheaf = random_sheaf<SpecialOrthogonal<3>>(cycle, Stream{.seed = 74});
  const Cochain<double> x = random_cochain(27, 2, 79);
  const Cochain<double> by_holonomy = diffusion_limit(SheafLaplacian<SpecialOrthogonal<3>>(sheaf), x);
  const Cochain<double> dense = diffusion_limit(SheafLaplacian<GeneralLinear<3>>(as_general(sheaf)), x);
  // The eigenvectors of an eigenvalue with gap g move by ε ‖Δ‖ N / g; g > 0.01 for this cycle.
  CHECK((by_holonomy - dense).cwiseAbs().maxCoeff() <= 27 * epsilon * 4 / 0.01);
}

TEST_CASE("diagonal maps with zeros and a sign") {
  // Coordinate 0: signs around the triangle multiply to −1, no section; coordinate 1: a zero map cuts the cycle.
  CellularSheaf<Diagonal<2>> sheaf(Graph(3, std::vector<Edge>{{0, 1}, {1, 2}, {0, 2}}));
  check_space(SheafLaplacian<Diagonal<2>>(sheaf), 2);
  sheaf.set_map(0, 0, {-1.0, 1.0});
  check_space(SheafLaplacian<Diagonal<2>>(sheaf), 1);
  sheaf.set_map(1, 0, {1.0, 0.0});
  check_space(SheafLaplacian<Diagonal<2>>(sheaf), 0);
  sheaf.set_map(0, 0, {-1.0, 0.0});
  check_space(SheafLaplacian<Diagonal<2>>(sheaf), 1);
}

TEST_CASE("nearly singular maps leave the harmonic dimension of a path: its edges fix all nodes but one") {
  const Graph path(3, std::vector<Edge>{{0, 1}, {1, 2}});
  for (const std::uint64_t seed : {14, 112, 324, 412, 1287, 2294}) {  // singular values down to 3e-5
    INFO("seed ", seed);
    const auto sheaf = random_sheaf<GeneralLinear<4>>(path, Stream{.seed = seed});
    for (const Normalisation normalisation : {Normalisation::none, Normalisation::block, Normalisation::augmented})
      check_space(SheafLaplacian(sheaf, normalisation), 4);
  }
}

TEST_CASE("nodes in no part of a harmonic space are projected to 0") {
  // Node 1 of three; on nodes 0 and 2, the constants.
  const Cochain<double> ones = Cochain<double>::Constant(2, 1, std::sqrt(0.5));
  const HarmonicSpace<double> space(3, 1, {{{0, 2}, ones}});
  Cochain<double> x(3, 2), expected(3, 2);
  x << 1, 2, 3, 4, 5, 8;
  expected << 3, 5, 0, 0, 3, 5;
  { const Cochain<double> used = Cochain<double>::Constant(3, 2, 7); }  // leaves no zeros in freed memory
  CHECK((space.project(x) - expected).cwiseAbs().maxCoeff() <= 16 * epsilon);
}

TEST_CASE("sizes and arguments of the harmonic space") {
  const Graph cycle = cycle_graph(6000);
  const CellularSheaf<SpecialOrthogonal<3>> rotations = flat_bundle<SpecialOrthogonal<3>>(cycle, 80);
  const SheafLaplacian<SpecialOrthogonal<3>> large(rotations, Normalisation::augmented);
  CHECK(harmonic_space(large).dimension() == 3);
  const SheafLaplacian<Diagonal<1>> dense{CellularSheaf<Diagonal<1>>(cycle)};
  CHECK_THROWS_WITH_AS(
      (void)harmonic_space(dense),
      "rows of a connected component: 6000 is not allowed; the dense decomposition takes at most 4096 "
      "(HarmonicOptions::max_rows)",
      std::invalid_argument);
  CHECK_THROWS_AS((void)harmonic_space(large, {.tolerance = -1}), std::invalid_argument);
  const Cochain<double> bad = Cochain<double>::Constant(18000, 1, std::nan(""));
  CHECK_THROWS_AS((void)diffusion_limit(large, bad), std::invalid_argument);
}

}  // namespace test_sheaf_harmonic
