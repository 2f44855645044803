/// \file
/// A heap that counts and, when told to, fails; to be included before Eigen. counted_memory.cpp replaces operator new
/// and, with glibc and without sanitizers, malloc for the whole program: what the standard library, zlib and Eigen ask
/// for is counted and fails as well.
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

namespace heap {

/// Calls of operator new so far, and Eigen's own requests while they were forbidden.
inline std::atomic<std::size_t> allocations = 0;
inline void count_allocation() { ++allocations; }

/// Which requests of memory fail: the n-th from now on, or that one and all after it.
enum class Failing { once, from_then_on };

/// Counts requests from now on, in all threads, and lets them fail. n = 0: none fails.
void begin_failing(long n, Failing which);
/// No request fails any more. \returns how many there were since begin_failing()
long end_failing();
/// Blocks that are allocated and not yet freed; where malloc cannot be replaced, those of operator new.
[[nodiscard]] long live_blocks();

}  // namespace heap

// Eigen takes memory from malloc, and asserts that it may; all of its assertions are kept, also in release builds.
#define EIGEN_RUNTIME_NO_MALLOC
#define eigen_assert(condition)                 \
  do {                                          \
    if (!(condition)) heap::count_allocation(); \
  } while (false)
