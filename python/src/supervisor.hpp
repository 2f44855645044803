/// \file
/// Python between the epochs of a training: what is called after each, and Ctrl-C.
#pragma once

#include <nanobind/nanobind.h>

#include <chrono>
#include <sheafnn/bsnn/epoch_report.hpp>
#include <sheafnn/bsnn/train_options.hpp>
#include <utility>

#include "interpreter.hpp"

namespace python {

namespace nb = nanobind;
using sheafnn::Index;

/// Calls Python between epochs: `report` with every epoch and the largest number of epochs, and the signal handlers
/// twenty times a second. Ctrl-C ends the training with KeyboardInterrupt, or with the best parameters so far.
class Supervisor {
 public:
  /// \param keep  Ctrl-C keeps the best parameters, see interrupted()
  Supervisor(nb::object report, Index epochs, bool keep = true)
      : report_(std::move(report)), epochs_(epochs), keep_(keep) {}

  sheafnn::EpochAction operator()(const sheafnn::EpochReport& epoch) {
    if (before_end_ && interpreter_ends()) park_released();
    if (interrupted_) return sheafnn::EpochAction::stop;
    const auto now = std::chrono::steady_clock::now();
    const bool look = now - looked_ > pause;
    if (!look && report_.is_none()) return sheafnn::EpochAction::keep_training;
    const GilAcquire acquire;
    if (look) {
      looked_ = now;
      if (check_signals()) return sheafnn::EpochAction::stop;
    }
    if (report_.is_none()) return sheafnn::EpochAction::keep_training;
    try {
      const nb::object answer = or_park([&]() -> nb::object { return report_(epoch, epochs_); });
      if (answer.is_none()) return sheafnn::EpochAction::keep_training;
      const int truth = or_park([&] { return PyObject_IsTrue(answer.ptr()); });  // NumPy's False as well
      if (truth < 0) throw nb::python_error();
      return truth == 0 ? sheafnn::EpochAction::stop : sheafnn::EpochAction::keep_training;
    } catch (const nb::python_error& error) {  // Python runs the signal handlers as well where a function begins
      if (!keep_ || !error.matches(PyExc_KeyboardInterrupt)) throw;
      interrupted_ = true;
      return sheafnn::EpochAction::stop;
    }
  }
  /// Runs the signal handlers within an epoch, at most twenty times a second. Where Ctrl-C keeps the parameters, the
  /// training ends after the epoch.
  void look() {
    if (before_end_ && interpreter_ends()) park_released();
    const auto now = std::chrono::steady_clock::now();
    if (interrupted_ || now - looked_ <= pause) return;
    const GilAcquire acquire;
    looked_ = now;
    check_signals();
  }
  /// Runs the signal handlers. \returns whether there was a Ctrl-C that keeps the parameters
  bool check_signals() {
    if (or_park([] { return PyErr_CheckSignals(); }) == 0) return false;
    if (!keep_ || PyErr_ExceptionMatches(PyExc_KeyboardInterrupt) == 0) throw nb::python_error();
    PyErr_Clear();
    return interrupted_ = true;
  }
  [[nodiscard]] bool interrupted() const { return interrupted_; }

 private:
  static constexpr std::chrono::milliseconds pause{50};

  nb::object report_;
  Index epochs_;
  bool keep_;
  bool before_end_ = !interpreter_ends();
  std::chrono::steady_clock::time_point looked_ = std::chrono::steady_clock::now();
  bool interrupted_ = false;
};

}  // namespace python
