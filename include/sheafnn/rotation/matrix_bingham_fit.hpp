/// \file
/// Maximum likelihood for the matrix Bingham distribution on SO(2) and SO(3).
///
/// N = 2: the squares of the samples have a matrix Fisher distribution, of twice the angle, so that its fit gives this one. N = 3:
/// Newton's method (matrix_bingham_likelihood.hpp) from moments, and from the maximum with two axes exchanged. Only A ⊗ B counts:
/// estimates have |A| = |B|. Source: math, "Matrix Bingham distribution" (2.56) to (2.58).
#pragma once

#include "sheafnn/core/eigen.hpp"

#include <Eigen/SVD>
#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "sheafnn/core/errors.hpp"
#include "sheafnn/core/small_matrix.hpp"
#include "sheafnn/rotation/fit.hpp"
#include "sheafnn/rotation/matrix_bingham_distribution.hpp"
#include "sheafnn/rotation/matrix_bingham_likelihood.hpp"
#include "sheafnn/rotation/matrix_fisher_fit.hpp"
#include "sheafnn/rotation/sample_weights.hpp"

namespace sheafnn::rotation {

/// A matrix Bingham distribution fitted to rotations.
template <int N, class Scalar>
struct MatrixBinghamFit {
  /// At the estimates, with trace 0, |A| = |B| and a₁ − a₂ ≥ a_{N−1} − a_N. For N = 2 A is a multiple of diag(1, −1).
  MatrixBinghamDistribution<N, Scalar> distribution;
  double log_likelihood;     ///< Σ w log f/Σ w at the estimates
  double effective_samples;  ///< (Σw)²/Σw²
  int iterations;
};

template <int N, class Scalar>
  requires(N <= 3)
struct Fitting<MatrixBinghamDistribution<N, Scalar>> {
  using Distribution = MatrixBinghamDistribution<N, Scalar>;
  using Sample = SquareMatrix<Scalar, N>;
  using Result = MatrixBinghamFit<N, Scalar>;
  static constexpr int free_parameters = N == 2 ? 2 : 9;  // A ⊗ B; N = 2: c and the location up to its sign

  /// Unchecked: fit() checks samples, weights and options.
  static Result maximum_likelihood(std::span<const Sample> given, std::span<const Scalar> given_weights,
                                   const SampleOptions<Scalar>& options) {
    // Four rotations of R³ have a likelihood without bound: a direction u that all take to the plane orthogonal to a v.
    const detail::SampleWeights weights("fit", given.size(), given_weights, N == 2 ? 2 : 5);
    const auto samples = detail::checked_samples<N, Scalar>("fit", given, options);
    if constexpr (N == 2) {
      return of_squares(samples, weights);
    } else {
      return newton(samples, weights);
    }
  }

 private:
  using Matrix = SquareMatrix<double, N>;
  static constexpr int free_of_one = N * (N + 1) / 2 - 1;  ///< entries of A, symmetric with trace 0

  [[noreturn]] static void refuse_infinite() {
    throw_invalid_argument("fit: samples", "a set without scatter in some direction",
                           "A and B have no finite estimate");
  }
  static Distribution at(const Matrix& a, const Matrix& b) {
    return {Sample(a.template cast<Scalar>()), Sample(b.template cast<Scalar>())};
  }

  /// tr(B PᵀAP) = 2s cos(2θ − μ) with A = √s diag(1, −1) and B = R(−μ/2) A R(−μ/2)ᵀ. The location of P² is R(μ).
  static Result of_squares(const std::vector<Matrix>& samples, const detail::SampleWeights& weights) {
    std::vector<Matrix> squares;
    for (const Matrix& p : samples) squares.push_back(multiply(p, p));
    const auto fit = rotation::fit<MatrixFisherDistribution<2, double>>(squares, std::span(weights.weight));
    const double s = fit.concentration();
    const Matrix located = fit.distribution.location();
    const double half = 0.5 * std::atan2(located(1, 0), located(0, 0));
    const Matrix a = std::sqrt(s) * Matrix(Column<double, 2>(1, -1).asDiagonal());
    Matrix turn;
    turn << std::cos(half), std::sin(half), -std::sin(half), std::cos(half);
    return {at(a, turn * a * turn.transpose()), fit.log_likelihood, weights.effective, fit.iterations};
  }

