/// \file
/// Square roots of the elements of one compiler vector, which packs are made of.
#pragma once

#include <cstring>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/eigen.hpp"

#if defined(__SSE2__) && !defined(__CUDACC__)
#include <immintrin.h>
#endif

namespace sheafnn::detail {

/// Correctly rounded on x86, by the one instruction there is. It keeps the division unit busy and leaves the other units to
/// the products around it; an estimate with Newton steps would not.
///
/// \tparam T  the elements of Chunk: float or double
template <class T, class Chunk>
[[nodiscard]] SHEAFNN_INLINE Chunk vector_sqrt(Chunk a) {
#if SHEAFNN_VECTOR_TYPES
  [[maybe_unused]] constexpr bool single = sizeof(T) == 4;
#if defined(__AVX512F__)
  if constexpr (sizeof(Chunk) == 64) {
    if constexpr (single) return (Chunk)_mm512_maskz_sqrt_ps(0xffff, (__m512)a);
    if constexpr (!single) return (Chunk)_mm512_maskz_sqrt_pd(0xff, (__m512d)a);
  }
#endif
#if defined(__AVX__)
  if constexpr (sizeof(Chunk) == 32) {
    if constexpr (single) return (Chunk)_mm256_sqrt_ps((__m256)a);
    if constexpr (!single) return (Chunk)_mm256_sqrt_pd((__m256d)a);
  }
#endif
#if defined(__SSE2__)
  if constexpr (sizeof(Chunk) == 16) {
    if constexpr (single) return (Chunk)_mm_sqrt_ps((__m128)a);
    if constexpr (!single) return (Chunk)_mm_sqrt_pd((__m128d)a);
  }
#endif
#endif
  Eigen::Array<T, static_cast<int>(sizeof(Chunk) / sizeof(T)), 1> x;
  std::memcpy(x.data(), &a, sizeof a);
  x = x.sqrt().eval();
  std::memcpy(&a, x.data(), sizeof a);
  return a;
}

}  // namespace sheafnn::detail
