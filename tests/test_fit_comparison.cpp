/// \file
/// Samples of float accuracy, confidence intervals and the comparison of families, on SO(3).
#include <doctest/doctest.h>

#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "rotation_checks.hpp"
#include "sheafnn/rotation/compare_fits.hpp"
#include "sheafnn/rotation/nearest_rotation.hpp"
#include "sheafnn/rotation/sample_many.hpp"

namespace test_fit_comparison {
namespace {

using namespace rotation_checks;
using sheafnn::math::Column;
using sheafnn::SquareMatrix;
using sheafnn::Stream;
using Rotation = SquareMatrix<double, 3>;
using Rotations = std::vector<Rotation>;
using Cayley = sheafnn::rotation::CayleyDistribution<3>;
using Leon = sheafnn::rotation::LeonCayleyDistribution<3>;
using MatrixFisher = sheafnn::rotation::MatrixFisherDistribution<3>;
using Gaussian = sheafnn::rotation::AngularCentralGaussian<4>;

Rotation some_rotation() { return sheafnn::rotation::haar_rotation<double, 3>(Stream{.seed = 701}, 0); }

template <class D>
Rotations samples_of(const D& distribution, std::size_t count, std::uint32_t simulation) {
  Rotations samples(count);
  sheafnn::rotation::sample_many(distribution, Stream{.seed = 702, .epoch = simulation}, 0, samples);
  return samples;
}

/// Rotations of float quaternions, computed in float and held in double.
Rotations float_samples() {
  Rotations samples = samples_of(Cayley(some_rotation(), 0.6), 200, 0);
  for (Rotation& r : samples) {
    const Column<float, 4> q = sheafnn::rotation::rotation_quaternion<double>(r).cast<float>();
    r = sheafnn::rotation::quaternion_rotation<float>(q).cast<double>();
  }
  return samples;
}

constexpr sheafnn::rotation::SampleOptions<double> of_float{.tolerance = 1e-5};

/// Every entry point refuses the samples, naming the remedy, and takes them with a tolerance as the nearest rotations.
template <class D>
void check_tolerance(const D& distribution, const Rotations& samples) {
  double worst = 0;
  Rotations nearest;
  for (const Rotation& p : samples) {
    CHECK_THROWS_WITH_AS(static_cast<void>(sheafnn::rotation::logpdf(distribution, p)),
                         doctest::Contains("nearest_rotation()"), std::invalid_argument);
    nearest.push_back(sheafnn::rotation::nearest_rotation<double, 3>(p));
    worst = std::max(worst, std::abs(sheafnn::rotation::logpdf(distribution, p, of_float) -
                                     sheafnn::rotation::logpdf(distribution, nearest.back())));
  }
  CHECK(worst <= 1e-13);
  CHECK_THROWS_AS(static_cast<void>(sheafnn::rotation::pdf(distribution, samples[0])), std::invalid_argument);
  CHECK(std::abs(sheafnn::rotation::pdf(distribution, samples[0], of_float) -
                 sheafnn::rotation::pdf(distribution, nearest[0])) <= 1e-12);
  CHECK_THROWS_WITH_AS(static_cast<void>(sheafnn::rotation::goodness_of_fit(distribution, samples)),
                       doctest::Contains("goodness_of_fit: samples[0]"), std::invalid_argument);
  CHECK(std::abs(sheafnn::rotation::goodness_of_fit(distribution, samples, of_float).statistic -
                 sheafnn::rotation::goodness_of_fit(distribution, nearest).statistic) <= 1e-13);
}

/// The same for the fit; `concentration` reads the estimate.
template <class D, class F>
void check_fit_tolerance(const Rotations& samples, const F& concentration) {
  Rotations nearest;
  for (const Rotation& p : samples) nearest.push_back(sheafnn::rotation::nearest_rotation<double, 3>(p));
  CHECK_THROWS_WITH_AS(static_cast<void>(sheafnn::rotation::fit<D>(samples)), doctest::Contains("nearest_rotation()"),
                       std::invalid_argument);
  const auto taken = sheafnn::rotation::fit<D>(samples, {}, {.tolerance = 1e-5});
  const auto clean = sheafnn::rotation::fit<D>(nearest);
  CHECK(std::abs(concentration(taken) / concentration(clean) - 1) <= 1e-10);
  CHECK((taken.distribution.location() - clean.distribution.location()).norm() <= 1e-10);
  CHECK(std::abs(taken.log_likelihood - clean.log_likelihood) <= 1e-12);
}

/// Probability that a binomial count is at most `count`.
double binomial_at_most(int count, int trials, double p) {
  double term = std::pow(1 - p, trials), sum = term;
  for (int k = 1; k <= count; ++k) {
    term *= (trials - k + 1.0) / k * p / (1 - p);
    sum += term;
  }
  return sum;
}
/// Neither tail of the count is less likely than 1e-5. Intervals of 100 samples are off by about 1/100 in coverage, a
/// third of the count's standard error.
bool plausible(int covered, int trials, double level) {
  MESSAGE("covered ", covered, " of ", trials, ", expected ", level * trials);
  return binomial_at_most(covered, trials, level) >= 1e-5 &&
         1 - binomial_at_most(covered - 1, trials, level) >= 1e-5;
}

template <class D>
void check_coverage(const D& truth, double level, double highest) {
  constexpr int simulations = 200;
  int concentrations = 0, locations = 0;
  for (int i = 0; i < simulations; ++i) {
    const auto fit = sheafnn::rotation::fit<D>(samples_of(truth, 100, static_cast<std::uint32_t>(i)));
    const auto interval = fit.concentration_interval(level);
    concentrations += interval.lower <= truth.concentration() && truth.concentration() <= interval.upper;
    locations += sheafnn::rotation::rotation_angle<double, 3>(
                     sheafnn::math::multiply_nt(fit.distribution.location(), truth.location())) <=
                 fit.location_radius(level);
    CHECK(interval.lower >= 0);
    CHECK(interval.upper < highest);
  }
  CHECK(plausible(concentrations, simulations, level));
  CHECK(plausible(locations, simulations, level));
}

}  // namespace

TEST_CASE("rotations of float accuracy in double are taken with a tolerance, and refused without") {
  const Rotations samples = float_samples();
  // The fixture is what users have: every one of them is off by more than the default allows.
  for (const Rotation& p : samples) {
    const double defect = sheafnn::rotation::orthogonality_defect<double, 3>(p);
    CHECK(defect > sheafnn::rotation::rotation_tolerance<double>());
    CHECK(defect <= 1e-6);
  }
  const Rotations few(samples.begin(), samples.begin() + 5);
  check_tolerance(sheafnn::rotation::HaarDistribution<3>(), few);
  check_tolerance(Cayley(some_rotation(), 0.5), few);
  check_tolerance(Leon(some_rotation(), 2), few);
  check_tolerance(MatrixFisher(some_rotation(), 2), few);
  check_fit_tolerance<Cayley>(samples, [](const auto& fit) { return fit.distribution.concentration(); });
  check_fit_tolerance<Leon>(samples, [](const auto& fit) { return fit.distribution.concentration(); });
  check_fit_tolerance<MatrixFisher>(samples, [](const auto& fit) { return fit.concentration(); });
  CHECK(std::abs(sheafnn::rotation::fit_moments<Cayley>(samples, {}, of_float).log_likelihood -
                 sheafnn::rotation::fit<Cayley>(samples, {}, of_float).log_likelihood) <= 0.01);
}

TEST_CASE("derivatives of densities take the tolerance too") {
  const Rotation p = float_samples()[0], nearest = sheafnn::rotation::nearest_rotation<double, 3>(p);
  const auto check = [&](const auto& distribution) {
    CHECK_THROWS_AS(static_cast<void>(sheafnn::rotation::logpdf_gradient(distribution, p)), std::invalid_argument);
    CHECK((sheafnn::rotation::logpdf_gradient(distribution, p, of_float).argument -
           sheafnn::rotation::logpdf_gradient(distribution, nearest).argument)
              .norm() <= 1e-12);
  };
  check(Cayley(some_rotation(), 0.5));
  check(Leon(some_rotation(), 2));
  check(MatrixFisher(some_rotation(), 2));
}

TEST_CASE("unit vectors of float accuracy") {
  const Gaussian distribution(Column<double, 4>(4, 2, 1, 1).asDiagonal());
  const Column<double, 4> unit = Column<double, 4>(1, -2, 3, 1).normalized(), x = (1 + 1e-6) * unit;
  CHECK_THROWS_WITH_AS(static_cast<void>(sheafnn::rotation::logpdf(distribution, x)), doctest::Contains("logpdf: x"),
                       std::invalid_argument);
  CHECK(std::abs(sheafnn::rotation::logpdf(distribution, x, of_float) -
                 sheafnn::rotation::logpdf(distribution, unit)) <= 1e-14);
  std::vector<Column<double, 4>> samples;
  for (std::uint32_t i = 0; i < 50; ++i)
    samples.push_back(sheafnn::rotation::sample(distribution, Stream{.seed = 703}, i));
  const auto clean = sheafnn::rotation::fit<Gaussian>(samples);
  for (auto& q : samples) q *= 1 - 1e-6;
  CHECK_THROWS_WITH_AS(static_cast<void>(sheafnn::rotation::fit<Gaussian>(samples)),
                       doctest::Contains("fit: samples[0]"), std::invalid_argument);
  CHECK(std::abs(sheafnn::rotation::fit<Gaussian>(samples, {}, of_float).log_likelihood - clean.log_likelihood) <=
        1e-12);
}

TEST_CASE("the largest tolerance finds the nearest rotation, and a larger one is refused") {
  Rotation p = some_rotation();
  p(0, 1) += 0.004;
  p(2, 2) -= 0.003;
  const Rotation taken = sheafnn::rotation::orthonormalised<double, 3>("p", p, {.tolerance = 0.01});
  CHECK((taken - sheafnn::rotation::nearest_rotation<double, 3>(p)).norm() <= 16 * epsilon);
  CHECK_THROWS_AS(static_cast<void>(sheafnn::rotation::orthonormalised<double, 3>("p", p, {.tolerance = 0.001})),
                  std::invalid_argument);
  for (const double tolerance : {0.011, -1e-9, std::nan("")}) {
    CHECK_THROWS_WITH_AS(static_cast<void>(sheafnn::rotation::logpdf(sheafnn::rotation::HaarDistribution<3>(),
                                                                     some_rotation(), {.tolerance = tolerance})),
                         doctest::Contains("SampleOptions: tolerance"), std::invalid_argument);
  }
}

TEST_CASE("confidence intervals cover the truth as often as they say, and stay in range") {
  check_coverage(Cayley(some_rotation(), 0.5), 0.8, 1.0);
  check_coverage(Leon(some_rotation(), 2.5), 0.8, HUGE_VAL);
}

TEST_CASE("intervals by hand") {
  // Quantiles of the normal distribution (0.95), of χ² with 3 degrees of freedom (0.95).
  constexpr double z = 1.9599639845400545, chi = 2.7954834829151074;
  const auto fit = sheafnn::rotation::fit<Cayley>(samples_of(Cayley(some_rotation(), 0.5), 100, 0));
  const double kappa = fit.distribution.concentration(), scale = fit.concentration_error / (1 - kappa * kappa);
  const auto interval = fit.concentration_interval();
  CHECK(std::abs(interval.lower - std::tanh(std::atanh(kappa) - z * scale)) <= 1e-14);
  CHECK(std::abs(interval.upper - std::tanh(std::atanh(kappa) + z * scale)) <= 1e-14);
  CHECK(std::abs(fit.location_radius() - chi * fit.location_error) <= 1e-14);
  const auto cut = sheafnn::detail::concentration_interval<double>(true, 0.1, 0.2, 0.95);
  CHECK(cut.lower == 0);
  const auto positive = sheafnn::detail::concentration_interval<double>(false, 2.0, 0.5, 0.95);
  CHECK(std::abs(positive.upper - 2 * std::exp(z / 4)) <= 1e-14);
  CHECK(std::abs(positive.lower * positive.upper - 4) <= 1e-14);
  const auto none = sheafnn::detail::concentration_interval<double>(false, 0.0, 0.5, 0.95);
  CHECK(none.lower == 0);
  CHECK(std::abs(none.upper - z / 2) <= 1e-14);
  for (const double level : {0.0, 1.0, 95.0}) {
    CHECK_THROWS_WITH_AS(static_cast<void>(fit.concentration_interval(level)), doctest::Contains("level"),
                         std::invalid_argument);
    CHECK_THROWS_AS(static_cast<void>(fit.location_radius(level)), std::invalid_argument);
  }
  // Covariance of the turns of a matrix Fisher fit: its diagonal and its largest eigenvalue, which is no less.
  const Rotation f = Column<double, 3>(6, 3, 1).asDiagonal() * some_rotation();
  const auto fisher = sheafnn::rotation::fit<MatrixFisher>(samples_of(MatrixFisher(f), 100, 0));
  const Rotation excess = fisher.largest_location_error * fisher.largest_location_error * Rotation::Identity() -
                          fisher.location_covariance;
  const double scale3 = std::pow(fisher.largest_location_error, 6);
  CHECK(std::abs(sheafnn::detail::pivoted_determinant<double, 3>(excess)) <= 64 * epsilon * scale3);
  for (int k = 0; k < 3; ++k) {
    CHECK(std::abs(std::sqrt(fisher.location_covariance(k, k)) - fisher.location_error(k)) <= epsilon);
    CHECK(excess(k, k) >= 0);
  }
}

TEST_CASE("probabilities of many angles of the matrix Fisher distribution are those of each") {
  // In any order, twice the same, close together, at both ends, and far beyond where the mass is.
  for (const Column<double, 3>& s : {Column<double, 3>(6, 3, -1), Column<double, 3>(900, 300, 200)}) {
    const MatrixFisher distribution(Rotation(s.asDiagonal()));
    const std::vector<double> angles = {2.5, 0.1, 0.1, 0, 0.05, 0.0500001, 0.4, 3.14159265358979};
    const std::vector<double> probabilities = sheafnn::rotation::angle_probabilities(distribution, angles);
    for (std::size_t i = 0; i < angles.size(); ++i) {
      CAPTURE(angles[i]);
      CHECK(std::abs(probabilities[i] - sheafnn::rotation::angle_cdf(distribution, angles[i])) <= 2e-12);
    }
  }
}

TEST_CASE("families in the order of AIC") {
  const Rotation f = Column<double, 3>(8, 3, 0).asDiagonal() * some_rotation();
  const Rotations samples = samples_of(MatrixFisher(f), 40, 0);
  const sheafnn::rotation::FitComparison table = sheafnn::rotation::compare_fits<3>(samples);
  REQUIRE(table.rows.size() == 6);
  CHECK(table.samples == 40);
  CHECK(table.rows.front().name == "matrix Fisher");
  CHECK(table.rows.back().name == "uniform");
  const double best = sheafnn::rotation::fit<MatrixFisher>(samples).log_likelihood * 40;
  CHECK(std::abs(table.rows.front().log_likelihood - best) <= 1e-9);
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const auto& row = table.rows[i];
    CAPTURE(row.name);
    CHECK(row.problem.empty());
    CHECK(row.aic == 2.0 * row.parameters - 2 * row.log_likelihood);
    if (i > 0) CHECK(row.aic >= table.rows[i - 1].aic);
    CHECK(row.parameters == (row.name == "uniform" ? 0 : row.name.ends_with("Cayley") || row.name == "isotropic Gaussian" ? 4 : 9));
    if (row.name == "uniform") {
      CHECK(row.log_likelihood == 0);
      CHECK(row.p_value <= 0.01);
    }
    if (row.name == "matrix Fisher") CHECK(row.p_value >= 0.01);
  }
  const std::string text = sheafnn::rotation::to_string(table);
  CHECK(text.starts_with("family "));
  CHECK(text.find("\nmatrix Fisher ") < text.find("\nuniform "));
}

