/// \file
/// Memory of executors, and how many launches an epoch is.
#include <doctest/doctest.h>

#include <stdexcept>
#include <string>
#include <string_view>

#include "sheafnn/core/errors.hpp"
#include "sheafnn/cuda/array.hpp"
#include "sheafnn/cuda/host_executor.hpp"
#include "sheafnn/cuda/trainer.hpp"
#include "sheafnn/graph/synthetic.hpp"

namespace {

using namespace sheafnn;

/// Cannot write zeros; counts what it has lent.
struct FailingExecutor : cuda::HostExecutor {
  int lent = 0;
  [[nodiscard]] void* allocate(std::string_view what, std::size_t bytes) {
    ++lent;
    return HostExecutor::allocate(what, bytes);
  }
  void release(void* memory) noexcept {
    --lent;
    HostExecutor::release(memory);
  }
  template <class T>
  void zero(T*, Index) {
    throw std::runtime_error("zero");
  }
};

/// Counts what a recording holds.
struct CountingExecutor : cuda::HostExecutor {
  int launches = 0, products = 0;
  template <class... Parts>
  void launch_together(const Parts&... parts) {
    if (((parts.items > 0 && parts.groups > 0) || ...)) ++launches;
    HostExecutor::launch_together(parts...);
  }
  template <class Kernel>
  void launch(Index items, Index groups, const Kernel& kernel) {
    launch_together(cuda::Items{items, groups, kernel});
  }
  template <class Kernel>
  void launch_teams(Index items, Index groups, int lanes, const Kernel& kernel) {
    launch_together(cuda::Teams{items, groups, lanes, kernel});
  }
  template <class S>
  void multiply(const cuda::Product<S>& product) {
    ++products;
    HostExecutor::multiply(product);
  }
  template <class Work>
  void record(const Work& work) {
    launches = products = 0;
    HostExecutor::record(work);
  }
};

/// What a recorded epoch holds: 4 layers, 3 samples, dropout.
template <class Model>
std::string launches_of_epoch(const Dataset& data) {
  ModelOptions options;
  options.features = data.feature_count();
  options.classes = data.class_count;
  options.layers = 4;
  Model model(options, 1);
  CountingExecutor executor;
  const cuda::Training<Model> one[] = {
      {&model, &data.splits.at(0), {.input_dropout = 0.5, .dropout = 0.3, .samples = 3}}};
  cuda::BatchTrainer<CountingExecutor, Model> trainer(executor, data, one);
  trainer.record_epoch();
  return concat(executor.launches, " kernels, ", executor.products, " products");
}

}  // namespace

TEST_CASE("an epoch of a small graph is so many launches") {
  // Of the size of texas. Whoever adds a launch, on every such graph, shall know.
  SyntheticOptions options;
  options.nodes = 183;
  options.classes = 5;
  options.features = 1703;
  options.degree = 3;
  const Dataset data = synthetic(options);
  CHECK(launches_of_epoch<Bsnn<SpecialOrthogonal<3>>>(data) == "48 kernels, 6 products");
  CHECK(launches_of_epoch<Nsd<Diagonal<3>>>(data) == "87 kernels, 15 products");
}

TEST_CASE("an array that cannot be zeroed leaves nothing allocated") {
  FailingExecutor executor;
  CHECK_THROWS_WITH(static_cast<void>(cuda::Array<FailingExecutor, float>(executor, "test", 10)), "zero");
  CHECK(executor.lent == 0);
}
