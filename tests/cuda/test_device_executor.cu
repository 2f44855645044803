/// \file
/// DeviceExecutor against HostExecutor: kernels, sums over lanes, products, recordings, and its errors.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "sheafnn/batch/array.hpp"
#include "sheafnn/batch/device_executor.hpp"
#include "sheafnn/batch/host_executor.hpp"
#include "team_bundles.hpp"
#include "worst.hpp"

namespace test_device_executor {
using namespace sheafnn;
using namespace sheafnn::math;
using batch::Array;
using batch::DeviceExecutor;
using batch::HostExecutor;

namespace {

/// Writes a number that is different for every item and group, and exact.
struct Numbers {
  Index items;
  double* out;
  SHEAFNN_HD void operator()(Index item, Index group) const {
    out[group * items + item] = static_cast<double>(group * items + item) + 0.5;
  }
};

/// Two sums over `count` numbers of each item, as lanes share them.
template <class S>
struct Sums {
  using Scalar = S;
  static constexpr int outputs = 2;
  const S* in;
  Index count;
  int lanes;
  Index items;
  S* out;
  SHEAFNN_HD void part(Index item, Index group, int lane, S* sums) const {
    for (Index c = lane; c < count; c += lanes) {
      const S value = in[(item * 7 + group * 3 + c) % 101];
      sums[0] += value;
      sums[1] += value * value;
    }
  }
  SHEAFNN_HD void finish(Index item, Index group, const S* sums) const {
    for (int k = 0; k < outputs; ++k) out[(group * items + item) * outputs + k] = sums[k];
  }
};

struct Increment {
  double* value;
  SHEAFNN_HD void operator()(Index item, Index) const { value[item] += 1; }
};

template <class S>
std::vector<S> sequence(Index count) {
  std::vector<S> r;
  for (Index i = 0; i < count; ++i) r.push_back(static_cast<S>(std::sin(static_cast<double>(3 * i + 1))));
  return r;
}

template <class Executor>
std::vector<double> numbers(Executor& executor, Index items, Index groups) {
  Array<Executor, double> out(executor, "test", items * groups);
  executor.launch(items, groups, Numbers{items, out.data()});
  return out.download();
}

template <class S, class Executor>
std::vector<S> sums(Executor& executor, Index items, Index groups, int lanes) {
  const std::vector<S> values = sequence<S>(101);
  Array<Executor, S> in(executor, "test", std::span<const S>(values)), out(executor, "test", items * groups * 2);
  executor.launch_teams(items, groups, lanes, Sums<S>{in.data(), 21, lanes, items, out.data()});
  return out.download();
}

template <class S, class Executor>
std::vector<S> product(Executor& executor, bool a_transposed, bool b_transposed, bool add, Index inner,
                       Index rows = 5) {
  constexpr Index columns = 3, batches = 4, pad = 2;
  const Index a_stride = (a_transposed ? rows : inner) + pad, b_stride = (b_transposed ? inner : columns) + pad;
  const Index a_size = (a_transposed ? inner : rows) * a_stride,
              b_size = (b_transposed ? columns : inner) * b_stride;
  const std::vector<S> left = sequence<S>(a_size * batches + 1), right = sequence<S>(b_size * batches + 1);
  const std::vector<S> start = sequence<S>(rows * (columns + pad) * batches);
  Array<Executor, S> a(executor, "test", std::span<const S>(left)), b(executor, "test", std::span<const S>(right)),
      c(executor, "test", std::span<const S>(start));
  executor.multiply(batch::Product<S>{rows,
                                      columns,
                                      inner,
                                      batches,
                                      {a.data(), a_stride, a_size, a_transposed},
                                      {b.data(), b_stride, b_size, b_transposed},
                                      c.data(),
                                      columns + pad,
                                      rows * (columns + pad),
                                      add});
  return c.download();
}

}  // namespace

TEST_CASE("kernels reach every item of every group") {
  DeviceExecutor device;
  HostExecutor host;
  for (const auto& size : std::vector<std::pair<Index, Index>>{{1, 1}, {1000, 3}, {129, 70000}, {0, 5}}) {
    const Index items = size.first, groups = size.second;  // no structured binding: CAPTURE is a lambda
    CAPTURE(items);
    CHECK(numbers(device, items, groups) == numbers(host, items, groups));
  }
}

TEST_CASE("teams sum as the host does") {
  DeviceExecutor device;
  HostExecutor host;
  for (const int lanes : {8, 16, 32}) {
    CAPTURE(lanes);
    for (const Index items : {Index{1}, Index{7}, Index{1001}}) {
      CAPTURE(items);
      CHECK(sums<double>(device, items, 3, lanes).size() == static_cast<std::size_t>(items * 6));
      const std::vector<double> own = sums<double>(device, items, 3, lanes),
                                other = sums<double>(host, items, 3, lanes);
      double worst = 0;  // the device may fuse a product and a sum
      for (std::size_t i = 0; i < own.size(); ++i) worst = test::worse(worst, std::abs(own[i] - other[i]));
      CHECK(worst <= 1e-14);
    }
  }
}

TEST_CASE("teams of a bundle exchange what they have found, on a device") {
  DeviceExecutor device;
  for (const int teams : {1, 2, 4, 8}) {
    for (int lanes = 1; lanes * teams <= batch::max_lanes; lanes *= 2) {
      CAPTURE(teams);
      CAPTURE(lanes);
      CHECK(bundles::sums(device, teams, lanes) == bundles::expected(teams));
    }
  }
}

TEST_CASE("kernels that share a launch do what they do alone") {
  DeviceExecutor device;
  HostExecutor host;
  const auto together = [](auto& executor, Index groups) {
    using Executor = std::remove_reference_t<decltype(executor)>;
    const std::vector<double> values = sequence<double>(101);
    Array<Executor, double> in(executor, "test", std::span<const double>(values));
    Array<Executor, double> first(executor, "test", 300 * groups), second(executor, "test", 77 * 5 * 2),
        third(executor, "test", 1);
    executor.launch_together(batch::Items{300, groups, Numbers{300, first.data()}},
                             batch::Items{0, 9, Numbers{0, nullptr}}, batch::Items{7, 0, Numbers{7, nullptr}},
                             batch::Teams{77, 5, 8, Sums<double>{in.data(), 21, 8, 77, second.data()}},
                             batch::Items{1, 1, Numbers{1, third.data()}});
    std::vector<double> all = first.download();
    for (const auto* part : {&second, &third}) {
      const std::vector<double> rest = part->download();
      all.insert(all.end(), rest.begin(), rest.end());
    }
    return all;
  };
  // Few blocks share the launch, many do not.
  static_assert(3 * 9000 > DeviceExecutor::max_shared_blocks);
  for (const Index groups : {Index{3}, Index{9000}}) {
    CAPTURE(groups);
    const std::vector<double> own = together(device, groups), other = together(host, groups);
    double worst = 0;
    REQUIRE(own.size() == other.size());
    for (std::size_t i = 0; i < own.size(); ++i) worst = test::worse(worst, std::abs(own[i] - other[i]));
    CHECK(worst <= 1e-14);
  }
}

TEST_CASE("products of all shapes agree with the host") {
  DeviceExecutor device;
  HostExecutor host;
  for (int kind = 0; kind < 8; ++kind) {
    for (const Index inner : {Index{1}, Index{17}}) {
      CAPTURE(kind);
      CAPTURE(inner);
      const bool a = (kind & 1) != 0, b = (kind & 2) != 0, add = (kind & 4) != 0;
      const std::vector<double> own = product<double>(device, a, b, add, inner);
      const std::vector<double> other = product<double>(host, a, b, add, inner);
      REQUIRE(own.size() == other.size());
      double worst = 0;
      for (std::size_t i = 0; i < own.size(); ++i) worst = test::worse(worst, std::abs(own[i] - other[i]));
      CHECK(worst <= 1e-14 * static_cast<double>(inner + 1));
      const std::vector<float> single = product<float>(device, a, b, add, inner);
      worst = 0;
      for (std::size_t i = 0; i < own.size(); ++i) worst = test::worse(worst, std::abs(single[i] - other[i]));
      CHECK(worst <= 1e-6 * static_cast<double>(inner + 1));
    }
  }
}

TEST_CASE("products that are left to cuBLAS agree with the host") {
  DeviceExecutor device;
  HostExecutor host;
  constexpr Index inner = 400, rows = 300;
  static_assert(rows * 3 * inner * 4 > DeviceExecutor::small_product);
  for (int kind = 0; kind < 8; ++kind) {
    CAPTURE(kind);
    const bool a = (kind & 1) != 0, b = (kind & 2) != 0, add = (kind & 4) != 0;
    const std::vector<double> own = product<double>(device, a, b, add, inner, rows);
    const std::vector<double> other = product<double>(host, a, b, add, inner, rows);
    REQUIRE(own.size() == other.size());
    double worst = 0;
    for (std::size_t i = 0; i < own.size(); ++i) worst = test::worse(worst, std::abs(own[i] - other[i]));
    CHECK(worst <= 1e-14 * static_cast<double>(inner));
  }
}

TEST_CASE("a recording runs when it is replayed, and only then") {
  DeviceExecutor device;
  Array<DeviceExecutor, double> value(device, "test", 300);
  device.record([&] {
    device.launch(300, 1, Increment{value.data()});
    device.launch(300, 1, Increment{value.data()});
  });
  CHECK(value.download() == std::vector<double>(300, 0.0));
  for (int i = 0; i < 3; ++i) device.replay();
  CHECK(value.download() == std::vector<double>(300, 6.0));
  device.record([&] { device.zero(value.data(), 100); });
  device.replay();
  std::vector<double> expected(300, 6.0);
  std::fill_n(expected.begin(), 100, 0.0);
  CHECK(value.download() == expected);
}

TEST_CASE("errors name the call, the device and the need") {
  DeviceExecutor device;
  CHECK_THROWS_WITH_AS(static_cast<void>(device.allocate("embeddings", std::size_t{1} << 50)),
                       doctest::Contains("embeddings need"), batch::OutOfDeviceMemory);
  // The executor is still of use.
  CHECK(numbers(device, 10, 2).back() == 19.5);
  CHECK_THROWS_WITH_AS(DeviceExecutor(1000), doctest::Contains("device"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(DeviceExecutor(-1), doctest::Contains("device"), std::invalid_argument);
}

}  // namespace test_device_executor
