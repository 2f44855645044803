// Cooperative networks as a whole: operators against the sheaf Laplacian, threads, precision, nodes, noise, learned
// maps, checkpoints, and what is refused.
#include <doctest/doctest.h>

#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "network_passes.hpp"
#include "sheafnn/bsnn/cooperative_network.hpp"
#include "sheafnn/bsnn/learned_node_maps.hpp"
#include "sheafnn/graph/synthetic.hpp"
#include "sheafnn/io/checkpoint.hpp"
#include "sheafnn/io/node_maps_file.hpp"
#include "sheafnn/io/npz_archive.hpp"
#include "sheafnn/sheaf/cellular_sheaf.hpp"
#include "sheafnn/sheaf/laplacian.hpp"
#include "temporary_folder.hpp"
#include "tiny_task.hpp"
#include "worst.hpp"

namespace cooperative_network_test {

using sheafnn::CooperativeOptions;
using sheafnn::Index;
using sheafnn::Network;
using Doubles = std::vector<double>;

/// A graph large enough for every parallel loop to be divided.
const sheafnn::Dataset& task() {
  static const sheafnn::Dataset data =
      sheafnn::synthetic({.nodes = 701, .classes = 3, .features = 60, .degree = 5, .splits = 1});
  return data;
}
CooperativeOptions options() {
  CooperativeOptions r;
  r.features = task().feature_count();
  r.classes = 3;
  r.channels = 6;
  r.layers = 2;
  r.learner_width = 8;
  return r;
}
template <class Model>
test::TrainingPass<typename Model::Scalar> training_pass() {
  test::TrainingPass<typename Model::Scalar> pass;
  pass.labels = task().labels;
  pass.nodes = task().splits[0].train;
  pass.seed = 4;
  pass.epoch = 6;
  pass.input_dropout = pass.dropout = 0.2;
  pass.kl_weight = 0.2;
  return pass;
}

/// Loss, outputs and gradient of a training pass, then the outputs of an evaluation.
template <class Model>
Doubles everything(const CooperativeOptions& of, int threads,
                   const test::TrainingPass<typename Model::Scalar>& pass) {
  const Model model(of, 3);
  Network<Model> network(model, task().graph, task().features, threads);
  Doubles r = {test::train_pass(network, pass).loss};
  const auto add = [&](const auto& values) { r.insert(r.end(), values.begin(), values.end()); };
  add(test::last_outputs(network));
  add(network.gradient());
  test::evaluate(network, 4, 6, 2, [&](Index) { add(test::last_outputs(network)); });
  return r;
}

template <class Model>
void check_threads(const CooperativeOptions& of) {
  auto pass = training_pass<Model>();
  pass.only_nodes = true;
  const Doubles one = everything<Model>(of, 1, pass);
  for (const double value : one) REQUIRE(std::isfinite(value));
  CHECK(everything<Model>(of, 2, pass) == one);
  CHECK(everything<Model>(of, 3, pass) == one);
}

template <template <int, class> class Kind>
void check_precision() {
  const auto check = [](const Doubles& wide, const Doubles& narrow) {
    REQUIRE(wide.size() == narrow.size());
    double worst = 0, largest = 1;
    for (std::size_t i = 0; i < wide.size(); ++i) {
      worst = test::worse(worst, std::abs(wide[i] - narrow[i]));
      largest = std::max(largest, std::abs(wide[i]));
    }
    CHECK(worst <= 2e-4 * largest);
  };
  check(everything<Kind<3, double>>(options(), 1, training_pass<Kind<3, double>>()),
        everything<Kind<3, float>>(options(), 1, training_pass<Kind<3, float>>()));
}

}  // namespace cooperative_network_test

using namespace cooperative_network_test;

