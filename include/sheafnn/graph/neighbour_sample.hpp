/// \file
/// sample_neighbours(): the surroundings of some nodes in a graph, with at most k_h neighbours of a node at distance h − 1:
///
///     V_0 = targets,   V_h = ⋃ over u ∈ V_{h−1} of k_h drawn neighbours of u,   without nodes of earlier distances
///
/// The drawn arcs are the edges of the subgraph, in both directions. Neighbours of u are drawn without replacement, each set
/// with the same probability, from the random numbers at the address (seed, step, h, u). Other targets matter through the
/// distance h alone, and threads and ranks not at all.
///
/// Source: Hamilton, Ying and Leskovec, Inductive representation learning on large graphs, 2017, algorithm 2; the draws are
/// Floyd's (Bentley and Floyd, 1987).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/graph/graph_rows.hpp"
#include "sheafnn/random/below.hpp"
#include "sheafnn/random/stream.hpp"

namespace sheafnn {

/// Largest number of neighbours that are drawn for a node.
inline constexpr Index max_fan_out = 4095;

/// \param fan_outs  k_1, k_2, …, each in [0, max_fan_out]; 0: all neighbours
/// \param name      what messages call them
/// \throws std::invalid_argument  no number, more than 64, or one out of range
inline void validate_fan_outs(std::span<const Index> fan_outs, std::string_view name = "fan_outs") {
  require_between(name, static_cast<Index>(fan_outs.size()), 1, 64);
  for (std::size_t h = 0; h < fan_outs.size(); ++h) {
    require(fan_outs[h] >= 0 && fan_outs[h] <= max_fan_out, ArgumentName({}, name, h), fan_outs[h],
            detail::concat("must be between 0 and ", max_fan_out));
  }
}

namespace detail {

/// `count` different numbers below `degree`, increasing; all of them if count is 0 or not below the degree.
///
/// \param stream  of the step and the distance \param id  of the node
inline void draw_neighbours(Index degree, Index count, const Stream& stream, std::uint32_t id,
                            std::vector<Index>& drawn) {
  drawn.clear();
  if (count == 0 || count >= degree) {
    for (Index k = 0; k < degree; ++k) drawn.push_back(k);
    return;
  }
  for (Index i = 0; i < count; ++i) {
    const Index last = degree - count + i;  // Floyd: a number up to `last`, or `last` itself if that number is taken
    const Index number = below(stream.words(id, static_cast<std::uint32_t>(i)), last + 1);
    const auto place = std::lower_bound(drawn.begin(), drawn.end(), number);
    if (place != drawn.end() && *place == number) {
      drawn.push_back(last);
    } else {
      drawn.insert(place, number);
    }
  }
}

}  // namespace detail

/// See the file comment.
///
/// \param targets   increasing
/// \param fan_outs  see validate_fan_outs()
/// \param step      of the training; other steps have other neighbours
/// \throws std::invalid_argument  fan-outs out of range. Unchecked: the targets
[[nodiscard]] inline Subgraph sample_neighbours(const GraphRows& rows, std::span<const std::int32_t> targets,
                                                std::span<const Index> fan_outs, std::uint64_t seed,
                                                std::uint32_t step) {
  validate_fan_outs(fan_outs);
  struct Arc {
    std::int32_t from, to;
    Index of_whole;
  };
  std::vector<Arc> arcs;
  std::vector<std::int32_t> reached(targets.begin(), targets.end()), frontier = reached;
  const Dataset* const data = rows.dataset();
  std::vector<Index> drawn;
  for (std::size_t h = 0; h < fan_outs.size() && !frontier.empty(); ++h) {
    const Stream stream{seed, Purpose::neighbour_samples, step, static_cast<std::uint32_t>(h)};
    std::vector<std::int32_t> next;
    for (const std::int32_t u : frontier) {
      detail::draw_neighbours(rows.degree(u), fan_outs[h], stream, static_cast<std::uint32_t>(u), drawn);
      for (const Index k : drawn) {
        const std::int32_t v = static_cast<std::int32_t>(rows.neighbour(u, k));
        const Index arc = data != nullptr ? data->graph.first_arc(u) + k : -1;
        arcs.push_back({u, v, arc});
        arcs.push_back({v, u, data != nullptr ? data->graph.reverse(arc) : -1});
        next.push_back(v);
      }
    }
    std::sort(next.begin(), next.end());
    next.erase(std::unique(next.begin(), next.end()), next.end());
    frontier.clear();
    std::set_difference(next.begin(), next.end(), reached.begin(), reached.end(), std::back_inserter(frontier));
    std::vector<std::int32_t> all;
    std::merge(reached.begin(), reached.end(), frontier.begin(), frontier.end(), std::back_inserter(all));
    reached = std::move(all);
  }
  const auto number = [&](std::int32_t u) {
    return static_cast<std::int32_t>(std::lower_bound(reached.begin(), reached.end(), u) - reached.begin());
  };
  std::vector<SubgraphArc> local;
  local.reserve(arcs.size());
  for (const Arc& arc : arcs) local.push_back({number(arc.from), number(arc.to), arc.of_whole});
  std::sort(local.begin(), local.end());
  local.erase(std::unique(local.begin(), local.end(),
                          [](const SubgraphArc& a, const SubgraphArc& b) { return !(a < b) && !(b < a); }),
              local.end());
  return subgraph(rows, std::move(reached), local);
}

}  // namespace sheafnn
