/// \file
/// SheafDiffusionLayer: the forward pass against dense matrices built from SheafLaplacian, all derivatives against
/// central differences along every coordinate, for every family; threads, views with gaps, refused arguments.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "model_gradient.hpp"
#include "sheaf_checks.hpp"
#include "sheafnn/layers/sheaf_diffusion_layer.hpp"
#include "sheafnn/sheaf/laplacian.hpp"
#include "tiny_task.hpp"
#include "worst.hpp"

namespace test_sheaf_diffusion_layer {
namespace {

using namespace sheafnn;
using namespace sheafnn::layers;
using namespace sheafnn::rotation;
using namespace sheafnn::sheaf;
using Matrix = Cochain<double>;

constexpr double machine_epsilon = std::numeric_limits<double>::epsilon();

/// A layer with all it is given, in one set of parameters, and what the tests do with it; the same for all families.
struct Case {
  Graph graph;
  SheafDiffusionOptions options;
  Dropout dropout;
  int stalk_dimension = 1, map_size = 0;
  bool weighted = false;
  ParameterSet<double> given;
  ParameterId x = -1, maps = -1, left = -1, right = -1, epsilon = -1, edge_weights = -1;
  Matrix output_bar;

  std::function<Matrix(const Case&)> forward;                       ///< X', (n d') × f
  std::function<void(const Case&, Buffer<double>& bars)> backward;  ///< all derivatives, laid out like `given`
  std::function<Matrix(const Case&)> laplacian;                     ///< Δ, (n D) × (n D)

