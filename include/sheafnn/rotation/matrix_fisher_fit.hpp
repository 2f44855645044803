/// \file
/// Fits of the matrix Fisher distribution: an exponential family, so that maximum likelihood is E[P] = P̄.
///
/// In the frame of P̄ = U diag(d̄) Vᵀ: ∂ log c/∂s = d̄, by Newton's method on the concave likelihood. The information about
/// F is the covariance of P. In that frame it is the Hessian of log c for diagonal entries and, for each pair i < j, (d_i ±
/// d_j)/(s_i ± s_j) for (F_ij ∓ F_ji)/√2. Source: math, "Fits".
#pragma once

#include "sheafnn/core/eigen.hpp"

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <Eigen/LU>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <stdexcept>
#include <vector>

#include "sheafnn/rotation/fit.hpp"
#include "sheafnn/rotation/matrix_fisher_distribution.hpp"
#include "sheafnn/rotation/sample_weights.hpp"
#include "sheafnn/rotation/skew.hpp"

namespace sheafnn::rotation {

/// A matrix Fisher distribution fitted to rotations.
template <int N, class Scalar>
struct MatrixFisherFit {
  MatrixFisherDistribution<N, Scalar> distribution;  ///< at the estimates
  SquareMatrix<Scalar, N> parameter_error;           ///< standard errors of the entries of F
  /// Standard errors of φ in M̂ = exp(X_φ) M, radians; infinite where F has no unique polar factor, as F = 0.
  RotationParameters<Scalar, N> location_error;
  SquareMatrix<Scalar, rotation_parameters<N>> location_covariance;  ///< of these φ
  Scalar largest_location_error;  ///< standard error along the φ that is known least
  Scalar concentration_error;     ///< standard error of tr(FᵀM)/N, the average singular value
  double log_likelihood;          ///< Σ w log f/Σ w
  double effective_samples;       ///< (Σw)²/Σw²
  int iterations;

  /// Average singular value of F̂, tr(F̂ᵀM̂)/N.
  [[nodiscard]] Scalar concentration() const {
    return static_cast<Scalar>(distribution.singular_values().sum() / N);
  }
  /// Holds the true average singular value with probability `level`, for large samples; positive.
  ///
  /// \throws std::invalid_argument  a level that is not in (0, 1)
  [[nodiscard]] ConfidenceInterval<Scalar> concentration_interval(double level = 0.95) const {
    return detail::concentration_interval<Scalar>(false, concentration(), concentration_error, level);
  }
  /// The r for which {exp(X_φ) M̂ : |φ| ≤ r} holds the true M with probability `level` or more, for large samples: the
  /// ball around the confidence ellipsoid φᵀ location_covariance⁻¹ φ ≤ χ². Radians.
  ///
  /// \throws std::invalid_argument  a level that is not in (0, 1)
  [[nodiscard]] Scalar location_radius(double level = 0.95) const {
    return largest_location_error *
           static_cast<Scalar>(detail::normal_radius("location_radius", rotation_parameters<N>, level));
  }
};

}  // namespace sheafnn::rotation

namespace sheafnn::detail {

/// 1 − d̄, and its frame in place of the frame of P̄ = U diag(d̄) Vᵀ. With M = UVᵀ, the matrix I − sym(P̄Mᵀ) is
/// ½ Σ w (P − M)(P − M)ᵀ. Its eigenvalues and eigenvectors U keep the digits of concentrated samples.
template <int N>
[[nodiscard]] Column<double, N> scatter_of_mean(const std::vector<SquareMatrix<double, N>>& samples,
                                                const SampleWeights& weights, ProperSvd<N>& svd) {
  const SquareMatrix<double, N> location = svd.u * svd.v.transpose();
  SquareMatrix<double, N> scatter = SquareMatrix<double, N>::Zero();
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const SquareMatrix<double, N> difference = samples[i] - location;
    scatter += 0.5 * weights.weight[i] * difference * difference.transpose();
  }
  if constexpr (N == 2) {
    return Column<double, 2>::Constant(0.5 * scatter.trace());
  } else {
    const Eigen::SelfAdjointEigenSolver<SquareMatrix<double, N>> solver(scatter);
    svd.u = solver.eigenvectors();
    if (pivoted_determinant<double, N>(svd.u) < 0) svd.u.col(N - 1) *= -1;
    svd.v = location.transpose() * svd.u;
    return solver.eigenvalues();
  }
}

