/// \file
/// Facts about given matrices: how far from orthogonal, whether a rotation at all, by which angle it turns. Also what every
/// distribution has that has a log density, a KL divergence to uniform, or a length of its mean.
#pragma once

#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/core/pack.hpp"
#include "sheafnn/core/small_matrix.hpp"

namespace sheafnn::rotation {

/// Largest |(RᵀR − I)_ij|; per lane for packs. Takes any matrix; what is not finite gives NaN.
template <class T, int N>
[[nodiscard]] SHEAFNN_HD inline T orthogonality_defect(const SquareMatrix<T, N>& r) {
  T worst = T(0), nothing = T(0);
  for (int j = 0; j < N; ++j) {
    for (int i = 0; i <= j; ++i) {
      T sum = T(i == j ? -1 : 0);
      for (int k = 0; k < N; ++k) sum += r(k, i) * r(k, j);
      const T size = select(sum < T(0), -sum, sum);
      worst = select(size <= worst, worst, size);
      nothing += T(0) * sum;  // NaN where an entry is not finite
    }
  }
  return worst + nothing;
}

/// How far a user's rotation may be from orthogonal: |(RᵀR − I)_ij| ≤ √ε of the scalar type (1.5e-8 for double, 3.5e-4 for
/// float). So matrices printed with half of their digits are accepted.
template <class Scalar>
[[nodiscard]] inline Scalar rotation_tolerance() {
  return std::sqrt(std::numeric_limits<Scalar>::epsilon());
}

/// How samples from outside are taken, the last argument of fits, goodness of fit and log densities. For rotations of
/// float accuracy held in double: {.tolerance = 1e-5}.
template <class Scalar>
struct SampleOptions {
  /// Largest |(RᵀR − I)_ij| of a rotation R, largest |‖x‖ − 1| of a unit vector x; in [0, 0.01]. A sample within it is
  /// replaced by the nearest rotation or unit vector.
  Scalar tolerance = rotation_tolerance<Scalar>();

  /// \throws std::invalid_argument  a tolerance out of range: a larger defect is not rounding
  void validate() const {
    require(tolerance >= 0 && tolerance <= Scalar(0.01), "SampleOptions: tolerance", tolerance,
            "must be in [0, 0.01]; nearest_rotation() takes any matrix");
  }
};

}  // namespace sheafnn::rotation

namespace sheafnn::detail {

/// det A, by elimination with partial pivoting.
template <class Scalar, int N>
[[nodiscard]] inline Scalar pivoted_determinant(SquareMatrix<Scalar, N> a) {
  Scalar determinant = 1;
  for (int k = 0; k < N; ++k) {
    int pivot = k;
    for (int i = k + 1; i < N; ++i) {
      if (std::abs(a(i, k)) > std::abs(a(pivot, k))) pivot = i;
    }
    if (pivot != k) {
      determinant = -determinant;
      for (int j = k; j < N; ++j) std::swap(a(k, j), a(pivot, j));
    }
    determinant *= a(k, k);
    if (a(k, k) == Scalar(0)) return Scalar(0);
    for (int i = k + 1; i < N; ++i) {
      const Scalar factor = a(i, k) / a(k, k);
      for (int j = k + 1; j < N; ++j) a(i, j) -= factor * a(k, j);
    }
  }
  return determinant;
}

template <class Scalar, int N>
void require_finite(const ArgumentName& name, const SquareMatrix<Scalar, N>& r) {
  for (int j = 0; j < N; ++j) {
    for (int i = 0; i < N; ++i) {
      if (std::isfinite(r(i, j))) continue;
      throw_invalid_argument(concat(name, "(", i, ", ", j, ")"), r(i, j), "entries must be finite");
    }
  }
}

}  // namespace sheafnn::detail

