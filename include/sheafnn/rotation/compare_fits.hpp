/// \file
/// All families of one dimension fitted to the same rotations, the best first: compare_fits<3>(samples).
///
/// AIC = 2 · parameters − 2 Σ log f at the maximum of the likelihood: smaller is better, and a difference below 2 says
/// little. Densities are with respect to Haar measure, so that all log-likelihoods are comparable; the uniform
/// distribution has 0. p-values come from goodness_of_fit and are too large because the fit has seen the samples. A small
/// p-value rejects a family, a large p-value proves nothing.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iomanip>
#include <limits>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "sheafnn/rotation/angular_central_gaussian_fit.hpp"
#include "sheafnn/rotation/cayley_fit.hpp"
#include "sheafnn/rotation/goodness_of_fit.hpp"
#include "sheafnn/rotation/haar_distribution.hpp"
#include "sheafnn/rotation/isotropic_gaussian_angle.hpp"
#include "sheafnn/rotation/isotropic_gaussian_fit.hpp"
#include "sheafnn/rotation/leon_angle.hpp"
#include "sheafnn/rotation/leon_fit.hpp"
#include "sheafnn/rotation/matrix_fisher_angle.hpp"
#include "sheafnn/rotation/matrix_fisher_fit.hpp"
#include "sheafnn/rotation/quaternion.hpp"
#include "sheafnn/rotation/rotation_angle.hpp"

namespace sheafnn::rotation {

/// One family in the table.
struct FitComparisonRow {
  std::string_view name;
  int parameters = 0;
  double log_likelihood = std::numeric_limits<double>::quiet_NaN();  ///< Σ log f over the samples
  double aic = std::numeric_limits<double>::infinity();
  double p_value = std::numeric_limits<double>::quiet_NaN();  ///< NaN for N ≥ 4
  std::string problem;                                        ///< why there is no fit; empty where there is one
};

/// Rows in the order of AIC, families without a fit last.
struct FitComparison {
  std::vector<FitComparisonRow> rows;
  std::size_t samples = 0;
};

}  // namespace sheafnn::rotation

namespace sheafnn::detail {

/// Distribution function of the angle of the uniform rotation that L⁻¹q/|L⁻¹q| stands for, q distributed by Λ = LLᵀ.
[[nodiscard]] inline double uniform_angle_probability(const AngularCentralGaussian<4, double>& distribution,
                                                      const Column<double, 4>& q) {
  Column<double, 4> z = q;
  solve_lower<4, double, 1>(distribution.factor(), z);
  return haar_angle_cdf<3>(2 * std::atan2(std::hypot(z(1), z(2), z(3)), std::abs(z(0))));
}

template <class Samples, class Body>
void add_comparison(FitComparison& table, std::string_view name, int parameters, const Samples& samples,
                    const Body& fit_and_test) {
  FitComparisonRow row;
  row.name = name;
  row.parameters = parameters;
  try {
    // Average log-likelihood and p-value.
    const std::pair<double, double> result = fit_and_test(samples);
    row.log_likelihood = result.first * static_cast<double>(samples.size());
    row.aic = 2.0 * parameters - 2 * row.log_likelihood;
    row.p_value = result.second;
  } catch (const std::invalid_argument& error) {  // no maximum, see fit
    row.problem = error.what();
  } catch (const std::runtime_error& error) {
    row.problem = error.what();
  }
  table.rows.push_back(std::move(row));
}

/// Fit and goodness of fit of a distribution on SO(N).
template <class D>
[[nodiscard]] std::pair<double, double> fitted_rotations(const std::vector<typename D::Matrix>& samples) {
  const auto result = fit<D>(samples);
  if constexpr (D::dimension <= 3) {
    return {result.log_likelihood, goodness_of_fit(result.distribution, samples).p_value};
  } else {
    return {result.log_likelihood, std::numeric_limits<double>::quiet_NaN()};
  }
}

}  // namespace sheafnn::detail

