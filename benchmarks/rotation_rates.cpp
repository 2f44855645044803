/// \file
/// Samples and log densities per second of distributions of rotations, on one core, in float; and the normal
/// numbers they are made of. `items_per_second` counts rotations. benchmarks/rotations_scipy.py runs this program
/// and scipy side by side.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <vector>

#include "sheafnn/rotation/cayley_distribution.hpp"
#include "sheafnn/rotation/sample_many.hpp"

namespace {

using namespace sheafnn;
using namespace sheafnn::math;
using namespace sheafnn::rotation;

constexpr std::size_t count = 4096;  ///< rotations per call

template <int N, class Scalar>
SquareMatrix<Scalar, N> some_rotation() {
  return haar_rotation<Scalar, N>(Stream{.seed = 1}, 0);
}

void count_items(benchmark::State& state) {
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) * static_cast<std::int64_t>(count));
}

template <int N, class Scalar>
[[nodiscard]] CayleyDistribution<N, Scalar> some_cayley() {
  return {some_rotation<N, Scalar>(), Scalar(0.7)};
}

/// The `Normals` normal numbers behind each rotation, stored as packs.
template <class Scalar, int Normals>
void normals(benchmark::State& state) {
  using P = BatchPack<Scalar>;
  std::vector<P> out(count / P::width * Normals);
  std::uint32_t first = 0;
  for (auto _ : state) {
    for (std::size_t i = 0; i < count / P::width; ++i) {
      fill_normals<Normals, P>(&out[i * Normals], Stream{.seed = 2},
                               detail::consecutive_ids<P>(first + static_cast<std::uint32_t>(i * P::width)));
    }
    first += count;
    benchmark::DoNotOptimize(out.data());
    benchmark::ClobberMemory();
  }
  count_items(state);
}

/// Fills `out` with batches of samples, packs of them or matrices.
template <class D, class Samples>
void draw(benchmark::State& state, const D& distribution, Samples out) {
  std::uint32_t first = 0;
  for (auto _ : state) {
    sample_many(distribution, Stream{.seed = 2}, first, out);
    first += count;
    benchmark::DoNotOptimize(out.data());
    benchmark::ClobberMemory();
  }
  count_items(state);
}
template <int N, class Scalar>
[[nodiscard]] std::vector<RotationPack<N, Scalar>> packs() {
  return std::vector<RotationPack<N, Scalar>>(count / BatchPack<Scalar>::width);
}
template <int N, class Scalar>
[[nodiscard]] std::vector<SquareMatrix<Scalar, N>> matrices() {
  return std::vector<SquareMatrix<Scalar, N>>(count);
}

template <int N, class Scalar>
void log_density(benchmark::State& state) {
  using P = BatchPack<Scalar>;
  const CayleyDistribution<N, Scalar> distribution = some_cayley<N, Scalar>();
  std::vector<RotationPack<N, Scalar>> in = packs<N, Scalar>();
  sample_many(distribution, Stream{.seed = 2}, 0, in);
  const auto location = detail::in_all_lanes<P>(distribution.location());
  std::vector<P> out(in.size());
  for (auto _ : state) {
    for (std::size_t i = 0; i < in.size(); ++i) {
      out[i] = cayley_logpdf<P, N>(multiply_nt(in[i], location), P(distribution.concentration()));
    }
    benchmark::DoNotOptimize(out.data());
    benchmark::ClobberMemory();
  }
  count_items(state);
}

template <int N, class Scalar>
void uniform(benchmark::State& state) {
  draw(state, HaarDistribution<N, Scalar>(), packs<N, Scalar>());
}
template <int N, class Scalar>
void uniform_matrices(benchmark::State& state) {
  draw(state, HaarDistribution<N, Scalar>(), matrices<N, Scalar>());
}
template <int N, class Scalar>
void cayley(benchmark::State& state) {
  draw(state, some_cayley<N, Scalar>(), packs<N, Scalar>());
}
template <int N, class Scalar>
void cayley_matrices(benchmark::State& state) {
  draw(state, some_cayley<N, Scalar>(), matrices<N, Scalar>());
}

}  // namespace

BENCHMARK(normals<float, 4>);
BENCHMARK(normals<double, 4>);
BENCHMARK(uniform<3, float>);
BENCHMARK(uniform<3, double>);
BENCHMARK(uniform_matrices<3, float>);
BENCHMARK(uniform_matrices<3, double>);
BENCHMARK(uniform<8, float>);
BENCHMARK(uniform<8, double>);
BENCHMARK(uniform_matrices<8, double>);
BENCHMARK(cayley<2, float>);
BENCHMARK(cayley<3, float>);
BENCHMARK(cayley<4, float>);
BENCHMARK(cayley<8, float>);
BENCHMARK(cayley<3, double>);
BENCHMARK(cayley<8, double>);
BENCHMARK(cayley_matrices<3, double>);
BENCHMARK(cayley_matrices<8, double>);
BENCHMARK(log_density<2, float>);
BENCHMARK(log_density<3, float>);
BENCHMARK(log_density<4, float>);
BENCHMARK(log_density<8, float>);
