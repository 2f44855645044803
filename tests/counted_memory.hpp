/// \file
/// A heap that counts and, when told to, fails. counted_memory.cpp replaces operator new and, with glibc and without
/// sanitizers, malloc for the whole program: what the standard library, zlib and Eigen ask for is counted and fails as
/// well.
#pragma once

#include <atomic>
#include <cstddef>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SHEAFNN_TEST_SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define SHEAFNN_TEST_SANITIZED
#endif
#endif
#if defined(__GLIBC__) && !defined(SHEAFNN_TEST_SANITIZED)
#define SHEAFNN_TEST_OWN_MALLOC
#endif

namespace heap {

/// Requests of memory so far; where malloc cannot be replaced, requests of operator new alone.
inline std::atomic<std::size_t> allocations = 0;

/// Which requests of memory fail: the n-th from now on, or that one and all after it.
enum class Failing { once, from_then_on };

/// Counts requests from now on, in all threads, and lets them fail. n = 0: none fails.
void begin_failing(long n, Failing which);
/// No request fails any more. \returns how many there were since begin_failing()
long end_failing();
/// Blocks that are allocated and not yet freed; where malloc cannot be replaced, blocks of operator new alone.
[[nodiscard]] long live_blocks();
#if defined(SHEAFNN_TEST_OWN_MALLOC)
/// Their bytes, as many as the C library gave.
[[nodiscard]] long live_bytes();
#endif

}  // namespace heap