TEST_CASE("with T = S both operators of a cooperative sheaf are the augmented Laplacian of a bundle") {
  constexpr int D = 3;
  constexpr Index f = 5;
  const tiny::Task tiny;
  const Index n = tiny::Task::nodes;
  const sheafnn::ArcLists lists = sheafnn::arc_lists(tiny.graph);
  const sheafnn::layers::NodeDegrees<double> degrees(lists);
  sheafnn::layers::NodeMaps<D, double> maps(degrees, true);
  Doubles raw(static_cast<std::size_t>(n * 8));  // T = S
  for (std::size_t i = 0; i < raw.size(); ++i) {
    raw[i] = 2 * tiny::number(8, static_cast<Index>(i / 8 * 4 + i % 4));
  }
  sheafnn::layers::predict_node_maps<D, double>(1, sheafnn::MatrixView<const double>(raw.data(), n, 8), maps);
  sheafnn::CellularSheaf<sheafnn::Conformal<D>> sheaf(tiny.graph);
  for (Index a = 0; a < tiny.graph.arc_count(); ++a) {
    Eigen::Matrix3d map;
    for (int k = 0; k < D * D; ++k)
      map(k / D, k % D) = maps.map(sheafnn::layers::MapSide::out, tiny.graph.source(a))[k];
    sheaf.set_map(a, map);
  }
  const sheafnn::SheafLaplacian laplacian(sheaf, sheafnn::Normalisation::augmented);
  sheafnn::Cochain<double> x(n * D, f);
  for (Index i = 0; i < x.size(); ++i) x.data()[i] = tiny::number(9, i);
  // ε = 0, no mixing, act = identity: X' = X − Δ Δ X.
  sheafnn::detail::CooperativeWorkspace<double> work(n * D * f);
  sheafnn::layers::CooperativeLayer<D, double> layer(lists, f, {false, false, true, sheafnn::Activation::identity},
                                                     work);
  const Doubles epsilon(D, 0.0);
  layer.forward(1, {{}, {}, epsilon}, maps, sheafnn::FeatureView<const double>(x.data(), n, D, f), {},
                sheafnn::NodeSelection(n));
  const sheafnn::Cochain<double> expected = x - laplacian.apply(laplacian.apply(x));
  for (Index i = 0; i < x.size(); ++i) CHECK(std::abs(layer.output().data()[i] - expected.data()[i]) < 1e-13);
}

TEST_CASE("operators on directed arcs against matrices, with either diagonal") {
  constexpr int D = 2;
  constexpr Index n = 5, f = 3;
  using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const std::vector<sheafnn::Edge> list = {{0, 1}, {0, 2}, {2, 0}, {3, 2}, {4, 2}, {4, 3}};
  const sheafnn::DirectedArcs arcs(n, list);
  const sheafnn::ArcLists lists = arcs.lists();
  for (const bool in_degree : {false, true}) {
    CAPTURE(in_degree);
    const sheafnn::layers::NodeDegrees<double> degrees(lists, in_degree);
    sheafnn::layers::NodeMaps<D, double> maps(degrees, true);
    Doubles raw(static_cast<std::size_t>(4 * n));
    for (std::size_t i = 0; i < raw.size(); ++i) raw[i] = tiny::number(8, static_cast<Index>(i));
    sheafnn::layers::predict_node_maps<D, double>(1, sheafnn::MatrixView<const double>(raw.data(), n, 4), maps);
    const auto map = [&](sheafnn::layers::MapSide side, Index u) {
      return Eigen::Map<const Eigen::Matrix<double, D, D, Eigen::RowMajor>>(maps.map(side, u));
    };
    // The augmented Laplacians of the arcs that leave and that enter, of the latter the transpose.
    const auto factor = [&](int op, Index u) {
      const auto side = op == 0 ? sheafnn::layers::MapSide::out : sheafnn::layers::MapSide::in;
      const double degree = static_cast<double>((op == 0 ? lists.out : lists.in).degree(u)),
                   s = maps.scale(side, u);
      return 1 / std::sqrt(degree * s * s + 1);
    };
    Matrix product = Matrix::Identity(n * D, n * D);
    for (int op = 0; op < 2; ++op) {
      const auto side = op == 0 ? sheafnn::layers::MapSide::out : sheafnn::layers::MapSide::in;
      Matrix laplacian = Matrix::Zero(n * D, n * D);
      for (Index u = 0; u < n; ++u) {
        const double degree = static_cast<double>((op == 1 && in_degree ? lists.in : lists.out).degree(u));
        const double s = factor(op, u) * maps.scale(side, u);
        laplacian.block(u * D, u * D, D, D) = degree * s * s * Matrix::Identity(D, D);
        for (const Index v : lists.out.of(u)) {
          laplacian.block(u * D, v * D, D, D) = -factor(op, u) * factor(op, v) *
                                                map(sheafnn::layers::MapSide::out, u).transpose() *
                                                map(sheafnn::layers::MapSide::in, v);
        }
      }
      product = laplacian * product;
    }
    Matrix x(n * D, f);
    for (Index i = 0; i < x.size(); ++i) x.data()[i] = tiny::number(11, i);
    sheafnn::detail::CooperativeWorkspace<double> work(n * D * f);
    sheafnn::layers::CooperativeLayer<D, double> layer(lists, f, {false, false, true, sheafnn::Activation::identity},
                                               work);
    const Doubles epsilon(D, 0.0);
    layer.forward(1, {{}, {}, epsilon}, maps, sheafnn::FeatureView<const double>(x.data(), n, D, f), {},
                  sheafnn::NodeSelection(n));
    const Matrix expected = x - product * x;
    for (Index i = 0; i < x.size(); ++i) CHECK(std::abs(layer.output().data()[i] - expected.data()[i]) < 1e-13);
  }
}

