/// \file
/// Losses of numbers, counts and ordered classes by themselves, by elbo() and by train(): what networks learn is compared
/// with what the targets were drawn from.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numbers>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "loss_checks.hpp"
#include "model_gradient.hpp"
#include "refusal.hpp"
#include "sheafnn/bsnn/any_target_loss.hpp"
#include "sheafnn/bsnn/elbo.hpp"
#include "sheafnn/bsnn/prediction.hpp"
#include "sheafnn/bsnn/target_scaling.hpp"
#include "sheafnn/bsnn/trainer.hpp"
#include "tiny_task.hpp"
#include "worst.hpp"

namespace test_target_losses {
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
using sheafnn::AnyTargetLoss;
using sheafnn::Gaussian;
using sheafnn::Index;
using sheafnn::MatrixView;
using sheafnn::NodeSelection;
using sheafnn::Ordinal;
using sheafnn::Poisson;
using sheafnn::TargetLoss;
using Numbers = std::vector<double>;
using Nodes = std::vector<std::int32_t>;

const Numbers reals = {0.5, -1,         1.5, nan_number, nan_number, nan_number, 0.25,
                       1,   nan_number, -2,  0.75,       3,          -1,         0};                     // 7 × 2
const Numbers counts = {0, 3, 2, nan_number, nan_number, nan_number, 1, 40, nan_number, 0, 5, 1, 7, 0};  // 7 × 2
const MatrixView<const double> real_view(reals.data(), n, 2);
const MatrixView<const double> count_view(counts.data(), n, 2);

double real(Index u, Index c) { return reals[static_cast<std::size_t>(u * 2 + c)]; }

/// p(y) of an Ordinal by its definition: differences of the logistic function.
Real ordinal_probability(Index y, Index row, const Outputs<>& outputs) {
  const Index classes = outputs.columns + 1;
  const auto logit = [&](Index j) {
    const Real share = static_cast<Real>(j + 1) / static_cast<Real>(classes);
    return std::log(share / (1 - share));
  };
  const auto below = [&](Index j) -> Real {  // P(y ≤ j)
    if (j < 0) return 0;
    if (j == classes - 1) return 1;
    Real threshold = logit(0) + outputs.at(row, 0);
    for (Index i = 1; i <= j; ++i) {
      threshold += (logit(i) - logit(i - 1)) * std::log2(1 + std::exp(outputs.at(row, i)));
    }
    return 1 / (1 + std::exp(-threshold));
  };
  return below(y) - below(y - 1);
}

/// Value and slopes of a loss of one node.
template <class L>
std::pair<double, Numbers> at_one_node(const L& loss, Numbers outputs) {
  const Index columns = static_cast<Index>(outputs.size());
  Numbers bar(outputs.size());
  const double value =
      loss.value_and_derivative(1, MatrixView<double>(outputs.data(), 1, columns), NodeSelection(1), Nodes{0}, 1,
                                MatrixView<double>(bar.data(), 1, columns));
  return {value, bar};
}

}  // namespace

TEST_CASE("gaussian: value, derivative, moments") {
  for (const double least : {1e-6, 0.4}) {
    CAPTURE(least);
    const Gaussian loss(real_view, least);
    const auto variance = [&](Index row, Index c, const Outputs<>& outputs) {
      return static_cast<Real>(least) + std::exp(outputs.at(row, 2 + c));
    };
    check_loss_function(loss, 4, [&](Index u, Index row, const Outputs<>& outputs) {
      Sum sum;
      for (Index c = 0; c < 2; ++c) {
        if (std::isnan(real(u, c))) continue;
        const Real v = variance(row, c, outputs), difference = static_cast<Real>(real(u, c)) - outputs.at(row, c);
        sum.value += difference * difference / (2 * v) + std::log(2 * std::numbers::pi_v<Real> * v) / 2;
        sum.weight += 1;
      }
      return sum;
    });
    check_predictions(loss, 4, [&](Index row, Index j, const Outputs<>& outputs) {
      if (j < 2) return outputs.at(row, j);
      const Real mean = outputs.at(row, j - 2);
      return mean * mean + variance(row, j - 2, outputs);
    });
  }
  // The variance stays above its bound, and the loss finite, for all outputs.
  const Numbers one = {2};
  const Gaussian loss(MatrixView<const double>(one.data(), 1, 1), 0.01);
  for (const double s : {-1e4, 700.0, 1e4}) {
    const auto [value, bar] = at_one_node(loss, {2, s});
    CHECK(value == doctest::Approx((std::log(2 * std::numbers::pi) + std::max(s, std::log(0.01))) / 2));
    CHECK(bar == Numbers{0, s < 0 ? 0.0 : 0.5});
  }
  CHECK(loss.known(0));
  CHECK_FALSE(Gaussian(real_view).known(2));
}

