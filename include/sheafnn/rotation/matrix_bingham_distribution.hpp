/// \file
/// The matrix Bingham distribution on SO(N): density exp(tr B PᵀAP)/c(A, B) with respect to normalised Haar measure, for any
/// symmetric A and B.
///
/// In the frames A = U diag(a) Uᵀ, B = V diag(b) Vᵀ, a and b in decreasing order, S = UᵀPV has log f = −Σ C_ij S_ij² − log E e^{−H}
/// (matrix_bingham_normaliser.hpp). The 2^{N−1} rotations U diag(±1) Vᵀ are its modes, P and −P for even N are equally likely, and
/// E[P] = 0. A + λI and B + λI give the same distribution. B = diag(d) is the form exp tr(PᵀAP D) of one matrix. For N ≥ 4 the
/// density is offered up to its constant. Source: Khatri, Mardia, J. R. Stat. Soc. B 39, 1977; Prentice, Biometrika 69, 1982; math:
/// "Matrix Bingham distribution" (2.53)–(2.55).
#pragma once

#include "sheafnn/core/eigen.hpp"

#include <Eigen/Eigenvalues>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "sheafnn/core/errors.hpp"
#include "sheafnn/core/small_matrix.hpp"
#include "sheafnn/random/stream.hpp"
#include "sheafnn/rotation/matrix_bingham_normaliser.hpp"
#include "sheafnn/rotation/matrix_bingham_sampler.hpp"
#include "sheafnn/rotation/operations.hpp"
#include "sheafnn/rotation/orthonormalise.hpp"
#include "sheafnn/rotation/unit_quadrature.hpp"

namespace sheafnn::detail {

/// Eigenvalues in decreasing order and a rotation of eigenvectors of a symmetric matrix.
template <int N>
struct SymmetricFrame {
  Column<double, N> values;
  SquareMatrix<double, N> vectors;

  explicit SymmetricFrame(const SquareMatrix<double, N>& a) {
    // Without its trace, which has no effect, the gaps keep more digits.
    const double centre = a.trace() / N;
    const Eigen::SelfAdjointEigenSolver<SquareMatrix<double, N>> solver(a - centre * identity_matrix<double, N>());
    values = solver.eigenvalues().reverse();
    vectors = solver.eigenvectors().rowwise().reverse();
    if (pivoted_determinant<double, N>(vectors) < 0) vectors.col(N - 1) *= -1;
  }
  [[nodiscard]] EigenvalueGaps<N> gaps() const {
    return values.template head<N - 1>() - values.template tail<N - 1>();
  }
};

/// What the distribution has besides its density up to a constant.
template <int N>
struct MatrixBinghamOperations {
  MatrixBinghamNormaliser<N> normaliser;
  MatrixBinghamSampler<N> sampler;
  MatrixBinghamOperations(const EigenvalueGaps<N>& a, const EigenvalueGaps<N>& b)
      : normaliser(matrix_bingham_normaliser(a, b)), sampler(a, b) {}
};
template <int N>
  requires(N > 3)
struct MatrixBinghamOperations<N> {
  MatrixBinghamOperations(const EigenvalueGaps<N>&, const EigenvalueGaps<N>&) {}
};

}  // namespace sheafnn::detail

namespace sheafnn::rotation {

/// The matrix Bingham distribution on SO(N) with parameters A and B. Equation: on top of this file.
template <int N = 3, class Dtype = double>
class MatrixBinghamDistribution {
  static_assert(N >= 2);
  static_assert(std::is_floating_point_v<Dtype>, "a distribution's parameters are float or double");

 public:
  static constexpr int dimension = N;
  /// Whether the normaliser, and with it normalised densities, samples and KL, are offered.
  static constexpr bool has_normaliser = N <= 3;
  using Scalar = Dtype;
  using Matrix = SquareMatrix<Scalar, N>;

