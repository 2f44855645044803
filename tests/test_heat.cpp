// Operators of heat on a graph against dense matrices, and the identity that makes them operators on a flat bundle:
// Δ of node maps = Oᵀ (𝓛 ⊗ I) O.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "dense_algebra.hpp"
#include "sheafnn/layers/bundle_maps.hpp"
#include "sheafnn/layers/heat_operator.hpp"
#include "sheafnn/rotation/haar.hpp"
#include "sheafnn/sheaf/families/special_orthogonal.hpp"
#include "sheafnn/sheaf/laplacian.hpp"
#include "tiny_task.hpp"

namespace heat_test {

using sheafnn::AdjacencyNormalisation;
using sheafnn::HeatExpansion;
using sheafnn::Index;
using sheafnn::MatrixView;
using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// Â, entry by entry.
Matrix dense_adjacency(const sheafnn::Graph& graph, AdjacencyNormalisation normalisation, bool self_loops) {
  const Index n = graph.node_count();
  Matrix a = Matrix::Zero(n, n);
  for (Index arc = 0; arc < graph.arc_count(); ++arc) a(graph.source(arc), graph.target(arc)) = 1;
  if (self_loops) a += Matrix::Identity(n, n);
  const Eigen::VectorXd d = a.rowwise().sum();
  for (Index u = 0; u < n; ++u) {
    for (Index v = 0; v < n; ++v) {
      if (a(u, v) == 0) continue;
      a(u, v) = normalisation == AdjacencyNormalisation::symmetric ? 1 / std::sqrt(d(u) * d(v)) : 1 / d(u);
    }
  }
  return a;
}
/// exp(m): 40 terms of the series of m/32, squared five times.
Matrix exponential(const Matrix& m) {
  Matrix r = Matrix::Identity(m.rows(), m.rows()), term = r;
  for (int k = 1; k <= 40; ++k) {
    term = (term * (m / 32) / k).eval();
    r += term;
  }
  for (int i = 0; i < 5; ++i) r = (r * r).eval();
  return r;
}
Matrix features(Index rows, Index columns, std::uint64_t seed) {
  Matrix r(rows, columns);
  for (Index i = 0; i < r.size(); ++i) r.data()[i] = tiny::number(seed, i);
  return r;
}
/// p(𝓛) x with two bundles of `row` numbers.
Matrix diffused(const sheafnn::Graph& graph, const sheafnn::layers::HeatOptions& options,
                std::vector<double> times, const Matrix& x, int threads = 1) {
  sheafnn::layers::HeatOperator<double> heat(threads, graph, options, 2, x.cols() / 2);
  sheafnn::layers::HeatWeights<const double> weights;
  weights.time = times;
  Matrix y = Matrix::Constant(x.rows(), x.cols(), 7);
  heat.forward(threads, weights, MatrixView<const double>(x), MatrixView<double>(y));
  return y;
}
double distance(const Matrix& a, const Matrix& b) { return (a - b).cwiseAbs().maxCoeff(); }

constexpr double epsilon = 2.3e-16;

}  // namespace heat_test

TEST_CASE("heat: series, eigenpairs and the exponential of a matrix") {
  using namespace heat_test;
  const tiny::Task task;  // its last node has no neighbours
  for (const auto normalisation : {AdjacencyNormalisation::symmetric, AdjacencyNormalisation::random_walk}) {
    for (const bool self_loops : {false, true}) {
      for (const Index row : {3, 40}) {
        const Matrix a = dense_adjacency(task.graph, normalisation, self_loops), x = features(7, 2 * row, 3);
        const Matrix laplacian = Matrix::Identity(7, 7) - a;
        Matrix expected(7, 2 * row);
        const double times[] = {0.7, 1.9};
        for (Index b = 0; b < 2; ++b) {
          expected.middleCols(b * row, row) = exponential(-times[b] * laplacian) * x.middleCols(b * row, row);
        }
        const std::vector<double> t(times, times + 2);
        sheafnn::layers::HeatOptions options{.normalisation = normalisation,
                                             .self_loops = self_loops,
                                             .terms = 30};
        for (const auto expansion : {HeatExpansion::taylor, HeatExpansion::shifted, HeatExpansion::spectral}) {
          options.expansion = expansion;
          CAPTURE(to_string(expansion));
          // Alternating terms reach e^4 = 55.
          CHECK(distance(diffused(task.graph, options, t, x), expected) < 4096 * epsilon);
          CHECK(diffused(task.graph, options, t, x, 3) == diffused(task.graph, options, t, x));
        }
      }
    }
  }
}

