/// \file
/// Pairs of nodes as targets: link prediction, classes and real targets of edges. split_links() and split_edges() take
/// target edges out of a graph, so a network never sees the edges that it predicts.
///
/// The edges of a graph fall into message edges, which the network sees, and target edges for training, validation and
/// test. The sets are disjoint. For links, every target edge has negative pairs, which are not edges. They are fixed
/// for validation and test, and new in every epoch of a training (graph/negative_pairs.hpp). No negative pair is an
/// edge of the whole graph, and no training pair is a validation or test pair. math: "Links".
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/core/option.hpp"
#include "sheafnn/graph/dataset.hpp"
#include "sheafnn/graph/graph.hpp"
#include "sheafnn/graph/graph_of_edges.hpp"
#include "sheafnn/graph/negative_pairs.hpp"
#include "sheafnn/graph/splits.hpp"

namespace sheafnn {

/// Options of split_links() and split_edges(). The four shares sum to 1.
struct EdgeSplitOptions {
  double message = 0.6;  ///< share of the edges that the network sees and that are not targets
  double train = 0.2, validation = 0.1,
         test = 0.1;  ///< shares of the target edges; only `train` must be positive
  /// For links: number of pairs without an edge for each target edge.
  double negatives = 1;
  NegativeSampling sampling = NegativeSampling::uniform;
  /// For labels of edges: keep target edges in the graph that the network sees. Links are always taken out.
  bool keep_targets = false;
  std::uint64_t seed = 0;  ///< same seed, same split
};

/// Declares the options: see core/option.hpp. Takes any options.
template <class Visit, OptionsOf<EdgeSplitOptions>... Options>
void for_each_option(const Visit& visit, Options&... options) {
  using Range = OptionRange;
  visit({.key = "message_share",
         .summary = "share of the edges that the network sees and that are not targets",
         .range = Range::between(0, 1),
         .field = "message",
         .since = "0.3"},
        options.message...);
  visit({.key = "train_share",
         .summary = "share of the edges that are training targets",
         .range = Range::between(0, 1),
         .field = "train",
         .since = "0.3"},
        options.train...);
  visit({.key = "validation_share",
         .summary = "share of the edges that are validation targets",
         .range = Range::between(0, 1),
         .field = "validation",
         .since = "0.3"},
        options.validation...);
  visit({.key = "test_share",
         .summary = "share of the edges that are test targets",
         .range = Range::between(0, 1),
         .field = "test",
         .since = "0.3"},
        options.test...);
  visit({.key = "negatives",
         .summary = "number of pairs without an edge for each target edge, when links are predicted",
         .range = Range::between(0, 1000),
         .since = "0.3"},
        options.negatives...);
  visit({.key = "negative_sampling",
         .summary = "how pairs without an edge are drawn: all alike (uniform), or nodes in proportion to their "
                    "degrees (degree)",
         .field = "sampling",
         .since = "0.3"},
        options.sampling...);
  visit({.key = "keep_targets", .summary = "keep labelled target edges in the graph", .flag = "", .since = "0.3"},
        options.keep_targets...);
}

/// A graph, T pairs of its nodes, and their split into training, validation and test.
struct EdgeTargets {
  Graph graph;                       ///< what the network sees
  std::vector<Edge> pairs;           ///< T; the pairs of fresh() change in training
  std::vector<std::int32_t> edges;   ///< T: index of the edge in the whole graph, −1 for a negative pair
  std::vector<std::int32_t> labels;  ///< T: 1 (an edge) or 0 for links; or the labels of the edges
  Split split;                       ///< indices of targets
  NegativePairs negatives;
  Index first_fresh = -1;  ///< targets from this index on are drawn again in every epoch; −1: no targets
  std::uint64_t seed = 0;  ///< seed of the draws

