/// \file
/// Every layer by itself, through its views: forward passes against plain matrices, derivatives against central
/// differences along every coordinate, threads, and refused views. (Diffusion: test_sheaf_diffusion_layer.cpp.)
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "model_gradient.hpp"
#include "sheafnn/layers/cooperative_layer.hpp"
#include "sheafnn/layers/dropout_layer.hpp"
#include "sheafnn/layers/linear_pair.hpp"
#include "sheafnn/layers/node_embedding.hpp"
#include "sheafnn/layers/node_learner.hpp"
#include "sheafnn/layers/output_layer.hpp"
#include "sheafnn/layers/sheaf_learner.hpp"
#include "tiny_task.hpp"
#include "worst.hpp"

namespace test_layers {
namespace {

using namespace sheafnn;
using namespace sheafnn::layers;
using namespace sheafnn::rotation;
using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// At most a few hundred operations on numbers of size 1.
constexpr double bound = 64 * std::numeric_limits<double>::epsilon();
constexpr Index n = tiny::Task::nodes;

/// Numbers with names, of which views are taken: weights and inputs, or their derivatives.
struct Numbers {
  ParameterSet<double> set;

  ParameterId add(const std::string& name, Index rows, Index columns) {
    return set.add(name, {rows, columns}, ParameterGroup::network);
  }
  void fill(std::uint64_t seed) {
    set.finish();
    tiny::disturb(set, seed, 1.0);
  }
  /// Of the numbers, or of an array laid out like them.
  template <class T>
  [[nodiscard]] MatrixView<T> view(ParameterId id, T* data) const {
    return {data + set.info(id).offset, set.info(id).shape[0], set.info(id).shape[1]};
  }
  template <class T>
  [[nodiscard]] LinearWeights<T> linear(ParameterId weight, ParameterId bias, T* data) const {
    return {view(weight, data), {view(bias, data).data(), static_cast<std::size_t>(set.info(bias).size)}};
  }
  [[nodiscard]] const double* data() const { return set.values().data(); }
  [[nodiscard]] Matrix matrix(ParameterId id) const { return view(id, data()).eigen(); }
};

Matrix some_matrix(Index rows, Index columns, std::uint64_t seed) {
  Matrix r(rows, columns);
  for (Index i = 0; i < r.size(); ++i) r.data()[i] = tiny::number(seed, i);
  return r;
}
double distance(const Matrix& a, const Matrix& b) {
  REQUIRE(a.rows() == b.rows());
  REQUIRE(a.cols() == b.cols());
  return a.size() == 0 ? 0.0 : (a - b).cwiseAbs().maxCoeff();
}
double elu_of(double x) { return x > 0 ? x : std::expm1(x); }

/// Compares derivatives of ⟨bar, output⟩ in all numbers with central differences.
template <class Output>
void check_gradient(Numbers& numbers, const Buffer<double>& gradient, const Matrix& bar, const Output& output) {
  model_gradient::check_gradient(numbers.set, gradient, [&] { return Matrix(output()).cwiseProduct(bar).sum(); });
}
template <class Call>
void refused(const std::string& message, const Call& call) {
  CHECK_THROWS_WITH_AS(call(), message.c_str(), std::invalid_argument);
}

/// Stored features after dropout, dense.
Matrix dropped_features(const tiny::Task& task, const Dropout& dropout) {
  Matrix x(n, task.features);
  Index entry = 0;
  for (Index i = 0; i < x.size(); ++i) {
    const double value = task.dense[static_cast<std::size_t>(i)];
    x.data()[i] = value;
    if (value != 0 && dropout.active()) x.data()[i] *= dropout.keeps(entry++) ? dropout.scale() : 0.0;
  }
  return x;
}
Matrix dropped_matrix(Matrix x, const Dropout& dropout) {
  for (Index i = 0; i < x.size() && dropout.active(); ++i) {
    x.data()[i] *= dropout.keeps(i) ? dropout.scale() : 0.0;
  }
  return x;
}
/// ELU(X Wᵀ + 1 bᵀ), the weight by inputs.
Matrix encoded(const tiny::Task& task, const Numbers& numbers, ParameterId weight, ParameterId bias,
               const EncoderOptions& options, const Dropout& dropout) {
  const Matrix w = numbers.matrix(weight);
  Matrix r = dropped_features(task, dropout) * w.topRows(task.features);
  for (Index u = 0; u < n; ++u) {
    r.row(u) += numbers.matrix(bias);
    if (options.degrees) r.row(u) += static_cast<double>(task.graph.degree(u)) * w.row(task.features);
  }
  return options.activation ? Matrix(r.unaryExpr([](double x) { return elu_of(x); })) : r;
}

}  // namespace

TEST_CASE("encoder: forward and backward, dropout of features and of the output") {
  const tiny::Task task;
  const SparseInput<double> input(task.sparse);
  for (const bool plain : {true, false}) {
    for (const bool dropping : {false, true}) {
      CAPTURE(plain);
      CAPTURE(dropping);
      const EncoderOptions options{.width = 5, .activation = plain, .degrees = !plain};
      Encoder<double> encoder(input, task.graph, options);
      Numbers numbers;
      const ParameterId weight = numbers.add("weight", task.features + (options.degrees ? 1 : 0), 5);
      const ParameterId bias = numbers.add("bias", 1, 5);
      numbers.fill(2);
      const Dropout features{dropping ? 0.4 : 0.0, Stream{.seed = 3}},
          hidden{dropping ? 0.3 : 0.0, Stream{.seed = 4}};
      const auto output = [&] {
        encoder.forward(1, numbers.linear(weight, bias, numbers.data()), features, hidden, true);
        return encoder.output().eigen();
      };
      CHECK(distance(output(), dropped_matrix(encoded(task, numbers, weight, bias, options, features), hidden)) <=
            bound);
      CHECK(distance(encoder.clean().eigen(), encoded(task, numbers, weight, bias, options, {})) <= bound);
      // The derivative of W replaces what is there, the derivative of b is added.
      const Matrix bar = some_matrix(n, 5, 6);
      Buffer<double> gradient(numbers.set.size());
      gradient.fill(7);
      std::fill_n(numbers.view(bias, gradient.data()).data(), 5, 0.0);
      Matrix work = bar;
      encoder.backward(1, MatrixView(work), numbers.linear(weight, bias, gradient.data()));
      Buffer<double> threaded(gradient.size());
      const Matrix one_thread = output();
      encoder.forward(2, numbers.linear(weight, bias, numbers.data()), features, hidden);
      CHECK(Matrix(encoder.output().eigen()) == one_thread);
      work = bar;
      encoder.backward(2, MatrixView(work), numbers.linear(weight, bias, threaded.data()));
      CHECK(std::equal(gradient.begin(), gradient.end(), threaded.begin()));
      check_gradient(numbers, gradient, bar, output);
    }
  }
}

TEST_CASE("encoder: refused views") {
  const tiny::Task task;
  const SparseInput<double> input(task.sparse);
  Encoder<double> encoder(input, task.graph, {.width = 5, .degrees = true});
  const Matrix weight = some_matrix(5, 5, 1), wide = some_matrix(5, 6, 1);
  const std::vector<double> bias(5);
  refused("shape of encoder weight: 4 x 5 is not allowed; must be 5 x 5", [&] {
    encoder.forward(1, {{weight.data(), 4, 5}, bias});
  });
  refused("stride of encoder weight: 6 is not allowed; must be 5: rows without gaps", [&] {
    encoder.forward(1, {{wide.data(), 5, 5, 6}, bias});
  });
  refused("size of encoder bias: 4 is not allowed; must be 5", [&] {
    encoder.forward(1, {MatrixView(weight), std::span(bias).first(4)});
  });
  encoder.forward(1, {MatrixView(weight), bias});
  Matrix bar(n, 4), weight_bar = weight;
  std::vector<double> bias_bar(5);
  refused("shape of output_bar: 7 x 4 is not allowed; must be 7 x 5", [&] {
    encoder.backward(1, MatrixView(bar), {MatrixView(weight_bar), bias_bar});
  });
  refused("shape of encoder weight: 7 x 4 is not allowed; must be 5 x 5", [&] {
    encoder.backward(1, MatrixView(bar), {MatrixView(bar), bias_bar});
  });
}

TEST_CASE("node embedding: a second linear layer behind the encoder") {
  const tiny::Task task;
  const SparseInput<double> input(task.sparse);
  const EncoderOptions options{.width = 6};
  NodeEmbedding<double> embedding(input, task.graph, options, true);
  Numbers numbers;
  const ParameterId weight = numbers.add("weight", task.features, 6), bias = numbers.add("bias", 1, 6);
  const ParameterId second = numbers.add("second weight", 6, 6), second_bias = numbers.add("second bias", 1, 6);
  numbers.fill(2);
  const Dropout features{0.4, Stream{.seed = 3}}, hidden{0.3, Stream{.seed = 4}};
  const auto output = [&] {
    embedding.forward(1, numbers.linear(weight, bias, numbers.data()),
                      numbers.linear(second, second_bias, numbers.data()), features, hidden, true);
    return embedding.output().eigen();
  };
  const auto expected = [&](const Dropout& of_features, const Dropout& of_hidden) {
    Matrix r = dropped_matrix(encoded(task, numbers, weight, bias, options, of_features), of_hidden) *
               numbers.matrix(second);
    r.rowwise() += Eigen::RowVectorXd(numbers.matrix(second_bias));
    return r;
  };
  CHECK(distance(output(), expected(features, hidden)) <= bound);
  CHECK(distance(embedding.clean().eigen(), expected({}, {})) <= bound);
  const Matrix bar = some_matrix(n, 6, 6);
  Matrix bar_copy = bar, work(n, 6);
  Buffer<double> gradient(numbers.set.size());
  const auto bars = [&](ParameterId w, ParameterId b) { return numbers.linear(w, b, gradient.data()); };
  embedding.backward(1, numbers.linear(second, second_bias, numbers.data()), MatrixView(bar_copy),
                     MatrixView(work), bars(weight, bias), bars(second, second_bias));
  check_gradient(numbers, gradient, bar, output);

  const auto weights = [&](ParameterId w, ParameterId b) { return numbers.linear(w, b, numbers.data()); };
  refused("shape of second weight: 4 x 6 is not allowed; must be 6 x 6",
          [&] { embedding.forward(1, weights(weight, bias), weights(weight, bias), {}, {}, false); });
  refused("size of second bias: 36 is not allowed; must be 6",
          [&] { embedding.forward(1, weights(weight, bias), weights(second, second), {}, {}, false); });
  Matrix narrow(n, 5);
  refused("shape of output_bar: 7 x 5 is not allowed; must be 7 x 6", [&] {
    embedding.backward(1, weights(second, second_bias), MatrixView(narrow), MatrixView(work), bars(weight, bias),
                       bars(second, second_bias));
  });
  refused("shape of work: 7 x 5 is not allowed; must be 7 x 6", [&] {
    embedding.backward(1, weights(second, second_bias), MatrixView(work), MatrixView(narrow), bars(weight, bias),
                       bars(second, second_bias));
  });
  refused("shape of second weight: 4 x 6 is not allowed; must be 6 x 6", [&] {
    embedding.backward(1, weights(second, second_bias), MatrixView(work), MatrixView(work), bars(weight, bias),
                       bars(weight, bias));
  });
}

namespace {

/// A sheaf learner with weights and embeddings in one set.
struct LearnerCase {
  tiny::Task task;
  EdgeBlocks<double> blocks{task.graph};
  SheafLearnerOptions options;
  Numbers numbers;
  ParameterId z, mean = -1, spread = -1, edge = -1;
  std::vector<ParameterId> hidden;
  Buffer<double> edge_bar;  ///< which backward passes read

