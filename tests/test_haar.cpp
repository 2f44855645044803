/// \file
/// Uniform rotations: orthogonality, the law of their angles and traces, invariance, draws consumed.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <random>
#include <vector>

#include "rotation_checks.hpp"
#include "sheafnn/rotation/exponential.hpp"
#include "sheafnn/rotation/haar.hpp"
#include "sheafnn/rotation/operations.hpp"

namespace test_haar {
namespace {

using namespace rotation_checks;
using sheafnn::SquareMatrix;
using sheafnn::Stream;

constexpr double pi = 3.14159265358979323846;

/// E tr Uᵐ over SO(N), from the one-point density of its eigenangles.
template <int N>
double trace_moment(int m) {
  if (N % 2 == 0) return m % 2 == 0 && m <= N - 2 ? 1 : 0;
  return m % 2 == 1 && m <= N - 2 ? 0 : 1;
}

template <int N>
void check_moments() {
  CAPTURE(N);
  std::mt19937 engine(700 + N);
  const sheafnn::rotation::RotationParameters<double, N> phi =
      random_matrix<sheafnn::rotation::rotation_parameters<N>, 1>(engine, 2);
  const SquareMatrix<double, N> left = sheafnn::rotation::exponential_rotation<double, N>(phi);
  const Stream stream{.seed = 11};
  constexpr int highest = N + 1;
  Mean traces[highest + 1];
  Mean moved_traces[highest + 1];
  Mean squared, product, corner_squared, last_squared, cross;
  double worst_defect = 0;
  double worst_determinant = 0;
  for (std::uint32_t id = 0; id < 20000; ++id) {
    const SquareMatrix<double, N> u = sheafnn::rotation::haar_rotation<double, N>(stream, id);
    if (id < 1000) {
      worst_defect = std::max(worst_defect, sheafnn::rotation::orthogonality_defect<double, N>(u));
      worst_determinant =
          std::max(worst_determinant, std::abs(sheafnn::detail::pivoted_determinant<double, N>(u) - 1));
    }
    const SquareMatrix<double, N> moved = sheafnn::math::multiply(left, u);
    SquareMatrix<double, N> power = u;
    SquareMatrix<double, N> moved_power = moved;
    for (int m = 1; m <= highest; ++m) {
      traces[m].add(power.diagonal().sum());
      moved_traces[m].add(moved_power.diagonal().sum());
      power = sheafnn::math::multiply(power, u);
      moved_power = sheafnn::math::multiply(moved_power, moved);
    }
    const double trace = u.diagonal().sum();
    squared.add(trace * trace);
    product.add(trace * moved.diagonal().sum());
    corner_squared.add(u(0, 0) * u(0, 0));
    last_squared.add(u(0, N - 1) * u(0, N - 1));
    cross.add(u(0, 0) * u(N - 1, N - 1));
  }
  CHECK(worst_defect <= 8 * N * epsilon);
  CHECK(worst_determinant <= 8 * N * N * epsilon);
  for (int m = 1; m <= highest; ++m) {
    CAPTURE(m);
    CHECK(traces[m].standard_errors_from(trace_moment<N>(m)) <= allowed_standard_errors);
    CHECK(moved_traces[m].standard_errors_from(trace_moment<N>(m)) <= allowed_standard_errors);
  }
  CHECK(squared.standard_errors_from(N == 2 ? 2 : 1) <= allowed_standard_errors);
  // Entries have variance 1/N; different ones are uncorrelated, but for N = 2, where u_00 = u_11.
  CHECK(corner_squared.standard_errors_from(1.0 / N) <= allowed_standard_errors);
  CHECK(last_squared.standard_errors_from(1.0 / N) <= allowed_standard_errors);
  CHECK(cross.standard_errors_from(N == 2 ? 0.5 : 0) <= allowed_standard_errors);
  // E tr(U) tr(RU) = tr(R)/N; for N = 2 twice that.
  CHECK(product.standard_errors_from((N == 2 ? 2.0 : 1.0) * left.trace() / N) <= allowed_standard_errors);
}

}  // namespace

TEST_CASE("uniform rotations: moments of traces and entries, before and after a fixed rotation") {
  check_moments<2>();
  check_moments<3>();
  check_moments<4>();
  check_moments<5>();
  check_moments<6>();
  check_moments<7>();
  check_moments<8>();
}

TEST_CASE("uniform rotations: laws of angles and entries") {
  const Stream stream{.seed = 12};
  std::vector<double> angle2, angle3, entry5;
  for (std::uint32_t id = 0; id < 20000; ++id) {
    angle2.push_back(
        sheafnn::rotation::rotation_angle<double, 2>(sheafnn::rotation::haar_rotation<double, 2>(stream, id)));
    angle3.push_back(
        sheafnn::rotation::rotation_angle<double, 3>(sheafnn::rotation::haar_rotation<double, 3>(stream, id)));
    entry5.push_back(sheafnn::rotation::haar_rotation<double, 5>(stream, id)(4, 3));
  }
  CHECK(kolmogorov_smirnov(angle2, [](double x) { return (x + pi) / (2 * pi); }) <= allowed_kolmogorov_smirnov);
  CHECK(kolmogorov_smirnov(angle3, [](double x) { return (x - std::sin(x)) / pi; }) <= allowed_kolmogorov_smirnov);
  // One coordinate of a uniform point of the sphere in R⁵ has density ∝ (1 − x²).
  CHECK(kolmogorov_smirnov(entry5, [](double x) { return 0.5 + 0.25 * x * (3 - x * x); }) <=
        allowed_kolmogorov_smirnov);
}

TEST_CASE_TEMPLATE("uniform rotations of R³: the law of the angle down to small ones, in packs", T, float,
                   double) {
  using P = sheafnn::math::Pack<T, sheafnn::lanes<T>>;
  const Stream stream{.seed = 16};
  constexpr std::uint32_t count = 1 << 22;
  constexpr double radii[] = {0.02, 0.05, 0.1, 0.3, 1, 2, 3, 3.1, 3.14};
  double below[std::size(radii)] = {};
  double worst_entry = 0;
  for (std::uint32_t first = 0; first < count; first += P::width) {
    sheafnn::random::word_of_t<P> ids(0);
    for (int l = 0; l < P::width; ++l) ids.set_lane(l, first + static_cast<std::uint32_t>(l));
    const SquareMatrix<P, 3> u = sheafnn::rotation::haar_rotation<P, 3>(stream, ids);
    for (int l = 0; l < P::width; ++l) {
      if (first % 4096 == 0) {
        const auto single = sheafnn::rotation::haar_rotation<T, 3>(stream, ids.lane(l));
        worst_entry =
            std::max(worst_entry, (one_lane(u, l) - single.template cast<double>()).cwiseAbs().maxCoeff());
      }
      const double angle = sheafnn::rotation::rotation_angle<double, 3>(one_lane(u, l));
      for (std::size_t i = 0; i < std::size(radii); ++i) below[i] += angle < radii[i];
    }
  }
  CHECK(worst_entry <= 8 * static_cast<double>(std::numeric_limits<T>::epsilon()));
  for (std::size_t i = 0; i < std::size(radii); ++i) {
    CAPTURE(radii[i]);
    const double probability = (radii[i] - std::sin(radii[i])) / pi;
    const double standard_error = std::sqrt(count * probability * (1 - probability));
    CHECK(std::abs(below[i] - count * probability) <= allowed_standard_errors * standard_error);
  }
}

TEST_CASE_TEMPLATE("uniform rotations of R³ from the extreme words; the quaternion's rotation is the same", T,
                   float, double) {
  using Block = sheafnn::random::PhiloxBlock<std::uint32_t>;
  const double unit = static_cast<double>(std::numeric_limits<T>::epsilon());
  const std::uint32_t ends[] = {0,          1,          2,          0x1fffffff, 0x20000000, 0x40000000,
                                0x7fffffff, 0x80000000, 0x80000001, 0xc0000000, 0xfffffffe, 0xffffffff};
  double defect = 0, difference = 0, size = 0;
  for (const std::uint32_t a : ends) {
    // The cosine is 1 − |2a + 1|/2³² with the sign of a; near 1 in size, its sine still has all of its digits.
    const double number = (a < 0x80000000 ? a : a - 4294967296.0) + 0.5;
    const double rest = std::abs(number) / 2147483648.0;
    const auto cosine = sheafnn::detail::uniform_cosine<T>(a);
    CHECK(cosine.negative == (number < 0));
    CHECK(std::abs(static_cast<double>(cosine.rest) - rest) <= (a == 0 || ~a == 0 ? 0 : unit * rest));
    for (const std::uint32_t b : ends) {
      for (const std::uint32_t c : ends) {
        const SquareMatrix<T, 3> u = sheafnn::detail::haar_from_words<T>(Block{{a, b, c, 0}});
        const auto q = sheafnn::detail::uniform_quaternion<T>(Block{{a, b, c, 0}});
        defect = std::max(defect, static_cast<double>(sheafnn::rotation::orthogonality_defect<T, 3>(u)));
        size = std::max(size, std::abs(q.template cast<double>().squaredNorm() - 1));
        difference = std::max(difference,
                              (sheafnn::rotation::quaternion_rotation<T>(q) - u).template cast<double>().norm());
      }
    }
  }
  CHECK(defect <= 8 * unit);
  CHECK(size <= 4 * unit);
  CHECK(difference <= 16 * unit);
}

TEST_CASE("uniform rotations of large dimension, and of dimension 1") {
  const Stream stream{.seed = 13};
  CHECK(sheafnn::rotation::haar_rotation<double, 1>(stream, 5u)(0, 0) == 1);
  Mean trace;
  for (std::uint32_t id = 0; id < 200; ++id) {
    const SquareMatrix<double, 16> u = sheafnn::rotation::haar_rotation<double, 16>(stream, id);
    CHECK(sheafnn::rotation::orthogonality_defect<double, 16>(u) <= 8 * 16 * epsilon);
    CHECK(std::abs(sheafnn::detail::pivoted_determinant<double, 16>(u) - 1) <= 8 * 256 * epsilon);
    trace.add(u.diagonal().sum());
  }
  CHECK(trace.standard_errors_from(0) <= allowed_standard_errors);
}

TEST_CASE("uniform rotations are a function of stream, id and first draw") {
  const Stream stream{.seed = 14};
  CHECK(sheafnn::rotation::haar_draws<1> == 0);
  CHECK(sheafnn::rotation::haar_draws<2> == 1);
  CHECK(sheafnn::rotation::haar_draws<3> == 1);
  CHECK(sheafnn::rotation::haar_draws<4> == 2);
  CHECK(sheafnn::rotation::haar_draws<5> == 4);
  const auto u = sheafnn::rotation::haar_rotation<double, 5>(stream, 3u, 7);
  CHECK(u == sheafnn::rotation::haar_rotation<double, 5>(stream, 3u, 7));
  CHECK(u != sheafnn::rotation::haar_rotation<double, 5>(stream, 4u, 7));
  CHECK(u != sheafnn::rotation::haar_rotation<double, 5>(stream, 3u, 8));
  CHECK(u != sheafnn::rotation::haar_rotation<double, 5>(Stream{.seed = 15}, 3u, 7));
}

TEST_CASE("normal numbers that are all zero still give a rotation") {
  const float zeros[14] = {};
  const auto u = sheafnn::detail::haar_from_reflections<float, 5>(zeros);
  CHECK(sheafnn::rotation::orthogonality_defect<float, 5>(u) == 0);
  const auto q = sheafnn::rotation::normalised_quaternion<float>(sheafnn::math::Column<float, 4>::Zero());
  CHECK(sheafnn::rotation::quaternion_rotation<float>(q) == SquareMatrix<float, 3>::Identity());
}

}  // namespace test_haar
