/// \file
/// Memory of executors, small products, and how many launches an epoch is.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sheafnn/batch/array.hpp"
#include "sheafnn/batch/flow_layer.hpp"
#include "sheafnn/batch/host_executor.hpp"
#include "sheafnn/batch/trainer.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/graph/synthetic.hpp"
#include "team_bundles.hpp"
#include "worst.hpp"

namespace test_batch_executor {
namespace {

using namespace sheafnn;
using namespace sheafnn::layers;
using namespace sheafnn::math;

/// Cannot write zeros; counts live allocations.
struct FailingExecutor : batch::HostExecutor {
  int allocated = 0;
  [[nodiscard]] void* allocate(std::string_view what, std::size_t bytes) {
    ++allocated;
    return HostExecutor::allocate(what, bytes);
  }
  void release(void* memory) noexcept {
    --allocated;
    HostExecutor::release(memory);
  }
  template <class T>
  void zero(T*, Index) {
    throw std::runtime_error("zero");
  }
};

/// Counts what a recording holds, and how much of it is one after another.
struct CountingExecutor : batch::HostExecutor {
  int launches = 0, products = 0, chain = 0;
  template <class... Parts>
  void launch_together(const Parts&... parts) {
    if (((parts.items > 0 && parts.groups > 0) || ...)) ++launches, ++chain;
    HostExecutor::launch_together(parts...);
  }
  template <class Kernel>
  void launch(Index items, Index groups, const Kernel& kernel) {
    launch_together(batch::Items{items, groups, kernel});
  }
  template <class Kernel>
  void launch_teams(Index items, Index groups, int lanes, const Kernel& kernel) {
    launch_together(batch::Teams{items, groups, lanes, kernel});
  }
  template <class S>
  void multiply(const batch::Product<S>& product) {
    ++products, ++chain;
    HostExecutor::multiply(product);
  }
  template <class First, class Second>
  void side_by_side(const First& first, const Second& second) {
    const int before = chain;
    int of_first = 0;
    const auto first_counted = [&] {
      first();
      of_first = std::exchange(chain, before);
    };
    HostExecutor::side_by_side(first_counted, second);
    chain = std::max(chain, of_first);
  }
  template <class Work>
  void record(const Work& work) {
    launches = products = chain = 0;
    HostExecutor::record(work);
  }
};

/// What a recorded epoch of a model holds: 3 samples, dropout.
template <class Model>
std::string launches_of_model(const Dataset& data, typename Model::Options options,
                              batch::EvaluationOrder order = batch::EvaluationOrder::automatic,
                              bool exchanges = true) {
  options.features = data.feature_count();
  options.classes = data.class_count;
  Model model(options, 1);
  CountingExecutor executor;
  executor.exchanges = exchanges;
  const batch::Training<Model> one[] = {
      {&model, &data.splits.at(0), {.input_dropout = 0.5, .dropout = 0.3, .samples = 3}}};
  batch::BatchTrainer<CountingExecutor, Model> trainer(executor, data, one, order);
  trainer.record_epoch();
  return sheafnn::detail::concat(executor.launches, " kernels, ", executor.products,
                                 " products; one after another: ", executor.chain);
}
/// The same with 4 layers.
template <class Model>
std::string launches_of_epoch(const Dataset& data, const PolynomialOptions& filter = {},
                              batch::EvaluationOrder order = batch::EvaluationOrder::automatic,
                              bool exchanges = true, ResidualForm residual = ResidualForm::gated) {
  ModelOptions options;
  options.filter = filter;
  options.residual.form = residual;
  options.layers = 4;
  return launches_of_model<Model>(data, options, order, exchanges);
}

}  // namespace

TEST_CASE("an epoch of a small graph is so many launches") {
  // Of the size of texas. A launch more costs time on every such graph.
  SyntheticOptions options;
  options.nodes = 183;
  options.classes = 5;
  options.features = 1703;
  options.degree = 3;
  const Dataset data = synthetic(options);
  using batch::EvaluationOrder;
  CHECK(launches_of_epoch<Bsnn<SpecialOrthogonal<3>>>(data) == "40 kernels, 3 products; one after another: 29");
  CHECK(launches_of_epoch<Bsnn<SpecialOrthogonal<3>>>(data, {}, EvaluationOrder::in_turn) ==
        "40 kernels, 3 products; one after another: 43");
  // Each layer's mixing in a launch of its own.
  CHECK(launches_of_epoch<Bsnn<SpecialOrthogonal<3>>>(data, {}, EvaluationOrder::automatic, false) ==
        "46 kernels, 3 products; one after another: 32");
  CHECK(launches_of_epoch<Nsd<Diagonal<3>>>(data) == "88 kernels, 12 products; one after another: 67");
  // A filter of degree K: K − 1 applications of Δ more per layer and pass, and one launch for the derivatives of θ.
  CHECK(launches_of_epoch<Bsnn<SpecialOrthogonal<3>>>(data, {PolynomialBasis::chebyshev, 3}) ==
        "74 kernels, 4 products; one after another: 53");
  // Initial residuals: a layer is two launches forward and three backward, two with maps that are not learned.
  const auto deep = [&]<class Model>() {
    return launches_of_epoch<Model>(data, {}, EvaluationOrder::automatic, true, ResidualForm::initial);
  };
  CHECK(deep.template operator()<Bsnn<SpecialOrthogonal<3>>>() == "52 kernels, 4 products; one after another: 38");
  CHECK(deep.template operator()<Nsd<Identity<2>>>() == "43 kernels, 1 products; one after another: 28");
  // Flows: a stage is two launches forward and three backward.
  FlowOptions flow;
  flow.method = FlowMethod::euler;
  flow.fixed_steps = 1;
  CHECK(launches_of_model<SheafFlow<Diagonal<3>>>(data, flow) == "31 kernels, 4 products; one after another: 23");
  flow.fixed_steps = 11;
  CHECK(launches_of_model<SheafFlow<Diagonal<3>>>(data, flow) == "101 kernels, 4 products; one after another: 73");
  flow.method = FlowMethod::runge_kutta;
  CHECK(launches_of_model<SheafFlow<Diagonal<3>>>(data, flow) ==
        "332 kernels, 4 products; one after another: 238");
}

TEST_CASE("divisors give the quotients and remainders of all numbers below 2^31") {
  // Numbers next to multiples of the divisor, where a rounding would show, and next to powers of two.
  const Index limit = (Index{1} << 31) - 1;
  Index wrong = 0;
  const auto check = [&](Index n, Index d) {
    if (n < 0 || n > limit) return;
    const batch::Divisor divisor(d);
    if (n / divisor != n / d || n % divisor != n % d) ++wrong;
  };
  std::vector<Index> divisors;
  for (Index d = 1; d <= 300; ++d) divisors.push_back(d);
  for (int k = 9; k <= 31; ++k) {
    for (const Index shift : {Index{-1}, Index{0}, Index{1}}) {
      const Index d = (Index{1} << k) + shift;
      if (d <= limit) divisors.push_back(d);
    }
  }
  for (const Index d : divisors) {
    const Index largest = limit / d * d;
    for (const Index multiple : {Index{0}, d, 7 * d, largest / d / 2 * d, largest - d, largest}) {
      for (const Index shift : {Index{-1}, Index{0}, Index{1}}) check(multiple + shift, d);
    }
    for (int k = 0; k <= 31; ++k) check((Index{1} << k) - 1, d);
  }
  CHECK(wrong == 0);
  CHECK(Index{batch::Divisor(0)} == 0);
}

TEST_CASE("what kernels count in 32 bits is refused from 2^31 on") {
  CHECK_NOTHROW(batch::detail::require_countable("features", (Index{1} << 31) - 1));
  CHECK_THROWS_WITH_AS(
      batch::detail::require_countable("features", Index{1} << 31),
      "number of features: 2147483648 is not allowed; kernels count them in 32 bits: must be below 2^31",
      std::invalid_argument);
}

TEST_CASE("sums over arcs have lanes as far as there are arcs, and threads to spare") {
  batch::detail::GraphView<float> graph{};
  graph.nodes = 183;  // as texas: 3 arcs of a node
  graph.edges = 279;
  const Index quads = 4;
  CHECK(graph.gather_lanes(graph.nodes * quads) == 4);
  CHECK(graph.gather_lanes(graph.nodes * quads * 10) == 4);
  CHECK(graph.gather_lanes(graph.nodes * quads * 30) == 2);
  CHECK(graph.gather_lanes(graph.nodes * quads * 100) == 1);
  graph.edges = 100 * graph.nodes;
  CHECK(graph.gather_lanes(graph.nodes * quads) == 8);
  graph.edges = 0;
  CHECK(graph.gather_lanes(graph.nodes * quads) == 1);
}

TEST_CASE("small products by the kernel are those of the host executor") {
  batch::HostExecutor executor;
  constexpr Index rows = 5, columns = 3, batches = 2, pad = 2;
  for (int kind = 0; kind < 8; ++kind) {
    for (const Index inner : {Index{0}, Index{7}, Index{50}}) {
      CAPTURE(kind);
      CAPTURE(inner);
      const bool left = (kind & 1) != 0, right = (kind & 2) != 0, add = (kind & 4) != 0;
      const Index a_stride = (left ? rows : inner) + pad, b_stride = (right ? inner : columns) + pad;
      const Index a_size = (left ? inner : rows) * a_stride, b_size = (right ? columns : inner) * b_stride;
      const auto numbers = [](Index count) {
        std::vector<double> r;
        for (Index i = 0; i < count; ++i) r.push_back(std::sin(static_cast<double>(3 * i + 1)));
        return r;
      };
      const std::vector<double> a = numbers(a_size * batches + 1), b = numbers(b_size * batches + 1);
      std::vector<double> own = numbers(rows * (columns + pad) * batches), other = own;
      batch::Product<double> product{rows,
                                     columns,
                                     inner,
                                     batches,
                                     {a.data(), a_stride, a_size, left},
                                     {b.data(), b_stride, b_size, right},
                                     other.data(),
                                     columns + pad,
                                     rows * (columns + pad),
                                     add};
      executor.multiply(product);
      product.c = own.data();
      const batch::detail::SmallProduct<double> kernel(product);
      executor.launch_teams(kernel.items(), batches, kernel.lanes, kernel);
      double worst = 0;
      for (std::size_t i = 0; i < own.size(); ++i) worst = test::worse(worst, std::abs(own[i] - other[i]));
      CHECK(worst <= 1e-15 * static_cast<double>(inner + 1));  // a rounding per term
    }
  }
}

TEST_CASE("teams of a bundle exchange what they have found") {
  batch::HostExecutor forward, backward(batch::HostExecutor::Order::backward);
  for (const int teams : {1, 2, 8}) {
    for (const int lanes : {1, 2, 4}) {
      CAPTURE(teams);
      CAPTURE(lanes);
      const std::vector<double> found = bundles::sums(forward, teams, lanes);
      CHECK(found == bundles::expected(teams));
      CHECK(found == bundles::sums(backward, teams, lanes));
    }
  }
}

TEST_CASE("an array that cannot be zeroed leaves nothing allocated") {
  FailingExecutor executor;
  CHECK_THROWS_WITH(static_cast<void>(batch::Array<FailingExecutor, float>(executor, "test", 10)), "zero");
  CHECK(executor.allocated == 0);
}

}  // namespace test_batch_executor
