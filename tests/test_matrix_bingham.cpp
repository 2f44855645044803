/// \file
/// The matrix Bingham distribution: normaliser and divergences at 34 digits, derivatives, moments, samples, symmetries and limits.
#include <doctest/doctest.h>

#include <cmath>
#include <stdexcept>
#include <vector>

#include "matrix_bingham_checks.hpp"
#include "rotation_checks.hpp"
#include "sheafnn/core/small_matrix.hpp"
#include "sheafnn/random/stream.hpp"
#include "sheafnn/rotation/exponential.hpp"
#include "sheafnn/rotation/haar.hpp"
#include "sheafnn/rotation/matrix_bingham_distribution.hpp"
#include "sheafnn/rotation/score.hpp"
#include "so3_quadrature.hpp"

namespace test_matrix_bingham {
namespace {

using namespace rotation_checks;
using namespace matrix_bingham_checks;
using sheafnn::SquareMatrix;
using sheafnn::Stream;
using sheafnn::math::Column;

/// With eigenvalues (e₁ + e₂, e₂, 0).
Square<3> with_gaps(std::uint32_t id, double first, double second) {
  return symmetric<3>(id, {first + second, second, 0});
}
template <int N>
double exponent(const Square<N>& a, const Square<N>& b, const Square<N>& p) {
  return (b * p.transpose() * a * p).trace();
}

/// log f along exp(X_φ)P against the score, and in the parameters against the gradient.
template <int N>
void check_derivatives(const Law<N>& law, const Square<N>& p) {
  using sheafnn::rotation::RotationParameters;
  const auto slope = sheafnn::rotation::score(law, p);
  RotationParameters<double, N> turn = RotationParameters<double, N>::Zero();
  for (int k = 0; k < turn.size(); ++k) {
    const double difference = central_difference(turn(k), [&] {
      const Square<N> moved = sheafnn::math::multiply(sheafnn::rotation::exponential_rotation<double, N>(turn), p);
      return log_density_to_mode(law, moved);
    });
    CHECK(std::abs(difference - slope(k)) <= 1e-8 * (1 + slope.norm()));
  }
  // 2APB is the same along SO(N).
  const auto gradient = logpdf_gradient(law, p);
  CHECK((sheafnn::rotation::tangent_gradient<double, N>(Square<N>(2 * law.outer() * p * law.inner()), p) - slope)
            .norm() <= 1e-13 * (1 + law.cost().norm()));
  if constexpr (Law<N>::has_normaliser) {
    Square<N> a = law.outer(), b = law.inner();
    const auto mean = log_normaliser_gradient(law);
    for (int i = 0; i < N; ++i) {
      for (int j = 0; j <= i; ++j) {
        const double factor = i == j ? 1 : 2;
        for (const bool outer : {true, false}) {
          Square<N>& m = outer ? a : b;
          const auto difference = [&](const auto& f) {
            const double r = central_difference(m(i, j), [&] {
              m(j, i) = m(i, j);
              return f(Law<N>(a, b));
            });
            m(j, i) = m(i, j);
            return r;
          };
          const Square<N>& own = outer ? gradient.outer : gradient.inner;
          CHECK(std::abs(difference([&](const Law<N>& d) { return logpdf(d, p); }) - factor * own(i, j)) <= 1e-8);
          CHECK(std::abs(difference([](const Law<N>& d) { return d.log_normaliser(); }) -
                         factor * (outer ? mean.outer : mean.inner)(i, j)) <= 1e-8);
        }
      }
    }
  }
}

/// Samples have the squares' means and the mean log density of the law.
template <int N>
void check_samples(const Law<N>& law, std::uint32_t count) {
  Mean log_density, entries[N][N], signs[N];
  for (std::uint32_t id = 0; id < count; ++id) {
    const Square<N> p = sample(law, Stream{.seed = 1602}, id);
    log_density.add(logpdf(law, p));
    const Square<N> s = law.outer_frame().vectors.transpose() * p * law.inner_frame().vectors;
    for (int i = 0; i < N; ++i) {
      for (int j = 0; j < N; ++j) entries[i][j].add(s(i, j) * s(i, j));
      signs[i].add(s(i, i));
    }
  }
  CHECK(log_density.standard_errors_from(kl_to_uniform(law)) <= allowed_standard_errors);
  for (int i = 0; i < N; ++i) {
    CHECK(signs[i].standard_errors_from(0) <= allowed_standard_errors);
    for (int j = 0; j < N; ++j) {
      CHECK(entries[i][j].standard_errors_from(law.normaliser().squares(i, j)) <= allowed_standard_errors);
    }
  }
}

}  // namespace

TEST_CASE("the normaliser and KL of matrix Bingham distributions at 34 digits") {
  struct Exact {
    double a[2], b[2], log_scaled, kl;
  };
  // From mpmath; the first five agree with an integral over the sphere in other coordinates to 20 digits.
  const Exact exact[] = {
      {{1, 1}, {1, 1}, -1.6203949310223734124, 0.34310993107348307326},
      {{10, 5}, {3, 7}, -7.231431953130696785, 5.7131949231395990018},
      {{0, 5}, {3, 0}, -1.4748073813909817669, 0.97480804981721100354},
      {{0.25, 1}, {0.5, 2}, -1.4255365102866384215, 0.32232966153121945387},
      {{3, 6}, {2, 0.125}, -3.3364720713250333353, 1.9427734204938587178},
      {{1e-3, 2e-3}, {1e-2, 3e-2}, -0.000063332928887901257936, 4.0444641968298184453e-10},
      {{0.25, 0.125}, {0.25, 0.25}, -0.09283866031392139394311, 0.00091110245597940239451},  // where −E H − log E e^{−H} cancels
      {{0.125, 0.5}, {0.5, 0.25}, -0.2124451109673701742408, 0.0062242622653140485082},
      {{40, 1000}, {10, 0.125}, -11.303726480175514958, 9.801041756889593147},
      {{1e4, 1e8}, {1, 1}, -24.637961634954845506, 23.137936626203407281},
  };
  for (const Exact& one : exact) {
    const Law<3> law(Column<double, 3>(one.a[0] + one.a[1], one.a[1], 0).asDiagonal(),
                     Column<double, 3>(one.b[0] + one.b[1], one.b[1], 0).asDiagonal());
    CHECK(std::abs(law.normaliser().log_scaled - one.log_scaled) <= 32 * epsilon * (1 + std::abs(one.log_scaled)));
    CHECK(std::abs(kl_to_uniform(law) - one.kl) <= 32 * epsilon * (one.kl < 0.1 ? 8 * one.kl : 1 + one.kl));
    CHECK(entropy(law) == -kl_to_uniform(law));
    const Square<3>& squares = law.normaliser().squares;
    CHECK((squares.rowwise().sum() - Column<double, 3>::Ones()).cwiseAbs().maxCoeff() <= 64 * epsilon);
    CHECK((squares.colwise().sum().transpose() - Column<double, 3>::Ones()).cwiseAbs().maxCoeff() <= 64 * epsilon);
  }
}

TEST_CASE("matrix Bingham densities have mass one, and the moments of integrals") {
  const Square<3> a = symmetric<3>(0, {0.75, 0.25, -0.25}), b = symmetric<3>(1, {1, -0.25, -1});
  const Law<3> law(a, b);
  const auto integral = [](const auto& f) { return so3_quadrature::integral(f, 40, 4); };
  CHECK(std::abs(integral([&](const Square<3>& p) { return pdf(law, p); }) - 1) <= 1e-12);
  CHECK(std::abs(std::log(integral([&](const Square<3>& p) { return std::exp(exponent<3>(a, b, p)); })) -
                 law.log_normaliser()) <= 1e-12);
  CHECK(std::abs(integral([&](const Square<3>& p) { return pdf(law, p) * logpdf(law, p); }) -
                 kl_to_uniform(law)) <= 1e-12);
  const auto frames = [&](const Square<3>& p) -> Square<3> {
    return law.outer_frame().vectors.transpose() * p * law.inner_frame().vectors;
  };
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) {
      CHECK(std::abs(integral([&](const Square<3>& p) { return pdf(law, p) * std::pow(frames(p)(i, j), 2); }) -
                     law.normaliser().squares(i, j)) <= 1e-12);
    }
  }
  const Square<3> p = some_rotation<3>(2);
  CHECK(std::abs(logpdf(law, p) - exponent<3>(a, b, p) + law.log_normaliser()) <= 1e-13);
  CHECK(mean(law).norm() == 0);
  const sheafnn::rotation::MatrixBinghamDistribution<3, float> rounded(a.cast<float>(), b.cast<float>());
  CHECK(std::abs(static_cast<double>(logpdf(rounded, p.cast<float>())) - logpdf(law, p)) <= 1e-5);
}

