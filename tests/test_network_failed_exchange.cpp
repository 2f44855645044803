/// \file
/// A backward pass whose exchange with the other parts of a graph fails: it has overwritten what it read and left parts of
/// sums, so that nothing can be added or finished, and the next pass is as good as ever.
#include <doctest/doctest.h>

#include <cstddef>
#include <numeric>
#include <span>
#include <stdexcept>
#include <vector>

#include "sheafnn/bsnn/bundle_network.hpp"
#include "sheafnn/bsnn/network.hpp"
#include "sheafnn/graph/graph_part.hpp"
#include "sheafnn/sheaf/families.hpp"
#include "tiny_task.hpp"

namespace test_network_failed_exchange {
namespace {

using namespace sheafnn;

/// A part that is the whole graph, and whose exchanges fail from one of them on.
class FailingPart final : public GraphPart {
 public:
  explicit FailingPart(const tiny::Task& task) : GraphPart(numbers_of(task)) {}

  /// The exchange after `count` more ones fails; a negative number: none does.
  void fail_after(Index count) { left_ = count; }
  [[nodiscard]] Index count() const noexcept { return count_; }

  void begin_fetch(float*, Index) override { exchange(); }
  void begin_fetch(double*, Index) override { exchange(); }
  void end_fetch() override {}
  void give_back(float*, Index) override { exchange(); }
  void give_back(double*, Index) override { exchange(); }
  void sum(std::span<float>, std::span<double>) override { exchange(); }
  void sum(std::span<double>, std::span<double>) override { exchange(); }
  [[nodiscard]] double largest(double value) override { return value; }

 private:
  void exchange() {
    ++count_;
    if (left_ == 0) throw std::runtime_error("the other parts are gone");
    if (left_ > 0) --left_;
  }
  static PartNumbers numbers_of(const tiny::Task& task) {
    PartNumbers r;
    r.own = r.interior = r.total_nodes = task.graph.node_count();
    r.total_edges = task.graph.edge_count();
    r.node.resize(static_cast<std::size_t>(r.own));
    std::iota(r.node.begin(), r.node.end(), Index{0});
    r.arc.resize(task.graph.arc_count(), false);
    for (Index a = 0; a < r.arc.size(); ++a) r.arc.set(a, a);
    for (Index u = 0; u < r.own; ++u) {
      r.first_entry.push_back(task.sparse.offsets()[static_cast<std::size_t>(u)]);
      r.degree.push_back(task.graph.degree(u));
    }
    r.in_degree = r.degree;
    return r;
  }

  Index left_ = -1, count_ = 0;
};

template <class S>
std::vector<S> copy(const Buffer<S>& of) {
  return {of.begin(), of.end()};
}

/// Draws a sample, and puts the derivative of what add() takes to its place.
constexpr auto outputs_of = [](auto& network, const auto& pass, Index sample) {
  auto drawn = pass.draw(sample);
  for (Index i = 0; i < drawn.view().rows(); ++i) {
    for (Index j = 0; j < drawn.view().columns(); ++j) network.output_bar()(i, j) = tiny::number(3, 5 * i + j);
  }
  return drawn;
};
constexpr auto features_of = [](auto& network, const auto& pass, Index sample) {
  auto drawn = pass.diffuse(sample);
  const auto bar = network.features_bar();
  for (Index i = 0; i < bar.size(); ++i) bar.data()[i] = tiny::number(3, i);
  return drawn;
};

/// \param drawn  one of the two above
/// \param bar    bar(network): the derivative
template <class N, class Drawn, class Bar>
void check(N& network, FailingPart& part, const Drawn& drawn, const Bar& bar) {
  constexpr Index samples = 2;
  const ForwardPass<typename N::S> training{.seed = 5, .training = true, .dropout = 0.3};
  const BackwardOptions options{.kl_weight = 0.2, .samples = samples};
  std::vector<std::vector<typename N::S>> gradients;
  Index exchanges = 0;  // of adding a sample
  const auto run = [&] {
    const auto pass = network.begin(training);
    auto backward = pass.begin_backward(options);
    for (Index k = 0; k < samples; ++k) {
      const auto sample = drawn(network, pass, k);
      const Index before = part.count();
      backward.add(sample, bar(network));
      exchanges = part.count() - before;
    }
    backward.finish();
    gradients.push_back(copy(network.gradient()));
  };
  run();
  REQUIRE(exchanges > 0);
  for (Index failing = 0; failing < samples; ++failing) {
    for (Index n = 0; n < exchanges; ++n) {
      CAPTURE(failing);
      CAPTURE(n);
      const auto pass = network.begin(training);
      auto backward = pass.begin_backward(options);
      for (Index k = 0; k < failing; ++k) {
        const auto sample = drawn(network, pass, k);
        backward.add(sample, bar(network));
      }
      const auto sample = drawn(network, pass, failing);
      part.fail_after(n);
      CHECK_THROWS_AS(backward.add(sample, bar(network)), std::runtime_error);
      part.fail_after(-1);
      CHECK_THROWS_AS(backward.add(sample, bar(network)), std::logic_error);
      CHECK_THROWS_AS(network.backward(network.output_bar()), std::logic_error);
      const auto next = drawn(network, pass, failing);
      CHECK_THROWS_AS(backward.add(next, bar(network)), std::logic_error);
      CHECK_THROWS_AS(backward.finish(), std::logic_error);
      run();
      CHECK(gradients.back() == gradients.front());
    }
  }
}

struct Task : tiny::Task {
  FailingPart part{*this};
  Task() { graph.set_part(&part); }
};

constexpr auto outputs_bar = [](auto& network) { return network.output_bar(); };
constexpr auto features_bar = [](auto& network) { return network.features_bar(); };

TEST_CASE("a backward pass that fails ends: from outputs and from features") {
  Task task;
  const Bsnn<Diagonal<2>, double> model(tiny::options());
  Network network(model, task.graph, task.sparse);
  check(network, task.part, outputs_of, outputs_bar);
  check(network, task.part, features_of, features_bar);
}

TEST_CASE("a backward pass that fails ends: networks that compute outputs themselves") {
  Task task;
  BundleOptions options;
  options.features = tiny::Task::features;
  options.classes = tiny::Task::classes;
  options.layers = 2;
  options.bundles = 2;
  options.channels = 2;
  const BayesianBunn<2, double> model(options);
  Network network(model, task.graph, task.sparse);
  check(network, task.part, outputs_of, outputs_bar);
}

TEST_CASE("a derivative of a wrong shape leaves the pass as it is") {
  Task task;
  const Bsnn<Diagonal<2>, double> model(tiny::options());
  Network network(model, task.graph, task.sparse);
  const std::vector<double> few(6);
  const auto pass = network.begin({.training = true});
  std::vector<double> gradients[2];
  for (auto& gradient : gradients) {
    auto backward = pass.begin_backward();
    const auto sample = outputs_of(network, pass, 0);
    if (&gradient == gradients) {
      const MatrixView<const double> wrong(few.data(), 2, 3);
      CHECK_THROWS_AS(backward.add(sample, wrong), std::invalid_argument);
    }
    backward.add(sample, network.output_bar());
    backward.finish();
    gradient = copy(network.gradient());
  }
  CHECK(gradients[0] == gradients[1]);
}

}  // namespace
}  // namespace test_network_failed_exchange