TEST_CASE("poisson: value, derivative, rates") {
  const Numbers base = {0.5, 3};
  for (const bool based : {false, true}) {
    CAPTURE(based);
    const Poisson loss(count_view, based ? std::span<const double>(base) : std::span<const double>());
    const auto rate = [&](Index row, Index c, const Outputs<>& outputs) {
      return (based ? static_cast<Real>(base[static_cast<std::size_t>(c)]) : 1) * std::exp(outputs.at(row, c));
    };
    check_loss_function(loss, 2, [&](Index u, Index row, const Outputs<>& outputs) {
      Sum sum;
      for (Index c = 0; c < 2; ++c) {
        const double y = count_view(u, c);
        if (std::isnan(y)) continue;
        // −log (λ^y e^{−λ}/y!), factor by factor.
        sum.value += rate(row, c, outputs);
        for (double j = 1; j <= y; ++j) sum.value -= std::log(rate(row, c, outputs) / static_cast<Real>(j));
        sum.weight += 1;
      }
      return sum;
    });
    check_predictions(loss, 2, rate);
  }
  for (const double y : {0.0, 1.0, 5.0, 31.0, 32.0, 33.0, 170.0, 1e4, 1e9}) {
    CAPTURE(y);
    const double expected = static_cast<double>(std::lgamma(static_cast<Real>(y) + 1));
    CHECK(std::abs(sheafnn::detail::log_factorial(y) - expected) <= 8 * epsilon * std::max(1.0, expected));
  }
}

TEST_CASE("ordinal: value, derivative, cumulative probabilities") {
  const std::vector<Nodes> all_classes = {{0, 1, -1, 0, 1, 0, -1},
                                          {0, 2, -1, 1, 0, 2, -1},
                                          {4, 1, -1, 0, 3, 2, -1},
                                          {0, 4, -1, 3, 1, 4, -1}};
  for (std::size_t i = 0; i < all_classes.size(); ++i) {
    CAPTURE(i);
    const Nodes& classes = all_classes[i];
    const Index outputs = i == 0 ? 1 : i == 1 ? 2 : 4;
    const Ordinal loss(classes);
    check_loss_function(loss, outputs, [&](Index u, Index row, const Outputs<>& z) -> Sum {
      return {-std::log(ordinal_probability(classes[static_cast<std::size_t>(u)], row, z)), 1};
    });
    check_predictions(loss, outputs, [&](Index row, Index j, const Outputs<>& z) {
      Real sum = 0;
      for (Index y = 0; y <= j; ++y) sum += ordinal_probability(y, row, z);
      return sum;
    });
    CHECK(loss.known(0));
    CHECK_FALSE(loss.known(2));
  }
  // Outputs of 0 say nothing: 1/K for every class.
  for (std::int32_t y = 0; y < 5; ++y) {
    CHECK(at_one_node(Ordinal(std::array{y}), Numbers(4)).first == doctest::Approx(std::log(5.0)).epsilon(1e-14));
  }
  // Two thresholds that meet: p ≈ 4 p₀ (1 − p₀) …, linear in e^z, and −log p in z.
  const std::array middle = {1};
  const auto far = at_one_node(Ordinal(middle), {0, -800}), near_by = at_one_node(Ordinal(middle), {0, -30});
  CHECK(far.first - near_by.first == doctest::Approx(770).epsilon(1e-12));
  CHECK(far.second[1] == doctest::Approx(-1).epsilon(1e-12));
  CHECK(near_by.second[1] == doctest::Approx(-1).epsilon(1e-12));
  for (const double z : {-1e4, 1e4}) {
    for (const std::int32_t y : {0, 1, 2}) {
      const std::array<std::int32_t, 1> own = {y};
      for (const Numbers& outputs : {Numbers{z, 0}, Numbers{0, z}}) {
        const auto [value, bar] = at_one_node(Ordinal(own), outputs);
        CHECK(std::isfinite(value));
        for (const double slope : bar) CHECK(std::isfinite(slope));
      }
    }
  }
}