namespace sheafnn::rotation {

/// Fits the uniform, Cayley, León's Cayley and, for N = 2 and 3, the matrix Fisher distribution. For N = 3 also the
/// isotropic Gaussian distribution, and the angular central Gaussian distribution of quaternions, which contains the Cayley
/// distribution.
///
/// A family that has no fit to these samples (all equal, too few) is in the table with the reason.
///
/// \param samples  rotations of R^N; a std::vector converts
/// \param options  how far from orthogonal they may be
/// \throws std::invalid_argument  no sample, or a sample that is not a rotation
template <int N, class Scalar = double>
[[nodiscard]] FitComparison compare_fits(std::span<const std::type_identity_t<SquareMatrix<Scalar, N>>> samples,
                                         const std::type_identity_t<SampleOptions<Scalar>>& options = {}) {
  static_assert(N >= 2);
  require(!samples.empty(), "compare_fits: samples", "an empty list", "at least one is needed");
  const auto rotations = detail::checked_samples<N, Scalar>("compare_fits", samples, options);
  FitComparison table{.rows = {}, .samples = rotations.size()};
  detail::add_comparison(table, "uniform", 0, rotations, [](const auto& r) {
    if constexpr (N <= 3) {
      return std::pair(0.0, goodness_of_fit(HaarDistribution<N>(), r).p_value);
    } else {
      return std::pair(0.0, std::numeric_limits<double>::quiet_NaN());
    }
  });
  const auto add = [&]<class D>(std::string_view name, std::type_identity<D>) {
    detail::add_comparison(table, name, Fitting<D>::free_parameters, rotations, detail::fitted_rotations<D>);
  };
  add("Cayley", std::type_identity<CayleyDistribution<N>>());
  add("Leon's Cayley", std::type_identity<LeonCayleyDistribution<N>>());
  if constexpr (N <= 3) add("matrix Fisher", std::type_identity<MatrixFisherDistribution<N>>());
  if constexpr (N == 3) {
    add("isotropic Gaussian", std::type_identity<IsotropicGaussian<N>>());
    std::vector<Column<double, 4>> quaternions;
    for (const auto& r : rotations) quaternions.push_back(rotation_quaternion<double>(r));
    detail::add_comparison(table, "angular central Gaussian", Fitting<AngularCentralGaussian<4>>::free_parameters,
                           quaternions, [](const auto& q) {
                             const auto result = fit<AngularCentralGaussian<4>>(q);
                             std::vector<double> probabilities;
                             for (const auto& x : q) {
                               probabilities.push_back(detail::uniform_angle_probability(result.distribution, x));
                             }
                             return std::pair(result.log_likelihood, uniformity(std::move(probabilities)).p_value);
                           });
  }
  std::stable_sort(table.rows.begin(), table.rows.end(),
                   [](const FitComparisonRow& a, const FitComparisonRow& b) { return a.aic < b.aic; });
  return table;
}

/// The table as lines of text: family, parameters, log-likelihood, AIC, its difference to the best, p-value.
/// Takes any table.
[[nodiscard]] inline std::string to_string(const FitComparison& table) {
  std::ostringstream out;
  out.exceptions(std::ios::badbit);
  out << std::left << std::setw(26) << "family" << std::right << std::setw(10) << "parameters" << std::setw(16)
      << "log-likelihood" << std::setw(12) << "AIC" << std::setw(10) << "to best" << std::setw(9) << "p\n";
  out << std::fixed;
  for (const FitComparisonRow& row : table.rows) {
    out << std::left << std::setw(26) << row.name << std::right << std::setw(10) << row.parameters;
    if (!row.problem.empty()) {
      out << "  " << row.problem << '\n';
      continue;
    }
    out << std::setprecision(2) << std::setw(16) << row.log_likelihood << std::setw(12) << row.aic << std::setw(10)
        << row.aic - table.rows.front().aic << std::setprecision(3) << std::setw(8);
    if (std::isnan(row.p_value)) {
      out << "-";
    } else {
      out << row.p_value;
    }
    out << '\n';
  }
  return out.str();
}

}  // namespace sheafnn::rotation
