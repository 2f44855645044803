/// \file
/// The kernels that an epoch is made of, one at a time on a large random graph: time, and bytes per second of what
/// must move at least, every input and output once. Kernels that read a row of features per arc are also rated by
/// what they ask for: such a row each time.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <sheafnn/batch/array.hpp>
#include <sheafnn/batch/block_gradient_kernels.hpp>
#include <sheafnn/batch/diffusion_kernels.hpp>
#include <sheafnn/batch/execution.hpp>
#include <sheafnn/batch/graph.hpp>
#include <sheafnn/batch/learner_kernels.hpp>
#include <sheafnn/batch/run.hpp>
#include <sheafnn/batch/sheaf.hpp>
#include <sheafnn/posterior/default_posterior.hpp>
#include <span>
#include <string>
#include <string_view>

#include "gpu/section.hpp"

namespace benchmarks {

/// Kernels of a family of maps, in the order of an epoch, …
inline constexpr std::array<std::string_view, 14> family_kernel_names = {"add projections per pair",
                                                                         "activate posterior",
                                                                         "sample maps",
                                                                         "build nodes",
                                                                         "mix and scale",
                                                                         "diffusion forward",
                                                                         "activation backward",
                                                                         "diffusion backward",
                                                                         "edge gradient",
                                                                         "node gradient",
                                                                         "mix backward",
                                                                         "build nodes backward",
                                                                         "sample maps backward",
                                                                         "gather projections"};
/// … and the kernels that do not depend on it.
inline constexpr std::array<std::string_view, 9> common_kernel_names = {"dropout of stored features",
                                                                        "sparse input",
                                                                        "sparse input gradient",
                                                                        "dropout",
                                                                        "dropout backward",
                                                                        "products of rows (f x f)",
                                                                        "products of coordinates (d x d)",
                                                                        "products of embeddings (learner)",
                                                                        "Adam"};

/// Channels per stalk coordinate.
inline constexpr sheafnn::Index kernel_channels = 16;

/// Bytes that a launch must move, and that its gathers ask for: 0 where it has none.
struct Traffic {
  double least = 0, gathered = 0;
};

/// Times launches.
class KernelMeter {
 public:
  /// \param copy  bytes per second of a copy
  KernelMeter(Executor& executor, const Effort& effort, double copy, Report& report)
      : executor_(executor), effort_(effort), copy_(copy), report_(report) {}

  /// `launch` enqueues the kernel; it may be repeated.
  template <class Launch>
  void measure(std::string_view maps, std::string_view name, const Traffic& traffic, const Launch& launch) {
    launch();  // an error shows here, not in the recording; and later kernels read what this one writes
    executor_.synchronise();
    executor_.record(launch);
    const Timing t = time_replays(executor_, effort_);
    report_.add(sheafnn::detail::concat(maps, "/", name), {{"median_us", 1e6 * t.median},
                                                   {"bytes", traffic.least},
                                                   {"bytes_per_s", traffic.least / t.median},
                                                   {"of_copy", traffic.least / t.median / copy_},
                                                   {"gathered_bytes", traffic.gathered},
                                                   {"gathered_bytes_per_s", traffic.gathered / t.median}});
  }

