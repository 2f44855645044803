/// \file
/// León's Cayley distribution on SO(N): density ∝ det(I + PMᵀ)^k, k ≥ 0, for every N.
///
/// Source: León, Massé, Rivest, "A statistical model for random rotations", J. Multivariate Anal. 97, 2006. With
/// respect to normalised Haar measure, f(P) = det((I + PMᵀ)/2)^k / Z,
///     Z = Π_{j=1}^{N−1} Γ(j/2 + k) Γ(j) / (Γ(j/2) Γ(j + k)),      r = |E P| = k/(N − 1 + k).
/// −P = H(a_N) ⋯ H(a_2) · diag(1, …, 1, −1), a product of reflections, makes det(I + P) a product of independent factors.
/// a_d has d − 1 standard normal entries after a first entry that is chi distributed with d − 1 + 2k degrees of freedom.
/// Derived in math, "León's distribution" (2.40), (2.41).
#pragma once

#include "sheafnn/core/eigen.hpp"

#include <Eigen/LU>
#include <boost/math/special_functions/erf.hpp>
#include <boost/math/special_functions/gamma.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "sheafnn/core/errors.hpp"
#include "sheafnn/core/small_matrix.hpp"
#include "sheafnn/random/stream.hpp"
#include "sheafnn/rotation/cayley_gradient.hpp"
#include "sheafnn/rotation/operations.hpp"
#include "sheafnn/rotation/orthonormalise.hpp"
#include "sheafnn/rotation/unit_quadrature.hpp"

namespace sheafnn::detail {

/// ψ(x + ½) − ψ(x + 1) and its derivative, ψ the digamma function, x ≥ 0: sums of terms of one sign. Up to 20 by
/// ψ(x) = ψ(x + 1) − 1/x, beyond by the asymptotic series −Σ E_{2k}/(4^k u^{2k+1}), u = 2x + ½, of Euler's numbers.
struct DigammaStep {
  double value = 0, slope = 0;

  explicit DigammaStep(double x) {
    while (x < 20) {
      const double product = (x + 0.5) * (x + 1);
      value -= 0.5 / product;
      slope += (x + 0.75) / (product * product);
      x += 1;
    }
    constexpr double euler[6] = {1, -1.0 / 4, 5.0 / 16, -61.0 / 64, 1385.0 / 256, -50521.0 / 1024};  // E_{2k}/4^k
    const double u = 2 * x + 0.5, squared = 1 / (u * u);
    double sum = 0, weighted = 0;
    for (int k = 5; k >= 0; --k) {
      sum = sum * squared + euler[k];
      weighted = weighted * squared + (2 * k + 1) * euler[k];
    }
    value -= sum / u;
    slope += 2 * weighted * squared;
  }
};

/// log Z(k) and its first two derivatives, each to rounding: ψ(j/2 + k) − ψ(j + k) is, apart from DigammaStep of odd j, a
/// sum of −1/(k + i).
struct LeonNormaliser {
  double log = 0, slope = 0, curvature = 0;
};
template <int N>
[[nodiscard]] LeonNormaliser leon_normaliser(double k) {
  LeonNormaliser r;
  for (int j = 1; j < N; ++j) {
    const double half = 0.5 * j;
    r.log +=
        std::log(boost::math::tgamma_delta_ratio(half + k, half) / boost::math::tgamma_delta_ratio(half, half));
    if (j % 2 == 1) {
      const int half_before = (j - 1) / 2;
      const DigammaStep step(k + half_before);
      r.slope += step.value;
      r.curvature += step.slope;
    }
    for (int i = (j + 1) / 2; i < j; ++i) {
      const double inverse = 1 / (k + i);
      r.slope -= inverse;
      r.curvature += inverse * inverse;
    }
  }
  return r;
}

/// log det((I + Y)/2), at most 0; −∞ where Y has eigenvalue −1 to rounding.
///
/// Near I as ½ log det(I − DᵀD/4), D = Y − I, by elimination that keeps the pivots' distances from 1. The entries of D off
/// the diagonal hold angles that the diagonal of Y has rounded away.
template <int N, class Scalar>
[[nodiscard]] double log_half_determinant(const SquareMatrix<Scalar, N>& y) {
  const SquareMatrix<double, N> difference = y.template cast<double>() - identity_matrix<double, N>();
  if (difference.squaredNorm() < 1) {
    SquareMatrix<double, N> rest = 0.25 * multiply_tn(difference, difference);
    double sum = 0;
    for (int k = 0; k < N; ++k) {
      sum += std::log1p(-rest(k, k));
      for (int i = k + 1; i < N; ++i) {
        const double factor = rest(i, k) / (1 - rest(k, k));
        for (int j = k + 1; j < N; ++j) rest(i, j) += factor * rest(k, j);
      }
    }
    return 0.5 * sum;
  }
  SquareMatrix<double, N> half = 0.5 * y.template cast<double>();
  for (int i = 0; i < N; ++i) half(i, i) += 0.5;
  const double determinant = pivoted_determinant<double, N>(half);
  return determinant > 0 ? std::log(determinant) : -std::numeric_limits<double>::infinity();
}

/// The x with P(G ≤ x) = u for gamma distributed G of this shape. From 10⁸ on by the cube root of G, which is normal up to
/// an error of 1/shape^{3/2} relative to G. There the series for the incomplete gamma function do not end. Source: Wilson,
/// Hilferty, "The distribution of chi-square", PNAS 17, 1931.
[[nodiscard]] inline double gamma_quantile(double shape, double u) {
  if (shape < 1e8) return boost::math::gamma_p_inv(shape, u);
  const double normal = -1.4142135623730951 * boost::math::erfc_inv(2 * u);
  const double root = 1 - 1 / (9 * shape) + normal / (3 * std::sqrt(shape));
  return shape * root * root * root;
}

}  // namespace sheafnn::detail