  static Result newton(const std::vector<Matrix>& samples, const detail::SampleWeights& weights) {
    const detail::MatrixBinghamMoments moments(samples, weights, identity_matrix<double, N>(),
                                               identity_matrix<double, N>());
    // For small A and B the likelihood is αᵀTβ − |α|²|β|²/10, which the first singular vectors of T maximise.
    const Eigen::JacobiSVD<SquareMatrix<double, free_of_one>> svd(moments.transport,
                                                                  Eigen::ComputeFullU | Eigen::ComputeFullV);
    // PFPᵀ = E for all samples: A = sE and B = sF have larger likelihoods for larger s.
    if (svd.singularValues()(0) > 1 - 64 * std::numeric_limits<double>::epsilon()) refuse_infinite();
    const double sigma = svd.singularValues()(0), size = std::sqrt(5 * sigma / std::max(0.1, 1 - sigma));
    Result best = from(samples, weights, detail::traceless_matrix(size * svd.matrixU().col(0)),
                       detail::traceless_matrix(size * svd.matrixV().col(0)), -1);
    // Concentrated samples have a maximum for several orders of the axes: the best of those that differ by one exchange.
    for (bool better = true; better;) {
      better = false;
      const auto outer = best.distribution.outer_frame(), inner = best.distribution.inner_frame();
      for (const auto [k, l] : detail::traceless_pairs) {
        Result found = from(samples, weights, exchanged(outer, k, l), exchanged(inner, k, l), best.log_likelihood);
        if (!(found.log_likelihood > best.log_likelihood + 1e-9)) continue;
        best = std::move(found);
        better = true;
      }
    }
    return best;
  }

  /// The matrix with the same axes, two of which have exchanged their eigenvalues.
  static Matrix exchanged(const detail::SymmetricFrame<N>& frame, int k, int l) {
    Column<double, N> values = frame.values;
    std::swap(values(k), values(l));
    return frame.vectors * values.asDiagonal() * frame.vectors.transpose();
  }

  /// The maximum that is reached from A and B, or a smaller likelihood where it cannot be above `least_value`.
  static Result from(const std::vector<Matrix>& samples, const detail::SampleWeights& weights, Matrix a, Matrix b,
                     double least_value) {
    constexpr int max_iterations = 200;
    detail::MatrixBinghamLikelihood<double> current(samples, weights, a, b);
    int iteration = 0, last_steps = 5;
    double least = 0.01;  // of the eigenvalues: less where whole steps succeed
    for (bool moving = true; moving && last_steps > 0; ++iteration) {
      if (iteration == max_iterations) {
        throw std::runtime_error(detail::concat("fit: no convergence within ", max_iterations, " iterations"));
      }
      const auto gradient = current.gradient();
      auto step = current.step(gradient, least);
      const double growth = gradient.dot(step);  // twice the expected gain
      if (!(growth > 1e-22) || (growth < 0.01 && current.value() + 5 * growth < least_value)) break;
      // So near, differences of the likelihood are rounding, while Newton's step squares its error.
      const bool near = growth <= 1e-8;
      if (near) --last_steps;
      step *= std::min(1.0, (1 + a.norm() + b.norm()) / step.norm());
      moving = false;
      int halving = 0;
      for (; halving < 40 && !moving; ++halving) {
        const bool small = detail::is_small_turn(current.outer(), step.template head<5>()) &&
                           detail::is_small_turn(current.inner(), step.template tail<5>());
        Matrix next_a = detail::moved(current.outer(), step.template head<5>(), small);
        Matrix next_b = detail::moved(current.inner(), step.template tail<5>(), small);
        balance(next_a, next_b);
        detail::MatrixBinghamLikelihood<double> moved(samples, weights, next_a, next_b);
        moving = near || moved.value() > current.value();
        if (moving) {
          a = next_a;
          b = next_b;
          current = moved;
        }
        step *= 0.5;
      }
      least = halving == 1 ? std::max(0.1 * least, 1e-14) : std::min(10 * least, 1.0);
      if (a.norm() * b.norm() > largest_product) refuse_infinite();
    }
    if (current.outer().gaps()(0) < current.outer().gaps()(1)) {
      a = -a;
      b = -b;
    }
    return {at(a, b), current.value(), weights.effective, iteration};
  }

  /// |A| = |B|, with the same A ⊗ B.
  static void balance(Matrix& a, Matrix& b) {
    const double size = a.norm(), other = b.norm();
    if (size == 0 || other == 0) return;
    const double factor = std::sqrt(other / size);
    a *= factor;
    b /= factor;
  }

  /// Beyond it, squares of deviations are rounding of the samples or of the iteration.
  static constexpr double largest_product = [] {
    const double given = static_cast<double>(std::numeric_limits<Scalar>::epsilon());
    return 0.01 / std::max(given * given, std::numeric_limits<double>::epsilon());
  }();
};

}  // namespace sheafnn::rotation
