/// \file
/// What holds for every dataset that a reader returns.
#pragma once

#include "contract.hpp"
#include "sheafnn/graph/dataset.hpp"

namespace fuzz {

inline void expect_graph(const sheafnn::Graph& graph) {
  using sheafnn::Index;
  expect(graph.arc_count() == 2 * graph.edge_count(), "graph: two arcs for each edge");
  for (Index a = 0; a < graph.arc_count(); ++a) {
    const Index back = graph.reverse(a);
    expect(graph.reverse(back) == a && graph.source(back) == graph.target(a), "graph: reverse arcs");
    expect(graph.source(a) != graph.target(a), "graph: a self-loop");
    expect(graph.first_arc(graph.source(a)) <= a && a < graph.first_arc(graph.source(a) + 1), "graph: offsets");
  }
}
/// \param training  it is one for training: complete
inline void expect_dataset(const sheafnn::Dataset& data, bool training) {
  expect_graph(data.graph);
  expect(data.graph.edge_count() > 0, "dataset: no edge");
  expect(data.features.rows() == data.node_count() && data.features.columns() > 0, "dataset: features");
  for (const double value : data.features.values())
    expect(std::isfinite(value), "dataset: a feature is not finite");
  if (training) validate(data);
}

}  // namespace fuzz
