/// \file
/// Datasets from arrays, from files and from the library's generators.
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <sheafnn/bsnn/presets.hpp>
#include <sheafnn/graph/dataset.hpp>
#include <sheafnn/graph/given_map_arrays.hpp>
#include <sheafnn/graph/karate.hpp>
#include <sheafnn/graph/labels.hpp>
#include <sheafnn/graph/pair_types.hpp>
#include <sheafnn/graph/splits.hpp>
#include <sheafnn/graph/statistics.hpp>
#include <sheafnn/graph/synthetic.hpp>
#include <sheafnn/graph/types_of.hpp>
#include <sheafnn/io/csv_nodes.hpp>
#include <sheafnn/io/datasets.hpp>
#include <sheafnn/io/edge_values.hpp>
#include <sheafnn/io/given_sheaf_file.hpp>
#include <sheafnn/io/npz_keys.hpp>
#include <sheafnn/io/text_dataset.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "given_arrays.hpp"
#include "graph_arrays.hpp"
#include "interpreter.hpp"
#include "module.hpp"
#include "node_arrays.hpp"

namespace python {

namespace {

using sheafnn::Dataset;
using sheafnn::Index;

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

/// n × k; null without targets
nb::object get_targets(const Dataset& data) {
  if (data.target_names.empty()) return nb::none();
  const auto n = static_cast<std::size_t>(data.node_count());
  return nb::cast(to_numpy(data.targets, {n, data.target_names.size()}));
}
void set_targets(Dataset& data, const Input<double>& values, std::vector<std::string> names) {
  sheafnn::io::check_target_names("target_names", names);
  sheafnn::require(values.size() == static_cast<std::size_t>(data.node_count()) * names.size(), "targets",
                   values.size(),
                   sheafnn::detail::concat("must be ", names.size(), " for each of ", data.node_count(),
                                           " nodes"));
  data.targets = vector_of(values);
  data.target_names = std::move(names);
}
/// Gives the data types of nodes.
///
/// \param texts  one for each node
void set_node_types(Dataset& data, const std::vector<std::string>& texts) {
  const std::vector<std::int32_t> types = sheafnn::detail::numbered_names(texts, data.node_type_names);
  data.graph.set_node_types(types, static_cast<Index>(data.node_type_names.size()));
}
/// Gives the data types of edges.
///
/// \param pairs  m × 2 node numbers, of which the graph was built
/// \param texts  one for each pair
/// \throws std::invalid_argument  pairs of one edge with other types
void set_edge_types(Dataset& data, const Input<std::int64_t>& pairs, const std::vector<std::string>& texts) {
  const std::vector<sheafnn::Edge> edges = make_edges(data.node_count(), pairs);
  sheafnn::require(edges.size() == texts.size(), "edge_types", texts.size(),
                   sheafnn::detail::concat("must be one for each of ", edges.size(), " edges"));
  data.edge_type_names =
      sheafnn::detail::set_pair_types(data.graph, edges, texts, [&](std::size_t i, std::size_t first) {
        sheafnn::throw_invalid_argument(sheafnn::detail::concat("edge_types[", i, "]"), "'" + texts[i] + "'",
                                        sheafnn::detail::concat("row ", first,
                                                                " is the same edge, and its type is '",
                                                                texts[first], "'"));
      });
}
/// Gives the data labels or numbers of edges, in the order of the edges. \param labels  −1 where unknown
///
/// \throws std::invalid_argument  not one for each edge
void set_edge_values(Dataset& data, const Input<std::int32_t>& labels, std::vector<std::string> class_names,
                     const Input<double>& targets) {
  for (const std::size_t count : {labels.size(), targets.size()}) {
    sheafnn::require(count == 0 || count == static_cast<std::size_t>(data.graph.edge_count()), "edge values",
                     count,
                     sheafnn::detail::concat("must be one for each of ", data.graph.edge_count(), " edges"));
  }
  data.edge_labels = vector_of(labels);
  data.edge_class_names = std::move(class_names);
  data.edge_targets = vector_of(targets);
}
/// The types of edges or nodes as indices into their names; null without types.
nb::object types_array(std::span<const std::int32_t> types, Index count) {
  if (count == 0) return nb::none();
  return nb::cast(to_numpy(std::vector<std::int32_t>(types.begin(), types.end()), {types.size()}));
}

/// A copy of the data with the maps of a sheaf that is given; see given_arrays().
Dataset with_given_sheaf(const Dataset& data, const Input<double>& maps, const Input<double>& weights,
                         const Input<std::int64_t>& labels, Index label_count) {
  Dataset r = data;
  r.given_sheaf =
      std::make_shared<const sheafnn::GivenMapArrays>(given_arrays(maps, weights, labels, label_count));
  return r;
}
/// The arguments of with_given_sheaf(), or None.
nb::object given_sheaf(const Dataset& data) {
  if (data.given_sheaf == nullptr) return nb::none();
  const sheafnn::GivenMapArrays& given = *data.given_sheaf;
  std::vector<std::int64_t> labels(given.edge_labels.begin(), given.edge_labels.end());
  const std::size_t count = labels.size();
  return nb::make_tuple(to_numpy(std::vector<double>(given.maps), {given.maps.size()}),
                        to_numpy(std::vector<double>(given.edge_weights), {given.edge_weights.size()}),
                        to_numpy(std::move(labels), {count}), given.label_count);
}

}  // namespace

void bind_dataset(nb::module_& module) {
  nb::class_<Dataset> bound(module, "Dataset");
  bind_graph_arrays(bound);
  bound.def_ro("feature_names", &Dataset::feature_names)
      .def_ro("node_names", &Dataset::node_names)
      .def_ro("target_names", &Dataset::target_names)
      .def_prop_ro("targets", &get_targets)
      .def("set_targets", &set_targets)
      .def_ro("edge_type_names", &Dataset::edge_type_names)
      .def_ro("node_type_names", &Dataset::node_type_names)
      .def_prop_ro("edge_types",
                   [](const Dataset& data) {
                     return types_array(data.graph.edge_types(), data.graph.edge_type_count());
                   })
      .def_prop_ro("node_types",
                   [](const Dataset& data) {
                     return types_array(data.graph.node_types(), data.graph.node_type_count());
                   })
      .def("set_edge_types", &set_edge_types)
      .def("set_node_types", &set_node_types)
      .def_ro("edge_class_names", &Dataset::edge_class_names)
      .def_prop_ro("edge_labels",
                   [](const Dataset& data) {
                     return nb::cast(
                         to_numpy(std::vector<std::int32_t>(data.edge_labels), {data.edge_labels.size()}));
                   })
      .def_prop_ro("edge_targets",
                   [](const Dataset& data) {
                     return nb::cast(to_numpy(std::vector<double>(data.edge_targets), {data.edge_targets.size()}));
                   })
      .def("set_edge_values", &set_edge_values)
      .def_prop_ro("given_sheaf", &given_sheaf)
      .def("set_splits", &set_splits<sheafnn::Graph>)
      .def("splits", &get_splits<Dataset>);
  module.def("make_dataset", &make_dataset);
  module.def("copy_dataset", [](const Dataset& data) { return data; });
  module.def("with_given_sheaf", &with_given_sheaf);
  module.def("with_given_sheaf", [](const Dataset& data, const std::filesystem::path& path) {
    Dataset r = data;
    const GilRelease release;
    r.given_sheaf = std::make_shared<const sheafnn::GivenMapArrays>(
        sheafnn::io::read_given_sheaf(path, data.graph, data.edge_type_names));
    return r;
  });
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
    copy.splits = sheafnn::random_splits(data, {.train = train,
                                                .validation = validation,
                                                .test = test,
                                                .count = count,
                                                .stratified = stratified,
                                                .seed = seed});
    return copy;
  });
  module.def(
      "load_dataset",
      [](const std::string& path, bool own_splits, bool prediction, sheafnn::MissingLabels missing_labels,
         std::optional<std::vector<std::string>> targets, bool edge_types, bool node_types,
         const std::string& edge_labels, const std::string& edge_target, const std::string& label,
         std::vector<std::string> ignore_columns, std::vector<std::string> ignore_edge_columns,
         bool identity_features) {
        const GilRelease release;
        if (targets) sheafnn::io::check_target_names("targets", *targets);
        Dataset r = sheafnn::io::load_dataset(path, {},
                                              prediction   ? sheafnn::DatasetUse::prediction
                                              : own_splits ? sheafnn::DatasetUse::own_splits
                                                           : sheafnn::DatasetUse::training,
                                              {.label = label,
                                               .identity_features = identity_features,
                                               .missing_labels = std::move(missing_labels),
                                               .edge_types = edge_types,
                                               .node_types = node_types,
                                               .targets = std::move(targets).value_or(std::vector<std::string>()),
                                               .ignored_columns = std::move(ignore_columns),
                                               .ignored_edge_columns = std::move(ignore_edge_columns),
                                               .edge_labels = edge_labels,
                                               .edge_target = edge_target});
        using sheafnn::io::detail::require_edge_values;
        if (!edge_labels.empty()) require_edge_values("edge_labels", edge_labels, r.edge_labels);
        if (!edge_target.empty()) require_edge_values("edge_target", edge_target, r.edge_targets);
        return r;
      },
      nb::arg("path"), nb::arg("own_splits"), nb::arg("prediction"), nb::arg("missing_labels") = nb::none(),
      nb::arg("targets") = nb::none(), nb::arg("edge_types") = false, nb::arg("node_types") = false,
      nb::arg("edge_labels") = "", nb::arg("edge_target") = "", nb::arg("label") = "label",
      nb::arg("ignore_columns") = std::vector<std::string>(),
      nb::arg("ignore_edge_columns") = std::vector<std::string>(), nb::arg("identity_features") = false);
  module.def(
      "encode_text_labels",
      [](const std::vector<std::string>& texts, const sheafnn::MissingLabels& missing_words, bool minus_one) {
        const auto place = [](std::size_t u) { return sheafnn::detail::concat("labels[", u, "]"); };
        sheafnn::EncodedLabels r = sheafnn::encode_labels(texts, missing_words, "labels", place, minus_one);
        const std::size_t count = r.codes.size();
        return nb::make_tuple(to_numpy(std::move(r.codes), {count}), std::move(r.class_names));
      },
      nb::arg("texts"), nb::arg("missing_words") = nb::none(), nb::arg("minus_one") = true);
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