TEST_CASE("families that contain each other") {
  const Rotations samples = samples_of(Cayley(some_rotation(), 0.7), 25, 1);
  const sheafnn::rotation::FitComparison table = sheafnn::rotation::compare_fits<3>(samples);
  CHECK(table.rows.front().name == "Cayley");
  double cayley = 0, gaussian = 0;
  for (const auto& row : table.rows) {
    if (row.name == "Cayley") cayley = row.log_likelihood;
    if (row.name == "angular central Gaussian") {
      gaussian = row.log_likelihood;
      CHECK(row.p_value >= 0.01);
    }
  }
  CHECK(gaussian >= cayley);  // C_3 is one of them
  // The uniform angle behind a quaternion of C_3(I, κ) is that behind the rotation's angle.
  const Gaussian quaternions = sheafnn::rotation::cayley_quaternions(0.4);
  const Cayley centred(Rotation::Identity(), 0.4);
  for (const Rotation& r : {samples[0], samples[1], samples[2]}) {
    const double angle = sheafnn::rotation::rotation_angle<double, 3>(r);
    CHECK(std::abs(sheafnn::detail::uniform_angle_probability(quaternions,
                                                              sheafnn::rotation::rotation_quaternion<double>(r)) -
                   sheafnn::rotation::angle_cdf(centred, angle)) <= 1e-14);
  }
}

TEST_CASE("families without a fit are named with the reason, and samples are checked first") {
  Rotations same(5, some_rotation());
  const sheafnn::rotation::FitComparison table = sheafnn::rotation::compare_fits<3>(same);
  CHECK(table.rows.front().name == "uniform");
  for (std::size_t i = 1; i < 6; ++i) CHECK(table.rows[i].problem.starts_with("fit: samples"));
  CHECK(sheafnn::rotation::to_string(table).find("fit: samples: a set of (nearly) equal rotations") !=
        std::string::npos);
  same[3](1, 1) += 1e-4;
  CHECK_THROWS_WITH_AS(static_cast<void>(sheafnn::rotation::compare_fits<3>(same)),
                       doctest::Contains("compare_fits: samples[3]"), std::invalid_argument);
  CHECK_NOTHROW(static_cast<void>(sheafnn::rotation::compare_fits<3>(same, {.tolerance = 1e-3})));
  CHECK_THROWS_AS(static_cast<void>(sheafnn::rotation::compare_fits<3>(Rotations())), std::invalid_argument);
}

}  // namespace test_fit_comparison
