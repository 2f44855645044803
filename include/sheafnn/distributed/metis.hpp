/// \file
/// Partitions by METIS's multilevel k-way method (Karypis, Kumar 1998): few edges cut, parts of equal work.
#pragma once

#include <metis.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <vector>

#include "sheafnn/distributed/communicator.hpp"
#include "sheafnn/distributed/partition.hpp"
#include "sheafnn/graph/graph.hpp"
#include "sheafnn/graph/hypergraph.hpp"

namespace sheafnn::distributed {

namespace detail {

/// Owners of the nodes of a graph in compressed rows, METIS's own integers.
///
/// \param offset, target  n + 1 and one value per arc; METIS takes no constants
/// \param without_work    number of nodes at the end that have no work, and their owners are left out
/// \throws std::runtime_error  METIS's own errors. Unchecked: parts between 1 and n, and that METIS can count the arcs
[[nodiscard]] inline std::vector<std::int32_t> metis_owners(std::vector<idx_t>& offset, std::vector<idx_t>& target,
                                                            int parts, int seed, Index without_work = 0) {
  idx_t nodes = static_cast<idx_t>(offset.size() - 1), constraints = 1, count = parts, cut = 0;
  std::vector<std::int32_t> r(static_cast<std::size_t>(nodes - without_work));
  if (parts == 1) return r;
  std::vector<idx_t> work(static_cast<std::size_t>(nodes)), owner(work.size());
  for (std::size_t u = 0; u < r.size(); ++u) {
    work[u] = static_cast<idx_t>(offset[u + 1] - offset[u] + static_cast<idx_t>(node_work));
  }
  idx_t options[METIS_NOPTIONS];
  METIS_SetDefaultOptions(options);
  options[METIS_OPTION_SEED] = seed;
  const int status = METIS_PartGraphKway(&nodes, &constraints, offset.data(), target.data(), work.data(), nullptr,
                                         nullptr, &count, nullptr, nullptr, options, &cut, owner.data());
  if (status != METIS_OK) {
    throw std::runtime_error(sheafnn::detail::concat("METIS_PartGraphKway fails with status ", status, " for ",
                                                     nodes, " nodes in ", parts, " parts"));
  }
  owner.resize(r.size());
  std::vector<bool> used(static_cast<std::size_t>(parts));
  for (const idx_t p : owner) used[static_cast<std::size_t>(p)] = true;
  if (std::find(used.begin(), used.end(), false) != used.end())
    return contiguous_owners(std::span<const idx_t>(offset).first(r.size() + 1), parts);
  std::transform(owner.begin(), owner.end(), r.begin(), [](idx_t p) { return static_cast<std::int32_t>(p); });
  return r;
}
/// \throws std::invalid_argument  more arcs and work than METIS's integers count
inline void require_metis_counts(Index nodes, Index arcs) {
  constexpr Index most = std::numeric_limits<idx_t>::max();
  require(arcs + node_work * nodes <= most, "arcs of the graph", arcs,
          sheafnn::detail::concat("this METIS was built for integers up to ", most));
}

}  // namespace detail

/// A partition into at least one node per part. Weights of nodes are their work (partition.hpp). METIS may leave parts of
/// very small graphs empty: these get contiguous ranges instead.
///
/// \param seed  of METIS's random numbers: the same seed gives the same partition
/// \throws std::invalid_argument  parts not between 1 and the number of nodes, or a graph too large for METIS's integers
/// \throws std::runtime_error     METIS's own errors
[[nodiscard]] inline Partition metis_partition(const Graph& graph, int parts, int seed = 0) {
  require_between("parts", Index{parts}, 1, graph.node_count());
  detail::require_metis_counts(graph.node_count(), graph.arc_count());
  std::vector<idx_t> offset(graph.offsets().begin(), graph.offsets().end());
  std::vector<idx_t> target(graph.targets().begin(), graph.targets().end());
  return {parts, detail::metis_owners(offset, target, parts, seed)};
}

/// The same of the nodes of a hypergraph. METIS cuts the bipartite graph of nodes and hyperedges, whose edges are the
/// incident pairs; hyperedges have no work. \throws as above
[[nodiscard]] inline Partition metis_partition(const Hypergraph& hypergraph, int parts, int seed = 0) {
  const Index nodes = hypergraph.node_count(), hyperedges = hypergraph.hyperedge_count();
  require_between("parts", Index{parts}, 1, nodes);
  detail::require_metis_counts(nodes + hyperedges, 2 * hypergraph.pair_count());
  std::vector<idx_t> offset(hypergraph.offsets().begin(), hypergraph.offsets().end()), target;
  for (const std::int32_t e : hypergraph.hyperedges()) target.push_back(static_cast<idx_t>(nodes + e));
  for (Index e = 0; e < hyperedges; ++e) {
    for (Index k = hypergraph.first_member(e); k < hypergraph.first_member(e + 1); ++k) {
      target.push_back(static_cast<idx_t>(hypergraph.node(hypergraph.member(k))));
    }
    offset.push_back(static_cast<idx_t>(target.size()));
  }
  return {parts, detail::metis_owners(offset, target, parts, seed, hyperedges)};
}

/// The same, computed by rank 0 for all, one part per rank. \throws as above, on all ranks
template <class GraphType>
[[nodiscard]] Partition metis_partition(Communicator& ranks, const GraphType& graph, int seed = 0) {
  Partition r{ranks.size(), std::vector<std::int32_t>(static_cast<std::size_t>(graph.node_count()))};
  require_between("ranks", Index{ranks.size()}, 1, graph.node_count());
  if (ranks.is_root()) r = metis_partition(graph, ranks.size(), seed);
  ranks.broadcast(std::span<std::int32_t>(r.owner));
  return r;
}

}  // namespace sheafnn::distributed
