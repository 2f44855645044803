/// \file
/// SIGINT (Ctrl-C) and SIGTERM as a request that long computations check from time to time.
#pragma once

#include <atomic>
#include <csignal>
#include <cstdio>
#include <sheafnn/bsnn/train_options.hpp>
#include <stdexcept>
#include <string>

namespace programs {

/// While one exists, the first SIGINT or SIGTERM is noted instead of ending the program; a second one ends it.
class Interruption {
 public:
  Interruption() {
    for (const int signal : {SIGINT, SIGTERM}) {
      struct sigaction action = {};
      action.sa_handler = [](int number) { noted_ = number; };
      action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
      sigaction(signal, &action, nullptr);
    }
  }
  ~Interruption() {
    for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, SIG_DFL);
  }
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  /// The signal that came, or 0.
  [[nodiscard]] static int signal() noexcept { return noted_; }
  /// The exit status that a shell reports for a program that this signal ended.
  [[nodiscard]] static int exit_code() noexcept { return 128 + noted_; }

 private:
  static_assert(std::atomic<int>::is_always_lock_free, "a handler of signals may take no lock");
  static inline std::atomic<int> noted_ = 0;  // which trainings side by side read, each in its thread
};

/// Thrown out of work that a signal ended before it was done.
class Interrupted : public std::runtime_error {
 public:
  /// \param signal  its number \param hint  follows in the message
  explicit Interrupted(int signal, const std::string& hint = "")
      : std::runtime_error("interrupted by signal " + std::to_string(signal) + hint), signal_(signal) {}
  /// The exit status that a shell reports for a program that this signal ended.
  [[nodiscard]] int exit_code() const noexcept { return 128 + signal_; }

 private:
  int signal_;
};

/// What a training does after an epoch: it stops where a signal came.
[[nodiscard]] inline sheafnn::EpochAction wanted_action() {
  return Interruption::signal() != 0 ? sheafnn::EpochAction::stop : sheafnn::EpochAction::keep_training;
}

/// The exit status of a program that writes its results although a signal came, and says so; 0: none came.
///
/// \param hint  follows in the message
[[nodiscard]] inline int exit_status(const char* program, const char* hint = "") {
  if (Interruption::signal() == 0) return 0;
  std::fprintf(stderr, "%s: interrupted by signal %d%s\n", program, Interruption::signal(), hint);
  return Interruption::exit_code();
}

}  // namespace programs
