/// \file
/// What the programs share that run on Google Benchmark: the measurements of a run, and its context.
#pragma once

#include <benchmark/benchmark.h>
#include <unistd.h>

#include <sheafnn/core/errors.hpp>
#include <utility>
#include <vector>

#include "command_line.hpp"
#include "figures.hpp"

namespace benchmarks {

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
  benchmark::AddCustomContext("compiler", sheafnn::detail::concat("clang ", __clang_major__, ".", __clang_minor__));
#elif defined(__GNUC__)
  benchmark::AddCustomContext("compiler", sheafnn::detail::concat("g++ ", __GNUC__, ".", __GNUC_MINOR__));
#endif
#if defined(__AVX512F__)
  benchmark::AddCustomContext("instructions", "AVX-512");
#elif defined(__AVX2__)
  benchmark::AddCustomContext("instructions", "AVX2");
#else
  benchmark::AddCustomContext("instructions", "baseline");
#endif
}

}  // namespace benchmarks
