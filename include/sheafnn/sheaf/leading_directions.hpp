/// \file
/// leading_directions(): left singular vectors of a matrix of differences X̂, p × N, for its largest singular values.
///
/// They come from the eigenvectors V of the Gram matrix X̂ᵀX̂ (or X̂X̂ᵀ, where that is smaller). One Rayleigh–Ritz step in the
/// span of X̂V then makes them orthonormal to rounding. Small matrices, and those whose Gram matrix has lost the small singular
/// values, are decomposed themselves. Large Gram matrices are multiplied with a block of vectors. Source: math: "Connections".
///
/// The functions are templates so that only programs that call them compile Eigen's decompositions, which take fifteen seconds.
#pragma once

#include "sheafnn/core/eigen.hpp"

#include <Eigen/Eigenvalues>
#include <Eigen/QR>
#include <Eigen/SVD>
#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/random/stream.hpp"

namespace sheafnn::detail {

/// Orthonormal directions on some of the rows of a larger matrix, whose other rows are 0.
template <class Real>
struct Directions {
  std::vector<std::int32_t> rows;
  Eigen::MatrixX<Real> basis;  ///< |rows| × rank
  [[nodiscard]] Index rank() const noexcept { return basis.cols(); }
};

/// Singular values below this part of the largest count as 0.
inline constexpr double rank_tolerance = 1e-10;

/// Eigenvectors of a symmetric positive semidefinite matrix for its `count` largest eigenvalues, largest first.
template <class Real>
[[nodiscard]] Eigen::MatrixX<Real> leading_eigenvectors(const Eigen::MatrixX<Real>& gram, Index count) {
  using Matrix = Eigen::MatrixX<Real>;
  using Vector = Eigen::VectorX<Real>;
  constexpr Index small = 384, most_steps = 400;
  const Index n = gram.rows();
  if (n > small) {
    const Index width = count + 8;
    Matrix block(n, width);
    for (Index j = 0; j < width; ++j) {
      for (Index i = 0; i < n; ++i) {
        double normal[1];
        fill_normals<1>(normal, Stream{.seed = 1}, static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(j));
        block(i, j) = normal[0];
      }
    }
    double before = std::numeric_limits<double>::infinity();
    for (Index step = 0; step < most_steps; ++step) {
      const Matrix basis = Eigen::HouseholderQR<Matrix>(block).householderQ() * Matrix::Identity(n, width);
      block.noalias() = gram * basis;
      if (step % 5 != 4) continue;
      const Eigen::SelfAdjointEigenSolver<Matrix> ritz(Matrix(basis.transpose() * block));
      const Matrix y = ritz.eigenvectors().rightCols(count).rowwise().reverse();
      const Vector values = ritz.eigenvalues().tail(count).reverse();
      const Matrix vectors = basis * y;
      const double residual = (block * y - vectors * values.asDiagonal()).norm();
      // Rounding bounds it from below; until there it falls with every step.
      if (residual <= 1e-12 * values(0) && residual > 0.8 * before) return vectors;
      before = residual;
    }
  }
  const Eigen::SelfAdjointEigenSolver<Matrix> eigen(gram);
  return eigen.eigenvectors().rightCols(count).rowwise().reverse();
}

/// The left singular vectors of `x`, p × N, for its `count` largest singular values, largest first; fewer where the rank is
/// smaller. Unchecked: count ≥ 1, entries are finite.
template <class Real>
[[nodiscard]] Eigen::MatrixX<Real> leading_directions(const Eigen::MatrixX<Real>& x, Index count) {
  using Matrix = Eigen::MatrixX<Real>;
  using Vector = Eigen::VectorX<Real>;
  // The Gram matrix has the squares of singular values: below this part of the largest, rounding turns their vectors.
  constexpr double resolved = 1e-2;
  constexpr Index small = 48;
  const Index p = x.rows(), members = x.cols(), size = std::min(p, members);
  const double scale = size > 0 ? x.cwiseAbs().maxCoeff() : 0;
  if (scale == 0) return Matrix(p, 0);
  const Matrix a = x / scale;
  if (size > small) {
    Matrix span;
    if (members <= p) {
      span.noalias() = a * leading_eigenvectors<Real>(a.transpose() * a, count);
    } else {
      span = leading_eigenvectors<Real>(a * a.transpose(), count);
    }
    const Matrix q = Eigen::HouseholderQR<Matrix>(span).householderQ() * Matrix::Identity(p, count);
    const Eigen::JacobiSVD<Matrix> within((a.transpose() * q).eval(), Eigen::ComputeThinV);
    const Vector& sigma = within.singularValues();
    if (sigma(count - 1) > resolved * sigma(0)) return q * within.matrixV();
  }
  const auto independent = [&](const auto& svd) -> Matrix {
    const Vector& sigma = svd.singularValues();
    Index rank = 0;
    while (rank < std::min(count, size) && sigma(rank) > rank_tolerance * sigma(0)) ++rank;
    return svd.matrixU().leftCols(rank);
  };
  if (size > small) return independent(Eigen::BDCSVD<Matrix>(a, Eigen::ComputeThinU));
  return independent(Eigen::JacobiSVD<Matrix>(a, Eigen::ComputeThinU));
}

}  // namespace sheafnn::detail
