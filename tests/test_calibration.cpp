// Calibration errors: by hand, and against the mean over all outcomes of a calibrated model.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "sheafnn/random/stream.hpp"
#include "sheafnn/uncertainty/calibration.hpp"

namespace test_calibration {
namespace {

using namespace sheafnn;
using namespace sheafnn::random;
using namespace sheafnn::rotation;
using namespace sheafnn::uncertainty;
using Numbers = std::vector<double>;
using Nodes = std::vector<std::int32_t>;

Nodes all_nodes(std::size_t n) {
  Nodes r(n);
  std::iota(r.begin(), r.end(), 0);
  return r;
}
double uniform(std::uint64_t seed, std::uint32_t id, std::uint32_t draw) {
  return uniform_from_word<double>(Stream{seed}.words(id, draw).word[0]);
}
/// n × 2: class 0 with these probabilities, each at least a half.
Numbers two_classes(const Numbers& confidences) {
  Numbers r;
  for (const double c : confidences) r.insert(r.end(), {c, 1 - c});
  return r;
}
/// Calls body(labels, probability) for all 2^n labels of two classes, with the probability that a calibrated model has.
template <class Body>
void for_all_labels(const Numbers& confidences, const Body& body) {
  for (std::uint32_t bits = 0; bits < (1U << confidences.size()); ++bits) {
    Nodes labels;
    double probability = 1;
    for (std::size_t u = 0; u < confidences.size(); ++u) {
      labels.push_back(bits >> u & 1);
      probability *= labels.back() == 0 ? confidences[u] : 1 - confidences[u];
    }
    body(labels, probability);
  }
}
/// Random confidences of C classes.
Numbers random_rows(std::size_t n, Index classes, std::uint64_t seed) {
  Numbers r;
  for (std::uint32_t u = 0; u < n; ++u) {
    Numbers row;
    for (Index c = 0; c < classes; ++c) row.push_back(-std::log(uniform(seed, u, static_cast<std::uint32_t>(c))));
    for (double& x : row) x = x * x;
    const double sum = std::accumulate(row.begin(), row.end(), 0.0);
    for (const double x : row) r.push_back(x / sum);
  }
  return r;
}

}  // namespace

TEST_CASE("by hand") {
  // Bins (0.5, 0.75] and (0.75, 1]: 0.6 right, 0.7 wrong | 0.8 right, 0.9 right.
  const Numbers p = two_classes({0.6, 0.8, 0.7, 0.9});
  const Nodes labels = {0, 0, 1, 0};
  const CalibrationError r = calibration_error(p, 2, labels, all_nodes(4), 4);
  CHECK(r.error == doctest::Approx((0.3 + 0.3) / 4).epsilon(1e-14));
  // E|S|: 0.6 and 0.7: |0 − 1.3| 0.12 + |1 − 1.3| 0.46 + |2 − 1.3| 0.42; 0.8 and 0.9: 1.7·0.02 + 0.7·0.26 + 0.3·0.72.
  const double low = 1.3 * 0.12 + 0.3 * 0.46 + 0.7 * 0.42, high = 1.7 * 0.02 + 0.7 * 0.26 + 0.3 * 0.72;
  CHECK(r.expected == doctest::Approx((low + high) / 4).epsilon(1e-14));
  CHECK(r.debiased() == r.error - r.expected);
  const double variance = 0.24 + 0.21 - low * low + 0.16 + 0.09 - high * high;
  CHECK(r.deviation == doctest::Approx(std::sqrt(variance) / 4).epsilon(1e-13));
  // Pairs of a bin: 0.4·(−0.7) and 0.2·0.1, half of the nodes each.
  CHECK(r.squared == doctest::Approx((-0.28 + 0.02) / 2).epsilon(1e-13));
  // The same bins, by mass.
  const CalibrationError adaptive = calibration_error(p, 2, labels, all_nodes(4), 2, Binning::equal_mass);
  CHECK(adaptive.error == doctest::Approx(r.error).epsilon(1e-14));
  CHECK(adaptive.expected == doctest::Approx(r.expected).epsilon(1e-14));
  // One node: no pair.
  const CalibrationError one = calibration_error(p, 2, labels, Nodes{2}, 4);
  CHECK(one.error == doctest::Approx(0.7).epsilon(1e-15));
  CHECK(one.expected == doctest::Approx(2 * 0.7 * 0.3).epsilon(1e-14));
  CHECK(std::isnan(one.squared));
  // Certain: nothing to expect.
  const CalibrationError sure = calibration_error(Numbers{1, 0, 1, 0}, 2, Nodes{0, 1}, all_nodes(2));
  CHECK(sure.error == 0.5);
  CHECK(sure.expected == 0);
  CHECK(sure.deviation == 0);
}

TEST_CASE("equal confidences: Kumar, Liang and Ma's estimate") {
  const Numbers p = two_classes({0.7, 0.7, 0.7, 0.7, 0.7});
  const CalibrationError r = calibration_error(p, 2, Nodes{0, 1, 0, 0, 1}, all_nodes(5));
  CHECK(r.squared == doctest::Approx(0.1 * 0.1 - 0.6 * 0.4 / 4).epsilon(1e-13));
}

TEST_CASE("mean and deviation over all outcomes of a calibrated model") {
  const Numbers confidences = {0.52, 0.6, 0.6, 0.71, 0.77, 0.78, 0.93, 0.99, 1};
  const Numbers p = two_classes(confidences);
  for (const Binning binning : {Binning::equal_width, Binning::equal_mass}) {
    for (const Index bins : {1, 3, 4, 15}) {
      double mean = 0, square = 0, squared = 0, classes = 0, total = 0;
      for_all_labels(confidences, [&](const Nodes& labels, double probability) {
        const CalibrationError r = calibration_error(p, 2, labels, all_nodes(9), bins, binning);
        const CalibrationError c = class_wise_calibration_error(p, 2, labels, all_nodes(9), bins, binning);
        mean += probability * r.error;
        square += probability * r.error * r.error;
        squared += probability * (std::isnan(r.squared) ? 0 : r.squared);
        classes += probability * c.error;
        total += probability;
      });
      REQUIRE(total == doctest::Approx(1).epsilon(1e-14));
      const CalibrationError r = calibration_error(p, 2, Nodes(9), all_nodes(9), bins, binning);
      CHECK(r.expected == doctest::Approx(mean).epsilon(1e-13));
      CHECK(r.deviation == doctest::Approx(std::sqrt(square - mean * mean)).epsilon(1e-11));
      CHECK(std::abs(squared) <= 1e-15);
      const CalibrationError c = class_wise_calibration_error(p, 2, Nodes(9), all_nodes(9), bins, binning);
      CHECK(c.expected == doctest::Approx(classes).epsilon(1e-13));
      CHECK(std::isnan(c.deviation));
    }
  }
}

TEST_CASE("the ECE is that of metrics.hpp, and the order of nodes does not matter") {
  const Index classes = 4;
  const std::size_t n = 300;
  const Numbers p = random_rows(n, classes, 3);
  Nodes labels, nodes = all_nodes(n);
  for (std::uint32_t u = 0; u < n; ++u) labels.push_back(static_cast<std::int32_t>(4 * uniform(4, u, 0)));
  const Nodes backwards(nodes.rbegin(), nodes.rend());
  for (const Index bins : {1, 7, 15, 1000}) {
    const CalibrationError r = calibration_error(p, classes, labels, nodes, bins);
    CHECK(r.error == doctest::Approx(expected_calibration_error(p, classes, labels, nodes, bins)).epsilon(1e-13));
    CHECK(calibration_error(p, classes, labels, backwards, bins).error == r.error);
    CHECK(r.expected > 0);
  }
  const std::vector<ReliabilityBin> diagram = adaptive_reliability_diagram(p, classes, labels, nodes, 15);
  REQUIRE(diagram.size() == 15);
  for (std::size_t k = 0; k < 15; ++k) {
    CHECK(diagram[k].count == 20);
    CHECK(diagram[k].lower <= diagram[k].confidence);
    CHECK(diagram[k].confidence <= diagram[k].upper);
    if (k > 0) CHECK(diagram[k - 1].upper < diagram[k].lower);
  }
  CHECK(
      expected_calibration_error(diagram) ==
      doctest::Approx(calibration_error(p, classes, labels, nodes, 15, Binning::equal_mass).error).epsilon(1e-13));
  // Equal confidences stay together; fewer nodes than bins have one each.
  CHECK(adaptive_reliability_diagram(two_classes({0.6, 0.6, 0.6, 0.9}), 2, Nodes(4), all_nodes(4), 4).size() == 2);
  CHECK(adaptive_reliability_diagram(two_classes({0.6, 0.7}), 2, Nodes(2), all_nodes(2), 15).size() == 2);
  CHECK(adaptive_reliability_diagram(two_classes({0.6}), 2, Nodes(1), all_nodes(1), 15).size() == 1);
}

TEST_CASE("many nodes: the expectation is that of the normal limit, and is what calibrated labels score") {
  // One bin of equal confidences: E|S| → √(2 n c (1 − c) / π), relative error of order 1/n.
  const std::size_t n = 20000;
  const CalibrationError large = calibration_error(two_classes(Numbers(n, 0.8)), 2, Nodes(n), all_nodes(n));
  CHECK(large.expected == doctest::Approx(std::sqrt(2 * 0.16 / (std::acos(-1.0) * n))).epsilon(1e-4));
  // 37 nodes of five classes, 15 bins: labels drawn from the predictions themselves.
  const Numbers p = random_rows(37, 5, 11);
  double mean = 0;
  constexpr std::uint32_t draws = 2000;
  const CalibrationError some = calibration_error(p, 5, Nodes(37), all_nodes(37));
  for (std::uint32_t draw = 0; draw < draws; ++draw) {
    Nodes labels;
    for (std::uint32_t u = 0; u < 37; ++u) {
      double left = uniform(12, u, draw);
      std::int32_t label = 0;
      while (label < 4 && (left -= p[5 * u + static_cast<std::size_t>(label)]) > 0) ++label;
      labels.push_back(label);
    }
    mean += calibration_error(p, 5, labels, all_nodes(37)).error / draws;
  }
  CHECK(std::abs(mean - some.expected) <= 4 * some.deviation / std::sqrt(draws));
  CHECK(some.expected > 0.1);
}

TEST_CASE("bad input") {
  const Numbers p = two_classes({0.6, 0.8});
  CHECK_THROWS_WITH_AS(static_cast<void>(calibration_error(p, 2, Nodes{0, 0}, all_nodes(2), 0)),
                       "bins: 0 is not allowed; must be between 1 and 1000000", std::invalid_argument);
  CHECK_THROWS_WITH_AS(static_cast<void>(class_wise_calibration_error(p, 2, Nodes{0, 2}, all_nodes(2))),
                       "labels[1]: 2 is not allowed; must be between 0 and 1", std::invalid_argument);
  CHECK_THROWS_WITH_AS(static_cast<void>(adaptive_reliability_diagram(p, 3, Nodes{0, 0}, all_nodes(2))),
                       "probabilities: 4 is not allowed; expected nodes * classes = 6", std::invalid_argument);
  CHECK_THROWS_WITH_AS(static_cast<void>(calibration_error(p, 2, Nodes{0, 0}, Nodes{})),
                       "nodes: 0 is not allowed; at least one node is needed", std::invalid_argument);
}

TEST_CASE("probabilities of the nodes that count sum to 1") {
  const Numbers near = {0.5, 0.5, 0.3, 0.7009}, far = {0.5, 0.5, 0.3, 0.698};
  const Nodes labels = {0, 1};
  const auto metrics = [&](const Numbers& p, const Nodes& nodes) {
    return std::vector<std::function<void()>>{
        [&] { static_cast<void>(accuracy(p, 2, labels, nodes)); },
        [&] { static_cast<void>(negative_log_likelihood(p, 2, labels, nodes)); },
        [&] { static_cast<void>(reliability_diagram(p, 2, labels, nodes)); },
        [&] { static_cast<void>(calibration_error(p, 2, labels, nodes)); },
        [&] { static_cast<void>(confusion_matrix(p, 2, labels, nodes)); },
    };
  };
  const Nodes all = all_nodes(2), first = {0};
  for (const auto& metric : metrics(near, all)) CHECK_NOTHROW(metric());
  for (const auto& metric : metrics(far, first)) CHECK_NOTHROW(metric());
  for (const auto& metric : metrics(far, all)) {
    CHECK_THROWS_WITH_AS(
        metric(),
        "probabilities[1]: the sum 0.998 is not allowed; probabilities of a node must sum to 1, up to 0.001",
        std::invalid_argument);
  }
}

}  // namespace test_calibration
