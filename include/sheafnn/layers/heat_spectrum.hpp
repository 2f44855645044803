/// \file
/// HeatSpectrum: the K smallest eigenpairs of 𝓛 = I − Â, so that exp(−t𝓛) = out e^{−tΛ} inᵀ, exactly for K = n.
///
/// 𝓛 = I − D^{-1/2} A D^{-1/2} is symmetric, in = out = V. I − D^{-1} A has the same eigenvalues and out = D^{-1/2} V,
/// in = D^{1/2} V; D is 1 at nodes without neighbours. Computed in double.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

// core/eigen.hpp goes before other parts of Eigen.
// clang-format off
#include "sheafnn/core/eigen.hpp"
#include <Eigen/SparseCore>
// clang-format on

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/layers/normalised_adjacency.hpp"
#include "sheafnn/sheaf/eigenpairs.hpp"

namespace sheafnn::layers {

/// Unchecked: nothing but what the constructor checks.
template <class S>
struct HeatSpectrum {
  std::vector<double> values;  ///< λ_1 ≤ … ≤ λ_K
  Buffer<S> in, out;           ///< n × K

  /// \param pairs  K, at least 1; more than n counts as n
  /// \throws std::runtime_error  no convergence: eigenvalues that lie too close together
  HeatSpectrum(Execution execution, const Graph& graph, const HeatOptions& options, Index pairs) {
    const Index n = graph.node_count(), count = std::min(pairs, n);
    const NormalisedAdjacency<double> adjacency(graph, AdjacencyNormalisation::symmetric, options.self_loops);
    using Block = detail::VectorBlock<double>;
    const auto apply = [&](const Block& x, Block& image) {
      image.resize(n, x.cols());
      adjacency.multiply(execution, false, MatrixView<const double>(x), MatrixView<double>(image), false);
      image = x - image;
    };
    const auto matrix = [&] {
      Eigen::SparseMatrix<double> r(n, n);
      std::vector<Eigen::Triplet<double>> entries;
      for (Index u = 0; u < n; ++u) {
        const double d = adjacency.degree(u);
        const int row = static_cast<int>(u);
        entries.emplace_back(row, row, 1 - (adjacency.self_loops() ? 1 / d : 0));
        for (const int v : adjacency.neighbours().of(u))
          entries.emplace_back(row, v, -1 / std::sqrt(d * adjacency.degree(v)));
      }
      r.setFromTriplets(entries.begin(), entries.end());
      return r;
    };
    constexpr double epsilon = std::numeric_limits<double>::epsilon();
    const detail::EigenpairProblem<double> problem{graph,          1,       false,         count,
                                                   4096 * epsilon, epsilon, {n, 2, apply}, matrix};
    const sheaf::Eigenpairs<double> found = detail::smallest_eigenpairs(problem, sheaf::EigenpairOptions());
    values.assign(found.values.data(), found.values.data() + count);
    in.resize(n * count);
    out.resize(n * count);
    for (Index u = 0; u < n; ++u) {
      const bool scaled = options.normalisation == AdjacencyNormalisation::random_walk && adjacency.degree(u) > 0;
      const double root = scaled ? std::sqrt(adjacency.degree(u)) : 1;
      for (Index j = 0; j < count; ++j) {
        in[u * count + j] = static_cast<S>(found.vectors(u, j) * root);
        out[u * count + j] = static_cast<S>(found.vectors(u, j) / root);
      }
    }
  }
};

}  // namespace sheafnn::layers
