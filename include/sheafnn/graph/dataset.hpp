/// \file
/// Dataset: a graph with node features, node labels and splits into training, validation and test nodes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/graph/features.hpp"
#include "sheafnn/graph/graph.hpp"

namespace sheafnn {

/// Disjoint sets of node numbers, increasing.
struct Split {
  std::vector<std::int32_t> train;
  std::vector<std::int32_t> validation;
  std::vector<std::int32_t> test;
};

/// What a dataset is loaded for. Predictions need graph and features only.
enum class DatasetUse { training, prediction };

/// A node classification task. One that was loaded for prediction may lack labels (class_count is 0 then) and
/// splits.
struct Dataset {
  std::string name;                  ///< shown in tables and reports
  Graph graph;                       ///< n nodes
  NodeFeatures features;             ///< n × p
  std::vector<std::int32_t> labels;  ///< n classes, each in [0, class_count), or -1 where unknown
  Index class_count = 0;             ///< C
  std::vector<Split> splits;

  [[nodiscard]] Index node_count() const noexcept { return graph.node_count(); }
  [[nodiscard]] Index feature_count() const noexcept { return features.columns(); }
};

/// Those of `nodes` whose label is known, in the same order.
///
/// \param labels  one per node, negative where unknown
[[nodiscard]] inline std::vector<std::int32_t> labelled_nodes(std::span<const std::int32_t> labels,
                                                              std::span<const std::int32_t> nodes) {
  std::vector<std::int32_t> r;
  std::copy_if(nodes.begin(), nodes.end(), std::back_inserter(r),
               [&](std::int32_t u) { return labels[static_cast<std::size_t>(u)] >= 0; });
  return r;
}

/// Checks a split of n nodes; `name` is what messages call it.
///
/// \throws std::invalid_argument  an empty, unsorted, overlapping or out-of-range set
inline void validate(const Split& split, Index n, std::string_view name) {
  std::vector<std::int8_t> taken(static_cast<std::size_t>(n), 0);
  const auto check = [&](const std::vector<std::int32_t>& nodes, const char* part) {
    const std::string set = detail::concat(name, ".", part);
    require(!nodes.empty(), set, "an empty set", "every set of a split needs at least one node");
    for (const std::int32_t u : nodes) {
      require(u >= 0 && u < n, set, u, detail::concat("node numbers must be between 0 and ", n - 1));
      require(taken[static_cast<std::size_t>(u)] == 0, set, u,
              "a node may appear only once in the sets of a split");
      taken[static_cast<std::size_t>(u)] = 1;
    }
    require(std::is_sorted(nodes.begin(), nodes.end()), set, "an unsorted set", "node numbers must increase");
  };
  check(split.train, "train");
  check(split.validation, "validation");
  check(split.test, "test");
}

/// Checks that the parts of a dataset for training belong together.
///
/// \throws std::invalid_argument  no nodes, no features, wrong number of rows or labels, a label that is neither in
///         [0, class_count) nor -1, or a split with an empty, unsorted, overlapping or out-of-range set
inline void validate(const Dataset& data) {
  const Index n = data.node_count();
  require(n > 0, data.name + ": nodes", n, "a dataset needs at least one node");
  require(data.feature_count() > 0, data.name + ": feature columns", data.feature_count(),
          "at least one is needed");
  require(data.features.rows() == n, data.name + ": feature rows", data.features.rows(),
          detail::concat("must equal the number of nodes, ", n));
  require(static_cast<Index>(data.labels.size()) == n, data.name + ": labels", data.labels.size(),
          detail::concat("must equal the number of nodes, ", n));
  require(data.class_count >= 2, data.name + ": class_count", data.class_count, "at least two classes are needed");
  for (std::size_t u = 0; u < data.labels.size(); ++u) {
    if (data.labels[u] < -1 || data.labels[u] >= data.class_count) {
      throw_invalid_argument(detail::concat(data.name, ": labels[", u, "]"), data.labels[u],
                             detail::concat("must be between 0 and ", data.class_count - 1, ", or -1 where unknown"));
    }
  }
  for (std::size_t s = 0; s < data.splits.size(); ++s)
    validate(data.splits[s], n, detail::concat(data.name, ": splits[", s, "]"));
}

}  // namespace sheafnn