TEST_CASE("scores of mean predictions of target losses") {
  const Nodes nodes = {0, 1, 3};  // 0.5, −1; 1.5; 0.25, 1: mean 0.45
  const double spread = 0.05 * 0.05 + 1.45 * 1.45 + 1.05 * 1.05 + 0.2 * 0.2 + 0.55 * 0.55;
  Numbers moments(static_cast<std::size_t>(n) * 4, 1.0);
  const auto set = [&](Index u, const std::array<double, 2>& mean, const std::array<double, 2>& variance) {
    for (std::size_t c = 0; c < 2; ++c) {
      moments[static_cast<std::size_t>(4 * u) + c] = mean[c];
      moments[static_cast<std::size_t>(4 * u) + 2 + c] = mean[c] * mean[c] + variance[c];
    }
  };
  set(0, {0.5, 0}, {0.25, 4});
  set(1, {1, 9}, {1, 1});
  set(3, {0.25, 1.5}, {1, 0.5});
  const MatrixView<const double> view(moments.data(), n, 4);
  near(Gaussian(real_view).score(view, nodes),
       ((1.0 / 4 + 0.25 + 0.25 / 0.5 + std::log(0.25) + std::log(4.0) + std::log(0.5)) / 2) / 5 +
           std::log(2 * std::numbers::pi) / 2,
       1 - 1.5 / spread);
  CHECK(Gaussian(real_view).variances(view)[1] == 4);
  CHECK(Gaussian(real_view, 2).variances(view)[0] == 2);  // the bound holds after rounding as well

  Numbers rates(static_cast<std::size_t>(n) * 2, 1.0);
  rates[0] = 2;
  rates[1] = 4;
  rates[2] = 2;
  const double mean = 5.0 / 3;  // of the counts 0, 3, 2
  near(Poisson(count_view).score(MatrixView<const double>(rates.data(), n, 2), Nodes{0, 1}),
       (2 + 4 - 3 * std::log(4.0) + std::log(6.0) + 2 - 2 * std::log(2.0) + std::log(2.0)) / 3,
       1 - (4 + 1 + 0) / (mean * mean + (3 - mean) * (3 - mean) + (2 - mean) * (2 - mean)));

  const Nodes classes = {0, 2, -1, 1, 0, 2, -1};
  Numbers below(static_cast<std::size_t>(n) * 2, 0.5);
  below[0] = 0.75, below[1] = 0.875;  // node 0: 0.75, 0.125, 0.125
  below[2] = 0.25, below[3] = 0.75;   // node 1: 0.25, 0.5, 0.25
  near(Ordinal(classes).score(MatrixView<const double>(below.data(), n, 2), Nodes{0, 1, 2}),
       -(std::log(0.75) + std::log(0.25)) / 2, 0.5);
  CHECK(Ordinal::probabilities(MatrixView<const double>(below.data(), 2, 2)) ==
        Numbers{0.75, 0.125, 0.125, 0.25, 0.5, 0.25});
}

