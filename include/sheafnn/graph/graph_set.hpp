/// \file
/// GraphSet: many small graphs as one disjoint union, with a class or numbers per graph and splits of graphs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/core/views.hpp"
#include "sheafnn/graph/dataset.hpp"
#include "sheafnn/graph/features.hpp"
#include "sheafnn/graph/graph.hpp"
#include "sheafnn/graph/splits.hpp"

namespace sheafnn {

/// A task of graph classification or regression.
struct GraphSet {
  std::string name;                       ///< shown in tables and reports
  Graph graph;                            ///< the union of G graphs (Graph::set_graphs()), n nodes in all
  NodeFeatures features;                  ///< n × p
  std::vector<std::int32_t> labels = {};  ///< G classes, −1 where unknown; empty: a task of regression
  Index class_count = 0;                  ///< C
  std::vector<double> targets = {};       ///< of regression: G × target_count, NaN where unknown
  Index target_count = 0;                 ///< targets per graph of a task of regression
  std::vector<std::vector<std::int32_t>> folds = {};  ///< published test folds: disjoint lists of graphs, or empty
  std::vector<std::string> class_names = {};          ///< C, or empty: classes are known by their indices
  std::vector<Split> splits = {};             ///< published splits of graphs in place of folds, or empty
  std::vector<std::string> graph_names = {};  ///< G, or empty: graphs are known by their indices
  /// Names of the features' columns, without indicators of missing values, or empty; "" where unknown.
  std::vector<std::string> feature_names = {};
  std::vector<std::string> edge_feature_names = {};  ///< of the arcs' features, or empty; "" where unknown

