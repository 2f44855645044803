/// \file
/// What a network without edges (ModelOptions::use_edges) sees of a graph: its nodes. Source: math:
/// "Networks without edges".
#pragma once

#include <memory>
#include <span>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/graph/graph.hpp"

namespace sheafnn::detail {

/// Does a network with these options see edges? Only ModelOptions say so.
template <class Options>
[[nodiscard]] constexpr bool sees_edges(const Options& options) {
  if constexpr (requires { options.use_edges; }) {
    return options.use_edges;
  } else {
    return true;
  }
}

/// \throws std::invalid_argument  options of a network that does not see edges
template <class Options>
void require_edges(const Options& options) {
  require(sees_edges(options), "use_edges", false, "a network without edges has no sheaf");
}

/// The nodes of a graph without its edges, where a network does not see them; else null.
///
/// \throws std::invalid_argument  a part of a larger graph, whose rows other parts wait for
template <class Options>
[[nodiscard]] std::unique_ptr<const Graph> without_edges(const Options& options, const Graph& graph) {
  if (sees_edges(options)) return nullptr;
  require(graph.part() == nullptr, "use_edges", false, "a part of a larger graph exchanges rows along its edges");
  auto r = std::make_unique<Graph>(graph.node_count(), std::span<const Edge>());
  r->set_arc_features({}, graph.arc_feature_count());
  r->set_edge_types({}, graph.edge_type_count());
  r->set_node_types(graph.node_types(), graph.node_type_count());
  return r;
}

}  // namespace sheafnn::detail
