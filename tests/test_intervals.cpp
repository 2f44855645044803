// Intervals of predicted numbers: mixtures against their distribution functions, conformal intervals by hand and by
// their coverage.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <numeric>
#include <vector>

#include "refusal.hpp"
#include "sheafnn/random/stream.hpp"
#include "sheafnn/uncertainty/intervals.hpp"

namespace test_intervals {
namespace {

using namespace sheafnn::uncertainty;
using sheafnn::Index;
using test::message_of;
using Numbers = std::vector<double>;
using Nodes = std::vector<std::int32_t>;
constexpr double infinity = std::numeric_limits<double>::infinity();

double uniform(std::uint64_t seed, std::uint32_t i) {
  return sheafnn::random::uniform_from_word<double>(sheafnn::Stream{seed}.words(i, 0).word[0]);
}
/// Mean distribution function of normal distributions.
double normal_mixture(double x, const Numbers& means, const Numbers& deviations) {
  double sum = 0;
  for (std::size_t k = 0; k < means.size(); ++k)
    sum += std::erfc((means[k] - x) / deviations[k] / std::sqrt(2.0)) / 2;
  return sum / static_cast<double>(means.size());
}
/// Σ_{j ≤ y} of the Poisson masses, one by one.
long double poisson_sum(double y, double rate) {
  long double sum = 0;
  for (double j = 0; j <= y; ++j) {
    sum += std::exp(static_cast<long double>(j) * std::log(static_cast<long double>(rate)) - rate -
                    std::lgamma(static_cast<long double>(j) + 1));
  }
  return sum;
}

}  // namespace

TEST_CASE("central intervals of normal distributions and their mixtures") {
  const Intervals one = normal_mixture_intervals(Numbers{3, -1}, Numbers{2, 0.5}, 1, 0.9);
  const double z = 1.6448536269514722;  // Φ(z) = 0.95
  CHECK(one.lower[0] == doctest::Approx(3 - 2 * z).epsilon(1e-14));
  CHECK(one.upper[0] == doctest::Approx(3 + 2 * z).epsilon(1e-14));
  CHECK(one.lower[1] == doctest::Approx(-1 - 0.5 * z).epsilon(1e-14));
  CHECK(one.upper[1] == doctest::Approx(-1 + 0.5 * z).epsilon(1e-14));
  // Samples far apart: the interval ends within the outer ones.
  const Numbers means = {-10, 0.3, 25}, deviations = {1, 0.2, 3};
  for (const double coverage : {0.01, 0.5, 0.9, 0.999}) {
    CAPTURE(coverage);
    const Intervals mixed = normal_mixture_intervals(means, deviations, 3, coverage);
    CHECK(normal_mixture(mixed.lower[0], means, deviations) == doctest::Approx((1 - coverage) / 2).epsilon(1e-11));
    CHECK(normal_mixture(mixed.upper[0], means, deviations) == doctest::Approx((1 + coverage) / 2).epsilon(1e-11));
  }
  CHECK(normal_mixture_intervals(Numbers(), Numbers(), 4, 0.5).lower.empty());
}

TEST_CASE("intervals of Poisson numbers and their mixtures") {
  for (const double rate : {1e-3, 0.7, 3.0, 40.0, 900.0}) {
    CAPTURE(rate);
    for (const double y : {0.0, std::floor(rate / 2), std::floor(rate), std::ceil(rate * 1.1) + 1}) {
      CHECK(sheafnn::detail::poisson_cdf(y, rate) ==
            doctest::Approx(static_cast<double>(poisson_sum(y, rate))).epsilon(1e-11));
    }
    const Intervals r = poisson_mixture_intervals(Numbers{rate}, 1, 0.9);
    CHECK(poisson_sum(r.lower[0], rate) >= 0.05L);
    CHECK(poisson_sum(r.lower[0] - 1, rate) < 0.05L);
    CHECK(poisson_sum(r.upper[0], rate) >= 0.95L);
    CHECK(poisson_sum(r.upper[0] - 1, rate) < 0.95L);
  }
  CHECK(sheafnn::detail::poisson_cdf(-1, 2) == 0);
  CHECK(sheafnn::detail::poisson_cdf(0, 0) == 1);
  const Numbers rates = {0, 5, 300};
  const auto mixture = [&](double y) { return (1 + poisson_sum(y, 5) + (y < 0 ? 0 : poisson_sum(y, 300))) / 3; };
  const Intervals mixed = poisson_mixture_intervals(rates, 3, 0.9);
  CHECK(mixed.lower[0] == 0);
  CHECK(mixture(mixed.upper[0]) >= 0.95L);
  CHECK(mixture(mixed.upper[0] - 1) < 0.95L);
  // Near a normal distribution.
  const Intervals large = poisson_mixture_intervals(Numbers{1e8}, 1, 0.9);
  CHECK(std::abs(large.upper[0] - (1e8 + 1.6448536 * 1e4)) < 5);
  CHECK(std::abs(large.lower[0] - (1e8 - 1.6448536 * 1e4)) < 5);
}

TEST_CASE("conformal intervals by hand") {
  // Residuals 1, 2, 3, 4 of column 0; 0.5 of column 1, which is known once.
  const double unknown = std::nan("");
  const Numbers targets = {1, unknown, 8, 10.5, 17, unknown, 34, unknown, 99, 99};
  const Numbers predictions = {0, 0, 10, 10, 20, 20, 30, 30, 40, 40};
  const Nodes nodes = {0, 1, 2, 3};
  CHECK(residual_thresholds(targets, predictions, {}, 2, nodes, 0.5) ==
        Numbers{3, 0.5});  // ⌈5 · 0.5⌉ and ⌈2 · 0.5⌉
  CHECK(residual_thresholds(targets, predictions, {}, 2, nodes, 0.8) == Numbers{4, infinity});
  CHECK(residual_thresholds(targets, predictions, {}, 2, nodes, 0.81) == Numbers{infinity, infinity});
  CHECK(residual_thresholds(targets, predictions, {}, 2, {}, 0.5) == Numbers{infinity, infinity});
  const Numbers sizes = {1, 1, 1, 0.25, 1, 1, 8, 1, 2, 2};  // scores 1, 2, 3, ½; 2
  const Numbers thresholds = residual_thresholds(targets, predictions, sizes, 2, nodes, 0.5);
  CHECK(thresholds == Numbers{2, 2});
  const Intervals r = residual_intervals(predictions, sizes, thresholds);
  CHECK(r.lower == Numbers{-2, -2, 8, 9.5, 18, 18, 14, 28, 36, 36});
  CHECK(r.upper == Numbers{2, 2, 12, 10.5, 22, 22, 46, 32, 44, 44});
  const IntervalFigures figures = evaluate_intervals(r, targets);
  CHECK(figures.coverage == doctest::Approx(4.0 / 7));
  CHECK(figures.mean_width == doctest::Approx((4 + 4 + 1 + 4 + 32 + 8 + 8) / 7.0));
  const Intervals absolute = residual_intervals(Numbers{1, 2}, {}, Numbers{0.5, infinity});
  CHECK(absolute.lower == Numbers{0.5, -infinity});
  CHECK(absolute.upper == Numbers{1.5, infinity});
}

TEST_CASE("conformal intervals cover as many targets as promised, whatever the predictions") {
  // Noise of three sizes, predictions that are wrong, and predicted sizes that are right up to a factor.
  constexpr std::uint32_t calibration = 19, trials = 3000;
  double covered[2] = {}, small[2] = {}, small_count = 0;  // absolute and normalised residuals
  for (std::uint32_t trial = 0; trial < trials; ++trial) {
    Numbers targets, predictions, sizes;
    Nodes nodes(calibration);
    std::iota(nodes.begin(), nodes.end(), 0);
    for (std::uint32_t i = 0; i <= calibration; ++i) {
      const std::uint32_t at = 4 * (trial * (calibration + 1) + i);
      const double size = std::pow(10, std::floor(3 * uniform(5, at)) - 1), noise = uniform(5, at + 1) - 0.5;
      predictions.push_back(uniform(5, at + 2));
      targets.push_back(predictions.back() + size * (noise + 0.2));
      sizes.push_back(7 * size);
    }
    const bool is_small = sizes.back() < 1;
    small_count += is_small ? 1 : 0;
    for (const int normalised : {0, 1}) {
      const std::span<const double> own =
          normalised == 1 ? std::span<const double>(sizes) : std::span<const double>();
      const Intervals r =
          residual_intervals(predictions, own, residual_thresholds(targets, predictions, own, 1, nodes, 0.9));
      const bool in = r.lower.back() <= targets.back() && targets.back() <= r.upper.back();
      covered[normalised] += in ? 1 : 0;
      small[normalised] += in && is_small ? 1 : 0;
    }
  }
  // 18 of 20 ranks are covered: 0.9 exactly, with a standard error of 0.0055.
  for (const double count : covered) CHECK(std::abs(count / trials - 0.9) < 0.022);
  // Absolute residuals serve the quiet nodes too well.
  CHECK(small[0] == small_count);
  CHECK(std::abs(small[1] / small_count - 0.9) < 0.04);
}

TEST_CASE("intervals refuse what does not fit") {
  const Numbers two = {1, 2};
  const auto normal = [&](Numbers means, Numbers deviations, Index samples, double coverage) {
    return message_of([&] { static_cast<void>(normal_mixture_intervals(means, deviations, samples, coverage)); });
  };
  CHECK(normal(two, two, 0, 0.9) == "sample_count: 0 is not allowed; must be at least 1");
  CHECK(normal({1, 2, 3}, two, 2, 0.9) == "means: 3 is not allowed; must be a multiple of 2");
  CHECK(normal(two, {1}, 2, 0.9) == "size of deviations: 1 is not allowed; must be 2");
  CHECK(normal(two, {1, 0}, 2, 0.9) == "deviations[1]: 0 is not allowed; must be positive and finite");
  CHECK(normal({1, infinity}, two, 2, 0.9) == "means[1]: inf is not allowed; must be finite");
  CHECK(normal(two, two, 2, 1) == "coverage: 1 is not allowed; must be above 0 and below 1");
  CHECK(message_of([&] { static_cast<void>(poisson_mixture_intervals(Numbers{-1}, 1, 0.5)); }) ==
        "rates[0]: -1 is not allowed; must be between 0 and 1e9");
  const auto thresholds = [&](Numbers predictions, Numbers sizes, Nodes nodes, double coverage) {
    return message_of(
        [&] { static_cast<void>(residual_thresholds(two, predictions, sizes, 1, nodes, coverage)); });
  };
  CHECK(thresholds({1}, {}, {0}, 0.9) == "size of predictions: 1 is not allowed; must be 2");
  CHECK(thresholds(two, {1}, {0}, 0.9) == "size of deviations: 1 is not allowed; must be 2");
  for (const double wrong : {0.0, -1.0, std::numeric_limits<double>::infinity()}) {
    const std::string message =
        sheafnn::detail::concat("deviations[1]: ", wrong, " is not allowed; must be positive and finite");
    CHECK(thresholds(two, {1, wrong}, {1}, 0.9) == message);
    CHECK(message_of([&] { static_cast<void>(residual_intervals(two, Numbers{1, wrong}, two)); }) == message);
  }
  CHECK(thresholds({1, std::nan("")}, {}, {1}, 0.9) == "predictions[1]: nan is not allowed; must be finite");
  CHECK(thresholds(two, {}, {2}, 0.9) == "nodes[0]: 2 is not allowed; must be between 0 and 1");
  CHECK(thresholds(two, {}, {0}, 0) == "coverage: 0 is not allowed; must be above 0 and below 1");
  CHECK(message_of([&] { static_cast<void>(residual_intervals(two, {}, Numbers{-1})); }) ==
        "thresholds[0]: -1 is not allowed; must be at least 0");
  CHECK(message_of([&] {
          static_cast<void>(evaluate_intervals({two, two}, Numbers{std::nan(""), std::nan("")}));
        }) == "targets: 2 is not allowed; none of them is known");
}

}  // namespace test_intervals
