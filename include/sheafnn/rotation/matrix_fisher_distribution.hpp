/// \file
/// The matrix Fisher (matrix Langevin) distribution on SO(2) and SO(3): density exp(tr FᵀP)/c(F) with respect to
/// normalised Haar measure, for any matrix F.
///
/// F = U diag(s) Vᵀ with rotations U, V and s₁ ≥ s₂ ≥ |s₃| has its mode at M = UVᵀ. For N = 2 it is the von Mises
/// distribution of the angle: only F's multiple of a rotation counts there. For N = 3 it is the Bingham distribution of
/// the quaternion. Source: Downs, "Orientation statistics", Biometrika 59, 1972; Khatri, Mardia, J. R. Stat. Soc.
/// B 39, 1977.
#pragma once

#include "sheafnn/core/eigen.hpp"

#include <Eigen/SVD>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "sheafnn/core/errors.hpp"
#include "sheafnn/core/small_matrix.hpp"
#include "sheafnn/rotation/bingham_sampler.hpp"
#include "sheafnn/rotation/matrix_fisher_normaliser.hpp"
#include "sheafnn/rotation/operations.hpp"
#include "sheafnn/rotation/orthonormalise.hpp"
#include "sheafnn/rotation/quaternion.hpp"
#include "sheafnn/rotation/unit_quadrature.hpp"

namespace sheafnn::detail {

/// F = U diag(s) Vᵀ with det U = det V = 1; for N = 2 of the multiple of a rotation nearest to F.
template <int N>
struct ProperSvd {
  SquareMatrix<double, N> u, v;
  Column<double, N> s;

  explicit ProperSvd(const SquareMatrix<double, N>& f) {
    if constexpr (N == 2) {
      const double a = 0.5 * (f(0, 0) + f(1, 1));
      const double b = 0.5 * (f(1, 0) - f(0, 1));
      const double length = std::hypot(a, b);
      const double c = length > 0 ? a / length : 1;
      const double d = length > 0 ? b / length : 0;
      u << c, -d, d, c;
      v = identity_matrix<double, 2>();
      s.setConstant(length);
    } else {
      const Eigen::JacobiSVD<SquareMatrix<double, N>> svd(f, Eigen::ComputeFullU | Eigen::ComputeFullV);
      u = svd.matrixU();
      v = svd.matrixV();
      s = svd.singularValues();
      for (SquareMatrix<double, N>* q : {&u, &v}) {
        if (pivoted_determinant<double, N>(*q) < 0) {
          q->col(N - 1) *= -1;
          s(N - 1) *= -1;
        }
      }
    }
  }
};

}  // namespace sheafnn::detail

namespace sheafnn::rotation {

/// The matrix Fisher distribution on SO(2) or SO(3) with parameter F. Equation: on top of this file.
template <int N, class Dtype = double>
class MatrixFisherDistribution {
  static_assert(N == 2 || N == 3, "the normaliser is offered for SO(2) and SO(3)");
  static_assert(std::is_floating_point_v<Dtype>, "a distribution's parameters are float or double");

 public:
  static constexpr int dimension = N;
  using Scalar = Dtype;
  using Matrix = SquareMatrix<Scalar, N>;

  /// \param parameter  F (N × N), entries of size up to 1e150
  /// \throws std::invalid_argument  an entry is larger, NaN or infinite
  explicit MatrixFisherDistribution(const Matrix& parameter)
      : parameter_(checked(parameter)),
        svd_(parameter_),
        normaliser_(detail::matrix_fisher_normaliser(svd_.s)),
        sampler_(quaternion_concentrations(svd_.s)) {}

  /// F = κM.
  ///
  /// \param location       M, a rotation; orthonormalised when drifted, see orthonormalised
  /// \param concentration  κ in [0, 1e150]
  /// \throws std::invalid_argument  an argument is out of its range
  MatrixFisherDistribution(const Matrix& location, Scalar concentration)
      : MatrixFisherDistribution(
            Matrix(checked_concentration(concentration) *
                   orthonormalised<Scalar, N>("MatrixFisherDistribution: location", location))) {}

