/// \file
/// The smallest eigenvalues of a sheaf Laplacian with their eigenvectors.
///
///     const auto pairs = smallest_eigenpairs(laplacian, 10);    // pairs.values(0) ≤ … ≤ pairs.values(9)
///
/// Small Laplacians are decomposed densely. Large ones are multiplied with a block of vectors only: a Chebyshev
/// polynomial of Δ damps what lies above the block's largest Ritz value, up to the spectral bound, then follows a
/// Rayleigh–Ritz step. A block, unlike a single Krylov vector, finds repeated eigenvalues, which sheaves have many of
/// (D-fold for Identity maps).
/// Source: Zhou, Saad, Tiago, Chelikowsky, "Self-consistent-field calculations using Chebyshev-filtered subspace
/// iteration", Journal of Computational Physics 219 (2006), algorithm 4.3 (the filter), without its outer loop.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <stdexcept>
#include <utility>

// core/eigen.hpp goes before other parts of Eigen.
// clang-format off
#include "sheafnn/core/eigen.hpp"
#include <Eigen/Eigenvalues>
#include <Eigen/QR>
// clang-format on

#include "sheafnn/core/errors.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/random/stream.hpp"
#include "sheafnn/sheaf/laplacian.hpp"

namespace sheafnn {

struct EigenpairOptions {
  /// ‖Δx − λx‖ of every pair is at most tolerance · spectral_bound(); 0: 4096 ε. Iteration only.
  double tolerance = 0;
  Index dense_rows = 2000;      ///< most rows that are decomposed densely (time N³, memory N²)
  Index most_iterations = 500;  ///< filters, each of up to 1000 products
  std::uint64_t seed = 0;       ///< of the first block
  Execution execution = {};
};

/// λ_1 ≤ … ≤ λ_k, and orthonormal eigenvectors.
template <class Scalar>
struct Eigenpairs {
  Eigen::Matrix<Scalar, Eigen::Dynamic, 1> values;
  Cochain<Scalar> vectors;  ///< (nD) × k
};

namespace detail {

/// A symmetric positive semidefinite matrix by its products with blocks of vectors; the family is behind `apply`, so
/// that all families share the code of the iteration.
template <class Scalar>
struct SymmetricOperator {
  Index rows = 0;
  Scalar bound = 0;                                                ///< no eigenvalue is above
  std::function<void(const Cochain<Scalar>&, Cochain<Scalar>&)> apply;  ///< (x, image): image = Δx
};

/// The iteration on a block of vectors.
template <class Scalar>
class ChebyshevSubspace {
 public:
  using Matrix = Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic>;

  ChebyshevSubspace(const SymmetricOperator<Scalar>& laplacian, Index columns, std::uint64_t seed)
      : laplacian_(laplacian), bound_(laplacian.bound) {
    const Index rows = laplacian.rows;
    x_.resize(rows, columns);
    for (Index i = 0; i < x_.size(); ++i) {
      fill_normals<1>(x_.data() + i, Stream{seed, Purpose::user, 0, static_cast<std::uint32_t>(i / rows)},
                      static_cast<std::uint32_t>(i % rows));
    }
    image_.resize(rows, columns);
    previous_.resize(rows, columns);
    rayleigh_ritz();
  }

  [[nodiscard]] const Eigen::Matrix<Scalar, Eigen::Dynamic, 1>& values() const noexcept { return values_; }
  [[nodiscard]] const Cochain<Scalar>& vectors() const noexcept { return x_; }
  /// Largest ‖Δx − λx‖ of the first pairs, in units of the spectral bound.
  [[nodiscard]] double residual(Index pairs) const {
    double worst = 0;
    for (Index j = 0; j < pairs; ++j) {
      worst = std::max(worst, static_cast<double>((image_.col(j) - values_(j) * x_.col(j)).norm() / bound_));
    }
    return worst;
  }

  /// \param pairs  how many are wanted
  void iterate(Index pairs) {
    // An eigenvalue may have more vectors than the block. Then nothing lies between the wanted pairs and the block's
    // last value, and a cut there would tell nothing apart: it falls slowly (to 0, with a kernel that large), and moves
    // up again when residuals stay.
    const Scalar wanted = values_(pairs - 1), last = values_(values_.size() - 1);
    const double now = residual(pairs);
    if (last - wanted < margin_ * bound_ && now > 0.5 * before_) margin_ = std::min(4 * margin_, Scalar(5e-5));
    before_ = now;
    cut_ = std::min(std::max({last, wanted + margin_ * bound_, cut_ / 10}), Scalar(0.99) * bound_);
    filter();
    rayleigh_ritz();
  }

 private:
  /// X becomes p(Δ) X with a Chebyshev polynomial p that is 1 at the smallest Ritz value and small between the cut
  /// and the bound. Its degree is such that it does not tell the two apart by more than rounding allows.
  void filter() {
    const Scalar half = (bound_ - cut_) / 2, centre = (bound_ + cut_) / 2;
    const Scalar low = std::min(values_(0), Scalar(0.5) * cut_);
    const double growth = -0.5 * std::log(static_cast<double>(std::numeric_limits<Scalar>::epsilon())) - 4;
    const double rate = std::acosh(static_cast<double>((centre - low) / half));
    const int degree = static_cast<int>(std::clamp(growth / std::max(rate, 1e-9), 2.0, 1000.0));
    Scalar sigma = half / (low - centre);
    const Scalar twice = 2 / sigma;
    previous_ = x_;
    x_ = (image_ - centre * x_) * (sigma / half);
    for (int i = 2; i <= degree; ++i) {
      const Scalar next = 1 / (twice - sigma);
      laplacian_.apply(x_, image_);
      previous_ = (image_ - centre * x_) * (2 * next / half) - (sigma * next) * previous_;
      std::swap(previous_, x_);
      sigma = next;
    }
  }

