/// \file
/// The likelihood of the matrix Bingham distribution on SO(3), with Newton's steps for its fit.
///
/// Σ w log f = Σ w tr(B PᵀAP) − log c(A, B) is a function of A and B, symmetric with trace 0. The data enter by
/// T_ij = Σ w tr(E_i S E_j Sᵀ), S = UᵀPV, with an orthonormal basis E of these matrices. log c depends on eigenvalues only.
/// In the frames its Hessian has (∂_k log c − ∂_l log c)/(a_k − a_l) for the entry (k, l) of A, and likewise of B. The rest
/// is the Hessian in (a, b).
/// Source: math, "Matrix Bingham distribution" (2.56) to (2.58).
#pragma once

#include "sheafnn/core/eigen.hpp"

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "sheafnn/core/small_matrix.hpp"
#include "sheafnn/rotation/exponential.hpp"
#include "sheafnn/rotation/matrix_bingham_distribution.hpp"
#include "sheafnn/rotation/matrix_bingham_normaliser.hpp"
#include "sheafnn/rotation/sample_weights.hpp"
#include "sheafnn/rotation/skew.hpp"

namespace sheafnn::detail {

/// x_i = tr(E_i X) of a symmetric matrix X with trace 0. E_i: diag(1, −1, 0)/√2, diag(1, 1, −2)/√6, and (e_k e_lᵀ + e_l e_kᵀ)/√2
/// for (k, l) = (1, 2), (1, 3), (2, 3).
using TracelessCoordinates = Column<double, 5>;

inline constexpr double inverse_sqrt_2 = 0.70710678118654752440, inverse_sqrt_6 = 0.40824829046386301637;
/// The k and l of E_i, i = 2, 3, 4.
inline constexpr std::array<std::array<int, 2>, 3> traceless_pairs{{{0, 1}, {0, 2}, {1, 2}}};
[[nodiscard]] constexpr const std::array<int, 2>& traceless_pair(int i) {
  return traceless_pairs[static_cast<std::size_t>(i)];
}

/// The diagonals of E_1 and E_2, in columns.
[[nodiscard]] inline Eigen::Matrix<double, 3, 2> traceless_diagonals() {
  Eigen::Matrix<double, 3, 2> r;
  r << inverse_sqrt_2, inverse_sqrt_6, -inverse_sqrt_2, inverse_sqrt_6, 0, -2 * inverse_sqrt_6;
  return r;
}
[[nodiscard]] inline TracelessCoordinates traceless_coordinates(const SquareMatrix<double, 3>& x) {
  TracelessCoordinates r;
  r.head<2>() = traceless_diagonals().transpose() * x.diagonal();
  for (int i = 0; i < 3; ++i) {
    const auto [k, l] = traceless_pair(i);
    r(2 + i) = inverse_sqrt_2 * (x(k, l) + x(l, k));
  }
  return r;
}
[[nodiscard]] inline SquareMatrix<double, 3> traceless_matrix(const TracelessCoordinates& x) {
  SquareMatrix<double, 3> r = SquareMatrix<double, 3>::Zero();
  r.diagonal() = traceless_diagonals() * x.head<2>();
  for (int i = 0; i < 3; ++i) {
    const auto [k, l] = traceless_pair(i);
    r(k, l) = r(l, k) = inverse_sqrt_2 * x(2 + i);
  }
  return r;
}

/// A matrix whose rows and columns have sum 1, minus the identity. Its diagonal is minus the other entries of the row, which
/// keeps the digits of concentrated samples.
[[nodiscard]] inline SquareMatrix<double, 3> less_identity(SquareMatrix<double, 3> squares) {
  for (int i = 0; i < 3; ++i) {
    squares(i, i) = 0;
    squares(i, i) = -squares.row(i).sum();
  }
  return squares;
}

/// What the likelihood reads of samples in frames U and V.
struct MatrixBinghamMoments {
  SquareMatrix<double, 5> transport = SquareMatrix<double, 5>::Zero();  ///< T
  SquareMatrix<double, 3> rest = SquareMatrix<double, 3>::Zero();       ///< Σ w S_ij² minus the identity

  MatrixBinghamMoments(const std::vector<SquareMatrix<double, 3>>& samples, const SampleWeights& weights,
                       const SquareMatrix<double, 3>& u, const SquareMatrix<double, 3>& v) {
    for (std::size_t n = 0; n < samples.size(); ++n) {
      const double w = weights.weight[n];
      if (w == 0) continue;
      const SquareMatrix<double, 3> s = u.transpose() * samples[n] * v;
      rest += w * s.cwiseProduct(s);
      for (int j = 0; j < 5; ++j) {
        const SquareMatrix<double, 3> moved = s * traceless_matrix(TracelessCoordinates::Unit(j)) * s.transpose();
        transport.col(j) += w * traceless_coordinates(moved);
      }
    }
    rest = less_identity(rest);
  }
};

/// ∂ log c/∂a and ∂ log c/∂b at eigenvalues in any order.
struct SpectralGradient {
  Column<double, 3> outer, inner;

