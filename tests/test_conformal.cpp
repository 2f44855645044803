// Conformal prediction sets: by hand, coverage, averages over neighbours, limits.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <utility>
#include <vector>

#include "sheafnn/uncertainty/conformal.hpp"

namespace test_conformal {
namespace {

using namespace sheafnn;
using namespace sheafnn::math;
using namespace sheafnn::random;
using namespace sheafnn::rotation;
using namespace sheafnn::uncertainty;
using Numbers = std::vector<double>;
using Nodes = std::vector<std::int32_t>;
constexpr double infinity = std::numeric_limits<double>::infinity();

Nodes range(std::int32_t begin, std::int32_t end) {
  Nodes r(static_cast<std::size_t>(end - begin));
  std::iota(r.begin(), r.end(), begin);
  return r;
}
double uniform(std::uint64_t seed, std::uint32_t id, std::uint32_t draw) {
  return uniform_from_word<double>(Stream{seed}.words(id, draw).word[0]);
}
/// n nodes alike of 4 classes: predictions that are wrong about as often as not, whatever they claim.
struct Task {
  static constexpr Index classes = 4;
  Numbers p;
  Nodes labels;
};
Task random_task(std::int32_t n, std::uint64_t seed) {
  Task r;
  for (std::uint32_t u = 0; u < static_cast<std::uint32_t>(n); ++u) {
    Numbers row;
    for (std::uint32_t c = 0; c < 4; ++c) row.push_back(std::pow(uniform(seed, u, 1 + c), 3));
    const double sum = std::accumulate(row.begin(), row.end(), 0.0);
    for (const double x : row) r.p.push_back(x / sum);
    const auto best = static_cast<std::int32_t>(detail::most_probable(r.p, 4, u));
    const double x = uniform(seed, u, 9);
    r.labels.push_back(x < 0.5 ? best : static_cast<std::int32_t>(8 * (x - 0.5)));
  }
  return r;
}
/// A cycle: all nodes look alike.
Graph cycle(std::int32_t n) {
  std::vector<Edge> edges;
  for (std::int32_t u = 0; u < n; ++u) edges.push_back({u, (u + 1) % n});
  return Graph(n, edges);
}

}  // namespace

TEST_CASE("adaptive scores by hand") {
  const Numbers p = {0.2, 0.5, 0.3, 0.25, 0.25, 0.5};
  const Numbers scores = adaptive_scores(p, 3);
  const Numbers expected = {1.0, 0.5, 0.8, 0.75, 1.0, 0.5};  // equal ones: the first class first
  for (std::size_t i = 0; i < 6; ++i) CHECK(scores[i] == doctest::Approx(expected[i]).epsilon(1e-15));
  // A node's share is the same for all of its classes, and depends on the seed.
  const Numbers random = adaptive_scores(p, 3, 7);
  for (std::size_t u = 0; u < 2; ++u) {
    const double share = uniform(7, static_cast<std::uint32_t>(u), 0);
    for (std::size_t c = 0; c < 3; ++c) {
      CHECK(random[3 * u + c] == doctest::Approx(scores[3 * u + c] - (1 - share) * p[3 * u + c]).epsilon(1e-14));
    }
  }
  CHECK(adaptive_scores(p, 3, 7) == random);
  CHECK(adaptive_scores(p, 3, 8) != random);
  // Threshold 0.8: the sets {1, 2} and {0, 2}.
  CHECK(conformal_sets(Numbers{0.5, 0.8, 0.9, std::nan("")}, 0.8) == std::vector<std::uint8_t>{1, 1, 0, 0});
  CHECK(conformal_sets(Numbers{0.5}, infinity) == std::vector<std::uint8_t>{1});
  CHECK_THROWS_WITH_AS(static_cast<void>(conformal_sets(Numbers{0.5}, std::nan(""))),
                       "threshold: nan is not allowed; must be a number", std::invalid_argument);
  const SetFigures sets = evaluate_sets(scores, 3, Nodes{0, 0}, range(0, 2), 0.8);
  CHECK(sets.coverage == 0.5);
  CHECK(sets.mean_size == 2);
  CHECK(sets.of_size == std::vector<Index>{0, 0, 2, 0});
}

TEST_CASE("threshold: the finite-sample rank") {
  const Numbers nine = {0.9, 0.1, 0.8, 0.2, 0.7, 0.3, 0.6, 0.4, 0.5};
  CHECK(conformal_threshold(nine, 0.1) == 0.9);        // ⌈10 · 0.9⌉ = 9
  CHECK(conformal_threshold(nine, 0.3) == 0.7);        // 10 · 0.7 = 7, which is rounded
  CHECK(conformal_threshold(nine, 0.25) == 0.8);       // ⌈7.5⌉
  CHECK(conformal_threshold(nine, 0.99) == 0.1);       // ⌈0.1⌉
  CHECK(conformal_threshold(nine, 0.09) == infinity);  // ⌈9.1⌉ = 10 of 9
  const std::pair<double, double> fewest[] = {{0.5, 1},   {0.25, 3},  {0.3, 3},       {0.1, 9}, {1 - 0.9, 9},
                                              {0.09, 11}, {0.01, 99}, {1 - 0.99, 99}, {0.99, 1}};
  for (const auto& [alpha, nodes] : fewest) {
    CHECK(fewest_calibration_nodes(alpha) == nodes);
    const auto count = static_cast<std::size_t>(nodes);
    CHECK(conformal_threshold(std::vector<double>(count, 1.0), alpha) == 1);
    CHECK(conformal_threshold(std::vector<double>(count - 1, 1.0), alpha) == infinity);
  }
  CHECK(conformal_threshold(Numbers{}, 0.5) == infinity);
  for (std::size_t n = 1; n <= 300; ++n) {  // whole numbers are not rounded up
    Numbers scores(n);
    std::iota(scores.begin(), scores.end(), 1.0);
    for (std::size_t percent = 1; percent < 100; ++percent) {
      const std::size_t rank = ((n + 1) * (100 - percent) + 99) / 100;
      const double expected = rank > n ? infinity : static_cast<double>(rank);
      if (conformal_threshold(scores, static_cast<double>(percent) / 100) != expected)
        CHECK_MESSAGE(false, n, " ", percent);
    }
  }
  // All classes, of every node.
  const Task t = random_task(5, 1);
  const SetFigures all = evaluate_sets(adaptive_scores(t.p, 4), 4, t.labels, range(0, 5), infinity);
  CHECK(all.coverage == 1);
  CHECK(all.mean_size == 4);
  CHECK(all.of_size == std::vector<Index>{0, 0, 0, 0, 5});
  CHECK(evaluate_sets(adaptive_scores(t.p, 4), 4, t.labels, range(0, 5), -1).of_size[0] == 5);
}

TEST_CASE("coverage is what is promised, with any scores") {
  // n calibration nodes and one other, all alike: the label is in the set with probability ⌈(n + 1)(1 − α)⌉/(n + 1), where
  // scores have no ties.
  constexpr int trials = 4000;
  for (const double alpha : {0.1, 0.3}) {
    for (const std::int32_t n : {9, 37}) {
      const double promised = std::ceil((n + 1) * (1 - alpha) - 1e-9) / (n + 1);
      for (int kind = 0; kind < 3; ++kind) {
        int covered = 0;
        const Graph graph = cycle(n + 1);
        for (std::uint64_t trial = 0; trial < trials; ++trial) {
          const Task t = random_task(n + 1, 1000 * trial + static_cast<std::uint64_t>(n));
          std::optional<std::uint64_t> seed;
          if (kind > 0) seed = trial;
          Numbers scores = adaptive_scores(t.p, 4, seed);
          if (kind == 2) scores = average_over_neighbours(graph, scores, 4, 0.5);
          const double threshold = conformal_threshold(scores, 4, t.labels, range(0, n), alpha);
          covered += evaluate_sets(scores, 4, t.labels, range(n, n + 1), threshold).coverage == 1 ? 1 : 0;
        }
        const double deviation = std::sqrt(trials * promised * (1 - promised));
        CAPTURE(alpha);
        CAPTURE(n);
        CAPTURE(kind);
        CHECK(covered >= trials * promised - 4 * deviation);
        // Without U, the last class always has score 1: ties.
        if (kind > 0) CHECK(covered <= trials * promised + 4 * deviation);
      }
    }
  }
}

TEST_CASE("a larger α makes sets smaller") {
  const Task t = random_task(400, 3);
  const Numbers scores = adaptive_scores(t.p, 4, 5), all = adaptive_scores(t.p, 4);
  double size = 5, coverage = 2;
  for (const double alpha : {0.02, 0.1, 0.2, 0.5, 0.9}) {
    const double threshold = conformal_threshold(scores, 4, t.labels, range(0, 200), alpha);
    const SetFigures sets = evaluate_sets(scores, 4, t.labels, range(200, 400), threshold);
    CHECK(sets.mean_size <= size);
    CHECK(sets.coverage <= coverage);
    CHECK(std::accumulate(sets.of_size.begin(), sets.of_size.end(), Index{0}) == 200);
    size = sets.mean_size;
    coverage = sets.coverage;
    // Shares below 1 make scores smaller, class by class.
    CHECK(conformal_threshold(all, 4, t.labels, range(0, 200), alpha) >= threshold);
  }
}

TEST_CASE("averages over neighbours") {
  // The path 0 – 1 – 2 and a node alone.
  const std::vector<Edge> edges = {{0, 1}, {1, 2}};
  const Graph graph(4, edges);
  const Numbers scores = {1, 2, 3, 4, 5, 6, 7, 8};
  CHECK(average_over_neighbours(graph, scores, 2, 0) == scores);
  CHECK(average_over_neighbours(graph, scores, 2, 1) == Numbers{3, 4, 3, 4, 3, 4, 7, 8});
  const Numbers half = average_over_neighbours(graph, scores, 2, 0.25),
                expected = {1.5, 2.5, 3, 4, 4.5, 5.5, 7, 8};
  for (std::size_t i = 0; i < 8; ++i) CHECK(half[i] == doctest::Approx(expected[i]).epsilon(1e-15));
}

TEST_CASE("bad input") {
  const Graph graph = cycle(3);
  const Numbers scores(6);
  CHECK_THROWS_WITH_AS(static_cast<void>(average_over_neighbours(graph, scores, 2, 1.5)),
                       "weight: 1.5 is not allowed; must be between 0 and 1", std::invalid_argument);
  CHECK_THROWS_WITH_AS(static_cast<void>(average_over_neighbours(graph, scores, 3, 0.5)),
                       "scores: 6 is not allowed; expected nodes * classes = 9", std::invalid_argument);
  CHECK_THROWS_WITH_AS(static_cast<void>(adaptive_scores(Numbers{0.5, 1.5}, 2)),
                       "probabilities[0, 1]: 1.5 is not allowed; a probability must be between 0 and 1",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(static_cast<void>(adaptive_scores(scores, 4)),
                       "probabilities: 6 is not allowed; must be a multiple of 4", std::invalid_argument);
  for (const double alpha : {0.0, 1.0, -1.0, std::nan("")}) {
    CHECK_THROWS_AS(static_cast<void>(conformal_threshold(scores, alpha)), std::invalid_argument);
  }
  CHECK_THROWS_WITH_AS(static_cast<void>(conformal_threshold(Numbers{1}, 1)),
                       "alpha: 1 is not allowed; must be above 0 and below 1", std::invalid_argument);
  CHECK_THROWS_AS(static_cast<void>(conformal_threshold(Numbers{std::nan("")}, 0.5)), std::invalid_argument);
  CHECK_THROWS_WITH_AS(static_cast<void>(evaluate_sets(scores, 2, Nodes{0, 1, 2}, range(0, 3), 1)),
                       "labels[2]: 2 is not allowed; must be between 0 and 1", std::invalid_argument);
  CHECK_THROWS_AS(static_cast<void>(evaluate_sets(scores, 2, Nodes{0, 1, 1}, range(0, 3), std::nan(""))),
                  std::invalid_argument);
}

}  // namespace test_conformal