  /// Makes X orthonormal and its columns the best approximations of eigenvectors in their span; sets image_ = ΔX.
  void rayleigh_ritz() {
    const Eigen::HouseholderQR<Matrix> qr{Matrix(x_)};
    x_ = qr.householderQ() * Matrix::Identity(x_.rows(), x_.cols());
    laplacian_.apply(x_, image_);
    const Matrix projected = x_.transpose() * image_;
    const Eigen::SelfAdjointEigenSolver<Matrix> solver(Scalar(0.5) * (projected + projected.transpose()));
    if (solver.info() != Eigen::Success)
      throw std::runtime_error("smallest eigenpairs: a Rayleigh-Ritz step failed");
    values_ = solver.eigenvalues();
    previous_.noalias() = x_ * solver.eigenvectors();
    std::swap(previous_, x_);
    previous_.noalias() = image_ * solver.eigenvectors();
    std::swap(previous_, image_);
  }

  const SymmetricOperator<Scalar>& laplacian_;
  Scalar bound_;
  Cochain<Scalar> x_, image_, previous_;
  Eigen::Matrix<Scalar, Eigen::Dynamic, 1> values_;
  Scalar cut_ = 0;                ///< what lies above is damped
  Scalar margin_ = Scalar(1e-6);  ///< least distance of the cut from the wanted values, in units of the bound
  double before_ = std::numeric_limits<double>::infinity();  ///< residual one iteration ago
};

/// The `count` smallest eigenvalues of a dense symmetric matrix with eigenvectors.
template <class Scalar>
[[nodiscard]] Eigenpairs<Scalar> dense_eigenpairs(const Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic>& matrix,
                                                  Index count) {
  const Eigen::SelfAdjointEigenSolver<Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic>> solver(matrix);
  if (solver.info() != Eigen::Success) {
    throw std::runtime_error(concat("smallest eigenpairs: no convergence for a dense matrix of ", matrix.rows(), " rows"));
  }
  return {solver.eigenvalues().head(count), solver.eigenvectors().leftCols(count)};
}

/// The `count` smallest eigenvalues by iteration on `block` vectors.
template <class Scalar>
[[nodiscard]] Eigenpairs<Scalar> iterated_eigenpairs(const SymmetricOperator<Scalar>& laplacian, Index count,
                                                     Index block, const EigenpairOptions& options) {
  if (laplacian.bound == 0) {
    return {Eigen::Matrix<Scalar, Eigen::Dynamic, 1>::Zero(count), Cochain<Scalar>::Identity(laplacian.rows, count)};
  }
  const double tolerance = options.tolerance > 0
                               ? options.tolerance
                               : 4096 * static_cast<double>(std::numeric_limits<Scalar>::epsilon());
  ChebyshevSubspace<Scalar> subspace(laplacian, block, options.seed);
  for (Index i = 0; !(subspace.residual(count) <= tolerance); ++i) {
    if (i == options.most_iterations) {
      throw std::runtime_error(concat("smallest eigenpairs: a residual of ", subspace.residual(count), " after ", i,
                                      " iterations is above the tolerance, ", tolerance,
                                      "; ask for more pairs or a larger tolerance"));
    }
    subspace.iterate(count);
  }
  return {subspace.values().head(count), subspace.vectors().leftCols(count)};
}

}  // namespace detail

/// The `count` smallest eigenvalues of Δ with eigenvectors.
///
/// \param count  1 … nD
/// \throws std::invalid_argument  a count or an option out of range
/// \throws std::runtime_error     no convergence within most_iterations: eigenvalues that lie too close together
template <class Family, class Scalar>
[[nodiscard]] Eigenpairs<Scalar> smallest_eigenpairs(const SheafLaplacian<Family, Scalar>& laplacian, Index count,
                                                     const EigenpairOptions& options = {}) {
  const Index rows = laplacian.rows();
  require(count >= 1 && count <= rows, "count", count, detail::concat("must be between 1 and the number of rows, ", rows));
  require(options.tolerance >= 0 && options.tolerance < 1, "tolerance", options.tolerance, "must be in [0, 1)");
  require(options.most_iterations >= 1, "most_iterations", options.most_iterations, "must be at least 1");
  const Index block = count + std::max<Index>(8, count / 2);
  if (rows <= options.dense_rows || 2 * block > rows) {
    return detail::dense_eigenpairs<Scalar>(laplacian.matrix(), count);
  }
  const auto apply = [&](const Cochain<Scalar>& x, Cochain<Scalar>& image) {
    laplacian.apply(x, image, options.execution);
  };
  return detail::iterated_eigenpairs<Scalar>({rows, laplacian.spectral_bound(), apply}, count, block, options);
}

}  // namespace sheafnn