TEST_CASE("derivatives of matrix Bingham densities, SO(2) to SO(4)") {
  check_derivatives<2>({symmetric<2>(3, {1.5, -1}), symmetric<2>(4, {2, 0.5})}, some_rotation<2>(5));
  check_derivatives<3>({symmetric<3>(3, {2, 0.5, -1}), symmetric<3>(4, {1, -0.25, -1})}, some_rotation<3>(5));
  check_derivatives<4>({symmetric<4>(3, {2, 1, 0.5, -1}), symmetric<4>(4, {1, 0.5, -0.25, -1})},
                       some_rotation<4>(5));
  static_assert(!Law<4>::has_normaliser && Law<3>::has_normaliser);
}

TEST_CASE("symmetries and modes of matrix Bingham distributions") {
  const Square<3> a = symmetric<3>(0, {3, 0.5, -1}), b = symmetric<3>(1, {2, -0.25, -1});
  const Law<3> law(a, b);
  const Square<3> p = some_rotation<3>(2), q = some_rotation<3>(6), r = some_rotation<3>(7),
                  one = Square<3>::Identity();
  const auto same = [&](const Law<3>& other, const Square<3>& at) {
    CHECK(std::abs(logpdf(other, at) - logpdf(law, p)) <= 1e-13);
  };
  same({q * a * q.transpose(), r * b * r.transpose()}, q * p * r.transpose());
  same({b, a}, p.transpose());
  same({-a, -b}, p);
  same({a + 3 * one, b - 2 * one}, p);
  same({2 * a, 0.5 * b}, p);
  const auto modes = law.modes();
  CHECK(modes.size() == 4);
  CHECK(modes.front() == law.location());
  for (const Square<3>& mode : modes) {
    CHECK(std::abs(log_density_to_mode(law, mode)) <= 64 * epsilon);
    CHECK(std::abs(mode.determinant() - 1) <= 16 * epsilon);
    CHECK(sheafnn::rotation::score(law, mode).norm() <= 64 * epsilon);
  }
  for (std::uint32_t id = 0; id < 30; ++id) CHECK(log_density_to_mode(law, some_rotation<3>(100 + id)) <= 0);
  // SO(2): the von Mises distribution of twice the angle.
  const Law<2> flat(Column<double, 2>(3, 0).asDiagonal(), Column<double, 2>(2, 0).asDiagonal());
  CHECK(std::abs(logpdf(flat, turn<2>(0.7)) - 3 * std::cos(1.4) + std::log(std::cyl_bessel_i(0.0, 3.0))) <= 1e-14);
  // A of two equal eigenvalues and B alike: a Bingham distribution of the first rows' cosine.
  const Law<3> axial(Column<double, 3>(4, 0, 0).asDiagonal(), Column<double, 3>(2, 0, 0).asDiagonal());
  const double mass = sheafnn::detail::integrate_parts([](double t) { return std::exp(8 * t * t - 8); }, 0, 1, 8);
  CHECK(std::abs(axial.normaliser().log_scaled - std::log(mass)) <= 1e-13);
}