  explicit LearnerCase(const SheafLearnerOptions& of) : options(of) {
    z = numbers.add("embeddings", n, options.inputs);
    Index inputs = 2 * options.inputs;
    for (Index k = 0; k < options.hidden_layers; ++k) {
      hidden.push_back(numbers.add("hidden" + std::to_string(hidden.size()), options.width, inputs));
      inputs = options.width;
    }
    mean = numbers.add("mean", options.mean, inputs);
    if (options.spread > 0) spread = numbers.add("spread", options.spread, inputs);
    if (options.edge_weights) edge = numbers.add("edge", 1, 2 * options.inputs);
    numbers.fill(2);
  }
  template <class T>
  [[nodiscard]] SheafLearnerWeights<T> weights(T* data) const {
    SheafLearnerWeights<T> r;
    for (std::size_t k = 0; k < hidden.size(); ++k) r.hidden[k] = numbers.view(hidden[k], data);
    r.mean = numbers.view(mean, data);
    if (spread >= 0) r.spread = numbers.view(spread, data);
    if (edge >= 0) r.edge = numbers.view(edge, data);
    return r;
  }
  /// Raw outputs of every arc and, in one more column, the weights of their edges.
  [[nodiscard]] Matrix expected() const {
    Matrix r = Matrix::Ones(task.graph.arc_count(), options.outputs() + 1);
    const Matrix x = numbers.matrix(z);
    const auto both = [&](Index arc) {
      Eigen::VectorXd v(2 * options.inputs);
      v << x.row(task.graph.source(arc)).transpose(), x.row(task.graph.target(arc)).transpose();
      return v;
    };
    for (Index arc = 0; arc < r.rows(); ++arc) {
      Eigen::VectorXd v = both(arc);
      for (const ParameterId id : hidden)
        v = (numbers.matrix(id) * v).unaryExpr([](double a) { return elu_of(a); });
      r.row(arc).head(options.mean) = (numbers.matrix(mean) * v).transpose();
      if (spread >= 0) r.row(arc).segment(options.mean, options.spread) = (numbers.matrix(spread) * v).transpose();
      if (edge < 0) continue;
      for (const Index a : {arc, task.graph.reverse(arc)}) {
        r(arc, options.outputs()) /= 1 + std::exp(-numbers.matrix(edge).row(0).dot(both(a)));
      }
    }
    return r;
  }
  /// The same as the learner has them.
  [[nodiscard]] Matrix outputs(const SheafLearner<double>& learner) const {
    Matrix r = Matrix::Ones(task.graph.arc_count(), options.outputs() + 1);
    for_lanes([&](Index block, int side, int lane, Index arc) {
      for (Index k = 0; k < options.outputs(); ++k) r(arc, k) = learner.raw(block, side)[k * blocks.width + lane];
      if (edge >= 0) r(arc, options.outputs()) = learner.edge_weights()[block * blocks.width + lane];
    });
    return r;
  }
  /// Gives the learner the derivative of ⟨bar, outputs()⟩; idle lanes get what must not matter.
  void set_bar(SheafLearner<double>& learner, const Matrix& bar) {
    edge_bar.resize(blocks.block_count() * blocks.width);
    edge_bar.fill(1e3);
    for (Index block = 0; block < blocks.block_count(); ++block) {
      for (int side = 0; side < 2; ++side) {
        std::fill_n(learner.raw_bar(block, side), options.outputs() * blocks.width, 1e3);
      }
    }
    for_lanes([&](Index block, int side, int lane, Index arc) {
      for (Index k = 0; k < options.outputs(); ++k)
        learner.raw_bar(block, side)[k * blocks.width + lane] = bar(arc, k);
      edge_bar[block * blocks.width + lane] =
          bar(arc, options.outputs()) + bar(task.graph.reverse(arc), options.outputs());
    });
    learner.set_edge_weights_bar(edge_bar);
  }
  template <class Body>
  void for_lanes(const Body& body) const {
    for (Index block = 0; block < blocks.block_count(); ++block) {
      for (int side = 0; side < 2; ++side) {
        for (int lane = 0; lane < blocks.lane_count(block); ++lane) {
          body(block, side, lane, static_cast<Index>(blocks.arcs(block, side)[lane]));
        }
      }
    }
  }
};

}  // namespace

TEST_CASE("sheaf learner: hidden layers, spread and edge weights") {
  for (const Index hidden : {0, 1, 3}) {
    for (const Index spread : {0, 1}) {
      for (const bool edge_weights : {false, true}) {
        CAPTURE(hidden);
        CAPTURE(spread);
        CAPTURE(edge_weights);
        LearnerCase c({.inputs = 3,
                       .mean = 3,
                       .spread = spread,
                       .hidden_layers = hidden,
                       .width = hidden > 0 ? 5 : 0,
                       .edge_weights = edge_weights});
        SheafLearner<double> learner(c.task.graph, c.blocks, c.options);
        CHECK(learner.has_edge_weights() == edge_weights);
        const auto output = [&] {
          learner.forward(1, c.weights(c.numbers.data()), c.numbers.view(c.z, c.numbers.data()));
          return c.outputs(learner);
        };
        const Matrix one_thread = output();
        CHECK(distance(one_thread, c.expected()) <= bound * std::pow(5.0, static_cast<double>(hidden)));
        const Matrix bar = some_matrix(c.task.graph.arc_count(), c.options.outputs() + 1, 6);
        const auto backward = [&](Execution execution, bool accumulate) {
          Buffer<double> gradient(c.numbers.set.size());
          gradient.fill(accumulate ? 0.0 : 0.5);  // weights are added to in any case
          learner.forward(execution, c.weights(c.numbers.data()), c.numbers.view(c.z, c.numbers.data()));
          c.set_bar(learner, bar);
          learner.backward(execution, c.weights(c.numbers.data()), c.numbers.view(c.z, c.numbers.data()),
                           c.weights(gradient.data()), c.numbers.view(c.z, gradient.data()), accumulate);
          return gradient;
        };
        const Buffer<double> gradient = backward(1, true), on_half = backward(1, false);
        CHECK(c.outputs(learner) == one_thread);
        for (Index i = 0; i < gradient.size(); ++i) {
          const bool embedding = i < n * c.options.inputs;
          CHECK(std::abs(on_half[i] - gradient[i] - (embedding ? 0.0 : 0.5)) <=
                bound * (1 + std::abs(gradient[i])));
        }
        const Buffer<double> threaded = backward(2, true);
        CHECK(std::equal(gradient.begin(), gradient.end(), threaded.begin()));
        check_gradient(c.numbers, gradient, bar, output);
      }
    }
  }
}

TEST_CASE("sheaf learner: refused views") {
  LearnerCase c({.inputs = 3, .mean = 3, .spread = 1, .hidden_layers = 2, .width = 5, .edge_weights = true});
  SheafLearner<double> learner(c.task.graph, c.blocks, c.options);
  const auto z = c.numbers.view(c.z, c.numbers.data());
  const auto weights = c.weights(c.numbers.data());
  refused("shape of z: 7 x 2 is not allowed; must be 7 x 3", [&] {
    learner.forward(1, weights, {z.data(), n, 2, 3});
  });
  const auto with = [&](auto member, const MatrixView<const double>& matrix) {
    auto changed = weights;
    member(changed) = matrix;
    return changed;
  };
  refused("shape of hidden weights: 7 x 3 is not allowed; must be 5 x 6", [&] {
    learner.forward(1,
                    with(
                        [](auto& w) -> auto& { return w.hidden[0]; }, z),
                    z);
  });
  refused("shape of hidden weights: 7 x 3 is not allowed; must be 5 x 5", [&] {
    learner.forward(1,
                    with(
                        [](auto& w) -> auto& { return w.hidden[1]; }, z),
                    z);
  });
  refused("shape of mean weights: 7 x 3 is not allowed; must be 3 x 5", [&] {
    learner.forward(1,
                    with(
                        [](auto& w) -> auto& { return w.mean; }, z),
                    z);
  });
  refused("shape of spread weights: 0 x 0 is not allowed; must be 1 x 5",
          [&] { learner.forward(1, with([](auto& w) -> auto& { return w.spread; }, {}), z); });
  refused("shape of edge weights: 0 x 0 is not allowed; must be 1 x 6",
          [&] { learner.forward(1, with([](auto& w) -> auto& { return w.edge; }, {}), z); });
  refused("stride of mean weights: 6 is not allowed; must be 5: rows without gaps", [&] {
    learner.forward(1, with([](auto& w) -> auto& { return w.mean; }, {c.numbers.data(), 3, 5, 6}), z);
  });
  learner.forward(1, weights, z);
  Buffer<double> gradient(c.numbers.set.size());
  auto weights_bar = c.weights(gradient.data());
  refused("shape of z_bar: 0 x 0 is not allowed; must be 7 x 3",
          [&] { learner.backward(1, weights, z, weights_bar, {}, false); });
  Matrix wide(n, 4);
  refused("stride of z_bar: 4 is not allowed; must be 3: rows without gaps", [&] {
    learner.backward(1, weights, z, weights_bar, {wide.data(), n, 3, 4}, false);
  });
  weights_bar.hidden[1] = {};
  refused("shape of hidden weights: 0 x 0 is not allowed; must be 5 x 5",
          [&] { learner.backward(1, weights, z, weights_bar, c.numbers.view(c.z, gradient.data()), false); });
}

TEST_CASE("sheaf learner: refused options") {
  const tiny::Task task;
  const EdgeBlocks<double> blocks(task.graph);
  const auto refuse = [&](const char* message, const SheafLearnerOptions& options) {
    refused(message, [&] { SheafLearner<double>(task.graph, blocks, options); });
  };
  refuse("learner inputs: -1 is not allowed; must be at least 0", {.inputs = -1});
  refuse("learner spread: -2 is not allowed; must be at least 0", {.inputs = 4, .spread = -2});
  refuse("learner hidden_layers: 9 is not allowed; must be between 0 and 8", {.inputs = 4, .hidden_layers = 9});
  refuse("learner width: 0 is not allowed; must be at least 1", {.inputs = 4, .hidden_layers = 1});
  refuse("learner channels: 0 is not allowed; must be at least 1", {.inputs = 4, .input = LearnerInput::summed});
  refuse("learner inputs: 4 is not allowed; must be a multiple of the 3 channels of a stalk coordinate",
         {.inputs = 4, .input = LearnerInput::summed, .channels = 3});
  refuse("learner parts: 3 is not allowed; must be between 1 and 2", {.inputs = 6, .channels = 3, .parts = 3});
  refuse("learner channels: 3 is not allowed; must be a multiple of the 2 parts",
         {.inputs = 6, .channels = 3, .parts = 2});
  SheafLearner<double> nothing(task.graph, blocks, {.inputs = 4});  // maps that are not learned
  refused("shape of z: 7 x 3 is not allowed; must be 7 x 4",
          [&] { nothing.forward(1, {}, MatrixView<const double>(some_matrix(n, 3, 1))); });
}

TEST_CASE("linear pair: a bias that is missing is 0, whatever an earlier pass had") {
  LinearPair<double> pair(2, 1, true);
  const std::vector<double> weight = {0, 0}, bias = {3}, x = {1, 1};
  const LinearWeights<const double> with{{weight.data(), 2, 1}, bias}, without{{weight.data(), 2, 1}, {}};
  double y[2];
  pair.bind({with, with}, false);
  pair.forward_rows(1, x.data(), 2, y);
  CHECK(y[0] == 3);
  pair.bind({without, with}, false);
  pair.forward_rows(1, x.data(), 2, y);
  CHECK(y[0] == 0);
  CHECK(y[1] == 3);
}

TEST_CASE("node learners: refused options, and too few weights") {
  const tiny::Task task;
  const ArcLists arcs = arc_lists(task.graph);
  using Pair = NodeLearnerPair<double>;
  const auto pair = [&](const NodeLearnerOptions& options) {
    return Pair(arcs, options, {n, 1}, std::make_shared<Pair::Workspace>(n, options));
  };
  const auto refuse = [&](const char* message, const NodeLearnerOptions& options) {
    refused(message, [&] { pair(options); });
  };
  refuse("learner inputs: 0 is not allowed; must be between 1 and 10240", {.inputs = 0, .width = 4, .outputs = 2});
  refuse("learner width: 0 is not allowed; must be between 1 and 10240", {.inputs = 3, .width = 0, .outputs = 2});
  refuse("learner layers: 0 is not allowed; must be at least 1",
         {.kind = NodeLearnerKind::sage, .inputs = 3, .width = 4, .outputs = 2, .layers = 0});
  refuse("learner width: 20000 is not allowed; must be between 1 and 10240",
         {.inputs = 3, .width = 20000, .outputs = 2});
  refused("inputs: 20000 is not allowed; must be between 1 and 10240",
          [&] { SagePair<double>(arcs, 20000, 2, true, true); });
  const NodeLearnerOptions mlp{.inputs = 3, .width = 4, .outputs = 2};
  const auto shared = std::make_shared<Pair::Workspace>(n, mlp);
  refused("nodes of chunks: 3 is not allowed; the graph has 7", [&] { Pair(arcs, mlp, {3, 1}, shared); });
  refused("workspace: null is not allowed; the learners need a workspace", [&] {
    Pair(arcs, mlp, {n, 1}, nullptr);
  });
  refused("nodes of workspace: 3 is not allowed; the graph has 7 rows", [&] {
    Pair(arcs, mlp, {n, 1}, std::make_shared<Pair::Workspace>(3, mlp));
  });
  refused("workspace: of other options is not allowed; must have the options of the learners", [&] {
    Pair(arcs, {.inputs = 3, .width = 4, .outputs = 6}, {n, 1}, shared);
  });
  Pair sage = pair({.kind = NodeLearnerKind::sage, .inputs = 3, .width = 4, .outputs = 2, .layers = 2});
  const auto begin = [&](const Pair::Weights<const double>& weights) {
    sage.begin(
        weights, false, [](int, Index) { return Dropout{}; }, [](DropoutMask&, const Dropout&) {});
  };
  Pair::Weights<const double> weights;
  refused("size of convolutions: 0 is not allowed; must be 2", [&] { begin(weights); });
  for (NodeLearnerWeights<const double>& one : weights) one.convolutions.resize(2);
  refused("size of norms: 0 is not allowed; must be 1", [&] { begin(weights); });
}

TEST_CASE("cooperative layer: refused channels, workspaces, and a backward pass without a forward pass") {
  const tiny::Task task;
  const ArcLists arcs = arc_lists(task.graph);
  detail::CooperativeWorkspace<double> work(n * 2 * 3);
  using Layer = CooperativeLayer<2, double>;
  refused("channels: 0 is not allowed; must be between 1 and 1024", [&] { Layer(arcs, 0, {}, work); });
  refused("workspace: 42 is not allowed; the layer's arrays have 56 numbers", [&] { Layer(arcs, 4, {}, work); });
  Layer layer(arcs, 3, {}, work);
  NodeMapsGradient<2, double> gradient(n);
  CHECK_THROWS_AS(layer.backward(1, gradient, FeatureView<const double>(), FeatureView<double>(), {}),
                  std::logic_error);
  const NodeDegrees<double> degrees(arcs, false);
  NodeMaps<2, double> maps(degrees, true);
  const std::vector<double> x(static_cast<std::size_t>(n * 2 * 3), 1.0), epsilon(2),
      eye = {1, 0, 0, 0, 1, 0, 0, 0, 1};
  const DiffusionWeights<const double> weights{{eye.data(), 2, 2}, {eye.data(), 3, 3}, epsilon};
  layer.forward(1, weights, maps, {x.data(), n, 2, 3}, {}, NodeSelection(n));
  NodeMapsGradient<2, double> small(n - 1);
  std::vector<double> bar(x);
  refused("nodes of maps_gradient: 6 is not allowed; the layer's graph has 7", [&] {
    layer.backward(1, small, {x.data(), n, 2, 3}, {bar.data(), n, 2, 3}, {});
  });
}
template <class... Arguments>
concept HasArcLists = requires(Arguments&&... arguments) {
  arc_lists(std::forward<Arguments>(arguments)...);
};

TEST_CASE("arc lists: of graphs and arcs that live longer, and of the same nodes") {
  static_assert(HasArcLists<const Graph&> && HasArcLists<const Graph&, const DirectedArcs&>);
  static_assert(!HasArcLists<Graph> && !HasArcLists<const Graph&, DirectedArcs> &&
                !HasArcLists<Graph, DirectedArcs&>);
  static_assert(!std::is_constructible_v<NodeMaps<2, double>, NodeDegrees<double>, bool>);
  const tiny::Task task;
  const DirectedArcs others(3, {});
  refused("nodes of listed: 3 is not allowed; the graph has 7",
          [&] { static_cast<void>(arc_lists(task.graph, others)); });
  const std::vector<Edge> arc = {{0, 1}};
  refused("arcs[0]: 0 is not allowed; a graph without nodes has no arcs", [&] { DirectedArcs(0, arc); });
}

TEST_CASE("ReLU: not a number stays one") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(std::isnan(activate<Activation::relu>(nan)));
  CHECK(activate<Activation::relu>(-2.0) == 0);
  CHECK(activate<Activation::relu>(2.0) == 2);
  double x[] = {nan, -1, 3};
  detail::keep_positive(3, x);
  CHECK(std::isnan(x[0]));
  CHECK(x[1] == 0);
  CHECK(x[2] == 3);
}

