/// \file
/// SelectedGraphs: some of the graphs of a disjoint union (Graph::set_graphs()) as a union of their own. Its nodes and arcs
/// keep the addresses of random numbers that they have in the whole (graph/graph_part.hpp). So draws for a graph do not
/// depend on the other graphs.
#pragma once

#include <cstdint>
#include <span>
#include <utility>

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

/// Neither copied nor moved: the graph refers to its part.
class SelectedGraphs {
 public:
  /// Unchecked: `whole` is not a part of a larger graph, features have a row for each of its nodes.
  ///
  /// \param graphs      increasing indices of graphs of the union, at least one
  /// \param as_a_part   keep the addresses in the whole; otherwise graph() is a whole graph of its own
  /// \throws std::invalid_argument  an index out of range or not larger than the one before
  SelectedGraphs(const Graph& whole, const NodeFeatures& features, std::span<const std::int32_t> graphs,
                 bool as_a_part = true)
      : graph_(whole.of_graphs(graphs)),
        part_(numbers_of(whole, features, graphs, graph_)),
        features_(features.rows_at(part_.numbers().node)) {
    const PartNumbers& of_whole = part_.numbers();
    take_attributes(
        graph_, whole, [&](Index arc) { return of_whole.arc[arc]; },
        [&](Index u) { return of_whole.node[static_cast<std::size_t>(u)]; });
    if (as_a_part) graph_.set_part(&part_);
  }
  SelectedGraphs(const SelectedGraphs&) = delete;
  SelectedGraphs& operator=(const SelectedGraphs&) = delete;

  [[nodiscard]] const Graph& graph() const noexcept { return graph_; }
  [[nodiscard]] const NodeFeatures& features() const noexcept { return features_; }
  /// Index in the whole of each node, and of its first stored feature.
  [[nodiscard]] const PartNumbers& numbers() const noexcept { return part_.numbers(); }

 private:
  /// \param selected  the graphs as a union of their own
  [[nodiscard]] static PartNumbers numbers_of(const Graph& whole, const NodeFeatures& features,
                                              std::span<const std::int32_t> graphs, const Graph& selected) {
    const std::size_t nodes = static_cast<std::size_t>(selected.node_count());
    PartNumbers r;
    r.own = r.interior = selected.node_count();
    r.total_nodes = whole.node_count();
    r.total_edges = selected.edge_count();
    r.node.resize(nodes);
    r.first_entry.resize(nodes);
    r.degree.resize(nodes);
    r.in_degree.resize(nodes);
    r.arc.resize(selected.arc_count(), false);
    std::size_t node = 0;
    Index arc = 0;
    for (const std::int32_t g : graphs) {
      const Index begin = whole.first_node(g), end = whole.first_node(g + 1);
      for (Index u = begin; u < end; ++u, ++node) {
        r.node[node] = u;
        r.first_entry[node] = features.offsets()[static_cast<std::size_t>(u)];
        r.degree[node] = whole.degree(u);
      }
      for (Index a = whole.first_arc(begin); a < whole.first_arc(end); ++a, ++arc) {
        r.arc.set(arc, a);
      }
    }
    for (Index a = 0; a < selected.arc_count(); ++a) {
      r.in_degree[static_cast<std::size_t>(selected.target(a))] += selected.listed(a) ? 1 : 0;
    }
    return r;
  }

  Graph graph_;
  AloneGraphPart part_;
  NodeFeatures features_;
};

}  // namespace sheafnn::detail
