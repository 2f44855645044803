/// \file
/// The stand-in for the CUDA runtime notices what it is there to notice.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <vector>

#include "sheafnn/batch/array.hpp"
#include "sheafnn/batch/device_executor.hpp"

namespace test_stand_in {
using namespace sheafnn;
using batch::Array;
using batch::DeviceExecutor;

namespace {

/// The signal that ends a process doing this; 0 when none does.
template <class Work>
int signal_of(const Work& work) {
  std::fflush(nullptr);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    for (const int number : {SIGSEGV, SIGBUS, SIGABRT}) std::signal(number, SIG_DFL);
    static_cast<void>(std::freopen("/dev/null", "w", stderr));
    work();
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

/// Reads at an offset, and writes a number there.
struct Touch {
  double* data;
  Index offset;
  SHEAFNN_HD void operator()(Index, Index) const { data[offset] = data[offset] > 0 ? data[offset] + 1 : 1; }
};
/// An array of structures, and padding in and behind it: its sum of all numbers.
struct ManyMembers {
  struct Member {
    Index number;
    std::int8_t small;
    Index other;
  };
  Member member[4];
  double* out;
  float factor;
  SHEAFNN_HD void operator()(Index, Index) const {
    *out = 0;
    for (const Member& m : member) *out += static_cast<double>(m.number + m.small + m.other);
    *out *= static_cast<double>(factor);
  }
};
/// Lanes above the middle leave before the others exchange values.
struct Leave {
  SHEAFNN_HD void operator()(Index item, Index) const {
    if (item < 16) static_cast<void>(__shfl_down_sync(0xffffffffU, item, 8U));
  }
};

/// The lane of the first thread leaves before the last one takes its value.
struct LeaveFirst {
  static constexpr bool exchanges = true;
};
static __global__ void leave_first(LeaveFirst) {
  const int lane = static_cast<int>(threadIdx.x);
  if (lane > 0) static_cast<void>(__shfl_sync(0xffffffffU, lane, 0));
}
/// Its parameter does not say that values go up.
static __global__ void take_of_first(int) {
  static_cast<void>(__shfl_sync(0xffffffffU, static_cast<int>(threadIdx.x), 0));
}

}  // namespace

TEST_CASE("stand-in: work is done when somebody waits for it") {
  DeviceExecutor device;
  Array<DeviceExecutor, double> values(device, "test", 10);
  device.synchronise();
  const long before = stand_in::runtime.work["kernel"];
  device.launch(1, 1, Touch{values.data(), 3});
  CHECK(stand_in::runtime.work["kernel"] == before);
  CHECK(values.download().at(3) == 1.0);
  CHECK(stand_in::runtime.work["kernel"] == before + 1);
}

TEST_CASE("stand-in: arguments arrive, whatever they contain") {
  DeviceExecutor device;
  Array<DeviceExecutor, double> values(device, "test", 3);
  const auto kernel = [&](Index i) {
    const ManyMembers::Member all = {1, 2, 3};
    return batch::Items{Index{1}, Index{1},
                        ManyMembers{{all, all, all, all}, values.data() + i, static_cast<float>(i + 1)}};
  };
  device.launch_together(kernel(0), kernel(1), kernel(2));
  CHECK(values.download() == std::vector<double>{24, 48, 72});
}

TEST_CASE("stand-in: the host must not touch memory of a device") {
  DeviceExecutor device;
  Array<DeviceExecutor, double> values(device, "test", 10);
  CHECK(signal_of([] {}) == 0);
  CHECK(signal_of([&] { values.data()[0] = 1; }) == SIGSEGV);
  device.synchronise();
  CHECK(signal_of([&] { values.data()[0] = 1; }) == SIGSEGV);
}

TEST_CASE("stand-in: kernels must not leave their arrays") {
  DeviceExecutor device;
  const auto touch = [&](double* data, Index offset) {
    return signal_of([&] {
      device.launch(1, 1, Touch{data, offset});
      device.synchronise();
    });
  };
  // 32 numbers of eight bytes are CUDA's alignment: the next page begins behind them.
  Array<DeviceExecutor, double> values(device, "test", 32);
  CHECK(touch(values.data(), 0) == 0);
  CHECK(touch(values.data(), 31) == 0);
  CHECK(touch(values.data(), 32) == SIGSEGV);
  CHECK(touch(values.data(), -sysconf(_SC_PAGESIZE) / 8) == SIGSEGV);
  // What is written beside an array on its own page is seen when the array is released.
  const auto spoil = [&](Index offset) {
    return signal_of([&] {
      Array<DeviceExecutor, double> few(device, "test", 5);
      device.launch(1, 1, Touch{few.data(), offset});
    });
  };
  CHECK(spoil(4) == 0);
  CHECK(spoil(5) == SIGABRT);
  CHECK(spoil(-1) == SIGABRT);
  // Released arrays, arrays of another device, memory of the host.
  CHECK(signal_of([&] {
          double* released = nullptr;
          {
            Array<DeviceExecutor, double> gone(device, "test", 5);
            released = gone.data();
            device.synchronise();
          }
          device.launch(1, 1, Touch{released, 0});
          device.synchronise();
        }) != 0);
  DeviceExecutor other(1);
  Array<DeviceExecutor, double> elsewhere(other, "test", 5);
  CHECK(touch(elsewhere.data(), 0) != 0);
  double own[3] = {};
#if __has_builtin(__builtin_clear_padding)
  CHECK(touch(own, 0) == SIGABRT);
#else
  static_cast<void>(own);
  MESSAGE("this compiler cannot clear the unused bytes of an object: arguments of kernels are not looked at");
#endif
}

TEST_CASE("stand-in: memory is no zeros before it is written") {
  DeviceExecutor device;
  double* values = static_cast<double*>(device.allocate("test", 80));
  double first = 0;
  device.download(values, 1, &first);
  CHECK(std::isnan(first));
  device.release(values);
}

TEST_CASE("stand-in: all lanes of a warp exchange values, or none") {
  DeviceExecutor device;
  CHECK(signal_of([&] {
          device.launch(32, 1, Leave{});
          device.synchronise();
        }) == SIGABRT);
  CHECK(signal_of([&] {
          device.launch(16, 1, Leave{});  // the other lanes have no item
          device.synchronise();
        }) == SIGABRT);
  const auto launch = [&](auto kernel, auto argument) {
    return signal_of([&] {
      cudaLaunchConfig_t config{};
      config.blockDim = 32;
      config.stream = device.stream();
      if (cudaLaunchKernelEx(&config, kernel, argument) == cudaSuccess) device.synchronise();
    });
  };
  CHECK(launch(leave_first, LeaveFirst{}) == SIGABRT);
  CHECK(launch(take_of_first, 1) == SIGABRT);
}

TEST_CASE("stand-in: calls that CUDA refuses are refused") {
  DeviceExecutor first(0), second(1);
  cudaStream_t stream = first.stream();
  // Waiting for a stream that records.
  CHECK_THROWS_WITH_AS(first.record([&] { first.synchronise(); }),
                       "cudaStreamSynchronize on CUDA device 0: cudaErrorStreamCaptureUnsupported "
                       "(cudaErrorStreamCaptureUnsupported)",
                       batch::CudaError);
  first.synchronise();  // the recording has ended
  // … of which nothing can be made, even if nobody looks at the refusal.
  CHECK_THROWS_WITH_AS(first.record([&] { static_cast<void>(cudaStreamSynchronize(stream)); }),
                       doctest::Contains(
                           "cudaStreamEndCapture on CUDA device 0: cudaErrorStreamCaptureInvalidated"),
                       batch::CudaError);
  // A branch that does not come back. When that is so because its work threw something, the latter is what one sees.
  Array<DeviceExecutor, double> values(first, "test", 1);
  cudaStream_t other = nullptr;
  cudaEvent_t begin = nullptr;
  CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking) == cudaSuccess);
  CHECK(cudaEventCreateWithFlags(&begin, cudaEventDisableTiming) == cudaSuccess);
  CHECK_THROWS_WITH_AS(first.record([&] {
    static_cast<void>(cudaEventRecord(begin, stream));
    static_cast<void>(cudaStreamWaitEvent(other, begin, 0));
    static_cast<void>(cudaMemsetAsync(values.data(), 0, sizeof(double), other));
  }),
                       doctest::Contains("cudaErrorStreamCaptureUnjoined"), batch::CudaError);
  const auto thrower = [&] {
    first.zero(values.data(), 1);
    throw std::runtime_error("the work");
  };
  CHECK_THROWS_WITH(first.record([&] { first.side_by_side([] {}, thrower); }), "the work");
  CHECK(cudaGetLastError() == cudaSuccess);
  CHECK(cudaEventDestroy(begin) == cudaSuccess);
  CHECK(cudaStreamDestroy(other) == cudaSuccess);
  // A launch on a stream of another device than the current one.
  const batch::CurrentDevice current(1);
  cudaLaunchConfig_t config{};
  config.stream = stream;
  CHECK(cudaLaunchKernelEx(&config, batch::detail::run_parts<batch::Items<Touch>>,
                           batch::Items{1, 1, Touch{nullptr, 0}}) == cudaErrorInvalidResourceHandle);
  config.stream = second.stream();
  config.gridDim = dim3(1, 65536);
  CHECK(cudaLaunchKernelEx(&config, batch::detail::run_parts<batch::Items<Touch>>,
                           batch::Items{1, 1, Touch{nullptr, 0}}) == cudaErrorInvalidConfiguration);
  CHECK(cudaGetLastError() == cudaErrorInvalidConfiguration);
  CHECK(cudaGetLastError() == cudaSuccess);
}

}  // namespace test_stand_in
