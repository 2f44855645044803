/// \file
/// Execution: how a computation is run, apart from what it computes.
#pragma once

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"

namespace sheafnn {

/// The number of threads that loops may use. Results never depend on it.
class Execution {
 public:
  /// One thread, or as many as given. \throws std::invalid_argument  fewer than one
  Execution(int threads = 1) : threads_(threads) {  // NOLINT: a plain number is an execution
    if (threads < 1) throw_invalid_argument("threads", threads, "must be at least 1");
  }

  [[nodiscard]] int threads() const noexcept { return threads_; }

  friend bool operator==(const Execution&, const Execution&) = default;

 private:
  int threads_;
};

}  // namespace sheafnn
