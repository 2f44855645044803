/// \file
/// The smallest eigenvalues of a sheaf Laplacian with their eigenvectors.
///
///     const auto pairs = smallest_eigenpairs(laplacian, 10);    // pairs.values(0) ≤ … ≤ pairs.values(9)
///
/// Small Laplacians are decomposed densely. Large ones are multiplied with blocks of vectors (chebyshev_subspace.hpp);
/// where that takes long, and the graph's structure allows it, they are factorised (shift_invert.hpp). All of it is
/// computed in double.
#pragma once

#include "sheafnn/core/eigen.hpp"

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "sheafnn/core/errors.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/sheaf/chebyshev_subspace.hpp"
#include "sheafnn/sheaf/laplacian.hpp"
#include "sheafnn/sheaf/shift_invert.hpp"
#include "sheafnn/sheaf/sparse_factor.hpp"

namespace sheafnn::sheaf {

/// What an iteration does with the Laplacian.
enum class EigenpairMethod {
  automatic,  ///< dense up to dense_rows; otherwise iteration, then shift_invert if it would have finished by then
  dense,      ///< all eigenvalues: time N³, memory N²
  iteration,     ///< products with Δ only: memory of a few blocks; slow where eigenvalues lie close together
  shift_invert,  ///< a sparse factor of Δ + σI: few iterations; time and memory as the graph fills in
};

/// How smallest_eigenpairs() computes.
struct EigenpairOptions {
  /// ‖Δx − λx‖ of every pair is at most tolerance · spectral_bound(); 0: 4096 ε. Not dense.
  double tolerance = 0;
  Index dense_rows = 400;       ///< most rows that `automatic` decomposes densely
  Index max_iterations = 500;  ///< iteration: filters of up to 1000 products each; shift_invert: restarts
  std::uint64_t seed = 0;       ///< of the first block
  Execution execution = {};     ///< of the products; the results do not depend on it
  EigenpairMethod method = EigenpairMethod::automatic;
  double factor_entries = 1e8;  ///< largest factor that `automatic` makes, 12 bytes each
};

/// λ_1 ≤ … ≤ λ_k, and orthonormal eigenvectors.
template <class Scalar>
struct Eigenpairs {
  Eigen::Matrix<Scalar, Eigen::Dynamic, 1> values;
  Cochain<Scalar> vectors;  ///< (nD) × k
};

}  // namespace sheafnn::sheaf

namespace sheafnn::detail {

/// The `count` smallest eigenvalues of a dense symmetric matrix with eigenvectors.
template <class Real>
[[nodiscard]] Eigenpairs<Real> dense_eigenpairs(const Eigen::MatrixX<Real>& matrix, Index count) {
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixX<Real>> solver(matrix);
  if (solver.info() != Eigen::Success) {
    throw std::runtime_error(
        concat("smallest eigenpairs: no convergence for a dense matrix of ", matrix.rows(), " rows"));
  }
  return {solver.eigenvalues().head(count), solver.eigenvectors().leftCols(count)};
}

/// What the methods that share all families need to know of a Laplacian.
template <class Real>
struct EigenpairProblem {
  const Graph& graph;
  Index dimension;    ///< D
  bool dense_blocks;  ///< off the diagonal; otherwise the D coordinates are eliminated independently
  Index count;        ///< of pairs
  double tolerance;   ///< of residuals, in units of the bound
  double rounding;    ///< ε of the scalar type that Δ is in
  SymmetricOperator<Real> laplacian;
  std::function<Eigen::SparseMatrix<Real>()> matrix;

