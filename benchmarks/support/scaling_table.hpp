/// \file
/// The table of how cost grows with the size of a graph.
#pragma once

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "epoch_table.hpp"
#include "measurement.hpp"

namespace benchmarks {

/// Markdown table of the measurements "step/EDGES/THREADS", with the spread of the figures per edge below. Memory is that of
/// one thread; the other number of threads, if there is one, has columns of its own.
[[nodiscard]] inline std::string scaling_table(const std::vector<Measurement>& all) {
  struct Range {
    double least = std::numeric_limits<double>::infinity(), most = 0;
    void add(double value) {
      least = std::min(least, value);
      most = std::max(most, value);
    }
    [[nodiscard]] double ratio() const { return most / least; }
  } time, threaded_time, memory;
  std::string more;
  for (const Measurement& m : all) {
    if (m.part(0) == "step" && m.part(2) != "1") more = m.part(2);
  }
  std::string text = "| edges | nodes | step, ms | ns per edge |", rule = "| --- | --- | --- | --- |";
  if (!more.empty()) {
    text += " step, ms, " + more + " threads | ns per edge |";
    rule += " --- | --- |";
  }
  text += " workspace, bytes per edge | peak memory, MiB |\n" + rule + " --- | --- |\n";
  for (const Measurement& m : all) {
    if (m.part(0) != "step" || m.part(2) != "1") continue;
    const auto times = [](const Measurement& measured, Range& range) {
      range.add(measured["ns_per_edge"]);
      return sheafnn::concat(" ", figure(measured["median_ms"]), " | ", figure(measured["ns_per_edge"]), " |");
    };
    text += format("| %.0f | %.0f |", m["edges"], m["nodes"]) + times(m, time);
    const Measurement* threaded = find(all, m.part(0) + "/" + m.part(1) + "/" + more);
    if (!more.empty()) text += threaded == nullptr ? " – | – |" : times(*threaded, threaded_time);
    memory.add(m["bytes_per_edge"]);
    text += format(" %s | %.0f |\n", figure(m["bytes_per_edge"]).c_str(), m["peak_mib"]);
  }
  if (time.most > 0) {
    text += format("\nLargest over smallest: time per edge %.2f with one thread", time.ratio());
    if (threaded_time.most > 0) text += format(" and %.2f with %s", threaded_time.ratio(), more.c_str());
    text += format(", workspace per edge %.2f.\n", memory.ratio());
  }
  return text;
}

}  // namespace benchmarks