  [[nodiscard]] Index coordinates() const {
    return stalk_dimension + (options.add_lp ? 1 : 0) + (options.add_hp ? 1 : 0);
  }
  template <class T>
  [[nodiscard]] MatrixView<T> view(ParameterId id, T* data) const {
    if (id < 0) return {};
    const auto& shape = given.info(id).shape;
    return {data + given.info(id).offset, shape[0], shape[1]};
  }
  template <class T>
  [[nodiscard]] std::span<T> span(ParameterId id, T* data) const {
    if (id < 0) return {};
    return {data + given.info(id).offset, static_cast<std::size_t>(given.info(id).size)};
  }
  template <class T>
  [[nodiscard]] FeatureView<T> features(T* data) const {
    return {data + given.info(x).offset, graph.node_count(), coordinates(), options.channels};
  }
  template <class T>
  [[nodiscard]] DiffusionWeights<T> weights(T* data) const {
    return {view(left, data), view(right, data), span(epsilon, data)};
  }
};

/// F as (i, j) number of a row of maps.
template <class Family>
typename Family::template Map<double> map_of(std::span<const double> row) {
  typename Family::template Map<double> map;
  for (Index k = 0; k < map.size(); ++k) {
    map(k / map.cols(), k % map.cols()) = row.empty() ? 1.0 : row[static_cast<std::size_t>(k)];
  }
  return map;
}

/// Δ of a case by sheaves: edge weights are part of the maps for families whose sheaves have none.
template <class Family>
Matrix laplacian_of(const Case& c) {
  constexpr int D = Family::stalk_dimension;
  using Sheaf = std::conditional_t<is_learned<Family>, Family, Diagonal<D>>;
  const double* data = c.given.values().data();
  CellularSheaf<Sheaf> sheaf(c.graph);
  for (Index arc = 0; arc < c.graph.arc_count(); ++arc) {
    typename Sheaf::template Map<double> map = sheaf.map(arc);
    if constexpr (is_learned<Family>) map = map_of<Family>(c.view(c.maps, data).row(arc));
    const double weight =
        c.weighted ? c.span(c.edge_weights, data)[static_cast<std::size_t>(c.graph.edge_of(arc))] : 1.0;
    if constexpr (CellularSheaf<Sheaf>::has_edge_weights) {
      sheaf.set_edge_weight(c.graph.edge_of(arc), weight);
    } else {
      map *= weight;
    }
    sheaf.set_map(arc, map);
  }
  return Matrix(SheafLaplacian<Sheaf>(sheaf, c.options.normalisation).matrix().toDense());
}

/// A case whose layer exists once, so that passes are cheap.
template <class Family>
Case make_case(const SheafDiffusionOptions& options, bool weighted, const Dropout& dropout = {}) {
  using Layer = SheafDiffusionLayer<Family, double>;
  Case c;
  c.graph = tiny::Task().graph;
  c.options = options;
  c.dropout = dropout;
  c.stalk_dimension = Family::stalk_dimension;
  c.map_size = Family::map_size;
  c.weighted = weighted;
  const Index n = c.graph.node_count(), m = c.graph.edge_count(), d = c.coordinates(), f = options.channels;
  const auto add = [&](const char* name, Index rows, Index columns) {
    return c.given.add(name, {rows, columns}, ParameterGroup::network);
  };
  c.x = add("x", n * d, f);
  if (is_learned<Family>) c.maps = add("maps", 2 * m, Family::map_size);
  if (options.left) c.left = add("left", d, d);
  if (options.right) c.right = add("right", f, f);
  c.epsilon = add("epsilon", d, 1);
  if (weighted) c.edge_weights = add("edge_weights", m, 1);
  c.given.finish();
  tiny::disturb(c.given, 3, 1.0);
  double* data = c.given.values().data();
  if constexpr (is_learned<Family>) {
    const auto sheaf = random_sheaf<Family>(c.graph, Stream{.seed = 4});
    for (Index arc = 0; arc < 2 * m; ++arc) {
      for (Index k = 0; k < Family::map_size; ++k) {
        const auto& map = sheaf.map(arc);
        c.view(c.maps, data)(arc, k) = map(k / map.cols(), k % map.cols());
      }
    }
  }
  for (double& w : c.span(c.edge_weights, data)) w = 1 + 0.5 * w;
  c.output_bar = Matrix(n * d, f);
  for (Index i = 0; i < c.output_bar.size(); ++i) c.output_bar.data()[i] = tiny::number(5, i);

  const auto layer = std::make_shared<Layer>(c.graph, options);
  c.forward = [layer](const Case& k) {
    const double* in = k.given.values().data();
    return Matrix(
        layer->forward(k.view(k.maps, in), k.weights(in), k.features(in), k.span(k.edge_weights, in), k.dropout)
            .eigen());
  };
  c.backward = [layer](const Case& k, Buffer<double>& bars) {
    k.forward(k);
    // Identity maps have no derivatives in edge weights.
    const std::span<double> edges = is_learned<Family> ? k.span(k.edge_weights, bars.data()) : std::span<double>();
    layer->backward(FeatureView(k.output_bar, k.coordinates()), k.features(bars.data()),
                    k.view(k.maps, bars.data()), k.weights(bars.data()), edges);
  };
  c.laplacian = laplacian_of<Family>;
  return c;
}

/// X' from its definition.
Matrix reference_output(const Case& c) {
  const Index n = c.graph.node_count(), d = c.coordinates(), f = c.options.channels, D = c.stalk_dimension;
  const double* data = c.given.values().data();
  const Matrix x = c.features(data).eigen();
  Matrix y = x;
  for (Index i = 0; i < y.size() && c.dropout.active(); ++i) {
    y.data()[i] *= c.dropout.keeps(i) ? c.dropout.scale() : 0.0;
  }
  for (Index u = 0; u < n; ++u) {
    Matrix rows = y.middleRows(u * d, d);
    if (c.left >= 0) rows = c.view(c.left, data).eigen() * rows;
    if (c.right >= 0) rows = rows * c.view(c.right, data).eigen().transpose();
    y.middleRows(u * d, d) = rows;
  }
  // Coordinates of the sheaf, then of the filters.
  const Matrix delta = c.laplacian(c);
  Matrix z = Matrix::Zero(n * d, f);
  for (Index u = 0; u < n; ++u) {
    for (Index v = 0; v < n; ++v) {
      z.middleRows(u * d, D) += delta.block(u * D, v * D, D, D) * y.middleRows(v * d, D);
    }
    for (Index i = D; i < d; ++i) {
      // D^{-1/2} (deg ± A) D^{-1/2} with D = deg + 1, and D = deg with the normalisation block.
      const double sign = c.options.add_lp && i == D ? 1 : -1;
      const double more = c.options.normalisation == sheafnn::Normalisation::block ? 0 : 1;
      const double degree = static_cast<double>(c.graph.degree(u)), own = degree + more;
      if (degree == 0) continue;
      z.row(u * d + i) = degree / own * y.row(u * d + i);
      for (Index a = c.graph.first_arc(u); a < c.graph.first_arc(u + 1); ++a) {
        const Index v = c.graph.target(a);
        z.row(u * d + i) +=
            sign / std::sqrt(own * (static_cast<double>(c.graph.degree(v)) + more)) * y.row(v * d + i);
      }
    }
  }
  Matrix r(n * d, f);
  for (Index i = 0; i < n * d; ++i) {
    for (Index j = 0; j < f; ++j) {
      const double step = c.options.activation && z(i, j) < 0 ? std::expm1(z(i, j)) : z(i, j);
      r(i, j) = (1 + std::tanh(c.span(c.epsilon, data)[static_cast<std::size_t>(i % d)])) * x(i, j) - step;
    }
  }
  return r;
}

void check_case(Case c) {
  CAPTURE(c.options.add_lp);
  CAPTURE(c.options.add_hp);
  CAPTURE(c.options.activation);
  CAPTURE(c.weighted);
  CAPTURE(c.dropout.rate);
  CAPTURE(to_string(c.options.normalisation));
  // A few hundred operations in a row, some of them (D_u^{-1/2}) with a condition of their own.
  const Matrix expected = reference_output(c);
  const double size = std::max(1.0, expected.cwiseAbs().maxCoeff());
  CHECK((c.forward(c) - expected).cwiseAbs().maxCoeff() <= 450 * machine_epsilon * size);  // 1e-13

  Buffer<double> gradient(c.given.size());
  c.backward(c, gradient);
  // What has no derivative is left out.
  ParameterSet<double> moving = c.given;
  if (c.weighted && c.map_size == 0) {
    const ParameterInfo& edges = c.given.info(c.edge_weights);
    CHECK(edges.offset + edges.size == c.given.size());
    moving = {};
    for (const ParameterInfo& info : c.given.info()) {
      if (info.name != edges.name) moving.add(info.name, info.shape, info.group);
    }
    moving.finish();
    std::copy_n(c.given.values().begin(), moving.size(), moving.values().begin());
  }
  model_gradient::check_gradient(moving, gradient, [&] {
    std::copy_n(moving.values().begin(), moving.size(), c.given.values().begin());
    return c.forward(c).cwiseProduct(c.output_bar).sum();
  });
}

template <class Family>
void check_family() {
  CAPTURE(Family::name);
  CAPTURE(Family::stalk_dimension);
  for (const Normalisation normalisation : sheaf_checks::all_normalisations) {
    SheafDiffusionOptions options{.channels = 2, .normalisation = normalisation};
    check_case(make_case<Family>(options, false));
    options.add_lp = true;
    check_case(make_case<Family>(options, true, {0.3, Stream{.seed = 6}}));
    options.add_hp = true;
    options.left = false;
    check_case(make_case<Family>(options, true));
    options.add_lp = options.activation = options.right = false;
    check_case(make_case<Family>(options, false));
  }
}

template <template <int> class Family>
void check_dimensions() {
  check_family<Family<1>>();
  check_family<Family<2>>();
  check_family<Family<3>>();
}

}  // namespace

TEST_CASE("a diffusion layer by itself: identity maps") { check_dimensions<Identity>(); }
TEST_CASE("a diffusion layer by itself: diagonal maps") { check_dimensions<Diagonal>(); }
TEST_CASE("a diffusion layer by itself: special orthogonal maps") { check_dimensions<SpecialOrthogonal>(); }
TEST_CASE("a diffusion layer by itself: conformal maps") { check_dimensions<Conformal>(); }
TEST_CASE("a diffusion layer by itself: general linear maps") { check_dimensions<GeneralLinear>(); }

namespace {

using Rotations = SpecialOrthogonal<3>;
using Layer = SheafDiffusionLayer<Rotations, double>;

/// A sheaf of weighted rotations on 60 nodes, features and the derivative of the output.
struct Task {
  CellularSheaf<Rotations> sheaf =
      random_sheaf<Rotations>(sheaf_checks::random_graph(60, 200, 1), Stream{.seed = 2});
  Index n = sheaf.graph().node_count(), arcs = sheaf.graph().arc_count(), edges = sheaf.graph().edge_count();
  SheafDiffusionOptions options{.channels = 5, .add_hp = true};
  Matrix x = sheaf_checks::random_cochain(n * 4, 5, 3), y_bar = sheaf_checks::random_cochain(n * 4, 5, 4);
  Matrix maps = Matrix(arcs, 9);
  std::vector<double> weights;

