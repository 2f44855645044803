/// \file
/// Polynomials p(x) = Σ_{k=0}^{K} w_k P_k(x) in a basis with a three-term recurrence,
///
///     P_0 = 1,   P_1 = A_0 x + B_0,   P_{k+1} = (A_k x + B_k) P_k − C_k P_{k−1},
///
/// their coefficients w as functions of the parameters that a model learns, and the derivatives of these functions.
/// Source: math: "Polynomial filters" (3.22).
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <span>
#include <utility>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/core/names.hpp"
#include "sheafnn/core/option.hpp"
#include "sheafnn/core/views.hpp"

namespace sheafnn::layers {

/// The basis P_0 … P_K of a polynomial filter.
enum class PolynomialBasis {
  none,                     ///< no filter: Z = ΔY
  chebyshev,                ///< T_k(cos t) = cos kt
  chebyshev_second,         ///< U_k(cos t) = sin (k+1)t / sin t
  chebyshev_third,          ///< V_k(cos t) = cos (k+½)t / cos ½t
  chebyshev_fourth,         ///< W_k(cos t) = sin (k+½)t / sin ½t
  chebyshev_interpolation,  ///< T_k, with coefficients from values of p at the zeros of T_{K+1}
  legendre,
  gegenbauer,  ///< C_k^λ
  jacobi       ///< P_k^(α, β)
};
/// Its names, in the order of the enumeration.
[[nodiscard]] constexpr auto names_of(PolynomialBasis) {
  return std::array{"none", "chebyshev", "chebyshev-second", "chebyshev-third", "chebyshev-fourth",
                    "chebyshev-interpolation", "legendre", "gegenbauer", "jacobi"};
}

/// How the coefficients w come from the K + 1 values θ that are learned; without effect on interpolation.
enum class PolynomialCoefficients {
  convex,  ///< w = softmax(θ)
  free     ///< w = θ
};
/// Its names, in the order of the enumeration.
[[nodiscard]] constexpr auto names_of(PolynomialCoefficients) { return std::array{"convex", "free"}; }

/// The high-pass term that is added to a filter, with a learned factor α.
enum class HighPassSkip {
  off,
  input,  ///< α (X − ΔY/λ_max)
  mixed   ///< α (Y − ΔY/λ_max)
};
/// Its names, in the order of the enumeration.
[[nodiscard]] constexpr auto names_of(HighPassSkip) { return std::array{"off", "input", "mixed"}; }

/// Largest degree of a filter.
inline constexpr Index max_polynomial_degree = 64;

/// A polynomial filter p(L̂), L̂ = (2/λ_max) Δ − I, in place of Δ: Z = p(L̂) Y + α (X − ΔY/λ_max).
struct PolynomialOptions {
  PolynomialBasis basis = PolynomialBasis::none;
  Index degree = 3;  ///< K
  PolynomialCoefficients coefficients = PolynomialCoefficients::convex;
  HighPassSkip skip = HighPassSkip::input;
  /// What the published code computes where that is something else: the recurrence of `jacobi`, the coefficients of
  /// `chebyshev_interpolation`. For comparisons with its results only; refused with other bases.
  bool published = false;
  double jacobi_alpha = 0, jacobi_beta = 0;  ///< α, β
  double gegenbauer_lambda = 1;              ///< λ
  /// A bound of the eigenvalues of Δ, a constant. 2 holds for the augmented and the block
  /// normalisation, whatever the maps are. Without normalisation, or by degrees with maps that stretch, it has to be set:
  /// beyond [−1, 1] polynomials of high degree grow without bounds.
  double largest_eigenvalue = 2;