/// Proper singular values s with 1 − ∂ log c/∂s = rest. \returns whether the iteration ended; `iterations` counts
/// it.
template <int N>
[[nodiscard]] bool solve_matrix_fisher(const Column<double, N>& rest, Column<double, N>& s, int& iterations) {
  MatrixFisherNormaliser<N> at = matrix_fisher_normaliser(s);
  double value = -s.dot(rest) - at.log_scaled;
  int last_steps = 3;
  for (iterations = 0; iterations < 500; ++iterations) {
    const Column<double, N> gradient = at.rest - rest;
    Column<double, N> step;
    if constexpr (N == 2) {
      step.setConstant(gradient(0) / (2 * at.hessian(0, 0)));
    } else {
      step = at.hessian.ldlt().solve(gradient);
    }
    if (!(step.norm() <= 1e12 * (1 + s.norm()))) step = gradient;
    if (step.norm() <= 1e-12 * (1e-3 + s.norm()) || last_steps == 0) return true;
    // So near, differences of the likelihood are rounding, while Newton's step squares its error.
    const bool near = step.dot(gradient) <= 1e-8;
    if (near) --last_steps;
    bool moved = false;
    for (int halving = 0; halving < 60 && !moved; ++halving) {
      Column<double, N> next = s + step;
      if constexpr (N == 3) {
        // This mends rounding only: s is ordered as the mean's singular values are.
        next(1) = std::min(next(1), next(0));
        next(2) = std::clamp(next(2), -std::abs(next(1)), std::abs(next(1)));
      }
      if (next.minCoeff() >= -next(0) && next(0) >= 0 && next(1) >= 0) {
        const MatrixFisherNormaliser<N> there = matrix_fisher_normaliser(next);
        const double trial = -next.dot(rest) - there.log_scaled;
        if (near || trial > value) {
          moved = true;
          s = next;
          at = there;
          value = trial;
        }
      }
      step *= 0.5;
    }
    if (!moved) return true;  // at the maximum to rounding
  }
  return false;
}

/// A first guess: the concentrated law, where a quaternion's imaginary parts are normal, or the linear one, s = N
/// d.
template <int N>
[[nodiscard]] Column<double, N> guess_matrix_fisher(const Column<double, N>& rest) {
  if constexpr (N == 2) {
    const double r = 1 - rest(0);
    return Column<double, 2>::Constant(0.5 * (r < 0.7 ? 2 * r + r * r * r : 0.5 / rest(0)));
  } else {
    const Column<double, 3> squares =
        Column<double, 3>::Constant(0.25 * rest.sum()) - 0.5 * rest;  // E x², E y², E z²
    if (squares.maxCoeff() < 0.15 && squares.minCoeff() > 0) {
      const Column<double, 3> sums = 0.25 * squares.cwiseInverse();  // s₂ + s₃, s₁ + s₃, s₁ + s₂
      return Column<double, 3>::Constant(0.5 * sums.sum()) - sums;
    }
    return 3 * (Column<double, 3>::Ones() - rest);
  }
}

}  // namespace sheafnn::detail

namespace sheafnn::rotation {

template <int N, class Scalar>
struct Fitting<MatrixFisherDistribution<N, Scalar>> {
  using Distribution = MatrixFisherDistribution<N, Scalar>;
  using Sample = SquareMatrix<Scalar, N>;
  using Result = MatrixFisherFit<N, Scalar>;
  static constexpr int free_parameters = N == 2 ? 2 : 9;  // N = 2: the multiple of a rotation in F

  /// Moments are maximum likelihood. Unchecked: fit() checks samples, weights and options.
  static Result moments(std::span<const Sample> given, std::span<const Scalar> given_weights,
                        const SampleOptions<Scalar>& options) {
    return maximum_likelihood(given, given_weights, options);
  }

  /// Unchecked: fit() checks samples, weights and options.
  static Result maximum_likelihood(std::span<const Sample> given, std::span<const Scalar> given_weights,
                                   const SampleOptions<Scalar>& options) {
    const detail::SampleWeights weights("fit", given.size(), given_weights, 2);
    const auto samples = detail::checked_samples<N, Scalar>("fit", given, options);
    SquareMatrix<double, N> mean = SquareMatrix<double, N>::Zero();
    for (std::size_t i = 0; i < samples.size(); ++i) mean += weights.weight[i] * samples[i];
    detail::ProperSvd<N> svd(mean);
    const Column<double, N> rest = detail::scatter_of_mean<N>(samples, weights, svd);
    refuse_degenerate(rest);
    Column<double, N> s = detail::guess_matrix_fisher<N>(rest);
    int iterations = 0;
    if (!detail::solve_matrix_fisher<N>(rest, s, iterations)) {
      throw std::runtime_error(detail::concat("fit: no convergence within ", iterations, " iterations"));
    }
    const SquareMatrix<double, N> parameter = svd.u * s.asDiagonal() * svd.v.transpose();
    const detail::MatrixFisherNormaliser<N> normaliser = detail::matrix_fisher_normaliser(s);
    Result r{Distribution(Sample(parameter.template cast<Scalar>())),
             Sample(),
             RotationParameters<Scalar, N>(),
             SquareMatrix<Scalar, rotation_parameters<N>>(),
             0,
             0,
             -s.dot(rest) - normaliser.log_scaled,
             weights.effective,
             iterations};
    set_errors(svd, s, normaliser, weights.effective, r);
    return r;
  }