  [[nodiscard]] Index graph_count() const noexcept { return graph.graph_count(); }
  [[nodiscard]] Index feature_count() const noexcept { return features.columns(); }
  /// The targets as a Regression takes them. Unchecked: a task of regression.
  [[nodiscard]] MatrixView<const double> target_matrix() const noexcept {
    return {targets.data(), graph_count(), target_count};
  }
};

/// Checks that the parts of a set belong together.
///
/// \throws std::invalid_argument  no features; a wrong number of rows, labels, targets or names; both labels and targets or
///                                neither; a label out of range. Or folds that overlap or have graphs out of range, folds
///                                together with splits, or bad splits
inline void validate(const GraphSet& set) {
  const Index n = set.graph.node_count(), graphs = set.graph_count();
  require(n > 0, "nodes", n, "a set needs at least one graph of one node");
  require(set.features.rows() == n, "feature rows", set.features.rows(),
          detail::concat("must equal the number of nodes, ", n));
  require(set.feature_count() > 0, "feature columns", set.feature_count(), "at least one is needed");
  require(set.labels.empty() != set.targets.empty(), "labels and targets", set.labels.empty() ? "neither" : "both",
          "a set has one of them");
  if (set.targets.empty()) {
    require(static_cast<Index>(set.labels.size()) == graphs, "labels", set.labels.size(),
            detail::concat("must equal the number of graphs, ", graphs));
    require(set.class_count >= 2, "class_count", set.class_count, "at least two classes are needed");
    for (std::size_t g = 0; g < set.labels.size(); ++g) {
      require(set.labels[g] >= -1 && set.labels[g] < set.class_count, ArgumentName({}, "labels", g), set.labels[g],
              "must be a class, or -1 where unknown");
    }
  } else {
    require(set.target_count >= 1 && static_cast<Index>(set.targets.size()) == graphs * set.target_count,
            "targets", set.targets.size(),
            detail::concat("must be graphs * target_count = ", graphs, " * ", set.target_count));
  }
  detail::check_name_count("graph_names", set.graph_names, graphs);
  detail::check_name_count("feature_names", set.feature_names, set.features.given_columns());
  detail::check_name_count("edge_feature_names", set.edge_feature_names, set.graph.arc_feature_count());
  std::vector<std::int8_t> taken(static_cast<std::size_t>(graphs), 0);
  for (std::size_t i = 0; i < set.folds.size(); ++i) {
    detail::check_set(set.folds[i], taken, detail::concat("folds[", i, "]"), [](std::int32_t g) { return g; });
  }
  require(set.folds.empty() || set.splits.empty(), "folds and splits", "both",
          "a set has one of them, or neither");
  for (std::size_t i = 0; i < set.splits.size(); ++i)
    validate(set.splits[i], graphs, detail::concat("splits[", i, "]"));
}

/// One-hot columns of integer tags, one for each tag that occurs, in increasing order. Takes any tags.
[[nodiscard]] inline NodeFeatures one_hot(std::span<const std::int64_t> tags) {
  const std::set<std::int64_t> sorted(tags.begin(), tags.end());
  const std::vector<std::int64_t> known(sorted.begin(), sorted.end());
  std::vector<Index> offsets = {0};
  std::vector<std::int32_t> columns;
  for (const std::int64_t tag : tags) {
    columns.push_back(
        static_cast<std::int32_t>(std::lower_bound(known.begin(), known.end(), tag) - known.begin()));
    offsets.push_back(static_cast<Index>(columns.size()));
  }
  std::vector<double> values(columns.size(), 1.0);
  return NodeFeatures::from_csr(std::move(offsets), std::move(columns), std::move(values),
                                static_cast<Index>(known.size()));
}

namespace detail {

/// The class of every graph; of regression 0, or −1 where no target is known.
[[nodiscard]] inline std::vector<std::int32_t> known_classes(const GraphSet& set) {
  return set.labels.empty() ? known_rows(set.targets, set.graph_count()) : set.labels;
}

}  // namespace detail

/// Test folds of a set: in each class the graphs are shuffled and dealt out in turn. Of regression, all graphs with a known
/// target are one class.
///
/// \param count  2 … number of graphs with a label or a known target
/// \throws std::invalid_argument  a count out of range, or a set without labels and targets
[[nodiscard]] inline std::vector<std::vector<std::int32_t>> stratified_folds(const GraphSet& set, Index count,
                                                                             std::uint64_t seed = 0) {
  require(!set.labels.empty() || !set.targets.empty(), "labels", "none",
          "folds need classes or targets of the graphs");
  std::vector<std::vector<std::int32_t>> groups =
      detail::nodes_by_class(detail::known_classes(set), std::max<Index>(1, set.class_count));
  Index labelled = 0;
  for (const auto& group : groups) labelled += static_cast<Index>(group.size());
  require_between("folds", count, 2, labelled);
  std::vector<std::vector<std::int32_t>> folds(static_cast<std::size_t>(count));
  std::size_t next = 0;
  for (std::size_t c = 0; c < groups.size(); ++c) {
    Stream stream = detail::generator_stream(seed, detail::GeneratorPart::splits);
    stream.epoch = static_cast<std::uint32_t>(c);
    detail::shuffle(groups[c], stream);
    for (const std::int32_t g : groups[c]) folds[next++ % folds.size()].push_back(g);
  }
  for (auto& fold : folds) std::sort(fold.begin(), fold.end());
  return folds;
}

/// One split for each test fold. The other graphs with a label or a known target are cut, within every class, into training
/// and validation graphs. Graphs in no fold are never tested.
///
/// \param folds   lists of graphs, as set.folds or stratified_folds()
/// \param share   of the graphs outside of the fold, in (0, 1)
/// \throws std::invalid_argument  a share out of range, a graph out of range, no graph to train on
[[nodiscard]] inline std::vector<Split> fold_splits(const GraphSet& set,
                                                    const std::vector<std::vector<std::int32_t>>& folds,
                                                    double share = 0.1, std::uint64_t seed = 0) {
  require(share > 0 && share < 1, "validation share", share, "must be in (0, 1)");
  std::vector<Split> splits;
  for (std::size_t i = 0; i < folds.size(); ++i) {
    std::vector<std::int32_t> others = detail::known_classes(set);
    for (const std::int32_t g : folds[i]) {
      require(g >= 0 && g < set.graph_count(), detail::concat("folds[", i, "]"), g, "the set has no such graph");
      others[static_cast<std::size_t>(g)] = -1;
    }
    RandomSplitOptions options;
    options.train = 1 - share;
    options.validation = share;
    options.test = 0;
    options.count = 1;
    options.seed = seed + i;
    splits.push_back(random_splits(others, std::max<Index>(1, set.class_count), options,
                                   "labelled graphs outside of a test fold")
                         .front());
    splits.back().test = folds[i];
  }
  return splits;
}

}  // namespace sheafnn
