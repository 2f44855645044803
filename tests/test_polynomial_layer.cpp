/// \file
/// PolynomialDiffusionLayer: forward pass and evaluation against p(λ) on the eigenvectors of Δ, a filter that is the
/// layer without one, terms kept against terms recomputed, refused arguments.
#include <doctest/doctest.h>

#include <cmath>
#include <memory>
#include <stdexcept>
#include <vector>

#include "dense_algebra.hpp"
#include "shared_networks.hpp"
#include "sheafnn/layers/diffusion_layer.hpp"
#include "sheafnn/layers/polynomial_diffusion_layer.hpp"
#include "sheafnn/sheaf/laplacian.hpp"
#include "sheafnn/sheaf/random_sheaf.hpp"
#include "tiny_task.hpp"
#include "worst.hpp"

namespace test_polynomial_layer {
namespace {

using namespace sheafnn;
using namespace sheafnn::layers;
using namespace sheafnn::math;
using namespace sheafnn::rotation;
using namespace sheafnn::sheaf;
using Matrix = Cochain<double>;
using Numbers = std::vector<double>;

/// A sheaf with random maps on a small graph, features and weights.
template <class Family>
struct Setup {
  static constexpr Index D = Family::stalk_dimension, channels = 5;
  static constexpr Normalisation normalisation = Normalisation::augmented;
  Graph graph = tiny::Task().graph;
  Index n = graph.node_count(), d;
  CellularSheaf<Family> sheaf = random_sheaf<Family>(graph, Stream{.seed = 4});
  EdgeBlocks<double> edges{graph};
  DiffusionShape<double> shape;
  SheafBlocks<Family, double> blocks{graph, edges, normalisation};
  DiffusionParameters<double> weights;
  Matrix x, output_bar;

