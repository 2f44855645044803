/// \file
/// Networks of convolutions, waves, attention, copresheaves and directed layers: the known networks that they contain, what they do at isolated
/// nodes, their noise, training and checkpoints, and what they refuse.
#include <doctest/doctest.h>

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "mixing_layers.hpp"
#include "network_passes.hpp"
#include "refusal.hpp"
#include "sheafnn/every_layer.hpp"
#include "sheafnn/io/checkpoint.hpp"
#include "temporary_folder.hpp"
#include "tiny_task.hpp"

namespace test_layer_form_networks {
namespace {

using namespace sheafnn;
using test::message_of;
using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Plain = AnyNsd<Identity<1>, double>;
using Rotating = AnyNsd<SpecialOrthogonal<3>, double>;

constexpr LayerForm others[] = {LayerForm::convolution, LayerForm::wave, LayerForm::attention,
                                LayerForm::copresheaf, LayerForm::directed};
constexpr double rounding = 1e-13;

ModelOptions options_of(LayerForm form) {
  ModelOptions r = tiny::options();
  r.layer = form;
  r.channels = 3;
  r.attention.width = 2;
  return r;
}
template <class Model>
Model model_of(const ModelOptions& options) {
  Model r(options, 5);
  tiny::disturb(r.parameters(), 6, 0.5);
  return r;
}
Matrix parameter(const Plain& model, const std::string& name) {
  const auto id = model.parameters().find(name);
  const auto& shape = model.parameters().info(id).shape;
  const std::vector<double> values = model.parameters().get(id, model.parameters().values());
  return Eigen::Map<const Matrix>(values.data(), shape.front(), static_cast<Index>(values.size()) / shape.front());
}
template <class Model>
Matrix features_after(const Network<Model>& network, Index l) {
  const auto x = network.features_after(l);
  return Eigen::Map<const Matrix>(x.data(), x.nodes(), x.coordinates() * x.channels());
}
Matrix elu(const Matrix& x) {
  return x.unaryExpr([](double value) { return value > 0 ? value : std::expm1(value); });
}

}  // namespace

TEST_CASE("layer forms: convolution with identity maps is a layer of GCN") {
  const tiny::Task task;
  ModelOptions options = options_of(LayerForm::convolution);
  options.left_weights = false;
  const Plain model = model_of<Plain>(options);
  Network<Plain> network(model, task.graph, task.sparse);
  static_cast<void>(network.forward({}));
  Matrix propagation = Matrix::Zero(task.nodes, task.nodes);  // (D + I)^{-1/2} (A + I) (D + I)^{-1/2}
  const auto scale = [&](Index u) { return 1 / std::sqrt(static_cast<double>(task.graph.degree(u)) + 1); };
  for (Index u = 0; u < task.nodes; ++u) propagation(u, u) = scale(u) * scale(u);
  for (const Edge& e : task.graph.edges()) {
    propagation(e.u, e.v) = propagation(e.v, e.u) = scale(e.u) * scale(e.v);
  }
  for (Index l = 0; l < options.layers; ++l) {
    const std::string number = "." + std::to_string(l);
    const Matrix x = features_after(network, l), b = parameter(model, "bias" + number);
    Matrix expected = propagation * x * parameter(model, "right" + number).transpose();
    expected.rowwise() += Eigen::Map<const Eigen::RowVectorXd>(b.data(), b.size());
    CHECK((features_after(network, l + 1) - elu(expected)).cwiseAbs().maxCoeff() <= rounding);
  }
}

TEST_CASE("layer forms: an equation that reads the input of the layer before is a wave without weights") {
  const tiny::Task task;
  ModelOptions options = options_of(LayerForm::wave);
  options.layers = 4;
  options.left_weights = options.right_weights = options.activation = false;
  const auto wave = model_of<Rotating>(options);
  options.layer = LayerForm::diffusion;
  using Equation = SheafModel<SpecialOrthogonal<3>, PointMass<SpecialOrthogonal<3>>, double,
                              LayerKinds<mixing_layers::WaveByEquation>>;
  options.edge_weights = wave.options().edge_weights;
  const auto equation = model_of<Equation>(options);
  test::TrainingPass<double> pass;
  pass.labels = task.labels;
  pass.nodes = task.train;
  Network<Rotating> a(wave, task.graph, task.sparse);
  Network<Equation> b(equation, task.graph, task.sparse);
  CHECK(std::abs(test::train_pass(a, pass).loss - test::train_pass(b, pass).loss) <= rounding);
  REQUIRE(a.gradient().size() == b.gradient().size());
  for (Index i = 0; i < a.gradient().size(); ++i) CHECK(std::abs(a.gradient()[i] - b.gradient()[i]) <= rounding);
}

TEST_CASE("layer forms: attention with identity maps is a layer of GAT") {
  const tiny::Task task;
  ModelOptions options = options_of(LayerForm::attention);
  options.left_weights = false;
  const Plain model = model_of<Plain>(options);
  Network<Plain> network(model, task.graph, task.sparse);
  static_cast<void>(network.forward({}));
  for (Index l = 0; l < options.layers; ++l) {
    const std::string number = std::to_string(l);
    const Matrix x = features_after(network, l), y = x * parameter(model, "right." + number).transpose();
    const Matrix wx = x * parameter(model, "attention." + number + ".weight").transpose();
    const Matrix a = parameter(model, "attention." + number + ".vector");
    const Index g = wx.cols();
    const auto weight = [&](Index u, Index v) {
      double score = 0;
      for (Index r = 0; r < g; ++r) score += a(0, r) * wx(u, r) + a(0, g + r) * wx(v, r);
      return std::exp(score > 0 ? score : 0.2 * score);
    };
    Matrix expected = Matrix::Zero(task.nodes, y.cols());
    for (Index u = 0; u < task.nodes; ++u) {
      double sum = weight(u, u);
      expected.row(u) = sum * y.row(u);
      for (Index arc = task.graph.first_arc(u); arc < task.graph.first_arc(u + 1); ++arc) {
        const Index v = task.graph.target(arc);
        expected.row(u) += weight(u, v) * y.row(v);
        sum += weight(u, v);
      }
      expected.row(u) /= sum;
    }
    CHECK((features_after(network, l + 1) - elu(expected)).cwiseAbs().maxCoeff() <= rounding);
  }
}

TEST_CASE("layer forms: attention with rotations moves no node further out than the furthest") {
  const tiny::Task task;
  ModelOptions options = options_of(LayerForm::attention);
  options.left_weights = options.right_weights = options.activation = false;
  options.layers = 6;
  const auto model = model_of<Rotating>(options);
  Network<Rotating> network(model, task.graph, task.sparse);
  static_cast<void>(network.forward({}));
  for (Index l = 0; l < options.layers; ++l) {
    CHECK(features_after(network, l + 1).rowwise().norm().maxCoeff() <=
          features_after(network, l).rowwise().norm().maxCoeff() * (1 + rounding));
  }
}

TEST_CASE("layer forms: isolated nodes, one node, no edges") {
  const tiny::Task task;  // its last node is isolated
  const auto one_feature = NodeFeatures::from_dense(std::span<const double>(task.dense).first(4), 1, 4);
  const Graph one(1, {}), none(tiny::Task::nodes, {});
  for (const LayerForm form : others) {
    CAPTURE(to_string(form));
    const auto model = model_of<Rotating>(options_of(form));
    Network<Rotating> network(model, task.graph, task.sparse);
    static_cast<void>(network.forward({}));
    const Matrix before = features_after(network, 0).row(6), after = features_after(network, 1).row(6);
    if (form == LayerForm::wave) CHECK(before == after);
    if (form == LayerForm::copresheaf) {
      const auto bias = model.parameters().get(model.parameters().find("bias.0"), model.parameters().values());
      for (Index k = 0; k < 9; ++k) {
        const double b = bias[static_cast<std::size_t>(k % 3)];
        CHECK(std::abs(after(0, k) - before(0, k) - (b > 0 ? b : std::expm1(b))) <= rounding);
      }
    }
    const std::int32_t label[] = {1}, node[] = {0};
    Network<Rotating> alone(model, one, one_feature), apart(model, none, task.sparse);
    test::TrainingPass<double> pass;
    pass.labels = label;
    pass.nodes = node;
    CHECK(std::isfinite(test::train_pass(alone, pass).loss));
    pass.labels = task.labels;
    pass.nodes = task.train;
    CHECK(std::isfinite(test::train_pass(apart, pass).loss));
    // Without edges the nodes do not see each other.
    const Matrix all = features_after(apart, model.options().layers);
    CHECK((all.row(0) - features_after(alone, model.options().layers)).cwiseAbs().maxCoeff() <= rounding);
  }
}

TEST_CASE("layer forms: noise of attention") {
  const tiny::Task task;
  ModelOptions options = options_of(LayerForm::attention);
  options.attention = {.heads = 5, .width = 2, .random = true};
  const auto model = model_of<Rotating>(options);
  Network<Rotating> network(model, task.graph, task.sparse);
  CHECK(network.draws());
  CHECK(network.sample_count(7) == 7);
  const Index rows = task.graph.arc_count() + tiny::Task::nodes;
  ForwardPass<double> pass{.seed = 3, .epoch = 4, .training = true};
  std::vector<std::vector<double>> noise;
  for (Index l = 0; l < options.layers; ++l) {
    const Stream stream{3, Purpose::layer_noise, 4, static_cast<std::uint32_t>(l), 0};
    std::vector<double>& of = noise.emplace_back(static_cast<std::size_t>(rows * 5));
    for (Index i = 0; i < rows; ++i) {
      fill_normals<5>(of.data() + i * 5, stream, static_cast<std::uint32_t>(i));
    }
  }
  const auto outputs = [&](const ForwardPass<double>& of, Index sample) {
    network.begin(of).draw(sample);
    return test::last_outputs(network);
  };
  const std::vector<double> drawn = outputs(pass, 0), other = outputs(pass, 1);
  CHECK(drawn != other);
  pass.layer_noise = {noise.begin(), noise.end()};
  const std::vector<double> given = outputs(pass, 0);
  for (std::size_t i = 0; i < drawn.size(); ++i) CHECK(std::abs(given[i] - drawn[i]) <= rounding);
  CHECK(message_of([&] { network.begin({.layer_noise = {noise[0]}}); }).starts_with("layer_noise: 1"));
  const std::vector<double> few(3);
  CHECK(message_of([&] { network.begin({.layer_noise = {few, few}}); }).starts_with("size of layer_noise[0]: 3"));

  // A scale of 0.13 at first, and a term of the loss that counts.
  test::TrainingPass<double> training;
  training.labels = task.labels;
  training.nodes = task.train;
  training.kl_weight = 0.5;
  const auto result = test::train_pass(network, training);
  CHECK(result.kl > 0);
  CHECK(result.loss == doctest::Approx(result.nll + 0.5 * result.kl));
}

TEST_CASE("layer forms: the same bits for any number of threads") {
  constexpr Index n = 900, p = 4;  // several chunks of nodes
  std::vector<Edge> edges;
  for (Index i = 0; i < 3 * n; ++i) {
    const auto node = [&](std::uint64_t seed) {
      return static_cast<std::int32_t>((tiny::number(seed, i) + 1) / 2 * (n - 1));
    };
    edges.push_back({node(1), node(2)});
  }
  const Graph graph(n, edges);
  std::vector<double> dense;
  for (Index i = 0; i < n * p; ++i) dense.push_back(tiny::number(3, i));
  const auto features = NodeFeatures::from_dense(std::span<const double>(dense), n, p);
  std::vector<std::int32_t> labels, nodes;
  for (std::int32_t u = 0; u < n; ++u) {
    labels.push_back(u % 3);
    if (u % 4 != 1) nodes.push_back(u);
  }
  for (const LayerForm form : others) {
    CAPTURE(to_string(form));
    ModelOptions options = options_of(form);
    options.attention = {
        .heads = 2, .width = 3, .transported = true, .residual = true, .normalised = true, .random = true};
    const auto model = model_of<Rotating>(options);
    test::TrainingPass<double> pass;
    pass.labels = labels;
    pass.nodes = nodes;
    pass.dropout = 0.2;
    pass.kl_weight = 0.1;
    pass.only_nodes = true;
    Network<Rotating> one(model, graph, features, 1), three(model, graph, features, 3);
    CHECK(test::train_pass(one, pass).loss == test::train_pass(three, pass).loss);
    CHECK(std::equal(one.gradient().begin(), one.gradient().end(), three.gradient().begin()));
    CHECK(std::any_of(one.gradient().begin(), one.gradient().end(), [](double bar) { return bar != 0; }));
  }
}

TEST_CASE("layer forms: training and checkpoints") {
  const Dataset data = karate_club();
  const test::TemporaryFolder folder;
  for (const LayerForm form : others) {
    CAPTURE(to_string(form));
    ModelOptions options{.features = data.feature_count(),
                         .channels = 4,
                         .layers = 2,
                         .classes = data.class_count};
    options.layer = form;
    options.attention.random = true;
    AnyNsd<SpecialOrthogonal<3>> model(options, 1);
    const auto result = train(model, data, data.splits.at(0), {.epochs = 40, .samples = 1});
    CHECK(result.history.back().loss < result.history.front().loss);
    CHECK((result.history.back().kl > 0) == (form == LayerForm::attention));
    const std::string file = (folder.path() / "model.safetensors").string();
    io::save_checkpoint(file, model);
    const auto read = io::load_checkpoint<AnyNsd<SpecialOrthogonal<3>>>(file);
    CHECK(read.options() == model.options());
    CHECK(predict(read, data).probabilities == predict(model, data).probabilities);
  }
}

TEST_CASE("layer forms: what is refused") {
  for (const LayerForm form : others) {
    const std::string name(to_string(form));
    CAPTURE(name);
    ModelOptions options = options_of(form);
    CHECK(message_of([&] { Nsd<Identity<1>, double> model(options); }) ==
          "layer: " + name +
              " is not allowed; the model's LayerKinds have no layer with it: <sheafnn/every_layer.hpp> has one");
    options.filter.basis = PolynomialBasis::chebyshev;
    CHECK(message_of([&] { Plain model(options); }).find("the layer " + name + " has no filter") !=
          std::string::npos);
    options = options_of(form);
    options.residual.form = ResidualForm::initial;
    CHECK(message_of([&] { Plain model(options); }).starts_with("residual.form: initial"));
    options = options_of(form);
    options.add_lp = true;
    const std::string refused = message_of([&] { Plain model(options); });
    CHECK((refused == "nothing was thrown") == (form == LayerForm::convolution || form == LayerForm::wave));
  }
  ModelOptions options = options_of(LayerForm::copresheaf);
  options.edge_weights = true;
  CHECK(message_of([&] { Rotating model(options); }).starts_with("edge_weights: true"));
  options = options_of(LayerForm::attention);
  options.attention.normalised = true;
  options.normalisation = Normalisation::block;
  CHECK(message_of([&] { Plain model(options); }).starts_with("normalisation: block"));
  options = options_of(LayerForm::attention);
  options.attention.heads = 0;
  CHECK(message_of([&] { Plain model(options); }).starts_with("attention.heads: 0"));
  // A model with one kind of layer has that by default.
  options.attention.heads = 1;
  options.layer.reset();
  CHECK(*SheafAttention<Identity<1>, double>(options).options().layer == LayerForm::attention);
  CHECK(*Plain(options).options().layer == LayerForm::diffusion);
  options.layer = LayerForm::wave;
  CHECK(message_of([&] { SheafAttention<Identity<1>, double> model(options); }).starts_with("layer: wave"));
}

}  // namespace test_layer_form_networks
