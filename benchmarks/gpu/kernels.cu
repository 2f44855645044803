/// \file
/// The kernels that do not depend on the family of maps, and the table of all.
#include <sheafnn/batch/encoder.hpp>
#include <sheafnn/batch/gradient_sums.hpp>
#include <sheafnn/batch/input.hpp>
#include <sheafnn/batch/optimiser.hpp>
#include <sheafnn/posterior/default_posterior.hpp>

#include "gpu/kernels.hpp"
#include "support/epoch_graphs.hpp"
#include "support/large_graph.hpp"

namespace benchmarks {

namespace {

using namespace sheafnn::batch;
using namespace sheafnn::batch::detail;
using sheafnn::Index;
using sheafnn::detail::concat;
using sheafnn::detail::dropout_blocks;

constexpr std::string_view common = "any";

/// Measures sparse input, dropout, the sums that make gradients of weights, and Adam.
void measure_common(Executor& executor, const GraphView<float>& graph, const sheafnn::NodeFeatures& features,
                    bool quick, KernelMeter& meter) {
  constexpr Index D = 3, f = kernel_channels, h = D * f;
  const Index n = features.rows(), p = features.columns(), entries = features.entries(), dense = n * h;
  const Run run = kernel_run();
  Array<Executor, Run> runs(executor, "kernel benchmarks", std::span<const Run>(&run, 1));
  const InputFeatures<Executor, float> input(executor, features);
  const InputView<float> view = input.view();
  FloatArray kept = random_array(executor, entries), weight = random_array(executor, (p + 1) * h);
  FloatArray activated = random_array(executor, dense), out = random_array(executor, dense);
  FloatArray partial(executor, "kernel benchmarks", view.segments * h);
  std::size_t next = 0;
  const auto measure = [&](double bytes, double gathered, const auto& launch) {
    meter.measure(common, common_kernel_names[next++], {bytes, gathered}, launch);
  };
  const double row = 4 * static_cast<double>(h), all = 4 * static_cast<double>(dense),
               z = static_cast<double>(entries);

  measure(8 * z, 0, [&] {
    executor.launch(sheafnn::detail::dropout_blocks(entries), 1,
                    DropEntries<float>{runs.data(), view.value, entries, kept.data()});
  });
  // Columns and values; row offsets; weights; embeddings with and without dropout.
  const double input_bytes = 8 * z + 8 * static_cast<double>(n) + row * static_cast<double>(p) + 2 * all;
  measure(input_bytes, input_bytes + row * (z - static_cast<double>(p)), [&] {
    const SparseRows<float> rows{view, kept.data(), 0, weight.data(), 0, h, partial.data()};
    executor.launch(view.row_segments * h, 1, RowSegments<float>{rows, partial.data()});
    executor.launch(dense, 1,
                    EncodeNodes<float>{rows, runs.data(), weight.data() + p * h, nullptr, {true, false}, true,
                                       activated.data(), out.data()});
  });
  // Entry numbers (8 bytes), rows and values; derivatives; segments, their sums written and read; gradient.
  const double gradient_bytes =
      16 * z + all + static_cast<double>(view.segments) * (8 + 2 * row) + row * static_cast<double>(p);
  measure(gradient_bytes, gradient_bytes - all + row * z, [&] {
    executor.launch(view.segments * h, 1,
                    SegmentProducts<float>{view, kept.data(), 0, out.data(), h, partial.data()});
    executor.launch(p * h, 1, SegmentSums<float>{view, partial.data(), h, weight.data(), 0});
  });
  const Pass pass{1, 1, true, 0};
  const auto layer_dropout = sheafnn::Purpose::layer_dropout;
  measure(2 * all, 0, [&] {
    executor.launch(sheafnn::detail::dropout_blocks(dense), 1,
                    ApplyDropout<float>{runs.data(), pass, layer_dropout, 0, activated.data(), dense, out.data()});
  });
  measure(3 * all, 0, [&] {
    executor.launch(sheafnn::detail::dropout_blocks(dense), 1,
                    ApplyDropout<float, true>{runs.data(), pass, layer_dropout, 0, activated.data(), dense,
                                              out.data()});
  });
  const RowChunks nodes{n};
  const auto sums = [&](const auto& products, double bytes) {
    FloatArray arena(executor, "kernel benchmarks", products.items());
    auto launched = products;
    launched.out = arena.data();
    measure(bytes + 4 * static_cast<double>(products.items()), 0,
            [&] { executor.launch(launched.items(), 1, launched); });
  };
  sums(RowProducts<float>{activated.data(), f, f, 0, out.data(), f, f, 0, {n * D}, false, nullptr, 0}, 2 * all);
  sums(CoordinateProducts<float>{activated.data(), out.data(), 0, D, f, nodes, false, nullptr, 0}, 2 * all);
  constexpr Index q = sheafnn::DefaultPosterior<sheafnn::SpecialOrthogonal<3>>::mean_size + 2;
  const FloatArray projection_bar = random_array(executor, n * 2 * q);
  FirstWeights first_layer;  // one matrix, of all rows
  first_layer.matrix[0] = {.rows = q, .columns = 2 * h};
  first_layer.count = 1;
  first_layer.columns = q;
  first_layer.entries = q * 2 * h;
  first_layer.inputs = h;
  first_layer.pair =
      sheafnn::layers::LearnerColumns<Divisor>(sheafnn::layers::SheafLearnerOptions{.inputs = h, .channels = f});
  sums(
      FirstLayerProducts<float>{
          first_layer, graph, activated.data(), n * h, projection_bar.data(), {}, nodes, nullptr, 0},
      all + 8 * static_cast<double>(n * q));

  const Index size = quick ? 10'000'000 : 50'000'000;
  const std::vector<std::uint16_t> tensor(static_cast<std::size_t>(size));
  const std::uint8_t group = 0;
  const Progress progress;
  const Array<Executor, std::uint16_t> tensors(executor, "kernel benchmarks", tensor);
  const Array<Executor, std::uint8_t> groups(executor, "kernel benchmarks",
                                             std::span<const std::uint8_t>(&group, 1));
  const Array<Executor, Progress> progresses(executor, "kernel benchmarks",
                                             std::span<const Progress>(&progress, 1));
  Array<Executor, std::int32_t> failed(executor, "kernel benchmarks", 1);
  FloatArray gradient = random_array(executor, size), value = random_array(executor, size);
  FloatArray first(executor, "kernel benchmarks", size), second(executor, "kernel benchmarks", size);
  measure(30 * static_cast<double>(size), 0, [&] {
    executor.launch(size, 1,
                    AdamStep<float>{runs.data(), progresses.data(), tensors.data(), groups.data(), size, 1,
                                    gradient.data(), first.data(), second.data(), value.data(), failed.data()});
  });
}

void measure(Executor& executor, const Settings& settings, Report& report) {
  const sheafnn::Dataset data = large_task(settings.kernel_edges);
  const DeviceLimits limits = device_limits(executor, settings);
  report.add("copy", {{"bytes_per_s", limits.copy}});
  report.add("graph", {{"nodes", static_cast<double>(data.node_count())},
                       {"edges", static_cast<double>(data.graph.edge_count())}});
  KernelMeter meter(executor, settings.effort(), limits.copy, report);
  const BatchGraph<Executor, float> graph(executor, data.graph);
  const MeasureFamily families[] = {diagonal_kernels, special_orthogonal_kernels, general_linear_kernels};
  for (std::size_t i = 0; i < epoch_maps.size(); ++i) {
    report.attempt(std::string(epoch_maps[i]),
                   [&, i] { families[i](executor, graph.view(), epoch_maps[i], meter); });
  }
  report.attempt(std::string(common),
                 [&] { measure_common(executor, graph.view(), data.features, settings.quick, meter); });
}

/// "123 µs, 2100 GB/s, 49%", and behind a semicolon what the gathers come to.
std::string rates(const Measurement& m) {
  std::string text = sheafnn::detail::concat(figure(m["median_us"]), " µs, ", figure(1e-9 * m["bytes_per_s"]),
                                             " GB/s, ", format("%.0f%%", 100 * m["of_copy"]));
  if (m["gathered_bytes"] > 0)
    text += sheafnn::detail::concat("; ", figure(1e-9 * m["gathered_bytes_per_s"]), " GB/s");
  return text;
}

std::string table(const Settings& settings, const Report& report) {
  std::string text = sheafnn::detail::concat(
      "Random graph of ", settings.kernel_edges, " edges and ", settings.kernel_edges / 25,
      " nodes; a copy moves ",
      report.cell("copy",
                  [](const Measurement& m) {
                    return sheafnn::detail::concat(figure(1e-9 * m["bytes_per_s"]), " GB/s");
                  }),
      ". Time; bytes per second, every input and output once; percentage of a copy's; behind a semicolon, "
      "bytes per "
      "second with a row per arc.\n\n");
  std::vector<std::string> columns = {"kernel"};
  columns.insert(columns.end(), epoch_maps.begin(), epoch_maps.end());
  text += head(columns);
  for (const std::string_view name : family_kernel_names) {
    std::vector<std::string> cells = {std::string(name)};
    for (const std::string_view maps : epoch_maps)
      cells.push_back(report.cell(sheafnn::detail::concat(maps, "/", name), rates));
    text += row(cells);
  }
  text += "\n" + head({"kernel", "any maps"});
  for (const std::string_view name : common_kernel_names) {
    text += row({std::string(name), report.cell(sheafnn::detail::concat(common, "/", name), rates)});
  }
  return text;
}

}  // namespace

const RegisteredSection kernels(5, {"kernels", measure, table});

}  // namespace benchmarks
