/// \file
/// InitialResidualLayer: identity maps against GCNII written with dense matrices, what it is without mixing or without a
/// residual, derivatives with respect to X and X₁ by differences, refused arguments, no nodes.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "shared_networks.hpp"
#include "sheafnn/layers/diffusion_layer.hpp"
#include "sheafnn/layers/initial_residual_layer.hpp"
#include "sheafnn/layers/residual_options.hpp"
#include "sheafnn/sheaf/families.hpp"
#include "tiny_task.hpp"
#include "worst.hpp"

namespace test_initial_residual_layer {
namespace {

using namespace sheafnn;
using namespace sheafnn::layers;
using namespace sheafnn::math;
using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// The sheaf of identity maps on a small graph, features and weights.
template <int D>
struct Setup {
  static constexpr Index channels = 5;
  using Family = Identity<D>;
  Graph graph = tiny::Task().graph;
  Index n = graph.node_count();
  EdgeBlocks<double> edges{graph};
  DiffusionShape<double> shape{graph, D, false, false, channels};
  SheafBlocks<Family, double> sheaf{graph, edges, Normalisation::augmented};
  SheafBlocksGradient<Family, double> sheaf_bar{graph, edges};
  DiffusionParameters<double> weights;
  Matrix x = numbers(1), first = numbers(2), output_bar = numbers(3);