TEST_CASE("cooperative networks give the same bits on any number of threads") {
  CooperativeOptions most = options();
  most.learner = sheafnn::NodeLearnerKind::sage;
  most.learner_layers = 2;
  most.learner_width = 40;
  most.norm = sheafnn::FeatureNorm::layer;
  most.readout_layers = 2;
  check_threads<sheafnn::Csnn<3, float>>(most);
  most.learner = sheafnn::NodeLearnerKind::sage_projected;
  check_threads<sheafnn::Csnn<3, float>>(most);
  most.directed = most.in_degree_diagonal = true;
  check_threads<sheafnn::Csnn<3, float>>(most);
  most.separate_encoder = true;
  most.norm = sheafnn::FeatureNorm::batch;
  check_threads<sheafnn::Bcsnn<3, float>>(most);
  check_threads<sheafnn::Bcsnn<3, float>>(options());
  most.separate_encoder = false;
  most.layer_learners = true;
  check_threads<sheafnn::Bcsnn<3, float>>(most);
}

TEST_CASE("cooperative networks in single precision are those in double precision up to rounding") {
  check_precision<sheafnn::Csnn>();
  check_precision<sheafnn::Bcsnn>();
}

TEST_CASE("outputs of some nodes are those of all") {
  using Model = sheafnn::Bcsnn<3, double>;
  for (const sheafnn::FeatureNorm norm : {sheafnn::FeatureNorm::layer, sheafnn::FeatureNorm::batch}) {
    CooperativeOptions of = options();
    of.norm = norm;
    const Model model(of, 3);
    Network<Model> network(model, task().graph, task().features);
    network.forward({.seed = 2, .sample = 5});
    const Doubles all = test::last_outputs(network);
    const std::vector<std::int32_t> nodes = {0, 3, 77, 700};
    network.forward({.seed = 2, .sample = 5, .nodes = nodes});
    const Doubles some = test::last_outputs(network);
    REQUIRE(some.size() == 12);
    for (std::size_t i = 0; i < some.size(); ++i) {
      CHECK(some[i] == doctest::Approx(all[static_cast<std::size_t>(3 * nodes[i / 3]) + i % 3]).epsilon(1e-13));
    }
  }
}

TEST_CASE("batch norm gives every column mean b and standard deviation w") {
  constexpr Index n = 300, h = 19;
  Doubles x(n * h), scale(h), shift(h);
  for (Index u = 0; u < n; ++u) {
    for (Index c = 0; c < h; ++c)
      x[static_cast<std::size_t>(u * h + c)] = std::sin(0.7 * double(u * h + c)) + double(c);
  }
  for (std::size_t c = 0; c < h; ++c) {
    scale[c] = 0.5 + 0.1 * double(c);
    shift[c] = 1 - 0.2 * double(c);
  }
  sheafnn::layers::BatchNorm<double> norm(n, h);
  norm.forward({}, {scale, shift}, {x.data(), n, h}, sheafnn::NodeSelection(n));
  const auto y = norm.output();
  for (Index c = 0; c < h; ++c) {
    double mean = 0, square = 0, of_y = 0, of_square = 0;
    for (Index u = 0; u < n; ++u) {
      mean += x[static_cast<std::size_t>(u * h + c)] / n;
      of_y += y(u, c) / n;
    }
    for (Index u = 0; u < n; ++u) {
      const double centred = x[static_cast<std::size_t>(u * h + c)] - mean;
      square += centred * centred / n;
      of_square += (y(u, c) - of_y) * (y(u, c) - of_y) / n;
    }
    const auto k = static_cast<std::size_t>(c);
    CHECK(std::abs(of_y - shift[k]) < 1e-13);
    CHECK(std::abs(of_square - scale[k] * scale[k] * square / (square + 1e-5)) < 1e-12);
  }
}

