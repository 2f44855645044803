/// \file
/// The tables of the machine's calibration and of the kernels.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "epoch_table.hpp"
#include "measurement.hpp"

namespace benchmarks {

/// Markdown tables of the measurements "calibration/WHAT/THREADS" and "KERNEL/VARIANT/THREADS": one row for each kernel,
/// with one thread and with the other number of threads, if there is one.
[[nodiscard]] inline std::string kernel_table(const std::vector<Measurement>& all) {
  std::string more;
  for (const Measurement& m : all) {
    if (m.part(2) != "1") more = m.part(2);
  }
  const auto other = [&](const Measurement& m) {
    return more.empty() ? nullptr : find(all, m.part(0) + "/" + m.part(1) + "/" + more);
  };
  std::string machine = "| limit | 1 thread |", kernels = "| kernel | | µs | GFLOP/s | GB/s | of the roofline |";
  std::string machine_rule = "| --- | --- |", kernels_rule = "| --- | --- | --- | --- | --- | --- |";
  if (!more.empty()) {
    machine += " " + more + " threads |";
    machine_rule += " --- |";
    kernels += " µs, " + more + " threads | of the roofline |";
    kernels_rule += " --- | --- |";
  }
  machine += "\n" + machine_rule + "\n";
  kernels += "\n" + kernels_rule + "\n";
  const auto rate = [](const Measurement& m) {
    return m["GFLOP/s"] > 0 ? figure(m["GFLOP/s"]) + " GFLOP/s" : figure(m["GB/s"]) + " GB/s";
  };
  const auto share = [](const Measurement& m) { return format("%.0f%%", 100 * m["roofline"]); };
  for (const Measurement& m : all) {
    if (m.part(2) != "1") continue;
    const Measurement* threaded = other(m);
    if (m.part(0) == "calibration") {
      machine += "| " + m.part(1) + " | " + rate(m) + " |";
      if (threaded != nullptr) machine += " " + rate(*threaded) + " |";
      machine += "\n";
    } else {
      kernels += "| " + m.part(0) + " | " + m.part(1) + " | " + figure(m["us"]) + " | " + figure(m["GFLOP/s"]) +
                 " | " + figure(m["GB/s"]) + " | " + share(m) + " |";
      if (threaded != nullptr) kernels += " " + figure((*threaded)["us"]) + " | " + share(*threaded) + " |";
      kernels += "\n";
    }
  }
  return machine + "\n" + kernels;
}

}  // namespace benchmarks