  SpectralGradient(const Column<double, 3>& a, const Column<double, 3>& b) {
    const std::array<int, 3> i = decreasing(a), j = decreasing(b);
    const MatrixBinghamNormaliser<3> at =
        matrix_bingham_normaliser(EigenvalueGaps<3>(a(i[0]) - a(i[1]), a(i[1]) - a(i[2])),
                                  EigenvalueGaps<3>(b(j[0]) - b(j[1]), b(j[1]) - b(j[2])));
    outer.setZero();
    inner.setZero();
    for (std::size_t k = 0; k < 3; ++k) {
      for (std::size_t l = 0; l < 3; ++l) {
        outer(i[k]) += at.squares(static_cast<int>(k), static_cast<int>(l)) * b(j[l]);
        inner(j[l]) += at.squares(static_cast<int>(k), static_cast<int>(l)) * a(i[k]);
      }
    }
  }

 private:
  static std::array<int, 3> decreasing(const Column<double, 3>& x) {
    std::array<int, 3> r{0, 1, 2};
    std::sort(r.begin(), r.end(), [&](int i, int j) { return x(i) != x(j) ? x(i) > x(j) : i < j; });
    return r;
  }
};

/// The likelihood at A and B, in their frames. A template, so that programs without fits compile no eigenvalue solver; Real is
/// double.
template <class Real>
class MatrixBinghamLikelihood {
 public:
  using Coordinates = Column<Real, 10>;  ///< of A, and of B

  MatrixBinghamLikelihood(const std::vector<SquareMatrix<double, 3>>& samples, const SampleWeights& weights,
                          const SquareMatrix<double, 3>& a, const SquareMatrix<double, 3>& b)
      : outer_(a),
        inner_(b),
        at_(matrix_bingham_normaliser(outer_.gaps(), inner_.gaps())),
        moments_(samples, weights, outer_.vectors, inner_.vectors),
        value_(-matrix_bingham_costs<3>(outer_.gaps(), inner_.gaps()).cwiseProduct(moments_.rest).sum() -
               at_.log_scaled) {}

  [[nodiscard]] double value() const { return value_; }
  [[nodiscard]] const SymmetricFrame<3>& outer() const { return outer_; }
  [[nodiscard]] const SymmetricFrame<3>& inner() const { return inner_; }

  /// The gradient of the averages, (2.57).
  [[nodiscard]] Coordinates gradient() const {
    const Column<double, 3>&a = outer_.values, &b = inner_.values;
    const SquareMatrix<double, 3> excess = moments_.rest - less_identity(at_.squares);
    const Eigen::Matrix<double, 3, 2> k = traceless_diagonals();
    Coordinates r;
    r.template segment<2>(0) = k.transpose() * (excess * b);
    r.template segment<3>(2) = moments_.transport.bottomLeftCorner<3, 2>() * (k.transpose() * b);
    r.template segment<2>(5) = k.transpose() * (excess.transpose() * a);
    r.template segment<3>(7) = moments_.transport.topRightCorner<2, 3>().transpose() * (k.transpose() * a);
    return r;
  }

  /// The Hessian of log c, (2.58).
  [[nodiscard]] SquareMatrix<Real, 10> information() const {
    const Column<double, 3>&a = outer_.values, &b = inner_.values;
    const Column<double, 3> outer = at_.squares * b, inner = at_.squares.transpose() * a;  // ∂ log c
    // Rows and columns: a, b. A difference quotient, since its error slows the iteration only.
    SquareMatrix<double, 6> spectral;
    for (int i = 0; i < 6; ++i) {
      const double step = spectral_step(i < 3 ? a : b, i < 3 ? b : a, i % 3);
      Column<double, 3> moved[2] = {a, b};
      moved[i / 3](i % 3) += step;
      const SpectralGradient there(moved[0], moved[1]);
      spectral.col(i) << (there.outer - outer) / step, (there.inner - inner) / step;
    }
    spectral = 0.5 * (spectral + spectral.transpose()).eval();
    const Eigen::Matrix<double, 3, 2> k = traceless_diagonals();
    SquareMatrix<Real, 10> r = SquareMatrix<Real, 10>::Zero();
    for (int i = 0; i < 2; ++i) {
      for (int j = 0; j < 2; ++j) {
        r.template block<2, 2>(5 * i, 5 * j) = k.transpose() * spectral.block<3, 3>(3 * i, 3 * j) * k;
      }
    }
    for (int i = 0; i < 3; ++i) {
      r(2 + i, 2 + i) = quotient(a, b, outer, spectral.topLeftCorner<3, 3>(), traceless_pair(i));
      r(7 + i, 7 + i) = quotient(b, a, inner, spectral.bottomRightCorner<3, 3>(), traceless_pair(i));
    }
    return r;
  }

