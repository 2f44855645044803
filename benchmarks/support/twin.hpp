/// \file
/// Synthetic twins of public graphs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <sheafnn/graph/dataset.hpp>
#include <sheafnn/graph/synthetic.hpp>
#include <sheafnn/random/stream.hpp>
#include <string>
#include <utility>
#include <vector>

#include "epoch_graphs.hpp"

namespace benchmarks {

/// `entries` ones, spread evenly over n rows, in distinct random columns of each row.
///
/// \param entries  at most n · columns / 2
[[nodiscard]] inline sheafnn::NodeFeatures spread_features(sheafnn::Index n, sheafnn::Index columns,
                                                           sheafnn::Index entries) {
  using sheafnn::Index;
  const sheafnn::Stream stream{0, sheafnn::Purpose::user};
  std::vector<Index> offsets = {0};
  std::vector<std::int32_t> chosen;
  std::vector<Index> last_row(static_cast<std::size_t>(columns), -1);
  std::uint32_t id = 0;
  for (Index u = 0; u < n; ++u) {
    const Index end = entries * (u + 1) / n;
    while (static_cast<Index>(chosen.size()) < end) {
      const std::uint32_t column = sheafnn::detail::below(stream.words(id++, 0).word[0], columns);
      if (std::exchange(last_row[column], u) != u) chosen.push_back(static_cast<std::int32_t>(column));
    }
    std::sort(chosen.begin() + offsets.back(), chosen.end());
    offsets.push_back(end);
  }
  return sheafnn::NodeFeatures::from_csr(std::move(offsets), std::move(chosen),
                                         std::vector<double>(static_cast<std::size_t>(entries), 1.0), columns);
}

/// A graph with some edges {u, v} turned into {0, v}, so that node 0 has `degree` of them.
[[nodiscard]] inline sheafnn::Graph with_hub(const sheafnn::Graph& graph, sheafnn::Index degree) {
  using sheafnn::Index;
  const Index m = graph.edge_count();
  std::vector<sheafnn::Edge> edges;
  std::vector<bool> neighbour(static_cast<std::size_t>(graph.node_count()));
  for (Index e = 0; e < m; ++e) {
    edges.push_back(graph.edge(e));
    if (edges.back().u == 0) neighbour[static_cast<std::size_t>(edges.back().v)] = true;
  }
  Index missing = degree - graph.degree(0);
  for (Index k = 0; k < m && missing > 0; ++k) {
    // Edges are in the order of their nodes: take them from everywhere.
    sheafnn::Edge& edge = edges[static_cast<std::size_t>(k * 7919 % m)];
    if (edge.u == 0 || neighbour[static_cast<std::size_t>(edge.v)]) continue;
    neighbour[static_cast<std::size_t>(edge.v)] = true;
    edge.u = 0;
    --missing;
  }
  return sheafnn::Graph(graph.node_count(), edges);
}

/// A synthetic graph with as many nodes, edges, features, non-zero features and classes as a graph of the table,
/// named "NAME twin".
///
/// \param hub  one node has the largest degree of that graph
[[nodiscard]] inline sheafnn::Dataset twin(const EpochGraph& graph, sheafnn::Index splits = 1, bool hub = false) {
  sheafnn::SyntheticOptions options;
  options.nodes = graph.nodes;
  options.degree = 2 * static_cast<double>(graph.edges) / static_cast<double>(graph.nodes);
  options.classes = graph.classes;
  options.features = graph.features;
  options.splits = splits;
  sheafnn::Dataset data = sheafnn::synthetic(options);
  data.features = spread_features(graph.nodes, graph.features, graph.entries);
  if (hub) data.graph = with_hub(data.graph, graph.largest_degree);
  data.name = std::string(graph.name) + " twin";
  return data;
}

}  // namespace benchmarks
