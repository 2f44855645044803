/// \file
/// Uniform rotations, the Möbius map and the Cayley distribution in float and in packs agree, lane by lane, with
/// double.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "rotation_checks.hpp"
#include "sheafnn/rotation/cayley_distribution.hpp"
#include "sheafnn/rotation/haar.hpp"
#include "sheafnn/rotation/moebius.hpp"

namespace test_distribution_packs {
namespace {

using namespace rotation_checks;
using sheafnn::math::Pack;
using sheafnn::SquareMatrix;
using sheafnn::Stream;

template <class T>
const double unit = static_cast<double>(std::numeric_limits<sheafnn::math::scalar_of_t<T>>::epsilon());

/// Rounding errors of a few N × N products and one elimination, entry by entry, for numbers of size 1.
template <class T, int N>
const double bound = 16 * N* unit<T>;

template <class T, int N>
void check_sampling() {
  CAPTURE(N);
  using Word = sheafnn::random::word_of_t<T>;
  const Stream stream{.seed = 77, .epoch = 3};
  Word ids{};
  for (int l = 0; l < lane_count<T>; ++l) {
    if constexpr (std::is_arithmetic_v<T>) {
      ids = 1000;
    } else {
      ids.set_lane(l, static_cast<std::uint32_t>(1000 + 7 * l));
    }
  }
  T kappa{};
  for (int l = 0; l < lane_count<T>; ++l) set_lane(kappa, l, 0.0625 * ((3 * l + 5) % 16));
  const auto u = sheafnn::rotation::haar_rotation<T, N>(stream, ids, 2);
  const auto y = sheafnn::rotation::moebius<T, N>(u, kappa);
  const auto back = sheafnn::rotation::moebius_inverse<T, N>(y, kappa);
  const auto slope = sheafnn::rotation::moebius_derivative<T, N>(y, kappa);
  const auto slope_from_noise = sheafnn::rotation::moebius_derivative_from_noise<T, N>(u, y, kappa);
  const T log_density = sheafnn::rotation::cayley_logpdf<T, N>(y, kappa);
  const T kl = sheafnn::rotation::cayley_kl<N>(kappa);
  const T kl_slope = sheafnn::rotation::cayley_kl_derivative<N>(kappa);
  const T resultant = sheafnn::rotation::cayley_resultant<N>(kappa);
  for (int l = 0; l < lane_count<T>; ++l) {
    CAPTURE(l);
    const double k = get_lane(kappa, l);
    const auto id = static_cast<std::uint32_t>(1000 + 7 * l);
    // Float takes the upper bits of the same words. Where a word is near 2³², the logarithm of what is left of it
    // in float differs by more than rounding; these ids are not there.
    const SquareMatrix<double, N> u64 = sheafnn::rotation::haar_rotation<double, N>(stream, id, 2);
    CHECK((one_lane(u, l) - u64).norm() <= 8 * bound<T, N>);
    // The rest from the lane's own U and Y, in double.
    const SquareMatrix<double, N> u_lane = one_lane(u, l);
    const SquareMatrix<double, N> y_lane = one_lane(y, l);
    const double condition = 1 / (1 - k);
    CHECK((y_lane - sheafnn::rotation::moebius<double, N>(u_lane, k)).norm() <= bound<T, N> * condition);
    CHECK((one_lane(back, l) - sheafnn::rotation::moebius_inverse<double, N>(y_lane, k)).norm() <=
          bound<T, N> * condition);
    const double slope_bound = bound<T, N> * condition * condition;
    CHECK((one_lane(slope, l) - sheafnn::rotation::moebius_derivative<double, N>(y_lane, k)).norm() <= slope_bound);
    CHECK((one_lane(slope_from_noise, l) -
           sheafnn::rotation::moebius_derivative_from_noise<double, N>(u_lane, y_lane, k))
              .norm() <= slope_bound);
    CHECK(std::abs(get_lane(log_density, l) - sheafnn::rotation::cayley_logpdf<double, N>(y_lane, k)) <=
          N * bound<T, N> * condition);
    CHECK(std::abs(get_lane(kl, l) - sheafnn::rotation::cayley_kl<N>(k)) <=
          8 * unit<T> * sheafnn::rotation::cayley_kl<N>(k));
    CHECK(std::abs(get_lane(kl_slope, l) - sheafnn::rotation::cayley_kl_derivative<N>(k)) <=
          8 * unit<T> * sheafnn::rotation::cayley_kl_derivative<N>(k));
    CHECK(std::abs(get_lane(resultant, l) - sheafnn::rotation::cayley_resultant<N>(k)) <= 4 * unit<T>);
  }
}

template <class T>
void check_all() {
  check_sampling<T, 1>();
  check_sampling<T, 2>();
  check_sampling<T, 3>();
  check_sampling<T, 4>();
  check_sampling<T, 5>();
}

}  // namespace

TEST_CASE("Cayley distributions in float") { check_all<float>(); }
TEST_CASE("Cayley distributions in a pack of floats") { check_all<Pack<float, sheafnn::lanes<float>>>(); }
TEST_CASE("Cayley distributions in a pack of doubles") { check_all<Pack<double, sheafnn::lanes<double>>>(); }

}  // namespace test_distribution_packs