  /// The parameter F.
  [[nodiscard]] Matrix parameter() const { return parameter_.template cast<Scalar>(); }
  /// M = UVᵀ, the mode; one of several where s₂ + s₃ = 0.
  [[nodiscard]] Matrix location() const { return (svd_.u * svd_.v.transpose()).template cast<Scalar>(); }
  /// Proper singular values of F, s₁ ≥ s₂ ≥ |s₃|; N = 2: both are half the concentration of the angle.
  [[nodiscard]] const Column<double, N>& singular_values() const noexcept { return svd_.s; }
  /// F = U diag(s) Vᵀ in double.
  [[nodiscard]] const detail::ProperSvd<N>& svd() const noexcept { return svd_; }
  /// log c − Σs, its derivatives and 1 − them.
  [[nodiscard]] const detail::MatrixFisherNormaliser<N>& normaliser() const noexcept { return normaliser_; }
  [[nodiscard]] const detail::BinghamSampler<N == 2 ? 2 : 4>& sampler() const noexcept { return sampler_; }

 private:
  static constexpr double largest = 1e150;

  static SquareMatrix<double, N> checked(const Matrix& parameter) {
    constexpr const char* name = "MatrixFisherDistribution: parameter";
    detail::require_finite<Scalar, N>(name, parameter);
    const SquareMatrix<double, N> f = parameter.template cast<double>();
    const double size = f.cwiseAbs().maxCoeff();
    require(size <= largest, name, detail::concat("a matrix with entries up to ", size),
            "the density is computed up to 1e150");
    return f;
  }
  static Scalar checked_concentration(Scalar concentration) {
    require(concentration >= 0 && static_cast<double>(concentration) <= largest && std::isfinite(concentration),
            "MatrixFisherDistribution: concentration", concentration, "must be in [0, 1e150]");
    return concentration;
  }
  /// Σs − tr(diag(s) R(q)) = Σ a_i q_i² for a unit quaternion q, or for (cos, sin) of half the angle.
  static Column<double, N == 2 ? 2 : 4> quaternion_concentrations(const Column<double, N>& s) {
    if constexpr (N == 2) {
      return {0, 2 * (s(0) + s(1))};
    } else {
      return {0, 2 * (s(1) + s(2)), 2 * (s(0) + s(2)), 2 * (s(0) + s(1))};
    }
  }

  SquareMatrix<double, N> parameter_;
  detail::ProperSvd<N> svd_;
  detail::MatrixFisherNormaliser<N> normaliser_;
  detail::BinghamSampler<N == 2 ? 2 : 4> sampler_;
};

/// log f(P); a drifted P is orthonormalised. \throws std::invalid_argument  P is not a rotation
template <int N, class Scalar>
[[nodiscard]] Scalar logpdf(const MatrixFisherDistribution<N, Scalar>& distribution,
                            const std::type_identity_t<SquareMatrix<Scalar, N>>& p,
                            const SampleOptions<Scalar>& options = {}) {
  const auto& svd = distribution.svd();
  const SquareMatrix<double, N> rotation =
      orthonormalised<Scalar, N>("logpdf: p", p, options).template cast<double>();
  // tr(FᵀP) − Σs with R_ii − 1 = −½ ‖row i of R − I‖²: the entries off the diagonal hold small angles, whose squares the
  // diagonal has rounded away.
  SquareMatrix<double, N> turned = svd.u.transpose() * orthonormalisation_step<double, N>(rotation) * svd.v;
  double power = 0;
  for (int i = 0; i < N; ++i) {
    turned(i, i) -= 1;
    power -= 0.5 * svd.s(i) * turned.row(i).squaredNorm();
  }
  return static_cast<Scalar>(power - distribution.normaliser().log_scaled);
}

}  // namespace sheafnn::rotation