  [[nodiscard]] Index count() const noexcept { return static_cast<Index>(pairs.size()); }
  /// The pair of a target in an epoch. Unchecked: 0 ≤ target < count().
  [[nodiscard]] Edge pair(Index target, std::uint32_t epoch) const {
    if (first_fresh < 0 || target < first_fresh) return pairs[static_cast<std::size_t>(target)];
    return negatives.draw(seed, epoch, 0, target - first_fresh);
  }
};

namespace detail {

/// \throws std::invalid_argument  a node out of range, or a pair of one node
SHEAFNN_NOINLINE inline void check_pairs(std::span<const Edge> pairs, Index node_count) {
  for (std::size_t t = 0; t < pairs.size(); ++t) {
    for (const std::int32_t node : {pairs[t].u, pairs[t].v}) {
      if (node >= 0 && node < node_count) continue;
      throw_invalid_argument(ArgumentName({}, "pairs", t), node,
                             concat("a node number must be below ", node_count));
    }
    require(pairs[t].u != pairs[t].v, ArgumentName({}, "pairs", t), pairs[t].u, "a pair has two different nodes");
  }
}

}  // namespace detail

/// Checks that the parts of targets belong together.
///
/// \throws std::invalid_argument  an array of another size, a node out of range, or a pair of one node
inline void validate(const EdgeTargets& targets) {
  const Index count = targets.count();
  detail::check_pairs(targets.pairs, targets.graph.node_count());
  require(targets.labels.empty() || static_cast<Index>(targets.labels.size()) == count, "labels",
          targets.labels.size(), detail::concat("expected one for each of ", count, " pairs"));
  require(targets.first_fresh < 0 || targets.first_fresh <= count, "first_fresh", targets.first_fresh,
          detail::concat("must be at most ", count));
}

namespace detail {

/// Indices of the message edges and of the target edges.
struct CutEdges {
  std::vector<std::int32_t> message;
  Split targets;
};

/// \param labels  one per edge; empty: all of one class
[[nodiscard]] inline CutEdges cut_edges(Index edge_count, std::span<const std::int32_t> labels, Index class_count,
                                        const EdgeSplitOptions& options) {
  check_ranges(options);
  require(options.train > 0, "train", options.train, "training needs targets");
  const double seen = options.message + options.train, sum = seen + options.validation + options.test;
  require(std::abs(sum - 1) < 1e-12, "message + train + validation + test", sum, "the shares must sum to 1");
  const std::vector<std::int32_t> alike(labels.empty() ? static_cast<std::size_t>(edge_count) : 0);
  const auto cut = [&](std::span<const std::int32_t> of, const std::array<double, 3>& shares,
                       const std::array<bool, 3>& needed, std::uint64_t seed) {
    return cut_groups(
               nodes_by_class(of, class_count), 1, seed, needed,
               [&](Index total) { return largest_remainder(shares, total); }, "edges to split")
        .front();
  };
  const std::span<const std::int32_t> all = labels.empty() ? std::span(alike) : labels;
  CutEdges r;
  r.targets = cut(all, {seen, options.validation, options.test}, {true, options.validation > 0, options.test > 0},
                  options.seed);
  std::vector<std::int32_t> rest(all.size(), -1);
  for (const std::int32_t e : r.targets.train)
    rest[static_cast<std::size_t>(e)] = all[static_cast<std::size_t>(e)];
  Split second = cut(rest, {options.message / seen, options.train / seen, 0}, {options.message > 0, true, false},
                     ~options.seed);
  r.message = std::move(second.train);
  r.targets.train = std::move(second.validation);
  return r;
}

/// Adds targets to one set of a split.
inline void add_targets(std::vector<std::int32_t>& set, Index first, Index count) {
  for (Index t = first; t < first + count; ++t) set.push_back(static_cast<std::int32_t>(t));
}

/// Everything that links share with other targets: graph, edges, pairs and the sets of the split in turn.
[[nodiscard]] inline EdgeTargets targets_of(const Graph& graph, std::span<const std::int32_t> labels,
                                            Index class_count, const EdgeSplitOptions& options,
                                            bool keep_targets) {
  const CutEdges cut = cut_edges(graph.edge_count(), labels, class_count, options);
  EdgeTargets r;
  r.seed = options.seed;
  std::vector<std::int8_t> kept(static_cast<std::size_t>(graph.edge_count()), 1);
  const auto add = [&](const std::vector<std::int32_t>& edges, std::vector<std::int32_t>& set) {
    add_targets(set, r.count(), static_cast<Index>(edges.size()));
    for (const std::int32_t e : edges) {
      r.pairs.push_back(graph.edge(e));
      r.edges.push_back(e);
      if (!labels.empty()) r.labels.push_back(labels[static_cast<std::size_t>(e)]);
      kept[static_cast<std::size_t>(e)] = keep_targets;
    }
  };
  add(cut.targets.train, r.split.train);
  add(cut.targets.validation, r.split.validation);
  add(cut.targets.test, r.split.test);
  r.graph = graph_of_edges(graph, kept);
  return r;
}

}  // namespace detail

/// Splits the edges of a graph for the prediction of links; see the file comment. The negatives of a set are `negatives`
/// times as many as its edges, rounded.
///
/// \throws std::invalid_argument  an option out of range, too few edges, or too few pairs without an edge
/// \throws std::runtime_error     NegativePairs::draw()
[[nodiscard]] inline EdgeTargets split_links(const Graph& graph, const EdgeSplitOptions& options = {}) {
  require(!options.keep_targets, "keep_targets", true, "a link that the network sees cannot be a target");
  EdgeTargets r = detail::targets_of(graph, {}, 1, options, false);
  r.labels.assign(r.pairs.size(), 1);
  const auto negatives_of = [&](const std::vector<std::int32_t>& set) {
    return static_cast<Index>(std::llround(options.negatives * static_cast<double>(set.size())));
  };
  const Index validation = negatives_of(r.split.validation), test = negatives_of(r.split.test);
  const Index train = negatives_of(r.split.train);
  if (validation + test + train == 0) return r;
  std::vector<Edge> excluded(graph.edges().begin(), graph.edges().end());
  const auto sampler = [&] {
    return NegativePairs(graph.node_count(), excluded, options.sampling, r.graph.sources());
  };
  const std::vector<Edge> fixed = sampler().draw_distinct(options.seed, 1, validation + test);
  excluded.insert(excluded.end(), fixed.begin(), fixed.end());
  if (train > 0) r.negatives = sampler();
  detail::add_targets(r.split.validation, r.count(), validation);
  detail::add_targets(r.split.test, r.count() + validation, test);
  r.pairs.insert(r.pairs.end(), fixed.begin(), fixed.end());
  if (train > 0) {
    r.first_fresh = r.count();
    detail::add_targets(r.split.train, r.first_fresh, train);
    for (Index slot = 0; slot < train; ++slot) r.pairs.push_back(r.negatives.draw(options.seed, 0, 0, slot));
  }
  r.edges.resize(r.pairs.size(), -1);
  r.labels.resize(r.pairs.size(), 0);
  return r;
}

/// Splits the edges of a graph for the prediction of their labels, each share within every class.
///
/// \param labels  one per edge in the graph's order, each in [0, class_count) or −1. Edges with −1 are messages, no targets.
///                Empty: the shares hold in total, and the targets have no labels
/// \throws std::invalid_argument  an option or a label out of range, or too few edges
[[nodiscard]] inline EdgeTargets split_edges(const Graph& graph, std::span<const std::int32_t> labels,
                                             Index class_count, const EdgeSplitOptions& options = {}) {
  require(labels.empty() || static_cast<Index>(labels.size()) == graph.edge_count(), "labels", labels.size(),
          detail::concat("expected one for each of ", graph.edge_count(), " edges"));
  return detail::targets_of(graph, labels, labels.empty() ? 1 : class_count, options, options.keep_targets);
}

}  // namespace sheafnn
