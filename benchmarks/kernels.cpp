/// \file
/// The kernels that an epoch is made of, on the largest graph of the table of epochs (film, or its twin): time,
/// operations and bytes per second, and the fraction of the roofline limit of this machine, which is measured
/// first.
///
///     kernels [--threads N] [options of Google Benchmark]
///
/// Everything is measured with one thread and with N (default 2).
#include <benchmark/benchmark.h>

#include <cstdio>
#include <exception>
#include <memory>
#include <sheafnn/nn/adam.hpp>
#include <sheafnn/nn/dense.hpp>
#include <sheafnn/nn/dropout.hpp>
#include <sheafnn/nn/sparse_input.hpp>
#include <sheafnn/rotation/haar.hpp>
#include <sheafnn/rotation/moebius.hpp>
#include <string>
#include <utility>
#include <vector>

#include "support/family_kernels.hpp"
#include "support/kernel.hpp"
#include "support/kernel_table.hpp"
#include "support/measurement.hpp"
#include "support/task.hpp"

namespace {

using benchmarks::add_kernel;
using benchmarks::elementary;
using benchmarks::four_normals;
using benchmarks::random_numbers;
using benchmarks::uniform_rotation;
using sheafnn::Buffer;
using sheafnn::Index;
using sheafnn::MatrixView;

constexpr int W = sheafnn::lanes<float>;
using P = sheafnn::math::Pack<float, W>;
using Word = sheafnn::math::Pack<std::uint32_t, W>;

/// The calibration as results like any other: "calibration/WHAT/THREADS".
void add_calibration(const std::vector<int>& threads) {
  for (const int t : threads) {
    const auto add = [t](const char* what, const char* counter, double benchmarks::Calibration::*member) {
      benchmark::RegisterBenchmark(sheafnn::detail::concat("calibration/", what, "/", t).c_str(),
                                   [=](benchmark::State& state) {
                                     const double rate = benchmarks::calibration(t).*member;
                                     for (auto _ : state) state.SetIterationTime(1e-6);
                                     state.counters[counter] = 1e-9 * rate;
                                   })
          ->UseManualTime()
          ->Iterations(1);
    };
    add("sgemm", "GFLOP/s", &benchmarks::Calibration::flops);
    add("copy in the core's cache", "GB/s", &benchmarks::Calibration::near);
    add("copy in the shared cache", "GB/s", &benchmarks::Calibration::shared);
    add("copy in memory", "GB/s", &benchmarks::Calibration::memory);
  }
}

/// The first layer and its gradient, and the layer with and without dropout of its entries, as training computes it.
void add_input_kernels(const std::vector<int>& threads, const sheafnn::Dataset& data, Index width) {
  struct Fixture {
    sheafnn::layers::SparseInput<float> input;
    Buffer<float> weight, bias, out, dropped_out, weight_bar, work;
    sheafnn::layers::EntryDropout<float> entries;
    sheafnn::layers::Dropout dropout;
  };
  const Index n = data.node_count(), p = data.feature_count(), z = data.features.entries();
  sheafnn::layers::SparseInput<float> input(data.features);
  Buffer<float> work(input.work_size(width, 2));
  const auto x = std::make_shared<Fixture>(
      Fixture{std::move(input), random_numbers(p * width), random_numbers(width), Buffer<float>(n * width),
              Buffer<float>(n * width), Buffer<float>(p * width), std::move(work),
              sheafnn::layers::EntryDropout<float>(z),
              sheafnn::layers::Dropout{0.5, {3, sheafnn::Purpose::input_dropout}}});
  const double products = 2 * static_cast<double>(z * width), dense = 4 * static_cast<double>((n + p) * width);
  add_kernel(threads, "sparse input", "forward", {products, dense + 8 * static_cast<double>(z + n)},
             [x, width](int t) {
               x->input.forward(t, x->weight.data(), x->bias.data(), width, x->out.data(), x->work.data());
             });
  add_kernel(threads, "sparse input", "gradient",
             {products, dense + 4 * static_cast<double>(p * width) + 8 * static_cast<double>(z + p)},
             [x, width](int t) {
               x->input.backward(t, x->input.values(), x->out.data(), width, x->weight_bar.data());
             });
  const double entries = static_cast<double>(z);
  add_kernel(threads, "sparse input", "forward, whole and half dropped",
             {2 * products + entries * (benchmarks::philox_block / 4 + 3),
              dense + 4 * static_cast<double>(n * width) + 8 * static_cast<double>(n) + 13 * entries},
             [x, width](int t) {
               ++x->dropout.stream.epoch;  // a mask that is there is not drawn again
               x->entries.draw(t, x->dropout);
               x->input.forward_both(t, x->entries, x->weight.data(), x->bias.data(), width, x->dropped_out.data(),
                                     x->out.data(), x->work.data());
             });
}

/// Products of the shapes that occur: tall times small, and the gradient that sums over all rows.
void add_dense_kernels(const std::vector<int>& threads, Index rows, Index channels) {
  struct Fixture {
    Buffer<float> tall, small, out, gradient;
  };
  const auto x =
      std::make_shared<Fixture>(Fixture{random_numbers(rows * channels), random_numbers(channels * channels, 0.3f),
                                        Buffer<float>(rows * channels), Buffer<float>(channels * channels)});
  const double products = 2 * static_cast<double>(rows * channels * channels);
  const double arrays = 2 * 4 * static_cast<double>(rows * channels);
  const Index f = channels;
  add_kernel(threads, "dense product", "n d x f x f", {products, arrays}, [=](int t) {
    sheafnn::detail::multiply_dense(t, MatrixView<const float>(x->tall.data(), rows, f), {x->small.data(), f, f},
                                    MatrixView<float>(x->out.data(), rows, f), false);
  });
  add_kernel(threads, "dense product", "gradient f x f", {products, arrays}, [=](int t) {
    const MatrixView<const float> tall(x->tall.data(), rows, f);
    sheafnn::detail::multiply_dense(t, sheafnn::detail::transposed(tall), {x->out.data(), rows, f},
                                    MatrixView<float>(x->gradient.data(), f, f), false);
  });
}

void add_elementwise_kernels(const std::vector<int>& threads, Index count) {
  struct Fixture {
    Buffer<float> in, out;
    Buffer<std::uint8_t> mask;
  };
  const auto x = std::make_shared<Fixture>(Fixture{random_numbers(count), Buffer<float>(count),
                                                   Buffer<std::uint8_t>(sheafnn::layers::Dropout::mask_size(count))});
  const double size = static_cast<double>(count);
  const sheafnn::layers::Dropout dropout{0.3, {4, sheafnn::Purpose::layer_dropout}};
  add_kernel(threads, "dropout", "mask", {size * (benchmarks::philox_block / 4 + 1), size},
             [=](int t) { dropout.fill_mask(t, count, x->mask.data()); });
  add_kernel(threads, "dropout", "apply", {2 * size, 9 * size}, [=](int t) {
    sheafnn::detail::apply_dropout(t, count, x->in.data(), x->mask.data(), dropout.scale(), x->out.data());
  });
}

void add_adam_kernel(const std::vector<int>& threads, Index parameters) {
  struct Fixture {
    sheafnn::layers::Adam<float> adam;
    Buffer<float> gradient, value;
  };
  const auto x = std::make_shared<Fixture>(
      Fixture{sheafnn::layers::Adam<float>(parameters, 1e-3), random_numbers(parameters), random_numbers(parameters)});
  x->adam.begin_step();
  const double size = static_cast<double>(parameters);
  add_kernel(threads, "Adam", "step", {15 * size, 7 * 4 * size},
             [=](int t) { x->adam.update(t, 0, parameters, 5e-4, x->gradient.data(), x->value.data()); });
}

/// Random numbers for `count` ids, W at a time: `size` floats each, written by body(ids, out).
template <int size, class Body>
void add_random_kernel(const std::vector<int>& threads, const std::string& kernel, const std::string& variant,
                       double operations, Index count, const Body& body) {
  const auto out = std::make_shared<Buffer<float>>(count * size);
  add_kernel(threads, kernel, variant,
             {static_cast<double>(count) * operations, 4.0 * size * static_cast<double>(count)}, [=](int t) {
               sheafnn::parallel_for(t, count / W, 16, [&](Index begin, Index end) {
                 std::uint32_t lane[W];
                 for (std::uint32_t i = 0; i < W; ++i) lane[i] = i;
                 for (Index i = begin; i < end; ++i) {
                   P values[size];
                   body(Word(static_cast<std::uint32_t>(i * W)) + Word::load(lane), values);
                   sheafnn::detail::store_lanes<size>(values, out->data() + i * size * W);
                 }
               });
             });
}

void add_random_kernels(const std::vector<int>& threads, Index count) {
  const sheafnn::Stream stream{5, sheafnn::Purpose::user};
  add_random_kernel<4>(threads, "random", "four normals", four_normals, count,
                       [=](const Word& id, P* out) { sheafnn::fill_normals<4, P>(out, stream, id); });
  const auto keep = [](const sheafnn::SquareMatrix<P, 3>& map, P* out) {
    for (int k = 0; k < 9; ++k) out[k] = map(k % 3, k / 3);
  };
  add_random_kernel<9>(threads, "random", "Haar on SO(3)", uniform_rotation, count,
                       [=](const Word& id, P* out) { keep(sheafnn::rotation::haar_rotation<P, 3>(stream, id), out); });
  add_random_kernel<9>(threads, "random", "Cayley on SO(3)", uniform_rotation + 105 + 54, count,
                       [=](const Word& id, P* out) {
                         const auto u = sheafnn::rotation::haar_rotation<P, 3>(stream, id);
                         keep(sheafnn::math::multiply(sheafnn::rotation::moebius<P, 3>(u, P(0.6f)), u), out);
                       });
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const int max_threads = static_cast<int>(benchmarks::take_option(argc, argv, "--threads", 2, 1, 1024));
    benchmarks::add_build_context();
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
    std::vector<int> threads = {1};
    if (max_threads > 1) threads.push_back(max_threads);
    const sheafnn::Dataset data = benchmarks::load_task(benchmarks::epoch_graphs.back());
    sheafnn::ModelOptions options;
    options.features = data.feature_count();
    options.classes = data.class_count;
    const Index width = 3 * options.channels;
    add_calibration(threads);
    add_input_kernels(threads, data, width);
    add_dense_kernels(threads, 3 * data.node_count(), options.channels);
    benchmarks::add_normalisation_kernel<sheafnn::Diagonal<3>>(threads, data.node_count());
    benchmarks::add_normalisation_kernel<sheafnn::GeneralLinear<3>>(threads, data.node_count());
    benchmarks::add_family_kernels<sheafnn::Diagonal<3>>(threads, data, options);
    benchmarks::add_family_kernels<sheafnn::SpecialOrthogonal<3>>(threads, data, options);
    benchmarks::add_family_kernels<sheafnn::GeneralLinear<3>>(threads, data, options);
    add_elementwise_kernels(threads, data.node_count() * width);
    add_adam_kernel(threads, data.feature_count() * width);
    add_random_kernels(threads, 2 * data.graph.edge_count() / W * W);
    benchmarks::Collector collector;
    benchmark::RunSpecifiedBenchmarks(&collector);
    std::printf("\n%s", benchmarks::kernel_table(collector.measurements()).c_str());
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "kernels: %s\n", error.what());
    return 2;
  }
}
