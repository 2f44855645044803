/// \file
/// Time of what an executor has recorded: medians over blocks of replays.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <sheafnn/core/config.hpp>
#include <vector>

#include "gpu/executor.hpp"
#include "support/figures.hpp"

namespace benchmarks {

/// How long a measurement may take.
struct Effort {
  double seconds = 0.3;  ///< stop after this time, …
  int min_blocks = 5;    ///< … but not before this many blocks
  int max_blocks = 50;
};

/// Seconds of one replay.
struct Timing {
  double median = 0, fastest = 0;
  int blocks = 0;
  sheafnn::Index replays = 0;  ///< of a block
};

#if defined(__CUDACC__)

/// Two CUDA events.
class EventPair {
 public:
  explicit EventPair(int device) : device_(device) {
    sheafnn::batch::check(cudaEventCreate(&begin_), "cudaEventCreate", device_);
    sheafnn::batch::check(cudaEventCreate(&end_), "cudaEventCreate", device_);
  }
  EventPair(const EventPair&) = delete;
  EventPair& operator=(const EventPair&) = delete;
  ~EventPair() {
    static_cast<void>(cudaEventDestroy(begin_));
    static_cast<void>(cudaEventDestroy(end_));
  }
  /// Seconds of the work between two moments on a stream.
  template <class Work>
  [[nodiscard]] double seconds(cudaStream_t stream, const Work& work) {
    sheafnn::batch::check(cudaEventRecord(begin_, stream), "cudaEventRecord", device_);
    work();
    sheafnn::batch::check(cudaEventRecord(end_, stream), "cudaEventRecord", device_);
    sheafnn::batch::check(cudaEventSynchronize(end_), "cudaEventSynchronize", device_);
    float milliseconds = 0;
    sheafnn::batch::check(cudaEventElapsedTime(&milliseconds, begin_, end_), "cudaEventElapsedTime", device_);
    return 1e-3 * static_cast<double>(milliseconds);
  }

 private:
  int device_;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

#endif

/// Seconds by the host's clock, from an idle executor to an idle executor.
template <class E, class Work>
[[nodiscard]] double host_seconds_of(E& executor, const Work& work) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  work();
  executor.synchronise();
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// The same by events on the executor's stream, where it shows the stream. Blocks of many replays make the
/// difference, one launch and one wait, small.
template <class E, class Work>
[[nodiscard]] double seconds_of(E& executor, const Work& work) {
  executor.synchronise();
#if defined(__CUDACC__)
  if constexpr (requires { executor.stream(); }) {
    EventPair events(executor.device());
    return events.seconds(executor.stream(), work);
  } else {
    return host_seconds_of(executor, work);
  }
#else
  return host_seconds_of(executor, work);
#endif
}

/// Times replays of the recording. A block has as many as take 10 milliseconds, so that their launches overlap
/// with work on the device as they do in training; the first two blocks do not count.
template <class E>
[[nodiscard]] Timing time_replays(E& executor, const Effort& effort) {
  Timing r;
  const auto block = [&] {
    return seconds_of(executor, [&] {
      for (sheafnn::Index k = 0; k < r.replays; ++k) executor.replay();
    });
  };
  r.replays = 1;
  static_cast<void>(block());
  r.replays =
      std::clamp<sheafnn::Index>(static_cast<sheafnn::Index>(std::ceil(0.01 / std::max(block(), 1e-6))), 1, 256);
  std::vector<double> seconds;
  double total = 0;
  while (static_cast<int>(seconds.size()) < effort.min_blocks ||
         (total < effort.seconds && static_cast<int>(seconds.size()) < effort.max_blocks)) {
    const double taken = block();
    total += taken;
    seconds.push_back(taken / static_cast<double>(r.replays));
  }
  r.median = median(seconds);
  r.fastest = *std::min_element(seconds.begin(), seconds.end());
  r.blocks = static_cast<int>(seconds.size());
  return r;
}

}  // namespace benchmarks
