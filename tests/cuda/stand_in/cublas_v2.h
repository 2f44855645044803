/// \file
/// Stand-in for the CUDA Toolkit's header of this name (see cuda_runtime.h): products of batches of matrices,
/// stored column by column.
#pragma once

#include <cstddef>

#include "cuda_runtime.h"

enum cublasStatus_t : int {
  CUBLAS_STATUS_SUCCESS = 0,
  CUBLAS_STATUS_NOT_INITIALIZED = 1,
  CUBLAS_STATUS_ALLOC_FAILED = 3,
  CUBLAS_STATUS_INVALID_VALUE = 7,
  CUBLAS_STATUS_EXECUTION_FAILED = 13
};
enum cublasOperation_t { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1 };
enum cublasAtomicsMode_t { CUBLAS_ATOMICS_NOT_ALLOWED = 0 };

struct cublasContext {
  int device = 0;
  cudaStream_t stream = nullptr;
  bool workspace = false;  ///< the caller's own
};
using cublasHandle_t = cublasContext*;

inline const char* cublasGetStatusName(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED:
      return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_ALLOC_FAILED:
      return "CUBLAS_STATUS_ALLOC_FAILED";
    case CUBLAS_STATUS_INVALID_VALUE:
      return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_EXECUTION_FAILED:
      return "CUBLAS_STATUS_EXECUTION_FAILED";
  }
  return "unknown";
}
inline const char* cublasGetStatusString(cublasStatus_t status) { return cublasGetStatusName(status); }

/// As CUDA_STAND_IN_CALL.
#define CUBLAS_STAND_IN_CALL()                                                               \
  if (stand_in::fails(__func__))                                                             \
  return stand_in::runtime.failure == cudaErrorMemoryAllocation ? CUBLAS_STATUS_ALLOC_FAILED \
                                                                : CUBLAS_STATUS_EXECUTION_FAILED

inline cublasStatus_t cublasCreate(cublasHandle_t* handle) {
  CUBLAS_STAND_IN_CALL();
  *handle = new cublasContext{stand_in::runtime.device};
  stand_in::runtime.others.insert(*handle);
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasDestroy(cublasHandle_t handle) {
  if (stand_in::runtime.others.erase(handle) == 0) return CUBLAS_STATUS_NOT_INITIALIZED;
  delete handle;
  CUBLAS_STAND_IN_CALL();
  return CUBLAS_STATUS_SUCCESS;
}
/// The caller's own workspace is forgotten.
inline cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream) {
  CUBLAS_STAND_IN_CALL();
  handle->stream = stream;
  handle->workspace = false;
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void* workspace, std::size_t) {
  CUBLAS_STAND_IN_CALL();
  handle->workspace = workspace != nullptr;
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasSetAtomicsMode(cublasHandle_t, cublasAtomicsMode_t) {
  CUBLAS_STAND_IN_CALL();
  return CUBLAS_STATUS_SUCCESS;
}

namespace stand_in {

/// C = α A B + β C, m × k by k × n; C is not read where β = 0.
template <class S>
cublasStatus_t multiply(cublasHandle_t handle, cublasOperation_t a_operation, cublasOperation_t b_operation, int m,
                        int n, int k, const S* alpha, const S* a, int lda, long long a_stride, const S* b, int ldb,
                        long long b_stride, const S* beta, S* c, int ldc, long long c_stride, int batches) {
  const bool at = a_operation == CUBLAS_OP_T, bt = b_operation == CUBLAS_OP_T;
  const auto least = [](int rows) { return rows > 1 ? rows : 1; };
  if (m < 0 || n < 0 || k < 0 || batches < 0 || lda < least(at ? k : m) || ldb < least(bt ? n : k) ||
      ldc < least(m))
    return CUBLAS_STATUS_INVALID_VALUE;
  if (handle->device != runtime.device || handle->stream == nullptr) return CUBLAS_STATUS_EXECUTION_FAILED;
  // A recording must not hold on to memory of cuBLAS's own.
  if (handle->stream->recording != nullptr && !handle->workspace) return CUBLAS_STATUS_EXECUTION_FAILED;
  const S* const matrices[] = {a, b, c};
  check_arguments(reinterpret_cast<const std::byte*>(matrices), sizeof matrices, handle->device, __func__);
  enqueue(*handle->stream, "kernel", [=, alpha = *alpha, beta = *beta] {
    for (std::ptrdiff_t batch = 0; batch < batches; ++batch) {
      for (std::ptrdiff_t j = 0; j < n; ++j) {
        for (std::ptrdiff_t i = 0; i < m; ++i) {
          S sum = 0;
          for (std::ptrdiff_t p = 0; p < k; ++p) {
            sum += a[batch * a_stride + (at ? p + i * lda : i + p * lda)] *
                   b[batch * b_stride + (bt ? j + p * ldb : p + j * ldb)];
          }
          S& result = c[batch * c_stride + i + j * ldc];
          result = beta == 0 ? alpha * sum : alpha * sum + beta * result;
        }
      }
    }
  });
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace stand_in

inline cublasStatus_t cublasSgemmStridedBatched(cublasHandle_t handle, cublasOperation_t a_operation,
                                                cublasOperation_t b_operation, int m, int n, int k,
                                                const float* alpha, const float* a, int lda, long long a_stride,
                                                const float* b, int ldb, long long b_stride, const float* beta,
                                                float* c, int ldc, long long c_stride, int batches) {
  CUBLAS_STAND_IN_CALL();
  return stand_in::multiply(handle, a_operation, b_operation, m, n, k, alpha, a, lda, a_stride, b, ldb, b_stride,
                            beta, c, ldc, c_stride, batches);
}
inline cublasStatus_t cublasDgemmStridedBatched(cublasHandle_t handle, cublasOperation_t a_operation,
                                                cublasOperation_t b_operation, int m, int n, int k,
                                                const double* alpha, const double* a, int lda, long long a_stride,
                                                const double* b, int ldb, long long b_stride, const double* beta,
                                                double* c, int ldc, long long c_stride, int batches) {
  CUBLAS_STAND_IN_CALL();
  return stand_in::multiply(handle, a_operation, b_operation, m, n, k, alpha, a, lda, a_stride, b, ldb, b_stride,
                            beta, c, ldc, c_stride, batches);
}