  /// \param outer  A, symmetric to √ε of its largest entry
  /// \param inner  B, symmetric as well; the product of their largest entries is at most 1e100 (float: 1e30)
  /// \throws std::invalid_argument  otherwise
  MatrixBinghamDistribution(const Matrix& outer, const Matrix& inner)
      : outer_(checked("MatrixBinghamDistribution: outer", outer)),
        inner_(checked("MatrixBinghamDistribution: inner", inner)),
        outer_frame_(scaled_apart(outer_, inner_)),
        inner_frame_(inner_.template cast<double>()),
        cost_(detail::matrix_bingham_costs<N>(outer_frame_.gaps(), inner_frame_.gaps())),
        operations_(outer_frame_.gaps(), inner_frame_.gaps()) {}

  /// A.
  [[nodiscard]] const Matrix& outer() const noexcept { return outer_; }
  /// B.
  [[nodiscard]] const Matrix& inner() const noexcept { return inner_; }
  /// U, V and the eigenvalues of A and B minus their means, in double.
  [[nodiscard]] const detail::SymmetricFrame<N>& outer_frame() const noexcept { return outer_frame_; }
  [[nodiscard]] const detail::SymmetricFrame<N>& inner_frame() const noexcept { return inner_frame_; }
  /// C.
  [[nodiscard]] const SquareMatrix<double, N>& cost() const noexcept { return cost_; }
  /// One of the modes, UVᵀ.
  [[nodiscard]] Matrix location() const { return modes().front(); }
  /// The 2^{N−1} modes U diag(±1) Vᵀ, UVᵀ first; if eigenvalues are equal, there are further modes.
  [[nodiscard]] std::vector<Matrix> modes() const {
    std::vector<Matrix> r;
    for (unsigned signs = 0; signs < 1U << (N - 1); ++signs) {
      SquareMatrix<double, N> u = outer_frame_.vectors;
      for (int i = 0; i + 1 < N; ++i) {
        if ((signs >> i & 1U) == 0) continue;
        u.col(i) *= -1;
        u.col(N - 1) *= -1;
      }
      r.push_back((u * inner_frame_.vectors.transpose()).template cast<Scalar>());
    }
    return r;
  }
  /// log E e^{−H}, E[S_ij²] and the moments of H.
  [[nodiscard]] const detail::MatrixBinghamNormaliser<N>& normaliser() const noexcept requires(has_normaliser) {
    return operations_.normaliser;
  }
  /// log c(A, B).
  [[nodiscard]] double log_normaliser() const requires(has_normaliser) {
    const double traces = static_cast<double>(outer_.trace()) * static_cast<double>(inner_.trace()) / N;
    return traces + outer_frame_.values.dot(inner_frame_.values) + normaliser().log_scaled;
  }
  [[nodiscard]] const detail::MatrixBinghamSampler<N>& sampler() const noexcept requires(has_normaliser) {
    return operations_.sampler;
  }

 private:
  static Matrix checked(const char* name, const Matrix& parameter) {
    detail::require_finite<Scalar, N>(name, parameter);
    const Scalar size = parameter.cwiseAbs().maxCoeff();
    const Scalar skew = (parameter - parameter.transpose()).cwiseAbs().maxCoeff();
    require(skew <= rotation_tolerance<Scalar>() * size, name, detail::concat("a matrix A with |A - Aᵀ| = ", skew),
            "must be symmetric");
    return Scalar(0.5) * (parameter + parameter.transpose());
  }
  static SquareMatrix<double, N> scaled_apart(const Matrix& outer, const Matrix& inner) {
    const double size = static_cast<double>(outer.cwiseAbs().maxCoeff()),
                 other = static_cast<double>(inner.cwiseAbs().maxCoeff());
    const double largest = std::is_same_v<Scalar, float> ? 1e30 : 1e100;
    require(size <= largest / other && size <= 1e200 && other <= 1e200, "MatrixBinghamDistribution: outer",
            detail::concat("entries up to ", size, " beside an inner matrix with entries up to ", other),
            detail::concat("their product must be at most ", largest));
    return outer.template cast<double>();
  }