  explicit Setup(bool filters = false) : d(D + (filters ? 2 : 0)), shape(graph, D, filters, filters, channels) {
    blocks.build(1, nullptr, true, [&](Index block, auto& map) {
      for (int side = 0; side < 2; ++side) {
        for (int lane = 0; lane < edges.width; ++lane) {
          const auto& own = sheaf.map(edges.arcs(block, side)[lane]);
          for (Index k = 0; k < own.size(); ++k) map[side].data()[k].set_lane(lane, own.data()[k]);
        }
      }
    });
    weights.left.resize(d, d);
    weights.right.resize(channels, channels);
    weights.epsilon.resize(d);
    Index i = 0;
    for (auto* matrix : {&weights.left, &weights.right}) {
      for (double& value : matrix->reshaped()) value = tiny::number(1, i++);
    }
    for (double& value : weights.epsilon) value = tiny::number(1, i++);
    x.resize(n * d, channels);
    output_bar.resize(n * d, channels);
    for (Index k = 0; k < x.size(); ++k) {
      x.data()[k] = tiny::number(2, k);
      output_bar.data()[k] = tiny::number(3, k);
    }
  }
  [[nodiscard]] Matrix mixed() const {
    Matrix y(n * d, channels);
    for (Index u = 0; u < n; ++u) {
      y.middleRows(u * d, d) = weights.left * x.middleRows(u * d, d) * weights.right.transpose();
    }
    return y;
  }
};

Numbers some_theta(Index degree) {
  Numbers r;
  for (Index k = 0; k <= degree; ++k) r.push_back(tiny::number(6, k));
  return r;
}

/// Everything that a layer computes.
template <class Family>
struct Outcome {
  Matrix output, evaluated, x_bar;
  Numbers weights_bar, theta_bar, blocks_bar;
};

template <class Family>
Outcome<Family> run(const Setup<Family>& of, const PolynomialOptions& filter, FilterTerms terms,
                    const DiffusionOptions& options = {}) {
  PolynomialDiffusionLayer<Family, double> layer(of.graph, of.shape, options, filter, terms);
  const DiffusionWeights<const double> weights = of.weights;
  const Numbers theta = some_theta(filter.degree), skip = {0.7};
  const FilterWeights<const double> filter_weights{theta, skip};
  const FeatureView<const double> x(of.x, of.d);
  const NodeSelection all(of.n);
  Outcome<Family> r;
  layer.set_weights(weights);
  layer.forward(
      {.execution = 1, .sheaf = of.blocks, .x = x, .nodes = all, .training = false, .filter = filter_weights});
  r.evaluated = layer.output().eigen();
  layer.forward({.execution = 1, .sheaf = of.blocks, .x = x, .nodes = all, .filter = filter_weights});
  r.output = layer.output().eigen();
  SheafBlocksGradient<Family, double> gradient(of.graph, of.edges);
  DiffusionParameters<double> weights_bar = of.weights;
  weights_bar.left.setZero();
  weights_bar.right.setZero();
  weights_bar.epsilon.setZero();
  r.theta_bar.assign(theta.size() + 1, 0.0);
  const std::span<double> bars(r.theta_bar);
  r.x_bar.resize(of.x.rows(), of.x.cols());
  layer.set_gradient(weights_bar);
  layer.backward({.execution = 1,
                  .sheaf = of.blocks,
                  .sheaf_gradient = gradient,
                  .output_bar = FeatureView<const double>(of.output_bar, of.d),
                  .x_bar = FeatureView<double>(r.x_bar, of.d),
                  .filter = filter_weights,
                  .filter_bar = {bars.first(theta.size()), bars.last(1)}});
  for (const auto& matrix : {weights_bar.left, weights_bar.right}) {
    r.weights_bar.insert(r.weights_bar.end(), matrix.data(), matrix.data() + matrix.size());
  }
  r.weights_bar.insert(r.weights_bar.end(), weights_bar.epsilon.begin(), weights_bar.epsilon.end());
  for (const auto* buffer : {&gradient.off_diagonal_bar, &gradient.degree_bar, &gradient.scale_bar}) {
    r.blocks_bar.insert(r.blocks_bar.end(), buffer->begin(), buffer->end());
  }
  return r;
}

/// Largest difference, relative to the larger of 1 and the largest number of b.
double distance(std::span<const double> a, std::span<const double> b) {
  REQUIRE(a.size() == b.size());
  double size = 1, worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    size = std::max(size, std::abs(b[i]));
    worst = test::worse(worst, std::abs(a[i] - b[i]));
  }
  return worst / size;
}
double distance(const Matrix& a, const Matrix& b) {
  return distance(std::span(a.data(), a.data() + a.size()), std::span(b.data(), b.data() + b.size()));
}
template <class Family>
double distance(const Outcome<Family>& a, const Outcome<Family>& b) {
  double worst = 0;
  for (const double one :
       {distance(a.output, b.output), distance(a.x_bar, b.x_bar), distance(a.weights_bar, b.weights_bar),
        distance(a.theta_bar, b.theta_bar), distance(a.blocks_bar, b.blocks_bar)}) {
    worst = test::worse(worst, one);
  }
  return worst;
}

/// A filter of each basis.
std::vector<PolynomialOptions> filters(Index degree) {
  std::vector<PolynomialOptions> r;
  for (std::size_t i = 1; i < names_of(PolynomialBasis()).size(); ++i) {
    PolynomialOptions& options = r.emplace_back();
    options.basis = static_cast<PolynomialBasis>(i);
    options.degree = degree;
    options.jacobi_alpha = 0.5;
    options.jacobi_beta = -0.3;
    options.gegenbauer_lambda = 0.1;
  }
  return r;
}

template <class Family>
void check_spectrum() {
  CAPTURE(Family::name);
  const Setup<Family> setup;
  const auto laplacian = SheafLaplacian<Family>(setup.sheaf, setup.normalisation).matrix().toDense();
  const dense_algebra::Eigenpairs eigen = dense_algebra::eigenpairs(laplacian);
  const Matrix y = setup.mixed();
  const Eigen::MatrixXd parts = eigen.vectors.transpose() * y;
  for (const Index degree : {Index{0}, Index{1}, Index{2}, Index{5}, max_polynomial_degree}) {
    for (PolynomialOptions filter : filters(degree)) {
      for (const HighPassSkip skip : {HighPassSkip::off, HighPassSkip::input, HighPassSkip::mixed}) {
        filter.skip = skip;
        filter.largest_eigenvalue = skip == HighPassSkip::input ? 2 : 2.2;
        const Numbers theta = some_theta(degree);
        const Polynomial p(filter, std::span<const double>(theta));
        Eigen::MatrixXd filtered = parts;
        for (Index i = 0; i < parts.rows(); ++i) {
          const double value = 2 * eigen.values(i) / filter.largest_eigenvalue - 1;
          filtered.row(i) *= p(value);
        }
        Matrix z = eigen.vectors * filtered;
        if (skip != HighPassSkip::off) {
          z += 0.7 * ((skip == HighPassSkip::input ? setup.x : y) - laplacian * y / filter.largest_eigenvalue);
        }
        Matrix expected = -z;
        for (Index i = 0; i < z.rows(); ++i) {
          expected.row(i) += (1 + std::tanh(setup.weights.epsilon(i % setup.d))) * setup.x.row(i);
        }
        const auto outcome = run(setup, filter, FilterTerms::keep, {true, true, false});
        CAPTURE(to_string(filter.basis));
        CAPTURE(degree);
        CHECK(distance(outcome.output, expected) <= 2e-13);
        CHECK(distance(outcome.evaluated, expected) <= 2e-13);
      }
    }
  }
}

}  // namespace