TEST_CASE("target losses refuse what does not fit") {
  using test::message_of;
  const auto of = [](const auto& loss, Index nodes, Index outputs) {
    return message_of([&] { loss.validate(nodes, outputs); });
  };
  CHECK(of(Gaussian(real_view), n, 2) ==
        "outputs: 2 is not allowed; must be 4 (means and logarithms of variances)");
  CHECK(of(Gaussian(real_view), 8, 4) == "rows of targets: 7 is not allowed; must equal the number of nodes, 8");
  CHECK(message_of([] { Gaussian(real_view, 0); }) ==
        "least_variance: 0 is not allowed; must be positive and finite");
  CHECK(of(Poisson(count_view), n, 4) == "outputs: 4 is not allowed; must be 2 (logarithms of rates)");
  CHECK(of(Poisson(real_view), n, 2) ==
        "targets(0, 0): 0.5 is not allowed; must be 0, 1, 2, …, or NaN where unknown");
  const Numbers negative = {1, -1}, infinite = {1, std::numeric_limits<double>::infinity()}, base = {1, 0};
  CHECK(of(Poisson(MatrixView<const double>(negative.data(), 2, 1)), 2, 1) ==
        "targets(1, 0): -1 is not allowed; must be 0, 1, 2, …, or NaN where unknown");
  CHECK(of(Poisson(MatrixView<const double>(infinite.data(), 2, 1)), 2, 1) ==
        "targets(1, 0): inf is not allowed; must be 0, 1, 2, …, or NaN where unknown");
  CHECK(of(Poisson(count_view, base), n, 2) == "base_rates[1]: 0 is not allowed; must be positive and finite");
  CHECK(of(Poisson(count_view, std::span(base).first(1)), n, 2) ==
        "size of base_rates: 1 is not allowed; must be 2");
  const Nodes classes = {0, 3, -1};
  CHECK(of(Ordinal(classes), 3, 2) ==
        "classes[1]: 3 is not allowed; must be between 0 and 2, or -1 where unknown");
  CHECK(of(Ordinal(classes), 4, 3) == "size of classes: 3 is not allowed; must be 4");
  CHECK(of(Ordinal(classes), 3, 0) ==
        "outputs: 0 is not allowed; must be one less than the number of classes, which is at least 2");
  const auto any = [](TargetLoss kind, sheafnn::TargetNumbers targets) {
    return message_of([&] { AnyTargetLoss(kind, std::move(targets)); });
  };
  CHECK(any(TargetLoss::ordinal, {.values = {0, 3}, .classes = 3}) ==
        "classes[1]: 3 is not allowed; must be a whole number of 0 to 2, or NaN where unknown");
  CHECK(any(TargetLoss::ordinal, {.values = {0, 1}, .columns = 2}) ==
        "columns: 2 is not allowed; ordered classes are one target of each node");
  CHECK(any(TargetLoss::multilabel, {.values = {0, 0.5}, .columns = 2}) ==
        "labels[1]: 0.5 is not allowed; must be a whole number of 0 to 1, or NaN where unknown");
  CHECK(any(TargetLoss::squared, {.values = {0, 1, 2}, .columns = 2}) ==
        "values: 3 is not allowed; must be a multiple of 2");
  const AnyTargetLoss squared(TargetLoss::squared, {.values = {0, 1}});
  CHECK(message_of([&] {
          static_cast<void>(squared.intervals(Numbers{0, 0}, 1, 0.9));
        }) == "loss: squared is not allowed; gaussian and poisson have intervals of the posterior");
}

