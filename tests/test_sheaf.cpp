// Cellular sheaves: addressing and checking maps; gauge changes, threads and single precision of their Laplacians.
#include <doctest/doctest.h>

#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "sheaf_checks.hpp"
#include "shared_rotations.hpp"
#include "sheafnn/sheaf/coboundary.hpp"
#include "sheafnn/sheaf/laplacian.hpp"

namespace test_sheaf {
using namespace sheaf_checks;

namespace {

constexpr double epsilon = std::numeric_limits<double>::epsilon();

// Δ after the node gauge F_a → F_a G_uᵀ is G Δ Gᵀ; an edge gauge F_a → O_e F_a changes nothing.
template <class Family>
void check_gauge() {
  constexpr int D = Family::stalk_dimension;
  const Graph graph = random_graph(8, 14, 5);
  const CellularSheaf<Family> sheaf = sized_sheaf<Family>(graph, 1, 6);
  CellularSheaf<Family> turned = sheaf, edge_turned = sheaf;
  Dense gauge = Dense::Zero(sheaf.node_dimension(), sheaf.node_dimension());
  for (Index u = 0; u < graph.node_count(); ++u) {
    const SquareMatrix<double, D> g = haar_rotation<double, D>(Stream{.seed = 7}, static_cast<std::uint32_t>(u));
    gauge.block(u * D, u * D, D, D) = g;
    for (Index a = graph.first_arc(u); a < graph.first_arc(u + 1); ++a) {
      const SquareMatrix<double, D> o =
          haar_rotation<double, D>(Stream{.seed = 8}, static_cast<std::uint32_t>(graph.edge_of(a)));
      turned.set_map(a, sheaf.map(a) * g.transpose());
      edge_turned.set_map(a, o * sheaf.map(a));
    }
  }
  for (const Normalisation n : all_normalisations) {
    INFO(Family::name, " ", D, " ", to_string(n));
    const Dense original = SheafLaplacian<Family>(sheaf, n).matrix();
    const Dense gauged = SheafLaplacian<Family>(turned, n).matrix();
    const Dense edge_gauged = SheafLaplacian<Family>(edge_turned, n).matrix();
    // Rounding of Δ: 32 D ε ‖Δ‖ times the condition of the degree blocks, below 1e3 for these maps.
    const double bound = 32 * D * epsilon * original.norm() * (n == Normalisation::block ? 1e3 : 10.0);
    const Dense limits = Dense::Constant(original.rows(), original.rows(), bound);
    CHECK(within(gauged, product(product(gauge, original), gauge.transpose()), limits));
    CHECK(within(edge_gauged, original, limits));
    CHECK(within(spectrum(gauged), spectrum(original), limits.col(0)));
  }
}

}  // namespace

TEST_CASE("orthogonal changes of the stalks leave the spectrum alone") {
  check_gauge<SpecialOrthogonal<2>>();
  check_gauge<SpecialOrthogonal<3>>();
  check_gauge<GeneralLinear<2>>();
  check_gauge<GeneralLinear<3>>();
}

TEST_CASE("the trivial sheaf gives the graph Laplacian times I") {
  const Graph graph = random_graph(10, 16, 9);
  Dense expected = Dense::Zero(30, 30), normalised = Dense::Zero(30, 30);
  for (Index u = 0; u < 10; ++u) {
    const double degree = static_cast<double>(graph.degree(u));
    expected.block(3 * u, 3 * u, 3, 3) = degree * Dense::Identity(3, 3);
    normalised.block(3 * u, 3 * u, 3, 3) = degree / (degree + 1) * Dense::Identity(3, 3);
    for (Index a = graph.first_arc(u); a < graph.first_arc(u + 1); ++a) {
      const Index v = graph.target(a);
      expected.block(3 * u, 3 * v, 3, 3) = -Dense::Identity(3, 3);
      normalised.block(3 * u, 3 * v, 3, 3) =
          -Dense::Identity(3, 3) / std::sqrt((degree + 1) * (static_cast<double>(graph.degree(v)) + 1));
    }
  }
  const auto check = [&]<class Family>(const CellularSheaf<Family>& sheaf) {
    CHECK((Dense(SheafLaplacian<Family>(sheaf).matrix()) == expected));
    const Dense augmented = SheafLaplacian<Family>(sheaf, Normalisation::augmented).matrix();
    CHECK((augmented - normalised).cwiseAbs().maxCoeff() <= 8 * epsilon);
  };
  check(CellularSheaf<Identity<3>>(graph));
  check(CellularSheaf<Diagonal<3>>(graph));
  check(CellularSheaf<SpecialOrthogonal<3>>(graph));
  check(CellularSheaf<GeneralLinear<3>>(graph));
}

TEST_CASE("products do not depend on the number of threads, and channels not on each other") {
  using Family = GeneralLinear<3>;
  const CellularSheaf<Family> sheaf = sized_sheaf<Family>(random_graph(700, 2500, 10), 1, 11);
  const SheafLaplacian<Family> laplacian(sheaf, Normalisation::augmented);
  const Cochain<double> x = random_cochain(laplacian.rows(), 5, 12);
  const Cochain<double> y = laplacian.apply(x), edges = coboundary(sheaf, x);
  for (const int threads : {2, 3, 8}) {
    CHECK((laplacian.apply(x, threads) == y));
    CHECK((coboundary(sheaf, x, threads) == edges));
    CHECK((coboundary_transpose(sheaf, edges, threads) == coboundary_transpose(sheaf, edges)));
  }
  const Eigen::VectorXd column = x.col(3);
  const double bound = 64 * epsilon * y.cwiseAbs().maxCoeff();  // at most 64 terms per entry
  CHECK((laplacian.apply(column) - y.col(3)).cwiseAbs().maxCoeff() <= bound);
  CHECK(laplacian.apply(Cochain<double>(laplacian.rows(), 0)).cols() == 0);
}

TEST_CASE("single precision agrees with double") {
  using Family = GeneralLinear<3>;
  const Graph graph = random_graph(20, 50, 13);
  const CellularSheaf<Family> sheaf = sized_sheaf<Family>(graph, 1, 14);
  CellularSheaf<Family, float> single(graph);
  for (Index a = 0; a < graph.arc_count(); ++a) single.set_map(a, sheaf.map(a).cast<float>());
  const Cochain<double> x = random_cochain(60, 4, 15);
  const Cochain<double> y = SheafLaplacian<Family>(sheaf, Normalisation::augmented).apply(x);
  const Cochain<float> z = SheafLaplacian<Family, float>(single, Normalisation::augmented).apply(x.cast<float>());
  CHECK((z.cast<double>() - y).cwiseAbs().maxCoeff() <= 256 * std::numeric_limits<float>::epsilon());
}

TEST_CASE("maps are addressed by arc or by node and edge") {
  const Graph graph(4, std::vector<Edge>{{0, 1}, {2, 1}, {2, 3}});
  CellularSheaf<Diagonal<2>> sheaf(graph);
  sheaf.set_map(2, 1, {3.0, 4.0});
  CHECK((sheaf.map(2, 1) == Column<double, 2>(3.0, 4.0)));
  CHECK((sheaf.map(sheaf.arc_of(2, 1)) == sheaf.map(2, 1)));
  CHECK((sheaf.map(1, 1) == Column<double, 2>(1.0, 1.0)));
  CHECK(graph.source(sheaf.arc_of(2, 1)) == 2);
  CHECK((sheaf.restriction_map(sheaf.arc_of(2, 1)) == Eigen::Matrix2d(Eigen::Vector2d(3, 4).asDiagonal())));
  // (δx)_e = F_{v⊴e} x_v − F_{u⊴e} x_u, u < v; edge 1 joins nodes 1 and 2.
  Cochain<double> x(8, 1);
  x << 1, 2, 3, 4, 5, 6, 7, 8;
  const Cochain<double> y = coboundary(sheaf, x);
  CHECK(y(2, 0) == 3 * 5 - 3);
  CHECK(y(3, 0) == 4 * 6 - 4);

  const std::vector<double> maps = {1, 2, 3, 4, 0, -1, 1, 0};
  const CellularSheaf<GeneralLinear<2>> general(Graph(2, std::vector<Edge>{{0, 1}}), maps);
  CHECK(general.map(0)(0, 1) == 2);  // row by row
  CHECK(general.map(1)(1, 0) == 1);
  const std::vector<double> rotations = {1, 0, 0, 1, 0, -1, 1, 0}, weights = {0.5};
  const CellularSheaf<SpecialOrthogonal<2>> weighted(Graph(2, std::vector<Edge>{{0, 1}}), rotations, weights);
  CHECK(weighted.restriction_map(1)(1, 0) == 0.5);
  const auto random = random_sheaf<GeneralLinear<2>>(graph, Stream{.seed = 1});
  CHECK((random.map(3) == random_map<GeneralLinear<2>>(Stream{.seed = 1}, 3)));
  CHECK((random.map(3) != random_map<GeneralLinear<2>>(Stream{.seed = 2}, 3)));
}

TEST_CASE("what is wrong with a sheaf is said clearly") {
  const Graph graph(3, std::vector<Edge>{{0, 1}, {1, 2}});
  const auto message = [](const auto& action) -> std::string {
    try {
      action();
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "nothing thrown";
  };
  CellularSheaf<SpecialOrthogonal<2>> sheaf(graph);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(message([&] { sheaf.set_map(4, Eigen::Matrix2d::Identity()); }) ==
        "arc: 4 is not allowed; must be between 0 and 3");
  CHECK(message([&] { sheaf.set_map(2, 0, Eigen::Matrix2d::Identity()); }) ==
        "node: 2 is not allowed; edge 0 joins nodes 0 and 1");
  CHECK(message([&] { (void)sheaf.arc_of(0, 2); }) == "edge: 2 is not allowed; must be between 0 and 1");
  CHECK(message([&] { sheaf.set_map(1, Eigen::Matrix2d::Constant(nan)); }) ==
        "maps[1](0, 0): nan is not allowed; entries must be finite");
  CHECK(message([&] {
          sheaf.set_map(1, 1.001 * Eigen::Matrix2d::Identity());
        }).find("must be orthogonal within") != std::string::npos);
  CHECK_NOTHROW(sheaf.set_map(1, (1 + 1e-9) * Eigen::Matrix2d::Identity()));
  CHECK(message([&] { sheaf.set_map(1, Eigen::Matrix2d(Eigen::Vector2d(1, -1).asDiagonal())); }) ==
        "maps[1]: a matrix with determinant -1 is not allowed; a rotation has determinant 1");
  for (const double weight : {0.0, -1.0, nan, 1e200, 1e-200}) {
    CHECK(message([&] { sheaf.set_edge_weight(1, weight); }).find("edge_weights[1]: ") == 0);
  }
  const std::vector<double> seven(7, 1.0), eight(8, 1.0), one(1, 1.0);
  CHECK(message([&] { (void)CellularSheaf<Diagonal<2>>(graph, seven); }) ==
        "maps: 7 is not allowed; expected 4 arcs * 2 numbers per diagonal map");
  CHECK(message([&] { (void)CellularSheaf<Diagonal<2>>(graph, eight, one); }) ==
        "edge_weights: 1 is not allowed; diagonal maps have no edge weights");
  CHECK(message([&] { CellularSheaf<Identity<2>>(graph).set_map(0, Eigen::Matrix<double, 1, 1>(2.0)); }) ==
        "maps[0]: 2 is not allowed; an identity map can only be 1");
  CHECK(message([&] { (void)coboundary(sheaf, Cochain<double>::Zero(5, 1)); }) ==
        "rows of x: 5 is not allowed; must equal the dimension of C0, 6");
  CHECK(message([&] { (void)SheafLaplacian<SpecialOrthogonal<2>>(sheaf).apply(Cochain<double>::Zero(5, 1)); }) ==
        "rows of x: 5 is not allowed; must equal the dimension of C0, 6");
  constexpr Index most = std::numeric_limits<int>::max();
  CHECK(message([&] { detail::require_sparse_coboundary(most, most); }) == "nothing thrown");
  CHECK(message([&] { detail::require_sparse_coboundary(most + 1, 1); }) ==
        "entries of the sparse coboundary: 2147483648 is not allowed; at most 2147483647; use coboundary");
  CHECK(message([&] { detail::require_sparse_coboundary(0, most + 1); }) ==
        "columns of the sparse coboundary: 2147483648 is not allowed; at most 2147483647; use coboundary");
  CellularSheaf<Diagonal<2>> huge(graph);
  huge.set_map(0, {1e200, 1.0});
  CHECK(message([&] { SheafLaplacian<Diagonal<2>>{huge}; }).find("maps of node 0") == 0);
  // Squares that underflow have no inverse root; maps of 0 are left out, and other normalisations lose nothing.
  CellularSheaf<Diagonal<2>> small(graph);
  small.set_map(0, {1.0, 1e-200});
  CellularSheaf<GeneralLinear<2>> smallest(graph);
  for (Index a = 0; a < graph.arc_count(); ++a) smallest.set_map(a, 1e-170 * Eigen::Matrix2d::Identity());
  CHECK(message([&] { SheafLaplacian<Diagonal<2>>(small, Normalisation::block); }) ==
        "maps of node 0: an entry of 1e-200 is not allowed; for the block normalisation ΣF_aᵀF_a must be 0 or at "
        "least "
        "2.22507e-308");
  CHECK(message([&] {
          SheafLaplacian<GeneralLinear<2>>(smallest, Normalisation::block);
        }).find("maps of node 0") == 0);
  CHECK(message([&] { SheafLaplacian<GeneralLinear<2>>(smallest, Normalisation::augmented); }) ==
        "nothing thrown");
  small.set_map(0, {1.0, 0.0});
  CHECK(SheafLaplacian<Diagonal<2>>(small, Normalisation::block).diagonal_block(0) == Column<double, 2>(1.0, 0.0));
}

TEST_CASE("a sheaf keeps its graph alive") {
  const SheafLaplacian<Identity<2>> laplacian = [] {
    return SheafLaplacian<Identity<2>>(CellularSheaf<Identity<2>>(Graph(2, std::vector<Edge>{{0, 1}})));
  }();
  CHECK((laplacian.apply(Cochain<double>::Ones(4, 1)) == Cochain<double>::Zero(4, 1)));
}

}  // namespace test_sheaf
