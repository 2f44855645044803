/// \file
/// Fork-join loops with a static partition, by the library's own threads, or by OpenMP where SHEAFNN_USE_OPENMP is
/// defined.
///
/// The partition determines which thread does the work, never what is computed. Callers give every index an independent result, so
/// that results do not depend on the number of threads. Arithmetic in loops flushes subnormal numbers to 0 (subnormals.hpp),
/// whichever thread runs them.
#pragma once

#include <algorithm>
#include <thread>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/execution.hpp"
#include "sheafnn/core/subnormals.hpp"

#if defined(SHEAFNN_USE_OPENMP) && defined(_OPENMP)
#include <omp.h>
#else
#include "sheafnn/core/thread_team.hpp"
#endif

namespace sheafnn {

/// Number of hardware threads, at least 1.
[[nodiscard]] inline int hardware_threads() {
#if defined(SHEAFNN_USE_OPENMP) && defined(_OPENMP)
  return std::max(1, omp_get_num_procs());
#else
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
#endif
}

namespace detail {

/// A loop over ranges, of any type: parallel_for() is compiled once, and not once for every body.
class RangeLoop {
 public:
  template <class Body>
  explicit RangeLoop(const Body& body)
      : run_([](const void* erased, Index begin, Index end) { (*static_cast<const Body*>(erased))(begin, end); }),
        body_(&body) {}

  /// Calls the body with [begin, end).
  void operator()(Index begin, Index end) const {
    const FlushSubnormals flush;
    run_(body_, begin, end);
  }

 private:
  void (*run_)(const void*, Index, Index);
  const void* body_;
};

/// parallel_for() with an erased body.
SHEAFNN_NOINLINE inline void parallel_ranges(Execution execution, Index count, Index grain, const RangeLoop& loop) {
  if (count <= 0) return;
  const Index pieces = (count + grain - 1) / grain;
  const int team = static_cast<int>(std::min<Index>(execution.threads(), pieces));
  if (team <= 1) {
    loop(0, count);
    return;
  }
  const auto piece = [&](int rank) {
    const Index begin = pieces * rank / team * grain;
    const Index end = std::min(count, pieces * (rank + 1) / team * grain);
    if (begin < end) loop(begin, end);
  };
#if defined(SHEAFNN_USE_OPENMP) && defined(_OPENMP)
  // More threads than processors would take turns at OpenMP's barriers.
  const int threads = std::min(team, std::max(2, omp_get_num_procs()));
#pragma omp parallel num_threads(threads)
  {
    // A runtime that grants fewer threads than requested still runs every piece.
    for (int rank = omp_get_thread_num(); rank < team; rank += omp_get_num_threads()) piece(rank);
  }
#else
  ThreadTeam::instance().run(team, piece);
#endif
}

}  // namespace detail

/// Calls body(begin, end) on disjoint ranges that cover [0, count), one range per thread.
///
/// \param execution  how many threads may work
/// \param count    number of indices; there are no ranges if it is 0 or negative
/// \param grain    Unchecked: at least 1. Ranges start at multiples of it, and no thread gets fewer indices. With too little
///                 work fewer threads run, and with one thread the body is simply called
/// \param body     must not throw
template <class Body>
void parallel_for(Execution execution, Index count, Index grain, const Body& body) {
  detail::parallel_ranges(execution, count, grain, detail::RangeLoop(body));
}

namespace detail {

/// Calls task() and body(), which must not depend on each other: task() in another thread while the caller runs body(), if
/// one is free. With one thread, and with OpenMP, body() comes first.
///
/// \param execution  as for parallel_for()
/// \param task     its loops run in its thread alone
/// \throws         what task() or body() throws, after the other has ended; after body() threw, the task may
///                 never begin
template <class Task, class Body>
void run_beside(Execution execution, const Task& task, const Body& body) {
#if !(defined(SHEAFNN_USE_OPENMP) && defined(_OPENMP))
  if (execution.threads() > 1) {
    detail::ThreadTeam::instance().run_beside(task, body);
    return;
  }
#else
  static_cast<void>(execution);
#endif
  body();
  task();
}

}  // namespace detail

}  // namespace sheafnn
