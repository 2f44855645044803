/// \file
/// The graph and the features of which a part has a piece (graph/graph_part.hpp), gathered on every part, for what is computed
/// once from all nodes. While they exist, each part holds 2 values per arc and 2 per stored feature of the whole graph.
///
/// All parts call these functions in the same order. Unchecked: that the graph is a part.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/graph/features.hpp"
#include "sheafnn/graph/graph.hpp"
#include "sheafnn/graph/graph_part.hpp"

namespace sheafnn::detail {

// Parts fill in their own values and leave 0 elsewhere: sums of one value and zeros are exact.

/// The index of the first stored feature of every node of the whole, and then the total number of features.
///
/// \param features  of the part's nodes
[[nodiscard]] inline std::vector<Index> whole_offsets(GraphPart& part, const NodeFeatures& features) {
  const PartNumbers& numbers = part.numbers();
  std::vector<double> sizes(static_cast<std::size_t>(numbers.total_nodes));
  for (std::size_t u = 0; u < static_cast<std::size_t>(numbers.own); ++u) {
    sizes[static_cast<std::size_t>(numbers.node[u])] =
        static_cast<double>(features.offsets()[u + 1] - features.offsets()[u]);
  }
  part.sum(std::span<double>(sizes), {});
  std::vector<Index> r = {0};
  for (const double size : sizes) r.push_back(r.back() + static_cast<Index>(size));
  return r;
}

/// The graph that this one is a part of, without features of arcs.
///
/// \throws std::invalid_argument  indices of arcs that the whole does not have, as in graphs selected from a union
[[nodiscard]] inline Graph whole_graph(const Graph& graph) {
  GraphPart& part = *graph.part();
  const PartNumbers& numbers = part.numbers();
  const auto node = [&](Index u) { return static_cast<double>(numbers.node[static_cast<std::size_t>(u)]); };
  std::vector<double> source(static_cast<std::size_t>(2 * numbers.total_edges)), target(source.size());
  for (Index arc = 0; arc < graph.first_arc(numbers.own); ++arc) {
    const std::size_t i = static_cast<std::size_t>(numbers.arc[arc]);
    require(i < source.size(), "arc", i, "the parts are not joined to one graph");
    source[i] = node(graph.source(arc));
    target[i] = 2 * node(graph.target(arc)) + (graph.listed(arc) ? 1 : 0);
  }
  part.sum(std::span<double>(source), std::span<double>(target));
  std::vector<Edge> listed;
  for (std::size_t i = 0; i < source.size(); ++i) {
    const auto end = static_cast<Index>(target[i]);
    if (end % 2 == 1) listed.push_back({static_cast<std::int32_t>(source[i]), static_cast<std::int32_t>(end / 2)});
  }
  return graph_of_entries(numbers.total_nodes, std::move(listed));
}

/// The features of all nodes of the whole. \param features  of the part's nodes
[[nodiscard]] inline NodeFeatures whole_features(const Graph& graph, const NodeFeatures& features) {
  GraphPart& part = *graph.part();
  const PartNumbers& numbers = part.numbers();
  std::vector<Index> offsets = whole_offsets(part, features);
  std::vector<double> column(static_cast<std::size_t>(offsets.back())), value(column.size());
  for (std::size_t u = 0; u < static_cast<std::size_t>(numbers.own); ++u) {
    std::size_t to = static_cast<std::size_t>(offsets[static_cast<std::size_t>(numbers.node[u])]);
    for (Index k = features.offsets()[u]; k < features.offsets()[u + 1]; ++k, ++to) {
      column[to] = features.column_of()[static_cast<std::size_t>(k)];
      value[to] = features.values()[static_cast<std::size_t>(k)];
    }
  }
  part.sum(std::span<double>(column), std::span<double>(value));
  NodeFeatures r = NodeFeatures::from_csr(std::move(offsets), {column.begin(), column.end()}, std::move(value),
                                          features.columns());
  r.set_indicators({features.indicators().begin(), features.indicators().end()});
  return r;
}

}  // namespace sheafnn::detail
