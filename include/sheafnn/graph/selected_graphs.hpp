/// \file
/// SelectedGraphs: some of the graphs of a disjoint union (Graph::set_graphs()) as a union of their own. Its nodes and arcs
/// keep the addresses of random numbers that they have in the whole (graph/graph_part.hpp). So draws for a graph do not
/// depend on the graphs beside it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/graph/features.hpp"
#include "sheafnn/graph/graph.hpp"
#include "sheafnn/graph/graph_part.hpp"

namespace sheafnn::detail {

/// A part without neighbours elsewhere.
class AloneGraphPart final : public GraphPart {
 public:
  explicit AloneGraphPart(PartNumbers numbers) : GraphPart(std::move(numbers)) {}
  void begin_fetch(float*, Index) override {}
  void begin_fetch(double*, Index) override {}
  void end_fetch() override {}
  void give_back(float*, Index) override {}
  void give_back(double*, Index) override {}
  void sum(std::span<float>, std::span<double>) override {}
  void sum(std::span<double>, std::span<double>) override {}
  [[nodiscard]] double largest(double value) override { return value; }
};

/// Rows of features. Unchecked: their numbers.
[[nodiscard]] inline NodeFeatures rows_of(const NodeFeatures& features, std::span<const Index> rows) {
  std::vector<Index> offsets = {0};
  std::vector<std::int32_t> columns;
  std::vector<double> values;
  for (const Index u : rows) {
    const Index begin = features.offsets()[static_cast<std::size_t>(u)],
                end = features.offsets()[static_cast<std::size_t>(u) + 1];
    columns.insert(columns.end(), features.column_of().begin() + begin, features.column_of().begin() + end);
    values.insert(values.end(), features.values().begin() + begin, features.values().begin() + end);
    offsets.push_back(static_cast<Index>(values.size()));
  }
  NodeFeatures r =
      NodeFeatures::from_csr(std::move(offsets), std::move(columns), std::move(values), features.columns());
  r.set_indicators({features.indicators().begin(), features.indicators().end()});
  return r;
}

/// Neither copied nor moved: the graph refers to its part.
class SelectedGraphs {
 public:
  /// Unchecked: `whole` is no part of a larger graph, features have a row for each of its nodes.
  ///
  /// \param graphs      increasing numbers of graphs of the union, at least one
  /// \param as_a_part   keep the addresses in the whole; otherwise graph() is a whole graph of its own
  /// \throws std::invalid_argument  a number out of range or not larger than the one before
  SelectedGraphs(const Graph& whole, const NodeFeatures& features, std::span<const std::int32_t> graphs,
                 bool as_a_part = true)
      : SelectedGraphs(whole, features, graphs, as_a_part, numbers_of(whole, features, graphs)) {}
  SelectedGraphs(const SelectedGraphs&) = delete;
  SelectedGraphs& operator=(const SelectedGraphs&) = delete;

  [[nodiscard]] const Graph& graph() const noexcept { return graph_; }
  [[nodiscard]] const NodeFeatures& features() const noexcept { return features_; }
  /// Number in the whole of each node, and of its first stored feature.
  [[nodiscard]] const PartNumbers& numbers() const noexcept { return part_.numbers(); }

 private:
  SelectedGraphs(const Graph& whole, const NodeFeatures& features, std::span<const std::int32_t> graphs,
                 bool as_a_part, PartNumbers numbers)
      : features_(rows_of(features, numbers.node)), part_(std::move(numbers)) {
    std::vector<std::int32_t> offsets = {0};
    std::vector<Edge> pairs;
    for (const std::int32_t g : graphs) {
      const Index begin = whole.first_node(g), end = whole.first_node(g + 1), shift = offsets.back() - begin;
      for (Index a = whole.first_arc(begin); a < whole.first_arc(end); ++a) {
        if (!whole.listed(a)) continue;
        pairs.push_back({static_cast<std::int32_t>(whole.source(a) + shift),
                         static_cast<std::int32_t>(whole.target(a) + shift)});
      }
      offsets.push_back(static_cast<std::int32_t>(end + shift));
    }
    graph_ = Graph(offsets.back(), pairs);
    graph_.set_graphs(std::move(offsets));
    const PartNumbers& of_whole = part_.numbers();
    take_attributes(
        graph_, whole, [&](Index arc) { return of_whole.arc[static_cast<std::size_t>(arc)]; },
        [&](Index u) { return of_whole.node[static_cast<std::size_t>(u)]; });
    if (as_a_part) graph_.set_part(&part_);
  }
  [[nodiscard]] static PartNumbers numbers_of(const Graph& whole, const NodeFeatures& features,
                                              std::span<const std::int32_t> graphs) {
    PartNumbers r;
    r.total_nodes = whole.node_count();
    for (std::size_t i = 0; i < graphs.size(); ++i) {
      const Index g = graphs[i];
      require(g >= 0 && g < whole.graph_count(), ArgumentName({}, "graphs", i), g, "the union has no such graph");
      require(i == 0 || graphs[i - 1] < g, ArgumentName({}, "graphs", i), g, "graph numbers must increase");
      for (Index u = whole.first_node(g); u < whole.first_node(g + 1); ++u) {
        r.node.push_back(u);
        r.first_entry.push_back(features.offsets()[static_cast<std::size_t>(u)]);
        r.degree.push_back(whole.degree(u));
        r.in_degree.push_back(0);
        for (Index a = whole.first_arc(u); a < whole.first_arc(u + 1); ++a) {
          r.arc.push_back(static_cast<std::uint32_t>(a));
          r.in_degree.back() += whole.listed(whole.reverse(a)) ? 1 : 0;
        }
      }
    }
    r.own = r.interior = static_cast<Index>(r.node.size());
    r.total_edges = static_cast<Index>(r.arc.size() / 2);
    return r;
  }

  NodeFeatures features_;
  AloneGraphPart part_;
  Graph graph_;
};

}  // namespace sheafnn::detail