  Task() {
    for (Index e = 0; e < edges; ++e) {
      weights.push_back(0.5 + 0.1 * static_cast<double>(e % 7));
      sheaf.set_edge_weight(e, weights.back());
    }
    for (Index a = 0; a < arcs; ++a) {
      for (Index k = 0; k < 9; ++k) maps(a, k) = sheaf.map(a)(k / 3, k % 3);
    }
  }
};

/// Everything that two passes compute, one after another.
template <class S>
std::vector<S> both_passes(const Task& task, Execution execution) {
  SheafDiffusionLayer<Rotations, S> layer(task.sheaf.graph(), task.options, execution);
  auto weights = layer.default_weights(), weights_bar = layer.zero_weights();
  const Cochain<S> x = task.x.cast<S>(), y_bar = task.y_bar.cast<S>(), maps = task.maps.cast<S>();
  Cochain<S> x_bar(x.rows(), x.cols()), maps_bar = Cochain<S>::Zero(task.arcs, 9);
  const std::vector<S> edge_weights(task.weights.begin(), task.weights.end());
  std::vector<S> edge_bar(edge_weights.size()), r;
  const auto keep = [&](const auto& matrix) { r.insert(r.end(), matrix.data(), matrix.data() + matrix.size()); };
  keep(
      layer.forward(MatrixView(maps), weights, FeatureView(x, 4), edge_weights, {0.2, Stream{.seed = 8}}).eigen());
  layer.backward(FeatureView(y_bar, 4), FeatureView(x_bar, 4), MatrixView(maps_bar), weights_bar, edge_bar);
  keep(x_bar);
  keep(maps_bar);
  keep(weights_bar.left);
  keep(weights_bar.right);
  keep(weights_bar.epsilon);
  r.insert(r.end(), edge_bar.begin(), edge_bar.end());
  return r;
}

}  // namespace

TEST_CASE("a diffusion layer by itself: the same on two threads; float against double") {
  const Task task;
  const std::vector<double> wide = both_passes<double>(task, 1);
  CHECK(both_passes<double>(task, 2) == wide);
  const std::vector<float> narrow = both_passes<float>(task, 1);
  CHECK(both_passes<float>(task, 2) == narrow);
  double size = 1, worst = 0;
  for (const double value : wide) size = std::max(size, std::abs(value));
  for (std::size_t i = 0; i < wide.size(); ++i) {
    worst = test::worse(worst, std::abs(static_cast<double>(narrow[i]) - wide[i]));
  }
  // Sums over up to 60 nodes and 5 channels of numbers of a few operations each.
  CHECK(worst <= 512 * static_cast<double>(std::numeric_limits<float>::epsilon()) * size);
}

TEST_CASE("a diffusion layer by itself: sheaves, views with gaps, sums of derivatives, moving") {
  const Task task;
  std::vector<Layer> layers;
  for (int i = 0; i < 2; ++i) layers.emplace_back(task.sheaf.shared_graph(), task.options);  // the first one moves
  Layer& layer = layers.front();
  CHECK(&layer.graph() == &task.sheaf.graph());
  CHECK(layer.coordinates() == 4);
  CHECK(layer.options().channels == 5);
  const auto weights = layer.default_weights();
  CHECK(weights.left == Matrix::Identity(4, 4));
  CHECK(weights.right == Matrix::Identity(5, 5));
  CHECK(weights.epsilon == Eigen::VectorXd::Zero(4));
  const Matrix y = layer.forward(MatrixView(task.maps), weights, FeatureView(task.x, 4), task.weights).eigen();
  CHECK(y == layer.forward(task.sheaf, weights, FeatureView(task.x, 4)).eigen());

  struct Bars {
    Matrix x, maps;
    DiffusionParameters<double> weights;
    std::vector<double> edges;
  };
  Bars once{Matrix::Constant(task.x.rows(), 5, 99), Matrix::Zero(task.arcs, 9), layer.zero_weights(),
            std::vector<double>(task.weights.size())};
  Bars twice = once;
  const auto add = [&](Bars& bars) {
    layer.backward(FeatureView(task.y_bar, 4), FeatureView(bars.x, 4), MatrixView(bars.maps), bars.weights,
                   bars.edges);
  };
  add(once);
  add(twice);
  add(twice);
  CHECK(twice.x == once.x);
  CHECK(twice.maps == 2 * once.maps);
  CHECK(twice.weights.left == 2 * once.weights.left);
  CHECK(twice.weights.right == 2 * once.weights.right);
  CHECK(twice.weights.epsilon == 2 * once.weights.epsilon);
  for (std::size_t e = 0; e < once.edges.size(); ++e) CHECK(twice.edges[e] == 2 * once.edges[e]);

  // Derivatives that nobody wants; output_bar and x_bar at one place.
  Matrix bar = task.y_bar;
  layer.backward(FeatureView(std::as_const(bar), 4), FeatureView(bar, 4), {}, {});
  CHECK(bar == once.x);
  std::vector<double> edges(task.weights.size());
  layer.backward(FeatureView(task.y_bar, 4), FeatureView(bar, 4), {}, {}, edges);
  CHECK(edges == once.edges);

  // Rows with gaps, of maps and weights and of their derivatives.
  Matrix wide_maps = Matrix::Constant(task.arcs, 12, 7), wide_left = Matrix::Constant(4, 6, 7);
  wide_maps.leftCols(9) = task.maps;
  wide_left.leftCols(4) = weights.left;
  const DiffusionWeights<const double> views = weights;
  const MatrixView<const double> maps_view(wide_maps.data(), task.arcs, 9, 12),
      left_view(wide_left.data(), 4, 4, 6);
  CHECK(y ==
        layer.forward(maps_view, {left_view, views.right, views.epsilon}, FeatureView(task.x, 4), task.weights)
            .eigen());
  wide_maps.leftCols(9).setZero();
  wide_left.leftCols(4).setZero();
  layer.backward(FeatureView(task.y_bar, 4), FeatureView(bar, 4),
                 MatrixView<double>(wide_maps.data(), task.arcs, 9, 12),
                 {MatrixView<double>(wide_left.data(), 4, 4, 6), {}, {}});
  CHECK(wide_maps.leftCols(9) == once.maps);
  CHECK(wide_left.leftCols(4) == once.weights.left);
  CHECK(wide_maps.rightCols(3) == Matrix::Constant(task.arcs, 3, 7));
  CHECK(wide_left.rightCols(2) == Matrix::Constant(4, 2, 7));
}

TEST_CASE("a diffusion layer by itself: graphs without edges or nodes") {
  SheafDiffusionLayer<Diagonal<2>, double> layer(Graph(3, {}), {.channels = 2});
  const auto weights = layer.default_weights();
  const Matrix x = sheaf_checks::random_cochain(6, 2, 1);
  CHECK(layer.forward(MatrixView<const double>(nullptr, 0, 2), weights, FeatureView(x, 2)).eigen() == x);
  Matrix x_bar(6, 2);
  layer.backward(FeatureView(x, 2), FeatureView(x_bar, 2), {}, {});
  CHECK(x_bar == x);
  SheafDiffusionLayer<Diagonal<2>, double> nothing(Graph(0, {}), {.channels = 2});
  CHECK(nothing.forward(MatrixView<const double>(nullptr, 0, 2), weights, {nullptr, 0, 2, 2}).size() == 0);
}

TEST_CASE("a diffusion layer by itself: refused arguments") {
  const Task task;
  Layer layer(task.sheaf.graph(), task.options);
  auto weights = layer.default_weights();
  const DiffusionWeights<const double> views = weights;
  const FeatureView<const double> x(task.x, 4);
  const MatrixView<const double> maps(task.maps);
  Matrix bar(task.x.rows(), 5);
  const FeatureView<double> x_bar(bar, 4);
  const std::string arcs = std::to_string(task.arcs), edges = std::to_string(task.edges);
  const auto refused = [](const std::string& message, const auto& call) {
    CHECK_THROWS_WITH_AS(call(), message.c_str(), std::invalid_argument);
  };
  CHECK_THROWS_WITH_AS(layer.backward(x, x_bar, {}, {}), "backward: a forward pass must come before it",
                       std::logic_error);
  refused("graph: a null pointer is not allowed; a layer needs a graph",
          [] { Layer(std::shared_ptr<const Graph>()); });
  refused("channels: 0 is not allowed; must be between 1 and 1024", [&] { Layer(Graph(), {.channels = 0}); });
  refused("channels: 1025 is not allowed; must be between 1 and 1024",
          [&] { Layer(Graph(), {.channels = 1025}); });

  refused("shape of maps: 0 x 0 is not allowed; must be " + arcs + " x 9",
          [&] { layer.forward(MatrixView<const double>(), weights, x); });
  refused("shape of maps: 3 x 9 is not allowed; must be " + arcs + " x 9", [&] {
    layer.forward({task.maps.data(), 3, 9}, weights, x);
  });
  refused("size of edge_weights: 2 is not allowed; must be " + edges, [&] {
    layer.forward(maps, weights, x, std::vector<double>{1, 2});
  });
  refused("shape of x: 80 x 3 x 5 is not allowed; must be 60 x 4 x 5",
          [&] { layer.forward(maps, weights, FeatureView(task.x, 3)); });
  refused("coordinates: 7 is not allowed; must divide the number of rows, 240",
          [&] { static_cast<void>(FeatureView(task.x, 7)); });
  refused("shape of left weights: 0 x 0 is not allowed; must be 4 x 4", [&] {
    layer.forward(maps, {{}, views.right, views.epsilon}, x);
  });
  refused("shape of right weights: 4 x 4 is not allowed; must be 5 x 5", [&] {
    layer.forward(maps, {views.left, views.left, views.epsilon}, x);
  });
  refused("size of epsilon: 0 is not allowed; must be 4", [&] {
    layer.forward(maps, {views.left, views.right, {}}, x);
  });
  refused("dropout.rate: 1 is not allowed; must be at least 0 and below 1", [&] {
    layer.forward(maps, weights, x, {}, {1.0, {}});
  });
  refused("sheaf: a sheaf over another graph is not allowed; must have the graph of the layer",
          [&] { layer.forward(CellularSheaf<Rotations>(sheaf_checks::cycle_graph(60)), weights, x); });
  // Nothing of that was a forward pass.
  CHECK_THROWS_AS(layer.backward(x, x_bar, {}, {}), std::logic_error);

  layer.forward(maps, weights, x);
  std::vector<double> edge_bar(task.weights.size());
  refused("shape of output_bar: 80 x 3 x 5 is not allowed; must be 60 x 4 x 5",
          [&] { layer.backward(FeatureView(task.x, 3), x_bar, {}, {}); });
  refused("shape of x_bar: 0 x 0 x 0 is not allowed; must be 60 x 4 x 5", [&] { layer.backward(x, {}, {}, {}); });
  refused("shape of maps_bar: 4 x 5 is not allowed; must be " + arcs + " x 9",
          [&] { layer.backward(x, x_bar, x_bar.node(0), {}); });
  refused("shape of left weights_bar: 4 x 5 is not allowed; must be 4 x 4", [&] {
    layer.backward(x, x_bar, {}, {x_bar.node(0), {}, {}});
  });
  refused("size of epsilon_bar: " + edges + " is not allowed; must be 4", [&] {
    layer.backward(x, x_bar, {}, {{}, {}, edge_bar});
  });
  refused("size of edge_weights_bar: 3 is not allowed; must be " + edges,
          [&] { layer.backward(x, x_bar, {}, {}, std::span(edge_bar).first(3)); });
  refused("edge_weights_bar: a derivative is not allowed; the forward pass had no edge weights",
          [&] { layer.backward(x, x_bar, {}, {}, edge_bar); });

  // Parts that a layer leaves out; families without parameters.
  Layer plain(task.sheaf.graph(), {.channels = 5, .left = false, .right = false, .add_hp = true});
  CHECK(plain.default_weights().left.size() == 0);
  plain.forward(maps, weights, x);
  refused("shape of left weights_bar: 4 x 4 is not allowed; must be 0 x 0",
          [&] { plain.backward(x, x_bar, {}, weights); });
  SheafDiffusionLayer<Identity<3>, double> fixed(task.sheaf.graph(), task.options);
  refused("shape of maps: " + arcs + " x 9 is not allowed; must be " + arcs + " x 0",
          [&] { fixed.forward(maps, weights, x); });
  fixed.forward(MatrixView<const double>(), weights, x, task.weights);
  refused("edge_weights_bar: a derivative is not allowed; none for identity maps",
          [&] { fixed.backward(x, x_bar, {}, {}, edge_bar); });
}

}  // namespace test_sheaf_diffusion_layer