TEST_CASE("directed models go along the arcs that a graph was built from") {
  using Model = sheafnn::Csnn<2, double>;
  const sheafnn::Dataset& data = task();
  CooperativeOptions of = options();
  of.learner = sheafnn::NodeLearnerKind::sage;
  const Model undirected(of, 3);
  of.directed = true;
  const Model directed(of, 3);
  const sheafnn::DirectedArcs arcs = sheafnn::listed_arcs(data.graph);
  CHECK(arcs.arc_count() == data.graph.edge_count());  // the generator lists each edge once
  Network<Model> given(undirected, data.graph, arcs, data.features);
  given.forward();
  const Doubles expected = test::last_outputs(given);
  Network<Model> listed(directed, data.graph, data.features);
  listed.forward();
  CHECK(test::last_outputs(listed) == expected);
  Network<Model> both_ways(undirected, data.graph, data.features);
  both_ways.forward();
  CHECK(test::last_outputs(both_ways) != expected);
  // Everything that makes a network of its own follows the option.
  const sheafnn::LearnedNodeMaps maps = sheafnn::learned_node_maps(directed, data, {.layer = 1});
  CHECK(maps.out.scale[5] ==
        doctest::Approx(given.node_maps(1).scale(sheafnn::layers::MapSide::out, 5)).epsilon(1e-15));
  CHECK(maps.out.scale != sheafnn::learned_node_maps(undirected, data, {.layer = 1}).out.scale);
}

TEST_CASE("Bayesian cooperative networks draw by seed, epoch, sample, layer and side") {
  using Model = sheafnn::Bcsnn<2, double>;
  const Model model(options(), 3);
  Network<Model> network(model, task().graph, task().features);
  std::set<double> seen;
  const auto first_entry = [&](const sheafnn::ForwardPass<double>& pass) {
    network.forward(pass);
    for (Index l = 0; l < 2; ++l) {
      for (const auto side : {sheafnn::layers::MapSide::out, sheafnn::layers::MapSide::in}) {
        CHECK(seen.insert(network.node_maps(l).map(side, 10)[0]).second);
        CHECK(seen.insert(network.node_maps(l).scale(side, 10)).second);
      }
    }
    return network.outputs()(10, 0);
  };
  const double value = first_entry({.seed = 1, .epoch = 2, .sample = 3});
  first_entry({.seed = 2, .epoch = 2, .sample = 3});
  first_entry({.seed = 1, .epoch = 3, .sample = 3});
  first_entry({.seed = 1, .epoch = 2, .sample = 4});
  first_entry({.seed = 1, .epoch = 2, .sample = 3, .training = true});
  network.forward({.seed = 1, .epoch = 2, .sample = 3});
  CHECK(network.outputs()(10, 0) == value);
  // The KL term belongs to the distributions: a Monte Carlo estimate of it comes near.
  test::TrainingPass<double> pass = training_pass<Model>();
  pass.input_dropout = pass.dropout = 0;
  const double exact = test::train_pass(network, pass).kl;
  pass.kl_estimator = sheafnn::KlEstimator::monte_carlo;
  pass.samples = 20;
  CHECK(exact > 0);
  CHECK(test::train_pass(network, pass).kl == doctest::Approx(exact).epsilon(0.05));
}

