/// \file
/// Graphs with directions, for tests of directed layers in the batch engine.
#pragma once

#include <vector>

#include "batch_checks.hpp"
#include "sheafnn/every_layer.hpp"

namespace directed_task {

template <class Family>
using Point = sheafnn::DirectedSheafNetwork<Family, double>;
template <class Family>
using Bayesian = sheafnn::BayesianDirectedSheafNetwork<Family, double>;

/// A problem whose graph lists every fifth edge both ways, and every third of the others from its larger node.
inline batch_checks::Problem with_directions(batch_checks::Problem problem) {
  std::vector<sheafnn::Edge> edges;
  for (sheafnn::Index e = 0; e < problem.graph.edge_count(); ++e) {
    const sheafnn::Edge edge = problem.graph.edge(e);
    if (e % 3 != 1 || e % 5 == 0) edges.push_back(edge);
    if (e % 3 == 1 || e % 5 == 0) edges.push_back({edge.v, edge.u});
  }
  problem.graph = sheafnn::Graph(problem.graph.node_count(), edges);
  return problem;
}

/// Every bit of `choice` is an option.
inline sheafnn::DirectedOptions options_of(int choice) {
  sheafnn::DirectedOptions r;
  r.imaginary_weights = (choice & 1) != 0;
  r.imaginary_start = (choice & 2) == 0;
  r.activation = (choice & 4) != 0 ? sheafnn::ComplexActivation::elu : sheafnn::ComplexActivation::complex_relu;
  r.random = (choice & 8) != 0;
  r.charge = choice % 3 == 0 ? 0.25 : 0.15;
  return r;
}

}  // namespace directed_task
