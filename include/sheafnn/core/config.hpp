/// \file
/// Compiler facts every other header relies on: host/device annotation, index type, SIMD width.
#pragma once

#include <cstddef>
#include <cstdint>

/// Marks a function that runs on the host and, under nvcc, on the device as well.
#if defined(__CUDACC__)
#define SHEAFNN_HD __host__ __device__
#else
#define SHEAFNN_HD
#endif

/// For a function template for host and device that may be instantiated with types of host functions only (packs). It keeps
/// nvcc from complaining about these instantiations.
#if defined(__NVCC__)
#define SHEAFNN_ANY_SIDE _Pragma("nv_exec_check_disable")
#else
#define SHEAFNN_ANY_SIDE
#endif

/// Forces inlining of the few-instruction functions that inner loops are built from.
#if defined(__CUDACC__)
#define SHEAFNN_INLINE __forceinline__
#elif defined(__GNUC__)
#define SHEAFNN_INLINE inline __attribute__((always_inline))
#else
#define SHEAFNN_INLINE inline
#endif

/// The same in kernels: on the device only, because on the host they are for tests, which are compiled more often than
/// they run.
#if defined(__NVCC__)
#define SHEAFNN_KERNEL_INLINE __forceinline__
#else
#define SHEAFNN_KERNEL_INLINE inline
#endif

/// The same for a lambda, between its parameters and its body.
#if defined(__GNUC__) && !defined(__CUDACC__)
#define SHEAFNN_INLINE_LAMBDA __attribute__((always_inline))
#else
#define SHEAFNN_INLINE_LAMBDA
#endif

/// Keeps a large function that is called from many places from being copied into each of them.
/// Device code is left to the device compiler.
#if defined(__GNUC__) && !defined(__CUDACC__)
#define SHEAFNN_NOINLINE __attribute__((noinline))
#else
#define SHEAFNN_NOINLINE
#endif

/// Keeps a function that is seldom needed out of its callers on host and device, where its registers would count for all.
#if defined(__CUDACC__)
#define SHEAFNN_SELDOM __noinline__
#elif defined(__GNUC__)
#define SHEAFNN_SELDOM __attribute__((noinline))
#else
#define SHEAFNN_SELDOM
#endif

/// Asks the compiler to unroll the following loop of a few compile-time trips completely.
#if defined(__clang__) || defined(__CUDA_ARCH__)
#define SHEAFNN_UNROLL _Pragma("unroll")
#elif defined(__GNUC__) && !defined(__CUDACC__)
#define SHEAFNN_UNROLL _Pragma("GCC unroll 16")
#else
#define SHEAFNN_UNROLL
#endif

/// SHEAFNN_EACH(i, count, statement): the statement for i = 0 … count − 1, a few compile-time trips. One or two are not a loop:
/// a compiler would copy it into every caller before it unrolls it there.
#define SHEAFNN_EACH(i, count, ...)                                  \
  if constexpr ((count) <= 2) {                                      \
    {                                                                \
      [[maybe_unused]] constexpr int i = 0;                          \
      __VA_ARGS__                                                    \
    }                                                                \
    if constexpr ((count) == 2) {                                    \
      constexpr int i = 1;                                           \
      __VA_ARGS__                                                    \
    }                                                                \
  } else {                                                           \
    SHEAFNN_UNROLL for (int i = 0; i < (count); ++i) { __VA_ARGS__ } \
  }

/// Asks for four trips of the following loop side by side, whose number is known only at run time.
#if defined(__CUDA_ARCH__)
#define SHEAFNN_UNROLL_FOUR _Pragma("unroll 4")
#else
#define SHEAFNN_UNROLL_FOUR
#endif

/// Asks for the following loop as it is written: its body is long, or its trips are few.
#if defined(__CUDA_ARCH__)
#define SHEAFNN_NO_UNROLL _Pragma("unroll 1")
#else
#define SHEAFNN_NO_UNROLL
#endif

/// Asks for the cache line at an address that is read soon.
#if defined(__GNUC__) && !defined(__CUDACC__)
#define SHEAFNN_PREFETCH(address) __builtin_prefetch(address)
/// The same for a line that is written soon, and may be another thread's until then.
#define SHEAFNN_PREFETCH_TO_WRITE(address) __builtin_prefetch(address, 1)
#else
#define SHEAFNN_PREFETCH(address) static_cast<void>(address)
#define SHEAFNN_PREFETCH_TO_WRITE(address) static_cast<void>(address)
#endif

/// 1 where the compiler offers vector types (gcc, clang); nvcc's front end gets plain arrays.
#if defined(__GNUC__) && !defined(__CUDACC__)
#define SHEAFNN_VECTOR_TYPES 1
#else
#define SHEAFNN_VECTOR_TYPES 0
#endif

namespace sheafnn {

/// Packs of numbers and small matrices (core/).
namespace math {}
/// What counter-based streams are made of (random/).
namespace random {
using namespace sheafnn::math;
}  // namespace random
/// Rotation groups: charts and distributions (rotation/).
namespace rotation {
using namespace sheafnn::math;
using namespace sheafnn::random;
}  // namespace rotation
/// What is computed with sheaves, and blocks of their Laplacians (sheaf/).
namespace sheaf {
using namespace sheafnn::math;
using namespace sheafnn::random;
using namespace sheafnn::rotation;
}  // namespace sheaf
/// Differentiable layers and what they are made of (layers/, nn/, kernels/).
namespace layers {
using namespace sheafnn::math;
using namespace sheafnn::random;
using namespace sheafnn::sheaf;
}  // namespace layers
/// Figures of predictions: calibration, rejection, conformal sets (uncertainty/).
namespace uncertainty {}
/// Equations that every engine runs (kernels/).
namespace kernels {
using namespace sheafnn::math;
using namespace sheafnn::layers;
using namespace sheafnn::sheaf;
}  // namespace kernels
/// Details that are not for users. The namespace sees the names of all namespaces above.
namespace detail {
using namespace math;
using namespace random;
using namespace rotation;
using namespace sheaf;
using namespace layers;
using namespace uncertainty;
}  // namespace detail

/// Sizes, positions and loop counters (signed, so that differences are safe). Node and arc numbers are stored
/// in graphs as std::int32_t.
using Index = std::ptrdiff_t;

namespace detail {

/// Bytes of the widest vector register this translation unit may use.
#if defined(__AVX512F__)
inline constexpr int register_bytes = 64;
#elif defined(__AVX__)
inline constexpr int register_bytes = 32;
#else
inline constexpr int register_bytes = 16;
#endif

}  // namespace detail

/// Lanes of the packs that rows of features are read in: one cache line of scalars.
template <class Scalar>
inline constexpr int row_lanes = static_cast<int>(64 / sizeof(Scalar));

/// Lanes of the packs that per-arc and per-node mathematics runs on: one register of 32 bytes or more. A matrix of packs
/// takes a register per entry; packs of two would not leave any for the rest.
template <class Scalar>
inline constexpr int lanes = static_cast<int>((detail::register_bytes > 32 ? detail::register_bytes : 32) /
                                              sizeof(Scalar));

}  // namespace sheafnn
