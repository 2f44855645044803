/// \file
/// The Bingham distribution of quaternions against integrals, and mixtures of all families with their fits.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "dense_algebra.hpp"
#include "rotation_checks.hpp"
#include "sheafnn/rotation/angular_central_gaussian_fit.hpp"
#include "sheafnn/rotation/bingham_distribution.hpp"
#include "sheafnn/rotation/cayley_fit.hpp"
#include "sheafnn/rotation/goodness_of_fit.hpp"
#include "sheafnn/rotation/isotropic_gaussian_fit.hpp"
#include "sheafnn/rotation/mixture_fit.hpp"
#include "sheafnn/rotation/score.hpp"
#include "so3_quadrature.hpp"

namespace test_rotation_mixtures {
namespace {

using namespace rotation_checks;
using sheafnn::SquareMatrix;
using sheafnn::Stream;
using sheafnn::math::Column;
using sheafnn::rotation::Mixture;
using Bingham = sheafnn::rotation::BinghamDistribution<>;
using Cayley = sheafnn::rotation::CayleyDistribution<3>;
using Fisher = sheafnn::rotation::MatrixFisherDistribution<3>;
using Gaussian = sheafnn::rotation::IsotropicGaussian<>;
using Rotation = SquareMatrix<double, 3>;
using Form = SquareMatrix<double, 4>;

Rotation some_rotation(std::uint32_t id) {
  return sheafnn::rotation::haar_rotation<double, 3>(Stream{.seed = 1501}, id);
}
Form some_form(std::uint32_t id, double size) {
  Form a;
  sheafnn::fill_normals<16, double>(a.data(), Stream{.seed = 1502}, id);
  return size * (a + a.transpose());
}
double form_at(const Form& a, const Rotation& p) {
  const auto q = sheafnn::rotation::rotation_quaternion<double>(p);
  return q.dot(a * q);
}

/// Fits find the components that samples come from, by likelihoods that never decrease, and BIC finds their number.
template <class D>
void check_mixture(const std::vector<D>& components, std::size_t count) {
  const Mixture<D> truth(components, std::vector<double>{5, 3, 2});
  std::vector<typename Mixture<D>::Sample> samples(count);
  sheafnn::rotation::sample_many(truth, Stream{.seed = 1503}, 0, samples);
  double likelihood = 0;
  for (const auto& p : samples) likelihood += logpdf(truth, p) / static_cast<double>(count);
  const auto selection = sheafnn::rotation::select_mixture<D>(samples, {.components = 4, .starts = 3});
  const auto& fit = selection.best;
  REQUIRE(fit.distribution.components().size() == 3);
  REQUIRE(selection.bic.size() == 4);
  CHECK(selection.bic[2] == fit.bic());
  CHECK(fit.converged);
  CHECK(fit.log_likelihood >= likelihood);
  CHECK(fit.iterations == static_cast<int>(fit.log_likelihoods.size()));
  for (std::size_t i = 1; i < fit.log_likelihoods.size(); ++i) {
    CHECK(fit.log_likelihoods[i] >= fit.log_likelihoods[i - 1] - 1e-13);
  }
  double own = 0, largest = 0, smallest = 1;
  for (std::size_t i = 0; i < count; ++i) {
    own += logpdf(fit.distribution, samples[i]) / static_cast<double>(count);
    const std::vector<double> r = responsibilities(fit.distribution, samples[i]);
    for (std::size_t k = 0; k < 3; ++k) CHECK(std::abs(r[k] - fit.responsibilities[3 * i + k]) <= 1e-9);
  }
  CHECK(std::abs(own - fit.log_likelihood) <= 1e-10);
  for (const double w : fit.distribution.weights())
    largest = std::max(largest, w), smallest = std::min(smallest, w);
  const double error = 5 * 0.5 / std::sqrt(static_cast<double>(count));
  CHECK(std::abs(largest - 0.5) <= error);
  CHECK(std::abs(smallest - 0.2) <= error);
  // Each component, by its weight: who belongs to it, and its mean, within five standard errors.
  std::vector<std::size_t> order = {0, 1, 2};
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return fit.distribution.weights()[a] > fit.distribution.weights()[b];
  });
  double misplaced = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::vector<double> r = responsibilities(truth, samples[i]);
    for (std::size_t k = 0; k < 3; ++k) {
      misplaced += std::abs(r[k] - fit.responsibilities[3 * i + order[k]]) / static_cast<double>(2 * count);
    }
  }
  CHECK(misplaced <= 0.05);
  if constexpr (std::is_same_v<typename Mixture<D>::Sample, Rotation>) {
    for (std::size_t k = 0; k < 3; ++k) {
      const Rotation expected = mean(components[k]);
      const double scatter = (3 - expected.squaredNorm()) / (truth.weights()[k] * static_cast<double>(count));
      CHECK((mean(fit.distribution.components()[order[k]]) - expected).norm() <= 5 * std::sqrt(scatter));
    }
  }
  // The same once more, bit by bit.
  const auto again = sheafnn::rotation::fit_mixture<D>(samples, {.components = 3, .starts = 3});
  CHECK(again.log_likelihoods == fit.log_likelihoods);
}

}  // namespace