TEST_CASE("heat: a few terms and a few eigenpairs") {
  using namespace heat_test;
  const tiny::Task task;
  const Matrix a = dense_adjacency(task.graph, AdjacencyNormalisation::symmetric, false), x = features(7, 4, 4);
  const Matrix laplacian = Matrix::Identity(7, 7) - a;
  const double t = 1.5;
  Matrix taylor = Matrix::Identity(7, 7), shifted = taylor, taylor_term = taylor, shifted_term = taylor;
  for (int k = 1; k <= 4; ++k) {
    taylor_term = (-t / k * laplacian * taylor_term).eval();
    shifted_term = (t / k * a * shifted_term).eval();
    taylor += taylor_term;
    shifted += shifted_term;
  }
  sheafnn::layers::HeatOptions options{.expansion = HeatExpansion::taylor,
                                       .terms = 4,
                                       .time = t,
                                       .learned = false};
  CHECK(distance(diffused(task.graph, options, {}, x), taylor * x) < 256 * epsilon);
  options.expansion = HeatExpansion::shifted;
  CHECK(distance(diffused(task.graph, options, {}, x), std::exp(-t) * shifted * x) < 256 * epsilon);

  const dense_algebra::Eigenpairs pairs = dense_algebra::eigenpairs(laplacian);
  Matrix spectral = Matrix::Zero(7, 7);
  for (int j = 0; j < 3; ++j) {
    const Eigen::VectorXd v = pairs.vectors.col(j);
    spectral += std::exp(-t * pairs.values(j)) * v * v.transpose();
  }
  options.expansion = HeatExpansion::spectral;
  options.terms = 3;
  CHECK(distance(diffused(task.graph, options, {}, x), spectral * x) < 1024 * epsilon);
  options.terms = 100;  // more than there are
  CHECK(distance(diffused(task.graph, options, {}, x), exponential(-t * laplacian) * x) < 1024 * epsilon);
}

TEST_CASE("heat: a mixture of hops, and the limit for long times") {
  using namespace heat_test;
  const tiny::Task task;
  const Matrix x = features(7, 4, 5);
  for (const auto normalisation : {AdjacencyNormalisation::symmetric, AdjacencyNormalisation::random_walk}) {
    const Matrix a = dense_adjacency(task.graph, normalisation, false);
    sheafnn::layers::HeatOptions options{.expansion = HeatExpansion::hops, .normalisation = normalisation};
    sheafnn::layers::HeatOperator<double> heat(1, task.graph, options, 2, 2);
    const Matrix logits = features(2, 5, 6);
    sheafnn::layers::HeatWeights<const double> weights;
    weights.hops = MatrixView<const double>(logits);
    Matrix y(7, 4), expected = Matrix::Zero(7, 4), power = Matrix::Identity(7, 7);
    heat.forward(1, weights, MatrixView<const double>(x), MatrixView<double>(y));
    for (Index k = 1, j = 0; j < 5; ++k) {
      power = (power * a).eval();
      if (k != sheafnn::layers::hop_powers[static_cast<std::size_t>(j)]) continue;
      for (Index b = 0; b < 2; ++b) {
        const double share = std::exp(logits(b, j)) / logits.row(b).array().exp().sum();
        expected.middleCols(2 * b, 2) += share * power * x.middleCols(2 * b, 2);
      }
      ++j;
    }
    CHECK(distance(y, expected) < 64 * epsilon);

    for (const bool self_loops : {false, true}) {
      options.expansion = HeatExpansion::spectral;
      options.self_loops = self_loops;
      options.terms = 7;
      options.learned = false;
      options.time = 500;
      const Matrix late = diffused(task.graph, options, {}, x);
      options.expansion = HeatExpansion::limit;
      CHECK(distance(diffused(task.graph, options, {}, x), late) < 512 * epsilon);
      CHECK(late.row(6).isZero() != self_loops);  // no neighbours: it cools down, or keeps what it has
    }
  }
}

TEST_CASE("heat: the shifted series is bounded, Taylor's is not") {
  using namespace heat_test;
  const sheafnn::Edge path[] = {{0, 1}, {1, 2}, {2, 3}};  // bipartite: an eigenvalue 2
  const sheafnn::Graph graph(4, path);
  Matrix x(4, 2);
  x << 1, 1, -std::sqrt(2.0), 1, std::sqrt(2.0), 1, -1, 1;
  sheafnn::layers::HeatOptions options{.terms = 4, .time = 1.5, .learned = false};
  for (const double time : {0.0, 0.3, 1.5, 6.0, 60.0}) {
    options.time = time;
    for (Index terms = 0; terms < 12; ++terms) {
      options.terms = terms;
      CHECK(diffused(graph, options, {}, x).norm() <= x.norm() * (1 + 64 * epsilon));
    }
  }
  options = {.expansion = HeatExpansion::taylor, .terms = 4, .time = 1.5, .learned = false};
  CHECK(diffused(graph, options, {}, x).col(0).norm() == doctest::Approx(1.375 * x.col(0).norm()));
}

