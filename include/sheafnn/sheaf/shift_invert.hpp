/// \file
/// The smallest eigenpairs of a sparse symmetric matrix by Krylov spaces of its shifted inverse.
///
/// L + σI = P (M D Mᵀ) Pᵀ is factorised once, since L is singular where H⁰ ≠ 0. The shift σ is √ε times a bound on the
/// spectrum, or larger if L was rounded to single precision. Powers of A = (L + σI)⁻¹ on a block X of vectors, as many as are
/// wanted and a few more, span
///
///     K = span(X, AX, A²X, …),
///
/// in which a Rayleigh–Ritz step with L itself finds the pairs. A full space is restarted from the best half of its
/// vectors. Eigenvalues that are small and close together in L lie far apart in A; the block finds repeated ones. Rows
/// are ordered by the graph: eliminating its nodes gives the number of entries of the factor in advance.
/// Source: Wu, Simon, "Thick-restart Lanczos method for large symmetric eigenvalue problems", SIAM Journal on Matrix
/// Analysis and Applications 22 (2000). Here it has a block, full orthogonalisation and L in the Rayleigh–Ritz step.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "sheafnn/core/config.hpp"
#include "sheafnn/sheaf/chebyshev_subspace.hpp"
#include "sheafnn/sheaf/sparse_factor.hpp"

namespace sheafnn::detail {

/// Column counts for `count` pairs: of the block, of the vectors that a restart keeps, and of the largest
/// subspace.
struct KrylovSizes {
  Index block, kept, columns;
  explicit KrylovSizes(Index count)
      : block(count + 4), kept(block * std::clamp<Index>(80 / block, 1, 6)), columns(2 * kept + 2 * block) {}
};

/// Makes the columns of X orthonormal, and orthogonal to the columns of K.
///
/// What is left of a vector that the space already holds is rounding, and QR completes columns that depend on each other
/// with any directions. Neither is orthogonal to the space. Hence several passes. The last pass begins with orthonormal
/// columns and C = KᵀX of ‖C‖_F² ≤ 0.19. So (I − KKᵀ)X has no singular value below √(1 − 0.19) = 0.9, and rounding does not
/// grow. Columns that vanish, as all may once the space holds A times itself, become random ones. Columns of which little is
/// left stay: a vector that has almost converged adds such a column.
///
/// \param space  K, orthonormal columns
/// \param next   X, with at most as many columns as the complement of K has dimensions
/// \param seed   of random columns; counted up
template <class Real>
void make_orthonormal(const VectorBlockRef<Real>& space, VectorBlock<Real>& next, std::uint64_t& seed) {
  bool done = false;
  for (int pass = 0; pass < 8 && !done; ++pass) {
    const Eigen::VectorX<Real> before = next.colwise().norm().transpose();
    const Eigen::MatrixX<Real> coordinates = inner_products<Real>(space, next);
    next -= combinations<Real>(space, coordinates);
    done = pass > 0 && coordinates.squaredNorm() <= 0.19;
    for (Index j = 0; j < next.cols(); ++j) {
      if (next.col(j).norm() > 64 * std::numeric_limits<Real>::epsilon() * before(j)) continue;
      next.col(j) = random_columns<Real>(next.rows(), 1, ++seed);
      done = false;
    }
    next = orthonormal_columns(next);
  }
}

/// The `count` smallest Ritz pairs with residuals of at most tolerance · bound.
///
/// \param bound  no eigenvalue of the matrix is above; positive
template <class Real>
[[nodiscard]] RitzPairs<Real> shift_invert_pairs(const SparseFactor& inverse, Index rows, double bound,
                                                 Index count, double tolerance, Index max_iterations,
                                                 std::uint64_t seed) {
  const KrylovSizes sizes(count);
  VectorBlock<Real> basis(rows, sizes.columns), images(rows, sizes.columns);  // the first `known` columns are set
  VectorBlock<Real> next = orthonormal_columns(random_columns<Real>(rows, sizes.block, seed));
  Index known = 0;
  const auto append = [&] {
    basis.middleCols(known, next.cols()) = next;
    images.middleCols(known, next.cols()) = inverse.apply(next);
    known += next.cols();
  };
  append();
  for (Index i = 1;; ++i) {
    while (known + next.cols() <= sizes.columns) {
      next = inverse.solve(next);
      make_orthonormal<Real>(basis.leftCols(known), next, seed);
      append();
    }
    RitzPairs<Real> pairs = rayleigh_ritz<Real>(basis.leftCols(known), images.leftCols(known), sizes.kept);
    if (converged(pairs, count, bound, tolerance, i, max_iterations)) {
      pairs.vectors = inverse.in_order(pairs.vectors);
      return pairs;
    }
    basis.leftCols(sizes.kept) = pairs.vectors;
    images.leftCols(sizes.kept) = pairs.images;
    known = sizes.kept;
    // What has converged has nothing but rounding to add: further copies of repeated eigenvalues, from the start.
    Index open = 0;
    for (Index j = 0; j < sizes.block; ++j) {
      if (pairs.residual_of(j) > 0.1 * tolerance * bound) pairs.vectors.col(open++) = pairs.vectors.col(j);
    }
    next = pairs.vectors.leftCols(open);
  }
}

}  // namespace sheafnn::detail
