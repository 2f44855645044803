/// \file
/// The Cayley distribution C_N(M, κ) on SO(N): density, reparametrised sampling and its derivative, KL to uniform.
///
/// Density with respect to normalised Haar measure: f(P) = (1 − κ²)^{N(N−1)/2} det(PMᵀ − κI)^{1−N}. N = 2 is the
/// wrapped Cauchy distribution, N = 3 an angular central Gaussian distribution of quaternions. Source: paper, "Cayley
/// distributions"; math, "Cayley distribution" (2.5).
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/core/pack.hpp"
#include "sheafnn/core/small_matrix.hpp"
#include "sheafnn/random/stream.hpp"
#include "sheafnn/rotation/cayley_kl.hpp"
#include "sheafnn/rotation/haar.hpp"
#include "sheafnn/rotation/moebius.hpp"
#include "sheafnn/rotation/operations.hpp"
#include "sheafnn/rotation/orthonormalise.hpp"

namespace sheafnn::rotation {

/// log f at a rotation with Y₀ = PMᵀ: (N − 1) [N/2 · log(1 − κ²) − log det(I − κY₀)], as det(Y₀ − κI) equals the
/// latter determinant.
///
/// Over T = float, double or Pack; the pivots' logarithms are summed, so nothing underflows. The symmetric part of
/// I − κY₀ is ≥ (1 − κ) I, and so is every pivot; eigenvalues have sizes from 1 − κ to 1 + κ. As κ → 1
/// and Y₀ → I, where they are rounding errors, pivots and determinant are clamped to these ranges.
///
/// \param kappa  in [0, 1)
/// Unchecked: that Y₀ is a rotation, and the range of κ.
template <class T, int N>
[[nodiscard]] SHEAFNN_HD inline T cayley_logpdf(const SquareMatrix<T, N>& y, const T& kappa) {
  using std::log;
  SquareMatrix<T, N> a;
  for (int j = 0; j < N; ++j) {
    for (int i = 0; i < N; ++i) a(i, j) = (i == j ? T(1) : T(0)) - kappa * y(i, j);
  }
  const T log_least = log(T(1) - kappa);
  const T log_most = log(T(1) + kappa);
  T log_determinant = T(0);
  for (int k = 0; k < N; ++k) {
    const T pivot = select(a(k, k) < T(1) - kappa, T(1) - kappa, a(k, k));
    log_determinant += log(pivot);
    const T inverse_pivot = T(1) / pivot;
    for (int i = k + 1; i < N; ++i) {
      const T factor = a(i, k) * inverse_pivot;
      for (int j = k + 1; j < N; ++j) a(i, j) -= factor * a(k, j);
    }
  }
  log_determinant =
      select(log_determinant >= T(N) * log_least, log_determinant, T(N) * log_least);  // also for NaN
  log_determinant = select(log_determinant <= T(N) * log_most, log_determinant, T(N) * log_most);
  return T(N - 1) * (T(0.5 * N) * (log_least + log_most) - log_determinant);
}

/// The Cayley distribution C_N(M, κ) on SO(N): location M, concentration κ in [0, 1), 0 uniform. Equation: on top of this
/// file; math: "Cayley distribution" (2.5).
template <int N, class Dtype = double>
class CayleyDistribution {
  static_assert(N >= 1);
  static_assert(std::is_floating_point_v<Dtype>, "a distribution's parameters are float or double");

 public:
  static constexpr int dimension = N;
  static constexpr bool isotropic = true;  ///< about its location
  using Scalar = Dtype;
  using Matrix = SquareMatrix<Scalar, N>;

  /// \param location       M, a rotation (orthogonal within rotation_tolerance, determinant +1); what rounding has
  ///                       moved from orthogonality is orthonormalised
  /// \param concentration  κ in [0, 1): 0 is the uniform distribution, → 1 a point mass at M
  /// \throws std::invalid_argument  an argument is out of its range
  CayleyDistribution(const Matrix& location, Scalar concentration)
      : location_(orthonormalised<Scalar, N>("CayleyDistribution: location", location)),
        concentration_(concentration) {
    require(concentration >= 0 && concentration < 1, "CayleyDistribution: concentration", concentration,
            "must be in [0, 1)");
  }

  [[nodiscard]] const Matrix& location() const noexcept { return location_; }
  [[nodiscard]] Scalar concentration() const noexcept { return concentration_; }

