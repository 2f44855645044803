/// \file
/// What public functions do with arguments that are wrong: what their docstrings say they throw, module by module, and what
/// does not compile because it would dangle. That every function says something is what check_boundaries.py checks.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "shared_networks.hpp"
#include "sheafnn/bsnn/cooperative_model.hpp"
#include "sheafnn/bsnn/cooperative_network.hpp"
#include "sheafnn/bsnn/elbo.hpp"
#include "sheafnn/bsnn/flow_network.hpp"
#include "sheafnn/bsnn/layer_features.hpp"
#include "sheafnn/bsnn/network.hpp"
#include "sheafnn/graph/dataset.hpp"
#include "sheafnn/io/matrix_market.hpp"
#include "sheafnn/layers/batch_norm.hpp"
#include "sheafnn/layers/diffusion_layer.hpp"
#include "sheafnn/layers/polynomial_basis.hpp"
#include "sheafnn/nn/adam.hpp"
#include "sheafnn/posterior/priors.hpp"
#include "sheafnn/rotation/goodness_of_fit.hpp"
#include "sheafnn/rotation/wrapped_cauchy.hpp"
#include "sheafnn/sheaf/approximate_sections.hpp"
#include "sheafnn/sheaf/coboundary.hpp"
#include "sheafnn/sheaf/harmonic.hpp"
#include "sheafnn/sheaf/laplacian_operator.hpp"
#include "sheafnn/uncertainty/metrics.hpp"
#include "sheafnn/uncertainty/sampling.hpp"
#include "tiny_task.hpp"