  /// Entries of a dense block, or of a diagonal one.
  [[nodiscard]] double block_entries() const noexcept {
    return static_cast<double>(dense_blocks ? dimension * dimension : dimension);
  }
};

/// Multiplications of shift_invert: the factor, and 30 blocks that are solved for and made orthogonal. Eigenvalues that lie
/// too close together for the iteration take about as many. Dense products run three times as fast as sparse ones.
template <class Real>
[[nodiscard]] double shift_invert_work(const EigenpairProblem<Real>& problem, const EliminationOrder& order) {
  const KrylovSizes sizes(problem.count);
  const double factor =
      order.products * problem.block_entries() * static_cast<double>(problem.dense_blocks ? problem.dimension : 1);
  const double column = 2 * order.entries * problem.block_entries() +
                        4.0 / 3 * static_cast<double>(problem.laplacian.rows * sizes.columns);
  return factor + 30 * static_cast<double>(sizes.block) * column;
}

/// The pairs by the shifted inverse; empty if Δ + σI has no factor with positive pivots.
///
/// \throws std::runtime_error  no convergence within max_iterations
///
/// Rounding of Δ's entries may move an eigenvalue 0 below 0, by a few ε of the bound. σ is above that, and is raised where
/// the factorisation fails all the same.
template <class Real>
[[nodiscard]] std::optional<Eigenpairs<Real>> inverted_eigenpairs(const EigenpairProblem<Real>& problem,
                                                                  const EliminationOrder& order,
                                                                  Index max_iterations, std::uint64_t seed) {
  const double bound = problem.laplacian.bound;
  double shift = std::max(std::sqrt(std::numeric_limits<double>::epsilon()), 64 * problem.rounding) * bound;
  for (int attempt = 0; attempt < 4; ++attempt, shift *= 16) {
    const SparseFactor inverse(problem.matrix(), order.position, shift);
    if (!(inverse.smallest_pivot() > 0)) continue;
    const RitzPairs<Real> pairs = shift_invert_pairs<Real>(inverse, problem.laplacian.rows, bound, problem.count,
                                                           problem.tolerance, max_iterations, seed);
    return Eigenpairs<Real>{pairs.values.head(problem.count), pairs.vectors.leftCols(problem.count)};
  }
  return std::nullopt;
}

/// The pairs by Chebyshev iteration, or by the shifted inverse as soon as that is the shorter way.
///
/// \param max_entries  nodes' blocks of the largest factor; 0: iteration only
template <class Real>
[[nodiscard]] Eigenpairs<Real> iterated_eigenpairs(const EigenpairProblem<Real>& problem, Index block,
                                                   double max_entries, const EigenpairOptions& options) {
  const double product =
      problem.block_entries() * static_cast<double>(problem.graph.node_count() + problem.graph.arc_count());
  ChebyshevSubspace<Real> subspace(problem.laplacian, block, options.seed);
  constexpr Index never = std::numeric_limits<Index>::max();
  EliminationOrder order;
  double patience = std::numeric_limits<double>::infinity();  // multiplications
  for (Index i = 0;; ++i) {
    const bool spent = subspace.products() * product >= patience - product * static_cast<double>(2 * block);
    if (converged(subspace.pairs(), problem.count, problem.laplacian.bound, problem.tolerance, i,
                  spent ? never : options.max_iterations)) {
      return {subspace.pairs().values.head(problem.count), subspace.pairs().vectors.leftCols(problem.count)};
    }
    if (spent) {
      // Where it converges, 30 blocks are about what it takes; it may not where more eigenvalues are 0 than it has vectors.
      constexpr Index enough = 60;
      try {
        std::optional<Eigenpairs<Real>> pairs =
            inverted_eigenpairs(problem, order, std::min(options.max_iterations, enough), options.seed);
        if (pairs) return *std::move(pairs);
      } catch (const std::runtime_error&) {
      }
      patience = std::numeric_limits<double>::infinity();  // no factor, or no convergence: the iteration continues
    }
    if (i == 1 && max_entries > 0) {
      order = elimination_order(problem.graph, max_entries);
      patience = shift_invert_work(problem, order);
    }
    subspace.iterate(problem.count, patience / product);
  }
}

/// The pairs by the method of the options; dense where a block method would span most of the space.
template <class Real>
[[nodiscard]] Eigenpairs<Real> smallest_eigenpairs(const EigenpairProblem<Real>& problem,
                                                   const EigenpairOptions& options) {
  const Index rows = problem.laplacian.rows;
  const Index block = problem.count + std::max<Index>(8, problem.count / 2);
  const double most =
      std::min(std::numeric_limits<int>::max() - static_cast<double>(rows * problem.dimension),
               options.method == EigenpairMethod::automatic ? options.factor_entries
                                                            : std::numeric_limits<double>::max()) /
      problem.block_entries();
  const bool invert = options.method == EigenpairMethod::shift_invert;
  if (options.method == EigenpairMethod::dense ||
      (options.method == EigenpairMethod::automatic && rows <= options.dense_rows) ||
      (invert ? KrylovSizes(problem.count).columns : 2 * block) > rows) {
    return dense_eigenpairs<Real>(problem.matrix(), problem.count);
  }
  if (!invert)
    return iterated_eigenpairs(problem, block, options.method == EigenpairMethod::automatic ? most : 0, options);
  const EliminationOrder order = elimination_order(problem.graph, most);
  require(std::isfinite(order.entries), "method", "shift_invert", "this factor has more than 2147483647 entries");
  std::optional<Eigenpairs<Real>> pairs =
      inverted_eigenpairs(problem, order, options.max_iterations, options.seed);
  if (!pairs) throw std::runtime_error("smallest eigenpairs: the factorisation of the shifted Laplacian failed");
  return *std::move(pairs);
}

}  // namespace sheafnn::detail

