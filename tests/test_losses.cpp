/// \file
/// Losses by themselves: values against direct formulas, derivatives against central differences, predictions, scores,
/// refused inputs. Then through elbo() of whole networks, and through train().
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <numbers>
#include <span>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "loss_checks.hpp"
#include "model_gradient.hpp"
#include "sheafnn/bsnn/elbo.hpp"
#include "sheafnn/bsnn/losses.hpp"
#include "sheafnn/bsnn/prediction.hpp"
#include "sheafnn/bsnn/trainer.hpp"
#include "tiny_task.hpp"
#include "worst.hpp"

namespace test_losses {
namespace {

using loss_checks::check_loss_function;
using loss_checks::check_predictions;
using loss_checks::epsilon;
using loss_checks::n;
using loss_checks::nan_number;
using loss_checks::near;
using loss_checks::Outputs;
using loss_checks::Real;
using loss_checks::Sum;
using sheafnn::Index;
using sheafnn::MatrixView;
using sheafnn::NodeSelection;
using sheafnn::Score;

Real softmax(Index row, Index c, const Outputs<>& outputs) {
  Real sum = 0;
  for (Index j = 0; j < outputs.columns; ++j) sum += std::exp(outputs.at(row, j));
  return std::exp(outputs.at(row, c)) / sum;
}
Real logistic(Real z) { return 1 / (1 + std::exp(-z)); }

const std::vector<std::int32_t> labels = {0, 2, -1, 1, 0, 2, -1};
const std::vector<double> class_weights = {0.5, 2, 3};
const std::vector<std::int8_t> marks = {1, 0, 0, 1,  -1, 1, -1, -1, -1, 0, 0,
                                        0, 1, 1, -1, 0,  1, 1,  -1, 0,  -1};  // 7 × 3
const std::vector<double> reals = {0.5, -1,         1.5, nan_number, nan_number, nan_number, 0.25,
                                   1,   nan_number, -2,  0.75,       3,          -1,         0};  // 7 × 2

const MatrixView<const std::int8_t> mark_view(marks.data(), n, 3);
const MatrixView<const double> real_view(reals.data(), n, 2);

double real(Index u, Index c) { return reals[static_cast<std::size_t>(u * 2 + c)]; }

}  // namespace

TEST_CASE("classification: value, derivative, predictions") {
  for (const bool weighted : {false, true}) {
    CAPTURE(weighted);
    const sheafnn::Classification loss(labels, weighted ? std::span<const double>(class_weights)
                                                        : std::span<const double>());
    check_loss_function(loss, 3, [&](Index u, Index row, const Outputs<>& outputs) -> Sum {
      const Index label = labels[static_cast<std::size_t>(u)];
      const Real weight = weighted ? class_weights[static_cast<std::size_t>(label)] : 1;
      return {-weight * std::log(softmax(row, label, outputs)), weight};
    });
    check_predictions(loss, 3, softmax);
    CHECK(loss.weighted() == weighted);
    CHECK(loss.known(0));
    CHECK_FALSE(loss.known(2));
  }
}

TEST_CASE("multilabel: value, derivative, predictions") {
  const sheafnn::Multilabel loss(mark_view);
  check_loss_function(loss, 3, [&](Index u, Index row, const Outputs<>& outputs) {
    Sum sum;
    for (Index c = 0; c < 3; ++c) {
      if (mark_view(u, c) < 0) continue;
      const Real p = logistic(outputs.at(row, c));
      sum.value -= std::log(mark_view(u, c) == 1 ? p : 1 - p);
      sum.weight += 1;
    }
    return sum;
  });
  check_predictions(loss, 3,
                    [](Index row, Index c, const Outputs<>& outputs) { return logistic(outputs.at(row, c)); });
  CHECK(loss.known(1));
  CHECK_FALSE(loss.known(2));
  // Where the likelihood of an entry underflows.
  const std::vector<std::int8_t> one = {1, 0};
  std::vector<double> outputs = {-800, 900}, bar(2);
  const double value =
      sheafnn::Multilabel(MatrixView<const std::int8_t>(one.data(), 1, 2))
          .value_and_derivative(1, MatrixView<double>(outputs.data(), 1, 2), NodeSelection(1),
                                std::vector<std::int32_t>{0}, 1, MatrixView<double>(bar.data(), 1, 2));
  CHECK(value == 850);
  CHECK(bar == std::vector<double>{-0.5, 0.5});
}

TEST_CASE("regression: value, derivative, predictions, fixed and learned deviations") {
  const Real half_log_two_pi = std::log(2 * std::numbers::pi_v<Real>) / 2;
  for (const double deviation : {1.0, 0.3}) {
    for (const bool learned : {false, true}) {
      CAPTURE(deviation);
      CAPTURE(learned);
      const sheafnn::Regression loss(real_view, deviation);
      check_loss_function(loss, learned ? 4 : 2, [&](Index u, Index row, const Outputs<>& outputs) {
        Sum sum;
        for (Index c = 0; c < 2; ++c) {
          if (std::isnan(real(u, c))) continue;
          const Real sigma = learned ? std::exp(outputs.at(row, 2 + c)) : static_cast<Real>(deviation);
          const Real z = (static_cast<Real>(real(u, c)) - outputs.at(row, c)) / sigma;
          sum.value += z * z / 2 + std::log(sigma) + half_log_two_pi;
          sum.weight += 1;
        }
        return sum;
      });
      check_predictions(loss, learned ? 4 : 2,
                        [](Index row, Index c, const Outputs<>& outputs) { return outputs.at(row, c); });
    }
  }
  const Eigen::VectorXd column = Eigen::VectorXd::LinSpaced(n, -1, 1);  // one number per node
  const MatrixView column_view(column);
  CHECK((column_view.rows() == n && column_view.columns() == 1 && &column_view(4, 0) == &column(4)));
  CHECK_NOTHROW(sheafnn::Regression(column_view).validate(n, 1));
  CHECK(sheafnn::Regression(real_view).known(1));  // one number of two
  CHECK_FALSE(sheafnn::Regression(real_view).known(2));
}

TEST_CASE("losses of some columns each leave the columns of the other alone") {
  const sheafnn::Classification classes(labels);
  const sheafnn::Regression signal(real_view);
  const NodeSelection rows(n);
  const std::vector<std::int32_t> some = {1, 5};
  const auto block = [](Outputs<>& of, Index first, Index count) {
    return MatrixView<double>(of.values.data() + first, n, count, of.stride);
  };
  const auto classify = [&](Outputs<>& z, Outputs<>& bar) {
    classes.value_and_derivative(1, block(z, 0, 3), rows, some, 0.7, block(bar, 0, 3));
  };
  const auto regress = [&](Outputs<>& z, Outputs<>& bar) {
    signal.value_and_derivative(1, block(z, 3, 2), rows, some, 0.3, block(bar, 3, 2));
  };
  const Outputs<> outputs(n, 5);
  Outputs<> z = outputs, one_way(n, 5), other_way = one_way;
  classify(z, one_way);
  regress(z, one_way);
  z = outputs;
  regress(z, other_way);
  classify(z, other_way);
  CHECK(one_way.values == other_way.values);
  CHECK(one_way.view()(5, 0) != 0);
  CHECK(one_way.view()(5, 3) != 0);
}

TEST_CASE("scores of mean predictions") {
  const std::vector<std::int32_t> nodes = {0, 1, 2, 3};
  const std::vector<double> p = {0.7, 0.2, 0.1, 0.5, 0.3, 0.2, 0, 0, 1, 0.1, 0.8, 0.1, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  const MatrixView<const double> view(p.data(), n, 3);
  // Nodes 0, 1 and 3, labels 0, 2, 1.
  near(sheafnn::Classification(labels).score(view, nodes), -(std::log(0.7) + std::log(0.2) + std::log(0.8)) / 3,
       2.0 / 3);
  near(sheafnn::Classification(labels, class_weights).score(view, nodes),
       -(0.5 * std::log(0.7) + 3 * std::log(0.2) + 2 * std::log(0.8)) / 5.5, 2.0 / 3);
  CHECK(sheafnn::Classification(labels).score(view, std::vector<std::int32_t>{4}).loss ==
        -std::log(std::numeric_limits<double>::min()));  // a probability of 0 is no infinite loss
  // Marks 1, 0, 0; 1, -, 1; -; 0, 0, 0.
  near(sheafnn::Multilabel(mark_view).score(view, nodes),
       -(std::log(0.7) + std::log(0.8) + std::log(0.9) + std::log(0.5) + std::log(0.2) + std::log(0.9) +
         std::log(0.2) + std::log(0.9)) /
           8,
       5.0 / 8);
  // Numbers 0.5, -1; 1.5; -; 0.25, 1, and the mean 0.45 of the five.
  const std::vector<double> means = {0.5, 0, 1, 9, 9, 9, 0.25, 1.5, 0, 0, 0, 0, 0, 0};
  const double spread = 0.05 * 0.05 + 1.45 * 1.45 + 1.05 * 1.05 + 0.2 * 0.2 + 0.55 * 0.55,
               constant = std::log(2.0 * std::numbers::pi) / 2;
  near(sheafnn::Regression(real_view).score(MatrixView<const double>(means.data(), n, 2), nodes),
       (1 + 0.25 + 0.25) / 2 / 5 + constant, 1 - 1.5 / spread);
  near(sheafnn::Regression(real_view, 0.5).score(MatrixView<const double>(means.data(), n, 2), nodes),
       4 * (1 + 0.25 + 0.25) / 2 / 5 + std::log(0.5) + constant, 1 - 1.5 / spread);
  std::vector<double> learned;
  for (Index u = 0; u < n; ++u) {
    learned.insert(learned.end(), means.begin() + 2 * u, means.begin() + 2 * u + 2);
    learned.insert(learned.end(), {0.1, -0.2});
  }
  near(sheafnn::Regression(real_view).score(MatrixView<const double>(learned.data(), n, 4), nodes),
       (((1 + 0.25) * std::exp(0.4) + 0.25 * std::exp(-0.2)) / 2 + 3 * 0.1 - 2 * 0.2) / 5 + constant,
       1 - 1.5 / spread);
  // Without spread there is nothing to explain.
  CHECK(sheafnn::Regression(real_view)
            .score(MatrixView<const double>(means.data(), n, 2), std::vector<std::int32_t>{1})
            .score == 0);
  // Equal numbers, whose mean would be rounded.
  const std::vector<double> equal(6, 0.1), predicted = {0.2, 0, 0.1, 0.5, 0.1, 0.1};
  const sheafnn::Regression regression(MatrixView<const double>(equal.data(), 6, 1));
  CHECK(regression
            .score(MatrixView<const double>(predicted.data(), 6, 1), std::vector<std::int32_t>{0, 1, 2, 3, 4, 5})
            .score == 0);
}

TEST_CASE("losses refuse targets that do not fit, and nodes without rows or targets") {
  using sheafnn::Classification;
  using sheafnn::Multilabel;
  using sheafnn::Regression;
  const auto refused = [](const auto& loss, Index nodes, Index outputs, const char* message) {
    CHECK_THROWS_WITH_AS(loss.validate(nodes, outputs), message, std::invalid_argument);
  };
  refused(Classification(labels), 6, 3, "size of labels: 7 is not allowed; must be 6");
  refused(Classification(labels), n, 1, "classes: 1 is not allowed; classification needs at least two");
  refused(Classification(labels), n, 2,
          "labels[1]: 2 is not allowed; must be between 0 and 1, or -1 where unknown");
  const std::vector<std::int32_t> below = {0, -2};
  refused(Classification(below), 2, 2,
          "labels[1]: -2 is not allowed; must be between 0 and 1, or -1 where unknown");
  refused(Classification(labels, class_weights), n, 4, "size of class_weights: 3 is not allowed; must be 4");
  std::vector<double> weights = {1, 0, 1};
  refused(Classification(labels, weights), n, 3,
          "class_weights[1]: 0 is not allowed; must be positive and finite");
  weights[1] = std::numeric_limits<double>::infinity();
  refused(Classification(labels, weights), n, 3,
          "class_weights[1]: inf is not allowed; must be positive and finite");
  weights[1] = nan_number;
  CHECK_THROWS_AS(Classification(labels, weights).validate(n, 3), std::invalid_argument);

  refused(Multilabel(mark_view), n, 4, "shape of targets: 7 x 3 is not allowed; must be 7 x 4");
  refused(Multilabel(mark_view), 8, 3, "shape of targets: 7 x 3 is not allowed; must be 8 x 3");
  const std::vector<std::int8_t> two = {0, 2};
  refused(Multilabel(MatrixView<const std::int8_t>(two.data(), 1, 2)), 1, 2,
          "targets(0, 1): 2 is not allowed; must be 0 or 1, or -1 where unknown");

  refused(Regression(real_view), 8, 2, "rows of targets: 7 is not allowed; must equal the number of nodes, 8");
  refused(Regression(real_view), n, 3,
          "outputs: 3 is not allowed; must be 2 (means), or 4 (means and log deviations)");
  const std::vector<double> infinite = {0, -std::numeric_limits<double>::infinity()};
  refused(Regression(MatrixView<const double>(infinite.data(), 2, 1)), 2, 1,
          "targets(1, 0): -inf is not allowed; must be finite, or NaN where unknown");
  CHECK_THROWS_WITH_AS(Regression(real_view, 0), "deviation: 0 is not allowed; must be positive and finite",
                       std::invalid_argument);
  CHECK_THROWS_AS(Regression(real_view, nan_number), std::invalid_argument);

  const std::vector<std::int32_t> some = {1, 2, 5};
  const auto refused_nodes = [&](const NodeSelection& rows, const std::vector<std::int32_t>& nodes,
                                 const char* message) {
    CHECK_THROWS_WITH_AS(sheafnn::check_loss(Classification(labels), n, 3, rows, nodes), message,
                         std::invalid_argument);
  };
  refused_nodes(NodeSelection(n), {}, "nodes: an empty set is not allowed; a loss needs at least one node");
  refused_nodes(NodeSelection(n), {0, 7}, "nodes[1]: 7 is not allowed; must be between 0 and 6");
  refused_nodes(NodeSelection(n), {-1}, "nodes[0]: -1 is not allowed; must be between 0 and 6");
  refused_nodes(NodeSelection(n), {3, 3}, "nodes[1]: 3 is not allowed; node numbers must increase");
  refused_nodes(NodeSelection(some), {1, 3},
                "nodes[1]: 3 is not allowed; the pass computes no output of this node");
  refused_nodes(NodeSelection(n), {2, 6}, "nodes: 2 nodes is not allowed; none of them has a known target");
}

namespace {

/// The gradient of elbo() in every parameter of a model, by central differences.
template <class Model, class L>
void check_elbo(const L& loss, Index outputs, sheafnn::SampleLoss sample_loss) {
  CAPTURE(to_string(sample_loss));
  CAPTURE(Model::Family::name);
  CAPTURE(L::name);
  const tiny::Task task;
  sheafnn::ModelOptions options = tiny::options();
  options.classes = outputs;
  for (const bool only_nodes : {false, true}) {
    Model model(options, 7);
    tiny::disturb(model.parameters(), 8, 0.3);
    sheafnn::Network<Model> network(model, task.graph, task.sparse);
    sheafnn::ForwardPass<double> pass{.seed = 9, .epoch = 10, .training = true, .dropout = 0.2};
    if (only_nodes) pass.nodes = task.train;
    const auto objective = [&] {
      const sheafnn::Elbo r = sheafnn::elbo(network, pass, loss, task.train,
                                            {.kl_weight = 0.3, .samples = 3, .sample_loss = sample_loss});
      CHECK(r.objective == r.loss + 0.3 * r.kl);
      return r.objective;
    };
    objective();
    const sheafnn::Buffer<double> gradient = network.gradient();
    const auto comparison = model_gradient::compare_gradient(model.parameters(), gradient, objective);
    INFO(comparison.where);
    CHECK(comparison.worst <= 1);
    CHECK(std::any_of(gradient.begin(), gradient.end(), [](double g) { return std::abs(g) > 1e-3; }));
  }
}

template <class Model>
void check_elbo_losses() {
  for (const auto sample_loss : {sheafnn::SampleLoss::expected, sheafnn::SampleLoss::predictive}) {
    check_elbo<Model>(sheafnn::Regression(real_view, 0.5), 2, sample_loss);
    check_elbo<Model>(sheafnn::Regression(real_view), 4, sample_loss);
    check_elbo<Model>(sheafnn::Multilabel(mark_view), 3, sample_loss);
    check_elbo<Model>(sheafnn::Classification(labels, class_weights), 3, sample_loss);
  }
}

}  // namespace

TEST_CASE("elbo of other losses: gradient of a Bayesian network by central differences") {
  check_elbo_losses<sheafnn::Bsnn<sheafnn::SpecialOrthogonal<2>, double>>();
}
TEST_CASE("elbo of other losses: gradient of a deterministic network by central differences") {
  check_elbo_losses<sheafnn::Nsd<sheafnn::Diagonal<2>, double>>();
}

TEST_CASE("the predictive loss is the loss of the mean probabilities, and no larger than the mean of the losses") {
  const tiny::Task task;
  const Index samples = 4;
  using Model = sheafnn::Bsnn<sheafnn::SpecialOrthogonal<2>, double>;
  sheafnn::ModelOptions options = tiny::options();
  options.spread = sheafnn::SpreadRange::published;  // samples that differ
  Model model(options, 7);
  tiny::disturb(model.parameters(), 8, 0.3);
  sheafnn::Network<Model> network(model, task.graph, task.sparse);
  const sheafnn::ForwardPass<double> pass{.seed = 9, .epoch = 10, .training = true};
  const sheafnn::Classification loss(labels);
  const auto elbo = [&](Index count, sheafnn::SampleLoss sample_loss) {
    return sheafnn::elbo(network, pass, loss, task.train, {.samples = count, .sample_loss = sample_loss}).loss;
  };
  std::vector<Real> likelihood(task.train.size(), 0);
  const auto begun = network.begin(pass);
  for (Index k = 0; k < samples; ++k) {
    const auto outputs = begun.draw(k).view();
    for (std::size_t i = 0; i < task.train.size(); ++i) {
      const Index u = task.train[i];
      if (!loss.known(u)) continue;
      Real total = 0;
      for (Index c = 0; c < 3; ++c) total += std::exp(static_cast<Real>(outputs(u, c)));
      const Real own = std::exp(static_cast<Real>(outputs(u, labels[static_cast<std::size_t>(u)])));
      likelihood[i] += own / total / samples;
    }
  }
  Real expected = 0, count = 0;
  for (std::size_t i = 0; i < task.train.size(); ++i) {
    if (!loss.known(task.train[i])) continue;
    expected -= std::log(likelihood[i]);
    ++count;
  }
  constexpr auto predictive = sheafnn::SampleLoss::predictive;
  const double predictive_loss = elbo(samples, predictive);
  CHECK(std::abs(predictive_loss - static_cast<double>(expected / count)) <= 256 * epsilon);
  CHECK(predictive_loss < elbo(samples, sheafnn::SampleLoss::expected) - 1e-5);
  CHECK(elbo(1, predictive) == elbo(1, sheafnn::SampleLoss::expected));
}

namespace {

/// A loss of one's own without losses of single nodes.
struct WholeLoss {
  static constexpr std::string_view name = "whole";
  sheafnn::Classification loss{labels};

  void validate(Index nodes, Index outputs) const { loss.validate(nodes, outputs); }
  [[nodiscard]] bool known(Index u) const { return loss.known(u); }
  template <class S>
  double value_and_derivative(sheafnn::Execution threads, const MatrixView<S>& outputs, const NodeSelection& rows,
                              std::span<const std::int32_t> nodes, double share, const MatrixView<S>& bar) const {
    return loss.value_and_derivative(threads, outputs, rows, nodes, share, bar);
  }
  template <class S>
  void predict(sheafnn::Execution threads, const MatrixView<S>& outputs, const NodeSelection& rows,
               const MatrixView<double>& predictions) const {
    loss.predict(threads, outputs, rows, predictions);
  }
  [[nodiscard]] Score score(const MatrixView<const double>& predictions,
                            std::span<const std::int32_t> nodes) const {
    return loss.score(predictions, nodes);
  }
};

}  // namespace

TEST_CASE("a loss without losses of single nodes has no predictive one") {
  const tiny::Task task;
  using Model = sheafnn::Bsnn<sheafnn::SpecialOrthogonal<2>, double>;
  Model model(tiny::options(), 7);
  sheafnn::Network<Model> network(model, task.graph, task.sparse);
  CHECK_THROWS_WITH_AS(
      sheafnn::elbo(network, {.training = true}, WholeLoss(), task.train,
                    {.samples = 2, .sample_loss = sheafnn::SampleLoss::predictive}),
      "sample_loss: predictive is not allowed; the loss whole has no node_losses() and mean_loss()",
      std::invalid_argument);
  CHECK(sheafnn::elbo(network, {.training = true}, WholeLoss(), task.train, {.samples = 2}).loss > 0);
}

TEST_CASE("predictions of every loss are the mean of what the loss predicts from the samples' outputs") {
  const tiny::Task task;
  const Index n = task.graph.node_count(), outputs = 3;
  sheafnn::ModelOptions options = tiny::options();
  options.classes = outputs;
  const sheafnn::Bsnn<sheafnn::SpecialOrthogonal<2>, double> model(options, 3);
  const sheafnn::PredictOptions predict_options{.samples = 4, .seed = 7, .epoch = 2};
  std::vector<double> identity(static_cast<std::size_t>(n * outputs), 0.0), sigmoids = identity;
  sheafnn::Network network(model, task.graph, task.sparse);
  network.begin({.seed = 7, .epoch = 2}).draw_samples(4, [&](const MatrixView<double>& sample) {
    for (Index u = 0; u < n; ++u) {
      for (Index c = 0; c < outputs; ++c) {
        identity[static_cast<std::size_t>(u * outputs + c)] += sample(u, c) / 4;
        sigmoids[static_cast<std::size_t>(u * outputs + c)] += 1 / (1 + std::exp(-sample(u, c))) / 4;
      }
    }
  });
  const auto check = [&](const auto& loss, const std::vector<double>& expected) {
    const std::vector<double> got =
        sheafnn::predict_targets(model, task.graph, task.sparse, loss, predict_options);
    REQUIRE(got.size() == expected.size());
    for (std::size_t i = 0; i < got.size(); ++i)
      CHECK(std::abs(got[i] - expected[i]) <= 1e-14 * (1 + std::abs(expected[i])));
  };
  check(sheafnn::Regression(MatrixView<const double>(identity.data(), n, outputs), 0.3), identity);
  const std::vector<std::int8_t> unknown(static_cast<std::size_t>(n * outputs), -1);
  check(sheafnn::Multilabel(MatrixView<const std::int8_t>(unknown.data(), n, outputs)), sigmoids);
  const std::vector<std::int32_t> labels(static_cast<std::size_t>(n), 0);
  check(sheafnn::Classification(labels),
        sheafnn::predict(model, task.graph, task.sparse, predict_options).probabilities);
  CHECK_THROWS_AS(static_cast<void>(sheafnn::predict_targets(model, task.graph, task.sparse,
                                                             sheafnn::Classification(std::span(labels).first(2)))),
                  std::invalid_argument);
}

TEST_CASE("training with regression explains a signal, the same on any number of threads") {
  // Two waves around a ring of 90 nodes; features see the first through noise, and nothing of the second.
  constexpr Index nodes = 90;
  std::vector<sheafnn::Edge> edges;
  std::vector<double> signal, features;
  sheafnn::Split split;
  for (std::int32_t u = 0; u < nodes; ++u) {
    edges.push_back({u, static_cast<std::int32_t>((u + 1) % nodes)});
    edges.push_back({u, static_cast<std::int32_t>((u + 2) % nodes)});
    const double angle = 2 * std::numbers::pi * u / static_cast<double>(nodes);
    signal.insert(signal.end(), {std::sin(2 * angle), std::cos(2 * angle)});
    for (int k = 0; k < 4; ++k) {
      features.push_back(signal[static_cast<std::size_t>(2 * u + k % 2)] + tiny::number(21, u * 4 + k));
    }
    (u % 3 == 0 ? split.train : u % 3 == 1 ? split.validation : split.test).push_back(u);
  }
  const sheafnn::Graph graph(nodes, edges);
  const auto inputs = sheafnn::NodeFeatures::from_dense(std::span<const double>(features), nodes, 4);
  const MatrixView<const double> targets(signal.data(), nodes, 2);
  const sheafnn::Regression loss(targets, 0.3);
  using Model = sheafnn::Bsnn<sheafnn::SpecialOrthogonal<2>>;
  const auto trained = [&](int threads) {
    Model model({.features = 4,
                 .channels = 4,
                 .layers = 2,
                 .classes = 2,
                 .feature_treatment = sheafnn::FeatureTreatment::none},
                3);
    sheafnn::TrainOptions options{.epochs = 150, .input_dropout = 0, .dropout = 0, .kl_maximum = 0.1, .seed = 5};
    options.threads = threads;
    return std::pair(sheafnn::train(model, graph, inputs, loss, split, options), model.parameters().values());
  };
  const auto [result, values] = trained(1);
  // The mean predictor has R² = 0, the features' noise a variance of 1/3 beside the signal's 1/2.
  CHECK(result.test_accuracy > 0.5);
  CHECK(result.validation_accuracy > 0.5);
  CHECK(result.history.front().validation_accuracy < result.validation_accuracy);
  CHECK(result.test_nll < std::log(0.3) + 0.92 + 0.5 * 0.5 / (0.3 * 0.3));  // the NLL of the mean predictor
  CHECK(std::isnan(result.test_ece));                                       // only classes have one
  const auto [again, values_again] = trained(2);
  CHECK(again.test_accuracy == result.test_accuracy);
  CHECK(std::equal(values.begin(), values.end(), values_again.begin(), values_again.end()));
  Model ranked({.features = 4,
                .channels = 4,
                .layers = 2,
                .classes = 2,
                .feature_treatment = sheafnn::FeatureTreatment::none},
               3);
  CHECK_THROWS_WITH_AS(
      static_cast<void>(
          sheafnn::train(ranked, graph, inputs, loss, split, {.stop_on = sheafnn::StopOn::macro_f1})),
      "stop_on: macro-f1 is not allowed; a metric of classes; the loss is regression, which has loss and accuracy",
      std::invalid_argument);
  // Validation targets whose squares overflow: no epoch has a finite score, and the first one is the best.
  std::vector<double> far = signal;
  for (const std::int32_t u : split.validation) far[static_cast<std::size_t>(2 * u)] = 1e200;
  const sheafnn::Regression far_loss(MatrixView<const double>(far.data(), nodes, 2), 0.3);
  Model unscorable({.features = 4,
                    .channels = 4,
                    .layers = 2,
                    .classes = 2,
                    .feature_treatment = sheafnn::FeatureTreatment::none},
                   3);
  const auto start = unscorable.parameters().values();
  const sheafnn::TrainResult first = sheafnn::train(unscorable, graph, inputs, far_loss, split, {.epochs = 5});
  CHECK(std::isinf(first.validation_loss));
  CHECK(first.best_epoch == 0);
  CHECK_FALSE(std::equal(start.begin(), start.end(), unscorable.parameters().values().begin()));
  // No loss is asked for the score of no nodes.
  split.validation.clear();
  split.test.clear();
  const sheafnn::TrainResult unscored = trained(1).first;
  CHECK(unscored.best_epoch == 149);
  for (const double score : {unscored.validation_loss, unscored.validation_accuracy, unscored.test_accuracy,
                             unscored.test_nll, unscored.test_ece, unscored.history.front().test_accuracy}) {
    CHECK(std::isnan(score));
  }

  Model model({.features = 4,
               .channels = 4,
               .layers = 2,
               .classes = 3,
               .feature_treatment = sheafnn::FeatureTreatment::none},
              3);
  CHECK_THROWS_WITH_AS(static_cast<void>(sheafnn::train(model, graph, inputs, loss, split)),
                       "outputs: 3 is not allowed; must be 2 (means), or 4 (means and log deviations)",
                       std::invalid_argument);
}

}  // namespace test_losses
