/// \file
/// The isotropic Gaussian distribution on SO(3): heat kernel, derivatives, samples, angles, fits, limits and errors.
#include <doctest/doctest.h>

#include <cmath>
#include <stdexcept>
#include <vector>

#include "rotation_checks.hpp"
#include "sheafnn/rotation/exponential.hpp"
#include "sheafnn/rotation/goodness_of_fit.hpp"
#include "sheafnn/rotation/isotropic_gaussian_angle.hpp"
#include "sheafnn/rotation/isotropic_gaussian_fit.hpp"
#include "sheafnn/rotation/nearest_rotation.hpp"
#include "sheafnn/rotation/sample_many.hpp"
#include "sheafnn/rotation/score.hpp"
#include "sheafnn/rotation/tangent_normal.hpp"
#include "so3_quadrature.hpp"

namespace test_isotropic_gaussian {
namespace {

using namespace rotation_checks;
using sheafnn::SquareMatrix;
using sheafnn::Stream;
using sheafnn::detail::HalfAngle;
using sheafnn::math::Column;
using Gaussian = sheafnn::rotation::IsotropicGaussian<>;
using Rotation = SquareMatrix<double, 3>;

using FloatPack = sheafnn::math::Pack<float, sheafnn::lanes<float>>;
using DoublePack = sheafnn::math::Pack<double, sheafnn::lanes<double>>;

constexpr double pi = 3.14159265358979323846;

struct Row {
  double sine, cosine, t, log, slope, time_slope;
};
constexpr Row rows[] = {
#include "golden/heat_kernel_reference.inc"
};

Rotation some_rotation(std::uint32_t id) {
  return sheafnn::rotation::haar_rotation<double, 3>(Stream{.seed = 1401}, id);
}
Rotation turned(const Rotation& r, double x, double y, double z) {
  return sheafnn::math::multiply(sheafnn::rotation::exponential_rotation<double, 3>(Column<double, 3>(x, y, z)),
                                 r);
}
HalfAngle<double> half_of(double angle) { return {std::sin(angle / 2), std::cos(angle / 2)}; }
double log_kernel(double angle, double t) { return sheafnn::detail::heat_kernel(half_of(angle), t).log; }

}  // namespace

TEST_CASE("heat kernel of SO(3) against the series of characters at many digits") {
  for (const Row& row : rows) {
    CAPTURE(row.sine);
    CAPTURE(row.t);
    const auto kernel = sheafnn::detail::heat_kernel<double>({row.sine, row.cosine}, row.t);
    const double unit = 64 * epsilon;
    // For t ≥ 2 everything has its digits but near zeros of characters; below, log f has zeros where f is 1.
    CHECK(std::abs(kernel.log - row.log) <= unit * (row.t < 2 ? 1 + std::abs(row.log) : std::exp(-row.t)));
    CHECK(std::abs(kernel.slope - row.slope) <= 2 * unit * std::abs(row.slope));
    // 3/2t and ω²/2t² cancel.
    CHECK(std::abs(kernel.time_slope - row.time_slope) <=
          unit * (row.t < 2 ? std::abs(row.time_slope) + 1 / row.t : std::exp(-row.t)));
  }
}

TEST_CASE("small and large times of the heat kernel") {
  for (const double t : {1e-60, 1e-16, 1e-8, 1e-4}) {
    const double sigma = std::sqrt(t);
    // f = V N(φ; 0, tI) (ω/2 sin(ω/2)) e^{t/8} up to other images
    for (const double z : {0.0, 0.1, 1.0, 3.0, 20.0}) {
      const double omega = z * sigma, gaussian = sheafnn::rotation::log_rotation_volume<3>() -
                                                 1.5 * std::log(2 * pi * t) - z * z / 2 + t / 8 +
                                                 omega * omega / 24;
      CHECK(std::abs(log_kernel(omega, t) - gaussian) <= 1e-13 * (1 + std::abs(gaussian)) + std::pow(omega, 4));
      CHECK(std::abs(sheafnn::detail::heat_kernel(half_of(omega), t).slope * 2 * t - 1) <=
            t + omega * omega + 1e-13);
    }
    // At π two images are as likely.
    CHECK(std::abs(log_kernel(pi, t) * 2 * t / (pi * pi) + 1) <= 1e-13 + 500 * t);
    CHECK(std::isfinite(sheafnn::detail::heat_kernel<double>({1, 0}, t).slope));
  }
  for (const double t : {40.0, 100.0, 690.0}) {
    CHECK(std::abs(log_kernel(1, t) / (3 * std::exp(-t) * (1 + 2 * std::cos(1.0))) - 1) <= 1e-13);
    CHECK(std::abs(sheafnn::detail::heat_kernel(half_of(1), t).slope / (3 * std::exp(-t)) - 1) <= 1e-13);
  }
  const auto uniform = sheafnn::detail::heat_kernel(half_of(2), 1e60);
  CHECK(uniform.log == 0);
  CHECK(uniform.slope == 0);
  CHECK(uniform.time_slope == 0);
}

TEST_CASE("the two series of the heat kernel agree where one follows the other") {
  for (int k = 0; k <= 40; ++k) {
    const HalfAngle<double> half = half_of(pi * k / 40);
    for (const double t : {1.9, 2.0}) {
      const auto a = sheafnn::detail::heat_kernel_of_characters(half, t);
      const auto b = sheafnn::detail::heat_kernel_of_images(half, t);
      CHECK(std::abs(a.log - b.log) <= 64 * epsilon);
      CHECK(std::abs(a.slope - b.slope) <= 64 * epsilon);
      CHECK(std::abs(a.time_slope - b.time_slope) <= 64 * epsilon);
    }
  }
}

TEST_CASE_TEMPLATE("packs and floats of the heat kernel are the doubles", T, float, FloatPack, DoublePack) {
  const double unit = 256 * static_cast<double>(std::numeric_limits<sheafnn::math::scalar_of_t<T>>::epsilon());
  for (std::size_t i = 0; i + lane_count<T> <= std::size(rows); i += lane_count<T>) {
    HalfAngle<T> half{T(0), T(0)};
    T t = T(0);
    for (int l = 0; l < lane_count<T>; ++l) {
      set_lane(half.sine, l, static_cast<float>(rows[i + l].sine));
      set_lane(half.cosine, l, static_cast<float>(rows[i + l].cosine));
      set_lane(t, l, static_cast<float>(rows[i + l].t));
    }
    const auto kernel = sheafnn::detail::heat_kernel(half, t);
    for (int l = 0; l < lane_count<T>; ++l) {
      const auto one =
          sheafnn::detail::heat_kernel<double>({get_lane(half.sine, l), get_lane(half.cosine, l)}, get_lane(t, l));
      CHECK(std::abs(get_lane(kernel.log, l) - one.log) <= unit * (1 + std::abs(one.log)));
      CHECK(std::abs(get_lane(kernel.slope, l) - one.slope) <=
            unit * (std::exp(-get_lane(t, l)) + std::abs(one.slope)));
      CHECK(std::abs(get_lane(kernel.time_slope, l) - one.time_slope) <=
            unit * (std::abs(one.time_slope) + 1 / get_lane(t, l)));
    }
  }
}

TEST_CASE("the isotropic Gaussian density is one of probability, and its characters decay as they should") {
  for (const double sigma : {0.45, 0.7, 1.2, 2.5}) {
    CAPTURE(sigma);
    const Gaussian d(some_rotation(0), sigma);
    const double t = sigma * sigma;
    CHECK(std::abs(so3_quadrature::integral([&](const Rotation& p) { return pdf(d, p); }, 44) - 1) <= 1e-12);
    // The semigroup: E χ_l = (2l + 1) e^{−l(l+1)t/2}, so that times add up.
    for (int l = 1; l <= 3; ++l) {
      const double mean = so3_quadrature::integral(
          [&](const Rotation& p) {
            const double angle =
                sheafnn::rotation::rotation_angle<double, 3>(sheafnn::math::multiply_nt(p, d.location()));
            double character = 1;
            for (int j = 1; j <= l; ++j) character += 2 * std::cos(j * angle);
            return pdf(d, p) * character;
          },
          44);
      CHECK(std::abs(mean - (2 * l + 1) * std::exp(-0.5 * l * (l + 1) * t)) <= 1e-12);
    }
  }
}

TEST_CASE("times of heat kernels add up under convolution") {
  const Gaussian first(some_rotation(1), 0.5), second(some_rotation(2), 0.6);
  const Gaussian both(sheafnn::math::multiply(some_rotation(2), some_rotation(1)), std::sqrt(0.25 + 0.36));
  for (std::uint32_t id = 10; id < 13; ++id) {
    const Rotation p = turned(both.location(), 0.3 * id - 3, 0.2, -0.4);
    const double convolved = so3_quadrature::integral(
        [&](const Rotation& q) { return pdf(first, q) * pdf(second, Rotation(sheafnn::math::multiply_nt(p, q))); },
        44);
    CHECK(std::abs(convolved / pdf(both, p) - 1) <= 1e-11);
  }
}

TEST_CASE("derivatives of the isotropic Gaussian log density") {
  for (const double sigma : {0.05, 0.4, 1.0, 1.41, 1.42, 2.0}) {
    CAPTURE(sigma);
    const Rotation m = some_rotation(3);
    for (const double size : {1e-5, 0.3 * sigma, std::min(2.5 * sigma, 3.0), 3.1}) {
      CAPTURE(size);
      const Rotation p = turned(m, 0.6 * size, -0.64 * size, 0.48 * size);
      const Gaussian d(m, sigma);
      const auto gradient = logpdf_gradient(d, p);
      const Column<double, 3> slope = sheafnn::rotation::score(d, p);
      const Column<double, 3> location = sheafnn::rotation::tangent_gradient<double, 3>(gradient.location, m);
      // Third derivatives are up to 1/σ³ and, beside π, 1/σ⁶; steps are parts of the scale.
      const double h = 1e-4 * std::min(1.0, sigma * sigma), scale = 1 + std::abs(logpdf(d, p));
      const double bound = 1e-6 * (1 + slope.norm() + 1 / sigma) + 4 * epsilon * scale / h;
      for (int k = 0; k < 3; ++k) {
        Column<double, 3> step = Column<double, 3>::Zero();
        step(k) = h;
        const double up = logpdf(d, turned(p, step(0), step(1), step(2)));
        const double down = logpdf(d, turned(p, -step(0), -step(1), -step(2)));
        CHECK(std::abs((up - down) / (2 * h) - slope(k)) <= bound);
        const double up_m = logpdf(Gaussian(turned(m, step(0), step(1), step(2)), sigma), p);
        const double down_m = logpdf(Gaussian(turned(m, -step(0), -step(1), -step(2)), sigma), p);
        CHECK(std::abs((up_m - down_m) / (2 * h) - location(k)) <= bound);
      }
      const double step = 1e-5 * sigma;
      const double difference =
          (logpdf(Gaussian(m, sigma + step), p) - logpdf(Gaussian(m, sigma - step), p)) / (2 * step);
      CHECK(std::abs(difference - gradient.scale) <= 1e-7 * (1 / sigma + std::abs(gradient.scale)));
    }
  }
}

TEST_CASE("KL, its derivative, information and mean of the isotropic Gaussian distribution") {
  const Rotation m = some_rotation(4);
  for (const double sigma : {0.26, 0.2618, 0.5, 1.0, 1.5, 3.0}) {
    CAPTURE(sigma);
    const Gaussian d(m, sigma);
    const double h = 1e-4 * sigma, kl = kl_to_uniform(d);
    const double difference =
        (kl_to_uniform(Gaussian(m, sigma + h)) - kl_to_uniform(Gaussian(m, sigma - h))) / (2 * h);
    CHECK(std::abs(difference / kl_derivative(d) - 1) <= 1e-5);
    CHECK(entropy(d) == -kl);
    if (sigma < 0.5) continue;
    CHECK(std::abs(so3_quadrature::integral([&](const Rotation& p) { return pdf(d, p) * logpdf(d, p); }, 48, 6) -
                   kl) <= 1e-12);
    const auto information = fisher_information(d);
    const auto squares = [&](const auto& f) {
      return so3_quadrature::integral([&](const Rotation& p) { return pdf(d, p) * f(p); }, 48, 6);
    };
    CHECK(std::abs(squares([&](const Rotation& p) { return sheafnn::rotation::score(d, p).squaredNorm() / 3; }) -
                   information.location) <= 1e-11 * (1 + information.location));
    CHECK(std::abs(squares([&](const Rotation& p) { return std::pow(logpdf_gradient(d, p).scale, 2); }) -
                   information.scale) <= 1e-11 * (1 + information.scale));
    CHECK(std::abs(squares([&](const Rotation& p) { return p(1, 2); }) - mean(d)(1, 2)) <= 1e-13);
  }
  // Limits: −3 log σ + log V − 3/2 log 2πe, and half of the sum of squares of the first character.
  CHECK(std::abs(kl_to_uniform(Gaussian(m, 1e-5)) - (sheafnn::rotation::log_rotation_volume<3>() +
                                                     3 * std::log(1e5) - 1.5 * (1 + std::log(2 * pi)))) <= 1e-9);
  CHECK(std::abs(kl_to_uniform(Gaussian(m, 5)) / (4.5 * std::exp(-50.0)) - 1) <= 1e-9);
  CHECK(kl_to_uniform(Gaussian(m, 1e30)) == 0);
}

TEST_CASE(
    "samples of isotropic Gaussian distributions follow the law of their angle, and their axes are uniform") {
  for (const double sigma : {1e-6, 0.1, 0.8, 1.41, 1.42, 3.0}) {
    CAPTURE(sigma);
    const Gaussian d(some_rotation(5), sigma);
    std::vector<Rotation> samples(4000);
    sheafnn::rotation::sample_many(d, Stream{.seed = 1402}, 7, samples, 2);
    CHECK(samples[3] == sample(d, Stream{.seed = 1402}, 10, 2));
    Mean cosine, log_density, third;
    for (const Rotation& p : samples) {
      CHECK(sheafnn::rotation::orthogonality_defect<double, 3>(p) <= 32 * epsilon);
      const auto q =
          sheafnn::rotation::rotation_quaternion<double>(Rotation(sheafnn::math::multiply_nt(p, d.location())));
      third.add(std::pow(q(3), 2) / (1 - q(0) * q(0) + 1e-300));
      log_density.add(logpdf(d, p));
      cosine.add((p.array() * d.location().array()).sum() / 3);
    }
    if (sigma > 1e-3) {
      CHECK(third.standard_errors_from(1.0 / 3) <= allowed_standard_errors);
      CHECK(cosine.standard_errors_from(mean_resultant(d)) <= allowed_standard_errors);
    }
    CHECK(log_density.standard_errors_from(kl_to_uniform(d)) <= allowed_standard_errors);
    CHECK(sheafnn::rotation::goodness_of_fit(d, samples).p_value >= 1e-6);
  }
}

TEST_CASE("derivatives of expectations from isotropic Gaussian samples") {
  const Rotation m = some_rotation(6), weight = some_rotation(7);
  for (const double sigma : {0.3, 1.0, 1.8}) {
    const Gaussian d(m, sigma);
    Mean scale, location;
    // g(Y) = ⟨W, Y⟩²: its mean by quadrature is a smooth function of σ and M.
    const auto expectation = [&](const Gaussian& at) {
      return so3_quadrature::integral(
          [&](const Rotation& p) { return pdf(at, p) * std::pow(frobenius(weight, p), 2); });
    };
    for (std::uint32_t id = 0; id < 20000; ++id) {
      const Rotation y = sample(d, Stream{.seed = 1403}, id);
      const auto bar = sample_backward(d, y, Rotation(2 * frobenius(weight, y) * weight));
      scale.add(bar.scale);
      location.add(sheafnn::rotation::tangent_gradient<double, 3>(bar.location, m)(1));
    }
    const double h = 1e-4;
    CHECK(scale.standard_errors_from((expectation(Gaussian(m, sigma + h)) - expectation(Gaussian(m, sigma - h))) /
                                     (2 * h)) <= allowed_standard_errors);
    CHECK(location.standard_errors_from((expectation(Gaussian(turned(m, 0, h, 0), sigma)) -
                                         expectation(Gaussian(turned(m, 0, -h, 0), sigma))) /
                                        (2 * h)) <= allowed_standard_errors);
  }
}

TEST_CASE("angles of the isotropic Gaussian distribution") {
  for (const double sigma : {1e-7, 0.02, 0.5, 1.4, 4.0}) {
    CAPTURE(sigma);
    const Gaussian d(some_rotation(8), sigma);
    CHECK(std::abs(angle_cdf(d, pi) - 1) <= 1e-13);
    CHECK(angle_cdf(d, 0) == 0);
    for (const double p : {1e-12, 0.01, 0.5, 0.9, 0.9999}) {
      const double r = angle_quantile(d, p);
      CHECK(std::abs(angle_cdf(d, r) / p - 1) <= 1e-12);
      const double h = 1e-4 * r;
      if (r + h < pi) {
        CHECK(std::abs((angle_cdf(d, r + h) - angle_cdf(d, r - h)) / (2 * h * angle_pdf(d, r)) - 1) <= 1e-5);
      }
    }
    CHECK(angle_quantile(d, 0) == 0);
    CHECK(angle_quantile(d, 1) == pi);
  }
}

TEST_CASE("fits of isotropic Gaussian distributions return what the samples came from") {
  for (const double sigma : {1e-5, 0.05, 0.5, 1.2, 1.6}) {
    CAPTURE(sigma);
    const Gaussian truth(some_rotation(9), sigma);
    std::vector<Rotation> samples(1500);
    sheafnn::rotation::sample_many(truth, Stream{.seed = 1404}, 0, samples);
    const auto moments = sheafnn::rotation::fit_moments<Gaussian>(samples);
    const auto fit = sheafnn::rotation::fit<Gaussian>(samples);
    CHECK(fit.log_likelihood >= moments.log_likelihood - 1e-12);
    CHECK(std::abs(fit.distribution.scale() - sigma) <= 5 * fit.scale_error);
    CHECK(std::abs(moments.distribution.scale() - sigma) <= 5 * moments.scale_error);
    CHECK(std::abs(moments.scale_error / fit.scale_error - 1) <= 0.3);
    const auto interval = fit.scale_interval(0.999999);
    CHECK(interval.lower < sigma);
    CHECK(interval.upper > sigma);
    CHECK(sheafnn::rotation::rotation_angle<double, 3>(
              sheafnn::math::multiply_nt(fit.distribution.location(), truth.location())) <=
          fit.location_radius(0.999999));
    // The score of the samples vanishes.
    double growth = 0, size = 0;
    Column<double, 3> turn = Column<double, 3>::Zero();
    for (const Rotation& p : samples) {
      const auto gradient = logpdf_gradient(fit.distribution, p);
      growth += gradient.scale * sigma / 1500;
      size += std::abs(gradient.scale) * sigma / 1500;
      turn += sigma / 1500 *
              sheafnn::rotation::tangent_gradient<double, 3>(gradient.location, fit.distribution.location());
    }
    CHECK(std::abs(growth) <= 1e-9 * size);
    CHECK(turn.norm() <= 1e-9 + 16 * epsilon / sigma);
    // Weights are importances, and repetitions are weights.
    std::vector<double> weights(samples.size(), 0.25);
    weights[0] = 0;
    const auto weighted = sheafnn::rotation::fit<Gaussian>(samples, weights);
    const auto fewer = sheafnn::rotation::fit<Gaussian>(std::vector<Rotation>(samples.begin() + 1, samples.end()));
    CHECK(std::abs(weighted.distribution.scale() / fewer.distribution.scale() - 1) <= 1e-9);
  }
}

TEST_CASE("isotropic Gaussian distributions in float, and drifted arguments") {
  const SquareMatrix<float, 3> m = some_rotation(0).cast<float>();
  const sheafnn::rotation::IsotropicGaussian<3, float> d(m, 0.25f);
  const Gaussian wide(sheafnn::rotation::nearest_rotation<double, 3>(m.cast<double>()), 0.25);
  std::vector<SquareMatrix<float, 3>> samples(200);
  sheafnn::rotation::sample_many(d, Stream{.seed = 1405}, 0, samples);
  for (const auto& p : samples) {
    const double exact = logpdf(wide, sheafnn::rotation::nearest_rotation<double, 3>(p.cast<double>()));
    CHECK(std::abs(logpdf(d, p) - exact) <= 1e-4 * (1 + std::abs(exact)));
  }
  CHECK(std::abs(
            sheafnn::rotation::fit<sheafnn::rotation::IsotropicGaussian<3, float>>(samples).distribution.scale() -
            0.25f) <= 0.04f);
  Rotation drifted = some_rotation(0);
  drifted(0, 0) += 1e-6;
  CHECK_THROWS_WITH_AS(static_cast<void>(logpdf(wide, drifted)), doctest::Contains("logpdf: p"),
                       std::invalid_argument);
  CHECK_NOTHROW(static_cast<void>(logpdf(wide, drifted, {.tolerance = 1e-4})));
  CHECK_THROWS_AS(static_cast<void>(sheafnn::rotation::score(wide, drifted)), std::invalid_argument);
}

TEST_CASE("errors of isotropic Gaussian distributions name the argument") {
  const Rotation m = some_rotation(0);
  for (const double sigma : {0.0, -1.0, 1e-31, 1e31, std::nan("")}) {
    CHECK_THROWS_WITH_AS(static_cast<void>(Gaussian(m, sigma)), doctest::Contains("IsotropicGaussian: scale"),
                         std::invalid_argument);
  }
  CHECK_THROWS_WITH_AS(static_cast<void>(Gaussian(Rotation(2 * m), 1)),
                       doctest::Contains("IsotropicGaussian: location"), std::invalid_argument);
  const Gaussian d(m, 1);
  CHECK_THROWS_AS(static_cast<void>(angle_cdf(d, 3.2)), std::invalid_argument);
  CHECK_THROWS_AS(static_cast<void>(angle_quantile(d, 1.5)), std::invalid_argument);
  const std::vector<Rotation> same(5, m);
  CHECK_THROWS_WITH_AS(static_cast<void>(sheafnn::rotation::fit<Gaussian>(same)),
                       doctest::Contains("fit: samples: a set of (nearly) equal rotations"),
                       std::invalid_argument);
  CHECK_THROWS_AS(static_cast<void>(sheafnn::rotation::fit<Gaussian>(std::vector<Rotation>{m})),
                  std::invalid_argument);
}

}  // namespace test_isotropic_gaussian
