/// \file
/// On which processor a thread runs, and away from it. Linux only; elsewhere the system chooses.
#pragma once

#if defined(__linux__)
#include <sched.h>
#endif

namespace sheafnn::detail {

/// Number of the processor the calling thread runs on, −1 where that is not known.
[[nodiscard]] inline int current_processor() noexcept {
#if defined(__linux__)
  return sched_getcpu();
#else
  return -1;
#endif
}

/// Moves the calling thread from `processor` to another one that it may run on, if there is one. The set of processors
/// on which it may run does not change.
inline void leave_processor(int processor) noexcept {
#if defined(__linux__)
  cpu_set_t allowed;
  if (processor < 0 || processor >= CPU_SETSIZE || sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return;
  if (!CPU_ISSET(processor, &allowed) || CPU_COUNT(&allowed) < 2) return;
  cpu_set_t others = allowed;
  CPU_CLR(processor, &others);
  if (sched_setaffinity(0, sizeof(others), &others) == 0) sched_setaffinity(0, sizeof(allowed), &allowed);
#else
  static_cast<void>(processor);
#endif
}

}  // namespace sheafnn::detail
