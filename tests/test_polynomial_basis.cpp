/// \file
/// Polynomial bases against closed forms, coefficients and their derivatives, refused options.
#include <doctest/doctest.h>

#include <cmath>
#include <numbers>
#include <stdexcept>
#include <string>
#include <vector>

#include "sheafnn/layers/polynomial_basis.hpp"
#include "worst.hpp"

namespace test_polynomial_basis {
namespace {

using namespace sheafnn;
using namespace sheafnn::layers;
using namespace sheafnn::math;
using namespace sheafnn::rotation;

constexpr Index most = 20;
const std::vector<double> points = {-0.99, -0.7, -0.31, 0.02, 0.45, 0.83, 0.999};

/// Largest error of P_0 … P_20 at all points, relative to the larger of 1 and the value.
template <class Exact>
double error_of(const PolynomialOptions& options, const Exact& exact) {
  double worst = 0;
  for (Index k = 0; k <= most; ++k) {
    for (const double x : points) {
      const double value = exact(static_cast<double>(k), x);
      worst =
          test::worse(worst, std::abs(basis_polynomial(options, k, x) - value) / std::max(1.0, std::abs(value)));
    }
  }
  return worst;
}
PolynomialOptions of(PolynomialBasis basis) { return {.basis = basis}; }

using Real = long double;  // the sums below cancel
/// For whole m ≥ 0.
Real binomial(Real a, Real m) {
  Real r = 1;
  for (Real j = 1; j <= m; ++j) r *= (a - m + j) / j;
  return r;
}
/// Σ_s binom(n+α, n−s) binom(n+β, s) ((x−1)/2)^s ((x+1)/2)^{n−s}.
double jacobi(Real n, Real alpha, Real beta, Real x) {
  Real sum = 0;
  for (Real s = 0; s <= n; ++s) {
    sum += binomial(n + alpha, n - s) * binomial(n + beta, s) * std::pow((x - 1) / 2, s) *
           std::pow((x + 1) / 2, n - s);
  }
  return static_cast<double>(sum);
}

/// A filter of each basis, of degree K.
std::vector<PolynomialOptions> filters(Index degree) {
  std::vector<PolynomialOptions> r;
  for (std::size_t i = 1; i < names_of(PolynomialBasis()).size(); ++i) {
    PolynomialOptions options{.basis = static_cast<PolynomialBasis>(i), .degree = degree};
    options.jacobi_alpha = 0.5;
    options.jacobi_beta = -0.3;
    options.gegenbauer_lambda = 0.7;
    r.push_back(options);
    options.coefficients = PolynomialCoefficients::free;
    r.push_back(options);
    options.published = true;
    if (i == 5 || i == 8) r.push_back(options);
  }
  return r;
}
std::vector<double> some_theta(Index degree) {
  std::vector<double> r;
  for (Index k = 0; k <= degree; ++k) r.push_back(std::sin(1.0 + 2.3 * static_cast<double>(k)));
  return r;
}

}  // namespace

TEST_CASE("polynomial bases: Chebyshev polynomials of the four kinds") {
  using std::acos, std::cos, std::sin;
  CHECK(error_of(of(PolynomialBasis::chebyshev), [](double k, double x) { return cos(k * acos(x)); }) <= 2e-14);
  CHECK(error_of(of(PolynomialBasis::chebyshev_interpolation),
                 [](double k, double x) { return cos(k * acos(x)); }) <= 2e-14);
  CHECK(error_of(of(PolynomialBasis::chebyshev_second),
                 [](double k, double x) { return sin((k + 1) * acos(x)) / sin(acos(x)); }) <= 2e-13);
  CHECK(error_of(of(PolynomialBasis::chebyshev_third),
                 [](double k, double x) { return cos((k + 0.5) * acos(x)) / cos(acos(x) / 2); }) <= 2e-13);
  CHECK(error_of(of(PolynomialBasis::chebyshev_fourth),
                 [](double k, double x) { return sin((k + 0.5) * acos(x)) / sin(acos(x) / 2); }) <= 2e-13);
}

TEST_CASE("polynomial bases: Legendre, Gegenbauer, Jacobi") {
  constexpr double bound = 2e-13;
  const auto legendre = [](double k, double x) { return jacobi(k, 0, 0, x); };
  CHECK(error_of(of(PolynomialBasis::legendre), legendre) <= bound);
  PolynomialOptions gegenbauer = of(PolynomialBasis::gegenbauer);
  for (const double lambda : {0.2, 0.5, 1.0, 2.5}) {
    CAPTURE(lambda);
    gegenbauer.gegenbauer_lambda = lambda;
    // C_n^λ = (2λ)_n / (λ + ½)_n P_n^(λ−½, λ−½).
    const double a = lambda - 0.5;
    CHECK(error_of(gegenbauer, [&](double n, double x) {
            const double factor = std::exp(std::lgamma(2 * lambda + n) - std::lgamma(2 * lambda) -
                                           std::lgamma(lambda + 0.5 + n) + std::lgamma(lambda + 0.5));
            return factor * jacobi(n, a, a, x);
          }) <= bound);
  }
  CHECK(basis_polynomial({.basis = PolynomialBasis::gegenbauer, .gegenbauer_lambda = 1.5}, 3, 0.5) ==
        doctest::Approx(-1.5625).epsilon(1e-15));  // ½ (35 x³ − 15 x)
  PolynomialOptions options = of(PolynomialBasis::jacobi);
  for (const auto& [alpha, beta] : {std::pair{0.0, 0.0}, {1.0, -0.5}, {-0.5, 0.5}, {0.3, 2.0}, {-0.9, -0.1}}) {
    CAPTURE(alpha);
    options.jacobi_alpha = alpha;
    options.jacobi_beta = beta;
    CHECK(error_of(options, [alpha = alpha, beta = beta](double n, double x) {
            return jacobi(n, alpha, beta, x);
          }) <= bound);
  }
}

TEST_CASE("polynomial bases: the published Jacobi recurrence is another one") {
  PolynomialOptions options = of(PolynomialBasis::jacobi);
  options.published = true;
  CHECK(basis_polynomial(options, 1, 0.4) == doctest::Approx(0.4));
  double worst = 0;
  for (double x = -1; x <= 1; x += 0.01) {
    worst = std::max(worst, std::abs(basis_polynomial(options, 2, x) - (1.5 * x * x - 0.5)));
  }
  CHECK(worst == doctest::Approx(0.667).epsilon(0.01));
}

TEST_CASE("polynomials: p(x) is the sum of its terms, and bounded where all terms are") {
  for (const Index degree : {Index{0}, Index{1}, Index{2}, Index{7}, max_polynomial_degree}) {
    CAPTURE(degree);
    for (const PolynomialOptions& options : filters(degree)) {
      CAPTURE(to_string(options.basis));
      const std::vector<double> theta = some_theta(degree);
      const Polynomial p(options, std::span<const double>(theta));
      double all = 0;
      for (Index k = 0; k <= degree; ++k) all += p.coefficient(k);
      const bool interpolation = options.basis == PolynomialBasis::chebyshev_interpolation;
      if (!interpolation && options.coefficients == PolynomialCoefficients::convex) {
        CHECK(all == doctest::Approx(1).epsilon(1e-14));
      }
      for (const double x : points) {
        double sum = 0, size = 1;
        for (Index k = 0; k <= degree; ++k) {
          const double term = p.coefficient(k) * basis_polynomial(options, k, x);
          sum += term;
          size += std::abs(term);
        }
        CHECK(std::abs(p(x) - sum) <= 1e-13 * size);
        if (options.basis == PolynomialBasis::legendre && options.coefficients == PolynomialCoefficients::convex) {
          CHECK(std::abs(p(x)) <= 1);
        }
      }
      if (!interpolation || degree > 20) continue;
      double mean = 0;
      for (const double value : theta) mean += value / static_cast<double>(degree + 1);
      for (Index j = 0; j <= degree; ++j) {
        const double value = theta[static_cast<std::size_t>(j)] + (options.published ? mean : 0);
        CHECK(p(interpolation_node(degree, j)) == doctest::Approx(value).epsilon(1e-13));
      }
    }
  }
}

TEST_CASE("polynomials: what a filter starts with") {
  for (const PolynomialOptions& options : filters(5)) {
    CAPTURE(to_string(options.basis));
    std::vector<double> theta;
    for (Index j = 0; j <= 5; ++j) theta.push_back(initial_polynomial_parameter(options, j));
    const Polynomial p(options, std::span<const double>(theta));
    if (options.basis != PolynomialBasis::chebyshev_interpolation) {
      for (Index k = 0; k <= 5; ++k) CHECK(p.coefficient(k) == doctest::Approx(1.0 / 6).epsilon(1e-15));
      continue;
    }
    for (const double x : points) {
      CHECK(p(x) == doctest::Approx(options.published ? 0 : (x + 1) / 2).epsilon(1e-14));
    }
  }
}

TEST_CASE("polynomials: derivatives of the coefficients") {
  for (const Index degree : {Index{0}, Index{3}, Index{9}}) {
    for (const PolynomialOptions& options : filters(degree)) {
      CAPTURE(to_string(options.basis));
      std::vector<double> theta = some_theta(degree), bar(theta.size(), 0.25), w_bar;
      for (std::size_t k = 0; k < theta.size(); ++k) w_bar.push_back(std::cos(1.7 * static_cast<double>(k)));
      const auto value = [&] {
        const Polynomial p(options, std::span<const double>(theta));
        double sum = 0;
        for (std::size_t k = 0; k < theta.size(); ++k) sum += w_bar[k] * p.coefficient(static_cast<Index>(k));
        return sum;
      };
      Polynomial(options, std::span<const double>(theta)).backward(std::span<const double>(w_bar), std::span(bar));
      for (std::size_t j = 0; j < theta.size(); ++j) {
        const double saved = theta[j], h = 6e-6;
        theta[j] = saved + h;
        const double high = value();
        theta[j] = saved - h;
        const double difference = (high - value()) / (2 * h);
        theta[j] = saved;
        CHECK(std::abs(bar[j] - 0.25 - difference) <= 1e-9);
      }
    }
  }
}

TEST_CASE("polynomials: refused options") {
  const auto message = [](const PolynomialOptions& options) -> std::string {
    try {
      validate(options);
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "accepted";
  };
  CHECK(message({.degree = 65}) == "filter.degree: 65 is not allowed; must be between 0 and 64");
  CHECK(message({.degree = -1}) == "filter.degree: -1 is not allowed; must be between 0 and 64");
  CHECK(message({.jacobi_alpha = -1}) == "filter.jacobi_alpha: -1 is not allowed; must be finite and above -1");
  CHECK(message({.jacobi_beta = std::nan("")}) ==
        "filter.jacobi_beta: nan is not allowed; must be finite and above -1");
  CHECK(message({.gegenbauer_lambda = 0}) ==
        "filter.gegenbauer_lambda: 0 is not allowed; must be finite and above 0");
  CHECK(message({.largest_eigenvalue = -2}) ==
        "filter.largest_eigenvalue: -2 is not allowed; must be finite and above 0");
  CHECK(message({.basis = PolynomialBasis::legendre, .published = true}) ==
        "filter.published: true is not allowed; only jacobi and chebyshev-interpolation have a published form of "
        "their own");
  const std::vector<double> theta(3);
  CHECK_THROWS_AS(Polynomial({.basis = PolynomialBasis::legendre}, std::span<const double>(theta)),
                  std::invalid_argument);
  const std::vector<double> four(4);
  CHECK_THROWS_WITH_AS(Polynomial({}, std::span<const double>(four)),
                       "filter.basis: none is not allowed; a polynomial needs a basis", std::invalid_argument);
}

}  // namespace test_polynomial_basis