TEST_CASE("polynomial layers multiply each eigenvector of the Laplacian by p") {
  check_spectrum<Diagonal<2>>();
  check_spectrum<SpecialOrthogonal<3>>();
  check_spectrum<GeneralLinear<2>>();
}

TEST_CASE("polynomial layers: T_0 and T_1 in equal parts, doubled, are the layer without a filter") {
  using Family = GeneralLinear<3>;
  Setup<Family> setup(true);
  PolynomialOptions filter{.basis = PolynomialBasis::chebyshev, .degree = 1};
  filter.coefficients = PolynomialCoefficients::free;
  filter.skip = HighPassSkip::input;
  const Numbers theta = {0.5, 0.5}, skip = {0};
  const FeatureView<const double> x(setup.x, setup.d);
  const NodeSelection all(setup.n);
  DiffusionLayer<Family, double> plain(setup.graph, setup.shape);
  PolynomialDiffusionLayer<Family, double> layer(setup.graph, setup.shape, {}, filter);
  plain.set_weights(setup.weights);
  plain.forward({1, setup.blocks, x, x, all});
  const Matrix expected = plain.output().eigen();
  setup.weights.right *= 2;
  layer.set_weights(setup.weights);
  const auto run_layer = [&](const SheafBlocks<Family, double>& blocks, bool training) {
    layer.forward(
        {.execution = 1, .sheaf = blocks, .x = x, .nodes = all, .training = training, .filter = {theta, skip}});
  };
  run_layer(setup.blocks, true);
  CHECK(distance(layer.output().eigen(), expected) <= 1e-15);
  run_layer(setup.blocks, false);
  CHECK(distance(layer.output().eigen(), expected) <= 1e-15);
  const Graph other(setup.n, {});
  const EdgeBlocks<double> edges(other);
  const SheafBlocks<Family, double> elsewhere(other, edges, Setup<Family>::normalisation);
  CHECK_THROWS_WITH_AS(run_layer(elsewhere, false),
                       "sheaf: one over 7 nodes and 0 edges is not allowed; the layer's graph has 7 and 9",
                       std::invalid_argument);
}

TEST_CASE("polynomial layers: terms kept and terms recomputed give the same") {
  const Setup<GeneralLinear<3>> general(true);
  const Setup<Diagonal<2>> diagonal;
  for (const Index degree : {Index{1}, Index{3}, Index{8}, Index{16}, max_polynomial_degree}) {
    CAPTURE(degree);
    for (const PolynomialOptions& filter : filters(degree)) {
      CAPTURE(to_string(filter.basis));
      const auto check = [&](const auto& setup) {
        const auto kept = run(setup, filter, FilterTerms::keep),
                   again = run(setup, filter, FilterTerms::recompute);
        CHECK(distance(again.output, kept.output) == 0);
        CHECK(distance(again, kept) <= 2e-13);
      };
      check(general);
      check(diagonal);
    }
  }
}

TEST_CASE("polynomial layers: when terms are recomputed") {
  const PolynomialOptions filter{.basis = PolynomialBasis::legendre, .degree = 8};
  constexpr std::size_t large = std::size_t{9} << 20;
  CHECK(sheafnn::detail::choose_terms(filter, Normalisation::augmented, large) == FilterTerms::recompute);
  CHECK(sheafnn::detail::choose_terms(filter, Normalisation::augmented, large / 2) == FilterTerms::keep);
  CHECK(sheafnn::detail::choose_terms(filter, Normalisation::none, large) == FilterTerms::keep);
  PolynomialOptions other = filter;
  other.largest_eigenvalue = 1;
  CHECK(sheafnn::detail::choose_terms(other, Normalisation::augmented, large) == FilterTerms::keep);
}

