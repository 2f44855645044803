/// \file
/// Kernels to be measured: their work, and how they are registered with Google Benchmark.
#pragma once

#include <benchmark/benchmark.h>

#include <sheafnn/core/buffer.hpp>
#include <sheafnn/core/config.hpp>
#include <sheafnn/core/errors.hpp>
#include <sheafnn/random/stream.hpp>
#include <string>
#include <utility>
#include <vector>

#include "calibration.hpp"

namespace benchmarks {

/// What one call of a kernel has to do, whatever way it does it.
///
/// Operations are counted in the formulas: each + − × ÷ √ and comparison is one, an elementary function (exp, log,
/// tanh, sin, cos) counts as 20, and the integer arithmetic of the random numbers is counted as well. Bytes
/// count every input and output once: what no cache can save when they come from memory.
struct Work {
  double operations = 0;
  double bytes = 0;
};
inline constexpr double elementary = 20;
/// Ten rounds of Philox: two wide multiplications, two low ones and four exclusive ors each.
inline constexpr double philox_block = 80;
/// Box–Muller: two pairs of a logarithm, a root, a sine, a cosine and the conversions to floating point.
inline constexpr double four_normals = philox_block + 2 * (3 * elementary + 14);
/// A uniform rotation of R³: two sines, two cosines, a root, 28 products and sums.
inline constexpr double uniform_rotation = philox_block + 4 * elementary + 30;

/// Numbers in (−scale, scale).
[[nodiscard]] inline sheafnn::Buffer<float> random_numbers(sheafnn::Index count, float scale = 1) {
  sheafnn::Buffer<float> r(count);
  const sheafnn::Stream stream{1, sheafnn::Purpose::user};
  for (sheafnn::Index i = 0; i < count; ++i) {
    const std::uint32_t word = stream.words(static_cast<std::uint32_t>(i), 0).word[0];
    r[i] = scale * (2 * sheafnn::random::uniform_from_word<float>(word) - 1);
  }
  return r;
}

/// Registers run(threads) as "KERNEL/VARIANT/THREADS" for each number of threads: the median of a few repetitions,
/// with operations and bytes per second and the fraction of the roofline limit that is reached.
template <class Run>
void add_kernel(const std::vector<int>& threads, const std::string& kernel, const std::string& variant,
                const Work& work, const Run& run) {
  for (const int t : threads) {
    benchmark::RegisterBenchmark(sheafnn::detail::concat(kernel, "/", variant, "/", t).c_str(),
                                 [=](benchmark::State& state) {
                                   const double limit = calibration(t).limit(work.operations, work.bytes);
                                   run(t);
                                   for (auto _ : state) {
                                     run(t);
                                     benchmark::ClobberMemory();
                                   }
                                   using benchmark::Counter;
                                   const auto rate = [](double per_call) {
                                     return Counter(per_call, Counter::kIsIterationInvariantRate);
                                   };
                                   state.counters["GFLOP/s"] = rate(1e-9 * work.operations);
                                   state.counters["GB/s"] = rate(1e-9 * work.bytes);
                                   state.counters["roofline"] = rate(limit);
                                   state.counters["us"] =
                                       Counter(1e-6, Counter::kIsIterationInvariantRate | Counter::kInvert);
                                 })
        ->UseRealTime()
        ->Unit(benchmark::kMicrosecond)
        ->MinTime(0.05)
        ->Repetitions(5)
        ->ReportAggregatesOnly();
  }
}

}  // namespace benchmarks