namespace sheafnn::sheaf {

/// The `count` smallest eigenvalues of Δ with eigenvectors.
///
/// \param count  1 … nD
/// \throws std::invalid_argument  a count or an option out of range; shift_invert and a factor of 2³¹ entries or more
/// \throws std::runtime_error     no convergence within max_iterations: eigenvalues that lie too close together;
///         vectors that rounding leaves not orthonormal to 1e-10; shift_invert and a Laplacian that rounding makes
///         indefinite
template <class Family, class Scalar>
[[nodiscard]] Eigenpairs<Scalar> smallest_eigenpairs(const SheafLaplacian<Family, Scalar>& laplacian, Index count,
                                                     const EigenpairOptions& options = {}) {
  const Index rows = laplacian.rows();
  require(count >= 1 && count <= rows, "count", count,
          detail::concat("must be between 1 and the number of rows, ", rows));
  require(options.tolerance >= 0 && options.tolerance < 1, "tolerance", options.tolerance, "must be in [0, 1)");
  require(options.max_iterations >= 1, "max_iterations", options.max_iterations, "must be at least 1");
  require(options.factor_entries >= 0, "factor_entries", options.factor_entries, "must not be negative");
  const double spectral_bound = static_cast<double>(laplacian.spectral_bound());
  if (spectral_bound == 0) {
    return {Eigen::Matrix<Scalar, Eigen::Dynamic, 1>::Zero(count), Cochain<Scalar>::Identity(rows, count)};
  }
  // Of Δ/2ᵏ with a bound in [1, 2): squares of residuals neither over- nor underflow, and nothing is rounded.
  const int exponent = std::clamp(std::ilogb(spectral_bound), -1000, 1000);
  const double bound = std::ldexp(spectral_bound, -exponent), unit = std::ldexp(1.0, -exponent);
  const auto apply = [&](const detail::VectorBlock<double>& x, detail::VectorBlock<double>& image) {
    if constexpr (std::is_same_v<Scalar, double>) {
      laplacian.apply(x, image, options.execution);
    } else {
      image = laplacian.apply(x.cast<Scalar>(), options.execution).template cast<double>();
    }
    image *= unit;
  };
  const auto matrix = [&]() -> Eigen::SparseMatrix<double> {
    return laplacian.matrix().template cast<double>() * unit;
  };
  const double rounding = std::numeric_limits<Scalar>::epsilon();
  const double tolerance = options.tolerance > 0 ? options.tolerance : 4096 * rounding;
  const Eigenpairs<double> pairs =
      detail::smallest_eigenpairs(detail::EigenpairProblem<double>{laplacian.graph(),
                                                                   Family::stalk_dimension,
                                                                   BlockSizes<Family>::dense_transport,
                                                                   count,
                                                                   tolerance,
                                                                   rounding,
                                                                   {rows, bound, apply},
                                                                   matrix},
                                  options);
  return {(pairs.values / unit).template cast<Scalar>(), pairs.vectors.template cast<Scalar>()};
}

}  // namespace sheafnn::sheaf
