/// \file
/// Densities, samples and derivatives of distributions of rotations in float and in packs agree, lane by lane,
/// with double.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "rotation_checks.hpp"
#include "sheafnn/rotation/angular_central_gaussian.hpp"
#include "sheafnn/rotation/cayley_gradient.hpp"
#include "sheafnn/rotation/centred_cayley.hpp"
#include "sheafnn/rotation/wrapped_cauchy.hpp"

namespace test_rotation_lanes {
namespace {

using namespace rotation_checks;
using sheafnn::math::Column;
using sheafnn::math::Pack;
using sheafnn::SquareMatrix;
using sheafnn::Stream;

template <class T>
const double unit = static_cast<double>(std::numeric_limits<sheafnn::math::scalar_of_t<T>>::epsilon());

template <class T>
sheafnn::random::word_of_t<T> some_ids() {
  if constexpr (std::is_arithmetic_v<T>) {
    return 1000;
  } else {
    std::uint32_t ids[T::width];
    for (int l = 0; l < T::width; ++l) ids[l] = static_cast<std::uint32_t>(1000 + 7 * l);
    return sheafnn::random::word_of_t<T>::load(ids);
  }
}

template <class T, int N>
void check_cayley() {
  CAPTURE(N);
  const Stream stream{.seed = 601};
  const auto p = sheafnn::rotation::haar_rotation<T, N>(stream, some_ids<T>(), 2);
  const auto m = sheafnn::rotation::haar_rotation<T, N>(stream, some_ids<T>(), 9);
  T kappa{};
  for (int l = 0; l < lane_count<T>; ++l) set_lane(kappa, l, 0.0625 * ((3 * l + 5) % 15));
  const auto gradient = sheafnn::rotation::cayley_logpdf_gradient<T, N>(p, m, kappa);
  const auto tangent = sheafnn::rotation::tangent_gradient<T, N>(gradient.location, m);
  for (int l = 0; l < lane_count<T>; ++l) {
    CAPTURE(l);
    const double k = get_lane(kappa, l);
    const SquareMatrix<double, N> p64 = one_lane(p, l), m64 = one_lane(m, l);
    const auto exact = sheafnn::rotation::cayley_logpdf_gradient<double, N>(p64, m64, k);
    // An elimination with pivots of at least 1 − κ, scaled by 1/(1 − κ).
    const double bound = 32 * N * N * unit<T> / ((1 - k) * (1 - k));
    CHECK(std::abs(get_lane(gradient.concentration, l) - exact.concentration) <= bound);
    CHECK((one_lane(gradient.location, l) - exact.location).norm() <= bound);
    CHECK((one_lane(gradient.argument, l) - exact.argument).norm() <= bound);
    CHECK((one_lane(tangent, l) - sheafnn::rotation::tangent_gradient<double, N>(exact.location, m64)).norm() <=
          2 * bound);
  }
  for (const double k : {0.0, 0.5, 0.875, 0.9990234375}) {
    CAPTURE(k);
    const auto y =
        sheafnn::rotation::centred_cayley_sample<T, N>(stream, some_ids<T>(),
                                                       static_cast<sheafnn::math::scalar_of_t<T>>(k), 4);
    for (int l = 0; l < lane_count<T>; ++l) {
      const auto id = static_cast<std::uint32_t>(1000 + 7 * l);
      const SquareMatrix<double, N> exact =
          sheafnn::rotation::moebius<double, N>(sheafnn::rotation::haar_rotation<double, N>(stream, id, 4), k);
      // ∂Y₀/∂U is at most (1 + κ)/(1 − κ).
      CHECK((one_lane(y, l) - exact).norm() <= 128 * N * unit<T> / (1 - k));
      CHECK(sheafnn::rotation::orthogonality_defect<double, N>(one_lane(y, l)) <=
            16 * N * unit<T> / std::min(1.0, 16 * (1 - k)));
    }
  }
}

template <class T>
void check_circle() {
  T kappa{}, u{}, centred{}, mu(0.75f);
  for (int l = 0; l < lane_count<T>; ++l) {
    set_lane(kappa, l, 0.0625 * ((3 * l + 5) % 15));
    set_lane(u, l, 0.1 + 0.375 * l);
    set_lane(centred, l, -3 + 0.375 * l);
  }
  const T y = sheafnn::rotation::wrapped_cauchy_from_uniform<T>(u, mu, kappa);
  const T log_density = sheafnn::rotation::wrapped_cauchy_logpdf<T>(centred, kappa);
  for (int l = 0; l < lane_count<T>; ++l) {
    CAPTURE(l);
    const double k = get_lane(kappa, l);
    const sheafnn::rotation::WrappedCauchy<> distribution(0.75, k);
    const double bound = 32 * unit<T> / (1 - k);
    const double difference = get_lane(y, l) - sheafnn::rotation::sample_from_uniform(distribution, get_lane(u, l));
    CHECK(std::abs(std::remainder(difference, 6.283185307179586)) <= bound);
    CHECK(std::abs(get_lane(log_density, l) - sheafnn::rotation::logpdf(distribution, get_lane(centred, l) + 0.75)) <=
          bound);
  }
}

template <class T, int P>
void check_gaussian() {
  CAPTURE(P);
  std::mt19937 engine(603);
  SquareMatrix<double, P> factor = random_matrix<P, P>(engine);
  for (int j = 0; j < P; ++j) {
    factor(j, j) = 1 + 0.25 * j;
    for (int i = 0; i < j; ++i) factor(i, j) = 0;
  }
  const SquareMatrix<T, P> lanes_of_factor =
      from_lanes<T, P, P>(std::vector<SquareMatrix<double, P>>(static_cast<std::size_t>(lane_count<T>), factor));
  const Stream stream{.seed = 604};
  const auto x = sheafnn::rotation::angular_central_gaussian_sample<T, P>(lanes_of_factor, stream, some_ids<T>(), 1);
  const T log_density = sheafnn::rotation::angular_central_gaussian_logpdf<T, P>(x, lanes_of_factor);
  for (int l = 0; l < lane_count<T>; ++l) {
    CAPTURE(l);
    const auto id = static_cast<std::uint32_t>(1000 + 7 * l);
    const Column<double, P> exact =
        sheafnn::rotation::angular_central_gaussian_sample<double, P>(factor, stream, id, 1);
    CHECK((one_lane(x, l) - exact).norm() <= 64 * P * unit<T>);
    // ‖L⁻¹‖ is at most 2^P.
    CHECK(std::abs(get_lane(log_density, l) -
                   sheafnn::rotation::angular_central_gaussian_logpdf<double, P>(one_lane(x, l), factor)) <=
          16 * P * (1 << P) * unit<T>);
  }
}

template <class T>
void check_all() {
  check_cayley<T, 2>();
  check_cayley<T, 3>();
  check_cayley<T, 4>();
  check_cayley<T, 5>();
  check_circle<T>();
  check_gaussian<T, 2>();
  check_gaussian<T, 4>();
  check_gaussian<T, 6>();
}

}  // namespace

TEST_CASE("distributions of rotations in float") { check_all<float>(); }
TEST_CASE("distributions of rotations in a pack of floats") { check_all<Pack<float, sheafnn::lanes<float>>>(); }
TEST_CASE("distributions of rotations in a pack of doubles") { check_all<Pack<double, sheafnn::lanes<double>>>(); }

}  // namespace test_rotation_lanes
