/// \file
/// Functions of skew-symmetric matrices that come from outside: checked, for one matrix at a time on the host. Inner code calls
/// exponential_rotation() and cayley_rotation() with φ.
#pragma once

#include <cmath>
#include <limits>

#include "sheafnn/core/errors.hpp"
#include "sheafnn/core/small_matrix.hpp"
#include "sheafnn/rotation/cayley_transform.hpp"
#include "sheafnn/rotation/exponential.hpp"
#include "sheafnn/rotation/operations.hpp"
#include "sheafnn/rotation/skew.hpp"

namespace sheafnn::rotation {

/// φ of a matrix A = −Aᵀ; where A misses that by rounding, of its skew part.
///
/// \param name  what messages call A: one that ends with "A"
/// \throws std::invalid_argument  an entry that is NaN or infinite, or an entry of A + Aᵀ above 4096 ε (1 + the largest of A)
template <class Scalar, int N>
[[nodiscard]] RotationParameters<Scalar, N> parameters_of_skew(const ArgumentName& name,
                                                               const SquareMatrix<Scalar, N>& a) {
  detail::require_finite<Scalar, N>(name, a);
  constexpr Scalar half = Scalar(0.5);  // sums of halves do not overflow
  const Scalar largest = a.cwiseAbs().maxCoeff();
  const Scalar limit = Scalar(4096) * std::numeric_limits<Scalar>::epsilon() * (half + half * largest);
  RotationParameters<Scalar, N> phi;
  for (int j = 0; j < N; ++j) {
    for (int i = j; i < N; ++i) {
      const Scalar sum = half * a(i, j) + half * a(j, i);
      if (!(std::abs(sum) <= limit)) {
        throw_invalid_argument(detail::concat(name, " + A^T (", i, ", ", j, ")"), sum / half, "must be zero");
      }
      if (i > j) phi(detail::column_by_column<N>(i, j)) = a(i, j) - sum;
    }
  }
  return phi;
}

/// exp(A) of a skew-symmetric A, for every finite one. \throws std::invalid_argument  as parameters_of_skew()
template <class Scalar, int N>
[[nodiscard]] SquareMatrix<Scalar, N> rotation_exp(const SquareMatrix<Scalar, N>& a) {
  return exponential_rotation<Scalar, N>(parameters_of_skew<Scalar, N>("rotation_exp: A", a));
}

/// C(A) = (I − A)⁻¹(I + A) of a skew-symmetric A, for every finite one. \throws std::invalid_argument  as
/// parameters_of_skew()
template <class Scalar, int N>
[[nodiscard]] SquareMatrix<Scalar, N> rotation_cayley(const SquareMatrix<Scalar, N>& a) {
  return cayley_rotation<Scalar, N>(parameters_of_skew<Scalar, N>("rotation_cayley: A", a));
}

}  // namespace sheafnn::rotation