 private:
  Matrix location_;
  Scalar concentration_;
};

/// log f(P); a drifted P is orthonormalised first. math: "Cayley distribution" (2.5).
///
/// As κ → 1 the density varies over angles of 1 − κ, of which rounded entries of P and M leave ε. The error is about N² ε/(1
/// − κ) where P is that close to M, and N² ε elsewhere.
///
/// \throws std::invalid_argument  P is not a rotation
template <int N, class Scalar>
[[nodiscard]] Scalar logpdf(const CayleyDistribution<N, Scalar>& distribution,
                            const std::type_identity_t<SquareMatrix<Scalar, N>>& p,
                            const SampleOptions<Scalar>& options = {}) {
  const SquareMatrix<Scalar, N> rotation = orthonormalised<Scalar, N>("logpdf: p", p, options);
  return cayley_logpdf<Scalar, N>(multiply_nt(rotation, distribution.location()), distribution.concentration());
}

/// The sample that belongs to a uniform rotation U: Y = (I + κU)⁻¹(U + κI) M.
///
/// Where U has an eigenvalue within δ of −1 and κ is close to 1, rounding moves Y₀ by about ε/max(δ, 1 − κ) from
/// orthogonality. It is orthonormalised.
/// Unchecked: that U is a rotation; other matrices give meaningless numbers, and NaN gives NaN.
template <int N, class Scalar>
[[nodiscard]] SquareMatrix<Scalar, N> sample_from_uniform(const CayleyDistribution<N, Scalar>& distribution,
                                                          const std::type_identity_t<SquareMatrix<Scalar, N>>& u) {
  constexpr Scalar rounding = Scalar(4 * N) * std::numeric_limits<Scalar>::epsilon();
  SquareMatrix<Scalar, N> y = moebius<Scalar, N>(u, distribution.concentration());
  for (int step = 0; step < 4 && orthogonality_defect<Scalar, N>(y) > rounding; ++step) {
    y = orthonormalisation_step<Scalar, N>(y);
  }
  return multiply(y, distribution.location());
}

/// A sample: a pure function of (stream, id); takes draws first_draw … first_draw + haar_draws<N> − 1.
/// math: "Sampling without the singularity" (2.7).
template <int N, class Scalar>
[[nodiscard]] SquareMatrix<Scalar, N> sample(const CayleyDistribution<N, Scalar>& distribution,
                                             const Stream& stream, std::uint32_t id,
                                             std::uint32_t first_draw = 0) {
  return sample_from_uniform(distribution, haar_rotation<Scalar, N>(stream, id, first_draw));
}

/// Cotangents of a Cayley distribution's parameters.
template <int N, class Scalar>
struct CayleyCotangent {
  SquareMatrix<Scalar, N> location;  ///< M̄, of M as a free matrix
  Scalar concentration;              ///< κ̄
};

/// Cotangents of M and κ, given the cotangent of the sample Y of U: M̄ = Y₀ᵀȲ, κ̄ = ⟨ȲMᵀ, dY₀/dκ⟩ (math,
/// "Sampling without the singularity" (2.10)).
///
/// \param u          the uniform rotation the sample came from, e.g. haar_rotation<Scalar, N>(stream, id)
/// \param cotangent  Ȳ
/// Unchecked: that U is a rotation; other matrices give meaningless numbers, and NaN gives NaN.
template <int N, class Scalar>
[[nodiscard]] CayleyCotangent<N, Scalar> sample_backward(
    const CayleyDistribution<N, Scalar>& distribution, const std::type_identity_t<SquareMatrix<Scalar, N>>& u,
    const std::type_identity_t<SquareMatrix<Scalar, N>>& cotangent) {
  const Scalar kappa = distribution.concentration();
  const SquareMatrix<Scalar, N> y = moebius<Scalar, N>(u, kappa);
  const SquareMatrix<Scalar, N> slope = moebius_derivative_from_noise<Scalar, N>(u, y, kappa);
  return {multiply_tn(y, cotangent), inner_product(multiply_nt(cotangent, distribution.location()), slope)};
}

/// KL(C_N(M, κ) ‖ uniform) in nats, see cayley_kl.
template <int N, class Scalar>
[[nodiscard]] Scalar kl_to_uniform(const CayleyDistribution<N, Scalar>& distribution) {
  return cayley_kl<N>(distribution.concentration());
}

/// r_N(κ), the length of the mean: E[Y] = r_N(κ) M (see cayley_resultant).
template <int N, class Scalar>
[[nodiscard]] Scalar mean_resultant(const CayleyDistribution<N, Scalar>& distribution) {
  return cayley_resultant<N>(distribution.concentration());
}

}  // namespace sheafnn::rotation
