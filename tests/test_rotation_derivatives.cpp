/// \file
/// Derivatives of log densities and of samples along every coordinate, against central differences.
#include <doctest/doctest.h>

#include <cmath>
#include <random>

#include "rotation_checks.hpp"
#include "sheafnn/rotation/angular_central_gaussian_gradient.hpp"
#include "sheafnn/rotation/cayley_gradient.hpp"
#include "sheafnn/rotation/exponential.hpp"
#include "sheafnn/rotation/leon_distribution.hpp"
#include "sheafnn/rotation/matrix_fisher_distribution.hpp"
#include "sheafnn/rotation/wrapped_cauchy.hpp"

namespace test_rotation_derivatives {
namespace {

using namespace rotation_checks;
using sheafnn::math::Column;
using sheafnn::rotation::RotationParameters;
using sheafnn::SquareMatrix;
using sheafnn::Stream;

/// Compares a derivative in φ of f(exp(X_φ) R) with differences of f along each φ.
template <int N, class F>
void check_turns(const RotationParameters<double, N>& gradient, const SquareMatrix<double, N>& r, double bound,
                 const F& f) {
  RotationParameters<double, N> phi = RotationParameters<double, N>::Zero();
  for (int i = 0; i < phi.size(); ++i) {
    CAPTURE(i);
    const double difference = central_difference(phi(i), [&] {
      return f(SquareMatrix<double, N>(
          sheafnn::math::multiply(sheafnn::rotation::exponential_rotation<double, N>(phi), r)));
    });
    CHECK(std::abs(gradient(i) - difference) <= bound);
  }
}

template <int N>
void check_cayley(double kappa) {
  CAPTURE(N);
  CAPTURE(kappa);
  SquareMatrix<double, N> m = sheafnn::rotation::haar_rotation<double, N>(Stream{.seed = 301}, 0u);
  SquareMatrix<double, N> p = sheafnn::rotation::haar_rotation<double, N>(Stream{.seed = 301}, 1u);
  const sheafnn::rotation::CayleyDistribution<N> distribution(m, kappa);
  const auto gradient = sheafnn::rotation::logpdf_gradient(distribution, p);
  // Each derivative brings a factor of at most 1/(1 − κ).
  const double bound = difference_bound * N * N / std::pow(1 - kappa, 3);

  double k = kappa;
  CHECK(std::abs(gradient.concentration - central_difference(k, [&] {
                   return sheafnn::rotation::cayley_logpdf<double, N>(sheafnn::math::multiply_nt(p, m), k);
                 })) <= bound);
  for (int i = 0; i < N * N; ++i) {
    const auto f = [&] { return sheafnn::rotation::cayley_logpdf<double, N>(sheafnn::math::multiply_nt(p, m), kappa); };
    CAPTURE(i);
    CHECK(std::abs(gradient.argument.data()[i] - central_difference(p.data()[i], f)) <= bound);
    CHECK(std::abs(gradient.location.data()[i] - central_difference(m.data()[i], f)) <= bound);
  }
  check_turns<N>(sheafnn::rotation::tangent_gradient<double, N>(gradient.argument, p), p, bound,
                 [&](const SquareMatrix<double, N>& q) { return sheafnn::rotation::logpdf(distribution, q); });
  check_turns<N>(sheafnn::rotation::tangent_gradient<double, N>(gradient.location, m), m, bound,
                 [&](const SquareMatrix<double, N>& q) {
                   return sheafnn::rotation::logpdf(sheafnn::rotation::CayleyDistribution<N>(q, kappa), p);
                 });

  // The reparametrised sample.
  std::mt19937 engine(302);
  const SquareMatrix<double, N> cotangent = random_matrix<N, N>(engine);
  const auto bar = sheafnn::rotation::sample_backward(distribution, p, cotangent);
  const auto loss = [&](const SquareMatrix<double, N>& location, double concentration) {
    return frobenius(cotangent, sheafnn::rotation::sample_from_uniform(
                                    sheafnn::rotation::CayleyDistribution<N>(location, concentration), p));
  };
  const double sample_bound = bound * (1 + cotangent.norm());
  CHECK(std::abs(bar.concentration - central_difference(k, [&] { return loss(m, k); })) <= sample_bound);
  check_turns<N>(sheafnn::rotation::tangent_gradient<double, N>(bar.location, m), m, sample_bound,
                 [&](const SquareMatrix<double, N>& q) { return loss(q, kappa); });
}

template <int N>
void check_leon(double k) {
  CAPTURE(N);
  CAPTURE(k);
  const SquareMatrix<double, N> m = sheafnn::rotation::haar_rotation<double, N>(Stream{.seed = 303}, 0u);
  const SquareMatrix<double, N> p =
      sheafnn::rotation::sample(sheafnn::rotation::LeonCayleyDistribution<N>(m, 2.0), Stream{.seed = 304}, 1u);
  const sheafnn::rotation::LeonCayleyDistribution<N> distribution(m, k);
  const auto gradient = sheafnn::rotation::logpdf_gradient(distribution, p);
  // Third derivatives are powers of (I + Y)⁻¹.
  const SquareMatrix<double, N> shifted = sheafnn::math::multiply_nt(p, m) + SquareMatrix<double, N>::Identity();
  const double bound =
      difference_bound * (1 + k) * (N + std::pow(SquareMatrix<double, N>(shifted.inverse()).norm(), 3));
  double moving = k;
  CHECK(std::abs(gradient.concentration - central_difference(moving, [&] {
                   return sheafnn::rotation::logpdf(sheafnn::rotation::LeonCayleyDistribution<N>(m, moving), p);
                 })) <= bound);
  check_turns<N>(sheafnn::rotation::tangent_gradient<double, N>(gradient.argument, p), p, bound,
                 [&](const SquareMatrix<double, N>& q) { return sheafnn::rotation::logpdf(distribution, q); });
  check_turns<N>(sheafnn::rotation::tangent_gradient<double, N>(gradient.location, m), m, bound,
                 [&](const SquareMatrix<double, N>& q) {
                   return sheafnn::rotation::logpdf(sheafnn::rotation::LeonCayleyDistribution<N>(q, k), p);
                 });
}

template <int N>
void check_fisher(unsigned seed, double scale) {
  CAPTURE(N);
  CAPTURE(scale);
  std::mt19937 engine(seed);
  SquareMatrix<double, N> f = random_matrix<N, N>(engine, scale);
  const SquareMatrix<double, N> p = sheafnn::rotation::haar_rotation<double, N>(Stream{.seed = 305}, 0u);
  const sheafnn::rotation::MatrixFisherDistribution<N> distribution(f);
  const auto gradient = sheafnn::rotation::logpdf_gradient(distribution, p);
  const double bound = difference_bound * (1 + f.norm());
  const SquareMatrix<double, N> fixed = f;
  for (int i = 0; i < N * N; ++i) {
    CAPTURE(i);
    const double difference = central_difference(f.data()[i], [&] {
      return sheafnn::rotation::logpdf(sheafnn::rotation::MatrixFisherDistribution<N>(f), p);
    });
    CHECK(std::abs(gradient.parameter.data()[i] - difference) <= bound);
  }
  check_turns<N>(sheafnn::rotation::tangent_gradient<double, N>(gradient.argument, p), p, bound,
                 [&](const SquareMatrix<double, N>& q) {
                   return sheafnn::rotation::logpdf(sheafnn::rotation::MatrixFisherDistribution<N>(fixed), q);
                 });
}

template <int P>
void check_gaussian() {
  CAPTURE(P);
  std::mt19937 engine(306 + P);
  const SquareMatrix<double, P> root = random_matrix<P, P>(engine);
  SquareMatrix<double, P> covariance = root * root.transpose() + 0.5 * SquareMatrix<double, P>::Identity();
  using D = sheafnn::rotation::AngularCentralGaussian<P>;
  const D distribution(covariance);
  const Stream stream{.seed = 307};
  Column<double, P> x = sheafnn::rotation::sample(distribution, stream, 0u);
  const auto gradient = sheafnn::rotation::logpdf_gradient(distribution, x);
  // Eigenvalues of Λ are at least 1/2: third derivatives have the fourth power of its inverse.
  const double bound = difference_bound * 16 * P;
  for (int i = 0; i < P; ++i) {
    CHECK(std::abs(gradient.argument(i) - central_difference(x(i), [&] {
                     return sheafnn::rotation::angular_central_gaussian_logpdf<double, P>(x, distribution.factor());
                   })) <= bound);
  }
  Column<double, P> normal;
  sheafnn::fill_normals<P, double>(normal.data(), stream, 0u);
  const Column<double, P> cotangent = random_matrix<P, 1>(engine);
  const auto bar = sheafnn::rotation::sample_backward(distribution, normal, cotangent);
  const auto loss = [&](const SquareMatrix<double, P>& factor) {
    return cotangent.dot(sheafnn::rotation::angular_central_gaussian_sample<double, P>(factor, stream, 0u));
  };
  SquareMatrix<double, P> factor = distribution.factor();
  for (int j = 0; j < P; ++j) {
    for (int i = j; i < P; ++i) {
      CAPTURE(i);
      CAPTURE(j);
      // Λ moves symmetrically.
      double shift = 0;
      const auto moved = [&] {
        SquareMatrix<double, P> m = covariance;
        m(i, j) += shift;
        if (i != j) m(j, i) += shift;
        return m;
      };
      const double twice = i == j ? 1 : 2;
      CHECK(std::abs(twice * gradient.covariance(i, j) -
                     central_difference(shift, [&] { return sheafnn::rotation::logpdf(D(moved()), x); })) <= bound);
      CHECK(std::abs(twice * bar.covariance(i, j) -
                     central_difference(shift, [&] { return loss(D(moved()).factor()); })) <= bound);
      CHECK(std::abs(bar.factor(i, j) - central_difference(factor(i, j), [&] { return loss(factor); })) <= bound);
    }
  }
}

}  // namespace

TEST_CASE("Cayley: derivatives of the log density and of the sample") {
  for (const double kappa : {0.2, 0.7}) {
    check_cayley<2>(kappa);
    check_cayley<3>(kappa);
    check_cayley<4>(kappa);
    check_cayley<5>(kappa);
  }
}

TEST_CASE("Leon: derivatives of the log density") {
  for (const double k : {0.3, 4.0}) {
    check_leon<2>(k);
    check_leon<3>(k);
    check_leon<4>(k);
    check_leon<5>(k);
  }
}

TEST_CASE("matrix Fisher: derivatives of the log density") {
  for (const double scale : {0.5, 4.0}) {
    check_fisher<2>(308, scale);
    check_fisher<3>(309, scale);
  }
}

TEST_CASE("angular central Gaussian: derivatives of the log density and of the sample") {
  check_gaussian<2>();
  check_gaussian<3>();
  check_gaussian<5>();
}

TEST_CASE("wrapped Cauchy: derivatives of the log density and of the sample") {
  for (const double start : {0.1, 0.8}) {
    double kappa = start, mu = 0.4;
    // Nodes away from the cut of the sample at ±π.
    for (double angle : {0.4, 0.5, 2.0, -1.0}) {
      CAPTURE(kappa);
      CAPTURE(angle);
      const double bound = difference_bound / std::pow(1 - kappa, 3);
      const auto f = [&] { return sheafnn::rotation::logpdf(sheafnn::rotation::WrappedCauchy<>(mu, kappa), angle); };
      const auto gradient = sheafnn::rotation::logpdf_gradient(sheafnn::rotation::WrappedCauchy<>(mu, kappa), angle);
      CHECK(std::abs(gradient.location - central_difference(mu, f)) <= bound);
      CHECK(std::abs(gradient.concentration - central_difference(kappa, f)) <= bound);
      CHECK(std::abs(gradient.argument - central_difference(angle, f)) <= bound);
      const auto y = [&] {
        return sheafnn::rotation::sample_from_uniform(sheafnn::rotation::WrappedCauchy<>(mu, kappa), angle);
      };
      const auto slope = sheafnn::rotation::sample_gradient(sheafnn::rotation::WrappedCauchy<>(mu, kappa), angle);
      CHECK(std::abs(slope.location - central_difference(mu, y)) <= bound);
      CHECK(std::abs(slope.concentration - central_difference(kappa, y)) <= bound);
      CHECK(slope.argument == 0);
    }
  }
}

}  // namespace test_rotation_derivatives
