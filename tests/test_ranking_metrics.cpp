// ROC AUC, average precision, macro F1 and Brier score against their definitions.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "sheafnn/random/stream.hpp"
#include "sheafnn/uncertainty/ranking_metrics.hpp"

namespace test_ranking_metrics {
namespace {

using namespace sheafnn;
using namespace sheafnn::random;
using namespace sheafnn::rotation;
using namespace sheafnn::uncertainty;
using Nodes = std::vector<std::int32_t>;

Nodes all_nodes(std::size_t n) {
  Nodes r(n);
  std::iota(r.begin(), r.end(), 0);
  return r;
}
/// n × 2 from the probabilities of class 1.
std::vector<double> binary(const std::vector<double>& p) {
  std::vector<double> r;
  for (const double x : p) r.insert(r.end(), {1 - x, x});
  return r;
}

struct Task {
  Index classes;
  std::vector<double> p;
  std::vector<std::int32_t> labels;
  Nodes nodes;  ///< two of three
  [[nodiscard]] double at(std::int32_t u, Index c) const { return p[static_cast<std::size_t>(u * classes + c)]; }
  [[nodiscard]] bool is(std::int32_t u, Index c) const { return labels[static_cast<std::size_t>(u)] == c; }
};
/// Rows of random numbers of sum 1, multiples of about 1/levels: with few levels there are many ties.
Task random_task(std::int32_t n, Index classes, double levels, std::uint64_t seed) {
  Task r{classes, {}, {}, {}};
  const Stream stream{seed};
  for (std::int32_t u = 0; u < n; ++u) {
    double sum = 0;
    const std::size_t begin = r.p.size();
    for (Index c = 0; c < classes; ++c) {
      const auto word = stream.words(static_cast<std::uint32_t>(u), static_cast<std::uint32_t>(c)).word[0];
      r.p.push_back(std::floor(levels * uniform_from_word<double>(word)) + 1);
      sum += r.p.back();
    }
    for (std::size_t i = begin; i < r.p.size(); ++i) r.p[i] /= sum;
    // The class `classes` - 1 of more than two has no node.
    const double share = uniform_from_word<double>(stream.words(static_cast<std::uint32_t>(u), 100).word[0]);
    r.labels.push_back(static_cast<std::int32_t>(share * static_cast<double>(classes > 2 ? classes - 1 : 2)));
    if (u % 3 != 1) r.nodes.push_back(u);
  }
  return r;
}

/// The mean of measure(c) over the classes that some of the nodes have and not all, class 1 of two.
template <class Measure>
double mean_over_classes(const Task& t, const Measure& measure) {
  double sum = 0, count = 0;
  for (Index c = t.classes == 2 ? 1 : 0; c < t.classes; ++c) {
    const auto positives = std::count_if(t.nodes.begin(), t.nodes.end(), [&](std::int32_t u) { return t.is(u, c); });
    if (positives == 0 || positives == std::ssize(t.nodes)) continue;
    sum += measure(c);
    ++count;
  }
  return sum / count;
}
/// Over all pairs of a positive and a negative.
double auc_by_pairs(const Task& t) {
  return mean_over_classes(t, [&](Index c) {
    double won = 0, pairs = 0;
    for (const std::int32_t u : t.nodes) {
      for (const std::int32_t v : t.nodes) {
        if (!t.is(u, c) || t.is(v, c)) continue;
        won += t.at(u, c) > t.at(v, c) ? 1.0 : t.at(u, c) == t.at(v, c) ? 0.5 : 0.0;
        ++pairs;
      }
    }
    return won / pairs;
  });
}
/// The mean over the positives of the precision at their own threshold.
double precision_by_thresholds(const Task& t) {
  return mean_over_classes(t, [&](Index c) {
    double sum = 0, positives = 0;
    for (const std::int32_t u : t.nodes) {
      if (!t.is(u, c)) continue;
      double hits = 0, seen = 0;
      for (const std::int32_t v : t.nodes) {
        if (t.at(v, c) < t.at(u, c)) continue;
        ++seen;
        hits += t.is(v, c) ? 1 : 0;
      }
      sum += hits / seen;
      ++positives;
    }
    return sum / positives;
  });
}
double f1_by_class(const Task& t) {
  double sum = 0, classes = 0;
  for (Index c = 0; c < t.classes; ++c) {
    double hits = 0, labelled = 0, predicted = 0;
    for (const std::int32_t u : t.nodes) {
      Index best = 0;
      for (Index k = 1; k < t.classes; ++k) best = t.at(u, k) > t.at(u, best) ? k : best;
      labelled += t.is(u, c) ? 1 : 0;
      predicted += best == c ? 1 : 0;
      hits += t.is(u, c) && best == c ? 1 : 0;
    }
    if (labelled + predicted == 0) continue;
    sum += 2 * hits / (labelled + predicted);
    ++classes;
  }
  return sum / classes;
}

}  // namespace

TEST_CASE("known values") {
  // The examples of scikit-learn's documentation of the same metrics.
  const std::vector<double> p = binary({0.1, 0.4, 0.35, 0.8});
  const std::vector<std::int32_t> labels = {0, 0, 1, 1};
  CHECK(roc_auc(p, 2, labels, all_nodes(4)) == 0.75);
  CHECK(average_precision(p, 2, labels, all_nodes(4)) == doctest::Approx((1 + 2.0 / 3) / 2).epsilon(1e-15));
  const std::vector<double> sure = {1, 0, 0, 0, 0, 1, 0, 1, 0, 1, 0, 0, 1, 0, 0, 0, 1, 0};  // 0 2 1 0 0 1
  CHECK(macro_f1(sure, 3, std::vector<std::int32_t>{0, 1, 2, 0, 1, 2}, all_nodes(6)) ==
        doctest::Approx(0.8 / 3).epsilon(1e-15));
  CHECK(brier_score(binary({0.1, 0.9, 0.8, 0.3}), 2, std::vector<std::int32_t>{0, 1, 1, 0}, all_nodes(4)) ==
        doctest::Approx(2 * 0.0375).epsilon(1e-14));
  // All the same: chance. Sorted: 1; the other way round: 0.
  CHECK(roc_auc(binary({0.3, 0.3, 0.3, 0.3}), 2, labels, all_nodes(4)) == 0.5);
  CHECK(average_precision(binary({0.3, 0.3, 0.3, 0.3}), 2, labels, all_nodes(4)) == 0.5);
  CHECK(roc_auc(binary({0.1, 0.2, 0.3, 0.4}), 2, labels, all_nodes(4)) == 1);
  CHECK(average_precision(binary({0.1, 0.2, 0.3, 0.4}), 2, labels, all_nodes(4)) == 1);
  CHECK(roc_auc(binary({0.4, 0.3, 0.2, 0.1}), 2, labels, all_nodes(4)) == 0);
  CHECK(brier_score(std::vector<double>{1, 0, 0, 1}, 2, std::vector<std::int32_t>{1, 1}, all_nodes(2)) == 1);
}

TEST_CASE("metrics against their definitions") {
  std::uint64_t seed = 0;
  for (const Index classes : {2, 3, 5}) {
    for (const double levels : {2.0, 5.0, 1e6}) {
      for (const std::int32_t n : {9, 31, 200}) {
        const Task t = random_task(n, classes, levels, ++seed);
        CAPTURE(classes);
        CAPTURE(levels);
        CAPTURE(n);
        const auto check = [](double value, double expected) {
          CHECK(std::abs(value - expected) <= 1e-14);
        };
        check(roc_auc(t.p, classes, t.labels, t.nodes), auc_by_pairs(t));
        check(average_precision(t.p, classes, t.labels, t.nodes), precision_by_thresholds(t));
        check(macro_f1(t.p, classes, t.labels, t.nodes), f1_by_class(t));
        double brier = 0;
        for (const std::int32_t u : t.nodes) {
          for (Index c = 0; c < classes; ++c) brier += std::pow(t.at(u, c) - (t.is(u, c) ? 1 : 0), 2);
        }
        check(brier_score(t.p, classes, t.labels, t.nodes), brier / static_cast<double>(t.nodes.size()));
        // Of two classes it does not matter which is the positive one.
        if (classes != 2) continue;
        Task other = t;
        for (std::size_t u = 0; u < other.labels.size(); ++u) {
          std::swap(other.p[2 * u], other.p[2 * u + 1]);
          other.labels[u] = 1 - other.labels[u];
        }
        check(roc_auc(other.p, 2, other.labels, other.nodes), auc_by_pairs(t));
      }
    }
  }
}

TEST_CASE("classes that no node or all nodes have are left out") {
  const std::vector<double> p = binary({0.1, 0.9});
  CHECK(std::isnan(roc_auc(p, 2, std::vector<std::int32_t>{1, 1}, all_nodes(2))));
  CHECK(std::isnan(average_precision(p, 2, std::vector<std::int32_t>{1, 1}, all_nodes(2))));
  CHECK(std::isnan(roc_auc(std::vector<double>{1, 1}, 1, std::vector<std::int32_t>{0, 0}, all_nodes(2))));
  // Classes 0 and 2 are ranked rightly, class 1 belongs to the last node, which does not count.
  const std::vector<double> three = {0.9, 0, 0.1, 0.1, 0.5, 0.4, 0, 1, 0};
  CHECK(roc_auc(three, 3, std::vector<std::int32_t>{0, 2, 1}, Nodes{0, 1}) == 1);
  CHECK(average_precision(three, 3, std::vector<std::int32_t>{0, 2, 1}, Nodes{0, 1}) == 1);
  // F1 counts class 1, which a prediction has: (1 + 0 + 0) / 3; without that node 1.
  CHECK(macro_f1(three, 3, std::vector<std::int32_t>{0, 2, 1}, Nodes{0, 1}) == doctest::Approx(1.0 / 3));
  CHECK(macro_f1(three, 3, std::vector<std::int32_t>{0, 2, 1}, Nodes{0}) == 1);
}

TEST_CASE("metrics refuse what does not fit") {
  const std::vector<double> p = {0.5, 0.5, 0.25, 0.75};
  const std::vector<std::int32_t> labels = {0, 1};
  for (const auto metric : {roc_auc, average_precision, macro_f1, brier_score}) {
    const auto message = [&](std::span<const double> values, Index classes, std::span<const std::int32_t> l,
                             const Nodes& nodes) -> std::string {
      try {
        static_cast<void>(metric(values, classes, l, nodes));
      } catch (const std::invalid_argument& error) {
        return error.what();
      }
      return "";
    };
    CHECK(message(p, 3, labels, {0}) == "probabilities: 4 is not allowed; expected nodes * classes = 6");
    CHECK(message(p, 2, labels, {}) == "nodes: 0 is not allowed; at least one node is needed");
    CHECK(message(p, 2, labels, {0, 2}) == "nodes[1]: 2 is not allowed; must be between 0 and 1");
    CHECK(message(p, 2, std::vector<std::int32_t>{0, -1}, {1}) ==
          "labels[1]: -1 is not allowed; must be between 0 and 1");
    CHECK(message(std::vector<double>{0.5, 0.5, 1.1, 0}, 2, labels, {1}) ==
          "probabilities[1, 0]: 1.1 is not allowed; a probability must be between 0 and 1");
  }
}

}  // namespace test_ranking_metrics