 private:
  Executor& executor_;
  Effort effort_;
  double copy_;
  Report& report_;
};

/// Numbers that look random, uniform in ±scale; one item each.
struct RandomNumbers {
  float* out;
  float scale;
  std::uint32_t salt;
  SHEAFNN_HD void operator()(sheafnn::Index item, sheafnn::Index) const {
    std::uint32_t x = static_cast<std::uint32_t>(item) * 0x9E3779B9U + salt;
    x = (x ^ (x >> 16)) * 0x85EBCA6BU;
    x = (x ^ (x >> 13)) * 0xC2B2AE35U;
    out[item] = scale * (static_cast<float>((x ^ (x >> 16)) >> 8) * (2.0f / 16777216.0f) - 1.0f);
  }
};
using FloatArray = sheafnn::batch::Array<Executor, float>;
[[nodiscard]] inline FloatArray random_array(Executor& executor, sheafnn::Index size, float scale = 1.0f) {
  FloatArray r(executor, "kernel benchmarks", size);
  executor.launch(size, 1, RandomNumbers{r.data(), scale, static_cast<std::uint32_t>(size)});
  return r;
}

/// One training of which the kernels read seed and rates.
[[nodiscard]] inline sheafnn::batch::Run kernel_run() {
  sheafnn::batch::Run r;
  r.input_dropout = sheafnn::batch::DropoutRule(0.5);
  r.dropout = sheafnn::batch::DropoutRule(0.3);
  r.kl_weight = 0.5;
  r.learning_rate = 0.01;
  r.step_rate = 0.01;
  r.root_scale = 1;
  return r;
}

/// Measures the kernels of a family on a graph, each on what the one before it wrote: one training, one sample.
template <class Family>
void measure_family(Executor& executor, const sheafnn::batch::detail::GraphView<float>& graph,
                    std::string_view maps, KernelMeter& meter) {
  using namespace sheafnn;
  using namespace sheafnn::layers;
  using namespace sheafnn::rotation;
  using namespace sheafnn::sheaf;
  using namespace sheafnn::batch;
  using namespace sheafnn::batch::detail;
  using Q = DefaultPosterior<Family>;
  using Sizes = BlockSizes<Family>;
  constexpr bool weighted = may_have_edge_weights<Family>, own_gram = !is_orthogonal<Family>;
  constexpr Index D = Family::stalk_dimension, f = kernel_channels, h = D * f;
  constexpr Index raw_size = Q::mean_size + Q::spread_size, q = raw_size + (weighted ? 1 : 0);
  const Q posterior{};
  const Index n = graph.nodes, m = graph.edges, pairs = graph.pairs();
  const Pass pass{1, 1, true, 0};
  const SheafRange range;
  const FeatureShape<float> shape{n, D, f, {}};
  const Run run = kernel_run();
  Array<Executor, Run> runs(executor, "kernel benchmarks", std::span<const Run>(&run, 1));

  const auto array = [&](Index size) { return FloatArray(executor, "kernel benchmarks", size); };
  FloatArray projection = random_array(executor, n * 2 * q);
  FloatArray raw = array(pairs * raw_size), raw_bar = array(pairs * ((raw_size + 3) / 4 * 4)), kl = array(pairs);
  FloatArray parameters = array(pairs * Q::parameter_size);
  FloatArray factor, logit_bar, weight;
  if constexpr (weighted) {
    factor = array(pairs);
    logit_bar = array(pairs);
    weight = array(m);
  }
  constexpr Index bar_row = (raw_size + 3) / 4 * 4;  // as BatchSheafLearner::raw_bar()
  const auto per_pair = [&](FloatArray& a, Index size) {
    return PairArray<float>{a.data(), pairs, 1, pairs * size};
  };
  const PairArray<float> raw_pairs = per_pair(raw, raw_size),
                         raw_bar_pairs{raw_bar.data(), 1, bar_row, pairs * bar_row};
  const PairArray<float> parameter_pairs = per_pair(parameters, Q::parameter_size);
  FloatArray weights = random_array(executor, D * D + D + f * f, 0.5f);
  const float *left = weights.data(), *epsilon = left + D * D, *right = epsilon + D;
  const int arc_lanes = graph.arc_lanes(n);
  BatchSheaf<Executor, Family, float> sheaf(executor, graph, 1, 1, Normalisation::augmented, {});
  FloatArray x = random_array(executor, n * h), x_bar = random_array(executor, n * h);
  FloatArray y = array(n * h), w = array(n * h), r = array(n * h), out = array(n * h);
  FloatArray product = array(n * h), segments = array(graph.segments * h);
  FloatArray z_bar = array(n * h), r_bar = array(n * h), w_bar = array(n * h), y_bar = array(n * h);

  // In numbers of four bytes.
  const auto numbers = [](Index count, Index gathered = 0) {
    return Traffic{4 * static_cast<double>(count), 4 * static_cast<double>(gathered)};
  };
  const Index edge_weights = weighted ? m : 0, dense = n * h, blocks = n * Sizes::gram;
  // A kernel that reads, per arc, `rows` numbers of the other node instead of the numbers of each node once.
  const auto gathering = [&](Index count, Index once, Index per_arc) {
    return numbers(count, count - once + pairs * per_arc);
  };
  std::size_t next = 0;
  const auto measure = [&](const Traffic& traffic, const auto& launch) {
    meter.measure(maps, family_kernel_names[next++], traffic, launch);
  };

  measure(gathering(n * 2 * q + pairs + pairs * q + edge_weights, n * 2 * q, 2 * q), [&] {
    executor.launch(m, 1,
                    ProjectPairs<float>{graph, projection.data(), nullptr, 0, 1, 0, q, raw_size, false, raw_pairs,
                                        factor.data(), weight.data()});
  });
  measure(numbers(pairs * (raw_size + Q::parameter_size + 1)), [&] {
    executor.launch(pairs, 1, ActivatePairs<Q, float>{raw_pairs, parameter_pairs, posterior, kl.data(), pairs});
  });
  const SampledMaps<Q, float> sampled{graph, runs.data(), pass, parameter_pairs, posterior, nullptr, 1, {}};
  measure(numbers(pairs * (Q::parameter_size + 1 + Sizes::map + (own_gram ? Sizes::gram : 0)) + edge_weights +
                  m * Sizes::transport),
          [&] {
            executor.launch(m, 1,
                            BuildEdges<Family, float, SampledMaps<Q, float>>{graph, range, sheaf.view(), sampled,
                                                                             weight.data(), 1});
          });
  measure(numbers(2 * n + (own_gram ? pairs * Sizes::gram : pairs + edge_weights) + 2 * blocks + n * Sizes::eigen),
          [&] {
            executor.launch_teams(n, 1, arc_lanes,
                                  BuildNodes<Family, float>{graph, range, sheaf.view(), weight.data(), 1,
                                                            Normalisation::augmented, arc_lanes});
          });
  measure(numbers(4 * dense + blocks + f * f), [&] {
    executor.launch(shape.items(), 1,
                    MixForward<Family, float>{{graph, range, sheaf.view()}, shape, 1, right, 0, left, 0, x.data(),
                                              product.data(), y.data(), w.data()});
  });
  const auto diffusion = [&](const FloatArray& features) {
    return begin_diffusion(executor, 1, graph, range, sheaf.view(), shape, features.data(), segments.data());
  };
  const Index laplacian = 2 * blocks + m * Sizes::transport + n + 2 * pairs;
  measure(gathering(laplacian + 4 * dense, 0, h), [&] {
    launch_diffusion(executor, 1,
                     DiffuseForward<Family, float>{{diffusion(w)},
                                                   r.data(),
                                                   {epsilon, 0, true, x.data(), out.data(), runs.data(), pass, 1,
                                                    nullptr}});
  });
  measure(numbers(4 * dense + blocks), [&] {
    executor.launch(shape.items(), 1,
                    ActivationBackward<Family, float>{graph, range, sheaf.view(), shape, true, r.data(),
                                                      x_bar.data(), z_bar.data(), r_bar.data()});
  });
  measure(gathering(laplacian + 3 * dense, 0, h), [&] {
    launch_diffusion(executor, 1, DiffuseBackward<Family, float>{{diffusion(r_bar)}, w_bar.data(), y_bar.data()});
  });
  const int lanes = tile_lanes(shape);
  measure(gathering(2 * dense + pairs + m * Sizes::transport, 2 * dense, 2 * h), [&] {
    executor.launch_teams(m, 1, lanes,
                          EdgeGradient<Family, float>{graph, range, shape, w.data(), r_bar.data(),
                                                      sheaf.gradient().off_diagonal, false, lanes});
  });
  measure(numbers(6 * dense + 2 * blocks), [&] {
    executor.launch_teams(n, 1, lanes,
                          NodeGradient<Family, float>{range,
                                                      shape,
                                                      {y.data()},
                                                      w.data(),
                                                      r.data(),
                                                      z_bar.data(),
                                                      r_bar.data(),
                                                      w_bar.data(),
                                                      sheaf.gradient(),
                                                      false,
                                                      lanes});
  });
  measure(numbers(4 * dense + f * f), [&] {
    executor.launch(shape.items(), 1,
                    MixBackward<Family, float>{shape, runs.data(), pass, 0, true, right, left, epsilon, 0,
                                               y_bar.data(), product.data(), x_bar.data()});
  });
  measure(numbers(4 * blocks + n * Sizes::eigen), [&] {
    executor.launch(n, 1,
                    BackwardNodes<Family, float>{range, sheaf.view(), sheaf.gradient(), Normalisation::augmented});
  });
  measure(numbers(pairs * (1 + Sizes::map + Q::parameter_size + 2 * raw_size + (weighted ? 2 : 0)) + edge_weights +
                  m * Sizes::transport + blocks),
          [&] {
            executor.launch_teams(pairs, 1, 1,
                                  BackwardSampledEdges<Q, float>{graph, sheaf.view(), sheaf.gradient(),
                                                                 runs.data(), 1, 1, raw_pairs, raw_bar_pairs,
                                                                 sampled, weight.data(), factor.data(),
                                                                 logit_bar.data(), true, kl.data(), 1,
                                                                 1 / static_cast<double>(pairs), 1});
          });
  measure(gathering(n + pairs + pairs * q + n * 2 * q, pairs * q, 2 * q), [&] {
    GatherProjections<float> gather{graph, raw_bar_pairs, logit_bar.data(), q, raw_size, projection.data()};
    gather.lanes = graph.arc_lanes(gather.items());
    executor.launch_teams(gather.items(), 1, gather.lanes, gather);
  });
}

using MeasureFamily = void (*)(Executor& executor, const sheafnn::batch::detail::GraphView<float>& graph,
                               std::string_view maps, KernelMeter& meter);
extern const MeasureFamily diagonal_kernels, special_orthogonal_kernels, general_linear_kernels;

}  // namespace benchmarks