TEST_CASE("learners of every layer: without noise a Bayesian network is the deterministic one") {
  CooperativeOptions of = options();
  of.learner = sheafnn::NodeLearnerKind::sage_projected;
  of.learner_layers = 2;
  of.layers = 3;
  const sheafnn::Csnn<3, double> point(of, 3);
  of.layer_learners = true;
  sheafnn::Bcsnn<3, double> bayesian(of, 4);
  // Outputs of a learner, per side: four of point models (rotation, scale); six of Bayesian ones, κ after the rotation
  // and s at the end.
  const auto& from = point.parameters();
  auto& to = bayesian.parameters();
  REQUIRE(from.info().size() == to.info().size());
  for (std::size_t i = 0; i < from.info().size(); ++i) {
    const sheafnn::layers::ParameterInfo &one = from.info()[i], &other = to.info()[i];
    REQUIRE(one.name == other.name);
    const double* values = from.values().data() + one.offset;
    double* copy = to.values().data() + other.offset;
    const bool outputs = one.shape.front() == 4 && other.shape.front() == 6;
    CHECK((outputs || one.size == other.size));
    for (Index k = 0; k < one.size; ++k) {
      const Index row = k / 4, column = k % 4;
      copy[outputs ? 6 * row + (column == 3 ? 4 : column) : k] = values[k];
    }
  }
  Network<sheafnn::Csnn<3, double>> expected(point, task().graph, task().features);
  Network<sheafnn::Bcsnn<3, double>> network(bayesian, task().graph, task().features);
  // The identity is what a uniform rotation has to be for the sample to be the mode.
  std::vector<Doubles> noise(3);
  for (Doubles& layer : noise) {
    for (Index map = 0; map < 2 * 701; ++map) layer.insert(layer.end(), {1, 0, 0, 0, 1, 0, 0, 0, 1, 0});
  }
  expected.forward({});
  network.forward({.noise = {noise.begin(), noise.end()}});
  const Doubles a = test::last_outputs(expected), b = test::last_outputs(network);
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(std::abs(a[i] - b[i]) < 1e-12);
  // Every layer has distributions of its own, and the KL term is their mean.
  const auto kappa = [&](Index l) { return network.posterior(l).parameter_of(sheafnn::layers::MapSide::out, 10, 9); };
  CHECK(kappa(0) != kappa(1));
  CHECK(kappa(1) != kappa(2));
  double sum = 0;
  for (Index l = 0; l < 3; ++l) {
    sheafnn::layers::VariationalNodeMaps<3, double> posterior = network.posterior(l);
    sum += posterior.mean_kl(1);
  }
  CHECK(network.kl() == doctest::Approx(sum / 3).epsilon(1e-14));
  const sheafnn::LearnedNodeMaps maps = sheafnn::learned_node_maps(bayesian, task(), {.layer = 2});
  CHECK(maps.out.concentration.size() == 701);
}

TEST_CASE("scales are at most ten") {
  using Model = sheafnn::Csnn<2, double>;
  Model model(options(), 3);
  auto& parameters = model.parameters();
  parameters.data(parameters.find("out.0.output.bias"))[1] = 50;
  const sheafnn::LearnedNodeMaps maps = sheafnn::learned_node_maps(model, task());
  for (const double scale : maps.out.scale) CHECK(scale == doctest::Approx(10).epsilon(1e-14));
  for (const double scale : maps.in.scale) CHECK(scale < 5);
}

TEST_CASE("scales that underflow leave rotations and finite derivatives") {
  sheafnn::Csnn<3, float> model(options(), 3);
  for (const sheafnn::layers::ParameterInfo& info : model.parameters().info()) {
    const bool last = info.name == "out.1.output.bias" || info.name == "in.0.output.bias";
    if (last) model.parameters().values()[info.offset + info.size - 1] = -200;  // e^-200 is 0 in single precision
  }
  Network<sheafnn::Csnn<3, float>> network(model, task().graph, task().features);
  CHECK(std::isfinite(test::train_pass(network, training_pass<sheafnn::Csnn<3, float>>()).loss));
  Index moved = 0;
  for (const float derivative : network.gradient()) {
    REQUIRE(std::isfinite(derivative));
    moved += derivative != 0;
  }
  CHECK(moved > 0);
  const sheafnn::LearnedNodeMaps maps = sheafnn::learned_node_maps(model, task(), {.layer = 1});
  for (const double scale : maps.out.scale) REQUIRE(scale == doctest::Approx(1e-30).epsilon(1e-4));
  for (const double entry : maps.out.rotation) REQUIRE(std::abs(entry) <= 1 + 1e-5);
}

