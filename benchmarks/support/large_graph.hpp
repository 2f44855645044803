/// \file
/// Large random tasks that take seconds to generate: every edge and feature is a hash of its own number.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <sheafnn/graph/dataset.hpp>
#include <sheafnn/graph/splits.hpp>
#include <string>
#include <utility>
#include <vector>

#include "twin.hpp"

namespace benchmarks {

/// The n-th number of a pseudo-random sequence (SplitMix64: Steele, Lea, Flood, OOPSLA 2014).
[[nodiscard]] constexpr std::uint64_t hashed(std::uint64_t n) noexcept {
  n += 0x9E3779B97F4A7C15U;
  n = (n ^ (n >> 30)) * 0xBF58476D1CE4E5B9U;
  n = (n ^ (n >> 27)) * 0x94D049BB133111EBU;
  return n ^ (n >> 31);
}

/// Uniformly random edges {u, v}, sorted, as Graph takes them. There are as many edges with a smaller end u as expected
/// of uniform pairs, and their larger ends are hashes; duplicates are left out (about one edge in n / degree).
[[nodiscard]] inline std::vector<sheafnn::Edge> large_edges(sheafnn::Index nodes, sheafnn::Index edges) {
  std::vector<sheafnn::Edge> r;
  r.reserve(static_cast<std::size_t>(edges));
  // Edges whose smaller end is below u: the share of pairs, 1 − (1 − u/n)².
  const auto before = [&](sheafnn::Index u) {
    const double left = 1 - static_cast<double>(u) / static_cast<double>(nodes);
    return static_cast<sheafnn::Index>(static_cast<double>(edges) * (1 - left * left));
  };
  std::uint64_t draw = 0;
  for (sheafnn::Index u = 0; u + 1 < nodes; ++u) {
    const std::size_t first = r.size();
    const std::uint64_t larger_nodes = static_cast<std::uint64_t>(nodes - 1 - u);
    for (sheafnn::Index k = before(u); k < before(u + 1); ++k) {
      const std::uint64_t v = static_cast<std::uint64_t>(u) + 1 + ((hashed(draw++) >> 32) * larger_nodes >> 32);
      r.push_back({static_cast<std::int32_t>(u), static_cast<std::int32_t>(v)});
    }
    std::sort(r.begin() + static_cast<std::ptrdiff_t>(first), r.end());
    r.erase(std::unique(r.begin() + static_cast<std::ptrdiff_t>(first), r.end()), r.end());
  }
  return r;
}

/// A task of mean degree 50 with 64 features, 8 of them not zero at each node, and 8 classes: edges / 25 nodes, as
/// many as a graph of 6·10⁷ edges and 2.4·10⁶ nodes has. Labels are random: there is nothing to learn.
///
/// \param edges  at least 25 000
[[nodiscard]] inline sheafnn::Dataset large_task(sheafnn::Index edges) {
  constexpr sheafnn::Index features = 64, entries = 8, classes = 8;
  const sheafnn::Index nodes = edges / 25;
  sheafnn::Dataset data;
  data.name = sheafnn::detail::concat("random graph of ", edges, " edges");
  data.graph = sheafnn::Graph(nodes, large_edges(nodes, edges));
  data.features = spread_features(nodes, features, nodes * entries);
  data.class_count = classes;
  for (sheafnn::Index u = 0; u < nodes; ++u) {
    data.labels.push_back(static_cast<std::int32_t>(hashed(static_cast<std::uint64_t>(u)) >> 61));
  }
  data.splits = sheafnn::make_splits(data.labels, classes, 1);
  return data;
}

}  // namespace benchmarks