TEST_CASE("polynomial layers: refused arguments") {
  using Family = Diagonal<2>;
  const Setup<Family> setup;
  using Layer = PolynomialDiffusionLayer<Family, double>;
  CHECK_THROWS_AS(Layer(setup.graph, setup.shape, {}, PolynomialOptions{}), std::invalid_argument);
  CHECK_THROWS_AS(Layer(setup.graph, setup.shape, {}, PolynomialOptions{PolynomialBasis::legendre, 65}),
                  std::invalid_argument);
  Layer layer(setup.graph, setup.shape, {}, {PolynomialBasis::legendre, 2});
  const Numbers theta(3), skip(1);
  const FeatureView<const double> x(setup.x, setup.d);
  const NodeSelection all(setup.n);
  layer.set_weights(setup.weights);
  const auto forward = [&](const FilterWeights<const double>& filter, const FeatureView<const double>& of,
                           bool training = true) {
    layer.forward(
        {.execution = 1, .sheaf = setup.blocks, .x = of, .nodes = all, .training = training, .filter = filter});
  };
  CHECK_THROWS_AS(forward({theta, {}}, x), std::invalid_argument);
  CHECK_THROWS_AS(forward({skip, skip}, x), std::invalid_argument);
  CHECK_THROWS_AS(forward({theta, skip}, x.first(3)), std::invalid_argument);
  const DiffusionShape<double> no_shape;
  CHECK_THROWS_AS(Layer(setup.graph, no_shape, {}, {PolynomialBasis::legendre, 2}), std::invalid_argument);

  // backward(): what forward() refuses, and without a forward() right before.
  SheafBlocksGradient<Family, double> sheaf_bar(setup.graph, setup.edges);
  Matrix x_bar = setup.x;
  DiffusionParameters<double> weights_bar = setup.weights;
  Numbers theta_bar(3), skip_bar(1);
  const auto backward = [&](const DiffusionWeights<const double>& weights,
                            const FilterWeights<const double>& filter) {
    layer.set_weights(weights);
    layer.set_gradient(weights_bar);
    layer.backward({.execution = 1,
                    .sheaf = setup.blocks,
                    .sheaf_gradient = sheaf_bar,
                    .output_bar = FeatureView<const double>(setup.output_bar, setup.d),
                    .x_bar = FeatureView<double>(x_bar, setup.d),
                    .filter = filter,
                    .filter_bar = {theta_bar, skip_bar}});
    layer.set_weights(setup.weights);
  };
  CHECK_THROWS_AS(backward(setup.weights, {theta, skip}), std::logic_error);
  layer.set_weights(setup.weights);
  forward({theta, skip}, x);
  CHECK_THROWS_AS(backward({}, {theta, skip}), std::invalid_argument);
  CHECK_THROWS_AS(backward(setup.weights, {theta, {}}), std::invalid_argument);
  backward(setup.weights, {theta, skip});
  CHECK_THROWS_AS(backward(setup.weights, {theta, skip}), std::logic_error);
  forward({theta, skip}, x);
  forward({theta, skip}, x, false);
  CHECK_THROWS_AS(backward(setup.weights, {theta, skip}), std::logic_error);
}

TEST_CASE("polynomial layers: no nodes, and workspaces of one graph") {
  using Family = Diagonal<2>;
  using Layer = PolynomialDiffusionLayer<Family, double>;
  const PolynomialOptions filter{PolynomialBasis::chebyshev, 2};
  const Graph none(0, {});
  const EdgeBlocks<double> edges(none);
  const DiffusionShape<double> shape(none, 2, false, false, 5);
  SheafBlocks<Family, double> blocks(none, edges, Normalisation::augmented);
  blocks.build(1, nullptr, true, [](Index, auto&) {});
  const Setup<Family> setup;
  const Numbers theta(3), skip(1);
  Layer layer(none, shape, {}, filter);
  const FeatureView<const double> x(setup.x.data(), 0, 2, 5);
  layer.set_weights(setup.weights);
  for (const bool training : {true, false}) {
    layer.forward({.execution = 1,
                   .sheaf = blocks,
                   .x = x,
                   .nodes = NodeSelection(0),
                   .training = training,
                   .filter = {theta, skip}});
  }
  CHECK(layer.output().nodes() == 0);

  const auto workspace = std::make_shared<detail::FilterWorkspace<Family, double>>();
  const Layer first(setup.graph, setup.shape, {}, filter, FilterTerms::keep, workspace);
  const std::vector<Edge> one = {{0, 1}};
  const Graph other(setup.n, one);
  const DiffusionShape<double> other_shape(other, 2, false, false, 5);
  CHECK_THROWS_WITH_AS(Layer(other, other_shape, {}, filter, FilterTerms::keep, workspace),
                       "workspace: of layers on another graph is not allowed; must be of layers on the same",
                       std::invalid_argument);
  const DiffusionShape<double> wide(setup.graph, 2, false, false, 9);
  CHECK_THROWS_WITH_AS(Layer(setup.graph, wide, {}, filter, FilterTerms::keep, workspace),
                       "workspace: of layers of 2 coordinates × 5 channels is not allowed; this layer has 2 × 9",
                       std::invalid_argument);
  // As many numbers, but fixed filters as well.
  const DiffusionShape<double> filters(setup.graph, 2, true, true, 16), plain(setup.graph, 2, false, false, 32);
  const auto both = std::make_shared<detail::FilterWorkspace<Family, double>>();
  const Layer without(setup.graph, plain, {}, filter, FilterTerms::keep, both);
  CHECK_THROWS_WITH_AS(Layer(setup.graph, filters, {}, filter, FilterTerms::keep, both),
                       "workspace: of layers of 2 coordinates × 32 channels is not allowed; this layer has 4 × 16",
                       std::invalid_argument);
}

}  // namespace test_polynomial_layer