TEST_CASE("learned node maps are rotations and scales") {
  const auto check = [](const sheafnn::LearnedNodeMaps& maps, bool bayesian) {
    CHECK(maps.nodes == 701);
    CHECK(maps.dimension == 3);
    for (const sheafnn::NodeMapTable* table : {&maps.out, &maps.in}) {
      REQUIRE(table->rotation.size() == 701 * 9);
      REQUIRE(table->scale.size() == 701);
      CHECK(table->concentration.size() == (bayesian ? 701 : 0));
      CHECK(table->log_scale_mean.size() == table->concentration.size());
      CHECK(table->log_scale_deviation.size() == table->concentration.size());
      for (std::size_t u = 0; u < 701; u += 50) {
        const Eigen::Map<const Eigen::Matrix<double, 3, 3, Eigen::RowMajor>> rotation(table->rotation.data() +
                                                                                      9 * u);
        CHECK((rotation.transpose() * rotation - Eigen::Matrix3d::Identity()).cwiseAbs().maxCoeff() < 1e-13);
        CHECK(rotation.determinant() == doctest::Approx(1));
        CHECK(table->scale[u] > 0);
        if (bayesian) {
          CHECK(table->scale[u] == doctest::Approx(std::exp(table->log_scale_mean[u])));
          CHECK(table->log_scale_deviation[u] > 0);
          CHECK(table->log_scale_deviation[u] < 0.5);
          CHECK(table->concentration[u] > 0);
          CHECK(table->concentration[u] < 1);
        }
      }
    }
  };
  check(sheafnn::learned_node_maps(sheafnn::Csnn<3, double>(options()), task(), {.layer = 1}), false);
  check(sheafnn::learned_node_maps(sheafnn::Bcsnn<3, double>(options()), task()), true);
  CHECK_THROWS_WITH_AS(static_cast<void>(
                           sheafnn::learned_node_maps(sheafnn::Csnn<3, double>(options()), task(), {.layer = 2})),
                       "layer: 2 is not allowed; must be between 0 and 1", std::invalid_argument);
}

TEST_CASE("node maps as files, with the arcs that a network goes along") {
  const test::TemporaryFolder folder;
  const auto path = folder.path() / "maps.npz";
  const std::vector<sheafnn::Edge> pairs = {{1, 0}, {1, 2}, {2, 1}};
  const sheafnn::Graph graph(4, pairs);
  sheafnn::LearnedNodeMaps maps{4, 2, {}, {}};
  for (sheafnn::NodeMapTable* table : {&maps.out, &maps.in}) {
    for (int u = 0; u < 4; ++u) {
      table->rotation.insert(table->rotation.end(), {1, 0, 0, 1});
      table->scale.push_back(u + (table == &maps.in ? 0.5 : 1.0));
    }
  }
  maps.out.concentration = maps.out.log_scale_mean = maps.out.log_scale_deviation = {0.1, 0.2, 0.3, 0.4};
  const auto numbers = [&](const char* key) { return sheafnn::io::NpzArchive(path).array(key).values<double>(); };
  sheafnn::io::write_node_maps(path, maps, graph);
  CHECK(sheafnn::io::NpzArchive(path).text("family") == "conformal");
  CHECK(numbers("stalk_dimension") == Doubles{2});
  CHECK(numbers("edges") == Doubles{0, 1, 1, 2});
  CHECK(numbers("arcs") == Doubles{0, 1, 1, 0, 1, 2, 2, 1});
  CHECK(sheafnn::io::NpzArchive(path).array("in_rotations").shape() == std::vector<Index>{4, 2, 2});
  CHECK(numbers("out_scales") == Doubles{1, 2, 3, 4});
  CHECK(numbers("in_scales") == Doubles{0.5, 1.5, 2.5, 3.5});
  CHECK(numbers("out_log_scale_deviation") == Doubles{0.1, 0.2, 0.3, 0.4});
  CHECK_FALSE(sheafnn::io::NpzArchive(path).contains("in_kappa"));
  sheafnn::io::write_node_maps(path, maps, graph, true);
  CHECK(numbers("arcs") == Doubles{1, 0, 1, 2, 2, 1});
  CHECK_THROWS_WITH_AS(sheafnn::io::write_node_maps(path, maps, task().graph),
                       "nodes of the maps: 4 is not allowed; must equal the number of nodes, 701",
                       std::invalid_argument);
}

