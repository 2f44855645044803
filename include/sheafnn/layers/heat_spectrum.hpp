/// \file
/// HeatSpectrum: the K smallest eigenpairs of 𝓛 = I − Â, so that exp(−t𝓛) = out e^{−tΛ} inᵀ, exactly for K = n.
///
/// 𝓛 = I − D^{-1/2} A D^{-1/2} is symmetric, in = out = V. I − D^{-1} A has the same eigenvalues and out = D^{-1/2} V,
/// in = D^{1/2} V; D is 1 at nodes without neighbours. Computed in double. On a part of a graph they are the whole's, which one part
/// gathers and decomposes: every part has the rows of its owned nodes. Source: math: "Heat on a flat bundle".
#pragma once

#include "sheafnn/core/eigen.hpp"

#include <Eigen/SparseCore>
#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <span>
#include <stdexcept>
#include <vector>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/graph/whole_graph.hpp"
#include "sheafnn/layers/normalised_adjacency.hpp"
#include "sheafnn/sheaf/eigenpairs.hpp"

namespace sheafnn::detail {

/// The smallest eigenpairs of I − D^{-1/2} A D^{-1/2} of a whole graph. A template, so that programs without bundles compile no
/// decomposition; T is double.
///
/// \param pairs  K, at least 1; more than n counts as n
/// \throws std::runtime_error  no convergence: eigenvalues that lie too close together
template <class T>
[[nodiscard]] sheaf::Eigenpairs<T> heat_eigenpairs(Execution execution, const Graph& graph, bool self_loops,
                                                   Index pairs) {
  const Index n = graph.node_count(), count = std::min(pairs, n);
  const layers::NormalisedAdjacency<T> adjacency(graph, layers::AdjacencyNormalisation::symmetric,
                                                      self_loops);
  using Block = VectorBlock<T>;
  const auto apply = [&](const Block& x, Block& image) {
    image.resize(n, x.cols());
    adjacency.multiply(execution, false, MatrixView<const T>(x), MatrixView<T>(image), false);
    image = x - image;
  };
  const auto matrix = [&] {
    Eigen::SparseMatrix<T> r(n, n);
    std::vector<Eigen::Triplet<T>> entries;
    for (Index u = 0; u < n; ++u) {
      const T d = adjacency.degree(u);
      const int row = static_cast<int>(u);
      entries.emplace_back(row, row, 1 - (adjacency.self_loops() ? 1 / d : 0));
      for (const int v : adjacency.neighbours().of(u))
        entries.emplace_back(row, v, -1 / std::sqrt(d * adjacency.degree(v)));
    }
    r.setFromTriplets(entries.begin(), entries.end());
    return r;
  };
  constexpr T epsilon = std::numeric_limits<T>::epsilon();
  const EigenpairProblem<T> problem{graph, 1, false, count, 4096 * epsilon, epsilon, {n, 2, apply}, matrix};
  return smallest_eigenpairs(problem, sheaf::EigenpairOptions());
}
/// The same of the graph that this one is a part of, with the rows of owned nodes. All parts call it. The part that owns node
/// 0 computes the pairs and sends them, so that all parts have rows of the same bits; the others wait.
template <class T>
[[nodiscard]] sheaf::Eigenpairs<T> heat_eigenpairs_of_part(Execution execution, const Graph& graph, bool self_loops,
                                                           Index pairs) {
  GraphPart& part = *graph.part();
  const std::span<const Index> own(part.numbers().node.data(), static_cast<std::size_t>(part.numbers().own));
  const Graph whole = whole_graph(graph);
  const bool computes = std::find(own.begin(), own.end(), Index{0}) != own.end();
  const Index n = whole.node_count(), count = std::min(pairs, n);
  sheaf::Eigenpairs<T> found, r{Eigen::VectorXd::Zero(count), {}};
  std::exception_ptr failure;
  if (computes) {
    try {
      found = heat_eigenpairs<T>(execution, whole, self_loops, pairs);
      r.values = found.values;
    } catch (const std::runtime_error&) {
      failure = std::current_exception();  // the other parts wait
    }
  }
  if (part.largest(failure ? 1 : 0) > 0) {
    if (failure) std::rethrow_exception(failure);
    throw std::runtime_error("smallest eigenpairs: no convergence on the part that owns node 0");
  }
  // Sums of one value and zeros are exact.
  part.sum(std::span<double>(r.values.data(), static_cast<std::size_t>(count)), {});
  r.vectors.resize(static_cast<Index>(own.size()), count);
  Eigen::VectorXd column(n);
  for (Index j = 0; j < count; ++j) {
    column.setZero();
    if (computes) column = found.vectors.col(j);
    part.sum(std::span<double>(column.data(), static_cast<std::size_t>(n)), {});
    for (std::size_t u = 0; u < own.size(); ++u) r.vectors(static_cast<Index>(u), j) = column(own[u]);
  }
  return r;
}

}  // namespace sheafnn::detail

namespace sheafnn::layers {

/// Unchecked: nothing but what the constructor checks.
template <class S>
struct HeatSpectrum {
  std::vector<double> values;  ///< λ_1 ≤ … ≤ λ_K
  Buffer<S> in, out;           ///< n × K, of a part's owned nodes

  /// On a part of a graph all parts call it.
  ///
  /// \param pairs  K, at least 1; more than n counts as n
  /// \throws std::runtime_error  no convergence: eigenvalues that lie too close together
  HeatSpectrum(Execution execution, const Graph& graph, const HeatOptions& options, Index pairs) {
    const sheaf::Eigenpairs<double> found =
        graph.part() == nullptr ? detail::heat_eigenpairs<double>(execution, graph, options.self_loops, pairs)
                                : detail::heat_eigenpairs_of_part<double>(execution, graph, options.self_loops, pairs);
    const NormalisedAdjacency<double> adjacency(graph, options.normalisation, options.self_loops);
    const Index n = adjacency.nodes(), count = found.values.size();
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