TEST_CASE("the Bingham distribution of quaternions: normaliser, moments, derivatives") {
  for (std::uint32_t id = 0; id < 3; ++id) {
    const Form a = some_form(id, 1);
    const Bingham d(a);
    CHECK(std::abs(
              std::log(so3_quadrature::integral([&](const Rotation& p) { return std::exp(form_at(a, p)); }, 48)) -
              d.log_normaliser()) <= 1e-11);
    CHECK(std::abs(so3_quadrature::integral([&](const Rotation& p) { return pdf(d, p) * logpdf(d, p); }, 48) -
                   kl_to_uniform(d)) <= 1e-11);
    const Rotation p = some_rotation(20 + id);
    CHECK(std::abs(logpdf(d, p) - form_at(a, p) + d.log_normaliser()) <= 1e-13 * (1 + a.norm()));
    const Form moment = quaternion_moment(d);
    CHECK(std::abs(moment.trace() - 1) <= 16 * epsilon);
    const auto gradient = logpdf_gradient(d, p);
    Form moved = a;
    for (int j = 0; j < 4; ++j) {
      for (int i = 0; i <= j; ++i) {
        CHECK(std::abs(so3_quadrature::integral(
                           [&](const Rotation& r) {
                             const auto q = sheafnn::rotation::rotation_quaternion<double>(r);
                             return pdf(d, r) * q(i) * q(j);
                           },
                           40) -
                       moment(i, j)) <= 1e-11);
        const double difference = central_difference(moved(i, j), [&] {
          moved(j, i) = moved(i, j);
          return logpdf(Bingham(moved), p);
        });
        moved(j, i) = moved(i, j);
        CHECK(std::abs(difference - (i == j ? 1 : 2) * gradient.parameter(i, j)) <= 1e-8);
      }
    }
    // The mode is the rotation of the eigenvector of the largest eigenvalue.
    for (std::uint32_t other = 0; other < 50; ++other)
      CHECK(logpdf(d, d.location()) >= logpdf(d, some_rotation(other)));
    CHECK(std::abs(form_at(a, d.location()) - dense_algebra::spectrum(a)(3)) <= 1e-12);
    // A and A + λI are the same distribution, and T is undone.
    CHECK(std::abs(logpdf(Bingham(Form(a + 3 * Form::Identity())), p) - logpdf(d, p)) <= 1e-12);
    CHECK((sheafnn::rotation::quaternion_form<double>(sheafnn::rotation::matrix_of_quaternion_form<double>(a)) -
           a + a.trace() / 4 * Form::Identity())
              .norm() <= 1e-14 * (1 + a.norm()));
  }
}

