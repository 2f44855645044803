/// \file
/// Bytes on the heap of this process.
#pragma once

#include <cstdlib>  // says which C library it is

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace benchmarks {

/// Bytes in use on the heap; 0 where the C library does not say.
[[nodiscard]] inline double heap_bytes() {
#if defined(__GLIBC_PREREQ)
#if __GLIBC_PREREQ(2, 33)
  const struct mallinfo2 info = mallinfo2();
  return static_cast<double>(info.uordblks + info.hblkhd);
#endif
#endif
  return 0;
}

}  // namespace benchmarks
