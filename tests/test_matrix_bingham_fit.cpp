/// \file
/// Fits of matrix Bingham distributions: likelihood ratios, the equations of a maximum, symmetries, limits, mixtures.
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <stdexcept>
#include <vector>

#include "matrix_bingham_checks.hpp"
#include "rotation_checks.hpp"
#include "sheafnn/core/small_matrix.hpp"
#include "sheafnn/random/stream.hpp"
#include "sheafnn/rotation/exponential.hpp"
#include "sheafnn/rotation/haar.hpp"
#include "sheafnn/rotation/matrix_bingham_fit.hpp"
#include "sheafnn/rotation/mixture_fit.hpp"

namespace test_matrix_bingham_fit {
namespace {

using namespace rotation_checks;
using namespace matrix_bingham_checks;
using sheafnn::SquareMatrix;
using sheafnn::Stream;
using sheafnn::math::Column;
using sheafnn::rotation::fit;
template <int N>
using Samples = std::vector<Square<N>>;

/// Of eigenvalue gaps of A and of B.
Law<3> with_gaps(std::uint32_t id, const std::array<double, 4>& gap) {
  return {symmetric<3>(id, {gap[0] + gap[1], gap[1], 0}), symmetric<3>(id + 1, {gap[2] + gap[3], gap[3], 0})};
}
template <int N>
Samples<N> draw(const Law<N>& law, int count, std::uint64_t seed = 5) {
  Samples<N> r;
  for (int i = 0; i < count; ++i) r.push_back(sample(law, Stream{.seed = seed}, static_cast<std::uint32_t>(i)));
  return r;
}
template <int N>
double likelihood(const Law<N>& law, const Samples<N>& samples) {
  double r = 0;
  for (const Square<N>& p : samples) r += logpdf(law, p) / static_cast<double>(samples.size());
  return r;
}
/// A ⊗ B, which is all of A and B with trace 0 that counts.
template <int N>
Eigen::MatrixXd product(const Law<N>& law) {
  Square<N> a = law.outer(), b = law.inner();
  a.diagonal().array() -= a.trace() / N;
  b.diagonal().array() -= b.trace() / N;
  return a.reshaped() * b.reshaped().transpose();
}
/// The averages of PBPᵀ and PᵀAP are their expectations, and no near parameters have a larger likelihood.
template <int N>
void check_maximum(const Law<N>& law, const Samples<N>& samples, double value) {
  CHECK(std::abs(likelihood(law, samples) - value) <= 1e-12 * (1 + law.cost().norm()));
  Square<N> outer = Square<N>::Zero(), inner = outer;
  for (const Square<N>& p : samples) {
    const auto gradient = logpdf_gradient(law, p);
    outer += gradient.outer / static_cast<double>(samples.size());
    inner += gradient.inner / static_cast<double>(samples.size());
  }
  CHECK(outer.norm() * law.outer().norm() <= 1e-9 * (1 + std::sqrt(law.cost().norm())));
  CHECK(inner.norm() * law.inner().norm() <= 1e-9 * (1 + std::sqrt(law.cost().norm())));
  for (int i = 0; i < N; ++i) {
    for (int j = 0; j <= i; ++j) {
      for (const double step : {1e-3, -1e-3}) {
        Square<N> a = law.outer(), b = law.inner();
        a(i, j) += step;
        if (i != j) a(j, i) += step;
        CHECK(likelihood(Law<N>(a, b), samples) <= value + 1e-13);
        a = law.outer();
        b(i, j) += step;
        if (i != j) b(j, i) += step;
        CHECK(likelihood(Law<N>(a, b), samples) <= value + 1e-13);
      }
    }
  }
}

TEST_CASE("fits of matrix Bingham samples: likelihood ratios and the equations of a maximum") {
  // χ² with 9 degrees of freedom is above 27.9 with probability 0.001.
  std::uint32_t id = 0;
  double total = 0;
  const std::vector<std::array<double, 4>> gaps{
      {1, 0.5, 1, 2}, {10, 5, 4, 3}, {1e3, 1e3, 10, 10}, {0, 3, 2, 0}, {30, 1, 1, 30}};
  for (const auto& gap : gaps) {
    CAPTURE(gap[0]);
    const Law<3> law = with_gaps(id += 2, gap);
    const Samples<3> samples = draw(law, 200);
    const auto fitted = fit<Law<3>>(samples);
    check_maximum(fitted.distribution, samples, fitted.log_likelihood);
    const double ratio = 2 * 200 * (fitted.log_likelihood - likelihood(law, samples));
    CHECK(ratio >= 0);
    CHECK(ratio <= 27.9);
    total += ratio;
    CHECK(fitted.effective_samples == doctest::Approx(200));
    CHECK(fitted.distribution.outer().norm() == doctest::Approx(fitted.distribution.inner().norm()));
    CHECK(fitted.distribution.outer_frame().gaps()(0) >= fitted.distribution.outer_frame().gaps()(1));
  }
  CHECK(total / static_cast<double>(gaps.size()) >= 3);  // the mean of five has expectation 9 and deviation 1.9
  CHECK(total / static_cast<double>(gaps.size()) <= 15);
}

TEST_CASE("fits of matrix Bingham samples on SO(2)") {
  for (const double size : {0.3, 1.0, 30.0}) {
    const Law<2> law(symmetric<2>(1, {size, 0}), symmetric<2>(2, {1, -1}));
    const Samples<2> samples = draw(law, 1000);
    const auto fitted = fit<Law<2>>(samples);
    check_maximum(fitted.distribution, samples, fitted.log_likelihood);
    const double ratio = 2 * 1000 * (fitted.log_likelihood - likelihood(law, samples));
    CHECK(ratio >= 0);
    CHECK(ratio <= 13.8);  // χ² with 2 degrees of freedom
  }
}

TEST_CASE("fits of matrix Bingham distributions turn with the samples, and weights count samples") {
  const Samples<3> samples = draw(with_gaps(40, {4, 2, 3, 1}), 60);
  const auto fitted = fit<Law<3>>(samples);
  const Square<3> left = some_rotation<3>(50), right = some_rotation<3>(51);
  Samples<3> turned;
  for (const Square<3>& p : samples) turned.push_back(left * p * right);
  const auto again = fit<Law<3>>(turned);
  CHECK(again.log_likelihood == doctest::Approx(fitted.log_likelihood).epsilon(1e-11));
  const Law<3> expected(left * fitted.distribution.outer() * left.transpose(),
                        right.transpose() * fitted.distribution.inner() * right);
  CHECK((product(again.distribution) - product(expected)).norm() <= 1e-7 * product(expected).norm());

  Samples<3> doubled = samples;
  doubled.insert(doubled.end(), samples.begin(), samples.begin() + 20);
  std::vector<double> weights(60, 3.0);
  for (int i = 0; i < 20; ++i) weights[static_cast<std::size_t>(i)] = 6;
  const auto weighted = fit<Law<3>>(samples, weights), repeated = fit<Law<3>>(doubled);
  CHECK(weighted.log_likelihood == doctest::Approx(repeated.log_likelihood).epsilon(1e-11));
  CHECK((product(weighted.distribution) - product(repeated.distribution)).norm() <=
        1e-7 * product(repeated.distribution).norm());

  std::vector<SquareMatrix<float, 3>> floats;
  for (const Square<3>& p : samples) floats.push_back(p.cast<float>());
  const auto single = fit<sheafnn::rotation::MatrixBinghamDistribution<3, float>>(floats);
  CHECK(single.log_likelihood == doctest::Approx(fitted.log_likelihood).epsilon(1e-5));
}

TEST_CASE("the best of several maxima, narrow samples, and samples without a preferred frame") {
  // Narrow about one rotation, most about the third axis and least about the first: the axes have to be put in order.
  for (const double size : {1e-1, 1e-5}) {
    Samples<3> samples, mirrored;
    for (std::uint32_t i = 0; i < 50; ++i) {
      Column<double, 3> turn = Column<double, 3>::Zero();
      for (std::uint32_t k = 0; k < 3; ++k) {
        const auto words = Stream{.seed = 9}.words(i, k);
        turn(static_cast<int>(k)) =
            size * (k + 1) * (sheafnn::random::fine_uniform(words.word[0], words.word[1]) - 0.5);
      }
      samples.push_back(sheafnn::rotation::exponential_rotation<double, 3>(turn) * some_rotation<3>(60));
      // The same distribution with other names of the axes.
      Square<3> cycle;
      cycle << 0, 1, 0, 0, 0, 1, 1, 0, 0;
      mirrored.push_back(cycle * samples.back());
    }
    const auto fitted = fit<Law<3>>(samples), other = fit<Law<3>>(mirrored);
    CHECK(fitted.log_likelihood == doctest::Approx(other.log_likelihood).epsilon(1e-6));
    // Three normal coordinates of variances s_k² have log f = −Σ log s_k + const; their axes may be arranged in one way only if
    // 1/s_1² + 1/s_2² ≤ 1/s_3² for some order, so the fit is at most the one without this constraint.
    CHECK(fitted.distribution.cost().maxCoeff() * size * size > 1);
    CHECK(fitted.distribution.cost().maxCoeff() * size * size < 100);
  }
  // The rotations of a tetrahedron: all averages are those of the uniform distribution.
  Samples<3> group;
  for (const std::array<int, 3>& order : {std::array<int, 3>{0, 1, 2}, {1, 2, 0}, {2, 0, 1}}) {
    for (const Column<double, 3>& sign : {Column<double, 3>(1, 1, 1), Column<double, 3>(1, -1, -1),
                                          Column<double, 3>(-1, 1, -1), Column<double, 3>(-1, -1, 1)}) {
      Square<3> p = Square<3>::Zero();
      for (int i = 0; i < 3; ++i) p(i, order[static_cast<std::size_t>(i)]) = sign(i);
      group.push_back(p);
    }
  }
  const auto uniform = fit<Law<3>>(group);
  CHECK(std::abs(uniform.log_likelihood) <= 1e-14);
  CHECK(uniform.distribution.cost().maxCoeff() <= 1e-14);
}

TEST_CASE("samples without a matrix Bingham fit are refused") {
  const Samples<3> equal(10, some_rotation<3>(70));
  CHECK_THROWS_WITH_AS(
      static_cast<void>(fit<Law<3>>(equal)),
      "fit: samples: a set without scatter in some direction is not allowed; A and B have no finite estimate",
      std::invalid_argument);
  Samples<3> about_an_axis;
  for (int i = 0; i < 20; ++i) {
    about_an_axis.push_back(some_rotation<3>(71) * sheafnn::rotation::exponential_rotation<double, 3>(
                                                       Column<double, 3>(0, 0, 0.37 * i * i)));
  }
  CHECK_THROWS_AS(static_cast<void>(fit<Law<3>>(about_an_axis)), std::invalid_argument);
  Samples<3> four;
  for (std::uint32_t i = 0; i < 4; ++i) four.push_back(some_rotation<3>(80 + i));
  CHECK_THROWS_WITH_AS(static_cast<void>(fit<Law<3>>(four)),
                       "fit: samples: 4 of them is not allowed; at least 5 are needed", std::invalid_argument);
  const Samples<2> one(3, some_rotation<2>(1));
  CHECK_THROWS_AS(static_cast<void>(fit<Law<2>>(one)), std::invalid_argument);
}

TEST_CASE("a mixture of matrix Bingham distributions finds its components") {
  Samples<3> samples;
  for (std::uint64_t k = 0; k < 2; ++k) {
    const auto more = draw(with_gaps(90 + 2 * static_cast<std::uint32_t>(k), {7, 5, 3, 3}), 20, 30 + k);
    samples.insert(samples.end(), more.begin(), more.end());
  }
  const auto mixture =
      sheafnn::rotation::fit_mixture<Law<3>>(samples, {.components = 2, .starts = 1, .max_iterations = 6});
  REQUIRE(mixture.distribution.components().size() == 2);
  const bool first = mixture.responsibilities[0] > 0.5;
  int right = 0;
  for (std::size_t i = 0; i < 40; ++i) right += (mixture.responsibilities[2 * i] > 0.5) == (first == (i < 20));
  CHECK(right >= 39);
  CHECK(mixture.bic() < 40 * -2 * fit<Law<3>>(samples).log_likelihood + 9 * std::log(40.0));
}

}  // namespace
}  // namespace test_matrix_bingham_fit
