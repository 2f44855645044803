/// \file
/// Directed sheaf networks: golden values, gradients along every coordinate for each of their options, the Laplacian against its
/// formula and against a real sheaf of twice the stalk dimension, networks without phases, outputs of graphs, training, checkpoints, and
/// what they refuse.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>
#include <stdexcept>
#include <string>
#include <vector>

#include "dense_algebra.hpp"
#include "golden3_case.hpp"
#include "model_gradient.hpp"
#include "network_passes.hpp"
#include "refusal.hpp"
#include "sheafnn/bsnn/pair_head.hpp"
#include "sheafnn/bsnn/pooled_network.hpp"
#include "sheafnn/every_layer.hpp"
#include "sheafnn/io/checkpoint.hpp"
#include "sheafnn/sheaf/laplacian.hpp"
#include "sheafnn/sheaf/random_sheaf.hpp"
#include "temporary_folder.hpp"
#include "tiny_task.hpp"

namespace test_directed_sheaf {
namespace {

using namespace sheafnn;
using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Complex = std::complex<double>;
using layers::DiffusionShape;
using test::message_of;

constexpr double rounding = 1e-12;

/// The task's graph with edges one way, the other way, and both ways.
Graph directed_graph() {
  const Edge pairs[] = {{0, 1}, {2, 0}, {1, 2}, {2, 1}, {3, 1}, {2, 3}, {4, 3}, {3, 4}, {2, 4}, {5, 4}, {0, 5}};
  return Graph(tiny::Task::nodes, pairs);
}
ModelOptions plain_options() {
  ModelOptions r = tiny::options();
  r.layer = LayerForm::directed;
  r.directed.charge = 0.15;
  return r;
}
using Setting = tiny::SettingOf<ModelOptions>;

std::vector<Setting> settings(bool rotations, bool bayesian, bool learned) {
  std::vector<Setting> r;
  const auto add = [&](const std::string& name, const auto& change) {
    r.push_back({name, plain_options()});
    change(r.back());
  };
  for (int choice = 0; choice < 8; ++choice) {
    add("directed " + std::to_string(choice), [&](Setting& s) {
      s.model.directed.activation = (choice & 1) != 0 ? ComplexActivation::elu : ComplexActivation::complex_relu;
      s.model.directed.imaginary_weights = (choice & 2) != 0;
      s.model.directed.imaginary_start = (choice & 4) != 0;
      s.model.directed.charge = choice % 3 == 0 ? 0.25 : 0.15;
    });
  }
  add("three layers, dropout, training nodes alone", [](Setting& s) {
    s.model.layers = 3;
    s.model.channels = 3;
    s.dropout = 0.4;
    s.only_nodes = true;
    s.model.directed.imaginary_weights = true;
  });
  add("one sheaf, norm, no weights, hidden readout", [](Setting& s) {
    s.model.linear = s.model.layer_norm = true;
    s.model.layers = 3;
    s.model.left_weights = s.model.right_weights = false;
    s.model.readout_layers = 2;
  });
  add("A alone, second linear layer, block", [](Setting& s) {
    s.model.right_weights = false;
    s.model.second_linear = true;
    s.model.normalisation = Normalisation::block;
  });
  add("B alone, no activation", [](Setting& s) {
    s.model.left_weights = s.model.activation = false;
    s.model.directed.imaginary_weights = true;
  });
  if (learned) {
    add("hidden learner of sums", [](Setting& s) {
      s.model.learner_layers = 1;
      s.model.learner = LearnerInput::summed;
    });
    add("published sums, arc features", [](Setting& s) {
      s.model.learner = LearnerInput::summed_published;
      s.model.edge_features = tiny::Task::arc_features;
      s.dropout = 0.3;
    });
  }
  for (const bool start : {false, true}) {
    add("random phases, two samples", [&](Setting& s) {
      s.model.directed.random = true;
      s.model.directed.imaginary_start = start;
      s.samples = 2;
      s.only_nodes = start;
      s.dropout = start ? 0.3 : 0;
    });
  }
  if (bayesian) {
    add("own encoder, two samples", [](Setting& s) {
      s.model.separate_encoder = true;
      s.samples = 2;
      s.dropout = 0.3;
    });
  }
  if (rotations) add("edge weights", [](Setting& s) { s.model.edge_weights = true; });
  return r;
}

template <class Model>
void check_gradients() {
  const tiny::Task task;
  Graph graph = directed_graph();
  graph.set_arc_features(task.graph.arc_features(), tiny::Task::arc_features);
  constexpr bool learned = sheaf::is_learned<typename Model::Family>;
  for (const Setting& setting :
       settings(sheaf::is_orthogonal<typename Model::Family> && learned, Model::bayesian && learned, learned)) {
    CAPTURE(Model::Family::name);
    model_gradient::check_setting<Model>(setting, task, graph, 2);
  }
}
template <class Family>
using Point = DirectedSheafNetwork<Family, double>;
template <class Family>
using Bayesian = BayesianDirectedSheafNetwork<Family, double>;

/// Δ of a given sheaf on a graph, from a layer without weights and activation: X' = X − Δ X for X = I.
template <int D>
Eigen::MatrixXcd laplacian_of_layer(const CellularSheaf<GeneralLinear<D>>& sheaf, double charge) {
  using Model =
      SheafModel<GeneralLinear<D>, GivenMaps<GeneralLinear<D>>, double, LayerKinds<layers::DirectedLayer>>;
  const Index n = sheaf.graph().node_count(), size = n * D;
  ModelOptions options{.features = 1, .channels = size, .layers = 1, .classes = 2};
  options.left_weights = options.right_weights = options.activation = false;
  options.directed = {.charge = charge, .imaginary_start = false};
  const Model model(options, 1, GivenMaps(sheaf));
  const std::vector<double> ones(static_cast<std::size_t>(n), 1.0);
  const NodeFeatures features = NodeFeatures::from_dense(std::span<const double>(ones), n, 1);
  Network<Model> network(model, sheaf.graph(), features);
  const Matrix identity = Matrix::Identity(size, size);  // n × (D · size), and as stalk coordinates × channels
  network.begin({}, MatrixView<const double>(identity.data(), n, D * size)).draw();
  const auto x = network.features_after(1);
  Eigen::MatrixXcd r(size, size);
  for (Index i = 0; i < size; ++i) {
    for (Index k = 0; k < size; ++k) {
      r(i, k) = Complex(identity(i, k) - x.data()[2 * i * size + k], -x.data()[(2 * i + 1) * size + k]);
    }
  }
  return r;
}
template <int D>
CellularSheaf<GeneralLinear<D>> some_sheaf() {
  return sheaf::random_sheaf<GeneralLinear<D>>(directed_graph(), {3, Purpose::user});
}

}  // namespace

TEST_CASE("directed sheaves: golden values") {
  golden::check<Point<SpecialOrthogonal<2>>>(golden3::directed("dsnn_so2"), golden::double_bounds);
  golden::check<Bayesian<Diagonal<2>>>(golden3::directed("bdsnn_diag2"), golden::double_bounds);
}

TEST_CASE("directed sheaves: gradients of deterministic networks") {
  check_gradients<Point<Identity<2>>>();
  check_gradients<Point<Diagonal<1>>>();
  check_gradients<Point<Diagonal<3>>>();
  check_gradients<Point<SpecialOrthogonal<2>>>();
  check_gradients<Point<SpecialOrthogonal<3>>>();
  check_gradients<Point<GeneralLinear<2>>>();
}
TEST_CASE("directed sheaves: gradients of Bayesian networks") {
  check_gradients<Bayesian<Diagonal<2>>>();
  check_gradients<Bayesian<SpecialOrthogonal<3>>>();
  check_gradients<Bayesian<GeneralLinear<2>>>();
}

TEST_CASE("directed sheaves: arcs point as pairs were listed") {
  const Graph graph = directed_graph();
  const auto direction = [&](Index u, Index v) {
    for (Index a = graph.first_arc(u); a < graph.first_arc(u + 1); ++a) {
      if (graph.target(a) == v) return direction_of(graph, a);
    }
    return 7;
  };
  CHECK(direction(0, 1) == 1);
  CHECK(direction(1, 0) == -1);
  CHECK(direction(0, 2) == -1);
  CHECK(direction(2, 0) == 1);
  CHECK(direction(1, 2) == 0);
  CHECK(direction(2, 1) == 0);
}

TEST_CASE("directed sheaves: the Laplacian is its formula, Hermitian, with eigenvalues from 0 to 2") {
  constexpr int D = 2;
  const auto given = some_sheaf<D>();
  const Graph& graph = given.graph();
  const Index n = graph.node_count();
  for (const double charge : {0.0, 0.15, 0.25}) {
    CAPTURE(charge);
    const Eigen::MatrixXcd found = laplacian_of_layer(given, charge);
    Eigen::MatrixXcd expected = Eigen::MatrixXcd::Zero(n * D, n * D);
    std::vector<Eigen::Matrix2d> scale;
    for (Index u = 0; u < n; ++u) {
      Eigen::Matrix2d degree = Eigen::Matrix2d::Zero();
      for (Index a = graph.first_arc(u); a < graph.first_arc(u + 1); ++a)
        degree += given.map(a).transpose() * given.map(a);
      scale.emplace_back(dense_algebra::inverse_root(degree + Eigen::Matrix2d::Identity()));
      expected.block(u * D, u * D, D, D) = (scale.back() * degree * scale.back()).cast<Complex>();
    }
    for (Index a = 0; a < graph.arc_count(); ++a) {
      const Index u = graph.source(a), v = graph.target(a);
      const int theta = (graph.listed(a) ? 1 : 0) - (graph.listed(graph.reverse(a)) ? 1 : 0);
      const Complex phase = std::exp(Complex(0, 2 * std::numbers::pi * charge * theta));
      const Eigen::Matrix2d transport = scale[static_cast<std::size_t>(u)] * given.map(a).transpose() *
                                        given.map(graph.reverse(a)) * scale[static_cast<std::size_t>(v)];
      expected.block(u * D, v * D, D, D) -= phase * transport.cast<Complex>();
    }
    CHECK((found - expected).cwiseAbs().maxCoeff() <= rounding);
    CHECK((found - found.adjoint()).cwiseAbs().maxCoeff() <= rounding);
    const Eigen::VectorXd spectrum = dense_algebra::hermitian_spectrum(found);
    CHECK(spectrum.minCoeff() >= -rounding);
    CHECK(spectrum.maxCoeff() < 2);
  }
}

TEST_CASE("directed sheaves: the Laplacian of a real sheaf of twice the stalk dimension") {
  const auto given = some_sheaf<2>();
  const Graph& graph = given.graph();
  constexpr double charge = 0.15;
  CellularSheaf<GeneralLinear<4>> real(graph);  // coordinates: real parts, then imaginary parts
  for (Index e = 0; e < graph.edge_count(); ++e) {
    const Index a = graph.forward_arc(e);
    const double angle = 2 * std::numbers::pi * charge * direction_of(graph, a);
    const auto turned = [](const Eigen::Matrix2d& map, double by) {
      Eigen::Matrix4d r;
      r << std::cos(by) * map, -std::sin(by) * map, std::sin(by) * map, std::cos(by) * map;
      return r;
    };
    real.set_map(a, turned(given.map(a), 0));
    real.set_map(graph.reverse(a), turned(given.map(graph.reverse(a)), angle));
  }
  const Eigen::MatrixXd expected =
      Eigen::MatrixXd(SheafLaplacian<GeneralLinear<4>>(real, Normalisation::augmented).matrix());
  const Eigen::MatrixXcd found = laplacian_of_layer(given, charge);
  double worst = 0;
  for (Index i = 0; i < found.rows(); ++i) {
    for (Index k = 0; k < found.cols(); ++k) {
      const Index row = i / 2 * 4 + i % 2, column = k / 2 * 4 + k % 2;
      worst = std::max({worst, std::abs(expected(row, column) - found(i, k).real()),
                        std::abs(expected(row + 2, column + 2) - found(i, k).real()),
                        std::abs(expected(row + 2, column) - found(i, k).imag()),
                        std::abs(expected(row, column + 2) + found(i, k).imag())});
    }
  }
  CHECK(worst <= rounding);
}

TEST_CASE("directed sheaves: without phases and with real features it is neural sheaf diffusion") {
  const tiny::Task task;
  const Graph graph = directed_graph();
  ModelOptions options = plain_options();
  options.layers = 3;
  options.directed = {.charge = 0, .activation = ComplexActivation::elu, .imaginary_start = false};
  Point<SpecialOrthogonal<3>> directed(options, 5);
  tiny::disturb(directed.parameters(), 6, 0.5);
  options.layer = LayerForm::diffusion;
  options.edge_weights = false;
  Nsd<SpecialOrthogonal<3>, double> plain(options, 5);
  auto& to = plain.parameters();
  const auto& from = directed.parameters();
  const Index h = plain.hidden_width(), row = directed.row();
  CHECK(row == 2 * h);
  for (const auto& info : to.info()) {
    std::vector<double> values = from.get(from.find(info.name), from.values());
    if (info.name.starts_with("sheaf")) {  // the columns of real parts, which come first
      std::vector<double> real;
      for (std::size_t k = 0; k < values.size(); k += static_cast<std::size_t>(2 * row)) {
        real.insert(real.end(), values.data() + k, values.data() + k + row);
      }
      values = real;
    }
    if (info.name == "lin2.weight") values.resize(static_cast<std::size_t>(info.size));
    to.set(to.find(info.name), values);
  }
  Network<Point<SpecialOrthogonal<3>>> complex(directed, graph, task.sparse);
  Network<Nsd<SpecialOrthogonal<3>, double>> real(plain, graph, task.sparse);
  static_cast<void>(complex.forward({}));
  static_cast<void>(real.forward({}));
  for (Index l = 0; l <= options.layers; ++l) {
    const auto x = complex.features_after(l);
    const auto y = real.features_after(l);
    double worst = 0;
    for (Index k = 0; k < y.size(); ++k) {
      const Index at = k / options.channels * 2 * options.channels + k % options.channels;
      worst = std::max({worst, std::abs(x.data()[at] - y.data()[k]), std::abs(x.data()[at + options.channels])});
    }
    CHECK(worst <= rounding);
  }
}

TEST_CASE("directed sheaves: conjugate phases for the reversed graph") {
  const tiny::Task task;
  std::vector<Edge> reversed;
  const Graph graph = directed_graph();
  for (Index a = 0; a < graph.arc_count(); ++a) {
    if (graph.listed(a))
      reversed.push_back({static_cast<std::int32_t>(graph.target(a)), static_cast<std::int32_t>(graph.source(a))});
  }
  const auto outputs = [&](const Graph& on, double charge) {
    ModelOptions options = plain_options();
    options.directed.charge = charge;
    Point<Diagonal<2>> model(options, 5);
    tiny::disturb(model.parameters(), 6, 0.5);
    Network<Point<Diagonal<2>>> network(model, on, task.sparse);
    static_cast<void>(network.forward({}));
    return test::last_outputs(network);
  };
  const auto forward = outputs(graph, 0.25), backward = outputs(Graph(graph.node_count(), reversed), 0.25);
  const auto turned = outputs(Graph(graph.node_count(), reversed), 0.75);
  CHECK(golden::distance(forward, backward) > 1e-3);
  CHECK(golden::distance(forward, turned) <= rounding);
}

TEST_CASE("directed sheaves: isolated nodes keep their features") {
  const tiny::Task task;                                        // its last node is isolated
  const Point<SpecialOrthogonal<3>> model(plain_options(), 5);  // ε = 0
  const Graph graph = directed_graph();
  Network<Point<SpecialOrthogonal<3>>> network(model, graph, task.sparse);
  static_cast<void>(network.forward({}));
  for (Index at = 6 * model.row(); at < 7 * model.row(); ++at) {
    CHECK(network.features_after(2).data()[at] == network.features_after(0).data()[at]);
  }
}

TEST_CASE("directed sheaves: training, early stopping and checkpoints") {
  // Every edge leads from a class to the next of three. Without directions neighbours only say which class a node does
  // not have.
  Dataset data = synthetic({.nodes = 150, .classes = 3, .features = 12, .words = 4, .degree = 6, .homophily = 0});
  std::vector<Edge> pairs;
  for (const Edge& e : data.graph.edges()) {
    const std::int32_t from = data.labels[static_cast<std::size_t>(e.u)],
                       to = data.labels[static_cast<std::size_t>(e.v)];
    pairs.push_back((from + 1) % 3 == to ? e : Edge{e.v, e.u});
  }
  data.graph = Graph(data.graph.node_count(), pairs);
  const test::TemporaryFolder folder;
  const auto check = [&]<class Model>(std::type_identity<Model>) {
    ModelOptions options{.features = data.feature_count(),
                         .channels = 4,
                         .layers = 2,
                         .classes = data.class_count};
    options.layer = LayerForm::directed;
    options.directed.imaginary_weights = true;
    Model model(options, 1);
    const auto result = train(model, data, data.splits.at(0), {.epochs = 60});
    CHECK(result.history.back().loss < result.history.front().loss);
    CHECK((result.history.back().kl > 0) == Model::bayesian);
    const std::string file = (folder.path() / "model.safetensors").string();
    io::save_checkpoint(file, model);
    const auto read = io::load_checkpoint<Model>(file);
    CHECK(read.options() == model.options());
    CHECK(predict(read, data).probabilities == predict(model, data).probabilities);
  };
  check(std::type_identity<DirectedSheafNetwork<Diagonal<2>>>());
  check(std::type_identity<BayesianDirectedSheafNetwork<Diagonal<2>>>());

  const auto test_loss = [&](double charge) {
    ModelOptions options{.features = data.feature_count(),
                         .channels = 8,
                         .layers = 2,
                         .classes = data.class_count};
    options.directed.charge = charge;
    DirectedSheafNetwork<Diagonal<2>> model(options, 1);
    return train(model, data, data.splits.at(0), {.epochs = 100}).test_nll;
  };
  CHECK(test_loss(1.0 / 3) < 0.8 * test_loss(0));
}

TEST_CASE("directed sheaves: random phases") {
  const tiny::Task task;
  const Graph graph = directed_graph();
  ModelOptions options = plain_options();
  using Model = Point<Diagonal<2>>;
  Model fixed(options, 5);
  options.directed.random = true;
  Model random(options, 5);
  for (const auto& info : fixed.parameters().info()) {
    random.parameters().set(random.parameters().find(info.name),
                            fixed.parameters().get(fixed.parameters().find(info.name),
                                                   fixed.parameters().values()));
  }
  Network<Model> certain(fixed, graph, task.sparse), network(random, graph, task.sparse);
  CHECK(!certain.draws());
  CHECK(network.draws());
  // Noise that is the identity leaves the phases where they are.
  const Index rows = graph.arc_count() + tiny::Task::nodes;
  std::vector<double> identity;
  for (Index i = 0; i < rows; ++i) identity.insert(identity.end(), {1, 0, 0, 1});
  static_cast<void>(certain.forward({}));
  static_cast<void>(network.forward({.layer_noise = {identity, identity}}));
  CHECK(golden::distance(test::last_outputs(network), test::last_outputs(certain)) <= rounding);
  // A draw is the Möbius transform of uniform rotations, here written with complex numbers.
  const double kappa = detail::concentration(SpreadRange::concentrated, 0.0).kappa;
  layers::DirectedPhases<double> phases(graph, options.directed);
  std::vector<double> turned;
  for (Index i = 0; i < rows; ++i) {
    const double angle = 3 * tiny::number(4, i);
    turned.insert(turned.end(), {std::cos(angle), -std::sin(angle), std::sin(angle), std::cos(angle)});
  }
  phases.draw(2, 0.0, {.stream = {}, .values = turned.data()});
  for (Index e = 0; e < graph.edge_count(); ++e) {
    const Index a = graph.forward_arc(e), reverse = graph.reverse(a);
    const Complex u(turned[static_cast<std::size_t>(4 * a)], turned[static_cast<std::size_t>(4 * a + 2)]);
    const Complex expected =
        (u + kappa) / (1.0 + kappa * u) *
        std::exp(Complex(0, 2 * std::numbers::pi * options.directed.charge * direction_of(graph, a)));
    CHECK(std::abs(Complex(phases.cosine(a), phases.sine(a)) - expected) <= rounding);
    CHECK(std::abs(Complex(phases.cosine(reverse), phases.sine(reverse)) - std::conj(expected)) <= rounding);
  }
  CHECK(phases.kl() == doctest::Approx(-std::log1p(-kappa * kappa)).epsilon(1e-12));  // of a wrapped Cauchy angle
  // The loss has the term once per layer.
  test::TrainingPass<double> training;
  training.labels = task.labels;
  training.nodes = task.train;
  training.kl_weight = 0.5;
  const auto result = test::train_pass(network, training);
  CHECK(result.kl == doctest::Approx(2 * phases.kl()).epsilon(1e-12));
  CHECK(result.loss == doctest::Approx(result.nll + 0.5 * result.kl).epsilon(1e-12));
}

TEST_CASE("directed sheaves: B starts at half of an orthogonal matrix") {
  ModelOptions options = plain_options();
  options.channels = 4;
  options.directed.imaginary_weights = true;
  const Point<Diagonal<2>> model(options, 3);
  for (const char* name : {"right.0", "imag_right.1"}) {
    const auto values = model.parameters().get(model.parameters().find(name), model.parameters().values());
    const Eigen::Map<const Matrix> b(values.data(), 4, 4);
    CHECK((b * b.transpose() - 0.25 * Matrix::Identity(4, 4)).cwiseAbs().maxCoeff() <= rounding);
  }
}

TEST_CASE("directed sheaves: what is refused") {
  ModelOptions options = plain_options();
  options.directed.charge = 1.5;
  CHECK(message_of([&] { Point<Diagonal<2>> model(options); }).starts_with("directed.charge: 1.5"));
  PooledOptions pooled;
  static_cast<ModelOptions&>(pooled) = plain_options();
  pooled.pooling = Pooling::harmonic;
  CHECK(message_of([&] { PooledModel<Point<Diagonal<2>>> model(pooled); }).starts_with("layer: directed"));
  Point<Diagonal<2>> model(plain_options());
  CHECK(
      message_of([&] { add_pair_head(model, class_head(PairScore::energy, 2)); }).starts_with("layer: directed"));
  const DiffusionShape<double> odd(directed_graph(), 2, false, false, 3),
      filtered(directed_graph(), 2, true, false, 4);
  const Graph graph = directed_graph();
  using Layer = layers::DirectedLayer<Diagonal<2>, double>;
  CHECK(message_of([&] { Layer layer(graph, odd, {}); }).starts_with("channels of the shape: 3"));
  CHECK(message_of([&] { Layer layer(graph, filtered, {}); }).starts_with("fixed filters: 1"));
}

TEST_CASE("directed sheaves: outputs of graphs") {
  const tiny::Task task;
  Graph graph = directed_graph();
  graph.set_graphs({0, 7});
  PooledOptions options;
  static_cast<ModelOptions&>(options) = plain_options();
  for (const Pooling pooling : {Pooling::mean, Pooling::attention}) {
    options.pooling = pooling;
    PooledModel<Point<Diagonal<2>>> model(options, 7);
    tiny::disturb(model.parameters(), 8, 0.3);
    const std::int32_t label[] = {1}, all[] = {0};
    test::TrainingPass<double> pass;
    pass.labels = label;
    pass.nodes = all;
    Network<PooledModel<Point<Diagonal<2>>>> network(model, graph, task.sparse);
    model_gradient::check_gradient(model, network, pass);
  }
}

}  // namespace test_directed_sheaf