TEST_CASE("heat: nodes without neighbours, and graphs without edges") {
  using namespace heat_test;
  for (const Index n : {1, 3}) {
    const sheafnn::Graph graph(n, {});
    const Matrix x = features(n, 2, 7);
    for (const auto normalisation : {AdjacencyNormalisation::symmetric, AdjacencyNormalisation::random_walk}) {
      for (const auto expansion : {HeatExpansion::taylor, HeatExpansion::shifted, HeatExpansion::spectral}) {
        sheafnn::layers::HeatOptions options{expansion, normalisation, false, 20, 0.5, false};
        CHECK(distance(diffused(graph, options, {}, x), std::exp(-0.5) * x) < 64 * epsilon);  // 𝓛 = I
        options.self_loops = true;
        CHECK(distance(diffused(graph, options, {}, x), x) < 64 * epsilon);  // 𝓛 = 0
      }
    }
  }
}

TEST_CASE("heat: the Laplacian of node maps is the graph's Laplacian between rotations") {
  using namespace heat_test;
  constexpr int D = 3;
  constexpr Index f = 2;
  const tiny::Task task;
  const sheafnn::Stream stream{11, sheafnn::Purpose::user};
  sheafnn::CellularSheaf<sheafnn::SpecialOrthogonal<D>> sheaf(task.graph);
  sheafnn::layers::BundleMaps<D, double> maps(7, 1, f);
  sheafnn::Buffer<double> rotations(7 * D * D);
  for (Index u = 0; u < 7; ++u) {
    const auto rotation = sheafnn::rotation::haar_rotation<double, D>(stream, static_cast<std::uint32_t>(u));
    for (int k = 0; k < D * D; ++k) rotations[u * D * D + k] = rotation(k / D, k % D);
    for (Index a = 0; a < task.graph.arc_count(); ++a) {
      if (task.graph.source(a) == u) sheaf.set_map(a, rotation);
    }
  }
  maps.set_values(rotations);
  const Matrix x = features(7, D * f, 8);
  Matrix r(7, D * f), back(7, D * f);
  maps.rotate_rows<false>(0, 7, x.data(), r.data());
  const Matrix turned = r - dense_adjacency(task.graph, AdjacencyNormalisation::symmetric, true) * r;
  maps.rotate_rows<true>(0, 7, turned.data(), back.data());
  const sheafnn::SheafLaplacian<sheafnn::SpecialOrthogonal<D>> laplacian(sheaf, sheafnn::Normalisation::augmented);
  const sheafnn::Cochain<double> cochain = Eigen::Map<const sheafnn::Cochain<double>>(x.data(), 7 * D, f);
  const sheafnn::Cochain<double> image = laplacian.apply(cochain);
  CHECK((image - Eigen::Map<const sheafnn::Cochain<double>>(back.data(), 7 * D, f)).cwiseAbs().maxCoeff() <
        64 * epsilon);
}

TEST_CASE("heat: rotations of one channel equal rotations of several") {
  using namespace heat_test;
  constexpr int D = 2;
  const Index n = 50, bundles = 3;
  const Matrix rotations = features(n * bundles, D * D, 9);
  sheafnn::Buffer<double> values(rotations.size());
  std::copy_n(rotations.data(), rotations.size(), values.data());
  sheafnn::layers::BundleMaps<D, double> one(n, bundles, 1), two(n, bundles, 2);
  one.set_values(values);
  two.set_values(values);
  const Matrix x = features(n, bundles * D, 10), y = features(n, bundles * D, 11);
  Matrix twice(n, 2 * bundles * D), other = twice, turned = x, turned_twice = twice;
  for (Index i = 0; i < x.size(); ++i) {
    twice.data()[2 * i] = twice.data()[2 * i + 1] = x.data()[i];
    other.data()[2 * i] = y.data()[i];
    other.data()[2 * i + 1] = 0;
  }
  one.rotate_rows<false>(0, n, x.data(), turned.data());
  two.rotate_rows<false>(0, n, twice.data(), turned_twice.data());
  double worst = 0;
  for (Index i = 0; i < x.size(); ++i) {
    worst = std::max(worst, std::abs(turned.data()[i] - turned_twice.data()[2 * i + 1]));
  }
  CHECK(worst <= 4 * epsilon);
  one.add_products(0, n, x.data(), y.data(), false);
  two.add_products(0, n, twice.data(), other.data(), false);
  worst = 0;
  for (Index block = 0; block < one.blocks(); ++block) {
    const auto difference = (one.rotation_bar(block) - two.rotation_bar(block)).eval();
    for (int k = 0; k < D * D; ++k) {
      for (int lane = 0; lane < one.lanes_of(block); ++lane) {
        worst = std::max(worst, std::abs(difference(k / D, k % D).lane(lane)));
      }
    }
  }
  CHECK(worst <= 4 * epsilon);
}
