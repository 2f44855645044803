/// \file
/// Graphs with features of their nodes and arcs, from and to NumPy arrays: of a Dataset, or of a GraphSet.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <sheafnn/core/errors.hpp>
#include <sheafnn/graph/graph.hpp>
#include <span>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "node_arrays.hpp"

namespace python {

using sheafnn::Index;

/// \param pairs  m × 2 \param name  what messages call them
[[nodiscard]] inline std::vector<sheafnn::Edge> make_edges(Index nodes, const Input<std::int64_t>& pairs,
                                                           const char* name = "edges") {
  const std::span<const std::int64_t> numbers = span_of(pairs);
  sheafnn::require(numbers.size() % 2 == 0, name, numbers.size(), "must be pairs of node numbers");
  std::vector<sheafnn::Edge> edges(numbers.size() / 2);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] < 0 || numbers[i] >= nodes) {
      sheafnn::throw_invalid_argument(sheafnn::detail::concat(name, "[", i / 2, ", ", i % 2, "]"), numbers[i],
                                      sheafnn::detail::concat("a node number must be between 0 and ", nodes - 1));
    }
    (i % 2 == 0 ? edges[i / 2].u : edges[i / 2].v) = static_cast<std::int32_t>(numbers[i]);
  }
  return edges;
}
[[nodiscard]] inline sheafnn::Graph make_graph(Index nodes, const Input<std::int64_t>& pairs) {
  return sheafnn::Graph(nodes, make_edges(nodes, pairs));
}

template <class Data>
[[nodiscard]] Output<std::int32_t> edge_array(const Data& data) {
  std::vector<std::int32_t> r;
  for (const sheafnn::Edge& e : data.graph.edges()) r.insert(r.end(), {e.u, e.v});
  return to_numpy(std::move(r), {static_cast<std::size_t>(data.graph.edge_count()), 2});
}
/// The arcs that the pairs had that the graph was built from.
template <class Data>
[[nodiscard]] Output<std::int32_t> listed_arcs(const Data& data) {
  const sheafnn::Graph& graph = data.graph;
  std::vector<std::int32_t> r;
  for (Index a = 0; a < graph.arc_count(); ++a) {
    if (!graph.listed(a)) continue;
    r.insert(r.end(), {static_cast<std::int32_t>(graph.source(a)), static_cast<std::int32_t>(graph.target(a))});
  }
  const std::size_t count = r.size() / 2;
  return to_numpy(std::move(r), {count, 2});
}

/// 2m × k, of the arcs in the order of the graph; null without arc features
template <class Data>
[[nodiscard]] nb::object arc_features(const Data& data) {
  const auto count = static_cast<std::size_t>(data.graph.arc_feature_count());
  if (count == 0) return nb::none();
  return nb::cast(to_numpy(data.graph.arc_features(), {static_cast<std::size_t>(data.graph.arc_count()), count}));
}
template <class Data>
void set_arc_features(Data& data, const Input<double>& values) {
  sheafnn::require(values.ndim() == 2, "arc features", values.ndim(), "must have two axes");
  data.graph.set_arc_features(span_of(values), static_cast<Index>(values.shape(1)));
}

/// Properties that all such data have.
template <class Data>
void bind_graph_arrays(nb::class_<Data>& bound) {
  // By reference, for the arrays own their values: a copy would call Python in a function that is noexcept.
  bound.def_ro("name", &Data::name)
      .def_prop_ro("node_count", [](const Data& data) { return data.graph.node_count(); })
      .def_prop_ro("edge_count", [](const Data& data) { return data.graph.edge_count(); })
      .def_prop_ro("feature_count", [](const Data& data) { return data.features.given_columns(); })
      .def_ro("class_count", &Data::class_count)
      .def_ro("class_names", &Data::class_names)
      .def_prop_ro("dropped_self_loops", [](const Data& data) { return data.graph.dropped_self_loops(); })
      .def_prop_ro(
          "labels", [](const Data& data) { return to_numpy(data.labels, {data.labels.size()}); },
          nb::rv_policy::reference)
      .def_prop_ro("edges", &edge_array<Data>, nb::rv_policy::reference)
      .def_prop_ro("listed_arcs", &listed_arcs<Data>, nb::rv_policy::reference)
      .def_prop_ro("arc_features", &arc_features<Data>)
      .def("set_arc_features", &set_arc_features<Data>)
      .def("feature_arrays", &feature_arrays<Data>);
}

}  // namespace python
