/// \file
/// Memory of executors.
#include <doctest/doctest.h>

#include <stdexcept>
#include <string_view>

#include "sheafnn/cuda/array.hpp"
#include "sheafnn/cuda/host_executor.hpp"

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

}  // namespace

TEST_CASE("an array that cannot be zeroed leaves nothing allocated") {
  FailingExecutor executor;
  CHECK_THROWS_WITH(static_cast<void>(cuda::Array<FailingExecutor, float>(executor, "test", 10)), "zero");
  CHECK(executor.lent == 0);
}
