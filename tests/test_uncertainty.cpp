// Calibration metrics, uncertainty from samples, temperature scaling.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "sheafnn/random/stream.hpp"
#include "sheafnn/uncertainty.hpp"

namespace test_uncertainty {
namespace {

using namespace sheafnn;
using namespace sheafnn::layers;
using namespace sheafnn::random;
using namespace sheafnn::rotation;
using namespace sheafnn::uncertainty;

constexpr double epsilon = std::numeric_limits<double>::epsilon();

std::vector<std::int32_t> all_nodes(std::size_t n) {
  std::vector<std::int32_t> r(n);
  std::iota(r.begin(), r.end(), 0);
  return r;
}

// n × C logits with N(0, scale²) entries and labels drawn from softmax(logits / temperature).
struct Task {
  Index classes;
  std::vector<double> logits;
  std::vector<std::int32_t> labels;
};
Task random_task(std::size_t n, Index classes, double scale, double temperature, std::uint64_t seed) {
  Task task{classes, {}, {}};
  const Stream stream{seed};
  for (std::size_t u = 0; u < n; ++u) {
    std::vector<double> z(16);
    fill_normals<16>(z.data(), stream, static_cast<std::uint32_t>(u));
    z.resize(static_cast<std::size_t>(classes));
    for (double& x : z) x *= scale;
    const std::vector<double> p = apply_temperature(z, classes, temperature);
    double left = uniform_from_word<double>(stream.words(static_cast<std::uint32_t>(u), 4).word[0]);
    std::int32_t label = 0;
    while (label + 1 < classes && (left -= p[static_cast<std::size_t>(label)]) > 0) ++label;
    task.logits.insert(task.logits.end(), z.begin(), z.end());
    task.labels.push_back(label);
  }
  return task;
}

double nll_at(const Task& task, double temperature) {
  return negative_log_likelihood(apply_temperature(task.logits, task.classes, temperature), task.classes,
                                 task.labels, all_nodes(task.labels.size()));
}

}  // namespace

TEST_CASE("accuracy and NLL count the given nodes only") {
  const std::vector<double> p = {0.5, 0.25, 0.25, 0.1, 0.8, 0.1, 0.2, 0.3, 0.5, 0.4, 0.4, 0.2};
  const std::vector<std::int32_t> labels = {0, 1, 0, 1};
  CHECK(accuracy(p, 3, labels, all_nodes(4)) == 0.5);  // the first of equal classes is predicted
  CHECK(accuracy(p, 3, labels, std::vector<std::int32_t>{0, 1}) == 1);
  CHECK(accuracy(p, 3, labels, std::vector<std::int32_t>{2}) == 0);
  const double nll = -(std::log(0.5) + std::log(0.8) + std::log(0.2) + std::log(0.4)) / 4;
  CHECK(std::abs(negative_log_likelihood(p, 3, labels, all_nodes(4)) - nll) <= 4 * epsilon * nll);
  CHECK(negative_log_likelihood(p, 3, labels, std::vector<std::int32_t>{1}) == -std::log(0.8));
  CHECK(negative_log_likelihood(std::vector<double>{0, 1}, 2, std::vector<std::int32_t>{0}, all_nodes(1)) ==
        -std::log(std::numeric_limits<double>::min()));
}

TEST_CASE("confusion matrix and F1") {
  // Labels 0 0 1 1 2 2, most probable 0 1 1 1 0 2; the last node does not count.
  const std::vector<double> p = {0.8, 0.1, 0.1, 0.2, 0.7, 0.1, 0, 1, 0, 0, 1, 0, 0.5, 0.2, 0.3, 0, 0, 1};
  const std::vector<std::int32_t> labels = {0, 0, 1, 1, 2, 2}, nodes = {0, 1, 2, 3, 4};
  const std::vector<Index> confusion = sheafnn::uncertainty::confusion_matrix(p, 3, labels, nodes);
  CHECK(confusion == std::vector<Index>{1, 1, 0, 0, 2, 0, 1, 0, 0});
  // Class 0: TP 1, FP 1, FN 1; class 1: TP 2, FP 1; class 2: FN 1.
  const std::vector<double> f1 = sheafnn::uncertainty::f1_scores(confusion, 3);
  CHECK(f1 == std::vector<double>{2.0 / 4, 4.0 / 5, 0});
  const std::vector<Index> none(4);
  CHECK(sheafnn::uncertainty::f1_scores(none, 2) == std::vector<double>{0, 0});
  CHECK(sheafnn::uncertainty::mean_f1(confusion, 3) == doctest::Approx(1.3 / 3));
  CHECK(sheafnn::uncertainty::mean_f1(std::vector<Index>{3, 0, 0, 0, 0, 0, 1, 0, 0}, 3) ==
        doctest::Approx(3.0 / 7));  // no class 1
  CHECK(std::isnan(sheafnn::uncertainty::mean_f1(none, 2)));
  CHECK_THROWS_WITH_AS(static_cast<void>(sheafnn::uncertainty::mean_f1(none, 0)),
                       doctest::Contains("class_count: 0 is not allowed"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(static_cast<void>(sheafnn::uncertainty::f1_scores(none, 3)),
                       "confusion: 4 is not allowed; expected classes * classes = 9", std::invalid_argument);
}

TEST_CASE("reliability diagram: bins are open below and closed above") {
  // Confidences on and beside the edges k/15 of two classes; every second node is right.
  std::vector<double> p;
  std::vector<std::int32_t> labels;
  std::vector<std::size_t> expected_bin;
  for (std::size_t k = 8; k <= 15; ++k) {
    const double edge = static_cast<double>(k) / 15.0;
    for (const double confidence : {std::nextafter(edge, 0.0), edge, std::nextafter(edge, 2.0)}) {
      if (confidence > 1) continue;
      p.push_back(confidence);
      p.push_back(1 - confidence);
      labels.push_back(static_cast<std::int32_t>(labels.size() % 2));
      expected_bin.push_back(confidence > edge ? k : k - 1);
    }
  }
  const std::vector<ReliabilityBin> bins = reliability_diagram(p, 2, labels, all_nodes(labels.size()));
  REQUIRE(bins.size() == 15);
  double error = 0;
  for (std::size_t k = 0; k < 15; ++k) {
    CHECK(bins[k].lower == static_cast<double>(k) / 15);
    CHECK(bins[k].upper == static_cast<double>(k + 1) / 15);
    double count = 0, confidence = 0, correct = 0;
    for (std::size_t u = 0; u < labels.size(); ++u) {
      if (expected_bin[u] != k) continue;
      count += 1;
      confidence += p[2 * u];
      correct += labels[u] == 0 ? 1 : 0;
    }
    CHECK(bins[k].count == static_cast<Index>(count));
    CHECK(bins[k].confidence == (count > 0 ? confidence / count : 0));
    CHECK(bins[k].accuracy == (count > 0 ? correct / count : 0));
    error += std::abs(correct - confidence);
  }
  const double n = static_cast<double>(labels.size());
  CHECK(std::abs(expected_calibration_error(bins) - error / n) <= 2 * n * epsilon);
  CHECK(expected_calibration_error(p, 2, labels, all_nodes(labels.size())) == expected_calibration_error(bins));
  // Certain and right: no error; certain and wrong: error 1.
  const std::vector<double> sure = {1, 0};
  CHECK(expected_calibration_error(sure, 2, std::vector<std::int32_t>{0}, all_nodes(1)) == 0);
  CHECK(expected_calibration_error(sure, 2, std::vector<std::int32_t>{1}, all_nodes(1)) == 1);
  // One class, and a confidence just above 1 as single precision may give.
  const std::vector<double> above = {1 + 1e-7};
  CHECK(reliability_diagram(above, 1, std::vector<std::int32_t>{0}, all_nodes(1))[14].count == 1);
}

TEST_CASE("metrics refuse what does not fit, with value and limit") {
  const std::vector<double> p = {0.5, 0.5, 0.25, 0.75};
  const std::vector<std::int32_t> labels = {0, 1};
  const auto call = [&](const std::vector<double>& values, Index classes, const std::vector<std::int32_t>& l,
                        const std::vector<std::int32_t>& nodes) {
    static_cast<void>(expected_calibration_error(values, classes, l, nodes));
  };
  CHECK_THROWS_WITH_AS(call(p, 3, labels, {0}), "probabilities: 4 is not allowed; expected nodes * classes = 6",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(call(p, 2, labels, {}), "nodes: 0 is not allowed; at least one node is needed",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(call(p, 2, labels, {0, 2}), "nodes[1]: 2 is not allowed; must be between 0 and 1",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(call(p, 2, {0, 2}, {1}), "labels[1]: 2 is not allowed; must be between 0 and 1",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(call({0.5, 0.5, std::nan(""), 0}, 2, labels, {1}),
                       "probabilities[1, 0]: nan is not allowed; a probability must be between 0 and 1",
                       std::invalid_argument);
  CHECK_THROWS_AS(call({0.5, 0.5, 1.1, 0}, 2, labels, {1}), std::invalid_argument);
  // 2 * 2^63 values are not 0 values.
  CHECK_THROWS_WITH_AS(call({}, std::numeric_limits<Index>::max(), labels, {1}),
                       "probabilities: 0 is not allowed; expected nodes * classes = 1.84467e+19",
                       std::invalid_argument);
  CHECK_THROWS_AS(call({}, Index{1} << 62, {0, 1, 0, 1}, {1}), std::invalid_argument);
  CHECK_THROWS_AS(call({0.5, 0.5, 1, -0.1}, 2, labels, {1}), std::invalid_argument);
  CHECK_THROWS_AS(static_cast<void>(reliability_diagram(p, 2, labels, labels, 0)), std::invalid_argument);
  CHECK_THROWS_AS(static_cast<void>(expected_calibration_error(std::vector<ReliabilityBin>(15))),
                  std::invalid_argument);
}

TEST_CASE("entropy") {
  CHECK(predictive_entropy(std::vector<double>{1, 0, 0}) == 0);
  CHECK(std::abs(predictive_entropy(std::vector<double>(8, 0.125)) - std::log(8.0)) <=
        8 * epsilon * std::log(8.0));
  CHECK(predictive_entropy(std::vector<double>{0.5, 0.5}) == predictive_entropy(std::vector<double>{0.5, 0, 0.5}));
}

TEST_CASE("uncertainty from samples: against the definitions") {
  constexpr std::size_t K = 5, n = 7, C = 4;
  const Task task = random_task(K * n, C, 2.0, 1.0, 4);
  const std::vector<double> samples = apply_temperature(task.logits, C, 1.0);
  const SampledPrediction r = combine_samples(samples, K, n, C);
  for (std::size_t u = 0; u < n; ++u) {
    std::vector<double> mean(C, 0.0);
    double mean_entropy = 0;
    for (std::size_t k = 0; k < K; ++k) {
      const std::vector<double> p(samples.begin() + static_cast<std::ptrdiff_t>((k * n + u) * C),
                                  samples.begin() + static_cast<std::ptrdiff_t>((k * n + u + 1) * C));
      for (std::size_t c = 0; c < C; ++c) mean[c] += p[c] / K;
      mean_entropy += predictive_entropy(p) / K;
    }
    double variance = 0;
    for (std::size_t c = 0; c < C; ++c) {
      for (std::size_t k = 0; k < K; ++k) {
        variance += std::pow(samples[(k * n + u) * C + c] - mean[c], 2) / (K * C);
      }
      CHECK(std::abs(r.probabilities[u * C + c] - mean[c]) <= 4 * K * epsilon);
    }
    const double entropy = predictive_entropy(mean);
    // Sums of K·C terms of size at most 1.
    CHECK(std::abs(r.entropy[u] - entropy) <= 4 * K * C * epsilon);
    CHECK(std::abs(r.epistemic_variance[u] - variance) <= 4 * K * C * epsilon);
    CHECK(std::abs(r.mutual_information[u] - (entropy - mean_entropy)) <= 8 * K * C * epsilon);
    CHECK(r.mutual_information[u] > 0);
  }
}

TEST_CASE("uncertainty from samples: agreement, contradiction, single precision, strides") {
  // Equal samples: nothing epistemic. Certain but contradictory samples: all of the entropy is.
  const std::vector<double> equal = {0.3, 0.7, 0.3, 0.7, 0.3, 0.7};
  const SampledPrediction agreed = combine_samples(equal, 3, 1, 2);
  CHECK(agreed.epistemic_variance[0] <= 4 * epsilon * epsilon);
  CHECK(agreed.mutual_information[0] <= 8 * epsilon);
  const SampledPrediction split = combine_samples(std::vector<double>{1, 0, 0, 1}, 2, 1, 2);
  CHECK(split.probabilities == std::vector<double>{0.5, 0.5});
  CHECK(split.entropy[0] == std::log(2.0));
  CHECK(split.mutual_information[0] == std::log(2.0));
  CHECK(split.epistemic_variance[0] == 0.25);
  const SampledPrediction single = combine_samples(std::vector<double>{0.25, 0.75}, 1, 1, 2);
  CHECK(single.epistemic_variance[0] == 0);
  CHECK(single.mutual_information[0] == 0);

  SampledPredictionBuilder builder(2, 2);
  const std::vector<float> padded = {0.25f, 0.75f, 9, 9, 0.5f, 0.5f, 9, 9};
  builder.add(padded.data(), 4);
  builder.add(padded.data(), 4);
  CHECK(builder.sample_count() == 2);
  CHECK(builder.result().probabilities == std::vector<double>{0.25, 0.75, 0.5, 0.5});

  CHECK_THROWS_AS(static_cast<void>(SampledPredictionBuilder(2, 2).result()), std::invalid_argument);
  CHECK_THROWS_AS(SampledPredictionBuilder(2, 0), std::invalid_argument);
  CHECK_THROWS_WITH_AS(static_cast<void>(combine_samples(equal, 2, 1, 2)),
                       "samples: 6 is not allowed; expected samples * nodes * classes = 4", std::invalid_argument);
  CHECK_THROWS_AS(static_cast<void>(combine_samples({}, Index{1} << 62, 2, 2)), std::invalid_argument);
  // Sizes are compared before there are arrays of them.
  CHECK_THROWS_WITH_AS(static_cast<void>(combine_samples(equal, 1, Index{1} << 45, 2)),
                       "samples: 6 is not allowed; expected samples * nodes * classes = 7.03687e+13",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(static_cast<void>(combine_members(std::vector{single}, Index{1} << 45)),
                       "members[0]: 2 is not allowed; expected nodes * classes = 1 * 35184372088832",
                       std::invalid_argument);
  const std::string most = "nodes * classes must be at most 1152921504606846975; there are 4 classes";
  const std::string too_many = "node_count: 4611686018427387904 is not allowed; " + most;
  CHECK_THROWS_WITH_AS(SampledPredictionBuilder(Index{1} << 62, 4), too_many.c_str(), std::invalid_argument);
  CHECK_THROWS_WITH_AS(static_cast<void>(combine_samples(equal, 1, Index{1} << 62, 4)), too_many.c_str(),
                       std::invalid_argument);
  CHECK_THROWS_AS(SampledPredictionBuilder(Index{1} << 60, 1), std::invalid_argument);
  CHECK_THROWS_WITH_AS(static_cast<void>(combine_samples(std::vector<double>{0.5, std::nan("")}, 1, 1, 2)),
                       "probabilities[0, 1]: nan is not allowed; a probability must be between 0 and 1",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(
      static_cast<void>(combine_samples(std::vector<double>{0.5, 0.5, 0.25, 0.5}, 1, 2, 2)),
      "probabilities[1]: the sum 0.75 is not allowed; probabilities of a node must sum to 1, up to 0.001",
      std::invalid_argument);
}

TEST_CASE("temperature: the minimum is found") {
  for (const double truth : {0.2, 1.0, 3.0, 20.0}) {
    for (const Index classes : {2, 5}) {
      const std::size_t n = 4000;
      // Spread logits so that softmax(z / T) is informative at every T.
      const Task task = random_task(n, classes, 2 * truth, truth, 9);
      const double fitted = fit_temperature(task.logits, classes, task.labels, all_nodes(n));
      // No temperature nearby does better. Near the minimum the NLL is flat: steps of 1 % change it by about 1e-5,
      // far above its rounding.
      const double best = nll_at(task, fitted);
      for (const double factor : {0.5, 0.9, 0.99, 1.01, 1.1, 2.0}) CHECK(nll_at(task, fitted * factor) > best);
      // d NLL / d log T vanishes: central difference with error of order step², and the rounding of a sum of n
      // terms.
      const double step = 1e-5;
      const double slope = (nll_at(task, fitted * (1 + step)) - nll_at(task, fitted * (1 - step))) / (2 * step);
      CHECK(std::abs(slope) <= 10 * step * step + static_cast<double>(n) * epsilon / step);
      // The curvature of the NLL in log T gives the standard error of log T; 4 of them.
      const double wide = 1.05;
      const double curvature = (nll_at(task, fitted * wide) + nll_at(task, fitted / wide) - 2 * best) /
                               (std::log(wide) * std::log(wide));
      CHECK(std::abs(std::log(fitted / truth)) <= 4 / std::sqrt(static_cast<double>(n) * curvature));
      // Scaled logits scale the temperature.
      std::vector<double> scaled = task.logits;
      for (double& z : scaled) z *= 2;
      const double twice = fit_temperature(scaled, classes, task.labels, all_nodes(n));
      CHECK(std::abs(twice / (2 * fitted) - 1) <= 1e-10);
      // Log-probabilities serve as logits.
      std::vector<double> log_p = apply_temperature(task.logits, classes, 1.0);
      for (double& x : log_p) x = std::log(std::max(x, 1e-300));
      if (truth < 10) {
        CHECK(std::abs(fit_temperature(log_p, classes, task.labels, all_nodes(n)) / fitted - 1) <= 1e-9);
      }
    }
  }
}

TEST_CASE("temperature: limits and degenerate inputs") {
  const std::vector<double> z = {2, 0, 0, 2};
  CHECK(fit_temperature(z, 2, std::vector<std::int32_t>{0, 1}, all_nodes(2)) == lowest_temperature);
  CHECK(fit_temperature(z, 2, std::vector<std::int32_t>{1, 0}, all_nodes(2)) == highest_temperature);
  CHECK(fit_temperature(std::vector<double>(4, 3.0), 2, std::vector<std::int32_t>{1, 0}, all_nodes(2)) == 1);
  // Three right, one wrong at margin 2: σ(2β) = 3/4, T = 2 / log 3; other nodes do not count.
  const std::vector<double> four = {2, 0, 2, 0, 2, 0, 2, 0, 50, 0};
  const double fitted =
      fit_temperature(four, 2, std::vector<std::int32_t>{0, 0, 0, 1, 1}, std::vector<std::int32_t>{0, 1, 2, 3});
  CHECK(std::abs(fitted - 2 / std::log(3.0)) <= 16 * epsilon * fitted);
  // Huge margins neither overflow nor hang.
  const std::vector<double> huge = {1e6, 0, 1e6, 0, 0, 1e6};
  CHECK(fit_temperature(huge, 2, std::vector<std::int32_t>{0, 1, 1}, all_nodes(3)) == highest_temperature);
  for (const double p : apply_temperature(huge, 2, 1e-3)) CHECK((p == 0 || p == 1));
  // Nor do margins that are infinite: right nodes have the same NLL, 0, at every temperature.
  const std::vector<double> infinite = {1e308, -1e308, -1e308, 1e308};
  CHECK(fit_temperature(infinite, 2, std::vector<std::int32_t>{0, 1}, all_nodes(2)) == 1);
  CHECK(fit_temperature(infinite, 2, std::vector<std::int32_t>{0, 0}, all_nodes(2)) == highest_temperature);

  CHECK_THROWS_AS(static_cast<void>(
                      fit_temperature(std::vector<double>{1, std::numeric_limits<double>::infinity()}, 2,
                                      std::vector<std::int32_t>{0}, all_nodes(1))),
                  std::invalid_argument);
  CHECK_THROWS_WITH_AS(static_cast<void>(apply_temperature(z, 2, 0)),
                       "temperature: 0 is not allowed; must be positive and finite", std::invalid_argument);
  CHECK_THROWS_AS(static_cast<void>(apply_temperature(z, 3, 1)), std::invalid_argument);
  CHECK_THROWS_WITH_AS(static_cast<void>(apply_temperature(std::vector<double>{1, std::nan("")}, 2, 1)),
                       "logits[0, 1]: nan is not allowed; must be finite", std::invalid_argument);
}

}  // namespace test_uncertainty
