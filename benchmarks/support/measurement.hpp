/// \file
/// What the benchmark programs share: measurements as names with figures, collected from a run of Google Benchmark.
#pragma once

#include <benchmark/benchmark.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <map>
#include <sheafnn/core/errors.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace benchmarks {

/// One line of results.
struct Measurement {
  std::string name;                      ///< parts separated by /, e.g. "film/bsnn/diagonal"
  std::map<std::string, double> values;  ///< the counters

  /// A figure, or 0 where it was not measured.
  [[nodiscard]] double operator[](const std::string& value) const {
    const auto found = values.find(value);
    return found == values.end() ? 0 : found->second;
  }
  /// Part i = 0, 1, … of the name; empty behind the last.
  [[nodiscard]] std::string part(std::size_t i) const {
    std::size_t begin = 0;
    for (; i > 0 && begin != std::string::npos; --i) {
      begin = name.find('/', begin);
      if (begin != std::string::npos) ++begin;
    }
    return begin == std::string::npos ? "" : name.substr(begin, name.find('/', begin) - begin);
  }
};

/// The measurement of that name; null when there is none.
[[nodiscard]] inline const Measurement* find(const std::vector<Measurement>& all, std::string_view name) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const Measurement& m) { return m.name == name; });
  return found == all.end() ? nullptr : &*found;
}

/// Middle of the values (mean of the two middle ones), 0 when there are none.
[[nodiscard]] inline double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

/// Console output as usual, and every run kept as a Measurement; of repeated ones, the median.
class Collector : public benchmark::ConsoleReporter {
 public:
  Collector() : ConsoleReporter(isatty(STDOUT_FILENO) != 0 ? OO_ColorTabular : OO_Tabular) {}

  void ReportRuns(const std::vector<Run>& runs) override {
    std::vector<Run> shown;
    for (const Run& run : runs) {
      if (run.error_occurred || (run.run_type == Run::RT_Aggregate && run.aggregate_name != "median")) continue;
      shown.push_back(run);
      Measurement m;
      m.name = run.run_name.function_name;
      for (const auto& [name, counter] : run.counters) m.values[name] = counter.value;
      measurements_.push_back(std::move(m));
    }
    ConsoleReporter::ReportRuns(shown);
  }
  [[nodiscard]] const std::vector<Measurement>& measurements() const noexcept { return measurements_; }

 private:
  std::vector<Measurement> measurements_;
};

/// Notes the compiler and the instruction set in the results' context. Call before the benchmarks run.
inline void add_build_context() {
#if defined(__clang__)
  benchmark::AddCustomContext("compiler", sheafnn::concat("clang ", __clang_major__, ".", __clang_minor__));
#elif defined(__GNUC__)
  benchmark::AddCustomContext("compiler", sheafnn::concat("g++ ", __GNUC__, ".", __GNUC_MINOR__));
#endif
#if defined(__AVX512F__)
  benchmark::AddCustomContext("instructions", "AVX-512");
#elif defined(__AVX2__)
  benchmark::AddCustomContext("instructions", "AVX2");
#else
  benchmark::AddCustomContext("instructions", "baseline");
#endif
}

/// Takes "--NAME VALUE" out of the command line; `fallback` when it is not there.
///
/// \throws std::invalid_argument  a value that is no number of [least, most]
[[nodiscard]] inline double take_option(int& argc, char** argv, std::string_view name, double fallback,
                                        double least, double most) {
  for (int i = 1; i < argc; ++i) {
    if (argv[i] != name) continue;
    const std::string_view text = i + 1 < argc ? argv[i + 1] : "";
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    sheafnn::require(error == std::errc{} && end == text.data() + text.size() && value >= least && value <= most,
                     name, text, sheafnn::concat("must be a number between ", least, " and ", most));
    std::copy(argv + std::min(i + 2, argc), argv + argc, argv + i);
    argc = std::max(i, argc - 2);
    return value;
  }
  return fallback;
}

}  // namespace benchmarks
