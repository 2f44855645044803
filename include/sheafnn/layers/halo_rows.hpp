/// \file
/// Rows of the halo of a graph that is a part of another (graph/graph_part.hpp), where layers read them or have their
/// derivatives. The same for sums over members of hyperedges (graph/hypergraph_part.hpp). A whole graph or hypergraph has no
/// halo, and nothing happens.
#pragma once

#include <algorithm>

#include "sheafnn/core/config.hpp"
#include "sheafnn/graph/graph.hpp"
#include "sheafnn/graph/hypergraph.hpp"
#include "sheafnn/graph/node_selection.hpp"

namespace sheafnn::detail {

/// Overwrites the rows of the halo with their owners' rows. \param rows  n × width
template <class S>
void fetch_halo(GraphPart* part, S* rows, Index width) {
  if (part == nullptr) return;
  part->begin_fetch(rows, width);
  part->end_fetch();
}
/// fetch_halo() of a graph's part; does nothing on a whole graph.
template <class S>
void fetch_halo(const Graph& graph, S* rows, Index width) {
  fetch_halo(graph.part(), rows, width);
}

/// Adds the rows of the halo to their owners' rows and sets them to 0. \param rows  n × width
template <class S>
void give_halo_back(const Graph& graph, S* rows, Index width) {
  if (graph.part() != nullptr) graph.part()->give_back(rows, width);
}

/// Replaces sums over a part's members of a cut hyperedge by the sums over all of its members, with the same bits in all
/// parts. \param rows  hyperedges × width
template <class S>
void sum_cut_hyperedges(const Hypergraph& hypergraph, S* rows, Index width) {
  if (hypergraph.part() == nullptr) return;
  GraphPart& part = hypergraph.part()->hyperedges();
  part.give_back(rows, width);
  fetch_halo(&part, rows, width);
}

/// Sets the rows of the halo to 0. \param rows  n × width
template <class S>
SHEAFNN_NOINLINE void clear_halo(const Graph& graph, S* rows, Index width) {
  const Index own = graph.own_node_count();
  std::fill_n(rows + own * width, (graph.node_count() - own) * width, S(0));
}

/// Calls body(first, past the last) for the indices of the selected nodes. Interior nodes come first, while the rows of
/// the halo are exchanged. The other owned nodes follow when these rows have their owners' values. On a whole graph it
/// calls body once, for all nodes.
///
/// \param rows  n × width; body may read all rows but must not write them
template <class S, class Body>
void with_halo(const Graph& graph, const NodeSelection& nodes, S* rows, Index width, const Body& body) {
  GraphPart* part = graph.part();
  if (part == nullptr) {
    body(Index{0}, nodes.count());
    return;
  }
  const Index interior = nodes.lower_bound(part->numbers().interior);
  part->begin_fetch(rows, width);
  body(Index{0}, interior);
  part->end_fetch();
  body(interior, nodes.lower_bound(part->numbers().own));
}

}  // namespace sheafnn::detail