TEST_CASE("Bingham samples and fits") {
  const Bingham truth(some_form(7, 2));
  std::vector<Rotation> samples(3000);
  sheafnn::rotation::sample_many(truth, Stream{.seed = 1504}, 0, samples);
  CHECK(sheafnn::rotation::goodness_of_fit(truth, samples).p_value >= 1e-6);
  Mean log_density;
  for (const Rotation& p : samples) log_density.add(logpdf(truth, p));
  CHECK(log_density.standard_errors_from(kl_to_uniform(truth)) <= allowed_standard_errors);
  const auto fit = sheafnn::rotation::fit<Bingham>(samples);
  Form average = Form::Zero();
  for (const Rotation& p : samples) {
    const auto q = sheafnn::rotation::rotation_quaternion<double>(p);
    average += q * q.transpose() / 3000.0;
  }
  CHECK((quaternion_moment(fit.distribution) - average).norm() <= 1e-12);
  CHECK(fit.log_likelihood >= log_density.value());
  CHECK(2 * 3000 * (fit.log_likelihood - log_density.value()) <= 40);  // χ² of nine degrees: 7e-6
  Form wrong = some_form(1, 1);
  wrong(0, 1) += 1;
  CHECK_THROWS_WITH_AS(static_cast<void>(Bingham(wrong)), doctest::Contains("must be symmetric"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(static_cast<void>(Bingham(Form::Constant(std::nan("")))), doctest::Contains("finite"),
                       std::invalid_argument);
}

TEST_CASE("mixtures: density, score, samples and responsibilities") {
  const Mixture<Gaussian> d({{some_rotation(0), 0.5}, {some_rotation(1), 0.9}, {some_rotation(2), 0.7}},
                            std::vector<double>{1, 2, 0});
  CHECK(std::abs(d.weights()[1] - 2.0 / 3) <= epsilon);
  CHECK(std::abs(so3_quadrature::integral([&](const Rotation& p) { return pdf(d, p); }, 44) - 1) <= 1e-12);
  const Rotation p = some_rotation(3);
  CHECK(std::abs(pdf(d, p) - pdf(d.components()[0], p) / 3 - pdf(d.components()[1], p) * 2 / 3) <=
        1e-15 + 8 * epsilon * pdf(d, p));
  const std::vector<double> r = responsibilities(d, p);
  CHECK(std::abs(r[0] + r[1] - 1) <= 4 * epsilon);
  CHECK(r[2] == 0);
  const Column<double, 3> slope = sheafnn::rotation::score(d, p);
  for (int k = 0; k < 3; ++k) {
    Column<double, 3> turn = Column<double, 3>::Zero();
    const double difference = central_difference(turn(k), [&] {
      return logpdf(d, Rotation(
                           sheafnn::math::multiply(sheafnn::rotation::exponential_rotation<double, 3>(turn), p)));
    });
    CHECK(std::abs(difference - slope(k)) <= 1e-7 * (1 + slope.norm()));
  }
  Mean entry, share;
  for (std::uint32_t id = 0; id < 6000; ++id) {
    const Rotation y = sample(d, Stream{.seed = 1505}, id);
    entry.add(y(0, 2));
    share.add(responsibilities(d, y)[0]);
  }
  CHECK(entry.standard_errors_from(mean(d)(0, 2)) <= allowed_standard_errors);
  CHECK(share.standard_errors_from(1.0 / 3) <= allowed_standard_errors);
  CHECK_THROWS_WITH_AS(static_cast<void>(Mixture<Cayley>(std::vector<Cayley>())),
                       doctest::Contains("Mixture: components"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(static_cast<void>(Mixture<Gaussian>(d.components(), std::vector<double>{1})),
                       doctest::Contains("Mixture: weights"), std::invalid_argument);
  CHECK_THROWS_AS(static_cast<void>(Mixture<Gaussian>(d.components(), std::vector<double>{1, -1, 1})),
                  std::invalid_argument);
  CHECK_THROWS_AS(static_cast<void>(Mixture<Gaussian>(d.components(), std::vector<double>{0, 0, 0})),
                  std::invalid_argument);
}

TEST_CASE("mixtures of each kind are found again") {
  check_mixture<Gaussian>({{some_rotation(4), 0.2}, {some_rotation(5), 0.3}, {some_rotation(6), 0.25}}, 400);
  check_mixture<Cayley>({{some_rotation(4), 0.85}, {some_rotation(5), 0.9}, {some_rotation(6), 0.88}}, 300);
  // Of three singular values, the last of one component negative.
  const auto fisher = [](std::uint32_t id, double first, double second, double third) {
    return Fisher(Rotation(some_rotation(id) * Column<double, 3>(first, second, third).asDiagonal() *
                           some_rotation(id + 10).transpose()));
  };
  check_mixture<Fisher>({fisher(4, 30, 12, 5), fisher(5, 25, 20, -6), fisher(6, 15, 15, 15)}, 400);
  check_mixture<Bingham>({Bingham(Fisher(some_rotation(4), 12)), Bingham(Fisher(some_rotation(5), 20)),
                          Bingham(Fisher(some_rotation(6), 15))},
                         300);
  check_mixture<sheafnn::rotation::WrappedCauchy<>>({{0.0, 0.9}, {2.0, 0.92}, {-2.0, 0.9}}, 500);
  const auto axis = [](int k) {
    SquareMatrix<double, 3> covariance = SquareMatrix<double, 3>::Identity();
    covariance(k, k) = 60;
    return sheafnn::rotation::AngularCentralGaussian<3>(covariance);
  };
  check_mixture<sheafnn::rotation::AngularCentralGaussian<3>>({axis(0), axis(1), axis(2)}, 600);
}

TEST_CASE("components without samples are dropped, and impossible mixtures are refused by name") {
  std::vector<Rotation> samples(60);
  sheafnn::rotation::sample_many(Gaussian(some_rotation(8), 0.1), Stream{.seed = 1506}, 0, samples);
  const auto many = sheafnn::rotation::fit_mixture<Gaussian>(samples, {.components = 40, .starts = 2});
  CHECK(many.distribution.components().size() < 40);
  for (const double w : many.distribution.weights()) CHECK(w > 0);
  CHECK(std::isfinite(many.log_likelihood));
  // Weights count: samples of weight 0 are not there.
  std::vector<Rotation> more = samples;
  more.push_back(some_rotation(9));
  std::vector<double> weights(61, 2.0);
  weights[60] = 0;
  const auto one = sheafnn::rotation::fit_mixture<Gaussian>(more, {.components = 1}, weights);
  CHECK(std::abs(one.log_likelihood - sheafnn::rotation::fit<Gaussian>(samples).log_likelihood) <= 1e-9);
  const std::vector<Rotation> same(10, some_rotation(8));
  CHECK_THROWS_WITH_AS(static_cast<void>(sheafnn::rotation::fit_mixture<Gaussian>(same)),
                       doctest::Contains("fit_mixture: samples"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(static_cast<void>(sheafnn::rotation::fit_mixture<Gaussian>(samples, {.components = 0})),
                       doctest::Contains("components"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(static_cast<void>(sheafnn::rotation::fit_mixture<Gaussian>(samples, {.tolerance = -1})),
                       doctest::Contains("tolerance"), std::invalid_argument);
  samples[7](0, 0) = std::nan("");
  CHECK_THROWS_WITH_AS(static_cast<void>(sheafnn::rotation::fit_mixture<Gaussian>(samples)),
                       doctest::Contains("fit_mixture: samples[7]"), std::invalid_argument);
}

}  // namespace test_rotation_mixtures