namespace sheafnn::rotation {

/// León's Cayley distribution on SO(N): location M, concentration k in [0, 1e150]. Equation: on top of this file;
/// math: "León's distribution" (2.40).
template <int N, class Dtype = double>
class LeonCayleyDistribution {
  static_assert(N >= 2);
  static_assert(std::is_floating_point_v<Dtype>, "a distribution's parameters are float or double");

 public:
  static constexpr int dimension = N;
  static constexpr bool isotropic = true;  ///< about its location
  using Scalar = Dtype;
  using Matrix = SquareMatrix<Scalar, N>;

  /// \param location       M, a rotation; orthonormalised when drifted, see orthonormalised
  /// \param concentration  k in [0, 1e150]: 0 is the uniform distribution, → ∞ a point mass at M
  /// \throws std::invalid_argument  an argument is out of its range
  LeonCayleyDistribution(const Matrix& location, Scalar concentration)
      : location_(orthonormalised<Scalar, N>("LeonCayleyDistribution: location", location)),
        concentration_(concentration) {
    require(concentration >= 0 && static_cast<double>(concentration) <= 1e150 && std::isfinite(concentration),
            "LeonCayleyDistribution: concentration", concentration, "must be in [0, 1e150]");
  }

  [[nodiscard]] const Matrix& location() const noexcept { return location_; }
  [[nodiscard]] Scalar concentration() const noexcept { return concentration_; }

