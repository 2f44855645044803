/// \file
/// Partitions by METIS's multilevel k-way method (Karypis, Kumar 1998): few edges cut, parts of equal work.
#pragma once

#include <metis.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <vector>

#include "sheafnn/distributed/communicator.hpp"
#include "sheafnn/distributed/partition.hpp"

namespace sheafnn::distributed {

/// A partition into at least one node per part. Weights of nodes are their work (partition.hpp). METIS may leave parts of
/// very small graphs empty: these get contiguous ranges instead.
///
/// \param seed  of METIS's random numbers: the same seed gives the same partition
/// \throws std::invalid_argument  parts not between 1 and the number of nodes, or a graph too large for METIS's integers
/// \throws std::runtime_error     METIS's own errors
[[nodiscard]] inline Partition metis_partition(const Graph& graph, int parts, int seed = 0) {
  const Index n = graph.node_count();
  require_between("parts", Index{parts}, 1, n);
  Partition r{parts, std::vector<std::int32_t>(static_cast<std::size_t>(n))};
  if (parts == 1) return r;
  constexpr Index most = std::numeric_limits<idx_t>::max();
  require(graph.arc_count() + node_work * n <= most, "arcs of the graph", graph.arc_count(),
          sheafnn::detail::concat("this METIS was built for integers up to ", most));
  std::vector<idx_t> offset(graph.offsets().begin(), graph.offsets().end());
  std::vector<idx_t> target(graph.targets().begin(), graph.targets().end());
  std::vector<idx_t> work(static_cast<std::size_t>(n)), owner(static_cast<std::size_t>(n));
  for (Index u = 0; u < n; ++u)
    work[static_cast<std::size_t>(u)] = static_cast<idx_t>(graph.degree(u) + node_work);
  idx_t options[METIS_NOPTIONS];
  METIS_SetDefaultOptions(options);
  options[METIS_OPTION_SEED] = seed;
  idx_t nodes = static_cast<idx_t>(n), constraints = 1, count = parts, cut = 0;
  const int status = METIS_PartGraphKway(&nodes, &constraints, offset.data(), target.data(), work.data(), nullptr,
                                         nullptr, &count, nullptr, nullptr, options, &cut, owner.data());
  if (status != METIS_OK) {
    throw std::runtime_error(sheafnn::detail::concat("METIS_PartGraphKway fails with status ", status, " for ", n,
                                                     " nodes in ", parts, " parts"));
  }
  std::copy(owner.begin(), owner.end(), r.owner.begin());
  std::vector<bool> used(static_cast<std::size_t>(parts));
  for (const std::int32_t p : r.owner) used[static_cast<std::size_t>(p)] = true;
  if (std::find(used.begin(), used.end(), false) != used.end()) return contiguous_partition(graph, parts);
  return r;
}

/// The same, computed by rank 0 for all, one part per rank. \throws as above, on all ranks
[[nodiscard]] inline Partition metis_partition(Communicator& ranks, const Graph& graph, int seed = 0) {
  Partition r{ranks.size(), std::vector<std::int32_t>(static_cast<std::size_t>(graph.node_count()))};
  require_between("ranks", Index{ranks.size()}, 1, graph.node_count());
  if (ranks.is_root()) r = metis_partition(graph, ranks.size(), seed);
  ranks.broadcast(std::span<std::int32_t>(r.owner));
  return r;
}

}  // namespace sheafnn::distributed
