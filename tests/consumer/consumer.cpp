// A program of the library's core: a triangle with a tail, built from a careless edge list, and a network in continuous
// time, the only one that needs Boost.Odeint.
#include <iostream>
#include <sheafnn/core/parallel.hpp>
#include <sheafnn/flow.hpp>
#include <sheafnn/graph/graph.hpp>
#include <sheafnn/version.hpp>
#include <vector>

int main() {
  const std::vector<sheafnn::Edge> pairs = {{0, 1}, {1, 2}, {2, 0}, {0, 2}, {2, 3}, {3, 3}};
  const sheafnn::Graph graph(5, pairs);
  std::vector<int> degrees(5);
  sheafnn::parallel_for(2, graph.node_count(), 1, [&](sheafnn::Index begin, sheafnn::Index end) {
    for (sheafnn::Index u = begin; u < end; ++u) {
      degrees[static_cast<std::size_t>(u)] = static_cast<int>(graph.degree(u));
    }
  });
  std::cout << graph.node_count() << " nodes, " << graph.edge_count() << " edges, degrees";
  for (const int degree : degrees) std::cout << ' ' << degree;
  const sheafnn::SheafFlow<sheafnn::Diagonal<2>> flow({.features = 3, .classes = 2, .time = 2});
  std::cout << ", flow to time " << flow.options().time << ", version " << SHEAFNN_VERSION_MAJOR << '\n';
}