 private:
  Matrix location_;
  Scalar concentration_;
};

/// log f(P); −∞ for k > 0 where PMᵀ has eigenvalue −1. A drifted P is orthonormalised.
///
/// \throws std::invalid_argument  P is not a rotation
template <int N, class Scalar>
[[nodiscard]] Scalar logpdf(const LeonCayleyDistribution<N, Scalar>& distribution,
                            const std::type_identity_t<SquareMatrix<Scalar, N>>& p,
                            const SampleOptions<Scalar>& options = {}) {
  const SquareMatrix<double, N> rotation =
      orthonormalised<Scalar, N>("logpdf: p", p, options).template cast<double>();
  const double k = static_cast<double>(distribution.concentration());
  if (k == 0) return Scalar(0);
  const SquareMatrix<double, N> location = distribution.location().template cast<double>();
  const double power = detail::log_half_determinant<N>(multiply_nt(rotation, location));
  return static_cast<Scalar>(k * power - detail::leon_normaliser<N>(k).log);
}

/// Derivatives of log f(P): ∂/∂k = log det((I + Y)/2) − (log Z)′, M̄ = k (I + Y)⁻¹ P, P̄ = k (I + Y)⁻ᵀ M with
/// Y = PMᵀ.
///
/// \throws std::invalid_argument  P is not a rotation, or Y has eigenvalue −1 to rounding
template <int N, class Scalar>
[[nodiscard]] CayleyLogpdfGradient<Scalar, N> logpdf_gradient(
    const LeonCayleyDistribution<N, Scalar>& distribution, const std::type_identity_t<SquareMatrix<Scalar, N>>& p,
    const SampleOptions<Scalar>& options = {}) {
  const SquareMatrix<double, N> rotation =
      orthonormalised<Scalar, N>("logpdf_gradient: p", p, options).template cast<double>();
  const SquareMatrix<double, N> m = distribution.location().template cast<double>();
  const double k = static_cast<double>(distribution.concentration());
  const SquareMatrix<double, N> y = multiply_nt(rotation, m);
  const double power = detail::log_half_determinant<N>(y);
  require(std::isfinite(power), "logpdf_gradient: p", "a rotation by pi from the location",
          "the density vanishes there and has no derivative");
  const SquareMatrix<double, N> w = k * (y + SquareMatrix<double, N>::Identity()).inverse();
  return {static_cast<Scalar>(power - detail::leon_normaliser<N>(k).slope), (w * rotation).template cast<Scalar>(),
          (w.transpose() * m).template cast<Scalar>()};
}

/// Draws of a stream that a León sample consumes.
template <int N>
inline constexpr std::uint32_t leon_draws = [] {
  std::uint32_t draws = 0;
  for (int d = 2; d <= N; ++d) draws += 1 + static_cast<std::uint32_t>(d + 2) / 4;
  return draws;
}();

/// A sample, exact: a pure function of (stream, id); takes leon_draws<N> draws.
template <int N, class Scalar>
[[nodiscard]] SquareMatrix<Scalar, N> sample(const LeonCayleyDistribution<N, Scalar>& distribution,
                                             const Stream& stream, std::uint32_t id,
                                             std::uint32_t first_draw = 0) {
  const double k = static_cast<double>(distribution.concentration());
  SquareMatrix<double, N> y = identity_matrix<double, N>();
  y(N - 1, N - 1) = -1;
  double a[N + 3];
  std::uint32_t draw = first_draw;
  for (int d = 2; d <= N; ++d) {
    const auto words = stream.words(id, draw++);
    a[0] = std::sqrt(
        2 * detail::gamma_quantile(0.5 * (d - 1) + k, random::fine_uniform(words.word[0], words.word[1])));
    double squared = a[0] * a[0];
    for (int begin = 0; begin < d - 1; begin += 4) {
      const NormalBlock<double> block = normals_from_words<double>(stream.words(id, draw++));
      for (int i = 0; i < 4; ++i) a[1 + begin + i] = block.value[i];
    }
    for (int i = 1; i < d; ++i) squared += a[i] * a[i];
    // Reflect the last d coordinates of the columns that the smaller product has moved, and the new first axis.
    const int first = N - d;
    for (int c = first; c < N; ++c) {
      double sum = 0;
      for (int i = 0; i < d; ++i) sum += a[i] * y(first + i, c);
      sum *= 2 / squared;
      for (int i = 0; i < d; ++i) y(first + i, c) -= sum * a[i];
    }
  }
  return multiply<Scalar, N, N, N>((-y).template cast<Scalar>(), distribution.location());
}

/// Fisher information of one sample: I_k = (log Z)″, and I_φ = k²/(2k − 1) for each coordinate of M ← exp(X_φ) M
/// where k > 1/2. For smaller k it is infinite: the likelihood has cusps, and M is estimated at a faster rate than
/// 1/√n.
template <int N, class Scalar>
[[nodiscard]] RotationInformation<Scalar> fisher_information(
    const LeonCayleyDistribution<N, Scalar>& distribution) {
  const double k = static_cast<double>(distribution.concentration());
  const double location = k > 0.5 ? k * k / (2 * k - 1) : k > 0 ? std::numeric_limits<double>::infinity() : 0.0;
  return {static_cast<Scalar>(detail::leon_normaliser<N>(k).curvature), static_cast<Scalar>(location)};
}

/// KL to the uniform distribution in nats, in closed form: k (log Z)′ − log Z. Where these cancel, k < 1, as the integral of
/// t (log Z)″(t) from 0 to k, to rounding.
template <int N, class Scalar>
[[nodiscard]] Scalar kl_to_uniform(const LeonCayleyDistribution<N, Scalar>& distribution) {
  const double k = static_cast<double>(distribution.concentration());
  if (k < 1) {
    const auto information = [k](double t, double) { return t * detail::leon_normaliser<N>(k * t).curvature; };
    return static_cast<Scalar>(k * k * detail::integrate_unit(information, {.lower = 20, .upper = 40}));
  }
  const detail::LeonNormaliser z = detail::leon_normaliser<N>(k);
  return static_cast<Scalar>(k * z.slope - z.log);
}

/// Length of the mean, E[P] = r M: r = k/(N − 1 + k).
template <int N, class Scalar>
[[nodiscard]] Scalar mean_resultant(const LeonCayleyDistribution<N, Scalar>& distribution) {
  return distribution.concentration() / (Scalar(N - 1) + distribution.concentration());
}

}  // namespace sheafnn::rotation