TEST_CASE("samples of matrix Bingham distributions") {
  check_samples<2>({symmetric<2>(8, {3, 0}), symmetric<2>(9, {1, 0})}, 3000);
  const double gaps[][4] = {{2, 1, 1, 1}, {0.5, 4, 2, 1}, {30, 20, 2, 10}, {0, 5, 3, 0.5}, {1e3, 1e5, 1e-2, 10}};
  std::uint32_t id = 10;
  for (const auto& g : gaps) {
    check_samples<3>({with_gaps(id, g[0], g[1]), with_gaps(id + 1, g[2], g[3])}, 3000);
    id += 2;
  }
}

TEST_CASE("limits of matrix Bingham distributions") {
  const Square<3> zero = Square<3>::Zero(), b = with_gaps(1, 1, 2), p = some_rotation<3>(2);
  for (const Law<3>& law : {Law<3>(zero, b), Law<3>(b, zero), Law<3>(5 * Square<3>::Identity(), b)}) {
    CHECK(std::abs(logpdf(law, p)) <= 64 * epsilon);
    CHECK(std::abs(kl_to_uniform(law)) <= 64 * epsilon);
    CHECK(std::abs(law.normaliser().squares(0, 1) - 1.0 / 3) <= 64 * epsilon);
  }
  // KL grows as the square of small A: half the variance of H.
  const auto kl = [&](double size) {
    return kl_to_uniform(Law<3>(with_gaps(0, size, 2 * size), b)) / (size * size);
  };
  CHECK(std::abs(kl(1e-6) / kl(1e-8) - 1) <= 1e-5);
  // Large A: S is close to a normal distribution, with E H = 3/2 and log E e^{−H} = log(√π/8π² · 8 …) − ½ Σ log C.
  const auto log_scaled = [](double size) {
    return Law<3>(Column<double, 3>(3 * size, size, 0).asDiagonal(), Column<double, 3>(2, 1, 0).asDiagonal())
        .normaliser();
  };
  for (const double size : {1e6, 1e20, 1e80}) {
    const auto here = log_scaled(size), there = log_scaled(100 * size);
    CHECK(std::abs(here.mean_cost - 1.5) <= 2 / size + 1e-14);
    CHECK(std::abs(here.log_scaled - there.log_scaled - 3 * std::log(10.0)) <=
          2 / size + 1e-13 * std::abs(there.log_scaled));
  }
  const Law<3> sharp(with_gaps(3, 1e40, 1e30), with_gaps(4, 1e10, 1e-10));
  CHECK(std::isfinite(logpdf(sharp, p)));
  CHECK(std::isfinite(kl_to_uniform(sharp)));
  CHECK(std::isfinite(logpdf(sharp, sample(sharp, Stream{.seed = 1603}, 0))));
}

TEST_CASE("parameters that are no matrix Bingham distribution are refused by name") {
  Square<3> wrong = Square<3>::Identity();
  wrong(0, 1) = 1;
  CHECK_THROWS_WITH_AS(static_cast<void>(Law<3>(wrong, wrong)), doctest::Contains("outer: a matrix"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(static_cast<void>(Law<3>(Square<3>::Identity(), wrong)),
                       doctest::Contains("inner: a matrix"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(static_cast<void>(Law<3>(Square<3>::Constant(std::nan("")), wrong)),
                       doctest::Contains("finite"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(static_cast<void>(Law<3>(1e60 * Square<3>::Identity(), 1e60 * Square<3>::Identity())),
                       doctest::Contains("at most 1e+100"), std::invalid_argument);
  const Law<3> law(Square<3>::Identity(), Square<3>::Identity());
  CHECK_THROWS_WITH_AS(static_cast<void>(logpdf(law, wrong)), doctest::Contains("logpdf: p"),
                       std::invalid_argument);
}

}  // namespace test_matrix_bingham