  Matrix outer_, inner_;
  detail::SymmetricFrame<N> outer_frame_, inner_frame_;
  SquareMatrix<double, N> cost_;
  detail::MatrixBinghamOperations<N> operations_;
};

}  // namespace sheafnn::rotation

namespace sheafnn::detail {

/// S = UᵀPV of a rotation P.
template <int N, class Scalar>
[[nodiscard]] SquareMatrix<double, N> framed(const rotation::MatrixBinghamDistribution<N, Scalar>& distribution,
                                             const SquareMatrix<Scalar, N>& p) {
  const SquareMatrix<double, N> rotation = rotation::orthonormalisation_step<double, N>(p.template cast<double>());
  return distribution.outer_frame().vectors.transpose() * rotation * distribution.inner_frame().vectors;
}

}  // namespace sheafnn::detail

namespace sheafnn::rotation {

/// log f(P) − log f(mode), at most 0, for every N. \throws std::invalid_argument  P is not a rotation
template <int N, class Scalar>
[[nodiscard]] Scalar log_density_to_mode(const MatrixBinghamDistribution<N, Scalar>& distribution,
                                         const std::type_identity_t<SquareMatrix<Scalar, N>>& p,
                                         const SampleOptions<Scalar>& options = {}) {
  const auto rotation = orthonormalised<Scalar, N>("logpdf: p", p, options);
  const SquareMatrix<double, N> s = detail::framed<N, Scalar>(distribution, rotation);
  return static_cast<Scalar>(-distribution.cost().cwiseProduct(s.cwiseProduct(s)).sum());
}

/// log f(P); a drifted P is orthonormalised. \throws std::invalid_argument  P is not a rotation
template <int N, class Scalar>
  requires(N <= 3)
[[nodiscard]] Scalar logpdf(const MatrixBinghamDistribution<N, Scalar>& distribution,
                            const std::type_identity_t<SquareMatrix<Scalar, N>>& p,
                            const SampleOptions<Scalar>& options = {}) {
  const auto rotation = orthonormalised<Scalar, N>("logpdf: p", p, options);
  const SquareMatrix<double, N> s = detail::framed<N, Scalar>(distribution, rotation);
  return static_cast<Scalar>(-distribution.cost().cwiseProduct(s.cwiseProduct(s)).sum() -
                             distribution.normaliser().log_scaled);
}

/// Derivatives of log f(P). For N ≥ 4 the derivatives in A and B, which need the normaliser, are 0.
template <int N, class Scalar>
struct MatrixBinghamGradient {
  SquareMatrix<Scalar, N> outer;     ///< Ā = PBPᵀ − E[PBPᵀ], of a free matrix
  SquareMatrix<Scalar, N> inner;     ///< B̄ = PᵀAP − E[PᵀAP], of a free matrix
  SquareMatrix<Scalar, N> argument;  ///< P̄ = −2U(C∘S)Vᵀ: along SO(N) it is 2APB, without cancellation
};

/// E[PBPᵀ] and E[PᵀAP] are the derivatives of log c(A, B) in A and B. \throws std::invalid_argument  P is not a rotation
template <int N, class Scalar>
[[nodiscard]] MatrixBinghamGradient<N, Scalar> logpdf_gradient(
    const MatrixBinghamDistribution<N, Scalar>& distribution,
    const std::type_identity_t<SquareMatrix<Scalar, N>>& p, const SampleOptions<Scalar>& options = {}) {
  const auto rotation = orthonormalised<Scalar, N>("logpdf_gradient: p", p, options);
  const SquareMatrix<double, N> s = detail::framed<N, Scalar>(distribution, rotation);
  const SquareMatrix<double, N>&u = distribution.outer_frame().vectors, &v = distribution.inner_frame().vectors;
  MatrixBinghamGradient<N, Scalar> r;
  r.argument = (-2 * (u * distribution.cost().cwiseProduct(s) * v.transpose())).template cast<Scalar>();
  r.outer.setZero();
  r.inner.setZero();
  if constexpr (N <= 3) {
    const Column<double, N>&a = distribution.outer_frame().values, &b = distribution.inner_frame().values;
    const SquareMatrix<double, N>& squares = distribution.normaliser().squares;
    SquareMatrix<double, N> outer = s * b.asDiagonal() * s.transpose();
    SquareMatrix<double, N> inner = s.transpose() * a.asDiagonal() * s;
    outer.diagonal() -= squares * b;
    inner.diagonal() -= squares.transpose() * a;
    r.outer = (u * outer * u.transpose()).template cast<Scalar>();
    r.inner = (v * inner * v.transpose()).template cast<Scalar>();
  }
  return r;
}

/// A sample, exact, by rejection: a pure function of (stream, id); takes two draws for each proposal, from first_draw on.
template <int N, class Scalar>
  requires(N <= 3)
[[nodiscard]] SquareMatrix<Scalar, N> sample(const MatrixBinghamDistribution<N, Scalar>& distribution,
                                             const Stream& stream, std::uint32_t id,
                                             std::uint32_t first_draw = 0) {
  const SquareMatrix<double, N> s = distribution.sampler()(stream, id, first_draw);
  return (distribution.outer_frame().vectors * s * distribution.inner_frame().vectors.transpose())
      .template cast<Scalar>();
}

/// KL to the uniform distribution in nats: −E H − log E e^{−H}. Where these cancel, C < 1, it is ∫₀¹ t Var_t(H) dt with the
/// variance for tA.
template <int N, class Scalar>
  requires(N <= 3)
[[nodiscard]] Scalar kl_to_uniform(const MatrixBinghamDistribution<N, Scalar>& distribution) {
  if (distribution.cost().maxCoeff() < 1) {
    const auto a = distribution.outer_frame().gaps(), b = distribution.inner_frame().gaps();
    return static_cast<Scalar>(detail::integrate_parts(
        [&](double t) {
          return t > 0 ? detail::matrix_bingham_normaliser(detail::EigenvalueGaps<N>(t * a), b).cost_variance / t
                       : 0.0;
        },
        0, 1, 1));
  }
  return static_cast<Scalar>(-distribution.normaliser().mean_cost - distribution.normaliser().log_scaled);
}

/// E[P] = 0: S and S with two rows of the opposite sign are equally likely.
template <int N, class Scalar>
[[nodiscard]] SquareMatrix<Scalar, N> mean(const MatrixBinghamDistribution<N, Scalar>&) {
  return SquareMatrix<Scalar, N>::Zero();
}
/// The length of the mean: 0.
template <int N, class Scalar>
[[nodiscard]] Scalar mean_resultant(const MatrixBinghamDistribution<N, Scalar>&) {
  return Scalar(0);
}

/// Derivatives of log c(A, B) in free matrices A and B; the ones in the eigenvalues are their diagonals in the frames.
template <int N, class Scalar>
struct MatrixBinghamNormaliserGradient {
  SquareMatrix<Scalar, N> outer;  ///< E[PBPᵀ]
  SquareMatrix<Scalar, N> inner;  ///< E[PᵀAP]
};

/// The gradient of log c(A, B), from the second moments of S.
template <int N, class Scalar>
  requires(N <= 3)
[[nodiscard]] MatrixBinghamNormaliserGradient<N, Scalar> log_normaliser_gradient(
    const MatrixBinghamDistribution<N, Scalar>& distribution) {
  const SquareMatrix<double, N>&u = distribution.outer_frame().vectors, &v = distribution.inner_frame().vectors;
  const SquareMatrix<double, N>& squares = distribution.normaliser().squares;
  Column<double, N> outer = squares * distribution.inner_frame().values;
  Column<double, N> inner = squares.transpose() * distribution.outer_frame().values;
  outer.array() += static_cast<double>(distribution.inner().trace()) / N;
  inner.array() += static_cast<double>(distribution.outer().trace()) / N;
  return {(u * outer.asDiagonal() * u.transpose()).template cast<Scalar>(),
          (v * inner.asDiagonal() * v.transpose()).template cast<Scalar>()};
}

}  // namespace sheafnn::rotation