TEST_CASE("output layer: some rows or all, derivatives in its own matrix or another") {
  constexpr Index inputs = 6, outputs = 3;
  for (const Index rows : {Index{4}, n}) {
    OutputLayer<double> layer(n, inputs, outputs);
    Numbers numbers;
    const ParameterId x = numbers.add("x", rows, inputs), weight = numbers.add("weight", inputs, outputs);
    const ParameterId bias = numbers.add("bias", 1, outputs);
    numbers.fill(3);
    const auto output = [&] {
      layer.forward(1, numbers.linear(weight, bias, numbers.data()), numbers.view(x, numbers.data()));
      return Matrix(layer.output().eigen());
    };
    Matrix expected = numbers.matrix(x) * numbers.matrix(weight);
    expected.rowwise() += Eigen::RowVectorXd(numbers.matrix(bias));
    CHECK(distance(output(), expected) <= bound);
    const Matrix bar = some_matrix(rows, outputs, 4);
    const auto backward = [&](Execution execution, const MatrixView<const double>& output_bar) {
      Buffer<double> gradient(numbers.set.size());
      std::fill_n(gradient.data(), rows * inputs, 9.0);  // overwritten
      layer.backward(execution, numbers.linear(weight, bias, numbers.data()), numbers.view(x, numbers.data()),
                     output_bar, numbers.view(x, gradient.data()), numbers.linear(weight, bias, gradient.data()));
      return gradient;
    };
    const Buffer<double> gradient = backward(1, MatrixView(bar));
    layer.output_bar().eigen() = bar;
    for (const int threads : {1, 2}) {
      const Buffer<double> other = backward(threads, layer.output_bar());
      CHECK(std::equal(gradient.begin(), gradient.end(), other.begin()));
    }
    check_gradient(numbers, gradient, bar, output);
  }
  OutputLayer<double> layer(n, inputs, outputs);
  const Matrix x = some_matrix(n, inputs, 1), weight = some_matrix(inputs, outputs, 2),
               large = some_matrix(n + 1, inputs, 3);
  Matrix x_bar = x, weight_bar = weight;
  std::vector<double> bias(outputs);
  const LinearWeights<const double> weights{MatrixView(weight), bias};
  refused("shape of x: 8 x 6 is not allowed; must be 7 x 6",
          [&] { layer.forward(1, weights, MatrixView(large)); });
  refused("shape of x: 6 x 3 is not allowed; must be 6 x 6",
          [&] { layer.forward(1, weights, MatrixView(weight)); });
  refused("shape of output weight: 7 x 6 is not allowed; must be 6 x 3", [&] {
    layer.forward(1, {MatrixView(x), bias}, MatrixView(x));
  });
  refused("size of output bias: 0 is not allowed; must be 3", [&] {
    layer.forward(1, {MatrixView(weight), {}}, MatrixView(x));
  });
  layer.forward(1, weights, MatrixView(x));
  const auto backward = [&](const MatrixView<const double>& bar, const MatrixView<double>& in_bar) {
    layer.backward(1, weights, MatrixView(x), bar, in_bar, {MatrixView(weight_bar), bias});
  };
  refused("shape of output_bar: 7 x 6 is not allowed; must be 7 x 3",
          [&] { backward(MatrixView(x), MatrixView(x_bar)); });
  refused("shape of x_bar: 6 x 3 is not allowed; must be 7 x 6",
          [&] { backward(layer.output_bar(), MatrixView(weight_bar)); });
}

