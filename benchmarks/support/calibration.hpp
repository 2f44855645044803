/// \file
/// What the machine can do, measured in the same run as what is compared with it: sgemm, and copies from its
/// caches and from memory.
#pragma once

#include <benchmark/benchmark.h>

#include <Eigen/Core>
#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <sheafnn/core/buffer.hpp>
#include <sheafnn/core/pack.hpp>
#include <sheafnn/core/parallel.hpp>
#include <vector>

namespace benchmarks {

/// The limits of a number of threads.
struct Calibration {
  double flops = 0;                         ///< floating-point operations per second of sgemm
  double near = 0, shared = 0, memory = 0;  ///< bytes per second (read plus written) of a copy, see below
  double near_bytes = 0, shared_bytes = 0;  ///< working sets up to which `near` and `shared` hold

  /// The bandwidth for a working set: `near` in the caches of the cores, `shared` in the one they share.
  [[nodiscard]] double bandwidth(double bytes) const {
    return bytes <= near_bytes ? near : bytes <= shared_bytes ? shared : memory;
  }
  /// Least seconds that so many operations on so many bytes take (the roofline model: Williams, Waterman,
  /// Patterson, Communications of the ACM 52, 2009).
  [[nodiscard]] double limit(double operations, double bytes) const {
    return std::max(operations / flops, bytes / bandwidth(bytes));
  }
};

namespace detail {

/// Seconds of the fastest of many calls, for a quarter of a second at least.
template <class Body>
[[nodiscard]] double fastest(const Body& body) {
  using Clock = std::chrono::steady_clock;
  double best = std::numeric_limits<double>::infinity();
  const auto begin = Clock::now();
  for (auto start = begin; start - begin < std::chrono::milliseconds(250);) {
    body();
    const auto end = Clock::now();
    best = std::min(best, std::chrono::duration<double>(end - start).count());
    start = end;
  }
  return best;
}

/// sgemm: every thread multiplies matrices of its own.
[[nodiscard]] inline double sgemm_rate(int threads) {
  constexpr sheafnn::Index n = 512;
  Eigen::setNbThreads(1);
  struct Task {
    Eigen::MatrixXf a = Eigen::MatrixXf::Random(n, n), b = Eigen::MatrixXf::Random(n, n), c = a;
  };
  std::vector<Task> tasks(static_cast<std::size_t>(threads));
  const double seconds = fastest([&] {
    sheafnn::parallel_for(threads, threads, 1, [&](sheafnn::Index begin, sheafnn::Index end) {
      for (sheafnn::Index i = begin; i < end; ++i) {
        Task& task = tasks[static_cast<std::size_t>(i)];
        task.c.noalias() = task.a * task.b;
      }
    });
    benchmark::ClobberMemory();
  });
  return static_cast<double>(threads) * 2.0 * n * n * n / seconds;
}

/// A copy (scaled, so that no library routine takes its place) within `bytes` in all.
[[nodiscard]] inline double copy_rate(int threads, double bytes) {
  using sheafnn::Index;
  const Index count = static_cast<Index>(bytes / 8);
  sheafnn::Buffer<float> from(count), to(count);
  from.fill(1.0f);
  float factor = 1;
  benchmark::DoNotOptimize(factor);
  const Index repeats =
      std::max<Index>(1, (Index{1} << 22) / count);  // small copies are over before a clock ticks
  const double seconds = fastest([&] {
    sheafnn::parallel_for(threads, threads, 1, [&](Index first, Index last) {
      for (Index repeat = 0; repeat < repeats; ++repeat) {
        sheafnn::detail::for_tiles<float>(count * first / threads, count * last / threads, [&]<class T>(auto i) {
          i.store(to.data() + i, T(factor) * i.load(from.data() + i));
        });
        benchmark::ClobberMemory();
      }
    });
  });
  return static_cast<double>(8 * count * repeats) / seconds;
}

/// Bytes of a cache of that level (2 or 3), or a usual size when the system does not say.
[[nodiscard]] inline double cache_bytes(int level) {
  for (const auto& cache : benchmark::CPUInfo::Get().caches) {
    if (cache.level == level && cache.size > 0) return cache.size;
  }
  return level == 2 ? 1 << 20 : 16 << 20;
}

}  // namespace detail

/// Measured once for each number of threads.
[[nodiscard]] inline const Calibration& calibration(int threads) {
  static std::map<int, Calibration> known;
  const auto found = known.find(threads);
  if (found != known.end()) return found->second;
  Calibration c;
  c.near_bytes = threads * detail::cache_bytes(2);
  c.shared_bytes = std::max(c.near_bytes, detail::cache_bytes(3));
  c.flops = detail::sgemm_rate(threads);
  c.near = detail::copy_rate(threads, c.near_bytes / 2);
  c.shared = detail::copy_rate(threads, std::max(2 * c.near_bytes, c.shared_bytes / 4));
  c.memory = detail::copy_rate(threads, 8 * c.shared_bytes);
  return known.emplace(threads, c).first->second;
}

}  // namespace benchmarks