  [[nodiscard]] bool active() const noexcept { return basis != PolynomialBasis::none; }
  friend bool operator==(const PolynomialOptions&, const PolynomialOptions&) = default;
};

/// Declares the options: see core/option.hpp. Takes any options.
template <class Visit, OptionsOf<PolynomialOptions>... Options>
void for_each_option(const Visit& visit, Options&... options) {
  using Range = OptionRange;
  visit({.key = "filter",
         .summary = "diffuse with a polynomial of the Laplacian in this basis",
         .field = "filter.basis",
         .since = "0.1"},
        options.basis...);
  visit({.key = "filter_degree",
         .summary = "degree of the polynomial filter",
         .range = Range::between(0, max_polynomial_degree),
         .flag = "--degree",
         .field = "filter.degree",
         .since = "0.1"},
        options.degree...);
  visit({.key = "filter_coefficients",
         .summary = "coefficients of the polynomial filter: positive with sum 1 (convex), or any numbers (free)",
         .flag = "--coefficients",
         .field = "filter.coefficients",
         .since = "0.1"},
        options.coefficients...);
  visit({.key = "filter_skip",
         .summary = "what the filter's high-pass term reads: nothing, the layer's input, or the mixed features",
         .flag = "--skip",
         .field = "filter.skip",
         .since = "0.1"},
        options.skip...);
  visit({.key = "filter_published",
         .summary = "compute the filters jacobi and chebyshev-interpolation as the published code does",
         .flag = "--published-filter",
         .field = "filter.published",
         .since = "0.1"},
        options.published...);
  visit({.key = "filter_jacobi_alpha",
         .summary = "alpha of the filter jacobi",
         .range = Range::above(-1),
         .flag = "--jacobi-alpha",
         .field = "filter.jacobi_alpha",
         .since = "0.1"},
        options.jacobi_alpha...);
  visit({.key = "filter_jacobi_beta",
         .summary = "beta of the filter jacobi",
         .range = Range::above(-1),
         .flag = "--jacobi-beta",
         .field = "filter.jacobi_beta",
         .since = "0.1"},
        options.jacobi_beta...);
  visit({.key = "filter_gegenbauer_lambda",
         .summary = "lambda of the filter gegenbauer",
         .range = Range::above(0),
         .flag = "--gegenbauer-lambda",
         .field = "filter.gegenbauer_lambda",
         .since = "0.1"},
        options.gegenbauer_lambda...);
  visit({.key = "filter_largest_eigenvalue",
         .summary = "with a filter: upper bound of the Laplacian's eigenvalues (2 for the normalisations "
                    "augmented and block)",
         .range = Range::above(0),
         .flag = "--largest-eigenvalue",
         .field = "filter.largest_eigenvalue",
         .since = "0.1"},
        options.largest_eigenvalue...);
}

/// \throws std::invalid_argument  naming the option, its value and its limit
inline void validate(const PolynomialOptions& options) {
  check_ranges(options);
  require(!options.published || options.basis == PolynomialBasis::jacobi ||
              options.basis == PolynomialBasis::chebyshev_interpolation,
          "filter.published", "true",
          "only jacobi and chebyshev-interpolation have a published form of their own");
}

/// A_k, B_k, C_k of P_{k+1} = (A_k x + B_k) P_k − C_k P_{k−1}.
struct RecurrenceStep {
  double slope = 0;     ///< A_k
  double constant = 0;  ///< B_k
  double before = 0;    ///< C_k, 0 for k = 0
};

}  // namespace sheafnn::layers

namespace sheafnn::detail {

[[nodiscard]] inline RecurrenceStep jacobi_step(double alpha, double beta, Index k) {
  const double sum = alpha + beta;
  if (k == 0) return {(sum + 2) / 2, (alpha - beta) / 2, 0};
  const double t = 2 * static_cast<double>(k) + sum;
  const double r = 2 * static_cast<double>(k + 1) * (static_cast<double>(k + 1) + sum);
  return {(t + 1) * (t + 2) / r, (alpha * alpha - beta * beta) * (t + 1) / (r * t),
          2 * (static_cast<double>(k) + alpha) * (static_cast<double>(k) + beta) * (t + 2) / (r * t)};
}

/// The published code's: the coefficients that expand x P_k in P_{k+1}, P_k and P_{k−1} in place of A, B and C, which
/// gives other polynomials. Source: math: "Polynomial filters".
[[nodiscard]] inline RecurrenceStep published_jacobi_step(double alpha, double beta, Index k) {
  constexpr double tiny = 1e-8;
  const double sum = alpha + beta;
  if (k == 0) return {(sum + 2) / 2, (alpha - beta) / (sum + 2), 0};
  const double t = 2 * static_cast<double>(k) + sum;
  const double r = 2 * static_cast<double>(k + 1) * (static_cast<double>(k + 1) + sum);
  return {r / ((t + 1) * (t + 2) + tiny), (beta * beta - alpha * alpha) / (t * (t + 2) + tiny),
          2 * (static_cast<double>(k) + alpha) * (static_cast<double>(k) + beta) / (t * (t + 1) + tiny)};
}

}  // namespace sheafnn::detail

