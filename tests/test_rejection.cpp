// Rejection curves, detection by a measure, ensembles.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "sheafnn/random/stream.hpp"
#include "sheafnn/uncertainty/rejection.hpp"
#include "sheafnn/uncertainty/sampling.hpp"

namespace test_rejection {
namespace {

using namespace sheafnn;
using namespace sheafnn::random;
using namespace sheafnn::rotation;
using namespace sheafnn::uncertainty;
using Numbers = std::vector<double>;
using Nodes = std::vector<std::int32_t>;

void check_near(const Numbers& values, const Numbers& expected) {
  REQUIRE(values.size() == expected.size());
  for (std::size_t i = 0; i < values.size(); ++i) CHECK(std::abs(values[i] - expected[i]) <= 1e-15);
}

}  // namespace

TEST_CASE("rejection by hand") {
  // Uncertain to certain: wrong, right, wrong, right, right; node 5 does not count.
  const Numbers uncertainty = {0.5, 0.1, 0.9, 0.3, 0.7, 2};
  const Nodes labels = {0, 1, 1, 0, 1, 0}, predicted = {1, 1, 0, 0, 1, 1}, nodes = {0, 1, 2, 3, 4};
  const RejectionCurve curve = rejection_curve(uncertainty, labels, predicted, nodes);
  check_near(curve.accuracy, {3.0 / 5, 3.0 / 4, 2.0 / 3, 1, 1});
  CHECK(curve.area == doctest::Approx((3.0 / 5 + 3.0 / 4 + 2.0 / 3 + 2) / 5).epsilon(1e-15));
  CHECK(rejection_curve(uncertainty, labels, predicted, Nodes{0}).accuracy == Numbers{0});
  // Two equal ones, one of them right: half a right one is rejected first.
  const Numbers ties = {0.5, 0.1, 0.9, 0.1, 0.5, 0};
  check_near(rejection_curve(ties, labels, predicted, nodes).accuracy, {3.0 / 5, 3.0 / 4, 2.5 / 3, 1, 1});
  // All equal: the accuracy, however many are rejected.
  const RejectionCurve blind = rejection_curve(Numbers(6, 1), labels, predicted, nodes);
  check_near(blind.accuracy, Numbers(5, 0.6));
  CHECK(blind.area == doctest::Approx(0.6).epsilon(1e-15));
}

TEST_CASE("accuracies of ties are no more than 1") {
  for (std::int32_t n = 1; n < 400; ++n) {
    Nodes nodes(static_cast<std::size_t>(n));
    std::iota(nodes.begin(), nodes.end(), 0);
    const Nodes zeros(nodes.size(), 0);
    const RejectionCurve curve = rejection_curve(Numbers(nodes.size(), 1), zeros, zeros, nodes);
    CHECK(curve.accuracy == Numbers(nodes.size(), 1));
    CHECK(curve.area == 1);
  }
}

TEST_CASE("ties: the mean over all orders; the best area is that of the best order") {
  Nodes labels(6), predicted = {0, 1, 0, 0, 1, 0}, nodes = {0, 1, 2, 3, 4, 5};
  const Numbers uncertainty = {3, 2, 2, 2, 2, 1};
  Numbers mean(6, 0.0), order = {1, 2, 3, 4};
  double orders = 0, best = 0;
  do {
    Numbers apart = uncertainty;
    for (std::size_t i = 0; i < 4; ++i) apart[i + 1] += order[i] / 10;
    const RejectionCurve one = rejection_curve(apart, labels, predicted, nodes);
    for (std::size_t k = 0; k < 6; ++k) mean[k] += one.accuracy[k];
    ++orders;
  } while (std::next_permutation(order.begin(), order.end()));
  for (double& x : mean) x /= orders;
  const RejectionCurve curve = rejection_curve(uncertainty, labels, predicted, nodes);
  for (std::size_t k = 0; k < 6; ++k) CHECK(curve.accuracy[k] == doctest::Approx(mean[k]).epsilon(1e-14));
  Numbers all = {1, 2, 3, 4, 5, 6};
  do best = std::max(best, rejection_curve(all, labels, predicted, nodes).area);
  while (std::next_permutation(all.begin(), all.end()));
  CHECK(best_rejection_area(4, 6) == doctest::Approx(best).epsilon(1e-14));
  CHECK(best_rejection_area(0, 3) == 0);
  CHECK(best_rejection_area(3, 3) == 1);
}

TEST_CASE("detection") {
  const Numbers measure = {0.9, 0.5, 0.5, 0.1, 7};
  CHECK(detection_auc(measure, Nodes{0, 1}, Nodes{2, 3}) == (2 + 0.5 + 1) / 4);
  CHECK(detection_auc(measure, Nodes{2, 3}, Nodes{0, 1}) == 1 - 3.5 / 4);
  CHECK(detection_auc(measure, Nodes{4}, Nodes{0, 1, 2, 3}) == 1);
  CHECK(detection_auc(Numbers(5, 1), Nodes{4}, Nodes{0, 1}) == 0.5);
  CHECK(std::isnan(detection_auc(measure, Nodes{}, Nodes{0})));
  CHECK(std::isnan(detection_auc(measure, Nodes{0}, Nodes{})));
}

TEST_CASE("detection at every threshold") {
  const Numbers measure = {0.9, 0.5, 0.5, 0.1, 7};
  const Nodes positives = {0, 1}, negatives = {2, 3};
  const DetectionCurve curve = detection_curve(measure, positives, negatives);
  CHECK(curve.threshold == Numbers{0.9, 0.5, 0.1});
  CHECK(curve.true_positive_rate == Numbers{0.5, 1, 1});
  CHECK(curve.false_positive_rate == Numbers{0, 0.5, 1});
  CHECK(curve.precision == Numbers{1, 2.0 / 3, 0.5});
  CHECK(curve.roc_auc == detection_auc(measure, positives, negatives));
  CHECK(curve.average_precision == doctest::Approx(0.5 * 1 + 0.5 * 2 / 3).epsilon(1e-15));
  CHECK_THROWS_WITH_AS(static_cast<void>(detection_curve(measure, Nodes{}, negatives)),
                       "positives: 0 is not allowed; at least one node is needed", std::invalid_argument);
  CHECK_THROWS_WITH_AS(static_cast<void>(detection_curve(measure, positives, Nodes{})),
                       "negatives: 0 is not allowed; at least one node is needed", std::invalid_argument);
}

TEST_CASE("errors") {
  const Errors errors = find_errors(Nodes{0, 1, -1, 2}, Nodes{0, 2, 0, 2}, Nodes{3, 1, 0});
  CHECK(errors.right == Nodes{3, 0});
  CHECK(errors.wrong == Nodes{1});
  CHECK_THROWS_WITH_AS(static_cast<void>(find_errors(Nodes{0, -1}, Nodes{0, 0}, Nodes{1})),
                       "labels[1]: -1 is not allowed; a node that counts needs a known label", std::invalid_argument);
}

TEST_CASE("an ensemble is one prediction of all samples") {
  constexpr Index members = 3, samples = 4, n = 7, classes = 3;
  Numbers all;
  for (std::uint32_t row = 0; row < members * samples * n; ++row) {
    Numbers p;
    for (std::uint32_t c = 0; c < 3; ++c) p.push_back(uniform_from_word<double>(Stream{5}.words(row, c).word[0]));
    const double sum = std::accumulate(p.begin(), p.end(), 0.0);
    for (const double x : p) all.push_back(x / sum);
  }
  std::vector<SampledPrediction> parts;
  for (Index m = 0; m < members; ++m) {
    parts.push_back(combine_samples(std::span(all).subspan(static_cast<std::size_t>(m * samples * n * classes),
                                                           samples * n * classes),
                                    samples, n, classes));
  }
  const SampledPrediction whole = combine_samples(all, members * samples, n, classes),
                          combined = combine_members(parts, classes);
  check_near(combined.probabilities, whole.probabilities);
  check_near(combined.entropy, whole.entropy);
  check_near(combined.epistemic_variance, whole.epistemic_variance);
  check_near(combined.mutual_information, whole.mutual_information);
  const SampledPrediction same = combine_members(std::span(parts).first(1), classes);
  check_near(same.epistemic_variance, parts[0].epistemic_variance);
  check_near(same.mutual_information, parts[0].mutual_information);
  CHECK_THROWS_WITH_AS(static_cast<void>(combine_members({}, 3)),
                       "members: 0 is not allowed; at least one is needed", std::invalid_argument);
  CHECK_THROWS_WITH_AS(static_cast<void>(combine_members(parts, 2)),
                       "members[0]: 21 is not allowed; expected nodes * classes = 7 * 2", std::invalid_argument);
  parts[1].entropy.pop_back();
  CHECK_THROWS_WITH_AS(static_cast<void>(combine_members(parts, 3)),
                       "members[1]: 6 is not allowed; expected 7 nodes", std::invalid_argument);
}

TEST_CASE("bad input") {
  const Numbers measure = {1, std::nan("")};
  const Nodes two = {0, 1};
  CHECK_THROWS_WITH_AS(static_cast<void>(rejection_curve(measure, two, two, two)),
                       "uncertainty[1]: nan is not allowed; must be a number", std::invalid_argument);
  CHECK_THROWS_WITH_AS(static_cast<void>(rejection_curve(measure, two, Nodes{0}, two)),
                       "predicted: 1 is not allowed; expected 2, one per node", std::invalid_argument);
  CHECK_THROWS_WITH_AS(static_cast<void>(rejection_curve(measure, Nodes{0}, two, two)),
                       "uncertainty: 2 is not allowed; expected 1, one per node", std::invalid_argument);
  CHECK_THROWS_WITH_AS(static_cast<void>(rejection_curve(measure, two, two, Nodes{2})),
                       "nodes[0]: 2 is not allowed; must be between 0 and 1", std::invalid_argument);
  CHECK_THROWS_AS(static_cast<void>(rejection_curve(measure, two, two, Nodes{})), std::invalid_argument);
  CHECK_THROWS_WITH_AS(static_cast<void>(rejection_curve(Numbers{1, 2}, Nodes{0, -1}, two, two)),
                       "labels[1]: -1 is not allowed; a node that counts needs a known label",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(static_cast<void>(detection_auc(measure, two, Nodes{})),
                       "measure[1]: nan is not allowed; must be a number", std::invalid_argument);
  CHECK_THROWS_WITH_AS(static_cast<void>(detection_auc(measure, Nodes{0}, Nodes{-1})),
                       "negatives[0]: -1 is not allowed; must be between 0 and 1", std::invalid_argument);
  CHECK_THROWS_WITH_AS(static_cast<void>(best_rejection_area(4, 3)),
                       "correct: 4 is not allowed; must be between 0 and 3", std::invalid_argument);
}

}  // namespace test_rejection