namespace test_boundaries {
namespace {

using sheafnn::BackwardOptions;
using sheafnn::Bsnn;
using sheafnn::Classification;
using sheafnn::Diagonal;
using sheafnn::DirectedArcs;
using sheafnn::Execution;
using sheafnn::Graph;
using sheafnn::Index;
using sheafnn::MatrixView;
using sheafnn::Network;
using sheafnn::NodeFeatures;

using Call = std::function<void()>;
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// std::invalid_argument with a message that begins like this.
void refused(const std::string& message, const Call& call) {
  std::string said = "nothing is thrown";
  try {
    call();
  } catch (const std::invalid_argument& error) {
    said = error.what();
  }
  CHECK(said.substr(0, message.size()) == message);
}
/// std::logic_error of another kind: a call that comes too early.
void too_early(const std::string& message, const Call& call) {
  std::string said = "nothing is thrown";
  try {
    call();
  } catch (const std::invalid_argument&) {
    said = "an argument is refused";
  } catch (const std::logic_error& error) {
    said = error.what();
  }
  CHECK(said.substr(0, message.size()) == message);
}

using Model = Bsnn<Diagonal<2>>;
using Pass = sheafnn::ForwardPass<float>;

// What a network refers to outlives it.
template <class M>
constexpr bool takes_what_stays = std::is_constructible_v<Network<M>, const M&, Graph&, NodeFeatures> &&
                                  !std::is_constructible_v<Network<M>, M, Graph&, NodeFeatures> &&
                                  !std::is_constructible_v<Network<M>, M&, Graph, NodeFeatures> &&
                                  !std::is_constructible_v<Network<M>, M, Graph, NodeFeatures> &&
                                  !std::is_constructible_v<Network<M>, M&, Graph, NodeFeatures, Execution>;
static_assert(takes_what_stays<Model>);
static_assert(takes_what_stays<sheafnn::FlowModel<Diagonal<2>, sheafnn::PointMass<Diagonal<2>>>>);
using Csnn = sheafnn::Csnn<2, double>;
static_assert(takes_what_stays<Csnn>);
static_assert(std::is_constructible_v<Network<Csnn>, Csnn&, Graph&, DirectedArcs&, NodeFeatures>);
static_assert(!std::is_constructible_v<Network<Csnn>, Csnn&, Graph&, DirectedArcs, NodeFeatures>);
static_assert(!std::is_constructible_v<Classification, std::vector<std::int32_t>>);
static_assert(!std::is_constructible_v<Classification, std::vector<std::int32_t>&, std::vector<double>>);
static_assert(std::is_constructible_v<Classification, std::vector<std::int32_t>&, std::vector<double>&>);

// A step that lacks the step before it does not compile.
template <class N>
concept has_steps = requires(N& network) {
  network.draw(0);
} || requires(N& network) { network.accumulate(network.output_bar()); } || requires(N& network) {
  network.finish_backward();
};
static_assert(!has_steps<Network<Model>>);
static_assert(!has_steps<Network<Csnn>>);
static_assert(!std::is_default_constructible_v<sheafnn::BegunPass<Network<Model>>>);
static_assert(!std::is_default_constructible_v<sheafnn::BackwardPass<Network<Model>>>);
static_assert(!std::is_default_constructible_v<sheafnn::DrawnSample<MatrixView<float>>>);

TEST_CASE("boundaries: passes of networks") {
  const tiny::Task task;
  const Model model(tiny::options());
  Network<Model> network(model, task.graph, task.sparse);
  const Classification loss(task.labels);

  // Steps in another order.
  too_early("features_after() needs begin()", [&] { static_cast<void>(network.features_after(0)); });
  too_early("kl() needs begin()", [&] { static_cast<void>(network.kl()); });
  too_early("a backward pass needs a draw", [&] { network.backward(network.output_bar()); });
  too_early("begin() with `shared` needs share()", [&] { network.begin({}, &network); });
  const auto evaluation = network.begin({});
  too_early("a backward pass needs a draw", [&] { evaluation.begin_backward(); });
  const auto pass = network.begin({.training = true});
  too_early("the pass has ended", [&] { evaluation.draw(); });
  too_early("the pass has ended", [&] { evaluation.draw_samples(1, [](const auto&) {}); });
  auto backward = pass.begin_backward();
  const auto first = pass.draw(0);
  too_early("finish() needs add()", [&] { backward.finish(); });
  const auto second = pass.draw(1);
  too_early("the sample has ended", [&] { backward.add(first, network.output_bar()); });
  backward.add(second, network.output_bar());
  too_early("the sample has ended", [&] { backward.add(second, network.output_bar()); });
  backward.finish();
  too_early("finish() needs add()", [&] { backward.finish(); });
  const auto third = pass.draw();
  too_early("add() needs a backward pass", [&] { backward.add(third, network.output_bar()); });
  auto other = pass.begin_backward();
  too_early("the backward pass has ended", [&] { backward.add(third, network.output_bar()); });
  other.add(third, network.output_bar());
  too_early("the backward pass has ended", [&] { backward.finish(); });
  other.finish();

  // Samples and layers out of range.
  refused("sample: -1", [&] { pass.draw(-1); });
  refused("sample: 32768", [&] { pass.draw(32768); });
  refused("samples: 0", [&] { pass.draw_samples(0, [](const auto&) {}); });
  refused("samples: 32769", [&] { pass.draw_samples(32769, [](const auto&) {}); });
  refused("layer_count: -1", [&] { static_cast<void>(network.features_after(-1)); });
  refused("layer_count: 3", [&] { static_cast<void>(network.features_after(3)); });
  refused("sample: -1", [&] { network.begin({.sample = -1}); });
  refused("dropout: 1", [&] { network.begin({.dropout = 1}); });
  refused("input_dropout: nan", [&] { network.begin({.input_dropout = nan}); });

  // Nodes.
  const std::vector<std::int32_t> falling = {1, 0}, outside = {6, 7}, some = {2, 4};
  refused("nodes[1]: 0", [&] { network.begin({.nodes = falling}); });
  refused("nodes[1]: 7", [&] { network.begin({.nodes = outside}); });
  const Pass training = {.training = true};
  refused("nodes: an empty set", [&] { static_cast<void>(elbo(network, training, loss, {})); });
  refused("nodes[1]: 7", [&] { static_cast<void>(elbo(network, training, loss, outside)); });
  refused("nodes[0]: 0",
          [&] { static_cast<void>(elbo(network, {.training = true, .nodes = some}, loss, task.train)); });
  too_early("a backward pass needs", [&] { static_cast<void>(elbo(network, {}, loss, task.train)); });

  // Labels.
  std::vector<std::int32_t> labels = task.labels;
  labels[3] = 3;
  refused("labels[3]: 3", [&] { static_cast<void>(elbo(network, training, Classification(labels), task.train)); });
  labels[3] = -2;
  refused("labels[3]: -2",
          [&] { static_cast<void>(elbo(network, training, Classification(labels), task.train)); });
  labels.pop_back();
  refused("size of labels: 6",
          [&] { static_cast<void>(elbo(network, training, Classification(labels), task.train)); });
  labels.assign(7, -1);
  refused("nodes: 6 nodes",
          [&] { static_cast<void>(elbo(network, training, Classification(labels), task.train)); });
  const std::vector<double> two = {1, 1}, negative = {1, 1, -1};
  refused("size of class_weights: 2",
          [&] { static_cast<void>(elbo(network, training, Classification(task.labels, two), task.train)); });
  refused("class_weights[2]: -1",
          [&] { static_cast<void>(elbo(network, training, Classification(task.labels, negative), task.train)); });

  // Options of the backward pass.
  for (const auto& [message, options] : {std::pair{"samples: 0", BackwardOptions{.samples = 0}},
                                         {"samples: 32769", {.samples = 32769}},
                                         {"kl_weight: -1", {.kl_weight = -1}},
                                         {"kl_weight: nan", {.kl_weight = nan}}}) {
    refused(message, [&, &of = options] { static_cast<void>(elbo(network, training, loss, task.train, of)); });
  }

  // Explicit noise: too short an array, too few of them for a sample that is drawn later.
  const std::vector<float> noise(static_cast<std::size_t>(task.graph.arc_count() * 2), 0.1f);
  const std::span<const float> whole(noise);
  const Pass given = {.training = true, .noise = {whole, whole}};
  refused("size of noise[1]: 35", [&] { network.begin({.noise = {whole, whole.first(35)}}); });
  refused("noise: 1", [&] { network.begin({.noise = {whole}}); });
  refused("noise: 2", [&] { network.begin({.sample = 1, .noise = {whole, whole}}); });
  const auto with_noise = network.begin(given);
  refused("noise: 2", [&] { with_noise.draw(1); });
  refused("noise: 2", [&] { with_noise.draw_samples(2, [](const auto&) {}); });
  refused("noise: 2", [&] { static_cast<void>(elbo(network, given, loss, task.train, {.samples = 2})); });

  // Derivatives of another shape.
  network.forward(training);
  std::vector<float> bar(21);
  refused("shape of output_bar: 3 x 7", [&] { network.backward(MatrixView<const float>(bar.data(), 3, 7)); });
  refused("shape of output_bar: 0 x 0", [&] { network.backward({}); });
}

TEST_CASE("boundaries: cooperative networks") {
  const tiny::Task task;
  const Csnn model({.features = 4, .channels = 2, .layers = 2, .classes = 3});
  Network<Csnn> network(model, task.graph, task.sparse);
  too_early("features_after() needs begin()", [&] { static_cast<void>(network.features_after(0)); });
  const auto pass = network.begin({});
  too_early("a backward pass needs a draw", [&] { pass.begin_backward(); });
  refused("sample: 32768", [&] { pass.draw(32768); });
  refused("layer_count: 3", [&] { static_cast<void>(network.features_after(3)); });
  refused("layer: 2", [&] { static_cast<void>(network.node_maps(2)); });
  refused("layer: -1", [&] { static_cast<void>(network.node_maps(-1)); });
}

TEST_CASE("boundaries: graphs and features") {
  using Labels = std::vector<std::int32_t>;
  const std::vector<double> none, one = {1};
  refused("rows: -1", [&] { NodeFeatures::from_dense(std::span(one), -1, -1); });
  refused("columns: -1", [&] { NodeFeatures::from_dense(std::span(none), 0, -1); });
  refused("rows: 8589934592", [&] { NodeFeatures::from_dense(std::span(none), Index{1} << 33, Index{1} << 31); });
  refused("features: 1", [&] { NodeFeatures::from_dense(std::span(one), 1, 2); });
  refused("nodes: -1", [] { NodeFeatures::identity(-1); });
  // An offset behind the arrays, before one that decreases: read only after it is known to be within.
  refused("features.offsets[1]: 1000000", [] { NodeFeatures::from_csr({0, 1'000'000, 2}, {0, 1}, {1, 1}, 2); });
  refused("columns: -1", [] { NodeFeatures::from_csr({0}, {}, {}, -1); });

  const Labels labels = {0, -1, 1};
  for (const std::int32_t u : {-1, 3}) {
    const Labels nodes = {0, u};
    refused("node: " + std::to_string(u), [&] { static_cast<void>(sheafnn::labelled_nodes(labels, nodes)); });
  }
  sheafnn::Dataset data;
  data.labels = {0, -1, 2};
  data.class_names = {"a", "b"};
  const std::vector<std::string> names = {"b", "a"};
  refused("label: 2", [&] { sheafnn::renumber_classes(data, names); });
  CHECK(data.labels == Labels{0, -1, 2});
}

TEST_CASE("boundaries: features that the numbers of a model cannot hold") {
  tiny::Task task;
  task.dense[0] = 1e300;
  const NodeFeatures large = NodeFeatures::from_dense(std::span<const double>(task.dense), 7, 4);
  sheafnn::ModelOptions options = tiny::options();
  options.feature_treatment = sheafnn::FeatureTreatment::none;
  const Model single(options);
  refused("features[0, 0]: 1e+300", [&] { Network<Model> network(single, task.graph, large); });
  // Row-normalised they are numbers like others, even where their sum is not finite.
  task.dense[1] = task.dense[2] = 1.5e308;
  NodeFeatures sums = NodeFeatures::from_dense(std::span<const double>(task.dense), 7, 4);
  sums.normalise_rows();
  CHECK(sums.values()[0] == doctest::Approx(1e300 / 1.5e308 / 2));
  CHECK(sums.values()[1] == doctest::Approx(0.5));
}

TEST_CASE("boundaries: sizes and memory") {
  using Numbers = sheafnn::Buffer<double>;
  CHECK_THROWS_AS(Numbers(-1), std::bad_array_new_length);
  CHECK_THROWS_AS(Numbers{std::numeric_limits<Index>::max()}, std::bad_array_new_length);
  Numbers numbers(3);
  CHECK_THROWS_AS(numbers.resize(std::numeric_limits<Index>::max() / 8 + 1), std::bad_array_new_length);
  CHECK(numbers.size() == 3);  // what was refused has left no trace
  refused("threads: 0", [] { static_cast<void>(Execution(0)); });

  refused("rows: -1", [] { sheafnn::layers::DenseLayer<double>(-1, 2, 2); });
  refused("inputs: 0", [] { sheafnn::layers::DenseLayer<double>(1, 0, 2); });
  refused("outputs: -1", [] { sheafnn::layers::DenseLayer<double>(1, 1, -1); });
  refused("columns: -2", [] { sheafnn::layers::DropoutLayer<double>(1, -2); });
  refused("width: 0", [] { sheafnn::layers::LayerNorm<double>(1, 0); });
  refused("width: -1", [] { sheafnn::layers::BatchNorm<double>(1, -1); });
  refused("rows: -1", [] { sheafnn::layers::BatchNorm<double>(-1, 1); });
  refused("outputs: 0", [] { sheafnn::layers::OutputLayer<double>(1, 1, 0); });
  refused("nodes: 3000000000", [] { sheafnn::layers::OutputLayer<double>(3'000'000'000, 1, 1); });
  refused("hidden_layers: -1", [] { sheafnn::layers::ReadoutHead<double>(1, 1, 1, -1); });
}

using Layer = sheafnn::layers::DiffusionLayer<Diagonal<2>, double>;
using Shape = sheafnn::layers::DiffusionShape<double>;
using Blocks = sheafnn::layers::SheafBlocks<Diagonal<2>, double>;
using Edges = sheafnn::layers::EdgeBlocks<double>;
static_assert(std::is_constructible_v<Layer, Graph&, Shape&> && !std::is_constructible_v<Layer, Graph, Shape&> &&
              !std::is_constructible_v<Layer, Graph&, Shape> && !std::is_constructible_v<Layer, Graph, Shape>);
static_assert(!std::is_constructible_v<Blocks, Graph, Edges&, sheafnn::Normalisation> &&
              !std::is_constructible_v<Blocks, Graph&, Edges, sheafnn::Normalisation>);
static_assert(!std::is_constructible_v<sheafnn::layers::SheafLearner<double>, Graph, Edges&,
                                       sheafnn::layers::SheafLearnerOptions>);
static_assert(!std::is_constructible_v<sheafnn::layers::Encoder<double>, sheafnn::layers::SparseInput<double>,
                                       Graph&, sheafnn::layers::EncoderOptions>);

TEST_CASE("boundaries: a diffusion layer") {
  using sheafnn::FeatureView;
  const tiny::Task task;
  const Graph other(7, {});
  refused("stalk dimension: 0", [&] { Shape(task.graph, 0, false, false, 2); });
  refused("channels: 0", [&] { Shape(task.graph, 2, false, false, 0); });
  refused("channels: 1025", [&] { Shape(task.graph, 2, false, false, 1025); });
  const Shape shape(task.graph, 2, true, false, 2), of_three(task.graph, 3, false, false, 2);
  const Graph small(6, {});
  refused("stalk coordinates of the shape: 3", [&] { Layer(task.graph, of_three); });
  refused("nodes of the shape: 7", [&] { Layer(small, shape); });

  Layer layer(task.graph, shape);
  const Edges edges(task.graph), of_other(other);
  const Blocks none, sheaf(task.graph, edges, sheafnn::Normalisation::augmented),
      elsewhere(other, of_other, sheafnn::Normalisation::augmented);
  sheafnn::layers::SheafBlocksGradient<Diagonal<2>, double> gradient(task.graph, edges);
  std::vector<double> numbers(42), left(9), right(4), epsilon(3);
  const sheafnn::layers::DiffusionWeights<double> out{{left.data(), 3, 3}, {right.data(), 2, 2}, epsilon};
  const sheafnn::layers::DiffusionWeights<const double> weights{out.left, out.right, out.epsilon},
      narrow{out.left, out.right, std::span<const double>(epsilon).first(2)};
  const FeatureView<double> x(numbers.data(), 7, 3, 2), less(numbers.data(), 6, 3, 2);
  const sheafnn::NodeSelection all(7);
  using View = FeatureView<double>;
  const auto evaluate = [&](const auto& w, const Blocks& of, const View& in, const View& to) {
    layer.set_weights(w);
    layer.forward({.execution = 1, .sheaf = of, .x = in, .nodes = all, .training = false, .scratch = to});
  };
  refused("size of epsilon: 2", [&] { evaluate(narrow, sheaf, x, x); });
  refused("shape of x: 6 x 3 x 2", [&] { evaluate(weights, sheaf, less, x); });
  refused("shape of scratch: 6 x 3 x 2", [&] { evaluate(weights, sheaf, x, less); });
  refused("sheaf: none", [&] { evaluate(weights, none, x, x); });
  refused("sheaf: one over 7 nodes and 0 edges", [&] { evaluate(weights, elsewhere, x, x); });
  layer.set_weights(weights);
  layer.set_gradient(out);
  refused("shape of x: 6 x 3 x 2", [&] { layer.forward({1, sheaf, less, less, all}); });
  layer.forward({1, sheaf, x, x, all});
  const auto backward = [&](const FeatureView<double>& x_bar, const FeatureView<double>& y_bar,
                            const FeatureView<double>& r_bar) {
    layer.backward({1, sheaf, gradient, false, x, x_bar, {}, {y_bar, r_bar}});
  };
  refused("shape of x_bar: 6 x 3 x 2", [&] { backward(less, x, x); });
  refused("shape of scratch[0]: 6 x 3 x 2", [&] { backward(x, less, x); });
  refused("shape of scratch[1]: 6 x 3 x 2", [&] { backward(x, x, less); });

  const sheafnn::PolynomialOptions filter{sheafnn::PolynomialBasis::chebyshev, 2};
  const std::vector<double> theta(3);
  const sheafnn::layers::Polynomial p(filter, std::span<const double>(theta));
  refused("size of theta_bar: 2", [&] { p.backward(std::span<const double>(theta), std::span(left).first(2)); });
  refused("size of coefficient_bar: 2",
          [&] { p.backward(std::span<const double>(theta).first(2), std::span(epsilon)); });
}

TEST_CASE("boundaries: parameters and Adam") {
  using sheafnn::layers::ParameterGroup;
  sheafnn::layers::ParameterSet<double> parameters;
  refused("extent of w: no extent", [&] { parameters.add("w", {}, ParameterGroup::network); });
  refused("extent of w: 0", [&] { parameters.add("w", {2, 0}, ParameterGroup::network); });
  const sheafnn::layers::ParameterId w = parameters.add("w", {2, 3}, ParameterGroup::network, true);
  refused("w: 0", [&] { parameters.set(w, std::vector<double>(6)); });  // before finish()
  parameters.finish();
  refused("w: 5", [&] { parameters.set(w, std::vector<double>(5)); });
  refused("array: 5", [&] { static_cast<void>(parameters.get(w, sheafnn::Buffer<double>(5))); });
  refused("parameter: v", [&] { static_cast<void>(parameters.find("v")); });
  sheafnn::layers::Adam<double> adam(6, 0.1), short_one(5, 0.1), still(6, 0);
  const sheafnn::Buffer<double> gradient(6), other(7);
  refused("size of the gradient: 7", [&] { adam.step(1, parameters, other); });
  refused("size of Adam's first_moment: 5", [&] { short_one.step(1, parameters, gradient); });
  refused("learning_rate: 0", [&] { still.step(1, parameters, gradient); });
  refused("weight_decay: -1", [&] { adam.step(1, parameters, gradient, -1); });
  refused("sheaf_decay: nan", [&] { adam.step(1, parameters, gradient, 0, nan); });
  adam.second_moment.resize(5);
  refused("size of Adam's second_moment: 5", [&] { adam.step(1, parameters, gradient); });
  CHECK(adam.step_count == 0);
  refused("prior: deviation[1]: 0", [] { sheafnn::NormalPrior<2>({0, 0}, {1, 0}); });
  refused("prior: mean[0]: inf", [] { sheafnn::NormalPrior<2>(std::numeric_limits<double>::infinity(), 1); });
}

using Operator = sheafnn::sheaf::LaplacianOperator<Diagonal<2>, double>;
using Laplacian = sheafnn::SheafLaplacian<Diagonal<2>, double>;
static_assert(std::is_constructible_v<Operator, const Laplacian&, double, Execution>);
static_assert(!std::is_constructible_v<Operator, Laplacian> &&
              !std::is_constructible_v<Operator, Laplacian, double> &&
              !std::is_constructible_v<Operator, Laplacian, double, Execution> &&
              !std::is_constructible_v<Operator, const Laplacian, double, int>);

TEST_CASE("boundaries: sheaves") {
  using Space = sheafnn::sheaf::HarmonicSpace<double>;
  const sheafnn::Cochain<double> basis = sheafnn::Cochain<double>::Zero(2, 1);
  refused("node_count: -1", [] { Space(-1, 1, {}); });
  refused("stalk_dimension: 0", [] { Space(1, 0, {}); });
  refused("node: 3", [&] { Space(3, 2, {{{3}, basis}}); });
  refused("rows of a basis: 2", [&] { Space(3, 2, {{{0, 1}, basis}}); });
  sheafnn::sheaf::ApproximateSections<double> sections{basis, sheafnn::Cochain<double>::Zero(1, 1), 2};
  refused("section: 1", [&] { static_cast<void>(sections.section(1)); });
  refused("section: -1", [&] { static_cast<void>(sections.section(-1)); });
  const tiny::Task task;
  sheafnn::CellularSheaf<Diagonal<2>> sheaf(task.graph);
  refused("edge: 9", [&] { static_cast<void>(sheaf.arc_of(0, 9)); });
  refused("node: 6", [&] { static_cast<void>(sheaf.map(6, 0)); });
  refused("arc: 18", [&] { sheaf.set_map(18, {1, 1}); });
  refused("maps[2](1, 0): nan", [&] { sheaf.set_map(2, {1, nan}); });
  const sheafnn::Cochain<double> x = sheafnn::Cochain<double>::Zero(13, 1);
  refused("rows of x: 13", [&] { static_cast<void>(coboundary(sheaf, x)); });
  refused("rows of y: 13", [&] { static_cast<void>(coboundary_transpose(sheaf, x)); });
  const Laplacian laplacian(sheaf);
  refused("rows of x: 13", [&] { static_cast<void>(laplacian.apply(x)); });
  sheafnn::Cochain<double> y = sheafnn::Cochain<double>::Zero(14, 2);
  refused("size of y: 14 x 2", [&] { Operator(laplacian).apply(sheafnn::Cochain<double>::Zero(14, 1), y); });
  refused("shift: nan", [&] { static_cast<void>(Operator(laplacian, nan)); });
  refused("graph: a null pointer", [] { sheafnn::CellularSheaf<Diagonal<2>>(std::shared_ptr<const Graph>()); });
}

TEST_CASE("boundaries: rotations") {
  using Matrix = sheafnn::SquareMatrix<double, 3>;
  for (int k = 0; k < 9; ++k) {  // wherever it is
    Matrix m = Matrix::Identity();
    m(k / 3, k % 3) = nan;
    CHECK(std::isnan(sheafnn::rotation::orthogonality_defect<double, 3>(m)));
  }
  refused("uniformity: probabilities[1]: nan", [] {
    static_cast<void>(sheafnn::rotation::uniformity({0.5, nan, 0.25}));
  });
  refused("uniformity: probabilities[1]: 1.5", [] {
    static_cast<void>(sheafnn::rotation::uniformity({0.5, 1.5}));
  });
  const sheafnn::math::Column<double, 3> longer(2, 0, 0);
  refused("x: a vector of length 2",
          [&] { static_cast<void>(sheafnn::rotation::unit_vector<double, 3>("x", longer)); });
  const sheafnn::rotation::WrappedCauchy<double> circle(0, 0.5);
  refused("pdf: angle: nan", [&] { static_cast<void>(pdf(circle, nan)); });
  refused("angle_cdf: r: 4", [&] { static_cast<void>(angle_cdf(circle, 4)); });
  refused("angle_quantile: probability: nan", [&] { static_cast<void>(angle_quantile(circle, nan)); });
  refused("WrappedCauchy: concentration: 1", [] { sheafnn::rotation::WrappedCauchy<double>(0, 1); });
  CHECK(std::isnan(sample_from_uniform(circle, nan)));
}

TEST_CASE("boundaries: uncertainty") {
  sheafnn::uncertainty::SampledPredictionBuilder builder(2, 2);
  const std::vector<double> good = {0.5, 0.5, 0.25, 0.75}, bad = {0.5, 0.5, 0.25, nan};
  builder.add(good.data());
  refused("probabilities[1, 1]: nan", [&] { builder.add(bad.data()); });
  refused("stride: 1", [&] { builder.add(good.data(), 1); });
  using Labels = std::vector<std::int32_t>;
  const Labels labels = {0, 2}, all = {0, 1}, outside = {0, 2};
  refused("labels[1]: 2",
          [&] { static_cast<void>(sheafnn::uncertainty::confusion_matrix(good, 2, labels, all)); });
  refused("labels[1]: 2",
          [&] { static_cast<void>(sheafnn::uncertainty::negative_log_likelihood(good, 2, labels, all)); });
  refused("nodes[1]: 2",
          [&] { static_cast<void>(sheafnn::uncertainty::reliability_diagram(good, 2, all, outside)); });
  refused("bins: 0", [&] { static_cast<void>(sheafnn::uncertainty::reliability_diagram(good, 2, all, all, 0)); });
  refused("diagram nodes: 0", [] { static_cast<void>(sheafnn::uncertainty::expected_calibration_error({})); });
  refused("class_count: 0",
          [&] { static_cast<void>(sheafnn::uncertainty::confusion_matrix(good, 0, labels, all)); });
  CHECK_THROWS_AS(static_cast<void>(sheafnn::uncertainty::negative_log_likelihood(good, 2, all, {})),
                  std::invalid_argument);
  CHECK(builder.sample_count() == 1);  // what was refused has left no trace
  CHECK(builder.result().probabilities == good);
  CHECK(builder.result().mutual_information == std::vector<double>{0, 0});
}

TEST_CASE("boundaries: entries of matrices") {
  using Entries = std::vector<sheafnn::io::MatrixEntries::Entry>;
  const auto features = [](Index rows, Index columns, const Entries& entries) {
    return sheafnn::io::to_features({"m", rows, columns, entries});
  };
  CHECK(features(2, 2, {{0, 1, 1}, {1, 0, 2}}).entries() == 2);
  refused("m: row: 2", [&] { features(2, 2, {{0, 1, 1}, {2, 0, 2}}); });
  refused("m: row: -1", [&] { features(2, 2, {{-1, 1, 1}}); });
  refused("m: row: 0", [&] { features(2, 2, {{1, 0, 1}, {0, 0, 1}}); });
  refused("m: rows: -1", [&] { features(-1, 2, {}); });
  refused("features[0]: column 2", [&] { features(2, 2, {{0, 2, 1}}); });
}

}  // namespace
}  // namespace test_boundaries
