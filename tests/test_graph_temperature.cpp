// Two temperatures: of nodes that agree with their neighbours and of nodes that do not.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "sheafnn/random/stream.hpp"
#include "sheafnn/uncertainty/graph_temperature.hpp"

namespace test_graph_temperature {
namespace {

using namespace sheafnn;
using namespace sheafnn::layers;
using namespace sheafnn::random;
using namespace sheafnn::uncertainty;
using Numbers = std::vector<double>;
using Nodes = std::vector<std::int32_t>;

Nodes all_nodes(std::size_t n) {
  Nodes r(n);
  std::iota(r.begin(), r.end(), 0);
  return r;
}
/// Logits of 4 classes with labels drawn from softmax(z_u / truth.of(g_u)), g_u uniform in [0, 1].
struct Task {
  Numbers logits, agreement;
  Nodes labels;
};
Task random_task(std::uint32_t n, const GraphTemperature& truth, std::uint64_t seed) {
  Task r;
  const Stream stream{seed};
  for (std::uint32_t u = 0; u < n; ++u) {
    Numbers z(4);
    fill_normals<4>(z.data(), stream, u);
    const auto block = stream.words(u, 1);
    r.agreement.push_back(uniform_from_word<double>(block.word[0]));
    for (double& x : z) x *= 3;
    const Numbers p = apply_temperature(z, 4, truth.of(r.agreement.back()));
    double left = uniform_from_word<double>(block.word[1]);
    std::int32_t label = 0;
    while (label < 3 && (left -= p[static_cast<std::size_t>(label)]) > 0) ++label;
    r.logits.insert(r.logits.end(), z.begin(), z.end());
    r.labels.push_back(label);
  }
  return r;
}
detail::TemperatureLoss loss_at(const Task& t, double beta0, double beta1) {
  return detail::temperature_loss(t.logits, 4, t.agreement, t.labels, all_nodes(t.labels.size()), {beta0, beta1});
}

}  // namespace

TEST_CASE("agreement by hand") {
  // The path 0 – 1 – 2 and a node alone.
  const std::vector<Edge> edges = {{0, 1}, {1, 2}};
  const Graph graph(4, edges);
  const Numbers p = {1, 0, 0.5, 0.5, 0.25, 0.75, 1, 0};
  const Numbers g = neighbour_agreement(graph, p, 2);
  CHECK(g == Numbers{0.5, 0.5, 0.5, 0.5});
  const Numbers q = {1, 0, 1, 0, 0.25, 0.75, 1, 0};
  CHECK(neighbour_agreement(graph, q, 2) == Numbers{1, (1 + 0.25) / 2, 0.25, (1 + 0.625 + 0.25) / 3});
  CHECK(neighbour_agreement(Graph(2, {}), Numbers{1, 0, 0, 1}, 2) == Numbers{0, 0});
}

TEST_CASE("loss: value and derivatives") {
  const Task t = random_task(50, {0.5, 2}, 1);
  const double b0 = 0.7, b1 = 1.3, h = 1e-5;
  const detail::TemperatureLoss at = loss_at(t, b0, b1);
  const Numbers p = apply_graph_temperature(t.logits, 4, t.agreement, {1 / b0, 1 / b1});
  CHECK(at.value == doctest::Approx(negative_log_likelihood(p, 4, t.labels, all_nodes(50))).epsilon(1e-13));
  const auto slope = [&](const auto& of, double d0, double d1) {
    return (of(loss_at(t, b0 + h * d0, b1 + h * d1)) - of(loss_at(t, b0 - h * d0, b1 - h * d1))) / (2 * h);
  };
  const auto value = [](const detail::TemperatureLoss& l) { return l.value; };
  const auto first = [](const detail::TemperatureLoss& l) { return l.gradient[0]; };
  const auto second = [](const detail::TemperatureLoss& l) { return l.gradient[1]; };
  CHECK(at.gradient[0] == doctest::Approx(slope(value, 1, 0)).epsilon(1e-7));
  CHECK(at.gradient[1] == doctest::Approx(slope(value, 0, 1)).epsilon(1e-7));
  CHECK(at.hessian[0] == doctest::Approx(slope(first, 1, 0)).epsilon(1e-7));
  CHECK(at.hessian[1] == doctest::Approx(slope(first, 0, 1)).epsilon(1e-7));
  CHECK(at.hessian[1] == doctest::Approx(slope(second, 1, 0)).epsilon(1e-7));
  CHECK(at.hessian[2] == doctest::Approx(slope(second, 0, 1)).epsilon(1e-7));
}

TEST_CASE("the minimum is found, and near the truth") {
  for (const GraphTemperature truth :
       {GraphTemperature{0.5, 3}, GraphTemperature{4, 0.8}, GraphTemperature{2, 2}}) {
    const std::size_t n = 4000;
    const Task t = random_task(n, truth, 7);
    const GraphTemperature fitted = fit_graph_temperature(t.logits, 4, t.agreement, t.labels, all_nodes(n));
    const double b0 = 1 / fitted.disagreeing, b1 = 1 / fitted.agreeing;
    const detail::TemperatureLoss at = loss_at(t, b0, b1);
    // The gradient vanishes: the loss is smooth, and of size 1.
    for (const double g : at.gradient) CHECK(std::abs(g) <= 1e-7);
    for (const double d0 : {-0.01, 0.0, 0.01}) {
      for (const double d1 : {-0.01, 0.0, 0.01}) {
        if (d0 != 0 || d1 != 0) CHECK(loss_at(t, b0 + d0, b1 + d1).value > at.value);
      }
    }
    const double plain = fit_temperature(t.logits, 4, t.labels, all_nodes(n));
    CHECK(at.value <= loss_at(t, 1 / plain, 1 / plain).value);
    // Standard errors of β from the Hessian of the sum; 4 of them.
    const auto& h = at.hessian;
    const double determinant = (h[0] * h[2] - h[1] * h[1]) * static_cast<double>(n);
    CHECK(std::abs(b0 - 1 / truth.disagreeing) <= 4 * std::sqrt(h[2] / determinant));
    CHECK(std::abs(b1 - 1 / truth.agreeing) <= 4 * std::sqrt(h[0] / determinant));
  }
}

TEST_CASE("bounds and degenerate inputs") {
  // Disagreeing nodes are all right, agreeing ones all wrong.
  const Numbers z = {2, 0, 2, 0, 0, 2, 0, 2}, g = {0, 0, 1, 1};
  const GraphTemperature extreme = fit_graph_temperature(z, 2, g, Nodes{0, 0, 0, 0}, all_nodes(4));
  CHECK(extreme.disagreeing == doctest::Approx(lowest_temperature).epsilon(1e-12));
  CHECK(extreme.agreeing == doctest::Approx(highest_temperature).epsilon(1e-12));
  // Three right and one wrong at margin 2 on either side, half as steep on the other: T = 2/log 3 and 4/log 3.
  const Numbers steep = {2, 0, 2, 0, 2, 0, 2, 0, 4, 0, 4, 0, 4, 0, 4, 0}, sides = {0, 0, 0, 0, 1, 1, 1, 1};
  const GraphTemperature two = fit_graph_temperature(steep, 2, sides, Nodes{0, 0, 0, 1, 0, 0, 0, 1}, all_nodes(8));
  CHECK(two.disagreeing == doctest::Approx(2 / std::log(3.0)).epsilon(1e-7));
  CHECK(two.agreeing == doctest::Approx(4 / std::log(3.0)).epsilon(1e-7));
  // Nothing to tell nodes apart by: the plain temperature. Equal logits: 1.
  const Task t = random_task(100, {2, 2}, 3);
  const double plain = fit_temperature(t.logits, 4, t.labels, all_nodes(100));
  const GraphTemperature same = fit_graph_temperature(t.logits, 4, Numbers(100, 0.5), t.labels, all_nodes(100));
  CHECK(same.disagreeing == plain);
  CHECK(same.agreeing == plain);
  const GraphTemperature none = fit_graph_temperature(Numbers(8, 3.0), 2, g, Nodes{0, 1, 0, 1}, all_nodes(4));
  CHECK(none.disagreeing == 1);
  CHECK(none.agreeing == 1);
  // Between the temperatures, inverse temperatures are linear; equal ones are the plain scaling.
  CHECK(GraphTemperature{1, 4}.of(0.5) == doctest::Approx(1.6).epsilon(1e-15));
  CHECK(apply_graph_temperature(z, 2, g, {2, 2}) == apply_temperature(z, 2, 2));
}

TEST_CASE("a step that a bound bends uphill is shortened") {
  const Numbers z = {0.088,  0.307,  -0.034, 0.142, 0.843, -0.063, 0.257, -0.246, -1.424, 0.325, -0.356, -0.732,
                     -1.760, -0.289, 0.463,  0.544, 0.726, -0.656, 0.302, -0.200, -1.113, 0.422, 0.319,  2.244};
  const Numbers g = {0.9457, 0.9055, 0.9704, 0.9241, 1.0, 0.9960};
  const Task t{z, g, {1, 0, 1, 3, 2, 3}};
  const GraphTemperature fitted = fit_graph_temperature(z, 4, g, t.labels, all_nodes(6));
  const double b0 = 1 / fitted.disagreeing, b1 = 1 / fitted.agreeing;
  double least = 1e9;  // on a grid of the square
  for (int i = 0; i <= 200; ++i) {
    for (int j = 0; j <= 200; ++j)
      least = std::min(least, loss_at(t, std::pow(10, i / 50.0 - 2), std::pow(10, j / 50.0 - 2)).value);
  }
  CHECK(loss_at(t, b0, b1).value <= least + 1e-12);
  CHECK(loss_at(t, b0, b1).value == doctest::Approx(0.375646).epsilon(1e-6));
}

TEST_CASE("bad input") {
  const Numbers z = {2, 0, 0, 2};
  const Nodes labels = {0, 1};
  CHECK_THROWS_WITH_AS(static_cast<void>(fit_graph_temperature(z, 2, Numbers{0.5}, labels, all_nodes(2))),
                       "agreement: 1 is not allowed; expected 2, one per node", std::invalid_argument);
  CHECK_THROWS_WITH_AS(static_cast<void>(fit_graph_temperature(z, 2, Numbers{0.5, 1.5}, labels, all_nodes(2))),
                       "agreement[1]: 1.5 is not allowed; must be between 0 and 1", std::invalid_argument);
  CHECK_THROWS_WITH_AS(static_cast<void>(apply_graph_temperature(z, 2, Numbers{0, 1}, {1, 0})),
                       "temperature.agreeing: 0 is not allowed; must be positive and finite",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(static_cast<void>(apply_graph_temperature(z, 3, Numbers{0, 1}, {1, 1})),
                       "logits: 4 is not allowed; must be a multiple of 3", std::invalid_argument);
  CHECK_THROWS_WITH_AS(static_cast<void>(
                           apply_graph_temperature(Numbers{2, 0, 0, std::nan("")}, 2, Numbers{0, 1}, {1, 1})),
                       "logits[1, 1]: nan is not allowed; must be finite", std::invalid_argument);
  CHECK_THROWS_WITH_AS(static_cast<void>(neighbour_agreement(Graph(3, {}), z, 2)),
                       "probabilities: 4 is not allowed; expected nodes * classes = 6", std::invalid_argument);
  CHECK_THROWS_WITH_AS(static_cast<void>(neighbour_agreement(Graph(2, {}), z, 2)),
                       "probabilities[0, 0]: 2 is not allowed; a probability must be between 0 and 1",
                       std::invalid_argument);
}

}  // namespace test_graph_temperature
