/// \file
/// The smallest eigenpairs of a symmetric matrix from products with blocks of vectors only.
///
/// A Chebyshev polynomial of Δ damps the components between the block's largest Ritz value and a bound on the spectrum.
/// A Rayleigh–Ritz step follows. A block, unlike a single Krylov vector, finds repeated eigenvalues, which sheaves have
/// many of (D-fold for Identity maps). Iterations are in double precision; Real is a parameter so that Eigen's
/// decompositions are compiled only where eigenpairs are asked for. Source: Zhou, Saad, Tiago, Chelikowsky,
/// "Self-consistent-field calculations using Chebyshev-filtered subspace iteration", Journal of Computational Physics
/// 219 (2006), algorithm 4.3 (the filter), without its outer loop.
#pragma once

#include "sheafnn/core/eigen.hpp"

#include <Eigen/Eigenvalues>
#include <Eigen/QR>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <stdexcept>
#include <utility>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/random/stream.hpp"
#include "sheafnn/sheaf/sparse_factor.hpp"

namespace sheafnn::detail {

/// A symmetric positive semidefinite matrix by its products with blocks of vectors. `apply` hides the family and the
/// scalar type, so all of them share the code of the iterations.
template <class Real>
struct SymmetricOperator {
  Index rows = 0;
  double bound = 0;                                                         ///< no eigenvalue is above
  std::function<void(const VectorBlock<Real>&, VectorBlock<Real>&)> apply;  ///< (x, image): image = Δx
};

/// Ritz values of a subspace, increasing, with vectors and their images.
template <class Real>
struct RitzPairs {
  Eigen::VectorX<Real> values;
  VectorBlock<Real> vectors;  ///< rows × k, orthonormal
  VectorBlock<Real> images;   ///< Δ times the vectors

  /// ‖Δx − λx‖ of pair j.
  [[nodiscard]] double residual_of(Index j) const { return (images.col(j) - values(j) * vectors.col(j)).norm(); }
  /// The largest of the first `count` pairs.
  [[nodiscard]] double residual(Index count) const {
    double worst = 0;
    for (Index j = 0; j < count; ++j) worst = std::max(worst, residual_of(j));
    return worst;
  }
};

/// An orthonormal basis of the span of the columns; where these depend on each other, of a larger space.
template <class Real>
[[nodiscard]] VectorBlock<Real> orthonormal_columns(const VectorBlock<Real>& x) {
  const Eigen::HouseholderQR<Eigen::MatrixX<Real>> qr{Eigen::MatrixX<Real>(x)};
  return qr.householderQ() * Eigen::MatrixX<Real>::Identity(x.rows(), x.cols());
}

/// aᵀb. A function, so that Eigen's product is compiled once for all blocks.
template <class Real>
[[nodiscard]] Eigen::MatrixX<Real> inner_products(const VectorBlockRef<Real>& a, const VectorBlockRef<Real>& b) {
  Eigen::MatrixX<Real> r(a.cols(), b.cols());
  r.noalias() = a.transpose() * b;
  return r;
}
/// Linear combinations of the columns: x · coordinates.
template <class Real>
[[nodiscard]] VectorBlock<Real> combinations(const VectorBlockRef<Real>& x,
                                             const Eigen::MatrixX<Real>& coordinates) {
  VectorBlock<Real> r(x.rows(), coordinates.cols());
  r.noalias() = x * coordinates;
  return r;
}

/// The `count` smallest Ritz pairs of Δ in the span of orthonormal columns.
///
/// \param images  Δ times the basis
/// \throws std::runtime_error  the dense eigenvalue iteration did not converge
template <class Real>
[[nodiscard]] RitzPairs<Real> rayleigh_ritz(const VectorBlockRef<Real>& basis, const VectorBlockRef<Real>& images,
                                            Index count) {
  Eigen::MatrixX<Real> projected = inner_products<Real>(basis, images);
  for (Index j = 0; j < projected.cols(); ++j) {
    for (Index i = 0; i < j; ++i)
      projected(j, i) = (projected(i, j) + projected(j, i)) / 2;  // the lower half is read
  }
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixX<Real>> solver(projected);
  if (solver.info() != Eigen::Success)
    throw std::runtime_error("smallest eigenpairs: a Rayleigh-Ritz step failed");
  const Eigen::MatrixX<Real> coordinates = solver.eigenvectors().leftCols(count);
  return {solver.eigenvalues().head(count), combinations<Real>(basis, coordinates),
          combinations<Real>(images, coordinates)};
}

/// N(0, 1) entries, a pure function of the seed.
template <class Real>
[[nodiscard]] VectorBlock<Real> random_columns(Index rows, Index columns, std::uint64_t seed) {
  VectorBlock<Real> x(rows, columns);
  for (Index i = 0; i < x.size(); ++i) {
    fill_normals<1>(x.data() + i, Stream{seed, Purpose::user, 0, static_cast<std::uint32_t>(i / rows)},
                    static_cast<std::uint32_t>(i % rows));
  }
  return x;
}

/// Is the residual of the first `count` pairs small enough?
///
/// \throws std::runtime_error  not after max_iterations, or vectors V with an entry of VᵀV − I above 1e-10
template <class Real>
[[nodiscard]] bool converged(const RitzPairs<Real>& pairs, Index count, double bound, double tolerance,
                             Index iteration, Index max_iterations) {
  const double residual = pairs.residual(count) / bound;
  if (residual <= tolerance) {
    // Linearly dependent vectors also have small residuals, but their values are not eigenvalues.
    const VectorBlockRef<Real> vectors = pairs.vectors.leftCols(count);
    const Eigen::MatrixX<Real> departure =
        inner_products<Real>(vectors, vectors) - Eigen::MatrixX<Real>::Identity(count, count);
    const double largest = departure.cwiseAbs().maxCoeff();
    if (largest <= 1e-10) return true;
    throw std::runtime_error(
        concat("smallest eigenpairs: the eigenvectors V are not orthonormal, VᵀV - I has an entry of ", largest));
  }
  if (iteration >= max_iterations) {
    throw std::runtime_error(concat("smallest eigenpairs: a residual of ", residual, " after ", iteration,
                                    " iterations is above the tolerance, ", tolerance,
                                    "; ask for more pairs or a larger tolerance"));
  }
  return false;
}

/// The iteration on a block of vectors.
template <class Real>
class ChebyshevSubspace {
 public:
  /// \param laplacian  outlives this
  /// \param columns    of the block
  ChebyshevSubspace(const SymmetricOperator<Real>& laplacian, Index columns, std::uint64_t seed)
      : laplacian_(laplacian),
        bound_(laplacian.bound),
        image_(laplacian.rows, columns),
        previous_(laplacian.rows, columns) {
    restart(random_columns<Real>(laplacian.rows, columns, seed));
  }

