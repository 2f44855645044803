/// \file
/// NodeData: a dataset on a graph or on a hypergraph, for functions that do not depend on what joins the nodes.
#pragma once

#include <cstdint>
#include <sheafnn/core/errors.hpp>
#include <sheafnn/graph/dataset.hpp>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace programs {

/// A dataset on a graph, or on a hypergraph.
using AnyDataset = std::variant<sheafnn::Dataset, sheafnn::HypergraphDataset>;

/// Refers to a dataset, which must outlive it. It has the members of sheafnn::NodeDataset.
class NodeData {
 public:
  template <class GraphType>
  NodeData(const sheafnn::NodeDataset<GraphType>& data)  // NOLINT: implicit
      : name(data.name),
        features(data.features),
        labels(data.labels),
        class_count(data.class_count),
        splits(data.splits),
        node_names(data.node_names),
        class_names(data.class_names),
        feature_names(data.feature_names),
        edge_type_names(data.edge_type_names),
        node_type_names(data.node_type_names),
        targets(data.targets),
        target_names(data.target_names),
        whole_(&data) {}
  NodeData(const AnyDataset& data)  // NOLINT: implicit
      : NodeData(std::visit([](const auto& whole) { return NodeData(whole); }, data)) {}

  [[nodiscard]] sheafnn::Index node_count() const noexcept { return features.rows(); }
  [[nodiscard]] sheafnn::Index feature_count() const noexcept { return features.columns(); }
  /// Calls f with the dataset.
  template <class F>
  decltype(auto) visit(const F& f) const {
    return std::visit([&](const auto* whole) -> decltype(auto) { return f(*whole); }, whole_);
  }
  /// The dataset. \throws std::invalid_argument  it is on another type of graph
  template <class GraphType>
  [[nodiscard]] const sheafnn::NodeDataset<GraphType>& on() const {
    const auto* const whole = std::get_if<const sheafnn::NodeDataset<GraphType>*>(&whole_);
    constexpr bool hypergraph = std::is_same_v<GraphType, sheafnn::Hypergraph>;
    sheafnn::require(whole != nullptr, "data", name,
                     hypergraph ? "the network works on hypergraphs; this is a graph"
                                : "the network works on graphs; this is a hypergraph");
    return **whole;
  }

  const std::string& name;
  const sheafnn::NodeFeatures& features;
  const std::vector<std::int32_t>& labels;
  const sheafnn::Index& class_count;
  const std::vector<sheafnn::Split>& splits;
  const std::vector<std::string>&node_names, &class_names, &feature_names, &edge_type_names, &node_type_names;
  const std::vector<double>& targets;
  const std::vector<std::string>& target_names;

 private:
  std::variant<const sheafnn::Dataset*, const sheafnn::HypergraphDataset*> whole_;
};

}  // namespace programs
