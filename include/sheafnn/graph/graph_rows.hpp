/// \file
/// GraphRows: a node classification task whose graph is read a node at a time. It is in memory (DatasetRows) or in files
/// that are larger than memory (io/folder_rows.hpp). Subgraph: some of its nodes with edges among them, in memory.
///
/// Arcs of the rows are numbered with 64 bits. A subgraph has 32-bit numbers, as every Graph.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/graph/dataset.hpp"
#include "sheafnn/graph/features.hpp"
#include "sheafnn/graph/graph.hpp"

namespace sheafnn {

/// See the file comment. Implementations may be called by one thread at a time.
///
/// Unchecked: node numbers in [0, n), and k in [0, degree(u)).
class GraphRows {
 public:
  virtual ~GraphRows() = default;

  /// n, at most 2³¹ − 1.
  [[nodiscard]] virtual Index node_count() const = 0;
  /// p, with indicators of missing values.
  [[nodiscard]] virtual Index feature_count() const = 0;
  /// n classes, −1 where unknown.
  [[nodiscard]] virtual std::span<const std::int32_t> labels() const = 0;
  /// C, above every label.
  [[nodiscard]] virtual Index class_count() const = 0;
  [[nodiscard]] virtual Index degree(Index u) const = 0;
  /// Neighbour k of u; neighbours increase, and u is not among them.
  [[nodiscard]] virtual Index neighbour(Index u, Index k) const = 0;
  /// Appends the features of u that are not 0: columns, which increase, and values.
  virtual void append_features(Index u, std::vector<std::int32_t>& columns, std::vector<double>& values) const = 0;
  /// The task where it is in memory: its graph may have directions and features of arcs. Null: every edge is listed in
  /// both directions, and arcs have no features.
  [[nodiscard]] virtual const Dataset* dataset() const noexcept { return nullptr; }
};

/// The rows of a dataset, which must outlive them. Unchecked: as GraphRows.
class DatasetRows final : public GraphRows {
 public:
  /// \throws std::invalid_argument  see validate()
  explicit DatasetRows(const Dataset& data) : data_(&data) { validate(data); }
  explicit DatasetRows(const Dataset&&) = delete;  // it would dangle

  [[nodiscard]] Index node_count() const override { return data_->node_count(); }
  [[nodiscard]] Index feature_count() const override { return data_->feature_count(); }
  [[nodiscard]] std::span<const std::int32_t> labels() const override { return data_->labels; }
  [[nodiscard]] Index class_count() const override { return data_->class_count; }
  [[nodiscard]] Index degree(Index u) const override { return data_->graph.degree(u); }
  [[nodiscard]] Index neighbour(Index u, Index k) const override {
    return data_->graph.target(data_->graph.first_arc(u) + k);
  }
  void append_features(Index u, std::vector<std::int32_t>& columns, std::vector<double>& values) const override {
    const auto offset = data_->features.offsets().subspan(static_cast<std::size_t>(u), 2);
    const std::size_t begin = static_cast<std::size_t>(offset[0]),
                      count = static_cast<std::size_t>(offset[1] - offset[0]);
    const auto of_row = data_->features.column_of().subspan(begin, count);
    const auto numbers = data_->features.values().subspan(begin, count);
    columns.insert(columns.end(), of_row.begin(), of_row.end());
    values.insert(values.end(), numbers.begin(), numbers.end());
  }
  [[nodiscard]] const Dataset* dataset() const noexcept override { return data_; }

 private:
  const Dataset* data_;
};

/// The features of some nodes, n' × p, in their order. Unchecked: the indices of the nodes.
[[nodiscard]] inline NodeFeatures features_of(const GraphRows& rows, std::span<const std::int32_t> nodes) {
  std::vector<Index> offsets = {0};
  std::vector<std::int32_t> columns;
  std::vector<double> values;
  for (const std::int32_t u : nodes) {
    rows.append_features(u, columns, values);
    offsets.push_back(static_cast<Index>(values.size()));
    if (offsets.size() == 2 && offsets.back() == rows.feature_count()) {  // so are other rows, probably
      columns.reserve(nodes.size() * columns.size());
      values.reserve(nodes.size() * values.size());
    }
  }
  NodeFeatures r =
      NodeFeatures::from_csr(std::move(offsets), std::move(columns), std::move(values), rows.feature_count());
  if (const Dataset* data = rows.dataset()) {
    r.set_indicators({data->features.indicators().begin(), data->features.indicators().end()});
  }
  return r;
}

/// Some nodes of a graph and edges among them.
struct Subgraph {
  std::vector<std::int32_t> node;  ///< their indices in the whole, increasing
  Graph graph;
  NodeFeatures features;
  std::vector<std::int32_t> labels;

  /// The local indices of nodes of the whole, without the nodes that the subgraph does not have. Unchecked: `nodes` increase.
  [[nodiscard]] std::vector<std::int32_t> local(std::span<const std::int32_t> nodes) const {
    std::vector<std::int32_t> r;
    std::size_t i = 0;
    for (const std::int32_t u : nodes) {
      while (i < node.size() && node[i] < u) ++i;
      if (i < node.size() && node[i] == u) r.push_back(static_cast<std::int32_t>(i));
    }
    return r;
  }
};

/// An arc of a subgraph. Takes any numbers.
struct SubgraphArc {
  std::int32_t from, to;  ///< indices in the subgraph
  Index of_whole;         ///< index in the dataset's graph, where the rows have one

  friend bool operator<(const SubgraphArc& a, const SubgraphArc& b) {
    return std::tie(a.from, a.to) < std::tie(b.from, b.to);
  }
};

/// \param node  increasing
/// \param arcs  both arcs of every edge, in the order of SubgraphArc
/// Unchecked: both. Directions and features of arcs come from the dataset of the rows, if there is one.
[[nodiscard]] inline Subgraph subgraph(const GraphRows& rows, std::vector<std::int32_t> node,
                                       std::span<const SubgraphArc> arcs) {
  Subgraph r;
  r.node = std::move(node);
  const Dataset* const data = rows.dataset();
  std::vector<Edge> edges;
  for (const SubgraphArc& arc : arcs) {
    if (data == nullptr || data->graph.listed(arc.of_whole)) edges.push_back({arc.from, arc.to});
  }
  r.graph = graph_of_entries(static_cast<Index>(r.node.size()), std::move(edges));
  if (data != nullptr) {
    detail::take_attributes(
        r.graph, data->graph, [&](Index arc) { return arcs[static_cast<std::size_t>(arc)].of_whole; },
        [&](Index u) { return r.node[static_cast<std::size_t>(u)]; });
  }
  r.features = features_of(rows, r.node);
  for (const std::int32_t u : r.node) r.labels.push_back(rows.labels()[static_cast<std::size_t>(u)]);
  return r;
}

}  // namespace sheafnn
