/// \file
/// Results of a section of the GPU benchmarks, and their JSON file.
#pragma once

#include <cmath>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <sheafnn/core/errors.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/figures.hpp"
#include "support/markdown.hpp"

namespace benchmarks {

/// Measurements by name, and remarks on those that could not be made.
struct Report {
  std::vector<Measurement> measurements;
  std::map<std::string, std::string> remarks;
  std::map<std::string, std::string> failures;  ///< what went wrong, by measurement
  std::function<void()> changed;                ///< called after each measurement and failure; empty: nothing

  void add(std::string name, std::map<std::string, double> values) {
    measurements.push_back({std::move(name), std::move(values)});
    if (changed) changed();
  }
  /// Calls measure(), which adds measurements; its failure is a failure of this name, and of no other.
  template <class Measure>
  void attempt(const std::string& name, const Measure& measure) {
    try {
      measure();
    } catch (const std::exception& error) {
      failures[name] = error.what();
      if (changed) changed();
    }
  }
  [[nodiscard]] const Measurement* find(std::string_view name) const {
    return benchmarks::find(measurements, name);
  }
  /// Text of a cell, "failed", or "unmeasured", when there is no measurement of that name.
  template <class Text>
  [[nodiscard]] std::string cell(std::string_view name, const Text& text) const {
    const Measurement* m = find(name);
    return m != nullptr ? std::string(text(*m)) : failures.contains(std::string(name)) ? "failed" : "unmeasured";
  }
};

/// A JSON string.
[[nodiscard]] inline std::string json_string(std::string_view text) {
  std::string r = "\"";
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20) {
      r += format("\\u%04x", static_cast<unsigned>(c));
    } else {
      if (c == '"' || c == '\\') r += '\\';
      r += c;
    }
  }
  return r += '"';
}

/// {"section": …, "context": {…}, "measurements": [{"name": …, FIGURE: …}], "remarks": {…}, "failures": {…}}; what is not
/// finite is null.
[[nodiscard]] inline std::string to_json(std::string_view section, const Report& report,
                                         const std::map<std::string, std::string>& context) {
  const auto object = [](const std::map<std::string, std::string>& entries) {
    std::string r = "{";
    for (const auto& [key, value] : entries) {
      r.append(r.size() > 1 ? ", " : "").append(json_string(key)).append(": ").append(json_string(value));
    }
    return r += "}";
  };
  std::string r = sheafnn::detail::concat("{\"section\": ", json_string(section), ",\n \"context\": ", object(context),
                                  ",\n \"measurements\": [");
  for (const Measurement& m : report.measurements) {
    r.append(&m == &report.measurements.front() ? "\n" : ",\n")
        .append("  {\"name\": ")
        .append(json_string(m.name));
    for (const auto& [key, value] : m.values) {
      r.append(", ").append(json_string(key)).append(": ");
      r.append(std::isfinite(value) ? format("%.9g", value) : "null");
    }
    r += "}";
  }
  r.append("],\n \"remarks\": ").append(object(report.remarks));
  return r.append(",\n \"failures\": ").append(object(report.failures)).append("}\n");
}

/// \throws std::runtime_error  a file that cannot be written
inline void write_file(const std::filesystem::path& file, const std::string& text) {
  std::ofstream out(file, std::ios::trunc);
  out << text;
  if (!out.flush()) throw std::runtime_error(file.string() + ": cannot be written");
}

}  // namespace benchmarks
