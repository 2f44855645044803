/// \file
/// ThreadTeam: the threads behind parallel_for() where OpenMP is not used. Started once, then woken for every
/// loop.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "sheafnn/core/processor.hpp"

namespace sheafnn::detail {

/// A processor's hint that a loop only waits.
inline void relax() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Waits until ready() holds: a few microseconds at full attention, then giving the processor to whoever wants it.
/// So a loop costs little on an idle machine, and on a busy one nobody burns the time slice that the work is
/// waiting for.
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

/// Threads that run one loop at a time, and a task beside the loops of a caller. All members may be called from
/// any thread.
class ThreadTeam {
 public:
  /// The team of this process; its threads are joined when the process ends.
  static ThreadTeam& instance() {
    static ThreadTeam team;
    return team;
  }
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  /// Calls work(rank) for rank = 0 … count − 1, rank 0 in the calling thread, and returns when all are done. What
  /// a thread has not begun when the caller is through with its own, the caller does: it never waits for a thread
  /// that the system has no processor for. A caller who finds the team at another loop (in another thread, or
  /// around this one) does everything itself.
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
    const Loop loop{[](const void* body, int rank) { (*static_cast<const Work*>(body))(rank); }, &work,
                    current_processor()};
    const int seated = std::min(count - 1, static_cast<int>(seats_.size()));
    const auto start = Clock::now();
    for (int i = 0; i < seated; ++i) seats_[static_cast<std::size_t>(i)].offer(loop, start);
    work(0);
    for (int rank = seated + 1; rank < count; ++rank) work(rank);
    bool begun = false;
    for (int i = 0; i < seated; ++i) {
      if (seats_[static_cast<std::size_t>(i)].withdraw()) {
        work(i + 1);
      } else {
        begun = true;
      }
    }
    if (begun) wait_for(seated, start);
    inside_ = false;
  }

  /// Calls task() in another thread, if one is free, while the caller runs body(), whose loops that thread joins
  /// when it is through; what it has not begun by then, the caller does. Loops within the task are run by its
  /// thread alone.
  ///
  /// \throws  what task() or body() throws, after the other has ended; after body() threw, the task may
  ///          never begin
  template <class Task, class Body>
  void run_beside(const Task& task, const Body& body) {
    Aside aside{[](const void* work) { (*static_cast<const Task*>(work))(); }, &task, current_processor()};
    Seat* const seat = inside_ ? nullptr : offer_aside(aside);
    const auto taken = [&] { return seat != nullptr && finish_aside(*seat, aside); };
    try {
      body();
    } catch (...) {
      static_cast<void>(taken());
      throw;
    }
    if (!taken()) {
      task();
    } else if (aside.failure) {
      std::rethrow_exception(aside.failure);
    }
  }

 private:
  using Clock = std::chrono::steady_clock;

  /// The system may wake a thread on the caller's processor, where neither gets on, and leave it there for long.
  static void keep_away(int processor) noexcept {
    if (processor >= 0 && current_processor() == processor) leave_processor(processor);
  }

  /// A loop of run(), to be called with a rank.
  struct Loop {
    void (*call)(const void*, int) = nullptr;
    const void* body = nullptr;
    int processor = -1;  ///< the caller's
  };

  /// A task of run_beside().
  struct Aside {
    void (*call)(const void*);
    const void* task;
    int processor;  ///< the caller's
    std::exception_ptr failure = nullptr;
    std::atomic<bool> done{false};

    void run() noexcept {
      keep_away(processor);
      try {
        call(task);
      } catch (...) {
        failure = std::current_exception();
      }
      done.store(true, std::memory_order_release);  // the last that is known to exist of it
    }
  };

  /// A time in which something is not tried again: a multiple of the time that was lost, twice that of the time
  /// before. So little is lost in all.
  class Rest {
   public:
    void begin(Clock::time_point now, Clock::duration lost) noexcept {
      factor_ = std::min(2 * factor_, 64);
      until_ = now + factor_ * lost;
    }
    /// It went well.
    void relent() noexcept { factor_ = std::max(1, factor_ / 2); }
    [[nodiscard]] bool over(Clock::time_point now) const noexcept { return now >= until_; }

   private:
    int factor_ = 1;
    Clock::time_point until_{};
  };

