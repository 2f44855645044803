/// \file
/// Epochs of training, of the models and graphs of the CPU's tables (../epochs.cpp, ../networks.cpp), and of many models
/// side by side.
#include <array>
#include <memory>
#include <stdexcept>

#include "gpu/model.hpp"
#include "gpu/section.hpp"
#include "support/twin.hpp"

namespace benchmarks {

namespace {

using sheafnn::detail::concat;
using sheafnn::Index;

/// `count` models of four layers.
GpuTask task_of(const Settings& settings, const sheafnn::Dataset& data, Index count, Index degree = 0) {
  using sheafnn::batch::EvaluationOrder;
  return {data, count, 4, settings.evaluate_in_turn ? EvaluationOrder::in_turn : EvaluationOrder::automatic, degree};
}

/// Times the epoch of a task.
///
/// \throws std::runtime_error  parameters that are not finite afterwards; OutOfDeviceMemory is one
Timing time_epochs(Executor& executor, const Settings& settings, GpuModel model, const GpuTask& task) {
  const std::unique_ptr<GpuTrainings> trainings = model(executor, task);
  const Timing r = time_replays(executor, settings.effort());
  if (!trainings->finite()) throw std::runtime_error(concat(task.data.name, ": training diverged"));
  return r;
}

/// Degree of the polynomial filters, as in ../networks.cpp.
constexpr Index filter_degree = 8;

template <Index degree>
void measure_epochs(Executor& executor, const Settings& settings, Report& report) {
  for (const EpochGraph& graph : epoch_graphs) {
    const sheafnn::Dataset data = twin(graph, 1, true);
    for (std::size_t model = 0; model < epoch_models.size(); ++model) {
      for (std::size_t maps = 0; maps < epoch_maps.size(); ++maps) {
        const std::string name = concat(graph.name, "/", epoch_models[model], "/", epoch_maps[maps]);
        if (!settings.wants(name)) continue;
        report.attempt(name, [&, model, maps] {
          const Timing t = time_epochs(executor, settings, *gpu_models[model][maps], task_of(settings, data, 1, degree));
          report.add(name, {{"median_us", 1e6 * t.median},
                            {"fastest_us", 1e6 * t.fastest},
                            {"blocks", t.blocks},
                            {"replays_per_block", static_cast<double>(t.replays)}});
        });
      }
    }
  }
}

/// Milliseconds of an NSD epoch of the authors' PyTorch code on the authors' GPU, by graph; 0: not known.
constexpr std::array<double, 3> authors_nsd = {17, 22, 0};

/// Without filters with the CPU's times in brackets, and the authors'.
template <Index degree>
std::string epoch_cells(const Settings& settings, const Report& report) {
  std::vector<std::string> columns = {"",          "NSD diag", "NSD SO",      "NSD general",
                                      "BSNN diag", "BSNN SO",  "BSNN general"};
  if (degree == 0) columns.push_back("authors' NSD, their GPU");
  std::string text = head(columns);
  for (std::size_t g = 0; g < epoch_graphs.size(); ++g) {
    std::vector<std::string> cells = {std::string(epoch_graphs[g].name)};
    for (const std::string_view model : epoch_models) {
      for (const std::string_view maps : epoch_maps) {
        const std::string name = concat(epoch_graphs[g].name, "/", model, "/", maps);
        std::string cell = report.cell(name, [](const Measurement& m) { return figure(m["median_us"]); });
        const auto cpu = settings.cpu.find(name);
        if (degree == 0 && cpu != settings.cpu.end()) cell += concat(" (", figure(1e3 * cpu->second), ")");
        cells.push_back(std::move(cell));
      }
    }
    if (degree == 0) cells.push_back(authors_nsd[g] > 0 ? figure(1e3 * authors_nsd[g]) : "–");
    text += row(cells);
  }
  return text;
}

constexpr std::array<Index, 3> batch_counts = {1, 10, 100};
/// Models that are batched: indices into epoch_models and epoch_maps.
constexpr std::array<std::array<std::size_t, 2>, 2> batch_models = {{{1, 1}, {0, 0}}};

std::string batch_name(const std::array<std::size_t, 2>& model, Index count) {
  return concat("texas/", epoch_models[model[0]], "/", epoch_maps[model[1]], "/", count);
}

void measure_batches(Executor& executor, const Settings& settings, Report& report) {
  const sheafnn::Dataset data = twin(epoch_graphs[0], 10, true);
  for (const auto& model : batch_models) {
    for (const Index count : batch_counts) {
      const std::string name = batch_name(model, count);
      if (!settings.wants(name)) continue;
      report.attempt(name, [&, count] {
        const double before = used_bytes(executor);
        const std::unique_ptr<GpuTrainings> trainings =
            (*gpu_models[model[0]][model[1]])(executor, task_of(settings, data, count));
        const double used = used_bytes(executor) - before;
        const Timing t = time_replays(executor, settings.effort());
        if (!trainings->finite()) throw std::runtime_error("a training of the batch diverged");
        report.add(name, {{"models", static_cast<double>(count)},
                          {"median_us", 1e6 * t.median},
                          {"model_epochs_per_s", static_cast<double>(count) / t.median},
                          {"device_bytes", used}});
      });
    }
  }
}

std::string batch_table(const Settings&, const Report& report) {
  std::string text = head(
      {"", "models", "epoch of all, µs", "times the epoch of one", "models × epochs per second", "device memory, MiB"});
  for (const auto& model : batch_models) {
    const Measurement* one = report.find(batch_name(model, 1));
    for (const Index count : batch_counts) {
      const std::string name = batch_name(model, count);
      const auto cell = [&](const char* value, double factor) {
        return report.cell(name, [&](const Measurement& m) { return figure(factor * m[value]); });
      };
      text += row({concat("texas, ", epoch_models[model[0]], " ", epoch_maps[model[1]]), concat(count),
                   cell("median_us", 1),
                   report.cell(name,
                               [&](const Measurement& m) {
                                 return one != nullptr ? figure(m["median_us"] / (*one)["median_us"]) : "–";
                               }),
                   cell("model_epochs_per_s", 1), cell("device_bytes", 1.0 / (1 << 20))});
    }
  }
  return text;
}

}  // namespace

const RegisteredSection epochs(2, {"epochs", measure_epochs<0>, epoch_cells<0>});
const RegisteredSection filters(3, {"filters", measure_epochs<filter_degree>, epoch_cells<filter_degree>});
const RegisteredSection batches(4, {"batch", measure_batches, batch_table});

}  // namespace benchmarks