TEST_CASE("scaling of targets") {
  using sheafnn::TargetScaling;
  const Numbers values = {1, 5, nan_number, 5, 4, nan_number, 100, 5};  // of 4 nodes; node 3 is no training node
  const MatrixView<const double> targets(values.data(), 4, 2);
  const Nodes train = {0, 1, 2};
  const TargetScaling numbers = TargetScaling::fit(TargetLoss::gaussian, targets, train);
  CHECK(numbers.mean == Numbers{2.5, 5});
  CHECK(numbers.scale == Numbers{1.5, 1});  // a column of one value keeps its scale
  CHECK(numbers.base_rates.empty());
  const Numbers scaled = numbers.scaled(values);
  CHECK(scaled[0] == -1);
  CHECK(scaled[4] == 1);
  CHECK(scaled[1] == 0);
  CHECK(std::isnan(scaled[2]));
  CHECK(numbers.unscaled(scaled)[6] == doctest::Approx(100).epsilon(1e-15));
  CHECK(numbers.unscaled_deviations(Numbers{2, 2}) == Numbers{3, 2});
  const Numbers equal(24, 19.99);
  const Nodes all = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23};
  CHECK(TargetScaling::fit(TargetLoss::squared, {equal.data(), 24, 1}, all).scale == Numbers{1});
  const TargetScaling counts = TargetScaling::fit(TargetLoss::poisson, targets, train);
  CHECK(counts.mean == Numbers{0, 0});
  CHECK(counts.scale == Numbers{1, 1});
  CHECK(counts.base_rates == Numbers{2.5, 5});
  const Numbers zeros(8, 0.0);
  CHECK(TargetScaling::fit(TargetLoss::poisson, {zeros.data(), 4, 2}, train).base_rates == Numbers{1, 1});
  const Nodes last = {2};
  CHECK(test::message_of([&] { static_cast<void>(TargetScaling::fit(TargetLoss::squared, targets, last)); }) ==
        "target: 1 is not allowed; it is not known of any training node");
  const auto refusal_of = [&](TargetLoss loss, const Numbers& values) {
    return test::message_of([&] {
      static_cast<void>(TargetScaling::fit(loss, {values.data(), 3, 1}, Nodes{0, 1, 2}));
    });
  };
  CHECK(refusal_of(TargetLoss::squared, {0, -2e150, 1}) ==
        "target 0: -2e+150 is not allowed; must be between -1e150 and 1e150; scale it");
  CHECK(refusal_of(TargetLoss::gaussian, {0, 1e-163, 2e-163}) ==
        "target 0: 2e-163 is not allowed; known values differ by less than 1e-150; scale it");
  const Numbers large = {1e150, -1e150, 1e150, -1e150};
  CHECK(TargetScaling::fit(TargetLoss::squared, {large.data(), 4, 1}, Nodes{0, 1, 2, 3}).scale == Numbers{1e150});
}

TEST_CASE("a loss chosen at run time is its own loss") {
  const Nodes classes = {0, 2, -1, 1, 0, 2, -1};
  const Numbers base = {0.5, 3};
  Numbers class_numbers(classes.begin(), classes.end()), marks(14);
  std::replace(class_numbers.begin(), class_numbers.end(), -1.0, nan_number);
  std::vector<std::int8_t> labels(14);
  for (std::size_t i = 0; i < 14; ++i) labels[i] = static_cast<std::int8_t>(i % 3) - 1;
  for (std::size_t i = 0; i < 14; ++i) marks[i] = labels[i] < 0 ? nan_number : labels[i];
  const auto same = [&](TargetLoss kind, sheafnn::TargetNumbers targets, const auto& own) {
    CAPTURE(to_string(kind));
    AnyTargetLoss first(kind, std::move(targets));
    const AnyTargetLoss loss = std::move(first);
    const Index columns = loss.outputs();
    CHECK(sheafnn::parse_name<TargetLoss>("loss", to_string(kind)) == kind);
    CHECK_NOTHROW(loss.validate(n, columns));
    const NodeSelection rows(n);
    const Nodes nodes = {0, 1, 2, 3, 5};
    Outputs<> outputs(n, columns), copy = outputs, bar(n, columns), own_bar = bar;
    CHECK(loss.value_and_derivative(1, outputs.view(), rows, nodes, 0.5, bar.view()) ==
          own.value_and_derivative(1, copy.view(), rows, nodes, 0.5, own_bar.view()));
    CHECK(bar.values == own_bar.values);
    Numbers a(5), b(5);
    loss.node_losses(1, outputs.view(), rows, nodes, a);
    own.node_losses(1, copy.view(), rows, nodes, b);
    CHECK(a == b);
    CHECK(loss.mean_loss(rows, nodes, a) == own.mean_loss(rows, nodes, b));
    Numbers predictions(static_cast<std::size_t>(n * columns)), own_predictions = predictions;
    loss.predict(1, outputs.view(), rows, MatrixView<double>(predictions.data(), n, columns));
    own.predict(1, copy.view(), rows, MatrixView<double>(own_predictions.data(), n, columns));
    CHECK(predictions == own_predictions);
    const MatrixView<const double> view(predictions.data(), n, columns);
    CHECK(loss.score(view, nodes).loss == own.score(view, nodes).loss);
    for (Index u = 0; u < n; ++u) CHECK(loss.known(u) == own.known(u));
    CHECK(loss.expectations(view).size() == static_cast<std::size_t>(n * (kind == TargetLoss::ordinal ? 3 : 2)));
    const bool has = kind == TargetLoss::gaussian || kind == TargetLoss::poisson;
    CHECK(loss.deviations(view).size() == (has ? 14 : 0));
    const AnyTargetLoss unknown(kind, {.columns = kind == TargetLoss::ordinal ? 1 : 2, .classes = 3}, n);
    CHECK_FALSE(unknown.known(0));
    CHECK_NOTHROW(unknown.validate(n, columns));
  };
  same(TargetLoss::squared, {.values = reals, .columns = 2}, sheafnn::Regression(real_view));
  same(TargetLoss::gaussian, {.values = reals, .columns = 2}, Gaussian(real_view));
  same(TargetLoss::poisson, {.values = counts, .columns = 2, .base_rates = base}, Poisson(count_view, base));
  same(TargetLoss::multilabel, {.values = marks, .columns = 2},
       sheafnn::Multilabel(MatrixView<const std::int8_t>(labels.data(), n, 2)));
  same(TargetLoss::ordinal, {.values = class_numbers, .classes = 3}, Ordinal(classes));
}

