/// \file
/// What the sections of the GPU benchmarks share: settings, the measured limits of the device, and their
/// interface.
#pragma once

#include <map>
#include <sheafnn/core/config.hpp>
#include <string>
#include <string_view>

#include "gpu/executor.hpp"
#include "gpu/report.hpp"
#include "gpu/timing.hpp"

namespace benchmarks {

/// What the command line asks for.
struct Settings {
  bool quick = false;  ///< fewer repetitions, smaller graphs
  int device = 0;
  bool in_turn = false;                      ///< no programmatic dependent launch
  bool evaluate_in_turn = false;             ///< no evaluation beside a training pass
  bool mix_apart = false;                    ///< no layer's mixing in the launch of the diffusion below
  sheafnn::Index edges = 60'000'000;         ///< of the largest graph of the section "scaling"
  sheafnn::Index kernel_edges = 20'000'000;  ///< of the graph of the section "kernels"
  std::string only;                          ///< of epochs, filters and batches those whose name contains it
  std::map<std::string, double> cpu;         ///< epochs on the CPU, milliseconds by name (support/cpu_epochs.hpp)

  [[nodiscard]] bool wants(std::string_view name) const { return name.find(only) != std::string_view::npos; }
  [[nodiscard]] Effort effort() const { return quick ? Effort{0.05, 3, 10} : Effort{}; }
};

/// Limits of the device.
struct DeviceLimits {
  double copy = 0;   ///< bytes per second, read plus written, of a copy within its memory
  double sgemm = 0;  ///< floating-point operations per second of a product of matrices, single precision
};
[[nodiscard]] DeviceLimits device_limits(Executor& executor, const Settings& settings);

/// Part of a program that links its file: measures into a report, of which `table` makes Markdown. The table of an empty report has
/// every row, with cells "unmeasured".
struct Section {
  std::string_view name;
  void (*measure)(Executor& executor, const Settings& settings, Report& report);
  std::string (*table)(const Settings& settings, const Report& report);
};

/// The sections of the program, by their place in the order of measurement.
inline std::map<int, Section>& sections() {
  static std::map<int, Section> all;
  return all;
}
/// Adds a section while the program starts.
struct RegisteredSection {
  RegisteredSection(int place, const Section& section) { sections().emplace(place, section); }
};

}  // namespace benchmarks