namespace sheafnn::layers {

/// Unchecked: that validate(options) does not throw and that there is a basis. \param k  0, 1, …
[[nodiscard]] inline RecurrenceStep recurrence_step(const PolynomialOptions& options, Index k) {
  const double n = static_cast<double>(k), lambda = options.gegenbauer_lambda;
  const double before = k > 0 ? 1 : 0;
  switch (options.basis) {
    case PolynomialBasis::none:
    case PolynomialBasis::chebyshev:
    case PolynomialBasis::chebyshev_interpolation:
      return {k > 0 ? 2.0 : 1.0, 0, before};
    case PolynomialBasis::chebyshev_second:
      return {2, 0, before};
    case PolynomialBasis::chebyshev_third:
      return {2, k > 0 ? 0.0 : -1.0, before};
    case PolynomialBasis::chebyshev_fourth:
      return {2, k > 0 ? 0.0 : 1.0, before};
    case PolynomialBasis::legendre:
      return {(2 * n + 1) / (n + 1), 0, n / (n + 1)};
    case PolynomialBasis::gegenbauer:
      return {2 * (n + lambda) / (n + 1), 0, k > 0 ? (n + 2 * lambda - 1) / (n + 1) : 0};
    case PolynomialBasis::jacobi:
      break;
  }
  return options.published ? detail::published_jacobi_step(options.jacobi_alpha, options.jacobi_beta, k)
                           : detail::jacobi_step(options.jacobi_alpha, options.jacobi_beta, k);
}

/// P_k(x). Unchecked: as recurrence_step().
[[nodiscard]] inline double basis_polynomial(const PolynomialOptions& options, Index k, double x) {
  double before = 0, value = 1;
  for (Index j = 0; j < k; ++j) {
    const RecurrenceStep step = recurrence_step(options, j);
    before = std::exchange(value, (step.slope * x + step.constant) * value - step.before * before);
  }
  return value;
}

/// Node j of the interpolation, cos((j + ½)π/(K + 1)), j = 0 … K. Unchecked: j, and K ≥ 0.
[[nodiscard]] inline double interpolation_node(Index degree, Index j) {
  return std::cos((static_cast<double>(j) + 0.5) * std::numbers::pi / static_cast<double>(degree + 1));
}

/// p = Σ w_k P_k: the recurrence and the coefficients of a filter. Holds all of it itself, so that making one in every
/// pass costs no allocation. Unchecked: indices k of coefficients and steps.
class Polynomial {
 public:
  /// \param theta  K + 1 values: logits, coefficients or values at the nodes of the interpolation
  /// \throws std::invalid_argument  a wrong number of coefficients, options out of range, or no basis
  template <class S>
  Polynomial(const PolynomialOptions& options, std::span<const S> theta) : options_(options) {
    validate(options);
    require(options.active(), "filter.basis", to_string(options.basis), "a polynomial needs a basis");
    if (static_cast<Index>(theta.size()) != degree() + 1) {
      throw_invalid_argument("theta", theta.size(), detail::concat("there must be ", degree() + 1, " numbers"));
    }
    for (Index k = 0; k < degree(); ++k) step_[index(k)] = recurrence_step(options, k);
    std::copy(theta.begin(), theta.end(), coefficient_.begin());
    if (options.basis == PolynomialBasis::chebyshev_interpolation) {
      interpolate();
    } else if (options.coefficients == PolynomialCoefficients::convex) {
      soften();
    }
  }

  [[nodiscard]] const PolynomialOptions& options() const noexcept { return options_; }
  /// K.
  [[nodiscard]] Index degree() const noexcept { return options_.degree; }
  /// w_k, k = 0 … K.
  [[nodiscard]] double coefficient(Index k) const noexcept { return coefficient_[index(k)]; }
  /// A_k, B_k, C_k, k = 0 … K − 1.
  [[nodiscard]] const RecurrenceStep& step(Index k) const noexcept { return step_[index(k)]; }

