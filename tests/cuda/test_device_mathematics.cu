/// \file
/// The per-arc and per-node mathematics as device code: one item per incident pair draws a rotation, samples a map and
/// runs every backward pass, and one per id samples each distribution of rotations and takes its derivatives, with the
/// functions that the CPU runs on packs. The host's numbers are the same up to rounding.
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "sheafnn/batch/array.hpp"
#include "sheafnn/batch/device_executor.hpp"
#include "sheafnn/posterior/default_posterior.hpp"
#include "sheafnn/rotation/angular_central_gaussian.hpp"
#include "sheafnn/rotation/cayley_gradient.hpp"
#include "sheafnn/rotation/centred_cayley.hpp"
#include "sheafnn/rotation/isotropic_gaussian.hpp"
#include "sheafnn/rotation/wrapped_cauchy.hpp"
#include "sheafnn/sheaf/blocks.hpp"
#include "sheafnn/sheaf/families.hpp"
#include "sheafnn/sheaf/normalisation.hpp"
#include "worst.hpp"

namespace test_device_mathematics {
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
  const Transport<Family, float> product_bar =
      block_product(block_product(scaling.scale, product), scaling.scale);
  Gram<Family, float> degree_bar = g;
  node_scaling_backward<Family, float>(Normalisation::augmented, scaling, scaling.scale, degree_bar);
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
struct IncidentPairs {
  static constexpr int numbers = 1;
  float* out;
  SHEAFNN_HD void operator()(Index arc, Index) const {
    using Q = DefaultPosterior<Family>;
    constexpr int width = Q::mean_size + Q::spread_size;
    float raw[width];
    for (int i = 0; i < width; ++i) raw[i] = static_cast<float>((arc * width + i) * 37 % 101) / 50.0f - 1.0f;
    out[arc] = incident_pair<Family>(raw, static_cast<std::uint32_t>(arc));
  }
};

/// One sample of each distribution of rotations, its log density and derivatives.
template <int N>
struct RotationSamples {
  static constexpr int numbers = N == 3 ? 13 : 5;
  float* out;
  SHEAFNN_HD void operator()(Index item, Index) const {
    const std::uint32_t id = static_cast<std::uint32_t>(item);
    float* next = out + item * numbers;
    const Stream stream{7, Purpose::user};
    const float kappa = 0.6f;
    const SquareMatrix<float, N> m = haar_rotation<float, N>(stream, id, 40);
    const SquareMatrix<float, N> p = multiply(centred_cayley_sample<float, N>(stream, id, kappa), m);
    const CayleyLogpdfGradient<float, N> gradient = cayley_logpdf_gradient<float, N>(p, m, kappa);
    const RotationParameters<float, N> turn = tangent_gradient<float, N>(gradient.location, m);
    const SquareMatrix<float, N> factor = identity_matrix<float, N>();
    const Column<float, N> x = angular_central_gaussian_sample<float, N>(factor, stream, id, 80);
    const float angle = wrapped_cauchy_from_uniform<float>(3.0f * x(0), 1.0f, kappa);
    *next++ = cayley_logpdf<float, N>(multiply_nt(p, m), kappa);
    *next++ = gradient.concentration;
    *next++ = turn(0);
    *next++ = angular_central_gaussian_logpdf<float, N>(x, factor);
    *next++ = wrapped_cauchy_logpdf<float>(angle - 1.0f, kappa);
    if constexpr (N == 3) {
      // Both series of the heat kernel and both kinds of proposals: a sample, log density, score and derivative in time.
      for (const float sigma : {0.5f, 1.6f}) {
        const Column<float, 4> q = isotropic_gaussian_quaternion<float>(sigma, stream, id, 120);
        const auto kernel = sheafnn::detail::heat_kernel(sheafnn::detail::half_angle<float>(q), sigma * sigma);
        *next++ = q(1);
        *next++ = isotropic_gaussian_logpdf<float>(q, sigma);
        *next++ = kernel.slope;
        *next++ = kernel.time_slope;
      }
    }
  }
};

/// Each number of 1000 items: relative to 1 and to itself, rounding of a few hundred operations in single precision, some of them
/// library functions of either side.
template <class Kernel>
void compare() {
  constexpr Index count = 1000;
  batch::DeviceExecutor device;
  batch::Array<batch::DeviceExecutor, float> out(device, "the numbers of a test", count * Kernel::numbers);
  device.launch(count, 1, Kernel{out.data()});
  const std::vector<float> result = out.download();
  std::vector<float> host(result.size());
  for (Index item = 0; item < count; ++item) Kernel{host.data()}(item, 0);
  for (std::size_t k = 0; k < Kernel::numbers; ++k) {
    double worst = 0;
    for (std::size_t i = k; i < host.size(); i += Kernel::numbers) {
      const double expected = static_cast<double>(host[i]);
      worst = test::worse(worst, std::abs(static_cast<double>(result[i]) - expected) / (1 + std::abs(expected)));
    }
    CAPTURE(k);
    CHECK(worst <= 1000 * 1.2e-7);
  }
}

}  // namespace

TEST_CASE("functions of arcs and nodes are the same on the GPU and on the host") {
  compare<IncidentPairs<Diagonal<3>>>();
  compare<IncidentPairs<SpecialOrthogonal<3>>>();
  compare<IncidentPairs<GeneralLinear<3>>>();
  compare<IncidentPairs<Conformal<3>>>();
}

TEST_CASE("distributions of rotations are the same on the GPU and on the host") {
  compare<RotationSamples<2>>();
  compare<RotationSamples<3>>();
  compare<RotationSamples<4>>();
}

}  // namespace test_device_mathematics