namespace sheafnn::rotation {

/// Refuses a matrix that is not a rotation.
///
/// \param name     what the caller calls the matrix
/// \param options  how far from orthogonal it may be
/// \throws std::invalid_argument  an entry that is NaN or infinite, orthogonality_defect above the tolerance, or a
///         negative determinant; a tolerance out of range
template <class Scalar, int N>
void require_rotation(const ArgumentName& name, const SquareMatrix<Scalar, N>& r,
                      const SampleOptions<Scalar>& options = {}) {
  options.validate();
  detail::require_finite<Scalar, N>(name, r);
  const Scalar defect = orthogonality_defect<Scalar, N>(r);
  if (!(defect <= options.tolerance)) {
    throw_invalid_argument(name, detail::concat("a matrix R with |RᵀR - I| = ", defect),
                           detail::concat("a rotation is orthogonal within ", options.tolerance,
                                          "; nearest_rotation() corrects a rounded matrix"));
  }
  const Scalar determinant = detail::pivoted_determinant<Scalar, N>(r);
  if (!(determinant > 0)) {
    throw_invalid_argument(name, detail::concat("a matrix with determinant ", determinant),
                           "a rotation has determinant +1");
  }
}

/// x/‖x‖ of a vector whose length is 1 up to the tolerance; one of length 1 to rounding comes back bit by bit.
///
/// \param name  what the caller calls the vector
/// \throws std::invalid_argument  another length; a tolerance out of range
template <class Scalar, int P>
[[nodiscard]] Column<Scalar, P> unit_vector(const ArgumentName& name, const Column<Scalar, P>& x,
                                            const SampleOptions<Scalar>& options = {}) {
  options.validate();
  const Scalar norm = x.norm();
  if (!(std::abs(norm - 1) <= options.tolerance)) {
    throw_invalid_argument(name, detail::concat("a vector of length ", norm),
                           detail::concat("must be a unit vector within ", options.tolerance));
  }
  if (std::abs(norm - 1) <= Scalar(4 * P) * std::numeric_limits<Scalar>::epsilon()) return x;
  return x / norm;
}

/// Angle of a rotation in radians: N = 2 counter-clockwise, in [−π, π]; N = 3 about its axis, in [0, π].
///
/// Accurate for every angle: arctan of the skew-symmetric and the symmetric part, not arccos of the trace.
/// Unchecked: that R is a rotation; other matrices give meaningless numbers, and NaN gives NaN.
template <class Scalar, int N>
[[nodiscard]] Scalar rotation_angle(const SquareMatrix<Scalar, N>& r) {
  static_assert(N == 2 || N == 3, "one angle describes a rotation of R² or R³");
  if constexpr (N == 2) {
    return std::atan2(r(1, 0) - r(0, 1), r(0, 0) + r(1, 1));
  } else {
    const Scalar sine = std::hypot(r(2, 1) - r(1, 2), r(0, 2) - r(2, 0), r(1, 0) - r(0, 1));  // 2 sin
    return std::atan2(sine, r(0, 0) + r(1, 1) + r(2, 2) - Scalar(1));                         // 2 cos
  }
}

/// f(P), with respect to normalised Haar measure. \throws std::invalid_argument  P is not a rotation
template <class D, class Scalar = typename D::Scalar>
  requires requires(const D& d, const typename D::Matrix& p) { logpdf(d, p, SampleOptions<Scalar>()); }
[[nodiscard]] Scalar pdf(const D& distribution, const std::type_identity_t<typename D::Matrix>& p,
                         const SampleOptions<Scalar>& options = {}) {
  return std::exp(logpdf(distribution, p, options));
}

/// Entropy with respect to normalised Haar measure, in nats: −KL to uniform, at most 0. Takes any distribution.
template <class D, class Scalar = typename D::Scalar>
  requires requires(const D& d) { kl_to_uniform(d); }
[[nodiscard]] Scalar entropy(const D& distribution) {
  return -kl_to_uniform(distribution);
}

/// E[P] = r M, a multiple of the location, of a distribution that is isotropic about it. Takes any.
template <class D>
  requires(D::isotropic)
[[nodiscard]] typename D::Matrix mean(const D& distribution) {
  return mean_resultant(distribution) * distribution.location();
}

}  // namespace sheafnn::rotation