 private:
  /// Averages on the boundary of what averages can be belong to infinite F: one rotation, or turns about one axis.
  static void refuse_degenerate(const Column<double, N>& rest) {
    const double slack = 8 * N * static_cast<double>(std::numeric_limits<Scalar>::epsilon());
    double least = rest(0);
    if constexpr (N == 3) least = 0.25 * rest.sum() - 0.5 * rest.maxCoeff();  // smallest E x² of the quaternion
    require(least > slack, "fit: samples", "a set without scatter in some direction", "F has no finite estimate");
  }

  static void set_errors(const detail::ProperSvd<N>& svd, const Column<double, N>& s,
                         const detail::MatrixFisherNormaliser<N>& at, double count, Result& r) {
    SquareMatrix<double, N> variance = SquareMatrix<double, N>::Zero();
    constexpr int P = rotation_parameters<N>;
    SquareMatrix<double, P> turn = SquareMatrix<double, P>::Zero();  // covariance of φ
    double largest = 0;                                              // its largest eigenvalue
    if constexpr (N == 2) {
      // F = κ/2 · M: informations A′ about κ = 2s and κA about the angle.
      const double length = 1 / at.hessian(0, 0);
      const double angle = 1 / (2 * s(0) * (1 - at.rest(0)));         // infinite where F = 0 has no location
      const double across = s(0) > 1e-8 ? angle * s(0) * s(0) : 0.5;  // A(2s) = s at 0
      const SquareMatrix<double, 2> m = svd.u * svd.v.transpose();
      SquareMatrix<double, 2> quarter;
      quarter << -m(1, 0), -m(0, 0), m(0, 0), -m(1, 0);
      variance = 0.25 * length * m.cwiseAbs2() + across * quarter.cwiseAbs2();
      turn(0, 0) = largest = angle;
      r.concentration_error = static_cast<Scalar>(0.5 * std::sqrt(length / count));
    } else {
      const SquareMatrix<double, N> diagonal = at.hessian.inverse();
      r.concentration_error = static_cast<Scalar>(std::sqrt(diagonal.sum() / count) / N);
      for (int a = 0; a < N; ++a) {
        for (int b = 0; b < N; ++b) {
          const Column<double, N> along = svd.u.row(a).cwiseProduct(svd.v.row(b)).transpose();
          variance(a, b) = along.dot(diagonal * along);
        }
      }
      for (int i = 0; i < N; ++i) {
        for (int j = i + 1; j < N; ++j) {
          const double plus = s(i) + s(j), minus = s(i) - s(j);
          const double size = 1e-5 * (1e-3 + s(0));
          // Limits where the singular values agree up to sign.
          const double skew =
              plus > size ? plus / (2 - at.rest(i) - at.rest(j)) : 1 / (at.hessian(i, i) + at.hessian(i, j));
          const double even =
              minus > size ? minus / (at.rest(j) - at.rest(i)) : 1 / (at.hessian(i, i) - at.hessian(i, j));
          for (int a = 0; a < N; ++a) {
            for (int b = 0; b < N; ++b) {
              const double first = svd.u(a, i) * svd.v(b, j), second = svd.u(a, j) * svd.v(b, i);
              variance(a, b) +=
                  0.5 * (skew * (first - second) * (first - second) + even * (first + second) * (first + second));
            }
          }
          // The turn of the polar factor is √2/(s_i + s_j) times the skew coordinate, along a unit vector of minors.
          RotationParameters<double, N> axis;
          for (int b = 0; b < N; ++b) {
            for (int a = b + 1; a < N; ++a) {
              axis(column_index(a, b)) = svd.u(a, i) * svd.u(b, j) - svd.u(a, j) * svd.u(b, i);
            }
          }
          const double along = 2 * skew / (plus * plus);  // infinite where the polar factor of F is not unique
          for (int l = 0; l < P; ++l) {
            for (int k = 0; k < P; ++k) {
              if (axis(k) != 0 && axis(l) != 0) turn(k, l) += along * axis(k) * axis(l);
            }
          }
          largest = std::max(largest, along);
        }
      }
      if (std::isinf(largest)) turn = turn.unaryExpr([](double v) { return std::isnan(v) ? 0 : v; });  // ∞ − ∞
    }
    r.parameter_error = (variance / count).cwiseSqrt().template cast<Scalar>();
    turn /= count;
    r.location_covariance = turn.template cast<Scalar>();
    r.largest_location_error = static_cast<Scalar>(std::sqrt(largest / count));
    for (int k = 0; k < P; ++k) r.location_error(k) = static_cast<Scalar>(std::sqrt(turn(k, k)));
  }
  static int column_index(int a, int b) { return detail::column_by_column<N>(a, b); }
};

}  // namespace sheafnn::rotation
