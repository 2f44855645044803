/// \file
/// Long chains of kernels, products and fills, each of which reads what the one before it wrote or overwrites what it
/// read: exact with kernels that start early and in turn, on a stream and as a recording.
#include <doctest/doctest.h>

#include <span>
#include <utility>
#include <vector>

#include "sheafnn/batch/array.hpp"
#include "sheafnn/batch/device_executor.hpp"

namespace test_device_launch_chain {
namespace {

using namespace sheafnn;
using namespace sheafnn::math;
using batch::Array;
using batch::DeviceExecutor;
using batch::KernelStart;

/// out[i] = in[count − 1 − i] + 1: a block reads what a block far from it wrote. The places are found early.
struct MirroredPlusOne {
  Index count;
  const double* in;
  double* out;

  struct Place {
    Index from = 0, to = 0;
  };
  [[nodiscard]] SHEAFNN_HD Place place(Index item, Index) const { return {count - 1 - item, item}; }
  SHEAFNN_HD void operator()(const Place& at) const { out[at.to] = in[at.from] + 1; }
};

/// `launches` of it from one array to the other and back. After some of them the array that was read becomes zeros,
/// before some of them the one that is written; and some are followed by a product with 1, which copies.
void enqueue(DeviceExecutor& device, Index count, int launches, Array<DeviceExecutor, double>& values,
             Array<DeviceExecutor, double>& other, const Array<DeviceExecutor, double>& one) {
  double *from = values.data(), *to = other.data();
  for (int k = 0; k < launches; ++k) {
    if (k % 7 == 3) device.zero(to, count);
    device.launch(count, 1, MirroredPlusOne{count, from, to});
    if (k % 5 == 1) device.zero(from, count);
    std::swap(from, to);
    if (k % 10 == 4) {
      device.multiply(batch::Product<double>{count, 1, 1, 1, {from, 1, 0}, {one.data(), 1, 0}, to, 1, 0});
      std::swap(from, to);
    }
  }
  if (from != values.data()) {
    device.multiply(batch::Product<double>{count, 1, 1, 1, {from, 1, 0}, {one.data(), 1, 0}, values.data(), 1, 0});
  }
}

/// The sums of two arrays.
struct Sum {
  const double *a, *b;
  double* out;
  SHEAFNN_HD void operator()(Index item, Index) const { out[item] = a[item] + b[item]; }
};

/// How many numbers are not what the chain makes of 0, 1, 2, ….
Index wrong(const std::vector<double>& values, int launches) {
  Index r = 0;
  const Index count = static_cast<Index>(values.size());
  for (Index i = 0; i < count; ++i) {
    const Index from = launches % 2 == 0 ? i : count - 1 - i;
    r += values[static_cast<std::size_t>(i)] == static_cast<double>(from + launches) ? 0 : 1;
  }
  return r;
}

}  // namespace

TEST_CASE("chains of launches are exact, started early or in turn, on a stream and recorded") {
  struct Size {
    Index blocks;
    int launches;
  };
  // A block, one per multiprocessor, and more than fit on a device at the same time.
#if defined(CUDA_STAND_IN_CALL)
  const std::vector<Size> sizes = {{1, 200}, {132, 20}, {8300, 3}};  // one lane after another
#else
  const std::vector<Size> sizes = {{1, 200}, {132, 200}, {10'000, 200}};
#endif
  static_assert(8300 * batch::detail::block_threads > DeviceExecutor::small_product);  // its products are cuBLAS's
  for (const KernelStart start : {KernelStart::early, KernelStart::in_turn}) {
    CAPTURE(start == KernelStart::early);
    DeviceExecutor device(0, start);
    const std::vector<double> unit = {1};
    const Array<DeviceExecutor, double> one(device, "test", std::span<const double>(unit));
    for (const Size& size : sizes) {
      const Index count = size.blocks * batch::detail::block_threads;
      CAPTURE(size.blocks);
      std::vector<double> numbers;
      for (Index i = 0; i < count; ++i) numbers.push_back(static_cast<double>(i));
      Array<DeviceExecutor, double> values(device, "test", std::span<const double>(numbers)),
          other(device, "test", count);
      const auto chain = [&] { enqueue(device, count, size.launches, values, other, one); };
      chain();
      CHECK(wrong(values.download(), size.launches) == 0);
      values.upload(numbers);
      device.record(chain);
      device.replay();
      CHECK(wrong(values.download(), size.launches) == 0);
    }
  }
}

TEST_CASE("chains side by side are exact, and what comes after them") {
#if defined(CUDA_STAND_IN_CALL)
  const Index blocks = 2;
  const int launches = 40;
#else
  const Index blocks = 10'000;
  const int launches = 100;
#endif
  const Index count = blocks * batch::detail::block_threads;
  for (const KernelStart start : {KernelStart::early, KernelStart::in_turn}) {
    CAPTURE(start == KernelStart::early);
    DeviceExecutor device(0, start);
    const std::vector<double> unit = {1};
    const Array<DeviceExecutor, double> one(device, "test", std::span<const double>(unit));
    std::vector<double> numbers;
    for (Index i = 0; i < count; ++i) numbers.push_back(static_cast<double>(i));
    const auto array = [&] { return Array<DeviceExecutor, double>(device, "test", count); };
    Array<DeviceExecutor, double> first = array(), other = array(), second = array(), another = array();
    Array<DeviceExecutor, double> sum(device, "test", std::span<const double>(numbers));
    // Twice: both begin with the sum that was made last. The shorter one is on the side, then the longer one.
    const auto work = [&] {
      for (const int longer : {0, 1}) {
        device.launch(count, 1, MirroredPlusOne{count, sum.data(), first.data()});
        device.launch(count, 1, MirroredPlusOne{count, sum.data(), second.data()});
        const auto chain = [&](int k, auto& values, auto& between) {
          enqueue(device, count, k, values, between, one);
        };
        device.side_by_side([&] { chain(longer == 0 ? launches : 10, first, other); },
                            [&] { chain(longer == 0 ? 10 : launches, second, another); });
        device.launch(count, 1, Sum{first.data(), second.data(), sum.data()});
      }
    };
    const auto wrong_sums = [&] {
      // Each round turns the numbers around: x becomes 2 x + 2 + launches + 10.
      const std::vector<double> values = sum.download();
      Index r = 0;
      for (Index i = 0; i < count; ++i) {
        const double added = 2 + launches + 10;
        const double expected = 2 * (2 * static_cast<double>(i) + added) + added;
        r += values[static_cast<std::size_t>(i)] == expected ? 0 : 1;
      }
      return r;
    };
    work();
    CHECK(wrong_sums() == 0);
    sum.upload(numbers);
    device.record(work);
    device.replay();
    CHECK(wrong_sums() == 0);
  }
}

}  // namespace test_device_launch_chain
