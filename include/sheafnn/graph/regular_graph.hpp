/// \file
/// Seeded random graphs in which all nodes have the same degree, up to one.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/graph/graph.hpp"
#include "sheafnn/graph/splits.hpp"
#include "sheafnn/graph/synthetic.hpp"

namespace sheafnn {

/// A random graph with exactly m = round(n · degree / 2) edges, in time proportional to them; every node has ⌊2m/n⌋ or
/// ⌈2m/n⌉ neighbours.
///
/// The ends of all edges are paired at random (the configuration model). A pair of one node, or one that repeats another,
/// exchanges an end with an edge drawn at random until both are new.
///
/// \param nodes   n, 2 … 2³¹ − 1
/// \param degree  mean degree, 0 … n/4
/// \param seed    same numbers, same graph
/// \throws std::invalid_argument  an argument outside its range, 2³⁰ edges or more, or, in a graph of few nodes, no such
///         exchange after 2000 draws
[[nodiscard]] inline Graph random_regular_graph(Index nodes, double degree, std::uint64_t seed) {
  require_between("nodes", nodes, 2, 2147483647);
  require_between("degree", degree, 0, static_cast<double>(nodes) / 4);
  const double exact = static_cast<double>(nodes) * degree / 2;
  require(exact < 1073741824.0, "degree", degree, "a graph must have less than 2^30 edges");
  const std::size_t count = static_cast<std::size_t>(std::llround(exact));
  const Stream stream = detail::generator_stream(seed, detail::GeneratorPart::edges);
  std::vector<std::int32_t> ends(2 * count);
  for (std::size_t i = 0; i < ends.size(); ++i) {
    ends[i] = static_cast<std::int32_t>(i % static_cast<std::size_t>(nodes));
  }
  detail::shuffle(ends, stream);  // takes draw 0

  detail::PairSet known(2 * count);
  std::vector<Edge> edges;
  std::vector<Edge> rejected;
  edges.reserve(count);
  for (std::size_t e = 0; e < count; ++e) {
    const Edge pair{ends[2 * e], ends[2 * e + 1]};
    (pair.u != pair.v && known.insert(pair.u, pair.v) ? edges : rejected).push_back(pair);
  }
  constexpr std::uint32_t most_draws = 2000;
  for (std::size_t i = 0; i < rejected.size(); ++i) {
    const auto [a, b] = rejected[i];
    bool placed = false;
    for (std::uint32_t draw = 1; !placed; ++draw) {
      require(draw <= most_draws && !edges.empty(), "degree", degree, "these nodes cannot hold so many edges");
      const random::PhiloxBlock<std::uint32_t> word = stream.words(static_cast<std::uint32_t>(i), draw);
      Edge& other = edges[detail::below(word.word[0], static_cast<Index>(edges.size()))];
      auto [c, d] = other;
      if ((word.word[1] & 1) != 0) std::swap(c, d);
      if (a == c || b == d || known.contains(a, c) || known.contains(b, d)) continue;
      known.insert(a, c);
      known.insert(b, d);
      placed = true;
      other = {a, c};
      edges.push_back({b, d});
    }
  }
  return Graph(nodes, edges);
}

}  // namespace sheafnn
