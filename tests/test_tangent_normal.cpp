/// \file
/// The normal distribution in the tangent space and the Jacobian of the exponential: against the determinant of
/// the derivative, central differences, quadrature, samples; packs against scalars.
#include "sheafnn/core/eigen.hpp"

#include <doctest/doctest.h>

#include <Eigen/LU>
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <random>
#include <vector>

#include "dense_algebra.hpp"
#include "rotation_checks.hpp"
#include "sheafnn/rotation/exponential_jacobian.hpp"
#include "sheafnn/rotation/tangent_normal.hpp"

namespace test_tangent_normal {
namespace {

using namespace rotation_checks;
using sheafnn::SquareMatrix;
using sheafnn::math::Pack;
using sheafnn::rotation::rotation_parameters;
using sheafnn::rotation::RotationParameters;
constexpr double pi = std::numbers::pi;

template <int N>
RotationParameters<double, N> normal_parameters(std::mt19937& engine, double scale) {
  std::normal_distribution<double> normal;
  RotationParameters<double, N> r;
  for (int k = 0; k < rotation_parameters<N>; ++k)
    r(k) = static_cast<double>(static_cast<float>(scale * normal(engine)));
  return r;
}
/// Numbers in (low, high), as floats.
template <int N>
RotationParameters<double, N> positive_parameters(std::mt19937& engine, double low, double high) {
  std::uniform_real_distribution<double> uniform(low, high);
  RotationParameters<double, N> r;
  for (int k = 0; k < rotation_parameters<N>; ++k) r(k) = static_cast<double>(static_cast<float>(uniform(engine)));
  return r;
}

/// How much a logarithm and its derivative magnify errors near the zeros of the Jacobian: 1/min |sin(α/2)| over
/// the roots α, from the eigenvalues of X_φ.
template <int N>
double magnification(const RotationParameters<double, N>& phi) {
  const Eigen::MatrixXd x = sheafnn::rotation::skew_matrix<double, N>(phi);
  const Eigen::VectorXd squares = dense_algebra::spectrum(Eigen::MatrixXd(-x * x));
  std::vector<double> theta;
  for (int i = N - 1; i > 0; i -= 2) theta.push_back(std::sqrt(std::max(squares(i), 0.0)));
  double least = 1;
  const auto add = [&](double root) {
    if (root > 1) least = std::min(least, std::abs(std::sin(root / 2)));
  };
  for (std::size_t i = 0; i < theta.size(); ++i) {
    if (N % 2 == 1) add(theta[i]);
    for (std::size_t j = 0; j < i; ++j) {
      add(theta[i] + theta[j]);
      add(std::abs(theta[i] - theta[j]));
    }
  }
  return 1 / least;
}

template <int N>
void check_jacobian() {
  constexpr int P = rotation_parameters<N>;
  std::mt19937 engine(500 + N);
  for (const double scale : {1e-3, 0.05, 0.3, 1.0, 2.0}) {
    RotationParameters<double, N> phi = normal_parameters<N>(engine, scale);
    const SquareMatrix<double, N> rotation = sheafnn::rotation::exponential_rotation<double, N>(phi);
    // Row k: coordinate k of the tangent vector Rᵀ dR.
    Eigen::MatrixXd derivative(P, P);
    for (int k = 0; k < P; ++k) {
      const SquareMatrix<double, N> direction =
          0.5 * rotation * sheafnn::rotation::skew_matrix<double, N>(RotationParameters<double, N>::Unit(k));
      RotationParameters<double, N> row = RotationParameters<double, N>::Zero();
      sheafnn::rotation::exponential_rotation_backward<double, N>(phi, direction, row);
      derivative.row(k) = row.transpose();
    }
    const double magnified = magnification<N>(phi);
    CAPTURE(N);
    CAPTURE(scale);
    CAPTURE(magnified);
    const double value = sheafnn::rotation::exponential_log_jacobian<double, N>(phi);
    const double expected = std::log(std::abs(derivative.determinant()));
    CHECK(std::abs(value - expected) <= 16 * P * epsilon * magnified * (1 + phi.norm()));

    RotationParameters<double, N> gradient = RotationParameters<double, N>::Constant(2);
    CHECK(sheafnn::rotation::exponential_log_jacobian_backward<double, N>(phi, 1.5, gradient) == value);
    const double bound = difference_bound * P * std::pow(magnified, 3);
    for (int k = 0; k < P; ++k) {
      CAPTURE(k);
      const double numeric =
          central_difference(phi(k), [&] { return sheafnn::rotation::exponential_log_jacobian<double, N>(phi); });
      CHECK(std::abs(gradient(k) - 2 - 1.5 * numeric) <= bound);
    }
  }
  // The leading term is −(N − 2)/12 · ‖φ‖²: nothing is lost to a constant.
  const RotationParameters<double, N> tiny = normal_parameters<N>(engine, 1e-9);
  const double leading = -(N - 2) / 12.0 * tiny.squaredNorm();
  CHECK(std::abs(sheafnn::rotation::exponential_log_jacobian<double, N>(tiny) - leading) <=
        -16 * N * epsilon * leading);
}

template <int N>
void check_sample_gradient() {
  std::mt19937 engine(520 + N);
  SquareMatrix<double, N> m = sheafnn::rotation::exponential_rotation<double, N>(normal_parameters<N>(engine, 1));
  RotationParameters<double, N> sigma = positive_parameters<N>(engine, 0.1, 1);
  const RotationParameters<double, N> noise = normal_parameters<N>(engine, 1);
  const SquareMatrix<double, N> cotangent = random_matrix<N, N>(engine);
  const auto value = [&] {
    return frobenius(cotangent, sheafnn::rotation::tangent_normal_sample<double, N>(m, sigma, noise));
  };
  const SquareMatrix<double, N> y = sheafnn::rotation::tangent_normal_sample<double, N>(m, sigma, noise);
  SquareMatrix<double, N> m_gradient = SquareMatrix<double, N>::Constant(2);
  RotationParameters<double, N> sigma_gradient = RotationParameters<double, N>::Constant(3);
  sheafnn::rotation::tangent_normal_sample_backward<double, N>(m, sigma, noise, y, cotangent, m_gradient,
                                                               sigma_gradient);
  CAPTURE(N);
  CHECK((y * y.transpose() - SquareMatrix<double, N>::Identity()).norm() <= 64 * N * epsilon);
  const double bound = N * difference_bound;
  for (int j = 0; j < N; ++j) {
    for (int i = 0; i < N; ++i)
      CHECK(std::abs(m_gradient(i, j) - 2 - central_difference(m(i, j), value)) <= bound);
  }
  for (int k = 0; k < rotation_parameters<N>; ++k) {
    CHECK(std::abs(sigma_gradient(k) - 3 - central_difference(sigma(k), value)) <= bound);
  }
}

template <int N>
void check_density_gradient() {
  std::mt19937 engine(540 + N);
  RotationParameters<double, N> sigma = positive_parameters<N>(engine, 0.1, 0.4);
  const RotationParameters<double, N> noise = normal_parameters<N>(engine, 1);
  const auto value = [&] { return sheafnn::rotation::tangent_normal_logpdf<double, N>(sigma, noise); };
  RotationParameters<double, N> gradient = RotationParameters<double, N>::Constant(2);
  CAPTURE(N);
  CHECK(sheafnn::rotation::tangent_normal_logpdf_backward<double, N>(sigma, noise, 1.5, gradient) == value());
  const double bound =
      N * difference_bound * std::pow(magnification<N>(sheafnn::detail::scaled_noise(sigma, noise)), 3) +
      difference_step * difference_step / std::pow(sigma.minCoeff(), 3);  // of log σ
  for (int k = 0; k < rotation_parameters<N>; ++k) {
    CAPTURE(k);
    CHECK(std::abs(gradient(k) - 2 - 1.5 * central_difference(sigma(k), value)) <= bound);
  }
}

/// log q of one branch for φ = θ times a unit vector, all σ equal.
template <int N>
double log_density(double sigma, double theta) {
  const RotationParameters<double, N> direction =
      RotationParameters<double, N>::Ones() / std::sqrt(static_cast<double>(rotation_parameters<N>));
  return sheafnn::rotation::tangent_normal_logpdf<double, N>(RotationParameters<double, N>::Constant(sigma),
                                                             direction * (theta / sigma));
}

/// Simpson's rule.
template <class F>
double integral(double begin, double end, const F& f) {
  constexpr int cells = 4000;
  const double width = (end - begin) / cells;
  double sum = 0;
  for (int i = 0; i < cells; ++i) {
    const double x = begin + i * width;
    sum += (f(x) + 4 * f(x + width / 2) + f(x + width)) * (width / 6);
  }
  return sum;
}

/// Density of the angle of a uniform rotation: in [−π, π] for N = 2 (where it is halved to count both signs once)
/// and in [0, π] for N = 3, continued to all branches of the logarithm.
template <int N>
double haar_angle_density(double theta) {
  return N == 2 ? 1 / (2 * pi) : (1 - std::cos(theta)) / (2 * pi);
}
/// P(|φ| > θ).
template <int N>
double tail(double sigma, double theta) {
  const double x = theta / sigma;
  const double normal = std::erfc(x / std::numbers::sqrt2);
  return N == 2 ? normal : normal + std::sqrt(2 / pi) * x * std::exp(-x * x / 2);
}

/// Density of Y with respect to Haar measure: the sum over branches.
template <int N>
double summed_density(double sigma, double theta) {
  double sum = 0;
  for (int k = -4; k <= 4; ++k) sum += std::exp(log_density<N>(sigma, theta + 2 * pi * k));
  return sum;
}

template <int N>
void check_mass(double sigma) {
  CAPTURE(N);
  CAPTURE(sigma);
  const double inside = integral(-pi, pi, [&](double theta) {
    return theta == 0 && N == 3 ? 0 : haar_angle_density<N>(theta) * std::exp(log_density<N>(sigma, theta));
  });
  // Simpson's rule: (width/σ)⁴.
  CHECK(std::abs(inside + tail<N>(sigma, pi) - 1) <= 1e-9);
}

/// KL(Y ‖ uniform) − E log q(Y, branch), by quadrature over the angle.
template <int N>
double branch_entropy(double sigma) {
  const double end = 9 * sigma;
  const double shift = 1e-3;  // no node meets a zero of the Jacobian
  const auto weight = [&](double theta) {
    return haar_angle_density<N>(theta) * std::exp(log_density<N>(sigma, theta));
  };
  return integral(-end + shift, end + shift, [&](double theta) {
    return weight(theta) * (std::log(summed_density<N>(sigma, theta)) - log_density<N>(sigma, theta));
  });
}

template <int N>
void check_law(double sigma) {
  std::mt19937 engine(560 + N);
  std::normal_distribution<double> normal;
  const SquareMatrix<double, N> m =
      sheafnn::rotation::exponential_rotation<double, N>(normal_parameters<N>(engine, 1));
  const RotationParameters<double, N> sigmas = RotationParameters<double, N>::Constant(sigma);
  std::vector<double> angles;
  for (int draw = 0; draw < 20000; ++draw) {
    RotationParameters<double, N> noise;
    for (int k = 0; k < rotation_parameters<N>; ++k) noise(k) = normal(engine);
    const SquareMatrix<double, N> y = sheafnn::rotation::tangent_normal_sample<double, N>(m, sigmas, noise);
    const double cosine = ((m.transpose() * y).trace() - (N - 2)) / 2;
    angles.push_back(std::acos(std::clamp(cosine, -1.0, 1.0)));
  }
  const TabulatedDistribution distribution(1e-6, pi - 1e-6, [&](double theta) {
    return haar_angle_density<N>(theta) * summed_density<N>(sigma, theta);
  });
  CAPTURE(N);
  CHECK(kolmogorov_smirnov(angles, distribution) <= allowed_kolmogorov_smirnov);
}

template <class T, int N>
void check_lanes() {
  constexpr int P = rotation_parameters<N>;
  std::mt19937 engine(580 + N);
  const double unit = static_cast<double>(std::numeric_limits<sheafnn::math::scalar_of_t<T>>::epsilon());
  // The lanes need different numbers of halvings, and the series and the sine.
  std::vector<Eigen::Matrix<double, P, 1>> sigma, noise;
  std::vector<SquareMatrix<double, N>> m, cotangent;
  for (int l = 0; l < lane_count<T>; ++l) {
    sigma.push_back(positive_parameters<N>(engine, 0.05, 0.1 + 0.1 * (l % 8)));
    noise.push_back(normal_parameters<N>(engine, 1));
    m.push_back(random_matrix<N, N>(engine));
    cotangent.push_back(random_matrix<N, N>(engine));
  }
  const auto sigma_lanes = from_lanes<T, P, 1>(sigma);
  const auto noise_lanes = from_lanes<T, P, 1>(noise);
  const auto m_lanes = from_lanes<T, N, N>(m);
  const auto y = sheafnn::rotation::tangent_normal_sample<T, N>(m_lanes, sigma_lanes, noise_lanes);
  SquareMatrix<T, N> m_gradient = SquareMatrix<T, N>::Constant(T(0));
  RotationParameters<T, N> sigma_gradient = RotationParameters<T, N>::Constant(T(0));
  sheafnn::rotation::tangent_normal_sample_backward<T, N>(m_lanes, sigma_lanes, noise_lanes, y,
                                                          from_lanes<T, N, N>(cotangent), m_gradient,
                                                          sigma_gradient);
  RotationParameters<T, N> density_gradient = RotationParameters<T, N>::Constant(T(0));
  const T log_q =
      sheafnn::rotation::tangent_normal_logpdf_backward<T, N>(sigma_lanes, noise_lanes, T(1), density_gradient);
  const T same_log_q = sheafnn::rotation::tangent_normal_logpdf<T, N>(sigma_lanes, noise_lanes);
  for (int l = 0; l < lane_count<T>; ++l) {
    const auto i = static_cast<std::size_t>(l);
    const auto expected_y = sheafnn::rotation::tangent_normal_sample<double, N>(m[i], sigma[i], noise[i]);
    SquareMatrix<double, N> expected_m = SquareMatrix<double, N>::Zero();
    RotationParameters<double, N> expected_sigma = RotationParameters<double, N>::Zero();
    sheafnn::rotation::tangent_normal_sample_backward<double, N>(m[i], sigma[i], noise[i], expected_y,
                                                                 cotangent[i], expected_m, expected_sigma);
    RotationParameters<double, N> expected_density = RotationParameters<double, N>::Zero();
    const double expected_log_q =
        sheafnn::rotation::tangent_normal_logpdf_backward<double, N>(sigma[i], noise[i], 1.0, expected_density);
    CAPTURE(N);
    CAPTURE(l);
    const RotationParameters<double, N> phi = sheafnn::detail::scaled_noise(sigma[i], noise[i]);
    const double growth = (1 + phi.norm()) * (1 + m[i].norm()) * (1 + cotangent[i].norm()) * (1 + noise[i].norm());
    CHECK((one_lane(y, l) - expected_y).norm() <= 16 * N * unit * growth);
    CHECK((one_lane(m_gradient, l) - expected_m).norm() <= 16 * N * unit * growth * (1 + m[i].norm()));
    CHECK((one_lane(sigma_gradient, l) - expected_sigma).norm() <= 16 * N * unit * growth);
    const double magnified = magnification<N>(phi);
    CHECK(std::abs(get_lane(log_q, l) - expected_log_q) <=
          16 * P * unit * (magnified * (1 + phi.norm()) + std::abs(expected_log_q)));
    CHECK(get_lane(same_log_q, l) == get_lane(log_q, l));
    CHECK((one_lane(density_gradient, l) - expected_density).norm() <=
          16 * P * unit * (magnified * magnified * (1 + noise[i].norm()) + expected_density.norm()));
  }
}

}  // namespace

TEST_CASE("log |det d exp| equals the determinant of the derivative; its gradient by central differences") {
  check_jacobian<2>();
  check_jacobian<3>();
  check_jacobian<4>();
  check_jacobian<5>();
  check_jacobian<6>();
  check_jacobian<7>();
  check_jacobian<8>();
  check_jacobian<9>();
}

TEST_CASE("log |det d exp| stays finite at the zeros of the Jacobian") {
  RotationParameters<double, 3> turn_round = RotationParameters<double, 3>::Zero();
  turn_round(1) = 2 * pi;
  RotationParameters<double, 5> turn_round5 = RotationParameters<double, 5>::Zero();
  turn_round5(3) = 2 * pi;
  RotationParameters<double, 3> gradient = RotationParameters<double, 3>::Zero();
  RotationParameters<double, 5> gradient5 = RotationParameters<double, 5>::Zero();
  CHECK(std::isfinite(sheafnn::rotation::exponential_log_jacobian_backward<double, 3>(turn_round, 1.0, gradient)));
  CHECK(
      std::isfinite(sheafnn::rotation::exponential_log_jacobian_backward<double, 5>(turn_round5, 1.0, gradient5)));
  CHECK(gradient.allFinite());
  CHECK(gradient5.allFinite());
}

TEST_CASE("volume of SO(N): a product of spheres") {
  double expected = 0;
  const auto add = [&](int k) {
    expected += std::log(2.0) + 0.5 * k * std::log(pi) - std::lgamma(0.5 * k);
    return expected;
  };
  const double bound = 64 * epsilon * 25;
  CHECK(sheafnn::rotation::log_rotation_volume<1>() == 0);
  CHECK(std::abs(sheafnn::rotation::log_rotation_volume<2>() - add(2)) <= bound);
  CHECK(std::abs(sheafnn::rotation::log_rotation_volume<3>() - add(3)) <= bound);
  CHECK(std::abs(sheafnn::rotation::log_rotation_volume<4>() - add(4)) <= bound);
  CHECK(std::abs(sheafnn::rotation::log_rotation_volume<5>() - add(5)) <= bound);
  CHECK(std::abs(sheafnn::rotation::log_rotation_volume<6>() - add(6)) <= bound);
  CHECK(std::abs(sheafnn::rotation::log_rotation_volume<7>() - add(7)) <= bound);
  CHECK(std::abs(sheafnn::rotation::log_rotation_volume<8>() - add(8)) <= bound);
  CHECK(std::abs(sheafnn::rotation::log_rotation_volume<9>() - add(9)) <= bound);
}

TEST_CASE("tangent normal: derivatives of the sample and of its log density by central differences") {
  check_sample_gradient<2>();
  check_sample_gradient<3>();
  check_sample_gradient<4>();
  check_sample_gradient<5>();
  check_sample_gradient<8>();
  check_density_gradient<2>();
  check_density_gradient<3>();
  check_density_gradient<4>();
  check_density_gradient<5>();
  check_density_gradient<8>();
}

TEST_CASE("tangent normal: one dimension has no coordinates") {
  const SquareMatrix<double, 1> one = SquareMatrix<double, 1>::Ones();
  const RotationParameters<double, 1> none;
  CHECK(sheafnn::rotation::tangent_normal_sample<double, 1>(one, none, none)(0, 0) == 1);
  CHECK(sheafnn::rotation::tangent_normal_logpdf<double, 1>(none, none) == 0);
}

TEST_CASE("tangent normal: mass within the injectivity radius and outside it add to 1") {
  for (const double sigma : {0.1, 0.5, 1.0, 2.0}) {
    check_mass<2>(sigma);
    check_mass<3>(sigma);
  }
  // N = 4, all of it for a small σ: a = |θ₁ + θ₂| and b = |θ₁ − θ₂| are angles of two unit quaternions that are
  // defined up to a common sign, so uniform rotations have density 2 (1 − cos a)(1 − cos b)/4π² on a + b < 2π.
  constexpr double sigma = 0.3;
  double sum = 0;
  constexpr int cells = 600;
  constexpr double width = pi / cells;  // the rest, a or b > π, has mass P(χ₃ > π/(0.3√2)) ~ 1e-11
  for (int i = 0; i < cells; ++i) {
    for (int j = 0; j < cells; ++j) {
      const double a = (i + 0.5) * width, b = (j + 0.5) * width;
      RotationParameters<double, 4> noise = RotationParameters<double, 4>::Zero();
      noise(0) = (a + b) / 2 / sigma;
      noise(5) = (a - b) / 2 / sigma;
      const double log_q =
          sheafnn::rotation::tangent_normal_logpdf<double, 4>(RotationParameters<double, 4>::Constant(sigma),
                                                              noise);
      sum += 2 * (1 - std::cos(a)) * (1 - std::cos(b)) / (4 * pi * pi) * std::exp(log_q) * width * width;
    }
  }
  CHECK(std::abs(sum - 1) <= 1e-9);
}

TEST_CASE("tangent normal: the branch density underestimates KL by the entropy of the branch") {
  CHECK(std::abs(branch_entropy<2>(0.5) - 1.013e-9) <= 1e-12);
  CHECK(std::abs(branch_entropy<3>(0.5) - 4.18e-8) <= 1e-10);
  CHECK(std::abs(branch_entropy<2>(1) - 0.004822) <= 1e-6);
  CHECK(std::abs(branch_entropy<3>(1) - 0.05375) <= 1e-5);
}

TEST_CASE("tangent normal: the angles of samples follow the density") {
  check_law<2>(0.5);
  check_law<2>(2);
  check_law<3>(0.5);
  check_law<3>(1.5);
}

TEST_CASE("tangent normal: float and packs agree with double, lane by lane") {
  check_lanes<float, 8>();
  check_lanes<Pack<float, 8>, 2>();
  check_lanes<Pack<float, 8>, 3>();
  check_lanes<Pack<float, 8>, 4>();
  check_lanes<Pack<float, 8>, 5>();
  check_lanes<Pack<double, 4>, 3>();
  check_lanes<Pack<double, 4>, 6>();
}

}  // namespace test_tangent_normal
