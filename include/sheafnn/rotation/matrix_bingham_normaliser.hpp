/// \file
/// The normaliser of the matrix Bingham distribution on SO(2) and SO(3), and its moments.
///
/// Let A have eigenvalues a₁ ≥ … ≥ a_N, B eigenvalues b₁ ≥ … ≥ b_N, and S be the rotation in their frames. The cost is
/// H = Σ a_i b_i − tr(B RᵀAR) = Σ C_ij S_ij² ≥ 0. For N = 2
///     H = c sin²θ with c = (a₁ − a₂)(b₁ − b₂),    E e^{−H} = I₀ᵉ(c/2),    I₀ᵉ(x) = e^{−x}I₀(x).
///
/// N = 3: the last two rows of S turn by a uniform angle ψ for a given first row x. The eigenvalues of B on the plane
/// orthogonal to x are λ₋ ≤ λ₊. These are the elliptic coordinates of x. With λ₊ = b₂ + (b₁ − b₂)u, λ₋ = b₃ + (b₂ − b₃)v,
///     H = (a₁ − a₂)(λ₊ − b₂) + (a₁ − a₃)(λ₋ − b₃) + (a₂ − a₃)(λ₊ − λ₋) sin²ψ,
///     E e^{−H} = 1/2π ∫∫ (λ₊ − λ₋)/√((λ₊ − b₃)(b₁ − λ₋)) e^{−(a₁−a₂)(λ₊−b₂) − (a₁−a₃)(λ₋−b₃)} I₀ᵉ(½(a₂ − a₃)(λ₊ − λ₋))
///                du dv/√(u(1−u)v(1−v)).
/// All terms are positive. Math: "Matrix Bingham distribution" (2.53), (2.54).
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "sheafnn/core/small_matrix.hpp"
#include "sheafnn/rotation/scaled_bessel.hpp"
#include "sheafnn/rotation/unit_quadrature.hpp"

namespace sheafnn::detail {

/// log E e^{−H}, E[S_ij²], E[H] and the variance of H.
template <int N>
struct MatrixBinghamNormaliser {
  double log_scaled;
  SquareMatrix<double, N> squares;
  double mean_cost;
  double cost_variance;
};

/// The gaps of eigenvalues: difference of each one and the next one, at least 0.
template <int N>
using EigenvalueGaps = Column<double, N - 1>;

/// C_ij, at least 0 with a diagonal of 0, from Σ_{k,l} (gap k of A)(gap l of B)(min(k, l) − Σ_{i≤k, j≤l} S_ij²). The last
/// factor is the sum of the S_ij² with i ≤ k, j > l for k ≤ l, with i > k, j ≤ l for k ≥ l. Takes any gaps.
template <int N>
[[nodiscard]] SquareMatrix<double, N> matrix_bingham_costs(const EigenvalueGaps<N>& a,
                                                           const EigenvalueGaps<N>& b) {
  SquareMatrix<double, N> cost = SquareMatrix<double, N>::Zero();
  for (int k = 0; k + 1 < N; ++k) {
    for (int l = 0; l + 1 < N; ++l) {
      const double product = (k == l ? 0.5 : 1.0) * (a(k) * b(l));
      if (k <= l) cost.topRightCorner(k + 1, N - 1 - l).array() += product;
      if (k >= l) cost.bottomLeftCorner(N - 1 - k, l + 1).array() += product;
    }
  }
  return cost;
}

[[nodiscard]] inline MatrixBinghamNormaliser<2> matrix_bingham_normaliser(const EigenvalueGaps<2>& a,
                                                                          const EigenvalueGaps<2>& b) {
  const double c = a(0) * b(0);
  const ScaledBessel bessel(0.5 * c);
  const double sine = 0.5 * bessel.ratio_rest;  // E sin²θ = (1 − E cos 2θ)/2
  SquareMatrix<double, 2> squares;
  squares << 1 - sine, sine, sine, 1 - sine;
  return {std::log(bessel.i0), squares, c * sine, 0.25 * c * c * bessel.ratio_slope};
}

[[nodiscard]] inline MatrixBinghamNormaliser<3> matrix_bingham_normaliser(const EigenvalueGaps<3>& a,
                                                                          const EigenvalueGaps<3>& b) {
  const double width = b(0) + b(1);
  const double d1 = width > 0 ? b(0) / width : 0.5, d2 = width > 0 ? b(1) / width : 0.5;
  const double p = a(0) * b(0), q = (a(0) + a(1)) * b(1), half = 0.5 * a(1) * width;
  // The scales of u: of the exponential, of the Bessel function and of λ₊ − λ₋. What is e⁸⁰ times smaller has no weight.
  constexpr double deepest = 80;
  const auto ratio_scale = [&](double large, double small) {
    const double depth = std::log1p(large / small);
    return depth < deepest ? depth : 0.0;
  };
  const double layer = std::log1p(p);
  const double depth = std::max(std::log1p((a(0) + a(1)) * b(0)), ratio_scale(d1, d2));
  const std::vector<ArcsineNode> us = arcsine_nodes(-std::min(depth, layer + deepest), 0, p);
  const std::vector<ArcsineNode> vs = arcsine_nodes(-std::log1p(q), ratio_scale(d2, d1), q);
  double total = 0, cost = 0, square = 0, within = 0;
  SquareMatrix<double, 3> squares = SquareMatrix<double, 3>::Zero();
  for (const ArcsineNode& first : us) {
    const double u = first.t, below = d1 * u + d2;
    for (const ArcsineNode& second : vs) {
      const double v = second.t, w = second.rest, above = d1 + d2 * w;
      const double length = d1 * u + d2 * w;  // (λ₊ − λ₋)/(b₁ − b₃)
      const double y = half * length;
      const ScaledBessel bessel(y);
      const double factor = first.weight * second.weight * bessel.i0 / std::sqrt(below * above);
      const double weight = factor * length;
      const double h = p * u + q * v + y * bessel.ratio_rest;
      total += weight;
      cost += weight * h;
      square += weight * h * h;
      within += weight * y * y * bessel.ratio_slope;
      // Squares of the entries of the first row, and of the eigenvectors of λ₊ and λ₋, the latter times λ₊ − λ₋.
      const Column<double, 3> row(first.rest * above, u * w, below * v);
      const Column<double, 3> plus(above * u * below, w * first.rest * below, d1 * d1 * u * first.rest * v);
      const Column<double, 3> minus(d2 * d2 * first.rest * w * v, u * v * above, below * above * w);
      const double far = 0.5 * bessel.ratio_rest;  // E sin²ψ
      squares.row(0) += (weight * row).transpose();
      squares.row(1) += (factor * ((1 - far) * plus + far * minus)).transpose();
      squares.row(2) += (factor * (far * plus + (1 - far) * minus)).transpose();
    }
  }
  cost /= total;
  return {std::log(total) - std::log(6.283185307179586476925286766559), squares / total, cost,
          std::max(0.0, square / total - cost * cost) + within / total};
}

}  // namespace sheafnn::detail
