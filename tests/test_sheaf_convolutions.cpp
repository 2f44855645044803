/// \file
/// Convolutions on given sheaves: golden3/, gradients along every coordinate over families and options, threads, graph
/// convolutional networks, isolated nodes, training, files, refusals.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "golden_case.hpp"
#include "model_gradient.hpp"
#include "network_passes.hpp"
#include "refusal.hpp"
#include "sheafnn/bsnn/convolution_network.hpp"
#include "sheafnn/bsnn/prediction.hpp"
#include "sheafnn/bsnn/trainer.hpp"
#include "sheafnn/graph/karate.hpp"
#include "sheafnn/graph/splits.hpp"
#include "sheafnn/io/checkpoint.hpp"
#include "sheafnn/sheaf/coboundary.hpp"
#include "sheafnn/sheaf/labelled_sheaf.hpp"
#include "sheafnn/sheaf/laplacian.hpp"
#include "sheafnn/sheaf/random_sheaf.hpp"
#include "temporary_folder.hpp"
#include "tiny_task.hpp"
#include "training_check.hpp"

namespace test_sheaf_convolutions {
namespace {

using sheafnn::Activation;
using sheafnn::AroundGiven;
using sheafnn::BayesianSheafConvolutions;
using sheafnn::CellularSheaf;
using sheafnn::ConvolutionOptions;
using sheafnn::DeviationSource;
using sheafnn::Diagonal;
using sheafnn::EdgeLabels;
using sheafnn::GeneralLinear;
using sheafnn::GivenMaps;
using sheafnn::Index;
using sheafnn::Normalisation;
using sheafnn::Orthogonal;
using sheafnn::RectangularLinear;
using sheafnn::SheafConvolutions;
using sheafnn::SpecialOrthogonal;
using sheafnn::Stream;
using test::message_of;

/// Options of a file of golden3/; config = d, L, norm, act, encoder, readout, bayes, family, learned, bias.
ConvolutionOptions options_of(const golden::Case& given) {
  const std::vector<double>& config = given.file.at("config").values;
  REQUIRE(config.size() == 10);
  constexpr Normalisation norms[] = {Normalisation::augmented, Normalisation::block, Normalisation::none};
  constexpr Activation activations[] = {Activation::elu, Activation::relu, Activation::gelu, Activation::tanh,
                                        Activation::identity};
  ConvolutionOptions r;
  r.features = given.features.columns();
  r.classes = given.file.at("log_probabilities").shape.at(1);
  r.layers = static_cast<Index>(config[1]);
  r.normalisation = norms[static_cast<std::size_t>(config[2])];
  r.activation = activations[static_cast<std::size_t>(config[3])];
  r.encoder = config[4] != 0;
  r.readout = config[5] != 0;
  r.bias = config[9] != 0;
  r.spread = sheafnn::SpreadRange::published;
  r.feature_treatment = sheafnn::FeatureTreatment::none;
  for (const double width : given.file.at("channels").values) r.widths.push_back(static_cast<Index>(width));
  return r;
}

/// The given maps of a file. Diagonal maps are D × D there.
template <class Family>
CellularSheaf<Family> sheaf_of(const golden::Case& given) {
  constexpr int D = Family::stalk_dimension;
  CellularSheaf<Family> r(given.graph);
  const std::vector<double>& maps = given.file.at("given_maps").values;
  REQUIRE(static_cast<Index>(maps.size()) == given.graph.arc_count() * D * D);
  for (Index a = 0; a < given.graph.arc_count(); ++a) {
    typename CellularSheaf<Family>::Map map;
    for (Index i = 0; i < map.rows(); ++i) {
      for (Index j = 0; j < map.cols(); ++j)
        map(i, j) = maps[static_cast<std::size_t>((a * D + i) * D + (map.cols() == 1 ? i : j))];
    }
    r.set_map(a, map);
  }
  return r;
}
template <class Posterior>
Posterior posterior_of(const golden::Case& given) {
  using Family = typename Posterior::family;
  auto sheaf = sheaf_of<Family>(given);
  if constexpr (sheafnn::is_around_given<Posterior>) {
    EdgeLabels labels;
    for (const double label : given.file.at("edge_labels").values) {
      labels.of_edge.push_back(static_cast<std::int32_t>(label));
      labels.count = std::max<Index>(labels.count, labels.of_edge.back() + 1);
    }
    const bool learned = given.file.at("config").values.at(8) != 0;
    Posterior r = learned ? Posterior(std::move(sheaf), DeviationSource::arcs_and_means)
                          : Posterior(std::move(sheaf), std::move(labels));
    if constexpr (!sheafnn::sheaf::is_orthogonal<Family>)
      r.prior = {0.0, given.file.at("prior_scale").values.at(0)};
    return r;
  } else {
    return Posterior(std::move(sheaf));
  }
}

template <class Model>
void check(const std::string& name) {
  CAPTURE(name);
  const golden::Case given = golden::read_inputs("golden3", name);
  REQUIRE(given.file.at("model").values.at(0) == 2);
  REQUIRE((given.file.at("config").values.at(6) != 0) == Model::bayesian);
  const Model model =
      golden::with_parameters(Model(options_of(given), 0, posterior_of<typename Model::Posterior>(given)), given);
  golden::check_model(given, golden::double_bounds, model, golden::noise_of(given, model));
}

TEST_CASE("golden: convolutions on given sheaves") {
  check<SheafConvolutions<Diagonal<1>, double>>("snn_signed");
  check<SheafConvolutions<GeneralLinear<3>, double>>("snn_labelled_gen3");
  check<BayesianSheafConvolutions<SpecialOrthogonal<3>, double>>("bsnn_given_so3");
}

/// Options with each part of a network, for stalk dimension d.
std::vector<ConvolutionOptions> architectures(Index d) {
  ConvolutionOptions plain;
  plain.features = tiny::Task::features;
  plain.classes = tiny::Task::classes;
  plain.channels = 2;
  plain.activation = Activation::tanh;
  plain.feature_treatment = sheafnn::FeatureTreatment::rows;
  std::vector<ConvolutionOptions> r(5, plain);
  r[1].widths = {3, 5, 2};
  r[1].bias = false;
  r[1].normalisation = Normalisation::block;
  r[2].left_weights = false;
  r[2].activation = Activation::gelu;
  r[2].normalisation = Normalisation::none;
  r[3].layers = 3;
  r[3].activation = Activation::identity;
  r[4].activation = Activation::elu;
  if (tiny::Task::features % d == 0) {
    r[3].encoder = false;
    r[4].encoder = false;
    r[4].left_weights = false;
  }
  r[4].readout = d > 1;
  return r;
}

EdgeLabels labels_of(const tiny::Task& task) {
  EdgeLabels r;
  r.count = 2;
  for (Index e = 0; e < task.graph.edge_count(); ++e) r.of_edge.push_back(static_cast<std::int32_t>(e % 2));
  return r;
}

template <class Model>
void check_gradient(const ConvolutionOptions& options, const typename Model::Posterior& posterior,
                    sheafnn::KlEstimator estimator = sheafnn::KlEstimator::automatic) {
  const tiny::Task task;
  Model model(options, 7, posterior);
  tiny::disturb(model.parameters(), 8, 0.3);
  test::TrainingPass<double> pass = tiny::training_pass(task);
  pass.dropout = 0.2;
  pass.input_dropout = 0.1;
  pass.kl_estimator = estimator;
  pass.samples = Model::bayesian ? 2 : 1;
  pass.only_nodes = options.bias;
  sheafnn::Network<Model> network(model, task.graph, task.sparse), threaded(model, task.graph, task.sparse, 3);
  const test::PassResult result = model_gradient::check_gradient(model, network, pass, &threaded);
  CHECK((result.kl != 0) == Model::bayesian);
}

template <class Family>
void check_gradients() {
  CAPTURE(Family::name);
  CAPTURE(Family::stalk_dimension);
  const tiny::Task task;
  const auto sheaf = sheafnn::sheaf::random_sheaf<Family>(task.graph, Stream{.seed = 2});
  for (const ConvolutionOptions& options : architectures(Family::stalk_dimension)) {
    check_gradient<SheafConvolutions<Family, double>>(options, GivenMaps(sheaf));
    check_gradient<BayesianSheafConvolutions<Family, double>>(options,
                                                              AroundGiven<Family>(sheaf, labels_of(task)));
    check_gradient<BayesianSheafConvolutions<Family, double>>(
        options, AroundGiven<Family>(sheaf, DeviationSource::arcs_and_means), sheafnn::KlEstimator::monte_carlo);
  }
}

TEST_CASE("gradients of convolutions") {
  check_gradients<Diagonal<1>>();
  check_gradients<Diagonal<2>>();
  check_gradients<SpecialOrthogonal<3>>();
  check_gradients<Orthogonal<2>>();
  check_gradients<GeneralLinear<2>>();
  check_gradients<RectangularLinear<3, 2>>();
  check_gradients<RectangularLinear<1, 2>>();
}

template <int E>
void check_rectangular() {
  using Family = RectangularLinear<E, 2>;
  const tiny::Task task;
  const auto sheaf = sheafnn::sheaf::random_sheaf<Family>(task.graph, Stream{.seed = 2});
  const Eigen::MatrixXd delta(sheafnn::sheaf::coboundary_matrix(sheaf));
  REQUIRE(delta.rows() == E * task.graph.edge_count());
  const Eigen::MatrixXd laplacian(sheafnn::SheafLaplacian(sheaf, Normalisation::none).matrix());
  CHECK((delta.transpose() * delta - laplacian).cwiseAbs().maxCoeff() <=
        64 * std::numeric_limits<double>::epsilon());
  const Eigen::MatrixXd x = Eigen::MatrixXd::Random(sheaf.node_dimension(), 3);
  CHECK((Eigen::MatrixXd(sheafnn::sheaf::coboundary(sheaf, x)) - delta * x).norm() <=
        64 * std::numeric_limits<double>::epsilon());
  // One layer without encoder: Q x from the dense Laplacian.
  ConvolutionOptions options = architectures(2)[2];
  options.layers = 1;
  options.activation = Activation::identity;
  options.encoder = false;
  options.widths = {2, 2};
  options.feature_treatment = sheafnn::FeatureTreatment::none;
  SheafConvolutions<Family, double> model(options, 1, GivenMaps(sheaf));
  sheafnn::Network<SheafConvolutions<Family, double>> network(model, task.graph, task.sparse);
  network.forward();
  const auto right = model.parameters().get(model.parameters().find("right.0"), model.parameters().values());
  const Eigen::Map<const Eigen::Matrix<double, 2, 2, Eigen::RowMajor>> b(right.data());
  const Eigen::Map<const Eigen::Matrix<double, Eigen::Dynamic, 2, Eigen::RowMajor>> features(task.dense.data(), 14,
                                                                                             2);
  const Eigen::MatrixXd y = features * b.transpose();
  const Eigen::MatrixXd expected = y - laplacian * y;
  CHECK((Eigen::MatrixXd(network.features_after(1).eigen()) - expected).cwiseAbs().maxCoeff() <=
        256 * std::numeric_limits<double>::epsilon());
}

TEST_CASE("stalks of edges may have another dimension than stalks of nodes") {
  check_rectangular<1>();
  check_rectangular<3>();
}

/// Raw outputs of all nodes.
template <class Model>
Eigen::MatrixXd outputs_of(const Model& model, const tiny::Task& task) {
  sheafnn::Network<Model> network(model, task.graph, task.sparse);
  return network.forward().eigen();
}

TEST_CASE("with the trivial sheaf, augmented, it is a graph convolutional network") {
  const tiny::Task task;
  const Index n = tiny::Task::nodes;
  ConvolutionOptions options;
  options.features = tiny::Task::features;
  options.classes = tiny::Task::classes;
  options.widths = {4, 5, 3};
  options.encoder = options.readout = false;
  options.feature_treatment = sheafnn::FeatureTreatment::none;
  using Model = SheafConvolutions<Diagonal<1>, double>;
  Model model(options, 3, GivenMaps(CellularSheaf<Diagonal<1>>(task.graph)));
  tiny::disturb(model.parameters(), 8, 0.3);
  const auto weight = [&](const char* name, Index rows, Index columns) {
    const auto values = model.parameters().get(model.parameters().find(name), model.parameters().values());
    Eigen::MatrixXd r(rows, columns);
    for (Index i = 0; i < r.size(); ++i) r(i / columns, i % columns) = values[static_cast<std::size_t>(i)];
    return r;
  };
  Eigen::MatrixXd adjacency = Eigen::MatrixXd::Identity(n, n), x(n, 4);
  for (const sheafnn::Edge& e : task.graph.edges()) adjacency(e.u, e.v) = adjacency(e.v, e.u) = 1;
  for (Index i = 0; i < x.size(); ++i) x(i / 4, i % 4) = task.dense[static_cast<std::size_t>(i)];
  const Eigen::VectorXd root = adjacency.rowwise().sum().cwiseSqrt().cwiseInverse();
  const Eigen::MatrixXd q = root.asDiagonal() * adjacency * root.asDiagonal();
  Eigen::MatrixXd hidden = q * x * weight("right.0", 5, 4).transpose();
  hidden.rowwise() += weight("bias.0", 1, 5).row(0);
  hidden = hidden.cwiseMax(0.0).eval();
  Eigen::MatrixXd expected = q * hidden * weight("right.1", 3, 5).transpose();
  expected.rowwise() += weight("bias.1", 1, 3).row(0);
  CHECK((outputs_of(model, task) - expected).cwiseAbs().maxCoeff() <= 64 * std::numeric_limits<double>::epsilon());
  // Another sheaf gives something else: the sheaf is the one switch.
  const std::vector<double> signs = {1, -1, 1, -1, 1, 1, -1, 1, 1};
  Model with_signs(options, 3, GivenMaps(sheafnn::signed_sheaf(task.graph, signs)));
  with_signs.parameters().values() = model.parameters().values();
  CHECK((outputs_of(with_signs, task) - expected).cwiseAbs().maxCoeff() > 1e-2);
}

TEST_CASE("the plain normalisation leaves isolated nodes as they are") {
  const tiny::Task task;
  ConvolutionOptions options;
  options.features = tiny::Task::features;
  options.classes = tiny::Task::classes;
  options.layers = 1;
  options.widths = {4, 3};
  options.encoder = options.readout = false;
  options.normalisation = Normalisation::block;
  options.feature_treatment = sheafnn::FeatureTreatment::none;
  using Model = SheafConvolutions<Diagonal<1>, double>;
  const Model model(options, 3, GivenMaps(CellularSheaf<Diagonal<1>>(task.graph)));
  const auto right = model.parameters().get(model.parameters().find("right.0"), model.parameters().values());
  const Eigen::MatrixXd y = outputs_of(model, task);
  for (Index c = 0; c < 3; ++c) {
    double expected = 0;
    for (Index k = 0; k < 4; ++k)
      expected += task.dense[static_cast<std::size_t>(24 + k)] * right[static_cast<std::size_t>(c * 4 + k)];
    CHECK(std::abs(y(6, c) - expected) <= 16 * std::numeric_limits<double>::epsilon());
  }
  // One node, and no edges.
  const sheafnn::Graph one(1, {});
  const auto features = sheafnn::NodeFeatures::from_dense(std::span<const double>(task.dense).first(4), 1, 4);
  const Model alone(options, 3, GivenMaps(CellularSheaf<Diagonal<1>>(one)));
  sheafnn::Network<Model> network(alone, one, features);
  CHECK(network.forward().rows() == 1);
}

TEST_CASE("sheaves of labels") {
  const tiny::Task task;
  const Index m = task.graph.edge_count();
  std::vector<std::int32_t> labels;
  for (Index e = 0; e < m; ++e) labels.push_back(static_cast<std::int32_t>(e % 2));
  std::vector<double> table;
  for (Index i = 0; i < 2 * 2 * 4; ++i) table.push_back(tiny::number(5, i));
  const auto sheaf = sheafnn::labelled_sheaf<GeneralLinear<2>>(task.graph, labels, table);
  const auto map = [&](Index label, Index end) {
    Eigen::Matrix2d r;
    for (Index k = 0; k < 4; ++k) r(k / 2, k % 2) = table[static_cast<std::size_t>((label * 2 + end) * 4 + k)];
    return r;
  };
  for (Index e = 0; e < m; ++e) {
    CHECK(sheaf.map(task.graph.forward_arc(e)) == map(e % 2, 0));
    CHECK(sheaf.map(task.graph.reverse(task.graph.forward_arc(e))) == map(e % 2, 1));
  }
  const sheafnn::Edge pairs[] = {{0, 1}, {2, 1}};
  const sheafnn::Graph graph(3, pairs);
  const auto directed =
      sheafnn::labelled_sheaf<GeneralLinear<2>>(graph, std::vector<std::int32_t>{0, 1}, table, true);
  CHECK(directed.map(graph.forward_arc(0)) == map(0, 0));
  CHECK(directed.map(graph.forward_arc(1)) == map(1, 1));  // 2 is the tail
  CHECK(directed.map(graph.reverse(graph.forward_arc(1))) == map(1, 0));
}

TEST_CASE("convolutions train, go on where they were interrupted, and come back from files") {
  using Family = SpecialOrthogonal<2>;
  const sheafnn::Dataset data = sheafnn::karate_club();
  const CellularSheaf<Family> sheaf(data.graph);
  ConvolutionOptions options;
  options.features = data.feature_count();
  options.classes = data.class_count;
  options.channels = 16;
  const test::TemporaryFolder folder;
  const auto check = [&]<class Model, class Posterior>(std::type_identity<Model>, const Posterior& posterior) {
    const Model model = test::check_training<Model>(data, options, posterior);
    const auto path = folder.path() / (std::string(Model::kind) + ".safetensors");
    sheafnn::io::save_checkpoint(path, model);
    CHECK(sheafnn::io::read_checkpoint_info(path).model == Model::kind);
    const Model loaded = sheafnn::io::load_checkpoint<Model>(path, posterior);
    CHECK(loaded.options() == model.options());
    const auto probabilities = [&](const Model& of) {
      return sheafnn::predict(of, data, {.samples = 2}).probabilities;
    };
    CHECK(probabilities(loaded) == probabilities(model));
    const Posterior other(sheafnn::sheaf::random_sheaf<Family>(data.graph, Stream{.seed = 2}));
    CHECK(probabilities(sheafnn::io::load_checkpoint<Model>(path, other)) != probabilities(model));
  };
  check(std::type_identity<SheafConvolutions<Family>>(), GivenMaps<Family>(sheaf));
  check(std::type_identity<BayesianSheafConvolutions<Family>>(), AroundGiven<Family>(sheaf));
}

TEST_CASE("training on signs, and a prediction") {
  // Two classes; edges within a class have the sign 1, between classes −1, and each node has a noisy feature.
  const Index n = 120;
  std::vector<sheafnn::Edge> edges;
  sheafnn::Dataset data;
  std::vector<double> x;
  for (Index u = 0; u < n; ++u) {
    data.labels.push_back(static_cast<std::int32_t>(tiny::number(1, u) > 0));
    x.push_back((data.labels.back() != 0 ? 1 : -1) + 2.5 * tiny::number(2, u));
    x.push_back(1);
    for (Index k = 0; k < 4; ++k) {
      edges.push_back(
          {static_cast<std::int32_t>(u),
           static_cast<std::int32_t>((u + 1 + static_cast<Index>((1 + tiny::number(3, 4 * u + k)) * 55)) % n)});
    }
  }
  data.class_count = 2;
  data.graph = sheafnn::Graph(n, edges);
  data.features = sheafnn::NodeFeatures::from_dense(std::span<const double>(x), n, 2);
  data.splits = sheafnn::random_splits(data.labels, 2);
  std::vector<double> signs;
  for (const sheafnn::Edge& e : data.graph.edges()) {
    signs.push_back(data.labels[static_cast<std::size_t>(e.u)] == data.labels[static_cast<std::size_t>(e.v)] ? 1
                                                                                                             : -1);
  }
  ConvolutionOptions options;
  options.features = options.classes = 2;
  options.encoder = options.readout = false;
  options.channels = 8;
  options.feature_treatment = sheafnn::FeatureTreatment::none;
  sheafnn::TrainOptions training;
  training.epochs = 100;
  training.threads = 1;
  training.dropout = training.input_dropout = 0;
  using Model = SheafConvolutions<Diagonal<1>>;
  const auto accuracy = [&](const CellularSheaf<Diagonal<1>>& sheaf) {
    Model model(options, 1, GivenMaps(sheaf));
    return sheafnn::train(model, data, data.splits[0], training).test_accuracy;
  };
  const auto sheaf = sheafnn::signed_sheaf(data.graph, signs);
  const double with_signs = accuracy(sheaf), without = accuracy(CellularSheaf<Diagonal<1>>(data.graph));
  CHECK(with_signs > 0.85);
  CHECK(with_signs > without + 0.1);

  EdgeLabels labels;
  labels.count = 2;
  for (const double sign : signs) labels.of_edge.push_back(sign < 0 ? 1 : 0);
  BayesianSheafConvolutions<Diagonal<1>> bayesian(options, 1, AroundGiven<Diagonal<1>>(sheaf, labels));
  training.kl_maximum = 1e-3;
  CHECK(sheafnn::train(bayesian, data, data.splits[0], training).test_accuracy > 0.8);
  const auto prediction = sheafnn::predict(bayesian, data, {.samples = 3});
  CHECK(std::any_of(prediction.mutual_information.begin(), prediction.mutual_information.end(),
                    [](double value) { return value > 0; }));
}

TEST_CASE("convolutions that cannot be are refused") {
  const tiny::Task task;
  using Model = SheafConvolutions<Diagonal<2>>;
  const GivenMaps maps(CellularSheaf<Diagonal<2>>(task.graph));
  ConvolutionOptions options = architectures(2)[0];
  CHECK(message_of([&] { Model(options, 0); }) ==
        "sheaves: 0 is not allowed; a model with given maps needs a sheaf: give it as the posterior");
  options.readout = false;
  CHECK(message_of([&] { Model(options, 0, maps); }) ==
        "readout: false is not allowed; needs the stalk dimension 1, not 2");
  options.readout = true;
  options.widths = {2, 2};
  CHECK(message_of([&] { Model(options, 0, maps); }) ==
        "widths: 2 is not allowed; expected 3 numbers, c_0 to c_2");
  options.widths = {2, 2000, 2};
  CHECK(message_of([&] { Model(options, 0, maps); }) ==
        "widths[1]: 2000 is not allowed; must be between 1 and 1024");
  options.widths = {3, 2, 2};
  options.encoder = false;
  CHECK(message_of([&] { Model(options, 0, maps); }) ==
        "widths[0]: 3 is not allowed; without the encoder it must be 2");
  options.features = 5;
  CHECK(message_of([&] { Model(options, 0, maps); }) ==
        "encoder: false is not allowed; the 5 features must be a multiple of the stalk dimension, 2");
  CHECK(message_of([&] { static_cast<void>(sheafnn::signed_sheaf(task.graph, std::vector<double>(9, 2.0))); }) ==
        "signs[0]: 2 is not allowed; must be 1 or -1");
}

}  // namespace
}  // namespace test_sheaf_convolutions
