/// \file
/// León's Cayley distribution on SO(N): density ∝ det(I + PMᵀ)^k, k ≥ 0, for every N.
///
/// Source: León, Massé, Rivest, "A statistical model for random rotations", J. Multivariate Anal. 97, 2006. With
/// respect to normalised Haar measure, f(P) = det((I + PMᵀ)/2)^k / Z,
///     Z = Π_{j=1}^{N−1} Γ(j/2 + k) Γ(j) / (Γ(j/2) Γ(j + k)),      r = |E P| = k/(N − 1 + k).
/// −P = H(a_N) ⋯ H(a_2) · diag(1, …, 1, −1), a product of reflections, makes det(I + P) a product of independent
/// factors: a_d has d − 1 standard normal entries behind a first entry that is chi distributed with d − 1 + 2k
/// degrees of freedom. Derived in math, "León's distribution".
#pragma once

#include <boost/math/special_functions/digamma.hpp>
#include <boost/math/special_functions/gamma.hpp>
#include <boost/math/special_functions/trigamma.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

// core/eigen.hpp goes before other parts of Eigen.
// clang-format off
#include "sheafnn/core/eigen.hpp"
#include <Eigen/LU>
// clang-format on

#include "sheafnn/core/errors.hpp"
#include "sheafnn/core/small_matrix.hpp"
#include "sheafnn/random/stream.hpp"
#include "sheafnn/rotation/cayley_gradient.hpp"
#include "sheafnn/rotation/operations.hpp"
#include "sheafnn/rotation/orthonormalise.hpp"

namespace sheafnn {

namespace detail {

/// log Z(k) and its first two derivatives.
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
    r.slope += boost::math::digamma(half + k) - boost::math::digamma(j + k);
    r.curvature += boost::math::trigamma(half + k) - boost::math::trigamma(j + k);
  }
  return r;
}

/// log det((I + Y)/2), at most 0; −∞ where Y has eigenvalue −1 to rounding.
template <int N, class Scalar>
[[nodiscard]] double log_half_determinant(const SquareMatrix<Scalar, N>& y) {
  SquareMatrix<double, N> half = 0.5 * y.template cast<double>();
  for (int i = 0; i < N; ++i) half(i, i) += 0.5;
  const double determinant = pivoted_determinant<double, N>(half);
  return determinant > 0 ? std::log(determinant) : -std::numeric_limits<double>::infinity();
}

/// A uniform number in (0, 1) of 53 bits from two words.
[[nodiscard]] inline double fine_uniform(std::uint32_t high, std::uint32_t low) {
  return (static_cast<double>(high) + (static_cast<double>(low >> 11) + 0.5) / 2097152.0) / 4294967296.0;
}

}  // namespace detail

template <int N, class Dtype = double>
class LeonCayleyDistribution {
  static_assert(N >= 2);
  static_assert(std::is_floating_point_v<Dtype>, "a distribution's parameters are float or double");

 public:
  static constexpr int dimension = N;
  using Scalar = Dtype;
  using Matrix = SquareMatrix<Scalar, N>;

  /// \param location       M, a rotation; orthonormalised when drifted, see orthonormalised
  /// \param concentration  k ≥ 0, finite: 0 is the uniform distribution, → ∞ a point mass at M
  /// \throws std::invalid_argument  otherwise
  LeonCayleyDistribution(const Matrix& location, Scalar concentration)
      : location_(orthonormalised<Scalar, N>("LeonCayleyDistribution: location", location)),
        concentration_(concentration) {
    require(concentration >= 0 && concentration <= std::numeric_limits<Scalar>::max(),
            "LeonCayleyDistribution: concentration", concentration, "must be finite and at least 0");
  }

  [[nodiscard]] const Matrix& location() const noexcept { return location_; }
  [[nodiscard]] Scalar concentration() const noexcept { return concentration_; }

 private:
  Matrix location_;
  Scalar concentration_;
};

/// log f(P); −∞ for k > 0 where PMᵀ has eigenvalue −1. A drifted P is orthonormalised.
///
/// \throws std::invalid_argument  P is no rotation
template <int N, class Scalar>
[[nodiscard]] Scalar logpdf(const LeonCayleyDistribution<N, Scalar>& distribution,
                            const std::type_identity_t<SquareMatrix<Scalar, N>>& p,
                            const SampleOptions<Scalar>& options = {}) {
  const SquareMatrix<Scalar, N> rotation = orthonormalised<Scalar, N>("logpdf: p", p, options);
  const double k = static_cast<double>(distribution.concentration());
  if (k == 0) return Scalar(0);
  const double power = detail::log_half_determinant<N>(multiply_nt(rotation, distribution.location()));
  return static_cast<Scalar>(k * power - detail::leon_normaliser<N>(k).log);
}

/// f(P), with respect to normalised Haar measure. \throws std::invalid_argument  P is no rotation
template <int N, class Scalar>
[[nodiscard]] Scalar pdf(const LeonCayleyDistribution<N, Scalar>& distribution,
                         const std::type_identity_t<SquareMatrix<Scalar, N>>& p,
                         const SampleOptions<Scalar>& options = {}) {
  return std::exp(logpdf(distribution, p, options));
}

/// Derivatives of log f(P): ∂/∂k = log det((I + Y)/2) − (log Z)′, M̄ = k (I + Y)⁻¹ P, P̄ = k (I + Y)⁻ᵀ M with
/// Y = PMᵀ.
///
/// \throws std::invalid_argument  P is no rotation, or Y has eigenvalue −1 to rounding
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
        2 * boost::math::gamma_p_inv(0.5 * (d - 1) + k, detail::fine_uniform(words.word[0], words.word[1])));
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

/// KL to the uniform distribution in nats, in closed form: k (log Z)′ − log Z.
template <int N, class Scalar>
[[nodiscard]] Scalar kl_to_uniform(const LeonCayleyDistribution<N, Scalar>& distribution) {
  const double k = static_cast<double>(distribution.concentration());
  const detail::LeonNormaliser z = detail::leon_normaliser<N>(k);
  return static_cast<Scalar>(k * z.slope - z.log);
}

/// Entropy with respect to normalised Haar measure, in nats: −KL to uniform.
template <int N, class Scalar>
[[nodiscard]] Scalar entropy(const LeonCayleyDistribution<N, Scalar>& distribution) {
  return -kl_to_uniform(distribution);
}

/// Length of the mean, E[P] = r M: r = k/(N − 1 + k).
template <int N, class Scalar>
[[nodiscard]] Scalar mean_resultant(const LeonCayleyDistribution<N, Scalar>& distribution) {
  return distribution.concentration() / (Scalar(N - 1) + distribution.concentration());
}

/// E[P] = r M.
template <int N, class Scalar>
[[nodiscard]] SquareMatrix<Scalar, N> mean(const LeonCayleyDistribution<N, Scalar>& distribution) {
  return mean_resultant(distribution) * distribution.location();
}

}  // namespace sheafnn
