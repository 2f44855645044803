/// \file
/// Independent runs side by side on threads of their own, with the results handed out in order.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace programs {

/// Runs job(0), job(1), …, job(count − 1), up to `threads` at a time, while the caller takes the results in order. The
/// caller sees the same sequence as without threads, also when a job throws.
template <class Result>
class SideBySide {
 public:
  /// Thrown out of check_wanted(), so that a job nobody waits for ends.
  struct Unwanted {};

  /// \param job  called at the same time for different numbers; may throw
  SideBySide(int threads, std::size_t count, std::function<Result(std::size_t)> job)
      : job_(std::move(job)), results_(count), errors_(count), wanted_(count) {
    const std::size_t workers = std::min(count, static_cast<std::size_t>(std::max(1, threads)));
    try {
      while (workers_.size() < workers) workers_.emplace_back([this] { work(); });
    } catch (const std::system_error&) {  // no more threads available
      if (workers_.empty()) throw;
    }
  }
  /// Asks the jobs still at work to end and waits for them.
  ~SideBySide() {
    const std::lock_guard lock(mutex_);
    wanted_ = 0;
  }
  SideBySide(const SideBySide&) = delete;
  SideBySide& operator=(const SideBySide&) = delete;

  /// Waits for job i and returns its result or throws what it threw; `meanwhile` is called about ten times a
  /// second.
  template <class Meanwhile>
  Result take(std::size_t i, const Meanwhile& meanwhile) {
    std::unique_lock lock(mutex_);
    while (!finished_.wait_for(lock, std::chrono::milliseconds(100),
                               [&] { return results_[i].has_value() || errors_[i] != nullptr; })) {
      lock.unlock();
      meanwhile();
      lock.lock();
    }
    if (errors_[i] != nullptr) std::rethrow_exception(errors_[i]);
    Result result = std::move(*results_[i]);
    results_[i].reset();
    return result;
  }

  /// To be called by job i from time to time. \throws Unwanted  when its result will not be taken any more
  void check_wanted(std::size_t i) {
    const std::lock_guard lock(mutex_);
    if (i >= wanted_) throw Unwanted{};
  }

 private:
  void work() {
    while (true) {
      std::size_t i = 0;
      {
        const std::lock_guard lock(mutex_);
        if (next_ >= wanted_) return;
        i = next_++;
      }
      try {
        Result result = job_(i);
        const std::lock_guard lock(mutex_);
        results_[i] = std::move(result);
      } catch (...) {
        const std::lock_guard lock(mutex_);
        errors_[i] = std::current_exception();
        // Who takes results in order never gets beyond this one; smaller numbers may still fail before it.
        wanted_ = std::min(wanted_, i + 1);
      }
      finished_.notify_all();
    }
  }

  std::function<Result(std::size_t)> job_;
  std::mutex mutex_;
  std::condition_variable finished_;
  std::vector<std::optional<Result>> results_;
  std::vector<std::exception_ptr> errors_;
  std::size_t next_ = 0;
  std::size_t wanted_;                 ///< jobs from this one on are not wanted
  std::vector<std::jthread> workers_;  ///< joined first
};

}  // namespace programs
