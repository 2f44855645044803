/// \file
/// The executor that is measured, and properties of the device.
///
/// Compiled as C++ instead of CUDA, everything runs on HostExecutor: a rehearsal that needs neither nvcc nor a
/// GPU, with figures that say nothing about either.
#pragma once

#include <cstddef>
#include <memory>
#include <sheafnn/core/errors.hpp>
#include <string>

#if defined(__CUDACC__)
#include <sheafnn/batch/device_executor.hpp>
#else
#include <sheafnn/batch/host_executor.hpp>
#endif

namespace benchmarks {

#if defined(__CUDACC__)
using Executor = sheafnn::batch::DeviceExecutor;
#else
using Executor = sheafnn::batch::HostExecutor;
#endif

/// A device as tables and results name it.
struct DeviceFacts {
  std::string name, versions;  ///< of the device; of driver and runtime
  double memory_bytes = 0, cache_bytes = 0;
};

#if defined(__CUDACC__)

/// Why there is no device to measure; empty when there is one.
[[nodiscard]] inline std::string no_device() { return sheafnn::batch::device_count().reason; }

/// The executor; its device becomes this thread's, for the events and streams of the benchmarks.
/// \param in_turn  kernels start when the one before them has ended
[[nodiscard]] inline std::unique_ptr<Executor> open_device(int device, bool in_turn) {
  using sheafnn::batch::KernelStart;
  const KernelStart start = in_turn ? KernelStart::in_turn : KernelStart::early;
  auto executor = std::make_unique<Executor>(device, start);  // refuses devices that there are not
  sheafnn::batch::check(cudaSetDevice(device), "cudaSetDevice", device);
  return executor;
}

/// \throws CudaError  a device that does not answer
[[nodiscard]] inline DeviceFacts device_facts(int device) {
  cudaDeviceProp properties{};
  sheafnn::batch::check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties", device);
  int driver = 0, runtime = 0;
  sheafnn::batch::check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion", device);
  sheafnn::batch::check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion", device);
  const auto version = [](int v) { return sheafnn::detail::concat(v / 1000, ".", v % 1000 / 10); };
  return {properties.name, sheafnn::detail::concat("CUDA ", version(runtime), ", driver for CUDA ", version(driver)),
          static_cast<double>(properties.totalGlobalMem), static_cast<double>(properties.l2CacheSize)};
}

/// Bytes in use on the executor's device, by all of its users.
[[nodiscard]] inline double used_bytes(const Executor& executor) {
  const sheafnn::batch::CurrentDevice current(executor.device());
  std::size_t free = 0, total = 0;
  sheafnn::batch::check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo", executor.device());
  return static_cast<double>(total - free);
}

#else

[[nodiscard]] inline std::string no_device() { return {}; }
[[nodiscard]] inline std::unique_ptr<Executor> open_device(int, bool) { return std::make_unique<Executor>(); }
[[nodiscard]] inline DeviceFacts device_facts(int) { return {"the host (a rehearsal)", "no CUDA", 0, 0}; }
[[nodiscard]] inline double used_bytes(const Executor&) { return 0; }

#endif

}  // namespace benchmarks