TEST_CASE("elbo of target losses: gradient of a Bayesian network by central differences") {
  using Model = sheafnn::Bsnn<sheafnn::SpecialOrthogonal<2>, double>;
  const tiny::Task task;
  const auto check = [&](const AnyTargetLoss& loss, sheafnn::SampleLoss sample_loss) {
    CAPTURE(to_string(loss.kind()));
    CAPTURE(to_string(sample_loss));
    sheafnn::ModelOptions options = tiny::options();
    options.classes = loss.outputs();
    Model model(options, 7);
    tiny::disturb(model.parameters(), 8, 0.3);
    sheafnn::Network<Model> network(model, task.graph, task.sparse);
    const sheafnn::ForwardPass<double> pass{.seed = 9, .epoch = 10, .training = true, .dropout = 0.2};
    const auto objective = [&] {
      return sheafnn::elbo(network, pass, loss, task.train,
                           {.kl_weight = 0.3, .samples = 3, .sample_loss = sample_loss})
          .objective;
    };
    objective();
    const sheafnn::Buffer<double> gradient = network.gradient();
    const auto comparison = model_gradient::compare_gradient(model.parameters(), gradient, objective);
    INFO(comparison.where);
    CHECK(comparison.worst <= 1);
    CHECK(std::any_of(gradient.begin(), gradient.end(), [](double g) { return std::abs(g) > 1e-3; }));
  };
  const Numbers some_counts = {0, 3, 2, nan_number, nan_number, nan_number, 1, 4, nan_number, 0, 5, 1, 3, 0};
  for (const auto sample_loss : {sheafnn::SampleLoss::expected, sheafnn::SampleLoss::predictive}) {
    check(AnyTargetLoss(TargetLoss::gaussian, {.values = reals, .columns = 2}), sample_loss);
    check(AnyTargetLoss(TargetLoss::poisson, {.values = some_counts, .columns = 2}), sample_loss);
    check(AnyTargetLoss(TargetLoss::ordinal, {.values = {0, 3, nan_number, 1, 2, 0, 3}, .classes = 4}),
          sample_loss);
  }
}

