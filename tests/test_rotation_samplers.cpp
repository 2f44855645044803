/// \file
/// Samples of the distributions of rotations follow their laws; batches are the single samples; KL between Cayley
/// distributions is the mean log ratio.
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "rotation_checks.hpp"
#include "sheafnn/rotation/angular_central_gaussian_kl.hpp"
#include "sheafnn/rotation/cayley_divergence.hpp"
#include "sheafnn/rotation/goodness_of_fit.hpp"
#include "sheafnn/rotation/leon_angle.hpp"
#include "sheafnn/rotation/matrix_fisher_angle.hpp"
#include "sheafnn/rotation/sample_many.hpp"

namespace test_rotation_samplers {
namespace {

using namespace rotation_checks;
using sheafnn::math::Column;
using sheafnn::SquareMatrix;
using sheafnn::Stream;

template <int N>
SquareMatrix<double, N> some_rotation(std::uint32_t id) {
  return sheafnn::rotation::haar_rotation<double, N>(Stream{.seed = 401}, id);
}

/// Entries of the average, the mean log density, the integral of the density, and the angle (N = 2, 3).
template <class D>
void check_samples(const D& distribution, std::uint32_t count, bool integrable = true) {
  constexpr int N = D::dimension;
  CAPTURE(N);
  Mean entries[N * N], log_density, one;
  std::vector<double> angles;
  double worst = 0;
  for (std::uint32_t id = 0; id < count; ++id) {
    const SquareMatrix<double, N> p = sheafnn::rotation::sample(distribution, Stream{.seed = 402}, id);
    worst = std::max(worst, sheafnn::rotation::orthogonality_defect<double, N>(p));
    for (int i = 0; i < N * N; ++i) entries[i].add(p.data()[i]);
    log_density.add(sheafnn::rotation::logpdf(distribution, p));
    one.add(sheafnn::rotation::pdf(distribution, sheafnn::rotation::haar_rotation<double, N>(Stream{.seed = 403}, id)));
    if constexpr (N <= 3) {
      angles.push_back(
          sheafnn::rotation::rotation_angle<double, N>(sheafnn::math::multiply_nt(p, distribution.location())));
    }
  }
  CHECK(worst <= 16 * N * epsilon);
  const SquareMatrix<double, N> mean = sheafnn::rotation::mean(distribution);
  for (int i = 0; i < N * N; ++i) {
    CAPTURE(i);
    CHECK(entries[i].standard_errors_from(mean.data()[i]) <= allowed_standard_errors);
  }
  CHECK(std::abs((mean.array() * distribution.location().array()).sum() / N -
                 sheafnn::rotation::mean_resultant(distribution)) <= 16 * N * epsilon);
  CHECK(log_density.standard_errors_from(sheafnn::rotation::kl_to_uniform(distribution)) <= allowed_standard_errors);
  CHECK(sheafnn::rotation::entropy(distribution) == -sheafnn::rotation::kl_to_uniform(distribution));
  if (integrable) CHECK(one.standard_errors_from(1) <= allowed_standard_errors);
  if constexpr (N <= 3) {
    // The law from Simpson's rule on 400 cells of the density, so that a slow one stays affordable.
    const double end = 3.14159265358979323846, begin = N == 2 ? -end : 0;
    constexpr int cells = 400;
    std::vector<double> sums = {0};
    for (int i = 0; i < cells; ++i) {
      const auto at = [&](double part) {
        return sheafnn::rotation::angle_pdf(distribution, begin + (end - begin) * (i + part) / cells);
      };
      sums.push_back(sums.back() + (at(0) + 4 * at(0.5) + at(1)) / 6 * (end - begin) / cells);
    }
    // Leon's density has a cusp |π − r|^{2k}, on a cell of 0.016: 0.016^{1 + 2k}, here with k ≥ 0.2, and below.
    CHECK(std::abs(sums.back() - 1) <= 3e-3);
    CHECK(kolmogorov_smirnov(angles, [&](double x) {
            const double position = std::min((x - begin) / (end - begin) * cells, cells - 1e-9);
            const auto cell = static_cast<std::size_t>(position);
            return sums[cell] + (position - static_cast<double>(cell)) * (sums[cell + 1] - sums[cell]);
          }) <= allowed_kolmogorov_smirnov);
  }
}

/// A sample of weights Σ for KL(p ‖ q) with p, q turned against each other in general position.
template <int N>
void check_divergence(double kappa1, double kappa2, double size) {
  CAPTURE(N);
  CAPTURE(kappa1);
  CAPTURE(kappa2);
  const SquareMatrix<double, N> m = some_rotation<N>(5);
  const SquareMatrix<double, N> turn =
      sheafnn::rotation::moebius<double, N>(some_rotation<N>(6), size);  // Möbius shrinks angles
  const sheafnn::rotation::CayleyDistribution<N> p(m, kappa1), q(sheafnn::math::multiply(turn, m), kappa2);
  Mean ratio;
  for (std::uint32_t id = 0; id < 6000; ++id) {
    const SquareMatrix<double, N> y = sheafnn::rotation::sample(p, Stream{.seed = 404}, id);
    ratio.add(sheafnn::rotation::logpdf(p, y) - sheafnn::rotation::logpdf(q, y));
  }
  CHECK(ratio.standard_errors_from(sheafnn::rotation::kl_divergence(p, q)) <= allowed_standard_errors);
}

template <int N>
void check_divergence_identities() {
  CAPTURE(N);
  const SquareMatrix<double, N> m = some_rotation<N>(7), other = some_rotation<N>(8);
  for (const double kappa : {0.0, 0.3, 0.9, 0.999999}) {
    CAPTURE(kappa);
    const sheafnn::rotation::CayleyDistribution<N> p(m, kappa), uniform(other, 0.0), q(other, 0.6);
    const double kl = sheafnn::rotation::kl_to_uniform(p);
    CHECK(std::abs(sheafnn::rotation::kl_divergence(p, uniform) - kl) <= 512 * epsilon * (1 + kl));
    CHECK(sheafnn::rotation::kl_divergence(p, p) <= 64 * epsilon * epsilon / ((1 - kappa) * (1 - kappa)));
    const double forward = sheafnn::rotation::kl_divergence(p, q), backward = sheafnn::rotation::kl_divergence(q, p);
    if (N % 2 == 0) CHECK(std::abs(forward - backward) <= 512 * epsilon * (1 + forward));
    CHECK(forward > 0);
    // For nearby parameters KL is half of the information times the squared difference.
    const double step = 1e-4 * (1 - kappa);
    const double near = sheafnn::rotation::kl_divergence(p, sheafnn::rotation::CayleyDistribution<N>(m, kappa + step));
    const double information = sheafnn::rotation::fisher_information(p).concentration;
    CHECK(std::abs(near / (0.5 * information * step * step) - 1) <= 1e-3);
  }
}

template <class D>
void check_batch(const D& distribution, double bound) {
  using Scalar = typename D::Scalar;
  constexpr std::size_t count = 37;  // not a multiple of the lanes
  using Sample = sheafnn::detail::SampleOf<D>;
  const Stream stream{.seed = 405};
  std::vector<Sample> batch(count);
  sheafnn::rotation::sample_many(distribution, stream, 1000, batch, 3);
  const auto difference = [](const Sample& a, const Sample& b) {
    if constexpr (std::is_floating_point_v<Sample>) {
      return std::abs(static_cast<double>(a) - static_cast<double>(b));
    } else {
      return static_cast<double>((a - b).norm());
    }
  };
  for (std::size_t i = 0; i < count; ++i) {
    const auto one = sheafnn::rotation::sample(distribution, stream, 1000 + static_cast<std::uint32_t>(i), 3);
    CHECK(difference(batch[i], one) <= bound);
  }
  if constexpr (sheafnn::rotation::DrawnInPacks<D>) {
    constexpr int width = sheafnn::lanes<Scalar>;
    std::vector<sheafnn::detail::SamplePackOf<D>> packs(2);
    sheafnn::rotation::sample_many(distribution, stream, 1000, packs, 3);
    for (int l = 0; l < width; ++l) {
      Sample lane;
      if constexpr (std::is_floating_point_v<Sample>) {
        lane = packs[1].lane(l);
      } else {
        lane = one_lane(packs[1], l).template cast<Scalar>();
      }
      const auto one = sheafnn::rotation::sample(distribution, stream, static_cast<std::uint32_t>(1000 + width + l), 3);
      CHECK(difference(lane, one) <= bound);
    }
  }
}

template <class Scalar>
void check_batches() {
  const double unit = static_cast<double>(std::numeric_limits<Scalar>::epsilon());
  // Normal numbers, quaternions or reflections, one product; the Möbius map magnifies by 1/(1 − κ).
  const double bound = 512 * unit;
  check_batch(sheafnn::rotation::HaarDistribution<3, Scalar>(), bound);
  check_batch(sheafnn::rotation::HaarDistribution<8, Scalar>(), bound);
  check_batch(sheafnn::rotation::LeonCayleyDistribution<3, Scalar>(some_rotation<3>(1).template cast<Scalar>(),
                                                                   Scalar(1.5)),
              0);
  check_batch(sheafnn::rotation::MatrixFisherDistribution<3, Scalar>(some_rotation<3>(1).template cast<Scalar>(),
                                                                     Scalar(2)),
              0);
  for (const double kappa : {0.0, 0.5, 0.9}) {
    const Scalar k = static_cast<Scalar>(kappa);
    check_batch(sheafnn::rotation::CayleyDistribution<2, Scalar>(some_rotation<2>(1).template cast<Scalar>(), k),
                bound / (1 - kappa));
    check_batch(sheafnn::rotation::CayleyDistribution<3, Scalar>(some_rotation<3>(1).template cast<Scalar>(), k),
                bound / (1 - kappa));
    check_batch(sheafnn::rotation::CayleyDistribution<4, Scalar>(some_rotation<4>(1).template cast<Scalar>(), k),
                bound / (1 - kappa));
    check_batch(sheafnn::rotation::CayleyDistribution<5, Scalar>(some_rotation<5>(1).template cast<Scalar>(), k),
                bound / (1 - kappa));
    check_batch(sheafnn::rotation::WrappedCauchy<Scalar>(Scalar(1), k), bound / (1 - kappa));
  }
  SquareMatrix<Scalar, 3> covariance;
  covariance << 2, Scalar(0.3), 0, Scalar(0.3), 1, Scalar(0.1), 0, Scalar(0.1), Scalar(0.5);
  check_batch(sheafnn::rotation::AngularCentralGaussian<3, Scalar>(covariance), bound);
}

}  // namespace

TEST_CASE("samples of Leon's distribution have its mean, density, KL and angle") {
  check_samples(sheafnn::rotation::LeonCayleyDistribution<2>(some_rotation<2>(0), 0.2), 6000);
  check_samples(sheafnn::rotation::LeonCayleyDistribution<2>(some_rotation<2>(0), 7), 6000);
  check_samples(sheafnn::rotation::LeonCayleyDistribution<3>(some_rotation<3>(0), 1.5), 6000);
  check_samples(sheafnn::rotation::LeonCayleyDistribution<3>(some_rotation<3>(0), 40), 6000);
  check_samples(sheafnn::rotation::LeonCayleyDistribution<4>(some_rotation<4>(0), 0.5), 6000);
  check_samples(sheafnn::rotation::LeonCayleyDistribution<5>(some_rotation<5>(0), 0.4), 6000);
  check_samples(sheafnn::rotation::LeonCayleyDistribution<6>(some_rotation<6>(0), 30), 3000, false);
  check_samples(sheafnn::rotation::LeonCayleyDistribution<16>(some_rotation<16>(0), 5), 500, false);
}

TEST_CASE("samples of matrix Fisher distributions have their mean, density, KL and angle") {
  check_samples(sheafnn::rotation::MatrixFisherDistribution<2>(some_rotation<2>(0), 0.4), 6000);
  check_samples(sheafnn::rotation::MatrixFisherDistribution<2>(some_rotation<2>(0), 4), 6000);
  check_samples(sheafnn::rotation::MatrixFisherDistribution<3>(some_rotation<3>(0), 1), 6000);
  for (const double third : {0.8, -0.8}) {
    const SquareMatrix<double, 3> f =
        some_rotation<3>(1) * Column<double, 3>(4, 1, third).asDiagonal() * some_rotation<3>(2).transpose();
    check_samples(sheafnn::rotation::MatrixFisherDistribution<3>(f), 6000);
  }
}

TEST_CASE("samples of uniform and Cayley distributions, and their angles") {
  check_samples(sheafnn::rotation::CayleyDistribution<3>(some_rotation<3>(0), 0.5), 6000);
  check_samples(sheafnn::rotation::CayleyDistribution<2>(some_rotation<2>(0), 0.7), 6000);
  const sheafnn::rotation::HaarDistribution<3> uniform;
  CHECK(sheafnn::rotation::logpdf(uniform, some_rotation<3>(0)) == 0);
  CHECK(sheafnn::rotation::pdf(uniform, some_rotation<3>(0)) == 1);
  CHECK(sheafnn::rotation::mean(uniform).norm() == 0);
  CHECK(sheafnn::rotation::sample(uniform, Stream{.seed = 401}, 7u) == some_rotation<3>(7));
}

TEST_CASE("KL between Cayley distributions is the mean log ratio") {
  check_divergence<4>(0.5, 0.7, 0.3);
  check_divergence<5>(0.6, 0.3, 0.2);
  check_divergence<6>(0.4, 0.5, 0.5);
  check_divergence<7>(0.3, 0.6, 0.4);
  check_divergence<8>(0.5, 0.2, 0.1);
  check_divergence<16>(0.6, 0.5, 0.6);
}

TEST_CASE("KL between Cayley distributions: uniform limit, identity, symmetry for even dimensions, information") {
  check_divergence_identities<2>();
  check_divergence_identities<3>();
  check_divergence_identities<4>();
  check_divergence_identities<5>();
  check_divergence_identities<8>();
  const sheafnn::rotation::WrappedCauchy<> a(0.3, 0.5), b(1.3, 0.7);
  const auto rotation = [](double angle) {
    const double c = std::cos(angle), s = std::sin(angle);
    return (SquareMatrix<double, 2>() << c, -s, s, c).finished();
  };
  const double plane = sheafnn::rotation::kl_divergence(sheafnn::rotation::CayleyDistribution<2>(rotation(0.3), 0.5),
                                              sheafnn::rotation::CayleyDistribution<2>(rotation(1.3), 0.7));
  CHECK(std::abs(sheafnn::rotation::kl_divergence(a, b) - plane) <= 16 * epsilon);
}

TEST_CASE("KL between angular central Gaussian distributions is the mean log ratio") {
  SquareMatrix<double, 4> first = SquareMatrix<double, 4>::Identity(), second = first;
  first.diagonal() << 3, 1, 0.5, 0.2;
  first(0, 1) = first(1, 0) = 0.4;
  second(2, 3) = second(3, 2) = 0.7;
  const sheafnn::rotation::AngularCentralGaussian<4> p(first), q(second);
  Mean ratio, log_density;
  for (std::uint32_t id = 0; id < 6000; ++id) {
    const Column<double, 4> x = sheafnn::rotation::sample(p, Stream{.seed = 406}, id);
    ratio.add(sheafnn::rotation::logpdf(p, x) - sheafnn::rotation::logpdf(q, x));
    log_density.add(sheafnn::rotation::logpdf(p, x));
  }
  CHECK(ratio.standard_errors_from(sheafnn::rotation::kl_divergence(p, q)) <= allowed_standard_errors);
  CHECK(log_density.standard_errors_from(sheafnn::rotation::kl_to_uniform(p)) <= allowed_standard_errors);
  CHECK(sheafnn::rotation::kl_divergence(p, p) <= 64 * epsilon);
  CHECK(sheafnn::rotation::entropy(p) == -sheafnn::rotation::kl_to_uniform(p));
}

TEST_CASE("batches are the single samples") {
  check_batches<double>();
  check_batches<float>();
}

}  // namespace test_rotation_samplers
