/// \file
/// The interpreter's lock, for threads that may outlive the interpreter. While it ends, Python kills every other thread that
/// asks for the lock. Before 3.14 it unwinds the thread's stack, which destructors and noexcept functions do not survive.
/// Such a thread is parked here instead: it sleeps until the process is gone.
#pragma once

#include <nanobind/nanobind.h>

#include <exception>

namespace python {

namespace nb = nanobind;

/// Whether the interpreter has begun to end. Calls that began earlier stop where they can.
[[nodiscard]] bool interpreter_ends() noexcept;

/// Sleeps until the process ends.
[[noreturn]] void park() noexcept;
/// The same for a thread in the scope of a GilRelease, for which the interpreter does not wait.
[[noreturn]] void park_released() noexcept;

/// What call() returns; parks the thread where Python ends it.
///
/// \throws what call() throws
template <class Call>
decltype(auto) or_park(const Call& call) {
  try {
    return call();
  } catch (const std::exception&) {
    throw;
  } catch (...) {  // the unwinding of a thread that is to end; it may not pass through C++ code
    park();
  }
}

/// Without the lock in its scope.
class GilRelease {
 public:
  GilRelease() noexcept;
  ~GilRelease();
  GilRelease(const GilRelease&) = delete;
  GilRelease& operator=(const GilRelease&) = delete;

 private:
  PyThreadState* state_;
  bool before_end_;
};

/// What call() returns, without the lock.
template <class Call>
auto without_lock(const Call& call) {
  const GilRelease release;
  return call();
}

/// With the lock in its scope.
class GilAcquire {
 public:
  GilAcquire() : state_(or_park([] { return PyGILState_Ensure(); })) {}
  ~GilAcquire() { PyGILState_Release(state_); }
  GilAcquire(const GilAcquire&) = delete;
  GilAcquire& operator=(const GilAcquire&) = delete;

 private:
  PyGILState_STATE state_;
};

/// Registers a function that Python calls before it ends, so that running calls of this module end first.
void watch_interpreter();

}  // namespace python
