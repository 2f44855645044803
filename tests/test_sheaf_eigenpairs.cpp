/// \file
/// The smallest eigenpairs of sheaf Laplacians: all methods against dense decompositions and a known spectrum.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "sheaf_checks.hpp"
#include "sheafnn/sheaf/eigenpairs.hpp"
#include "sheafnn/sheaf/random_sheaf.hpp"

namespace test_sheaf_eigenpairs {
namespace {

using sheafnn::CellularSheaf;
using sheafnn::sheaf::EigenpairMethod;
using sheafnn::sheaf::EigenpairOptions;
using sheafnn::Graph;
using sheafnn::Index;
using sheafnn::SheafLaplacian;
using Matrix = Eigen::MatrixXd;

const EigenpairOptions iteration{.method = EigenpairMethod::iteration};
const EigenpairOptions shift_invert{.method = EigenpairMethod::shift_invert};

Graph ring(Index n) {
  std::vector<sheafnn::Edge> edges;
  for (std::int32_t u = 0; u < n; ++u) edges.push_back({u, static_cast<std::int32_t>((u + 1) % n)});
  return Graph(n, edges);
}
/// Equal components, and lonely nodes.
Graph components(std::int32_t count, std::int32_t size, std::int32_t lonely) {
  std::vector<sheafnn::Edge> edges;
  for (std::int32_t first = 0; first < count * size; first += size) {
    for (std::int32_t u = 0; u < size; ++u) {
      edges.push_back({first + u, first + (u + 1) % size});
      edges.push_back({first + u, first + (u * u + 3) % size});
    }
  }
  return Graph(count * size + lonely, edges);
}
Graph two_components() { return components(2, 60, 3); }
/// Every one of nodes 0 … a − 1 joined to every one of the b others. K_{1,b} is a star.
Graph complete_bipartite(std::int32_t a, std::int32_t b) {
  std::vector<sheafnn::Edge> edges;
  for (std::int32_t u = 0; u < a; ++u) {
    for (std::int32_t v = 0; v < b; ++v) edges.push_back({u, a + v});
  }
  return Graph(a + b, edges);
}
/// Edges without a common node.
Graph matching(std::int32_t count) {
  std::vector<sheafnn::Edge> edges;
  for (std::int32_t e = 0; e < count; ++e) edges.push_back({2 * e, 2 * e + 1});
  return Graph(2 * count, edges);
}

/// Values against a dense decomposition, residuals, orthonormality; whatever the family.
void check_pairs(const Matrix& dense, const Eigen::VectorXd& spectrum, const Eigen::VectorXd& values,
                 const Matrix& x, double bound, double epsilon) {
  const Index count = values.size();
  REQUIRE(x.rows() == dense.rows());
  REQUIRE(x.cols() == count);
  // An eigenvalue is as close as the residual is large; the values of both come in increasing order.
  const double tolerance = 4096 * epsilon * bound;
  CHECK((values - spectrum.head(count)).cwiseAbs().maxCoeff() <= 1.01 * tolerance);
  const Matrix images = sheaf_checks::product(dense, x);
  for (Index j = 0; j < count; ++j) CHECK((images.col(j) - values(j) * x.col(j)).norm() <= 1.01 * tolerance);
  const double rounding = 4 * static_cast<double>(count) * std::sqrt(static_cast<double>(x.rows())) * epsilon;
  CHECK(sheaf_checks::within(sheaf_checks::product(x.transpose(), x), Matrix::Identity(count, count),
                             Matrix::Constant(count, count, rounding)));
}

template <class Family, class Scalar = double>
void check(const CellularSheaf<Family, Scalar>& sheaf, sheafnn::Normalisation normalisation, Index count,
           const std::vector<EigenpairOptions>& methods = {iteration, shift_invert, EigenpairOptions{}}) {
  CAPTURE(Family::name);
  CAPTURE(to_string(normalisation));
  const SheafLaplacian<Family, Scalar> laplacian(sheaf, normalisation);
  const Matrix dense = Matrix(laplacian.matrix().template cast<double>());
  const Eigen::VectorXd spectrum = sheaf_checks::spectrum(dense);
  for (const EigenpairOptions& options : methods) {
    CAPTURE(static_cast<int>(options.method));
    const auto pairs = sheafnn::sheaf::smallest_eigenpairs(laplacian, count, options);
    REQUIRE(pairs.values.size() == count);
    check_pairs(dense, spectrum, pairs.values.template cast<double>(), pairs.vectors.template cast<double>(),
                static_cast<double>(laplacian.spectral_bound()),
                static_cast<double>(std::numeric_limits<Scalar>::epsilon()));
  }
}

}  // namespace

TEST_CASE("smallest eigenpairs of random sheaves") {
  using sheafnn::Normalisation;
  const Graph graph = two_components();
  for (const Normalisation normalisation : {Normalisation::none, Normalisation::augmented}) {
    check(sheafnn::sheaf::random_sheaf<sheafnn::SpecialOrthogonal<3>>(graph, {.seed = 1}), normalisation, 15);
    check(sheafnn::sheaf::random_sheaf<sheafnn::GeneralLinear<2>>(graph, {.seed = 2}), normalisation, 7);
    check(sheafnn::sheaf::random_sheaf<sheafnn::Diagonal<2>>(graph, {.seed = 3}), normalisation, 1);
  }
  check(sheafnn::sheaf::random_sheaf<sheafnn::Conformal<2>>(graph, {.seed = 4}), Normalisation::block, 12);
  check(sheafnn::sheaf::random_sheaf<sheafnn::SpecialOrthogonal<2>, float>(graph, {.seed = 5}),
        Normalisation::degree, 9);
}

TEST_CASE("repeated eigenvalues are all found") {
  // Five components with four-dimensional stalks: the eigenvalue 0 twenty times, the next ones eight times each.
  const CellularSheaf<sheafnn::Identity<4>> sheaf(two_components());
  check(sheaf, sheafnn::Normalisation::none, 26);
  const SheafLaplacian laplacian(sheaf, sheafnn::Normalisation::none);
  const auto pairs = sheafnn::sheaf::smallest_eigenpairs(laplacian, 28, iteration);
  const double tolerance = 4096 * std::numeric_limits<double>::epsilon() * laplacian.spectral_bound();
  CHECK(std::abs(pairs.values(19)) <= tolerance);
  CHECK(pairs.values(20) > 0.01);
  CHECK(pairs.values(27) - pairs.values(20) <= 2 * tolerance);
  // Values with more vectors than the block has columns: 0, and one between others.
  for (const Index count : {1, 3, 11}) check(sheaf, sheafnn::Normalisation::none, count);
  const CellularSheaf<sheafnn::Identity<8>> wide(components(3, 20, 0));
  for (const Index count : {25, 27}) check(wide, sheafnn::Normalisation::augmented, count);
}

TEST_CASE("few distinct eigenvalues: the shifted inverse meets the end of its Krylov space") {
  using sheafnn::Normalisation;
  // K_{a,b} has 0, a (b − 1 times), b (a − 1 times) and a + b; a matching has 0 and 2.
  for (const Index count : {1, 2, 5}) {
    for (const std::int32_t leaves : {149, 299}) {
      check(CellularSheaf<sheafnn::Identity<1>>(complete_bipartite(1, leaves)), Normalisation::none, count);
    }
    check(CellularSheaf<sheafnn::Identity<1>>(complete_bipartite(3, 200)), Normalisation::none, count);
    check(CellularSheaf<sheafnn::Identity<1>>(matching(150)), Normalisation::none, count);
  }
  check(CellularSheaf<sheafnn::SpecialOrthogonal<2>>(complete_bipartite(1, 120)), Normalisation::block, 6);
  // A star with light edges takes the iteration so long that `automatic` changes over.
  CellularSheaf<sheafnn::SpecialOrthogonal<2>> star(complete_bipartite(1, 249));
  for (Index e = 0; e < 249; e += 2) star.set_edge_weight(e, 1e-3);
  for (const Index count : {1, 2, 5}) check(star, Normalisation::none, count, {EigenpairOptions{}});
}

TEST_CASE("columns that depend on each other, or lie in the space already, become orthonormal ones") {
  using Block = sheafnn::detail::VectorBlock<double>;
  const auto random = [](Index columns, std::uint64_t seed) {
    return sheafnn::detail::random_columns<double>(40, columns, seed);
  };
  const Block space = sheafnn::detail::orthonormal_columns(random(28, 1));
  const Block within = space * random(12, 2).topRows(28), nearly = within + 1e-13 * random(12, 3);
  const Block equal = random(1, 4).replicate(1, 12);
  const auto check_columns = [](const Block& known, Block next) {
    std::uint64_t seed = 5;
    sheafnn::detail::make_orthonormal<double>(known, next, seed);
    CHECK((next.transpose() * next - Matrix::Identity(12, 12)).cwiseAbs().maxCoeff() < 1e-13);
    CHECK((known.transpose() * next).cwiseAbs().maxCoeff() < 1e-13);
  };
  for (const Block& next : {within, nearly, equal}) check_columns(space, next);
  check_columns(Block::Identity(40, 28), Block::Identity(40, 12));  // QR completes columns of zeros with these
}

TEST_CASE("vectors that are not orthonormal have not converged") {
  sheafnn::detail::RitzPairs<double> pairs{Eigen::VectorXd::Zero(2), Matrix::Identity(5, 2), Matrix::Zero(5, 2)};
  CHECK(sheafnn::detail::converged(pairs, 2, 1.0, 1e-12, 1, 10));
  pairs.vectors.col(1) = pairs.vectors.col(0);
  CHECK(sheafnn::detail::converged(pairs, 1, 1.0, 1e-12, 1, 10));
  CHECK_THROWS_AS((void)sheafnn::detail::converged(pairs, 2, 1.0, 1e-12, 1, 10), std::runtime_error);
}

TEST_CASE("Laplacians that single precision makes indefinite") {
  using sheafnn::Normalisation;
  using Family = sheafnn::GeneralLinear<2>;
  // A matching has sections. Their eigenvalue 0 becomes −½ ε of the bound.
  for (const Normalisation normalisation : {Normalisation::none, Normalisation::augmented, Normalisation::block}) {
    for (const std::uint64_t seed : {9, 23}) {
      check(sheafnn::sheaf::random_sheaf<Family, float>(matching(120), {.seed = seed}), normalisation, 5,
            {shift_invert});
    }
  }
}

TEST_CASE("eigenvalues that lie close together: a ring") {
  // 2 − 2 cos(2πj/n): the smallest is a 1e-6 part of the largest.
  const Index n = 3000;
  const SheafLaplacian laplacian(CellularSheaf<sheafnn::Identity<1>>(ring(n)), sheafnn::Normalisation::none);
  const auto pairs = sheafnn::sheaf::smallest_eigenpairs(laplacian, 7);
  for (Index k = 0; k < 7; ++k) {
    const double half = std::sin(std::acos(-1.0) * static_cast<double>((k + 1) / 2) / static_cast<double>(n));
    CHECK(std::abs(pairs.values(k) - 4 * half * half) <= 4096 * std::numeric_limits<double>::epsilon() * 4);
  }
}

TEST_CASE("automatic changes over to the shifted inverse, unless its factor is too large") {
  // Six filters are not enough for the iteration, and take longer than factorising a ring.
  const SheafLaplacian laplacian(CellularSheaf<sheafnn::Identity<1>>(ring(4000)), sheafnn::Normalisation::none);
  const auto second = [&](EigenpairOptions options) -> double {
    options.max_iterations = 6;
    return sheafnn::sheaf::smallest_eigenpairs(laplacian, 2, options).values(1);
  };
  CHECK_THROWS_AS((void)second({.factor_entries = 10}), std::runtime_error);
  const double half = std::sin(std::acos(-1.0) / 4000);
  CHECK(std::abs(second({}) - 4 * half * half) <= 4096 * std::numeric_limits<double>::epsilon() * 4);
}

TEST_CASE("automatic goes on with the iteration where the shifted inverse does not converge") {
  std::vector<sheafnn::Edge> edges;
  for (std::int32_t u = 0; u < 300; ++u) edges.push_back({u, u + 1});
  const auto sheaf = sheafnn::sheaf::random_sheaf<sheafnn::GeneralLinear<2>>(Graph(401, edges), {.seed = 1});
  check(sheaf, sheafnn::Normalisation::augmented, 10, {EigenpairOptions{}});
}

TEST_CASE("eigenvalues of maps of any size") {
  for (const double size : {1e-90, 1e90}) {
    CAPTURE(size);
    auto sheaf = sheafnn::sheaf::random_sheaf<sheafnn::GeneralLinear<2>>(two_components(), {.seed = 3});
    const SheafLaplacian<sheafnn::GeneralLinear<2>> plain(sheaf, sheafnn::Normalisation::none);
    for (Index a = 0; a < sheaf.graph().arc_count(); ++a) {
      sheaf.set_map(a, typename sheafnn::GeneralLinear<2>::template Map<double>(size * sheaf.restriction_map(a)));
    }
    const SheafLaplacian<sheafnn::GeneralLinear<2>> scaled(sheaf, sheafnn::Normalisation::none);
    for (const EigenpairOptions& options : {iteration, shift_invert}) {
      const auto expected = sheafnn::sheaf::smallest_eigenpairs(plain, 10, options).values;
      const auto values = sheafnn::sheaf::smallest_eigenpairs(scaled, 10, options).values;
      CHECK((values / size / size - expected).cwiseAbs().maxCoeff() <= 1e-11 * plain.spectral_bound());
    }
  }
}

TEST_CASE("automatic goes on with the iteration where the factorisation fails") {
  const SheafLaplacian laplacian(CellularSheaf<sheafnn::Identity<1>>(ring(2000)), sheafnn::Normalisation::none);
  int assemblies = 0;
  const sheafnn::detail::EigenpairProblem<double> problem{
      laplacian.graph(),
      1,
      false,
      2,
      1e-11,
      std::numeric_limits<double>::epsilon(),
      {2000, laplacian.spectral_bound(), [&](const auto& x, auto& image) { image = laplacian.apply(x); }},
      [&]() -> Eigen::SparseMatrix<double> {
        ++assemblies;
        return -laplacian.matrix();  // negative pivots, whatever the shift
      }};
  const auto pairs = sheafnn::detail::smallest_eigenpairs(problem, {});
  CHECK(assemblies > 0);
  const double half = std::sin(std::acos(-1.0) / 2000);
  CHECK(std::abs(pairs.values(1) - 4 * half * half) <= 1e-11 * 4);
  CHECK_THROWS_AS((void)sheafnn::detail::smallest_eigenpairs(problem, shift_invert), std::runtime_error);
  // It still stops at max_iterations.
  CHECK_THROWS_AS((void)sheafnn::detail::smallest_eigenpairs(problem, {.max_iterations = 2}), std::runtime_error);
}

TEST_CASE("eigenpairs: threads, seeds, no edges, refused input") {
  const SheafLaplacian laplacian(
      sheafnn::sheaf::random_sheaf<sheafnn::SpecialOrthogonal<2>>(two_components(), {.seed = 7}));
  EigenpairOptions options = iteration;
  const auto one = sheafnn::sheaf::smallest_eigenpairs(laplacian, 5, options);
  options.execution = 2;
  const auto two = sheafnn::sheaf::smallest_eigenpairs(laplacian, 5, options);
  CHECK(one.values == two.values);
  CHECK(one.vectors == two.vectors);
  options.seed = 1;
  const auto other = sheafnn::sheaf::smallest_eigenpairs(laplacian, 5, options);
  CHECK(one.vectors != other.vectors);
  CHECK((one.values - other.values).cwiseAbs().maxCoeff() <=
        2 * 4096 * std::numeric_limits<double>::epsilon() * laplacian.spectral_bound());

  const SheafLaplacian lonely(CellularSheaf<sheafnn::Identity<2>>(Graph(100, {})));
  const auto zero = sheafnn::sheaf::smallest_eigenpairs(lonely, 3, iteration);
  CHECK(zero.values == Eigen::VectorXd::Zero(3));
  CHECK(zero.vectors.transpose() * zero.vectors == Matrix::Identity(3, 3));

  const auto message = [&](Index count, const EigenpairOptions& o) -> std::string {
    try {
      (void)sheafnn::sheaf::smallest_eigenpairs(laplacian, count, o);
    } catch (const std::exception& error) {
      return error.what();
    }
    return "no error";
  };
  CHECK(message(0, {}) == "count: 0 is not allowed; must be between 1 and the number of rows, 246");
  CHECK(message(247, {}).starts_with("count: 247"));
  CHECK(message(246, iteration) == "no error");
  CHECK(message(1, {.tolerance = 1}).starts_with("tolerance: 1"));
  CHECK(message(1, {.tolerance = std::numeric_limits<double>::quiet_NaN()}).starts_with("tolerance: nan"));
  CHECK(message(1, {.factor_entries = -1}).starts_with("factor_entries: -1"));
  CHECK(message(1, {.max_iterations = 0}).starts_with("max_iterations: 0"));
  CHECK(message(5, {.max_iterations = 1, .method = EigenpairMethod::iteration}).find("after 1 iterations") !=
        std::string::npos);
}

}  // namespace test_sheaf_eigenpairs
