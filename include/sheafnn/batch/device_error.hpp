/// \file
/// Errors of the CUDA runtime and of cuBLAS as exceptions that name the call and the device. Needs the CUDA
/// Toolkit.
///
/// Takes any status and any text.
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>
#include <string_view>

#include "sheafnn/core/errors.hpp"

namespace sheafnn::batch {

/// A call that the CUDA runtime or cuBLAS refused.
class CudaError : public std::runtime_error {
 public:
  CudaError(std::string_view call, int device, std::string_view reason)
      : std::runtime_error(sheafnn::detail::concat(call, " on CUDA device ", device, ": ", reason)) {}
};
/// The device has too little memory.
class OutOfDeviceMemory : public CudaError {
 public:
  using CudaError::CudaError;
};

namespace detail {

/// Throws the error of a refused call, after taking it from the runtime: it is not one of later calls.
[[noreturn]] inline void throw_cuda_error(std::string_view call, int device, bool memory, const char* text,
                                          const char* name) {
  static_cast<void>(cudaGetLastError());
  const std::string reason = sheafnn::detail::concat(text, " (", name, ")");
  if (memory) throw OutOfDeviceMemory(call, device, reason);
  throw CudaError(call, device, reason);
}

}  // namespace detail

/// \throws CudaError          unless the status is success
/// \throws OutOfDeviceMemory  when the call needed memory that the device does not have
inline void check(cudaError_t status, std::string_view call, int device) {
  if (status == cudaSuccess) return;
  detail::throw_cuda_error(call, device, status == cudaErrorMemoryAllocation, cudaGetErrorString(status),
                           cudaGetErrorName(status));
}
/// The same for cuBLAS.
inline void check(cublasStatus_t status, std::string_view call, int device) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  detail::throw_cuda_error(call, device, status == CUBLAS_STATUS_ALLOC_FAILED, cublasGetStatusString(status),
                           cublasGetStatusName(status));
}

/// CUDA devices that can be used, or the reason why there are none.
struct DeviceCount {
  int count = 0;
  std::string reason;  ///< empty when there are some
};
/// Number of CUDA devices, or the reason why there are none.
[[nodiscard]] inline DeviceCount device_count() {
  DeviceCount r;
  const cudaError_t status = cudaGetDeviceCount(&r.count);
  if (status != cudaSuccess) {
    r.count = 0;
    r.reason = cudaGetErrorString(status);
    static_cast<void>(cudaGetLastError());  // not an error of later calls
  } else if (r.count == 0) {
    r.reason = "no CUDA device";
  }
  return r;
}

}  // namespace sheafnn::batch
