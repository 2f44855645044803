/// \file
/// What the device can do: copies within its memory, and products of matrices.
#include <cstring>
#include <sheafnn/batch/array.hpp>
#include <sheafnn/batch/execution.hpp>

#include "gpu/section.hpp"

namespace benchmarks {

namespace {

using sheafnn::detail::concat;
using sheafnn::Index;

/// Bytes per second, read plus written, of copies of so many bytes.
double copy_rate(Executor& executor, const Effort& effort, Index bytes) {
  sheafnn::batch::Array<Executor, char> from(executor, "a copy", bytes), to(executor, "a copy", bytes);
  std::vector<double> seconds;
  double total = 0;
#if defined(__CUDACC__)
  const int device = executor.device();
  cudaStream_t stream = nullptr;
  sheafnn::batch::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags",
                        device);
  EventPair events(device);
  const auto once = [&] {
    return events.seconds(stream, [&] {
      sheafnn::batch::check(cudaMemcpyAsync(to.data(), from.data(), static_cast<std::size_t>(bytes),
                                            cudaMemcpyDeviceToDevice, stream),
                            "cudaMemcpyAsync", device);
    });
  };
#else
  const auto once = [&] {
    return seconds_of(executor, [&] { std::memcpy(to.data(), from.data(), static_cast<std::size_t>(bytes)); });
  };
#endif
  executor.synchronise();
  static_cast<void>(once());
  while (seconds.size() < 5 || (total < effort.seconds && seconds.size() < 200)) {
    seconds.push_back(once());
    total += seconds.back();
  }
#if defined(__CUDACC__)
  sheafnn::batch::check(cudaStreamDestroy(stream), "cudaStreamDestroy", device);
#endif
  return 2 * static_cast<double>(bytes) / median(seconds);
}

/// Floating-point operations per second of a product of n × n matrices.
double sgemm_rate(Executor& executor, const Effort& effort, Index n) {
  const std::vector<float> values(static_cast<std::size_t>(n * n), 0.37f);
  sheafnn::batch::Array<Executor, float> a(executor, "a product", values), b(executor, "a product", values),
      c(executor, "a product", n * n);
  const auto work = [&] {
    executor.multiply(
        sheafnn::batch::Product<float>{n, n, n, 1, {a.data(), n, 0}, {b.data(), n, 0}, c.data(), n, 0});
  };
  work();  // cuBLAS loads its kernels before the recording
  executor.synchronise();
  executor.record(work);
  const double cube = static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n);
  return 2 * cube / time_replays(executor, effort).median;
}

void measure(Executor& executor, const Settings& settings, Report& report) {
  const DeviceLimits limits = device_limits(executor, settings);
  const DeviceFacts facts = device_facts(settings.device);
  report.add("copy", {{"bytes_per_s", limits.copy}});
  report.add("sgemm", {{"flop_per_s", limits.sgemm}});
  report.add("memory", {{"bytes", facts.memory_bytes}, {"l2_bytes", facts.cache_bytes}});
}

std::string table(const Settings&, const Report& report) {
  std::string text = head({"limit", "measured"});
  text += row({"copy within device memory, read plus written", report.cell("copy", [](const Measurement& m) {
                 return concat(figure(1e-9 * m["bytes_per_s"]), " GB/s");
               })});
  text += row({"sgemm (cuBLAS)", report.cell("sgemm", [](const Measurement& m) {
                 return concat(figure(1e-12 * m["flop_per_s"]), " TFLOP/s");
               })});
  text += row({"memory, second-level cache", report.cell("memory", [](const Measurement& m) {
                 return format("%.1f GiB, %.0f MiB", m["bytes"] / (1 << 30), m["l2_bytes"] / (1 << 20));
               })});
  return text;
}

}  // namespace

DeviceLimits device_limits(Executor& executor, const Settings& settings) {
#if defined(__CUDACC__)
  const Index copied = settings.quick ? Index{1} << 28 : Index{1} << 30, size = settings.quick ? 4096 : 8192;
#else
  const Index copied = Index{1} << 24, size = 128;
#endif
  return {copy_rate(executor, settings.effort(), copied), sgemm_rate(executor, settings.effort(), size)};
}

const RegisteredSection calibration(1, {"calibration", measure, table});

}  // namespace benchmarks
