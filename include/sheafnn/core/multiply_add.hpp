/// \file
/// a·b + c with one rounding wherever the target has an instruction for it.
///
/// Compilers fuse products and sums in one function and not in another, as vectorisation and inlining have it. Sums
/// that different functions have to compute with the same bits name the fused operation.
#pragma once

#include <cmath>
#include <type_traits>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/pack.hpp"

#if defined(__SSE2__) && !defined(__CUDACC__)
#include <immintrin.h>
#endif

namespace sheafnn::detail {

/// a·b + c for scalars; two roundings on targets without fused operations.
template <class S>
  requires std::is_floating_point_v<S>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE S multiply_add(S a, S b, S c) {
#if defined(FP_FAST_FMA) && defined(FP_FAST_FMAF)
  return std::fma(a, b, c);
#else
  return a * b + c;
#endif
}

/// The same for every element of a compiler vector. \tparam T  its elements: float or double
template <class T, class Chunk>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE Chunk multiply_add_chunk(Chunk a, Chunk b, Chunk c) {
#if SHEAFNN_VECTOR_TYPES
  [[maybe_unused]] constexpr bool single = sizeof(T) == 4;
#if defined(__AVX512F__)
  if constexpr (sizeof(Chunk) == 64) {
    if constexpr (single) return (Chunk)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
    if constexpr (!single) return (Chunk)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
  }
#endif
#if defined(__FMA__)
  if constexpr (sizeof(Chunk) == 32) {
    if constexpr (single) return (Chunk)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
    if constexpr (!single) return (Chunk)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
  }
  if constexpr (sizeof(Chunk) == 16) {
    if constexpr (single) return (Chunk)_mm_fmadd_ps((__m128)a, (__m128)b, (__m128)c);
    if constexpr (!single) return (Chunk)_mm_fmadd_pd((__m128d)a, (__m128d)b, (__m128d)c);
  }
#endif
  for (int i = 0; i < static_cast<int>(sizeof(Chunk) / sizeof(T)); ++i) c[i] = multiply_add<T>(a[i], b[i], c[i]);
  return c;
#else
  return multiply_add<T>(a, b, c);  // a chunk is one value
#endif
}
template <class T, int W>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE Pack<T, W> multiply_add(const Pack<T, W>& a, const Pack<T, W>& b, const Pack<T, W>& c) {
  Pack<T, W> r;
  SHEAFNN_EACH(i, (Pack<T, W>::chunks),
               { r.chunk[i] = multiply_add_chunk<T>(a.chunk[i], b.chunk[i], c.chunk[i]); })
  return r;
}

}  // namespace sheafnn::detail
