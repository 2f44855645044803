/// \file
/// The normaliser of the matrix Fisher distribution on SO(2) and SO(3), and its first two derivatives.
///
/// For proper singular values s₁ ≥ s₂ ≥ |s₃| of F, with respect to normalised Haar measure:
///     c(s) e^{−Σs} = ∫₀¹ I₀ᵉ((s₁ − s₂) v) I₀ᵉ((s₁ + s₂)(1 − v)) e^{−2(s₂ + s₃)v} dv,    I₀ᵉ(x) = e^{−x} I₀(x).
/// Derivatives are averages over the same integrand. N = 2: c = I₀(2s) for s₁ = s₂ = s. Source, with u = 1 − 2v: Lee, "Bayesian
/// attitude estimation with the matrix Fisher distribution on SO(3)", IEEE Transactions on Automatic Control 63, 2018.
#pragma once

#include <cmath>

#include "sheafnn/core/small_matrix.hpp"
#include "sheafnn/rotation/scaled_bessel.hpp"
#include "sheafnn/rotation/unit_quadrature.hpp"

namespace sheafnn::detail {

/// log c = Σ s + log_scaled; the mean of U P Vᵀ is diag(1 − rest_i); hessian = ∂² log c/∂s²; mean_cost = Σ s_i rest_i without
/// cancellation where s₃ < 0.
template <int N>
struct MatrixFisherNormaliser {
  double log_scaled;
  Column<double, N> rest;
  SquareMatrix<double, N> hessian;
  double mean_cost;
};

/// The angle's concentration is 2s. Only s₁ = s₂ occurs; derivatives are taken along it and shared evenly.
[[nodiscard]] inline MatrixFisherNormaliser<2> matrix_fisher_normaliser(const Column<double, 2>& s) {
  const double x = s(0) + s(1);
  const ScaledBessel bessel(x);
  return {std::log(bessel.i0), Column<double, 2>::Constant(bessel.ratio_rest),
          SquareMatrix<double, 2>::Constant(bessel.ratio_slope), x * bessel.ratio_rest};
}

[[nodiscard]] inline MatrixFisherNormaliser<3> matrix_fisher_normaliser(const Column<double, 3>& s) {
  const double minus = s(0) - s(1);
  const double plus = s(0) + s(1);
  const double decay = 2 * (s(1) + s(2));
  double total = 0, flat = 0, cross = 0, cost = 0;
  Column<double, 3> first = Column<double, 3>::Zero();
  SquareMatrix<double, 3> second = SquareMatrix<double, 3>::Zero();
  // What is small for large s is summed in units of 1/scale: weights of s^{−3/2} times s⁻² would underflow.
  const double scale = std::scalbn(1.0, std::ilogb(1 + plus)), unit = 1 / scale;
  // The integrand varies where v is about 1/(decay + minus), and where w is about 1/plus.
  const UnitNodes nodes{.lower = 48 + std::log1p(decay + minus), .upper = 48 + std::log1p(plus)};
  const auto add = [&](double v, double w, double weight) {
    const double x = minus * v;
    const double y = plus * w;
    const ScaledBessel near(x);
    const ScaledBessel far(y);
    const double density = weight * near.i0 * far.i0 * std::exp(-decay * v);
    const double a = near.ratio_rest;
    const double b = far.ratio_rest;
    // 1 minus the derivatives of the integrand's logarithm, plus Σs, in s₁, s₂, s₃.
    const double long_v = scale * v, long_w = scale * w;
    const Column<double, 3> r(long_v * a + long_w * b, long_v * (2 - a) + long_w * b, 2 * long_v);
    total += density;
    cost += density * (x * a + y * b + decay * v);  // all terms positive
    first += density * r;
    second += density * (r * r.transpose());
    const double c = long_v * long_v * near.ratio_slope;
    const double d = long_w * long_w * far.ratio_slope;
    flat += density * (d + c);
    cross += density * (d - c);
  };
  for_unit_nodes(add, nodes);
  first /= total;
  SquareMatrix<double, 3> hessian = second / total - first * first.transpose();
  hessian(0, 0) += flat / total;
  hessian(1, 1) += flat / total;
  hessian(0, 1) += cross / total;
  hessian(1, 0) += cross / total;
  return {std::log(total), unit * first, unit * (unit * hessian), cost / total};
}

}  // namespace sheafnn::detail
