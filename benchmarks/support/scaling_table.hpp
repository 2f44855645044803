/// \file
/// The table of how cost grows with the size of a graph.
#pragma once

#include <algorithm>
#include <limits>
#include <sheafnn/core/errors.hpp>
#include <string>
#include <vector>

#include "markdown.hpp"
#include "measurement.hpp"

namespace benchmarks {

/// Markdown table of the measurements "step/EDGES/THREADS", with the spread of the figures per edge below. Memory
/// is measured on one thread; the other number of threads, if there is one, has columns of its own.
[[nodiscard]] inline std::string scaling_table(const std::vector<Measurement>& all) {
  struct Range {
    double min = std::numeric_limits<double>::infinity(), max = 0;
    void add(double value) {
      min = std::min(min, value);
      max = std::max(max, value);
    }
    [[nodiscard]] double ratio() const { return max / min; }
  } time, threaded_time, memory;
  std::string more;
  for (const Measurement& m : all) {
    if (m.part(0) == "step" && m.part(2) != "1") more = m.part(2);
  }
  std::vector<std::string> columns = {"edges", "nodes", "step, ms", "ns per edge"};
  if (!more.empty())
    columns.insert(columns.end(), {sheafnn::detail::concat("step, ms, ", more, " threads"), "ns per edge"});
  columns.insert(columns.end(), {"workspace, bytes per edge", "peak memory, MiB"});
  std::string text = head(columns);
  for (const Measurement& m : all) {
    if (m.part(0) != "step" || m.part(2) != "1") continue;
    std::vector<std::string> cells = {format("%.0f", m["edges"]), format("%.0f", m["nodes"])};
    const auto add_times = [&](const Measurement& measured, Range& range) {
      range.add(measured["ns_per_edge"]);
      cells.insert(cells.end(), {figure(measured["median_ms"]), figure(measured["ns_per_edge"])});
    };
    add_times(m, time);
    if (!more.empty()) {
      const Measurement* threaded = find(all, sheafnn::detail::concat(m.part(0), "/", m.part(1), "/", more));
      if (threaded != nullptr) {
        add_times(*threaded, threaded_time);
      } else {
        cells.insert(cells.end(), {"–", "–"});
      }
    }
    memory.add(m["bytes_per_edge"]);
    cells.insert(cells.end(), {figure(m["bytes_per_edge"]), format("%.0f", m["peak_mib"])});
    text += row(cells);
  }
  if (time.max > 0) {
    text += format("\nLargest over smallest: time per edge %.2f with one thread", time.ratio());
    if (threaded_time.max > 0) text += format(" and %.2f with %s", threaded_time.ratio(), more.c_str());
    text += format(", workspace per edge %.2f.\n", memory.ratio());
  }
  return text;
}

}  // namespace benchmarks