TEST_CASE("dropout layer: what is kept, scaled, and its derivative, added") {
  constexpr Index columns = 37;
  const Matrix x = some_matrix(n, columns, 1), bar = some_matrix(n, columns, 2);
  DropoutLayer<double> layer(n, columns);
  layer.forward(1, MatrixView(x), {});
  CHECK_FALSE(layer.dropped());
  CHECK(layer.output().data() == x.data());
  const Dropout dropout{0.4, Stream{.seed = 3}};
  for (const int threads : {1, 2}) {
    layer.forward(threads, MatrixView(x), dropout);
    CHECK(layer.dropped());
    CHECK(distance(layer.output().eigen(), dropped_matrix(x, dropout)) == 0);
    Matrix x_bar = Matrix::Constant(n, columns, 0.5);
    layer.backward(threads, MatrixView(bar), MatrixView(x_bar));
    CHECK(distance(x_bar, dropped_matrix(bar, dropout) + Matrix::Constant(n, columns, 0.5)) == 0);
  }
  Matrix small(n, 5);
  refused("shape of x: 7 x 5 is not allowed; must be 7 x 37",
          [&] { layer.forward(1, MatrixView(small), dropout); });
  refused("stride of x: 40 is not allowed; must be 37: rows without gaps", [&] {
    layer.forward(1, {x.data(), 7, 37, 40}, dropout);
  });
  refused("shape of output_bar: 7 x 5 is not allowed; must be 7 x 37",
          [&] { layer.backward(1, MatrixView(small), MatrixView(small)); });
  refused("shape of x_bar: 7 x 5 is not allowed; must be 7 x 37",
          [&] { layer.backward(1, MatrixView(bar), MatrixView(small)); });
}

}  // namespace test_layers