TEST_CASE("samples of targets: their mean is the prediction, and the mixture has their moments") {
  using Model = sheafnn::Bsnn<sheafnn::SpecialOrthogonal<2>, double>;
  const tiny::Task task;
  sheafnn::ModelOptions options = tiny::options();
  options.classes = 4;
  options.spread = sheafnn::SpreadRange::published;  // samples that differ
  Model model(options, 7);
  tiny::disturb(model.parameters(), 8, 0.3);
  const AnyTargetLoss loss(TargetLoss::gaussian, {.columns = 2}, n);
  const sheafnn::PredictOptions how{.samples = 5, .seed = 3, .epoch = 1};
  const Numbers samples = sheafnn::sample_targets(model, task.graph, task.sparse, loss, how);
  REQUIRE(samples.size() == 5 * 28);
  const Numbers mean = sheafnn::predict_targets(model, task.graph, task.sparse, loss, how);
  Numbers own(28);
  for (std::size_t i = 0; i < samples.size(); ++i) own[i % 28] += samples[i] / 5;
  for (std::size_t i = 0; i < 28; ++i) CHECK(mean[i] == doctest::Approx(own[i]).epsilon(1e-14));
  CHECK(samples[0] != samples[28]);
  // Law of total variance.
  const Numbers deviations = loss.deviations(MatrixView<const double>(mean.data(), n, 4));
  const MatrixView<const double> of_samples(samples.data(), 5 * n, 4);
  for (Index u = 0; u < n; ++u) {
    for (Index c = 0; c < 2; ++c) {
      double within = 0, between = 0;
      for (Index k = 0; k < 5; ++k) {
        const double m = of_samples(k * n + u, c), difference = m - mean[static_cast<std::size_t>(4 * u + c)];
        within += (of_samples(k * n + u, 2 + c) - m * m) / 5;
        between += difference * difference / 5;
      }
      const double deviation = deviations[static_cast<std::size_t>(2 * u + c)];
      CHECK(deviation * deviation == doctest::Approx(within + between).epsilon(1e-10));
    }
  }
  const sheafnn::uncertainty::Intervals intervals =
      sheafnn::predict_intervals(model, task.graph, task.sparse, loss, 0.8, how);
  const sheafnn::uncertainty::Intervals same = loss.intervals(samples, 5, 0.8);
  CHECK(intervals.lower == same.lower);
  CHECK(intervals.upper == same.upper);
  CHECK(intervals.lower.size() == 14);
}

namespace {

/// Two kinds of nodes on two rings, which their features name. Targets are drawn from distributions of the kind.
struct TwoKinds {
  static constexpr Index nodes = 900;

  sheafnn::Graph graph;
  sheafnn::NodeFeatures features;
  sheafnn::Split split;

  TwoKinds() {
    std::vector<sheafnn::Edge> edges;
    Numbers values;
    for (std::int32_t u = 0; u < nodes; ++u) {
      edges.push_back({u, static_cast<std::int32_t>((u + 2) % nodes)});
      for (const int kind : {0, 1}) values.push_back(u % 2 == kind ? 1 : 0);
      (u % 12 < 10 ? split.train : split.test).push_back(u);  // the last epoch is kept
    }
    graph = sheafnn::Graph(nodes, edges);
    features = sheafnn::NodeFeatures::from_dense(std::span<const double>(values), nodes, 2);
  }
  /// Number j of node u, uniform in (0, 1).
  [[nodiscard]] static double uniform(Index u, Index j) { return (tiny::number(31, 8 * u + j) + 1) / 2; }
  [[nodiscard]] static double normal(Index u, Index j) {
    return std::sqrt(-2 * std::log(uniform(u, 2 * j))) * std::cos(2 * std::numbers::pi * uniform(u, 2 * j + 1));
  }

  struct Learned {
    sheafnn::TrainResult result;
    Numbers predictions;
    sheafnn::uncertainty::Intervals intervals;
  };
  [[nodiscard]] Learned learn(const AnyTargetLoss& loss) const {
    using Model = sheafnn::Bsnn<sheafnn::SpecialOrthogonal<2>>;
    Model model({.features = 2,
                 .channels = 4,
                 .layers = 1,
                 .classes = loss.outputs(),
                 .feature_treatment = sheafnn::FeatureTreatment::none},
                3);
    sheafnn::TrainOptions how{.epochs = 200, .input_dropout = 0, .dropout = 0, .kl_maximum = 0, .seed = 5};
    how.learning_rate = 0.02;
    how.weight_decay = 0;
    Learned r{sheafnn::train(model, graph, features, loss, split, how), {}, {}};
    r.predictions = sheafnn::predict_targets(model, graph, features, loss, {.samples = 4});
    const bool has = loss.kind() == TargetLoss::gaussian || loss.kind() == TargetLoss::poisson;
    if (has) r.intervals = sheafnn::predict_intervals(model, graph, features, loss, 0.9, {.samples = 4});
    return r;
  }
};

}  // namespace

