/// \file
/// Epochs on large random graphs: a Bayesian network with special orthogonal maps, stalk dimension 3, 16 channels,
/// 2 layers, and three posterior samples at evaluation.
#include <chrono>
#include <memory>
#include <stdexcept>
#include <vector>

#include "gpu/model.hpp"
#include "gpu/section.hpp"
#include "support/large_graph.hpp"

namespace benchmarks {

namespace {

using sheafnn::detail::concat;
using sheafnn::Index;

std::vector<Index> sizes(const Settings& settings) {
  std::vector<Index> r;
  for (Index edges = 100'000; edges < settings.edges; edges *= 10) r.push_back(edges);
  r.push_back(settings.edges);
  return r;
}

void measure(Executor& executor, const Settings& settings, Report& report) {
  for (const Index edges : sizes(settings)) {
    using Clock = std::chrono::steady_clock;
    const auto start = Clock::now();
    const sheafnn::Dataset data = large_task(edges);
    const double generation = std::chrono::duration<double>(Clock::now() - start).count();
    const double before = used_bytes(executor);
    const std::string name = concat(edges);
    report.attempt(name, [&] {
      const std::unique_ptr<GpuTrainings> trainings = bsnn_special_orthogonal(executor, {data, 1, 2});
      const double used = used_bytes(executor) - before;
      const double preparation = std::chrono::duration<double>(Clock::now() - start).count() - generation;
      const Timing t = time_replays(executor, settings.effort());
      if (!trainings->finite()) throw std::runtime_error(concat(data.name, ": training diverged"));
      const double count = static_cast<double>(data.graph.edge_count());
      report.add(name, {{"edges", count},
                        {"nodes", static_cast<double>(data.node_count())},
                        {"median_ms", 1e3 * t.median},
                        {"ns_per_edge", 1e9 * t.median / count},
                        {"device_bytes", used},
                        {"generation_s", generation},
                        {"preparation_s", preparation}});
    });
  }
}

std::string table(const Settings& settings, const Report& report) {
  std::string text = head({"edges", "nodes", "epoch, ms", "ns per edge", "device memory, GiB", "bytes per edge"});
  for (const Index edges : sizes(settings)) {
    const std::string name = concat(edges);
    const auto cell = [&](auto value) {
      return report.cell(name, [&](const Measurement& m) { return figure(value(m)); });
    };
    text += row({name, concat(edges / 25), cell([](const Measurement& m) { return m["median_ms"]; }),
                 cell([](const Measurement& m) { return m["ns_per_edge"]; }),
                 cell([](const Measurement& m) { return m["device_bytes"] / (1 << 30); }),
                 cell([](const Measurement& m) { return m["device_bytes"] / m["edges"]; })});
  }
  return text;
}

}  // namespace

const RegisteredSection scaling(6, {"scaling", measure, table});

}  // namespace benchmarks
