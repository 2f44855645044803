/// \file
/// Datasets: from arrays, from files, and those that the library makes.
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <sheafnn/bsnn/presets.hpp>
#include <sheafnn/graph/dataset.hpp>
#include <sheafnn/graph/karate.hpp>
#include <sheafnn/graph/labels.hpp>
#include <sheafnn/graph/splits.hpp>
#include <sheafnn/graph/statistics.hpp>
#include <sheafnn/graph/synthetic.hpp>
#include <sheafnn/io/csv_nodes.hpp>
#include <sheafnn/io/datasets.hpp>
#include <sheafnn/io/npz_keys.hpp>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "interpreter.hpp"
#include "module.hpp"
#include "node_arrays.hpp"

namespace python {

namespace {

using sheafnn::Dataset;
using sheafnn::Index;

/// \param pairs  m × 2
sheafnn::Graph make_graph(Index nodes, const Input<std::int64_t>& pairs) {
  const std::span<const std::int64_t> numbers = span_of(pairs);
  sheafnn::require(numbers.size() % 2 == 0, "edges", numbers.size(), "must be pairs of node numbers");
  std::vector<sheafnn::Edge> edges(numbers.size() / 2);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] < 0 || numbers[i] >= nodes) {
      sheafnn::throw_invalid_argument(sheafnn::detail::concat("edges[", i / 2, ", ", i % 2, "]"), numbers[i],
                                      sheafnn::detail::concat("a node number must be between 0 and ", nodes - 1));
    }
    (i % 2 == 0 ? edges[i / 2].u : edges[i / 2].v) = static_cast<std::int32_t>(numbers[i]);
  }
  return sheafnn::Graph(nodes, edges);
}

Dataset make_dataset(std::string name, Index nodes, const Input<std::int64_t>& edges,
                     const Input<std::int64_t>& offsets, const Input<std::int32_t>& columns,
                     const Input<double>& values, Index feature_count, const Input<std::int32_t>& labels,
                     Index class_count, std::vector<std::string> node_names, std::vector<std::string> class_names,
                     std::vector<std::string> feature_names) {
  sheafnn::require(nodes >= 0 && nodes <= 2147483647, "nodes", nodes, "must be between 0 and 2147483647");
  Dataset data;
  data.name = std::move(name);
  data.graph = make_graph(nodes, edges);
  set_nodes(data, nodes, offsets, columns, values, feature_count, labels);
  data.class_count = class_count;
  data.node_names = std::move(node_names);
  data.class_names = std::move(class_names);
  data.feature_names = std::move(feature_names);
  return data;
}

Output<std::int32_t> edge_array(const Dataset& data) {
  std::vector<std::int32_t> r;
  for (const sheafnn::Edge& e : data.graph.edges()) r.insert(r.end(), {e.u, e.v});
  return to_numpy(std::move(r), {static_cast<std::size_t>(data.graph.edge_count()), 2});
}
/// The arcs that the pairs had that the graph was built from.
Output<std::int32_t> listed_arcs(const Dataset& data) {
  const sheafnn::Graph& graph = data.graph;
  std::vector<std::int32_t> r;
  for (Index a = 0; a < graph.arc_count(); ++a) {
    if (!graph.listed(a)) continue;
    r.insert(r.end(), {static_cast<std::int32_t>(graph.source(a)), static_cast<std::int32_t>(graph.target(a))});
  }
  const std::size_t count = r.size() / 2;
  return to_numpy(std::move(r), {count, 2});
}

/// 2m × k, of the arcs in the order of the graph; null where there are none
nb::object arc_features(const Dataset& data) {
  const auto count = static_cast<std::size_t>(data.graph.arc_feature_count());
  if (count == 0) return nb::none();
  return nb::cast(to_numpy(data.graph.arc_features(), {static_cast<std::size_t>(data.graph.arc_count()), count}));
}
void set_arc_features(Dataset& data, const Input<double>& values) {
  sheafnn::require(values.ndim() == 2, "arc features", values.ndim(), "must have two axes");
  data.graph.set_arc_features(span_of(values), static_cast<Index>(values.shape(1)));
}

/// offsets, columns and values of a CSR matrix; a missing value is NaN, and indicators are left out
auto feature_arrays(const Dataset& data) {
  const sheafnn::NodeFeatures& x = data.features;
  const std::size_t count = static_cast<std::size_t>(x.entries());
  const std::vector<std::int64_t> offsets(x.offsets().begin(), x.offsets().end());
  std::vector<std::int32_t> columns(x.column_of().begin(), x.column_of().end());
  std::vector<double> values(x.values().begin(), x.values().end());
  const Index given = x.given_columns();
  for (std::size_t i = 0; i < count; ++i) {
    if (columns[i] < given) continue;
    columns[i] = x.indicators()[static_cast<std::size_t>(columns[i] - given)];
    values[i] = std::numeric_limits<double>::quiet_NaN();
  }
  return nb::make_tuple(to_numpy(offsets, {offsets.size()}), to_numpy(std::move(columns), {count}),
                        to_numpy(std::move(values), {count}));
}

}  // namespace