TEST_CASE("a network learns means and variances that differ between nodes, of two targets with missing ones") {
  const TwoKinds task;
  const double mean[2][2] = {{1, 0.5}, {-1, 0}}, sigma[2][2] = {{0.2, 1}, {0.9, 0.3}};  // kind, target
  Numbers y;
  for (Index u = 0; u < task.nodes; ++u) {
    for (Index c = 0; c < 2; ++c) {
      const double value = mean[u % 2][c] + sigma[u % 2][c] * task.normal(u, c);
      y.push_back(c == 1 && u % 5 == 0 ? nan_number : value);
    }
  }
  const AnyTargetLoss loss(TargetLoss::gaussian, {.values = y, .columns = 2});
  const auto learned = task.learn(loss);
  const Numbers deviations = loss.deviations(MatrixView<const double>(learned.predictions.data(), task.nodes, 4));
  double worst_mean = 0, worst_deviation = 0;
  for (Index u = 0; u < task.nodes; ++u) {
    for (Index c = 0; c < 2; ++c) {
      const double own = learned.predictions[static_cast<std::size_t>(4 * u + c)];
      worst_mean = test::worse(worst_mean, std::abs(own - mean[u % 2][c]));
      const double deviation = deviations[static_cast<std::size_t>(2 * u + c)];
      worst_deviation = test::worse(worst_deviation, std::abs(deviation / sigma[u % 2][c] - 1));
    }
  }
  CHECK(worst_mean < 0.12);
  CHECK(worst_deviation < 0.12);
  // 0.5 log(2πe) + the mean of log σ, the entropy, is the best loss.
  const double entropy = 1.4189385 + (std::log(0.2) + std::log(0.9) + 0.8 * std::log(0.3)) / 3.6;
  CHECK(std::abs(learned.result.test_nll - entropy) < 0.15);
  CHECK(learned.result.test_accuracy > 0.3);  // R²
  const double coverage = sheafnn::uncertainty::evaluate_intervals(learned.intervals, y).coverage;
  CHECK(std::abs(coverage - 0.9) < 0.03);
}

TEST_CASE("a network learns the rates of counts") {
  const TwoKinds task;
  const double rate[] = {2, 9};
  Numbers y;
  for (Index u = 0; u < task.nodes; ++u) {
    // By the distribution function.
    double count = 0;
    while (sheafnn::detail::poisson_cdf(count, rate[u % 2]) < task.uniform(u, 0)) ++count;
    y.push_back(u % 7 == 0 ? nan_number : count);
  }
  for (const double base : {1.0, 5.0}) {
    CAPTURE(base);
    const auto learned = task.learn(AnyTargetLoss(TargetLoss::poisson, {.values = y, .base_rates = {base}}));
    double worst = 0;
    for (Index u = 0; u < task.nodes; ++u) {
      worst = test::worse(worst, std::abs(learned.predictions[static_cast<std::size_t>(u)] / rate[u % 2] - 1));
    }
    CHECK(worst < 0.12);
    // Intervals of whole numbers have more than the coverage.
    const double coverage = sheafnn::uncertainty::evaluate_intervals(learned.intervals, y).coverage;
    CHECK(coverage > 0.9);
    CHECK(coverage < 0.98);
  }
}

TEST_CASE("a network learns the probabilities of ordered classes") {
  const TwoKinds task;
  const double p[2][3] = {{0.7, 0.2, 0.1}, {0.1, 0.3, 0.6}};
  Numbers y;
  for (Index u = 0; u < task.nodes; ++u) {
    const double x = task.uniform(u, 0);
    y.push_back(u % 7 == 0 ? nan_number : x < p[u % 2][0] ? 0 : x < p[u % 2][0] + p[u % 2][1] ? 1 : 2);
  }
  const AnyTargetLoss loss(TargetLoss::ordinal, {.values = y, .classes = 3});
  const auto learned = task.learn(loss);
  const Numbers found = loss.expectations(MatrixView<const double>(learned.predictions.data(), task.nodes, 2));
  double worst = 0;
  for (Index u = 0; u < task.nodes; ++u) {
    for (Index c = 0; c < 3; ++c) {
      worst = test::worse(worst, std::abs(found[static_cast<std::size_t>(3 * u + c)] - p[u % 2][c]));
    }
  }
  CHECK(worst < 0.08);
  CHECK(learned.result.test_accuracy > 0.5);
}

}  // namespace test_target_losses
