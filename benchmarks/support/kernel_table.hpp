/// \file
/// The tables of the machine's calibration and of the kernels.
#pragma once

#include <sheafnn/core/errors.hpp>
#include <string>
#include <vector>

#include "markdown.hpp"
#include "measurement.hpp"

namespace benchmarks {

/// Markdown tables of the measurements "calibration/WHAT/THREADS" and "KERNEL/VARIANT/THREADS": one row for each
/// kernel, with one thread and with the other number of threads, if there is one.
[[nodiscard]] inline std::string kernel_table(const std::vector<Measurement>& all) {
  std::string more;
  for (const Measurement& m : all) {
    if (m.part(2) != "1") more = m.part(2);
  }
  const auto other = [&](const Measurement& m) {
    return more.empty() ? nullptr : find(all, sheafnn::detail::concat(m.part(0), "/", m.part(1), "/", more));
  };
  const auto rate = [](const Measurement& m) {
    return m["GFLOP/s"] > 0 ? figure(m["GFLOP/s"]).append(" GFLOP/s") : figure(m["GB/s"]).append(" GB/s");
  };
  const auto share = [](const Measurement& m) { return format("%.0f%%", 100 * m["roofline"]); };
  std::vector<std::string> limits = {"limit", "1 thread"};
  std::vector<std::string> columns = {"kernel", "", "µs", "GFLOP/s", "GB/s", "of the roofline"};
  if (!more.empty()) {
    limits.push_back(more + " threads");
    columns.insert(columns.end(), {sheafnn::detail::concat("µs, ", more, " threads"), "of the roofline"});
  }
  std::string machine = head(limits), kernels = head(columns);
  for (const Measurement& m : all) {
    if (m.part(2) != "1") continue;
    const Measurement* threaded = other(m);
    std::vector<std::string> cells = {m.part(0), m.part(1)};
    if (m.part(0) == "calibration") {
      cells = {m.part(1), rate(m)};
      if (threaded != nullptr) cells.push_back(rate(*threaded));
      machine += row(cells);
    } else {
      cells.insert(cells.end(), {figure(m["us"]), figure(m["GFLOP/s"]), figure(m["GB/s"]), share(m)});
      if (threaded != nullptr) cells.insert(cells.end(), {figure((*threaded)["us"]), share(*threaded)});
      kernels += row(cells);
    }
  }
  return sheafnn::detail::concat(machine, "\n", kernels);
}

}  // namespace benchmarks
