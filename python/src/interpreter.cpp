/// \file
/// Calls without the interpreter's lock are counted, so that the interpreter can wait for them when it ends.
#include "interpreter.hpp"

#include <atomic>
#include <chrono>
#include <thread>

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#endif

namespace python {

namespace {

std::atomic<bool> ends = false;
std::atomic<int> running = 0;  ///< calls without the lock that are not parked

/// Tells the calls in other threads to stop, and waits for them, at most a second.
void end() {
  ends = true;
  if (running == 0) return;
  PyThreadState* const state = PyEval_SaveThread();
  const auto last = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  while (running > 0 && std::chrono::steady_clock::now() < last) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  PyEval_RestoreThread(state);
}

}  // namespace

bool interpreter_ends() noexcept { return ends; }

void park() noexcept {
  for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
}

void park_released() noexcept {
  --running;
  park();
}

GilRelease::GilRelease() noexcept : state_(PyEval_SaveThread()), before_end_(!ends) { ++running; }

GilRelease::~GilRelease() {
  if (before_end_ && ends) park_released();
  --running;
  or_park([this] { PyEval_RestoreThread(state_); });
}

void watch_interpreter() {
#if defined(__unix__) || defined(__APPLE__)
  ::pthread_atfork(nullptr, nullptr, [] { running = 0; });  // a child has the thread that forked alone
#endif
  nb::set_leak_warnings(false);  // threads that never end keep their objects
  nb::module_::import_("atexit").attr("register")(nb::cpp_function(&end));
}

}  // namespace python
