/// \file
/// DeviceQueue: a stream on a CUDA device, with a cuBLAS handle for the products in it. DeviceExecutor has one queue,
/// and a second queue for work that runs at the same time as the first.
///
/// Unchecked: sizes, and pointers to memory of the device.
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstddef>
#include <string_view>
#include <utility>

#include "sheafnn/batch/device_error.hpp"
#include "sheafnn/core/errors.hpp"

namespace sheafnn::batch {

/// Makes a device the current device of this thread while it exists.
class CurrentDevice {
 public:
  explicit CurrentDevice(int device) : device_(device) {
    check(cudaGetDevice(&before_), "cudaGetDevice", device);
    if (before_ != device) check(cudaSetDevice(device), "cudaSetDevice", device);
  }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;
  ~CurrentDevice() {
    if (before_ != device_) static_cast<void>(cudaSetDevice(before_));
  }

 private:
  int device_, before_ = 0;
};

namespace detail {

[[nodiscard]] inline double mebibytes(std::size_t bytes) {
  return std::round(static_cast<double>(bytes) * 10 / 1048576) / 10;  // one decimal
}

}  // namespace detail

/// Memory of a device.
///
/// \param what  for the message: what the memory is for
/// \throws OutOfDeviceMemory  with the need, what is free, and what to reduce
[[nodiscard]] inline void* allocate_on(int device, std::string_view what, std::size_t bytes) {
  const CurrentDevice current(device);
  void* memory = nullptr;
  const cudaError_t status = cudaMalloc(&memory, bytes);
  if (status == cudaErrorMemoryAllocation) {
    static_cast<void>(cudaGetLastError());  // not an error of later calls
    std::size_t free = 0, total = 0;
    static_cast<void>(cudaMemGetInfo(&free, &total));
    throw OutOfDeviceMemory(
        "cudaMalloc", device,
        sheafnn::detail::concat(
            "out of memory: ", what, " need ", detail::mebibytes(bytes), " MiB more, ", detail::mebibytes(free),
            " of ", detail::mebibytes(total),
            " MiB are free. Less memory is needed by fewer trainings side by side, fewer samples, layers or "
            "channels, a smaller stalk or filter degree"));
  }
  check(status, "cudaMalloc", device);
  return memory;
}

/// See the file comment. Neither copied nor moved: work in it refers to its memory.
class DeviceQueue {
 public:
  /// \throws CudaError  the device cannot be used
  explicit DeviceQueue(int device) : device_(device) {
    const CurrentDevice current(device);
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags", device);
    try {
      check(cudaEventCreateWithFlags(&reached_, cudaEventDisableTiming), "cudaEventCreateWithFlags", device);
      check(cublasCreate(&blas_), "cublasCreate", device);
      check(cublasSetStream(blas_, stream_), "cublasSetStream", device);
      // Memory of our own, so that products can be recorded and give the same bits on every replay.
      workspace_ = allocate_on(device, "products", workspace_bytes);
      check(cublasSetWorkspace(blas_, workspace_, workspace_bytes), "cublasSetWorkspace", device);
      check(cublasSetAtomicsMode(blas_, CUBLAS_ATOMICS_NOT_ALLOWED), "cublasSetAtomicsMode", device);
    } catch (...) {
      close();
      throw;
    }
  }
  DeviceQueue(const DeviceQueue&) = delete;
  DeviceQueue& operator=(const DeviceQueue&) = delete;
  ~DeviceQueue() { close(); }

  [[nodiscard]] cudaStream_t stream() const noexcept { return stream_; }
  [[nodiscard]] cublasHandle_t blas() const noexcept { return blas_; }

  /// Later work in this queue waits for all work that the other queue already holds.
  void wait_for(const DeviceQueue& other) {
    let_wait(other.stream_, other.reached_, stream_);
    waits_ = true;
  }
  /// The same for a stream of the caller's on this device.
  void wait_for(cudaStream_t other) {
    let_wait(other, reached_, stream_);
    waits_ = true;
  }
  /// Later work in that stream waits for all work that this queue already holds.
  void precede(cudaStream_t other) { let_wait(stream_, reached_, other); }
  /// Is the next kernel the first since wait_for()? It waits for more than the previous kernel of its stream.
  [[nodiscard]] bool take_wait() noexcept { return std::exchange(waits_, false); }

 private:
  static constexpr std::size_t workspace_bytes = std::size_t{32} << 20;

  /// Later work in `second` waits for what `first` holds. \param event  of any use until now
  void let_wait(cudaStream_t first, cudaEvent_t event, cudaStream_t second) {
    const CurrentDevice current(device_);
    check(cudaEventRecord(event, first), "cudaEventRecord", device_);
    check(cudaStreamWaitEvent(second, event, 0), "cudaStreamWaitEvent", device_);
  }
  /// Ignores errors: there is nothing left to do about them.
  void close() noexcept {
    int before = device_;
    static_cast<void>(cudaGetDevice(&before));
    static_cast<void>(cudaSetDevice(device_));  // cuBLAS needs the device of its handle
    if (blas_ != nullptr) static_cast<void>(cublasDestroy(blas_));
    if (workspace_ != nullptr) static_cast<void>(cudaFree(workspace_));
    if (reached_ != nullptr) static_cast<void>(cudaEventDestroy(reached_));
    if (stream_ != nullptr) static_cast<void>(cudaStreamDestroy(stream_));
    static_cast<void>(cudaSetDevice(before));
  }

  int device_ = 0;
  bool waits_ = false;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t reached_ = nullptr;
  cublasHandle_t blas_ = nullptr;
  void* workspace_ = nullptr;
};

}  // namespace sheafnn::batch
