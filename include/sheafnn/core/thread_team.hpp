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
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/processor.hpp"

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#endif

namespace sheafnn::detail {

/// A processor's hint that a loop only waits.
inline void relax() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Waits until ready() holds: spins for a few microseconds, then yields the processor. So a loop costs little on an
/// idle machine, and on a busy one no waiting thread burns the time slice that the work needs.
///
/// \param yields  how often to yield before giving up
/// \returns whether it held in time
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

/// Threads that run one loop at a time, and a task during the loops of a caller. All members may be called from
/// any thread.
class ThreadTeam {
 public:
  /// The team of this process. Its threads are joined when the process ends. A thread that outlives main() may continue
  /// its loops, and runs them alone. A forked child has a team of its own, because only the thread that forked runs there.
  static ThreadTeam& instance() {
    ThreadTeam* const team = current_.load(std::memory_order_acquire);
    return team != nullptr ? *team : start();
  }
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  /// Lets `threads` threads share a loop, the caller among them. Without this as many do as there are processors, at
  /// least two: more would take turns, and waking them costs more than they do. For tests of the team.
  void allow(int threads) noexcept { most_threads_ = threads; }

  /// Calls work(rank) for rank = 0 … count − 1, rank 0 in the calling thread, and returns when all are done. Of more
  /// ranks than threads, each thread does a range. When the caller has finished its own ranges, it also takes the
  /// ranges that no worker has started. It never waits for a thread that the system has not scheduled. While the team
  /// runs another loop (of another thread, or an enclosing one), the caller does everything itself.
  ///
  /// \param work  must not throw
  template <class Work>
  void run(int count, const Work& work) {
    std::unique_lock<std::mutex> lock(busy_, std::defer_lock);
    if (in_team_ || closing_.load(std::memory_order_relaxed) || !lock.try_lock()) {
      for (int rank = 0; rank < count; ++rank) work(rank);
      return;
    }
    in_team_ = true;
    const int most = std::min(count, most_threads_.load(std::memory_order_relaxed));
    grow(most - 1);
    const int offered_to = std::min(most - 1, static_cast<int>(workers_.size()));
    const auto range = [&work, ranks = std::int64_t{count}, members = offered_to + 1](int member) {
      const int end = static_cast<int>(ranks * (member + 1) / members);
      for (int rank = static_cast<int>(ranks * member / members); rank < end; ++rank) work(rank);
    };
    const Loop loop{[](const void* body, int member) { (*static_cast<const decltype(range)*>(body))(member); }, &range,
                    current_processor()};
    const auto start = Clock::now();
    for (int i = 0; i < offered_to; ++i) workers_[static_cast<std::size_t>(i)].offer(loop, start);
    range(0);
    bool begun = false;
    for (int i = 0; i < offered_to; ++i) {
      if (workers_[static_cast<std::size_t>(i)].withdraw()) {
        range(i + 1);
      } else {
        begun = true;
      }
    }
    if (begun) wait_for(offered_to, start);
    in_team_ = false;
  }

  /// Calls task() in another thread, if one is free, while the caller runs body(). When the task is done, its thread joins
  /// the loops of body(). If it has not started by the end of body(), the caller runs it. Loops within the task are run by
  /// its thread alone.
  ///
  /// \throws  what task() or body() throws, after the other has ended; after body() threw, the task may
  ///          never begin
  template <class Task, class Body>
  void run_beside(const Task& task, const Body& body) {
    SideTask side_task{[](const void* work) { (*static_cast<const Task*>(work))(); }, &task, current_processor()};
    Worker* const worker = in_team_ ? nullptr : offer_side_task(side_task);
    const auto taken = [&] { return worker != nullptr && finish_side_task(*worker, side_task); };
    try {
      body();
    } catch (...) {
      static_cast<void>(taken());
      throw;
    }
    if (!taken()) {
      task();
    } else if (side_task.failure) {
      std::rethrow_exception(side_task.failure);
    }
  }

 private:
  using Clock = std::chrono::steady_clock;

  /// The system may wake a thread on the caller's processor, where they would take turns, and leave it there for long.
  static void move_off(int processor) noexcept {
    if (processor >= 0 && current_processor() == processor) leave_processor(processor);
  }

  /// A loop of run(), to be called with the index of a member.
  struct Loop {
    void (*call)(const void*, int) = nullptr;
    const void* body = nullptr;
    int processor = -1;  ///< the caller's
  };

  /// A task of run_beside().
  struct SideTask {
    void (*call)(const void*);
    const void* task;
    int processor;  ///< the caller's
    std::exception_ptr failure = nullptr;
    std::atomic<bool> done{false};