namespace sheafnn::detail {

/// ∫₀¹ weight(t) H(ts) s dt with H the second derivatives of log c, for s₁ < 0.5: to rounding.
template <int N, class Weight>
[[nodiscard]] Column<double, N> integrated_curvature(const Column<double, N>& s, const Weight& weight) {
  const auto curvature = [&](double t) -> Column<double, N> {
    return weight(t) * (matrix_fisher_normaliser(Column<double, N>(t * s)).hessian * s);
  };
  return integrate_parts(curvature, 0, 1, 1);
}

/// ∂ log c/∂s: 1 − rest, or for small s, where that cancels, ∫₀¹ H(ts) s dt.
template <int N, class Scalar>
[[nodiscard]] Column<double, N> mean_diagonal(const MatrixFisherDistribution<N, Scalar>& distribution) {
  const Column<double, N>& s = distribution.singular_values();
  if (s(0) < 0.1) return integrated_curvature<N>(s, [](double) { return 1.0; });
  return Column<double, N>::Ones() - distribution.normaliser().rest;
}

}  // namespace sheafnn::detail

namespace sheafnn::rotation {

/// E[P] = U diag(∂ log c/∂s) Vᵀ.
template <int N, class Scalar>
[[nodiscard]] SquareMatrix<Scalar, N> mean(const MatrixFisherDistribution<N, Scalar>& distribution) {
  const auto& svd = distribution.svd();
  return (svd.u * detail::mean_diagonal(distribution).asDiagonal() * svd.v.transpose()).template cast<Scalar>();
}

/// tr(E[P] Mᵀ)/N, the length of the mean where F is a multiple of a rotation.
template <int N, class Scalar>
[[nodiscard]] Scalar mean_resultant(const MatrixFisherDistribution<N, Scalar>& distribution) {
  return static_cast<Scalar>(detail::mean_diagonal(distribution).sum() / N);
}

/// Derivatives of log f(P) as a function of free matrices.
template <int N, class Scalar>
struct MatrixFisherGradient {
  SquareMatrix<Scalar, N> parameter;  ///< F̄ = P − E[P] (N = 2: its multiple of a rotation)
  SquareMatrix<Scalar, N> argument;   ///< P̄ = F
};

/// \throws std::invalid_argument  P is not a rotation
template <int N, class Scalar>
[[nodiscard]] MatrixFisherGradient<N, Scalar> logpdf_gradient(
    const MatrixFisherDistribution<N, Scalar>& distribution,
    const std::type_identity_t<SquareMatrix<Scalar, N>>& p, const SampleOptions<Scalar>& options = {}) {
  return {orthonormalised<Scalar, N>("logpdf_gradient: p", p, options) - mean(distribution),
          distribution.parameter()};
}

/// KL to the uniform distribution in nats: Σ s_i d_i − log c. Where both cancel, s₁ < 0.5, it is ∫₀¹ t sᵀH(ts) s dt with H
/// the second derivatives of log c.
template <int N, class Scalar>
[[nodiscard]] Scalar kl_to_uniform(const MatrixFisherDistribution<N, Scalar>& distribution) {
  const auto& normaliser = distribution.normaliser();
  const Column<double, N>& s = distribution.singular_values();
  if (s(0) < 0.5) {
    return static_cast<Scalar>(s.dot(detail::integrated_curvature<N>(s, [](double t) { return t; })));
  }
  return static_cast<Scalar>(-normaliser.mean_cost - normaliser.log_scaled);
}

/// A sample, exact, by rejection: a pure function of (stream, id); takes two draws for each proposal, from
/// first_draw on.
template <int N, class Scalar>
[[nodiscard]] SquareMatrix<Scalar, N> sample(const MatrixFisherDistribution<N, Scalar>& distribution,
                                             const Stream& stream, std::uint32_t id,
                                             std::uint32_t first_draw = 0) {
  const auto& svd = distribution.svd();
  const auto x = distribution.sampler()(stream, id, first_draw);
  SquareMatrix<double, N> r;
  if constexpr (N == 2) {
    r << x(0) * x(0) - x(1) * x(1), -2 * x(0) * x(1), 2 * x(0) * x(1), x(0) * x(0) - x(1) * x(1);
  } else {
    r = quaternion_rotation<double>(x);
  }
  return (svd.u * r * svd.v.transpose()).template cast<Scalar>();
}

}  // namespace sheafnn::rotation
