/// \file
/// Dataset: a graph with node features, node labels and splits into training, validation and test nodes;
/// HypergraphDataset, the same for a hypergraph.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/graph/features.hpp"
#include "sheafnn/graph/given_map_arrays.hpp"
#include "sheafnn/graph/graph.hpp"
#include "sheafnn/graph/hypergraph.hpp"
#include "sheafnn/graph/labels.hpp"

namespace sheafnn {

/// Disjoint sets of node numbers, increasing. Without validation nodes a training has no early stopping. Without test
/// nodes it has no test figures (train() in bsnn/trainer.hpp). Nodes of a set whose label or target is not known do not
/// count: a training gives the same numbers without them.
struct Split {
  std::vector<std::int32_t> train;       ///< at least one node
  std::vector<std::int32_t> validation;  ///< may be empty
  std::vector<std::int32_t> test;        ///< may be empty
};

/// What a dataset is loaded for.
enum class DatasetUse {
  training,    ///< graph, features and labels; splits where the file has some
  own_splits,  ///< the same, but splits in the file are ignored, and random_splits() makes new ones
  prediction   ///< graph and features; labels where the file has some
};

/// A task on the nodes: classes, or numbers in their place. A dataset that was loaded for prediction may lack labels;
/// class_count is then 0, as where there are targets. A dataset from a file without splits has no splits.
///
/// \tparam GraphType  Graph, or Hypergraph
template <class GraphType>
struct NodeDataset {
  std::string name;                  ///< shown in tables and reports
  GraphType graph;                   ///< n nodes
  NodeFeatures features;             ///< n × p
  std::vector<std::int32_t> labels;  ///< n classes, each in [0, class_count), or -1 where unknown
  Index class_count = 0;             ///< C
  std::vector<Split> splits;
  std::vector<std::string> node_names = {};   ///< n, or empty: nodes are known by their indices
  std::vector<std::string> class_names = {};  ///< C, or empty: so are classes
  std::vector<std::string> feature_names =
      {};  ///< of the features' columns but indicators of missing values, or empty
  std::vector<std::string> edge_type_names = {};  ///< of the graph's edge types, or empty
  std::vector<std::string> node_type_names = {};  ///< of its node types, or empty

  std::vector<double> targets = {};  ///< n × k values to learn in place of labels, NaN where unknown; or empty
  std::vector<std::string> target_names = {};  ///< k

  std::vector<std::int32_t> edge_labels = {};      ///< m classes of edges, −1 where unknown; or empty
  std::vector<std::string> edge_class_names = {};  ///< of these classes
  std::vector<double> edge_targets = {};           ///< m values of edges, NaN where unknown; or empty

  std::shared_ptr<const GivenMapArrays> given_sheaf = {};  ///< for networks with given maps; null: no maps

  [[nodiscard]] Index node_count() const noexcept { return graph.node_count(); }
  [[nodiscard]] Index feature_count() const noexcept { return features.columns(); }
};

/// A node classification task on a graph.
using Dataset = NodeDataset<Graph>;
/// A node classification task on a hypergraph.
using HypergraphDataset = NodeDataset<Hypergraph>;

/// The nodes of `nodes` whose label is known, in the same order.
///
/// \param labels  one per node, negative where unknown
/// \throws std::invalid_argument  a node number out of range
[[nodiscard]] inline std::vector<std::int32_t> labelled_nodes(std::span<const std::int32_t> labels,
                                                              std::span<const std::int32_t> nodes) {
  std::vector<std::int32_t> r;
  std::copy_if(nodes.begin(), nodes.end(), std::back_inserter(r), [&](std::int32_t u) {
    require_between("node", Index(u), 0, static_cast<Index>(labels.size()) - 1);
    return labels[static_cast<std::size_t>(u)] >= 0;
  });
  return r;
}

namespace detail {

/// For every row 0 where one of its targets is known, otherwise -1.
///
/// \param targets  rows × k, NaN where unknown
[[nodiscard]] SHEAFNN_NOINLINE inline std::vector<std::int32_t> known_rows(std::span<const double> targets,
                                                                           Index rows) {
  std::vector<std::int32_t> r(static_cast<std::size_t>(rows), -1);
  const std::size_t k = r.empty() ? 1 : targets.size() / r.size();
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (!std::isnan(targets[i])) r[i / k] = 0;
  }
  return r;
}

/// \throws std::invalid_argument  neither no names nor one name for each of `count`
inline void check_name_count(std::string_view where, const std::vector<std::string>& names, Index count) {
  require(names.empty() || static_cast<Index>(names.size()) == count, where, names.size(),
          concat("must be empty, or one name for each of the ", count));
}

/// What messages call a part of a dataset: "texas: labels", or "labels" where it has no name.
template <class GraphType>
[[nodiscard]] SHEAFNN_NOINLINE std::string part_name(const NodeDataset<GraphType>& data, std::string_view part) {
  return data.name.empty() ? std::string(part) : concat(data.name, ": ", part);
}

}  // namespace detail

