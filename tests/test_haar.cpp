/// \file
/// Uniform rotations: orthogonality, the law of their angles and traces, invariance, draws consumed.
#include <doctest/doctest.h>

#include <cmath>
#include <random>
#include <vector>

#include "rotation_checks.hpp"
#include "sheafnn/rotation/exponential.hpp"
#include "sheafnn/rotation/haar.hpp"
#include "sheafnn/rotation/operations.hpp"

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
  const sheafnn::RotationParameters<double, N> phi = random_matrix<sheafnn::rotation_parameters<N>, 1>(engine, 2);
  const SquareMatrix<double, N> left = sheafnn::exponential_rotation<double, N>(phi);
  const Stream stream{.seed = 11};
  constexpr int highest = N + 1;
  Mean traces[highest + 1];
  Mean moved_traces[highest + 1];
  Mean squared, product, corner_squared, last_squared, cross;
  double worst_defect = 0;
  double worst_determinant = 0;
  for (std::uint32_t id = 0; id < 20000; ++id) {
    const SquareMatrix<double, N> u = sheafnn::haar_rotation<double, N>(stream, id);
    if (id < 1000) {
      worst_defect = std::max(worst_defect, sheafnn::orthogonality_defect<double, N>(u));
      worst_determinant =
          std::max(worst_determinant, std::abs(sheafnn::detail::pivoted_determinant<double, N>(u) - 1));
    }
    const SquareMatrix<double, N> moved = sheafnn::multiply(left, u);
    SquareMatrix<double, N> power = u;
    SquareMatrix<double, N> moved_power = moved;
    for (int m = 1; m <= highest; ++m) {
      traces[m].add(power.diagonal().sum());
      moved_traces[m].add(moved_power.diagonal().sum());
      power = sheafnn::multiply(power, u);
      moved_power = sheafnn::multiply(moved_power, moved);
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
    angle2.push_back(sheafnn::rotation_angle<double, 2>(sheafnn::haar_rotation<double, 2>(stream, id)));
    angle3.push_back(sheafnn::rotation_angle<double, 3>(sheafnn::haar_rotation<double, 3>(stream, id)));
    entry5.push_back(sheafnn::haar_rotation<double, 5>(stream, id)(4, 3));
  }
  CHECK(kolmogorov_smirnov(angle2, [](double x) { return (x + pi) / (2 * pi); }) <= allowed_kolmogorov_smirnov);
  CHECK(kolmogorov_smirnov(angle3, [](double x) { return (x - std::sin(x)) / pi; }) <= allowed_kolmogorov_smirnov);
  // One coordinate of a uniform point of the sphere in R⁵ has density ∝ (1 − x²).
  CHECK(kolmogorov_smirnov(entry5, [](double x) { return 0.5 + 0.25 * x * (3 - x * x); }) <=
        allowed_kolmogorov_smirnov);
}

TEST_CASE("uniform rotations of large dimension, and of dimension 1") {
  const Stream stream{.seed = 13};
  CHECK(sheafnn::haar_rotation<double, 1>(stream, 5u)(0, 0) == 1);
  Mean trace;
  for (std::uint32_t id = 0; id < 200; ++id) {
    const SquareMatrix<double, 16> u = sheafnn::haar_rotation<double, 16>(stream, id);
    CHECK(sheafnn::orthogonality_defect<double, 16>(u) <= 8 * 16 * epsilon);
    CHECK(std::abs(sheafnn::detail::pivoted_determinant<double, 16>(u) - 1) <= 8 * 256 * epsilon);
    trace.add(u.diagonal().sum());
  }
  CHECK(trace.standard_errors_from(0) <= allowed_standard_errors);
}

TEST_CASE("uniform rotations are a function of stream, id and first draw") {
  const Stream stream{.seed = 14};
  CHECK(sheafnn::haar_draws<1> == 0);
  CHECK(sheafnn::haar_draws<2> == 1);
  CHECK(sheafnn::haar_draws<3> == 1);
  CHECK(sheafnn::haar_draws<4> == 2);
  CHECK(sheafnn::haar_draws<5> == 4);
  const auto u = sheafnn::haar_rotation<double, 5>(stream, 3u, 7);
  CHECK(u == sheafnn::haar_rotation<double, 5>(stream, 3u, 7));
  CHECK(u != sheafnn::haar_rotation<double, 5>(stream, 4u, 7));
  CHECK(u != sheafnn::haar_rotation<double, 5>(stream, 3u, 8));
  CHECK(u != sheafnn::haar_rotation<double, 5>(Stream{.seed = 15}, 3u, 7));
}

TEST_CASE("normal numbers that are all zero still give a rotation") {
  const float zeros[14] = {};
  const auto u = sheafnn::detail::haar_from_reflections<float, 5>(zeros);
  CHECK(sheafnn::orthogonality_defect<float, 5>(u) == 0);
  const auto q = sheafnn::normalised_quaternion<float>(sheafnn::Column<float, 4>::Zero());
  CHECK(sheafnn::quaternion_rotation<float>(q) == SquareMatrix<float, 3>::Identity());
}
