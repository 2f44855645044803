/// \file
/// GraphOf: the type of graph of a model's networks, Graph unless the model names another type, `GraphType`. Also the
/// functions that loops over nodes need from any such type.
#pragma once

#include "sheafnn/core/config.hpp"
#include "sheafnn/graph/graph.hpp"
#include "sheafnn/graph/graph_part.hpp"
#include "sheafnn/graph/hypergraph.hpp"

namespace sheafnn::detail {

/// Model::GraphType, or Graph if the model names no type.
template <class Model>
struct GraphTypeOf {
  using type = Graph;
};
template <class Model>
  requires requires { typename Model::GraphType; }
struct GraphTypeOf<Model> {
  using type = typename Model::GraphType;
};

/// The part of a larger graph that a graph is, with rows of nodes; null where it is a whole.
[[nodiscard]] inline GraphPart* part_of(const Graph& graph) noexcept { return graph.part(); }
[[nodiscard]] inline GraphPart* part_of(const Hypergraph& graph) noexcept {
  return graph.part() == nullptr ? nullptr : &graph.part()->nodes();
}
/// Nodes 0 … r − 1 are this process's own.
[[nodiscard]] inline Index own_nodes_of(const Graph& graph) noexcept { return graph.own_node_count(); }
[[nodiscard]] inline Index own_nodes_of(const Hypergraph& graph) noexcept { return graph.node_count(); }
/// Incident pairs.
[[nodiscard]] inline Index pairs_of(const Graph& graph) noexcept { return graph.arc_count(); }
[[nodiscard]] inline Index pairs_of(const Hypergraph& graph) noexcept { return graph.pair_count(); }

}  // namespace sheafnn::detail

namespace sheafnn {

/// See the file comment.
template <class Model>
using GraphOf = typename detail::GraphTypeOf<Model>::type;

}  // namespace sheafnn