/// For every node 0 where one of its targets is known, otherwise -1. Takes any dataset.
template <class GraphType>
[[nodiscard]] std::vector<std::int32_t> known_targets(const NodeDataset<GraphType>& data) {
  return detail::known_rows(data.targets, data.node_count());
}

/// Checks by their names that the columns are the columns of the model's training. Names that are not known on both
/// sides are not compared.
///
/// \param names, trained  empty, or one for each column; an empty name is unknown and equals every name
/// \param what            a column in messages
/// \throws std::invalid_argument  naming the first column that differs, and whether the order alone does
inline void check_feature_names(std::span<const std::string> names, std::span<const std::string> trained,
                                std::string_view what = "feature column") {
  if (names.empty() || trained.empty()) return;
  const auto sorted = [](std::span<const std::string> of) {
    std::vector<std::string> r(of.begin(), of.end());
    std::sort(r.begin(), r.end());
    return r;
  };
  for (std::size_t j = 0; j < std::max(names.size(), trained.size()); ++j) {
    const std::string name = j < names.size() ? "'" + names[j] + "'" : "missing";
    if (j < names.size() && j < trained.size() &&
        (names[j] == trained[j] || names[j].empty() || trained[j].empty())) {
      continue;
    }
    throw_invalid_argument(detail::concat(what, " ", j), name,
                           detail::concat("the model was trained with ",
                                          j < trained.size() ? "'" + trained[j] + "' there" : "fewer columns",
                                          sorted(names) == sorted(trained) ? "; the same columns in another order"
                                                                           : ""));
  }
}

/// Renumbers the classes of a dataset as `class_names` does, e.g. the names in a trained model. Names of one number, such as
/// 1 and 1.0, are one name. Labels of other names become unknown. A dataset without class names does not change.
///
/// \throws std::invalid_argument  a label for which the dataset has no name; the dataset then does not change either
template <class GraphType>
void renumber_classes(NodeDataset<GraphType>& data, std::span<const std::string> class_names) {
  if (data.class_names.empty() || class_names.empty()) return;
  std::vector<std::int32_t> number;
  for (const std::string& name : data.class_names) {
    auto found = std::find(class_names.begin(), class_names.end(), name);
    if (const auto value = detail::parse_decimal(name); value && found == class_names.end()) {
      found = std::find_if(class_names.begin(), class_names.end(),
                           [&](const std::string& other) { return detail::parse_decimal(other) == value; });
    }
    number.push_back(found == class_names.end() ? -1 : static_cast<std::int32_t>(found - class_names.begin()));
  }
  for (const std::int32_t label : data.labels) {
    if (label < static_cast<Index>(number.size())) continue;
    throw_invalid_argument(detail::part_name(data, "label"), label, "has no class name");
  }
  for (std::int32_t& label : data.labels) {
    if (label >= 0) label = number[static_cast<std::size_t>(label)];
  }
  data.class_names.assign(class_names.begin(), class_names.end());
  data.class_count = static_cast<Index>(class_names.size());
}

namespace detail {

/// The indices that types have among the names that a trained model knows.
///
/// \param of  "edge" or "node"
/// \throws std::invalid_argument  a type that the model does not know
[[nodiscard]] SHEAFNN_NOINLINE inline std::vector<std::int32_t> renumbered_types(
    const Dataset& data, std::string_view of, std::span<const std::int32_t> types,
    const std::vector<std::string>& names, std::span<const std::string> known) {
  std::vector<std::int32_t> number;
  for (const std::string& name : names) {
    const auto found = std::find(known.begin(), known.end(), name);
    std::string all;
    for (const std::string& one : known) all += (all.empty() ? "" : ", ") + one;
    require(found != known.end(), part_name(data, concat(of, " type")), name, "the model knows " + all);
    number.push_back(static_cast<std::int32_t>(found - known.begin()));
  }
  std::vector<std::int32_t> r;
  for (const std::int32_t type : types) r.push_back(number[static_cast<std::size_t>(type)]);
  return r;
}

}  // namespace detail

/// Numbers the types of edges and nodes as a trained model does. Types that have no names, and types that the model does
/// not read, stay as they are.
///
/// \param edge_types, node_types  names in the order of the model
/// \throws std::invalid_argument   a type that the model does not know
inline void renumber_types(Dataset& data, std::span<const std::string> edge_types,
                           std::span<const std::string> node_types) {
  if (!edge_types.empty() && !data.edge_type_names.empty()) {
    data.graph.set_edge_types(detail::renumbered_types(data, "edge", data.graph.edge_types(), data.edge_type_names,
                                                       edge_types),
                              static_cast<Index>(edge_types.size()));
    data.edge_type_names.assign(edge_types.begin(), edge_types.end());
  }
  if (!node_types.empty() && !data.node_type_names.empty()) {
    data.graph.set_node_types(detail::renumbered_types(data, "node", data.graph.node_types(), data.node_type_names,
                                                       node_types),
                              static_cast<Index>(node_types.size()));
    data.node_type_names.assign(node_types.begin(), node_types.end());
  }
}