  /// Where one thread is offered work. What both threads write lies in one cache line, which travels between their
  /// processors for every loop, and nothing else does.
  class alignas(64) Seat {
   public:
    /// Offers work, unless that cost more than it gave a moment ago.
    void offer(const Loop& loop, Clock::time_point now) noexcept {
      woken_ = asleep_.load();
      offered_ = robbed_.over(now) && (!woken_ || vain_.over(now));
      if (!offered_) return;
      now_ = now;
      loop_ = loop;
      working_.store(true, std::memory_order_relaxed);
      call();
    }
    /// After offer(), by the same thread: is the work still to be done, and nobody else's any more?
    [[nodiscard]] bool withdraw() noexcept {
      if (!offered_) return true;
      offered_ = !take();
      if (!offered_ && woken_) vain_.begin(now_, std::chrono::microseconds(5));  // what waking costs
      return !offered_;
    }
    /// After withdraw(), by the same thread: has the thread done what it took?
    [[nodiscard]] bool done() const noexcept { return !offered_ || !working_.load(std::memory_order_acquire); }
    /// After the loop, by the same thread: how long was the caller kept waiting, by this thread if it worked? 0:
    /// all was well.
    void judge(Clock::time_point now, Clock::duration lost) noexcept {
      if (!offered_) return;
      if (lost > Clock::duration::zero()) {
        robbed_.begin(now, lost);
      } else {
        robbed_.relent();
        vain_.relent();
      }
    }
    /// Opens an offer and wakes the thread if it sleeps.
    void call() noexcept { move(1); }
    /// Offers a task to do beside the caller's loops, unless the thread has one already, or was lately robbed of
    /// its processor. \returns whether it did
    [[nodiscard]] bool offer(Aside& aside, Clock::time_point now) noexcept {
      Aside* none = nullptr;
      if (!robbed_.over(now) || !aside_.compare_exchange_strong(none, &aside)) return false;
      move(2);
      return true;
    }
    /// After offer(aside): is it still to be done, and nobody else's any more?
    [[nodiscard]] bool withdraw(Aside& aside) noexcept {
      Aside* offered = &aside;
      return aside_.compare_exchange_strong(offered, nullptr);
    }
    /// Takes the task that was offered, unless somebody else did; null: there is none.
    [[nodiscard]] Aside* take_aside() noexcept {
      return aside_.load(std::memory_order_relaxed) == nullptr ? nullptr : aside_.exchange(nullptr);
    }
    /// Takes an open offer, unless somebody else did.
    [[nodiscard]] bool take() noexcept {
      std::uint32_t seen = moves_.load(std::memory_order_acquire);
      return seen % 2 == 1 && moves_.compare_exchange_strong(seen, seen + 1, std::memory_order_acquire);
    }
    /// After take(): does the work.
    void work(int rank) noexcept {
      keep_away(loop_.processor);
      loop_.call(loop_.body, rank);
      working_.store(false, std::memory_order_release);
    }
    void wait_for_offer() noexcept {
      const auto open = [this] {
        return moves_.load(std::memory_order_acquire) % 2 == 1 ||
               aside_.load(std::memory_order_acquire) != nullptr;
      };
      if (wait_briefly(open, 64)) return;
      asleep_.store(true);
      for (std::uint32_t seen = moves_.load(); !open(); seen = moves_.load()) moves_.wait(seen);
      asleep_.store(false);
    }

   private:
    /// Changes what a sleeping thread waits for, and wakes it.
    void move(std::uint32_t by) noexcept {
      moves_.fetch_add(by);
      if (asleep_.load()) moves_.notify_one();
    }
    std::atomic<std::uint32_t> moves_{0};  ///< offers made and ended: odd while one is open
    std::atomic<bool> asleep_{false};
    std::atomic<bool> working_{false};    ///< at the loop that was offered, if it was taken
    std::atomic<Aside*> aside_{nullptr};  ///< a task offered by run_beside()
    Loop loop_;
    // Of the thread that offers.
    alignas(64) bool offered_ = false;  ///< was there an offer in this loop, that the thread took or may take …
    bool woken_ = false;                ///< … and did it sleep?
    Clock::time_point now_{};
    Rest robbed_;  ///< of a thread that kept the caller waiting: no offers
    Rest vain_;    ///< of a thread that woke too late to be of use: no loops while it sleeps
  };

  /// Waits until the threads of the first `seated` seats are done. They have as much to do as the caller had: who
  /// takes much longer was robbed of its processor.
  void wait_for(int seated, Clock::time_point start) {
    const auto own = Clock::now() - start;
    for (int i = 0; i < seated; ++i) {
      const auto done = [&seat = seats_[static_cast<std::size_t>(i)]] { return seat.done(); };
      while (!wait_briefly(done, 1 << 20)) {
      }
    }
    const auto now = Clock::now();
    const auto waited = now - start - own;
    const bool slow = waited > own + std::chrono::microseconds(10);
    for (int i = 0; i < seated; ++i) {
      seats_[static_cast<std::size_t>(i)].judge(now, slow ? waited : Clock::duration::zero());
    }
  }

  /// \returns the seat that was offered the task, or null
  [[nodiscard]] Seat* offer_aside(Aside& aside) {
    const std::unique_lock<std::mutex> lock(busy_, std::try_to_lock);
    if (!lock.owns_lock()) return nullptr;
    grow(1);
    return !seats_.empty() && seats_.front().offer(aside, Clock::now()) ? &seats_.front() : nullptr;
  }
  /// After the caller's own work: waits for the task if its thread took it. \returns false if it did not, and
  /// never will
  [[nodiscard]] static bool finish_aside(Seat& seat, Aside& aside) {
    if (seat.withdraw(aside)) return false;
    const auto done = [&aside] { return aside.done.load(std::memory_order_acquire); };
    while (!wait_briefly(done, 1 << 20)) {
    }
    return true;
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
    inside_ = true;
    while (true) {
      seat.wait_for_offer();
      if (Aside* const aside = seat.take_aside()) aside->run();
      if (!seat.take()) continue;
      if (stop_) return;
      seat.work(rank);
    }
  }

  std::mutex busy_;
  std::deque<Seat> seats_;  ///< of the threads, which find them where they were
  std::vector<std::thread> threads_;
  bool stop_ = false;  ///< written before the last offers
  static inline thread_local bool inside_ = false;
};

}  // namespace sheafnn::detail