TEST_CASE("checkpoints of cooperative models") {
  const test::TemporaryFolder folder;
  const auto path = folder.path() / "model.safetensors";
  using Model = sheafnn::Csnn<3, float>;
  CooperativeOptions of = options();
  of.learner = sheafnn::NodeLearnerKind::sage_projected;
  of.learner_layers = 3;
  of.learner_dropout = 0.1 + 0.2;
  of.activation = sheafnn::Activation::tanh;
  of.norm = sheafnn::FeatureNorm::layer;
  of.conformal = of.left_weights = of.residual = false;
  of.feature_treatment = sheafnn::FeatureTreatment::none;
  of.directed = of.in_degree_diagonal = true;
  of.readout_layers = 2;
  Model model(of, 1);
  tiny::disturb(model.parameters(), 2, 0.1);
  sheafnn::io::save_checkpoint(path, model, {{"note", "mine"}});
  const sheafnn::io::CheckpointInfo info = sheafnn::io::read_checkpoint_info(path);
  CHECK(info.model == "csnn");
  CHECK(info.maps == "conformal");
  CHECK(info.stalk_dimension == 3);
  CHECK(info.options<sheafnn::CooperativeOptions>() == of);
  CHECK(info.metadata.at("note") == "mine");
  const Model loaded = sheafnn::io::load_checkpoint<Model>(path);
  CHECK(loaded.options() == of);
  CHECK(std::equal(model.parameters().values().begin(), model.parameters().values().end(),
                   loaded.parameters().values().begin()));
  Model other(of, 5);
  sheafnn::io::load_checkpoint_into(path, other);
  CHECK(std::equal(model.parameters().values().begin(), model.parameters().values().end(),
                   other.parameters().values().begin()));
  using Bayesian = sheafnn::Bcsnn<3, float>;
  CHECK_THROWS_WITH(static_cast<void>(sheafnn::io::load_checkpoint<Bayesian>(path)),
                    (path.string() + ": model is csnn in the file, but bcsnn in the program").c_str());
  // Files of earlier versions know no directions.
  sheafnn::io::TensorFile earlier = sheafnn::io::read_safetensors(path);
  for (const char* key : {"directed", "in_degree_diagonal", "layer_learners"})
    CHECK(earlier.metadata.erase(key) == 1);
  CHECK_FALSE(sheafnn::io::from_tensors<Model>(path, earlier).options().directed);
  Model different(options(), 5);
  CHECK_THROWS_AS(sheafnn::io::load_checkpoint_into(path, different), std::runtime_error);
  Bayesian sampled(options(), 2);
  sheafnn::io::save_checkpoint(path, sampled);
  CHECK(sheafnn::io::read_checkpoint_info(path).model == "bcsnn");
  CHECK(sheafnn::io::load_checkpoint<Bayesian>(path).options() == options());
}

TEST_CASE("options of cooperative models that are refused") {
  const auto refuse = [](const std::string& message, auto change) {
    CooperativeOptions of = options();
    change(of);
    CHECK_THROWS_WITH_AS((sheafnn::Csnn<1, double>(of)), message.c_str(), std::invalid_argument);
  };
  refuse("features: 0 is not allowed; must be between 1 and 268435456", [](auto& o) { o.features = 0; });
  refuse("channels: 1025 is not allowed; must be between 1 and 1024", [](auto& o) { o.channels = 1025; });
  refuse("layers: 65 is not allowed; must be between 1 and 64", [](auto& o) { o.layers = 65; });
  refuse("classes: 0 is not allowed; must be between 1 and 1048576", [](auto& o) { o.classes = 0; });
  refuse("learner_width: 0 is not allowed; must be between 1 and 1024", [](auto& o) { o.learner_width = 0; });
  refuse("readout_layers: 9 is not allowed; must be between 1 and 8", [](auto& o) { o.readout_layers = 9; });
  refuse("learner_layers: 2 is not allowed; the learner mlp has one hidden layer: must be 1",
         [](auto& o) { o.learner_layers = 2; });
  refuse("learner_dropout: 1 is not allowed; must be at least 0 and below 1",
         [](auto& o) { o.learner_dropout = 1; });
  refuse("conformal: false is not allowed; with stalk dimension 1 there are no rotations to learn",
         [](auto& o) { o.conformal = false; });
  refuse(
      "in_degree_diagonal: true is not allowed; needs directed: otherwise as many arcs leave a node as enter it",
      [](auto& o) { o.in_degree_diagonal = true; });
  refuse("separate_encoder: true is not allowed; only Bayesian models have an encoder for their learners",
         [](auto& o) { o.separate_encoder = true; });
  refuse("layer_learners: true is not allowed; an option of Bayesian models; others have learners in every layer",
         [](auto& o) { o.layer_learners = true; });
  using Model = sheafnn::Csnn<2, double>;
  const Model model(options());
  Network<Model> network(model, task().graph, task().features);
  CHECK_THROWS_AS(network.begin({.dropout = 1}), std::invalid_argument);
  CHECK_THROWS_AS(network.begin({.sample = -1}), std::invalid_argument);
  const Doubles noise(5);
  CHECK_THROWS_AS(network.begin({.noise = {noise}}), std::invalid_argument);
  network.forward({});
  CHECK_THROWS_AS(network.backward(network.output_bar()), std::logic_error);
  network.forward({.training = true});
  network.begin({.training = true});  // another pass: what the first one has kept is gone
  CHECK_THROWS_AS(network.backward(network.output_bar()), std::logic_error);
  const std::vector<sheafnn::Edge> arcs = {{0, 1}};
  const sheafnn::DirectedArcs of_two(2, arcs);
  CHECK_THROWS_AS(Network<Model>(model, task().graph, of_two, task().features), std::invalid_argument);
  const std::vector<sheafnn::Edge> outside = {{0, 1}, {1, 2}};
  CHECK_THROWS_WITH_AS(sheafnn::DirectedArcs(2, outside),
                       "arcs[1]: 2 is not allowed; a node number must be between 0 and 1", std::invalid_argument);
}

