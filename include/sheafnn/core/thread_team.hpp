/// \file
/// ThreadTeam: the threads behind parallel_for() where OpenMP is not used. Started once, then woken for every loop.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace sheafnn::detail {

/// A processor's hint that a loop only waits.
inline void relax() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Waits until ready() holds: a few microseconds at full attention, then giving the processor to whoever wants it. So a
/// loop costs little on an idle machine, and on a busy one nobody burns the time slice that the work is waiting for.
/// \returns whether it held before patience ran out
template <class Ready>
bool wait_briefly(const Ready& ready, int yields) {
  for (int i = 0; i < 2000; ++i) {
    if (ready()) return true;
    relax();
  }
  for (int i = 0; i < yields; ++i) {
    if (ready()) return true;
    std::this_thread::yield();
  }
  return false;
}

/// Threads that run one loop at a time. All members may be called from any thread.
class ThreadTeam {
 public:
  /// The team of this process; its threads are joined when the process ends.
  static ThreadTeam& instance() {
    static ThreadTeam team;
    return team;
  }
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  /// Calls work(rank) for rank = 0 … count − 1, rank 0 in the calling thread, and returns when all are done. A caller who
  /// finds the team at another loop (in another thread, or around this one) does everything itself.
  ///
  /// \param work  must not throw
  template <class Work>
  void run(int count, const Work& work) {
    std::unique_lock<std::mutex> lock(busy_, std::defer_lock);
    if (inside_ || !lock.try_lock()) {
      for (int rank = 0; rank < count; ++rank) work(rank);
      return;
    }
    inside_ = true;
    grow(count - 1);
    call_ = [](const void* body, int rank) { (*static_cast<const Work*>(body))(rank); };
    body_ = &work;
    count_ = count;
    pending_.store(static_cast<int>(threads_.size()), std::memory_order_relaxed);
    generation_.fetch_add(1, std::memory_order_release);
    generation_.notify_all();
    work(0);
    for (int rank = static_cast<int>(threads_.size()) + 1; rank < count; ++rank) work(rank);
    const auto done = [this] { return pending_.load(std::memory_order_acquire) == 0; };
    while (!wait_briefly(done, 1 << 20)) {
    }
    inside_ = false;
  }

 private:
  ThreadTeam() = default;
  ~ThreadTeam() {
    stop_ = true;
    generation_.fetch_add(1, std::memory_order_release);
    generation_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  /// Has at least `count` threads beside the caller, or as many as the system grants.
  void grow(int count) {
    try {
      while (static_cast<int>(threads_.size()) < count) {
        const int rank = static_cast<int>(threads_.size()) + 1;
        threads_.emplace_back([this, rank, seen = generation_.load()] { serve(rank, seen); });
      }
    } catch (const std::system_error&) {
      // The caller does the work of threads that are missing.
    }
  }

  void serve(int rank, std::uint32_t seen) {
    while (true) {
      const auto called = [this, seen] { return generation_.load(std::memory_order_acquire) != seen; };
      if (!wait_briefly(called, 64)) generation_.wait(seen, std::memory_order_acquire);
      if (!called()) continue;
      seen = generation_.load(std::memory_order_acquire);
      if (stop_) return;
      if (rank < count_) call_(body_, rank);
      pending_.fetch_sub(1, std::memory_order_release);
    }
  }

  std::mutex busy_;
  std::vector<std::thread> threads_;
  // Written by the caller before it announces a new generation, read by the threads after they saw it.
  void (*call_)(const void*, int) = nullptr;
  const void* body_ = nullptr;
  int count_ = 0;
  bool stop_ = false;
  std::atomic<std::uint32_t> generation_{0};
  std::atomic<int> pending_{0};
  static inline thread_local bool inside_ = false;
};

}  // namespace sheafnn::detail