  Setup() {
    sheaf.build(1, nullptr, true, [](Index, auto& maps) {
      for (auto& map : maps) map.setOnes();
    });
    weights.left.resize(D, D);
    weights.right.resize(channels, channels);
    for (Index i = 0; i < D * D; ++i) weights.left.data()[i] = tiny::number(4, i);
    for (Index i = 0; i < channels * channels; ++i) weights.right.data()[i] = tiny::number(5, i);
  }
  [[nodiscard]] Matrix numbers(std::uint64_t seed) const {
    Matrix r(n * D, channels);
    for (Index i = 0; i < r.size(); ++i) r.data()[i] = tiny::number(seed, i);
    return r;
  }
  [[nodiscard]] FeatureView<const double> view(const Matrix& m) const {
    return {m.data(), m.rows() / D, D, channels};
  }
  [[nodiscard]] FeatureView<double> view(Matrix& m) const { return {m.data(), m.rows() / D, D, channels}; }
  /// (D_g + I)^(−1/2) (A_g + I) (D_g + I)^(−1/2) X for every stalk coordinate.
  [[nodiscard]] Matrix averaged(const Matrix& in) const {
    Matrix r = Matrix::Zero(in.rows(), in.cols());
    const auto degree = [&](Index u) { return static_cast<double>(graph.degree(u) + 1); };
    const auto add = [&](Index u, Index v) {
      r.middleRows(u * D, D) += in.middleRows(v * D, D) / std::sqrt(degree(u) * degree(v));
    };
    for (Index u = 0; u < n; ++u) add(u, u);
    for (const Edge& e : graph.edges()) {
      add(e.u, e.v);
      add(e.v, e.u);
    }
    return r;
  }
};

/// max |a − b| / scale, element by element.
double distance(const Matrix& a, const Matrix& b, const Matrix& scale) {
  REQUIRE(a.rows() == b.rows());
  REQUIRE(a.cols() == b.cols());
  double worst = 0;
  for (Index i = 0; i < a.size(); ++i) {
    worst = test::worse(worst, std::abs(a.data()[i] - b.data()[i]) / scale.data()[i]);
  }
  return worst;
}

double distance(const Matrix& a, const Matrix& b) { return distance(a, b, Matrix::Ones(a.rows(), a.cols())); }

/// The largest difference of two results, relative to the sum of the terms' absolute values, that rounding explains
/// in whatever order they add: 2 k u (Higham, Accuracy and Stability of Numerical Algorithms, section 3.1) for k
/// roundings from an input to a result. These are one for each term of the sums over neighbours, itself and channels,
/// three for a neighbour's weight, four for α and β, and one for the activation, whose slope is at most 1.
template <int D>
double rounding(const Setup<D>& s) {
  Index degree = 0;
  for (Index u = 0; u < s.n; ++u) degree = std::max(degree, s.graph.degree(u));
  return static_cast<double>(degree + 1 + Setup<D>::channels + 8) * std::numeric_limits<double>::epsilon();
}

template <int D>
Matrix forward(Setup<D>& s, const DiffusionOptions& options, double alpha, double beta) {
  InitialResidualLayer<Identity<D>, double> layer(s.graph, s.shape, options, alpha, beta);
  layer.set_weights(s.weights);
  layer.forward({1, s.sheaf, s.view(s.x), s.view(s.first), NodeSelection(s.n)});
  return layer.output().eigen();
}

}  // namespace

TEST_CASE("initial residual, identity maps: a layer of GCNII") {
  Setup<1> s;
  for (const double alpha : {0.0, 0.2, 1.0}) {
    for (const double beta : {0.0, 0.35, 1.0}) {
      CAPTURE(alpha);
      CAPTURE(beta);
      const auto mixed = [&](const Matrix& x, const Matrix& first, const Matrix& weights) -> Matrix {
        const Matrix h = (1 - alpha) * s.averaged(x) + alpha * first;
        return (1 - beta) * h + beta * h * weights.transpose();
      };
      const Matrix expected =
          mixed(s.x, s.first, s.weights.right).unaryExpr([](double v) { return v > 0 ? v : std::expm1(v); });
      const Matrix scale = mixed(s.x.cwiseAbs(), s.first.cwiseAbs(), s.weights.right.cwiseAbs());
      CHECK(distance(forward(s, {.left = false}, alpha, beta), expected, scale) <= rounding(s));
    }
  }
}

TEST_CASE("initial residual: without mixing, and with alpha = 1") {
  Setup<3> s;
  const DiffusionOptions none{.left = false, .right = false, .activation = false};
  CHECK(distance(forward(s, none, 0.25, 0.5), 0.75 * s.averaged(s.x) + 0.25 * s.first,
                 0.75 * s.averaged(s.x.cwiseAbs()) + 0.25 * s.first.cwiseAbs()) <= rounding(s));
  CHECK(distance(forward(s, none, 1, 0.5), s.first) == 0);
  // β = 0 leaves the weights out.
  CHECK(distance(forward(s, {.activation = false}, 0.25, 0), forward(s, none, 0.25, 0.5)) == 0);
}

TEST_CASE("initial residual: derivatives with respect to X and X_1, of all nodes and of some") {
  using Family = Identity<2>;
  Setup<2> s;
  InitialResidualLayer<Family, double> layer(s.graph, s.shape, {}, 0.3, 0.6);
  const std::vector<std::int32_t> some = {1, 2, 4};
  for (const NodeSelection& nodes : {NodeSelection(s.n), NodeSelection(some)}) {
    CAPTURE(nodes.count());
    const Dropout dropout{0.4, {.seed = 3}};
    const auto loss = [&] {
      layer.set_weights(s.weights);
      layer.forward({1, s.sheaf, s.view(s.x), s.view(s.first), nodes, dropout});
      const auto output = layer.output().eigen();
      double sum = 0;
      for (Index i = 0; i < output.size(); ++i) sum += output.data()[i] * s.output_bar.data()[i];
      return sum;
    };
    static_cast<void>(loss());
    const Matrix before = s.numbers(7);
    Matrix x_bar = s.numbers(6), first_bar = before, y_bar = x_bar, r_bar = x_bar;
    DiffusionParameters<double> weights_bar = s.weights;
    layer.set_gradient(weights_bar);
    layer.backward({1,
                    s.sheaf,
                    s.sheaf_bar,
                    false,
                    s.view(std::as_const(s.output_bar)).first(nodes.count()),
                    s.view(x_bar),
                    s.view(first_bar),
                    {s.view(y_bar), s.view(r_bar)}});
    first_bar -= before;  // which it adds to
    const double step = std::cbrt(std::numeric_limits<double>::epsilon());
    for (const auto& [of, bar] : {std::pair{&s.x, &x_bar}, std::pair{&s.first, &first_bar}}) {
      for (Index i = 0; i < of->size(); ++i) {
        double& value = of->data()[i];
        const double saved = value;
        value = saved + step;
        const double above = loss();
        value = saved - step;
        const double below = loss();
        value = saved;
        CHECK(std::abs((above - below) / (2 * step) - bar->data()[i]) <= 2e-9);
      }
    }
  }
}

TEST_CASE("initial residual: weights of the layers") {
  const ResidualOptions options{.form = ResidualForm::initial, .alpha = 0.1, .theta = 0.5};
  CHECK(options.beta(0) == std::log1p(0.5));
  CHECK(options.beta(9) == std::log1p(0.05));
  const auto message = [](const ResidualOptions& of) {
    try {
      validate(of);
    } catch (const std::invalid_argument& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(message({.alpha = -0.1}) == "residual.alpha: -0.1 is not allowed; must be between 0 and 1");
  CHECK(message({.alpha = std::nan("")}) == "residual.alpha: nan is not allowed; must be between 0 and 1");
  CHECK(message({.theta = 2}) ==
        "residual.theta: 2 is not allowed; must be between 0 and 1.7, where log(1 + theta) is at most 1");
  CHECK(message(options).empty());
}

TEST_CASE("initial residual: evaluations have no dropout") {
  Setup<2> s;
  InitialResidualLayer<Identity<2>, double> layer(s.graph, s.shape, {}, 0.25, 0.5);
  layer.set_weights(s.weights);
  const auto output = [&](double rate, bool training) {
    Matrix scratch = s.x;
    layer.forward({1, s.sheaf, s.view(std::as_const(s.x)), s.view(std::as_const(s.first)), NodeSelection(s.n),
                   Dropout{rate, Stream{1}}, training, MixedFeatures::compute, s.view(scratch)});
    const FeatureView<const double> of = layer.output();
    return Matrix(Eigen::Map<const Matrix>(of.data(), s.n * 2, Setup<2>::channels));
  };
  const Matrix whole = output(0, false);
  CHECK(distance(output(0.5, false), whole) == 0);
  CHECK(distance(output(0.5, true), whole) > 0.01);
}

TEST_CASE("diffusion layer: it has a residual, whatever its setting says of one") {
  Setup<2> s;
  DiffusionLayer<Identity<2>, double> layer(s.graph, s.shape, {.diffusion = {.residual = false}});
  layer.set_weights(s.weights);  // without epsilon
  CHECK_THROWS_AS(layer.forward({1, s.sheaf, s.view(std::as_const(s.x)), s.view(std::as_const(s.first)),
                                 NodeSelection(s.n)}),
                  std::invalid_argument);
}

TEST_CASE("initial residual: refused arguments, no nodes") {
  using Layer = InitialResidualLayer<Identity<2>, double>;
  Setup<2> s;
  CHECK_THROWS_WITH_AS(Layer(s.graph, s.shape, {}, 1.1, 0.5), "alpha: 1.1 is not allowed; must be between 0 and 1",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(Layer(s.graph, s.shape, {}, 0.5, -1), "beta: -1 is not allowed; must be between 0 and 1",
                       std::invalid_argument);
  const Setup<3> of_three;
  CHECK_THROWS_AS(Layer(s.graph, of_three.shape, {}, 0.5, 0.5), std::invalid_argument);
  Layer layer(s.graph, s.shape, {}, 0.5, 0.5);
  const NodeSelection all(s.n);
  const FeatureView<const double> x = s.view(std::as_const(s.x));
  const auto run = [&](const DiffusionWeights<const double>& weights, const auto& sheaf,
                       const FeatureView<const double>& of, const FeatureView<const double>& first) {
    layer.set_weights(weights);
    layer.forward({1, sheaf, of, first, all});
  };
  const Graph other(s.n, {});
  const EdgeBlocks<double> edges(other);
  const SheafBlocks<Identity<2>, double> elsewhere(other, edges, Normalisation::augmented);
  CHECK_THROWS_AS(run(s.weights, s.sheaf, x.first(3), x), std::invalid_argument);
  CHECK_THROWS_AS(run(s.weights, s.sheaf, x, x.first(3)), std::invalid_argument);
  CHECK_THROWS_AS(run({}, s.sheaf, x, x), std::invalid_argument);
  CHECK_THROWS_AS(run(s.weights, elsewhere, x, x), std::invalid_argument);
  run(s.weights, s.sheaf, x, x);
  Matrix bar = s.x, less(2, Setup<2>::channels);
  DiffusionParameters<double> weights_bar = s.weights;
  const auto backward = [&](const FeatureView<double>& x_bar, const FeatureView<double>& first_bar,
                            const FeatureView<double>& y_bar, const FeatureView<double>& r_bar) {
    layer.set_gradient(weights_bar);
    layer.backward({1, s.sheaf, s.sheaf_bar, false, x, x_bar, first_bar, {y_bar, r_bar}});
  };
  const FeatureView<double> good = s.view(bar), bad = s.view(less);
  CHECK_THROWS_AS(backward(bad, good, good, good), std::invalid_argument);
  CHECK_THROWS_AS(backward(good, bad, good, good), std::invalid_argument);
  CHECK_THROWS_AS(backward(good, good, bad, good), std::invalid_argument);
  CHECK_THROWS_AS(backward(good, good, good, bad), std::invalid_argument);
  const auto with = [&](const SheafBlocks<Identity<2>, double>& sheaf, const FeatureView<const double>& output_bar,
                        const DiffusionWeights<double>& into) {
    layer.set_gradient(into);
    layer.backward({1, sheaf, s.sheaf_bar, false, output_bar, good, good, {good, good}});
  };
  CHECK_THROWS_AS(with(elsewhere, x, weights_bar), std::invalid_argument);
  CHECK_THROWS_AS(with(s.sheaf, x.first(3), weights_bar), std::invalid_argument);
  CHECK_THROWS_AS(with(s.sheaf, x, {}), std::invalid_argument);

  const Graph none(0, {});
  const EdgeBlocks<double> no_edges(none);
  const DiffusionShape<double> shape(none, 2, false, false, 5);
  SheafBlocks<Identity<2>, double> nothing(none, no_edges, Normalisation::augmented);
  nothing.build(1, nullptr, true, [](Index, auto&) {});
  Layer empty(none, shape, {}, 0.5, 0.5);
  const FeatureView<const double> no_rows(s.x.data(), 0, 2, 5);
  empty.set_weights(s.weights);
  empty.forward({1, nothing, no_rows, no_rows, NodeSelection(0)});
  CHECK(empty.output().nodes() == 0);
}

}  // namespace test_initial_residual_layer
