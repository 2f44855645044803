/// \file
/// Reading out what was learned: the sheaf's Laplacian against what networks multiply with, predictions rebuilt from
/// drawn sheaves, one arc by hand from the parameters, features layer by layer, files, refused input.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "shared_networks.hpp"
#include "sheafnn/bsnn/layer_features.hpp"
#include "sheafnn/bsnn/learned_sheaf.hpp"
#include "sheafnn/bsnn/prediction.hpp"
#include "sheafnn/graph/karate.hpp"
#include "sheafnn/io/learned_file.hpp"
#include "sheafnn/io/npz_archive.hpp"
#include "sheafnn/layers/diffusion.hpp"
#include "sheafnn/posterior/tangent_normal.hpp"
#include "sheafnn/rotation/haar.hpp"
#include "sheafnn/rotation/moebius.hpp"
#include "sheafnn/sheaf/laplacian.hpp"
#include "temporary_folder.hpp"
#include "tiny_task.hpp"
#include "worst.hpp"

namespace test_learned_sheaf {
namespace {

using sheafnn::Bsnn;
using sheafnn::CellularSheaf;
using sheafnn::Cochain;
using sheafnn::Conformal;
using sheafnn::Diagonal;
using sheafnn::GeneralLinear;
using sheafnn::Identity;
using sheafnn::Index;
using sheafnn::Network;
using sheafnn::Nsd;
using sheafnn::SheafLaplacian;
using sheafnn::SpecialOrthogonal;

using Doubles = std::vector<double>;

template <class Model>
constexpr double epsilon = static_cast<double>(std::numeric_limits<typename Model::Scalar>::epsilon());

/// A model with parameters that are not special.
template <class Model>
Model tiny_model(sheafnn::ModelOptions options = tiny::options()) {
  Model model(options, 5);
  tiny::disturb(model.parameters(), 6, 0.3);
  return model;
}

/// Largest |Δy − Δ'y| relative to its bound: Δ of a sheaf, Δ' what the network has for a layer.
template <class Model>
double laplacian_error(const Network<Model>& network, Index layer,
                       const CellularSheaf<typename Model::Family>& sheaf) {
  using Family = typename Model::Family;
  using S = typename Model::Scalar;
  constexpr int D = Family::stalk_dimension;
  const Index channels = 3, n = network.graph().node_count();
  const SheafLaplacian<Family> laplacian(sheaf, network.model().options().normalisation);
  Cochain<double> y(n * D, channels);
  sheafnn::Buffer<S> in(y.size()), scaled(y.size()), out(y.size());
  for (Index i = 0; i < y.size(); ++i) {
    in[i] = static_cast<S>(tiny::number(9, i));
    y.data()[i] = static_cast<double>(in[i]);
  }
  const sheafnn::layers::DiffusionShape<S> shape(network.graph(), D, false, false, channels);
  const auto& stack = network.sheaf_source().stack();
  const auto& blocks = stack[std::min(layer, stack.count() - 1)];
  sheafnn::detail::scale_features<Family>(1, network.graph(), shape, blocks, in.data(), scaled.data());
  S* to = out.data();
  sheafnn::detail::apply_laplacian<Family>(1, network.graph(), shape, blocks, sheafnn::NodeSelection(n), scaled.data(),
                                   [=]<class T, int N>(Index u, Index i, auto channel, const T*, const T* value) {
                                     for (int k = 0; k < N; ++k)
                                       channel.store(to + (u * D + i + k) * channels + channel, value[k]);
                                   });
  const Cochain<double> expected = laplacian.apply(y);
  double worst = 0;
  for (Index i = 0; i < y.size(); ++i) {
    worst = test::worse(worst, std::abs(static_cast<double>(out[i]) - expected.data()[i]));
  }
  // At most five blocks in a row, each of two scalings and a product of maps; |y| ≤ 1, Δ ≤ 2.
  return worst / (64 * D * epsilon<Model>);
}

/// Class probabilities of a model of one layer without activation and mixing, from the sheaf:
/// H = X W₁ᵀ + b₁, X₂ = (1 + tanh ε) ∘ H − ΔH, softmax(X₂ W₂ᵀ + b₂).
template <class Model>
Doubles rebuilt_probabilities(const Model& model, const tiny::Task& task,
                              const CellularSheaf<typename Model::Family>& sheaf) {
  constexpr int D = Model::stalk_dimension;
  const auto parameter = [&](const char* name, Index rows) {
    const auto values = model.parameters().get(model.parameters().find(name), model.parameters().values());
    Eigen::MatrixXd r(rows, static_cast<Index>(values.size()) / rows);
    for (std::size_t i = 0; i < values.size(); ++i) {
      r(static_cast<Index>(i) / r.cols(), static_cast<Index>(i) % r.cols()) = static_cast<double>(values[i]);
    }
    return r;
  };
  const Index n = task.nodes, h = model.hidden_width(), channels = model.options().channels;
  Eigen::MatrixXd x(n, task.features);
  for (Index i = 0; i < x.size(); ++i) x(i / x.cols(), i % x.cols()) = task.dense[static_cast<std::size_t>(i)];
  for (Index u = 0; u < n; ++u) {
    if (const double sum = x.row(u).cwiseAbs().sum(); sum > 0) x.row(u) /= sum;
  }
  const Eigen::MatrixXd embedding =
      (x * parameter("lin1.weight", h).transpose()).rowwise() + parameter("lin1.bias", h).col(0).transpose();
  Cochain<double> y(n * D, channels);
  for (Index i = 0; i < y.size(); ++i) y.data()[i] = embedding(i / h, i % h);
  const Cochain<double> diffused = SheafLaplacian(sheaf, model.options().normalisation).apply(y);
  const Eigen::MatrixXd rate = parameter("eps.0", D);
  Eigen::MatrixXd last(n, h);
  for (Index i = 0; i < y.size(); ++i) {
    last(i / h, i % h) = (1 + std::tanh(rate(i % h / channels, 0))) * y.data()[i] - diffused.data()[i];
  }
  const Index classes = model.options().classes;
  const Eigen::MatrixXd outputs = (last * parameter("lin2.weight", classes).transpose()).rowwise() +
                                  parameter("lin2.bias", classes).col(0).transpose();
  Doubles r;
  for (Index u = 0; u < n; ++u) {
    const Eigen::ArrayXd exponentials = outputs.row(u).array().exp();
    for (Index c = 0; c < classes; ++c) r.push_back(exponentials(c) / exponentials.sum());
  }
  return r;
}

template <class Family>
Doubles all_maps(const CellularSheaf<Family>& sheaf) {
  Doubles r;
  for (Index a = 0; a < sheaf.graph().arc_count(); ++a) {
    const auto& map = sheaf.map(a);
    r.insert(r.end(), map.data(), map.data() + map.size());
  }
  return r;
}

template <class Model>
void check_model() {
  using Family = typename Model::Family;
  CAPTURE(Family::name);
  CAPTURE(Model::kind);
  CAPTURE(sizeof(typename Model::Scalar));
  const tiny::Task task;
  const Model model = tiny_model<Model>();
  Network<Model> network(model, task.graph, task.sparse);
  const sheafnn::DrawSheafOptions third{.sample = 2, .seed = 3, .epoch = 4};
  network.begin({.seed = third.seed, .epoch = third.epoch}).draw(third.sample);
  for (Index layer = 0; layer < model.options().layers; ++layer) {
    sheafnn::DrawSheafOptions options = third;
    options.layer = layer;
    const auto drawn = sheafnn::draw_sheaf(model, task.graph, task.sparse, options);
    CHECK(laplacian_error(network, layer, drawn) <= 1);
    options.threads = 2;
    CHECK(all_maps(drawn) == all_maps(sheafnn::draw_sheaf(model, task.graph, task.sparse, options)));
  }
  // The mean of a posterior is the map without noise: U = I, ε = 0.
  sheafnn::ForwardPass<typename Model::Scalar> pass;
  std::vector<typename Model::Scalar> noise;
  if constexpr (sheafnn::has_sheaf_posterior<Model>) {
    constexpr int D = Family::stalk_dimension;
    constexpr bool rotations = Model::Posterior::noise_size >= D * D && requires {
      Family::coordinate_range(sheafnn::rotation::RotationParametrisation::euler, 0);
    };
    for (Index a = 0; a < task.graph.arc_count(); ++a) {
      for (int k = 0; k < Model::Posterior::noise_size; ++k) {
        noise.push_back(rotations && k < D * D && k / D == k % D ? 1 : 0);
      }
    }
    pass.noise.assign(static_cast<std::size_t>(model.sheaf_count()),
                      std::span<const typename Model::Scalar>(noise));
  }
  network.forward(pass);
  for (Index layer = 0; layer < model.options().layers; ++layer) {
    const auto learned = sheafnn::learned_sheaf(model, task.graph, task.sparse, {.layer = layer});
    CHECK(laplacian_error(network, layer, learned) <= 1);
  }
  // Another graph with its features in one object.
  const sheafnn::Dataset data{"tiny", task.graph, task.sparse, {}, 0, {}};
  CHECK(all_maps(sheafnn::learned_sheaf(model, data)) ==
        all_maps(sheafnn::learned_sheaf(model, task.graph, task.sparse)));

  sheafnn::ModelOptions plain = tiny::options();
  plain.layers = 1;
  plain.activation = plain.left_weights = plain.right_weights = false;
  const Model linear = tiny_model<Model>(plain);
  const sheafnn::PredictOptions three{.samples = 3, .seed = 8, .epoch = 2};
  const sheafnn::Prediction prediction = sheafnn::predict(linear, task.graph, task.sparse, three);
  Doubles mean(prediction.probabilities.size(), 0.0);
  for (Index k = 0; k < three.samples; ++k) {
    const auto sheaf = sheafnn::draw_sheaf(linear, task.graph, task.sparse,
                                           {.sample = k, .seed = three.seed, .epoch = three.epoch});
    const Doubles probabilities = rebuilt_probabilities(linear, task, sheaf);
    for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += probabilities[i] / static_cast<double>(three.samples);
  }
  double worst = 0;
  for (std::size_t i = 0; i < mean.size(); ++i) {
    worst = test::worse(worst, std::abs(mean[i] - prediction.probabilities[i]));
  }
  CHECK(worst <= 64 * static_cast<double>(linear.hidden_width()) * epsilon<Model>);
}

/// The linear layer of a sheaf learner for one arc: W [Z_u ‖ Z_v], with Z of the sheaf's own encoder if it has one.
template <class Model>
Doubles raw_outputs(const Model& model, const tiny::Task& task, const char* weight, Index u, Index v) {
  const auto parameter = [&](const char* name) {
    return model.parameters().get(model.parameters().find(name), model.parameters().values());
  };
  const bool own = *model.options().separate_encoder;
  const auto encoder = parameter(own ? "lin_maps.weight" : "lin1.weight");
  const auto bias = parameter(own ? "lin_maps.bias" : "lin1.bias");
  const std::size_t h = bias.size(), p = static_cast<std::size_t>(task.features);
  Doubles z;
  for (const Index node : {u, v}) {
    const double* x = task.dense.data() + node * task.features;
    double sum = 0;
    for (std::size_t j = 0; j < p; ++j) sum += std::abs(x[j]);
    for (std::size_t i = 0; i < h; ++i) {
      double value = static_cast<double>(bias[i]);
      for (std::size_t j = 0; j < p; ++j) value += static_cast<double>(encoder[i * p + j]) * x[j] / sum;
      z.push_back(value > 0 ? value : std::expm1(value));
    }
  }
  const auto w = parameter(weight);
  Doubles raw(w.size() / z.size(), 0.0);
  for (std::size_t k = 0; k < raw.size(); ++k) {
    for (std::size_t i = 0; i < z.size(); ++i) raw[k] += static_cast<double>(w[k * z.size() + i]) * z[i];
  }
  return raw;
}
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

Index arc_between(const sheafnn::Graph& graph, Index u, Index v) {
  for (Index a = graph.first_arc(u); a < graph.first_arc(u + 1); ++a) {
    if (graph.target(a) == v) return a;
  }
  return -1;
}

/// A posterior with other names for the parameters of NormalPosterior.
struct Renamed : sheafnn::NormalPosterior<Diagonal<2>> {
  static constexpr std::array spread_parameters = {sheafnn::ParameterRange{"log_sigma", 4, 2},
                                                   sheafnn::ParameterRange{"mu_1", 1, 1}};
};
/// What says nothing about its parameters.
struct Silent {
  static constexpr int parameter_size = 5;
};

/// A parameter as a matrix with this many rows; vectors as a column.
template <class Model>
Eigen::MatrixXd matrix_of(const Model& model, const std::string& name, Index rows) {
  const auto values = model.parameters().get(model.parameters().find(name), model.parameters().values());
  Eigen::MatrixXd r(rows, static_cast<Index>(values.size()) / rows);
  for (Index i = 0; i < r.size(); ++i) {
    r(i / r.cols(), i % r.cols()) = static_cast<double>(values[static_cast<std::size_t>(i)]);
  }
  return r;
}

/// Each layer's features from those before it, X_{l+1} = (1 + tanh ε) ∘ X_l − Δ X_l without mixing and activation, and
/// the network's outputs from the last ones.
template <class Model>
void check_features() {
  CAPTURE(Model::kind);
  constexpr int D = Model::stalk_dimension;
  const tiny::Task task;
  sheafnn::ModelOptions plain = tiny::options();
  plain.activation = plain.left_weights = plain.right_weights = false;
  const Model model = tiny_model<Model>(plain);
  const Index n = task.nodes, h = model.hidden_width(), channels = model.options().channels;
  const sheafnn::LayerFeaturesOptions third{.first_sample = 2, .seed = 3, .epoch = 4};
  const auto x = sheafnn::layer_features(model, task.graph, task.sparse, third);
  REQUIRE(x.layers == 2);
  REQUIRE(x.coordinates * x.channels == h);
  REQUIRE(x.values.size() == static_cast<std::size_t>(3 * n * h));

  Eigen::MatrixXd inputs(n, task.features);
  for (Index i = 0; i < inputs.size(); ++i) {
    inputs(i / inputs.cols(), i % inputs.cols()) = task.dense[static_cast<std::size_t>(i)];
  }
  for (Index u = 0; u < n; ++u) inputs.row(u) /= std::max(inputs.row(u).cwiseAbs().sum(), 1e-300);
  const Eigen::MatrixXd embedding = (inputs * matrix_of(model, "lin1.weight", h).transpose()).rowwise() +
                                    matrix_of(model, "lin1.bias", h).col(0).transpose();
  const double bound = 256 * static_cast<double>(h) * epsilon<Model>;
  CHECK((embedding - x.after(0).eigen()).cwiseAbs().maxCoeff() <= bound);
  for (Index l = 0; l < 2; ++l) {
    const auto sheaf = sheafnn::draw_sheaf(model, task.graph, task.sparse,
                                           {.sample = 2, .layer = l, .seed = third.seed, .epoch = third.epoch});
    Cochain<double> y(n * D, channels);
    std::copy_n(x.after(l).data(), y.size(), y.data());
    const Cochain<double> diffused = SheafLaplacian(sheaf, model.options().normalisation).apply(y);
    const Eigen::MatrixXd rate = matrix_of(model, "eps." + std::to_string(l), D);
    double worst = 0;
    for (Index i = 0; i < y.size(); ++i) {
      const double expected = (1 + std::tanh(rate(i % h / channels, 0))) * y.data()[i] - diffused.data()[i];
      worst = test::worse(worst, std::abs(expected - x.after(l + 1).data()[i]));
    }
    CHECK(worst <= bound);
  }

  const Index classes = model.options().classes;
  const Eigen::MatrixXd outputs =
      (x.after(2).eigen() * matrix_of(model, "lin2.weight", classes).transpose()).rowwise() +
      matrix_of(model, "lin2.bias", classes).col(0).transpose();
  Network<Model> network(model, task.graph, task.sparse);
  auto expected = network.begin({.seed = third.seed, .epoch = third.epoch}).draw(third.first_sample).view();
  sheafnn::layers::log_softmax_rows(network.execution(), n, classes, expected.data(), expected.stride());
  for (Index u = 0; u < n; ++u) {
    const double total = std::log(outputs.row(u).array().exp().sum());
    for (Index c = 0; c < classes; ++c) {
      CHECK(std::abs(outputs(u, c) - total - static_cast<double>(expected(u, c))) <= bound);
    }
  }

  // Several samples are averaged, with any number of threads.
  const auto draw = [&](Index first, Index samples, int threads) {
    return sheafnn::layer_features(
        model, task.graph, task.sparse,
        {.first_sample = first, .samples = samples, .seed = 3, .epoch = 4, .threads = threads});
  };
  const auto mean = draw(1, 2, 1), one = draw(1, 1, 1);
  double worst = 0;
  for (std::size_t i = 0; i < mean.values.size(); ++i) {
    worst = test::worse(worst, std::abs(mean.values[i] - (one.values[i] + x.values[i]) / 2));
  }
  CHECK(worst <= bound);
  CHECK((one.values != x.values) == sheafnn::has_sheaf_posterior<Model>);
  CHECK(mean.values == draw(1, 2, 2).values);
}

template <class Body>
void check_refused(const Body& body, const std::string& what) {
  try {
    (void)body();
    FAIL("not refused: ", what);
  } catch (const std::invalid_argument& error) {
    CHECK_MESSAGE(std::string(error.what()).find(what) != std::string::npos, error.what());
  }
}

}  // namespace

TEST_CASE("learned sheaves of Bayesian models") {
  check_model<Bsnn<Identity<2>, double>>();
  check_model<Bsnn<Diagonal<3>, double>>();
  check_model<Bsnn<GeneralLinear<2>, double>>();
  check_model<Bsnn<SpecialOrthogonal<3>, double>>();
  check_model<Bsnn<Conformal<2>, double>>();
  check_model<Bsnn<SpecialOrthogonal<3>>>();
  check_model<Bsnn<Conformal<3>>>();
  using TangentNormal = sheafnn::TangentNormalPosterior<SpecialOrthogonal<3>>;
  check_model<sheafnn::SheafModel<SpecialOrthogonal<3>, TangentNormal, double>>();
}

TEST_CASE("draws of a large concentration in single precision are read as rotations") {
  constexpr int D = 4;
  using Family = SpecialOrthogonal<D>;
  using P = sheafnn::math::Pack<float, 1>;
  const sheafnn::Graph graph(2, std::vector<sheafnn::Edge>{{0, 1}});
  double worst = 0;
  for (std::uint32_t id = 0; id < 20000; ++id) {
    const auto uniform = sheafnn::rotation::haar_rotation<float, D>(sheafnn::Stream{1, sheafnn::Purpose::user}, id);
    const auto drawn = sheafnn::rotation::moebius<float, D>(uniform, 0.9989f);
    const auto defect = (drawn.transpose() * drawn - sheafnn::SquareMatrix<float, D>::Identity()).cwiseAbs().maxCoeff();
    worst = std::max(worst, static_cast<double>(defect));
    sheafnn::SquareMatrix<P, D> packed;
    for (int k = 0; k < D * D; ++k) packed.data()[k] = P(drawn.data()[k]);
    const auto read = sheafnn::detail::map_of_lane<Family>(packed, 0);
    CellularSheaf<Family> sheaf(graph);
    CHECK_NOTHROW(sheaf.set_map(0, read));
    CHECK((read - drawn.cast<double>()).cwiseAbs().maxCoeff() <= static_cast<double>(defect) + 1e-7);
  }
  CHECK(worst > 1e-4);  // they are far from orthogonal in single precision
}

TEST_CASE("learned sheaves of deterministic models") {
  check_model<Nsd<Identity<2>, double>>();
  check_model<Nsd<Diagonal<2>, double>>();
  check_model<Nsd<GeneralLinear<3>, double>>();
  check_model<Nsd<SpecialOrthogonal<2>, double>>();
  check_model<Nsd<Conformal<3>, double>>();
  check_model<Nsd<SpecialOrthogonal<4>>>();
}

/// log σ = −ELU(−(raw − 3)).
double log_deviation(double raw) { return raw < 3 ? raw - 3 : -std::expm1(3 - raw); }

TEST_CASE("maps and parameters of arcs, by hand") {
  const tiny::Task task;
  const Index u = 1, v = 3, a = arc_between(task.graph, u, v), b = arc_between(task.graph, v, u);
  REQUIRE(task.graph.source(a) == u);
  REQUIRE(task.graph.target(b) == u);
  constexpr double eps = std::numeric_limits<double>::epsilon();

  const auto nsd = tiny_model<Nsd<Diagonal<2>, double>>();
  const auto point = sheafnn::learned_sheaf(nsd, task.graph, task.sparse);
  const auto bsnn = tiny_model<Bsnn<Diagonal<2>, double>>();
  const auto mean = sheafnn::learned_sheaf(bsnn, task.graph, task.sparse);
  const sheafnn::PosteriorParameters q = sheafnn::posterior_parameters(bsnn, task.graph, task.sparse);
  CHECK(q.map_size == 2);
  CHECK(q.location.size() == static_cast<std::size_t>(task.graph.arc_count() * 2));
  CHECK(q.spread.size() == 1);
  CHECK(q.find("sigma").columns == 2);
  CHECK(q.find("sigma").values.size() == q.location.size());
  CHECK(q.edge_weights == Doubles(static_cast<std::size_t>(task.graph.edge_count()), 1.0));
  for (const auto& [arc, from, to] : {std::array{a, u, v}, std::array{b, v, u}}) {
    const Doubles own = raw_outputs(nsd, task, "sheaf.0.weight", from, to);
    const Doubles location = raw_outputs(bsnn, task, "sheaf.mean.weight", from, to);
    const Doubles spread = raw_outputs(bsnn, task, "sheaf.var.weight", from, to);
    for (std::size_t k = 0; k < 2; ++k) {
      const std::size_t at = static_cast<std::size_t>(arc) * 2 + k;
      CHECK(std::abs(point.map(arc)(static_cast<Index>(k)) - std::tanh(own[k])) <= 32 * eps);
      CHECK(std::abs(mean.map(arc)(static_cast<Index>(k)) - std::tanh(location[k])) <= 32 * eps);
      CHECK(q.location[at] == mean.map(arc)(static_cast<Index>(k)));
      const double log_sigma = log_deviation(spread[k]);
      CHECK(std::abs(q.spread[0].values[at] - std::exp(log_sigma)) <= 64 * eps);
    }
  }
  CHECK(point.map(a) != point.map(b));

  // Rotations of the plane: matrices row by row, κ, edge weights.
  const auto rotations = tiny_model<Bsnn<SpecialOrthogonal<2>, double>>();
  const auto r = sheafnn::posterior_parameters(rotations, task.graph, task.sparse);
  const auto sheaf = sheafnn::learned_sheaf(rotations, task.graph, task.sparse);
  CHECK(r.map_size == 4);
  CHECK(r.find("kappa").columns == 1);
  CHECK(r.find("kappa").values.size() == static_cast<std::size_t>(task.graph.arc_count()));
  const double gamma = 0.999 * sigmoid(raw_outputs(rotations, task, "sheaf.var.weight", u, v)[0] - 3) + 0.0005;
  CHECK(std::abs(r.spread[0].values[static_cast<std::size_t>(a)] - (1 - gamma) / (1 + gamma)) <= 32 * eps);
  CHECK(std::abs(r.location[static_cast<std::size_t>(a) * 4 + 1] - sheaf.map(a)(0, 1)) <= 4 * eps);
  CHECK(sheaf.map(a)(0, 1) == -sheaf.map(a)(1, 0));
  CHECK(std::abs(sheaf.map(a)(0, 1)) > 0.01);
  const double weight = sigmoid(raw_outputs(rotations, task, "edge.weight", u, v)[0]) *
                        sigmoid(raw_outputs(rotations, task, "edge.weight", v, u)[0]);
  const Index edge = task.graph.edge_of(a);
  CHECK(std::abs(sheaf.edge_weight(edge) - weight) <= 32 * eps);
  CHECK(r.edge_weights[static_cast<std::size_t>(edge)] == sheaf.edge_weight(edge));

  // Conformal maps: the mean is e^μ M.
  const auto conformal = tiny_model<Bsnn<Conformal<2>, double>>();
  const auto c = sheafnn::posterior_parameters(conformal, task.graph, task.sparse);
  CHECK(c.spread.size() == 2);
  const double scale = std::exp(std::tanh(raw_outputs(conformal, task, "sheaf.mean.weight", u, v)[1]));
  const double* f = c.location.data() + a * 4;
  CHECK(std::abs(std::hypot(f[0], f[1]) - scale) <= 32 * eps);
  const Doubles spread = raw_outputs(conformal, task, "sheaf.var.weight", u, v);
  const double log_sigma = log_deviation(spread[1]);
  CHECK(std::abs(c.find("sigma").values[static_cast<std::size_t>(a)] - std::exp(log_sigma)) <= 64 * eps);
  CHECK(c.find("kappa").values != c.find("sigma").values);
}

TEST_CASE("posteriors say which parameters are read out") {
  const tiny::Task task;
  using Model = sheafnn::SheafModel<Diagonal<2>, Renamed, double>;
  const auto q = sheafnn::posterior_parameters(tiny_model<Model>(), task.graph, task.sparse);
  const auto usual =
      sheafnn::posterior_parameters(tiny_model<Bsnn<Diagonal<2>, double>>(), task.graph, task.sparse);
  REQUIRE(q.spread.size() == 2);
  REQUIRE(q.spread[0].name == "log_sigma");
  REQUIRE(q.spread[1].columns == 1);
  for (std::size_t i = 0; i < q.spread[0].values.size(); ++i) {
    const double sigma = usual.spread[0].values[i];
    CHECK(std::abs(std::exp(q.spread[0].values[i]) - sigma) <= 8 * std::numeric_limits<double>::epsilon() * sigma);
  }
  for (std::size_t a = 0; a < q.spread[1].values.size(); ++a)
    CHECK(q.spread[1].values[a] == q.location[2 * a + 1]);
  check_refused([&] { return q.find("kappa").columns; }, "log_sigma, mu_1");

  using TangentNormal = sheafnn::TangentNormalPosterior<SpecialOrthogonal<3>>;
  const auto t =
      sheafnn::posterior_parameters(tiny_model<sheafnn::SheafModel<SpecialOrthogonal<3>, TangentNormal, double>>(),
                                    task.graph, task.sparse);
  REQUIRE(t.find("sigma").columns == 3);
  for (const double sigma : t.find("sigma").values) CHECK((sigma > 0 && sigma < TangentNormal::largest_sigma));

  constexpr auto all = sheafnn::spread_parameters<Silent>;
  static_assert(all.size() == 1 && all[0].name == "parameters" && all[0].first == 0 && all[0].count == 5);
}

TEST_CASE("drawn sheaves depend on sample, layer, seed and epoch") {
  const tiny::Task task;
  const auto model = tiny_model<Bsnn<SpecialOrthogonal<2>, double>>();
  const auto maps = [&](const sheafnn::DrawSheafOptions& options) {
    return all_maps(sheafnn::draw_sheaf(model, task.graph, task.sparse, options));
  };
  const Doubles first = maps({});
  CHECK(first == maps({}));
  CHECK(first != maps({.sample = 1}));
  CHECK(first != maps({.layer = 1}));
  CHECK(first != maps({.seed = 1}));
  CHECK(first != maps({.epoch = 1}));
  // A linear model has one sheaf for all layers.
  sheafnn::ModelOptions options = tiny::options();
  options.linear = true;
  const auto linear = tiny_model<Bsnn<SpecialOrthogonal<2>, double>>(options);
  CHECK(all_maps(sheafnn::draw_sheaf(linear, task.graph, task.sparse, {.layer = 0})) ==
        all_maps(sheafnn::draw_sheaf(linear, task.graph, task.sparse, {.layer = 1})));
  // Layers of a deterministic model differ.
  const auto nsd = tiny_model<Nsd<SpecialOrthogonal<2>, double>>();
  CHECK(all_maps(sheafnn::learned_sheaf(nsd, task.graph, task.sparse, {.layer = 0})) !=
        all_maps(sheafnn::learned_sheaf(nsd, task.graph, task.sparse, {.layer = 1})));
}

TEST_CASE("rotations in single precision become rotations in double") {
  const tiny::Task task;
  const auto sheaf = sheafnn::learned_sheaf(tiny_model<Nsd<SpecialOrthogonal<4>>>(), task.graph, task.sparse);
  double defect = 0;
  for (Index a = 0; a < task.graph.arc_count(); ++a) {
    defect = test::worse(defect, sheafnn::rotation::orthogonality_defect<double, 4>(sheaf.map(a)));
  }
  CHECK(defect <= 16 * std::numeric_limits<double>::epsilon());
}

TEST_CASE("features between layers") {
  check_features<Nsd<SpecialOrthogonal<2>, double>>();
  check_features<Bsnn<Diagonal<2>, double>>();
}

TEST_CASE("what was learned, in a file") {
  const tiny::Task task;
  const auto model = tiny_model<Bsnn<Diagonal<2>, double>>();
  const sheafnn::PredictOptions three{.samples = 3, .seed = 8, .epoch = 2};
  std::vector<std::int32_t> labels = task.labels;
  labels[2] = -1;
  const sheafnn::Dataset data{"tiny", task.graph, task.sparse, labels, task.classes, {}};
  const test::TemporaryFolder folder;
  sheafnn::io::write_learned(folder / "learned.npz", model, data, three);
  const sheafnn::io::NpzArchive file(folder / "learned.npz");
  CHECK(file.names() == std::vector<std::string>{"format_version", "family", "stalk_dimension", "node_count",
                                                 "edges", "arcs", "maps", "edge_weights", "sigma", "model", "normalisation",
                                                 "layer_embeddings", "embeddings", "probabilities", "entropy",
                                                 "mutual_information", "labels"});
  CHECK(file.text("model") == "bsnn");
  CHECK(file.text("normalisation") == "augmented");
  const auto prediction = sheafnn::predict(model, data, three);
  const auto x = sheafnn::layer_features(model, data, {.samples = 3, .seed = 8, .epoch = 2});
  using Shape = std::vector<Index>;
  CHECK(file.array("probabilities").shape() == Shape{7, 3});
  CHECK(file.array("probabilities").values<double>() == prediction.probabilities);
  CHECK(file.array("entropy").values<double>() == prediction.entropy);
  CHECK(file.array("mutual_information").values<double>() == prediction.mutual_information);
  CHECK(file.array("labels").values<double>() == Doubles(labels.begin(), labels.end()));
  const std::vector<float> features(x.values.begin(), x.values.end());
  CHECK(file.array("layer_embeddings").shape() == Shape{3, 7, 4});
  CHECK(file.array("layer_embeddings").values<float>() == features);
  CHECK(file.array("embeddings").shape() == Shape{7, 4});
  CHECK(file.array("embeddings").values<float>() == std::vector<float>(features.end() - 28, features.end()));
  CHECK(file.array("sigma").values<double>() == sheafnn::posterior_parameters(model, data).find("sigma").values);

  const auto nsd = tiny_model<Nsd<SpecialOrthogonal<2>, double>>();
  const sheafnn::Dataset unlabelled{"tiny", task.graph, task.sparse, {}, 0, {}};
  sheafnn::io::write_learned(folder / "nsd.npz", nsd, unlabelled, {}, 1);
  const sheafnn::io::NpzArchive second(folder / "nsd.npz");
  CHECK(second.text("model") == "nsd");
  CHECK_FALSE(second.contains("labels"));
  CHECK_FALSE(second.contains("kappa"));
  const auto sheaf = sheafnn::learned_sheaf(nsd, unlabelled, {.layer = 1});
  CHECK(second.array("maps").values<double>()[1] == sheaf.map(0)(0, 1));
}

TEST_CASE("sheaves that cannot be read out") {
  const tiny::Task task;
  auto model = tiny_model<Bsnn<SpecialOrthogonal<3>>>();
  const auto read = [&](const sheafnn::LearnedSheafOptions& options) {
    return sheafnn::learned_sheaf(model, task.graph, task.sparse, options);
  };
  const auto draw = [&](const sheafnn::DrawSheafOptions& options) {
    return sheafnn::draw_sheaf(model, task.graph, task.sparse, options);
  };
  check_refused([&] { return read({.layer = 2}); }, "layer: 2 is not allowed; must be between 0 and 1");
  check_refused([&] { return read({.layer = -1}); }, "layer: -1");
  check_refused([&] { return read({.threads = -1}); }, "threads: -1");
  check_refused([&] { return draw({.layer = 2}); }, "layer: 2");
  check_refused([&] { return draw({.sample = -1}); }, "sample: -1");
  check_refused([&] { return draw({.sample = 32768}); }, "sample: 32768");
  check_refused([&] { return sheafnn::learned_sheaf(model, sheafnn::Graph(6, {}), task.sparse); },
                "features.rows: 7");
  check_refused([&] { return sheafnn::posterior_parameters(model, sheafnn::Graph(6, {}), task.sparse).map_size; },
                "features.rows: 7");
  check_refused([&] { return sheafnn::posterior_parameters(model, task.graph, task.sparse, {.layer = 2}).map_size; },
                "layer: 2");
  const auto plane = tiny_model<Nsd<SpecialOrthogonal<2>, double>>();
  const auto features = [&](const sheafnn::LayerFeaturesOptions& options) {
    return sheafnn::layer_features(plane, task.graph, task.sparse, options);
  };
  check_refused([&] { return features({.samples = 0}); }, "samples: 0");
  check_refused([&] { return features({.first_sample = 32767, .samples = 2}); }, "samples: 2 is not allowed");
  check_refused([&] { return features({.first_sample = -1}); }, "first_sample: -1");
  check_refused([&] { return features({.threads = -1}); }, "threads: -1");
  check_refused([&] { return features({}).after(3); }, "layer_count: 3 is not allowed; must be between 0 and 2");
  auto nsd = tiny_model<Nsd<GeneralLinear<2>>>();
  check_refused([&] { return sheafnn::learned_sheaf(nsd, task.graph, task.sparse, {.layer = 2}); }, "layer: 2");
  const auto poison = [](auto& parameters) {
    std::fill(parameters.values().begin(), parameters.values().end(), std::numeric_limits<float>::quiet_NaN());
  };
  poison(model.parameters());
  poison(nsd.parameters());
  check_refused([&] { return read({}); }, "maps[");
  check_refused([&] { return sheafnn::learned_sheaf(nsd, task.graph, task.sparse); }, "maps[");
  check_refused([&] { return sheafnn::layer_features(nsd, task.graph, task.sparse).layers; },
                "features of node 0 after 0 layers: nan is not allowed; must be finite");
  check_refused([&] { return sheafnn::predict(nsd, task.graph, task.sparse).class_count; },
                "outputs of the model[0, 0]: ");
  // A graph without edges has a sheaf without maps.
  const sheafnn::Graph lonely(task.nodes, {});
  CHECK(sheafnn::learned_sheaf(model, lonely, task.sparse).graph().arc_count() == 0);
  CHECK(sheafnn::posterior_parameters(model, lonely, task.sparse).location.empty());
}

TEST_CASE("edge weights that underflow to 0 are the least ones of a learned sheaf") {
  sheafnn::Dataset data = sheafnn::karate_club();
  std::vector<double> features;
  for (Index i = 0; i < 34 * 6; ++i) features.push_back(1e5 * tiny::number(31, i));
  data.features = sheafnn::NodeFeatures::from_dense(std::span<const double>(features), 34, 6);
  const sheafnn::ModelOptions options{.features = 6,
                                      .channels = 8,
                                      .layers = 2,
                                      .classes = 2,
                                      .feature_treatment = sheafnn::FeatureTreatment::none};
  const auto least_of = [](const auto& sheaf) {
    double least = 1;
    for (Index e = 0; e < sheaf.graph().edge_count(); ++e) least = std::min(least, sheaf.edge_weight(e));
    return least;
  };
  CHECK(least_of(sheafnn::learned_sheaf(Nsd<SpecialOrthogonal<3>>(options, 1), data)) ==
        sheafnn::least_edge_weight);
  const Bsnn<SpecialOrthogonal<3>> bayesian(options, 1);
  CHECK(least_of(sheafnn::learned_sheaf(bayesian, data)) == sheafnn::least_edge_weight);
  CHECK(least_of(sheafnn::draw_sheaf(bayesian, data)) == sheafnn::least_edge_weight);
  CHECK(sheafnn::posterior_parameters(bayesian, data).edge_weights.size() == 78);
}

}  // namespace test_learned_sheaf