    void run() noexcept {
      move_off(processor);
      try {
        call(task);
      } catch (...) {
        failure = std::current_exception();
      }
      done.store(true, std::memory_order_release);  // the caller may destroy this object from here on
    }
  };

  /// A cooldown in which something is not tried again. It is a multiple of the lost time and doubles with every loss, so
  /// that the total loss stays small.
  class Cooldown {
   public:
    void begin(Clock::time_point now, Clock::duration lost) noexcept {
      factor_ = std::min(2 * factor_, 64);
      until_ = now + factor_ * lost;
    }
    /// Halves the next cooldown, after a success.
    void shorten() noexcept { factor_ = std::max(1, factor_ / 2); }
    [[nodiscard]] bool over(Clock::time_point now) const noexcept { return now >= until_; }

   private:
    int factor_ = 1;
    Clock::time_point until_{};
  };

  /// A thread of the team, as the caller sees it: where it is offered work. What both threads write lies in one cache
  /// line, the only one that moves between their processors for every loop.
  class alignas(64) Worker {
   public:
    /// Offers work, unless the worker is in a cooldown.
    void offer(const Loop& loop, Clock::time_point now) noexcept {
      woken_ = asleep_.load();
      offered_ = preempted_.over(now) && (!woken_ || woke_late_.over(now));
      if (!offered_) return;
      now_ = now;
      loop_ = loop;
      working_.store(true, std::memory_order_relaxed);
      notify();
    }
    /// After offer(), by the same thread: takes the work back. \returns false if the worker has started it
    [[nodiscard]] bool withdraw() noexcept {
      if (!offered_) return true;
      offered_ = !take();
      if (!offered_ && woken_) woke_late_.begin(now_, std::chrono::microseconds(5));  // what waking costs
      return !offered_;
    }
    /// After withdraw(), by the same thread: has the worker finished?
    [[nodiscard]] bool done() const noexcept { return !offered_ || !working_.load(std::memory_order_acquire); }
    /// After the loop, by the same thread: how long the caller waited for workers beyond what was to be expected, or 0.
    void record_wait(Clock::time_point now, Clock::duration lost) noexcept {
      if (!offered_) return;
      if (lost > Clock::duration::zero()) {
        preempted_.begin(now, lost);
      } else {
        preempted_.shorten();
        woke_late_.shorten();
      }
    }
    /// Opens an offer and wakes the thread if it sleeps.
    void notify() noexcept { move(1); }
    /// Offers a task to run during the caller's loops, unless the worker has one already or was preempted lately.
    /// \returns whether it did
    [[nodiscard]] bool offer(SideTask& side_task, Clock::time_point now) noexcept {
      SideTask* none = nullptr;
      if (!preempted_.over(now) || !side_task_.compare_exchange_strong(none, &side_task)) return false;
      move(2);
      return true;
    }
    /// After offer(side_task): takes it back. \returns false if the worker has started it
    [[nodiscard]] bool withdraw(SideTask& side_task) noexcept {
      SideTask* offered = &side_task;
      return side_task_.compare_exchange_strong(offered, nullptr);
    }
    /// The offered task, if no thread has taken it; else null.
    [[nodiscard]] SideTask* take_side_task() noexcept {
      return side_task_.load(std::memory_order_relaxed) == nullptr ? nullptr : side_task_.exchange(nullptr);
    }
    /// Accepts an open offer. \returns false if there is none, or it was withdrawn
    [[nodiscard]] bool take() noexcept {
      std::uint32_t seen = moves_.load(std::memory_order_acquire);
      return seen % 2 == 1 && moves_.compare_exchange_strong(seen, seen + 1, std::memory_order_acquire);
    }
    /// After take(): runs the work.
    void work(int member) noexcept {
      move_off(loop_.processor);
      loop_.call(loop_.body, member);
      working_.store(false, std::memory_order_release);
    }
    void wait_for_offer() noexcept {
      const auto open = [this] {
        return moves_.load(std::memory_order_acquire) % 2 == 1 ||
               side_task_.load(std::memory_order_acquire) != nullptr;
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
    std::atomic<std::uint32_t> moves_{0};  ///< offers made and closed: odd while one is open
    std::atomic<bool> asleep_{false};
    std::atomic<bool> working_{false};           ///< an offered loop is not finished
    std::atomic<SideTask*> side_task_{nullptr};  ///< a task offered by run_beside()
    Loop loop_;
    // Written by the thread that offers.
    alignas(64) bool offered_ = false;  ///< this loop was offered, and not withdrawn …
    bool woken_ = false;                ///< … to a sleeping worker
    Clock::time_point now_{};
    Cooldown preempted_;  ///< after the worker was preempted and kept the caller waiting: no offers
    Cooldown woke_late_;  ///< after it woke too late to be of use: no loops while it sleeps
  };

  /// Waits for the first `offered_to` workers. They have as much to do as the caller had: one that takes much longer
  /// was preempted.
  void wait_for(int offered_to, Clock::time_point start) {
    const auto own = Clock::now() - start;
    for (int i = 0; i < offered_to; ++i) {
      const auto done = [&worker = workers_[static_cast<std::size_t>(i)]] { return worker.done(); };
      while (!wait_briefly(done, 1 << 20)) {
      }
    }
    const auto now = Clock::now();
    const auto waited = now - start - own;
    const bool slow = waited > own + std::chrono::microseconds(10);
    for (int i = 0; i < offered_to; ++i) {
      workers_[static_cast<std::size_t>(i)].record_wait(now, slow ? waited : Clock::duration::zero());
    }
  }

  /// \returns the worker that the task was offered to, or null
  [[nodiscard]] Worker* offer_side_task(SideTask& side_task) {
    const std::unique_lock<std::mutex> lock(busy_, std::try_to_lock);
    if (closing_.load(std::memory_order_relaxed) || !lock.owns_lock()) return nullptr;
    grow(1);
    return !workers_.empty() && workers_.front().offer(side_task, Clock::now()) ? &workers_.front() : nullptr;
  }
  /// After the caller's own work: waits for the task if its worker has started it. \returns false if it has not, and
  /// never will
  [[nodiscard]] static bool finish_side_task(Worker& worker, SideTask& side_task) {
    if (worker.withdraw(side_task)) return false;
    const auto done = [&side_task] { return side_task.done.load(std::memory_order_acquire); };
    while (!wait_briefly(done, 1 << 20)) {
    }
    return true;
  }

  /// The first team of a process, or of a forked child.
  SHEAFNN_NOINLINE static ThreadTeam& start() {
    static const Lifetime lifetime;
    std::unique_ptr<ThreadTeam> team(new ThreadTeam);
    ThreadTeam* other = nullptr;
    return current_.compare_exchange_strong(other, team.get()) ? *team.release() : *other;
  }
  /// Ends the team with the process.
  struct Lifetime {
    Lifetime() {
#if defined(__unix__) || defined(__APPLE__)
      ::pthread_atfork(nullptr, nullptr, [] { abandoned_ = current_.exchange(nullptr); });
#endif
    }
    Lifetime(const Lifetime&) = delete;
    Lifetime& operator=(const Lifetime&) = delete;
    ~Lifetime() {
      // The object stays: other threads may still call it.
      if (ThreadTeam* const team = current_.load()) team->close();
    }
  };

  ThreadTeam() = default;
  friend std::default_delete<ThreadTeam>;
  ~ThreadTeam() = default;

  /// Ends the threads after the loop that another thread may be running, and keeps the team busy for ever.
  void close() {
    closing_ = true;
    if (in_team_) return;  // exit() within a loop: its end would never come
    busy_.lock();
    stop_ = true;
    for (Worker& worker : workers_) worker.notify();
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

  /// Starts threads until there are `count` besides the caller, or as many as the system and its memory grant.
  void grow(int count) noexcept {
    while (static_cast<int>(threads_.size()) < count) {
      const std::size_t before = workers_.size();
      try {
        Worker& worker = workers_.emplace_back();
        threads_.emplace_back([this, &worker, member = static_cast<int>(before) + 1] { serve(worker, member); });
      } catch (const std::exception&) {
        while (workers_.size() > before) workers_.pop_back();  // the caller does the work of missing threads
        return;
      }
    }
  }

  void serve(Worker& worker, int member) {
    in_team_ = true;
    while (true) {
      worker.wait_for_offer();
      if (SideTask* const side_task = worker.take_side_task()) side_task->run();
      if (!worker.take()) continue;
      if (stop_) return;
      worker.work(member);
    }
  }

  std::atomic<int> most_threads_{std::max(2, static_cast<int>(std::thread::hardware_concurrency()))};
  std::mutex busy_;
  std::deque<Worker> workers_;  ///< at fixed addresses, which the threads refer to
  std::vector<std::thread> threads_;
  bool stop_ = false;  ///< written before the last offers
  std::atomic<bool> closing_{false};  ///< no further loops of the team, so that close() gets the lock
  static inline thread_local bool in_team_ = false;
  static inline std::atomic<ThreadTeam*> current_{nullptr};
  static inline ThreadTeam* abandoned_ = nullptr;  ///< the parent's; its threads cannot be joined in a child
};

}  // namespace sheafnn::detail