namespace detail {

/// Checks one set of a split. `taken` marks the nodes of the sets before, and then its own; `number(u)` is what messages
/// call node u.
///
/// \throws std::invalid_argument  a node out of range or taken, or an unsorted set
template <class Number>
SHEAFNN_NOINLINE void check_set(const std::vector<std::int32_t>& nodes, std::vector<std::int8_t>& taken,
                                std::string_view set, const Number& number) {
  const Index n = static_cast<Index>(taken.size());
  for (const std::int32_t u : nodes) {
    if (u < 0 || u >= n) throw_invalid_argument(set, u, concat("node numbers must be between 0 and ", n - 1));
    std::int8_t& is_taken = taken[static_cast<std::size_t>(u)];
    if (is_taken != 0)
      throw_invalid_argument(set, number(u), "a node may appear only once in the sets of a split");
    is_taken = 1;
  }
  require(std::is_sorted(nodes.begin(), nodes.end()), set, "an unsorted set", "node numbers must increase");
}

}  // namespace detail

/// Checks a split of n nodes; `name` is what messages call it.
///
/// \throws std::invalid_argument  no training node, or an unsorted, overlapping or out-of-range set
inline void validate(const Split& split, Index n, std::string_view name) {
  std::vector<std::int8_t> taken(static_cast<std::size_t>(n), 0);
  const auto check = [&](const std::vector<std::int32_t>& nodes, const char* part) {
    detail::check_set(nodes, taken, detail::concat(name, ".", part), [](std::int32_t u) { return u; });
  };
  require(!split.train.empty(), detail::concat(name, ".train"), "an empty set",
          "training needs at least one node");
  check(split.train, "train");
  check(split.validation, "validation");
  check(split.test, "test");
}

namespace detail {

inline void require_feature_columns(std::string_view name, Index columns) {
  require(columns > 0, name, columns, "at least one is needed");
}

/// Checks the labels of a dataset for training; validate().
template <class GraphType>
void check_labels(const NodeDataset<GraphType>& data) {
  const Index n = data.node_count();
  require(static_cast<Index>(data.labels.size()) == n, part_name(data, "labels"), data.labels.size(),
          concat("must equal the number of nodes, ", n));
  if (data.class_count < 2) {
    const bool signs = data.class_names == std::vector<std::string>{"1"} &&
                       std::find(data.labels.begin(), data.labels.end(), -1) != data.labels.end();
    throw_invalid_argument(part_name(data, "class_count"), data.class_count,
                           signs ? "at least two classes are needed (-1 means an unknown label: of the labels -1 "
                                   "and 1, write 0 for -1)"
                                 : "at least two classes are needed");
  }
  for (std::size_t u = 0; u < data.labels.size(); ++u) {
    if (data.labels[u] < -1 || data.labels[u] >= data.class_count) {
      throw_invalid_argument(part_name(data, concat("labels[", u, "]")), data.labels[u],
                             concat("must be between 0 and ", data.class_count - 1, ", or -1 where unknown"));
    }
  }
}

}  // namespace detail

/// Checks that the parts of a dataset for training belong together.
///
/// \throws std::invalid_argument  no nodes or features; a wrong number of rows, labels, targets or names; a label that is
///                                neither in [0, class_count) nor -1. Or a split without training nodes, or with an
///                                unsorted, overlapping or out-of-range set
template <class GraphType>
void validate(const NodeDataset<GraphType>& data) {
  const Index n = data.node_count();
  require(n > 0, detail::part_name(data, "nodes"), n, "a dataset needs at least one node");
  detail::require_feature_columns(detail::part_name(data, "feature columns"), data.feature_count());
  require(data.features.rows() == n, detail::part_name(data, "feature rows"), data.features.rows(),
          detail::concat("must equal the number of nodes, ", n));
  if (data.target_names.empty()) {
    detail::check_labels(data);
  } else {
    require(data.targets.size() == static_cast<std::size_t>(n) * data.target_names.size(),
            detail::part_name(data, "targets"), data.targets.size(),
            detail::concat("must be the number of nodes, ", n, ", times ", data.target_names.size()));
  }
  const auto check_names = [&](const std::vector<std::string>& names, const char* member, Index count) {
    detail::check_name_count(detail::part_name(data, member), names, count);
  };
  check_names(data.node_names, "node_names", n);
  check_names(data.class_names, "class_names", data.class_count);
  check_names(data.feature_names, "feature_names", data.features.given_columns());
  for (std::size_t s = 0; s < data.splits.size(); ++s)
    validate(data.splits[s], n, detail::part_name(data, detail::concat("splits[", s, "]")));
}

}  // namespace sheafnn