  /// Newton's step for A and B. Of the eigenvalues of −(Hessian) in units of the information the absolute values count, and `least`
  /// for smaller ones. Along (A, −B) the likelihood is constant: the step has no part there.
  [[nodiscard]] Coordinates step(const Coordinates& gradient, double least) const {
    SquareMatrix<Real, 10> negative = information();
    const Coordinates unit = negative.diagonal().cwiseMax(std::numeric_limits<double>::min()).cwiseSqrt();
    negative.template topRightCorner<5, 5>() -= moments_.transport;
    negative.template bottomLeftCorner<5, 5>() -= moments_.transport.transpose();
    const Eigen::Matrix<double, 3, 2> k = traceless_diagonals();
    Coordinates flat = Coordinates::Zero();
    flat.template segment<2>(0) = k.transpose() * outer_.values;
    flat.template segment<2>(5) = -k.transpose() * inner_.values;
    flat = flat.cwiseProduct(unit).normalized();
    SquareMatrix<Real, 10> scaled = unit.cwiseInverse().asDiagonal() * negative * unit.cwiseInverse().asDiagonal();
    const SquareMatrix<Real, 10> across = identity_matrix<Real, 10>() - flat * flat.transpose();
    scaled = (across * scaled * across).eval() + flat * flat.transpose();
    const Eigen::SelfAdjointEigenSolver<SquareMatrix<Real, 10>> solver(scaled);
    Coordinates along = solver.eigenvectors().transpose() * (across * gradient.cwiseQuotient(unit));
    along.array() /= solver.eigenvalues().array().abs().max(least);
    return (across * (solver.eigenvectors() * along)).cwiseQuotient(unit);
  }

 private:
  /// (∂_k − ∂_l) log c/(x_k − x_l), at equal eigenvalues its limit.
  static double quotient(const Column<double, 3>& x, const Column<double, 3>& y, const Column<double, 3>& slope,
                         const SquareMatrix<double, 3>& hessian, const std::array<int, 2>& pair) {
    const auto [k, l] = pair;
    const double gap = std::abs(x(k) - x(l));
    if (gap > 10 * std::min(spectral_step(x, y, k), spectral_step(x, y, l)))
      return (slope(k) - slope(l)) / (x(k) - x(l));
    return 0.5 * (hessian(k, k) + hessian(l, l)) - hessian(k, l);
  }
  /// A ten-thousandth of the scale on which log c varies with x_i. The scale is the gap to the next eigenvalue or, where
  /// this is small, 1/(range of y).
  static double spectral_step(const Column<double, 3>& x, const Column<double, 3>& y, int i) {
    const double gap = std::min(std::abs(x(i) - x((i + 1) % 3)), std::abs(x(i) - x((i + 2) % 3)));
    return 1e-4 * std::max(gap, 1 / (1e-3 + y.maxCoeff() - y.minCoeff()));
  }

  SymmetricFrame<3> outer_, inner_;
  MatrixBinghamNormaliser<3> at_;
  MatrixBinghamMoments moments_;
  double value_;
};

/// φ of the rotation exp(X_φ) by which the eigenvectors follow a change, to first order: X_lk = Δ_kl/(a_k − a_l).
[[nodiscard]] inline rotation::RotationParameters<double, 3> turn_of(const SymmetricFrame<3>& frame,
                                                                     const TracelessCoordinates& change) {
  rotation::RotationParameters<double, 3> r;
  for (int i = 0; i < 3; ++i) {
    const auto [k, l] = traceless_pair(i);
    r(i) = inverse_sqrt_2 * change(2 + i) / (frame.values(k) - frame.values(l));
  }
  return r;
}
[[nodiscard]] inline bool is_small_turn(const SymmetricFrame<3>& frame, const TracelessCoordinates& change) {
  return turn_of(frame, change).cwiseAbs().maxCoeff() <= 0.5;
}
/// The matrix after a change in its frame. Where turns are small, with eigenvectors U exp(X), so that turns of both matrices
/// by the same angles leave UVᵀ as it is.
[[nodiscard]] inline SquareMatrix<double, 3> moved(const SymmetricFrame<3>& frame,
                                                   const TracelessCoordinates& change, bool small) {
  const SquareMatrix<double, 3> full = traceless_matrix(change);
  const Column<double, 3> values = frame.values + full.diagonal();
  if (small) {
    const SquareMatrix<double, 3> u =
        frame.vectors * rotation::exponential_rotation<double, 3>(turn_of(frame, change));
    return u * values.asDiagonal() * u.transpose();
  }
  SquareMatrix<double, 3> own = full;
  own.diagonal() = values;
  return frame.vectors * own * frame.vectors.transpose();
}

}  // namespace sheafnn::detail
