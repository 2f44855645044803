/// \file
/// What a partition of a hypergraph's nodes costs, and who owns its hyperedges. A Partition (partition.hpp) owns nodes; the
/// incident pairs belong to the owners of their nodes. A hyperedge with members in several parts, a cut hyperedge, belongs
/// to the part with the most members; the hyperedge's index breaks ties.
///
/// Partitions are made as of graphs: contiguous_partition(), read_partition(), metis_partition() (metis.hpp).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/distributed/partition.hpp"
#include "sheafnn/graph/hypergraph.hpp"

namespace sheafnn::distributed {

namespace detail {

/// Calls use(e, parts, owner) for every hyperedge with members: the parts of its members, increasing, and its owner.
/// Unchecked: that the partition fits (validate()).
template <class Use>
void for_hyperedge_owners(const Hypergraph& hypergraph, const Partition& partition, const Use& use) {
  std::vector<std::int32_t> of_members, parts, most;
  for (Index e = 0; e < hypergraph.hyperedge_count(); ++e) {
    of_members.clear();
    for (Index k = hypergraph.first_member(e); k < hypergraph.first_member(e + 1); ++k) {
      of_members.push_back(partition.owner[static_cast<std::size_t>(hypergraph.node(hypergraph.member(k)))]);
    }
    if (of_members.empty()) continue;
    std::sort(of_members.begin(), of_members.end());
    parts.clear();
    most.clear();
    std::ptrdiff_t largest = 0;
    for (auto first = of_members.begin(); first != of_members.end();) {
      const auto last = std::upper_bound(first, of_members.end(), *first);
      if (last - first > largest) most.clear();
      largest = std::max(largest, last - first);
      if (last - first == largest) most.push_back(*first);
      parts.push_back(*first);
      first = last;
    }
    use(e, parts, most[static_cast<std::size_t>(e) % most.size()]);
  }
}

}  // namespace detail

/// What a partition of a hypergraph costs. PartitionReport has hyperedges and incident pairs here, where graphs have edges
/// and arcs. `cut` counts cut hyperedges, `interior` nodes without cut hyperedges, `halo` cut hyperedges that other parts
/// own, and `neighbours` their owners. In every sum over members, a part receives and sends a row for each hyperedge of its
/// halo.
struct HypergraphPartitionReport : PartitionReport {
  /// What the owners of cut hyperedges receive for the non-linear Laplacian. `halo` has pairs of other parts, `neighbours`
  /// the parts that send them, and all else is 0.
  PartitionReport members;
};

/// \throws std::invalid_argument  as validate()
[[nodiscard]] inline HypergraphPartitionReport describe(const Hypergraph& hypergraph, const Partition& partition) {
  validate(partition, hypergraph.node_count());
  HypergraphPartitionReport r;
  const std::size_t count = static_cast<std::size_t>(partition.parts);
  r.parts.resize(count);
  r.members.parts.resize(count);
  std::vector<bool> interior(partition.owner.size(), true);
  std::vector<bool> pairs_of_parts(count * count);  // part · parts + owner: has the owner hyperedges of the part?
  const auto owner_of = [&](Index pair) {
    return static_cast<std::size_t>(partition.owner[static_cast<std::size_t>(hypergraph.node(pair))]);
  };
  detail::for_hyperedge_owners(hypergraph, partition, [&](Index e, const auto& parts, std::int32_t owner) {
    if (parts.size() == 1) return;
    ++r.cut;
    const std::size_t own = static_cast<std::size_t>(owner);
    for (const std::int32_t part : parts) {
      if (part == owner) continue;
      ++r.parts[static_cast<std::size_t>(part)].halo;
      pairs_of_parts[static_cast<std::size_t>(part) * count + own] = true;
    }
    for (Index k = hypergraph.first_member(e); k < hypergraph.first_member(e + 1); ++k) {
      const Index pair = hypergraph.member(k);
      interior[static_cast<std::size_t>(hypergraph.node(pair))] = false;
      r.members.parts[own].halo += owner_of(pair) == own ? 0 : 1;
    }
  });
  for (std::size_t u = 0; u < interior.size(); ++u) {
    PartitionReport::Part& part = r.parts[static_cast<std::size_t>(partition.owner[u])];
    ++part.own;
    part.interior += interior[u] ? 1 : 0;
    part.arcs += hypergraph.degree(static_cast<Index>(u));
  }
  for (std::size_t i = 0; i < pairs_of_parts.size(); ++i) {
    if (!pairs_of_parts[i]) continue;
    ++r.parts[i / count].neighbours;
    ++r.members.parts[i % count].neighbours;
  }
  return r;
}

/// The report as text; see to_string() in partition.hpp. \param hyperedges  of the whole hypergraph. Takes any
[[nodiscard]] inline std::string to_string(const HypergraphPartitionReport& report, Index hyperedges) {
  return to_string(report, hyperedges, hyperedges, {"hyperedges", "hyperedges", "incident pairs"});
}

}  // namespace sheafnn::distributed
