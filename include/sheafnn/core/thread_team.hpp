/// \file
/// ThreadTeam: the threads behind parallel_for() where OpenMP is not used. Started once, then woken for every loop.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
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

  /// Calls work(rank) for rank = 0 … count − 1, rank 0 in the calling thread, and returns when all are done. What a thread
  /// has not begun when the caller is through with its own, the caller does: it never waits for a thread that the system
  /// has no processor for. A caller who finds the team at another loop (in another thread, or around this one) does
  /// everything itself.
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
    done_.store(0, std::memory_order_relaxed);
    const int seated = std::min(count - 1, static_cast<int>(seats_.size()));
    const auto start = Clock::now();
    for (int i = 0; i < seated; ++i) seats_[static_cast<std::size_t>(i)].offer();
    work(0);
    for (int rank = seated + 1; rank < count; ++rank) work(rank);
    int begun = 0;
    for (int i = 0; i < seated; ++i) {
      if (seats_[static_cast<std::size_t>(i)].withdraw()) {
        work(i + 1);
      } else {
        ++begun;
      }
    }
    if (begun > 0) wait_for(begun, start);
    inside_ = false;
  }

 private:
  using Clock = std::chrono::steady_clock;

  /// Where one thread is offered work.
  class alignas(64) Seat {
   public:
    /// Offers work, unless experience is against it: waking a thread costs more than a short loop, so that one that was
    /// woken in vain is left asleep for a while; and one that was slow is offered nothing for a while.
    void offer() noexcept {
      const bool sleeps = asleep_.load();
      offered_ = rest_ == 0 && (!sleeps || sleep_ == 0);
      if (offered_) {
        woken_ = sleeps;
        call();
      } else {
        --(rest_ > 0 ? rest_ : sleep_);
      }
    }
    /// After offer(), by the same thread: is the work still to be done, and nobody else's any more?
    [[nodiscard]] bool withdraw() noexcept {
      if (!offered_) return true;
      offered_ = !take();
      sleep_ = !offered_ && woken_ ? 64 : 0;
      return !offered_;
    }
    /// After the loop, by the same thread: was the caller kept waiting, by this thread if it worked? Loops without an offer
    /// double each time, and halve each time that all was well.
    void judge(bool slow) noexcept {
      if (!offered_) return;
      penalty_ = slow ? std::clamp(2 * penalty_, 64, 8192) : penalty_ / 2;
      if (slow) rest_ = penalty_;
    }
    /// Opens an offer and wakes the thread if it sleeps.
    void call() noexcept {
      moves_.fetch_add(1);
      if (asleep_.load()) moves_.notify_one();
    }
    /// Takes an open offer, unless somebody else did.
    [[nodiscard]] bool take() noexcept {
      std::uint32_t seen = moves_.load(std::memory_order_acquire);
      return seen % 2 == 1 && moves_.compare_exchange_strong(seen, seen + 1, std::memory_order_acquire);
    }
    void wait_for_offer() noexcept {
      const auto open = [this] { return moves_.load(std::memory_order_acquire) % 2 == 1; };
      if (wait_briefly(open, 64)) return;
      asleep_.store(true);
      for (std::uint32_t seen = moves_.load(); seen % 2 == 0; seen = moves_.load()) moves_.wait(seen);
      asleep_.store(false);
    }

   private:
    std::atomic<std::uint32_t> moves_{0};  ///< offers made and ended: odd while one is open
    std::atomic<bool> asleep_{false};
    // Of the thread that offers.
    bool offered_ = false;  ///< was there an offer in this loop, that the thread took or may take …
    bool woken_ = false;    ///< … and did it sleep?
    int sleep_ = 0;         ///< loops for which it is left asleep
    int rest_ = 0;          ///< loops for which it is offered nothing
    int penalty_ = 0;       ///< their number next time
  };

  /// Waits until the threads that began are done. They have as much to do as the caller had: who takes much longer was
  /// robbed of its processor, or shares the caller's.
  void wait_for(int begun, Clock::time_point start) {
    const auto own = Clock::now() - start;
    const auto done = [this, begun] { return done_.load(std::memory_order_acquire) == begun; };
    while (!wait_briefly(done, 1 << 20)) {
    }
    const bool slow = Clock::now() - start > 2 * own + std::chrono::microseconds(10);
    for (Seat& seat : seats_) seat.judge(slow);
  }

  ThreadTeam() = default;
  ~ThreadTeam() {
    stop_ = true;
    for (Seat& seat : seats_) seat.call();
    for (std::thread& thread : threads_) thread.join();
  }

  /// Has at least `count` threads beside the caller, or as many as the system grants.
  void grow(int count) {
    while (static_cast<int>(threads_.size()) < count) {
      Seat& seat = seats_.emplace_back();
      try {
        threads_.emplace_back([this, &seat, rank = static_cast<int>(seats_.size())] { serve(seat, rank); });
      } catch (const std::system_error&) {
        seats_.pop_back();  // the caller does the work of threads that are missing
        return;
      }
    }
  }

  void serve(Seat& seat, int rank) {
    while (true) {
      seat.wait_for_offer();
      if (!seat.take()) continue;
      if (stop_) return;
      call_(body_, rank);
      done_.fetch_add(1, std::memory_order_release);
    }
  }

  std::mutex busy_;
  std::deque<Seat> seats_;  ///< of the threads, which find them where they were
  std::vector<std::thread> threads_;
  // Written by the caller before it offers work, read by those who took it.
  void (*call_)(const void*, int) = nullptr;
  const void* body_ = nullptr;
  bool stop_ = false;
  std::atomic<int> done_{0};
  static inline thread_local bool inside_ = false;
};

}  // namespace sheafnn::detail