void bind_dataset(nb::module_& module) {
  nb::class_<Dataset>(module, "Dataset")
      .def_ro("name", &Dataset::name)
      .def_prop_ro("node_count", &Dataset::node_count)
      .def_prop_ro("edge_count", [](const Dataset& data) { return data.graph.edge_count(); })
      .def_prop_ro("feature_count", [](const Dataset& data) { return data.features.given_columns(); })
      .def_ro("feature_names", &Dataset::feature_names)
      .def_ro("class_count", &Dataset::class_count)
      .def_ro("node_names", &Dataset::node_names)
      .def_ro("class_names", &Dataset::class_names)
      .def_prop_ro("dropped_self_loops", [](const Dataset& data) { return data.graph.dropped_self_loops(); })
      // By reference, for the arrays own their values: a copy would call Python in a function that is noexcept.
      .def_prop_ro(
          "labels", [](const Dataset& data) { return to_numpy(data.labels, {data.labels.size()}); },
          nb::rv_policy::reference)
      .def_prop_ro("edges", &edge_array, nb::rv_policy::reference)
      .def_prop_ro("listed_arcs", &listed_arcs, nb::rv_policy::reference)
      .def_prop_ro("arc_features", &arc_features)
      .def("set_arc_features", &set_arc_features)
      .def("feature_arrays", &feature_arrays)
      .def("set_splits", &set_splits<sheafnn::Graph>)
      .def("splits", &get_splits<sheafnn::Graph>);
  module.def("make_dataset", &make_dataset);
  module.def("copy_dataset", [](const Dataset& data) { return data; });
  module.def("karate_club", &sheafnn::karate_club);
  module.def("synthetic",
             [](Index nodes, Index classes, Index features, Index words, double degree, double homophily,
                double class_cycle, double feature_noise, double degree_noise, Index splits, std::uint64_t seed) {
               const GilRelease release;
               return sheafnn::synthetic({nodes, classes, features, words, degree, homophily, class_cycle,
                                          feature_noise, degree_noise, splits, seed});
             });
  module.def("random_splits", [](const Dataset& data, Index count, double train, double validation, double test,
                                 bool stratified, std::uint64_t seed) {
    Dataset copy = data;
    copy.splits = sheafnn::random_splits(data.labels, data.class_count,
                                         {.train = train,
                                          .validation = validation,
                                          .test = test,
                                          .count = count,
                                          .stratified = stratified,
                                          .seed = seed});
    return copy;
  });
  module.def(
      "load_dataset",
      [](const std::string& path, bool own_splits, bool prediction, sheafnn::MissingLabels missing_labels) {
        const GilRelease release;
        return sheafnn::io::load_dataset(path, {},
                                         prediction   ? sheafnn::DatasetUse::prediction
                                         : own_splits ? sheafnn::DatasetUse::own_splits
                                                      : sheafnn::DatasetUse::training,
                                         {.missing_labels = std::move(missing_labels)});
      },
      nb::arg("path"), nb::arg("own_splits"), nb::arg("prediction"), nb::arg("missing_labels") = nb::none());
  module.def(
      "encode_text_labels",
      [](const std::vector<std::string>& texts, const sheafnn::MissingLabels& missing_words) {
        sheafnn::EncodedLabels r = sheafnn::encode_labels(texts, missing_words, "labels", [](std::size_t u) {
          return sheafnn::detail::concat("labels[", u, "]");
        });
        const std::size_t count = r.codes.size();
        return nb::make_tuple(to_numpy(std::move(r.codes), {count}), std::move(r.class_names));
      },
      nb::arg("texts"), nb::arg("missing_words") = nb::none());
  module.attr("blanks") = std::string(sheafnn::detail::blanks);
  module.attr("fixed_blank") = std::string(sheafnn::detail::fixed_blank);
  module.attr("most_fractions") = sheafnn::most_fractions;
  module.def("resembles_set_column", &sheafnn::io::detail::resembles_set_column, nb::arg("name"));
  module.def("is_split_column", &sheafnn::io::detail::is_split_column, nb::arg("name"));
  nb::dict set_words;
  for (const auto& [word, set] : sheafnn::io::detail::set_words) set_words[nb::cast(std::string(word))] = set;
  module.attr("set_words") = set_words;
  module.def("edge_homophily",
             [](const Dataset& data) { return sheafnn::edge_homophily(data.graph, data.labels); });
}

}  // namespace python