  [[nodiscard]] const RitzPairs<Real>& pairs() const noexcept { return pairs_; }
  /// Products with Δ so far, of a vector each.
  [[nodiscard]] double products() const noexcept { return products_; }

  /// \param wanted_pairs   how many are wanted
  /// \param max_products  about where products() is to stop
  void iterate(Index wanted_pairs, double max_products = std::numeric_limits<double>::infinity()) {
    // An eigenvalue may have more vectors than the block. Then nothing lies between the wanted pairs and the block's
    // last value, and a cut there would separate nothing: it falls slowly (to 0, with a kernel that large), and moves
    // up again when residuals stay.
    const double wanted = pairs_.values(wanted_pairs - 1), last = pairs_.values(pairs_.values.size() - 1);
    const double now = pairs_.residual(wanted_pairs);
    if (last - wanted < margin_ * bound_ && now > 0.5 * before_) margin_ = std::min(4 * margin_, 5e-5);
    before_ = now;
    cut_ = std::min(std::max({last, wanted + margin_ * bound_, cut_ / 10}), 0.99 * bound_);
    restart(filtered((max_products - products_) / static_cast<double>(image_.cols())));
  }

 private:
  /// p(Δ) X with a Chebyshev polynomial p that is 1 at the smallest Ritz value and small between the cut and the
  /// bound. Its degree is such that it does not separate the two by more than rounding allows.
  ///
  /// \param max_degree  largest degree
  [[nodiscard]] VectorBlock<Real> filtered(double max_degree) {
    const double half = (bound_ - cut_) / 2, centre = (bound_ + cut_) / 2;
    const double low = std::min(pairs_.values(0), 0.5 * cut_);
    const double growth = -0.5 * std::log(std::numeric_limits<double>::epsilon()) - 4;
    const double rate = std::acosh((centre - low) / half);
    const double degree = std::clamp(growth / std::max(rate, 1e-9), 2.0, std::clamp(max_degree, 2.0, 1000.0));
    double sigma = half / (low - centre);
    const double twice = 2 / sigma;
    previous_ = pairs_.vectors;
    VectorBlock<Real> x = (pairs_.images - centre * pairs_.vectors) * (sigma / half);
    for (int i = 2; i <= degree; ++i) {
      const double next = 1 / (twice - sigma);
      laplacian_.apply(x, image_);
      products_ += static_cast<double>(x.cols());
      previous_ = (image_ - centre * x) * (2 * next / half) - (sigma * next) * previous_;
      std::swap(previous_, x);
      sigma = next;
    }
    return x;
  }

  void restart(const VectorBlock<Real>& x) {
    const VectorBlock<Real> basis = orthonormal_columns(x);
    laplacian_.apply(basis, image_);
    pairs_ = rayleigh_ritz<Real>(basis, image_, basis.cols());
  }

  const SymmetricOperator<Real>& laplacian_;
  double bound_;
  RitzPairs<Real> pairs_;
  VectorBlock<Real> image_, previous_;
  double products_ = 0;
  double cut_ = 0;        ///< what lies above is damped
  double margin_ = 1e-6;  ///< least distance of the cut from the wanted values, in units of the bound
  double before_ = std::numeric_limits<double>::infinity();  ///< residual one iteration ago
};

}  // namespace sheafnn::detail
