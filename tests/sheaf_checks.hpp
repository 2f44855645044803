// What the tests of sheaves share: random graphs, sheaves and features.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "dense_algebra.hpp"
#include "map_kind.hpp"
#include "sheafnn/graph/graph.hpp"
#include "sheafnn/random/stream.hpp"
#include "sheafnn/sheaf/cellular_sheaf.hpp"
#include "sheafnn/sheaf/normalisation.hpp"
#include "sheafnn/sheaf/random_sheaf.hpp"

namespace sheaf_checks {

using namespace sheafnn;
using namespace sheafnn::sheaf;
using dense_algebra::Dense;
using dense_algebra::product;
using dense_algebra::solve;
using dense_algebra::spectrum;

inline constexpr Normalisation all_normalisations[] = {Normalisation::none, Normalisation::block,
                                                       Normalisation::augmented, Normalisation::degree};

// |a − b| ≤ bound, entry by entry. Compiled in test_dense_algebra.cpp.
bool within(const Dense& a, const Dense& b, const Dense& bound);

// `pairs` random node pairs; the last node stays isolated.
inline Graph random_graph(Index nodes, Index pairs, std::uint64_t seed) {
  std::vector<Edge> edges;
  for (Index i = 0; i < pairs; ++i) {
    const auto block = Stream{.seed = seed}.words(static_cast<std::uint32_t>(i), 0);
    const auto below = [&](std::uint32_t word) {
      return static_cast<std::int32_t>(word % static_cast<std::uint32_t>(nodes - 1));
    };
    edges.push_back({below(block.word[0]), below(block.word[1])});
  }
  return Graph(nodes, edges);
}

// A connected graph: a cycle through all nodes with chords.
inline Graph cycle_graph(Index nodes, Index chords = 0) {
  std::vector<Edge> edges;
  for (Index u = 0; u < nodes; ++u) {
    edges.push_back({static_cast<std::int32_t>(u), static_cast<std::int32_t>((u + 1) % nodes)});
  }
  for (Index i = 0; i < chords; ++i) {
    edges.push_back({static_cast<std::int32_t>(i), static_cast<std::int32_t>((3 * i + nodes / 2) % nodes)});
  }
  return Graph(nodes, edges);
}

// Maps with N(0, 1) entries or Haar rotations, times `size`; rotations get it as edge weights with some spread.
template <class Family>
CellularSheaf<Family> sized_sheaf(const Graph& graph, double size, std::uint64_t seed) {
  CellularSheaf<Family> sheaf = random_sheaf<Family>(graph, Stream{.seed = seed});
  if constexpr (test::kind_of<Family> == test::MapKind::rotation) {
    for (Index e = 0; e < graph.edge_count(); ++e) {
      sheaf.set_edge_weight(e, size * (0.5 + static_cast<double>(e % 3)));
    }
  } else if constexpr (test::kind_of<Family> != test::MapKind::fixed) {
    for (Index a = 0; a < graph.arc_count(); ++a) sheaf.set_map(a, size * sheaf.map(a));
  }
  return sheaf;
}

inline Cochain<double> random_cochain(Index rows, Index columns, std::uint64_t seed) {
  Cochain<double> x(rows, columns);
  for (Index i = 0; i < x.size(); ++i) {
    fill_normals<1>(x.data() + i, Stream{.seed = seed}, static_cast<std::uint32_t>(i));
  }
  return x;
}

}  // namespace sheaf_checks