  /// p(x), by Clenshaw's recurrence b_k = w_k + (A_k x + B_k) b_{k+1} − C_{k+1} b_{k+2}.
  [[nodiscard]] double operator()(double x) const noexcept {
    double value = coefficient(degree()), after = 0;
    for (Index k = degree(); k-- > 0;) {
      const double last = k + 1 < degree() ? step(k + 1).before : 0;
      after = std::exchange(value, coefficient(k) + (step(k).slope * x + step(k).constant) * value - last * after);
    }
    return value;
  }

  /// Adds to θ̄ what comes from w̄.
  ///
  /// \param coefficient_bar, theta_bar  K + 1 values each
  /// \throws std::invalid_argument  of another size
  template <class S>
  void backward(std::span<const double> coefficient_bar, std::span<S> theta_bar) const {
    const Index count = degree() + 1;
    require_size(coefficient_bar, count, "coefficient_bar");
    require_size(theta_bar, count, "theta_bar");
    if (options_.basis == PolynomialBasis::chebyshev_interpolation) {
      for (Index j = 0; j < count; ++j) {
        double sum = 0;
        for (Index k = 0; k < count; ++k) sum += coefficient_bar[index(k)] * interpolation_weight(k, j);
        theta_bar[index(j)] += static_cast<S>(sum);
      }
    } else if (options_.coefficients == PolynomialCoefficients::convex) {
      double mean = 0;
      for (Index k = 0; k < count; ++k) mean += coefficient(k) * coefficient_bar[index(k)];
      for (Index k = 0; k < count; ++k) {
        theta_bar[index(k)] += static_cast<S>(coefficient(k) * (coefficient_bar[index(k)] - mean));
      }
    } else {
      for (Index k = 0; k < count; ++k) theta_bar[index(k)] += static_cast<S>(coefficient_bar[index(k)]);
    }
  }

 private:
  static constexpr std::size_t index(Index k) { return static_cast<std::size_t>(k); }
  using Numbers = std::array<double, static_cast<std::size_t>(max_polynomial_degree + 1)>;

  /// ∂w_k/∂γ_j = (2 − δ_k0)/(K + 1) T_k(x_j); published: 2/(K + 1) for all k.
  [[nodiscard]] double interpolation_weight(Index k, Index j) const {
    const double count = static_cast<double>(degree() + 1);
    const double angle = (static_cast<double>(j) + 0.5) * std::numbers::pi / count;
    return (k == 0 && !options_.published ? 1 : 2) / count * std::cos(static_cast<double>(k) * angle);
  }
  void interpolate() {
    const Numbers value = coefficient_;
    for (Index k = 0; k <= degree(); ++k) {
      double sum = 0;
      for (Index j = 0; j <= degree(); ++j) sum += value[index(j)] * interpolation_weight(k, j);
      coefficient_[index(k)] = sum;
    }
  }
  void soften() {
    double* const begin = coefficient_.data();
    double* const end = begin + degree() + 1;
    const double largest = *std::max_element(begin, end);
    double sum = 0;
    for (double* w = begin; w != end; ++w) {
      *w = std::exp(*w - largest);
      sum += *w;
    }
    for (double* w = begin; w != end; ++w) *w /= sum;
  }

  PolynomialOptions options_;
  std::array<RecurrenceStep, static_cast<std::size_t>(max_polynomial_degree)> step_{};
  Numbers coefficient_{};
};

/// The θ that a filter starts with: w_k = 1/(K + 1), and for interpolation p(x) = ½(x + 1), which is Δ/λ_max (0 at all
/// nodes where `published`).
///
/// Unchecked: that validate(options) does not throw. \param j  0 … K
[[nodiscard]] inline double initial_polynomial_parameter(const PolynomialOptions& options, Index j) {
  if (options.basis == PolynomialBasis::chebyshev_interpolation) {
    return options.published ? 0 : (interpolation_node(options.degree, j) + 1) / 2;
  }
  return options.coefficients == PolynomialCoefficients::convex ? 0 : 1 / static_cast<double>(options.degree + 1);
}

}  // namespace sheafnn::layers

namespace sheafnn {

using layers::HighPassSkip;
using layers::PolynomialBasis;
using layers::PolynomialCoefficients;
using layers::PolynomialOptions;

}  // namespace sheafnn
