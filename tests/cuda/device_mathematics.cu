/// \file
/// The per-arc and per-node mathematics as device code: one thread per incident pair draws a rotation, samples a
/// map and runs every backward pass, with the functions the CPU runs on packs. Prints the largest difference from
/// the host, or says that there is no GPU; the point of compiling it is that the functions stay fit for the
/// device.
#include <cstdio>

#include "sheafnn/posterior/default_posterior.hpp"
#include "sheafnn/rotation/angular_central_gaussian.hpp"
#include "sheafnn/rotation/cayley_gradient.hpp"
#include "sheafnn/rotation/centred_cayley.hpp"
#include "sheafnn/rotation/isotropic_gaussian.hpp"
#include "sheafnn/rotation/wrapped_cauchy.hpp"
#include "sheafnn/sheaf/families.hpp"
#include "sheafnn/sheaf/laplacian_blocks.hpp"
#include "sheafnn/sheaf/normalisation.hpp"
#include "worst.hpp"

namespace {

using namespace sheafnn;
using namespace sheafnn::layers;
using namespace sheafnn::math;
using namespace sheafnn::rotation;
using namespace sheafnn::sheaf;

/// One incident pair: raw output in, a number that depends on every function out.
template <class Family>
SHEAFNN_HD float incident_pair(const float* raw, std::uint32_t arc) {
  using Q = DefaultPosterior<Family>;
  const Q q{};
  float parameters[Q::parameter_size], noise[Q::noise_size], gradient[Q::gradient_size] = {};
  float raw_bar[Q::mean_size + Q::spread_size];
  q.activate(raw, parameters);
  q.draw_noise(Stream{7, Purpose::sheaf_noise}, arc, noise);
  typename Family::template Map<float> map, map_bar;
  q.sample(parameters, noise, map);
  const Gram<Family, float> g = gram<Family, float>(map);
  const NodeScaling<Family, float> scaling = node_scaling<Family, float>(Normalisation::augmented, g, 1.0f);
  const Transport<Family, float> product = transport<Family, float>(map, map);
  const Transport<Family, float> block = off_diagonal_block<Family, float>(scaling.scale, product, scaling.scale);
  Transport<Family, float> product_bar;
  Gram<Family, float> scale_bar, other_scale_bar, degree_bar = g;
  off_diagonal_block_backward<Family, float>(scaling.scale, product, scaling.scale, block, product_bar, scale_bar,
                                             other_scale_bar);
  node_scaling_backward<Family, float>(Normalisation::augmented, scaling, scale_bar, degree_bar);
  map_bar = map;
  transport_backward<Family, float>(map, map, product_bar, map_bar, map_bar);
  gram_backward<Family, float>(map, degree_bar, map_bar);
  q.kl_backward(parameters, 1.0f, gradient);
  q.sample_backward(parameters, noise, map, map_bar, 0.0f, gradient);
  q.activate_backward(raw, parameters, gradient, raw_bar);
  float sum = q.kl(parameters);
  for (const float x : raw_bar) sum += x;
  return sum;
}

template <class Family>
__global__ void incident_pairs(const float* raw, int width, int count, float* out) {
  const int arc = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (arc < count) out[arc] = incident_pair<Family>(raw + arc * width, static_cast<std::uint32_t>(arc));
}

/// One sample of each distribution of rotations, its log density and derivatives: a number that depends on all of
/// them.
template <int N>
SHEAFNN_HD float rotation_sample(std::uint32_t id) {
  const Stream stream{7, Purpose::user};
  const float kappa = 0.6f;
  const SquareMatrix<float, N> m = haar_rotation<float, N>(stream, id, 40);
  const SquareMatrix<float, N> p = multiply(centred_cayley_sample<float, N>(stream, id, kappa), m);
  const CayleyLogpdfGradient<float, N> gradient = cayley_logpdf_gradient<float, N>(p, m, kappa);
  const RotationParameters<float, N> turn = tangent_gradient<float, N>(gradient.location, m);
  const SquareMatrix<float, N> factor = identity_matrix<float, N>();
  const Column<float, N> x = angular_central_gaussian_sample<float, N>(factor, stream, id, 80);
  const float angle = wrapped_cauchy_from_uniform<float>(3.0f * x(0), 1.0f, kappa);
  float isotropic = 0;
  if constexpr (N == 3) {
    // Both series of the heat kernel and both kinds of proposals.
    for (const float sigma : {0.5f, 1.6f}) {
      const Column<float, 4> q = isotropic_gaussian_quaternion<float>(sigma, stream, id, 120);
      isotropic += isotropic_gaussian_logpdf<float>(q, sigma) + q(1);
    }
  }
  return isotropic + cayley_logpdf<float, N>(multiply_nt(p, m), kappa) + gradient.concentration + turn(0) +
         angular_central_gaussian_logpdf<float, N>(x, factor) + wrapped_cauchy_logpdf<float>(angle - 1.0f, kappa);
}

template <int N>
__global__ void rotation_samples(int count, float* out) {
  const int id = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (id < count) out[id] = rotation_sample<N>(static_cast<std::uint32_t>(id));
}

/// Largest relative difference between device and host over 1000 ids; −1 on a CUDA error.
template <int N>
double compare_rotations() {
  constexpr int count = 1000;
  float result[count];
  float* device_out = nullptr;
  if (cudaMalloc(&device_out, sizeof result) != cudaSuccess) return -1;
  rotation_samples<N><<<(count + 127) / 128, 128>>>(count, device_out);
  if (cudaMemcpy(result, device_out, sizeof result, cudaMemcpyDeviceToHost) != cudaSuccess) return -1;
  cudaFree(device_out);
  double worst = 0;
  for (int id = 0; id < count; ++id) {
    const double host = rotation_sample<N>(static_cast<std::uint32_t>(id));
    worst = test::worse(worst, std::abs(result[id] - host) / (1 + std::abs(host)));
  }
  std::printf("distributions on SO(%d): largest relative difference between device and host %.2g\n", N, worst);
  return worst;
}

/// Largest relative difference between device and host over `count` incident pairs; −1 on a CUDA error.
template <class Family>
double compare(const char* name) {
  using Q = DefaultPosterior<Family>;
  constexpr int width = Q::mean_size + Q::spread_size, count = 1000;
  float raw[count * width], result[count];
  for (int i = 0; i < count * width; ++i) raw[i] = static_cast<float>((i * 37) % 101) / 50.0f - 1.0f;
  float *device_raw = nullptr, *device_out = nullptr;
  if (cudaMalloc(&device_raw, sizeof raw) != cudaSuccess || cudaMalloc(&device_out, sizeof result) != cudaSuccess)
    return -1;
  cudaMemcpy(device_raw, raw, sizeof raw, cudaMemcpyHostToDevice);
  incident_pairs<Family><<<(count + 127) / 128, 128>>>(device_raw, width, count, device_out);
  if (cudaMemcpy(result, device_out, sizeof result, cudaMemcpyDeviceToHost) != cudaSuccess) return -1;
  cudaFree(device_raw);
  cudaFree(device_out);
  double worst = 0;
  for (int arc = 0; arc < count; ++arc) {
    const double host = incident_pair<Family>(raw + arc * width, static_cast<std::uint32_t>(arc));
    worst = test::worse(worst, std::abs(result[arc] - host) / (1 + std::abs(host)));
  }
  std::printf("%s: largest relative difference between device and host %.2g\n", name, worst);
  return worst;
}

}  // namespace

int main() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::printf("skipped: no CUDA device\n");
    return 77;
  }
  // Rounding of a few hundred operations in single precision, some of them library functions of either side.
  constexpr double bound = 1000 * 1.2e-7;
  bool good = true;
  for (const double worst : {compare<Diagonal<3>>("diagonal"), compare<SpecialOrthogonal<3>>("special-orthogonal"),
                             compare<GeneralLinear<3>>("general-linear"), compare<Conformal<3>>("conformal"),
                             compare_rotations<2>(), compare_rotations<3>(), compare_rotations<4>()}) {
    good = good && worst >= 0 && worst <= bound;
  }
  return good ? 0 : 1;
}