TEST_CASE("cooperative networks: what a draw computes is there after it, and an objective ends with its pass") {
  using Model = sheafnn::Bcsnn<2, double>;
  for (const bool layer_learners : {false, true}) {
    CooperativeOptions of = options();
    of.layer_learners = layer_learners;
    const Model model(of);
    Network<Model> network(model, task().graph, task().features);
    CHECK_THROWS_AS(static_cast<void>(network.kl()), std::logic_error);
    for (int pass = 0; pass < 2; ++pass) {  // the second one must not show what the first one drew
      const auto begun = network.begin({.training = true});
      CAPTURE(layer_learners);
      CAPTURE(pass);
      CHECK_NOTHROW(static_cast<void>(network.features_after(0)));
      CHECK_THROWS_AS(static_cast<void>(network.features_after(1)), std::logic_error);
      CHECK_THROWS_AS(static_cast<void>(network.node_maps(0)), std::logic_error);
      if (layer_learners) {
        CHECK_THROWS_AS(static_cast<void>(network.kl()), std::logic_error);
        CHECK_THROWS_AS(static_cast<void>(network.posterior(0)), std::logic_error);
      } else {
        CHECK(network.kl() > 0);
        CHECK_NOTHROW(static_cast<void>(network.posterior(0)));
      }
      begun.draw();
      CHECK(network.kl() > 0);
      CHECK_NOTHROW(static_cast<void>(network.posterior(0)));
      CHECK(network.node_maps(0).node_count() == task().graph.node_count());
      CHECK(network.features_after(1).nodes() == task().graph.node_count());
    }
    auto backward = network.begin({.training = true}).begin_backward();
    const auto sample = network.begin({.training = true}).draw();
    CHECK_THROWS_AS(backward.add(sample, network.output_bar()), std::logic_error);
  }
}

TEST_CASE("directed arcs by what they leave and enter") {
  const std::vector<sheafnn::Edge> list = {{2, 0}, {0, 1}, {0, 1}, {1, 1}, {0, 2}};
  const sheafnn::DirectedArcs arcs(3, list);
  CHECK(arcs.arc_count() == 3);
  const auto nodes = [](std::span<const std::int32_t> of) {
    return std::vector<std::int32_t>(of.begin(), of.end());
  };
  CHECK(nodes(arcs.lists().out.of(0)) == std::vector<std::int32_t>{1, 2});
  CHECK(nodes(arcs.lists().out.of(1)).empty());
  CHECK(nodes(arcs.lists().out.of(2)) == std::vector<std::int32_t>{0});
  CHECK(nodes(arcs.lists().in.of(0)) == std::vector<std::int32_t>{2});
  CHECK(nodes(arcs.lists().in.of(1)) == std::vector<std::int32_t>{0});
  CHECK(nodes(arcs.lists().in.of(2)) == std::vector<std::int32_t>{0});
}
